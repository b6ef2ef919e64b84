//! Edge cases of every family: no elements, a single element, NaN, and every dtype.

use nxla_expr::build::{ConvOptions, Cumulative, FftNorm, SliceStart, WindowOptions};
use nxla_expr::{ExprId, Graph, Padding, ReduceOp, TensorType};
use nxla_tensor::{DType, HostTensor, Scalar, Shape};

use super::common::{evaluate_all, evaluate_op, tensor};

fn numbers(tensor: &HostTensor) -> Vec<f64> {
    (0..tensor.size()).map(|at| tensor.get(at).as_f64()).collect()
}

/// A tensor of alternating zeros and ones, which every dtype holds.
fn alternating(dtype: DType, shape: impl Into<Shape>) -> HostTensor {
    let shape = shape.into();
    let numbers: Vec<f64> = (0..shape.size()).map(|at| (at % 2) as f64).collect();
    evaluate_op(&[tensor(&numbers, shape)], |g, p| g.as_type(p[0], dtype))
}

const NAN: f32 = f32::NAN;

#[test]
fn constants_of_every_dtype_and_empty_shapes() {
    for dtype in DType::ALL {
        let results = evaluate_all(&[], |g, _| {
            let full = g.constant(Scalar::one(dtype), TensorType::new(dtype, [2]))?;
            let none = g.constant(Scalar::one(dtype), TensorType::new(dtype, [3, 0]))?;
            Ok(vec![full, none, g.eye([1, 2], dtype)?])
        });
        assert_eq!(results[0].get(1), Scalar::one(dtype), "{dtype}");
        assert_eq!((results[1].dtype(), results[1].size()), (dtype, 0));
        assert_eq!(results[2].get(0), Scalar::one(dtype));
        assert_eq!(results[2].get(1), Scalar::zero(dtype));
    }
    assert_eq!(evaluate_op(&[], |g, _| g.iota([0, 2], Some(0), DType::S8)).size(), 0);
    assert_eq!(
        evaluate_op(&[], |g, _| g.iota(Shape::scalar(), None, DType::F16)).get(0).as_f64(),
        0.0
    );
}

#[test]
fn elements_wrap_saturate_and_propagate_nan() {
    let bytes = tensor(&[255_u8, 128], [2]);
    assert_eq!(numbers(&evaluate_op(&[bytes], |g, p| g.add(p[0], p[0]))), [254.0, 0.0]);
    let floats = tensor(&[NAN, 300.0, -1.0, f32::INFINITY], [4]);
    let cast =
        |dtype| numbers(&evaluate_op(std::slice::from_ref(&floats), |g, p| g.as_type(p[0], dtype)));
    // A conversion of an out-of-range number saturates.
    assert_eq!(cast(DType::U8), [0.0, 255.0, 0.0, 255.0]);
    assert_eq!(cast(DType::Pred), [1.0, 1.0, 1.0, 1.0]);
    let pair = [tensor(&[NAN, 1.0], [2]), tensor(&[1.0, NAN], [2])];
    let results = evaluate_all(&pair, |g, p| Ok(vec![g.max(p[0], p[1])?, g.min(p[0], p[1])?]));
    assert!(results.iter().flat_map(numbers).all(f64::is_nan));
    assert_eq!(numbers(&evaluate_op(&pair, |g, p| g.equal(p[0], p[0]))), [0.0, 1.0]);
    let none = HostTensor::zeros(DType::BF16, [0]).unwrap();
    assert_eq!(evaluate_op(&[none], |g, p| g.exp(p[0])).shape()[..], [0]);
}

#[test]
fn movement_ops_support_every_dtype() {
    for dtype in DType::ALL {
        let x = alternating(dtype, [2, 3]);
        let results = evaluate_all(std::slice::from_ref(&x), |g, p| {
            let transposed = g.transpose(p[0], None)?;
            let transposed = g.transpose(transposed, None)?;
            let reversed = g.reverse(p[0], None)?;
            let reversed = g.reverse(reversed, None)?;
            let concatenated = g.concatenate(&[p[0], p[0]], 0)?;
            let half =
                g.slice(concatenated, &[SliceStart::at(2), SliceStart::at(0)], &[2, 3], None)?;
            let zero = g.zero_like(p[0])?;
            let padding = [Padding { low: 1, high: 0, interior: 1 }; 2];
            let padded = g.pad(p[0], zero, &padding)?;
            let inner = [SliceStart::at(1), SliceStart::at(1)];
            let inner = g.slice(padded, &inner, &[3, 5], Some(&[2, 2]))?;
            Ok(vec![transposed, reversed, half, inner])
        });
        results.iter().for_each(|result| assert_eq!(result.bytes(), x.bytes(), "{dtype}"));
    }
}

#[test]
fn movement_ops_support_empty_tensors() {
    let none = HostTensor::zeros(DType::F32, [2, 0]).unwrap();
    let results = evaluate_all(&[none], |g, p| {
        let zero = g.zero_like(p[0])?;
        let wide = [Padding::NONE, Padding { low: 1, high: 1, interior: 5 }];
        let broadcast = g.broadcast(p[0], [4, 2, 0], None)?;
        Ok(vec![g.transpose(p[0], None)?, g.pad(p[0], zero, &wide)?, broadcast])
    });
    let shapes: Vec<&[usize]> = results.iter().map(|result| &result.shape()[..]).collect();
    assert_eq!(shapes, [&[0, 2][..], &[2, 2], &[4, 2, 0]]);
    let scalar = tensor(&[7_i32], Shape::scalar());
    assert_eq!(numbers(&evaluate_op(&[scalar], |g, p| g.reshape(p[0], [1, 1]))), [7.0]);
}

#[test]
fn reductions_of_scalars_empty_tensors_and_nan() {
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_complex()) {
        let scalar = alternating(dtype, Shape::scalar());
        let none = HostTensor::zeros(dtype, [0]).unwrap();
        let results = evaluate_all(&[scalar, none], |g, p| {
            Ok(vec![
                g.sum(p[0], None, false)?,
                g.sum(p[1], None, false)?,
                g.product(p[1], None, false)?,
                g.reduce_max(p[0], None, false)?,
                g.all(p[1], None, false)?,
            ])
        });
        let results: Vec<f64> = results.iter().flat_map(numbers).collect();
        assert_eq!(results, [0.0, 0.0, 1.0, 0.0, 1.0], "{dtype}");
    }
    let x = tensor(&[1.0, NAN, 3.0], [3]);
    let results = evaluate_all(&[x], |g, p| {
        Ok(vec![
            g.reduce_max(p[0], None, false)?,
            g.reduce_min(p[0], None, false)?,
            g.sum(p[0], None, false)?,
        ])
    });
    assert!(results.iter().flat_map(numbers).all(f64::is_nan));
    let ties = tensor(&[5_i32, 9, 9], [3]);
    let results = evaluate_all(&[ties], |g, p| {
        let low = g.argmax(p[0], None, false, false, DType::S32)?;
        Ok(vec![low, g.argmax(p[0], None, false, true, DType::U8)?])
    });
    assert_eq!(results.iter().flat_map(numbers).collect::<Vec<_>>(), [1.0, 2.0]);
}

/// The products of sizes along some of the axes overflow, but no result has many elements.
#[test]
fn empty_reductions_along_huge_axes() {
    let sizes = [0, 1 << 40, 2];
    let shapes = (0..27).map(|at| [sizes[at % 3], sizes[at / 3 % 3], sizes[at / 9]]);
    for shape in shapes.filter(|shape| shape.contains(&0)) {
        let x = HostTensor::zeros(DType::F32, Shape::from(shape)).unwrap();
        for axes in 1..8_usize {
            let reduced: Vec<i64> = (0..3).filter(|axis| axes >> axis & 1 == 1).collect();
            let kept = (0..3).filter(|axis| axes >> axis & 1 == 0).map(|axis| shape[axis]);
            let kept: Shape = kept.collect();
            if kept.size() > 2 {
                continue;
            }
            for &op in ReduceOp::ALL {
                let reduce = |g: &mut Graph, x: ExprId| g.reduction(op, x, Some(&reduced), false);
                let neutral = evaluate_op(&[tensor::<f32>(&[], [0])], |g, p| {
                    g.reduction(op, p[0], None, false)
                });
                let expected = vec![numbers(&neutral)[0]; kept.size()];
                let found = evaluate_op(std::slice::from_ref(&x), |g, p| reduce(g, p[0]));
                assert_eq!(found.shape(), &kept);
                assert_eq!(numbers(&found), expected, "{op:?} of {shape:?} along {reduced:?}");
                // Fused with element-wise ops.
                let found = evaluate_op(std::slice::from_ref(&x), |g, p| {
                    let cosine = g.cos(p[0])?;
                    reduce(g, cosine)
                });
                assert_eq!(numbers(&found), expected, "{op:?} of {shape:?} along {reduced:?}");
            }
            let folded = evaluate_op(&[x.clone(), tensor(&[3.0_f32], [])], |g, p| {
                g.reduce_fun(p[0], p[1], Some(&reduced), false, |g, element, sum| {
                    let product = g.multiply(element, sum)?;
                    g.add(product, sum)
                })
            });
            assert_eq!(numbers(&folded), vec![3.0; kept.size()], "{shape:?} along {reduced:?}");
        }
    }
}

#[test]
fn windows_over_padding_or_empty_tensors() {
    let x = tensor(&[1.0_f32, 2.0], [2]);
    let padded = WindowOptions {
        padding: nxla_expr::build::WindowPadding::Explicit(vec![(3, 0)]),
        ..WindowOptions::default()
    };
    let sums = evaluate_op(std::slice::from_ref(&x), |g, p| g.window_sum(p[0], &[2], &padded));
    assert_eq!(numbers(&sums), [0.0, 0.0, 1.0, 3.0]);
    let most = evaluate_op(&[x], |g, p| g.window_max(p[0], &[2], &padded));
    assert_eq!(numbers(&most)[..2], [f64::NEG_INFINITY; 2]);
    let none = HostTensor::zeros(DType::S32, [0]).unwrap();
    let results =
        evaluate_all(&[none], |g, p| Ok(vec![g.cumulative(Cumulative::Sum, p[0], 0, false)?]));
    assert_eq!(results[0].shape()[..], [0]);
}

#[test]
fn products_over_empty_axes_are_zero() {
    let (x, y) = (alternating(DType::F32, [2, 0]), alternating(DType::F32, [0, 3]));
    assert_eq!(numbers(&evaluate_op(&[x, y], |g, p| g.dot(p[0], p[1]))), [0.0; 6]);
    for dtype in DType::ALL {
        let (x, y) = (alternating(dtype, [2, 2]), alternating(dtype, [2]));
        let result = evaluate_op(&[x, y], |g, p| g.dot(p[0], p[1]));
        let real = (0..2).map(|at| result.get(at).parts().0).collect::<Vec<_>>();
        assert_eq!(real, [1.0, 1.0], "{dtype}");
    }
    let (batch, kernel) = (alternating(DType::F32, [0, 1, 3]), alternating(DType::F32, [1, 1, 2]));
    let result = evaluate_op(&[batch, kernel], |g, p| g.conv(p[0], p[1], &ConvOptions::default()));
    assert_eq!(result.shape()[..], [0, 1, 2]);
    let (x, kernel) = (alternating(DType::F32, [1, 0, 4]), alternating(DType::F32, [2, 0, 3]));
    let result = evaluate_op(&[x, kernel], |g, p| g.conv(p[0], p[1], &ConvOptions::default()));
    assert_eq!(numbers(&result), [0.0; 4]);
}

#[test]
fn indices_out_of_range_are_clamped_or_dropped() {
    let x = tensor(&[10_i32, 20, 30], [3]);
    let at = tensor(&[-5_i64, 9, 1], [3, 1]);
    let taken = evaluate_op(&[x.clone(), at.clone()], |g, p| g.gather(p[0], p[1], None));
    assert_eq!(numbers(&taken), [10.0, 30.0, 20.0]);
    let ones = tensor(&[1_i32, 1, 1], [3]);
    let added = evaluate_op(&[x.clone(), at, ones], |g, p| g.indexed_add(p[0], p[1], p[2], None));
    assert_eq!(numbers(&added), [10.0, 21.0, 30.0]);
    let start = tensor(&[7_u8], Shape::scalar());
    let part = evaluate_op(&[x.clone(), start], |g, p| g.slice(p[0], &[p[1].into()], &[2], None));
    assert_eq!(numbers(&part), [20.0, 30.0]);
    let none = HostTensor::zeros(DType::S32, [0, 1]).unwrap();
    assert_eq!(evaluate_op(&[x, none], |g, p| g.gather(p[0], p[1], None)).size(), 0);
}

/// Gathers of inner axes and of several axes compute one offset for each window.
#[test]
fn indices_into_several_axes_are_clamped() {
    let x = tensor(&(0..60).collect::<Vec<i32>>(), [3, 4, 5]);
    for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.is_integer()) {
        let list = tensor(&[1_i64, -3, 9, 2], [4]).cast(dtype);
        let at = numbers(&list);
        let clamped = |size: usize, at: f64| at.clamp(0.0, size as f64 - 1.0);
        let elements = |sizes: [usize; 3], from: &dyn Fn(usize, usize, usize) -> f64| {
            let [rows, columns, depth] = sizes;
            let all = (0..rows * columns * depth)
                .map(|at| from(at / (columns * depth), at / depth % columns, at % depth));
            all.collect::<Vec<f64>>()
        };
        let inputs = [x.clone(), list];
        let taken = evaluate_op(&inputs, |g, p| g.take(p[0], p[1], 1));
        let expected =
            elements([3, 4, 5], &|i, j, k| 20.0 * i as f64 + 5.0 * clamped(4, at[j]) + k as f64);
        assert_eq!(numbers(&taken), expected, "{dtype}");
        let taken = evaluate_op(&inputs, |g, p| g.take(p[0], p[1], 2));
        let expected =
            elements([3, 4, 4], &|i, j, k| 20.0 * i as f64 + 5.0 * j as f64 + clamped(5, at[k]));
        assert_eq!(numbers(&taken), expected, "{dtype}");
        let taken = evaluate_op(&inputs, |g, p| {
            let coordinates = g.stack(&[p[1], p[1]], -1, None)?;
            g.gather(p[0], coordinates, None)
        });
        let expected = elements([1, 4, 5], &|_, j, k| {
            20.0 * clamped(3, at[j]) + 5.0 * clamped(4, at[j]) + k as f64
        });
        assert_eq!(numbers(&taken), expected, "{dtype}");
        let taken = evaluate_op(&inputs, |g, p| {
            let indices = g.broadcast(p[1], [3, 4, 5], Some(&[1]))?;
            g.take_along_axis(p[0], indices, 1)
        });
        let expected =
            elements([3, 4, 5], &|i, j, k| 20.0 * i as f64 + 5.0 * clamped(4, at[j]) + k as f64);
        assert_eq!(numbers(&taken), expected, "{dtype}");
    }
}

#[test]
fn empty_matrices_and_one_point_spectra() {
    let none = HostTensor::zeros(DType::F32, [0, 2, 2]).unwrap();
    assert_eq!(evaluate_op(&[none], |g, p| g.cholesky(p[0])).shape()[..], [0, 2, 2]);
    let indefinite = tensor(&[-1.0_f32], [1, 1]);
    assert!(numbers(&evaluate_op(&[indefinite], |g, p| g.cholesky(p[0])))[0].is_nan());
    let point = tensor(&[3.0_f32], [1]);
    let spectrum = evaluate_op(&[point], |g, p| g.fft(p[0], Some(2), 0, FftNorm::Backward));
    assert_eq!((spectrum.get(0).parts(), spectrum.get(1).parts()), ((3.0, 0.0), (3.0, 0.0)));
}

#[test]
fn loops_without_iterations_and_empty_branches() {
    let limit = tensor(&[0_i32], Shape::scalar());
    let none = HostTensor::zeros(DType::F32, [0]).unwrap();
    let results = evaluate_all(&[limit, none], |g, p| {
        let mark = g.mark();
        let scope = g.open_scope(
            "while",
            &[TensorType::scalar(DType::S32), TensorType::new(DType::F32, [0])],
        );
        let holds = g.traced(mark, vec![scope.parameters[0]]);
        let next = g.exp(scope.parameters[1])?;
        let body = g.traced(mark, vec![scope.parameters[0], next]);
        g.while_loop(mark, &scope, p, holds, body)
    });
    assert_eq!((numbers(&results[0]), results[1].size()), (vec![0.0], 0));
}

/// Integers are converted to floats before they are negated or subtracted. Unsigned integers have
/// no sign, and the difference of signed integers may overflow.
#[test]
fn copy_sign_and_log_add_exp_of_integers() {
    let sign = tensor(&[-1_i8, 1, -1], [3]);
    let results = [tensor(&[5_u8, 5, 0], [3]), tensor(&[-128_i8, -128, 0], [3])]
        .map(|x| evaluate_op(&[x, sign.clone()], |g, p| g.copy_sign(p[0], p[1])));
    assert_eq!(results[0].dtype(), DType::F32);
    assert_eq!(numbers(&results[0]), [-5.0, 5.0, 0.0]);
    assert!(results[0].get(2).as_f64().is_sign_negative());
    assert_eq!(numbers(&results[1]), [-128.0, 128.0, 0.0]);

    let small = [tensor(&[1_u8, 2], [2]), tensor(&[2_u8, 1], [2])];
    let sums = numbers(&evaluate_op(&small, |g, p| g.log_add_exp(p[0], p[1])));
    let expected = 1_f64.exp().ln_1p() + 1.0;
    assert!(sums.iter().all(|sum| (sum - expected).abs() < 1e-6), "{sums:?}");
    let far = [tensor(&[i32::MIN], [1]), tensor(&[i32::MAX], [1])];
    let sums = numbers(&evaluate_op(&far, |g, p| g.log_add_exp(p[0], p[1])));
    assert_eq!(sums, [f64::from(i32::MAX as f32)]);
}
