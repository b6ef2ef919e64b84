//! Whole programs: small exact results, long chains, loops with hooks, and interrupted runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::program;
use nxla_eval::{EvalError, Hooks, Plan, evaluate};
use nxla_expr::{Compute, HostError, Program, TensorType};
use nxla_tensor::{DType, HostTensor, Number, Scalar};

#[test]
fn operands_promote_and_broadcast() {
    let types = [TensorType::new(DType::S32, [2, 1]), TensorType::new(DType::F32, [3])];
    let program =
        program(&types, |graph, ids| vec![graph.add(ids[0], ids[1]).expect("they broadcast")]);
    let left = HostTensor::from_slice(&[1_i32, 10], [2, 1]).unwrap();
    let right = HostTensor::from_slice(&[0.5_f32, 1.5, 2.5], [3]).unwrap();
    let results = evaluate(&program, vec![left, right]).unwrap();
    assert_eq!(results[0].as_slice::<f32>().unwrap(), [1.5, 2.5, 3.5, 10.5, 11.5, 12.5]);
}

#[test]
fn long_chains_do_not_recurse() {
    let types = [TensorType::scalar(DType::F32)];
    let program = program(&types, |graph, ids| {
        let mut x = ids[0];
        for _ in 0..200_000 {
            x = graph.sin(x).expect("a float");
        }
        vec![x]
    });
    let one = HostTensor::scalar(Scalar::Float(1.0), DType::F32);
    let result = evaluate(&program, vec![one]).unwrap()[0].item().unwrap().as_f64();
    // sin iterated n times from 1 is close to sqrt(3 / n).
    assert!((result - (3.0_f64 / 200_000.0).sqrt()).abs() < 1e-4, "{result}");
}

/// Counts to a limit, and passes each count to the hook "count".
fn counting_loop(limit: i64) -> Program {
    let types = [TensorType::scalar(DType::S32)];
    program(&types, |graph, ids| {
        let mark = graph.mark();
        let scope = graph.open_scope("while", &types);
        let count = scope.parameters[0];
        let end = graph.weak_number(Number::Int(limit.into()), count).expect("it fits");
        let holds = graph.less(count, end).expect("integers");
        let condition = graph.traced(mark, vec![holds]);
        let shown = graph.hook(&[count], Some("count"), None).expect("it has a name")[0];
        let one = graph.weak_number(Number::Int(1), count).expect("it fits");
        let next = graph.add(shown, one).expect("integers");
        let body = graph.traced(mark, vec![next]);
        graph.while_loop(mark, &scope, ids, condition, body).expect("the state fits")
    })
}

#[test]
fn loop_hooks_run_once_per_iteration_in_order() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let listener = seen.clone();
    let mut hooks = Hooks::new();
    hooks.insert(
        "count",
        Arc::new(move |values: &[HostTensor]| {
            listener.lock().unwrap().push(values[0].get(0).as_i64().unwrap_or(-1));
            Ok(())
        }),
    );
    let plan = Plan::new(Arc::new(counting_loop(4)));
    let zero = HostTensor::scalar(Scalar::Int(0), DType::S32);
    let results = plan.run(vec![zero], &hooks).unwrap();
    assert_eq!(results[0].item().unwrap(), Scalar::Int(4));
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3]);
}

/// A program that calls `function`, and declares one result of type `s32`.
fn runtime_call_program(
    function: impl Fn(&[HostTensor]) -> Result<Vec<HostTensor>, HostError> + Send + Sync + 'static,
) -> Program {
    let ty = TensorType::scalar(DType::S32);
    program(std::slice::from_ref(&ty), |graph, ids| {
        let function = Arc::new(Compute(function));
        graph.runtime_call(ids, vec![ty.clone()], function).expect("there is a result")
    })
}

#[test]
fn runtime_calls_return_checked_results() {
    let three = HostTensor::scalar(Scalar::Int(3), DType::S32);
    let double = runtime_call_program(|values| {
        let doubled = values[0].get(0).as_i64().unwrap_or_default() * 2;
        Ok(vec![HostTensor::scalar(Scalar::Int(doubled), DType::S32)])
    });
    let results = evaluate(&double, vec![three.clone()]).unwrap();
    assert_eq!(results[0].item().unwrap(), Scalar::Int(6));

    let none =
        evaluate(&runtime_call_program(|_| Ok(Vec::new())), vec![three.clone()]).unwrap_err();
    assert!(none.to_string().contains("gave 0 results, expected 1"), "{none}");
    let wrong_dtype =
        runtime_call_program(|_| Ok(vec![HostTensor::scalar(Scalar::Int(1), DType::S64)]));
    let wrong_dtype = evaluate(&wrong_dtype, vec![three.clone()]).unwrap_err();
    assert!(
        wrong_dtype.to_string().contains("must return s32 as result 0; got s64"),
        "{wrong_dtype}"
    );
    let stored =
        nxla_expr::serialize::from_bytes(&nxla_expr::serialize::to_bytes(&double)).unwrap();
    let without_function = evaluate(&stored, vec![three]).unwrap_err();
    assert!(
        without_function.to_string().contains("the program has no host function"),
        "{without_function}"
    );
}

#[test]
fn interrupts_stop_runs() {
    let plan = Plan::new(Arc::new(counting_loop(i64::from(i32::MAX))));
    let interrupt_calls = AtomicUsize::new(0);
    let interrupt = || interrupt_calls.fetch_add(1, Ordering::Relaxed) > 1_000;
    let zero = HostTensor::scalar(Scalar::Int(0), DType::S32);
    let stopped = plan.run_with(vec![zero], &Hooks::new(), Some(&interrupt));
    assert_eq!(stopped.unwrap_err(), EvalError::Interrupted);
}

#[test]
fn inputs_are_checked() {
    let types = [TensorType::new(DType::F32, [2])];
    let program = program(&types, |_, ids| ids.to_vec());
    let wrong = HostTensor::zeros(DType::F32, [3]).unwrap();
    let error = evaluate(&program, vec![wrong]).unwrap_err();
    assert_eq!(error.to_string(), "input 0: must be f32[2]; got f32[3]");
    let error = evaluate(&program, vec![]).unwrap_err();
    assert_eq!(error.to_string(), "inputs: must be 1; got 0");
}
