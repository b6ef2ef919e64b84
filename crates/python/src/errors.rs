//! Exceptions: one class for each kind of error.

use nxla_runtime::gradient::GradError;
use nxla_runtime::host::NumberError;
use nxla_runtime::{Error, ErrorClass, StreamError};
use pyo3::exceptions::{PyException, PyOverflowError, PyTimeoutError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::names::{argument_name, public_name};

/// The base class, and one class for each [`ErrorClass`], with a second base class.
struct Classes {
    base: Py<PyType>,
    kinds: Vec<Py<PyType>>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

const BASE: (&str, &str) = ("NxlaError", "The base class of the errors of nxla.");

/// The name of each class, its second base class, and the first part of its docstring.
const KINDS: [(&str, &str, &str); 11] = [
    ("ShapeError", "ValueError", "Shapes, axes or sizes do not match"),
    ("DTypeError", "TypeError", "An operation does not support a dtype"),
    ("TraceError", "RuntimeError", "A traced value is used outside its trace"),
    ("ArgumentError", "ValueError", "An argument is invalid"),
    ("GradientError", "ValueError", "A derivative does not exist or has no rule"),
    ("OptionError", "ValueError", "A compiler or option is unknown or invalid"),
    ("DeviceError", "RuntimeError", "The plugin, its device or its compiler failed"),
    ("ExecutionError", "RuntimeError", "A program failed while it ran"),
    ("FormatError", "ValueError", "Bytes or a file are damaged or have another format"),
    ("OutOfMemoryError", "MemoryError", "Memory cannot be allocated"),
    ("InternalError", "RuntimeError", "A bug in nxla"),
];

/// The position of a class in [`KINDS`].
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
        ErrorClass::Format => 8,
        ErrorClass::Memory => 9,
        ErrorClass::Internal => 10,
    }
}

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || {
        let (name, doc) = BASE;
        let base = class_of(name, doc, &[&py.get_type::<PyException>()])?;
        let builtins = py.import("builtins")?;
        let kind = |(name, second, what): (&str, &str, &str)| -> PyResult<_> {
            let doc = format!("{what}; also a {second}.");
            let second = builtins.getattr(second)?.cast_into()?;
            Ok(class_of(name, &doc, &[&base, &second])?.unbind())
        };
        let kinds = KINDS.into_iter().map(kind).collect::<PyResult<_>>()?;
        Ok(Classes { base: base.unbind(), kinds })
    })
}

/// A class of exceptions with a name and a docstring.
fn class_of<'py>(
    name: &str,
    doc: &str,
    bases: &[&Bound<'py, PyType>],
) -> PyResult<Bound<'py, PyType>> {
    let py = bases[0].py();
    let body = PyDict::new(py);
    body.set_item("__doc__", doc)?;
    body.set_item("__module__", "nxla")?;
    // The classes have no additional memory layout, see `adopt_panics`.
    body.set_item("__slots__", PyTuple::empty(py))?;
    let class = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, body))?;
    Ok(class.cast_into()?)
}

/// Makes all panics of the module `InternalError`s.
///
/// PyO3 raises a panic as a subclass of `BaseException`, which `except Exception` does not catch,
/// so one request could stop a server. The class belongs to the module alone, so its base classes
/// can be changed. An interpreter that rejects the change keeps the original base.
fn adopt_panics(py: Python<'_>, internal: &Bound<'_, PyType>) -> PyResult<()> {
    let panic = py.get_type::<PanicException>();
    if panic.setattr("__bases__", (internal,)).is_err() {
        return Ok(());
    }
    let text = c"lambda panic: (f'internal error: {panic.args[0] if panic.args else None}; \
        this is a bug of nxla, please report it with what was printed to stderr')";
    // With the globals of `__main__`, which are the default, the class would refer to all variables of the
    // program. Python would then not finalize them at exit, and an open file would lose its last lines.
    let globals = PyDict::new(py);
    panic.setattr("__str__", py.eval(text, Some(&globals), None)?)?;
    panic.setattr("__module__", "nxla")?;
    panic.setattr("__qualname__", "InternalError.Panic")
}

/// Panics, for a test.
#[pyfunction]
fn _panic_for_tests(message: String) {
    std::panic::panic_any(message);
}

/// The exception of an error. An exception of a Python callback is returned unchanged.
pub(crate) fn exception(error: Error) -> PyErr {
    Python::attach(|py| {
        let error = match error {
            Error::Stream(error) => return stream_exception(py, error),
            Error::Stage { stage, error } => return with_stage_note(py, exception(*error), &stage),
            Error::User(inner) => match inner.downcast::<PyErr>() {
                Ok(raised) => return *raised,
                Err(inner) => Error::User(inner),
            },
            Error::Hook { name, error } => match error.downcast::<PyErr>() {
                Ok(raised) => return *raised,
                Err(error) => Error::Hook { name, error },
            },
            Error::RuntimeCall { line, error } => match error.downcast::<PyErr>() {
                Ok(raised) => return *raised,
                Err(error) => Error::RuntimeCall { line, error },
            },
            // Python and NumPy raise this exception too.
            Error::Number { .. } => return PyOverflowError::new_err(error.to_string()),
            Error::Expr(mut error) => {
                error.op = public_name(&error.op).to_owned();
                Error::Expr(error.rename_argument(|of, name| argument_name(py, of, name)))
            }
            Error::Grad(GradError::NotDifferentiable { op, why, line }) => {
                GradError::NotDifferentiable { op: public_name(op), why, line }.into()
            }
            Error::Vectors { function, why } => {
                Error::Vectors { function: public_name(&function).to_owned(), why }
            }
            error => error,
        };
        class_exception(py, error.class(), error.to_string())
    })
}

/// The exception of a stage, with a note that names the stage.
fn with_stage_note(py: Python<'_>, raised: PyErr, stage: &str) -> PyErr {
    let note = format!("while running {stage}");
    match raised.value(py).call_method1("add_note", (note,)) {
        Ok(_) => raised,
        Err(failed) => failed,
    }
}

/// The exception of a stream.
fn stream_exception(py: Python<'_>, error: StreamError) -> PyErr {
    match error {
        StreamError::Full(_) => PyTimeoutError::new_err(
            "stream: the buffer is full; receive results, or send fewer chunks at a time",
        ),
        StreamError::NotYet => PyTimeoutError::new_err(error.to_string()),
        StreamError::Cancelled => cancellation_error(py).unwrap_or_else(|failed| failed),
        StreamError::Failed(error) => match error.user_error().and_then(|e| e.downcast_ref()) {
            Some(raised) => again(py, raised),
            None => class_exception(py, error.class(), error.to_string()),
        },
        other => class_exception(py, ErrorClass::Runtime, other.to_string()),
    }
}

/// The exception without its traceback, so that it can be raised again.
fn again(py: Python<'_>, raised: &PyErr) -> PyErr {
    let raised = raised.clone_ref(py);
    raised.set_traceback(py, None);
    raised
}

fn class_exception(py: Python<'_>, class: ErrorClass, text: String) -> PyErr {
    match classes(py) {
        Ok(classes) => PyErr::from_type(classes.kinds[index(class)].bind(py).clone(), text),
        Err(failed) => failed,
    }
}

/// Returns whether an exception is of a class of the package.
pub(crate) fn is_of_nxla(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    Ok(error.is_instance(py, classes(py)?.base.bind(py)))
}

fn cancellation_error(py: Python<'_>) -> PyResult<PyErr> {
    let class = py.import("concurrent.futures")?.getattr("CancelledError")?;
    Ok(PyErr::from_value(class.call1((StreamError::Cancelled.to_string(),))?))
}

/// Converts errors of the runtime to exceptions.
pub(crate) trait OrRaise<T> {
    /// Returns the value, or the exception.
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

/// Wraps a Python exception in an error of the runtime.
pub(crate) fn user_error(raised: PyErr) -> Error {
    Error::user(raised)
}

/// An exception for an invalid argument.
pub(crate) fn argument_error(function: &str, why: impl Into<String>) -> PyErr {
    exception(Error::Arguments { function: function.into(), why: why.into() })
}

/// An exception for an integer that no dtype holds.
pub(crate) fn number_error(function: &str, error: NumberError) -> PyErr {
    exception(Error::Number { function: function.into(), error: Box::new(error) })
}

/// A noun with "a" or "an". Names such as "uint8" start with the sound of a consonant, and "ndarray"
/// starts with the sound of a vowel.
fn with_article(noun: &str) -> String {
    let is_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']);
    let article = if is_vowel || noun == "ndarray" { "an" } else { "a" };
    format!("{article} {noun}")
}

/// The name of the type of a value with its article, for error messages.
pub(crate) fn kind_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(with_article(&value.get_type().name()?.to_cow()?))
}

/// Checks that an argument is callable. Errors start with `subject`, the function and the argument.
pub(crate) fn check_callable(subject: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if value.is_callable() {
        return Ok(());
    }
    let kind = kind_of(value)?;
    Err(argument_error(subject, format!("must be callable; got {kind}")))
}

/// An exception of a class.
fn error_of(class: ErrorClass, why: impl Into<String>) -> PyErr {
    Python::attach(|py| class_exception(py, class, why.into()))
}

/// An exception for an invalid argument whose names the caller of the conversion adds.
pub(crate) fn conversion_error(why: impl Into<String>) -> PyErr {
    error_of(ErrorClass::Argument, why)
}

/// An exception for an unknown or invalid option.
pub(crate) fn option_error(why: impl Into<String>) -> PyErr {
    exception(Error::Options(why.into()))
}

/// An exception for a failure while a program runs.
pub(crate) fn usage_error(why: impl Into<String>) -> PyErr {
    exception(Error::Usage(why.into()))
}

/// An exception for damaged data or another format.
pub(crate) fn format_error(format: &str, why: impl Into<String>) -> PyErr {
    exception(Error::Format { format: format.into(), why: why.into() })
}

/// An exception for a failed allocation.
pub(crate) fn memory_error(why: impl Into<String>) -> PyErr {
    error_of(ErrorClass::Memory, why)
}

/// An exception for an unknown dtype.
pub(crate) fn dtype_error(why: impl Into<String>) -> PyErr {
    error_of(ErrorClass::DType, why)
}

/// An exception for a value that is used in another trace.
pub(crate) fn trace_error(why: impl Into<String>) -> PyErr {
    error_of(ErrorClass::Trace, why)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let Classes { base, kinds } = classes(py)?;
    module.add(BASE.0, base)?;
    for ((name, ..), class) in KINDS.into_iter().zip(kinds) {
        module.add(name, class)?;
    }
    adopt_panics(py, kinds[index(ErrorClass::Internal)].bind(py))?;
    module.add_function(wrap_pyfunction!(_panic_for_tests, module)?)
}
