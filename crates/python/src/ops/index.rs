//! Functions that read and write at indices, and sorting.

use std::borrow::Cow;

use nxla_runtime::Result;
use nxla_runtime::graph::build::SliceStart;
use nxla_runtime::graph::{ExprId, Graph};
use nxla_runtime::host::normalize_axis;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::args::{Axis, AxisList, Count, Integer};
use super::declare::{Argument, ArgumentContext, Positions, functions};
use super::window::only_axis;
use crate::dtype::DTypeArg;
use crate::operands::{Operands, Role};

/// The start of a slice: a plain int is static, everything else is an operand.
enum Start<'py> {
    Fixed(i64),
    Dynamic(Bound<'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Start<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        // `__index__` of a device tensor would wait for its value, so only ints are converted.
        let fixed = value.cast::<PyInt>().ok().and_then(|index| index.extract().ok());
        Ok(match fixed {
            Some(Integer(index)) => Start::Fixed(index),
            None => Start::Dynamic(value.to_owned()),
        })
    }
}

impl Argument for Start<'_> {
    type Value = SliceStart;

    fn annotation() -> Cow<'static, str> {
        <&Bound<'_, PyAny>>::annotation()
    }

    fn operands(&self, function: &'static str, operands: &mut Operands) -> PyResult<()> {
        match self {
            Start::Fixed(_) => Ok(()),
            Start::Dynamic(value) => operands.push(value, function, Role::Position),
        }
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<SliceStart> {
        Ok(match self {
            Start::Fixed(index) => SliceStart::from(index),
            Start::Dynamic(_) => SliceStart::from(site.next()),
        })
    }
}

/// Broadcasts a scalar to one entry of an axis of `x`.
fn entry_along(graph: &mut Graph, part: ExprId, x: ExprId, axis: i64) -> Result<ExprId> {
    let mut shape = graph.shape(x).clone();
    match normalize_axis(axis, shape.rank()) {
        Ok(axis) if graph.shape(part).rank() == 0 => shape.as_mut_slice()[axis] = 1,
        _ => return Ok(part),
    }
    Ok(graph.broadcast(part, shape, None)?)
}

functions! {
    /// Take elements of an axis by index.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// indices : tensor_like
    ///     Integers of any shape; negative ones count from the end. An index that is still out of
    ///     range selects the nearest element.
    /// axis : int or str, optional
    ///     The axis; optional for a tensor with one axis.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the shape of `x`, with the axes of `indices` in place of `axis`.
    ///     If `indices` is a vector without an axis name, the new axis keeps the name of `axis`. If
    ///     both axes have names, they must be equal.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If `axis` is omitted and `x` has several axes.
    /// DTypeError
    ///     If the indices are not integers.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.take([10, 20, 30], [2, 0]).tolist()
    /// [30, 10]
    fn take(x, indices: Positions<'_>, /, axis: Option<Axis> = None) |graph| {
        let axis = match axis {
            Some(axis) => axis,
            None => only_axis(graph, "take", x)?,
        };
        graph.take_from_end(x, indices, axis)
    };

    /// Return one element of an axis for each index; the other axes are aligned.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// indices : tensor_like
    ///     Integers, of the shape of `x` but for `axis`, or of one that broadcasts there; negative
    ///     ones count from the end.
    /// axis : int or str
    ///     The axis.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the other axes do not broadcast.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> x = nx.tensor([[3, 1], [5, 9]])
    /// >>> nx.take_along_axis(x, nx.argsort(x)).tolist()
    /// [[1, 3], [5, 9]]
    fn take_along_axis(x, indices: Positions<'_>, /, axis: Axis = -1) |graph|
        graph.take_along_broadcast(x, indices, axis);

    /// Return a block of a tensor.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// starts : sequence of int or integer scalar
    ///     The start of the block along each axis, moved so that the block fits.
    /// lengths : sequence of int
    ///     The length of the block along each axis, before strides.
    /// strides : sequence of int, optional
    ///     The step between selected elements along each axis; 1 by default.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If there is not one number for each axis.
    /// ArgumentError
    ///     If the block is larger than the tensor.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, 2]).tolist()
    /// [[2, 3], [5, 6]]
    fn slice(
        x, starts: Vec<Start<'_>>, lengths: Vec<Count>, /, *, strides: Option<Vec<Count>> = None
    ) |graph| graph.slice(x, &starts, &lengths, strides.as_deref());

    /// Return a range of one axis. Parameters and errors are the same as for `slice`, for one axis.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.slice_along_axis([1, 2, 3, 4], 1, 2).tolist()
    /// [2, 3]
    fn slice_along_axis(
        x, start: Start<'_>, length: Count, /, axis: Axis = 0, *, stride: Count = 1
    ) |graph| graph.slice_along_axis(x, start, length, axis, stride);

    /// Write a block into a copy of a tensor.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// starts : sequence of int or integer scalar
    ///     The start of the block along each axis, moved so that the block fits.
    /// update : tensor_like
    ///     The block; the dtypes promote.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the block is larger than the tensor, or has another number of axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.put_slice([1, 2, 3, 4], [1], [8, 9]).tolist()
    /// [1, 8, 9, 4]
    fn put_slice(x, starts: Vec<Start<'_>>, update, /) |graph| graph.put_slice(x, &starts, update);

    /// Return elements, or slices, at tuples of indices.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// indices : tensor_like
    ///     Integers; the last axis holds the tuples. Negative ones count from the end.
    /// axes : sequence of int or str, optional
    ///     The axes of `x` that the numbers of a tuple index, in increasing order; the first axes
    ///     by default.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     The axes of `indices` except the last one, then the axes of `x` that are not indexed.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the tuples have more numbers than `x` has axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.gather([[1, 2], [3, 4]], [[1, 1], [0, 1]]).tolist()
    /// [4, 2]
    fn gather(x, indices: Positions<'_>, /, *, axes: Option<AxisList> = None) |graph| {
        let indices = graph.coordinates_from_end(x, indices, axes.as_deref())?;
        graph.gather(x, indices, axes.as_deref())
    };

    /// Add values at tuples of indices; values for the same index are summed.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Any tensor.
    /// indices : tensor_like
    ///     Integers; the last axis holds the tuples, as for `gather`.
    /// updates : tensor_like
    ///     A tensor with the shape of the result of `gather` for these indices.
    /// axes : sequence of int or str, optional
    ///     As for `gather`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the updates have another shape.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.indexed_add([0, 0, 0], [[1], [1], [2]], [5, 6, 7]).tolist()
    /// [0, 11, 7]
    fn indexed_add(x, indices: Positions<'_>, updates, /, *, axes: Option<AxisList> = None) |graph| {
        let indices = graph.coordinates_from_end(x, indices, axes.as_deref())?;
        graph.indexed_add(x, indices, updates, axes.as_deref())
    };

    /// Write values at tuples of indices; the last value for an index is kept.
    ///
    /// Parameters are the same as for `indexed_add`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.indexed_put([0, 0, 0], [[1], [2]], [5, 7]).tolist()
    /// [0, 5, 7]
    fn indexed_put(x, indices: Positions<'_>, updates, /, *, axes: Option<AxisList> = None) |graph| {
        let indices = graph.coordinates_from_end(x, indices, axes.as_deref())?;
        graph.indexed_put(x, indices, updates, axes.as_deref())
    };

    /// Sort the elements of an axis; NaN counts as larger than everything.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers.
    /// axis : int or str
    ///     The axis.
    /// descending : bool
    ///     If True, sort from the largest to the smallest.
    /// stable : bool
    ///     If True, equal elements keep their order.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the shape and dtype of `x`.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.sort([3, 1, 2]).tolist(), nx.sort([3, 1, 2], descending=True).tolist()
    /// ([1, 2, 3], [3, 2, 1])
    fn sort(x, /, axis: Axis = -1, *, descending: bool = false, stable: bool = true) |graph|
        graph.sort(x, axis, descending, stable);

    /// Return the indices that sort the elements of an axis, with the shape of `x`.
    ///
    /// Parameters and errors are the same as for `sort`; `dtype` is the dtype of the indices, ``int32``
    /// by default.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.argsort([3, 1, 2]).tolist()
    /// [1, 2, 0]
    fn argsort(
        x, /, axis: Axis = -1, *, descending: bool = false, stable: bool = true,
        dtype: DTypeArg = "int32"
    ) |graph| graph.argsort(x, axis, descending, stable, dtype);

    /// Return the largest elements of the last axis.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Real numbers, with at least one axis. NaN counts as larger than everything.
    /// k : int
    ///     The number of elements.
    ///
    /// Returns
    /// -------
    /// values, indices : Tensor
    ///     The elements, the largest first, and where they are. Equal elements keep their order.
    ///
    /// Raises
    /// ------
    /// ArgumentError
    ///     If the axis has fewer elements.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> [found.tolist() for found in nx.top_k([1, 9, 5], 2)]
    /// [[9, 5], [1, 2]]
    fn top_k(x, /, k: Count = 1) -> (ExprId, ExprId) |graph| graph.top_k(x, k);

    /// Subtract each element from the next.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers, with at least one axis.
    /// n : int
    ///     The order of the difference.
    /// axis : int or str
    ///     The axis; it gets shorter by `n`.
    /// prepend, append : tensor_like, optional
    ///     Values to prepend and append: numbers, or tensors with the shape of `x` except along
    ///     `axis`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axis does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.diff([1, 4, 9]).tolist(), nx.diff([1, 4, 9], n=2).tolist()
    /// ([3, 5], [2])
    fn diff(
        x, /, n: Count = 1, axis: Axis = -1, *, prepend: Option<Bound<'_, PyAny>> = None,
        append: Option<Bound<'_, PyAny>> = None
    ) |graph| {
        let parts = [prepend, Some(x), append].into_iter().flatten();
        let parts: Vec<ExprId> =
            parts.map(|part| entry_along(graph, part, x, axis)).collect::<Result<_>>()?;
        // The difference of order 0 is the operand itself, as in NumPy.
        let x = if n > 0 && parts.len() > 1 { graph.concatenate(&parts, axis)? } else { x };
        graph.diff(x, n, axis)
    };
}

pub(super) use declared_functions as register;
