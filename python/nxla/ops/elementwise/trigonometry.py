"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike


def sin(x: TensorLike, /) -> Tensor:
    """Return the sine of each element, in radians.

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
    >>> nx.sin([0.0, 1.0]).tolist()
    [0.0, 0.8414709568023682]
    """
    return _core.sin(x)


def cos(x: TensorLike, /) -> Tensor:
    """Return the cosine of each element, in radians.

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
    >>> nx.cos([0.0, 1.0]).tolist()
    [1.0, 0.5403022766113281]
    """
    return _core.cos(x)


def tan(x: TensorLike, /) -> Tensor:
    """Return the tangent of each element, in radians.

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
    >>> nx.tan([0.0, 1.0]).tolist()
    [0.0, 1.5574077367782593]
    """
    return _core.tan(x)


def asin(x: TensorLike, /) -> Tensor:
    """Return the angle in radians whose sine is each element.

    Real numbers outside [-1, 1] give NaN.

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
    >>> nx.asin([0.0, 1.0]).tolist()
    [0.0, 1.5707963705062866]
    """
    return _core.asin(x)


def acos(x: TensorLike, /) -> Tensor:
    """Return the angle in radians whose cosine is each element.

    Real numbers outside [-1, 1] give NaN.

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
    >>> nx.acos([1.0, 0.0]).tolist()
    [0.0, 1.5707963705062866]
    """
    return _core.acos(x)


def atan(x: TensorLike, /) -> Tensor:
    """Return the angle in radians whose tangent is each element.

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
    >>> nx.atan([0.0, 1.0]).tolist()
    [0.0, 0.7853981852531433]
    """
    return _core.atan(x)


def sinh(x: TensorLike, /) -> Tensor:
    """Return the hyperbolic sine of each element.

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
    >>> nx.sinh([0.0, 1.0]).tolist()
    [0.0, 1.175201177597046]
    """
    return _core.sinh(x)


def cosh(x: TensorLike, /) -> Tensor:
    """Return the hyperbolic cosine of each element.

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
    >>> nx.cosh([0.0, 1.0]).tolist()
    [1.0, 1.5430805683135986]
    """
    return _core.cosh(x)


def tanh(x: TensorLike, /) -> Tensor:
    """Return the hyperbolic tangent of each element.

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
    >>> nx.tanh([0.0, 1.0]).tolist()
    [0.0, 0.7615941762924194]
    """
    return _core.tanh(x)


def asinh(x: TensorLike, /) -> Tensor:
    """Return the number whose hyperbolic sine is each element.

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
    >>> nx.asinh([0.0, 1.0]).tolist()
    [0.0, 0.8813735842704773]
    """
    return _core.asinh(x)


def acosh(x: TensorLike, /) -> Tensor:
    """Return the number whose hyperbolic cosine is each element.

    Real numbers below 1 give NaN.

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
    >>> nx.acosh([1.0, 2.0]).tolist()
    [0.0, 1.316957950592041]
    """
    return _core.acosh(x)


def atanh(x: TensorLike, /) -> Tensor:
    """Return the number whose hyperbolic tangent is each element.

    Real numbers outside [-1, 1] give NaN.

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
    >>> nx.atanh([0.0, 0.5]).tolist()
    [0.0, 0.5493061542510986]
    """
    return _core.atanh(x)


def atan2(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the angle in radians of the point (x2, x1).

    Parameters
    ----------
    x1, x2 : tensor_like
        Ordinates and abscissas, real; their shapes broadcast.

    Returns
    -------
    Tensor
        Floats of the common shape, between -pi and pi.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.atan2([1.0, -1.0], [-1.0, 1.0]).tolist()
    [2.356194496154785, -0.7853981852531433]
    """
    return _core.atan2(x1, x2)


def hypot(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the distance of the point (x1, x2) from the origin without overflow.

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
    >>> nx.hypot(3.0, 4.0).item()
    5.0
    """
    x1, x2 = _core.abs(x1), _core.abs(x2)
    longer, shorter = _core.max(x1, x2), _core.min(x1, x2)
    # Where the longer leg is zero or infinite it is the result, and its ratio would be NaN.
    plain = _core.logical_or(_core.equal(longer, 0), _core.is_infinity(longer))
    ratio = _core.divide(shorter, _core.select(plain, 1.0, longer))
    length = _core.multiply(longer, _core.sqrt(_core.add(_core.multiply(ratio, ratio), 1.0)))
    infinite = _core.logical_or(_core.is_infinity(x1), _core.is_infinity(x2))
    return _core.select(infinite, float("inf"), _core.select(plain, longer, length))
