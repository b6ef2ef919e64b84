//! Names of operations in Python.
//!
//! The runtime uses the operation names of Nx. The Python package uses the name in the Python Array
//! API standard if it differs, so error messages must use it too. The table of element-wise ops
//! contains their names.

use nxla_runtime::graph::{BinaryOp, UnaryOp};

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
