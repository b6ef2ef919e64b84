//! The memory of freed tensors. In a process of its own, since the pool is one for all threads.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use nxla_tensor::{DType, HostTensor, Lent, Scalar, held_memory, release_held_memory};

#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn what_a_tensor_frees_the_next_one_uses_and_nothing_is_left_over_in_it() {
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

    let mut lent = Lent::new(3_800_000).unwrap();
    assert_eq!((lent.bytes_mut().as_ptr(), held_memory()), (address, 0));
    assert!(lent.bytes_mut().len() >= 3_800_000);
    drop(lent);
    assert!(Lent::new(100).is_none());
    // What is too long to be kept is lent, and freed when it comes back.
    let held = held_memory();
    let mut long = Lent::new((128 << 20) + 1).unwrap();
    assert_eq!((long.bytes_mut().len(), held_memory()), ((128 << 20) + 1, held));
    drop(long);
    assert_eq!(held_memory(), held);

    assert!(release_held_memory() >= 4_000_000);
    assert_eq!(held_memory(), 0);
}
