"""What is to run: tasks, where their arguments come from, and what waits for what."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from nxla._core import Stage, StageGraph, Tensor

    #: Output ``k`` of task ``s``, or input ``k`` of the whole as ``(None, k)``.
    Source: TypeAlias = tuple[int | None, int]

__all__ = ["Plan", "Task", "plan_of"]


@dataclass(frozen=True, slots=True)
class Task:
    """A stage that runs once, on given arguments."""

    stage: Stage
    arguments: tuple[Source, ...]
    #: What errors call it.
    label: str
    #: Shape and dtype of each result.
    results: list[tuple[tuple[int, ...], Any]]
    #: Tasks that must have run before, although nothing comes from them.
    after: tuple[int, ...] = ()
    #: Tasks with one number do well to run in one place, since they share what is large.
    lane: int | None = None
    #: Whether it calls functions of this process, and so has to run in it.
    local: bool = False

    @property
    def dependencies(self) -> set[int]:
        """The tasks that must have run before."""
        return {task for task, _ in self.arguments if task is not None} | set(self.after)


@dataclass(slots=True)
class Plan:
    """Tasks in an order in which they can run, and where the results of the whole come from."""

    tasks: list[Task]
    outputs: list[Source]
    #: For each task how soon it should run among those that can; the order in which they become
    #: ready decides where that is the same.
    ranks: Sequence[int] = ()
    #: For each task how many others must have run before.
    waits: list[int] = field(init=False)
    #: For each task those that wait for it.
    followers: list[list[int]] = field(init=False)
    #: For each value how often it is taken, by tasks or as a result.
    readers: dict[Source, int] = field(init=False)
    #: Tasks whose results go to more than one reader, which may want only one of them.
    spread: set[int] = field(init=False)
    #: Tasks of lanes after which others come in an order.
    paced: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.ranks = self.ranks or [0] * len(self.tasks)
        self.waits = [len(task.dependencies) for task in self.tasks]
        self.followers = [[] for _ in self.tasks]
        self.readers = {}
        who: dict[int, set[int]] = {}
        for number, task in enumerate(self.tasks):
            for before in task.dependencies:
                self.followers[before].append(number)
            for source in task.arguments:
                self._read(source, number, who)
        for source in self.outputs:
            self._read(source, -1, who)
        self.spread = {task for task, readers in who.items() if len(readers) > 1}
        laned = (task for task in self.tasks if task.lane is not None)
        self.paced = {before for task in laned for before in task.after}

    def _read(self, source: Source, reader: int, who: dict[int, set[int]]) -> None:
        self.readers[source] = self.readers.get(source, 0) + 1
        if source[0] is not None:
            who.setdefault(source[0], set()).add(reader)

    def lanes(self, inputs: int) -> list[int | None]:
        """For each input the lane of its first reader; without lanes, how far on that reader is.

        Neighbours in a chain are better off in one place, and so are the inputs they take.
        """
        found: list[int | None] = [None] * inputs
        for number, task in reversed(list(enumerate(self.tasks))):
            for source, index in task.arguments:
                if source is None:
                    found[index] = number if task.lane is None else task.lane
        return found


def label_of(stage: Stage) -> str:
    """Return what errors call a stage."""
    name = getattr(stage, "name", None)
    return f"stage {stage.id}" if name is None else f"stage {stage.id} ({name!r})"


def plan_of(stages: StageGraph, listening: Sequence[bool]) -> Plan:
    """Return the plan of a graph of stages; some have to run in this process."""
    tasks = []
    for stage, local in zip(stages.stages, listening, strict=True):
        arguments = tuple(stage.arguments)
        sources = {task for task, _ in arguments}
        after = tuple(task for task in stage.dependencies if task not in sources)
        label = label_of(stage)
        tasks.append(Task(stage, arguments, label, stage.expr.outputs, after, local=local))
    return Plan(tasks, list(stages.outputs), stages._ranks())


class _Captured:
    """Tensors that functions mention, one object for each, so that they are known again."""

    def __init__(self) -> None:
        self.known: WeakKeyDictionary[StageGraph, list[Tensor]] = WeakKeyDictionary()

    def of(self, stages: StageGraph) -> list[Tensor]:
        """Return those of a graph of stages."""
        found = self.known.get(stages)
        if found is None:
            found = self.known[stages] = stages._captured()
        return found


_CAPTURED = _Captured()


def inputs_of(stages: StageGraph, args: tuple[Any, ...]) -> list[Tensor]:
    """Return the tensors that a graph of stages takes.

    A tensor among the arguments comes back as the same object, by which it is known again when it
    is sent a second time.
    """
    from nxla import _core

    leaves = stages._leaves(args)
    given, _ = _core.tree_flatten(args)
    if len(given) == len(leaves):
        for position, (mine, leaf) in enumerate(zip(given, leaves, strict=True)):
            if isinstance(mine, _core.Tensor) and leaf._is_same_data(mine):
                leaves[position] = mine
    return leaves + _CAPTURED.of(stages)
