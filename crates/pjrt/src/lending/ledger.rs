//! Which blocks are lent, by their address.
//!
//! A plugin gives back a thousand small blocks for each large one, so the question whether one is
//! ours is asked without a lock: an address can only be in the few places that its hash names, and
//! those are in one cache line.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use nxla_tensor::Lent;

/// The shortest block that is lent; the C library does not go to the system for shorter ones.
const LEAST: usize = 128 << 10;

/// Where all that is lent begins.
pub(super) const ALIGNMENT: usize = 64;

/// Places for an address.
const GROUP: usize = 8;
const GROUPS: usize = 512;

/// The places of one hash, in a cache line.
#[repr(align(64))]
struct Group([AtomicUsize; GROUP]);

/// For each place the address that is lent from there, or zero.
static ADDRESSES: [Group; GROUPS] =
    [const { Group([const { AtomicUsize::new(0) }; GROUP]) }; GROUPS];

/// For each place what is lent from there. Whoever changes a place holds its lock.
static BLOCKS: [[Mutex<Option<Lent>>; GROUP]; GROUPS] =
    [const { [const { Mutex::new(None) }; GROUP] }; GROUPS];

fn group_of(address: usize) -> usize {
    // Large blocks differ in bits above those of a page.
    (address >> 6 ^ address >> 14 ^ address >> 22) % GROUPS
}

/// Lends so many bytes; `None` if they are few, if there is no memory, or no place to note them.
pub(super) fn lend(len: usize) -> Option<*mut u8> {
    if len < LEAST {
        return None;
    }
    let mut block = Lent::new(len)?;
    let start = block.bytes_mut().as_mut_ptr();
    let group = group_of(start.addr());
    for (address, place) in ADDRESSES[group].0.iter().zip(&BLOCKS[group]) {
        if address.load(Ordering::Relaxed) != 0 {
            continue;
        }
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            *place = Some(block);
            address.store(start.addr(), Ordering::Release);
            return Some(start);
        }
    }
    None
}

/// How long the block at an address is, if it is lent.
pub(super) fn len_of(start: usize) -> Option<usize> {
    let (group, place) = find(start)?;
    let mut block = BLOCKS[group][place].lock().unwrap_or_else(PoisonError::into_inner);
    block.as_mut().map(|block| block.bytes_mut().len())
}

/// Takes a block back; whether it was lent.
#[inline]
pub(super) fn take_back(start: usize) -> bool {
    let Some((group, place)) = find(start) else { return false };
    let mut block = BLOCKS[group][place].lock().unwrap_or_else(PoisonError::into_inner);
    ADDRESSES[group].0[place].store(0, Ordering::Relaxed);
    let returned = block.take();
    drop(block);
    // It goes to the pool here, where no lock is held.
    drop(returned);
    true
}

/// Whether the block at an address is lent.
#[inline]
pub(super) fn is_lent(start: usize) -> bool {
    find(start).is_some()
}

#[inline]
fn find(start: usize) -> Option<(usize, usize)> {
    if !start.is_multiple_of(ALIGNMENT) || start == 0 {
        return None;
    }
    let group = group_of(start);
    let place = ADDRESSES[group].0.iter().position(|at| at.load(Ordering::Acquire) == start)?;
    Some((group, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_known_until_it_is_back() {
        let start = lend(1 << 20).unwrap().addr();
        assert!(is_lent(start) && !is_lent(start + 64) && !is_lent(start + 1) && !is_lent(0));
        assert!(len_of(start).unwrap() >= 1 << 20);
        assert!(take_back(start) && !take_back(start) && !is_lent(start));
        assert!(lend(LEAST - 1).is_none() && lend(usize::MAX).is_none());
    }

    #[test]
    fn threads_lend_and_return_side_by_side() {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for turn in 0..200 {
                        let len = LEAST << ((turn + thread) % 4);
                        let blocks: Vec<_> = (0..5).filter_map(|_| lend(len)).collect();
                        let starts: Vec<usize> = blocks.iter().map(|block| block.addr()).collect();
                        assert!(starts.iter().all(|&start| len_of(start).unwrap() >= len));
                        assert!(starts.into_iter().all(take_back));
                    }
                });
            }
        });
    }

    #[test]
    fn where_there_is_no_place_the_c_library_has_to_lend() {
        let lent: Vec<usize> =
            (0..2 * GROUP * GROUPS).map_while(|_| lend(LEAST)).map(|block| block.addr()).collect();
        assert!(lent.len() < 2 * GROUP * GROUPS);
        assert!(lent.into_iter().all(take_back));
    }
}
