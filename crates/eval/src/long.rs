//! How long steps take, roughly: which ones somebody may want to break off, and which programs are
//! worth being run by the crew.

use nxla_expr::{ExprId, Factorization, Family, Graph, Op};
use nxla_tensor::Shape;

/// Steps of the smallest kind, such as a product and a sum, from which on a step is long: at least
/// some ten milliseconds, so that a thread of its own costs nothing.
const LONG: f64 = (1 << 26) as f64;

/// Steps from which on a run is [taken over by the crew](crate::threads::aboard): some 300
/// microseconds, ten times of what handing it over costs.
const LARGE: f64 = (1 << 21) as f64;

/// Trips that a loop is taken to make, where nobody knows.
const TRIPS: f64 = 64.0;

/// Whether the op of a node may take long. Those that hold programs or call functions never do: what
/// they run is looked after by itself.
pub(crate) fn is_long(graph: &Graph, id: ExprId) -> bool {
    let op = graph.op(id);
    steps(graph, id) >= LONG && op.regions().is_empty() && !op.has_effects()
}

/// Whether a run of so much [work] is worth being handed over.
pub(crate) fn is_large(work: f64) -> bool {
    work >= LARGE
}

/// How many steps the op of a node takes, those of its regions being given.
pub(crate) fn work(graph: &Graph, id: ExprId, regions: f64) -> f64 {
    match graph.op(id) {
        Op::While(_) => TRIPS * regions,
        // Products of matrices take a tenth of a step each, where they are large.
        op if op.family() == Family::Contract => steps(graph, id) / 16.0,
        // One thread scatters, in order. Others could not help.
        Op::IndexedAdd(_) | Op::IndexedPut(_) => 0.0,
        _ => steps(graph, id) + regions,
    }
}

/// How many steps element-wise code takes, whose own are smaller.
pub(crate) fn work_of_code(steps: usize) -> f64 {
    steps as f64 / 4.0
}

/// How many steps the op of a node takes, without those of its regions.
fn steps(graph: &Graph, id: ExprId) -> f64 {
    let op = graph.op(id);
    let size = |shape: &Shape| shape.iter().map(|&size| size as f64).product::<f64>();
    let results = || graph.ty(id).parts().iter().map(|ty| size(&ty.shape));
    let operands =
        || graph.operands(id).iter().flat_map(|&x| graph.ty(x).parts()).map(|ty| size(&ty.shape));
    let elements: f64 = operands().chain(results()).sum();
    match op.family() {
        Family::Create | Family::Elementwise | Family::Movement | Family::Reduce => elements,
        Family::Index => match op {
            // What is taken is copied, whatever it is taken from.
            Op::Slice(_) => 2.0 * results().sum::<f64>(),
            Op::PutSlice(_) => elements,
            Op::Gather(_)
            | Op::IndexedAdd(_)
            | Op::IndexedPut(_)
            // Sorting takes a number of passes.
            | Op::Sort(_)
            | Op::Argsort(..) => 16.0 * elements,
            op @ nxla_expr::outside!(index) => {
                unreachable!("{} is of another family", op.name())
            }
        },
        Family::Window => elements * taps(op),
        // For matrices this is the number of their products, and near to it for convolutions.
        Family::Contract => operands().chain(results()).product::<f64>().sqrt(),
        Family::Linalg => of_matrices(graph, id),
        Family::Control => 0.0,
    }
}

/// How many steps what is about matrices and transforms takes: what each takes for the cube of a side
/// of 32, where little of it is vector code.
fn of_matrices(graph: &Graph, id: ExprId) -> f64 {
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
            // Each unknown of each system takes a row of the matrix.
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

/// Elements that each result of a window is made of. Axes are done one after the other, except where
/// places are searched for.
fn taps(op: &Op) -> f64 {
    match op {
        Op::Window(_, window) => window.dimensions.iter().sum::<usize>() as f64,
        Op::WindowScatter(_, window) => window.dimensions.iter().product::<usize>() as f64,
        Op::WindowFun(_) => 1.0,
        op @ nxla_expr::outside!(window) => unreachable!("{} is of another family", op.name()),
    }
}

/// Whether element-wise code of so many steps may take long.
pub(crate) fn is_long_code(steps: usize) -> bool {
    work_of_code(steps) >= LONG
}
