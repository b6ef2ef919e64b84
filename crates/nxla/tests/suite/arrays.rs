//! Arrays of `ndarray` as tensors.

use crate::common::{compilers, numbers};
use nxla::ndarray::{Array2, Array3, array, s};
use nxla::{DType, Expr, Tensor, jit};

#[test]
fn ndarrays_convert_to_tensors() {
    let large = Array2::from_shape_fn((300, 200), |(row, column)| (row * 200 + column) as f32);
    let by_reference = Tensor::from(&large);
    assert_eq!(
        (by_reference.dtype(), &by_reference.shape()[..]),
        (DType::F32, &[300usize, 200][..])
    );
    assert_eq!(by_reference.to_vec::<f32>().unwrap(), large.as_slice().unwrap());
    let transposed = Tensor::from(&large.t());
    assert_eq!(transposed.to_vec::<f32>().unwrap()[..3], [0.0, 200.0, 400.0]);
    let part = Tensor::from(&large.slice(s![..;100, 10..12]));
    assert_eq!(numbers(&part), [10.0, 11.0, 20_010.0, 20_011.0, 40_010.0, 40_011.0]);
    // Row-major arrays are not copied when they are moved.
    let memory = large.as_ptr().cast::<u8>();
    let copied = Tensor::from(large.clone());
    assert_ne!(copied.to_host().unwrap().bytes().as_ptr(), memory);
    let moved = Tensor::from(large);
    assert_eq!(moved.to_host().unwrap().bytes().as_ptr(), memory);
    let reversed = Tensor::from(Array3::<i32>::zeros((2, 3, 4)).reversed_axes());
    assert_eq!(reversed.shape()[..], [4, 3, 2]);
    for compiler in compilers() {
        let sum = jit(|x: Expr| x.sum()).compiler(compiler).call(&moved).unwrap();
        assert!((sum.item::<f64>().unwrap() / 1_799_970_000.0 - 1.0).abs() < 1e-4);
    }
    let array = Tensor::from(array![[1, 2], [3, 4]]).to_ndarray::<i32>().unwrap();
    assert_eq!(array, array![[1, 2], [3, 4]].into_dyn());
    assert!(Tensor::from(1).to_ndarray::<f32>().is_err());
    let mask = Tensor::from([[1, 2]]).greater(1).unwrap().to_ndarray::<bool>().unwrap();
    assert_eq!(mask, array![[false, true]].into_dyn());
    let rows = Tensor::from([[1, 2], [3, 4]]).vectorize(["row"]).unwrap();
    assert_eq!(rows.to_ndarray::<i32>().unwrap(), array![[1, 2], [3, 4]].into_dyn());
}
