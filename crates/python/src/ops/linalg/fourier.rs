//! Fourier transforms.

use std::borrow::Cow;

use nxla_runtime::Result;
use nxla_runtime::graph::build::FftNorm;
use pyo3::prelude::*;

use crate::ops::args::{Axis, AxisList, Integer, fixed_length};
use crate::ops::declare::{Argument, ArgumentContext, Choice, Choices, functions};

impl Choices for FftNorm {
    const ALL: &'static [(&'static str, Self)] = &[
        ("backward", FftNorm::Backward),
        ("ortho", FftNorm::Ortho),
        ("forward", FftNorm::Forward),
    ];
}

/// The number of points along an axis.
struct TransformLength(Integer);

impl<'a, 'py> FromPyObject<'a, 'py> for TransformLength {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(TransformLength)
    }
}

impl Argument for TransformLength {
    type Value = usize;

    fn annotation() -> Cow<'static, str> {
        "int".into()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<usize> {
        let Integer(length) = self.0;
        let points = usize::try_from(length).ok().filter(|&points| points > 0);
        points.ok_or_else(|| site.refuse(format!("must be at least 1; got {length}")))
    }
}

/// Two axes, the last ones by default.
struct AxisPair(Axis, Axis);

impl From<(i64, i64)> for AxisPair {
    fn from((first, second): (i64, i64)) -> Self {
        AxisPair(first.into(), second.into())
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for AxisPair {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let [first, second] = fixed_length("axes", "two axes", &value, &value)?;
        Ok(AxisPair(first, second))
    }
}

impl Argument for AxisPair {
    type Value = Vec<i64>;

    fn annotation() -> Cow<'static, str> {
        "tuple[Axis, Axis]".into()
    }

    fn into_value(self, site: &mut ArgumentContext<'_>) -> Result<Vec<i64>> {
        Ok(vec![self.0.into_value(site)?, self.1.into_value(site)?])
    }
}

functions! {
    /// Return the discrete Fourier transform along an axis.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers of any dtype.
    /// n : int, optional
    ///     The number of elements; the axis is truncated or padded with zeros. All elements by
    ///     default.
    /// axis : int or str
    ///     The axis.
    /// norm : {"backward", "ortho", "forward"}
    ///     The normalization: ``"backward"`` divides the inverse transform by the number of elements,
    ///     ``"ortho"`` divides both transforms by its square root, and ``"forward"`` divides the
    ///     forward transform by the number.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Complex numbers.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If the axis does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.fft([1.0, 2.0, 3.0, 4.0]).tolist()
    /// [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    fn fft(
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<FftNorm> = "backward"
    ) |graph| graph.fft(x, n, axis, norm);

    /// Return the inverse discrete Fourier transform.
    ///
    /// Parameters and errors are the same as for `fft`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.ifft([6.0, -2.0 + 2.0j, -2.0, -2.0 - 2.0j]).tolist()
    /// [0j, (1+0j), (2+0j), (3+0j)]
    fn ifft(
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<FftNorm> = "backward"
    ) |graph| graph.ifft(x, n, axis, norm);

    /// Return the non-redundant half of the Fourier transform of real numbers.
    ///
    /// Parameters are the same as for `fft`.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Complex numbers, ``n // 2 + 1`` along the axis.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.rfft([1.0, 0.0, 0.0, 0.0]).tolist()
    /// [(1+0j), (1+0j), (1+0j)]
    fn rfft(
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<FftNorm> = "backward"
    ) |graph| graph.rfft(x, n, axis, norm);

    /// Return the inverse of `rfft`.
    ///
    /// Parameters are the same as for `fft`; `n` is the number of elements of the result, by
    /// default
    /// ``2 * (m - 1)`` for ``m`` elements of `x`.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.irfft([1.0, 1.0, 1.0]).tolist()
    /// [1.0, 0.0, 0.0, 0.0]
    fn irfft(
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<FftNorm> = "backward"
    ) |graph| graph.irfft(x, n, axis, norm);

    /// Return the discrete Fourier transform along several axes.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers of any dtype.
    /// s : sequence of int, optional
    ///     The number of elements along each axis, which is truncated or padded with zeros.
    /// axes : int or str, or a sequence, optional
    ///     The axes; by default as many of the last as `s` has entries, or all.
    /// norm : {"backward", "ortho", "forward"}
    ///     As for `fft`.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Complex numbers.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an axis does not exist.
    /// ArgumentError
    ///     If `s` has not one entry for each axis.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.fftn([[1.0, 0.0], [0.0, 0.0]]).tolist()
    /// [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    fn fftn(
        x, /, s: Option<Vec<TransformLength>> = None, axes: Option<AxisList> = None,
        norm: Choice<FftNorm> = "backward"
    ) |graph| graph.fftn(x, s.as_deref(), axes.as_deref(), norm);

    /// Return the inverse of `fftn`, with its parameters.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.ifftn([[4.0, 0.0], [0.0, 0.0]]).tolist()
    /// [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    fn ifftn(
        x, /, s: Option<Vec<TransformLength>> = None, axes: Option<AxisList> = None,
        norm: Choice<FftNorm> = "backward"
    ) |graph| graph.ifftn(x, s.as_deref(), axes.as_deref(), norm);

    /// Return the non-redundant half of the Fourier transform of real numbers along several axes.
    ///
    /// The last axis is transformed by `rfft`, the others by `fft`.
    ///
    /// Parameters are the same as for `fftn`.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.rfftn([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).shape
    /// (2, 2)
    fn rfftn(
        x, /, s: Option<Vec<TransformLength>> = None, axes: Option<AxisList> = None,
        norm: Choice<FftNorm> = "backward"
    ) |graph| graph.rfftn(x, s.as_deref(), axes.as_deref(), norm);

    /// Return the inverse of `rfftn`, with its parameters.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.irfftn(nx.ones((2, 2))).tolist()
    /// [[1.0, 0.0], [0.0, 0.0]]
    fn irfftn(
        x, /, s: Option<Vec<TransformLength>> = None, axes: Option<AxisList> = None,
        norm: Choice<FftNorm> = "backward"
    ) |graph| graph.irfftn(x, s.as_deref(), axes.as_deref(), norm);

    /// Move the element of frequency 0 to the middle of each axis.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     A tensor.
    /// axes : int or str, or a sequence, optional
    ///     The axes; all by default.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     A tensor with the shape and the dtype of `x`.
    ///
    /// Raises
    /// ------
    /// ShapeError
    ///     If an axis does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.fftshift([0, 1, 2, -2, -1]).tolist()
    /// [-2, -1, 0, 1, 2]
    fn fftshift(x, /, axes: Option<AxisList> = None) |graph| graph.fftshift(x, axes.as_deref());

    /// Undo `fftshift`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.ifftshift([-2, -1, 0, 1, 2]).tolist()
    /// [0, 1, 2, -2, -1]
    fn ifftshift(x, /, axes: Option<AxisList> = None) |graph| graph.ifftshift(x, axes.as_deref());

    /// Return the real transform of a signal with Hermitian symmetry, from its first half.
    ///
    /// Parameters are the same as for `fft`; `n` is the number of elements of the result, by
    /// default
    /// ``2 * (m - 1)`` for ``m`` elements of `x`.
    ///
    /// Returns
    /// -------
    /// Tensor
    ///     Floats.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.hfft([1.0, 0.0, 0.0]).tolist()
    /// [1.0, 1.0, 1.0, 1.0]
    fn hfft(
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<FftNorm> = "backward"
    ) |graph| graph.hfft(x, n, axis, norm);

    /// Return the inverse of `hfft`. Parameters are the same as for `fft`.
    ///
    /// Raises
    /// ------
    /// DTypeError
    ///     If `x` is complex.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.ihfft([1.0, 1.0, 1.0, 1.0]).tolist()
    /// [(1-0j), -0j, -0j]
    fn ihfft(
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<FftNorm> = "backward"
    ) |graph| graph.ihfft(x, n, axis, norm);

    /// Return the discrete Fourier transform along two axes.
    ///
    /// Parameters
    /// ----------
    /// x : tensor_like
    ///     Numbers, with at least two axes.
    /// s : (int, int), optional
    ///     The number of elements along each axis.
    /// axes : (int or str, int or str)
    ///     The axes.
    /// norm : {"backward", "ortho", "forward"}
    ///     As for `fft`.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.fft2([[1.0, 0.0], [0.0, 0.0]]).tolist()
    /// [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    fn fft2(
        x, /, s: Option<Vec<TransformLength>> = None, axes: AxisPair = (-2, -1),
        norm: Choice<FftNorm> = "backward"
    ) |graph| graph.fftn(x, s.as_deref(), Some(&axes), norm);

    /// Return the inverse of `fft2`, with its parameters.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.ifft2([[4.0, 0.0], [0.0, 0.0]]).tolist()
    /// [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    fn ifft2(
        x, /, s: Option<Vec<TransformLength>> = None, axes: AxisPair = (-2, -1),
        norm: Choice<FftNorm> = "backward"
    ) |graph| graph.ifftn(x, s.as_deref(), Some(&axes), norm);
}
