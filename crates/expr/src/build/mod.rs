//! Builders: a method of [`Graph`] for each function that users call.
//!
//! Builders resolve negative axes and defaults, compose functions that have no op, and call
//! [`Graph::make`](crate::Graph::make). An error of a composition may name an op or a step of it; the
//! layer that knows the function that the user called replaces the name
//! ([`Error::in_function`](crate::Error::in_function)). There is one file per family; the other files
//! contain compositions:
//!
//! * `arrange`: moving and repeating axes and elements (`meshgrid`, `roll`, `repeat`).
//! * `composed`: element-wise functions without an op (`square`, `hypot`, `next_after`).
//! * `diagonal`, `division`, `einsum`, `gamma`: diagonals, division and rounding, Einstein sums and
//!   the gamma function.
//! * `formula`: operators and methods of nodes, with which compositions are written.
//! * `histogram`, `interpolate`, `search`, `segments`: histograms, interpolation, searches in sorted
//!   vectors, and reductions of segments.
//! * `nan`, `quantiles`, `statistics`: reductions that ignore NaN, quantiles and moments.
//! * `nn`, `random`: functions of neural networks, and random numbers.
//! * `options`: the macro that declares structs of optional arguments.
//! * `outer`: padding with elements of the tensor itself.
//! * `scatter`, `subscript`: scatters that combine updates, and `x[…]`.

mod arrange;
mod composed;
mod contract;
mod control;
mod create;
mod diagonal;
mod division;
mod einsum;
mod elementwise;
mod formula;
mod gamma;
mod histogram;
mod index;
mod interpolate;
mod linalg;
mod logarithm;
mod movement;
mod nan;
mod nn;
mod options;
mod outer;
mod quantiles;
mod random;
mod reduce;
mod scatter;
mod search;
mod segments;
mod statistics;
mod subscript;
mod window;

pub use crate::graph::{Combine, Cumulative};
pub use contract::ConvOptions;
pub use control::{OpenBlock, OpenRule};
pub use formula::{Formula, Term, TermOrNumber};
pub use index::SliceStart;
pub(crate) use index::counting_dtype;
pub use interpolate::Extrapolation;
pub use linalg::{FftNorm, Norm, Tolerance};
pub use nn::{Attention, Pool, RunningNorm};
pub use outer::OuterPadding;
pub use quantiles::{Quantile, QuantileMethod};
pub use random::{Choice, Covariance, Draw, check_integer_range, unsigned_dtype};
pub use reduce::Fold;
pub use search::Side;
pub use segments::Segment;
pub use subscript::{Subscript, Update};
pub use window::{WindowOptions, WindowPadding};

use nxla_tensor::normalize_axis;

use crate::graph::{Error, ErrorKind, ExprId, Graph, Result};

impl Graph {
    /// Resolves an axis that may be negative.
    pub(crate) fn axis(&self, op: &str, x: ExprId, axis: i64) -> Result<usize> {
        normalize_axis(axis, self.shape(x).rank()).map_err(|_| {
            let ty = Box::new(self.tensor_type(x).clone());
            self.error(op, ErrorKind::Axis { argument: "axis", axis, ty })
        })
    }

    /// Resolves axes that may be negative and must be distinct.
    pub(crate) fn axes(&self, op: &str, x: ExprId, axes: &[i64]) -> Result<Vec<usize>> {
        let mut resolved = Vec::with_capacity(axes.len());
        for &axis in axes {
            let axis = self.axis(op, x, axis)?;
            if resolved.contains(&axis) {
                let argument = "axes";
                return Err(self.error(op, ErrorKind::DuplicateAxis { argument, axis }));
            }
            resolved.push(axis);
        }
        Ok(resolved)
    }

    /// Creates an error for an argument with an invalid value.
    pub(crate) fn invalid(
        &self,
        op: &str,
        argument: &'static str,
        why: impl Into<String>,
    ) -> Error {
        self.error(op, ErrorKind::invalid(argument, why))
    }
}
