"""Stages: a traced function cut into parts that run one after another or at the same time.

>>> import nxla as nx
>>> expression = nx.debug_expr(lambda x, w: nx.sum(nx.tanh(x @ w)))(
...     nx.template((2, 3)), nx.template((3, 4))
... )
>>> stages = nx.graph.split(expression, lambda node: "after" if node.op == "dot" else "none")
>>> len(stages)
2
>>> nx.graph.run(stages, nx.ones((2, 3)), nx.zeros((3, 4))).item()
0.0
"""

from __future__ import annotations

from nxla import _core
from nxla._core import Expression, Node, Stage, StageGraph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

    from nxla._core import Tensor

    S = TypeVar("S")
    Decision: TypeAlias = Literal["before", "after", "both", "none"] | None

    class Future(Protocol):
        """What a submitted call gives, as in `concurrent.futures`."""

        def result(self) -> Any: ...
        def add_done_callback(self, function: Callable[[Any], object], /) -> object: ...

    class Executor(Protocol):
        """Something that runs calls elsewhere, as in `concurrent.futures`."""

        def submit(self, function: Callable[..., Any], /, *args: Any) -> Any: ...


__all__ = ["Expression", "Node", "Stage", "StageGraph", "run", "split"]

_MISSING: Any = object()

if TYPE_CHECKING:

    @overload
    def split(expression: Expression, decide: Callable[[Node], Decision], /) -> StageGraph: ...

    @overload
    def split(
        expression: Expression, decide: Callable[[Node, S], tuple[Decision, S]], initial: S, /
    ) -> tuple[StageGraph, S]: ...


def split(
    expression: Expression, decide: Callable[..., Any], initial: Any = _MISSING, /
) -> StageGraph | tuple[StageGraph, Any]:
    """Cut an expression into stages.

    Parameters
    ----------
    expression : Expression
        What `debug_expr` gives.
    decide : callable
        Is asked about each node once, operands first, and answers ``"before"`` (an earlier stage
        computes the operands), ``"after"`` (a later stage uses the result), ``"both"``, or
        ``"none"``. A node has ``op``, ``shape``, ``dtype``, ``args`` and ``line``.
    initial : object, optional
        A state. With it, `decide` takes ``(node, state)`` and answers ``(decision, state)``.

    Returns
    -------
    StageGraph
        The stages; with a state ``(stages, state)``.

    Raises
    ------
    ArgumentError
        If an answer is none of the four.

    Examples
    --------
    >>> import nxla as nx
    >>> expression = nx.debug_expr(lambda x: nx.cos(nx.sin(x)))(1.0)
    >>> stages, seen = nx.graph.split(
    ...     expression, lambda node, seen: ("none", [*seen, node.op]), []
    ... )
    >>> seen
    ['sin', 'cos']
    """
    if initial is _MISSING:
        return _core.split(expression, decide)[0]
    # The engine takes None for "no state", so the state travels in a tuple of one.
    stages, state = _core.split(expression, _Boxed(decide), (initial,))
    assert state is not None
    return stages, state[0]


class _Boxed:
    """A callback whose state is wrapped in a tuple."""

    def __init__(self, decide: Callable[..., Any]) -> None:
        self.decide = decide

    def __call__(self, node: Node, state: tuple[Any]) -> tuple[Any, tuple[Any]]:
        answer = self.decide(node, state[0])
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise _core.ArgumentError(
                "split: with a state, decide must answer (decision, state), "
                f"got {type(answer).__name__}"
            )
        return answer[0], (answer[1],)


def run(stages: StageGraph, /, *args: Any, executor: Executor | None = None, **options: Any) -> Any:
    """Run all stages; the result is that of the function that was split.

    Stages that do not depend on each other run at the same time. A value is released when the last
    stage that needs it has taken it.

    Parameters
    ----------
    stages : StageGraph
        What `split` gives.
    *args
        The arguments of the traced function.
    executor : Executor, optional
        Runs the stages: a pool of threads, of spawned processes, or of machines, with the
        ``submit`` of `concurrent.futures`. Without one, threads of this process do.
    **options
        As for `jit`; in each process that runs a stage.

    Raises
    ------
    ArgumentError
        If the arguments do not fit the inputs.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import nxla as nx
    >>> expression = nx.debug_expr(lambda x: nx.cos(nx.sin(x)))(0.0)
    >>> stages = nx.graph.split(expression, lambda node: "after" if node.op == "sin" else "none")
    >>> with ThreadPoolExecutor() as pool:
    ...     nx.graph.run(stages, 0.0, executor=pool).item()
    1.0
    """
    if executor is None:
        return stages.run(args, options)
    return _Schedule(stages, stages.leaves(args), options).run(executor)


def _run_stage(stage: Stage, inputs: list[Tensor], options: dict[str, Any]) -> list[Tensor]:
    """Run one stage, in whichever process this is."""
    return stage.run(*inputs, **options)


class _Schedule:
    """The progress of one run on an executor."""

    def __init__(self, graph: StageGraph, inputs: list[Tensor], options: dict[str, Any]) -> None:
        self.graph = graph
        self.options = options
        self.stages = {stage.id: stage for stage in graph.stages}
        #: Values at hand, by where they come from.
        self.values: dict[tuple[int | None, int], Tensor] = {
            (None, index): tensor for index, tensor in enumerate(inputs)
        }
        #: How many stages and results still need each value.
        self.uses: dict[tuple[int | None, int], int] = {}
        for source in [*graph.outputs, *(s for stage in graph.stages for s in stage.arguments)]:
            self.uses[source] = self.uses.get(source, 0) + 1
        self.waiting = {stage.id: set(stage.dependencies) for stage in graph.stages}

    def run(self, executor: Executor) -> Any:
        """Submit each stage when its inputs are there, and collect the results."""
        import queue

        finished: queue.SimpleQueue[tuple[int, Future]] = queue.SimpleQueue()
        running = self._submit_ready(executor, finished)
        failure: BaseException | None = None
        while running:
            number, future = finished.get()
            running -= 1
            try:
                results = future.result()
            except BaseException as error:
                failure = failure or error
                continue
            for index, tensor in enumerate(results):
                if (number, index) in self.uses:
                    self.values[number, index] = tensor
            for needed in self.waiting.values():
                needed.discard(number)
            if failure is None:
                running += self._submit_ready(executor, finished)
        if failure is not None:
            raise failure
        return self.graph.arrange([self._take(source) for source in self.graph.outputs])

    def _submit_ready(self, executor: Executor, finished: Any) -> int:
        """Submit the stages that wait for nothing; return their number."""
        ready = [number for number, needed in self.waiting.items() if not needed]
        for number in ready:
            del self.waiting[number]
            stage = self.stages[number]
            inputs = [self._take(source) for source in stage.arguments]
            future = executor.submit(_run_stage, stage, inputs, self.options)
            future.add_done_callback(_Reporter(number, finished))
        return len(ready)

    def _take(self, source: tuple[int | None, int]) -> Tensor:
        """Return a value, and release it if nobody else needs it."""
        self.uses[source] -= 1
        return self.values[source] if self.uses[source] else self.values.pop(source)


class _Reporter:
    """Tells the schedule that a stage has finished."""

    def __init__(self, number: int, finished: Any) -> None:
        self.number = number
        self.finished = finished

    def __call__(self, future: Future) -> None:
        self.finished.put((self.number, future))
