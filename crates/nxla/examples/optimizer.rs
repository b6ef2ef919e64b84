//! An optimizer for any container of parameters, applied to Rosenbrock's function.

use nxla::prelude::*;

/// Adam: the means of gradients and of their squares, and the number of steps.
#[derive(Container, Clone)]
struct Adam<C, T> {
    mean: C,
    square: C,
    steps: T,
    #[container(skip)]
    rate: f32,
}

impl<C: Container + Clone> Adam<C, Expr> {
    fn new(parameters: &C, rate: f32) -> Self {
        let zeros = parameters.map(|x| Expr::zeros(x.shape(), x.dtype()));
        Adam { mean: zeros.clone(), square: zeros, steps: Expr::of(0), rate }
    }

    fn step(self, parameters: &C, gradients: &C) -> nxla::Result<(C, Self)> {
        let mean = self.mean.zip(gradients, |m, g| m * 0.9 + g * 0.1)?;
        let square = self.square.zip(gradients, |s, g| s * 0.999 + g * g * 0.001)?;
        let steps = self.steps + 1;
        let [m, s] = [0.9, 0.999].map(|decay| 1 - Expr::of(decay).pow(&steps));
        let change = mean.zip(&square, |x, y| x / &m * self.rate / ((y / &s).sqrt() + 1e-8))?;
        let parameters = parameters.zip(&change, |p, c| p - c)?;
        Ok((parameters, Adam { mean, square, steps, ..self }))
    }
}

/// Returns the distance of the result from the minimum at (1, 1).
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let banana = |(x, y): (Expr, Expr)| (1 - &x).pow(2) + 100 * (y - x.pow(2)).pow(2);
    let start = jit(|point: (Expr, Expr)| Adam::new(&point, 0.05)).compiler(compiler);
    let step = move |point: (Expr, Expr), adam: Adam<(Expr, Expr), Expr>| {
        adam.step(&point, &grad(banana)(point.clone()))
    };
    let step = jit(step).compiler(compiler);
    let mut point = (Tensor::from(-1f32), Tensor::from(2f32));
    let mut adam = start.call(&point)?;
    for _ in 0..3000 {
        (point, adam) = step.call((&point, &adam))?;
    }
    Ok((point.0.item::<f32>()? - 1.0).hypot(point.1.item::<f32>()? - 1.0))
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 0.05);
    Ok(())
}
