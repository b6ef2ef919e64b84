//! Dtypes of Python scalars combined with tensors.
//!
//! A Python scalar has a kind and no width, so its value does not change the dtype of a result. An
//! integer that the dtype of the other operand cannot represent is an error, as in NumPy. Combined
//! with a boolean tensor, a scalar takes its default dtype. Updates of elements must fit the dtype
//! of the elements. The graph follows Nx, which widens the dtype instead and has no booleans;
//! comparisons with Nx switch to its rules.

use std::cell::Cell;

use nxla_runtime::graph::BinaryClass;
use nxla_runtime::host::{Number, promote_keep_pred};
use nxla_runtime::{DType, RawTensor, number_tensor};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::{OrRaise, dtype_error};
use crate::operands::Role;
use crate::value::Value;

thread_local! {
    static OF_NX: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether scalars and sums of booleans have the dtypes of Nx on the thread; returns the
/// previous setting.
#[pyfunction]
fn set_numbers_of_nx(of_nx: bool) -> bool {
    OF_NX.replace(of_nx)
}

/// Returns whether scalars have the dtypes of Nx.
pub(crate) fn are_of_nx() -> bool {
    OF_NX.get()
}

/// The role of the operands of an op of a class.
pub(crate) fn role(class: BinaryClass) -> Role {
    match class {
        BinaryClass::Arithmetic | BinaryClass::Ordered | BinaryClass::Int | BinaryClass::Bits => {
            Role::Element
        }
        BinaryClass::Equality | BinaryClass::Order => Role::Compared,
        BinaryClass::Float | BinaryClass::Logical | BinaryClass::Parts => Role::Free,
    }
}

/// Returns a Python scalar as an operand. The common dtype of the other operands must be able to
/// represent it.
pub(crate) fn checked_weak_scalar(number: Number, common: Option<DType>) -> PyResult<Value> {
    let value = Value::Number(number);
    let (Number::Int(_) | Number::LargeInt(_), Some(other)) = (number, common) else {
        return Ok(value);
    };
    if are_of_nx() || !(other.is_integer() || other.is_pred()) {
        return Ok(value);
    }
    if other.is_pred() {
        return Ok(Value::Tensor(number_tensor(number, None).or_raise()?));
    }
    let (least, most) = (other.min_value().as_i128(), other.max_value().as_i128());
    match (least, most) {
        (Some(least), Some(most)) if !matches!(number, Number::Int(value) if (least..=most).contains(&value)) =>
        {
            // The result must be able to represent the number and every value of the other operand.
            let has_wider_result = |dtype: &DType| {
                let result = promote_keep_pred(other, *dtype);
                [number, Number::Int(least), Number::Int(most)].iter().all(|held| held.fits(result))
            };
            let instead = match number.default_dtype().ok().filter(has_wider_result) {
                Some(dtype) => format!(
                    "choose a dtype, as in nx.tensor({number}, \"{dtype}\"), for a wider result"
                ),
                None => "convert the tensor first, as in nx.astype(x, \"f64\")".to_owned(),
            };
            Err(PyOverflowError::new_err(format!(
                "{number} is out of bounds for {other}, which holds {least} to {most}; {instead}"
            )))
        }
        _ => Ok(value),
    }
}

/// Checks that Python scalars can be written to elements of a dtype: a real dtype rejects complex
/// numbers, and an integer dtype must be able to represent the number.
pub(crate) fn fit_elements(numbers: &[Number], dtype: DType) -> PyResult<()> {
    fit(numbers, dtype, FROM_TENSOR)
}

/// Checks that a tensor of a dtype can contain Python scalars; integer dtypes truncate floats.
pub(crate) fn all_fit(numbers: &[Number], dtype: DType) -> PyResult<()> {
    fit(numbers, dtype, ALONE)
}

fn fit(numbers: &[Number], dtype: DType, hint: &str) -> PyResult<()> {
    if numbers.iter().any(|number| matches!(number, Number::Complex(..))) {
        refuse_complex(dtype)?;
    }
    if !is_bounded(dtype) {
        return Ok(());
    }
    numbers.iter().try_for_each(|&number| in_bounds(number, dtype, hint))
}

/// Checks that complex numbers can be elements of a dtype.
pub(crate) fn refuse_complex(dtype: DType) -> PyResult<()> {
    if dtype.is_complex() {
        return Ok(());
    }
    Err(dtype_error(format!(
        "a complex number cannot become an element of a tensor of {dtype}; take its real part, or \
         convert the tensor first, as in nx.astype(x, \"c64\")"
    )))
}

/// Returns whether integers need `u64`, because `s64` cannot represent all of them.
///
/// # Errors
/// Returns an error for integers that no integer dtype can represent together.
pub(crate) fn need_u64(numbers: impl Iterator<Item = Number>) -> PyResult<bool> {
    let (mut least, mut most) = (0, 0);
    for number in numbers {
        match number {
            Number::Int(value) => (least, most) = (value.min(least), value.max(most)),
            Number::Bool(_) => {}
            Number::LargeInt(_) | Number::Float(_) | Number::Complex(..) => return Ok(false),
        }
    }
    if are_of_nx() || most <= i64::MAX.into() {
        return Ok(false);
    }
    if least >= 0 {
        return Ok(most <= u64::MAX.into());
    }
    Err(PyOverflowError::new_err(format!(
        "tensor: value: negative integers and integers above 2**63 - 1 share no integer dtype; got \
         {least} and {most}; pass a float dtype, as in nx.tensor(values, dtype=\"f64\")"
    )))
}

/// Returns a number as a tensor of a dtype, which has to hold the number.
pub(crate) fn tensor_of(number: Number, dtype: Option<DType>) -> PyResult<RawTensor> {
    let Some(dtype) = dtype else { return number_tensor(number, None).or_raise() };
    all_fit(&[number], dtype)?;
    Ok(RawTensor::scalar(number.cast(dtype), dtype))
}

/// Returns whether numbers beyond the bounds of a dtype are errors: for integers, except in tools that
/// compare with Nx.
fn is_bounded(dtype: DType) -> bool {
    dtype.is_integer() && !are_of_nx()
}

/// The hint for updates of elements.
const FROM_TENSOR: &str = "convert the tensor first, as in nx.astype(x, \"s32\")";

/// The hint for new tensors.
const ALONE: &str = "numbers wrap around in nx.astype(x, dtype)";

/// Checks that an integer dtype can represent the truncated number.
fn in_bounds(number: Number, dtype: DType, hint: &str) -> PyResult<()> {
    if number.fits(dtype) {
        return Ok(());
    }
    let (least, most) = (dtype.min_value(), dtype.max_value());
    let instead = if dtype.bits() < 32 { format!("; {hint}") } else { String::new() };
    Err(PyOverflowError::new_err(format!(
        "{number} is out of bounds for elements of {dtype}, which holds {least} to {most}{instead}"
    )))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_numbers_of_nx, module)?)
}
