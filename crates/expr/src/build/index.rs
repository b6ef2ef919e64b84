//! Slices, gathers, scatters and sorts.
//!
//! An out-of-range index at run time is not an error: slices and gathers clamp it, and scatters
//! ignore its update.

use nxla_tensor::{DType, Names, Scalar};

use super::reduce::index_dtype;
use crate::graph::{
    Axes, BlockKind, ErrorKind, ExprId, Graph, Op, Result, SliceAttributes, SortAttributes, Start,
};

/// The start of a slice along one axis; clamped so that the slice fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceStart {
    /// A constant index.
    Static(i64),
    /// The value of a scalar integer tensor.
    Dynamic(ExprId),
}

impl From<i64> for SliceStart {
    fn from(start: i64) -> Self {
        SliceStart::Static(start)
    }
}

impl SliceStart {
    /// Creates a start at a nonnegative position. Positions beyond `i64::MAX` are equivalent to
    /// smaller positions beyond the end, so they are clamped.
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
    /// Returns the elements in a range of each axis. A range begins at the entry of `starts` and
    /// spans `lengths` elements; the result contains every `strides`-th element of the range, or
    /// all elements if `strides` is `None`.
    ///
    /// # Errors
    /// Returns an error for lists without one entry per axis, a length beyond the axis, a stride of
    /// 0, or a dynamic start that is not a scalar integer.
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
        let slice = SliceAttributes { starts, lengths: lengths.into(), strides };
        let operands: Vec<ExprId> = std::iter::once(x).chain(dynamic).collect();
        self.make(Op::Slice(Box::new(slice)), &operands)
    }

    /// Splits starts into attributes and operands. A constant start becomes an attribute.
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

    /// Slices one axis as [`Graph::slice`] does, and keeps the other axes.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, and the errors of [`Graph::slice`].
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
        self.slice(x, &starts, &lengths, Some(&strides))
    }

    /// Writes `update` over the elements of `x` from `starts` on. Dtypes are promoted, names are
    /// merged.
    ///
    /// # Errors
    /// Returns an error for an update of another rank or larger than `x` or starts as for
    /// [`Graph::slice`].
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

    /// Writes `update` over elements along one axis of `x`, from `start` on.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::put_slice`], and an error for an axis out of range.
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

    /// Reads elements at indices: the last axis of `indices` holds a coordinate for each of `axes`
    /// (the leading axes of `x` for `None`). The result has the other axes of `indices`, then the
    /// axes of `x` that are not indexed, and no names.
    ///
    /// # Errors
    /// Returns an error for axes that are not increasing or not as many as coordinates or indices
    /// that are not integers.
    pub fn gather(&mut self, x: ExprId, indices: ExprId, axes: Option<&[i64]>) -> Result<ExprId> {
        let axes = self.indexed_axes(x, indices, axes)?;
        self.make(Op::Gather(axes), &[x, indices])
    }

    /// Returns the axes of `x` to which the coordinates in the last axis of `indices` refer.
    pub(super) fn indexed_axes(
        &self,
        x: ExprId,
        indices: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<Axes> {
        if let Some(axes) = axes {
            return Ok(self.axes("gather", x, axes)?.into());
        }
        let rank = self.shape(x).rank();
        match self.shape(indices).last() {
            Some(&coordinates) if coordinates <= rank => Ok((0..coordinates).collect()),
            _ => Err(self.error(
                "gather",
                ErrorKind::Shape {
                    argument: "indices",
                    found: self.tensor_type(indices).to_string(),
                    expected: format!("a last axis of at most {rank} coordinates"),
                },
            )),
        }
    }

    /// Adds `updates` to `x` at indices with the layout of [`Graph::gather`]. `updates` has the
    /// shape of the gathered elements, but may be shorter along an axis that is not indexed.
    /// Updates at equal indices add up. The dtypes are promoted.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::gather`], and an error for updates of another shape.
    pub fn indexed_add(
        &mut self,
        x: ExprId,
        indices: ExprId,
        updates: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        self.scatter_op(Op::IndexedAdd, [x, indices, updates], axes)
    }

    /// Writes `updates` over the elements of `x` at indices, as [`Graph::indexed_add`] does. The last
    /// of several updates of one element stays.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::indexed_add`].
    pub fn indexed_put(
        &mut self,
        x: ExprId,
        indices: ExprId,
        updates: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        self.scatter_op(Op::IndexedPut, [x, indices, updates], axes)
    }

    /// Creates a scatter. A single index and its update become a batch of one.
    fn scatter_op(
        &mut self,
        op: fn(Axes) -> Op,
        [x, mut indices, mut updates]: [ExprId; 3],
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        let axes = self.indexed_axes(x, indices, axes)?;
        if self.shape(indices).rank() == 1 {
            indices = self.new_axis(indices, 0, None)?;
            updates = self.new_axis(updates, 0, None)?;
        }
        self.make(op(axes), &[x, indices, updates])
    }

    /// Reads the elements of one axis at `indices`. The axes of `indices` and their names replace
    /// the axis. If `indices` is a vector, its name is merged with the name of the axis. This is a
    /// block whose default gathers.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or indices that are not integers.
    pub fn take(&mut self, x: ExprId, indices: ExprId, axis: i64) -> Result<ExprId> {
        let at = self.axis("take", x, axis)?;
        self.composite("take", &[("axis", &at)], [x, indices], |graph, [x, indices]| {
            graph.gather_along(x, indices, at)
        })
    }

    /// The body of [`Graph::take`].
    pub(super) fn gather_along(&mut self, x: ExprId, indices: ExprId, at: usize) -> Result<ExprId> {
        let names = self.taken_names(x, indices, at)?;
        let count = self.shape(indices).rank();
        let columns = self.new_axis(indices, -1, None)?;
        let taken = self.make(Op::Gather([at].into()), &[x, columns])?;
        // Gathering moves the axes of the indices to the front; the result restores their position.
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
        let (names, mut inserted) = (x.axis_names(), indices.axis_names());
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

    /// Reads for each position of `indices` the element of `x` at the same position, except along
    /// one axis, where the index is used. The result has the shape of `indices` and the names of
    /// `x`. This is a block whose default gathers.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, for indices that are not integers, or for indices
    /// whose shape differs from the shape of `x` on another axis.
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
            let coordinates = graph.coordinates_along(indices, axis)?;
            let taken = graph.gather(x, coordinates, None)?;
            graph.rename(taken, names)
        })
    }

    /// Returns indices as signed 64-bit numbers. Numbers that these do not represent become the
    /// largest, instead of a negative number.
    pub(crate) fn signed_indices(&mut self, indices: ExprId) -> Result<ExprId> {
        let dtype = self.dtype(indices);
        if dtype != DType::U64 {
            return self.as_type(indices, DType::S64);
        }
        let most = self.scalar_constant(Scalar::Int(i64::MAX), dtype)?;
        let indices = self.min(indices, most)?;
        self.as_type(indices, DType::S64)
    }

    /// Returns the coordinates, in a new last axis, of each element of `indices`. Along one axis,
    /// the coordinate is the element itself.
    pub(super) fn coordinates_along(&mut self, indices: ExprId, axis: usize) -> Result<ExprId> {
        let indices = self.rename(indices, None)?;
        let shape = self.shape(indices).clone();
        if shape.rank() == 1 {
            return self.new_axis(indices, -1, None);
        }
        let own = match self.dtype(indices) {
            DType::U64 => self.signed_indices(indices)?,
            _ => indices,
        };
        let mut columns = Vec::with_capacity(shape.rank());
        for (counted, position) in (0..).zip(0..shape.rank()) {
            columns.push(if position == axis {
                own
            } else {
                self.iota(shape.clone(), Some(counted), counting_dtype(&shape))?
            });
        }
        self.stack(&columns, -1, None)
    }

    /// Computes differences of neighbors along an axis, `order` times; the size of the axis
    /// decreases by `order`, down to 0.
    ///
    /// # Errors
    /// Returns an error for an axis out of range.
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

    /// Sorts an axis in increasing or decreasing order. NaN is the largest value. Equal elements
    /// keep their order; `stable` states that the caller relies on it.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or complex numbers.
    pub fn sort(&mut self, x: ExprId, axis: i64, descending: bool, stable: bool) -> Result<ExprId> {
        let axis = self.axis("sort", x, axis)?;
        self.make(Op::Sort(SortAttributes { axis, descending, stable }), &[x])
    }

    /// Returns the indices that [`Graph::sort`] an axis. For a `dtype` that is not an integer, they
    /// are converted from `s32`.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::sort`].
    pub fn argsort(
        &mut self,
        x: ExprId,
        axis: i64,
        descending: bool,
        stable: bool,
        dtype: DType,
    ) -> Result<ExprId> {
        let axis = self.axis("argsort", x, axis)?;
        let order = Op::Argsort(SortAttributes { axis, descending, stable }, index_dtype(dtype));
        let order = self.make(order, &[x])?;
        self.as_type(order, dtype)
    }

    /// Returns the `k` largest elements of the last axis, largest first, and their indices as
    /// `s32`. This is a block whose default sorts.
    ///
    /// # Errors
    /// Returns an error for a scalar, `k` of 0 or more than there are elements, or complex numbers.
    pub fn top_k(&mut self, x: ExprId, k: usize) -> Result<(ExprId, ExprId)> {
        let Some(&size) = self.shape(x).last() else {
            return Err(self.invalid(
                "top_k",
                "operand",
                "must have at least one axis; got a scalar",
            ));
        };
        if size == 0 {
            let why = format!("last axis must not be empty; got {}", self.tensor_type(x));
            return Err(self.invalid("top_k", "operand", why));
        }
        if k == 0 || k > size {
            let why = format!(
                "must be from 1 to {size}, the size of the last axis of {}; got {k}",
                self.tensor_type(x)
            );
            return Err(self.invalid("top_k", "k", why));
        }
        let results = self.known_block(BlockKind::TopK { k }, &[x], |graph, parameters| {
            let x = parameters[0];
            let order = graph.argsort(x, -1, true, false, DType::S32)?;
            let indices = graph.slice_along_axis(order, 0, k, -1, 1)?;
            Ok(vec![graph.take_along_axis(x, indices, -1)?, indices])
        })?;
        Ok((results[0], results[1]))
    }
}

/// Returns the dtype that can count along axes of these sizes.
pub(crate) fn counting_dtype(sizes: &[usize]) -> DType {
    let fits = sizes.iter().all(|&size| i32::try_from(size).is_ok());
    if fits { DType::S32 } else { DType::S64 }
}
