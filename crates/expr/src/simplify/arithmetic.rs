//! Laws of arithmetic with constants. `c`, `c1`, `c2` are constants, `∘` is `+` or `*`.

use smallvec::smallvec;

use super::fold;
use super::outcome::{Simplified, constant};
use crate::graph::{BinaryOp, Constant, ExprId, Graph, Op, Type, TypeId};

pub(super) fn binary(graph: &Graph, op: BinaryOp, x: ExprId, y: ExprId, ty: TypeId) -> Simplified {
    let (left, right) = (is_constant(graph, x), is_constant(graph, y));
    if left && right {
        return fold_binary(graph, op, x, y, ty);
    }
    if (left || right)
        && let Some(other) = neutral(graph, op, x, y)
    {
        return Simplified::Fitted(other);
    }
    match op {
        BinaryOp::Add | BinaryOp::Multiply => commutative(graph, op, x, y, ty),
        _ => Simplified::Keep,
    }
}

fn is_constant(graph: &Graph, id: ExprId) -> bool {
    matches!(graph.op(id), Op::Constant(_))
}

fn node(op: BinaryOp, x: ExprId, y: ExprId) -> Simplified {
    Simplified::Node(Op::Binary(op), smallvec![x, y])
}

/// Returns `op` applied to `other` and to `inner` at position `place`.
fn around(op: BinaryOp, place: usize, inner: (ExprId, ExprId), other: ExprId) -> Simplified {
    let (op, inner) = (Op::Binary(op), smallvec![inner.0, inner.1]);
    Simplified::Nested { op: op.clone(), operands: smallvec![other; 2], place, inner: (op, inner) }
}

/// c1 op c2 = the constant c1 op c2
fn fold_binary(graph: &Graph, op: BinaryOp, x: ExprId, y: ExprId, ty: TypeId) -> Simplified {
    let (Some(left), Some(right)) = (constant(graph, x), constant(graph, y)) else {
        return Simplified::Keep;
    };
    let Type::Tensor(result) = graph.type_at(ty) else { return Simplified::Keep };
    let operand_dtypes = (left.ty.dtype, right.ty.dtype);
    match fold::binary(op, left.value, right.value, operand_dtypes, result.dtype) {
        Some(value) => Simplified::Node(
            Op::Constant(Box::new(Constant { value, ty: result.clone() })),
            Default::default(),
        ),
        None => Simplified::Keep,
    }
}

/// Returns the operand that a neutral constant leaves unchanged.
fn neutral(graph: &Graph, op: BinaryOp, x: ExprId, y: ExprId) -> Option<ExprId> {
    let zero = |id| constant(graph, id).is_some_and(|constant| constant.value.is_zero());
    let one = |id| constant(graph, id).is_some_and(|constant| constant.value.is_one());
    match op {
        // 0 + y = y
        BinaryOp::Add if zero(x) => Some(y),
        // x + 0 = x, x - 0 = x
        BinaryOp::Add | BinaryOp::Subtract if zero(y) => Some(x),
        // 1 * y = y
        BinaryOp::Multiply if one(x) => Some(y),
        // x * 1 = x, x / 1 = x, x ^ 1 = x
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Pow if one(y) => Some(x),
        _ => None,
    }
}

fn commutative(graph: &Graph, op: BinaryOp, x: ExprId, y: ExprId, ty: TypeId) -> Simplified {
    // x ∘ c = c ∘ x
    if is_constant(graph, y) {
        return node(op, y, x);
    }
    if let Some(inverse) = undo_inverse(graph, op, x, y) {
        return inverse;
    }
    if !reassociates(graph, ty) {
        return Simplified::Keep;
    }
    if is_constant(graph, x) {
        // c1 ∘ (c2 ∘ y) = (c1 ∘ c2) ∘ y
        return match constant_times(graph, op, y, ty) {
            Some((c2, y)) => around(op, 0, (x, c2), y),
            None => Simplified::Keep,
        };
    }
    // x ∘ (c ∘ y) = c ∘ (x ∘ y)
    if let Some((c, y)) = constant_times(graph, op, y, ty) {
        return around(op, 1, (x, y), c);
    }
    // (c ∘ x) ∘ y = c ∘ (y ∘ x), with the operands in Nx's order
    if let Some((c, x)) = constant_times(graph, op, x, ty) {
        return around(op, 1, (y, x), c);
    }
    Simplified::Keep
}

/// `x + (0 - y) = x - y`, and `x * (1 / y) = x / y` if this rounding is permitted.
fn undo_inverse(graph: &Graph, op: BinaryOp, x: ExprId, y: ExprId) -> Option<Simplified> {
    let Op::Binary(inner) = graph.op(y) else { return None };
    let operands = graph.operands(y);
    let neutral = constant(graph, operands[0])?;
    match (op, inner) {
        (BinaryOp::Add, BinaryOp::Subtract) if neutral.value.is_zero() => {
            Some(node(BinaryOp::Subtract, x, operands[1]))
        }
        (BinaryOp::Multiply, BinaryOp::Divide)
            if neutral.value.is_one() && graph.options().reassociate_floats =>
        {
            Some(node(BinaryOp::Divide, x, operands[1]))
        }
        _ => None,
    }
}

/// Returns whether sums and products can be reordered: always for integers, which wrap.
fn reassociates(graph: &Graph, ty: TypeId) -> bool {
    let exact = graph.type_at(ty).as_tensor().is_some_and(|ty| ty.dtype.is_integer());
    exact || graph.options().reassociate_floats
}

/// Returns `(c, y)` if the node is `c ∘ y` and has the dtype of the whole expression.
fn constant_times(graph: &Graph, op: BinaryOp, id: ExprId, ty: TypeId) -> Option<(ExprId, ExprId)> {
    let same_dtype = graph.type_at(ty).as_tensor()?.dtype == graph.ty(id).as_tensor()?.dtype;
    match (graph.op(id), graph.operands(id)) {
        (Op::Binary(inner), &[c, y]) if *inner == op && same_dtype && is_constant(graph, c) => {
            Some((c, y))
        }
        _ => None,
    }
}
