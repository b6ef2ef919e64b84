"""Exponentials, logarithms, roots and the error function."""

from __future__ import annotations

import math

from nxla import _core
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike


def exp(x: TensorLike, /) -> Tensor:
    """Return e to the power of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.exp([0.0, 1.0]).tolist()
    [1.0, 2.7182817459106445]
    """
    return _core.exp(x)


def expm1(x: TensorLike, /) -> Tensor:
    """Return e to the power of each element, minus one, exact near zero.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.expm1([0.0, 1e-7]).tolist()
    [0.0, 1.000000082740371e-07]
    """
    return _core.expm1(x)


def log(x: TensorLike, /, base: TensorLike | None = None) -> Tensor:
    """Return the logarithm of each element, the natural one by default.

    Negative real numbers give NaN, zero gives minus infinity.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    base : tensor_like, optional
        Another base than ``e``. Tensors broadcast, and their dtypes promote.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Raises
    ------
    ArgumentError
        If `base` is a number that is not positive, or 1.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.log([1.0, 2.0]).tolist(), nx.log([1.0, 8.0], 2).tolist()
    ([0.0, 0.6931471824645996], [0.0, 3.0])
    """
    if base is None:
        return _core.log(x)
    if isinstance(base, int | float):
        if base <= 0 or base == 1:
            raise ArgumentError(f"log: base must be positive and not 1, got {base}")
        return _core.divide(_core.log(x), math.log(base))
    return _core.divide(_core.log(x), _core.log(base))


def log1p(x: TensorLike, /) -> Tensor:
    """Return the natural logarithm of one plus each element, exact near zero.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.log1p([0.0, 1e-7]).tolist()
    [0.0, 9.999999406318238e-08]
    """
    return _core.log1p(x)


def log2(x: TensorLike, /) -> Tensor:
    """Return the logarithm to base 2 of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.log2([1.0, 8.0]).tolist()
    [0.0, 3.0]
    """
    return _core.log2(x)


def log10(x: TensorLike, /) -> Tensor:
    """Return the logarithm to base 10 of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.log10([1.0, 100.0]).tolist()
    [0.0, 2.0]
    """
    return _core.log10(x)


def logaddexp(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return log(exp(x1) + exp(x2)) without overflow.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real numbers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Floats of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logaddexp(1000.0, 1000.0).item()
    1000.6931762695312
    """
    larger = _core.max(x1, x2)
    gap = _core.negate(_core.abs(_core.subtract(x1, x2)))
    total = _core.add(larger, _core.log1p(_core.exp(gap)))
    # Two equal infinities have no gap, and are their own sum.
    same = _core.logical_and(_core.equal(x1, x2), _core.is_infinity(larger))
    return _core.select(same, larger, total)


def sqrt(x: TensorLike, /) -> Tensor:
    """Return the square root of each element.

    Negative real numbers give NaN.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sqrt([4.0, 2.0]).tolist()
    [2.0, 1.4142135381698608]
    """
    return _core.sqrt(x)


def rsqrt(x: TensorLike, /) -> Tensor:
    """Return one divided by the square root of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.rsqrt([4.0, 16.0]).tolist()
    [0.5, 0.25]
    """
    return _core.rsqrt(x)


def cbrt(x: TensorLike, /) -> Tensor:
    """Return the cube root of each element, also of negative ones.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cbrt([8.0, -27.0]).tolist()
    [2.0, -3.0]
    """
    return _core.cbrt(x)


def sigmoid(x: TensorLike, /) -> Tensor:
    """Return 1 / (1 + exp(-x)) of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sigmoid([0.0, 100.0]).tolist()
    [0.5, 1.0]
    """
    return _core.sigmoid(x)


def erf(x: TensorLike, /) -> Tensor:
    """Return the error function of each element.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.erf([0.0, 1.0]).tolist()
    [0.0, 0.8427007794380188]
    """
    return _core.erf(x)


def erfc(x: TensorLike, /) -> Tensor:
    """Return one minus the error function, exact where that is near one.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.erfc([0.0, 3.0]).tolist()
    [1.0, 2.209049853263423e-05]
    """
    return _core.erfc(x)


def erf_inv(x: TensorLike, /) -> Tensor:
    """Return the number whose error function is each element.

    Defined between -1 and 1; NaN elsewhere.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.erf_inv([0.0, 0.5]).tolist()
    [0.0, 0.4769362807273865]
    """
    return _core.erf_inv(x)
