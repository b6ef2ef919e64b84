//! Samples: uniform, normal and integer values, permutations and choices.

use nxla_tensor::{
    DType, FloatLimits, HostTensor, Names, Number, Scalar, Shape, broadcast_shapes, promote,
};

use super::super::formula::{Formula, Term};
use super::super::{Cumulative, Side, SliceStart};
use crate::graph::{ErrorKind, ExprId, Graph, Result, shape_text};

/// The shape, dtype and names of a draw.
#[derive(Clone, Debug, Default)]
pub struct Draw {
    /// The shape of the result.
    pub shape: Shape,
    /// The dtype; by default the dtype of the distribution's parameters.
    pub dtype: Option<DType>,
    /// The axis names.
    pub names: Option<Names>,
}

impl Draw {
    /// Creates a draw of a shape.
    #[must_use]
    pub fn new(shape: impl Into<Shape>) -> Self {
        Self { shape: shape.into(), ..Self::default() }
    }

    /// Sets the dtype.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }
}

/// Options of [`Graph::random_choice`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The number of samples.
    pub samples: usize,
    /// The axis along which entries are chosen; `None` chooses elements of the flattened tensor.
    pub axis: Option<i64>,
    /// True if an entry can be chosen several times.
    pub replace: bool,
}

impl Choice {
    /// Chooses elements of the flattened tensor, with replacement.
    #[must_use]
    pub const fn new(samples: usize) -> Self {
        Self { samples, axis: None, replace: true }
    }
}

/// The factorization of a covariance, see [`Graph::random_multivariate_normal`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Covariance {
    /// The Cholesky factor. The matrix must be positive definite.
    #[default]
    Cholesky,
    /// The eigenvectors times the roots of the eigenvalues.
    Eigh,
    /// The left singular vectors times the roots of the singular values.
    Svd,
}

impl Graph {
    /// Draws floats with the uniform distribution on `[low, high)`; for complex numbers, both parts
    /// are drawn, between the parts of complex bounds. `low` and `high` broadcast to the shape.
    ///
    /// # Errors
    /// Returns an error for a `key` that is not a `u32[2]`, a dtype that is neither float nor
    /// complex, or bounds that do not broadcast to the shape.
    pub fn random_uniform(
        &mut self,
        key: ExprId,
        low: ExprId,
        high: ExprId,
        draw: &Draw,
    ) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread(&[("low", low), ("high", high)], &draw.shape)?;
        let dtype = self.float_of(&[low, high], draw)?;
        let bounds = [low, high];
        let x =
            self.real_or_complex(dtype, &draw.shape, bounds, |graph, dtype, shape, bounds| {
                graph.uniform_in(key, bounds[0], bounds[1], dtype, shape)
            })?;
        self.finish_draw(x, draw)
    }

    /// Draws floats of the normal distribution; for complex numbers, both parts are drawn, with the
    /// parts of complex parameters.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::random_uniform`].
    pub fn random_normal(
        &mut self,
        key: ExprId,
        mean: ExprId,
        deviation: ExprId,
        draw: &Draw,
    ) -> Result<ExprId> {
        self.check_key(key)?;
        let parameters = [("mean", mean), ("standard_deviation", deviation)];
        self.check_spread(&parameters, &draw.shape)?;
        let dtype = self.float_of(&[mean, deviation], draw)?;
        let (wide, parameters) = (dtype.at_least_f32(), [mean, deviation]);
        let x =
            self.real_or_complex(wide, &draw.shape, parameters, |graph, dtype, shape, own| {
                // The value after -1, because the inverse of the error function is infinite at -1.
                let low = -(1.0 - limits(dtype).epsilon / 2.0);
                let low = graph.scalar_constant(Scalar::Float(low), dtype)?;
                let high = graph.scalar_constant(Scalar::Float(1.0), dtype)?;
                let x = graph.uniform_in(key, low, high, dtype, shape)?;
                let formula = Formula::new(graph);
                let [x, mean, deviation] = formula.terms([x, own[0], own[1]]);
                let standard = std::f64::consts::SQRT_2 * x.erf_inv();
                (deviation.as_type(dtype) * standard + mean.as_type(dtype)).id()
            })?;
        let x = self.as_type(x, dtype)?;
        self.finish_draw(x, draw)
    }

    /// Draws floats of the standard Gumbel distribution, `-log(-log(u))` for uniform `u`; `f32` by
    /// default.
    ///
    /// # Errors
    /// Returns an error for a `key` that is not a `u32[2]` or a dtype that is not a float.
    pub fn random_gumbel(&mut self, key: ExprId, draw: &Draw) -> Result<ExprId> {
        self.check_key(key)?;
        let dtype = draw.dtype.unwrap_or(DType::F32);
        if !dtype.is_float() {
            return Err(self.not_a(dtype, "a float dtype"));
        }
        let wide = dtype.at_least_f32();
        let low = self.scalar_constant(Scalar::Float(limits(wide).smallest_normal), wide)?;
        let high = self.scalar_constant(Scalar::Float(1.0), wide)?;
        let x = self.uniform_in(key, low, high, wide, &draw.shape)?;
        let x = (-(-Formula::new(self).term(x).log()).log()).as_type(dtype).id()?;
        self.finish_draw(x, draw)
    }

    /// Draws integers with the uniform distribution on `[low, high)`; both bounds broadcast to the
    /// shape.
    ///
    /// # Errors
    /// Returns an error for a `key` that is not a `u32[2]`; for a dtype that is not an integer; for
    /// bounds that do not broadcast to the shape, or constant bounds without integers between them.
    /// The result is `low` where computed bounds have no integers between them.
    pub fn random_integers(
        &mut self,
        key: ExprId,
        low: ExprId,
        high: ExprId,
        draw: &Draw,
    ) -> Result<ExprId> {
        self.check_key(key)?;
        self.check_spread(&[("low", low), ("high", high)], &draw.shape)?;
        let dtype = draw.dtype.unwrap_or(promote(self.dtype(low), self.dtype(high)));
        if !dtype.is_integer() || dtype.bits() < 8 {
            return Err(self.not_a(dtype, "an integer dtype of at least 8 bits"));
        }
        let is_empty = self.check_integer_bounds(low, high, dtype)?;
        let unsigned = unsigned_dtype(dtype.bits());
        let doubled: Shape = std::iter::once(2).chain(draw.shape.iter().copied()).collect();
        let bits = self.bits_of(key, unsigned, &doubled)?;
        let (upper, lower) = (self.row(bits, 0)?, self.row(bits, 1)?);
        let formula = Formula::new(self);
        let [upper, lower] = formula.terms([upper, lower]).map(|word| word.as_type(DType::U64));
        // The difference wraps in the dtype of the result, and a full range has the span 0. In the
        // dtype of the bounds it could wrap to a span that is too small or negative.
        let [low, high] = formula.terms([low, high]).map(|bound| bound.as_type(dtype));
        let span = (high - low).as_type(unsigned).as_type(DType::U64);
        let offset = offset_by_remainder(upper, lower, span, dtype.bits());
        let offset = match dtype.bits() {
            // The products of the remainders overflow for larger spans.
            64 => span.greater(1_u64 << 32).select(upper_product(upper, span), offset),
            _ => offset,
        };
        let x = low + offset.as_type(dtype);
        let x = is_empty.map_or(x, |is_empty| formula.term(is_empty).select(low, x)).id()?;
        self.finish_draw(x, draw)
    }

    /// Draws vectors of the normal distribution with this mean and covariance, in a batch of shape
    /// `draw.shape`; `draw.names` are the names of the result. The covariance must be symmetric and
    /// positive semidefinite.
    ///
    /// # Errors
    /// Returns an error for a `key` that is not a `u32[2]`, a mean that is not a vector, a
    /// covariance that is not a square matrix of that size, or a dtype that is not a float.
    pub fn random_multivariate_normal(
        &mut self,
        key: ExprId,
        mean: ExprId,
        covariance: ExprId,
        method: Covariance,
        draw: &Draw,
    ) -> Result<ExprId> {
        let op = "multivariate_normal";
        self.check_key(key)?;
        let &[size] = self.shape(mean).as_slice() else {
            let (found, expected) = (self.tensor_type(mean).to_string(), "a vector".to_owned());
            return Err(self.error(op, ErrorKind::Shape { argument: "mean", found, expected }));
        };
        if self.shape(covariance)[..] != [size, size] {
            let found = self.tensor_type(covariance).to_string();
            let expected = format!("a matrix of {size} rows and columns, like the mean");
            let argument = "covariance";
            return Err(self.error(op, ErrorKind::Shape { argument, found, expected }));
        }
        let dtype = self.float_of(&[mean, covariance], draw)?;
        if dtype.is_complex() {
            return Err(self.not_a(dtype, "a float dtype"));
        }
        let (mean, covariance) = (self.rename(mean, None)?, self.rename(covariance, None)?);
        let wide = dtype.at_least_f32();
        let (mean, covariance) = (self.as_type(mean, wide)?, self.as_type(covariance, wide)?);
        let root = match method {
            Covariance::Cholesky => self.cholesky(covariance)?,
            Covariance::Eigh => {
                let (values, vectors) = self.eigh(covariance)?;
                // The eigenvalues 0 of a singular matrix round to small negative numbers.
                let zero = self.zero_like(values)?;
                let values = self.max(values, zero)?;
                let roots = self.sqrt(values)?;
                self.multiply(vectors, roots)?
            }
            Covariance::Svd => {
                let (vectors, values, _) = self.svd(covariance, true)?;
                let roots = self.sqrt(values)?;
                self.multiply(vectors, roots)?
            }
        };
        let shape: Shape = draw.shape.iter().copied().chain([size]).collect();
        let (zero, one) = (self.zero_like(mean)?, self.one_like(mean)?);
        let standard = Draw::new([draw.shape.size(), size]);
        let z = self.random_normal(key, zero, one, &standard)?;
        let x = self.dot_general(z, &[1], &[], root, &[1], &[])?;
        let x = self.add(mean, x)?;
        let x = self.as_type(x, dtype)?;
        self.finish_draw(x, &Draw { shape, ..draw.clone() })
    }

    /// Shuffles the entries of `x` along an axis and returns the next key. All entries share one
    /// permutation, unless `independent` draws one for each index of the other axes.
    ///
    /// # Errors
    /// Returns an error for a `key` that is not a `u32[2]` or an axis out of range.
    pub fn random_shuffle(
        &mut self,
        key: ExprId,
        x: ExprId,
        axis: i64,
        independent: bool,
    ) -> Result<(ExprId, ExprId)> {
        let op = "shuffle";
        self.check_key(key)?;
        let at = self.axis(op, x, axis)?;
        if independent {
            return self.sort_randomly(key, x, axis);
        }
        let count = self.shape(x)[at];
        let order = self.iota([count], Some(0), DType::S32)?;
        let (order, key) = self.sort_randomly(key, order, 0)?;
        Ok((self.take(x, order, axis)?, key))
    }

    /// Sorts by random keys repeatedly, until ties are unlikely to have preserved an order.
    fn sort_randomly(&mut self, key: ExprId, x: ExprId, axis: i64) -> Result<(ExprId, ExprId)> {
        let (mut x, mut key) = (x, key);
        let shape = self.shape(x).clone();
        let rounds = (3.0 * (shape.size() as f64).ln() / f64::from(u32::MAX).ln()).ceil();
        for _ in 0..rounds as usize {
            let (next, own) = self.random_next(key)?;
            let bits = self.bits_of(own, DType::U32, &shape)?;
            let order = self.argsort(bits, axis, false, true, DType::S32)?;
            (x, key) = (self.take_along_axis(x, order, axis)?, next);
        }
        Ok((x, key))
    }

    /// Draws samples of `x` and returns the next key. `probabilities` holds a probability for each
    /// entry along the axis; by default all entries are equally likely. Without replacement,
    /// entries with the probability 0 follow when no other entries are left.
    ///
    /// # Errors
    /// Returns an error for a `key` that is not a `u32[2]`; for an `x` that is a scalar or has no
    /// entries; for an axis out of range; for more samples than entries without replacement; for
    /// probabilities of another number.
    pub fn random_choice(
        &mut self,
        key: ExprId,
        x: ExprId,
        probabilities: Option<ExprId>,
        choice: Choice,
    ) -> Result<(ExprId, ExprId)> {
        let op = "choice";
        self.check_key(key)?;
        let Choice { samples, axis, replace } = choice;
        if self.shape(x).rank() == 0 {
            let why = "must have at least one axis; got a scalar; to choose from range(n), pass the \
                       integers themselves";
            return Err(self.invalid(op, "x", why));
        }
        let (x, axis) = match axis {
            Some(axis) => (x, axis),
            None => (self.flatten(x, None)?, 0),
        };
        let count = self.shape(x)[self.axis(op, x, axis)?];
        if count == 0 {
            let why = format!("must have at least one entry; got {}", self.tensor_type(x));
            return Err(self.invalid(op, "x", why));
        }
        if !replace && samples > count {
            let why = format!("must be at most {count} without replacement; got {samples}");
            return Err(self.invalid(op, "samples", why));
        }
        let Some(p) = probabilities else {
            if !replace {
                let (shuffled, key) = self.random_shuffle(key, x, axis, false)?;
                return Ok((self.slice_along_axis(shuffled, 0, samples, axis, 1)?, key));
            }
            let (next, own) = self.random_next(key)?;
            let low = self.scalar_constant(Scalar::UInt(0), DType::U32)?;
            let high = self.scalar_constant(Scalar::UInt(count as u64), DType::U32)?;
            let draw = Draw::new([samples]);
            let indices = self.random_integers(own, low, high, &draw)?;
            return Ok((self.take(x, indices, axis)?, next));
        };
        if self.shape(p)[..] != [count] {
            let found = self.tensor_type(p).to_string();
            let expected = format!("a vector of {count} numbers, one for each entry");
            let argument = "probabilities";
            return Err(self.error(op, ErrorKind::Shape { argument, found, expected }));
        }
        let p = self.rename(p, None)?;
        let (next, own) = self.random_next(key)?;
        let indices = self.weighted_indices(own, p, samples, replace)?;
        Ok((self.take(x, indices, axis)?, next))
    }

    /// Draws indices with the probabilities `p`.
    fn weighted_indices(
        &mut self,
        key: ExprId,
        p: ExprId,
        samples: usize,
        replace: bool,
    ) -> Result<ExprId> {
        let dtype = self.dtype(p).to_floating().at_least_f32();
        let p = self.as_type(p, dtype)?;
        let count = self.shape(p)[0];
        if !replace {
            // The largest values of `log(p)` plus Gumbel noise come first (Gumbel trick).
            let draw = Draw::new([count]).dtype(dtype);
            let noise = self.random_gumbel(key, &draw)?;
            let formula = Formula::new(self);
            let ranking = (-formula.term(noise) - formula.term(p).log()).id()?;
            let order = self.argsort(ranking, 0, false, true, DType::S32)?;
            return self.slice_along_axis(order, 0, samples, 0, 1);
        }
        let sums = self.cumulative(Cumulative::Sum, p, 0, false)?;
        let draw = Draw::new([samples]).dtype(dtype);
        let (low, high) = (
            self.scalar_constant(Scalar::Float(0.0), dtype)?,
            self.scalar_constant(Scalar::Float(1.0), dtype)?,
        );
        let uniform = self.random_uniform(key, low, high, &draw)?;
        let rest = self.subtract(high, uniform)?;
        let total = self.slice_along_axis(sums, SliceStart::at(count - 1), 1, 0, 1)?;
        let place = self.multiply(total, rest)?;
        // `place` is above 0, so the first sum that is not below it belongs to an entry with a
        // positive probability.
        let index = self.searchsorted(sums, place, Side::Left)?;
        let last = self.weak_number(Number::Int(count as i128 - 1), index)?;
        let index = self.min(index, last)?;
        self.as_type(index, DType::S32)
    }

    // --- helpers of several distributions ---

    /// Rejects parameters that would enlarge the shape of the draw.
    pub(super) fn check_spread(
        &self,
        parameters: &[(&'static str, ExprId)],
        shape: &Shape,
    ) -> Result<()> {
        for &(argument, id) in parameters {
            let own = self.shape(id);
            if broadcast_shapes(own, shape).ok().as_ref() != Some(shape) {
                let expected = format!(
                    "a shape that broadcasts to shape={:?}, the shape of the result",
                    &shape[..]
                );
                let found = format!("{:?}", &own[..]);
                let kind = ErrorKind::Shape { argument, found, expected };
                return Err(self.error("random", kind));
            }
        }
        Ok(())
    }

    /// Rejects constant bounds without integers between them, or outside of the dtype. For other
    /// bounds, returns whether no integers are between them.
    fn check_integer_bounds(
        &mut self,
        low: ExprId,
        high: ExprId,
        dtype: DType,
    ) -> Result<Option<ExprId>> {
        let (Some(least), Some(limit)) = (self.known_integer(low), self.known_integer(high)) else {
            // In the dtype of the result, the bound above its largest integer would wrap.
            return self.less_equal(high, low).map(Some);
        };
        check_integer_range(least, limit, Some(dtype))
            .map_err(|(argument, why)| self.invalid("random", argument, why))?;
        Ok(None)
    }

    /// Draws uniform real values in `[low, high)`. Narrow floats are rounded from draws in 32 bits.
    /// The last addition and this conversion may round to `high`, which becomes the preceding value.
    pub(super) fn uniform_in(
        &mut self,
        key: ExprId,
        low: ExprId,
        high: ExprId,
        dtype: DType,
        shape: &Shape,
    ) -> Result<ExprId> {
        let (low, high) = (self.as_type(low, dtype)?, self.as_type(high, dtype)?);
        let x = self.uniform_bits(key, low, high, dtype.at_least_f32(), shape)?;
        let x = self.as_type(x, dtype)?;
        let last = self.next_after(high, low)?;
        self.min(x, last)
    }

    /// Draws uniform real values. The random bits are the mantissa of a value in `[1, 2)`.
    fn uniform_bits(
        &mut self,
        key: ExprId,
        low: ExprId,
        high: ExprId,
        dtype: DType,
        shape: &Shape,
    ) -> Result<ExprId> {
        let unsigned = unsigned_dtype(dtype.bits());
        let bits = self.bits_of(key, unsigned, shape)?;
        let distance = dtype.bits() - limits(dtype).mantissa_bits;
        let formula = Formula::new(self);
        let [low, high] = formula.terms([low, high]).map(|bound| bound.as_type(dtype));
        let bits = formula.term(bits).right_shift(distance).bitwise_or(bits_of_one(dtype));
        let x = bits.apply(|graph, bits| graph.bitcast(bits, dtype)) - 1.0;
        let span = high - low;
        // A span of more than the largest number.
        let between = (1.0 - x) * low + x * high;
        span.is_infinity().select(between, x * span + low).max(low).id()
    }

    /// Draws real values, or complex values with two draws as parts.
    fn real_or_complex(
        &mut self,
        dtype: DType,
        shape: &Shape,
        parameters: [ExprId; 2],
        draw: impl FnOnce(&mut Graph, DType, &Shape, [ExprId; 2]) -> Result<ExprId>,
    ) -> Result<ExprId> {
        if !dtype.is_complex() {
            return draw(self, dtype, shape, parameters);
        }
        let pairs: Shape = shape.iter().copied().chain([2]).collect();
        let [first, second] = parameters;
        let parameters = [self.paired(first)?, self.paired(second)?];
        let pairs = draw(self, dtype.to_real(), &pairs, parameters)?;
        let (real, imaginary) = self.split(pairs, 1, -1)?;
        let (real, imaginary) =
            (self.squeeze(real, Some(&[-1]))?, self.squeeze(imaginary, Some(&[-1]))?);
        let i = self.scalar_constant(Scalar::Complex(0.0, 1.0), dtype)?;
        let imaginary = self.multiply(i, imaginary)?;
        self.add(real, imaginary)
    }

    /// Returns a parameter with a last axis for the parts of complex numbers, which share a real
    /// parameter.
    fn paired(&mut self, x: ExprId) -> Result<ExprId> {
        let x = self.rename(x, None)?;
        if !self.dtype(x).is_complex() {
            return self.new_axis(x, -1, None);
        }
        let parts = [self.real(x)?, self.imag(x)?];
        self.stack(&parts, -1, None)
    }

    /// Finishes a draw: sets the shape and the names, and stops gradients.
    pub(super) fn finish_draw(&mut self, x: ExprId, draw: &Draw) -> Result<ExprId> {
        let x = self.rename(x, None)?;
        if self.shape(x).size() != draw.shape.size() {
            let why = format!(
                "must contain the shape of the parameters {}; got {}",
                shape_text(self.shape(x)),
                shape_text(&draw.shape)
            );
            return Err(self.invalid("random", "shape", why));
        }
        let x = self.reshape_named(x, draw.shape.clone(), draw.names.clone())?;
        self.stop_grad(x)
    }

    /// Returns the float or complex dtype of a draw.
    pub(super) fn float_of(&self, parameters: &[ExprId], draw: &Draw) -> Result<DType> {
        let dtypes = parameters.iter().map(|&id| self.dtype(id));
        let promoted = dtypes.reduce(promote).expect("a distribution has parameters");
        match draw.dtype {
            None => Ok(promoted.to_floating()),
            Some(dtype) if dtype.is_float() && promoted.is_complex() => {
                Err(self.not_a(dtype, "a complex dtype, as the parameters have"))
            }
            Some(dtype) if dtype.is_float() || dtype.is_complex() => Ok(dtype),
            Some(dtype) => Err(self.not_a(dtype, "a float or complex dtype")),
        }
    }

    pub(super) fn not_a(&self, found: DType, expected: &'static str) -> crate::Error {
        self.error("random", ErrorKind::DType { argument: "dtype", found, expected })
    }
}

/// Returns the unsigned dtype of 8, 16, 32 or 64 bits.
pub fn unsigned_dtype(bits: u32) -> DType {
    match bits {
        8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        _ => DType::U64,
    }
}

/// Returns `(2^bits upper + lower) mod span`, for spans up to `2^32` in 64 bits.
fn offset_by_remainder<'f>(
    upper: Term<'f>,
    lower: Term<'f>,
    span: Term<'f>,
    bits: u32,
) -> Term<'f> {
    // `2^bits` modulo the span; squaring the root modulo the span avoids overflow.
    let root = span.number(1_u64 << (bits / 2)).remainder(span);
    let factor = (root * root).remainder(span);
    (upper.remainder(span) * factor + lower.remainder(span)).remainder(span)
}

/// Returns the upper half of the 128-bit product of `u64` values, from products of their halves.
/// For random `x` the result is uniform below `y`.
fn upper_product<'f>(x: Term<'f>, y: Term<'f>) -> Term<'f> {
    let ([low_x, high_x], [low_y, high_y]) = (halves(x), halves(y));
    let [_, carry] = halves(low_x * low_y);
    let [low, first_carry] = halves(high_x * low_y + carry);
    let [_, second_carry] = halves(low_x * high_y + low);
    high_x * high_y + first_carry + second_carry
}

/// Returns the lower and the upper 32 bits of `u64` values.
fn halves(x: Term<'_>) -> [Term<'_>; 2] {
    [x.bitwise_and(u32::MAX), x.right_shift(32)]
}

fn limits(dtype: DType) -> FloatLimits {
    dtype.float_limits().expect("the dtype is a float")
}

fn bits_of_one(dtype: DType) -> u64 {
    let one = HostTensor::scalar(Scalar::Float(1.0), dtype);
    one.bytes().iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

/// Checks that integers lie between two bounds, and that a dtype contains all of them.
///
/// # Errors
/// Returns the name of the wrong argument of a draw and the reason.
pub fn check_integer_range(
    low: i128,
    high: i128,
    dtype: Option<DType>,
) -> std::result::Result<(), (&'static str, String)> {
    if low >= high {
        return Err(("high", format!("must exceed low = {low}; got {high}")));
    }
    let Some(dtype) = dtype else { return Ok(()) };
    let (min, max) = (dtype.min_value().as_i128(), dtype.max_value().as_i128());
    if min.is_some_and(|min| low < min) || max.is_some_and(|max| high - 1 > max) {
        let why = format!("must contain all integers from {low} to below {high}; got {dtype}");
        return Err(("dtype", why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_one_match_float_layouts() {
        assert_eq!(bits_of_one(DType::F32), u64::from(1.0_f32.to_bits()));
        assert_eq!(bits_of_one(DType::F64), 1.0_f64.to_bits());
        assert_eq!(bits_of_one(DType::BF16), 0x3F80);
        assert_eq!(bits_of_one(DType::F16), 0x3C00);
        assert_eq!(bits_of_one(DType::F8E5M2), 0x3C);
        assert_eq!(bits_of_one(DType::F8E4M3FN), 0x38);
    }
}
