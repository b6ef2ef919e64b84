//! The source of locks for the files that model tests check: `tests/locks` compiles those files
//! again, with locks that try the threads in every order.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

pub(crate) use crate::forks::{Shared, SharedGuard};
