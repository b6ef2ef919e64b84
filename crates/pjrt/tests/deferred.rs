//! Buffers that are not sent to the plugin before a program uses them.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[macro_use]
mod common;

use std::sync::mpsc;
use std::thread;

use common::{INCREMENT, client, compile, plugin, run, tensor, values};
use nxla_pjrt::{Buffer, Client, CompileOptions, Error, ExecuteOptions, NamedValue};
use nxla_tensor::{DType, HostTensor, Scalar};

fn adopt(tensor: &HostTensor) -> Buffer {
    let client = client();
    client.adopt(tensor, &client.devices()[0]).unwrap()
}

#[test]
fn host_operations_do_not_transfer_deferred_buffers() {
    require_plugin!();
    let host = tensor(&[1.0_f32, 2.0, 3.0, 4.0], [2, 2]);
    let x = adopt(&host);
    x.wait().unwrap();
    assert!(x.is_ready().unwrap() && !x.is_deleted().unwrap());
    let (sender, receiver) = mpsc::channel();
    x.on_ready(move |outcome| sender.send(outcome).unwrap()).unwrap();
    assert_eq!(receiver.recv().unwrap(), Ok(()));
    assert!(std::ptr::eq(x.to_host().unwrap().bytes(), host.bytes()));
    assert!(std::ptr::eq(x.share().unwrap().bytes(), host.bytes()));
    assert_eq!(x.read(&[0..1, 1..3]).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    let copy = x.copy_to(x.device()).unwrap();
    assert!(x.is_deferred() && copy.is_deferred());
    let shared = x.share().unwrap();
    assert_eq!((x.delete(), x.delete(), x.is_deleted()), (Ok(true), Ok(false), Ok(true)));
    assert_eq!(x.to_host().unwrap_err(), Error::Released);
    assert_eq!(x.wait(), Err(Error::Released));
    assert_eq!(x.is_ready(), Err(Error::Released));
    assert_eq!((shared.bytes(), values::<f32>(&copy)), (host.bytes(), vec![1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn programs_transfer_deferred_buffers() {
    require_plugin!();
    let program = compile(INCREMENT);
    let x = adopt(&tensor(&[1.0_f32], []));
    let shared = x.share().unwrap();
    for _ in 0..2 {
        assert_eq!(values::<f32>(&run(&program, &[&x])[0]), [2.0]);
        assert!(!x.is_deferred());
    }
    assert_eq!((shared.bytes(), values::<f32>(&x)), (&1.0_f32.to_ne_bytes()[..], vec![1.0]));
    assert_eq!((x.delete(), x.is_deleted()), (Ok(true), Ok(true)));
    let deleted = adopt(&tensor(&[1.0_f32], []));
    assert_eq!(deleted.delete(), Ok(true));
    let error = program.execute(&[&deleted], &ExecuteOptions::default()).unwrap_err();
    assert_eq!(error, Error::Released);
}

#[test]
fn deferred_buffers_hold_every_dtype() {
    require_plugin!();
    for dtype in DType::ALL {
        let host = HostTensor::full(Scalar::Int(1), dtype, [70]).unwrap();
        let x = adopt(&host);
        // The plugin performs a copy to another device.
        let other = Client::new(&plugin(), &[("cpu_device_count", NamedValue::Int64(2))]).unwrap();
        let y = other.adopt(&host, &other.devices()[0]).unwrap();
        let z = y.copy_to(&other.devices()[1]).unwrap();
        assert!(!y.is_deferred() && !z.is_deferred());
        for buffer in [x, y, z] {
            assert!(buffer.to_host().unwrap().same_bits(&host), "{dtype}");
        }
    }
}

#[test]
fn live_memory_is_counted_until_freed() {
    require_plugin!();
    let client = Client::new(&plugin(), &[]).unwrap();
    let device = &client.devices()[0];
    let live = || (device.live_memory().bytes, device.live_memory().tensors);
    let x = client.adopt(&HostTensor::zeros(DType::U8, [5000]).unwrap(), device).unwrap();
    assert_eq!(live(), (5000, 1));
    x.delete().unwrap();
    assert_eq!(live(), (0, 0));
    drop(client.adopt(&HostTensor::zeros(DType::U8, [5000]).unwrap(), device).unwrap());
    assert_eq!(live(), (0, 0));
}

#[test]
fn errors_of_donated_buffers_name_the_call() {
    require_plugin!();
    let x = adopt(&tensor(&[1.0_f32], []));
    x.donate("a call").unwrap();
    let donated = Error::Donated { to: "a call".into() };
    assert_eq!(x.to_host().unwrap_err(), donated);
    assert_eq!(x.wait(), Err(donated.clone()));
    assert_eq!(x.is_ready(), Err(donated));
    assert_eq!(x.is_deleted(), Ok(true));
}

#[test]
fn devices_of_other_clients_are_rejected() {
    require_plugin!();
    let other = Client::new(&plugin(), &[]).unwrap();
    let error = client().adopt(&tensor(&[1.0_f32], []), &other.devices()[0]).unwrap_err();
    assert!(matches!(error, Error::ForeignObject { .. }));
}

#[test]
fn threads_share_one_deferred_transfer() {
    require_plugin!();
    let program = client().compile(INCREMENT, &CompileOptions::default()).unwrap();
    for _ in 0..100 {
        let x = adopt(&tensor(&[1.0_f32], []));
        thread::scope(|scope| {
            for number in 0..4 {
                let (x, program) = (&x, &program);
                scope.spawn(move || match number {
                    0 => assert_eq!(values::<f32>(x), [1.0]),
                    _ => assert_eq!(values::<f32>(&run(program, &[x])[0]), [2.0]),
                });
            }
        });
    }
}

#[test]
fn results_are_shared_without_a_copy() {
    require_plugin!();
    let program = compile(
        "func.func @main(%x: tensor<8192xf32>) -> tensor<8192xf32> {
           %y = stablehlo.add %x, %x : tensor<8192xf32>
           return %y : tensor<8192xf32>
         }",
    );
    let x = adopt(&HostTensor::full(Scalar::Float(1.5), DType::F32, [8192]).unwrap());
    let y = run(&program, &[&x]).remove(0);
    let (first, second) = (y.share().unwrap(), y.share().unwrap());
    assert!(std::ptr::eq(first.bytes(), second.bytes()));
    assert_eq!((y.delete(), y.is_deleted()), (Ok(true), Ok(true)));
    drop((y, second));
    assert!(first.to_vec::<f32>().unwrap().iter().all(|&element| element == 3.0));
}
