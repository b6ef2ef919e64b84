//! Kernels that are selected by size return the results of the definition.

use std::sync::Arc;

use nxla_eval::{Hooks, Plan, evaluate};
use nxla_expr::build::{
    Combine, Cumulative, Side, SliceStart, Subscript, Update, WindowOptions, WindowPadding,
};
use nxla_expr::{ExprId, Graph, Op, Program, Result, Transform, TriangularSolve};
use nxla_tensor::{DType, HostTensor, Scalar};

use super::common::{evaluate_op, program_of};

/// Unordered numbers between -1 and 1.
fn samples(shape: &[usize]) -> HostTensor {
    let size: usize = shape.iter().product();
    let numbers: Vec<f64> =
        (0..size).map(|at| ((at as f64 + 1.0).sin() * 43_758.545_3).fract()).collect();
    HostTensor::from_slice(&numbers, shape).unwrap()
}

fn program(
    inputs: &[HostTensor],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<ExprId>,
) -> Program {
    program_of(inputs, |graph, ids| Ok(vec![build(graph, ids)?]))
}

fn run(
    inputs: &[HostTensor],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<ExprId>,
) -> Vec<f64> {
    evaluate_op(inputs, build).cast(DType::F64).to_vec::<f64>().unwrap()
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (at, (x, y)) in found.iter().zip(expected).enumerate() {
        assert!((x - y).abs() <= 1e-9 * y.abs().max(1.0), "{at}: {x}, expected {y}");
    }
}

#[test]
fn batched_solves_equal_separate_solves() {
    let (side, systems) = (37, 70);
    let mut a = samples(&[side, side]);
    let diagonal = a.make_mut::<f64>().unwrap().iter_mut().step_by(side + 1);
    diagonal.for_each(|x| *x += 20.0);
    for transform in [Transform::None, Transform::Transpose, Transform::Conjugate] {
        for (lower, left_side) in [(true, true), (true, false), (false, true), (false, false)] {
            let options = TriangularSolve { lower, left_side, transform };
            let solve = |b: HostTensor| {
                run(&[a.clone(), b], |g, x| g.triangular_solve(x[0], x[1], options))
            };
            let shape = if left_side { [side, systems] } else { [systems, side] };
            let b = samples(&shape);
            let together = solve(b.clone());
            let elements = b.as_slice::<f64>().unwrap();
            for system in 0..systems {
                let position = |unknown: usize| {
                    if left_side { unknown * systems + system } else { system * side + unknown }
                };
                let alone: Vec<f64> =
                    (0..side).map(|unknown| elements[position(unknown)]).collect();
                let shape = if left_side { [side, 1] } else { [1, side] };
                let alone = solve(HostTensor::from_slice(&alone, shape).unwrap());
                let found: Vec<f64> =
                    (0..side).map(|unknown| together[position(unknown)]).collect();
                assert_near(&found, &alone);
            }
        }
    }
}

#[test]
fn window_scatter_selects_the_last_of_equal_extrema() {
    // Windows of shape 3 x 2 that overlap, with padding that never receives an element.
    let mut numbers = samples(&[2, 40, 30]);
    for x in numbers.make_mut::<f64>().unwrap() {
        // `total_cmp` distinguishes -0 from 0, so -0 is removed.
        *x = (*x * 3.0).round() + 0.0;
    }
    let options = WindowOptions {
        padding: WindowPadding::Explicit(vec![(0, 0), (1, 1), (0, 1)]),
        strides: Some(vec![1, 2, 1]),
        ..WindowOptions::default()
    };
    let source = samples(&[2, 20, 30]);
    let zero = HostTensor::zeros(DType::F64, []).unwrap();
    let found = run(&[numbers.clone(), source.clone(), zero], |g, x| {
        g.window_scatter_max(x[0], x[1], x[2], &[1, 3, 2], &options)
    });
    let x = numbers.as_slice::<f64>().unwrap();
    let mut expected = vec![0.0; x.len()];
    for (window, &value) in source.as_slice::<f64>().unwrap().iter().enumerate() {
        let (image, row, column) = (window / 600, window / 30 % 20, window % 30);
        let taps = (0..6).map(|tap| (row * 2 + tap / 2, column + tap % 2));
        let inside = taps.filter(|&(i, j)| (1..=40).contains(&i) && j < 30);
        let indices = inside.map(|(i, j)| (image * 40 + i - 1) * 30 + j);
        // Of equal elements, `max_by` returns the last one too.
        let best = indices.max_by(|&a, &b| x[a].total_cmp(&x[b])).unwrap();
        expected[best] += value;
    }
    assert_near(&found, &expected);
}

#[test]
fn transposes_of_large_tensors_are_exact() {
    for shape in [[700, 300, 1], [3, 257, 130], [129, 5, 200]] {
        let x = samples(&shape);
        for order in [[1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0], [2, 0, 1]] {
            let axes: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
            let found = run(std::slice::from_ref(&x), |g, x| g.transpose(x[0], Some(&axes)));
            let elements = x.as_slice::<f64>().unwrap();
            let steps = [shape[1] * shape[2], shape[2], 1];
            let [a, b, c] = order;
            let mut at = 0;
            for i in 0..shape[a] {
                for j in 0..shape[b] {
                    for k in 0..shape[c] {
                        let position = i * steps[a] + j * steps[b] + k * steps[c];
                        assert_eq!(found[at], elements[position], "{shape:?} {order:?}");
                        at += 1;
                    }
                }
            }
        }
    }
}

#[test]
fn put_slice_reuses_operand_memory() {
    let x = HostTensor::zeros(DType::F32, [5000]).unwrap();
    let update = HostTensor::from_slice(&[1.0_f32, 2.0], [2]).unwrap();
    let program = program(&[x.clone(), update.clone()], |g, x| {
        g.put_slice(x[0], &[SliceStart::Static(3)], x[1])
    });
    let plan = Plan::new(Arc::new(program));
    let address = x.bytes().as_ptr();
    let result = plan.run(vec![x, update], &Hooks::new()).unwrap().remove(0);
    assert_eq!(result.bytes().as_ptr(), address);
    assert_eq!(result.as_slice::<f32>().unwrap()[2..6], [0.0, 1.0, 2.0, 0.0]);
}

/// Runs a program with every block replaced by its body.
fn run_body(program: &Program, inputs: &[HostTensor]) -> HostTensor {
    let from = program.graph();
    let block = from.ids().find_map(|id| match from.op(id) {
        Op::Block(block) => Some(block.body.clone()),
        _ => None,
    });
    evaluate(&block.expect("there is a block"), inputs.to_vec()).unwrap().remove(0)
}

#[test]
fn cumulative_blocks_match_their_bodies() {
    let all = [Cumulative::Sum, Cumulative::Product, Cumulative::Max, Cumulative::Min];
    let dtypes = [
        DType::U2,
        DType::S4,
        DType::U8,
        DType::S32,
        DType::U64,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];
    for (dtype, op) in dtypes.into_iter().flat_map(|dtype| all.map(|op| (dtype, op))) {
        if dtype.is_complex() && matches!(op, Cumulative::Max | Cumulative::Min) {
            continue;
        }
        for (shape, axis, reverse) in
            [(&[7][..], 0, false), (&[3, 5, 4], 1, true), (&[6, 5], 0, false), (&[0, 3], 1, true)]
        {
            let numbers = run(&[samples(shape)], |g, x| {
                let ten = g.scalar_constant(nxla_tensor::Scalar::Float(10.0), DType::F64)?;
                g.multiply(x[0], ten)
            });
            let x = HostTensor::from_slice(&numbers, shape).unwrap();
            let x = if dtype.is_integer() { x.cast(DType::S64).cast(dtype) } else { x.cast(dtype) };
            let inputs = [x];
            let program = program(&inputs, |g, x| g.cumulative(op, x[0], axis, reverse));
            let found = evaluate(&program, inputs.to_vec()).unwrap().remove(0);
            let expected = run_body(&program, &inputs);
            assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()));
            for at in 0..found.size() {
                let ((a, b), (c, d)) = (found.get(at).parts(), expected.get(at).parts());
                let near = (a - c).hypot(b - d) <= 1e-5 * c.hypot(d).max(1.0);
                let same = if dtype.is_integer() { (a, b) == (c, d) } else { near };
                assert!(same, "{dtype} {op:?} {shape:?} {at}: {a} {b}, the body gives {c} {d}");
            }
        }
    }
}

#[test]
fn cumulative_extrema_propagate_nan() {
    let x = HostTensor::from_slice(&[1.0_f32, -2.0, f32::NAN, 5.0], [4]).unwrap();
    for op in [Cumulative::Max, Cumulative::Min] {
        let found = run(std::slice::from_ref(&x), |g, x| g.cumulative(op, x[0], 0, false));
        assert!(found[1].is_finite() && found[2].is_nan() && found[3].is_nan(), "{found:?}");
    }
}

/// The windows along an axis: taps, stride, dilation and padding.
type AxisWindow = (usize, usize, usize, (i64, i64));

/// The position of a tap of a window, or `None` in the padding.
fn position(
    (_, stride, dilation, (low, _)): AxisWindow,
    size: usize,
    at: usize,
    tap: usize,
) -> Option<usize> {
    let position = usize::try_from((at * stride + tap * dilation) as i64 - low);
    position.ok().filter(|&position| position < size)
}

/// The largest element and the sum of each window over the last two axes, by their definition.
fn windows(
    x: &[f64],
    [outer, rows, columns]: [usize; 3],
    vertical: AxisWindow,
    horizontal: AxisWindow,
) -> [Vec<f64>; 2] {
    let count = |size: usize, (taps, stride, dilation, (low, high)): AxisWindow| {
        (size as i64 + low + high - ((taps - 1) * dilation) as i64 - 1) as usize / stride + 1
    };
    let mut found = [Vec::new(), Vec::new()];
    for (i, j) in (0..outer * count(rows, vertical))
        .flat_map(|i| (0..count(columns, horizontal)).map(move |j| (i, j)))
    {
        let (block, i) = (i / count(rows, vertical), i % count(rows, vertical));
        let taps = (0..vertical.0).flat_map(|tap| (0..horizontal.0).map(move |other| (tap, other)));
        let seen = taps.filter_map(|(tap, other)| {
            let row = position(vertical, rows, i, tap)?;
            Some(x[(block * rows + row) * columns + position(horizontal, columns, j, other)?])
        });
        let seen: Vec<f64> = seen.collect();
        found[0].push(seen.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        found[1].push(seen.iter().sum());
    }
    found
}

#[test]
fn window_reductions_match_their_definition() {
    let kinds: [AxisWindow; 9] = [
        (1, 1, 1, (0, 0)),
        (2, 2, 1, (0, 0)),
        (3, 2, 1, (1, 1)),
        (3, 1, 1, (0, 2)),
        (5, 1, 2, (4, 4)),
        (1, 2, 1, (0, 0)),
        (4, 2, 1, (3, 0)),
        (3, 3, 2, (2, 5)),
        (2, 5, 1, (4, 9)),
    ];
    // Rows that are shorter than a vector, equal to several vectors, longer, and empty.
    for shape in [[2, 9, 9], [1, 12, 16], [2, 10, 57], [1, 33, 80], [2, 0, 70], [1, 9, 150]] {
        let x = samples(&shape);
        let numbers: Vec<f64> =
            x.as_slice::<f64>().unwrap().iter().map(|x| (x * 100.0).round()).collect();
        let x = HostTensor::from_slice(&numbers, shape).unwrap();
        for (vertical, horizontal) in
            kinds.iter().flat_map(|&vertical| kinds.map(|horizontal| (vertical, horizontal)))
        {
            // A window has to fit.
            let fits = |size: usize, (taps, _, dilation, (low, high)): AxisWindow| {
                size as i64 + low + high > ((taps - 1) * dilation) as i64
            };
            if !fits(shape[1], vertical) || !fits(shape[2], horizontal) {
                continue;
            }
            let options = WindowOptions {
                strides: Some(vec![1, vertical.1, horizontal.1]),
                dilations: Some(vec![1, vertical.2, horizontal.2]),
                padding: WindowPadding::Explicit(vec![(0, 0), vertical.3, horizontal.3]),
            };
            let taps = [1, vertical.0, horizontal.0];
            let found = [
                run(std::slice::from_ref(&x), |g, x| g.window_max(x[0], &taps, &options)),
                run(std::slice::from_ref(&x), |g, x| g.window_sum(x[0], &taps, &options)),
            ];
            assert_eq!(
                found,
                windows(&numbers, shape, vertical, horizontal),
                "{shape:?} {vertical:?} {horizontal:?}"
            );
        }
    }
}

#[test]
fn scatter_blocks_match_their_bodies() {
    let indices = [2, 0, 2, -1, 5, 2, 0, i64::MAX, i64::MIN];
    let (x, updates) =
        ([2.0, -3.0, 1.0, 7.0, -1.0], [2.0, 3.0, -1.0, 9.0, 9.0, 3.0, -2.0, 9.0, 9.0]);
    let dtypes = [DType::U2, DType::S4, DType::U8, DType::S64, DType::BF16, DType::F32, DType::C64];
    for (dtype, op) in
        dtypes.into_iter().flat_map(|dtype| Combine::ALL.iter().map(move |&op| (dtype, op)))
    {
        if dtype.is_complex() && op != Combine::Multiply {
            continue;
        }
        let vector = |numbers: &[f64]| {
            let x = HostTensor::from_slice(numbers, [numbers.len()]).unwrap();
            if dtype.is_integer() { x.cast(DType::S64).cast(dtype) } else { x.cast(dtype) }
        };
        let indices = HostTensor::from_slice(&indices, [indices.len()]).unwrap();
        let inputs = [vector(&x), indices, vector(&updates)];
        let update = program(&inputs, |g, p| {
            g.subscript_update(p[0], &[Subscript::Take(p[1])], p[2], Update::Combine(op))
        });
        let block = update.graph().ids().find_map(|id| match update.graph().op(id) {
            Op::Block(block) => Some(block.clone()),
            _ => None,
        });
        let block = block.expect("all updates are one block");
        let [x, indices, updates] = inputs;
        // The out-of-range index must be dropped, although subscripts clamp such an index.
        let index = block.body.inputs()[1].clone();
        let indices = indices.reshape(index.shape).unwrap().cast(index.dtype);
        let inputs = [x, indices, updates];
        let by_kernel = program(&inputs, |g, p| g.make(Op::Block(block), p));
        let found = evaluate(&by_kernel, inputs.to_vec()).unwrap().remove(0);
        let expected = run_body(&by_kernel, &inputs);
        assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()));
        assert_eq!(found.bytes(), expected.bytes(), "{dtype} {op:?}");
    }
}

#[test]
fn search_blocks_match_their_bodies() {
    let ordered = |count: usize| (0..count).map(|at| (at as f64 - 40.0) / 8.0).collect::<Vec<_>>();
    let with_nan = [ordered(20), vec![f64::NAN, f64::NAN]].concat();
    let no_order = samples(&[77]).to_vec::<f64>().unwrap();
    let dtypes = [DType::U2, DType::S4, DType::U8, DType::S64, DType::BF16, DType::F32, DType::F64];
    for (dtype, equal) in dtypes.into_iter().flat_map(|dtype| [(dtype, false), (dtype, true)]) {
        for sorted in [ordered(1), ordered(2), ordered(100), with_nan.clone(), no_order.clone()] {
            for shape in [&[][..], &[0], &[1], &[17], &[3, 50], &[9000]] {
                let of_dtype = |x: HostTensor| {
                    if dtype.is_float() { x.cast(dtype) } else { x.cast(DType::S64).cast(dtype) }
                };
                let x = samples(shape).to_vec::<f64>().unwrap();
                let mut x: Vec<f64> = x.iter().map(|x| (x * 64.0).round() / 8.0).collect();
                x.iter_mut().skip(5).step_by(7).for_each(|x| *x = f64::NAN);
                let inputs = [
                    of_dtype(HostTensor::from_slice(&sorted, [sorted.len()]).unwrap()),
                    of_dtype(HostTensor::from_slice(&x, shape).unwrap()),
                ];
                let side = if equal { Side::Right } else { Side::Left };
                let search = program(&inputs, |g, p| g.searchsorted(p[0], p[1], side));
                let is_block = |id: &ExprId| matches!(search.graph().op(*id), Op::Block(_));
                assert_eq!(search.graph().ids().filter(is_block).count(), 1);
                let found = evaluate(&search, inputs.to_vec()).unwrap().remove(0);
                let expected = run_body(&search, &inputs);
                assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()));
                assert_eq!(found.bytes(), expected.bytes(), "{dtype} {equal} {shape:?}");
            }
        }
    }
}

#[test]
fn division_by_constant_powers_of_two_is_exact() {
    let numbers = [0.0, -0.0, 1.0, -1.0 / 3.0, 1e-310, 3e-45, 7e-39, 1.1e38, -1.7e308];
    let numbers = numbers.into_iter().chain([f64::NAN, f64::INFINITY, f64::MIN_POSITIVE]);
    let wide: Vec<f64> = numbers.collect();
    let narrow: Vec<f32> = wide.iter().map(|&x| x as f32).collect();
    let inputs = [
        HostTensor::from_slice(&wide, [12]).unwrap(),
        HostTensor::from_slice(&narrow, [12]).unwrap(),
    ];
    for exponent in (-1074..=1023).step_by(3).chain([-1022, -1023, -149, -127, -126, 126, 127]) {
        for factor in [1.0, -1.0, 3.0] {
            let divisor = factor * 2_f64.powi(exponent / 2) * 2_f64.powi(exponent - exponent / 2);
            let quotients = |x: &HostTensor| {
                run(std::slice::from_ref(x), |g, p| {
                    let divisor = g.scalar_constant(Scalar::Float(divisor), x.dtype())?;
                    g.divide(p[0], divisor)
                })
            };
            let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
            for (found, x) in quotients(&inputs[0]).into_iter().zip(&wide) {
                assert_eq!(bits(found), bits(x / divisor), "{x} / {divisor}");
            }
            for (found, x) in quotients(&inputs[1]).into_iter().zip(&narrow) {
                let expected = f64::from(x / divisor as f32);
                assert_eq!(bits(found), bits(expected), "{x} / {divisor}, f32");
            }
        }
    }
}

#[test]
fn slices_and_reversals_are_read_in_place() {
    // Start, length and stride of each axis, and the reversed axes.
    type Cut<'a> = (&'a [(usize, usize, usize)], &'a [i64]);
    let cuts: [(&[usize], Cut<'_>); 8] = [
        (&[9], (&[(2, 5, 1)], &[])),
        (&[20_000], (&[(1, 19_999, 1)], &[])),
        (&[20_000], (&[(0, 20_000, 1)], &[0])),
        (&[20_000], (&[(3, 19_000, 7)], &[0])),
        (&[100, 130], (&[(1, 98, 1), (1, 128, 1)], &[])),
        (&[100, 130], (&[(10, 60, 2), (0, 130, 1)], &[1])),
        (&[40, 50, 3], (&[(0, 40, 1), (7, 20, 1), (1, 2, 1)], &[0, 2])),
        (&[6000, 5], (&[(0, 6000, 1), (2, 1, 1)], &[])),
    ];
    for (shape, (axes, reversed)) in cuts {
        let x = samples(shape);
        let moved = |g: &mut Graph, x: ExprId| {
            let starts: Vec<SliceStart> = axes.iter().map(|axis| SliceStart::at(axis.0)).collect();
            let lengths: Vec<usize> = axes.iter().map(|axis| axis.1).collect();
            let strides: Vec<usize> = axes.iter().map(|axis| axis.2).collect();
            let x = g.slice(x, &starts, &lengths, Some(&strides))?;
            if reversed.is_empty() { Ok(x) } else { g.reverse(x, Some(reversed)) }
        };
        // As an output of the program, the view is copied.
        let expected: Vec<f64> = run(std::slice::from_ref(&x), |g, x| moved(g, x[0]))
            .into_iter()
            .map(|x| -3.0 * x)
            .collect();
        let found = run(&[x], |g, x| {
            let moved = moved(g, x[0])?;
            let twice = g.add(moved, moved)?;
            let thrice = g.add(twice, moved)?;
            g.negate(thrice)
        });
        assert_near(&found, &expected);
    }
}

#[test]
fn row_operands_broadcast_over_rows() {
    for (rows, columns) in [(3000, 7), (500, 64), (70, 1000), (3, 9000), (20_000, 1)] {
        let (x, row) = (samples(&[rows, columns]), samples(&[columns]));
        let elements = row.to_vec::<f64>().unwrap();
        let all = x.to_vec::<f64>().unwrap();
        let expected: Vec<f64> =
            all.iter().enumerate().map(|(at, x)| x * elements[at % columns]).collect();
        assert_near(&run(&[x, row], |g, x| g.multiply(x[0], x[1])), &expected);
    }
}

#[test]
fn short_row_reductions_match_their_definition() {
    for count in (1..70).chain([127, 500, 1023, 1024, 1025]) {
        for rows in [1, 3, 4, 9] {
            let x = samples(&[rows, count]);
            let elements = x.to_vec::<f64>().unwrap();
            let by_row = |reduce: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
                elements.chunks(count).map(reduce).collect()
            };
            for dtype in [DType::F32, DType::F64] {
                // Multiples of 1/16, so that sums are exact.
                let whole: Vec<f64> = elements.iter().map(|x| (x * 16.0).round() / 16.0).collect();
                let x = HostTensor::from_slice(&whole, [rows, count]).unwrap().cast(dtype);
                let sums: Vec<f64> = whole.chunks(count).map(|row| row.iter().sum()).collect();
                assert_eq!(run(&[x], |g, x| g.sum(x[0], Some(&[1]), false)), sums, "{count}");
            }
            let largest = by_row(&|row| row.iter().copied().fold(f64::MIN, f64::max));
            let found = run(std::slice::from_ref(&x), |g, x| g.reduce_max(x[0], Some(&[1]), false));
            assert_eq!(found, largest, "{count}");
            let is_large = |threshold: f64| move |row: &[f64]| row.iter().any(|&x| x > threshold);
            for threshold in [0.99, 0.5, -2.0] {
                let expected = by_row(&|row| f64::from(u8::from(is_large(threshold)(row))));
                let found = run(std::slice::from_ref(&x), |g, x| {
                    let threshold = g.scalar_constant(Scalar::Float(threshold), DType::F64)?;
                    let large = g.greater(x[0], threshold)?;
                    g.any(large, Some(&[1]), false)
                });
                assert_eq!(found, expected, "{count}");
            }
        }
    }
}

#[test]
fn short_row_argmax_and_argmin_match_their_definition() {
    for count in [1, 2, 7, 8, 9, 16, 31, 64, 100, 1023, 1024] {
        for rows in [1, 4, 7] {
            // Few distinct values, so that there are ties, and NaN in some rows.
            let number = |at: usize| match (at / count % 3, at * 7919 % 13) {
                (2, 5) => f64::NAN,
                (_, value) => value as f64,
            };
            let elements: Vec<f64> = (0..rows * count).map(number).collect();
            let x = HostTensor::from_slice(&elements, [rows, count]).unwrap();
            for tie_high in [false, true] {
                for is_max in [false, true] {
                    let position = |row: &[f64]| {
                        let is_worse = |a: f64, b: f64| if is_max { a < b } else { a > b };
                        let mut best = 0;
                        for (at, &x) in row.iter().enumerate().skip(1) {
                            let (is_nan, was_nan) = (x.is_nan(), row[best].is_nan());
                            let is_tie = x == row[best] || is_nan && was_nan;
                            let wins = is_worse(row[best], x) || is_nan && !was_nan;
                            if wins || is_tie && tie_high {
                                best = at;
                            }
                        }
                        best as f64
                    };
                    let expected: Vec<f64> = elements.chunks(count).map(position).collect();
                    let found = run(std::slice::from_ref(&x), |g, x| {
                        if is_max {
                            g.argmax(x[0], Some(1), false, tie_high, DType::S64)
                        } else {
                            g.argmin(x[0], Some(1), false, tie_high, DType::S64)
                        }
                    });
                    assert_eq!(found, expected, "{count} {tie_high} {is_max}");
                }
            }
        }
    }
}

#[test]
fn products_of_vectors_and_long_matrices() {
    for (rows, inner, columns) in
        [(50, 1, 70), (900, 16, 1), (3, 1023, 1), (5, 9000, 7), (40, 5000, 40), (1, 1, 1)]
    {
        let (x, y) = (samples(&[inner, rows]), samples(&[inner, columns]));
        let (left, right) = (x.to_vec::<f64>().unwrap(), y.to_vec::<f64>().unwrap());
        let mut expected = Vec::new();
        for i in 0..rows {
            for j in 0..columns {
                let terms = (0..inner).map(|k| left[k * rows + i] * right[k * columns + j]);
                expected.push(terms.sum::<f64>());
            }
        }
        let found = run(&[x, y], |g, x| {
            let transposed = g.transpose(x[0], None)?;
            g.dot(transposed, x[1])
        });
        assert_near(&found, &expected);
    }
}

#[test]
fn products_of_narrow_matrices_and_vectors() {
    for (dtype, scale, margin) in
        [(DType::F64, 1.0, 1e-12), (DType::F32, 1.0, 1e-6), (DType::S32, 1e2, 0.0)]
    {
        let numbers = |shape: &[usize]| {
            let scaled = samples(shape).to_vec::<f64>().unwrap().into_iter().map(|x| x * scale);
            HostTensor::from_vec(scaled.collect(), shape).unwrap().cast(dtype)
        };
        let read = |x: &HostTensor| x.cast(DType::F64).to_vec::<f64>().unwrap();
        for (rows, columns) in
            [40, 64, 65, 130, 4097, 9000].iter().flat_map(|&r| (1..=17).map(move |c| (r, c)))
        {
            let (matrix, across, vertical) =
                (numbers(&[rows, columns]), numbers(&[columns]), numbers(&[rows]));
            let elements = read(&matrix);
            let dot = |x: &mut dyn Iterator<Item = f64>, y: &[f64]| -> f64 {
                x.zip(y).map(|(x, y)| x * y).sum()
            };
            let by_row = elements.chunks(columns);
            let by_row: Vec<f64> =
                by_row.map(|row| dot(&mut row.iter().copied(), &read(&across))).collect();
            let column = |at: usize| elements[at..].iter().copied().step_by(columns);
            let by_column: Vec<f64> =
                (0..columns).map(|at| dot(&mut column(at), &read(&vertical))).collect();
            let found = run(&[matrix.clone(), across], |g, x| g.dot(x[0], x[1]));
            let found_down = run(&[vertical, matrix], |g, x| g.dot(x[0], x[1]));
            for (found, expected) in [(found, by_row), (found_down, by_column)] {
                assert_eq!(found.len(), expected.len());
                for (x, y) in found.iter().zip(&expected) {
                    let is_near = (x - y).abs() <= margin * y.abs().max(1.0);
                    assert!(is_near, "{dtype} {rows} {columns}: {x}, expected {y}");
                }
            }
        }
    }
}
