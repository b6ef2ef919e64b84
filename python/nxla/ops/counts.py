"""Distributions of counts, and Student's t distribution."""

from __future__ import annotations

import math

from nxla import _core, _hints
from nxla._sample import Sample, refuse_shape
from nxla._signatures import run_traced
from nxla._values import as_dtype, as_tensors, call_as, index_list, template_of
from nxla.errors import DTypeError, ShapeError
from nxla.ops.loops import scan, while_loop
from nxla.ops.movement import moveaxis
from nxla.ops.random import _together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import DTypeLike, Shape, TensorLike

#: The mean above which counts are drawn by rejection instead of by waiting times.
_LARGE_MEAN = 10.0


def _uniform(key: Tensor, index: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return numbers above 0 and below 1, for a step of a loop."""
    own = _core.random_fold_in(key, index)
    drawn = _core.random_uniform(own, 0.0, 1.0, shape, "f64", None, False)[0]
    return _core.maximum(drawn, 1e-16)


def _by_waiting(key: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """Draw counts by adding geometric waiting times until they exceed the number of trials.

    L. Devroye, "Non-uniform random variate generation" (1986), chapter X.4.
    """
    scale = _core.log1p(_core.negative(p))

    def is_open(state: Any) -> Tensor:
        return _core.any(state[1] <= n)

    def wait(state: Any) -> Any:
        count, total, step = state
        gap = _core.ceil(_core.log(_uniform(key, step, n.shape)) / scale)
        total = total + _core.maximum(gap, 1.0)
        return count + _core.astype(total <= n, "f64"), total, step + 1

    zero = n * 0.0
    count: Tensor = while_loop(is_open, wait, (zero, zero, _core.tensor(0, "s32")))[0]
    return count


def _log_factorial_ratio(x: Tensor, y: Tensor) -> Tensor:
    """Return ``log(y! / x!)`` by Stirling's series.

    The difference of two logarithms of factorials of large numbers would be rounded to integers.
    """
    x, y = x + 1.0, y + 1.0
    distance = y - x
    main = (x - 0.5) * _core.log1p(distance / x) + distance * (_core.log(y) - 1.0)
    return main + _stirling_series(y) - _stirling_series(x)


def _stirling_series(z: Tensor) -> Tensor:
    """Return the part of ``lgamma(z)`` that vanishes for large numbers."""
    inverse = 1.0 / z
    square = inverse * inverse
    return inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0)))


def _by_rejection(key: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """Draw counts by transformed rejection, for means of at least 10.

    W. Hörmann, "The generation of binomial random variates" (1993), algorithm BTRS.
    """
    q = 1.0 - p
    spread = _core.sqrt(n * p * q)
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    center = n * p + 0.5
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    mode = _core.floor((n + 1.0) * p)
    odds = _core.log(p) - _core.log(q)

    def log_mass(k: Tensor) -> Tensor:
        """Return the logarithm of the probability relative to the mode."""
        ratios = _log_factorial_ratio(mode, k) + _log_factorial_ratio(n - mode, n - k)
        return (k - mode) * odds - ratios

    def is_open(state: Any) -> Tensor:
        return _core.any(~state[1])

    def propose(state: Any) -> Any:
        found, done, step = state
        u = _uniform(key, 2 * step, n.shape) - 0.5
        v = _uniform(key, 2 * step + 1, n.shape)
        edge = _core.maximum(0.5 - _core.abs(u), 1e-16)
        k = _core.floor((2.0 * a / edge + b) * u + center)
        inside = (k >= 0.0) & (k <= n)
        safe = _core.where(inside, k, mode)
        height = _core.log(v * alpha / (a / (edge * edge) + b))
        fast = (edge >= 0.07) & (v <= squeeze)
        accepted = inside & (fast | (height <= log_mass(safe)))
        return _core.where(done | ~accepted, found, k), done | accepted, step + 1

    start = (n * 0.0, _core.equal(n, -1.0), _core.tensor(0, "s32"))
    found: Tensor = while_loop(is_open, propose, start)[0]
    return found


def _binomial(key: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """Draw counts of `float64` parameters of one shape; NaN outside of the domain."""
    valid = (n >= 0.0) & (p >= 0.0) & (p <= 1.0) & _core.isfinite(n)
    n = _core.where(valid, _core.floor(n), 0.0)
    is_high = p > 0.5
    rare = _core.where(valid, _core.where(is_high, 1.0 - p, p), 0.0)
    is_large = n * rare >= _LARGE_MEAN
    is_some = (n * rare > 0.0) & ~is_large
    # Both methods compute all elements, so each receives valid parameters for elements of the other
    # method.
    few = _by_waiting(
        _core.random_fold_in(key, 0), _core.where(is_some, n, 0.0), _core.where(is_some, rare, 0.5)
    )
    many = _by_rejection(
        _core.random_fold_in(key, 1),
        _core.where(is_large, n, 100.0),
        _core.where(is_large, rare, 0.5),
    )
    count = _core.where(is_large, many, _core.where(is_some, few, 0.0))
    count = _core.where(is_high, n - count, count)
    return _core.where(valid, count, math.nan)


def _reals(op: str, *parameters: TensorLike) -> list[Tensor]:
    tensors = as_tensors(op, *parameters, compared=True)
    for tensor in tensors:
        if tensor.dtype.kind == "complex":
            raise DTypeError(f"{op}: parameters: must be real; got {tensor.dtype}")
    return tensors


def _draws(name: str, static: tuple[Any, ...], key: Tensor, draw: Any, *operands: Tensor) -> Sample:
    """Draw with one half of a checked key, and return the other half as the next key.

    `static` has the values that `draw` uses besides its arguments.
    """

    def both(key: Tensor, *operands: Tensor) -> Any:
        keys = _core.random_split(key, 2)
        # Samples have no gradient.
        return draw(keys[1], *map(_core.stop_grad, operands)), keys[0]

    found = run_traced(both, name, key, *operands, key=(name, *static))
    return Sample(*found)


def _checked_key(name: str, key: TensorLike) -> Tensor:
    """Return a key as a tensor; an error names the function that the user called."""
    (found,) = as_tensors(name, key)
    if found.shape != (2,) or found.dtype != _core.u32:
        raise ShapeError(f"{name}: key: expected a key, which is u32[2]; got {template_of(found)}")
    return found


def _shape_of(name: str, shape: Shape | None, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the result, to which the shapes of the parameters must broadcast."""
    own = _together(name, list(shapes))
    if shape is None:
        return own
    wanted = tuple(index_list(name, "shape", shape, names=False))
    if _together(name, [own, wanted]) != wanted:
        raise ShapeError(f"{name}: shape: parameters {own} must broadcast to {wanted}")
    return wanted


def _count_dtype(name: str, dtype: DTypeLike | None) -> Any:
    found = as_dtype(name, "s32" if dtype is None else dtype)
    if found.kind not in ("signed", "unsigned"):
        raise DTypeError(f"{name}: dtype: must be an integer dtype; got {found}")
    return found


def _counts(x: Tensor, dtype: Any) -> Tensor:
    """Return counts as integers; an invalid count is -1, or 0 of unsigned dtypes."""
    invalid = -1.0 if dtype.kind == "signed" else 0.0
    return _core.astype(_core.where(_core.isnan(x), invalid, x), dtype)


def binomial(
    key: TensorLike,
    n: TensorLike,
    p: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Sample:
    """Draw the numbers of successes in independent trials.

    Parameters
    ----------
    key : tensor_like
        A key.
    n : tensor_like
        The number of trials, at most 2**53.
    p : tensor_like
        The probability of a success, from 0 to 1; other values produce -1.
    shape : int or sequence of int, optional
        The shape of the result, to which the parameters broadcast; their shape by default.
    dtype : dtype_like, optional
        An integer dtype; ``int32`` by default.

    Returns
    -------
    Sample
        The numbers, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is not an integer dtype, or a parameter is complex.

    Notes
    -----
    Means from 10 on use W. Hörmann, "The generation of binomial random variates" (1993); smaller
    means add geometric waiting times.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.binomial(nx.random.key(0), 100, 0.25, shape=1000)
    >>> 24.5 < nx.mean(x).item() < 25.5
    True
    """
    key = _checked_key("binomial", key)
    refuse_shape("binomial", "p", p)
    parameters = _reals("binomial", n, p)
    wanted = _shape_of("binomial", shape, *(x.shape for x in parameters))
    kind = _count_dtype("binomial", dtype)

    def draw(key: Tensor, *parameters: Tensor) -> Tensor:
        wide = [_core.broadcast_to(_core.astype(x, "f64"), wanted) for x in parameters]
        return _counts(_binomial(key, *wide), kind)

    return _draws("binomial", (wanted, kind), key, draw, *parameters)


def binomial_split(
    key: TensorLike,
    n: TensorLike,
    p: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Draw like `binomial`, without returning the next key.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.binomial_split(nx.random.key(0), 10, 1.0, shape=2).tolist()
    [10, 10]
    """
    return call_as("binomial_split", binomial, key, n, p, shape, dtype).value


def multinomial(
    key: TensorLike,
    n: TensorLike,
    p: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Sample:
    """Draw how often each category occurs in independent trials.

    Parameters
    ----------
    key : tensor_like
        A key.
    n : tensor_like
        The number of trials.
    p : tensor_like
        The probabilities of the categories along the last axis, which are divided by their sum.
        All counts are -1 if a probability is negative or NaN, or the sum is zero or infinite.
    shape : int or sequence of int, optional
        The shape of the result without its last axis, to which `n`, and `p` without its last axis,
        broadcast; their shape by default.
    dtype : dtype_like, optional
        An integer dtype; ``int32`` by default.

    Returns
    -------
    Sample
        The numbers of occurrences along the last axis, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or a parameter does not broadcast to the shape.
    DTypeError
        If the dtype is not an integer dtype, or a parameter is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.multinomial(nx.random.key(0), 10, [0.2, 0.3, 0.5], shape=4)
    >>> x.shape, nx.sum(x, axis=1).tolist()
    ((4, 3), [10, 10, 10, 10])
    """
    key = _checked_key("multinomial", key)
    trials, shares = _reals("multinomial", n, p)
    if shares.ndim == 0 or shares.shape[-1] == 0:
        raise ShapeError(f"multinomial: p: must have categories; got shape {shares.shape}")
    kind = _count_dtype("multinomial", dtype)
    wanted = _shape_of("multinomial", shape, trials.shape, shares.shape[:-1])

    def draw(key: Tensor, trials: Tensor, shares: Tensor) -> Tensor:
        count = shares.shape[-1]
        left = _core.broadcast_to(_core.astype(trials, "f64"), wanted)
        wide = _core.broadcast_to(_core.astype(shares, "f64"), (*wanted, count))
        # The probability of each category relative to it and all later categories.
        rest = _core.cumulative_sum(wide, -1, reverse=True)
        ratio = _core.clip(wide / _core.where(rest > 0.0, rest, 1.0), 0.0, 1.0)

        def step(left: Tensor, inputs: Any) -> tuple[Tensor, Tensor]:
            index, ratio = inputs
            drawn = _binomial(_core.random_fold_in(key, index), left, ratio)
            return left - drawn, drawn

        inputs = _core.iota((count - 1,), 0), moveaxis(ratio, -1, 0)[: count - 1]
        left, drawn = scan(step, left, inputs)
        counts = _core.concat([drawn, _core.expand_dims(left, 0)], 0)
        total = _core.sum(wide, axis=-1, keepdims=True)
        is_valid = _core.all(wide >= 0.0, axis=-1, keepdims=True) & (total > 0.0)
        counts = _core.where(is_valid & _core.isfinite(total), moveaxis(counts, 0, -1), -1.0)
        return _counts(counts, kind)

    return _draws("multinomial", (wanted, kind), key, draw, trials, shares)


def multinomial_split(
    key: TensorLike,
    n: TensorLike,
    p: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Draw like `multinomial`, without returning the next key.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.multinomial_split(nx.random.key(0), 5, [0.0, 1.0]).tolist()
    [0, 5]
    """
    return call_as("multinomial_split", multinomial, key, n, p, shape, dtype).value


def student_t(
    key: TensorLike,
    df: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Sample:
    """Draw floats with Student's t distribution.

    Parameters
    ----------
    key : tensor_like
        A key.
    df : tensor_like
        The degrees of freedom, positive real numbers; infinity draws from the normal distribution.
    shape : int or sequence of int, optional
        The shape of the result, to which the parameter broadcasts; its shape by default.
    dtype : dtype_like, optional
        A float dtype; by default the dtype of the parameter.

    Returns
    -------
    Sample
        The samples, and the next key.

    Raises
    ------
    ShapeError
        If `key` is not a key, or the parameter does not broadcast to the shape.
    DTypeError
        If the dtype is not a float dtype, or the parameter is complex.

    Notes
    -----
    The samples have no gradient with respect to the parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> x, key = nx.random.student_t(nx.random.key(0), 5.0, shape=1000)
    >>> abs(nx.mean(x).item()) < 0.2
    True
    """
    key = _checked_key("student_t", key)
    refuse_shape("student_t", "df", df)
    (freedom,) = _reals("student_t", df)
    wanted = _shape_of("student_t", shape, freedom.shape)
    if dtype is None:
        kind = freedom.dtype if freedom.dtype.kind == "float" else _core.f32
    else:
        kind = as_dtype("student_t", dtype)
    if kind.kind != "float":
        raise DTypeError(f"student_t: dtype: must be a float dtype; got {kind}")
    wide = kind if kind.bits >= 32 else _core.f32

    def draw(key: Tensor, freedom: Tensor) -> Tensor:
        freedom = _core.broadcast_to(_core.astype(freedom, wide), wanted)
        keys = _core.random_split(key, 2)
        normal = _core.random_normal(keys[0], 0.0, 1.0, wanted, wide, None, False)[0]
        half = freedom * 0.5
        gamma = _core.random_from("gamma", keys[1], (half,), wanted, wide, None, False)[0]
        # With infinite freedom, both operands of the division are infinite.
        ratio = _core.where(_core.equal(half, math.inf), 1.0, half / gamma)
        return _core.astype(normal * _core.sqrt(ratio), kind)

    return _draws("student_t", (wanted, kind), key, draw, freedom)


def student_t_split(
    key: TensorLike,
    df: TensorLike,
    /,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Draw like `student_t`, without returning the next key.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.random.student_t_split(nx.random.key(0), 5.0, shape=3).shape
    (3,)
    """
    return call_as("student_t_split", student_t, key, df, shape, dtype).value


_hints.install(globals())
