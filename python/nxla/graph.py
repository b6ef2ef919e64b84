"""Stages: a traced function that is split into programs.

>>> import nxla as nx
>>> expression = nx.debug_expr(lambda x, w: nx.sum(nx.tanh(x @ w)))(
...     nx.template((2, 3)), nx.template((3, 4))
... )
>>> stages = nx.graph.split(expression, lambda node: "after" if node.op == "dot" else "none")
>>> len(stages)
2
>>> nx.graph.run(stages, nx.ones((2, 3)), nx.zeros((3, 4))).item()
0.0

A `Policy` splits without a decision for each node, and a function can be compiled in stages:

>>> model = nx.jit(lambda x, w: nx.sum(nx.tanh(x @ w)), stages=nx.graph.Policy.every_ops(1))
>>> model(nx.ones((2, 3)), nx.zeros((3, 4))).item()
0.0
"""

from __future__ import annotations

from collections.abc import Iterable

from nxla import _core, _hints
from nxla._core import Expression, Node, Policy, Stage, StageGraph, Timeline
from nxla._values import as_list, keeps_structure, kind_of
from nxla.ops.control import _attach_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

    from nxla._cluster.executors import traffic
    from nxla._cluster.stream import pipeline
    from nxla._cluster.training import PipelineStep, pipeline_schedule, pipeline_step

    S = TypeVar("S")
    T = TypeVar("T")
    Decision: TypeAlias = Literal["before", "after", "both", "none"] | None

    class Future(Protocol):
        """The future of a submitted call, as in `concurrent.futures`."""

        def result(self) -> Any: ...
        def add_done_callback(self, function: Callable[[Any], object], /) -> object: ...

    class Executor(Protocol):
        """An object that runs calls elsewhere, as in `concurrent.futures`."""

        def submit(self, function: Callable[..., Any], /, *args: Any) -> Future: ...


__all__ = [
    "Expression", "Node", "PipelineStep", "Policy", "Stage", "StageGraph", "Timeline", "mark",
    "pipeline", "pipeline_schedule", "pipeline_step", "run", "split", "traffic",
]  # fmt: skip

_MISSING: Any = object()

#: Names of this module that import more of the standard library, and their modules.
_LATER = {
    "PipelineStep": "nxla._cluster.training",
    "pipeline": "nxla._cluster.stream",
    "pipeline_schedule": "nxla._cluster.training",
    "pipeline_step": "nxla._cluster.training",
    "traffic": "nxla._cluster.executors",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import rarely used names on first use, which keeps `import nxla` fast."""
        from importlib import import_module

        if name not in _LATER:
            raise _hints.missing_name_error(name, __name__)
        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found

    def __dir__() -> list[str]:
        """Return the public names, including names that are imported on first use."""
        return sorted(__all__)


if TYPE_CHECKING:

    @overload
    def split(
        expression: Expression, policy: Policy | Literal["layers", "training", "marks", "auto"], /
    ) -> StageGraph: ...

    @overload
    def split(expression: Expression, decide: Callable[[Node], Decision], /) -> StageGraph: ...

    @overload
    def split(
        expression: Expression, decide: Callable[[Node, S], tuple[Decision, S]], initial: S, /
    ) -> tuple[StageGraph, S]: ...


def split(
    expression: Expression, decide: Any, initial: Any = _MISSING, /
) -> StageGraph | tuple[StageGraph, Any]:
    """Split an expression into stages.

    Parameters
    ----------
    expression : Expression
        The result of `debug_expr`.
    decide : Policy, str or callable
        A `Policy`, the name of a policy without numbers, or a function. The function is called once
        for each node, operands first, and returns ``"before"`` (an earlier stage computes the
        operands), ``"after"`` (a later stage uses the result), ``"both"``, or ``"none"``. A node
        has ``op``, ``shape``, ``dtype``, ``args`` and ``line``.
    initial : object, optional
        A state. With it, `decide` is called with ``(node, state)`` and returns ``(decision,
        state)``.

    Returns
    -------
    StageGraph
        The stages; with a state ``(stages, state)``.

    Raises
    ------
    ArgumentError
        If a decision has another value, or a policy cannot split the expression: an operation needs
        more memory than a stage may, a mark is missing, or the expression has no gradient.

    Examples
    --------
    >>> import nxla as nx
    >>> expression = nx.debug_expr(lambda x: nx.cos(nx.sin(x)))(1.0)
    >>> stages = nx.graph.split(expression, nx.graph.Policy.balanced(2))
    >>> [stage.expr.op_counts() for stage in stages]
    [{'parameter': 1, 'sin': 1}, {'cos': 1, 'parameter': 1}]
    >>> stages, seen = nx.graph.split(
    ...     expression, lambda node, seen: ("none", [*seen, node.op]), []
    ... )
    >>> seen
    ['sin', 'cos']
    """
    if callable(initial):
        message = (
            "split: initial: must be a state after the callable, as in split(expression, decide, "
            f"state); got {kind_of(initial)}; Nx has split(expression, state, fun)"
        )
        raise _core.ArgumentError(message)
    if not callable(decide):
        if initial is not _MISSING:
            kind = kind_of(decide)
            message = f"split: decide: must be callable with a state; got {kind}; omit the state"
            raise _core.ArgumentError(message)
        return _core.split_by(expression, decide)
    if initial is _MISSING:
        return _core.split(expression, decide)[0]
    # The runtime interprets None as "no state", so the state is wrapped in a tuple.
    stages, state = _core.split(expression, _Boxed(decide), (initial,))
    assert state is not None
    return stages, state[0]


@keeps_structure
def mark(value: Any, name: str, /) -> Any:
    """Name a value for `Policy.marks`, which makes a stage of the nodes that compute it.

    Outside a traced function it has no effect.

    Parameters
    ----------
    value : tensor or container
        The value; the tensors of a container are marked together.
    name : str
        The name of the stage.

    Returns
    -------
    tensor or container
        The value with its mark.

    Raises
    ------
    ArgumentError
        If the name is not a string.

    Examples
    --------
    >>> import nxla as nx
    >>> def model(x):
    ...     code = nx.graph.mark(nx.tanh(x), "encoder")
    ...     return nx.sum(code * code)
    >>> stages = nx.graph.split(nx.debug_expr(model)(nx.template((3,))), "marks")
    >>> [stage.name for stage in stages]
    ['encoder', None]
    """
    return _attach_note("mark", "name", value, name)


class _Boxed:
    """A callback whose state is wrapped in a tuple."""

    def __init__(self, decide: Callable[..., Any]) -> None:
        self.decide = decide

    def __call__(self, node: Node, state: tuple[Any]) -> tuple[Any, tuple[Any]]:
        answer = self.decide(node, state[0])
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise _core.ArgumentError(
                "split: decide: must return (decision, state) if a state is passed; got "
                f"{kind_of(answer)}"
            )
        return answer[0], (answer[1],)


def run(
    stages: StageGraph | Sequence[Stage],
    /,
    *args: Any,
    executor: Executor | None = None,
    debug_nans: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Run all stages and return the result of the function that was split.

    Independent stages run at the same time. A value is released after its last use. A stage with a
    hook that has a listener, or with a runtime call, runs in the thread of the caller on every
    executor, because Python functions are not sent. An error names the stage and its source lines.
    After an error or an interrupt, stages that have not started do not run.

    Parameters
    ----------
    stages : StageGraph or sequence of Stage
        The result of `split`, or a list of all its stages.
    *args
        The arguments of the traced function in their containers, or one tensor for each input.
    executor : Executor, distributed.Client or module, optional
        The executor; threads of the process by default.

        * A ``ProcessPoolExecutor``: large values are in shared memory, where an argument stays as
          long as its tensor lives. XLA requires processes that are not forked.
        * A Dask client: values are futures that stay on the workers. An argument and a program are
          sent once. Values that are lost with a worker are computed again.
        * The module ``ray``, after ``ray.init()``: values are in the stores of the nodes that
          computed them.
        * Any other object with the ``submit`` of `concurrent.futures`: values are sent with the
          call.
    debug_nans : bool, optional
        True checks that the results are finite, False does not; by default `nxla.debug_nans`
        decides. If a result is not finite, the evaluator computes the stages again in this process,
        and the error names the operation and its source line. `StageGraph.run` and `pipeline` do
        not accept the option; use ``with nx.debug_nans():``.
    **kwargs
        Keyword arguments of the traced function. All other names are options of the compiler, as
        for `jit`, in addition to the defaults of the caller; they apply in each process that runs a
        stage. ``progress=True`` shows a progress bar on standard error for long runs, except on
        Dask. The options ``max_compiles``, ``on_max_compiles`` and ``on_unusable_donation`` of
        `jit` do not apply: a stage has fixed types, and no argument is donated.

    Returns
    -------
    Any
        The result of the traced function, in its containers.

    Raises
    ------
    ArgumentError
        If the arguments do not match the inputs, or the executor cannot run stages. The message
        names the parts of arguments: ``params['w']: must be f32[3]; got s32[3]``.
    ExecutionError
        If a process of a pool dies, a cluster has no worker, a worker has no nxla or another
        version of it, or a checked result is not finite.

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
    stages = graph_of("run", stages)
    if debug_nans is not None:
        from nxla import debug

        if not isinstance(debug_nans, bool):
            raise _core.ArgumentError(
                f"run: debug_nans: must be one of False, True; got {debug_nans!r}"
            )
        with debug.debug_nans(debug_nans):
            return run(stages, *args, executor=executor, **kwargs)
    if executor is None:
        return stages.run(*args, **kwargs)
    from nxla import _cluster

    bound, options = stages._bind(args, kwargs)
    return _cluster.run(stages, bound, options, executor)


def graph_of(function: str, stages: StageGraph | Sequence[Stage]) -> StageGraph:
    """Return the graph of a list of all its stages; `function` has the argument, for errors."""
    if isinstance(stages, StageGraph):
        return stages
    if not isinstance(stages, Iterable):
        raise _core.ArgumentError(
            f"{function}: stages: must be a StageGraph or a list of Stage; got {kind_of(stages)}"
        )
    listed = as_list(function, "stages", stages)
    for position, stage in enumerate(listed):
        if not isinstance(stage, Stage):
            raise _core.ArgumentError(
                f"{function}: stages: must be a StageGraph or a list of Stage; item {position} is "
                f"{type(stage).__name__}"
            )
    return StageGraph._of_stages(listed)


_hints.install(globals())
