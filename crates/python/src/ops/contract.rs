//! Products that contract axes.

use nxla_runtime::graph::build::{ConvOptions, WindowPadding};
use nxla_runtime::graph::{ExprId, Graph};
use pyo3::prelude::*;

use super::args::{AxisList, axes_of, count};
use super::functions;
use super::window::{PaddingArg, PerAxis};
use crate::apply::{Built, apply, one};
use crate::errors::user_error;
use crate::value::{FromPython, Value};

/// `x @ y` of the Array API: matrices in the last two axes, the others broadcast.
fn matmul_of(graph: &mut Graph, ids: &[ExprId]) -> Built {
    one(graph.matmul(ids[0], ids[1]))
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
