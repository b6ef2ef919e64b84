//! The derivative of a loop: a loop that goes through the trips backwards.
//!
//! It needs what the derivative of each trip has to know. A loop says ([`Replay`]) which of these ways
//! leads there, or leaves the choice:
//!
//! * All of it is stored as the loop runs (`stored`). That takes a number of trips that is known
//!   while tracing, or bounded, since neither engine has tensors whose size is found out on the way.
//!   A loop that counts tells it ([`counter`]).
//! * The states before each trip are stored, and each trip is computed once more.
//! * The states before some of the trips are kept, and the others are computed again from these
//!   (`slots`). The loop counts its trips while it runs.
//!
//! In each case the loop that keeps something computes what the loop itself computes, and takes its
//! place: it goes forward once. Only states that the derivative of the body, or the body on the way
//! to them, needs are kept; a body that is linear in its state needs none.

mod collected;
mod products;
mod slots;
mod stored;

use std::sync::Arc;

use nxla_expr::{
    ExprId, Graph, Op, Program, Replay, ReplayMethod, Slice, Start, TensorType, While, counter,
};
use nxla_tensor::{DType, Scalar};

use super::wanted;
use crate::active::close_over_trips;
use crate::emit::{self, filled};
use crate::error::{GradError, Result};
use crate::region::{Backward, cotangent_dtype};
use crate::sweep::{Sweep, Visit};

use collected::Rows;
use slots::{FEW, Slots};
use stored::Stored;

/// The dtype that trips are counted in.
const COUNT: DType = DType::S64;

pub(crate) fn rule(sweep: &mut Sweep<'_>, visit: &Visit, op: &While) -> Result<()> {
    let parts = sweep.parts(visit)?;
    let wanted = wanted(sweep, visit);
    let Some(plan) = Plan::new(sweep.graph, op, visit, &parts, &wanted)? else { return Ok(()) };
    let found = plan.differentiate(sweep.graph, visit, &parts)?;
    if let Some(results) = found.results {
        let own = sweep.graph.parts(visit.id)?;
        sweep.replace(own.into_iter().zip(results).collect());
    }
    for (position, part) in found.cotangents {
        sweep.give(visit, position, part)?;
    }
    Ok(())
}

/// What the two loops give.
struct Found {
    /// The results of the loop itself, if they are to be taken from here.
    results: Option<Vec<ExprId>>,
    /// The cotangents of operands, by position.
    cotangents: Vec<(usize, ExprId)>,
}

/// The states of a loop that goes back, beside the cotangents of the carried states.
struct Way<'a> {
    /// What comes first; the trip is the first of all.
    before: Vec<ExprId>,
    /// The captures to which contributions are summed.
    summed: &'a [usize],
    /// What comes last.
    behind: Vec<ExprId>,
    /// For each carried state what the trips write of it, if it only collects: its cotangent stays
    /// outside.
    collected: &'a [Option<Rows>],
}

/// How many bytes a loop of an unknown number of trips keeps, as far as it may.
const OPEN_BYTES: u64 = 1 << 26;

/// The most states that it keeps.
const MANY: usize = 256;

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
        mut backward: Backward,
    ) -> Result<Self> {
        // What a state's cotangent begins as, it is in all trips.
        for (state, ty) in &carried {
            if let Some(position) = sources.iter().position(|input| input == state) {
                backward.hand_out(position, ty.clone());
            }
        }
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

    /// Builds both loops, in the way that the loop wants.
    fn differentiate(
        &self,
        graph: &mut Graph,
        visit: &Visit,
        parts: &[Option<ExprId>],
    ) -> Result<Found> {
        let Replay { method, bytes } = self.op.replay;
        let counter = counter(graph, self.op, self.operands);
        let is_open = matches!(method, ReplayMethod::Auto);
        if let Some(counter) = counter {
            let fits = |stored: &Stored<'_>| !is_open || stored.bytes() <= Some(bytes);
            let ways: &[bool] = match method {
                ReplayMethod::Auto => &[true, false],
                ReplayMethod::Store => &[true],
                ReplayMethod::Recompute => &[false],
                ReplayMethod::Sqrt | ReplayMethod::Log => &[],
            };
            for &all in ways {
                let stored = Stored::new(self, counter, all)?;
                if fits(&stored) {
                    return stored.emit(graph, parts);
                }
            }
        }
        let known = counter.filter(|counter| counter.is_exact).map(|counter| counter.trips);
        let slots = match (method, counter) {
            (ReplayMethod::Store | ReplayMethod::Recompute, _) => {
                let why = "to keep something of each trip for a gradient, their number must be \
                           known or bounded (max_trips); \"log\" keeps a few states";
                return Err(GradError::no_rule(graph, visit.id, why));
            }
            (ReplayMethod::Sqrt, Some(counter)) => Slots::root(self, counter.trips),
            (ReplayMethod::Log, _) => Slots::few(self, FEW),
            (ReplayMethod::Auto | ReplayMethod::Sqrt, _) => {
                let room = bytes.min(OPEN_BYTES) / self.state_bytes().max(1);
                let room = usize::try_from(room).unwrap_or(MANY).clamp(FEW, MANY);
                Slots::few(self, known.unwrap_or(room).min(room))
            }
        };
        slots.emit(graph, parts, known)
    }

    /// What the loops of a derivative keep if they are differentiated in turn. Their trips may be
    /// unknown where those of the loop itself are known.
    fn inner(&self) -> Replay {
        let method = match self.op.replay.method {
            ReplayMethod::Store | ReplayMethod::Recompute => ReplayMethod::Auto,
            method => method,
        };
        Replay { method, ..self.op.replay }
    }

    /// Whether the loop shows nothing to the host, so that another one can take its place.
    fn is_quiet(&self) -> bool {
        self.op.condition.effects().is_empty() && self.op.body.effects().is_empty()
    }

    /// The bytes of the states of one trip that are needed.
    fn state_bytes(&self) -> u64 {
        let types = self.kept.iter().map(|&state| &self.op.body.inputs()[state]);
        types.map(|ty| (ty.shape.size() * ty.dtype.size()) as u64).sum()
    }

    /// Builds the loop that goes back: its states are `before`, the first of which is the trip, then
    /// the cotangents of the carried states and the contributions to the captures. Gives the
    /// cotangents of the operands that have one.
    fn go_back(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        before: Vec<ExprId>,
        collected: &[Option<Rows>],
        trip: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
    ) -> Result<Vec<(usize, ExprId)>> {
        let summed: Vec<usize> = (0..self.captures.len()).collect();
        let way = Way { before, summed: &summed, behind: Vec::new(), collected };
        let results = self.run_back(graph, parts, way, trip)?;
        Ok(self.positions().zip(results).collect())
    }

    /// The same with contributions to some of the captures only, and with states behind them. Gives
    /// what all but the first states end as.
    fn run_back(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        way: Way<'_>,
        trip: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
    ) -> Result<Vec<ExprId>> {
        let Way { before: mut initial, summed, behind, collected } = way;
        let first = initial.len();
        for (state, ty) in &self.carried {
            initial.push(match parts[*state] {
                Some(part) => emit::cast(graph, part, ty.dtype)?,
                None => filled(graph, 0.0, ty.dtype, &ty.shape)?,
            });
        }
        for (_, ty) in summed.iter().map(|&position| &self.captures[position]) {
            initial.push(filled(graph, 0.0, ty.dtype, &ty.shape)?);
        }
        initial.extend(behind);
        let rows = |at: usize| *collected.get(at.checked_sub(first)?)?;
        let inside: Vec<usize> = (0..initial.len()).filter(|&at| rows(at).is_none()).collect();
        let carried: Vec<ExprId> = inside.iter().map(|&at| initial[at]).collect();
        let results = build_loop(
            graph,
            self.inner(),
            &carried,
            |graph, state| {
                let zero = integer(graph, 0)?;
                Ok(graph.greater_equal(state[0], zero)?)
            },
            |graph, state| {
                let mut all = initial.clone();
                inside.iter().zip(state).for_each(|(&at, &value)| all[at] = value);
                let next = trip(graph, &all)?;
                Ok(inside.iter().map(|&at| next[at]).collect())
            },
        )?;
        inside.iter().zip(results).for_each(|(&at, value)| initial[at] = value);
        let mut ends = initial.split_off(first);
        for (cotangent, rows) in ends.iter_mut().zip(collected) {
            if let Some(rows) = rows {
                *cotangent = rows.cleared(graph, *cotangent)?;
            }
        }
        Ok(ends)
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
pub(crate) fn build_loop(
    graph: &mut Graph,
    replay: Replay,
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
    Ok(graph.while_loop_with(mark, &scope, initial, (condition, body), replay)?)
}

pub(crate) fn integer(graph: &mut Graph, value: i64) -> Result<ExprId> {
    Ok(graph.scalar_constant(Scalar::Int(value), COUNT)?)
}

pub(crate) fn add(graph: &mut Graph, x: ExprId, value: i64) -> Result<ExprId> {
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
pub(crate) fn read_row(
    graph: &mut Graph,
    rows: ExprId,
    at: ExprId,
    ty: &TensorType,
) -> Result<ExprId> {
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
