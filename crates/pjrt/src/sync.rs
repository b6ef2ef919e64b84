//! Locks for the files that `tests/locks` checks: it compiles those files again, with locks that
//! try all thread interleavings.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
