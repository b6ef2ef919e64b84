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

/// Arguments whose names in errors of graphs and in Python differ, by the Python function.
const ARGUMENTS: &[(&str, &str, &str)] = &[
    ("cond", "predicate", "pred"),
    ("dot", "left_batch", "x1_batch"),
    ("dot", "left_contract", "x1_contract"),
    ("dot", "right_batch", "x2_batch"),
    ("dot", "right_contract", "x2_contract"),
    ("if_", "predicate", "pred"),
    ("norm", "axes", "axis"),
    ("norm", "power", "ord"),
    ("solve", "operand", "x1"),
    ("solve", "b", "x2"),
    ("where", "predicate", "condition"),
];

/// The name in Python of an argument of a Python function, if it differs from the name in an error.
pub(crate) fn argument_name(
    py: Python<'_>,
    function: &str,
    argument: &str,
) -> Option<&'static str> {
    let mut found = ARGUMENTS.iter().filter(|(of, name, _)| *of == function && *name == argument);
    if let Some((_, _, public)) = found.next() {
        return Some(public);
    }
    let public = match argument {
        "left" => "x1",
        "right" => "x2",
        "operand" => "x",
        _ => return None,
    };
    // An op inside a function of several operands does not know which operand it refuses.
    takes_argument(py, function, public).then_some(public)
}

/// Returns whether a compiled function has an argument. Functions written in Python are not checked.
fn takes_argument(py: Python<'_>, function: &str, argument: &str) -> bool {
    let signature = py.import("nxla._core").and_then(|core| {
        core.getattr(function)?.getattr("__text_signature__")?.extract::<String>()
    });
    signature.map_or(true, |signature| {
        let mut arguments = signature.trim_matches(['(', ')']).split(", ");
        arguments.any(|each| each.split('=').next() == Some(argument))
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
