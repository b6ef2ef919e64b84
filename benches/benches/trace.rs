//! Construction of graphs: each node is checked, simplified and interned.
//!
//! Throughput is in nodes; 10 Melem/s are 100 ns a node.
#![forbid(unsafe_code)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nxla::{Expr, Program, jit};
use nxla_benches::{LENGTHS, chain, scalar};

/// Builds the graph only.
fn graph(c: &mut Criterion) {
    let mut group = c.benchmark_group("trace/graph");
    for nodes in LENGTHS {
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter(|| chain(black_box(nodes)).expect("the chain is well typed"));
        });
    }
    group.finish();
}

/// Ends a trace, which copies the needed nodes and computes the digest.
fn program(c: &mut Criterion) {
    let mut group = c.benchmark_group("trace/program");
    for nodes in LENGTHS {
        let (graph, _, output) = chain(nodes).expect("the chain is well typed");
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter(|| Program::new(&graph, vec![scalar()], &[output]).expect("it is closed"));
        });
    }
    group.finish();
}

/// Builds the same chain by the public Rust functions, with their handles and source lines.
fn expressions(c: &mut Criterion) {
    let mut group = c.benchmark_group("trace/expressions");
    for nodes in LENGTHS {
        let links = nodes / 3;
        let function = jit(move |[x]: [Expr; 1]| (0..links).fold(x, |x, _| &x * 1.5 + x.tanh()));
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter(|| function.trace([scalar()]).expect("the chain is well typed"));
        });
    }
    group.finish();
}

criterion_group!(benches, graph, program, expressions);
criterion_main!(benches);
