//! Benchmarks of transfers to a device and back, in bytes per second, compared with copies of
//! memory.
#![forbid(unsafe_code)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nxla::{Device, Tensor};
use nxla_benches::client;

/// 4 kB, 1 MB and 64 MB of `f32`.
const SIZES: [usize; 3] = [1 << 10, 1 << 18, 1 << 24];

fn tensor(size: usize) -> Tensor {
    Tensor::from(vec![1.0_f32; size])
}

fn copy(c: &mut Criterion) {
    let mut group = c.benchmark_group("transfer/memory copy");
    for size in SIZES {
        let bytes = vec![1_u8; size * 4];
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| b.iter(|| bytes.clone()));
    }
    group.finish();
}

fn to_device(c: &mut Criterion) {
    let Some(client) = client() else { return };
    let device = Device::of(&client, 0).expect("a client has a device");
    let mut group = c.benchmark_group("transfer/to device");
    for size in SIZES {
        let x = tensor(size);
        group.throughput(Throughput::Bytes(size as u64 * 4));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| {
                let copy = x.copy_to(&device).expect("it fits on the device");
                copy.wait().expect("the transfer succeeds");
                copy
            });
        });
    }
    group.finish();
}

fn to_host(c: &mut Criterion) {
    let Some(client) = client() else { return };
    let device = Device::of(&client, 0).expect("a client has a device");
    let mut group = c.benchmark_group("transfer/to host");
    for size in SIZES {
        let x = tensor(size).copy_to(&device).expect("it fits on the device");
        group.throughput(Throughput::Bytes(size as u64 * 4));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| x.to_host().expect("the transfer succeeds"));
        });
    }
    group.finish();
}

criterion_group!(benches, copy, to_device, to_host);
criterion_main!(benches);
