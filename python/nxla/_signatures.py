"""Caches by the signature of a call, and of the programs that functions of the package run."""

from __future__ import annotations

import functools
import itertools
import threading
from collections import OrderedDict

from nxla import _core
from nxla._values import as_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Any, TypeVar

    from nxla._core import Lazy, Template, Tensor
    from nxla._types import TensorLike

    R = TypeVar("R")
    V = TypeVar("V")

#: The number of values in a cache. A program of XLA for several devices takes a few megabytes.
LIMIT = 128


class BoundedCache:
    """A dict that drops the least recently used value; threads may share it."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get_or_make(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a key, which `make` returns if the key is not known."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                known: V = self._values[key]
                return known
        # `make` may compile for seconds, or call another function with this cache.
        value = make()
        with self._lock:
            # Threads that missed at the same time share the first value.
            value = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            while len(self._values) > LIMIT:
                self._values.popitem(last=False)
        return value


#: Compiled functions, by the key of `run_traced` and the Python scalars among the operands.
_programs = BoundedCache()


def run_traced(
    function: Callable[..., R], name: str, *operands: TensorLike, key: Hashable = None
) -> R:
    """Run a function that needs a trace, in the current trace or in a new one.

    With a `key` the compiled function is stored, and later calls with equal keys and Python scalars
    run it. All other values that the function uses must follow from the key and its arguments.
    """
    # Keep Python scalars, which adopt the dtype of the other operands.
    is_plain = [isinstance(operand, bool | int | float | complex) for operand in operands]
    with_dtype = [x for x, plain in zip(operands, is_plain, strict=True) if not plain]
    tensors = as_tensors(name, *with_dtype)
    # The stored function must not keep tensors alive.
    scalars = [x if plain else None for x, plain in zip(operands, is_plain, strict=True)]

    def call(*tensors: Tensor) -> R:
        given = iter(tensors)
        pairs = zip(scalars, is_plain, strict=True)
        return function(*(scalar if plain else next(given) for scalar, plain in pairs))

    if _core.is_tracing():
        return call(*tensors)
    if key is None:
        return _core.Function(call, name)(*tensors)
    # The scalars 1, 1.0 and True are equal, but their representations differ.
    stored = key, tuple(None if x is None else repr(x) for x in scalars)
    return _programs.get_or_make(stored, lambda: _core.Function(call, name))(*tensors)


class SignatureCache:
    """Values by the signature of a call, which is the signature of a call of a jitted function.

    It contains the types of the tensors, the containers, and the values and classes of the static
    arguments. An argument that could change unnoticed is an error, as it is for `nxla.jit`.

    Parameters
    ----------
    function : callable
        The function that is called, or one with its arguments, which errors name.
    name : str
        The name of the function, for errors.
    static : sequence of int
        The positions of static arguments.
    """

    def __init__(self, function: Callable[..., Any], name: str, static: Sequence[int] = ()) -> None:
        numbers = itertools.count()

        # A function of the runtime is traced once for each signature. The number of the trace is a
        # key of a dict in its result, so the program computes nothing.
        @functools.wraps(function)
        def number(*_args: Any, **_named: Any) -> dict[int, tuple[()]]:
            return {next(numbers): ()}

        # The evaluator has no settings, and "force" also finds the number inside a trace.
        options = {"compiler": "evaluator", "on_conflict": "force"}
        self._number = _core.Function(number, name, options, static)
        self._values = BoundedCache()

    def get_or_make(self, args: Sequence[Any], settings: Hashable, make: Callable[[], V]) -> V:
        """Return the value for arguments and settings, which `make` returns in the first call.

        Parameters
        ----------
        args : sequence
            The arguments; see `without_data`.
        settings : hashable
            Further parts of the key.
        make : callable
            A function without arguments.
        """
        (number,) = self._number(*args)
        return self._values.get_or_make((number, settings), make)


def without_data(kind: Template) -> Lazy:
    """Return a tensor of a signature: it has the type of a template, and its data is never read."""
    return _core.Lazy(kind, _no_data)


def _no_data() -> Any:
    raise AssertionError("the program of a signature reads no data")
