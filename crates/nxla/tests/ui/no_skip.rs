//! A field that holds no tensor.

use nxla::Container;

#[derive(Container)]
struct Layer<T> {
    weights: T,
    rate: f64,
}

fn main() {}
