//! Derivatives of element-wise ops.
//!
//! In the formulas, `dy` is the cotangent of the result `y`. The contribution to an operand is
//! summed over the axes along which the operand was broadcast. Formulas use `y` instead of
//! recomputing it.

mod forward;

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use nxla_expr::build::{Formula, Term};
use nxla_expr::{BinaryOp, ExprId, Graph, UnaryOp};
use nxla_tensor::{DType, Number};

use crate::builder::{scalar, select_or_zero, widen};
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
    let formula = Formula::new(graph);
    let [d, x, y] = formula.terms([d, x, y]);
    Ok(rule.map(|rule| rule(mode, d, x, y).id()).transpose()?)
}

/// A function of the tangent or cotangent, the operand and the result.
type UnaryRule = for<'f> fn(Mode, Term<'f>, Term<'f>, Term<'f>) -> Term<'f>;

/// Returns the rule of a unary op for a real or complex operand, or `None` if the derivative is
/// zero. A real or holomorphic function multiplies by its derivative in both modes. Functions that
/// are not holomorphic, such as `real`, have different formulas for the two modes.
fn unary_rule(op: UnaryOp, is_complex: bool) -> Option<UnaryRule> {
    Some(match op {
        UnaryOp::Exp => |_, d, _, y| d * y,
        UnaryOp::Expm1 => |_, d, _, y| d * (1.0 + y),
        UnaryOp::Log => |_, d, x, _| d / x,
        UnaryOp::Log1p => |_, d, x, _| d / (1.0 + float(x)),
        // `e^-x y^2` overflows for very negative `x`.
        UnaryOp::Sigmoid => |_, d, _, y| d * (y * (1.0 - y)),
        UnaryOp::Sin => |_, d, x, _| d * float(x).cos(),
        UnaryOp::Cos => |_, d, x, _| -(d * float(x).sin()),
        UnaryOp::Tan => |_, d, _, y| d * (1.0 + y * y),
        UnaryOp::Asin => |_, d, x, _| d * one_minus_square(float(x)).rsqrt(),
        UnaryOp::Acos => |_, d, x, _| -(d * one_minus_square(float(x)).rsqrt()),
        UnaryOp::Atan => |_, d, x, _| d / one_plus_square(float(x)),
        UnaryOp::Sinh => |_, d, x, _| d * float(x).cosh(),
        UnaryOp::Cosh => |_, d, x, _| d * float(x).sinh(),
        UnaryOp::Tanh => |_, d, _, y| d * one_minus_square(y),
        UnaryOp::Asinh => |_, d, x, _| d * asinh_slope(float(x)),
        UnaryOp::Acosh => |_, d, x, _| d * acosh_slope(float(x)),
        UnaryOp::Atanh => |_, d, x, _| d / one_minus_square(float(x)),
        UnaryOp::Sqrt => |_, d, _, y| d / (2.0 * y),
        UnaryOp::Rsqrt => |_, d, x, y| d * (-0.5 * (y / x)),
        UnaryOp::Cbrt => |_, d, _, y| d / (y * (3.0 * y)),
        UnaryOp::Erf => |_, d, x, _| d * bell(float(x), FRAC_2_SQRT_PI),
        UnaryOp::Erfc => |_, d, x, _| d * bell(float(x), -FRAC_2_SQRT_PI),
        UnaryOp::ErfInv => |_, d, _, y| d * (PI.sqrt() / 2.0 * (y * y).exp()),
        UnaryOp::Negate => |_, d, _, _| -d,
        UnaryOp::Abs if is_complex => complex_abs,
        UnaryOp::Abs => |_, d, x, _| x.greater_equal(x.zero()).select(d, -d),
        // The sign of a real number is piecewise constant; the sign of a complex number depends on
        // its phase.
        UnaryOp::Sign if is_complex => complex_sign,
        UnaryOp::Real if is_complex => real_part,
        UnaryOp::Imag if is_complex => imaginary_part,
        // Re(dy conj(dz)) = Re(conj(dy) dz).
        UnaryOp::Conjugate => |_, d, _, _| if d.dtype().is_complex() { d.conjugate() } else { d },
        UnaryOp::Real => |_, d, _, _| d,
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

/// Converts an operand to a float, because integer arithmetic of a rule could overflow.
fn float(x: Term<'_>) -> Term<'_> {
    x.as_type(x.dtype().to_floating())
}

/// `1 + x^2`.
fn one_plus_square(x: Term<'_>) -> Term<'_> {
    1.0 + x * x
}

/// `(1 - x) (1 + x)`, which is accurate near `x = ±1` where `1 - x^2` cancels.
fn one_minus_square(x: Term<'_>) -> Term<'_> {
    (1.0 - x) * (1.0 + x)
}

/// `1 / sqrt(1 + x^2)`, for real `x` without overflow of the square.
fn asinh_slope(x: Term<'_>) -> Term<'_> {
    if x.dtype().is_complex() {
        return one_plus_square(x).rsqrt();
    }
    let one = x.number(1.0);
    let length = larger_length(x, one);
    scaled_square(x, one, length).rsqrt() / length
}

/// The larger one of `|x|` and `|y|`, by which both are divided before they are squared; 1 where it
/// is zero or infinite. It counts as a constant, because it cancels in the result.
fn larger_length<'f>(x: Term<'f>, y: Term<'f>) -> Term<'f> {
    let length = one_for_zero(x.abs().max(y.abs()));
    length.is_infinity().select(1.0, length).apply(Graph::stop_grad)
}

/// `(x / length)^2 + (y / length)^2`.
fn scaled_square<'f>(x: Term<'f>, y: Term<'f>, length: Term<'f>) -> Term<'f> {
    let (x, y) = (x / length, y / length);
    x * x + y * y
}

/// `1 / (sqrt(x - 1) sqrt(x + 1))`. The form `sqrt(x^2 - 1)` has the wrong branch for complex `x`
/// with a negative real part.
fn acosh_slope(x: Term<'_>) -> Term<'_> {
    let (below, above) = (x - x.one(), x + x.one());
    below.rsqrt() * above.rsqrt()
}

/// `factor * e^(-x^2)`.
fn bell(x: Term<'_>, factor: f64) -> Term<'_> {
    factor * (-(x * x)).exp()
}

/// Returns the real part of a tangent. A cotangent of a real value is already real.
fn real_part<'f>(mode: Mode, d: Term<'f>, _x: Term<'f>, _y: Term<'f>) -> Term<'f> {
    match mode {
        Mode::Forward => d.real(),
        Mode::Reverse => d,
    }
}

/// With `z = a + ib` and `f(b)`: `df = dy db = Re(-i dy dz)`.
fn imaginary_part<'f>(mode: Mode, d: Term<'f>, _x: Term<'f>, _y: Term<'f>) -> Term<'f> {
    match mode {
        Mode::Forward => d.imag(),
        Mode::Reverse => d.number(Number::Complex(0.0, -1.0)) * d,
    }
}

/// Returns a number with 0 replaced by 1, so that its quotient or logarithm is finite at the origin.
fn one_for_zero(x: Term<'_>) -> Term<'_> {
    x.equal(x.zero()).select(x.one(), x)
}

/// `d|z| = Re(conj(z) dz) / |z|`.
fn complex_abs<'f>(mode: Mode, d: Term<'f>, z: Term<'f>, y: Term<'f>) -> Term<'f> {
    let (magnitude, conjugate) = (one_for_zero(y), z.conjugate());
    match mode {
        Mode::Forward => (conjugate * d).real() / magnitude,
        Mode::Reverse => d / magnitude * conjugate,
    }
}

/// `y = z / |z|`: the tangent is `dy = (dz - Re(conj(y) dz) y) / |z|`, and the cotangent is `dz =
/// (dy - Re(dy y) conj(y)) / |z|`.
fn complex_sign<'f>(mode: Mode, d: Term<'f>, z: Term<'f>, y: Term<'f>) -> Term<'f> {
    let conjugate = y.conjugate();
    let (outward, back) = match mode {
        Mode::Forward => (conjugate, y),
        Mode::Reverse => (y, conjugate),
    };
    let across = d - (d * outward).real() * back;
    across / one_for_zero(z.abs())
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
    let formula = Formula::new(graph);
    let [d, a, b, y] = formula.terms([d, operands[0], operands[1], y]);
    // Where `a` is 0, the formula for the derivative of `a^0` would return NaN.
    if op == BinaryOp::Pow && position == 0 && b.constant() == Some(0.0) {
        return Ok(None);
    }
    let rule = binary_rule(op, position);
    Ok(rule.map(|rule| rule(mode, d, [a, b], y).id()).transpose()?)
}

/// A function of the tangent or cotangent, the operands and the result. The result has the shape of
/// the result of the op.
type BinaryRule = for<'f> fn(Mode, Term<'f>, [Term<'f>; 2], Term<'f>) -> Term<'f>;

/// Returns the rule of a binary op for the operand at a position, or `None` if the derivative is
/// zero. A rule multiplies by the derivative in both modes; `complex` has different formulas.
fn binary_rule(op: BinaryOp, position: usize) -> Option<BinaryRule> {
    Some(match (op, position) {
        (BinaryOp::Add, _) | (BinaryOp::Subtract | BinaryOp::Remainder, 0) => |_, d, _, _| d,
        (BinaryOp::Subtract, _) => |_, d, _, _| -d,
        (BinaryOp::Multiply, 0) => |_, d, [_, b], _| d * b,
        (BinaryOp::Multiply, _) => |_, d, [a, _], _| d * a,
        (BinaryOp::Divide, 0) => |_, d, [_, b], _| d / b,
        (BinaryOp::Divide, _) => |_, d, [_, b], y| -(d / b * y),
        (BinaryOp::Pow, 0) => |_, d, [a, b], _| d * pow_slope(float(a), b),
        // For `a = 0` the logarithm is replaced by `log(1)`: the limit of `log(a) a^b` for `b > 0` is
        // 0, where the formula would return NaN.
        (BinaryOp::Pow, _) => |_, d, [a, _], y| d * (one_for_zero(float(a)).log() * y),
        (BinaryOp::Atan2, 0) => |_, d, [a, b], _| atan2_part(d, a, b, b),
        (BinaryOp::Atan2, _) => |_, d, [a, b], _| -atan2_part(d, a, b, a),
        // `y = a - b trunc(a/b)`, so `db` is multiplied by `-trunc(a/b) = (y - a)/b`. The exact
        // quotient is an integer, so rounding removes the error of the division.
        (BinaryOp::Remainder, _) => |_, d, [a, b], y| {
            let (a, y) = (float(a), float(y));
            d * ((y - a) / b).round()
        },
        (BinaryOp::Max, 0) => |_, d, [a, b], _| extremum(d, a.greater(b), a.equal(b)),
        (BinaryOp::Max, _) => |_, d, [a, b], _| extremum(d, b.greater(a), b.equal(a)),
        (BinaryOp::Min, 0) => |_, d, [a, b], _| extremum(d, a.less(b), a.equal(b)),
        (BinaryOp::Min, _) => |_, d, [a, b], _| extremum(d, b.less(a), b.equal(a)),
        // Re(dy (da + i db)) = Re(dy) da - Im(dy) db.
        (BinaryOp::Complex, 0) => |mode, d, _, _| match mode {
            Mode::Forward => d.complex(0.0),
            Mode::Reverse => d.real(),
        },
        (BinaryOp::Complex, _) => |mode, d, _, _| match mode {
            Mode::Forward => d.number(0.0).complex(d),
            Mode::Reverse => -d.imag(),
        },
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

/// `b a^(b-1)`. Where both are 0 the exponent 1 is used, because `0 * 0^-1` would be NaN.
fn pow_slope<'f>(a: Term<'f>, b: Term<'f>) -> Term<'f> {
    match b.constant() {
        Some(2.0) => return 2.0 * a,
        Some(exponent) => return exponent * a.pow(exponent - 1.0),
        None => {}
    }
    let b = float(b);
    let are_zero = b.equal(b.zero()) & a.equal(b.zero());
    let less = are_zero.select(b.one(), b - b.one());
    b * a.pow(less)
}

/// `d x / (a^2 + b^2)`, where `x` is an operand: `d atan2(a, b) = (b da - a db) / (a^2 + b^2)`.
fn atan2_part<'f>(d: Term<'f>, a: Term<'f>, b: Term<'f>, x: Term<'f>) -> Term<'f> {
    let (a, b, x) = (float(a), float(b), float(x));
    let length = larger_length(a, b);
    let square = scaled_square(a, b, length);
    // The length divides last: in second derivatives, terms that cancel would overflow before they
    // are added.
    d / square * (x / length) / length
}

/// The selected operand receives the whole cotangent; in a tie each operand receives one half.
fn extremum<'f>(d: Term<'f>, won: Term<'f>, tied: Term<'f>) -> Term<'f> {
    let shared = tied.select(0.5 * d, 0.0);
    won.select(d, shared)
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

type Build = nxla_expr::Result<ExprId>;

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
    let formula = Formula::new(graph);
    let [d, x, low, high] = formula.terms([d, x, low, high]);
    let is_result = match position {
        0 => x.greater_equal(low) & x.less_equal(high),
        1 => x.less(low) & low.less_equal(high),
        _ => x.max(low).greater(high),
    };
    is_result.select(d, 0.0).id()
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
