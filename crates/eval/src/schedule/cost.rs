//! The cost model: rough estimates that decide which steps can be cancelled, and which runs use the pool.
//!
//! The unit is the smallest kind of operation, such as one product and one sum, which takes some
//! quarter of a nanosecond. The operations of ops are columns of the op table and of its structured
//! counterpart, see [`nxla_expr::operations`].

use nxla_expr::{ExprId, Family, Graph, Op, While, counter};

use super::limits::{LONG, POOL_COST};

/// The assumed iterations of a loop whose trip count is unknown. Measured by `benches/python/loops.py`.
const UNKNOWN_TRIPS: f64 = 64.0;

/// Returns true if the op of a node runs so long that a caller may cancel it. Ops that run regions or functions never
/// do: the steps of their regions are checked.
pub(crate) fn is_long(graph: &Graph, id: ExprId) -> bool {
    let op = graph.op(id);
    operations(graph, id) >= LONG && op.regions().is_empty() && !op.has_effects()
}

/// Returns true if element-wise code of this cost, in sixteenths of a nanosecond, runs so long that a caller may cancel
/// it.
pub(crate) fn is_long_body(cost: usize) -> bool {
    body_cost(cost) >= LONG
}

/// Returns true if a run of this cost, in operations, is worth moving to the thread pool.
pub(crate) fn is_large(cost: f64) -> bool {
    cost >= POOL_COST
}

/// The cost of the op of a node, given the cost of its regions, in operations.
pub(super) fn op_cost(graph: &Graph, id: ExprId, regions: f64) -> f64 {
    let op = graph.op(id);
    if let Op::While(op) = op {
        return trips(graph, id, op) * regions;
    }
    // A scatter runs on one thread, so it has no work for other threads.
    let is_serial = matches!(op, Op::IndexedAdd(_) | Op::IndexedPut(_));
    if is_serial { 0.0 } else { operations(graph, id).max(regions) }
}

/// The estimated trip count of a loop. A further condition usually ends a loop long before its bound, which is often
/// far away.
fn trips(graph: &Graph, id: ExprId, op: &While) -> f64 {
    match counter(graph, op, graph.operands(id)) {
        Some(counter) if counter.is_exact => counter.trips as f64,
        Some(bound) => UNKNOWN_TRIPS.min(bound.trips as f64),
        None => UNKNOWN_TRIPS,
    }
}

/// The cost of element-wise code in operations, from its cost in sixteenths of a nanosecond.
pub(super) fn body_cost(cost: usize) -> f64 {
    cost as f64 / 4.0
}

/// The cost of the op of a node, without its regions: its arithmetic, or the elements that it moves if these cost more.
fn operations(graph: &Graph, id: ExprId) -> f64 {
    let op = graph.op(id);
    let arithmetic = nxla_expr::operations(graph, id) as f64;
    let elements = |id: ExprId| {
        let sizes = graph.ty(id).parts().iter().map(|ty| ty.shape.iter().map(|&size| size as f64));
        sizes.map(Iterator::product::<f64>).sum::<f64>()
    };
    let results = elements(id);
    let moved = results + graph.operands(id).iter().map(|&operand| elements(operand)).sum::<f64>();
    match op.family() {
        // A vector unit does a sixteenth of the products at a time, and the table counts products and sums.
        Family::Contract => arithmetic / 32.0,
        // A slice reads only what it copies. Gathers and sorts access memory in random order.
        Family::Index => match op {
            Op::Slice(_) => 2.0 * results,
            Op::PutSlice(_) => moved,
            Op::Gather(_)
            | Op::IndexedAdd(_)
            | Op::IndexedPut(_)
            | Op::Sort(_)
            | Op::Argsort(..) => arithmetic.max(16.0 * moved),
            op @ nxla_expr::outside!(index) => unreachable!("{} is of another family", op.name()),
        },
        Family::Create
        | Family::Elementwise
        | Family::Movement
        | Family::Reduce
        | Family::Window
        | Family::Linalg => arithmetic.max(moved),
        Family::Control => arithmetic,
    }
}
