//! Benchmarks of the forms of a program: StableHLO for XLA, bytes for other processes, and text for
//! users.
#![forbid(unsafe_code)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nxla::Program;
use nxla::graph::print::{GraphPrintOptions, lines};
use nxla::graph::serialize::to_bytes;
use nxla::stablehlo::{LowerOptions, lower};
use nxla_benches::{LENGTHS, chain_program};

fn bench(c: &mut Criterion, name: &str, write: impl Fn(&Program) -> usize) {
    let mut group = c.benchmark_group(name);
    for nodes in LENGTHS {
        let program = chain_program(nodes).expect("the chain is closed");
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| b.iter(|| write(&program)));
    }
    group.finish();
}

fn stablehlo(c: &mut Criterion) {
    bench(c, "lower/stablehlo", |program| {
        lower(program, &LowerOptions::default()).expect("every op has a lowering").text.len()
    });
}

fn bytes(c: &mut Criterion) {
    bench(c, "lower/bytes", |program| to_bytes(program).len());
}

fn text(c: &mut Criterion) {
    let options = GraphPrintOptions::default();
    bench(c, "lower/text", |program| lines(program.graph(), program.outputs(), &options).len());
}

criterion_group!(benches, stablehlo, bytes, text);
criterion_main!(benches);
