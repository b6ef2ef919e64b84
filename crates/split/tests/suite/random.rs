//! Random programs with random cuts: stages compute the results of the whole program, each
//! operation once, and hooks keep their order.

use std::sync::{Arc, Mutex};

use crate::common::generate::{build, decisions, input_types, steps, take_twice};
use crate::common::{check_equal, run_in_order};
use nxla_eval::{Hooks, Plan};
use nxla_expr::verify::verify;
use nxla_expr::{ExprId, Op, Program, Type};
use nxla_split::{Decision, Stage, StageGraph, split_with};
use nxla_tensor::HostTensor;
use proptest::prelude::*;

fn split_by_decisions(program: &Program, decisions: &[Decision]) -> StageGraph {
    let next =
        |_: nxla_expr::Node<'_>, count: usize| (decisions[count % decisions.len()], count + 1);
    split_with(program, 0, next).expect("the program can be split").0
}

/// Values of all kinds.
fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => -4.0_f32..4.0,
        1 => prop::sample::select(vec![0.0, -0.0, f32::NAN, f32::INFINITY, 1e30, -1e-30]),
    ]
}

/// Creates tensors of the input types from values.
fn inputs(values: &[f32]) -> Vec<HostTensor> {
    let mut rest = values;
    let take = |ty: &nxla_expr::TensorType| {
        let (values, remaining) = rest.split_at(ty.shape.size());
        rest = remaining;
        HostTensor::from_slice(values, ty.shape.clone()).expect("as many numbers as elements")
    };
    input_types().iter().map(take).collect()
}

/// Returns whether tensors have the same bits, except for NaN: compilers may choose the operand
/// from which a sum takes the bits of a NaN.
fn same_except_nan(x: &HostTensor, y: &HostTensor) -> bool {
    let element = |tensor: &HostTensor, at| tensor.get(at).as_f64();
    let is_same = |(x, y): (f64, f64)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    x.dtype() == y.dtype()
        && x.shape() == y.shape()
        && (0..x.size()).all(|at| is_same((element(x, at), element(y, at))))
}

/// Runs a program with hooks that record the values that they receive, in order.
fn run_with_recorded_hooks(
    run: impl FnOnce(&Hooks) -> Vec<HostTensor>,
) -> (Vec<HostTensor>, Vec<String>) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let mut hooks = Hooks::new();
    for name in ["one", "two"] {
        let calls = calls.clone();
        let record = move |values: &[HostTensor]| {
            calls.lock().expect("no hook panics").push(format!("{name} {values:?}"));
            Ok(())
        };
        hooks.insert(name, Arc::new(record));
    }
    let results = run(&hooks);
    let calls = calls.lock().expect("no hook panics").clone();
    (results, calls)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stages_keep_program_results(steps in steps(), decisions in decisions()) {
        let program = build(&steps);
        let stages = split_by_decisions(&program, &decisions);
        check_equal(&program, &stages);
    }

    #[test]
    fn stages_return_the_same_values_and_hook_calls(
        steps in steps(),
        decisions in decisions(),
        values in prop::collection::vec(value(), 13),
    ) {
        let program = build(&steps);
        let stages = split_by_decisions(&program, &decisions);
        let inputs = inputs(&values);
        let (expected, expected_calls) = run_with_recorded_hooks(|hooks| {
            Plan::new(Arc::new(program)).run(inputs.clone(), hooks).expect("the program runs")
        });
        let (found, found_calls) = run_with_recorded_hooks(|hooks| {
            let run = |stage: &Stage, arguments| {
                let plan = Plan::new(stage.program.clone());
                plan.run(arguments, hooks).map_err(|error| error.to_string())
            };
            run_in_order(&stages, inputs.clone(), run).expect("the stages run")
        });
        for (expected, found) in expected.iter().zip(&found) {
            prop_assert!(same_except_nan(expected, found), "{expected:?} and {found:?}");
        }
        prop_assert_eq!(expected.len(), found.len());
        prop_assert_eq!(expected_calls, found_calls);
    }

    #[test]
    fn stage_graphs_round_trip_through_bytes(steps in steps(), decisions in decisions()) {
        let stages = split_by_decisions(&build(&steps), &decisions);
        let read = StageGraph::from_bytes(&stages.to_bytes()).expect("the bytes are complete");
        prop_assert_eq!(read.stages(), stages.stages());
        prop_assert_eq!(read.outputs(), stages.outputs());
        prop_assert_eq!(read.inputs(), stages.inputs());
    }

    #[test]
    fn every_stage_needs_all_of_its_arguments(steps in steps(), decisions in decisions()) {
        for stage in split_by_decisions(&build(&steps), &decisions).stages() {
            prop_assert!(stage.program.used_inputs().into_iter().all(|used| used));
        }
    }
}

/// A node at the time of its creation.
type NodeRecord = (Op, Vec<ExprId>, Type);

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn graphs_keep_their_invariants(steps in steps()) {
        let mut nodes: Vec<NodeRecord> = Vec::new();
        take_twice(&steps, |graph, expected| {
            verify(graph).expect("the graph is valid");
            assert!(graph.len() >= nodes.len(), "nodes are never removed");
            for (id, (op, operands, ty)) in graph.ids().zip(&nodes) {
                let found = (graph.op(id), graph.operands(id), graph.ty(id));
                assert_eq!(found, (op, &operands[..], ty), "nodes never change");
            }
            let new = graph.ids().skip(nodes.len()).map(|id| graph.node(id));
            nodes.extend(new.map(|node| (node.op.clone(), node.operands.to_vec(), node.ty.clone())));
            if let Some(expected) = expected {
                assert_eq!(graph.len(), expected, "a repeated or rejected step added nodes");
            }
        });
    }
}
