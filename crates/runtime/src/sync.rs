//! The locks of the files that model tests check: `tests/locks` compiles these files with locks that
//! explore every interleaving of threads.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

pub(crate) use crate::forks::{Shared, SharedGuard};
