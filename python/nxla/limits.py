"""The limits of dtypes."""

from __future__ import annotations

from typing import NamedTuple

from nxla import _core, _hints
from nxla._values import as_dtype, dtype_of
from nxla.errors import ArgumentError, DTypeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import DType
    from nxla._types import DTypeLike, TensorLike

_KINDS = {
    "bool": {"pred"},
    "signed integer": {"signed"},
    "unsigned integer": {"unsigned"},
    "integral": {"signed", "unsigned"},
    "real floating": {"float"},
    "complex floating": {"complex"},
    "numeric": {"signed", "unsigned", "float", "complex"},
}


class FloatLimits(NamedTuple):
    """The result of `finfo`."""

    #: The number of bits of a number.
    bits: int
    #: The distance from 1 to the next larger number.
    eps: float
    #: The largest number.
    max: float
    #: The smallest number.
    min: float
    #: The smallest positive number that has full precision.
    smallest_normal: float
    #: The dtype. For a complex dtype, the dtype of its parts.
    dtype: DType


class IntegerLimits(NamedTuple):
    """The result of `iinfo`."""

    #: The number of bits of a number.
    bits: int
    #: The largest number.
    max: int
    #: The smallest number.
    min: int
    #: The dtype.
    dtype: DType


def finfo(type: DTypeLike | TensorLike, /) -> FloatLimits:
    """Return the limits of a float dtype, or of the parts of a complex dtype.

    Parameters
    ----------
    type : dtype_like or tensor_like
        The dtype, or a value with the dtype.

    Returns
    -------
    FloatLimits
        A named tuple of Python numbers: ``bits``, ``eps``, ``max``, ``min`` and
        ``smallest_normal``, and the ``dtype``.

    Raises
    ------
    DTypeError
        If it is neither a float nor complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.finfo("f16").max, nx.finfo(nx.complex64).bits
    (65504.0, 32)
    """
    dtype = dtype_of("finfo", "type", type)
    if dtype.kind == "complex":
        dtype = _core.real(_core.full((), 0, dtype)).dtype
    limits = dtype._float_limits
    if limits is None:
        raise DTypeError(f"finfo: type: must be a float or complex dtype; got {dtype}")
    epsilon, limit, smallest_normal = limits
    return FloatLimits(dtype.bits, epsilon, limit, -limit, smallest_normal, dtype)


def iinfo(type: DTypeLike | TensorLike, /) -> IntegerLimits:
    """Return the limits of an integer dtype.

    Parameters
    ----------
    type : dtype_like or tensor_like
        The dtype, or a value with the dtype.

    Returns
    -------
    IntegerLimits
        A named tuple of Python integers: ``bits``, ``max`` and ``min``, and the ``dtype``.

    Raises
    ------
    DTypeError
        If the dtype is not an integer dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.iinfo("s4").min, nx.iinfo(nx.uint64).max
    (-8, 18446744073709551615)
    """
    dtype = dtype_of("iinfo", "type", type)
    if dtype.kind == "unsigned":
        return IntegerLimits(dtype.bits, 2**dtype.bits - 1, 0, dtype)
    if dtype.kind == "signed":
        half: int = 2 ** (dtype.bits - 1)
        return IntegerLimits(dtype.bits, half - 1, -half, dtype)
    raise DTypeError(f"iinfo: type: must be an integer dtype; got {dtype}")


def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[DTypeLike | str, ...]) -> bool:
    """Return whether a dtype equals another one or belongs to a kind.

    Parameters
    ----------
    dtype : dtype_like
        The dtype.
    kind : dtype_like or str, or a tuple
        A dtype, or one of ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"`` and ``"numeric"``. A tuple matches if one of its
        entries matches.

    Returns
    -------
    bool
        True if the dtype equals `kind`, or belongs to it.

    Raises
    ------
    ArgumentError
        If the kind does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isdtype("s8", "integral"), nx.isdtype(nx.float32, (nx.float64, "complex floating"))
    (True, False)
    """
    checked = as_dtype("isdtype", dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in _KINDS:
            if checked.kind in _KINDS[one]:
                return True
            continue
        try:
            if checked == _core.DType(one):
                return True
        except DTypeError as unknown:
            known = ", ".join(map(repr, _KINDS))
            raise ArgumentError(
                f"isdtype: kind: must be a dtype or one of {known}; got {one!r}"
            ) from unknown
    return False


_hints.install(globals())
