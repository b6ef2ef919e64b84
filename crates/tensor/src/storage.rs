//! The memory behind a host tensor: owned and aligned, or borrowed from elsewhere.

use std::sync::Arc;

use aligned_vec::{AVec, ConstAlign};

/// Alignment of owned buffers in bytes: a cache line, and what accelerators accept without a copy.
pub(crate) const ALIGNMENT: usize = 64;

/// Memory owned by someone else that stays valid as long as the handle lives.
pub type ForeignBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

type AlignedBytes = AVec<u8, ConstAlign<ALIGNMENT>>;

/// Shared bytes. Cloning copies the handle only.
#[derive(Clone)]
pub(crate) enum Storage {
    Owned(Arc<AlignedBytes>),
    Foreign(ForeignBytes),
}

impl Storage {
    pub(crate) fn zeroed(bytes: usize) -> Storage {
        Storage::Owned(Arc::new(aligned_vec::avec![[ALIGNMENT] | 0_u8; bytes]))
    }

    pub(crate) fn copy_of(bytes: &[u8]) -> Storage {
        Storage::Owned(Arc::new(AlignedBytes::from_slice(ALIGNMENT, bytes)))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Owned(bytes) => bytes,
            Storage::Foreign(bytes) => (**bytes).as_ref(),
        }
    }

    /// The bytes for writing, or `None` where someone else can see them.
    pub(crate) fn unique_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Storage::Owned(bytes) => Arc::get_mut(bytes).map(|bytes| bytes.as_mut_slice()),
            Storage::Foreign(_) => None,
        }
    }

    /// The bytes for writing, copied first where someone else can see them.
    pub(crate) fn make_mut(&mut self) -> &mut [u8] {
        if self.unique_mut().is_none() {
            *self = Storage::copy_of(self.bytes());
        }
        self.unique_mut().expect("the buffer was unique or has just been replaced by a copy")
    }
}
