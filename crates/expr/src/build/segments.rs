//! Reductions of the entries that have equal segment numbers.

use nxla_tensor::{DType, Shape, promote};

use super::formula::Formula;
use super::index::counting_dtype;
use crate::graph::{Combine, ErrorKind, ExprId, Graph, Result};

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

impl Graph {
    /// Reduces the entries of `x` along its first axis that have equal segment numbers, to one
    /// entry for each number below `count`. Entries with other numbers are ignored.
    ///
    /// Sums and extrema use scatters. Products sort the entries by number.
    ///
    /// # Errors
    /// Returns an error if `numbers` is not a vector of integers with one entry per row of `x`, or if `x`
    /// is complex and `kind` is an extremum.
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
        let positions = self.segment_positions(x, numbers, &shape)?;
        let (initial, x) = (self.flatten(initial, None)?, self.flatten(x, None)?);
        let combine = if largest { Combine::Max } else { Combine::Min };
        let extreme = self.scatter(initial, positions, x, combine)?;
        self.reshape(extreme, shape)
    }

    /// Returns the row-major position, in a tensor of segments, of each element of `x`, as a column
    /// of indices. Elements of entries without a segment have a position beyond the end, which is
    /// ignored.
    fn segment_positions(
        &mut self,
        x: ExprId,
        numbers: ExprId,
        segments: &Shape,
    ) -> Result<ExprId> {
        let dtype = counting_dtype(&[segments.size() + 1]);
        let entry = Shape::from(&segments[1..]);
        let formula = Formula::new(self);
        let number = formula.term(numbers);
        let exists = number.greater_equal(0) & number.less(segments[0]);
        let known = exists.select(number, number.zero()).as_type(dtype);
        let [first, exists] = formula.ids([known * entry.size(), exists])?;
        let within = self.iota(entry, None, dtype)?;
        let (first, exists) = (self.along_first(first, x)?, self.along_first(exists, x)?);
        let formula = Formula::new(self);
        let [first, exists, within] = formula.terms([first, exists, within]);
        let positions = exists.select(first + within, segments.size()).id()?;
        let positions = self.flatten(positions, None)?;
        self.new_axis(positions, -1, None)
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
        let formula = Formula::new(self);
        let [start, end] = formula.terms([start, end]);
        let [occurs, last] = formula.ids([start.less(end), (end - 1).max(0)])?;
        let taken = self.take(x, last, 0)?;
        let occurs = self.along_first(occurs, taken)?;
        self.select(occurs, taken, none)
    }
}
