//! Containers that the derive macro refuses, each with what to write instead.

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
