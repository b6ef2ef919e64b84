//! A struct that does not implement `Container`.

use nxla::{Expr, jit};

struct Layer<T> {
    weights: T,
}

fn main() {
    let _ = jit(|layer: Layer<Expr>| layer.weights);
}
