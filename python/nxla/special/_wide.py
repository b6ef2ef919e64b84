"""Calls of special functions: operands in `float64`, and results in the dtype of the operands."""

from __future__ import annotations

from typing import Protocol

from nxla import _core
from nxla._signatures import run_traced
from nxla._values import as_tensors
from nxla.custom import custom_jvp
from nxla.errors import DTypeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nxla._core import Tensor
    from nxla._types import TensorLike


class Ruled(Protocol):
    """A function of tensors with a derivative rule."""

    def __call__(self, *operands: Tensor) -> Tensor:
        """Call the function."""

    def defjvp(self, rule: Callable[..., Tensor], /) -> Callable[..., Tensor]:
        """Set the rule."""


def custom_rule(function: Callable[..., Tensor]) -> Ruled:
    """Return a function whose derivative is a rule, as `nxla.custom_jvp`."""
    found: Ruled = custom_jvp(function)
    return found


def elementwise(name: str, function: Callable[..., Tensor], *operands: TensorLike) -> Tensor:
    """Call a function of `float64` tensors on operands that broadcast.

    Outside a trace the whole function is one program.
    """
    tensors = as_tensors(name, *operands)
    for tensor in tensors:
        if tensor.dtype.kind == "complex":
            raise DTypeError(f"{name}: operand: must be real; got {tensor.dtype}")

    def rounded(*tensors: Tensor) -> Tensor:
        dtype = _core.result_type(*tensors)
        dtype = dtype if dtype.kind == "float" else _core.f32
        wide = _core.broadcast_arrays(*(_core.astype(x, _core.f64) for x in tensors))
        return _core.astype(function(*wide), dtype)

    return run_traced(rounded, name, *tensors, key=name)
