//! Linear algebra and Fourier transforms.

use nxla::graph::build::Norm;
use nxla::graph::{Transform, TriangularSolve};
use pyo3::prelude::*;

use super::args::{Axis, AxisList, axes_of};
use super::functions;
use crate::apply::{apply, one};
use crate::errors::argument_error;
use crate::value::Value;

macro_rules! transforms {
    ($($(#[$doc:meta])* $function:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (x, length=None, axis=Axis::Number(-1)))]
            fn $function(
                x: &Bound<'_, PyAny>,
                length: Option<usize>,
                axis: Axis,
            ) -> PyResult<Py<PyAny>> {
                let operand = Value::of(x, stringify!($function))?;
                apply(x.py(), &[operand], |graph, ids| {
                    let axis = axis.of(graph, stringify!($function), ids[0])?;
                    one(graph.$function(ids[0], length, axis))
                })
            }
        )*
    };
}

transforms! {
    /// The discrete Fourier transform.
    fft;
    /// The inverse discrete Fourier transform.
    ifft;
    /// The non-redundant half of the transform of real numbers.
    rfft;
    /// The inverse of `rfft`.
    irfft;
}

/// Solves a triangular system.
#[pyfunction]
#[pyo3(signature = (a, b, lower=true, left_side=true, transform="none"))]
fn triangular_solve(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    lower: bool,
    left_side: bool,
    transform: &str,
) -> PyResult<Py<PyAny>> {
    let transform = match transform {
        "none" => Transform::None,
        "transpose" => Transform::Transpose,
        "conjugate" => Transform::Conjugate,
        other => {
            let why = format!(
                "transform must be \"none\", \"transpose\" or \"conjugate\", got {other:?}"
            );
            return Err(argument_error("triangular_solve", why));
        }
    };
    let operands = [Value::of(a, "triangular_solve")?, Value::of(b, "triangular_solve")?];
    let options = TriangularSolve { lower, left_side, transform };
    apply(a.py(), &operands, |graph, ids| one(graph.triangular_solve(ids[0], ids[1], options)))
}

/// The lower-triangular square root of a positive definite matrix.
#[pyfunction]
fn cholesky(a: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(a, "cholesky")?;
    apply(a.py(), &[operand], |graph, ids| one(graph.cholesky(ids[0])))
}

/// The conjugate transpose of the last two axes.
#[pyfunction]
fn adjoint(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "adjoint")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.adjoint(ids[0])))
}

/// A vector or matrix norm.
#[pyfunction]
#[pyo3(signature = (x, order=None, axes=None, keep_axes=false))]
fn norm(
    x: &Bound<'_, PyAny>,
    order: Option<f64>,
    axes: Option<AxisList>,
    keep_axes: bool,
) -> PyResult<Py<PyAny>> {
    let norm = match order {
        None => Norm::Euclid,
        Some(order) if order == f64::INFINITY => Norm::Max,
        Some(order) if order == f64::NEG_INFINITY => Norm::Min,
        Some(order) if order.fract() == 0.0 && order.abs() < 1e6 => Norm::Power(order as i32),
        Some(order) => {
            return Err(argument_error("norm", format!("there is no norm of order {order}")));
        }
    };
    let operand = Value::of(x, "norm")?;
    apply(x.py(), &[operand], |graph, ids| {
        let axes = axes_of(&axes, graph, "norm", ids[0])?;
        one(graph.norm(ids[0], norm, axes.as_deref(), keep_axes))
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(module: fft, ifft, rfft, irfft, triangular_solve, cholesky, adjoint, norm);
    Ok(())
}
