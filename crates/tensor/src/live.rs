//! Counters of live memory, of the host and of devices.

use std::sync::atomic::{AtomicI64, Ordering};

/// The tensors of this process in the memory of the host or of a device. Memory of other owners, such
/// as NumPy arrays or a plugin, is not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LiveMemory {
    /// Bytes that have not been freed. Tensors that share memory count once.
    pub bytes: i64,
    /// The number of allocations.
    pub tensors: i64,
    /// The maximum of the bytes.
    pub peak: i64,
}

/// Counts allocations as they come and go.
#[derive(Debug, Default)]
pub struct Live {
    bytes: AtomicI64,
    tensors: AtomicI64,
    peak: AtomicI64,
}

impl Live {
    /// Creates counters of zero.
    #[must_use]
    pub const fn new() -> Self {
        let [bytes, tensors, peak] = [const { AtomicI64::new(0) }; 3];
        Self { bytes, tensors, peak }
    }

    /// Counts an allocation.
    #[inline]
    pub fn add(&self, bytes: usize) {
        let bytes = bytes as i64;
        let now = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.tensors.fetch_add(1, Ordering::Relaxed);
        if now > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Counts the end of an allocation.
    #[inline]
    pub fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as i64, Ordering::Relaxed);
        self.tensors.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the present figures.
    #[must_use]
    pub fn now(&self) -> LiveMemory {
        let load = |figure: &AtomicI64| figure.load(Ordering::Relaxed);
        LiveMemory {
            bytes: load(&self.bytes),
            tensors: load(&self.tensors),
            peak: load(&self.peak),
        }
    }
}
