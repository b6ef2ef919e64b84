//! Reductions along axes.
//!
//! `None` for axes reduces all axes, an empty list reduces none. With `keep_axes`, reduced axes
//! remain with size 1. `statistics.rs` contains compositions such as means and variances.

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
    /// Returns the parameter for an element.
    pub fn element(&self) -> ExprId {
        self.scope.parameters[0]
    }

    /// Returns the parameter for the accumulator.
    pub fn accumulator(&self) -> ExprId {
        self.scope.parameters[1]
    }
}

impl Graph {
    /// Creates a reduction of the table.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated or a complex operand of a maximum or
    /// minimum.
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

    /// Returns the sum. Narrow integers widen to 32 bits ([`DType::to_aggregate`]); an empty sum is
    /// 0.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn sum(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        self.reduction(ReduceOp::Sum, x, axes, keep_axes)
    }

    /// Returns the product. Narrow integers widen to 32 bits ([`DType::to_aggregate`]); an empty
    /// product is 1.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn product(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        self.reduction(ReduceOp::Product, x, axes, keep_axes)
    }

    /// Returns whether all elements are nonzero, as `pred`; true for no elements.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn all(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        self.reduction(ReduceOp::All, x, axes, keep_axes)
    }

    /// Returns whether any element is nonzero, as `pred`; false for no elements.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn any(&mut self, x: ExprId, axes: Option<&[i64]>, keep_axes: bool) -> Result<ExprId> {
        self.reduction(ReduceOp::Any, x, axes, keep_axes)
    }

    /// Returns the largest element: NaN if there is one, and the smallest value of the dtype for no
    /// elements.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated or complex numbers.
    pub fn reduce_max(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        self.reduction(ReduceOp::Max, x, axes, keep_axes)
    }

    /// Returns the smallest element: NaN if there is one, and the largest value of the dtype for no
    /// elements.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated or complex numbers.
    pub fn reduce_min(
        &mut self,
        x: ExprId,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        self.reduction(ReduceOp::Min, x, axes, keep_axes)
    }

    /// Returns the index of the largest element along an axis, or in the flattened tensor for
    /// `None` (always a scalar). Of several equal elements, the first wins, or the last with
    /// `tie_high`. NaN is largest. For a `dtype` that is not an integer, the index is converted
    /// from `s32`.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or without elements or complex numbers.
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

    /// Returns the index of the smallest element as [`Graph::argmax`] does, with NaN as the
    /// smallest value.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::argmax`].
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
        let axis = axis.map(|axis| self.axis(op.name(), x, axis)).transpose()?;
        let attributes = ArgReduce { axis, keep_axis, tie_high, dtype: index_dtype(dtype) };
        let index = self.make(Op::ArgReduce(op, Box::new(attributes)), &[x])?;
        let index = self.as_type(index, dtype)?;
        match axis {
            None if keep_axis => self.with_axes_of(index, x),
            None | Some(_) => Ok(index),
        }
    }

    /// Folds elements with `function(element, accumulator)`, starting from the scalar `initial`, in
    /// an unspecified order. `x` and `initial` are promoted to one dtype, to which the function's
    /// result is converted.
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
    /// Returns an error for an initial value that is not a scalar; for a function whose result is
    /// not a scalar, or which holds a hook; for what the function raises.
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
        let (function, operands) = self.close_fold(&fold, result)?;
        Ok(self.reduce_with(function, &operands, axes, keep_axes)?)
    }

    /// Starts the tracing of the function of [`Graph::reduce_fun`], for callers that cannot pass a
    /// closure. [`Graph::close_fold`] ends the tracing.
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn open_fold(&mut self, x: ExprId, initial: ExprId) -> Result<Fold> {
        self.open_fold_of("reduce", x, initial)
    }

    /// Opens a fold in a scope of this name.
    pub(super) fn open_fold_of(
        &mut self,
        name: &'static str,
        x: ExprId,
        initial: ExprId,
    ) -> Result<Fold> {
        let dtype = promote_keep_pred(self.dtype(x), self.dtype(initial));
        let (x, initial) = (self.as_type(x, dtype)?, self.as_type(initial, dtype)?);
        let mark = self.mark();
        let element = TensorType::scalar(dtype);
        let scope = self.open_scope(name, &[element.clone(), element]);
        Ok(Fold { x, initial, mark, scope })
    }

    /// Folds the first operand with a function of [`Graph::close_fold`], which takes the others.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::reduce_fun`].
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

    /// Closes the function of a fold that returned `result`. Returns the function and the operands
    /// of its node: the folded tensor, the initial value and the captures.
    ///
    /// # Errors
    /// Returns an error for a result that is of another scope.
    pub fn close_fold(&mut self, fold: &Fold, result: ExprId) -> Result<(Arc<Program>, Operands)> {
        let result = self.as_type(result, self.dtype(fold.element()))?;
        let (function, captures) = self.close_function(fold.mark, &fold.scope, vec![result])?;
        Ok((function, [fold.x, fold.initial].into_iter().chain(captures).collect()))
    }
}

/// Returns the dtype in which indices are computed before they are converted to `dtype`.
pub(super) fn index_dtype(dtype: DType) -> DType {
    if dtype.is_integer() { dtype } else { DType::S32 }
}
