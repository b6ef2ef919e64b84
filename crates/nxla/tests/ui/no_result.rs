//! Functions whose results are not containers of expressions.

use nxla::{Expr, Tensor, cond, jit};

fn main() {
    let _ = jit(|x: Expr| -> Result<Expr, std::num::ParseIntError> { Ok(x * "2".parse::<i32>()?) });
    let weights = Tensor::from([1.0f32, 2.0]);
    let _ = jit(move |_: Expr| weights.sum());
    let _ = jit(|x: Expr| cond(x.greater(0), || 1.0, || 2.0));
}
