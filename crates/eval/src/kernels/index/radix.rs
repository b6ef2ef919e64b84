//! Sorting unsigned keys, by their digits.
//!
//! Elements are mapped to unsigned integers first (see [`super::sort`]), which are ordered by their
//! bits. Short runs are sorted by comparison. Long runs pass through memory twice: each thread
//! distributes a part of the keys to buckets by their leading bits. Then each bucket, which fits
//! into the cache of a core, is sorted by counting, from a low digit to the highest one. Low digits
//! that would distinguish few keys of a bucket are omitted; the remaining unordered keys are sorted
//! by comparison at the end.

use std::ops::Range;

use nxla_tensor::{DType, HostTensor};

use crate::context::{self, Cx};
use crate::kernels::limits::{BLOCK_ELEMENTS, CACHE_BYTES};

// The constants are measured by the sorts of `benches/python/kernels.py`.

/// Bits of a digit: the counters of two digits fit into a first-level cache.
const DIGIT: u32 = 11;
const COUNTERS: usize = 1 << DIGIT;

/// The size of a bucket below which comparison is faster than counting.
const SHORT_BUCKET: usize = 1 << 8;

/// Bits of a bin. Bins far outnumber buckets, so that numbers with common leading bits, such as floats of one order of
/// magnitude, still fill buckets evenly.
const BIN: u32 = 16;

/// The number of keys that are sampled to choose the leading bits.
const SAMPLE: usize = 1 << 10;

/// Keys that are read at a time.
const READ_BLOCK: usize = 512;

/// Elements of a part, few enough to be counted in 32 bits.
const LONGEST_PART: usize = u32::MAX as usize / 2;

/// An unsigned key.
pub(super) trait Key: bytemuck::Pod + Ord + Default + Send + Sync {
    /// The distance to a lower key in multiples of `1 << shift`; only its lower bits if the distance is large.
    fn above(self, least: Self, shift: u32) -> usize;
    /// The number of bits of the distance from a lower key to this key.
    fn width_above(self, least: Self) -> u32;
    /// The key with its `low` lowest bits cleared.
    fn without(self, low: u32) -> Self;
}

macro_rules! keys {
    ($($t:ty)*) => {
        $(impl Key for $t {
            #[inline(always)]
            fn above(self, least: Self, shift: u32) -> usize {
                ((self - least) >> shift) as usize
            }
            fn width_above(self, least: Self) -> u32 {
                <$t>::BITS - (self - least).leading_zeros()
            }
            fn without(self, low: u32) -> Self {
                self >> low << low
            }
        })*
    };
}
keys!(u32 u64 u128);

/// Writes the keys from a position on. It is called several times for each position.
pub(super) type ReadKeys<'a, K> = &'a (dyn Fn(usize, &mut [K]) + Sync);

/// Is called once for each sorted key, while it is in the cache.
pub(super) type Finish<'a, K> = &'a (dyn Fn(&mut [K]) + Sync);

/// Sorts the keys that are read into `out`. Keys that differ only below the bit `low` must be in
/// order before the call.
pub(super) fn sort<K: Key>(
    cx: Cx<'_>,
    out: &mut [K],
    low: u32,
    read: ReadKeys<'_, K>,
    finish: Finish<'_, K>,
) {
    let len = out.len();
    let bytes = if len < BLOCK_ELEMENTS { None } else { scratch(size_of_val(out)) };
    let Some(mut bytes) = bytes else {
        read(0, out);
        out.sort_unstable();
        return finish(out);
    };
    let scratch: &mut [K] = bytemuck::cast_slice_mut(context::bytes_mut(&mut bytes));
    if size_of_val(out) <= CACHE_BYTES {
        read(0, scratch);
        sort_bucket(&[scratch], out, low, &mut SortBuffers::default());
        return finish(out);
    }
    let threads = if cx.pays(8 * len) { cx.threads() } else { 1 };
    let part = len.div_ceil(threads).min(LONGEST_PART);
    let ranges: Vec<_> = (0..len).step_by(part).map(|at| at..len.min(at + part)).collect();
    let bins = Bins::of_sample(len, low, read);
    let counts = cx.collect(ranges.len(), &|at| bins.count(ranges[at].clone(), read));
    let mut buckets = Buckets::new(&counts, CACHE_BYTES / size_of::<K>());
    let of_bin = &buckets.of_bin;
    let tasks = scratch.chunks_mut(part).zip(ranges).zip(&mut buckets.offsets);
    cx.each(tasks.collect(), |((to, range), offsets)| {
        in_blocks(range, read, |key| {
            let offset = &mut offsets[usize::from(of_bin[bins.of(key)])];
            to[*offset as usize] = key;
            *offset += 1;
        });
    });
    let tasks = buckets.tasks(scratch, part, out);
    cx.each_with(tasks, SortBuffers::default, |work, (pieces, out)| {
        sort_bucket(&pieces, out, low, work);
        finish(out);
    });
}

/// Temporary memory, or `None` if an allocation fails; the caller then sorts by comparison, which
/// is slower.
fn scratch(bytes: usize) -> Option<HostTensor> {
    HostTensor::scratch(DType::U8, [bytes]).ok()
}

/// Calls `each` with every key of a range.
#[inline(always)]
fn in_blocks<K: Key>(mut range: Range<usize>, read: ReadKeys<'_, K>, mut each: impl FnMut(K)) {
    let mut block = [K::default(); READ_BLOCK];
    while !range.is_empty() {
        let block = &mut block[..READ_BLOCK.min(range.len())];
        read(range.start, block);
        block.iter().for_each(|&key| each(key));
        range.start += block.len();
    }
}

/// Ranges of equal length between two keys; the first and the last range also contain all keys beyond.
struct Bins<K> {
    least: K,
    most: K,
    shift: u32,
}

impl<K: Key> Bins<K> {
    fn of_sample(len: usize, low: u32, read: ReadKeys<'_, K>) -> Self {
        const NEIGHBORS: usize = 4;
        let mut sample = [K::default(); SAMPLE];
        for (index, keys) in sample.chunks_exact_mut(NEIGHBORS).enumerate() {
            read(index * NEIGHBORS * (len / SAMPLE), keys);
        }
        let (least, most) = extent(&sample);
        Self { least, most, shift: most.width_above(least).saturating_sub(BIN).max(low) }
    }

    #[inline(always)]
    fn of(&self, key: K) -> usize {
        key.clamp(self.least, self.most).above(self.least, self.shift)
    }

    /// The number of keys in each bin.
    fn count(&self, range: Range<usize>, read: ReadKeys<'_, K>) -> Vec<u32> {
        let mut counts = vec![0; self.of(self.most) + 1];
        in_blocks(range, read, |key| counts[self.of(key)] += 1);
        counts
    }
}

/// Buckets: groups of bins. A bucket is not much larger than the target size, unless a single bin
/// is.
struct Buckets {
    of_bin: Vec<u16>,
    sizes: Vec<usize>,
    /// For each part, the position in it for the next key of each bucket.
    offsets: Vec<Vec<u32>>,
}

impl Buckets {
    fn new(counts: &[Vec<u32>], wanted: usize) -> Self {
        let mut of_bin = Vec::with_capacity(counts[0].len());
        let (mut bucket, mut sizes) = (0, vec![0]);
        let mut offsets = vec![vec![0]; counts.len()];
        for bin in 0..counts[0].len() {
            let size: usize = counts.iter().map(|counts| counts[bin] as usize).sum();
            if sizes[bucket] > 0 && sizes[bucket] + size > wanted {
                bucket += 1;
                sizes.push(0);
                offsets.iter_mut().for_each(|offsets| offsets.push(0));
            }
            of_bin.push(bucket as u16);
            sizes[bucket] += size;
            for (offsets, counts) in offsets.iter_mut().zip(counts) {
                offsets[bucket] += counts[bin];
            }
        }
        offsets.iter_mut().for_each(|offsets| counts_to_offsets(offsets));
        Self { of_bin, sizes, offsets }
    }

    /// For each bucket, its pieces, which end at the current positions, and its part of `out`.
    fn tasks<'a, K>(
        &self,
        keys: &'a [K],
        part: usize,
        mut out: &'a mut [K],
    ) -> Vec<(Vec<&'a [K]>, &'a mut [K])> {
        let mut begins = vec![0; self.offsets.len()];
        let task = |(bucket, &size): (usize, &usize)| {
            let parts = keys.chunks(part).zip(&self.offsets).zip(&mut begins);
            let pieces = parts.map(|((keys, offsets), begin)| {
                let end = offsets[bucket] as usize;
                &keys[std::mem::replace(begin, end)..end]
            });
            let pieces = pieces.filter(|piece| !piece.is_empty()).collect();
            (pieces, out.split_off_mut(..size).expect("the sizes add up"))
        };
        self.sizes.iter().enumerate().map(task).collect()
    }
}

/// Converts sizes to the offsets at which they begin.
fn counts_to_offsets(counts: &mut [u32]) {
    let mut next = 0;
    for count in counts {
        (*count, next) = (next, next + *count);
    }
}

/// Returns the smallest and the largest key.
fn extent<K: Key>(keys: &[K]) -> (K, K) {
    keys.iter().fold((keys[0], keys[0]), |(least, most), &key| (least.min(key), most.max(key)))
}

/// The buffers with which a thread sorts buckets.
#[derive(Default)]
struct SortBuffers<K> {
    keys: Vec<K>,
    counts: Vec<[u32; COUNTERS]>,
}

/// The digits by which a bucket is sorted: multiples of `1 << bottom` above the least key.
#[derive(Clone, Copy)]
struct Digits<K> {
    least: K,
    bottom: u32,
    bits: u32,
    count: u32,
}

impl<K: Key> Digits<K> {
    /// The digits of a bucket; `None` if all keys are equal except for bits below `low`.
    fn new(pieces: &[&[K]], len: usize, low: u32) -> Option<Self> {
        let extents = pieces.iter().map(|piece| extent(piece));
        let (least, most) = extents.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        // `least` is subtracted from keys: without its low bits, the subtraction cannot borrow from
        // the digits.
        let least = least.without(low);
        let top = most.width_above(least);
        // Few keys share all of these digits if the keys are spread evenly.
        let count = (len.ilog2() + 4).div_ceil(DIGIT);
        let bottom = top.saturating_sub(count * DIGIT).max(low);
        let count = top.checked_sub(bottom)?.div_ceil(DIGIT);
        if count == 0 {
            return None;
        }
        let bits = (top - bottom).div_ceil(count);
        Some(Self { least, bottom, bits, count })
    }

    #[inline(always)]
    fn digit(self, key: K, index: u32) -> usize {
        let mask = (COUNTERS - 1) >> (DIGIT - self.bits);
        key.above(self.least, self.bottom + index * self.bits) & mask & (COUNTERS - 1)
    }

    fn all(self, key: K) -> usize {
        key.above(self.least, self.bottom)
    }
}

/// Sorts the keys of the pieces into `out`, on this thread.
fn sort_bucket<K: Key>(pieces: &[&[K]], out: &mut [K], low: u32, work: &mut SortBuffers<K>) {
    let digits = if out.len() < SHORT_BUCKET { None } else { Digits::new(pieces, out.len(), low) };
    let Some(digits) = digits else {
        let mut rest = &mut *out;
        for piece in pieces {
            let to = rest.split_off_mut(..piece.len()).expect("the pieces fill their room");
            to.copy_from_slice(piece);
        }
        // All keys are equal except for low bits; sorting an ordered run takes linear time.
        return out.sort_unstable();
    };
    count_digits(pieces, digits, &mut work.counts);
    context::resize(&mut work.keys, K::default(), out.len());
    let swap = digits.count % 2 == 0;
    let (mut from, mut to) = (&mut *out, &mut work.keys[..]);
    if !swap {
        (from, to) = (to, from);
    }
    for (index, counts) in work.counts.iter_mut().enumerate() {
        counts_to_offsets(counts);
        let mut spread = |keys: &[K]| {
            for &key in keys {
                let offset = &mut counts[digits.digit(key, index as u32)];
                to[*offset as usize] = key;
                *offset += 1;
            }
        };
        match index {
            0 => pieces.iter().for_each(|piece| spread(piece)),
            _ => spread(from),
        }
        (from, to) = (to, from);
    }
    if digits.bottom > low {
        sort_equal_digits(out, digits);
    }
}

/// Counts the occurrences of each value of each digit.
fn count_digits<K: Key>(pieces: &[&[K]], digits: Digits<K>, counts: &mut Vec<[u32; COUNTERS]>) {
    counts.clear();
    counts.resize(digits.count as usize, [0; COUNTERS]);
    for piece in pieces {
        // Two digits are by far the most frequent case.
        if let [first, second] = &mut counts[..] {
            for &key in *piece {
                first[digits.digit(key, 0)] += 1;
                second[digits.digit(key, 1)] += 1;
            }
            continue;
        }
        for (index, counts) in counts.iter_mut().enumerate() {
            piece.iter().for_each(|&key| counts[digits.digit(key, index as u32)] += 1);
        }
    }
}

/// Sorts neighboring keys that share all digits.
fn sort_equal_digits<K: Key>(keys: &mut [K], digits: Digits<K>) {
    let mut at = 1;
    while at < keys.len() {
        if keys[at - 1] <= keys[at] {
            at += 1;
            continue;
        }
        let here = digits.all(keys[at]);
        let same = |&key: &K| digits.all(key) == here;
        let begin = at - keys[..at].iter().rev().take_while(|key| same(key)).count();
        at += keys[at..].iter().take_while(|key| same(key)).count();
        keys[begin..at].sort_unstable();
    }
}
