//! Transfers of tensors to a device, between devices, and back.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[macro_use]
mod common;

use std::ops::Range;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::{buffer, client, compile, plugin, run, tensor, values};
use nxla_pjrt::{Client, CompileOptions, Error, ExecuteOptions, NamedValue};
use nxla_tensor::{DType, Frozen, HostTensor, Scalar, Shape};

/// A tensor whose elements differ and include the extremes of its type.
fn sample(dtype: DType, shape: impl Into<Shape>) -> HostTensor {
    let shape = shape.into();
    let bytes: Vec<u8> = match dtype {
        DType::Pred => (0..shape.size()).map(|index| (index % 3 == 0) as u8).collect(),
        DType::U2 => (0..shape.size()).map(|index| (index % 4) as u8).collect(),
        DType::U4 => (0..shape.size()).map(|index| (index % 16) as u8).collect(),
        DType::S2 => {
            (0..shape.size()).map(|index| (index % 4) as u8).map(|n| n.wrapping_sub(2)).collect()
        }
        DType::S4 => {
            (0..shape.size()).map(|index| (index % 16) as u8).map(|n| n.wrapping_sub(8)).collect()
        }
        _ => (0..shape.size() * dtype.size()).map(|index| (index * 37 + 1) as u8).collect(),
    };
    HostTensor::from_bytes(dtype, shape, &bytes).unwrap()
}

#[test]
fn every_dtype_round_trips() {
    require_plugin!();
    let client = client();
    // Includes one more element than fits in whole bytes of packed types, and a shape that needs no
    // copy.
    for shape in [&[][..], &[0], &[3, 0, 2], &[17], &[2, 3, 4], &[1, 1, 1, 1, 1, 1], &[65, 129]] {
        for dtype in DType::ALL {
            let tensor = sample(dtype, shape);
            let buffer = client.buffer_from_host(&tensor, &client.devices()[0]).unwrap();
            assert_eq!((buffer.dtype(), buffer.shape()), (dtype, tensor.shape()));
            let received = buffer.to_host().unwrap();
            assert!(received.same_bits(&tensor), "{dtype}{shape:?}");
            assert!(buffer.share().unwrap().same_bits(&tensor), "{dtype}{shape:?}");
        }
    }
}

#[test]
fn every_dtype_round_trips_through_programs() {
    require_plugin!();
    for dtype in DType::ALL {
        let name = dtype.mlir_name();
        // The transposition makes the program touch every element.
        let program = compile(&format!(
            "func.func @main(%x: tensor<3x5x{name}>) -> tensor<5x3x{name}> {{
               %y = stablehlo.transpose %x, dims = [1, 0]
                 : (tensor<3x5x{name}>) -> tensor<5x3x{name}>
               return %y : tensor<5x3x{name}>
             }}"
        ));
        assert_eq!(program.outputs(), [(dtype, Shape::from([5, 3]))]);
        let (client, tensor) = (client(), sample(dtype, [3, 5]));
        let x = client.buffer_from_host(&tensor, &client.devices()[0]).unwrap();
        let y = run(&program, &[&x])[0].to_host().unwrap();
        for row in 0..3 {
            for column in 0..5 {
                let (source, target) = (row * 5 + column, column * 3 + row);
                let size = dtype.size();
                let element = |tensor: &HostTensor, index: usize| {
                    tensor.bytes()[index * size..(index + 1) * size].to_vec()
                };
                assert_eq!(element(&y, target), element(&tensor, source), "{dtype}");
            }
        }
    }
}

#[test]
fn parts_are_read_in_row_major_order() {
    require_plugin!();
    let x = buffer(&[1_i32, 2, 3, 4, 5, 6], [2, 3]);
    let parts: [([Range<usize>; 2], &[i32]); 4] = [
        ([0..0, 6..6], &[]),
        ([0..3, 3..4], &[1, 2, 3, 4]),
        ([0..99, 99..100], &[1, 2, 3, 4, 5, 6]),
        ([0..1, 4..6], &[1, 5, 6]),
    ];
    for (ranges, expected) in parts {
        let part = x.read(&ranges).unwrap();
        assert_eq!(part.shape(), &Shape::from([expected.len()]));
        assert_eq!(part.to_vec::<i32>().unwrap(), expected);
    }
    let client = client();
    let packed = sample(DType::S4, [9]);
    let x = client.buffer_from_host(&packed, &client.devices()[0]).unwrap();
    assert_eq!(x.read(&[0..2, 2..5]).unwrap().bytes(), &packed.bytes()[..5]);
}

#[test]
fn the_tensor_may_be_dropped_before_the_transfer() {
    require_plugin!();
    let client = client();
    let tensor = HostTensor::full(Scalar::Float(2.5), DType::F32, [1000, 1000]).unwrap();
    let buffer = client.buffer_from_host(&tensor, &client.devices()[0]).unwrap();
    drop(tensor);
    assert!(values::<f32>(&buffer).iter().all(|&element| element == 2.5));
}

#[test]
fn later_writes_do_not_change_device_data() {
    require_plugin!();
    let client = client();
    let mut tensor = HostTensor::full(Scalar::Int(1), DType::S32, [100_000]).unwrap();
    let buffer = client.buffer_from_host(&tensor, &client.devices()[0]).unwrap();
    tensor.make_mut::<i32>().unwrap().fill(2);
    assert_eq!(values::<i32>(&buffer), vec![1; 100_000]);
}

/// Host memory that reports when it is dropped, at an address that no device uses in place.
struct Watched(Vec<u8>, mpsc::Sender<()>);

impl AsRef<[u8]> for Watched {
    fn as_ref(&self) -> &[u8] {
        &self.0[1..]
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.1.send(());
    }
}

#[test]
fn owners_are_dropped_after_the_transfer() {
    require_plugin!();
    let client = client();
    let (sender, receiver) = mpsc::channel();
    let owner = Frozen::promised_by(Watched(vec![7; 1_000_001], sender));
    let lent = HostTensor::from_frozen(DType::U8, Shape::from([1_000_000]), owner).unwrap();
    let buffer = client.buffer_from_host(&lent, &client.devices()[0]).unwrap();
    drop(lent);
    assert_eq!(values::<u8>(&buffer), vec![7; 1_000_000]);
    drop(buffer);
    receiver.recv_timeout(Duration::from_secs(10)).unwrap();
}

#[test]
fn delete_returns_whether_memory_was_freed() {
    require_plugin!();
    let x = buffer(&[1.0_f32], [1]);
    assert!(!x.is_deleted().unwrap());
    assert_eq!(x.clone().delete(), Ok(true));
    assert_eq!(x.delete(), Ok(false));
    assert!(x.is_deleted().unwrap());
    let error = x.to_host().unwrap_err();
    assert!(error.to_string().contains("delete"), "{error}");
    assert!(x.share().is_err() && x.wait().is_err());
}

#[test]
fn shared_memory_lives_until_the_last_view_drops() {
    require_plugin!();
    let x = buffer(&[1_u8, 2, 3], [3]);
    let (first, second) = (x.share().unwrap(), x.share().unwrap());
    assert_eq!(first.bytes().as_ptr(), second.bytes().as_ptr());
    drop(first);
    x.delete().unwrap();
    assert_eq!(second.bytes(), [1, 2, 3]);
    assert!(buffer::<u8>(&[], [0]).share().unwrap().bytes().is_empty());
}

#[test]
fn readiness_is_announced() {
    require_plugin!();
    let x = buffer(&[1.0_f32], []);
    x.wait().unwrap();
    assert!(x.is_ready().unwrap());
    let (sender, receiver) = mpsc::channel();
    x.on_ready(move |outcome| sender.send(outcome).unwrap()).unwrap();
    assert_eq!(receiver.recv_timeout(Duration::from_secs(10)).unwrap(), Ok(()));
    // A panic in a callback must not end the process.
    x.on_ready(|_| panic!("a panic inside the callback")).unwrap();
    assert_eq!(values::<f32>(&x), [1.0]);
}

#[test]
fn copies_are_independent_on_the_same_device_and_on_another() {
    require_plugin!();
    let client = Client::new(&plugin(), &[("cpu_device_count", NamedValue::Int64(2))]).unwrap();
    let devices = client.devices();
    let x = client.buffer_from_host(&tensor(&[1_i32, 2], [2]), &devices[0]).unwrap();
    let copies = [x.copy_to(&devices[0]).unwrap(), x.copy_to(&devices[1]).unwrap()];
    assert_eq!(x.delete(), Ok(true));
    for (copy, device) in copies.iter().zip(devices) {
        assert_eq!(copy.device().id(), device.id());
        assert_eq!(values::<i32>(copy), [1, 2]);
    }
    // The second device computes, too.
    let program = client.compile(common::INCREMENT, &CompileOptions::on(&devices[1])).unwrap();
    let x = client.buffer_from_host(&tensor(&[1.0_f32], []), &devices[1]).unwrap();
    let y = program.execute(&[&x], &ExecuteOptions::default()).unwrap();
    assert_eq!((y[0].device().id(), values::<f32>(&y[0])), (devices[1].id(), vec![2.0]));
}

#[test]
fn devices_and_buffers_of_other_clients_are_rejected() {
    require_plugin!();
    let other = Client::new(&plugin(), &[]).unwrap();
    let x = buffer(&[1.0_f32], []);
    assert!(matches!(x.copy_to(&other.devices()[0]), Err(Error::ForeignObject { .. })));
    let tensor = tensor(&[1.0_f32], []);
    let error = client().buffer_from_host(&tensor, &other.devices()[0]).unwrap_err();
    assert!(matches!(error, Error::ForeignObject { .. }));
    let program = other.compile(common::INCREMENT, &CompileOptions::default()).unwrap();
    let error = program.execute(&[&x], &ExecuteOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "argument 0: must belong to the client of the call");
}

#[test]
fn buffers_cross_threads() {
    require_plugin!();
    let x = buffer(&[1.0_f32, 2.0], [2]);
    let sums = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| values::<f32>(&x).iter().sum::<f32>())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(sums, [3.0; 8]);
}
