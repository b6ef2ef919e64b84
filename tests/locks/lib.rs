//! Models of shared state, each explored in every interleaving of its threads.
//!
//! This crate compiles files of the runtime with the locks of `loom` as `crate::sync`. `loom` finds lost
//! values, deadlocks, and reads of uninitialized memory. Its waits do not time out, so it also finds
//! missing notifications, which would only delay the runtime.
//!
//! The number of preemptions of each thread is limited to two or three, which suffices to find known
//! kinds of bugs.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(dead_code, unreachable_pub, reason = "files of other crates, of which models call a part")]

mod stubs;

use stubs::{background, device, error, sync, tensor};

#[path = "../../crates/runtime/src/xla/calls.rs"]
mod calls;
#[path = "../../crates/pjrt/src/count.rs"]
mod count;
#[path = "../../crates/runtime/src/stream/queue.rs"]
mod queue;
#[path = "../../crates/runtime/src/signal.rs"]
mod signal;
#[path = "../../crates/runtime/src/cache/store.rs"]
mod store;

mod caches;
mod hooks;
mod streams;
mod waiting;

/// Runs the model for every interleaving in which each thread is interrupted at most `interruptions`
/// times.
fn model(interruptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(run);
}
