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
fn a_client_and_a_device_are_chosen_and_other_options_are_refused() {
    let Some((device, other, _guard)) = two_devices() else { return };
    for place in [&device, &other] {
        let identity = jit(|[x]: [Expr; 1]| x).device(place.clone());
        assert_eq!(identity.call([&Tensor::from(1.0f32)]).unwrap().device(), *place);
    }
    let refused = jit(|[x]: [Expr; 1]| x).compiler("xla").set("fraction", 2);
    let error = refused.call([&Tensor::from(1.0f32)]).unwrap_err().to_string();
    assert!(error.contains("fraction"), "{error}");
    let error = Device::from_name("abacus:0").unwrap_err().to_string();
    assert!(error.contains(&format!("must be one of host, {device}")), "{error}");
}

#[test]
fn two_places_at_once_are_refused() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let both = jit(|[x]: [Expr; 1]| x).compiler("xla").set("device", 0).device(device);
    let error = both.call([&Tensor::from(1.0f32)]).unwrap_err().to_string();
    assert!(error.contains("must not be set together with device"), "{error}");
}

#[test]
fn a_constant_is_made_on_the_device() {
    let Some((device, other, _guard)) = two_devices() else { return };
    for place in [device, other] {
        let before = Traffic::so_far().sent;
        let _here = run_on(&place);
        let made = Tensor::full([1000], 7, DType::S16).unwrap();
        assert_eq!((made.device(), made.dtype()), (place, DType::S16));
        assert!(Traffic::so_far().sent - before <= 8);
        assert_eq!(made.to_vec::<i16>().unwrap(), [7; 1000]);
    }
}

#[test]
fn no_more_is_read_than_asked_for() {
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
fn a_copy_on_the_same_device_is_independent() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let x = vector(&device);
    let copy = x.copy_to(&device).unwrap();
    assert!(x.deallocate().unwrap());
    assert_eq!((copy.device(), elements(&copy)), (device, vec![1.0, 2.0]));
}

#[test]
fn a_copy_goes_to_another_client_and_back_to_the_host() {
    let Some((device, other, _guard)) = two_devices() else { return };
    for (from, to) in [(&device, &other), (&other, &device), (&device, &Device::HOST)] {
        let x = vector(from);
        let copy = x.copy_to(to).unwrap();
        assert_eq!((x.device(), copy.device()), (from.clone(), to.clone()));
        assert_eq!(elements(&copy), elements(&x));
    }
}

#[test]
fn a_transfer_does_nothing_when_the_data_is_there_and_frees_the_source_else() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let x = vector(&device);
    let stayed = x.clone().transfer_to(&device).unwrap();
    assert!(stayed.is(&x) && !x.is_released().unwrap());
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
fn a_transfer_that_fails_leaves_nothing_behind() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let x = vector(&device);
    x.deallocate().unwrap();
    assert!(x.clone().transfer_to(&other).is_err());
    assert!(x.is_released().unwrap());
}

#[test]
fn deallocation_tells_whether_there_was_anything_to_free() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let x = vector(&device);
    assert_eq!((x.deallocate().unwrap(), x.deallocate().unwrap()), (true, false));
    assert!(!Tensor::from(1.0f32).deallocate().unwrap());
    let error = x.is_ready().unwrap_err().to_string();
    assert!(error.contains("deallocated or donated"), "{error}");
}

#[test]
fn batches_stay_on_the_device_and_full_ones_share_a_program() {
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
fn inspection_names_the_place_and_reads_what_it_prints() {
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
fn functions_run_where_operands_live_and_a_device_wins_over_the_host() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let host = Tensor::from(vec![1.0f32, 1.0]);
    let add = jit(|[x, y]: [Expr; 2]| x + y);
    for place in [&device, &other] {
        let x = vector(place);
        let before = Traffic::so_far().read;
        assert_eq!(add.call([&x, &host]).unwrap().device(), *place);
        assert_eq!(add.call([&host, &x]).unwrap().device(), *place);
        assert_eq!(x.sin().unwrap().device(), *place);
        assert_eq!(Traffic::so_far().read, before);
    }
    assert!(add.call([&host, &host]).unwrap().device().is_host());
    let error = add.call([&vector(&device), &vector(&other)]).unwrap_err().to_string();
    assert!(error.contains(&format!("must be on one device; got {device} and {other}")), "{error}");
}

#[test]
fn an_option_wins_over_the_operands() {
    let Some((device, other, _guard)) = two_devices() else { return };
    let x = vector(&device);
    let _options = with_default_options(&Options::new().device(other.clone()));
    assert_eq!(x.sin().unwrap().device(), other);
}

#[test]
fn what_is_compiled_for_types_runs_where_its_arguments_live() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let ty = TensorType::new(DType::F32, [2]);
    let doubled = jit(|[x]: [Expr; 1]| x * 2).compile([ty]).unwrap();
    assert_eq!(doubled.call([&vector(&device)]).unwrap().device(), device);
    assert!(doubled.call([&vector(&Device::HOST)]).unwrap().device().is_host());
}

#[test]
fn weights_on_the_device_are_not_sent_again() {
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
enum Deed {
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

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let which = || any::<usize>();
    let place = || 0..3_usize;
    let deed = prop_oneof![
        2 => any::<i8>().prop_map(Deed::Make),
        2 => which().prop_map(Deed::Share),
        3 => (which(), place()).prop_map(|(which, place)| Deed::On(which, place)),
        2 => (which(), place()).prop_map(|(which, place)| Deed::Copy(which, place)),
        3 => which().prop_map(Deed::Double),
        3 => which().prop_map(Deed::Donate),
        2 => which().prop_map(Deed::Drop),
    ];
    prop::collection::vec(deed, 1..30)
}

/// A tensor, and its expected values.
#[derive(Clone)]
struct Held {
    tensor: Tensor,
    number: f32,
    place: usize,
    /// Handles on the same memory have the same number.
    memory: usize,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buffers_hold_what_they_were_given_until_they_are_donated(deeds in deeds()) {
        let Some((device, other, _guard)) = two_devices() else { return Ok(()) };
        let places = [Device::HOST, device, other];
        let double = jit(|x: Expr| &x + &x);
        let mut made = 0;
        let mut gone = BTreeSet::new();
        let mut held: Vec<Held> = Vec::new();
        let mut new = |tensor: Tensor, number: f32, place: usize| {
            made += 1;
            Held { tensor, number, place, memory: made }
        };
        for deed in deeds {
            let at = |which: usize, held: &[Held]| held.get(which % held.len().max(1)).cloned();
            let next: Option<nxla::Result<Held>> = match deed {
                Deed::Make(number) => {
                    let number = f32::from(number);
                    Some(Ok(new(Tensor::from(vec![number; 8]), number, 0)))
                }
                Deed::Share(which) => at(which, &held).map(Ok),
                Deed::On(which, place) => at(which, &held).map(|x| {
                    let found = x.tensor.on(&places[place])?;
                    Ok(if x.place == place { x } else { new(found, x.number, place) })
                }),
                Deed::Copy(which, place) => at(which, &held).map(|x| {
                    Ok(new(x.tensor.copy_to(&places[place])?, x.number, place))
                }),
                Deed::Double(which) => at(which, &held).map(|x| {
                    let found = double.call(&x.tensor)?;
                    assert_eq!(found.device(), places[x.place]);
                    Ok(new(found, 2.0 * x.number, x.place))
                }),
                Deed::Donate(which) => at(which, &held).map(|x| {
                    let take = jit(|x: Expr| x + 1).device(places[x.place].clone()).donate([0]);
                    let found = take.call(&x.tensor)?;
                    // Host memory is never donated.
                    if x.place != 0 {
                        gone.insert(x.memory);
                    }
                    Ok(new(found, x.number + 1.0, x.place))
                }),
                Deed::Drop(which) => {
                    let place = which % held.len().max(1);
                    if place < held.len() {
                        held.remove(place);
                    }
                    None
                }
            };
            let source = match deed {
                Deed::Share(which) | Deed::On(which, _) | Deed::Copy(which, _)
                | Deed::Double(which) | Deed::Donate(which) => at(which, &held),
                Deed::Make(_) | Deed::Drop(_) => None,
            };
            match next {
                None => {}
                Some(Ok(next)) => held.push(next),
                Some(Err(error)) => {
                    let source = source.expect("something was taken");
                    prop_assert!(gone.contains(&source.memory), "{deed:?}: {error}");
                    prop_assert!(error.to_string().contains("donated"), "{error}");
                }
            }
            for Held { tensor, number, place, memory } in &held {
                prop_assert_eq!(tensor.device(), places[*place].clone());
                match tensor.to_vec::<f32>() {
                    Ok(found) => {
                        prop_assert!(!gone.contains(memory), "donated, and read");
                        prop_assert_eq!(found, vec![*number; 8]);
                    }
                    Err(error) => prop_assert!(gone.contains(memory), "{deed:?}: {error}"),
                }
            }
        }
    }
}

#[test]
fn copies_and_starts_on_a_device_are_not_read() {
    let Some((device, _, _guard)) = two_devices() else { return };
    let computed = jit(|[x]: [Expr; 1]| x + 1).compiler("xla");
    let made = computed.call([&Tensor::from(vec![0.0f32, 1.0])]).unwrap();
    for x in [vector(&device), made] {
        let before = Traffic::so_far();
        let copy = x.copy_to(&device).unwrap();
        assert_eq!(Traffic::so_far(), before);
        assert!(x.deallocate().unwrap());
        assert_eq!(elements(&copy), vec![1.0, 2.0]);
    }
    let (x, start) = (vector(&device), Tensor::from(1i32).copy_to(&device).unwrap());
    let before = Traffic::so_far().read;
    let part = x.slice(&Slice::of([&start], [1])).unwrap();
    let put = x.put_slice(&part, &[&start]).unwrap();
    assert_eq!(Traffic::so_far().read, before);
    assert_eq!((elements(&part), elements(&put)), (vec![2.0], vec![1.0, 2.0]));
}

#[test]
fn options_name_the_device_of_their_results() {
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
