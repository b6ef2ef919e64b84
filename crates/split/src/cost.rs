//! The cost model: estimates of the work of nodes and stages from types alone, for choosing cuts
//! and predicting times.
//!
//! Work is measured in floating-point operations as in the literature on linear algebra (a product
//! of `m × k` and `k × n` matrices takes `2 m k n`), and in bytes read and written. The body of a
//! loop is multiplied by its trip count if the loop counts, and otherwise counted once. A
//! conditional costs as much as its most expensive branch.

use std::ops::{Add, AddAssign};

use nxla_expr::{
    BlockKind, ExprId, Factorization, Graph, Op, Program, TensorType, UnaryOp, counter,
};
use rustc_hash::FxHashMap;

use crate::stage::bytes_of;

/// An amount of work.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cost {
    /// Floating-point operations, or integer operations on integers.
    pub flops: u64,
    /// Bytes that are read and written without fusion.
    pub bytes: u64,
}

impl Cost {
    /// Returns the cost of `count` executions.
    fn times(self, count: u64) -> Cost {
        Cost { flops: self.flops.saturating_mul(count), bytes: self.bytes.saturating_mul(count) }
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            flops: self.flops.saturating_add(other.flops),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::default(), Cost::add)
    }
}

/// The speed of a processor, which converts a [`Cost`] to a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Speed {
    /// Floating-point operations per second.
    pub flops: f64,
    /// Bytes read and written per second.
    pub bytes: f64,
    /// The overhead of a stage in seconds.
    pub overhead: f64,
}

impl Default for Speed {
    /// The order of magnitude of one core of a current server.
    fn default() -> Self {
        Speed { flops: 3e10, bytes: 1e10, overhead: 5e-6 }
    }
}

impl Speed {
    /// Returns the time of a stage with this cost in seconds.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn seconds(&self, cost: Cost) -> f64 {
        self.overhead + f64::max(cost.flops as f64 / self.flops, cost.bytes as f64 / self.bytes)
    }
}

/// Returns the cost of a program.
pub fn cost_of(program: &Program) -> Cost {
    let graph = program.graph();
    graph.ids().map(|id| node_cost(graph, id)).sum()
}

/// Estimates the time of a program in seconds, with `speed.overhead` for each node, or returns
/// `None` if the trip count of a loop is unbounded. A conditional takes as long as all of its
/// predicates and its longest branch.
///
/// ```
/// use nxla_expr::{Graph, Program, TensorType};
/// use nxla_split::{Speed, seconds_of};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let ty = TensorType::new(DType::F32, [1000]);
/// let x = graph.parameter(0, ty.clone());
/// let sine = graph.sin(x)?;
/// let program = Program::new(&graph, vec![ty], &[sine])?;
/// let slow = Speed { flops: 1e6, ..Speed::default() };
/// assert!(seconds_of(&program, &slow) > seconds_of(&program, &Speed::default()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn seconds_of(program: &Program, speed: &Speed) -> Option<f64> {
    Seconds { speed: *speed, known: FxHashMap::default() }.program(program)
}

/// Estimated times of programs, each region computed once even if several nodes share it.
struct Seconds {
    speed: Speed,
    /// Times by the address of the program; the root program keeps all regions alive.
    known: FxHashMap<*const Program, Option<f64>>,
}

impl Seconds {
    fn program(&mut self, program: &Program) -> Option<f64> {
        if let Some(&known) = self.known.get(&std::ptr::from_ref(program)) {
            return known;
        }
        let graph = program.graph();
        let found = graph.ids().map(|id| self.node(graph, id)).sum();
        self.known.insert(program, found);
        found
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn node(&mut self, graph: &Graph, id: ExprId) -> Option<f64> {
        let op = graph.op(id);
        match op {
            Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) | Op::Elem(_) | Op::Metadata(_) => {
                Some(0.0)
            }
            Op::While(inner) => {
                let trips = counter(graph, inner, graph.operands(id))?.trips as f64;
                let trip = self.program(&inner.condition)? + self.program(&inner.body)?;
                Some(self.speed.overhead + trips * trip)
            }
            Op::Cond(cond) => {
                let mut longest = self.program(&cond.otherwise)?;
                let mut tests = 0.0;
                for (test, body) in &cond.clauses {
                    tests += self.program(test)?;
                    longest = longest.max(self.program(body)?);
                }
                Some(tests + longest)
            }
            Op::Block(block) if !block.kind.has_algorithm() => self.program(&block.body),
            Op::Block(_) => Some(self.speed.seconds(node_cost(graph, id))),
            op => {
                // A function that is called for each element is part of the cost, but it may not
                // terminate.
                for region in op.regions() {
                    self.program(region)?;
                }
                Some(self.speed.seconds(node_cost(graph, id)))
            }
        }
    }
}

/// Returns the size of all results of a node.
pub(crate) fn result_bytes(graph: &Graph, id: ExprId) -> u64 {
    graph.ty(id).parts().iter().map(bytes_of).fold(0, u64::saturating_add)
}

/// Returns the cost of a node.
pub(crate) fn node_cost(graph: &Graph, id: ExprId) -> Cost {
    let op = graph.op(id);
    match op {
        // These nodes only name existing values.
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) | Op::Elem(_) | Op::Metadata(_) => {
            return Cost::default();
        }
        Op::While(op) => {
            let known = counter(graph, op, graph.operands(id));
            let trips = known.map_or(1, |counter| counter.trips as u64);
            return (cost_of(&op.condition) + cost_of(&op.body)).times(trips);
        }
        Op::Cond(op) => {
            let bodies = op.clauses.iter().map(|(_, body)| body).chain([&op.otherwise]);
            let predicates: Cost = op.clauses.iter().map(|(test, _)| cost_of(test)).sum();
            let costliest = bodies.map(|body| cost_of(body)).max_by_key(|cost| cost.flops);
            return predicates + costliest.unwrap_or_default();
        }
        Op::Block(op) if !op.kind.has_algorithm() => return cost_of(&op.body),
        _ => {}
    }
    let operands = graph.operands(id).iter();
    let read = operands.map(|&operand| result_bytes(graph, operand)).fold(0, u64::saturating_add);
    let bytes = read.saturating_add(result_bytes(graph, id));
    Cost { flops: flops(graph, id), bytes }
}

fn size(ty: &TensorType) -> u64 {
    ty.shape.size() as u64
}

/// Returns the operations of a node without regions.
fn flops(graph: &Graph, id: ExprId) -> u64 {
    let parts = graph.ty(id).parts();
    let results = parts.iter().map(size).fold(0, u64::saturating_add);
    let operand = |position: usize| graph.operands(id).get(position).copied();
    let taken = operand(0).map_or(0, |x| graph.ty(x).parts().iter().map(size).sum::<u64>());
    let shape = |position: usize| operand(position).and_then(|x| graph.ty(x).as_tensor());
    match graph.op(id) {
        Op::Unary(op) => results.saturating_mul(unary_weight(*op)),
        Op::Binary(_) | Op::Select | Op::Clip => results,
        Op::Reduce(..) | Op::ArgReduce(..) => taken,
        Op::ReduceFun(op) => taken.saturating_mul(cost_of(&op.function).flops.max(1)),
        Op::Window(_, window) | Op::WindowScatter(_, window) => {
            results.saturating_mul(product(&window.dimensions))
        }
        Op::WindowFun(op) => results
            .saturating_mul(product(&op.window.dimensions))
            .saturating_mul(cost_of(&op.function).flops.max(1)),
        Op::Dot(dot) => {
            let contracted = shape(0).map_or(1, |left| {
                dot.left_contract.iter().map(|&axis| left.shape[axis] as u64).product()
            });
            results.saturating_mul(contracted).saturating_mul(2)
        }
        Op::Conv(conv) => {
            // Each result sums over the kernel without the axis of the output channels.
            let kernel = shape(1).map_or(1, size);
            let channels = shape(1).map_or(1, |k| k.shape[conv.kernel_permutation[0]] as u64);
            results.saturating_mul(kernel / channels.max(1)).saturating_mul(2)
        }
        Op::Sort(_) | Op::Argsort(..) => taken.saturating_mul(u64::from(taken.max(2).ilog2())),
        Op::Fft(fft) => {
            let stages = u64::from(fft.length.max(2).ilog2());
            results.saturating_mul(5).saturating_mul(stages)
        }
        Op::TriangularSolve(_) => results.saturating_mul(matrix_side(shape(0))),
        Op::Cholesky => taken.saturating_mul(matrix_side(shape(0))) / 3,
        Op::Factorize(factorization) => factorization_flops(*factorization, shape(0)),
        Op::IndexedAdd(_) => shape(2).map_or(0, size),
        Op::Block(block) => {
            let operands = [shape(0), shape(1)];
            block_flops(&block.kind, operands, (taken, results))
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

/// Returns the operations of a block's algorithm, from its first two operands and the numbers of
/// elements of the first operand and of all results.
fn block_flops(
    kind: &BlockKind,
    [first, second]: [Option<&TensorType>; 2],
    (taken, results): (u64, u64),
) -> u64 {
    /// 20 rounds of an addition, a rotation and an exclusive or, for two words.
    const THREEFRY: u64 = 40;
    match kind {
        BlockKind::Cumulative { .. } => results,
        BlockKind::TopK { k } => taken.saturating_mul(u64::from(k.max(&2).ilog2())),
        BlockKind::Threefry { wide, .. } => results.saturating_mul(THREEFRY << u32::from(*wide)),
        BlockKind::Search(_) => results.saturating_mul(u64::from(taken.max(2).ilog2())),
        BlockKind::Scatter { .. } => second.map_or(0, size),
        BlockKind::Factorize(factorization) => factorization_flops(*factorization, first),
        BlockKind::Solve { .. } => results.saturating_mul(matrix_side(first)).saturating_mul(2),
        BlockKind::Checkpoint { .. } | BlockKind::Named { .. } => 0,
    }
}

/// Returns the operations of factorizing matrices.
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

/// Returns the cost of a factorization in multiples of the matrix size times its side (Golub and
/// Van Loan, *Matrix Computations*, 4th edition, sections 3.2, 5.2, 8.3 and 8.6).
fn weight_of(factorization: Factorization) -> u64 {
    match factorization {
        Factorization::Lu => 1,
        Factorization::Qr { .. } => 3,
        Factorization::Eigh => 9,
        Factorization::Svd { .. } => 22,
    }
}

/// Returns the number of operations of an element-wise function: about ten for a library function.
fn unary_weight(op: UnaryOp) -> u64 {
    match op {
        UnaryOp::Negate
        | UnaryOp::Abs
        | UnaryOp::Sign
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::RoundEven
        | UnaryOp::IsNan
        | UnaryOp::IsInfinity
        | UnaryOp::LogicalNot
        | UnaryOp::BitwiseNot
        | UnaryOp::Real
        | UnaryOp::Imag
        | UnaryOp::Conjugate => 1,
        _ => 10,
    }
}
