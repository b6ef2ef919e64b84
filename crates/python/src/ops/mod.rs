//! Functions of the module that build operations, one file per family.

pub(crate) mod args;
pub(crate) mod contract;
mod control;
mod create;
pub(crate) mod elementwise;
mod index;
pub(crate) mod indexing;
mod linalg;
pub(crate) mod movement;
mod random;
mod reduce;
pub(crate) mod vectors;
mod window;

use pyo3::prelude::*;

/// Registers functions by name.
macro_rules! functions {
    ($module:ident: $($function:ident),* $(,)?) => {
        $($module.add_function(pyo3::wrap_pyfunction!($function, $module)?)?;)*
    };
}
pub(crate) use functions;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    create::register(module)?;
    elementwise::register(module)?;
    movement::register(module)?;
    reduce::register(module)?;
    window::register(module)?;
    contract::register(module)?;
    index::register(module)?;
    linalg::register(module)?;
    random::register(module)?;
    control::register(module)?;
    vectors::register(module)
}
