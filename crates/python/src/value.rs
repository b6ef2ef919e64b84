//! Conversion of operands: expressions, tensors, numbers, and array-like objects.

use nxla_runtime::host::Number;
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyRange, PyTuple};

use crate::arrays::{self, Sharing};
use crate::errors::argument_error;
use crate::expr::PyExpr;
use crate::lazy::{self, PyLazy};
use crate::nested::from_nested_list;
use crate::shutdown;
use crate::tensor::PyTensor;

pub(crate) use nxla_runtime::Value;

/// Returns whether a value is a list of numbers or of lists. Ranges are, named tuples are not: they
/// are containers whose fields have different meanings, such as a random value and its key.
pub(crate) fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyRange>()
        || value.is_instance_of::<PyTuple>() && fields(value).is_none()
}

/// The names of the fields of a named tuple.
fn fields(value: &Bound<'_, PyAny>) -> Option<Vec<String>> {
    if !value.is_instance_of::<PyTuple>() || value.is_exact_instance_of::<PyTuple>() {
        return None;
    }
    value.getattr(intern!(value.py(), "_fields")).ok()?.extract().ok()
}

/// Returns whether a value is the pair of a random value and its key, `random.Sample`. Functions of a
/// sequence of tensors reject it, because they would compute with the key.
pub(crate) fn is_sample(value: &Bound<'_, PyAny>) -> bool {
    fields(value).is_some_and(|fields| fields == SAMPLE_FIELDS)
}

/// The fields of `random.Sample`.
const SAMPLE_FIELDS: [&str; 2] = ["value", "key"];

/// Describes a value that is not a tensor for an error message.
pub(crate) fn describe(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let kind = value.get_type().name()?;
    let Some(fields) = fields(value) else {
        return Ok(kind.to_string());
    };
    let sample = if fields == SAMPLE_FIELDS {
        " that a random function returns; unpack it, as in value, key = …,"
    } else {
        ";"
    };
    Ok(format!("the named tuple {kind}({}){sample} or take one field", fields.join(", ")))
}

/// Operands from Python.
pub(crate) trait FromPython: Sized {
    /// Converts an operand of `function`, which is its public name.
    fn of(value: &Bound<'_, PyAny>, function: &str) -> PyResult<Self>;

    /// Converts an operand, or returns `None` for an object that is not an operand.
    fn try_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>>;
}

impl FromPython for Value {
    fn of(value: &Bound<'_, PyAny>, function: &str) -> PyResult<Value> {
        match Self::try_of(value)? {
            Some(value) => Ok(value),
            None => {
                let why = format!(
                    "operands must be tensors, numbers or arrays; got {}",
                    describe(value)?
                );
                Err(argument_error(function, why))
            }
        }
    }

    fn try_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
        if let Ok(expr) = value.cast::<PyExpr>() {
            return Ok(Some(Value::Expr(expr.get().0.clone())));
        }
        if let Ok(tensor) = value.cast::<PyTensor>() {
            return Ok(Some(Value::Tensor(tensor.get().tensor())));
        }
        shutdown::prepare();
        if value.is_instance_of::<PyLazy>() {
            return lazy::produce(value).map(|tensor| Some(Value::Tensor(tensor)));
        }
        if let Some(number) = number_of(value)? {
            return Ok(Some(Value::Number(number)));
        }
        if let Some(tensor) = arrays::import(value, Sharing::ByValue)? {
            return Ok(Some(Value::Tensor(tensor)));
        }
        if is_list(value) {
            return Ok(Some(from_nested_list(value, None)?));
        }
        Ok(None)
    }
}

pub(crate) fn is_numpy_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.hasattr(intern!(value.py(), "__array_interface__"))
}

/// A plain Python number. NumPy's `float64` and `complex128` inherit from Python's classes but have
/// a dtype, so they are not weak scalars.
pub(crate) fn number_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
    if let Ok(float) = value.cast::<PyFloat>() {
        let own = float.is_exact_instance_of::<PyFloat>() || !is_numpy_scalar(value)?;
        return Ok(own.then(|| Number::Float(float.value())));
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Some(Number::Bool(truth.is_true())));
    }
    if value.is_instance_of::<PyInt>() {
        return match any_integer(value)? {
            Number::LargeInt(nearest) if nearest.is_infinite() => {
                let bits = value.call_method0(intern!(value.py(), "bit_length"))?;
                // Python limits the digits of integers that are printed.
                let why = format!("number: value must fit a dtype; got an integer of {bits} bits");
                Err(PyOverflowError::new_err(why))
            }
            number => Ok(Some(number)),
        };
    }
    if let Ok(complex) = value.cast::<PyComplex>() {
        if !complex.is_exact_instance_of::<PyComplex>() && is_numpy_scalar(value)? {
            return Ok(None);
        }
        return Ok(Some(Number::Complex(complex.real(), complex.imag())));
    }
    Ok(None)
}

/// A Python integer of any size. An integer beyond the range of floats is an infinity.
pub(crate) fn any_integer(value: &Bound<'_, PyAny>) -> PyResult<Number> {
    if let Ok(small) = value.extract::<i64>() {
        return Ok(Number::Int(small.into()));
    }
    if let Ok(large) = value.extract::<i128>() {
        return Ok(Number::Int(large));
    }
    let nearest = value.extract::<f64>().or_else(|_| {
        let is_negative = value.lt(0)?;
        Ok::<_, PyErr>(if is_negative { f64::NEG_INFINITY } else { f64::INFINITY })
    })?;
    Ok(Number::LargeInt(nearest))
}
