//! Temporary memory of kernels, and the error if an allocation fails.
//!
//! Kernels allocate inside tasks that return no value. A refused allocation therefore unwinds to
//! [`catch_stop`], which returns the error. The unwinding is not a panic, so no message is printed.
//! Results do not need it: their memory is allocated before a kernel begins.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use nxla_tensor::fits_in_memory;

use super::{Fault, Stop};

/// The payload of the unwinding: the number of bytes of the refused allocation.
struct RefusedAllocation(usize);

/// Ends the step with an error, because an allocation of this many bytes failed.
#[cold]
fn refuse(bytes: usize) -> ! {
    resume_unwind(Box::new(RefusedAllocation(bytes)))
}

/// Bytes of a cache line, which is as long as the longest vectors.
pub(crate) const LINE: usize = 64;

/// A reusable buffer for temporary values.
///
/// The buffer begins at a cache line. Reading a vector that crosses two lines takes twice as long, and an
/// unaligned vector of 64 bytes always does.
pub(crate) struct Scratch {
    words: Vec<u64>,
}

impl Scratch {
    /// A buffer without memory.
    pub(crate) const EMPTY: Self = Self { words: Vec::new() };

    /// The first `len` bytes, with arbitrary contents.
    pub(crate) fn bytes(&mut self, len: usize) -> &mut [u8] {
        const WORDS: usize = LINE / size_of::<u64>();
        let needed = len.div_ceil(size_of::<u64>()) + WORDS - 1;
        if self.words.len() < needed {
            resize(&mut self.words, 0, needed);
        }
        let start = self.words.as_ptr().align_offset(LINE);
        &mut bytemuck::cast_slice_mut(&mut self.words[start..])[..len]
    }

    /// The first `len` elements, with arbitrary contents.
    pub(crate) fn elements<T: bytemuck::Pod>(&mut self, len: usize) -> &mut [T] {
        bytemuck::cast_slice_mut(self.bytes(len * size_of::<T>()))
    }
}

thread_local! {
    /// The free buffers of each thread. Threads do not share them, because a fork can leave a shared lock
    /// locked forever.
    static FREE: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that returns to the free list of the thread when it is dropped.
pub(crate) struct ScratchGuard(Scratch);

impl ScratchGuard {
    #[inline]
    pub(super) fn take() -> Self {
        Self(FREE.with_borrow_mut(Vec::pop).unwrap_or(Scratch::EMPTY))
    }
}

impl Drop for ScratchGuard {
    #[inline]
    fn drop(&mut self) {
        let scratch = std::mem::replace(&mut self.0, Scratch::EMPTY);
        FREE.with_borrow_mut(|free| free.push(scratch));
    }
}

impl Deref for ScratchGuard {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.0
    }
}

impl DerefMut for ScratchGuard {
    fn deref_mut(&mut self) -> &mut Scratch {
        &mut self.0
    }
}

/// Allocates `len` copies of a value.
pub(crate) fn filled<T: Clone>(value: T, len: usize) -> Vec<T> {
    let mut elements = Vec::new();
    fill(&mut elements, value, len);
    elements
}

/// Replaces the contents of a vector with `len` copies of a value.
pub(crate) fn fill<T: Clone>(elements: &mut Vec<T>, value: T, len: usize) {
    elements.clear();
    resize(elements, value, len);
}

/// Resizes a vector to `len` elements; new elements are copies of a value.
pub(crate) fn resize<T: Clone>(elements: &mut Vec<T>, value: T, len: usize) {
    reserve(elements, len.saturating_sub(elements.len()));
    elements.resize(len, value);
}

/// Collects the elements of an iterator.
pub(crate) fn collect_vec<T>(iterator: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut elements = Vec::new();
    reserve(&mut elements, iterator.len());
    elements.extend(iterator);
    elements
}

/// Checks that memory is available for `len` elements that a library is about to allocate. If several steps
/// run at once, the memory is only likely to be available.
pub(crate) fn require<T>(len: usize) {
    reserve(&mut std::hint::black_box(Vec::<T>::new()), len);
}

/// Returns true if memory is available for a number of bytes.
pub(crate) fn is_available(bytes: usize) -> bool {
    try_reserve(&mut std::hint::black_box(Vec::<u8>::new()), bytes)
}

fn reserve<T>(elements: &mut Vec<T>, len: usize) {
    if !try_reserve(elements, len) {
        refuse(len.saturating_mul(size_of::<T>()));
    }
}

/// Reserves memory for further elements, or returns false.
fn try_reserve<T>(elements: &mut Vec<T>, len: usize) -> bool {
    fits_in_memory(len.saturating_mul(size_of::<T>())) && elements.try_reserve_exact(len).is_ok()
}

/// Runs a step, and returns an error if one of its allocations is refused.
pub(crate) fn catch_stop<R>(step: impl FnOnce() -> Result<R, Stop>) -> Result<R, Stop> {
    // After a panic is caught, only the operands of the step are visible, as after an error.
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result,
        Err(payload) => match payload.downcast::<RefusedAllocation>() {
            Ok(refused) => Err(Fault::OutOfMemory { bytes: refused.0 }.into()),
            Err(panic) => resume_unwind(panic),
        },
    }
}
