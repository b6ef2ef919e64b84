//! Write-only states: each iteration writes one row, and no iteration reads them.
//!
//! The results of a scan are such states. In the backward loop, the cotangent of a row is read and
//! then cleared. No iteration reads a row that another iteration has cleared, so the backward loop
//! reads the cotangent as a capture instead of carrying it. The written rows are cleared once,
//! after the loop.

use nxla_expr::{BinaryOp, Counter, ExprId, Graph, Op, Program, Start};

use super::LoopDerivative;
use crate::builder::full;
use crate::error::Result;

/// The range of rows of a state that a loop writes.
#[derive(Clone, Copy)]
pub(super) struct CollectedRows {
    first: i64,
    count: usize,
}

/// Returns for each carried state the rows that the loop writes, or `None` if the state is not
/// write-only.
pub(super) fn find_write_only(
    derivative: &LoopDerivative<'_>,
    graph: &Graph,
    counter: Counter,
) -> Vec<Option<CollectedRows>> {
    let states =
        derivative.carried.iter().map(|&(state, _)| rows(derivative, graph, counter, state));
    states.collect()
}

fn rows(
    derivative: &LoopDerivative<'_>,
    graph: &Graph,
    counter: Counter,
    state: usize,
) -> Option<CollectedRows> {
    let body = &derivative.op.body;
    let inside = body.graph();
    let output = body.outputs()[state];
    let Op::PutSlice(starts) = inside.op(output) else { return None };
    let &[collected, row, at] = inside.operands(output) else { return None };
    let [Start::Dynamic, rest @ ..] = &**starts else { return None };
    let (size, row) = (inside.shape(collected).as_slice(), inside.shape(row).as_slice());
    let is_row = rest.iter().all(|start| *start == Start::Static(0))
        && row.first() == Some(&1)
        && row.get(1..) == size.get(1..);
    let own = body.parameters()[state];
    if !is_row || collected != own || !counter.is_exact || uses(body, own) != 1 {
        return None;
    }
    let index = AffineIndex::of(derivative, graph, at, counter.state)?;
    let last_trip = i64::try_from(counter.trips).ok()?.checked_sub(1)?;
    let last = counter.first.checked_add(counter.step.checked_mul(last_trip)?)?;
    let (one, other) = (index.at(counter.first)?, index.at(last)?);
    let (first, last) = (one.min(other), one.max(other));
    // The rows must be contiguous, and out-of-range indices would be clamped to other rows.
    let is_dense = last - first == last_trip;
    let fits = first >= 0 && usize::try_from(last).is_ok_and(|last| last < size[0]);
    (is_dense && fits).then_some(CollectedRows { first, count: counter.trips })
}

/// Counts the uses of a node as an operand or an output.
fn uses(program: &Program, id: ExprId) -> usize {
    let graph = program.graph();
    let operands = graph.ids().flat_map(|user| graph.operands(user));
    operands.chain(program.outputs()).filter(|&&used| used == id).count()
}

/// A row index as a function of the counter: plus or minus the counter, plus a constant.
struct AffineIndex {
    is_negative: bool,
    more: i64,
}

impl AffineIndex {
    fn of(
        derivative: &LoopDerivative<'_>,
        graph: &Graph,
        mut id: ExprId,
        counter: usize,
    ) -> Option<Self> {
        let body = &derivative.op.body;
        let inside = body.graph();
        let number = |id: ExprId| {
            let Op::Parameter(parameter) = inside.op(id) else { return integer(inside, id) };
            // The value of a state changes in each iteration.
            let input = parameter.index as usize;
            (input >= derivative.op.state).then(|| integer(graph, derivative.operands[input]))?
        };
        let own = body.parameters()[counter];
        let mut index = Self { is_negative: false, more: 0 };
        while id != own {
            // A narrower integer dtype could wrap around within the loop.
            let dtype = inside.dtype(id);
            if !dtype.is_integer() || dtype.size() < 4 {
                return None;
            }
            let operands = inside.operands(id);
            if matches!(inside.op(id), Op::AsType(_)) {
                id = operands[0];
                continue;
            }
            let Op::Binary(op) = inside.op(id) else { return None };
            let subtracts = matches!(op, BinaryOp::Subtract);
            if !subtracts && !matches!(op, BinaryOp::Add) {
                return None;
            }
            let (next, is_taken, more) = match number(operands[0]) {
                Some(more) => (operands[1], subtracts, more),
                None if subtracts => (operands[0], false, number(operands[1])?.checked_neg()?),
                None => (operands[0], false, number(operands[1])?),
            };
            let more = if index.is_negative { more.checked_neg()? } else { more };
            index.more = index.more.checked_add(more)?;
            index.is_negative ^= is_taken;
            id = next;
        }
        Some(index)
    }

    fn at(&self, counter: i64) -> Option<i64> {
        let counter = if self.is_negative { counter.checked_neg()? } else { counter };
        counter.checked_add(self.more)
    }
}

/// Returns the value of an integer constant.
fn integer(graph: &Graph, id: ExprId) -> Option<i64> {
    let Op::Constant(constant) = graph.op(id) else { return None };
    if constant.ty.dtype.is_float() { None } else { constant.value.as_i64() }
}

impl CollectedRows {
    /// Returns the cotangent of a state with the written rows cleared.
    pub(super) fn clear(self, graph: &mut Graph, cotangent: ExprId) -> Result<ExprId> {
        let mut shape = graph.shape(cotangent).clone();
        let mut starts = vec![Start::Static(0); shape.rank()];
        starts[0] = Start::Static(self.first);
        shape = std::iter::once(self.count).chain(shape.iter().skip(1).copied()).collect();
        let zeros = full(graph, 0.0, graph.dtype(cotangent), &shape)?;
        Ok(graph.make(Op::PutSlice(starts.into()), &[cotangent, zeros])?)
    }
}
