//! Which compiler the function that is being traced on this thread is traced for.

use std::cell::RefCell;

use crate::compiler::compiler_named;
use crate::error::Result;
use crate::options::Options;

thread_local! {
    /// The names of the compilers of the traces under way, the innermost last.
    static COMPILERS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Takes the name away again when dropped.
#[must_use = "the compiler is the current one until this is dropped"]
pub struct Tracing(());

impl Drop for Tracing {
    fn drop(&mut self) {
        COMPILERS.with_borrow_mut(Vec::pop);
    }
}

/// Makes the compiler of these options the current one until the result is dropped; for whoever
/// enters a [`Trace`](crate::Trace).
///
/// # Errors
/// An unknown compiler.
pub fn tracing_for(options: &Options) -> Result<Tracing> {
    let compiler = compiler_named(options.compiler.as_deref())?;
    COMPILERS.with_borrow_mut(|compilers| compilers.push(compiler.name().to_owned()));
    Ok(Tracing(()))
}

/// The name of the compiler for which a function is being traced on this thread; `None` outside of
/// a trace.
///
/// ```
/// use nxla::{Expr, current_compiler, jit};
///
/// let f = jit(|x: Expr| {
///     assert_eq!(current_compiler().as_deref(), Some("evaluator"));
///     x + 1
/// });
/// f.call(1)?;
/// assert_eq!(current_compiler(), None);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn current_compiler() -> Option<String> {
    COMPILERS.with_borrow(|compilers| compilers.last().cloned())
}
