//! Gathers in general form, as compositions of slices and gathers of single elements.

use nxla_expr::build::SliceStart;
use nxla_expr::{BinaryOp, ExprId, TensorType};
use nxla_tensor::{DType, Scalar, Shape};

use super::operand::axes;
use super::{Builder, Fail, malformed};
use crate::numbers::to_i64;
use crate::stablehlo::syntax::Operation;

/// The axes of a gather or a scatter, in the terms of the specification of gathers.
pub(super) struct Dimensions {
    /// The axes of the windows in the result or in the updates.
    pub(super) offset: Vec<usize>,
    /// The axes of the operand that windows do not have.
    pub(super) collapsed: Vec<usize>,
    /// The batch axes of the operand and of the indices.
    pub(super) operand_batch: Vec<usize>,
    pub(super) index_batch: Vec<usize>,
    /// The axis of the operand that each coordinate is for.
    pub(super) coordinates: Vec<usize>,
    /// The axis of the indices with the coordinates.
    pub(super) vector: usize,
}

/// The coordinates of windows, separated by axis.
pub(super) struct Starts {
    /// The indexed axes of the operand in increasing order.
    pub(super) axes: Vec<usize>,
    /// The start along each of them, with the batch shape.
    pub(super) values: Vec<ExprId>,
    /// The tensor with all starts in its last axis, if the file has them in the order of the axes.
    pub(super) joined: Option<ExprId>,
    /// The batch shape.
    pub(super) batch: Shape,
}

impl Dimensions {
    pub(super) fn of_gather(operation: &Operation) -> Result<Self, Fail> {
        let names = ["dimension_numbers"];
        let read = |key| operation.entry_sizes(&names, key);
        Ok(Self {
            offset: read("offset_dims")?,
            collapsed: read("collapsed_slice_dims")?,
            operand_batch: read("operand_batching_dims")?,
            index_batch: read("start_indices_batching_dims")?,
            coordinates: read("start_index_map")?,
            vector: read("index_vector_dim")?.first().copied().unwrap_or(0),
        })
    }

    pub(super) fn of_scatter(operation: &Operation) -> Result<Self, Fail> {
        let names = ["scatter_dimension_numbers"];
        let read = |key| operation.entry_sizes(&names, key);
        Ok(Self {
            offset: read("update_window_dims")?,
            collapsed: read("inserted_window_dims")?,
            operand_batch: read("input_batching_dims")?,
            index_batch: read("scatter_indices_batching_dims")?,
            coordinates: read("scatter_dims_to_operand_dims")?,
            vector: read("index_vector_dim")?.first().copied().unwrap_or(0),
        })
    }

    /// Compares the axes with the ranks of the tensors.
    pub(super) fn check(&self, rank: usize, index_rank: usize, offsets: usize) -> Result<(), Fail> {
        let in_operand = [&self.collapsed, &self.operand_batch, &self.coordinates];
        let fits = in_operand.into_iter().flatten().all(|&axis| axis < rank)
            && self.index_batch.iter().all(|&axis| axis < index_rank && axis != self.vector)
            && self.index_batch.len() == self.operand_batch.len()
            && self.vector <= index_rank
            && self.offset.len() == offsets
            && self.collapsed.iter().all(|axis| !self.operand_batch.contains(axis))
            && distinct(&self.coordinates)
            && distinct(&self.collapsed)
            && distinct(&self.operand_batch)
            && distinct(&self.offset);
        if fits { Ok(()) } else { malformed("the dimension numbers do not fit the operands") }
    }

    /// Returns the axes of the operand that windows have, in order.
    pub(super) fn window_axes(&self, rank: usize) -> Vec<usize> {
        (0..rank)
            .filter(|axis| !self.collapsed.contains(axis) && !self.operand_batch.contains(axis))
            .collect()
    }
}

pub(super) fn distinct(axes: &[usize]) -> bool {
    axes.iter().enumerate().all(|(at, axis)| !axes[..at].contains(axis))
}

impl Builder<'_> {
    /// Separates the coordinates of indices by axis. Batch axes count as coordinates.
    pub(super) fn starts(&mut self, dims: &Dimensions, indices: ExprId) -> Result<Starts, Fail> {
        let rank = self.graph.shape(indices).rank();
        let indices = if dims.vector == rank { self.column(indices)? } else { indices };
        let last = to_i64(dims.vector);
        let indices = self.graph.move_axes(indices, &[last], &[-1])?;
        let shape = self.graph.shape(indices).clone();
        let (&count, batch) = match shape.split_last() {
            Some(parts) => parts,
            None => return malformed("indices must have an axis"),
        };
        if count != dims.coordinates.len() {
            return malformed("the indices must have one coordinate per indexed axis");
        }
        let batch = Shape::from(batch);
        let wide = if self.graph.dtype(indices).bits() > 32 { DType::S64 } else { DType::S32 };
        // Unsigned indices above the signed range are out of range for every axis, and must remain
        // so.
        let indices = if self.graph.dtype(indices).is_unsigned() {
            let dtype = self.graph.dtype(indices);
            let limit = self.graph.scalar_constant(wide.max_value(), dtype)?;
            if dtype.bits() >= 32 { self.graph.min(indices, limit)? } else { indices }
        } else {
            indices
        };
        let indices = self.graph.as_type(indices, wide)?;
        let mut found: Vec<(usize, ExprId)> = Vec::new();
        for (position, &axis) in dims.coordinates.iter().enumerate() {
            let start = SliceStart::at(position);
            let one = self.graph.slice_along_axis(indices, start, 1, -1, 1)?;
            found.push((axis, self.graph.reshape(one, batch.clone())?));
        }
        for (&axis, &along) in dims.operand_batch.iter().zip(&dims.index_batch) {
            let along = along - usize::from(along > dims.vector);
            let along = to_i64(along);
            let ty = TensorType::new(wide, batch.clone());
            found.push((axis, self.graph.iota_of(ty, Some(along))?));
        }
        let is_joined = dims.operand_batch.is_empty() && dims.coordinates.is_sorted();
        found.sort_by_key(|(axis, _)| *axis);
        let (axes, values) = found.into_iter().unzip();
        Ok(Starts { axes, values, joined: is_joined.then_some(indices), batch })
    }

    /// Limits starts so that windows of these sizes lie inside of the operand.
    fn clamp_start(&mut self, start: ExprId, size: usize, window: usize) -> Result<ExprId, Fail> {
        let dtype = self.graph.dtype(start);
        let last = Scalar::Int(to_i64(size - window));
        let zero = self.graph.scalar_constant(Scalar::zero(dtype), dtype)?;
        let last = self.graph.scalar_constant(last, dtype)?;
        Ok(self.graph.clip(start, zero, last)?)
    }

    pub(super) fn gather(
        &mut self,
        operation: &Operation,
        x: ExprId,
        indices: ExprId,
    ) -> Result<ExprId, Fail> {
        let dims = Dimensions::of_gather(operation)?;
        let shape = self.graph.shape(x).clone();
        let windows = self.per_axis(x, &operation.integers(&["slice_sizes"])?)?;
        let window_axes = dims.window_axes(shape.rank());
        let index_rank = self.graph.shape(indices).rank();
        dims.check(shape.rank(), index_rank, window_axes.len())?;
        let fits = windows.iter().zip(&shape).all(|(window, size)| window <= size)
            && dims.collapsed.iter().chain(&dims.operand_batch).all(|&axis| windows[axis] == 1);
        if !fits {
            return malformed("slice_sizes must fit the operand, with 1 for collapsed axes");
        }
        let starts = self.starts(&dims, indices)?;
        self.gather_windows(x, &dims, &starts, &windows, &window_axes)
    }

    /// Gathers windows at clamped starts, and arranges the axes as the format demands.
    fn gather_windows(
        &mut self,
        x: ExprId,
        dims: &Dimensions,
        starts: &Starts,
        windows: &[usize],
        window_axes: &[usize],
    ) -> Result<ExprId, Fail> {
        let shape = self.graph.shape(x).clone();
        let batch_rank = starts.batch.rank();
        // An axis that windows cover completely needs no index.
        let (mut kept, mut clamped) = (Vec::new(), Vec::new());
        for (&axis, &start) in starts.axes.iter().zip(&starts.values) {
            let is_batch = dims.operand_batch.contains(&axis);
            if windows[axis] == shape[axis] && !is_batch && shape[axis] != 1 {
                continue;
            }
            kept.push(axis);
            // The gather clamps the start of a single element.
            let is_wide = windows[axis] > 1;
            clamped.push(if is_wide {
                self.clamp_start(start, shape[axis], windows[axis])?
            } else {
                start
            });
        }
        // Other axes are cut to the window, which starts at 0.
        let lengths: Vec<usize> = (0..shape.rank())
            .map(|axis| if kept.contains(&axis) { shape[axis] } else { windows[axis] })
            .collect();
        let x = if lengths[..] == shape[..] {
            x
        } else {
            self.graph.slice(x, &vec![SliceStart::at(0); shape.rank()], &lengths, None)?
        };
        let wide: Vec<usize> = kept.iter().copied().filter(|&axis| windows[axis] > 1).collect();
        let inner: Vec<usize> = wide.iter().map(|&axis| windows[axis]).collect();
        let gathered = if kept.is_empty() {
            let batch_shape: Vec<usize> = starts.batch.iter().chain(&lengths).copied().collect();
            self.graph.broadcast(x, batch_shape, None)?
        } else {
            let coordinates = match starts.joined {
                Some(joined) if wide.is_empty() && kept == starts.axes => joined,
                _ => self.coordinates(&kept, &clamped, &wide, &starts.batch, &inner)?,
            };
            self.graph.gather(x, coordinates, Some(&axes(&kept)))?
        };
        // The gathered axes: batch, wide windows, axes without an index. Windows of size 1 at an index
        // get their axis back here.
        let free = (0..shape.rank()).filter(|axis| !kept.contains(axis));
        let order: Vec<usize> = wide.iter().copied().chain(free).collect();
        let sizes = window_axes.iter().map(|&axis| windows[axis]);
        let present: Vec<usize> =
            window_axes.iter().copied().filter(|axis| order.contains(axis)).collect();
        // Collapsed axes without an index have one element, and the last reshape removes them.
        let collapsed = order.iter().copied().filter(|axis| !present.contains(axis));
        let mut permutation: Vec<usize> = (0..batch_rank).collect();
        for axis in present.iter().copied().chain(collapsed) {
            let place = order.iter().position(|&at| at == axis).unwrap_or(0);
            permutation.push(batch_rank + place);
        }
        let arranged = self.graph.transpose(gathered, Some(&axes(&permutation)))?;
        let full: Vec<usize> = starts.batch.iter().copied().chain(sizes).collect();
        let arranged = self.graph.reshape(arranged, full)?;
        self.place_offsets(arranged, &dims.offset, batch_rank)
    }

    /// Joins starts to coordinates of single elements: the batch axes, one axis per wide window, and the
    /// axis of coordinates.
    pub(super) fn coordinates(
        &mut self,
        kept: &[usize],
        starts: &[ExprId],
        wide: &[usize],
        batch: &Shape,
        inner: &[usize],
    ) -> Result<ExprId, Fail> {
        let full: Vec<usize> = batch.iter().chain(inner).copied().collect();
        let leading: Vec<usize> = (0..batch.rank()).collect();
        let mut parts = Vec::new();
        for (axis, &start) in kept.iter().zip(starts) {
            let mut value = self.graph.broadcast(start, full.clone(), Some(&axes(&leading)))?;
            if let Some(place) = wide.iter().position(|at| at == axis) {
                let ty = TensorType::new(self.graph.dtype(start), full.clone());
                let along = to_i64(batch.rank() + place);
                let offsets = self.graph.iota_of(ty, Some(along))?;
                value = self.binary(BinaryOp::Add, value, offsets)?;
            }
            parts.push(value);
        }
        match parts[..] {
            [only] => self.column(only),
            _ => Ok(self.graph.stack(&parts, -1, None)?),
        }
    }

    /// Adds a last axis of size 1.
    pub(super) fn column(&mut self, x: ExprId) -> Result<ExprId, Fail> {
        let mut shape = self.graph.shape(x).to_vec();
        shape.push(1);
        Ok(self.graph.reshape(x, shape)?)
    }

    /// Moves the window axes, which follow the batch axes, to their positions in the result.
    fn place_offsets(
        &mut self,
        x: ExprId,
        offset: &[usize],
        batch_rank: usize,
    ) -> Result<ExprId, Fail> {
        let rank = self.graph.shape(x).rank();
        if offset.iter().any(|&axis| axis >= rank) {
            return malformed("an offset axis is out of range");
        }
        let mut batch = 0..batch_rank;
        let permutation: Option<Vec<usize>> = (0..rank)
            .map(|axis| match offset.iter().position(|&at| at == axis) {
                Some(window) => Some(batch_rank + window),
                None => batch.next(),
            })
            .collect();
        let Some(permutation) = permutation else {
            return malformed("the offset axes do not fit the result");
        };
        Ok(self.graph.transpose(x, Some(&axes(&permutation)))?)
    }
}
