//! Functions that reduce axes.

use std::panic::Location;
use std::sync::Arc;

use nxla_expr::build::Fold;
use nxla_expr::{ErrorKind, ExprId, Graph, Program};
use nxla_tensor::DType;

use super::axes::{Axis, Over, from_axis};
use super::methods;
use crate::expr::Expr;
use crate::jit::jit_separately;
use crate::tensor::Tensor;
use crate::{Error, Result};
use crate::{Operand, Value};
use nxla_runtime::vectors::fold_per_entry;
use nxla_runtime::{VectorAxes, number_tensor, resolve, vectorized_operands};

/// Generates a reduction of all axes and a reduction of some axes.
macro_rules! reductions {
    ($($(#[$doc:meta])* $all:ident $over:ident;)*) => {
        methods! {
            $(
                $(#[$doc])*
                /// Reduces all axes, so the result is a scalar.
                #[doc = concat!(
                    "\n```\nlet x = nxla::Tensor::from([[1, 2], [3, 4]]);\nassert_eq!(x.",
                    stringify!($all), "()?.shape().rank(), 0);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $all(x) one |graph| graph.$all(x, None, false);

                $(#[$doc])*
                /// Reduces these axes.
                #[doc = concat!(
                    "\n```\nlet x = nxla::Tensor::from([[1, 2], [3, 4]]);\nassert_eq!(x.",
                    stringify!($over), "(0)?.shape()[..], [2]);\n# Ok::<(), nxla::Error>(())\n```"
                )]
                fn $over(x; over into Over) one |graph| {
                    let (axes, keep) = over.of_reduction(graph, x)?;
                    graph.$all(x, axes.as_deref(), keep)
                };
            )*
        }
    };
}

reductions! {
    /// Returns the sum. Narrow integers widen to 32 bits.
    sum sum_over;
    /// Returns the product. Narrow integers widen to 32 bits.
    product product_over;
    /// Returns the arithmetic mean.
    mean mean_over;
    /// Returns the largest element; NaN if there is one.
    reduce_max reduce_max_over;
    /// Returns the smallest element; NaN if there is one.
    reduce_min reduce_min_over;
    /// Returns whether all elements are nonzero.
    all all_over;
    /// Returns whether any element is nonzero.
    any any_over;
}

methods! {
    /// Returns the number of nonzero elements over these axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from(vec![0, 7, 7]).count_nonzero(())?.item::<f64>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn count_nonzero(x; over into Over) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        let zero = graph.zero_like(x)?;
        let counted = graph.not_equal(x, zero)?;
        let counted = graph.as_type(counted, DType::S32)?;
        graph.sum(counted, axes.as_deref(), keep)
    };

    /// Returns the weighted mean over these axes. The weights have the shape of the operand, or one
    /// axis for a single reduced axis.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (x, weights) = (Tensor::from([1.0f32, 5.0]), Tensor::from([3.0f32, 1.0]));
    /// assert_eq!(x.weighted_mean(weights, ())?.item::<f32>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn weighted_mean(x, weights; over into Over) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.weighted_mean(x, weights, axes.as_deref(), keep)
    };

    /// Returns the variance over these axes: the sum of squared distances from the mean, divided by
    /// the number of elements minus `correction`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from(vec![1.0f32, 3.0]);
    /// assert_eq!(x.variance((), 0)?.item::<f64>()?, 1.0);
    /// assert_eq!(x.variance((), 1)?.item::<f64>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "var")]
    fn variance(x; over into Over, correction: u32) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.variance(x, axes.as_deref(), keep, f64::from(correction))
    };

    /// Returns the square root of the [`variance`](Self::variance).
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1.0f32, 5.0]);
    /// assert_eq!(x.standard_deviation((), 0)?.item::<f32>()?, 2.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "std")]
    fn standard_deviation(x; over into Over, correction: u32) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.standard_deviation(x, axes.as_deref(), keep, f64::from(correction))
    };

    /// Returns the covariance of the columns of the last axis; rows are observations.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 6.0]]);
    /// assert_eq!(x.covariance(0)?.to_vec::<f32>()?, [1.0, 2.0, 2.0, 4.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn covariance(x; correction: u32) one |graph| graph.covariance(x, None, correction.into());

    /// Returns the covariance of columns for a known mean.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32], [3.0]]);
    /// assert_eq!(x.covariance_about(Tensor::from([0.0f32]), 0)?.item::<f32>()?, 5.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn covariance_about(x, mean; correction: u32) one |graph| graph.covariance(x, Some(mean), correction.into());

    /// Returns `log(sum(exp(x)))` over these axes, without overflow.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([1000.0f32, 1000.0]).logsumexp(())?.item::<f32>()?;
    /// assert!((x - 1000.0 - 2f32.ln()).abs() < 1e-3);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn logsumexp(x; over into Over) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.logsumexp(x, axes.as_deref(), keep, None)
    };

    /// Returns `log(sum(scale * exp(x)))` over these axes, without overflow.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([0.0f32, 0.0]).scaled_logsumexp(Tensor::from([1.0f32, 0.0]), ())?;
    /// assert_eq!(x.item::<f32>()?, 0.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn scaled_logsumexp(x, scale; over into Over) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.logsumexp(x, axes.as_deref(), keep, Some(scale))
    };

    /// Returns the median over axes, or over all axes for `()`: the middle element, or the mean of the
    /// two middle elements.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1.0f32, 9.0, 2.0], [4.0, 4.0, 7.0]]);
    /// assert_eq!(x.median(1)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// assert_eq!(x.median(())?.item::<f32>()?, 4.0);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn median(x; over into Over) one |graph| {
        let (axes, keep) = over.of_reduction(graph, x)?;
        graph.median(x, axes.as_deref(), keep)
    };

    /// Returns the most frequent element, the smallest of several, over one axis or all axes for
    /// `()`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([3, 1, 3, 2]).mode(())?.item::<i32>()?, 3);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn mode(x; over into Arg) one |graph| {
        let (axis, keep) = over.of_reduction(graph, x)?;
        graph.mode(x, axis, keep)
    };

    /// Returns the index of the largest element along an axis, or in row-major order for `()`.
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
    fn argmax(x; over into Arg) one |graph|
        graph.argmax(x, over.of(graph, x)?, over.keep, over.last, over.dtype.unwrap_or(DType::S32));

    /// Returns the index of the smallest element along an axis, or in row-major order for `()`.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[4, 1], [2, 3]]);
    /// assert_eq!(x.argmin(())?.item::<i32>()?, 1);
    /// assert_eq!(x.argmin(1)?.to_vec::<i32>()?, [1, 0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn argmin(x; over into Arg) one |graph|
        graph.argmin(x, over.of(graph, x)?, over.keep, over.last, over.dtype.unwrap_or(DType::S32));
}

/// The axis and options of an arg-reduction.
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
    dtype: Option<DType>,
}

impl Arg {
    /// Reduces all elements in row-major order.
    ///
    /// ```
    /// use nxla::{Arg, Tensor};
    ///
    /// assert_eq!(Tensor::from([[4, 9], [2, 3]]).argmax(Arg::all())?.item::<i32>()?, 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn all() -> Self {
        Self { axis: None, keep: false, last: false, dtype: None }
    }

    /// Reduces one axis.
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

    /// Keeps the reduced axis with size 1.
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

    /// Returns the last of several equal elements instead of the first.
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

    /// Returns indices of this dtype instead of `s32`.
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
        Self { dtype: Some(dtype), ..self }
    }

    /// Returns the axis in `x`, or `None` for all.
    ///
    /// # Errors
    /// Returns an error for a name that no axis of `x` has.
    fn of(&self, graph: &Graph, x: ExprId) -> Result<Option<i64>> {
        self.axis.as_ref().map(|axis| axis.of(graph, x)).transpose()
    }

    /// Returns the axis in `x`, or `None` for all, and whether it remains, for a function without
    /// the other options.
    ///
    /// # Errors
    /// Returns an error for [`Arg::last`] and [`Arg::dtype`], and for a name that no axis of `x` has.
    pub(super) fn of_reduction(&self, graph: &Graph, x: ExprId) -> Result<(Option<i64>, bool)> {
        if self.last || self.dtype.is_some() {
            let option = if self.last { "last" } else { "dtype" };
            let why = format!("must be an axis, with or without `keep`; remove `{option}`");
            return Err(graph.error("axis", ErrorKind::invalid("over", why)).into());
        }
        Ok((self.of(graph, x)?, self.keep))
    }
}

impl From<()> for Arg {
    fn from((): ()) -> Self {
        Arg::all()
    }
}

from_axis!(Arg);

impl Expr {
    /// Folds elements over these axes with a user-defined function, starting from `initial`:
    /// `accumulator = function(element, accumulator)`, all three scalars. The order of elements is
    /// unspecified, so the function should be associative.
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
        self.reduce_at(Location::caller(), initial, &over.into(), function)
    }

    fn reduce_at(
        &self,
        location: &'static Location<'static>,
        initial: impl Operand,
        over: &Over,
        function: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        self.fold(
            "reduce",
            location,
            initial,
            Graph::open_fold,
            function,
            |graph, function, operands| {
                let (axes, keep) = over.of_reduction(graph, operands[0])?;
                Ok(graph.reduce_with(function, operands, axes.as_deref(), keep)?)
            },
        )
    }

    /// Traces the function of a fold, and builds the fold for each entry of vectorized operands.
    pub(super) fn fold(
        &self,
        name: &str,
        location: &'static Location<'static>,
        initial: impl Operand,
        open: impl FnOnce(&mut Graph, ExprId, ExprId) -> nxla_expr::Result<Fold>,
        function: impl FnOnce(Expr, Expr) -> Expr,
        build: impl FnOnce(&mut Graph, Arc<Program>, &[ExprId]) -> Result<ExprId>,
    ) -> Expr {
        let trace = self.trace();
        let value = |id| Expr::of_node(trace.clone(), id, VectorAxes::NONE);
        let made = trace.attempt(location, || {
            let operands = [self.to_value(), initial.to_value()];
            let ids = resolve(trace, &operands)?;
            let values =
                trace.build(|graph| vectorized_operands(graph, Some(trace), (&operands, &ids)))?;
            let fold = trace.build(|graph| open(graph, values[0].0, values[1].0));
            let fold = fold.map_err(|error| error.in_function(name))?;
            let result = function(value(fold.element()), value(fold.accumulator()));
            // An error of an operator in the function takes precedence.
            if let Some(error) = trace.take_failure() {
                return Err(error);
            }
            if !result.vectors().is_empty() {
                let why = format!(
                    "the function must return one scalar; got one for each of {}",
                    result.vectors()
                );
                return Err(Error::Usage(why));
            }
            let result = trace.id(&result)?;
            trace.build(|graph| {
                graph.enter_rust(location);
                let vectors = values.into_iter().map(|(_, vectors)| vectors);
                fold_per_entry(graph, &fold, result, vectors, build)
                    .map_err(|error| error.in_function(name))
            })
        });
        match made {
            Some((id, vectors)) => Expr::of_node(trace.clone(), id, vectors),
            None => Expr::new_failed(trace),
        }
    }
}

impl Tensor {
    /// Folds elements over these axes with a user-defined function, starting from `initial`:
    /// `accumulator = function(element, accumulator)`, all three scalars. The order of elements is
    /// unspecified, so the function should be associative.
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
    /// Returns the errors of the function, its compilation and its run.
    #[track_caller]
    pub fn reduce(
        &self,
        initial: impl Operand,
        over: impl Into<Over>,
        function: impl Fn(Expr, Expr) -> Expr,
    ) -> Result<Tensor> {
        let (location, over) = (Location::caller(), over.into());
        let initial = operand_to_tensor(self, initial)?;
        let fold = |[x, initial]: [Expr; 2]| x.reduce_at(location, initial, &over, &function);
        jit_separately(fold).call([self, &initial])
    }
}

/// Converts an operand to a tensor; a scalar takes the dtype that it has with `x`.
pub(super) fn operand_to_tensor(x: &Tensor, operand: impl Operand) -> Result<Tensor> {
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
