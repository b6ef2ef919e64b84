//! Taking containers apart by one level, and rebuilding them, for serialization.

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::containers::{Kind, Tree, fields_of_class, kind_of, unflatten_of};
use crate::errors::argument_error;

/// Kind, class, auxiliary structure, and children.
type Parts<'py> =
    (&'static str, Option<Bound<'py, PyType>>, Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>);

/// The kind of a container, its class if it is user-defined, its auxiliary structure (keys, field
/// names, data of a registered class), and its children. None for a value that is not a container.
#[pyfunction]
fn take_apart<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Parts<'py>>> {
    let py = value.py();
    let nothing = || py.None().into_bound(py);
    let class = || Some(value.get_type());
    Ok(match kind_of(value)? {
        Kind::Other => None,
        Kind::Tuple(items) => Some(("tuple", None, nothing(), items.iter().collect())),
        Kind::List(items) => Some(("list", None, nothing(), items.iter().collect())),
        Kind::Named(items) => Some(("named", class(), nothing(), items.iter().collect())),
        Kind::Dict(items) => {
            let (keys, children): (Vec<_>, Vec<_>) = items.into_iter().unzip();
            Some(("dict", None, PyTuple::new(py, keys)?.into_any(), children))
        }
        Kind::Dataclass(fields) => {
            let (names, children): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
            Some(("dataclass", class(), PyTuple::new(py, names)?.into_any(), children))
        }
        Kind::Registered(children, aux, _) => Some(("registered", class(), aux, children)),
    })
}

/// The container of these parts; the inverse of ``take_apart``.
#[pyfunction]
fn put_together(
    kind: &str,
    container: Option<&Bound<'_, PyType>>,
    extra: &Bound<'_, PyAny>,
    children: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = extra.py();
    let children: Vec<Py<PyAny>> = children.extract()?;
    let leaves: Vec<Tree> = children.iter().map(|_| Tree::Leaf).collect();
    let class = || {
        let missing = || argument_error("put_together", format!("class: is required for a {kind}"));
        container.cloned().ok_or_else(missing)
    };
    let tree = match kind {
        "tuple" => Tree::Tuple(leaves),
        "list" => Tree::List(leaves),
        "dict" => Tree::Dict(extra.extract()?, leaves),
        "named" => Tree::Named(class()?.unbind(), leaves),
        "dataclass" => {
            let class = class()?;
            let found: Vec<String> = extra.extract()?;
            // Bytes may not set other attributes, such as `__class__`.
            match fields_of_class(&class)? {
                Some(names) if names == found => {}
                Some(names) => {
                    let why =
                        format!("fields: must be the fields {names:?} of {class}; got {found:?}");
                    return Err(argument_error("put_together", why));
                }
                None => {
                    let why = format!("class: must be a dataclass; got {class}");
                    return Err(argument_error("put_together", why));
                }
            }
            Tree::Dataclass(class.unbind(), extra.extract()?, leaves)
        }
        "registered" => {
            let class = class()?;
            let Some(unflatten) = unflatten_of(&class)? else {
                let why = format!("class: must be registered as a container; got {class}");
                return Err(argument_error("put_together", why));
            };
            let extra = extra.clone().unbind();
            Tree::Registered(unflatten.unbind(), extra, Box::default(), leaves)
        }
        other => {
            return Err(argument_error("put_together", format!("kind: unknown container {other}")));
        }
    };
    let names = match &tree {
        Tree::Dict(keys, _) => keys.len(),
        Tree::Dataclass(_, names, _) => names.len(),
        Tree::Leaf | Tree::Static(_) | Tree::Tuple(_) | Tree::List(_) => children.len(),
        Tree::Named(..) | Tree::Registered(..) => children.len(),
    };
    if names != children.len() {
        let found = children.len();
        let why = format!("children: must be {names}, one for each key or field; got {found}");
        return Err(argument_error("put_together", why));
    }
    tree.rebuild(py, &mut children.into_iter().map(Ok))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(take_apart, module)?)?;
    module.add_function(wrap_pyfunction!(put_together, module)?)
}
