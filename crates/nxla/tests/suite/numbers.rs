//! Scalars, arrays and names of Rust as tensors and expressions.

use crate::common::{compilers, numbers};
use nxla::{DType, Expr, Tensor, jit};

#[test]
fn scalars_of_every_type_combine_with_tensors() {
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
    // The result has the dtype of the expression: a scalar never widens it.
    let shifted = jit(|x: Expr| x << 1usize).call(Tensor::from(3u8)).unwrap();
    assert_eq!((shifted.dtype(), numbers(&shifted)), (DType::U8, vec![6.0]));
}

#[test]
fn literals_can_be_left_operands() {
    let f = jit(|x: Expr| (1.0 - 2 * &x).abs() + (2.0 * x).sum());
    assert_eq!(numbers(&f.call(1.0f32).unwrap()), [3.0]);
    assert_eq!(numbers(&jit(|x: Expr| 2.0 * x).call(1.5f32).unwrap()), [3.0]);
    let x = Tensor::from(3);
    assert_eq!(numbers(&(1.0 - &x).and_then(|x| 2 * x).unwrap()), [-4.0]);
}

#[test]
fn booleans_are_read_and_written_as_lists() {
    let mask = Tensor::new(vec![true, false, true, true], [2, 2]).unwrap();
    assert_eq!((mask.dtype(), &mask.shape()[..]), (DType::Pred, &[2usize, 2][..]));
    for compiler in compilers() {
        let inverted = jit(|x: Expr| x.logical_not()).compiler(compiler).call(&mask).unwrap();
        assert_eq!(inverted.to_vec::<bool>().unwrap(), [false, true, false, false]);
    }
    assert!(Tensor::new(vec![true], [2]).is_err());
    assert!(Tensor::from([1u8]).to_vec::<bool>().is_err());
}

#[test]
fn item_converts_only_exact_values() {
    let half = Tensor::from(0.5f64);
    assert_eq!((half.item::<f32>().unwrap(), half.item::<f64>().unwrap()), (0.5, 0.5));
    assert_eq!(half.item::<i64>().unwrap_err().to_string(), "item: value: must fit i64; got 0.5");
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
fn lists_and_arrays_are_constants_of_a_trace() {
    let f = jit(|x: Expr| {
        let rows = Expr::from([[1.0f32, 2.0], [3.0, 4.0]]);
        let list = Expr::from(vec![10.0f32, 20.0]);
        let slice = Expr::from(&[[0.5f32, 0.25]][..]);
        rows * x + list - slice
    });
    for compiler in compilers() {
        let found = jit(f.function()).compiler(compiler).call(2.0f32).unwrap();
        assert_eq!(numbers(&found), [11.5, 23.75, 15.5, 27.75], "{compiler}");
    }
    let error = jit(|x: Expr| x + Expr::from([1, 2, 3]))
        .call(Tensor::from([1, 2]))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("add: "), "{error}");
}

#[test]
fn axis_names_are_string_literals() {
    let x = Tensor::from([[1, 2], [3, 4]]).with_names(["row", "column"]).unwrap();
    assert_eq!(numbers(&x.sum_over("row").unwrap()), [4.0, 6.0]);
    assert_eq!(numbers(&x.at_axis(0, "column").unwrap()), [1.0, 3.0]);
    assert!(x.clone().with_names(["row"]).is_err());
    let renamed = jit(|x: Expr| x.rename(["a", "b"])).call(&x).unwrap();
    assert_eq!(renamed.names().unwrap().axis("b"), Ok(1));
    assert!(x.with_names(()).unwrap().names().is_none());
}

/// One tenth, which has no exact 32-bit representation.
const TENTH: f64 = 0.1;

#[test]
fn scalars_are_rounded_once_to_the_operand_dtype() {
    macro_rules! rounds_once {
        ($($name:literal: ($($x:ident),*) => $body:expr, $expected:expr;)*) => {
            $({
                let x = Tensor::from(vec![0.5f64, 0.7]);
                let expected: Vec<f64> = $expected.to_vec();
                let eager: nxla::Result<Tensor> = (|$($x: &Tensor),*| $body)(&x);
                assert_eq!(eager.unwrap().to_vec::<f64>().unwrap(), expected, $name);
                for compiler in compilers() {
                    let f = jit(|$($x: Expr),*| $body).compiler(compiler);
                    assert_eq!(f.call(&x).unwrap().to_vec::<f64>().unwrap(), expected, $name);
                }
            })*
        };
    }
    rounds_once! {
        "indexed_put": (x) => x.indexed_put(Tensor::from([1]), TENTH, ()), [0.5, TENTH];
        "indexed_add": (x) => x.indexed_add(Tensor::from([0]), TENTH, ()), [0.5 + TENTH, 0.7];
        "clip": (x) => x.clip(TENTH, 0.6), [0.5, 0.6];
        "max": (x) => x.max(TENTH + 0.5), [TENTH + 0.5, 0.7];
    }
    let x = Tensor::from(vec![0.5f64, 0.7]);
    let mask = Tensor::from(vec![true, false]);
    assert_eq!(mask.select(TENTH, &x).unwrap().to_vec::<f64>().unwrap(), [TENTH, 0.7]);
    let low = Tensor::from(vec![0.5f32]).clip(TENTH, Tensor::from(9.0f64)).unwrap();
    assert_eq!((low.dtype(), low.to_vec::<f64>().unwrap()), (DType::F64, vec![0.5]));
    let (drawn, _) = Tensor::random_key(0)
        .and_then(|key| {
            let draw = nxla::Draw { dtype: Some(DType::F64), ..nxla::Draw::new([3]) };
            key.random_truncated_normal(TENTH, TENTH + 1e-12, draw)
        })
        .unwrap();
    assert!(drawn.to_vec::<f64>().unwrap().iter().all(|x| (x - TENTH).abs() <= 1e-12));
}

#[test]
fn mixed_integer_dtypes_are_compared_exactly() {
    let unsigned = [0u64, 5, (1 << 63) + 5, u64::MAX];
    let signed = [i64::MIN, -1, 0, 5, i64::MAX];
    let exact = |of: fn(i128, i128) -> bool| -> Vec<bool> {
        let rows = unsigned.iter();
        rows.flat_map(|&x| signed.iter().map(move |&y| of(x.into(), y.into()))).collect()
    };
    let (rows, columns) =
        (Tensor::new(unsigned.to_vec(), [4, 1]).unwrap(), Tensor::from(signed.to_vec()));
    let truth = |x: &Tensor| -> Vec<bool> {
        x.to_vec::<u8>().unwrap().into_iter().map(|byte| byte != 0).collect()
    };
    for compiler in compilers() {
        let f = jit(|x: Expr, y: Expr| {
            let ordered = (x.less(&y), x.less_equal(&y), x.greater(&y), x.greater_equal(&y));
            (ordered, (x.equal(&y), x.not_equal(&y)), (x.max(&y), x.min(&y)))
        })
        .compiler(compiler);
        let (ordered, equal, extrema) = f.call((&rows, &columns)).unwrap();
        assert_eq!(truth(&ordered.0), exact(|x, y| x < y));
        assert_eq!(truth(&ordered.1), exact(|x, y| x <= y));
        assert_eq!(truth(&ordered.2), exact(|x, y| x > y));
        assert_eq!(truth(&ordered.3), exact(|x, y| x >= y));
        assert_eq!(truth(&equal.0), exact(|x, y| x == y));
        assert_eq!(truth(&equal.1), exact(|x, y| x != y));
        let pairs: Vec<(i128, i128)> = unsigned
            .iter()
            .flat_map(|&x| signed.iter().map(move |&y| (i128::from(x), i128::from(y))))
            .collect();
        let larger = extrema.0.to_vec::<u64>().unwrap().into_iter().map(i128::from);
        assert!(larger.eq(pairs.iter().map(|&(x, y)| x.max(y))));
        let smaller = extrema.1.to_vec::<i64>().unwrap().into_iter().map(i128::from);
        assert!(smaller.eq(pairs.iter().map(|&(x, y)| x.min(y))));
    }
    let small = Tensor::from([1, -1]);
    assert_eq!(truth(&small.less(1u64 << 63).unwrap()), [true, true]);
    assert_eq!(truth(&small.greater(i128::MIN).unwrap()), [true, true]);
    let jitted = jit(|x: Expr| x.equal(u64::MAX)).call(&small).unwrap();
    assert_eq!(truth(&jitted), [false, false]);
}

#[test]
fn scalars_and_tensors_are_constants_of_a_trace() {
    let tensor = Tensor::from([1.0f32, 2.0]);
    let f = jit(move |x: Expr| {
        let mut y = Expr::from(2.0) * Expr::from(&tensor) + Expr::from(tensor.clone());
        y += &x;
        y -= 1;
        y *= Expr::from(1u8);
        y /= 2.0f32;
        y
    });
    assert_eq!(numbers(&f.call(3.0f32).unwrap()), [2.5, 4.0]);
    let sums = jit(|x: Vec<Expr>| {
        [x.iter().sum::<Expr>(), x.into_iter().sum(), std::iter::empty::<Expr>().sum()]
    });
    let [borrowed, owned, none] = sums.call(vec![3, 4]).unwrap();
    assert_eq!([borrowed, owned, none].map(|x| x.item::<i32>().unwrap()), [7, 7, 0]);
}

#[test]
fn full_rejects_numbers_out_of_range() {
    for (value, dtype) in [(300.0, DType::U8), (-1.0, DType::U8), (f64::NAN, DType::S32)] {
        let expected = format!("full: value: must fit {dtype}; got {value:?}");
        let error = Tensor::full([2], value, dtype).unwrap_err().to_string();
        assert!(error.starts_with(&expected), "{error}");
    }
    assert_eq!(numbers(&Tensor::full([2], 255.9, DType::U8).unwrap()), [255.0, 255.0]);
    assert_eq!(numbers(&Tensor::full([1], -0.5, DType::U8).unwrap()), [0.0]);
    assert!(Tensor::full([1], 2f64.powi(63), DType::S64).is_err());
    assert!(Tensor::full([1], f64::INFINITY, DType::U64).is_err());
    for (value, dtype) in [(300, DType::U8), (-1, DType::U64), (128, DType::S8)] {
        let expected = format!("full: value: must fit {dtype}; got {value}");
        let error = Tensor::full([2], value, dtype).unwrap_err().to_string();
        assert!(error.starts_with(&expected), "{error}");
    }
    assert!(Tensor::from([1u8]).full_like(256).is_err());
    assert_eq!(numbers(&Tensor::full([1], u64::MAX, DType::U64).unwrap()), [u64::MAX as f64]);
    assert_eq!(numbers(&Tensor::full([1], 5, DType::Pred).unwrap()), [1.0]);
    assert_eq!(numbers(&Tensor::full([1], 2.5, DType::S8).unwrap()), [2.0]);
}

#[test]
fn values_of_other_types_convert() {
    let half = nxla::f16::from_f32(0.5);
    assert_eq!(numbers(&Tensor::full(2, half, DType::F16).unwrap()), [0.5, 0.5]);
    assert_eq!(numbers(&Tensor::full(1, nxla::bf16::from_f32(0.5), DType::F32).unwrap()), [0.5]);
    let complex = nxla::Complex::new(1.0f32, 2.0);
    let full = Tensor::full(1, complex, DType::C64).unwrap();
    assert_eq!(full.item::<nxla::Complex<f32>>().unwrap(), complex);
    let error = Tensor::full(1, complex, DType::F32).unwrap_err().to_string();
    assert!(error.starts_with("full: value: must be a real number for f32"), "{error}");
    let x = Tensor::from([[1, 2, 3], [4, 5, 6]]).with_names(["row", "column"]).unwrap();
    assert_eq!((x.rank(), x.size()), (2, 6));
    assert_eq!(numbers(&x.sum_over(String::from("row")).unwrap()), [5.0, 7.0, 9.0]);
    assert_eq!(numbers(&x.cumulative_sum(String::from("row")).unwrap())[3..], [5.0, 7.0, 9.0]);
    assert_eq!("host".parse::<nxla::Device>().unwrap(), nxla::Device::HOST);
    assert_eq!(nxla::optim::sgd(0.5f32), nxla::optim::sgd(0.5));
}
