//! Memory that kernels need for a while, and what happens where there is none.
//!
//! Kernels ask for it deep inside of tasks that give nothing back. So what is refused ends the step
//! by unwinding, past whatever it was doing, to [`guarded`], which gives the error. Nothing is
//! printed on the way, since that is no panic. Results need none of this: their memory is asked for
//! before a kernel begins.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::{Fault, Stop};

/// What unwinds: so many bytes were refused.
struct Refused(usize);

/// Ends the step, since there are not so many bytes.
#[cold]
fn refuse(bytes: usize) -> ! {
    resume_unwind(Box::new(Refused(bytes)))
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
