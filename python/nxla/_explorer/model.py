"""The data of a page: items in groups, edges between them, and spans of time."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

from nxla import _core
from nxla._values import count_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from nxla._core import DType, Expression, Node, StageGraph, Timeline

__all__ = ["Model", "Span", "spans_of_profile", "spans_of_timeline"]

#: How nodes are grouped: by scopes of `nxla.named_scope`, by runs of one source line, or not.
GROUPINGS = ("scope", "line", "none")
#: The largest number of inputs that are shown without a group.
_FEW_INPUTS = 12


class Span(NamedTuple):
    """A bar of the timeline; times are in seconds."""

    lane: str
    name: str
    start: float
    end: float
    detail: str
    #: The index of the stage, or -1.
    stage: int


def _describe_type(shape: Sequence[int], dtype: DType) -> tuple[str, int]:
    """Return a type in the printed form, and the bytes of a value."""
    text = f"{dtype}{''.join(f'[{size}]' for size in shape)}"
    return text, math.prod(shape) * dtype.itemsize


def _type_of(node: Node) -> tuple[str, int]:
    """Return the type of a node in the printed form, and the bytes of its value."""
    if node.dtype is None:
        return count_text(node.results, "result"), 0
    return _describe_type(node.shape, node.dtype)


def _stage_name(index: int, name: str | None) -> str:
    """Return the name of a stage on the page."""
    return f"stage {index} {name}" if name else f"stage {index}"


class Model:
    """The items and edges of a graph. An item is a node, or a group that contains items.

    Operands come before the operations that read them, and a group comes before its items.
    """

    def __init__(self, grouping: str) -> None:
        self.grouping = grouping
        self._strings: dict[str, int] = {}
        #: The columns of items, by name; strings are indices into a table.
        self.items: dict[str, list[Any]] = {
            name: []
            for name in (
                "parent", "group", "label", "op", "type", "line", "constants", "flops", "bytes",
                "seconds",
            )
        }  # fmt: skip
        #: The indices of the two items of each edge, and its bytes.
        self.edges: dict[str, list[int]] = {"from": [], "to": [], "bytes": []}
        #: The item of each stage.
        self.stages: list[int] = []
        self._inputs: int | None = None

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def add(
        self,
        parent: int,
        label: str,
        *,
        op: str = "",
        type: str = "",
        line: str = "",
        constants: str = "",
        flops: int = 0,
        bytes: int = 0,
        seconds: float | None = None,
        is_group: bool = False,
    ) -> int:
        """Add an item and return its index."""
        columns = self.items
        for name, text in (
            ("label", label), ("op", op), ("type", type), ("line", line), ("constants", constants),
        ):  # fmt: skip
            columns[name].append(self._string(text))
        columns["parent"].append(parent)
        columns["group"].append(int(is_group))
        columns["flops"].append(flops)
        columns["bytes"].append(bytes)
        columns["seconds"].append(seconds)
        return len(columns["parent"]) - 1

    def connect(self, source: int, target: int, bytes: int) -> None:
        """Add an edge."""
        for name, value in (("from", source), ("to", target), ("bytes", bytes)):
            self.edges[name].append(value)

    def input_group(self, parent: int, count: int) -> int:
        """Return the group for the inputs of a program: a separate group if there are many."""
        if parent >= 0 or count <= _FEW_INPUTS:
            return parent
        if self._inputs is None:
            self._inputs = self.add(-1, "inputs", op="input", is_group=True)
        return self._inputs

    def add_expression(
        self, expression: Expression, parent: int, arguments: Sequence[int | None] | None = None
    ) -> list[int | None]:
        """Add the nodes of an expression to a group, and return the items of its outputs.

        Parameters
        ----------
        expression : Expression
            The expression.
        parent : int
            The group, or -1 for the page.
        arguments : sequence of int, optional
            The items that compute the inputs.
        """
        places: dict[int, int | None] = {}
        groups = _Groups(self, parent, self.input_group(parent, len(expression.inputs)))
        sizes: dict[int, int] = {}
        for node in expression.nodes:
            kind, size = _type_of(node)
            sizes[node.id] = size
            if node.op == "constant":  # A scalar is shown at its users.
                places[node.id] = None
                continue
            operands = node.args
            constants = [
                str(operand.attributes["value"]) for operand in operands
                if places[operand.id] is None
            ]  # fmt: skip
            regions = node.regions
            item = self.add(
                groups.of(node),
                _label_of(node),
                op=node.op,
                type=kind,
                line=node.line or "",
                constants=", ".join(constants),
                flops=node.flops,
                bytes=size,
                is_group=bool(regions),
            )
            places[node.id] = item
            for region in regions:
                self.add_expression(region, item)
            if node.op == "parameter" and arguments is not None:
                source = arguments[node.attributes["index"]]
                if source is not None:
                    self.connect(source, item, size)
            for operand in operands:
                source = places[operand.id]
                if source is not None:
                    self.connect(source, item, sizes[operand.id])
        return [places[node.id] for node in expression.output_nodes]

    def add_stages(self, stages: StageGraph, seconds: Sequence[float] | None) -> None:
        """Add a group for each stage."""
        inputs: dict[int, int] = {}
        outputs: list[list[int | None]] = []
        sources = {place for stage in stages.stages for place in stage.arguments}
        above = self.input_group(-1, sum(owner is None for owner, _ in sources))
        for index, stage in enumerate(stages.stages):
            for (owner, position), (shape, dtype) in zip(
                stage.arguments, stage.expr.inputs, strict=True
            ):
                if owner is None and position not in inputs:
                    text, size = _describe_type(shape, dtype)
                    inputs[position] = self.add(
                        above, f"input {position}", op="input", type=text, bytes=size
                    )
            time = None if seconds is None else float(seconds[index])
            group = self.add(
                -1, _stage_name(index, stage.name), op="stage", seconds=time, is_group=True
            )
            self.stages.append(group)
            arguments = [
                inputs[position] if owner is None else outputs[owner][position]
                for owner, position in stage.arguments
            ]
            outputs.append(self.add_expression(stage.expr, group, arguments))

    def to_json(self, title: str, spans: Iterable[Span]) -> str:
        """Return the data of the page."""
        data = {
            "title": title,
            "strings": list(self._strings),
            "items": self.items,
            "edges": self.edges,
            "stages": self.stages,
            "spans": [list(span) for span in spans],
        }
        # `</script>` would end the script that contains the data.
        return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _label_of(node: Node) -> str:
    """Return the name of a node on the page."""
    if node.op == "parameter":
        return f"parameter {node.attributes['index']}"
    return f"{node.op} :{node.note}" if node.note else node.op


class _Groups:
    """The groups of an expression, which are created with their first node."""

    def __init__(self, model: Model, parent: int, inputs: int) -> None:
        self._model, self._parent, self._inputs = model, parent, inputs
        self._known: dict[tuple[str, ...], int] = {(): parent}
        self._last: tuple[str | None, bool] | None = None
        self._run = parent

    def of(self, node: Node) -> int:
        """Return the group of a node."""
        if node.op == "parameter":
            return self._inputs
        if self._model.grouping == "none":
            return self._parent
        if self._model.grouping == "line":
            return self._of_line(node)
        path = node.scope.split("/") if node.scope else []
        # A layer and its derivative read each other's values, so they are two groups.
        path = ["gradient", *path] if node.is_derivative else path
        for depth in range(len(path)):
            key = tuple(path[: depth + 1])
            if key not in self._known:
                above = self._known[key[:-1]]
                self._known[key] = self._model.add(above, path[depth], op="scope", is_group=True)
        return self._known[tuple(path)]

    def _of_line(self, node: Node) -> int:
        """Return the group of a run of nodes of one line.

        A group of all nodes of a line in a loop would be its own operand.
        """
        place = (node.line, node.is_derivative)
        if place != self._last:
            name = (node.line or "unknown line") + (" (gradient)" if node.is_derivative else "")
            self._last = place
            self._run = self._model.add(self._parent, name, op="line", is_group=True)
        return self._run


def grouping_of(expressions: Sequence[Expression]) -> str:
    """Return how nodes are grouped by default: by scopes if there are any, else by lines."""
    nodes = (node for expression in expressions for node in expression.nodes)
    return "scope" if any(node.scope for node in nodes) else "line"


def spans_of_timeline(timeline: Timeline, names: Sequence[str | None]) -> list[Span]:
    """Return the bars of a simulation."""
    spans = []
    for stage, worker, start, end, received in timeline.runs:
        name = _stage_name(stage, names[stage] if stage < len(names) else None)
        spans.append(
            Span(f"worker {worker}", name, start, end, f"receives {received} bytes", stage)
        )
    return spans


def spans_of_profile(events: Iterable[dict[str, Any]]) -> list[Span]:
    """Return the bars of a profile that `nxla.profile` wrote."""
    threads: dict[tuple[int, int], str] = {}
    spans = []
    for event in events:
        place = (event.get("pid", 0), event.get("tid", 0))
        if event.get("ph") == "M" and event.get("name") == "thread_name":
            threads[place] = event["args"]["name"]
        elif event.get("ph") == "X":
            start = event["ts"] * 1e-6
            details = {"category": event.get("cat", ""), **event.get("args", {})}
            text = ", ".join(f"{key}: {value}" for key, value in details.items())
            words = event["name"].split()
            is_stage = event.get("cat") == "stage" and len(words) > 1 and words[1].isdigit()
            stage = int(words[1]) if is_stage else -1
            lane = threads.get(place, f"thread {place[1]}")
            end = start + event["dur"] * 1e-6
            spans.append(Span(lane, event["name"], start, end, text, stage))
    return spans


def expressions_of(what: Any) -> list[Expression]:
    """Return the expressions of an object that a page shows."""
    if isinstance(what, _core.Expression):
        return [what]
    return [stage.expr for stage in what.stages]
