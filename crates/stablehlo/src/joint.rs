//! Reductions of the same rows that one kernel computes.
//!
//! A mean and a variance go over the same rows, and so do the largest of a row and a sum of what is
//! compared with it. By a call for each, every one of them reads the whole tensor from memory. Together
//! they are one call of a program that the evaluator runs row by row, as long as a row is in the cache.

use nxla_expr::{ExprId, Family, Graph, Op, Reduce};
use nxla_tensor::DType;
use rustc_hash::FxHashMap;

use crate::along::{self, MOST_READ};
use crate::context::Cx;
use crate::region::Frame;

/// Elements below which XLA is as fast, rows from which on all threads have some, and elements of a row
/// that the evaluator keeps in the cache.
const LEAST: usize = 1 << 15;
const LEAST_ROWS: usize = 16;
const SHORTEST: usize = 32;
const LONGEST: usize = 1 << 15;

/// Operations that a set takes along.
const MOST_TAKEN: usize = 24;

/// Sets that a reduction is compared with: those that began last.
const MOST_COMPARED: usize = 4;

/// Rows that are reduced.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rows {
    dtype: DType,
    count: usize,
    length: usize,
}

/// Reductions of the same rows, with the element-wise operations between and before them.
pub(crate) struct Set {
    rows: Rows,
    /// The reductions, in order.
    pub(crate) reductions: Vec<ExprId>,
    /// The reductions and what they take along, operands first.
    pub(crate) nodes: Vec<ExprId>,
    /// The tensors of all rows that are read.
    read: Vec<ExprId>,
}

/// The sets of a program, each by its first reduction, where it can be computed.
pub(crate) fn sets(cx: &Cx<'_>, frame: &Frame<'_>) -> FxHashMap<ExprId, Set> {
    // Each device reduces its part by itself.
    if !cx.options.kernels || cx.options.partition.is_some() {
        return FxHashMap::default();
    }
    let (graph, mut sets) = (frame.graph, Vec::<Set>::new());
    for id in graph.ids().filter(|&id| frame.is_used(id)) {
        let Op::Reduce(_, attributes) = graph.op(id) else { continue };
        let Some(rows) = Rows::of(graph, graph.operands(id)[0], attributes) else { continue };
        let last = sets.iter_mut().rev().take(MOST_COMPARED);
        if !last.filter(|set| set.rows == rows).any(|set| set.take(frame, id)) {
            let mut set = Set { rows, reductions: Vec::new(), nodes: Vec::new(), read: Vec::new() };
            if set.take(frame, id) {
                sets.push(set);
            }
        }
    }
    sets.retain(|set| set.reductions.len() > 1);
    sets.into_iter().map(|set| (set.reductions[0], set)).collect()
}

impl Rows {
    /// The rows of a tensor whose last axes are reduced, if kernels pay for them.
    fn of(graph: &Graph, operand: ExprId, attributes: &Reduce) -> Option<Self> {
        let (shape, dtype) = (graph.shape(operand), graph.dtype(operand));
        let kept = shape.rank() - attributes.axes.as_ref().map_or(shape.rank(), |axes| axes.len());
        let are_last =
            attributes.axes.iter().flat_map(|axes| axes.iter()).all(|&axis| axis >= kept);
        let count = shape[..kept].iter().product();
        let length = shape[kept..].iter().product();
        let rows = Self { dtype, count, length };
        let are_known = matches!(dtype, DType::F32 | DType::F64) && are_last;
        let pays = shape.size() >= LEAST && count >= LEAST_ROWS;
        (are_known && pays && (SHORTEST..=LONGEST).contains(&length)).then_some(rows)
    }

    fn size(self) -> usize {
        self.count * self.length
    }
}

impl Set {
    /// Takes a reduction along with what it needs of the set, or with what it reads as the set does;
    /// whether it could.
    fn take(&mut self, frame: &Frame<'_>, id: ExprId) -> bool {
        let Some(mut needed) = self.needed(frame, id) else { return false };
        let is_first = self.reductions.is_empty();
        let shares = needed.of_the_set || needed.read.iter().any(|id| self.read.contains(id));
        let is_new = |id: &ExprId| !self.read.contains(id);
        needed.read.retain(is_new);
        let fits = self.nodes.len() + needed.nodes.len() <= MOST_TAKEN
            && self.read.len() + needed.read.len() <= MOST_READ;
        if !fits || !(is_first || shares) {
            return false;
        }
        self.reductions.push(id);
        self.nodes.extend(needed.nodes);
        self.nodes.push(id);
        // Operands have smaller ids than those who use them.
        self.nodes.sort_unstable();
        self.read.extend(needed.read);
        true
    }

    /// What a reduction needs; `None` if that is not known where the set is computed.
    fn needed(&self, frame: &Frame<'_>, id: ExprId) -> Option<Needed> {
        let graph = frame.graph;
        let first = *self.reductions.first().unwrap_or(&id);
        let mut needed = Needed::default();
        let mut pending = graph.operands(id).to_vec();
        while let Some(id) = pending.pop() {
            if self.nodes.contains(&id) {
                needed.of_the_set = true;
            } else if needed.nodes.contains(&id) || needed.read.contains(&id) {
                continue;
            } else if self.goes_along(frame, id, first) {
                needed.nodes.push(id);
                pending.extend(graph.operands(id));
            } else if id > first {
                return None;
            } else if graph.shape(id).size() == self.rows.size() {
                needed.read.push(id);
            }
            if needed.nodes.len() > MOST_TAKEN {
                return None;
            }
        }
        Some(needed)
    }

    /// Whether the kernel computes a node as well as XLA: what costs little, and what nobody else needs; and
    /// of what has one element for each row all that is made of the set.
    fn goes_along(&self, frame: &Frame<'_>, id: ExprId, first: ExprId) -> bool {
        let graph = frame.graph;
        let is_moved = matches!(graph.op(id), Op::Broadcast(_) | Op::Reshape(_) | Op::Squeeze(_));
        let is_made = id > first && !frame.is_kept(id);
        if graph.shape(id).size() == self.rows.size() {
            return along::goes_along(frame, id) || is_made && is_moved;
        }
        let is_constant = |id: ExprId| matches!(graph.op(id), Op::Constant(_));
        let is_of_dtype = |&x: &ExprId| graph.dtype(x) == self.rows.dtype || is_constant(x);
        let is_row_wise = (graph.op(id).family() == Family::Elementwise || is_moved)
            && graph.operands(id).iter().chain([&id]).all(is_of_dtype);
        is_constant(id) || is_made && graph.shape(id).size() <= self.rows.count && is_row_wise
    }
}

/// What a reduction needs besides the set.
#[derive(Default)]
struct Needed {
    nodes: Vec<ExprId>,
    read: Vec<ExprId>,
    of_the_set: bool,
}
