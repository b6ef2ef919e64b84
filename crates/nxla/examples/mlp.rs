//! A perceptron learns when exactly one of two inputs is set, with Adam.
use nxla::prelude::*;

#[derive(Container, Clone)]
struct Mlp<T> {
    hidden: (T, T),
    output: (T, T),
}

fn predict(mlp: &Mlp<Expr>, x: &Expr) -> Expr {
    let hidden = (x.dot(&mlp.hidden.0) + &mlp.hidden.1).tanh();
    (hidden.dot(&mlp.output.0) + &mlp.output.1).sigmoid()
}

/// The loss after some steps.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let step = jit(|[mlp, mean, square]: [Mlp<Expr>; 3], x: Expr, y: Expr| {
        let loss = |mlp| (predict(&mlp, &x) - &y).pow(2).mean();
        let (loss, slopes) = value_and_grad(loss)(mlp.clone());
        let mean = mean.zip(&slopes, |m, g| m * 0.9 + g * 0.1)?;
        let square = square.zip(&slopes, |s, g| s * 0.99 + g * g * 0.01)?;
        let change = mean.zip(&square, |m, s| m / (s.sqrt() + 1e-3))?;
        Ok::<_, nxla::Error>((loss, [mlp.zip(&change, |p, c| p - c * 0.05)?, mean, square]))
    });
    let step = step.compiler(compiler);
    let x = Tensor::from([[0f32, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
    let y = Tensor::from([[0f32], [1.0], [1.0], [0.0]]);
    let weights = |rows: usize, columns: usize| {
        Tensor::iota([rows, columns], None, DType::F32)?.sin().map(|w| (w, Tensor::from(0f32)))
    };
    let mlp = Mlp { hidden: weights(2, 8)?, output: weights(8, 1)? };
    let zeros = mlp.try_map(|x| x * 0)?;
    let (mut loss, mut state) = (Tensor::from(1f32), [mlp, zeros.clone(), zeros]);
    for _ in 0..500 {
        (loss, state) = step.call((&state, &x, &y))?;
    }
    loss.item()
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 0.01);
    Ok(())
}
