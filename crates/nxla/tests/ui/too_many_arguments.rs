//! A function of thirteen arguments.

use nxla::{Expr, jit};

fn main() {
    #[rustfmt::skip]
    let _ = jit(
        |a: Expr, _: Expr, _: Expr, _: Expr, _: Expr, _: Expr, _: Expr, _: Expr, _: Expr, _: Expr,
         _: Expr, _: Expr, _: Expr| a,
    );
}
