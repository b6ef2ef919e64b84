"""Where stages run, and what values are there."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

from nxla import _core
from nxla._cluster.worker import run_stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from nxla._cluster.plan import Task
    from nxla._core import Tensor

__all__ = ["Kept", "Place", "Submitting", "Threads", "Traffic", "traffic"]


class Traffic:
    """Bytes of tensors and programs that went from this process to workers, and came back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent = self.received = 0

    def add(self, sent: int = 0, received: int = 0) -> None:
        """Count some bytes."""
        with self._lock:
            self.sent += sent
            self.received += received


TRAFFIC = Traffic()


def traffic() -> dict[str, int]:
    """Tell how many bytes went to workers and came back, through this process.

    What goes from one worker to another does not count, nor what threads of this process share.

    Returns
    -------
    dict
        ``sent`` and ``received``: bytes of tensors and of programs since the process has started.

    Examples
    --------
    >>> import nxla as nx
    >>> sorted(nx.graph.traffic())
    ['received', 'sent']
    """
    return {"sent": TRAFFIC.sent, "received": TRAFFIC.received}


class Kept:
    """What stands elsewhere for tensors of this process, as long as these live."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[Tensor], Any]] = {}

    def get(self, tensor: Tensor) -> Any | None:
        """Return what stands for a tensor, if anything does."""
        known = self._values.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def put(self, tensor: Tensor, value: Any) -> None:
        """Remember what stands for a tensor."""
        key, values = id(tensor), self._values
        values[key] = (weakref.ref(tensor, lambda _: values.pop(key, None)), value)

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()


class Place:
    """Somewhere to run stages. What a value is there is its own business."""

    #: Whether stages can be begun before their arguments are there: a value is then a promise.
    ahead = False
    #: How many stages run there at the same time, as far as one can tell.
    width = 1

    def __init__(self, options: dict[str, Any]) -> None:
        #: The options in force for the caller, and those that hold elsewhere: functions stay here.
        self.here = options
        self.options = {name: value for name, value in options.items() if name != "hooks"}

    def put(self, tensors: Sequence[Tensor], lanes: Sequence[int | None], of: int) -> list[Any]:
        """Bring tensors there. Lanes say which of them are used together, out of so many."""
        del lanes, of
        return list(tensors)

    def start(self, task: Task, values: list[Any], *, spread: bool) -> Any:
        """Begin a task and give its future. `spread` says that its results part ways."""
        raise NotImplementedError

    def results(self, task: Task, future: Any, *, spread: bool) -> list[Any]:
        """Return the values that a task has given; a place that works ahead is asked at once."""
        del spread
        found = list(future.result())
        types = [(tensor.shape, tensor.dtype) for tensor in tensors_of(task, found)]
        if len(found) != len(task.results):
            raise _core.ArgumentError(
                f"stages: {task.label} gave {len(found)} results, expected {len(task.results)}"
            )
        for position, (given, expected) in enumerate(zip(types, task.results, strict=True)):
            if (tuple(given[0]), given[1]) != (tuple(expected[0]), expected[1]):
                raise _core.ArgumentError(
                    f"stages: result {position} of {task.label} is {_type(*given)}, "
                    f"expected {_type(*expected)}"
                )
        return found

    def barrier(self, future: Any) -> Any:
        """Return a value that is there when a task has run, of a place that works ahead."""
        raise NotImplementedError

    def when_ready(self, values: Iterable[Any], call: Callable[[], None]) -> None:
        """Call back when values are there."""
        del values
        call()

    def fetch(self, values: Sequence[Any]) -> list[Tensor]:
        """Return values that are there as tensors of this process."""
        return list(values)

    def cancel(self, futures: Iterable[Any]) -> None:
        """Give up tasks, as far as they have not begun."""
        for future in futures:
            future.cancel()

    def check(self) -> None:
        """Raise if what is waited for cannot come any more. Asked about once a second."""

    def is_lost(self, error: BaseException) -> bool:
        """Say whether an error means that values are gone, so that the same may do once more."""
        del error
        return False

    def translate_error(self, error: BaseException) -> BaseException:
        """Return an error in the user's terms."""
        return error

    def close(self) -> None:
        """Let go of everything."""


def tensors_of(task: Task, found: list[Any]) -> list[Tensor]:
    for value in found:
        if not isinstance(value, _core.Tensor):
            raise _core.ArgumentError(
                f"stages: an executor must give the tensors that {task.label} gave, "
                f"not a {type(value).__name__}"
            )
    return found


def _type(shape: tuple[int, ...], dtype: Any) -> str:
    short = {"float": "f", "signed": "s", "unsigned": "u", "complex": "c"}
    name = f"{short[dtype.kind]}{dtype.bits}" if dtype.kind in short else str(dtype)
    return name + "".join(f"[{size}]" for size in shape)


class Submitting(Place):
    """Any executor with the ``submit`` of `concurrent.futures`: tensors go with the call."""

    def __init__(self, executor: Any, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.executor = executor
        self.width = getattr(executor, "_max_workers", None) or 1

    def start(self, task: Task, values: list[Any], *, spread: bool) -> Any:
        """Submit a task with its tensors."""
        del spread
        return self.executor.submit(run_stage, task.stage, values, self.options, task.label)


class Threads(Submitting):
    """Threads of this process, for a pipeline without an executor."""

    def __init__(self, count: int, options: dict[str, Any]) -> None:
        super().__init__(ThreadPoolExecutor(count, thread_name_prefix="nxla-stages"), options)

    def close(self) -> None:
        """End the threads when they have done what they do."""
        self.executor.shutdown(wait=False, cancel_futures=True)
