"""Numbers for parameters to begin with.

Each function here returns one that takes a key, a shape and a dtype, and draws a tensor; a key is
used once, as `nxla.random.split` makes them.

>>> import nxla as nx
>>> init = nx.nn.initializers.glorot_uniform()
>>> w = init(nx.random.key(0), (30, 20))
>>> w.shape, w.dtype, nx.max(nx.abs(w)).item() < (6 / 50) ** 0.5
((30, 20), f32, True)
"""

from __future__ import annotations

import functools
import math

from nxla import _core, random
from nxla.errors import ArgumentError
from nxla.ops.linalg.factor import qr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal, TypeAlias

    from nxla._core import Tensor
    from nxla._types import DTypeLike, TensorLike

    Initializer: TypeAlias = Callable[..., Tensor]
    Mode = Literal["fan_in", "fan_out", "fan_avg"]
    Distribution = Literal["truncated_normal", "normal", "uniform"]

__all__ = [
    "constant",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "zeros",
]

#: The deviation of the standard normal distribution between -2 and 2.
_TRUNCATED = 0.87962566103423978


def zeros(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
    """Return zeros; an initializer itself.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.zeros(nx.random.key(0), (2,)).tolist()
    [0.0, 0.0]
    """
    del key
    return _core.full(shape, 0, dtype)


def ones(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
    """Return ones; an initializer itself.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.ones(nx.random.key(0), (2,)).tolist()
    [1.0, 1.0]
    """
    del key
    return _core.full(shape, 1, dtype)


def constant(value: TensorLike) -> Initializer:
    """Return an initializer that gives the same number everywhere.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.constant(0.5)(nx.random.key(0), (2,)).tolist()
    [0.5, 0.5]
    """

    def init(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
        del key
        return _core.full(shape, value, dtype)

    return init


def uniform(scale: float = 1e-2) -> Initializer:
    """Return an initializer that draws uniformly from ``[0, scale)``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.uniform()(nx.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
        return random.uniform_split(key, 0.0, scale, shape=shape, dtype=dtype)

    return init


def normal(standard_deviation: float = 1e-2) -> Initializer:
    """Return an initializer that draws from a normal distribution of mean 0.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.normal()(nx.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
        return random.normal_split(key, 0.0, standard_deviation, shape=shape, dtype=dtype)

    return init


def truncated_normal(
    standard_deviation: float = 1e-2, low: float = -2.0, high: float = 2.0
) -> Initializer:
    """Return an initializer that draws from a normal distribution between two bounds.

    Parameters
    ----------
    standard_deviation : float
        That of the distribution before it is cut off.
    low, high : float
        The bounds, in units of it.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.truncated_normal()(nx.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
        drawn = random.truncated_normal_split(key, low, high, shape=shape, dtype=dtype)
        return _core.multiply(drawn, standard_deviation)

    return init


def _fans(shape: Sequence[int], in_axis: int, out_axis: int) -> tuple[float, float]:
    if len(shape) < 2:
        raise ArgumentError(
            f"initializers: a shape of {len(shape)} axes has no inputs and outputs, got {shape!r}"
        )
    inputs, outputs = shape[in_axis], shape[out_axis]
    field = math.prod(shape) / (inputs * outputs) if inputs * outputs else 0.0
    return inputs * field, outputs * field


def variance_scaling(
    scale: float,
    mode: Mode,
    distribution: Distribution,
    *,
    in_axis: int = -2,
    out_axis: int = -1,
) -> Initializer:
    """Return an initializer whose variance is `scale` over a number of inputs or outputs.

    Parameters
    ----------
    scale : float
        Positive.
    mode : {"fan_in", "fan_out", "fan_avg"}
        What the variance is divided by: the inputs of a unit, its outputs, or their mean.
    distribution : {"truncated_normal", "normal", "uniform"}
        What is drawn from; a normal distribution is cut off at two deviations.
    in_axis, out_axis : int
        The axes of inputs and outputs; all others are positions of a kernel.

    Raises
    ------
    ArgumentError
        If there is no such mode or distribution, or a shape has fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> init = nx.nn.initializers.variance_scaling(1.0, "fan_in", "uniform")
    >>> init(nx.random.key(0), (3, 3, 8, 16)).shape
    (3, 3, 8, 16)
    """
    if mode not in ("fan_in", "fan_out", "fan_avg"):
        raise ArgumentError(f'mode must be "fan_in", "fan_out" or "fan_avg", got {mode!r}')
    if distribution not in ("truncated_normal", "normal", "uniform"):
        choices = '"truncated_normal", "normal" or "uniform"'
        raise ArgumentError(f"distribution must be {choices}, got {distribution!r}")

    def init(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
        fan_in, fan_out = _fans(shape, in_axis, out_axis)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]
        deviation = math.sqrt(scale / max(fan, 1.0))
        if distribution == "normal":
            return normal(deviation)(key, shape, dtype)
        if distribution == "truncated_normal":
            return truncated_normal(deviation / _TRUNCATED)(key, shape, dtype)
        bound = math.sqrt(3.0) * deviation
        return random.uniform_split(key, -bound, bound, shape=shape, dtype=dtype)

    return init


glorot_uniform = functools.partial(variance_scaling, 1.0, "fan_avg", "uniform")
glorot_uniform.__doc__ = """Return an initializer of X. Glorot and Y. Bengio, "Understanding the
difficulty of training deep feedforward neural networks" (2010). `in_axis` and `out_axis` are those
of `variance_scaling`."""
glorot_normal = functools.partial(variance_scaling, 1.0, "fan_avg", "truncated_normal")
glorot_normal.__doc__ = "Return `glorot_uniform` with a normal distribution."
he_uniform = functools.partial(variance_scaling, 2.0, "fan_in", "uniform")
he_uniform.__doc__ = """Return an initializer of K. He et al., "Delving deep into rectifiers:
surpassing human-level performance on ImageNet classification" (2015).
`in_axis` and `out_axis` are those of `variance_scaling`."""
he_normal = functools.partial(variance_scaling, 2.0, "fan_in", "truncated_normal")
he_normal.__doc__ = "Return `he_uniform` with a normal distribution."
lecun_uniform = functools.partial(variance_scaling, 1.0, "fan_in", "uniform")
lecun_uniform.__doc__ = """Return an initializer of Y. LeCun et al., "Efficient backprop" (1998).
`in_axis` and `out_axis` are those of `variance_scaling`."""
lecun_normal = functools.partial(variance_scaling, 1.0, "fan_in", "truncated_normal")
lecun_normal.__doc__ = "Return `lecun_uniform` with a normal distribution."


def orthogonal(scale: float = 1.0, axis: int = -1) -> Initializer:
    """Return an initializer that draws matrices whose rows or columns are orthonormal.

    A. M. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks" (2013). All of these matrices are equally likely (F. Mezzadri, "How to generate random
    matrices from the classical compact groups", 2006).

    Parameters
    ----------
    scale : float
        What the matrices are multiplied with.
    axis : int
        The axis of the columns; all others together are the rows.

    Raises
    ------
    ArgumentError
        If a shape has fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> w = nx.nn.initializers.orthogonal()(nx.random.key(0), (5, 3))
    >>> nx.all_close(w.T @ w, nx.eye(3), atol=1e-5).item()
    True
    """

    def init(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
        _fans(shape, -2, -1)
        columns = shape[axis]
        rows = math.prod(shape) // columns if columns else 0
        tall = (max(rows, columns), min(rows, columns))
        q, r = qr(random.normal_split(key, shape=tall, dtype=dtype))
        # The signs that a factorisation happens to choose are taken out.
        q = _core.multiply(q, _core.sign(_core.take_diagonal(r)))
        matrix = q if rows >= columns else _core.permute_dims(q, (1, 0))
        others = [*shape]
        del others[axis]
        matrix = _core.reshape(matrix, (*others, columns))
        order = list(range(len(shape)))
        order.insert(axis % len(shape), order.pop())
        return _core.multiply(_core.permute_dims(matrix, order), scale)

    return init
