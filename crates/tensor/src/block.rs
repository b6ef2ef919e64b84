//! Blocks of aligned memory, from the allocator or in huge pages.

use bytemuck::allocation::try_zeroed_vec;

use crate::physical::fits_in_memory;

/// The alignment of blocks: a cache line, which accelerators accept without a copy.
pub(crate) const ALIGNMENT: usize = 64;

/// Bytes that start at a multiple of [`ALIGNMENT`]. The default is an empty block.
pub(crate) struct MemoryBlock {
    memory: Memory,
    len: usize,
}

enum Memory {
    /// A vector that is longer than needed, so that it contains an aligned address. Large zeroed
    /// buffers come directly from the operating system, whose pages are zeroed already, and are not
    /// written again.
    Heap { bytes: Vec<u8>, start: usize },
    /// Whole huge pages.
    #[cfg(target_os = "linux")]
    Pages(memmap2::MmapMut),
}

impl Default for MemoryBlock {
    fn default() -> MemoryBlock {
        MemoryBlock { memory: Memory::Heap { bytes: Vec::new(), start: 0 }, len: 0 }
    }
}

impl MemoryBlock {
    /// Creates a zeroed block, or returns `None` if there is not enough memory.
    pub(crate) fn zeroed(len: usize) -> Option<MemoryBlock> {
        if !fits_in_memory(len) {
            return None;
        }
        #[cfg(target_os = "linux")]
        if let Some(pages) = huge::pages(len) {
            return Some(MemoryBlock { memory: Memory::Pages(pages), len });
        }
        let bytes: Vec<u8> = try_zeroed_vec(len.checked_add(ALIGNMENT - 1)?).ok()?;
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Some(MemoryBlock { memory: Memory::Heap { bytes, start }, len })
    }

    /// Copies a small number of bytes without zeroing the block first.
    pub(crate) fn copy_of(bytes: &[u8]) -> MemoryBlock {
        let len = bytes.len();
        let mut copy: Vec<u8> = Vec::with_capacity(len + (ALIGNMENT - 1));
        let start = copy.as_ptr().align_offset(ALIGNMENT);
        copy.resize(start, 0);
        copy.extend_from_slice(bytes);
        MemoryBlock { memory: Memory::Heap { bytes: copy, start }, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Heap { bytes, start } => &bytes[*start..][..self.len],
            #[cfg(target_os = "linux")]
            Memory::Pages(pages) => &pages[..self.len],
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Heap { bytes, start } => &mut bytes[*start..][..self.len],
            #[cfg(target_os = "linux")]
            Memory::Pages(pages) => &mut pages[..self.len],
        }
    }
}

/// Memory in pages of 2 MB, on systems that support them for single mappings.
///
/// With pages of 4 KB, a result of 40 MB causes ten thousand page faults, and reading columns
/// misses the TLB. Both together can take half of the time of a memory-bound kernel.
#[cfg(target_os = "linux")]
mod huge {
    use memmap2::{Advice, MmapMut};

    /// The size of a huge page on x86-64 and, with base pages of 4 KB, on aarch64.
    const PAGE: usize = 2 << 20;

    /// The minimum length for huge pages. Shorter blocks probably fit in memory that the allocator
    /// holds, and zeroing this memory is faster than mapping new pages.
    pub(super) const LEAST: usize = 4 * PAGE;

    /// Maps at least `len` zeroed bytes; returns `None` for short lengths, or if the system
    /// refuses.
    pub(super) fn pages(len: usize) -> Option<MmapMut> {
        if len < LEAST {
            return None;
        }
        // The system aligns a mapping that consists of huge pages.
        let pages = MmapMut::map_anon(len.checked_next_multiple_of(PAGE)?).ok()?;
        // Fails if the system has no huge pages; the pages are then small.
        let _ = pages.advise(Advice::HugePage);
        Some(pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg_attr(miri, ignore = "it takes too long")]
    #[test]
    fn blocks_of_all_sizes_are_aligned_and_zeroed() {
        for len in [0, 1, 4 << 10, (8 << 20) - 1, 8 << 20, (8 << 20) + 1] {
            let block = MemoryBlock::zeroed(len).unwrap();
            assert_eq!(block.len(), len);
            assert_eq!(block.bytes().len(), len);
            assert_eq!(block.bytes().as_ptr().align_offset(ALIGNMENT), 0);
            assert!(block.bytes().iter().all(|&byte| byte == 0));
        }
        let copy = MemoryBlock::copy_of(&[1, 2, 3]);
        assert_eq!(copy.bytes(), [1, 2, 3]);
        assert_eq!(copy.bytes().as_ptr().align_offset(ALIGNMENT), 0);
    }

    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri knows no huge pages")]
    #[test]
    fn large_blocks_use_separate_pages() {
        let memory = |len| MemoryBlock::zeroed(len).unwrap().memory;
        assert!(matches!(memory(huge::LEAST), Memory::Pages(_)));
        assert!(matches!(memory(huge::LEAST - 1), Memory::Heap { .. }));
    }
}
