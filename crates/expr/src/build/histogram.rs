//! Counts of integers and of the elements in bins.

use nxla_tensor::{DType, MAX_AXIS, Scalar, promote};

use super::SliceStart;
use super::formula::Formula;
use super::segments::Segment;
use crate::graph::{ErrorKind, ExprId, Graph, Result};

impl Graph {
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
    /// by default the range of the elements. An empty range is widened to a length of 1. The edges
    /// of integers are `f64`.
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
        let dtype = match self.dtype(x) {
            // `f32` would round close integers to the same number.
            dtype if dtype.is_integer() => DType::F64,
            dtype => dtype.to_floating(),
        };
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
        let last = self.slice_along_axis(edges, SliceStart::at(bins), 1, 0, 1)?;
        let formula = Formula::new(self);
        let [x, before, last] = formula.terms([x, before, last]);
        let bin = x.equal(last).select(bins - 1, before - 1).id()?;
        let counts = self.bincount(bin, weights, bins)?;
        if !density {
            return Ok(counts);
        }
        let widths = self.diff(edges, 1, 0)?;
        let dtype = promote(self.dtype(counts).to_floating(), self.dtype(widths));
        let counts = self.as_type(counts, dtype.at_least_f32())?;
        let total = self.sum(counts, None, false)?;
        let share = self.divide(counts, total)?;
        let density = self.divide(share, widths)?;
        self.as_type(density, dtype)
    }
}
