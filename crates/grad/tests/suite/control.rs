//! Gradients of conditionals, loops, composites, hooks and annotations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{check, check_twice, check_with, f64s, integers, number, run, samples, tensor};
use nxla_expr::{Error, ExprId, Graph, Metadata, Op, Replay, Result, RuleFor};
use nxla_grad::gradients;
use nxla_tensor::{DType, HostTensor, Scalar};

fn integer(graph: &mut Graph, value: i64) -> ExprId {
    graph.scalar_constant(Scalar::Int(value), DType::S64).unwrap()
}

/// Builds a conditional with one scalar predicate.
fn choose(
    graph: &mut Graph,
    predicate: impl FnOnce(&mut Graph) -> ExprId,
    on_true: impl FnOnce(&mut Graph) -> Vec<ExprId>,
    on_false: impl FnOnce(&mut Graph) -> Vec<ExprId>,
) -> Vec<ExprId> {
    let mark = graph.mark();
    let predicate = predicate(graph);
    let predicate = graph.traced(mark, vec![predicate]);
    let on_true = on_true(graph);
    let on_true = graph.traced(mark, on_true);
    let on_false = on_false(graph);
    let on_false = graph.traced(mark, on_false);
    graph.cond(mark, vec![(predicate, on_true)], on_false).unwrap()
}

fn repeat(
    graph: &mut Graph,
    initial: &[ExprId],
    condition: impl FnOnce(&mut Graph, &[ExprId]) -> ExprId,
    body: impl FnOnce(&mut Graph, &[ExprId]) -> Vec<ExprId>,
) -> Vec<ExprId> {
    let condition = |graph: &mut Graph, state: &[ExprId]| Ok(condition(graph, state));
    let body = |graph: &mut Graph, state: &[ExprId]| Ok(body(graph, state));
    graph.repeat_while::<Error>(initial, Replay::default(), condition, body).unwrap()
}

/// Applies a body to a tensor `count` times.
fn repeat_body(
    graph: &mut Graph,
    x: ExprId,
    count: ExprId,
    body: impl FnOnce(&mut Graph, ExprId, ExprId) -> ExprId,
) -> ExprId {
    let zero = integer(graph, 0);
    let results = repeat(
        graph,
        &[zero, x],
        |graph, state| graph.less(state[0], count).unwrap(),
        |graph, state| {
            let one = integer(graph, 1);
            let next = graph.add(state[0], one).unwrap();
            vec![next, body(graph, state[0], state[1])]
        },
    );
    results[1]
}

#[test]
fn cond_differentiates_the_selected_branch() {
    for sign in [-1.0, 1.0] {
        let inputs = [tensor(&[], &[0.7 * sign]), samples(&[3], (0.5, 1.5), 1)];
        check_twice(&inputs, |graph, x| {
            choose(
                graph,
                |graph| {
                    let zero = number(graph, 0.0);
                    graph.greater(x[0], zero).unwrap()
                },
                |graph| {
                    let sine = graph.sin(x[1]).unwrap();
                    vec![graph.multiply(sine, x[0]).unwrap()]
                },
                |graph| vec![graph.multiply(x[1], x[1]).unwrap()],
            )[0]
        });
    }
}

#[test]
fn cond_with_several_clauses_and_results() {
    for value in [0.5, 1.5, 2.5] {
        let inputs = [tensor(&[], &[value]), samples(&[2], (0.5, 1.5), 1), tensor(&[], &[0.3])];
        check(&inputs, |graph, x| {
            let mark = graph.mark();
            let clauses = [1.0, 2.0].map(|bound| {
                let bound = number(graph, bound);
                let predicate = graph.less(x[0], bound).unwrap();
                let predicate = graph.traced(mark, vec![predicate]);
                let first = graph.multiply(x[1], bound).unwrap();
                let second = graph.multiply(x[0], x[0]).unwrap();
                (predicate, graph.traced(mark, vec![first, second]))
            });
            let product = graph.multiply(x[1], x[2]).unwrap();
            let otherwise = graph.traced(mark, vec![product, x[0]]);
            let results = graph.cond(mark, clauses.into(), otherwise).unwrap();
            graph.multiply(results[0], results[1]).unwrap()
        });
    }
}

#[test]
fn unselected_branches_are_not_computed() {
    // The derivative of the other branch divides by zero.
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[0.0])];
    let x = crate::common::parameters(&mut graph, &inputs)[0];
    let y = choose(
        &mut graph,
        |graph| {
            let zero = number(graph, 0.0);
            graph.greater(x, zero).unwrap()
        },
        |graph| vec![graph.log(x).unwrap()],
        |graph| vec![graph.sin(x).unwrap()],
    )[0];
    let found = gradients(&mut graph, y, &[x]).unwrap();
    assert_eq!(f64s(&run(&graph, &inputs, &found)[0]), [1.0]);
}

#[test]
fn only_active_captures_of_a_cond_get_cotangents() {
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[2.0]), tensor(&[], &[3.0])];
    let ids = crate::common::parameters(&mut graph, &inputs);
    let y = choose(
        &mut graph,
        |graph| graph.less(ids[0], ids[1]).unwrap(),
        |graph| vec![graph.multiply(ids[0], ids[1]).unwrap()],
        |graph| vec![graph.floor(ids[1]).unwrap()],
    )[0];
    let found = gradients(&mut graph, y, &[ids[0]]).unwrap();
    let backward = graph
        .ids()
        .rfind(|&id| matches!(graph.op(id), Op::Cond(_)))
        .expect("the gradient contains a cond");
    assert_eq!(graph.ty(backward).parts().len(), 1);
    assert_eq!(f64s(&run(&graph, &inputs, &found)[0]), [3.0]);
}

#[test]
fn while_with_a_dynamic_trip_count() {
    // Includes trip counts above the number of checkpoint slots, and zero.
    for trips in [0, 1, 2, 3, 5, 16, 37] {
        let inputs = [samples(&[2], (0.5, 0.9), 1), integers(&[], &[trips])];
        check(&inputs, |graph, x| {
            repeat_body(graph, x[0], x[1], |graph, _, x| {
                let sine = graph.sin(x).unwrap();
                graph.add(sine, x).unwrap()
            })
        });
    }
}

#[test]
fn long_loops_are_differentiated_by_checkpoints() {
    let trips = 70_000;
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[0.9]), integers(&[], &[trips])];
    let ids = crate::common::parameters(&mut graph, &inputs);
    // `x -> x + a sin(x)` with a small `a`, so that nothing saturates.
    let y = repeat_body(&mut graph, ids[0], ids[1], |graph, _, x| {
        let sine = graph.sin(x).unwrap();
        let step = number(graph, 1e-5);
        let part = graph.multiply(sine, step).unwrap();
        graph.add(x, part).unwrap()
    });
    let found = gradients(&mut graph, y, &[ids[0]]).unwrap();
    let (mut x, mut expected) = (0.9f64, 1.0f64);
    for _ in 0..trips {
        expected *= 1.0 + 1e-5 * x.cos();
        x += 1e-5 * x.sin();
    }
    let found = f64s(&run(&graph, &inputs, &found)[0])[0];
    assert!((found - expected).abs() < 1e-9 * expected, "{found} instead of {expected}");
}

#[test]
fn while_until_a_value_is_reached() {
    check(&[tensor(&[], &[1.3])], |graph, x| {
        repeat(
            graph,
            &[x[0]],
            |graph, state| {
                let bound = number(graph, 50.0);
                graph.less(state[0], bound).unwrap()
            },
            |graph, state| vec![graph.multiply(state[0], x[0]).unwrap()],
        )[0]
    });
}

#[test]
fn while_with_captures_counters_and_several_states() {
    let inputs =
        [samples(&[3], (0.5, 0.9), 1), samples(&[3], (0.4, 0.8), 2), samples(&[4], (0.1, 0.9), 3)];
    check(&inputs, |graph, x| {
        let (zero, one) = (integer(graph, 0), integer(graph, 1));
        let results = repeat(
            graph,
            &[zero, x[0], x[1]],
            |graph, state| {
                let count = integer(graph, 4);
                graph.less(state[0], count).unwrap()
            },
            |graph, state| {
                // A capture that is read at a varying index, and states that are exchanged.
                let item = graph.slice(x[2], &[state[0].into()], &[1], None).unwrap();
                let product = graph.multiply(state[1], item).unwrap();
                let sum = graph.add(product, x[0]).unwrap();
                let next = graph.add(state[0], one).unwrap();
                vec![next, state[2], sum]
            },
        );
        graph.multiply(results[1], results[2]).unwrap()
    });
}

#[test]
fn second_derivative_of_a_while() {
    let inputs = [samples(&[2], (0.5, 0.9), 1), integers(&[], &[5])];
    check_twice(&inputs, |graph, x| {
        repeat_body(graph, x[0], x[1], |graph, _, x| graph.multiply(x, x).unwrap())
    });
}

#[test]
fn nested_loops_and_branches() {
    let inputs = [samples(&[2], (0.5, 0.9), 1), integers(&[], &[3])];
    check(&inputs, |graph, x| {
        repeat_body(graph, x[0], x[1], |graph, count, value| {
            let inner = repeat_body(graph, value, count, |graph, _, value| {
                graph.multiply(value, x[0]).unwrap()
            });
            choose(
                graph,
                |graph| {
                    let one = integer(graph, 1);
                    graph.equal(count, one).unwrap()
                },
                |graph| vec![graph.exp(inner).unwrap()],
                |graph| vec![graph.sin(inner).unwrap()],
            )[0]
        })
    });
}

#[test]
fn integer_loops_keep_float_gradient_dtypes() {
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[1.5])];
    let x = crate::common::parameters(&mut graph, &inputs)[0];
    let count = integer(&mut graph, 3);
    let y = repeat_body(&mut graph, x, count, |graph, count, x| graph.multiply(count, x).unwrap());
    let found = gradients(&mut graph, y, &[x]).unwrap();
    assert_eq!(graph.dtype(found[0]), DType::F64);
    assert_eq!(f64s(&run(&graph, &inputs, &found)[0]), [0.0]);
}

#[test]
fn counted_loops_evaluate_the_body_once_per_iteration() {
    let calls = count_evaluations(&[tensor(&[], &[0.5])], |graph, _| integer(graph, 1000));
    assert_eq!(calls, 1000);
}

#[test]
fn dynamic_loops_evaluate_the_body_a_few_times_per_iteration() {
    let calls = count_evaluations(&[tensor(&[], &[0.5]), integers(&[], &[1000])], |_, x| x[1]);
    assert!((1500..=3500).contains(&calls), "{calls} evaluations of the body");
}

/// Counts how often the gradient of a loop with a trip count evaluates the `sin` of an iteration.
fn count_evaluations(
    inputs: &[HostTensor],
    count: impl FnOnce(&mut Graph, &[ExprId]) -> ExprId,
) -> usize {
    let calls = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::new();
    let x = crate::common::parameters(&mut graph, inputs);
    let count = count(&mut graph, &x);
    let y = repeat_body(&mut graph, x[0], count, |graph, _, x| graph.sin(x).unwrap());
    let found = gradients(&mut graph, y, &x[..1]).unwrap();
    // Inserts a counting hook for each `sin` of the derivative.
    let types = || crate::common::types(inputs);
    let derivative = nxla_expr::Program::new(&graph, types(), &found).unwrap();
    let counted = count_ops(derivative.graph(), derivative.outputs()[0], &calls);
    let program = nxla_expr::Program::new(&counted.0, types(), &[counted.1]).unwrap();
    nxla_eval::evaluate(&program, inputs.to_vec()).unwrap();
    calls.load(Ordering::Relaxed)
}

/// Copies the graph with a counting hook for every `sin` in a region.
fn count_ops(graph: &Graph, root: ExprId, calls: &Arc<AtomicUsize>) -> (Graph, ExprId) {
    let mut copy = Graph::new();
    let mut new_id = Vec::new();
    for id in graph.ids().take(root.index() + 1) {
        let operands: Vec<ExprId> =
            graph.operands(id).iter().map(|&operand| new_id[ExprId::index(operand)]).collect();
        let op = graph.op(id).map_regions(|program| {
            let last = *program.outputs().iter().max().unwrap();
            let last = last.max(ExprId::from_index(program.graph().len() - 1));
            let (mut inner, _) = count_ops(program.graph(), last, calls);
            let counters: Vec<ExprId> = inner
                .ids()
                .filter(|&id| *inner.op(id) == Op::Unary(nxla_expr::UnaryOp::Sin))
                .collect();
            for id in counters {
                let calls = calls.clone();
                let counter =
                    move |_: &[HostTensor]| -> std::result::Result<(), nxla_expr::HostError> {
                        calls.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    };
                inner.hook(&[id], None, Some(Arc::new(counter))).unwrap();
            }
            let inputs = program.inputs().to_vec();
            Arc::new(nxla_expr::Program::new(&inner, inputs, program.outputs()).unwrap())
        });
        new_id.push(copy.make(op, &operands).unwrap());
        assert_eq!(new_id.last(), Some(&id), "a copy has the ids of the original");
    }
    (copy, new_id[root.index()])
}

#[test]
fn stop_grad_is_a_constant() {
    check_gradient(
        |graph, x| {
            let exp = graph.exp(x).unwrap();
            let stopped = graph.stop_grad(exp).unwrap();
            graph.multiply(stopped, x).unwrap()
        },
        1.5f64.exp(),
    );
    check_gradient(
        |graph, x| {
            let stopped = graph.stop_grad(x).unwrap();
            graph.multiply(stopped, stopped).unwrap()
        },
        0.0,
    );
}

fn check_gradient(build: impl Fn(&mut Graph, ExprId) -> ExprId, expected: f64) {
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[1.5])];
    let x = crate::common::parameters(&mut graph, &inputs)[0];
    let y = build(&mut graph, x);
    let found = gradients(&mut graph, y, &[x]).unwrap();
    assert_eq!(f64s(&run(&graph, &inputs, &found)[0]), [expected]);
}

#[test]
fn stop_grad_allows_ops_without_rules() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, nxla_expr::TensorType::new(DType::S32, [2]));
    let two = graph.scalar_constant(Scalar::Int(2), DType::S32).unwrap();
    let halves = graph.quotient(x, two).unwrap();
    let stopped = graph.stop_grad(halves).unwrap();
    let y = graph.add(stopped, x).unwrap();
    assert!(gradients(&mut graph, y, &[x]).is_ok());
    let bad = graph.add(halves, x).unwrap();
    assert!(gradients(&mut graph, bad, &[x]).is_err());
}

fn custom(
    graph: &mut Graph,
    outputs: &[ExprId],
    inputs: &[ExprId],
    rule: impl FnOnce(&mut Graph, &[ExprId]) -> Vec<ExprId>,
) -> Vec<ExprId> {
    graph
        .custom_grad(outputs, inputs, |graph, dy| -> Result<Vec<ExprId>> { Ok(rule(graph, dy)) })
        .unwrap()
}

#[test]
fn custom_grad_replaces_the_derivative() {
    let mut graph = Graph::new();
    let inputs = [tensor(&[2], &[0.5, 1.5]), tensor(&[2], &[2.0, 3.0])];
    let ids = crate::common::parameters(&mut graph, &inputs);
    let product = graph.multiply(ids[0], ids[1]).unwrap();
    let sum = graph.add(ids[0], ids[1]).unwrap();
    let results = custom(&mut graph, &[product, sum], &ids, |graph, dy| {
        let hundred = number(graph, 100.0);
        let first = graph.multiply(dy[0], hundred).unwrap();
        // The second cotangent is a scalar that uses a captured value.
        let total = graph.sum(ids[1], None, false).unwrap();
        vec![graph.add(first, dy[1]).unwrap(), total]
    });
    let product = graph.multiply(results[0], ids[0]).unwrap();
    let y = graph.add(product, results[1]).unwrap();
    let found = gradients(&mut graph, y, &ids).unwrap();
    let found = run(&graph, &inputs, &found);
    // The rule contributes `100 x + 1`, and the multiplication outside contributes the product
    // itself.
    assert_eq!(f64s(&found[0]), [50.0 + 1.0 + 1.0, 150.0 + 1.0 + 4.5]);
    assert_eq!(f64s(&found[1]), [5.0, 5.0]);
}

#[test]
fn custom_grad_of_one_output_and_no_input() {
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[0.5])];
    let x = crate::common::parameters(&mut graph, &inputs)[0];
    let cos = graph.cos(x).unwrap();
    let y = custom(&mut graph, &[cos], &[], |_, _| vec![])[0];
    let found = gradients(&mut graph, y, &[x]).unwrap();
    assert_eq!(f64s(&run(&graph, &inputs, &found)[0]), [0.0]);
}

#[test]
fn custom_grad_differentiates_again() {
    check_twice(&[tensor(&[], &[0.5])], |graph, x| {
        let sine = graph.sin(x[0]).unwrap();
        custom(graph, &[sine], &[x[0]], |graph, dy| {
            let cosine = graph.cos(x[0]).unwrap();
            vec![graph.multiply(dy[0], cosine).unwrap()]
        })[0]
    });
}

#[test]
fn custom_grad_inside_a_loop() {
    let inputs = [tensor(&[], &[0.5]), integers(&[], &[4])];
    check(&inputs, |graph, x| {
        repeat_body(graph, x[0], x[1], |graph, _, x| {
            let sine = graph.sin(x).unwrap();
            custom(graph, &[sine], &[x], |graph, dy| {
                let cosine = graph.cos(x).unwrap();
                vec![graph.multiply(dy[0], cosine).unwrap()]
            })[0]
        })
    });
}

#[test]
fn cotangents_of_wrong_shape_are_errors() {
    let mut graph = Graph::new();
    let x = crate::common::parameters(&mut graph, &[tensor(&[2], &[0.5, 0.6])])[0];
    let cos = graph.cos(x).unwrap();
    let error = graph
        .custom_grad(&[cos], &[x], |graph, _| {
            Ok::<_, Error>(vec![graph.iota([3], None, DType::F64)?])
        })
        .unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(
        "custom_grad: rule: must return a cotangent of type f64[2] for input 0; got f64[3]"
    ));
}

/// Computes `sin x` with the tangent rule `rule`.
fn custom_sine(
    graph: &mut Graph,
    x: ExprId,
    rule: impl FnOnce(&mut Graph, ExprId) -> ExprId,
) -> ExprId {
    let y = graph.sin(x).unwrap();
    let open = graph.open_rule(RuleFor::Tangents, &[x]);
    let change = rule(graph, open.changes()[0]);
    graph.close_rule(open, &[y], &[x], vec![change]).unwrap()[0]
}

#[test]
fn custom_jvp_defines_gradients() {
    // A correct rule agrees with finite differences in both modes, twice.
    let inputs = [samples(&[3], (0.5, 1.5), 1), integers(&[], &[3])];
    check_twice(&inputs, |graph, x| {
        repeat_body(graph, x[0], x[1], |graph, _, x| {
            let y = custom_sine(graph, x, |graph, dx| {
                let slope = graph.cos(x).unwrap();
                graph.multiply(dx, slope).unwrap()
            });
            graph.multiply(y, x).unwrap()
        })
    });
    // Another rule replaces the derivative.
    let inputs = [tensor(&[2], &[0.5, 0.6])];
    let mut graph = Graph::new();
    let x = crate::common::parameters(&mut graph, &inputs)[0];
    let y = custom_sine(&mut graph, x, |graph, dx| {
        let seven = number(graph, 7.0);
        graph.multiply(dx, seven).unwrap()
    });
    let gradient = gradients(&mut graph, y, &[x]).unwrap();
    assert_eq!(f64s(&run(&graph, &inputs, &gradient)[0]), [7.0, 7.0]);
}

#[test]
fn custom_jvp_that_is_not_linear_has_no_gradient() {
    let mut graph = Graph::new();
    let x = crate::common::parameters(&mut graph, &[tensor(&[2], &[0.5, 0.6])])[0];
    let y = custom_sine(&mut graph, x, |graph, dx| graph.multiply(dx, dx).unwrap());
    let error = gradients(&mut graph, y, &[x]).unwrap_err();
    assert!(error.to_string().starts_with("custom_jvp: rule: must be linear"), "{error}");
}

#[test]
fn tangents_of_wrong_shape_are_errors() {
    let mut graph = Graph::new();
    let x = crate::common::parameters(&mut graph, &[tensor(&[2], &[0.5, 0.6])])[0];
    let y = graph.cos(x).unwrap();
    let open = graph.open_rule(RuleFor::Tangents, &[x]);
    let wide = graph.iota([3], None, DType::F64).unwrap();
    let error = graph.close_rule(open.clone(), &[y], &[x], vec![wide]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("custom_jvp: rule: must return a tangent of type f64[2] for result 0")
    );
    let error = graph.close_rule(open, &[y], &[x], Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("custom_jvp: rule: must return 1 tangents"));
}

#[test]
fn metadata_is_transparent_to_derivatives() {
    check(&[samples(&[2], (0.5, 1.5), 1), samples(&[3], (0.5, 1.5), 2)], |graph, x| {
        let inspect = Some("seen".into());
        let metadata = Metadata { inspect, ..Metadata::default() };
        let node = graph.metadata(x, metadata).unwrap();
        let parts = graph.parts(node).unwrap();
        let sine = graph.sin(parts[1]).unwrap();
        let first = graph.slice(sine, &[0.into()], &[2], None).unwrap();
        graph.multiply(parts[0], first).unwrap()
    });
}

#[test]
fn hooks_pass_derivatives_and_run_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[0.5]), integers(&[], &[3])];
    let ids = crate::common::parameters(&mut graph, &inputs);
    let counter = {
        let calls = calls.clone();
        Arc::new(move |_: &[HostTensor]| -> std::result::Result<(), nxla_expr::HostError> {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    };
    let seen = graph.hook(&[ids[0], ids[1]], None, Some(counter.clone())).unwrap();
    let looped = repeat_body(&mut graph, seen[0], seen[1], |graph, _, x| {
        let chosen = choose(
            graph,
            |graph| {
                let zero = number(graph, 0.0);
                graph.greater(x, zero).unwrap()
            },
            |graph| {
                let sine = graph.sin(x).unwrap();
                graph.hook(&[sine, x], None, Some(counter.clone())).unwrap()
            },
            |_| vec![x, x],
        );
        graph.multiply(chosen[0], chosen[1]).unwrap()
    });
    let found = gradients(&mut graph, looped, &[ids[0]]).unwrap();
    run(&graph, &inputs, &[looped, found[0]]);
    assert_eq!(calls.load(Ordering::Relaxed), 1 + 3);
}

#[test]
fn hooks_of_a_custom_rule_run_in_the_derivative() {
    let calls = Arc::new(AtomicUsize::new(0));
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[0.5]), integers(&[], &[3])];
    let ids = crate::common::parameters(&mut graph, &inputs);
    let y = repeat_body(&mut graph, ids[0], ids[1], |graph, _, x| {
        let sine = graph.sin(x).unwrap();
        let calls = calls.clone();
        custom(graph, &[sine], &[x], |graph, dy| {
            let counter = move |_: &[HostTensor]| -> std::result::Result<(), nxla_expr::HostError> {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            graph.hook(dy, None, Some(Arc::new(counter))).unwrap()
        })[0]
    });
    run(&graph, &inputs, &[y]);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let found = gradients(&mut graph, y, &[ids[0]]).unwrap();
    run(&graph, &inputs, &found);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn blocks_differentiate_through_their_default() {
    let inputs = [samples(&[3], (0.5, 1.5), 1), samples(&[3], (0.5, 1.5), 2)];
    check_twice(&inputs, |graph, x| {
        // The operands depend on each other, and one value is captured.
        let sine = graph.sin(x[0]).unwrap();
        let results = graph
            .block("mix", Vec::new(), &[x[0], sine], |graph, inner| -> Result<Vec<ExprId>> {
                let product = graph.multiply(inner[0], inner[1])?;
                let scaled = graph.multiply(product, x[1])?;
                Ok(vec![scaled, graph.sin(inner[0])?, graph.floor(inner[1])?])
            })
            .unwrap();
        let sum = graph.add(results[0], results[1]).unwrap();
        graph.add(sum, results[2]).unwrap()
    });
    use nxla_expr::build::Cumulative;
    for op in [Cumulative::Sum, Cumulative::Product, Cumulative::Max, Cumulative::Min] {
        check_with(&[samples(&[2, 5], (0.5, 1.5), 1)], 1e-6, |graph, x| {
            graph.cumulative(op, x[0], 1, false).unwrap()
        });
    }
}

#[test]
fn unneeded_ops_without_rules_are_ignored() {
    // The counter of a loop that also carries a float may be divided as an integer.
    let mut graph = Graph::new();
    let inputs = [tensor(&[], &[1.5])];
    let x = crate::common::parameters(&mut graph, &inputs)[0];
    let (zero, one, three) =
        (integer(&mut graph, 0), integer(&mut graph, 1), integer(&mut graph, 3));
    let results = repeat(
        &mut graph,
        &[zero, x],
        |graph, state| graph.less(state[0], three).unwrap(),
        |graph, state| {
            let next = graph.add(state[0], one).unwrap();
            vec![next, graph.multiply(state[1], x).unwrap()]
        },
    );
    let two = integer(&mut graph, 2);
    let half = graph.quotient(results[0], two).unwrap();
    let y = graph.multiply(half, results[1]).unwrap();
    let found = gradients(&mut graph, y, &[x]).unwrap();
    assert_eq!(f64s(&run(&graph, &inputs, &found)[0]), [4.0 * 1.5f64.powi(3)]);
}

/// Returns the number of states of each loop of a program, without loops inside regions.
fn loops(graph: &Graph, inputs: &[HostTensor], outputs: &[ExprId]) -> Vec<usize> {
    let program = nxla_expr::Program::new(graph, crate::common::types(inputs), outputs).unwrap();
    let graph = program.graph();
    let carried = |id| match graph.op(id) {
        Op::While(op) => Some(op.state),
        _ => None,
    };
    graph.ids().filter_map(carried).collect()
}

#[test]
fn counted_loops_are_not_run_twice() {
    let inputs = [samples(&[3], (0.5, 1.5), 1), samples(&[3], (0.5, 1.5), 2)];
    let mut graph = Graph::new();
    let x = crate::common::parameters(&mut graph, &inputs);
    let count = integer(&mut graph, 7);
    let y = repeat_body(&mut graph, x[0], count, |graph, _, state| {
        let product = graph.multiply(state, x[1]).unwrap();
        graph.sin(product).unwrap()
    });
    let y = graph.exp(y).unwrap();
    let (values, gradients) = nxla_grad::values_and_gradients(&mut graph, &[y], y, &x).unwrap();
    let all: Vec<ExprId> = values.iter().chain(&gradients).copied().collect();
    // The forward loop carries the counter, the state, the iteration number and two residuals; the
    // backward loop carries the iteration number and the cotangents of the state and the capture.
    assert_eq!(loops(&graph, &inputs, &all), [5, 3]);
}

#[test]
fn loop_invariants_are_hoisted_out_of_derivatives() {
    let inputs = [samples(&[3], (0.5, 1.5), 1), samples(&[3], (0.5, 1.5), 2)];
    let mut graph = Graph::new();
    let x = crate::common::parameters(&mut graph, &inputs);
    let count = integer(&mut graph, 7);
    // Linear in the state, so the derivative needs no residuals.
    let y = repeat_body(&mut graph, x[0], count, |graph, _, state| {
        let slope = graph.sin(x[1]).unwrap();
        graph.multiply(state, slope).unwrap()
    });
    let gradient = gradients(&mut graph, y, &[x[0]]).unwrap();
    assert_eq!(loops(&graph, &inputs, &gradient), [2]);
}

#[test]
fn trip_counts_of_all_comparisons_are_found() {
    type Compare = fn(&mut Graph, ExprId, ExprId) -> Result<ExprId>;
    let cases: [(Compare, i64, i64, i64); 6] = [
        (Graph::less, 0, 1, 5),
        (Graph::less_equal, -2, 2, 5),
        (Graph::greater, 9, -2, 1),
        (Graph::greater_equal, 9, -4, 1),
        // Comparisons with the bound as the first operand.
        (|graph, i, end| graph.greater(end, i), 1, 3, 8),
        (|graph, i, end| graph.less_equal(end, i), 3, -1, 1),
    ];
    for (compare, first, step, bound) in cases {
        check(&[samples(&[2], (0.5, 0.9), 1)], |graph, x| {
            let start = integer(graph, first);
            let states = repeat(
                graph,
                &[start, x[0]],
                |graph, state| {
                    let end = integer(graph, bound);
                    compare(graph, state[0], end).unwrap()
                },
                |graph, state| {
                    let step = integer(graph, step);
                    let position = graph.as_type(state[0], DType::F64).unwrap();
                    let weight = graph.cos(position).unwrap();
                    let next = graph.sin(state[1]).unwrap();
                    let next = graph.multiply(next, weight).unwrap();
                    vec![graph.add(state[0], step).unwrap(), next]
                },
            );
            states[1]
        });
    }
}

#[test]
fn nested_counted_loops() {
    check_twice(&[samples(&[2], (0.5, 0.9), 1), samples(&[2], (0.5, 0.9), 2)], |graph, x| {
        let outer = integer(graph, 3);
        repeat_body(graph, x[0], outer, |graph, _, state| {
            let inner = integer(graph, 4);
            let product = repeat_body(graph, state, inner, |graph, _, state| {
                let sine = graph.sin(state).unwrap();
                graph.multiply(sine, x[1]).unwrap()
            });
            graph.add(product, state).unwrap()
        })
    });
}

#[test]
fn rows_of_sequences_accumulate_cotangents() {
    let inputs = [samples(&[], (0.5, 0.9), 1), samples(&[5], (0.5, 0.9), 2)];
    check_twice(&inputs, |graph, x| {
        let count = integer(graph, 5);
        repeat_body(graph, x[0], count, |graph, i, state| {
            let start = nxla_expr::build::SliceStart::from(i);
            let row = graph.slice(x[1], &[start], &[1], None).unwrap();
            let row = graph.reshape(row, nxla_tensor::Shape::scalar()).unwrap();
            let sine = graph.sin(state).unwrap();
            graph.multiply(sine, row).unwrap()
        })
    });
}

#[test]
fn consecutive_loops_run_once_each() {
    let inputs = [samples(&[3], (0.5, 1.5), 1)];
    let mut graph = Graph::new();
    let x = crate::common::parameters(&mut graph, &inputs);
    let count = integer(&mut graph, 4);
    let sine = |graph: &mut Graph, _, state| graph.sin(state).unwrap();
    let first = repeat_body(&mut graph, x[0], count, sine);
    let middle = graph.exp(first).unwrap();
    let second = repeat_body(&mut graph, middle, count, sine);
    let (values, gradients) =
        nxla_grad::values_and_gradients(&mut graph, &[second, middle], second, &x).unwrap();
    let all: Vec<ExprId> = values.iter().chain(&gradients).copied().collect();
    assert_eq!(loops(&graph, &inputs, &all).len(), 4);
}
