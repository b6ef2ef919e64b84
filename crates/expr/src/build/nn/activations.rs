//! Activation functions: functions of single elements and of the elements along an axis.

use nxla_tensor::{DType, Scalar};

use crate::graph::{ErrorKind, ExprId, Graph, Result};

/// `α` and `λ` of G. Klambauer et al., "Self-normalizing neural networks" (2017).
const SELU: [f64; 2] = [1.673_263_242_354_377_2, 1.050_700_987_355_480_5];

/// The magnitude above which the argument of `gelu` is treated as infinite.
const SATURATED: f64 = 10.0;

/// Generates methods that compute in a wide dtype and round the result.
macro_rules! activations {
    ($($(#[$doc:meta])* fn $name:ident($x:ident $(, $option:ident: $ty:ty)*) |$graph:ident| $body:expr;)*) => {
        impl Graph {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// Returns an error for complex numbers.
                pub fn $name(&mut self, x: ExprId $(, $option: $ty)*) -> Result<ExprId> {
                    let ($x, dtype) = self.widen_to_float(x)?;
                    let $graph = self;
                    let result = $body?;
                    $graph.as_type(result, dtype)
                }
            )*
        }
    };
}

activations! {
    /// Returns `x` where it is positive, and 0 elsewhere.
    fn relu(x) |graph| graph.clamp_strictly(x, Some(0.0), None);

    /// Clamps `x` to the range from 0 to 6.
    fn relu6(x) |graph| graph.clamp_strictly(x, Some(0.0), Some(6.0));

    /// Clamps `x` to the range from -1 to 1.
    fn hard_tanh(x) |graph| graph.clamp_strictly(x, Some(-1.0), Some(1.0));

    /// Returns a piecewise linear sigmoid: `relu6(x + 3) / 6`.
    fn hard_sigmoid(x) |graph| graph.hard_gate(x);

    /// Returns `x hard_sigmoid(x)`.
    fn hard_silu(x) |graph| {
        let gate = graph.hard_gate(x)?;
        graph.multiply(x, gate)
    };

    /// Returns `x sigmoid(x)`.
    fn silu(x) |graph| {
        let gate = graph.sigmoid(x)?;
        graph.multiply(x, gate)
    };

    /// Returns `x Φ(x)` with the normal distribution `Φ`, or its tanh approximation with
    /// `approximate`.
    fn gelu(x, approximate: bool) |graph| {
        let share = if approximate { graph.nearly_normal(x)? } else {
            let distance = graph.scale_by(x, -std::f64::consts::FRAC_1_SQRT_2)?;
            let tail = graph.erfc(distance)?;
            graph.scale_by(tail, 0.5)?
        };
        graph.multiply(x, share)
    };

    /// Returns `x` where it is positive, and `alpha (exp(x) - 1)` elsewhere.
    fn elu(x, alpha: f64) |graph| graph.exponential_below(x, [alpha, 1.0, 1.0]);

    /// Returns `elu` with constants that preserve mean and variance between layers.
    fn selu(x) |graph| graph.exponential_below(x, [SELU[0], 1.0, SELU[1]]);

    /// Returns `x` where it is positive, and `alpha (exp(x / alpha) - 1)` elsewhere.
    fn celu(x, alpha: f64) |graph| graph.exponential_below(x, [alpha, 1.0 / alpha, 1.0]);

    /// Returns `log(1 + exp(x))` without overflow.
    fn softplus(x) |graph| {
        let zero = graph.constant_like(x, 0.0)?;
        let positive = graph.greater(x, zero)?;
        let opposite = graph.negate(x)?;
        // A selection has the full derivative at 0; a maximum would have none or share it.
        let below = graph.select(positive, opposite, x)?;
        let excess = graph.exp(below)?;
        let excess = graph.log1p(excess)?;
        let line = graph.select(positive, x, zero)?;
        graph.add(line, excess)
    };

    /// Returns `log(sigmoid(x))` without overflow.
    fn log_sigmoid(x) |graph| {
        let opposite = graph.negate(x)?;
        let plus = graph.softplus(opposite)?;
        graph.negate(plus)
    };

    /// Returns `x / (1 + |x|)`.
    fn soft_sign(x) |graph| {
        let size = graph.abs(x)?;
        let divisor = graph.shift_by(size, 1.0)?;
        graph.divide(x, divisor)
    };

    /// Returns `x` where it is positive, and `slope x` elsewhere.
    fn leaky_relu(x, slope: f64) |graph| {
        let zero = graph.constant_like(x, 0.0)?;
        let positive = graph.greater_equal(x, zero)?;
        let below = graph.scale_by(x, slope)?;
        graph.select(positive, x, below)
    };

    /// Returns `x tanh(softplus(x))`.
    fn mish(x) |graph| {
        let plus = graph.softplus(x)?;
        let gate = graph.tanh(plus)?;
        graph.multiply(x, gate)
    };

    /// Returns `(x + √(x² + b)) / 2`, which is `b / (2 (√(x² + b) - x))`. Only the second form does not
    /// cancel for negative `x`.
    fn squareplus(x, b: f64) |graph| {
        let side = graph.constant_like(x, b.sqrt())?;
        let length = graph.hypot(x, side)?;
        let (zero, one) = (graph.constant_like(x, 0.0)?, graph.constant_like(x, 1.0)?);
        let (is_negative, negative) = (graph.less(x, zero)?, graph.negate(x)?);
        let size = graph.select(is_negative, negative, x)?;
        // The sum of the halves does not overflow.
        let (size, length) = (graph.scale_by(size, 0.5)?, graph.scale_by(length, 0.5)?);
        let half = graph.add(size, length)?;
        let divisor = graph.select(is_negative, half, one)?;
        let quarter = graph.constant_like(x, 0.25 * b)?;
        let inverse = graph.divide(quarter, divisor)?;
        graph.select(is_negative, inverse, half)
    };

    /// Returns 0 below -1, `x` above 1, and a parabola between them.
    fn sparse_plus(x) |graph| {
        let inner = graph.clamp_strictly(x, Some(-1.0), Some(1.0))?;
        let inner = graph.shift_by(inner, 1.0)?;
        let square = graph.multiply(inner, inner)?;
        let parabola = graph.scale_by(square, 0.25)?;
        let one = graph.constant_like(x, 1.0)?;
        let above = graph.greater_equal(x, one)?;
        graph.select(above, x, parabola)
    };

    /// Returns `(x + 1) / 2` clamped to the range from 0 to 1, the derivative of `sparse_plus`.
    fn sparse_sigmoid(x) |graph| {
        let inner = graph.clamp_strictly(x, Some(-1.0), Some(1.0))?;
        let raised = graph.shift_by(inner, 1.0)?;
        graph.scale_by(raised, 0.5)
    };

    /// Returns `log(1 - exp(-x))` for positive `x`, accurate near 0 and for large `x`.
    fn log1mexp(x) |graph| {
        let limit = graph.constant_like(x, std::f64::consts::LN_2)?;
        let near = graph.less(x, limit)?;
        let opposite = graph.negate(x)?;
        let limit = graph.negate(limit)?;
        let (low, high) =
            (graph.select(near, opposite, limit)?, graph.select(near, limit, opposite)?);
        let small = graph.expm1(low)?;
        let small = graph.negate(small)?;
        let small = graph.log(small)?;
        let large = graph.exp(high)?;
        let large = graph.negate(large)?;
        let large = graph.log1p(large)?;
        graph.select(near, small, large)
    };

    /// Returns `exp(x)` divided by its sum along an axis, without overflow.
    fn softmax(x, axis: i64) |graph| {
        let terms = graph.exponentials(x, axis)?;
        let sum = graph.sum(terms, Some(&[axis]), true)?;
        graph.divide(terms, sum)
    };

    /// Returns `log(softmax(x))` without overflow or loss of precision.
    fn log_softmax(x, axis: i64) |graph| {
        let lowered = graph.subtract_max(x, axis)?;
        let terms = graph.exp(lowered)?;
        let sum = graph.sum(terms, Some(&[axis]), true)?;
        let log = graph.log(sum)?;
        graph.subtract(lowered, log)
    };

    /// Returns the first half of `x` along an axis times the sigmoid of the second half.
    fn glu(x, axis: i64) |graph| {
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
    };
}

impl Graph {
    /// Clamps `x`; the derivative is zero outside of the limits and at the limits. NaN remains.
    fn clamp_strictly(&mut self, x: ExprId, low: Option<f64>, high: Option<f64>) -> Result<ExprId> {
        let mut limited = x;
        if let Some(low) = low {
            let low = self.constant_like(x, low)?;
            let below = self.less_equal(x, low)?;
            limited = self.select(below, low, limited)?;
        }
        if let Some(high) = high {
            let high = self.constant_like(x, high)?;
            let above = self.greater_equal(x, high)?;
            limited = self.select(above, high, limited)?;
        }
        Ok(limited)
    }

    fn hard_gate(&mut self, x: ExprId) -> Result<ExprId> {
        let raised = self.shift_by(x, 3.0)?;
        let limited = self.clamp_strictly(raised, Some(0.0), Some(6.0))?;
        self.scale_by(limited, 1.0 / 6.0)
    }

    /// Approximates the normal distribution by a hyperbolic tangent.
    fn nearly_normal(&mut self, x: ExprId) -> Result<ExprId> {
        // The cube of a large value would overflow.
        let x = self.clamp_strictly(x, Some(-SATURATED), Some(SATURATED))?;
        let square = self.multiply(x, x)?;
        let bend = self.scale_by(square, 0.044_715)?;
        let bend = self.shift_by(bend, 1.0)?;
        let argument = self.multiply(x, bend)?;
        let argument = self.scale_by(argument, (2.0 / std::f64::consts::PI).sqrt())?;
        let side = self.tanh(argument)?;
        let raised = self.shift_by(side, 1.0)?;
        self.scale_by(raised, 0.5)
    }

    /// Returns `scale x` where `x` is positive, and `scale alpha (exp(inner x) - 1)` elsewhere.
    fn exponential_below(&mut self, x: ExprId, [alpha, inner, scale]: [f64; 3]) -> Result<ExprId> {
        let zero = self.constant_like(x, 0.0)?;
        let positive = self.greater(x, zero)?;
        let below = self.select(positive, zero, x)?;
        let argument = self.scale_by(below, inner)?;
        let curve = self.expm1(argument)?;
        let curve = self.scale_by(curve, alpha)?;
        let value = self.select(positive, x, curve)?;
        self.scale_by(value, scale)
    }

    /// Subtracts the largest element along an axis, through which no gradient flows.
    fn subtract_max(&mut self, x: ExprId, axis: i64) -> Result<ExprId> {
        let largest = self.reduce_max(x, Some(&[axis]), true)?;
        let largest = self.stop_grad(largest)?;
        self.subtract(x, largest)
    }

    fn exponentials(&mut self, x: ExprId, axis: i64) -> Result<ExprId> {
        let lowered = self.subtract_max(x, axis)?;
        self.exp(lowered)
    }

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
        let mut shape = self.shape(spread).clone();
        let ones = vec![1; shape.rank()];
        shape.as_mut_slice()[at] = classes;
        let numbers = self.iota([classes], Some(0), DType::S64)?;
        let mut aligned = ones;
        aligned[at] = classes;
        let numbers = self.reshape(numbers, aligned)?;
        // Unsigned 64-bit integers are compared without conversion.
        let spread = if found == DType::U64 { spread } else { self.as_type(spread, DType::S64)? };
        let numbers =
            if found == DType::U64 { self.as_type(numbers, DType::U64)? } else { numbers };
        let hot = self.equal(spread, numbers)?;
        let hot = if dtype.is_pred() { hot } else { self.as_type(hot, dtype)? };
        debug_assert_eq!(*self.shape(hot), shape);
        Ok(hot)
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
        let zero = self.zero_like(x)?;
        let stays = self.scalar_constant(Scalar::Float(1.0 - rate), DType::F32)?;
        let draw = super::super::Draw::new(self.shape(x).clone());
        let kept = self.random_bernoulli(key, stays, &draw)?;
        // At the rate 1 no element stays, and the factor would be infinite.
        let factor = if rate < 1.0 { 1.0 / (1.0 - rate) } else { 1.0 };
        let scaled = self.scale_by(x, factor)?;
        self.select(kept, scaled, zero)
    }
}
