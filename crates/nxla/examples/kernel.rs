//! A Rust function inside a program, with a derivative: Lambert's W function, the inverse of `w ·
//! exp(w)`, which no backend provides.

use nxla::prelude::*;
use nxla::{DType, TensorType, custom_jvp, runtime_call};

/// Computes W of each element by Halley's method: Corless et al., "On the Lambert W function"
/// (1996), (5.9).
fn kernel(x: Tensor) -> nxla::Result<Tensor> {
    let mut values: Vec<f64> = x.to_vec()?;
    for x in &mut values {
        let mut w = x.ln_1p();
        for _ in 0..10 {
            let (e, f) = (w.exp(), w * w.exp() - *x);
            w -= f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
        }
        *x = w;
    }
    Tensor::new(values, x.shape().clone())
}

/// Returns W of nonnegative values as part of a program: `W'(x) = 1 / (exp(W) + x)`.
fn lambert(x: Expr) -> Expr {
    let w: Expr = runtime_call(x.clone(), TensorType::new(DType::F64, x.shape()), kernel);
    let slope = 1.0 / (w.exp() + &x);
    custom_jvp(w, &x, |change| &slope * change)
}

/// Returns the difference between the slope of W and the reciprocal slope of its inverse.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let x = Tensor::linspace(0.1, 5.0, 50, true, DType::F64)?;
    let slopes = jit(grad(|x: Expr| lambert(x).sum())).compiler(compiler).call(&x)?;
    let inverse = jit(|x: Expr| grad(|w: Expr| (&w * w.exp()).sum())(lambert(x)));
    let steepness = inverse.compiler(compiler).call(&x)?;
    let product = jit(|a: Expr, b: Expr| (a * b - 1.0).abs().reduce_max());
    product.call((slopes, steepness))?.item()
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 1e-12);
    Ok(())
}
