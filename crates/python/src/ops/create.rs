//! Functions that create tensors from scalars.

use nxla_runtime::host::{AxisName, Names, Number, Scalar};
use nxla_runtime::{DType, Error, TensorType};
use pyo3::prelude::*;

use super::add_functions;
use super::args::{Axis, Count, Integer, NamesArg, ShapeArg};
use super::declare::{DiagonalOffset, functions};
use crate::apply::{apply, one};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, number_error};
use crate::numbers;
use crate::value::{FromPython, Value, is_list, number_of};

/// The type of a tensor to be made.
fn tensor_type(shape: ShapeArg, dtype: Option<DTypeArg>, names: Option<NamesArg>) -> TensorType {
    TensorType {
        dtype: dtype.map_or(DType::S32, |dtype| dtype.0),
        shape: shape.0,
        names: names.and_then(|names| names.names()),
    }
}

/// 0, 1, 2… along an axis, or through the whole tensor.
#[pyfunction]
#[pyo3(signature = (shape, axis=None, dtype=None, names=None))]
fn iota(
    py: Python<'_>,
    shape: ShapeArg,
    axis: Option<Axis>,
    dtype: Option<DTypeArg>,
    names: Option<NamesArg>,
) -> PyResult<Py<PyAny>> {
    let ty = tensor_type(shape, dtype, names);
    let axis = axis.map(|axis| axis.of_type(&ty)).transpose();
    let axis = axis.map_err(|kind| Error::Expr(kind.of("iota"))).or_raise()?;
    apply(py, "iota", &[], |graph, _| one(graph.iota_of(ty, axis)))
}

/// Ones on the diagonal of the last two axes.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, names=None))]
fn eye(
    py: Python<'_>,
    shape: ShapeArg,
    dtype: Option<DTypeArg>,
    names: Option<NamesArg>,
) -> PyResult<Py<PyAny>> {
    let ty = tensor_type(shape, dtype, names);
    apply(py, "eye", &[], |graph, _| one(graph.eye_of(ty)))
}

/// Returns a tensor filled with one number.
///
/// Raises ``OverflowError`` for a scalar outside the range of an integer dtype.
#[pyfunction]
#[pyo3(signature = (shape, value, dtype=None, names=None))]
fn full(
    py: Python<'_>,
    shape: ShapeArg,
    value: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    names: Option<NamesArg>,
) -> PyResult<Py<PyAny>> {
    let Some(number) = number_of(value)? else {
        // A tensor or a traced scalar is broadcast.
        let operand = match (&dtype, is_list(value)) {
            (Some(dtype), true) => crate::nested::from_nested_list(value, Some(dtype.0))?,
            _ => Value::of(value, "full")?,
        };
        return apply(py, "full", &[operand], |graph, ids| {
            let x = match dtype {
                Some(dtype) => graph.as_type(ids[0], dtype.0)?,
                None => ids[0],
            };
            one(graph.broadcast_and_name(x, shape.0, None, names.and_then(|names| names.names())))
        });
    };
    let dtype = match dtype {
        Some(dtype) => dtype.0,
        None => number.default_dtype().map_err(|error| number_error("full", error))?,
    };
    numbers::all_fit(&[number], dtype)?;
    // An expression prints the scalar as written.
    let value = number.to_scalar().ok().filter(|_| dtype.is_float() || dtype.is_complex());
    let value: Scalar = value.unwrap_or_else(|| number.cast(dtype));
    let names = names.and_then(|names| names.names());
    let ty = TensorType { dtype, shape: shape.0, names };
    apply(py, "full", &[], |graph, _| one(graph.constant(value, ty)))
}

/// A mask that is true where the column index is at most the row index plus `k`.
#[pyfunction]
#[pyo3(signature = (rows, columns, k=DiagonalOffset(0)), text_signature = "(rows, columns, k=0)")]
fn tri(py: Python<'_>, rows: usize, columns: usize, k: DiagonalOffset) -> PyResult<Py<PyAny>> {
    apply(py, "tri", &[], |graph, _| one(graph.tri(rows, columns, k.0)))
}

/// The dtype of a range: the dtype of its typed bound, or a float dtype if the bounds are not
/// integers.
fn common_dtype(ends: &[Value; 2]) -> PyResult<DType> {
    let mut common: Option<DType> = None;
    for end in ends {
        let dtype = match end {
            Value::Tensor(tensor) => tensor.dtype(),
            Value::Expr(expr) => expr.dtype(),
            Value::Number(Number::Complex(..)) => DType::C64,
            Value::Number(_) => continue,
        };
        common = Some(common.map_or(dtype, |common| nxla_runtime::host::promote(common, dtype)));
    }
    Ok(common.map_or(DType::F32, DType::to_floating))
}

/// Evenly spaced numbers.
#[pyfunction]
#[pyo3(signature = (start, stop, num, endpoint=true, dtype=None, name=None))]
fn linspace(
    start: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    num: Count,
    endpoint: bool,
    dtype: Option<DTypeArg>,
    name: Option<String>,
) -> PyResult<Py<PyAny>> {
    let (py, function) = (start.py(), "linspace");
    let (num, name) = (num.0, name.map(AxisName::from));
    let ends = [Value::of(start, function)?, Value::of(stop, function)?];
    let dtype = match dtype {
        Some(DTypeArg(dtype)) => dtype,
        None => common_dtype(&ends)?,
    };
    if let [Value::Number(from), Value::Number(to)] = ends {
        return apply(py, function, &[], |graph, _| {
            let spread = graph.linspace(from, to, num, endpoint, dtype)?;
            one(graph.rename(spread, name.map(|name| Names::new([Some(name)]))))
        });
    }
    apply(py, function, &ends, |graph, ids| {
        one(graph.linspace_between(ids[0], ids[1], num, endpoint, dtype, name))
    })
}

functions! {
    /// Return the lower triangle of the last two axes, with zeros above a diagonal.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     At least two axes.
    /// k : int
    ///     The diagonal: the number of columns to the right of the main diagonal.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If there are fewer than two axes.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.tril([[1, 2], [3, 4]]).tolist()
    /// [[1, 0], [3, 4]]
    fn tril(x, /, k: DiagonalOffset = 0) |graph| graph.tril(x, k);

    /// Return the upper triangle of the last two axes, with zeros below a diagonal.
    ///
    /// Parameters and errors are the same as for `tril`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.triu([[1, 2], [3, 4]]).tolist()
    /// [[1, 2], [0, 4]]
    fn triu(x, /, k: DiagonalOffset = 0) |graph| graph.triu(x, k);

    /// Return a diagonal of the last two axes.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     At least two axes.
    /// offset : int
    ///     The diagonal: the number of columns to the right of the main diagonal, negative for the
    ///     left.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If there are fewer than two axes.
    /// ArgumentError
    ///     If the diagonal is outside the matrix.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.take_diagonal([[1, 2], [3, 4]]).tolist()
    /// [1, 4]
    fn take_diagonal(x, /, offset: Integer = 0) |graph| graph.take_diagonal(x, offset);

    /// Return a matrix with a vector on a diagonal and zeros elsewhere.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     A vector.
    /// offset : int
    ///     The diagonal: the number of columns to the right of the main diagonal, negative for the
    ///     left.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If `x` is not a vector.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.make_diagonal([1, 2]).tolist()
    /// [[1, 0], [0, 2]]
    fn make_diagonal(x, /, offset: Integer = 0) |graph| graph.make_diagonal(x, offset);

    /// Replace a diagonal of a matrix.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     A matrix.
    /// diagonal : tensor_like
    ///     A vector of the new elements; the dtypes promote.
    /// offset : int
    ///     As for `make_diagonal`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If `x` is not a matrix, or `diagonal` does not have the length of the diagonal.
    /// ArgumentError
    ///     If the diagonal is outside the matrix.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.put_diagonal([[1, 2], [3, 4]], [7, 8]).tolist()
    /// [[7, 2], [3, 8]]
    fn put_diagonal(x, diagonal, /, offset: Integer = 0) |graph|
        graph.put_diagonal(x, diagonal, offset);
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    declared_functions(module)?;
    add_functions!(module: iota, eye, full, tri, linspace);
    Ok(())
}
