//! Fourier transforms.

use std::borrow::Cow;

use nxla_runtime::Result;
use nxla_runtime::graph::{self, ExprId, Graph};
use nxla_runtime::host::Number;
use pyo3::prelude::*;

use crate::ops::args::{Axis, AxisList, fixed_length};
use crate::ops::declare::{Argument, ArgumentContext, Choice, Choices, functions};

/// The direction of a transform that divides by the number of points.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Backward,
    Ortho,
    Forward,
}

impl Choices for Scale {
    const ALL: &'static [(&'static str, Self)] =
        &[("backward", Scale::Backward), ("ortho", Scale::Ortho), ("forward", Scale::Forward)];
}

impl Scale {
    /// The scale of the transform in the other direction.
    fn opposite(self) -> Self {
        match self {
            Scale::Backward => Scale::Forward,
            Scale::Ortho => Scale::Ortho,
            Scale::Forward => Scale::Backward,
        }
    }
}

/// The number of points along an axis.
struct TransformLength(i64);

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
        let points = usize::try_from(self.0).ok().filter(|&points| points > 0);
        points.ok_or_else(|| site.refuse(format!("must be at least 1; got {}", self.0)))
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

/// The direction of a transform, and the axis that determines the number of points.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Forward; the result has the number of points.
    Result,
    /// Forward; the operand has the number of points, and the result only half.
    Operand,
    /// Inverse; the result has the number of points.
    Inverse,
}

/// A scaled transform of this many points. The unscaled inverse transform already divides by their
/// number.
fn scale_transform(
    graph: &mut Graph,
    transformed: ExprId,
    points: usize,
    side: Side,
    scale: Scale,
) -> Result<ExprId> {
    #[expect(clippy::cast_precision_loss, reason = "no tensor has 2^53 elements")]
    let points = points as f64;
    let factor = match (scale, side) {
        (Scale::Backward, _) => return Ok(transformed),
        (Scale::Ortho, Side::Inverse) => points.sqrt(),
        (Scale::Ortho, Side::Result | Side::Operand) => 1.0 / points.sqrt(),
        (Scale::Forward, Side::Inverse) => points,
        (Scale::Forward, Side::Result | Side::Operand) => 1.0 / points,
    };
    let factor = graph.weak_number(Number::Float(factor), transformed)?;
    Ok(graph.multiply(transformed, factor)?)
}

/// The size of an axis; the transform has checked the axis.
fn size(graph: &Graph, x: ExprId, axis: i64) -> usize {
    let shape = graph.shape(x);
    let from_end = usize::try_from(axis.unsigned_abs()).unwrap_or(usize::MAX);
    shape[if axis < 0 { shape.rank() - from_end } else { from_end }]
}

/// A transform along one axis.
fn along(
    graph: &mut Graph,
    transform: fn(&mut Graph, ExprId, Option<usize>, i64) -> graph::Result<ExprId>,
    side: Side,
    x: ExprId,
    n: Option<usize>,
    axis: i64,
    scale: Scale,
) -> Result<ExprId> {
    let transformed = transform(graph, x, n, axis)?;
    let points = match side {
        Side::Operand => n.unwrap_or_else(|| size(graph, x, axis)),
        Side::Result | Side::Inverse => size(graph, transformed, axis),
    };
    scale_transform(graph, transformed, points, side, scale)
}

type TransformOfAxes =
    fn(&mut Graph, ExprId, Option<&[usize]>, Option<&[i64]>) -> graph::Result<ExprId>;

/// A transform along several axes.
fn along_all(
    graph: &mut Graph,
    transform: TransformOfAxes,
    side: Side,
    x: ExprId,
    s: Option<Vec<usize>>,
    axes: Option<Vec<i64>>,
    scale: Scale,
) -> Result<ExprId> {
    let transformed = transform(graph, x, s.as_deref(), axes.as_deref())?;
    let rank = i64::try_from(graph.shape(x).rank()).expect("a rank is small");
    // Sizes without axes belong to the last axes.
    let given = s.as_ref().map_or(rank, |s| i64::try_from(s.len()).expect("a rank is small"));
    let axes = axes.unwrap_or_else(|| (-given..0).collect());
    let counted = if side == Side::Operand { x } else { transformed };
    let points = match (side, s) {
        (Side::Operand, Some(s)) => s.iter().product(),
        _ => axes.iter().map(|&axis| size(graph, counted, axis)).product(),
    };
    scale_transform(graph, transformed, points, side, scale)
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
    ///     The direction that divides by the number of elements: the inverse, both by its root, or
    ///     this one.
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
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<Scale> = "backward"
    ) |graph| along(graph, Graph::fft, Side::Result, x, n, axis, norm);

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
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<Scale> = "backward"
    ) |graph| along(graph, Graph::ifft, Side::Inverse, x, n, axis, norm);

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
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<Scale> = "backward"
    ) |graph| along(graph, Graph::rfft, Side::Operand, x, n, axis, norm);

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
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<Scale> = "backward"
    ) |graph| along(graph, Graph::irfft, Side::Inverse, x, n, axis, norm);

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
        norm: Choice<Scale> = "backward"
    ) |graph| along_all(graph, Graph::fftn, Side::Result, x, s, axes, norm);

    /// Return the inverse of `fftn`, with its parameters.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.ifftn([[4.0, 0.0], [0.0, 0.0]]).tolist()
    /// [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    fn ifftn(
        x, /, s: Option<Vec<TransformLength>> = None, axes: Option<AxisList> = None,
        norm: Choice<Scale> = "backward"
    ) |graph| along_all(graph, Graph::ifftn, Side::Inverse, x, s, axes, norm);

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
        norm: Choice<Scale> = "backward"
    ) |graph| along_all(graph, Graph::rfftn, Side::Operand, x, s, axes, norm);

    /// Return the inverse of `rfftn`, with its parameters.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.irfftn(nx.ones((2, 2))).tolist()
    /// [[1.0, 0.0], [0.0, 0.0]]
    fn irfftn(
        x, /, s: Option<Vec<TransformLength>> = None, axes: Option<AxisList> = None,
        norm: Choice<Scale> = "backward"
    ) |graph| along_all(graph, Graph::irfftn, Side::Inverse, x, s, axes, norm);

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
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<Scale> = "backward"
    ) |graph| {
        let conjugate = graph.conjugate(x)?;
        along(graph, Graph::irfft, Side::Inverse, conjugate, n, axis, norm.opposite())
    };

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
        x, /, n: Option<TransformLength> = None, axis: Axis = -1, norm: Choice<Scale> = "backward"
    ) |graph| {
        let half = along(graph, Graph::rfft, Side::Operand, x, n, axis, norm.opposite())?;
        graph.conjugate(half)
    };

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
        norm: Choice<Scale> = "backward"
    ) |graph| along_all(graph, Graph::fftn, Side::Result, x, s, Some(axes), norm);

    /// Return the inverse of `fft2`, with its parameters.
    ///
    /// Examples
    /// --------
    /// >>> import nxla as nx
    /// >>> nx.fft.ifft2([[4.0, 0.0], [0.0, 0.0]]).tolist()
    /// [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    fn ifft2(
        x, /, s: Option<Vec<TransformLength>> = None, axes: AxisPair = (-2, -1),
        norm: Choice<Scale> = "backward"
    ) |graph| along_all(graph, Graph::ifftn, Side::Inverse, x, s, Some(axes), norm);
}
