//! The source line of each operation.
//!
//! Looking up a line number is slow in Python (it is decoded from a table), so an operation only
//! stores the code object and the instruction, and the line is computed on demand. Frames of the
//! package are skipped.

use std::cell::RefCell;
use std::sync::Arc;

use nxla_runtime::Trace;
use nxla_runtime::graph::{AtLine, Graph, Line, Locate, Source, SourceId};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use rustc_hash::FxHashMap;

use crate::shutdown;

/// The position of an instruction, from which its line is computed later.
struct InstructionPosition {
    code: Py<PyAny>,
    instruction: i64,
}

impl Locate for InstructionPosition {
    fn locate(&self) -> Option<Line> {
        // A compiler may request the line while the interpreter shuts down.
        shutdown::inside(|py| line_of(self.code.bind(py), self.instruction)).ok().flatten()
    }
}

/// The line of an instruction, by `code.co_lines()`.
pub(crate) fn line_of(code: &Bound<'_, PyAny>, instruction: i64) -> PyResult<Option<Line>> {
    let file: String = code.getattr("co_filename")?.extract()?;
    for entry in code.call_method0("co_lines")?.try_iter()? {
        let (start, end, line): (i64, i64, Option<u32>) = entry?.extract()?;
        if (start..end).contains(&instruction) {
            return Ok(line.map(|line| Line { file: file.into(), line }));
        }
    }
    Ok(None)
}

/// Per thread: the code objects of the package, and the sources of the last trace.
#[derive(Default)]
struct SourceCache {
    /// Keyed by the address of a code object, which is kept alive so that the address stays unique.
    internal: FxHashMap<usize, (Py<PyAny>, bool)>,
    trace: u64,
    sources: FxHashMap<(usize, i64, Option<Arc<str>>), SourceId>,
}

/// The maximum number of remembered code objects, so that short-lived lambdas do not accumulate.
const MAX_CODES: usize = 4096;

thread_local! {
    static KNOWN: RefCell<SourceCache> = RefCell::default();
    /// The named scopes that the thread has entered, each with the names of its outer scopes.
    static SCOPES: RefCell<Vec<Arc<str>>> = const { RefCell::new(Vec::new()) };
}

static GET_FRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static PACKAGE: PyOnceLock<Py<PyString>> = PyOnceLock::new();

/// Sets the current source line for the next nodes of a trace.
pub(crate) fn mark(py: Python<'_>, trace: &Trace) -> PyResult<()> {
    let place = place(py)?;
    // The operation itself reports a finished trace with a better message.
    let _ = trace.build(|graph| {
        enter(graph, trace, place.as_ref());
        Ok::<_, nxla_runtime::Error>(())
    });
    Ok(())
}

/// The current source line, computed on demand. The lookup takes as long as a small operation, and
/// only errors need it.
struct CurrentLine;

impl Locate for CurrentLine {
    fn locate(&self) -> Option<Line> {
        line_at_present()
    }
}

/// The current source line, for callers without the interpreter lock.
pub(crate) fn line_at_present() -> Option<Line> {
    shutdown::attach(present_line)
}

/// The source of eager operations.
pub(crate) fn here() -> Source {
    Source::Lazy(Arc::new(CurrentLine))
}

/// Sets a source for the next nodes of a trace.
pub(crate) fn enter(graph: &mut Graph, trace: &Trace, place: Option<&(Bound<'_, PyAny>, i64)>) {
    let Some((code, instruction)) = place else { return };
    KNOWN.with_borrow_mut(|known| {
        if known.trace != trace.number() {
            known.trace = trace.number();
            known.sources.clear();
        }
        let scope = SCOPES.with_borrow(|scopes| scopes.last().cloned());
        let key = (code.as_ptr() as usize, *instruction, scope.clone());
        let source = known.sources.entry(key).or_insert_with(|| {
            let place =
                InstructionPosition { code: code.clone().unbind(), instruction: *instruction };
            let source = Source::Lazy(Arc::new(place));
            graph.add_source(match scope {
                Some(scope) => source.in_scope(scope),
                None => source,
            })
        });
        graph.set_source(*source);
    });
}

/// The innermost frame outside the package: its code and instruction.
pub(crate) fn place(py: Python<'_>) -> PyResult<Option<(Bound<'_, PyAny>, i64)>> {
    // Creating frame objects may trigger the garbage collector.
    shutdown::prepare();
    let mut frame = GET_FRAME.import(py, "sys", "_getframe")?.call0()?;
    while !frame.is_none() {
        let code = frame.getattr(intern!(py, "f_code"))?;
        if !is_internal(&code)? {
            let instruction = frame.getattr(intern!(py, "f_lasti"))?.extract()?;
            return Ok(Some((code, instruction)));
        }
        frame = frame.getattr(intern!(py, "f_back"))?;
    }
    Ok(None)
}

/// Returns whether a code object is of the package.
pub(crate) fn is_internal(code: &Bound<'_, PyAny>) -> PyResult<bool> {
    let address = code.as_ptr() as usize;
    let known = KNOWN.with_borrow(|known| known.internal.get(&address).map(|(_, is)| *is));
    if let Some(internal) = known {
        return Ok(internal);
    }
    let py = code.py();
    let internal = match PACKAGE.get(py) {
        Some(package) => {
            let file = code.getattr("co_filename")?;
            file.cast::<PyString>()?.to_cow()?.starts_with(&*package.bind(py).to_cow()?)
        }
        None => false,
    };
    KNOWN.with_borrow_mut(|known| {
        if known.internal.len() >= MAX_CODES {
            known.internal.clear();
            known.sources.clear();
        }
        known.internal.insert(address, (code.clone().unbind(), internal));
    });
    Ok(internal)
}

/// Sets the directory of the package, whose frames are skipped.
#[pyfunction]
fn set_package_directory(directory: &Bound<'_, PyString>) {
    let _ = PACKAGE.set(directory.py(), directory.clone().unbind());
}

/// Enters a named scope: nodes that the thread builds from now on belong to it.
#[pyfunction]
fn enter_scope(name: &str) {
    SCOPES.with_borrow_mut(|scopes| {
        let full = match scopes.last() {
            Some(outer) => format!("{outer}/{name}").into(),
            None => name.into(),
        };
        scopes.push(full);
    });
}

/// Leaves the innermost named scope.
#[pyfunction]
fn exit_scope() {
    SCOPES.with_borrow_mut(|scopes| scopes.pop());
}

fn present_line(py: Python<'_>) -> Option<Line> {
    let (code, instruction) = place(py).ok().flatten()?;
    line_of(&code, instruction).ok().flatten()
}

/// The current line of the user's code, as ``file.py:3``; None if unknown.
#[pyfunction]
#[pyo3(name = "user_line")]
pub(crate) fn current_line(py: Python<'_>) -> Option<String> {
    present_line(py).map(|line| line.to_string())
}

/// The end of an error message: the current source line in parentheses, or nothing if it is unknown.
pub(crate) fn at_current_line(py: Python<'_>) -> String {
    AtLine(present_line(py).as_ref()).to_string()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(enter_scope, module)?)?;
    module.add_function(wrap_pyfunction!(exit_scope, module)?)?;
    module.add_function(wrap_pyfunction!(set_package_directory, module)?)?;
    module.add_function(wrap_pyfunction!(current_line, module)?)
}
