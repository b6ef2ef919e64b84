//! Fourier transforms of lines of all lengths, compared with the definition.

use std::f64::consts::TAU;

use nxla_expr::build::FftNorm;
use nxla_tensor::{Complex, DType, HostTensor};

use super::common::{evaluate_op, tensor};

/// Computes the transform by its definition, in double precision.
fn direct_transform(line: &[f64], length: usize, inverse: bool) -> Vec<Complex<f64>> {
    let sign = if inverse { TAU } else { -TAU };
    let scale = if inverse { 1.0 / length as f64 } else { 1.0 };
    (0..length)
        .map(|k| {
            let terms = line.iter().take(length).enumerate().map(|(j, &x)| {
                Complex::from_polar(x, sign * (j * k % length) as f64 / length as f64)
            });
            terms.sum::<Complex<f64>>() * scale
        })
        .collect()
}

fn fourier(x: HostTensor, length: usize, axis: i64, inverse: bool) -> Vec<Complex<f64>> {
    let found = evaluate_op(&[x], |g, x| {
        if inverse {
            g.ifft(x[0], Some(length), axis, FftNorm::Backward)
        } else {
            g.fft(x[0], Some(length), axis, FftNorm::Backward)
        }
    });
    found.cast(DType::C128).to_vec().expect("spectra are complex")
}

#[test]
fn real_transforms_of_any_length() {
    for length in (1..=17).chain([64, 70, 100, 131, 132]) {
        for inverse in [false, true] {
            for size in [length, length + 2, 1] {
                let line: Vec<f64> = (0..size).map(|j| (j * j % 7) as f64 - 2.5).collect();
                // Complex lines are transformed by another plan, in double precision.
                for dtype in [DType::F64, DType::C128] {
                    let found = fourier(tensor(&line, [size]).cast(dtype), length, 0, inverse);
                    for (found, expected) in
                        found.iter().zip(direct_transform(&line, length, inverse))
                    {
                        let limit = if dtype == DType::F64 { 1e-5 } else { 1e-12 };
                        assert!((found - expected).norm() < limit, "{length} {inverse} {size}");
                    }
                }
            }
        }
    }
}

#[test]
fn lines_are_transformed_independently() {
    let numbers = [1.0, f64::NAN, 2.0, 0.0, 3.0, 1e200, 4.0, 0.0];
    let found = fourier(tensor(&numbers, [4, 2]).cast(DType::C128), 4, 0, false);
    let first: Vec<Complex<f64>> = found.iter().step_by(2).copied().collect();
    let whole = |re: f64, im: f64| Complex::new(re, im);
    let expected = [whole(10.0, 0.0), whole(-2.0, 2.0), whole(-2.0, 0.0), whole(-2.0, -2.0)];
    assert_eq!(first, expected);
}

#[test]
fn columns_are_transformed_like_rows() {
    for (shape, length) in [([2, 5, 40], 5), ([2, 5, 40], 3), ([3, 4, 1], 7), ([1, 64, 1100], 64)] {
        let [matrices, count, inner] = shape;
        let numbers: Vec<f64> =
            (0..shape.iter().product()).map(|at: usize| (at * at % 101) as f64 - 50.0).collect();
        let transposed: Vec<f64> = (0..matrices * inner)
            .flat_map(|line| {
                let first = line / inner * count * inner + line % inner;
                numbers[first..].iter().step_by(inner).take(count)
            })
            .copied()
            .collect();
        for dtype in [DType::F32, DType::F64, DType::C64, DType::C128] {
            let columns = fourier(tensor(&numbers, shape).cast(dtype), length, 1, true);
            let lines = tensor(&transposed, [matrices, inner, count]).cast(dtype);
            let lines = fourier(lines, length, 2, true);
            for (at, &found) in columns.iter().enumerate() {
                let (matrix, row, column) =
                    (at / (length * inner), at / inner % length, at % inner);
                assert_eq!(found, lines[(matrix * inner + column) * length + row], "{shape:?}");
            }
        }
    }
}
