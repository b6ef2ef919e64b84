//! The random number generator Threefry-2x32.

use nxla_tensor::{DType, Scalar, Shape};

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
        let bits = self.known_block(kind, &[key], |graph, inputs| {
            let (first, second) = graph.encrypt_counters(inputs[0], count)?;
            let bits = graph.concatenate(&[first, second], 0)?;
            let bits = graph.slice_along_axis(bits, 0, count, 0, 1)?;
            Ok::<_, crate::Error>(vec![bits])
        })?;
        Ok(bits[0])
    }

    /// Creates a vector of random `u64`.
    pub(super) fn random_wide_bits(&mut self, key: ExprId, count: usize) -> Result<ExprId> {
        if count == 0 {
            return self.iota([0], Some(0), DType::U64);
        }
        let kind = BlockKind::Threefry { count, wide: true };
        let bits = self.known_block(kind, &[key], |graph, inputs| {
            let (first, second) = graph.encrypt_counters(inputs[0], 2 * count)?;
            Ok::<_, crate::Error>(vec![graph.join_words(second, first)?])
        })?;
        Ok(bits[0])
    }

    /// Returns both words for half as many counters, with a zero for a missing counter.
    fn encrypt_counters(&mut self, key: ExprId, count: usize) -> Result<(ExprId, ExprId)> {
        let half = count.div_ceil(2);
        let first = self.iota([half], Some(0), DType::U32)?;
        let start = self.word(half as u64)?;
        let mut second = self.add(first, start)?;
        if count % 2 == 1 {
            let last = self.word(half as u64 - 1)?;
            let is_last = self.equal(first, last)?;
            let zero = self.word(0)?;
            second = self.select(is_last, zero, second)?;
        }
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
        let parity = self.word(PARITY)?;
        let third = self.bitwise_xor(keys[0], keys[1])?;
        let keys = [keys[0], keys[1], self.bitwise_xor(third, parity)?];
        let mut x = self.add(first, keys[0])?;
        let mut y = self.add(second, keys[1])?;
        for group in 0..5 {
            for distance in ROTATIONS[group % 2] {
                x = self.add(x, y)?;
                let turned = self.rotate_bits(y, distance)?;
                y = self.bitwise_xor(turned, x)?;
            }
            let number = self.word(group as u64 + 1)?;
            let added = self.add(keys[(group + 2) % 3], number)?;
            x = self.add(x, keys[(group + 1) % 3])?;
            y = self.add(y, added)?;
        }
        // A single value that depends on both words lets the evaluator fuse all of this.
        let both = self.join_words(x, y)?;
        let distance = self.scalar_constant(Scalar::UInt(32), DType::U64)?;
        let high = self.right_shift(both, distance)?;
        Ok((self.as_type(both, DType::U32)?, self.as_type(high, DType::U32)?))
    }

    /// Combines two words to a 64-bit value.
    fn join_words(&mut self, low: ExprId, high: ExprId) -> Result<ExprId> {
        let (low, high) = (self.as_type(low, DType::U64)?, self.as_type(high, DType::U64)?);
        let distance = self.scalar_constant(Scalar::UInt(32), DType::U64)?;
        let high = self.left_shift(high, distance)?;
        self.bitwise_or(low, high)
    }

    fn rotate_bits(&mut self, x: ExprId, distance: u64) -> Result<ExprId> {
        let (left, right) = (self.word(distance)?, self.word(32 - distance)?);
        let (left, right) = (self.left_shift(x, left)?, self.right_shift(x, right)?);
        self.bitwise_or(left, right)
    }

    fn word(&mut self, value: u64) -> Result<ExprId> {
        self.scalar_constant(Scalar::UInt(value & u64::from(u32::MAX)), DType::U32)
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
