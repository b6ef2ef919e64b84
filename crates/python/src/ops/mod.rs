//! Functions of the module that build operations, one file per family.

pub(crate) mod args;
pub(crate) mod contract;
pub(crate) mod control;
mod create;
pub(crate) mod declare;
pub(crate) mod elementwise;
mod index;
pub(crate) mod indexing;
mod linalg;
mod loops;
pub(crate) mod movement;
mod nn;
mod random;
mod reduce;
mod statistics;
mod true_indices;
pub(crate) mod vectors;
mod window;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use declare::Signature;

/// Adds functions to the module.
macro_rules! add_functions {
    ($module:ident: $($function:ident),* $(,)?) => {
        $($module.add_function(pyo3::wrap_pyfunction!($function, $module)?)?;)*
    };
}
pub(crate) use add_functions;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    create::register(module)?;
    elementwise::register(module)?;
    movement::register(module)?;
    reduce::register(module)?;
    statistics::register(module)?;
    window::register(module)?;
    contract::register(module)?;
    index::register(module)?;
    indexing::register(module)?;
    true_indices::register(module)?;
    linalg::register(module)?;
    random::register(module)?;
    nn::register(module)?;
    control::register(module)?;
    loops::register(module)?;
    vectors::register(module)?;
    add_functions!(module: _signatures);
    Ok(())
}

/// The declarations of the families.
fn package_signatures() -> impl Iterator<Item = Signature> {
    let families = [
        create::signatures(),
        elementwise::signatures(),
        movement::signatures(),
        reduce::signatures(),
        statistics::signatures(),
        window::signatures(),
        contract::signatures(),
        index::signatures(),
    ];
    elementwise::table_signatures().chain(families.into_iter().flatten())
}

/// Functions of the package that are not declared, but documented with the functions that they use.
const WRITTEN_OUT: [&str; 2] = ["result_type", "where"];

/// Rows of the op table whose functions in Python do more, and are written there.
const EXTENDED: [&str; 5] = ["astype", "conj", "imag", "log", "real"];

/// The names of the functions that the package takes over as they are.
pub(crate) fn public_names() -> impl Iterator<Item = &'static str> {
    let declared =
        package_signatures().map(|(name, ..)| name).filter(|name| !EXTENDED.contains(name));
    declared.chain(WRITTEN_OUT)
}

/// The types of the arguments of declared functions by name, as annotations, and of their results
/// as
/// `return`. The stubs are made of them.
#[pyfunction]
fn _signatures(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let functions = PyDict::new(py);
    let declared = package_signatures().chain(linalg::all_signatures()).chain(nn::all_signatures());
    for (name, arguments, result) in declared {
        let types = PyDict::new(py);
        for (argument, ty) in arguments {
            types.set_item(argument, ty)?;
        }
        types.set_item("return", result)?;
        functions.set_item(name, types)?;
    }
    Ok(functions)
}
