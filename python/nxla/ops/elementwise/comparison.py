"""Comparisons, logic, and questions about floats. Results are truth values (``bool``)."""

from __future__ import annotations

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike


def equal(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Tell where two elements are equal; the operator ``==``.

    NaN equals nothing, not even itself.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Truth values of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.equal([1, 2], 2).tolist()
    [False, True]
    """
    return _core.equal(x1, x2)


def not_equal(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Tell where two elements differ; the operator ``!=``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Truth values of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.not_equal([1, 2], 2).tolist()
    [True, False]
    """
    return _core.not_equal(x1, x2)


def less(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Tell where the first is smaller; the operator ``<``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real operands; their shapes broadcast.

    Returns
    -------
    Tensor
        Truth values of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.less([1, 2], 2).tolist()
    [True, False]
    """
    return _core.less(x1, x2)


def less_equal(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Tell where the first is not larger; the operator ``<=``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real operands; their shapes broadcast.

    Returns
    -------
    Tensor
        Truth values of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.less_equal([1, 2], 1).tolist()
    [True, False]
    """
    return _core.less_equal(x1, x2)


def greater(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Tell where the first is larger; the operator ``>``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real operands; their shapes broadcast.

    Returns
    -------
    Tensor
        Truth values of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.greater([1, 2], 1).tolist()
    [False, True]
    """
    return _core.greater(x1, x2)


def greater_equal(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Tell where the first is not smaller; the operator ``>=``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real operands; their shapes broadcast.

    Returns
    -------
    Tensor
        Truth values of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.greater_equal([1, 2], 2).tolist()
    [False, True]
    """
    return _core.greater_equal(x1, x2)


def logical_and(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Tell where both elements are true, that is, not zero.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Truth values of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logical_and([0, 1, 2], 1).tolist()
    [False, True, True]
    """
    return _core.logical_and(x1, x2)


def logical_or(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Tell where one of two elements, or both, are not zero.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Truth values of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logical_or([0, 1], 0).tolist()
    [False, True]
    """
    return _core.logical_or(x1, x2)


def logical_xor(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Tell where exactly one of two elements is not zero.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Truth values of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logical_xor([0, 1], 1).tolist()
    [True, False]
    """
    return _core.logical_xor(x1, x2)


def logical_not(x: TensorLike, /) -> Tensor:
    """Tell where elements are zero.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Truth values of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logical_not([0, 1, 2]).tolist()
    [True, False, False]
    """
    return _core.logical_not(x)


def isnan(x: TensorLike, /) -> Tensor:
    """Tell where elements are not a number.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Truth values of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isnan([1.0, float("nan")]).tolist()
    [False, True]
    """
    return _core.is_nan(x)


def isinf(x: TensorLike, /) -> Tensor:
    """Tell where elements are infinite.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Truth values of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isinf([1.0, float("-inf")]).tolist()
    [False, True]
    """
    return _core.is_infinity(x)


def isfinite(x: TensorLike, /) -> Tensor:
    """Tell where elements are neither infinite nor NaN.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Truth values of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isfinite([1.0, float("inf"), float("nan")]).tolist()
    [True, False, False]
    """
    return _core.logical_not(_core.logical_or(_core.is_nan(x), _core.is_infinity(x)))
