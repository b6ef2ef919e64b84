"""Assertions about tensors, for tests.

>>> import nxla as nx
>>> nx.testing.assert_all_close([1.0, 2.0], [1.0, 2.00001])
"""

from __future__ import annotations

from typing import NamedTuple

from nxla import _core, _hints, tree
from nxla._values import as_count, as_list, as_tensor, is_inexact, require_callable
from nxla.derivatives import jvp, vjp
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random
    from typing import Any, TypeAlias

    from nxla._core import DType, Tensor
    from nxla._types import TensorLike

    #: A function from a list of tensors to a list of tensors.
    Flat: TypeAlias = Callable[[list[Any]], list[Any]]

__all__ = ["assert_all_close", "assert_equal", "check_grads"]


def assert_all_close(
    actual: TensorLike, expected: TensorLike, /, *, rtol: float = 1e-4, atol: float = 1e-4
) -> None:
    """Assert that numbers are equal up to a tolerance.

    Parameters
    ----------
    actual, expected : tensor_like
        Numbers; their shapes and vectorized axes broadcast.
    rtol, atol : float
        Numbers are close if ``abs(actual - expected) <= atol + rtol * abs(expected)``.

    Raises
    ------
    AssertionError
        If they are not close. The message contains both tensors and the largest difference.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.testing.assert_all_close([1.0, 2.0], [1.00001, 2.0])
    """
    left, right = as_tensor(actual), as_tensor(expected)
    if not _all(_core.all_close(left, right, rtol=rtol, atol=atol)):
        # Differences of integers wrap in their own dtype.
        wide = "c128" if "complex" in (left.dtype.kind, right.dtype.kind) else "f64"
        distance = _core.subtract(_core.astype(left, wide), _core.astype(right, wide))
        largest = _largest(distance)
        raise AssertionError(_differ(f"by up to {largest} (rtol={rtol}, atol={atol})", left, right))


def assert_equal(actual: TensorLike, expected: TensorLike, /) -> None:
    """Assert that dtypes, shapes, vectorized axes and elements are equal; NaN equals NaN.

    Parameters
    ----------
    actual, expected : tensor_like
        The tensors to compare.

    Raises
    ------
    AssertionError
        If the tensors differ.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.testing.assert_equal(nx.arange(3), [0, 1, 2])
    """
    left, right = as_tensor(actual), as_tensor(expected)
    if left.dtype != right.dtype or left.shape != right.shape:
        raise AssertionError(_differ("in dtype or shape", left, right))
    if left.vectorized_axes != right.vectorized_axes:
        raise AssertionError(_differ("in their vectorized axes", left, right))
    both_nan = _core.logical_and(_core.isnan(left), _core.isnan(right))
    if not _all(_core.logical_or(_core.equal(left, right), both_nan)):
        raise AssertionError(_differ("in their elements", left, right))


def _every_entry(x: TensorLike) -> Tensor:
    """Return a tensor with the elements of all entries and without vectorized axes."""
    return _core.devectorize(x, False)


def _all(holds: Tensor) -> bool:
    return bool(_core.all(_every_entry(holds)))


def _differ(how: str, left: Tensor, right: Tensor) -> str:
    return f"the tensors differ {how}\nactual: {left!r}\nexpected: {right!r}"


def check_grads(
    function: Callable[..., Any],
    args: Sequence[Any],
    /,
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    step: float | None = None,
    seed: int = 0,
) -> None:
    """Compare the derivatives of a function with finite differences.

    Along a random direction, forward mode is compared with central differences, and reverse mode
    with forward mode by the dot product with random cotangents. The derivatives are checked in the
    same way up to an order, in every combination of modes.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    args : sequence
        The arguments. Integers and values that are not tensors are constant. The function must be
        smooth at the other arguments.
    order : int
        The number of differentiations.
    modes : sequence of {"fwd", "rev"}
        Forward mode, reverse mode, or both.
    rtol, atol : float, optional
        The relative and the absolute tolerance. The defaults match the accuracy of differences in
        the coarsest dtype, about 1e-6 for ``float64`` and 1e-3 for ``float32``.
    step : float, optional
        The step of the differences.
    seed : int
        The seed of the directions.

    Raises
    ------
    AssertionError
        If two derivatives differ. The message names the modes of differentiation.
    ArgumentError
        If no argument can be differentiated, or a mode does not exist.
    GradientError
        If an operation has no derivative.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.testing.check_grads(lambda x, y: nx.sin(x) * y["scale"], (0.5, {"scale": 2.0}))
    >>> wrong = lambda x: nx.custom_grad(nx.sin(x), x, lambda g: g)
    >>> nx.testing.check_grads(wrong, (0.5,))
    Traceback (most recent call last):
        ...
    AssertionError: fwd: derivative must match finite differences; got ...
    """
    from random import Random

    require_callable("check_grads", "function", function)
    order = as_count("check_grads", "order", order, 1)
    modes = as_list("check_grads", "modes", modes)
    if not modes or any(mode not in ("fwd", "rev") for mode in modes):
        raise ArgumentError(
            f"check_grads: modes: must be a subset of 'fwd' and 'rev'; got {modes!r}"
        )
    every, structure = tree.flatten(tuple(as_list("check_grads", "args", args)))
    every = [_core.tensor(x) if isinstance(x, float | complex) else as_tensor(x) for x in every]
    places = [at for at, x in enumerate(every) if is_inexact(x.dtype)]
    if not places:
        raise ArgumentError("check_grads: args: must contain a float or complex tensor")
    least = min(_digits(every[place].dtype) for place in places)
    bounds = _Bounds(
        rtol=10.0 ** (-0.4 * least) if rtol is None else rtol,
        atol=10.0 ** (-0.4 * least) if atol is None else atol,
        step=10.0 ** (-least / 3.0) if step is None else step,
    )

    def flat(values: list[Any]) -> list[Any]:
        changed = list(every)
        for place, value in zip(places, values, strict=True):
            changed[place] = value
        results = tree.leaves(function(*structure.unflatten(changed)))
        return [as_tensor(x) for x in results if is_inexact(as_tensor(x).dtype)]

    _check(flat, [every[place] for place in places], (order, modes), bounds, (Random(seed), ""))


class _Bounds(NamedTuple):
    """The step and the tolerances of the comparison."""

    rtol: float
    atol: float
    step: float


def _digits(dtype: DType) -> float:
    """Return the number of decimal digits of a dtype."""
    bits = {16: 3.0, 32: 7.0, 64: 15.5}
    return bits.get(dtype.bits // (2 if dtype.kind == "complex" else 1), 2.0)


def _random_like(x: Tensor, random: Random) -> Tensor:
    """Return random numbers with a magnitude between one half and one."""
    full = _every_entry(x)

    def part() -> Tensor:
        numbers = [random.uniform(0.5, 1.0) * random.choice((-1, 1)) for _ in range(full.size)]
        return _core.reshape(_core.tensor(numbers, _core.f64), full.shape)

    whole = part()
    if x.dtype.kind == "complex":
        whole = _core.complex(whole, part())
    return _core.vectorize(_core.astype(whole, x.dtype), list(x.vectorized_axes))


def _sum_products(left: list[Any], right: list[Any]) -> float:
    """Return the dot product of cotangents and tangents, which is equal in both modes."""
    total = 0.0
    for one, other in zip(left, right, strict=True):
        total += _core.real(_core.sum(_every_entry(_core.multiply(one, other)))).item()
    return total


def _check(
    function: Flat,
    values: list[Tensor],
    rest: tuple[int, Sequence[str]],
    bounds: _Bounds,
    around: tuple[Random, str],
) -> None:
    """Check a function of a list, and its derivatives up to the remaining order."""
    (order, modes), (random, path) = rest, around
    directions = [_random_like(x, random) for x in values]

    def moved(step: float) -> list[Any]:
        pairs = zip(values, directions, strict=True)
        return function([_core.add(x, _core.multiply(d, step)) for x, d in pairs])

    halves = zip(moved(bounds.step), moved(-bounds.step), strict=True)
    shown = [_core.multiply(_core.subtract(high, low), 0.5 / bounds.step) for high, low in halves]
    if not shown:
        raise ArgumentError("check_grads: function: result must contain a float or complex tensor")
    for mode in modes:
        where = f"{path} of {mode}" if path else mode
        if mode == "fwd":
            found = jvp(function, (values,), (directions,))[1]
            for change, difference in zip(found, shown, strict=True):
                _compare(where, change, difference, bounds)

            def along(values: list[Any]) -> list[Any]:
                return list(jvp(function, (values,), (directions,))[1])

            further: Flat = along
        else:
            cotangents = [_random_like(x, random) for x in shown]
            (found,) = vjp(function, values)[1](cotangents)
            _compare(
                where,
                _core.tensor(_sum_products(found, directions), _core.f64),
                _core.tensor(_sum_products(cotangents, shown), _core.f64),
                bounds,
            )

            def back(values: list[Any], cotangents: list[Any] = cotangents) -> list[Any]:
                return list(vjp(function, values)[1](cotangents)[0])

            further = back
        if order > 1:
            _check(further, values, (order - 1, modes), bounds, (random, where))


def _largest(x: Tensor) -> float:
    """Return the largest magnitude of all elements."""
    full = _every_entry(x)
    return _core.max(_core.abs(full)).item() if full.size else 0.0


def _compare(where: str, found: Tensor, shown: Tensor, bounds: _Bounds) -> None:
    found, shown = as_tensor(found), as_tensor(shown)
    distance = _largest(_core.subtract(found, shown))
    largest = _largest(shown)
    if not distance <= bounds.atol + bounds.rtol * largest:
        raise AssertionError(
            f"{where}: derivative must match finite differences; got {found!r} and {shown!r} along "
            f"one direction, which differ by up to {distance}"
        )


_hints.install(globals())
_hints.install_missing_names(globals())
