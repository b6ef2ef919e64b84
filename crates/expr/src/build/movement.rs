//! Functions that move elements without computing.
//!
//! A movement without effect creates no node. `None` for axes means all axes. Functions with a new
//! shape (`reshape`, `broadcast`, `tile`) drop axis names; the functions ending in `_named` set new
//! names.

use nxla_tensor::{AxisName, Names, Shape, ShapeError, to_i64};

use super::SliceStart;
use crate::graph::{
    Axes, Broadcast, ErrorKind, ExprId, Graph, Op, Padding, Reshape, Result, Stack,
};

impl Graph {
    /// Returns the elements of `x` in row-major order with another shape of equal size.
    ///
    /// # Errors
    /// Returns an error for a shape of another size.
    pub fn reshape(&mut self, x: ExprId, shape: impl Into<Shape>) -> Result<ExprId> {
        self.reshape_named(x, shape, None)
    }

    /// Does the same as [`Graph::reshape`], and names the new axes.
    ///
    /// # Errors
    /// Returns an error for a shape of another size or a wrong number of entries of `names` per
    /// axis.
    pub fn reshape_named(
        &mut self,
        x: ExprId,
        shape: impl Into<Shape>,
        names: Option<Names>,
    ) -> Result<ExprId> {
        let shape = shape.into();
        self.make(Op::Reshape(Box::new(Reshape { shape, names })), &[x])
    }

    /// Does the same as [`Graph::reshape`], with one unknown size (`None`) that follows from the
    /// others.
    ///
    /// # Errors
    /// Returns an error for several unknown sizes, or one that the others do not determine.
    pub fn reshape_auto(&mut self, x: ExprId, sizes: &[Option<usize>]) -> Result<ExprId> {
        let known: Shape = sizes.iter().copied().flatten().collect();
        let unknown = sizes.len() - known.rank();
        if unknown == 0 {
            return self.reshape(x, known);
        }
        let size = self.shape(x).size();
        // An unknown size is -1 in Python and `None` in Rust.
        let written = || {
            let written = |size: Option<usize>| size.map_or("unknown".into(), |n| n.to_string());
            format!("[{}]", sizes.iter().copied().map(written).collect::<Vec<_>>().join(", "))
        };
        let (1, Some(fit)) = (unknown, size.checked_div(known.size())) else {
            let why =
                format!("must determine all sizes for {}; got {}", self.tensor_type(x), written());
            return Err(self.invalid("reshape", "shape", why));
        };
        if fit * known.size() != size {
            let x = self.tensor_type(x);
            let why = format!(
                "the product of the given sizes must divide the {size} elements of {x}; got {}",
                written()
            );
            return Err(self.invalid("reshape", "shape", why));
        }
        self.reshape(x, sizes.iter().map(|size| size.unwrap_or(fit)).collect::<Shape>())
    }

    /// Replaces the axis names of `x`.
    ///
    /// # Errors
    /// Returns an error unless there is one entry of `names` per axis.
    pub fn rename(&mut self, x: ExprId, names: Option<Names>) -> Result<ExprId> {
        let shape = self.shape(x).clone();
        self.reshape_named(x, shape, names)
    }

    /// Removes these axes of size 1, or all axes of size 1 for `None`.
    ///
    /// # Errors
    /// Returns an error for an axis out of range, repeated, or of another size.
    pub fn squeeze(&mut self, x: ExprId, axes: Option<&[i64]>) -> Result<ExprId> {
        let axes = match axes {
            Some(axes) => self.axis_set("squeeze", x, axes)?,
            None => {
                let sizes = self.shape(x).iter().enumerate();
                sizes.filter(|&(_, &size)| size == 1).map(|(axis, _)| axis).collect()
            }
        };
        self.make(Op::Squeeze(axes), &[x])
    }

    /// Inserts an axis of size 1 before `axis`; negative positions count from the end of the
    /// result, so that -1 appends.
    ///
    /// # Errors
    /// Returns an error for a position outside of the result.
    pub fn new_axis(&mut self, x: ExprId, axis: i64, name: Option<AxisName>) -> Result<ExprId> {
        let axis = self.new_position(x, axis)?;
        let ty = self.tensor_type(x);
        let mut shape = ty.shape.clone();
        shape.insert(axis, 1);
        let mut names = ty.axis_names();
        names.insert(axis, name);
        self.reshape_named(x, shape, Some(Names::new(names)))
    }

    /// Inserts new axes of size 1 at these positions of the result.
    ///
    /// # Errors
    /// Returns an error for a position that is out of range, or that is repeated.
    pub fn new_axes(&mut self, x: ExprId, axes: &[i64]) -> Result<ExprId> {
        let rank = self.shape(x).rank() + axes.len();
        let mut positions = nxla_tensor::normalize_axes(axes, rank).map_err(|error| {
            let why = match error {
                ShapeError::DuplicateAxis { axis, .. } => {
                    format!("must be distinct; got axis {axis} of the result twice")
                }
                ShapeError::AxisOutOfRange { axis, .. } => {
                    format!("must be in range for a result with {rank} axes; got {axis}")
                }
                other => other.to_string(),
            };
            self.invalid("new_axes", "axes", why)
        })?;
        positions.sort_unstable();
        positions.into_iter().try_fold(x, |x, position| {
            let position = to_i64(position);
            self.new_axis(x, position, None)
        })
    }

    /// Returns the position of a new axis in a result with one more axis than `x`.
    fn new_position(&self, x: ExprId, axis: i64) -> Result<usize> {
        let rank = self.shape(x).rank();
        nxla_tensor::normalize_axis(axis, rank + 1).map_err(|_| {
            let why = format!(
                "must be from -{} to {rank} for a new axis of {}; got {axis}",
                rank + 1,
                self.tensor_type(x)
            );
            self.invalid("new_axis", "axis", why)
        })
    }

    /// Permutes the axes of `x`: axis `i` of the result is axis `axes[i]` of `x`. `None` reverses
    /// the axes.
    ///
    /// # Errors
    /// Returns an error for axes that are not a permutation.
    pub fn transpose(&mut self, x: ExprId, axes: Option<&[i64]>) -> Result<ExprId> {
        let permutation: Axes = match axes {
            Some(axes) => self.axes("transpose", x, axes)?.into(),
            None => (0..self.shape(x).rank()).rev().collect(),
        };
        self.make(Op::Transpose(permutation), &[x])
    }

    /// Reverses the elements along these axes.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated.
    pub fn reverse(&mut self, x: ExprId, axes: Option<&[i64]>) -> Result<ExprId> {
        let axes = match axes {
            Some(axes) => self.axis_set("reverse", x, axes)?,
            None => (0..self.shape(x).rank()).collect(),
        };
        self.make(Op::Reverse(axes), &[x])
    }

    /// Broadcasts `x` to a shape. Axis `i` of `x`, of size 1 or of the final size, becomes axis
    /// `axes[i]` of the result; `None` aligns the axes from the right.
    /// # Errors
    /// Returns an error for sizes that do not fit or axes that are not increasing or not one per
    /// axis of `x`.
    pub fn broadcast(
        &mut self,
        x: ExprId,
        shape: impl Into<Shape>,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        self.broadcast_and_name(x, shape, axes, None)
    }

    /// Does the same as [`Graph::broadcast`], and names the axes of the result.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::broadcast`], and an error unless there is one entry of
    /// `names` per axis.
    pub fn broadcast_and_name(
        &mut self,
        x: ExprId,
        shape: impl Into<Shape>,
        axes: Option<&[i64]>,
        names: Option<Names>,
    ) -> Result<ExprId> {
        let shape = shape.into();
        let Some(axes) = axes else { return self.broadcast_named(x, shape, names) };
        let axes = nxla_tensor::normalize_axes(axes, shape.rank())
            .map_err(|error| self.invalid("broadcast", "axes", error.to_string()))?;
        let axes = axes.into_iter().collect();
        self.make(Op::Broadcast(Box::new(Broadcast { shape, axes, names })), &[x])
    }

    /// Pads `x` with the scalar `value` around and between its elements; see [`Padding`]. The
    /// dtypes are promoted.
    ///
    /// # Errors
    /// Returns an error unless there is one entry per axis, or for trimming more than there is or
    /// for a value that is not a scalar.
    pub fn pad(&mut self, x: ExprId, value: ExprId, padding: &[Padding]) -> Result<ExprId> {
        self.make(Op::Pad(padding.into()), &[x, value])
    }

    /// Concatenates tensors along an axis. Dtypes are promoted, names are merged.
    ///
    /// # Errors
    /// Returns an error without tensors, or for ranks or sizes of other axes that differ or for
    /// scalars.
    pub fn concatenate(&mut self, parts: &[ExprId], axis: i64) -> Result<ExprId> {
        let Some(&first) = parts.first() else { return Err(self.no_parts()) };
        let axis = self.axis("concatenate", first, axis)?;
        self.make(Op::Concatenate(axis), parts)
    }

    /// Stacks tensors of one shape along a new axis, which may have a name. Negative axes count
    /// from the end of the result.
    ///
    /// # Errors
    /// Returns an error without tensors, or for shapes that differ or for a position outside of the
    /// result.
    pub fn stack(&mut self, parts: &[ExprId], axis: i64, name: Option<AxisName>) -> Result<ExprId> {
        let Some(&first) = parts.first() else { return Err(self.no_parts()) };
        let axis = self.new_position(first, axis)?;
        self.make(Op::Stack(Box::new(Stack { axis, name })), parts)
    }

    fn no_parts(&self) -> crate::Error {
        self.error("concatenate", ErrorKind::Arity { expected: "one or more".into(), found: 0 })
    }

    /// Splits `x` before an index of an axis; a negative index counts from the end. Either part may
    /// be empty.
    ///
    /// # Errors
    /// Returns an error for an axis or an index out of range.
    pub fn split(&mut self, x: ExprId, index: i64, axis: i64) -> Result<(ExprId, ExprId)> {
        let at = self.axis("split", x, axis)?;
        let size = self.shape(x)[at];
        let split = match usize::try_from(index) {
            Ok(index) => Some(index),
            Err(_) => size.checked_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX)),
        };
        let Some(index) = split.filter(|&split| split <= size) else {
            let why = format!("must be inside axis {at} of {}; got {index}", self.tensor_type(x));
            return Err(self.invalid("split", "index", why));
        };
        let low = self.slice_along_axis(x, 0, index, axis, 1)?;
        let high = self.slice_along_axis(x, SliceStart::at(index), size - index, axis, 1)?;
        Ok((low, high))
    }

    /// Flattens `x` in row-major order. With axes, which must be adjacent, only these are merged,
    /// and the merged axis has no name.
    ///
    /// # Errors
    /// Returns an error for axes that are not consecutive.
    pub fn flatten(&mut self, x: ExprId, axes: Option<&[i64]>) -> Result<ExprId> {
        let Some(axes) = axes else {
            let size = self.shape(x).size();
            return self.reshape(x, [size]);
        };
        let axes = self.axes("flatten", x, axes)?;
        let Some((&first, &last)) = axes.first().zip(axes.last()) else { return Ok(x) };
        if !axes.iter().copied().eq(first..=last) {
            let why = format!("must be consecutive; got {axes:?}");
            return Err(self.invalid("flatten", "axes", why));
        }
        let ty = self.tensor_type(x);
        let merged: Shape = ty.shape[first..=last].into();
        let mut shape = ty.shape[..first].to_vec();
        shape.push(merged.size());
        shape.extend(&ty.shape[last + 1..]);
        let names = ty.names.as_deref().map(|names| {
            let (before, after) = (&names[..first], &names[last + 1..]);
            Names::new(before.iter().cloned().chain([None]).chain(after.iter().cloned()))
        });
        self.reshape_named(x, shape, names)
    }

    /// Repeats `x` as a whole along each axis; shorter lists apply to the last axes, longer lists
    /// add leading axes.
    ///
    /// # Errors
    /// Returns an error for a result too large to count.
    pub fn tile(&mut self, x: ExprId, repetitions: &[usize]) -> Result<ExprId> {
        let shape = self.shape(x);
        let rank = shape.rank().max(repetitions.len());
        let aligned = |values: &[usize]| -> Vec<usize> {
            let missing = rank - values.len();
            std::iter::repeat_n(1, missing).chain(values.iter().copied()).collect()
        };
        let (sizes, repetitions) = (aligned(shape), aligned(repetitions));
        // Each axis becomes a pair: repetitions, then elements.
        let pairs: Shape = sizes.iter().flat_map(|&size| [1, size]).collect();
        let repeated: Shape =
            repetitions.iter().zip(&sizes).flat_map(|(&times, &size)| [times, size]).collect();
        let tiled: Shape = repetitions
            .iter()
            .zip(&sizes)
            .map(|(times, size)| times.saturating_mul(*size))
            .collect();
        let pairs = self.reshape(x, pairs)?;
        let repeated = self.broadcast(pairs, repeated, None)?;
        self.reshape(repeated, tiled)
    }

    /// Resolves, checks and sorts a set of axes.
    pub(super) fn axis_set(&self, op: &str, x: ExprId, axes: &[i64]) -> Result<Axes> {
        let mut axes = self.axes(op, x, axes)?;
        axes.sort_unstable();
        Ok(axes.into())
    }
}
