//! Running stages: side by side, releasing values early, stopping at errors.

mod common;

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Weak};

use common::{Test, at, f32, program};
use nxla_split::{
    Decision, RunError, RunOptions, Schedule, ScheduleError, Stage, StageGraph, StageId, split,
};

fn threads(count: usize) -> RunOptions {
    RunOptions { threads: NonZeroUsize::new(count).expect("a positive number") }
}

/// `sin x`, then `width` branches that each need only that, then their sum.
fn fan(width: i32) -> StageGraph {
    let program = program(vec![f32([]), f32([])], |graph, inputs| {
        let root = graph.sin(inputs[0])?;
        let mut sum = inputs[1];
        for branch in 0..width {
            let number = graph.number(nxla_tensor::Number::Float(f64::from(branch) + 0.5))?;
            let x = graph.multiply(number, root)?;
            let x = graph.exp(x)?;
            sum = graph.add(sum, x)?;
        }
        Ok(vec![sum])
    });
    split(&program, |node| match node.op.name() {
        "sin" | "exp" => Decision::After,
        _ => Decision::None,
    })
    .expect("the program can be split")
}

/// Every stage counts what it gets; the result is the number of paths from the inputs.
fn count_paths(stage: &Stage, arguments: &[u64]) -> Vec<u64> {
    vec![arguments.iter().sum::<u64>().max(1); stage.program.outputs().len()]
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let graph = fan(8);
    let results: Vec<Vec<u64>> = [1, 2, 3, 16]
        .map(|count| {
            let run = |stage: &Stage, arguments: Vec<u64>| {
                Ok::<_, Infallible>(count_paths(stage, &arguments))
            };
            graph.run(vec![1, 100], run, threads(count)).expect("no stage fails")
        })
        .to_vec();
    assert_eq!(results, vec![vec![108]; 4]);
}

#[test]
fn independent_stages_run_at_the_same_time() {
    let graph = fan(3);
    assert_eq!(graph.levels().iter().map(Vec::len).collect::<Vec<_>>(), [1, 3, 1]);
    // Each branch waits for the two others: this ends only if all three run at once.
    let meeting = Barrier::new(3);
    let branches = &graph.levels()[1];
    let run = |stage: &Stage, arguments: Vec<u64>| {
        if branches.contains(&stage.id) {
            meeting.wait();
        }
        Ok::<_, Infallible>(count_paths(stage, &arguments))
    };
    assert_eq!(graph.run(vec![1, 100], run, threads(3)).expect("no stage fails"), [103]);
}

#[test]
fn stages_run_in_order_on_one_thread() {
    let graph = fan(4);
    let order = std::sync::Mutex::new(Vec::new());
    let caller = std::thread::current().id();
    let run = |stage: &Stage, arguments: Vec<u64>| {
        assert_eq!(std::thread::current().id(), caller);
        order.lock().expect("no stage panics").push(stage.id);
        Ok::<_, Infallible>(count_paths(stage, &arguments))
    };
    graph.run(vec![1, 1], run, RunOptions::sequential()).expect("no stage fails");
    let order = order.into_inner().expect("no stage panics");
    assert_eq!(order, graph.stages().iter().map(|stage| stage.id).collect::<Vec<_>>());
}

#[test]
fn a_value_is_moved_into_its_last_use() {
    // Each stage holds the only reference to what it gets, except that the root is needed by all
    // three branches: only the last of them owns it.
    let graph = fan(3);
    let owned = std::sync::Mutex::new(Vec::new());
    let run = |stage: &Stage, arguments: Vec<Arc<()>>| {
        let unique = arguments.into_iter().all(|value| Arc::into_inner(value).is_some());
        owned.lock().expect("no stage panics").push(unique);
        Ok::<_, Infallible>(stage.program.outputs().iter().map(|_| Arc::new(())).collect())
    };
    let inputs = vec![Arc::new(()), Arc::new(())];
    graph.run(inputs, run, RunOptions::sequential()).expect("no stage fails");
    assert_eq!(owned.into_inner().expect("no stage panics"), [true, false, false, true, true]);
}

#[test]
fn values_are_dropped_when_no_stage_needs_them() -> Test {
    // The second input and the annotated value are never needed.
    let program = program(vec![f32([]), f32([])], |graph, inputs| {
        let x = graph.sin(inputs[0])?;
        let x = graph.cos(x)?;
        Ok(vec![graph.exp(x)?])
    });
    let graph = split(&program, |_| Decision::After)?;
    let inputs = [Arc::new(()), Arc::new(())];
    let mut seen: Vec<Weak<()>> = inputs.iter().map(Arc::downgrade).collect();
    let mut schedule = Schedule::new(&graph, inputs.into())?;
    assert_eq!(seen[1].strong_count(), 0, "nobody needs the second input");
    while let Some(task) = schedule.next_ready() {
        drop(task.arguments);
        assert!(seen.iter().all(|value| value.strong_count() == 0), "{}", task.stage);
        let result = Arc::new(());
        seen.push(Arc::downgrade(&result));
        schedule.complete(task.stage, vec![result])?;
    }
    assert_eq!(schedule.finish()?.len(), 1);
    Ok(())
}

#[test]
fn the_first_error_stops_the_run() {
    let graph = fan(6);
    for count in [1, 4] {
        let runs = AtomicUsize::new(0);
        let run = |stage: &Stage, arguments: Vec<u64>| {
            runs.fetch_add(1, Ordering::Relaxed);
            if stage.id.index() == 0 {
                Err("no sine today")
            } else {
                Ok(count_paths(stage, &arguments))
            }
        };
        let error = graph.run(vec![1, 1], run, threads(count)).expect_err("the first stage fails");
        assert_eq!(error, RunError::Stage { stage: graph.stages()[0].id, error: "no sine today" });
        assert_eq!(error.to_string(), "stage 0: no sine today");
        assert_eq!(runs.into_inner(), 1);
    }
}

#[test]
fn no_stage_starts_after_an_error() {
    // Of six branches that are ready, the second fails.
    let graph = fan(6);
    let runs = AtomicUsize::new(0);
    let run = |stage: &Stage, arguments: Vec<u64>| {
        runs.fetch_add(1, Ordering::Relaxed);
        if stage.id.index() == 2 { Err("broken") } else { Ok(count_paths(stage, &arguments)) }
    };
    assert!(graph.run(vec![1, 1], run, RunOptions::sequential()).is_err());
    assert_eq!(runs.into_inner(), 3);
}

#[test]
fn a_panic_comes_back_and_nobody_waits_for_ever() {
    let graph = fan(4);
    for count in [1, 2, 5] {
        let run = |stage: &Stage, arguments: Vec<u64>| {
            assert_ne!(stage.id.index(), 2, "stage two is broken");
            Ok::<_, Infallible>(count_paths(stage, &arguments))
        };
        let result = catch_unwind(AssertUnwindSafe(|| graph.run(vec![1, 1], run, threads(count))));
        let payload = result.expect_err("the panic is passed on");
        let text = payload.downcast_ref::<String>().expect("the payload is the message");
        assert!(text.contains("stage two is broken"), "{text}");
    }
}

#[test]
fn a_value_that_panics_when_cloned_stops_the_run() {
    #[derive(Debug)]
    struct Fragile;
    impl Clone for Fragile {
        fn clone(&self) -> Self {
            panic!("not to be copied")
        }
    }
    let graph = fan(4);
    for count in [1, 3] {
        let run = |stage: &Stage, _: Vec<Fragile>| {
            Ok::<_, Infallible>(stage.program.outputs().iter().map(|_| Fragile).collect())
        };
        let inputs = vec![Fragile, Fragile];
        let result = catch_unwind(AssertUnwindSafe(|| graph.run(inputs, run, threads(count))));
        assert!(result.is_err());
    }
}

#[test]
fn wrong_numbers_of_values_are_errors() {
    let graph = fan(2);
    let none = |_: &Stage, _: Vec<u64>| Ok::<_, Infallible>(vec![]);
    let error = graph.run(vec![1], none, threads(2)).expect_err("an input is missing");
    assert_eq!(error.to_string(), "the program takes 2 inputs, got 1");
    let error = graph.run(vec![1, 1], none, threads(2)).expect_err("an output is missing");
    assert_eq!(error.to_string(), "stage 0 gives 1 outputs, got 0");
}

#[test]
fn a_schedule_checks_its_steps() -> Test {
    let graph = fan(2);
    let mut schedule = Schedule::new(&graph, vec![1, 1])?;
    let early = StageId::from_index(1);
    assert_eq!(schedule.complete(early, vec![1]), Err(ScheduleError::NotRunning(early)));
    let first = schedule.next_ready().expect("the root is ready");
    assert!(schedule.next_ready().is_none(), "all others wait for the root");
    assert_eq!(schedule.running(), 1);
    let too_many = schedule.complete(first.stage, vec![1, 2]);
    let expected = ScheduleError::Outputs { stage: first.stage, expected: 1, found: 2 };
    assert_eq!(too_many, Err(expected));
    schedule.complete(first.stage, vec![1])?;
    assert_eq!(
        schedule.complete(first.stage, vec![1]),
        Err(ScheduleError::NotRunning(first.stage))
    );
    let branches = [schedule.next_ready(), schedule.next_ready()].map(|task| task.expect("ready"));
    assert!(!schedule.has_ready());
    // Results may come in any order.
    for task in branches.into_iter().rev() {
        schedule.complete(task.stage, vec![1])?;
    }
    assert!(!schedule.is_finished());
    assert_eq!(schedule.finish(), Err(ScheduleError::Unfinished { left: 1 }));
    Ok(())
}

#[test]
fn a_program_without_outputs_runs_its_hooks() -> Test {
    let program = program(vec![f32([])], |graph, inputs| {
        let x = graph.sin(inputs[0])?;
        graph.hook(&[x], Some("seen"), None)?;
        Ok(vec![])
    });
    let graph = split(&program, at("sin", Decision::After))?;
    let run =
        |stage: &Stage, _: Vec<u8>| Ok::<_, Infallible>(vec![0; stage.program.outputs().len()]);
    assert_eq!(graph.run(vec![0], run, RunOptions::default())?, Vec::<u8>::new());
    assert_eq!(graph.stages()[1].program.effects().len(), 1);
    Ok(())
}
