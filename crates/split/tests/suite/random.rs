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

fn cut(program: &Program, decisions: &[Decision]) -> StageGraph {
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
        let (own, others) = rest.split_at(ty.shape.size());
        rest = others;
        HostTensor::from_slice(own, ty.shape.clone()).expect("as many numbers as elements")
    };
    input_types().iter().map(take).collect()
}

/// Returns whether tensors have the same bits, except for NaN: compilers may choose the operand
/// from which a sum takes the bits of a NaN.
fn same(x: &HostTensor, y: &HostTensor) -> bool {
    let element = |tensor: &HostTensor, at| tensor.get(at).as_f64();
    let alike = |(x, y): (f64, f64)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    x.dtype() == y.dtype()
        && x.shape() == y.shape()
        && (0..x.size()).all(|at| alike((element(x, at), element(y, at))))
}

/// Runs a program with hooks that record the values that they receive, in order.
fn recorded(run: impl FnOnce(&Hooks) -> Vec<HostTensor>) -> (Vec<HostTensor>, Vec<String>) {
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
    fn stages_compute_what_the_program_computes(steps in steps(), decisions in decisions()) {
        let program = build(&steps);
        let stages = cut(&program, &decisions);
        check_equal(&program, &stages);
    }

    #[test]
    fn stages_give_the_same_numbers(
        steps in steps(),
        decisions in decisions(),
        values in prop::collection::vec(value(), 13),
    ) {
        let program = build(&steps);
        let stages = cut(&program, &decisions);
        let inputs = inputs(&values);
        let (expected, expected_calls) = recorded(|hooks| {
            Plan::new(Arc::new(program)).run(inputs.clone(), hooks).expect("the program runs")
        });
        let (found, found_calls) = recorded(|hooks| {
            let run = |stage: &Stage, arguments| {
                let plan = Plan::new(stage.program.clone());
                plan.run(arguments, hooks).map_err(|error| error.to_string())
            };
            run_in_order(&stages, inputs.clone(), run).expect("the stages run")
        });
        for (expected, found) in expected.iter().zip(&found) {
            prop_assert!(same(expected, found), "{expected:?} and {found:?}");
        }
        prop_assert_eq!(expected.len(), found.len());
        prop_assert_eq!(expected_calls, found_calls);
    }

    #[test]
    fn bytes_give_the_same_stages(steps in steps(), decisions in decisions()) {
        let stages = cut(&build(&steps), &decisions);
        let read = StageGraph::from_bytes(&stages.to_bytes()).expect("the bytes are whole");
        prop_assert_eq!(read.stages(), stages.stages());
        prop_assert_eq!(read.outputs(), stages.outputs());
        prop_assert_eq!(read.inputs(), stages.inputs());
    }

    #[test]
    fn every_stage_needs_all_of_its_arguments(steps in steps(), decisions in decisions()) {
        for stage in cut(&build(&steps), &decisions).stages() {
            prop_assert!(stage.program.used_inputs().into_iter().all(|used| used));
        }
    }
}

/// A node at the time of its creation.
type Made = (Op, Vec<ExprId>, Type);

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn graphs_keep_their_invariants_step_by_step(steps in steps()) {
        let mut made: Vec<Made> = Vec::new();
        take_twice(&steps, |graph, expected| {
            verify(graph).expect("the graph is whole");
            assert!(graph.len() >= made.len(), "nodes are never taken away");
            for (id, (op, operands, ty)) in graph.ids().zip(&made) {
                let found = (graph.op(id), graph.operands(id), graph.ty(id));
                assert_eq!(found, (op, &operands[..], ty), "nodes never change");
            }
            let new = graph.ids().skip(made.len()).map(|id| graph.node(id));
            made.extend(new.map(|node| (node.op.clone(), node.operands.to_vec(), node.ty.clone())));
            if let Some(expected) = expected {
                assert_eq!(graph.len(), expected, "made again, or left by what was refused");
            }
        });
    }
}
