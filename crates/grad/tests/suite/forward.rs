//! Forward mode: costs, structure, hooks and errors. All gradient tests check the rules of both
//! modes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{f64s, integers, number, parameters, run, samples, tensor, types};
use nxla_eval::evaluate;
use nxla_expr::{ExprId, Graph, Op, Program, Replay, TensorType};
use nxla_grad::{
    DiffCounts, GradError, gradients, jvp, partial_eval, pullback, pushforward, restrict,
};
use nxla_tensor::{DType, HostTensor, Scalar};

/// Builds a program whose parameters have the types of `inputs`.
fn program(
    inputs: &[HostTensor],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Vec<ExprId>,
) -> Program {
    let mut graph = Graph::new();
    let ids = parameters(&mut graph, inputs);
    let outputs = build(&mut graph, &ids);
    Program::new(&graph, types(inputs), &outputs).unwrap()
}

/// Returns the pushforward of all outputs for the first inputs.
fn pushforward_of_inputs(program: &Program, inputs: usize) -> Result<Program, GradError> {
    pushforward(program, DiffCounts { inputs, outputs: program.outputs().len() })
}

/// Runs a program with tangents of all inputs, and returns values and tangents.
fn evaluate_jvp(
    program: &Program,
    inputs: &[HostTensor],
    tangents: &[HostTensor],
) -> Vec<HostTensor> {
    let pushed = pushforward_of_inputs(program, inputs.len()).unwrap();
    evaluate(&pushed, inputs.iter().chain(tangents).cloned().collect()).unwrap()
}

/// Applies a body to a tensor a given number of times.
fn repeat_body(
    graph: &mut Graph,
    count: i64,
    initial: &[ExprId],
    body: impl FnOnce(&mut Graph, &[ExprId]) -> Vec<ExprId>,
) -> Vec<ExprId> {
    let integer = |graph: &mut Graph, value| graph.scalar_constant(Scalar::Int(value), DType::S64);
    let zero = integer(graph, 0).unwrap();
    let initial: Vec<ExprId> = std::iter::once(zero).chain(initial.iter().copied()).collect();
    let goes_on = |graph: &mut Graph, state: &[ExprId]| {
        let end = integer(graph, count)?;
        graph.less(state[0], end)
    };
    let next = |graph: &mut Graph, state: &[ExprId]| {
        let one = integer(graph, 1)?;
        let mut next = vec![graph.add(state[0], one)?];
        next.extend(body(graph, &state[1..]));
        Ok(next)
    };
    graph.repeat_while(&initial, Replay::default(), goes_on, next).unwrap().split_off(1)
}

fn loops_of(program: &Program) -> Vec<usize> {
    let graph = program.graph();
    let states = |id| match graph.op(id) {
        Op::While(op) => Some(op.state),
        _ => None,
    };
    graph.ids().filter_map(states).collect()
}

#[test]
fn constant_values_add_no_tangent_nodes() {
    let x = samples(&[3], (0.5, 1.5), 1);
    let inputs = [x.clone(), x];
    let program = program(&inputs, |graph, x| {
        let expensive = graph.exp(x[1]).unwrap();
        let expensive = graph.sin(expensive).unwrap();
        vec![graph.add(x[0], expensive).unwrap()]
    });
    let mut graph = Graph::new();
    let ids = parameters(&mut graph, &inputs);
    let direction = graph.parameter(2, TensorType::new(DType::F64, [3]));
    let before = program.graph().len() + 1;
    let (_, tangents) = jvp(&mut graph, &program, &ids, &[Some(direction), None], 1).unwrap();
    assert_eq!(tangents, [direction]);
    assert_eq!(graph.len(), before);
}

#[test]
fn constant_outputs_have_zero_tangents() {
    let x = samples(&[3], (0.5, 1.5), 1);
    let program = program(std::slice::from_ref(&x), |graph, x| {
        let stopped = graph.stop_grad(x[0]).unwrap();
        let whole = graph.floor(x[0]).unwrap();
        vec![stopped, whole, graph.as_type(x[0], DType::S32).unwrap()]
    });
    let found = evaluate_jvp(&program, std::slice::from_ref(&x), std::slice::from_ref(&x));
    assert_eq!(f64s(&found[3]), [0.0; 3]);
    assert_eq!(f64s(&found[4]), [0.0; 3]);
    // A conversion is the identity for derivatives, even through integers.
    assert_eq!((found[5].dtype(), f64s(&found[5])), (DType::F64, f64s(&x)));
}

#[test]
fn loops_compute_values_and_tangents_together() {
    let x = samples(&[3], (0.5, 1.5), 1);
    let program = program(std::slice::from_ref(&x), |graph, x| {
        repeat_body(graph, 5, &[x[0]], |graph, x| vec![graph.sin(x[0]).unwrap()])
    });
    let pushed = pushforward_of_inputs(&program, 1).unwrap();
    assert_eq!(loops_of(&pushed), [3]);
}

#[test]
fn loops_carry_only_needed_tangents() {
    let x = samples(&[3], (0.5, 1.5), 1);
    let inputs = [x.clone(), x];
    let program = program(&inputs, |graph, x| {
        // The second state depends only on the first, and its tangent is not needed.
        let states = repeat_body(graph, 5, x, |graph, x| {
            let sine = graph.sin(x[0]).unwrap();
            vec![sine, graph.multiply(x[0], x[1]).unwrap()]
        });
        vec![states[0]]
    });
    assert_eq!(loops_of(&pushforward_of_inputs(&program, 2).unwrap()), [4]);
}

#[test]
fn ops_without_rules_fail_only_for_needed_tangents() {
    let inputs = [samples(&[4], (0.5, 1.5), 1), integers(&[1], &[5])];
    let index = |graph: &mut Graph, x: &[ExprId]| {
        let two = graph.scalar_constant(Scalar::Int(2), DType::S64).unwrap();
        graph.quotient(x[1], two).unwrap()
    };
    let differentiable = program(&inputs, |graph, x| {
        let index = index(graph, x);
        vec![graph.gather(x[0], index, None).unwrap()]
    });
    // The tangent of an integer is a float.
    let step = samples(&[1], (0.0, 1.0), 1).cast(DType::F32);
    let direction = [inputs[0].clone(), step];
    let found = evaluate_jvp(&differentiable, &inputs, &direction);
    assert_eq!(f64s(&found[1]), [f64s(&inputs[0])[2]]);
    let wrong = program(&inputs, |graph, x| vec![index(graph, x)]);
    let error = pushforward_of_inputs(&wrong, 2).unwrap_err();
    assert!(error.to_string().starts_with("quotient: integer division has no derivative"));
}

#[test]
fn hooks_run_once_and_pass_tangents() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let x = tensor(&[], &[0.5]);
    let program = program(std::slice::from_ref(&x), |graph, x| {
        repeat_body(graph, 3, &[x[0]], |graph, x| {
            let count = count.clone();
            let show = move |_: &[HostTensor]| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            let shown = graph.hook(&[x[0]], None, Some(Arc::new(show))).unwrap()[0];
            vec![graph.multiply(shown, shown).unwrap()]
        })
    });
    let found = evaluate_jvp(&program, std::slice::from_ref(&x), &[tensor(&[], &[1.0])]);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert!((f64s(&found[1])[0] - 8.0 * 0.5f64.powi(7)).abs() < 1e-12);
}

#[test]
fn linear_custom_grad_rules_define_tangents() {
    let x = tensor(&[2], &[3.0, -4.0]);
    let build = |clips: bool| {
        program(std::slice::from_ref(&x), |graph, x| {
            let square = graph.multiply(x[0], x[0]).unwrap();
            graph
                .custom_grad(&[square], &[x[0]], |graph, cotangents| {
                    let seven = number(graph, 7.0);
                    let one = number(graph, 1.0);
                    let scaled = graph.multiply(cotangents[0], seven)?;
                    let scaled = graph.multiply(scaled, x[0])?;
                    let minus = graph.negate(one)?;
                    let answer = if clips { graph.clip(scaled, minus, one)? } else { scaled };
                    Ok::<_, nxla_expr::Error>(vec![answer])
                })
                .unwrap()
        })
    };
    let found =
        evaluate_jvp(&build(false), std::slice::from_ref(&x), &[tensor(&[2], &[1.0, 10.0])]);
    assert_eq!(f64s(&found[1]), [21.0, -280.0]);
    let error = pushforward_of_inputs(&build(true), 1).unwrap_err();
    assert!(matches!(error, GradError::NotLinear { .. }), "{error}");
}

#[test]
fn mismatched_tangents_are_errors() {
    let x = samples(&[3], (0.5, 1.5), 1);
    let program = program(std::slice::from_ref(&x), |graph, x| vec![graph.sin(x[0]).unwrap()]);
    let mut graph = Graph::new();
    let ids = parameters(&mut graph, std::slice::from_ref(&x));
    let short = number(&mut graph, 1.0);
    let error = jvp(&mut graph, &program, &ids, &[Some(short)], 1).unwrap_err();
    assert_eq!(error.to_string(), "jvp: tangent: must have the type of the input f64[3]; got f64");
    let error = jvp(&mut graph, &program, &ids, &[], 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "jvp: inputs: must be one value and one tangent for each of the 1 inputs; got 0"
    );
}

#[test]
fn million_node_programs_are_differentiated() {
    let x = tensor(&[], &[1.0]);
    let program = program(std::slice::from_ref(&x), |graph, x| {
        let mut y = x[0];
        for step in 0..500_000 {
            let shift = number(graph, f64::from(step));
            y = graph.add(y, shift).unwrap();
            y = graph.negate(y).unwrap();
        }
        vec![y]
    });
    let pushed = pushforward_of_inputs(&program, 1).unwrap();
    assert!(pushed.graph().len() > 1_000_000);
}

#[test]
fn forward_over_forward_over_reverse_is_the_third_derivative() {
    let x = samples(&[3], (0.5, 1.0), 1);
    let one = tensor(&[3], &[1.0; 3]);
    let mut graph = Graph::new();
    let id = parameters(&mut graph, std::slice::from_ref(&x))[0];
    let y = graph.sin(id).unwrap();
    let slope = gradients(&mut graph, y, &[id]).unwrap();
    let first = Program::new(&graph, types(std::slice::from_ref(&x)), &slope).unwrap();
    let second = pushforward_of_inputs(&first, 1).unwrap();
    let third = pushforward_of_inputs(&second, 1).unwrap();
    let found = evaluate(&third, vec![x.clone(), one.clone(), one]).unwrap();
    for (found, x) in f64s(&found[3]).iter().zip(f64s(&x)) {
        assert!((found + x.cos()).abs() < 1e-12);
    }
}

#[test]
fn partial_evaluation_splits_derivatives() {
    let inputs = [samples(&[3], (0.5, 1.0), 1), samples(&[3], (0.5, 1.0), 2)];
    let function = program(&inputs, |graph, x| {
        let product = graph.multiply(x[0], x[1]).unwrap();
        let loop_output =
            repeat_body(graph, 4, &[product], |graph, x| vec![graph.sin(x[0]).unwrap()])[0];
        vec![graph.tanh(loop_output).unwrap(), graph.exp(product).unwrap()]
    });
    let directions = [samples(&[3], (-1.0, 1.0), 3), samples(&[3], (-1.0, 1.0), 4)];
    let sides = DiffCounts { inputs: 2, outputs: 2 };
    let outputs = [2, 3];
    for whole in [pushforward(&function, sides).unwrap(), pullback(&function, sides).unwrap()] {
        let expected =
            evaluate(&whole, inputs.iter().chain(&directions).cloned().collect()).unwrap();
        let split = partial_eval(&whole, 2, &outputs).unwrap();
        let mut passed = evaluate(&split.known, inputs.to_vec()).unwrap();
        passed.extend(directions.iter().cloned());
        let found = evaluate(&split.unknown, passed).unwrap();
        for (found, output) in found.iter().zip(outputs) {
            assert_eq!(f64s(found), f64s(&expected[output]));
        }
        // The residuals contain the exponential, so the second part does not.
        let has_exp = |program: &Program| {
            let graph = program.graph();
            graph.ids().any(|id| graph.op(id).name() == "exp")
        };
        assert!(has_exp(&split.known) && !has_exp(&split.unknown));
    }
}

#[test]
fn parts_of_derivatives_keep_source_lines_and_marks() {
    let inputs = [samples(&[3], (0.5, 1.0), 1)];
    let function = program(&inputs, |graph, x| {
        let line = nxla_expr::Line { file: "model.py".into(), line: 7 };
        let source = graph.add_source(nxla_expr::Source::Line(line));
        graph.set_source(source);
        let y = graph.sin(x[0]).unwrap();
        vec![graph.exp(y).unwrap()]
    });
    let whole = pullback(&function, DiffCounts { inputs: 1, outputs: 1 }).unwrap();
    let split = partial_eval(&whole, 1, &[1]).unwrap();
    let mut derived = 0;
    for part in [&split.known, &split.unknown, &Arc::new(restrict(&whole, 1, 1).unwrap())] {
        let graph = part.graph();
        for id in graph.ids().filter(|&id| !matches!(graph.op(id), Op::Parameter(_))) {
            assert_eq!(graph.line(id).map(|line| line.line), Some(7), "{}", graph.op(id).name());
            derived += usize::from(graph.is_derived(id));
        }
    }
    let graph = whole.graph();
    assert_eq!(derived, graph.ids().filter(|&id| graph.is_derived(id)).count());
    assert!(derived > 0);
}

#[test]
fn forward_mode_adds_only_slopes_and_products() {
    // A chain of 100 layers adds one product and one slope for each layer.
    let inputs = [samples(&[4, 4], (-0.5, 0.5), 1), samples(&[4, 4], (-0.5, 0.5), 2)];
    let function = program(&inputs, |graph, x| {
        let mut y = x[1];
        for _ in 0..100 {
            let product = graph.dot(y, x[0]).unwrap();
            y = graph.tanh(product).unwrap();
        }
        vec![y]
    });
    let pushed = pushforward_of_inputs(&function, 2).unwrap();
    assert!(pushed.graph().len() < 6 * function.graph().len());
    let seeds = [inputs[0].clone(), inputs[1].clone()];
    let found = evaluate_jvp(&function, &inputs, &seeds);
    let value = run(function.graph(), &inputs, function.outputs());
    assert_eq!(f64s(&found[0]), f64s(&value[0]));
}

/// Counts the nodes of a program and of its regions.
fn nodes(program: &Program) -> usize {
    program.programs().map(|program| program.graph().len()).sum()
}

/// Computes the tangent of the first output by transposing reverse mode.
fn reverse_mode_twice(program: &Program) -> Program {
    let inputs = program.inputs().len();
    let back = pullback(program, DiffCounts { inputs, outputs: 1 }).unwrap();
    let sides = DiffCounts { inputs: inputs + 1, outputs: inputs + 1 };
    let twice = pullback(&back, sides).unwrap();
    let change = *twice.outputs().last().unwrap();
    Program::new(twice.graph(), twice.inputs().to_vec(), &[change]).unwrap()
}

#[test]
fn forward_mode_takes_fewer_nodes_than_reverse_mode_twice() {
    let inputs = [samples(&[4, 4], (-0.5, 0.5), 1), samples(&[4, 4], (-0.5, 0.5), 2)];
    let layers = program(&inputs, |graph, x| {
        let mut y = x[1];
        for _ in 0..12 {
            let product = graph.dot(y, x[0]).unwrap();
            y = graph.tanh(product).unwrap();
        }
        vec![graph.sum(y, None, false).unwrap()]
    });
    let recurrent = program(&inputs, |graph, x| {
        let hidden = repeat_body(graph, 20, &[x[1]], |graph, y| {
            let product = graph.dot(y[0], x[0]).unwrap();
            vec![graph.tanh(product).unwrap()]
        });
        vec![graph.sum(hidden[0], None, false).unwrap()]
    });
    for program in [layers, recurrent] {
        let (once, twice) =
            (pushforward_of_inputs(&program, 2).unwrap(), reverse_mode_twice(&program));
        let count = (nodes(&program), nodes(&once), nodes(&twice));
        assert!(count.1 < count.2, "{count:?}");
        let directions = [inputs[0].clone(), inputs[1].clone()];
        let found = evaluate_jvp(&program, &inputs, &directions);
        // The program that is differentiated twice receives cotangents of the value and of the
        // gradients.
        let zero = tensor(&[], &[0.0]);
        let one = tensor(&[], &[1.0]);
        let passed = inputs.iter().cloned().chain([one, zero]).chain(directions).collect();
        let other = evaluate(&twice, passed).unwrap();
        let (found, other) = (f64s(&found[1])[0], f64s(&other[0])[0]);
        assert!((found - other).abs() < 1e-12 * found.abs().max(1.0), "{found}, {other}");
    }
}
