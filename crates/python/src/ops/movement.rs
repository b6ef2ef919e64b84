//! Functions that move elements without computing.

use nxla_runtime::graph::Padding;
use nxla_runtime::graph::build::OuterPadding;
use nxla_runtime::host::AxisName;
use pyo3::prelude::*;

use super::args::{Axis, AxisList, NamesArg, ShapeArg, axes_of, count, counts, rows, sizes};
use super::functions;
use crate::apply::{Ids, apply, apply_all, many, one};
use crate::errors::argument_error;
use crate::value::{FromPython, Value};

/// The axes in reverse order.
pub(crate) fn reversed_axes(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "transpose")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.transpose(ids[0], None)))
}

/// The same elements under another shape; one size may be -1.
#[pyfunction]
#[pyo3(signature = (x, shape, names=None))]
fn reshape(
    x: &Bound<'_, PyAny>,
    shape: &Bound<'_, PyAny>,
    names: Option<NamesArg>,
) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "reshape")?;
    let sizes: Vec<Option<usize>> = sizes(shape)?
        .into_iter()
        .map(|size| match size {
            -1 => Ok(None),
            size => usize::try_from(size).map(Some).map_err(|_| {
                argument_error("reshape", format!("a size must be at least -1, got {size}"))
            }),
        })
        .collect::<PyResult<_>>()?;
    let names = names.and_then(|names| names.names());
    apply(x.py(), &[operand], |graph, ids| {
        let reshaped = graph.reshape_auto(ids[0], &sizes)?;
        match names {
            Some(names) => one(graph.rename(reshaped, Some(names))),
            None => one(Ok::<_, nxla_runtime::Error>(reshaped)),
        }
    })
}

/// The same tensor with other names for its axes.
#[pyfunction]
fn rename(x: &Bound<'_, PyAny>, names: NamesArg) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "rename")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.rename(ids[0], names.names())))
}

/// Without axes of size 1.
#[pyfunction]
#[pyo3(signature = (x, axes=None))]
fn squeeze(x: &Bound<'_, PyAny>, axes: Option<AxisList>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "squeeze")?;
    apply(x.py(), &[operand], |graph, ids| {
        let axes = axes_of(&axes, graph, "squeeze", ids[0])?;
        one(graph.squeeze(ids[0], axes.as_deref()))
    })
}

/// With a new axis of size 1.
#[pyfunction]
#[pyo3(signature = (x, axis, name=None))]
fn new_axis(x: &Bound<'_, PyAny>, axis: i64, name: Option<String>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "new_axis")?;
    let name = name.map(AxisName::from);
    apply(x.py(), &[operand], |graph, ids| one(graph.new_axis(ids[0], axis, name)))
}

/// The axes in another order, reversed if none is given.
#[pyfunction]
#[pyo3(signature = (x, axes=None))]
fn transpose(x: &Bound<'_, PyAny>, axes: Option<AxisList>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "transpose")?;
    apply(x.py(), &[operand], |graph, ids| {
        let axes = axes_of(&axes, graph, "transpose", ids[0])?;
        one(graph.transpose(ids[0], axes.as_deref()))
    })
}

/// Elements in reverse order along axes, all if none is given.
#[pyfunction]
#[pyo3(signature = (x, axes=None))]
fn reverse(x: &Bound<'_, PyAny>, axes: Option<AxisList>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "reverse")?;
    apply(x.py(), &[operand], |graph, ids| {
        let axes = axes_of(&axes, graph, "reverse", ids[0])?;
        one(graph.reverse(ids[0], axes.as_deref()))
    })
}

/// Repeated to a shape; `axes` says where each axis of the operand goes.
#[pyfunction]
#[pyo3(signature = (x, shape, axes=None, names=None))]
fn broadcast(
    x: &Bound<'_, PyAny>,
    shape: ShapeArg,
    axes: Option<Vec<i64>>,
    names: Option<NamesArg>,
) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "broadcast")?;
    let names = names.and_then(|names| names.names());
    apply(x.py(), &[operand], |graph, ids| {
        one(graph.broadcast_and_name(ids[0], shape.0, axes.as_deref(), names))
    })
}

/// With a tensor's own elements beyond the ends of each axis: `(low, high)` for each.
#[pyfunction]
fn pad_outer(x: &Bound<'_, PyAny>, rule: &str, widths: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let name = "pad_outer";
    let Some(rule) = OuterPadding::ALL.into_iter().find(|known| known.name() == rule) else {
        let known = OuterPadding::ALL.map(OuterPadding::name).join(", ");
        let why = format!("there is no rule {rule:?}; there are {known}, or a number");
        return Err(argument_error(name, why));
    };
    let widths: Vec<(usize, usize)> = rows::<2>(widths)?
        .into_iter()
        .map(|[low, high]| Ok((count(name, "a width", low)?, count(name, "a width", high)?)))
        .collect::<PyResult<_>>()?;
    let operand = Value::of(x, name)?;
    apply(x.py(), &[operand], |graph, ids| one(graph.pad_outer(ids[0], rule, &widths)))
}

/// With a value around and between elements: `(low, high, interior)` for each axis.
#[pyfunction]
fn pad(
    x: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    config: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(value, "pad")?, Value::of(x, "pad")?];
    let padding: Vec<Padding> = rows::<3>(config)?
        .into_iter()
        .map(|[low, high, interior]| {
            Ok(Padding { low, high, interior: count("pad", "the interior", interior)? })
        })
        .collect::<PyResult<_>>()?;
    apply(x.py(), &operands, |graph, ids| one(graph.pad(ids[1], ids[0], &padding)))
}

fn values(parts: &[Bound<'_, PyAny>], function: &str) -> PyResult<Vec<Value>> {
    parts.iter().map(|part| Value::of(part, function)).collect()
}

/// Tensors joined along an axis.
#[pyfunction]
#[pyo3(signature = (parts, axis=Axis::Number(0)))]
fn concatenate(py: Python<'_>, parts: Vec<Bound<'_, PyAny>>, axis: Axis) -> PyResult<Py<PyAny>> {
    let operands = values(&parts, "concatenate")?;
    apply(py, &operands, |graph, ids| {
        let axis = match ids.first() {
            Some(&first) => axis.of(graph, "concatenate", first)?,
            None => 0,
        };
        one(graph.concatenate(ids, axis))
    })
}

/// Tensors joined along a new axis.
#[pyfunction]
#[pyo3(signature = (parts, axis=0, name=None))]
fn stack(
    py: Python<'_>,
    parts: Vec<Bound<'_, PyAny>>,
    axis: i64,
    name: Option<String>,
) -> PyResult<Py<PyAny>> {
    let operands = values(&parts, "stack")?;
    let name = name.map(AxisName::from);
    apply(py, &operands, |graph, ids| one(graph.stack(ids, axis, name)))
}

/// The parts before and from an index on along an axis.
#[pyfunction]
#[pyo3(signature = (x, index, axis=Axis::Number(0)))]
fn split_at(x: &Bound<'_, PyAny>, index: i64, axis: Axis) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let py = x.py();
    let operand = Value::of(x, "split")?;
    let mut parts = apply_all(py, &[operand], |graph, ids| {
        let axis = axis.of(graph, "split", ids[0])?;
        let (left, right) = graph.split(ids[0], index, axis)?;
        many(Ok::<_, nxla_runtime::Error>([left, right]))
    })?;
    let right = parts.pop().expect("two parts");
    Ok((parts.pop().expect("two parts"), right))
}

/// Axes merged into one, all if none is given.
#[pyfunction]
#[pyo3(signature = (x, axes=None))]
fn flatten(x: &Bound<'_, PyAny>, axes: Option<AxisList>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "flatten")?;
    apply(x.py(), &[operand], |graph, ids| {
        let axes = axes_of(&axes, graph, "flatten", ids[0])?;
        one(graph.flatten(ids[0], axes.as_deref()))
    })
}

/// Repeated along each axis.
#[pyfunction]
fn tile(x: &Bound<'_, PyAny>, repetitions: Vec<i64>) -> PyResult<Py<PyAny>> {
    let repetitions = counts("tile", "repetitions", &repetitions)?;
    let operand = Value::of(x, "tile")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.tile(ids[0], &repetitions)))
}

/// Operands broadcast to a common shape.
#[pyfunction]
fn broadcast_together(py: Python<'_>, operands: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Py<PyAny>>> {
    let operands = values(&operands, "broadcast_arrays")?;
    let results = apply_all(py, &operands, |graph, ids| {
        let mut shape = nxla_runtime::Shape::scalar();
        for &id in ids {
            shape =
                nxla_runtime::host::broadcast_shapes(&shape, graph.shape(id)).map_err(|error| {
                    graph.error("broadcast_arrays", nxla_runtime::graph::ErrorKind::from(error))
                })?;
        }
        let mut results = Ids::new();
        for &id in ids {
            results.push(graph.broadcast(id, shape.clone(), None)?);
        }
        Ok(results)
    })?;
    Ok(results.into_iter().collect())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module: reshape, rename, squeeze, new_axis, transpose, reverse, broadcast, pad,
        pad_outer, concatenate, stack, split_at, flatten, tile, broadcast_together);
    Ok(())
}
