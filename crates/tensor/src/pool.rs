//! The memory pool: blocks of dropped tensors, for reuse by tensors of similar size.
//!
//! New memory causes a page fault for every 4 KB, which takes several times as long as writing it.
//! A program that runs repeatedly needs the same sizes each time, so freed blocks are kept.
//!
//! Notable details:
//!
//! * Blocks have size classes, four for each doubling, so at most a quarter of a block is unused.
//!   Memory shorter than [`LEAST`] comes from the allocator.
//! * No thread waits. Each class has a lock that is held for a push or a pop; a thread that finds
//!   it locked bypasses the pool. A fork is therefore safe at any time.
//! * The pool holds at most [`LIMIT`] bytes. Beyond the limit, one class after another frees its
//!   least recently used block.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::block::MemoryBlock;

/// The shortest block in the pool.
pub(crate) const LEAST: usize = 1 << LEAST_BITS;
const LEAST_BITS: usize = 8;

/// The longest block in the pool, so that one block cannot displace all others.
const MOST: usize = LIMIT / 2;

/// The maximum number of bytes in the pool.
const LIMIT: usize = 256 << 20;

/// The number of size classes for each doubling.
const STEPS: usize = 4;

const CLASSES: usize = (MOST.ilog2() as usize - LEAST_BITS) * STEPS + 1;

static POOL: Pool = Pool::new();

/// Returns the number of bytes of dropped tensors that are kept for reuse.
#[must_use]
pub fn held_memory() -> usize {
    POOL.held.load(Ordering::Relaxed)
}

/// Frees the memory that is kept for reuse, and returns the number of freed bytes.
pub fn release_held_memory() -> usize {
    POOL.release()
}

/// Returns a block of at least `len` bytes with old contents or zeros, or `None` if there is not
/// enough memory.
pub(crate) fn take(len: usize) -> Option<MemoryBlock> {
    POOL.take(len).or_else(|| fresh(len))
}

/// Returns a block of at least `len` bytes that starts with `len` zeros, or `None` if there is not
/// enough memory.
pub(crate) fn take_zeroed(len: usize) -> Option<MemoryBlock> {
    let Some(mut block) = POOL.take(len) else { return fresh(len) };
    block.bytes_mut()[..len].fill(0);
    Some(block)
}

/// Returns an unused block to the pool.
pub(crate) fn put_back(block: MemoryBlock) {
    POOL.put_back(block);
}

/// Allocates zeros; if this fails, frees the pool and tries again.
fn fresh(len: usize) -> Option<MemoryBlock> {
    let capacity = class_of(len).map_or(len, size_of_class);
    MemoryBlock::zeroed(capacity).or_else(|| {
        release_held_memory();
        MemoryBlock::zeroed(capacity)
    })
}

/// Returns the first class whose blocks have at least `len` bytes.
fn class_of(len: usize) -> Option<usize> {
    if !(LEAST..=MOST).contains(&len) {
        return None;
    }
    let octave = len.ilog2() as usize;
    // The steps between sizes are a quarter of the preceding power of two.
    let steps = (len - (1 << octave)).div_ceil((1 << octave) / STEPS);
    Some((octave - LEAST_BITS) * STEPS + steps)
}

/// Returns the length of the blocks of a class.
fn size_of_class(class: usize) -> usize {
    let least = LEAST << (class / STEPS);
    least + least / STEPS * (class % STEPS)
}

struct Pool {
    classes: [Mutex<VecDeque<MemoryBlock>>; CLASSES],
    /// The number of bytes in all classes and in blocks that are being added or removed.
    held: AtomicUsize,
    /// The class that frees a block next.
    turn: AtomicUsize,
}

impl Pool {
    const fn new() -> Pool {
        Pool {
            classes: [const { Mutex::new(VecDeque::new()) }; CLASSES],
            held: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
        }
    }

    /// Locks a class, unless another thread holds the lock.
    fn try_class(&self, class: usize) -> Option<MutexGuard<'_, VecDeque<MemoryBlock>>> {
        match self.classes[class].try_lock() {
            Ok(blocks) => Some(blocks),
            // A panic in a push or pop leaves a valid list.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes the most recently returned block of the class, which may still be in a cache.
    fn take(&self, len: usize) -> Option<MemoryBlock> {
        let block = self.try_class(class_of(len)?)?.pop_back()?;
        self.held.fetch_sub(block.len(), Ordering::Relaxed);
        Some(block)
    }

    fn put_back(&self, block: MemoryBlock) {
        let len = block.len();
        // Blocks that were not allocated for a class do not have its size.
        let Some(class) = class_of(len).filter(|&class| size_of_class(class) == len) else {
            return;
        };
        let held = self.held.fetch_add(len, Ordering::Relaxed) + len;
        if held > LIMIT {
            self.make_room(held - LIMIT);
        }
        if self.held.load(Ordering::Relaxed) <= LIMIT
            && let Some(mut blocks) = self.try_class(class)
        {
            blocks.push_back(block);
            return;
        }
        self.held.fetch_sub(len, Ordering::Relaxed);
    }

    /// Frees blocks of some classes until there is room, or every class was tried.
    fn make_room(&self, needed: usize) {
        let mut freed = 0;
        for _ in 0..CLASSES {
            let class = self.turn.fetch_add(1, Ordering::Relaxed) % CLASSES;
            let oldest = self.try_class(class).and_then(|mut blocks| blocks.pop_front());
            // Dropped here, where no lock is held.
            if let Some(block) = oldest {
                self.held.fetch_sub(block.len(), Ordering::Relaxed);
                freed += block.len();
            }
            if freed >= needed {
                return;
            }
        }
    }

    fn release(&self) -> usize {
        let mut freed = 0;
        for class in &self.classes {
            let blocks = std::mem::take(&mut *class.lock().unwrap_or_else(PoisonError::into_inner));
            freed += blocks.iter().map(MemoryBlock::len).sum::<usize>();
        }
        self.held.fetch_sub(freed, Ordering::Relaxed);
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a block with a mark.
    fn marked_block(len: usize, mark: u8) -> MemoryBlock {
        let mut block = fresh(len).unwrap();
        block.bytes_mut()[0] = mark;
        block
    }

    #[test]
    fn size_classes_waste_at_most_a_quarter() {
        for class in 0..CLASSES {
            let size = size_of_class(class);
            assert_eq!(class_of(size), Some(class));
            if size < MOST {
                assert_eq!(class_of(size + 1), Some(class + 1));
                assert!(size_of_class(class + 1) <= size + size / STEPS);
            }
        }
        assert_eq!((class_of(LEAST - 1), class_of(MOST + 1)), (None, None));
        assert_eq!((size_of_class(0), size_of_class(CLASSES - 1)), (LEAST, MOST));
    }

    #[test]
    fn blocks_are_reused_only_within_their_class() {
        let pool = Pool::new();
        pool.put_back(marked_block(10_000, 7));
        assert_eq!(pool.held.load(Ordering::Relaxed), 10 << 10);
        assert!(pool.take(8 << 10).is_none());
        assert!(pool.take((10 << 10) + 1).is_none());
        let block = pool.take(9_000).unwrap();
        assert_eq!((block.len(), block.bytes()[0]), (10 << 10, 7));
        assert_eq!(pool.held.load(Ordering::Relaxed), 0);
        assert!(pool.take(10_000).is_none());
    }

    #[test]
    fn short_odd_and_huge_blocks_are_freed() {
        let pool = Pool::new();
        pool.put_back(MemoryBlock::default());
        pool.put_back(MemoryBlock::copy_of(&[1; LEAST - 1]));
        pool.put_back(MemoryBlock::zeroed(LEAST + 1).unwrap());
        pool.put_back(fresh(MOST + 1).unwrap());
        assert_eq!(pool.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn full_pools_free_the_least_recently_used_blocks() {
        let pool = Pool::new();
        for mark in 0..2 {
            pool.put_back(marked_block(MOST, mark));
        }
        for mark in 2..6 {
            pool.put_back(marked_block(1 << 20, mark));
        }
        // The first of the largest blocks was freed for the small ones.
        assert!(pool.held.load(Ordering::Relaxed) <= LIMIT);
        assert_eq!(pool.take(MOST).unwrap().bytes()[0], 1);
        assert_eq!(pool.take(1 << 20).unwrap().bytes()[0], 5);
        assert_eq!(pool.release(), 3 << 20);
        assert_eq!(pool.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn locked_classes_are_skipped() {
        let pool = Pool::new();
        pool.put_back(marked_block(LEAST, 1));
        let busy = pool.classes[0].lock().unwrap();
        assert!(pool.take(LEAST).is_none());
        pool.put_back(marked_block(LEAST, 2));
        drop(busy);
        assert_eq!(pool.held.load(Ordering::Relaxed), LEAST);
        assert_eq!(pool.take(LEAST).unwrap().bytes()[0], 1);
    }
}
