//! A program without an error.

use nxla::{Container, Expr, jit};

#[derive(Container)]
struct Layer<T> {
    weights: T,
    #[container(skip)]
    rate: f64,
}

fn main() {
    let _ = jit(|layer: Layer<Expr>| layer.weights * layer.rate);
}
