//! Awaiting results in any executor.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::common::{compilers, numbers};
use nxla::{DType, Expr, Tensor, fori, hook, jit, ready};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A minimal executor: it sleeps until the task is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A function that takes a while on every compiler.
fn slow_function(x: Expr) -> (Expr, Vec<Expr>) {
    let zeros = Expr::zeros([300, 300], DType::F32) + &x;
    let product = fori(0, 60, zeros, |_, y| y.dot(&y) / 300.0);
    (product.mean(), vec![product.reduce_min() + 1, x])
}

#[test]
fn containers_and_tensors_are_awaited() {
    for compiler in compilers() {
        let slow = jit(slow_function).compiler(compiler);
        let found = block_on(async {
            let (mean, rest) = ready(slow.call(1.0f32)?).await?;
            assert!(mean.is_ready()? && rest[0].is_ready()?);
            let pending = slow.call(1.0f32)?.0;
            let awaited = (&pending).await?;
            assert!(awaited.is(&pending));
            Ok::<_, nxla::Error>([mean.await?, rest[0].clone()])
        });
        let found = found.unwrap();
        assert!((numbers(&found[0])[0] - 1.0).abs() < 1e-3, "{compiler}");
        assert!((numbers(&found[1])[0] - 2.0).abs() < 1e-3);
    }
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let three = executor.block_on(Tensor::from(3).into_future()).unwrap();
    assert_eq!(numbers(&three), [3.0]);
}

#[test]
fn many_tensors_are_awaited_on_other_threads() {
    for compiler in compilers() {
        let double = Arc::new(jit(|x: Expr| x * 2).compiler(compiler));
        let tasks: Vec<_> = (0..8)
            .map(|x| {
                let double = double.clone();
                thread::spawn(move || block_on(async { double.call(x)?.await?.item::<i32>() }))
            })
            .collect();
        for (x, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.join().unwrap().unwrap(), 2 * x as i32, "{compiler}");
        }
    }
}

#[test]
fn awaiting_freed_tensors_is_an_error() {
    for compiler in compilers() {
        let x = jit(|x: Expr| x + 1).compiler(compiler).call(Tensor::from([0.0f32; 2000])).unwrap();
        if x.deallocate().unwrap() {
            assert!(block_on(async { x.await }).is_err());
        }
    }
    let failing = jit(|x: Expr| hook(x, |_: Tensor| Err("no".to_owned())));
    let error = block_on(async { failing.call(1)?.await }).unwrap_err().to_string();
    assert!(error.contains("no"), "{error}");
}
