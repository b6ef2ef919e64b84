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
//! iteration in *legs*. The states at the end of a leg are stored in an empty slot, for use by
//! earlier iterations. A leg covers half of the remaining distance, so log2(distance) slots suffice
//! and each iteration is recomputed at most that often. If no slot is empty, a leg covers the full
//! distance: this costs time and does not change results.
//!
//! Slots are unordered. The last slot before an iteration is the slot with the largest smaller
//! number, and an empty slot has the number -1.

use nxla_expr::{ExprId, Graph, Op, SliceAttributes, Start};
use nxla_tensor::{Scalar, Shape};

use super::{
    COUNT, LoopDerivative, LoopGradients, add, build_loop, integer, marked_states, read_row,
    write_row,
};
use crate::builder::{self, full};
use crate::error::Result;
use crate::region::{Hooks, splice};

/// The default number of slots that the forward loop fills.
pub(super) const FEW: usize = 16;

/// The number of slots for ends of legs: enough for 2^16 iterations between two other slots.
const LEGS: usize = 16;

/// The derivative of a loop that stores the states before some iterations.
pub(super) struct Slots<'a> {
    plan: &'a LoopDerivative<'a>,
    /// The number of slots that the forward loop fills.
    forward: usize,
    /// The total number of slots.
    count: usize,
    /// The distance between stored iterations, if it is constant.
    stride: Option<usize>,
}

impl<'a> Slots<'a> {
    /// Stores `forward` states of a loop with any trip count.
    pub(super) fn with_count(plan: &'a LoopDerivative<'a>, forward: usize) -> Self {
        Self { plan, forward, count: forward + LEGS, stride: None }
    }

    /// Stores √n states of a loop whose trip count is, or is at most, n.
    pub(super) fn with_sqrt(plan: &'a LoopDerivative<'a>, trips: usize) -> Self {
        let stride = trips.isqrt().max(1);
        let forward = trips.div_ceil(stride);
        Self { plan, forward, count: forward + stride, stride: Some(stride) }
    }

    /// Builds both loops. The forward loop replaces the original loop unless the original has
    /// hooks.
    pub(super) fn emit(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        trips: Option<usize>,
    ) -> Result<LoopGradients> {
        let (results, trips, stack) = match (trips, self.plan.kept.is_empty()) {
            (Some(trips), true) => (None, integer(graph, builder::to_i64(trips))?, Vec::new()),
            _ => self.build_forward(graph)?,
        };
        let last = add(graph, trips, -1)?;
        let initial: Vec<ExprId> = [last].into_iter().chain(stack).collect();
        let stack = 1..initial.len();
        let cotangents = self.plan.build_backward(graph, parts, initial, &[], |graph, state| {
            self.reverse_iteration(graph, state, stack.clone())
        })?;
        Ok(LoopGradients { results, cotangents })
    }

    /// Builds the forward loop, which counts iterations and fills slots. Returns its results if
    /// they may replace the results of the original loop, the trip count, and the slots.
    fn build_forward(
        &self,
        graph: &mut Graph,
    ) -> Result<(Option<Vec<ExprId>>, ExprId, Vec<ExprId>)> {
        let LoopDerivative { op, operands, kept, .. } = self.plan;
        let has_no_effects = self.plan.has_no_effects();
        let states: Vec<usize> = match has_no_effects {
            true => (0..op.state).collect(),
            false => {
                let mut needs = op.condition.used_inputs();
                needs.truncate(op.state);
                kept.iter().for_each(|&state| needs[state] = true);
                marked_states(&op.needed_states(needs))
            }
        };
        let mut initial: Vec<ExprId> = states.iter().map(|&state| operands[state]).collect();
        initial.extend([integer(graph, 0)?, integer(graph, 1)?]);
        let stack = initial.len();
        if !kept.is_empty() {
            initial.extend(self.empty(graph)?);
        }
        let mut results = build_loop(
            graph,
            self.plan.nested_replay(),
            &initial,
            |graph, values| {
                let arguments = self.plan.arguments(&states, values, &[]);
                Ok(splice(&op.condition, graph, &arguments, &[0], Hooks::Drop)?[0])
            },
            |graph, values| {
                let (own, rest) = values.split_at(states.len());
                let arguments = self.plan.arguments(&states, own, &[]);
                let mut next = splice(&op.body, graph, &arguments, &states, Hooks::Drop)?;
                next.push(add(graph, rest[0], 1)?);
                match &rest[2..] {
                    [] => next.push(rest[1]),
                    slots => {
                        let of = |state| states.iter().position(|&at| at == state);
                        let values: Vec<ExprId> =
                            kept.iter().filter_map(|&state| Some(own[of(state)?])).collect();
                        next.extend(self.keep(graph, (rest[0], rest[1]), slots, &values)?);
                    }
                }
                Ok(next)
            },
        )?;
        let slots = results.split_off(stack);
        let trips = results[states.len()];
        results.truncate(states.len());
        Ok((has_no_effects.then_some(results), trips, slots))
    }

    /// Creates empty slots: iteration numbers and states. An additional last row receives the
    /// writes that are to be ignored.
    fn empty(&self, graph: &mut Graph) -> Result<Vec<ExprId>> {
        let mut slots = vec![full(graph, -1.0, COUNT, &Shape::from([self.count + 1]))?];
        for &state in &self.plan.kept {
            let ty = &self.plan.op.body.inputs()[state];
            let shape = std::iter::once(self.count + 1).chain(ty.shape.iter().copied());
            let ty = nxla_expr::TensorType::new(ty.dtype, shape.collect::<Shape>());
            slots.push(graph.constant(Scalar::zero(ty.dtype), ty)?);
        }
        Ok(slots)
    }

    /// Stores the states before an iteration if the stride requires it, and returns the stride and
    /// the slots.
    fn keep(
        &self,
        graph: &mut Graph,
        (trip, stride): (ExprId, ExprId),
        slots: &[ExprId],
        values: &[ExprId],
    ) -> Result<Vec<ExprId>> {
        let zero = integer(graph, 0)?;
        let is_due = |graph: &mut Graph, trips: ExprId, stride: ExprId| -> Result<ExprId> {
            let rest = graph.remainder(trips, stride)?;
            Ok(graph.equal(rest, zero)?)
        };
        let (stride, trips, due, place) = match self.stride {
            Some(known) => {
                let known = integer(graph, builder::to_i64(known))?;
                let due = is_due(graph, trip, known)?;
                (stride, slots[0], due, graph.quotient(trip, known)?)
            }
            None => {
                let own = first(graph, slots[0], self.forward)?;
                let least = graph.reduce_min(own, None, false)?;
                let due = is_due(graph, trip, stride)?;
                let full = graph.greater_equal(least, zero)?;
                let full = graph.logical_and(due, full)?;
                let two = integer(graph, 2)?;
                let wider = graph.multiply(stride, two)?;
                let stride = graph.select(full, wider, stride)?;
                // Drops every second slot: those whose number is not a multiple of the new stride.
                let stays = is_due(graph, slots[0], stride)?;
                let none = integer(graph, -1)?;
                let trips = graph.select(stays, slots[0], none)?;
                let due = is_due(graph, trip, stride)?;
                let own = first(graph, trips, self.forward)?;
                (stride, trips, due, graph.argmin(own, None, false, false, COUNT)?)
            }
        };
        let mut next = vec![stride];
        next.extend(self.put(graph, (due, place), (trips, &slots[1..]), (trip, values))?);
        Ok(next)
    }

    /// Writes the states before an iteration into a slot, if `holds` is true.
    fn put(
        &self,
        graph: &mut Graph,
        (holds, place): (ExprId, ExprId),
        (trips, rows): (ExprId, &[ExprId]),
        (trip, values): (ExprId, &[ExprId]),
    ) -> Result<Vec<ExprId>> {
        let (nowhere, none) = (integer(graph, builder::to_i64(self.count))?, integer(graph, -1)?);
        let place = graph.select(holds, place, nowhere)?;
        let trip = graph.select(holds, trip, none)?;
        let mut next = vec![write_row(graph, trips, place, trip)?];
        for (&rows, &value) in rows.iter().zip(values) {
            next.push(write_row(graph, rows, place, value)?);
        }
        Ok(next)
    }

    /// Runs one iteration of the backward loop, for iteration `state[0]` of the original loop.
    fn reverse_iteration(
        &self,
        graph: &mut Graph,
        state: &[ExprId],
        stack: std::ops::Range<usize>,
    ) -> Result<Vec<ExprId>> {
        let plan = self.plan;
        let trip = state[0];
        let (slots, cotangents) = (&state[stack.clone()], &state[stack.end..]);
        let (cotangents, sums) = cotangents.split_at(plan.carried.len());
        let (slots, values) = match slots {
            [] => (Vec::new(), Vec::new()),
            slots => self.state_before(graph, trip, slots)?,
        };
        let arguments = plan.arguments(&plan.kept, &values, cotangents);
        let outputs: Vec<usize> = (0..plan.backward.outputs().len()).collect();
        let found = splice(&plan.backward, graph, &arguments, &outputs, Hooks::Keep)?;
        let (cotangents, parts) = found.split_at(plan.carried.len());
        let mut next = vec![add(graph, trip, -1)?];
        next.extend(slots);
        next.extend(cotangents);
        for (&sum, &part) in sums.iter().zip(parts) {
            next.push(builder::accumulate(graph, sum, part)?);
        }
        Ok(next)
    }

    /// Returns the slots and the states before an iteration, by running the body from the last
    /// stored states.
    fn state_before(
        &self,
        graph: &mut Graph,
        trip: ExprId,
        slots: &[ExprId],
    ) -> Result<(Vec<ExprId>, Vec<ExprId>)> {
        let trips = first(graph, slots[0], self.count)?;
        let top = graph.argmax(trips, None, false, false, COUNT)?;
        let start = graph.reduce_max(trips, None, false)?;
        let mut initial = vec![start];
        initial.extend(slots);
        for (&state, &rows) in self.plan.kept.iter().zip(&slots[1..]) {
            initial.push(read_row(graph, rows, top, &self.plan.op.body.inputs()[state])?);
        }
        let mut results = build_loop(
            graph,
            self.plan.nested_replay(),
            &initial,
            |graph, values| Ok(graph.less(values[0], trip)?),
            |graph, values| self.leg(graph, trip, values),
        )?;
        let values = results.split_off(1 + slots.len());
        let mut slots = results.split_off(1);
        // The states before this iteration are not needed again, so its slot becomes empty.
        let none = integer(graph, -1)?;
        let spent = graph.equal(start, trip)?;
        let left = graph.select(spent, none, start)?;
        slots[0] = write_row(graph, slots[0], top, left)?;
        Ok((slots, values))
    }

    /// Runs one leg from iteration `values[0]` toward `trip`, and stores the states at its end in a
    /// slot unless the end is `trip`.
    fn leg(&self, graph: &mut Graph, trip: ExprId, values: &[ExprId]) -> Result<Vec<ExprId>> {
        let kept = &self.plan.kept;
        let (here, slots) = (values[0], &values[1..]);
        let (slots, states) = slots.split_at(1 + kept.len());
        let goal = match self.stride {
            Some(_) => add(graph, here, 1)?,
            None => {
                let way = graph.subtract(trip, here)?;
                let way = add(graph, way, 1)?;
                let two = integer(graph, 2)?;
                let half = graph.quotient(way, two)?;
                graph.add(here, half)?
            }
        };
        let trips = first(graph, slots[0], self.count)?;
        let least = graph.reduce_min(trips, None, false)?;
        let zero = integer(graph, 0)?;
        let fits = graph.less(least, zero)?;
        let goal = graph.select(fits, goal, trip)?;
        let place = graph.argmin(trips, None, false, false, COUNT)?;

        let initial: Vec<ExprId> = [here].iter().chain(states).copied().collect();
        let reached = build_loop(
            graph,
            self.plan.nested_replay(),
            &initial,
            |graph, values| Ok(graph.less(values[0], goal)?),
            |graph, values| {
                let mut next = vec![add(graph, values[0], 1)?];
                let arguments = self.plan.arguments(kept, &values[1..], &[]);
                next.extend(splice(&self.plan.op.body, graph, &arguments, kept, Hooks::Drop)?);
                Ok(next)
            },
        )?;
        let pushed = graph.less(goal, trip)?;
        let mut next = vec![goal];
        next.extend(self.put(
            graph,
            (pushed, place),
            (slots[0], &slots[1..]),
            (goal, &reached[1..]),
        )?);
        next.extend(&reached[1..]);
        Ok(next)
    }
}

/// Returns the first elements of a vector.
fn first(graph: &mut Graph, x: ExprId, count: usize) -> Result<ExprId> {
    let starts = [Start::Static(0)].into();
    let slice = SliceAttributes { starts, lengths: [count].into(), strides: [1].into() };
    Ok(graph.make(Op::Slice(Box::new(slice)), &[x])?)
}
