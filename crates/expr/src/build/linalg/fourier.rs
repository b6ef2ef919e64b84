//! Fourier transforms.

use nxla_tensor::to_i64;

use super::super::SliceStart;
use super::super::formula::Formula;
use crate::graph::{ErrorKind, ExprId, Fft, Graph, Op, Padding, Result};

/// The direction of a Fourier transform that divides by the number of points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FftNorm {
    /// The inverse transform divides.
    #[default]
    Backward,
    /// Both transforms divide by the root of the number.
    Ortho,
    /// The transform divides, and its inverse does not.
    Forward,
}

impl FftNorm {
    /// The norm of the transform in the other direction.
    fn opposite(self) -> Self {
        match self {
            FftNorm::Backward => FftNorm::Forward,
            FftNorm::Ortho => FftNorm::Ortho,
            FftNorm::Forward => FftNorm::Backward,
        }
    }
}

impl Graph {
    /// Returns the discrete Fourier transform of `length` points along an axis, which is cut or
    /// padded with zeros to this length. `None` uses the size of the axis. The result is complex.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or a length of 0.
    pub fn fft(
        &mut self,
        x: ExprId,
        length: Option<usize>,
        axis: i64,
        norm: FftNorm,
    ) -> Result<ExprId> {
        self.fourier(x, length, axis, false, norm)
    }

    /// Returns the inverse of [`Graph::fft`].
    ///
    /// # Errors
    /// Returns the errors of [`Graph::fft`].
    pub fn ifft(
        &mut self,
        x: ExprId,
        length: Option<usize>,
        axis: i64,
        norm: FftNorm,
    ) -> Result<ExprId> {
        self.fourier(x, length, axis, true, norm)
    }

    fn fourier(
        &mut self,
        x: ExprId,
        length: Option<usize>,
        axis: i64,
        inverse: bool,
        norm: FftNorm,
    ) -> Result<ExprId> {
        let axis = self.axis("fft", x, axis)?;
        let length = length.unwrap_or(self.shape(x)[axis]);
        let transformed = self.make(Op::Fft(Fft { inverse, length, axis }), &[x])?;
        self.scale_transform(transformed, length, inverse, norm)
    }

    /// Applies a norm to a transform of this many points, whose inverse has divided by their number.
    fn scale_transform(
        &mut self,
        transformed: ExprId,
        points: usize,
        inverse: bool,
        norm: FftNorm,
    ) -> Result<ExprId> {
        #[expect(clippy::cast_precision_loss, reason = "no tensor has 2^53 elements")]
        let points = points as f64;
        let factor = match (norm, inverse) {
            (FftNorm::Backward, _) => return Ok(transformed),
            (FftNorm::Ortho, true) => points.sqrt(),
            (FftNorm::Ortho, false) => 1.0 / points.sqrt(),
            (FftNorm::Forward, true) => points,
            (FftNorm::Forward, false) => 1.0 / points,
        };
        let formula = Formula::new(self);
        (formula.term(transformed) * factor).id()
    }

    /// Returns the nonredundant half of [`Graph::fft`] of a real tensor: `length / 2 + 1` bins.
    /// This is a block whose default drops the other bins.
    ///
    /// # Errors
    /// Returns an error for a complex operand, and the errors of [`Graph::fft`].
    pub fn rfft(
        &mut self,
        x: ExprId,
        length: Option<usize>,
        axis: i64,
        norm: FftNorm,
    ) -> Result<ExprId> {
        if self.dtype(x).is_complex() {
            let (found, expected) = (self.dtype(x), "a real dtype");
            let kind = ErrorKind::DType { argument: "operand", found, expected };
            return Err(self.error("rfft", kind));
        }
        let at = self.axis("rfft", x, axis)?;
        let length = length.unwrap_or(self.shape(x)[at]);
        let half =
            self.composite("rfft", &[("length", &length), ("axis", &at)], [x], |graph, [x]| {
                let bins = graph.fft(x, Some(length), axis, FftNorm::Backward)?;
                graph.slice_along_axis(bins, 0, length / 2 + 1, axis, 1)
            })?;
        self.scale_transform(half, length, false, norm)
    }

    /// Returns the inverse of [`Graph::rfft`]: `length` real points (`2 * (bins - 1)` for `None`)
    /// from bins whose missing half is the conjugate of the given half. This is a block.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or a length of 0.
    pub fn irfft(
        &mut self,
        x: ExprId,
        length: Option<usize>,
        axis: i64,
        norm: FftNorm,
    ) -> Result<ExprId> {
        let op = "irfft";
        let at = self.axis(op, x, axis)?;
        let count = self.shape(x)[at];
        if length.is_none() && count < 2 {
            let why = format!(
                "must have at least 2 elements along axis {at} without a length; got {count}"
            );
            return Err(self.invalid(op, "operand", why));
        }
        let length = length.unwrap_or(2 * count.saturating_sub(1));
        if length == 0 {
            return Err(self.invalid(op, "length", "must be at least 1; got 0"));
        }
        let points =
            self.composite(op, &[("length", &length), ("axis", &at)], [x], |graph, [x]| {
                graph.complete_spectrum(x, length, at)
            })?;
        self.scale_transform(points, length, true, norm)
    }

    /// The body of [`Graph::irfft`]: completes the spectrum and transforms it.
    fn complete_spectrum(&mut self, x: ExprId, length: usize, at: usize) -> Result<ExprId> {
        let axis = to_i64(at);
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
        let points = self.ifft(spectrum, Some(length), axis, FftNorm::Backward)?;
        self.real(points)
    }

    /// Cuts one axis of `x` at its end, or pads it with zeros.
    fn resize_axis(&mut self, x: ExprId, axis: usize, size: usize) -> Result<ExprId> {
        let shape = self.shape(x);
        if shape[axis] == size {
            return Ok(x);
        }
        let mut padding = vec![Padding::NONE; shape.rank()];
        padding[axis].high = to_i64(size) - to_i64(shape[axis]);
        let zero = self.zero_like(x)?;
        self.pad(x, zero, &padding)
    }

    /// Returns the real transform of a signal with Hermitian symmetry from its first half:
    /// [`Graph::irfft`] of the conjugate, with the norm of the other direction.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::irfft`].
    pub fn hfft(
        &mut self,
        x: ExprId,
        length: Option<usize>,
        axis: i64,
        norm: FftNorm,
    ) -> Result<ExprId> {
        let conjugate = self.conjugate(x)?;
        self.irfft(conjugate, length, axis, norm.opposite())
    }

    /// Returns the inverse of [`Graph::hfft`].
    ///
    /// # Errors
    /// Returns the errors of [`Graph::rfft`].
    pub fn ihfft(
        &mut self,
        x: ExprId,
        length: Option<usize>,
        axis: i64,
        norm: FftNorm,
    ) -> Result<ExprId> {
        let half = self.rfft(x, length, axis, norm.opposite())?;
        self.conjugate(half)
    }

    /// Applies [`Graph::fft`] along several axes: all axes for `None`, or the last axes if there
    /// are lengths. This is a block whose default transforms one axis after the other.
    ///
    /// # Errors
    /// Returns an error for an axis out of range or repeated, a wrong number of lengths for each
    /// axis, or a length of 0.
    ///
    /// ```
    /// use nxla_expr::build::FftNorm;
    /// use nxla_expr::{Graph, TensorType};
    /// use nxla_tensor::DType;
    ///
    /// let mut graph = Graph::new();
    /// let x = graph.parameter(0, TensorType::new(DType::F32, [5, 4, 3]));
    /// let y = graph.fftn(x, Some(&[8, 8]), Some(&[0, 2]), FftNorm::Backward)?;
    /// assert_eq!(graph.tensor_type(y).to_string(), "c64[8][4][8]");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    pub fn fftn(
        &mut self,
        x: ExprId,
        lengths: Option<&[usize]>,
        axes: Option<&[i64]>,
        norm: FftNorm,
    ) -> Result<ExprId> {
        self.along_all("fftn", x, lengths, axes, false, norm)
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
        norm: FftNorm,
    ) -> Result<ExprId> {
        self.along_all("ifftn", x, lengths, axes, true, norm)
    }

    fn along_all(
        &mut self,
        op: &'static str,
        x: ExprId,
        lengths: Option<&[usize]>,
        axes: Option<&[i64]>,
        inverse: bool,
        norm: FftNorm,
    ) -> Result<ExprId> {
        let (axes, lengths) = self.transformed_axes(x, lengths, axes)?;
        let (sizes, at) = (format!("{lengths:?}"), format!("{axes:?}"));
        let transformed =
            self.composite(op, &[("lengths", &sizes), ("axes", &at)], [x], |graph, [x]| {
                graph.along_each(x, &axes, &lengths, inverse)
            })?;
        self.scale_transform(transformed, lengths.iter().product(), inverse, norm)
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
        norm: FftNorm,
    ) -> Result<ExprId> {
        let (axes, lengths) = self.transformed_axes(x, lengths, axes)?;
        let Some((&axis, others)) = axes.split_last() else {
            return Err(self.no_axes("rfftn"));
        };
        let half = self.rfft(x, lengths.last().copied(), axis, FftNorm::Backward)?;
        let transformed = self.along_each(half, others, &lengths, false)?;
        self.scale_transform(transformed, lengths.iter().product(), false, norm)
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
        norm: FftNorm,
    ) -> Result<ExprId> {
        let last = lengths.and_then(|lengths| lengths.last().copied());
        let (axes, mut lengths) = self.transformed_axes(x, lengths, axes)?;
        let Some((&axis, others)) = axes.split_last() else {
            return Err(self.no_axes("irfftn"));
        };
        let half = self.along_each(x, others, &lengths, true)?;
        let points = self.irfft(half, last, axis, FftNorm::Backward)?;
        lengths[others.len()] = self.shape(points)[self.axis("irfftn", points, axis)?];
        self.scale_transform(points, lengths.iter().product(), true, norm)
    }

    /// Moves the element of frequency 0 from the start to the middle of each axis; of all axes for
    /// `None`.
    ///
    /// # Errors
    /// Returns an error for an axis out of range.
    pub fn fftshift(&mut self, x: ExprId, axes: Option<&[i64]>) -> Result<ExprId> {
        self.roll_halves("fftshift", x, axes, 1)
    }

    /// Returns the inverse of [`Graph::fftshift`].
    ///
    /// # Errors
    /// Returns the errors of [`Graph::fftshift`].
    pub fn ifftshift(&mut self, x: ExprId, axes: Option<&[i64]>) -> Result<ExprId> {
        self.roll_halves("ifftshift", x, axes, -1)
    }

    /// Shifts by half of the size, rounded down, along each axis in a direction.
    fn roll_halves(
        &mut self,
        op: &str,
        x: ExprId,
        axes: Option<&[i64]>,
        direction: i64,
    ) -> Result<ExprId> {
        let all = || (0..to_i64(self.shape(x).rank())).collect();
        let axes = axes.map_or_else(all, <[i64]>::to_vec);
        axes.into_iter().try_fold(x, |x, axis| {
            let size = self.shape(x)[self.axis(op, x, axis)?];
            self.roll(x, direction * to_i64(size / 2), axis)
        })
    }

    fn no_axes(&self, op: &str) -> crate::Error {
        self.invalid(op, "axes", "must contain at least one axis; got none")
    }

    /// Returns the transformed axes, which are not negative, and the number of points along each.
    fn transformed_axes(
        &self,
        x: ExprId,
        lengths: Option<&[usize]>,
        axes: Option<&[i64]>,
    ) -> Result<(Vec<i64>, Vec<usize>)> {
        let shape = self.shape(x);
        let axes = match (axes, lengths) {
            (Some(axes), _) => axes.to_vec(),
            (None, Some(lengths)) => (-to_i64(lengths.len())..0).collect(),
            (None, None) => (0..to_i64(shape.rank())).collect(),
        };
        let axes = self.axes("fft", x, &axes)?;
        let lengths = match lengths {
            None => axes.iter().map(|&axis| shape[axis]).collect(),
            Some(lengths) if lengths.len() == axes.len() => lengths.to_vec(),
            Some(lengths) => {
                let (expected, found) = (axes.len(), lengths.len());
                let why = format!("must have {expected} entries, one for each axis; got {found}");
                return Err(self.invalid("fft", "lengths", why));
            }
        };
        Ok((axes.into_iter().map(to_i64).collect(), lengths))
    }

    /// Transforms several axes, the last one first. Without axes, only the dtype changes.
    fn along_each(
        &mut self,
        x: ExprId,
        axes: &[i64],
        lengths: &[usize],
        inverse: bool,
    ) -> Result<ExprId> {
        let mut x = self.as_type(x, self.dtype(x).to_complex())?;
        for (&axis, &length) in axes.iter().zip(lengths).rev() {
            x = self.fourier(x, Some(length), axis, inverse, FftNorm::Backward)?;
        }
        Ok(x)
    }
}
