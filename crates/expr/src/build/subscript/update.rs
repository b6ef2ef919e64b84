//! Writing `x[…] = value`: replaced blocks, and scatters at indices.

use nxla_tensor::{Scalar, Shape, broadcast_shapes, to_i64};

use super::read::{Slot, slots};
use super::{OP, Subscript, Update};
use crate::build::SliceStart;
use crate::build::index::counting_dtype;
use crate::graph::{BinaryOp, ErrorKind, ExprId, Graph, Op, Result, TensorType, shape_text};

impl Graph {
    /// Writes `value`, which broadcasts to the shape of `x[items]`, to these elements of `x`. The
    /// dtype is unchanged.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::subscript`], and an error for a value that does not
    /// broadcast.
    pub fn subscript_update(
        &mut self,
        x: ExprId,
        items: &[Subscript],
        value: ExprId,
        update: Update,
    ) -> Result<ExprId> {
        let value = self.as_type(value, self.dtype(x))?;
        let value = self.rename(value, None)?;
        if !items.iter().any(|item| matches!(item, Subscript::Take(_))) {
            return self.block_update(x, items, value, update);
        }
        if self.covers_other_axes(x, items) {
            return self.window_update(x, items, value, update);
        }
        let shape = self.shape(x).clone();
        let places = self.iota(shape.clone(), None, counting_dtype(&[shape.size()]))?;
        let places = self.subscript(places, items)?;
        let value = self.broadcast_value(value, self.shape(places).clone())?;
        self.write_at(x, places, value, update)
    }

    /// Returns whether all axes without indices are taken as a whole.
    fn covers_other_axes(&self, x: ExprId, items: &[Subscript]) -> bool {
        let axes = items.iter().filter(|item| item.takes_axis()).zip(self.shape(x).iter());
        axes.into_iter().all(|(item, &size)| match item {
            Subscript::Range { .. } => *item == Subscript::whole_axis(size),
            Subscript::At(_) | Subscript::Dynamic(_) | Subscript::Take(_) => true,
            Subscript::New | Subscript::Nothing => unreachable!("it has no axis"),
        })
    }

    /// Writes whole windows at indices, for [`Graph::subscript_update`].
    fn window_update(
        &mut self,
        x: ExprId,
        items: &[Subscript],
        value: ExprId,
        update: Update,
    ) -> Result<ExprId> {
        let (indices, axes) = self.index_tensors(x, items)?;
        let (shape, names) = (self.shape(x).clone(), self.tensor_type(x).names.clone());
        let common = self.index_shape(&indices)?;
        let mut ranges = (0..shape.rank()).filter(|axis| !axes.contains(axis));
        let (mut target, mut kept, mut at) = (Vec::new(), Vec::new(), 0);
        for slot in slots(items) {
            let sizes = match slot {
                Slot::Indices => common.to_vec(),
                Slot::Range => vec![shape[ranges.next().expect("an axis for each range")]],
                Slot::New => vec![1],
            };
            target.extend(&sizes);
            if slot == Slot::Indices {
                at = kept.len();
            }
            if slot != Slot::New {
                kept.extend(&sizes);
            }
        }
        // Axes after the last item are taken as a whole.
        let rest: Vec<usize> = ranges.map(|axis| shape[axis]).collect();
        target.extend(&rest);
        kept.extend(&rest);
        let value = self.broadcast_value(value, target.into())?;
        if shape.size() == 0 || common.size() == 0 {
            return Ok(x);
        }
        // A scatter requires the axes of the indices first.
        let value = self.reshape(value, Shape::from(kept))?;
        let (count, rank) = (common.rank(), self.shape(value).rank());
        let order = (at..at + count).chain(0..at).chain(at + count..rank);
        let value = self.make(Op::Transpose(order.collect()), &[value])?;
        let mut near = Vec::with_capacity(indices.len());
        for (&index, &axis) in indices.iter().zip(&axes) {
            near.push(self.nearest(index, shape[axis])?);
        }
        let plain = self.rename(x, None)?;
        let op = match update {
            Update::Set => Op::IndexedPut(axes.as_slice().into()),
            Update::Add => Op::IndexedAdd(axes.as_slice().into()),
            Update::Combine(op) => {
                let places = self.window_positions(&shape, &near, &axes, &common)?;
                return self.write_at(x, places, value, Update::Combine(op));
            }
        };
        let coordinates = self.coordinates(&near, &common)?;
        let updated = self.make(op, &[plain, coordinates, value])?;
        let updated = self.as_type(updated, self.dtype(x))?;
        self.rename(updated, names)
    }

    /// Returns the row-major positions, in a tensor of this shape, of the elements of the windows
    /// at indices. The axes of the indices come first.
    fn window_positions(
        &mut self,
        shape: &Shape,
        indices: &[ExprId],
        axes: &[usize],
        common: &Shape,
    ) -> Result<ExprId> {
        let dtype = counting_dtype(&[shape.size()]);
        let rest: Vec<usize> = (0..shape.rank()).filter(|axis| !axes.contains(axis)).collect();
        let window = rest.iter().map(|&axis| shape[axis]);
        let target: Shape = common.iter().copied().chain(window).collect();
        let mut places = self.scalar_constant(Scalar::Int(0), dtype)?;
        places = self.broadcast(places, target.clone(), None)?;
        for (axis, size) in shape.iter().enumerate() {
            let index = match axes.iter().position(|&indexed| indexed == axis) {
                Some(at) => {
                    let index = self.rename(indices[at], None)?;
                    let index = self.as_type(index, dtype)?;
                    let index = self.broadcast(index, common.clone(), None)?;
                    let ones = std::iter::repeat_n(1, rest.len());
                    self.reshape(index, common.iter().copied().chain(ones).collect::<Shape>())?
                }
                None => {
                    let at = rest
                        .iter()
                        .position(|&other| other == axis)
                        .expect("the axis is in one of the lists");
                    let at = to_i64(common.rank() + at);
                    self.iota(target.clone(), Some(at), dtype)?
                }
            };
            let size = to_i64(*size);
            let size = self.scalar_constant(Scalar::Int(size), dtype)?;
            let before = self.multiply(places, size)?;
            places = self.add(before, index)?;
        }
        Ok(places)
    }

    /// Clamps indices.
    fn nearest(&mut self, indices: ExprId, size: usize) -> Result<ExprId> {
        let dtype = self.dtype(indices);
        let last = to_i64(size - 1);
        if let Op::Constant(constant) = self.op(indices)
            && constant.value.as_i64().is_some_and(|index| (0..=last).contains(&index))
        {
            return Ok(indices);
        }
        let last = last.min(dtype.max_value().as_i64().unwrap_or(i64::MAX));
        let first = self.scalar_constant(Scalar::Int(0), dtype)?;
        let last = self.scalar_constant(Scalar::Int(last), dtype)?;
        self.clip(indices, first, last)
    }

    /// Broadcasts a value to the shape of the elements that it replaces. Additional leading axes
    /// must have size 1.
    fn broadcast_value(&mut self, value: ExprId, target: Shape) -> Result<ExprId> {
        let shape = self.shape(value).clone();
        let extra = shape.rank().saturating_sub(target.rank());
        let kept = Shape::from(shape[extra..].to_vec());
        let fits = shape[..extra].iter().all(|&size| size == 1)
            && broadcast_shapes(&kept, &target).is_ok_and(|common| common == target);
        if !fits {
            let (found, expected) =
                (shape_text(&shape), format!("a shape that broadcasts to {}", shape_text(&target)));
            return Err(self.error(OP, ErrorKind::Shape { argument: "value", found, expected }));
        }
        let value = self.reshape(value, kept)?;
        self.broadcast(value, target, None)
    }

    /// Applies an op to values of one dtype, and casts the result to this dtype.
    fn combine(&mut self, op: BinaryOp, old: ExprId, value: ExprId) -> Result<ExprId> {
        let combined = self.binary(op, old, value)?;
        self.as_type(combined, self.dtype(old))
    }

    /// Does the same as [`Graph::subscript_update`] for distinct elements.
    fn block_update(
        &mut self,
        x: ExprId,
        items: &[Subscript],
        value: ExprId,
        update: Update,
    ) -> Result<ExprId> {
        let shape = self.shape(x).clone();
        let names = self.tensor_type(x).names.clone();
        let plain = self.rename(x, None)?;
        let old = self.subscript(plain, items)?;
        let target = self.shape(old).clone();
        let value = self.broadcast_value(value, target)?;
        let value = match update {
            Update::Set => value,
            Update::Add => self.combine(BinaryOp::Add, old, value)?,
            Update::Combine(op) => self.combine(op.binary(), old, value)?,
        };
        let axes = items.iter().filter(|item| item.takes_axis());
        let strided = axes
            .clone()
            .any(|item| matches!(item, Subscript::Range { stride, .. } if *stride != 1));
        if strided {
            let places = self.iota(shape.clone(), None, counting_dtype(&[shape.size()]))?;
            let places = self.subscript(places, items)?;
            return self.write_at(x, places, value, Update::Set);
        }
        let (mut starts, mut lengths, mut reversed) = (Vec::new(), Vec::new(), Vec::new());
        for (axis, item) in axes.enumerate() {
            let (start, length) = match *item {
                Subscript::At(index) => (SliceStart::at(index), 1),
                Subscript::Dynamic(index) => {
                    (SliceStart::from(self.from_end(index, shape[axis])?), 1)
                }
                Subscript::Range { start, span, stride: _, is_reversed } => {
                    if is_reversed {
                        reversed.push(to_i64(axis));
                    }
                    (SliceStart::at(start), span)
                }
                Subscript::Take(_) | Subscript::New | Subscript::Nothing => {
                    unreachable!("a block has no entries of this kind")
                }
            };
            starts.push(start);
            lengths.push(length);
        }
        let block = self.reshape(value, Shape::from(lengths))?;
        let block = if reversed.is_empty() { block } else { self.reverse(block, Some(&reversed))? };
        let updated =
            if starts.is_empty() { block } else { self.put_slice(plain, &starts, block)? };
        self.rename(updated, names)
    }

    /// Writes updates at row-major positions of `x`, which may be equal. There is one value for
    /// each position.
    fn write_at(
        &mut self,
        x: ExprId,
        places: ExprId,
        value: ExprId,
        update: Update,
    ) -> Result<ExprId> {
        if self.shape(places).size() == 0 || self.shape(x).size() == 0 {
            return Ok(x);
        }
        let TensorType { dtype, shape, names } = self.tensor_type(x).clone();
        let (places, value) = (self.flatten(places, None)?, self.flatten(value, None)?);
        let flat = self.rename(x, None)?;
        let flat = self.flatten(flat, None)?;
        let column = self.new_axis(places, -1, None)?;
        let updated = match update {
            Update::Set => self.make(Op::IndexedPut([0].into()), &[flat, column, value])?,
            Update::Add => {
                let sum = self.make(Op::IndexedAdd([0].into()), &[flat, column, value])?;
                self.as_type(sum, dtype)?
            }
            Update::Combine(op) => self.scatter(flat, column, value, op)?,
        };
        let updated = self.reshape(updated, shape)?;
        self.rename(updated, names)
    }
}
