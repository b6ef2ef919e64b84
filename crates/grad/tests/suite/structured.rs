//! Compares the derivatives of structured ops with finite differences.

use crate::common::{check, check_twice, f64s, integers, samples, tensor};
use nxla_expr::build::{ConvOptions, FftNorm, SliceStart, WindowOptions, WindowPadding};
use nxla_expr::{ExprId, Graph, Padding, ReduceOp, Result, Transform, TriangularSolve, WindowOp};
use nxla_tensor::{DType, HostTensor, Scalar};

fn uniform(shape: &[usize], seed: u64) -> HostTensor {
    samples(shape, (-1.5, 1.5), seed)
}

#[test]
fn movement_ops() {
    check(&[uniform(&[2, 3], 1)], |graph, x| graph.reshape(x[0], [3, 2]).unwrap());
    check(&[uniform(&[2, 1, 3], 1)], |graph, x| graph.squeeze(x[0], None).unwrap());
    check(&[uniform(&[2, 3, 4], 1)], |graph, x| graph.transpose(x[0], Some(&[1, 2, 0])).unwrap());
    check(&[uniform(&[2, 3], 1)], |graph, x| graph.reverse(x[0], Some(&[1])).unwrap());
    check(&[uniform(&[2, 1], 1)], |graph, x| graph.broadcast(x[0], [3, 2, 4], None).unwrap());
    check(&[uniform(&[3], 1)], |graph, x| graph.broadcast(x[0], [3, 2], Some(&[0])).unwrap());
    check(&[uniform(&[2, 1], 1)], |graph, x| graph.tile(x[0], &[2, 3]).unwrap());
}

#[test]
fn concatenation_and_stacking() {
    let parts = [uniform(&[2, 3], 1), uniform(&[2, 1], 2), uniform(&[2, 0], 3)];
    check(&parts, |graph, x| graph.concatenate(x, 1).unwrap());
    check(&[uniform(&[2], 1), uniform(&[2], 2)], |graph, x| graph.stack(x, 1, None).unwrap());
    check(&[uniform(&[2], 1)], |graph, x| graph.concatenate(&[x[0], x[0]], 0).unwrap());
}

#[test]
fn positive_and_negative_padding() {
    let configs = [(1, 2, 0), (0, 0, 2), (-1, 1, 0), (1, -2, 1), (-2, -1, 2), (0, 0, 0)];
    for (low, high, interior) in configs {
        let padding = [Padding { low, high, interior }, Padding { low: 1, high: 0, interior: 0 }];
        check(&[uniform(&[4, 2], 1), tensor(&[], &[0.5])], |graph, x| {
            graph.pad(x[0], x[1], &padding).unwrap()
        });
    }
    let padding = [Padding { low: 2, high: 1, interior: 0 }];
    check(&[uniform(&[0], 1), tensor(&[], &[0.5])], |graph, x| {
        graph.pad(x[0], x[1], &padding).unwrap()
    });
}

#[test]
fn reductions() {
    let axes: [Option<&[i64]>; 5] = [None, Some(&[0]), Some(&[1]), Some(&[0, 2]), Some(&[])];
    for &op in ReduceOp::ALL {
        for axes in axes {
            for keep_axes in [false, true] {
                check(&[uniform(&[2, 3, 2], 9)], |graph, x| {
                    graph.reduction(op, x[0], axes, keep_axes).unwrap()
                });
            }
        }
        if matches!(op, ReduceOp::Sum | ReduceOp::Product) {
            check(&[uniform(&[2, 0], 9)], |graph, x| {
                graph.reduction(op, x[0], Some(&[1]), false).unwrap()
            });
        }
        check_twice(&[uniform(&[2, 3], 4)], |graph, x| {
            graph.reduction(op, x[0], Some(&[1]), false).unwrap()
        });
    }
}

#[test]
fn products_with_zeros() {
    let x = tensor(&[4, 3], &[2.0, 3.0, 4.0, 0.0, 3.0, 4.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0]);
    check(std::slice::from_ref(&x), |graph, x| graph.product(x[0], Some(&[1]), false).unwrap());
    check(&[x], |graph, x| graph.product(x[0], None, true).unwrap());
}

#[test]
fn equal_extrema_share_gradients() {
    let mut graph = Graph::new();
    let input = tensor(&[2, 3], &[1.0, 3.0, 3.0, 5.0, 4.0, 5.0]);
    let x = crate::common::parameters(&mut graph, std::slice::from_ref(&input))[0];
    let y = graph.reduce_max(x, Some(&[1]), false).unwrap();
    let found = nxla_grad::gradients(&mut graph, y, &[x]).unwrap();
    let found = crate::common::run(&graph, &[input], &found);
    assert_eq!(crate::common::f64s(&found[0]), [0.0, 0.5, 0.5, 0.5, 0.0, 0.5]);
}

/// No window covers only padding, whose extrema are infinite.
fn window_options() -> Vec<WindowOptions> {
    let options = |strides: Option<[usize; 2]>, padding, dilations: Option<[usize; 2]>| {
        let (strides, dilations) = (strides.map(Vec::from), dilations.map(Vec::from));
        WindowOptions { strides, padding, dilations }
    };
    vec![
        WindowOptions::default(),
        options(Some([2, 1]), WindowPadding::Same, None),
        options(None, WindowPadding::Explicit(vec![(1, 1), (0, 2)]), None),
        options(Some([3, 2]), WindowPadding::Explicit(vec![(1, 0), (2, 1)]), None),
        options(None, WindowPadding::Valid, Some([2, 1])),
        options(Some([2, 2]), WindowPadding::Explicit(vec![(1, 1), (2, 1)]), Some([2, 2])),
        options(None, WindowPadding::Explicit(vec![(-1, 0), (0, -1)]), None),
        // The window is larger than the operand, so there are no windows.
        options(None, WindowPadding::Valid, Some([5, 1])),
    ]
}

#[test]
fn windows() {
    for op in [WindowOp::Sum, WindowOp::Product, WindowOp::Max, WindowOp::Min] {
        for options in window_options() {
            check(&[uniform(&[5, 4], 11)], |graph, x| {
                graph.window_reduction(op, x[0], &[2, 3], &options).unwrap()
            });
        }
    }
    check_twice(&[uniform(&[5], 11)], |graph, x| {
        graph.window_product(x[0], &[3], &WindowOptions::default()).unwrap()
    });
}

#[test]
fn window_products_with_zeros() {
    let x = tensor(&[6], &[2.0, 0.0, 3.0, 0.0, 0.0, 1.5]);
    check(&[x], |graph, x| graph.window_product(x[0], &[3], &WindowOptions::default()).unwrap());
}

#[test]
fn window_scatters() {
    for max in [true, false] {
        for options in window_options() {
            let mut graph = Graph::new();
            let x = uniform(&[5, 4], 13);
            let id = crate::common::parameters(&mut graph, std::slice::from_ref(&x))[0];
            let windows = graph.window_sum(id, &[2, 3], &options).unwrap();
            let source = uniform(graph.shape(windows), 14);
            check(&[x, source, tensor(&[], &[0.25])], |graph, x| {
                if max {
                    graph.window_scatter_max(x[0], x[1], x[2], &[2, 3], &options).unwrap()
                } else {
                    graph.window_scatter_min(x[0], x[1], x[2], &[2, 3], &options).unwrap()
                }
            });
        }
    }
}

#[test]
fn window_ties_select_the_last_element() {
    for dilation in [1, 2] {
        let options = WindowOptions { dilations: Some(vec![dilation]), ..WindowOptions::default() };
        let mut graph = Graph::new();
        let input = tensor(&[5], &[1.0; 5]);
        let x = crate::common::parameters(&mut graph, std::slice::from_ref(&input))[0];
        let y = graph.window_max(x, &[2], &options).unwrap();
        let found = nxla_grad::gradients(&mut graph, y, &[x]).unwrap();
        let found = crate::common::run(&graph, &[input], &found);
        let expected: [f64; 5] =
            if dilation == 1 { [0.0, 1.0, 1.0, 1.0, 1.0] } else { [0.0, 0.0, 1.0, 1.0, 1.0] };
        assert_eq!(crate::common::f64s(&found[0]), expected);
    }
}

/// Shape, contracted axes and batch axes.
type Factor<'a> = (&'a [usize], &'a [i64], &'a [i64]);

#[test]
fn dots() {
    let cases: [(Factor<'_>, Factor<'_>); 7] = [
        ((&[3], &[0], &[]), (&[3], &[0], &[])),
        ((&[2, 3], &[1], &[]), (&[3, 4], &[0], &[])),
        ((&[2, 3], &[0], &[]), (&[4, 2], &[1], &[])),
        ((&[2], &[], &[]), (&[3], &[], &[])),
        ((&[2, 3, 4], &[2, 1], &[0]), (&[2, 4, 3, 2], &[1, 2], &[0])),
        ((&[2, 3, 4, 2], &[3, 1], &[0]), (&[2, 3, 2], &[2, 1], &[0])),
        ((&[2, 0], &[1], &[]), (&[0, 3], &[0], &[])),
    ];
    for (left, right) in cases {
        check_twice(&[uniform(left.0, 1), uniform(right.0, 2)], |graph, x| {
            graph.dot_general(x[0], left.1, left.2, x[1], right.1, right.2).unwrap()
        });
    }
}

#[test]
fn convolutions() {
    let base = ConvOptions::default;
    let explicit = |padding: &[(i64, i64)]| WindowPadding::Explicit(padding.to_vec());
    // Input shape, kernel shape and options.
    let cases: Vec<(&[usize], &[usize], ConvOptions)> = vec![
        (&[2, 3, 5], &[4, 3, 3], base()),
        (&[1, 2, 6], &[1, 2, 3], ConvOptions { strides: Some(vec![2]), ..base() }),
        (&[1, 1, 4], &[1, 1, 2], ConvOptions { padding: explicit(&[(3, 2)]), ..base() }),
        (&[1, 1, 6], &[1, 1, 2], ConvOptions { padding: explicit(&[(-1, -2)]), ..base() }),
        (
            &[2, 2, 5],
            &[3, 2, 2],
            ConvOptions {
                strides: Some(vec![3]),
                padding: explicit(&[(2, 1)]),
                input_dilation: Some(vec![2]),
                kernel_dilation: Some(vec![3]),
                ..base()
            },
        ),
        (&[2, 4, 4], &[6, 2, 2], ConvOptions { feature_groups: 2, ..base() }),
        (
            &[2, 4, 5],
            &[4, 1, 2],
            ConvOptions { feature_groups: 4, strides: Some(vec![2]), ..base() },
        ),
        (&[4, 3, 4], &[6, 3, 2], ConvOptions { batch_groups: 2, ..base() }),
        (&[4, 1, 5], &[4, 1, 2], ConvOptions { batch_groups: 4, strides: Some(vec![2]), ..base() }),
        (
            &[1, 4, 5, 2],
            &[3, 2, 2, 3],
            ConvOptions {
                strides: Some(vec![1, 2]),
                padding: WindowPadding::Same,
                input_permutation: Some(vec![0, 3, 1, 2]),
                kernel_permutation: Some(vec![3, 2, 0, 1]),
                output_permutation: Some(vec![0, 3, 1, 2]),
                ..base()
            },
        ),
        (
            &[4, 5, 2, 2],
            &[3, 2, 2, 2],
            ConvOptions {
                feature_groups: 1,
                input_permutation: Some(vec![3, 2, 0, 1]),
                kernel_permutation: Some(vec![1, 2, 0, 3]),
                output_permutation: Some(vec![2, 0, 3, 1]),
                ..base()
            },
        ),
        // The window is larger than the input, so there are no results.
        (&[1, 1, 2], &[1, 1, 3], base()),
    ];
    for (input, kernel, options) in cases {
        check(&[uniform(input, 1), uniform(kernel, 2)], |graph, x| {
            graph.conv(x[0], x[1], &options).unwrap()
        });
    }
    check_twice(&[uniform(&[1, 2, 5], 1), uniform(&[2, 2, 2], 2)], |graph, x| {
        let options = ConvOptions { strides: Some(vec![2]), ..ConvOptions::default() };
        graph.conv(x[0], x[1], &options).unwrap()
    });
}

#[test]
fn slices() {
    let x = uniform(&[5, 4], 1);
    check(std::slice::from_ref(&x), |graph, x| {
        graph.slice(x[0], &[1.into(), 0.into()], &[4, 3], Some(&[2, 1])).unwrap()
    });
    // Out of range at both ends.
    check(std::slice::from_ref(&x), |graph, x| {
        graph.slice(x[0], &[9.into(), (-3).into()], &[2, 2], None).unwrap()
    });
    check(std::slice::from_ref(&x), |graph, x| {
        graph.slice(x[0], &[0.into(), 0.into()], &[0, 2], None).unwrap()
    });
    for start in [-2, 0, 1, 4] {
        check(&[x.clone(), integers(&[], &[start])], |graph, x| {
            let starts = [SliceStart::from(x[1]), 1.into()];
            graph.slice(x[0], &starts, &[4, 2], Some(&[3, 1])).unwrap()
        });
        check(&[x.clone(), uniform(&[2, 3], 2), integers(&[], &[start])], |graph, x| {
            graph.put_slice(x[0], &[x[2].into(), 1.into()], x[1]).unwrap()
        });
    }
}

#[test]
fn gathers() {
    // Repeated and out-of-range indices.
    let x = uniform(&[3, 4], 1);
    check(&[x.clone(), integers(&[4, 1], &[2, 0, 2, 7])], |graph, x| {
        graph.gather(x[0], x[1], Some(&[0])).unwrap()
    });
    check(&[x.clone(), integers(&[2, 2, 1], &[2, 0, -2, 3])], |graph, x| {
        graph.gather(x[0], x[1], Some(&[1])).unwrap()
    });
    check_twice(&[x.clone(), integers(&[3, 2], &[2, 0, 1, 1, 2, 0])], |graph, x| {
        graph.gather(x[0], x[1], None).unwrap()
    });
    check(&[x.clone(), integers(&[0, 1], &[])], |graph, x| {
        graph.gather(x[0], x[1], Some(&[0])).unwrap()
    });
    check(&[x.clone(), integers(&[2, 2], &[2, 0, 3, 1])], |graph, x| {
        graph.take(x[0], x[1], 1).unwrap()
    });
    check(&[x, integers(&[3, 1], &[3, 0, 1])], |graph, x| {
        graph.take_along_axis(x[0], x[1], 1).unwrap()
    });
}

#[test]
fn scatters() {
    let x = uniform(&[3, 4], 1);
    let indices = integers(&[4, 1], &[2, 0, 2, 5]);
    check(&[x.clone(), indices, uniform(&[4, 4], 2)], |graph, x| {
        graph.indexed_add(x[0], x[1], x[2], Some(&[0])).unwrap()
    });
    let indices = integers(&[3, 2], &[2, 1, 0, 0, 1, 9]);
    check(&[x.clone(), indices.clone(), uniform(&[3], 2)], |graph, x| {
        graph.indexed_add(x[0], x[1], x[2], None).unwrap()
    });
    check(&[x.clone(), indices, uniform(&[3], 2)], |graph, x| {
        graph.indexed_put(x[0], x[1], x[2], None).unwrap()
    });
    check(&[x.clone(), integers(&[2, 1], &[1, 3]), uniform(&[2, 3], 2)], |graph, x| {
        graph.indexed_put(x[0], x[1], x[2], Some(&[1])).unwrap()
    });
    check(&[x, integers(&[0, 1], &[]), uniform(&[0, 4], 2)], |graph, x| {
        graph.indexed_put(x[0], x[1], x[2], Some(&[0])).unwrap()
    });
}

#[test]
fn sorts() {
    for (axis, descending) in [(0, false), (1, true), (-1, false)] {
        check_twice(&[uniform(&[4, 3], 1)], |graph, x| {
            graph.sort(x[0], axis, descending, false).unwrap()
        });
    }
    check(&[uniform(&[0, 3], 1)], |graph, x| graph.sort(x[0], 0, false, true).unwrap());
    check(&[uniform(&[5], 1)], |graph, x| {
        let order = graph.argsort(x[0], 0, false, true, DType::S32).unwrap();
        graph.multiply(order, x[0]).unwrap()
    });
}

#[test]
fn fourier_transforms() {
    for (axis, length) in [(0, 3), (1, 4), (1, 6), (0, 2), (-1, 3)] {
        for inverse in [false, true] {
            check(&[uniform(&[3, 4], 1), uniform(&[3, 4], 2)], |graph, x| {
                let i = graph.scalar_constant(Scalar::Complex(0.0, 1.0), DType::C128).unwrap();
                let imaginary = graph.multiply(i, x[1]).unwrap();
                let z = graph.add(x[0], imaginary).unwrap();
                let y = if inverse {
                    graph.ifft(z, Some(length), axis, FftNorm::Backward).unwrap()
                } else {
                    graph.fft(z, Some(length), axis, FftNorm::Backward).unwrap()
                };
                let (re, im) = (graph.real(y).unwrap(), graph.imag(y).unwrap());
                graph.stack(&[re, im], 0, None).unwrap()
            });
        }
    }
    check_twice(&[uniform(&[4], 1)], |graph, x| {
        let y = graph.fft(x[0], None, 0, FftNorm::Backward).unwrap();
        let one = crate::common::number(graph, 0.1);
        let size = graph.abs(y).unwrap();
        graph.add(size, one).unwrap()
    });
}

/// Returns a well-conditioned matrix.
fn diagonally_dominant(batch: &[usize], size: usize, seed: u64) -> HostTensor {
    let shape: Vec<usize> = batch.iter().copied().chain([size, size]).collect();
    let mut numbers = crate::common::f64s(&uniform(&shape, seed));
    for (at, number) in numbers.iter_mut().enumerate() {
        let (row, column) = (at / size % size, at % size);
        *number = if row == column { 2.0 + number.abs() } else { *number };
    }
    tensor(&shape, &numbers)
}

#[test]
fn triangular_solves() {
    for transform in [Transform::None, Transform::Transpose, Transform::Conjugate] {
        for (lower, left_side) in [(true, true), (true, false), (false, true), (false, false)] {
            let options = TriangularSolve { lower, left_side, transform };
            for b in [&[3usize][..], if left_side { &[3, 2] } else { &[2, 3] }] {
                check(&[diagonally_dominant(&[], 3, 1), uniform(b, 2)], |graph, x| {
                    graph.triangular_solve(x[0], x[1], options).unwrap()
                });
            }
        }
    }
    let options = TriangularSolve { lower: true, left_side: true, transform: Transform::None };
    check_twice(&[diagonally_dominant(&[2], 2, 1), uniform(&[2, 2, 3], 2)], |graph, x| {
        graph.triangular_solve(x[0], x[1], options).unwrap()
    });
}

#[test]
fn complex_triangular_solves() {
    for transform in [Transform::None, Transform::Transpose, Transform::Conjugate] {
        for left_side in [true, false] {
            let options = TriangularSolve { lower: true, left_side, transform };
            let inputs = [diagonally_dominant(&[], 2, 1), uniform(&[2, 2], 2), uniform(&[2, 2], 3)];
            check(&inputs, |graph, x| {
                let i = graph.scalar_constant(Scalar::Complex(0.0, 1.0), DType::C128).unwrap();
                let imaginary = graph.multiply(i, x[1]).unwrap();
                let a = graph.add(x[0], imaginary).unwrap();
                let y = graph.triangular_solve(a, x[2], options).unwrap();
                let (re, im) = (graph.real(y).unwrap(), graph.imag(y).unwrap());
                graph.stack(&[re, im], 0, None).unwrap()
            });
        }
    }
}

#[test]
fn cholesky() {
    // Computes `x x^H + I`, which stays Hermitian when an element of `x` changes.
    check_twice(&[uniform(&[2, 3, 3], 1)], |graph, x| {
        let square = graph.dot_general(x[0], &[2], &[0], x[0], &[2], &[0]).unwrap();
        let eye = graph.eye([3, 3], DType::F64).unwrap();
        let a = graph.add(square, eye).unwrap();
        graph.cholesky(a).unwrap()
    });
    check(&[uniform(&[3, 3], 1), uniform(&[3, 3], 2)], |graph, x| {
        let i = graph.scalar_constant(Scalar::Complex(0.0, 1.0), DType::C128).unwrap();
        let imaginary = graph.multiply(i, x[1]).unwrap();
        let z = graph.add(x[0], imaginary).unwrap();
        let conjugate = graph.conjugate(z).unwrap();
        let square = graph.dot_general(z, &[1], &[], conjugate, &[1], &[]).unwrap();
        let eye = graph.eye([3, 3], DType::F64).unwrap();
        let a = graph.add(square, eye).unwrap();
        let l = graph.cholesky(a).unwrap();
        let (re, im) = (graph.real(l).unwrap(), graph.imag(l).unwrap());
        graph.stack(&[re, im], 0, None).unwrap()
    });
}

#[test]
fn reduced_products_of_zeros() {
    let axes: [Option<&[i64]>; 4] = [None, Some(&[0]), Some(&[1]), Some(&[0, 2])];
    let x = tensor(&[2, 3, 2], &[0., 2., 3., 0., 0., 5., 1., 1., -2., 0., 4., 0.5]);
    for axes in axes {
        check_twice(std::slice::from_ref(&x), |graph, x| {
            graph.reduction(ReduceOp::Product, x[0], axes, false).unwrap()
        });
    }
}

#[test]
fn only_the_last_update_has_a_gradient() {
    let x = uniform(&[3, 4], 1);
    let twice = integers(&[4, 2], &[0, 1, 2, 3, 0, 1, 0, 1]);
    check(&[x.clone(), twice, uniform(&[4], 2)], |graph, x| {
        graph.indexed_put(x[0], x[1], x[2], None).unwrap()
    });
    let rows = integers(&[2, 2, 1], &[1, 1, 7, 0]);
    check(&[x, rows, uniform(&[2, 2, 4], 2)], |graph, x| {
        graph.indexed_put(x[0], x[1], x[2], Some(&[0])).unwrap()
    });
}

#[test]
fn determinants_of_singular_matrices() {
    // The ranks are 3, 2 and 1.
    let three = [1., 2., 0., 1., 0., 1., 1., 2., 2., 0., 1., 1., 3., 3., 2., 4.];
    let two = [1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15., 16.];
    let one = [1., 2., 3., 4., 2., 4., 6., 8., -1., -2., -3., -4., 0., 0., 0., 0.];
    let leading = [0., 1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0., 0., 0., 0.];
    for matrix in [three, two, one, leading] {
        check_twice(&[tensor(&[4, 4], &matrix)], |graph, x| graph.determinant(x[0]).unwrap());
    }
    // Only the singular entry of a batch uses the rule for singular matrices.
    let batch: Vec<f64> =
        [two, three].concat().into_iter().chain(f64s(&uniform(&[4, 4], 3))).collect();
    check_twice(&[tensor(&[3, 4, 4], &batch)], |graph, x| graph.determinant(x[0]).unwrap());
}

#[test]
fn empty_folds_have_the_gradient_of_the_initial_value() {
    let functions: [fn(&mut Graph, ExprId, ExprId) -> Result<ExprId>; 3] = [
        |graph, element, sum| graph.add(element, sum),
        |graph, element, best| graph.max(element, best),
        |graph, element, total| {
            let product = graph.multiply(element, total)?;
            graph.add(product, total)
        },
    ];
    for shape in [&[0][..], &[0, 3], &[3, 0], &[0, 0], &[2, 0, 3]] {
        for axes in [None, Some(&[0][..]), Some(&[-1]), Some(&[0, -1])] {
            if axes == Some(&[0, -1]) && shape.len() == 1 {
                continue;
            }
            for function in functions {
                check_twice(&[uniform(shape, 1), uniform(&[], 2)], |graph, x| {
                    graph.reduce_fun(x[0], x[1], axes, false, function).unwrap()
                });
            }
        }
    }
}
