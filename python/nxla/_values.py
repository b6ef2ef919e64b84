"""Operands as tensors, and integers as ints."""

from __future__ import annotations

import operator
from numbers import Number

from nxla import _core, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from nxla._core import DType, Lazy, Template, Tensor
    from nxla._types import TensorLike

    R = TypeVar("R")


def as_tensor(value: TensorLike) -> Tensor:
    """Return a tensor or a traced value as it is, and anything else as a tensor.

    To type checkers a traced value is a `Tensor`, because types cannot express whether a function
    is traced.
    """
    if isinstance(value, _core.Tensor):
        return value
    if isinstance(value, _core.Expr):
        traced: Tensor = value  # type: ignore[assignment]
        return traced
    return _core.tensor(value)


def new_tensor(value: TensorLike) -> Tensor:
    """Return a new tensor with the data of a value, and a traced value as it is.

    An assignment to an element of a tensor changes the object of the caller; traced values cannot
    be changed.
    """
    return as_tensor(value) if isinstance(value, _core.Expr) else _core.tensor(value)


def new_tensors(value: Any) -> Any:
    """Return a container whose leaves are new tensors or traced values."""
    return tree.map(new_tensor, value)


def arrays_to_tensors(value: Any) -> Any:
    """Return a container with new tensors for arrays and tensors; other leaves stay.

    Functions that run as Python code must not receive arrays: an array can be changed in place, and
    arithmetic of arrays has other dtypes.
    """
    kept = (Number, _core.Lazy, _core.Template)
    return tree.map(lambda leaf: leaf if isinstance(leaf, kept) else new_tensor(leaf), value)


def template_of(value: TensorLike | Template | Lazy) -> Template:
    """Return the type of a value, or a template as it is."""
    if isinstance(value, _core.Template):
        return value
    if isinstance(value, _core.Lazy):
        return value.template
    x = as_tensor(value)
    return _core.Template(x.shape, x.dtype, x.names, list(x.vectorized_axes))


def as_tensors(function: str, *operands: TensorLike, compared: bool = False) -> list[Tensor]:
    """Return operands of one call as tensors.

    Python scalars and lists take the dtypes for a combination with the other operands. Operands
    that are only `compared` need not fit the dtypes of the other operands.
    """
    tensors: list[Tensor] = _core.as_tensors(function, operands, compared)
    return tensors


def float_dtype(x: Tensor) -> DType:
    """Return the dtype of float results; integers count as `float32`."""
    return x.dtype if x.dtype.kind in ("float", "complex") else _core.f32


def widen(x: Tensor) -> Tensor:
    """Return an operand in a dtype for sums of elements and for products of differences.

    Such results may exceed the range of narrow floats, and `float32` rounds close integers to one
    number.
    """
    if x.dtype.kind in ("signed", "unsigned"):
        return _core.astype(x, _core.f64)
    return _core.astype(x, _core.f32) if x.dtype.itemsize < 4 else x


def call_as(name: str, function: Callable[..., R], *operands: Any, **arguments: Any) -> R:
    """Call a compiled function on behalf of another public function, which errors name."""
    try:
        return function(*operands, **arguments)
    except _core.NxlaError as error:
        own, message = f"{function.__name__}: ", str(error)
        if not message.startswith(own):
            raise
        raise type(error)(f"{name}: {message.removeprefix(own)}") from None


def user_line() -> str:
    """Return the user's source line that is running, in the form that ends error messages."""
    line = _core.user_line()
    return "" if line is None else f" ({line})"


def to_index(value: Any) -> int | None:
    """Return an integer of Python or NumPy as an int, and None for any other value.

    Tensors are not integers here: reading them would wait for a device, and traced values have no
    values.
    """
    if type(value) is int:
        return value
    if isinstance(value, _core.Tensor | _core.Expr):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def plain_number(value: Any) -> Any:
    """Return an integer of NumPy as an int, because its arithmetic wraps; others as they are."""
    index = to_index(value)
    return value if index is None else index


def index_list(value: Any) -> list[Any]:
    """Return an integer or a name as a list with one entry, and a sequence of them as a list."""
    index = to_index(value)
    if index is not None:
        return [index]
    if isinstance(value, str):
        return [value]
    indices = [(to_index(entry), entry) for entry in value]
    return [entry if index is None else index for index, entry in indices]
