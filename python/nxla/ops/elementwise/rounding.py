"""Rounding to whole numbers, in the dtype of the operand."""

from __future__ import annotations

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike


def floor(x: TensorLike, /) -> Tensor:
    """Return the largest whole number that is not above each element.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.floor([1.5, -1.5]).tolist()
    [1.0, -2.0]
    """
    return _core.floor(x)


def ceil(x: TensorLike, /) -> Tensor:
    """Return the smallest whole number that is not below each element.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.ceil([1.5, -1.5]).tolist()
    [2.0, -1.0]
    """
    return _core.ceil(x)


def trunc(x: TensorLike, /) -> Tensor:
    """Drop what is behind the point of each element.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.trunc([1.5, -1.5]).tolist()
    [1.0, -1.0]
    """
    return _core.select(_core.less(x, 0), _core.ceil(x), _core.floor(x))


def round(x: TensorLike, /) -> Tensor:
    """Return the nearest whole number, the even one of two equally near.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.round([0.5, 1.5, 2.5]).tolist()
    [0.0, 2.0, 2.0]
    """
    return _core.round_half_even(x)


def round_half_away(x: TensorLike, /) -> Tensor:
    """Return the nearest whole number, of two equally near the one farther from zero.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.round_half_away([0.5, 1.5, -2.5]).tolist()
    [1.0, 2.0, -3.0]
    """
    return _core.round(x)
