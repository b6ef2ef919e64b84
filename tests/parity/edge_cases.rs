//! The evaluator and the reference at the edges of each dtype: element-wise ops on all numbers of
//! the narrow dtypes, and on the numbers of the wider ones that are unlike their neighbors.

use nxla::graph::{
    BinaryOp, Dot, ExprId, Graph, Op, Reduce, ReduceOp, Result, ScatterOp, UnaryOp,
    WindowAttributes, WindowOp,
};
use nxla::host::Kind;
use nxla::{DType, HostTensor, Scalar, TensorType};

use crate::case::{Case, Other, accepts, differences};
use crate::tolerance::{self, EQUAL, EXACT, Tolerance};
use crate::values::host;

/// Every number of a dtype of this many bits at most.
fn all_numbers(dtype: DType, bits: u32) -> Option<HostTensor> {
    if dtype.bits() > bits || dtype.is_pred() {
        return None;
    }
    let patterns: Vec<Scalar> = (0..1_u64 << dtype.bits()).map(Scalar::UInt).collect();
    if dtype.is_integer() {
        return Some(host(dtype, [patterns.len()], &patterns));
    }
    let unsigned = if dtype.bits() == 8 { DType::U8 } else { DType::U16 };
    let patterns = host(unsigned, [patterns.len()], &patterns);
    Some(HostTensor::from_bytes(dtype, patterns.shape().clone(), patterns.bytes()).unwrap())
}

/// Numbers of any dtype around which functions change.
fn special_numbers(dtype: DType) -> HostTensor {
    let real = |dtype: DType| -> Vec<f64> {
        let (largest, normal, tiny) = match dtype {
            DType::F64 => (f64::MAX, f64::MIN_POSITIVE, 5e-324),
            DType::F32 => (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE), 1e-45),
            DType::BF16 => (3.38e38, f64::from(f32::MIN_POSITIVE), 1e-40),
            _ => (65_504.0, 6.2e-5, 6e-8),
        };
        let sizes = [0.0, tiny, normal, 1e-4, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 64.0];
        let sizes = sizes.into_iter().chain([89.5, 104.0, 710.0, 745.5, largest / 2.0, largest]);
        let all = sizes.chain([f64::INFINITY, f64::NAN]);
        all.flat_map(|size| [size, -size]).collect()
    };
    let numbers: Vec<Scalar> = match dtype.kind() {
        Kind::Pred => [0, 1].map(Scalar::UInt).into(),
        Kind::Unsigned | Kind::Signed => {
            let near = |n: Scalar| {
                let n = n.as_i128().unwrap();
                [n - 2, n - 1, n, n + 1, n + 2].map(|n| Scalar::UInt(n as u64))
            };
            let width = Scalar::UInt(dtype.bits().into());
            let around = [dtype.min_value(), dtype.max_value(), Scalar::UInt(0), width];
            let powers = [Scalar::UInt(7), Scalar::UInt(31), Scalar::UInt(1 << 31)];
            around.into_iter().chain(powers).flat_map(near).collect()
        }
        Kind::Float => real(dtype).into_iter().map(Scalar::Float).collect(),
        Kind::Complex => {
            let parts = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -40.0, 2e19, -2e19];
            let parts = parts.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
            let parts: Vec<f64> = parts.collect();
            let pairs = parts.iter().flat_map(|&re| parts.iter().map(move |&im| (re, im)));
            pairs.map(|(re, im)| Scalar::Complex(re, im)).collect()
        }
    };
    host(dtype, [numbers.len()], &numbers)
}

/// Returns the numbers along a new last or first axis, so that two tensors broadcast to all pairs.
fn broadcast_axis(x: &HostTensor, last: bool) -> HostTensor {
    let size = x.size();
    x.reshape(if last { [1, size] } else { [size, 1] }).unwrap()
}

fn difference(
    inputs: Vec<HostTensor>,
    tolerance: Tolerance,
    build: impl Fn(&mut Graph, &[ExprId]) -> Result<ExprId> + Send + Sync + 'static,
) -> Option<String> {
    let shapes: Vec<_> = inputs.iter().map(|x| x.shape().clone()).collect();
    let case = Case::new(inputs, shapes, build);
    differences(&[(&case, tolerance)], Other::Reference).unwrap().remove(0)
}

fn expect_none(found: &[String]) {
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
}

/// Every function of every number that has 16 bits, and of special ones that have more.
#[test]
fn unary_ops() {
    let mut found = Vec::new();
    for &op in UnaryOp::ALL {
        for dtype in DType::ALL.into_iter().filter(|&dtype| accepts(&Op::Unary(op), &[dtype])) {
            let x = all_numbers(dtype, 16).unwrap_or_else(|| special_numbers(dtype));
            let tolerance = tolerance::of(&Op::Unary(op), dtype).for_backend(Other::Reference);
            let what = difference(vec![x], tolerance, move |graph, x| graph.make(Op::Unary(op), x));
            found.extend(what.map(|what| format!("{} of {dtype}: {what}", op.name())));
        }
    }
    expect_none(&found);
}

/// Every pair of numbers that have 8 bits, and of special ones that have more.
#[test]
fn binary_ops() {
    let mut found = Vec::new();
    for &op in BinaryOp::ALL {
        // The angle of such complex numbers is on a branch cut, where rounding selects the side.
        let is_cut = |dtype: DType| op == BinaryOp::Atan2 && dtype.is_complex();
        let takes = |&dtype: &DType| accepts(&Op::Binary(op), &[dtype, dtype]) && !is_cut(dtype);
        for dtype in DType::ALL.into_iter().filter(takes) {
            let x = all_numbers(dtype, 8).unwrap_or_else(|| special_numbers(dtype));
            let tolerance = tolerance::of(&Op::Binary(op), dtype).for_backend(Other::Reference);
            let inputs = vec![broadcast_axis(&x, false), broadcast_axis(&x, true)];
            let what = difference(inputs, tolerance, move |graph, x| graph.make(Op::Binary(op), x));
            found.extend(what.map(|what| format!("{} of {dtype}: {what}", op.name())));
        }
    }
    expect_none(&found);
}

/// Every number of a dtype in every other one.
#[test]
fn conversions() {
    let mut found = Vec::new();
    for (from, to) in DType::ALL.into_iter().flat_map(|from| DType::ALL.map(|to| (from, to))) {
        let x = all_numbers(from, 16).unwrap_or_else(|| special_numbers(from));
        // NaN has several bit patterns, which need not be equal.
        let x = if from.is_float() { x.cast(DType::F64).cast(from) } else { x };
        for op in [Op::AsType(to), Op::Bitcast(to)] {
            if accepts(&op, &[from]) {
                let name = op.name();
                let what =
                    difference(vec![x.clone()], EXACT, move |graph, x| graph.make(op.clone(), x));
                found.extend(what.map(|what| format!("{name} of {from} to {to}: {what}")));
            }
        }
    }
    expect_none(&found);
}

/// Logarithms of other bases are quotients, which the evaluator computes in one step with them.
#[test]
fn fused_logarithms() {
    let mut found = Vec::new();
    for dtype in DType::ALL {
        let x = all_numbers(dtype, 16).unwrap_or_else(|| special_numbers(dtype));
        let tolerance = tolerance::of(&Op::Unary(UnaryOp::Log), dtype.to_floating());
        let tolerance = tolerance.for_backend(Other::Reference);
        let what = difference(vec![x.clone()], tolerance, |graph, x| graph.log10(x[0]));
        found.extend(what.map(|what| format!("log10 of {dtype}: {what}")));
        let what = difference(vec![x], tolerance, |graph, x| graph.log2(x[0]));
        found.extend(what.map(|what| format!("log2 of {dtype}: {what}")));
    }
    expect_none(&found);
}

/// Returns numbers whose sums and products reveal the rules for special values, and are exact if finite.
fn distinguishing_numbers(dtype: DType) -> Vec<Scalar> {
    match dtype.kind() {
        Kind::Pred | Kind::Unsigned | Kind::Signed => {
            vec![dtype.min_value(), dtype.max_value(), Scalar::UInt(0), Scalar::UInt(1)]
        }
        Kind::Float => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -2.0]
            .map(Scalar::Float)
            .into(),
        Kind::Complex => [(f64::NAN, 1.0), (f64::INFINITY, 0.0), (0.0, f64::NEG_INFINITY)]
            .into_iter()
            .chain([(0.0, 0.0), (1.0, -2.0)])
            .map(|(re, im)| Scalar::Complex(re, im))
            .collect(),
    }
}

/// All triples of such numbers, as rows.
fn triples(dtype: DType) -> HostTensor {
    let numbers = distinguishing_numbers(dtype);
    let count = numbers.len();
    let element = |row: usize, column: u32| numbers[row / count.pow(column) % count];
    let rows = 0..count.pow(3);
    let elements: Vec<Scalar> =
        rows.flat_map(|row| (0..3).map(move |at| element(row, at))).collect();
    host(dtype, [count.pow(3), 3], &elements)
}

/// Compares uses of ops that reduce on such numbers, for every dtype that the ops take.
fn expect_same_rules(
    name: &str,
    inputs: impl Fn(DType) -> Vec<HostTensor>,
    build: impl Fn(&mut Graph, &[ExprId]) -> Result<ExprId> + Copy + Send + Sync + 'static,
) {
    let mut found = Vec::new();
    for dtype in DType::ALL {
        let inputs = inputs(dtype);
        let mut graph = Graph::new();
        let types = inputs.iter().map(|x| TensorType::new(x.dtype(), x.shape().clone()));
        let x: Vec<ExprId> = types.enumerate().map(|(at, ty)| graph.parameter(at, ty)).collect();
        if build(&mut graph, &x).is_ok() {
            let what = difference(inputs, EQUAL.for_backend(Other::Reference), build);
            found.extend(what.map(|what| format!("{name} of {dtype}: {what}")));
        }
    }
    expect_none(&found);
}

fn row_windows(
    dimensions: [usize; 2],
    padding: [(i64, i64); 2],
    dilations: [usize; 2],
) -> WindowAttributes {
    let strides = [1, 1].into();
    let [dimensions, dilations] = [dimensions, dilations].map(Into::into);
    WindowAttributes { dimensions, strides, padding: padding.into(), dilations }
}

#[test]
fn reductions_of_special_numbers() {
    for &op in ReduceOp::ALL {
        let rows = |dtype| vec![triples(dtype)];
        expect_same_rules(op.name(), rows, move |graph, x| {
            let rows = Reduce { axes: Some([1].into()), keep_axes: false };
            graph.make(Op::Reduce(op, Box::new(rows)), x)
        });
        let columns = |dtype| vec![host(dtype, [distinguishing_numbers(dtype).len(), 0], &[])];
        expect_same_rules(op.name(), columns, move |graph, x| {
            graph.make(Op::Reduce(op, Box::new(Reduce { axes: None, keep_axes: true })), x)
        });
    }
}

#[test]
fn windows_of_special_numbers() {
    for &op in WindowOp::ALL {
        expect_same_rules(
            op.name(),
            |dtype| vec![triples(dtype)],
            move |graph, x| {
                let window = row_windows([2, 2], [(1, 0), (0, 2)], [3, 1]);
                graph.make(Op::Window(op, Box::new(window)), x)
            },
        );
    }
}

/// Equal extrema and NaN in windows of two axes, with and without dilation.
#[test]
fn scatters_of_special_numbers() {
    for (op, dilations) in
        [(ScatterOp::Max, [1, 1]), (ScatterOp::Min, [1, 1]), (ScatterOp::Max, [2, 1])]
    {
        let inputs = move |dtype: DType| {
            let x = triples(dtype);
            // One window fewer than rows for each row that the first axis of a window spans.
            let count = x.shape()[0] - dilations[0];
            let source: Vec<Scalar> =
                (0..count * 3).map(|at| Scalar::Int(at as i64 % 5 + 1)).collect();
            let source = host(DType::F32, [count, 3], &source);
            vec![x, source, host(DType::F32, [], &[Scalar::Float(0.5)])]
        };
        expect_same_rules("window scatter", inputs, move |graph, x| {
            let window = row_windows([2, 2], [(0, 0), (1, 0)], dilations);
            graph.make(Op::WindowScatter(op, Box::new(window)), x)
        });
    }
}

/// Products of all pairs of rows, whose sums combine zeros, infinities and NaN. Complex numbers are
/// excluded, because the order of additions decides whether a part of a sum is NaN or infinite.
#[test]
fn contractions_of_special_numbers() {
    let rows =
        |dtype: DType| vec![triples(if dtype.is_complex() { dtype.to_real() } else { dtype })];
    expect_same_rules("dot", rows, |graph, x| {
        let [left_contract, right_contract] = [[1].into(), [1].into()];
        let [left_batch, right_batch] = [[].into(), [].into()];
        let dot = Dot { left_contract, left_batch, right_contract, right_batch };
        graph.make(Op::Dot(Box::new(dot)), &[x[0], x[0]])
    });
}

/// The last update of an index wins, and additions accumulate.
#[test]
fn repeated_updates_of_one_index() {
    let inputs = |dtype: DType| {
        let updates = triples(dtype);
        let indices = (0..updates.shape()[0]).map(|at| Scalar::Int(at as i64 % 7 - 1));
        let indices = host(DType::S16, [updates.shape()[0], 1], &indices.collect::<Vec<_>>());
        let x = host(dtype, [5, 3], &vec![Scalar::UInt(1); 15]);
        vec![x, indices, updates]
    };
    expect_same_rules("indexed_put", inputs, |graph, x| graph.indexed_put(x[0], x[1], x[2], None));
    expect_same_rules("indexed_add", inputs, |graph, x| graph.indexed_add(x[0], x[1], x[2], None));
}
