"""Execution of stages: in threads, in processes, on a cluster, for one input or a stream of inputs.

`plan` describes the tasks of a run, `driver` tracks its progress, and a `StageExecutor` runs
stages: any executor (`executors`), a pool of processes with shared memory (`processes`), Dask
(`dask`), or Ray (`ray`).
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

from nxla import _core
from nxla._cluster.dask import DaskExecutor, is_client
from nxla._cluster.driver import RunLoop
from nxla._cluster.executors import StageExecutor, SubmitExecutor, ThreadExecutor
from nxla._cluster.plan import inputs_of, plan_of
from nxla._cluster.processes import ProcessExecutor
from nxla._cluster.ray import RayExecutor, is_ray
from nxla._values import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nxla._core import StageGraph
    from nxla._progress import Bar

__all__ = ["bar_of", "executor_of", "run"]


def executor_of(
    executor: Any, options: dict[str, Any], *, threads: int | None = None
) -> StageExecutor:
    """Return the adapter of a user's executor; without one, a pool of threads of the process."""
    if executor is None:
        return ThreadExecutor(threads or os.cpu_count() or 1, options)
    if is_client(executor):
        return DaskExecutor(executor, options)
    if is_ray(executor):
        return RayExecutor(executor, options)
    if isinstance(executor, ProcessPoolExecutor):
        return ProcessExecutor(executor, options)
    if not callable(getattr(executor, "submit", None)):
        raise _core.ArgumentError(
            "stages: executor: must have the method submit of concurrent.futures, or be a "
            f"distributed.Client or the module ray; got {kind_of(executor)}"
        )
    return SubmitExecutor(executor, options)


def run(stages: StageGraph, args: tuple[Any, ...], options: dict[str, Any], executor: Any) -> Any:
    """Run all stages on an executor; see `nxla.graph.run`."""
    in_force, listening = stages._in_force(options)
    bar = bar_of(in_force, "running stages", len(stages), executor)
    inputs = inputs_of(stages, args)
    executor = executor_of(executor, in_force)
    try:
        loop = RunLoop(plan_of(stages, listening), executor)
        return stages._wrap(loop.results(loop.begin(inputs, bar)), inputs)
    finally:
        executor.close()
        if bar is not None:
            bar.close()


def bar_of(options: dict[str, Any], what: str, total: int | None, executor: Any) -> Bar | None:
    """Remove the option `progress` from the options, and return the progress bar."""
    if not options.pop("progress", False):
        return None
    if is_client(executor) or is_ray(executor):
        raise _core.ArgumentError(
            "progress: executor: Dask and Ray are not supported; use their dashboards"
        )
    from nxla._progress import Bar

    return Bar(what, total)
