//! A bound on the leaves of a container.

use nxla::Container;

#[derive(Container)]
struct Layer<T: Clone> {
    weights: T,
}

fn main() {}
