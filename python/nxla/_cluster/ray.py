"""A cluster of Ray. Values are references: they stay where they were made, and travel from there.

A whole run is handed to Ray at once, which places tasks, and runs again what a worker takes along
when it dies. The package is never imported here: whoever passes it has it.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from types import ModuleType

from nxla import _core
from nxla._cluster.places import TRAFFIC, Kept, Place
from nxla._cluster.worker import Parcel, run_stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from nxla._cluster.plan import Task
    from nxla._core import Stage, Tensor

__all__ = ["Ray", "is_ray"]

#: Tensors of fewer bytes go with the task that takes them.
SMALL = 1 << 10
#: How long to wait for a processor where there is none.
PATIENCE = 8.0


def is_ray(executor: object) -> bool:
    """Say whether something is the package of Ray, without importing that."""
    return isinstance(executor, ModuleType) and executor.__name__ == "ray"


# --- on a worker ---

_PROGRAMS: dict[str, Stage] = {}


def work(
    version: str, digest: str, program: bytes, options: dict[str, Any], label: str, *given: Any
) -> Any:
    """Run a stage on parcels; after its results comes what stands for its having run."""
    if version != _core.__version__:
        raise _core.ExecutionError(
            f"{label}: a worker has nxla {_core.__version__}, the caller has {version}; "
            "install the same version on all of them"
        )
    stage = _PROGRAMS.get(digest)
    if stage is None:
        stage = _PROGRAMS[digest] = _core.Stage.from_bytes(program)
    # Behind the arguments are tasks that only had to run before.
    tensors = [parcel.tensor for parcel in given if parcel is not None]
    results = run_stage(stage, tensors, options, label)
    found = [*(Parcel(result.to_host()) for result in results), None]
    return found if len(found) > 1 else None


# --- in the process of the caller ---


class _Known:
    """What Ray has got already, as long as this process is connected to it."""

    def __init__(self, remote: Any) -> None:
        self.work = remote
        self.programs: dict[str, Any] = {}
        #: References to tensors that were sent.
        self.tensors = Kept()


#: By the number of the job, which is another one after each ``ray.init``.
_JOBS: dict[str, _Known] = {}


class Ray(Place):
    """The workers of a cluster of Ray, to which this process is connected by ``ray.init``."""

    ahead = True

    def __init__(self, ray: Any, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.ray = ray
        self.alone_since: float | None = None
        if not ray.is_initialized():
            raise _core.ArgumentError("stages: Ray is not running; call ray.init() before")
        job = ray.get_runtime_context().get_job_id()
        if job not in _JOBS:
            _JOBS.clear()
            _JOBS[job] = _Known(ray.remote(work))
        self.known = _JOBS[job]
        self.width = int(ray.cluster_resources().get("CPU", 0)) or 1

    def put(self, tensors: Sequence[Tensor], lanes: Sequence[int | None], of: int) -> list[Any]:
        """Put large tensors into the store of Ray, each of them once."""
        del lanes, of
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
        """Submit a task that takes references; give one for each result, and one for its end."""
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
        """Return a value that is there when a task has run, and is small."""
        return future[-1]

    def when_ready(self, values: Iterable[Any], call: Callable[[], None]) -> None:
        """Call back when references have come to an end, whichever, from a thread that waits."""
        waiting: dict[Any, None] = {}
        for value in values:
            # Of a task that is running, its end.
            reference = value[-1] if isinstance(value, list) else value
            if isinstance(reference, self.ray.ObjectRef):
                waiting[reference] = None
        if not waiting:
            call()
            return
        references = list(waiting)

        def wait() -> None:
            left = references
            # Whoever is called finds out what there is, also where Ray has been shut down.
            with suppress(Exception):
                while left:
                    _, left = self.ray.wait(
                        left, num_returns=len(left), timeout=1.0, fetch_local=False
                    )
            call()

        threading.Thread(target=wait, name="nxla-ray", daemon=True).start()

    def fetch(self, values: Sequence[Any]) -> list[Tensor]:
        """Bring values into this process."""
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
        """Give up tasks, as far as they have not begun."""
        for future in futures:
            if self.ray.is_initialized():
                self.ray.cancel(future[-1])

    def check(self) -> None:
        """Raise if there is nobody left to run anything."""
        if not self.ray.is_initialized():
            raise _core.ExecutionError("stages: Ray was shut down while stages were running")
        if self.ray.cluster_resources().get("CPU", 0):
            self.alone_since = None
            return
        now = time.monotonic()
        self.alone_since = self.alone_since or now
        if now - self.alone_since > PATIENCE:
            raise _core.ExecutionError(
                f"stages: the cluster of Ray has had no processor for {PATIENCE:.0f} seconds"
            )

    def is_lost(self, error: BaseException) -> bool:
        """Say whether data were lost with a worker, and there are others."""
        if not isinstance(error, self.ray.exceptions.ObjectLostError):
            return False
        self.known.programs.clear()
        self.known.tensors.clear()
        return bool(self.ray.is_initialized())

    def translate_error(self, error: BaseException) -> BaseException:
        """Return what a stage has raised, or say what became of its worker."""
        kinds = self.ray.exceptions
        if isinstance(error, kinds.RayTaskError):
            cause: BaseException | None = error.cause
            return error if cause is None else cause
        if isinstance(error, kinds.TaskCancelledError):
            return _core.ExecutionError(f"stages: the run was given up: {error}")
        if isinstance(error, kinds.WorkerCrashedError | kinds.NodeDiedError):
            return _core.ExecutionError(f"stages: each of the workers that ran it died: {error}")
        return error
