//! Conversions between host tensors and arrays of `ndarray`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use ndarray::{Array, Array2, IxDyn, s};
use nxla_tensor::{Complex, DType, HostTensor, Scalar, TensorError, bf16};

#[test]
fn ndarray_views_and_copies() {
    let tensor = HostTensor::from_slice(&[1_i32, 2, 3, 4, 5, 6], [2, 3]).unwrap();
    let view = tensor.view::<i32>().unwrap();
    assert_eq!(view.shape(), [2, 3]);
    assert_eq!(view[[1, 0]], 4);
    assert_eq!(view.as_ptr().cast::<u8>(), tensor.bytes().as_ptr());

    let every_other = HostTensor::from_ndarray(&view.slice(s![.., ..;-2]));
    assert_eq!(every_other.shape().as_slice(), [2, 2]);
    assert_eq!(every_other.to_vec::<i32>().unwrap(), [3, 1, 6, 4]);

    let scalar =
        HostTensor::from_ndarray(&Array::from_elem(IxDyn(&[]), Complex::new(1.0_f32, 2.0)));
    assert_eq!(scalar.item(), Ok(Scalar::Complex(1.0, 2.0)));
    let empty = HostTensor::from_ndarray(&Array2::<bf16>::zeros((0, 4)));
    assert_eq!(empty.view::<bf16>().unwrap().shape(), [0, 4]);
    let huge = HostTensor::zeros(DType::U8, [0, usize::MAX / 2, 2]).unwrap();
    assert!(matches!(huge.view::<u8>(), Err(TensorError::View { .. })));
}

#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn later_writes_to_arrays_do_not_change_tensors() {
    for len in [4, 4 << 10, 4 << 20] {
        let mut array = Array::from_elem(IxDyn(&[len]), 1_u8);
        let tensor = HostTensor::from_ndarray(&array);
        let view = tensor.reshape([len, 1]).unwrap();
        array.fill(2);
        drop(array);
        for tensor in [tensor, view] {
            assert!(tensor.as_slice::<u8>().unwrap().iter().all(|&element| element == 1));
        }
    }
}
