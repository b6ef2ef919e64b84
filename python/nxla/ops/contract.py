"""Products that are summed along axes: matrix products and convolutions."""

from __future__ import annotations

import string

from nxla import _core, _hints
from nxla._values import as_list, as_tensors, call_as, index_list, to_index
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import TensorLike


def tensordot(
    x1: TensorLike,
    x2: TensorLike,
    /,
    axes: int | tuple[int | Sequence[int], int | Sequence[int]] = 2,
) -> Tensor:
    """Sum products over the last axes of one operand and the first axes of the other.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands.
    axes : int or pair of int or sequence of int
        The number of contracted axes, or the axes of each operand.

    Returns
    -------
    Tensor
        A tensor of the promoted dtype. The axes of `x1` that are not contracted precede the other
        axes of `x2`.

    Raises
    ------
    ArgumentError
        If `axes` is neither a pair nor a number from 0 to the smaller rank.
    ShapeError
        If paired axes differ in size.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]]).item()
    5
    """
    count = to_index(axes)
    if count is None:
        if not isinstance(axes, tuple | list) or len(axes) != 2:
            raise ArgumentError(
                f"tensordot: axes: must be an int, or the axes of each operand; got {axes!r}"
            )
        left, right = (index_list("tensordot", "axes", each) for each in axes)
        return call_as("tensordot", _core.dot, x1, x2, x1_contract=left, x2_contract=right)
    x1, x2 = as_tensors("tensordot", x1, x2)
    rank = min(x1.ndim, x2.ndim)
    if not 0 <= count <= rank:
        raise ArgumentError(f"tensordot: axes: must be from 0 to {rank}; got {count}")
    last, first = list(range(-count, 0)), list(range(count))
    return call_as("tensordot", _core.dot, x1, x2, x1_contract=last, x2_contract=first)


def vdot(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the sum of the products of all elements; the first operand is conjugated.

    `nxla.vecdot` sums along one axis.

    Parameters
    ----------
    x1, x2 : tensor_like
        Tensors with the same number of elements, in any shapes.

    Returns
    -------
    Tensor
        A scalar.

    Raises
    ------
    ShapeError
        If the numbers of elements differ.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.vdot([[1, 2], [3, 4]], [1, 10, 100, 1000]).item()
    4321
    """
    x1, x2 = as_tensors("vdot", x1, x2)
    return call_as("vdot", _core.vecdot, _core.flatten(x1), _core.flatten(x2))


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    optimize: bool | str | Sequence[Any] = True,
) -> Tensor:
    """Sum products over labeled axes, in Einstein's notation.

    Parameters
    ----------
    subscripts : str
        A letter for each axis of each operand, with commas between operands, and the letters of
        the result after an arrow: ``"ij,jk->ik"``. Letters that the result omits are summed. A
        letter that occurs twice in an operand selects its diagonal. ``...`` stands for axes
        without letters, which broadcast. Without an arrow, the result has the axes without
        letters and then, in alphabetical order, the letters that occur once. Lists of integers
        after the operands may replace letters: ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.
    *operands : tensor_like
        Tensors; their dtypes promote. Axes of size 1 broadcast.
    optimize : bool, str or sequence
        The order of contractions of more than two operands. True uses the package `opt_einsum` if
        it is installed, or else contracts the pair first that frees the most memory; False
        contracts from left to right. A string is a strategy of `opt_einsum`, which must be
        installed. A sequence of tuples of positions is a path as `opt_einsum.contract_path` and
        `numpy.einsum_path` return it.

    Returns
    -------
    Tensor
        The result, with the axes in the subscripts.

    Raises
    ------
    ArgumentError
        If the subscripts are invalid or do not match the operands, or a path is invalid; if a
        strategy is named and `opt_einsum` is not installed.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.tensor([[1, 2], [3, 4]])
    >>> nx.einsum("ij,jk->ik", x, x).tolist()
    [[7, 10], [15, 22]]
    >>> nx.einsum("ii", x).item(), nx.einsum("...j->...", x).tolist()
    (5, [3, 7])
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _to_subscripts((subscripts, *operands))
    tensors = as_tensors("einsum", *operands)
    return _core.sum_of_products(subscripts, tensors, _path(subscripts, tensors, optimize))


def _to_subscripts(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return subscripts and operands for operands that alternate with lists of ints."""
    operands, lists, output = given[:-1:2], given[1::2], given[-1]
    if len(given) % 2 == 0:
        operands = given[::2]
    terms = [_letters(one) for one in lists]
    if len(given) % 2 == 0:
        return ",".join(terms), operands
    return f"{','.join(terms)}->{_letters(output)}", operands


def _letters(labels: Any) -> str:
    letters = ""
    for label in as_list("einsum", "labels", labels):
        number = to_index(label)
        if label is Ellipsis:
            letters += "..."
        elif number is not None and 0 <= number < len(string.ascii_letters):
            # The letters have the order of the numbers.
            letters += (string.ascii_uppercase + string.ascii_lowercase)[number]
        else:
            raise ArgumentError(f"einsum: labels: must be ints from 0 to 51; got {label!r}")
    return letters


def _path(
    subscripts: str, tensors: list[Tensor], optimize: bool | str | Sequence[Any]
) -> list[list[int]] | None:
    """Return the order of contractions as positions of operands; None lets nxla choose."""
    if not isinstance(optimize, bool | str):
        steps = as_list("einsum", "optimize", optimize)
        return [as_list("einsum", "optimize", step) for step in steps if not isinstance(step, str)]
    if len(tensors) < 3:
        return None
    if optimize is False:
        # The result is appended; the next operand is always the first.
        last = len(tensors) - 1
        return [[0, 1], *([0, position] for position in range(last - 1, 0, -1))]
    try:
        import opt_einsum
    except ModuleNotFoundError:
        if optimize is True:
            return None
        raise ArgumentError(
            f"einsum: optimize: {optimize!r} requires the package opt_einsum, which is not "
            "installed; install it, or pass True"
        ) from None
    try:
        shapes = [tensor.shape for tensor in tensors]
        strategy = "auto" if optimize is True else optimize
        path = opt_einsum.contract_path(subscripts, *shapes, shapes=True, optimize=strategy)[0]
    except (ValueError, KeyError) as cause:
        if optimize is True:
            # Type inference reports invalid subscripts, with the types of the operands.
            return None
        message = str(cause.args[0] if cause.args else cause).rstrip(".")
        raise ArgumentError(f"einsum: optimize: {message}; got {optimize!r}") from cause
    return [list(step) for step in path]


_hints.install(globals())
