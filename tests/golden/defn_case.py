"""Common parts of the cases of numerical functions: reading, running and judging a case.

A case has several aspects: the returned values (`result`), the values of hooks (`calls`), the
output (`stdout`), the printed expression (`expr`), the derivative (`grad`), and the stages
(`stages`). Each aspect has a separate verdict.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import nxla as nx
from golden import compare, errors, text, values
from golden.elixir import load
from golden.elixir.interpreter import Module
from golden.values import Failure, decode, to_nxla

#: Further exceptions that correspond to an exception of Nx in numerical functions, which check
#: their arguments and reject reads of traced values.
EXCEPTIONS: dict[str, tuple[type[Exception], ...]] = {
    "ArgumentError": (IndexError, nx.TraceError, nx.GradientError),
    "CompileError": (nx.ArgumentError, nx.ShapeError, nx.DTypeError, nx.TraceError),
    "Protocol.UndefinedError": (nx.ArgumentError, nx.DTypeError),
    # Tensors do not change; Python raises a TypeError.
    "RuntimeError": (nx.GradientError, TypeError),
}


@dataclass(frozen=True)
class Verdict:
    """The outcome of one aspect of a case; `reason` is None if it equals the recorded one."""

    aspect: str
    reason: str | None
    #: True if the case raised an error.
    raised: bool = False


@dataclass
class Recorder:
    """Implements ``rec(tag, tensor)`` of the sources, and the hooks that a case installs."""

    calls: list[tuple[str, Any]] = field(default_factory=list)

    def __call__(self, tag: str, value: Any) -> Any:
        """Record a value under a name."""
        self.calls.append((str(tag), value))
        return value

    def hooks(self, options: str) -> dict[str, Callable[[Any], None]]:
        """Create the hooks that ``jit_opts`` names; each records values under its name."""
        names = re.findall(r"(\w+): records", options)
        tags = {name: "custom" if name == "example" else name for name in names}
        return {
            name: lambda value, tag=tag: self.calls.append((tag, value))
            for name, tag in tags.items()
        }


@dataclass
class Case:
    """One case, decoded."""

    raw: dict[str, Any]
    inputs: list[Any]
    expected: Any

    @property
    def id(self) -> str:
        """The name of the case."""
        return str(self.raw["id"])

    @property
    def kind(self) -> str:
        """The kind of the case: defn, snippet or graph."""
        return self.id.split("/")[0]

    @property
    def tolerance(self) -> compare.Loose | None:
        """The tolerance of numbers, if it differs from the default."""
        return compare.LOOSE["Nx.LinAlg"] if "Nx.LinAlg" in self.raw["source"] else None

    def module(self, recorder: Recorder) -> Module:
        """Read the source."""
        return load(self.raw["source"], {"rec": recorder})

    def operands(self) -> list[Any]:
        """Create the inputs: tensors of nxla, numbers, and containers of them."""
        return [materialize(value) for value in self.inputs]


def read(raw: dict[str, Any]) -> Case:
    """Decode a case."""
    return Case(raw, [decode(value) for value in raw["inputs"]], decode_result(raw.get("result")))


def decode_result(raw: Any) -> Any:
    """Decode a result, which may contain printed expressions."""
    if isinstance(raw, dict) and "expr" in raw:
        return Text(raw["expr"])
    if isinstance(raw, dict) and "tuple" in raw:
        return tuple(decode_result(item) for item in raw["tuple"])
    return decode(raw)


@dataclass(frozen=True)
class Text:
    """A printed expression as the expected value."""

    text: str


def materialize(value: Any) -> Any:
    """Replace recorded tensors by tensors of nxla."""
    if isinstance(value, values.Atom):
        return str(value.name)
    return values.replace(value, to_nxla)


@contextlib.contextmanager
def backend(name: str) -> Iterator[None]:
    """Run the body of the context on a backend."""
    with nx.default_options(compiler=name):
        yield


@contextlib.contextmanager
def like_nx() -> Iterator[None]:
    """Trace the body of the context with Nx's simplifications, which reorder sums of floats."""
    before = nx._core.set_reassociate_floats(True)
    try:
        yield
    finally:
        nx._core.set_reassociate_floats(before)


@contextlib.contextmanager
def printed() -> Iterator[io.StringIO]:
    """Capture the output."""
    target = io.StringIO()
    with contextlib.redirect_stdout(target):
        yield target


def attempt(run: Callable[[], Any]) -> Any:
    """Return the result of a function, or the exception that it raises."""
    # Every exception is an outcome of the case and must not end the run. A panic of the backend is
    # not an `Exception`, and is an outcome too.
    try:
        return run()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as raised:
        return raised


def result(case: Case, actual: Any, expected: Any = None) -> Verdict:
    """Return the verdict on a result or an error; `expected` replaces the recorded result."""
    required = case.expected if expected is None else expected
    reason = judge(required, actual, case.tolerance)
    return Verdict("result", reason, isinstance(actual, BaseException))


def judge(expected: Any, actual: Any, tolerance: compare.Loose | None = None) -> str | None:
    """Return the fault of a result or an error, or None."""
    if isinstance(expected, Failure):
        return _judge_error(expected, actual)
    if isinstance(actual, BaseException):
        return f"{type(actual).__name__}: {actual}"
    if isinstance(actual, nx.Expression):
        # nxla prints one value for all tensors of a container.
        parts = expected if isinstance(expected, tuple) else (expected,)
        return text.mismatch(", ".join(part.text for part in parts), str(actual))
    return compare.mismatch(expected, actual, tolerance)


def _judge_error(expected: Failure, actual: Any) -> str | None:
    if not isinstance(actual, BaseException):
        return None if expected.native else f"no error, expected {expected.message!r}"
    if isinstance(actual, EXCEPTIONS.get(expected.exception, ())):
        return None
    if errors.matches(expected, actual):
        return None
    return f"{type(actual).__name__}: {actual}, expected {expected.exception}: {expected.message}"
