//! Stages on the evaluator return the same bits as the whole program, for every position of a cut.

use std::sync::Arc;

use nxla::graph::{BinaryOp, ExprId, Graph, Metadata, ReduceOp, Result, UnaryOp};
use nxla::split::{Decision, split};
use nxla::{DType, Number, Options, Program, TensorType, runtime};

const DECISIONS: [Decision; 3] = [Decision::Before, Decision::After, Decision::Both];

/// Finite elements, including both zeros if the dtype has them.
fn finite(dtype: DType) -> runtime::RawTensor {
    with_first_elements(dtype, &[0.0, -0.0])
}

/// Elements that include zeros, infinities and NaN if the dtype has them.
fn elements(dtype: DType) -> runtime::RawTensor {
    with_first_elements(dtype, &[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN])
}

/// Elements that begin with `special`, unless they are integers.
fn with_first_elements(dtype: DType, special: &[f64]) -> runtime::RawTensor {
    let mut numbers: Vec<f64> = (0..40).map(|i| f64::from(i * i % 23) * 0.37 - 4.0).collect();
    if !dtype.is_integer() {
        numbers[..special.len()].copy_from_slice(special);
    }
    let host = nxla::HostTensor::from_vec(numbers, [5, 8]).unwrap();
    runtime::RawTensor::from(host.cast(dtype))
}

/// Returns the program of the result of `build` for one input, or `None` if an op does not accept
/// the dtype.
fn program(
    dtype: DType,
    build: &dyn Fn(&mut Graph, ExprId) -> Result<Vec<ExprId>>,
) -> Option<Arc<Program>> {
    let ty = TensorType::new(dtype, [5, 8]);
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty.clone());
    let outputs = build(&mut graph, x).ok()?;
    Some(Arc::new(Program::new(&graph, vec![ty], &outputs).unwrap()))
}

fn bits(results: &[runtime::RawTensor]) -> Vec<(DType, Vec<u8>)> {
    let bits = |result: &runtime::RawTensor| {
        let host = result.to_host().unwrap();
        (host.dtype(), host.bytes().to_vec())
    };
    results.iter().map(bits).collect()
}

/// Cuts a program at every node by each decision, and at single nodes.
fn check(name: &str, program: &Arc<Program>, dtype: DType) {
    check_on(name, program, &elements(dtype));
}

/// Does the same as [`check`], with these elements.
fn check_on(name: &str, program: &Arc<Program>, x: &runtime::RawTensor) {
    let (options, dtype) = (Options::new().compiler("evaluator"), program.inputs()[0].dtype);
    let whole = runtime::run_program("whole", program, &options, &[x], None);
    let Ok(whole) = whole else { return };
    let expected = bits(&whole);
    let mut nodes = 0;
    split(program, |_| {
        nodes += 1;
        Decision::None
    })
    .unwrap();
    let run = |decide: &dyn Fn(usize) -> Decision| {
        let mut at = 0;
        let cut = split(program, |_| {
            at += 1;
            decide(at - 1)
        });
        let stages = runtime::StageRunner::new(cut.unwrap(), &options);
        let results = stages.run_leaves(vec![x.clone()], None, None).unwrap();
        assert_eq!(bits(&results), expected, "{name} of {dtype}:\n{program}");
    };
    for decision in DECISIONS {
        run(&|_| decision);
        for node in 0..nodes {
            run(&|at| if at == node { decision } else { Decision::None });
        }
    }
}

fn number(graph: &mut Graph, value: f64, x: ExprId) -> Result<ExprId> {
    let number = if graph.tensor_type(x).dtype.is_integer() {
        Number::Int(value as i128)
    } else {
        Number::Float(value)
    };
    graph.weak_number(number, x)
}

#[test]
fn stages_of_unary_ops_keep_every_bit() {
    for &op in UnaryOp::ALL {
        for dtype in [DType::F32, DType::BF16, DType::S32, DType::C64] {
            let build = |graph: &mut Graph, x: ExprId| {
                let y = graph.unary(op, x)?;
                Ok(vec![graph.unary(op, y).unwrap_or(y), y])
            };
            if let Some(program) = program(dtype, &build) {
                check(op.name(), &program, dtype);
            }
        }
    }
}

#[test]
fn stages_of_binary_ops_with_constants_keep_every_bit() {
    for &op in BinaryOp::ALL {
        for dtype in [DType::F32, DType::S32] {
            for value in [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0] {
                for is_annotated in [false, true] {
                    let build = |graph: &mut Graph, x: ExprId| {
                        let mut c = number(graph, value, x)?;
                        if is_annotated {
                            c = graph.metadata(&[c], Metadata::default())?;
                        }
                        Ok(vec![graph.binary(op, x, c)?, graph.binary(op, c, x)?])
                    };
                    if let Some(program) = program(dtype, &build) {
                        check(op.name(), &program, dtype);
                    }
                }
            }
        }
    }
}

#[test]
fn annotated_constants_are_not_stage_arguments() {
    let build = |graph: &mut Graph, x: ExprId| {
        let two = number(graph, 2.0, x)?;
        let two = graph.metadata(&[two], Metadata { stop_grad: true, ..Metadata::default() })?;
        let power = graph.binary(BinaryOp::Pow, x, two)?;
        Ok(vec![graph.binary(BinaryOp::Multiply, power, two)?])
    };
    let program = program(DType::F32, &build).unwrap();
    let graph = split(&program, |_| Decision::Both).unwrap();
    assert!(graph.stages().len() > 1);
    for stage in graph.stages() {
        let is_scalar = |ty: &TensorType| ty.rank() == 0;
        assert!(!stage.program.inputs().iter().any(is_scalar), "{}", stage.program);
    }
}

/// The elements are finite: the sign of the sum of two NaNs is unspecified (IEEE 754-2019, 6.3).
#[test]
fn staged_nans_keep_their_sign() {
    let build = |graph: &mut Graph, x: ExprId| {
        let zero = number(graph, 0.0, x)?;
        let nothing = graph.binary(BinaryOp::Multiply, x, zero)?;
        let minus = number(graph, -1.0, x)?;
        let root = graph.unary(UnaryOp::Sqrt, minus)?;
        let sum = graph.binary(BinaryOp::Add, nothing, root)?;
        let negative = graph.unary(UnaryOp::Negate, sum)?;
        let total = graph.reduction(ReduceOp::Sum, negative, Some(&[1]), false)?;
        Ok(vec![sum, negative, total])
    };
    check_on("nan", &program(DType::F32, &build).unwrap(), &finite(DType::F32));
}

#[test]
fn stages_of_statistics_keep_every_bit() {
    let build = |graph: &mut Graph, x: ExprId| {
        let two = number(graph, 2.0, x)?;
        let square = graph.binary(BinaryOp::Pow, x, two)?;
        let mean = graph.mean(square, Some(&[0]), true)?;
        let variance = graph.variance(x, Some(&[0]), true, 0.0)?;
        let ratio = graph.binary(BinaryOp::Divide, mean, variance)?;
        let rows = graph.reduction(ReduceOp::Max, x, Some(&[1]), true)?;
        let below = graph.binary(BinaryOp::Subtract, x, rows)?;
        Ok(vec![ratio, graph.unary(UnaryOp::Exp, below)?])
    };
    check("statistics", &program(DType::F32, &build).unwrap(), DType::F32);
}
