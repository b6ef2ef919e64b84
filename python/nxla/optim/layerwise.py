"""Optimizers that treat each tensor as a whole: Lamb, Adafactor and Muon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nxla import _core, _hints, tree
from nxla._values import as_list, as_tensor
from nxla.errors import ArgumentError, ShapeError
from nxla.ops.create import full_like
from nxla.optim._checks import (
    check_shapes,
    check_state,
    read_mask,
    rename_errors,
    require_params,
)
from nxla.optim.optimizers import adamw
from nxla.optim.schedules import _check_not_negative
from nxla.optim.transforms import (
    GradientTransformation,
    _cast,
    _map_wide,
    _momentum,
    _square_dtype,
    _stateless,
    _update_means,
    _widen,
    _zeros,
    add_decayed_weights,
    chain,
    global_norm,
    scale,
    scale_by_adam,
    scale_by_learning_rate,
)
from nxla.optim.wrappers import _apply_to_selected, ema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla.optim.schedules import Schedule


class FactoredState(NamedTuple):
    """The number of steps, and for each tensor running means of squares.

    A factored tensor has the means over rows and over columns. Another tensor has the means of its
    elements.
    """

    count: Tensor  # type: ignore[assignment]  # which is a method of tuples
    means: tuple[tuple[Tensor, ...], ...]


class MuonState(NamedTuple):
    """The number of steps, and the running mean of gradients."""

    count: Tensor  # type: ignore[assignment]  # which is a method of tuples
    mu: Any


def _root_mean_square(x: Tensor) -> Tensor:
    return _core.sqrt(_core.mean(_core.square(_core.abs(_widen(x)))))


def scale_by_trust_ratio(
    min_norm: float = 0.0, trust_coefficient: float = 1.0, eps: float = 0.0
) -> GradientTransformation:
    """Return a transformation that gives each update the norm of its parameter.

    Y. You et al., "Large batch training of convolutional networks" (2017).

    Parameters
    ----------
    min_norm : float
        The minimum of the norms.
    trust_coefficient : float
        The ratio of the norms of the update and of the parameter.
    eps : float
        A constant that is added to the norm of the update.

    Returns
    -------
    GradientTransformation
        The transformation. It has no state, and its `update` requires the parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> trust = nx.optim.scale_by_trust_ratio()
    >>> trust.update(nx.tensor([3.0, 4.0]), (), nx.tensor([0.0, 10.0]))[0].tolist()
    [6.0, 8.0]
    """

    def update(grads: Any, params: Any) -> Any:
        require_params("scale_by_trust_ratio", params)
        check_shapes("update: grads", grads, "parameter", params)

        def scaled(g: Tensor, p: Tensor) -> Tensor:
            of_p = _core.maximum(global_norm(p), min_norm)
            of_g = _core.maximum(global_norm(g), min_norm)
            is_zero = _core.logical_or(_core.equal(of_p, 0), _core.equal(of_g, 0))
            divisor = _core.where(is_zero, 1.0, of_g + eps)
            return g * _core.where(is_zero, 1.0, of_p / divisor * trust_coefficient)

        return _map_wide(scaled, grads, params)

    return _stateless(update)


@rename_errors()
def lamb(
    learning_rate: float | Schedule,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-6,
    eps_root: float = 0.0,
    weight_decay: float = 0.0,
    mask: Any = None,
) -> GradientTransformation:
    """Return Lamb: Adam whose step has the norm of the parameter, for large batches.

    Y. You et al., "Large batch optimization for deep learning: training BERT in 76 minutes" (2019).

    Parameters
    ----------
    learning_rate, b1, b2, eps, eps_root, weight_decay, mask
        As for `adamw`.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Examples
    --------
    >>> import nxla as nx
    >>> lamb, w = nx.optim.lamb(0.5), nx.tensor([3.0, 4.0])
    >>> [round(x, 4) for x in lamb.update(nx.tensor([1.0, 1.0]), lamb.init(w), w)[0].tolist()]
    [-1.7678, -1.7678]
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(),
        scale_by_learning_rate(learning_rate),
    )


def _factored_axes(shape: tuple[int, ...], least: int) -> tuple[int, int] | None:
    """Return the second largest and the largest axis; None if a tensor is not factored."""
    if len(shape) < 2:
        return None
    order = sorted(range(len(shape)), key=lambda axis: shape[axis])
    return (order[-2], order[-1]) if shape[order[-2]] >= least else None


def scale_by_factored_rms(
    factored: bool = True,
    decay_rate: float = 0.8,
    step_offset: int = 0,
    min_dim_size_to_factor: int = 128,
    epsilon: float = 1e-30,
) -> GradientTransformation:
    """Return the transformation of `adafactor` by running means of rows and columns of squares.

    Parameters
    ----------
    factored : bool
        If False, all elements have their own means.
    decay_rate : float
        The exponent: the means of step ``t`` decay by ``1 - t**-decay_rate``.
    step_offset : int
        The number of steps of an earlier training, which the exponent does not count. In the first
        ``step_offset + 1`` steps, means have no decay: they are the squares of the step.
    min_dim_size_to_factor : int
        A tensor is factored if two axes have at least this size.
    epsilon : float
        A constant that is added to the squares.

    Returns
    -------
    GradientTransformation
        The transformation, see `adafactor`.

    Examples
    --------
    >>> import nxla as nx
    >>> rms = nx.optim.scale_by_factored_rms()
    >>> rms.update(nx.tensor(3.0), rms.init(nx.tensor(0.0)))[0].item()
    1.0
    """

    def axes_of(x: Any) -> tuple[int, int] | None:
        shape = as_tensor(x).shape
        return _factored_axes(shape, min_dim_size_to_factor) if factored else None

    def start(x: Any) -> tuple[Tensor, ...]:
        zeros, axes = full_like(as_tensor(x), 0.0, dtype=_square_dtype(x)), axes_of(x)
        if axes is None:
            return (zeros,)
        return _core.sum(zeros, axes[1]), _core.sum(zeros, axes[0])

    def shapes_of(x: Any) -> list[tuple[int, ...]]:
        shape, axes = as_tensor(x).shape, axes_of(x)
        omitted = (None,) if axes is None else (axes[1], axes[0])
        return [tuple(n for axis, n in enumerate(shape) if axis != each) for each in omitted]

    def update(grads: Any, state: FactoredState, params: Any = None) -> tuple[Any, FactoredState]:
        del params
        check_state("scale_by_factored_rms", FactoredState, state)
        expected = [shapes_of(leaf) for leaf in tree.leaves(grads)]
        if [[tuple(mean.shape) for mean in means] for means in state.means] != expected:
            raise ShapeError(
                "update: grads: must have the shapes of the parameters that created the state"
            )
        step = _core.maximum(_core.astype(state.count - step_offset, "f32") + 1.0, 1.0)
        decay = 1.0 - _core.pow(step, -decay_rate)
        following: list[tuple[Tensor, ...]] = []
        own = iter(state.means)

        def mixed(old: Tensor, new: Tensor) -> Tensor:
            share = _core.astype(decay, old.dtype)
            return _cast(old * share + new * (1.0 - share), old.dtype)

        def scaled(g: Tensor) -> Tensor:
            squares, axes = _core.square(_core.abs(g)) + epsilon, axes_of(g)
            means = next(own)
            if axes is None:
                following.append((mixed(means[0], squares),))
                return g * _core.rsqrt(following[-1][0])
            short, long = axes
            rows = mixed(means[0], _core.mean(squares, long))
            columns = mixed(means[1], _core.mean(squares, short))
            following.append((rows, columns))
            along = short - (short > long)
            ratio = rows / _core.mean(rows, along, keepdims=True)
            factors = _core.expand_dims(_core.rsqrt(ratio), long)
            return g * factors * _core.expand_dims(_core.rsqrt(columns), short)

        updates = _map_wide(scaled, grads)
        return updates, FactoredState(state.count + 1, tuple(following))

    def init(params: Any) -> FactoredState:
        means = tuple(start(leaf) for leaf in tree.leaves(params))
        return FactoredState(_core.tensor(0, "s32"), means)

    return GradientTransformation(init, update)


def clip_by_block_rms(threshold: float) -> GradientTransformation:
    """Return a transformation that limits the root mean square of each tensor.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.optim.clip_by_block_rms(1.0).update(nx.tensor([2.0, 2.0]), ())[0].tolist()
    [1.0, 1.0]
    """
    _check_not_negative("clip_by_block_rms", "threshold", threshold)

    def clipped(g: Tensor) -> Tensor:
        return g / _core.maximum(_root_mean_square(g) / threshold, 1.0)

    return _stateless(lambda grads, _: _map_wide(clipped, grads))


def scale_by_param_block_rms(min_scale: float = 1e-3) -> GradientTransformation:
    """Return a transformation that multiplies by the root mean square of each parameter.

    Examples
    --------
    >>> import nxla as nx
    >>> scale = nx.optim.scale_by_param_block_rms()
    >>> scale.update(nx.tensor([1.0, 2.0]), (), nx.tensor([3.0, 3.0]))[0].tolist()
    [3.0, 6.0]
    """

    def update(grads: Any, params: Any) -> Any:
        require_params("scale_by_param_block_rms", params)
        check_shapes("update: grads", grads, "parameter", params)

        def scaled(g: Tensor, p: Tensor) -> Tensor:
            return g * _core.maximum(_root_mean_square(p), min_scale)

        return _map_wide(scaled, grads, params)

    return _stateless(update)


@rename_errors(
    {
        "add_decayed_weights: mask": "weight_decay_mask",
        "add_decayed_weights: weight_decay": "weight_decay_rate",
        "clip_by_block_rms: threshold": "clipping_threshold",
    }
)
def adafactor(
    learning_rate: float | Schedule | None = None,
    min_dim_size_to_factor: int = 128,
    decay_rate: float = 0.8,
    decay_offset: int = 0,
    multiply_by_parameter_scale: bool = True,
    clipping_threshold: float | None = 1.0,
    momentum: float | None = None,
    weight_decay_rate: float | None = None,
    eps: float = 1e-30,
    factored: bool = True,
    weight_decay_mask: Any = None,
) -> GradientTransformation:
    """Return Adafactor, whose state is as large as the rows and columns of the parameters.

    N. Shazeer and M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018).

    Parameters
    ----------
    learning_rate : float or callable, optional
        The learning rate, or a schedule of it; 1 by default.
    min_dim_size_to_factor, decay_rate, decay_offset, eps, factored
        As for `scale_by_factored_rms`, which calls `decay_offset` and `eps` as optax does:
        ``step_offset`` and ``epsilon``.
    multiply_by_parameter_scale : bool
        If True, steps are relative to the root mean squares of the parameters.
    clipping_threshold : float, optional
        The limit of the root mean square of a step; None for no limit.
    momentum : float, optional
        The decay rate of the running mean of steps; None for no mean.
    weight_decay_rate, weight_decay_mask
        As for `add_decayed_weights`; the decay is not multiplied by the learning rate.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Examples
    --------
    >>> import nxla as nx
    >>> adafactor, w = nx.optim.adafactor(0.1), nx.tensor([2.0, 2.0])
    >>> [round(x, 4) for x in adafactor.update(nx.ones(2), adafactor.init(w), w)[0].tolist()]
    [-0.2, -0.2]
    """
    parts = [scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)]
    if clipping_threshold is not None:
        parts.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        parts.append(scale_by_learning_rate(learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        parts.append(scale_by_param_block_rms())
    if momentum is not None:
        parts.append(ema(momentum, debias=False))
    if weight_decay_rate is not None:
        parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return chain(*parts, scale(-1.0))


def _orthogonal(x: Tensor, coefficients: Sequence[float], steps: int) -> Tensor:
    """Return a matrix with about the same singular vectors, and singular values near 1."""
    a, b, c = coefficients
    names = x.names
    # The product of a matrix and its transpose would have one name twice.
    x = _core.rename(x, [None] * x.ndim)
    is_tall = x.shape[-2] > x.shape[-1]
    x = _core.swapaxes(x, -1, -2) if is_tall else x
    x = x / (global_norm(x) + 1e-8)
    is_complex = x.dtype.kind == "complex"
    for _ in range(steps):
        square = x @ _core.swapaxes(_core.conj(x) if is_complex else x, -1, -2)
        x = a * x + (b * square + c * (square @ square)) @ x
    return _core.rename(_core.swapaxes(x, -1, -2) if is_tall else x, names)


def scale_by_muon(
    ns_coeffs: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
    ns_steps: int = 5,
    beta: float = 0.95,
    *,
    nesterov: bool = True,
) -> GradientTransformation:
    """Return the transformation of `muon` for containers of matrices.

    Parameters
    ----------
    ns_coeffs : (float, float, float)
        The coefficients of the polynomial of the Newton-Schulz iteration.
    ns_steps : int
        The number of iterations.
    beta : float
        The decay rate of the running means.
    nesterov : bool
        If True, use Nesterov's momentum.

    Returns
    -------
    GradientTransformation
        The transformation. Its state is the number of steps and the running means.

    Examples
    --------
    >>> import nxla as nx
    >>> muon, w = nx.optim.scale_by_muon(), nx.eye(2)
    >>> updates, state = muon.update(3.0 * w, muon.init(w), w)
    >>> 0.6 < updates[0, 0].item() < 1.3, updates[0, 1].item()
    (True, 0.0)
    """
    coefficients = as_list("scale_by_muon", "ns_coeffs", ns_coeffs)
    if len(coefficients) != 3:
        raise ArgumentError(f"scale_by_muon: ns_coeffs: must be three numbers; got {ns_coeffs!r}")

    def update(grads: Any, state: MuonState, params: Any = None) -> tuple[Any, MuonState]:
        del params
        check_state("scale_by_muon", MuonState, state)
        check_shapes("update: grads", grads, "state", state.mu)
        mu, count = _update_means(beta, state.mu, grads), state.count + 1
        means = _momentum(beta, mu, grads, count, nesterov=nesterov)

        def scaled(_: Tensor, mean: Tensor) -> Tensor:
            rows, columns = mean.shape[-2:]
            factor = math.sqrt(max(1.0, columns / max(rows, 1)))
            return _orthogonal(mean, coefficients, ns_steps) * factor

        return _map_wide(scaled, grads, means), MuonState(count, mu)

    return GradientTransformation(
        lambda params: MuonState(_core.tensor(0, "s32"), _zeros(params)), update
    )


@rename_errors(
    {
        "adamw: b1": "adam_b1",
        "adamw: b2": "adam_b2",
        "adamw: weight_decay": "adam_weight_decay",
    }
)
def muon(
    learning_rate: float | Schedule,
    ns_coeffs: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
    ns_steps: int = 5,
    beta: float = 0.95,
    weight_decay: float = 0.0,
    mask: Callable[[Any], Any] | Any = None,
    *,
    nesterov: bool = True,
    adam_b1: float = 0.9,
    adam_b2: float = 0.999,
    adam_weight_decay: float = 0.0,
) -> GradientTransformation:
    """Return Muon for matrices, whose steps are orthogonal, and AdamW for all other tensors.

    K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024).

    Parameters
    ----------
    learning_rate : float or callable
        The learning rate, or a schedule of it.
    ns_coeffs, ns_steps, beta, nesterov
        As for `scale_by_muon`.
    weight_decay : float
        The decay of the matrices, see `adamw`.
    mask : container of bool or callable, optional
        The tensors of Muon, as for `masked`; by default all tensors with two axes.
    adam_b1, adam_b2, adam_weight_decay : float
        The arguments of `adamw` for the other tensors.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Examples
    --------
    >>> import nxla as nx
    >>> muon = nx.optim.muon(0.1, nesterov=False)
    >>> params = {"w": nx.eye(2), "b": nx.zeros(2)}
    >>> updates, state = muon.update(nx.tree.map(nx.ones_like, params), muon.init(params), params)
    >>> [round(x, 4) for x in updates["b"].tolist()]
    [-0.1, -0.1]
    """

    def is_matrix(params: Any) -> list[bool]:
        if mask is None:
            return [as_tensor(leaf).ndim == 2 for leaf in tree.leaves(params)]
        return read_mask("muon", mask, params)

    of_matrices = chain(
        scale_by_muon(ns_coeffs, ns_steps, beta, nesterov=nesterov),
        add_decayed_weights(weight_decay),
        scale_by_learning_rate(learning_rate),
    )
    of_others = adamw(
        learning_rate,
        adam_b1,
        adam_b2,
        weight_decay=adam_weight_decay,
        nesterov=nesterov,
    )
    return chain(
        _apply_to_selected(of_matrices, is_matrix),
        _apply_to_selected(of_others, lambda params: [not mark for mark in is_matrix(params)]),
    )


_hints.install(globals())
