//! Derivatives of loops that store the residuals of every iteration.
//!
//! If the trip count is constant or bounded, the forward loop stores the residuals of each
//! iteration as rows of tensors, and the backward loop reads the rows. The forward loop also
//! computes the results of the original loop and replaces it.
//!
//! Partial evaluation splits the derivative of an iteration at the cotangents (`partial_eval_with`).
//! Residuals that no state affects are hoisted and computed once. Residuals that depend only on the
//! counter are recomputed, so that an element of a sequence is read again instead of being copied.
//! A residual that follows from others by single instructions is recomputed too, because a row
//! would be written and read.

use std::sync::Arc;

use nxla_expr::{Counter, ExprId, Graph, Op, Program, TensorType};
use nxla_tensor::{Scalar, to_i64};

use super::products::{Products, zero_rows};
use super::write_only::find_write_only;
use super::{
    BackwardStates, COUNT, LoopDerivative, LoopGradients, add, integer, read_row, write_row,
};
use crate::builder;
use crate::error::{GradError, Result};
use crate::programs::{PartialEval, partial_eval_with, recompute_all};
use crate::region::{Hooks, splice, splice_all};

/// The strategy for a residual of an iteration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Residual {
    /// Computed once, before both loops.
    Hoisted,
    /// Recomputed from the counter.
    Recomputed,
    /// Stored by the forward loop.
    Stored,
}

/// The values of each iteration that the forward loop stores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// All residuals, or the states if the derivative has hooks, which run in the backward loop.
    Residuals,
    /// The states before the iteration, from which the residuals are recomputed.
    States,
}

/// The derivative of a loop that stores values of each iteration.
pub(super) struct Stored<'a> {
    derivative: &'a LoopDerivative<'a>,
    counter: Counter,
    split: PartialEval,
    sources: Vec<Residual>,
    types: Vec<TensorType>,
    /// The matrix products that are computed after the backward loop.
    products: Products,
}

impl<'a> Stored<'a> {
    pub(super) fn new(
        derivative: &'a LoopDerivative<'a>,
        counter: Counter,
        storage: Storage,
    ) -> Result<Self> {
        let first = derivative.op.body.inputs().len();
        let splits = storage == Storage::Residuals && derivative.backward.effects().is_empty();
        let split = if splits {
            let outputs: Vec<usize> = (0..derivative.backward.outputs().len()).collect();
            partial_eval_with(&derivative.backward, first, &outputs, is_instruction)?
        } else {
            recompute_all(&derivative.backward, first)?
        };
        let sources = classify_residuals(&split.known, derivative.op.state, counter.state);
        let types: Vec<TensorType> = split.known.output_types().cloned().collect();
        let products = Products::none(&split.unknown, derivative.captures.len());
        let mut stored = Self { derivative, counter, split, sources, types, products };
        if splits && counter.trips > 1 {
            let room =
                derivative.op.replay.bytes.saturating_sub(stored.bytes().unwrap_or(u64::MAX));
            let room = usize::try_from(room).unwrap_or(usize::MAX) / counter.trips;
            let (rest, carried) = (&stored.split.unknown, derivative.carried.len());
            let sums = derivative.captures.iter().map(|(_, ty)| &ty.shape);
            if sums.eq(rest.output_types().skip(carried).map(|ty| &ty.shape)) {
                stored.products = Products::find(rest, carried, &stored.sources, room)?;
            }
        }
        Ok(stored)
    }

    /// Returns the size of the stored rows in bytes, or `None` on overflow.
    pub(super) fn bytes(&self) -> Option<u64> {
        let stored =
            self.types.iter().zip(&self.sources).filter(|(_, it)| **it == Residual::Stored);
        let mut bytes = 0_usize;
        for (ty, _) in stored {
            bytes = bytes.checked_add(ty.shape.checked_byte_size(ty.dtype)?)?;
        }
        bytes.checked_mul(self.counter.trips).map(|bytes| bytes as u64)
    }

    /// Builds both loops.
    pub(super) fn build_loops(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
    ) -> Result<LoopGradients> {
        let (results, trips, rows) = self.forward(graph)?;
        let trips =
            if self.counter.is_exact { integer(graph, to_i64(self.counter.trips))? } else { trips };
        let cotangents = self.backward(graph, parts, trips, &rows)?;
        Ok(LoopGradients {
            results: self.derivative.has_no_effects().then_some(results),
            cotangents,
        })
    }

    /// Returns the residuals with a strategy, by position.
    fn positions(&self, source: Residual) -> Vec<usize> {
        (0..self.sources.len()).filter(|&at| self.sources[at] == source).collect()
    }

    /// Builds the forward loop, which computes the results and fills the rows. Returns the results,
    /// the trip count and the rows.
    fn forward(&self, graph: &mut Graph) -> Result<(Vec<ExprId>, ExprId, Vec<ExprId>)> {
        let LoopDerivative { op, operands, .. } = self.derivative;
        let stored = self.positions(Residual::Stored);
        let mut initial: Vec<ExprId> = operands[..op.state].to_vec();
        initial.push(integer(graph, 0)?);
        for &at in &stored {
            initial.push(zero_rows(graph, self.counter.trips, &self.types[at])?);
        }
        let all: Vec<usize> = (0..op.state).collect();
        let mut results = graph.repeat_while::<GradError>(
            &initial,
            self.derivative.nested_replay(),
            |graph, values| {
                let arguments = self.derivative.arguments(&all, &values[..op.state], &[]);
                Ok(splice(&op.condition, graph, &arguments, &[0], Hooks::Drop)?[0])
            },
            |graph, values| {
                let (states, rest) = values.split_at(op.state);
                let (trip, rows) = (rest[0], &rest[1..]);
                let arguments = self.derivative.arguments(&all, states, &[]);
                let mut next = splice(&op.body, graph, &arguments, &all, Hooks::Drop)?;
                let kept = splice(&self.split.known, graph, &arguments, &stored, Hooks::Drop)?;
                next.push(add(graph, trip, 1)?);
                for (&rows, value) in rows.iter().zip(kept) {
                    next.push(write_row(graph, rows, trip, value)?);
                }
                Ok(next)
            },
        )?;
        let rows = results.split_off(op.state + 1);
        let trips = results[op.state];
        results.truncate(op.state);
        Ok((results, trips, rows))
    }

    /// Builds the backward loop.
    fn backward(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        trips: ExprId,
        rows: &[ExprId],
    ) -> Result<Vec<(usize, ExprId)>> {
        let outside = self.hoist(graph)?;
        let last = add(graph, trips, -1)?;
        let collected = find_write_only(self.derivative, graph, self.counter);
        let products = &self.products;
        let mut behind = Vec::with_capacity(products.kept.len());
        for ty in &products.kept {
            behind.push(zero_rows(graph, self.counter.trips, ty)?);
        }
        let (before, summed) = (vec![last], &products.summed[..]);
        let states = BackwardStates { before, summed, behind, collected: &collected };
        let mut results =
            self.derivative.build_backward(graph, parts, states, |graph, state| {
                self.reverse_iteration(graph, state, &outside, rows)
            })?;
        let carried = self.derivative.carried.len();
        let kept = results.split_off(carried + products.summed.len());
        let sums = results.split_off(carried);
        let states = self.derivative.carried.iter().map(|(state, _)| *state);
        let mut found: Vec<(usize, ExprId)> = states.zip(results).collect();
        let captures = &self.derivative.captures;
        found.extend(products.summed.iter().map(|&at| captures[at].0).zip(sums));
        let mut rows = rows.iter().copied();
        let known: Vec<Option<ExprId>> = (self.sources.iter())
            .map(|source| if *source == Residual::Stored { rows.next() } else { None })
            .collect();
        for (at, product) in products.build_products(graph, &known, &kept)? {
            let (position, ty) = &captures[at];
            found.push((*position, builder::cast(graph, product, ty.dtype)?));
        }
        Ok(found)
    }

    /// Computes the residuals that no state affects.
    fn hoist(&self, graph: &mut Graph) -> Result<Vec<ExprId>> {
        let arguments = self.derivative.arguments(&[], &[], &[]);
        let wanted = self.positions(Residual::Hoisted);
        splice(&self.split.known, graph, &arguments, &wanted, Hooks::Drop)
    }

    /// Runs the derivative of one iteration.
    fn reverse_iteration(
        &self,
        graph: &mut Graph,
        state: &[ExprId],
        outside: &[ExprId],
        rows: &[ExprId],
    ) -> Result<Vec<ExprId>> {
        let (trip, values) = (state[0], &state[1..]);
        let (cotangents, sums) = values.split_at(self.derivative.carried.len());
        let again = self.recompute(graph, trip)?;
        let (mut outside, mut again) = (outside.iter(), again.into_iter());
        let mut rows = rows.iter();
        let mut arguments: Vec<Option<ExprId>> = Vec::new();
        for (source, ty) in self.sources.iter().zip(&self.types) {
            arguments.push(match source {
                Residual::Hoisted => outside.next().copied(),
                Residual::Recomputed => again.next(),
                Residual::Stored => match rows.next() {
                    Some(&rows) => Some(read_row(graph, rows, trip, ty)?),
                    None => None,
                },
            });
        }
        arguments.extend(cotangents.iter().copied().map(Some));
        let mut found = splice_all(&self.products.trip, graph, &arguments, Hooks::Keep)?;
        let kept = found.split_off(found.len() - self.products.kept.len());
        let (sums, stacks) = sums.split_at(sums.len() - kept.len());
        let (cotangents, parts) = found.split_at(self.derivative.carried.len());
        let mut next = vec![add(graph, trip, -1)?];
        next.extend(cotangents);
        for (&sum, &part) in sums.iter().zip(parts) {
            next.push(builder::accumulate(graph, sum, part)?);
        }
        for (&stack, value) in stacks.iter().zip(kept) {
            next.push(write_row(graph, stack, trip, value)?);
        }
        Ok(next)
    }

    /// Computes the residuals of an iteration that depend only on the counter.
    fn recompute(&self, graph: &mut Graph, trip: ExprId) -> Result<Vec<ExprId>> {
        let wanted = self.positions(Residual::Recomputed);
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let Counter { state, first, step, .. } = self.counter;
        let step = graph.scalar_constant(Scalar::Int(step), COUNT)?;
        let offset = graph.multiply(trip, step)?;
        let count = add(graph, offset, first)?;
        let dtype = self.derivative.op.body.inputs()[state].dtype;
        let count = graph.as_type(count, dtype)?;
        let arguments = self.derivative.arguments(&[state], &[count], &[]);
        splice(&self.split.known, graph, &arguments, &wanted, Hooks::Drop)
    }
}

/// Returns the strategy for each output of a program of states and captures.
fn classify_residuals(known: &Arc<Program>, states: usize, counter: usize) -> Vec<Residual> {
    let graph = known.graph();
    let mut sources = vec![Residual::Hoisted; graph.len()];
    for id in graph.ids() {
        let own = match graph.op(id) {
            Op::Parameter(parameter) => match parameter.index as usize {
                index if index == counter => Residual::Recomputed,
                index if index < states => Residual::Stored,
                _ => Residual::Hoisted,
            },
            op => {
                let operands = graph.operands(id);
                let has =
                    |source| operands.iter().any(|operand| sources[operand.index()] == source);
                let is_light = is_light(op) || is_scalar(graph, id);
                match (has(Residual::Stored), has(Residual::Recomputed)) {
                    (true, _) => Residual::Stored,
                    (false, true) if is_light => Residual::Recomputed,
                    (false, true) => Residual::Stored,
                    (false, false) => Residual::Hoisted,
                }
            }
        };
        sources[id.index()] = own;
    }
    known.outputs().iter().map(|output| sources[output.index()]).collect()
}

/// Returns whether an op is one instruction for each element.
fn is_instruction(op: &Op) -> bool {
    match op {
        Op::Unary(unary) => unary.operations() == 1,
        Op::Binary(binary) => binary.operations() == 1,
        Op::Select | Op::Clip | Op::AsType(_) | Op::Bitcast(_) => true,
        nxla_expr::outside!(elementwise) => false,
    }
}

/// Returns whether an op only reads elements at another index, which costs no more than reading a
/// row.
fn is_light(op: &Op) -> bool {
    matches!(op, Op::Slice(_) | Op::Reshape(_) | Op::Squeeze(_) | Op::Gather(_) | Op::AsType(_))
}

fn is_scalar(graph: &Graph, id: ExprId) -> bool {
    graph.ty(id).as_tensor().is_some_and(|ty| ty.shape.rank() == 0)
}
