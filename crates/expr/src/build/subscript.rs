//! Subscripts: reading and writing `x[…]` by the rules of NumPy's basic and advanced indexing.
//!
//! Negative indices at run time count from the end. Indices that are still out of range are clamped
//! by gathers, and their updates are ignored by scatters.

mod read;
mod update;

use nxla_tensor::{Scalar, Shape, to_i64};

use super::index::counting_dtype;
use crate::graph::{Combine, ExprId, Graph, Op, Result};

const OP: &str = "index";

/// An entry of a subscript. All entries except [`Subscript::New`] and [`Subscript::Nothing`]
/// consume one axis each, in order, and together they consume all axes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subscript {
    /// A constant index in range; removes the axis.
    At(usize),
    /// A scalar index of the program; removes the axis.
    Dynamic(ExprId),
    /// Elements at regular distances.
    Range {
        /// The index of the first element.
        start: usize,
        /// The number of elements from the first to the last one, including skipped elements.
        span: usize,
        /// The distance between two elements.
        stride: usize,
        /// True if the result contains the elements in reverse order.
        is_reversed: bool,
    },
    /// Elements by index. All such entries broadcast against each other and against scalar indices.
    Take(ExprId),
    /// A new axis of size 1.
    New,
    /// An ellipsis that covers no axis. Like a range, it separates the indices on its sides.
    Nothing,
}

impl Subscript {
    /// Returns the entry for all elements of an axis of this size.
    pub fn whole_axis(size: usize) -> Self {
        Subscript::Range { start: 0, span: size, stride: 1, is_reversed: false }
    }

    fn takes_axis(&self) -> bool {
        !matches!(self, Subscript::New | Subscript::Nothing)
    }
}

/// The effect of writing on the existing element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Update {
    /// Replaces the element. The result of several updates of one element is unspecified, and the
    /// gradient goes to the update that remains.
    Set,
    /// Adds all updates to the element.
    Add,
    /// Combines all updates with the element.
    Combine(Combine),
}

impl Graph {
    /// Converts negative `indices` into an axis of size `size`, which count from its end.
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn from_end(&mut self, indices: ExprId, size: usize) -> Result<ExprId> {
        if !self.may_be_negative(indices) {
            return Ok(indices);
        }
        let dtype = counting_dtype(&[size]);
        let wide = self.dtype(indices).bits() >= dtype.bits();
        let indices = if wide { indices } else { self.as_type(indices, dtype)? };
        let size = to_i64(size);
        let size = self.scalar_constant(Scalar::Int(size), self.dtype(indices))?;
        self.add_where_negative(indices, size)
    }

    /// Converts negative coordinates in the last axis, for axes of these sizes.
    fn tuples_from_end(&mut self, indices: ExprId, sizes: &[usize]) -> Result<ExprId> {
        if !self.may_be_negative(indices) || self.shape(indices).last() != Some(&sizes.len()) {
            // The node rejects a wrong number of coordinates.
            return Ok(indices);
        }
        let dtype = counting_dtype(sizes);
        let wide = self.dtype(indices).bits() >= dtype.bits();
        let indices = if wide { indices } else { self.as_type(indices, dtype)? };
        let signed = |&size: &usize| to_i64(size);
        let sizes: Vec<i64> = sizes.iter().map(signed).collect();
        let sizes = self.positions(&sizes, [sizes.len()], self.dtype(indices))?;
        self.add_where_negative(indices, sizes)
    }

    fn may_be_negative(&self, indices: ExprId) -> bool {
        let known = match self.op(indices) {
            Op::Constant(constant) => constant.value.as_i64().is_some_and(|value| value >= 0),
            Op::Tensor(literal) => {
                (0..literal.0.size()).all(|at| literal.0.get(at).as_i64().is_some_and(|i| i >= 0))
            }
            _ => false,
        };
        self.dtype(indices).is_signed() && !known
    }

    fn add_where_negative(&mut self, indices: ExprId, by: ExprId) -> Result<ExprId> {
        let zero = self.zero_like(indices)?;
        let is_negative = self.less(indices, zero)?;
        let shifted = self.add(indices, by)?;
        let counted = self.select(is_negative, shifted, indices)?;
        let names = self.tensor_type(indices).names.clone();
        self.rename(counted, names)
    }

    /// Does the same as [`Graph::take`], with indices that may count from the end.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::take`].
    pub fn take_from_end(&mut self, x: ExprId, indices: ExprId, axis: i64) -> Result<ExprId> {
        let at = self.axis("take", x, axis)?;
        let indices = self.from_end(indices, self.shape(x)[at])?;
        self.take(x, indices, axis)
    }

    /// Does the same as [`Graph::take_along_axis`], with indices that may count from the end and
    /// other axes that broadcast.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, ranks that differ, axes that do not broadcast, or
    /// indices that are not integers.
    pub fn take_along_broadcast(
        &mut self,
        x: ExprId,
        indices: ExprId,
        axis: i64,
    ) -> Result<ExprId> {
        let op = "take_along_axis";
        let at = self.axis(op, x, axis)?;
        let indices = self.from_end(indices, self.shape(x)[at])?;
        let (mut left, mut right) = (self.shape(x).clone(), self.shape(indices).clone());
        if left.rank() != right.rank() {
            return self.take_along_axis(x, indices, axis);
        }
        for other in (0..left.rank()).filter(|&other| other != at) {
            match (left[other], right[other]) {
                (a, b) if a == b => {}
                (1, b) => left.as_mut_slice()[other] = b,
                (a, 1) => right.as_mut_slice()[other] = a,
                _ => return self.take_along_axis(x, indices, axis),
            }
        }
        let x = self.stretch(x, left)?;
        let indices = self.stretch(indices, right)?;
        self.take_along_axis(x, indices, axis)
    }

    /// Broadcasts to a shape of the same rank, keeping names.
    fn stretch(&mut self, x: ExprId, shape: Shape) -> Result<ExprId> {
        if *self.shape(x) == shape {
            return Ok(x);
        }
        let names = self.tensor_type(x).names.clone();
        self.broadcast_named(x, shape, names)
    }

    /// Converts negative indices of [`Graph::gather`] and similar functions, which count from the
    /// end.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::gather`].
    pub fn coordinates_from_end(
        &mut self,
        x: ExprId,
        indices: ExprId,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        let axes = self.indexed_axes(x, indices, axes)?;
        let sizes: Vec<usize> = axes.iter().map(|&axis| self.shape(x)[axis]).collect();
        self.tuples_from_end(indices, &sizes)
    }
}
