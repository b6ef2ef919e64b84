//! The random number generator Threefry-2x32.

use nxla_tensor::{DType, Shape};

use super::super::formula::{Formula, Term};
use crate::graph::{BlockKind, ExprId, Graph, Result};

/// The rotation distances of the second word in even and odd groups of four rounds.
const ROTATIONS: [[u64; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];

/// The constant from which the third word of the key is computed.
const PARITY: u64 = 0x1BD1_1BDA;

impl Graph {
    /// Creates a vector of random `u32`. Counters of the first half are paired with counters of the
    /// second half; the first and second words of the results are concatenated.
    pub(super) fn random_bits(&mut self, key: ExprId, count: usize) -> Result<ExprId> {
        if count == 0 {
            return self.iota([0], Some(0), DType::U32);
        }
        let kind = BlockKind::Threefry { count, wide: false };
        self.single_block(kind, [key], |graph, [key]| {
            let (first, second) = graph.encrypt_counters(key, count)?;
            let bits = graph.concatenate(&[first, second], 0)?;
            graph.slice_along_axis(bits, 0, count, 0, 1)
        })
    }

    /// Creates a vector of random `u64`.
    pub(super) fn random_wide_bits(&mut self, key: ExprId, count: usize) -> Result<ExprId> {
        if count == 0 {
            return self.iota([0], Some(0), DType::U64);
        }
        let kind = BlockKind::Threefry { count, wide: true };
        self.single_block(kind, [key], |graph, [key]| {
            let (first, second) = graph.encrypt_counters(key, 2 * count)?;
            let formula = Formula::new(graph);
            join_words(formula.term(second), formula.term(first)).id()
        })
    }

    /// Returns both words for half as many counters, with a zero for a missing counter.
    fn encrypt_counters(&mut self, key: ExprId, count: usize) -> Result<(ExprId, ExprId)> {
        let half = count.div_ceil(2);
        let first = self.iota([half], Some(0), DType::U32)?;
        let formula = Formula::new(self);
        let counter = formula.term(first);
        // Counters wrap at 32 bits.
        let word = |number: usize| number as u64 & u64::from(u32::MAX);
        let mut second = counter + word(half);
        if count % 2 == 1 {
            second = counter.equal(word(half - 1)).select(0, second);
        }
        let second = second.id()?;
        self.threefry(key, first, second)
    }

    /// Encrypts pairs of words.
    pub(super) fn threefry(
        &mut self,
        key: ExprId,
        first: ExprId,
        second: ExprId,
    ) -> Result<(ExprId, ExprId)> {
        let keys = [self.row(key, 0)?, self.row(key, 1)?];
        let formula = Formula::new(self);
        let [first, second] = formula.terms([first, second]);
        let [even, odd] = formula.terms(keys);
        let keys = [even, odd, even.bitwise_xor(odd).bitwise_xor(PARITY)];
        let (mut x, mut y) = (first + even, second + odd);
        for group in 0..5 {
            for distance in ROTATIONS[group % 2] {
                x = x + y;
                let turned = y.left_shift(distance).bitwise_or(y.right_shift(32 - distance));
                y = turned.bitwise_xor(x);
            }
            let added = keys[(group + 2) % 3] + (group + 1);
            x = x + keys[(group + 1) % 3];
            y = y + added;
        }
        // A single value that depends on both words lets the evaluator fuse all of this.
        let both = join_words(x, y);
        let high = both.right_shift(32);
        Ok((both.as_type(DType::U32).id()?, high.as_type(DType::U32).id()?))
    }

    /// Creates random bits of an unsigned dtype with a shape.
    pub(super) fn bits_of(&mut self, key: ExprId, dtype: DType, shape: &Shape) -> Result<ExprId> {
        let bits = match dtype {
            DType::U64 => self.random_wide_bits(key, shape.size())?,
            _ => self.random_bits(key, shape.size())?,
        };
        let bits = self.as_type(bits, dtype)?;
        self.reshape(bits, shape.clone())
    }
}

/// Combines two words to a 64-bit value.
fn join_words<'f>(low: Term<'f>, high: Term<'f>) -> Term<'f> {
    let [low, high] = [low, high].map(|word| word.as_type(DType::U64));
    low.bitwise_or(high.left_shift(32))
}
