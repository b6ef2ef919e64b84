//! A struct that is no container yet.

use nxla::{Expr, jit};

struct Layer<T> {
    weights: T,
}

fn main() {
    let _ = jit(|layer: Layer<Expr>| layer.weights);
}
