//! Trains a perceptron on the XOR function with Adam.
use nxla::optim;
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

/// Returns the loss after some steps.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let x = Tensor::from([[0f32, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
    let y = Tensor::from([[0f32], [1.0], [1.0], [0.0]]);
    let weights = |rows: usize, columns: usize| {
        Tensor::iota([rows, columns], None, DType::F32)?.sin().map(|w| (w, Tensor::from(0f32)))
    };
    let mut mlp = Mlp { hidden: weights(2, 8)?, output: weights(8, 1)? };
    let adam = optim::adam(0.05);
    let (mut loss, mut state) = (Tensor::from(1f32), adam.init(&mlp)?);
    let step =
        jit(move |mlp: Mlp<Expr>, state: optim::State<Mlp<Expr>, Expr>, x: Expr, y: Expr| {
            let loss = |mlp| (predict(&mlp, &x) - &y).pow(2).mean();
            let (loss, slopes) = value_and_grad(loss)(mlp.clone());
            Ok::<_, nxla::Error>((loss, adam.step(&mlp, &slopes, &state)?))
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
