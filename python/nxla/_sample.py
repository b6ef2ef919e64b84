"""The result of a random function, and the two argument orders that these functions accept."""

from __future__ import annotations

from typing import NamedTuple

from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeGuard

    from nxla._core import Tensor

__all__ = ["Sample", "is_shape", "refuse_shape"]


class Sample(NamedTuple):
    """A random value, and the key for the next draw.

    The pair unpacks, as in ``x, key = nx.random.normal(key)``. Functions of tensors reject the
    pair, so a sample that was not unpacked never enters a computation.

    Examples
    --------
    >>> import nxla as nx
    >>> sample = nx.random.normal(nx.random.key(42))
    >>> round(sample.value.item(), 5)
    1.36947
    """

    value: Tensor
    key: Tensor


def is_shape(value: Any) -> TypeGuard[tuple[int, ...]]:
    """Return whether a positional argument is a shape: a tuple of plain integers."""
    return isinstance(value, tuple) and all(type(size) is int for size in value)


def refuse_shape(op: str, argument: str, value: Any) -> None:
    """Raise `ArgumentError` if a parameter of a distribution looks like a shape.

    A tuple of integers in this position is a shape in JAX. Here it would be a list of parameters,
    so the caller must choose.
    """
    if is_shape(value):
        raise ArgumentError(
            f"{op}: {argument}: a tuple of integers can be a shape; got {value}; write "
            f"shape={value}, or pass the parameters as a list or a tensor"
        )
