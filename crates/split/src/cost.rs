//! The cost model: estimates of the work of nodes and stages from types alone, for choosing cuts
//! and predicting times.
//!
//! Work is measured in operations, which the op table counts ([`operations`]), and in bytes read
//! and written. The body of a loop is multiplied by its trip count if the loop counts, and otherwise
//! counted once. A conditional costs as much as its most expensive branch.

use std::ops::{Add, AddAssign};

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
    let graph = program.graph();
    graph.ids().map(|id| node_cost(graph, id)).sum()
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

    fn times(self, count: f64) -> Self {
        Self { work: self.work * count, overhead: self.overhead * count, ..self }
    }

    fn longer(self, other: Self) -> Self {
        let is_longer = self.work + self.overhead >= other.work + other.overhead;
        let longer = if is_longer { self } else { other };
        Self { is_unbounded: self.is_unbounded || other.is_unbounded, ..longer }
    }
}

impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            work: self.work + other.work,
            overhead: self.overhead + other.overhead,
            is_unbounded: self.is_unbounded || other.is_unbounded,
        }
    }
}

impl std::iter::Sum for Estimate {
    fn sum<I: Iterator<Item = Self>>(estimates: I) -> Self {
        estimates.fold(Self::default(), Self::add)
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
pub fn estimate_of(program: &Program, speed: &Speed) -> Estimate {
    Estimates { speed: *speed, known: FxHashMap::default() }.program(program)
}

/// Estimates of programs, each region computed once even if several nodes share it.
struct Estimates {
    speed: Speed,
    /// Estimates by the address of the program; the root program keeps all regions alive.
    known: FxHashMap<*const Program, Estimate>,
}

impl Estimates {
    fn program(&mut self, program: &Program) -> Estimate {
        if let Some(&known) = self.known.get(&std::ptr::from_ref(program)) {
            return known;
        }
        let graph = program.graph();
        let found = graph.ids().map(|id| self.node(graph, id)).sum();
        self.known.insert(program, found);
        found
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn node(&mut self, graph: &Graph, id: ExprId) -> Estimate {
        let overhead = Estimate { overhead: self.speed.overhead, ..Estimate::default() };
        let own = || Estimate { work: self.speed.work(node_cost(graph, id)), ..overhead };
        match graph.op(id) {
            Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) | Op::Elem(_) | Op::Metadata(_) => {
                Estimate::default()
            }
            Op::While(inner) => {
                let counter = counter(graph, inner, graph.operands(id));
                let step = self.program(&inner.condition) + self.program(&inner.body);
                let steps =
                    step.times(counter.as_ref().map_or(1.0, |counter| counter.trips as f64));
                let is_unbounded = steps.is_unbounded || counter.is_none();
                overhead + Estimate { is_unbounded, ..steps }
            }
            Op::Cond(cond) => {
                let mut longest = self.program(&cond.otherwise);
                let mut tests = Estimate::default();
                for (test, body) in &cond.clauses {
                    tests = tests + self.program(test);
                    longest = longest.longer(self.program(body));
                }
                tests + longest
            }
            Op::Block(block) if !block.kind.has_algorithm() => self.program(&block.body),
            Op::Block(_) | Op::Hook(_) => own(),
            op @ nxla_expr::outside!(control) => {
                // A function that is called for each element is part of the cost, but it may not
                // terminate.
                let own = own();
                let mut calls = op.regions().into_iter().map(|region| self.program(region));
                Estimate { is_unbounded: calls.any(|call| call.is_unbounded), ..own }
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
            Cost::default()
        }
        Op::While(op) => {
            let known = counter(graph, op, graph.operands(id));
            let trips = known.map_or(1, |counter| counter.trips as u64);
            (cost_of(&op.condition) + cost_of(&op.body)).times(trips)
        }
        Op::Cond(op) => {
            let bodies = op.clauses.iter().map(|(_, body)| body).chain([&op.otherwise]);
            let predicates: Cost = op.clauses.iter().map(|(test, _)| cost_of(test)).sum();
            let costliest = bodies.map(|body| cost_of(body)).max_by_key(|cost| cost.flops);
            predicates + costliest.unwrap_or_default()
        }
        Op::Block(op) if !op.kind.has_algorithm() => cost_of(&op.body),
        Op::ReduceFun(op) => own_cost(graph, id, cost_of(&op.function).flops.max(1)),
        Op::WindowFun(op) => own_cost(graph, id, cost_of(&op.function).flops.max(1)),
        Op::Block(_) | Op::Hook(_) => own_cost(graph, id, 1),
        op @ nxla_expr::outside!(control) => {
            debug_assert!(op.regions().is_empty(), "{} runs a region", op.name());
            own_cost(graph, id, 1)
        }
    }
}

/// Returns the cost of a node whose regions are not run separately; each operation counts `weight`
/// times.
fn own_cost(graph: &Graph, id: ExprId, weight: u64) -> Cost {
    let operands = graph.operands(id).iter();
    let read = operands.map(|&operand| result_bytes(graph, operand)).fold(0, u64::saturating_add);
    let bytes = read.saturating_add(result_bytes(graph, id));
    Cost { flops: operations(graph, id).saturating_mul(weight), bytes }
}
