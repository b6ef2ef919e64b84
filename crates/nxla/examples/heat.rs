//! Heat conduction in a plate: an implicit time step that is solved by conjugate gradients inside a
//! loop, and the derivative of the result with respect to the conductivity.

use nxla::prelude::*;
use nxla::{Index, fori};

const SIDE: usize = 16;

/// Returns the heat that flows in from the four neighbors; the border has the temperature 0.
fn flow(heat: &Expr) -> Expr {
    let padded = heat.pad(0, [(1, 1), (1, 1)]);
    let (inner, low, high) = (Index::between(1, -1), ..-2, 2..);
    padded.at((low, inner.clone()))
        + padded.at((high.clone(), inner.clone()))
        + padded.at((inner.clone(), low))
        + padded.at((inner, high))
        - heat * 4
}

/// Solves `x - rate · flow(x) = heat` by conjugate gradients.
fn implicit_step(heat: &Expr, rate: &Expr) -> Expr {
    let apply = |x: &Expr| x - rate * flow(x);
    let residual = heat - apply(heat);
    let state = (heat.clone(), residual.clone(), residual);
    let (x, _, _) = fori(0, 8, state, |_, (x, residual, direction)| {
        let image = apply(&direction);
        let size = (&residual * &residual).sum();
        let step = &size / ((&direction * image.clone()).sum() + 1e-20);
        let next = &residual - &step * image;
        let beta = (&next * &next).sum() / (size + 1e-20);
        (x + step * &direction, next.clone(), next + beta * direction)
    });
    x
}

/// Returns the difference between the derivative and a difference quotient.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let left = move |rate: Expr| {
        let middle = Expr::zeros([SIDE, SIDE], DType::F64)
            .put_slice(Expr::ones([2, 2], DType::F64), &[SIDE / 2 - 1, SIDE / 2 - 1]);
        fori(0, 5, middle, |_, heat| implicit_step(&heat, &rate)).pow(2).sum()
    };
    let both = jit(value_and_grad(left)).compiler(compiler);
    let (_, slope) = both.call(0.5f64)?;
    let [above, below] = [0.5 + 1e-4, 0.5 - 1e-4].map(|rate: f64| both.call(rate));
    let quotient = (above?.0.item::<f64>()? - below?.0.item::<f64>()?) / 2e-4;
    Ok((slope.item::<f64>()? / quotient - 1.0).abs() as f32)
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 1e-3);
    Ok(())
}
