//! The memory behind a host tensor: owned and aligned, or borrowed from elsewhere.

use std::sync::Arc;

/// Alignment of owned buffers in bytes: a cache line, and what accelerators accept without a copy.
pub(crate) const ALIGNMENT: usize = 64;

/// From this many bytes on, an allocation may well fail.
const LARGE: usize = 64 << 20;

/// Memory owned by someone else that stays valid as long as the handle lives.
pub type ForeignBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Owned bytes that begin at a multiple of [`ALIGNMENT`].
///
/// The vector is a little longer than needed, so that an aligned place can be found in it. This
/// way large buffers of zeros come straight from the operating system, which hands out pages of
/// zeros anyway, rather than being written once more.
pub(crate) struct AlignedBytes {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    fn zeroed(len: usize) -> Option<AlignedBytes> {
        let capacity = len + (ALIGNMENT - 1);
        // A vector of zeros ends the process where there is no memory for it, so a large one is
        // asked for in a way that can be refused first. The box keeps that from being taken for
        // an allocation that nobody uses.
        let mut asked = std::hint::black_box(Vec::<u8>::new());
        if len >= LARGE && std::hint::black_box(asked.try_reserve_exact(capacity)).is_err() {
            return None;
        }
        drop(std::hint::black_box(asked));
        let memory = vec![0; capacity];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Some(AlignedBytes { memory, start, len })
    }

    fn copy_of(bytes: &[u8]) -> AlignedBytes {
        let len = bytes.len();
        let mut memory: Vec<u8> = Vec::with_capacity(len + (ALIGNMENT - 1));
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        memory.resize(start, 0);
        memory.extend_from_slice(bytes);
        AlignedBytes { memory, start, len }
    }

    fn as_slice(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// Shared bytes. Cloning copies the handle only.
#[derive(Clone)]
pub(crate) enum Storage {
    Owned(Arc<AlignedBytes>),
    Foreign(ForeignBytes),
}

impl Storage {
    /// Zeros, or `None` where there is no memory for them.
    pub(crate) fn zeroed(bytes: usize) -> Option<Storage> {
        AlignedBytes::zeroed(bytes).map(|bytes| Storage::Owned(Arc::new(bytes)))
    }

    pub(crate) fn copy_of(bytes: &[u8]) -> Storage {
        Storage::Owned(Arc::new(AlignedBytes::copy_of(bytes)))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Storage::Owned(bytes) => bytes.as_slice(),
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
