//! Tests of driving stages: parallel, in order, ending at errors, on any thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use nxla_expr::{Graph, Program, TensorType};
use nxla_split::{Decision, Stage, StageGraph, StageId, split};
use nxla_tensor::{DType, Number};

use super::drive::{Completion, Stop, drive};
use super::threads::{useful, with_threads};
use crate::error::{Error, Result};

/// `sin x`, then `width` branches that each need only that, then their sum.
fn fan_out(width: i32) -> Result<StageGraph> {
    let scalar = TensorType::scalar(DType::F32);
    let mut graph = Graph::new();
    let inputs = [0, 1].map(|index| graph.parameter(index, scalar.clone()));
    let root = graph.sin(inputs[0])?;
    let mut sum = inputs[1];
    for branch in 0..width {
        let number = graph.number(Number::Float(f64::from(branch) + 0.5))?;
        let x = graph.multiply(number, root)?;
        let x = graph.exp(x)?;
        sum = graph.add(sum, x)?;
    }
    let program = Program::new(&graph, vec![scalar; 2], &[sum])?;
    Ok(split(&program, |node| match node.op.name() {
        "sin" | "exp" => Decision::After,
        _ => Decision::None,
    })?)
}

type Values = Vec<u64>;

/// Runs stages on `threads` threads; with 0, on this one.
fn run(
    graph: &StageGraph,
    inputs: Values,
    threads: usize,
    stage: impl Fn(&Stage, Values) -> Result<Values> + Sync,
) -> Result<Values> {
    let run = |id: StageId, values: Values| stage(graph.stage(id), values);
    with_threads(threads, &run, |threads| {
        let start = |stage: &Stage, values: Values, done| threads.start(stage.id, values, done);
        drive(graph, inputs, start, |_, _| Ok(()), &Stop::new(None))
    })
}

/// Every stage adds its arguments, so the result is the number of paths from the inputs.
fn count_paths(stage: &Stage, arguments: &[u64]) -> Values {
    vec![arguments.iter().sum::<u64>().max(1); stage.program.outputs().len()]
}

fn stage_failure() -> Error {
    Error::Usage("broken".into())
}

#[test]
fn results_do_not_depend_on_the_thread_count() -> Result<()> {
    let graph = fan_out(8)?;
    for threads in [0, 1, 2, 16] {
        let results =
            run(&graph, vec![1, 100], threads, |stage, values| Ok(count_paths(stage, &values)))?;
        assert_eq!(results, [108]);
    }
    Ok(())
}

#[test]
fn independent_stages_run_at_the_same_time() -> Result<()> {
    let graph = fan_out(3)?;
    // Each branch waits for the two others, so the run ends only if all three run concurrently.
    let meeting = Barrier::new(3);
    let branches = &graph.levels()[1];
    let results = run(&graph, vec![1, 100], 3, |stage, values| {
        if branches.contains(&stage.id) {
            meeting.wait();
        }
        Ok(count_paths(stage, &values))
    })?;
    assert_eq!(results, [103]);
    Ok(())
}

#[test]
fn sequential_stages_run_on_the_calling_thread() -> Result<()> {
    let chain = fan_out(1)?;
    assert_eq!(useful(&chain, |_| true, false), 0);
    assert_eq!(useful(&chain, |_| true, true), 1, "the caller has to serve the executor");
    assert_eq!(useful(&chain, |_| false, true), 0);
    let graph = fan_out(4)?;
    let (order, caller) = (std::sync::Mutex::new(Vec::new()), std::thread::current().id());
    run(&graph, vec![1, 1], 0, |stage, values| {
        assert_eq!(std::thread::current().id(), caller);
        order.lock().expect("no stage panics").push(stage.id);
        Ok(count_paths(stage, &values))
    })?;
    let order = order.into_inner().expect("no stage panics");
    assert_eq!(order, graph.stages().iter().map(|stage| stage.id).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn no_stage_starts_after_an_error() -> Result<()> {
    // Of six branches that are ready, the second fails.
    let graph = fan_out(6)?;
    let runs = AtomicUsize::new(0);
    let outcome = run(&graph, vec![1, 1], 0, |stage, values| {
        runs.fetch_add(1, Ordering::Relaxed);
        if stage.id.index() == 2 { Err(stage_failure()) } else { Ok(count_paths(stage, &values)) }
    });
    assert_eq!(outcome.expect_err("a stage fails").to_string(), "broken");
    assert_eq!(runs.into_inner(), 3);
    Ok(())
}

#[test]
fn panics_are_passed_to_the_caller() -> Result<()> {
    let graph = fan_out(4)?;
    for threads in [0, 1, 5] {
        let panics = AssertUnwindSafe(|| {
            run(&graph, vec![1, 1], threads, |stage, values| {
                assert_ne!(stage.id.index(), 2, "stage two is broken");
                Ok(count_paths(stage, &values))
            })
        });
        let payload = catch_unwind(panics).expect_err("the panic is passed on");
        let text = payload.downcast_ref::<String>().expect("the payload is the message");
        assert!(text.contains("stage two is broken"), "{text}");
    }
    Ok(())
}

#[test]
fn wrong_value_counts_are_errors() -> Result<()> {
    let graph = fan_out(2)?;
    let text = |outcome: Result<Values>| outcome.expect_err("values are missing").to_string();
    let error = text(run(&graph, vec![1], 2, |_, _| Ok(vec![])));
    assert_eq!(error, "stages: inputs: expected 2; got 1");
    let error = text(run(&graph, vec![1, 1], 2, |_, _| Ok(vec![])));
    assert_eq!(error, "stages: stage 0: must return 1 outputs; got 0");
    Ok(())
}

#[test]
fn dropped_completions_fail_their_stage() -> Result<()> {
    let graph = fan_out(2)?;
    let start = |_: &Stage, _: Values, done: Completion<u64>| {
        drop(done);
        Ok(())
    };
    let error = drive(&graph, vec![1, 1], start, |_, _| Ok(()), &Stop::new(None));
    let error = error.expect_err("the stage is lost");
    assert_eq!(error.to_string(), "stage 0 ended without results");
    Ok(())
}

#[test]
fn an_interrupted_caller_does_not_wait_for_an_executor() -> Result<()> {
    let graph = fan_out(2)?;
    let completions = std::cell::RefCell::new(Vec::new());
    let start = |_: &Stage, _: Values, done: Completion<u64>| {
        completions.borrow_mut().push(done);
        Ok(())
    };
    let interrupt = || true;
    let stop = Stop::new(Some(&interrupt));
    let error = drive(&graph, vec![1, 1], start, |_, _| Ok(()), &stop);
    let error = error.expect_err("the caller is interrupted");
    assert!(error.to_string().contains("interrupted"), "{error}");
    Ok(())
}
