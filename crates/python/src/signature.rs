//! Call signatures: the key that selects a compiled program, and the input tensors.
//!
//! The runtime stores signatures. This module traverses Python containers and describes them to the
//! runtime. A call with a known signature does no other work in Python objects, so it allocates
//! little.

use nxla_runtime::{Call, Inputs, Program, RawTensor, Result, Static, TensorType, VectorAxes};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyModule, PySet, PyString,
    PyTuple, PyType,
};

use crate::apply::number_tensor;
use crate::arrays::{self, Sharing};
use crate::containers::{
    Kind, Path, check_depth, compared_fields, kind_of, named_step, registered_steps,
};
use crate::errors::{OrRaise, argument_error, trace_error, user_error};
use crate::expr::PyExpr;
use crate::lazy::{self, Lazies, PyLazy};
use crate::template::{LeafType, PyTemplate};
use crate::tensor::PyTensor;
use crate::value::number_of;

/// A Python value that is part of a signature.
pub(crate) struct StaticValue(Py<PyAny>);

impl StaticValue {
    /// The value.
    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.0
    }
}

impl Static for StaticValue {
    fn same(&self, other: &Self) -> Result<bool> {
        Python::attach(|py| {
            let (left, right) = (self.0.bind(py), other.0.bind(py));
            // 1, 1.0 and True are equal, but a function may tell them apart.
            Ok(left.is(right) || left.get_type().is(right.get_type()) && left.eq(right)?)
        })
        .map_err(user_error)
    }
}

/// Returns whether the key of a static argument is not the value itself: equal containers can hold
/// numbers that a function tells apart, and so can equal floats, which are 0.0 and -0.0. A bound
/// method or a `functools.partial` is equal to itself although what it holds has changed.
fn has_own_key(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(is_sequence(value)
        || is_set(value)
        || value.is_instance_of::<PyDict>()
        || float_bits(value).is_some()
        || compared_fields(value)?.is_some()
        || !bound_parts(value)?.is_empty())
}

/// Returns whether a value is a list or a tuple.
pub(crate) fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}

fn is_set(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>()
}

/// Returns the bits of the parts of a float or complex number.
fn float_bits(value: &Bound<'_, PyAny>) -> Option<(u64, u64)> {
    if let Ok(float) = value.cast::<PyFloat>() {
        return Some((float.value().to_bits(), 0));
    }
    let complex = value.cast::<PyComplex>().ok()?;
    Some((complex.real().to_bits(), complex.imag().to_bits()))
}

/// The key of a container, a float or a function that holds objects: nested tuples with the class of
/// every value, because 1, 1.0 and True are equal. Lists, dicts and sets may change later.
fn freeze<'py>(value: &Bound<'py, PyAny>, depth: usize, path: &str) -> PyResult<Bound<'py, PyAny>> {
    check_depth(depth, &|| path.to_owned())?;
    let (py, class) = (value.py(), value.get_type().into_any());
    let items = |items: Vec<Bound<'py, PyAny>>| -> PyResult<Vec<Bound<'py, PyAny>>> {
        items.iter().map(|item| freeze(item, depth + 1, path)).collect()
    };
    let inside = if let Ok(dict) = value.cast::<PyDict>() {
        let all = dict.keys().iter().chain(dict.values().iter()).collect();
        PyTuple::new(py, items(all)?)?.into_any()
    } else if is_sequence(value) {
        PyTuple::new(py, items(value.try_iter()?.collect::<PyResult<_>>()?)?)?.into_any()
    } else if is_set(value) {
        PyFrozenSet::new(py, items(value.try_iter()?.collect::<PyResult<_>>()?)?)?.into_any()
    } else if let Some(bits) = float_bits(value) {
        bits.into_pyobject(py)?.into_any()
    } else if let Some(fields) = compared_fields(value)? {
        // The class may compare more than the fields. Without a hash, the object may change.
        let mut parts = items(fields)?;
        parts.extend(value.hash().is_ok().then(|| value.clone()));
        PyTuple::new(py, parts)?.into_any()
    } else {
        let (names, parts): (Vec<_>, Vec<_>) = bound_parts(value)?.into_iter().unzip();
        if parts.is_empty() {
            value.clone()
        } else {
            let names = PyTuple::new(py, names)?;
            PyTuple::new(py, [names, PyTuple::new(py, items(parts)?)?])?.into_any()
        }
    };
    Ok(PyTuple::new(py, [class, inside])?.into_any())
}

/// The kinds of containers in signatures.
mod kind {
    pub(super) const TUPLE: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const DICT: u8 = 2;
    pub(super) const NAMED: u8 = 3;
    pub(super) const DATACLASS: u8 = 4;
    pub(super) const REGISTERED: u8 = 5;
    pub(super) const KEYWORD: u8 = 6;
}

/// A Python call under construction.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) call: Call<StaticValue>,
    /// Inputs whose data is produced only if the program uses it.
    pub(crate) lazies: Lazies,
    /// True if only the types of arrays are needed.
    types_only: bool,
    /// True if the function is traced for this call only, so that its static values need not be
    /// comparable.
    once: bool,
    /// The nesting depth of the next argument.
    depth: usize,
}

impl Arguments {
    /// A call in which arrays are templates: their elements are not read.
    pub(crate) fn of_types() -> Self {
        Self { types_only: true, ..Self::default() }
    }

    /// The same for a function that is traced in every call, whose signature is not looked up.
    pub(crate) fn for_one_call(self) -> Self {
        Self { once: true, ..self }
    }

    /// The tensors, with the data of lazy ones that the program uses.
    pub(crate) fn into_inputs(self, py: Python<'_>, program: Option<&Program>) -> PyResult<Inputs> {
        let mut inputs = self.call.into_inputs();
        self.lazies.supply(py, &mut inputs, program)?;
        Ok(inputs)
    }

    /// Adds a value that is part of the structure.
    pub(crate) fn constant(&mut self, value: &Bound<'_, PyAny>, path: &str) -> PyResult<()> {
        if value.is_instance_of::<PyTensor>() || value.is_instance_of::<PyExpr>() {
            let why = "a tensor cannot be static: a program is compiled for each static value; \
                       pass a number, or leave the argument an input";
            return Err(argument_error(path, why));
        }
        let hash = value.hash().map_err(|_| {
            let kind = value.get_type();
            argument_error(
                path,
                format!("must be a tensor, a container or a hashable value; got {kind}"),
            )
        })?;
        self.call.push_static(StaticValue(value.clone().unbind()), hash as u64);
        Ok(())
    }

    /// Adds a static argument. Unlike other static values, it may be a mutable container.
    pub(crate) fn static_argument(&mut self, value: &Bound<'_, PyAny>, path: &str) -> PyResult<()> {
        if !has_own_key(value)? && value.hash().is_ok() {
            return self.constant(value, path);
        }
        let frozen = freeze(value, 0, path)?;
        let hash = frozen.hash().map_err(|_| {
            let kind = value.get_type().to_string();
            let why = format!(
                "static value must be hashable, or a list, dict or set of hashable values; got {kind}"
            );
            argument_error(path, why)
        })?;
        self.call.push_static(StaticValue(frozen.unbind()), hash as u64);
        Ok(())
    }

    /// Adds a key of a dict.
    fn key(&mut self, key: &Bound<'_, PyAny>, path: Path<'_>) -> PyResult<()> {
        if key.is_instance_of::<PyString>() {
            self.constant(key, &path())
        } else {
            self.static_argument(key, &path())
        }
    }

    /// Adds the class of a container.
    fn class(&mut self, value: &Bound<'_, PyAny>) {
        let class = value.get_type();
        let address = class.as_ptr() as u64;
        self.call.push_static(StaticValue(class.into_any().unbind()), address);
    }

    /// Adds the name of a keyword argument.
    pub(crate) fn keyword(&mut self, name: &Bound<'_, PyAny>) -> PyResult<()> {
        self.call.container(kind::KEYWORD, 0);
        self.constant(name, "keyword")
    }

    /// Adds an argument and collects its tensors.
    pub(crate) fn argument<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        path: Path<'_>,
    ) -> PyResult<()> {
        if let Ok(tensor) = value.cast::<PyTensor>() {
            self.call.tensor(tensor.get().tensor());
            return Ok(());
        }
        match kind_of(value)? {
            Kind::Other => self.leaf(value, path),
            container => {
                self.depth += 1;
                check_depth(self.depth, path)?;
                self.container(value, container, path)?;
                self.depth -= 1;
                Ok(())
            }
        }
    }

    /// Adds the children of a container. Each kind has a separate function, so that a level of nested
    /// containers uses little of the stack.
    fn container<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        container: Kind<'py>,
        path: Path<'_>,
    ) -> PyResult<()> {
        match container {
            Kind::Other => unreachable!("it is no container"),
            Kind::Tuple(items) => {
                self.call.container(kind::TUPLE, items.len());
                self.items(items.iter(), path)
            }
            Kind::List(items) => {
                self.call.container(kind::LIST, items.len());
                self.items(items.iter(), path)
            }
            Kind::Named(items) => self.named_items(value, &items, path),
            Kind::Dict(items) => self.dict_items(&items, path),
            Kind::Dataclass(fields) => self.fields(value, &fields, path),
            Kind::Registered(items, aux, _) => self.registered_items(value, &items, &aux, path),
        }
    }

    fn named_items<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        items: &Bound<'py, PyTuple>,
        path: Path<'_>,
    ) -> PyResult<()> {
        self.call.container(kind::NAMED, items.len());
        self.class(value);
        let class = value.get_type();
        for (index, item) in items.iter().enumerate() {
            self.argument(&item, &|| format!("{}{}", path(), named_step(&class, index)))?;
        }
        Ok(())
    }

    fn dict_items<'py>(
        &mut self,
        items: &[(Bound<'py, PyAny>, Bound<'py, PyAny>)],
        path: Path<'_>,
    ) -> PyResult<()> {
        self.call.container(kind::DICT, items.len());
        for (key, item) in items {
            self.key(key, path)?;
            self.argument(item, &|| format!("{}[{key:?}]", path()))?;
        }
        Ok(())
    }

    fn fields<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        fields: &[(Bound<'py, PyString>, Bound<'py, PyAny>)],
        path: Path<'_>,
    ) -> PyResult<()> {
        self.call.container(kind::DATACLASS, fields.len());
        self.class(value);
        for (name, item) in fields {
            self.argument(item, &|| format!("{}.{name}", path()))?;
        }
        Ok(())
    }

    fn registered_items<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        items: &[Bound<'py, PyAny>],
        aux: &Bound<'py, PyAny>,
        path: Path<'_>,
    ) -> PyResult<()> {
        self.call.container(kind::REGISTERED, items.len());
        self.class(value);
        self.static_argument(aux, &path())?;
        for (index, item) in items.iter().enumerate() {
            self.argument(item, &|| {
                let steps = registered_steps(value, items).unwrap_or_default();
                format!("{}{}", path(), steps.get(index).map_or("", |step| step))
            })?;
        }
        Ok(())
    }

    /// Adds a value that is not a container.
    fn leaf(&mut self, value: &Bound<'_, PyAny>, path: Path<'_>) -> PyResult<()> {
        if value.is_instance_of::<PyExpr>() {
            return Err(trace_error(format!(
                "{}: must be a tensor; got a traced value, of this or of another function; \
                 nx.expr.call applies an expression to traced values",
                path()
            )));
        }
        if let Ok(template) = value.cast::<PyTemplate>() {
            let LeafType { ty, vectors } = &template.get().0;
            self.call.template(ty, vectors);
            return Ok(());
        }
        if let Some(leaf) = lazy::type_of(value)? {
            let position = self.call.defer(&leaf.ty, &leaf.vectors);
            self.lazies.push(position, value);
            return Ok(());
        }
        if self.types_only
            && let Some((dtype, shape)) = arrays::array_type(value)?
        {
            self.call.template(&TensorType { dtype, shape, names: None }, &VectorAxes::NONE);
            return Ok(());
        }
        match leaf_tensor(value)? {
            Some(tensor) => {
                self.call.tensor(tensor);
                Ok(())
            }
            None if self.once => {
                self.call.push_static(StaticValue(value.clone().unbind()), 0);
                Ok(())
            }
            None => {
                refuse_changing(value, path)?;
                // Only a named static argument may be a set or another value without a hash.
                match value.hash() {
                    Ok(_) => self.static_argument(value, &path()),
                    Err(_) => self.constant(value, &path()),
                }
            }
        }
    }

    fn items<'py>(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        path: Path<'_>,
    ) -> PyResult<()> {
        for (index, item) in items.enumerate() {
            self.argument(&item, &|| format!("{}[{index}]", path()))?;
        }
        Ok(())
    }
}

/// Rejects an object that may change without a change of the signature: it compares by identity and
/// has attributes. Functions and classes are accepted.
pub(crate) fn refuse_changing(value: &Bound<'_, PyAny>, path: Path<'_>) -> PyResult<()> {
    let (py, class) = (value.py(), value.get_type());
    for (name, part) in bound_parts(value)? {
        refuse_changing_part(&part, &|| format!("{}.{name}", path()))?;
    }
    let hash = intern!(py, "__hash__");
    let by_identity = class.getattr(hash)?.is(&py.get_type::<PyAny>().getattr(hash)?);
    let has_attributes = || -> PyResult<bool> {
        Ok(value.hasattr(intern!(py, "__dict__"))? || class.hasattr(intern!(py, "__slots__"))?)
    };
    let is_code = || -> PyResult<bool> {
        Ok(value.is_instance_of::<PyType>()
            || value.is_instance_of::<PyModule>()
            || value.hasattr(intern!(py, "__code__"))?
            || value.hasattr(intern!(py, "__wrapped__"))?
            || is_partial(value)?)
    };
    if !by_identity || !has_attributes()? || is_code()? {
        return Ok(());
    }
    let why = format!(
        "must be a tensor, a container or a value with contents that are compared; got an object of class \
         {}, which is compared by identity, so its changes would not be noticed; make the class a \
         dataclass or register it (nx.register_container) to pass its tensors as inputs, define __eq__ \
         and __hash__, or name the argument in static_argnames",
        class.name()?
    );
    Err(argument_error(&path(), why))
}

/// Does the same for an object that a function passes to another one, alone or in a container.
fn refuse_changing_part(part: &Bound<'_, PyAny>, path: Path<'_>) -> PyResult<()> {
    if let Ok(dict) = part.cast::<PyDict>() {
        for (key, item) in dict {
            refuse_changing_part(&item, &|| format!("{}[{key:?}]", path()))?;
        }
        return Ok(());
    }
    if is_sequence(part) || is_set(part) {
        for (index, item) in part.try_iter()?.enumerate() {
            refuse_changing_part(&item?, &|| format!("{}[{index}]", path()))?;
        }
        return Ok(());
    }
    refuse_changing(part, path)
}

/// The parts of a bound method or a `functools.partial`, with their paths: the function, and what it
/// receives. Empty for another value.
fn bound_parts<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    if !value.is_callable() {
        return Ok(Vec::new());
    }
    let py = value.py();
    if is_partial(value)? {
        let args = value.getattr(intern!(py, "args"))?.cast_into::<PyTuple>()?;
        let keywords = value.getattr(intern!(py, "keywords"))?.cast_into::<PyDict>()?;
        let mut parts = vec![("func".to_owned(), value.getattr(intern!(py, "func"))?)];
        parts.extend(args.iter().enumerate().map(|(at, part)| (format!("args[{at}]"), part)));
        for (name, part) in keywords {
            parts.push((format!("keywords[{}]", name.repr()?), part));
        }
        return Ok(parts);
    }
    let function = value.getattr_opt(intern!(py, "__func__"))?;
    let bound = value.getattr_opt(intern!(py, "__self__"))?;
    Ok(match (function, bound) {
        (Some(function), Some(bound)) => {
            vec![("__func__".to_owned(), function), ("__self__".to_owned(), bound)]
        }
        _ => Vec::new(),
    })
}

fn is_partial(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    value.is_instance(&py.import(intern!(py, "functools"))?.getattr(intern!(py, "partial"))?)
}

/// A number or an array as a tensor; `None` for any other value.
fn leaf_tensor(value: &Bound<'_, PyAny>) -> PyResult<Option<RawTensor>> {
    if let Some(number) = number_of(value)? {
        return number_tensor(number, None).or_raise().map(Some);
    }
    arrays::import(value, Sharing::ByValue)
}

/// The type of a leaf or of an entry of it, and its vectorized axes; `None` if it is not a leaf.
pub(crate) fn leaf_type(value: &Bound<'_, PyAny>) -> PyResult<Option<LeafType>> {
    if let Ok(tensor) = value.cast::<PyTensor>() {
        return Ok(Some(LeafType::of_tensor(&tensor.get().tensor())));
    }
    if let Ok(template) = value.cast::<PyTemplate>() {
        return Ok(Some(template.get().0.clone()));
    }
    if let Some(leaf) = lazy::type_of(value)? {
        return Ok(Some(leaf));
    }
    if !is_leaf(value)? {
        return Ok(None);
    }
    let ty = match arrays::array_type(value)? {
        Some((dtype, shape)) => Some(TensorType { dtype, shape, names: None }),
        None => leaf_tensor(value)?.map(|tensor| tensor.ty()),
    };
    Ok(ty.map(LeafType::of))
}

/// Returns whether a value is a leaf: a tensor, a template, a traced value, a number or an array.
pub(crate) fn is_leaf(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let quick = value.is_instance_of::<PyTensor>()
        || value.is_instance_of::<PyExpr>()
        || value.is_instance_of::<PyTemplate>()
        || value.is_instance_of::<PyLazy>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyBool>()
        || value.is_instance_of::<PyComplex>();
    if quick {
        return Ok(true);
    }
    if value.is_none() || value.is_instance_of::<PyString>() {
        return Ok(false);
    }
    arrays::is_array(value)
}
