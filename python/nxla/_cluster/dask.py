"""Execution on a Dask cluster. Values are futures, which stay on workers and move between them.

A whole run is submitted at once. The scheduler places tasks near their data and repeats tasks
whose results are lost with a worker. It cannot repeat scattered data; the run is restarted in
this case, and keeps the results of host functions.
"""

from __future__ import annotations

import threading
import time
import uuid
import weakref
from concurrent.futures import CancelledError
from operator import itemgetter

from nxla import _core
from nxla._cluster.executors import SMALL, TRAFFIC, WORKER_TIMEOUT, RemoteCopies, StageExecutor
from nxla._cluster.worker import Parcel, run_stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from nxla._cluster.plan import Task
    from nxla._core import Stage, Tensor

__all__ = ["DaskExecutor", "is_client"]

#: The number of attempts to send data to workers.
ATTEMPTS = 8
_ALONE = f"stages: the cluster has had no worker for {WORKER_TIMEOUT:.0f} seconds"


def is_client(executor: object) -> bool:
    """Return whether an object is a Dask client, without importing Dask."""
    kinds = type(executor).__mro__
    return any(k.__module__ == "distributed.client" and k.__name__ == "Client" for k in kinds)


# --- on a worker ---


def load(program: bytes) -> Stage:
    """Return a program, which the worker then stores."""
    return _core.Stage.from_bytes(program)


def work(
    stage: Stage,
    options: dict[str, Any],
    label: str,
    indices: tuple[int | None, ...],
    *given: Any,
) -> Any:
    """Run a stage. Each argument is a parcel, or one of several values of a future."""
    parcels = [part if at is None else part[at] for at, part in zip(indices, given, strict=False)]
    results = run_stage(stage, [parcel.tensor for parcel in parcels], options, label)
    packed = tuple(Parcel(result.to_host()) for result in results)
    return packed[0] if len(packed) == 1 else packed


def _barrier(_: Any) -> None:
    """Return nothing; the task only signals that another task has run."""


# --- in the process of the caller ---


class Part:
    """A future, or one of its several values."""

    __slots__ = ("at", "future")

    def __init__(self, future: Any, at: int | None = None) -> None:
        self.future, self.at = future, at


class _Known:
    """The data that a cluster has received, for the lifetime of its client."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: Workers with the same version as this process.
        self.workers: set[str] = set()
        self.programs: dict[str, Any] = {}
        #: Futures of sent tensors.
        self.tensors = RemoteCopies()


_CLUSTERS: weakref.WeakKeyDictionary[Any, _Known] = weakref.WeakKeyDictionary()


def _is_gone(future: Any) -> bool:
    return future.status in ("cancelled", "lost", "error")


class DaskExecutor(StageExecutor):
    """The workers of a `distributed.Client`."""

    ahead = True

    def __init__(self, client: Any, options: dict[str, Any]) -> None:
        super().__init__(options)
        if client.asynchronous:
            raise _core.ArgumentError(
                "stages: executor: Dask client must be synchronous; create it with "
                "asynchronous=False"
            )
        self.client = client
        self.known = _CLUSTERS.setdefault(client, _Known())
        self.workers: list[str] = []
        self._find_workers()

    def _find_workers(self) -> None:
        """Check that workers exist and have the same version."""
        self._require_status("running")
        threads = self.client.nthreads()
        if not threads:
            try:
                self.client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
            except TimeoutError:
                raise _core.ExecutionError(_ALONE) from None
            threads = self.client.nthreads()
        self.workers = sorted(threads)
        self.width = sum(threads.values()) or 1
        if not self.known.workers.issuperset(self.workers):
            self._ask_versions()

    def _ask_versions(self) -> None:
        # A worker without nxla cannot run a function of the package, so the check is source
        # code.
        versions = self.client.run(eval, "__import__('nxla').__version__", on_error="return")
        for worker, version in versions.items():
            if version != _core.__version__:
                missing = isinstance(version, BaseException)
                has = f"no nxla ({version})" if missing else f"nxla {version}"
                raise _core.ExecutionError(
                    f"stages: worker {worker}: must have nxla {_core.__version__}, "
                    f"like the caller; got {has}"
                )
        self.known.workers = set(versions)

    def _require_status(self, *allowed: str) -> None:
        """Raise an error unless the client has one of the statuses."""
        status = self.client.status
        if status not in allowed:
            raise _core.ExecutionError(
                f"stages: executor: Dask client must be running; got status {status}"
            )

    def put(
        self, tensors: Sequence[Tensor], groups: Sequence[int | None], group_count: int
    ) -> list[Any]:
        """Scatter large tensors once, near other tensors that are used with them."""
        values: list[Any] = [None] * len(tensors)
        waiting: dict[int, list[int]] = {}
        for position, tensor in enumerate(tensors):
            if tensor.nbytes < SMALL:
                TRAFFIC.add(sent=tensor.nbytes)
                values[position] = Parcel(tensor.to_host())
                continue
            future = self.known.tensors.get(tensor)
            if future is not None and not _is_gone(future):
                values[position] = Part(future)
                continue
            waiting.setdefault(self._worker(groups[position] or 0, group_count), []).append(
                position
            )
        for worker, positions in waiting.items():
            futures = self._scatter([Parcel(tensors[p].to_host()) for p in positions], worker)
            for position, future in zip(positions, futures, strict=True):
                TRAFFIC.add(sent=tensors[position].nbytes)
                self.known.tensors.put(tensors[position], future)
                values[position] = Part(future)
        return values

    def _scatter(self, parcels: list[Parcel], worker: int) -> list[Any]:
        """Send parcels to a worker, or to another one if it has died."""
        for attempt in range(ATTEMPTS):
            try:
                where = self.workers[min(worker, len(self.workers) - 1)]
                futures: list[Any] = self.client.scatter(parcels, workers=[where], hash=False)
            except (KeyError, OSError) as error:
                if attempt == ATTEMPTS - 1:
                    raise _core.ExecutionError(f"stages: a worker rejects data: {error}") from error
                # The scheduler notices a dead worker with a delay.
                time.sleep(0.1 * (attempt + 1))
                self._find_workers()
            else:
                return futures
        raise AssertionError("the last attempt returns or raises")

    def _worker(self, group: int, group_count: int) -> int:
        return min(group * len(self.workers) // max(group_count, 1), len(self.workers) - 1)

    def _program(self, stage: Stage) -> Any:
        """Return the future of a program, which is sent to each worker once."""
        digest = stage.digest
        with self.known.lock:
            future = self.known.programs.get(digest)
            if future is None or _is_gone(future):
                program = stage.to_bytes()
                TRAFFIC.add(sent=len(program))
                # A task can be repeated, unlike scattered data.
                key = f"nxla-program-{digest}"
                future = self.client.submit(load, program, key=key, pure=True)
                self.known.programs[digest] = future
        return future

    def start(self, task: Task, values: list[Any], *, spread: bool) -> Any:
        """Submit a task whose arguments are futures."""
        del spread
        after = [value for value in values if isinstance(value, _After)]
        values = values[: len(values) - len(after)]
        indices = tuple(value.at if isinstance(value, Part) else None for value in values)
        given = [value.future if isinstance(value, Part) else value for value in values]
        where = {}
        if task.worker_group is not None:
            workers = [self.workers[task.worker_group % len(self.workers)]]
            where = {"workers": workers, "allow_other_workers": True}
        return self.client.submit(
            work,
            self._program(task.stage),
            self.options,
            task.label,
            indices,
            *given,
            *(token.future for token in after),
            key=f"nxla-{task.label.split(' (')[0].replace(' ', '-')}-{uuid.uuid4().hex}",
            pure=False,
            **where,
        )

    def results(self, task: Task, future: Any, *, spread: bool) -> list[Any]:
        """Return the promised values of a task."""
        if len(task.results) == 1:
            return [Part(future)]
        if not spread:
            return [Part(future, at) for at in range(len(task.results))]
        submit = self.client.submit
        return [
            Part(submit(itemgetter(at), future, key=f"{future.key}-{at}", pure=False))
            for at in range(len(task.results))
        ]

    def barrier(self, future: Any) -> Any:
        """Return a small value that is available when a task has run."""
        return _After(self.client.submit(_barrier, future, pure=False))

    def when_ready(self, values: Iterable[Any], call: Callable[[], None]) -> None:
        """Call back when all futures are done."""
        futures = {id(future): future for future in map(_future, values) if future is not None}
        lock, left = threading.Lock(), [len(futures) + 1]

        def ended(_: Any) -> None:
            with lock:
                left[0] -= 1
                last = left[0] == 0
            if last:
                call()

        for future in futures.values():
            future.add_done_callback(ended)
        ended(None)

    def fetch(self, values: Sequence[Any]) -> list[Tensor]:
        """Copy values to this process."""
        futures = {id(v.future): v.future for v in values if isinstance(v, Part)}
        found = dict(zip(futures, self.client.gather(list(futures.values())), strict=True))
        tensors = []
        for value in values:
            if isinstance(value, Part):
                parcel = found[id(value.future)]
                parcel = parcel if value.at is None else parcel[value.at]
                TRAFFIC.add(received=parcel.tensor.nbytes)
            else:
                parcel = value
            tensors.append(parcel.tensor)
        return tensors

    def cancel(self, futures: Iterable[Any]) -> None:
        """Cancel tasks, including their dependencies without other users."""
        futures = list(futures)
        if futures and self.client.status == "running":
            self.client.cancel(futures)

    def check(self) -> None:
        """Raise if no worker is left."""
        # A client that is connecting again may find workers.
        self._require_status("running", "connecting", "newly-created")
        is_running = self.client.status == "running"
        self.check_workers(is_running and bool(self.client.nthreads()), _ALONE)

    def is_lost(self, error: BaseException) -> bool:
        """Return whether values were lost with a worker and other workers remain."""
        if not isinstance(error, CancelledError) or self.client.status != "running":
            return False
        self._find_workers()
        return True

    def translate_error(self, error: BaseException) -> BaseException:
        """Describe the failures of workers."""
        if isinstance(error, ImportError | AttributeError):
            # A new worker may not have the sent data.
            self.known.workers.clear()
            self._find_workers()
        if type(error).__name__ == "KilledWorker":
            task = "-".join(str(getattr(error, "task", "a stage")).split("-")[1:-1])
            return _core.ExecutionError(
                f"{task.replace('-', ' ')}: all workers that ran the stage died"
            )
        if isinstance(error, CancelledError):
            return _core.ExecutionError(f"stages: the cluster cancelled the run: {error}")
        return error


class _After:
    """A barrier: a future whose value does not matter."""

    __slots__ = ("future",)

    def __init__(self, future: Any) -> None:
        self.future = future


def _future(value: Any) -> Any | None:
    """Return the future to wait for."""
    if isinstance(value, Part | _After):
        return value.future
    return value if hasattr(value, "add_done_callback") else None
