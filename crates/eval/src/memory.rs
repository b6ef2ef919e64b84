//! Memory that kernels need for a while, and what happens where there is none.
//!
//! Kernels ask for it deep inside of tasks that give nothing back. So what is refused ends the step
//! by unwinding, past whatever it was doing, to [`guarded`], which gives the error. Nothing is
//! printed on the way, since that is no panic. Results need none of this: their memory is asked for
//! before a kernel begins.

use std::ops::{Deref, DerefMut, Range};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::{Fault, Stop};

/// What unwinds: so many bytes were refused.
struct Refused(usize);

/// Ends the step, since there are not so many bytes.
#[cold]
fn refuse(bytes: usize) -> ! {
    resume_unwind(Box::new(Refused(bytes)))
}

/// Bytes of a cache line, which is as long as the longest vectors are.
pub(crate) const LINE: usize = 64;

/// Memory that a thread keeps for what kernels write on their way.
///
/// It begins at a cache line. A vector that lies across two of them takes twice as long to be read,
/// and more to be written, and that of 64 bytes always does if it is not aligned.
pub(crate) struct Scratch {
    words: Vec<u64>,
}

impl Scratch {
    /// None yet.
    pub(crate) const EMPTY: Self = Self { words: Vec::new() };

    /// So many bytes, with what somebody has left in them.
    pub(crate) fn bytes(&mut self, len: usize) -> &mut [u8] {
        const WORDS: usize = LINE / size_of::<u64>();
        let needed = len.div_ceil(size_of::<u64>()) + WORDS - 1;
        if self.words.len() < needed {
            resize(&mut self.words, 0, needed);
        }
        let start = self.words.as_ptr().align_offset(LINE);
        &mut bytemuck::cast_slice_mut(&mut self.words[start..])[..len]
    }
}

/// Elements that begin at a cache line, if elements of their size can; see [`Scratch`].
pub(crate) struct Aligned<T> {
    /// A few more than are wanted.
    elements: Vec<T>,
    range: Range<usize>,
}

/// Elements of one value that begin at a cache line.
pub(crate) fn aligned<T: Clone>(value: T, len: usize) -> Aligned<T> {
    let spare = LINE.checked_div(size_of::<T>()).unwrap_or(0);
    let elements = filled(value, len + spare);
    // There is no such place for elements whose size divides no line.
    let start = elements.as_ptr().align_offset(LINE);
    let start = if start <= spare { start } else { 0 };
    Aligned { elements, range: start..start + len }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements[self.range.clone()]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.elements[self.range.clone()]
    }
}

/// Elements of one value.
pub(crate) fn filled<T: Clone>(value: T, len: usize) -> Vec<T> {
    let mut elements = Vec::new();
    fill(&mut elements, value, len);
    elements
}

/// Makes a vector one of so many elements of one value.
pub(crate) fn fill<T: Clone>(elements: &mut Vec<T>, value: T, len: usize) {
    elements.clear();
    resize(elements, value, len);
}

/// Makes a vector one of so many elements, of which those that it has stay what they are.
pub(crate) fn resize<T: Clone>(elements: &mut Vec<T>, value: T, len: usize) {
    reserve(elements, len.saturating_sub(elements.len()));
    elements.resize(len, value);
}

/// The elements that an iterator gives, which says how many there are.
pub(crate) fn collected<T>(iterator: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut elements = Vec::new();
    reserve(&mut elements, iterator.len());
    elements.extend(iterator);
    elements
}

/// Makes sure that there is room for what code that cannot be refused will ask for: where several
/// steps run at once that is only likely.
pub(crate) fn expect<T>(len: usize) {
    reserve(&mut std::hint::black_box(Vec::<T>::new()), len);
}

fn reserve<T>(elements: &mut Vec<T>, len: usize) {
    if elements.try_reserve_exact(len).is_err() {
        refuse(len.saturating_mul(size_of::<T>()));
    }
}

/// Does a step, whose tasks may be refused memory.
pub(crate) fn guarded<R>(step: impl FnOnce() -> Result<R, Stop>) -> Result<R, Stop> {
    // What is seen afterwards of a step that was broken off are its operands, as after an error.
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result,
        Err(payload) => match payload.downcast::<Refused>() {
            Ok(refused) => Err(Fault::OutOfMemory { bytes: refused.0 }.into()),
            Err(panic) => resume_unwind(panic),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel;

    #[test]
    fn scratch_memory_begins_at_a_cache_line() {
        let mut scratch = Scratch::EMPTY;
        for len in [0, 1, 100, 7, 1 << 20] {
            let bytes = scratch.bytes(len);
            assert_eq!(bytes.len(), len);
            assert!(bytes.as_ptr().addr().is_multiple_of(LINE));
        }
    }

    #[test]
    fn aligned_elements_are_as_many_as_asked_for() {
        for len in [0, 1, 100] {
            let numbers = aligned(2.0_f32, len);
            assert_eq!(*numbers, vec![2.0; len]);
            assert!(numbers.as_ptr().addr().is_multiple_of(LINE));
            assert_eq!(*aligned([1_u8; 3], len), vec![[1; 3]; len]);
        }
    }

    #[test]
    fn what_is_refused_is_an_error_of_the_step() {
        let bytes = |len: usize| {
            let step = guarded(|| {
                parallel::each(vec![1, 2, 3], |_| drop(filled(0_u64, len)));
                Ok(())
            });
            match step {
                Err(Stop::Fault(Fault::OutOfMemory { bytes })) => Some(bytes),
                Ok(()) => None,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(bytes(10), None);
        assert_eq!(bytes(1 << 58), Some(1 << 61));
        assert_eq!(bytes(usize::MAX), Some(usize::MAX));
    }

    #[test]
    fn panics_stay_panics() {
        let step = || guarded::<()>(|| resume_unwind(Box::new("a bug")));
        let panic = catch_unwind(|| drop(step())).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a bug"));
    }
}
