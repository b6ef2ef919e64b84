"""Plans: tasks, the sources of their arguments, and dependencies."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from nxla._core import Stage, StageGraph, Tensor

    #: Output ``k`` of task ``s``, or input ``k`` of the plan as ``(None, k)``.
    Source: TypeAlias = tuple[int | None, int]

__all__ = ["Plan", "Task", "plan_of"]


@dataclass(frozen=True, slots=True)
class Task:
    """A single execution of a stage with given arguments."""

    stage: Stage
    arguments: tuple[Source, ...]
    #: The name of the task in errors.
    label: str
    #: Shape and dtype of each result.
    results: list[tuple[tuple[int, ...], Any]]
    #: Tasks that must run before, although they pass no value.
    after: tuple[int, ...] = ()
    #: Tasks with the same worker group should run on one worker, because they share large values.
    worker_group: int | None = None
    #: True if it calls host functions, so that it must run in this process.
    local: bool = False

    @property
    def dependencies(self) -> set[int]:
        """The tasks that must have run before."""
        return {task for task, _ in self.arguments if task is not None} | set(self.after)


@dataclass(slots=True)
class Plan:
    """Tasks in execution order, and the sources of the results."""

    tasks: list[Task]
    outputs: list[Source]
    #: The priority of each task among the ready tasks; ties keep the order of readiness.
    ranks: Sequence[int] = ()
    #: The number of dependencies of each task.
    waits: list[int] = field(init=False)
    #: The dependents of each task.
    followers: list[list[int]] = field(init=False)
    #: The number of uses of each value, by tasks or as a result.
    readers: dict[Source, int] = field(init=False)
    #: Tasks whose results have several readers, which may need only one of them.
    spread: set[int] = field(init=False)
    #: Tasks of groups that other tasks must follow in order.
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
        grouped = (task for task in self.tasks if task.worker_group is not None)
        self.paced = {before for task in grouped for before in task.after}

    def _read(self, source: Source, reader: int, who: dict[int, set[int]]) -> None:
        self.readers[source] = self.readers.get(source, 0) + 1
        if source[0] is not None:
            who.setdefault(source[0], set()).add(reader)

    def input_groups(self, inputs: int) -> list[int | None]:
        """Return the worker group of the first reader of each input; without groups, its position.

        Neighbors in a chain, and their inputs, should be on one worker.
        """
        found: list[int | None] = [None] * inputs
        for number, task in reversed(list(enumerate(self.tasks))):
            for source, index in task.arguments:
                if source is None:
                    found[index] = number if task.worker_group is None else task.worker_group
        return found


def label_of(stage: Stage) -> str:
    """Return the name of a stage in errors."""
    return f"stage {stage.id}" if stage.name is None else f"stage {stage.id} ({stage.name!r})"


def plan_of(stages: StageGraph, listening: Sequence[bool]) -> Plan:
    """Return the plan of a graph of stages; some stages must run in this process."""
    tasks = []
    for stage, local in zip(stages.stages, listening, strict=True):
        arguments = tuple(stage.arguments)
        sources = {task for task, _ in arguments}
        after = tuple(task for task in stage.dependencies if task not in sources)
        label = label_of(stage)
        tasks.append(Task(stage, arguments, label, stage.expr.outputs, after, local=local))
    return Plan(tasks, list(stages.outputs), stages._ranks())


#: The captured tensors of each graph of stages, one object for each, so that they are sent once.
_CAPTURED: WeakKeyDictionary[StageGraph, list[Tensor]] = WeakKeyDictionary()


def inputs_of(stages: StageGraph, args: tuple[Any, ...]) -> list[Tensor]:
    """Return the tensors of the inputs of a graph of stages.

    A tensor among the arguments is returned as the same object, so that it is sent only once.
    """
    from nxla import _core

    leaves = stages._leaves(args)
    given, _ = _core.tree_flatten(args)
    if len(given) == len(leaves):
        for position, (mine, leaf) in enumerate(zip(given, leaves, strict=True)):
            if isinstance(mine, _core.Tensor) and leaf._is_same_data(mine):
                leaves[position] = mine
    captured = _CAPTURED.get(stages)
    if captured is None:
        captured = _CAPTURED[stages] = stages._captured()
    return leaves + captured
