//! Models of what threads share: each is run in every order in which its threads can take turns.
//!
//! The files under test are those of the engine, compiled here once more: what they take locks from,
//! `crate::sync`, are locks of `loom` here. It finds values that are lost, threads that wait for ever,
//! and memory that is read before it is written; since its waits never time out, also a wake-up that is
//! forgotten, which the engine would only be slowed down by.
//!
//! How much is tried is bounded by how often a thread is interrupted where it does not wait; two or
//! three times find what there is to find.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(dead_code, unreachable_pub, reason = "files of other crates, of which models call a part")]

mod stand_ins;

use stand_ins::{background, device, error, sync, tensor};

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

/// Tries threads in every order, where each is interrupted so often at most.
fn model(interruptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(run);
}
