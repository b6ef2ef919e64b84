//! Linear algebra, sorts and scans on XLA: by kernels of the evaluator, and by operations of XLA.
//!
//! Signs, phases and the vectors of repeated values may differ between backends, so the tests compare
//! quantities that do not depend on them.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../crates/nxla/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::{has_plugin, require_plugin};
use nxla::graph::build::{Cumulative, Draw, FftNorm, Norm};
use nxla::graph::{ExprId, Graph, Result};
use nxla::runtime::RawTensor;
use nxla::{
    DType, Error, HostTensor, Options, Program, RunContext, Setting, Shape, TensorType,
    compile_program,
};

/// The compilers under test.
fn backends() -> Vec<(&'static str, Options)> {
    let mut backends = vec![("evaluator", Options::new().compiler("evaluator"))];
    if has_plugin() {
        let composed = Options::new().compiler("xla").set("kernels", false);
        backends.extend([("kernels", Options::new().compiler("xla")), ("composed", composed)]);
    }
    backends
}

fn run(program: &Arc<Program>, inputs: &[RawTensor], options: &Options) -> Vec<HostTensor> {
    let executable = compile_program(program, options, &[]).unwrap();
    let inputs: Vec<&RawTensor> = inputs.iter().collect();
    let results = executable.run(&inputs, &RunContext::default()).unwrap();
    results.iter().map(|result| result.to_host().unwrap()).collect()
}

/// Unordered numbers between -1 and 1.
fn samples(dtype: DType, shape: &[usize]) -> HostTensor {
    let size: usize = shape.iter().product();
    let noise = |index: usize| ((index as f64 + 1.0).sin() * 43_758.545_3).fract();
    let numbers: Vec<f64> = (0..size).map(noise).collect();
    HostTensor::from_slice(&numbers, Shape::from(shape)).unwrap().cast(dtype)
}

/// Compares the results of all backends for functions of one matrix with the evaluator's results.
fn compare(
    dtype: DType,
    shape: &[usize],
    build: impl Fn(&mut Graph, ExprId) -> Result<Vec<ExprId>>,
) {
    let mut graph = Graph::new();
    let real = if dtype.is_complex() { dtype.to_real() } else { dtype };
    let ty = TensorType::new(real, shape);
    let (x, y) = (graph.parameter(0, ty.clone()), graph.parameter(1, ty.clone()));
    let mut a = x;
    if dtype.is_complex() {
        let i = graph.scalar_constant(nxla::Scalar::Complex(0.0, 1.0), dtype).unwrap();
        let imaginary = graph.multiply(i, y).unwrap();
        a = graph.add(x, imaginary).unwrap();
    }
    let outputs = build(&mut graph, a).unwrap();
    let program = Arc::new(Program::new(&graph, vec![ty.clone(), ty], &outputs).unwrap());
    let shifted = samples(DType::F64, &[shape.iter().product::<usize>() + 5]);
    let shifted = shifted.to_vec::<f64>().unwrap().split_off(5);
    let y = HostTensor::from_slice(&shifted, Shape::from(shape)).unwrap().cast(real);
    let inputs = [RawTensor::Host(samples(real, shape)), RawTensor::Host(y)];
    let allowed = if matches!(dtype, DType::F64 | DType::C128) { 1e-9 } else { 3e-4 };
    let backends = backends();
    let expected = run(&program, &inputs, &backends[0].1);
    for (backend, options) in &backends[1..] {
        let found = run(&program, &inputs, options);
        for (output, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()));
            for index in 0..found.size() {
                let ((a, b), (c, d)) = (found.get(index).parts(), expected.get(index).parts());
                let near = |a: f64, c: f64| (a - c).abs() <= allowed * c.abs().max(1.0);
                assert!(
                    near(a, c) && near(b, d),
                    "{backend} {dtype}{shape:?}, output {output}, element {index}: {a}, expected {c}"
                );
            }
        }
    }
}

const DTYPES: [DType; 2] = [DType::F32, DType::C128];

#[test]
fn factorizations() {
    for dtype in DTYPES {
        for shape in [&[3, 3][..], &[2, 4, 4]] {
            compare(dtype, shape, |graph, a| {
                let (p, l, u) = graph.lu(a)?;
                let adjoint = graph.adjoint(a)?;
                let hermitian = graph.add(a, adjoint)?;
                let (w, v) = graph.eigh(hermitian)?;
                Ok(vec![p, l, u, w, graph.abs(v)?])
            });
        }
        for shape in [&[3, 3][..], &[5, 3], &[2, 3, 4]] {
            compare(dtype, shape, |graph, a| {
                let (q, r) = graph.qr(a, false)?;
                let (_, complete) = graph.qr(a, true)?;
                let (u, s, vh) = graph.svd(a, false)?;
                let (_, all, _) = graph.svd(a, true)?;
                Ok(vec![q, r, complete, graph.abs(u)?, s, graph.abs(vh)?, all])
            });
        }
    }
}

#[test]
fn half_floats_and_integers() {
    for dtype in [DType::BF16, DType::F16, DType::S32] {
        let mut graph = Graph::new();
        let ty = TensorType::new(dtype, [2, 2]);
        let a = graph.parameter(0, ty.clone());
        let (q, r) = graph.qr(a, false).unwrap();
        let program = Arc::new(Program::new(&graph, vec![ty], &[q, r]).unwrap());
        let a = HostTensor::from_slice(&[3_i32, 0, 4, 5], [2, 2]).unwrap().cast(dtype);
        for (backend, options) in backends() {
            let [q, r] = &run(&program, &[RawTensor::Host(a.clone())], &options)[..] else {
                panic!("two parts")
            };
            assert_eq!(q.dtype(), dtype.to_floating(), "{backend}");
            let r = r.cast(DType::F32).to_vec::<f32>().unwrap();
            assert_eq!(r[2], 0.0, "{backend}");
            for (found, expected) in r.iter().zip([5.0, 4.0, 0.0, 3.0]) {
                assert!((found - expected).abs() < 0.05, "{backend} {dtype}: {r:?}");
            }
        }
    }
}

#[test]
fn functions_using_factorizations() {
    for dtype in DTYPES {
        compare(dtype, &[2, 4, 4], |graph, a| {
            let (sign, logarithm) = graph.slogdet(a)?;
            Ok(vec![
                graph.solve(a, a)?,
                graph.invert(a)?,
                graph.determinant(a)?,
                sign,
                logarithm,
                graph.matrix_power(a, -3)?,
                graph.matrix_power(a, 0)?,
                graph.matrix_rank(a, None)?,
                graph.norm(a, Norm::Power(2.0), Some(&[0, 2]), false)?,
                graph.norm(a, Norm::Nuclear, Some(&[1, 2]), true)?,
            ])
        });
        compare(dtype, &[2, 4, 3], |graph, a| {
            Ok(vec![graph.pinv(a, None)?, graph.least_squares(a, a, None)?])
        });
    }
}

#[test]
fn singular_matrices() {
    let mut graph = Graph::new();
    let ty = TensorType::new(DType::F32, [4, 4]);
    let a = graph.parameter(0, ty.clone());
    let (sign, logarithm) = graph.slogdet(a).unwrap();
    let outputs = [
        graph.determinant(a).unwrap(),
        sign,
        logarithm,
        graph.matrix_rank(a, None).unwrap(),
        graph.invert(a).unwrap(),
    ];
    let program = Arc::new(Program::new(&graph, vec![ty], &outputs).unwrap());
    let inputs = [RawTensor::Host(HostTensor::zeros(DType::F32, [4, 4]).unwrap())];
    for (backend, options) in backends() {
        let results = run(&program, &inputs, &options);
        let numbers: Vec<f64> = results[..4].iter().map(|x| x.get(0).as_f64()).collect();
        assert_eq!(numbers, [0.0, 0.0, f64::NEG_INFINITY, 0.0], "{backend}");
        let inverse = results[4].to_vec::<f32>().unwrap();
        assert!(inverse.iter().all(|x| x.is_nan()), "{backend}");
    }
}

#[test]
fn kernels_inside_and_outside_of_blocks() {
    // The program calls the same kernel inside and outside of a region. The kernel's operand is a
    // transposed matrix, for which XLA prefers another layout.
    compare(DType::F64, &[3, 4], |graph, a| {
        let transposed = graph.transpose(a, Some(&[1, 0]))?;
        let (q, r) = graph.qr(transposed, false)?;
        let block = graph.block("inner", Vec::new(), &[transposed], |graph, inputs| {
            let (q, r) = graph.qr(inputs[0], false)?;
            let transposed_r = graph.transpose(r, Some(&[1, 0]))?;
            Ok::<_, nxla::graph::Error>(vec![q, transposed_r])
        })?;
        Ok(vec![q, r, block[0], block[1]])
    });
}

#[test]
fn sorts_and_scans() {
    // Enough elements, so that XLA calls the kernels.
    for dtype in [DType::F32, DType::F64] {
        compare(dtype, &[3, 700], |graph, x| {
            let (largest, indices) = graph.top_k(x, 5)?;
            Ok(vec![
                graph.sort(x, 1, true, false)?,
                graph.sort(x, 0, false, true)?,
                graph.argsort(x, 1, false, true, DType::S32)?,
                graph.cumulative(Cumulative::Sum, x, 1, false)?,
                graph.cumulative(Cumulative::Max, x, 0, true)?,
                largest,
                indices,
            ])
        });
    }
}

#[test]
fn fourier_transforms() {
    for dtype in DTYPES {
        compare(dtype, &[3, 5, 4], |graph, x| {
            let size = graph.real(x)?;
            Ok(vec![
                graph.fftn(x, None, None, FftNorm::Backward)?,
                graph.ifftn(x, Some(&[2, 8]), Some(&[0, 2]), FftNorm::Backward)?,
                graph.rfftn(size, Some(&[7, 6]), None, FftNorm::Backward)?,
                graph.irfftn(x, None, Some(&[0, 1]), FftNorm::Backward)?,
                graph.irfft(x, Some(5), 1, FftNorm::Backward)?,
            ])
        });
    }
}

#[test]
fn random_numbers() {
    require_plugin!();
    let mut graph = Graph::new();
    let ty = TensorType::new(DType::U32, [2]);
    let key = graph.parameter(0, ty.clone());
    let mut outputs = vec![graph.random_split(key, 3).unwrap()];
    for dtype in [DType::BF16, DType::F16, DType::F32, DType::F64, DType::C64] {
        let number = |graph: &mut Graph, x| graph.number(nxla::Number::Float(x)).unwrap();
        let (zero, one) = (number(&mut graph, 0.0), number(&mut graph, 1.0));
        let draw = Draw { shape: [3, 5].into(), dtype: Some(dtype), names: None };
        outputs.push(graph.random_uniform(key, zero, one, &draw).unwrap());
        outputs.push(graph.random_normal(key, zero, one, &draw).unwrap());
    }
    for dtype in [DType::U8, DType::S16, DType::S32, DType::U64] {
        let number = |graph: &mut Graph, x| graph.number(nxla::Number::Int(x)).unwrap();
        let (low, high) = (number(&mut graph, 3), number(&mut graph, 100));
        let draw = Draw { shape: [7].into(), dtype: Some(dtype), names: None };
        outputs.push(graph.random_integers(key, low, high, &draw).unwrap());
    }
    let x = graph.iota([6, 2], None, DType::S32).unwrap();
    outputs.push(graph.random_shuffle(key, x, 0, true).unwrap().0);
    let program = Arc::new(Program::new(&graph, vec![ty], &outputs).unwrap());
    let key = HostTensor::from_slice(&[7_u32, 11], [2]).unwrap();
    let inputs = [RawTensor::Host(key)];
    let [ours, theirs] = ["evaluator", "xla"]
        .map(|compiler| run(&program, &inputs, &Options::new().compiler(compiler)));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let allowed = match ours.dtype() {
            DType::BF16 | DType::F16 => 2e-2,
            dtype if dtype.is_integer() => 0.0,
            _ => 1e-5,
        };
        for index in 0..ours.size() {
            let ((a, b), (c, d)) = (ours.get(index).parts(), theirs.get(index).parts());
            let near = (a - c).abs() <= allowed && (b - d).abs() <= allowed;
            assert!(near, "{}, element {index}: {a} {b}, XLA {c} {d}", ours.dtype());
        }
    }
}

#[test]
fn kernels_setting_must_be_boolean() {
    require_plugin!();
    let mut graph = Graph::new();
    let ty = TensorType::new(DType::F32, [2, 2]);
    let a = graph.parameter(0, ty.clone());
    let (q, _) = graph.qr(a, false).unwrap();
    let program = Arc::new(Program::new(&graph, vec![ty], &[q]).unwrap());
    let options = Options::new().compiler("xla").set("kernels", Setting::Int(1));
    let Err(Error::Options(why)) = compile_program(&program, &options, &[]) else {
        panic!("1 is not a boolean")
    };
    assert_eq!(why, "option \"kernels\" of the compiler \"xla\": must be a bool; got 1");
}
