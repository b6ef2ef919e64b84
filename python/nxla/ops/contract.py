"""Products that add up along axes: matrix products and convolutions."""

from __future__ import annotations

from nxla import _core
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from nxla._core import Tensor
    from nxla._types import Axes, Axis, Padding, PerAxis, TensorLike


def matmul(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Multiply matrices; the operator ``@``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Matrices in the last two axes; the axes before broadcast. A vector counts as a row on the
        left and as a column on the right, and that axis is dropped from the result.

    Raises
    ------
    ShapeError
        If the columns of `x1` are not as many as the rows of `x2`, if other axes do not broadcast,
        or if an operand is a scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.matmul([[1, 2], [3, 4]], [5, 6]).tolist()
    [17, 39]
    """
    return _core.matmul(x1, x2)


def dot(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    x1_contract: Axes | None = None,
    x2_contract: Axes | None = None,
    x1_batch: Axes | None = None,
    x2_batch: Axes | None = None,
) -> Tensor:
    """Multiply and add up along given axes.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands.
    x1_contract, x2_contract : int or str, or a sequence, optional
        Axes that are added up along, paired in order. Without any axes given, the last axis of
        `x1` and the last but one of `x2` (the last one of a vector), and a scalar multiplies.
    x1_batch, x2_batch : int or str, or a sequence, optional
        Axes that are kept in step; the first ones of both.

    Returns
    -------
    Tensor
        The batch axes, then the other axes of `x1`, then those of `x2`.

    Raises
    ------
    ShapeError
        If paired axes differ in size.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.dot([1, 2, 3], [4, 5, 6]).item()
    32
    >>> nx.dot(nx.ones((5, 2, 3)), nx.ones((5, 3)), x1_contract=2, x2_contract=1,
    ...        x1_batch=0, x2_batch=0).shape
    (5, 2)
    """
    return _core.dot(x1, x2, x1_contract, x2_contract, x1_batch, x2_batch)


def tensordot(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
) -> Tensor:
    """Multiply and add up along the last axes of one and the first of the other, or given ones.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands.
    axes : int or (sequence of int, sequence of int)
        How many axes, or which of each.

    Raises
    ------
    ShapeError
        If paired axes differ in size.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]]).item()
    5
    """
    if not isinstance(axes, int):
        left, right = axes
        return _core.dot(x1, x2, list(left), list(right))
    if axes < 0:
        raise ArgumentError(f"tensordot: axes must not be negative, got {axes}")
    return _core.dot(x1, x2, list(range(-axes, 0)), list(range(axes)))


def vecdot(x1: TensorLike, x2: TensorLike, /, *, axis: Axis = -1) -> Tensor:
    """Multiply and add up along one axis of both; the other axes broadcast.

    Complex numbers of `x1` are conjugated.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.vecdot([[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """
    if _core.result_type(x1).kind == "complex":
        x1 = _core.conjugate(x1)
    return _core.sum(_core.multiply(x1, x2), axis)


def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Multiply every element of one with every element of the other.

    Returns
    -------
    Tensor
        A row for each element of `x1`, a column for each of `x2`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    return _core.outer(x1, x2)


def conv(
    x: TensorLike,
    kernel: TensorLike,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    input_dilation: PerAxis | None = None,
    kernel_dilation: PerAxis | None = None,
    feature_groups: int = 1,
    batch_groups: int = 1,
    input_permutation: Axes | None = None,
    kernel_permutation: Axes | None = None,
    output_permutation: Axes | None = None,
) -> Tensor:
    """Slide a kernel over an input, multiply, and add up: a convolution as neural networks use it.

    The kernel is not turned around (it is a cross-correlation).

    Parameters
    ----------
    x : tensor_like
        Axes: batch, channels, then the spatial ones.
    kernel : tensor_like
        Axes: output channels, input channels, then the spatial ones.
    strides : int or sequence of int, optional
        How far the kernel moves along each spatial axis; 1 by default.
    padding : {"valid", "same"} or sequence of (int, int)
        Zeros around the spatial axes.
    input_dilation, kernel_dilation : int or sequence of int, optional
        How far elements are apart, zeros in between; 1 by default.
    feature_groups, batch_groups : int
        Groups of channels, or of the batch, that are convolved separately.
    input_permutation, kernel_permutation, output_permutation : sequence of int or str, optional
        Orders of axes for other layouts: where the axes named above are found.

    Returns
    -------
    Tensor
        Axes: batch, output channels, then the spatial ones. Integers give ``float32``.

    Raises
    ------
    ShapeError
        If there are fewer than three axes, if channels do not match, or if nothing is left.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.reshape(nx.arange(5), (1, 1, 5))
    >>> nx.conv(x, [[[1, 0, -1]]]).tolist()
    [[[-2.0, -2.0, -2.0]]]
    """
    return _core.conv(
        x,
        kernel,
        strides,
        padding,
        input_dilation,
        kernel_dilation,
        feature_groups,
        batch_groups,
        input_permutation,
        kernel_permutation,
        output_permutation,
    )
