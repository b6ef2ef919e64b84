//! Statistics along axes, as compositions of ops.

use nxla_tensor::{DType, Number, Scalar, Shape, promote};

use super::formula::{Formula, Term};
use super::{Cumulative, SliceStart};
use crate::graph::{Axes, ErrorKind, ExprId, Graph, Op, Result, shape_text};

impl Graph {
    /// Returns the arithmetic mean as a float; NaN for no elements. Sums use a sufficient dtype: 64
    /// bits for integers whose sum might overflow 32 bits, and 32 bits for narrow floats.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn mean(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        let count = self.reduced_size(x, axes)?;
        let dtype = self.dtype(x);
        let terms = self.as_type(x, dtype_of_sum(dtype, count))?;
        let sum = self.sum(terms, axes, keep_axes)?;
        let mean = self.divide_by(sum, count)?;
        self.as_type(mean, dtype.to_floating())
    }

    /// Returns the mean with `weights`, which have the shape of `x` or one axis for each of `axes`.
    /// Narrow floats are summed in 32 bits.
    ///
    /// # Errors
    /// Returns an error for weights of another shape or an axis out of range or repeated.
    pub fn weighted_mean(
        &mut self,
        x: ExprId,
        weights: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        let weights = self.aligned_weights(x, weights, axes)?;
        let dtype = promote(self.dtype(x), self.dtype(weights));
        let wide = dtype_of_distances(dtype);
        let formula = Formula::new(self);
        let [x, weights] = formula.terms([x, weights]).map(|x| x.as_type(wide));
        let total = (x * weights).sum(axes, keep_axes);
        (total / weights.sum(axes, keep_axes)).as_type(dtype.to_floating()).id()
    }

    /// Converts a tensor to a dtype in which many elements can be summed for a result dtype.
    pub(super) fn countable(&mut self, x: ExprId, dtype: DType) -> Result<ExprId> {
        let wide = dtype.to_counting();
        if wide == dtype { Ok(x) } else { self.as_type(x, wide) }
    }

    /// Returns weights with the rank of `x`.
    fn aligned_weights(
        &mut self,
        x: ExprId,
        weights: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        if self.shape(weights) == self.shape(x) {
            return Ok(weights);
        }
        let axes = match axes {
            Some(axes) => self.axes("weighted_mean", x, axes)?,
            None => {
                let why = "must be given if the weights and the tensor differ in shape";
                return Err(self.invalid("weighted_mean", "axes", why));
            }
        };
        let expected: Shape = axes.iter().map(|&axis| self.shape(x)[axis]).collect();
        if *self.shape(weights) != expected {
            let (found, expected) = (shape_text(self.shape(weights)), shape_text(&expected));
            let kind = ErrorKind::Shape { argument: "weights", found, expected };
            return Err(self.error("weighted_mean", kind));
        }
        // The axes of the weights are in the order of `axes`; the axes of the tensor are in
        // increasing order.
        let mut order: Vec<usize> = (0..axes.len()).collect();
        order.sort_by_key(|&position| axes[position]);
        let weights = self.make(Op::Transpose(order.into()), &[weights])?;
        let sizes = self.shape(x).iter().enumerate();
        let shape: Shape =
            sizes.map(|(axis, &size)| if axes.contains(&axis) { size } else { 1 }).collect();
        self.reshape(weights, shape)
    }

    /// Returns the sum of squared distances from the mean, divided by the number of elements minus
    /// `correction`. The result is real, also for complex numbers. Narrow floats are summed in 32
    /// bits and integers in 64 bits.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn variance(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
        correction: f64,
    ) -> Result<ExprId> {
        let count = self.reduced_size(x, axes)?;
        let dtype = self.dtype(x);
        let x = self.as_type(x, dtype_of_distances(dtype))?;
        let all = self.all_axes(x);
        let mean = self.mean(x, Some(axes.unwrap_or(&all)), true)?;
        #[expect(clippy::cast_precision_loss, reason = "a count of elements has at most 53 bits")]
        let divisor = (count as f64 - correction).max(0.0);
        let formula = Formula::new(self);
        let distance = formula.term(x) - formula.term(mean);
        let variance = squared_magnitude(distance).sum(axes, keep_axes) / number(divisor);
        variance.as_type(dtype.to_floating().to_real()).id()
    }

    /// Returns the square root of [`Graph::variance`], also if the variance overflows a narrow
    /// float.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::variance`].
    pub fn standard_deviation(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
        correction: f64,
    ) -> Result<ExprId> {
        self.root_of_variance(x, |graph, x| graph.variance(x, axes, keep_axes, correction))
    }

    /// Returns the square root of a variance, which is computed in a dtype that it does not
    /// overflow.
    pub(super) fn root_of_variance(
        &mut self,
        x: ExprId,
        variance: impl FnOnce(&mut Graph, ExprId) -> Result<ExprId>,
    ) -> Result<ExprId> {
        let wide = self.as_type(x, dtype_of_distances(self.dtype(x)).at_least_f32())?;
        let variance = variance(self, wide)?;
        let deviation = self.sqrt(variance)?;
        self.as_type(deviation, self.dtype(x).to_floating().to_real())
    }

    /// Returns `log(sum(scale * exp(x)))` without overflow, by subtracting the maximum, through
    /// which no gradient flows. `scale` is 1 for `None`. Narrow floats are summed in 32 bits.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated, complex numbers, or a scale that does
    /// not broadcast.
    pub fn logsumexp(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
        scale: Option<ExprId>,
    ) -> Result<ExprId> {
        let given = scale.map_or(self.dtype(x), |scale| promote(self.dtype(x), self.dtype(scale)));
        let x = self.countable(x, given)?;
        let all = self.all_axes(x);
        let reduced = axes.unwrap_or(&all);
        let is_none = scale.map(|scale| self.equal_to_zero(scale)).transpose()?;
        let counted = match is_none {
            // Elements without a factor have no part in the sum.
            Some(is_none) => {
                let least = self.scalar_constant(self.dtype(x).min_value(), self.dtype(x))?;
                self.select(is_none, least, x)?
            }
            None => x,
        };
        let max = self.reduce_max(counted, Some(reduced), true)?;
        let max = self.stop_grad(max)?;
        // An infinite maximum must not cause `inf - inf`.
        let infinite = self.is_infinity(max)?;
        let dtype = self.dtype(max).to_floating();
        let zero = self.scalar_constant(Scalar::zero(dtype), dtype)?;
        let max = self.select(infinite, zero, max)?;
        let mut shifted = self.subtract(x, max)?;
        if let Some(is_none) = is_none {
            let limited = self.with_finite_exp(shifted)?;
            shifted = self.select(is_none, limited, shifted)?;
        }
        let mut terms = self.exp(shifted)?;
        if let Some(scale) = scale {
            terms = self.multiply(scale, terms)?;
        }
        let sum = self.sum(terms, axes, keep_axes)?;
        let log = self.log(sum)?;
        let max = if keep_axes { max } else { self.squeeze(max, Some(reduced))? };
        let result = self.add(log, max)?;
        self.as_type(result, given.to_floating())
    }

    fn equal_to_zero(&mut self, x: ExprId) -> Result<ExprId> {
        let zero = self.zero_like(x)?;
        self.equal(x, zero)
    }

    /// Limits exponents of powers with a factor of zero, because the product of zero and infinity is
    /// NaN.
    fn with_finite_exp(&mut self, exponents: ExprId) -> Result<ExprId> {
        let dtype = self.dtype(exponents).to_floating();
        let largest = dtype.float_limits().expect("exponents are floats").max;
        let limit = self.scalar_constant(Scalar::Float(largest.ln().floor()), dtype)?;
        self.min(exponents, limit)
    }

    /// Returns the covariance matrix of the columns of `x`, whose second-to-last axis holds
    /// observations: `(x - mean)^T conj(x - mean) / (rows - correction)`, batched over leading axes.
    /// `mean` has a value per column; it is computed for `None`. The result is a float without axis
    /// names. Narrow floats are summed in 32 bits.
    ///
    /// # Errors
    /// Returns an error for fewer than two axes, a mean that is a scalar or does not broadcast, or
    /// a negative `correction`.
    pub fn covariance(
        &mut self,
        x: ExprId,
        mean: Option<ExprId>,
        correction: i64,
    ) -> Result<ExprId> {
        let op = "covariance";
        if correction < 0 {
            return Err(self.invalid(
                op,
                "correction",
                format!("must not be negative; got {correction}"),
            ));
        }
        let (_, [rows, _]) = self.matrix(x)?;
        let dtype = mean.map_or(self.dtype(x), |mean| promote(self.dtype(x), self.dtype(mean)));
        let x = self.rename(x, None)?;
        let x = self.as_type(x, dtype_of_distances(dtype))?;
        let mean = match mean {
            Some(mean) => self.rename(mean, None)?,
            None => self.mean(x, Some(&[-2]), false)?,
        };
        if self.shape(mean).rank() == 0 {
            return Err(self.invalid(
                op,
                "mean",
                "must have one element for each column; got a scalar",
            ));
        }
        let mean = self.new_axis(mean, -2, None)?;
        let centered = self.subtract(x, mean)?;
        let other = self.conjugate_complex(centered)?;
        // The mean may have further batch axes.
        let batch: Vec<i64> = (0..).take(self.shape(centered).rank() - 2).collect();
        let products = self.dot_general(centered, &[-2], &batch, other, &[-2], &batch)?;
        let count = i128::try_from(rows).expect("a size fits in 128 bits");
        let covariance = self.divide_by(products, (count - i128::from(correction)).max(0))?;
        self.as_type(covariance, dtype.to_floating())
    }

    /// Returns the median, which is the mean of the two middle elements for an even number; NaN if
    /// there is one. `None` is for all axes.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or given twice, for axes without elements, and for
    /// complex numbers.
    pub fn median(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        let axis = match axes {
            Some(&[axis]) => axis,
            Some(axes) => {
                let (last, shape, names) = self.axes_last(x, Some(axes), keep_axes)?;
                let median = self.median(last, Some(&[-1]), false)?;
                return self.reshape_named(median, shape, names);
            }
            None => {
                let flat = self.flatten(x, None)?;
                let median = self.median(flat, Some(&[0]), false)?;
                return if keep_axes { self.with_axes_of(median, x) } else { Ok(median) };
            }
        };
        let at = self.axis("median", x, axis)?;
        let size = self.shape(x)[at];
        if size == 0 {
            let why = format!("must have at least one element; got {}", self.tensor_type(x));
            return Err(self.invalid("median", "operand", why));
        }
        let sorted = self.sort(x, axis, false, false)?;
        let median = match size % 2 {
            1 => self.element_along(sorted, size / 2, axis, keep_axes)?,
            _ => {
                let middle = SliceStart::at(size / 2 - 1);
                let middle = self.slice_along_axis(sorted, middle, 2, axis, 1)?;
                self.mean(middle, Some(&[axis]), keep_axes)?
            }
        };
        if !self.dtype(x).is_float() {
            return Ok(median);
        }
        // NaN is sorted last.
        let last = self.element_along(sorted, size - 1, axis, keep_axes)?;
        let has_nan = self.is_nan(last)?;
        self.select(has_nan, last, median)
    }

    /// Returns the most frequent element, the smallest of several. `None` uses the flattened
    /// tensor.
    ///
    /// After sorting, equal elements are adjacent. Each run of equal elements has a number, and
    /// counting these numbers yields the frequencies.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or without elements or complex numbers.
    pub fn mode(&mut self, x: ExprId, axis: Option<i64>, keep_axis: bool) -> Result<ExprId> {
        let op = "mode";
        let Some(axis) = axis else {
            let flat = self.flatten(x, None)?;
            let mode = self.mode(flat, Some(0), false)?;
            return if keep_axis { self.with_axes_of(mode, x) } else { Ok(mode) };
        };
        let at = self.axis(op, x, axis)?;
        let size = self.shape(x)[at];
        if size == 0 {
            let why = format!("must have at least one element; got {}", self.tensor_type(x));
            return Err(self.invalid(op, "operand", why));
        }
        let sorted = self.sort(x, axis, false, false)?;
        let runs = self.run_numbers(sorted, axis)?;
        let shape = self.shape(runs).clone();
        let indices = self.coordinates_along(runs, at)?;
        let zero = self.scalar_constant(Scalar::Int(0), DType::S32)?;
        let zeros = self.broadcast(zero, shape.clone(), None)?;
        let one = self.scalar_constant(Scalar::Int(1), DType::S32)?;
        let ones = self.broadcast(one, shape.clone(), None)?;
        let counts = self.indexed_add(zeros, indices, ones, None)?;
        let longest = self.argmax(counts, Some(axis), true, false, DType::S32)?;
        let longest = self.broadcast(longest, shape, None)?;
        let belongs = self.equal(longest, runs)?;
        let first = self.argmax(belongs, Some(axis), true, false, DType::S32)?;
        let mode = self.take_along_axis(sorted, first, axis)?;
        if keep_axis { Ok(mode) } else { self.squeeze(mode, Some(&[axis])) }
    }

    /// Returns for each element of a sorted axis the number of distinct smaller elements.
    fn run_numbers(&mut self, sorted: ExprId, axis: i64) -> Result<ExprId> {
        let at = self.axis("mode", sorted, axis)?;
        let mut first = self.shape(sorted).clone();
        let others = first[at] - 1;
        first.as_mut_slice()[at] = 1;
        let low = self.slice_along_axis(sorted, 0, others, axis, 1)?;
        let high = self.slice_along_axis(sorted, 1, others, axis, 1)?;
        let changes = self.not_equal(low, high)?;
        let zero = self.scalar_constant(Scalar::Int(0), DType::S32)?;
        let first = self.broadcast(zero, first, None)?;
        let steps = self.concatenate(&[first, changes], axis)?;
        self.cumulative(Cumulative::Sum, steps, axis, false)
    }

    /// Returns the elements at one index of an axis.
    pub(super) fn element_along(
        &mut self,
        x: ExprId,
        index: usize,
        axis: i64,
        keep_axis: bool,
    ) -> Result<ExprId> {
        let element = self.slice_along_axis(x, SliceStart::at(index), 1, axis, 1)?;
        if keep_axis { Ok(element) } else { self.squeeze(element, Some(&[axis])) }
    }

    /// Returns the number of elements that are reduced to one element.
    fn reduced_size(&self, x: ExprId, axes: Option<&[i64]>) -> Result<i128> {
        let axes: Axes = match axes {
            Some(axes) => self.axis_set("sum", x, axes)?,
            None => (0..self.shape(x).rank()).collect(),
        };
        let size = self.shape(x).size_along(axes.iter().copied());
        Ok(i128::try_from(size).expect("a size fits in 128 bits"))
    }

    /// Reshapes a scalar to the rank of `x`, with all axes of size 1.
    pub(super) fn with_axes_of(&mut self, scalar: ExprId, x: ExprId) -> Result<ExprId> {
        let (rank, names) = (self.shape(x).rank(), self.tensor_type(x).names.clone());
        let spread = self.reshape(scalar, vec![1; rank])?;
        self.rename(spread, names)
    }

    pub(super) fn all_axes(&self, x: ExprId) -> Vec<i64> {
        (0..).take(self.shape(x).rank()).collect()
    }

    /// Returns `x / count` as a float.
    pub(super) fn divide_by(&mut self, x: ExprId, count: i128) -> Result<ExprId> {
        let count = self.weak_number(Number::Int(count), x)?;
        self.divide(x, count)
    }
}

/// Returns a dtype in which `count` elements can be summed.
fn dtype_of_sum(dtype: DType, count: i128) -> DType {
    let bits_of_count = i128::BITS - count.leading_zeros();
    match dtype {
        _ if !dtype.is_integer() => dtype.to_counting(),
        _ if dtype.bits() + bits_of_count < u32::BITS => dtype,
        _ if dtype.bits() > u32::BITS => DType::F64,
        _ if dtype.is_signed() => DType::S64,
        _ => DType::U64,
    }
}

/// Returns a dtype in which elements can be subtracted from their mean, and in which the squares of the
/// distances can be summed. `f32` has fewer bits than integers, and would round close integers to
/// the same number.
pub(super) fn dtype_of_distances(dtype: DType) -> DType {
    if dtype.is_integer() { DType::F64 } else { dtype.to_floating().to_counting() }
}

/// Returns a number as an integer if it is one, which prints without a point and equals the count of
/// the mean.
#[expect(
    clippy::cast_possible_truncation,
    reason = "every number below the limit fits the integer"
)]
fn number(x: f64) -> Number {
    if x.fract() == 0.0 && x.abs() < 1e15 { Number::Int(x as i128) } else { Number::Float(x) }
}

/// Returns `|x|²`.
pub(super) fn squared_magnitude(x: Term<'_>) -> Term<'_> {
    if x.dtype().is_complex() {
        let (real, imag) = (x.real(), x.imag());
        return real * real + imag * imag;
    }
    x.pow(2)
}
