//! Element-wise functions: one for each row of the op table, and what Python adds.

use nxla_runtime::DType;
use nxla_runtime::graph::{BinaryOp, ExprId, Graph, Op, UnaryOp, for_each_binary, for_each_unary};
use pyo3::prelude::*;

use super::functions;
use crate::apply::{Built, apply, number_tensor, one};
use crate::dtype::DTypeArg;
use crate::errors::{OrRaise, argument_error};
use crate::value::{FromPython, Value};

/// Applies a unary op.
pub(crate) fn unary(x: &Bound<'_, PyAny>, op: UnaryOp) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, op.name())?;
    apply(x.py(), &[operand], |graph, ids| one(graph.make(Op::Unary(op), ids)))
}

fn binary(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>, op: BinaryOp) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, op.name())?, Value::of(y, op.name())?];
    apply(x.py(), &operands, |graph, ids| one(graph.make(Op::Binary(op), ids)))
}

macro_rules! unary_functions {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $domain:tt;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $method(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                unary(x, UnaryOp::$variant)
            }
        )*

        fn register_unary(module: &Bound<'_, PyModule>) -> PyResult<()> {
            functions!(module: $($method),*);
            Ok(())
        }
    };
}
for_each_unary!(unary_functions);

macro_rules! binary_functions {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*);)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $method(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                binary(x, y, BinaryOp::$variant)
            }
        )*

        fn register_binary(module: &Bound<'_, PyModule>) -> PyResult<()> {
            functions!(module: $($method),*);
            Ok(())
        }
    };
}
for_each_binary!(binary_functions);

/// Python's `//`: the quotient rounded down, in the promoted dtype.
pub(crate) fn floor_divide_operator(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    operator(x, y, floor_divide_of)
}

/// Python's `%`: what `//` leaves, with the sign of the divisor.
pub(crate) fn remainder_operator(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    operator(x, y, floor_remainder_of)
}

/// An operator leaves operands that it does not know to the other side.
fn operator(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    build: fn(&mut Graph, &[ExprId]) -> Built,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    match (Value::try_of(x)?, Value::try_of(y)?) {
        (Some(x), Some(y)) => apply(py, &[x, y], build),
        _ => Ok(py.NotImplemented()),
    }
}

fn floor_divide_of(graph: &mut Graph, ids: &[ExprId]) -> Built {
    one(graph.floor_divide(ids[0], ids[1]))
}

fn floor_remainder_of(graph: &mut Graph, ids: &[ExprId]) -> Built {
    one(graph.floor_remainder(ids[0], ids[1]))
}

/// The quotient rounded toward minus infinity.
#[pyfunction]
fn floor_divide(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "floor_divide")?, Value::of(y, "floor_divide")?];
    apply(x.py(), &operands, floor_divide_of)
}

/// What `floor_divide` leaves; it has the sign of the divisor.
#[pyfunction]
fn floor_remainder(x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "remainder")?, Value::of(y, "remainder")?];
    apply(x.py(), &operands, floor_remainder_of)
}

/// The nearest integer, halves to the even one.
#[pyfunction]
fn round_half_even(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "round")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.round_half_even(ids[0])))
}

/// Whether all elements are as near as `absolute + relative * |y|`.
#[pyfunction]
fn all_close(
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    relative: f64,
    absolute: f64,
    equal_nan: bool,
) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "all_close")?, Value::of(y, "all_close")?];
    apply(x.py(), &operands, |graph, ids| {
        one(graph.all_close(ids[0], ids[1], relative, absolute, equal_nan))
    })
}

/// `on_true` where `predicate` is non-zero, else `on_false`.
#[pyfunction]
fn select(
    predicate: &Bound<'_, PyAny>,
    on_true: &Bound<'_, PyAny>,
    on_false: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let branches = [Value::of(on_true, "select")?, Value::of(on_false, "select")?];
    let [on_true, on_false] = nxla_runtime::either(branches).or_raise()?;
    let operands = [Value::of(predicate, "select")?, on_true, on_false];
    apply(predicate.py(), &operands, |graph, ids| one(graph.select(ids[0], ids[1], ids[2])))
}

/// `x` limited to `[min, max]`.
#[pyfunction]
fn clip(
    x: &Bound<'_, PyAny>,
    min: &Bound<'_, PyAny>,
    max: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let operands = [Value::of(x, "clip")?, Value::of(min, "clip")?, Value::of(max, "clip")?];
    apply(x.py(), &operands, |graph, ids| one(graph.clip(ids[0], ids[1], ids[2])))
}

/// `x` converted to a dtype.
#[pyfunction]
fn as_type(x: &Bound<'_, PyAny>, dtype: DTypeArg) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "as_type")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.as_type(ids[0], dtype.0)))
}

/// The bits of `x` as another dtype of the same width.
#[pyfunction]
fn bitcast(x: &Bound<'_, PyAny>, dtype: DTypeArg) -> PyResult<Py<PyAny>> {
    let operand = Value::of(x, "bitcast")?;
    apply(x.py(), &[operand], |graph, ids| one(graph.bitcast(ids[0], dtype.0)))
}

/// Generates functions of one operand that call a builder.
macro_rules! composed {
    ($($(#[$doc:meta])* $function:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $function(x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                let operand = Value::of(x, stringify!($function))?;
                apply(x.py(), &[operand], |graph, ids| one(graph.$function(ids[0])))
            }
        )*
    };
}

composed! {
    /// The base-2 logarithm.
    log2;
    /// The base-10 logarithm.
    log10;
    /// The angle of a complex number.
    phase;
}

/// The promoted dtype of operands, numbers being weak.
#[pyfunction]
#[pyo3(signature = (*operands))]
fn result_type(operands: Vec<Bound<'_, PyAny>>) -> PyResult<crate::dtype::PyDType> {
    let mut common: Option<DType> = None;
    let mut numbers = Vec::new();
    for operand in &operands {
        let dtype = match crate::dtype::dtype_of(operand) {
            Ok(dtype) => dtype,
            Err(_) => match Value::of(operand, "result_type")? {
                Value::Tensor(tensor) => tensor.dtype(),
                Value::Expr(expr) => expr.dtype(),
                Value::Number(number) => {
                    numbers.push(number);
                    continue;
                }
            },
        };
        common = Some(
            common.map_or(dtype, |common| nxla_runtime::host::promote_keep_pred(common, dtype)),
        );
    }
    for number in numbers {
        let tensor = number_tensor(number, common).or_raise()?;
        let dtype = tensor.dtype();
        common = Some(
            common.map_or(dtype, |common| nxla_runtime::host::promote_keep_pred(common, dtype)),
        );
    }
    match common {
        Some(dtype) => Ok(crate::dtype::PyDType(dtype)),
        None => Err(argument_error("result_type", "expected at least one operand")),
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register_unary(module)?;
    register_binary(module)?;
    functions!(module: floor_divide, floor_remainder, round_half_even, all_close, select, clip, as_type,
        bitcast, log2, log10, phase, result_type);
    Ok(())
}
