//! Benchmarks of programs on the evaluator: fused element-wise ops, reductions and matrix products.
//! Throughput is in elements of the operand, and in multiplications for products.
#![forbid(unsafe_code)]

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nxla::eval::{Hooks, Plan};
use nxla::graph::{ExprId, Graph, Result};
use nxla::{DType, HostTensor, Program, TensorType};
use nxla_benches::{chain_program, extend, scalar};

const SIZES: [usize; 3] = [1 << 10, 1 << 16, 1 << 22];
const SIDES: [usize; 3] = [16, 128, 512];

/// A plan for a function of one `f32` tensor.
fn plan(ty: TensorType, build: impl FnOnce(&mut Graph, ExprId) -> Result<ExprId>) -> Plan {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty.clone());
    let y = build(&mut graph, x).expect("the function is well typed");
    let program = Program::new(&graph, vec![ty], &[y]).expect("the function is closed");
    Plan::new(Arc::new(program))
}

fn run(c: &mut Criterion, id: BenchmarkId, work: u64, plan: &Plan, x: &HostTensor) {
    let hooks = Hooks::new();
    let mut group = c.benchmark_group("evaluator");
    group.throughput(Throughput::Elements(work));
    group.bench_function(id, |b| {
        b.iter(|| plan.run(vec![x.clone()], &hooks).expect("the program runs"));
    });
    group.finish();
}

fn constant_tensor(elements: usize, shape: &[usize]) -> HostTensor {
    HostTensor::from_slice(&vec![0.5_f32; elements], shape).expect("the shape fits")
}

/// Thirty element-wise ops, which become one step.
fn elementwise(c: &mut Criterion) {
    for size in SIZES {
        let plan = plan(TensorType::new(DType::F32, [size]), |graph, x| extend(graph, x, 30));
        let id = BenchmarkId::new("30 element-wise ops", size);
        run(c, id, size as u64, &plan, &constant_tensor(size, &[size]));
    }
}

fn sum(c: &mut Criterion) {
    for size in SIZES {
        let ty = TensorType::new(DType::F32, [size]);
        let plan = plan(ty, |graph, x| graph.sum(x, None, false));
        run(c, BenchmarkId::new("sum", size), size as u64, &plan, &constant_tensor(size, &[size]));
    }
}

fn product(c: &mut Criterion) {
    for side in SIDES {
        let ty = TensorType::new(DType::F32, [side, side]);
        let plan = plan(ty, |graph, x| graph.dot(x, x));
        let id = BenchmarkId::new("matrix product", side);
        run(c, id, (side as u64).pow(3), &plan, &constant_tensor(side * side, &[side, side]));
    }
}

/// Many small steps, to measure the overhead of a step. Planning is timed too, because a program may
/// run only once.
fn steps(c: &mut Criterion) {
    const NODES: usize = 3_000;
    let program = Arc::new(chain_program(NODES).expect("the chain is closed"));
    let mut group = c.benchmark_group("evaluator");
    group.throughput(Throughput::Elements(NODES as u64));
    group.bench_function("plan a chain", |b| b.iter(|| Plan::new(program.clone())));
    group.finish();
    let plan = plan(scalar(), |graph, x| extend(graph, x, NODES));
    run(
        c,
        BenchmarkId::new("chain of scalars", NODES),
        NODES as u64,
        &plan,
        &constant_tensor(1, &[]),
    );
}

criterion_group!(benches, elementwise, sum, product, steps);
criterion_main!(benches);
