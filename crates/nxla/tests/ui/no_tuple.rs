//! Several arguments outside a tuple.

use nxla::{Expr, Tensor, jit};

fn main() {
    let f = jit(|x: Expr, w: Expr| x * w);
    let (x, w) = (Tensor::from(1.0f32), Tensor::from(2.0f32));
    let _ = f.call(&x, &w);
}
