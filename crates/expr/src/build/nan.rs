//! Reductions and cumulative reductions that ignore NaN.

use nxla_tensor::{DType, Scalar};

use super::Cumulative;
use super::formula::Formula;
use super::statistics::{dtype_of_distances, squared_magnitude};
use super::window::neutral;
use crate::graph::{ExprId, Graph, ReduceOp, Result};

impl Graph {
    /// Replaces NaN in `x`.
    fn replace_nan(&mut self, x: ExprId, other: Scalar) -> Result<ExprId> {
        let dtype = self.dtype(x);
        if dtype.is_integer() {
            return Ok(x);
        }
        let is_nan = self.is_nan(x)?;
        let other = self.scalar_constant(other, dtype)?;
        self.select(is_nan, other, x)
    }

    /// Returns the sum, the product, the largest or the smallest of the elements that are not NaN.
    /// If all elements are NaN, an extremum is NaN, a sum is 0 and a product is 1.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::reduction`].
    pub fn nan_reduction(
        &mut self,
        op: ReduceOp,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        let dtype = self.dtype(x);
        if dtype.is_integer() || dtype == DType::Pred {
            return self.reduction(op, x, axes, keep_axes);
        }
        let neutral = match op {
            ReduceOp::Sum | ReduceOp::Any => Scalar::zero(dtype),
            ReduceOp::Product | ReduceOp::All => Scalar::one(dtype),
            ReduceOp::Max => dtype.min_value(),
            ReduceOp::Min => dtype.max_value(),
        };
        let known = self.replace_nan(x, neutral)?;
        let result = self.reduction(op, known, axes, keep_axes)?;
        if !matches!(op, ReduceOp::Max | ReduceOp::Min) {
            return Ok(result);
        }
        let is_nan = self.is_nan(x)?;
        let none = self.all(is_nan, axes, keep_axes)?;
        let nan = self.scalar_constant(Scalar::Float(f64::NAN), dtype)?;
        self.select(none, nan, result)
    }

    /// Counts the elements that are not NaN, as a float for use with `x`.
    fn count_non_nan(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        let known = self.equal(x, x)?;
        let known = self.as_type(known, DType::S32)?;
        let count = self.sum(known, axes, keep_axes)?;
        self.as_type(count, self.dtype(x).to_real().at_least_f32())
    }

    /// Returns the mean of the elements that are not NaN, as a float; NaN if all are NaN. Narrow
    /// floats are summed in 32 bits.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn nan_mean(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        let dtype = self.dtype(x).to_floating();
        let x = self.as_type(x, dtype_of_distances(self.dtype(x)))?;
        let count = self.count_non_nan(x, axes, keep_axes)?;
        let wide = nxla_tensor::promote(self.dtype(x), self.dtype(count));
        let known = self.replace_nan(x, Scalar::zero(self.dtype(x)))?;
        let formula = Formula::new(self);
        let sum = formula.term(known).as_type(wide).sum(axes, keep_axes);
        (sum / formula.term(count)).as_type(dtype).id()
    }

    /// Returns the mean squared distance from the mean of the elements that are not NaN, divided by
    /// their number minus `correction`; NaN if this is not positive.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn nan_variance(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
        correction: f64,
    ) -> Result<ExprId> {
        let dtype = self.dtype(x).to_floating();
        let x = self.as_type(x, dtype_of_distances(self.dtype(x)))?;
        let count = self.count_non_nan(x, axes, keep_axes)?;
        let wide = nxla_tensor::promote(self.dtype(x), self.dtype(count));
        let x = self.as_type(x, wide)?;
        let all = self.all_axes(x);
        let mean = self.nan_mean(x, Some(axes.unwrap_or(&all)), true)?;
        // NaN is replaced before the computation, so that derivatives are finite.
        let known = self.replace_nan(x, Scalar::zero(wide))?;
        let formula = Formula::new(self);
        let [x, known, mean, count] = formula.terms([x, known, mean, count]);
        let is_known = x.equal(x);
        let distance = known - mean;
        let distance = is_known.select(distance, distance.zero());
        let sum = squared_magnitude(distance).sum(axes, keep_axes);
        let freedom = count - correction;
        let enough = freedom.greater(0.0);
        let variance = sum / enough.select(freedom, 1.0);
        enough.select(variance, f64::NAN).as_type(dtype.to_real()).id()
    }

    /// Returns the square root of [`Graph::nan_variance`], also if the variance overflows a narrow
    /// float.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn nan_standard_deviation(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
        correction: f64,
    ) -> Result<ExprId> {
        self.root_of_variance(x, |graph, x| graph.nan_variance(x, axes, keep_axes, correction))
    }

    /// Returns the index of the largest (or smallest) element that is not NaN, as [`Graph::argmax`]
    /// does; -1 if all are NaN.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::argmax`].
    pub fn nan_arg(
        &mut self,
        x: ExprId,
        axis: Option<i64>,
        keep_axis: bool,
        largest: bool,
    ) -> Result<ExprId> {
        let dtype = self.dtype(x);
        let neutral = if largest { dtype.min_value() } else { dtype.max_value() };
        let known = self.replace_nan(x, neutral)?;
        let index = if largest {
            self.argmax(known, axis, keep_axis, false, DType::S32)?
        } else {
            self.argmin(known, axis, keep_axis, false, DType::S32)?
        };
        if dtype.is_integer() {
            return Ok(index);
        }
        let axes = axis.map(|axis| [axis]);
        let axes = axes.as_ref().map(|axes| &axes[..]);
        // NaN was replaced by the neutral element, which a later infinity may equal.
        let infinite = self.scalar_constant(neutral, dtype)?;
        let formula = Formula::new(self);
        let [x, index, infinite] = formula.terms([x, index, infinite]);
        let (known, is_neutral) = (!x.is_nan(), x.equal(infinite));
        let first = is_neutral
            .as_type(DType::S32)
            .apply(|graph, mark| graph.argmax(mark, axis, keep_axis, false, DType::S32));
        let any = |graph: &mut Graph, x| graph.any(x, axes, keep_axis);
        let index = (known & !is_neutral).apply(any).select(index, first);
        known.apply(any).select(index, -1).id()
    }

    /// Returns cumulative sums or products that ignore NaN.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::cumulative`].
    pub fn nan_cumulative(&mut self, op: Cumulative, x: ExprId, axis: i64) -> Result<ExprId> {
        let dtype = self.dtype(x);
        let known = self.replace_nan(x, neutral(op, dtype))?;
        self.cumulative(op, known, axis, false)
    }
}
