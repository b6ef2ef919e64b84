"""Gradient transformations: functions from gradients to updates, with a state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from nxla import _core, _hints, tree
from nxla._values import as_number, as_tensor, is_inexact, keeps_structure, kind_of
from nxla.errors import ArgumentError
from nxla.ops.create import full_like
from nxla.optim._checks import (
    check_shapes,
    check_state,
    read_mask,
    refuse_sample,
    require_params,
    require_transformation,
)
from nxla.optim.schedules import _check_decay, _check_mean_decays, _check_not_negative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import DType, Tensor
    from nxla.optim.schedules import Schedule


class GradientTransformation(NamedTuple):
    """A pair of functions that compute updates from gradients.

    Attributes
    ----------
    init : callable
        A function from the parameters to the initial state.
    update : callable
        A function from gradients, state and parameters (optional for some transformations) to
        updates, in the structure of the gradients, and the next state. It may take further
        arguments by name, as `lbfgs` does.

    Examples
    --------
    >>> import nxla as nx
    >>> halve = nx.optim.GradientTransformation(
    ...     lambda params: (), lambda grads, state, params=None: (grads * 0.5, state)
    ... )
    >>> nx.optim.chain(halve, nx.optim.scale(-1.0)).update(nx.tensor(2.0), ((), ()))[0].item()
    -1.0
    """

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


class TraceState(NamedTuple):
    """The sum of past gradients."""

    trace: Any


class ScaleByAdamState(NamedTuple):
    """The number of steps, and running means of gradients and of their squares."""

    count: Tensor  # type: ignore[assignment]  # which is a method of tuples
    mu: Any
    nu: Any


class ScaleByLionState(NamedTuple):
    """The number of steps, and the running mean of gradients."""

    count: Tensor  # type: ignore[assignment]  # which is a method of tuples
    mu: Any


class ScaleByRssState(NamedTuple):
    """The sum of squares of gradients."""

    sum_of_squares: Any


class ScaleByRmsState(NamedTuple):
    """Running means of squares, and of gradients if they are centered."""

    nu: Any
    mu: Any


class ScaleByScheduleState(NamedTuple):
    """The number of steps."""

    count: Tensor  # type: ignore[assignment]  # which is a method of tuples


def _zeros(params: Any) -> Any:
    """Return zeros with the shapes and the devices of parameters, in the dtype of a state."""
    return tree.map(lambda x: full_like(x, 0.0, dtype=_state_dtype(x)), params)


def _filled_squares(params: Any, value: float) -> Any:
    """Return a constant state of squares with the shapes and the devices of parameters."""
    return tree.map(lambda x: full_like(x, value, dtype=_square_dtype(x)), params)


def _state_dtype(x: Any) -> DType:
    """Return the dtype of a parameter, or float32 for narrow floats and integers."""
    dtype = as_tensor(x).dtype
    return dtype if is_inexact(dtype) and dtype.bits >= 32 else _core.f32


def _square_dtype(x: Any) -> DType:
    """Return the dtype of a state of squares, which are real."""
    dtype = _state_dtype(x)
    if dtype.kind != "complex":
        return dtype
    return _core.f64 if dtype.bits == 128 else _core.f32


def _widen(x: Any) -> Tensor:
    """Return a gradient in a dtype in which squares and epsilons do not overflow or underflow."""
    x = as_tensor(x)
    return _cast(x, _state_dtype(x))


def _cast(x: Tensor, dtype: DType) -> Tensor:
    """Return a tensor in a dtype; a tensor of the dtype costs no operation."""
    return x if x.dtype == dtype else _core.astype(x, dtype)


def _map_wide(function: Callable[..., Tensor], grads: Any, *others: Any) -> Any:
    """Compute updates from gradients in `float32` or wider, and return the original dtypes.

    Hyperparameters that are NumPy scalars, and wider states, do not change the dtypes either.
    Updates of integers are `float32`: rounded to integers, small updates would be 0.
    """

    def updated(g: Any, *rest: Any) -> Tensor:
        g = as_tensor(g)
        update = function(_widen(g), *map(_widen, rest))
        return _cast(update, g.dtype if is_inexact(g.dtype) else _core.f32)

    return tree.map(updated, grads, *others)


def _map_state(function: Callable[..., Any], old: Any, *others: Any) -> Any:
    """Compute the next state, in the dtypes of the old one, so that a loop can carry the state."""

    def following(m: Tensor, *rest: Any) -> Tensor:
        return _cast(function(m, *rest), m.dtype)

    return tree.map(following, old, *others)


def _stateless(update: Callable[..., Any]) -> GradientTransformation:
    """Return a stateless transformation from a function of gradients and parameters."""
    return GradientTransformation(
        lambda _: (), lambda grads, state, params=None: (update(grads, params), state)
    )


def _update_means(decay: float, old: Any, new: Any) -> Any:
    """Update running means with new values."""
    return _map_state(lambda m, x: m * decay + _widen(x) * (1.0 - decay), old, new)


def _squares(grads: Any) -> Any:
    return tree.map(lambda g: _core.square(_core.abs(_widen(g))), grads)


def _correct_bias(means: Any, decay: float | Tensor, count: Tensor) -> Any:
    """Correct the bias of running means that start at zero."""
    rate: float | Tensor
    if not isinstance(decay, int | float):
        rate = _core.log(decay)
    elif decay == 0:
        return means
    else:
        rate = math.log(decay)

    def corrected(mean: Tensor) -> Tensor:
        # `1 - decay ** count` must be accurate in the first steps.
        steps = _core.astype(count, "f64" if mean.dtype.bits == 64 else "f32")
        share = _core.negative(_core.expm1(steps * rate))
        return _core.astype(mean / share, mean.dtype)

    return tree.map(corrected, means)


def _momentum(decay: float, mu: Any, grads: Any, count: Tensor, *, nesterov: bool) -> Any:
    """Return the unbiased running means of gradients, or Nesterov's momentum.

    Parameters
    ----------
    mu : container
        The running means, which contain the gradients of this step.
    count : Tensor
        The number of steps, including this one.
    """
    if not nesterov:
        return _correct_bias(mu, decay, count)
    ahead = _correct_bias(mu, decay, count + 1)
    return _update_means(decay, ahead, _correct_bias(tree.map(_widen, grads), decay, count))


def identity() -> GradientTransformation:
    """Return a transformation that does not change gradients.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.optim.identity().update(nx.tensor(2.0), ())[0].item()
    2.0
    """
    return _stateless(lambda grads, _: grads)


def scale(step_size: float) -> GradientTransformation:
    """Return a transformation that multiplies gradients by a constant.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.optim.scale(-0.5).update(nx.tensor(2.0), ())[0].item()
    -1.0
    """
    return _stateless(lambda grads, _: _map_wide(lambda g: g * step_size, grads))


def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """Return a transformation that multiplies gradients by a function of the step.

    Parameters
    ----------
    step_size_fn : callable
        A function from the number of previous steps, an ``int32``, to the factor.

    Returns
    -------
    GradientTransformation
        The transformation. Its state is the number of steps.

    Examples
    --------
    >>> import nxla as nx
    >>> halving = nx.optim.scale_by_schedule(nx.optim.exponential_decay(1.0, 1, 0.5))
    >>> state = halving.init(nx.tensor(0.0))
    >>> first, state = halving.update(nx.tensor(8.0), state)
    >>> second, state = halving.update(nx.tensor(8.0), state)
    >>> first.item(), second.item()
    (8.0, 4.0)
    """

    def init(params: Any) -> ScaleByScheduleState:
        del params
        return ScaleByScheduleState(_core.tensor(0, "s32"))

    def update(grads: Any, state: ScaleByScheduleState, params: Any = None) -> Any:
        del params
        check_state("scale_by_schedule", ScaleByScheduleState, state)
        size = as_tensor(step_size_fn(state.count))

        updates = _map_wide(lambda g: g * _core.astype(size, g.dtype), grads)
        return updates, ScaleByScheduleState(state.count + 1)

    return GradientTransformation(init, update)


def scale_by_learning_rate(
    learning_rate: float | Schedule, *, flip_sign: bool = True
) -> GradientTransformation:
    """Return a transformation that multiplies gradients by a learning rate or a schedule.

    Parameters
    ----------
    learning_rate : float or callable
        The rate, or a function from the number of steps to the rate.
    flip_sign : bool
        If True, negate the gradients, so that updates descend.

    Returns
    -------
    GradientTransformation
        The transformation. Its state is the number of steps for a schedule, and empty for a number.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.optim.scale_by_learning_rate(0.5).update(nx.tensor(2.0), ())[0].item()
    -1.0
    """
    sign = -1.0 if flip_sign else 1.0
    if callable(learning_rate):
        rate = learning_rate
        return scale_by_schedule(lambda count: rate(count) * sign)
    return scale(sign * as_number("scale_by_learning_rate", "learning_rate", learning_rate))


def trace(decay: float, nesterov: bool = False) -> GradientTransformation:
    """Return a transformation that accumulates decaying gradients (momentum).

    B. T. Polyak, "Some methods of speeding up the convergence of iteration methods" (1964); with
    `nesterov` I. Sutskever et al., "On the importance of initialization and momentum in deep
    learning" (2013).

    Parameters
    ----------
    decay : float
        The fraction of the accumulated gradient that is kept.
    nesterov : bool
        If True, use Nesterov's momentum.

    Returns
    -------
    GradientTransformation
        The transformation. Its state is the accumulated gradient, in the structure of the
        parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> momentum = nx.optim.trace(0.5)
    >>> _, state = momentum.update(nx.tensor(2.0), momentum.init(nx.tensor(0.0)))
    >>> momentum.update(nx.tensor(2.0), state)[0].item()
    3.0
    """
    _check_decay("trace", "decay", decay)

    def update(grads: Any, state: TraceState, params: Any = None) -> tuple[Any, TraceState]:
        del params
        check_state("trace", TraceState, state)
        check_shapes("update: grads", grads, "state", state.trace)
        forward = lambda t, g: _widen(g) + t * decay  # noqa: E731
        sums = _map_state(forward, state.trace, grads)
        ahead = _map_state(forward, sums, grads) if nesterov else sums
        updates = _map_wide(lambda _, t: t, grads, ahead)
        return updates, TraceState(sums)

    return GradientTransformation(lambda params: TraceState(_zeros(params)), update)


def scale_by_adam(
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Return the transformation of `adam` without the learning rate.

    Examples
    --------
    >>> import nxla as nx
    >>> adam = nx.optim.scale_by_adam()
    >>> round(adam.update(nx.tensor(3.0), adam.init(nx.tensor(0.0)))[0].item(), 4)
    1.0
    """
    _check_mean_decays("scale_by_adam", b1, b2)
    _check_not_negative("scale_by_adam", "eps", eps)
    _check_not_negative("scale_by_adam", "eps_root", eps_root)

    def init(params: Any) -> ScaleByAdamState:
        squares = _filled_squares(params, 0.0)
        return ScaleByAdamState(_core.tensor(0, "s32"), _zeros(params), squares)

    def update(
        grads: Any, state: ScaleByAdamState, params: Any = None
    ) -> tuple[Any, ScaleByAdamState]:
        del params
        check_state("scale_by_adam", ScaleByAdamState, state)
        check_shapes("update: grads", grads, "state", state.mu)
        mu = _update_means(b1, state.mu, grads)
        nu = _update_means(b2, state.nu, _squares(grads))
        count = state.count + 1
        means = _momentum(b1, mu, grads, count, nesterov=nesterov)

        def scaled(_: Tensor, m: Tensor, v: Tensor) -> Tensor:
            return m / (_core.sqrt(v + eps_root) + eps)

        updates = _map_wide(scaled, grads, means, _correct_bias(nu, b2, count))
        return updates, ScaleByAdamState(count, mu, nu)

    return GradientTransformation(init, update)


def scale_by_lion(b1: float = 0.9, b2: float = 0.99) -> GradientTransformation:
    """Return the transformation of `lion` without the learning rate.

    Examples
    --------
    >>> import nxla as nx
    >>> lion = nx.optim.scale_by_lion()
    >>> lion.update(nx.tensor(-3.0), lion.init(nx.tensor(0.0)))[0].item()
    -1.0
    """
    _check_mean_decays("scale_by_lion", b1, b2)

    def update(
        grads: Any, state: ScaleByLionState, params: Any = None
    ) -> tuple[Any, ScaleByLionState]:
        del params
        check_state("scale_by_lion", ScaleByLionState, state)
        check_shapes("update: grads", grads, "state", state.mu)
        means = _update_means(b1, state.mu, grads)
        updates = _map_wide(lambda _, m: _core.sign(m), grads, means)
        return updates, ScaleByLionState(state.count + 1, _update_means(b2, state.mu, grads))

    return GradientTransformation(
        lambda params: ScaleByLionState(_core.tensor(0, "s32"), _zeros(params)), update
    )


def scale_by_rss(
    initial_accumulator_value: float = 0.1, eps: float = 1e-7
) -> GradientTransformation:
    """Return the transformation of `adagrad` without the learning rate.

    Examples
    --------
    >>> import nxla as nx
    >>> adagrad = nx.optim.scale_by_rss(0.0)
    >>> round(adagrad.update(nx.tensor(3.0), adagrad.init(nx.tensor(0.0)))[0].item(), 4)
    1.0
    """

    def init(params: Any) -> ScaleByRssState:
        return ScaleByRssState(_filled_squares(params, initial_accumulator_value))

    def update(
        grads: Any, state: ScaleByRssState, params: Any = None
    ) -> tuple[Any, ScaleByRssState]:
        del params
        check_state("scale_by_rss", ScaleByRssState, state)
        check_shapes("update: grads", grads, "state", state.sum_of_squares)
        sums = _map_state(_core.add, state.sum_of_squares, _squares(grads))

        def scaled(g: Tensor, s: Tensor) -> Tensor:
            positive = s > 0
            inverse = _core.rsqrt(_core.where(positive, s, 1.0) + eps)
            return _core.where(positive, inverse, 0.0) * g

        return _map_wide(scaled, grads, sums), ScaleByRssState(sums)

    return GradientTransformation(init, update)


def scale_by_rms(
    decay: float = 0.9,
    eps: float = 1e-8,
    initial_scale: float = 0.0,
    *,
    eps_in_sqrt: bool = True,
    centered: bool = False,
) -> GradientTransformation:
    """Return the transformation of `rmsprop` without the learning rate.

    Examples
    --------
    >>> import nxla as nx
    >>> rms = nx.optim.scale_by_rms(decay=0.0)
    >>> round(rms.update(nx.tensor(3.0), rms.init(nx.tensor(0.0)))[0].item(), 4)
    1.0
    """

    def init(params: Any) -> ScaleByRmsState:
        squares = _filled_squares(params, initial_scale)
        return ScaleByRmsState(squares, _zeros(params) if centered else ())

    def update(
        grads: Any, state: ScaleByRmsState, params: Any = None
    ) -> tuple[Any, ScaleByRmsState]:
        del params
        check_state("scale_by_rms", ScaleByRmsState, state)
        check_shapes("update: grads", grads, "state", state.nu)
        nu = _update_means(decay, state.nu, _squares(grads))
        mu: Any = _update_means(decay, state.mu, grads) if centered else ()

        def variance(v: Tensor, m: Tensor) -> Tensor:
            # Of constant gradients, the difference may round to a negative number.
            return _core.maximum(v - _core.square(_core.abs(m)), 0.0)

        spread = tree.map(variance, nu, mu) if centered else nu

        def scaled(g: Tensor, v: Tensor) -> Tensor:
            if eps_in_sqrt:
                return g * _core.rsqrt(v + eps)
            return g / (_core.sqrt(v) + eps)

        return _map_wide(scaled, grads, spread), ScaleByRmsState(nu, mu)

    return GradientTransformation(init, update)


def add_decayed_weights(
    weight_decay: float = 0.0, mask: Any | Callable[[Any], Any] | None = None
) -> GradientTransformation:
    """Return a transformation that adds a fraction of the parameters to gradients.

    Parameters
    ----------
    weight_decay : float
        The fraction.
    mask : container of bool or callable, optional
        The booleans of the decayed parameters, in the structure of the parameters, or a function
        from the parameters to the booleans; by default all parameters decay. Booleans are matched
        to parameters by path, so the order of keys is irrelevant.

    Returns
    -------
    GradientTransformation
        The transformation. It has no state, and its `update` requires the parameters.

    Raises
    ------
    ArgumentError
        If the paths of the mask differ from the paths of the parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> decay = nx.optim.add_decayed_weights(0.5)
    >>> decay.update(nx.tensor(1.0), decay.init(None), nx.tensor(4.0))[0].item()
    3.0
    """
    _check_not_negative("add_decayed_weights", "weight_decay", weight_decay)

    def update(grads: Any, params: Any) -> Any:
        require_params("add_decayed_weights", params)
        check_shapes("update: grads", grads, "parameter", params)

        def decayed(g: Tensor, p: Tensor) -> Tensor:
            return g + p * weight_decay

        if mask is None:
            return _map_wide(decayed, grads, params)
        marks = iter(read_mask("add_decayed_weights", mask, params))
        return _map_wide(lambda g, p: decayed(g, p) if next(marks) else g, grads, params)

    return _stateless(update)


def clip(max_delta: float) -> GradientTransformation:
    """Return a transformation that clips each element to an interval around 0.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.optim.clip(1.0).update(nx.tensor([-3.0, 0.5]), ())[0].tolist()
    [-1.0, 0.5]
    """
    _check_not_negative("clip", "max_delta", max_delta)
    return _stateless(
        lambda grads, _: _map_wide(lambda g: _core.clip(g, -max_delta, max_delta), grads)
    )


def global_norm(updates: Any) -> Tensor:
    """Return the square root of the sum of squares of all elements of a container.

    Elements are scaled first, so the squares do not overflow or underflow. The gradient at zero is
    zero.

    Returns
    -------
    Tensor
        A scalar: ``float32``, or ``float64`` if a tensor has 64 bits.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.optim.global_norm({"a": nx.tensor([3.0]), "b": nx.tensor(4.0)}).item()
    5.0
    >>> nx.optim.global_norm(nx.tensor([300.0, 400.0], dtype="f16")).item()
    500.0
    """
    refuse_sample("global_norm", updates)
    largest, relative = _scaled_norm(updates)
    return largest * relative


def _scaled_norm(updates: Any) -> tuple[Tensor, Tensor]:
    """Return two factors of the norm: approximately the largest element, and the relative norm."""
    leaves = [_core.abs(_widen(leaf)) for leaf in tree.leaves(updates)]
    largest: Tensor = _core.tensor(0.0)
    for leaf in leaves:
        if leaf.size > 0:
            largest = _core.maximum(largest, _core.max(leaf))
    # The norm does not depend on the scale, so the scale has no derivative.
    largest = _core.stop_grad(largest)
    largest = _core.where(_core.isfinite(largest) & (largest > 0), largest, 1.0)
    total = sum((_core.sum(_core.square(leaf / largest)) for leaf in leaves), _core.tensor(0.0))
    # The square root has no derivative at zero, the minimum of the norm.
    is_zero = total == 0
    return largest, _core.where(is_zero, 0.0, _core.sqrt(_core.where(is_zero, 1.0, total)))


def clip_by_global_norm(max_norm: float) -> GradientTransformation:
    """Return a transformation that scales all gradients down if their norm exceeds a limit.

    R. Pascanu et al., "On the difficulty of training recurrent neural networks" (2012). The norm is
    computed by `global_norm`. Finite gradients are scaled down even if their norm overflows their
    dtype.

    Parameters
    ----------
    max_norm : float
        The largest norm of the scaled gradients.

    Returns
    -------
    GradientTransformation
        The transformation. It has no state.

    Examples
    --------
    >>> import nxla as nx
    >>> clip = nx.optim.clip_by_global_norm(1.0)
    >>> round(clip.update(nx.tensor([3.0, 4.0]), ())[0].tolist()[0], 4)
    0.6
    """
    _check_not_negative("clip_by_global_norm", "max_norm", max_norm)

    def update(grads: Any, params: Any) -> Any:
        del params
        largest, relative = _scaled_norm(grads)
        small = largest * relative < max_norm
        factor = max_norm / _core.where(relative == 0, 1.0, relative)

        def clipped(g: Tensor) -> Tensor:
            scaled = (g / largest) * factor
            return _core.where(small, g, _core.astype(scaled, g.dtype))

        return _map_wide(clipped, grads)

    return _stateless(update)


def _call_update(
    transform: GradientTransformation, grads: Any, state: Any, params: Any, further: dict[str, Any]
) -> tuple[Any, Any]:
    """Call ``update`` with the further arguments that are in its signature."""
    if not further:
        return transform.update(grads, state, params)
    from inspect import Parameter, signature

    known = signature(transform.update).parameters
    takes_all = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in known.values())
    passed = {name: value for name, value in further.items() if takes_all or name in known}
    return transform.update(grads, state, params, **passed)


def chain(*transforms: GradientTransformation) -> GradientTransformation:
    """Return a transformation that applies several transformations one after another.

    Its state is a tuple of their states. Gradients in floats of fewer than 32 bits are passed on in
    ``float32``; the updates have the dtypes of the gradients. Further arguments of ``update`` are
    passed by name to the transformations that take them.

    Parameters
    ----------
    *transforms : GradientTransformation
        The transformations, in the order in which they are applied.

    Returns
    -------
    GradientTransformation
        The composed transformation.

    Examples
    --------
    >>> import nxla as nx
    >>> both = nx.optim.chain(nx.optim.clip(1.0), nx.optim.scale(-0.1))
    >>> round(both.update(nx.tensor(5.0), both.init(nx.tensor(0.0)))[0].item(), 4)
    -0.1
    """
    for each in transforms:
        require_transformation("chain", "transforms", each)

    def update(grads: Any, state: Any, params: Any = None, **further: Any) -> tuple[Any, Any]:
        is_list = isinstance(state, tuple | list) and not hasattr(state, "_fields")
        if not is_list or len(state) != len(transforms):
            found = len(state) if is_list else kind_of(state)
            raise ArgumentError(
                f"chain: state: must have one entry for each of {len(transforms)} "
                f"transformations; got {found}; create it with init"
            )
        states = []
        updates = tree.map(_widen, grads)
        for transform, own in zip(transforms, state, strict=True):
            updates, following = _call_update(transform, updates, own, params, further)
            states.append(following)
        return _map_wide(lambda _, update: update, grads, updates), tuple(states)

    return GradientTransformation(
        lambda params: tuple(transform.init(params) for transform in transforms), update
    )


@keeps_structure
def apply_updates(params: Any, updates: Any) -> Any:
    """Add updates to parameters, which keep their dtypes; integers are rounded to nearest.

    Parameters
    ----------
    params : container
        The parameters.
    updates : container
        The updates, in the same structure and of the same shapes.

    Returns
    -------
    container
        The updated parameters.

    Raises
    ------
    ArgumentError
        If the structures differ.
    ShapeError
        If an update does not have the shape of its parameter.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.optim.apply_updates({"w": nx.tensor(1.0)}, {"w": nx.tensor(-0.25)})["w"].item()
    0.75
    """

    def added(p: Tensor, u: Tensor) -> Tensor:
        p = as_tensor(p)
        moved = p + u
        # A conversion truncates: a step of -0.1 would change 5 to 4.
        return _core.astype(moved if is_inexact(p.dtype) else _core.round(moved), p.dtype)

    check_shapes("apply_updates: updates", updates, "parameter", params)
    return tree.map(added, params, updates)


_hints.install(globals())
