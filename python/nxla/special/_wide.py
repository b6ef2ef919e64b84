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


def with_slopes(
    function: Callable[..., Tensor], *slopes: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """Return a function whose derivative in argument ``i`` is ``slopes[i](*operands)``.

    Each argument has its own rule: a single rule of all arguments would multiply the zero tangent
    of a constant by a slope that may be infinite.
    """

    def call(*operands: Tensor) -> Tensor:
        total = _core.stop_grad(function(*operands))
        for operand, slope in zip(operands, slopes, strict=True):
            total = total + _zeros_with_slope(operand, slope, operands)
        return total

    return call


def _zeros_with_slope(
    x: Tensor, slope: Callable[..., Tensor], operands: tuple[Tensor, ...]
) -> Tensor:
    """Return zeros whose derivative in `x` is a function of all operands."""

    def rule(primals: tuple[Tensor], tangents: tuple[Tensor]) -> Tensor:  # noqa: ARG001
        return tangents[0] * slope(*operands)

    # -0.0 is the neutral element of addition: 0.0 would change the sign of a result -0.0.
    zero = custom_rule(lambda x: _core.full(x.shape, -0.0, x.dtype))
    zero.defjvp(rule)
    return zero(x)


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
