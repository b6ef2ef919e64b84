//! Vectorized axes: creation, removal and alignment.

use nxla_runtime::host::Names;
use nxla_runtime::vectors::{self, EntryAxes, NewVector, VectorAxes, VectorAxis};
use nxla_runtime::{RawExpr, RawTensor, Trace};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::add_functions;
use super::args::{Integer, NamesArg, sizes};
use super::declare::Converted;
use super::movement::resolve_sizes;
use crate::apply::{capture, number_tensor};
use crate::derivative::{Values, leaves, wrap};
use crate::errors::{OrRaise, trace_error, user_error};
use crate::expr::PyExpr;
use crate::source;
use crate::tensor::PyTensor;
use crate::value::{FromPython, Value};

/// Vectorized axes as Python shows them: pairs of a name and a size.
pub(crate) fn vectors_to_python<'py>(
    py: Python<'py>,
    vectors: &VectorAxes,
) -> PyResult<Bound<'py, PyTuple>> {
    let pairs = vectors.iter().map(|axis| (&*axis.name, axis.size).into_pyobject(py));
    PyTuple::new(py, pairs.collect::<Result<Vec<_>, _>>()?)
}

/// Vectorized axes of these names and sizes.
pub(crate) fn vectors_of(axes: Vec<(String, usize)>) -> VectorAxes {
    VectorAxes::new(axes.into_iter().map(|(name, size)| VectorAxis { name: name.into(), size }))
}

/// A handle: a number becomes a tensor.
enum Handle {
    Expr(RawExpr),
    Tensor(RawTensor),
}

impl Handle {
    fn of(value: &Bound<'_, PyAny>, function: &str) -> PyResult<Self> {
        Ok(match Value::of(value, function)? {
            Value::Expr(expr) => {
                source::mark(value.py(), expr.trace())?;
                Handle::Expr(expr)
            }
            Value::Tensor(tensor) => Handle::Tensor(tensor),
            Value::Number(number) => Handle::Tensor(number_tensor(number, None).or_raise()?),
        })
    }

    fn wrap(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Handle::Expr(expr) => PyExpr::wrap(py, expr),
            Handle::Tensor(tensor) => PyTensor::wrap(py, tensor),
        }
    }
}

fn new_vectors(axes: Vec<(String, Option<usize>)>) -> Vec<NewVector> {
    axes.into_iter().map(|(name, size)| NewVector { name: name.into(), size }).collect()
}

/// The first axes, vectorized.
#[pyfunction]
fn vectorize(x: &Bound<'_, PyAny>, axes: Vec<(String, Option<usize>)>) -> PyResult<Py<PyAny>> {
    let axes = new_vectors(axes);
    let result = match Handle::of(x, "vectorize")? {
        Handle::Expr(expr) => Handle::Expr(expr.vectorize(&axes).or_raise()?),
        Handle::Tensor(tensor) => Handle::Tensor(tensor.vectorize(&axes).or_raise()?),
    };
    result.wrap(x.py())
}

/// Vectorized axes as ordinary ones in front.
#[pyfunction]
#[pyo3(signature = (x, keep_names=true))]
fn devectorize(x: &Bound<'_, PyAny>, keep_names: bool) -> PyResult<Py<PyAny>> {
    let result = match Handle::of(x, "devectorize")? {
        Handle::Expr(expr) => Handle::Expr(expr.devectorize(keep_names).or_raise()?),
        Handle::Tensor(tensor) => Handle::Tensor(tensor.devectorize(keep_names).or_raise()?),
    };
    result.wrap(x.py())
}

/// The elements with other vectorized axes and another shape; a size of -1 is inferred.
#[pyfunction]
#[pyo3(signature = (x, axes, shape=None, names=None))]
fn revectorize(
    x: &Bound<'_, PyAny>,
    axes: Vec<(String, Option<usize>)>,
    shape: Option<&Bound<'_, PyAny>>,
    names: Option<NamesArg>,
) -> PyResult<Py<PyAny>> {
    let shape = match shape {
        Some(shape) => Some(resolve_sizes("revectorize", sizes(shape)?).or_raise()?),
        None => None,
    };
    let names =
        names.map(|names| names.names().unwrap_or_else(|| Names::without_names(names.0.len())));
    let (axes, target) = (new_vectors(axes), EntryAxes { shape, names });
    let result = match Handle::of(x, "revectorize")? {
        Handle::Expr(expr) => Handle::Expr(expr.revectorize(&axes, &target).or_raise()?),
        Handle::Tensor(tensor) => Handle::Tensor(tensor.revectorize(&axes, &target).or_raise()?),
    };
    result.wrap(x.py())
}

/// Values with the same vectorized axes, of size 1 or broadcast.
#[pyfunction]
fn align_vectors(
    py: Python<'_>,
    values: Vec<Bound<'_, PyAny>>,
    align_ranks: bool,
    repeat: bool,
) -> PyResult<Vec<Py<PyAny>>> {
    let function = if repeat { "broadcast_vectors" } else { "reshape_vectors" };
    let handles: Vec<Handle> =
        values.iter().map(|value| Handle::of(value, function)).collect::<PyResult<_>>()?;
    let trace = handles.iter().find_map(|handle| match handle {
        Handle::Expr(expr) => Some(expr.trace().clone()),
        Handle::Tensor(_) => None,
    });
    let results: Vec<Handle> = match trace {
        None => {
            let tensors: Vec<RawTensor> = handles
                .into_iter()
                .filter_map(|handle| match handle {
                    Handle::Tensor(tensor) => Some(tensor),
                    Handle::Expr(_) => None,
                })
                .collect();
            let aligned = py.detach(|| {
                if repeat {
                    RawTensor::broadcast_vectors(&tensors, align_ranks)
                } else {
                    RawTensor::reshape_vectors(&tensors, align_ranks)
                }
            });
            aligned.or_raise()?.into_iter().map(Handle::Tensor).collect()
        }
        Some(trace) => {
            let exprs: Vec<RawExpr> = handles
                .into_iter()
                .map(|handle| match handle {
                    Handle::Expr(expr) => Ok(expr),
                    Handle::Tensor(tensor) => capture(py, &trace, &tensor),
                })
                .collect::<PyResult<_>>()?;
            let aligned = if repeat {
                RawExpr::broadcast_vectors(&exprs, align_ranks)
            } else {
                RawExpr::reshape_vectors(&exprs, align_ranks)
            };
            aligned.or_raise()?.into_iter().map(Handle::Expr).collect()
        }
    };
    results.into_iter().map(|handle| handle.wrap(py)).collect()
}

/// Calls a function of one entry for all entries along axes of values of the current trace; returns
/// its results, with the entries along `out_axis`.
#[pyfunction]
fn map_entries(
    py: Python<'_>,
    values: Vec<Bound<'_, PyAny>>,
    axes: Converted<Vec<Option<Integer>>>,
    out_axis: Converted<Integer>,
    function: &Bound<'_, PyAny>,
) -> PyResult<Values> {
    let names = ["in_axes", "out_axes"];
    let axes = axes.value(py, "vmap", names[0])?;
    let Integer(out_axis) = out_axis.value(py, "vmap", names[1])?;
    let axes: Vec<_> = axes.into_iter().map(|axis| axis.map(|Integer(axis)| axis)).collect();
    let Some(trace) = Trace::current() else {
        return Err(trace_error("vmap: must be called in a traced function"));
    };
    let values = leaves(&trace, "vmap", values)?;
    source::mark(py, &trace)?;
    let call = |entries| {
        let results: Vec<Bound<'_, PyAny>> = function.call1((wrap(py, entries)?,))?.extract()?;
        let results = leaves(&trace, "vmap", results)?;
        source::mark(py, &trace)?;
        Ok((results, ()))
    };
    let call = |entries| call(entries).map_err(user_error);
    let (results, ()) = vectors::map_entries(&values, &axes, out_axis, names, call).or_raise()?;
    wrap(py, results)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_functions!(module: map_entries, vectorize, devectorize, revectorize, align_vectors);
    Ok(())
}
