//! Reductions along axes.
//!
//! `None` for axes reduces all of them, an empty list none. With `keep_axes` a reduced axis stays
//! with size 1. Means, variances and the like are compositions of these, see
//! `statistics.rs`.

use std::sync::Arc;

use nxla_tensor::{DType, promote_keep_pred};

use crate::graph::{
    ArgReduce, ArgReduceOp, ExprId, Graph, Mark, Op, Operands, Program, Reduce, ReduceFun,
    ReduceOp, Result, Scope, TensorType,
};

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
    /// A `dtype` that is no integer is converted to from `s32`.
    ///
    /// # Errors
    /// An axis out of range or without elements; complex numbers.
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
        let attributes = ArgReduce { axis, keep_axis, tie_high, dtype: index_dtype(dtype) };
        let index = self.make(Op::ArgReduce(op, Box::new(attributes)), &[x])?;
        let index = self.as_type(index, dtype)?;
        match axis {
            None if keep_axis => self.with_axes_of(index, x),
            None | Some(_) => Ok(index),
        }
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
    /// # Ok::<(), nxla_expr::Error>(())
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
        let (function, operands) = self.close_fold(&fold, result)?;
        self.reduce_with(function, &operands, axes, keep_axes)
    }

    /// Folds the first operand with a function of [`Graph::close_fold`], which takes the others.
    ///
    /// # Errors
    /// As for [`Graph::reduce_fun`].
    pub fn reduce_with(
        &mut self,
        function: Arc<Program>,
        operands: &[ExprId],
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        let axes = axes.map(|axes| self.axis_set("reduce", operands[0], axes)).transpose()?;
        let reduce = Reduce { axes, keep_axes };
        self.make(Op::ReduceFun(Box::new(ReduceFun { reduce, function })), operands)
    }

    /// The function of a fold that gave `result`, and the operands of the node that is to hold
    /// it: what is folded, the initial value, and what the function mentions.
    ///
    /// # Errors
    /// A result that is of another scope.
    pub fn close_fold(&mut self, fold: &Fold, result: ExprId) -> Result<(Arc<Program>, Operands)> {
        let result = self.as_type(result, self.dtype(fold.element()))?;
        let traced = self.traced(fold.mark, vec![result]);
        let closed = self.close(fold.mark, Some(&fold.scope), &[traced], true)?;
        let operands = [fold.x, fold.initial].into_iter().chain(closed.captures).collect();
        Ok((closed.programs[0].clone(), operands))
    }
}

/// The dtype in which indices are found when they are asked for in `dtype`.
pub(super) fn index_dtype(dtype: DType) -> DType {
    if dtype.is_integer() { dtype } else { DType::S32 }
}
