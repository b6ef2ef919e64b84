//! The derivative of a loop: a loop that goes through the trips backwards.
//!
//! A loop that counts has a number of trips that is known beforehand (`trips`), and what the
//! derivative of each trip needs is stored as the loop runs (`stored`).
//!
//! Of other loops, the trips are not known before the program runs, and neither engine has tensors
//! of a size that is found out on the way, so the states cannot all be kept; nor can they where they
//! would take too much room. The derivative is therefore two loops:
//!
//! 1. One counts the trips `n`, unless they are known. It carries only what the condition depends
//!    on.
//! 2. One applies the derivative of the body for trip `n - 1` down to 0. It gets the state before
//!    each trip from a stack of [`CHECKPOINTS`] states: it runs the body forward from the
//!    last one, and keeps the state half of the way to its goal, and half of the rest, and so on,
//!    which the following trips start from.
//!
//! That runs the body `n log2(n) / 2` times forward and its derivative `n` times, and holds
//! [`CHECKPOINTS`] states. Keeping nothing but the initial state, as Nx does, would run the body
//! `n^2 / 2` times; keeping all `n` states would run it once per trip, but is impossible for an
//! unknown `n`. Above `2^`[`CHECKPOINTS`] trips the stack overflows and the last leg grows
//! beyond one trip; results stay right.
//!
//! Only states that the derivative of the body, or the body on the way to them, needs are kept; a
//! body that is linear in its state needs no stack at all.

mod stored;
mod trips;

use std::sync::Arc;

use nxla_expr::{ExprId, Graph, Op, Padding, Program, Slice, Start, TensorType, While};
use nxla_tensor::{DType, Scalar, Shape};

use super::wanted;
use crate::active::close_over_trips;
use crate::emit::{self, filled};
use crate::error::{GradError, Result};
use crate::region::{Backward, Hooks, cotangent_dtype, splice};
use crate::sweep::{Sweep, Visit};

use stored::Stored;
use trips::{Counter, counter};

/// How many states the derivative of a loop holds.
const CHECKPOINTS: usize = 16;

/// The dtype that trips are counted in.
const COUNT: DType = DType::S64;

pub(crate) fn rule(sweep: &mut Sweep<'_>, visit: &Visit, op: &While) -> Result<()> {
    let parts = sweep.parts(visit)?;
    let wanted = wanted(sweep, visit);
    let Some(plan) = Plan::new(sweep.graph, op, visit, &parts, &wanted)? else { return Ok(()) };
    let counter = counter(sweep.graph, op, &visit.operands);
    let stored = match counter {
        Some(counter) => Stored::new(&plan, counter)?,
        None => None,
    };
    let cotangents = match stored {
        Some(stored) => {
            let found = stored.emit(sweep.graph, &parts)?;
            let own = sweep.graph.parts(visit.id)?;
            sweep.replace(own.into_iter().zip(found.results).collect());
            found.cotangents
        }
        None => plan.emit(sweep.graph, &parts, counter)?,
    };
    for (position, part) in cotangents {
        sweep.give(visit, position, part)?;
    }
    Ok(())
}

/// What the derivative of a loop is made of.
struct Plan<'a> {
    op: &'a While,
    /// The operands of the loop: initial states, then captures.
    operands: &'a [ExprId],
    /// The derivative of one trip: `(states, captures, cotangents of the carried states) ->
    /// (cotangents of the carried states, contributions to the captures)`.
    backward: Arc<Program>,
    /// The states that have cotangents, and their types.
    carried: Vec<(usize, TensorType)>,
    /// The captures (as operands) that get contributions, and the types of these.
    captures: Vec<(usize, TensorType)>,
    /// The states before a trip that its derivative needs.
    kept: Vec<usize>,
}

impl<'a> Plan<'a> {
    /// `None` if no cotangent reaches an operand that wants it.
    fn new(
        graph: &Graph,
        op: &'a While,
        visit: &'a Visit,
        parts: &[Option<ExprId>],
        wanted: &[usize],
    ) -> Result<Option<Self>> {
        let mut active = vec![false; visit.operands.len()];
        for &position in wanted {
            active[position] = true;
        }
        close_over_trips(&op.body, op.state, &mut active);
        let sources: Vec<usize> = (0..active.len()).filter(|&input| active[input]).collect();
        let around = || parts.iter().flatten().map(|&part| graph.dtype(part));
        let ty = |state: usize| {
            let ty = &op.body.inputs()[state];
            TensorType::new(cotangent_dtype(ty.dtype, around()), ty.shape.clone())
        };
        let mut carries: Vec<bool> =
            (0..op.state).map(|state| active[state] && parts[state].is_some()).collect();
        if !carries.contains(&true) {
            return Ok(None);
        }
        // A state whose cotangent is asked for in one trip must have one in all of them.
        loop {
            let carried: Vec<usize> = (0..op.state).filter(|&state| carries[state]).collect();
            let types: Vec<TensorType> = carried.iter().map(|&state| ty(state)).collect();
            let backward = Backward::new(&op.body, &carried, &types, &sources)?;
            let flows = backward.flows();
            let mut grew = false;
            for (&source, &flows) in sources.iter().zip(&flows) {
                if source < op.state && flows && !carries[source] {
                    carries[source] = true;
                    grew = true;
                }
            }
            if grew {
                continue;
            }
            let carried = carried.into_iter().zip(types).collect();
            return Self::finish(op, &visit.operands, carried, &sources, backward).map(Some);
        }
    }

    fn finish(
        op: &'a While,
        operands: &'a [ExprId],
        carried: Vec<(usize, TensorType)>,
        sources: &[usize],
        backward: Backward,
    ) -> Result<Self> {
        let is_carried = |input: usize| carried.iter().any(|(state, _)| *state == input);
        let keep: Vec<bool> = sources
            .iter()
            .zip(backward.flows())
            .map(|(&input, flows)| if input < op.state { is_carried(input) } else { flows })
            .collect();
        let captures = sources
            .iter()
            .zip(backward.types())
            .zip(&keep)
            .filter(|((input, _), keep)| **input >= op.state && **keep)
            .map(|((&input, ty), _)| (input, ty.clone()))
            .collect();
        let backward = backward.program(&keep)?;
        let mut needs = backward.used_inputs();
        needs.truncate(op.state);
        let kept = needed_states(&op.body, needs);
        Ok(Self { op, operands, backward, carried, captures, kept })
    }

    /// The operands that get cotangents.
    fn positions(&self) -> impl Iterator<Item = usize> {
        self.carried.iter().chain(&self.captures).map(|(position, _)| *position)
    }

    /// Builds both loops, and gives the cotangents of the operands that have one.
    fn emit(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        counter: Option<Counter>,
    ) -> Result<Vec<(usize, ExprId)>> {
        let trips = match counter {
            Some(counter) => integer(graph, emit::signed(counter.trips))?,
            None => self.count(graph)?,
        };
        let one = integer(graph, 1)?;
        let last = graph.subtract(trips, one)?;
        let mut initial = vec![last];
        if !self.kept.is_empty() {
            initial.extend(self.first_checkpoint(graph)?);
        }
        let stack = 1..initial.len();
        self.go_back(graph, parts, initial, |graph, state| {
            self.reverse_trip(graph, state, stack.clone())
        })
    }

    /// Builds the loop that goes back: its states are `before`, the first of which is the trip, then
    /// the cotangents of the carried states and the contributions to the captures. Gives the
    /// cotangents of the operands that have one.
    fn go_back(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        before: Vec<ExprId>,
        trip: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
    ) -> Result<Vec<(usize, ExprId)>> {
        let first = before.len();
        let mut initial = before;
        for (state, ty) in &self.carried {
            initial.push(match parts[*state] {
                Some(part) => emit::cast(graph, part, ty.dtype)?,
                None => filled(graph, 0.0, ty.dtype, &ty.shape)?,
            });
        }
        for (_, ty) in &self.captures {
            initial.push(filled(graph, 0.0, ty.dtype, &ty.shape)?);
        }
        let results = build_loop(
            graph,
            &initial,
            |graph, state| {
                let zero = integer(graph, 0)?;
                Ok(graph.greater_equal(state[0], zero)?)
            },
            trip,
        )?;
        Ok(self.positions().zip(results[first..].iter().copied()).collect())
    }

    /// The number of trips, from a loop that carries only what the condition depends on.
    fn count(&self, graph: &mut Graph) -> Result<ExprId> {
        let mut needs = self.op.condition.used_inputs();
        needs.truncate(self.op.state);
        let states = needed_states(&self.op.body, needs);
        let mut initial: Vec<ExprId> = states.iter().map(|&state| self.operands[state]).collect();
        initial.push(integer(graph, 0)?);
        let results = build_loop(
            graph,
            &initial,
            |graph, values| {
                let arguments = self.arguments(&states, values, &[]);
                Ok(splice(&self.op.condition, graph, &arguments, &[0], Hooks::Drop)?[0])
            },
            |graph, values| {
                let arguments = self.arguments(&states, values, &[]);
                let mut next = splice(&self.op.body, graph, &arguments, &states, Hooks::Drop)?;
                next.push(add(graph, values[states.len()], 1)?);
                Ok(next)
            },
        )?;
        Ok(results[states.len()])
    }

    /// Arguments for a region of the loop: some states, the captures, and what follows them.
    fn arguments(
        &self,
        states: &[usize],
        values: &[ExprId],
        more: &[ExprId],
    ) -> Vec<Option<ExprId>> {
        let mut arguments = vec![None; self.op.state];
        for (&state, &value) in states.iter().zip(values) {
            arguments[state] = Some(value);
        }
        let captures = &self.operands[self.op.state..];
        arguments.extend(captures.iter().chain(more).copied().map(Some));
        arguments
    }

    /// The stack with the initial state in it: its height, the trip before which each state
    /// holds, and the states. It has one row more than there are checkpoints, for writes that do
    /// not count.
    fn first_checkpoint(&self, graph: &mut Graph) -> Result<Vec<ExprId>> {
        let rows = CHECKPOINTS + 1;
        let mut stack = vec![integer(graph, 1)?, filled(graph, 0.0, COUNT, &Shape::from([rows]))?];
        for &state in &self.kept {
            let value = emit::plain(graph, self.operands[state])?;
            let row = as_row(graph, value)?;
            let zero = graph.zero_like(row)?;
            let none = Padding { low: 0, high: 0, interior: 0 };
            let mut padding = vec![none; graph.shape(row).rank()];
            padding[0].high = emit::signed(CHECKPOINTS);
            stack.push(graph.make(Op::Pad(padding.into()), &[row, zero])?);
        }
        Ok(stack)
    }

    /// One trip of the second loop, which undoes trip `state[0]` of the original.
    fn reverse_trip(
        &self,
        graph: &mut Graph,
        state: &[ExprId],
        stack: std::ops::Range<usize>,
    ) -> Result<Vec<ExprId>> {
        let trip = state[0];
        let (stacked, cotangents) = (&state[stack.clone()], &state[stack.end..]);
        let (cotangents, sums) = cotangents.split_at(self.carried.len());
        let (next_stack, values) = match stacked {
            [height, trips, states @ ..] => {
                self.state_before(graph, trip, (*height, *trips, states))?
            }
            _ => (Vec::new(), Vec::new()),
        };
        let arguments = self.arguments(&self.kept, &values, cotangents);
        let outputs: Vec<usize> = (0..self.backward.outputs().len()).collect();
        let found = splice(&self.backward, graph, &arguments, &outputs, Hooks::Keep)?;
        let (cotangents, parts) = found.split_at(self.carried.len());
        let mut next = vec![add(graph, trip, -1)?];
        next.extend(next_stack);
        next.extend(cotangents);
        for (&sum, &part) in sums.iter().zip(parts) {
            next.push(emit::accumulate(graph, sum, part)?);
        }
        Ok(next)
    }

    /// The stack and the state before a trip: runs the body from the top of the stack, in legs
    /// that each go half of the rest of the way and end with a checkpoint.
    fn state_before(
        &self,
        graph: &mut Graph,
        trip: ExprId,
        (height, trips, states): (ExprId, ExprId, &[ExprId]),
    ) -> Result<(Vec<ExprId>, Vec<ExprId>)> {
        let top = add(graph, height, -1)?;
        let start = read_row(graph, trips, top, &TensorType::scalar(COUNT))?;
        let mut initial = vec![start, height, trips];
        initial.extend(states);
        for (&state, &rows) in self.kept.iter().zip(states) {
            let ty = &self.op.body.inputs()[state];
            initial.push(read_row(graph, rows, top, ty)?);
        }
        let mut results = build_loop(
            graph,
            &initial,
            |graph, values| Ok(graph.less(values[0], trip)?),
            |graph, values| self.leg(graph, trip, values),
        )?;
        let values = results.split_off(3 + states.len());
        // The state before this very trip is of no more use.
        let spent = graph.equal(start, trip)?;
        let spent = graph.as_type(spent, COUNT)?;
        let height = graph.subtract(results[1], spent)?;
        let stack = [height].into_iter().chain(results[2..].iter().copied()).collect();
        Ok((stack, values))
    }

    /// One leg: from trip `values[0]` to half of the way to `trip`, or all of it when the stack
    /// is full. The end of a leg that is not `trip` itself goes on the stack.
    fn leg(&self, graph: &mut Graph, trip: ExprId, values: &[ExprId]) -> Result<Vec<ExprId>> {
        let (here, height, trips) = (values[0], values[1], values[2]);
        let (stacked, states) = values[3..].split_at(self.kept.len());
        let way = graph.subtract(trip, here)?;
        let way = add(graph, way, 1)?;
        let two = integer(graph, 2)?;
        let half = graph.quotient(way, two)?;
        let middle = graph.add(here, half)?;
        let capacity = integer(graph, emit::signed(CHECKPOINTS))?;
        let fits = graph.less(height, capacity)?;
        let goal = graph.select(fits, middle, trip)?;

        let initial: Vec<ExprId> = [here].iter().chain(states).copied().collect();
        let reached = build_loop(
            graph,
            &initial,
            |graph, values| Ok(graph.less(values[0], goal)?),
            |graph, values| {
                let mut next = vec![add(graph, values[0], 1)?];
                let arguments = self.arguments(&self.kept, &values[1..], &[]);
                next.extend(splice(&self.op.body, graph, &arguments, &self.kept, Hooks::Drop)?);
                Ok(next)
            },
        )?;
        let pushed = graph.less(goal, trip)?;
        let pushed = graph.as_type(pushed, COUNT)?;
        let mut next =
            vec![goal, graph.add(height, pushed)?, write_row(graph, trips, height, goal)?];
        for (&rows, &value) in stacked.iter().zip(&reached[1..]) {
            next.push(write_row(graph, rows, height, value)?);
        }
        next.extend(&reached[1..]);
        Ok(next)
    }
}

/// The states that a body needs, over any number of trips, to compute these and itself.
fn needed_states(body: &Program, mut needed: Vec<bool>) -> Vec<usize> {
    loop {
        let outputs: Vec<ExprId> = body
            .outputs()
            .iter()
            .zip(&needed)
            .filter_map(|(&output, &needed)| needed.then_some(output))
            .collect();
        let reachable = body.graph().reachable(&outputs);
        let mut grew = false;
        for (needed, &parameter) in needed.iter_mut().zip(body.parameters()) {
            grew |= reachable.contains(parameter) && !*needed;
            *needed |= reachable.contains(parameter);
        }
        if !grew {
            return (0..needed.len()).filter(|&state| needed[state]).collect();
        }
    }
}

/// Traces a loop.
fn build_loop(
    graph: &mut Graph,
    initial: &[ExprId],
    condition: impl FnOnce(&mut Graph, &[ExprId]) -> Result<ExprId>,
    body: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
) -> Result<Vec<ExprId>, GradError> {
    let mark = graph.mark();
    let types: Vec<TensorType> = initial.iter().map(|&id| graph.tensor_type(id).clone()).collect();
    let scope = graph.open_scope(&types);
    let condition = condition(graph, &scope.parameters)?;
    let condition = graph.traced(mark, vec![condition]);
    let body = body(graph, &scope.parameters)?;
    let body = graph.traced(mark, body);
    Ok(graph.while_loop(mark, &scope, initial, condition, body)?)
}

fn integer(graph: &mut Graph, value: i64) -> Result<ExprId> {
    Ok(graph.scalar_constant(Scalar::Int(value), COUNT)?)
}

fn add(graph: &mut Graph, x: ExprId, value: i64) -> Result<ExprId> {
    let value = integer(graph, value)?;
    Ok(graph.add(x, value)?)
}

/// A value under a leading axis of size 1.
fn as_row(graph: &mut Graph, value: ExprId) -> Result<ExprId> {
    let mut shape = graph.shape(value).clone();
    shape.insert(0, 1);
    Ok(emit::reshape(graph, value, shape)?)
}

/// Places along the first axis are dynamic, along all others the beginning.
fn row_starts(rank: usize) -> Box<[Start]> {
    (0..rank).map(|axis| if axis == 0 { Start::Dynamic } else { Start::Static(0) }).collect()
}

/// A row of a stack, as a value of a type.
fn read_row(graph: &mut Graph, rows: ExprId, at: ExprId, ty: &TensorType) -> Result<ExprId> {
    let mut lengths = graph.shape(rows).as_slice().to_vec();
    lengths[0] = 1;
    let rank = lengths.len();
    let strides = vec![1; rank].into();
    let slice = Slice { starts: row_starts(rank), lengths: lengths.into(), strides };
    let row = graph.make(Op::Slice(Box::new(slice)), &[rows, at])?;
    let value = emit::reshape(graph, row, ty.shape.clone())?;
    Ok(emit::named(graph, value, ty.names.clone())?)
}

/// A stack with one row replaced.
fn write_row(graph: &mut Graph, rows: ExprId, at: ExprId, value: ExprId) -> Result<ExprId> {
    let value = emit::plain(graph, value)?;
    let row = as_row(graph, value)?;
    let starts = row_starts(graph.shape(rows).rank());
    Ok(graph.make(Op::PutSlice(starts), &[rows, row, at])?)
}
