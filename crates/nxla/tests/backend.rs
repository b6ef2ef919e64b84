//! Guarantees of a backend: placement of data, transfers and reports. These tests need a plugin,
//! and do nothing without one.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::has_plugin;
use nxla::pjrt::Traffic;
use nxla::{
    DType, Device, Expr, Leftover, Options, Slice, Tensor, TensorType, backend_transfer, devices,
    jit, run_on, with_default_options,
};
use proptest::prelude::*;

/// Returns the first device of the default client and one of another client. Transfers are counted
/// for all threads, so one test runs at a time.
fn two_devices() -> Option<(Device, Device, MutexGuard<'static, ()>)> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if !has_plugin() {
        return None;
    }
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let device = devices().unwrap().swap_remove(1);
    let other = jit(|[x]: [Expr; 1]| x)
        .compiler("xla")
        .set("cpu_device_count", 2)
        .set("device", 1)
        .call([&Tensor::from(1.0f32)])
        .unwrap()
        .device();
    assert_ne!(device.client(), other.client());
    Some((device, other, guard))
}

fn vector(device: &Device) -> Tensor {
    Tensor::from(vec![1.0f32, 2.0]).on(device).unwrap()
}

fn elements(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

#[test]
fn client_and_device_options_are_checked() {
    let Some((device, other, _guard)) = two_devices() else { return };
    for target in [&device, &other] {
        let identity = jit(|[x]: [Expr; 1]| x).device(target.clone());
        assert_eq!(identity.call([&Tensor::from(1.0f32)]).unwrap().device(), *target);
    }
    let unknown_option = jit(|[x]: [Expr; 1]| x).compiler("xla").set("fraction", 2);
    let error = unknown_option.call([&Tensor::from(1.0f32)]).unwrap_err().to_string();
    assert!(error.contains("fraction"), "{error}");
    let error = Device::from_name("abacus:0").unwrap_err().to_string();
    assert!(error.contains(&format!("must be one of host, {device}")), "{error}");
}

#[test]
fn conflicting_device_options_are_rejected() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let both = jit(|[x]: [Expr; 1]| x).compiler("xla").set("device", 0).device(device);
    let error = both.call([&Tensor::from(1.0f32)]).unwrap_err().to_string();
    assert!(error.contains("must not be set together with device"), "{error}");
}

#[test]
fn constants_are_created_on_the_device() {
    let Some((device, other, _guard)) = two_devices() else { return };
    for target in [device, other] {
        let before = Traffic::so_far().sent;
        let _here = run_on(&target);
        let tensor = Tensor::full([1000], 7, DType::S16).unwrap();
        assert_eq!((tensor.device(), tensor.dtype()), (target, DType::S16));
        assert!(Traffic::so_far().sent - before <= 8);
        assert_eq!(tensor.to_vec::<i16>().unwrap(), [7; 1000]);
    }
}

#[test]
fn first_reads_only_the_requested_elements() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let numbers: Vec<i32> = (0..10_000).collect();
    let x = Tensor::from(numbers).on(&device).unwrap();
    x.wait().unwrap();
    let before = Traffic::so_far().read;
    assert_eq!(x.first(3).unwrap().to_vec::<i32>().unwrap(), [0, 1, 2]);
    assert_eq!(Traffic::so_far().read - before, 12);
    assert_eq!(x.first(0).unwrap().size(), 0);
    assert_eq!(x.first(usize::MAX).unwrap().size(), 10_000);
    assert_eq!(Tensor::from(vec![5, 6, 7]).first(2).unwrap().to_vec::<i32>().unwrap(), [5, 6]);
}

#[test]
fn copies_on_the_same_device_are_independent() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let x = vector(&device);
    let copy = x.copy_to(&device).unwrap();
    assert!(x.deallocate().unwrap());
    assert_eq!((copy.device(), elements(&copy)), (device, vec![1.0, 2.0]));
}

#[test]
fn copies_move_between_clients_and_the_host() {
    let Some((device, other, _guard)) = two_devices() else { return };
    for (from, to) in [(&device, &other), (&other, &device), (&device, &Device::HOST)] {
        let x = vector(from);
        let copy = x.copy_to(to).unwrap();
        assert_eq!((x.device(), copy.device()), (from.clone(), to.clone()));
        assert_eq!(elements(&copy), elements(&x));
    }
}

#[test]
fn transfers_free_the_source_unless_on_the_same_device() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let x = vector(&device);
    let unmoved = x.clone().transfer_to(&device).unwrap();
    assert!(unmoved.is(&x) && !x.is_released().unwrap());
    let moved = x.clone().transfer_to(&other).unwrap();
    assert_eq!((moved.device(), elements(&moved)), (other, vec![1.0, 2.0]));
    assert!(x.is_released().unwrap());
}

#[test]
fn tensors_that_share_memory_are_transferred_once() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let x = vector(&device);
    let moved = backend_transfer(vec![x.clone(), x.clone()], &other).unwrap();
    assert!(moved[0].is(&moved[1]));
    assert_eq!((moved[0].device(), elements(&moved[1])), (other, vec![1.0, 2.0]));
    assert!(x.is_released().unwrap());
}

#[test]
fn failed_transfers_free_the_source() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let x = vector(&device);
    x.deallocate().unwrap();
    assert!(x.clone().transfer_to(&other).is_err());
    assert!(x.is_released().unwrap());
}

#[test]
fn deallocate_returns_whether_memory_was_freed() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let x = vector(&device);
    assert_eq!((x.deallocate().unwrap(), x.deallocate().unwrap()), (true, false));
    assert!(!Tensor::from(1.0f32).deallocate().unwrap());
    let error = x.is_ready().unwrap_err().to_string();
    assert!(error.contains("deallocated or donated"), "{error}");
}

#[test]
fn batches_stay_on_the_device_and_share_programs() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let x = Tensor::from((0..135).collect::<Vec<i32>>()).on(&device).unwrap();
    let misses = || nxla::executables().report().misses;
    let before = misses();
    let mut batches = x.to_batched(4, Leftover::Repeat).unwrap();
    for batch in batches.by_ref().take(33) {
        assert_eq!(batch.unwrap().device(), device);
    }
    assert_eq!(misses() - before, 1);
    let last = batches.next().unwrap().unwrap();
    assert_eq!(last.to_vec::<i32>().unwrap(), [132, 133, 134, 0]);
    assert!(batches.next().is_none());
}

#[test]
fn printing_shows_the_device_and_reads_few_elements() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let x = Tensor::from(vec![1.5f32; 10_000]).on(&device).unwrap();
    x.wait().unwrap();
    let before = Traffic::so_far().read;
    let text = x.to_string();
    assert!(Traffic::so_far().read - before <= 4 * 64);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "  f32[10000]");
    assert_eq!(
        lines[2],
        format!("  {device}"),
        "the address of the buffer differs from run to run"
    );
    let scalar = Tensor::from(1.5f32).on(&device).unwrap();
    assert_eq!(scalar.to_string(), format!("#nxla.Tensor<f32 {device} 1.5>"));
    assert!(lines[3].starts_with("  [1.5, 1.5,") && lines[3].contains(", ..., "), "{text}");
    x.deallocate().unwrap();
    assert!(x.to_string().ends_with("  released\n>"), "{x}");
}

#[test]
fn functions_run_on_the_device_of_their_operands() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let host = Tensor::from(vec![1.0f32, 1.0]);
    let add = jit(|[x, y]: [Expr; 2]| x + y);
    for target in [&device, &other] {
        let x = vector(target);
        let before = Traffic::so_far().read;
        assert_eq!(add.call([&x, &host]).unwrap().device(), *target);
        assert_eq!(add.call([&host, &x]).unwrap().device(), *target);
        assert_eq!(x.sin().unwrap().device(), *target);
        assert_eq!(Traffic::so_far().read, before);
    }
    assert!(add.call([&host, &host]).unwrap().device().is_host());
    let error = add.call([&vector(&device), &vector(&other)]).unwrap_err().to_string();
    assert!(error.contains(&format!("must be on one device; got {device} and {other}")), "{error}");
}

#[test]
fn device_option_overrides_operands() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let x = vector(&device);
    let _options = with_default_options(&Options::new().device(other.clone()));
    assert_eq!(x.sin().unwrap().device(), other);
}

#[test]
fn compiled_functions_run_on_the_device_of_arguments() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let ty = TensorType::new(DType::F32, [2]);
    let doubled = jit(|[x]: [Expr; 1]| x * 2).compile([ty]).unwrap();
    assert_eq!(doubled.call([&vector(&device)]).unwrap().device(), device);
    assert!(doubled.call([&vector(&Device::HOST)]).unwrap().device().is_host());
}

#[test]
fn device_weights_are_not_sent_again() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let weights = Tensor::from(vec![1.0f32; 4096]).on(&device).unwrap();
    let batch = Tensor::from(vec![2.0f32; 4096]);
    let product = jit(|[w, x]: [Expr; 2]| w * x);
    product.call([&weights, &batch]).unwrap();
    let before = Traffic::so_far();
    for _ in 0..5 {
        product.call([&weights, &batch]).unwrap();
    }
    let after = Traffic::so_far();
    assert_eq!((after.sent - before.sent, after.read - before.read), (5 * 4 * 4096, 0));
}

/// An operation on tensors. An index identifies each tensor.
#[derive(Clone, Copy, Debug)]
enum Action {
    Make(i8),
    /// Creates another handle on the same memory.
    Share(usize),
    /// Returns the tensor itself, or a copy on another device.
    On(usize, usize),
    Copy(usize, usize),
    Double(usize),
    /// A call that donates its argument.
    Donate(usize),
    Drop(usize),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let which = || any::<usize>();
    let device = || 0..3_usize;
    let action = prop_oneof![
        2 => any::<i8>().prop_map(Action::Make),
        2 => which().prop_map(Action::Share),
        3 => (which(), device()).prop_map(|(which, device)| Action::On(which, device)),
        2 => (which(), device()).prop_map(|(which, device)| Action::Copy(which, device)),
        3 => which().prop_map(Action::Double),
        3 => which().prop_map(Action::Donate),
        2 => which().prop_map(Action::Drop),
    ];
    prop::collection::vec(action, 1..30)
}

/// A tensor, and its expected values.
#[derive(Clone)]
struct Entry {
    tensor: Tensor,
    number: f32,
    device: usize,
    /// Handles on the same memory have the same number.
    memory: usize,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buffers_keep_their_values_until_donated(actions in actions()) {
        let Some((device, other, _guard)) = two_devices() else { return Ok(()) };
        let devices = [Device::HOST, device, other];
        let double = jit(|x: Expr| &x + &x);
        let mut allocations = 0;
        let mut donated = BTreeSet::new();
        let mut entries: Vec<Entry> = Vec::new();
        let mut new = |tensor: Tensor, number: f32, device: usize| {
            allocations += 1;
            Entry { tensor, number, device, memory: allocations }
        };
        for action in actions {
            let at = |which: usize, entries: &[Entry]| {
                entries.get(which % entries.len().max(1)).cloned()
            };
            let next: Option<nxla::Result<Entry>> = match action {
                Action::Make(number) => {
                    let number = f32::from(number);
                    Some(Ok(new(Tensor::from(vec![number; 8]), number, 0)))
                }
                Action::Share(which) => at(which, &entries).map(Ok),
                Action::On(which, device) => at(which, &entries).map(|x| {
                    let found = x.tensor.on(&devices[device])?;
                    Ok(if x.device == device { x } else { new(found, x.number, device) })
                }),
                Action::Copy(which, device) => at(which, &entries).map(|x| {
                    Ok(new(x.tensor.copy_to(&devices[device])?, x.number, device))
                }),
                Action::Double(which) => at(which, &entries).map(|x| {
                    let found = double.call(&x.tensor)?;
                    assert_eq!(found.device(), devices[x.device]);
                    Ok(new(found, 2.0 * x.number, x.device))
                }),
                Action::Donate(which) => at(which, &entries).map(|x| {
                    let donate = jit(|x: Expr| x + 1).device(devices[x.device].clone()).donate([0]);
                    let found = donate.call(&x.tensor)?;
                    // Host memory is never donated.
                    if x.device != 0 {
                        donated.insert(x.memory);
                    }
                    Ok(new(found, x.number + 1.0, x.device))
                }),
                Action::Drop(which) => {
                    let index = which % entries.len().max(1);
                    if index < entries.len() {
                        entries.remove(index);
                    }
                    None
                }
            };
            let source = match action {
                Action::Share(which) | Action::On(which, _) | Action::Copy(which, _)
                | Action::Double(which) | Action::Donate(which) => at(which, &entries),
                Action::Make(_) | Action::Drop(_) => None,
            };
            match next {
                None => {}
                Some(Ok(next)) => entries.push(next),
                Some(Err(error)) => {
                    let source = source.expect("failed actions have a source");
                    prop_assert!(donated.contains(&source.memory), "{action:?}: {error}");
                    prop_assert!(error.to_string().contains("donated"), "{error}");
                }
            }
            for Entry { tensor, number, device, memory } in &entries {
                prop_assert_eq!(tensor.device(), devices[*device].clone());
                match tensor.to_vec::<f32>() {
                    Ok(found) => {
                        prop_assert!(!donated.contains(memory), "a donated buffer was read");
                        prop_assert_eq!(found, vec![*number; 8]);
                    }
                    Err(error) => prop_assert!(donated.contains(memory), "{action:?}: {error}"),
                }
            }
        }
    }
}

#[test]
fn device_copies_and_slice_starts_are_not_read() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let computed = jit(|[x]: [Expr; 1]| x + 1).compiler("xla");
    let tensor = computed.call([&Tensor::from(vec![0.0f32, 1.0])]).unwrap();
    for x in [vector(&device), tensor] {
        let before = Traffic::so_far();
        let copy = x.copy_to(&device).unwrap();
        assert_eq!(Traffic::so_far(), before);
        assert!(x.deallocate().unwrap());
        assert_eq!(elements(&copy), vec![1.0, 2.0]);
    }
    let (x, start) = (vector(&device), Tensor::from(1i32).copy_to(&device).unwrap());
    let before = Traffic::so_far().read;
    let part = x.slice(&Slice::new([&start], [1])).unwrap();
    let put = x.put_slice(&part, &[&start]).unwrap();
    assert_eq!(Traffic::so_far().read, before);
    assert_eq!((elements(&part), elements(&put)), (vec![2.0], vec![1.0, 2.0]));
}

#[test]
fn options_determine_the_device_of_results() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let second = Options::new().compiler("xla").set("cpu_device_count", 2).set("device", 1);
    let cases = [
        (Options::new(), Device::HOST),
        (Options::new().compiler("evaluator"), Device::HOST),
        (Options::new().compiler("xla"), device.clone()),
        (Options::new().device(other.clone()), other.clone()),
        (second, other.clone()),
    ];
    for (options, expected) in cases {
        let device = options.results_device().unwrap();
        assert_eq!(device, expected);
        assert_eq!(Tensor::from(1.0f32).copy_to(&device).unwrap().device(), expected);
    }
}
