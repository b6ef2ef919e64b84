//! Quantiles along axes.

use nxla_tensor::{DType, Scalar, Shape};

use crate::graph::{ErrorKind, ExprId, Graph, Result};

/// The value of a quantile between two elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Between {
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
    pub between: Between,
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
        let (last, rest, kept) = self.axes_last(x, axes)?;
        if self.shape(last).last() == Some(&0) {
            let why = format!("must have at least one element; got {}", self.tensor_type(x));
            return Err(self.invalid(op, "operand", why));
        }
        let x = self.as_type(last, dtype)?;
        let sorted = self.sort(x, -1, false, false)?;
        let is_nan = self.is_nan(sorted)?;
        // The index of the last valid element, and the rows without a valid element.
        let (limit, missing) = self.last_position(is_nan, options.ignore_nan)?;
        let several = self.shape(q).rank() == 1;
        let q = self.as_type(q, DType::F64)?;
        let q = self.reshape(q, [self.shape(q).size()])?;
        let wide_limit = self.as_type(limit, DType::F64)?;
        let place = self.multiply(wide_limit, q)?;
        let value = self.value_at(sorted, place, limit, options.between)?;
        let (zero, one) = (self.zero_like(q)?, self.one_like(q)?);
        let (low, high) = (self.greater_equal(q, zero)?, self.less_equal(q, one)?);
        let inside = self.logical_and(low, high)?;
        let outside = self.logical_not(inside)?;
        let missing = self.logical_or(missing, outside)?;
        let nan = self.scalar_constant(Scalar::Float(f64::NAN), dtype)?;
        let value = self.select(missing, nan, value)?;
        let first = self.move_axes(value, &[-1], &[0])?;
        let shape = if options.keep_axes { kept } else { rest };
        let own = several.then_some(self.shape(first)[0]);
        let shape: Shape = own.into_iter().chain(shape).collect();
        self.reshape(first, shape)
    }

    /// Moves these axes to one last axis without names. Returns the tensor, the shape of the other
    /// axes, and this shape with ones for the moved axes.
    pub(super) fn axes_last(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<(ExprId, Vec<usize>, Vec<usize>)> {
        let shape = self.shape(x).clone();
        let axes: Vec<usize> = match axes {
            Some(axes) => self.axis_set("quantile", x, axes)?.to_vec(),
            None => (0..shape.rank()).collect(),
        };
        let others: Vec<usize> = (0..shape.rank()).filter(|axis| !axes.contains(axis)).collect();
        let rest: Vec<usize> = others.iter().map(|&axis| shape[axis]).collect();
        let one_or = |(axis, &size): (usize, &usize)| if axes.contains(&axis) { 1 } else { size };
        let kept = shape.iter().enumerate().map(one_or).collect();
        let order: Vec<i64> = others
            .iter()
            .chain(&axes)
            .map(|&axis| i64::try_from(axis).expect("an axis is small"))
            .collect();
        let x = self.rename(x, None)?;
        let x = self.transpose(x, Some(&order))?;
        let size = shape.size_along(axes.iter().copied());
        let last: Shape = rest.iter().copied().chain([size]).collect();
        Ok((self.reshape(x, last)?, rest, kept))
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
        let limit = i64::try_from(size - 1).expect("a size fits in 64 bits");
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
        between: Between,
    ) -> Result<ExprId> {
        let dtype = self.dtype(sorted);
        let element = |graph: &mut Graph, place: ExprId| {
            let position = graph.as_type(place, DType::S32)?;
            let zero = graph.zero_like(position)?;
            let position = graph.max(position, zero)?;
            let position = graph.min(position, limit)?;
            graph.take_along_axis(sorted, position, -1)
        };
        match between {
            Between::Lower => {
                let place = self.floor(place)?;
                element(self, place)
            }
            Between::Higher => {
                let place = self.ceil(place)?;
                element(self, place)
            }
            Between::Nearest => {
                let place = self.round_half_even(place)?;
                element(self, place)
            }
            Between::Midpoint | Between::Linear => {
                let (floor, ceil) = (self.floor(place)?, self.ceil(place)?);
                let (low, high) = (element(self, floor)?, element(self, ceil)?);
                let wide = dtype.at_least_f32();
                let (low, high) = (self.as_type(low, wide)?, self.as_type(high, wide)?);
                let share = match between {
                    Between::Midpoint => self.near(place, 0.5)?,
                    _ => self.subtract(place, floor)?,
                };
                let one = self.one_like(share)?;
                let rest = self.subtract(one, share)?;
                let (share, rest) = (self.as_type(share, wide)?, self.as_type(rest, wide)?);
                // The difference of the elements would overflow, or be infinite if the lower
                // element is.
                let (low_part, high_part) =
                    (self.multiply(low, rest)?, self.multiply(high, share)?);
                let blend = self.add(low_part, high_part)?;
                let (whole, same) = (self.equal(place, floor)?, self.equal(low, high)?);
                // Rounding would change the blend of equal elements. Their difference is zero and divides
                // the derivative between them; subtracting the difference keeps the sign of -0.
                let equal = self.select(same, high, low)?;
                let step = self.subtract(low, equal)?;
                let step = self.multiply(step, share)?;
                let tie = self.subtract(low, step)?;
                let value = self.select(same, tie, blend)?;
                // The factor of an infinite element may be zero.
                let infinite = self.is_infinity(low)?;
                let infinite = self.logical_and(same, infinite)?;
                let exact = self.logical_or(whole, infinite)?;
                let value = self.select(exact, low, value)?;
                self.as_type(value, dtype)
            }
        }
    }
}
