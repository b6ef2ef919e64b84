//! Custom rules in the other mode of differentiation: loops that compute coefficients and tangents
//! together are linear.

use std::sync::Arc;

use crate::common::{check_twice, integers, number, parameters, samples, tensor, types};
use nxla_expr::{Error, ExprId, Graph, Program, Replay, RuleFor};
use nxla_grad::{DiffCounts, GradError, gradients, pullback};
use nxla_tensor::{DType, HostTensor, Scalar};

/// The end of a loop.
#[derive(Clone, Copy)]
enum End {
    /// A constant number of iterations.
    Count(i64),
    /// A number of iterations that is known at run time.
    Input(ExprId),
    /// The first state reaches a bound.
    Bound(f64),
}

fn integer(graph: &mut Graph, value: i64) -> ExprId {
    graph.scalar_constant(Scalar::Int(value), DType::S64).unwrap()
}

/// Repeats a body, which receives the number of the iteration and the states.
fn repeat(
    graph: &mut Graph,
    end: End,
    initial: &[ExprId],
    body: impl FnOnce(&mut Graph, ExprId, &[ExprId]) -> Vec<ExprId>,
) -> Vec<ExprId> {
    let initial: Vec<ExprId> =
        std::iter::once(integer(graph, 0)).chain(initial.iter().copied()).collect();
    let condition = |graph: &mut Graph, state: &[ExprId]| match end {
        End::Count(count) => {
            let count = integer(graph, count);
            graph.less(state[0], count)
        }
        End::Input(count) => graph.less(state[0], count),
        End::Bound(bound) => {
            let bound = number(graph, bound);
            graph.less(state[1], bound)
        }
    };
    let body = |graph: &mut Graph, state: &[ExprId]| {
        let one = integer(graph, 1);
        let mut next = vec![graph.add(state[0], one)?];
        next.extend(body(graph, state[0], &state[1..]));
        Ok(next)
    };
    let results = graph.repeat_while::<Error>(&initial, Replay::default(), condition, body);
    results.unwrap().split_off(1)
}

/// Attaches a tangent rule to `y`.
fn with_rule(
    graph: &mut Graph,
    y: ExprId,
    x: ExprId,
    rule: impl FnOnce(&mut Graph, ExprId) -> ExprId,
) -> ExprId {
    let open = graph.open_rule(RuleFor::Tangents, &[x]);
    let change = rule(graph, open.changes()[0]);
    graph.close_rule(open, &[y], &[x], vec![change]).unwrap()[0]
}

/// Repeats `c = sin(c) * x + 0.5`, starting at `x`. With a tangent, also returns the tangent of `c`.
fn sines(graph: &mut Graph, end: End, x: ExprId, tangent: Option<ExprId>) -> Vec<ExprId> {
    let initial: Vec<ExprId> = [x].into_iter().chain(tangent).collect();
    repeat(graph, end, &initial, |graph, _, state| {
        let half = number(graph, 0.5);
        let sine = graph.sin(state[0]).unwrap();
        let product = graph.multiply(sine, x).unwrap();
        let mut next = vec![graph.add(product, half).unwrap()];
        if let Some(tangent) = tangent {
            let cosine = graph.cos(state[0]).unwrap();
            let slope = graph.multiply(cosine, x).unwrap();
            let inner = graph.multiply(slope, state[1]).unwrap();
            let outer = graph.multiply(sine, tangent).unwrap();
            next.push(graph.add(inner, outer).unwrap());
        }
        next
    })
}

#[test]
fn loops_with_coefficients_are_transposed() {
    let inputs = [tensor(&[], &[0.6]), integers(&[], &[3])];
    for end in [Some(End::Count(3)), Some(End::Bound(0.95)), None] {
        check_twice(&inputs, |graph, x| {
            let end = end.unwrap_or(End::Input(x[1]));
            let y = sines(graph, end, x[0], None)[0];
            with_rule(graph, y, x[0], |graph, dx| sines(graph, end, x[0], Some(dx))[1])
        });
    }
}

#[test]
fn loops_in_loops_and_branches_are_transposed() {
    let inputs = [tensor(&[], &[0.6])];
    let nested = |graph: &mut Graph, x, dx: Option<ExprId>| {
        let initial: Vec<ExprId> = [x].into_iter().chain(dx).collect();
        repeat(graph, End::Count(2), &initial, |graph, _, state| {
            let state = state.to_vec();
            let mark = graph.mark();
            let bound = number(graph, 10.0);
            let is_small = graph.less(state[0], bound).unwrap();
            let is_small = graph.traced(mark, vec![is_small]);
            let found = sines(graph, End::Count(3), state[0], state.get(1).copied());
            let found = graph.traced(mark, found);
            let other = graph.traced(mark, state);
            graph.cond(mark, vec![(is_small, found)], other).unwrap()
        })
    };
    check_twice(&inputs, |graph, x| {
        let y = nested(graph, x[0], None)[0];
        with_rule(graph, y, x[0], |graph, dx| nested(graph, x[0], Some(dx))[1])
    });
}

#[test]
fn scans_with_coefficients_are_transposed() {
    // The recurrence c = c * x[i], whose tangent is t = t * x[i] + c * dx[i].
    let product = |graph: &mut Graph, x: ExprId, dx: Option<ExprId>| {
        let (one, zero) = (number(graph, 1.0), number(graph, 0.0));
        let initial: Vec<ExprId> = [one].into_iter().chain(dx.map(|_| zero)).collect();
        repeat(graph, End::Count(4), &initial, |graph, i, state| {
            let row = |graph: &mut Graph, rows: ExprId| {
                let row = graph.slice(rows, &[i.into()], &[1], None).unwrap();
                graph.reshape(row, [0; 0]).unwrap()
            };
            let factor = row(graph, x);
            let mut next = vec![graph.multiply(state[0], factor).unwrap()];
            if let Some(dx) = dx {
                let change = row(graph, dx);
                let inner = graph.multiply(state[1], factor).unwrap();
                let outer = graph.multiply(state[0], change).unwrap();
                next.push(graph.add(inner, outer).unwrap());
            }
            next
        })
    };
    check_twice(&[samples(&[4], (0.5, 1.5), 1)], |graph, x| {
        let y = product(graph, x[0], None)[0];
        with_rule(graph, y, x[0], |graph, dx| product(graph, x[0], Some(dx))[1])
    });
}

#[test]
fn gradients_of_loops_define_tangents() {
    let inputs = [tensor(&[], &[0.6]), integers(&[], &[3])];
    for end in [Some(End::Count(3)), Some(End::Bound(0.95)), None] {
        let mut function = Graph::new();
        let ids = parameters(&mut function, &inputs);
        let y = sines(&mut function, end.unwrap_or(End::Input(ids[1])), ids[0], None);
        let function = Program::new(&function, types(&inputs), &y[..1]).unwrap();
        let back = pullback(&function, DiffCounts { inputs: 1, outputs: 1 }).unwrap();
        check_twice(&inputs, |graph, x| {
            let y = function.inline(graph, x).unwrap();
            let rule = |graph: &mut Graph, cotangents: &[ExprId]| {
                Ok::<_, Error>(back.inline(graph, &[x[0], x[1], cotangents[0]])?.split_off(1))
            };
            graph.custom_grad(&y, &x[..1], rule).unwrap()[0]
        });
    }
}

/// Differentiates `sin x` with a tangent rule in reverse mode.
fn transposed(rule: impl FnOnce(&mut Graph, ExprId, ExprId) -> ExprId) -> Result<(), GradError> {
    let mut graph = Graph::new();
    let x = parameters(&mut graph, &[tensor(&[], &[0.5])])[0];
    let sine = graph.sin(x).unwrap();
    let y = with_rule(&mut graph, sine, x, |graph, dx| rule(graph, x, dx));
    gradients(&mut graph, y, &[x]).map(|_| ())
}

#[test]
fn nonlinear_loops_are_rejected() {
    let step = |graph: &mut Graph, x: ExprId, y: ExprId| {
        let half = number(graph, 0.5);
        let x = graph.multiply(x, half).unwrap();
        vec![x, graph.multiply(x, y).unwrap()]
    };
    let linear = transposed(|graph, x, dx| {
        repeat(graph, End::Count(3), &[x, dx], |graph, _, it| step(graph, it[0], it[1]))[1]
    });
    linear.unwrap();
    let square = transposed(|graph, _, dx| {
        repeat(graph, End::Count(3), &[dx, dx], |graph, _, it| step(graph, it[0], it[1]))[1]
    });
    assert!(matches!(square, Err(GradError::NotLinear { .. })), "{square:?}");
    let condition = transposed(|graph, x, dx| {
        repeat(graph, End::Bound(1.0), &[dx, x], |_, _, it| it.to_vec())[0]
    });
    assert!(matches!(condition, Err(GradError::NotLinear { .. })), "{condition:?}");
    let clipped = transposed(|graph, x, dx| {
        let results = repeat(graph, End::Count(3), &[x, dx], |graph, _, it| {
            let one = number(graph, 1.0);
            let minus = number(graph, -1.0);
            vec![it[0], graph.clip(it[1], minus, one).unwrap()]
        });
        results[1]
    });
    assert!(matches!(clipped, Err(GradError::NotLinear { .. })), "{clipped:?}");
}

#[test]
fn hooks_that_read_tangents_are_rejected() {
    let found = transposed(|graph, _, dx| {
        // The cotangent rule of the inner function reads a tangent of the outer function.
        let rule = |graph: &mut Graph, cotangents: &[ExprId]| {
            let ignore = |_: &[HostTensor]| Ok(());
            graph.hook(&[dx], None, Some(Arc::new(ignore)))?;
            Ok::<_, Error>(cotangents.to_vec())
        };
        graph.custom_grad(&[dx], &[dx], rule).unwrap()[0]
    });
    assert!(matches!(found, Err(GradError::NotLinear { .. })), "{found:?}");
}
