//! Containers of arguments and results: flattening and rebuilding.
//!
//! Tuples, lists, dicts, named tuples, dataclasses and classes registered with ``register_container``
//! contain tensors. The registered functions of a class come first. Every other value (strings,
//! functions, None) is static: it is part of the structure and compared by value.

use pyo3::IntoPyObjectExt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use crate::errors::{argument_error, check_callable};
use crate::expr::PyExpr;
use crate::lazy::PyLazy;
use crate::ops::args::Count;
use crate::ops::declare::{Converted, reject_keywords};
use crate::shutdown;
use crate::template::PyTemplate;
use crate::tensor::PyTensor;

/// The structure of a container.
pub(crate) enum Tree {
    /// A tensor.
    Leaf,
    /// A static value.
    Static(Py<PyAny>),
    /// A tuple.
    Tuple(Vec<Tree>),
    /// A list.
    List(Vec<Tree>),
    /// A dict, with its keys in the order of its leaves.
    Dict(Vec<Py<PyAny>>, Vec<Tree>),
    /// A named tuple.
    Named(Py<PyType>, Vec<Tree>),
    /// A dataclass, with the names of its fields.
    Dataclass(Py<PyType>, Vec<Py<PyString>>, Vec<Tree>),
    /// A registered class: its unflatten function and the auxiliary data of the function, and the
    /// steps of the paths to the children.
    Registered(Py<PyAny>, Py<PyAny>, Box<[String]>, Vec<Tree>),
}

/// The kind of a value.
pub(crate) enum Kind<'py> {
    /// A tensor, a number or an array: a leaf if the caller accepts it, else static.
    Other,
    /// Children of a tuple or a list.
    Tuple(Bound<'py, PyTuple>),
    /// Children of a list.
    List(Bound<'py, PyList>),
    /// Keys and values of a dict, in leaf order.
    Dict(Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>),
    /// Children of a named tuple.
    Named(Bound<'py, PyTuple>),
    /// Fields of a dataclass.
    Dataclass(Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>),
    /// Children, auxiliary data and the unflatten function of a registered class.
    Registered(Vec<Bound<'py, PyAny>>, Bound<'py, PyAny>, Bound<'py, PyAny>),
}

/// The maximum nesting depth of containers. The recursion must end before the stack overflows, on
/// any thread, and a list can contain itself.
pub(crate) const DEEPEST: usize = 256;

/// Formats the path of a value in Python notation, which only errors need.
pub(crate) type Path<'a> = &'a dyn Fn() -> String;

/// Rejects containers that nest deeper than [`DEEPEST`].
pub(crate) fn check_depth(depth: usize, path: Path<'_>) -> PyResult<()> {
    if depth <= DEEPEST {
        return Ok(());
    }
    let path = path();
    // Show only the first levels; deeper levels are brackets.
    let path = path.split('[').next().filter(|path| !path.is_empty()).unwrap_or("container");
    let why = format!("must be nested at most {DEEPEST} deep, and must not contain itself");
    Err(argument_error(path, why))
}

/// Registered classes: class → (flatten, unflatten).
static REGISTRY: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

fn registry(py: Python<'_>) -> &Bound<'_, PyDict> {
    REGISTRY.get_or_init(py, || PyDict::new(py).unbind()).bind(py)
}

/// The unflatten function of a registered class.
pub(crate) fn unflatten_of<'py>(class: &Bound<'py, PyType>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match registry(class.py()).get_item(class)? {
        Some(entry) => entry.get_item(1).map(Some),
        None => Ok(None),
    }
}

/// Inspects the class of a value.
pub(crate) fn kind_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Kind<'py>> {
    let py = value.py();
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return Ok(Kind::Tuple(tuple.clone()));
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return Ok(Kind::List(list.clone()));
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return Ok(Kind::Dict(sort_by_key(dict)));
    }
    let class = value.get_type();
    if is_built_in(&class) {
        return Ok(Kind::Other);
    }
    shutdown::prepare();
    if let Some(entry) = registry(py).get_item(&class)? {
        let (flatten, unflatten): (Bound<'py, PyAny>, Bound<'py, PyAny>) = entry.extract()?;
        let (children, aux): (Bound<'py, PyAny>, Bound<'py, PyAny>) =
            flatten.call1((value,))?.extract()?;
        let children = children.try_iter()?.collect::<PyResult<_>>()?;
        return Ok(Kind::Registered(children, aux, unflatten));
    }
    let fields = class.getattr_opt(intern!(py, "__dataclass_fields__"))?;
    // Subclasses of Python's containers that are not registered.
    let kind = if let Ok(tuple) = value.cast::<PyTuple>() {
        if class.hasattr(intern!(py, "_fields"))? {
            Kind::Named(tuple.clone())
        } else {
            Kind::Tuple(tuple.clone())
        }
    } else if let Ok(list) = value.cast::<PyList>() {
        Kind::List(list.clone())
    } else if let Ok(dict) = value.cast::<PyDict>() {
        Kind::Dict(sort_by_key(dict))
    } else {
        return match fields {
            Some(fields) => Ok(Kind::Dataclass(dataclass_fields(value, &fields)?)),
            None => Ok(Kind::Other),
        };
    };
    match fields {
        // Items and fields together have no order of their own.
        Some(_) => Err(argument_error(
            &class.name()?.to_cow()?,
            "a dataclass that derives from dict, list or tuple must be registered with \
             nx.register_container, because it has items and fields",
        )),
        None => Ok(kind),
    }
}

/// The step of the path to an item of a named tuple.
pub(crate) fn named_step(class: &Bound<'_, PyType>, index: usize) -> String {
    let names = class.getattr(intern!(class.py(), "_fields"));
    let names: Vec<String> = names.and_then(|names| names.extract()).unwrap_or_default();
    names.get(index).map_or_else(|| format!("[{index}]"), |name| format!(".{name}"))
}

/// The steps of the paths to the children of a registered class: the keys of a dict whose values are
/// the children, and the indices of other classes.
pub(crate) fn registered_steps(
    value: &Bound<'_, PyAny>,
    children: &[Bound<'_, PyAny>],
) -> PyResult<Vec<String>> {
    let indices = || (0..children.len()).map(|index| format!("[{index}]")).collect();
    let Ok(dict) = value.cast::<PyDict>() else { return Ok(indices()) };
    if dict.len() != children.len() {
        return Ok(indices());
    }
    let mut steps = Vec::with_capacity(children.len());
    // A subclass can have another order than the dict inside it.
    for (key, child) in value.try_iter()?.zip(children) {
        let key = key?;
        if !dict.get_item(&key)?.is_some_and(|item| item.is(child)) {
            return Ok(indices());
        }
        steps.push(format!("[{}]", key.repr()?));
    }
    Ok(steps)
}

/// Items by sorted keys if all keys are strings, so that two dicts with the same keys have the same
/// structure; otherwise in their own order.
fn sort_by_key<'py>(dict: &Bound<'py, PyDict>) -> Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut items: Vec<_> = dict.iter().collect();
    if items.iter().all(|(key, _)| string_of(key).is_some()) {
        items.sort_by(|(left, _), (right, _)| string_of(left).cmp(&string_of(right)));
    }
    items
}

/// Returns the characters of a string; `None` for another value, and for a string with lone surrogates.
fn string_of<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    value.cast::<PyString>().ok()?.to_str().ok()
}

/// The marker of the entries of `__dataclass_fields__` that `dataclasses.fields` returns. The other
/// entries are class variables and arguments of the constructor only.
static FIELD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns the names of the fields of a dataclass, whose `__dataclass_fields__` are `fields`.
fn field_names<'py>(fields: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
    let py = fields.py();
    let marker = FIELD.import(py, "dataclasses", "_FIELD")?;
    let mut names = Vec::new();
    for (name, field) in fields.cast::<PyDict>()? {
        if field.getattr(intern!(py, "_field_type"))?.is(marker) {
            names.push(name.cast_into::<PyString>()?);
        }
    }
    Ok(names)
}

/// Returns the names of the fields of a class whose instances are dataclasses to `kind_of`; `None` for
/// another class.
pub(crate) fn fields_of_class(class: &Bound<'_, PyType>) -> PyResult<Option<Vec<String>>> {
    let py = class.py();
    let is_other = registry(py).contains(class)?
        || class.is_subclass_of::<PyTuple>()?
        || class.is_subclass_of::<PyList>()?
        || class.is_subclass_of::<PyDict>()?;
    match class.getattr_opt(intern!(py, "__dataclass_fields__"))? {
        Some(fields) if !is_other => field_names(&fields)?
            .iter()
            .map(|name| name.extract())
            .collect::<PyResult<_>>()
            .map(Some),
        _ => Ok(None),
    }
}

fn dataclass_fields<'py>(
    value: &Bound<'py, PyAny>,
    fields: &Bound<'py, PyAny>,
) -> PyResult<Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>> {
    let with_value = |name: Bound<'py, PyString>| {
        let value = value.getattr(&name)?;
        Ok((name, value))
    };
    field_names(fields)?.into_iter().map(with_value).collect()
}

/// Returns the values of the fields that comparisons of an instance of a dataclass compare; `None` for
/// another value.
pub(crate) fn compared_fields<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let py = value.py();
    let Some(fields) = value.get_type().getattr_opt(intern!(py, "__dataclass_fields__"))? else {
        return Ok(None);
    };
    let mut compared = Vec::new();
    for (name, value) in dataclass_fields(value, &fields)? {
        if fields.get_item(&name)?.getattr(intern!(py, "compare"))?.is_truthy()? {
            compared.push(value);
        }
    }
    Ok(Some(compared))
}

/// Returns the structure of a value; `leaf` collects leaves and returns whether a value is a leaf.
pub(crate) fn flatten<'py>(
    value: &Bound<'py, PyAny>,
    path: &str,
    leaf: &mut dyn FnMut(&Bound<'py, PyAny>, Path<'_>) -> PyResult<bool>,
) -> PyResult<Tree> {
    flatten_at(value, &|| path.to_owned(), 0, leaf)
}

/// Flattens a value inside `depth` containers, see [`flatten`]. Code that does not recurse is in
/// separate functions, so that a level uses little of the stack.
fn flatten_at<'py>(
    value: &Bound<'py, PyAny>,
    path: Path<'_>,
    depth: usize,
    leaf: &mut dyn FnMut(&Bound<'py, PyAny>, Path<'_>) -> PyResult<bool>,
) -> PyResult<Tree> {
    let Some((mut holder, items)) = detach_children(value)? else {
        return outside(value, path, leaf);
    };
    check_depth(depth + 1, path)?;
    let mut children = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let path = || holder.child_path(value.py(), &path(), index).unwrap_or_else(|_| path());
        children.push(flatten_at(item, &path, depth + 1, leaf)?);
    }
    *holder.children_mut() = children;
    Ok(holder)
}

/// A value that is not a container.
fn outside<'py>(
    value: &Bound<'py, PyAny>,
    path: Path<'_>,
    leaf: &mut dyn FnMut(&Bound<'py, PyAny>, Path<'_>) -> PyResult<bool>,
) -> PyResult<Tree> {
    Ok(if leaf(value, path)? { Tree::Leaf } else { Tree::Static(value.clone().unbind()) })
}

/// A container without its children, and the children; `None` for other values.
fn detach_children<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<Option<(Tree, Vec<Bound<'py, PyAny>>)>> {
    let children = Vec::new();
    let class = || value.get_type().unbind();
    Ok(Some(match kind_of(value)? {
        Kind::Other => return Ok(None),
        Kind::Tuple(items) => (Tree::Tuple(children), items.iter().collect()),
        Kind::List(items) => (Tree::List(children), items.iter().collect()),
        Kind::Named(items) => (Tree::Named(class(), children), items.iter().collect()),
        Kind::Dict(items) => {
            let (keys, values): (Vec<_>, Vec<_>) = items.into_iter().unzip();
            (Tree::Dict(keys.into_iter().map(Bound::unbind).collect(), children), values)
        }
        Kind::Dataclass(fields) => {
            let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
            let names = names.into_iter().map(Bound::unbind).collect();
            (Tree::Dataclass(class(), names, children), values)
        }
        Kind::Registered(items, aux, unflatten) => {
            let steps = registered_steps(value, &items)?.into();
            (Tree::Registered(unflatten.unbind(), aux.unbind(), steps, children), items)
        }
    }))
}

impl Tree {
    /// Return the container with its leaves.
    pub(crate) fn rebuild(
        &self,
        py: Python<'_>,
        leaves: &mut dyn Iterator<Item = PyResult<Py<PyAny>>>,
    ) -> PyResult<Py<PyAny>> {
        if self.is_leaf() {
            return leaves.next().expect("one value for each leaf");
        }
        let mut values = Vec::with_capacity(self.children().len());
        for child in self.children() {
            values.push(child.rebuild(py, leaves)?);
        }
        self.with_children(py, values)
    }

    /// A container with the same structure and other leaves.
    fn with_children(&self, py: Python<'_>, values: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        match self {
            Tree::Leaf => unreachable!("it holds nothing"),
            Tree::Static(value) => Ok(value.clone_ref(py)),
            Tree::Tuple(_) => PyTuple::new(py, values)?.into_py_any(py),
            Tree::List(_) => PyList::new(py, values)?.into_py_any(py),
            Tree::Named(class, _) => {
                class.bind(py).call_method1(intern!(py, "_make"), (values,)).map(Bound::unbind)
            }
            Tree::Dict(keys, _) => {
                let dict = PyDict::new(py);
                for (key, value) in keys.iter().zip(values) {
                    dict.set_item(key, value)?;
                }
                dict.into_py_any(py)
            }
            Tree::Dataclass(class, names, _) => rebuild_dataclass(class.bind(py), names, values),
            Tree::Registered(unflatten, aux, ..) => {
                unflatten.call1(py, (aux, PyTuple::new(py, values)?))
            }
        }
    }

    /// Returns whether two containers have the same structure, including static values.
    pub(crate) fn same_structure(&self, py: Python<'_>, other: &Tree) -> PyResult<bool> {
        if !self.same_level(py, other)? {
            return Ok(false);
        }
        for (left, right) in self.children().iter().zip(other.children()) {
            if !left.same_structure(py, right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether two containers have the same kind, keys and number of children.
    pub(crate) fn same_level(&self, py: Python<'_>, other: &Tree) -> PyResult<bool> {
        if self.children().len() != other.children().len() {
            return Ok(false);
        }
        Ok(match (self, other) {
            (Tree::Leaf, Tree::Leaf)
            | (Tree::Tuple(_), Tree::Tuple(_))
            | (Tree::List(_), Tree::List(_)) => true,
            (Tree::Static(left), Tree::Static(right)) => left.bind(py).eq(right)?,
            (Tree::Dict(left, _), Tree::Dict(right, _)) => {
                PyList::new(py, left)?.eq(PyList::new(py, right)?)?
            }
            (Tree::Named(left, _), Tree::Named(right, _))
            | (Tree::Dataclass(left, ..), Tree::Dataclass(right, ..)) => left.is(right),
            (Tree::Registered(left, aux, ..), Tree::Registered(right, other_aux, ..)) => {
                left.is(right) && aux.bind(py).eq(other_aux)?
            }
            _ => false,
        })
    }

    /// The direct children.
    pub(crate) fn children(&self) -> &[Tree] {
        match self {
            Tree::Leaf | Tree::Static(_) => &[],
            Tree::Tuple(children)
            | Tree::List(children)
            | Tree::Dict(_, children)
            | Tree::Named(_, children)
            | Tree::Dataclass(_, _, children)
            | Tree::Registered(.., children) => children,
        }
    }

    fn children_mut(&mut self) -> &mut Vec<Tree> {
        match self {
            Tree::Leaf | Tree::Static(_) => unreachable!("it holds nothing"),
            Tree::Tuple(children)
            | Tree::List(children)
            | Tree::Dict(_, children)
            | Tree::Named(_, children)
            | Tree::Dataclass(_, _, children)
            | Tree::Registered(.., children) => children,
        }
    }

    /// The path of the child at a position, in Python notation.
    pub(crate) fn child_path(&self, py: Python<'_>, path: &str, index: usize) -> PyResult<String> {
        Ok(match self {
            Tree::Dict(keys, _) => format!("{path}[{}]", keys[index].bind(py).repr()?),
            Tree::Dataclass(_, names, _) => format!("{path}.{}", names[index]),
            Tree::Named(class, _) => format!("{path}{}", named_step(class.bind(py), index)),
            Tree::Registered(_, _, steps, _) => format!("{path}{}", steps[index]),
            Tree::Leaf | Tree::Static(_) | Tree::Tuple(_) | Tree::List(_) => {
                format!("{path}[{index}]")
            }
        })
    }

    /// The path of a leaf; `None` if the leaf does not exist.
    pub(crate) fn leaf_path(&self, py: Python<'_>, mut leaf: usize) -> PyResult<Option<String>> {
        let (mut path, mut tree) = (String::new(), self);
        while !tree.is_leaf() {
            let mut children = tree.children().iter().enumerate();
            let found = children.find(|(_, child)| match leaf.checked_sub(child.leaf_count()) {
                None => true,
                Some(rest) => {
                    leaf = rest;
                    false
                }
            });
            let Some((index, child)) = found else { return Ok(None) };
            path = tree.child_path(py, &path, index)?;
            tree = child;
        }
        Ok(Some(path))
    }

    /// The printed container with these strings in place of its leaves.
    pub(crate) fn text(&self, py: Python<'_>, leaves: Vec<String>) -> PyResult<String> {
        let mut shown = leaves.into_iter().map(|text| Ok(Py::new(py, Shown(text))?.into_any()));
        let filled = self.rebuild(py, &mut shown)?;
        Ok(filled.bind(py).repr()?.to_cow()?.into_owned())
    }

    /// The number of leaves.
    pub(crate) fn leaf_count(&self) -> usize {
        match self {
            Tree::Leaf => 1,
            other => other.children().iter().map(Tree::leaf_count).sum(),
        }
    }

    /// Returns whether the structure is a single leaf.
    pub(crate) fn is_leaf(&self) -> bool {
        matches!(self, Tree::Leaf)
    }
}

/// A dataclass with these fields. Its constructor may have side effects, so it is not called: the
/// fields are set on a new instance.
fn rebuild_dataclass(
    class: &Bound<'_, PyType>,
    names: &[Py<PyString>],
    values: Vec<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let py = class.py();
    let object = py.get_type::<PyAny>();
    let instance = object.call_method1(intern!(py, "__new__"), (class,))?;
    for (name, value) in names.iter().zip(values) {
        object.call_method1(intern!(py, "__setattr__"), (&instance, name, value))?;
    }
    Ok(instance.unbind())
}

/// Make a class a container.
///
/// Dataclasses and named tuples are containers without a registration.
///
/// Parameters
/// ----------
/// cls : type
///     The class.
/// flatten : callable
///     Returns ``(children, aux)`` for a value. The children are containers or leaves. ``aux`` must
///     be hashable, or a list, dict or set of hashable values; it is static, so a value with
///     another ``aux`` is traced again.
/// unflatten : callable
///     Returns the value for ``(aux, children)``.
///
/// Raises
/// ------
/// ArgumentError
///     If `cls` is a built-in container or leaf class, such as dict, or if `flatten` or `unflatten`
///     is not a function.
///
/// Examples
/// --------
/// >>> import nxla as nx
/// >>> class Pair:
/// ...     def __init__(self, *parts):
/// ...         self.parts = parts
/// >>> nx.register_container(Pair, lambda pair: (pair.parts, None), lambda _, parts: Pair(*parts))
/// >>> nx.jit(lambda pair: sum(pair.parts))(Pair(1, 2)).item()
/// 3
#[pyfunction]
#[pyo3(signature = (cls, flatten, unflatten, **unexpected), text_signature = "(cls, flatten, unflatten)")]
fn register_container(
    cls: Converted<Bound<'_, PyType>>,
    flatten: &Bound<'_, PyAny>,
    unflatten: &Bound<'_, PyAny>,
    unexpected: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let (py, name) = (flatten.py(), "register_container");
    reject_keywords(py, name, unexpected)?;
    let cls = &cls.or_name(py, name, "cls", "type")?;
    for (argument, value) in [("flatten", flatten), ("unflatten", unflatten)] {
        check_callable(&format!("{name}: {argument}"), value)?;
    }
    if is_built_in(cls) {
        let why = format!(
            "cls: must not be a built-in container or a class of leaves; got {}",
            cls.name()?
        );
        return Err(argument_error(name, why));
    }
    registry(py).set_item(cls, (flatten, unflatten))
}

/// Returns whether a class has a meaning in arguments that no other may replace: a container or a
/// leaf.
fn is_built_in(class: &Bound<'_, PyType>) -> bool {
    let py = class.py();
    let classes = [
        py.get_type::<PyTuple>(),
        py.get_type::<PyList>(),
        py.get_type::<PyDict>(),
        py.get_type::<PyString>(),
        py.get_type::<PyBool>(),
        py.get_type::<PyInt>(),
        py.get_type::<PyFloat>(),
        py.get_type::<PyComplex>(),
        py.get_type::<PyTensor>(),
        py.get_type::<PyExpr>(),
        py.get_type::<PyTemplate>(),
        py.get_type::<PyLazy>(),
    ];
    classes.iter().any(|own| own.is(class))
}

/// The structure of a Python value, from which the value can be rebuilt.
#[pyclass(name = "TreeDef", module = "nxla", frozen)]
pub(crate) struct PyTree(pub(crate) Tree);

#[pymethods]
impl PyTree {
    /// The number of leaves.
    #[getter]
    fn num_leaves(&self) -> usize {
        self.0.leaf_count()
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match other.cast::<PyTree>() {
            Ok(other) => self.0.same_structure(py, &other.get().0)?.into_py_any(py),
            Err(_) => Ok(py.NotImplemented()),
        }
    }

    fn __hash__(&self) -> usize {
        self.0.leaf_count()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Self::text(&self.0, py)
    }

    /// Return the container with its leaves.
    fn unflatten(&self, py: Python<'_>, leaves: Converted<Vec<Py<PyAny>>>) -> PyResult<Py<PyAny>> {
        let leaves = leaves.or_name(py, "unflatten", "leaves", "Sequence")?;
        if leaves.len() != self.0.leaf_count() {
            let why = format!(
                "leaves: must be {}, one for each leaf of the structure; got {}",
                self.0.leaf_count(),
                leaves.len()
            );
            return Err(argument_error("unflatten", why));
        }
        self.0.rebuild(py, &mut leaves.into_iter().map(Ok))
    }

    /// Return the path of the leaf with an index, in Python notation after the container.
    fn leaf_path(&self, py: Python<'_>, leaf: Converted<Count>) -> PyResult<String> {
        let Count(leaf) = leaf.value(py, "leaf_path", "leaf")?;
        let count = self.0.leaf_count();
        let beyond = || format!("leaf: must be below {count}, the number of leaves; got {leaf}");
        self.0.leaf_path(py, leaf)?.ok_or_else(|| argument_error("leaf_path", beyond()))
    }
}

impl PyTree {
    /// The container with a star for each leaf.
    pub(crate) fn text(tree: &Tree, py: Python<'_>) -> PyResult<String> {
        tree.text(py, vec!["*".into(); tree.leaf_count()])
    }
}

/// A placeholder for a leaf in the printed form of a structure.
#[pyclass(module = "nxla", frozen)]
struct Shown(String);

#[pymethods]
impl Shown {
    fn __repr__(&self) -> &str {
        &self.0
    }
}

/// The leaves of a container (tensors, traced values, numbers and arrays) and its structure.
#[pyfunction]
fn tree_flatten(value: &Bound<'_, PyAny>) -> PyResult<(Vec<Py<PyAny>>, PyTree)> {
    let mut leaves = Vec::new();
    let tree = flatten(value, "", &mut |item, _| {
        let is_leaf = crate::signature::is_leaf(item)?;
        if is_leaf {
            leaves.push(item.clone().unbind());
        }
        Ok(is_leaf)
    })?;
    Ok((leaves, PyTree(tree)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTree>()?;
    module.add_function(wrap_pyfunction!(register_container, module)?)?;
    module.add_function(wrap_pyfunction!(tree_flatten, module)?)
}
