//! Streams: a program applied to one chunk after another, with a state between them.
//!
//! A thread of the stream runs the steps in the order of the chunks. The state stays on its device.
//! Sending does not wait for the computation; receiving waits.
//!
//! This module handles leaves. The front ends flatten chunks, rebuild results, and choose the time
//! limits of waits.

mod queue;
mod step;

pub use queue::{Capacity, Deferred, Outcome, Parts, RawStream, StreamError, Wait};
pub(crate) use step::orphan_streams;
pub use step::{Inspect, Step, abandon_streams, wait_until_streams_end};
