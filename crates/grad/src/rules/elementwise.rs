//! Derivatives of element-wise ops.
//!
//! In the formulas, `dy` is the cotangent of the result `y`. The contribution to an operand is
//! summed over the axes along which the operand was broadcast. Formulas use `y` instead of
//! recomputing it.

mod forward;

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use nxla_expr::{BinaryOp, ExprId, Graph, Op, UnaryOp};
use nxla_tensor::{DType, Scalar};

use crate::builder::{one_minus, one_plus, scalar, scale, select_or_zero, to_float, widen};
use crate::error::{GradError, Result};
use crate::reverse::{ReversePass, Visit};

pub(super) use forward::{
    binary_tangent, clip_tangent, convert_tangent, select_tangent, unary_tangent,
};

/// Returns whether a unary op has a nonzero derivative for an operand of this dtype.
pub(super) fn unary_carries(op: UnaryOp, dtype: DType) -> bool {
    unary_rule(op, dtype.is_complex()).is_some()
}

/// Adds the contribution to the operand of a unary op.
pub(super) fn unary(pass: &mut ReversePass<'_>, visit: &Visit, op: UnaryOp) -> Result<()> {
    let (dy, y) = (pass.dy(visit)?, pass.result(visit)?);
    let x = pass.operand(visit, 0)?;
    let dx = unary_part(pass.graph, op, Mode::Reverse, dy, (x, y))?;
    dx.map_or(Ok(()), |dx| pass.add_cotangent(visit, 0, dx))
}

/// The mode of differentiation for which a rule is evaluated.
#[derive(Clone, Copy)]
enum Mode {
    /// Maps the tangent of the operand to the tangent of the result.
    Forward,
    /// Maps the cotangent of the result to the cotangent of the operand.
    Reverse,
}

/// Maps the tangent or cotangent `d` through a unary op.
fn unary_part(
    graph: &mut Graph,
    op: UnaryOp,
    mode: Mode,
    d: ExprId,
    (x, y): (ExprId, ExprId),
) -> Result<Option<ExprId>> {
    let rule = unary_rule(op, graph.dtype(x).is_complex());
    Ok(rule.map(|rule| rule(graph, mode, d, (x, y))).transpose()?)
}

/// A function of the tangent or cotangent, the operand and the result.
type UnaryRule = fn(&mut Graph, Mode, ExprId, (ExprId, ExprId)) -> Build;

/// Returns the rule of a unary op for a real or complex operand, or `None` if the derivative is
/// zero. A real or holomorphic function multiplies by its derivative in both modes. Functions that
/// are not holomorphic, such as `real`, have different formulas for the two modes.
fn unary_rule(op: UnaryOp, is_complex: bool) -> Option<UnaryRule> {
    Some(match op {
        UnaryOp::Exp => |g, _, d, (_, y)| g.multiply(d, y),
        UnaryOp::Expm1 => |g, _, d, (_, y)| times(g, d, y, one_plus),
        UnaryOp::Log => |g, _, d, (x, _)| g.divide(d, x),
        UnaryOp::Log1p => |g, _, d, (x, _)| over(g, d, x, one_plus),
        UnaryOp::Sigmoid => |g, _, d, (_, y)| times(g, d, y, sigmoid_slope),
        UnaryOp::Sin => |g, _, d, (x, _)| times(g, d, x, Graph::cos),
        UnaryOp::Cos => |g, _, d, (x, _)| minus(g, d, x, Graph::sin),
        UnaryOp::Tan => |g, _, d, (_, y)| times(g, d, y, one_plus_square),
        UnaryOp::Asin => |g, _, d, (x, _)| times(g, d, x, asin_slope),
        UnaryOp::Acos => |g, _, d, (x, _)| minus(g, d, x, asin_slope),
        UnaryOp::Atan => |g, _, d, (x, _)| over(g, d, x, one_plus_square),
        UnaryOp::Sinh => |g, _, d, (x, _)| times(g, d, x, Graph::cosh),
        UnaryOp::Cosh => |g, _, d, (x, _)| times(g, d, x, Graph::sinh),
        UnaryOp::Tanh => |g, _, d, (_, y)| times(g, d, y, one_minus_square),
        UnaryOp::Asinh => |g, _, d, (x, _)| times(g, d, x, asinh_slope),
        UnaryOp::Acosh => |g, _, d, (x, _)| times(g, d, x, acosh_slope),
        UnaryOp::Atanh => |g, _, d, (x, _)| over(g, d, x, one_minus_square),
        UnaryOp::Sqrt => |g, _, d, (_, y)| over(g, d, y, |g, y| scale(g, y, 2.0)),
        UnaryOp::Rsqrt => |g, _, d, (x, y)| times(g, d, y, |g, y| rsqrt_slope(g, x, y)),
        UnaryOp::Cbrt => |g, _, d, (_, y)| over(g, d, y, cbrt_divisor),
        UnaryOp::Erf => |g, _, d, (x, _)| times(g, d, x, |g, x| bell(g, x, FRAC_2_SQRT_PI, -1.0)),
        UnaryOp::Erfc => |g, _, d, (x, _)| times(g, d, x, |g, x| bell(g, x, -FRAC_2_SQRT_PI, -1.0)),
        UnaryOp::ErfInv => {
            |g, _, d, (_, y)| times(g, d, y, |g, y| bell(g, y, PI.sqrt() / 2.0, 1.0))
        }
        UnaryOp::Negate => |g, _, d, _| g.negate(d),
        UnaryOp::Abs if is_complex => |g, mode, d, (x, y)| complex_abs(g, mode, d, x, y),
        UnaryOp::Abs => |g, _, d, (x, _)| real_abs(g, d, x),
        // The sign of a real number is piecewise constant; the sign of a complex number depends on
        // its phase.
        UnaryOp::Sign if is_complex => |g, mode, d, (x, y)| complex_sign(g, mode, d, x, y),
        UnaryOp::Real if is_complex => |g, mode, d, _| real_part(g, mode, d),
        UnaryOp::Imag if is_complex => |g, mode, d, _| imaginary_part(g, mode, d),
        UnaryOp::Conjugate => |g, _, d, _| conjugate_part(g, d),
        UnaryOp::Real => |_, _, d, _| Ok(d),
        UnaryOp::Sign
        | UnaryOp::Imag
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::RoundEven
        | UnaryOp::IsNan
        | UnaryOp::IsInfinity
        | UnaryOp::LogicalNot
        | UnaryOp::BitwiseNot
        | UnaryOp::PopulationCount
        | UnaryOp::CountLeadingZeros => return None,
    })
}

type Build = nxla_expr::Result<ExprId>;

/// `dy * f(x)`. `x` is cast to a float, because integer arithmetic in `f` could overflow.
fn times(
    graph: &mut Graph,
    dy: ExprId,
    x: ExprId,
    f: impl FnOnce(&mut Graph, ExprId) -> Build,
) -> Build {
    let x = to_float(graph, x)?;
    let slope = f(graph, x)?;
    graph.multiply(dy, slope)
}

/// `-dy * f(x)`.
fn minus(
    graph: &mut Graph,
    dy: ExprId,
    x: ExprId,
    f: impl FnOnce(&mut Graph, ExprId) -> Build,
) -> Build {
    let product = times(graph, dy, x, f)?;
    graph.negate(product)
}

/// `dy / f(x)`.
fn over(
    graph: &mut Graph,
    dy: ExprId,
    x: ExprId,
    f: impl FnOnce(&mut Graph, ExprId) -> Build,
) -> Build {
    let x = to_float(graph, x)?;
    let slope = f(graph, x)?;
    graph.divide(dy, slope)
}

/// `y (1 - y)`, because `e^-x y^2` overflows for very negative `x`.
fn sigmoid_slope(graph: &mut Graph, y: ExprId) -> Build {
    let rest = one_minus(graph, y)?;
    graph.multiply(y, rest)
}

/// `1 + x^2`.
fn one_plus_square(graph: &mut Graph, x: ExprId) -> Build {
    let square = graph.multiply(x, x)?;
    one_plus(graph, square)
}

/// `(1 - x) (1 + x)`, which is accurate near `x = ±1` where `1 - x^2` cancels.
fn one_minus_square(graph: &mut Graph, x: ExprId) -> Build {
    let (below, above) = (one_minus(graph, x)?, one_plus(graph, x)?);
    graph.multiply(below, above)
}

/// `1 / sqrt(1 - x^2)`.
fn asin_slope(graph: &mut Graph, x: ExprId) -> Build {
    let product = one_minus_square(graph, x)?;
    graph.rsqrt(product)
}

/// `1 / sqrt(1 + x^2)`, for real `x` without overflow of the square.
fn asinh_slope(graph: &mut Graph, x: ExprId) -> Build {
    if graph.dtype(x).is_complex() {
        let norm = one_plus_square(graph, x)?;
        return graph.rsqrt(norm);
    }
    let one = graph.one_like(x)?;
    let length = larger_length(graph, x, one)?;
    let square = scaled_square(graph, x, one, length)?;
    let slope = graph.rsqrt(square)?;
    graph.divide(slope, length)
}

/// The larger one of `|x|` and `|y|`, by which both are divided before they are squared; 1 where it
/// is zero or infinite. It counts as a constant, because it cancels in the result.
fn larger_length(graph: &mut Graph, x: ExprId, y: ExprId) -> Build {
    let (x, y) = (graph.abs(x)?, graph.abs(y)?);
    let larger = graph.max(x, y)?;
    let length = safe_magnitude(graph, larger)?;
    let (one, is_infinite) = (graph.one_like(length)?, graph.is_infinity(length)?);
    let length = graph.select(is_infinite, one, length)?;
    graph.stop_grad(length)
}

/// `(x / length)^2 + (y / length)^2`.
fn scaled_square(graph: &mut Graph, x: ExprId, y: ExprId, length: ExprId) -> Build {
    let (x, y) = (graph.divide(x, length)?, graph.divide(y, length)?);
    let (x, y) = (graph.multiply(x, x)?, graph.multiply(y, y)?);
    graph.add(x, y)
}

/// `1 / (sqrt(x - 1) sqrt(x + 1))`. The form `sqrt(x^2 - 1)` has the wrong branch for complex `x`
/// with a negative real part.
fn acosh_slope(graph: &mut Graph, x: ExprId) -> Build {
    let one = graph.one_like(x)?;
    let below = graph.subtract(x, one)?;
    let above = graph.add(x, one)?;
    let (below, above) = (graph.rsqrt(below)?, graph.rsqrt(above)?);
    graph.multiply(below, above)
}

/// `-1/2 x^(-3/2) = -1/2 y / x`.
fn rsqrt_slope(graph: &mut Graph, x: ExprId, y: ExprId) -> Build {
    let slope = graph.divide(y, x)?;
    scale(graph, slope, -0.5)
}

/// `factor * e^(sign * x^2)`.
fn bell(graph: &mut Graph, x: ExprId, factor: f64, sign: f64) -> Build {
    let square = graph.multiply(x, x)?;
    let exponent = if sign < 0.0 { graph.negate(square)? } else { square };
    let bell = graph.exp(exponent)?;
    scale(graph, bell, factor)
}

/// `3 y^2`.
fn cbrt_divisor(graph: &mut Graph, y: ExprId) -> Build {
    times(graph, y, y, |graph, y| scale(graph, y, 3.0))
}

/// Re(dy conj(dz)) = Re(conj(dy) dz).
fn conjugate_part(graph: &mut Graph, d: ExprId) -> Build {
    if graph.dtype(d).is_complex() { graph.conjugate(d) } else { Ok(d) }
}

/// `dy` where `x` is not negative, else `-dy`.
fn real_abs(graph: &mut Graph, dy: ExprId, x: ExprId) -> Build {
    let zero = graph.zero_like(x)?;
    let positive = graph.greater_equal(x, zero)?;
    let negated = graph.negate(dy)?;
    graph.select(positive, dy, negated)
}

/// Returns the real part of a tangent. A cotangent of a real value is already real.
fn real_part(graph: &mut Graph, mode: Mode, d: ExprId) -> Build {
    match mode {
        Mode::Forward => graph.real(d),
        Mode::Reverse => Ok(d),
    }
}

/// With `z = a + ib` and `f(b)`: `df = dy db = Re(-i dy dz)`.
fn imaginary_part(graph: &mut Graph, mode: Mode, d: ExprId) -> Build {
    match mode {
        Mode::Forward => graph.imag(d),
        Mode::Reverse => {
            let dtype = graph.dtype(d).to_complex();
            let minus_i = graph.scalar_constant(Scalar::Complex(0.0, -1.0), dtype)?;
            graph.multiply(minus_i, d)
        }
    }
}

/// Returns a magnitude with 0 replaced by 1, so that a division by it at the origin is not NaN.
fn safe_magnitude(graph: &mut Graph, magnitude: ExprId) -> Build {
    let (zero, one) = (graph.zero_like(magnitude)?, graph.one_like(magnitude)?);
    let is_zero = graph.equal(magnitude, zero)?;
    graph.select(is_zero, one, magnitude)
}

/// `d|z| = Re(conj(z) dz) / |z|`.
fn complex_abs(graph: &mut Graph, mode: Mode, d: ExprId, z: ExprId, y: ExprId) -> Build {
    let magnitude = safe_magnitude(graph, y)?;
    let conjugate = graph.conjugate(z)?;
    match mode {
        Mode::Forward => {
            let product = graph.multiply(conjugate, d)?;
            let along = graph.real(product)?;
            graph.divide(along, magnitude)
        }
        Mode::Reverse => {
            let slope = graph.divide(d, magnitude)?;
            graph.multiply(slope, conjugate)
        }
    }
}

/// `y = z / |z|`: the tangent is `dy = (dz - Re(conj(y) dz) y) / |z|`, and the cotangent is `dz =
/// (dy - Re(dy y) conj(y)) / |z|`.
fn complex_sign(graph: &mut Graph, mode: Mode, d: ExprId, z: ExprId, y: ExprId) -> Build {
    let conjugate = graph.conjugate(y)?;
    let (outward, back) = match mode {
        Mode::Forward => (conjugate, y),
        Mode::Reverse => (y, conjugate),
    };
    let radial = graph.multiply(d, outward)?;
    let radial = graph.real(radial)?;
    let radial = graph.multiply(radial, back)?;
    let across = graph.subtract(d, radial)?;
    let magnitude = graph.abs(z)?;
    let magnitude = safe_magnitude(graph, magnitude)?;
    graph.divide(across, magnitude)
}

/// Returns whether a binary op has a derivative rule or is an error. The derivative of a quotient
/// is zero almost everywhere, but the op is an error, since users usually meant `divide`.
pub(super) fn binary_carries(op: BinaryOp) -> bool {
    op == BinaryOp::Quotient || binary_rule(op, 0).is_some()
}

/// Adds the contributions to both operands of a binary op.
pub(super) fn binary(pass: &mut ReversePass<'_>, visit: &Visit, op: BinaryOp) -> Result<()> {
    check_quotient(pass.graph, visit.id, op)?;
    let (dy, y) = (pass.dy(visit)?, pass.result(visit)?);
    let operands = [pass.operand(visit, 0)?, pass.operand(visit, 1)?];
    for position in 0..2 {
        if !pass.needs_cotangent(visit, position) {
            continue;
        }
        let part = binary_part(pass.graph, op, Mode::Reverse, (position, dy), (operands, y))?;
        part.map_or(Ok(()), |part| pass.add_unbroadcast(visit, position, part))?;
    }
    Ok(())
}

/// Returns an error for integer division.
fn check_quotient(graph: &Graph, node: ExprId, op: BinaryOp) -> Result<()> {
    let why = "integer division has no derivative; divide instead, or mark it with stop_grad";
    if op == BinaryOp::Quotient { Err(GradError::no_rule(graph, node, why)) } else { Ok(()) }
}

/// Maps the tangent or cotangent `d` of the operand at a position through a binary op.
fn binary_part(
    graph: &mut Graph,
    op: BinaryOp,
    mode: Mode,
    (position, d): (usize, ExprId),
    (operands, y): ([ExprId; 2], ExprId),
) -> Result<Option<ExprId>> {
    // Where `a` is 0, the formula for the derivative of `a^0` would return NaN.
    if op == BinaryOp::Pow && position == 0 && real_constant(graph, operands[1]) == Some(0.0) {
        return Ok(None);
    }
    let rule = binary_rule(op, position);
    Ok(rule.map(|rule| rule(graph, mode, d, operands, y)).transpose()?)
}

/// A function of the tangent or cotangent, the operands and the result. The result has the shape of
/// the result of the op.
type BinaryRule = fn(&mut Graph, Mode, ExprId, [ExprId; 2], ExprId) -> Build;

/// Returns the rule of a binary op for the operand at a position, or `None` if the derivative is
/// zero. A rule multiplies by the derivative in both modes; `complex` has different formulas.
fn binary_rule(op: BinaryOp, position: usize) -> Option<BinaryRule> {
    Some(match (op, position) {
        (BinaryOp::Add, _) | (BinaryOp::Subtract | BinaryOp::Remainder, 0) => |_, _, d, _, _| Ok(d),
        (BinaryOp::Subtract, _) => |g, _, d, _, _| g.negate(d),
        (BinaryOp::Multiply, 0) => |g, _, d, [_, b], _| g.multiply(d, b),
        (BinaryOp::Multiply, _) => |g, _, d, [a, _], _| g.multiply(d, a),
        (BinaryOp::Divide, 0) => |g, _, d, [_, b], _| g.divide(d, b),
        (BinaryOp::Divide, _) => |g, _, d, [_, b], y| {
            let slope = g.divide(d, b)?;
            let part = g.multiply(slope, y)?;
            g.negate(part)
        },
        (BinaryOp::Pow, 0) => |g, _, d, [a, b], _| pow_base(g, d, a, b),
        (BinaryOp::Pow, _) => |g, _, d, [a, _], y| pow_exponent(g, d, a, y),
        (BinaryOp::Atan2, 0) => |g, _, d, [a, b], _| atan2_slope(g, d, (a, b), b),
        (BinaryOp::Atan2, _) => |g, _, d, [a, b], _| {
            let part = atan2_slope(g, d, (a, b), a)?;
            g.negate(part)
        },
        (BinaryOp::Remainder, _) => |g, _, d, [a, b], y| remainder_divisor(g, d, (a, b), y),
        (BinaryOp::Max, 0) => |g, _, d, [a, b], _| extremum(g, d, BinaryOp::Greater, (a, b)),
        (BinaryOp::Max, _) => |g, _, d, [a, b], _| extremum(g, d, BinaryOp::Greater, (b, a)),
        (BinaryOp::Min, 0) => |g, _, d, [a, b], _| extremum(g, d, BinaryOp::Less, (a, b)),
        (BinaryOp::Min, _) => |g, _, d, [a, b], _| extremum(g, d, BinaryOp::Less, (b, a)),
        (BinaryOp::Complex, 0) => |g, mode, d, _, _| complex_real(g, mode, d),
        (BinaryOp::Complex, _) => |g, mode, d, _, _| complex_imaginary(g, mode, d),
        (
            BinaryOp::Quotient
            | BinaryOp::BitwiseAnd
            | BinaryOp::BitwiseOr
            | BinaryOp::BitwiseXor
            | BinaryOp::LeftShift
            | BinaryOp::RightShift
            | BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Greater
            | BinaryOp::Less
            | BinaryOp::GreaterEqual
            | BinaryOp::LessEqual
            | BinaryOp::LogicalAnd
            | BinaryOp::LogicalOr
            | BinaryOp::LogicalXor,
            _,
        ) => return None,
    })
}

/// `log(a) y`. For `a = 0` the logarithm is replaced by `log(1)`: the limit of `log(a) a^b` for `b
/// > 0` is 0, where the formula would return NaN.
fn pow_exponent(graph: &mut Graph, d: ExprId, a: ExprId, y: ExprId) -> Build {
    let a = to_float(graph, a)?;
    let (zero, one) = (graph.zero_like(a)?, graph.one_like(a)?);
    let is_zero = graph.equal(a, zero)?;
    let safe = graph.select(is_zero, one, a)?;
    let log = graph.log(safe)?;
    let slope = graph.multiply(log, y)?;
    graph.multiply(d, slope)
}

/// Returns the value of a real constant.
fn real_constant(graph: &Graph, id: ExprId) -> Option<f64> {
    let Op::Constant(constant) = graph.op(id) else { return None };
    match constant.value {
        Scalar::Complex(..) => None,
        value => Some(value.as_f64()),
    }
}

/// `n a^(n-1)` for a constant exponent `n`.
fn pow_constant(graph: &mut Graph, dy: ExprId, a: ExprId, exponent: f64) -> Build {
    let a = to_float(graph, a)?;
    let power = if exponent == 2.0 {
        a
    } else {
        let less = scalar(graph, exponent - 1.0, graph.dtype(a))?;
        graph.pow(a, less)?
    };
    let slope = scale(graph, power, exponent)?;
    graph.multiply(dy, slope)
}

/// `b a^(b-1)`. Where both are 0 the exponent 1 is used, because `0 * 0^-1` would be NaN.
fn pow_base(graph: &mut Graph, dy: ExprId, a: ExprId, b: ExprId) -> Build {
    if let Some(exponent) = real_constant(graph, b) {
        return pow_constant(graph, dy, a, exponent);
    }
    let (a, b) = (to_float(graph, a)?, to_float(graph, b)?);
    let (zero, one) = (graph.zero_like(b)?, graph.one_like(b)?);
    let is_zero = graph.equal(b, zero)?;
    let base_is_zero = graph.equal(a, zero)?;
    let are_zero = graph.logical_and(is_zero, base_is_zero)?;
    let less = graph.subtract(b, one)?;
    let less = graph.select(are_zero, one, less)?;
    let power = graph.pow(a, less)?;
    let slope = graph.multiply(b, power)?;
    graph.multiply(dy, slope)
}

/// `d x / (a^2 + b^2)`, where `x` is an operand: `d atan2(a, b) = (b da - a db) / (a^2 + b^2)`.
fn atan2_slope(graph: &mut Graph, d: ExprId, (a, b): (ExprId, ExprId), x: ExprId) -> Build {
    let (a, b, x) = (to_float(graph, a)?, to_float(graph, b)?, to_float(graph, x)?);
    let length = larger_length(graph, a, b)?;
    let square = scaled_square(graph, a, b, length)?;
    let (direction, slope) = (graph.divide(x, length)?, graph.divide(d, length)?);
    let slope = graph.divide(slope, square)?;
    graph.multiply(slope, direction)
}

/// `y = a - b trunc(a/b)`, so `db` is multiplied by `-trunc(a/b) = (y - a)/b`. The exact quotient is
/// an integer, so rounding removes the error of the division.
fn remainder_divisor(graph: &mut Graph, d: ExprId, (a, b): (ExprId, ExprId), y: ExprId) -> Build {
    let (a, y) = (to_float(graph, a)?, to_float(graph, y)?);
    let multiple = graph.subtract(y, a)?;
    let count = graph.divide(multiple, b)?;
    let count = graph.round(count)?;
    graph.multiply(d, count)
}

/// The selected operand receives the whole cotangent; in a tie each operand receives one half.
fn extremum(graph: &mut Graph, d: ExprId, wins: BinaryOp, (own, other): (ExprId, ExprId)) -> Build {
    let (won, tied) = (graph.binary(wins, own, other)?, graph.equal(own, other)?);
    let half = scale(graph, d, 0.5)?;
    let shared = select_or_zero(graph, tied, half)?;
    graph.select(won, d, shared)
}

/// The cotangent of `a` in `a + ib`: `Re(dy (da + i db)) = Re(dy) da - Im(dy) db`.
fn complex_real(graph: &mut Graph, mode: Mode, d: ExprId) -> Build {
    match mode {
        Mode::Forward => {
            let zero = scalar(graph, 0.0, graph.dtype(d))?;
            graph.complex(d, zero)
        }
        Mode::Reverse => graph.real(d),
    }
}

/// The cotangent of `b` in `a + ib`; see [`complex_real`].
fn complex_imaginary(graph: &mut Graph, mode: Mode, d: ExprId) -> Build {
    match mode {
        Mode::Forward => {
            let zero = scalar(graph, 0.0, graph.dtype(d))?;
            graph.complex(zero, d)
        }
        Mode::Reverse => {
            let part = graph.imag(d)?;
            graph.negate(part)
        }
    }
}

/// Both branches carry derivatives, but the predicate does not.
pub(super) fn select_carries(position: usize) -> bool {
    position != 0
}

/// Each branch receives the cotangent where the predicate selected it, and zero elsewhere.
pub(super) fn select(pass: &mut ReversePass<'_>, visit: &Visit) -> Result<()> {
    let (dy, predicate) = (pass.dy(visit)?, pass.operand(visit, 0)?);
    give(pass, visit, 1, |graph| select_or_zero(graph, predicate, dy))?;
    give(pass, visit, 2, |graph| {
        let zero = scalar(graph, 0.0, graph.dtype(dy))?;
        graph.select(predicate, zero, dy)
    })
}

/// Builds a contribution with the shape of the result if the operand needs a cotangent.
fn give(
    pass: &mut ReversePass<'_>,
    visit: &Visit,
    position: usize,
    part: impl FnOnce(&mut Graph) -> Build,
) -> Result<()> {
    if !pass.needs_cotangent(visit, position) {
        return Ok(());
    }
    let part = part(pass.graph)?;
    pass.add_unbroadcast(visit, position, part)
}

/// Adds the contributions to the operands of `clip`.
pub(super) fn clip(pass: &mut ReversePass<'_>, visit: &Visit) -> Result<()> {
    let dy = pass.dy(visit)?;
    let operands = [pass.operand(visit, 0)?, pass.operand(visit, 1)?, pass.operand(visit, 2)?];
    (0..3).try_for_each(|position| {
        give(pass, visit, position, |graph| clip_part(graph, position, dy, operands))
    })
}

/// `min(max(x, low), high)`: the tangent or cotangent `d` of the operand at a position, where the
/// operand is the result, and zero elsewhere. Where `x` equals a bound, the result is `x`.
fn clip_part(graph: &mut Graph, position: usize, d: ExprId, [x, low, high]: [ExprId; 3]) -> Build {
    let is_result = match position {
        0 => {
            let above = graph.greater_equal(x, low)?;
            let below = graph.less_equal(x, high)?;
            graph.logical_and(above, below)?
        }
        1 => {
            let under = graph.less(x, low)?;
            let ordered = graph.less_equal(low, high)?;
            graph.logical_and(under, ordered)?
        }
        _ => {
            let raised = graph.max(x, low)?;
            graph.greater(raised, high)?
        }
    };
    select_or_zero(graph, is_result, d)
}

/// A conversion between numeric dtypes is the identity for derivatives, even through integers. A
/// conversion to booleans has no derivative.
pub(super) fn as_type_carries(dtype: DType) -> bool {
    !dtype.is_pred()
}

/// The cotangent is passed on unchanged, or widened if the operand has a wider dtype. A value that
/// was computed in 32 bits for a narrow float thus also has its derivative in 32 bits. The
/// cotangent is rounded only once, where it is returned. From complex to real the cotangent is
/// already real, and from real to complex the reverse pass takes its real part.
///
/// `bitcast` has the same rule by convention. It is exact for a dtype that is read as itself;
/// otherwise bits have no derivative.
pub(super) fn convert(pass: &mut ReversePass<'_>, visit: &Visit) -> Result<()> {
    let dy = pass.dy(visit)?;
    if !pass.needs_cotangent(visit, 0) {
        return Ok(());
    }
    let primal = pass.graph.dtype(visit.operands[0]);
    let dy = widen(pass.graph, dy, primal)?;
    pass.add_cotangent(visit, 0, dy)
}
