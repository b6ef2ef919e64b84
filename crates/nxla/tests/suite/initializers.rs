//! Initializers: moments and bounds from the papers that define them.

use crate::common::compilers;
use nxla::initializers::{
    Distribution, Fan, Initializer, constant, glorot_normal, glorot_uniform, he_normal, he_uniform,
    lecun_normal, lecun_uniform, normal, ones, orthogonal, truncated_normal, uniform,
    variance_scaling, zeros,
};
use nxla::prelude::*;
use nxla::{Draw, ErrorClass};

fn initialize(initializer: Initializer, shape: &[usize]) -> Tensor {
    let draw = Draw::new(shape.to_vec()).dtype(DType::F64);
    Tensor::random_key(3).unwrap().initialize(initializer, draw).unwrap()
}

/// Returns the mean, the standard deviation and the largest absolute value.
fn moments(x: &Tensor) -> [f64; 3] {
    let values: Vec<f64> = x.to_vec().unwrap();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64;
    [mean, variance.sqrt(), values.iter().fold(0.0, |most, x| most.max(x.abs()))]
}

#[test]
fn scaled_initializers_have_the_variance_of_their_papers() {
    // A matrix of 200 inputs and 300 outputs, and a kernel of 20 inputs, 30 outputs and 10 positions.
    for shape in [&[200usize, 300][..], &[30, 20, 2, 5]] {
        for (initializer, variance) in [
            (glorot_uniform(), 2.0 / 500.0),
            (glorot_normal(), 2.0 / 500.0),
            (he_uniform(), 2.0 / 200.0),
            (he_normal(), 2.0 / 200.0),
            (lecun_uniform(), 1.0 / 200.0),
            (lecun_normal(), 1.0 / 200.0),
            (variance_scaling(3.0, Fan::Out, Distribution::Normal), 3.0 / 300.0),
        ] {
            let x = initialize(initializer, shape);
            let [mean, deviation, largest] = moments(&x);
            let expected = f64::sqrt(variance);
            let tolerance = 5.0 * expected / (x.shape().size() as f64).sqrt();
            assert!(mean.abs() < tolerance, "{initializer:?}: {mean}");
            assert!((deviation - expected).abs() < tolerance, "{initializer:?}: {deviation}");
            // Truncation at two standard deviations multiplies the standard deviation of a normal
            // distribution by 0.8796.
            let bound = match initializer {
                one if one == variance_scaling(3.0, Fan::Out, Distribution::Normal) => {
                    f64::INFINITY
                }
                one if [glorot_uniform(), he_uniform(), lecun_uniform()].contains(&one) => {
                    3f64.sqrt() * expected
                }
                _ => 2.0 * expected / 0.8796,
            };
            assert!(largest <= bound, "{initializer:?}: {largest}");
            assert!(largest > 0.98 * bound || bound.is_infinite(), "{initializer:?}: {largest}");
        }
    }
    let [_, deviation, _] = moments(&initialize(he_normal().axes(-1, 0), &[300, 2, 100]));
    assert!((deviation - (2f64 / 200.0).sqrt()).abs() < 0.002, "{deviation}");
}

#[test]
fn unscaled_initializers_do_not_depend_on_fans() {
    let [mean, deviation, largest] = moments(&initialize(uniform(0.2), &[20_000]));
    assert!((mean - 0.1).abs() < 0.002 && (deviation - 0.2 / 12f64.sqrt()).abs() < 0.002);
    assert!(largest < 0.2);
    let [mean, deviation, _] = moments(&initialize(normal(0.2), &[20_000]));
    assert!(mean.abs() < 0.006 && (deviation - 0.2).abs() < 0.006);
    let [_, _, largest] = moments(&initialize(truncated_normal(0.2, -1.0, 1.0), &[1000]));
    assert!(largest <= 0.2 && largest > 0.19);
    for (initializer, value) in [(zeros(), 0.0), (ones(), 1.0), (constant(0.1), 0.1)] {
        assert_eq!(initialize(initializer, &[2]).to_vec::<f64>().unwrap(), [value; 2]);
    }
}

#[test]
fn orthogonal_matrices_are_orthonormal_along_their_shorter_axis() {
    // The columns belong to the axis of outputs: 1 of a matrix, 0 of a kernel.
    for (shape, axes, column_axis) in [
        (&[5usize, 3][..], None, 1),
        (&[3, 5][..], None, 1),
        (&[4, 3, 2][..], None, 0),
        (&[2, 3, 4][..], Some((0, 2)), 2),
    ] {
        let initializer = axes.map_or(orthogonal(2.0), |(a, b)| orthogonal(2.0).axes(a, b));
        let w = initialize(initializer, shape);
        let columns = shape[column_axis];
        let rows = shape.iter().product::<usize>() / columns;
        let mut order: Vec<i64> = (0..shape.len() as i64).collect();
        order.push(order[column_axis]);
        order.remove(column_axis);
        let matrix = w.transpose(&order[..]).unwrap().reshape([rows, columns]).unwrap();
        let transposed = matrix.transpose(()).unwrap();
        let (product, size) = if rows >= columns {
            (transposed.dot(&matrix), columns)
        } else {
            (matrix.dot(&transposed), rows)
        };
        let product: Vec<f64> = product.unwrap().to_vec().unwrap();
        for (at, value) in product.iter().enumerate() {
            let expected = if at % (size + 1) == 0 { 4.0 } else { 0.0 };
            assert!((value - expected).abs() < 1e-12, "{shape:?}: {product:?}");
        }
    }
}

#[test]
fn traced_initializers_match_eager_ones() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for initializer in [he_normal(), glorot_uniform(), constant(0.1), normal(0.1)] {
            let draw = || Draw::new([4, 3]).dtype(dtype);
            let key = Tensor::random_key(1).unwrap();
            let eager = key.initialize(initializer, draw()).unwrap();
            assert_eq!((eager.dtype(), &eager.shape()[..]), (dtype, &[4, 3][..]));
            for compiler in compilers() {
                let f = jit(move |key: Expr| key.initialize(initializer, draw()));
                let traced = f.compiler(compiler).call(&key).unwrap();
                let close = traced.all_close(&eager, 1e-6, 1e-6, false).unwrap();
                assert!(close.item::<bool>().unwrap(), "{initializer:?} of {dtype} on {compiler}");
            }
        }
    }
}

#[test]
fn shapes_without_fans_are_errors() {
    let key = Tensor::random_key(0).unwrap();
    for (initializer, shape, expected) in [
        (he_normal(), vec![3], "shape: must have axes of inputs and outputs; got [3]"),
        (orthogonal(1.0), vec![], "shape: must have axes of inputs and outputs; got []"),
        (he_normal().axes(0, 2), vec![3, 4], "shape: must have the axis 2; got [3, 4]"),
        (he_normal().axes(-3, 0), vec![3, 4], "shape: must have the axis -3; got [3, 4]"),
    ] {
        let error = key.initialize(initializer, Draw::new(shape)).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Argument);
        assert!(error.to_string().contains(expected), "{error}, not {expected}");
    }
    assert_eq!(initialize(he_normal(), &[0, 3]).shape()[..], [0, 3]);
    assert_eq!(initialize(orthogonal(1.0), &[3, 0]).shape()[..], [3, 0]);
}

#[test]
fn distribution_parameters_have_the_result_dtype() {
    // The bounds 0.1 and 0.3 differ from their `f32` neighbors, which are further apart.
    let draw = || Draw::new([4]).dtype(DType::F64);
    let key = Tensor::random_key(5).unwrap();
    let unit: Vec<f64> = key.random_uniform(0.0..1.0, draw()).unwrap().0.to_vec().unwrap();
    let scaled: Vec<f64> = key.random_uniform(0.1..0.3, draw()).unwrap().0.to_vec().unwrap();
    for (unit, scaled) in unit.iter().zip(&scaled) {
        assert!((0.1 + unit * (0.3 - 0.1) - scaled).abs() < 1e-15, "{scaled}");
    }
    let unit: Vec<f64> = key.random_normal(0.0, 1.0, draw()).unwrap().0.to_vec().unwrap();
    let scaled: Vec<f64> = key.random_normal(0.1, 0.3, draw()).unwrap().0.to_vec().unwrap();
    for (unit, scaled) in unit.iter().zip(&scaled) {
        assert!((0.1 + unit * 0.3 - scaled).abs() < 1e-15, "{scaled}");
    }
}
