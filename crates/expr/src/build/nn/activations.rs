//! Activation functions: functions of single elements and of the elements along an axis.

use nxla_tensor::{DType, Scalar};

use super::super::formula::{Formula, Term};
use crate::graph::{ErrorKind, ExprId, Graph, Result};

/// `α` and `λ` of G. Klambauer et al., "Self-normalizing neural networks" (2017).
const SELU: [f64; 2] = [1.673_263_242_354_377_2, 1.050_700_987_355_480_5];

/// The magnitude above which the normal distribution is 0 or 1 in every dtype.
const NORMAL_LIMIT: f64 = 40.0;

/// The same for its approximation by a hyperbolic tangent.
const TANH_LIMIT: f64 = 10.0;

/// Generates methods that compute in a wide dtype and round the result.
macro_rules! activations {
    ($($(#[$doc:meta])* fn $name:ident($x:ident $(, $option:ident: $ty:ty)*) $body:expr;)*) => {
        impl Graph {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// Returns an error for complex numbers.
                pub fn $name(&mut self, x: ExprId $(, $option: $ty)*) -> Result<ExprId> {
                    let (x, dtype) = self.widen_to_float(x)?;
                    let formula = Formula::new(self);
                    let $x = formula.term(x);
                    $body.as_type(dtype).id()
                }
            )*
        }
    };
}

activations! {
    /// Returns `x` where it is positive, and 0 elsewhere.
    fn relu(x) clamp_strictly(x, Some(0.0), None);

    /// Clamps `x` to the range from 0 to 6.
    fn relu6(x) clamp_strictly(x, Some(0.0), Some(6.0));

    /// Clamps `x` to the range from -1 to 1.
    fn hard_tanh(x) clamp_strictly(x, Some(-1.0), Some(1.0));

    /// Returns a piecewise linear sigmoid: `relu6(x + 3) / 6`.
    fn hard_sigmoid(x) hard_gate(x);

    /// Returns `x hard_sigmoid(x)`.
    fn hard_silu(x) gate(x, 3.0, hard_gate);

    /// Returns `x sigmoid(x)`.
    fn silu(x) x * x.sigmoid();

    /// Returns `x Φ(x)` with the normal distribution `Φ`, or its tanh approximation with
    /// `approximate`.
    fn gelu(x, approximate: bool) {
        if approximate {
            gate(x, TANH_LIMIT, nearly_normal)
        } else {
            gate(x, NORMAL_LIMIT, |x| (x * -std::f64::consts::FRAC_1_SQRT_2).erfc() * 0.5)
        }
    };

    /// Returns `x` where it is positive, and `alpha (exp(x) - 1)` elsewhere.
    fn elu(x, alpha: f64) exponential_below(x, [alpha, 1.0, 1.0]);

    /// Returns `elu` with constants that preserve mean and variance between layers.
    fn selu(x) exponential_below(x, [SELU[0], 1.0, SELU[1]]);

    /// Returns `x` where it is positive, and `alpha (exp(x / alpha) - 1)` elsewhere.
    fn celu(x, alpha: f64) exponential_below(x, [alpha, 1.0 / alpha, 1.0]);

    /// Returns `log(1 + exp(x))` without overflow.
    fn softplus(x) {
        let positive = x.greater(0.0);
        // A selection has the full derivative at 0; a maximum would have none or share it.
        let excess = positive.select(-x, x).exp().log1p();
        positive.select(x, 0.0) + excess
    };

    /// Returns `log(sigmoid(x))` without overflow.
    fn log_sigmoid(x) -(-x).apply(Graph::softplus);

    /// Returns `x / (1 + |x|)`.
    fn soft_sign(x) x / (x.abs() + 1.0);

    /// Returns `x` where it is positive, and `slope x` elsewhere.
    fn leaky_relu(x, slope: f64) x.greater_equal(0.0).select(x, x * slope);

    /// Returns `x tanh(softplus(x))`.
    fn mish(x) x * x.apply(Graph::softplus).tanh();

    /// Returns `(x + √(x² + b)) / 2`, which is `b / (2 (√(x² + b) - x))`. Only the second form does not
    /// cancel for negative `x`.
    fn squareplus(x, b: f64) {
        let length = x.hypot(b.sqrt());
        let is_negative = x.less(0.0);
        let size = is_negative.select(-x, x);
        // The sum of the halves does not overflow.
        let half = size * 0.5 + length * 0.5;
        let inverse = 0.25 * b / is_negative.select(half, 1.0);
        is_negative.select(inverse, half)
    };

    /// Returns 0 below -1, `x` above 1, and a parabola between them.
    fn sparse_plus(x) {
        let inner = clamp_strictly(x, Some(-1.0), Some(1.0)) + 1.0;
        let parabola = inner * inner * 0.25;
        x.greater_equal(1.0).select(x, parabola)
    };

    /// Returns `(x + 1) / 2` clamped to the range from 0 to 1, the derivative of `sparse_plus`.
    fn sparse_sigmoid(x) (clamp_strictly(x, Some(-1.0), Some(1.0)) + 1.0) * 0.5;

    /// Returns `log(1 - exp(-x))` for positive `x`, accurate near 0 and for large `x`.
    fn log1mexp(x) {
        let limit = std::f64::consts::LN_2;
        let (near, opposite) = (x.less(limit), -x);
        let (low, high) = (near.select(opposite, -limit), near.select(-limit, opposite));
        let small = (-low.expm1()).log();
        near.select(small, (-high.exp()).log1p())
    };

    /// Returns `exp(x)` divided by its sum along an axis, without overflow.
    fn softmax(x, axis: i64) {
        let terms = subtract_max(x, axis).exp();
        terms / terms.sum(Some(&[axis]), true)
    };

    /// Returns `log(softmax(x))` without overflow or loss of precision.
    fn log_softmax(x, axis: i64) {
        let lowered = subtract_max(x, axis);
        lowered - lowered.exp().sum(Some(&[axis]), true).log()
    };

    /// Returns the first half of `x` along an axis times the sigmoid of the second half.
    fn glu(x, axis: i64) x.apply(|graph, x| {
        let at = graph.axis("glu", x, axis)?;
        let size = graph.shape(x)[at];
        if !size.is_multiple_of(2) {
            let why = format!("must have an even size; got {size} for axis {at}");
            return Err(graph.invalid("glu", "axis", why));
        }
        let half = i64::try_from(size / 2).unwrap_or(i64::MAX);
        let (value, gate) = graph.split(x, half, axis)?;
        let gate = graph.sigmoid(gate)?;
        graph.multiply(value, gate)
    });
}

/// Clamps `x`; the derivative is zero outside of the limits and at the limits. NaN remains.
fn clamp_strictly(x: Term<'_>, low: Option<f64>, high: Option<f64>) -> Term<'_> {
    let mut limited = x;
    if let Some(low) = low {
        limited = x.less_equal(low).select(low, limited);
    }
    if let Some(high) = high {
        limited = x.greater_equal(high).select(high, limited);
    }
    limited
}

fn hard_gate(x: Term<'_>) -> Term<'_> {
    clamp_strictly(x + 3.0, Some(0.0), Some(6.0)) * (1.0 / 6.0)
}

/// Returns `x share(x)` for a share that is 0 below `-limit` and 1 above `limit`. The values and the
/// derivatives at infinities are limits, where a product of `x` and zero would be NaN.
fn gate<'f>(x: Term<'f>, limit: f64, share: impl FnOnce(Term<'f>) -> Term<'f>) -> Term<'f> {
    let inner = clamp_strictly(x, Some(-limit), Some(limit));
    x.greater_equal(limit).select(x, inner * share(inner))
}

/// Approximates the normal distribution by a hyperbolic tangent.
fn nearly_normal(x: Term<'_>) -> Term<'_> {
    let argument = x * (x * x * 0.044_715 + 1.0) * (2.0 / std::f64::consts::PI).sqrt();
    (argument.tanh() + 1.0) * 0.5
}

/// Returns `scale x` where `x` is positive, and `scale alpha (exp(inner x) - 1)` elsewhere.
fn exponential_below(x: Term<'_>, [alpha, inner, scale]: [f64; 3]) -> Term<'_> {
    let positive = x.greater(0.0);
    let curve = (positive.select(0.0, x) * inner).expm1() * alpha;
    positive.select(x, curve) * scale
}

/// Subtracts the largest element along an axis, through which no gradient flows.
fn subtract_max(x: Term<'_>, axis: i64) -> Term<'_> {
    let largest = x.apply(|graph, x| graph.reduce_max(x, Some(&[axis]), true));
    x - largest.apply(Graph::stop_grad)
}

impl Graph {
    /// Returns ones where the index along a new axis equals the integer, and zeros elsewhere. A
    /// negative or too large integer has zeros only.
    ///
    /// # Errors
    /// Returns an error for numbers that are not integers or an axis out of range.
    pub fn one_hot(
        &mut self,
        x: ExprId,
        classes: usize,
        axis: i64,
        dtype: DType,
    ) -> Result<ExprId> {
        let op = "one_hot";
        let found = self.dtype(x);
        if !found.is_integer() {
            let (argument, expected) = ("operand", "an integer dtype");
            return Err(self.error(op, ErrorKind::DType { argument, found, expected }));
        }
        let spread = self.new_axis(x, axis, None)?;
        let at = self.axis(op, spread, axis)?;
        let numbers = self.iota([classes], Some(0), DType::S64)?;
        let mut aligned = vec![1; self.shape(spread).rank()];
        aligned[at] = classes;
        let numbers = self.reshape(numbers, aligned)?;
        // No dtype holds all signed and all unsigned 64-bit integers.
        let wide = if found == DType::U64 { DType::U64 } else { DType::S64 };
        let (spread, numbers) = (self.as_type(spread, wide)?, self.as_type(numbers, wide)?);
        let hot = self.equal(spread, numbers)?;
        self.as_type(hot, dtype)
    }

    /// Returns the rows of a table at integer indices; out-of-range indices are clamped.
    ///
    /// # Errors
    /// Returns an error for a table without axes or numbers that are not integers.
    pub fn embedding(&mut self, table: ExprId, x: ExprId) -> Result<ExprId> {
        let found = self.dtype(x);
        if !found.is_integer() {
            let (argument, expected) = ("x", "an integer dtype");
            return Err(self.error("embedding", ErrorKind::DType { argument, found, expected }));
        }
        self.take(table, x, 0)
    }

    /// Sets elements of `x` to zero with the probability `rate`, and divides the others by `1 -
    /// rate`.
    ///
    /// # Errors
    /// Returns an error for a `key` that is not a `u32[2]`; for a rate outside of `[0, 1]`; for
    /// complex numbers.
    pub fn dropout(&mut self, key: ExprId, x: ExprId, rate: f64) -> Result<ExprId> {
        let op = "dropout";
        if !(0.0..=1.0).contains(&rate) {
            return Err(self.invalid(op, "rate", format!("must be from 0 to 1; got {rate}")));
        }
        let dtype = self.dtype(x).to_floating();
        let x = self.as_type(x, dtype)?;
        let stays = self.scalar_constant(Scalar::Float(1.0 - rate), DType::F32)?;
        let draw = super::super::Draw::new(self.shape(x).clone());
        let kept = self.random_bernoulli(key, stays, &draw)?;
        // At the rate 1 no element stays, and the factor would be infinite.
        let factor = if rate < 1.0 { 1.0 / (1.0 - rate) } else { 1.0 };
        let formula = Formula::new(self);
        let [kept, x] = formula.terms([kept, x]);
        kept.select(x * factor, x.zero()).id()
    }
}
