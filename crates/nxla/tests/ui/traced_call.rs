//! A call of a jitted function with a traced value.

use nxla::{Expr, jit};

fn main() {
    let double = jit(|x: Expr| x * 2);
    let _ = jit(move |x: Expr| double.call(x));
    let triple = jit(|x: Expr| x * 3);
    let _ = jit(move |x: Expr| triple.call(&x).map(|_| x.clone()));
}
