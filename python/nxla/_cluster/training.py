"""Pipelined training steps, whose layers run in different places on parts of a batch.

A *part* (micro-batch) passes through the layers forward and backward, while other layers process
other parts. Gradients are summed in the order of the parts, so the result does not depend on the
schedule.
"""

from __future__ import annotations

from nxla import _core, _hints, tree
from nxla._cluster import bar_of, executor_of
from nxla._cluster.build import Builder
from nxla._cluster.driver import RunLoop
from nxla._values import as_count, as_list, template_of
from nxla.derivatives import vjp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal, TypeAlias

    from nxla._cluster.build import Value
    from nxla._core import Tensor, TreeDef

    Schedule: TypeAlias = Literal["gpipe", "1f1b"]

__all__ = ["PipelineStep", "pipeline_schedule", "pipeline_step"]

_SCHEDULES = ("gpipe", "1f1b")


def pipeline_schedule(
    schedule: Schedule, layers: int, parts: int, /
) -> list[list[tuple[Literal["forward", "backward"], int]]]:
    """Return the schedule of each layer of a pipelined step.

    Parameters
    ----------
    schedule : {"gpipe", "1f1b"}
        ``"gpipe"``: all forward passes run before the backward passes (Huang et al., "GPipe",
        2019). ``"1f1b"``: after the first backward pass, a layer alternates between forward and
        backward passes, so layer ``p`` of ``n`` stores the values of ``n - p`` parts instead of
        all (Narayanan et al., "PipeDream", 2019, in its synchronous form).
    layers, parts : int
        The number of layers, and the number of parts of a batch.

    Returns
    -------
    list of list of tuple
        For each layer, pairs of ``"forward"`` or ``"backward"`` and the index of a part. The
        last layer has no forward entries: its ``"backward"`` includes the forward pass.

    Raises
    ------
    ArgumentError
        If the schedule does not exist, or a number is less than 1.

    Examples
    --------
    >>> import nxla as nx
    >>> [kind[0] + str(part) for kind, part in nx.graph.pipeline_schedule("1f1b", 3, 4)[0]]
    ['f0', 'f1', 'f2', 'b0', 'f3', 'b1', 'b2', 'b3']
    """
    return _orders("pipeline_schedule", schedule, layers, parts)


def _orders(
    op: str, schedule: Schedule, layers: int, parts: int
) -> list[list[tuple[Literal["forward", "backward"], int]]]:
    """Return the schedule of each layer; an error names the public function `op`."""
    if schedule not in _SCHEDULES:
        raise _core.ArgumentError(f'{op}: schedule: must be "gpipe" or "1f1b"; got {schedule!r}')
    layers, parts = as_count(op, "layers", layers, 1), as_count(op, "parts", parts, 1)
    orders: list[list[tuple[Literal["forward", "backward"], int]]] = []
    for layer in range(layers):
        if layer == layers - 1:
            orders.append([("backward", part) for part in range(parts)])
            continue
        ahead = parts if schedule == "gpipe" else min(layers - layer, parts)
        order: list[tuple[Literal["forward", "backward"], int]] = []
        order += [("forward", part) for part in range(ahead)]
        for part in range(parts):
            order.append(("backward", part))
            if part + ahead < parts:
                order.append(("forward", part + ahead))
        orders.append(order)
    return orders


def pipeline_step(
    layers: Sequence[Callable[[Any, Any], Any]],
    loss: Callable[[Any, Any], Any],
    update: Callable[[Any, Any, Any], tuple[Any, Any]],
    /,
    *,
    parts: int,
    schedule: Schedule = "1f1b",
    executor: Any = None,
    **options: Any,
) -> PipelineStep:
    """Return a training step whose layers run on different workers.

    The batch is divided into parts along its first axis. The sum of their gradients is divided
    by the number of parts before each layer is updated. Only the inputs of a layer are stored
    for its backward pass, which recomputes other values.

    Parameters
    ----------
    layers : sequence of callable
        ``layer(parameters, x)`` returns the ``x`` of the next layer. The stages of a layer run
        in one place if the executor supports it.
    loss : callable
        ``loss(y, targets)`` of the result of the last layer: a scalar, the mean over the part.
    update : callable
        ``update(parameters, gradients, state)`` returns the new parameters and state of a layer.
    parts : int
        The number of parts (micro-batches) of a batch.
    schedule : {"gpipe", "1f1b"}
        The schedule, see `pipeline_schedule`. It affects time and memory, but not results.
    executor : Executor or distributed.Client, optional
        The executor of the stages, as for `run`; threads of the process by default.
    **options
        As for `run`.

    Returns
    -------
    PipelineStep
        ``step(parameters, states, x, targets)`` returns ``(loss, parameters, states)``, where
        `parameters` and `states` are lists with one entry for each layer.

    Raises
    ------
    ArgumentError
        If the schedule does not exist; in a call, if a batch cannot be divided into equal parts.

    Examples
    --------
    >>> import nxla as nx
    >>> step = nx.graph.pipeline_step(
    ...     [lambda w, x: nx.tanh(x * w), lambda w, x: x * w],
    ...     lambda y, target: nx.mean((y - target) ** 2),
    ...     lambda w, gradient, state: (w - 0.1 * gradient, state),
    ...     parts=2,
    ... )
    >>> x = nx.tensor([0.0, 1.0, 2.0, 3.0])
    >>> loss, weights, states = step([nx.tensor(1.0), nx.tensor(1.0)], [(), ()], x, 2 * x)
    >>> round(loss.item(), 2)
    8.95
    >>> weights[1].item() > 1
    True
    """
    listed = as_list("pipeline_step", "layers", layers)
    if not listed:
        raise _core.ArgumentError("pipeline_step: layers: must not be empty")
    return PipelineStep(listed, loss, update, parts, schedule, executor, options)


class PipelineStep:
    """A pipelined training step; see `pipeline_step`."""

    def __init__(
        self,
        layers: Sequence[Callable[[Any, Any], Any]],
        loss: Callable[[Any, Any], Any],
        update: Callable[[Any, Any, Any], tuple[Any, Any]],
        parts: int,
        schedule: Schedule,
        executor: Any,
        options: dict[str, Any],
    ) -> None:
        self.layers, self.loss, self.update = list(layers), loss, update
        self.parts, self.executor, self.options = parts, executor, options
        self.orders = _orders("pipeline_step", schedule, len(self.layers), parts)
        self._known: dict[Any, _Traced] = {}

    def __call__(
        self, parameters: Sequence[Any], states: Sequence[Any], x: Any, targets: Any, /
    ) -> tuple[Tensor, list[Any], list[Any]]:
        """Run a step; return the mean loss, and the new parameters and states."""
        parameters = as_list("pipeline_step", "parameters", parameters)
        states = as_list("pipeline_step", "states", states)
        for name, found in (("parameters", parameters), ("states", states)):
            if len(found) != len(self.layers):
                raise _core.ArgumentError(
                    f"pipeline_step: {name}: must be {len(self.layers)}, one for each layer; got "
                    f"{len(found)}"
                )
        own = [tree.flatten((p, s)) for p, s in zip(parameters, states, strict=True)]
        batches = [tree.flatten(part) for part in cut((x, targets), self.parts)]
        leaves = [leaf for found, _ in (*own, *batches) for leaf in found]
        tensors = [_core.tensor(leaf) for leaf in leaves]
        structures = tuple(structure for _, structure in (*own, *batches))
        if any(tensor.vectorized_axes for tensor in tensors):
            raise _core.ArgumentError(
                "pipeline_step: parameters, states, batch: must not have vectorized axes; "
                "use nx.devectorize"
            )
        key = (structures, tuple(map(template_of, tensors)))
        traced = self._known.get(key)
        if traced is None:
            traced = self._known[key] = _Traced(self, structures, tensors)
        return self._run(traced, tensors)

    def _run(self, traced: _Traced, tensors: list[Tensor]) -> tuple[Tensor, list[Any], list[Any]]:
        options = _core.merge_options(_core.get_default_options(), self.options)
        bar = bar_of(options, "running stages", len(traced.plan.tasks), self.executor)
        executor = executor_of(self.executor, options, threads=len(self.layers))
        try:
            loop = RunLoop(traced.plan, executor)
            found = iter(loop.results(loop.begin([*tensors, *traced.captured], bar)))
        finally:
            executor.close()
            if bar is not None:
                bar.close()
        loss = next(found)
        pairs = [
            structure.unflatten([next(found) for _ in range(structure.num_leaves)])
            for structure in traced.own
        ]
        return loss, [p for p, _ in pairs], [s for _, s in pairs]


def cut(batch: Any, parts: int) -> list[Any]:
    """Return a batch in parts of equal size, along the first axes of its tensors."""
    from nxla import tensor

    leaves, structure = tree.flatten(batch)
    wholes = [tensor(leaf) for leaf in leaves]
    sizes = {whole.shape[0] if whole.shape else 0 for whole in wholes}
    if len(sizes) > 1:
        raise _core.ArgumentError(
            f"pipeline_step: x, targets: must have first axes of one size; got {sorted(sizes)}"
        )
    pieces: list[list[Any]] = [[] for _ in range(parts)]
    for whole in wholes:
        rows = whole.shape[0] if whole.shape else 0
        if rows == 0 or rows % parts:
            raise _core.ArgumentError(
                f"pipeline_step: batch: first axis must divide into {parts} equal parts; got "
                f"shape {whole.shape}"
            )
        size = rows // parts
        for number, piece in enumerate(pieces):
            piece.append(whole[number * size : (number + 1) * size])
    return [structure.unflatten(piece) for piece in pieces]


class _Traced:
    """The plan of a step for given argument types."""

    def __init__(
        self, step: PipelineStep, structures: tuple[TreeDef, ...], tensors: list[Tensor]
    ) -> None:
        self.step = step
        self.build = Builder(tensors)
        values = [self.build.value(structure) for structure in structures]
        count = len(step.layers)
        self.own = structures[:count]
        #: Parameters and state of each layer; inputs and targets by part.
        self.layers = [self.build.items_of(value) for value in values[:count]]
        self.batches = [self.build.items_of(value) for value in values[count:]]
        #: The inputs of a layer for a part, and its cotangent.
        self.taken = {(0, part): x for part, (x, _) in enumerate(self.batches)}
        self.back: dict[tuple[int, int], Value] = {}
        self.sums: dict[int, Value] = {}
        queues = [list(reversed(order)) for order in step.orders]
        while any(queues):
            left = sum(map(len, queues))
            for layer, queue in enumerate(queues):
                while queue and self._can(layer, *queue[-1]):
                    self._add(layer, *queue.pop())
            assert sum(map(len, queues)) < left, "a schedule waits for itself"
        updated = [self._update(layer) for layer in range(count)]
        loss = updated[-1][2]
        outputs = [v for parameters, state, *_ in updated for v in (parameters, state)]
        self.plan = self.build.plan([loss, *outputs])
        self.captured = self.build.captured

    def _can(self, layer: int, kind: str, part: int) -> bool:
        at = (layer, part)
        last = layer == len(self.step.layers) - 1
        return at in self.taken and (kind == "forward" or last or at in self.back)

    def _add(self, layer: int, kind: str, part: int) -> None:
        """Add the stage of a layer for a part."""
        apply, x = self.step.layers[layer], self.taken[layer, part]
        parameters, _ = self.layers[layer]
        label = f"{kind} of part {part} in layer {layer}"
        if kind == "forward":
            (y,) = self.build.task(
                ("forward", layer), lambda p, x: (apply(p, x),), [parameters, x], label, layer
            )
            self.taken[layer + 1, part] = y
            return
        last = layer == len(self.step.layers) - 1
        coming = self.batches[part][1] if last else self.back[layer, part]
        so_far = [self.sums[layer]] if layer in self.sums else []
        function = _backward(apply, self.step.loss if last else None, first=layer == 0)
        arguments = [parameters, x, coming, *so_far]
        key = ("backward", layer, len(so_far))
        self.sums[layer], *back = self.build.task(key, function, arguments, label, layer)
        if back:
            self.back[layer - 1, part] = back[0]

    def _update(self, layer: int) -> list[Value]:
        """Add the update of a layer; return parameters, state and, for the last layer, the loss."""
        step, (parameters, state) = self.step, self.layers[layer]
        last = layer == len(step.layers) - 1

        def function(parameters: Any, sums: Any, state: Any) -> tuple[Any, ...]:
            mean = tree.map(lambda value: value / step.parts, sums)
            found = step.update(parameters, mean[1] if last else mean, state)
            return (*found, mean[0]) if last else tuple(found)

        label, arguments = f"update of layer {layer}", [parameters, self.sums[layer], state]
        found = self.build.task(("update", layer), function, arguments, label, layer)
        for new, old, what in zip(
            found, (parameters, state), ("parameters", "state"), strict=False
        ):
            if new.structure != old.structure:
                raise _core.ArgumentError(
                    f"pipeline_step: update: {what} must keep their structure"
                )
        return found


def _backward(
    apply: Callable[[Any, Any], Any], loss: Callable[[Any, Any], Any] | None, *, first: bool
) -> Callable[..., Any]:
    """Return the backward pass of a layer, which adds to the gradient sums of earlier parts.

    The last layer computes the loss and receives targets instead of a cotangent. The first layer
    returns no cotangent.
    """

    def function(parameters: Any, x: Any, coming: Any, *so_far: Any) -> tuple[Any, ...]:
        def forward(parameters: Any, x: Any) -> Any:
            y = apply(parameters, x)
            return y if loss is None else loss(y, coming)

        start = 1.0 if loss is not None else coming
        if first:
            value, pull = vjp(lambda parameters: forward(parameters, x), parameters)
        else:
            value, pull = vjp(forward, parameters, x)
        gradients, *back = pull(start)
        sums = gradients if loss is None else (value, gradients)
        for before in so_far:
            sums = tree.map(lambda left, right: left + right, before, sums)
        return (sums, *back)

    return function


_hints.install(globals())
