//! Subscripts: reading and writing `x[…]` by the rules of NumPy's basic and advanced indexing.
//!
//! Negative indices at run time count from the end. Indices that are still out of range are clamped
//! by gathers, and their updates are ignored by scatters.

use nxla_tensor::{DType, Scalar, Shape, broadcast_shapes};

use super::index::counting_dtype;
use super::{SliceStart, of_op};
use crate::graph::{Axes, BinaryOp, Combine, ErrorKind, ExprId, Graph, Op, Result, TensorType};

const OP: &str = "index";

/// An entry of a subscript. All entries except [`Subscript::New`] and [`Subscript::Nothing`]
/// consume one axis each, in order, and together they consume all axes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subscript {
    /// A constant index in range; removes the axis.
    At(usize),
    /// A scalar index of the program; removes the axis.
    Dynamic(ExprId),
    /// `start, span, stride`, and whether the order is reversed.
    Range(usize, usize, usize, bool),
    /// Elements by index. All such entries broadcast against each other and against scalar indices.
    Take(ExprId),
    /// A new axis of size 1.
    New,
    /// An ellipsis that covers no axis. Like a range, it separates the indices on its sides.
    Nothing,
}

impl Subscript {
    fn takes_axis(&self) -> bool {
        !matches!(self, Subscript::New | Subscript::Nothing)
    }
}

/// The effect of writing on the existing element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Update {
    /// Replaces the element. The result of several updates of one element is unspecified, and the
    /// gradient goes to the update that remains.
    Set,
    /// Adds all updates to the element.
    Add,
    /// Combines all updates with the element.
    Combine(Combine),
}

/// The origin of an axis of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// All axes of the indices.
    Indices,
    /// An axis of a range.
    Range,
    /// A new axis.
    New,
}

impl Graph {
    /// Converts negative `indices` into an axis of size `size`, which count from its end.
    ///
    /// # Errors
    /// Cannot fail for valid operands.
    pub fn from_end(&mut self, indices: ExprId, size: usize) -> Result<ExprId> {
        if !self.may_be_negative(indices) {
            return Ok(indices);
        }
        let dtype = counting_dtype(&[size]);
        let wide = self.dtype(indices).bits() >= dtype.bits();
        let indices = if wide { indices } else { self.as_type(indices, dtype)? };
        let size = i64::try_from(size).expect("an axis has below 2^63 elements");
        let size = self.scalar_constant(Scalar::Int(size), self.dtype(indices))?;
        self.shifted_where_negative(indices, size)
    }

    /// Converts negative coordinates in the last axis, for axes of these sizes.
    fn tuples_from_end(&mut self, indices: ExprId, sizes: &[usize]) -> Result<ExprId> {
        if !self.may_be_negative(indices) || self.shape(indices).last() != Some(&sizes.len()) {
            // The node rejects a wrong number of coordinates.
            return Ok(indices);
        }
        let dtype = counting_dtype(sizes);
        let wide = self.dtype(indices).bits() >= dtype.bits();
        let indices = if wide { indices } else { self.as_type(indices, dtype)? };
        let signed = |&size: &usize| i64::try_from(size).expect("an axis has below 2^63 elements");
        let sizes: Vec<i64> = sizes.iter().map(signed).collect();
        let sizes = self.positions(&sizes, [sizes.len()], self.dtype(indices))?;
        self.shifted_where_negative(indices, sizes)
    }

    fn may_be_negative(&self, indices: ExprId) -> bool {
        let known = match self.op(indices) {
            Op::Constant(constant) => constant.value.as_i64().is_some_and(|value| value >= 0),
            Op::Tensor(literal) => {
                (0..literal.0.size()).all(|at| literal.0.get(at).as_i64().is_some_and(|i| i >= 0))
            }
            _ => false,
        };
        self.dtype(indices).is_signed() && !known
    }

    fn shifted_where_negative(&mut self, indices: ExprId, by: ExprId) -> Result<ExprId> {
        let zero = self.zero_like(indices)?;
        let is_negative = self.less(indices, zero)?;
        let shifted = self.add(indices, by)?;
        let counted = self.select(is_negative, shifted, indices)?;
        let names = self.tensor_type(indices).names.clone();
        self.rename(counted, names)
    }

    /// Does the same as [`Graph::take`], with indices that may count from the end.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::take`].
    pub fn take_from_end(&mut self, x: ExprId, indices: ExprId, axis: i64) -> Result<ExprId> {
        let at = self.axis("take", x, axis)?;
        let indices = self.from_end(indices, self.shape(x)[at])?;
        self.take(x, indices, axis)
    }

    /// Does the same as [`Graph::take_along_axis`], with indices that may count from the end and
    /// other axes that broadcast.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, ranks that differ, axes that do not broadcast, or
    /// indices that are not integers.
    pub fn take_along_broadcast(
        &mut self,
        x: ExprId,
        indices: ExprId,
        axis: i64,
    ) -> Result<ExprId> {
        let op = "take_along_axis";
        let at = self.axis(op, x, axis)?;
        let indices = self.from_end(indices, self.shape(x)[at])?;
        let (mut left, mut right) = (self.shape(x).clone(), self.shape(indices).clone());
        if left.rank() != right.rank() {
            return self.take_along_axis(x, indices, axis);
        }
        for other in (0..left.rank()).filter(|&other| other != at) {
            match (left[other], right[other]) {
                (a, b) if a == b => {}
                (1, b) => left.as_mut_slice()[other] = b,
                (a, 1) => right.as_mut_slice()[other] = a,
                _ => return self.take_along_axis(x, indices, axis),
            }
        }
        let x = self.stretched(x, left)?;
        let indices = self.stretched(indices, right)?;
        self.take_along_axis(x, indices, axis)
    }

    /// Broadcasts to a shape of the same rank, keeping names.
    fn stretched(&mut self, x: ExprId, shape: Shape) -> Result<ExprId> {
        if *self.shape(x) == shape {
            return Ok(x);
        }
        let names = self.tensor_type(x).names.clone();
        self.broadcast_named(x, shape, names)
    }

    /// Converts negative indices of [`Graph::gather`] and similar functions, which count from the
    /// end.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::gather`].
    pub fn coordinates_from_end(
        &mut self,
        op: &str,
        x: ExprId,
        indices: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        let axes = self.indexed_axes(op, x, indices, axes)?;
        let sizes: Vec<usize> = axes.iter().map(|&axis| self.shape(x)[axis]).collect();
        self.tuples_from_end(indices, &sizes)
    }

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
    /// let items = [Subscript::Take(i), Subscript::Range(0, 4, 2, false), Subscript::Take(i)];
    /// let y = graph.subscript(x, &items)?;
    /// assert_eq!(graph.tensor_type(y).to_string(), "f32[7][2]");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    pub fn subscript(&mut self, x: ExprId, items: &[Subscript]) -> Result<ExprId> {
        let has_indices = items.iter().any(|item| matches!(item, Subscript::Take(_)));
        let ranges = self.ranges(x, items, !has_indices)?;
        if !has_indices {
            return self.with_new_axes(ranges, items.iter().filter_map(slot_of_basic));
        }
        let (indices, axes) = self.index_tensors(x, items)?;
        let slots = slots(items);
        let place = slots.iter().take_while(|&&slot| slot != Slot::Indices);
        let at = place.filter(|&&slot| slot == Slot::Range).count();
        let taken = match (&indices[..], &axes[..]) {
            // This case preserves axis names.
            (&[only], &[axis]) => {
                self.take(ranges, only, i64::try_from(axis).expect("an axis is small"))?
            }
            _ => self.gathered_at(ranges, &indices, &axes, at)?,
        };
        let rank = self.index_shape(&indices)?.rank();
        let slots = slots.into_iter().flat_map(|slot| {
            std::iter::repeat_n(slot, if slot == Slot::Indices { rank } else { 1 })
        });
        self.with_new_axes(taken, slots)
    }

    /// Slices the ranges, and also scalar indices if there are no index tensors.
    fn ranges(&mut self, x: ExprId, items: &[Subscript], singles: bool) -> Result<ExprId> {
        let shape = self.shape(x).clone();
        let (mut starts, mut lengths, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        let (mut squeezed, mut reversed) = (Vec::new(), Vec::new());
        let mut whole = true;
        for item in items.iter().filter(|item| item.takes_axis()) {
            let axis = starts.len();
            let signed = i64::try_from(axis).expect("an axis is small");
            let (start, length, stride) = match *item {
                Subscript::Range(first, span, stride, reverse) => {
                    if reverse {
                        reversed.push(signed);
                    }
                    (SliceStart::at(first), span, stride)
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
    fn index_tensors(
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
                    let index = i64::try_from(index).expect("an axis has below 2^63 elements");
                    self.scalar_constant(Scalar::Int(index), counting_dtype(&[size]))?
                }
                Subscript::Dynamic(index) | Subscript::Take(index) => self.from_end(index, size)?,
                Subscript::Range(..) | Subscript::New | Subscript::Nothing => continue,
            };
            indices.push(index);
            axes.push(axis);
        }
        Ok((indices, axes))
    }

    /// Returns the shape to which indices broadcast.
    fn index_shape(&self, indices: &[ExprId]) -> Result<Shape> {
        let mut common = Shape::scalar();
        for &index in indices {
            common = broadcast_shapes(&common, self.shape(index))
                .map_err(|error| self.invalid(OP, "indices", error.to_string()))?;
        }
        Ok(common)
    }

    /// Gathers the elements at indices into these axes, and moves the axes of the indices to
    /// position `at`.
    fn gathered_at(
        &mut self,
        x: ExprId,
        indices: &[ExprId],
        axes: &[usize],
        at: usize,
    ) -> Result<ExprId> {
        let shape = self.index_shape(indices)?;
        let coordinates = self.coordinates(indices, &shape)?;
        let taken = self.make(Op::Gather(axes.into()), &[x, coordinates]).map_err(of_op(OP))?;
        let count = shape.rank();
        let others = count..self.shape(taken).rank();
        let order: Axes = others.clone().take(at).chain(0..count).chain(others.skip(at)).collect();
        self.make(Op::Transpose(order), &[taken])
    }

    /// Broadcasts indices into several axes to a shape, and stacks them as coordinates in a last
    /// axis.
    fn coordinates(&mut self, indices: &[ExprId], shape: &Shape) -> Result<ExprId> {
        let is_wide =
            |&index: &ExprId| matches!(self.dtype(index), DType::S64 | DType::U64 | DType::U32);
        let is_wide = indices.iter().any(is_wide);
        let mut columns = Vec::with_capacity(indices.len());
        for &index in indices {
            let index = self.rename(index, None)?;
            let index = match is_wide {
                true => self.signed_indices(index)?,
                false => self.as_type(index, DType::S32)?,
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
        if self.takes_windows(x, items) {
            return self.window_update(x, items, value, update);
        }
        let shape = self.shape(x).clone();
        let places = self.iota(shape.clone(), None, counting_dtype(&[shape.size()]))?;
        let places = self.subscript(places, items)?;
        let value = self.fitted(value, self.shape(places).clone())?;
        self.scattered(x, places, value, update)
    }

    /// Returns whether all axes without indices are taken as a whole.
    fn takes_windows(&self, x: ExprId, items: &[Subscript]) -> bool {
        let axes = items.iter().filter(|item| item.takes_axis()).zip(self.shape(x).iter());
        axes.into_iter().all(|(item, &size)| match *item {
            Subscript::Range(first, span, stride, reversed) => {
                (first, span, stride, reversed) == (0, size, 1, false)
            }
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
        let value = self.fitted(value, target.into())?;
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
                let places = self.places(&shape, &near, &axes, &common)?;
                return self.scattered(x, places, value, Update::Combine(op));
            }
        };
        let coordinates = self.coordinates(&near, &common)?;
        let updated = self.make(op, &[plain, coordinates, value]).map_err(of_op(OP))?;
        let updated = self.as_type(updated, self.dtype(x))?;
        self.rename(updated, names)
    }

    /// Returns the row-major positions, in a tensor of this shape, of the elements of the windows
    /// at indices. The axes of the indices come first.
    fn places(
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
                    let at = i64::try_from(common.rank() + at).expect("an axis is small");
                    self.iota(target.clone(), Some(at), dtype)?
                }
            };
            let size = i64::try_from(*size).expect("an axis has below 2^63 elements");
            let size = self.scalar_constant(Scalar::Int(size), dtype)?;
            let before = self.multiply(places, size)?;
            places = self.add(before, index)?;
        }
        Ok(places)
    }

    /// Clamps indices.
    fn nearest(&mut self, indices: ExprId, size: usize) -> Result<ExprId> {
        let dtype = self.dtype(indices);
        let last = i64::try_from(size - 1).expect("an axis has below 2^63 elements");
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
    fn fitted(&mut self, value: ExprId, target: Shape) -> Result<ExprId> {
        let shape = self.shape(value).clone();
        let extra = shape.rank().saturating_sub(target.rank());
        let kept = Shape::from(shape[extra..].to_vec());
        let fits = shape[..extra].iter().all(|&size| size == 1)
            && broadcast_shapes(&kept, &target).is_ok_and(|common| common == target);
        if !fits {
            let (found, expected) =
                (shape.to_string(), format!("a shape that broadcasts to {target}"));
            return Err(self.error(OP, ErrorKind::Shape { argument: "value", found, expected }));
        }
        let value = self.reshape(value, kept)?;
        self.broadcast(value, target, None)
    }

    /// Applies an op to values of one dtype, and casts the result to this dtype.
    fn combined(&mut self, op: BinaryOp, old: ExprId, value: ExprId) -> Result<ExprId> {
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
        let value = self.fitted(value, target)?;
        let value = match update {
            Update::Set => value,
            Update::Add => self.combined(BinaryOp::Add, old, value)?,
            Update::Combine(op) => self.combined(op.binary(), old, value)?,
        };
        let axes = items.iter().filter(|item| item.takes_axis());
        let strided = axes
            .clone()
            .any(|item| matches!(item, Subscript::Range(_, _, stride, _) if *stride != 1));
        if strided {
            let places = self.iota(shape.clone(), None, counting_dtype(&[shape.size()]))?;
            let places = self.subscript(places, items)?;
            return self.scattered(x, places, value, Update::Set);
        }
        let (mut starts, mut lengths, mut reversed) = (Vec::new(), Vec::new(), Vec::new());
        for (axis, item) in axes.enumerate() {
            let (start, length) = match *item {
                Subscript::At(index) => (SliceStart::at(index), 1),
                Subscript::Dynamic(index) => {
                    (SliceStart::from(self.from_end(index, shape[axis])?), 1)
                }
                Subscript::Range(first, span, _, reverse) => {
                    if reverse {
                        reversed.push(i64::try_from(axis).expect("an axis is small"));
                    }
                    (SliceStart::at(first), span)
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
    fn scattered(
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

fn slot_of_basic(item: &Subscript) -> Option<Slot> {
    match item {
        Subscript::New => Some(Slot::New),
        Subscript::Range(..) => Some(Slot::Range),
        Subscript::At(_) | Subscript::Dynamic(_) | Subscript::Take(_) | Subscript::Nothing => None,
    }
}

fn is_index(item: &Subscript) -> bool {
    matches!(item, Subscript::At(_) | Subscript::Dynamic(_) | Subscript::Take(_))
}

/// Returns the axes of the result in order. The axes of the indices are at the position of the
/// first index, or in front if ranges or new axes separate the indices.
fn slots(items: &[Subscript]) -> Vec<Slot> {
    let first = items.iter().position(is_index);
    let last = items.iter().rposition(is_index);
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let together = items[first..=last].iter().all(is_index);
    let basic = |items: &[Subscript]| items.iter().filter_map(slot_of_basic).collect::<Vec<_>>();
    match together {
        true => [basic(&items[..first]), vec![Slot::Indices], basic(&items[first..])].concat(),
        false => [vec![Slot::Indices], basic(items)].concat(),
    }
}
