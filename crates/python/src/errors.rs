//! Exceptions: one class for each kind of mistake.

use nxla::{Error, ErrorClass};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use crate::names::public_name;

create_exception!(nxla, NxlaError, PyException, "Anything that nxla refuses or fails at.");

/// Classes with two bases, which `create_exception!` cannot make.
static CLASSES: PyOnceLock<[Py<PyType>; 8]> = PyOnceLock::new();

const NAMES: [(&str, &str); 8] = [
    ("ShapeError", "Shapes, axes or sizes that do not fit; also a ValueError."),
    ("DTypeError", "A dtype that an operation refuses; also a TypeError."),
    ("TraceError", "A traced value used outside its trace; also a RuntimeError."),
    ("ArgumentError", "Another wrong argument; also a ValueError."),
    ("GradientError", "A gradient that cannot be taken; also a ValueError."),
    ("OptionError", "An unknown compiler or option; also a ValueError."),
    ("DeviceError", "The plugin, its device or its compiler; also a RuntimeError."),
    ("ExecutionError", "What went wrong while a program ran; also a RuntimeError."),
];

fn index(class: ErrorClass) -> usize {
    match class {
        ErrorClass::Shape => 0,
        ErrorClass::DType => 1,
        ErrorClass::Trace => 2,
        ErrorClass::Argument => 3,
        ErrorClass::Gradient => 4,
        ErrorClass::Options => 5,
        ErrorClass::Device => 6,
        ErrorClass::Runtime => 7,
    }
}

fn classes(py: Python<'_>) -> PyResult<&[Py<PyType>; 8]> {
    CLASSES.get_or_try_init(py, || {
        let base = py.get_type::<NxlaError>();
        let value = py.get_type::<PyValueError>();
        let kind = py.get_type::<PyTypeError>();
        let runtime = py.get_type::<PyRuntimeError>();
        let second = [&value, &kind, &runtime, &value, &value, &value, &runtime, &runtime];
        let mut made = Vec::with_capacity(NAMES.len());
        for ((name, doc), second) in NAMES.into_iter().zip(second) {
            let bases = PyTuple::new(py, [&base, second])?;
            let body = [("__doc__", doc), ("__module__", "nxla")].into_py_dict(py)?;
            let class = py.get_type::<PyType>().call1((name, bases, body))?;
            made.push(class.cast_into::<PyType>()?.unbind());
        }
        Ok(made.try_into().unwrap_or_else(|_| unreachable!("one class for each name")))
    })
}

use pyo3::types::IntoPyDict;

/// The exception of an error. What a Python callback raised comes out as it went in.
pub(crate) fn exception(error: Error) -> PyErr {
    Python::attach(|py| {
        let error = match error {
            Error::User(inner) => match inner.downcast::<PyErr>() {
                Ok(raised) => return *raised,
                Err(inner) => Error::User(inner),
            },
            Error::Hook { name, error } => match error.downcast::<PyErr>() {
                Ok(raised) => return *raised,
                Err(error) => Error::Hook { name, error },
            },
            Error::Expr(mut error) => {
                error.op = public_name(&error.op).to_owned();
                Error::Expr(error)
            }
            error => error,
        };
        match classes(py) {
            Ok(classes) => {
                let class = classes[index(error.class())].bind(py).clone();
                PyErr::from_type(class, error.to_string())
            }
            Err(failed) => failed,
        }
    })
}

/// Turns the errors of the engine into exceptions.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E> OrRaise<T> for Result<T, E>
where
    Error: From<E>,
{
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(error.into()))
    }
}

/// Carries a Python exception through the engine.
pub(crate) fn user_error(raised: PyErr) -> Error {
    Error::User(Box::new(raised))
}

/// An exception for a wrong argument.
pub(crate) fn argument_error(function: &str, why: impl Into<String>) -> PyErr {
    exception(Error::Arguments { function: function.into(), why: why.into() })
}

/// An exception for a dtype that is none.
pub(crate) fn dtype_error(why: impl Into<String>) -> PyErr {
    Python::attach(|py| match classes(py) {
        Ok(classes) => PyErr::from_type(classes[1].bind(py).clone(), why.into()),
        Err(failed) => failed,
    })
}

/// An exception for a value used in the wrong trace.
pub(crate) fn trace_error(why: impl Into<String>) -> PyErr {
    Python::attach(|py| match classes(py) {
        Ok(classes) => PyErr::from_type(classes[2].bind(py).clone(), why.into()),
        Err(failed) => failed,
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("NxlaError", py.get_type::<NxlaError>())?;
    for ((name, _), class) in NAMES.into_iter().zip(classes(py)?) {
        module.add(name, class.bind(py))?;
    }
    Ok(())
}
