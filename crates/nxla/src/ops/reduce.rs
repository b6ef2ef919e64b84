//! Functions that reduce axes.

use std::panic::Location;

use nxla_expr::build::Fold;
use nxla_expr::{ExprId, Graph};
use nxla_tensor::DType;

use super::axes::{Axis, Over};
use super::methods;
use crate::expr::Expr;
use crate::jit::jit;
use crate::tensor::Tensor;
use crate::{Error, Result};
use crate::{Operand, Value};
use nxla_runtime::{number_tensor, resolve};

/// Generates a reduction of all axes and one of some.
macro_rules! reductions {
    ($($(#[$doc:meta])* $all:ident $over:ident;)*) => {
        methods! {
            $(
                $(#[$doc])*
                /// Over all axes, so the result is a scalar.
                #[doc = concat!(
                    "\n```\nlet x = nxla::Tensor::from([[1, 2], [3, 4]]);\nassert_eq!(x.",
                    stringify!($all), "()?.shape().rank(), 0);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $all(x) one |graph| graph.$all(x, None, false);

                $(#[$doc])*
                /// Over these axes.
                #[doc = concat!(
                    "\n```\nlet x = nxla::Tensor::from([[1, 2], [3, 4]]);\nassert_eq!(x.",
                    stringify!($over), "(0)?.shape()[..], [2]);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $over(x; over: impl Into<Over>) one |graph| {
                    let over = over.into();
                    let axes = over.of(graph, stringify!($all), x)?;
                    graph.$all(x, axes.as_deref(), over.keeps())
                };
            )*
        }
    };
}

reductions! {
    /// The sum. Narrow integers become 32 bits wide.
    sum sum_over;
    /// The product. Narrow integers become 32 bits wide.
    product product_over;
    /// The arithmetic mean.
    mean mean_over;
    /// The largest element; NaN if there is one.
    reduce_max reduce_max_over;
    /// The smallest element; NaN if there is one.
    reduce_min reduce_min_over;
    /// Whether all elements are non-zero.
    all all_over;
    /// Whether any element is non-zero.
    any any_over;
}

methods! {
    /// How many elements are not zero, over these axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from(vec![0, 7, 7]).count_nonzero(())?.item::<f64>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn count_nonzero(x; over: impl Into<Over>) one |graph| {
        let over = over.into();
        let axes = over.of(graph, "count_nonzero", x)?;
        let zero = graph.zero_like(x)?;
        let counted = graph.not_equal(x, zero)?;
        let counted = graph.as_type(counted, DType::S32)?;
        graph.sum(counted, axes.as_deref(), over.keeps())
    };

    /// The mean in which each element counts as much as its weight, over these axes. The weights
    /// have the operand's shape, or one axis if one is gone over.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (x, weights) = (Tensor::from([1.0f32, 5.0]), Tensor::from([3.0f32, 1.0]));
    /// assert_eq!(x.weighted_mean(weights, ())?.item::<f32>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn weighted_mean(x, weights; over: impl Into<Over>) one |graph| {
        let over = over.into();
        let axes = over.of(graph, "weighted_mean", x)?;
        graph.weighted_mean(x, weights, axes.as_deref(), over.keeps())
    };

    /// The variance over these axes: the mean square distance from the mean, with `ddof` taken
    /// off the number of elements.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0f32, 3.0]);
    /// assert_eq!(x.variance((), 0)?.item::<f64>()?, 1.0);
    /// assert_eq!(x.variance((), 1)?.item::<f64>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn variance(x; over: impl Into<Over>, ddof: i64) one |graph| {
        let over = over.into();
        let axes = over.of(graph, "variance", x)?;
        graph.variance(x, axes.as_deref(), over.keeps(), ddof)
    };

    /// The square root of the [`variance`](Self::variance).
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1.0f32, 5.0]);
    /// assert_eq!(x.standard_deviation((), 0)?.item::<f32>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn standard_deviation(x; over: impl Into<Over>, ddof: i64) one |graph| {
        let over = over.into();
        let axes = over.of(graph, "standard_deviation", x)?;
        graph.standard_deviation(x, axes.as_deref(), over.keeps(), ddof)
    };

    /// The covariance of the columns of the last axis; rows are observations.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 6.0]]);
    /// assert_eq!(x.covariance(0)?.to_vec::<f32>()?, [1.0, 2.0, 2.0, 4.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn covariance(x; ddof: i64) one |graph| graph.covariance(x, None, ddof);

    /// The covariance of columns about a mean that is known.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32], [3.0]]);
    /// assert_eq!(x.covariance_about(Tensor::from([0.0f32]), 0)?.item::<f32>()?, 5.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn covariance_about(x, mean; ddof: i64) one |graph| graph.covariance(x, Some(mean), ddof);

    /// `log(sum(exp(x)))` over these axes, without overflow.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1000.0f32, 1000.0]).logsumexp(())?.item::<f32>()?;
    /// assert!((x - 1000.0 - 2f32.ln()).abs() < 1e-3);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn logsumexp(x; over: impl Into<Over>) one |graph| {
        let over = over.into();
        let axes = over.of(graph, "logsumexp", x)?;
        graph.logsumexp(x, axes.as_deref(), over.keeps(), None)
    };

    /// `log(sum(scale * exp(x)))` over these axes, without overflow.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([0.0f32, 0.0]).scaled_logsumexp(Tensor::from([1.0f32, 0.0]), ())?;
    /// assert_eq!(x.item::<f32>()?, 0.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn scaled_logsumexp(x, scale; over: impl Into<Over>) one |graph| {
        let over = over.into();
        let axes = over.of(graph, "logsumexp", x)?;
        graph.logsumexp(x, axes.as_deref(), over.keeps(), Some(scale))
    };

    /// The middle element in order, or the mean of the two in the middle; over one axis, or all of
    /// them for `()`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32, 9.0, 2.0], [4.0, 4.0, 7.0]]);
    /// assert_eq!(x.median(1)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// assert_eq!(x.median(())?.item::<f32>()?, 4.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn median(x; over: impl Into<Arg>) one |graph| {
        let over = over.into();
        let axis = over.resolve(graph, "median", x)?;
        graph.median(x, axis, over.keep)
    };

    /// The most frequent element, the smallest of several; over one axis, or all of them for `()`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([3, 1, 3, 2]).mode(())?.item::<i32>()?, 3);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn mode(x; over: impl Into<Arg>) one |graph| {
        let over = over.into();
        let axis = over.resolve(graph, "mode", x)?;
        graph.mode(x, axis, over.keep)
    };

    /// Where the largest element is: its position along an axis, or in row-major order for `()`.
    ///
    /// ```
    /// use nxla::{Arg, Tensor};
    ///
    /// let x = Tensor::new(vec![1, 9, 9, 4], [2, 2])?;
    /// assert_eq!(x.argmax(())?.item::<f64>()?, 1.0);
    /// assert_eq!(x.argmax(Arg::axis(1))?.to_vec::<i32>()?, [1, 0]);
    /// assert_eq!(x.argmax(Arg::all().last())?.item::<f64>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn argmax(x; over: impl Into<Arg>) one |graph| {
        let over = over.into();
        let axis = over.resolve(graph, "argmax", x)?;
        graph.argmax(x, axis, over.keep, over.last, over.dtype)
    };

    /// Where the smallest element is: its position along an axis, or in row-major order for `()`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[4, 1], [2, 3]]);
    /// assert_eq!(x.argmin(())?.item::<i32>()?, 1);
    /// assert_eq!(x.argmin(1)?.to_vec::<i32>()?, [1, 0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn argmin(x; over: impl Into<Arg>) one |graph| {
        let over = over.into();
        let axis = over.resolve(graph, "argmin", x)?;
        graph.argmin(x, axis, over.keep, over.last, over.dtype)
    };
}

/// Which axis a position is sought along, and how it is told.
///
/// ```
/// use nxla::{Arg, DType, Tensor};
///
/// let x = Tensor::from([[9, 1], [2, 9]]);
/// assert_eq!(x.argmax(Arg::axis(1).keep())?.shape()[..], [2, 1]);
/// assert_eq!(x.argmax(Arg::all().last().dtype(DType::U8))?.to_vec::<u8>()?, [3]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arg {
    axis: Option<Axis>,
    keep: bool,
    last: bool,
    dtype: DType,
}

impl Arg {
    /// Over all elements in row-major order.
    ///
    /// ```
    /// use nxla::{Arg, Tensor};
    ///
    /// assert_eq!(Tensor::from([[4, 9], [2, 3]]).argmax(Arg::all())?.item::<i32>()?, 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn all() -> Self {
        Self { axis: None, keep: false, last: false, dtype: DType::S32 }
    }

    /// Along one axis.
    ///
    /// ```
    /// use nxla::{Arg, Tensor};
    ///
    /// let x = Tensor::from([[4, 9], [3, 2]]);
    /// assert_eq!(x.argmax(Arg::axis(1))?.to_vec::<i32>()?, [1, 0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn axis(axis: impl Into<Axis>) -> Self {
        Self { axis: Some(axis.into()), ..Self::all() }
    }

    /// The axis stays in the result, with size 1.
    ///
    /// ```
    /// use nxla::{Arg, Tensor};
    ///
    /// let x = Tensor::from([[4, 9], [3, 2]]);
    /// assert_eq!(x.argmax(Arg::axis(1).keep())?.shape()[..], [2, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn keep(self) -> Self {
        Self { keep: true, ..self }
    }

    /// Of several such elements the last instead of the first.
    ///
    /// ```
    /// use nxla::{Arg, Tensor};
    ///
    /// assert_eq!(Tensor::from([7, 7, 1]).argmax(Arg::all().last())?.item::<i32>()?, 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn last(self) -> Self {
        Self { last: true, ..self }
    }

    /// Positions of this dtype instead of `s32`.
    ///
    /// ```
    /// use nxla::{Arg, DType, Tensor};
    ///
    /// let x = Tensor::from([7, 1]);
    /// assert_eq!(x.argmax(Arg::all().dtype(DType::U8))?.dtype(), DType::U8);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn dtype(self, dtype: DType) -> Self {
        Self { dtype, ..self }
    }

    /// Whether the axis stays in the result.
    pub(super) fn keeps(&self) -> bool {
        self.keep
    }

    pub(super) fn resolve(&self, graph: &Graph, op: &str, x: ExprId) -> Result<Option<i64>> {
        self.axis.as_ref().map(|axis| axis.of(graph, op, x)).transpose()
    }
}

impl From<()> for Arg {
    fn from((): ()) -> Self {
        Arg::all()
    }
}

impl From<i64> for Arg {
    fn from(axis: i64) -> Self {
        Arg::axis(axis)
    }
}

impl From<i32> for Arg {
    fn from(axis: i32) -> Self {
        Arg::axis(axis)
    }
}

impl From<&str> for Arg {
    fn from(axis: &str) -> Self {
        Arg::axis(axis)
    }
}

impl Expr {
    /// Folds elements with a function of one's own over these axes, from `initial` on:
    /// `accumulator = function(element, accumulator)`, all three scalars. The order in which
    /// elements are taken is not told, so the function should be associative.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let f = jit(|x: Expr| x.reduce(1, (), |x, product| x * product));
    /// assert_eq!(f.call(Tensor::from(vec![2, 3, 4]))?.item::<f64>()?, 24.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn reduce(
        &self,
        initial: impl Operand,
        over: impl Into<Over>,
        function: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        let (location, over) = (Location::caller(), over.into());
        self.fold(initial, Graph::open_fold, function, |graph, x, fold, result| {
            graph.enter_rust(location);
            let axes = over.of(graph, "reduce", x)?;
            Ok(graph.close_reduce(fold, result, axes.as_deref(), over.keeps())?)
        })
    }

    /// Traces the function of a fold, between its opening and its closing.
    pub(super) fn fold(
        &self,
        initial: impl Operand,
        open: impl FnOnce(&mut Graph, ExprId, ExprId) -> nxla_expr::Result<Fold>,
        function: impl FnOnce(Expr, Expr) -> Expr,
        close: impl FnOnce(&mut Graph, ExprId, Fold, ExprId) -> Result<ExprId>,
    ) -> Expr {
        let trace = self.trace();
        let value = |id| Expr::new(trace.clone(), id);
        let folded = trace.attempt(|| {
            let operands = resolve(trace, &[self.to_value(), initial.to_value()])?;
            let fold = trace.build(|graph| open(graph, operands[0], operands[1]))?;
            let result = function(value(fold.element()), value(fold.accumulator()));
            // What an operator in the function got wrong comes first.
            if let Some(error) = trace.failure() {
                return Err(error);
            }
            let result = trace.id(&result)?;
            trace.build(|graph| close(graph, operands[0], fold, result))
        });
        folded.map_or_else(|| Expr::failed(trace), value)
    }
}

impl Tensor {
    /// Folds elements with a function of one's own over these axes, from `initial` on:
    /// `accumulator = function(element, accumulator)`, all three scalars. The order in which
    /// elements are taken is not told, so the function should be associative.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![2, 3, 4]);
    /// assert_eq!(x.reduce(1, (), |x, product| x * product)?.item::<f64>()?, 24.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Whatever is wrong with the function, its compilation or its run.
    pub fn reduce(
        &self,
        initial: impl Operand,
        over: impl Into<Over>,
        function: impl Fn(Expr, Expr) -> Expr,
    ) -> Result<Tensor> {
        let (initial, over) = (beside(self, initial)?, over.into());
        let fold = |[x, initial]: [Expr; 2]| x.reduce(initial, over.clone(), &function);
        jit(fold).call([self, &initial])
    }
}

/// An operand as a tensor; a number takes the dtype that it has next to `x`.
pub(super) fn beside(x: &Tensor, operand: impl Operand) -> Result<Tensor> {
    match operand.to_value() {
        Value::Tensor(tensor) => Ok(tensor.into()),
        Value::Number(number) => Ok(number_tensor(number, Some(x.dtype()))?.into()),
        Value::Expr(_) => {
            let why = "a function of a tensor is given a traced value; call it on `Expr::of` of \
                       the tensor";
            Err(Error::Usage(why.into()))
        }
    }
}
