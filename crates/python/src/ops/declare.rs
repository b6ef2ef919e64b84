//! Functions of the module, each declared in one place.
//!
//! [`functions`] takes what Python users see (documentation, names and kinds of arguments,
//! defaults) and the builder that does the work, and makes the function of the module, its
//! signature as `inspect` shows it, and the types that the stubs show.

use std::borrow::Cow;

use nxla_runtime::graph::{ExprId, Graph};
use nxla_runtime::host::Names;
use nxla_runtime::{DType, Error, Result, Shape, called_once};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};
use smallvec::SmallVec;

use super::args::{
    Axis, AxisList, AxisOfOperands, Count, Integer, NamesArg, OperandSequence, ShapeArg,
};
use crate::apply::{Ids, apply_all};
use crate::dtype::DTypeArg;
use crate::errors::{argument_error, is_of_nxla, kind_of, user_error};
use crate::operands::{Operands, Role};
use crate::value::Value;

/// The context in which an argument is converted.
pub(crate) struct ArgumentContext<'a> {
    /// The public name of the function.
    pub(crate) function: &'static str,
    /// The name of the argument.
    pub(crate) argument: &'static str,
    pub(crate) graph: &'a Graph,
    /// The nodes of all operands.
    pub(crate) ids: &'a [ExprId],
    /// The number of operands that earlier arguments used.
    next_operand: usize,
}

impl<'a> ArgumentContext<'a> {
    pub(crate) fn new(function: &'static str, graph: &'a Graph, ids: &'a [ExprId]) -> Self {
        Self { function, argument: "", graph, ids, next_operand: 0 }
    }

    /// The node of the next operand.
    pub(crate) fn next(&mut self) -> ExprId {
        self.next_operand += 1;
        self.ids[self.next_operand - 1]
    }

    /// An error for the argument, after its name.
    pub(crate) fn refuse(&self, why: impl std::fmt::Display) -> Error {
        user_error(argument_error(self.function, format!("{}: {why}", self.argument)))
    }
}

/// An argument of a declared function.
pub(crate) trait Argument: Sized {
    /// The type of the builder's argument.
    type Value;

    /// The annotation in stubs.
    fn annotation() -> Cow<'static, str>;

    /// Adds the operands that are in it.
    fn operands(&self, _function: &'static str, _operands: &mut Operands) -> PyResult<()> {
        Ok(())
    }

    /// The value for the builder.
    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Self::Value>;
}

impl Argument for &Bound<'_, PyAny> {
    type Value = ExprId;

    fn annotation() -> Cow<'static, str> {
        "TensorLike".into()
    }

    fn operands(&self, function: &'static str, operands: &mut Operands) -> PyResult<()> {
        operands.push(self, function, Role::Element)
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<ExprId> {
        Ok(site.next())
    }
}

/// Declares operands that play another part than elements of the result.
macro_rules! operands_of_role {
    ($($(#[$doc:meta])* $name:ident $role:ident;)*) => {
        $(
            $(#[$doc])*
            pub(crate) struct $name<'py>(Bound<'py, PyAny>);

            impl<'a, 'py> FromPyObject<'a, 'py> for $name<'py> {
                type Error = PyErr;

                fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                    Ok(Self(value.to_owned()))
                }
            }

            impl Argument for $name<'_> {
                type Value = ExprId;

                fn annotation() -> Cow<'static, str> {
                    <&Bound<'_, PyAny>>::annotation()
                }

                fn operands(
                    &self,
                    function: &'static str,
                    operands: &mut Operands,
                ) -> PyResult<()> {
                    operands.push(&self.0, function, Role::$role)
                }

                fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<ExprId> {
                    Ok(site.next())
                }
            }
        )*
    };
}

operands_of_role! {
    /// An operand of integers that are positions of elements.
    Positions Position;
    /// An operand that is computed in `f64`.
    Precise Precise;
    /// An operand that is compared with the others.
    Compared Compared;
    /// The lower limit of other operands.
    LowerLimit LowerLimit;
    /// The upper limit of other operands.
    UpperLimit UpperLimit;
}

impl Argument for Bound<'_, PyAny> {
    type Value = ExprId;

    fn annotation() -> Cow<'static, str> {
        <&Self as Argument>::annotation()
    }

    fn operands(&self, function: &'static str, operands: &mut Operands) -> PyResult<()> {
        Argument::operands(&self, function, operands)
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<ExprId> {
        Ok(site.next())
    }
}

impl<T: Argument> Argument for Option<T> {
    type Value = Option<T::Value>;

    fn annotation() -> Cow<'static, str> {
        format!("{} | None", T::annotation()).into()
    }

    fn operands(&self, function: &'static str, operands: &mut Operands) -> PyResult<()> {
        self.as_ref().map_or(Ok(()), |argument| argument.operands(function, operands))
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Self::Value> {
        self.map(|argument| argument.into_value(site)).transpose()
    }
}

impl<T: Argument> Argument for Vec<T> {
    type Value = Vec<T::Value>;

    fn annotation() -> Cow<'static, str> {
        format!("Sequence[{}]", T::annotation()).into()
    }

    fn operands(&self, function: &'static str, operands: &mut Operands) -> PyResult<()> {
        self.iter().try_for_each(|argument| argument.operands(function, operands))
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Self::Value> {
        self.into_iter().map(|argument| argument.into_value(site)).collect()
    }
}

impl Argument for OperandSequence<'_> {
    type Value = Vec<ExprId>;

    fn annotation() -> Cow<'static, str> {
        <Vec<Bound<'_, PyAny>>>::annotation()
    }

    fn operands(&self, function: &'static str, operands: &mut Operands) -> PyResult<()> {
        Argument::operands(&self.0, function, operands)
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Self::Value> {
        self.0.into_value(site)
    }
}

/// Arguments that builders get as they are, or as what they wrap.
macro_rules! plain_arguments {
    ($($ty:ty as $annotation:literal: $given:ty = |$value:pat_param| $unwrapped:expr;)*) => {
        $(
            impl Argument for $ty {
                type Value = $given;

                fn annotation() -> Cow<'static, str> {
                    $annotation.into()
                }

                fn into_value(self, _site: &mut ArgumentContext<'_>) -> Result<$given> {
                    let $value = self;
                    Ok($unwrapped)
                }
            }
        )*
    };
}
pub(crate) use plain_arguments;

plain_arguments! {
    bool as "bool": bool = |value| value;
    Integer as "int": i64 = |Integer(number)| number;
    Count as "int": usize = |Count(count)| count;
    DiagonalOffset as "int": i64 = |DiagonalOffset(offset)| offset;
    f64 as "float": f64 = |value| value;
    String as "str": String = |value| value;
    DTypeArg as "DTypeLike": DType = |DTypeArg(dtype)| dtype;
    ShapeArg as "Shape": Shape = |ShapeArg(shape)| shape;
    NamesArg as "Names": Option<Names> = |names| names.names();
}

impl Argument for Axis {
    type Value = i64;

    fn annotation() -> Cow<'static, str> {
        "Axis".into()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<i64> {
        match (self, site.ids) {
            (Axis::Number(axis), _) => Ok(axis),
            (axis, [first, ..]) => axis.of(site.graph, *first),
            (Axis::Name(_), []) => Err(site.refuse("must be an int without operands; got a name")),
        }
    }
}

impl Argument for AxisOfOperands {
    type Value = i64;

    fn annotation() -> Cow<'static, str> {
        Axis::annotation()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<i64> {
        self.of(site.graph, site.ids)
    }
}

/// Axes of the operand at position `OF`.
impl<const OF: usize> Argument for AxisList<OF> {
    type Value = Vec<i64>;

    fn annotation() -> Cow<'static, str> {
        "Axes".into()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Vec<i64>> {
        self.of(site.graph, site.ids[OF])
    }
}

/// The offset of a diagonal. Integers that do not fit in 64 bits saturate, since no matrix has that
/// many columns.
#[derive(Clone, Copy)]
pub(crate) struct DiagonalOffset(pub i64);

impl<'a, 'py> FromPyObject<'a, 'py> for DiagonalOffset {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match value.extract() {
            Ok(Integer(offset)) => Ok(DiagonalOffset(offset)),
            Err(error) if PyErr::is_instance_of::<PyOverflowError>(&error, value.py()) => {
                Ok(DiagonalOffset(if value.gt(0)? { i64::MAX } else { i64::MIN }))
            }
            Err(error) => Err(error),
        }
    }
}

impl From<i64> for DiagonalOffset {
    fn from(offset: i64) -> Self {
        DiagonalOffset(offset)
    }
}

/// A choice by name.
pub(crate) trait Choices: Copy + 'static {
    /// The names, each with its value.
    const ALL: &'static [(&'static str, Self)];
}

/// A name from a fixed list.
pub(crate) struct Choice<T>(Cow<'static, str>, std::marker::PhantomData<T>);

impl<T> From<&'static str> for Choice<T> {
    fn from(name: &'static str) -> Self {
        Choice(name.into(), std::marker::PhantomData)
    }
}

impl<'a, 'py, T> FromPyObject<'a, 'py> for Choice<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Choice(value.extract::<String>()?.into(), std::marker::PhantomData))
    }
}

impl<T: Choices> Argument for Choice<T> {
    type Value = T;

    fn annotation() -> Cow<'static, str> {
        let names: Vec<String> = T::ALL.iter().map(|(name, _)| format!("{name:?}")).collect();
        format!("Literal[{}]", names.join(", ")).into()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<T> {
        if let Some((_, choice)) = T::ALL.iter().find(|(name, _)| *name == self.0) {
            return Ok(*choice);
        }
        let names: Vec<String> = T::ALL.iter().map(|(name, _)| format!("{name:?}")).collect();
        let (last, others) = names.split_last().expect("there is at least one choice");
        Err(site.refuse(format!("must be {} or {last}; got {:?}", others.join(", "), self.0)))
    }
}

/// An argument, or the error of its conversion, to which the function adds its name.
pub(crate) struct Converted<T>(Result<T, Failed>);

/// A failed conversion.
struct Failed {
    error: PyErr,
    /// The value if it is an int, or too large and not a long sequence, and otherwise the type of the
    /// argument in Python.
    got: String,
}

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Converted<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let failed = |error: PyErr| {
            let is_overflow = error.is_instance_of::<PyOverflowError>(value.py());
            // A long sequence would make the message long.
            let is_short = || !value.len().is_ok_and(|length| length > 8);
            let got = if value.is_exact_instance_of::<PyInt>() || is_overflow && is_short() {
                value.to_string()
            } else {
                kind_of(&value)?
            };
            Ok::<_, PyErr>(Failed { error, got })
        };
        Ok(Converted(match value.extract() {
            Ok(value) => Ok(value),
            Err(error) => Err(failed(error.into())?),
        }))
    }
}

impl<T: Argument> Converted<T> {
    /// Returns the argument.
    ///
    /// # Errors
    /// Returns the error of the conversion, with the names of the function and the argument.
    pub(crate) fn value(self, py: Python<'_>, function: &str, argument: &str) -> PyResult<T> {
        self.or_name(py, function, argument, &T::annotation())
    }
}

impl<T> Converted<T> {
    /// A default.
    pub(crate) fn of(value: T) -> Self {
        Converted(Ok(value))
    }

    /// Returns the argument, whose type has the annotation `kind`.
    ///
    /// # Errors
    /// Returns the error of the conversion, with the names of the function and the argument.
    pub(crate) fn or_name(
        self,
        py: Python<'_>,
        function: &str,
        argument: &str,
        kind: &str,
    ) -> PyResult<T> {
        self.0.map_err(|failed| failed.into_error(py, function, argument, kind))
    }
}

impl Failed {
    /// Returns an error of the same class that names the function, the argument, the requirement and
    /// the value. An error of the caller's code is unchanged.
    fn into_error(self, py: Python<'_>, function: &str, argument: &str, kind: &str) -> PyErr {
        let Failed { error, got } = self;
        let text = error.value(py).to_string();
        let text = if text.starts_with("must ") && text.contains("; got ") {
            text
        } else if is_of_nxla(py, &error).unwrap_or(false) {
            match text.split_once(": must ") {
                Some((_, requirement)) => format!("must {requirement}"),
                None => text.trim_start_matches(&format!("{argument}: ")).to_owned(),
            }
        } else if error.is_instance_of::<PyTypeError>(py) {
            format!("must be of type {kind}; got {got}")
        } else if error.is_instance_of::<PyOverflowError>(py) {
            format!("must fit in 64 bits; got {got}")
        } else {
            return error;
        };
        let named = PyErr::from_type(error.get_type(py), format!("{function}: {argument}: {text}"));
        named.set_cause(py, Some(error));
        named
    }
}

/// A result of a builder, and its conversion to Python.
pub(crate) trait Results: Sized {
    /// The Python type.
    type Python: for<'py> IntoPyObject<'py>;

    /// The annotation in stubs.
    const ANNOTATION: &'static str;

    /// The nodes.
    fn ids(self) -> Ids;

    /// The Python value of the nodes.
    fn into_python(results: SmallVec<[Py<PyAny>; 2]>) -> Self::Python;
}

impl Results for ExprId {
    type Python = Py<PyAny>;

    const ANNOTATION: &'static str = "Tensor";

    fn ids(self) -> Ids {
        Ids::from_slice(&[self])
    }

    fn into_python(mut results: SmallVec<[Py<PyAny>; 2]>) -> Py<PyAny> {
        results.pop().expect("the builder returns one result")
    }
}

impl Results for (ExprId, ExprId) {
    type Python = (Py<PyAny>, Py<PyAny>);

    const ANNOTATION: &'static str = "tuple[Tensor, Tensor]";

    fn ids(self) -> Ids {
        Ids::from_slice(&[self.0, self.1])
    }

    fn into_python(mut results: SmallVec<[Py<PyAny>; 2]>) -> Self::Python {
        let second = results.pop().expect("the builder returns two results");
        (results.pop().expect("the builder returns two results"), second)
    }
}

/// Any number of results, which Python receives as a tuple.
pub(crate) struct ResultTuple(Vec<Py<PyAny>>);

impl<'py> IntoPyObject<'py> for ResultTuple {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyTuple::new(py, self.0)
    }
}

impl Results for Vec<ExprId> {
    type Python = ResultTuple;

    const ANNOTATION: &'static str = "tuple[Tensor, ...]";

    fn ids(self) -> Ids {
        Ids::from_vec(self)
    }

    fn into_python(results: SmallVec<[Py<PyAny>; 2]>) -> Self::Python {
        ResultTuple(results.into_vec())
    }
}

/// Applies a builder to operands. An error names the function.
pub(crate) fn run<R: Results>(
    py: Python<'_>,
    function: &str,
    operands: &[Value],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<R>,
) -> PyResult<R::Python> {
    let mut build = called_once(|graph, ids| Ok(build(graph, ids)?.ids()));
    apply_all(py, function, operands, &mut build).map(R::into_python)
}

/// The `TypeError` for a keyword that is not an argument of a function, with the equivalent of an
/// argument of another library.
pub(crate) fn unexpected_keyword(py: Python<'_>, function: &str, keyword: &str) -> PyErr {
    let error = || {
        let module = py.import("nxla._hints")?;
        let function = py.import("nxla._core")?.getattr(function)?;
        let text: String =
            module.getattr("keyword_message")?.call1((function, keyword))?.extract()?;
        Ok(PyTypeError::new_err(text))
    };
    error().unwrap_or_else(|failed| failed)
}

/// Rejects keywords, if a function received one, with a hint.
pub(crate) fn reject_keywords(
    py: Python<'_>,
    function: &str,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    match keywords.and_then(|keywords| keywords.iter().next()) {
        Some((keyword, _)) => Err(unexpected_keyword(py, function, keyword.extract()?)),
        None => Ok(()),
    }
}

/// The types of a function's arguments by name, and of its result.
pub(crate) type Signature =
    (&'static str, Vec<(&'static str, Cow<'static, str>)>, Cow<'static, str>);

/// Declares functions of the module, and `declared_functions`, which adds them to the module and
/// returns their types.
///
/// `fn name(x, /, *, axis: Option<AxisList> = None) |graph| body;` follows Python's signatures: an
/// argument without a type is an operand, and an argument with a default is optional. The body
/// receives the nodes of the operands, and the other arguments as [`Argument::into_value`] converts them.
/// Each function accepts any keyword, to reject unknown ones with a hint ([`reject_keywords`]). The
/// body returns one node, unless an arrow declares another type. A name in quotes is the Python name of
/// a function whose name is reserved in Rust or used in the file.
macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        fn $name:ident $($public:literal)? ($($argument:tt)*) $(-> $result:ty)?
            |$graph:ident| $body:expr;
    )*) => {
        $(
            $crate::ops::declare::function! {
                [[$(#[$doc])*] $name [$($public)?] [$($result)?] $graph $body]
                [$($argument)* ,] [] [] [] [] ""
            }
        )*

        /// Adds the functions to the module, and their types to a list.
        pub(in crate::ops) fn declared_functions(
            module: &pyo3::Bound<'_, pyo3::types::PyModule>,
        ) -> pyo3::PyResult<()> {
            $(module.add_function(pyo3::wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }

        /// The types of their arguments and results.
        pub(in crate::ops) fn signatures() -> Vec<$crate::ops::declare::Signature> {
            vec![$($crate::ops::declare::signature! {
                [$crate::ops::declare::public!($name $($public)?)] [$($result)?]
                [$($argument)* ,] []
            }),*]
        }
    };
}

/// Reads the arguments of one function, one after the other, and then writes it.
///
/// In brackets: what is known of the function, the arguments still to be read, and what has been
/// made of the others: PyO3's signature, parameters in Rust, the names of the parameters that are
/// [`Converted`], and the text of the signature.
macro_rules! function {
    ($about:tt [/ , $($rest:tt)*] [$($sig:tt)*] $parameters:tt $given:tt [$($text:tt)*] $comma:literal) => {
        $crate::ops::declare::function! {
            $about [$($rest)*] [$($sig)* /,] $parameters $given [$($text)* $comma, "/",] ", "
        }
    };
    ($about:tt [* , $($rest:tt)*] [$($sig:tt)*] $parameters:tt $given:tt [$($text:tt)*] $comma:literal) => {
        $crate::ops::declare::function! {
            $about [$($rest)*] [$($sig)* *,] $parameters $given [$($text)* $comma, "*",] ", "
        }
    };
    ($about:tt [* $name:ident : $item:ty , $($rest:tt)*] [$($sig:tt)*] [$($parameters:tt)*] [$($given:tt)*] [$($text:tt)*] $comma:literal) => {
        $crate::ops::declare::function! {
            $about [$($rest)*] [$($sig)* *$name,]
            [$($parameters)* $name: $crate::ops::declare::Converted<Vec<$item>>,] [$($given)* $name]
            [$($text)* $comma, "*", stringify!($name),] ", "
        }
    };
    ($about:tt [* $name:ident , $($rest:tt)*] [$($sig:tt)*] [$($parameters:tt)*] $given:tt [$($text:tt)*] $comma:literal) => {
        $crate::ops::declare::function! {
            $about [$($rest)*] [$($sig)* *$name,]
            [$($parameters)* $name: Vec<pyo3::Bound<'_, pyo3::PyAny>>,] $given
            [$($text)* $comma, "*", stringify!($name),] ", "
        }
    };
    ($about:tt [$name:ident , $($rest:tt)*] [$($sig:tt)*] [$($parameters:tt)*] $given:tt [$($text:tt)*] $comma:literal) => {
        $crate::ops::declare::function! {
            $about [$($rest)*] [$($sig)* $name,]
            [$($parameters)* $name: &pyo3::Bound<'_, pyo3::PyAny>,] $given
            [$($text)* $comma, stringify!($name),] ", "
        }
    };
    ($about:tt [$name:ident: $ty:ty , $($rest:tt)*] [$($sig:tt)*] [$($parameters:tt)*] [$($given:tt)*] [$($text:tt)*] $comma:literal) => {
        $crate::ops::declare::function! {
            $about [$($rest)*] [$($sig)* $name,]
            [$($parameters)* $name: $crate::ops::declare::Converted<$ty>,] [$($given)* $name]
            [$($text)* $comma, stringify!($name),] ", "
        }
    };
    ($about:tt [$name:ident: $ty:ty = None , $($rest:tt)*] [$($sig:tt)*] [$($parameters:tt)*] [$($given:tt)*] [$($text:tt)*] $comma:literal) => {
        $crate::ops::declare::function! {
            $about [$($rest)*] [$($sig)* $name = $crate::ops::declare::Converted::of(None),]
            [$($parameters)* $name: $crate::ops::declare::Converted<$ty>,] [$($given)* $name]
            [$($text)* $comma, stringify!($name), "=None",] ", "
        }
    };
    ($about:tt [$name:ident: $ty:ty = - $default:tt , $($rest:tt)*] [$($sig:tt)*] [$($parameters:tt)*] [$($given:tt)*] [$($text:tt)*] $comma:literal) => {
        $crate::ops::declare::function! {
            $about [$($rest)*] [$($sig)* $name = $crate::ops::declare::Converted::of((-$default).into()),]
            [$($parameters)* $name: $crate::ops::declare::Converted<$ty>,] [$($given)* $name]
            [$($text)* $comma, stringify!($name), "=-", stringify!($default),] ", "
        }
    };
    ($about:tt [$name:ident: $ty:ty = $default:tt , $($rest:tt)*] [$($sig:tt)*] [$($parameters:tt)*] [$($given:tt)*] [$($text:tt)*] $comma:literal) => {
        $crate::ops::declare::function! {
            $about [$($rest)*] [$($sig)* $name = $crate::ops::declare::Converted::of(($default).into()),]
            [$($parameters)* $name: $crate::ops::declare::Converted<$ty>,] [$($given)* $name]
            [$($text)* $comma, stringify!($name), "=", $crate::ops::declare::default!($default),]
            ", "
        }
    };
    (
        [[$($doc:tt)*] $name:ident [$($public:literal)?] [$($result:ty)?] $graph:ident $body:expr]
        [$(,)?] [$($sig:tt)*] [$($parameter:ident: $ty:ty,)*] [$($given:ident)*] [$($text:tt)*]
        $comma:literal
    ) => {
        #[doc = concat!(
            $crate::ops::declare::public!($name $($public)?), "(", $($text)* ")\n--\n"
        )]
        $($doc)*
        #[allow(rustdoc::broken_intra_doc_links, reason = "a docstring of Python has no links")]
        #[pyo3::pyfunction]
        $(#[pyo3(name = $public)])?
        #[pyo3(signature = ($($sig)* **unexpected), text_signature = None)]
        fn $name(
            py: pyo3::Python<'_>,
            $($parameter: $ty,)*
            unexpected: Option<&pyo3::Bound<'_, pyo3::types::PyDict>>,
        ) -> pyo3::PyResult<
            <$crate::ops::declare::result!($($result)?) as $crate::ops::declare::Results>::Python
        > {
            use $crate::operands::Operands;
            use $crate::ops::declare::{Argument, ArgumentContext, run};
            const NAME: &str = $crate::ops::declare::public!($name $($public)?);
            $crate::ops::declare::reject_keywords(py, NAME, unexpected)?;
            $(let $given = $given.value(py, NAME, stringify!($given))?;)*
            let mut operands = Operands::default();
            $(Argument::operands(&$parameter, NAME, &mut operands)?;)*
            let operands = operands.values()?;
            run::<$crate::ops::declare::result!($($result)?)>(py, NAME, &operands, |$graph, ids| {
                let mut site = ArgumentContext::new(NAME, $graph, ids);
                $(
                    site.argument = stringify!($parameter);
                    let $parameter = Argument::into_value($parameter, &mut site)?;
                )*
                Ok($body?)
            })
        }
    };
}

/// The types of one function's arguments, and of its result.
macro_rules! signature {
    ($name:tt $result:tt [/ , $($rest:tt)*] $done:tt) => {
        $crate::ops::declare::signature!($name $result [$($rest)*] $done)
    };
    ($name:tt $result:tt [* , $($rest:tt)*] $done:tt) => {
        $crate::ops::declare::signature!($name $result [$($rest)*] $done)
    };
    ($name:tt $result:tt [* $argument:ident : $item:ty , $($rest:tt)*] $done:tt) => {
        $crate::ops::declare::signature!($name $result [$argument: $item, $($rest)*] $done)
    };
    ($name:tt $result:tt [* $argument:ident , $($rest:tt)*] $done:tt) => {
        $crate::ops::declare::signature!($name $result [$argument, $($rest)*] $done)
    };
    ($name:tt $result:tt [$argument:ident , $($rest:tt)*] $done:tt) => {
        $crate::ops::declare::signature!(
            $name $result [$argument: &pyo3::Bound<'_, pyo3::PyAny>, $($rest)*] $done
        )
    };
    ($name:tt $result:tt [$argument:ident: $ty:ty = - $default:tt , $($rest:tt)*] $done:tt) => {
        $crate::ops::declare::signature!($name $result [$argument: $ty, $($rest)*] $done)
    };
    ($name:tt $result:tt [$argument:ident: $ty:ty = $default:tt , $($rest:tt)*] $done:tt) => {
        $crate::ops::declare::signature!($name $result [$argument: $ty, $($rest)*] $done)
    };
    ($name:tt $result:tt [$argument:ident: $ty:ty , $($rest:tt)*] [$($done:tt)*]) => {
        $crate::ops::declare::signature!(
            $name $result [$($rest)*]
            [$($done)* (
                stringify!($argument),
                <$ty as $crate::ops::declare::Argument>::annotation(),
            ),]
        )
    };
    ([$name:expr] [$($result:ty)?] [$(,)?] [$($done:tt)*]) => {
        (
            $name,
            vec![$($done)*],
            <$crate::ops::declare::result!($($result)?)
                as $crate::ops::declare::Results>::ANNOTATION.into(),
        )
    };
}

/// The name in Python.
macro_rules! public {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $public:literal) => {
        $public
    };
}

/// The result of a builder: one node, unless the declaration names another type.
macro_rules! result {
    () => {
        nxla_runtime::graph::ExprId
    };
    ($result:ty) => {
        $result
    };
}

/// A default as Python writes it.
macro_rules! default {
    (true) => {
        "True"
    };
    (false) => {
        "False"
    };
    ($default:tt) => {
        stringify!($default)
    };
}

pub(crate) use {default, function, functions, public, result, signature};
