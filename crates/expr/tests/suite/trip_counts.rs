//! Trip counts of loops whose bound and step are constants, captures or states.

use nxla_expr::{ExprId, Graph, Op, Result, TensorType, counter};
use nxla_tensor::{DType, Number};

/// The storage of a bound or a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Variation {
    Constant,
    Unchanged,
    Changing,
}

const VARIATIONS: [Variation; 3] = [Variation::Constant, Variation::Unchanged, Variation::Changing];

/// Returns the trip count of a loop that counts from 0 by 2 while the counter is below 9.
fn trip_count(bound: Variation, step: Variation) -> Result<Option<usize>> {
    let mut graph = Graph::new();
    let mark = graph.mark();
    let numbers = [0, 9, 2].map(|value| Number::Int(value).to_scalar().unwrap());
    let initial = numbers.map(|value| graph.constant(value, TensorType::scalar(DType::S32)));
    let initial = initial.into_iter().collect::<Result<Vec<ExprId>>>()?;
    let scope = graph.open_scope("while", &vec![TensorType::scalar(DType::S32); 3]);
    let states = scope.parameters.clone();
    let value = |at: usize, variation: Variation| {
        if variation == Variation::Constant { initial[at] } else { states[at] }
    };
    let next = |graph: &mut Graph, at: usize, variation: Variation| match variation {
        Variation::Changing => graph.add(states[at], states[0]),
        _ => Ok(states[at]),
    };
    let below = graph.less(states[0], value(1, bound))?;
    let condition = graph.traced(mark, vec![below]);
    let start = graph.mark();
    let body = vec![
        graph.add(states[0], value(2, step))?,
        next(&mut graph, 1, bound)?,
        next(&mut graph, 2, step)?,
    ];
    let body = graph.traced(start, body);
    let results = graph.while_loop(mark, &scope, &initial, condition, body)?;
    let id = graph.operands(results[0])[0];
    let Op::While(op) = graph.op(id) else { panic!("{}", graph.op(id).name()) };
    Ok(counter(&graph, op, graph.operands(id)).map(|counter| counter.trips))
}

#[test]
fn changing_bounds_and_steps_have_no_trip_count() {
    for bound in VARIATIONS {
        for step in VARIATIONS {
            let changes = [bound, step].contains(&Variation::Changing);
            let expected = (!changes).then_some(5);
            assert_eq!(
                trip_count(bound, step).unwrap(),
                expected,
                "{bound:?} bound, {step:?} step"
            );
        }
    }
}
