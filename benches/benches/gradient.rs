//! Benchmark of reverse mode on a chain: two passes over its nodes, and the construction of the
//! derivative. Throughput is in nodes of the function, not of the derivative.
#![forbid(unsafe_code)]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nxla::gradient::gradients;
use nxla_benches::{LENGTHS, chain};

fn chains(c: &mut Criterion) {
    let mut group = c.benchmark_group("gradient/chain");
    for nodes in LENGTHS {
        let (graph, input, output) = chain(nodes).expect("the chain is well typed");
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter_batched(
                || graph.clone(),
                |mut graph| {
                    let found = gradients(&mut graph, output, &[input]);
                    // The graph is handed back, so that dropping it is not timed.
                    (found.expect("every op of the chain has a derivative"), graph)
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, chains);
criterion_main!(benches);
