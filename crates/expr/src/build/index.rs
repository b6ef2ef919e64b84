//! Slices, gathers, scatters and sorts.
//!
//! Indices that are out of range when a program runs are no error: slices and gathers clamp them,
//! scatters drop what would land outside.

use nxla_tensor::{DType, Names};

use super::of_op;
use super::reduce::index_dtype;
use crate::graph::{Axes, BlockKind, ErrorKind, ExprId, Graph, Op, Result, Slice, Sort, Start};

/// Where a slice begins along one axis; clamped so that the slice fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceStart {
    /// At this index.
    Static(i64),
    /// At the value of a scalar integer tensor.
    Dynamic(ExprId),
}

impl From<i64> for SliceStart {
    fn from(start: i64) -> Self {
        SliceStart::Static(start)
    }
}

impl SliceStart {
    /// At a position that is known not to be negative. Past the end of every axis means the
    /// same as just past the end, so that a huge position may become a smaller one.
    pub fn at(start: usize) -> Self {
        SliceStart::Static(i64::try_from(start).unwrap_or(i64::MAX))
    }
}

impl From<ExprId> for SliceStart {
    fn from(start: ExprId) -> Self {
        SliceStart::Dynamic(start)
    }
}

impl Graph {
    /// The elements of a range of each axis: `lengths` elements from `starts` on, of which every
    /// `strides`-th is taken (all of them for `None`).
    ///
    /// # Errors
    /// Lists without one entry per axis; a length beyond the axis; a stride of 0; a dynamic start
    /// that is no scalar integer.
    pub fn slice(
        &mut self,
        x: ExprId,
        starts: &[SliceStart],
        lengths: &[usize],
        strides: Option<&[usize]>,
    ) -> Result<ExprId> {
        let (starts, dynamic) = self.starts(starts);
        let strides = strides.map_or_else(|| vec![1; lengths.len()].into(), Axes::from);
        if self.shape(x).rank() == 0 && starts.is_empty() && lengths.is_empty() {
            return Ok(x);
        }
        let slice = Slice { starts, lengths: lengths.into(), strides };
        let operands: Vec<ExprId> = std::iter::once(x).chain(dynamic).collect();
        self.make(Op::Slice(Box::new(slice)), &operands)
    }

    /// Splits starts into attributes and operands. A constant is no operand: its value is known.
    fn starts(&self, starts: &[SliceStart]) -> (Box<[Start]>, Vec<ExprId>) {
        let mut dynamic = Vec::new();
        let starts = starts.iter().map(|&start| match start {
            SliceStart::Static(start) => Start::Static(start),
            SliceStart::Dynamic(id) => match self.known_integer(id).map(i64::try_from) {
                Some(Ok(start)) => Start::Static(start),
                Some(Err(_)) | None => {
                    dynamic.push(id);
                    Start::Dynamic
                }
            },
        });
        (starts.collect(), dynamic)
    }

    /// [`Graph::slice`] of one axis, all others kept whole.
    ///
    /// # Errors
    /// An axis out of range, and as for [`Graph::slice`].
    pub fn slice_along_axis(
        &mut self,
        x: ExprId,
        start: impl Into<SliceStart>,
        length: usize,
        axis: i64,
        stride: usize,
    ) -> Result<ExprId> {
        let axis = self.axis("slice_along_axis", x, axis)?;
        let mut lengths = self.shape(x).to_vec();
        if length == lengths[axis] && stride == 1 {
            return Ok(x);
        }
        let mut starts = vec![SliceStart::Static(0); lengths.len()];
        let mut strides = vec![1; lengths.len()];
        (starts[axis], lengths[axis], strides[axis]) = (start.into(), length, stride);
        self.slice(x, &starts, &lengths, Some(&strides)).map_err(of_op("slice_along_axis"))
    }

    /// `x` with `update` written over the elements from `starts` on. Dtypes promote, names merge.
    ///
    /// # Errors
    /// An update of another rank or larger than `x`; starts as for [`Graph::slice`].
    pub fn put_slice(
        &mut self,
        x: ExprId,
        starts: &[SliceStart],
        update: ExprId,
    ) -> Result<ExprId> {
        let (starts, dynamic) = self.starts(starts);
        let operands: Vec<ExprId> = [x, update].into_iter().chain(dynamic).collect();
        self.make(Op::PutSlice(starts), &operands)
    }

    /// `x` with `update` in the place of as many elements along one axis, from `start` on.
    ///
    /// # Errors
    /// As for [`Graph::put_slice`]; an axis out of range.
    pub fn put_slice_along_axis(
        &mut self,
        x: ExprId,
        start: impl Into<SliceStart>,
        update: ExprId,
        axis: i64,
    ) -> Result<ExprId> {
        let axis = self.axis("put_slice", x, axis)?;
        let mut starts = vec![SliceStart::Static(0); self.shape(x).rank()];
        starts[axis] = start.into();
        self.put_slice(x, &starts, update)
    }

    /// Elements at indices: the last axis of `indices` holds one coordinate for each of `axes`
    /// (the first axes of `x` for `None`). The result has the other axes of `indices`, then the
    /// axes of `x` that are not indexed, and no names.
    ///
    /// # Errors
    /// Axes that are not increasing or not as many as coordinates; indices that are no integers.
    pub fn gather(&mut self, x: ExprId, indices: ExprId, axes: Option<&[i64]>) -> Result<ExprId> {
        let axes = self.indexed_axes("gather", x, indices, axes)?;
        self.make(Op::Gather(axes), &[x, indices])
    }

    /// The axes of `x` that the coordinates in the last axis of `indices` refer to.
    pub(super) fn indexed_axes(
        &self,
        op: &str,
        x: ExprId,
        indices: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<Axes> {
        if let Some(axes) = axes {
            return Ok(self.axes(op, x, axes)?.into());
        }
        let rank = self.shape(x).rank();
        match self.shape(indices).last() {
            Some(&coordinates) if coordinates <= rank => Ok((0..coordinates).collect()),
            _ => Err(self.error(
                op,
                ErrorKind::Shape {
                    argument: "indices",
                    found: self.tensor_type(indices).to_string(),
                    expected: format!("a last axis of at most {rank} coordinates"),
                },
            )),
        }
    }

    /// `x` with `updates` added at indices, laid out as for [`Graph::gather`]: `updates` has the
    /// shape that gathering would give, except that it may cover less of an axis that is not
    /// indexed. What meets at one index adds up. The dtypes promote.
    ///
    /// # Errors
    /// As for [`Graph::gather`]; updates of another shape.
    pub fn indexed_add(
        &mut self,
        x: ExprId,
        indices: ExprId,
        updates: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        let axes = self.indexed_axes("indexed_add", x, indices, axes)?;
        let (indices, updates) = self.as_batch(indices, updates)?;
        self.make(Op::IndexedAdd(axes), &[x, indices, updates])
    }

    /// `x` with `updates` written over the elements at indices, as for [`Graph::indexed_add`];
    /// which of several updates of one element wins is not defined.
    ///
    /// # Errors
    /// As for [`Graph::indexed_add`].
    pub fn indexed_put(
        &mut self,
        x: ExprId,
        indices: ExprId,
        updates: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        let axes = self.indexed_axes("indexed_put", x, indices, axes)?;
        let (indices, updates) = self.as_batch(indices, updates)?;
        self.make(Op::IndexedPut(axes), &[x, indices, updates])
    }

    /// A lone index and its update as a batch of one.
    fn as_batch(&mut self, indices: ExprId, updates: ExprId) -> Result<(ExprId, ExprId)> {
        if self.shape(indices).rank() != 1 {
            return Ok((indices, updates));
        }
        Ok((self.new_axis(indices, 0, None)?, self.new_axis(updates, 0, None)?))
    }

    /// The elements of one axis at `indices`, whose axes take its place. Their names do too; a
    /// vector of indices merges its name with that of the axis. A block, whose default gathers.
    ///
    /// # Errors
    /// An axis out of range; indices that are no integers.
    pub fn take(&mut self, x: ExprId, indices: ExprId, axis: i64) -> Result<ExprId> {
        let at = self.axis("take", x, axis)?;
        self.composite("take", &[("axis", &at)], [x, indices], |graph, [x, indices]| {
            graph.gathered(x, indices, at)
        })
    }

    /// The body of [`Graph::take`].
    pub(super) fn gathered(&mut self, x: ExprId, indices: ExprId, at: usize) -> Result<ExprId> {
        let names = self.taken_names(x, indices, at)?;
        let count = self.shape(indices).rank();
        let columns = self.new_axis(indices, -1, None)?;
        let taken = self.make(Op::Gather([at].into()), &[x, columns]).map_err(of_op("take"))?;
        // Gathering puts the axes of the indices first; they belong where the axis was.
        let others = count..self.shape(taken).rank();
        let order: Axes = others.clone().take(at).chain(0..count).chain(others.skip(at)).collect();
        let placed = self.make(Op::Transpose(order), &[taken])?;
        self.rename(placed, names)
    }

    fn taken_names(&self, x: ExprId, indices: ExprId, axis: usize) -> Result<Option<Names>> {
        let (x, indices) = (self.tensor_type(x), self.tensor_type(indices));
        if x.names.is_none() && indices.names.is_none() {
            return Ok(None);
        }
        let unnamed = |ty: &crate::TensorType| {
            ty.names.clone().unwrap_or_else(|| Names::unnamed(ty.rank())).to_vec()
        };
        let (names, mut inserted) = (unnamed(x), unnamed(indices));
        if let [name] = &inserted[..] {
            let of_axis = Names::new([names[axis].clone()]);
            let merged = of_axis.merge(&Names::new([name.clone()]));
            let merged =
                merged.map_err(|error| self.error("take", ErrorKind::Names(error.to_string())))?;
            inserted = merged.to_vec();
        }
        let (before, after) = (&names[..axis], &names[axis + 1..]);
        Ok(Some(before.iter().cloned().chain(inserted).chain(after.iter().cloned()).collect()))
    }

    /// At each position of `indices`, the element of `x` at the same position but for one axis,
    /// where the index says. The result has the shape of `indices` and the names of `x`. A block,
    /// whose default gathers.
    ///
    /// # Errors
    /// An axis out of range; indices that are no integers, or whose shape differs from that of
    /// `x` on another axis.
    pub fn take_along_axis(&mut self, x: ExprId, indices: ExprId, axis: i64) -> Result<ExprId> {
        let op = "take_along_axis";
        let axis = self.axis(op, x, axis)?;
        let (ty, index_ty) = (self.tensor_type(x), self.tensor_type(indices));
        let fits = ty.rank() == index_ty.rank()
            && (0..ty.rank()).all(|at| at == axis || ty.shape[at] == index_ty.shape[at]);
        if !fits {
            let (found, ty) = (index_ty.to_string(), ty.to_string());
            let expected = format!("the shape of {ty} but for axis {axis}");
            return Err(self.error(op, ErrorKind::Shape { argument: "indices", found, expected }));
        }
        self.composite(op, &[("axis", &axis)], [x, indices], |graph, [x, indices]| {
            let names = graph.tensor_type(x).names.clone();
            let coordinates = graph.coordinates_along(indices, axis).map_err(of_op(op))?;
            let taken = graph.gather(x, coordinates, None).map_err(of_op(op))?;
            graph.rename(taken, names)
        })
    }

    /// Coordinates, in a new last axis, that say where each element of `indices` is, but for one
    /// axis, where the element itself says it.
    pub(super) fn coordinates_along(&mut self, indices: ExprId, axis: usize) -> Result<ExprId> {
        let indices = self.rename(indices, None)?;
        let shape = self.shape(indices).clone();
        if shape.rank() == 1 {
            return self.new_axis(indices, -1, None);
        }
        let mut columns = Vec::with_capacity(shape.rank());
        for (counted, position) in (0..).zip(0..shape.rank()) {
            columns.push(match position == axis {
                true => indices,
                false => self.iota(shape.clone(), Some(counted), counting_dtype(&shape))?,
            });
        }
        self.stack(&columns, -1, None)
    }

    /// Differences of neighbours along an axis, `order` times over; the axis gets shorter by
    /// `order`, down to 0.
    ///
    /// # Errors
    /// An axis out of range.
    pub fn diff(&mut self, x: ExprId, order: usize, axis: i64) -> Result<ExprId> {
        let at = self.axis("diff", x, axis)?;
        let mut result = x;
        for _ in 0..order.min(self.shape(x)[at]) {
            let length = self.shape(result)[at] - 1;
            let high = self.slice_along_axis(result, 1, length, axis, 1)?;
            let low = self.slice_along_axis(result, 0, length, axis, 1)?;
            result = self.subtract(high, low)?;
        }
        Ok(result)
    }

    /// The elements in increasing order along an axis, or in decreasing order. NaN counts as
    /// largest. Equal elements keep their order; `stable` says that the caller relies on it.
    ///
    /// # Errors
    /// An axis out of range; complex numbers.
    pub fn sort(&mut self, x: ExprId, axis: i64, descending: bool, stable: bool) -> Result<ExprId> {
        let axis = self.axis("sort", x, axis)?;
        self.make(Op::Sort(Sort { axis, descending, stable }), &[x])
    }

    /// The indices that [`Graph::sort`] an axis. A `dtype` that is no integer is converted to from
    /// `s32`.
    ///
    /// # Errors
    /// As for [`Graph::sort`].
    pub fn argsort(
        &mut self,
        x: ExprId,
        axis: i64,
        descending: bool,
        stable: bool,
        dtype: DType,
    ) -> Result<ExprId> {
        let axis = self.axis("argsort", x, axis)?;
        let order = Op::Argsort(Sort { axis, descending, stable }, index_dtype(dtype));
        let order = self.make(order, &[x])?;
        self.as_type(order, dtype)
    }

    /// The `k` largest elements of the last axis, largest first, and their indices as `s32`. A
    /// block, whose default sorts.
    ///
    /// # Errors
    /// A scalar; `k` of 0 or more than there are elements; complex numbers.
    pub fn top_k(&mut self, x: ExprId, k: usize) -> Result<(ExprId, ExprId)> {
        let Some(&size) = self.shape(x).last() else {
            return Err(self.invalid("top_k", "operand", "must have at least one axis"));
        };
        if k == 0 || k > size {
            let why = format!(
                "{k} is not from 1 to {size}, the size of the last axis of {}",
                self.tensor_type(x)
            );
            return Err(self.invalid("top_k", "k", why));
        }
        let results = self.known_block(BlockKind::TopK { k }, &[x], |graph, parameters| {
            let x = parameters[0];
            let order = graph.argsort(x, -1, true, false, DType::S32).map_err(of_op("top_k"))?;
            let indices = graph.slice_along_axis(order, 0, k, -1, 1)?;
            Ok::<_, crate::Error>(vec![graph.take_along_axis(x, indices, -1)?, indices])
        })?;
        Ok((results[0], results[1]))
    }
}

/// The dtype that can count along axes of these sizes.
pub(super) fn counting_dtype(sizes: &[usize]) -> DType {
    let fits = sizes.iter().all(|&size| i32::try_from(size).is_ok());
    if fits { DType::S32 } else { DType::S64 }
}
