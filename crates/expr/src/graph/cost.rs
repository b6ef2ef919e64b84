//! The arithmetic of ops: how many operations a node takes, by the types of its operands and results.
//!
//! Operations are counted as in the literature on linear algebra: a product of matrices of `m × k` and `k × n`
//! takes `2 m k n`. The op table has the operations of an element-wise op for one element. Schedulers, stages and
//! the choice of a backend read these counts.

use super::{BlockKind, ExprId, Factorization, Graph, Op, TensorType};

fn size(ty: &TensorType) -> u64 {
    ty.shape.size() as u64
}

/// Returns the number of operations of a node; for an op that applies a function, the number of applications.
/// The regions of loops, conditionals and blocks without an algorithm are not counted.
///
/// ```
/// use nxla_expr::{Graph, TensorType, operations};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
/// let y = graph.parameter(1, TensorType::new(DType::F32, [3, 5]));
/// let product = graph.dot(x, y)?;
/// assert_eq!(operations(&graph, product), 2 * 2 * 3 * 5);
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn operations(graph: &Graph, id: ExprId) -> u64 {
    let parts = graph.ty(id).parts();
    let total = |parts: &[TensorType]| parts.iter().map(size).fold(0, u64::saturating_add);
    let results = total(parts);
    let operand = |position: usize| graph.operands(id).get(position).copied();
    let operand_elements = operand(0).map_or(0, |x| total(graph.ty(x).parts()));
    let shape = |position: usize| operand(position).and_then(|x| graph.ty(x).as_tensor());
    match graph.op(id) {
        Op::Unary(op) => results.saturating_mul(op.operations()),
        Op::Binary(op) => results.saturating_mul(op.operations()),
        Op::Select | Op::Clip => results,
        Op::Reduce(..) | Op::ArgReduce(..) | Op::ReduceFun(_) => operand_elements,
        Op::Window(_, window) | Op::WindowScatter(_, window) => {
            results.saturating_mul(product(&window.dimensions))
        }
        Op::WindowFun(op) => results.saturating_mul(product(&op.window.dimensions)),
        Op::Dot(dot) => {
            let contracted = shape(0).map_or(1, |left| {
                let sizes = dot.left_contract.iter().map(|&axis| left.shape[axis] as u64);
                sizes.fold(1, u64::saturating_mul)
            });
            results.saturating_mul(contracted).saturating_mul(2)
        }
        Op::Conv(conv) => {
            // Each result sums over the kernel, but for the axis of the output channels.
            let kernel = shape(1).map_or(1, size);
            let channels = shape(1).map_or(1, |k| k.shape[conv.kernel_permutation[0]] as u64);
            results.saturating_mul(kernel / channels.max(1)).saturating_mul(2)
        }
        Op::Sort(_) | Op::Argsort(..) => {
            operand_elements.saturating_mul(u64::from(operand_elements.max(2).ilog2()))
        }
        Op::Fft(fft) => {
            let stages = u64::from(fft.length.max(2).ilog2());
            results.saturating_mul(5).saturating_mul(stages)
        }
        Op::TriangularSolve(_) => results.saturating_mul(matrix_side(shape(0))),
        Op::Cholesky => operand_elements.saturating_mul(matrix_side(shape(0))) / 3,
        Op::Factorize(factorization) => factorization_flops(*factorization, shape(0)),
        Op::IndexedAdd(_) => shape(2).map_or(0, size),
        Op::Block(block) => {
            let operands = [shape(0), shape(1)];
            block_flops(&block.kind, operands, (operand_elements, results))
        }
        Op::Iota(_)
        | Op::Eye(_)
        | Op::AsType(_)
        | Op::Bitcast(_)
        | Op::Reshape(_)
        | Op::Squeeze(_)
        | Op::Transpose(_)
        | Op::Reverse(_)
        | Op::Broadcast(_)
        | Op::Pad(_)
        | Op::Concatenate(_)
        | Op::Stack(_)
        | Op::Slice(_)
        | Op::PutSlice(_)
        | Op::Gather(_)
        | Op::IndexedPut(_)
        | Op::Parameter(_)
        | Op::Constant(_)
        | Op::Tensor(_)
        | Op::Metadata(_)
        | Op::Elem(_)
        | Op::Cond(_)
        | Op::While(_)
        | Op::Hook(_) => 0,
    }
}

/// The operations of a block's algorithm, by its first two operands and the elements of the first and of all
/// results.
fn block_flops(
    kind: &BlockKind,
    [first, second]: [Option<&TensorType>; 2],
    (operand_elements, results): (u64, u64),
) -> u64 {
    /// Twenty rounds of an addition, a rotation and an exclusive or, for two words.
    const THREEFRY: u64 = 40;
    match kind {
        BlockKind::Cumulative { .. } => results,
        BlockKind::TopK { k } => operand_elements.saturating_mul(u64::from(k.max(&2).ilog2())),
        BlockKind::Threefry { wide, .. } => results.saturating_mul(THREEFRY << u32::from(*wide)),
        BlockKind::Search(_) => results.saturating_mul(u64::from(operand_elements.max(2).ilog2())),
        BlockKind::Scatter { .. } => second.map_or(0, size),
        BlockKind::Factorize(factorization) => factorization_flops(*factorization, first),
        BlockKind::Solve { .. } => results.saturating_mul(matrix_side(first)).saturating_mul(2),
        BlockKind::Checkpoint { .. } | BlockKind::Named { .. } => 0,
    }
}

/// The operations of factorizing matrices.
fn factorization_flops(factorization: Factorization, matrices: Option<&TensorType>) -> u64 {
    let elements = matrices.map_or(0, size);
    elements.saturating_mul(matrix_side(matrices)).saturating_mul(weight_of(factorization))
}

fn product(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |product, &size| product.saturating_mul(size as u64))
}

fn matrix_side(ty: Option<&TensorType>) -> u64 {
    ty.and_then(|ty| ty.shape.iter().last().copied()).unwrap_or(1) as u64
}

/// The multiplications of a factorization, in units of its matrix's size times its side (Golub and
/// Van Loan, *Matrix Computations*, 4th edition, sections 3.2, 5.2, 8.3 and 8.6).
fn weight_of(factorization: Factorization) -> u64 {
    match factorization {
        Factorization::Lu => 1,
        Factorization::Qr { .. } => 3,
        Factorization::Eigh => 9,
        Factorization::Svd { .. } => 22,
    }
}
