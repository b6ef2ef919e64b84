//! The memory behind a host tensor: owned and aligned, or borrowed from elsewhere.

use std::sync::Arc;

/// Alignment of owned buffers in bytes: a cache line, and what accelerators accept without a copy.
pub(crate) const ALIGNMENT: usize = 64;

/// From this many bytes on, an allocation may well fail.
const LARGE: usize = 64 << 20;

/// Memory owned by someone else that stays valid as long as the handle lives.
pub type ForeignBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Owned bytes that begin at a multiple of [`ALIGNMENT`].
pub(crate) struct AlignedBytes {
    memory: Memory,
    len: usize,
}

enum Memory {
    /// A vector that is a little longer than needed, so that an aligned place can be found in it.
    /// This way larger buffers of zeros come straight from the operating system, which hands out
    /// pages of zeros anyway, rather than being written once more.
    Heap { bytes: Vec<u8>, start: usize },
    /// Whole huge pages.
    #[cfg(target_os = "linux")]
    Pages(memmap2::MmapMut),
}

impl AlignedBytes {
    fn zeroed(len: usize) -> Option<AlignedBytes> {
        #[cfg(target_os = "linux")]
        if let Some(pages) = huge::pages(len) {
            return Some(AlignedBytes { memory: Memory::Pages(pages), len });
        }
        let capacity = len + (ALIGNMENT - 1);
        // A vector of zeros ends the process where there is no memory for it, so a large one is
        // asked for in a way that can be refused first. The box keeps that from being taken for
        // an allocation that nobody uses.
        let mut asked = std::hint::black_box(Vec::<u8>::new());
        if len >= LARGE && std::hint::black_box(asked.try_reserve_exact(capacity)).is_err() {
            return None;
        }
        drop(std::hint::black_box(asked));
        let bytes = vec![0; capacity];
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Some(AlignedBytes { memory: Memory::Heap { bytes, start }, len })
    }

    fn copy_of(bytes: &[u8]) -> AlignedBytes {
        let len = bytes.len();
        #[cfg(target_os = "linux")]
        if let Some(mut pages) = huge::pages(len) {
            pages[..len].copy_from_slice(bytes);
            return AlignedBytes { memory: Memory::Pages(pages), len };
        }
        let mut copy: Vec<u8> = Vec::with_capacity(len + (ALIGNMENT - 1));
        let start = copy.as_ptr().align_offset(ALIGNMENT);
        copy.resize(start, 0);
        copy.extend_from_slice(bytes);
        AlignedBytes { memory: Memory::Heap { bytes: copy, start }, len }
    }

    fn as_slice(&self) -> &[u8] {
        match &self.memory {
            Memory::Heap { bytes, start } => &bytes[*start..][..self.len],
            #[cfg(target_os = "linux")]
            Memory::Pages(pages) => &pages[..self.len],
        }
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Heap { bytes, start } => &mut bytes[*start..][..self.len],
            #[cfg(target_os = "linux")]
            Memory::Pages(pages) => &mut pages[..self.len],
        }
    }
}

/// Memory in pages of 2 MB, where the system has them for whoever asks.
///
/// With pages of 4 KB, a result of 40 MB costs ten thousand page faults, and every walk down its
/// columns misses the table of pages: together up to half of the time of a kernel that is bound by
/// memory.
#[cfg(target_os = "linux")]
mod huge {
    use memmap2::{Advice, MmapMut};

    /// The size of a huge page on x86-64 and, with base pages of 4 KB, on aarch64.
    const PAGE: usize = 2 << 20;

    /// What is shorter is likely to find memory that the allocator has at hand, which is faster to
    /// fill with zeros than new pages are to get.
    pub(super) const LEAST: usize = 8 * PAGE;

    /// New zeros of at least `len` bytes; `None` if they are few, or where the system refuses.
    pub(super) fn pages(len: usize) -> Option<MmapMut> {
        if len < LEAST {
            return None;
        }
        // The system aligns a mapping to huge pages if it consists of them.
        let pages = MmapMut::map_anon(len.checked_next_multiple_of(PAGE)?).ok()?;
        // Refused where the system was built without huge pages: then these are small ones.
        let _ = pages.advise(Advice::HugePage);
        Some(pages)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_all_sizes_are_aligned_zeroed_and_copied() {
        for len in [0, 1, 4 << 10, (16 << 20) - 1, 16 << 20, (16 << 20) + 1] {
            let mut zeros = Storage::zeroed(len).unwrap();
            assert_eq!(zeros.bytes().len(), len);
            assert!(zeros.bytes().iter().all(|&byte| byte == 0));
            zeros.make_mut().fill(7);
            let copy = Storage::copy_of(zeros.bytes());
            assert!(copy.bytes() == zeros.bytes());
            for storage in [zeros, copy] {
                assert_eq!(storage.bytes().as_ptr().align_offset(ALIGNMENT), 0);
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn large_buffers_are_in_pages_of_their_own() {
        let memory = |len| AlignedBytes::zeroed(len).unwrap().memory;
        assert!(matches!(memory(huge::LEAST), Memory::Pages(_)));
        assert!(matches!(memory(huge::LEAST - 1), Memory::Heap { .. }));
    }
}
