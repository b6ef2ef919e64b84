//! The arguments of a call to a jitted function.

use std::fmt;

use nxla_runtime::Inputs;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use rustc_hash::FxHashSet;

use crate::tensor::PyTensor;

/// The static arguments of a function, which are part of the signature instead of inputs.
pub(crate) struct Statics {
    positions: FxHashSet<usize>,
    names: FxHashSet<String>,
    /// True for a function of this package, whose axes, shapes and flags are static.
    is_of_package: bool,
}

impl Statics {
    /// The static arguments of a function, by position and by name.
    pub(crate) fn new(
        function: &Bound<'_, PyAny>,
        positions: Vec<usize>,
        names: Vec<String>,
    ) -> PyResult<Self> {
        Ok(Self {
            positions: positions.into_iter().collect(),
            names: names.into_iter().collect(),
            is_of_package: is_of_package(function)?,
        })
    }

    /// Returns whether a keyword argument is static: it was declared static, or it is a setting of a
    /// function of this package, such as the axis in ``nx.jit(nx.sum)(x, axis=1)``.
    fn contain_keyword(
        &self,
        name: &Bound<'_, PyString>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        if self.is_of_package && is_setting(value) {
            return Ok(true);
        }
        Ok(!self.names.is_empty() && self.names.contains(&*name.to_cow()?))
    }
}

/// The position or the keyword of an argument.
pub(crate) enum Key<'py> {
    Position(usize),
    Name(Bound<'py, PyString>),
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(position) => write!(f, "argument {position}"),
            Self::Name(name) => write!(f, "argument {name}"),
        }
    }
}

/// An argument of a call.
pub(crate) struct Argument<'py> {
    pub(crate) key: Key<'py>,
    pub(crate) value: Bound<'py, PyAny>,
    /// True if the value is part of the signature instead of an input.
    pub(crate) is_static: bool,
}

/// The arguments of a call, without a copy of them.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a, 'py> {
    pub(crate) args: &'a Bound<'py, PyTuple>,
    pub(crate) kwargs: Option<&'a Bound<'py, PyDict>>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// Returns the arguments in order.
    pub(crate) fn arguments(
        self,
        statics: &'a Statics,
    ) -> impl Iterator<Item = PyResult<Argument<'py>>> + 'a {
        let by_position = self.args.iter().enumerate().map(|(position, value)| {
            let is_static = statics.positions.contains(&position);
            Ok(Argument { key: Key::Position(position), value, is_static })
        });
        let by_name = self.kwargs.into_iter().flatten().map(|(name, value)| {
            let name = name.cast_into::<PyString>()?;
            let is_static = statics.contain_keyword(&name, &value)?;
            Ok(Argument { key: Key::Name(name), value, is_static })
        });
        by_position.chain(by_name)
    }

    /// Adds the arguments to `tensors` and returns `true` if all are tensors that are passed by
    /// position.
    pub(crate) fn plain_tensors(self, tensors: &mut Inputs) -> bool {
        self.kwargs.is_none_or(|kwargs| kwargs.is_empty())
            && self.args.iter_borrowed().all(|arg| {
                let tensor = arg.cast::<PyTensor>();
                tensor.map(|tensor| tensors.push(tensor.get().tensor())).is_ok()
            })
    }
}

/// Returns whether a keyword argument of a function is static without being declared: the function
/// belongs to this package, and the value is an axis, a shape or a flag.
#[pyfunction]
fn is_setting_of(function: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(is_setting(value) && is_of_package(function)?)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_setting_of, module)?)
}

/// Returns whether a function belongs to this package.
fn is_of_package(function: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = function.getattr_opt("__module__")?;
    let module = module.as_ref().and_then(|module| module.cast::<PyString>().ok());
    let Some(module) = module else { return Ok(false) };
    let module = module.to_cow()?;
    Ok(module == "nxla" || module.starts_with("nxla."))
}

/// Returns whether a value has the type of an axis, a shape or a flag: an int, a bool, a string,
/// None, or a tuple or list of these.
fn is_setting(value: &Bound<'_, PyAny>) -> bool {
    let is_one = |value: &Bound<'_, PyAny>| {
        value.is_none()
            || value.is_exact_instance_of::<PyBool>()
            || value.is_exact_instance_of::<PyInt>()
            || value.is_instance_of::<PyString>()
    };
    is_one(value)
        || value.cast::<PyTuple>().is_ok_and(|items| items.iter().all(|item| is_one(&item)))
        || value.cast::<PyList>().is_ok_and(|items| items.iter().all(|item| is_one(&item)))
}
