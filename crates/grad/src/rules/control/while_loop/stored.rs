//! The derivative of a loop that stores what it needs of every trip.
//!
//! Where the number of trips is known or bounded, one loop goes forward and keeps what the derivative of each
//! trip has to know, in tensors with a row for each trip; another goes back and reads the rows. The
//! first also computes what the loop itself computes, and takes its place.
//!
//! What the derivative of a trip has to know is found by cutting it in two at the cotangents
//! (`maps::halve`). What of this no state changes is computed once, outside. What only depends on
//! the counter is computed again: the element of a sequence that a trip reads need not be copied.

use std::sync::Arc;

use nxla_expr::{Counter, ExprId, Graph, Op, Program, TensorType};
use nxla_tensor::Scalar;

use super::collected::collected;
use super::products::{Known, Products, no_rows};
use super::{COUNT, Found, Plan, Way, add, build_loop, integer, read_row, write_row};
use crate::emit;
use crate::error::Result;
use crate::maps::{Halves, halve, whole};
use crate::region::{Hooks, splice};

/// How the derivative of a trip comes to something that it has to know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Computed once, before both loops.
    Outside,
    /// Computed again from the counter.
    Again,
    /// Kept by the first loop.
    Stored,
}

/// What is kept of each trip.
pub(super) struct Stored<'a> {
    plan: &'a Plan<'a>,
    counter: Counter,
    halves: Halves,
    sources: Vec<Source>,
    types: Vec<TensorType>,
    /// What of the way back is left to products after it.
    products: Option<Products>,
}

impl<'a> Stored<'a> {
    /// Of `all` that the derivative of a trip has to know, or of the states before it. A derivative
    /// that shows values to the host runs where it is written.
    pub(super) fn new(plan: &'a Plan<'a>, counter: Counter, all: bool) -> Result<Self> {
        let first = plan.op.body.inputs().len();
        let in_halves = all && plan.backward.effects().is_empty();
        let halves = match in_halves {
            true => {
                let outputs: Vec<usize> = (0..plan.backward.outputs().len()).collect();
                halve(&plan.backward, first, &outputs)?
            }
            false => whole(&plan.backward, first)?,
        };
        let sources = sources(&halves.known, plan.op.state, counter.state);
        let types: Vec<TensorType> = halves.known.output_types().cloned().collect();
        let mut stored = Self { plan, counter, halves, sources, types, products: None };
        if in_halves && counter.trips > 1 {
            let room = plan.op.replay.bytes.saturating_sub(stored.bytes().unwrap_or(u64::MAX));
            let room = usize::try_from(room).unwrap_or(usize::MAX) / counter.trips;
            stored.products = stored.without_sums(room)?;
        }
        Ok(stored)
    }

    /// What is left to products, where these are of the types of the sums.
    fn without_sums(&self, room: usize) -> Result<Option<Products>> {
        let known = self.sources.iter().map(|source| match source {
            Source::Stored => Known::Rows,
            Source::Again => Known::EachTrip,
            Source::Outside => Known::Same,
        });
        let known: Vec<Known> = known.collect();
        let (rest, carried) = (&self.halves.rest, self.plan.carried.len());
        let sums = self.plan.captures.iter().map(|(_, ty)| &ty.shape);
        let contributions = rest.output_types().skip(carried).map(|ty| &ty.shape);
        match sums.eq(contributions) {
            true => Products::new(rest, carried, &known, room),
            false => Ok(None),
        }
    }

    /// How many bytes the rows take.
    pub(super) fn bytes(&self) -> Option<u64> {
        let stored = self.types.iter().zip(&self.sources).filter(|(_, it)| **it == Source::Stored);
        let bytes: usize = stored.map(|(ty, _)| ty.shape.size() * ty.dtype.size()).sum();
        bytes.checked_mul(self.counter.trips).map(|bytes| bytes as u64)
    }

    /// Builds both loops.
    pub(super) fn emit(&self, graph: &mut Graph, parts: &[Option<ExprId>]) -> Result<Found> {
        let (results, trips, rows) = self.forward(graph)?;
        let trips = match self.counter.is_exact {
            true => integer(graph, emit::signed(self.counter.trips))?,
            false => trips,
        };
        let cotangents = self.backward(graph, parts, trips, &rows)?;
        Ok(Found { results: self.plan.is_quiet().then_some(results), cotangents })
    }

    /// Which of the things to know come from somewhere.
    fn positions(&self, source: Source) -> Vec<usize> {
        (0..self.sources.len()).filter(|&at| self.sources[at] == source).collect()
    }

    /// The loop itself, which also fills the rows. Gives its results, the number of trips, and the
    /// rows.
    fn forward(&self, graph: &mut Graph) -> Result<(Vec<ExprId>, ExprId, Vec<ExprId>)> {
        let Plan { op, operands, .. } = self.plan;
        let stored = self.positions(Source::Stored);
        let mut initial: Vec<ExprId> = operands[..op.state].to_vec();
        initial.push(integer(graph, 0)?);
        for &at in &stored {
            let ty = &self.types[at];
            let rows = std::iter::once(self.counter.trips).chain(ty.shape.iter().copied());
            let ty = TensorType::new(ty.dtype, rows.collect::<nxla_tensor::Shape>());
            initial.push(graph.constant(Scalar::zero(ty.dtype), ty)?);
        }
        let all: Vec<usize> = (0..op.state).collect();
        let mut results = build_loop(
            graph,
            self.plan.inner(),
            &initial,
            |graph, values| {
                let arguments = self.plan.arguments(&all, &values[..op.state], &[]);
                Ok(splice(&op.condition, graph, &arguments, &[0], Hooks::Drop)?[0])
            },
            |graph, values| {
                let (states, rest) = values.split_at(op.state);
                let (trip, rows) = (rest[0], &rest[1..]);
                let arguments = self.plan.arguments(&all, states, &[]);
                let mut next = splice(&op.body, graph, &arguments, &all, Hooks::Drop)?;
                let kept = splice(&self.halves.known, graph, &arguments, &stored, Hooks::Drop)?;
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

    /// The loop that goes back.
    fn backward(
        &self,
        graph: &mut Graph,
        parts: &[Option<ExprId>],
        trips: ExprId,
        rows: &[ExprId],
    ) -> Result<Vec<(usize, ExprId)>> {
        let outside = self.outside(graph)?;
        let last = add(graph, trips, -1)?;
        let collected = collected(self.plan, graph, self.counter);
        let Some(products) = &self.products else {
            return self.plan.go_back(graph, parts, vec![last], &collected, |graph, state| {
                self.trip_back(graph, state, &outside, rows)
            });
        };
        let mut behind = Vec::with_capacity(products.kept.len());
        for ty in &products.kept {
            behind.push(no_rows(graph, self.counter.trips, ty)?);
        }
        let (before, summed) = (vec![last], &products.summed[..]);
        let way = Way { before, summed, behind, collected: &collected };
        let mut results = self.plan.run_back(graph, parts, way, |graph, state| {
            self.trip_back(graph, state, &outside, rows)
        })?;
        let carried = self.plan.carried.len();
        let kept = results.split_off(carried + products.summed.len());
        let sums = results.split_off(carried);
        let states = self.plan.carried.iter().map(|(state, _)| *state);
        let mut found: Vec<(usize, ExprId)> = states.zip(results).collect();
        let captures = &self.plan.captures;
        found.extend(products.summed.iter().map(|&at| captures[at].0).zip(sums));
        let mut rows = rows.iter().copied();
        let known: Vec<Option<ExprId>> = (self.sources.iter())
            .map(|source| if *source == Source::Stored { rows.next() } else { None })
            .collect();
        for (at, product) in products.emit(graph, &known, &kept)? {
            let (position, ty) = &captures[at];
            found.push((*position, emit::cast(graph, product, ty.dtype)?));
        }
        Ok(found)
    }

    /// What no state changes.
    fn outside(&self, graph: &mut Graph) -> Result<Vec<ExprId>> {
        let arguments = self.plan.arguments(&[], &[], &[]);
        let wanted = self.positions(Source::Outside);
        splice(&self.halves.known, graph, &arguments, &wanted, Hooks::Drop)
    }

    /// Undoes one trip.
    fn trip_back(
        &self,
        graph: &mut Graph,
        state: &[ExprId],
        outside: &[ExprId],
        rows: &[ExprId],
    ) -> Result<Vec<ExprId>> {
        let (trip, values) = (state[0], &state[1..]);
        let (cotangents, sums) = values.split_at(self.plan.carried.len());
        let again = self.again(graph, trip)?;
        let (mut outside, mut again) = (outside.iter(), again.into_iter());
        let mut rows = rows.iter();
        let mut arguments: Vec<Option<ExprId>> = Vec::new();
        for (source, ty) in self.sources.iter().zip(&self.types) {
            arguments.push(match source {
                Source::Outside => outside.next().copied(),
                Source::Again => again.next(),
                Source::Stored => match rows.next() {
                    Some(&rows) => Some(read_row(graph, rows, trip, ty)?),
                    None => None,
                },
            });
        }
        arguments.extend(cotangents.iter().copied().map(Some));
        let rest = self.products.as_ref().map_or(&self.halves.rest, |products| &products.trip);
        let outputs: Vec<usize> = (0..rest.outputs().len()).collect();
        let mut found = splice(rest, graph, &arguments, &outputs, Hooks::Keep)?;
        let kept = self.products.as_ref().map_or(0, |products| products.kept.len());
        let kept = found.split_off(found.len() - kept);
        let (sums, stacks) = sums.split_at(sums.len() - kept.len());
        let (cotangents, parts) = found.split_at(self.plan.carried.len());
        let mut next = vec![add(graph, trip, -1)?];
        next.extend(cotangents);
        for (&sum, &part) in sums.iter().zip(parts) {
            next.push(emit::accumulate(graph, sum, part)?);
        }
        for (&stack, value) in stacks.iter().zip(kept) {
            next.push(write_row(graph, stack, trip, value)?);
        }
        Ok(next)
    }

    /// What follows from the counter alone, for a trip.
    fn again(&self, graph: &mut Graph, trip: ExprId) -> Result<Vec<ExprId>> {
        let wanted = self.positions(Source::Again);
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let Counter { state, first, step, .. } = self.counter;
        let step = graph.scalar_constant(Scalar::Int(step), COUNT)?;
        let way = graph.multiply(trip, step)?;
        let place = add(graph, way, first)?;
        let dtype = self.plan.op.body.inputs()[state].dtype;
        let place = graph.as_type(place, dtype)?;
        let arguments = self.plan.arguments(&[state], &[place], &[]);
        splice(&self.halves.known, graph, &arguments, &wanted, Hooks::Drop)
    }
}

/// Where each output of a program of states and captures comes from.
fn sources(known: &Arc<Program>, states: usize, counter: usize) -> Vec<Source> {
    let graph = known.graph();
    let mut sources = vec![Source::Outside; graph.len()];
    for id in graph.ids() {
        let own = match graph.op(id) {
            Op::Parameter(parameter) => match parameter.index as usize {
                index if index == counter => Source::Again,
                index if index < states => Source::Stored,
                _ => Source::Outside,
            },
            op => {
                let operands = graph.operands(id);
                let has =
                    |source| operands.iter().any(|operand| sources[operand.index()] == source);
                let is_light = is_light(op) || is_scalar(graph, id);
                match (has(Source::Stored), has(Source::Again)) {
                    (true, _) => Source::Stored,
                    (false, true) if is_light => Source::Again,
                    (false, true) => Source::Stored,
                    (false, false) => Source::Outside,
                }
            }
        };
        sources[id.index()] = own;
    }
    known.outputs().iter().map(|output| sources[output.index()]).collect()
}

/// Whether an op only reads elements from another place, which costs no more than reading a row.
fn is_light(op: &Op) -> bool {
    matches!(op, Op::Slice(_) | Op::Reshape(_) | Op::Squeeze(_) | Op::Gather(_) | Op::AsType(_))
}

fn is_scalar(graph: &Graph, id: ExprId) -> bool {
    graph.ty(id).as_tensor().is_some_and(|ty| ty.shape.rank() == 0)
}
