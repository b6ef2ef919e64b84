//! Derivatives of loops that store some of the states and recompute the others.
//!
//! A *slot* holds the states before one iteration, and a number names the iteration. The forward
//! loop fills slots while it runs, so no additional pass is needed. If the trip count is unknown,
//! the loop stores the states of every iteration until the slots are full. It then drops every
//! second slot and stores only every second iteration, and so on. At least half of the slots stay
//! in use, and the distance between two slots is about the trip count divided by the number of
//! slots.
//!
//! The backward loop starts from the last slot before an iteration and runs the body forward to the
//! iteration in *segments*. The states at the end of a segment are stored in an empty slot, for use
//! by earlier iterations. A segment covers half of the remaining distance, so log2(distance) slots
//! suffice and each iteration is recomputed at most that often. If no slot is empty, a segment
//! covers the full distance: this costs time and does not change results.
//!
//! Slots are unordered. The last slot before an iteration is the slot with the largest smaller
//! number, and an empty slot has the number -1.

use nxla_expr::{ExprId, Graph, TensorType};
use nxla_tensor::{Scalar, to_i64};

use super::products::zero_rows;
use super::{
    BackwardStates, COUNT, LoopDerivative, LoopGradients, add, integer, marked_states, read_row,
    write_row,
};
use crate::builder;
use crate::error::{GradError, Result};
use crate::region::{Hooks, splice, splice_all};

/// The iteration number of an empty slot.
const EMPTY: i64 = -1;

/// The default number of slots that the forward loop fills.
pub(super) const FEW: usize = 16;

/// The number of slots for ends of segments: enough for 2^16 iterations between two other slots.
const SEGMENT_ENDS: usize = 16;

/// The derivative of a loop that stores the states before some iterations.
pub(super) struct Slots<'a> {
    derivative: &'a LoopDerivative<'a>,
    /// The number of slots that the forward loop fills.
    forward: usize,
    /// The total number of slots.
    count: usize,
    /// The distance between stored iterations, if it is constant.
    stride: Option<usize>,
}

/// The states before an iteration.
struct Snapshot<'a> {
    /// The number of the iteration.
    iteration: ExprId,
    states: &'a [ExprId],
}

/// The contents of the slots, and of a last row that receives the writes that are to be ignored.
struct SlotStack {
    /// The number of the iteration in each slot.
    iterations: ExprId,
    /// For each state, its value in each slot.
    rows: Vec<ExprId>,
}

impl SlotStack {
    /// Returns the stack among the states of a loop; see [`SlotStack::into_values`].
    fn from_values(values: &[ExprId]) -> Self {
        Self { iterations: values[0], rows: values[1..].to_vec() }
    }

    fn into_values(self) -> Vec<ExprId> {
        std::iter::once(self.iterations).chain(self.rows).collect()
    }

    /// Writes a snapshot into a slot if the condition is true.
    fn write_if(
        &self,
        graph: &mut Graph,
        condition: ExprId,
        slot: ExprId,
        snapshot: &Snapshot<'_>,
    ) -> Result<Self> {
        let ignored = to_i64(graph.shape(self.iterations)[0] - 1);
        let (ignored, empty) = (integer(graph, ignored)?, integer(graph, EMPTY)?);
        let slot = graph.select(condition, slot, ignored)?;
        let iteration = graph.select(condition, snapshot.iteration, empty)?;
        let iterations = write_row(graph, self.iterations, slot, iteration)?;
        let pairs = self.rows.iter().zip(snapshot.states);
        let rows = pairs.map(|(&rows, &state)| write_row(graph, rows, slot, state));
        Ok(Self { iterations, rows: rows.collect::<Result<_>>()? })
    }
}

impl<'a> Slots<'a> {
    /// Stores `forward` states of a loop with any trip count.
    pub(super) fn with_count(derivative: &'a LoopDerivative<'a>, forward: usize) -> Self {
        Self { derivative, forward, count: forward + SEGMENT_ENDS, stride: None }
    }

    /// Stores √n states of a loop whose trip count is, or is at most, n.
    pub(super) fn with_sqrt(derivative: &'a LoopDerivative<'a>, trips: usize) -> Self {
        let stride = trips.isqrt().max(1);
        let forward = trips.div_ceil(stride);
        Self { derivative, forward, count: forward + stride, stride: Some(stride) }
    }

    /// Builds both loops. The forward loop replaces the original loop unless the original has
    /// hooks.
    pub(super) fn build_loops(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        trips: Option<usize>,
    ) -> Result<LoopGradients> {
        let (results, trips, stack) = match (trips, self.derivative.kept.is_empty()) {
            (Some(trips), true) => (None, integer(graph, to_i64(trips))?, Vec::new()),
            _ => self.build_forward(graph)?,
        };
        let last = add(graph, trips, -1)?;
        let initial: Vec<ExprId> = [last].into_iter().chain(stack).collect();
        let stack = 1..initial.len();
        let summed: Vec<usize> = (0..self.derivative.captures.len()).collect();
        let (before, behind) = (initial, Vec::new());
        let states = BackwardStates { before, summed: &summed, behind, collected: &[] };
        let values = self.derivative.build_backward(graph, parts, states, |graph, state| {
            self.reverse_iteration(graph, state, stack)
        })?;
        let cotangents = self.derivative.positions().zip(values).collect();
        Ok(LoopGradients { results, cotangents })
    }

    /// Builds the forward loop, which counts iterations and fills slots. Returns its results if
    /// they may replace the results of the original loop, the trip count, and the slots.
    fn build_forward(
        &self,
        graph: &mut Graph,
    ) -> Result<(Option<Vec<ExprId>>, ExprId, Vec<ExprId>)> {
        let LoopDerivative { op, operands, kept, .. } = self.derivative;
        let has_no_effects = self.derivative.has_no_effects();
        let states: Vec<usize> = if has_no_effects {
            (0..op.state).collect()
        } else {
            let mut needs = op.condition.used_inputs();
            needs.truncate(op.state);
            kept.iter().for_each(|&state| needs[state] = true);
            marked_states(&op.needed_states(needs))
        };
        let mut initial: Vec<ExprId> = states.iter().map(|&state| operands[state]).collect();
        initial.extend([integer(graph, 0)?, integer(graph, 1)?]);
        let stack = initial.len();
        if !kept.is_empty() {
            initial.extend(self.empty_stack(graph)?.into_values());
        }
        let mut results = graph.repeat_while::<GradError>(
            &initial,
            self.derivative.nested_replay(),
            |graph, values| {
                let arguments = self.derivative.arguments(&states, values, &[]);
                Ok(splice(&op.condition, graph, &arguments, &[0], Hooks::Drop)?[0])
            },
            |graph, values| {
                let (own, rest) = values.split_at(states.len());
                let (iteration, stride, slots) = (rest[0], rest[1], &rest[2..]);
                let arguments = self.derivative.arguments(&states, own, &[]);
                let mut next = splice(&op.body, graph, &arguments, &states, Hooks::Drop)?;
                next.push(add(graph, iteration, 1)?);
                if slots.is_empty() {
                    next.push(stride);
                    return Ok(next);
                }
                let index_of = |state| states.iter().position(|&at| at == state);
                let kept: Vec<ExprId> =
                    kept.iter().filter_map(|&state| Some(own[index_of(state)?])).collect();
                let snapshot = Snapshot { iteration, states: &kept };
                let stack = SlotStack::from_values(slots);
                let (stride, stack) = self.store_if_due(graph, stride, stack, &snapshot)?;
                next.push(stride);
                next.extend(stack.into_values());
                Ok(next)
            },
        )?;
        let slots = results.split_off(stack);
        let trips = results[states.len()];
        results.truncate(states.len());
        Ok((has_no_effects.then_some(results), trips, slots))
    }

    /// Creates empty slots.
    fn empty_stack(&self, graph: &mut Graph) -> Result<SlotStack> {
        let size = self.count + 1;
        let iterations = graph.constant(Scalar::Int(EMPTY), TensorType::new(COUNT, [size]))?;
        let mut rows = Vec::with_capacity(self.derivative.kept.len());
        for &state in &self.derivative.kept {
            let ty = &self.derivative.op.body.inputs()[state];
            rows.push(zero_rows(graph, size, ty)?);
        }
        Ok(SlotStack { iterations, rows })
    }

    /// Stores a snapshot if its iteration is a multiple of the stride. Returns the next stride and
    /// the slots.
    fn store_if_due(
        &self,
        graph: &mut Graph,
        stride: ExprId,
        mut stack: SlotStack,
        snapshot: &Snapshot<'_>,
    ) -> Result<(ExprId, SlotStack)> {
        let iteration = snapshot.iteration;
        let zero = integer(graph, 0)?;
        let is_multiple = |graph: &mut Graph, number: ExprId, stride: ExprId| -> Result<ExprId> {
            let remainder = graph.remainder(number, stride)?;
            Ok(graph.equal(remainder, zero)?)
        };
        if let Some(stride) = self.stride {
            let stride = integer(graph, to_i64(stride))?;
            let is_due = is_multiple(graph, iteration, stride)?;
            let slot = graph.quotient(iteration, stride)?;
            return Ok((stride, stack.write_if(graph, is_due, slot, snapshot)?));
        }
        let own = first(graph, stack.iterations, self.forward)?;
        let least = graph.reduce_min(own, None, false)?;
        let is_due = is_multiple(graph, iteration, stride)?;
        let is_full = graph.greater_equal(least, zero)?;
        let is_full = graph.logical_and(is_due, is_full)?;
        let two = integer(graph, 2)?;
        let wider = graph.multiply(stride, two)?;
        let stride = graph.select(is_full, wider, stride)?;
        // Drop every second slot: those whose number is not a multiple of the new stride.
        let stays = is_multiple(graph, stack.iterations, stride)?;
        let empty = integer(graph, EMPTY)?;
        stack.iterations = graph.select(stays, stack.iterations, empty)?;
        let is_due = is_multiple(graph, iteration, stride)?;
        let own = first(graph, stack.iterations, self.forward)?;
        let slot = graph.argmin(own, None, false, false, COUNT)?;
        Ok((stride, stack.write_if(graph, is_due, slot, snapshot)?))
    }

    /// Runs one iteration of the backward loop, for iteration `state[0]` of the original loop.
    fn reverse_iteration(
        &self,
        graph: &mut Graph,
        state: &[ExprId],
        stack: std::ops::Range<usize>,
    ) -> Result<Vec<ExprId>> {
        let derivative = self.derivative;
        let iteration = state[0];
        let (slots, cotangents) = (&state[stack.clone()], &state[stack.end..]);
        let (cotangents, sums) = cotangents.split_at(derivative.carried.len());
        let (slots, values) = match slots {
            [] => (Vec::new(), Vec::new()),
            slots => {
                let stack = SlotStack::from_values(slots);
                let (stack, values) = self.recompute_states(graph, iteration, &stack)?;
                (stack.into_values(), values)
            }
        };
        let arguments = derivative.arguments(&derivative.kept, &values, cotangents);
        let found = splice_all(&derivative.backward, graph, &arguments, Hooks::Keep)?;
        let (cotangents, parts) = found.split_at(derivative.carried.len());
        let mut next = vec![add(graph, iteration, -1)?];
        next.extend(slots);
        next.extend(cotangents);
        for (&sum, &part) in sums.iter().zip(parts) {
            next.push(builder::accumulate(graph, sum, part)?);
        }
        Ok(next)
    }

    /// Returns the slots and the states before iteration `target`, by running the body from the
    /// last stored states.
    fn recompute_states(
        &self,
        graph: &mut Graph,
        target: ExprId,
        stack: &SlotStack,
    ) -> Result<(SlotStack, Vec<ExprId>)> {
        let iterations = first(graph, stack.iterations, self.count)?;
        let last = graph.argmax(iterations, None, false, false, COUNT)?;
        let start = graph.reduce_max(iterations, None, false)?;
        let mut initial = vec![start, stack.iterations];
        initial.extend(&stack.rows);
        for (&state, &rows) in self.derivative.kept.iter().zip(&stack.rows) {
            initial.push(read_row(graph, rows, last, &self.derivative.op.body.inputs()[state])?);
        }
        let mut results = graph.repeat_while::<GradError>(
            &initial,
            self.derivative.nested_replay(),
            |graph, values| Ok(graph.less(values[0], target)?),
            |graph, values| self.run_segment(graph, target, values),
        )?;
        let states = results.split_off(2 + stack.rows.len());
        let mut stack = SlotStack::from_values(&results[1..]);
        // The states before this iteration are not needed again, so its slot becomes empty.
        let empty = integer(graph, EMPTY)?;
        let is_target = graph.equal(start, target)?;
        let next = graph.select(is_target, empty, start)?;
        stack.iterations = write_row(graph, stack.iterations, last, next)?;
        Ok((stack, states))
    }

    /// Runs one segment from iteration `values[0]` toward `target`, and stores the states at its
    /// end in a slot unless the end is `target`.
    fn run_segment(
        &self,
        graph: &mut Graph,
        target: ExprId,
        values: &[ExprId],
    ) -> Result<Vec<ExprId>> {
        let kept = &self.derivative.kept;
        let start = values[0];
        let (slots, states) = values[1..].split_at(1 + kept.len());
        let stack = SlotStack::from_values(slots);
        let end = match self.stride {
            Some(_) => add(graph, start, 1)?,
            None => {
                let distance = graph.subtract(target, start)?;
                let distance = add(graph, distance, 1)?;
                let two = integer(graph, 2)?;
                let half = graph.quotient(distance, two)?;
                graph.add(start, half)?
            }
        };
        let iterations = first(graph, stack.iterations, self.count)?;
        let least = graph.reduce_min(iterations, None, false)?;
        let zero = integer(graph, 0)?;
        let has_empty_slot = graph.less(least, zero)?;
        let end = graph.select(has_empty_slot, end, target)?;
        let slot = graph.argmin(iterations, None, false, false, COUNT)?;

        let initial: Vec<ExprId> = [start].iter().chain(states).copied().collect();
        let results = graph.repeat_while::<GradError>(
            &initial,
            self.derivative.nested_replay(),
            |graph, values| Ok(graph.less(values[0], end)?),
            |graph, values| {
                let mut next = vec![add(graph, values[0], 1)?];
                let arguments = self.derivative.arguments(kept, &values[1..], &[]);
                next.extend(splice(
                    &self.derivative.op.body,
                    graph,
                    &arguments,
                    kept,
                    Hooks::Drop,
                )?);
                Ok(next)
            },
        )?;
        let states = &results[1..];
        let is_before_target = graph.less(end, target)?;
        let snapshot = Snapshot { iteration: end, states };
        let stack = stack.write_if(graph, is_before_target, slot, &snapshot)?;
        let mut next = vec![end];
        next.extend(stack.into_values());
        next.extend(states);
        Ok(next)
    }
}

/// Returns the first elements of a vector.
fn first(graph: &mut Graph, x: ExprId, count: usize) -> Result<ExprId> {
    Ok(builder::slice(graph, x, &[0], [count].into(), [1].into())?)
}
