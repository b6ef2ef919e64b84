//! Policies: the guarantees of each policy, and equality of the results with the whole program.

use crate::common::generate::{build, steps};
use crate::common::{Test, check_equal, f32, program, stage_lines};
use nxla_expr::build::{Cumulative, Side};
use nxla_expr::{ExprId, Graph, Metadata, Program, Replay, TensorType};
use nxla_split::{Cluster, Policy, Speed, StageGraph, ValueSource, cost_of, estimate_of};
use nxla_tensor::{DType, Number};
use proptest::prelude::*;

/// Builds a chain of sines.
fn chain(length: usize) -> Program {
    program(vec![f32([4])], |graph, inputs| {
        let mut x = inputs[0];
        for _ in 0..length {
            x = graph.sin(x)?;
        }
        Ok(vec![x])
    })
}

fn annotate(graph: &mut Graph, x: ExprId, note: &str) -> nxla_expr::Result<ExprId> {
    graph.metadata(&[x], Metadata { inspect: Some(note.into()), ..Metadata::default() })
}

/// Builds one layer: a product with weights, a nonlinearity, a mask, a residual connection and a
/// normalization.
fn layer(graph: &mut Graph, x: ExprId, weights: ExprId, mask: ExprId) -> nxla_expr::Result<ExprId> {
    let y = graph.matmul(x, weights)?;
    let y = graph.tanh(y)?;
    let mask = graph.negate(mask)?;
    let mask = graph.exp(mask)?;
    let y = graph.multiply(y, mask)?;
    let y = graph.add(x, y)?;
    let y = graph.exp(y)?;
    let one = graph.number(nxla_tensor::Number::Float(1.0))?;
    let y = graph.add(y, one)?;
    graph.log(y)
}

/// Builds an embedding, layers that share a mask, and a head.
fn model(layers: usize) -> Program {
    let mut inputs = vec![f32([2, 8]), f32([2, 8]), f32([8, 3])];
    inputs.extend(vec![f32([8, 8]); layers]);
    program(inputs, |graph, inputs| {
        let mut x = graph.cos(inputs[0])?;
        for &weights in &inputs[3..] {
            x = layer(graph, x, weights, inputs[1])?;
        }
        let y = graph.matmul(x, inputs[2])?;
        Ok(vec![graph.sin(y)?])
    })
}

fn ops(graph: &StageGraph) -> Vec<usize> {
    let nodes = graph.stages().iter().map(|stage| stage.program.graph().len());
    nodes.zip(graph.stages()).map(|(nodes, stage)| nodes - stage.arguments.len()).collect()
}

#[test]
fn every_ops_policy_counts_operations() -> Test {
    let stages = Policy::EveryOps(4).split(&chain(10))?;
    assert_eq!(ops(&stages), [4, 4, 2]);
    check_equal(&chain(10), &stages);
    let error = Policy::EveryOps(0).split(&chain(1)).expect_err("zero is not a size").to_string();
    assert_eq!(error, "policy: number must be positive; got every_ops(0)");
    Ok(())
}

#[test]
fn at_most_ops_cuts_at_small_values() -> Test {
    // Wide, then narrow after the sixth operation, then wide again.
    let program = program(vec![f32([64])], |graph, inputs| {
        let mut x = inputs[0];
        for _ in 0..5 {
            x = graph.sin(x)?;
        }
        x = graph.sum(x, None, false)?;
        x = graph.broadcast(x, [64], None)?;
        for _ in 0..5 {
            x = graph.cos(x)?;
        }
        Ok(vec![x])
    });
    let stages = Policy::AtMostOps(8).split(&program)?;
    assert_eq!(ops(&stages), [6, 6]);
    assert_eq!(stages.type_of(stages.stages()[1].arguments[0]), &f32([]));
    check_equal(&program, &stages);
    Ok(())
}

#[test]
fn balanced_stages_take_about_the_same_time() -> Test {
    let program = chain(1000);
    let stages = Policy::Balanced(4).split(&program)?;
    assert_eq!(stages.stages().len(), 4);
    let free = Speed { overhead: 0.0, ..Speed::default() };
    let seconds = stages.seconds(&free);
    let even = seconds.iter().sum::<f64>() / 4.0;
    assert!(seconds.iter().all(|&own| (0.75..1.25).contains(&(own / even))), "{seconds:?}");
    check_equal(&program, &stages);
    // There are not more stages than operations.
    assert_eq!(Policy::Balanced(50).split(&chain(3))?.stages().len(), 3);
    Ok(())
}

#[test]
fn memory_policy_limits_each_stage() -> Test {
    let program = program(vec![f32([100])], |graph, inputs| {
        let mut values = vec![inputs[0]];
        for index in 0..6 {
            let next = graph.sin(values[index])?;
            values.push(next);
        }
        // All values are alive before the last one is computed, which is added first.
        let mut sum = values[6];
        for &value in values[..6].iter().rev() {
            sum = graph.add(sum, value)?;
        }
        Ok(vec![sum])
    });
    for limit in [1200, 1600, 2400] {
        let stages = Policy::Memory(limit).split(&program)?;
        let table = stages.explain();
        assert!(stages.stages().len() > 1, "{table}");
        check_equal(&program, &stages);
    }
    assert_eq!(Policy::Memory(1 << 20).split(&program)?.stages().len(), 1);
    let error = Policy::Memory(1000).split(&program).expect_err("an addition needs more memory");
    assert!(error.to_string().contains("with its operands needs 1200"), "{error}");
    Ok(())
}

#[test]
fn marks_policy_cuts_and_names_stages() -> Test {
    let program = program(vec![f32([]), f32([])], |graph, inputs| {
        let x = graph.sin(inputs[0])?;
        let x = annotate(graph, x, "encoder")?;
        let y = graph.cos(inputs[1])?;
        let y = annotate(graph, y, "decoder")?;
        Ok(vec![graph.add(x, y)?])
    });
    let stages = Policy::Marks(Vec::new()).split(&program)?;
    let names: Vec<_> = stages.stages().iter().map(|stage| stage.name.as_deref()).collect();
    assert_eq!(names, [Some("encoder"), Some("decoder"), None]);
    assert_eq!(stages.levels()[0].len(), 2, "the stages do not depend on each other");
    check_equal(&program, &stages);
    let one = Policy::Marks(vec!["decoder".into()]).split(&program)?;
    assert_eq!(one.stages().len(), 2);
    let error = Policy::Marks(vec!["head".into()]).split(&program).expect_err("no such mark");
    let expected = "marks: must be marks of the expression (encoder, decoder); got \"head\"";
    assert_eq!(error.to_string(), expected);
    // Names are serialized.
    assert_eq!(StageGraph::from_bytes(&stages.to_bytes())?.stages(), stages.stages());
    Ok(())
}

#[test]
fn equal_layers_are_equal_stages() -> Test {
    for layers in [3, 4, 6, 12] {
        let program = model(layers);
        let stages = Policy::Layers.split(&program)?;
        check_equal(&program, &stages);
        let mut digests: Vec<String> =
            stages.stages().iter().map(|stage| stage.digest().to_string()).collect();
        digests.sort_unstable();
        let count = digests.len();
        digests.dedup();
        let (text, left) = (stage_lines(&stages), count - digests.len());
        assert_eq!(left, layers - 1, "{layers} layers: {text:#?}");
    }
    Ok(())
}

#[test]
fn programs_without_repetition_are_not_split() -> Test {
    assert_eq!(Policy::Layers.split(&model(1))?.stages().len(), 1);
    assert_eq!(Policy::Auto.split(&model(3))?.stages().len(), 1, "the program is small");
    let stages = Policy::Auto.split(&chain(4000))?;
    assert!(stages.stages().len() > 4, "{}", stages.explain());
    check_equal(&chain(4000), &stages);
    Ok(())
}

#[test]
fn training_step_policy_requires_a_gradient() {
    let error = Policy::Training.split(&chain(2)).expect_err("there is no gradient");
    assert!(error.to_string().contains("contains no gradient"), "{error}");
}

#[test]
fn outputs_refer_to_the_computing_stage() -> Test {
    let program = program(vec![f32([]), f32([])], |graph, inputs| {
        let x = graph.sin(inputs[0])?;
        let y = graph.cos(x)?;
        let two = graph.number(nxla_tensor::Number::Float(2.0))?;
        Ok(vec![x, y, inputs[1], two, x])
    });
    let stages = Policy::EveryOps(1).split(&program)?;
    let [first, last] = stages.stages() else { panic!("two operations make two stages") };
    let (x, y) = (ValueSource::output(first.id, 0), ValueSource::output(last.id, 1));
    let two = ValueSource::output(last.id, 0);
    assert_eq!(stages.outputs(), [x, y, ValueSource::input(1), two, x]);
    check_equal(&program, &stages);
    Ok(())
}

#[test]
fn costs_count_flops_and_bytes() -> Test {
    let product = program(vec![f32([5, 7]), f32([7, 3])], |graph, inputs| {
        Ok(vec![graph.matmul(inputs[0], inputs[1])?])
    });
    let cost = cost_of(&product);
    assert_eq!((cost.flops, cost.bytes), (2 * 5 * 7 * 3, 4 * (35 + 21 + 15)));
    assert_eq!(cost_of(&chain(3)).bytes, 3 * 2 * 16);
    Ok(())
}

/// Adds a constant until a sum reaches `end`, if there is one, or at most 100 times.
fn adding_loop(end: Option<f64>) -> Program {
    let types = vec![TensorType::scalar(DType::S32), f32([])];
    program(types.clone(), |graph, inputs| {
        let zero = graph.weak_number(Number::Int(0), inputs[0])?;
        let goes_on = |graph: &mut Graph, state: &[ExprId]| {
            let (value, end) = match end {
                Some(end) => (state[1], Number::Float(end)),
                None => (state[0], Number::Int(100)),
            };
            let end = graph.weak_number(end, value)?;
            graph.less(value, end)
        };
        let next = |graph: &mut Graph, state: &[ExprId]| {
            let one = graph.weak_number(Number::Int(1), state[0])?;
            Ok(vec![graph.add(state[0], one)?, graph.sin(state[1])?])
        };
        graph.repeat_while(&[zero, inputs[1]], Replay::default(), goes_on, next)
    })
}

#[test]
fn loop_cost_is_proportional_to_trip_count() {
    let speed = Speed { flops: 1e9, bytes: 1e9, overhead: 1e-6 };
    let seconds =
        estimate_of(&adding_loop(None), &speed).seconds().expect("the loop has a trip count");
    assert!((3e-4..1e-3).contains(&seconds), "{seconds}");
    let unbounded = estimate_of(&adding_loop(Some(5.0)), &speed);
    assert_eq!(unbounded.seconds(), None);
    assert!(unbounded.work + unbounded.overhead < seconds / 50.0, "{unbounded:?}");
}

#[test]
fn block_cost_is_that_of_its_algorithm() {
    let running = program(vec![f32([1 << 16])], |graph, inputs| {
        Ok(vec![graph.cumulative(Cumulative::Sum, inputs[0], 0, false)?])
    });
    let cost = cost_of(&running);
    assert_eq!((cost.flops, cost.bytes), (1 << 16, 2 * (4 << 16)));
    // The trip count of the loop in the body is unknown, but the cost of the algorithm is known.
    let sorted = program(vec![f32([1 << 10]), f32([1 << 6])], |graph, inputs| {
        Ok(vec![graph.searchsorted(inputs[0], inputs[1], Side::Left)?])
    });
    assert_eq!(cost_of(&sorted).flops, 10 << 6);
    assert!(!estimate_of(&sorted, &Speed::default()).is_unbounded);
}

/// Builds `depth` nested conditionals; each is in both branches of the next one.
fn nested_branches(graph: &mut Graph, x: ExprId, depth: usize) -> nxla_expr::Result<ExprId> {
    let mark = graph.mark();
    let predicate = graph.traced(mark, vec![x]);
    let inner = if depth == 1 { x } else { nested_branches(graph, x, depth - 1)? };
    let sine = graph.sin(inner)?;
    let on_true = graph.traced(mark, vec![sine]);
    let cosine = graph.cos(inner)?;
    let on_false = graph.traced(mark, vec![cosine]);
    Ok(graph.cond(mark, vec![(predicate, on_true)], on_false)?[0])
}

#[test]
fn shared_regions_are_estimated_once() -> Test {
    // Without sharing, 2^30 regions would be visited.
    let program =
        program(vec![f32([])], |graph, inputs| Ok(vec![nested_branches(graph, inputs[0], 30)?]));
    assert_eq!(cost_of(&program).flops, cost_of(&chain(30)).flops / 4);
    assert!(!estimate_of(&program, &Speed::default()).is_unbounded);
    let stages = Policy::Balanced(2).split(&program)?;
    assert!(stages.explain().starts_with("stage"));
    Ok(())
}

/// Builds two independent chains and their sum.
fn branches() -> Test<StageGraph> {
    let ty: TensorType = f32([4]);
    let program = program(vec![ty.clone(), ty], |graph, inputs| {
        let (mut x, mut y) = (inputs[0], inputs[1]);
        for _ in 0..10 {
            x = graph.sin(x)?;
        }
        for _ in 0..10 {
            y = graph.cos(y)?;
        }
        Ok(vec![graph.add(x, y)?])
    });
    Ok(Policy::EveryOps(10).split(&program)?)
}

#[test]
fn simulation_accounts_for_workers_and_transfers() -> Test {
    let stages = branches()?;
    let makespan = |workers, bandwidth, latency| {
        stages.simulate(&Cluster { workers, bandwidth, latency }, &[2.0, 2.0, 1.0]).makespan
    };
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
    close(makespan(1, 1.0, 0.0), 5.0);
    close(makespan(2, f64::INFINITY, 0.0), 3.0);
    close(makespan(1000, f64::INFINITY, 0.5), 3.5);
    // A transfer of 16 bytes takes 1.6 s, which is still faster than sequential execution.
    close(makespan(2, 10.0, 0.0), 4.6);
    Ok(())
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        (1_usize..6).prop_map(Policy::EveryOps),
        (1_usize..6).prop_map(Policy::AtMostOps),
        (1_usize..6).prop_map(Policy::Balanced),
        (200_u64..2000).prop_map(Policy::Memory),
        Just(Policy::Layers),
        Just(Policy::Auto),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn policies_keep_program_results(steps in steps(), policy in policies()) {
        let program = build(&steps);
        let Ok(stages) = policy.split(&program) else { return Ok(()) };
        check_equal(&program, &stages);
        let cluster = Cluster { workers: 3, bandwidth: 1e9, latency: 1e-6 };
        let seconds = stages.seconds(&Speed::default());
        let timeline = stages.simulate(&cluster, &seconds);
        let alone: f64 = seconds.iter().sum();
        // Only waiting for values can make a run slower than on one worker.
        prop_assert!(timeline.makespan <= alone + 1e-5 * seconds.len() as f64);
        prop_assert_eq!(timeline.runs.len(), stages.stages().len());
    }
}
