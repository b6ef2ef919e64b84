//! The derivative rules of all ops, with one file per family, and one for folds of two families.
//!
//! The matches are exhaustive. A new op compiles only after its author states which operands carry
//! derivatives and defines its rules for reverse mode and for forward mode.

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

use nxla_expr::{ExprId, Graph, Op, family_ops};
use nxla_tensor::DType;
use smallvec::smallvec;

use crate::error::Result;
use crate::forward::{JvpStep, Tangents};
use crate::reverse::{ReversePass, Visit};

use self::fold::Fold;

/// Returns whether the result of an op is differentiable with respect to the operand at `position`.
/// An op without a rule returns true, so that the reverse pass reports an error instead of a silent
/// zero.
pub(crate) fn carries(graph: &Graph, op: &Op, operands: &[ExprId], position: usize) -> bool {
    match op {
        Op::Iota(_) | Op::Eye(_) => create::CARRIES,
        Op::Unary(op) => elementwise::unary_carries(*op, graph.dtype(operands[0])),
        Op::Binary(op) => elementwise::binary_carries(*op),
        Op::Select => elementwise::select_carries(position),
        Op::AsType(dtype) => elementwise::as_type_carries(*dtype),
        Op::Bitcast(_) | Op::Clip => true,
        family_ops!(movement) => true,
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
        family_ops!(control) => {
            unreachable!("needed tangents of {} are computed for each tuple element", op.name())
        }
    }
}

/// Returns whether values of a dtype vary continuously. The integer results of an op on floats, such
/// as permutations, are piecewise constant.
pub(crate) fn is_continuous(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

/// Adds the contributions of a node to the cotangents of its operands. There are none if the node
/// has no operands, or if its result is piecewise constant.
pub(crate) fn rule(pass: &mut ReversePass<'_>, visit: &Visit, op: &Op) -> Result<()> {
    match op {
        Op::Iota(_) | Op::Eye(_) => Ok(()),
        Op::Unary(op) => elementwise::unary(pass, visit, *op),
        Op::Binary(op) => elementwise::binary(pass, visit, *op),
        Op::Select => elementwise::select(pass, visit),
        Op::Clip => elementwise::clip(pass, visit),
        Op::AsType(_) | Op::Bitcast(_) => elementwise::convert(pass, visit),
        Op::Reshape(_) | Op::Squeeze(_) => movement::reshape(pass, visit),
        Op::Transpose(permutation) => movement::transpose(pass, visit, permutation),
        Op::Reverse(axes) => movement::reverse(pass, visit, axes),
        Op::Broadcast(attributes) => movement::broadcast(pass, visit, attributes),
        Op::Pad(padding) => movement::pad(pass, visit, padding),
        Op::Concatenate(axis) => movement::concatenate(pass, visit, *axis),
        Op::Stack(attributes) => movement::stack(pass, visit, attributes.axis),
        Op::Reduce(op, attributes) => reduce::reduce(pass, visit, *op, attributes),
        Op::ArgReduce(..) => Ok(()),
        Op::ReduceFun(op) => Fold::Axes(op).rule(pass, visit),
        Op::Window(op, window) => window::window(pass, visit, *op, window),
        Op::WindowFun(op) => Fold::Windows(op).rule(pass, visit),
        Op::WindowScatter(op, window) => window::scatter(pass, visit, *op, window),
        Op::Dot(attributes) => contract::dot(pass, visit, attributes),
        Op::Conv(attributes) => contract::conv(pass, visit, attributes),
        Op::Slice(attributes) => index::slice(pass, visit, attributes),
        Op::PutSlice(starts) => index::put_slice(pass, visit, starts),
        Op::Gather(axes) => index::gather(pass, visit, axes),
        Op::IndexedAdd(axes) => index::indexed_add(pass, visit, axes),
        Op::IndexedPut(axes) => index::indexed_put(pass, visit, axes),
        Op::Sort(attributes) => index::sort(pass, visit, *attributes),
        Op::Argsort(..) => Ok(()),
        Op::Fft(attributes) => linalg::fft(pass, visit, *attributes),
        Op::TriangularSolve(attributes) => linalg::triangular_solve(pass, visit, *attributes),
        Op::Cholesky => linalg::cholesky(pass, visit),
        Op::Factorize(factorization) => linalg::factorize(pass, visit, *factorization),
        Op::Parameter(_) | Op::Constant(_) | Op::Tensor(_) => Ok(()),
        Op::Elem(_) => unreachable!("the reverse pass routes cotangents of tuple elements itself"),
        Op::Metadata(metadata) => control::metadata(pass, visit, metadata),
        Op::Cond(op) => control::cond::rule(pass, visit, op),
        Op::While(op) => control::while_loop::rule(pass, visit, op),
        Op::Hook(hook) => control::hook(pass, visit, hook),
        Op::Block(block) => control::block(pass, visit, block),
    }
}

/// Returns the tangents of the results of a node. [`control::jvp`] handles control ops, because it
/// creates the node together with its tangents.
pub(crate) fn tangents(step: &mut JvpStep<'_>, op: &Op) -> Result<Tangents> {
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
        Op::ReduceFun(op) => Fold::Axes(op).tangent(step)?,
        Op::Window(op, window) => window::window_tangent(step, *op, window)?,
        Op::WindowFun(op) => Fold::Windows(op).tangent(step)?,
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
        family_ops!(control) => unreachable!("{} has a separate rule", op.name()),
    };
    Ok(smallvec![tangent])
}
