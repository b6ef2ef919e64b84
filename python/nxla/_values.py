"""Arguments of functions: operands as tensors, and checks of numbers, flags and sequences."""

from __future__ import annotations

import operator
from numbers import Number

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Concatenate, ParamSpec, TypeVar

    from nxla._core import DType, Lazy, Template, Tensor
    from nxla._types import DTypeLike, KeepsStructure, TensorLike

    P = ParamSpec("P")
    R = TypeVar("R")
    E = TypeVar("E")


def with_article(noun: str) -> str:
    """Return a noun with "a" or "an".

    The name "uint8" starts with the sound of a consonant, and "ndarray" with the sound of a vowel.
    """
    return f"{'an' if noun[:1] in 'aeioAEIO' or noun == 'ndarray' else 'a'} {noun}"


def kind_of(value: object) -> str:
    """Return the name of the type of a value with its article, for error messages."""
    return with_article(type(value).__name__)


def count_text(count: int, noun: str) -> str:
    """Return a number with a noun in the singular or the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def keeps_structure(function: Callable[Concatenate[Any, P], Any], /) -> KeepsStructure[P]:
    """Declare to type checkers that a function returns the structure of its first argument.

    Numbers and arrays become tensors.
    """
    declared: Any = function
    return declared  # type: ignore[no-any-return]


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


def _map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to each leaf; the module of `tree.map` imports this one."""
    leaves, structure = _core.tree_flatten(value)
    return structure.unflatten([function(leaf) for leaf in leaves])


def new_tensors(value: Any) -> Any:
    """Return a container whose leaves are new tensors or traced values."""
    return _map_leaves(new_tensor, value)


def arrays_to_tensors(value: Any) -> Any:
    """Return a container with new tensors for arrays and tensors; other leaves stay.

    Functions that run as Python code must not receive arrays: an array can be changed in place, and
    arithmetic of arrays has other dtypes.
    """
    kept = (Number, _core.Lazy, _core.Template)
    return _map_leaves(lambda leaf: leaf if isinstance(leaf, kept) else new_tensor(leaf), value)


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


def dtype_of(op: str, argument: str, value: Any) -> DType:
    """Return a dtype by its name, and the dtype of any other operand."""
    if not isinstance(value, str):
        return call_as(op, _core.result_type, value)
    return as_dtype(op, value, argument)


def as_dtype(op: str, value: DTypeLike, argument: str = "dtype") -> DType:
    """Return a dtype from its name, its class of NumPy or itself; errors name the argument."""
    try:
        return _core.DType(value)
    except _core.DTypeError as error:
        message = str(error).removeprefix("dtype: ")
        raise _core.DTypeError(f"{op}: {argument}: {message}") from None


def is_inexact(dtype: DType) -> bool:
    """Return whether a dtype is a float or a complex dtype, so that it has derivatives."""
    return dtype.kind in ("float", "complex")


def float_dtype(x: Tensor) -> DType:
    """Return the dtype of float results; integers count as `float32`."""
    return x.dtype if is_inexact(x.dtype) else _core.f32


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
    except (_core.NxlaError, TypeError) as error:
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
    values. Booleans are not integers: a flag in place of a position is a mistake.
    """
    if type(value) is int:
        return value
    if isinstance(value, bool | _core.Tensor | _core.Expr):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def as_number(op: str, argument: str, value: Any) -> Any:
    """Return a real number, and an integer of NumPy as an int, because its arithmetic wraps.

    A tensor and a traced value count as numbers, and are not read.

    Raises
    ------
    ArgumentError
        If the value is not a real number.
    """
    index = to_index(value)
    if index is None and (isinstance(value, type) or not hasattr(value, "__float__")):
        raise _core.ArgumentError(f"{op}: {argument}: must be a number; got {value!r}")
    return value if index is None else index


def as_int(op: str, argument: str, value: Any) -> int:
    """Return an argument of a function as an int; a tensor is read.

    Raises
    ------
    ArgumentError
        If the value is not an integer.
    TraceError
        If the value is traced.
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise _core.ArgumentError(f"{op}: {argument}: must be an integer; got {value!r}")


def as_count(op: str, argument: str, value: Any, least: int = 0) -> int:
    """Return a count as an int, which must not be less than `least` and must fit into 64 bits."""
    count = as_int(op, argument, value)
    if count < least:
        raise _core.ArgumentError(f"{op}: {argument}: must be at least {least}; got {count}")
    if count >= 1 << 63:
        raise _core.ArgumentError(f"{op}: {argument}: must be below 2**63; got {count}")
    return count


def as_bool(op: str, argument: str, value: Any) -> bool:
    """Return a flag as a bool, and reject other values as compiled functions do.

    Raises
    ------
    TypeError
        If the value is not a boolean of Python or NumPy.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, _core.Tensor | _core.Expr) or str(getattr(value, "dtype", "")) != "bool":
        raise TypeError(f"{op}: {argument}: must be a bool; got {kind_of(value)}")
    return bool(value)


def require_callable(function: str, argument: str, value: Any) -> None:
    """Raise an error unless a value can be called.

    Raises
    ------
    ArgumentError
        If the value cannot be called.
    """
    if not callable(value):
        kind = kind_of(value)
        raise _core.ArgumentError(f"{function}: {argument}: must be callable; got {kind}")


def iter_of(op: str, argument: str, value: Iterable[E]) -> Iterator[E]:
    """Return an iterator over a sequence or over another iterable.

    Raises
    ------
    ArgumentError
        If the value is not iterable.
    """
    try:
        return iter(value)
    except TypeError:
        kind = kind_of(value)
        raise _core.ArgumentError(f"{op}: {argument}: must be a sequence; got {kind}") from None


def as_list(op: str, argument: str, value: Iterable[E]) -> list[E]:
    """Return the entries of an iterable as a list; see `iter_of` for errors."""
    return list(iter_of(op, argument, value))


def as_pairs(op: str, argument: str, value: Any, entries: str) -> list[tuple[Any, Any]]:
    """Return a sequence of pairs as a list of tuples.

    Parameters
    ----------
    op, argument : str
        The function and its argument, for errors.
    value : object
        The argument.
    entries : str
        The names of the entries of a pair, as in ``"(low, high)"``, for errors.

    Raises
    ------
    ArgumentError
        If the value is not a sequence of pairs.
    """
    try:
        pairs = [tuple(pair) for pair in value]
    except TypeError:
        pairs = [()]
    if any(len(pair) != 2 for pair in pairs):
        raise _core.ArgumentError(f"{op}: {argument}: must be pairs {entries}; got {value!r}")
    return [(first, second) for first, second in pairs]


def index_list(op: str, argument: str, value: Any, *, names: bool = True) -> list[Any]:
    """Return an integer or a name as a list with one entry, and a sequence of them as a list."""
    is_single = isinstance(value, str) or to_index(value) is not None
    try:
        entries = [value] if is_single else list(value)
    except TypeError:
        entries = [None]
    found = [x if names and isinstance(x, str) else to_index(x) for x in entries]
    if None in found:
        kinds = "an integer, a name or a sequence of them" if names else "an integer or several"
        raise _core.ArgumentError(f"{op}: {argument}: must be {kinds}; got {value!r}")
    return found
