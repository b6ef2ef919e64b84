//! Programs for which a plugin once wrote outside its buffers.
//!
//! The fault was in the code for pads along the first axis, and in functions with such a pad:
//! concatenations with zeros, and cumulative functions from the end. It occurred for some row widths
//! and elements of eight bytes, as wrong numbers or as heap corruption. Therefore each of these
//! functions runs on matrices with 2 to 16 columns, and its results are compared.
//!
//! `make test-heap` runs them a thousand times on `f64` and a hundred times on the other dtypes, with
//! every allocation checked by the C library, and the parity suite under the same checks.
//! `NXLA_HEAP_ROUNDS` is how often a program runs.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../crates/nxla/tests/common/mod.rs"]
mod common;

use std::env;
use std::ops::RangeInclusive;
use std::sync::Arc;

use common::has_plugin;
use nxla::graph::build::Cumulative;
use nxla::graph::{ExprId, Graph, Padding, Result};
use nxla::pjrt::Activity;
use nxla::runtime::RawTensor;
use nxla::{
    DType, HostTensor, Options, Program, RunContext, Scalar, Shape, TensorType, compile_program,
};

const ROWS: [usize; 4] = [16, 32, 64, 128];

const COLUMNS: RangeInclusive<usize> = 2..=16;

type Build = fn(&mut Graph, ExprId) -> Result<ExprId>;

/// The functions, by name.
const FUNCTIONS: [(&str, Build); 6] = [
    ("pad after the last row", |graph, x| pad(graph, x, 0, 1)),
    ("pad before the first row", |graph, x| pad(graph, x, 1, 0)),
    ("join with zeros below", |graph, x| join(graph, x, false)),
    ("join with zeros above", |graph, x| join(graph, x, true)),
    ("sums from the last row", |graph, x| graph.cumulative(Cumulative::Sum, x, 0, true)),
    ("maxima from the last row", |graph, x| graph.cumulative(Cumulative::Max, x, 0, true)),
];

fn pad(graph: &mut Graph, x: ExprId, low: i64, high: i64) -> Result<ExprId> {
    let zero = graph.scalar_constant(Scalar::UInt(0), graph.dtype(x))?;
    let rows = Padding { low, high, interior: 0 };
    graph.pad(x, zero, &[rows, Padding { low: 0, high: 0, interior: 0 }])
}

fn join(graph: &mut Graph, x: ExprId, above: bool) -> Result<ExprId> {
    let ty = TensorType::new(graph.dtype(x), [1, graph.shape(x)[1]]);
    let zeros = graph.constant(Scalar::UInt(0), ty)?;
    graph.concatenate(&if above { [zeros, x] } else { [x, zeros] }, 0)
}

/// Zeros and a few ones, so that every dtype represents their sums.
fn matrix(dtype: DType, rows: usize, columns: usize) -> HostTensor {
    let numbers: Vec<f64> = (0..rows * columns).map(|n| f64::from(u8::from(n % 41 == 3))).collect();
    HostTensor::from_slice(&numbers, Shape::from([rows, columns])).unwrap().cast(dtype)
}

/// Builds a program that applies the same function to each matrix of `inputs`.
fn program(inputs: &[HostTensor], build: Build) -> Arc<Program> {
    let mut graph = Graph::new();
    let types: Vec<TensorType> =
        inputs.iter().map(|x| TensorType::new(x.dtype(), x.shape().clone())).collect();
    let outputs: Vec<ExprId> = (types.iter().enumerate())
        .map(|(index, ty)| {
            let x = graph.parameter(index, ty.clone());
            build(&mut graph, x).unwrap()
        })
        .collect();
    Arc::new(Program::new(&graph, types, &outputs).unwrap())
}

fn bytes(results: &[RawTensor]) -> Vec<Vec<u8>> {
    results.iter().map(|tensor| tensor.to_host().unwrap().bytes().to_vec()).collect()
}

/// Runs a function on XLA and on `auto` the given number of times, and compares each result with
/// the evaluator's result.
fn check(name: &str, build: Build, inputs: Vec<HostTensor>, rounds: usize) {
    let program = program(&inputs, build);
    let inputs: Vec<RawTensor> = inputs.into_iter().map(RawTensor::Host).collect();
    let inputs: Vec<&RawTensor> = inputs.iter().collect();
    let compiled =
        |name: &str| compile_program(&program, &Options::new().compiler(name), &[]).unwrap();
    let expected = bytes(&compiled("evaluator").run(&inputs, &RunContext::default()).unwrap());
    let compilers: &[&str] = if has_plugin() { &["xla", "auto"] } else { &["auto"] };
    for &compiler in compilers {
        let compiled = compiled(compiler);
        let before = Activity::so_far().started;
        for round in 0..rounds {
            let found = bytes(&compiled.run(&inputs, &RunContext::default()).unwrap());
            let wrong = expected.iter().zip(&found).position(|(expected, found)| expected != found);
            if let Some(at) = wrong {
                panic!("{name} of {} differs in round {round} on {compiler}", program.inputs()[at]);
            }
        }
        let started = Activity::so_far().started - before;
        assert!(compiler != "xla" || started >= rounds as u64, "{started} runs on XLA");
    }
}

fn rounds() -> usize {
    env::var("NXLA_HEAP_ROUNDS").map_or(3, |text| text.parse().expect("a number of rounds"))
}

/// Matrices of a dtype, of every height and width.
fn matrices(dtype: DType) -> Vec<HostTensor> {
    let widths = |rows| COLUMNS.map(move |columns| matrix(dtype, rows, columns));
    ROWS.into_iter().flat_map(widths).collect()
}

/// The functions that support a dtype; for example, complex numbers have no maximum.
fn functions(dtype: DType) -> impl Iterator<Item = (&'static str, Build)> {
    let takes =
        move |&(name, _): &(&str, Build)| !(dtype.is_complex() && name.starts_with("maxima"));
    FUNCTIONS.into_iter().filter(takes)
}

/// Runs one program per function, with all matrices of a dtype.
fn check_dtype(dtype: DType, rounds: usize) {
    for (name, build) in functions(dtype) {
        check(name, build, matrices(dtype), rounds);
    }
}

#[test]
fn f64_matrices() {
    check_dtype(DType::F64, rounds());
}

/// Runs a tenth of the rounds, because thousands of kernels are slow.
#[test]
#[ignore = "compiles thousands of kernels; part of `make test-heap`"]
fn matrices_of_other_dtypes() {
    for dtype in DType::ALL.into_iter().filter(|&dtype| dtype != DType::F64) {
        check_dtype(dtype, rounds().div_ceil(10));
    }
}

#[test]
#[ignore = "compiles hundreds of programs; part of `make test-heap`"]
fn single_matrices_in_separate_programs() {
    for (name, build) in functions(DType::F64) {
        for matrix in matrices(DType::F64) {
            check(name, build, vec![matrix], rounds());
        }
    }
}
