//! Benchmark of splitting a chain into stages. The time is linear in the sum of nodes and
//! boundaries.
#![forbid(unsafe_code)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nxla::split::{Decision, split_with};
use nxla_benches::{LENGTHS, chain_program};

/// A few stages, and one stage for every ten nodes.
const NODES_PER_STAGE: [usize; 2] = [1_000, 10];

fn chains(c: &mut Criterion) {
    for every in NODES_PER_STAGE {
        let mut group = c.benchmark_group(format!("split/every {every} nodes"));
        for nodes in LENGTHS {
            let program = chain_program(nodes).expect("the chain is closed");
            group.throughput(Throughput::Elements(nodes as u64));
            group.bench_function(BenchmarkId::from_parameter(nodes), |b| {
                b.iter(|| {
                    let decide = |_: nxla::graph::Node<'_>, seen: usize| {
                        let cut = (seen + 1).is_multiple_of(every);
                        (if cut { Decision::After } else { Decision::None }, seen + 1)
                    };
                    split_with(&program, 0, decide).expect("the program keeps its invariants")
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, chains);
criterion_main!(benches);
