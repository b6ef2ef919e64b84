//! Benchmarks of the overhead of a call of a compiled function.
//!
//! The functions add scalars, one per argument, so nearly all of the time is overhead. `plugin` is the
//! lower bound: the plugin runs the same program on existing buffers.
#![forbid(unsafe_code)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use nxla::pjrt::{Buffer, CompileOptions, ExecuteOptions};
use nxla::stablehlo::{LowerOptions, lower};
use nxla::{Device, Expr, Jit, Tensor, jit};
use nxla_benches::{client, scalar};

fn sum<const N: usize>(arguments: [Expr; N]) -> Expr {
    let mut arguments = arguments.into_iter();
    let first = arguments.next().expect("there is an argument");
    arguments.fold(first + 1.0, |sum, argument| sum + argument)
}

fn call<const N: usize>(c: &mut Criterion, compiler: &str, inputs: &[Tensor; N]) {
    let function: Jit<_, ([Expr; N],)> = jit(sum::<N>).compiler(compiler);
    let inputs = inputs.each_ref();
    let id = BenchmarkId::new(compiler, format!("{N} arguments"));
    c.benchmark_group("dispatch").bench_function(id, |b| {
        b.iter(|| {
            let result: Tensor = function.call(inputs).expect("the function compiles");
            result.wait().expect("the function runs");
            result
        });
    });
}

fn plugin_call<const N: usize>(c: &mut Criterion) {
    let Some(client) = client() else { return };
    let (program, _) = jit(sum::<N>).trace(std::array::from_fn(|_| scalar())).expect("typed");
    let module = lower(&program, &LowerOptions::default()).expect("every op has a lowering");
    let compiled = client.compile(&module.text, &CompileOptions::default()).expect("it compiles");
    let device = &client.devices()[0];
    let one = Tensor::from(1.0_f32).to_host().expect("it is on the host");
    let buffers: Vec<Buffer> = (0..N)
        .map(|_| client.buffer_from_host(&one, device).expect("one number fits on the device"))
        .collect();
    let arguments: Vec<&Buffer> = buffers.iter().collect();
    let options = ExecuteOptions::default();
    let id = BenchmarkId::new("plugin", format!("{N} arguments"));
    c.benchmark_group("dispatch").bench_function(id, |b| {
        b.iter(|| {
            let results = compiled.execute(&arguments, &options).expect("the program runs");
            results[0].wait().expect("the program runs");
            results
        });
    });
}

fn calls<const N: usize>(c: &mut Criterion) {
    let on_host = std::array::from_fn::<_, N, _>(|_| Tensor::from(1.0_f32));
    call(c, "evaluator", &on_host);
    let Some(client) = client() else { return };
    let device = Device::of(&client, 0).expect("a client has a device");
    let on_device = on_host.map(|x| x.copy_to(&device).expect("one number fits on the device"));
    plugin_call::<N>(c);
    call(c, "xla", &on_device);
}

criterion_group!(benches, calls<1>, calls<10>, calls<100>);
criterion_main!(benches);
