//! Functions of complex numbers where a part is zero, infinite or NaN.
//!
//! XLA's functions are correct inside the first quadrant. Elsewhere they lose the signs of zeros
//! and the limits at infinity: they take the wrong side of branch cuts, and return NaN for
//! `exp(-∞ + i∞)`. Annex G of the C standard defines the results. All these functions have
//! `f(z̄) = f(z)‾`, and most are odd or even. They are therefore computed in the first quadrant; the
//! signs are restored afterwards, and then the limits at infinity are applied.

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

/// Returns the symmetry of an op; `None` for ops that XLA computes correctly or that take no
/// complex numbers.
fn symmetry(op: UnaryOp) -> Option<Symmetry> {
    match op {
        UnaryOp::Sin
        | UnaryOp::Tan
        | UnaryOp::Sinh
        | UnaryOp::Tanh
        | UnaryOp::Asin
        | UnaryOp::Asinh
        | UnaryOp::Atan
        | UnaryOp::Atanh => Some(Symmetry::Odd),
        UnaryOp::Cos | UnaryOp::Cosh => Some(Symmetry::Even),
        UnaryOp::Exp
        | UnaryOp::Expm1
        | UnaryOp::Log
        | UnaryOp::Log1p
        | UnaryOp::Sqrt
        | UnaryOp::Acos
        | UnaryOp::Acosh => Some(Symmetry::Neither),
        _ => None,
    }
}

/// Real and imaginary part.
type Parts = (Value, Value);

/// Lowers an op on complex numbers if it is one of the ops above; `name` is its name in StableHLO.
pub(crate) fn unary(cx: &mut Cx<'_>, op: UnaryOp, name: &str, z: Value) -> Option<Value> {
    let symmetry = symmetry(op)?;
    let mut complex = Complex::new(cx, z);
    let (re, im) = complex.parts(z);
    let (re_is_negative, im_is_negative) = (complex.sign_bit(re), complex.sign_bit(im));
    let a = match symmetry {
        Symmetry::Odd | Symmetry::Even => complex.cx.uniform("stablehlo.abs", &[re]),
        Symmetry::Neither => re,
    };
    let b = complex.cx.uniform("stablehlo.abs", &[im]);
    let (u, v) = complex.first_quadrant(op, name, (a, b));
    let (u, v) = match symmetry {
        Symmetry::Odd => {
            (complex.negated_if(re_is_negative, u), complex.negated_if(im_is_negative, v))
        }
        Symmetry::Even => {
            let either = complex.cx.uniform("stablehlo.xor", &[re_is_negative, im_is_negative]);
            (u, complex.negated_if(either, v))
        }
        Symmetry::Neither => (u, complex.negated_if(im_is_negative, v)),
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
        let ty = self.cx.ty(self.part, &self.shape);
        let re = self.cx.operation("stablehlo.real", &[z], ty);
        (re, self.cx.operation("stablehlo.imag", &[z], ty))
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

    fn negated_if(&mut self, condition: Value, x: Value) -> Value {
        let negated = self.cx.uniform("stablehlo.negate", &[x]);
        self.cx.select(condition, negated, x)
    }

    fn is(&mut self, x: Value, value: f64) -> Value {
        let value = self.number(value);
        self.cx.compare("EQ", x, value)
    }

    /// Tests for an infinity or NaN.
    fn is_not_finite(&mut self, x: Value) -> Value {
        let ty = self.cx.ty(DType::Pred, &self.shape);
        let finite = self.cx.operation("stablehlo.is_finite", &[x], ty);
        self.cx.uniform("stablehlo.not", &[finite])
    }

    fn is_any_infinite(&mut self, (re, im): Parts) -> Value {
        let (re, im) =
            (self.cx.uniform("stablehlo.abs", &[re]), self.cx.uniform("stablehlo.abs", &[im]));
        let (re, im) = (self.is(re, f64::INFINITY), self.is(im, f64::INFINITY));
        self.cx.uniform("stablehlo.or", &[re, im])
    }

    fn multiply(&mut self, x: Value, y: Value) -> Value {
        self.cx.uniform("stablehlo.multiply", &[x, y])
    }

    fn and(&mut self, x: Value, y: Value) -> Value {
        self.cx.uniform("stablehlo.and", &[x, y])
    }

    /// The parts of the function of `a + ib`, where `b`, and most often `a`, is not negative.
    fn first_quadrant(&mut self, op: UnaryOp, name: &str, (a, b): Parts) -> Parts {
        match op {
            // sin z = -i sinh iz, and cos z = cosh iz.
            UnaryOp::Sin => {
                let (v, u) = self.sinh((b, a));
                (u, v)
            }
            UnaryOp::Cos => {
                let (u, v) = self.cosh((b, a));
                (u, self.cx.uniform("stablehlo.negate", &[v]))
            }
            UnaryOp::Sinh => self.sinh((a, b)),
            UnaryOp::Cosh => self.cosh((a, b)),
            UnaryOp::Exp => self.exp((a, b)),
            // atan z = -i atanh iz.
            UnaryOp::Atan => {
                let (v, u) = self.atanh((b, a));
                (u, v)
            }
            UnaryOp::Atanh => self.atanh((a, b)),
            _ => {
                let (u, v) = self.applied(name, (a, b));
                self.limits(op, (a, b), (u, v))
            }
        }
    }

    /// The parts of the result of an operation.
    fn applied(&mut self, name: &str, (a, b): Parts) -> Parts {
        let ty = self.cx.ty(self.part.to_complex(), &self.shape);
        let z = self.cx.operation("stablehlo.complex", &[a, b], ty);
        let w = self.cx.uniform(name, &[z]);
        self.parts(w)
    }

    fn is_nan(&mut self, x: Value) -> Value {
        self.cx.compare("NE", x, x)
    }

    /// Computes `atanh`, which maps the first quadrant to itself.
    fn atanh(&mut self, (x, y): Parts) -> Parts {
        let (u, v) = self.applied("chlo.atanh", (x, y));
        let (u, v) =
            (self.cx.uniform("stablehlo.abs", &[u]), self.cx.uniform("stablehlo.abs", &[v]));
        let (x_is_nan, y_is_nan) = (self.is_nan(x), self.is_nan(y));
        let is_imaginary = self.is(x, 0.0);
        let flat = self.and(is_imaginary, y_is_nan);
        let u = self.cx.select(flat, x, u);
        let v = self.cx.select(x_is_nan, x, v);
        let v = self.cx.select(y_is_nan, y, v);
        // If the imaginary part is infinite, the angle is pi/2 for every real part.
        let (up, zero) = (self.is(y, f64::INFINITY), self.number(0.0));
        let right = self.number(std::f64::consts::FRAC_PI_2);
        (self.cx.select(up, zero, u), self.cx.select(up, right, v))
    }

    /// `cos y` and `sin y`, where `sin 0` keeps its sign.
    fn angle(&mut self, y: Value) -> Parts {
        (self.cx.uniform("stablehlo.cosine", &[y]), self.cx.uniform("stablehlo.sine", &[y]))
    }

    /// `e^x cos y + i e^x sin y`.
    fn exp(&mut self, (x, y): Parts) -> Parts {
        let length = self.cx.uniform("stablehlo.exponential", &[x]);
        let (cos, sin) = self.angle(y);
        let (u, v) = (self.multiply(length, cos), self.multiply(length, sin));
        let (zero, is_real) = (self.number(0.0), self.is(y, 0.0));
        let v = self.cx.select(is_real, y, v);
        let wild = self.is_not_finite(y);
        let (vanishes, grows) = (self.is(x, f64::NEG_INFINITY), self.is(x, f64::INFINITY));
        let (vanishes, grows) = (self.and(vanishes, wild), self.and(grows, wild));
        let u = self.cx.select(grows, x, u);
        (self.cx.select(vanishes, zero, u), self.cx.select(vanishes, zero, v))
    }

    /// `sinh x cos y + i cosh x sin y`.
    fn sinh(&mut self, (x, y): Parts) -> Parts {
        let (sinh, cosh) = (self.cx.uniform("chlo.sinh", &[x]), self.cx.uniform("chlo.cosh", &[x]));
        let (cos, sin) = self.angle(y);
        let (u, v) = (self.multiply(sinh, cos), self.multiply(cosh, sin));
        let (is_imaginary, is_real) = (self.is(x, 0.0), self.is(y, 0.0));
        // If the real part is zero, the product is a signed zero, unless the angle is not finite.
        let wild = self.is_not_finite(y);
        let lost = self.and(is_imaginary, wild);
        let u = self.grown(x, y, u);
        (self.cx.select(lost, x, u), self.cx.select(is_real, y, v))
    }

    /// `cosh x cos y + i sinh x sin y`.
    fn cosh(&mut self, (x, y): Parts) -> Parts {
        let (sinh, cosh) = (self.cx.uniform("chlo.sinh", &[x]), self.cx.uniform("chlo.cosh", &[x]));
        let (cos, sin) = self.angle(y);
        let (u, v) = (self.multiply(cosh, cos), self.multiply(sinh, sin));
        let (zero, is_imaginary, is_real) = (self.number(0.0), self.is(x, 0.0), self.is(y, 0.0));
        let either = self.cx.uniform("stablehlo.or", &[is_imaginary, is_real]);
        // If a part is zero, the product is a signed zero, unless the other factor is not finite.
        let unsigned = self.is_not_finite(v);
        let lost = self.and(either, unsigned);
        (self.grown(x, y, u), self.cx.select(lost, zero, v))
    }

    /// The real part of a hyperbolic function: infinite with `x`, for every angle.
    fn grown(&mut self, x: Value, y: Value, u: Value) -> Value {
        let (wild, grows) = (self.is_not_finite(y), self.is(x, f64::INFINITY));
        let unknown = self.and(grows, wild);
        self.cx.select(unknown, x, u)
    }

    /// Limits at infinity that hold although the other part is NaN.
    fn limits(&mut self, op: UnaryOp, (a, b): Parts, (u, v): Parts) -> Parts {
        match op {
            UnaryOp::Log | UnaryOp::Log1p => {
                let (infinite, infinity) =
                    (self.is_any_infinite((a, b)), self.number(f64::INFINITY));
                (self.cx.select(infinite, infinity, u), v)
            }
            UnaryOp::Sqrt => {
                let tall = self.is(b, f64::INFINITY);
                let (u, v) = (self.cx.select(tall, b, u), self.cx.select(tall, b, v));
                let (left, right) = (self.is(a, f64::NEG_INFINITY), self.is(a, f64::INFINITY));
                let infinity = self.number(f64::INFINITY);
                (self.cx.select(right, infinity, u), self.cx.select(left, infinity, v))
            }
            // If the real part is zero, the real part of the result is known, even if the other
            // part is NaN.
            UnaryOp::Asin | UnaryOp::Acos => {
                let axis = match op {
                    UnaryOp::Acos => self.number(std::f64::consts::FRAC_PI_2),
                    _ => a,
                };
                let (is_imaginary, beside) = (self.is(a, 0.0), self.is_nan(b));
                let known = self.and(is_imaginary, beside);
                (self.cx.select(known, axis, u), v)
            }
            // A zero part stays zero even if the angle is not finite.
            UnaryOp::Tanh | UnaryOp::Tan => {
                let (size, angle) = if op == UnaryOp::Tanh { (a, b) } else { (b, a) };
                let (is_zero, wild) = (self.is(size, 0.0), self.is_not_finite(angle));
                let known = self.and(is_zero, wild);
                let nan = self.number(f64::NAN);
                let known_parts = if op == UnaryOp::Tanh { (size, nan) } else { (nan, size) };
                (self.cx.select(known, known_parts.0, u), self.cx.select(known, known_parts.1, v))
            }
            // On the imaginary axis, the angle is pi/2 for every magnitude.
            UnaryOp::Acosh => {
                let (is_imaginary, beside) = (self.is(a, 0.0), self.is_nan(b));
                let known = self.and(is_imaginary, beside);
                let right = self.number(std::f64::consts::FRAC_PI_2);
                (u, self.cx.select(known, right, v))
            }
            UnaryOp::Expm1 => {
                let (is_imaginary, is_real) = (self.is(a, 0.0), self.is(b, 0.0));
                let known = self.and(is_imaginary, is_real);
                let u = self.cx.select(known, a, u);
                let u = self.grown(a, b, u);
                let (vanishes, wild) = (self.is(a, f64::NEG_INFINITY), self.is_not_finite(b));
                let gone = self.and(vanishes, wild);
                let (minus_one, zero) = (self.number(-1.0), self.number(0.0));
                (self.cx.select(gone, minus_one, u), self.cx.select(gone, zero, v))
            }
            UnaryOp::Asinh => {
                let is_real = self.is(b, 0.0);
                (u, self.cx.select(is_real, b, v))
            }
            _ => (u, v),
        }
    }
}
