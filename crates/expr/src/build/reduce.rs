//! Reductions along axes.
//!
//! `None` for axes reduces all of them, an empty list none. With `keep_axes` a reduced axis stays
//! with size 1. Means and variances are compositions, as in Nx: they leave no node of their own.

use nxla_tensor::{DType, Number, Scalar, Shape, promote_keep_pred};

use super::{SliceStart, of_op};
use crate::error::{ErrorKind, Result};
use crate::graph::{ExprId, Graph, Operands};
use crate::op::{ArgReduce, ArgReduceOp, Axes, Op, Reduce, ReduceFun, ReduceOp};
use crate::region::{Mark, Scope};
use crate::types::TensorType;

/// A fold whose function is being traced, see [`Graph::open_fold`].
#[derive(Clone, Debug)]
pub struct Fold {
    pub(super) x: ExprId,
    pub(super) initial: ExprId,
    mark: Mark,
    scope: Scope,
}

impl Fold {
    /// The parameter that stands for an element.
    pub fn element(&self) -> ExprId {
        self.scope.parameters[0]
    }

    /// The parameter that stands for what has been folded so far.
    pub fn accumulator(&self) -> ExprId {
        self.scope.parameters[1]
    }
}

impl Graph {
    /// A reduction of the table.
    ///
    /// # Errors
    /// An axis out of range or given twice; a complex operand of a maximum or minimum.
    pub fn reduction(
        &mut self,
        op: ReduceOp,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        let axes = axes.map(|axes| self.axis_set(op.name(), x, axes)).transpose()?;
        self.make(Op::Reduce(op, Box::new(Reduce { axes, keep_axes })), &[x])
    }

    /// The sum. Narrow integers widen to 32 bits ([`DType::to_aggregate`]); no elements give 0.
    ///
    /// # Errors
    /// An axis out of range or given twice.
    pub fn sum(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        self.reduction(ReduceOp::Sum, x, axes, keep_axes)
    }

    /// The product. Narrow integers widen to 32 bits ([`DType::to_aggregate`]); no elements
    /// give 1.
    ///
    /// # Errors
    /// An axis out of range or given twice.
    pub fn product(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        self.reduction(ReduceOp::Product, x, axes, keep_axes)
    }

    /// Whether every element is non-zero, as `pred`; true for no elements.
    ///
    /// # Errors
    /// An axis out of range or given twice.
    pub fn all(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        self.reduction(ReduceOp::All, x, axes, keep_axes)
    }

    /// Whether an element is non-zero, as `pred`; false for no elements.
    ///
    /// # Errors
    /// An axis out of range or given twice.
    pub fn any(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        self.reduction(ReduceOp::Any, x, axes, keep_axes)
    }

    /// The largest element; NaN if there is one; the smallest value of the dtype for no elements.
    ///
    /// # Errors
    /// An axis out of range or given twice; complex numbers.
    pub fn reduce_max(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        self.reduction(ReduceOp::Max, x, axes, keep_axes)
    }

    /// The smallest element; NaN if there is one; the largest value of the dtype for no elements.
    ///
    /// # Errors
    /// An axis out of range or given twice; complex numbers.
    pub fn reduce_min(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        self.reduction(ReduceOp::Min, x, axes, keep_axes)
    }

    /// The index of the largest element along an axis, or in the flattened tensor for `None`
    /// (always a scalar). The first of several wins, or the last with `tie_high`; NaN is largest.
    ///
    /// # Errors
    /// An axis out of range or without elements; complex numbers; a `dtype` that is no integer.
    pub fn argmax(
        &mut self,
        x: ExprId,
        axis: Option<i64>,
        keep_axis: bool,
        tie_high: bool,
        dtype: DType,
    ) -> Result<ExprId> {
        self.arg_reduction(ArgReduceOp::Argmax, x, axis, keep_axis, tie_high, dtype)
    }

    /// The index of the smallest element; as [`Graph::argmax`], NaN counting as smallest.
    ///
    /// # Errors
    /// As for [`Graph::argmax`].
    pub fn argmin(
        &mut self,
        x: ExprId,
        axis: Option<i64>,
        keep_axis: bool,
        tie_high: bool,
        dtype: DType,
    ) -> Result<ExprId> {
        self.arg_reduction(ArgReduceOp::Argmin, x, axis, keep_axis, tie_high, dtype)
    }

    fn arg_reduction(
        &mut self,
        op: ArgReduceOp,
        x: ExprId,
        axis: Option<i64>,
        keep_axis: bool,
        tie_high: bool,
        dtype: DType,
    ) -> Result<ExprId> {
        let name = match op {
            ArgReduceOp::Argmax => "argmax",
            ArgReduceOp::Argmin => "argmin",
        };
        let axis = axis.map(|axis| self.axis(name, x, axis)).transpose()?;
        let attributes = ArgReduce { axis, keep_axis, tie_high, dtype };
        self.make(Op::ArgReduce(op, Box::new(attributes)), &[x])
    }

    /// Folds elements with `function(element, accumulator)`, starting from the scalar `initial`,
    /// in an order that is not defined. `x` and `initial` promote to one dtype, to which the
    /// function's result is converted.
    ///
    /// ```
    /// # use nxla_expr::{Graph, TensorType};
    /// # use nxla_tensor::{DType, Number};
    /// let mut graph = Graph::new();
    /// let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
    /// let zero = graph.number(Number::Int(0))?;
    /// let sums = graph.reduce_fun(x, zero, Some(&[-1]), false, |graph, element, sum| {
    ///     graph.add(element, sum)
    /// })?;
    /// assert_eq!(graph.tensor_type(sums).to_string(), "f32[2]");
    /// # nxla_expr::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// An initial value that is no scalar; a function whose result is no scalar, or which holds a
    /// hook; what the function raises.
    pub fn reduce_fun<E: From<crate::Error>>(
        &mut self,
        x: ExprId,
        initial: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
        function: impl FnOnce(&mut Graph, ExprId, ExprId) -> Result<ExprId, E>,
    ) -> Result<ExprId, E> {
        let fold = self.open_fold(x, initial)?;
        let result = function(self, fold.element(), fold.accumulator())?;
        Ok(self.close_reduce(fold, result, axes, keep_axes)?)
    }

    /// Begins the tracing of the function of [`Graph::reduce_fun`] for callers that cannot pass
    /// it as a closure. [`Graph::close_reduce`] ends it.
    ///
    /// # Errors
    /// None for tensors; the result is fallible like that of every builder.
    pub fn open_fold(&mut self, x: ExprId, initial: ExprId) -> Result<Fold> {
        let dtype = promote_keep_pred(self.dtype(x), self.dtype(initial));
        let (x, initial) = (self.as_type(x, dtype)?, self.as_type(initial, dtype)?);
        let mark = self.mark();
        let element = TensorType::scalar(dtype);
        let scope = self.open_scope(&[element.clone(), element]);
        Ok(Fold { x, initial, mark, scope })
    }

    /// Ends the tracing of a function that gave `result`; see [`Graph::reduce_fun`].
    ///
    /// # Errors
    /// As for [`Graph::reduce_fun`].
    pub fn close_reduce(
        &mut self,
        fold: Fold,
        result: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        let axes = axes.map(|axes| self.axis_set("reduce", fold.x, axes)).transpose()?;
        let (function, operands) = self.close_fold(&fold, result)?;
        let reduce = Reduce { axes, keep_axes };
        self.make(Op::ReduceFun(Box::new(ReduceFun { reduce, function })), &operands)
    }

    /// The function of a fold, and the operands of the node that holds it.
    pub(super) fn close_fold(
        &mut self,
        fold: &Fold,
        result: ExprId,
    ) -> Result<(std::sync::Arc<crate::Program>, Operands)> {
        let result = self.as_type(result, self.dtype(fold.element()))?;
        let traced = self.traced(fold.mark, vec![result]);
        let closed = self.close(fold.mark, Some(&fold.scope), &[traced], true)?;
        let operands = [fold.x, fold.initial].into_iter().chain(closed.captures).collect();
        Ok((closed.programs[0].clone(), operands))
    }

    // --- compositions ---

    /// The arithmetic mean, as a float; NaN for no elements.
    ///
    /// # Errors
    /// An axis out of range or given twice.
    pub fn mean(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        let count = self.reduced_size("mean", x, axes)?;
        let sum = self.sum(x, axes, keep_axes)?;
        self.divide_by(sum, count)
    }

    /// The mean weighted by `weights`, which have the shape of `x` or one axis for each of
    /// `axes`.
    ///
    /// # Errors
    /// Weights of another shape; an axis out of range or given twice.
    pub fn weighted_mean(
        &mut self,
        x: ExprId,
        weights: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        let weights = self.aligned_weights(x, weights, axes)?;
        let weighted = self.multiply(x, weights)?;
        let total = self.sum(weighted, axes, keep_axes)?;
        let weight = self.sum(weights, axes, keep_axes)?;
        self.divide(total, weight)
    }

    /// Weights with the rank of `x`.
    fn aligned_weights(
        &mut self,
        x: ExprId,
        weights: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        if self.shape(weights) == self.shape(x) {
            return Ok(weights);
        }
        let axes = match axes {
            Some(axes) => self.axes("weighted_mean", x, axes)?,
            None => {
                let why = "must be given when the weights have another shape than the tensor";
                return Err(self.invalid("weighted_mean", "axes", why));
            }
        };
        let expected: Shape = axes.iter().map(|&axis| self.shape(x)[axis]).collect();
        if *self.shape(weights) != expected {
            let (found, expected) = (self.shape(weights).to_string(), expected.to_string());
            let kind = ErrorKind::Shape { argument: "weights", found, expected };
            return Err(self.error("weighted_mean", kind));
        }
        // The weights' axes come in the order of `axes`, those of the tensor in increasing order.
        let mut order: Vec<usize> = (0..axes.len()).collect();
        order.sort_by_key(|&position| axes[position]);
        let weights = self.make(Op::Transpose(order.into()), &[weights])?;
        let sizes = self.shape(x).iter().enumerate();
        let shape: Shape =
            sizes.map(|(axis, &size)| if axes.contains(&axis) { size } else { 1 }).collect();
        self.reshape(weights, shape)
    }

    /// The mean squared distance from the mean, divided by `count - ddof` rather than `count`.
    ///
    /// # Errors
    /// An axis out of range or given twice.
    pub fn variance(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
        ddof: i64,
    ) -> Result<ExprId> {
        let count = self.reduced_size("variance", x, axes)?;
        let all = self.all_axes(x);
        let mean = self.mean(x, Some(axes.unwrap_or(&all)), true)?;
        let distance = self.subtract(x, mean)?;
        let two = self.weak_number(Number::Int(2), distance)?;
        let squared = self.pow(distance, two)?;
        let sum = self.sum(squared, axes, keep_axes)?;
        self.divide_by(sum, count - i128::from(ddof))
    }

    /// The square root of [`Graph::variance`].
    ///
    /// # Errors
    /// As for [`Graph::variance`].
    pub fn standard_deviation(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
        ddof: i64,
    ) -> Result<ExprId> {
        let variance = self.variance(x, axes, keep_axes, ddof)?;
        self.sqrt(variance)
    }

    /// `log(sum(scale * exp(x)))` without overflow: the maximum, through which no gradient flows,
    /// is taken out first. `scale` is 1 for `None`.
    ///
    /// # Errors
    /// An axis out of range or given twice; complex numbers; a scale that does not broadcast.
    pub fn logsumexp(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
        scale: Option<ExprId>,
    ) -> Result<ExprId> {
        let all = self.all_axes(x);
        let reduced = axes.unwrap_or(&all);
        let max = self.reduce_max(x, Some(reduced), true).map_err(of_op("logsumexp"))?;
        let max = self.stop_grad(max)?;
        // An infinite maximum must not become `inf - inf`.
        let infinite = self.is_infinity(max)?;
        let dtype = self.dtype(max).to_floating();
        let zero = self.scalar_constant(Scalar::zero(dtype), dtype)?;
        let max = self.select(infinite, zero, max)?;
        let shifted = self.subtract(x, max)?;
        let mut terms = self.exp(shifted)?;
        if let Some(scale) = scale {
            terms = self.multiply(scale, terms)?;
        }
        let sum = self.sum(terms, axes, keep_axes)?;
        let log = self.log(sum)?;
        let max = if keep_axes { max } else { self.squeeze(max, Some(reduced))? };
        self.add(log, max)
    }

    /// The middle element in order of size, or the mean of the two middle ones. `None` takes the
    /// flattened tensor and gives a scalar.
    ///
    /// # Errors
    /// An axis out of range or without elements; complex numbers.
    pub fn median(&mut self, x: ExprId, axis: Option<i64>, keep_axis: bool) -> Result<ExprId> {
        let (x, at, keep_axis) = match axis {
            Some(axis) => (x, self.axis("median", x, axis)?, keep_axis),
            None => (self.flatten(x, None)?, 0, false),
        };
        let axis = i64::try_from(at).expect("an axis is small");
        let size = self.shape(x)[at];
        if size == 0 {
            let why = format!("there is no median of the 0 elements of {}", self.tensor_type(x));
            return Err(self.invalid("median", "operand", why));
        }
        let sorted = self.sort(x, axis, false, false).map_err(of_op("median"))?;
        if size == 2 {
            return self.mean(sorted, Some(&[axis]), keep_axis);
        }
        let upper = self.element_along(sorted, size / 2, axis, keep_axis)?;
        if size % 2 == 1 {
            return Ok(upper);
        }
        let lower = self.element_along(sorted, size / 2 - 1, axis, keep_axis)?;
        let sum = self.add(lower, upper)?;
        self.divide_by(sum, 2)
    }

    fn element_along(
        &mut self,
        x: ExprId,
        index: usize,
        axis: i64,
        keep_axis: bool,
    ) -> Result<ExprId> {
        let element = self.slice_along_axis(x, SliceStart::at(index), 1, axis, 1)?;
        if keep_axis { Ok(element) } else { self.squeeze(element, Some(&[axis])) }
    }

    /// How many elements go into one element of the result.
    fn reduced_size(&self, op: &str, x: ExprId, axes: Option<&[i64]>) -> Result<i128> {
        let axes: Axes = match axes {
            Some(axes) => self.axis_set(op, x, axes)?,
            None => (0..self.shape(x).rank()).collect(),
        };
        let size: Shape = axes.iter().map(|&axis| self.shape(x)[axis]).collect();
        Ok(i128::try_from(size.size()).expect("a size fits in 128 bits"))
    }

    fn all_axes(&self, x: ExprId) -> Vec<i64> {
        (0..).take(self.shape(x).rank()).collect()
    }

    /// `x / count`, as a float.
    pub(super) fn divide_by(&mut self, x: ExprId, count: i128) -> Result<ExprId> {
        let count = self.weak_number(Number::Int(count), x)?;
        self.divide(x, count)
    }
}
