//! Which compiler the function that is being traced on this thread is traced for.

use std::cell::RefCell;

use nxla::{Options, compiler_named};
use pyo3::prelude::*;

use crate::errors::OrRaise;

thread_local! {
    /// The names of the compilers of the traces under way, the innermost last.
    static COMPILERS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Takes the name away again when dropped.
#[must_use = "the compiler is the current one until this is dropped"]
pub(crate) struct Tracing(());

impl Drop for Tracing {
    fn drop(&mut self) {
        COMPILERS.with_borrow_mut(Vec::pop);
    }
}

/// Makes the compiler of these options the current one until the result is dropped.
pub(crate) fn tracing_for(options: &Options) -> PyResult<Tracing> {
    let compiler = compiler_named(options.compiler.as_deref()).or_raise()?;
    COMPILERS.with_borrow_mut(|compilers| compilers.push(compiler.name().to_owned()));
    Ok(Tracing(()))
}

/// The name of the compiler for which a function is being traced; None outside of a trace.
#[pyfunction]
fn current_compiler() -> Option<String> {
    COMPILERS.with_borrow(|compilers| compilers.last().cloned())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(current_compiler, module)?)
}
