//! Trains a perceptron on the XOR function with Adam.
use nxla::initializers::glorot_normal;
use nxla::optim::{self, State};
use nxla::prelude::*;
use nxla::{Draw, Error};

#[derive(Container, Clone)]
struct Mlp<T> {
    hidden: (T, T),
    output: (T, T),
}

fn predict(mlp: &Mlp<Expr>, x: &Expr) -> Expr {
    let hidden = (x.dot(&mlp.hidden.0) + &mlp.hidden.1).tanh();
    hidden.dot(&mlp.output.0) + &mlp.output.1
}

/// Returns the loss after some steps.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let x = Tensor::from([[0f32, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
    let y = Tensor::from([[0f32], [1.0], [1.0], [0.0]]);
    let keys = Tensor::random_key(1)?.random_split(2)?;
    let layer = |at: i64, rows: usize, columns: usize| {
        let weights = keys.at(at)?.initialize(glorot_normal(), Draw::new([rows, columns]))?;
        Ok::<_, Error>((weights, Tensor::zeros([columns], DType::F32)?))
    };
    let mut mlp = Mlp { hidden: layer(0, 2, 8)?, output: layer(1, 8, 1)? };
    let adam = optim::adam(0.05);
    let (mut loss, mut state) = (Tensor::from(1f32), adam.init(&mlp)?);
    let step = jit(move |mlp: Mlp<Expr>, state: State<Mlp<Expr>, Expr>, x: Expr, y: Expr| {
        let loss = |mlp| predict(&mlp, &x).sigmoid_cross_entropy(&y).mean();
        let (loss, slopes) = value_and_grad(loss)(mlp.clone());
        Ok::<_, Error>((loss, adam.step(&mlp, &slopes, &state)?))
    });
    let step = step.compiler(compiler);
    for _ in 0..500 {
        (loss, (mlp, state)) = step.call((&mlp, &state, &x, &y))?;
    }
    loss.item()
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 0.01);
    Ok(())
}
