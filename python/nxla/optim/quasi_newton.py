"""L-BFGS with a line search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nxla import _core, _hints, tree
from nxla._values import as_count, as_tensor
from nxla.errors import ArgumentError, DTypeError
from nxla.gradients import value_and_grad
from nxla.ops.create import zeros
from nxla.ops.loops import while_loop
from nxla.optim._checks import check_shapes, check_state, rename_errors, require_params
from nxla.optim.transforms import (
    GradientTransformation,
    _map_state,
    _map_wide,
    _state_dtype,
    _widen,
    _zeros,
    global_norm,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla.optim.schedules import Schedule


class LbfgsState(NamedTuple):
    """The number of steps, the last parameters and gradients, and the changes in memory.

    The first axis of ``changes`` and ``slopes`` is the memory. The weight of an unused entry is 0.
    """

    count: Tensor  # type: ignore[assignment]  # which is a method of tuples
    params: Any
    grads: Any
    changes: Any
    slopes: Any
    weights: Tensor


def _inner(left: Any, right: Any) -> Tensor:
    """Return the inner product of two containers."""
    total: Tensor = _core.tensor(0.0)
    for x, y in zip(tree.leaves(left), tree.leaves(right), strict=True):
        total = total + _core.sum(x * y)
    return total


def _plus(left: Any, right: Any, factor: Any) -> Any:
    return tree.map(lambda x, y: x + y * _core.astype(as_tensor(factor), y.dtype), left, right)


def scale_by_lbfgs(
    memory_size: int = 10, scale_init_precond: bool = True
) -> GradientTransformation:
    """Return the transformation of gradients by the inverse Hessian that L-BFGS estimates.

    Parameters
    ----------
    memory_size : int
        The number of steps from which the Hessian is estimated.
    scale_init_precond : bool
        If True, the estimate starts from the curvature of the last step.

    Returns
    -------
    GradientTransformation
        The transformation. Its state holds `memory_size` differences of parameters and of
        gradients.

    Raises
    ------
    DTypeError
        If a parameter or a gradient is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> lbfgs, w = nx.optim.scale_by_lbfgs(), nx.tensor([4.0])
    >>> state = lbfgs.init(w)
    >>> updates, state = lbfgs.update(nx.tensor([0.5]), state, w)  # the gradient of w**2 / 16
    >>> w = w - updates
    >>> updates, state = lbfgs.update(w / 8, state, w)
    >>> nx.all_close(updates, w).item()
    True
    """
    memory_size = as_count("scale_by_lbfgs", "memory_size", memory_size, 1)

    def init(params: Any) -> LbfgsState:
        _require_real("params", params)
        start = _zeros(params)
        memory = tree.map(lambda x: _repeat(x, memory_size), start)
        weights = zeros(memory_size, _weight_dtype(params))
        return LbfgsState(_core.tensor(0, "s32"), start, start, memory, memory, weights)

    def update(grads: Any, state: LbfgsState, params: Any = None) -> tuple[Any, LbfgsState]:
        require_params("scale_by_lbfgs", params)
        _require_real("grads", grads)
        check_state("scale_by_lbfgs", LbfgsState, state)
        check_shapes("update: grads", grads, "parameter", params)
        check_shapes("update: grads", grads, "state", state.grads)
        wide = _map_state(lambda _, g: _widen(g), state.grads, grads)
        now = _map_state(lambda _, p: _widen(p), state.params, params)
        state = _remember(state, now, wide, memory_size)
        direction = _direction(state, wide, memory_size, scale=scale_init_precond)
        updates = _map_wide(lambda _, d: d, grads, direction)
        return updates, state._replace(count=state.count + 1, params=now, grads=wide)

    return GradientTransformation(init, update)


def _require_real(argument: str, container: Any) -> None:
    """Refuse complex tensors: the curvature along a complex change is not a real number."""
    for x in map(as_tensor, tree.leaves(container)):
        if x.dtype.kind == "complex":
            raise DTypeError(
                f"scale_by_lbfgs: {argument}: must be real; got {x.dtype} (pass real and imaginary "
                "parts as separate parameters)"
            )


def _weight_dtype(params: Any) -> str:
    return "f64" if any(_state_dtype(x).bits == 64 for x in tree.leaves(params)) else "f32"


def _repeat(x: Tensor, count: int) -> Tensor:
    return _core.broadcast_to(_core.expand_dims(x, 0), (count, *x.shape))


def _remember(state: LbfgsState, params: Any, grads: Any, memory_size: int) -> LbfgsState:
    """Add the last step to the memory, unless its curvature is not positive."""
    change, slope = _plus(params, state.params, -1.0), _plus(grads, state.grads, -1.0)
    curvature = _inner(change, slope)
    usable = _core.logical_and(state.count > 0, curvature > 0)
    weight = _core.where(usable, 1.0 / _core.where(usable, curvature, 1.0), 0.0)
    place = _core.remainder(state.count - 1, memory_size)
    is_place = _core.equal(_core.iota((memory_size,), 0), place)

    def put(memory: Tensor, x: Tensor) -> Tensor:
        mask = _core.reshape(is_place, (memory_size, *[1] * x.ndim))
        return _core.where(mask, _core.expand_dims(x, 0), memory)

    return state._replace(
        changes=tree.map(put, state.changes, change),
        slopes=tree.map(put, state.slopes, slope),
        weights=put(state.weights, _core.astype(weight, state.weights.dtype)),
    )


def _direction(state: LbfgsState, grads: Any, memory_size: int, *, scale: bool) -> Any:
    """Return the product of the inverse Hessian and the gradients by the two-loop recursion."""
    order = [_core.remainder(state.count - 1 - age, memory_size) for age in range(memory_size)]

    def entry(memory: Any, place: Tensor) -> Any:
        return tree.map(lambda x: _core.take(x, place, 0), memory)

    direction, shares = grads, []
    for place in order:
        share = entry(state.weights, place) * _inner(entry(state.changes, place), direction)
        shares.append(share)
        direction = _plus(direction, entry(state.slopes, place), -share)
    if scale:
        slope, weight = entry(state.slopes, order[0]), entry(state.weights, order[0])
        squares = weight * _inner(slope, slope)
        first = 1.0 / _core.maximum(global_norm(grads), 1.0)
        factor = _core.where(squares > 0, 1.0 / _core.where(squares > 0, squares, 1.0), first)
        direction = tree.map(lambda x: x * _core.astype(factor, x.dtype), direction)
    for place, share in zip(reversed(order), reversed(shares), strict=True):
        slope = entry(state.weights, place) * _inner(entry(state.slopes, place), direction)
        direction = _plus(direction, entry(state.changes, place), share - slope)
    return direction


def _line_search(
    value_fn: Callable[[Any], Any], params: Any, updates: Any, value: Any, grads: Any, steps: int
) -> Tensor:
    """Return the length of a step that satisfies the weak Wolfe conditions, by bisection.

    A. S. Lewis and M. L. Overton, "Nonsmooth optimization via quasi-Newton methods" (2013).
    """
    slope = _inner(grads, updates)
    value = _core.astype(as_tensor(value), slope.dtype)

    def is_open(state: Any) -> Tensor:
        return _core.logical_and(state[3] < steps, _core.logical_not(state[4]))

    def halve(state: Any) -> Any:
        length, low, high, count, _ = state
        found, at_end = value_and_grad(value_fn)(_plus(params, updates, length))
        found = _core.astype(as_tensor(found), slope.dtype)
        # If the value is NaN, the comparison is false too.
        falls = _core.less_equal(found, value + 1e-4 * length * slope)
        flat = _core.greater_equal(_inner(at_end, updates), 0.9 * slope)
        low = _core.where(falls, length, low)
        high = _core.where(falls, high, length)
        middle = _core.where(_core.isinf(high), 2.0 * length, 0.5 * (low + high))
        done = _core.logical_and(falls, flat)
        return _core.where(done, length, middle), low, high, count + 1, done

    one = slope * 0.0 + 1.0
    start = (one, one * 0.0, one * float("inf"), _core.tensor(0, "s32"), _core.tensor(False))
    length, low, _, _, done = while_loop(is_open, halve, start)
    return _core.where(done, length, low)


@rename_errors()
def lbfgs(
    learning_rate: float | Schedule | None = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    max_linesearch_steps: int = 20,
) -> GradientTransformation:
    """Return L-BFGS, for smooth functions without noise.

    Parameters
    ----------
    learning_rate : float or callable, optional
        The length of a step relative to a step of Newton's method. By default a line search finds
        the length; then ``update`` takes two more arguments: the ``value`` of the function, and the
        function ``value_fn`` of the parameters.
    memory_size, scale_init_precond
        As for `scale_by_lbfgs`.
    max_linesearch_steps : int
        The number of evaluations of a line search.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Raises
    ------
    DTypeError
        If a parameter or a gradient is complex.

    Notes
    -----
    D. C. Liu and J. Nocedal, "On the limited memory BFGS method for large scale optimization"
    (1989).

    Examples
    --------
    >>> import nxla as nx
    >>> loss = lambda w: (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    >>> lbfgs, w = nx.optim.lbfgs(), nx.tensor([-1.0, 1.0])
    >>> state = lbfgs.init(w)
    >>> for _ in range(40):
    ...     value, slopes = nx.value_and_grad(loss)(w)
    ...     updates, state = lbfgs.update(slopes, state, w, value=value, value_fn=loss)
    ...     w = nx.optim.apply_updates(w, updates)
    >>> nx.all_close(w, 1.0, atol=1e-3).item()
    True
    """
    inner = scale_by_lbfgs(memory_size, scale_init_precond)

    def update(
        grads: Any,
        state: LbfgsState,
        params: Any = None,
        *,
        value: Any = None,
        value_fn: Callable[[Any], Any] | None = None,
    ) -> tuple[Any, LbfgsState]:
        direction, following = inner.update(grads, state, params)
        direction = tree.map(lambda x: _core.negative(_widen(x)), direction)
        length: Any
        if learning_rate is not None:
            length = learning_rate(state.count) if callable(learning_rate) else learning_rate
        elif value is None or value_fn is None:
            raise ArgumentError(
                "lbfgs: value, value_fn: must be passed to update without a learning rate"
            )
        else:
            length = _line_search(value_fn, params, direction, value, grads, max_linesearch_steps)

        def scaled(_: Tensor, d: Tensor) -> Tensor:
            return d * _core.astype(as_tensor(length), d.dtype)

        return _map_wide(scaled, grads, direction), following

    return GradientTransformation(inner.init, update)


_hints.install(globals())
