"""Optimizers: named chains of transformations."""

from __future__ import annotations

from nxla import _hints
from nxla.optim._checks import rename_errors
from nxla.optim.transforms import (
    GradientTransformation,
    add_decayed_weights,
    chain,
    identity,
    scale_by_adam,
    scale_by_learning_rate,
    scale_by_lion,
    scale_by_rms,
    scale_by_rss,
    trace,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nxla.optim.schedules import Schedule


@rename_errors({"trace: decay": "momentum"})
def sgd(
    learning_rate: float | Schedule, momentum: float | None = None, nesterov: bool = False
) -> GradientTransformation:
    """Return stochastic gradient descent.

    H. Robbins and S. Monro, "A stochastic approximation method" (1951).

    Parameters
    ----------
    learning_rate : float or callable
        The learning rate, or a schedule of it.
    momentum : float, optional
        The decay of the accumulated gradients, see `trace`.
    nesterov : bool
        If True, use Nesterov's momentum.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Examples
    --------
    >>> import nxla as nx
    >>> sgd = nx.optim.sgd(0.5)
    >>> sgd.update(nx.tensor(2.0), sgd.init(nx.tensor(0.0)))[0].item()
    -1.0
    """
    own = identity() if momentum is None else trace(momentum, nesterov)
    return chain(own, scale_by_learning_rate(learning_rate))


@rename_errors()
def adam(
    learning_rate: float | Schedule,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Return Adam, which divides means of gradients by roots of means of squares.

    D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization" (2014); with `nesterov` T.
    Dozat, "Incorporating Nesterov momentum into Adam" (2016).

    Parameters
    ----------
    learning_rate : float or callable
        The learning rate, or a schedule of it.
    b1, b2 : float
        The decay rates of the running means of gradients, and of squares.
    eps, eps_root : float
        Constants that are added to the root, and under the root.
    nesterov : bool
        If True, use Nesterov's momentum.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Examples
    --------
    >>> import nxla as nx
    >>> adam, params = nx.optim.adam(0.1), {"w": nx.tensor(0.0)}
    >>> gradient = nx.jit(nx.grad(lambda params: (params["w"] - 3.0) ** 2))
    >>> state = adam.init(params)
    >>> for _ in range(100):
    ...     updates, state = adam.update(gradient(params), state, params)
    ...     params = nx.optim.apply_updates(params, updates)
    >>> round(params["w"].item(), 1)
    3.0
    """
    own = scale_by_adam(b1, b2, eps, eps_root, nesterov=nesterov)
    return chain(own, scale_by_learning_rate(learning_rate))


@rename_errors()
def adamw(
    learning_rate: float | Schedule,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    weight_decay: float = 1e-4,
    mask: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Return Adam with decoupled weight decay.

    I. Loshchilov and F. Hutter, "Decoupled weight decay regularization" (2017).

    Parameters
    ----------
    learning_rate, b1, b2, eps, eps_root, nesterov
        As for `adam`.
    weight_decay, mask
        As for `add_decayed_weights`; the decay is also multiplied by the learning rate.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Examples
    --------
    >>> import nxla as nx
    >>> adamw, w = nx.optim.adamw(0.1, weight_decay=0.5), nx.tensor(2.0)
    >>> round(adamw.update(nx.tensor(2.0), adamw.init(w), w)[0].item(), 4)
    -0.2
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, nesterov=nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@rename_errors()
def lion(
    learning_rate: float | Schedule,
    b1: float = 0.9,
    b2: float = 0.99,
    weight_decay: float = 1e-3,
    mask: Any = None,
) -> GradientTransformation:
    """Return Lion, whose steps have the sign of a running mean.

    X. Chen et al., "Symbolic discovery of optimization algorithms" (2023).

    Parameters
    ----------
    learning_rate : float or callable
        The learning rate, or a schedule of it.
    b1, b2 : float
        The weight of the running mean in a step, and the decay rate of the running mean.
    weight_decay, mask
        As for `add_decayed_weights`.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Examples
    --------
    >>> import nxla as nx
    >>> lion, w = nx.optim.lion(0.1, weight_decay=0.0), nx.tensor(2.0)
    >>> round(lion.update(nx.tensor(-7.0), lion.init(w), w)[0].item(), 4)
    0.1
    """
    return chain(
        scale_by_lion(b1, b2),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@rename_errors()
def adagrad(
    learning_rate: float | Schedule, initial_accumulator_value: float = 0.1, eps: float = 1e-7
) -> GradientTransformation:
    """Return Adagrad, which divides gradients by roots of sums of squares.

    J. Duchi et al., "Adaptive subgradient methods for online learning and stochastic optimization"
    (2011).

    Parameters
    ----------
    learning_rate : float or callable
        The learning rate, or a schedule of it.
    initial_accumulator_value : float
        The initial value of the sums.
    eps : float
        A constant that is added under the root.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Examples
    --------
    >>> import nxla as nx
    >>> adagrad, w = nx.optim.adagrad(0.5, 0.0), nx.tensor(2.0)
    >>> round(adagrad.update(nx.tensor(3.0), adagrad.init(w))[0].item(), 4)
    -0.5
    """
    own = scale_by_rss(initial_accumulator_value, eps)
    return chain(own, scale_by_learning_rate(learning_rate))


@rename_errors({"trace: decay": "momentum"})
def rmsprop(
    learning_rate: float | Schedule,
    decay: float = 0.9,
    eps: float = 1e-8,
    initial_scale: float = 0.0,
    *,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: float | None = None,
    nesterov: bool = False,
) -> GradientTransformation:
    """Return RMSProp, which divides gradients by roots of running means of squares.

    T. Tieleman and G. Hinton, "Lecture 6.5: RMSProp" (2012); `centered` is from A. Graves,
    "Generating sequences with recurrent neural networks" (2013).

    Parameters
    ----------
    learning_rate : float or callable
        The learning rate, or a schedule of it.
    decay : float
        The decay rate of the running means.
    eps : float
        A constant that is added under the root or to the root.
    initial_scale : float
        The initial value of the running means.
    eps_in_sqrt : bool
        If True, `eps` is added below the root.
    centered : bool
        If True, subtract the square of the mean from the mean of squares.
    momentum, nesterov
        As for `sgd`, applied to steps instead of gradients.

    Returns
    -------
    GradientTransformation
        The optimizer, a pair of functions `init` and `update`.

    Examples
    --------
    >>> import nxla as nx
    >>> rmsprop, w = nx.optim.rmsprop(0.5, decay=0.0), nx.tensor(2.0)
    >>> round(rmsprop.update(nx.tensor(3.0), rmsprop.init(w))[0].item(), 4)
    -0.5
    """
    own = scale_by_rms(decay, eps, initial_scale, eps_in_sqrt=eps_in_sqrt, centered=centered)
    last = identity() if momentum is None else trace(momentum, nesterov)
    return chain(own, scale_by_learning_rate(learning_rate), last)


_hints.install(globals())
