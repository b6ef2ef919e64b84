"""Types of arguments that many functions share. Only type checkers read this module."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from nxla._core import Device, DType, Expr, Tensor

P = ParamSpec("P")
T = TypeVar("T")


class SupportsDLPack(Protocol):
    """An array of another library, such as NumPy."""

    def __dlpack__(self, *, stream: Any = None) -> Any:
        """Export the memory."""


#: An operand: a tensor, a traced value, a number, an array, or nested lists of numbers.
TensorLike: TypeAlias = Tensor | Expr | complex | SupportsDLPack | Sequence[Any]
#: A number or an array, also a tensor.
Leaf: TypeAlias = complex | SupportsDLPack
#: A dtype: `nx.float32`, `"f32"`, `"float32"`, `float`, or a NumPy dtype.
DTypeLike: TypeAlias = DType | str | type | Any
#: A device, or its name.
DeviceLike: TypeAlias = Device | str
#: One axis, by position or by name.
Axis: TypeAlias = int | str
#: One axis or several.
Axes: TypeAlias = Axis | Sequence[Axis]
#: Sizes of axes; an integer is the size of a single axis.
Shape: TypeAlias = int | Sequence[int]
#: Names of axes; None for an axis without a name.
Names: TypeAlias = Sequence[str | None]
#: The padding before and after the elements of each axis, or the name of a rule.
Padding: TypeAlias = str | Sequence[tuple[int, int]]
#: One integer for all axes, or one integer for each axis.
PerAxis: TypeAlias = int | Sequence[int]
#: A function of tensors, of containers of tensors, or of static values.
Function: TypeAlias = Callable[..., Any]


class KeepsStructure(Protocol[P]):
    """A function that returns the structure of its first argument, with tensors for arrays.

    Type checkers select the first overload for an argument of type `Any`, so it returns `Any`.
    """

    @overload
    def __call__(self, value: complex, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    @overload
    def __call__(self, value: SupportsDLPack, /, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...
    @overload
    def __call__(self, value: T, /, *args: P.args, **kwargs: P.kwargs) -> T: ...
