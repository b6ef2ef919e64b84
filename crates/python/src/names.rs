//! Names of operations as Python users write them.
//!
//! The engine speaks of operations by Nx's names. Where the Python Array API standard has another
//! name for a function, the Python package uses that, and so must errors.

/// The name of the Python function behind an operation of the engine.
pub(crate) fn public_name(op: &str) -> &str {
    match op {
        "as_type" => "astype",
        "bitwise_not" => "bitwise_invert",
        "broadcast" => "broadcast_to",
        "concatenate" => "concat",
        "conjugate" => "conj",
        "determinant" => "det",
        "cumulative_product" => "cumulative_prod",
        "invert" => "inv",
        "io_call" => "hook",
        "is_infinity" => "isinf",
        "is_nan" => "isnan",
        "left_shift" => "bitwise_left_shift",
        "max" => "maximum",
        "min" => "minimum",
        "negate" => "negative",
        "new_axis" => "expand_dims",
        "product" => "prod",
        "reduce_max" => "max",
        "reduce_min" => "min",
        "reverse" => "flip",
        "right_shift" => "bitwise_right_shift",
        "select" => "where",
        "standard_deviation" => "std",
        "transpose" => "permute_dims",
        "variance" => "var",
        "while" => "while_loop",
        other => other,
    }
}
