//! Sliding windows and cumulative functions.

use std::panic::Location;

use nxla_expr::build::{Cumulative, WindowOptions, WindowPadding};
use nxla_expr::{ExprId, Graph};

use super::axes::Axis;
use super::methods;
use super::reduce::operand_to_tensor;
use crate::Operand;
use crate::Result;
use crate::expr::Expr;
use crate::jit::jit_separately;
use crate::tensor::Tensor;

/// The windows that slide over a tensor: a size for each axis, strides, dilations and padding.
///
/// ```
/// use nxla::{Tensor, Window};
///
/// let x = Tensor::from(vec![1, 2, 3, 4]);
/// assert_eq!(x.window_sum(&Window::new([2]))?.to_vec::<i32>()?, [3, 5, 7]);
/// assert_eq!(x.window_sum(&Window::new([2]).strides([2]))?.to_vec::<i32>()?, [3, 7]);
/// assert_eq!(x.window_sum(&Window::new([2]).padding([(1, 0)]))?.to_vec::<i32>()?, [1, 3, 5, 7]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    dimensions: Vec<usize>,
    options: WindowOptions,
}

impl Window {
    /// Creates windows of a size for each axis, with strides of 1; an axis with window size 1 is
    /// not reduced.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1, 2, 3, 4]);
    /// assert_eq!(x.window_sum(&Window::new([3]))?.to_vec::<i32>()?, [6, 9]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn new(dimensions: impl Into<Vec<usize>>) -> Self {
        Self { dimensions: dimensions.into(), options: WindowOptions::default() }
    }

    /// Sets the stride along each axis.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1, 2, 3, 4]);
    /// assert_eq!(x.window_sum(&Window::new([2]).strides([2]))?.to_vec::<i32>()?, [3, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn strides(mut self, strides: impl Into<Vec<usize>>) -> Self {
        self.options = self.options.strides(strides);
        self
    }

    /// Sets the distance between neighboring elements of a window along each axis.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1, 2, 3, 4]);
    /// assert_eq!(x.window_sum(&Window::new([2]).dilations([2]))?.to_vec::<i32>()?, [4, 6]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn dilations(mut self, dilations: impl Into<Vec<usize>>) -> Self {
        self.options = self.options.dilations(dilations);
        self
    }

    /// Sets the numbers of padding elements before and after each axis.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1, 2, 3]);
    /// assert_eq!(x.window_sum(&Window::new([2]).padding([(1, 0)]))?.to_vec::<i32>()?, [1, 3, 5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn padding(mut self, around: impl Into<Vec<(i64, i64)>>) -> Self {
        self.options.padding = WindowPadding::Explicit(around.into());
        self
    }

    /// Sets the padding with which the result is as large as the operand, for strides of 1.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1, 2, 3]);
    /// assert_eq!(x.window_sum(&Window::new([3]).same())?.to_vec::<i32>()?, [3, 6, 5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn same(mut self) -> Self {
        self.options.padding = WindowPadding::Same;
        self
    }
}

/// Generates window functions with one operand.
macro_rules! windows {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        methods! {
            $(
                $(#[$doc])*
                fn $name(x; window: &Window) one |graph|
                    graph.$name(x, &window.dimensions, &window.options);
            )*
        }
    };
}

windows! {
    /// Returns the sum of each window.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1, 2, 3, 4]);
    /// assert_eq!(x.window_sum(&Window::new([2]))?.to_vec::<i32>()?, [3, 5, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    window_sum;
    /// Returns the product of each window.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1, 2, 3, 4]);
    /// assert_eq!(x.window_product(&Window::new([2]))?.to_vec::<i32>()?, [2, 6, 12]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    window_product;
    /// Returns the largest element of each window.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1, 3, 2]);
    /// assert_eq!(x.window_max(&Window::new([2]))?.to_vec::<i32>()?, [3, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    window_max;
    /// Returns the smallest element of each window.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1, 3, 2]);
    /// assert_eq!(x.window_min(&Window::new([2]))?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    window_min;
    /// Returns the mean of each window; padding counts as zeros.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from([1.0f32, 3.0, 5.0]);
    /// assert_eq!(x.window_mean(&Window::new([2]))?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    window_mean;
}

methods! {
    /// Adds each element of `source` at the position of the largest element of its window, starting
    /// from `initial`. Of several equal elements, the last one in row-major order receives.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let (x, source) = (Tensor::from([1, 3, 2, 0]), Tensor::from([10, 20]));
    /// let put = x.window_scatter_max(source, 0, &Window::new([2]).strides([2]))?;
    /// assert_eq!(put.to_vec::<i32>()?, [0, 10, 20, 0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn window_scatter_max(x, source, initial; window: &Window) one |graph|
        graph.window_scatter_max(x, source, initial, &window.dimensions, &window.options);

    /// Adds each element of `source` at the position of the smallest element of its window,
    /// starting from `initial`.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let (x, source) = (Tensor::from([1, 3, 2, 0]), Tensor::from([10, 20]));
    /// let put = x.window_scatter_min(source, 0, &Window::new([2]).strides([2]))?;
    /// assert_eq!(put.to_vec::<i32>()?, [10, 0, 0, 20]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn window_scatter_min(x, source, initial; window: &Window) one |graph|
        graph.window_scatter_min(x, source, initial, &window.dimensions, &window.options);
}

impl Expr {
    /// Folds the elements of each window with a user-defined function, starting from `initial`, as
    /// [`reduce`](Expr::reduce) does.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, Window, jit};
    ///
    /// let sums = jit(|x: Expr| x.window_reduce(0, &Window::new([2]), |x, sum| x + sum));
    /// assert_eq!(sums.call(Tensor::from([1, 2, 3]))?.to_vec::<i32>()?, [3, 5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn window_reduce(
        &self,
        initial: impl Operand,
        window: &Window,
        function: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        self.window_reduce_at(Location::caller(), initial, window, function)
    }

    fn window_reduce_at(
        &self,
        location: &'static Location<'static>,
        initial: impl Operand,
        window: &Window,
        function: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        let build = |graph: &mut Graph, function, operands: &[ExprId]| {
            let (dimensions, options) = (&window.dimensions, &window.options);
            Ok(graph.window_reduce_with(function, operands, dimensions, options)?)
        };
        self.fold("window_reduce", location, initial, Graph::open_window_fold, function, build)
    }
}

impl Tensor {
    /// Folds the elements of each window with a user-defined function, starting from `initial`, as
    /// [`reduce`](Tensor::reduce) does.
    ///
    /// ```
    /// use nxla::{Tensor, Window};
    ///
    /// let x = Tensor::from(vec![1, 2, 3]);
    /// let sums = x.window_reduce(100, &Window::new([2]), |x, sum| x + sum)?;
    /// assert_eq!(sums.to_vec::<i32>()?, [103, 105]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of the function, its compilation and its run.
    #[track_caller]
    pub fn window_reduce(
        &self,
        initial: impl Operand,
        window: &Window,
        function: impl Fn(Expr, Expr) -> Expr,
    ) -> Result<Tensor> {
        let location = Location::caller();
        let initial = operand_to_tensor(self, initial)?;
        let fold =
            |[x, initial]: [Expr; 2]| x.window_reduce_at(location, initial, window, &function);
        jit_separately(fold).call([self, &initial])
    }
}

/// Builds a cumulative reduction in the dtype that holds the results.
fn cumulative(
    graph: &mut Graph,
    op: Cumulative,
    x: ExprId,
    axis: &Axis,
    reverse: bool,
) -> Result<ExprId> {
    let axis = axis.of(graph, x)?;
    let x = graph.as_type(x, op.widen(graph.dtype(x)))?;
    Ok(graph.cumulative(op, x, axis, reverse)?)
}

/// Generates cumulative functions, forward and backward.
macro_rules! cumulative {
    ($($(#[$doc:meta])* $name:ident $reverse:ident $op:ident;)*) => {
        methods! {
            $(
                $(#[$doc])*
                ///
                /// Element `i` of the result is the reduction of the elements up to and including
                /// `i`.
                #[doc = concat!(
                    "\n```\nlet x = nxla::Tensor::from([[1, 2], [3, 4]]);\nassert_eq!(x.",
                    stringify!($name), "(0)?.shape()[..], [2, 2]);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $name(x; axis into Axis) one |graph|
                    cumulative(graph, Cumulative::$op, x, &axis, false);

                $(#[$doc])*
                ///
                /// Element `i` of the result is the reduction of the elements from `i` to the last.
                #[doc = concat!(
                    "\n```\nlet x = nxla::Tensor::from([[1, 2], [3, 4]]);\nassert_eq!(x.",
                    stringify!($reverse), "(0)?.shape()[..], [2, 2]);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $reverse(x; axis into Axis) one |graph|
                    cumulative(graph, Cumulative::$op, x, &axis, true);
            )*
        }
    };
}

cumulative! {
    /// Returns cumulative sums along an axis. Narrow integers widen to 32 bits.
    cumulative_sum cumulative_sum_reverse Sum;
    /// Returns cumulative products along an axis. Narrow integers widen to 32 bits.
    cumulative_product cumulative_product_reverse Product;
    /// Returns cumulative maxima along an axis.
    cumulative_max cumulative_max_reverse Max;
    /// Returns cumulative minima along an axis.
    cumulative_min cumulative_min_reverse Min;
}
