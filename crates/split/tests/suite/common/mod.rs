//! Shared test helpers: short program builders, stages as strings, and a symbolic evaluator.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod generate;
pub mod readers;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use nxla_expr::{ExprId, Graph, Op, Program, TensorType};
use nxla_split::{Decision, Stage, StageGraph, StageScheduler};
use nxla_tensor::DType;

/// The result of a test that builds graphs with `?`.
pub type Test<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Returns the type of an `s32` tensor.
pub fn s32<const N: usize>(shape: [usize; N]) -> TensorType {
    TensorType::new(DType::S32, shape)
}

/// Returns the type of an `f32` tensor.
pub fn f32<const N: usize>(shape: [usize; N]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

/// Builds a program with inputs of these types.
pub fn program(
    inputs: Vec<TensorType>,
    build: impl FnOnce(&mut Graph, &[ExprId]) -> nxla_expr::Result<Vec<ExprId>>,
) -> Program {
    let mut graph = Graph::new();
    let parameters: Vec<ExprId> =
        inputs.iter().enumerate().map(|(i, ty)| graph.parameter(i, ty.clone())).collect();
    let outputs = build(&mut graph, &parameters).expect("the expression is well-typed");
    Program::new(&graph, inputs, &outputs).expect("the program is closed")
}

/// Returns `decision` for nodes with this name, and no cut elsewhere.
pub fn at(name: &str, decision: Decision) -> impl FnMut(nxla_expr::Node<'_>) -> Decision {
    move |node| if node.op.name() == name { decision } else { Decision::None }
}

/// Formats each stage as a line: the sources of its arguments, its operations, its outputs.
///
/// ```text
/// in0, in1 | add, subtract | s32[2], s32[2]
/// ```
pub fn stage_lines(graph: &StageGraph) -> Vec<String> {
    graph.verify().expect("the stages are consistent");
    graph.stages().iter().map(stage_line).collect()
}

fn stage_line(stage: &Stage) -> String {
    let graph = stage.program.graph();
    let ids = graph.ids().filter(|&id| !matches!(graph.op(id), Op::Parameter(_) | Op::Elem(_)));
    let join = |texts: Vec<String>| texts.join(", ");
    format!(
        "{} | {} | {}",
        join(stage.arguments.iter().map(ToString::to_string).collect()),
        join(ids.map(|id| graph.op(id).name().to_owned()).collect()),
        join(stage.program.output_types().map(ToString::to_string).collect()),
    )
}

/// The observations of a symbolic evaluation.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Log {
    /// Every computed operation, except literals and annotations, which stages may copy.
    pub computed: Vec<u64>,
    /// Every hook that ran, in order: its name and the values that it received.
    pub hooks: Vec<(String, Vec<u64>)>,
}

/// Evaluates a program on terms instead of numbers. A term is a hash of an operation and the terms
/// of its operands, so equal terms mean that the same operations were computed.
pub fn evaluate(program: &Program, arguments: &[u64], log: &mut Log) -> Vec<u64> {
    let graph = program.graph();
    let mut terms: Vec<u64> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let operands: Vec<u64> = graph.operands(id).iter().map(|id| terms[id.index()]).collect();
        terms.push(match graph.op(id) {
            Op::Parameter(parameter) => arguments[parameter.index as usize],
            Op::Hook(hook) => {
                let name = hook.name.as_deref().unwrap_or_default().to_owned();
                let term = hash_of(&("hook", &name, &operands));
                log.hooks.push((name, operands));
                log.computed.push(term);
                term
            }
            op if op.has_effects() => {
                let regions: Vec<_> = op.regions().iter().map(|region| region.digest()).collect();
                let term = hash_of(&(op.name(), &regions, &operands));
                log.hooks.push((op.name().to_owned(), operands));
                log.computed.push(term);
                term
            }
            op => {
                let term = hash_of(&(op, &operands));
                if !operands.is_empty() && !matches!(op, Op::Elem(_) | Op::Metadata(_)) {
                    log.computed.push(term);
                }
                term
            }
        });
    }
    program.outputs().iter().map(|id| terms[id.index()]).collect()
}

/// Runs all stages sequentially, and returns the outputs of the original program.
pub fn run_in_order<V: Clone, E>(
    graph: &StageGraph,
    inputs: Vec<V>,
    mut run_stage: impl FnMut(&Stage, Vec<V>) -> Result<Vec<V>, E>,
) -> Result<Vec<V>, E> {
    let mut schedule = StageScheduler::new(graph, inputs).expect("one value for each input");
    while let Some(task) = schedule.next_ready() {
        let results = run_stage(graph.stage(task.stage), task.arguments)?;
        schedule.complete(task.stage, results).expect("one value for each output");
    }
    Ok(schedule.finish().expect("every stage has run"))
}

/// Evaluates the whole program and its stages, and checks that both are equal.
pub fn check_equal(program: &Program, stages: &StageGraph) {
    stages.verify().expect("the stages are consistent");
    let inputs: Vec<u64> = (0..program.inputs().len()).map(|index| hash_of(&index)).collect();
    let mut whole = Log::default();
    let expected = evaluate(program, &inputs, &mut whole);
    let mut parts = Log::default();
    let run_stage = |stage: &Stage, arguments: Vec<u64>| {
        Ok::<_, std::convert::Infallible>(evaluate(&stage.program, &arguments, &mut parts))
    };
    let outputs = run_in_order(stages, inputs, run_stage).expect("stages run");
    assert_eq!(outputs, expected);
    assert_eq!(parts.hooks, whole.hooks, "hooks run once, in order");
    parts.computed.sort_unstable();
    whole.computed.sort_unstable();
    assert_eq!(parts.computed, whole.computed, "every operation is computed once");
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
