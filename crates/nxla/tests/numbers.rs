//! Numbers, arrays and names of Rust, where tensors and expressions are taken.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::{compilers, numbers};
use nxla::ndarray::{Array2, Array3, array, s};
use nxla::{DType, Expr, Tensor, jit};

#[test]
fn numbers_of_every_type_stand_next_to_tensors() {
    macro_rules! on_the_right {
        ($($ty:ty)*) => {
            $(
                let two: $ty = 2 as $ty;
                let f = jit(move |x: Expr| (&x * two, &x - two, x / two));
                for compiler in compilers() {
                    let (product, difference, ratio) = f.call(6.0f32).unwrap();
                    let found = [&product, &difference, &ratio].map(|y| numbers(y)[0]);
                    assert_eq!((product.dtype(), found), (DType::F32, [12.0, 4.0, 3.0]), "{compiler}");
                }
                let x = Tensor::from(6.0f32);
                assert_eq!(numbers(&(&x * two).unwrap()), [12.0]);
            )*
        };
    }
    on_the_right!(u8 u16 u32 u64 usize i8 i16 i32 i64 i128 isize f32 f64);
    // The dtype is that of the expression: a number is never wider.
    let shifted = jit(|x: Expr| x << 1usize).call(Tensor::from(3u8)).unwrap();
    assert_eq!((shifted.dtype(), numbers(&shifted)), (DType::U8, vec![6.0]));
}

#[test]
fn literals_stand_on_the_left_whatever_follows() {
    let f = jit(|x: Expr| (1.0 - 2 * &x).abs() + (2.0 * x).sum());
    assert_eq!(numbers(&f.call(1.0f32).unwrap()), [3.0]);
    assert_eq!(numbers(&jit(|x: Expr| 2.0 * x).call(1.5f32).unwrap()), [3.0]);
    let x = Tensor::from(3);
    assert_eq!(numbers(&(1.0 - &x).and_then(|x| 2 * x).unwrap()), [-4.0]);
}

#[test]
fn the_only_element_is_read_as_any_number_that_it_is() {
    let half = Tensor::from(0.5f64);
    assert_eq!((half.item::<f32>().unwrap(), half.item::<f64>().unwrap()), (0.5, 0.5));
    assert_eq!(half.item::<i64>().unwrap_err().to_string(), "item: 0.5 is no i64");
    let wide = Tensor::from(300);
    assert_eq!((wide.item::<usize>().unwrap(), wide.item::<f32>().unwrap()), (300, 300.0));
    assert!(wide.item::<u8>().is_err() && wide.item::<bool>().is_err());
    assert!(Tensor::from(true).item::<bool>().unwrap());
    assert!(Tensor::from(-1).item::<u64>().is_err());
    assert!(Tensor::from([1, 2]).item::<i32>().is_err());
    let complex = Tensor::from(nxla::host::Complex::new(1.0f32, 2.0));
    assert!(complex.item::<f64>().is_err());
    assert_eq!(complex.item::<nxla::host::Complex<f64>>().unwrap().im, 2.0);
}

#[test]
fn lists_arrays_and_slices_become_tensors() {
    let nested = Tensor::from([[[1u8, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]);
    assert_eq!((nested.dtype(), &nested.shape()[..]), (DType::U8, &[3usize, 2, 2][..]));
    assert_eq!(nested.to_vec::<u8>().unwrap(), (1..=12).collect::<Vec<u8>>());
    let rows = vec![[1.0f32, 2.0], [3.0, 4.0]];
    for x in [Tensor::from(&rows), Tensor::from(&rows[..]), Tensor::from(rows.clone())] {
        assert_eq!((&x.shape()[..], numbers(&x)), (&[2usize, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
    }
    let flags = Tensor::from(vec![true, false]);
    assert_eq!((flags.dtype(), numbers(&flags)), (DType::Pred, vec![1.0, 0.0]));
    assert_eq!(Tensor::from(&[0.5f64; 3]).dtype(), DType::F64);
    let empty: [[f32; 3]; 0] = [];
    assert_eq!(Tensor::from(empty).shape()[..], [0, 3]);
}

#[test]
fn ndarrays_are_taken_whole() {
    let large = Array2::from_shape_fn((300, 200), |(row, column)| (row * 200 + column) as f32);
    let by_reference = Tensor::from(&large);
    assert_eq!(
        (by_reference.dtype(), &by_reference.shape()[..]),
        (DType::F32, &[300usize, 200][..])
    );
    assert_eq!(by_reference.to_vec::<f32>().unwrap(), large.as_slice().unwrap());
    let turned = Tensor::from(&large.t());
    assert_eq!(turned.to_vec::<f32>().unwrap()[..3], [0.0, 200.0, 400.0]);
    let part = Tensor::from(&large.slice(s![..;100, 10..12]));
    assert_eq!(numbers(&part), [10.0, 11.0, 20_010.0, 20_011.0, 40_010.0, 40_011.0]);
    // What lies in row-major order is not copied when it is given away.
    let memory = large.as_ptr().cast::<u8>();
    let given = Tensor::from(large.clone());
    assert_ne!(given.to_host().unwrap().bytes().as_ptr(), memory);
    let given = Tensor::from(large);
    assert_eq!(given.to_host().unwrap().bytes().as_ptr(), memory);
    let reversed = Tensor::from(Array3::<i32>::zeros((2, 3, 4)).reversed_axes());
    assert_eq!(reversed.shape()[..], [4, 3, 2]);
    for compiler in compilers() {
        let sum = jit(|x: Expr| x.sum()).compiler(compiler).call(&given).unwrap();
        assert!((sum.item::<f64>().unwrap() / 1_799_970_000.0 - 1.0).abs() < 1e-4);
    }
    let back = Tensor::from(array![[1, 2], [3, 4]]).to_ndarray::<i32>().unwrap();
    assert_eq!(back, array![[1, 2], [3, 4]].into_dyn());
    assert!(Tensor::from(1).to_ndarray::<f32>().is_err());
}

#[test]
fn names_are_written_as_they_are() {
    let x = Tensor::from([[1, 2], [3, 4]]).with_names(["row", "column"]).unwrap();
    assert_eq!(numbers(&x.sum_over("row").unwrap()), [4.0, 6.0]);
    assert_eq!(numbers(&x.at_axis(0, "column").unwrap()), [1.0, 3.0]);
    assert!(x.clone().with_names(["row"]).is_err());
    let renamed = jit(|x: Expr| x.rename(["a", "b"])).call(&x).unwrap();
    assert_eq!(renamed.names().unwrap().axis("b"), Ok(1));
    assert!(x.with_names(()).unwrap().names().is_none());
}
