//! Which steps run together on tiles of rows, see [`Rows`](crate::rows::Rows).
//!
//! One pass over the steps. At most one set of steps is open at a time; a step joins it if it goes
//! over the same rows, and reads of what the set makes only the row that it computes. Others come
//! before the set, as long as they read nothing of it. A set that turns out to be a single step, or
//! to reduce nothing, is written as it was.

use nxla_expr::{Graph, Op, Reduce, ReduceOp, TensorType};
use rustc_hash::FxHashMap;

use super::build::{Built, ValueId};
use super::whole::{Whole, taken_apart, uses, write};
use super::{Action, Step, tiles};
use crate::elementwise::{Access, Code};
use crate::rows::{LONGEST, Lies};
use crate::{long, reduce};

/// Steps that come before a set although they stand behind its first one. What they make lives
/// longer than it would.
const MOST_SKIPPED: usize = 4;

/// Steps of a set, so that the tiles alive at a time stay few.
const MOST_PARTS: usize = 32;

/// Rows from which on all threads have enough of them, and elements which one thread does as well.
const MANY_ROWS: usize = 16;
const FEW_ELEMENTS: usize = 1 << 14;

/// Elements of a row of an open set, or of all its rows, of a tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// One.
    Narrow,
    /// As many as there are columns.
    Wide,
}

/// A set of steps that has not been written.
#[derive(Default)]
struct Open {
    parts: Vec<(Whole, Width)>,
    /// Elements of a wide tensor.
    elements: usize,
    /// Known from the first reduction on.
    rows: Option<(usize, usize)>,
    /// What it makes.
    made: FxHashMap<ValueId, Width>,
    skipped: usize,
}

/// Puts steps together that begin with one of more than `least` elements.
pub(super) fn join(graph: &Graph, built: Built, least: usize) -> Built {
    let uses = uses(&built);
    let (built, wholes) = taken_apart(built);
    let mut joiner = Joiner { graph, uses, built, least, open: Open::default() };
    wholes.into_iter().for_each(|whole| joiner.visit(whole));
    joiner.close();
    joiner.built
}

struct Joiner<'a> {
    graph: &'a Graph,
    uses: Vec<u32>,
    built: Built,
    least: usize,
    open: Open,
}

impl Joiner<'_> {
    fn visit(&mut self, whole: Whole) {
        if let Some(width) = self.joined(&whole) {
            return self.push(whole, width);
        }
        let reads = whole.args.iter().any(|value| self.open.made.contains_key(value));
        let begins = self.begins(&whole);
        let is_begun = self.open.rows.is_some();
        let op = self.graph.op(whole.step.id);
        if reads || op.has_effects() || self.open.skipped == MOST_SKIPPED || (begins && !is_begun) {
            self.close();
        }
        if !begins || !self.open.parts.is_empty() {
            self.open.skipped += usize::from(!matches!(op, Op::Constant(_) | Op::Tensor(_)));
            return self.write(whole);
        }
        self.open.elements = self.elements(&whole);
        match self.joined(&whole) {
            Some(width) => self.push(whole, width),
            None => self.write(whole),
        }
    }

    /// Whether a step may be the first of a set.
    fn begins(&self, whole: &Whole) -> bool {
        match &whole.step.action {
            Action::Code(_) => self.elements(whole) > self.least,
            Action::Op => {
                let is_reduction = matches!(self.graph.op(whole.step.id), Op::Reduce(..));
                is_reduction && (self.least == 1 || self.elements(whole) > self.least)
            }
            Action::Written(_) | Action::Regions(_) | Action::Rows(_) | Action::Totals(_) => false,
        }
    }

    /// The elements that a step goes over.
    fn elements(&self, whole: &Whole) -> usize {
        match &whole.step.action {
            Action::Code(code) => code.shape.size(),
            _ => self.graph.shape(self.graph.operands(whole.step.id)[0]).size(),
        }
    }

    /// Whether a step can join the open set, and the width of what it makes.
    fn joined(&mut self, whole: &Whole) -> Option<Width> {
        if self.open.parts.len() == MOST_PARTS {
            return None;
        }
        match &whole.step.action {
            Action::Code(code) => self.code_joined(code, whole),
            Action::Op => self.reduction_joined(whole),
            Action::Written(_) | Action::Regions(_) | Action::Rows(_) | Action::Totals(_) => None,
        }
    }

    fn code_joined(&self, code: &Code, whole: &Whole) -> Option<Width> {
        let size = code.shape.size();
        let width = match self.open.rows {
            _ if size == self.open.elements => Width::Wide,
            Some((rows, _)) if size == rows => Width::Narrow,
            _ => return None,
        };
        let fits = |(value, access): (&ValueId, &Access)| {
            let Some(&made) = self.open.made.get(value) else { return true };
            let Some(rows) = self.open.rows else {
                // All that is made is wide, as this is.
                return matches!(access, Access::Same);
            };
            match Lies::of(access, rows) {
                Lies::Same => made == width,
                Lies::Single => made == Width::Narrow && rows.0 == 1,
                Lies::ByRow => made == Width::Narrow && width == Width::Wide,
                Lies::ByColumn | Lies::Strided => false,
            }
        };
        let accesses = code.inputs.iter().map(|input| &input.access);
        whole.args.iter().zip(accesses).all(fits).then_some(width)
    }

    fn reduction_joined(&mut self, whole: &Whole) -> Option<Width> {
        let (op, attributes, x, ty) = self.reduction(whole)?;
        let (rows, columns) = reduce::by_row(op, attributes, x, ty)?;
        let is_worth_it = rows > 0
            && columns > 1
            && columns <= LONGEST
            && (rows >= MANY_ROWS || rows * columns <= FEW_ELEMENTS);
        let is_same = match self.open.rows {
            Some(known) => known == (rows, columns),
            None => x.shape.size() == self.open.elements,
        };
        let is_wide = self.open.made.get(&whole.args[0]).is_none_or(|&width| width == Width::Wide);
        if !is_worth_it || !is_same || !is_wide {
            return None;
        }
        self.open.rows = Some((rows, columns));
        Some(Width::Narrow)
    }

    /// A reduction with the types of its operand and its result.
    fn reduction(&self, whole: &Whole) -> Option<(ReduceOp, &Reduce, &TensorType, &TensorType)> {
        let Op::Reduce(op, attributes) = self.graph.op(whole.step.id) else { return None };
        let x = self.graph.tensor_type(self.graph.operands(whole.step.id)[0]);
        Some((*op, attributes, x, self.graph.tensor_type(whole.step.id)))
    }

    fn push(&mut self, whole: Whole, width: Width) {
        self.open.made.extend(whole.results.iter().map(|&value| (value, width)));
        self.open.parts.push((whole, width));
    }

    fn write(&mut self, whole: Whole) {
        write(&mut self.built, whole);
    }

    /// Writes the open set.
    fn close(&mut self) {
        let Open { parts, rows, .. } = std::mem::take(&mut self.open);
        let Some(rows) = rows.filter(|_| parts.len() > 1) else {
            return parts.into_iter().for_each(|(whole, _)| self.write(whole));
        };
        let results = self.seen_outside(&parts);
        let id = parts.last().expect("there are several").0.step.id;
        let (rows, inputs) = tiles::write(self.graph, parts, rows, &results);
        let steps = (rows.rows * rows.columns).saturating_mul(rows.cost);
        let is_long = long::is_long_code(steps);
        let action = Action::Rows(Box::new(rows));
        let step = Step { id, first_arg: 0, first_target: 0, is_long, action };
        self.write(Whole { step, args: inputs.into(), results: results.into() });
    }

    /// What a set makes for others, in order.
    fn seen_outside(&self, parts: &[(Whole, Width)]) -> Vec<ValueId> {
        let mut inside: FxHashMap<ValueId, u32> = FxHashMap::default();
        for &value in parts.iter().flat_map(|(whole, _)| &whole.args) {
            *inside.entry(value).or_default() += 1;
        }
        let is_seen =
            |value: &ValueId| self.uses[*value as usize] > inside.get(value).copied().unwrap_or(0);
        parts.iter().flat_map(|(whole, _)| &whole.results).copied().filter(is_seen).collect()
    }
}
