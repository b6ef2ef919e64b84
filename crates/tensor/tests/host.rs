//! Host tensors: building, reading, sharing and converting.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;

use nxla_tensor::{
    DType, Element, Frozen, HostTensor, Names, Scalar, Shape, TensorError, match_dtype,
};

const fn assert_send_and_sync<T: Send + Sync>() {}
const _: () = assert_send_and_sync::<HostTensor>();

#[test]
fn every_dtype_builds_reads_and_round_trips_through_bytes() {
    for dtype in DType::ALL {
        let tensor = HostTensor::full(Scalar::Int(1), dtype, [2, 3]).unwrap();
        assert_eq!(tensor.dtype(), dtype);
        assert_eq!(tensor.byte_size(), 6 * dtype.size());
        assert_eq!(tensor.get(5), Scalar::one(dtype));
        let restored = HostTensor::from_bytes(dtype, [2, 3], tensor.bytes()).unwrap();
        assert!(restored.same_bits(&tensor));
        match_dtype!(dtype, T => {
            assert_eq!(tensor.as_slice::<T>().unwrap(), [T::from_scalar(Scalar::Int(1)); 6]);
        });
    }
}

#[test]
fn owned_buffers_are_aligned() {
    for size in [0, 1, 7, 1000] {
        let tensor = HostTensor::zeros(DType::U8, [size]).unwrap();
        assert_eq!(tensor.bytes().as_ptr() as usize % 64, 0);
        let copy = HostTensor::from_bytes(DType::U8, [size], tensor.bytes()).unwrap();
        assert_eq!(copy.bytes().as_ptr() as usize % 64, 0);
    }
}

#[test]
fn wrong_counts_are_errors() {
    let error = HostTensor::from_slice(&[1_i32, 2, 3], [2, 2]).unwrap_err();
    assert_eq!(error.to_string(), "elements: expected 4 for shape [2, 2]; got 3");
    let error = HostTensor::from_bytes(DType::F32, [2], &[0; 7]).unwrap_err();
    assert_eq!(error.to_string(), "bytes: expected 8 for f32[2]; got 7");
    let error = HostTensor::zeros(DType::F64, [usize::MAX / 8, 2]).unwrap_err();
    assert!(matches!(error, TensorError::TooLarge { dtype: DType::F64, .. }));
    assert!(HostTensor::zeros(DType::U8, [isize::MAX as usize]).is_err());
}

#[test]
fn excessive_allocations_are_errors() {
    let error = HostTensor::zeros(DType::F32, [1 << 40, 1 << 20]).unwrap_err();
    let expected = "cannot allocate 4611686018427387904 bytes for f32[1099511627776][1048576]";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn bytes_out_of_range_are_errors() {
    let valid: [(DType, &[u8]); 5] = [
        (DType::Pred, &[0, 1]),
        (DType::U2, &[0, 3]),
        (DType::U4, &[0, 15]),
        (DType::S2, &[1, 0xfe]),
        (DType::S4, &[7, 0xf8]),
    ];
    let invalid = [2, 4, 16, 2, 8];
    for ((dtype, bytes), byte) in valid.into_iter().zip(invalid) {
        assert!(HostTensor::from_bytes(dtype, [2], bytes).is_ok(), "{dtype}");
        let error = HostTensor::from_bytes(dtype, [2], &[0, byte]).unwrap_err();
        assert_eq!(error, TensorError::InvalidElement { dtype, index: 1, byte });
    }
    let error = HostTensor::from_slice_as(DType::S4, &[-9_i8], [1]).unwrap_err();
    assert_eq!(error.to_string(), "bytes: must be elements of dtype s4; got 0xf7 at index 0");
}

#[test]
fn typed_access_checks_the_dtype() {
    let tensor = HostTensor::from_slice(&[true, false], [2]).unwrap();
    assert_eq!(tensor.dtype(), DType::Pred);
    assert_eq!(tensor.as_slice::<u8>().unwrap(), [1, 0]);
    assert_eq!(tensor.to_vec::<bool>().unwrap(), [true, false]);
    let error = tensor.cast(DType::U8).to_vec::<bool>().unwrap_err();
    assert_eq!(error.to_string(), "elements: must be read as the Rust type of u8; got bool");
    assert_eq!(
        HostTensor::from_vec(vec![true], [2]).unwrap_err().to_string(),
        HostTensor::from_vec(vec![1_u8], [2]).unwrap_err().to_string()
    );
    let error = tensor.as_slice::<i8>().unwrap_err();
    assert_eq!(error.to_string(), "elements: must be read as the Rust type of pred; got i8");
    assert!(HostTensor::from_slice_as(DType::F32, &[1_i32], [1]).is_err());
    assert!(HostTensor::build(DType::F32, [1], |_: &mut [f64]| ()).is_err());
}

#[test]
fn frozen_memory_is_not_copied() {
    let memory: Arc<Vec<u8>> = Arc::new(vec![1, 2, 3, 4]);
    let address = memory.as_ptr();
    let mut tensor =
        HostTensor::from_frozen(DType::U8, [4], Frozen::promised_by(SharedVec(memory.clone())))
            .unwrap();
    assert_eq!(tensor.bytes().as_ptr(), address);
    assert_eq!(Arc::strong_count(&memory), 2);
    assert!(tensor.try_unique_mut().is_none());
    tensor.make_mut::<u8>().unwrap()[0] = 9;
    assert_eq!(tensor.to_vec::<u8>().unwrap(), [9, 2, 3, 4]);
    assert_eq!(*memory, [1, 2, 3, 4]);
    assert_eq!(Arc::strong_count(&memory), 1);
}

#[test]
fn frozen_memory_is_checked() {
    let bytes = HostTensor::zeros(DType::U8, [9]).unwrap();
    let from = |dtype, shape: Shape, range| {
        HostTensor::from_frozen(dtype, shape, Frozen::promised_by(Window(bytes.clone(), range)))
    };
    assert!(from(DType::F32, [2].into(), 0..8).is_ok());
    let error = from(DType::F32, [2].into(), 1..9).unwrap_err();
    assert_eq!(error, TensorError::Misaligned { dtype: DType::F32, align: 4 });
    // A pair of halves needs the alignment of one word, because it is moved as one word.
    let error = from(DType::C64, [1].into(), 1..9).unwrap_err();
    assert_eq!(error, TensorError::Misaligned { dtype: DType::C64, align: 8 });
    let error = from(DType::F32, [2].into(), 0..9).unwrap_err();
    assert!(matches!(error, TensorError::ByteCount { expected: 8, actual: 9, .. }));
}

/// Frozen memory at any address inside an aligned buffer.
struct Window(HostTensor, std::ops::Range<usize>);

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes()[self.1.clone()]
    }
}

struct SharedVec(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedVec {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[test]
fn written_elements_are_validated() {
    let written = |byte: u8| {
        HostTensor::from_writer(DType::Pred, [3], |bytes| {
            bytes.fill(byte);
            Ok::<(), TensorError>(())
        })
    };
    assert_eq!(written(1).unwrap().to_vec::<u8>().unwrap(), [1, 1, 1]);
    let expected = TensorError::InvalidElement { dtype: DType::Pred, index: 0, byte: 2 };
    assert_eq!(written(2).unwrap_err(), expected);
    let failed = HostTensor::from_writer(DType::U8, [3], |_| Err(expected.clone()));
    assert_eq!(failed.unwrap_err(), expected);
    assert_eq!(HostTensor::scratch(DType::F64, [2, 3]).unwrap().bytes().len(), 48);
    let overflow = HostTensor::scratch(DType::F64, [usize::MAX / 2, 2]).unwrap_err();
    assert!(matches!(overflow, TensorError::TooLarge { .. }));
}

#[test]
fn shared_memory_is_copied_before_it_is_written() {
    let mut tensor = HostTensor::from_slice(&[1_i32, 2], [2]).unwrap();
    let shared = tensor.share();
    tensor.make_mut::<i32>().unwrap().fill(0);
    assert_eq!(shared.bytes(), bytemuck::bytes_of(&[1_i32, 2]));
    let refrozen = HostTensor::from_frozen(DType::S32, [2], shared.clone()).unwrap();
    assert_eq!(refrozen.bytes().as_ptr(), shared.bytes().as_ptr());
}

#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn later_writes_to_sources_do_not_change_tensors() {
    for len in [4, 4 << 10, 4 << 20] {
        let mut elements = vec![1_u8; len];
        let tensors = [
            HostTensor::from_slice(&elements, [len]).unwrap(),
            HostTensor::from_slice_as(DType::U8, &elements, [len]).unwrap(),
            HostTensor::from_bytes(DType::U8, [len], &elements).unwrap(),
        ];
        let views: Vec<HostTensor> =
            tensors.iter().map(|tensor| tensor.reshape([len, 1]).unwrap()).collect();
        elements.fill(2);
        drop(elements);
        for tensor in tensors.iter().chain(&views) {
            assert!(tensor.as_slice::<u8>().unwrap().iter().all(|&element| element == 1));
        }
    }
}

#[test]
fn writes_require_a_unique_handle() {
    let mut tensor = HostTensor::zeros(DType::S32, [2]).unwrap();
    let address = tensor.bytes().as_ptr();
    assert!(tensor.try_unique_mut().is_some());
    tensor.make_mut::<i32>().unwrap()[1] = 5;
    assert_eq!(tensor.bytes().as_ptr(), address);

    let shared = tensor.reshape([1, 2]).unwrap();
    assert_eq!(shared.bytes().as_ptr(), address);
    assert!(tensor.try_unique_mut().is_none());
    tensor.make_mut::<i32>().unwrap()[0] = 7;
    assert_eq!(tensor.to_vec::<i32>().unwrap(), [7, 5]);
    assert_eq!(shared.to_vec::<i32>().unwrap(), [0, 5]);
    assert!(tensor.try_unique_mut().is_some());
}

#[test]
fn reshaping() {
    let tensor = HostTensor::from_slice(&[1_u8, 2, 3, 4], [2, 2]).unwrap();
    assert_eq!(tensor.reshape([4, 1]).unwrap().get(3), Scalar::UInt(4));
    let error = tensor.reshape([3]).unwrap_err();
    assert_eq!(error.to_string(), "cannot reshape [2, 2] (4 elements) to [3] (3 elements)");
    let empty = HostTensor::zeros(DType::F32, [0, 3]).unwrap();
    assert_eq!(empty.reshape([7, 0]).unwrap().size(), 0);
    assert!(empty.reshape(Shape::scalar()).is_err());
}

#[test]
fn names_must_match_the_rank() {
    let tensor = HostTensor::zeros(DType::F32, [2, 3]).unwrap();
    let names = Names::from([Some("x"), None]);
    let named = tensor.clone().with_names(Some(names.clone())).unwrap();
    assert_eq!(named.names(), Some(&names));
    assert_eq!(named.cast(DType::S8).names(), Some(&names));
    assert!(named.same_bits(&tensor));
    assert_eq!(named.reshape([6]).unwrap().names(), None);
    let error = tensor.with_names(Some(Names::without_names(3))).unwrap_err();
    assert!(matches!(error, TensorError::Names(_)));
}

#[test]
fn single_elements() {
    assert_eq!(HostTensor::scalar(Scalar::Float(0.1), DType::F64).item(), Ok(Scalar::Float(0.1)));
    let one = HostTensor::from_slice(&[7_i64], [1, 1]).unwrap();
    assert_eq!(one.item(), Ok(Scalar::Int(7)));
    let error = HostTensor::zeros(DType::F32, [2]).unwrap().item().unwrap_err();
    assert_eq!(error.to_string(), "expected exactly one element; got shape [2]");
    assert!(HostTensor::zeros(DType::F32, [0]).unwrap().item().is_err());
}

#[test]
fn equality_and_hashes_are_by_bits() {
    let nan = HostTensor::from_slice(&[f32::NAN], [1]).unwrap();
    assert!(nan.same_bits(&nan.clone()));
    let [zero, negative] = [0.0_f32, -0.0].map(|x| HostTensor::from_slice(&[x], [1]).unwrap());
    assert!(!zero.same_bits(&negative));
    assert_ne!(zero.content_hash(), negative.content_hash());
    let copy = HostTensor::from_bytes(DType::F32, [1], zero.bytes()).unwrap();
    assert_eq!(zero.content_hash(), copy.content_hash());
    assert!(!zero.same_bits(&zero.reshape([]).unwrap()));
    let ints = HostTensor::zeros(DType::S32, [1]).unwrap();
    assert!(!zero.same_bits(&ints));
    assert_ne!(zero.content_hash(), ints.content_hash());
}

/// Compares conversions between all pairs of dtypes with the rules for scalars.
#[test]
fn casting_agrees_with_scalars() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.3,
        -1.9,
        2.5,
        100.0,
        127.0,
        300.7,
        500.0,
        70000.0,
        1e10,
        -1e10,
        9.3e18,
        1e40,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    for from in DType::ALL {
        let source =
            match_dtype!(from, T => HostTensor::build(from, [values.len()], |out: &mut [T]| {
                for (element, value) in out.iter_mut().zip(values) {
                    *element = T::from_scalar(Scalar::Float(value).cast(from));
                }
            }))
            .unwrap();
        for to in DType::ALL {
            let result = source.cast(to);
            assert_eq!((result.dtype(), result.shape()), (to, source.shape()));
            for index in 0..values.len() {
                let (before, after) = (source.get(index), result.get(index));
                let expected = before.cast(to);
                let both_nan = expected.as_f64().is_nan() && after.as_f64().is_nan();
                assert!(after == expected || both_nan, "{before} from {from} to {to}: {after}");
            }
            // Results must satisfy the range checks of the constructors.
            assert!(HostTensor::from_bytes(to, [values.len()], result.bytes()).is_ok());
        }
    }
}

#[test]
fn no_op_casts_share_memory() {
    let tensor = HostTensor::zeros(DType::F32, [3]).unwrap();
    assert_eq!(tensor.cast(DType::F32).bytes().as_ptr(), tensor.bytes().as_ptr());
    assert_eq!(HostTensor::zeros(DType::F32, [0, 2]).unwrap().cast(DType::C128).size(), 0);
}

#[test]
fn full_converts_the_value() {
    let tensor = HostTensor::full(Scalar::Float(-1.5), DType::U8, [2]).unwrap();
    assert_eq!(tensor.to_vec::<u8>().unwrap(), [0, 0]);
    let bools = HostTensor::full(Scalar::Float(0.5), DType::Pred, [1]).unwrap();
    assert_eq!(bools.to_vec::<u8>().unwrap(), [1]);
}
