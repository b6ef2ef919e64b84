//! Reading `x[…]`: slices of the ranges, then a gather at the indices, then new axes.

use nxla_tensor::{DType, Scalar, Shape, broadcast_shapes, to_i64};

use super::{OP, Subscript};
use crate::build::SliceStart;
use crate::build::index::counting_dtype;
use crate::graph::{Axes, ExprId, Graph, Op, Result};

/// The origin of an axis of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// All axes of the indices.
    Indices,
    /// An axis of a range.
    Range,
    /// A new axis.
    New,
}

impl Graph {
    /// Returns `x[items]`.
    ///
    /// # Errors
    /// Returns an error for indices that are not integers, or do not broadcast.
    ///
    /// ```
    /// use nxla_expr::build::Subscript;
    /// use nxla_expr::{Graph, TensorType};
    /// use nxla_tensor::DType;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.parameter(0, TensorType::new(DType::F32, [5, 4, 3]));
    /// let i = graph.parameter(1, TensorType::new(DType::S32, [7]));
    /// let every_second = Subscript::Range { start: 0, span: 4, stride: 2, is_reversed: false };
    /// let items = [Subscript::Take(i), every_second, Subscript::Take(i)];
    /// let y = graph.subscript(x, &items)?;
    /// assert_eq!(graph.tensor_type(y).to_string(), "f32[7][2]");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    pub fn subscript(&mut self, x: ExprId, items: &[Subscript]) -> Result<ExprId> {
        let has_indices = items.iter().any(|item| matches!(item, Subscript::Take(_)));
        let ranges = self.slice_ranges(x, items, !has_indices)?;
        if !has_indices {
            return self.with_new_axes(ranges, items.iter().filter_map(slot_of_basic));
        }
        let (indices, axes) = self.index_tensors(x, items)?;
        let slots = slots(items);
        let place = slots.iter().take_while(|&&slot| slot != Slot::Indices);
        let at = place.filter(|&&slot| slot == Slot::Range).count();
        let taken = match (&indices[..], &axes[..]) {
            // This case preserves axis names.
            (&[only], &[axis]) => self.take(ranges, only, to_i64(axis))?,
            _ => self.gather_at(ranges, &indices, &axes, at)?,
        };
        let rank = self.index_shape(&indices)?.rank();
        let slots = slots.into_iter().flat_map(|slot| {
            std::iter::repeat_n(slot, if slot == Slot::Indices { rank } else { 1 })
        });
        self.with_new_axes(taken, slots)
    }

    /// Slices the ranges, and also scalar indices without index tensors.
    fn slice_ranges(&mut self, x: ExprId, items: &[Subscript], singles: bool) -> Result<ExprId> {
        let shape = self.shape(x).clone();
        let (mut starts, mut lengths, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        let (mut squeezed, mut reversed) = (Vec::new(), Vec::new());
        let mut whole = true;
        for item in items.iter().filter(|item| item.takes_axis()) {
            let axis = starts.len();
            let signed = to_i64(axis);
            let (start, length, stride) = match *item {
                Subscript::Range { start, span, stride, is_reversed } => {
                    if is_reversed {
                        reversed.push(signed);
                    }
                    (SliceStart::at(start), span, stride)
                }
                Subscript::At(index) if singles => (SliceStart::at(index), 1, 1),
                Subscript::Dynamic(index) if singles => {
                    (SliceStart::from(self.from_end(index, shape[axis])?), 1, 1)
                }
                Subscript::At(_) | Subscript::Dynamic(_) | Subscript::Take(_) => {
                    (SliceStart::at(0), shape[axis], 1)
                }
                Subscript::New | Subscript::Nothing => unreachable!("it has no axis"),
            };
            if singles && matches!(item, Subscript::At(_) | Subscript::Dynamic(_)) {
                squeezed.push(signed);
                whole = false;
            }
            whole &= length == shape[axis] && stride == 1;
            starts.push(start);
            lengths.push(length);
            strides.push(stride);
        }
        let mut x = x;
        if !whole {
            x = self.slice(x, &starts, &lengths, Some(&strides))?;
        }
        if !reversed.is_empty() {
            x = self.reverse(x, Some(&reversed))?;
        }
        if squeezed.is_empty() { Ok(x) } else { self.squeeze(x, Some(&squeezed)) }
    }

    /// Returns the indices of all axes without ranges, before broadcasting, and these axes.
    pub(super) fn index_tensors(
        &mut self,
        x: ExprId,
        items: &[Subscript],
    ) -> Result<(Vec<ExprId>, Vec<usize>)> {
        let (mut indices, mut axes) = (Vec::new(), Vec::new());
        let items = items.iter().filter(|item| item.takes_axis());
        for (axis, item) in items.enumerate() {
            let size = self.shape(x)[axis];
            let index = match *item {
                Subscript::At(index) => {
                    let index = to_i64(index);
                    self.scalar_constant(Scalar::Int(index), counting_dtype(&[size]))?
                }
                Subscript::Dynamic(index) | Subscript::Take(index) => self.from_end(index, size)?,
                Subscript::Range { .. } | Subscript::New | Subscript::Nothing => continue,
            };
            indices.push(index);
            axes.push(axis);
        }
        Ok((indices, axes))
    }

    /// Returns the shape to which indices broadcast.
    pub(super) fn index_shape(&self, indices: &[ExprId]) -> Result<Shape> {
        let mut common = Shape::scalar();
        for &index in indices {
            common = broadcast_shapes(&common, self.shape(index))
                .map_err(|error| self.invalid(OP, "indices", error.to_string()))?;
        }
        Ok(common)
    }

    /// Gathers the elements at indices into these axes, and moves the axes of the indices to
    /// position `at`.
    fn gather_at(
        &mut self,
        x: ExprId,
        indices: &[ExprId],
        axes: &[usize],
        at: usize,
    ) -> Result<ExprId> {
        let shape = self.index_shape(indices)?;
        let coordinates = self.coordinates(indices, &shape)?;
        let taken = self.make(Op::Gather(axes.into()), &[x, coordinates])?;
        let count = shape.rank();
        let others = count..self.shape(taken).rank();
        let order: Axes = others.clone().take(at).chain(0..count).chain(others.skip(at)).collect();
        self.make(Op::Transpose(order), &[taken])
    }

    /// Broadcasts indices into several axes to a shape, and stacks them as coordinates in a last
    /// axis.
    pub(super) fn coordinates(&mut self, indices: &[ExprId], shape: &Shape) -> Result<ExprId> {
        let is_wide =
            |&index: &ExprId| matches!(self.dtype(index), DType::S64 | DType::U64 | DType::U32);
        let is_wide = indices.iter().any(is_wide);
        let mut columns = Vec::with_capacity(indices.len());
        for &index in indices {
            let index = self.rename(index, None)?;
            let index = if is_wide {
                self.signed_indices(index)?
            } else {
                self.as_type(index, DType::S32)?
            };
            columns.push(self.broadcast(index, shape.clone(), None)?);
        }
        match columns[..] {
            [column] => self.new_axis(column, -1, None),
            _ => self.stack(&columns, -1, None),
        }
    }

    /// Inserts the new axes of the slots.
    fn with_new_axes(
        &mut self,
        mut x: ExprId,
        slots: impl Iterator<Item = Slot>,
    ) -> Result<ExprId> {
        for (position, slot) in (0_i64..).zip(slots) {
            if slot == Slot::New {
                x = self.new_axis(x, position, None)?;
            }
        }
        Ok(x)
    }
}

fn slot_of_basic(item: &Subscript) -> Option<Slot> {
    match item {
        Subscript::New => Some(Slot::New),
        Subscript::Range { .. } => Some(Slot::Range),
        Subscript::At(_) | Subscript::Dynamic(_) | Subscript::Take(_) | Subscript::Nothing => None,
    }
}

fn is_index(item: &Subscript) -> bool {
    matches!(item, Subscript::At(_) | Subscript::Dynamic(_) | Subscript::Take(_))
}

/// Returns the axes of the result in order. The axes of the indices are at the position of the
/// first index, or in front if ranges or new axes separate the indices.
pub(super) fn slots(items: &[Subscript]) -> Vec<Slot> {
    let first = items.iter().position(is_index);
    let last = items.iter().rposition(is_index);
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let together = items[first..=last].iter().all(is_index);
    let basic = |items: &[Subscript]| items.iter().filter_map(slot_of_basic).collect::<Vec<_>>();
    if together {
        [basic(&items[..first]), vec![Slot::Indices], basic(&items[first..])].concat()
    } else {
        [vec![Slot::Indices], basic(items)].concat()
    }
}
