//! The derivative rule of every op, one file per family.
//!
//! The matches below are exhaustive: a new op does not compile until it is said here whether it
//! carries derivatives, to which operands, and how: from the result back to the operands, and from
//! the operands on to the result.

mod contract;
pub(crate) mod control;
mod create;
mod elementwise;
mod fold;
mod index;
mod linalg;
mod movement;
mod reduce;
mod window;

use nxla_expr::{ExprId, Graph, Op};
use smallvec::smallvec;

use crate::error::Result;
use crate::push::{Step, Tangents};
use crate::sweep::{Sweep, Visit};

/// Whether the result of an op changes smoothly with the operand at a position. Ops without a
/// rule carry: they are an error when the sweep meets them, not a silent zero.
pub(crate) fn carries(graph: &Graph, op: &Op, operands: &[ExprId], position: usize) -> bool {
    match op {
        Op::Iota(_) | Op::Eye(_) => create::CARRIES,
        Op::Unary(op) => elementwise::unary_carries(*op, graph.dtype(operands[0])),
        Op::Binary(op) => elementwise::binary_carries(*op),
        Op::Select => elementwise::select_carries(position),
        Op::AsType(dtype) => elementwise::as_type_carries(*dtype),
        Op::Bitcast(_) | Op::Clip => true,
        Op::Reshape(_)
        | Op::Squeeze(_)
        | Op::Transpose(_)
        | Op::Reverse(_)
        | Op::Broadcast(_)
        | Op::Pad(_)
        | Op::Concatenate(_)
        | Op::Stack(_) => true,
        Op::Reduce(op, _) => reduce::carries(*op),
        Op::ArgReduce(..) => false,
        Op::ReduceFun(_) => true,
        Op::Window(..) | Op::WindowFun(_) => true,
        Op::WindowScatter(..) => window::scatter_carries(position),
        Op::Dot(_) | Op::Conv(_) => true,
        Op::Slice(_) | Op::Gather(_) => position == 0,
        Op::PutSlice(_) => position < 2,
        Op::IndexedAdd(_) | Op::IndexedPut(_) => position != 1,
        Op::Sort(_) => true,
        Op::Argsort(..) => false,
        Op::Fft(_) | Op::TriangularSolve(_) | Op::Cholesky | Op::Factorize(_) => true,
        Op::Parameter(_)
        | Op::Constant(_)
        | Op::Tensor(_)
        | Op::Metadata(_)
        | Op::Elem(_)
        | Op::Cond(_)
        | Op::While(_)
        | Op::Hook(_)
        | Op::Block(_) => unreachable!("{} is asked part by part", op.name()),
    }
}

/// Hands the cotangent of a node on to its operands.
pub(crate) fn rule(sweep: &mut Sweep<'_>, visit: &Visit, op: &Op) -> Result<()> {
    match op {
        Op::Iota(_) | Op::Eye(_) => create::none(),
        Op::Unary(op) => elementwise::unary(sweep, visit, *op),
        Op::Binary(op) => elementwise::binary(sweep, visit, *op),
        Op::Select => elementwise::select(sweep, visit),
        Op::Clip => elementwise::clip(sweep, visit),
        Op::AsType(_) | Op::Bitcast(_) => elementwise::convert(sweep, visit),
        Op::Reshape(_) | Op::Squeeze(_) => movement::reshape(sweep, visit),
        Op::Transpose(permutation) => movement::transpose(sweep, visit, permutation),
        Op::Reverse(axes) => movement::reverse(sweep, visit, axes),
        Op::Broadcast(attributes) => movement::broadcast(sweep, visit, attributes),
        Op::Pad(padding) => movement::pad(sweep, visit, padding),
        Op::Concatenate(axis) => movement::concatenate(sweep, visit, *axis),
        Op::Stack(attributes) => movement::stack(sweep, visit, attributes.axis),
        Op::Reduce(op, attributes) => reduce::reduce(sweep, visit, *op, attributes),
        Op::ArgReduce(..) => reduce::no_derivative(),
        Op::ReduceFun(op) => fold::Fold::Axes(op).rule(sweep, visit),
        Op::Window(op, window) => window::window(sweep, visit, *op, window),
        Op::WindowFun(op) => fold::Fold::Windows(op).rule(sweep, visit),
        Op::WindowScatter(op, window) => window::scatter(sweep, visit, *op, window),
        Op::Dot(attributes) => contract::dot(sweep, visit, attributes),
        Op::Conv(attributes) => contract::conv(sweep, visit, attributes),
        Op::Slice(attributes) => index::slice(sweep, visit, attributes),
        Op::PutSlice(starts) => index::put_slice(sweep, visit, starts),
        Op::Gather(axes) => index::gather(sweep, visit, axes),
        Op::IndexedAdd(axes) => index::indexed_add(sweep, visit, axes),
        Op::IndexedPut(axes) => index::indexed_put(sweep, visit, axes),
        Op::Sort(attributes) => index::sort(sweep, visit, *attributes),
        Op::Argsort(..) => index::no_derivative(),
        Op::Fft(attributes) => linalg::fft(sweep, visit, *attributes),
        Op::TriangularSolve(attributes) => linalg::triangular_solve(sweep, visit, *attributes),
        Op::Cholesky => linalg::cholesky(sweep, visit),
        Op::Factorize(factorization) => linalg::factorize(sweep, visit, *factorization),
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => control::leaf(),
        Op::Elem(_) => unreachable!("the sweep routes cotangents of parts itself"),
        Op::Metadata(metadata) => control::metadata(sweep, visit, metadata),
        Op::Cond(op) => control::cond::rule(sweep, visit, op),
        Op::While(op) => control::repeat::rule(sweep, visit, op),
        Op::Hook(_) => control::hook(sweep, visit),
        Op::Block(block) => control::block(sweep, visit, block),
    }
}

/// How the results of a node change when its operands change. Control flow, whose regions change
/// too, is made together with its tangents, by [`control::push`].
pub(crate) fn tangents(step: &mut Step<'_>, op: &Op) -> Result<Tangents> {
    let tangent = match op {
        Op::Iota(_) | Op::Eye(_) => None,
        Op::Unary(op) => elementwise::unary_tangent(step, *op)?,
        Op::Binary(op) => elementwise::binary_tangent(step, *op)?,
        Op::Select => elementwise::select_tangent(step)?,
        Op::Clip => elementwise::clip_tangent(step)?,
        Op::AsType(_) | Op::Bitcast(_) => elementwise::convert_tangent(step),
        Op::Reshape(_) | Op::Squeeze(_) => movement::reshape_tangent(step)?,
        Op::Transpose(_) | Op::Reverse(_) => movement::same_tangent(step, op)?,
        Op::Broadcast(attributes) => movement::broadcast_tangent(step, attributes)?,
        Op::Pad(padding) => movement::pad_tangent(step, padding)?,
        Op::Concatenate(axis) => movement::concatenate_tangent(step, *axis)?,
        Op::Stack(attributes) => movement::stack_tangent(step, attributes.axis)?,
        Op::Reduce(op, attributes) => reduce::reduce_tangent(step, *op, attributes)?,
        Op::ArgReduce(..) => None,
        Op::ReduceFun(op) => fold::Fold::Axes(op).tangent(step)?,
        Op::Window(op, window) => window::window_tangent(step, *op, window)?,
        Op::WindowFun(op) => fold::Fold::Windows(op).tangent(step)?,
        Op::WindowScatter(op, window) => window::scatter_tangent(step, *op, window)?,
        Op::Dot(_) | Op::Conv(_) => contract::bilinear_tangent(step, op)?,
        Op::Slice(attributes) => index::slice_tangent(step, attributes)?,
        Op::PutSlice(starts) => index::put_slice_tangent(step, starts)?,
        Op::Gather(axes) => index::gather_tangent(step, axes)?,
        Op::IndexedAdd(axes) => index::indexed_add_tangent(step, axes)?,
        Op::IndexedPut(axes) => index::indexed_put_tangent(step, axes)?,
        Op::Sort(attributes) => index::sort_tangent(step, *attributes)?,
        Op::Argsort(..) => None,
        Op::Fft(attributes) => linalg::fft_tangent(step, *attributes)?,
        Op::TriangularSolve(attributes) => linalg::triangular_solve_tangent(step, *attributes)?,
        Op::Cholesky => linalg::cholesky_tangent(step)?,
        Op::Factorize(factorization) => return linalg::factorize_tangents(step, *factorization),
        Op::Parameter(_)
        | Op::Constant(_)
        | Op::Tensor(_)
        | Op::Metadata(_)
        | Op::Elem(_)
        | Op::Cond(_)
        | Op::While(_)
        | Op::Hook(_)
        | Op::Block(_) => unreachable!("{} is pushed as a whole", op.name()),
    };
    Ok(smallvec![tangent])
}
