"""Comparison of stages with the recorded stages of Nx.

A stage of Nx recomputes values of earlier stages unless they were hoisted, and computes equal nodes
once for each occurrence in the program. nxla computes every value once: equal nodes are merged, and
a shared value is an output of the stage that computes it. Nx passes a constant that an earlier
stage declares as an output; in nxla each stage contains a copy, so that it simplifies like the
whole program.

If Nx recomputes no value and passes no constant, the stages must be equal: their number, the
sources of their arguments, their printed expressions, and their outputs. Otherwise the stages of
nxla must compute the same values from the same operands, each value once, and return the same
results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import nxla as nx
from golden import text
from golden.compare import same_dtype
from golden.values import dtype_name


@dataclass
class _Values:
    """Numbers of values, independent of the stage; equal values have equal numbers."""

    known: dict[tuple[str, ...], int] = field(default_factory=dict)
    #: The printed forms of constants that are outputs of stages.
    constants: dict[int, str] = field(default_factory=dict)

    def number(self, *key: str) -> int:
        """Return the number of the value with this key."""
        return self.known.setdefault(key, len(self.known))

    def constant(self, text: str, kind: str) -> int:
        """Return the number of a constant that is an output of a stage."""
        number = self.number(text, kind)
        self.constants[number] = text
        return number

    def operand(self, number: int) -> str:
        """Return the name of an operand in a row: its constant, or the number of its value."""
        return self.constants.get(number, f"#{number}")


@dataclass
class _Computed:
    """The values that stages compute."""

    #: For each output of each stage, the values that it depends on, repeated as in the printed
    #: form.
    printed: list[list[list[int]]]
    #: The outputs of each stage.
    outputs: list[list[int]]
    #: True if a stage takes a constant from an earlier stage.
    passes_constants: bool = False

    @property
    def once(self) -> list[int]:
        """The values, repeated for each stage that computes them."""
        return [n for stage in self.printed for n in {n for output in stage for n in output}]

    @property
    def is_shared(self) -> bool:
        """True if a value is printed repeatedly, and may be computed repeatedly."""
        numbers = [n for stage in self.printed for output in stage for n in output]
        return len(set(numbers)) < len(numbers)


def mismatch(expected: list[dict[str, Any]], stages: nx.StageGraph) -> str | None:
    """Return how stages differ from the recorded ones; None if they do not."""
    values = _Values()
    recorded = _follow(values, [(stage["arguments"], stage["expr"]) for stage in expected])
    actual = _follow(values, [([*s.arguments], str(s.expr)) for s in stages.stages])
    if not recorded.is_shared and not recorded.passes_constants:
        return _first_difference(expected, stages.stages)
    if len(set(actual.once)) < len(actual.once):
        return "a value is computed by two stages"
    if set(actual.once) != set(recorded.once):
        missing = len(set(recorded.once) - set(actual.once))
        more = len(set(actual.once) - set(recorded.once))
        return f"{missing} values are not computed, {more} others are"
    results = [actual.outputs[stage][index] for stage, index in stages.outputs if stage is not None]
    required = [n for n in recorded.outputs[-1] if n in recorded.once]
    if sorted(n for n in results if n in recorded.once) != sorted(required):
        return "the results are other values"
    return None


def _follow(values: _Values, stages: Sequence[tuple[Sequence[Any], str]]) -> _Computed:
    """Return numbers for the values of stages in order, starting with the inputs."""
    computed = _Computed([], [])
    for arguments, printed in stages:
        sources = [
            values.number("input", str(index)) if stage is None else computed.outputs[stage][index]
            for stage, index in arguments
        ]
        passed = (n for n, (stage, _) in zip(sources, arguments, strict=True) if stage is not None)
        computed.passes_constants |= any(n in values.constants for n in passed)
        graphs = text.graphs(printed)
        computed.printed.append([[] for _ in graphs])
        computed.outputs.append(
            [
                _number(values, graph, sources, dependencies)
                for graph, dependencies in zip(graphs, computed.printed[-1], strict=True)
            ]
        )
    return computed


def _number(
    values: _Values, graph: text.Graph, sources: Sequence[int], dependencies: list[int]
) -> int:
    """Return the number of an output, and collect the numbers of the values it depends on."""
    numbers: dict[str, int] = {}

    def visit(name: str) -> int:
        if name not in numbers:
            words, kind, listed = graph.lines[name]
            same = text.same_value(words, kind, graph)
            if same is not None:
                numbers[name] = visit(same)
                return numbers[name]
            if words.startswith("parameter:"):
                numbers[name] = sources[int(words.split(":")[1])]
            else:
                row = text.rename(words, graph, lambda operand: values.operand(visit(operand)))
                numbers[name] = values.number(row, kind)
                if not listed:
                    dependencies.append(numbers[name])
        return numbers[name]

    if graph.root in graph.lines:
        return visit(graph.root)
    return values.constant(graph.root, graph.type)


def _first_difference(expected: list[dict[str, Any]], found: Sequence[nx.Stage]) -> str | None:
    """Compare number, arguments, outputs and texts of stages."""
    if len(found) != len(expected):
        return f"{len(found)} stages, expected {len(expected)}"
    for index, (want, got) in enumerate(zip(expected, found, strict=True)):
        arguments = [list(source) for source in got.arguments]
        if arguments != want["arguments"]:
            return f"stage {index}: arguments {arguments}, expected {want['arguments']}"
        outputs = [(tuple(shape), str(dtype)) for shape, dtype in got.expr.outputs]
        required = [(tuple(o["shape"]), dtype_name(o["type"])) for o in want["outputs"]]
        if len(outputs) != len(required) or not all(map(_same_type, required, outputs)):
            return f"stage {index}: outputs {outputs}, expected {required}"
        reason = text.mismatch(want["expr"], str(got.expr))
        if reason is not None:
            return f"stage {index}: {reason}"
    return None


def _same_type(expected: tuple[Any, str], actual: tuple[Any, str]) -> bool:
    return expected[0] == actual[0] and same_dtype(expected[1], actual[1])
