//! Newton's method: fits a curve to points with exact second derivatives, in a loop that runs on
//! the backend.

use nxla::prelude::*;
use nxla::{hessian, while_loop};

/// Returns `a · exp(-b · t) + c` at the times `t`.
fn curve(parameters: &Expr, t: &Expr) -> Expr {
    let [a, b, c] = [0, 1, 2].map(|at| parameters.at(at));
    a * (-b * t).exp() + c
}

/// Returns the distance of the result from the parameters that produced the points.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let times = Tensor::linspace(0.0, 4.0, 40, true, DType::F64)?;
    let made_of = Tensor::from([2.5f64, 1.3, 0.5]);
    let points = jit(|p: Expr, t: Expr| curve(&p, &t)).compiler(compiler);
    let points = points.call((&made_of, &times))?;
    let fit = jit(|start: Expr, t: Expr, y: Expr| {
        let loss = |p: Expr| (curve(&p, &t) - &y).pow(2).sum();
        let slope = |p: &Expr| grad(loss)(p.clone());
        while_loop(
            start,
            |p| slope(&p).abs().reduce_max().greater(1e-9),
            |p| {
                let curvature = hessian(loss)(p.clone()) + 1e-9 * Expr::eye([3, 3], DType::F64);
                &p - curvature.solve(slope(&p))
            },
        )
    });
    let found = fit.compiler(compiler).call((Tensor::from([2.2f64, 1.1, 0.6]), &times, &points))?;
    (found - &made_of)?.abs()?.reduce_max()?.item()
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 1e-6);
    Ok(())
}
