//! The programs inside ops: which ones there are, ops with other programs in their place, and
//! whether hooks are inside.
//!
//! Everything that looks into regions without caring what holds them (digests, serialization,
//! verification) goes through these methods, so that a new op with a region is added here once.
//!
//! A hook, and an op with hooks in a region that runs, has *effects*. That is no attribute: it
//! follows from [`Op::inside`]. The graph makes a new node for it each time, so that two of them are
//! never one, and lists it among the roots of its program, so that it runs whether or not its results
//! are used. Nodes with effects run in the order of their ids.
//!
//! Regions *nest*: a branch of a conditional can hold another. What goes through programs goes into
//! their regions by recursion, and so does dropping them, which is safe because there is a limit.

use std::sync::Arc;

use smallvec::SmallVec;

use super::hook::HookOp;
use super::op::{Block, Cond, CustomGrad, Metadata, Op, ReduceFun, While, WindowFun};
use super::program::Program;

/// How deep regions may nest, so that no walk of them exhausts a stack of 1 MB. Deeper nests are
/// refused where they are built or read.
pub const MAX_NESTING: usize = 64;

/// The programs of one op, in a fixed order.
pub type Regions<'a> = SmallVec<[&'a Arc<Program>; 3]>;

/// What an op holds besides numbers.
pub enum Inside<'a> {
    /// Nothing: the value of a node is all there is to it.
    Nothing,
    /// A host function, which is called.
    Hook(&'a HookOp),
    /// Programs that run when the node does.
    Runs(Regions<'a>),
    /// A program that is kept for whoever asks for it, and does not run with the node.
    Keeps(&'a Arc<Program>),
}

impl Op {
    /// What the op holds besides numbers. Whether a node has effects follows from the answer, so a
    /// new op that holds a program or a function gives it here and nowhere else.
    #[inline]
    pub fn inside(&self) -> Inside<'_> {
        match self {
            Op::Hook(hook) => Inside::Hook(hook),
            Op::ReduceFun(op) => Inside::Runs(Regions::from_slice(&[&op.function])),
            Op::WindowFun(op) => Inside::Runs(Regions::from_slice(&[&op.function])),
            Op::Cond(op) => {
                let clauses = op.clauses.iter().flat_map(|(predicate, body)| [predicate, body]);
                Inside::Runs(clauses.chain([&op.otherwise]).collect())
            }
            Op::While(op) => Inside::Runs(Regions::from_slice(&[&op.condition, &op.body])),
            Op::Block(op) => Inside::Runs(Regions::from_slice(&[&op.body])),
            Op::Metadata(op) => match &op.custom_grad {
                Some(custom) => Inside::Keeps(&custom.program),
                None => Inside::Nothing,
            },
            Op::Iota(_)
            | Op::Eye(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Select
            | Op::Clip
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
            | Op::Reduce(..)
            | Op::ArgReduce(..)
            | Op::Window(..)
            | Op::WindowScatter(..)
            | Op::Dot(_)
            | Op::Conv(_)
            | Op::Slice(_)
            | Op::PutSlice(_)
            | Op::Gather(_)
            | Op::IndexedAdd(_)
            | Op::IndexedPut(_)
            | Op::Sort(_)
            | Op::Argsort(..)
            | Op::Fft(_)
            | Op::TriangularSolve(_)
            | Op::Cholesky
            | Op::Factorize(_)
            | Op::Parameter(_)
            | Op::Constant(_)
            | Op::Tensor(_)
            | Op::Elem(_) => Inside::Nothing,
        }
    }

    /// The programs inside this op: for `cond` each predicate and its body, then the last branch;
    /// for `while` the condition, then the body.
    #[inline]
    pub fn regions(&self) -> Regions<'_> {
        match self.inside() {
            Inside::Nothing | Inside::Hook(_) => Regions::new(),
            Inside::Runs(regions) => regions,
            Inside::Keeps(region) => Regions::from_slice(&[region]),
        }
    }

    /// Whether running the op can be seen from outside: it is a hook, or a program that runs with
    /// it holds one. Programs list their own, so one look at each says it, however deep a hook is.
    #[inline]
    pub fn has_effects(&self) -> bool {
        match self.inside() {
            Inside::Nothing | Inside::Keeps(_) => false,
            Inside::Hook(_) => true,
            Inside::Runs(regions) => regions.iter().any(|region| !region.effects().is_empty()),
        }
    }

    /// How deep regions nest in this op: 0 without any, 1 for regions that hold none themselves.
    #[inline]
    pub fn nesting(&self) -> usize {
        let regions = self.regions();
        regions.iter().map(|region| region.graph().nesting() + 1).max().unwrap_or(0)
    }

    /// The same op with each program replaced, called in the order of [`Op::regions`].
    #[must_use]
    pub fn map_regions(&self, mut replace: impl FnMut(&Arc<Program>) -> Arc<Program>) -> Op {
        if self.regions().is_empty() {
            return self.clone();
        }
        match self {
            Op::ReduceFun(op) => {
                let function = replace(&op.function);
                Op::ReduceFun(Box::new(ReduceFun { reduce: op.reduce.clone(), function }))
            }
            Op::WindowFun(op) => {
                let function = replace(&op.function);
                Op::WindowFun(Box::new(WindowFun { window: op.window.clone(), function }))
            }
            Op::Metadata(op) => {
                let custom_grad = op.custom_grad.as_ref().map(|custom| CustomGrad {
                    program: replace(&custom.program),
                    ..custom.clone()
                });
                Op::Metadata(Box::new(Metadata { custom_grad, ..(**op).clone() }))
            }
            Op::Cond(op) => {
                let mut pair = |(predicate, body): &(Arc<Program>, Arc<Program>)| {
                    let predicate = replace(predicate);
                    (predicate, replace(body))
                };
                let clauses = op.clauses.iter().map(&mut pair).collect();
                let otherwise = replace(&op.otherwise);
                Op::Cond(Arc::new(Cond { clauses, otherwise }))
            }
            Op::While(op) => {
                let condition = replace(&op.condition);
                let body = replace(&op.body);
                Op::While(Arc::new(While { state: op.state, condition, body, replay: op.replay }))
            }
            Op::Block(op) => {
                let (kind, batch_axes) = (op.kind.clone(), op.batch_axes);
                let body = replace(&op.body);
                Op::Block(Arc::new(Block { kind, batch_axes, body }))
            }
            op => unreachable!("{} lists no regions", op.name()),
        }
    }
}
