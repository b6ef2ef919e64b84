//! Pooling: reductions of windows over the spatial axes.

use nxla_tensor::{DType, Scalar, Shape};

use super::super::{WindowOptions, WindowPadding};
use crate::graph::{ErrorKind, ExprId, Graph, Result};

/// The windows of a pooling, with one entry for each spatial axis.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pool {
    /// The window sizes.
    pub window: Vec<usize>,
    /// The strides; the window sizes by default, so that windows do not overlap.
    pub strides: Option<Vec<usize>>,
    /// The distances between the elements of a window; 1 by default.
    pub dilations: Option<Vec<usize>>,
    /// The padding of the spatial axes.
    pub padding: WindowPadding,
    /// True if the channel axis is the last axis. Otherwise it is the second axis.
    pub channels_last: bool,
    /// True if means count padding elements.
    pub count_padding: bool,
}

impl Graph {
    /// Returns the largest element of each window; padding is never the largest.
    ///
    /// # Errors
    /// Returns an error for windows that do not fit the axes or complex numbers.
    pub fn max_pool(&mut self, x: ExprId, pool: &Pool) -> Result<ExprId> {
        let (dimensions, options) = self.pool_windows(x, pool)?;
        self.window_max(x, &dimensions, &options)
    }

    /// Returns the mean of each window over its elements, or also over the padding.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::max_pool`].
    pub fn avg_pool(&mut self, x: ExprId, pool: &Pool) -> Result<ExprId> {
        let (dimensions, options) = self.pool_windows(x, pool)?;
        let (x, dtype) = self.widen_to_float(x)?;
        let sums = self.window_sum(x, &dimensions, &options)?;
        let all: usize = dimensions.iter().product();
        let means = if pool.count_padding || pool.padding == WindowPadding::Valid {
            self.divide_by(sums, i128::try_from(all).expect("a size fits in 128 bits"))?
        } else {
            let one = self.scalar_constant(Scalar::Float(1.0), DType::F32)?;
            let mut shape: Shape = self.shape(x).clone();
            for axis in [0, if pool.channels_last { shape.rank() - 1 } else { 1 }] {
                shape.as_mut_slice()[axis] = 1;
            }
            let ones = self.broadcast(one, shape, None)?;
            let counts = self.window_sum(ones, &dimensions, &options)?;
            // The sum of a window that covers only padding is 0.
            let counts = self.max(counts, one)?;
            self.divide(sums, counts)?
        };
        self.as_type(means, dtype)
    }

    /// Creates windows over all axes.
    fn pool_windows(&self, x: ExprId, pool: &Pool) -> Result<(Vec<usize>, WindowOptions)> {
        let spatial = pool.window.len();
        if self.shape(x).rank() != spatial + 2 {
            let found = self.tensor_type(x).to_string();
            let expected = format!("axes for examples and channels, and {spatial} for the windows");
            return Err(
                self.error("pool", ErrorKind::Shape { argument: "operand", found, expected })
            );
        }
        let around = |values: &[usize]| -> Vec<usize> {
            let mut all = if pool.channels_last { vec![1] } else { vec![1, 1] };
            all.extend(values);
            all.resize(spatial + 2, 1);
            all
        };
        if let Some(axis) = pool.window.iter().position(|&size| size == 0) {
            let why = format!("must be at least 1; got 0 for spatial axis {axis}");
            return Err(self.invalid("pool", "window", why));
        }
        let strides = pool.strides.as_ref().unwrap_or(&pool.window);
        if strides.len() != spatial {
            let why = format!(
                "must have {spatial} entries, one for each spatial axis; got {}",
                strides.len()
            );
            return Err(self.invalid("pool", "strides", why));
        }
        let dilations = pool.dilations.clone().unwrap_or_else(|| vec![1; spatial]);
        if dilations.len() != spatial {
            let why = format!("has {} entries for {spatial} spatial axes", dilations.len());
            return Err(self.invalid("pool", "dilations", why));
        }
        let first = if pool.channels_last { 1 } else { 2 };
        let reach = |axis: usize| {
            let gaps = pool.window[axis].saturating_sub(1);
            gaps.saturating_mul(dilations[axis]).saturating_add(1)
        };
        let same: Vec<(i64, i64)> = (0..spatial)
            .map(|axis| same_padding(self.shape(x)[first + axis], reach(axis), strides[axis]))
            .collect();
        let pairs = match &pool.padding {
            WindowPadding::Explicit(pairs) => pairs.clone(),
            WindowPadding::Same => same,
            WindowPadding::Valid => vec![(0, 0); spatial],
        };
        if pairs.len() != spatial {
            let why = format!(
                "must have {spatial} pairs, one for each spatial axis; got {}",
                pairs.len()
            );
            return Err(self.invalid("pool", "padding", why));
        }
        let mut padding = vec![(0, 0); first];
        padding.extend(pairs);
        padding.resize(spatial + 2, (0, 0));
        let options =
            WindowOptions::default().strides(around(strides)).dilations(around(&dilations));
        Ok((
            around(&pool.window),
            WindowOptions { padding: WindowPadding::Explicit(padding), ..options },
        ))
    }
}

/// Returns the padding of an axis such that there is a window for each stride. If the padding is
/// odd, the end has one more element.
fn same_padding(size: usize, window: usize, stride: usize) -> (i64, i64) {
    let windows = size.div_ceil(stride.max(1));
    let reach = windows.saturating_sub(1).saturating_mul(stride).saturating_add(window);
    let total = i64::try_from(reach.saturating_sub(size)).unwrap_or(i64::MAX);
    (total / 2, total - total / 2)
}
