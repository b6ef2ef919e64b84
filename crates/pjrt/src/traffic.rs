//! How much goes to devices and comes back, over all clients of the process.

use std::sync::atomic::{AtomicU64, Ordering};

static SENT: AtomicU64 = AtomicU64::new(0);
static READ: AtomicU64 = AtomicU64::new(0);

/// Bytes that went between the host and devices since the process began. What a device computes,
/// and what it copies to another one by itself, is not among them.
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
