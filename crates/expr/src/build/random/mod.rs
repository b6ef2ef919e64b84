//! Random numbers from keys, as Nx draws them.
//!
//! A key is two `u32`. What is drawn depends on the key alone, so a key must be used once: drawing
//! functions of higher layers split it with [`Graph::random_next`] and give back what is left.
//! The functions here take a key that has been split off already.
//!
//! Bits come from the counter-based generator Threefry-2x32 with 20 rounds (J. Salmon et al.,
//! "Parallel random numbers: as easy as 1, 2, 3", 2011), so every number is computed on its own.
//! Integers and bits are those of Nx, and so of JAX with its original counters; floats of 32 and 64
//! bits are, up to rounding. Narrower floats are drawn in 32 bits and rounded: the few digits of `bf16`
//! would leave out the tails of a distribution. No gradient flows through a draw.

mod bits;
mod distributions;
mod samples;
mod truncated;

pub use samples::{Choice, Covariance, Draw};

use nxla_tensor::{DType, Scalar};

use crate::graph::{ErrorKind, ExprId, Graph, Result};

impl Graph {
    /// The key of a seed: an integer, of which 64 bits count.
    ///
    /// # Errors
    /// A seed that is no scalar integer.
    ///
    /// ```
    /// use nxla_expr::Graph;
    /// use nxla_expr::build::Draw;
    /// use nxla_tensor::{DType, Number};
    ///
    /// let mut graph = Graph::new();
    /// let seed = graph.number(Number::Int(42))?;
    /// let key = graph.random_key(seed)?;
    /// let (next, key) = graph.random_next(key)?;
    /// let (low, high) = (graph.number(Number::Float(0.0))?, graph.number(Number::Float(1.0))?);
    /// let draw = Draw { shape: [2, 3].into(), ..Draw::default() };
    /// let x = graph.random_uniform(key, low, high, &draw)?;
    /// assert_eq!(graph.tensor_type(x).to_string(), "f32[2][3]");
    /// assert_eq!(graph.tensor_type(next).to_string(), "u32[2]");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    pub fn random_key(&mut self, seed: ExprId) -> Result<ExprId> {
        let ty = self.tensor_type(seed).clone();
        if !ty.dtype.is_integer() {
            let (argument, found, expected) = ("seed", ty.dtype, "an integer dtype");
            return Err(self.error("key", ErrorKind::DType { argument, found, expected }));
        }
        if ty.rank() != 0 {
            let (found, expected) = (ty.to_string(), "a scalar".to_owned());
            return Err(self.error("key", ErrorKind::Shape { argument: "seed", found, expected }));
        }
        let (high, low) = self.halves_of(seed)?;
        self.stack(&[high, low], 0, None)
    }

    /// Keys that have nothing to do with each other or with `key`, as `u32[parts][2]`.
    ///
    /// # Errors
    /// A `key` that is no `u32[2]`; no parts.
    pub fn random_split(&mut self, key: ExprId, parts: usize) -> Result<ExprId> {
        self.check_key("split", key)?;
        if parts == 0 {
            return Err(self.invalid("split", "parts", "must be at least 1"));
        }
        let bits = self.random_bits(key, parts * 2)?;
        self.reshape(bits, [parts, 2])
    }

    /// A key to go on with, and one to draw with.
    ///
    /// # Errors
    /// A `key` that is no `u32[2]`.
    pub fn random_next(&mut self, key: ExprId) -> Result<(ExprId, ExprId)> {
        let keys = self.random_split(key, 2)?;
        Ok((self.row(keys, 0)?, self.row(keys, 1)?))
    }

    /// A key for each of the integers `data`, in a new last axis; equal numbers give equal keys.
    ///
    /// # Errors
    /// A `key` that is no `u32[2]`; data that are no integers.
    pub fn random_fold_in(&mut self, key: ExprId, data: ExprId) -> Result<ExprId> {
        self.check_key("fold_in", key)?;
        let found = self.dtype(data);
        if !found.is_integer() {
            let (argument, expected) = ("data", "an integer dtype");
            return Err(self.error("fold_in", ErrorKind::DType { argument, found, expected }));
        }
        let data = self.rename(data, None)?;
        let (high, low) = self.halves_of(data)?;
        let (first, second) = self.threefry(key, high, low)?;
        self.stack(&[first, second], -1, None)
    }

    /// The upper and the lower half of 64-bit integers, as `u32`.
    fn halves_of(&mut self, x: ExprId) -> Result<(ExprId, ExprId)> {
        let wide = self.as_type(x, DType::U64)?;
        let distance = self.scalar_constant(Scalar::UInt(32), DType::U64)?;
        let high = self.right_shift(wide, distance)?;
        Ok((self.as_type(high, DType::U32)?, self.as_type(wide, DType::U32)?))
    }

    /// One index of the first axis.
    fn row(&mut self, x: ExprId, index: usize) -> Result<ExprId> {
        let row = self.slice_along_axis(x, super::SliceStart::at(index), 1, 0, 1)?;
        self.squeeze(row, Some(&[0]))
    }

    fn check_key(&self, op: &str, key: ExprId) -> Result<()> {
        let ty = self.tensor_type(key);
        if ty.dtype == DType::U32 && ty.shape[..] == [2] {
            return Ok(());
        }
        let (found, expected) = (ty.to_string(), "a key, which is u32[2]".to_owned());
        Err(self.error(op, ErrorKind::Shape { argument: "key", found, expected }))
    }
}
