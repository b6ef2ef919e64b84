"""Construction of plans from functions, task by task."""

from __future__ import annotations

from typing import NamedTuple

from nxla import _core, tree
from nxla._cluster.plan import Plan, Task
from nxla._values import template_of
from nxla.ahead import result_templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nxla._cluster.plan import Source
    from nxla._core import StageGraph, Template, Tensor, TreeDef

__all__ = ["Builder", "Value"]


class Value(NamedTuple):
    """A container of values of a plan."""

    structure: TreeDef
    sources: list[Source]
    #: One source can have several types, which differ in names and vectorized axes.
    types: list[Template]


class _Program(NamedTuple):
    """A traced function: its stage, if it computes anything, and its results."""

    graph: StageGraph
    #: For each result, its structure and the indices of its outputs.
    results: list[tuple[TreeDef, list[int]]]
    #: The types of the outputs.
    types: list[Template]
    #: The indices of the captured tensors.
    captured: list[Source]


class Builder:
    """A plan under construction. Its inputs are arguments and captured tensors."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self._types = [template_of(tensor) for tensor in inputs]
        self.captured: list[Tensor] = []
        self._given = len(inputs)
        self._unused = iter(range(len(inputs)))
        self._tasks: list[Task] = []
        self._programs: dict[Any, _Program] = {}
        self._last: dict[int, int] = {}

    def value(self, structure: TreeDef) -> Value:
        """Return the next inputs as a container."""
        numbers = [next(self._unused) for _ in range(structure.num_leaves)]
        types = [self._types[number] for number in numbers]
        return Value(structure, [(None, number) for number in numbers], types)

    def items_of(self, value: Value) -> list[Value]:
        """Return the items of a container."""
        numbered = value.structure.unflatten(list(range(len(value.sources))))
        flat = [tree.flatten(item) for item in numbered]
        return [
            Value(structure, [value.sources[n] for n in found], [value.types[n] for n in found])
            for found, structure in flat
        ]

    def task(
        self,
        key: Any,
        function: Callable[..., tuple[Any, ...]],
        arguments: Sequence[Value],
        label: str,
        worker_group: int,
    ) -> list[Value]:
        """Add a call of a function after the earlier tasks of its group, and return its results.

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
            after = (self._last[worker_group],) if worker_group in self._last else ()
            self._tasks.append(Task(stage, taken, label, stage.expr.outputs, after, worker_group))
            self._last[worker_group] = number
        outputs = [
            sources[index] if stage is None else (number, index)
            for stage, index in program.graph.outputs
        ]
        return [
            Value(structure, [outputs[n] for n in found], [program.types[n] for n in found])
            for structure, found in program.results
        ]

    def _trace(
        self, function: Callable[..., tuple[Any, ...]], arguments: Sequence[Value]
    ) -> _Program:
        from nxla.transform import debug_expr

        templates = [argument.structure.unflatten(argument.types) for argument in arguments]
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
        return _Program(graph, results, result_templates(expression), captured)

    def plan(self, outputs: Sequence[Value]) -> Plan:
        """Return the plan that computes these results."""
        return Plan(self._tasks, [source for value in outputs for source in value.sources])
