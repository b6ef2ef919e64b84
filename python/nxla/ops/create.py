"""Creation of tensors: from data, from scalars, and like other tensors."""

from __future__ import annotations

import math

from nxla import _core, _hints, tree
from nxla._values import (
    as_bool,
    as_count,
    as_int,
    as_number,
    as_tensor,
    as_tensors,
    call_as,
    is_inexact,
    kind_of,
)
from nxla.errors import ArgumentError, ShapeError
from nxla.placement import made_on, placed_on
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
    """Return a tensor of some data; later changes of the data do not affect it.

    Parameters
    ----------
    value : tensor_like
        A number, a range, nested lists of numbers and arrays, an array (of NumPy, or of another
        library that exports a buffer or DLPack or has ``__array__``), or a tensor, which stays
        on its device.
    dtype : dtype_like, optional
        The element type. By default integers are ``int32`` (wider if necessary), floats
        ``float32`` and complex numbers ``complex64``; arrays and NumPy scalars keep their dtype,
        and numbers in a list with arrays promote as operands do.
    names : sequence of (str or None), optional
        The names of the axes.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.
    copy : bool, optional
        As for `asarray`.

    Returns
    -------
    Tensor
        The data as a tensor.

    Raises
    ------
    ArgumentError
        If nested lists are ragged, nested too deep, or contain other values than numbers; if
        `copy` is False and the memory cannot be shared.
    DTypeError
        If the dtype does not exist.

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
    made = _as_traced(value, dtype)
    if made is None:
        made = _import_data("tensor", value, dtype, copy, device)
    return made if names is None else call_as("tensor", _core.rename, made, names)


def _import_data(
    op: str, value: Any, dtype: DTypeLike | None, copy: bool | None, device: DeviceLike | None
) -> Tensor:
    """Return data as a tensor on a device, in new memory if `copy` is True."""
    made = _place_data(op, value, _core.tensor(value, dtype, copy), device)
    if copy and isinstance(value, _core.Tensor) and made.dtype == value.dtype:
        # The compiled function shares the memory of a tensor, which is immutable but can be
        # freed.
        return made if made.device != value.device else made.to_device(made.device, copy=True)
    return made


def _place_data(op: str, given: Any, made: Tensor, device: DeviceLike | None) -> Tensor:
    """Place new data on a device. A tensor stays on its device by default."""
    if device is None and isinstance(given, _core.Tensor):
        return made
    return placed_on(op, device, made)


def asarray(
    obj: Any,
    /,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Return a tensor of some data, sharing its memory if it is immutable.

    Parameters
    ----------
    obj : tensor_like
        As for `tensor`; a traced value is returned unchanged.
    dtype : dtype_like, optional
        As for `tensor`.
    copy : bool, optional
        By default the memory of tensors, of JAX arrays and of arrays over ``bytes`` is shared,
        because it is immutable, and other memory is copied. Another read-only NumPy array is
        copied, because other code may write to its memory. True always copies. False shares the
        memory of any array, and the caller promises not to write to it while the tensor, or
        anything computed from it, is in use.
    device : Device or str, optional
        As for `tensor`.

    Returns
    -------
    Tensor
        The data as a tensor, or `obj` itself if it is one with this dtype.

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
    traced = _as_traced(obj, dtype)
    if traced is not None:
        return traced
    if copy is not True and isinstance(obj, _core.Tensor) and (dtype is None or obj.dtype == dtype):
        return _place_data("asarray", obj, obj, device)
    return _import_data("asarray", obj, dtype, copy, device)


def _as_traced(value: Any, dtype: DTypeLike | None) -> Tensor | None:
    """Return a traced value, or a list with traced values, as one traced value; None for data."""
    if not _core.is_tracing():
        return None
    # A named tuple is a container, which the compiled function rejects.
    is_list = isinstance(value, list | tuple) and not hasattr(value, "_fields")
    leaves = tree.leaves(value) if is_list else []
    if any(isinstance(leaf, _core.Expr) for leaf in leaves):
        if dtype is None:
            dtype = _core.result_type(*as_tensors("tensor", *leaves))
        return _core.stack([asarray(one, dtype) for one in value])
    if not isinstance(value, _core.Expr):
        return None
    return as_tensor(value) if dtype is None else _core.astype(value, dtype)


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor of an array that exports DLPack.

    Parameters
    ----------
    x : object
        An object with the method ``__dlpack__``, in host memory or on a CUDA device. Host arrays
        may have any strides, and are copied unless they are in row-major order; arrays on a device
        must be in row-major order.
    device : Device or str, optional
        The device; by default the device of the current options, or the device of the data.
    copy : bool, optional
        As for `asarray`. A copy of data on a CUDA device is made on the device.

    Returns
    -------
    Tensor
        A tensor with the shape and the dtype of the array.

    Raises
    ------
    ArgumentError
        If the data is on another device, is on a CUDA device and not in row-major order, or cannot
        be shared although `copy` is False.
    OptionError
        If the data is on a CUDA device and no plugin for CUDA is installed.

    Notes
    -----
    The function waits for the writes to the data that are queued in the current stream of the
    library of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> import numpy as np
    >>> nx.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    if not hasattr(x, "__dlpack__"):
        raise ArgumentError(f"from_dlpack: x: must have the method __dlpack__; got {kind_of(x)}")
    return call_as("from_dlpack", asarray, x, device=device, copy=copy)


def full(
    shape: Shape,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return a tensor filled with one number.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    fill_value : number or scalar tensor
        The number.
    dtype : dtype_like, optional
        The element type; by default the dtype of the number.
    names : sequence of (str or None), optional
        The names of the axes.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.

    Returns
    -------
    Tensor
        A tensor with this shape, whose elements are equal.

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
    return made_on("full", device, _core.full, shape, fill_value, dtype, names)


def _refuse_sizes(function: str, shape: Shape, dtype: DTypeLike | None) -> None:
    """Raise `ArgumentError` if a size is passed as the dtype, as in ``torch.zeros(2, 3)``."""
    if isinstance(dtype, int):
        raise ArgumentError(
            f"{function}: shape: must be one argument, as in nx.{function}(({shape}, {dtype})); "
            f"got {shape} and {dtype}"
        )


def zeros(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return a tensor of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    dtype : dtype_like, optional
        The element type; ``float32`` by default.
    names : sequence of (str or None), optional
        The names of the axes.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.

    Returns
    -------
    Tensor
        A tensor with this shape.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.zeros(2).tolist()
    [0.0, 0.0]
    """
    _refuse_sizes("zeros", shape, dtype)
    dtype = _core.f32 if dtype is None else dtype
    return made_on("zeros", device, _core.full, shape, 0, dtype, names)


def ones(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return a tensor of ones.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    dtype : dtype_like, optional
        The element type; ``float32`` by default.
    names : sequence of (str or None), optional
        The names of the axes.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.

    Returns
    -------
    Tensor
        A tensor with this shape.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.ones((1, 2), dtype="s32").tolist()
    [[1, 1]]
    """
    _refuse_sizes("ones", shape, dtype)
    dtype = _core.f32 if dtype is None else dtype
    return made_on("ones", device, _core.full, shape, 1, dtype, names)


def empty(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return a tensor of zeros, whose elements are meant to be assigned.

    Parameters and errors are the same as for `zeros`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.empty((2, 3)).shape
    (2, 3)
    """
    _refuse_sizes("empty", shape, dtype)
    return call_as("empty", zeros, shape, dtype, names=names, device=device)


def empty_like(
    x: TensorLike, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Return a tensor of zeros with the shape of another tensor; see `empty` and `zeros_like`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.empty_like([1.5, 2.5]).dtype
    f32
    """
    return call_as("empty_like", full_like, x, 0, dtype, device=device)


def full_like(
    x: TensorLike,
    /,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return a tensor filled with one number, with the shape of another tensor.

    Parameters
    ----------
    x : tensor_like
        The tensor whose shape, axis names and vectorized axes are used.
    fill_value : number or scalar tensor
        The number.
    dtype : dtype_like, optional
        The element type; by default the dtype of `x`.
    device : Device or str, optional
        The device; by default the device of the current options, or the device of `x`.

    Returns
    -------
    Tensor
        A tensor with the shape of `x`, and by default its dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.full_like([1, 2], 9).tolist()
    [9, 9]
    """
    x = as_tensor(x)
    dtype = x.dtype if dtype is None else dtype
    arguments = (x.shape, fill_value, dtype, x.names)
    filled = made_on(
        "full_like", _device_like(x, device), call_as, "full_like", _core.full, *arguments
    )
    return _core.align_vectors([filled, x], False, True)[0] if x.vectorized_axes else filled


def _device_like(x: Tensor, device: DeviceLike | None) -> DeviceLike | None:
    """Return the device of a new tensor like another one, by default its device."""
    if device is not None or not isinstance(x, _core.Tensor) or _core.is_tracing():
        return device
    options = _core.get_default_options()
    if x.device.platform == "host" or "compiler" in options or "device" in options:
        return None
    return x.device


def zeros_like(
    x: TensorLike, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Return a tensor of zeros with the shape of another tensor, and by default its dtype.

    Parameters are the same as for `full_like`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.zeros_like([1.5, 2.5]).tolist()
    [0.0, 0.0]
    """
    return call_as("zeros_like", full_like, x, 0, dtype, device=device)


def ones_like(
    x: TensorLike, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Return a tensor of ones with the shape of another tensor, and by default its dtype.

    Parameters are the same as for `full_like`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.ones_like([1.5, 2.5], dtype=nx.int8).tolist()
    [1, 1]
    """
    return call_as("ones_like", full_like, x, 1, dtype, device=device)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return evenly spaced numbers from a start to a stop, excluding the stop.

    Parameters
    ----------
    start, stop : int or float
        The bounds. A single argument is the stop, and the start is zero.
    step : int or float
        The distance; negative to count down.
    dtype : dtype_like, optional
        By default ``int32`` if all three are integers, else ``float32``.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.

    Returns
    -------
    Tensor
        A vector of size ``ceil((stop - start) / step)``, or 0 if that is negative.

    Raises
    ------
    ArgumentError
        If the step is zero, or an argument is not a finite real number.
    OverflowError
        If an integer does not fit the default dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.arange(3).tolist(), nx.arange(5, 0, -2).tolist(), nx.arange(0, 1, 0.25).tolist()
    ([0, 1, 2], [5, 3, 1], [0.0, 0.25, 0.5, 0.75])
    """
    if stop is None:
        start, stop = 0, start
    start = as_number("arange", "start", start)
    stop = as_number("arange", "stop", stop)
    step = as_number("arange", "step", step)
    if step == 0:
        raise ArgumentError("arange: step: must not be zero")
    # -(-a // b) rounds up exactly for integers of any size. A float step such as 1 / 3 is
    # slightly too small and would fit once more, so the quotient is rounded.
    whole = all(hasattr(number, "__index__") for number in (start, stop, step))
    steps = -((start - stop) // step) if whole else (stop - start) / step
    if not (whole or math.isfinite(steps)):
        raise ArgumentError(
            f"arange: start, stop, step: must be finite; got {start}, {stop} and {step}"
        )
    count = max(int(steps) if whole else math.ceil(steps), 0)
    if dtype is None:
        dtype = _core.s32 if whole else _core.f32
        ends = (start, start + (count - 1) * step) if whole and count > 0 else ()
        for number in ends:
            if not -(2**31) <= number < 2**31:
                raise OverflowError(
                    f"arange: dtype: must hold {number}; got int32, the default; pass "
                    "dtype=nx.int64"
                )
    return made_on("arange", device, _arange, start, step, count, dtype)


def _arange(start: float, step: float, count: int, dtype: DTypeLike) -> Tensor:
    counted = _core.iota((count,), None, dtype)
    is_float = counted.dtype.kind == "float"
    whole = hasattr(start, "__index__") and hasattr(step, "__index__")
    if not (whole or is_float or counted.dtype.kind == "complex"):
        counted = _core.iota((count,), None, _core.f64)
    elif counted.dtype.bits < 32 and (is_float or step != 1):
        # Such dtypes cannot represent all indices, or the digits of repeated steps.
        counted = _core.iota((count,), None, _core.f32 if is_float else _core.s64)
    if step < 0 and counted.dtype.kind == "unsigned":
        # The dtype has no negative steps.
        return _core.astype(_core.subtract(start, _core.multiply(counted, -step)), dtype)
    if step != 1:
        counted = _core.multiply(counted, step)
    # The product of 0 and a negative step is -0.0, to which a start of 0 is added too.
    if start != 0 or (step < 0 and is_inexact(counted.dtype)):
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
    """Return evenly spaced numbers from a start to a stop.

    Parameters
    ----------
    start, stop : number or tensor_like
        The first number, and the last one (exact) or the one after it. Tensors of one shape
        produce several ranges, along a new last axis.
    num : int
        The number of elements.
    endpoint : bool
        If True, `stop` is the last number.
    dtype : dtype_like, optional
        A float or complex dtype; by default the dtype of the bounds, and ``float32`` (or
        ``complex64``) for plain numbers.
    name : str, optional
        The name of the axis.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.

    Returns
    -------
    Tensor
        A tensor of shape ``(*start.shape, num)``.

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
    endpoint = as_bool("linspace", "endpoint", endpoint)
    return made_on("linspace", device, _core.linspace, start, stop, num, endpoint, dtype, name)


def iota(
    shape: Shape,
    *,
    axis: Axis | None = None,
    dtype: DTypeLike = _core.s32,
    names: Names | None = None,
    vectorized_axes: Sequence[tuple[str, int]] = (),
    device: DeviceLike | None = None,
) -> Tensor:
    """Return the indices along an axis, or of all elements.

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of the axes.
    axis : int or str, optional
        The axis; by default the indices of all elements in row-major order.
    dtype : dtype_like
        The element type.
    names : sequence of (str or None), optional
        The names of the axes.
    vectorized_axes : sequence of (str, int), optional
        Names and sizes of vectorized axes; all entries are the same.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.

    Returns
    -------
    Tensor
        Indices from 0 on, in a tensor of the shape.

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
    return spread(
        "iota", made_on("iota", device, _core.iota, shape, axis, dtype, names), vectorized_axes
    )


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
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        The sizes; as many columns as rows by default.
    k : int
        The diagonal: the number of columns to the right of the main diagonal, negative for the
        left.
    dtype : dtype_like, optional
        The element type; ``float32`` by default.
    names : sequence of (str or None), optional
        The names of the axes.
    vectorized_axes : sequence of (str, int), optional
        Names and sizes of vectorized axes; all entries are the same.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.

    Returns
    -------
    Tensor
        A matrix with `n_rows` rows and `n_cols` columns.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.eye(2).tolist(), nx.eye(2, 3, k=1, dtype=nx.int32).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0, 1, 0], [0, 0, 1]])
    """
    n_rows = as_count("eye", "n_rows", n_rows)
    shape = n_rows, n_rows if n_cols is None else as_count("eye", "n_cols", n_cols)
    dtype = _core.f32 if dtype is None else dtype
    return spread("eye", made_on("eye", device, _diagonal, shape, k, dtype, names), vectorized_axes)


def _diagonal(shape: tuple[int, int], k: int, dtype: DTypeLike, names: Names | None) -> Tensor:
    k = as_int("eye", "k", k)
    if k == 0:
        return _core.eye(shape, dtype, names)
    k = max(-shape[0], min(k, shape[1]))  # Diagonals that are further out are empty too.
    rows = _core.add(_core.iota(shape, 0, _core.s32, names), k)
    return _core.astype(_core.equal(rows, _core.iota(shape, 1)), dtype)


def tri(n_rows: int, n_cols: int, /, k: int = 0, *, device: DeviceLike | None = None) -> Tensor:
    """Return a mask that is true on and below a diagonal.

    Parameters
    ----------
    n_rows, n_cols : int
        The sizes.
    k : int
        The diagonal: the number of columns to the right of the main diagonal.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.astype(nx.tri(2, 3), nx.int32).tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    n_rows, n_cols = as_count("tri", "n_rows", n_rows), as_count("tri", "n_cols", n_cols)
    return made_on("tri", device, _core.tri, n_rows, n_cols, k)


def meshgrid(*arrays: TensorLike, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Return coordinate tensors of a grid, one for each vector.

    Parameters
    ----------
    *arrays : tensor_like
        Vectors.
    indexing : {"xy", "ij"}
        The axis of the first vector: the second one (``"xy"``, Cartesian) or the first one
        (``"ij"``, matrix indexing).

    Returns
    -------
    tuple of Tensor
        One tensor for each vector, with the shape of the grid.

    Raises
    ------
    ShapeError
        If an array is not a vector.

    Examples
    --------
    >>> import nxla as nx
    >>> [grid.tolist() for grid in nx.meshgrid([1, 2], [3, 4])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f'meshgrid: indexing: must be "xy" or "ij"; got {indexing!r}')
    vectors = [as_tensor(x) for x in arrays]
    for position, vector in enumerate(vectors):
        if vector.ndim != 1:
            raise ShapeError(
                f"meshgrid: array {position}: must be a vector; got shape {vector.shape}"
            )
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    shape = [0] * len(axes)
    for axis, vector in zip(axes, vectors, strict=True):
        shape[axis] = vector.shape[0]
    pairs = zip(axes, vectors, strict=True)
    return tuple(_core.broadcast_to(vector, shape, axes=[axis]) for axis, vector in pairs)


_hints.install(globals())
