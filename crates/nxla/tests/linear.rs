//! Products, convolutions, linear algebra and Fourier transforms, eager and traced, for every set
//! of features.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::{agree, compilers};
use nxla::{
    Convolution, DType, Device, ErrorClass, Expr, FftNorm, Mesh, Norm, Tensor, Triangular,
    compiler_names, devices, jit,
};

#[test]
fn products() {
    let x = Tensor::new(vec![1, 2, 3, 4, 5, 6], [2, 3]).unwrap();
    let y = Tensor::new(vec![1, 0, 0, 1, 1, 1], [3, 2]).unwrap();
    let v = Tensor::from(vec![1, 10, 100]);
    agree!((x, y) => x.dot(y), [2, 2], [4, 5, 10, 11]);
    agree!((x, v) => x.matmul(v), [2], [321, 654]);
    agree!((x, v) => x.vecdot(v, -1), [2], [321, 654]);
    agree!((x, y) => x.tensordot(y, 1), [2, 2], [4, 5, 10, 11]);
    agree!((x) => x.dot_general(x, [&[0, 1], &[0, 1]], [&[], &[]]), [], [91]);
    agree!((v) => v.outer(Tensor::from(vec![1, 2])), [3, 2], [1, 2, 10, 20, 100, 200]);
    let batch = Tensor::ones([2, 1, 2, 3], DType::S32).unwrap();
    agree!((batch, y) => batch.matmul(y), [2, 1, 2, 2], [2; 8]);
    let none = Tensor::zeros([2, 0], DType::F32).unwrap();
    agree!((none) => none.dot(Tensor::zeros([0, 2], DType::F32).unwrap()), [2, 2], [0; 4]);
    let error = x.tensordot(&x, 1 << 62).unwrap_err().to_string();
    assert!(error.starts_with("tensordot: count: must be at most 2, the smaller rank"), "{error}");
    let error = x.dot(&x).unwrap_err().to_string();
    assert!(error.starts_with("dot: axis 1 of left and axis 0 of right: must have"), "{error}");
}

#[test]
fn convolutions() {
    let x = Tensor::iota([1, 1, 4], None, DType::F32).unwrap();
    let kernel = Tensor::new(vec![1.0f32, 2.0], [1, 1, 2]).unwrap();
    let (valid, same) = (&Convolution::valid(), &Convolution::same().strides([2]));
    let padded = &Convolution::with_padding([(1, 0)]).kernel_dilation([2]);
    agree!((x, kernel) => x.conv(kernel, valid), [1, 1, 3], [2, 5, 8]);
    agree!((x, kernel) => x.conv(kernel, same), [1, 1, 2], [2, 8]);
    agree!((x, kernel) => x.conv(kernel, padded), [1, 1, 3], [2, 4, 7]);
    let last = Tensor::iota([1, 4, 1], None, DType::F32).unwrap();
    let order = &Convolution::valid().input_permutation([0, 2, 1]).output_permutation([0, 2, 1]);
    agree!((last, kernel) => last.conv(kernel, order), [1, 3, 1], [2, 5, 8]);
}

#[test]
fn matrices() {
    let a = Tensor::new(vec![4.0f32, 2.0, 2.0, 5.0], [2, 2]).unwrap();
    agree!((a) => a.cholesky(), [2, 2], [2, 0, 1, 2]);
    agree!((a) => a.norm(Norm::Euclid, ()), [], [7.0]);
    agree!((a) => a.norm(Norm::Power(1.0), [0, 1]), [], [7.0]);
    let b = Tensor::from(vec![4.0f32, 7.0]);
    agree!((a, b) => a.triangular_solve(b, Triangular::lower()), [2], [1, 1]);
    agree!((a, b) => a.triangular_solve(b, Triangular::upper()), [2], [0.3, 1.4]);
    let rows = Tensor::new(vec![4.0f32, 5.0], [1, 2]).unwrap();
    agree!((a, rows) => a.triangular_solve(rows, Triangular::lower().right_side()), [1, 2],
        [0.5, 1.0]);
}

/// Uses kernels if the feature `linalg` is enabled, and basic ops otherwise.
#[test]
fn factorizations() {
    let noise = |at: usize| ((at + 1) as f64).sin() * 43_758.545_3 % 1.0;
    let a = Tensor::new((0..2 * 70 * 60).map(noise).collect(), [2, 70, 60]).unwrap();
    let check = jit(|a: Expr| {
        let gram = a.adjoint().matmul(&a) + Expr::eye([60, 60], DType::F64);
        let (u, s, vh) = a.svd(false);
        let (q, r) = a.qr(false);
        let (values, vectors) = gram.eigh();
        let l = gram.cholesky();
        let largest = |x: Expr| x.abs().reduce_max();
        let solved = gram.matmul(gram.solve(a.adjoint()));
        [
            largest((u * s.new_axis(1)).matmul(vh) - &a),
            largest(q.matmul(r) - &a),
            largest((&vectors * values.new_axis(1)).matmul(vectors.adjoint()) - &gram),
            largest(l.matmul(l.adjoint()) - &gram),
            largest(solved - a.adjoint()),
        ]
    });
    for wrong in check.call(&a).unwrap() {
        let wrong = wrong.item::<f64>().unwrap();
        assert!(wrong < 1e-9, "{wrong}");
    }
}

#[test]
fn missing_features_are_named() {
    let x = Tensor::from([1.0f32, 2.0]);
    if !cfg!(feature = "fft") {
        let error = jit(|x: Expr| x.fft(None, 0, FftNorm::Backward).real()).call(&x).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Options);
        let text = error.to_string();
        let expected = "fft: requires the feature \"fft\" of the crate nxla, which is off";
        assert!(text.starts_with(expected), "{text}");
    }
    if !cfg!(feature = "xla") {
        let call = jit(|x: Expr| x + 1).compiler("xla").call(&x).unwrap_err();
        let mesh = Mesh::new([("data", 1)]).unwrap_err();
        for error in [call, mesh] {
            assert_eq!(error.class(), ErrorClass::Options);
            let text = error.to_string();
            assert!(text.contains("requires the feature \"xla\" of the crate nxla"), "{text}");
        }
        assert_eq!(devices().unwrap(), [Device::HOST]);
        let error = jit(|x: Expr| x + 1).set("precision", "high").call(&x).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Options);
    }
    assert_eq!(compiler_names().contains(&"xla".to_owned()), cfg!(feature = "xla"));
}

#[test]
fn transforms() {
    if !cfg!(feature = "fft") {
        return;
    }
    let x = Tensor::from(vec![1.0f32, 2.0, 3.0, 4.0]);
    for compiler in compilers() {
        let there_and_back = jit(|x: Expr| {
            let real = x.rfft(None, 0, FftNorm::Backward).irfft(Some(4), 0, FftNorm::Backward);
            let complex =
                x.fft(Some(8), -1, FftNorm::Backward).ifft(None, -1, FftNorm::Backward).real();
            (real, complex, x.fft(None, 0, FftNorm::Backward).imag())
        });
        let (real, complex, imag) = there_and_back.compiler(compiler).call(&x).unwrap();
        common::assert_close(&common::numbers(&real), &[1.0, 2.0, 3.0, 4.0], compiler);
        let padded = [1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0];
        common::assert_close(&common::numbers(&complex), &padded, compiler);
        common::assert_close(&common::numbers(&imag), &[0.0, 2.0, 0.0, -2.0], compiler);
    }
}

#[test]
fn norms_select_the_transform_that_divides() {
    if !cfg!(feature = "fft") {
        return;
    }
    let x = Tensor::from(vec![1.0f32, 2.0, 3.0, 4.0]);
    for (norm, sum) in [(FftNorm::Backward, 10.0), (FftNorm::Ortho, 5.0), (FftNorm::Forward, 2.5)] {
        // The first bin is the scaled sum of the elements.
        for spectrum in [x.fft(None, 0, norm), x.fftn(None, (), norm), x.rfft(None, 0, norm)] {
            let bins = common::numbers(&spectrum.unwrap().real().unwrap());
            common::assert_close(&bins[..1], &[sum], &format!("{norm:?}"));
        }
        let complex = x.fft(None, 0, norm).unwrap().ifft(None, 0, norm).unwrap().real();
        let half = x.rfftn(None, (), norm).unwrap().irfftn(None, (), norm);
        for same in [complex, half] {
            let same = common::numbers(&same.unwrap());
            common::assert_close(&same, &[1.0, 2.0, 3.0, 4.0], &format!("{norm:?}"));
        }
    }
}
