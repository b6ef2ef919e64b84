"""Sliding windows and running totals."""

from __future__ import annotations

from nxla import _core
from nxla._values import as_tensor
from nxla.errors import ArgumentError
from nxla.ops.reduce import _traced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nxla._core import Tensor
    from nxla._types import Axis, DTypeLike, Padding, PerAxis, TensorLike


def window_sum(
    x: TensorLike,
    dimensions: Sequence[int],
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Add up the elements of each window.

    Parameters
    ----------
    x : tensor_like
        Numbers.
    dimensions : sequence of int
        The size of the window along each axis.
    strides : int or sequence of int, optional
        How far a window is from the next; 1 by default.
    padding : {"valid", "same"} or sequence of (int, int)
        Neutral elements around `x`: none, as many as keep the shape at stride 1, or as many as
        given before and after each axis.
    dilations : int or sequence of int, optional
        How far the elements of a window are apart; 1 by default.

    Returns
    -------
    Tensor
        One element for each window.

    Raises
    ------
    ShapeError
        If there is not one size for each axis, or no window fits.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_sum([1, 2, 3, 4], (2,)).tolist()
    [3, 5, 7]
    >>> nx.window_sum([1, 2, 3, 4], (2,), strides=2, padding="same").tolist()
    [3, 7]
    """
    return _core.window_sum(x, dimensions, strides, padding, dilations)


def window_product(
    x: TensorLike,
    dimensions: Sequence[int],
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Multiply the elements of each window. Parameters and errors are those of `window_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_product([1, 2, 3, 4], (2,)).tolist()
    [2, 6, 12]
    """
    return _core.window_product(x, dimensions, strides, padding, dilations)


def window_max(
    x: TensorLike,
    dimensions: Sequence[int],
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Find the largest element of each window. Parameters and errors are those of `window_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_max([1, 4, 2, 3], (2,)).tolist()
    [4, 4, 3]
    """
    return _core.window_max(x, dimensions, strides, padding, dilations)


def window_min(
    x: TensorLike,
    dimensions: Sequence[int],
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Find the smallest element of each window. Parameters and errors are those of `window_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_min([1, 4, 2, 3], (2,)).tolist()
    [1, 2, 2]
    """
    return _core.window_min(x, dimensions, strides, padding, dilations)


def window_mean(
    x: TensorLike,
    dimensions: Sequence[int],
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Return the mean of each window; padding counts as zeros.

    Parameters and errors are those of `window_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_mean([1, 2, 3, 4], (2,)).tolist()
    [1.5, 2.5, 3.5]
    """
    return _core.window_mean(x, dimensions, strides, padding, dilations)


def window_reduce(
    x: TensorLike,
    initial: TensorLike,
    function: Callable[[Tensor, Tensor], TensorLike],
    dimensions: Sequence[int],
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Fold each window with a function of one's own.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    initial : number or scalar tensor
        The accumulator at the start of each window, and what padding consists of.
    function : callable
        Takes ``(element, accumulator)``, both scalars, and gives the new accumulator.
    dimensions, strides, padding, dilations
        As for `window_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_reduce([1, 2, 3], 0, lambda element, total: total + element, (2,)).tolist()
    [3, 5]
    """

    def fold(x: Tensor, initial: Tensor) -> Tensor:
        return _core.window_reduce(x, initial, function, dimensions, strides, padding, dilations)

    return _traced(fold, "window_reduce", x, initial)


def window_scatter_max(
    x: TensorLike,
    source: TensorLike,
    initial: TensorLike,
    dimensions: Sequence[int],
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
) -> Tensor:
    """Add each element of a source where the largest element of its window is.

    It is the gradient of `window_max`.

    Parameters
    ----------
    x : tensor_like
        Where the windows are.
    source : tensor_like
        One element for each window.
    initial : number or scalar tensor
        What the result holds before anything is added.
    dimensions, strides, padding
        As for `window_sum`.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Raises
    ------
    ShapeError
        If the source has not one element for each window.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_scatter_max([1, 4, 2, 3], [10, 20], 0, (2,), strides=2).tolist()
    [0, 10, 0, 20]
    """
    return _core.window_scatter_max(x, source, initial, dimensions, strides, padding)


def window_scatter_min(
    x: TensorLike,
    source: TensorLike,
    initial: TensorLike,
    dimensions: Sequence[int],
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
) -> Tensor:
    """Add each element of a source where the smallest element of its window is.

    Parameters and errors are those of `window_scatter_max`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_scatter_min([1, 4, 2, 3], [10, 20], 0, (2,), strides=2).tolist()
    [10, 0, 20, 0]
    """
    return _core.window_scatter_min(x, source, initial, dimensions, strides, padding)


def cumulative_sum(
    x: TensorLike,
    /,
    *,
    axis: Axis | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Return the sum of all elements up to and including each one.

    Parameters
    ----------
    x : tensor_like
        Numbers, with at least one axis.
    axis : int or str, optional
        The axis; may be left out if there is only one.
    dtype : dtype_like, optional
        The dtype to add in, and of the result; that of `x` by default.
    include_initial : bool
        Whether the sum of no element, zero, comes first; the axis is longer by one then.
    reverse : bool
        Whether to add from the end.

    Raises
    ------
    ArgumentError
        If there are several axes, and none is given.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cumulative_sum([1, 2, 3]).tolist(), nx.cumulative_sum([1, 2, 3], reverse=True).tolist()
    ([1, 3, 6], [6, 5, 3])
    """
    x, axis = _operand("cumulative_sum", x, axis, dtype)
    return _with_initial(_core.cumulative_sum(x, axis, reverse), 0, axis, include_initial, reverse)


def cumulative_prod(
    x: TensorLike,
    /,
    *,
    axis: Axis | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Return the product of all elements up to and including each one.

    Parameters and errors are those of `cumulative_sum`; the product of no element is one.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cumulative_prod([1, 2, 3], include_initial=True).tolist()
    [1, 1, 2, 6]
    """
    x, axis = _operand("cumulative_prod", x, axis, dtype)
    result = _core.cumulative_product(x, axis, reverse)
    return _with_initial(result, 1, axis, include_initial, reverse)


def cumulative_max(x: TensorLike, /, *, axis: Axis | None = None, reverse: bool = False) -> Tensor:
    """Return the largest element up to and including each one.

    Parameters and errors are those of `cumulative_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cumulative_max([1, 3, 2]).tolist()
    [1, 3, 3]
    """
    x, axis = _operand("cumulative_max", x, axis, None)
    return _core.cumulative_max(x, axis, reverse)


def cumulative_min(x: TensorLike, /, *, axis: Axis | None = None, reverse: bool = False) -> Tensor:
    """Return the smallest element up to and including each one.

    Parameters and errors are those of `cumulative_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cumulative_min([3, 1, 2]).tolist()
    [3, 1, 1]
    """
    x, axis = _operand("cumulative_min", x, axis, None)
    return _core.cumulative_min(x, axis, reverse)


def _operand(
    name: str, x: TensorLike, axis: Axis | None, dtype: DTypeLike | None
) -> tuple[Tensor, Axis]:
    """Return the operand in its dtype, and the axis, which a vector may leave out."""
    x = _core.as_type(x, dtype) if dtype is not None else as_tensor(x)
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"{name}: axis must be given, x has {x.ndim} axes")
        axis = 0
    return x, axis


def _with_initial(result: Tensor, value: int, axis: Axis, include: bool, reverse: bool) -> Tensor:
    """Put the value of no elements before the others, or behind them if they count from the end."""
    if not include:
        return result
    position = result.names.index(axis) if isinstance(axis, str) else axis
    config = [(0, 0, 0)] * result.ndim
    config[position] = (0, 1, 0) if reverse else (1, 0, 0)
    return _core.pad(result, value, config)
