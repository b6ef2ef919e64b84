//! The cost model: estimates of the work of nodes and stages from types alone, for choosing cuts
//! and predicting times.
//!
//! Work is measured in operations, which the op table counts ([`operations`]), and in bytes read
//! and written. The body of a loop is multiplied by its trip count if the loop counts, and otherwise
//! counted once. A conditional costs as much as its most expensive branch.

use std::iter::Sum;
use std::ops::Add;

use nxla_expr::{ExprId, Graph, Op, Program, counter, operations};
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
    pub fn seconds(&self, cost: Cost) -> f64 {
        self.overhead + self.work(cost)
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn work(&self, cost: Cost) -> f64 {
        f64::max(cost.flops as f64 / self.flops, cost.bytes as f64 / self.bytes)
    }
}

/// Returns the cost of a program.
pub fn cost_of(program: &Program) -> Cost {
    Estimator::new(Speed { overhead: 0.0, ..Speed::default() }).program(program).cost
}

/// The estimated time of a program in seconds.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Estimate {
    /// The time for the operations and the memory accesses of all nodes.
    pub work: f64,
    /// The time that nodes take apart from their work.
    pub overhead: f64,
    /// True if the trip count of a loop is unknown. One of its steps is counted.
    pub is_unbounded: bool,
}

impl Estimate {
    /// Returns the time in seconds, or `None` if the trip count of a loop is unknown.
    pub fn seconds(self) -> Option<f64> {
        (!self.is_unbounded).then_some(self.work + self.overhead)
    }
}

/// Estimates the time of a program, with `speed.overhead` for each node. A conditional takes as long
/// as all of its predicates and its longest branch.
///
/// ```
/// use nxla_expr::{Graph, Program, TensorType};
/// use nxla_split::{Speed, estimate_of};
/// use nxla_tensor::DType;
///
/// let mut graph = Graph::new();
/// let ty = TensorType::new(DType::F32, [1000]);
/// let x = graph.parameter(0, ty.clone());
/// let sine = graph.sin(x)?;
/// let program = Program::new(&graph, vec![ty], &[sine])?;
/// let slow = Speed { flops: 1e6, ..Speed::default() };
/// assert!(estimate_of(&program, &slow).work > estimate_of(&program, &Speed::default()).work);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub fn estimate_of(program: &Program, speed: &Speed) -> Estimate {
    let Total { seconds: work, nodes, is_unbounded, .. } = Estimator::new(*speed).program(program);
    Estimate { work, overhead: speed.overhead * nodes as f64, is_unbounded }
}

/// The cost of nodes, and the time that they take on one processor.
#[derive(Clone, Copy, Default)]
pub(crate) struct Total {
    pub(crate) cost: Cost,
    /// The sum of the times of the nodes in seconds, without their overhead.
    seconds: f64,
    /// The number of executed nodes that have an overhead.
    nodes: u64,
    /// True if the trip count of a loop is unknown.
    is_unbounded: bool,
}

impl Total {
    /// Returns the cost of `count` executions.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn times(self, count: u64) -> Self {
        let Cost { flops, bytes } = self.cost;
        Self {
            cost: Cost { flops: flops.saturating_mul(count), bytes: bytes.saturating_mul(count) },
            seconds: self.seconds * count as f64,
            nodes: self.nodes.saturating_mul(count),
            ..self
        }
    }
}

impl Add for Total {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cost: Cost {
                flops: self.cost.flops.saturating_add(other.cost.flops),
                bytes: self.cost.bytes.saturating_add(other.cost.bytes),
            },
            seconds: self.seconds + other.seconds,
            nodes: self.nodes.saturating_add(other.nodes),
            is_unbounded: self.is_unbounded || other.is_unbounded,
        }
    }
}

impl Sum for Total {
    fn sum<I: Iterator<Item = Self>>(totals: I) -> Self {
        totals.fold(Self::default(), Self::add)
    }
}

/// Adds up the costs of programs on a processor. Each region is visited once, even if several nodes
/// share it.
pub(crate) struct Estimator {
    speed: Speed,
    /// Totals by the address of the region; the outermost program keeps all regions alive.
    regions: FxHashMap<*const Program, Total>,
}

impl Estimator {
    pub(crate) fn new(speed: Speed) -> Self {
        Self { speed, regions: FxHashMap::default() }
    }

    fn program(&mut self, program: &Program) -> Total {
        let graph = program.graph();
        graph.ids().map(|id| self.node(graph, id)).sum()
    }

    fn region(&mut self, region: &Program) -> Total {
        let address = std::ptr::from_ref(region);
        if let Some(&known) = self.regions.get(&address) {
            return known;
        }
        let total = self.program(region);
        self.regions.insert(address, total);
        total
    }

    /// Returns the cost of a node.
    pub(crate) fn node(&mut self, graph: &Graph, id: ExprId) -> Total {
        match graph.op(id) {
            // These nodes only name existing values.
            Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) | Op::Elem(_) | Op::Metadata(_) => {
                Total::default()
            }
            Op::While(op) => {
                let counter = counter(graph, op, graph.operands(id));
                let step = self.region(&op.condition) + self.region(&op.body);
                let steps = step.times(counter.map_or(1, |counter| counter.trips as u64));
                let is_unbounded = counter.is_none();
                steps + Total { nodes: 1, is_unbounded, ..Total::default() }
            }
            Op::Cond(op) => {
                let mut longest = self.region(&op.otherwise);
                let mut predicates = Total::default();
                for (predicate, body) in &op.clauses {
                    predicates = predicates + self.region(predicate);
                    let body = self.region(body);
                    longest = self.longer(longest, body);
                }
                predicates + longest
            }
            Op::Block(op) if !op.kind.has_algorithm() => self.region(&op.body),
            Op::ReduceFun(op) => self.applications(graph, id, &op.function),
            Op::WindowFun(op) => self.applications(graph, id, &op.function),
            Op::Block(_) | Op::Hook(_) => self.own(graph, id, 1),
            op @ nxla_expr::outside!(control) => {
                debug_assert!(op.regions().is_empty(), "{} runs a region", op.name());
                self.own(graph, id, 1)
            }
        }
    }

    /// Returns the cost of a node that applies a function to elements. The function may not
    /// terminate.
    fn applications(&mut self, graph: &Graph, id: ExprId, function: &Program) -> Total {
        let function = self.region(function);
        let own = self.own(graph, id, function.cost.flops.max(1));
        Total { is_unbounded: function.is_unbounded, ..own }
    }

    /// Returns the cost of a node whose regions are not run separately; each operation counts
    /// `weight` times.
    fn own(&self, graph: &Graph, id: ExprId, weight: u64) -> Total {
        let operands = graph.operands(id).iter();
        let read =
            operands.map(|&operand| result_bytes(graph, operand)).fold(0, u64::saturating_add);
        let bytes = read.saturating_add(result_bytes(graph, id));
        let cost = Cost { flops: operations(graph, id).saturating_mul(weight), bytes };
        Total { cost, seconds: self.speed.work(cost), nodes: 1, is_unbounded: false }
    }

    /// Returns the cost of the branch that takes longer. The trip count is unknown if it is unknown
    /// in one of the branches.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn longer(&self, one: Total, other: Total) -> Total {
        let time = |total: Total| total.seconds + self.speed.overhead * total.nodes as f64;
        let longer = if time(one) >= time(other) { one } else { other };
        Total { is_unbounded: one.is_unbounded || other.is_unbounded, ..longer }
    }
}

/// Returns the size of all results of a node.
pub(crate) fn result_bytes(graph: &Graph, id: ExprId) -> u64 {
    graph.ty(id).parts().iter().map(bytes_of).fold(0, u64::saturating_add)
}
