//! Small arrays on the stack, for the calls that must not allocate.

/// How many values fit without an allocation. Most programs have fewer arguments and results.
const INLINE: usize = 64;

/// Calls `f` with `len` copies of `fill`, on the stack if they fit.
#[inline]
pub(crate) fn with_scratch<T: Copy, R>(len: usize, fill: T, f: impl FnOnce(&mut [T]) -> R) -> R {
    if len <= INLINE { f(&mut [fill; INLINE][..len]) } else { f(&mut vec![fill; len]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_right_on_both_sides_of_the_limit() {
        for len in [0, 1, INLINE, INLINE + 1, 1000] {
            let sum = with_scratch(len, 7_usize, |values| {
                assert_eq!(values.len(), len);
                values.iter().sum::<usize>()
            });
            assert_eq!(sum, 7 * len);
        }
    }
}
