"""Transformations of transformations: a part of the parameters, several steps, running means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nxla import _core, _hints, tree
from nxla._values import as_count, as_tensor
from nxla.ops.control import _branch_unchecked
from nxla.ops.create import zeros_like
from nxla.optim._checks import check_shapes, check_state, read_mask, require_transformation
from nxla.optim.transforms import (
    GradientTransformation,
    _call_update,
    _correct_bias,
    _map_wide,
    _update_means,
    _widen,
    _zeros,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor


class EmaState(NamedTuple):
    """The number of steps, and running means of updates."""

    count: Tensor  # type: ignore[assignment]  # which is a method of tuples
    ema: Any


class MultiStepsState(NamedTuple):
    """The numbers of steps, the sum of gradients, and the state of the optimizer."""

    mini_step: Tensor
    gradient_step: Tensor
    inner: Any
    acc_grads: Any


def masked(
    inner: GradientTransformation, mask: Any | Callable[[Any], Any]
) -> GradientTransformation:
    """Return a transformation that applies another one to a part of the gradients.

    Parameters
    ----------
    inner : GradientTransformation
        The transformation. It receives the chosen tensors as a tuple.
    mask : container of bool or callable
        The booleans of the chosen tensors, in the structure of the parameters, or a function from
        the parameters to the booleans. Booleans are matched to tensors by path. Other gradients
        stay as they are.

    Returns
    -------
    GradientTransformation
        The transformation. Its state is the state of `inner` for the chosen tensors.

    Raises
    ------
    ArgumentError
        If the paths of the mask differ from the paths of the parameters, or the parameters and the
        gradients differ in structure.

    Examples
    --------
    >>> import nxla as nx
    >>> halve = nx.optim.masked(nx.optim.scale(0.5), {"w": True, "b": False})
    >>> params = {"w": nx.tensor(2.0), "b": nx.tensor(2.0)}
    >>> {name: x.item() for name, x in halve.update(params, halve.init(params))[0].items()}
    {'b': 2.0, 'w': 1.0}
    """
    require_transformation("masked", "inner", inner)
    return _apply_to_selected(inner, lambda container: read_mask("masked", mask, container))


def _apply_to_selected(
    inner: GradientTransformation, choose: Callable[[Any], list[bool]]
) -> GradientTransformation:
    """Return a transformation of the leaves of a container that a function chooses."""

    def part(container: Any, marks: list[bool]) -> tuple[Any, ...]:
        pairs = zip(tree.leaves(container), marks, strict=True)
        return tuple(leaf for leaf, mark in pairs if mark)

    def init(params: Any) -> Any:
        return inner.init(part(params, choose(params)))

    def update(grads: Any, state: Any, params: Any = None, **further: Any) -> tuple[Any, Any]:
        leaves, structure = tree.flatten(grads)
        marks = choose(grads)
        # `tree.map` rejects parameters whose leaves are in another order.
        ordered = None if params is None else tree.map(lambda _, p: p, grads, params)
        own = None if params is None else part(ordered, marks)

        def whole(changed: Any, others: list[Any]) -> Any:
            new = iter(changed)
            pairs = zip(others, marks, strict=True)
            return structure.unflatten([next(new) if mark else leaf for leaf, mark in pairs])

        function = further.get("value_fn")
        if function is not None and params is not None:
            # A line search changes the chosen parameters only.
            others = tree.leaves(ordered)
            further = {**further, "value_fn": lambda changed: function(whole(changed, others))}
        updates, state = _call_update(inner, part(grads, marks), state, own, further)
        return whole(updates, leaves), state

    return GradientTransformation(init, update)


def ema(decay: float, debias: bool = True) -> GradientTransformation:
    """Return a transformation to running means of the gradients.

    For running means of parameters see `incremental_update`.

    Parameters
    ----------
    decay : float
        The decay rate.
    debias : bool
        If True, correct the bias of the initial zeros.

    Returns
    -------
    GradientTransformation
        The transformation. Its state is the number of steps and the means.

    Examples
    --------
    >>> import nxla as nx
    >>> ema = nx.optim.ema(0.9)
    >>> round(ema.update(nx.tensor(2.0), ema.init(nx.tensor(0.0)))[0].item(), 4)
    2.0
    """

    def update(grads: Any, state: EmaState, params: Any = None) -> tuple[Any, EmaState]:
        del params
        check_state("ema", EmaState, state)
        check_shapes("update: grads", grads, "state", state.ema)
        means, count = _update_means(decay, state.ema, grads), state.count + 1
        shown = _correct_bias(means, decay, count) if debias else means
        return _map_wide(lambda _, mean: mean, grads, shown), EmaState(count, means)

    return GradientTransformation(
        lambda params: EmaState(_core.tensor(0, "s32"), _zeros(params)), update
    )


def incremental_update(new_tensors: Any, old_tensors: Any, step_size: float) -> Any:
    """Return running means of parameters: ``step_size * new + (1 - step_size) * old``.

    Parameters
    ----------
    new_tensors, old_tensors : container
        The parameters, and their running means, in the same structure and of the same shapes.
    step_size : float
        The weight of the new parameters.

    Returns
    -------
    container
        The next means, in the dtypes of the old ones.

    Raises
    ------
    ArgumentError
        If the structures differ.
    ShapeError
        If a parameter does not have the shape of its running mean.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.optim.incremental_update(nx.tensor(4.0), nx.tensor(0.0), 0.25).item()
    1.0
    """

    def mixed(new: Tensor, old: Tensor) -> Tensor:
        old = as_tensor(old)
        wide = _widen(old)
        return _core.astype(wide + (_widen(new) - wide) * step_size, old.dtype)

    check_shapes("incremental_update: new_tensors", new_tensors, "running mean", old_tensors)
    return tree.map(mixed, new_tensors, old_tensors)


class MultiSteps:
    """An optimizer that averages the gradients of several steps, like a larger batch.

    Updates are zero in all steps but the last one. The state is a container.

    Parameters
    ----------
    opt : GradientTransformation
        The optimizer.
    every_k_schedule : int or callable
        The number of steps, or a function from the number of updates to it.
    use_grad_mean : bool
        If False, gradients are added instead of averaged.

    Examples
    --------
    >>> import nxla as nx
    >>> sgd = nx.optim.MultiSteps(nx.optim.sgd(1.0), 2)
    >>> state = sgd.init(nx.tensor(0.0))
    >>> first, state = sgd.update(nx.tensor(1.0), state)
    >>> second, state = sgd.update(nx.tensor(3.0), state)
    >>> first.item(), second.item(), sgd.has_updated(state).item()
    (0.0, -2.0, True)
    """

    def __init__(
        self,
        opt: GradientTransformation,
        every_k_schedule: int | Callable[[Tensor], Any],
        use_grad_mean: bool = True,
    ) -> None:
        require_transformation("MultiSteps", "opt", opt)
        if not callable(every_k_schedule):
            every_k_schedule = as_count("MultiSteps", "every_k_schedule", every_k_schedule, 1)
        self._opt = opt
        self._every = every_k_schedule
        self._use_grad_mean = use_grad_mean

    def init(self, params: Any) -> MultiStepsState:
        """Return the initial state."""
        zero = _core.tensor(0, "s32")
        return MultiStepsState(zero, zero, self._opt.init(params), _zeros(params))

    def update(
        self, grads: Any, state: MultiStepsState, params: Any = None, **further: Any
    ) -> tuple[Any, MultiStepsState]:
        """Return the updates, which are zero unless the step is the last one, and the state.

        The optimizer receives further arguments, such as ``value``, of the last step.
        """
        check_state("MultiSteps", MultiStepsState, state)
        if callable(self._every):
            every = _core.astype(as_tensor(self._every(state.gradient_step)), "s32")
        else:
            every = _core.tensor(self._every, "s32")
        count = state.mini_step + 1
        # A running mean needs no division at the end, and does not overflow.
        share: Any = 1.0 / _core.astype(count, "f32") if self._use_grad_mean else 1.0

        def added(total: Tensor, g: Tensor) -> Tensor:
            g = _core.astype(as_tensor(g), total.dtype)
            if not self._use_grad_mean:
                return total + g
            return total + (g - total) * _core.astype(share, total.dtype)

        check_shapes("update: grads", grads, "state", state.acc_grads)
        totals = tree.map(added, state.acc_grads, grads)
        is_last = count >= every

        def typed(updates: Any) -> Any:
            return tree.map(lambda u, g: _core.astype(u, as_tensor(g).dtype), updates, grads)

        def last() -> tuple[Any, Any, Any]:
            wide, inner = _call_update(self._opt, totals, state.inner, params, further)
            return typed(wide), inner, tree.map(zeros_like, totals)

        def other() -> tuple[Any, Any, Any]:
            return tree.map(lambda g: zeros_like(as_tensor(g)), grads), state.inner, totals

        # The branches have equal types, so an eager step need not trace the other branch.
        updates, inner, totals = _branch_unchecked("update", is_last, last, other)
        done = _core.astype(is_last, "s32")
        following = MultiStepsState(count * (1 - done), state.gradient_step + done, inner, totals)
        return updates, following

    def has_updated(self, state: MultiStepsState) -> Tensor:
        """Return whether the last step was an update of the parameters."""
        check_state("MultiSteps", MultiStepsState, state)
        return _core.logical_and(
            _core.equal(state.mini_step, 0), _core.greater(state.gradient_step, 0)
        )

    def gradient_transformation(self) -> GradientTransformation:
        """Return the functions `init` and `update`, for `chain`."""
        return GradientTransformation(self.init, self.update)


_hints.install(globals())
