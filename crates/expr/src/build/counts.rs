//! Histograms, segment reductions, searches in sorted vectors and interpolation.

use nxla_tensor::{DType, MAX_AXIS, Number, Scalar, Shape, promote, promote_keep_pred};

use super::SliceStart;
use super::index::counting_dtype;
use crate::graph::{BlockKind, Combine, ErrorKind, ExprId, Graph, Order, Result};

/// The reduction of the entries of a segment, see [`Graph::segment`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// The sum; 0 for no entries.
    Sum,
    /// The product; 1 for no entries.
    Product,
    /// The largest entry; the smallest value of the dtype for no entries.
    Max,
    /// The smallest entry; the largest value of the dtype for no entries.
    Min,
}

/// The side of equal elements on which a value is inserted, see [`Graph::searchsorted`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Before equal elements.
    Left,
    /// After equal elements.
    Right,
}

/// The values of an interpolated function beyond its points, see [`Graph::interpolate`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Beyond {
    /// The value before the first point; by default the value at the first point.
    pub left: Option<ExprId>,
    /// The value after the last point; by default the value at the last point.
    pub right: Option<ExprId>,
    /// The period of a periodic function, which has values everywhere.
    pub period: Option<f64>,
}

impl Graph {
    /// Returns the indices at which the elements of `x` must be inserted into an increasing vector,
    /// before or after equal elements. NaN is largest. The result is `s32` (or `s64`).
    ///
    /// # Errors
    /// Returns an error for a `sorted` that is not a vector or complex numbers.
    pub fn searchsorted(&mut self, sorted: ExprId, x: ExprId, side: Side) -> Result<ExprId> {
        let order = Order { equal: side == Side::Right, nan_last: self.dtype(x).is_float() };
        self.count_in_order(sorted, x, order)
    }

    /// Returns for each element of `x` the number of smaller elements of an increasing vector, or
    /// with `equal` the number of elements that are not greater. The result is `s32` (or `s64`), by
    /// bisection. NaN precedes nothing.
    ///
    /// # Errors
    /// Returns an error for a `sorted` that is not a vector or complex numbers.
    pub(super) fn count_before(
        &mut self,
        sorted: ExprId,
        x: ExprId,
        equal: bool,
    ) -> Result<ExprId> {
        self.count_in_order(sorted, x, Order { equal, nan_last: false })
    }

    fn count_in_order(&mut self, sorted: ExprId, x: ExprId, order: Order) -> Result<ExprId> {
        let &[count] = self.shape(sorted).as_slice() else {
            let (found, expected) = (self.tensor_type(sorted).to_string(), "a vector".to_owned());
            return Err(self
                .error("searchsorted", ErrorKind::Shape { argument: "sorted", found, expected }));
        };
        let (sorted, x) = self.comparable(sorted, x)?;
        let ty = self.tensor_type(x);
        let is_known = count > 0
            && ty.dtype == self.dtype(sorted)
            && !ty.dtype.is_complex()
            && ty.names.is_none();
        if is_known { self.search(sorted, x, order) } else { self.bisect(sorted, x, order) }
    }

    /// Converts two operands to the dtype in which they are compared. `u64` and a signed dtype have
    /// no such dtype: see `make/signs.rs`.
    fn comparable(&mut self, x: ExprId, y: ExprId) -> Result<(ExprId, ExprId)> {
        let dtypes = [self.dtype(x), self.dtype(y)];
        let has_mixed_signs =
            dtypes.contains(&DType::U64) && dtypes.into_iter().any(DType::is_signed);
        if has_mixed_signs {
            return Ok((x, y));
        }
        let common = promote_keep_pred(dtypes[0], dtypes[1]);
        Ok((self.as_type(x, common)?, self.as_type(y, common)?))
    }

    /// Creates the block for [`Graph::count_in_order`], for real operands of one dtype.
    pub(crate) fn search(&mut self, sorted: ExprId, x: ExprId, order: Order) -> Result<ExprId> {
        let kind = BlockKind::Search(order);
        let results = self.known_block(kind, &[sorted, x], |graph, parameters| {
            let &[sorted, x] = parameters else { unreachable!("there are two operands") };
            Ok::<_, crate::Error>(vec![graph.bisect(sorted, x, order)?])
        })?;
        Ok(results[0])
    }

    /// The body of the block: bisection as a composition.
    fn bisect(&mut self, sorted: ExprId, x: ExprId, order: Order) -> Result<ExprId> {
        let count = self.shape(sorted)[0];
        let dtype = counting_dtype(&[count]);
        let number = |graph: &mut Graph, value: usize| {
            let value = i64::try_from(value).expect("a size fits in 64 bits");
            graph.scalar_constant(Scalar::Int(value), dtype)
        };
        let zero = number(self, 0)?;
        let mut before = zero;
        // The remaining number of elements is equal for all of `x`, so that no index is out of
        // range.
        let mut left = count;
        while left > 0 {
            let half = (left / 2).max(1);
            let offset = number(self, half - 1)?;
            let last = self.add(before, offset)?;
            let element = self.take(sorted, last, 0)?;
            let precedes = match order.equal {
                true => self.less_equal(element, x)?,
                false => self.less(element, x)?,
            };
            let step = number(self, half)?;
            let further = self.add(before, step)?;
            before = self.select(precedes, further, before)?;
            left -= half;
        }
        if count == 0 {
            let shape = self.shape(x).clone();
            before = self.broadcast(zero, shape, None)?;
        }
        if !order.nan_last {
            return Ok(before);
        }
        // NaN equals NaN here and is larger than all numbers.
        let numbers = match order.equal {
            true => self.weak_number(Number::Int(count as i128), before)?,
            false => {
                let is_nan = self.is_nan(sorted)?;
                let is_number = self.logical_not(is_nan)?;
                self.sum(is_number, None, false)?
            }
        };
        let numbers = self.as_type(numbers, dtype)?;
        let is_nan = self.is_nan(x)?;
        self.select(is_nan, numbers, before)
    }

    /// Reduces the entries of `x` along its first axis that have equal segment numbers, to one
    /// entry for each number below `count`. Entries with other numbers are ignored.
    ///
    /// Sums and extrema use scatters. Products sort the entries by number.
    ///
    /// # Errors
    /// Returns an error for numbers that are not a vector of integers with one for each entry or
    /// complex numbers but for sums and products.
    pub fn segment(
        &mut self,
        kind: Segment,
        x: ExprId,
        numbers: ExprId,
        count: usize,
    ) -> Result<ExprId> {
        self.check_numbers(x, numbers)?;
        let (x, numbers) = (self.rename(x, None)?, self.rename(numbers, None)?);
        // A large count may not fit in a narrow dtype; out-of-range numbers are ignored.
        let numbers = self.signed_indices(numbers)?;
        match kind {
            Segment::Sum => self.segment_sum(x, numbers, count),
            Segment::Product => self.segment_product(x, numbers, count),
            Segment::Max => self.segment_extreme(x, numbers, count, true),
            Segment::Min => self.segment_extreme(x, numbers, count, false),
        }
    }

    fn check_numbers(&self, x: ExprId, numbers: ExprId) -> Result<()> {
        let (found, entries) = (self.tensor_type(numbers), self.shape(x).first().copied());
        if !found.dtype.is_integer() {
            let (argument, expected) = ("segment_ids", "an integer dtype");
            let kind = ErrorKind::DType { argument, found: found.dtype, expected };
            return Err(self.error("segment", kind));
        }
        if entries.is_some_and(|entries| found.shape[..] == [entries]) {
            return Ok(());
        }
        let expected =
            format!("a vector with one number for each entry of {}", self.tensor_type(x));
        let argument = "segment_ids";
        Err(self
            .error("segment", ErrorKind::Shape { argument, found: found.to_string(), expected }))
    }

    /// Reshapes `mask`, which has the first axis of `x`, to the rank of `x`.
    fn along_first(&mut self, mask: ExprId, x: ExprId) -> Result<ExprId> {
        let shape = self.shape(x).clone();
        self.broadcast(mask, shape, Some(&[0]))
    }

    fn segment_sum(&mut self, x: ExprId, numbers: ExprId, count: usize) -> Result<ExprId> {
        // Booleans are counted.
        let x = if self.dtype(x).is_pred() { self.as_type(x, DType::S32)? } else { x };
        let zero = self.zero_like(x)?;
        let mut shape = self.shape(x).clone();
        shape.as_mut_slice()[0] = count;
        let zeros = self.broadcast(zero, shape, None)?;
        if count == 0 {
            return Ok(zeros);
        }
        let numbers = self.new_axis(numbers, -1, None)?;
        self.indexed_add(zeros, numbers, x, Some(&[0]))
    }

    /// Multiplies the entries of each segment, such that its last entry in the order of the numbers
    /// is the product of all.
    fn segment_product(&mut self, x: ExprId, numbers: ExprId, count: usize) -> Result<ExprId> {
        // Booleans are converted to integers.
        let x = self.as_type(x, promote(self.dtype(x), self.dtype(x)))?;
        let order = self.argsort(numbers, 0, false, true, DType::S32)?;
        let entries = self.take(x, order, 0)?;
        let numbers = self.take(numbers, order, 0)?;
        let product = self.combined_runs(numbers, entries, Combine::Multiply)?;
        let one = self.one_like(product)?;
        self.last_of_segments(product, numbers, count, one)
    }

    fn segment_extreme(
        &mut self,
        x: ExprId,
        numbers: ExprId,
        count: usize,
        largest: bool,
    ) -> Result<ExprId> {
        let dtype = self.dtype(x);
        let none = if largest { dtype.min_value() } else { dtype.max_value() };
        if dtype.is_complex() {
            let (argument, expected) = ("operand", "a real dtype");
            return Err(
                self.error("segment", ErrorKind::DType { argument, found: dtype, expected })
            );
        }
        let none = self.scalar_constant(none, dtype)?;
        let mut shape = self.shape(x).clone();
        shape.as_mut_slice()[0] = count;
        let initial = self.broadcast(none, shape.clone(), None)?;
        if self.shape(x).size() == 0 || shape.size() == 0 {
            return Ok(initial);
        }
        let places = self.segment_places(x, numbers, &shape)?;
        let (initial, x) = (self.flatten(initial, None)?, self.flatten(x, None)?);
        let combine = if largest { Combine::Max } else { Combine::Min };
        let extreme = self.scatter(initial, places, x, combine)?;
        self.reshape(extreme, shape)
    }

    /// Returns the row-major position, in a tensor of segments, of each element of `x`, as a column
    /// of indices. Elements of entries without a segment have a position beyond the end, which is
    /// ignored.
    fn segment_places(&mut self, x: ExprId, numbers: ExprId, segments: &Shape) -> Result<ExprId> {
        let number = |graph: &mut Graph, value: usize, dtype| {
            let value = i64::try_from(value).expect("a tensor has below 2^63 elements");
            graph.scalar_constant(Scalar::Int(value), dtype)
        };
        let (zero, count) = (number(self, 0, DType::S64)?, number(self, segments[0], DType::S64)?);
        let (above, below) = (self.greater_equal(numbers, zero)?, self.less(numbers, count)?);
        let exists = self.logical_and(above, below)?;
        let dtype = counting_dtype(&[segments.size() + 1]);
        let known = self.select(exists, numbers, zero)?;
        let known = self.as_type(known, dtype)?;
        let size = number(self, Shape::from(&segments[1..]).size(), dtype)?;
        let first = self.multiply(known, size)?;
        let entry = Shape::from(&segments[1..]);
        let within = self.iota(entry, None, dtype)?;
        let (first, exists) = (self.along_first(first, x)?, self.along_first(exists, x)?);
        let places = self.add(first, within)?;
        let nowhere = number(self, segments.size(), dtype)?;
        let places = self.select(exists, places, nowhere)?;
        let places = self.flatten(places, None)?;
        self.new_axis(places, -1, None)
    }

    /// Returns the last entry of each segment, for entries in the order of their numbers.
    fn last_of_segments(
        &mut self,
        x: ExprId,
        numbers: ExprId,
        count: usize,
        none: ExprId,
    ) -> Result<ExprId> {
        let mut shape = self.shape(x).clone();
        let entries = shape[0];
        shape.as_mut_slice()[0] = count;
        if entries == 0 || count == 0 {
            return self.broadcast(none, shape, None);
        }
        let segments = self.iota([count], Some(0), DType::S64)?;
        let end = self.count_before(numbers, segments, true)?;
        let start = self.count_before(numbers, segments, false)?;
        let occurs = self.less(start, end)?;
        let one = self.one_like(end)?;
        let last = self.subtract(end, one)?;
        let zero = self.zero_like(last)?;
        let last = self.max(last, zero)?;
        let taken = self.take(x, last, 0)?;
        let occurs = self.along_first(occurs, taken)?;
        self.select(occurs, taken, none)
    }

    /// Counts the occurrences of each number below `count` among integers or booleans, as `s32`, or
    /// sums their weights. Other numbers are ignored. Weights of narrow integers widen to 32 bits.
    ///
    /// # Errors
    /// Returns an error for a tensor that is not a vector of integers or weights of another shape.
    pub fn bincount(&mut self, x: ExprId, weights: Option<ExprId>, count: usize) -> Result<ExprId> {
        let op = "bincount";
        let ty = self.tensor_type(x).clone();
        if ty.rank() != 1 {
            let (found, expected) = (ty.to_string(), "a vector".to_owned());
            return Err(self.error(op, ErrorKind::Shape { argument: "x", found, expected }));
        }
        if !ty.dtype.is_integer() && !ty.dtype.is_pred() {
            let (argument, expected) = ("x", "an integer dtype");
            return Err(self.error(op, ErrorKind::DType { argument, found: ty.dtype, expected }));
        }
        let weights = match weights {
            Some(weights) if self.shape(weights) != &ty.shape => {
                let found = self.tensor_type(weights).to_string();
                let (argument, expected) = ("weights", format!("the shape of {ty}"));
                return Err(self.error(op, ErrorKind::Shape { argument, found, expected }));
            }
            Some(weights) => match self.dtype(weights) {
                // `segment` counts booleans, and `to_aggregate` would halve the range of `u64`.
                DType::Pred | DType::U64 => weights,
                dtype => self.as_type(weights, dtype.to_aggregate())?,
            },
            None => {
                let one = self.scalar_constant(Scalar::Int(1), DType::S32)?;
                self.broadcast(one, ty.shape, None)?
            }
        };
        let x = if ty.dtype.is_pred() { self.as_type(x, DType::S32)? } else { x };
        self.segment(Segment::Sum, weights, x, count)
    }

    /// Returns the edges of the bins of a histogram: `bins + 1` evenly spaced values over a range,
    /// by default the range of the elements. An empty range is widened to a length of 1.
    ///
    /// # Errors
    /// Returns an error without bins, or for a range that ends before it begins or for no elements
    /// to have a range.
    pub fn bin_edges(
        &mut self,
        x: ExprId,
        bins: usize,
        range: Option<(f64, f64)>,
    ) -> Result<ExprId> {
        let op = "histogram";
        if bins == 0 || bins >= MAX_AXIS {
            let why = format!("must be at least 1 and less than {MAX_AXIS}; got {bins}");
            return Err(self.invalid(op, "bins", why));
        }
        let dtype = self.dtype(x).to_floating();
        let number =
            |graph: &mut Graph, value: f64| graph.scalar_constant(Scalar::Float(value), dtype);
        let (low, high) = match range {
            Some((low, high)) if !(low <= high && low.is_finite() && high.is_finite()) => {
                let why = format!("must be two finite increasing numbers; got {low} and {high}");
                return Err(self.invalid(op, "range", why));
            }
            Some((low, high)) => (number(self, low)?, number(self, high)?),
            None if self.shape(x).size() == 0 => (number(self, 0.0)?, number(self, 1.0)?),
            None => {
                let x = self.as_type(x, dtype)?;
                (self.reduce_min(x, None, false)?, self.reduce_max(x, None, false)?)
            }
        };
        let flat = self.equal(low, high)?;
        let (half, none) = (number(self, 0.5)?, number(self, 0.0)?);
        let widened = self.select(flat, half, none)?;
        let (low, high) = (self.subtract(low, widened)?, self.add(high, widened)?);
        let edges = self.linspace_between(low, high, bins + 1, true, dtype, None)?;
        // The last edge must not be affected by rounding.
        let last = self.new_axis(high, 0, None)?;
        let others = self.slice_along_axis(edges, 0, bins, 0, 1)?;
        self.concatenate(&[others, last], 0)
    }

    /// Counts the elements in each bin, as `s32`, or sums their weights. With `density`, the
    /// fraction of the total is divided by the width of the bin. A bin includes its first edge and
    /// excludes its last edge, except the last bin, which includes both. Elements outside of the
    /// bins are ignored.
    ///
    /// # Errors
    /// Returns an error for edges that are not a vector of at least two, weights of another shape,
    /// or complex numbers.
    pub fn histogram(
        &mut self,
        x: ExprId,
        edges: ExprId,
        weights: Option<ExprId>,
        density: bool,
    ) -> Result<ExprId> {
        let op = "histogram";
        let bins = match self.shape(edges).as_slice() {
            &[count] if count > 1 => count - 1,
            _ => {
                let found = self.tensor_type(edges).to_string();
                let (argument, expected) = ("bins", "a vector of at least two edges".to_owned());
                return Err(self.error(op, ErrorKind::Shape { argument, found, expected }));
            }
        };
        if let Some(weights) = weights
            && self.shape(weights) != self.shape(x)
        {
            let found = self.tensor_type(weights).to_string();
            let expected = format!("the shape of {}", self.tensor_type(x));
            let argument = "weights";
            return Err(self.error(op, ErrorKind::Shape { argument, found, expected }));
        }
        let (x, edges) = (self.flatten(x, None)?, self.rename(edges, None)?);
        let x = self.rename(x, None)?;
        let weights = weights.map(|weights| self.flatten(weights, None)).transpose()?;
        let before = self.count_before(edges, x, true)?;
        let one = self.one_like(before)?;
        let bin = self.subtract(before, one)?;
        let last = self.slice_along_axis(edges, SliceStart::at(bins), 1, 0, 1)?;
        let at_end = self.equal(x, last)?;
        let last_bin = i64::try_from(bins - 1).expect("a size fits in 64 bits");
        let last_bin = self.weak_number(Number::Int(last_bin.into()), bin)?;
        let bin = self.select(at_end, last_bin, bin)?;
        let counts = self.bincount(bin, weights, bins)?;
        if !density {
            return Ok(counts);
        }
        let widths = self.diff(edges, 1, 0)?;
        let total = self.sum(counts, None, false)?;
        let share = self.divide(counts, total)?;
        self.divide(share, widths)
    }

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
        beyond: &Beyond,
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
        let dtype = promote(self.dtype(x), self.dtype(xs)).to_floating();
        let (mut x, mut xs) = (self.as_type(x, dtype)?, self.as_type(xs, dtype)?);
        xs = self.rename(xs, None)?;
        let float = self.dtype(ys).to_floating();
        let mut ys = self.as_type(ys, float)?;
        ys = self.rename(ys, None)?;
        let mut count = count;
        if let Some(period) = beyond.period {
            (x, xs, ys) = self.one_period(x, xs, ys, period)?;
            count += 2;
        }
        let (first_x, first_y) = (self.element(xs, 0)?, self.element(ys, 0)?);
        let (last_x, last_y) = (self.element(xs, count - 1)?, self.element(ys, count - 1)?);
        let inner = if count == 1 { first_y } else { self.between_points(x, xs, ys, count)? };
        let (left, right) = match beyond.period {
            Some(_) => (None, None),
            None => (beyond.left, beyond.right),
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
        let one = self.one_like(after)?;
        let limit = i64::try_from(count - 1).expect("a size fits in 64 bits");
        let limit = self.weak_number(Number::Int(limit.into()), after)?;
        let after = self.clip(after, one, limit)?;
        let before = self.subtract(after, one)?;
        let (x0, x1) = (self.take(xs, before, 0)?, self.take(xs, after, 0)?);
        let (y0, y1) = (self.take(ys, before, 0)?, self.take(ys, after, 0)?);
        let (width, zero) = (self.subtract(x1, x0)?, self.zero_like(x1)?);
        let step = self.equal(width, zero)?;
        let one = self.one_like(width)?;
        let width = self.select(step, one, width)?;
        let distance = self.subtract(x, x0)?;
        let part = self.divide(distance, width)?;
        let part = self.select(step, zero, part)?;
        self.between_values(part, y0, y1)
    }

    /// Returns `y0 + part (y1 - y0)`, computed from the nearer value, so that the result at a point is
    /// the value of the point. The difference of infinite or huge values has no meaning.
    fn between_values(&mut self, part: ExprId, y0: ExprId, y1: ExprId) -> Result<ExprId> {
        let (zero, one) = (self.zero_like(part)?, self.one_like(part)?);
        let (half, rest) = (self.near(part, 0.5)?, self.subtract(one, part)?);
        let difference = self.subtract(y1, y0)?;
        let is_regular = self.is_finite(difference)?;
        let none = self.zero_like(difference)?;
        let rise = self.select(is_regular, difference, none)?;
        let (climbed, left) = (self.multiply(part, rise)?, self.multiply(rest, rise)?);
        let (from_left, from_right) = (self.add(y0, climbed)?, self.subtract(y1, left)?);
        let is_left = self.less(part, half)?;
        let between = self.select(is_left, from_left, from_right)?;
        let (share, other) = (self.multiply(rest, y0)?, self.multiply(part, y1)?);
        let irregular = self.add(share, other)?;
        let (at_left, at_right) = (self.equal(part, zero)?, self.equal(part, one)?);
        let irregular = self.select(at_right, y1, irregular)?;
        let irregular = self.select(at_left, y0, irregular)?;
        self.select(is_regular, between, irregular)
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
