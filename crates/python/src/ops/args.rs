//! Arguments that several families share: integers, axes by number or name, shapes, names of axes.

use std::collections::HashSet;

use nxla_runtime::graph::{ErrorKind, ExprId, Graph};
use nxla_runtime::host::{AxisName, Names, Shape, to_i64};
use nxla_runtime::{Error, Result, TensorType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use crate::errors::{argument_error, conversion_error, kind_of};
use crate::expr::PyExpr;
use crate::shutdown;
use crate::value::{describe, is_sample};

/// An integer. A boolean is not an integer: a flag in place of an axis, a size or a count is a mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integer(pub(crate) i64);

impl<'a, 'py> FromPyObject<'a, 'py> for Integer {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyBool>() {
            return Err(conversion_error(format!("must be an integer; got {}", value.to_owned())));
        }
        value.extract().map(Integer)
    }
}

impl From<i64> for Integer {
    fn from(number: i64) -> Self {
        Integer(number)
    }
}

/// An integer that counts something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count(pub(crate) usize);

impl<'a, 'py> FromPyObject<'a, 'py> for Count {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Integer(number) = value.extract()?;
        let count = usize::try_from(number).map(Count);
        count.map_err(|_| conversion_error(format!("must not be negative; got {number}")))
    }
}

impl From<u8> for Count {
    fn from(count: u8) -> Self {
        Count(count.into())
    }
}

/// Returns the position of an index of a list, in which a negative index counts from the end.
pub(crate) fn list_position(index: i64, length: usize) -> Option<usize> {
    let end = if index < 0 { i64::try_from(length).ok()? } else { 0 };
    usize::try_from(index + end).ok().filter(|&position| position < length)
}

/// One axis.
#[derive(Clone, Debug)]
pub(crate) enum Axis {
    /// A position; a negative number counts from the end.
    Number(i64),
    /// By name.
    Name(String),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Axis {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = value.cast::<PyString>() {
            return Ok(Axis::Name(name.to_cow()?.into_owned()));
        }
        match value.extract() {
            Ok(Integer(number)) => Ok(Axis::Number(number)),
            Err(_) if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() => {
                let bits = value.call_method0("bit_length")?;
                Err(argument_error("axis", format!("must fit 64 bits; got an int of {bits} bits")))
            }
            Err(_) => {
                let got = if value.is_instance_of::<PyExpr>() {
                    "a traced value (name the argument in static_argnames of nx.jit)".into()
                } else {
                    value.get_type().name()?.to_string()
                };
                Err(argument_error("axis", format!("must be an int or a name; got {got}")))
            }
        }
    }
}

impl From<i64> for Axis {
    fn from(number: i64) -> Self {
        Axis::Number(number)
    }
}

impl Axis {
    /// Returns the position of the axis in `x`.
    ///
    /// # Errors
    /// Returns an error if `x` has no axis of this name; the caller names the function in it.
    pub(crate) fn of(&self, graph: &Graph, x: ExprId) -> Result<i64> {
        match self {
            Axis::Number(number) => Ok(*number),
            Axis::Name(_) => self
                .of_type(graph.tensor_type(x))
                .map_err(|kind| Error::Expr(graph.error("axis", kind))),
        }
    }

    /// Returns the position of the axis in a tensor of a type.
    ///
    /// # Errors
    /// Returns an error if the type has no axis of this name.
    pub(crate) fn of_type(&self, ty: &TensorType) -> std::result::Result<i64, ErrorKind> {
        match self {
            Axis::Number(number) => Ok(*number),
            Axis::Name(name) => {
                let axis = ty.names.as_ref().and_then(|names| names.axis(name).ok());
                axis.map(to_i64).ok_or_else(|| ErrorKind::AxisName {
                    argument: "axis",
                    name: name.clone(),
                    ty: Box::new(ty.clone()),
                })
            }
        }
    }
}

/// One axis of operands that are broadcast.
pub(crate) struct AxisOfOperands(Axis);

impl<'a, 'py> FromPyObject<'a, 'py> for AxisOfOperands {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(AxisOfOperands)
    }
}

impl From<i64> for AxisOfOperands {
    fn from(axis: i64) -> Self {
        AxisOfOperands(axis.into())
    }
}

impl AxisOfOperands {
    /// Returns the position of the axis: of a name, the negative position in the first operand that
    /// has the name. Broadcasting aligns the last axes, so the position means the same axis in
    /// operands of other ranks.
    ///
    /// # Errors
    /// Returns an error that describes the first operand if no operand has an axis of this name.
    pub(crate) fn of(&self, graph: &Graph, operands: &[ExprId]) -> Result<i64> {
        let from_end = |&operand: &ExprId| {
            let ty = graph.tensor_type(operand);
            Some(self.0.of_type(ty).ok()? - to_i64(ty.rank()))
        };
        match &self.0 {
            Axis::Number(number) => Ok(*number),
            name @ Axis::Name(_) => match operands.iter().find_map(from_end) {
                Some(axis) => Ok(axis),
                None => name.of(graph, operands[0]),
            },
        }
    }
}

/// Several axes of an operand, the first unless another is said: one alone, or a sequence.
#[derive(Clone, Debug)]
pub(crate) struct AxisList<const OF: usize = 0>(pub(crate) Vec<Axis>);

impl<'a, 'py, const OF: usize> FromPyObject<'a, 'py> for AxisList<OF> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyString>() {
            return Ok(AxisList(vec![value.extract()?]));
        }
        shutdown::prepare();
        match value.try_iter() {
            Ok(items) => items.map(|item| item?.extract()).collect::<PyResult<_>>().map(AxisList),
            Err(_) => Ok(AxisList(vec![value.extract()?])),
        }
    }
}

impl<const OF: usize> From<i64> for AxisList<OF> {
    fn from(axis: i64) -> Self {
        AxisList(vec![axis.into()])
    }
}

impl<const OF: usize> AxisList<OF> {
    /// The positions of the axes in `x`.
    pub(crate) fn of(&self, graph: &Graph, x: ExprId) -> Result<Vec<i64>> {
        self.0.iter().map(|axis| axis.of(graph, x)).collect()
    }
}

/// The positions of axes that may be left out.
pub(crate) fn axes_of(
    axes: &Option<AxisList>,
    graph: &Graph,
    x: ExprId,
) -> Result<Option<Vec<i64>>> {
    axes.as_ref().map(|axes| axes.of(graph, x)).transpose()
}

/// A sequence of operands. The pair that random functions return is not one.
pub(crate) struct OperandSequence<'py>(pub(crate) Vec<Bound<'py, PyAny>>);

impl<'a, 'py> FromPyObject<'a, 'py> for OperandSequence<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if is_sample(&value) {
            let why = format!("must be a sequence of tensors; got {}", describe(&value)?);
            return Err(argument_error("sequence", why));
        }
        value.extract().map(Self)
    }
}

/// A shape: a sequence of sizes, or one size.
#[derive(Clone, Debug)]
pub(crate) struct ShapeArg(pub(crate) Shape);

impl<'a, 'py> FromPyObject<'a, 'py> for ShapeArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let sizes = sizes(&value)?;
        let checked: Option<Vec<usize>> =
            sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
        match checked {
            Some(sizes) => {
                let shape = Shape::from(sizes);
                shape.check_limits().map_err(|error| argument_error("shape", error.to_string()))?;
                Ok(ShapeArg(shape))
            }
            None => {
                Err(argument_error("shape", format!("sizes must not be negative; got {sizes:?}")))
            }
        }
    }
}

/// The sizes of a shape as given, negative ones too.
pub(crate) fn sizes(value: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let one = |item: &Bound<'_, PyAny>| -> PyResult<i64> {
        match item.extract() {
            Ok(Integer(size)) => Ok(size),
            Err(cause) if cause.is_instance_of::<PyTypeError>(item.py()) => {
                let why = format!("sizes must be ints; got {}", item.get_type());
                Err(argument_error("shape", why))
            }
            Err(cause) => Err(cause),
        }
    };
    if value.is_instance_of::<PyInt>() {
        return Ok(vec![one(value)?]);
    }
    shutdown::prepare();
    if let Ok(items) = value.try_iter() {
        return items.map(|item| one(&item?)).collect();
    }
    // Integers of other packages are sizes too.
    match value.extract() {
        Ok(Integer(size)) => Ok(vec![size]),
        Err(cause) if cause.is_instance_of::<PyTypeError>(value.py()) => {
            let kind = kind_of(value)?;
            Err(argument_error(
                "shape",
                format!("must be an int or a sequence of ints; got {kind}"),
            ))
        }
        Err(cause) => Err(cause),
    }
}

/// Names of axes, None for those without.
#[derive(Clone, Debug)]
pub(crate) struct NamesArg(pub(crate) Vec<Option<String>>);

impl<'a, 'py> FromPyObject<'a, 'py> for NamesArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let names: Vec<Option<String>> = value.extract().map_err(|cause: PyErr| {
            match (cause.is_instance_of::<PyTypeError>(value.py()), value.repr()) {
                (true, Ok(found)) => PyTypeError::new_err(format!(
                    "must be a sequence of strings and None; got {found}"
                )),
                _ => cause,
            }
        })?;
        let mut seen = HashSet::new();
        match names.iter().flatten().find(|name| !seen.insert(name.as_str())) {
            Some(twice) => {
                Err(argument_error("names", format!("must be distinct; got {twice:?} twice")))
            }
            None => Ok(NamesArg(names)),
        }
    }
}

impl NamesArg {
    /// The names, if there are any.
    pub(crate) fn names(&self) -> Option<Names> {
        let names = self.0.iter().map(|name| name.as_deref().map(AxisName::from));
        self.0.iter().any(Option::is_some).then(|| Names::new(names))
    }
}

/// Tuples, or lists, of two ints each. An error for another length names the `argument`.
pub(crate) fn pairs(argument: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<(i64, i64)>> {
    let pair = |pair: Bound<'_, PyAny>| {
        let [Integer(low), Integer(high)] =
            fixed_length(argument, "pairs (low, high)", &pair, value)?;
        Ok((low, high))
    };
    value.try_iter()?.map(|each| pair(each?)).collect()
}

/// Extracts a sequence of `N` entries, which is all or a part of the value of an argument.
pub(crate) fn fixed_length<'py, T, const N: usize>(
    argument: &str,
    expected: &str,
    sequence: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
) -> PyResult<[T; N]>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    sequence.extract().map_err(|cause: PyErr| {
        let has_length = sequence.len().is_ok_and(|length| length != N);
        if has_length && cause.is_instance_of::<PyValueError>(value.py()) {
            return argument_error(argument, format!("must be {expected}; got {value}"));
        }
        cause
    })
}
