"""Construction of plans from functions, task by task."""

from __future__ import annotations

from typing import NamedTuple

from nxla import _core, tree
from nxla._cluster.plan import Plan, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nxla._cluster.plan import Source
    from nxla._core import StageGraph, Tensor, TreeDef

__all__ = ["Builder", "Value"]


class Value(NamedTuple):
    """A container of values of a plan."""

    structure: TreeDef
    sources: list[Source]


class _Program(NamedTuple):
    """A traced function: its stage, if it computes anything, and its results."""

    graph: StageGraph
    #: For each result, its structure and the indices of its outputs.
    results: list[tuple[TreeDef, list[int]]]
    #: The indices of the captured tensors.
    captured: list[Source]


class Builder:
    """A plan under construction. Its inputs are arguments and captured tensors."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self.types: dict[Source, Any] = {
            (None, number): _core.Template(tensor.shape, tensor.dtype)
            for number, tensor in enumerate(inputs)
        }
        self.captured: list[Tensor] = []
        self._given = len(inputs)
        self._unused = iter(range(len(inputs)))
        self._tasks: list[Task] = []
        self._programs: dict[Any, _Program] = {}
        self._last: dict[int, int] = {}

    def value(self, structure: TreeDef) -> Value:
        """Return the next inputs as a container."""
        return Value(structure, [(None, next(self._unused)) for _ in range(structure.num_leaves)])

    def items_of(self, value: Value) -> list[Value]:
        """Return the items of a container."""
        numbered = value.structure.unflatten(list(range(len(value.sources))))
        flat = [tree.flatten(item) for item in numbered]
        return [Value(structure, [value.sources[n] for n in found]) for found, structure in flat]

    def task(
        self,
        key: Any,
        function: Callable[..., tuple[Any, ...]],
        arguments: Sequence[Value],
        label: str,
        lane: int,
    ) -> list[Value]:
        """Add a call of a function after the earlier tasks of its lane, and return its results.

        Calls with the same key share a traced function; their arguments have the same types.
        """
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self._trace(function, arguments)
        sources = [source for argument in arguments for source in argument.sources]
        sources += program.captured
        number = len(self._tasks)
        for stage in program.graph.stages:
            taken = tuple(sources[index] for _, index in stage.arguments)
            after = (self._last[lane],) if lane in self._last else ()
            self._tasks.append(Task(stage, taken, label, stage.expr.outputs, after, lane))
            for position, kind in enumerate(stage.expr.outputs):
                self.types[number, position] = _core.Template(*kind)
            self._last[lane] = number
        outputs = [
            sources[index] if stage is None else (number, index)
            for stage, index in program.graph.outputs
        ]
        return [Value(tree_, [outputs[n] for n in found]) for tree_, found in program.results]

    def _trace(
        self, function: Callable[..., tuple[Any, ...]], arguments: Sequence[Value]
    ) -> _Program:
        from nxla.transform import debug_expr

        templates = [a.structure.unflatten([self.types[s] for s in a.sources]) for a in arguments]
        expression = debug_expr(function)(*templates)
        graph, _ = _core.split(expression, lambda _: "none")
        results = [
            (structure, found)
            for found, structure in map(
                tree.flatten, expression.arrange(list(range(len(expression.outputs))))
            )
        ]
        captured: list[Source] = []
        for tensor in expression.captured:
            captured.append((None, self._given + len(self.captured)))
            self.captured.append(tensor)
        return _Program(graph, results, captured)

    def plan(self, outputs: Sequence[Value]) -> Plan:
        """Return the plan that computes these results."""
        return Plan(self._tasks, [source for value in outputs for source in value.sources])
