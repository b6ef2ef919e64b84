//! The locks of the files that `tests/locks` checks: it compiles these files with locks that explore
//! all thread interleavings.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
