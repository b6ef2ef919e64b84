//! Random programs with hooks, also in loops, branches and blocks. Every transformation preserves
//! the number and the order of hook calls.

use std::sync::{Arc, Mutex};

use crate::common::generate::{build, decisions, input_types, steps};
use crate::common::run_in_order;
use nxla_eval::{Hooks, Plan};
use nxla_expr::rewrite::Substitution;
use nxla_expr::verify::verify_program;
use nxla_expr::{ExprId, Graph, Program, TensorType, serialize};
use nxla_grad::gradients;
use nxla_split::{Stage, split_with};
use nxla_tensor::HostTensor;
use proptest::prelude::*;

/// The hooks of the generated programs.
const NAMES: [&str; 4] = ["one", "two", "loop", "branch"];

/// Returns the values that the hooks receive, in order.
fn calls(run: impl FnOnce(&Hooks)) -> Vec<String> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let mut hooks = Hooks::new();
    for name in NAMES {
        let calls = calls.clone();
        let record = move |values: &[HostTensor]| {
            calls.lock().expect("no hook panics").push(format!("{name} {values:?}"));
            Ok(())
        };
        hooks.insert(name, Arc::new(record));
    }
    run(&hooks);
    let calls = calls.lock().expect("no hook panics");
    calls.clone()
}

fn run(program: Program, values: &[f32]) -> Vec<String> {
    verify_program(&program).expect("the program is valid");
    let inputs = inputs(program.inputs(), values);
    calls(|hooks| {
        Plan::new(Arc::new(program)).run(inputs, hooks).expect("the program runs");
    })
}

/// Creates tensors of these types from values.
fn inputs(types: &[TensorType], values: &[f32]) -> Vec<HostTensor> {
    let mut rest = values;
    let take = |ty: &TensorType| {
        let (values, remaining) = rest.split_at(ty.shape.size());
        rest = remaining;
        HostTensor::from_slice(values, ty.shape.clone()).expect("as many numbers as elements")
    };
    types.iter().map(take).collect()
}

/// Creates a graph with the parameters of a generated program.
fn open() -> (Graph, Vec<ExprId>) {
    let mut graph = Graph::new();
    let types = input_types().into_iter().enumerate();
    let parameters = types.map(|(index, ty)| graph.parameter(index, ty)).collect();
    (graph, parameters)
}

fn close(graph: &Graph, outputs: &[ExprId]) -> Program {
    Program::new(graph, input_types(), outputs).expect("the outputs are of this graph")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn transformations_keep_the_calls_of_hooks(
        steps in steps(),
        decisions in decisions(),
        values in prop::collection::vec(-2.0_f32..2.0, 13),
    ) {
        let program = build(&steps);
        let expected = run(program.clone(), &values);

        // The results are unused.
        let (mut graph, parameters) = open();
        program.inline(&mut graph, &parameters).expect("it fits");
        prop_assert_eq!(&run(close(&graph, &[]), &values), &expected);

        // Inlining the program again repeats its calls.
        let outputs = program.inline(&mut graph, &parameters).expect("it fits");
        let twice = [&expected[..], &expected].concat();
        prop_assert_eq!(&run(close(&graph, &outputs), &values), &twice);

        // Nodes that depend on the second input are recreated with another value for it.
        let (mut graph, parameters) = open();
        let other = graph.sin(parameters[0]).expect("it is a number");
        let outputs = program.inline(&mut graph, &[parameters[0], other, parameters[2]]);
        let direct = run(close(&graph, &outputs.expect("it fits")), &values);
        let (mut graph, parameters) = open();
        let other = graph.sin(parameters[0]).expect("it is a number");
        let outputs = program.inline(&mut graph, &parameters).expect("it fits");
        let mut substitution = Substitution::new();
        substitution.insert(parameters[1], other);
        let outputs = graph.substitute(&outputs, &mut substitution).expect("it fits");
        prop_assert_eq!(&run(close(&graph, &outputs), &values), &direct);

        let bytes = serialize::to_bytes(&program);
        let read = serialize::from_bytes(&bytes).expect("the bytes are complete");
        prop_assert_eq!(&run(read, &values), &expected);

        let next = |_: nxla_expr::Node<'_>, count: usize| {
            (decisions[count % decisions.len()], count + 1)
        };
        let stages = split_with(&program, 0, next).expect("the program can be split").0;
        let found = calls(|hooks| {
            let run = |stage: &Stage, arguments| {
                let plan = Plan::new(stage.program.clone());
                plan.run(arguments, hooks).map_err(|error| error.to_string())
            };
            run_in_order(&stages, inputs(&input_types(), &values), run).expect("the stages run");
        });
        prop_assert_eq!(&found, &expected);
    }

    #[test]
    fn derivatives_do_not_repeat_hooks(
        steps in steps(),
        values in prop::collection::vec(-2.0_f32..2.0, 13),
    ) {
        let program = build(&steps);
        let expected = run(program.clone(), &values);
        let (mut graph, parameters) = open();
        let outputs = program.inline(&mut graph, &parameters).expect("it fits");
        let sum = graph.sum(outputs[0], None, false).expect("all axes");
        let derivatives = gradients(&mut graph, sum, &parameters).expect("it has a derivative");
        prop_assert_eq!(&run(close(&graph, &derivatives), &values), &expected);
    }
}
