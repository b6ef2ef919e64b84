//! The memory behind a host tensor. Whichever kind it is, nobody writes to it while two can see it.
//!
//! There are two kinds: memory of our own, which is written through its only handle, and memory of
//! others that is [`Frozen`]. There is none for memory of others that they may write to: that can
//! only be copied.

use std::fmt;
use std::sync::Arc;

use crate::block::Block;
use crate::pool;

/// What [`Storage::scratch`] holds in debug builds, so that tests see what was not overwritten.
const UNWRITTEN: u8 = 0xa5;

/// Memory that nobody writes to while a handle to it lives, and that stays where it is.
///
/// Only such memory is shared with tensors, and lent to devices that compute with it after the call
/// that lent it. Memory that someone else can still write to is no `Frozen`: a tensor gets a copy
/// of it.
#[derive(Clone)]
pub struct Frozen {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

impl Frozen {
    /// The memory of an owner, by whose promise nobody writes to it while the owner lives, and
    /// `as_ref` always gives the same bytes.
    ///
    /// Owners written in safe Rust cannot break it: the bytes are borrowed from an owner that is
    /// shared. Whoever implements `AsRef` over memory that other languages can reach has to see to
    /// it.
    #[must_use]
    pub fn promised_by<T: AsRef<[u8]> + Send + Sync + 'static>(owner: T) -> Frozen {
        Frozen { owner: Arc::new(owner) }
    }

    /// The bytes.
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

/// The beginning of a block, which goes back to the pool in the end.
pub(crate) struct OwnedBytes {
    block: Block,
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
        pool::give(std::mem::take(&mut self.block));
    }
}

/// Shared bytes. Cloning copies the handle only.
#[derive(Clone)]
pub(crate) enum Storage {
    /// Memory of our own.
    Owned(Arc<OwnedBytes>),
    /// Memory of someone else.
    Frozen(Frozen),
}

impl Storage {
    fn owned(block: Block, len: usize) -> Storage {
        Storage::Owned(Arc::new(OwnedBytes { block, len }))
    }

    /// Zeros, or `None` where there is no memory for them.
    pub(crate) fn zeroed(len: usize) -> Option<Storage> {
        pool::take_zeroed(len).map(|block| Storage::owned(block, len))
    }

    /// Bytes of any value, for who overwrites all of them; `None` where there is no memory.
    ///
    /// They may be those of a tensor that was freed.
    pub(crate) fn scratch(len: usize) -> Option<Storage> {
        let mut block = pool::take(len)?;
        if cfg!(debug_assertions) {
            block.bytes_mut()[..len].fill(UNWRITTEN);
        }
        Some(Storage::owned(block, len))
    }

    /// A copy, or `None` where there is no memory for it.
    pub(crate) fn copy_of(bytes: &[u8]) -> Option<Storage> {
        let len = bytes.len();
        if len < pool::LEAST {
            return Some(Storage::owned(Block::copy_of(bytes), len));
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

    /// The memory, to be held by others. While they do, nobody can write to it here either.
    pub(crate) fn share(&self) -> Frozen {
        match self {
            Storage::Owned(bytes) => Frozen { owner: bytes.clone() },
            Storage::Frozen(memory) => memory.clone(),
        }
    }

    /// The bytes for writing, or `None` where someone else can see them.
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
