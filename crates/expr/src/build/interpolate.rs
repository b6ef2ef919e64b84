//! Piecewise linear interpolation.

use nxla_tensor::{DType, Number, Shape, promote};

use super::SliceStart;
use super::create::unit_of_width;
use super::formula::{Formula, Term};
use crate::graph::{ErrorKind, ExprId, Graph, Result};

/// The values of an interpolated function beyond its points, see [`Graph::interpolate`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Extrapolation {
    /// The value before the first point; by default the value at the first point.
    pub left: Option<ExprId>,
    /// The value after the last point; by default the value at the last point.
    pub right: Option<ExprId>,
    /// The period of a periodic function, which has values everywhere.
    pub period: Option<f64>,
}

impl Graph {
    /// Returns the values at `x` of the piecewise linear function through the points `(xs, ys)`
    /// with increasing `xs`.
    ///
    /// # Errors
    /// Returns an error for points that are not two vectors of one length, or none; for a period of
    /// 0; for complex `x`.
    pub fn interpolate(
        &mut self,
        x: ExprId,
        xs: ExprId,
        ys: ExprId,
        extrapolation: &Extrapolation,
    ) -> Result<ExprId> {
        let op = "interp";
        let count = match (self.shape(xs).as_slice(), self.shape(ys).as_slice()) {
            (&[count], &[other]) if count == other && count > 0 => count,
            _ => {
                let found = self.tensor_type(ys).to_string();
                let expected = format!("a vector as long as {}, not empty", self.tensor_type(xs));
                return Err(self.error(op, ErrorKind::Shape { argument: "fp", found, expected }));
            }
        };
        let has_integers = [x, xs].into_iter().any(|x| self.dtype(x).is_integer());
        let places = promote(self.dtype(x), self.dtype(xs)).to_floating();
        let float = self.dtype(ys).to_floating();
        let result = promote(places, float);
        // `f32` would round close integers to the same number.
        let least = if has_integers { DType::F64 } else { float.to_real() };
        let dtype = promote(places, least);
        let (mut x, mut xs) = (self.as_type(x, dtype)?, self.as_type(xs, dtype)?);
        xs = self.rename(xs, None)?;
        let mut ys = self.as_type(ys, float)?;
        ys = self.rename(ys, None)?;
        let mut count = count;
        if let Some(period) = extrapolation.period {
            (x, xs, ys) = self.one_period(x, xs, ys, period)?;
            count += 2;
        }
        let (first_x, first_y) = (self.element(xs, 0)?, self.element(ys, 0)?);
        let (last_x, last_y) = (self.element(xs, count - 1)?, self.element(ys, count - 1)?);
        let inner = if count == 1 { first_y } else { self.between_points(x, xs, ys, count)? };
        let inner = self.as_type(inner, result)?;
        let (left, right) = match extrapolation.period {
            Some(_) => (None, None),
            None => (extrapolation.left, extrapolation.right),
        };
        let before = self.less(x, first_x)?;
        let value = self.select(before, left.unwrap_or(first_y), inner)?;
        let after = self.greater(x, last_x)?;
        self.select(after, right.unwrap_or(last_y), value)
    }

    fn between_points(
        &mut self,
        x: ExprId,
        xs: ExprId,
        ys: ExprId,
        count: usize,
    ) -> Result<ExprId> {
        let after = self.count_before(xs, x, true)?;
        let formula = Formula::new(self);
        let after = formula.term(after).clip(1, count - 1);
        let places = formula.ids([after - 1, after])?;
        let [x0, x1] = places.map(|place| formula.build(|graph| graph.take(xs, place, 0)));
        let [y0, y1] = places.map(|place| formula.build(|graph| graph.take(ys, place, 0)));
        let part = part_of_interval(formula.term(x), x0?, x1?);
        between_values(part, y0?, y1?).id()
    }

    /// Returns positions within one period, and the points in order with a neighbor on each side.
    fn one_period(
        &mut self,
        x: ExprId,
        xs: ExprId,
        ys: ExprId,
        period: f64,
    ) -> Result<(ExprId, ExprId, ExprId)> {
        if period == 0.0 || !period.is_finite() {
            let why = format!("must be a finite number other than 0; got {period}");
            return Err(self.invalid("interp", "period", why));
        }
        let period = self.weak_number(Number::Float(period.abs()), xs)?;
        let (x, xs) = (self.floor_remainder(x, period)?, self.floor_remainder(xs, period)?);
        let order = self.argsort(xs, 0, false, true, DType::S32)?;
        let (xs, ys) = (self.take(xs, order, 0)?, self.take(ys, order, 0)?);
        let count = self.shape(xs)[0];
        let part =
            |graph: &mut Graph, of, at| graph.slice_along_axis(of, SliceStart::at(at), 1, 0, 1);
        let (first, last) = (part(self, xs, 0)?, part(self, xs, count - 1)?);
        let (before, after) = (self.subtract(last, period)?, self.add(first, period)?);
        let xs = self.concatenate(&[before, xs, after], 0)?;
        let (first, last) = (part(self, ys, 0)?, part(self, ys, count - 1)?);
        let ys = self.concatenate(&[last, ys, first], 0)?;
        Ok((x, xs, ys))
    }

    fn element(&mut self, vector: ExprId, at: usize) -> Result<ExprId> {
        let element = self.slice_along_axis(vector, SliceStart::at(at), 1, 0, 1)?;
        self.reshape(element, Shape::scalar())
    }
}

/// Returns `(x - x0) / (x1 - x0)`, and 0 in an interval without width.
fn part_of_interval<'f>(x: Term<'f>, x0: Term<'f>, x1: Term<'f>) -> Term<'f> {
    let [unit, _] = unit_of_width(x0, x1);
    let [x, x0, x1] = [x, x0, x1].map(|end| end * unit);
    let (distance, width) = (x - x0, x1 - x0);
    let (is_bounded, is_step) = (width.is_finite(), width.equal(0.0));
    // The branches that are not selected must have finite derivatives.
    let divisor = is_bounded.select(is_step.select(1.0, width), 1.0);
    let bounded = distance / divisor;
    // NaN remains NaN.
    let bounded = is_step.select(distance * 0.0, bounded);
    is_bounded.select(bounded, part_of_unbounded_interval(x, x0, x1))
}

/// Returns the position of `x` in an interval with an infinite or NaN end. A point at an end has the
/// position of this end. Another point at a finite distance from an end has the position of this
/// end too, a point between two infinite ends is in the middle, and a point next to a NaN has the
/// position NaN.
fn part_of_unbounded_interval<'f>(x: Term<'f>, x0: Term<'f>, x1: Term<'f>) -> Term<'f> {
    let (distance, rest) = (x - x0, x1 - x);
    let (is_infinite, is_rest_infinite) = (distance.is_infinity(), rest.is_infinity());
    let far = is_rest_infinite.select(0.5, rest * 0.0 + 1.0);
    // Without an infinite distance, one of the distances is NaN.
    let close = is_rest_infinite.select(distance * 0.0, distance + rest);
    let inside = is_infinite.select(far, close);
    // The distance between equal infinities is NaN, so the points are compared.
    x.equal(x0).select(0.0, x.equal(x1).select(1.0, inside))
}

/// Returns `y0 + part (y1 - y0)`, computed from the nearer value, so that the result at a point is
/// the value of the point. The difference of infinite or huge values has no meaning.
fn between_values<'f>(part: Term<'f>, y0: Term<'f>, y1: Term<'f>) -> Term<'f> {
    let (rest, difference) = (1.0 - part, y1 - y0);
    let is_regular = difference.is_finite();
    let rise = is_regular.select(difference, 0.0);
    let (climbed, left) = (part * rise, rest * rise);
    let (from_left, from_right) = (y0 + climbed, y1 - left);
    let between = part.less(0.5).select(from_left, from_right);
    let irregular = rest * y0 + part * y1;
    let irregular = part.equal(1.0).select(y1, irregular);
    is_regular.select(between, part.equal(0.0).select(y0, irregular))
}
