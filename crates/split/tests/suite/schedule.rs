//! Schedules: the order of stages, and the lifetime of values.

use std::convert::Infallible;
use std::sync::{Arc, Weak};

use crate::common::{Test, at, f32, program, run_in_order};
use nxla_split::{Decision, ScheduleError, Stage, StageGraph, StageId, StageScheduler, split};

/// Builds `sin x`, `width` branches that need only this value, and the sum of the branches.
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

#[test]
fn values_are_moved_into_their_last_use() {
    // Each stage holds the only reference to its arguments. All three branches need the root, so
    // only the last branch owns it.
    let graph = fan(3);
    let mut owned = Vec::new();
    let run = |stage: &Stage, arguments: Vec<Arc<()>>| {
        let unique = arguments.into_iter().all(|value| Arc::into_inner(value).is_some());
        owned.push(unique);
        Ok::<_, Infallible>(stage.program.outputs().iter().map(|_| Arc::new(())).collect())
    };
    let inputs = vec![Arc::new(()), Arc::new(())];
    run_in_order(&graph, inputs, run).expect("no stage fails");
    assert_eq!(owned, [true, false, false, true, true]);
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
    let mut schedule = StageScheduler::new(&graph, inputs.into())?;
    assert_eq!(seen[1].strong_count(), 0, "no stage needs the second input");
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
fn schedules_check_their_steps() -> Test {
    let graph = fan(2);
    let mut schedule = StageScheduler::new(&graph, vec![1, 1])?;
    let early = StageId::from_index(1);
    assert_eq!(schedule.complete(early, vec![1]), Err(ScheduleError::NotRunning(early)));
    let first = schedule.next_ready().expect("the root is ready");
    assert!(schedule.next_ready().is_none(), "all others wait for the root");
    let too_many = schedule.complete(first.stage, vec![1, 2]);
    let expected = ScheduleError::Outputs { stage: first.stage, expected: 1, found: 2 };
    assert_eq!(too_many, Err(expected));
    schedule.complete(first.stage, vec![1])?;
    assert_eq!(
        schedule.complete(first.stage, vec![1]),
        Err(ScheduleError::NotRunning(first.stage))
    );
    let branches = [schedule.next_ready(), schedule.next_ready()].map(|task| task.expect("ready"));
    assert!(schedule.next_ready().is_none());
    // Results may arrive in any order.
    for task in branches.into_iter().rev() {
        schedule.complete(task.stage, vec![1])?;
    }
    assert!(!schedule.is_finished());
    assert_eq!(schedule.finish(), Err(ScheduleError::Unfinished { left: 1 }));
    Ok(())
}

#[test]
fn longest_paths_are_scheduled_first() -> Test {
    // The second branch has three matrix products, the first one a sine.
    let program = program(vec![f32([64, 64]), f32([64, 64])], |graph, inputs| {
        let short = graph.sin(inputs[0])?;
        let mut long = inputs[1];
        for _ in 0..3 {
            long = graph.dot(long, inputs[1])?;
        }
        let long = graph.sin(long)?;
        Ok(vec![graph.cos(short)?, graph.cos(long)?])
    });
    let graph = split(&program, at("sin", Decision::After))?;
    let first =
        |mut schedule: StageScheduler<i32>| schedule.next_ready().map(|task| task.stage.index());
    let roots: Vec<usize> =
        graph.stages()[..2].iter().map(|stage| stage.arguments[0].index).collect();
    assert_eq!(roots, [0, 1], "a stage for each branch");
    assert_eq!(first(StageScheduler::new(&graph, vec![1, 1])?), Some(0));
    assert_eq!(first(StageScheduler::by_urgency(&graph, vec![1, 1])?), Some(1));
    let mut ranks = graph.ranks().to_vec();
    ranks.sort_unstable();
    assert_eq!(ranks, (0..graph.stages().len()).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn programs_without_outputs_run_their_hooks() -> Test {
    let program = program(vec![f32([])], |graph, inputs| {
        let x = graph.sin(inputs[0])?;
        graph.hook(&[x], Some("seen"), None)?;
        Ok(vec![])
    });
    let graph = split(&program, at("sin", Decision::After))?;
    let run =
        |stage: &Stage, _: Vec<u8>| Ok::<_, Infallible>(vec![0; stage.program.outputs().len()]);
    assert_eq!(run_in_order(&graph, vec![0], run)?, Vec::<u8>::new());
    assert_eq!(graph.stages()[1].program.effects().len(), 1);
    Ok(())
}
