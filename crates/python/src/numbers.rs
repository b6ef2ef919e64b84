//! Plain integers of Python next to tensors of integers.
//!
//! A number has a kind and no width, so the dtype of a result does not depend on how large it is: an
//! integer that the dtype of the other operand does not hold is an error, as in numpy. Next to truth
//! values it has the dtype that it has by itself. What is written into elements must fit them too. Nx, to whose rules the graph keeps, takes a wider
//! dtype instead, and has no truth values but `u8`; what compares with Nx asks for its rules.

use std::cell::Cell;

use nxla_runtime::graph::BinaryClass;
use nxla_runtime::host::Number;
use nxla_runtime::{DType, number_tensor};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::{OrRaise, dtype_error};
use crate::operands::Role;
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

/// A Python scalar whose result has the dtype of the operands that it meets, which it must fit.
pub(crate) fn next_to(number: Number, common: Option<DType>) -> PyResult<Value> {
    let value = Value::Number(number);
    let (Number::Int(number), Some(other)) = (number, common) else {
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
            let instead = Number::Int(number).default_dtype().map(|dtype| {
                format!(
                    "; give it a dtype, as in nx.tensor({number}, \"{dtype}\"), for a wider result"
                )
            });
            Err(PyOverflowError::new_err(format!(
                "{number} is out of bounds for {other}, which holds {least} to {most}{}",
                instead.unwrap_or_default()
            )))
        }
        _ => Ok(value),
    }
}

/// Makes sure that Python scalars can be written to elements of a dtype: a complex number has no
/// place in a real dtype, and an integer dtype must hold the number.
pub(crate) fn fit_elements(numbers: &[Number], dtype: DType) -> PyResult<()> {
    if numbers.iter().any(|number| matches!(number, Number::Complex(..))) {
        refuse_complex(dtype)?;
    }
    if !is_bounded(dtype) {
        return Ok(());
    }
    numbers.iter().try_for_each(|&number| in_bounds(number, dtype, FROM_TENSOR))
}

/// Makes sure that complex numbers can be elements of a dtype.
pub(crate) fn refuse_complex(dtype: DType) -> PyResult<()> {
    if dtype.is_complex() {
        return Ok(());
    }
    Err(dtype_error(format!(
        "a complex number cannot become an element of a tensor of {dtype}; take its real part, or \
         convert the tensor first, as in nx.astype(x, \"c64\")"
    )))
}

/// Whether numbers together need `u64`: they are integers, and `s64` does not hold all of them.
/// Refuses numbers that no integer dtype holds together.
pub(crate) fn need_u64(numbers: impl Iterator<Item = Number>) -> PyResult<bool> {
    let (mut least, mut most) = (0, 0);
    for number in numbers {
        match number {
            Number::Int(value) => (least, most) = (value.min(least), value.max(most)),
            Number::Bool(_) => {}
            Number::Float(_) | Number::Complex(..) => return Ok(false),
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
         {least} and {most}; give a float dtype, as in nx.tensor(values, dtype=\"f64\")"
    )))
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
