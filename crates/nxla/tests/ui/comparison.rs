//! A comparison of a traced value by an operator of Rust.

use nxla::{Expr, jit};

fn main() {
    let _ = jit(|x: Expr| if x > 0.0 { x } else { -x });
    let _ = jit(|x: Expr, y: Expr| if x == y { x } else { y });
}
