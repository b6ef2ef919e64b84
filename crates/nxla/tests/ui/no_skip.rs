//! A field that is not a container.

use nxla::Container;

#[derive(Container)]
struct Layer<T> {
    weights: T,
    rate: f64,
}

fn main() {}
