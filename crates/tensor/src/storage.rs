//! The memory of host tensors, which is never written while more than one handle can read it.
//!
//! There are two kinds: memory of this crate, which its sole handle can write, and [`Frozen`]
//! memory of other owners. Memory that another owner may write can only be copied.

use std::fmt;
use std::sync::Arc;

use crate::block::MemoryBlock;
use crate::live::{Live, LiveMemory};
use crate::pool;

/// The contents of [`Storage::scratch`] in debug builds, so that tests detect bytes that were not
/// written.
const UNWRITTEN: u8 = 0xa5;

/// Memory that is neither written nor moved while a handle to it exists.
///
/// Tensors share only such memory, and devices may read it after the call that passed it. Memory
/// that another owner can still write is not `Frozen`: a tensor copies it.
#[derive(Clone)]
pub struct Frozen {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

impl Frozen {
    /// Creates frozen memory from an owner that promises not to write it, and whose `as_ref` always
    /// returns the same bytes.
    ///
    /// Owners in safe Rust cannot break the promise, because the bytes are borrowed from a shared
    /// owner. An implementation of `AsRef` over memory that other languages can access must ensure
    /// it.
    #[must_use]
    pub fn promised_by<T: AsRef<[u8]> + Send + Sync + 'static>(owner: T) -> Frozen {
        Frozen { owner: Arc::new(owner) }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        (*self.owner).as_ref()
    }
}

impl fmt::Debug for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frozen({} bytes)", self.bytes().len())
    }
}

/// The host tensors of this process.
static LIVE: Live = Live::new();

/// Returns the memory of live host tensors.
///
/// ```
/// use nxla_tensor::{HostTensor, host_memory};
///
/// let before = host_memory();
/// let x = HostTensor::from_slice(&[1.0f32; 1000], [1000])?;
/// assert_eq!(host_memory().bytes - before.bytes, 4000);
/// # Ok::<(), nxla_tensor::TensorError>(())
/// ```
#[must_use]
pub fn host_memory() -> LiveMemory {
    LIVE.now()
}

/// The start of a block, which returns to the pool when it is dropped.
pub(crate) struct OwnedBytes {
    block: MemoryBlock,
    len: usize,
}

impl AsRef<[u8]> for OwnedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.block.bytes()[..self.len]
    }
}

impl OwnedBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.block.bytes_mut()[..self.len]
    }
}

impl Drop for OwnedBytes {
    fn drop(&mut self) {
        LIVE.remove(self.len);
        pool::put_back(std::mem::take(&mut self.block));
    }
}

/// Shared bytes. Cloning copies only the handle.
#[derive(Clone)]
pub(crate) enum Storage {
    /// Memory of this crate.
    Owned(Arc<OwnedBytes>),
    /// Memory of another owner.
    Frozen(Frozen),
}

impl Storage {
    fn owned(block: MemoryBlock, len: usize) -> Storage {
        LIVE.add(len);
        Storage::Owned(Arc::new(OwnedBytes { block, len }))
    }

    /// Creates zeroed storage, or returns `None` if there is not enough memory.
    pub(crate) fn zeroed(len: usize) -> Option<Storage> {
        pool::take_zeroed(len).map(|block| Storage::owned(block, len))
    }

    /// Creates storage with unspecified contents, or returns `None` if there is not enough memory.
    ///
    /// The bytes may be left over from a dropped tensor.
    pub(crate) fn scratch(len: usize) -> Option<Storage> {
        let mut block = pool::take(len)?;
        if cfg!(debug_assertions) {
            block.bytes_mut()[..len].fill(UNWRITTEN);
        }
        Some(Storage::owned(block, len))
    }

    /// Copies bytes, or returns `None` if there is not enough memory.
    pub(crate) fn copy_of(bytes: &[u8]) -> Option<Storage> {
        let len = bytes.len();
        if len < pool::LEAST {
            return Some(Storage::owned(MemoryBlock::copy_of(bytes), len));
        }
        let mut block = pool::take(len)?;
        block.bytes_mut()[..len].copy_from_slice(bytes);
        Some(Storage::owned(block, len))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Owned(bytes) => (**bytes).as_ref(),
            Storage::Frozen(memory) => memory.bytes(),
        }
    }

    /// Returns shared ownership of the memory. While it exists, the memory cannot be written.
    pub(crate) fn share(&self) -> Frozen {
        match self {
            Storage::Owned(bytes) => Frozen { owner: bytes.clone() },
            Storage::Frozen(memory) => memory.clone(),
        }
    }

    /// Returns the bytes for writing, or `None` if another handle exists.
    pub(crate) fn unique_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Storage::Owned(bytes) => Arc::get_mut(bytes).map(OwnedBytes::as_mut),
            Storage::Frozen(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::ALIGNMENT;

    #[cfg_attr(miri, ignore = "it takes too long")]
    #[test]
    fn memory_of_all_sizes_is_aligned_zeroed_and_copied() {
        for len in [0, 1, 4 << 10, 5_000, (8 << 20) - 1, 8 << 20, (8 << 20) + 1] {
            let mut zeros = Storage::zeroed(len).unwrap();
            assert_eq!(zeros.bytes().len(), len);
            assert!(zeros.bytes().iter().all(|&byte| byte == 0));
            zeros.unique_mut().unwrap().fill(7);
            let copy = Storage::copy_of(zeros.bytes()).unwrap();
            assert!(copy.bytes() == zeros.bytes());
            let scratch = Storage::scratch(len).unwrap();
            assert_eq!(scratch.bytes().len(), len);
            for storage in [zeros, copy, scratch] {
                assert_eq!(storage.bytes().as_ptr().align_offset(ALIGNMENT), 0);
            }
        }
    }

    #[test]
    fn zeros_in_used_memory_are_zeros() {
        for _ in 0..10 {
            let mut storage = Storage::zeroed(100_000).unwrap();
            assert!(storage.bytes().iter().all(|&byte| byte == 0));
            storage.unique_mut().unwrap().fill(9);
        }
    }

    #[test]
    fn shared_memory_is_not_written() {
        let mut storage = Storage::copy_of(&[1, 2, 3]).unwrap();
        let shared = storage.share();
        assert!(storage.unique_mut().is_none());
        assert_eq!(shared.bytes().as_ptr(), storage.bytes().as_ptr());
        drop(shared.clone());
        assert!(storage.unique_mut().is_none());
        drop(shared);
        storage.unique_mut().unwrap()[0] = 4;
        assert_eq!(storage.bytes(), [4, 2, 3]);
    }
}
