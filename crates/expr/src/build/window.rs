//! Window reductions and cumulative reductions.
//!
//! A window has a size for each axis of the tensor; the size is 1 for axes that are not reduced.

use std::sync::Arc;

use nxla_tensor::{DType, Scalar, promote, promote_keep_pred, to_i64};

use super::options::options;
use super::reduce::Fold;
use crate::graph::{
    BinaryOp, BlockKind, Cumulative, ErrorKind, ExprId, Graph, Op, Padding, Program, Result,
    ScatterOp, WindowAttributes, WindowFun, WindowOp,
};

/// The padding of a tensor for windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WindowPadding {
    /// No padding.
    #[default]
    Valid,
    /// The padding with which there are as many windows as elements for strides of 1. An odd
    /// element is added at the end. Unlike in other libraries, strides have no influence.
    Same,
    /// These numbers of elements before and after each axis; negative numbers remove elements.
    Explicit(Vec<(i64, i64)>),
}

options! {
    /// Options of windows. The defaults are strides and dilations of 1 without padding.
    pub struct WindowOptions {
        /// The distance between the starts of neighboring windows for each axis; 1 for `None`.
        strides(Vec<usize>): Option<Vec<usize>> = None,
        /// The padding of each axis.
        padding(WindowPadding): WindowPadding = WindowPadding::Valid,
        /// The distance between neighboring elements inside a window; 1 for `None`.
        dilations(Vec<usize>): Option<Vec<usize>> = None,
    }
}

impl WindowPadding {
    /// Returns the padding of each axis for windows of these sizes and dilations.
    pub(super) fn resolve(&self, sizes: &[usize], dilations: &[usize]) -> Box<[(i64, i64)]> {
        match self {
            WindowPadding::Valid => vec![(0, 0); sizes.len()].into(),
            WindowPadding::Same => sizes.iter().zip(dilations).map(same_padding).collect(),
            WindowPadding::Explicit(padding) => padding.as_slice().into(),
        }
    }
}

fn same_padding((size, dilation): (&usize, &usize)) -> (i64, i64) {
    let total = size.saturating_sub(1).saturating_mul(*dilation);
    let total = i64::try_from(total).unwrap_or(i64::MAX);
    (total / 2, total - total / 2)
}

impl WindowOptions {
    fn window(&self, dimensions: &[usize]) -> WindowAttributes {
        let ones = || vec![1; dimensions.len()];
        let dilations = self.dilations.clone().unwrap_or_else(ones);
        WindowAttributes {
            padding: self.padding.resolve(dimensions, &dilations),
            dimensions: dimensions.into(),
            strides: self.strides.clone().unwrap_or_else(ones).into(),
            dilations: dilations.into(),
        }
    }
}

/// Returns the op that combines two elements.
fn combining_op(op: Cumulative) -> BinaryOp {
    match op {
        Cumulative::Sum => BinaryOp::Add,
        Cumulative::Product => BinaryOp::Multiply,
        Cumulative::Max => BinaryOp::Max,
        Cumulative::Min => BinaryOp::Min,
    }
}

/// Returns the neutral element of the op.
pub(super) fn neutral(op: Cumulative, dtype: DType) -> Scalar {
    match op {
        Cumulative::Sum => Scalar::zero(dtype),
        Cumulative::Product => Scalar::one(dtype),
        Cumulative::Max => dtype.min_value(),
        Cumulative::Min => dtype.max_value(),
    }
}

impl Graph {
    /// Creates a window reduction of the table. Unlike full reductions, it keeps the dtype; padding
    /// has the value of the neutral element.
    ///
    /// # Errors
    /// Returns an error for lists without one entry per axis; for sizes, strides or dilations of 0;
    /// for trimming more than there is; for a complex operand of a maximum or minimum.
    pub fn window_reduction(
        &mut self,
        op: WindowOp,
        x: ExprId,
        dimensions: &[usize],
        options: &WindowOptions,
    ) -> Result<ExprId> {
        self.make(Op::Window(op, Box::new(options.window(dimensions))), &[x])
    }

    /// Returns the sum of each window. See [`Graph::window_reduction`].
    ///
    /// # Errors
    /// Returns the errors of [`Graph::window_reduction`].
    pub fn window_sum(
        &mut self,
        x: ExprId,
        dimensions: &[usize],
        options: &WindowOptions,
    ) -> Result<ExprId> {
        self.window_reduction(WindowOp::Sum, x, dimensions, options)
    }

    /// Returns the product of each window. See [`Graph::window_reduction`].
    ///
    /// # Errors
    /// Returns the errors of [`Graph::window_reduction`].
    pub fn window_product(
        &mut self,
        x: ExprId,
        dimensions: &[usize],
        options: &WindowOptions,
    ) -> Result<ExprId> {
        self.window_reduction(WindowOp::Product, x, dimensions, options)
    }

    /// Returns the largest element of each window. See [`Graph::window_reduction`].
    ///
    /// # Errors
    /// Returns the errors of [`Graph::window_reduction`].
    pub fn window_max(
        &mut self,
        x: ExprId,
        dimensions: &[usize],
        options: &WindowOptions,
    ) -> Result<ExprId> {
        self.window_reduction(WindowOp::Max, x, dimensions, options)
    }

    /// Returns the smallest element of each window. See [`Graph::window_reduction`].
    ///
    /// # Errors
    /// Returns the errors of [`Graph::window_reduction`].
    pub fn window_min(
        &mut self,
        x: ExprId,
        dimensions: &[usize],
        options: &WindowOptions,
    ) -> Result<ExprId> {
        self.window_reduction(WindowOp::Min, x, dimensions, options)
    }

    /// Returns the mean of each window as a float: the sum divided by the size, including padding.
    /// Narrow floats are summed in 32 bits.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::window_reduction`].
    pub fn window_mean(
        &mut self,
        x: ExprId,
        dimensions: &[usize],
        options: &WindowOptions,
    ) -> Result<ExprId> {
        let dtype = self.dtype(x);
        let x = self.as_type(x, dtype.to_floating().to_counting())?;
        let sum = self.window_sum(x, dimensions, options)?;
        let size = nxla_tensor::Shape::from(dimensions).size();
        let mean = self.divide_by(sum, i128::try_from(size).expect("a size fits in 128 bits"))?;
        self.as_type(mean, dtype.to_floating())
    }

    /// Folds each window with `function(element, accumulator)`, starting from the scalar `initial`,
    /// which is also the padding. The result has the dtype of `x`.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::window_reduction`] and [`Graph::reduce_fun`], and an error
    /// for an initial value that does not promote to the dtype of `x`.
    pub fn window_reduce<E: From<crate::Error>>(
        &mut self,
        x: ExprId,
        initial: ExprId,
        dimensions: &[usize],
        options: &WindowOptions,
        function: impl FnOnce(&mut Graph, ExprId, ExprId) -> Result<ExprId, E>,
    ) -> Result<ExprId, E> {
        let fold = self.open_window_fold(x, initial)?;
        let result = function(self, fold.element(), fold.accumulator())?;
        let (function, operands) = self.close_fold(&fold, result)?;
        Ok(self.window_reduce_with(function, &operands, dimensions, options)?)
    }

    /// Starts the tracing of the function of [`Graph::window_reduce`], for callers that cannot pass
    /// a closure. [`Graph::close_fold`] ends the tracing.
    ///
    /// # Errors
    /// Returns an error for an initial value that does not promote to the dtype of `x`.
    pub fn open_window_fold(&mut self, x: ExprId, initial: ExprId) -> Result<Fold> {
        let (dtype, found) = (self.dtype(x), self.dtype(initial));
        if promote_keep_pred(dtype, found) != dtype {
            let why = format!("must have a dtype that promotes to {dtype}; got {found}");
            return Err(self.invalid("window_reduce", "initial", why));
        }
        self.open_fold_of("window_reduce", x, initial)
    }

    /// Folds windows of the first operand with a function of [`Graph::close_fold`], which takes
    /// the others.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::window_reduce`].
    pub fn window_reduce_with(
        &mut self,
        function: Arc<Program>,
        operands: &[ExprId],
        dimensions: &[usize],
        options: &WindowOptions,
    ) -> Result<ExprId> {
        let window = options.window(dimensions);
        self.make(Op::WindowFun(Box::new(WindowFun { window, function })), operands)
    }

    /// Adds each element of `source` at the position of the largest element (the last of equal
    /// elements) of its window of `x`, starting from `initial`. The dtype is the promoted dtype of
    /// `source` and `initial`.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::window_reduction`], and an error for a source without one
    /// element per window or an initial value that is not a scalar.
    pub fn window_scatter_max(
        &mut self,
        x: ExprId,
        source: ExprId,
        initial: ExprId,
        dimensions: &[usize],
        options: &WindowOptions,
    ) -> Result<ExprId> {
        let op = Op::WindowScatter(ScatterOp::Max, Box::new(options.window(dimensions)));
        self.make(op, &[x, source, initial])
    }

    /// Does the same as [`Graph::window_scatter_max`] with the smallest element.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::window_scatter_max`].
    pub fn window_scatter_min(
        &mut self,
        x: ExprId,
        source: ExprId,
        initial: ExprId,
        dimensions: &[usize],
        options: &WindowOptions,
    ) -> Result<ExprId> {
        let op = Op::WindowScatter(ScatterOp::Min, Box::new(options.window(dimensions)));
        self.make(op, &[x, source, initial])
    }

    /// Returns the cumulative reduction along an axis, or from the end with `reverse`. The dtype is
    /// unchanged (`pred` becomes `u8`). This is a block whose default takes log2(size) steps; each
    /// step doubles the reach of every element.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or a complex operand of a maximum or minimum.
    pub fn cumulative(
        &mut self,
        op: Cumulative,
        x: ExprId,
        axis: i64,
        reverse: bool,
    ) -> Result<ExprId> {
        let axis = self.axis(op.name(), x, axis)?;
        let dtype = promote(self.dtype(x), self.dtype(x));
        if dtype.is_complex() && matches!(op, Cumulative::Max | Cumulative::Min) {
            let kind =
                ErrorKind::DType { argument: "operand", found: dtype, expected: "a real dtype" };
            return Err(self.error(op.name(), kind));
        }
        let x = self.as_type(x, dtype)?;
        let kind = BlockKind::Cumulative { op, axis, reverse };
        self.single_block(kind, [x], |graph, [x]| graph.scan(op, x, axis, reverse))
    }

    /// The body of [`Graph::cumulative`]: combines each element with the element at distance 1, 2,
    /// 4…
    fn scan(&mut self, op: Cumulative, x: ExprId, axis: usize, reverse: bool) -> Result<ExprId> {
        let size = self.shape(x)[axis];
        let (mut result, mut distance) = (x, 1);
        while distance < size {
            result = match op {
                Cumulative::Sum | Cumulative::Product => {
                    self.combine_shifted(op, result, axis, distance, reverse)?
                }
                Cumulative::Max | Cumulative::Min => {
                    self.combine_overlap(op, result, axis, distance, reverse)?
                }
            };
            distance *= 2;
        }
        Ok(result)
    }

    /// Combines each element with the element at a distance, or with the neutral element.
    fn combine_shifted(
        &mut self,
        op: Cumulative,
        x: ExprId,
        axis: usize,
        distance: usize,
        reverse: bool,
    ) -> Result<ExprId> {
        let dtype = self.dtype(x);
        let filler = self.scalar_constant(neutral(op, dtype), dtype)?;
        let shift = to_i64(distance);
        let (low, high) = if reverse { (-shift, shift) } else { (shift, -shift) };
        let mut padding = vec![Padding::NONE; self.shape(x).rank()];
        padding[axis] = Padding { low, high, interior: 0 };
        let shifted = self.pad(x, filler, &padding)?;
        self.binary(combining_op(op), shifted, x)
    }

    /// Combines each element with the element at a distance, if there is one. An extremum of an
    /// element and an equal neutral element would lose half of the derivative.
    fn combine_overlap(
        &mut self,
        op: Cumulative,
        x: ExprId,
        axis: usize,
        distance: usize,
        reverse: bool,
    ) -> Result<ExprId> {
        let rest = self.shape(x)[axis] - distance;
        let along = to_i64(axis);
        let part = |graph: &mut Graph, start: usize, length: usize| {
            let start = to_i64(start);
            graph.slice_along_axis(x, start, length, along, 1)
        };
        let (first, last) = (part(self, 0, rest)?, part(self, distance, rest)?);
        if reverse {
            let combined = self.binary(combining_op(op), last, first)?;
            let end = part(self, rest, distance)?;
            return self.concatenate(&[combined, end], along);
        }
        let combined = self.binary(combining_op(op), first, last)?;
        let start = part(self, 0, distance)?;
        self.concatenate(&[start, combined], along)
    }
}
