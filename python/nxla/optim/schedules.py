"""Rates that depend on the number of steps taken."""

from __future__ import annotations

import math

from nxla import _core
from nxla._values import as_tensor
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from nxla._core import Tensor
    from nxla._types import TensorLike

    #: A function from a number of steps to a number.
    Schedule: TypeAlias = Callable[[TensorLike], Tensor]


def _float(count: TensorLike) -> Tensor:
    """Return a number of steps as a float."""
    return _core.astype(as_tensor(count), "f32")


def _check(name: str, argument: str, value: float) -> None:
    if value <= 0:
        raise ArgumentError(f"{name}: {argument} must be positive, got {value}")


def constant_schedule(value: float) -> Schedule:
    """Return a schedule that is the same number always.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.optim.constant_schedule(0.5)(10).item()
    0.5
    """
    return lambda count: _core.add(_core.multiply(_float(count), 0.0), value)


def linear_schedule(
    init_value: float, end_value: float, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """Return a schedule that goes from one number to another in a line.

    Parameters
    ----------
    init_value, end_value : float
        The numbers before and after.
    transition_steps : int
        How many steps it takes.
    transition_begin : int
        How many steps come before them.

    Raises
    ------
    ArgumentError
        If there are no steps.

    Examples
    --------
    >>> import nxla as nx
    >>> rate = nx.optim.linear_schedule(1.0, 0.0, 4)
    >>> [rate(step).item() for step in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    _check("linear_schedule", "transition_steps", transition_steps)

    def schedule(count: TensorLike) -> Tensor:
        passed = _core.subtract(_float(count), float(transition_begin))
        share = _core.clip(_core.divide(passed, float(transition_steps)), 0.0, 1.0)
        return _core.add(_core.multiply(share, end_value - init_value), init_value)

    return schedule


def exponential_decay(
    init_value: float,
    transition_steps: int,
    decay_rate: float,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: float | None = None,
) -> Schedule:
    """Return a schedule that is multiplied with a factor again and again.

    Parameters
    ----------
    init_value : float
        The number at first.
    transition_steps : int
        In how many steps it is multiplied once.
    decay_rate : float
        The factor.
    transition_begin : int
        How many steps come before.
    staircase : bool
        Whether it is multiplied all at once, or evenly over the steps.
    end_value : float, optional
        Where it stays once it gets there.

    Raises
    ------
    ArgumentError
        If there are no steps, or the factor is not positive.

    Examples
    --------
    >>> import nxla as nx
    >>> rate = nx.optim.exponential_decay(1.0, 2, 0.25)
    >>> [rate(step).item() for step in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """
    _check("exponential_decay", "transition_steps", transition_steps)
    _check("exponential_decay", "decay_rate", decay_rate)

    def schedule(count: TensorLike) -> Tensor:
        passed = _core.subtract(_float(count), float(transition_begin))
        times = _core.divide(_core.maximum(passed, 0.0), float(transition_steps))
        if staircase:
            times = _core.floor(times)
        value = _core.multiply(_core.exp(_core.multiply(times, math.log(decay_rate))), init_value)
        if end_value is None:
            return value
        # It goes down to its end with a factor below 1, and up to it with one above.
        return (_core.maximum if decay_rate < 1.0 else _core.minimum)(value, end_value)

    return schedule


def cosine_decay_schedule(
    init_value: float, decay_steps: int, alpha: float = 0.0, exponent: float = 1.0
) -> Schedule:
    """Return a schedule that goes down as half a wave.

    I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts" (2016).

    Parameters
    ----------
    init_value : float
        The number at first.
    decay_steps : int
        How many steps it takes.
    alpha : float
        The last number, as a share of the first.
    exponent : float
        The power that the wave is raised to.

    Raises
    ------
    ArgumentError
        If there are no steps.

    Examples
    --------
    >>> import nxla as nx
    >>> rate = nx.optim.cosine_decay_schedule(1.0, 10, alpha=0.5)
    >>> [round(rate(step).item(), 4) for step in (0, 5, 10, 11)]
    [1.0, 0.75, 0.5, 0.5]
    """
    _check("cosine_decay_schedule", "decay_steps", decay_steps)

    def schedule(count: TensorLike) -> Tensor:
        share = _core.divide(_core.minimum(_float(count), float(decay_steps)), float(decay_steps))
        wave = _core.cos(_core.multiply(share, math.pi))
        wave = _core.multiply(_core.add(wave, 1.0), 0.5)
        if exponent != 1.0:
            wave = _core.pow(wave, exponent)
        value = _core.add(_core.multiply(wave, 1.0 - alpha), alpha)
        return _core.multiply(value, init_value)

    return schedule


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Return a schedule that goes by several, one after another.

    Parameters
    ----------
    schedules : sequence of callable
        Each counts steps from where it begins.
    boundaries : sequence of int
        At which steps all but the first begin.

    Raises
    ------
    ArgumentError
        If there is not one boundary between every two.

    Examples
    --------
    >>> import nxla as nx
    >>> parts = [nx.optim.constant_schedule(1.0), nx.optim.linear_schedule(0.5, 0.0, 2)]
    >>> rate = nx.optim.join_schedules(parts, [3])
    >>> [rate(step).item() for step in (2, 3, 4)]
    [1.0, 0.5, 0.25]
    """
    if len(boundaries) != len(schedules) - 1:
        raise ArgumentError(
            f"join_schedules: {len(schedules)} schedules have {len(schedules) - 1} boundaries "
            f"between them, got {len(boundaries)}"
        )

    def schedule(count: TensorLike) -> Tensor:
        count = as_tensor(count)
        value = schedules[0](count)
        for boundary, following in zip(boundaries, schedules[1:], strict=True):
            later = following(_core.subtract(count, boundary))
            value = _core.where(_core.less(count, boundary), value, later)
        return value

    return schedule


def warmup_cosine_decay_schedule(
    init_value: float,
    peak_value: float,
    warmup_steps: int,
    decay_steps: int,
    end_value: float = 0.0,
    exponent: float = 1.0,
) -> Schedule:
    """Return a schedule that goes up in a line, and down as half a wave.

    Parameters
    ----------
    init_value, peak_value, end_value : float
        The numbers at first, at the top and at last.
    warmup_steps : int
        How many steps it goes up.
    decay_steps : int
        How many steps it takes in all.
    exponent : float
        The power that the wave is raised to.

    Raises
    ------
    ArgumentError
        If there are no steps to go up, or none to go down.

    Examples
    --------
    >>> import nxla as nx
    >>> rate = nx.optim.warmup_cosine_decay_schedule(0.0, 1.0, 4, 8)
    >>> [round(rate(step).item(), 4) for step in (0, 2, 4, 6, 8)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    _check("warmup_cosine_decay_schedule", "warmup_steps", warmup_steps)
    _check("warmup_cosine_decay_schedule", "decay_steps - warmup_steps", decay_steps - warmup_steps)
    alpha = end_value / peak_value if peak_value else 0.0
    down = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps), down], [warmup_steps]
    )


def piecewise_constant_schedule(
    init_value: float, boundaries_and_scales: Mapping[int, float] | None = None
) -> Schedule:
    """Return a schedule that is multiplied with a factor at certain steps.

    Parameters
    ----------
    init_value : float
        The number at first.
    boundaries_and_scales : mapping of int to float, optional
        The factors, by the steps from which on they apply.

    Raises
    ------
    ArgumentError
        If a factor is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> rate = nx.optim.piecewise_constant_schedule(1.0, {2: 0.5, 4: 0.5})
    >>> [rate(step).item() for step in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    steps = sorted((boundaries_and_scales or {}).items())
    for _, factor in steps:
        if factor < 0:
            raise ArgumentError(f"piecewise_constant_schedule: a factor is negative: {factor}")

    def schedule(count: TensorLike) -> Tensor:
        count = _float(count)
        value = constant_schedule(init_value)(count)
        for boundary, factor in steps:
            value = _core.where(_core.less(count, float(boundary)), value, value * factor)
        return value

    return schedule
