# Types of the compiled module. `make check` compares them with the module itself, so a function
# that is added or changed there needs a line here. Functions are documented where `nxla` wraps them.

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import EllipsisType, GenericAlias
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    Never,
    NoReturn,
    ParamSpec,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
    type_check_only,
)

import numpy as np
from typing_extensions import CapsuleType

from nxla._types import (
    Axes,
    Axis,
    DeviceLike,
    DTypeLike,
    Names,
    Padding,
    PerAxis,
    Shape,
    TensorLike,
)
from nxla.compiler import Compiler

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R_co = TypeVar("_R_co", covariant=True)
_S = TypeVar("_S")
_T = TypeVar("_T")

__version__: Final[str]

# Exceptions

class NxlaError(Exception):
    """Anything that nxla refuses or fails at."""

class ShapeError(NxlaError, ValueError):
    """Shapes, axes or sizes that do not fit; also a ValueError."""

class DTypeError(NxlaError, TypeError):
    """A dtype that an operation refuses; also a TypeError."""

class TraceError(NxlaError, RuntimeError):
    """A traced value used outside its trace; also a RuntimeError."""

class ArgumentError(NxlaError, ValueError):
    """Another wrong argument; also a ValueError."""

class GradientError(NxlaError, ValueError):
    """A gradient that cannot be taken; also a ValueError."""

class OptionError(NxlaError, ValueError):
    """An unknown compiler or option; also a ValueError."""

class DeviceError(NxlaError, RuntimeError):
    """The plugin, its device or its compiler; also a RuntimeError."""

class ExecutionError(NxlaError, RuntimeError):
    """What went wrong while a program ran; also a RuntimeError."""

class InternalError(NxlaError, RuntimeError):
    """A bug of nxla itself; also a RuntimeError."""

def _panic_for_tests(message: str) -> None: ...

# Element types

@final
class DType:
    """An element type, such as `nx.float32`.

    Prints and compares by its short name (`f32`). Comparing with anything gives True or False and
    never raises; a string or a numpy dtype that names the same type is equal.
    """

    def __new__(cls, value: DTypeLike) -> Self: ...
    @property
    def name(self) -> str:
        """The short name: `f32`, `s32`, `pred`."""

    @property
    def itemsize(self) -> int:
        """Bytes per element in memory."""

    @property
    def bits(self) -> int:
        """Bits that carry the value."""

    @property
    def kind(self) -> Literal["pred", "unsigned", "signed", "float", "complex"]:
        """What kind of numbers it holds."""

    @property
    def _float_limits(self) -> tuple[float, float, float] | None: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[DType], tuple[str]]: ...

pred: Final[DType]
u2: Final[DType]
u4: Final[DType]
u8: Final[DType]
u16: Final[DType]
u32: Final[DType]
u64: Final[DType]
s2: Final[DType]
s4: Final[DType]
s8: Final[DType]
s16: Final[DType]
s32: Final[DType]
s64: Final[DType]
f8_e5m2: Final[DType]
f8_e4m3fn: Final[DType]
bf16: Final[DType]
f16: Final[DType]
f32: Final[DType]
f64: Final[DType]
c64: Final[DType]
c128: Final[DType]

# Tensors and traced values

_Key: TypeAlias = TensorLike | builtins.slice | EllipsisType | None

@type_check_only
class _Operators:
    # What data and traced values have in common. It exists for type checkers only.
    __array_priority__: int
    __array_ufunc__: None
    @property
    def dtype(self) -> DType:
        """The element type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""

    @property
    def ndim(self) -> int:
        """The number of axes."""

    @property
    def size(self) -> int:
        """The number of elements."""

    @property
    def names(self) -> list[str | None]:
        """The names of the axes, None for those without."""

    @property
    def vectorized_axes(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes of the vectorized axes, which `shape` leaves out."""

    @property
    def T(self) -> Self:
        """With the axes reversed."""

    def __abs__(self) -> Self: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __invert__(self) -> Self: ...
    def __add__(self, value: TensorLike, /) -> Self: ...
    def __radd__(self, value: TensorLike, /) -> Self: ...
    def __sub__(self, value: TensorLike, /) -> Self: ...
    def __rsub__(self, value: TensorLike, /) -> Self: ...
    def __mul__(self, value: TensorLike, /) -> Self: ...
    def __rmul__(self, value: TensorLike, /) -> Self: ...
    def __truediv__(self, value: TensorLike, /) -> Self: ...
    def __rtruediv__(self, value: TensorLike, /) -> Self: ...
    def __floordiv__(self, value: TensorLike, /) -> Self: ...
    def __rfloordiv__(self, value: TensorLike, /) -> Self: ...
    def __mod__(self, value: TensorLike, /) -> Self: ...
    def __rmod__(self, value: TensorLike, /) -> Self: ...
    def __pow__(self, value: TensorLike, mod: None = None, /) -> Self: ...
    def __rpow__(self, value: TensorLike, mod: None = None, /) -> Self: ...
    def __matmul__(self, value: TensorLike, /) -> Self: ...
    def __rmatmul__(self, value: TensorLike, /) -> Self: ...
    def __and__(self, value: TensorLike, /) -> Self: ...
    def __rand__(self, value: TensorLike, /) -> Self: ...
    def __or__(self, value: TensorLike, /) -> Self: ...
    def __ror__(self, value: TensorLike, /) -> Self: ...
    def __xor__(self, value: TensorLike, /) -> Self: ...
    def __rxor__(self, value: TensorLike, /) -> Self: ...
    def __lshift__(self, value: TensorLike, /) -> Self: ...
    def __rlshift__(self, value: TensorLike, /) -> Self: ...
    def __rshift__(self, value: TensorLike, /) -> Self: ...
    def __rrshift__(self, value: TensorLike, /) -> Self: ...
    def __lt__(self, value: TensorLike, /) -> Self: ...
    def __le__(self, value: TensorLike, /) -> Self: ...
    def __gt__(self, value: TensorLike, /) -> Self: ...
    def __ge__(self, value: TensorLike, /) -> Self: ...
    # Comparing gives a tensor of truths, as it does everywhere among arrays.
    def __eq__(self, value: TensorLike, /) -> Self: ...  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
    def __ne__(self, value: TensorLike, /) -> Self: ...  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
    def __hash__(self) -> int: ...
    def __getitem__(self, key: _Key | tuple[_Key, ...], /) -> Self: ...
    # Always an error, so type checkers are to refuse them.
    def __setitem__(self, key: Never, value: Never, /) -> NoReturn: ...
    def __delitem__(self, key: Never, /) -> NoReturn: ...
    def __iter__(self) -> Iterator[Self]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __format__(self, format: str, /) -> str: ...
    def __float__(self) -> float: ...
    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, np.dtype[Any]]: ...

@final
class Device:
    """Where data lives and programs run: the host, or one device of a client.

    Devices are equal if they are the same, and to their own name.
    """

    def __new__(cls, name: DeviceLike) -> Self: ...
    @property
    def name(self) -> str:
        """The name, which no other device of the process has."""

    @property
    def platform(self) -> str:
        """The kind of hardware, such as `"host"`, `"cpu"` or `"cuda"`."""

    @property
    def client(self) -> str:
        """The name of the client, which no other client of the process has."""

    @property
    def index(self) -> int:
        """The number among the devices of its client."""

    @property
    def kind(self) -> str:
        """The model in the plugin's words; that of the host is `"host"`."""

    def memory_stats(self) -> dict[str, int] | None:
        """Bytes of its memory: `in_use`, and what else the plugin counts.

        These are `peak`, `limit`, `pool` and `largest_block`. None where nobody counts, as on the
        host.
        """

    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Device], tuple[str]]: ...

@final
class Tensor(_Operators):
    """An immutable array of numbers, in host memory or on a device.

    A device tensor may still be in the making; reading it waits.
    """

    @property
    def nbytes(self) -> int:
        """Bytes of data in memory."""

    @property
    def device(self) -> Device:
        """Where the data is."""

    def to_device(self, device: DeviceLike, /, *, copy: bool | None = None) -> Tensor:
        """The tensor itself if it is on a device, else a copy there.

        `copy=True` makes a copy in any case, `copy=False` none.
        """

    def transfer_to(self, device: DeviceLike, /) -> Tensor:
        """The tensor itself if it is on a device, else a copy there.

        This one is freed then, even if the copy fails.
        """

    def _first_bytes(self, limit: int | None = None) -> bytes: ...
    def is_released(self) -> bool:
        """Whether device memory has been freed, or given away to a program."""

    def is_ready(self) -> bool:
        """Whether reading would not wait."""

    def block_until_ready(self) -> Self:
        """Waits until the data is there; gives the tensor itself."""

    def deallocate(self) -> bool:
        """Frees device memory at once; whether there was anything to free.

        Host memory is freed with the last reference.
        """

    def to_host(self) -> Tensor:
        """A copy in host memory, or this tensor if it is there."""

    def item(self) -> Any:
        """The only element as a Python number."""

    def tolist(self) -> Any:
        """The elements as nested lists; a number for a scalar."""

    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """The data as a numpy array.

        It shares memory with a host tensor (read-only), and is a copy of a device tensor.
        """

    def _heatmap(self, title: str, cell: str | None) -> str: ...
    def __complex__(self) -> builtins.complex: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __reduce__(
        self,
    ) -> tuple[Any, tuple[bytes, DType, list[int], list[str | None] | None, list[str]]]: ...

@final
class Expr(_Operators):
    """A tensor inside a traced function: it has a dtype and a shape, but no data yet."""

    @property
    def op(self) -> str | None:
        """The name of the operation, as expression text spells it."""

    def item(self) -> NoReturn:
        """There is no number yet: raises an error that says what to use instead."""

    def tolist(self) -> NoReturn:
        """There are no numbers yet: raises an error that says what to use instead."""

@final
class Template:
    """Stands for an input of a shape and dtype; it has no data, so nothing can be computed with it."""

    def __new__(
        cls,
        shape: Shape,
        dtype: DTypeLike,
        names: Names | None = None,
        vectorized_axes: Sequence[tuple[str, int]] = ...,
    ) -> Self: ...
    @property
    def dtype(self) -> DType:
        """The element type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""

    @property
    def ndim(self) -> int:
        """The number of axes."""

    @property
    def size(self) -> int:
        """The number of elements."""

    @property
    def names(self) -> list[str | None]:
        """The names of the axes, None for those without."""

    @property
    def vectorized_axes(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes of the vectorized axes, which `shape` leaves out."""

    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# Traced and compiled functions

@final
class Expression:
    """A traced function: a graph of operations with inputs and outputs.

    `str()` gives its text. A notebook shows it as a picture.
    """

    @property
    def inputs(self) -> list[tuple[tuple[int, ...], DType]]:
        """Shape and dtype of each input."""

    @property
    def outputs(self) -> list[tuple[tuple[int, ...], DType]]:
        """Shape and dtype of each output."""

    @property
    def digest(self) -> str:
        """The structural digest as hexadecimal digits: equal for equal programs in every process."""

    @property
    def has_hooks(self) -> bool:
        """Whether the expression calls hooks."""

    def __len__(self) -> int:
        """The number of nodes."""

    def lines(
        self, limit: int | None = None, *, blocks: Literal["name", "body"] = "name"
    ) -> list[str]:
        """The lines of all outputs, which share their names, without a header.

        `blocks` tells whether composites are shown by name, or by what their bodies compute.
        """

    def to_text(self, limit: int | None = None, *, blocks: Literal["name", "body"] = "name") -> str:
        """The text, with at most `limit` nodes, and composites shown as for `lines`."""

    def to_svg(self) -> str:
        """A picture as SVG text."""

    def _repr_svg_(self) -> str: ...
    @property
    def nodes(self) -> list[Node]:
        """The nodes, operands before the operations that use them."""

    @property
    def output_nodes(self) -> list[Node]:
        """The nodes of the outputs."""

    @property
    def captured(self) -> list[Tensor]:
        """Large tensors that the function mentions; they are the last inputs, which `run` fills in."""

    def arrange(self, results: Sequence[Any]) -> Any:
        """One value for each output, in the container that the function gives."""

    def to_mermaid(self) -> str:
        """A picture as a Mermaid flowchart."""

    def run(self, *args: Any, **options: Any) -> Any:
        """Runs the expression; arguments as for the traced function."""

    def every_value(self) -> tuple[Expression, list[tuple[str, str, str | None]]]:
        """The expression whose result is every value of this one, and facts about each."""

    def op_counts(self) -> dict[str, int]:
        """How often each operation occurs."""

    def verify(self) -> None:
        """Checks every invariant of the graph; an error here is a bug of nxla."""

    def to_bytes(self) -> bytes:
        """The expression as bytes, to be stored or sent; see `from_bytes`."""

    @staticmethod
    def from_bytes(bytes: bytes) -> Expression:
        """An expression from its bytes; its result is a tuple of its outputs."""

@type_check_only
class _CacheReport(TypedDict):
    entries: int
    hits: int
    misses: int
    bytes: int
    digests: list[str]

@final
class Function(Generic[_P, _R_co]):
    """A function that runs compiled. Made by `nx.jit`, `nx.compile` and `nx.defn`."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[_P, _R_co]
    def __new__(
        cls,
        callable: Callable[_P, _R_co],
        name: str,
        options: Mapping[str, Any] | None = None,
        static_positions: Sequence[int] = ...,
        static_names: Sequence[str] = ...,
        donated: Sequence[int] = ...,
        debug_nans: bool = False,
        observer: Callable[..., object] | None = None,
    ) -> Self: ...
    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias: ...
    @property
    def callable(self) -> Callable[_P, _R_co]:
        """The function that is traced."""

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None, /) -> Self: ...
    @overload
    def __get__(
        self: Function[Concatenate[_T, _Q], _R_co], instance: _T, owner: type[Any] | None = None, /
    ) -> Callable[_Q, _R_co]: ...
    def warm_up(self, *args: Any, **kwargs: Any) -> None:
        """Traces and compiles for these arguments without running; templates stand for tensors."""

    def debug_expr(self, *args: Any, **kwargs: Any) -> Expression:
        """Traces for these arguments and gives the expression."""

    def compile(self, *args: Any) -> Compiled[_R_co]:
        """Compiles for the types of these arguments only; templates stand for tensors."""

    def cache_report(self) -> _CacheReport:
        """What the function has compiled: entries, hits, misses and the digests of its programs."""

    def clear_cache(self) -> None:
        """Forgets what the function has compiled."""

@final
class Compiled(Generic[_R_co]):
    """A function compiled for certain types of arguments. Made by `nx.compile`."""

    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias: ...
    @property
    def digest(self) -> str:
        """The digest of the program."""

    def __call__(self, *args: Any) -> _R_co: ...
    def check(self, *args: Any) -> None:
        """Raises what a call with these arguments would raise about their types."""

@final
class Stream:
    """A running stream. It ends when it is forgotten."""

    def __new__(
        cls,
        step: Compiled[Any],
        template: Any,
        initial: Any,
        constants: tuple[Any, ...],
        bound: int | None = None,
    ) -> Self: ...
    def send(self, chunk: Any, timeout: float | None = None) -> None:
        """Hands over a chunk; waits for room, so many seconds at most."""

    def recv(self, timeout: float | None = None) -> Any:
        """The next result; waits for it, so many seconds at most."""

    def poll(self, wake: Callable[[], object]) -> tuple[Any, ...] | None:
        """The next result in a tuple, if it is there.

        `None` if it is to come, and then `wake` is called once when it is worth asking again; an
        empty tuple if everything has been received.
        """

    def recv_deferred(self, future: Any) -> None:
        """Receives the next result without waiting: a future is told of it."""

    @property
    def in_flight(self) -> int:
        """The number of chunks sent whose results have not been received."""

    def done(self) -> Any:
        """Ends the stream, and gives its state."""

    def cancel(self) -> None:
        """Ends the stream without its state; chunks that wait for their step are dropped."""

@final
class Differentiable:
    """A function that has been traced, with the values that it was called with."""

    def jvp(self, tangents: Sequence[TensorLike]) -> tuple[list[Expr], list[Expr]]:
        """The results with what is passed on, and how the results change."""

    def linear(self, forward: bool) -> tuple[list[Expr], list[Expr], LinearMap]:
        """The results with what is passed on, what a map has to know, and the map."""

    def jacobian(self, forward: bool | None = None) -> tuple[list[Expr], list[list[Expr]]]:
        """The results with what is passed on, and for each result a derivative by each value."""

    def diagonal(self) -> list[Expr]:
        """The derivative of each element of a result by the same element of its value."""

@final
class LinearMap:
    """A derivative at one point, to be applied in any trace."""

    def apply(self, known: Sequence[TensorLike], arguments: Sequence[TensorLike]) -> list[Expr]:
        """What the map gives, from what it has to know and its arguments."""

def values_and_grads(
    values: Sequence[TensorLike],
    function: Callable[[list[Expr]], tuple[TensorLike, Sequence[TensorLike]]],
) -> tuple[list[Expr], list[Expr]]: ...
def trace_derivative(
    values: Sequence[TensorLike],
    function: Callable[[list[Expr]], tuple[Sequence[TensorLike], Sequence[TensorLike]]],
    reverse: bool,
) -> Differentiable: ...
def map_entries(
    values: Sequence[TensorLike],
    axes: Sequence[int | None],
    out_axis: int,
    function: Callable[[list[Expr]], Sequence[TensorLike]],
) -> list[Expr]: ...

# Stages

@final
class Node:
    """A node of an expression: an operation and its operands."""

    @property
    def op(self) -> str:
        """The name of the operation, such as `"dot"`."""

    @property
    def id(self) -> int:
        """The position in the graph; operands have smaller ones."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis; empty for an operation with several results."""

    @property
    def dtype(self) -> DType | None:
        """The element type; None for an operation with several results."""

    @property
    def names(self) -> list[str | None]:
        """The names of the axes, None for those without."""

    @property
    def results(self) -> int:
        """How many results the operation has; `elem` nodes take them apart."""

    @property
    def attributes(self) -> dict[str, Any]:
        """What the operation is told besides its operands: axes, sizes, and the like."""

    @property
    def regions(self) -> list[Expression]:
        """The expressions inside, such as the body of a loop; they take operands of the node."""

    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def note(self) -> str | None:
        """The note of an annotation; None for every other operation."""

    @property
    def args(self) -> list[Node]:
        """The operands."""

    @property
    def line(self) -> str | None:
        """The user's line, as `file.py:3`."""

@final
class Stage:
    """One stage of a split expression."""

    @property
    def id(self) -> int:
        """Its number; stages are listed in an order in which they can run."""

    @property
    def expr(self) -> Expression:
        """What it computes."""

    @property
    def arguments(self) -> list[tuple[int | None, int]]:
        """Where each argument comes from.

        `(None, k)` is input `k` of the whole, `(s, k)` output `k` of stage `s`.
        """

    @property
    def dependencies(self) -> list[int]:
        """The stages that must have run before."""

    @property
    def digest(self) -> str:
        """The digest of its program."""

    def to_bytes(self) -> bytes:
        """The stage as bytes, to be run elsewhere; see `from_bytes`."""

    @staticmethod
    def from_bytes(bytes: bytes) -> Stage:
        """A stage from its bytes."""

    def run(self, *args: Any, **options: Any) -> list[Tensor]:
        """Runs the stage by itself on one tensor for each argument; gives a list."""

    def __reduce__(self) -> tuple[Callable[[bytes], Stage], tuple[bytes]]: ...

@final
class StageGraph:
    """A split expression: stages that hand values to each other."""

    @property
    def stages(self) -> list[Stage]:
        """The stages, in an order in which they can run."""

    @property
    def levels(self) -> list[list[int]]:
        """Groups of stages that can run at the same time."""

    @property
    def outputs(self) -> list[tuple[int | None, int]]:
        """Where each result comes from, as in `Stage.arguments`."""

    def __len__(self) -> int: ...
    def run(
        self,
        args: tuple[Any, ...],
        options: Mapping[str, Any] | None = None,
        submit: Callable[[Stage, list[Tensor], dict[str, Any]], Any] | None = None,
    ) -> Any:
        """Runs all stages; arguments as for the traced function.

        `submit(stage, inputs, options)` gives a future of what the stage gives, wherever it runs;
        without it, threads run them.
        """

    def explain(self) -> str:
        """A table of the stages with their operations, arguments and bytes."""

    def to_svg(self) -> str:
        """A picture of the stages as SVG text."""

    def _repr_svg_(self) -> str: ...

@overload
def split(
    expression: Expression, decide: Callable[[Node], object], state: None = None
) -> tuple[StageGraph, None]: ...
@overload
def split(
    expression: Expression, decide: Callable[[Node, _S], tuple[object, _S]], state: _S
) -> tuple[StageGraph, _S]: ...

# Containers, options and compilers

@final
class TreeDef:
    """The structure of a Python value, to put it together again."""

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The container filled with leaves."""

    def leaf_path(self, leaf: int) -> str:
        """Where a leaf is, as one would write it after the container."""

    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def register_container(
    cls: type[_T],
    flatten: Callable[[_T], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, tuple[Any, ...]], _T],
) -> None: ...
def tree_flatten(value: Any) -> tuple[list[Any], TreeDef]: ...
def get_default_options() -> dict[str, Any]: ...
def replace_default_options(options: Mapping[str, Any] | None) -> dict[str, Any]: ...
def get_global_default_options() -> dict[str, Any]: ...
def replace_global_default_options(options: Mapping[str, Any]) -> dict[str, Any]: ...
def has_own_options() -> bool: ...
def compilers() -> list[str]: ...
def register_compiler(compiler: Compiler) -> str: ...
def current_compiler() -> str | None: ...
def partitions_options(options: Mapping[str, Any] | None = None) -> list[dict[str, Any]]: ...
def to_backend(options: Mapping[str, Any] | None = None) -> tuple[str, int]: ...
def is_tracing() -> bool: ...
def set_package_directory(directory: str) -> None: ...
def set_reassociate_floats(allow: bool) -> bool: ...
def wait_until_idle() -> None: ...
def set_debug_nans(check: bool) -> bool: ...
def compare_values(left: Tensor, right: Tensor) -> tuple[int, tuple[int, ...], float, int]: ...
def cache_report() -> dict[str, int]: ...
def set_cache_limit(bytes: int) -> None: ...
def transfer_report() -> dict[str, int]: ...
def devices() -> list[Device]: ...
def on_device(device: DeviceLike, function: Callable[..., _T], *args: Any) -> _T: ...
def place(x: Tensor, device: DeviceLike | None = None) -> Tensor: ...
def take_apart(value: Any) -> tuple[str, type | None, Any, list[Any]] | None: ...
def put_together(kind: str, container: type | None, extra: Any, children: Sequence[Any]) -> Any: ...

# Control flow and effects

def cond(
    clauses: Sequence[tuple[TensorLike, Callable[[], Any]]], otherwise: Callable[[], Any]
) -> Any: ...
def while_loop(
    condition: Callable[[_S], TensorLike],
    body: Callable[[_S], _S],
    initial: _S,
    function: str = "while_loop",
    roots: Sequence[tuple[str, str]] = ...,
) -> _S: ...
def hook(
    value: _T, name: str | None = None, function: Callable[[Any], object] | None = None
) -> _T: ...
def runtime_call(
    function: Callable[[list[Tensor]], list[Tensor]],
    values: Sequence[TensorLike],
    templates: Sequence[Template],
) -> list[Tensor]: ...
def annotate(value: _T, note: str) -> _T: ...
def custom_grad(
    value: Sequence[TensorLike],
    inputs: Sequence[TensorLike],
    rule: Callable[[list[Tensor]], Sequence[TensorLike]],
) -> list[Tensor]: ...
def custom_jvp(
    value: Sequence[TensorLike],
    inputs: Sequence[TensorLike],
    rule: Callable[[list[Tensor]], Sequence[TensorLike]],
) -> list[Tensor]: ...
def stop_grad(x: TensorLike) -> Tensor: ...

# Building by hand

def build_expression(function: Callable[[], Any]) -> Expression: ...
def expr_parameter(template: Template) -> Tensor: ...
def expr_constant(
    value: builtins.complex, dtype: DTypeLike | None = None, shape: Shape | None = None
) -> Tensor: ...
def expr_tensor(value: TensorLike) -> Tensor: ...
def expr_metadata(
    values: Sequence[TensorLike], inspect: str | None = None, stop_grad: bool = False
) -> list[Tensor]: ...
def expr_block(
    name: str,
    attributes: Sequence[tuple[str, str]],
    values: Sequence[TensorLike],
    function: Callable[[list[Tensor]], Iterable[TensorLike]],
) -> list[Tensor]: ...
def expr_call(expression: Expression, values: Sequence[TensorLike]) -> Any: ...
def put_args(node: Node, values: Sequence[TensorLike | Sequence[TensorLike]]) -> Any: ...

# Vectorized axes

def vectorize(x: TensorLike, axes: Sequence[tuple[str, int | None]]) -> Tensor: ...
def devectorize(x: TensorLike, keep_names: bool = True) -> Tensor: ...
def revectorize(
    x: TensorLike,
    axes: Sequence[tuple[str, int | None]],
    shape: Shape | None = None,
    names: Names | None = None,
) -> Tensor: ...
def align_vectors(
    values: Sequence[TensorLike], align_ranks: bool, repeat: bool
) -> list[Tensor]: ...

# Operations

def tensor_from_bytes(
    bytes: bytes,
    dtype: DTypeLike,
    shape: Sequence[int],
    names: Names | None = None,
    vectorized: Sequence[str] = ...,
) -> Tensor: ...
def abs(x: TensorLike) -> Tensor: ...
def acos(x: TensorLike) -> Tensor: ...
def acosh(x: TensorLike) -> Tensor: ...
def add(x: TensorLike, y: TensorLike) -> Tensor: ...
def adjoint(x: TensorLike) -> Tensor: ...
def all(x: TensorLike, axes: Axes | None = None, keep_axes: bool = False) -> Tensor: ...
def all_close(
    x: TensorLike, y: TensorLike, relative: float, absolute: float, equal_nan: bool
) -> Tensor: ...
def any(x: TensorLike, axes: Axes | None = None, keep_axes: bool = False) -> Tensor: ...
def argmax(
    x: TensorLike,
    axis: Axis | None = None,
    keep_axis: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike | None = None,
) -> Tensor: ...
def argmin(
    x: TensorLike,
    axis: Axis | None = None,
    keep_axis: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike | None = None,
) -> Tensor: ...
def argsort(
    x: TensorLike,
    axis: Axis = ...,
    descending: bool = False,
    stable: bool = True,
    dtype: DTypeLike | None = None,
) -> Tensor: ...
def as_type(x: TensorLike, dtype: DTypeLike) -> Tensor: ...
def asin(x: TensorLike) -> Tensor: ...
def asinh(x: TensorLike) -> Tensor: ...
def atan(x: TensorLike) -> Tensor: ...
def atan2(x: TensorLike, y: TensorLike) -> Tensor: ...
def atanh(x: TensorLike) -> Tensor: ...
def bitcast(x: TensorLike, dtype: DTypeLike) -> Tensor: ...
def bitwise_and(x: TensorLike, y: TensorLike) -> Tensor: ...
def bitwise_not(x: TensorLike) -> Tensor: ...
def bitwise_or(x: TensorLike, y: TensorLike) -> Tensor: ...
def bitwise_xor(x: TensorLike, y: TensorLike) -> Tensor: ...
def broadcast(
    x: TensorLike, shape: Shape, axes: Sequence[int] | None = None, names: Names | None = None
) -> Tensor: ...
def broadcast_together(operands: Sequence[TensorLike]) -> list[Tensor]: ...
def cbrt(x: TensorLike) -> Tensor: ...
def ceil(x: TensorLike) -> Tensor: ...
def cholesky(a: TensorLike) -> Tensor: ...
def clip(x: TensorLike, min: TensorLike, max: TensorLike) -> Tensor: ...
def complex(x: TensorLike, y: TensorLike) -> Tensor: ...
def concatenate(parts: Sequence[TensorLike], axis: Axis = ...) -> Tensor: ...
def conjugate(x: TensorLike) -> Tensor: ...
def conv(
    input: TensorLike,
    kernel: TensorLike,
    strides: PerAxis | None = None,
    padding: Padding | None = None,
    input_dilation: PerAxis | None = None,
    kernel_dilation: PerAxis | None = None,
    feature_groups: int = 1,
    batch_groups: int = 1,
    input_permutation: Axes | None = None,
    kernel_permutation: Axes | None = None,
    output_permutation: Axes | None = None,
) -> Tensor: ...
def cos(x: TensorLike) -> Tensor: ...
def cosh(x: TensorLike) -> Tensor: ...
def count_leading_zeros(x: TensorLike) -> Tensor: ...
def covariance(x: TensorLike, mean: TensorLike | None = None, ddof: int = 0) -> Tensor: ...
def cross(x: TensorLike, y: TensorLike, axis: int) -> Tensor: ...
def cumulative_max(x: TensorLike, axis: Axis = ..., reverse: bool = False) -> Tensor: ...
def cumulative_min(x: TensorLike, axis: Axis = ..., reverse: bool = False) -> Tensor: ...
def cumulative_product(x: TensorLike, axis: Axis = ..., reverse: bool = False) -> Tensor: ...
def cumulative_sum(x: TensorLike, axis: Axis = ..., reverse: bool = False) -> Tensor: ...
def determinant(a: TensorLike) -> Tensor: ...
def diff(x: TensorLike, order: int = 1, axis: Axis = ...) -> Tensor: ...
def divide(x: TensorLike, y: TensorLike) -> Tensor: ...
def dot(
    x: TensorLike,
    y: TensorLike,
    x_contract: Axes | None = None,
    y_contract: Axes | None = None,
    x_batch: Axes | None = None,
    y_batch: Axes | None = None,
) -> Tensor: ...
def eigh(a: TensorLike) -> list[Tensor]: ...
def equal(x: TensorLike, y: TensorLike) -> Tensor: ...
def erf(x: TensorLike) -> Tensor: ...
def erf_inv(x: TensorLike) -> Tensor: ...
def erfc(x: TensorLike) -> Tensor: ...
def exp(x: TensorLike) -> Tensor: ...
def expm1(x: TensorLike) -> Tensor: ...
def eye(shape: Shape, dtype: DTypeLike | None = None, names: Names | None = None) -> Tensor: ...
def fft(x: TensorLike, length: int | None = None, axis: Axis = ...) -> Tensor: ...
def fftn(
    x: TensorLike, lengths: Sequence[int] | None = None, axes: Axes | None = None
) -> Tensor: ...
def flatten(x: TensorLike, axes: Axes | None = None) -> Tensor: ...
def floor(x: TensorLike) -> Tensor: ...
def floor_divide(x: TensorLike, y: TensorLike) -> Tensor: ...
def floor_remainder(x: TensorLike, y: TensorLike) -> Tensor: ...
def full(
    shape: Shape, value: TensorLike, dtype: DTypeLike | None = None, names: Names | None = None
) -> Tensor: ...
def gather(x: TensorLike, indices: TensorLike, axes: Axes | None = None) -> Tensor: ...
def greater(x: TensorLike, y: TensorLike) -> Tensor: ...
def greater_equal(x: TensorLike, y: TensorLike) -> Tensor: ...
def ifft(x: TensorLike, length: int | None = None, axis: Axis = ...) -> Tensor: ...
def ifftn(
    x: TensorLike, lengths: Sequence[int] | None = None, axes: Axes | None = None
) -> Tensor: ...
def imag(x: TensorLike) -> Tensor: ...
def indexed_add(
    x: TensorLike, indices: TensorLike, updates: TensorLike, axes: Axes | None = None
) -> Tensor: ...
def indexed_put(
    x: TensorLike, indices: TensorLike, updates: TensorLike, axes: Axes | None = None
) -> Tensor: ...
def invert(a: TensorLike) -> Tensor: ...
def iota(
    shape: Shape,
    axis: Axis | None = None,
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor: ...
def irfft(x: TensorLike, length: int | None = None, axis: Axis = ...) -> Tensor: ...
def irfftn(
    x: TensorLike, lengths: Sequence[int] | None = None, axes: Axes | None = None
) -> Tensor: ...
def is_infinity(x: TensorLike) -> Tensor: ...
def is_nan(x: TensorLike) -> Tensor: ...
def least_squares(a: TensorLike, b: TensorLike, relative: float | None) -> Tensor: ...
def left_shift(x: TensorLike, y: TensorLike) -> Tensor: ...
def less(x: TensorLike, y: TensorLike) -> Tensor: ...
def less_equal(x: TensorLike, y: TensorLike) -> Tensor: ...
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor: ...
def log(x: TensorLike) -> Tensor: ...
def log10(x: TensorLike) -> Tensor: ...
def log1p(x: TensorLike) -> Tensor: ...
def log2(x: TensorLike) -> Tensor: ...
def logical_and(x: TensorLike, y: TensorLike) -> Tensor: ...
def logical_not(x: TensorLike) -> Tensor: ...
def logical_or(x: TensorLike, y: TensorLike) -> Tensor: ...
def logical_xor(x: TensorLike, y: TensorLike) -> Tensor: ...
def logsumexp(
    x: TensorLike,
    axes: Axes | None = None,
    keep_axes: bool = False,
    scale: TensorLike | None = None,
) -> Tensor: ...
def lu(a: TensorLike) -> list[Tensor]: ...
def make_diagonal(x: TensorLike, offset: int = 0) -> Tensor: ...
def matmul(x: TensorLike, y: TensorLike) -> Tensor: ...
def matrix_power(a: TensorLike, power: int) -> Tensor: ...
def matrix_rank(a: TensorLike, relative: float | None) -> Tensor: ...
def max(x: TensorLike, y: TensorLike) -> Tensor: ...
def mean(x: TensorLike, axes: Axes | None = None, keep_axes: bool = False) -> Tensor: ...
def median(x: TensorLike, axis: Axis | None = None, keep_axis: bool = False) -> Tensor: ...
def min(x: TensorLike, y: TensorLike) -> Tensor: ...
def mode(x: TensorLike, axis: Axis | None = None, keep_axis: bool = False) -> Tensor: ...
def multiply(x: TensorLike, y: TensorLike) -> Tensor: ...
def negate(x: TensorLike) -> Tensor: ...
def new_axis(x: TensorLike, axis: int, name: str | None = None) -> Tensor: ...
def norm(
    x: TensorLike,
    order: float | str | None = None,
    axes: Axes | None = None,
    keep_axes: bool = False,
) -> Tensor: ...
def not_equal(x: TensorLike, y: TensorLike) -> Tensor: ...
def outer(x: TensorLike, y: TensorLike) -> Tensor: ...
def pad(x: TensorLike, value: TensorLike, config: Sequence[Sequence[int]]) -> Tensor: ...
def pad_outer(x: TensorLike, rule: str, widths: Sequence[Sequence[int]]) -> Tensor: ...
def phase(x: TensorLike) -> Tensor: ...
def pinv(a: TensorLike, relative: float | None) -> Tensor: ...
def population_count(x: TensorLike) -> Tensor: ...
def pow(x: TensorLike, y: TensorLike) -> Tensor: ...
def product(x: TensorLike, axes: Axes | None = None, keep_axes: bool = False) -> Tensor: ...
def put_diagonal(x: TensorLike, diagonal: TensorLike, offset: int = 0) -> Tensor: ...
def put_slice(x: TensorLike, starts: Sequence[TensorLike], update: TensorLike) -> Tensor: ...
def qr(a: TensorLike, complete: bool) -> list[Tensor]: ...
def quotient(x: TensorLike, y: TensorLike) -> Tensor: ...
def random_choice(
    key: TensorLike,
    x: TensorLike,
    p: TensorLike | None,
    samples: int,
    axis: Axis | None,
    replace: bool,
) -> list[Tensor]: ...
def random_fold_in(key: TensorLike, data: TensorLike) -> Tensor: ...
def random_gumbel(
    key: TensorLike,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]: ...
def random_integers(
    key: TensorLike,
    low: TensorLike,
    high: TensorLike,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]: ...
def random_key(seed: TensorLike) -> Tensor: ...
def random_multivariate_normal(
    key: TensorLike,
    mean: TensorLike,
    covariance: TensorLike,
    method: str,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]: ...
def random_normal(
    key: TensorLike,
    mean: TensorLike,
    deviation: TensorLike,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]: ...
def random_shuffle(
    key: TensorLike, x: TensorLike, axis: Axis, independent: bool
) -> list[Tensor]: ...
def random_split(key: TensorLike, parts: int) -> Tensor: ...
def random_uniform(
    key: TensorLike,
    low: TensorLike,
    high: TensorLike,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]: ...
def real(x: TensorLike) -> Tensor: ...
def reduce(
    x: TensorLike,
    initial: TensorLike,
    function: Callable[[Tensor, Tensor], TensorLike],
    axes: Axes | None = None,
    keep_axes: bool = False,
) -> Tensor: ...
def reduce_max(x: TensorLike, axes: Axes | None = None, keep_axes: bool = False) -> Tensor: ...
def reduce_min(x: TensorLike, axes: Axes | None = None, keep_axes: bool = False) -> Tensor: ...
def remainder(x: TensorLike, y: TensorLike) -> Tensor: ...
def rename(x: TensorLike, names: Names) -> Tensor: ...
def reshape(x: TensorLike, shape: Shape, names: Names | None = None) -> Tensor: ...
def result_type(*operands: TensorLike | DTypeLike) -> DType: ...
def reverse(x: TensorLike, axes: Axes | None = None) -> Tensor: ...
def rfft(x: TensorLike, length: int | None = None, axis: Axis = ...) -> Tensor: ...
def rfftn(
    x: TensorLike, lengths: Sequence[int] | None = None, axes: Axes | None = None
) -> Tensor: ...
def right_shift(x: TensorLike, y: TensorLike) -> Tensor: ...
def round(x: TensorLike) -> Tensor: ...
def round_half_even(x: TensorLike) -> Tensor: ...
def rsqrt(x: TensorLike) -> Tensor: ...
def select(predicate: TensorLike, on_true: TensorLike, on_false: TensorLike) -> Tensor: ...
def sigmoid(x: TensorLike) -> Tensor: ...
def sign(x: TensorLike) -> Tensor: ...
def sin(x: TensorLike) -> Tensor: ...
def singular_values(a: TensorLike) -> Tensor: ...
def sinh(x: TensorLike) -> Tensor: ...
def slice(
    x: TensorLike,
    starts: Sequence[TensorLike],
    lengths: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Tensor: ...
def slice_along_axis(
    x: TensorLike, start: TensorLike, length: int, axis: Axis = ..., stride: int = 1
) -> Tensor: ...
def slogdet(a: TensorLike) -> list[Tensor]: ...
def solve(a: TensorLike, b: TensorLike) -> Tensor: ...
def sort(
    x: TensorLike, axis: Axis = ..., descending: bool = False, stable: bool = True
) -> Tensor: ...
def split_at(x: TensorLike, index: int, axis: Axis = ...) -> tuple[Tensor, Tensor]: ...
def sqrt(x: TensorLike) -> Tensor: ...
def squeeze(x: TensorLike, axes: Axes | None = None) -> Tensor: ...
def stack(parts: Sequence[TensorLike], axis: int = 0, name: str | None = None) -> Tensor: ...
def standard_deviation(
    x: TensorLike, axes: Axes | None = None, keep_axes: bool = False, ddof: int = 0
) -> Tensor: ...
def subtract(x: TensorLike, y: TensorLike) -> Tensor: ...
def sum(x: TensorLike, axes: Axes | None = None, keep_axes: bool = False) -> Tensor: ...
def svd(a: TensorLike, full: bool) -> list[Tensor]: ...
def take(x: TensorLike, indices: TensorLike, axis: Axis = ...) -> Tensor: ...
def take_along_axis(x: TensorLike, indices: TensorLike, axis: Axis = ...) -> Tensor: ...
def take_diagonal(x: TensorLike, offset: int = 0) -> Tensor: ...
def tan(x: TensorLike) -> Tensor: ...
def tanh(x: TensorLike) -> Tensor: ...
def tensor(value: Any, dtype: DTypeLike | None = None, copy: bool | None = None) -> Tensor: ...
def tile(x: TensorLike, repetitions: Sequence[int]) -> Tensor: ...
def top_k(x: TensorLike, k: int = 1) -> tuple[Tensor, Tensor]: ...
def trace(a: TensorLike, offset: int) -> Tensor: ...
def transpose(x: TensorLike, axes: Axes | None = None) -> Tensor: ...
def tri(rows: int, columns: int, k: int = 0) -> Tensor: ...
def triangular_solve(
    a: TensorLike,
    b: TensorLike,
    lower: bool = True,
    left_side: bool = True,
    transform: Literal["none", "transpose", "conjugate"] = "none",
) -> Tensor: ...
def tril(x: TensorLike, k: int = 0) -> Tensor: ...
def triu(x: TensorLike, k: int = 0) -> Tensor: ...
def variance(
    x: TensorLike, axes: Axes | None = None, keep_axes: bool = False, ddof: int = 0
) -> Tensor: ...
def weighted_mean(
    x: TensorLike, weights: TensorLike, axes: Axes | None = None, keep_axes: bool = False
) -> Tensor: ...
def window_max(
    x: TensorLike,
    dimensions: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding | None = None,
    dilations: PerAxis | None = None,
) -> Tensor: ...
def window_mean(
    x: TensorLike,
    dimensions: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding | None = None,
    dilations: PerAxis | None = None,
) -> Tensor: ...
def window_min(
    x: TensorLike,
    dimensions: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding | None = None,
    dilations: PerAxis | None = None,
) -> Tensor: ...
def window_product(
    x: TensorLike,
    dimensions: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding | None = None,
    dilations: PerAxis | None = None,
) -> Tensor: ...
def window_reduce(
    x: TensorLike,
    initial: TensorLike,
    function: Callable[[Tensor, Tensor], TensorLike],
    dimensions: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding | None = None,
    dilations: PerAxis | None = None,
) -> Tensor: ...
def window_scatter_max(
    x: TensorLike,
    source: TensorLike,
    initial: TensorLike,
    dimensions: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding | None = None,
) -> Tensor: ...
def window_scatter_min(
    x: TensorLike,
    source: TensorLike,
    initial: TensorLike,
    dimensions: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding | None = None,
) -> Tensor: ...
def window_sum(
    x: TensorLike,
    dimensions: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding | None = None,
    dilations: PerAxis | None = None,
) -> Tensor: ...
