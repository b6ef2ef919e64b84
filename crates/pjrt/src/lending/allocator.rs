//! The functions that a plugin calls in place of those of the C library.

use std::ffi::{CStr, c_int, c_void};

use super::imports::{Redirect, redirect};
use super::ledger::{ALIGNMENT, is_lent, len_of, lend, take_back};
use crate::forked;
use crate::plugin::Plugin;

/// Has a plugin get its large blocks here.
pub(super) fn lend_to(plugin: &Plugin) {
    // What gives memory back comes first: by the time that something is lent, all that might return
    // it must know where it belongs.
    let returning = [to(c"free", free as *const ()), to(c"realloc", realloc as *const ())];
    let taking = [
        to(c"aligned_alloc", aligned_alloc as *const ()),
        to(c"posix_memalign", posix_memalign as *const ()),
    ];
    redirect(plugin.path(), &returning, &taking);
}

fn to(name: &'static CStr, function: *const ()) -> Redirect {
    Redirect { name, function: function.expose_provenance() }
}

/// A block that may be lent. In a child of the process the locks of the ledger may be held by
/// threads that are not there.
fn lent(alignment: usize, size: usize) -> Option<*mut c_void> {
    if alignment > ALIGNMENT || forked::is_child() {
        return None;
    }
    lend(size).map(<*mut u8>::cast)
}

unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the arguments are those that the C library was to be called with.
    lent(alignment, size).unwrap_or_else(|| unsafe { libc::aligned_alloc(alignment, size) })
}

unsafe extern "C" fn posix_memalign(
    block: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    // The C library refuses what is no alignment.
    let is_alignment = alignment.is_power_of_two() && alignment >= size_of::<usize>();
    match if is_alignment { lent(alignment, size) } else { None } {
        Some(found) => {
            // SAFETY: the caller gives a place for a pointer.
            unsafe { block.write(found) };
            0
        }
        // SAFETY: the arguments are those that the C library was to be called with.
        None => unsafe { libc::posix_memalign(block, alignment, size) },
    }
}

unsafe extern "C" fn free(block: *mut c_void) {
    let start = block.addr();
    if forked::is_child() {
        // Nothing is lent any more, and what was is left where it is.
        if is_lent(start) {
            return;
        }
    } else if take_back(start) {
        return;
    }
    // SAFETY: it is not one of ours, so the caller has it from the C library.
    unsafe { libc::free(block) }
}

unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    let Some(len) = len_of(block.addr()) else {
        // SAFETY: it is not one of ours, so the caller has it from the C library.
        return unsafe { libc::realloc(block, size) };
    };
    // SAFETY: any size may be asked for.
    let longer = unsafe { libc::malloc(size) };
    if !longer.is_null() {
        // SAFETY: both are as long as the shorter of them, and the new one is nobody else's.
        unsafe { longer.cast::<u8>().copy_from_nonoverlapping(block.cast(), len.min(size)) };
        take_back(block.addr());
    }
    longer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_both_kinds_are_taken_and_returned() {
        for size in [100_usize, 1 << 20] {
            for alignment in [16, 64, 4096] {
                // SAFETY: the alignment is a power of two and divides the size where the C library
                // wants that; each block is returned once.
                unsafe {
                    let first = aligned_alloc(alignment, size.next_multiple_of(alignment));
                    assert!(!first.is_null() && first.addr().is_multiple_of(alignment));
                    assert_eq!(is_lent(first.addr()), size > 100 && alignment <= ALIGNMENT);
                    let mut second = std::ptr::null_mut();
                    assert_eq!(posix_memalign(&mut second, alignment, size), 0);
                    second.cast::<u8>().write_bytes(7, size);
                    let third = realloc(second, 2 * size).cast::<u8>();
                    assert!((0..size).all(|at| third.add(at).read() == 7));
                    free(first);
                    free(third.cast());
                }
            }
        }
        let mut block = std::ptr::null_mut();
        // SAFETY: the place is there; three is no alignment, which is what is asked about.
        assert_eq!(unsafe { posix_memalign(&mut block, 3, 1 << 20) }, libc::EINVAL);
        // SAFETY: nothing is there to be returned.
        unsafe { free(std::ptr::null_mut()) };
    }
}
