//! Conversion of notes between Python dicts and the runtime.

use nxla_runtime::graph::serialize::host_note;
use nxla_runtime::graph::{HostNote, HostValue, MAX_NOTE_DEPTH, Note, Notes, Program};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::errors::{argument_error, format_error};
use crate::shutdown;

/// Notes from a mapping of Python.
pub(crate) fn notes_of(notes: &Bound<'_, PyAny>) -> PyResult<Notes> {
    map_of(notes.cast::<PyMapping>()?, 0)
}

fn map_of(notes: &Bound<'_, PyMapping>, depth: usize) -> PyResult<Notes> {
    let mut found = Notes::default();
    for item in notes.items()?.iter() {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        match name.cast::<PyString>() {
            Ok(name) => found.insert(name.to_str()?, note_of(&value, depth)?),
            Err(_) => found.insert(name.repr()?.to_str()?, host(Some(&name), &value)),
        };
    }
    Ok(found)
}

/// Recursion is limited by the nesting depth of notes.
fn note_of(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Note> {
    if depth > MAX_NOTE_DEPTH {
        let why = format!("notes: must be nested at most {MAX_NOTE_DEPTH} deep");
        return Err(argument_error("metadata", why));
    }
    if value.is_none() {
        return Ok(Note::Null);
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Note::Bool(value.is_true()));
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(Note::Float(value.value()));
    }
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(Note::Text(value.to_str()?.into()));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| note_of(&item?, depth + 1));
        return Ok(Note::List(items.collect::<PyResult<_>>()?));
    }
    if let Ok(notes) = value.cast::<PyMapping>() {
        return Ok(Note::Map(map_of(notes, depth + 1)?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.extract::<i64>().map_or_else(|_| host(None, value), Note::Int));
    }
    let kind = value.get_type();
    if kind.module()? == "numpy" && kind.name()? != "ndarray" && value.hasattr("item")? {
        return note_of(&value.call_method0("item")?, depth + 1);
    }
    Ok(host(None, value))
}

/// A value that has no bytes, and its name if that is not a string.
struct PyNote {
    name: Option<Py<PyAny>>,
    value: Py<PyAny>,
}

impl HostValue for PyNote {
    fn identity(&self) -> usize {
        self.value.as_ptr() as usize
    }
}

impl Drop for PyNote {
    fn drop(&mut self) {
        // The last reference may be dropped on a thread that is not attached to the interpreter.
        shutdown::prepare();
    }
}

fn host(name: Option<&Bound<'_, PyAny>>, value: &Bound<'_, PyAny>) -> Note {
    let name = name.map(|name| name.clone().unbind());
    HostNote::new(PyNote { name, value: value.clone().unbind() }).into()
}

/// Refuses to write a program with notes that have no bytes.
pub(crate) fn refuse_host_notes(function: &str, program: &Program) -> PyResult<()> {
    match host_note(program) {
        None => Ok(()),
        Some(name) => Err(format_error(
            function,
            format!(
                "metadata {name:?}: must be a string, a number of at most 64 bits, a boolean, None, or a \
                 list or mapping of them by string; got an object of this process"
            ),
        )),
    }
}

/// Notes as a dict of Python.
pub(crate) fn dict_of<'py>(py: Python<'py>, notes: &Notes) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, note) in notes {
        let key = match note {
            Note::Host(note) => note.get::<PyNote>().and_then(|note| note.name.as_ref()),
            _ => None,
        };
        match key {
            Some(key) => dict.set_item(key, value_of(py, note)?)?,
            None => dict.set_item(&**name, value_of(py, note)?)?,
        }
    }
    Ok(dict)
}

fn value_of<'py>(py: Python<'py>, note: &Note) -> PyResult<Bound<'py, PyAny>> {
    Ok(match note {
        Note::Null => py.None().into_bound(py),
        Note::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Note::Int(value) => value.into_pyobject(py)?.into_any(),
        Note::Float(value) => value.into_pyobject(py)?.into_any(),
        Note::Text(text) => PyString::new(py, text).into_any(),
        Note::List(items) => {
            let items = items.iter().map(|item| value_of(py, item));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Note::Map(notes) => dict_of(py, notes)?.into_any(),
        Note::Host(note) => match note.get::<PyNote>() {
            Some(note) => note.value.bind(py).clone(),
            None => py.None().into_bound(py),
        },
    })
}
