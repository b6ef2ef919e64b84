"""Operations on the bits of integers, and on truth values as bits."""

from __future__ import annotations

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike


def bitwise_and(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Keep the bits that both have; the operator ``&``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype; truth values for two of them.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_and(12, 10).item()
    8
    """
    return _core.bitwise_and(x1, x2)


def bitwise_or(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Join the bits of both; the operator ``|``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype; truth values for two of them.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_or(12, 10).item()
    14
    """
    return _core.bitwise_or(x1, x2)


def bitwise_xor(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Keep the bits that one of the two has; the operator ``^``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype; truth values for two of them.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_xor(12, 10).item()
    6
    """
    return _core.bitwise_xor(x1, x2)


def bitwise_invert(x: TensorLike, /) -> Tensor:
    """Turn every bit over; the operator ``~``.

    Parameters
    ----------
    x : tensor_like
        Integers or truth values.

    Returns
    -------
    Tensor
        Integers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_invert([0, 1]).tolist()
    [-1, -2]
    """
    return _core.bitwise_not(x)


def bitwise_left_shift(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Shift bits to the left; the operator ``<<``.

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
    >>> nx.bitwise_left_shift(1, [0, 1, 4]).tolist()
    [1, 2, 16]
    """
    return _core.left_shift(x1, x2)


def bitwise_right_shift(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Shift bits to the right; the operator ``>>``.

    Signed integers keep their sign.

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
    >>> nx.bitwise_right_shift([-8, 8], 1).tolist()
    [-4, 4]
    """
    return _core.right_shift(x1, x2)


def population_count(x: TensorLike, /) -> Tensor:
    """Count the bits that are one.

    Parameters
    ----------
    x : tensor_like
        Integers.

    Returns
    -------
    Tensor
        Integers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.population_count([0, 7, 8]).tolist()
    [0, 3, 1]
    """
    return _core.population_count(x)


def count_leading_zeros(x: TensorLike, /) -> Tensor:
    """Count the bits that are zero, from the highest down to the first one.

    Parameters
    ----------
    x : tensor_like
        Integers.

    Returns
    -------
    Tensor
        Integers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.count_leading_zeros([0, 1, -1]).tolist()
    [32, 31, 0]
    """
    return _core.count_leading_zeros(x)


def signbit(x: TensorLike, /) -> Tensor:
    """Tell where the sign bit is set, also that of a zero or a NaN.

    Parameters
    ----------
    x : tensor_like
        Real numbers.

    Returns
    -------
    Tensor
        Truth values of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.signbit([1.0, -0.0]).tolist()
    [False, True]
    """
    dtype = _core.result_type(x)
    if dtype.kind == "float":
        return _core.less(_core.bitcast(x, f"s{dtype.bits}"), 0)
    return _core.less(x, 0)


def copysign(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the magnitude of the first with the sign of the second.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real numbers; their shapes broadcast.

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
    >>> nx.copysign([1.0, -2.0], -0.0).tolist()
    [-1.0, -2.0]
    """
    magnitude = _core.abs(x1)
    return _core.select(signbit(x2), _core.negate(magnitude), magnitude)
