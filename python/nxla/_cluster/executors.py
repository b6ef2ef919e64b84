"""Executors of stages, and the form of their values."""

from __future__ import annotations

import threading
import time
import weakref
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue

from nxla import _core, _hints
from nxla._cluster.worker import run_stage
from nxla._values import count_text, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from nxla._cluster.plan import Task
    from nxla._core import Tensor

__all__ = [
    "RemoteCopies",
    "StageExecutor",
    "SubmitExecutor",
    "ThreadExecutor",
    "Traffic",
    "traffic",
]


#: Clusters receive smaller tensors with their task, in bytes.
SMALL = 1 << 10
#: The time to wait for a worker of a cluster, in seconds.
WORKER_TIMEOUT = 8.0


class Traffic:
    """Bytes of tensors and programs that this process has exchanged with workers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sent = self.received = 0

    def add(self, sent: int = 0, received: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            self.sent += sent
            self.received += received


TRAFFIC = Traffic()


def traffic() -> dict[str, int]:
    """Return the bytes that this process has exchanged with workers.

    Transfers between workers do not count, and threads share memory.

    Returns
    -------
    dict
        ``sent`` and ``received``: bytes of tensors and programs since the process started.

    Examples
    --------
    >>> import nxla as nx
    >>> sorted(nx.graph.traffic())
    ['received', 'sent']
    """
    return {"sent": TRAFFIC.sent, "received": TRAFFIC.received}


class RemoteCopies:
    """Remote copies of tensors of this process, for the lifetime of the tensors."""

    def __init__(self) -> None:
        #: By the address of a tensor: the tensor, the data that was copied, and the copy.
        self._values: dict[int, tuple[weakref.ref[Tensor], Tensor, Any]] = {}

    def get(self, tensor: Tensor) -> Any | None:
        """Return the remote copy of a tensor, or None if there is none of its present data."""
        known, data, value = self._values.get(id(tensor), (None, tensor, None))
        # An assignment to an element replaces the data of a tensor.
        is_present = known is not None and known() is tensor and tensor._is_same_data(data)
        return value if is_present else None

    def put(self, tensor: Tensor, value: Any) -> None:
        """Store the remote copy of a tensor."""
        key, values = id(tensor), self._values
        owner = weakref.ref(tensor, lambda _: values.pop(key, None))
        values[key] = (owner, _core.tensor(tensor), value)

    def clear(self) -> None:
        """Remove all copies."""
        self._values.clear()


class StageExecutor:
    """An executor of stages, which defines the form of values between stages."""

    #: True if stages can start before their arguments are computed; values are futures then.
    ahead = False
    #: The number of stages that can run at the same time, if known.
    width = 1

    def __init__(self, options: dict[str, Any]) -> None:
        #: The options of the caller, and the options on workers, without host functions.
        self.here = options
        self.options = {name: value for name, value in options.items() if name != "hooks"}
        #: The last time at which a cluster had a worker, or was checked first.
        self._last_worker: float | None = None

    def put(
        self, tensors: Sequence[Tensor], groups: Sequence[int | None], group_count: int
    ) -> list[Any]:
        """Send tensors. Tensors of one worker group are used together."""
        del groups, group_count
        return list(tensors)

    def start(self, task: Task, values: list[Any], *, spread: bool) -> Any:
        """Start a task and return its future. `spread`: results have different readers."""
        raise NotImplementedError

    def results(self, task: Task, future: Any, *, spread: bool) -> list[Any]:
        """Return the values of a task; executors with futures return them immediately."""
        del spread
        found = list(future.result())
        for value in found:
            if not isinstance(value, _core.Tensor):
                raise _core.ArgumentError(
                    f"stages: executor: must return the tensors of {task.label}; got "
                    f"{kind_of(value)}"
                )
        if len(found) != len(task.results):
            raise _core.ArgumentError(
                f"stages: {task.label}: must return {count_text(len(task.results), 'result')}; "
                f"got {len(found)}"
            )
        for position, (tensor, expected) in enumerate(zip(found, task.results, strict=True)):
            given = (tensor.shape, tensor.dtype)
            if given != expected:
                raise _core.ArgumentError(
                    f"stages: {task.label}: result {position} must be "
                    f"{_core.Template(*expected)}; got {_core.Template(*given)}"
                )
        return found

    def barrier(self, future: Any) -> Any:
        """Return a small value that is available when a task has run, if values are futures."""
        raise NotImplementedError

    def when_ready(self, values: Iterable[Any], call: Callable[[], None]) -> None:
        """Call back when values are available."""
        del values
        call()

    def fetch(self, values: Sequence[Any]) -> list[Tensor]:
        """Return values as tensors of this process."""
        return list(values)

    def cancel(self, futures: Iterable[Any]) -> None:
        """Cancel tasks that have not started."""
        for future in futures:
            future.cancel()

    def check_workers(self, found: bool, message: str) -> None:
        """Raise an `ExecutionError` if a cluster has had no worker for `WORKER_TIMEOUT`."""
        now = time.monotonic()
        self._last_worker = now if found or self._last_worker is None else self._last_worker
        if now - self._last_worker > WORKER_TIMEOUT:
            raise _core.ExecutionError(message)

    def check(self) -> None:
        """Raise if the awaited values can no longer be computed. Called about once a second."""

    def is_lost(self, error: BaseException) -> bool:
        """Return whether an error means that values are lost, so that a restart can succeed."""
        del error
        return False

    def translate_error(self, error: BaseException) -> BaseException:
        """Return an error with a message for the user."""
        return error

    def close(self) -> None:
        """Release all resources."""


class SubmitExecutor(StageExecutor):
    """An executor with the ``submit`` of `concurrent.futures`: tensors are sent with the call."""

    def __init__(self, executor: Any, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.executor = executor
        self.width = getattr(executor, "_max_workers", None) or 1

    def start(self, task: Task, values: list[Any], *, spread: bool) -> Any:
        """Submit a task with its tensors."""
        del spread
        return self.executor.submit(run_stage, task.stage, values, self.options, task.label)


class _DaemonPool:
    """Threads that the exit of the process does not wait for.

    An interrupted pipeline leaves stages that are still running. The exit joins the threads of a
    ``ThreadPoolExecutor``, so that an endless stage would keep the process alive.
    """

    def __init__(self, count: int) -> None:
        self._max_workers = count
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        for _ in range(count):
            threading.Thread(
                target=_run_calls, args=(self._calls,), name="nxla-stages", daemon=True
            ).start()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Return the future of a call on one of the threads."""
        future: Future[Any] = Future()
        self._calls.put((future, partial(function, *args)))
        return future

    def shutdown(self) -> None:
        """Cancel the waiting calls, and end the threads after their current calls."""
        try:
            while call := self._calls.get_nowait():
                call[0].cancel()
        except Empty:
            pass
        for _ in range(self._max_workers):
            self._calls.put(None)


def _run_calls(calls: SimpleQueue[Any]) -> None:
    """Run calls until the pool shuts down."""
    while call := calls.get():
        _run_call(*call)
        # A waiting thread must not keep the values of its last call alive.
        del call


def _run_call(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


class ThreadExecutor(SubmitExecutor):
    """Threads of the process, for a pipeline without an executor."""

    def __init__(self, count: int, options: dict[str, Any]) -> None:
        super().__init__(_DaemonPool(count), options)

    def close(self) -> None:
        """End the threads after their current tasks."""
        self.executor.shutdown()


_hints.install(globals())
