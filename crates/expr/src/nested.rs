//! The programs inside ops: which ones there are, ops with other programs in their place, and
//! whether hooks are inside.
//!
//! Everything that looks into regions without caring what holds them (digests, serialization,
//! verification) goes through these methods, so that a new op with a region is added here once.
//!
//! A hook, and an op with hooks in a region that runs, has *effects*. It carries a sequence number,
//! by which two of them are never the same node, and is listed among the roots of its program, so
//! that it runs whether or not its results are used. A region lists its own, so one look at each
//! region of an op says whether it has effects, however deep the hook is.
//!
//! Regions *nest*: a branch of a conditional can hold another. What goes through programs goes into
//! their regions by recursion, and so does dropping them, which is safe because there is a limit.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::op::{Block, Cond, CustomGrad, Metadata, Op, ReduceFun, While, WindowFun};
use crate::program::Program;

/// How deep regions may nest, so that no walk of them exhausts a stack of 1 MB. Deeper nests are
/// refused where they are built or read.
pub const MAX_NESTING: usize = 64;

/// The programs of one op, in a fixed order.
pub type Regions<'a> = SmallVec<[&'a Arc<Program>; 3]>;

impl Op {
    /// The programs inside this op: for `cond` each predicate and its body, then the last branch;
    /// for `while` the condition, then the body.
    pub fn regions(&self) -> Regions<'_> {
        match self {
            Op::ReduceFun(op) => Regions::from_slice(&[&op.function]),
            Op::WindowFun(op) => Regions::from_slice(&[&op.function]),
            Op::Metadata(op) => op.custom_grad.iter().map(|custom| &custom.program).collect(),
            Op::Cond(op) => {
                let clauses = op.clauses.iter().flat_map(|(predicate, body)| [predicate, body]);
                clauses.chain([&op.otherwise]).collect()
            }
            Op::While(op) => Regions::from_slice(&[&op.condition, &op.body]),
            Op::Block(op) => Regions::from_slice(&[&op.body]),
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
            | Op::Elem(_)
            | Op::Hook(_) => Regions::new(),
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
                let inspect = op.inspect.clone();
                Op::Metadata(Box::new(Metadata { inspect, stop_grad: op.stop_grad, custom_grad }))
            }
            Op::Cond(op) => {
                let mut pair = |(predicate, body): &(Arc<Program>, Arc<Program>)| {
                    let predicate = replace(predicate);
                    (predicate, replace(body))
                };
                let clauses = op.clauses.iter().map(&mut pair).collect();
                let otherwise = replace(&op.otherwise);
                Op::Cond(Arc::new(Cond { clauses, otherwise, sequence: op.sequence }))
            }
            Op::While(op) => {
                let condition = replace(&op.condition);
                let body = replace(&op.body);
                let (state, sequence) = (op.state, op.sequence);
                Op::While(Arc::new(While { state, condition, body, sequence }))
            }
            Op::Block(op) => {
                let (name, attributes) = (op.name.clone(), op.attributes.clone());
                let (body, sequence) = (replace(&op.body), op.sequence);
                Op::Block(Arc::new(Block { name, attributes, body, sequence }))
            }
            op => unreachable!("{} lists no regions", op.name()),
        }
    }

    /// The number of an op with effects: a hook, or an op with hooks inside.
    #[inline]
    pub fn sequence(&self) -> Option<u32> {
        match self {
            Op::Hook(hook) => Some(hook.sequence),
            Op::Cond(op) => op.sequence,
            Op::While(op) => op.sequence,
            Op::Block(op) => op.sequence,
            // A user's derivative is kept there and not run, and functions that fold hold no hook.
            _ => None,
        }
    }

    /// The same op with another number; for ops that can have effects.
    pub(crate) fn numbered(mut self, number: Option<u32>) -> Op {
        match &mut self {
            Op::Hook(hook) => hook.sequence = number.expect("a hook always has effects"),
            Op::Cond(op) => Arc::make_mut(op).sequence = number,
            Op::While(op) => Arc::make_mut(op).sequence = number,
            Op::Block(op) => Arc::make_mut(op).sequence = number,
            op => unreachable!("{} has no effects", op.name()),
        }
        self
    }

    /// Whether a region that runs holds something with effects.
    pub(crate) fn holds_effects(&self) -> bool {
        match self {
            Op::Cond(_) | Op::While(_) | Op::Block(_) => {
                self.regions().iter().any(|region| !region.effects().is_empty())
            }
            _ => false,
        }
    }
}
