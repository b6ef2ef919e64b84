//! Conditionals, loops and hooks, on every compiler at hand.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::sync::{Arc, Mutex};

use nxla::{Expr, Tensor, jit};

#[test]
fn hooks_see_values_in_order() {
    for compiler in common::compilers().iter().copied() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let f = jit(|[x]: [Expr; 1]| {
            let trace = x.trace().clone();
            let shown = trace.build(|g| g.hook(&[x.id()], Some("x"), None)).unwrap();
            let y = Expr::new(trace.clone(), shown[0]) * 2.0;
            let shown = trace.build(|g| g.hook(&[y.id()], Some("x"), None)).unwrap();
            Expr::new(trace, shown[0]) + 1.0
        })
        .compiler(compiler)
        .hook("x", move |values: &[nxla::HostTensor]| {
            sink.lock().unwrap().push(values[0].item().unwrap().as_f64());
            Ok(())
        });
        let y = f.call([&Tensor::from(3.0f32)]).unwrap();
        assert_eq!(y.item().unwrap().as_f64(), 7.0);
        assert_eq!(*seen.lock().unwrap(), [3.0, 6.0]);
    }
}
