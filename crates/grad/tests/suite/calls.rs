//! Runtime calls: a derivative that flows through a host function is an error in both modes, and a
//! call that no derivative needs is not.

use std::sync::Arc;

use crate::common::{f64s, number, parameters, run, tensor, types};
use nxla_expr::{
    Compute, ExprId, Graph, HostFn, Line, Program, Replay, Result, RuleFor, Source, TensorType,
};
use nxla_grad::{GradError, gradients, jvp};
use nxla_tensor::{DType, HostTensor, Scalar};

/// Calls a host function that returns its argument, converted to a dtype.
fn call(graph: &mut Graph, x: ExprId, dtype: DType) -> ExprId {
    let convert: Arc<dyn HostFn> =
        Arc::new(Compute(move |values: &[HostTensor]| Ok(vec![values[0].cast(dtype)])));
    let result = TensorType::new(dtype, graph.shape(x).clone());
    graph.runtime_call(&[x], vec![result], convert).unwrap()[0]
}

fn f64_call(graph: &mut Graph, x: ExprId) -> ExprId {
    call(graph, x, DType::F64)
}

/// Applies a body three times in a loop.
fn three_times(
    graph: &mut Graph,
    x: ExprId,
    body: impl FnOnce(&mut Graph, ExprId) -> ExprId,
) -> ExprId {
    let integer = |graph: &mut Graph, value| graph.scalar_constant(Scalar::Int(value), DType::S64);
    let initial = [integer(graph, 0).unwrap(), x];
    let goes_on = |graph: &mut Graph, state: &[ExprId]| {
        let end = integer(graph, 3)?;
        graph.less(state[0], end)
    };
    let next = |graph: &mut Graph, state: &[ExprId]| {
        let one = integer(graph, 1)?;
        Ok(vec![graph.add(state[0], one)?, body(graph, state[1])])
    };
    graph.repeat_while(&initial, Replay::default(), goes_on, next).unwrap()[1]
}

/// Applies a body if `x` is positive.
fn if_positive(
    graph: &mut Graph,
    x: ExprId,
    body: impl FnOnce(&mut Graph, ExprId) -> ExprId,
) -> ExprId {
    let mark = graph.mark();
    let zero = number(graph, 0.0);
    let predicate = graph.greater(x, zero).unwrap();
    let predicate = graph.traced(mark, vec![predicate]);
    let on_true = body(graph, x);
    let on_true = graph.traced(mark, vec![on_true]);
    let on_false = graph.traced(mark, vec![x]);
    graph.cond(mark, vec![(predicate, on_true)], on_false).unwrap()[0]
}

fn in_block(
    graph: &mut Graph,
    x: ExprId,
    body: impl FnOnce(&mut Graph, ExprId) -> ExprId,
) -> ExprId {
    let build = |graph: &mut Graph, x: &[ExprId]| -> Result<_> { Ok(vec![body(graph, x[0])]) };
    graph.block("part", Vec::new(), &[x], build).unwrap()[0]
}

/// Defines the tangent `2 dx` of `y`.
fn with_slope_two(graph: &mut Graph, y: ExprId, x: ExprId) -> ExprId {
    let open = graph.open_rule(RuleFor::Tangents, &[x]);
    let two = number(graph, 2.0);
    let change = graph.multiply(open.changes()[0], two).unwrap();
    graph.close_rule(open, &[y], &[x], vec![change]).unwrap()[0]
}

/// Defines the cotangent `factor dy` of `y`.
fn with_cotangent(graph: &mut Graph, y: ExprId, x: ExprId, factor: f64) -> ExprId {
    let rule = |graph: &mut Graph, dy: &[ExprId]| -> Result<_> {
        let factor = number(graph, factor);
        Ok(vec![graph.multiply(dy[0], factor)?])
    };
    graph.custom_grad(&[y], &[x], rule).unwrap()[0]
}

type Build = fn(&mut Graph, ExprId) -> ExprId;

/// The results of both modes at the point 1.5.
fn differentiate(build: Build) -> [std::result::Result<f64, GradError>; 2] {
    let inputs = [tensor(&[], &[1.5]), tensor(&[], &[1.0])];
    let mut graph = Graph::new();
    let x = parameters(&mut graph, &inputs[..1])[0];
    let y = build(&mut graph, x);
    let reverse =
        gradients(&mut graph, y, &[x]).map(|found| f64s(&run(&graph, &inputs[..1], &found)[0])[0]);
    let program = Program::new(&graph, types(&inputs[..1]), &[y]).unwrap();
    let mut graph = Graph::new();
    let ids = parameters(&mut graph, &inputs);
    let forward = jvp(&mut graph, &program, &ids[..1], &[Some(ids[1])], 1)
        .map(|(_, changes)| f64s(&run(&graph, &inputs, &changes)[0])[0]);
    [reverse, forward]
}

#[test]
fn runtime_calls_are_not_differentiable() {
    let cases: [(&str, Build); 7] = [
        ("alone", f64_call),
        ("next to another path", |graph, x| {
            let y = f64_call(graph, x);
            graph.multiply(x, y).unwrap()
        }),
        ("of a function of the input", |graph, x| {
            let sine = graph.sin(x).unwrap();
            f64_call(graph, sine)
        }),
        ("in a branch", |graph, x| if_positive(graph, x, f64_call)),
        ("in a loop", |graph, x| three_times(graph, x, f64_call)),
        ("in a loop in a branch", |graph, x| {
            if_positive(graph, x, |graph, x| three_times(graph, x, f64_call))
        }),
        ("in a block", |graph, x| in_block(graph, x, f64_call)),
    ];
    for (case, build) in cases {
        for (mode, found) in ["reverse", "forward"].into_iter().zip(differentiate(build)) {
            let error = found.expect_err(case);
            let is_refused =
                matches!(error, GradError::NotDifferentiable { op: "runtime_call", .. });
            assert!(is_refused, "{case}, {mode}: {error}");
        }
    }
}

#[test]
fn unneeded_runtime_calls_are_constants() {
    let cases: [(&str, f64, Build); 8] = [
        ("a stopped argument", 1.5, |graph, x| {
            let stopped = graph.stop_grad(x).unwrap();
            let y = f64_call(graph, stopped);
            graph.multiply(x, y).unwrap()
        }),
        ("a stopped result", 1.5, |graph, x| {
            let y = f64_call(graph, x);
            let stopped = graph.stop_grad(y).unwrap();
            graph.multiply(x, stopped).unwrap()
        }),
        ("an integer argument", 1.0, |graph, x| {
            let whole = graph.as_type(x, DType::S64).unwrap();
            let y = call(graph, whole, DType::F64);
            graph.multiply(x, y).unwrap()
        }),
        ("an integer result", 1.0, |graph, x| {
            let whole = call(graph, x, DType::S64);
            graph.multiply(x, whole).unwrap()
        }),
        ("a predicate", 1.0, |graph, x| {
            let (y, zero) = (f64_call(graph, x), number(graph, 0.0));
            let above = graph.greater(y, zero).unwrap();
            graph.select(above, x, zero).unwrap()
        }),
        ("a loop with a stopped result", 2.0, |graph, x| {
            let y = three_times(graph, x, |graph, x| {
                let y = f64_call(graph, x);
                graph.stop_grad(y).unwrap()
            });
            let two = number(graph, 2.0);
            let sum = graph.add(x, x).unwrap();
            let stopped = graph.multiply(y, two).unwrap();
            graph.add(sum, stopped).unwrap()
        }),
        ("a custom tangent", 2.0, |graph, x| {
            let y = f64_call(graph, x);
            with_slope_two(graph, y, x)
        }),
        ("a custom cotangent in a loop", 27.0, |graph, x| {
            three_times(graph, x, |graph, x| {
                let y = f64_call(graph, x);
                with_cotangent(graph, y, x, 3.0)
            })
        }),
    ];
    for (case, expected, build) in cases {
        for (mode, found) in ["reverse", "forward"].into_iter().zip(differentiate(build)) {
            assert_eq!(found, Ok(expected), "{case}, {mode}");
        }
    }
}

#[test]
fn zero_cotangents_do_not_reach_runtime_calls() {
    let inputs = [tensor(&[], &[1.5])];
    let mut graph = Graph::new();
    let x = parameters(&mut graph, &inputs)[0];
    let y = f64_call(&mut graph, x);
    let unused = with_cotangent(&mut graph, y, y, 0.0);
    let sum = graph.add(x, unused).unwrap();
    let found = gradients(&mut graph, sum, &[x]).unwrap();
    assert_eq!(f64s(&run(&graph, &inputs, &found)[0]), [1.0]);
}

#[test]
fn rules_with_runtime_calls_have_no_second_derivative() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F64, [2]));
    let sine = graph.sin(x).unwrap();
    let open = graph.open_rule(RuleFor::Tangents, &[x]);
    let slope = f64_call(&mut graph, x);
    let change = graph.multiply(open.changes()[0], slope).unwrap();
    let y = graph.close_rule(open, &[sine], &[x], vec![change]).unwrap()[0];
    let slope = gradients(&mut graph, y, &[x]).unwrap()[0];
    let error = gradients(&mut graph, slope, &[x]).unwrap_err();
    assert!(matches!(error, GradError::NotDifferentiable { op: "runtime_call", .. }), "{error}");
}

#[test]
fn runtime_call_errors_name_line_and_remedy() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F64, [2]));
    let line = Line { file: "model.py".into(), line: 12 };
    let source = graph.add_source(Source::Line(line));
    graph.set_source(source);
    let y = f64_call(&mut graph, x);
    let error = gradients(&mut graph, y, &[x]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "runtime_call: function: must have a derivative, which flows through the call; got a host \
         function without one; apply stop_grad to the arguments, or define a derivative with \
         custom_jvp or custom_grad (model.py:12)"
    );
}
