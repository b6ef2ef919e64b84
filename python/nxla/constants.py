"""Special values of the dtypes, as scalar tensors.

`nx.pi`, `nx.e`, `nx.inf` and `nx.nan` are Python floats, which take the dtype of the other operand;
the tensors of this module have a fixed dtype.

>>> import nxla as nx
>>> nx.constants.epsilon("f16").item(), nx.constants.max_finite(nx.int8).item()
(0.0009765625, 127)
"""

from __future__ import annotations

import math

from nxla import _core, _hints
from nxla._values import as_dtype
from nxla.errors import DTypeError
from nxla.limits import finfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import DType, Tensor
    from nxla._types import DTypeLike

__all__ = [
    "e",
    "epsilon",
    "euler_gamma",
    "i",
    "infinity",
    "max",
    "max_finite",
    "min",
    "min_finite",
    "nan",
    "neg_infinity",
    "pi",
    "smallest_positive_normal",
]


def _float(name: str, dtype: DTypeLike) -> DType:
    checked = as_dtype(name, dtype)
    if checked.kind != "float":
        raise DTypeError(f"{name}: dtype: must be a float dtype; got {checked}")
    return checked


def _scalar(value: complex, dtype: DType) -> Tensor:
    """Return a scalar on the default device."""
    return _core.place(_core.tensor(value, dtype))


def _real(name: str, dtype: DTypeLike) -> DType:
    checked = as_dtype(name, dtype)
    if checked.kind == "complex":
        raise DTypeError(f"{name}: dtype: must be a real dtype; got {checked}")
    return checked


def nan(dtype: DTypeLike = _core.f32, /) -> Tensor:
    """Return NaN of a float dtype.

    Parameters
    ----------
    dtype : dtype_like
        A float dtype; ``float32`` by default.

    Returns
    -------
    Tensor
        A scalar of the dtype, as for all functions of this module.

    Raises
    ------
    DTypeError
        If the dtype is not a float dtype. Other functions of this module raise the same error.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.nan("f16").dtype
    f16
    """
    return _scalar(math.nan, _float("nan", dtype))


def infinity(dtype: DTypeLike = _core.f32, /) -> Tensor:
    """Return infinity of a float dtype; of ``f8_e4m3fn``, which has none, the largest number.

    Parameters
    ----------
    dtype : dtype_like
        A float dtype; ``float32`` by default.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.infinity().item(), nx.constants.infinity("f8_e4m3fn").item()
    (inf, 448.0)
    """
    return _scalar(math.inf, _float("infinity", dtype))


def neg_infinity(dtype: DTypeLike = _core.f32, /) -> Tensor:
    """Return minus infinity of a float dtype; of ``f8_e4m3fn`` the smallest number.

    Parameters
    ----------
    dtype : dtype_like
        A float dtype; ``float32`` by default.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.neg_infinity().item()
    -inf
    """
    return _scalar(-math.inf, _float("neg_infinity", dtype))


def pi(dtype: DTypeLike = _core.f32, /) -> Tensor:
    """Return π as a scalar of a float dtype.

    Parameters
    ----------
    dtype : dtype_like
        A float dtype; ``float32`` by default.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.pi("f64").item()
    3.141592653589793
    """
    return _scalar(math.pi, _float("pi", dtype))


def e(dtype: DTypeLike = _core.f32, /) -> Tensor:
    """Return the base of the natural logarithm, of a float dtype.

    Parameters
    ----------
    dtype : dtype_like
        A float dtype; ``float32`` by default.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.e("f64").item()
    2.718281828459045
    """
    return _scalar(math.e, _float("e", dtype))


def euler_gamma(dtype: DTypeLike = _core.f32, /) -> Tensor:
    """Return the Euler-Mascheroni constant, of a float dtype.

    Parameters
    ----------
    dtype : dtype_like
        A float dtype; ``float32`` by default.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.euler_gamma("f64").item()
    0.5772156649015329
    """
    return _scalar(0.5772156649015329, _float("euler_gamma", dtype))


def i(dtype: DTypeLike = _core.c64, /) -> Tensor:
    """Return the square root of -1, of a complex dtype.

    Parameters
    ----------
    dtype : dtype_like
        A complex dtype; ``complex64`` by default.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Raises
    ------
    DTypeError
        If the dtype is not complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.i().item()
    1j
    """
    checked = as_dtype("i", dtype)
    if checked.kind != "complex":
        raise DTypeError(f"i: dtype: must be a complex dtype; got {checked}")
    return _scalar(1j, checked)


def max(dtype: DTypeLike, /) -> Tensor:
    """Return the largest number of a real dtype, which is infinity for floats with infinities.

    Parameters
    ----------
    dtype : dtype_like
        A real dtype.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.max("u8").item(), nx.constants.max("f16").item()
    (255, inf)
    """
    return _core.min(_nothing("max", dtype))


def min(dtype: DTypeLike, /) -> Tensor:
    """Return the smallest number of a real dtype: minus infinity for floats with infinities.

    Parameters
    ----------
    dtype : dtype_like
        A real dtype.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.min("s8").item(), nx.constants.min("f32").item()
    (-128, -inf)
    """
    return _core.max(_nothing("min", dtype))


def _nothing(name: str, dtype: DTypeLike) -> Tensor:
    """Return an empty tensor, whose minimum and maximum are the limits of the dtype."""
    return _core.full((0,), 0, _real(name, dtype))


def max_finite(dtype: DTypeLike, /) -> Tensor:
    """Return the largest finite number of a real dtype.

    Parameters
    ----------
    dtype : dtype_like
        A real dtype.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.max_finite("f16").item()
    65504.0
    """
    checked = _real("max_finite", dtype)
    return _scalar(finfo(checked).max, checked) if checked.kind == "float" else max(checked)


def min_finite(dtype: DTypeLike, /) -> Tensor:
    """Return the smallest finite number of a real dtype.

    Parameters
    ----------
    dtype : dtype_like
        A real dtype.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.min_finite("f16").item()
    -65504.0
    """
    checked = _real("min_finite", dtype)
    return _scalar(finfo(checked).min, checked) if checked.kind == "float" else min(checked)


def smallest_positive_normal(dtype: DTypeLike, /) -> Tensor:
    """Return the smallest positive number of a float dtype that has its full precision.

    Parameters
    ----------
    dtype : dtype_like
        A float dtype.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.smallest_positive_normal("bf16").item()
    1.1754943508222875e-38
    """
    checked = _float("smallest_positive_normal", dtype)
    return _scalar(finfo(checked).smallest_normal, checked)


def epsilon(dtype: DTypeLike, /) -> Tensor:
    """Return the distance from 1 to the next larger number of a float dtype.

    Parameters
    ----------
    dtype : dtype_like
        A float dtype.

    Returns
    -------
    Tensor
        A scalar of the dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.constants.epsilon("f32").item() == 2.0**-23
    True
    """
    checked = _float("epsilon", dtype)
    return _scalar(finfo(checked).eps, checked)


_hints.install(globals())
_hints.install_missing_names(globals())
