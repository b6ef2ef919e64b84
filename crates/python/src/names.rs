//! Names of operations in Python.
//!
//! The runtime uses the operation names of Nx. The Python package uses the name in the Python Array
//! API standard if it differs, so error messages must use it too. The table of element-wise ops
//! contains their names.

use nxla_runtime::graph::{BinaryOp, UnaryOp};
use pyo3::prelude::*;

/// Operations by their names in graphs and in Python.
const NAMES: &[(&str, &str)] = &[
    ("as_type", "astype"),
    ("broadcast", "broadcast_to"),
    ("broadcast_together", "broadcast_arrays"),
    ("concatenate", "concat"),
    ("cumulative_product", "cumulative_prod"),
    ("determinant", "det"),
    ("floor_remainder", "remainder"),
    ("invert", "inv"),
    ("io_call", "hook"),
    ("is_close", "isclose"),
    ("log_gamma", "lgamma"),
    ("new_axis", "expand_dims"),
    ("product", "prod"),
    ("reduce_max", "max"),
    ("reduce_min", "min"),
    ("reverse", "flip"),
    ("select", "where"),
    ("standard_deviation", "std"),
    ("transpose", "permute_dims"),
    ("variance", "var"),
    ("while", "while_loop"),
];

/// Arguments that have another name in one Python function: the function, the name in errors of
/// graphs, and the name in Python.
const ARGUMENTS_OF: &[(&str, &str, &str)] = &[("solve", "operand", "x1"), ("solve", "b", "x2")];

/// Arguments by their names in errors of graphs, with their possible names in Python. The first name
/// that the Python function has is the right one.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("axes", &["axes", "axis"]),
    ("axis", &["axis", "axes"]),
    ("body", &["body", "body_fn"]),
    ("condition", &["condition", "cond_fn"]),
    ("left", &["x1"]),
    ("left_batch", &["x1_batch"]),
    ("left_contract", &["x1_contract"]),
    ("operand", &["x"]),
    ("other", &["x2"]),
    ("power", &["ord"]),
    ("predicate", &["pred", "condition"]),
    ("right", &["x2"]),
    ("right_batch", &["x2_batch"]),
    ("right_contract", &["x2_contract"]),
    ("x", &["x", "x1"]),
    ("y", &["y", "x2"]),
];

/// The modules of the functions whose arguments errors name.
const MODULES: &[&str] = &["nxla", "nxla.linalg", "nxla.fft", "nxla.nn", "nxla.random"];

/// The name in Python of an argument of a Python function, if it differs from the name in an error.
///
/// An op inside a function of several operands does not know which operand it refuses, so a name
/// that the function does not have is not used.
pub(crate) fn argument_name(
    py: Python<'_>,
    function: &str,
    argument: &str,
) -> Option<&'static str> {
    let mut special = ARGUMENTS_OF.iter();
    if let Some((.., name)) = special.find(|(of, name, _)| *of == function && *name == argument) {
        return Some(name);
    }
    let (_, names) = ARGUMENTS.iter().find(|(name, _)| *name == argument)?;
    let arguments = arguments_of(py, function)?;
    names.iter().copied().find(|name| arguments.iter().any(|argument| argument == name))
}

/// The names of the arguments of a public function, or `None` if its signature is not known.
fn arguments_of(py: Python<'_>, function: &str) -> Option<Vec<String>> {
    let signature = py.import("inspect").ok()?.getattr("signature").ok()?;
    MODULES.iter().find_map(|module| {
        let public = py.import(*module).ok()?.getattr(function).ok()?;
        let parameters = signature.call1((public,)).ok()?.getattr("parameters").ok()?;
        parameters.try_iter().ok()?.map(|name| name?.extract()).collect::<PyResult<_>>().ok()
    })
}

/// Returns the operations whose names may differ.
fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let unary = UnaryOp::ALL.iter().map(|op| (op.name(), op.public_name()));
    let binary = BinaryOp::ALL.iter().map(|op| (op.name(), op.public_name()));
    unary.chain(binary).chain(NAMES.iter().copied())
}

/// The name of the Python function behind an operation of graphs.
pub(crate) fn public_name(op: &str) -> &str {
    names().find(|(name, _)| *name == op).map_or(op, |(_, public)| public)
}

/// The operation of graphs behind a Python function.
pub(crate) fn op_name(function: &str) -> &str {
    names().find(|(_, public)| *public == function).map_or(function, |(name, _)| name)
}
