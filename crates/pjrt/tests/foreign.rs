//! Memory that buffers share with other libraries: views of it, copies, and references to buffers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[macro_use]
mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{buffer, client, donating_program, run, tensor, values};
use nxla_pjrt::{Buffer, Error, ExecuteOptions};
use nxla_tensor::{DType, Frozen, HostTensor};

/// A large tensor, whose address is aligned, and a program for it.
const SIZE: usize = 4096;

fn numbers() -> HostTensor {
    HostTensor::from_vec((0..SIZE).map(|index| index as f32).collect(), [SIZE]).unwrap()
}

/// Memory that counts how often it was dropped.
struct Counted(HostTensor, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::AcqRel);
    }
}

/// Waits until the count of drops is 1, which may happen on another thread.
fn assert_dropped(drops: &AtomicUsize) {
    for _ in 0..2000 {
        if drops.load(Ordering::Acquire) == 1 {
            return;
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("the memory was dropped {} times", drops.load(Ordering::Acquire));
}

fn view(tensor: &HostTensor) -> (Buffer, Arc<AtomicUsize>) {
    let (client, drops) = (client(), Arc::default());
    let memory = Frozen::promised_by(Counted(tensor.clone(), Arc::clone(&drops)));
    let view =
        client.view(memory, tensor.dtype(), tensor.shape().clone(), &client.devices()[0]).unwrap();
    (view, drops)
}

#[test]
fn views_share_memory_with_their_owner() {
    require_plugin!();
    let tensor = numbers();
    let (view, drops) = view(&tensor);
    assert_eq!(view.lend().unwrap().unwrap().address(), tensor.bytes().as_ptr().addr());
    assert!(view.share().unwrap().same_bits(&tensor));
    assert_eq!(drops.load(Ordering::Acquire), 0);
    drop(view);
    assert_dropped(&drops);
}

#[test]
fn byte_sized_dtypes_can_be_viewed_and_copied() {
    require_plugin!();
    let client = client();
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.bits() >= 8) {
        for shape in [&[][..], &[0, 3], &[4, 8]] {
            let zeros = HostTensor::zeros(dtype, shape).unwrap();
            let memory = zeros.share();
            let view = client.view(memory.clone(), dtype, shape, &client.devices()[0]).unwrap();
            assert!(view.to_host().unwrap().same_bits(&zeros), "{dtype}{shape:?}");
            let copy = client.copy_foreign(&memory, dtype, shape, &client.devices()[0]).unwrap();
            assert!(copy.to_host().unwrap().same_bits(&zeros), "{dtype}{shape:?}");
        }
    }
}

#[test]
fn programs_do_not_overwrite_views() {
    require_plugin!();
    let (program, tensor) = (donating_program(SIZE), numbers());
    let (view, drops) = view(&tensor);
    let sums = run(&program, &[&view]);
    assert_eq!(values::<f32>(&sums[0])[..3], [1.0, 2.0, 3.0]);
    assert_eq!(tensor.as_slice::<f32>().unwrap()[..3], [0.0, 1.0, 2.0]);
    assert_eq!(view.is_deleted(), Ok(false));
    let results = run(&program, &[&view]);
    drop(view);
    assert_eq!(values::<f32>(&results[0])[..3], [1.0, 2.0, 3.0]);
    assert_dropped(&drops);
}

#[test]
fn deleted_views_release_their_memory() {
    require_plugin!();
    let (view, drops) = view(&numbers());
    assert_eq!(view.delete(), Ok(true));
    assert_dropped(&drops);
    assert_eq!(view.lend().unwrap_err(), Error::Released);
    drop(view);
    assert_dropped(&drops);
}

#[test]
fn unsuitable_memory_is_rejected() {
    require_plugin!();
    let (client, bytes) = (client(), numbers().share());
    let device = &client.devices()[0];
    let view_error =
        |memory, dtype, size| client.view(memory, dtype, [size], device).unwrap_err().to_string();
    assert_eq!(
        view_error(bytes.clone(), DType::F32, 3),
        "foreign memory: size: must be 12 bytes for f32[3]; got 16384"
    );
    let error = view_error(bytes.clone(), DType::S4, SIZE * 4);
    assert_eq!(error, "foreign memory: dtype: must have at least 8 bits; got s4");
    /// The bytes behind the first four.
    struct Shifted(HostTensor);
    impl AsRef<[u8]> for Shifted {
        fn as_ref(&self) -> &[u8] {
            &self.0.bytes()[4..]
        }
    }
    let shifted = || Frozen::promised_by(Shifted(numbers()));
    let error = view_error(shifted(), DType::F32, SIZE - 1);
    let expected =
        format!("foreign memory: address: must be a multiple of {}", client.view_alignment());
    assert!(error.starts_with(&expected), "{error}");
    let copy = client.copy_foreign(&shifted(), DType::F32, [SIZE - 1], device).unwrap();
    assert_eq!(values::<f32>(&copy)[..3], [1.0, 2.0, 3.0]);
}

#[test]
fn a_copy_is_independent_of_the_memory() {
    require_plugin!();
    let (client, mut tensor) = (client(), numbers());
    let memory = tensor.share();
    let copy = client.copy_foreign(&memory, DType::F32, [SIZE], &client.devices()[0]).unwrap();
    drop(memory);
    tensor.make_mut::<f32>().unwrap().fill(-1.0);
    assert_eq!(values::<f32>(&copy)[..3], [0.0, 1.0, 2.0]);
}

#[test]
fn lent_memory_outlives_its_buffer() {
    require_plugin!();
    let sums = run(&donating_program(SIZE), &[&buffer(&[1.0_f32; SIZE], [SIZE])]).remove(0);
    let reference = sums.lend().unwrap().unwrap();
    let address = reference.address();
    assert_eq!(address, sums.lend().unwrap().unwrap().address());
    assert_eq!(sums.delete(), Ok(true));
    assert_eq!(sums.lend().unwrap_err(), Error::Released);
    assert_eq!(reference.address(), address);
    drop(sums);
    assert_eq!(reference.buffer().shape()[..], [SIZE]);
}

#[test]
fn lent_memory_is_not_overwritten_by_donation() {
    require_plugin!();
    let program = donating_program(SIZE);
    let x = run(&program, &[&buffer(&[1.0_f32; SIZE], [SIZE])]).remove(0);
    let reference = x.lend().unwrap().unwrap();
    let y = run(&program, &[&x]).remove(0);
    assert_ne!(y.lend().unwrap().unwrap().address(), reference.address());
    assert_eq!((values::<f32>(&x)[0], values::<f32>(&y)[0]), (2.0, 3.0));
    drop(reference);
    // Without a reference, the memory is reused.
    run(&program, &[&x]);
    assert_eq!(x.is_deleted(), Ok(true));
    assert!(x.lend().is_err());
}

#[test]
fn a_donated_buffer_cannot_be_lent() {
    require_plugin!();
    let x = buffer(&[1.0_f32; SIZE], [SIZE]);
    x.donate("step").unwrap();
    assert_eq!(x.lend().unwrap_err(), Error::Donated { to: "step".into() });
}

#[test]
fn deferred_buffers_can_be_lent() {
    require_plugin!();
    let client = client();
    let x = client.adopt(&tensor(&[1.0_f32, 2.0], [2]), &client.devices()[0]).unwrap();
    assert!(x.is_deferred());
    assert_ne!(x.lend().unwrap().unwrap().address(), 0);
    assert!(!x.is_deferred());
    assert_eq!(values::<f32>(&x), [1.0, 2.0]);
}

#[test]
fn packed_memory_is_not_lent() {
    require_plugin!();
    let client = client();
    let packed = HostTensor::zeros(DType::S4, [8]).unwrap();
    let x = client.buffer_from_host(&packed, &client.devices()[0]).unwrap();
    assert!(x.lend().unwrap().is_none());
}

#[test]
fn programs_keep_memory_of_dropped_views() {
    require_plugin!();
    let program = donating_program(SIZE);
    for _ in 0..100 {
        let (view, drops) = view(&numbers());
        let sums = program.execute(&[&view], &ExecuteOptions::default()).unwrap();
        drop(view);
        assert_eq!(values::<f32>(&sums[0])[SIZE - 1], SIZE as f32);
        assert_dropped(&drops);
    }
}
