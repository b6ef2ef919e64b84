//! The errors of calls, with the error of the layer that detected them.

use std::panic::Location;
use std::path::PathBuf;
use std::{fmt, io};

use nxla_eval::{EvalError, Fault};
use nxla_expr::serialize::SerializeError;
use nxla_expr::{
    AtLine, Difference, Error as ExprError, ErrorKind, Graph, Line, Region, TensorType,
};
use nxla_grad::GradError;
#[cfg(feature = "import")]
use nxla_import::{ImportError, ImportErrorKind};
use nxla_split::{ScheduleError, SplitError};
use nxla_tensor::{NumberError, TensorError};

use crate::pjrt;
use crate::stream::StreamError;
use crate::xla::{self, LowerError};

/// The error of this crate.
///
/// `{}` and `{:?}` write the message, which a `main` that returns the error prints; `{:#?}` writes the
/// structure. The message contains the messages of all causes, so
/// [`source`](std::error::Error::source) does not return a cause again; [`Error::user_error`] returns
/// the error of a user's function.
///
/// ```
/// use nxla::{Error, ErrorClass, Expr, Tensor, jit};
///
/// let error = jit(|x: Expr| x.reshape([7])).call(Tensor::from([1, 2])).unwrap_err();
/// assert!(matches!(error, Error::Expr(_)));
/// assert_eq!(error.class(), ErrorClass::Argument);
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation is invalid: shapes, dtypes, axes, or a value of another trace.
    #[error(transparent)]
    Expr(#[from] ExprError),
    /// A derivative does not exist.
    #[error(transparent)]
    Grad(#[from] GradError),
    /// A graph cannot be split.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// The evaluator failed.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A program cannot be written for XLA.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// XLA or its plugin failed.
    #[error(transparent)]
    Pjrt(#[from] pjrt::Error),
    /// A device has no memory for a program.
    #[error(
        "{op}: cannot allocate {bytes} bytes for {ty}: {error}{}",
        AtLine(.line.as_ref())
    )]
    DeviceMemory {
        /// The operation of the largest value, the likely cause.
        op: String,
        /// The type of the value.
        ty: Box<TensorType>,
        /// The bytes of the value.
        bytes: usize,
        /// The source line of the operation.
        line: Option<Line>,
        /// The error of the plugin.
        error: Box<pjrt::Error>,
    },
    /// Host data does not match its type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Bytes are not a valid program.
    #[error(transparent)]
    Bytes(#[from] SerializeError),
    /// A program of another system that cannot be imported.
    #[cfg(feature = "import")]
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Data has another format or is damaged.
    #[error("{format}: {why}")]
    Format {
        /// The expected format.
        format: String,
        /// The mistake and its position.
        why: String,
    },
    /// A file cannot be read or written.
    #[error("{function}: {}: {error}", path.display())]
    File {
        /// The name of the function that the user called.
        function: String,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The arguments of a call are invalid.
    #[error("{function}: {why}")]
    Arguments {
        /// The name of the function that the user called.
        function: String,
        /// The difference.
        why: String,
    },
    /// An integer fits no dtype.
    #[error("{function}: {error}")]
    Number {
        /// The name of the function that the user called.
        function: String,
        /// The integer.
        error: Box<NumberError>,
    },
    /// Vectorized axes are invalid, or do not match the vectorized axes of other operands.
    #[error("{function}: {why}")]
    Vectors {
        /// The name of the function that the user called.
        function: String,
        /// The mistake.
        why: String,
    },
    /// A tensor cannot be divided over a mesh of devices.
    #[error("sharding: {0}")]
    Layout(String),
    /// A compiler or an option does not exist, or the value of an option is invalid.
    #[error("{0}")]
    Options(String),
    /// A function must not be called in this context, such as a jitted function in a trace.
    #[error("{0}")]
    Usage(String),
    /// A stream failed, or cannot perform an operation.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A bug of this project.
    #[error("internal error: {0}; this is a bug of nxla, please report it")]
    Internal(String),
    /// The function of a hook failed.
    #[error("hook {} failed: {}", name.as_deref().unwrap_or("without a name"), Chain(&**error))]
    Hook {
        /// The name of the hook.
        name: Option<String>,
        /// The error of the function.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The host function of a runtime call failed.
    #[error(
        "runtime_call: the host function failed: {}{}",
        Chain(&**error),
        AtLine(line.as_ref())
    )]
    RuntimeCall {
        /// The user's line, if the backend knows it.
        line: Option<Line>,
        /// The error of the function.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A stage of a split program failed.
    #[error("{error}; while running {stage}")]
    Stage {
        /// Its number, its name, and the lines that it is of.
        stage: String,
        /// The error.
        error: Box<Error>,
    },
    /// An operation of a traced function failed with an error that does not contain its line.
    #[error("{error}{}", AtLine(Some(line)))]
    Operation {
        /// The user's line.
        line: Line,
        /// The error.
        error: Box<Error>,
    },
    /// A user's function (a callback, a host function) failed.
    #[error("{}", Chain(&**.0))]
    User(Box<dyn std::error::Error + Send + Sync>),
}

/// Writes an error and its sources, separated by colons.
struct Chain<'a>(&'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(error) = next {
            write!(f, ": {error}")?;
            next = error.source();
        }
        Ok(())
    }
}

/// The kind of mistake that an [`Error`] reports. Bindings of other languages have one class of
/// exceptions for each kind.
///
/// ```
/// use nxla::{ErrorClass, Tensor};
///
/// let error = Tensor::from([1, 2]).dot(Tensor::from([1, 2, 3])).unwrap_err();
/// assert_eq!(error.class(), ErrorClass::Shape);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorClass {
    /// Shapes, axes, sizes.
    Shape,
    /// Dtypes.
    DType,
    /// A value of a wrong trace, or one that is finished.
    Trace,
    /// Another wrong argument.
    Argument,
    /// A missing derivative.
    Gradient,
    /// A compiler name or option.
    Options,
    /// The plugin, its device or its compiler.
    Device,
    /// Anything that happens while a program runs.
    Runtime,
    /// Damaged data.
    Format,
    /// The memory of a device or the host is exhausted.
    Memory,
    /// A bug of this project.
    Internal,
}

impl Error {
    /// Wraps an error of a user's function, such as a traced function or an executor of stages.
    ///
    /// ```
    /// use nxla::{Error, Expr, Result, jit};
    ///
    /// let parse = |x: Expr| -> Result<Expr> {
    ///     Ok(x * "2".parse::<i32>().map_err(Error::user)?)
    /// };
    /// assert_eq!(jit(parse).call(3)?.item::<i32>()?, 6);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn user(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        error.into().into()
    }

    /// Returns the error of a user's function that caused this error: a traced function, a hook, the
    /// host function of a runtime call, or an executor of stages. `downcast_ref` converts it to its
    /// type.
    ///
    /// ```
    /// use std::num::ParseIntError;
    /// use nxla::{Expr, Tensor, hook, jit};
    ///
    /// let f = jit(|x: Expr| hook(x, |_: Tensor| "four".parse::<i32>().map(drop)));
    /// let error = f.call(1).unwrap_err();
    /// assert!(error.user_error().is_some_and(|error| error.is::<ParseIntError>()));
    /// ```
    pub fn user_error(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        match self {
            Error::User(error) | Error::Hook { error, .. } | Error::RuntimeCall { error, .. } => {
                Some(&**error)
            }
            Error::Stage { error, .. } | Error::Operation { error, .. } => error.user_error(),
            Error::Stream(StreamError::Failed(error)) => error.user_error(),
            _ => None,
        }
    }

    /// Describes a result of a branch or a loop's body that does not fit ([`Misfit`]) in the user's
    /// terms: the function called and the position of the result. `find` returns the number of the
    /// branch as the user counts and the path of the result in its container; the first of
    /// `roots` that the path begins with is replaced by its name. Other errors stay as they are.
    ///
    /// [`Misfit`]: nxla_expr::Misfit
    #[must_use]
    pub fn locate(
        self,
        function: &str,
        roots: &[(&str, &str)],
        find: impl FnOnce(Region, usize) -> (Region, Option<String>),
    ) -> Self {
        let Error::Expr(error) = self else { return self };
        Error::Expr(error.locate(function, |region, result| {
            let (region, path) = find(region, result);
            let named = |path: String| {
                let root = |(start, name): &(&str, &str)| {
                    path.strip_prefix(start).map(|rest| format!("{name}{rest}"))
                };
                roots.iter().find_map(root).unwrap_or(path)
            };
            (region, path.map(named))
        }))
    }

    /// Names the function that the user called in an error of an operation that the function
    /// builds. Errors of functions that the user wrote stay as they are.
    #[must_use]
    pub fn in_function(self, function: impl Into<String>) -> Self {
        match self {
            Error::Expr(error) => Error::Expr(error.in_function(function)),
            Error::Vectors { why, .. } => Error::Vectors { function: function.into(), why },
            error => error,
        }
    }

    /// Adds the user's line to the error of an operation that has none. Threads of the pool do not
    /// know the line.
    #[must_use]
    pub fn at_line(mut self, line: impl FnOnce() -> Option<Line>) -> Self {
        if let Error::Eval(EvalError::Op { line: unknown @ None, .. }) = &mut self {
            *unknown = line();
        }
        self
    }

    /// Adds a line of the user's Rust program to the error of an operation that has none. Errors of
    /// functions that the user wrote stay as they are.
    #[must_use]
    pub fn at_location(self, location: &'static Location<'static>) -> Self {
        let line = || Line { file: location.file().into(), line: location.line() };
        let with_line = |mut error: ExprError| {
            error.line.get_or_insert_with(line);
            error
        };
        match self {
            Error::Expr(error) => Error::Expr(with_line(error)),
            Error::Grad(GradError::Build(error)) => Error::Grad(GradError::Build(with_line(error))),
            error @ Error::Grad(
                GradError::NotDifferentiable { line: Some(_), .. }
                | GradError::NotLinear { line: Some(_), .. },
            ) => error,
            error @ (Error::Grad(_)
            | Error::Tensor(_)
            | Error::Arguments { .. }
            | Error::Number { .. }
            | Error::Vectors { .. }
            | Error::Layout(_)
            | Error::Usage(_)) => Error::Operation { line: line(), error: Box::new(error) },
            error @ Error::Eval(_) => error.at_line(|| Some(line())),
            error => error,
        }
    }

    /// Adds the line of the operation under construction to an error about one of its operands,
    /// unless the error has a line.
    pub(crate) fn used_at(mut self, graph: &Graph) -> Self {
        if let Error::Expr(error) = &mut self
            && error.line.is_none()
        {
            error.line = graph.current_line();
        }
        self
    }

    /// The kind of mistake.
    ///
    /// ```
    /// use nxla::{ErrorClass, Options};
    ///
    /// let error = Options::new().compiler("llvm").results_device().unwrap_err();
    /// assert_eq!(error.class(), ErrorClass::Options);
    /// ```
    pub fn class(&self) -> ErrorClass {
        match self {
            Error::Expr(error) => class_of(&error.kind),
            Error::Stream(StreamError::Failed(error)) => error.class(),
            Error::Stage { error, .. } | Error::Operation { error, .. } => error.class(),
            Error::Vectors { .. } | Error::Layout(_) => ErrorClass::Shape,
            Error::Grad(_) => ErrorClass::Gradient,
            #[cfg(feature = "import")]
            Error::Import(error) => class_of_import(error),
            Error::Bytes(_)
            | Error::Format { .. }
            | Error::Split(
                SplitError::Bytes { .. } | SplitError::Format { .. } | SplitError::Program(_),
            ) => ErrorClass::Format,
            Error::Tensor(TensorError::OutOfMemory { .. } | TensorError::TooLarge { .. })
            | Error::DeviceMemory { .. } => ErrorClass::Memory,
            Error::Pjrt(error) => xla::class_of(error),
            Error::Eval(EvalError::Op { fault, .. }) => class_of_fault(fault),
            Error::Split(_) | Error::Arguments { .. } | Error::Number { .. } | Error::Tensor(_) => {
                ErrorClass::Argument
            }
            Error::Eval(_)
            | Error::Stream(_)
            | Error::Usage(_)
            | Error::User(_)
            | Error::File { .. }
            | Error::Hook { .. }
            | Error::RuntimeCall { .. } => ErrorClass::Runtime,
            Error::Lower(error) => xla::class_of_lowering(error),
            Error::Options(_) => ErrorClass::Options,
            Error::Internal(_) => ErrorClass::Internal,
        }
    }
}

/// Wraps an error of a user's function, as [`Error::user`] does; an [`Error`] in a box stays as it is.
impl From<Box<dyn std::error::Error + Send + Sync>> for Error {
    fn from(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        error.downcast().map_or_else(Error::User, |error| *error)
    }
}

impl From<ScheduleError> for Error {
    fn from(error: ScheduleError) -> Self {
        Error::Arguments { function: "stages".into(), why: error.to_string() }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorClass::Shape => "shape",
            ErrorClass::DType => "dtype",
            ErrorClass::Trace => "trace",
            ErrorClass::Argument => "argument",
            ErrorClass::Gradient => "gradient",
            ErrorClass::Options => "options",
            ErrorClass::Device => "device",
            ErrorClass::Runtime => "runtime",
            ErrorClass::Format => "format",
            ErrorClass::Memory => "memory",
            ErrorClass::Internal => "internal",
        })
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        match self {
            Error::Expr(error) => f.debug_tuple("Expr").field(error).finish(),
            Error::Grad(error) => f.debug_tuple("Grad").field(error).finish(),
            Error::Split(error) => f.debug_tuple("Split").field(error).finish(),
            Error::Eval(error) => f.debug_tuple("Eval").field(error).finish(),
            Error::Lower(error) => f.debug_tuple("Lower").field(error).finish(),
            Error::Pjrt(error) => f.debug_tuple("Pjrt").field(error).finish(),
            Error::DeviceMemory { op, ty, bytes, line, error } => f
                .debug_struct("DeviceMemory")
                .field("op", op)
                .field("ty", ty)
                .field("bytes", bytes)
                .field("line", line)
                .field("error", error)
                .finish(),
            Error::Tensor(error) => f.debug_tuple("Tensor").field(error).finish(),
            #[cfg(feature = "import")]
            Error::Import(error) => f.debug_tuple("Import").field(error).finish(),
            Error::Bytes(error) => f.debug_tuple("Bytes").field(error).finish(),
            Error::Format { format, why } => {
                f.debug_struct("Format").field("format", format).field("why", why).finish()
            }
            Error::File { function, path, error } => f
                .debug_struct("File")
                .field("function", function)
                .field("path", path)
                .field("error", error)
                .finish(),
            Error::Arguments { function, why } => {
                f.debug_struct("Arguments").field("function", function).field("why", why).finish()
            }
            Error::Number { function, error } => {
                f.debug_struct("Number").field("function", function).field("error", error).finish()
            }
            Error::Vectors { function, why } => {
                f.debug_struct("Vectors").field("function", function).field("why", why).finish()
            }
            Error::Layout(why) => f.debug_tuple("Layout").field(why).finish(),
            Error::Options(why) => f.debug_tuple("Options").field(why).finish(),
            Error::Usage(why) => f.debug_tuple("Usage").field(why).finish(),
            Error::Stream(error) => f.debug_tuple("Stream").field(error).finish(),
            Error::Internal(why) => f.debug_tuple("Internal").field(why).finish(),
            Error::Hook { name, error } => {
                f.debug_struct("Hook").field("name", name).field("error", error).finish()
            }
            Error::RuntimeCall { line, error } => {
                f.debug_struct("RuntimeCall").field("line", line).field("error", error).finish()
            }
            Error::Stage { stage, error } => {
                f.debug_struct("Stage").field("stage", stage).field("error", error).finish()
            }
            Error::Operation { line, error } => {
                f.debug_struct("Operation").field("line", line).field("error", error).finish()
            }
            Error::User(error) => f.debug_tuple("User").field(error).finish(),
        }
    }
}

#[cfg(feature = "import")]
fn class_of_import(error: &ImportError) -> ErrorClass {
    match &error.kind {
        ImportErrorKind::Malformed { .. } => ErrorClass::Format,
        ImportErrorKind::Unsupported(_) | ImportErrorKind::Option { .. } => ErrorClass::Argument,
        ImportErrorKind::Argument { difference, .. } => class_of_difference(*difference),
        ImportErrorKind::Build { error, .. } => class_of(&error.kind),
    }
}

fn class_of_fault(fault: &Fault) -> ErrorClass {
    match fault {
        Fault::OutOfMemory { .. } | Fault::TooLarge { .. } => ErrorClass::Memory,
        Fault::Feature { .. } => ErrorClass::Options,
        Fault::Tensor(error)
            if matches!(
                **error,
                TensorError::OutOfMemory { .. } | TensorError::TooLarge { .. }
            ) =>
        {
            ErrorClass::Memory
        }
        _ => ErrorClass::Runtime,
    }
}

fn class_of_difference(difference: Difference) -> ErrorClass {
    match difference {
        Difference::DType => ErrorClass::DType,
        Difference::Shape | Difference::Names => ErrorClass::Shape,
    }
}

fn class_of(kind: &ErrorKind) -> ErrorClass {
    match kind {
        ErrorKind::DType { .. } => ErrorClass::DType,
        ErrorKind::Misfit(misfit) => class_of_difference(misfit.difference),
        ErrorKind::Trace(_) => ErrorClass::Trace,
        ErrorKind::Arity { .. } | ErrorKind::Invalid { .. } | ErrorKind::NotATensor { .. } => {
            ErrorClass::Argument
        }
        _ => ErrorClass::Shape,
    }
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(all(test, feature = "xla"))]
mod tests;
