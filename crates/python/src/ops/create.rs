//! Functions that make tensors from nothing but numbers.

use nxla::host::Scalar;
use nxla::{DType, TensorType};
use pyo3::prelude::*;

use super::args::{NamesArg, ShapeArg};
use super::functions;
use crate::apply::{apply, one};
use crate::dtype::DTypeArg;
use crate::errors::argument_error;
use crate::value::{Value, number_of};

/// 0, 1, 2… along an axis, or through the whole tensor.
#[pyfunction]
#[pyo3(signature = (shape, axis=None, dtype=None))]
fn iota(
    py: Python<'_>,
    shape: ShapeArg,
    axis: Option<i64>,
    dtype: Option<DTypeArg>,
) -> PyResult<Py<PyAny>> {
    let dtype = dtype.map_or(DType::S32, |dtype| dtype.0);
    apply(py, &[], |graph, _| one(graph.iota(shape.0, axis, dtype)))
}

/// Ones on the diagonal of the last two axes.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None))]
fn eye(py: Python<'_>, shape: ShapeArg, dtype: Option<DTypeArg>) -> PyResult<Py<PyAny>> {
    let dtype = dtype.map_or(DType::S32, |dtype| dtype.0);
    apply(py, &[], |graph, _| one(graph.eye(shape.0, dtype)))
}

/// One number repeated over a shape.
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
        let operand = Value::of(value, "full")?;
        return apply(py, &[operand], |graph, ids| {
            let x = match dtype {
                Some(dtype) => graph.as_type(ids[0], dtype.0)?,
                None => ids[0],
            };
            one(graph.broadcast(x, shape.0, None))
        });
    };
    let refused = |error: nxla::host::NumberError| argument_error("full", error.to_string());
    let dtype = match dtype {
        Some(dtype) => dtype.0,
        None => number.default_dtype().map_err(refused)?,
    };
    let value: Scalar = number.to_scalar().map_err(refused)?;
    let value = if dtype.is_float() || dtype.is_complex() { value } else { value.cast(dtype) };
    let names = names.and_then(|names| names.names());
    let ty = TensorType { dtype, shape: shape.0, names };
    apply(py, &[], |graph, _| one(graph.constant(value, ty)))
}

/// A mask that is true where the column is at most the row plus `k`.
#[pyfunction]
#[pyo3(signature = (rows, columns, k=0))]
fn tri(py: Python<'_>, rows: usize, columns: usize, k: i64) -> PyResult<Py<PyAny>> {
    apply(py, &[], |graph, _| one(graph.tri(rows, columns, k)))
}

/// The lower triangle of the last two axes.
#[pyfunction]
#[pyo3(signature = (x, k=0))]
fn tril(x: &Bound<'_, PyAny>, k: i64) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "tril")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.tril(ids[0], k)))
}

/// The upper triangle of the last two axes.
#[pyfunction]
#[pyo3(signature = (x, k=0))]
fn triu(x: &Bound<'_, PyAny>, k: i64) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "triu")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.triu(ids[0], k)))
}

/// The diagonal of the last two axes, `offset` columns to the right.
#[pyfunction]
#[pyo3(signature = (x, offset=0))]
fn take_diagonal(x: &Bound<'_, PyAny>, offset: i64) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "take_diagonal")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.take_diagonal(ids[0], offset)))
}

/// A matrix with a vector as its diagonal, zero elsewhere.
#[pyfunction]
#[pyo3(signature = (x, offset=0))]
fn make_diagonal(x: &Bound<'_, PyAny>, offset: i64) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "make_diagonal")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.make_diagonal(ids[0], offset)))
}

/// A matrix with another diagonal.
#[pyfunction]
#[pyo3(signature = (x, diagonal, offset=0))]
fn put_diagonal(
    x: &Bound<'_, PyAny>,
    diagonal: &Bound<'_, PyAny>,
    offset: i64,
) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(diagonal, "put_diagonal")?, Value::of(x, "put_diagonal")?];
    apply(x.py(), &operands, |graph, ids| one(graph.put_diagonal(ids[1], ids[0], offset)))
}

/// Evenly spaced numbers.
#[pyfunction]
#[pyo3(signature = (start, stop, num, endpoint=true, dtype=None))]
fn linspace(
    py: Python<'_>,
    start: f64,
    stop: f64,
    num: usize,
    endpoint: bool,
    dtype: Option<DTypeArg>,
) -> PyResult<Py<PyAny>> {
    let dtype = dtype.map_or(DType::F32, |dtype| dtype.0);
    apply(py, &[], |graph, _| one(graph.linspace(start, stop, num, endpoint, dtype)))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module: iota, eye, full, tri, tril, triu, take_diagonal, make_diagonal,
        put_diagonal, linspace);
    Ok(())
}
