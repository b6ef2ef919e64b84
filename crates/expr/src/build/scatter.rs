//! Scatters that combine updates by an op other than addition.

use nxla_tensor::{DType, Scalar, to_i64};

use super::SliceStart;
use crate::graph::{BlockKind, Combine, ExprId, Graph, Op, Replay, Result};

impl Graph {
    /// Combines each element of the vector `x` with all elements of `updates` at its index;
    /// `indices` has a last axis of size 1, as in [`Graph::indexed_add`]. Out-of-range updates are
    /// ignored. This is a block whose default sorts.
    pub(crate) fn scatter(
        &mut self,
        x: ExprId,
        indices: ExprId,
        updates: ExprId,
        op: Combine,
    ) -> Result<ExprId> {
        if self.dtype(x).is_pred() {
            return self.scattered_runs(x, indices, updates, op);
        }
        let kind = BlockKind::Scatter { op };
        let operands = [x, indices, updates];
        let result = self.single_block(kind, operands, |graph, [x, indices, updates]| {
            graph.scattered_runs(x, indices, updates, op)
        })?;
        let is_extreme = matches!(op, Combine::Max | Combine::Min);
        let has_gradient = self.dtype(x).is_float() && self.dtype(updates).is_float();
        if is_extreme && has_gradient && self.shape(updates).size() > 0 && self.shape(x).size() > 0
        {
            return self.shared_gradient(result, x, indices, updates);
        }
        Ok(result)
    }

    /// Returns `y`, the extremes of `x` and `updates`, with a gradient that equal elements share evenly, as
    /// in a reduction. The default of the block would halve the gradient pair by pair. The gradient
    /// of a NaN among the updates is NaN. A NaN of `x` keeps its gradient, because it may have no
    /// update.
    fn shared_gradient(
        &mut self,
        y: ExprId,
        x: ExprId,
        indices: ExprId,
        updates: ExprId,
    ) -> Result<ExprId> {
        let outputs = self.custom_grad(&[y], &[x, updates], |graph, cotangents| {
            let dy = cotangents[0];
            let dtype = graph.dtype(dy);
            let cast = graph.as_type(updates, graph.dtype(y))?;
            let there = graph.gather(y, indices, None)?;
            let wins = graph.equal(cast, there)?;
            let is_inside = graph.is_inside(indices, y)?;
            let wins = graph.logical_and(wins, is_inside)?;
            let (x_is_nan, y_is_nan) = (graph.is_nan(x)?, graph.is_nan(y)?);
            let x_is_number = graph.logical_not(x_is_nan)?;
            let becomes_nan = graph.logical_and(y_is_nan, x_is_number)?;
            let stays = graph.equal(x, y)?;
            let stays = graph.logical_or(stays, x_is_nan)?;
            let (ones, old) = (graph.as_type(wins, dtype)?, graph.as_type(stays, dtype)?);
            let count = graph.indexed_add(old, indices, ones, None)?;
            let share = graph.divide(dy, count)?;
            let zero = graph.scalar_constant(Scalar::UInt(0), dtype)?;
            let nan = graph.scalar_constant(Scalar::Float(f64::NAN), dtype)?;
            let one = graph.scalar_constant(Scalar::UInt(1), dtype)?;
            // A factor of NaN for every element would make further derivatives NaN.
            let factor = graph.select(becomes_nan, nan, one)?;
            let undefined = graph.multiply(dy, factor)?;
            let undefined = graph.select(becomes_nan, undefined, zero)?;
            // No update equals an extremum that is NaN.
            let part = graph.select(y_is_nan, undefined, share)?;
            let part = graph.gather(part, indices, None)?;
            let there_is_nan = graph.is_nan(there)?;
            let is_undefined = graph.logical_and(there_is_nan, is_inside)?;
            let receives = graph.logical_or(wins, is_undefined)?;
            let dx = graph.select(stays, share, undefined)?;
            Ok::<_, crate::Error>(vec![dx, graph.select(receives, part, zero)?])
        })?;
        Ok(outputs[0])
    }

    /// Returns for each index whether the vector `x` has such an element.
    fn is_inside(&mut self, indices: ExprId, x: ExprId) -> Result<ExprId> {
        let places = self.flatten(indices, None)?;
        let places = self.as_type(places, DType::S64)?;
        let count = to_i64(self.shape(x)[0]);
        let count = self.scalar_constant(Scalar::Int(count), DType::S64)?;
        let zero = self.scalar_constant(Scalar::Int(0), DType::S64)?;
        let (above, below) = (self.greater_equal(places, zero)?, self.less(places, count)?);
        self.logical_and(above, below)
    }

    /// Sorts the updates by index, combines each with the earlier updates at the same index, and
    /// writes the last update of each index.
    fn scattered_runs(
        &mut self,
        x: ExprId,
        indices: ExprId,
        updates: ExprId,
        op: Combine,
    ) -> Result<ExprId> {
        let places = self.flatten(indices, None)?;
        if self.shape(places)[0] == 0 {
            return Ok(x);
        }
        let order = self.argsort(places, 0, false, true, DType::S32)?;
        let (places, value) = (self.take(places, order, 0)?, self.take(updates, order, 0)?);
        let value = self.combined_runs(places, value, op)?;
        let count = self.shape(places)[0];
        let next = self.slice_along_axis(places, 1, count - 1, 0, 1)?;
        let nowhere = to_i64(self.shape(x)[0]);
        let nowhere = self.scalar_constant(Scalar::Int(nowhere), self.dtype(places))?;
        let one = self.broadcast(nowhere, [1], None)?;
        let next = self.concatenate(&[next, one], 0)?;
        let is_last = self.not_equal(places, next)?;
        let old = self.take(x, places, 0)?;
        let (old, value) = match op {
            // The zero cotangent of an ignored update must not multiply an infinity.
            Combine::Multiply => {
                let (one, unit) = (self.one_like(old)?, self.one_like(value)?);
                (self.select(is_last, old, one)?, self.select(is_last, value, unit)?)
            }
            Combine::Max | Combine::Min => (old, value),
        };
        let new = self.binary(op.binary(), old, value)?;
        let new = self.as_type(new, self.dtype(x))?;
        // Other updates have an index that is out of range, so they are ignored.
        let target = self.select(is_last, places, nowhere)?;
        let target = self.new_axis(target, -1, None)?;
        self.make(Op::IndexedPut([0].into()), &[x, target, new])
    }

    /// Combines each entry along the first axis with all earlier entries of equal index, for sorted
    /// indices.
    ///
    /// Iteration `i` combines entries at distance `2^i` (W. D. Hillis and G. L. Steele, Data
    /// parallel algorithms, 1986). The iterations are a loop instead of being unrolled, so that the
    /// compile time of derivatives on XLA does not depend on the number of entries.
    pub(super) fn combined_runs(
        &mut self,
        places: ExprId,
        values: ExprId,
        op: Combine,
    ) -> Result<ExprId> {
        let count = self.shape(places)[0];
        let iterations = count.next_power_of_two().ilog2();
        let whole = |graph: &mut Graph, number: usize| {
            graph.scalar_constant(Scalar::Int(to_i64(number)), DType::S64)
        };
        let initial = [whole(self, 0)?, whole(self, 1)?, values];
        let goes_on = |graph: &mut Graph, state: &[ExprId]| {
            let end = whole(graph, iterations as usize)?;
            graph.less(state[0], end)
        };
        let combine = |graph: &mut Graph, state: &[ExprId]| {
            let &[iteration, distance, values] = state else {
                unreachable!("there are three states")
            };
            let size = whole(graph, count)?;
            let first = graph.subtract(size, distance)?;
            let before = |graph: &mut Graph, x: ExprId| {
                let twice = graph.concatenate(&[x, x], 0)?;
                graph.slice_along_axis(twice, SliceStart::Dynamic(first), count, 0, 1)
            };
            let (earlier, there) = (before(graph, values)?, before(graph, places)?);
            let position = graph.iota([count], None, DType::S64)?;
            let exists = graph.greater_equal(position, distance)?;
            let same = graph.equal(places, there)?;
            let same = graph.logical_and(exists, same)?;
            let shape = graph.shape(values).clone();
            let same = graph.broadcast(same, shape, Some(&[0]))?;
            // The other operand is replaced, not the result: a zero cotangent times an infinity of
            // another index would be NaN.
            let neutral = match op {
                Combine::Multiply => graph.one_like(values)?,
                Combine::Max | Combine::Min => values,
            };
            let earlier = graph.select(same, earlier, neutral)?;
            let combined = graph.binary(op.binary(), earlier, values)?;
            let combined = graph.as_type(combined, graph.dtype(values))?;
            let one = whole(graph, 1)?;
            Ok(vec![graph.add(iteration, one)?, graph.add(distance, distance)?, combined])
        };
        Ok(self.repeat_while(&initial, Replay::default(), goes_on, combine)?[2])
    }
}
