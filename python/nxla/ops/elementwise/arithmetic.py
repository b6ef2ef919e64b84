"""Arithmetic of two operands, signs and magnitudes."""

from __future__ import annotations

from nxla import _core
from nxla._values import as_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike


def add(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Add element by element; the operator ``+``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.add([1, 2], 0.5).tolist()
    [1.5, 2.5]
    """
    return _core.add(x1, x2)


def subtract(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Subtract element by element; the operator ``-``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.subtract([3, 4], [1, 2]).tolist()
    [2, 2]
    """
    return _core.subtract(x1, x2)


def multiply(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Multiply element by element; the operator ``*``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.multiply([[1], [2]], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    return _core.multiply(x1, x2)


def divide(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Divide element by element; the operator ``/``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Floats or complex numbers of the common shape; integers are divided as ``float32``.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.divide([1, 2], 4).tolist()
    [0.25, 0.5]
    """
    return _core.divide(x1, x2)


def floor_divide(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Divide and round toward minus infinity; the operator ``//``.

    Dividing an integer by zero gives an unspecified number, not an error.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.floor_divide([7, -7], 2).tolist()
    [3, -4]
    """
    return _core.floor_divide(x1, x2)


def remainder(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return what floor_divide leaves; the operator ``%``.

    A result that is not zero has the sign of the divisor, as in Python. `fmod` is the remainder
    with the sign of the dividend.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.remainder([7, -7], 3).tolist()
    [1, 2]
    """
    return _core.floor_remainder(x1, x2)


def fmod(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return what a division rounded toward zero leaves.

    A result that is not zero has the sign of the dividend, as in C.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fmod([7, -7], 3).tolist()
    [1, -1]
    """
    return _core.remainder(x1, x2)


def quotient(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Divide integers and round toward zero.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.quotient([7, -7], 2).tolist()
    [3, -3]
    """
    return _core.quotient(x1, x2)


def pow(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Raise to a power; the operator ``**``.

    An integer raised to a negative power gives an unspecified number: convert one of the two to
    floats.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.pow([1, 2, 3], 2).tolist()
    [1, 4, 9]
    """
    return _core.pow(x1, x2)


def maximum(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the larger of two elements; NaN if one of them is NaN.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.maximum([1, 5], 3).tolist()
    [3, 5]
    """
    return _core.max(x1, x2)


def minimum(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the smaller of two elements; NaN if one of them is NaN.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.minimum([1, 5], 3).tolist()
    [1, 3]
    """
    return _core.min(x1, x2)


def negative(x: TensorLike, /) -> Tensor:
    """Negate each element; the operator ``-``.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`; unsigned integers wrap.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.negative([1, -2]).tolist()
    [-1, 2]
    """
    return _core.negate(x)


def positive(x: TensorLike, /) -> Tensor:
    """Return the elements as they are; the operator ``+``.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.positive([1, -2]).tolist()
    [1, -2]
    """
    return as_tensor(x)


def abs(x: TensorLike, /) -> Tensor:
    """Return the distance of each element from zero.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape of `x`; floats of half the width for complex numbers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.abs([1.5, -2.0]).tolist()
    [1.5, 2.0]
    """
    return _core.abs(x)


def sign(x: TensorLike, /) -> Tensor:
    """Return -1, 0 or 1, with the sign of each element.

    A complex number that is not zero is divided by its magnitude. NaN stays NaN.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sign([-3, 0, 5]).tolist()
    [-1, 0, 1]
    """
    return _core.sign(x)


def square(x: TensorLike, /) -> Tensor:
    """Multiply each element by itself.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.square([1, -2, 3]).tolist()
    [1, 4, 9]
    """
    return _core.multiply(x, x)


def reciprocal(x: TensorLike, /) -> Tensor:
    """Divide one by each element.

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
    >>> nx.reciprocal([2.0, 4.0]).tolist()
    [0.5, 0.25]
    """
    return _core.divide(1.0, x)
