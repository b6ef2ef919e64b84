//! The derivative of a loop that keeps some of the states, and computes the others again from them.
//!
//! A *slot* has room for the states before one trip, and a number says which trip that is. The loop
//! itself fills some of the slots as it goes, so that one pass does both; where nobody knows how many
//! trips there will be, it keeps every trip's states until the slots are full, and then forgets every
//! other one and keeps those of every second trip, and so on: no more than half of the slots are
//! ever empty, and the way between two of them is about the number of trips divided by that of slots.
//!
//! The way back starts from the slot with the last states before a trip, and runs the body forward to
//! it, in *legs*. At the end of a leg the states go to an empty slot, which the trips before start
//! from. A leg goes half of the rest of the way, so that log2(way) slots are enough and each trip
//! is computed as often; or a single trip, which computes each once more and needs a slot for each.
//! Where there is no empty slot left, a leg goes all the way; results stay right.
//!
//! Slots have no order: the last one before a trip is the one with the largest number, and an empty
//! one has the number -1.

use nxla_expr::{ExprId, Graph, Op, Slice, Start};
use nxla_tensor::{Scalar, Shape};

use super::{COUNT, Found, Plan, add, build_loop, integer, needed_states, read_row, write_row};
use crate::emit::{self, filled};
use crate::error::Result;
use crate::region::{Hooks, splice};

/// How many slots the loop itself fills, if nothing else says it.
pub(super) const FEW: usize = 16;

/// How many slots are for the ends of legs: enough for 2^16 trips between two others.
const LEGS: usize = 16;

/// States that are kept of some trips.
pub(super) struct Slots<'a> {
    plan: &'a Plan<'a>,
    /// How many the loop itself fills.
    forward: usize,
    /// How many there are.
    count: usize,
    /// Every which trip it keeps, if that is known beforehand.
    stride: Option<usize>,
}

impl<'a> Slots<'a> {
    /// So many states, of a loop of any number of trips.
    pub(super) fn few(plan: &'a Plan<'a>, forward: usize) -> Self {
        Self { plan, forward, count: forward + LEGS, stride: None }
    }

    /// The states of one in √n of a known number n of trips, or of up to so many.
    pub(super) fn root(plan: &'a Plan<'a>, trips: usize) -> Self {
        let stride = trips.isqrt().max(1);
        let forward = trips.div_ceil(stride);
        Self { plan, forward, count: forward + stride, stride: Some(stride) }
    }

    /// Builds both loops. The first takes the place of the loop itself, unless that shows values to
    /// the host.
    pub(super) fn emit(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        trips: Option<usize>,
    ) -> Result<Found> {
        let (results, trips, stack) = match (trips, self.plan.kept.is_empty()) {
            (Some(trips), true) => (None, integer(graph, emit::signed(trips))?, Vec::new()),
            _ => self.go_forward(graph)?,
        };
        let last = add(graph, trips, -1)?;
        let initial: Vec<ExprId> = [last].into_iter().chain(stack).collect();
        let stack = 1..initial.len();
        let cotangents = self.plan.go_back(graph, parts, initial, &[], |graph, state| {
            self.reverse_trip(graph, state, stack.clone())
        })?;
        Ok(Found { results, cotangents })
    }

    /// The loop, which counts its trips and fills slots. Gives its own results, if they may take the
    /// place of those that there are; the number of trips; and the slots.
    fn go_forward(&self, graph: &mut Graph) -> Result<(Option<Vec<ExprId>>, ExprId, Vec<ExprId>)> {
        let Plan { op, operands, kept, .. } = self.plan;
        let is_quiet = self.plan.is_quiet();
        let states: Vec<usize> = match is_quiet {
            true => (0..op.state).collect(),
            false => {
                let mut needs = op.condition.used_inputs();
                needs.truncate(op.state);
                kept.iter().for_each(|&state| needs[state] = true);
                needed_states(&op.body, needs)
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
            self.plan.inner(),
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
        Ok((is_quiet.then_some(results), trips, slots))
    }

    /// Slots without anything in them: the trips before which their states hold, and the states. There
    /// is a row more than there are slots, for writes that do not count.
    fn empty(&self, graph: &mut Graph) -> Result<Vec<ExprId>> {
        let mut slots = vec![filled(graph, -1.0, COUNT, &Shape::from([self.count + 1]))?];
        for &state in &self.plan.kept {
            let ty = &self.plan.op.body.inputs()[state];
            let shape = std::iter::once(self.count + 1).chain(ty.shape.iter().copied());
            let ty = nxla_expr::TensorType::new(ty.dtype, shape.collect::<Shape>());
            slots.push(graph.constant(Scalar::zero(ty.dtype), ty)?);
        }
        Ok(slots)
    }

    /// Keeps the states before a trip, if it is its turn: gives the stride, and the slots.
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
                let known = integer(graph, emit::signed(known))?;
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
                // Of numbers that are multiples of the old stride this forgets every other one.
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

    /// Puts the states before a trip into a slot, if `holds`.
    fn put(
        &self,
        graph: &mut Graph,
        (holds, place): (ExprId, ExprId),
        (trips, rows): (ExprId, &[ExprId]),
        (trip, values): (ExprId, &[ExprId]),
    ) -> Result<Vec<ExprId>> {
        let (nowhere, none) = (integer(graph, emit::signed(self.count))?, integer(graph, -1)?);
        let place = graph.select(holds, place, nowhere)?;
        let trip = graph.select(holds, trip, none)?;
        let mut next = vec![write_row(graph, trips, place, trip)?];
        for (&rows, &value) in rows.iter().zip(values) {
            next.push(write_row(graph, rows, place, value)?);
        }
        Ok(next)
    }

    /// One trip of the second loop, which undoes trip `state[0]` of the original.
    fn reverse_trip(
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
            next.push(emit::accumulate(graph, sum, part)?);
        }
        Ok(next)
    }

    /// The slots and the states before a trip: runs the body from the last states that there are.
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
            self.plan.inner(),
            &initial,
            |graph, values| Ok(graph.less(values[0], trip)?),
            |graph, values| self.leg(graph, trip, values),
        )?;
        let values = results.split_off(1 + slots.len());
        let mut slots = results.split_off(1);
        // The states before this very trip are of no more use.
        let none = integer(graph, -1)?;
        let spent = graph.equal(start, trip)?;
        let left = graph.select(spent, none, start)?;
        slots[0] = write_row(graph, slots[0], top, left)?;
        Ok((slots, values))
    }

    /// One leg from trip `values[0]` on the way to `trip`. The states at its end go into a slot,
    /// unless that is `trip` itself.
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
            self.plan.inner(),
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

/// The first elements of a vector.
fn first(graph: &mut Graph, x: ExprId, count: usize) -> Result<ExprId> {
    let starts = [Start::Static(0)].into();
    let slice = Slice { starts, lengths: [count].into(), strides: [1].into() };
    Ok(graph.make(Op::Slice(Box::new(slice)), &[x])?)
}
