//! Linear algebra and Fourier transforms.

use nxla_runtime::graph::build::Norm;
use nxla_runtime::graph::{Transform, TriangularSolve};
use pyo3::prelude::*;

use super::args::{Axis, AxisList, axes_of};
use super::functions;
use crate::apply::{apply, apply_parts, many, one};
use crate::errors::argument_error;
use crate::value::{FromPython, Value};

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

macro_rules! transforms_of_axes {
    ($($(#[$doc:meta])* $function:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (x, lengths=None, axes=None))]
            fn $function(
                x: &Bound<'_, PyAny>,
                lengths: Option<Vec<usize>>,
                axes: Option<AxisList>,
            ) -> PyResult<Py<PyAny>> {
                let operand = Value::of(x, stringify!($function))?;
                apply(x.py(), &[operand], |graph, ids| {
                    let axes = axes_of(&axes, graph, stringify!($function), ids[0])?;
                    one(graph.$function(ids[0], lengths.as_deref(), axes.as_deref()))
                })
            }
        )*
    };
}

transforms_of_axes! {
    /// The discrete Fourier transform along several axes.
    fftn;
    /// The inverse of `fftn`.
    ifftn;
    /// The non-redundant half of the transform of real numbers along several axes.
    rfftn;
    /// The inverse of `rfftn`.
    irfftn;
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

/// The order of a norm: a number, or a name.
#[derive(FromPyObject)]
enum Order {
    Number(f64),
    Name(String),
}

impl Order {
    fn norm(&self) -> PyResult<Norm> {
        match self {
            Order::Number(f64::INFINITY) => Ok(Norm::Max),
            Order::Number(f64::NEG_INFINITY) => Ok(Norm::Min),
            Order::Number(power) => Ok(Norm::Power(*power)),
            Order::Name(name) if name == "fro" => Ok(Norm::Euclid),
            Order::Name(name) if name == "nuc" => Ok(Norm::Nuclear),
            Order::Name(name) => {
                let why = format!("ord must be a number, \"fro\" or \"nuc\", got {name:?}");
                Err(argument_error("norm", why))
            }
        }
    }
}

/// A vector or matrix norm.
#[pyfunction]
#[pyo3(signature = (x, order=None, axes=None, keep_axes=false))]
fn norm(
    x: &Bound<'_, PyAny>,
    order: Option<Order>,
    axes: Option<AxisList>,
    keep_axes: bool,
) -> PyResult<Py<PyAny>> {
    let norm = order.map_or(Ok(Norm::Euclid), |order| order.norm())?;
    let operand = Value::of(x, "norm")?;
    apply(x.py(), &[operand], |graph, ids| {
        let axes = axes_of(&axes, graph, "norm", ids[0])?;
        one(graph.norm(ids[0], norm, axes.as_deref(), keep_axes))
    })
}

type Parts = Vec<Py<PyAny>>;

/// `p`, `l` and `u` of square matrices.
#[pyfunction]
fn lu(a: &Bound<'_, PyAny>) -> PyResult<Parts> {
    let operand = Value::of(a, "lu")?;
    apply_parts(a.py(), &[operand], |graph, ids| many(graph.lu(ids[0]).map(|(p, l, u)| [p, l, u])))
}

/// `q` and `r` of matrices.
#[pyfunction]
fn qr(a: &Bound<'_, PyAny>, complete: bool) -> PyResult<Parts> {
    let operand = Value::of(a, "qr")?;
    apply_parts(a.py(), &[operand], |graph, ids| {
        many(graph.qr(ids[0], complete).map(|(q, r)| [q, r]))
    })
}

/// Eigenvalues and eigenvectors of Hermitian matrices.
#[pyfunction]
fn eigh(a: &Bound<'_, PyAny>) -> PyResult<Parts> {
    let operand = Value::of(a, "eigh")?;
    apply_parts(a.py(), &[operand], |graph, ids| many(graph.eigh(ids[0]).map(|(w, v)| [w, v])))
}

/// Singular vectors and values of matrices.
#[pyfunction]
fn svd(a: &Bound<'_, PyAny>, full: bool) -> PyResult<Parts> {
    let operand = Value::of(a, "svd")?;
    apply_parts(a.py(), &[operand], |graph, ids| {
        many(graph.svd(ids[0], full).map(|(u, s, vh)| [u, s, vh]))
    })
}

/// The sign and the logarithm of the magnitude of determinants.
#[pyfunction]
fn slogdet(a: &Bound<'_, PyAny>) -> PyResult<Parts> {
    let operand = Value::of(a, "slogdet")?;
    apply_parts(a.py(), &[operand], |graph, ids| {
        many(graph.slogdet(ids[0]).map(|(sign, logarithm)| [sign, logarithm]))
    })
}

macro_rules! of_matrices {
    ($($(#[$doc:meta])* $function:ident($($argument:ident: $ty:ty),*);)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $function(a: &Bound<'_, PyAny>, $($argument: $ty),*) -> PyResult<Py<PyAny>> {
                let operand = Value::of(a, stringify!($function))?;
                apply(a.py(), &[operand], |graph, ids| {
                    one(graph.$function(ids[0], $($argument),*))
                })
            }
        )*
    };
}

of_matrices! {
    /// The inverse of square matrices.
    invert();
    /// The determinant of square matrices.
    determinant();
    /// Square matrices multiplied with themselves.
    matrix_power(power: i64);
    /// The number of singular values above a multiple of the largest one.
    matrix_rank(relative: Option<f64>);
    /// The singular values of matrices.
    singular_values();
    /// The pseudo-inverse of matrices.
    pinv(relative: Option<f64>);
    /// The sum of a diagonal of matrices.
    trace(offset: i64);
}

/// Solves systems of linear equations.
#[pyfunction]
fn solve(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(a, "solve")?, Value::of(b, "solve")?];
    apply(a.py(), &operands, |graph, ids| one(graph.solve(ids[0], ids[1])))
}

/// The solution of least norm among those with the least error.
#[pyfunction]
fn least_squares(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    relative: Option<f64>,
) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(a, "least_squares")?, Value::of(b, "least_squares")?];
    apply(a.py(), &operands, |graph, ids| one(graph.least_squares(ids[0], ids[1], relative)))
}

/// The cross product of vectors of three elements.
#[pyfunction]
fn cross(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>, axis: i64) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "cross")?, Value::of(y, "cross")?];
    apply(x.py(), &operands, |graph, ids| one(graph.cross(ids[0], ids[1], axis)))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module: fft, ifft, rfft, irfft, fftn, ifftn, rfftn, irfftn, triangular_solve, cholesky,
        adjoint, norm, lu, qr, eigh, svd, slogdet, invert, determinant, matrix_power, matrix_rank,
        singular_values, pinv, trace, solve, least_squares, cross,
    );
    Ok(())
}
