//! Benchmark of building nodes that exist already, which are found instead of stored.
#![forbid(unsafe_code)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nxla_benches::{LENGTHS, chain, extend};

fn intern_existing(c: &mut Criterion) {
    let mut group = c.benchmark_group("intern/found");
    for nodes in LENGTHS {
        let (mut graph, input, output) = chain(nodes).expect("the chain is well typed");
        group.throughput(Throughput::Elements(nodes as u64));
        group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
            b.iter(|| {
                let repeated = extend(&mut graph, input, nodes).expect("the chain is well typed");
                assert_eq!(repeated, output, "equal nodes are one node");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, intern_existing);
criterion_main!(benches);
