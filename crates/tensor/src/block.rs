//! Blocks: aligned memory of our own, from the allocator or in huge pages.

use bytemuck::allocation::try_zeroed_vec;

/// Where a block begins: at a cache line, which is also what accelerators accept without a copy.
pub(crate) const ALIGNMENT: usize = 64;

/// Bytes that begin at a multiple of [`ALIGNMENT`]. The default is an empty block.
pub(crate) struct Block {
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

impl Default for Block {
    fn default() -> Block {
        Block { memory: Memory::Heap { bytes: Vec::new(), start: 0 }, len: 0 }
    }
}

impl Block {
    /// Zeros, or `None` where there is no memory for them.
    pub(crate) fn zeroed(len: usize) -> Option<Block> {
        #[cfg(target_os = "linux")]
        if let Some(pages) = huge::pages(len) {
            return Some(Block { memory: Memory::Pages(pages), len });
        }
        let bytes: Vec<u8> = try_zeroed_vec(len.checked_add(ALIGNMENT - 1)?).ok()?;
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Some(Block { memory: Memory::Heap { bytes, start }, len })
    }

    /// A copy of a few bytes, which are written once and not zeroed before.
    pub(crate) fn copy_of(bytes: &[u8]) -> Block {
        let len = bytes.len();
        let mut copy: Vec<u8> = Vec::with_capacity(len + (ALIGNMENT - 1));
        let start = copy.as_ptr().align_offset(ALIGNMENT);
        copy.resize(start, 0);
        copy.extend_from_slice(bytes);
        Block { memory: Memory::Heap { bytes: copy, start }, len }
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
    pub(super) const LEAST: usize = 4 * PAGE;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg_attr(miri, ignore = "it takes too long")]
    #[test]
    fn blocks_of_all_sizes_are_aligned_and_zeroed() {
        for len in [0, 1, 4 << 10, (8 << 20) - 1, 8 << 20, (8 << 20) + 1] {
            let block = Block::zeroed(len).unwrap();
            assert_eq!(block.len(), len);
            assert_eq!(block.bytes().len(), len);
            assert_eq!(block.bytes().as_ptr().align_offset(ALIGNMENT), 0);
            assert!(block.bytes().iter().all(|&byte| byte == 0));
        }
        let copy = Block::copy_of(&[1, 2, 3]);
        assert_eq!(copy.bytes(), [1, 2, 3]);
        assert_eq!(copy.bytes().as_ptr().align_offset(ALIGNMENT), 0);
    }

    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri knows no huge pages")]
    #[test]
    fn large_blocks_are_in_pages_of_their_own() {
        let memory = |len| Block::zeroed(len).unwrap().memory;
        assert!(matches!(memory(huge::LEAST), Memory::Pages(_)));
        assert!(matches!(memory(huge::LEAST - 1), Memory::Heap { .. }));
    }
}
