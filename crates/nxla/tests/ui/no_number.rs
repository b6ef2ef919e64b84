//! A value that is neither a tensor nor a number, and a number that must be on the right side.

use nxla::{Expr, Tensor, jit};

fn main() {
    let rates = vec![0.1f32, 0.2];
    let _ = jit(move |x: Expr| x * rates.clone());
    let _ = Tensor::from(1.0f32) * "two";
    let rate = 0.1f32;
    let _ = jit(move |x: Expr| rate * x);
}
