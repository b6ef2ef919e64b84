//! Measures the floor: what one execution costs through this crate when the program does nothing.
//!
//! `NXLA_PJRT_PLUGIN=… cargo run --release -p nxla-pjrt --example floor`
//!
//! Prints microseconds per call, the best of several runs of back-to-back calls whose results are
//! dropped at once.

#![allow(clippy::print_stdout, reason = "the output is the purpose")]

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use nxla_pjrt::{
    Buffer, Client, CompileOptions, ExecuteOptions, HOST_CALL_TARGET, HostCall, Plugin, discover,
    register_host_fn,
};
use nxla_tensor::{DType, HostTensor};

/// Many short runs: one of them is not disturbed by whatever else the machine does.
const RUNS: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let plugin = Plugin::load(discover(None)?)?;
    let client = Client::new(&plugin, &[])?;
    println!("{}", client.fingerprint());
    println!("load and create client: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);

    for (label, inputs, outputs, calls) in
        [("x + 1", 1, 1, 500), ("100 -> 1", 100, 1, 50), ("50 -> 50", 50, 50, 20)]
    {
        let start = Instant::now();
        let program = client.compile(&sums(inputs, outputs), &CompileOptions::default())?;
        let compile = start.elapsed();
        let one = HostTensor::from_slice(&[1.0_f32], [])?;
        let args = (0..inputs)
            .map(|_| client.buffer_from_host(&one, &client.devices()[0]))
            .collect::<Result<Vec<_>, _>>()?;
        let args: Vec<&Buffer> = args.iter().collect();
        let options = ExecuteOptions::default();
        let micros = best_of(calls, || program.execute(&args, &options).map(drop))?;
        let compile = compile.as_secs_f64() * 1e3;
        println!("execute {label:<9} {micros:8.2} us   (compiled in {compile:.0} ms)");
    }

    time_host_calls(&client)?;
    time_transfers(&client)
}

/// A program that does nothing but call a host function, which does nothing.
fn time_host_calls(client: &Client) -> Result<(), Box<dyn Error>> {
    register_host_fn(1, Arc::new(|_: &mut HostCall<'_>| Ok(())));
    let text = format!(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {{
           %y = stablehlo.custom_call @{HOST_CALL_TARGET}(%x) {{
             api_version = 4 : i32, backend_config = {{id = 1 : i64}}
           }} : (tensor<f32>) -> tensor<f32>
           return %y : tensor<f32>
         }}"
    );
    let program = client.compile(&text, &CompileOptions::default())?;
    let one = HostTensor::from_slice(&[1.0_f32], [])?;
    let x = client.buffer_from_host(&one, &client.devices()[0])?;
    let options = ExecuteOptions::default();
    let micros = best_of(500, || program.execute(&[&x], &options).map(drop))?;
    println!("execute host call {micros:8.2} us");
    Ok(())
}

fn time_transfers(client: &Client) -> Result<(), Box<dyn Error>> {
    let device = &client.devices()[0];
    let small = HostTensor::from_slice(&[1.0_f32], [])?;
    let large = HostTensor::zeros(DType::F32, [1024, 1024])?;
    for (label, tensor, calls) in [("scalar", &small, 1_000), ("4 MiB", &large, 2)] {
        let buffer = client.buffer_from_host(tensor, device)?;
        let micros = best_of(calls, || client.buffer_from_host(tensor, device).map(drop))?;
        println!("{label:>7} to device {micros:8.2} us");
        let micros = best_of(calls, || buffer.to_host().map(drop))?;
        println!("{label:>7} to host   {micros:8.2} us");
        let micros = best_of(calls, || buffer.map().map(drop))?;
        println!("{label:>7} in place  {micros:8.2} us");
    }
    Ok(())
}

/// The best time of a call, in microseconds.
fn best_of<E>(calls: usize, mut call: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / calls as f64);
    }
    Ok(best)
}

/// A program of scalars: every result is an argument plus one; arguments left over are added to
/// the first result.
fn sums(inputs: usize, outputs: usize) -> String {
    let list = |count: usize, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(", ")
    };
    let params = list(inputs, &|index| format!("%x{index}: tensor<f32>"));
    let types = list(outputs, &|_| "tensor<f32>".to_owned());
    let mut text = format!(
        "func.func public @main({params}) -> ({types}) {{\n  \
         %one = stablehlo.constant dense<1.0> : tensor<f32>\n"
    );
    let add = |text: &mut String, to: String, left: &str, right: &str| {
        writeln!(text, "  {to} = stablehlo.add {left}, {right} : tensor<f32>")
    };
    for index in 0..outputs {
        add(&mut text, format!("%y{index}"), &format!("%x{index}"), "%one")
            .expect("a string takes all text");
    }
    let mut first = "%y0".to_owned();
    for index in outputs..inputs {
        let next = format!("%s{index}");
        add(&mut text, next.clone(), &first, &format!("%x{index}"))
            .expect("a string takes all text");
        first = next;
    }
    let results = list(outputs, &|index| match index {
        0 => first.clone(),
        _ => format!("%y{index}"),
    });
    writeln!(text, "  return {results} : {types}\n}}").expect("a string takes all text");
    text
}
