"""Tensors from data, from nothing but numbers, and like other tensors."""

from __future__ import annotations

import math

from nxla import _core, tree
from nxla._values import as_tensor
from nxla.errors import ArgumentError, ShapeError
from nxla.placement import made_on
from nxla.vectors import spread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from nxla._core import Tensor
    from nxla._types import Axis, DeviceLike, DTypeLike, Names, Shape, TensorLike


def tensor(
    value: Any,
    /,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Make a tensor of some data, which it keeps whatever happens to the data.

    Parameters
    ----------
    value : tensor_like
        A number, a range, nested lists of numbers and arrays, an array (of numpy, or of anything
        that exports a buffer or DLPack, or has ``__array__`` as the columns and frames of pandas
        do), or a tensor, whose data stays where it is.
    dtype : dtype_like, optional
        The element type. By default integers are ``int32`` (wider if one does not fit), floats
        ``float32``, complex numbers ``complex64``; arrays and numpy's scalars keep theirs.
    names : sequence of (str or None), optional
        The names of the axes.
    device : Device or str, optional
        Where to put it; by default where the options in force say, else on the host.
    copy : bool, optional
        As for `asarray`.

    Raises
    ------
    ArgumentError
        If nested lists are ragged, nested too deep, or hold something else than numbers. If
        `copy` is False and the memory cannot be shared.
    DTypeError
        If there is no such dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tensor([[1, 2], [3, 4]])
    #nxla.Tensor<
      s32[2][2]
      [
        [1, 2],
        [3, 4]
      ]
    >
    >>> nx.tensor([1, 2], "bf16").dtype
    bf16
    """
    made = _traced(value, dtype)
    if made is None:
        made = _imported(value, dtype, copy, device)
    return made if names is None else _core.rename(made, names)


def _imported(
    value: Any, dtype: DTypeLike | None, copy: bool | None, device: DeviceLike | None
) -> Tensor:
    """Return data as a tensor on a device, in memory of its own if `copy` is True."""
    made = _placed(value, _core.tensor(value, dtype, copy), device)
    if copy and isinstance(value, _core.Tensor) and made.dtype == value.dtype:
        # The compiled function shares the memory of a tensor, which never changes but can be freed.
        return made if made.device != value.device else made.to_device(made.device, copy=True)
    return made


def _placed(given: Any, made: Tensor, device: DeviceLike | None) -> Tensor:
    """Put new data where it is wanted. What was a tensor before stays where it is."""
    if device is None and isinstance(given, _core.Tensor):
        return made
    return _core.place(made, device)


def asarray(
    obj: Any,
    /,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Make a tensor of some data, sharing its memory where nobody can write to it.

    Parameters
    ----------
    obj : tensor_like
        As for `tensor`; a traced value is given back.
    dtype : dtype_like, optional
        As for `tensor`.
    copy : bool, optional
        By default memory is copied unless nobody can write to it: that of tensors, of ``bytes``
        and of JAX's arrays is shared. (A read-only array of numpy is copied, since others may have
        the same memory for writing.) True always copies. False shares the memory of any array:
        the caller promises that nobody writes to it as long as the tensor, or anything computed
        from it, is in use.
    device : Device or str, optional
        As for `tensor`.

    Raises
    ------
    ArgumentError
        If `copy` is False and the memory cannot be shared.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> nx.asarray(np.arange(3.0)).dtype
    f64
    """
    traced = _traced(obj, dtype)
    if traced is not None:
        return traced
    if copy is not True and isinstance(obj, _core.Tensor) and (dtype is None or obj.dtype == dtype):
        return _placed(obj, obj, device)
    return _imported(obj, dtype, copy, device)


def _traced(value: Any, dtype: DTypeLike | None) -> Tensor | None:
    """Return a traced value, or lists with some, as one; None for data."""
    if not _core.is_tracing():
        return None
    # A named tuple is a container, which the compiled function refuses.
    is_list = isinstance(value, list | tuple) and not hasattr(value, "_fields")
    if is_list and any(isinstance(leaf, _core.Expr) for leaf in tree.leaves(value)):
        return _core.stack([asarray(one, dtype) for one in value])
    if not isinstance(value, _core.Expr):
        return None
    return as_tensor(value) if dtype is None else _core.astype(value, dtype)


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """Make a tensor of an array that exports DLPack.

    Parameters
    ----------
    x : object
        With a method ``__dlpack__``, in host memory.
    device, copy : optional
        As for `asarray`.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> nx.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    if not hasattr(x, "__dlpack__"):
        raise ArgumentError(f"from_dlpack: {type(x).__name__} has no __dlpack__")
    return asarray(x, device=device, copy=copy)


def full(
    shape: Shape,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Repeat one number over a shape.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    fill_value : number or scalar tensor
        The number.
    dtype : dtype_like, optional
        The element type; by default that of the number.
    names : sequence of (str or None), optional
        The names of the axes.
    device : Device or str, optional
        Where to make it; by default where the options in force say, else on the host.

    Raises
    ------
    ArgumentError
        If a size is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    return made_on(device, _core.full, shape, fill_value, dtype, names)


def zeros(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Repeat zero over a shape.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    dtype : dtype_like, optional
        The element type; ``float32`` by default.
    names : sequence of (str or None), optional
        The names of the axes.
    device : Device or str, optional
        Where to make it; by default where the options in force say, else on the host.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.zeros(2).tolist()
    [0.0, 0.0]
    """
    dtype = _core.f32 if dtype is None else dtype
    return made_on(device, _core.full, shape, 0, dtype, names)


def ones(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Repeat one over a shape.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    dtype : dtype_like, optional
        The element type; ``float32`` by default.
    names : sequence of (str or None), optional
        The names of the axes.
    device : Device or str, optional
        Where to make it; by default where the options in force say, else on the host.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.ones((1, 2), dtype="s32").tolist()
    [[1, 1]]
    """
    dtype = _core.f32 if dtype is None else dtype
    return made_on(device, _core.full, shape, 1, dtype, names)


def empty(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Make a tensor whose elements are to be assigned; they are zeros until then.

    Parameters and errors are the same as for `zeros`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype, names=names, device=device)


def empty_like(
    x: TensorLike, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Make a tensor of the shape of another whose elements are to be assigned; see `empty`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.empty_like([1.5, 2.5]).dtype
    f32
    """
    return full_like(x, 0, dtype, device=device)


def full_like(
    x: TensorLike,
    /,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Repeat one number over the shape of a tensor.

    Parameters
    ----------
    x : tensor_like
        Gives the shape, the names of the axes, the vectorized axes, and the dtype if none is asked
        for.
    fill_value : number or scalar tensor
        The number.
    dtype : dtype_like, optional
        The element type.
    device : Device or str, optional
        Where to make it; by default where the options in force say, else on the host.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.full_like([1, 2], 9).tolist()
    [9, 9]
    """
    x = as_tensor(x)
    dtype = x.dtype if dtype is None else dtype
    filled = made_on(_beside(x, device), _core.full, x.shape, fill_value, dtype, x.names)
    return _core.align_vectors([filled, x], False, True)[0] if x.vectorized_axes else filled


def _beside(x: Tensor, device: DeviceLike | None) -> DeviceLike | None:
    """Return where something like a tensor is made: where it lives, unless told otherwise."""
    if device is not None or not isinstance(x, _core.Tensor) or _core.is_tracing():
        return device
    options = _core.get_default_options()
    if x.device.platform == "host" or "compiler" in options or "device" in options:
        return None
    return x.device


def zeros_like(
    x: TensorLike, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Repeat zero over the shape of a tensor, in its dtype unless another is asked for.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.zeros_like([1.5, 2.5]).tolist()
    [0.0, 0.0]
    """
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(
    x: TensorLike, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Repeat one over the shape of a tensor, in its dtype unless another is asked for.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.ones_like([1.5, 2.5], dtype=nx.int8).tolist()
    [1, 1]
    """
    return full_like(x, 1, dtype=dtype, device=device)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Count from a start up to, and without, a stop.

    Parameters
    ----------
    start, stop : int or float
        With one of them only, it is the stop, and the start is zero.
    step : int or float
        The distance; negative to count down.
    dtype : dtype_like, optional
        By default ``int32`` if all three are integers, else ``float32``.
    device : Device or str, optional
        Where to make it; by default where the options in force say, else on the host.

    Returns
    -------
    Tensor
        With one axis of size ``ceil((stop - start) / step)``, or 0 if that is negative.

    Raises
    ------
    ArgumentError
        If the step is zero.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.arange(3).tolist(), nx.arange(5, 0, -2).tolist(), nx.arange(0, 1, 0.25).tolist()
    ([0, 1, 2], [5, 3, 1], [0.0, 0.25, 0.5, 0.75])
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ArgumentError("arange: step must not be zero")
    # -(-a // b) rounds up, exactly so for integers of any size. A step like 1 / 3 is a little less
    # than that, and would fit once more; the quotient is rounded.
    whole = all(hasattr(number, "__index__") for number in (start, stop, step))
    steps = -((start - stop) // step) if whole else math.ceil((stop - start) / step)
    count = max(int(steps), 0)
    if dtype is None:
        dtype = _core.s32 if whole else _core.f32
    return made_on(device, _counted, start, step, count, dtype)


def _counted(start: float, step: float, count: int, dtype: DTypeLike) -> Tensor:
    counted = _core.iota((count,), None, dtype)
    if counted.dtype in (_core.f16, _core.bf16, _core.f8_e5m2, _core.f8_e4m3fn):
        # These have neither all positions nor the digits of a step that is taken many times.
        counted = _core.iota((count,), None, _core.f32)
    if step != 1:
        counted = _core.multiply(counted, step)
    if start != 0:
        counted = _core.add(counted, start)
    return _core.astype(counted, dtype)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    /,
    num: int,
    endpoint: bool = True,
    *,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Spread numbers evenly from a start to a stop.

    Parameters
    ----------
    start, stop : number or tensor_like
        The first number, and the last one, to the bit, or the one after it. Tensors of one shape
        give as many spreads, along a new last axis.
    num : int
        How many.
    endpoint : bool
        If True, `stop` is the last number.
    dtype : dtype_like, optional
        A float or complex dtype; by default that of the ends, and ``float32`` (or ``complex64``)
        for plain numbers.
    name : str, optional
        The name of the axis.
    device : Device or str, optional
        Where to make it; by default where the options in force say, else on the host.

    Raises
    ------
    DTypeError
        If the dtype is neither a float nor complex.
    ShapeError
        If the shapes of `start` and `stop` differ.
    ArgumentError
        If `num` is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linspace(0.0, 1.0, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return made_on(device, _core.linspace, start, stop, num, endpoint, dtype, name)


def iota(
    shape: Shape,
    *,
    axis: Axis | None = None,
    dtype: DTypeLike = _core.s32,
    names: Names | None = None,
    vectorized_axes: Sequence[tuple[str, int]] = (),
    device: DeviceLike | None = None,
) -> Tensor:
    """Count 0, 1, 2… along an axis, or through all elements.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    axis : int or str, optional
        The axis to count along; all elements in row-major order without it.
    dtype : dtype_like
        The element type.
    names : sequence of (str or None), optional
        The names of the axes.
    vectorized_axes : sequence of (str, int), optional
        Names and sizes of vectorized axes; all entries are the same.
    device : Device or str, optional
        Where to make it; by default where the options in force say, else on the host.

    Raises
    ------
    ShapeError
        If the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.iota((2, 2)).tolist(), nx.iota((2, 2), axis=0).tolist()
    ([[0, 1], [2, 3]], [[0, 0], [1, 1]])
    """
    return spread(made_on(device, _core.iota, shape, axis, dtype, names), vectorized_axes)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    vectorized_axes: Sequence[tuple[str, int]] = (),
    device: DeviceLike | None = None,
) -> Tensor:
    """Make a matrix of ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        The sizes; as many columns as rows by default.
    k : int
        How many columns to the right of the main diagonal; negative for the left.
    dtype : dtype_like, optional
        The element type; ``float32`` by default.
    names : sequence of (str or None), optional
        The names of the axes.
    vectorized_axes : sequence of (str, int), optional
        Names and sizes of vectorized axes; all entries are the same.
    device : Device or str, optional
        Where to make it; by default where the options in force say, else on the host.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.eye(2).tolist(), nx.eye(2, 3, k=1, dtype=nx.int32).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0, 1, 0], [0, 0, 1]])
    """
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    dtype = _core.f32 if dtype is None else dtype
    return spread(made_on(device, _diagonal, shape, k, dtype, names), vectorized_axes)


def _diagonal(shape: tuple[int, int], k: int, dtype: DTypeLike, names: Names | None) -> Tensor:
    if k == 0:
        return _core.eye(shape, dtype, names)
    k = max(-shape[0], min(k, shape[1]))  # Diagonals further out are empty as well.
    rows = _core.add(_core.iota(shape, 0, _core.s32, names), k)
    return _core.astype(_core.equal(rows, _core.iota(shape, 1)), dtype)


def tri(n_rows: int, n_cols: int, /, k: int = 0, *, device: DeviceLike | None = None) -> Tensor:
    """Make a mask that is true on and below a diagonal.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.astype(nx.tri(2, 3), nx.int32).tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    return made_on(device, _core.tri, n_rows, n_cols, k)


def meshgrid(*arrays: TensorLike, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Spread vectors over a common grid, one axis for each.

    Parameters
    ----------
    *arrays : tensor_like
        Vectors.
    indexing : {"xy", "ij"}
        Whether the first vector runs along the second axis (``"xy"``, as in pictures) or the
        first (``"ij"``, as in matrices).

    Returns
    -------
    tuple of Tensor
        One for each vector, all of the grid's shape.

    Raises
    ------
    ShapeError
        If an array is no vector.

    Examples
    --------
    >>> import nxla as nx
    >>> [grid.tolist() for grid in nx.meshgrid([1, 2], [3, 4])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}')
    vectors = [as_tensor(x) for x in arrays]
    for position, vector in enumerate(vectors):
        if vector.ndim != 1:
            raise ShapeError(f"meshgrid: array {position} has shape {vector.shape}, not one axis")
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    shape = [0] * len(axes)
    for axis, vector in zip(axes, vectors, strict=True):
        shape[axis] = vector.shape[0]
    pairs = zip(axes, vectors, strict=True)
    return tuple(_core.broadcast_to(vector, shape, axes=[axis]) for axis, vector in pairs)
