"""Learning-rate schedules: functions from the number of steps to a rate."""

from __future__ import annotations

import math

from nxla import _core, _hints
from nxla._values import as_list, as_number, as_tensor
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


def _check_positive(name: str, argument: str, value: float) -> None:
    if as_number(name, argument, value) <= 0:
        raise ArgumentError(f"{name}: {argument}: must be positive; got {value}")


def _check_not_negative(name: str, argument: str, value: float) -> None:
    """Raise an error for a negative number; the values of tensors are not read."""
    value = as_number(name, argument, value)
    if isinstance(value, int | float) and not value >= 0:  # which rejects NaN too
        raise ArgumentError(f"{name}: {argument}: must not be negative; got {value}")


def _check_decay(name: str, argument: str, value: float) -> None:
    """Raise an error for a factor outside of [0, 1]; the values of tensors are not read."""
    value = as_number(name, argument, value)
    if isinstance(value, int | float) and not 0 <= value <= 1:
        raise ArgumentError(f"{name}: {argument}: must be at least 0 and at most 1; got {value}")


def _check_mean_decays(name: str, b1: float, b2: float) -> None:
    """Raise an error for factors of running means that are not in [0, 1)."""
    for argument, decay in (("b1", b1), ("b2", b2)):
        value = as_number(name, argument, decay)
        if isinstance(value, int | float) and not 0 <= value < 1:
            raise ArgumentError(
                f"{name}: {argument}: must be at least 0 and less than 1; got {value}"
            )


def constant_schedule(value: float) -> Schedule:
    """Return a constant schedule.

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
    """Return a schedule that changes linearly from one value to another.

    Parameters
    ----------
    init_value, end_value : float
        The initial and the final value.
    transition_steps : int
        The number of steps of the transition. With 0, the final value applies from the start.
    transition_begin : int
        The number of steps before the transition.

    Returns
    -------
    callable
        The schedule: a function from the number of previous steps to the value, a scalar
        ``float32``.

    Raises
    ------
    ArgumentError
        If the number of steps is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> rate = nx.optim.linear_schedule(1.0, 0.0, 4)
    >>> [rate(step).item() for step in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    _check_not_negative("linear_schedule", "transition_steps", transition_steps)

    def schedule(count: TensorLike) -> Tensor:
        passed = _core.subtract(_float(count), float(transition_begin))
        if transition_steps == 0:
            share = _core.astype(_core.greater_equal(passed, 0.0), _core.f32)
        else:
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
    """Return a schedule that decays exponentially.

    Parameters
    ----------
    init_value : float
        The initial value.
    transition_steps : int
        The number of steps in which the value is multiplied by `decay_rate` once.
    decay_rate : float
        The factor.
    transition_begin : int
        The number of steps before the first change.
    staircase : bool
        If True, multiply after every `transition_steps` steps instead of continuously.
    end_value : float, optional
        The bound at which the value stays.

    Returns
    -------
    callable
        The schedule, see `linear_schedule`.

    Raises
    ------
    ArgumentError
        If `transition_steps` or `decay_rate` is not positive.

    Examples
    --------
    >>> import nxla as nx
    >>> rate = nx.optim.exponential_decay(1.0, 2, 0.25)
    >>> [rate(step).item() for step in (0, 1, 2)]
    [1.0, 0.5, 0.25]
    """
    _check_positive("exponential_decay", "transition_steps", transition_steps)
    _check_positive("exponential_decay", "decay_rate", decay_rate)

    def schedule(count: TensorLike) -> Tensor:
        passed = _core.subtract(_float(count), float(transition_begin))
        times = _core.divide(_core.maximum(passed, 0.0), float(transition_steps))
        if staircase:
            times = _core.floor(times)
        value = _core.multiply(_core.exp(_core.multiply(times, math.log(decay_rate))), init_value)
        if end_value is None:
            return value
        # `end_value` is a lower bound for a factor below 1, and an upper bound above 1.
        return (_core.maximum if decay_rate < 1.0 else _core.minimum)(value, end_value)

    return schedule


def cosine_decay_schedule(
    init_value: float, decay_steps: int, alpha: float = 0.0, exponent: float = 1.0
) -> Schedule:
    """Return a schedule that decays as half a cosine wave.

    I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts" (2016).

    Parameters
    ----------
    init_value : float
        The initial value.
    decay_steps : int
        The number of steps.
    alpha : float
        The final value, as a fraction of the initial value.
    exponent : float
        The exponent of the cosine factor.

    Returns
    -------
    callable
        The schedule, see `linear_schedule`.

    Raises
    ------
    ArgumentError
        If the number of steps is not positive.

    Examples
    --------
    >>> import nxla as nx
    >>> rate = nx.optim.cosine_decay_schedule(1.0, 10, alpha=0.5)
    >>> [round(rate(step).item(), 4) for step in (0, 5, 10, 11)]
    [1.0, 0.75, 0.5, 0.5]
    """
    _check_positive("cosine_decay_schedule", "decay_steps", decay_steps)

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
    """Return a schedule that applies several schedules one after another.

    Parameters
    ----------
    schedules : sequence of callable
        Schedules. Each schedule counts steps from the step at which it starts.
    boundaries : sequence of int
        The step at which each schedule after the first starts.

    Returns
    -------
    callable
        The schedule, see `linear_schedule`.

    Raises
    ------
    ArgumentError
        If the number of boundaries is not the number of schedules minus 1.

    Examples
    --------
    >>> import nxla as nx
    >>> parts = [nx.optim.constant_schedule(1.0), nx.optim.linear_schedule(0.5, 0.0, 2)]
    >>> rate = nx.optim.join_schedules(parts, [3])
    >>> [rate(step).item() for step in (2, 3, 4)]
    [1.0, 0.5, 0.25]
    """
    schedules = as_list("join_schedules", "schedules", schedules)
    boundaries = as_list("join_schedules", "boundaries", boundaries)
    if len(boundaries) != len(schedules) - 1:
        raise ArgumentError(
            f"join_schedules: boundaries: must be {len(schedules) - 1} for {len(schedules)} "
            f"schedules; got {len(boundaries)}"
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
    """Return a schedule with a linear warm-up and a cosine decay.

    Parameters
    ----------
    init_value, peak_value, end_value : float
        The initial value, the maximum and the final value.
    warmup_steps : int
        The number of steps of the warm-up. With 0, the schedule starts at the maximum.
    decay_steps : int
        The total number of steps.
    exponent : float
        The exponent of the cosine factor.

    Returns
    -------
    callable
        The schedule, see `linear_schedule`.

    Raises
    ------
    ArgumentError
        If the number of steps of the warm-up is negative, or the decay has no steps.

    Examples
    --------
    >>> import nxla as nx
    >>> rate = nx.optim.warmup_cosine_decay_schedule(0.0, 1.0, 4, 8)
    >>> [round(rate(step).item(), 4) for step in (0, 2, 4, 6, 8)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    _check_not_negative("warmup_cosine_decay_schedule", "warmup_steps", warmup_steps)
    decay_steps = as_number("warmup_cosine_decay_schedule", "decay_steps", decay_steps)
    _check_positive(
        "warmup_cosine_decay_schedule", "decay_steps - warmup_steps", decay_steps - warmup_steps
    )
    alpha = end_value / peak_value if peak_value else 0.0
    down = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps), down], [warmup_steps]
    )


def piecewise_constant_schedule(
    init_value: float, boundaries_and_scales: Mapping[int, float] | None = None
) -> Schedule:
    """Return a schedule that is multiplied by a factor at certain steps.

    Parameters
    ----------
    init_value : float
        The initial value.
    boundaries_and_scales : mapping of int to float, optional
        The factors, keyed by the step from which they apply.

    Returns
    -------
    callable
        The schedule, see `linear_schedule`.

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
    factors = boundaries_and_scales or {}
    if not hasattr(factors, "items"):
        raise ArgumentError(
            "piecewise_constant_schedule: boundaries_and_scales: must be a dict; got a "
            f"{type(factors).__name__}"
        )
    steps = sorted(factors.items())
    for _, factor in steps:
        if factor < 0:
            raise ArgumentError(
                "piecewise_constant_schedule: boundaries_and_scales: factors must not be "
                f"negative; got {factor}"
            )

    def schedule(count: TensorLike) -> Tensor:
        count = _float(count)
        value = constant_schedule(init_value)(count)
        for boundary, factor in steps:
            value = _core.where(_core.less(count, float(boundary)), value, value * factor)
        return value

    return schedule


_hints.install(globals())
