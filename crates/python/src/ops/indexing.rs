//! `x[...]`: ints, ranges, new axes, ellipses, traced indices and index tensors.
//!
//! Everything becomes one slice (with strides) and one squeeze, as in Nx; a tensor of indices
//! takes from its axis.

use nxla_runtime::graph::ExprId;
use nxla_runtime::graph::build::SliceStart;
use nxla_runtime::{Error, Shape};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyInt, PyList, PySlice, PyTuple};

use crate::apply::{apply, one};
use crate::errors::argument_error;
use crate::expr::PyExpr;
use crate::source::current_line;
use crate::tensor::PyTensor;
use crate::value::{FromPython, Value};

/// What is done with one axis.
enum Step {
    /// One index; the axis goes.
    At(i64),
    /// A scalar known when the program runs; the axis goes.
    Dynamic(usize),
    /// `start, length, stride`, and whether the order is reversed.
    Range(i64, usize, usize, bool),
    /// Elements by index; the axis becomes those of the operand.
    Take(usize),
}

/// A subscript, read.
#[derive(Default)]
struct Plan {
    steps: Vec<Step>,
    /// Positions of new axes in the result, as if each axis of the operand stayed.
    new_axes: Vec<usize>,
    operands: Vec<Value>,
}

/// The shape of a tensor or a traced value.
fn shape_of(value: &Value) -> Shape {
    match value {
        Value::Expr(expr) => expr.shape(),
        Value::Tensor(tensor) => tensor.shape().clone(),
        Value::Number(_) => Shape::scalar(),
    }
}

/// `x[key]`.
pub(crate) fn get_item(x: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "index")?;
    let shape = shape_of(&operand);
    let plan = read(&shape, key)?;
    let mut operands = vec![operand];
    operands.extend(plan.operands.iter().cloned());
    apply(x.py(), &operands, |graph, ids| one(run(graph, &plan, &shape, ids)))
}

/// Why there is no `x[key] = value`, nor `del x[key]`.
pub(crate) fn set_item(py: Python<'_>) -> PyErr {
    let line = current_line(py).map(|line| format!(" ({line})")).unwrap_or_default();
    PyTypeError::new_err(format!(
        "a tensor does not change; use x = nx.put_slice(x, start, values), \
         x = nx.indexed_put(x, indices, values) or x = nx.where(condition, values, x) instead of \
         assigning to its elements{line}"
    ))
}

fn read(shape: &[usize], key: &Bound<'_, PyAny>) -> PyResult<Plan> {
    let items: Vec<Bound<'_, PyAny>> = match key.cast::<PyTuple>() {
        Ok(items) => items.iter().collect(),
        Err(_) => vec![key.clone()],
    };
    let is_new = |item: &Bound<'_, PyAny>| item.is_none();
    let is_ellipsis = |item: &Bound<'_, PyAny>| item.is_instance_of::<PyEllipsis>();
    let given = items.iter().filter(|item| !is_new(item) && !is_ellipsis(item)).count();
    if given > shape.len() {
        let why = format!("{given} indices for {} axes", shape.len());
        return Err(argument_error("index", why));
    }
    if items.iter().filter(|item| is_ellipsis(item)).count() > 1 {
        return Err(argument_error("index", "only one ... can stand in an index"));
    }
    let mut plan = Plan::default();
    let mut axis = 0;
    for item in &items {
        if is_new(item) {
            plan.new_axes.push(axis);
        } else if is_ellipsis(item) {
            for _ in given..shape.len() {
                plan.steps.push(Step::Range(0, shape[axis], 1, false));
                axis += 1;
            }
        } else {
            let step = read_item(&mut plan, item, axis, shape[axis])?;
            plan.steps.push(step);
            axis += 1;
        }
    }
    for &size in &shape[axis..] {
        plan.steps.push(Step::Range(0, size, 1, false));
    }
    Ok(plan)
}

fn read_item(plan: &mut Plan, item: &Bound<'_, PyAny>, axis: usize, size: usize) -> PyResult<Step> {
    let signed = i64::try_from(size).unwrap_or(i64::MAX);
    if item.is_instance_of::<PyInt>() && !item.is_instance_of::<pyo3::types::PyBool>() {
        let index: i64 = item.extract()?;
        let resolved = if index < 0 { index + signed } else { index };
        if !(0..signed).contains(&resolved) {
            let why = format!("index {index} is out of range for axis {axis} of size {size}");
            return Err(pyo3::exceptions::PyIndexError::new_err(why));
        }
        return Ok(Step::At(resolved));
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        let range = slice.indices(isize::try_from(size).unwrap_or(isize::MAX))?;
        let (start, step) = (range.start as i64, range.step as i64);
        let length = range.slicelength;
        if length == 0 {
            return Ok(Step::Range(0, 0, 1, false));
        }
        let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
        let span = (length - 1) * stride + 1;
        // A negative step takes the same elements from the other end, then reverses them.
        let first = if step < 0 { start - (span as i64 - 1) } else { start };
        return Ok(Step::Range(first, span, stride, step < 0));
    }
    let is_tensor = item.is_instance_of::<PyTensor>() || item.is_instance_of::<PyExpr>();
    let indices = match Value::try_of(item)? {
        Some(value) if is_tensor || item.is_instance_of::<PyList>() => value,
        Some(value @ Value::Tensor(_)) => value,
        _ => {
            let kind = item.get_type().name()?;
            return Err(argument_error("index", format!("cannot index with a {kind}")));
        }
    };
    let scalar = shape_of(&indices).rank() == 0;
    let dtype = match &indices {
        Value::Expr(expr) => expr.dtype(),
        Value::Tensor(tensor) => tensor.dtype(),
        Value::Number(_) => nxla_runtime::DType::S32,
    };
    if !dtype.is_integer() {
        let why = format!("indices must be integers, got {dtype}; nx.where selects by a mask");
        return Err(argument_error("index", why));
    }
    plan.operands.push(indices);
    let position = plan.operands.len();
    Ok(if scalar { Step::Dynamic(position) } else { Step::Take(position) })
}

/// Builds the slice, the squeeze, the reversal, the takes and the new axes of a subscript.
fn run(
    graph: &mut nxla_runtime::graph::Graph,
    plan: &Plan,
    shape: &[usize],
    ids: &[ExprId],
) -> Result<ExprId, Error> {
    let (mut starts, mut lengths, mut strides) = (Vec::new(), Vec::new(), Vec::new());
    let (mut squeezed, mut reversed) = (Vec::new(), Vec::new());
    for (axis, step) in plan.steps.iter().enumerate() {
        let signed = i64::try_from(axis).expect("an axis is small");
        let (start, length, stride) = match step {
            Step::At(index) => (SliceStart::from(*index), 1, 1),
            Step::Dynamic(position) => (SliceStart::from(ids[*position]), 1, 1),
            Step::Range(first, span, stride, _) => (SliceStart::from(*first), *span, *stride),
            Step::Take(_) => (SliceStart::from(0), shape[axis], 1),
        };
        match step {
            Step::At(_) | Step::Dynamic(_) => squeezed.push(signed),
            Step::Range(_, _, _, true) => reversed.push(signed),
            Step::Range(_, _, _, false) | Step::Take(_) => {}
        }
        starts.push(start);
        lengths.push(length);
        strides.push(stride);
    }
    let whole = plan.steps.iter().enumerate().all(|(axis, step)| match step {
        Step::Range(0, span, 1, false) => *span == shape[axis],
        Step::Take(_) => true,
        _ => false,
    });
    let mut x = ids[0];
    if !whole {
        x = graph.slice(x, &starts, &lengths, Some(&strides))?;
        if !reversed.is_empty() {
            x = graph.reverse(x, Some(&reversed))?;
        }
    }
    // From the last axis to the first, so that positions before stay what they are.
    for (axis, step) in plan.steps.iter().enumerate().rev() {
        if let Step::Take(position) = step {
            x = graph.take(x, ids[*position], i64::try_from(axis).expect("an axis is small"))?;
        }
    }
    finish(graph, plan, x, ids, &squeezed)
}

/// Squeezes single indices away and puts new axes in, counting the axes that index tensors add.
fn finish(
    graph: &mut nxla_runtime::graph::Graph,
    plan: &Plan,
    mut x: ExprId,
    ids: &[ExprId],
    squeezed: &[i64],
) -> Result<ExprId, Error> {
    let extra = |graph: &nxla_runtime::graph::Graph, before: usize| -> i64 {
        let steps = plan.steps[..before].iter();
        let added = steps.map(|step| match step {
            Step::Take(position) => graph.shape(ids[*position]).rank() as i64 - 1,
            Step::At(_) | Step::Dynamic(_) | Step::Range(..) => 0,
        });
        added.sum()
    };
    let shifted: Vec<i64> =
        squeezed.iter().map(|&axis| axis + extra(graph, axis as usize)).collect();
    if !shifted.is_empty() {
        x = graph.squeeze(x, Some(&shifted))?;
    }
    for (count, &axis) in plan.new_axes.iter().enumerate() {
        let gone = squeezed.iter().filter(|&&other| (other as usize) < axis).count() as i64;
        let position = axis as i64 + extra(graph, axis) - gone + count as i64;
        x = graph.new_axis(x, position, None)?;
    }
    Ok(x)
}

/// Iterates over the first axis.
pub(crate) fn iterate<'py, T>(x: &Bound<'py, T>) -> PyResult<Bound<'py, PyAny>> {
    let x = x.as_any();
    let length = x.len()?;
    let items: Vec<Bound<'py, PyAny>> =
        (0..length).map(|index| x.get_item(index)).collect::<PyResult<_>>()?;
    PyList::new(x.py(), items)?.into_any().call_method0("__iter__")
}
