//! Functions of complex numbers where a part is zero, infinite or NaN.
//!
//! XLA's functions are correct inside the first quadrant. Elsewhere they lose the signs of zeros
//! and the limits at infinity: they take the wrong side of branch cuts, and return NaN for
//! `exp(-∞ + i∞)`. Annex G of the C standard defines the results. All these functions have
//! `f(z̄) = f(z)‾`, and most are odd or even. They are therefore computed in the first quadrant; the
//! table [`LIMITS`] replaces results at zeros, infinities and NaN, and the signs are restored
//! afterwards.

use nxla_expr::UnaryOp;
use nxla_tensor::{DType, Scalar, Shape};

use crate::context::Cx;
use crate::writer::Value;

/// The effect of a sign change of the real part on the value of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    /// `f(-z) = -f(z)`.
    Odd,
    /// `f(-z) = f(z)`.
    Even,
    /// Neither; only the imaginary part is made positive.
    Neither,
}

/// The computation of a function of `a + ib`.
#[derive(Clone, Copy)]
enum Formula {
    /// The operation of StableHLO.
    Native,
    Exp,
    Log1p,
    Sinh,
    Cosh,
    Atanh,
    /// `sin z = -i sinh iz`.
    Sin,
    /// `cos z = cosh iz`.
    Cos,
    /// `atan z = -i atanh iz`.
    Atan,
}

/// Returns the symmetry and the formula of an op; `None` for ops that XLA computes correctly or that
/// take no complex numbers.
fn method(op: UnaryOp) -> Option<(Symmetry, Formula)> {
    match op {
        UnaryOp::Sin => Some((Symmetry::Odd, Formula::Sin)),
        UnaryOp::Sinh => Some((Symmetry::Odd, Formula::Sinh)),
        UnaryOp::Atan => Some((Symmetry::Odd, Formula::Atan)),
        UnaryOp::Atanh => Some((Symmetry::Odd, Formula::Atanh)),
        UnaryOp::Tan | UnaryOp::Tanh | UnaryOp::Asin | UnaryOp::Asinh => {
            Some((Symmetry::Odd, Formula::Native))
        }
        UnaryOp::Cos => Some((Symmetry::Even, Formula::Cos)),
        UnaryOp::Cosh => Some((Symmetry::Even, Formula::Cosh)),
        UnaryOp::Exp => Some((Symmetry::Neither, Formula::Exp)),
        UnaryOp::Log1p => Some((Symmetry::Neither, Formula::Log1p)),
        UnaryOp::Expm1 | UnaryOp::Log | UnaryOp::Sqrt | UnaryOp::Acos | UnaryOp::Acosh => {
            Some((Symmetry::Neither, Formula::Native))
        }
        UnaryOp::Sigmoid
        | UnaryOp::Rsqrt
        | UnaryOp::Cbrt
        | UnaryOp::Erf
        | UnaryOp::Erfc
        | UnaryOp::ErfInv
        | UnaryOp::Negate
        | UnaryOp::Sign
        | UnaryOp::Abs
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::RoundEven
        | UnaryOp::IsNan
        | UnaryOp::IsInfinity
        | UnaryOp::LogicalNot
        | UnaryOp::BitwiseNot
        | UnaryOp::PopulationCount
        | UnaryOp::CountLeadingZeros
        | UnaryOp::Real
        | UnaryOp::Imag
        | UnaryOp::Conjugate => None,
    }
}

/// A test of one part of the operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Test {
    Always,
    IsZero,
    IsInfinity,
    IsNegInfinity,
    IsNotFinite,
    IsNan,
}

/// A value for one part of the result.
#[derive(Clone, Copy)]
enum Part {
    /// The part that the formula computes.
    Computed,
    /// The real part of the operand.
    Re,
    /// The imaginary part of the operand.
    Im,
    Number(f64),
}

/// A function, the tests of the real and imaginary part of the operand, and the parts of the result
/// where both tests pass.
type Limit = (UnaryOp, [Test; 2], Part, Part);

/// The results at zeros, infinities and NaN that differ from the formulas, for operands in the
/// first quadrant, or in the upper half-plane without a [`Symmetry`]. Of several rows that apply to an
/// operand, the last one determines a part.
const LIMITS: &[Limit] = {
    use Part::{Computed, Im, Number, Re};
    use Test::{Always, IsInfinity, IsNan, IsNegInfinity, IsNotFinite, IsZero};
    use UnaryOp::{
        Acos, Acosh, Asin, Asinh, Atan, Atanh, Cos, Cosh, Exp, Expm1, Log, Log1p, Sin, Sinh, Sqrt,
        Tan, Tanh,
    };
    const INFINITY: Part = Number(f64::INFINITY);
    const NAN: Part = Number(f64::NAN);
    const RIGHT_ANGLE: Part = Number(std::f64::consts::FRAC_PI_2);
    &[
        (Exp, [Always, IsZero], Computed, Im),
        (Exp, [IsInfinity, IsNotFinite], Re, Computed),
        (Exp, [IsNegInfinity, IsNotFinite], Number(0.0), Number(0.0)),
        (Expm1, [IsZero, IsZero], Re, Computed),
        (Expm1, [IsInfinity, IsNotFinite], Re, Computed),
        (Expm1, [IsNegInfinity, IsNotFinite], Number(-1.0), Number(0.0)),
        (Sinh, [Always, IsZero], Computed, Im),
        (Sinh, [IsZero, IsNotFinite], Re, Computed),
        (Sinh, [IsInfinity, IsNotFinite], Re, Computed),
        (Sin, [IsZero, Always], Re, Computed),
        (Sin, [IsNotFinite, IsZero], Computed, Im),
        (Sin, [IsNotFinite, IsInfinity], Computed, Im),
        (Cosh, [IsZero, Always], Computed, Number(0.0)),
        (Cosh, [Always, IsZero], Computed, Number(0.0)),
        (Cosh, [IsInfinity, IsNotFinite], Re, Computed),
        (Cos, [IsZero, Always], Computed, Number(-0.0)),
        (Cos, [Always, IsZero], Computed, Number(-0.0)),
        (Cos, [IsNotFinite, IsInfinity], Im, Computed),
        (Tanh, [IsZero, IsNotFinite], Re, NAN),
        (Tan, [IsNotFinite, IsZero], NAN, Im),
        (Asin, [IsZero, IsNan], Re, Computed),
        (Acos, [IsZero, IsNan], RIGHT_ANGLE, Computed),
        (Acosh, [IsZero, IsNan], Computed, RIGHT_ANGLE),
        (Asinh, [Always, IsZero], Computed, Im),
        (Atanh, [IsZero, IsNan], Re, Computed),
        (Atanh, [IsNan, Always], Computed, Re),
        (Atanh, [Always, IsNan], Computed, Im),
        (Atanh, [Always, IsInfinity], Number(0.0), RIGHT_ANGLE),
        (Atan, [IsNan, IsZero], Computed, Im),
        (Atan, [Always, IsNan], Im, Computed),
        (Atan, [IsNan, Always], Re, Computed),
        (Atan, [IsInfinity, Always], RIGHT_ANGLE, Number(0.0)),
        (Log, [IsInfinity, Always], INFINITY, Computed),
        (Log, [IsNegInfinity, Always], INFINITY, Computed),
        (Log, [Always, IsInfinity], INFINITY, Computed),
        (Log1p, [IsInfinity, Always], INFINITY, Computed),
        (Log1p, [IsNegInfinity, Always], INFINITY, Computed),
        (Log1p, [Always, IsInfinity], INFINITY, Computed),
        (Sqrt, [Always, IsInfinity], INFINITY, INFINITY),
        (Sqrt, [IsInfinity, Always], INFINITY, Computed),
        (Sqrt, [IsNegInfinity, Always], Computed, INFINITY),
    ]
};

/// Real and imaginary part.
type Parts = (Value, Value);

/// Lowers an op on complex numbers if it is one of the ops above; `name` is its name in StableHLO.
pub(crate) fn unary(cx: &mut Cx<'_>, op: UnaryOp, name: &str, z: Value) -> Option<Value> {
    let (symmetry, formula) = method(op)?;
    let mut complex = Complex::new(cx, z);
    let (re, im) = complex.parts(z);
    let (re_is_negative, im_is_negative) = (complex.sign_bit(re), complex.sign_bit(im));
    let a = match symmetry {
        Symmetry::Odd | Symmetry::Even => complex.abs(re),
        Symmetry::Neither => re,
    };
    let b = complex.abs(im);
    let (u, v) = complex.compute(formula, name, (a, b));
    let (u, v) = complex.apply_limits(op, (a, b), (u, v));
    let (u, v) = match symmetry {
        Symmetry::Odd => {
            (complex.negate_if(re_is_negative, u), complex.negate_if(im_is_negative, v))
        }
        Symmetry::Even => {
            let either = complex.cx.uniform("stablehlo.xor", &[re_is_negative, im_is_negative]);
            (u, complex.negate_if(either, v))
        }
        Symmetry::Neither => (u, complex.negate_if(im_is_negative, v)),
    };
    Some(complex.cx.operation("stablehlo.complex", &[u, v], z.ty))
}

/// The absolute value: infinite if a part is, even if the other one is NaN.
pub(crate) fn abs(cx: &mut Cx<'_>, z: Value) -> Value {
    let mut complex = Complex::new(cx, z);
    let (re, im) = complex.parts(z);
    let length = complex.cx.operation("stablehlo.abs", &[z], re.ty);
    let infinite = complex.is_any_infinite((re, im));
    let infinity = complex.number(f64::INFINITY);
    complex.cx.select(infinite, infinity, length)
}

/// `z / |z|` for `z != 0`, where XLA's function divides by a magnitude that overflows or
/// underflows. A single infinite part determines the direction.
pub(crate) fn direction(cx: &mut Cx<'_>, z: Value) -> Value {
    let parts = cx.parts(z);
    let sizes = parts.map(|part| cx.uniform("stablehlo.abs", &[part]));
    let larger = cx.uniform("stablehlo.maximum", &sizes);
    // Division by the larger part would not suffice: XLA rewrites `a / b / c` to `a / (b * c)`, which overflows.
    let one = cx.splat_like(Scalar::UInt(1), larger);
    let is_large = cx.compare("GT", larger, one);
    let half = cx.splat_like(Scalar::Float(0.5), larger);
    let factor = cx.splat_like(Scalar::Float(18_014_398_509_481_984.0), larger);
    let factor = cx.select(is_large, half, factor);
    let scaled = parts.map(|part| cx.uniform("stablehlo.multiply", &[part, factor]));
    let point = cx.operation("stablehlo.complex", &scaled, z.ty);
    let length = cx.operation("stablehlo.abs", &[point], larger.ty);
    let units = scaled.map(|part| cx.uniform("stablehlo.divide", &[part, length]));
    let infinity = cx.splat_like(Scalar::Float(f64::INFINITY), larger);
    let infinite = sizes.map(|size| cx.compare("EQ", size, infinity));
    let is_limit = cx.uniform("stablehlo.xor", &infinite);
    let zero = cx.splat_like(Scalar::UInt(0), larger);
    let [re, im] = [0, 1].map(|at| {
        let sign = cx.uniform("stablehlo.sign", &[parts[at]]);
        let limit = cx.select(infinite[at], sign, zero);
        cx.select(is_limit, limit, units[at])
    });
    cx.operation("stablehlo.complex", &[re, im], z.ty)
}

struct Complex<'a, 'g> {
    cx: &'a mut Cx<'g>,
    /// The dtype of a part, and the integer of its width.
    part: DType,
    bits: DType,
    shape: Shape,
}

impl<'a, 'g> Complex<'a, 'g> {
    fn new(cx: &'a mut Cx<'g>, z: Value) -> Self {
        let part = cx.dtype(z.ty).to_real();
        let bits = if part == DType::F64 { DType::S64 } else { DType::S32 };
        let shape = cx.shape(z.ty).clone();
        Self { cx, part, bits, shape }
    }

    fn parts(&mut self, z: Value) -> Parts {
        let [re, im] = self.cx.parts(z);
        (re, im)
    }

    fn number(&mut self, value: f64) -> Value {
        self.cx.splat(Scalar::Float(value), self.part, &self.shape)
    }

    /// Tests the sign bit, which zeros have too.
    fn sign_bit(&mut self, x: Value) -> Value {
        let ty = self.cx.ty(self.bits, &self.shape);
        let bits = self.cx.operation("stablehlo.bitcast_convert", &[x], ty);
        let zero = self.cx.splat(Scalar::UInt(0), self.bits, &self.shape);
        self.cx.compare("LT", bits, zero)
    }

    fn negate_if(&mut self, condition: Value, x: Value) -> Value {
        let negated = self.cx.uniform("stablehlo.negate", &[x]);
        self.cx.select(condition, negated, x)
    }

    fn abs(&mut self, x: Value) -> Value {
        self.cx.uniform("stablehlo.abs", &[x])
    }

    fn is(&mut self, x: Value, value: f64) -> Value {
        let value = self.number(value);
        self.cx.compare("EQ", x, value)
    }

    fn is_any_infinite(&mut self, (re, im): Parts) -> Value {
        let (re, im) = (self.abs(re), self.abs(im));
        let (re, im) = (self.is(re, f64::INFINITY), self.is(im, f64::INFINITY));
        self.cx.uniform("stablehlo.or", &[re, im])
    }

    fn multiply(&mut self, x: Value, y: Value) -> Value {
        self.cx.uniform("stablehlo.multiply", &[x, y])
    }

    /// Computes the parts of a function of `a + ib`; `name` is its operation of StableHLO.
    fn compute(&mut self, formula: Formula, name: &str, (a, b): Parts) -> Parts {
        let swap = |(re, im): Parts| (im, re);
        match formula {
            Formula::Native => self.call(name, (a, b)),
            Formula::Exp => self.exp((a, b)),
            Formula::Log1p => self.log1p((a, b)),
            Formula::Sinh => self.sinh((a, b)),
            Formula::Cosh => self.cosh((a, b)),
            Formula::Atanh => self.atanh((a, b)),
            Formula::Sin => swap(self.sinh((b, a))),
            Formula::Cos => {
                let (u, v) = self.cosh((b, a));
                (u, self.cx.uniform("stablehlo.negate", &[v]))
            }
            Formula::Atan => swap(self.atanh((b, a))),
        }
    }

    /// Writes an operation on a complex number; returns the parts of its result.
    fn call(&mut self, name: &str, (a, b): Parts) -> Parts {
        let ty = self.cx.ty(self.part.to_complex(), &self.shape);
        let z = self.cx.operation("stablehlo.complex", &[a, b], ty);
        let w = self.cx.uniform(name, &[z]);
        self.parts(w)
    }

    /// Computes `log(1 + z)`, whose squares underflow in XLA for `z` near -1.
    fn log1p(&mut self, (a, b): Parts) -> Parts {
        let (u, v) = self.call("stablehlo.log_plus_one", (a, b));
        let one = self.number(1.0);
        let rest = self.cx.uniform("stablehlo.add", &[one, a]);
        let (is_tiny, log) = self.log_of_length((rest, b));
        (self.cx.select(is_tiny, log, u), v)
    }

    /// Computes `atanh`, which maps the first quadrant to itself: `log(2 / |1 - z|) / 2` for `z` near
    /// 1, where squares underflow in XLA.
    fn atanh(&mut self, (a, b): Parts) -> Parts {
        let (u, v) = self.call("chlo.atanh", (a, b));
        let (u, v) = (self.abs(u), self.abs(v));
        let (half, one) = (self.number(0.5), self.number(1.0));
        let log_2 = self.number(std::f64::consts::LN_2);
        let gap = self.cx.uniform("stablehlo.subtract", &[one, a]);
        let (is_tiny, log) = self.log_of_length((gap, b));
        let near = self.cx.uniform("stablehlo.subtract", &[log_2, log]);
        let near = self.multiply(half, near);
        (self.cx.select(is_tiny, near, u), v)
    }

    /// Tests whether the squares of the parts of a number other than zero may underflow, and computes the
    /// logarithm of its absolute value for this case.
    fn log_of_length(&mut self, (x, y): Parts) -> (Value, Value) {
        let (x, y) = (self.abs(x), self.abs(y));
        let most = self.cx.uniform("stablehlo.maximum", &[x, y]);
        let least = self.cx.uniform("stablehlo.minimum", &[x, y]);
        let (zero, half) = (self.number(0.0), self.number(0.5));
        let tiny = self.number(if self.part == DType::F64 { 1e-100 } else { 1e-15 });
        let is_below = self.cx.compare("LT", most, tiny);
        let is_above = self.cx.compare("GT", most, zero);
        let is_tiny = self.cx.uniform("stablehlo.and", &[is_below, is_above]);
        let ratio = self.cx.uniform("stablehlo.divide", &[least, most]);
        let square = self.multiply(ratio, ratio);
        let rest = self.cx.uniform("stablehlo.log_plus_one", &[square]);
        let rest = self.multiply(half, rest);
        let log = self.cx.uniform("stablehlo.log", &[most]);
        (is_tiny, self.cx.uniform("stablehlo.add", &[log, rest]))
    }

    /// Computes `cos y` and `sin y`, where `sin 0` keeps its sign.
    fn angle(&mut self, y: Value) -> Parts {
        (self.cx.uniform("stablehlo.cosine", &[y]), self.cx.uniform("stablehlo.sine", &[y]))
    }

    /// Computes `e^x cos y + i e^x sin y`.
    fn exp(&mut self, (x, y): Parts) -> Parts {
        let length = self.cx.uniform("stablehlo.exponential", &[x]);
        let (cos, sin) = self.angle(y);
        (self.multiply(length, cos), self.multiply(length, sin))
    }

    /// Computes `sinh x cos y + i cosh x sin y`.
    fn sinh(&mut self, (x, y): Parts) -> Parts {
        let (sinh, cosh) = (self.cx.uniform("chlo.sinh", &[x]), self.cx.uniform("chlo.cosh", &[x]));
        let (cos, sin) = self.angle(y);
        (self.multiply(sinh, cos), self.multiply(cosh, sin))
    }

    /// Computes `cosh x cos y + i sinh x sin y`.
    fn cosh(&mut self, (x, y): Parts) -> Parts {
        let (sinh, cosh) = (self.cx.uniform("chlo.sinh", &[x]), self.cx.uniform("chlo.cosh", &[x]));
        let (cos, sin) = self.angle(y);
        (self.multiply(cosh, cos), self.multiply(sinh, sin))
    }

    /// Replaces the parts `(u, v)` of a result by the rows of [`LIMITS`] for an op.
    fn apply_limits(&mut self, op: UnaryOp, operand: Parts, (mut u, mut v): Parts) -> Parts {
        for &(_, tests, re, im) in LIMITS.iter().filter(|(of, ..)| *of == op) {
            let condition = self.test_parts(tests, operand);
            u = self.select_part(condition, re, operand, u);
            v = self.select_part(condition, im, operand, v);
        }
        (u, v)
    }

    fn test_parts(&mut self, tests: [Test; 2], (a, b): Parts) -> Value {
        let (a, b) = (self.test(tests[0], a), self.test(tests[1], b));
        match (a, b) {
            (Some(a), Some(b)) => self.cx.uniform("stablehlo.and", &[a, b]),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => unreachable!("a limit tests at least one part"),
        }
    }

    /// Writes a test of a part; returns `None` for a test that always passes.
    fn test(&mut self, test: Test, x: Value) -> Option<Value> {
        match test {
            Test::Always => None,
            Test::IsZero => Some(self.is(x, 0.0)),
            Test::IsInfinity => Some(self.is(x, f64::INFINITY)),
            Test::IsNegInfinity => Some(self.is(x, f64::NEG_INFINITY)),
            Test::IsNotFinite => {
                let ty = self.cx.ty(DType::Pred, &self.shape);
                let is_finite = self.cx.operation("stablehlo.is_finite", &[x], ty);
                Some(self.cx.uniform("stablehlo.not", &[is_finite]))
            }
            Test::IsNan => Some(self.cx.compare("NE", x, x)),
        }
    }

    /// Selects between a part of a limit and the computed part.
    fn select_part(
        &mut self,
        condition: Value,
        part: Part,
        (a, b): Parts,
        computed: Value,
    ) -> Value {
        let value = match part {
            Part::Computed => return computed,
            Part::Re => a,
            Part::Im => b,
            Part::Number(number) => self.number(number),
        };
        self.cx.select(condition, value, computed)
    }
}
