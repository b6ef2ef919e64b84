//! A case applies one op; many cases form one program that runs on two backends.
//!
//! XLA spends more time on compilation than on runs, and more on a program than on an op. Therefore
//! many cases share a program. A case that differs runs again, and is simplified, in a separate program.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use nxla::graph::{ExprId, Graph, Op, Result};
use nxla::runtime::RawTensor;
use nxla::{DType, HostTensor, Options, Program, RunContext, TensorType, compile_program};

use crate::tolerance::Tolerance;

/// The backend that is compared with the evaluator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Other {
    /// Every op in its plainest form.
    Reference,
    /// The other compiler.
    Xla,
}

type Build = dyn Fn(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>> + Send + Sync;

/// An op applied to drawn operands.
#[derive(Clone)]
pub(crate) struct Case {
    inputs: Vec<HostTensor>,
    attributes: String,
    build: Arc<Build>,
}

impl Case {
    /// Returns a case with one result. `attributes` describe the drawn attributes of the op.
    pub(crate) fn new(
        inputs: Vec<HostTensor>,
        attributes: impl fmt::Debug,
        build: impl Fn(&mut Graph, &[ExprId]) -> Result<ExprId> + Send + Sync + 'static,
    ) -> Self {
        Self::of_many(inputs, attributes, move |graph, x| Ok(vec![build(graph, x)?]))
    }

    /// A case with several results.
    pub(crate) fn of_many(
        inputs: Vec<HostTensor>,
        attributes: impl fmt::Debug,
        build: impl Fn(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>> + Send + Sync + 'static,
    ) -> Self {
        Self { inputs, attributes: format!("{attributes:?}"), build: Arc::new(build) }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attributes {}", self.attributes)?;
        for input in &self.inputs {
            let elements = (0..input.size()).map(|index| input.get(index).to_string());
            let elements = elements.collect::<Vec<_>>().join(", ");
            write!(f, "\n    {}{} [{elements}]", input.dtype(), input.shape())?;
        }
        Ok(())
    }
}

/// A program of several cases.
struct Batch {
    program: Arc<Program>,
    inputs: Vec<RawTensor>,
    /// The outputs of each case.
    outputs: Vec<Range<usize>>,
    /// Names of the ops in it.
    ops: Vec<&'static str>,
}

fn join_cases(cases: &[&Case]) -> Batch {
    let mut graph = Graph::new();
    let (mut types, mut inputs) = (Vec::new(), Vec::new());
    let (mut all, mut outputs) = (Vec::new(), Vec::new());
    for case in cases {
        let parameters: Vec<ExprId> = (case.inputs.iter())
            .map(|input| {
                let ty = TensorType::new(input.dtype(), input.shape().clone());
                types.push(ty.clone());
                inputs.push(RawTensor::Host(input.clone()));
                graph.parameter(types.len() - 1, ty)
            })
            .collect();
        let built = (case.build)(&mut graph, &parameters)
            .unwrap_or_else(|error| panic!("the strategy drew a rejected case: {error}\n{case:?}"));
        outputs.push(all.len()..all.len() + built.len());
        all.extend(built);
    }
    let ops = graph.ids().map(|id| graph.op(id).name()).collect();
    let program = Arc::new(Program::new(&graph, types, &all).unwrap());
    Batch { program, inputs, outputs, ops }
}

/// Returns whether simplification kept the op with this name in the program of a case.
pub(crate) fn contains_op(case: &Case, op: &str) -> bool {
    join_cases(&[case]).ops.contains(&op)
}

fn run(batch: &Batch, compiler: &str) -> std::result::Result<Vec<HostTensor>, nxla::Error> {
    let options = Options::new().compiler(compiler);
    let executable = compile_program(&batch.program, &options, &[])?;
    let inputs: Vec<&RawTensor> = batch.inputs.iter().collect();
    let results = executable.run(&inputs, &RunContext::default())?;
    // The evaluator computes programs that XLA cannot compile, and XLA must be compared here.
    let ran_on_device = results.iter().all(|result| matches!(result, RawTensor::Device(_)));
    assert_eq!(ran_on_device, compiler == "xla", "runs of {:?} on the plugin", batch.ops);
    results.iter().map(RawTensor::to_host).collect()
}

/// Runs the program on the other backend.
fn run_other(batch: &Batch, other: Other) -> std::result::Result<Vec<HostTensor>, String> {
    match other {
        Other::Reference => {
            let inputs: nxla::Result<Vec<HostTensor>> =
                batch.inputs.iter().map(RawTensor::to_host).collect();
            nxla_reference::run(&batch.program, &inputs.unwrap())
                .map_err(|error| format!("reference: {error}"))
        }
        Other::Xla => run(batch, "xla").map_err(|error| format!("XLA: {error}")),
    }
}

/// Returns the cases in which the evaluator and the other backend differ, by the tolerances of that
/// backend.
///
/// # Errors
/// Returns an error if a backend rejects the program.
pub(crate) fn differences(
    cases: &[(&Case, Tolerance)],
    other: Other,
) -> std::result::Result<Vec<Option<String>>, String> {
    let batch = join_cases(&cases.iter().map(|(case, _)| *case).collect::<Vec<_>>());
    let ours = run(&batch, "evaluator").map_err(|error| format!("evaluator: {error}"))?;
    let theirs = run_other(&batch, other)?;
    let difference = |(range, (_, tolerance)): (&Range<usize>, &(&Case, Tolerance))| {
        let mut pairs = ours[range.clone()].iter().zip(&theirs[range.clone()]);
        let found = pairs.find_map(|(ours, theirs)| tolerance.difference(ours, theirs));
        found.map(|found| format!("{found} ({other:?})"))
    };
    Ok(batch.outputs.iter().zip(cases).map(difference).collect())
}

/// Returns whether the type rules accept an op with operands of these dtypes.
pub(crate) fn accepts(op: &Op, dtypes: &[DType]) -> bool {
    let mut graph = Graph::new();
    let operands: Vec<ExprId> = (dtypes.iter().enumerate())
        .map(|(index, &dtype)| graph.parameter(index, TensorType::scalar(dtype)))
        .collect();
    graph.make(op.clone(), &operands).is_ok()
}
