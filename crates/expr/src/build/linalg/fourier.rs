//! Fourier transforms.

use super::super::SliceStart;
use crate::graph::{ErrorKind, ExprId, Fft, Graph, Op, Padding, Result};

impl Graph {
    /// Returns the discrete Fourier transform of `length` points along an axis, which is cut or
    /// padded with zeros to this length. `None` uses the size of the axis. The result is complex.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or a length of 0.
    pub fn fft(&mut self, x: ExprId, length: Option<usize>, axis: i64) -> Result<ExprId> {
        self.fourier(x, length, axis, false)
    }

    /// Returns the inverse of [`Graph::fft`], divided by `length`.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::fft`].
    pub fn ifft(&mut self, x: ExprId, length: Option<usize>, axis: i64) -> Result<ExprId> {
        self.fourier(x, length, axis, true)
    }

    fn fourier(
        &mut self,
        x: ExprId,
        length: Option<usize>,
        axis: i64,
        inverse: bool,
    ) -> Result<ExprId> {
        let axis = self.axis("fft", x, axis)?;
        let length = length.unwrap_or(self.shape(x)[axis]);
        self.make(Op::Fft(Fft { inverse, length, axis }), &[x])
    }

    /// Returns the nonredundant half of [`Graph::fft`] of a real tensor: `length / 2 + 1` bins.
    /// This is a block whose default drops the other bins.
    ///
    /// # Errors
    /// Returns an error for a complex operand, and the errors of [`Graph::fft`].
    pub fn rfft(&mut self, x: ExprId, length: Option<usize>, axis: i64) -> Result<ExprId> {
        if self.dtype(x).is_complex() {
            let (found, expected) = (self.dtype(x), "a real dtype");
            let kind = ErrorKind::DType { argument: "operand", found, expected };
            return Err(self.error("rfft", kind));
        }
        let at = self.axis("rfft", x, axis)?;
        let length = length.unwrap_or(self.shape(x)[at]);
        self.composite("rfft", &[("length", &length), ("axis", &at)], [x], |graph, [x]| {
            let bins = graph.fft(x, Some(length), axis)?;
            graph.slice_along_axis(bins, 0, length / 2 + 1, axis, 1)
        })
    }

    /// Returns the inverse of [`Graph::rfft`]: `length` real points (`2 * (bins - 1)` for `None`)
    /// from bins whose missing half is the conjugate of the given half. This is a block.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or a length of 0.
    pub fn irfft(&mut self, x: ExprId, length: Option<usize>, axis: i64) -> Result<ExprId> {
        let op = "irfft";
        let at = self.axis(op, x, axis)?;
        let length = length.unwrap_or(2 * self.shape(x)[at].saturating_sub(1));
        if length == 0 {
            return Err(self.invalid(op, "length", "must be at least 1; got 0"));
        }
        self.composite(op, &[("length", &length), ("axis", &at)], [x], |graph, [x]| {
            graph.complete_spectrum(x, length, at)
        })
    }

    /// The body of [`Graph::irfft`]: completes the spectrum and transforms it.
    fn complete_spectrum(&mut self, x: ExprId, length: usize, at: usize) -> Result<ExprId> {
        let axis = i64::try_from(at).expect("an axis is small");
        let given = self.resize_axis(x, at, length / 2 + 1)?;
        // Bin `length - i` is the conjugate of bin `i`; bin 0 and the middle bin have no other
        // half.
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

    /// Cuts one axis of `x` at its end, or pads it with zeros.
    fn resize_axis(&mut self, x: ExprId, axis: usize, size: usize) -> Result<ExprId> {
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

    /// Applies [`Graph::fft`] along several axes: all axes for `None`, or the last axes if there
    /// are lengths. This is a block whose default transforms one axis after the other.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated, a wrong number of lengths for each
    /// axis, or a length of 0.
    ///
    /// ```
    /// use nxla_expr::{Graph, TensorType};
    /// use nxla_tensor::DType;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.parameter(0, TensorType::new(DType::F32, [5, 4, 3]));
    /// let y = graph.fftn(x, Some(&[8, 8]), Some(&[0, 2]))?;
    /// assert_eq!(graph.tensor_type(y).to_string(), "c64[8][4][8]");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    pub fn fftn(
        &mut self,
        x: ExprId,
        lengths: Option<&[usize]>,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        self.along_all("fftn", x, lengths, axes, false)
    }

    /// Returns the inverse of [`Graph::fftn`].
    ///
    /// # Errors
    /// Returns the errors of [`Graph::fftn`].
    pub fn ifftn(
        &mut self,
        x: ExprId,
        lengths: Option<&[usize]>,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        self.along_all("ifftn", x, lengths, axes, true)
    }

    fn along_all(
        &mut self,
        op: &'static str,
        x: ExprId,
        lengths: Option<&[usize]>,
        axes: Option<&[i64]>,
        inverse: bool,
    ) -> Result<ExprId> {
        let plan = self.transformed_axes(x, lengths, axes)?;
        let at: Vec<i64> = plan.iter().map(|&(axis, _)| axis).collect();
        let at = self.axes(op, x, &at)?;
        let sizes: Vec<usize> =
            plan.iter().zip(&at).map(|(&(_, n), &at)| n.unwrap_or(self.shape(x)[at])).collect();
        let (sizes, at) = (format!("{sizes:?}"), format!("{at:?}"));
        self.composite(op, &[("lengths", &sizes), ("axes", &at)], [x], |graph, [x]| {
            graph.along_each(x, &plan, inverse)
        })
    }

    /// Applies [`Graph::rfft`] along the last of several axes, and [`Graph::fft`] along the others.
    ///
    /// # Errors
    /// Returns an error for a complex operand, no axes, and the errors of [`Graph::fftn`].
    pub fn rfftn(
        &mut self,
        x: ExprId,
        lengths: Option<&[usize]>,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        let op = "rfftn";
        let plan = self.transformed_axes(x, lengths, axes)?;
        let Some((&(axis, length), others)) = plan.split_last() else {
            return Err(self.invalid(op, "axes", "must contain at least one axis; got none"));
        };
        let half = self.rfft(x, length, axis)?;
        self.along_each(half, others, false)
    }

    /// Returns the inverse of [`Graph::rfftn`]; the last length has the default of
    /// [`Graph::irfft`].
    ///
    /// # Errors
    /// Returns an error without axes, and the errors of [`Graph::fftn`].
    pub fn irfftn(
        &mut self,
        x: ExprId,
        lengths: Option<&[usize]>,
        axes: Option<&[i64]>,
    ) -> Result<ExprId> {
        let op = "irfftn";
        let plan = self.transformed_axes(x, lengths, axes)?;
        let Some((&(axis, length), others)) = plan.split_last() else {
            return Err(self.invalid(op, "axes", "must contain at least one axis; got none"));
        };
        let half = self.along_each(x, others, true)?;
        self.irfft(half, length, axis)
    }

    /// Returns the transformed axes with the number of points along each.
    fn transformed_axes(
        &self,
        x: ExprId,
        lengths: Option<&[usize]>,
        axes: Option<&[i64]>,
    ) -> Result<Vec<(i64, Option<usize>)>> {
        let signed = |size: usize| i64::try_from(size).expect("an axis is small");
        let rank = self.shape(x).rank();
        let axes = match (axes, lengths) {
            (Some(axes), _) => axes.to_vec(),
            (None, Some(lengths)) => (-signed(lengths.len())..0).collect(),
            (None, None) => (0..signed(rank)).collect(),
        };
        self.axes("fft", x, &axes)?;
        match lengths {
            None => Ok(axes.into_iter().map(|axis| (axis, None)).collect()),
            Some(lengths) if lengths.len() == axes.len() => {
                Ok(axes.into_iter().zip(lengths.iter().copied().map(Some)).collect())
            }
            Some(lengths) => {
                let why = format!(
                    "must have {} entries, one for each axis; got {}",
                    axes.len(),
                    lengths.len()
                );
                Err(self.invalid("fft", "lengths", why))
            }
        }
    }

    /// Transforms several axes, the last one first. Without axes, only the dtype changes.
    fn along_each(
        &mut self,
        x: ExprId,
        plan: &[(i64, Option<usize>)],
        inverse: bool,
    ) -> Result<ExprId> {
        let mut x = self.as_type(x, self.dtype(x).to_complex())?;
        for &(axis, length) in plan.iter().rev() {
            x = self.fourier(x, length, axis, inverse)?;
        }
        Ok(x)
    }
}
