//! Random words by the cipher Threefry-2x32 of twenty rounds (Salmon et al., "Parallel random numbers: as
//! easy as 1, 2, 3", 2011).
//!
//! The body of the block computes the same words by about a hundred operations on vectors. Here all
//! rounds of a few words stay in registers.

use nxla_tensor::{DType, HostTensor, Shape};

use crate::context::{self, Cx, Fault};
use crate::kernels::elementwise::vectorize_wide;
use crate::kernels::limits::TASK_ELEMENTS;

/// The constant from which the third word of the key is computed.
const PARITY: u32 = 0x1BD1_1BDA;

/// Pairs of words of one task.
const PIECE_PAIRS: usize = TASK_ELEMENTS / 4;

/// The cost of a pair, in moved elements.
const PAIR_COST: usize = 8;

/// Words of 32 bits for each key. The counters 0, 1, 2… are encrypted in pairs: the first half of
/// the counters with the second half. If the count is odd, the last counter is paired with 0.
pub(crate) fn random_words(
    cx: Cx<'_>,
    keys: &HostTensor,
    count: usize,
) -> Result<HostTensor, Fault> {
    let half = count.div_ceil(2);
    let keys_of = schedules(keys);
    context::build(DType::U32, &words_of(keys, count), |out: &mut [u32]| {
        for (words, keys) in out.chunks_exact_mut(count.max(1)).zip(keys_of) {
            let (firsts, seconds) = words.split_at_mut(half);
            // If the count is odd, the last first word has no second word.
            let (paired, odd) = firsts.split_at_mut(seconds.len());
            let pieces =
                paired.chunks_mut(PIECE_PAIRS).zip(seconds.chunks_mut(PIECE_PAIRS)).enumerate();
            let fill = |(piece, (firsts, seconds)): (usize, (&mut [u32], &mut [u32]))| {
                let begin = (piece * PIECE_PAIRS) as u32;
                fill_pairs(keys, begin, begin.wrapping_add(half as u32), firsts, seconds);
            };
            if cx.pays(half * PAIR_COST) {
                cx.each(pieces.collect(), fill);
            } else {
                pieces.for_each(fill);
            }
            if let [odd] = odd {
                (*odd, _) = encrypt(keys, (half as u32).wrapping_sub(1), 0);
            }
        }
    })
}

/// Words of 64 bits for each key. The upper halves are the words for the counters 0, 1, 2…
pub(crate) fn random_wide_words(
    cx: Cx<'_>,
    keys: &HostTensor,
    count: usize,
) -> Result<HostTensor, Fault> {
    let keys_of = schedules(keys);
    context::build(DType::U64, &words_of(keys, count), |out: &mut [u64]| {
        for (words, keys) in out.chunks_exact_mut(count.max(1)).zip(keys_of) {
            cx.pieces(words, PIECE_PAIRS, PAIR_COST, |begin, words| {
                vectorize_wide(
                    #[inline(always)]
                    |_| {
                        for (at, word) in words.iter_mut().enumerate() {
                            let x = (begin + at) as u32;
                            let (high, low) = encrypt(keys, x, x.wrapping_add(count as u32));
                            *word = u64::from(high) << 32 | u64::from(low);
                        }
                    },
                );
            });
        }
    })
}

/// The shape of `count` words for each key.
fn words_of(keys: &HostTensor, count: usize) -> Shape {
    let (_, batch) = keys.shape().split_last().expect("a key is a vector");
    batch.iter().copied().chain([count]).collect()
}

/// The three words that the rounds add in rotation, for each key.
fn schedules(keys: &HostTensor) -> impl Iterator<Item = [u32; 3]> {
    let (keys, _) = context::slice::<u32>(keys).as_chunks();
    keys.iter().map(|&[first, second]| [first, second, first ^ second ^ PARITY])
}

/// Encrypts the counters that begin at `x` and at `y`.
fn fill_pairs(keys: [u32; 3], x: u32, y: u32, firsts: &mut [u32], seconds: &mut [u32]) {
    vectorize_wide(
        #[inline(always)]
        |_| {
            for (at, (first, second)) in firsts.iter_mut().zip(seconds).enumerate() {
                let at = at as u32;
                (*first, *second) = encrypt(keys, x.wrapping_add(at), y.wrapping_add(at));
            }
        },
    );
}

/// Encrypts two words.
#[inline(always)]
fn encrypt(keys: [u32; 3], x: u32, y: u32) -> (u32, u32) {
    const EVEN: [u32; 4] = [13, 15, 26, 6];
    const ODD: [u32; 4] = [17, 29, 16, 24];
    let mut words = (x.wrapping_add(keys[0]), y.wrapping_add(keys[1]));
    for (group, distances) in (1..).zip([EVEN, ODD, EVEN, ODD, EVEN]) {
        for distance in distances {
            words.0 = words.0.wrapping_add(words.1);
            words.1 = words.1.rotate_left(distance) ^ words.0;
        }
        words.0 = words.0.wrapping_add(keys[group % 3]);
        words.1 = words.1.wrapping_add(keys[(group + 1) % 3].wrapping_add(group as u32));
    }
    words
}
