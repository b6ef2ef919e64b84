"""The result of a random function, and the two argument orders that these functions accept."""

from __future__ import annotations

from typing import NamedTuple

from nxla import _core, _hints
from nxla._values import to_index
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeGuard

    from nxla._core import Tensor

__all__ = ["Sample", "is_shape", "is_traced_shape", "refuse_shape"]


class Sample(NamedTuple):
    """A random value, and the key for the next draw.

    The pair unpacks, as in ``x, key = nx.random.normal(key)``. Operators, and functions that expect
    one tensor, reject the pair.

    Examples
    --------
    >>> import nxla as nx
    >>> sample = nx.random.normal(nx.random.key(42))
    >>> round(sample.value.item(), 5)
    1.36947
    """

    value: Tensor
    key: Tensor

    def __getattr__(self, name: str) -> Any:
        """Raise the error for an attribute of a tensor."""
        raise AttributeError(f"'Sample' object has no attribute {name!r}; {_HINT}", name=name)


_HINT = (
    "unpack the pair, as in value, key = nx.random.normal(key), or call a function whose name ends "
    "with _split, which returns the value alone"
)

#: Operators of tensors: a tuple would accept some of them, as in ``2 * sample``.
_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"),
    *("radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod", "rpow", "rmatmul"),
    *("lt", "le", "gt", "ge", "neg", "abs"),
)


@_hints.with_hints
def _refuse_operator(*_: Any) -> NoReturn:
    """Raise `ArgumentError` for a sample that is the operand of an operator."""
    raise ArgumentError(f"Sample: operator: operands must be tensors; got a pair; {_HINT}")


for _operator in _OPERATORS:
    setattr(Sample, f"__{_operator}__", _refuse_operator)


def is_shape(value: Any) -> TypeGuard[tuple[int, ...]]:
    """Return whether a positional argument is a shape: a tuple of integers."""
    return isinstance(value, tuple) and all(to_index(size) is not None for size in value)


def is_traced_shape(value: Any) -> bool:
    """Return whether a positional argument is a shape, or would be one with static sizes.

    The error for a shape says that a traced integer must be static.
    """
    return isinstance(value, tuple) and all(
        to_index(size) is not None
        or (isinstance(size, _core.Expr) and size.dtype.kind in ("signed", "unsigned"))
        for size in value
    )


def refuse_shape(op: str, argument: str, value: Any, hint: str | None = None) -> None:
    """Raise `ArgumentError` if a parameter of a distribution looks like a shape.

    A tuple of integers in this position is a shape in JAX. Here it would be a list of parameters,
    so the caller must choose. The hint says how; by default, it names the argument `shape`.
    """
    if is_shape(value):
        hint = hint or f"write shape={value}, or pass the parameters"
        raise ArgumentError(
            f"{op}: {argument}: a tuple of integers can be a shape; got {value}; {hint} as a list "
            "or a tensor"
        )
