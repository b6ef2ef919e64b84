//! Products that contract axes.

use nxla::graph::build::{ConvOptions, WindowPadding};
use nxla::graph::{ErrorKind, ExprId, Graph};
use pyo3::prelude::*;

use super::args::{AxisList, axes_of, count};
use super::functions;
use super::window::{PaddingArg, PerAxis};
use crate::apply::{Built, apply, one};
use crate::errors::user_error;
use crate::value::Value;

/// `x @ y` of the Array API: matrices in the last two axes, the others broadcast.
fn matmul_of(graph: &mut Graph, ids: &[ExprId]) -> Built {
    let (x, y) = (ids[0], ids[1]);
    let (x_rank, y_rank) = (graph.shape(x).rank(), graph.shape(y).rank());
    if x_rank == 0 || y_rank == 0 {
        let (found, expected) = ("a scalar".into(), "at least one axis".into());
        let argument = if x_rank == 0 { "left" } else { "right" };
        let kind = ErrorKind::Shape { argument, found, expected };
        return Err(graph.error("matmul", kind).into());
    }
    if x_rank <= 2 && y_rank <= 2 {
        return one(graph.dot(x, y));
    }
    let batch = |graph: &Graph, id: ExprId| -> Vec<usize> {
        let shape = graph.shape(id);
        shape[..shape.rank().saturating_sub(2)].to_vec()
    };
    let common = nxla::host::broadcast_shapes(&batch(graph, x), &batch(graph, y))
        .map_err(|error| graph.error("matmul", ErrorKind::from(error)))?;
    // A vector is a matrix of one row (left) or one column (right) for the time being.
    let left = if x_rank == 1 { graph.new_axis(x, 0, None)? } else { x };
    let right = if y_rank == 1 { graph.new_axis(y, 1, None)? } else { y };
    let spread = |graph: &mut Graph, id: ExprId| {
        let mut shape = common.clone();
        let own = graph.shape(id);
        let matrix = [own[own.rank() - 2], own[own.rank() - 1]];
        matrix.iter().for_each(|&size| shape.push(size));
        graph.broadcast(id, shape, None)
    };
    let (left, right) = (spread(graph, left)?, spread(graph, right)?);
    let batch: Vec<i64> = (0..common.rank() as i64).collect();
    let result = graph.dot_general(left, &[-1], &batch, right, &[-2], &batch)?;
    let mut vectors = Vec::new();
    if x_rank == 1 {
        vectors.push(-2);
    }
    if y_rank == 1 {
        vectors.push(-1);
    }
    if vectors.is_empty() {
        return one(Ok::<_, nxla::Error>(result));
    }
    one(graph.squeeze(result, Some(&vectors)))
}

/// The operator `@`.
pub(crate) fn matmul_operator(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    match (Value::try_of(x)?, Value::try_of(y)?) {
        (Some(left), Some(right)) => apply(x.py(), &[left, right], matmul_of),
        _ => Ok(x.py().NotImplemented()),
    }
}

/// The matrix product, other axes broadcasting.
#[pyfunction]
fn matmul(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    apply(x.py(), &[Value::of(x, "matmul")?, Value::of(y, "matmul")?], matmul_of)
}

/// The dot product by Nx's rules, or over given axes.
#[pyfunction]
#[pyo3(signature = (x, y, x_contract=None, y_contract=None, x_batch=None, y_batch=None))]
fn dot(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    x_contract: Option<AxisList>,
    y_contract: Option<AxisList>,
    x_batch: Option<AxisList>,
    y_batch: Option<AxisList>,
) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "dot")?, Value::of(y, "dot")?];
    apply(x.py(), &operands, |graph, ids| {
        let given =
            [&x_contract, &y_contract, &x_batch, &y_batch].iter().any(|axes| axes.is_some());
        if !given {
            return one(graph.dot(ids[0], ids[1]));
        }
        let axes = |axes: &Option<AxisList>, graph: &Graph, id| {
            axes_of(axes, graph, "dot", id).map(Option::unwrap_or_default)
        };
        let (x_contract, x_batch) =
            (axes(&x_contract, graph, ids[0])?, axes(&x_batch, graph, ids[0])?);
        let (y_contract, y_batch) =
            (axes(&y_contract, graph, ids[1])?, axes(&y_batch, graph, ids[1])?);
        one(graph.dot_general(ids[0], &x_contract, &x_batch, ids[1], &y_contract, &y_batch))
    })
}

/// Every element of one times every element of the other.
#[pyfunction]
fn outer(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "outer")?, Value::of(y, "outer")?];
    apply(x.py(), &operands, |graph, ids| one(graph.outer(ids[0], ids[1])))
}

/// The convolution; see the Python function for the layout.
#[pyfunction]
#[pyo3(signature = (input, kernel, strides=None, padding=None, input_dilation=None,
    kernel_dilation=None, feature_groups=1, batch_groups=1, input_permutation=None,
    kernel_permutation=None, output_permutation=None))]
fn conv(
    input: &Bound<'_, PyAny>,
    kernel: &Bound<'_, PyAny>,
    strides: Option<PerAxis>,
    padding: Option<PaddingArg>,
    input_dilation: Option<PerAxis>,
    kernel_dilation: Option<PerAxis>,
    feature_groups: i64,
    batch_groups: i64,
    input_permutation: Option<AxisList>,
    kernel_permutation: Option<AxisList>,
    output_permutation: Option<AxisList>,
) -> PyResult<Py<PyAny>> {
    let feature_groups = count("conv", "feature_groups", feature_groups)?;
    let batch_groups = count("conv", "batch_groups", batch_groups)?;
    let operands = [Value::of(input, "conv")?, Value::of(kernel, "conv")?];
    apply(input.py(), &operands, |graph, ids| {
        let spatial = graph.shape(ids[0]).rank().saturating_sub(2);
        let per_axis = |argument: &str, given: Option<PerAxis>| {
            let numbers = given.map(|given| given.repeated("conv", argument, spatial));
            numbers.transpose().map_err(user_error)
        };
        let options = ConvOptions {
            strides: per_axis("strides", strides)?,
            padding: padding.map_or(WindowPadding::Valid, |padding| padding.0),
            input_dilation: per_axis("input_dilation", input_dilation)?,
            kernel_dilation: per_axis("kernel_dilation", kernel_dilation)?,
            feature_groups,
            batch_groups,
            input_permutation: axes_of(&input_permutation, graph, "conv", ids[0])?,
            kernel_permutation: axes_of(&kernel_permutation, graph, "conv", ids[1])?,
            output_permutation: axes_of(&output_permutation, graph, "conv", ids[0])?,
        };
        one(graph.conv(ids[0], ids[1], &options))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module: matmul, dot, outer, conv);
    Ok(())
}
