//! Matrix powers, cross products and traces.

use nxla_tensor::promote;

use super::super::SliceStart;
use crate::graph::{ErrorKind, ExprId, Graph, Result};

impl Graph {
    /// Multiplies matrices in the last two axes, for each index of the other axes, which must be
    /// equal.
    pub(super) fn matrix_product(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let batch: Vec<i64> = (0..).take(self.shape(x).rank() - 2).collect();
        self.dot_general(x, &[-1], &batch, y, &[-2], &batch)
    }

    /// Raises square matrices to an integer power: the inverse for a negative power, the identity
    /// for 0. Names are dropped.
    ///
    /// # Errors
    /// Returns an error for matrices that are not square.
    pub fn matrix_power(&mut self, a: ExprId, power: i64) -> Result<ExprId> {
        let ty = self.tensor_type(a).clone();
        let side = self.square_side(&ty)?;
        let mut base = self.rename(a, None)?;
        if power == 0 {
            let eye = self.eye([side, side], ty.dtype)?;
            return self.broadcast(eye, ty.shape, None);
        }
        if power < 0 {
            base = self.invert(base)?;
        }
        let (mut rest, mut result) = (power.unsigned_abs(), None);
        loop {
            if rest & 1 == 1 {
                result = Some(match result {
                    Some(result) => self.matrix_product(result, base)?,
                    None => base,
                });
            }
            rest >>= 1;
            match result {
                Some(result) if rest == 0 => return Ok(result),
                _ => base = self.matrix_product(base, base)?,
            }
        }
    }

    /// Returns the sum of a diagonal of each matrix, `offset` columns right of the main diagonal,
    /// or 0 outside of the matrix. Narrow integers widen as in [`Graph::sum`].
    ///
    /// # Errors
    /// Returns an error for fewer than two axes.
    pub fn trace(&mut self, x: ExprId, offset: i64) -> Result<ExprId> {
        let diagonal = self.diagonal_or_none(x, offset)?;
        self.sum(diagonal, Some(&[-1]), false)
    }

    /// Returns the cross product of vectors of three elements along an axis, counted from the end;
    /// the other axes broadcast.
    ///
    /// # Errors
    /// Returns an error for an axis that is not of size 3 in both operands, or that is not negative
    /// where their ranks differ; for shapes that do not broadcast.
    pub fn cross(&mut self, x: ExprId, y: ExprId, axis: i64) -> Result<ExprId> {
        let op = "cross";
        for (argument, operand) in [("x", x), ("y", y)] {
            let at = self.axis(op, operand, axis)?;
            if self.shape(operand)[at] != 3 {
                let found = self.tensor_type(operand).to_string();
                let expected = format!("3 elements along axis {axis}");
                return Err(self.error(op, ErrorKind::Shape { argument, found, expected }));
            }
        }
        if axis >= 0 && self.shape(x).rank() != self.shape(y).rank() {
            let why = format!("must be negative if the ranks of the operands differ; got {axis}");
            return Err(self.invalid(op, "axis", why));
        }
        let dtype = promote(self.dtype(x), self.dtype(y));
        let wide = dtype.at_least_f32();
        let (x, y) = (self.as_type(x, wide)?, self.as_type(y, wide)?);
        let part = |graph: &mut Graph, operand, index| {
            graph.slice_along_axis(operand, SliceStart::at(index), 1, axis, 1)
        };
        let mut parts = Vec::with_capacity(3);
        for index in 0..3 {
            let (next, last) = ((index + 1) % 3, (index + 2) % 3);
            let (a, b) = (part(self, x, next)?, part(self, y, last)?);
            let down = self.multiply(a, b)?;
            let (c, d) = (part(self, x, last)?, part(self, y, next)?);
            let up = self.multiply(c, d)?;
            parts.push(self.subtract(down, up)?);
        }
        let cross = self.concatenate(&parts, axis)?;
        self.as_type(cross, dtype)
    }
}
