//! The derivative of a loop: a loop over the iterations in reverse order.
//!
//! The derivative of each iteration needs residuals. The replay method of the loop ([`Replay`])
//! selects one of these strategies:
//!
//! * All residuals are stored while the loop runs (`stored`). The trip count must be constant or
//!   bounded ([`counter`]), because no backend has tensors of dynamic size.
//! * The states before each iteration are stored, and each iteration is recomputed.
//! * The states before some of the iterations are stored, and the other states are recomputed from
//!   them (`slots`). The loop counts its iterations while it runs.
//!
//! In each case, the loop that stores values also computes the results of the original loop and
//! replaces it, so the forward pass runs once. Only states that the derivative of the body or the
//! recomputation needs are stored; a body that is linear in its state needs none.

mod products;
mod slots;
mod stored;
mod write_only;

use std::sync::Arc;

use nxla_expr::{
    ExprId, Graph, Op, Program, Replay, ReplayMethod, SliceAttributes, Start, TensorType, While,
    counter,
};
use nxla_tensor::{DType, Scalar};

use super::operands_to_differentiate;
use crate::active::mark_active_states;
use crate::builder::{self, full};
use crate::error::{GradError, Result};
use crate::needed::needed_loop_inputs;
use crate::region::{Backward, cotangent_dtype};
use crate::reverse::{ReversePass, Visit};

use slots::{FEW, Slots};
use stored::{Storage, Stored};
use write_only::CollectedRows;

/// The dtype of iteration counts.
const COUNT: DType = DType::S64;

pub(crate) fn rule(pass: &mut ReversePass<'_>, visit: &Visit, op: &While) -> Result<()> {
    let parts = pass.parts(visit)?;
    let wanted = operands_to_differentiate(pass, visit);
    let Some(derivative) = LoopDerivative::new(pass.graph, op, visit, &parts, &wanted)? else {
        return Ok(());
    };
    let found = derivative.differentiate(pass.graph, visit, &parts)?;
    if let Some(results) = found.results {
        let own = pass.graph.parts(visit.id)?;
        pass.replace(own.into_iter().zip(results).collect());
    }
    for (position, part) in found.cotangents {
        pass.add_cotangent(visit, position, part)?;
    }
    Ok(())
}

/// The results of differentiating a loop.
struct LoopGradients {
    /// The results of the original loop, if the new forward loop replaces it.
    results: Option<Vec<ExprId>>,
    /// The positions and cotangents of operands.
    cotangents: Vec<(usize, ExprId)>,
}

/// The initial states of the backward loop other than the cotangents of the carried states.
struct BackwardStates<'a> {
    /// The leading states; the first one is the iteration number.
    before: Vec<ExprId>,
    /// The captures whose contributions are summed in the loop.
    summed: &'a [usize],
    /// The trailing states.
    behind: Vec<ExprId>,
    /// For each carried state, the rows that the iterations write if the state is write-only. The
    /// cotangent of such a state is not a state of the backward loop.
    collected: &'a [Option<CollectedRows>],
}

/// The limit in bytes for stored states of a loop with an unknown trip count.
const OPEN_BYTES: u64 = 1 << 26;

/// The limit for the number of stored states of such a loop.
const MANY: usize = 256;

/// The derivative of the body of a loop, with the states and captures that it concerns.
struct LoopDerivative<'a> {
    op: &'a While,
    /// The operands of the loop: initial states, then captures.
    operands: &'a [ExprId],
    /// The derivative of one iteration: `(states, captures, cotangents of the carried states) ->
    /// (cotangents of the carried states, contributions to the captures)`.
    backward: Arc<Program>,
    /// The states that have cotangents, with the types of the cotangents.
    carried: Vec<(usize, TensorType)>,
    /// The captures that have contributions, by operand position, with the types of the
    /// contributions.
    captures: Vec<(usize, TensorType)>,
    /// The states that the derivative of an iteration needs.
    kept: Vec<usize>,
}

impl<'a> LoopDerivative<'a> {
    /// Returns `None` if no operand receives a cotangent.
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
        mark_active_states(&op.body, &mut active);
        let sources: Vec<usize> = (0..active.len()).filter(|&input| active[input]).collect();
        // A state that needs a cotangent in one iteration must have one in all iterations.
        let mut carries: Vec<bool> =
            (0..op.state).map(|state| active[state] && parts[state].is_some()).collect();
        needed_loop_inputs(&op.body, &mut carries);
        let carried: Vec<usize> =
            (0..op.state).filter(|&state| carries[state] && active[state]).collect();
        if carried.is_empty() {
            return Ok(None);
        }
        let around = || parts.iter().flatten().map(|&part| graph.dtype(part));
        let ty = |state: &usize| {
            let ty = &op.body.inputs()[*state];
            TensorType::new(cotangent_dtype(ty.dtype, around()), ty.shape.clone())
        };
        let types: Vec<TensorType> = carried.iter().map(ty).collect();
        let backward = Backward::new(&op.body, &carried, &types, &sources)?;
        let carried = carried.into_iter().zip(types).collect();
        Self::finish(op, &visit.operands, carried, &sources, backward).map(Some)
    }

    fn finish(
        op: &'a While,
        operands: &'a [ExprId],
        carried: Vec<(usize, TensorType)>,
        sources: &[usize],
        mut backward: Backward,
    ) -> Result<Self> {
        // The initial type of a state's cotangent is its type in all iterations.
        for (state, ty) in &carried {
            if let Some(position) = sources.iter().position(|input| input == state) {
                backward.set_type(position, ty.clone());
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
        let kept = marked_states(&op.needed_states(needs));
        Ok(Self { op, operands, backward, carried, captures, kept })
    }

    /// Returns the positions of the operands that receive cotangents.
    fn positions(&self) -> impl Iterator<Item = usize> {
        self.carried.iter().chain(&self.captures).map(|(position, _)| *position)
    }

    /// Builds the forward and the backward loop by the replay method of the loop.
    fn differentiate(
        &self,
        graph: &mut Graph,
        visit: &Visit,
        parts: &[Option<ExprId>],
    ) -> Result<LoopGradients> {
        let Replay { method, bytes } = self.op.replay;
        let counter = counter(graph, self.op, self.operands);
        if counter.is_some_and(|counter| counter.trips == 0) {
            return self.pass_through(graph, parts);
        }
        let is_open = matches!(method, ReplayMethod::Auto);
        if let Some(counter) = counter {
            let fits = |stored: &Stored<'_>| {
                !is_open || stored.bytes().is_some_and(|needed| needed <= bytes)
            };
            let variants: &[Storage] = match method {
                ReplayMethod::Auto => &[Storage::Residuals, Storage::States],
                ReplayMethod::Store => &[Storage::Residuals],
                ReplayMethod::Recompute => &[Storage::States],
                ReplayMethod::Sqrt | ReplayMethod::Log => &[],
            };
            for &storage in variants {
                let stored = Stored::new(self, counter, storage)?;
                if fits(&stored) {
                    return stored.build_loops(graph, parts);
                }
            }
        }
        let known = counter.filter(|counter| counter.is_exact).map(|counter| counter.trips);
        let slots = match (method, counter) {
            (ReplayMethod::Store | ReplayMethod::Recompute, _) => {
                let why = "the number of iterations must be known or bounded, because the gradient \
                           stores values of each iteration; add a counter to the condition, or use \
                           the method \"log\", which stores a few states";
                return Err(GradError::no_rule(graph, visit.id, why));
            }
            (ReplayMethod::Sqrt, Some(counter)) => Slots::with_sqrt(self, counter.trips),
            (ReplayMethod::Log, _) => Slots::with_count(self, FEW),
            (ReplayMethod::Auto | ReplayMethod::Sqrt, _) => {
                let room = bytes.min(OPEN_BYTES) / self.state_bytes().max(1);
                let room = usize::try_from(room).unwrap_or(MANY).clamp(FEW, MANY);
                Slots::with_count(self, known.unwrap_or(room).min(room))
            }
        };
        slots.build_loops(graph, parts, known)
    }

    /// Returns the cotangents of a loop without iterations: its results are its initial states.
    fn pass_through(&self, graph: &mut Graph, parts: &[Option<ExprId>]) -> Result<LoopGradients> {
        let mut cotangents = Vec::new();
        for (state, ty) in &self.carried {
            if let Some(part) = parts[*state] {
                cotangents.push((*state, builder::cast(graph, part, ty.dtype)?));
            }
        }
        Ok(LoopGradients { results: None, cotangents })
    }

    /// Returns the replay method of the new loops, for differentiating them again. The trip count
    /// of a new loop may be unknown even if the count of the original loop is known.
    fn nested_replay(&self) -> Replay {
        let method = match self.op.replay.method {
            ReplayMethod::Store | ReplayMethod::Recompute => ReplayMethod::Auto,
            method => method,
        };
        Replay { method, ..self.op.replay }
    }

    /// Returns whether the loop has no hooks, so that another loop can replace it.
    fn has_no_effects(&self) -> bool {
        self.op.condition.effects().is_empty() && self.op.body.effects().is_empty()
    }

    /// Returns the size in bytes of the needed states of one iteration.
    fn state_bytes(&self) -> u64 {
        let types = self.kept.iter().map(|&state| &self.op.body.inputs()[state]);
        types.map(|ty| ty.byte_size() as u64).fold(0, u64::saturating_add)
    }

    /// Builds the backward loop. Its states are the leading states, the cotangents of the carried
    /// states, the contributions to captures, and the trailing states. Returns the final values of
    /// all states after the leading ones.
    fn build_backward(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        states: BackwardStates<'_>,
        trip: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
    ) -> Result<Vec<ExprId>> {
        let BackwardStates { before: mut initial, summed, behind, collected } = states;
        let first = initial.len();
        for (state, ty) in &self.carried {
            initial.push(match parts[*state] {
                Some(part) => builder::cast(graph, part, ty.dtype)?,
                None => full(graph, 0.0, ty.dtype, &ty.shape)?,
            });
        }
        for (_, ty) in summed.iter().map(|&position| &self.captures[position]) {
            initial.push(full(graph, 0.0, ty.dtype, &ty.shape)?);
        }
        initial.extend(behind);
        let rows = |at: usize| *collected.get(at.checked_sub(first)?)?;
        let inside: Vec<usize> = (0..initial.len()).filter(|&at| rows(at).is_none()).collect();
        let carried: Vec<ExprId> = inside.iter().map(|&at| initial[at]).collect();
        let results = graph.repeat_while::<GradError>(
            &carried,
            self.nested_replay(),
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
                *cotangent = rows.clear(graph, *cotangent)?;
            }
        }
        Ok(ends)
    }

    /// Returns the arguments of a region of the loop: some states, the captures and further values.
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

/// Returns the indices of the marked states.
fn marked_states(is_marked: &[bool]) -> Vec<usize> {
    (0..is_marked.len()).filter(|&state| is_marked[state]).collect()
}

pub(crate) fn integer(graph: &mut Graph, value: i64) -> Result<ExprId> {
    Ok(graph.scalar_constant(Scalar::Int(value), COUNT)?)
}

pub(crate) fn add(graph: &mut Graph, x: ExprId, value: i64) -> Result<ExprId> {
    let value = integer(graph, value)?;
    Ok(graph.add(x, value)?)
}

/// Adds a leading axis of size 1.
fn as_row(graph: &mut Graph, value: ExprId) -> Result<ExprId> {
    let mut shape = graph.shape(value).clone();
    shape.insert(0, 1);
    Ok(builder::reshape(graph, value, shape)?)
}

/// Returns start indices for a row: dynamic along the first axis and zero along the others.
fn row_starts(rank: usize) -> Box<[Start]> {
    (0..rank).map(|axis| if axis == 0 { Start::Dynamic } else { Start::Static(0) }).collect()
}

/// Reads a row of a stack as a value of type `ty`.
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
    let slice = SliceAttributes { starts: row_starts(rank), lengths: lengths.into(), strides };
    let row = graph.make(Op::Slice(Box::new(slice)), &[rows, at])?;
    let value = builder::reshape(graph, row, ty.shape.clone())?;
    Ok(builder::with_names(graph, value, ty.names.clone())?)
}

/// Returns a stack with one row replaced.
fn write_row(graph: &mut Graph, rows: ExprId, at: ExprId, value: ExprId) -> Result<ExprId> {
    let value = builder::strip_names(graph, value)?;
    let row = as_row(graph, value)?;
    let starts = row_starts(graph.shape(rows).rank());
    Ok(graph.make(Op::PutSlice(starts), &[rows, row, at])?)
}
