//! Counters over all clients of the process: bytes of transfers to and from devices, and compiled and
//! started programs.

use std::sync::atomic::{AtomicU64, Ordering};

static SENT: AtomicU64 = AtomicU64::new(0);
static READ: AtomicU64 = AtomicU64::new(0);
static COMPILED: AtomicU64 = AtomicU64::new(0);
static STARTED: AtomicU64 = AtomicU64::new(0);

/// Bytes that went between the host and devices since the process began. Results of
/// devices, and copies between devices, are not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// From the host to devices.
    pub sent: u64,
    /// From devices to the host.
    pub read: u64,
}

impl Traffic {
    /// Up to now.
    #[must_use]
    pub fn so_far() -> Traffic {
        Traffic { sent: SENT.load(Ordering::Relaxed), read: READ.load(Ordering::Relaxed) }
    }
}

pub(crate) fn count_sent(bytes: usize) {
    SENT.fetch_add(bytes as u64, Ordering::Relaxed);
}

pub(crate) fn count_read(bytes: usize) {
    READ.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Programs that plugins have compiled and started since the process began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activity {
    /// Programs that were compiled; programs that were loaded from bytes are not included.
    pub compiled: u64,
    /// Runs that were started.
    pub started: u64,
}

impl Activity {
    /// Returns the counts up to now.
    #[must_use]
    pub fn so_far() -> Activity {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Activity { compiled: count(&COMPILED), started: count(&STARTED) }
    }
}

pub(crate) fn count_compiled() {
    COMPILED.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn count_started() {
    STARTED.fetch_add(1, Ordering::Relaxed);
}
