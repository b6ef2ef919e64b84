"""Assertions about tensors, for tests.

>>> import nxla as nx
>>> nx.testing.assert_all_close([1.0, 2.0], [1.0, 2.00001])
"""

from __future__ import annotations

from nxla import _core
from nxla._values import as_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike

__all__ = ["assert_all_close", "assert_equal"]


def assert_all_close(
    actual: TensorLike, expected: TensorLike, /, *, rtol: float = 1e-4, atol: float = 1e-4
) -> None:
    """Assert that numbers are equal up to a tolerance.

    Parameters
    ----------
    actual, expected : tensor_like
        Numbers; their shapes broadcast.
    rtol, atol : float
        Numbers are close if ``abs(actual - expected) <= atol + rtol * abs(expected)``.

    Raises
    ------
    AssertionError
        If they are not. The text holds both tensors and the largest difference.
    """
    left, right = as_tensor(actual), as_tensor(expected)
    distance = _core.abs(_core.subtract(left, right))
    bound = _core.add(_core.multiply(_core.abs(right), rtol), atol)
    near = _core.logical_or(_core.less_equal(distance, bound), _core.equal(left, right))
    if not _core.all(near):
        largest = _core.max(distance).item()
        raise AssertionError(_differ(f"by up to {largest} (rtol={rtol}, atol={atol})", left, right))


def assert_equal(actual: TensorLike, expected: TensorLike, /) -> None:
    """Assert that dtypes and shapes are equal, and all numbers; NaN equals NaN.

    Raises
    ------
    AssertionError
        If they are not.
    """
    left, right = as_tensor(actual), as_tensor(expected)
    if left.dtype != right.dtype or left.shape != right.shape:
        raise AssertionError(_differ("in dtype or shape", left, right))
    both_nan = _core.logical_and(_core.isnan(left), _core.isnan(right))
    if not _core.all(_core.logical_or(_core.equal(left, right), both_nan)):
        raise AssertionError(_differ("in their elements", left, right))


def _differ(how: str, left: Tensor, right: Tensor) -> str:
    return f"the tensors differ {how}\nactual: {left!r}\nexpected: {right!r}"
