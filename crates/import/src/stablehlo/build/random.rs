//! Random bits of the counter-based generators Threefry-2x32 and Philox-4x32 (J. Salmon et al.,
//! "Parallel random numbers: as easy as 1, 2, 3", 2011), in the order of XLA.

use nxla_expr::build::unsigned_dtype;
use nxla_expr::{ExprId, TensorType};
use nxla_tensor::{DType, Scalar, Shape};

use super::operand::as_array;
use super::{Builder, Fail, malformed, unsupported};
use crate::numbers::to_i64;
use crate::stablehlo::syntax::Operation;

/// The multipliers of Philox, and the increments of its keys.
const PHILOX: [(u64, u64); 2] = [(0xD251_1F53, 0x9E37_79B9), (0xCD9E_8D57, 0xBB67_AE85)];

/// The number of rounds of Philox.
const ROUNDS: usize = 10;

impl Builder<'_> {
    pub(super) fn random(
        &mut self,
        name: &str,
        operation: &Operation,
        x: &[ExprId],
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        if name != "rng_bit_generator" {
            return Ok(None);
        }
        let [state] = as_array(x)?;
        let ty = operation.result(1)?.clone();
        if !ty.dtype.is_integer() || ty.dtype.bits() < 8 {
            return unsupported(format!("random bits of {} are not supported", ty.dtype));
        }
        let words = self.graph.tensor_type(state).clone();
        if words.dtype != DType::U64 || !matches!(words.shape[..], [2 | 3]) {
            return malformed(format!("the state must be u64[2] or u64[3]; got {words}"));
        }
        let wide = ty.dtype.bits() == 64;
        let (bits, used) = match operation.text(&["rng_algorithm", "algorithm"]) {
            Some("THREE_FRY") if wide => self.threefry_wide(state, &ty.shape)?,
            Some("THREE_FRY") => self.threefry(state, &ty.shape)?,
            Some("PHILOX" | "DEFAULT") => self.philox(state, &ty.shape, wide)?,
            _ => return malformed("the algorithm must be DEFAULT, THREE_FRY or PHILOX"),
        };
        let unsigned = unsigned_dtype(ty.dtype.bits());
        let bits = self.graph.as_type(bits, unsigned)?;
        let bits = if ty.dtype == unsigned { bits } else { self.graph.bitcast(bits, ty.dtype)? };
        Ok(Some(vec![self.advance_counter(state, used)?, bits]))
    }

    /// Adds the number of used counters to the words of the state after the key.
    fn advance_counter(&mut self, state: ExprId, used: usize) -> Result<ExprId, Fail> {
        let used = self.word(used as u64)?;
        let key = self.element(state, 0)?;
        let low = self.element(state, 1)?;
        let next = self.graph.add(low, used)?;
        let mut entries = vec![key, next];
        if self.graph.shape(state)[0] == 3 {
            let high = self.element(state, 2)?;
            entries.push(self.add_carry(low, next, high)?);
        }
        Ok(self.graph.stack(&entries, 0, None)?)
    }

    /// Returns the high words of sums whose low words were `before` and became `after`.
    fn add_carry(&mut self, before: ExprId, after: ExprId, high: ExprId) -> Result<ExprId, Fail> {
        let is_less = self.graph.less(after, before)?;
        let carry = self.graph.as_type(is_less, DType::U64)?;
        Ok(self.graph.add(high, carry)?)
    }

    /// Returns the shape's bits and the number of counters. Both words of a counter are adjacent along
    /// the first even axis, or along the longest axis, which is cut then.
    fn threefry(&mut self, state: ExprId, shape: &Shape) -> Result<(ExprId, usize), Fail> {
        let longest = || (0..shape.rank()).rev().max_by_key(|&axis| shape[axis]);
        let even = (0..shape.rank()).find(|&axis| shape[axis].is_multiple_of(2));
        let Some(axis) = even.or_else(longest) else {
            let (words, used) = self.encrypt_counters(state, &Shape::scalar())?;
            return Ok((self.element(words, 0)?, used));
        };
        let mut half = shape.to_vec();
        half[axis] = half[axis].div_ceil(2);
        let (words, used) = self.encrypt_counters(state, &Shape::from(half.clone()))?;
        let along = to_i64(axis);
        let words = self.graph.move_axes(words, &[-1], &[along + 1])?;
        half[axis] *= 2;
        let words = self.graph.reshape(words, half)?;
        Ok((self.graph.slice_along_axis(words, 0, shape[axis], along, 1)?, used))
    }

    /// Returns 64 bits for each counter.
    fn threefry_wide(&mut self, state: ExprId, shape: &Shape) -> Result<(ExprId, usize), Fail> {
        let (words, used) = self.encrypt_counters(state, shape)?;
        let low = self.graph.slice_along_axis(words, 0, 1, -1, 1)?;
        let high = self.graph.slice_along_axis(words, 1, 1, -1, 1)?;
        let bits = self.join_words(low, high)?;
        Ok((self.graph.reshape(bits, shape.clone())?, used))
    }

    /// Encrypts as many counters as a shape has elements, and returns both words in a new last axis.
    fn encrypt_counters(&mut self, state: ExprId, shape: &Shape) -> Result<(ExprId, usize), Fail> {
        let key = self.element(state, 0)?;
        let (low, high) = self.halves(key)?;
        let key = self.graph.stack(&[low, high], 0, None)?;
        let counters = self.counters(state, shape.size())?;
        let counters = self.graph.reshape(counters, shape.clone())?;
        // The low word of a counter is the first word of the cipher; the method of graphs begins with
        // the high word.
        let (low, high) = self.halves(counters)?;
        let exchanged = self.join_words(high, low)?;
        Ok((self.graph.random_fold_in(key, exchanged)?, shape.size()))
    }

    /// Returns the bits in the order of the counters. Each counter has four words.
    fn philox(
        &mut self,
        state: ExprId,
        shape: &Shape,
        wide: bool,
    ) -> Result<(ExprId, usize), Fail> {
        let size = shape.size();
        let used = size.div_ceil(if wide { 2 } else { 4 });
        let key = self.element(state, 0)?;
        let start = self.element(state, 1)?;
        let low = self.counters(state, used)?;
        // A state of two words has the key in the high half of the counter too.
        let high = if self.graph.shape(state)[0] == 3 { self.element(state, 2)? } else { key };
        let high = self.add_carry(start, low, high)?;
        let ((x0, x1), (x2, x3)) = (self.halves(low)?, self.halves(high)?);
        let (k0, k1) = self.halves(key)?;
        let [x0, x1, x2, x3] = self.philox_rounds([x0, x1, x2, x3], [k0, k1])?;
        let words = if wide {
            [self.join_words(x0, x1)?, self.join_words(x2, x3)?].to_vec()
        } else {
            vec![x0, x1, x2, x3]
        };
        let bits = self.graph.stack(&words, -1, None)?;
        let bits = self.graph.reshape(bits, [used * words.len()])?;
        let bits = self.graph.slice_along_axis(bits, 0, size, 0, 1)?;
        Ok((self.graph.reshape(bits, shape.clone())?, used))
    }

    fn philox_rounds(&mut self, x: [ExprId; 4], key: [ExprId; 2]) -> Result<[ExprId; 4], Fail> {
        let (mut x, mut key) = (x, key);
        for _ in 0..ROUNDS {
            let [(m0, w0), (m1, w1)] = PHILOX;
            let (low0, high0) = self.product(x[0], m0)?;
            let (low1, high1) = self.product(x[2], m1)?;
            let first = self.graph.bitwise_xor(high1, x[1])?;
            let third = self.graph.bitwise_xor(high0, x[3])?;
            x = [
                self.graph.bitwise_xor(first, key[0])?,
                low1,
                self.graph.bitwise_xor(third, key[1])?,
                low0,
            ];
            for (key, increment) in key.iter_mut().zip([w0, w1]) {
                let increment = self.graph.scalar_constant(Scalar::UInt(increment), DType::U32)?;
                *key = self.graph.add(*key, increment)?;
            }
        }
        Ok(x)
    }

    /// Returns the low and the high word of a product.
    fn product(&mut self, x: ExprId, factor: u64) -> Result<(ExprId, ExprId), Fail> {
        let x = self.graph.as_type(x, DType::U64)?;
        let factor = self.word(factor)?;
        let product = self.graph.multiply(x, factor)?;
        self.halves(product)
    }

    /// Returns consecutive counters from the second word of a state on.
    fn counters(&mut self, state: ExprId, count: usize) -> Result<ExprId, Fail> {
        let start = self.element(state, 1)?;
        let steps = self.graph.iota_of(TensorType::new(DType::U64, [count]), Some(0))?;
        Ok(self.graph.add(start, steps)?)
    }

    /// Returns an element of a vector as a scalar.
    fn element(&mut self, x: ExprId, index: i64) -> Result<ExprId, Fail> {
        let element = self.graph.slice_along_axis(x, index, 1, 0, 1)?;
        Ok(self.graph.reshape(element, [])?)
    }

    fn word(&mut self, value: u64) -> Result<ExprId, Fail> {
        Ok(self.graph.scalar_constant(Scalar::UInt(value), DType::U64)?)
    }

    /// Returns the low and the high words of 64-bit words.
    fn halves(&mut self, x: ExprId) -> Result<(ExprId, ExprId), Fail> {
        let distance = self.word(32)?;
        let high = self.graph.right_shift(x, distance)?;
        Ok((self.graph.as_type(x, DType::U32)?, self.graph.as_type(high, DType::U32)?))
    }

    /// Returns 64-bit words with these halves.
    fn join_words(&mut self, low: ExprId, high: ExprId) -> Result<ExprId, Fail> {
        let distance = self.word(32)?;
        let high = self.graph.as_type(high, DType::U64)?;
        let high = self.graph.left_shift(high, distance)?;
        let low = self.graph.as_type(low, DType::U64)?;
        Ok(self.graph.bitwise_or(low, high)?)
    }
}
