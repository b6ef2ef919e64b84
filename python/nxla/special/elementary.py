"""Elementary functions whose limits at zero are defined."""

from __future__ import annotations

from nxla import _core, _hints
from nxla.special._wide import custom_rule, elementwise, with_slopes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike

__all__ = ["entr", "logit", "xlog1py", "xlogy"]


def _times_log(x: Tensor, log: Tensor, y: Tensor) -> Tensor:
    """Return ``x * log``, which is zero where `x` is zero and `y` is not NaN."""
    is_zero = _core.equal(x, 0.0) & ~_core.isnan(y)
    return _core.where(is_zero, 0.0, x * log)


def _quotient(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x / y``, which is zero where both are zero."""
    return x / _core.where(_core.equal(x, 0.0) & _core.equal(y, 0.0), 1.0, y)


_xlogy = with_slopes(
    lambda x, y: _times_log(x, _core.log(y), y), lambda _, y: _core.log(y), _quotient
)
_xlog1py = with_slopes(
    lambda x, y: _times_log(x, _core.log1p(y), y),
    lambda _, y: _core.log1p(y),
    lambda x, y: _quotient(x, 1.0 + y),
)


@custom_rule
def _entr(x: Tensor) -> Tensor:
    value = 0.0 - _xlogy(x, x)  # The negative of zero would print as -0.0.
    return _core.where(x < 0.0, float("-inf"), value)


@_entr.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    (x,) = primals
    is_negative = x < 0.0
    slope = -1.0 - _core.log(_core.where(is_negative, 1.0, x))
    return tangents[0] * _core.where(is_negative, 0.0, slope)


@custom_rule
def _logit(x: Tensor) -> Tensor:
    # The quotient is near 1 where `x` is near 0.5, and rounding it would cancel digits.
    near = _core.log1p((2.0 * x - 1.0) / (1.0 - x))
    return _core.where(_core.abs(x - 0.5) < 0.25, near, _core.log(x / (1.0 - x)))


@_logit.defjvp
def _(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:
    (x,) = primals
    return tangents[0] * (1.0 / x + 1.0 / (1.0 - x))


def xlogy(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Return ``x * log(y)``, which is 0 where `x` is 0 and `y` is not NaN.

    Parameters
    ----------
    x, y : tensor_like
        Real numbers that broadcast; integers count as ``float32``.

    Returns
    -------
    Tensor
        A float tensor of the broadcast shape.

    Raises
    ------
    DTypeError
        If an argument is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.special.xlogy([0.0, 2.0], [0.0, 1.0]).tolist()
    [0.0, 0.0]
    """
    return elementwise("xlogy", _xlogy, x, y)


def xlog1py(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Return ``x * log1p(y)``, which is 0 where `x` is 0 and `y` is not NaN. See `xlogy`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.special.xlog1py([0.0, 2.0], [-1.0, 0.0]).tolist()
    [0.0, 0.0]
    """
    return elementwise("xlog1py", _xlog1py, x, y)


def entr(x: TensorLike, /) -> Tensor:
    """Return ``-x * log(x)``, which is 0 at 0 and minus infinity for negative numbers.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        A float tensor with the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.special.entr([0.0, 1.0]).tolist()
    [0.0, 0.0]
    """
    return elementwise("entr", _entr, x)


def logit(x: TensorLike, /) -> Tensor:
    """Return ``log(x / (1 - x))``, the inverse of the sigmoid.

    Parameters
    ----------
    x : tensor_like
        Real numbers from 0 to 1; integers count as ``float32``.

    Returns
    -------
    Tensor
        A float tensor with the shape of `x`; infinite at 0 and 1.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.special.logit([0.5, 0.0]).tolist()
    [0.0, -inf]
    """
    return elementwise("logit", _logit, x)


_hints.install(globals())
