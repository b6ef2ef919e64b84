//! Fourier transforms and linear algebra on matrices in the last two axes.

use super::{SliceStart, of_op};
use crate::error::{ErrorKind, Result};
use crate::graph::{ExprId, Graph};
use crate::op::{Axes, Fft, Op, Padding, TriangularSolve};

impl Graph {
    /// The discrete Fourier transform of `length` points along an axis (as many as there are for
    /// `None`); the axis is cut or padded with zeros to it. The result is complex.
    ///
    /// # Errors
    /// An axis out of range; a length of 0.
    pub fn fft(&mut self, x: ExprId, length: Option<usize>, axis: i64) -> Result<ExprId> {
        self.fourier("fft", x, length, axis, false)
    }

    /// The inverse of [`Graph::fft`], divided by `length`.
    ///
    /// # Errors
    /// As for [`Graph::fft`].
    pub fn ifft(&mut self, x: ExprId, length: Option<usize>, axis: i64) -> Result<ExprId> {
        self.fourier("ifft", x, length, axis, true)
    }

    fn fourier(
        &mut self,
        op: &str,
        x: ExprId,
        length: Option<usize>,
        axis: i64,
        inverse: bool,
    ) -> Result<ExprId> {
        let axis = self.axis(op, x, axis)?;
        let length = length.unwrap_or(self.shape(x)[axis]);
        self.make(Op::Fft(Fft { inverse, length, axis }), &[x])
    }

    /// [`Graph::fft`] of a real tensor without the redundant half: `length / 2 + 1` bins.
    ///
    /// # Errors
    /// A complex operand, and as for [`Graph::fft`].
    pub fn rfft(&mut self, x: ExprId, length: Option<usize>, axis: i64) -> Result<ExprId> {
        if self.dtype(x).is_complex() {
            let (found, expected) = (self.dtype(x), "a real dtype");
            let kind = ErrorKind::DType { argument: "operand", found, expected };
            return Err(self.error("rfft", kind));
        }
        let at = self.axis("rfft", x, axis)?;
        let length = length.unwrap_or(self.shape(x)[at]);
        let bins = self.fft(x, Some(length), axis).map_err(of_op("rfft"))?;
        self.slice_along_axis(bins, 0, length / 2 + 1, axis, 1)
    }

    /// The inverse of [`Graph::rfft`]: `length` real points (`2 * (bins - 1)` for `None`) from
    /// bins whose missing half is the conjugate of the given one.
    ///
    /// # Errors
    /// An axis out of range; a length of 0.
    pub fn irfft(&mut self, x: ExprId, length: Option<usize>, axis: i64) -> Result<ExprId> {
        let op = "irfft";
        let at = self.axis(op, x, axis)?;
        let length = length.unwrap_or(2 * self.shape(x)[at].saturating_sub(1));
        if length == 0 {
            return Err(self.invalid(op, "length", "must be at least 1"));
        }
        let given = self.resized(x, at, length / 2 + 1)?;
        // Bin `length - i` is the conjugate of bin `i`; bin 0 and the middle one are their own.
        let mirrored = (length - 1) / 2;
        let spectrum = if mirrored == 0 {
            given
        } else {
            let tail = self.slice_along_axis(given, SliceStart::Static(1), mirrored, axis, 1)?;
            let tail = self.reverse(tail, Some(&[axis]))?;
            let tail = self.conjugate(tail)?;
            self.concatenate(&[given, tail], axis)?
        };
        let points = self.ifft(spectrum, Some(length), axis)?;
        self.real(points)
    }

    /// `x` with one axis cut or padded with zeros at its end.
    fn resized(&mut self, x: ExprId, axis: usize, size: usize) -> Result<ExprId> {
        let shape = self.shape(x);
        if shape[axis] == size {
            return Ok(x);
        }
        let signed = |size: usize| i64::try_from(size).expect("an axis has below 2^63 elements");
        let mut padding = vec![Padding { low: 0, high: 0, interior: 0 }; shape.rank()];
        padding[axis].high = signed(size) - signed(shape[axis]);
        let zero = self.zero_like(x)?;
        self.pad(x, zero, &padding)
    }

    /// Solves `a x = b`, or `x a = b` without `left_side`, for triangular matrices `a`. The other
    /// triangle is not read. `b` holds one matrix or one vector for each matrix of `a`. The
    /// dtypes promote to a float; names are dropped.
    ///
    /// # Errors
    /// Matrices that are not square; a `b` that does not fit.
    pub fn triangular_solve(
        &mut self,
        a: ExprId,
        b: ExprId,
        options: TriangularSolve,
    ) -> Result<ExprId> {
        self.make(Op::TriangularSolve(options), &[a, b])
    }

    /// The lower-triangular `l` with `l l^H = a` for positive definite `a`; only the lower
    /// triangle of `a` is read. A float; names are dropped.
    ///
    /// # Errors
    /// Matrices that are not square.
    pub fn cholesky(&mut self, a: ExprId) -> Result<ExprId> {
        self.make(Op::Cholesky, &[a])
    }

    /// The conjugate transpose of the last two axes. A vector is only conjugated.
    ///
    /// # Errors
    /// None for tensors; the result is fallible like that of every builder.
    pub fn adjoint(&mut self, x: ExprId) -> Result<ExprId> {
        let rank = self.shape(x).rank();
        let x = if self.dtype(x).is_complex() { self.conjugate(x)? } else { x };
        if rank < 2 {
            return Ok(x);
        }
        let order: Axes = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        self.make(Op::Transpose(order), &[x])
    }
}
