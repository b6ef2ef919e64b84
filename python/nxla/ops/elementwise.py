"""Element-wise functions that are implemented in Python."""

from __future__ import annotations

import math

from nxla import _core, _hints
from nxla._values import as_tensor, as_tensors, call_as, dtype_of
from nxla.errors import ArgumentError
from nxla.ops.create import zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import DeviceLike, DTypeLike, TensorLike


def positive(x: TensorLike, /) -> Tensor:
    """Return the elements unchanged; the operator ``+``.

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
    return +as_tensor(x)


def conj(x: TensorLike, /) -> Tensor:
    """Return the complex conjugate of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype; real ones stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.conj([1 + 2j]).tolist(), nx.conj([1, 2]).tolist()
    ([(1-2j)], [1, 2])
    """
    x = as_tensor(x)
    return _core.conj(x) if x.dtype.kind == "complex" else positive(x)


def real(x: TensorLike, /) -> Tensor:
    """Return the real part of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype; real ones stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape of `x`: ``float32`` or ``float64`` for complex operands, and the dtype
        of `x` otherwise.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.real([1 + 2j, 3 - 4j]).tolist(), nx.real([1, 2]).tolist()
    ([1.0, 3.0], [1, 2])
    """
    x = as_tensor(x)
    return _core.real(x) if x.dtype.kind == "complex" else positive(x)


def imag(x: TensorLike, /) -> Tensor:
    """Return the imaginary part of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype; the imaginary part of a real number is zero.

    Returns
    -------
    Tensor
        Numbers of the shape of `x`: ``float32`` or ``float64`` for complex operands, and the dtype
        of `x` otherwise.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.imag([1 + 2j, 3 - 4j]).tolist(), nx.imag([1, 2]).tolist()
    ([2.0, -4.0], [0, 0])
    """
    x = as_tensor(x)
    return _core.imag(x) if x.dtype.kind == "complex" else zeros_like(x)


def log(x: TensorLike, /, base: TensorLike | None = None) -> Tensor:
    """Return the logarithm of each element, the natural one by default.

    Negative real numbers return NaN, and zero returns minus infinity.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    base : tensor_like, optional
        Another base than ``e``. Tensors broadcast, and their dtypes promote.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Raises
    ------
    ArgumentError
        If `base` is a number that is not positive, or 1.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.log([1.0, 2.0]).tolist(), nx.log([1.0, 8.0], 2).tolist()
    ([0.0, 0.6931471824645996], [0.0, 3.0])
    """
    if base is None:
        return _core.log(x)
    if isinstance(base, int | float):
        if base <= 0 or base == 1:
            raise ArgumentError(f"log: base: must be positive and not 1; got {base!r}")
        return _core.divide(_core.log(x), math.log(base))
    x, base = as_tensors("log", x, base)
    return _core.divide(_core.log(x), _core.log(base))


def can_cast(from_: TensorLike | DTypeLike, to: DTypeLike, /) -> bool:
    """Return whether a dtype promotes to another dtype.

    Parameters
    ----------
    from_ : tensor_like or dtype_like
        The dtype, or a value with the dtype.
    to : dtype_like
        The other dtype.

    Returns
    -------
    bool
        True if the promoted dtype of both is `to`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.can_cast(nx.int8, nx.int32), nx.can_cast(nx.float32, nx.int32)
    (True, False)
    """
    target = dtype_of("can_cast", "to", to)
    source = dtype_of("can_cast", "from_", from_) if isinstance(from_, str) else from_
    return call_as("can_cast", _core.result_type, source, target) == target


def _as_exact_tensor(x: TensorLike) -> Tensor:
    """Return an operand as a tensor in which Python floats keep all their digits."""
    tensor = as_tensor(x)
    if tensor is x or hasattr(x, "dtype") or tensor.dtype not in (_core.f32, _core.c64):
        return tensor
    wide = _core.f64 if tensor.dtype == _core.f32 else _core.c128
    return _core.tensor(x, wide)


def astype(
    x: TensorLike,
    dtype: DTypeLike,
    /,
    *,
    copy: bool = True,
    device: DeviceLike | None = None,
) -> Tensor:
    """Convert elements to another dtype.

    A conversion from floats to integers truncates the fraction, clamps to the range of the integer
    dtype, and maps NaN to zero. A conversion to narrower integers wraps around. A conversion from
    complex numbers discards the imaginary part.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    dtype : dtype_like
        The dtype.
    copy : bool
        False returns the tensor itself if it has the dtype and is on the device.
    device : Device or str, optional
        The device of the result; by default the device of `x`.

    Returns
    -------
    Tensor
        A tensor of the dtype, with the shape and the names of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.astype([1.9, -1.9, 1e20], nx.int32).tolist(), nx.astype([300, -1], nx.uint8).tolist()
    ([1, -1, 2147483647], [44, 255])
    """
    x = _as_exact_tensor(x)
    if x.dtype != dtype:
        x = _core.astype(x, dtype)
    elif copy and isinstance(x, _core.Tensor):
        return x.to_device(x.device if device is None else device, copy=True)
    return x if device is None else x.to_device(device)


_hints.install(globals())
