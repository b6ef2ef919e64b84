"""Pipelines: several batches in different stages at the same time."""

from __future__ import annotations

import os
from collections import deque

from nxla import _hints
from nxla._cluster import bar_of, executor_of
from nxla._cluster.driver import RunLoop
from nxla._cluster.plan import inputs_of, plan_of
from nxla._values import as_count, iter_of
from nxla.graph import graph_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from nxla._cluster.driver import Pass
    from nxla._cluster.plan import Plan
    from nxla._core import Stage, StageGraph
    from nxla._progress import Bar

__all__ = ["pipeline"]


def pipeline(
    stages: StageGraph | Sequence[Stage],
    batches: Iterable[Any],
    /,
    *,
    executor: Any = None,
    in_flight: int | None = None,
    **options: Any,
) -> Iterator[Any]:
    """Run batches through stages, several at the same time, and yield their results in order.

    While a stage processes one batch, the previous stage processes the next one. A batch is
    requested when there is room, so the source may be infinite. Leaving the loop early, or an
    error, cancels tasks that have not started. Tasks on threads of the process run to their end,
    but the exit of the process does not wait for them.

    Parameters
    ----------
    stages : StageGraph or sequence of Stage
        The result of `split`, or a list of all its stages.
    batches : iterable
        The arguments of the traced function for each batch, as a tuple; another value is the
        only argument.
    executor : Executor or distributed.Client, optional
        The executor of the stages, as for `run`; threads of the process by default.
    in_flight : int, optional
        The maximum number of batches in progress; by default one more than the number of stages
        that can run at the same time.
    **options
        As for `run`.

    Yields
    ------
    container
        The result of the traced function for each batch.

    Raises
    ------
    ArgumentError
        If `stages` has another type, `in_flight` is less than 1, or a batch does not match the
        inputs.

    Examples
    --------
    >>> import nxla as nx
    >>> expression = nx.debug_expr(lambda x: nx.exp(nx.log(x)) + 1)(1.0)
    >>> stages = nx.graph.split(expression, lambda node: "after" if node.op == "log" else "none")
    >>> [round(y.item()) for y in nx.graph.pipeline(stages, [1.0, 2.0, 3.0])]
    [2, 3, 4]
    """
    if in_flight is not None:
        in_flight = as_count("pipeline", "in_flight", in_flight, 1)
    stages = graph_of("pipeline", stages)
    # Options apply from the time of the call, not from the time when results are read.
    in_force, listening = stages._in_force(options)
    bar = bar_of(in_force, "batches", None, executor)
    plan = plan_of(stages, listening)
    source = iter_of("pipeline", "batches", batches)
    return _results(stages, plan, source, executor, in_flight, in_force, bar)


def _results(
    stages: StageGraph,
    plan: Plan,
    source: Iterator[Any],
    executor: Any,
    in_flight: int | None,
    options: dict[str, Any],
    bar: Bar | None,
) -> Iterator[Any]:
    threads = min(len(plan.tasks), os.cpu_count() or 1)
    stage_executor = executor_of(executor, options, threads=threads)
    room = in_flight or min(len(plan.tasks), stage_executor.width) + 1
    loop = RunLoop(plan, stage_executor)
    waiting: deque[Pass] = deque()

    def oldest() -> Any:
        result = stages._wrap(loop.results(waiting.popleft()))
        if bar is not None:
            bar()
        return result

    failure: Exception | None = None
    try:
        while True:
            try:
                batch = next(source)
                inputs = inputs_of(stages, batch if isinstance(batch, tuple) else (batch,))
            except StopIteration:
                break
            except Exception as error:
                # The caller receives the results of earlier batches first, for any `in_flight`.
                failure = error
                break
            waiting.append(loop.begin(inputs))
            if len(waiting) >= room:
                yield oldest()
        while waiting:
            yield oldest()
        if failure is not None:
            raise failure
    finally:
        if bar is not None:
            bar.close()
        for begun in waiting:
            begun.cancel()
        stage_executor.close()


_hints.install(globals())
