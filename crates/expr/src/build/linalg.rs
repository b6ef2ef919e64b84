//! Fourier transforms and linear algebra on matrices in the last two axes.

use nxla_tensor::Number;

use super::{SliceStart, of_op};
use crate::error::{ErrorKind, Result};
use crate::graph::{ExprId, Graph};
use crate::op::{Axes, Fft, Op, Padding, TriangularSolve};

/// Which norm [`Graph::norm`] computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Norm {
    /// The root of the sum of squares: Euclid's norm of vectors, Frobenius' of matrices.
    #[default]
    Euclid,
    /// Of vectors, the `p`-th root of the sum of `p`-th powers, or the number of elements that
    /// are not 0 for `p` of 0. Of matrices 1 and -1 only: the largest and smallest column sum.
    Power(i32),
    /// The largest element of a vector, the largest row sum of a matrix.
    Max,
    /// The smallest element of a vector, the smallest row sum of a matrix.
    Min,
}

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

    /// A norm over one axis (of vectors) or two axes (of matrices), all axes for `None`. Absolute
    /// values enter everywhere. A real float.
    ///
    /// # Errors
    /// Not one or two axes; a power that has no closed form for matrices.
    pub fn norm(
        &mut self,
        x: ExprId,
        norm: Norm,
        axes: Option<&[i64]>,
        keep_axes: bool,
    ) -> Result<ExprId> {
        let axes: Axes = match axes {
            Some(axes) => self.axes("norm", x, axes)?.into(),
            None => (0..self.shape(x).rank()).collect(),
        };
        let signed = |&axis: &usize| i64::try_from(axis).expect("an axis is small");
        let axes: Vec<i64> = axes.iter().map(signed).collect();
        let dtype = self.dtype(x).to_real();
        let size = self.abs(x)?;
        let result = match (norm, &axes[..]) {
            (Norm::Euclid, [_] | [_, _]) => self.power_norm(size, 2, &axes)?,
            (Norm::Power(0), [_]) => {
                let zero = self.zero_like(size)?;
                let occupied = self.not_equal(size, zero)?;
                self.sum(occupied, Some(&axes), true)?
            }
            (Norm::Power(power), [_]) => self.power_norm(size, power, &axes)?,
            (Norm::Max, [_]) => self.reduce_max(size, Some(&axes), true)?,
            (Norm::Min, [_]) => self.reduce_min(size, Some(&axes), true)?,
            (Norm::Power(1), &[rows, columns]) => self.sum_norm(size, rows, columns, true)?,
            (Norm::Power(-1), &[rows, columns]) => self.sum_norm(size, rows, columns, false)?,
            (Norm::Max, &[rows, columns]) => self.sum_norm(size, columns, rows, true)?,
            (Norm::Min, &[rows, columns]) => self.sum_norm(size, columns, rows, false)?,
            (Norm::Power(power), [_, _]) => {
                let why = format!("{power} is not supported for matrices, expected 1 or -1");
                return Err(self.invalid("norm", "power", why));
            }
            (Norm::Euclid | Norm::Power(_) | Norm::Max | Norm::Min, _) => {
                let why =
                    format!("must be one or two, got {} of {}", axes.len(), self.tensor_type(x));
                return Err(self.invalid("norm", "axes", why));
            }
        };
        let result = self.as_type(result, dtype)?;
        if keep_axes { Ok(result) } else { self.squeeze(result, Some(&axes)) }
    }

    /// `sum(x^p)^(1/p)`. Dividing by the largest element first keeps the powers in range.
    fn power_norm(&mut self, size: ExprId, power: i32, axes: &[i64]) -> Result<ExprId> {
        let largest = self.reduce_max(size, Some(axes), true)?;
        let zero = self.weak_number(Number::Int(0), largest)?;
        let positive = self.greater(largest, zero)?;
        let one = self.weak_number(Number::Int(1), largest)?;
        let scale = self.select(positive, largest, one)?;
        let scaled = self.divide(size, scale)?;
        let exponent = self.weak_number(Number::Int(i128::from(power)), scaled)?;
        let powers = self.pow(scaled, exponent)?;
        let sum = self.sum(powers, Some(axes), true)?;
        let root = self.weak_number(Number::Float(f64::from(power).recip()), sum)?;
        let root = self.pow(sum, root)?;
        self.multiply(root, scale)
    }

    /// The largest or smallest sum along one axis.
    fn sum_norm(&mut self, size: ExprId, summed: i64, searched: i64, max: bool) -> Result<ExprId> {
        let sums = self.sum(size, Some(&[summed]), true)?;
        match max {
            true => self.reduce_max(sums, Some(&[searched]), true),
            false => self.reduce_min(sums, Some(&[searched]), true),
        }
    }
}
