//! Derivatives of element-wise ops.
//!
//! Below, `dy` is the cotangent of the result `y`, and what an operand gets is summed over the
//! axes along which it was broadcast. Where `y` itself appears in the derivative it is used in
//! place of recomputing it.

mod forward;

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use nxla_expr::{BinaryOp, ExprId, Graph, Op, UnaryOp};
use nxla_tensor::{DType, Scalar};

use crate::emit::{floating, keep_where, no_narrower, number, one_minus, one_plus, scale};
use crate::error::{GradError, Result};
use crate::sweep::{Sweep, Visit};

pub(super) use forward::{
    binary_tangent, clip_tangent, convert_tangent, select_tangent, unary_tangent,
};

/// Whether a unary op of an operand of this dtype has a derivative other than zero.
pub(super) fn unary_carries(op: UnaryOp, dtype: DType) -> bool {
    unary_rule(op, dtype.is_complex()).is_some()
}

/// What the operand of a unary op gets.
pub(super) fn unary(sweep: &mut Sweep<'_>, visit: &Visit, op: UnaryOp) -> Result<()> {
    let (dy, y) = (sweep.dy(visit)?, sweep.answer(visit)?);
    let x = sweep.operand(visit, 0)?;
    let dx = unary_part(sweep.graph, op, Mode::Reverse, dy, (x, y))?;
    dx.map_or(Ok(()), |dx| sweep.give(visit, 0, dx))
}

/// Which way a derivative goes.
#[derive(Clone, Copy)]
enum Mode {
    /// From the change of the operand to that of the result.
    Forward,
    /// From the cotangent of the result to that of the operand.
    Reverse,
}

/// What comes out at the other end of a unary op when `d` goes in.
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

/// From what goes in, the operand and the result to what comes out.
type UnaryRule = fn(&mut Graph, Mode, ExprId, (ExprId, ExprId)) -> Build;

/// The rule of each unary op, of a real or a complex operand; none where nothing comes out. A
/// function of real numbers multiplies by its slope either way, and so does a holomorphic function of
/// complex ones; what takes complex numbers apart does not.
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
        // The sign of a real number is constant by parts; that of a complex one turns with it.
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

/// `dy * f(x)`. Functions of `x` take it as a float, in which integers cannot overflow.
fn times(
    graph: &mut Graph,
    dy: ExprId,
    x: ExprId,
    f: impl FnOnce(&mut Graph, ExprId) -> Build,
) -> Build {
    let x = floating(graph, x)?;
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
    let x = floating(graph, x)?;
    let slope = f(graph, x)?;
    graph.divide(dy, slope)
}

/// `y (1 - y)`, rather than Nx's `e^-x y^2`, which overflows for very negative `x`.
fn sigmoid_slope(graph: &mut Graph, y: ExprId) -> Build {
    let rest = one_minus(graph, y)?;
    graph.multiply(y, rest)
}

/// `1 + x^2`.
fn one_plus_square(graph: &mut Graph, x: ExprId) -> Build {
    let square = graph.multiply(x, x)?;
    one_plus(graph, square)
}

/// `(1 - x) (1 + x)`, which is exact near the ends where `1 - x^2` cancels.
fn one_minus_square(graph: &mut Graph, x: ExprId) -> Build {
    let (below, above) = (one_minus(graph, x)?, one_plus(graph, x)?);
    graph.multiply(below, above)
}

/// `1 / sqrt(1 - x^2)`.
fn asin_slope(graph: &mut Graph, x: ExprId) -> Build {
    let product = one_minus_square(graph, x)?;
    graph.rsqrt(product)
}

/// `1 / sqrt(1 + x^2)`.
fn asinh_slope(graph: &mut Graph, x: ExprId) -> Build {
    let norm = one_plus_square(graph, x)?;
    graph.rsqrt(norm)
}

/// `1 / (sqrt(x - 1) sqrt(x + 1))`: two roots, because `sqrt(x^2 - 1)` is on the wrong branch for
/// complex `x` with a negative real part.
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

/// `da`, and of a cotangent all: that of a real number is real already.
fn real_part(graph: &mut Graph, mode: Mode, d: ExprId) -> Build {
    match mode {
        Mode::Forward => graph.real(d),
        Mode::Reverse => Ok(d),
    }
}

/// With `z = a + ib` and `f(b)`: `df = dy db = Re(-i dy dz)`. Nx has `imag(dy)` here, which is
/// zero for every real `dy` and loses the derivative.
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

/// `|z|`, with 1 in place of 0, so that the derivative at the origin is 0 and not NaN.
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

/// `y = z / |z|` turns but does not grow: `dy = (dz - Re(conj(y) dz) y) / |z|`, and the other way
/// `dz = (dy - Re(dy y) conj(y)) / |z|`.
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

/// Whether a binary op has a derivative other than zero. A quotient has none, but it is an error
/// rather than a silent zero: who writes it usually meant `divide`.
pub(super) fn binary_carries(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Pow
        | BinaryOp::Divide
        | BinaryOp::Atan2
        | BinaryOp::Remainder
        | BinaryOp::Quotient
        | BinaryOp::Max
        | BinaryOp::Min
        | BinaryOp::Complex => true,
        BinaryOp::BitwiseAnd
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
        | BinaryOp::LogicalXor => false,
    }
}

/// The rule of each binary op.
pub(super) fn binary(sweep: &mut Sweep<'_>, visit: &Visit, op: BinaryOp) -> Result<()> {
    let dy = sweep.dy(visit)?;
    match op {
        BinaryOp::Add => {
            sweep.give_summed(visit, 0, dy)?;
            sweep.give_summed(visit, 1, dy)
        }
        BinaryOp::Subtract => {
            sweep.give_summed(visit, 0, dy)?;
            give(sweep, visit, 1, |graph| graph.negate(dy))
        }
        BinaryOp::Multiply => {
            let (a, b) = (sweep.operand(visit, 0)?, sweep.operand(visit, 1)?);
            give(sweep, visit, 0, |graph| graph.multiply(dy, b))?;
            give(sweep, visit, 1, |graph| graph.multiply(dy, a))
        }
        BinaryOp::Divide => divide(sweep, visit, dy),
        BinaryOp::Pow => pow(sweep, visit, dy),
        BinaryOp::Atan2 => atan2(sweep, visit, dy),
        BinaryOp::Remainder => remainder(sweep, visit, dy),
        BinaryOp::Quotient => Err(GradError::no_rule(
            sweep.graph,
            visit.id,
            "integer division has no derivative; divide instead, or mark it with stop_grad",
        )),
        BinaryOp::Max => extremum(sweep, visit, dy, BinaryOp::Greater),
        BinaryOp::Min => extremum(sweep, visit, dy, BinaryOp::Less),
        // Re(dy (da + i db)) = Re(dy) da - Im(dy) db.
        BinaryOp::Complex => {
            give(sweep, visit, 0, |graph| graph.real(dy))?;
            give(sweep, visit, 1, |graph| {
                let part = graph.imag(dy)?;
                graph.negate(part)
            })
        }
        BinaryOp::BitwiseAnd
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
        | BinaryOp::LogicalXor => Ok(()),
    }
}

/// Builds and gives a contribution of the result's shape, if anybody wants it.
fn give(
    sweep: &mut Sweep<'_>,
    visit: &Visit,
    position: usize,
    part: impl FnOnce(&mut Graph) -> Build,
) -> Result<()> {
    if !sweep.wants(visit, position) {
        return Ok(());
    }
    let part = part(sweep.graph)?;
    sweep.give_summed(visit, position, part)
}

/// `d(a/b) = da/b - y db/b`.
fn divide(sweep: &mut Sweep<'_>, visit: &Visit, dy: ExprId) -> Result<()> {
    let (b, y) = (sweep.operand(visit, 1)?, sweep.answer(visit)?);
    let slope = sweep.graph.divide(dy, b)?;
    give(sweep, visit, 0, |_| Ok(slope))?;
    give(sweep, visit, 1, |graph| {
        let part = graph.multiply(slope, y)?;
        graph.negate(part)
    })
}

/// `d(a^b) = b a^(b-1) da + log(a) y db`.
fn pow(sweep: &mut Sweep<'_>, visit: &Visit, dy: ExprId) -> Result<()> {
    let (a, b) = (sweep.operand(visit, 0)?, sweep.operand(visit, 1)?);
    let exponent = real_constant(sweep.graph, b);
    match exponent {
        Some(0.0) => {}
        Some(exponent) => give(sweep, visit, 0, |graph| pow_constant(graph, dy, a, exponent))?,
        None => give(sweep, visit, 0, |graph| pow_base(graph, dy, a, b))?,
    }
    let y = sweep.answer(visit)?;
    give(sweep, visit, 1, |graph| pow_exponent(graph, dy, a, y))
}

/// `log(a) y`. The limit of `log(a) a^b` at `a = 0` is 0 for `b > 0`; with `log(1)` it is that, not
/// NaN.
fn pow_exponent(graph: &mut Graph, d: ExprId, a: ExprId, y: ExprId) -> Build {
    let a = floating(graph, a)?;
    let (zero, one) = (graph.zero_like(a)?, graph.one_like(a)?);
    let is_zero = graph.equal(a, zero)?;
    let safe = graph.select(is_zero, one, a)?;
    let log = graph.log(safe)?;
    let slope = graph.multiply(log, y)?;
    graph.multiply(d, slope)
}

/// The number behind a constant that is not complex.
fn real_constant(graph: &Graph, id: ExprId) -> Option<f64> {
    let Op::Constant(constant) = graph.op(id) else { return None };
    match constant.value {
        Scalar::Complex(..) => None,
        value => Some(value.as_f64()),
    }
}

fn pow_constant(graph: &mut Graph, dy: ExprId, a: ExprId, exponent: f64) -> Build {
    let a = floating(graph, a)?;
    let power = if exponent == 2.0 {
        a
    } else {
        let less = number(graph, exponent - 1.0, graph.dtype(a))?;
        graph.pow(a, less)?
    };
    let slope = scale(graph, power, exponent)?;
    graph.multiply(dy, slope)
}

/// `b a^(b-1)`; where `b` is 0 the power is taken to be `a`, since `0 * 0^-1` would be NaN.
fn pow_base(graph: &mut Graph, dy: ExprId, a: ExprId, b: ExprId) -> Build {
    let (a, b) = (floating(graph, a)?, floating(graph, b)?);
    let (zero, one) = (graph.zero_like(b)?, graph.one_like(b)?);
    let is_zero = graph.equal(b, zero)?;
    let less = graph.subtract(b, one)?;
    let less = graph.select(is_zero, one, less)?;
    let power = graph.pow(a, less)?;
    let slope = graph.multiply(b, power)?;
    graph.multiply(dy, slope)
}

/// `d atan2(a, b) = (b da - a db) / (a^2 + b^2)`.
fn atan2(sweep: &mut Sweep<'_>, visit: &Visit, dy: ExprId) -> Result<()> {
    let (a, b) = (sweep.operand(visit, 0)?, sweep.operand(visit, 1)?);
    let graph = &mut *sweep.graph;
    let (a, b) = (floating(graph, a)?, floating(graph, b)?);
    let (a2, b2) = (graph.multiply(a, a)?, graph.multiply(b, b)?);
    let norm = graph.add(a2, b2)?;
    let slope = graph.divide(dy, norm)?;
    give(sweep, visit, 0, |graph| graph.multiply(slope, b))?;
    give(sweep, visit, 1, |graph| {
        let part = graph.multiply(slope, a)?;
        graph.negate(part)
    })
}

/// `y = a - b trunc(a/b)`, so `da` passes and `db` counts `-trunc(a/b) = (y - a)/b`.
fn remainder(sweep: &mut Sweep<'_>, visit: &Visit, dy: ExprId) -> Result<()> {
    let (a, b) = (sweep.operand(visit, 0)?, sweep.operand(visit, 1)?);
    let y = sweep.answer(visit)?;
    sweep.give_summed(visit, 0, dy)?;
    give(sweep, visit, 1, |graph| remainder_divisor(graph, dy, (a, b), y))
}

/// `(y - a)/b`. Rounding removes the error of the division: the count is a whole number.
fn remainder_divisor(graph: &mut Graph, d: ExprId, (a, b): (ExprId, ExprId), y: ExprId) -> Build {
    let (a, y) = (floating(graph, a)?, floating(graph, y)?);
    let multiple = graph.subtract(y, a)?;
    let count = graph.divide(multiple, b)?;
    let count = graph.round(count)?;
    graph.multiply(d, count)
}

/// The winner gets all; in a tie each gets one half.
fn extremum(sweep: &mut Sweep<'_>, visit: &Visit, dy: ExprId, wins: BinaryOp) -> Result<()> {
    let operands = [sweep.operand(visit, 0)?, sweep.operand(visit, 1)?];
    for (position, (own, other)) in
        [(operands[0], operands[1]), (operands[1], operands[0])].into_iter().enumerate()
    {
        give(sweep, visit, position, |graph| {
            let (won, tied) = (graph.binary(wins, own, other)?, graph.equal(own, other)?);
            let half = scale(graph, dy, 0.5)?;
            let shared = keep_where(graph, tied, half)?;
            graph.select(won, dy, shared)
        })?;
    }
    Ok(())
}

/// Both branches carry; the predicate chooses and has no derivative.
pub(super) fn select_carries(position: usize) -> bool {
    position != 0
}

/// Each branch gets what it was chosen for.
pub(super) fn select(sweep: &mut Sweep<'_>, visit: &Visit) -> Result<()> {
    let (dy, predicate) = (sweep.dy(visit)?, sweep.operand(visit, 0)?);
    give(sweep, visit, 1, |graph| keep_where(graph, predicate, dy))?;
    give(sweep, visit, 2, |graph| {
        let zero = number(graph, 0.0, graph.dtype(dy))?;
        graph.select(predicate, zero, dy)
    })
}

/// `min(max(x, low), high)`: the cotangent goes to whichever of the three is the result. Where
/// `x` equals a bound, it is `x`.
pub(super) fn clip(sweep: &mut Sweep<'_>, visit: &Visit) -> Result<()> {
    let dy = sweep.dy(visit)?;
    let x = sweep.operand(visit, 0)?;
    let (low, high) = (sweep.operand(visit, 1)?, sweep.operand(visit, 2)?);
    give(sweep, visit, 0, |graph| {
        let above = graph.greater_equal(x, low)?;
        let below = graph.less_equal(x, high)?;
        let inside = graph.logical_and(above, below)?;
        keep_where(graph, inside, dy)
    })?;
    give(sweep, visit, 1, |graph| {
        let under = graph.less(x, low)?;
        let ordered = graph.less(low, high)?;
        let taken = graph.logical_and(under, ordered)?;
        keep_where(graph, taken, dy)
    })?;
    give(sweep, visit, 2, |graph| {
        let raised = graph.max(x, low)?;
        let taken = graph.greater(raised, high)?;
        keep_where(graph, taken, dy)
    })
}

/// Conversions are the identity of real numbers, through integers too, as in Nx. A truth value
/// is no number.
pub(super) fn as_type_carries(dtype: DType) -> bool {
    !dtype.is_pred()
}

/// The cotangent passes as it is, or in a wider dtype where the operand has one: what was computed in
/// 32 bits for the sake of a narrow float has its derivative computed in 32 bits too. It is not made
/// narrower on the way, but rounded once where it is given. From complex to real it is real already,
/// and from real to complex the sweep takes its real part.
///
/// The same holds for `bitcast`, which is Nx's convention: right for a dtype read as itself, and
/// for others a choice, since bits have no derivative.
pub(super) fn convert(sweep: &mut Sweep<'_>, visit: &Visit) -> Result<()> {
    let dy = sweep.dy(visit)?;
    if !sweep.wants(visit, 0) {
        return Ok(());
    }
    let primal = sweep.graph.dtype(visit.operands[0]);
    let dy = no_narrower(sweep.graph, dy, primal)?;
    sweep.give(visit, 0, dy)
}
