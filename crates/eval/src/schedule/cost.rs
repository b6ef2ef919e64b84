//! The cost model: rough estimates that decide which steps can be cancelled, and which runs use the pool.
//!
//! The unit is the smallest kind of operation, such as one product and one sum. Element-wise bodies count in
//! quarters of it, because their cost is in sixteenths of a nanosecond.

use nxla_expr::{ExprId, Factorization, Family, Graph, Op};
use nxla_tensor::Shape;

use super::limits::{LONG, TRIPS};

/// Returns true if the op of a node runs so long that a caller may cancel it. Ops that run regions or functions never
/// do: the steps of their regions are checked.
pub(crate) fn is_long(graph: &Graph, id: ExprId) -> bool {
    let op = graph.op(id);
    operations(graph, id) >= LONG && op.regions().is_empty() && !op.has_effects()
}

/// Returns true if element-wise code of this cost runs so long that a caller may cancel it.
pub(crate) fn is_long_body(cost: usize) -> bool {
    body_cost(cost) >= LONG
}

/// Returns true if a run of this cost is worth moving to the thread pool.
pub(crate) fn is_large(cost: f64) -> bool {
    cost >= LONG / 32.0
}

/// The cost of the op of a node, given the cost of its regions.
pub(super) fn op_cost(graph: &Graph, id: ExprId, regions: f64) -> f64 {
    match graph.op(id) {
        Op::While(_) => TRIPS * regions,
        // One operation of a large product takes a sixteenth of an operation.
        op if op.family() == Family::Contract => operations(graph, id) / 16.0,
        // One thread scatters, in order, so other threads would not help.
        Op::IndexedAdd(_) | Op::IndexedPut(_) => 0.0,
        _ => operations(graph, id) + regions,
    }
}

/// The cost of element-wise code, from its cost in sixteenths of a nanosecond.
pub(super) fn body_cost(cost: usize) -> f64 {
    cost as f64 / 4.0
}

/// The number of operations of the op of a node, without its regions.
fn operations(graph: &Graph, id: ExprId) -> f64 {
    let op = graph.op(id);
    let size = |shape: &Shape| shape.iter().map(|&size| size as f64).product::<f64>();
    let results = || graph.ty(id).parts().iter().map(|ty| size(&ty.shape));
    let operands =
        || graph.operands(id).iter().flat_map(|&x| graph.ty(x).parts()).map(|ty| size(&ty.shape));
    let elements: f64 = operands().chain(results()).sum();
    match op.family() {
        Family::Create | Family::Elementwise | Family::Movement | Family::Reduce => elements,
        Family::Index => match op {
            // A slice reads only what it copies.
            Op::Slice(_) => 2.0 * results().sum::<f64>(),
            Op::PutSlice(_) => elements,
            Op::Gather(_)
            | Op::IndexedAdd(_)
            | Op::IndexedPut(_)
            // Sorting makes several passes.
            | Op::Sort(_)
            | Op::Argsort(..) => 16.0 * elements,
            op @ nxla_expr::outside!(index) => {
                unreachable!("{} is of another family", op.name())
            }
        },
        Family::Window => elements * taps(op),
        // For matrices this is the number of products, and for convolutions it is close.
        Family::Contract => operands().chain(results()).product::<f64>().sqrt(),
        Family::Linalg => linalg_operations(graph, id),
        Family::Control => 0.0,
    }
}

/// The number of operations of linear algebra. The factors are measured at a side of 32, where little of the code
/// is vectorized.
fn linalg_operations(graph: &Graph, id: ExprId) -> f64 {
    let shape = graph.shape(graph.operands(id)[0]);
    let elements: f64 = shape.iter().map(|&size| size as f64).product();
    let smaller = || shape[shape.rank() - 2..].iter().copied().min().unwrap_or(0) as f64;
    match graph.op(id) {
        Op::Fft(transform) => {
            let length = transform.length as f64;
            let lines = elements / (shape[transform.axis] as f64).max(1.0);
            4.0 * lines * length * length.max(2.0).log2()
        }
        Op::TriangularSolve(_) => {
            let b: f64 =
                graph.shape(graph.operands(id)[1]).iter().map(|&size| size as f64).product();
            // Each unknown of each system reads a row of the matrix.
            b * smaller()
        }
        Op::Cholesky => elements * smaller(),
        Op::Factorize(Factorization::Lu) => 2.0 * elements * smaller(),
        Op::Factorize(Factorization::Qr { .. }) => 8.0 * elements * smaller(),
        Op::Factorize(Factorization::Eigh) => 16.0 * elements * smaller(),
        Op::Factorize(Factorization::Svd { .. }) => 32.0 * elements * smaller(),
        op @ nxla_expr::outside!(linalg) => unreachable!("{} is of another family", op.name()),
    }
}

/// The number of elements per result of a window. Sums and extrema reduce one axis after the other; scatters
/// search all elements.
fn taps(op: &Op) -> f64 {
    match op {
        Op::Window(_, window) => window.dimensions.iter().sum::<usize>() as f64,
        Op::WindowScatter(_, window) => window.dimensions.iter().product::<usize>() as f64,
        Op::WindowFun(_) => 1.0,
        op @ nxla_expr::outside!(window) => unreachable!("{} is of another family", op.name()),
    }
}
