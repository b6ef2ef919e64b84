//! Quantiles along axes.

use nxla_tensor::{DType, Names, Scalar, Shape, to_i64};

use super::formula::Formula;
use crate::graph::{ErrorKind, ExprId, Graph, Result};
use crate::infer::without_axes;

/// The value of a quantile between two elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QuantileMethod {
    /// Linear interpolation.
    #[default]
    Linear,
    /// The lower element.
    Lower,
    /// The higher element.
    Higher,
    /// The mean of both elements.
    Midpoint,
    /// The nearest element, and in a tie the element with the even position.
    Nearest,
}

/// Options of [`Graph::quantile`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quantile {
    /// The value between two elements.
    pub method: QuantileMethod,
    /// True if the reduced axes remain with size 1.
    pub keep_axes: bool,
    /// True if NaN is ignored. Otherwise the result is NaN if an element is NaN.
    pub ignore_nan: bool,
}

impl Graph {
    /// Returns quantiles along axes: `q` holds fractions from 0 to 1, and its axes come first in
    /// the result. The result is a float. It is NaN if an element is NaN (with `ignore_nan`, if all
    /// elements are NaN) or if `q` is out of range.
    ///
    /// # Errors
    /// Returns an error for axes out of range, repeated or without elements; for more than one axis
    /// of `q`; for complex numbers.
    pub fn quantile(
        &mut self,
        x: ExprId,
        q: ExprId,
        axes: Option<&[i64]>,
        options: Quantile,
    ) -> Result<ExprId> {
        let op = "quantile";
        let dtype = self.dtype(x).to_floating();
        if dtype.is_complex() {
            let (argument, expected) = ("operand", "a real dtype");
            return Err(self.error(op, ErrorKind::DType { argument, found: dtype, expected }));
        }
        if self.shape(q).rank() > 1 {
            let (found, expected) =
                (self.tensor_type(q).to_string(), "a scalar or a vector".into());
            return Err(self.error(op, ErrorKind::Shape { argument: "q", found, expected }));
        }
        let (last, rest, names) = self.axes_last(x, axes, options.keep_axes)?;
        if self.shape(last).last() == Some(&0) {
            let why = format!("must have at least one element; got {}", self.tensor_type(x));
            return Err(self.invalid(op, "operand", why));
        }
        let x = self.as_type(last, dtype)?;
        let sorted = self.sort(x, -1, false, false)?;
        let is_nan = self.is_nan(sorted)?;
        // The index of the last valid element, and the rows without a valid element.
        let (limit, missing) = self.last_position(is_nan, options.ignore_nan)?;
        let own = self.tensor_type(q).clone();
        let q = self.as_type(q, DType::F64)?;
        let q = self.reshape(q, [self.shape(q).size()])?;
        let wide_limit = self.as_type(limit, DType::F64)?;
        let place = self.multiply(wide_limit, q)?;
        let value = self.value_at(sorted, place, limit, options.method)?;
        let formula = Formula::new(self);
        let [q, missing, value] = formula.terms([q, missing, value]);
        let outside = !(q.greater_equal(0.0) & q.less_equal(1.0));
        let value = (missing | outside).select(f64::NAN, value).id()?;
        let first = self.move_axes(value, &[-1], &[0])?;
        let shape: Shape = own.shape.iter().chain(rest.iter()).copied().collect();
        let names = match (own.names, names) {
            (None, None) => None,
            (own_names, names) => {
                let [first, last] = [(own_names, own.shape.rank()), (names, rest.rank())]
                    .map(|(names, rank)| names.unwrap_or_else(|| Names::without_names(rank)));
                Some(first.iter().chain(last.iter()).cloned().collect())
            }
        };
        self.reshape_named(first, shape, names)
    }

    /// Moves these axes to one last axis without names. Returns the tensor, and the shape and names of the other axes;
    /// with `keep_axes`, also of the moved axes, whose size is 1.
    pub(super) fn axes_last(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<(ExprId, Shape, Option<Names>)> {
        let shape = self.shape(x).clone();
        let axes: Vec<usize> = match axes {
            Some(axes) => self.axis_set("quantile", x, axes)?.to_vec(),
            None => (0..shape.rank()).collect(),
        };
        let others: Vec<usize> = (0..shape.rank()).filter(|axis| !axes.contains(axis)).collect();
        let (rest, names) =
            without_axes(self.tensor_type(x), |axis| axes.contains(&axis), keep_axes);
        let order: Vec<i64> = others.iter().chain(&axes).map(|&axis| to_i64(axis)).collect();
        let x = self.rename(x, None)?;
        let x = self.transpose(x, Some(&order))?;
        let size = shape.size_along(axes.iter().copied());
        let last: Shape = others.iter().map(|&axis| shape[axis]).chain([size]).collect();
        Ok((self.reshape(x, last)?, rest, names))
    }

    /// Returns the index of the last valid element of a sorted axis, and where there is none.
    fn last_position(&mut self, is_nan: ExprId, ignore: bool) -> Result<(ExprId, ExprId)> {
        let one = self.scalar_constant(Scalar::Int(1), DType::S32)?;
        if ignore {
            let known = self.logical_not(is_nan)?;
            let known = self.as_type(known, DType::S32)?;
            let count = self.sum(known, Some(&[-1]), true)?;
            let zero = self.zero_like(count)?;
            let missing = self.equal(count, zero)?;
            let limit = self.subtract(count, one)?;
            return Ok((self.max(limit, zero)?, missing));
        }
        let size = self.shape(is_nan).last().copied().unwrap_or(1);
        let missing = self.any(is_nan, Some(&[-1]), true)?;
        let limit = to_i64(size - 1);
        let limit = self.scalar_constant(Scalar::Int(limit), DType::S32)?;
        let shape = self.shape(missing).clone();
        Ok((self.broadcast(limit, shape, None)?, missing))
    }

    /// Returns the values at fractional positions of the sorted last axis.
    fn value_at(
        &mut self,
        sorted: ExprId,
        place: ExprId,
        limit: ExprId,
        method: QuantileMethod,
    ) -> Result<ExprId> {
        let dtype = self.dtype(sorted);
        let element = |graph: &mut Graph, place: ExprId| {
            let formula = Formula::new(graph);
            let [place, limit] = formula.terms([place, limit]);
            let position = place.as_type(DType::S32).max(0).min(limit).id()?;
            graph.take_along_axis(sorted, position, -1)
        };
        let formula = Formula::new(self);
        let place = formula.term(place);
        let (floor, ceil) = (place.floor(), place.ceil());
        let share = match method {
            QuantileMethod::Lower => return floor.apply(element).id(),
            QuantileMethod::Higher => return ceil.apply(element).id(),
            QuantileMethod::Nearest => return place.round_half_even().apply(element).id(),
            QuantileMethod::Midpoint => place.number(0.5),
            QuantileMethod::Linear => place - floor,
        };
        let wide = dtype.at_least_f32();
        let [low, high] = [floor, ceil].map(|place| place.apply(element).as_type(wide));
        let [share, rest] = [share, 1.0 - share].map(|share| share.as_type(wide));
        // The difference of the elements would overflow, or be infinite if the lower element is.
        let blend = low * rest + high * share;
        let same = low.equal(high);
        // Rounding would change the blend of equal elements. Their difference is zero and divides the
        // derivative between them; subtracting the difference keeps the sign of -0.
        let tie = low - (low - same.select(high, low)) * share;
        let value = same.select(tie, blend);
        // The factor of an infinite element may be zero.
        let exact = place.equal(floor) | (same & low.is_infinity());
        exact.select(low, value).as_type(dtype).id()
    }
}
