"""Warnings about the compilations of a jitted function: number, arguments and captured tensors."""

from __future__ import annotations

import sys
import threading
import warnings

from nxla import tree
from nxla.errors import ArgumentError, CaptureWarning, ExecutionError, RecompileWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The values of `on_max_compiles`.
ACTIONS = ("warn", "raise", "log")
#: The functions for which the process has logged the hint that XLA may be faster; it has at most
#: one entry.
_HINTED: list[str] = []

#: The values of `on_unusable_donation`.
UNUSABLE = ("ignore", "warn", "raise")


class Observer:
    """An observer that a `Function` calls before each compilation."""

    def __init__(
        self,
        name: str,
        max_compiles: int | None = None,
        on_max_compiles: str = "warn",
        on_unusable_donation: str = "ignore",
        *,
        debug_nans: bool | None = None,
    ) -> None:
        if max_compiles is not None and (type(max_compiles) is not int or max_compiles < 1):
            raise ArgumentError(
                f"jit: max_compiles: must be an integer of at least 1; got {max_compiles!r}"
            )
        for option, value, allowed in (
            ("on_max_compiles", on_max_compiles, ACTIONS),
            ("on_unusable_donation", on_unusable_donation, UNUSABLE),
            ("debug_nans", False if debug_nans is None else debug_nans, (False, True)),
        ):
            if type(value) is not type(allowed[0]) or value not in allowed:
                listed = ", ".join(map(repr, allowed))
                raise ArgumentError(f"jit: {option}: must be one of {listed}; got {value!r}")
        self._name = name
        self._unusable = on_unusable_donation
        self._max_compiles = max_compiles
        self._action = on_max_compiles
        self._lock = threading.Lock()
        self._last: dict[str, str] | None = None
        self._warned: set[tuple[str, str | None]] = set()

    def __call__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        misses: int,
        captured: list[tuple[str, int, str | None]],
    ) -> None:
        self._warn_of_captures(captured)
        if self._max_compiles is None:
            return
        found = _describe_arguments(args, kwargs or {})
        if misses >= self._max_compiles:
            self._act(self._message(misses + 1, self._last, found))
        # The message names the call before, and a refused call compiles nothing.
        self._last = found

    def unusable_donations(self, unusable: list[tuple[str, str]]) -> None:
        """Handle donated arguments whose memory no result can reuse; each has a path and a type."""
        if self._unusable == "ignore":
            return
        listed = ", ".join(f"{path} ({kind})" for path, kind in unusable)
        message = (
            f"{self._name}: donated without effect: {listed}; each result reuses one argument "
            "of its type that the program needs"
        )
        if self._unusable == "raise":
            raise ArgumentError(message)
        warnings.warn(message, UserWarning, stacklevel=2)

    def compiled(
        self,
        digest: str,
        nodes: int,
        seconds: tuple[float, float],
        backend: str,
        slow: float | None,
    ) -> None:
        """Log a compiled program and its backend.

        `slow` is the estimated time of a call in seconds, if the default backend is slow. The hint
        is logged once in a process.
        """
        if slow is not None:
            self._hint_at_xla(slow)
        # Without `logging`, nothing receives the message.
        if "logging" not in sys.modules:
            return
        import logging  # Waits for another thread that imports the module.

        logger = logging.getLogger("nxla")
        if logger.isEnabledFor(logging.DEBUG):
            traced, compiled = seconds
            logger.debug(
                "%s: traced in %.1f ms, compiled in %.1f ms for %s: %d nodes, digest %s",
                self._name, traced * 1e3, compiled * 1e3, backend, nodes, digest[:8],
            )  # fmt: skip

    def _hint_at_xla(self, seconds: float) -> None:
        if _HINTED:
            return
        _HINTED.append(self._name)
        import logging

        logging.getLogger("nxla").warning(
            "%s: a call takes the evaluator, the default backend, about %.2g s; "
            'compiler="auto" runs loops of small steps with XLA; nx.explain shows the backend of '
            "a call (this hint appears once)",
            self._name, seconds,
        )  # fmt: skip

    def _warn_of_captures(self, captured: list[tuple[str, int, str | None]]) -> None:
        """Warn once about the large captured tensors that no earlier warning contains."""
        with self._lock:
            new = [each for each in captured if (each[0], each[2]) not in self._warned]
            self._warned.update((ty, line) for ty, _, line in new)
        if not new:
            return
        ty, _, line = max(new, key=lambda each: each[1])
        where = "" if line is None else f" at {line}"
        size = format_bytes(sum(size for _, size, _ in new))
        message = (
            f"{self._name}: the tensor {ty} of {size}, which the function captures{where}, becomes "
            "a hidden input; pass it as an argument, so that a call can pass another value"
        )
        if len(new) > 1:
            message = (
                f"{self._name}: {len(new)} tensors of {size}, which the function captures, become "
                f"hidden inputs; the largest is {ty}{where}; pass them as arguments, so that a "
                "call can pass other values"
            )
        warnings.warn(message, CaptureWarning, stacklevel=3)

    def _message(self, count: int, last: dict[str, str] | None, found: dict[str, str]) -> str:
        text = f"{self._name}: compiled {count} times, max_compiles is {self._max_compiles}"
        if last is None:
            return text
        differences = [
            f"{path} was {last.get(path, 'absent')}, is {found.get(path, 'absent')}"
            for path in [*last, *(path for path in found if path not in last)]
            if last.get(path) != found.get(path)
        ]
        if not differences:
            # The arguments are equal, so the compiler, its settings or the names of hooks differ.
            differences = ["the options differ"]
        return f"{text}; since the call before, " + ", ".join(differences)

    def _act(self, message: str) -> None:
        if self._action == "raise":
            raise ExecutionError(message)
        if self._action == "log":
            import logging

            logging.getLogger("nxla").warning(message)
        else:
            warnings.warn(message, RecompileWarning, stacklevel=3)


def _describe_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, str]:
    """Return the parts of the signature of a call by argument."""
    named = {f"argument {position}": value for position, value in enumerate(args)}
    named.update({f"argument {name!r}": value for name, value in kwargs.items()})
    described = {}
    for name, value in named.items():
        leaves, structure = tree.flatten(value)
        if len(leaves) == 1 and leaves[0] is value:
            described[name] = _leaf(value)
            continue
        described[name] = str(structure)
        described.update({f"{name}, leaf {at}": _leaf(leaf) for at, leaf in enumerate(leaves)})
    return described


def _leaf(value: Any) -> str:
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return f"the {type(value).__name__} {value!r}"
    names = getattr(value, "names", None) or [None] * len(shape)
    axes = zip(names, shape, strict=False)
    return f"{dtype}" + "".join(f"[{name}: {n}]" if name else f"[{n}]" for name, n in axes)


def format_bytes(size: float) -> str:
    """Return a number of bytes in the largest unit in which it is at least 1."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"
