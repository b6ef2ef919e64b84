//! Streams: a program applied to one chunk after another, with a state between them.
//!
//! A thread of the stream's own does the steps, in the order of the chunks. The state stays where
//! it is computed: on a device it never leaves it. Sending does not wait for the computation,
//! receiving does.
//!
//! Everything here is leaves: a shell takes chunks apart and puts results together, and says who
//! waits how long.

mod queue;
mod step;

pub use queue::{Capacity, Deferred, Outcome, Parts, Stream, StreamError, Wait};
pub(crate) use step::orphan_streams;
pub use step::{Inspect, Step, abandon_streams, wait_until_streams_end};
