//! Containers that the derive macro rejects. Each error suggests a replacement.

use nxla::{Container, Expr};

#[derive(Container)]
struct Layer {
    weights: Expr,
}

#[derive(Container)]
enum Shape<T> {
    Round(T),
    Square([T; 2]),
}

#[derive(Container)]
struct Rate<T> {
    rate: T,
    #[container(constant)]
    name: String,
}

fn main() {}
