//! The evaluator and XLA give the same results.
//!
//! For each dtype one program applies every element-wise op of the table to samples from its
//! domain, and further programs apply every structured op; both compilers run them. A new row of
//! the table is compared without writing a test. Integers and truth values must be equal, floats
//! within a tolerance of their dtype: each engine rounds once per operation, but their
//! elementary functions are not the same.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::Arc;

use nxla::graph::build::{Cumulative, SliceStart, WindowOptions, WindowPadding};
use nxla::graph::{
    BinaryOp, ExprId, Graph, Op, Padding, ReduceOp, Transform, TriangularSolve, UnaryOp, WindowOp,
};
use nxla::{
    DType, HostTensor, Options, Program, RunContext, Scalar, Shape, Tensor, TensorType,
    compile_program,
};

/// Allowed difference, relative to the larger of 1 and the value.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 | DType::C128 => 1e-9,
        DType::F32 | DType::C64 => 3e-5,
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F8E4M3FN => 0.15,
        DType::F8E5M2 => 0.3,
        _ => 0.0,
    }
}

/// A program under construction with its inputs.
#[derive(Default)]
struct Case {
    graph: Graph,
    types: Vec<TensorType>,
    inputs: Vec<Tensor>,
    outputs: Vec<(String, ExprId)>,
}

impl Case {
    /// An input with these numbers, as far as the dtype holds them.
    fn input(&mut self, dtype: DType, shape: &[usize], numbers: &[f64]) -> ExprId {
        let mut tensor = HostTensor::zeros(dtype, Shape::from(shape)).unwrap();
        nxla::host::match_dtype!(dtype, T => {
            for (element, &number) in tensor.make_mut::<T>().unwrap().iter_mut().zip(numbers) {
                let scalar = Scalar::Float(number).cast(dtype);
                *element = <T as nxla::host::Element>::from_scalar(scalar);
            }
        });
        let ty = TensorType::new(dtype, shape);
        let id = self.graph.parameter(self.types.len(), ty.clone());
        self.types.push(ty);
        self.inputs.push(Tensor::Host(tensor));
        id
    }

    /// A result to compare; an op that refuses the dtype gives none.
    fn output(&mut self, name: &str, built: nxla::graph::Result<ExprId>) {
        if let Ok(id) = built {
            self.outputs.push((name.into(), id));
        }
    }

    fn run(&self, program: &Arc<Program>, compiler: &str) -> Vec<HostTensor> {
        let options = Options::new().compiler(compiler);
        let executable = compile_program(program, &options, &[]).unwrap_or_else(|error| {
            panic!("{compiler} cannot compile {:?}: {error}", self.names())
        });
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        let results = executable.run(&inputs, &RunContext::default()).unwrap();
        results.iter().map(|result| result.to_host().unwrap()).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.outputs.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Compares both compilers; gives what differs.
    fn differences(&self) -> Vec<String> {
        let outputs: Vec<ExprId> = self.outputs.iter().map(|(_, id)| *id).collect();
        assert!(!outputs.is_empty(), "nothing to compare");
        let program = Arc::new(Program::new(&self.graph, self.types.clone(), &outputs).unwrap());
        let (ours, theirs) = (self.run(&program, "evaluator"), self.run(&program, "xla"));
        let pairs = ours.iter().zip(&theirs).zip(&self.outputs);
        pairs.filter_map(|((ours, theirs), (name, _))| difference(name, ours, theirs)).collect()
    }

    fn check(&self) {
        let found = self.differences();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

fn difference(name: &str, ours: &HostTensor, theirs: &HostTensor) -> Option<String> {
    assert_eq!((ours.dtype(), ours.shape()), (theirs.dtype(), theirs.shape()), "{name}");
    let allowed = tolerance(ours.dtype());
    for index in 0..ours.size() {
        let (x, y) = (ours.get(index), theirs.get(index));
        let ((a, b), (c, d)) = (x.parts(), y.parts());
        let near = |a: f64, c: f64| {
            a == c || (a.is_nan() && c.is_nan()) || (a - c).abs() <= allowed * c.abs().max(1.0)
        };
        if x != y && !(near(a, c) && near(b, d)) {
            let dtype = ours.dtype();
            return Some(format!("{name} ({dtype}), element {index}: evaluator {x}, XLA {y}"));
        }
    }
    None
}

/// Evenly spaced numbers of an interval.
fn spaced((low, high): (f64, f64), count: usize) -> Vec<f64> {
    let step = (high - low) / (count - 1) as f64;
    (0..count).map(|index| low + step * index as f64).collect()
}

const SAMPLES: usize = 12;

#[test]
fn unary_ops_of_every_dtype() {
    for &dtype in &DType::ALL {
        let mut case = Case::default();
        for &op in UnaryOp::ALL {
            let (low, high) = op.domain();
            let domain =
                if dtype.is_float() { (low, high) } else { (low.max(0.0).ceil(), high.ceil()) };
            let x = case.input(dtype, &[SAMPLES], &spaced(domain, SAMPLES));
            let built = case.graph.make(Op::Unary(op), &[x]);
            case.output(op.name(), built);
        }
        case.check();
    }
}

#[test]
fn binary_ops_of_every_dtype() {
    let left = [1.0, 2.0, 3.0, 0.0, 1.5, 2.5, 1.0, 3.0, 2.0, 1.0, 0.5, 3.0];
    let right = [1.0, 1.0, 2.0, 3.0, 0.5, 2.0, 3.0, 3.0, 1.0, 2.0, 1.5, 2.0];
    for &dtype in &DType::ALL {
        let mut case = Case::default();
        let x = case.input(dtype, &[SAMPLES], &left);
        let y = case.input(dtype, &[SAMPLES], &right);
        for &op in BinaryOp::ALL {
            let built = case.graph.make(Op::Binary(op), &[x, y]);
            case.output(op.name(), built);
        }
        case.check();
    }
}

#[test]
fn special_values() {
    for dtype in [DType::F32, DType::F64] {
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0];
        let mut case = Case::default();
        let x = case.input(dtype, &[6], &special);
        let y = case.input(dtype, &[6, 1], &special);
        let ops = [
            BinaryOp::Add,
            BinaryOp::Multiply,
            BinaryOp::Divide,
            BinaryOp::Max,
            BinaryOp::Min,
            BinaryOp::Equal,
            BinaryOp::Less,
            BinaryOp::LogicalAnd,
        ];
        for op in ops {
            let built = case.graph.make(Op::Binary(op), &[x, y]);
            case.output(op.name(), built);
        }
        for op in [UnaryOp::IsNan, UnaryOp::IsInfinity, UnaryOp::Sqrt, UnaryOp::Exp, UnaryOp::Tanh]
        {
            let built = case.graph.make(Op::Unary(op), &[x]);
            case.output(op.name(), built);
        }
        case.check();
    }
}

#[test]
fn conversions_between_all_dtypes() {
    let numbers = [0.0, 1.0, 1.0, 0.0, 1.0];
    for &from in &DType::ALL {
        let mut case = Case::default();
        let x = case.input(from, &[5], &numbers);
        for &to in &DType::ALL {
            let built = case.graph.as_type(x, to);
            case.output(&format!("{from} to {to}"), built);
        }
        case.check();
    }
}

#[test]
fn reductions_and_windows() {
    for dtype in [DType::F32, DType::F64, DType::S32, DType::U8, DType::BF16] {
        let mut case = Case::default();
        let numbers: Vec<f64> = (0..24).map(|n| f64::from(n % 7) + 1.0).collect();
        let x = case.input(dtype, &[2, 3, 4], &numbers);
        for &op in ReduceOp::ALL {
            for axes in [None, Some(&[1][..]), Some(&[-1, 0])] {
                let built = case.graph.reduction(op, x, axes, axes.is_some());
                case.output(&format!("{} over {axes:?}", op.name()), built);
            }
        }
        for tie_high in [false, true] {
            let built = case.graph.argmax(x, Some(1), false, tie_high, DType::S32);
            case.output("argmax", built);
            let built = case.graph.argmin(x, None, false, tie_high, DType::S64);
            case.output("argmin", built);
        }
        let options = WindowOptions {
            strides: Some(vec![1, 2, 1]),
            padding: WindowPadding::Same,
            dilations: Some(vec![1, 1, 2]),
        };
        for &op in WindowOp::ALL {
            let built = case.graph.window_reduction(op, x, &[1, 2, 2], &options);
            case.output(op.name(), built);
        }
        for op in [Cumulative::Sum, Cumulative::Max] {
            let built = case.graph.cumulative(op, x, 1, true);
            case.output("cumulative", built);
        }
        case.check();
    }
}

#[test]
fn movements() {
    for dtype in [DType::F32, DType::S8, DType::Pred, DType::C64, DType::U4] {
        let mut case = Case::default();
        let numbers: Vec<f64> = (0..6).map(|n| f64::from(n % 4)).collect();
        let x = case.input(dtype, &[2, 3], &numbers);
        let graph = &mut case.graph;
        let zero = graph.zero_like(x).unwrap();
        let padding =
            [Padding { low: 1, high: -1, interior: 1 }, Padding { low: -1, high: 2, interior: 0 }];
        let built = [
            ("reshape", graph.reshape(x, [3, 2])),
            ("transpose", graph.transpose(x, None)),
            ("reverse", graph.reverse(x, Some(&[1]))),
            ("broadcast", graph.broadcast(x, [2, 2, 3], None)),
            ("pad", graph.pad(x, zero, &padding)),
            ("concatenate", graph.concatenate(&[x, x], 1)),
            ("stack", graph.stack(&[x, x], 1, None)),
            ("tile", graph.tile(x, &[2, 2])),
            ("tril", graph.tril(x, 0)),
        ];
        for (name, built) in built {
            case.output(name, built);
        }
        case.check();
    }
}

#[test]
fn products_and_indexing() {
    for dtype in [DType::F32, DType::F64, DType::S32, DType::BF16] {
        let mut case = Case::default();
        let numbers: Vec<f64> = (0..12).map(|n| f64::from(n % 5) - 1.0).collect();
        let x = case.input(dtype, &[3, 4], &numbers);
        let y = case.input(dtype, &[4, 3], &numbers);
        let indices = case.input(DType::S32, &[2, 1], &[2.0, 0.0]);
        let updates = case.input(dtype, &[2, 4], &numbers[..8]);
        let start = case.input(DType::S32, &[], &[5.0]);
        let graph = &mut case.graph;
        let starts = [SliceStart::from(start), SliceStart::from(1)];
        let small = graph.slice(x, &[0.into(), 0.into()], &[2, 2], None).unwrap();
        let built = [
            ("dot", graph.dot(x, y)),
            ("dot over both axes", graph.dot_general(x, &[0, 1], &[], y, &[1, 0], &[])),
            ("outer", graph.outer(x, y)),
            ("slice", graph.slice(x, &starts, &[2, 3], Some(&[1, 2]))),
            ("put_slice", graph.put_slice(x, &starts, small)),
            ("gather", graph.gather(x, indices, None)),
            ("indexed_add", graph.indexed_add(x, indices, updates, None)),
            ("indexed_put", graph.indexed_put(x, indices, updates, None)),
            ("take", graph.take(x, indices, 1)),
            ("sort", graph.sort(x, 1, true, true)),
            ("argsort", graph.argsort(x, 0, false, true, DType::S32)),
            ("top_k", graph.top_k(x, 2).map(|(values, _)| values)),
        ];
        for (name, built) in built {
            case.output(name, built);
        }
        case.check();
    }
}

#[test]
fn linear_algebra() {
    for dtype in [DType::F32, DType::F64] {
        let mut case = Case::default();
        let a = case.input(dtype, &[3, 3], &[6.0, 3.0, 4.0, 3.0, 6.0, 5.0, 4.0, 5.0, 10.0]);
        let b = case.input(dtype, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let graph = &mut case.graph;
        let transposed =
            TriangularSolve { lower: true, left_side: true, transform: Transform::Transpose };
        let upper = TriangularSolve { lower: false, left_side: true, transform: Transform::None };
        let built = [
            ("cholesky", graph.cholesky(a)),
            ("triangular_solve", graph.triangular_solve(a, b, transposed)),
            ("triangular_solve upper", graph.triangular_solve(a, b, upper)),
            ("fft", graph.fft(a, Some(5), 0)),
            ("ifft", graph.ifft(a, None, 1)),
            ("rfft", graph.rfft(a, None, -1)),
        ];
        for (name, built) in built {
            case.output(name, built);
        }
        case.check();
    }
}

#[test]
fn nothing_and_one_of_everything() {
    for shape in [&[0, 3][..], &[1, 1], &[]] {
        let mut case = Case::default();
        let size: usize = shape.iter().product();
        let x = case.input(DType::F32, shape, &vec![0.5; size]);
        for &op in UnaryOp::ALL {
            let built = case.graph.make(Op::Unary(op), &[x]);
            case.output(op.name(), built);
        }
        for &op in BinaryOp::ALL {
            let built = case.graph.make(Op::Binary(op), &[x, x]);
            case.output(op.name(), built);
        }
        for &op in [ReduceOp::Sum, ReduceOp::Product, ReduceOp::All, ReduceOp::Any].iter() {
            let built = case.graph.reduction(op, x, None, false);
            case.output(op.name(), built);
        }
        case.check();
    }
}
