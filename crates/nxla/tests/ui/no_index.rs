//! Indices in an array, and elements of a type that tensors do not have.

use nxla::Tensor;

fn main() {
    let x = Tensor::from([[1, 2], [3, 4]]);
    let _ = x.at([0, 1]);
    let _ = Tensor::from(vec![1usize, 2]);
}
