//! Laws of arithmetic with constants. `c`, `c1`, `c2` are constants, `∘` is `+` or `*`.

use nxla_tensor::{Scalar, promote};
use smallvec::smallvec;

use super::fold;
use super::outcome::{Simplified, constant};
use crate::graph::{BinaryOp, ExprId, Graph, Op, Type, TypeId};

pub(super) fn binary(graph: &Graph, op: BinaryOp, x: ExprId, y: ExprId, ty: TypeId) -> Simplified {
    let (left, right) = (is_constant(graph, x), is_constant(graph, y));
    if left && right {
        return fold_binary(graph, op, x, y, ty);
    }
    if (left || right)
        && let Some(other) = without_neutral(graph, op, x, y, ty)
    {
        return Simplified::Fitted(other);
    }
    match op {
        BinaryOp::Add | BinaryOp::Multiply => commutative(graph, op, x, y, ty),
        _ => Simplified::Keep,
    }
}

fn is_constant(graph: &Graph, id: ExprId) -> bool {
    constant(graph, id).is_some()
}

fn node(op: BinaryOp, x: ExprId, y: ExprId) -> Simplified {
    Simplified::Node(Op::Binary(op), smallvec![x, y])
}

/// Returns `op` applied to `other` and to `inner` at position `operand_index`.
fn around(
    op: BinaryOp,
    operand_index: usize,
    inner: (ExprId, ExprId),
    other: ExprId,
) -> Simplified {
    let (op, inner) = (Op::Binary(op), smallvec![inner.0, inner.1]);
    Simplified::Nested {
        op: op.clone(),
        operands: smallvec![other; 2],
        operand_index,
        inner: (op, inner),
    }
}

/// c1 op c2 = the constant c1 op c2
fn fold_binary(graph: &Graph, op: BinaryOp, x: ExprId, y: ExprId, ty: TypeId) -> Simplified {
    let (Some(left), Some(right)) = (constant(graph, x), constant(graph, y)) else {
        return Simplified::Keep;
    };
    let Type::Tensor(result) = graph.type_at(ty) else { return Simplified::Keep };
    let operand_dtypes = (left.ty.dtype, right.ty.dtype);
    match fold::binary(op, left.value, right.value, operand_dtypes, result.dtype) {
        Some(value) => Simplified::constant(value, result.clone()),
        None => Simplified::Keep,
    }
}

/// Returns the operand that a neutral constant leaves unchanged.
fn without_neutral(
    graph: &Graph,
    op: BinaryOp,
    x: ExprId,
    y: ExprId,
    ty: TypeId,
) -> Option<ExprId> {
    let is_neutral = |id| is_neutral(graph, op, id, ty);
    match op {
        // 0 + y = y, 1 * y = y
        BinaryOp::Add | BinaryOp::Multiply if is_neutral(x) => Some(y),
        // x + 0 = x, x - 0 = x, x * 1 = x, x / 1 = x, x ^ 1 = x
        _ => is_neutral(y).then_some(x),
    }
}

/// Returns whether a node is a constant that `op` can have on the right without effect.
///
/// Zero has a sign: `-0.0` is neutral for `+`, and `0.0` for `-`. A product of complex numbers has
/// no neutral constant, since infinity times the imaginary part of `1 + 0i` is NaN.
fn is_neutral(graph: &Graph, op: BinaryOp, id: ExprId, ty: TypeId) -> bool {
    let (Some(constant), Type::Tensor(ty)) = (constant(graph, id), graph.type_at(ty)) else {
        return false;
    };
    let value = constant.value.cast(ty.dtype);
    let is_exact = |neutral: Scalar| value == neutral.cast(ty.dtype);
    let reassociates = graph.options().reassociate_floats;
    match op {
        BinaryOp::Add => is_exact(Scalar::Complex(-0.0, -0.0)) || reassociates && value.is_zero(),
        BinaryOp::Subtract => is_exact(Scalar::zero(ty.dtype)) || reassociates && value.is_zero(),
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Pow => {
            value.is_one() && (reassociates || !ty.dtype.is_complex())
        }
        _ => false,
    }
}

fn commutative(graph: &Graph, op: BinaryOp, x: ExprId, y: ExprId, ty: TypeId) -> Simplified {
    // x ∘ c = c ∘ x
    if is_constant(graph, y) {
        return node(op, y, x);
    }
    if let Some(inverse) = undo_inverse(graph, op, x, y, ty) {
        return inverse;
    }
    if !reassociates(graph, ty) {
        return Simplified::Keep;
    }
    if is_constant(graph, x) {
        // c1 ∘ (c2 ∘ y) = (c1 ∘ c2) ∘ y
        return match constant_first(graph, op, y, ty) {
            Some((c2, y)) if computes_in(graph, x, c2, ty) => around(op, 0, (x, c2), y),
            _ => Simplified::Keep,
        };
    }
    // x ∘ (c ∘ y) = c ∘ (x ∘ y)
    if let Some((c, y)) = constant_first(graph, op, y, ty)
        && computes_in(graph, x, y, ty)
    {
        return around(op, 1, (x, y), c);
    }
    // (c ∘ x) ∘ y = c ∘ (y ∘ x), with the operands in Nx's order
    if let Some((c, x)) = constant_first(graph, op, x, ty)
        && computes_in(graph, y, x, ty)
    {
        return around(op, 1, (y, x), c);
    }
    Simplified::Keep
}

/// `x + (0 - y) = x - y`, and `x * (1 / y) = x / y` if this rounding is permitted.
fn undo_inverse(
    graph: &Graph,
    op: BinaryOp,
    x: ExprId,
    y: ExprId,
    ty: TypeId,
) -> Option<Simplified> {
    let (inverse, is_permitted) = match op {
        BinaryOp::Add => (BinaryOp::Subtract, true),
        _ => (BinaryOp::Divide, graph.options().reassociate_floats),
    };
    let (c, y) = constant_first(graph, inverse, y, ty)?;
    (is_permitted && is_neutral(graph, op, c, ty)).then(|| node(inverse, x, y))
}

/// Returns whether sums and products can be reordered: always for integers, which wrap. Complex
/// constants are not folded, so moving them together would not end.
fn reassociates(graph: &Graph, ty: TypeId) -> bool {
    let Type::Tensor(ty) = graph.type_at(ty) else { return false };
    ty.dtype.is_integer() || graph.options().reassociate_floats && ty.dtype.is_float()
}

/// Returns whether arithmetic on two operands has the dtype of the whole expression, since it could
/// overflow in a narrower dtype. The permission to reassociate floats includes that.
fn computes_in(graph: &Graph, x: ExprId, y: ExprId, ty: TypeId) -> bool {
    let Type::Tensor(ty) = graph.type_at(ty) else { return false };
    ty.dtype == promote(graph.dtype(x), graph.dtype(y))
        || graph.options().reassociate_floats && !ty.dtype.is_integer()
}

/// Returns `(c, y)` if the node is `c op y` and has the dtype of the whole expression.
fn constant_first(graph: &Graph, op: BinaryOp, id: ExprId, ty: TypeId) -> Option<(ExprId, ExprId)> {
    match (graph.op(id), graph.operands(id)) {
        (Op::Binary(inner), &[c, y])
            if *inner == op && is_constant(graph, c) && computes_in(graph, c, y, ty) =>
        {
            Some((c, y))
        }
        _ => None,
    }
}
