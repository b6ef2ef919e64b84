//! Plain integers of Python next to tensors of integers.
//!
//! A number has a kind and no width, so the dtype of a result does not depend on how large it is: an
//! integer that the dtype of the other operand does not hold is an error, as in numpy. Next to truth
//! values it has the dtype that it has by itself. What is written into elements must fit them too. Nx, to whose rules the graph keeps, takes a wider
//! dtype instead, and has no truth values but `u8`; what compares with Nx asks for its rules.

use std::cell::Cell;

use nxla_runtime::graph::BinaryClass;
use nxla_runtime::host::Number;
use nxla_runtime::{DType, Scalar, Tensor, number_tensor};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::{OrRaise, dtype_error};
use crate::value::Value;

thread_local! {
    static OF_NX: Cell<bool> = const { Cell::new(false) };
}

/// Whether plain numbers and sums of truth values have the dtypes that Nx gives them, on this thread;
/// gives what was in force before.
#[pyfunction]
fn set_numbers_of_nx(of_nx: bool) -> bool {
    OF_NX.replace(of_nx)
}

/// Whether they have the dtypes that Nx gives them.
pub(crate) fn are_of_nx() -> bool {
    OF_NX.get()
}

/// Whether the dtype of a result is that of its operands, so that a number must fit it.
pub(crate) fn keeps_dtype(class: BinaryClass) -> bool {
    match class {
        BinaryClass::Arithmetic | BinaryClass::Ordered | BinaryClass::Int | BinaryClass::Bits => {
            true
        }
        BinaryClass::Float
        | BinaryClass::Equality
        | BinaryClass::Order
        | BinaryClass::Logical
        | BinaryClass::Parts => false,
    }
}

/// Two operands of whose dtype the result is.
pub(crate) fn beside([left, right]: [Value; 2]) -> PyResult<[Value; 2]> {
    let (left_dtype, right_dtype) = (left.dtype(), right.dtype());
    Ok([next_to(left, right_dtype)?, next_to(right, left_dtype)?])
}

/// A value next to one of a dtype.
fn next_to(value: Value, other: Option<DType>) -> PyResult<Value> {
    let (&Value::Number(Number::Int(number)), Some(other)) = (&value, other) else {
        return Ok(value);
    };
    if are_of_nx() || !(other.is_integer() || other.is_pred()) {
        return Ok(value);
    }
    if other.is_pred() {
        return Ok(Value::Tensor(number_tensor(Number::Int(number), None).or_raise()?));
    }
    let (least, most) = (other.min_value().as_i128(), other.max_value().as_i128());
    match (least, most) {
        (Some(least), Some(most)) if number < least || number > most => {
            Err(PyOverflowError::new_err(format!(
                "{number} is out of bounds for {other}, which holds {least} to {most}; give it a \
                 dtype, as in nx.tensor({number}, \"s32\"), for a wider result"
            )))
        }
        _ => Ok(value),
    }
}

/// Makes sure that elements of a dtype can be `value`: complex numbers are no real ones, and plain
/// numbers, of which a list may be, are in its bounds. Arrays are converted, as `astype` does.
pub(crate) fn fits(value: &Value, is_list: bool, dtype: DType) -> PyResult<()> {
    let from = value.dtype().or(match value {
        Value::Number(Number::Complex(..)) => Some(DType::C64),
        _ => None,
    });
    if from.is_some_and(DType::is_complex) && !dtype.is_complex() {
        return Err(dtype_error(format!(
            "a complex number cannot become an element of a tensor of {dtype}; take its real part, \
             or convert the tensor first, as in nx.astype(x, \"c64\")"
        )));
    }
    if !is_bounded(dtype) {
        return Ok(());
    }
    match value {
        Value::Number(number) => in_bounds(*number, dtype, FROM_TENSOR),
        Value::Tensor(Tensor::Host(host)) if is_list => {
            (0..host.size()).try_for_each(|at| in_bounds(plain(host.get(at)), dtype, FROM_TENSOR))
        }
        Value::Tensor(_) | Value::Expr(_) => Ok(()),
    }
}

/// Makes sure that a tensor of a dtype can be made of plain numbers: of integers it holds what is
/// before their points.
pub(crate) fn all_fit(numbers: &[Number], dtype: DType) -> PyResult<()> {
    if !is_bounded(dtype) {
        return Ok(());
    }
    numbers.iter().try_for_each(|&number| in_bounds(number, dtype, ALONE))
}

/// Whether numbers beyond the bounds of a dtype are refused: of integers, but for tools that compare with Nx.
fn is_bounded(dtype: DType) -> bool {
    dtype.is_integer() && !are_of_nx()
}

/// What helps where numbers are written to a tensor of few bits.
const FROM_TENSOR: &str = "convert the tensor first, as in nx.astype(x, \"s32\")";

/// The same where numbers become a tensor.
const ALONE: &str = "numbers wrap around in nx.astype(x, dtype)";

/// An element as a plain number.
fn plain(scalar: Scalar) -> Number {
    match scalar {
        Scalar::Int(value) => Number::Int(value.into()),
        Scalar::UInt(value) => Number::Int(value.into()),
        Scalar::Float(value) => Number::Float(value),
        Scalar::Complex(re, im) => Number::Complex(re, im),
    }
}

/// Makes sure that a dtype of integers holds what is before the point of a number.
fn in_bounds(number: Number, dtype: DType, hint: &str) -> PyResult<()> {
    let (Some(least), Some(most)) = (dtype.min_value().as_i128(), dtype.max_value().as_i128())
    else {
        return Ok(());
    };
    #[expect(clippy::cast_precision_loss, reason = "bounds are powers of two, one more or less")]
    let (fits, shown) = match number {
        Number::Int(value) => ((least..=most).contains(&value), value.to_string()),
        Number::Float(value) => {
            let whole = value.trunc();
            let fits = whole >= least as f64 && whole < (most + 1) as f64;
            (fits, format!("{value:?}"))
        }
        Number::Bool(_) | Number::Complex(..) => return Ok(()),
    };
    if fits {
        return Ok(());
    }
    let instead = if dtype.bits() < 32 { format!("; {hint}") } else { String::new() };
    Err(PyOverflowError::new_err(format!(
        "{shown} is out of bounds for elements of {dtype}, which holds {least} to {most}{instead}"
    )))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_numbers_of_nx, module)?)
}
