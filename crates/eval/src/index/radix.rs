//! Sorting unsigned keys, by their digits.
//!
//! Whatever can be sorted is mapped to unsigned integers first (see [`super::sort`]), whose order is
//! that of their bits. Long slices are cut into one piece for each thread; each piece is sorted from
//! the lowest digit to the highest, and sorted pieces are merged in parallel.

use std::ops::Range;

use crate::parallel;

/// Bits of a digit: the counters of all digits fit into a first-level cache.
const DIGIT: u32 = 11;
const BUCKETS: usize = 1 << DIGIT;

/// Below this, comparing beats counting.
const SHORT: usize = 1 << 12;

/// An unsigned key.
pub(super) trait Key: Copy + Ord + Default + Send + Sync {
    /// The digit that begins at a bit.
    fn digit(self, bit: u32) -> usize;
}

macro_rules! keys {
    ($($t:ty)*) => {
        $(impl Key for $t {
            #[inline(always)]
            fn digit(self, bit: u32) -> usize {
                (self >> bit) as usize & (BUCKETS - 1)
            }
        })*
    };
}
keys!(u32 u64 u128);

/// Sorts by some bits of the keys, which must be in order already as far as the lower bits go.
pub(super) fn sort<K: Key>(keys: &mut [K], bits: Range<u32>) {
    if keys.len() < SHORT {
        return keys.sort_unstable();
    }
    let mut scratch = vec![K::default(); keys.len()];
    if !parallel::pays(keys.len()) {
        return by_digits(keys, &mut scratch, bits);
    }
    let pieces = parallel::threads().next_power_of_two();
    let mut length = keys.len().div_ceil(pieces);
    let tasks = keys.chunks_mut(length).zip(scratch.chunks_mut(length));
    parallel::each(tasks.collect(), |(keys, scratch)| by_digits(keys, scratch, bits.clone()));
    let (mut from, mut to) = (keys, &mut scratch[..]);
    let mut copied = false;
    while length < from.len() {
        for (from, to) in from.chunks(2 * length).zip(to.chunks_mut(2 * length)) {
            let (left, right) = from.split_at(length.min(from.len()));
            merge(left, right, to);
        }
        (from, to) = (to, from);
        (length, copied) = (2 * length, !copied);
    }
    if copied {
        to.copy_from_slice(from);
    }
}

/// Sorts on this thread, with scratch memory of the same length.
fn by_digits<K: Key>(keys: &mut [K], scratch: &mut [K], bits: Range<u32>) {
    let places: Vec<u32> = bits.step_by(DIGIT as usize).collect();
    let mut counts = vec![[0_u32; BUCKETS]; places.len()];
    for &key in &*keys {
        for (counts, &bit) in counts.iter_mut().zip(&places) {
            counts[key.digit(bit)] += 1;
        }
    }
    let (mut from, mut to) = (keys, scratch);
    let mut copied = false;
    for (counts, &bit) in counts.iter_mut().zip(&places) {
        // A digit that all keys share moves nothing.
        if counts.iter().any(|&count| count as usize == from.len()) {
            continue;
        }
        let mut next = 0;
        for count in &mut *counts {
            (*count, next) = (next, next + *count);
        }
        for &key in &*from {
            let place = &mut counts[key.digit(bit)];
            to[*place as usize] = key;
            *place += 1;
        }
        (from, to) = (to, from);
        copied = !copied;
    }
    if copied {
        to.copy_from_slice(from);
    }
}

/// Merges two sorted slices.
fn merge<K: Key>(left: &[K], right: &[K], out: &mut [K]) {
    let piece = (out.len() / (2 * parallel::threads())).max(SHORT);
    parallel::pieces(out, piece, 1, |first, out| {
        let (begin, end) = (cut(left, right, first), cut(left, right, first + out.len()));
        let left = &left[begin..end];
        let right = &right[first - begin..first + out.len() - end];
        merge_here(left, right, out);
    });
}

/// How many of the `count` smallest keys come from the left.
fn cut<K: Key>(left: &[K], right: &[K], count: usize) -> usize {
    let (mut low, mut high) = (count.saturating_sub(right.len()), count.min(left.len()));
    while low < high {
        let middle = low.midpoint(high);
        if left[middle] <= right[count - middle - 1] {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn merge_here<K: Key>(left: &[K], right: &[K], out: &mut [K]) {
    let (mut i, mut j) = (0, 0);
    for out in out {
        // Which side is next is anybody's guess, so the choice is arithmetic rather than a branch.
        let (x, y) = (left.get(i), right.get(j));
        let (Some(&x), Some(&y)) = (x, y) else {
            *out = *x.or(y).expect("the result is as long as both together");
            (i, j) = (i + 1, j + 1);
            continue;
        };
        let from_right = y < x;
        *out = if from_right { y } else { x };
        i += usize::from(!from_right);
        j += usize::from(from_right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers, the same in every run.
    fn numbers(count: usize) -> impl Iterator<Item = u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        (0..count).map(move |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        })
    }

    #[test]
    fn short_and_long_slices_of_all_widths_are_sorted() {
        for count in [0, 1, 2, 1000, SHORT, SHORT + 1, 70_001, 300_003] {
            let mut narrow: Vec<u32> = numbers(count).map(|x| x as u32).collect();
            let mut wide: Vec<u64> = numbers(count).collect();
            // Many equal keys.
            let mut few: Vec<u64> = numbers(count).map(|x| x % 7).collect();
            let (mut expected, mut expected_few) = (narrow.clone(), few.clone());
            expected.sort();
            expected_few.sort();
            sort(&mut narrow, 0..32);
            assert_eq!(narrow, expected);
            sort(&mut few, 0..64);
            assert_eq!(few, expected_few);
            let mut expected = wide.clone();
            expected.sort();
            sort(&mut wide, 0..64);
            assert_eq!(wide, expected);
        }
    }

    #[test]
    fn low_bits_that_are_in_order_need_no_sorting() {
        for count in [5, 100_000] {
            let pairs = numbers(count).zip(0_u128..);
            let mut keys: Vec<u128> =
                pairs.map(|(key, at)| u128::from(key % 100) << 64 | at).collect();
            let mut expected = keys.clone();
            expected.sort();
            sort(&mut keys, 64..128);
            assert_eq!(keys, expected);
        }
    }
}
