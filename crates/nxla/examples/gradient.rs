//! A gradient on XLA: `NXLA_PJRT_PLUGIN=… cargo run -p nxla --example gradient`.

use std::io::Write;

use nxla::{Expr, Tensor, jit, value_and_grad};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let loss = |[w, x]: [Expr; 2]| ((w * x).sin() - 0.5).pow(2).sum();
    let step = jit(value_and_grad(loss)).compiler("xla");
    let (w, x) = (Tensor::from(vec![1.0f32, 2.0]), Tensor::from(vec![0.5f32, 0.25]));
    let (value, [slope, _]) = step.call([&w, &x])?;
    writeln!(std::io::stdout(), "{value}\n{slope}")?;
    Ok(())
}
