//! Stored and recomputed values: checkpoints, loops and folds have equal derivatives in every mode.

use crate::common::{check, check_twice, integers, number, samples, tensor};
use nxla_expr::{ExprId, Graph, Keep, Op, Replay, ReplayMethod, Result};
use nxla_grad::{GradError, gradients};
use nxla_tensor::{DType, Scalar};

fn checkpoint(
    graph: &mut Graph,
    keep: &Keep,
    operands: &[ExprId],
    body: impl FnOnce(&mut Graph, &[ExprId]) -> Result<ExprId>,
) -> ExprId {
    let open = graph.open_block(operands);
    let parameters = open.parameters().to_vec();
    let result = body(graph, &parameters).unwrap();
    graph.close_checkpoint(open, keep.clone(), vec![result]).unwrap()[0]
}

#[test]
fn checkpoints_do_not_change_derivatives() {
    let all = [Keep::Nothing, Keep::Products, Keep::Named(vec!["sine".into()]), Keep::Everything];
    for keep in all {
        let inputs = [samples(&[2, 2], (0.2, 0.9), 1), samples(&[2, 2], (0.2, 0.9), 2)];
        check_twice(&inputs, |graph, x| {
            let first = checkpoint(graph, &keep, x, |graph, x| {
                let product = graph.matmul(x[0], x[1])?;
                graph.sin(product)
            });
            // A nested checkpoint, which captures an outer value.
            checkpoint(graph, &keep, &[first], |graph, y| {
                let inner = checkpoint(graph, &Keep::Nothing, y, |graph, y| graph.cos(y[0]));
                graph.multiply(inner, x[1])
            })
        });
    }
}

#[test]
fn checkpointed_blocks_are_recomputed() {
    let inputs = [samples(&[3], (0.2, 0.9), 1)];
    let blocks = |keep: &Keep| {
        let mut graph = Graph::new();
        let x = crate::common::parameters(&mut graph, &inputs)[0];
        let y = checkpoint(&mut graph, keep, &[x], |graph, x| {
            let sine = graph.sin(x[0])?;
            graph.exp(sine)
        });
        let (values, found) = nxla_grad::values_and_gradients(&mut graph, &[y], y, &[x]).unwrap();
        let roots: Vec<ExprId> = values.into_iter().chain(found).collect();
        let program =
            nxla_expr::Program::new(&graph, crate::common::types(&inputs), &roots).unwrap();
        let graph = program.graph();
        let exps = graph.ids().filter_map(|id| match graph.op(id) {
            Op::Block(block) => Some(block.body.graph()),
            _ => None,
        });
        let is_exp = |graph: &Graph, id| *graph.op(id) == Op::Unary(nxla_expr::UnaryOp::Exp);
        exps.map(|graph| graph.ids().filter(|&id| is_exp(graph, id)).count()).collect::<Vec<_>>()
    };
    // The block runs forward, and once more in the derivative unless its values are stored.
    assert_eq!(blocks(&Keep::Nothing), [1, 1]);
    assert_eq!(blocks(&Keep::Everything), [1, 0]);
}

/// Repeats `x = sin(x) w` while a counter is below a bound and a sum is below another bound.
fn repeat(graph: &mut Graph, x: &[ExprId], bound: ExprId, replay: Replay, open: bool) -> ExprId {
    repeat_step(graph, x[0], bound, (replay, open), |graph, state| {
        let sine = graph.sin(state).unwrap();
        graph.multiply(sine, x[1]).unwrap()
    })
}

/// Does the same as `repeat` with another step.
fn repeat_step(
    graph: &mut Graph,
    start: ExprId,
    bound: ExprId,
    (replay, open): (Replay, bool),
    step: impl FnOnce(&mut Graph, ExprId) -> ExprId,
) -> ExprId {
    let integer =
        |graph: &mut Graph, value| graph.scalar_constant(Scalar::Int(value), DType::S64).unwrap();
    let initial = [integer(graph, 0), start];
    let goes_on = |graph: &mut Graph, state: &[ExprId]| -> nxla_expr::Result<ExprId> {
        let holds = graph.less(state[0], bound)?;
        if !open {
            return Ok(holds);
        }
        let total = graph.sum(state[1], None, false)?;
        let far = number(graph, 100.0);
        let near = graph.less(total, far)?;
        graph.logical_and(holds, near)
    };
    let next = |graph: &mut Graph, state: &[ExprId]| {
        let one = integer(graph, 1);
        Ok(vec![graph.add(state[0], one)?, step(graph, state[1])])
    };
    graph.repeat_while(&initial, replay, goes_on, next).unwrap()[1]
}

#[test]
fn loop_derivatives_do_not_depend_on_residuals() {
    for method in ReplayMethod::ALL {
        for bytes in [0, 200, Replay::BYTES] {
            let replay = Replay { method, bytes };
            for (trips, open) in [(1, false), (11, false), (11, true)] {
                let inputs = [samples(&[2], (0.5, 0.9), 1), samples(&[2], (0.5, 0.9), 2)];
                check(&inputs, |graph, x| {
                    let bound = graph.scalar_constant(Scalar::Int(trips), DType::S64).unwrap();
                    repeat(graph, x, bound, replay, open)
                });
            }
        }
    }
}

#[test]
fn weight_gradients_are_one_product_over_all_iterations() {
    // Weights on the right, transposed and on the left, and a bias, which is not part of a product.
    // The last two weights are equal.
    let inputs = [&[2, 3][..], &[3, 4], &[4, 4], &[4, 3], &[3]];
    let inputs = inputs.map(|shape| samples(shape, (-0.9, 0.9), shape[0] as u64));
    let build = |graph: &mut Graph, x: &[ExprId], replay: Replay, open: bool| {
        let bound = graph.scalar_constant(Scalar::Int(5), DType::S64).unwrap();
        repeat_step(graph, x[0], bound, (replay, open), |graph, h| {
            let y = graph.dot(h, x[1]).unwrap();
            let once = graph.dot(y, x[2]).unwrap();
            let transposed = graph.transpose(x[2], None).unwrap();
            let twice = graph.dot(y, transposed).unwrap();
            let y = graph.multiply(once, twice).unwrap();
            let y = graph.dot(y, x[3]).unwrap();
            let y = graph.add(y, x[4]).unwrap();
            graph.tanh(y).unwrap()
        })
    };
    // Without memory for additional rows, the products are summed in each iteration.
    let without_memory = Replay { method: ReplayMethod::Store, bytes: 0 };
    for (replay, inside) in [(Replay::default(), 8), (without_memory, 12)] {
        for open in [false, true] {
            check_twice(&inputs, |graph, x| build(graph, x, replay, open));
        }
        let mut graph = Graph::new();
        let x = crate::common::parameters(&mut graph, &inputs);
        let y = build(&mut graph, &x, replay, false);
        let found = gradients(&mut graph, y, &x).unwrap();
        let program =
            nxla_expr::Program::new(&graph, crate::common::types(&inputs), &found).unwrap();
        let dots = |graph: &Graph| {
            let is_dot = |id: &ExprId| matches!(graph.op(*id), Op::Dot(_));
            graph.ids().filter(is_dot).count()
        };
        let graph = program.graph();
        let loops = graph.ids().filter_map(|id| match graph.op(id) {
            Op::While(op) => Some(dots(op.body.graph())),
            _ => None,
        });
        let loops: Vec<usize> = loops.collect();
        assert_eq!(loops.iter().sum::<usize>(), inside, "{program}");
    }
}

#[test]
fn derivable_residuals_are_not_stored() {
    let inputs = [samples(&[3], (0.2, 0.9), 1), samples(&[3], (-0.9, 0.9), 2)];
    let build = |graph: &mut Graph, x: &[ExprId]| {
        let bound = graph.scalar_constant(Scalar::Int(5), DType::S64).unwrap();
        repeat_step(graph, x[0], bound, (Replay::default(), false), |graph, state| {
            let product = graph.multiply(state, x[1]).unwrap();
            let gate = graph.sigmoid(product).unwrap();
            graph.multiply(gate, state).unwrap()
        })
    };
    check_twice(&inputs, build);
    let mut graph = Graph::new();
    let x = crate::common::parameters(&mut graph, &inputs);
    let y = build(&mut graph, &x);
    let found = gradients(&mut graph, y, &x).unwrap();
    let program = nxla_expr::Program::new(&graph, crate::common::types(&inputs), &found).unwrap();
    let graph = program.graph();
    let states = graph.ids().find_map(|id| match graph.op(id) {
        Op::While(op) => Some(op.state),
        _ => None,
    });
    // The counter, the state, the trip, and rows of the state and of the gate `g`; `g (1 - g)`
    // follows from the gate.
    assert_eq!(states, Some(5), "{program}");
}

#[test]
fn dynamic_trip_counts_match_constant_trip_counts() {
    let mut inputs = vec![tensor(&[2], &[0.7, 0.6]), tensor(&[2], &[0.9, 0.8])];
    inputs.push(integers(&[], &[300]));
    for method in ReplayMethod::ALL {
        let mut graph = Graph::new();
        let x = crate::common::parameters(&mut graph, &inputs);
        let replay = Replay { method, ..Replay::default() };
        let y = repeat(&mut graph, &x, x[2], replay, false);
        let found = gradients(&mut graph, y, &x[..2]);
        match method {
            ReplayMethod::Store | ReplayMethod::Recompute => {
                let error = found.unwrap_err();
                assert!(matches!(error, GradError::NotDifferentiable { op: "while", .. }));
            }
            ReplayMethod::Auto | ReplayMethod::Sqrt | ReplayMethod::Log => {
                let mut known = Graph::new();
                let x = crate::common::parameters(&mut known, &inputs);
                let bound = known.scalar_constant(Scalar::Int(300), DType::S64).unwrap();
                let y = repeat(&mut known, &x, bound, Replay::default(), false);
                let expected = gradients(&mut known, y, &x[..2]).unwrap();
                let expected = crate::common::run(&known, &inputs, &expected);
                let found = crate::common::run(&graph, &inputs, &found.unwrap());
                for (found, expected) in found.iter().zip(&expected) {
                    let pairs =
                        crate::common::f64s(found).into_iter().zip(crate::common::f64s(expected));
                    assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() <= 1e-12));
                }
            }
        }
    }
}

#[test]
fn folds_have_the_derivatives_of_equivalent_ops() {
    type Function = fn(&mut Graph, ExprId, ExprId) -> Result<ExprId>;
    let functions: [Function; 4] = [
        |graph, x, a| graph.add(a, x),
        |graph, x, a| graph.multiply(x, a),
        |graph, x, a| graph.max(x, a),
        |graph, x, a| {
            let half = graph.scalar_constant(Scalar::Float(0.5), DType::F64)?;
            let less = graph.multiply(a, half)?;
            let square = graph.multiply(x, x)?;
            graph.add(less, square)
        },
    ];
    for function in functions {
        let inputs = [samples(&[3, 4], (0.3, 0.9), 1), tensor(&[], &[0.45])];
        for axes in [None, Some(&[0_i64][..]), Some(&[1][..])] {
            check(&inputs, |graph, x| graph.reduce_fun(x[0], x[1], axes, false, function).unwrap());
        }
    }
}
