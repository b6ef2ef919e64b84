//! Calls: errors of traced functions, nested functions, and donation.

use crate::common::{compilers, numbers};
use nxla::graph::serialize;
use nxla::{Conflict, DType, Expr, HostTensor, Tensor, TensorType, call_program, grad, jit, vmap};

#[test]
fn panics_do_not_hide_earlier_errors() {
    let f = jit(|x: Expr| {
        let product = x.dot(Tensor::from(vec![1.0f32, 2.0, 3.0, 4.0, 5.0]));
        // Indexing would panic, because a failed expression has no axes.
        let rows = product.shape()[0];
        x * rows as i32
    });
    let x = Tensor::new(vec![1.0f32; 6], [2, 3]).unwrap();
    let error = f.call(&x).unwrap_err().to_string();
    assert!(error.starts_with("dot: axis 1 of left and axis 0 of right: must have"), "{error}");
    assert!(error.contains("calls.rs:"), "{error}");
}

#[test]
#[should_panic(expected = "a function's own panic")]
fn panics_of_traced_functions_propagate() {
    let _ = jit(|_: Expr| -> Expr { panic!("a function's own panic") }).call(1.0f32);
}

#[test]
fn failed_expressions_print_no_nodes() {
    let f = jit(|x: Expr| {
        let wrong = x.dot(Tensor::from(vec![1.0f32, 2.0, 3.0, 4.0, 5.0]));
        assert!(wrong.has_failed() && !x.has_failed());
        assert_eq!(wrong.shape().rank(), 0);
        assert_eq!(wrong.to_string(), "#nxla.Expr<that could not be built>");
        wrong.sin() + x
    });
    assert!(f.call(Tensor::new(vec![1.0f32; 6], [2, 3]).unwrap()).is_err());
}

#[test]
fn nested_calls_are_forced_or_rejected() {
    let inner = jit(|x: Expr| x * 2).on_conflict(Conflict::Force);
    let outer = jit(move |x: Expr| Ok::<_, nxla::Error>(x + Expr::of(&inner.call(3)?)));
    assert_eq!(numbers(&outer.call(1).unwrap()), [7.0]);
    for conflict in [Conflict::Raise, Conflict::Reuse] {
        let inner = jit(|x: Expr| x * 2).on_conflict(conflict);
        assert_eq!(numbers(&inner.call(3).unwrap()), [6.0]);
        let outer = jit(move |x: Expr| Ok::<_, nxla::Error>(x + Expr::of(&inner.call(3)?)));
        let error = outer.call(1).unwrap_err().to_string();
        assert!(error.starts_with("call: "), "{error}");
    }
}

#[test]
fn donated_memory_is_deleted_after_the_call() {
    for compiler in compilers() {
        let step = jit(|state: Expr, x: Expr| state + x).compiler(compiler).donate([0]);
        let state = Tensor::from(vec![1.0f32; 2000]);
        let first = step.call((&state, 1.0f32)).unwrap();
        let second = step.call((&first, 1.0f32)).unwrap();
        assert_eq!(numbers(&second)[..2], [3.0, 3.0]);
        // Host memory is never donated.
        assert_eq!(numbers(&state)[0], 1.0);
        assert_eq!(first.to_host().is_err(), *compiler == "xla", "{compiler}");
    }
    let error = jit(|x: Expr| x + 1).donate([1]).call(1.0f32).unwrap_err().to_string();
    let expected = "donate: 1: must be an argument or a part of one; the tensors of the call are 0";
    assert_eq!(error, expected);
}

#[test]
fn later_writes_do_not_change_arguments_of_calls() {
    for compiler in compilers() {
        let double = jit(|x: Expr| &x + &x).compiler(compiler);
        let mut buffer = vec![0f32; 1 << 16];
        let mut results = std::collections::VecDeque::new();
        for round in 0..1000u16 {
            buffer.fill(f32::from(round));
            let input = HostTensor::from_slice(&buffer, [buffer.len()]).unwrap();
            results.push_back((round, double.call(Tensor::from(input)).unwrap()));
            buffer.fill(-1.0);
            if results.len() > 16 {
                let (round, result) = results.pop_front().unwrap();
                let expected = 2.0 * f32::from(round);
                assert!(result.to_vec::<f32>().unwrap().iter().all(|&x| x == expected), "{round}");
            }
        }
    }
}

#[test]
fn programs_are_called_on_expressions() {
    let row = TensorType::new(DType::F32, [3]);
    let (program, _) = jit(|x: Expr| (x.sin().sum(), &x * 2)).trace(&row).unwrap();
    let program = serialize::from_bytes(&serialize::to_bytes(&program)).unwrap();
    let apply = move |x: Expr| call_program(&program, &[x]);
    let (sine, double) = (apply.clone(), apply.clone());
    let x = Tensor::from([0.0f32, 1.0, 2.0]);
    let doubled = jit(move |x: Expr| double(x)[1].clone()).call(&x).unwrap();
    assert_eq!(numbers(&doubled), [0.0, 2.0, 4.0]);
    let slope = jit(grad(move |x: Expr| sine(x)[0].clone())).call(&x).unwrap();
    assert_eq!(numbers(&slope), numbers(&x.cos().unwrap()));
    let rows = Tensor::from([[0.0f32, 1.0, 2.0], [3.0, 4.0, 5.0]]);
    let (each, wrong) = (apply.clone(), apply);
    let sums = jit(vmap(move |x: Expr| each(x)[0].clone(), 0, 0)).call(&rows).unwrap();
    assert_eq!(sums.shape()[..], [2]);
    let error = jit(move |x: Expr| wrong(x)[0].clone()).call(&rows).unwrap_err().to_string();
    let expected = "call_program: arguments: argument 0 must be f32[3]; got f32[2][3]";
    assert!(error.starts_with(expected), "{error}");
}
