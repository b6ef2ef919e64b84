"""Initializers: functions that draw the first values of parameters.

Each function of this module returns an initializer, which takes a key, a shape and a dtype. Use
each key once; `nxla.random.split` makes several keys.

Initializers that scale by the number of inputs or outputs (the fans) read the axes of a shape as
`nxla.dot` and `nxla.conv` do: a matrix is (inputs, outputs), and a tensor of more axes is the
kernel of a convolution, (outputs, inputs, positions…). Other layouts, such as a stack of matrices,
name their axes by `in_axis` and `out_axis`.

>>> import nxla as nx
>>> init = nx.nn.initializers.glorot_uniform()
>>> w = init(nx.random.key(0), (30, 20))
>>> w.shape, w.dtype, nx.max(nx.abs(w)).item() < (6 / 50) ** 0.5
((30, 20), f32, True)
"""

from __future__ import annotations

import math

from nxla import _core, _hints, random
from nxla._values import as_int, index_list
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

#: The standard deviation of the standard normal distribution truncated to [-2, 2].
_TRUNCATED = 0.87962566103423978


def zeros(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
    """Return zeros. The function itself is an initializer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.zeros(nx.random.key(0), (2,)).tolist()
    [0.0, 0.0]
    """
    del key
    return _core.full(shape, 0, dtype)


def ones(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
    """Return ones. The function itself is an initializer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.ones(nx.random.key(0), (2,)).tolist()
    [1.0, 1.0]
    """
    del key
    return _core.full(shape, 1, dtype)


def constant(value: TensorLike) -> Initializer:
    """Return an initializer that sets all elements to one number.

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
        The standard deviation of the distribution before truncation.
    low, high : float
        The bounds, in units of the standard deviation.

    Returns
    -------
    callable
        The initializer: ``init(key, shape, dtype="f32")``.

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


def _axes(function: str, shape: Sequence[int], **axes: int | None) -> tuple[int, int]:
    """Return the axes of inputs and outputs: (0, 1) of a matrix, (1, 0) of a kernel.

    Given axes are checked; errors name the initializer and the axes by their arguments.
    """
    sizes = tuple(index_list(function, "shape", shape, names=False))
    if len(sizes) < 2:
        raise ArgumentError(
            f"{function}: shape: inputs and outputs need at least two axes; got {sizes}"
        )
    for name, axis in axes.items():
        if axis is not None and as_int(function, name, axis) not in range(-len(sizes), len(sizes)):
            raise ArgumentError(f"{function}: {name}: must be an axis of shape {sizes}; got {axis}")
    return (0, 1) if len(sizes) == 2 else (1, 0)


def _fans(shape: Sequence[int], in_axis: int | None, out_axis: int | None) -> tuple[float, float]:
    """Return the number of inputs of each output, and the number of outputs of each input."""
    inputs, outputs = _axes("initializers", shape, in_axis=in_axis, out_axis=out_axis)
    inputs = shape[inputs if in_axis is None else in_axis]
    outputs = shape[outputs if out_axis is None else out_axis]
    positions = math.prod(shape) / (inputs * outputs) if inputs * outputs else 0.0
    return inputs * positions, outputs * positions


def variance_scaling(
    scale: float,
    mode: Mode,
    distribution: Distribution,
    *,
    in_axis: int | None = None,
    out_axis: int | None = None,
) -> Initializer:
    """Return an initializer with the variance ``scale / fan``.

    Parameters
    ----------
    scale : float
        A factor of at least 0.
    mode : {"fan_in", "fan_out", "fan_avg"}
        The fan: the inputs of an output, the outputs of an input, or the mean of both numbers.
    distribution : {"truncated_normal", "normal", "uniform"}
        The distribution; the truncated one has no values beyond two standard deviations.
    in_axis, out_axis : int, optional
        The axes of inputs and outputs; all other axes are positions of a kernel. By default 0 and 1
        of a matrix, as `nxla.dot` reads it, and 1 and 0 of a kernel, as `nxla.conv` reads it.

    Returns
    -------
    callable
        The initializer: ``init(key, shape, dtype="f32")``.

    Raises
    ------
    ArgumentError
        If the scale is negative, the mode or the distribution is unknown, or a shape has fewer than
        two axes or not the axes of inputs and outputs.

    Examples
    --------
    >>> import nxla as nx
    >>> init = nx.nn.initializers.variance_scaling(1.0, "fan_in", "uniform")
    >>> kernel = init(nx.random.key(0), (16, 8, 3, 3))
    >>> nx.max(nx.abs(kernel)).item() < (3 / (8 * 3 * 3)) ** 0.5
    True
    """
    if not scale >= 0.0:
        raise ArgumentError(f"initializers: scale: must not be negative; got {scale}")
    if mode not in ("fan_in", "fan_out", "fan_avg"):
        raise ArgumentError(
            f'initializers: mode: must be "fan_in", "fan_out" or "fan_avg"; got {mode!r}'
        )
    if distribution not in ("truncated_normal", "normal", "uniform"):
        choices = '"truncated_normal", "normal" or "uniform"'
        raise ArgumentError(f"initializers: distribution: must be {choices}; got {distribution!r}")

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


def glorot_uniform(*, in_axis: int | None = None, out_axis: int | None = None) -> Initializer:
    """Return the uniform initializer with the variance 1 / fan_avg.

    The initializer is the one of X. Glorot and Y. Bengio, "Understanding the difficulty of training
    deep feedforward neural networks" (2010).

    Parameters
    ----------
    in_axis, out_axis : int, optional
        The axes of inputs and outputs, see `variance_scaling`.

    Returns
    -------
    callable
        The initializer: ``init(key, shape, dtype="f32")``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.glorot_uniform()(nx.random.key(0), (4, 3)).shape
    (4, 3)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis=in_axis, out_axis=out_axis)


def glorot_normal(*, in_axis: int | None = None, out_axis: int | None = None) -> Initializer:
    """Return the truncated normal initializer with the variance of `glorot_uniform`.

    Parameters
    ----------
    in_axis, out_axis : int, optional
        The axes of inputs and outputs, see `variance_scaling`.

    Returns
    -------
    callable
        The initializer: ``init(key, shape, dtype="f32")``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.glorot_normal()(nx.random.key(0), (4, 3)).shape
    (4, 3)
    """
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis=in_axis, out_axis=out_axis)


def he_uniform(*, in_axis: int | None = None, out_axis: int | None = None) -> Initializer:
    """Return the uniform initializer with the variance 2 / fan_in.

    The initializer is the one of K. He et al., "Delving deep into rectifiers: surpassing
    human-level performance on ImageNet classification" (2015).

    Parameters
    ----------
    in_axis, out_axis : int, optional
        The axes of inputs and outputs, see `variance_scaling`.

    Returns
    -------
    callable
        The initializer: ``init(key, shape, dtype="f32")``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.he_uniform()(nx.random.key(0), (4, 3)).shape
    (4, 3)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis=in_axis, out_axis=out_axis)


def he_normal(*, in_axis: int | None = None, out_axis: int | None = None) -> Initializer:
    """Return the truncated normal initializer with the variance of `he_uniform`.

    Parameters
    ----------
    in_axis, out_axis : int, optional
        The axes of inputs and outputs, see `variance_scaling`.

    Returns
    -------
    callable
        The initializer: ``init(key, shape, dtype="f32")``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.he_normal()(nx.random.key(0), (4, 3)).shape
    (4, 3)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis=in_axis, out_axis=out_axis)


def lecun_uniform(*, in_axis: int | None = None, out_axis: int | None = None) -> Initializer:
    """Return the uniform initializer with the variance 1 / fan_in.

    The initializer is the one of Y. LeCun et al., "Efficient backprop" (1998).

    Parameters
    ----------
    in_axis, out_axis : int, optional
        The axes of inputs and outputs, see `variance_scaling`.

    Returns
    -------
    callable
        The initializer: ``init(key, shape, dtype="f32")``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.lecun_uniform()(nx.random.key(0), (4, 3)).shape
    (4, 3)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis=in_axis, out_axis=out_axis)


def lecun_normal(*, in_axis: int | None = None, out_axis: int | None = None) -> Initializer:
    """Return the truncated normal initializer with the variance of `lecun_uniform`.

    Parameters
    ----------
    in_axis, out_axis : int, optional
        The axes of inputs and outputs, see `variance_scaling`.

    Returns
    -------
    callable
        The initializer: ``init(key, shape, dtype="f32")``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.initializers.lecun_normal()(nx.random.key(0), (4, 3)).shape
    (4, 3)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis=in_axis, out_axis=out_axis)


def orthogonal(scale: float = 1.0, axis: int | None = None) -> Initializer:
    """Return an initializer that draws matrices whose rows or columns are orthonormal.

    A. M. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks" (2013). All of these matrices are equally likely (F. Mezzadri, "How to generate random
    matrices from the classical compact groups", 2006).

    Parameters
    ----------
    scale : float
        A factor of the matrices.
    axis : int, optional
        The axis of the columns; all other axes together are the rows. By default the axis of
        outputs: 1 of a matrix, 0 of the kernel of a convolution.

    Returns
    -------
    callable
        The initializer: ``init(key, shape, dtype="f32")``.

    Raises
    ------
    ArgumentError
        If a shape has fewer than two axes, or not the axis.

    Examples
    --------
    >>> import nxla as nx
    >>> w = nx.nn.initializers.orthogonal()(nx.random.key(0), (5, 3))
    >>> nx.all_close(w.T @ w, nx.eye(3), atol=1e-5).item()
    True
    """

    def init(key: TensorLike, shape: Sequence[int], dtype: DTypeLike = "f32") -> Tensor:
        _, outputs = _axes("orthogonal", shape, axis=axis)
        column_axis = outputs if axis is None else axis
        if 0 in shape:
            return _core.full(shape, 0, dtype)
        columns = shape[column_axis]
        rows = math.prod(shape) // columns if columns else 0
        tall = (max(rows, columns), min(rows, columns))
        q, r = qr(random.normal_split(key, shape=tall, dtype=dtype))
        # Remove the signs, which depend on the factorization algorithm.
        q = _core.multiply(q, _core.sign(_core.take_diagonal(r)))
        matrix = q if rows >= columns else _core.permute_dims(q, (1, 0))
        others = [*shape]
        del others[column_axis]
        matrix = _core.reshape(matrix, (*others, columns))
        order = list(range(len(shape)))
        order.insert(column_axis % len(shape), order.pop())
        return _core.multiply(_core.permute_dims(matrix, order), scale)

    return init


_hints.install(globals())
_hints.install_missing_names(globals())
