//! Reuse of the memory of dropped tensors, in a separate process because all threads share the
//! pool.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use nxla_tensor::{DType, HostTensor, Scalar, held_memory, release_held_memory};

#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn freed_memory_is_reused_and_zeroed() {
    let full = || HostTensor::full(Scalar::Int(7), DType::S32, [1000, 1000]).unwrap();
    let first = full();
    let address = first.bytes().as_ptr();
    let held_for_others = first.share();
    drop(first);
    assert_eq!(held_memory(), 0, "the memory is still in use");
    drop(held_for_others);
    assert!(held_memory() >= 4_000_000);

    let zeros = HostTensor::zeros(DType::F32, [1_000_000]).unwrap();
    assert_eq!((zeros.bytes().as_ptr(), held_memory()), (address, 0));
    assert!(zeros.bytes().iter().all(|&byte| byte == 0));
    drop(zeros);

    let copy = HostTensor::from_bytes(DType::U8, [3_900_000], &vec![3; 3_900_000]).unwrap();
    assert_eq!(copy.bytes().as_ptr(), address);
    assert!(copy.bytes().iter().all(|&byte| byte == 3));
    drop(copy);

    assert!(release_held_memory() >= 4_000_000);
    assert_eq!(held_memory(), 0);
}
