//! Scatters in general form, as compositions of scatters of single elements.

use nxla_expr::{BinaryOp, ExprId, TensorType};
use nxla_tensor::{DType, Scalar, Shape};

use super::gather::{Dimensions, Starts};
use super::operand::{as_array, axes};
use super::reduce::RegionFunction;
use super::{Builder, Fail, Values, malformed, unsupported};
use crate::numbers::to_i64;
use crate::stablehlo::syntax::{Operation, Region};

impl Builder<'_> {
    pub(super) fn scatter(
        &mut self,
        operation: &Operation,
        x: &[ExprId],
        values: &mut Values,
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        if x.len() != 3 {
            return unsupported("a scatter of several operands is not supported");
        }
        let [x, indices, updates] = as_array(x)?;
        let [x, updates] = as_array(&self.accumulators(operation, &[x, updates])?)?;
        let region = operation.region(0)?;
        let dims = Dimensions::of_scatter(operation)?;
        let rank = self.graph.shape(x).rank();
        let window_axes = dims.window_axes(rank);
        dims.check(rank, self.graph.shape(indices).rank(), window_axes.len())?;
        let update_rank = self.graph.shape(updates).rank();
        if dims.offset.iter().any(|&axis| axis >= update_rank) {
            return malformed("an axis of the updates is out of range");
        }
        if self.graph.shape(updates).size() == 0 {
            return Ok(Some(vec![x]));
        }
        let starts = self.starts(&dims, indices)?;
        // The axes of the updates become: batch, then windows.
        let batch_axes = (0..update_rank).filter(|axis| !dims.offset.contains(axis));
        let order: Vec<usize> = batch_axes.chain(dims.offset.iter().copied()).collect();
        let updates = self.graph.transpose(updates, Some(&axes(&order)))?;
        let windows = self.window_sizes(updates, &starts.batch, &window_axes, rank)?;
        let shape = self.graph.shape(x).clone();
        if windows.iter().zip(&shape).any(|(window, size)| window > size) {
            return malformed("a window of the updates must fit the operand");
        }
        let (kept, coordinates) = self.scatter_coordinates(&shape, &starts, &windows)?;
        let updates = self.windows_last(updates, &starts.batch, &window_axes, &windows, &kept)?;
        // An operand without axes is scattered into as a vector of one element.
        let x = if rank == 0 { self.graph.reshape(x, [1])? } else { x };
        let indexed = axes(&kept);
        let result = match RegionFunction::recognize(region) {
            Some(RegionFunction::Second) => {
                self.graph.indexed_put(x, coordinates, updates, Some(&indexed))?
            }
            Some(RegionFunction::Op(BinaryOp::Add)) if !self.graph.dtype(x).is_pred() => {
                self.graph.indexed_add(x, coordinates, updates, Some(&indexed))?
            }
            _ => match self.scatter_loop(x, coordinates, updates, &kept, (region, values))? {
                Some(result) => result,
                None => return Ok(None),
            },
        };
        Ok(Some(vec![self.graph.reshape(result, shape)?]))
    }

    /// Returns the size of the windows along each axis of the operand; 1 for axes without windows.
    fn window_sizes(
        &self,
        updates: ExprId,
        batch: &Shape,
        window_axes: &[usize],
        rank: usize,
    ) -> Result<Vec<usize>, Fail> {
        let shape = self.graph.shape(updates);
        if shape.rank() != batch.rank() + window_axes.len() || shape[..batch.rank()] != batch[..] {
            return malformed("the updates must have the batch shape of the indices");
        }
        let mut windows = vec![1; rank];
        for (position, &axis) in window_axes.iter().enumerate() {
            windows[axis] = shape[batch.rank() + position];
        }
        Ok(windows)
    }

    /// Returns the indexed axes, and the coordinates of each updated element along them: the batch axes,
    /// an axis for each window over several elements of an indexed axis, and the axis of coordinates.
    /// A window that is not inside of the operand gets coordinates outside.
    fn scatter_coordinates(
        &mut self,
        shape: &Shape,
        starts: &Starts,
        windows: &[usize],
    ) -> Result<(Vec<usize>, ExprId), Fail> {
        let (mut kept, mut values) = (starts.axes.clone(), starts.values.clone());
        // Axes whose windows are shorter than the operand need coordinates too.
        for (axis, (&window, &size)) in windows.iter().zip(shape).enumerate() {
            if window < size && !kept.contains(&axis) {
                let ty = TensorType::new(DType::S32, starts.batch.clone());
                let place = kept.partition_point(|&at| at < axis);
                kept.insert(place, axis);
                values.insert(place, self.graph.constant(Scalar::Int(0), ty)?);
            }
        }
        if kept.is_empty() {
            // The windows cover the operand: they start at 0 along the first axis.
            let ty = TensorType::new(DType::S32, starts.batch.clone());
            kept.push(0);
            values.push(self.graph.constant(Scalar::Int(0), ty)?);
        }
        let windows = if shape.is_empty() { &[1][..] } else { windows };
        let shape = if shape.is_empty() { &Shape::from([1]) } else { shape };
        if let Some(joined) = starts.joined
            && kept == starts.axes
            && kept.iter().all(|&axis| windows[axis] == 1)
        {
            return Ok((kept, joined));
        }
        let dtype = values.iter().map(|&id| self.graph.dtype(id)).max_by_key(|dtype| dtype.bits());
        let dtype = dtype.unwrap_or(DType::S32);
        let mut inside: Option<ExprId> = None;
        for (value, &axis) in values.iter_mut().zip(&kept) {
            *value = self.graph.as_type(*value, dtype)?;
            if windows[axis] == 1 {
                continue;
            }
            let zero = self.graph.scalar_constant(Scalar::zero(dtype), dtype)?;
            let last = to_i64(shape[axis] - windows[axis]);
            let last = self.graph.scalar_constant(Scalar::Int(last), dtype)?;
            let low = self.graph.greater_equal(*value, zero)?;
            let high = self.graph.less_equal(*value, last)?;
            let both = self.graph.logical_and(low, high)?;
            inside = Some(match inside {
                Some(inside) => self.graph.logical_and(inside, both)?,
                None => both,
            });
        }
        if let Some(inside) = inside {
            let outside = self.graph.scalar_constant(Scalar::Int(-1), dtype)?;
            let far = self.graph.scalar_constant(dtype.min_value(), dtype)?;
            for (value, &axis) in values.iter_mut().zip(&kept) {
                // The window adds offsets to the start, so a wide window starts far outside.
                let away = if windows[axis] > 1 { far } else { outside };
                *value = self.graph.select(inside, *value, away)?;
            }
        }
        let wide: Vec<usize> = kept.iter().copied().filter(|&axis| windows[axis] > 1).collect();
        let inner: Vec<usize> = wide.iter().map(|&axis| windows[axis]).collect();
        let coordinates = self.coordinates(&kept, &values, &wide, &starts.batch, &inner)?;
        Ok((kept, coordinates))
    }

    /// Arranges updates for the scatter of elements: the batch axes, the wide windows of indexed axes,
    /// the axes without an index.
    fn windows_last(
        &mut self,
        updates: ExprId,
        batch: &Shape,
        window_axes: &[usize],
        windows: &[usize],
        kept: &[usize],
    ) -> Result<ExprId, Fail> {
        let wide = window_axes.iter().filter(|axis| kept.contains(axis) && windows[**axis] > 1);
        let free = window_axes.iter().filter(|axis| !kept.contains(axis));
        let ones = window_axes.iter().filter(|axis| kept.contains(axis) && windows[**axis] <= 1);
        let order: Vec<usize> = wide.chain(free).copied().collect();
        let mut permutation: Vec<usize> = (0..batch.rank()).collect();
        let place = |axis: &usize| window_axes.iter().position(|at| at == axis).unwrap_or(0);
        permutation.extend(order.iter().chain(ones).map(|axis| batch.rank() + place(axis)));
        let updates = self.graph.transpose(updates, Some(&axes(&permutation)))?;
        let sizes: Vec<usize> =
            batch.iter().copied().chain(order.iter().map(|&axis| windows[axis])).collect();
        Ok(self.graph.reshape(updates, sizes)?)
    }

    /// Applies updates one after the other with the function of the scatter.
    fn scatter_loop(
        &mut self,
        x: ExprId,
        coordinates: ExprId,
        updates: ExprId,
        kept: &[usize],
        (region, values): (&Region, &mut Values),
    ) -> Result<Option<ExprId>, Fail> {
        let shape = self.graph.shape(coordinates).clone();
        let (&width, batch) = shape.split_last().unwrap_or((&0, &[]));
        let count = Shape::from(batch).size();
        let rest = self.graph.shape(updates)[batch.len()..].to_vec();
        let coordinates = self.graph.reshape(coordinates, [count, width])?;
        let all: Vec<usize> = std::iter::once(count).chain(rest.iter().copied()).collect();
        let updates = self.graph.reshape(updates, all)?;
        let counter = TensorType::scalar(DType::S64);
        let zero = self.graph.scalar_constant(Scalar::Int(0), DType::S64)?;
        let mark = self.graph.mark();
        let types = [counter, self.graph.tensor_type(x).clone()];
        let scope = self.graph.open_scope("scatter", &types);
        let [step, current] = as_array(&scope.parameters)?;
        let limit = Scalar::Int(to_i64(count));
        let limit = self.graph.scalar_constant(limit, DType::S64)?;
        let more = self.graph.less(step, limit)?;
        let more = self.graph.traced(mark, vec![more]);
        let at = self.graph.slice_along_axis(coordinates, step, 1, 0, 1)?;
        let update = self.graph.slice_along_axis(updates, step, 1, 0, 1)?;
        let old = self.graph.gather(current, at, Some(&axes(kept)))?;
        let Some(new) = self.apply_to_elements(region, values, &[old, update])? else {
            return Ok(None);
        };
        let [new] = as_array(&new)?;
        let next = self.graph.indexed_put(current, at, new, Some(&axes(kept)))?;
        let one = self.graph.scalar_constant(Scalar::Int(1), DType::S64)?;
        let following = self.graph.add(step, one)?;
        let body = self.graph.traced(mark, vec![following, next]);
        let results = self.graph.while_loop(mark, &scope, &[zero, x], more, body)?;
        Ok(Some(results[1]))
    }

    pub(super) fn map(
        &mut self,
        operation: &Operation,
        x: &[ExprId],
        values: &mut Values,
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        self.apply_to_elements(operation.region(0)?, values, x)
    }
}
