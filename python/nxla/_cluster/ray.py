"""Execution on a Ray cluster. Values are references, which stay on the node that computed them.

A whole run is submitted at once. Ray places tasks and repeats tasks whose results are lost with
a worker. The module does not import Ray; the caller passes the module.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from types import ModuleType

from nxla import _core
from nxla._cluster.executors import SMALL, TRAFFIC, WORKER_TIMEOUT, RemoteCopies, StageExecutor
from nxla._cluster.worker import Parcel, check_version, run_stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from nxla._cluster.plan import Task
    from nxla._core import Stage, Tensor

__all__ = ["RayExecutor", "is_ray"]


def is_ray(executor: object) -> bool:
    """Return whether an object is the module ray, without importing it."""
    return isinstance(executor, ModuleType) and executor.__name__ == "ray"


# --- on a worker ---

_PROGRAMS: dict[str, Stage] = {}


def work(
    version: str, digest: str, program: bytes, options: dict[str, Any], label: str, *given: Any
) -> Any:
    """Run a stage on parcels; a last result signals that it has run."""
    check_version(version, f"{label}: worker")
    stage = _PROGRAMS.get(digest)
    if stage is None:
        stage = _PROGRAMS[digest] = _core.Stage.from_bytes(program)
    # The last arguments are barriers of tasks that must run before.
    tensors = [parcel.tensor for parcel in given if parcel is not None]
    results = run_stage(stage, tensors, options, label)
    found = [*(Parcel(result.to_host()) for result in results), None]
    return found if len(found) > 1 else None


# --- in the process of the caller ---


class _Known:
    """The data that Ray has received, for the lifetime of the connection."""

    def __init__(self, remote: Any) -> None:
        self.work = remote
        self.programs: dict[str, Any] = {}
        #: References to sent tensors.
        self.tensors = RemoteCopies()


#: Keyed by the job id, which changes with each ``ray.init``.
_JOBS: dict[str, _Known] = {}


class RayExecutor(StageExecutor):
    """The workers of the Ray cluster to which ``ray.init`` has connected the process."""

    ahead = True

    def __init__(self, ray: Any, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.ray = ray
        if not ray.is_initialized():
            raise _core.ArgumentError(
                "stages: executor: Ray must be running; call ray.init() first"
            )
        job = ray.get_runtime_context().get_job_id()
        if job not in _JOBS:
            _JOBS.clear()
            _JOBS[job] = _Known(ray.remote(work))
        self.known = _JOBS[job]
        self.width = int(ray.cluster_resources().get("CPU", 0)) or 1

    def put(
        self, tensors: Sequence[Tensor], groups: Sequence[int | None], group_count: int
    ) -> list[Any]:
        """Put large tensors into Ray's object store, each once."""
        del groups, group_count
        values: list[Any] = []
        for tensor in tensors:
            reference = self.known.tensors.get(tensor)
            if reference is None:
                TRAFFIC.add(sent=tensor.nbytes)
                parcel = Parcel(tensor.to_host())
                if tensor.nbytes < SMALL:
                    values.append(parcel)
                    continue
                reference = self.ray.put(parcel)
                self.known.tensors.put(tensor, reference)
            values.append(reference)
        return values

    def _program(self, stage: Stage) -> Any:
        """Return the reference to a program, which each worker reads once."""
        known = self.known.programs.get(stage.digest)
        if known is None:
            program = stage.to_bytes()
            TRAFFIC.add(sent=len(program))
            known = self.known.programs[stage.digest] = self.ray.put(program)
        return known

    def start(self, task: Task, values: list[Any], *, spread: bool) -> Any:
        """Submit a task on references; return one for each result, and a barrier."""
        del spread
        remote = self.known.work.options(num_returns=len(task.results) + 1, name=task.label)
        about = (_core.__version__, task.stage.digest, self._program(task.stage))
        found = remote.remote(*about, self.options, task.label, *values)
        return found if isinstance(found, list) else [found]

    def results(self, task: Task, future: Any, *, spread: bool) -> list[Any]:
        """Return the promised values of a task."""
        del task, spread
        return list(future[:-1])

    def barrier(self, future: Any) -> Any:
        """Return a small value that is available when a task has run."""
        return future[-1]

    def when_ready(self, values: Iterable[Any], call: Callable[[], None]) -> None:
        """Call back when all references are done, from a waiting thread."""
        waiting: dict[Any, None] = {}
        for value in values:
            # The barrier of a running task.
            reference = value[-1] if isinstance(value, list) else value
            if isinstance(reference, self.ray.ObjectRef):
                waiting[reference] = None
        if not waiting:
            call()
            return
        references = list(waiting)

        def wait() -> None:
            left = references
            # The callback detects failures, including a shutdown of Ray.
            with suppress(Exception):
                while left:
                    _, left = self.ray.wait(
                        left, num_returns=len(left), timeout=1.0, fetch_local=False
                    )
            call()

        threading.Thread(target=wait, name="nxla-ray", daemon=True).start()

    def fetch(self, values: Sequence[Any]) -> list[Tensor]:
        """Copy values to this process."""
        wanted = [value for value in values if not isinstance(value, Parcel)]
        found = iter(self.ray.get(wanted))
        tensors = []
        for value in values:
            if isinstance(value, Parcel):
                tensors.append(value.tensor)
                continue
            tensor = next(found).tensor
            TRAFFIC.add(received=tensor.nbytes)
            tensors.append(tensor)
        return tensors

    def cancel(self, futures: Iterable[Any]) -> None:
        """Cancel tasks that have not started."""
        for future in futures:
            if self.ray.is_initialized():
                self.ray.cancel(future[-1])

    def check(self) -> None:
        """Raise if no worker is left."""
        if not self.ray.is_initialized():
            raise _core.ExecutionError("stages: Ray was shut down while stages were running")
        self.check_workers(
            bool(self.ray.cluster_resources().get("CPU", 0)),
            f"stages: the cluster of Ray has had no processor for {WORKER_TIMEOUT:.0f} seconds",
        )

    def is_lost(self, error: BaseException) -> bool:
        """Return whether values were lost with a worker and other workers remain."""
        if not isinstance(error, self.ray.exceptions.ObjectLostError):
            return False
        self.known.programs.clear()
        self.known.tensors.clear()
        return bool(self.ray.is_initialized())

    def translate_error(self, error: BaseException) -> BaseException:
        """Return the exception of a stage, or describe the failure of its worker."""
        kinds = self.ray.exceptions
        if isinstance(error, kinds.RayTaskError):
            cause: BaseException | None = error.cause
            return error if cause is None else cause
        if isinstance(error, kinds.TaskCancelledError):
            return _core.ExecutionError(f"stages: the run was cancelled: {error}")
        if isinstance(error, kinds.WorkerCrashedError | kinds.NodeDiedError):
            return _core.ExecutionError(f"stages: all workers that ran the stage died: {error}")
        return error
