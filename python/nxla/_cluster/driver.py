"""The progress of runs: ready tasks, locations of results, and failures.

The thread that reports the last missing result starts a task. The inbox passes work to the
caller's thread: stages that call host functions, and the end of the run.
"""

from __future__ import annotations

import threading
from functools import partial
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue

from nxla._cluster.worker import run_stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nxla._cluster.executors import StageExecutor
    from nxla._cluster.plan import Plan, Source
    from nxla._core import Tensor

__all__ = ["Pass", "RunLoop"]

#: The interval between checks of a waiting caller, in seconds.
POLL_SECONDS = 1.0
#: The number of restarts after lost values.
ATTEMPTS = 5


class Pass:
    """One pass of inputs through a plan."""

    def __init__(
        self,
        plan: Plan,
        executor: StageExecutor,
        inputs: Sequence[Tensor],
        post: Callable[[Any], None],
        step: Callable[[], None] | None,
        number: int,
        failed_passes: list[int],
    ) -> None:
        self.plan = plan
        self.executor = executor
        self.inputs = inputs
        #: Receives work for the caller's thread, and None at the end of the pass.
        self.post = post
        #: Called after each task.
        self.step = step
        #: The index of the pass.
        self.number = number
        #: The passes in which a host function failed, which all passes share.
        self.failed_passes = failed_passes
        #: Results of stages that ran in this process. They survive a restart, so host functions
        #: run once.
        self.local_results: dict[int, list[Tensor]] = {}
        self.attempts = 0
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self.values: dict[Source, Any] = {}
        self.left = dict(self.plan.readers)
        self.waits = list(self.plan.waits)
        self.remaining = len(self.plan.tasks)
        self.running: dict[int, Any] = {}
        #: Barriers of tasks, for tasks that must follow a schedule.
        self.tokens: dict[int, Any] = {}
        self.failure: BaseException | None = None
        self.over = False
        self._ready: list[tuple[int, int, int]] = []
        self._arrivals = count()
        for number, left in enumerate(self.waits):
            if left == 0:
                self._now_ready(number)
        self._draining = False

    def _now_ready(self, number: int) -> None:
        heappush(self._ready, (self.plan.ranks[number], next(self._arrivals), number))

    def begin(self) -> None:
        """Start the ready tasks."""
        attempt = self.attempts
        used = [n for n in range(len(self.inputs)) if (None, n) in self.left]
        groups = self.plan.input_groups(len(self.inputs))
        tensors, wanted = [self.inputs[n] for n in used], [groups[n] for n in used]
        for number, value in zip(
            used, self.executor.put(tensors, wanted, self._group_count()), strict=True
        ):
            self.values[None, number] = value
        if self.remaining == 0:
            self._finish(attempt)
        self._drain(attempt)

    def _group_count(self) -> int:
        groups = [task.worker_group for task in self.plan.tasks if task.worker_group is not None]
        return max(groups) + 1 if groups else len(self.plan.tasks)

    def _drain(self, attempt: int) -> None:
        """Start the ready tasks; one thread at a time does so, without recursion."""
        while True:
            with self._lock:
                stopped = self.failure is not None or attempt != self.attempts
                if stopped or self._draining or not self._ready:
                    return
                self._draining = True
                *_, number = heappop(self._ready)
            try:
                self._start(number, attempt)
            except BaseException as error:
                self._fail(error, attempt)
            finally:
                with self._lock:
                    self._draining = False

    def _take(self, source: Source) -> Any:
        """Return a value, and release it after its last use."""
        with self._lock:
            self.left[source] -= 1
            return self.values[source] if self.left[source] else self.values.pop(source)

    def _start(self, number: int, attempt: int) -> None:
        task, spread = self.plan.tasks[number], number in self.plan.spread
        values = [self._take(source) for source in task.arguments]
        values += [self.tokens[before] for before in task.after if before in self.tokens]
        if task.local:
            here = partial(self._run_here, number, values, attempt)
            self.executor.when_ready(values, partial(self.post, here))
            return
        future = self.executor.start(task, values, spread=spread)
        if self.executor.ahead:
            # Waiting tasks hold their futures; this process holds futures without a waiting task.
            if not self.plan.followers[number]:
                self.running[number] = future
            if number in self.plan.paced:
                self.tokens[number] = self.executor.barrier(future)
            self._complete(number, self.executor.results(task, future, spread=spread), attempt)
        else:
            self.running[number] = future
            future.add_done_callback(partial(self._receive, number, values, attempt))

    def _run_here(self, number: int, values: list[Any], attempt: int) -> None:
        """Run a task in the caller's thread."""
        if attempt != self.attempts or self.failure is not None:
            return
        if any(before < self.number for before in self.failed_passes):
            # The caller receives the first error; later errors are dropped.
            return
        task = self.plan.tasks[number]
        try:
            if number not in self.local_results:
                tensors = self.executor.fetch(values[: len(task.arguments)])
                self.local_results[number] = run_stage(
                    task.stage, tensors, self.executor.here, task.label
                )
            groups = [number if task.worker_group is None else task.worker_group] * len(
                task.results
            )
            results = self.executor.put(self.local_results[number], groups, self._group_count())
        except BaseException as error:
            if not self.executor.is_lost(error):
                self.failed_passes.append(self.number)
            self._fail(error, attempt)
            if not isinstance(error, Exception):
                raise
            return
        self._complete(number, results, attempt)
        self._drain(attempt)

    def _receive(self, number: int, values: list[Any], attempt: int, future: Any) -> None:
        """Receive the results of a task, on the thread that ran it."""
        task = self.plan.tasks[number]
        try:
            results = self.executor.results(task, future, spread=number in self.plan.spread)
        except BaseException as error:
            self._fail(error, attempt)
            return
        finally:
            # The task has kept its arguments alive until here.
            values.clear()
        self._complete(number, results, attempt)
        self._drain(attempt)

    def _complete(self, number: int, results: list[Any], attempt: int) -> None:
        with self._lock:
            if attempt != self.attempts or self.failure is not None:
                return
            for position, value in enumerate(results):
                if (number, position) in self.left:
                    self.values[number, position] = value
            for follower in self.plan.followers[number]:
                self.waits[follower] -= 1
                if self.waits[follower] == 0:
                    self._now_ready(follower)
            self.remaining -= 1
            last = self.remaining == 0
            if not self.executor.ahead:
                self.running.pop(number, None)
        if self.step is not None:
            self.step()
        if last:
            self._finish(attempt)

    def _finish(self, attempt: int) -> None:
        """Wait for results that are futures."""
        values = [self.values[source] for source in self.plan.outputs]
        promised = [*values, *self.running.values()]
        self.executor.when_ready(promised, partial(self._end, attempt))

    def _end(self, attempt: int) -> None:
        with self._lock:
            if attempt == self.attempts:
                self.over = True
        self.post(None)

    def _fail(self, error: BaseException, attempt: int) -> None:
        with self._lock:
            if attempt != self.attempts or self.failure is not None:
                return
            self.failure = error
            self.over = True
        self.post(None)

    def cancel(self) -> None:
        """Cancel tasks that have not started."""
        with self._lock:
            self.failure = self.failure or RuntimeError("the run was cancelled")
            running = list(self.running.values())
            self.running = {}
            self.values = {}
        self.executor.cancel(running)

    def results(self) -> list[Tensor]:
        """Return the results of a finished pass, or raise its error."""
        if self.failure is None:
            return self.executor.fetch([self.values[source] for source in self.plan.outputs])
        failure = self.failure
        try:
            raise failure
        finally:
            # An error refers to its frames, which refer to the pass. If the pass referred to the
            # error, the values would stay alive.
            self.failure = RuntimeError("the run has failed")
            del failure

    def restart(self) -> None:
        """Restart the pass after values were lost."""
        self.cancel()
        with self._lock:
            self.attempts += 1
            self._reset()
        self.begin()


class RunLoop:
    """The thread that waits for passes and runs their host functions."""

    def __init__(self, plan: Plan, executor: StageExecutor) -> None:
        self.plan, self.executor = plan, executor
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self._numbers = count()
        self._failed_passes: list[int] = []

    def begin(self, inputs: Sequence[Tensor], step: Callable[[], None] | None = None) -> Pass:
        """Start a pass, which calls `step` after each task."""
        number = next(self._numbers)
        begun = Pass(
            self.plan, self.executor, inputs, self.inbox.put, step, number, self._failed_passes
        )
        try:
            begun.begin()
        except BaseException:
            begun.cancel()
            raise
        return begun

    def results(self, begun: Pass) -> list[Tensor]:
        """Wait for a pass and return its results."""
        try:
            while True:
                try:
                    self._wait(begun)
                    return begun.results()
                except Exception as error:
                    if not self.executor.is_lost(error) or begun.attempts + 1 >= ATTEMPTS:
                        explained = self.executor.translate_error(error)
                        if explained is error:
                            raise
                        raise explained from error
                    begun.restart()
        except BaseException:
            begun.cancel()
            raise

    def _wait(self, begun: Pass) -> None:
        while not begun.over:
            try:
                step = self.inbox.get(timeout=POLL_SECONDS)
            except Empty:
                self.executor.check()
                continue
            if step is not None:
                step()
