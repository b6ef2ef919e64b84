//! A stream between threads: one thread reads chunks, another receives results, and the state
//! remains on the device.

use std::thread;

use nxla::prelude::*;
use nxla::{Options, stream_with};

#[derive(Container)]
struct Statistics<T> {
    count: T,
    mean: T,
    /// The sum of squared distances from the mean.
    squares: T,
}

/// Updates mean and variance by Welford's method with one chunk.
fn step(chunk: Expr, state: Statistics<Expr>) -> (Expr, Statistics<Expr>) {
    let size = chunk.shape()[0];
    let count = &state.count + size;
    let (mean, delta) = (chunk.mean(), chunk.mean() - &state.mean);
    let squares =
        state.squares + (&chunk - &mean).pow(2).sum() + delta.pow(2) * &state.count * size / &count;
    let mean = state.mean + delta * size / &count;
    (mean.clone(), Statistics { count, mean, squares })
}

/// Returns the difference between the computed and the exact variance of the numbers 0 to 9999.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let initial = Statistics { count: 0.0f64, mean: 0.0f64, squares: 0.0f64 };
    let ty = TensorType::new(DType::F64, [100]);
    let options = Options::new().compiler(compiler);
    let (sender, mut receiver) = stream_with(step, ty, initial, &options)?.split();
    let reader = thread::spawn(move || {
        (0..100).try_for_each(|chunk| {
            let numbers: Vec<f64> = (0..100).map(|at| f64::from(chunk * 100 + at)).collect();
            sender.send(Tensor::from(numbers))
        })
    });
    let mut last = 0.0;
    for mean in receiver.by_ref() {
        last = mean?.item::<f64>()?;
    }
    reader.join().expect("the reader does not panic")?;
    let state = receiver.done()?;
    let variance = state.squares.item::<f64>()? / state.count.item::<f64>()?;
    let exact = (1e8 - 1.0) / 12.0;
    Ok(((variance / exact - 1.0).abs() + (last / 4999.5 - 1.0).abs()) as f32)
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 1e-6);
    Ok(())
}
