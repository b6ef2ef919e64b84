//! Quantiles, reductions that ignore NaN, histograms, segment reductions and interpolation.

use nxla_expr::build::{Cumulative, Extrapolation, Quantile, Segment, Side};
use nxla_expr::{ExprId, Graph, ReduceOp, Result};

use super::axes::{Axis, Over};
use super::methods;
use super::reduce::Arg;

/// Generates reductions that ignore NaN.
macro_rules! known {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        methods! {
            $(
                $(#[$doc])*
                fn $name(x; over into Over) one |graph| {
                    let (axes, keep) = over.of_reduction(graph, x)?;
                    graph.nan_reduction(ReduceOp::$op, x, axes.as_deref(), keep)
                };
            )*
        }
    };
}

known! {
    /// Returns the sum of the elements that are not NaN, over these axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from(vec![1.0f32, f32::NAN]).nan_sum(())?.item::<f64>()?, 1.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    nan_sum Sum;
    /// Returns the product of the elements that are not NaN, over these axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([2.0f32, f32::NAN, 3.0]);
    /// assert_eq!(x.nan_product(())?.item::<f32>()?, 6.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    nan_product Product;
    /// Returns the largest element that is not NaN, over these axes; NaN if all are NaN.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([2.0f32, f32::NAN, 3.0]).nan_max(())?.item::<f32>()?, 3.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    nan_max Max;
    /// Returns the smallest element that is not NaN, over these axes; NaN if all are NaN.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([2.0f32, f32::NAN, 3.0]).nan_min(())?.item::<f32>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    nan_min Min;
}

methods! {
    /// Returns the mean of the elements that are not NaN, over these axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1.0f32, f32::NAN, 3.0]).nan_mean(())?.item::<f32>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn nan_mean(x; over into Over) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.nan_mean(x, axes.as_deref(), keep)
    };

    /// Returns the variance of the elements that are not NaN, over these axes, divided by their
    /// number minus `correction`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1.0f32, f32::NAN, 3.0]);
    /// assert_eq!(x.nan_variance((), 0.0)?.item::<f32>()?, 1.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn nan_variance(x; over into Over, correction: f64) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.nan_variance(x, axes.as_deref(), keep, correction)
    };

    /// Returns the square root of the [`nan_variance`](Self::nan_variance).
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1.0f32, f32::NAN, 5.0]);
    /// assert_eq!(x.nan_standard_deviation((), 0.0)?.item::<f32>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn nan_standard_deviation(x; over into Over, correction: f64) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.nan_standard_deviation(x, axes.as_deref(), keep, correction)
    };

    /// Returns cumulative sums along an axis, with NaN as 0. Narrow integers widen to 32 bits.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let sums = Tensor::from([1.0f32, f32::NAN, 3.0]).nan_cumulative_sum(0)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [1.0, 1.0, 4.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn nan_cumulative_sum(x; axis into Axis) one |graph| {
        let x = widen(graph, x)?;
        graph.nan_cumulative(Cumulative::Sum, x, axis.of(graph, x)?)
    };

    /// Returns cumulative products along an axis, with NaN as 1. Narrow integers widen to 32 bits.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let products = Tensor::from([2.0f32, f32::NAN, 3.0]).nan_cumulative_product(0)?;
    /// assert_eq!(products.to_vec::<f32>()?, [2.0, 2.0, 6.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn nan_cumulative_product(x; axis into Axis) one |graph| {
        let x = widen(graph, x)?;
        graph.nan_cumulative(Cumulative::Product, x, axis.of(graph, x)?)
    };

    /// Returns the index of the largest element that is not NaN; -1 if all are NaN.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1.0f32, f32::NAN, 3.0]).nan_argmax(())?.item::<i32>()?, 2);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn nan_argmax(x; over into Arg) one |graph| {
        let (axis, keep) = over.of_reduction(graph, x)?;
        graph.nan_arg(x, axis, keep, true)
    };

    /// Returns the index of the smallest element that is not NaN; -1 if all are NaN.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([f32::NAN, 1.0, 3.0]).nan_argmin(())?.item::<i32>()?, 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn nan_argmin(x; over into Arg) one |graph| {
        let (axis, keep) = over.of_reduction(graph, x)?;
        graph.nan_arg(x, axis, keep, false)
    };

    /// Returns the quantiles `q`, fractions from 0 to 1, over these axes. The axis of `q`, if it
    /// has one, comes first. A fraction outside of 0 to 1 has the quantile NaN.
    ///
    /// ```
    /// use nxla::{Quantile, Tensor};
    ///
    /// let x = Tensor::from(vec![1.0f32, 2.0, 3.0, 10.0]);
    /// assert_eq!(x.quantile(0.5, (), Quantile::default())?.item::<f64>()?, 2.5);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn quantile(x, q as precise; over into Over, options: Quantile) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        let options = Quantile { keep_axes: options.keep_axes || keep, ..options };
        graph.quantile(x, q, axes.as_deref(), options)
    };

    /// Reduces the entries of each segment: the entries along the first axis with equal numbers.
    ///
    /// ```
    /// use nxla::{Segment, Tensor};
    ///
    /// let x = Tensor::from(vec![1, 2, 4]);
    /// let sums = x.segment(Tensor::from(vec![0, 2, 0]), Segment::Sum, 3)?;
    /// assert_eq!(sums.to_vec::<i32>()?, [5, 0, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn segment(x, numbers; kind: Segment, count: usize) one |graph|
        graph.segment(kind, x, numbers, count);

    /// Returns the indices at which `x` would have to be inserted into an increasing vector; NaN is
    /// largest.
    ///
    /// ```
    /// use nxla::{Side, Tensor};
    ///
    /// let sorted = Tensor::from([1, 3, 3, 5]);
    /// assert_eq!(sorted.searchsorted(Tensor::from([3, 4]), Side::Left)?.to_vec::<i32>()?, [1, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn searchsorted(sorted, x; side: Side) one |graph| graph.searchsorted(sorted, x, side);

    /// Counts the occurrences of each number below `count`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([0, 2, 2]).bincount(4)?.to_vec::<i32>()?, [1, 0, 2, 0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn bincount(x; count: usize) one |graph| graph.bincount(x, None, count);

    /// Returns the edges of evenly spaced bins over a range, by default the range of the elements.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let edges = Tensor::from([0.0f32, 3.0]).bin_edges(2, Some((0.0, 4.0)))?;
    /// assert_eq!(edges.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn bin_edges(x; bins: usize, range: Option<(f64, f64)>) one |graph|
        graph.bin_edges(x, bins, range);

    /// Returns the number of elements in each bin, or their density.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0f32, 2.0, 1.0, 4.0]);
    /// let edges = x.bin_edges(3, None)?;
    /// assert_eq!(x.histogram(&edges, false)?.to_vec::<i32>()?, [2, 1, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn histogram(x, edges; density: bool) one |graph| graph.histogram(x, edges, None, density);

    /// Returns the sum of the weights of the elements in each bin, or its density.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (x, weights) = (Tensor::from([0.5f32, 0.5, 1.5]), Tensor::from([1.0f32, 2.0, 5.0]));
    /// let edges = Tensor::from([0.0f32, 1.0, 2.0]);
    /// assert_eq!(x.weighted_histogram(edges, weights, false)?.to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn weighted_histogram(x, edges, weights; density: bool) one |graph|
        graph.histogram(x, edges, Some(weights), density);

    /// Returns values of the piecewise linear function through the points `(xp, fp)`, which is
    /// constant beyond the points.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (xp, fp) = (Tensor::from(vec![0.0f32, 1.0]), Tensor::from(vec![0.0f32, 10.0]));
    /// let y = Tensor::from(vec![0.5f32, 2.0]).interpolate(&xp, &fp)?;
    /// assert_eq!(y.to_vec::<f32>()?, [5.0, 10.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn interpolate(x, xp, fp) one |graph| graph.interpolate(x, xp, fp, &Extrapolation::default());

    /// Applies [`interpolate`](Self::interpolate) with the value `left` before the first point and
    /// `right` after the last point.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (xp, fp) = (Tensor::from([0.0f32, 1.0]), Tensor::from([0.0f32, 10.0]));
    /// let y = Tensor::from([-1.0f32, 0.5, 2.0]).interpolate_between(xp, fp, -7.0, 7.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-7.0, 5.0, 7.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn interpolate_between(x, xp, fp, left, right) one |graph| {
        let extrapolation = Extrapolation { left: Some(left), right: Some(right), period: None };
        graph.interpolate(x, xp, fp, &extrapolation)
    };

    /// Applies [`interpolate`](Self::interpolate) to a periodic function.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (xp, fp) = (Tensor::from([0.0f32, 1.0]), Tensor::from([0.0f32, 10.0]));
    /// let y = Tensor::from([0.5f32, 2.5]).interpolate_periodic(xp, fp, 2.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [5.0, 5.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn interpolate_periodic(x, xp, fp; period: f64) one |graph|
        graph.interpolate(x, xp, fp, &Extrapolation { period: Some(period), ..Extrapolation::default() });
}

/// Converts the operand of a cumulative sum or product to the dtype that holds the results.
fn widen(graph: &mut Graph, x: ExprId) -> Result<ExprId> {
    graph.as_type(x, Cumulative::Sum.widen(graph.dtype(x)))
}
