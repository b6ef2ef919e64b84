//! The programs inside ops: which ones there are, and ops with other programs in their place.
//!
//! Everything that looks into regions without caring what holds them (digests, serialization,
//! verification) goes through these two methods, so that a new op with a region is added here
//! once.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::op::{Block, Cond, CustomGrad, Metadata, Op, ReduceFun, While, WindowFun};
use crate::program::Program;

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
            | Op::Parameter(_)
            | Op::Constant(_)
            | Op::Tensor(_)
            | Op::Elem(_)
            | Op::Hook(_) => Regions::new(),
        }
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
                Op::Cond(Arc::new(Cond { clauses, otherwise: replace(&op.otherwise) }))
            }
            Op::While(op) => {
                let condition = replace(&op.condition);
                let body = replace(&op.body);
                Op::While(Arc::new(While { state: op.state, condition, body }))
            }
            Op::Block(op) => {
                let (name, attributes) = (op.name.clone(), op.attributes.clone());
                Op::Block(Arc::new(Block { name, attributes, body: replace(&op.body) }))
            }
            op => unreachable!("{} lists no regions", op.name()),
        }
    }
}
