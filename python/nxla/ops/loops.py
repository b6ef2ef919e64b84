"""Loops: while a condition holds, over a range, over the elements of an axis.

In a traced function, loops become part of the program. Outside a trace, where all values are
concrete, they run as Python loops.
"""

from __future__ import annotations

import functools

from nxla import _core, _hints, tree
from nxla._loop_elements import (
    count_steps,
    first_index,
    loop_elements,
    no_rows,
    put_row,
    row_at,
    zero_row,
)
from nxla._loop_types import (
    check_leaves,
    check_step,
    fix_types,
    has_numbers,
    join_axes,
    next_state,
    number_like,
    state_types,
    typed_like,
)
from nxla._values import (
    as_bool,
    as_count,
    as_tensor,
    as_tensors,
    new_tensors,
    require_callable,
    to_index,
)
from nxla.errors import ArgumentError, DTypeError
from nxla.ops.control import _call_traced, _check_scalar, _have_traced_types, _holds
from nxla.ops.create import arange
from nxla.ops.metadata import axis_position
from nxla.ops.movement import moveaxis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias, TypeVar, overload

    from nxla._core import Tensor
    from nxla._types import TensorLike

    S = TypeVar("S")
    T = TypeVar("T")
    C = TypeVar("C")

    #: The replay method of a loop, and the memory limit of the method ``"auto"`` in bytes.
    _Keeps: TypeAlias = tuple[str, int]

_GIB = 1 << 30

#: The replay methods of a gradient.
_METHODS = ("auto", "store", "recompute", "sqrt", "log")


def while_loop(
    cond_fn: Callable[[S], TensorLike],
    body_fn: Callable[[S], S],
    init: S,
    /,
    *,
    max_trips: int | None = None,
    gradient: str = "auto",
    gradient_bytes: int = _GIB,
) -> S:
    """Repeat ``state = body_fn(state)`` while ``cond_fn(state)`` holds.

    Outside a trace, each step runs `body_fn` in Python; `nxla.jit` around the loop compiles it.

    Parameters
    ----------
    cond_fn : callable
        A function from the state to a scalar. If the scalar is vectorized, the loop continues while
        the condition holds for some entry; finished entries keep their state.
    body_fn : callable
        A function from the state to the next state, with the same structure, shapes and dtypes.
    init : tensor or container
        The initial state. Vectorized axes and names that the body adds become part of the state for
        any number of iterations; new vectorized axes follow the axes of the initial state.
    max_trips : int, optional
        The maximum number of iterations. With a maximum, a gradient can store values of each
        iteration; without one, it stores some of the states.
    gradient : {"auto", "store", "recompute", "sqrt", "log"}
        The replay method: the values that a gradient stores, since it runs through the iterations
        backwards. ``"store"`` stores all residuals. ``"recompute"`` stores the state before each
        iteration and computes each iteration twice. ``"sqrt"`` stores the states of one iteration
        in √n, and one segment of states at a time. ``"log"`` stores a few states and computes an
        iteration up to log n times. ``"auto"`` selects the first method (except ``"sqrt"``) that is
        possible and fits into `gradient_bytes`. ``"store"`` and ``"recompute"`` need a number of
        iterations that is known or bounded in the trace.
    gradient_bytes : int
        The limit for the values that ``"auto"`` stores for all iterations, in bytes.

    Returns
    -------
    tensor or container
        The first state for which the condition does not hold, or the state after `max_trips`
        iterations.

    Raises
    ------
    ArgumentError
        If the body returns another structure.
    ShapeError, DTypeError
        If the body returns a leaf of another type, or if the condition is not a scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> @nx.jit
    ... def digits(n):
    ...     return nx.while_loop(lambda s: s[0] > 0, lambda s: (s[0] // 10, s[1] + 1), (n, 0))[1]
    >>> digits(2024).item()
    4
    """
    require_callable("while_loop", "cond_fn", cond_fn)
    require_callable("while_loop", "body_fn", body_fn)
    keeps = _replay("while_loop", gradient, gradient_bytes)
    if max_trips is None:
        return _repeat(cond_fn, body_fn, init, "while_loop", [], keeps)
    most = as_count("while_loop", "max_trips", max_trips)

    def goes_on(state: tuple[Tensor, S]) -> TensorLike:
        return _core.logical_and(_core.less(state[0], most), cond_fn(state[1]))

    def step(state: tuple[Tensor, S]) -> tuple[Tensor, S]:
        return _core.add(state[0], 1), body_fn(state[1])

    start = (_core.tensor(0, _core.s64), init)
    return _repeat(goes_on, step, start, "while_loop", [("[1]", "state")], keeps, most)[1]


def _replay(function: str, gradient: str, gradient_bytes: int) -> _Keeps:
    """Return the options of a gradient, checked also where the loop is not differentiated."""
    if gradient not in _METHODS:
        names = ", ".join(f'"{name}"' for name in _METHODS)
        raise ArgumentError(f"{function}: gradient: must be one of {names}; got {gradient!r}")
    return gradient, as_count(function, "gradient_bytes", gradient_bytes)


def _repeat(
    cond_fn: Callable[[S], TensorLike],
    body_fn: Callable[[S], S],
    init: S,
    function: str,
    roots: list[tuple[str, str]],
    keeps: _Keeps,
    max_trips: int | None = None,
) -> S:
    """Run a loop; errors name the public function and the paths of parts of the state."""
    if _core.is_tracing():
        return _core.while_loop(cond_fn, body_fn, init, function, roots, *keeps, max_trips)
    state: S = new_tensors(init)
    types = state_types(state)
    check_leaves(function, types[0])

    def remaining() -> S:
        last: S = _core.while_loop(cond_fn, body_fn, state, function, roots, *keeps)
        return last

    is_settled = False
    while True:
        answer = cond_fn(state)
        _check_scalar(function, "cond_fn", answer)
        holds = as_tensor(answer)
        if holds.vectorized_axes:
            # Entries can have different numbers of iterations, which needs a program.
            last: S = _call_traced(remaining)
            return last
        if not _holds(function, "cond_fn", holds):
            return state if is_settled else _settle_types(function, state, remaining)
        following = body_fn(state)
        state, before = next_state(function, roots, types, (holds, state, following)), types
        types = state_types(state)
        is_settled = types == before


def _settle_types(function: str, state: S, remaining: Callable[[], S]) -> S:
    """Return the state of a finished loop with the types of the state of a traced loop.

    Further iterations would add vectorized axes and names that the last iteration does not have.
    The trace also checks the body of a loop without iterations.
    """
    leaves = (_core.devectorize(leaf, False) for leaf in tree.leaves(state))
    if _have_traced_types(function, leaves, remaining):
        return state
    settled: S = _core.inlining_all(lambda: _call_traced(remaining))
    return settled


if TYPE_CHECKING:
    # A Python number in the state becomes a tensor, which the last overload accepts.

    @overload
    def fori(
        lower: TensorLike,
        upper: TensorLike,
        body: Callable[[Tensor, Any], Any],
        init: complex,
        /,
        *,
        unroll: bool | int = ...,
        gradient: str = ...,
        gradient_bytes: int = ...,
    ) -> Any: ...

    @overload
    def fori(
        lower: TensorLike,
        upper: TensorLike,
        body: Callable[[Tensor, S], S],
        init: S,
        /,
        *,
        unroll: bool | int = ...,
        gradient: str = ...,
        gradient_bytes: int = ...,
    ) -> S: ...

    @overload
    def fori(
        lower: TensorLike,
        upper: TensorLike,
        body: Callable[[Any, S], S],
        init: S,
        /,
        *,
        unroll: bool | int = ...,
        gradient: str = ...,
        gradient_bytes: int = ...,
    ) -> S: ...


def fori(
    lower: TensorLike,
    upper: TensorLike,
    body: Callable[[Any, Any], Any],
    init: Any,
    /,
    *,
    unroll: bool | int = False,
    gradient: str = "auto",
    gradient_bytes: int = _GIB,
) -> Any:
    """Repeat ``state = body(i, state)`` for ``i`` from `lower` to `upper`, excluding `upper`.

    Outside a trace, each step runs `body` in Python; `nxla.jit` around the loop compiles it.

    Parameters
    ----------
    lower, upper : integer scalar
        The range; the bounds may be traced values. The counter has their promoted dtype.
    body : callable
        A function from the counter, an integer scalar, and the state to the next state.
    init : tensor or container
        The initial state.
    unroll : bool or int
        As for `for_each`; unrolling needs two ints as the range.
    gradient, gradient_bytes
        As for `while_loop`.

    Returns
    -------
    tensor or container
        The final state.

    Raises
    ------
    ArgumentError
        If the body returns another structure.
    ShapeError
        If the body returns a leaf of another shape.
    DTypeError
        If the body returns a leaf of another dtype, or if a bound is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fori(1, 5, lambda i, product: product * i, 1).item()
    24
    """
    require_callable("fori", "body", body)
    keeps = _replay("fori", gradient, gradient_bytes)
    if unroll is not False:
        first, end = to_index(lower), to_index(upper)
        if first is None or end is None:
            raise ArgumentError("fori: unroll: requires ints for lower and upper")
        return _each("fori", range(first, end), body, init, unroll, keeps)
    roots = [("[1]", "state"), ("[0]", "index")]
    return _run_counted("fori", roots, lower, upper, body, init, keeps)


def _run_counted(
    function: str,
    roots: list[tuple[str, str]],
    lower: TensorLike,
    upper: TensorLike,
    body: Callable[[Any, S], S],
    init: S,
    keeps: _Keeps,
) -> S:
    """Repeat a body as `fori` does, with the error messages of a function that calls it."""
    first, end = as_tensors(function, lower, upper)
    for name, bound in (("lower", first), ("upper", end)):
        if bound.dtype.kind not in ("signed", "unsigned"):
            raise DTypeError(f"{function}: {name}: must be an integer; got {bound.dtype}")
    # In a narrower dtype the counter would overflow before it reaches the upper bound.
    first = first.astype(_core.result_type(first, end))

    def step(state: tuple[Tensor, S]) -> tuple[Tensor, S]:
        return _core.add(state[0], 1), body(*state)

    def goes_on(state: tuple[Tensor, S]) -> Tensor:
        return _core.less(state[0], end)

    return _repeat(goes_on, step, (first, init), function, roots, keeps)[1]


if TYPE_CHECKING:

    @overload
    def for_each(
        generator: Any,
        body: Callable[[Any, Any], Any],
        init: complex,
        /,
        *,
        unroll: bool | int = ...,
        gradient: str = ...,
        gradient_bytes: int = ...,
    ) -> Any: ...

    @overload
    def for_each(
        generator: range,
        body: Callable[[Tensor, S], S],
        init: S,
        /,
        *,
        unroll: bool | int = ...,
        gradient: str = ...,
        gradient_bytes: int = ...,
    ) -> S: ...

    @overload
    def for_each(
        generator: T,
        body: Callable[[T, S], S],
        init: S,
        /,
        *,
        unroll: bool | int = ...,
        gradient: str = ...,
        gradient_bytes: int = ...,
    ) -> S: ...

    @overload
    def for_each(
        generator: Any,
        body: Callable[[Any, S], S],
        init: S,
        /,
        *,
        unroll: bool | int = ...,
        gradient: str = ...,
        gradient_bytes: int = ...,
    ) -> S: ...


def for_each(
    generator: Any,
    body: Callable[[Any, Any], Any],
    init: Any,
    /,
    *,
    unroll: bool | int = False,
    gradient: str = "auto",
    gradient_bytes: int = _GIB,
) -> Any:
    """Repeat ``state = body(x, state)`` for each ``x`` of a generator.

    Outside a trace, each step runs `body` in Python; `nxla.jit` around the loop compiles it.

    Parameters
    ----------
    generator : range, tensor or container
        A range of integers with any step, or tensors, whose first axes have the same size.
    body : callable
        A function from the element and the state to the next state.
    init : tensor or container
        The initial state.
    unroll : bool or int
        The number of steps in each iteration of the program's loop. With an int, remaining steps
        follow the loop. With True there is no loop, the elements of a range are ints, and a Python
        number in the state takes the dtype that the body returns. With False the body is traced
        once.
    gradient, gradient_bytes
        As for `while_loop`.

    Returns
    -------
    tensor or container
        The final state.

    Raises
    ------
    ArgumentError
        If the generator has another type, if first axes differ, or if the body returns another
        structure.
    ShapeError, DTypeError
        If the body returns a leaf of another type.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.for_each(range(5, 0, -2), lambda i, total: total * 10 + i, 0).item()
    531
    >>> f = nx.jit(lambda xs: nx.for_each(xs, lambda x, total: total + x, 0.0, unroll=2))
    >>> f(nx.tensor([1.0, 2.0, 3.0])).item()
    6.0
    """
    require_callable("for_each", "body", body)
    keeps = _replay("for_each", gradient, gradient_bytes)
    return _each("for_each", generator, body, init, unroll, keeps)


def _each(
    function: str,
    generator: Any,
    body: Callable[[Any, S], S],
    init: S,
    unroll: bool | int,
    keeps: _Keeps,
) -> S:
    """Run a body for each element, with the error messages of a function that calls it."""
    count, element = loop_elements(generator)
    copies = _copies(function, unroll, count)

    def step(index: Any, state: S) -> S:
        # Only a loop of the program orders the axes of its state.
        return join_axes(function, state, body(element(index), state))

    zero = first_index(count)

    def index_of(trip: int) -> Any:
        # Only a fully unrolled loop has Python numbers as indices.
        return trip if unroll is True else _core.add(zero, trip)

    if copies == count and unroll is not False:
        if count == 0 and has_numbers(init):
            return _typed_by_body(body, element, init)
        init = fix_types(init)
        for trip in range(count):
            init = step(index_of(trip), init)
        state: S = new_tensors(init)
        return state

    def steps(trip: Tensor, state: S) -> S:
        first = trip if copies == 1 else _core.multiply(trip, copies)
        for ahead in range(copies):
            state = step(_core.add(first, ahead) if ahead else first, state)
        return state

    trips = count // copies
    roots = [("[1]", "state"), ("[0]", "index")]
    state = _run_counted(function, roots, zero, trips, steps, init, keeps)
    for trip in range(trips * copies, count):
        state = new_tensors(step(index_of(trip), state))
    return state


def _typed_by_body(body: Callable[[Any, S], S], element: Callable[[Any], Any], init: S) -> S:
    """Return the initial state with the types that Python scalars have after an iteration."""
    if not _core.is_tracing():
        traced: S = _call_traced(functools.partial(_typed_by_body, body, element, init))
        return traced
    following = _core.without_effects(lambda: body(element(0), init))
    typed: S = tree.map(lambda x, later: as_tensor(number_like(x, later)), init, following)
    return typed


def _copies(function: str, unroll: bool | int, count: int) -> int:
    """Return the number of steps in each iteration; the total number if the loop is unrolled."""
    if isinstance(unroll, bool):
        return count if unroll else 1
    steps = to_index(unroll)
    if steps is None or steps < 1:
        raise ArgumentError(f"{function}: unroll: must be a bool or at least 1; got {unroll!r}")
    return min(steps, count)


def map(
    f: Callable[..., Any], xs: Any, /, *more: Any, axis: int | None = 0, unroll: bool | int = False
) -> Any:
    """Apply a function to each element of an axis, or to each scalar.

    Outside a trace, each step along an axis runs `f` in Python; `nxla.jit` compiles a loop.

    Parameters
    ----------
    f : callable
        A function from one element of each argument to a tensor or a container.
    xs, *more : tensor or container
        Tensors that have the same size along the mapped axis.
    axis : int, optional
        The mapped axis. With None, the function receives all scalars of the tensors, which must
        have the same shape, and computes them in parallel.
    unroll : bool or int
        As for `for_each`; it has no effect on scalars.

    Returns
    -------
    tensor or container
        The results, stacked along a new first axis. For scalars, the axes of the arguments followed
        by the axes of the function's result.

    Raises
    ------
    ArgumentError
        If the mapped axes differ, or the shapes differ for scalars.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.map(lambda x: x * nx.sum(x), nx.tensor([[1, 2], [3, 4]])).tolist()
    [[3, 6], [21, 28]]
    >>> nx.map(lambda x: nx.where(x > 2, x, 0), nx.tensor([[1, 2], [3, 4]]), axis=None).tolist()
    [[0, 0], [3, 4]]
    """
    require_callable("map", "f", f)
    if axis is None:
        return _over_numbers(f, (xs, *more))
    if axis != 0:

        def to_front(leaf: TensorLike) -> Tensor:
            x = as_tensor(leaf)
            return moveaxis(x, axis_position("map", x, axis), 0)

        xs, *more = tree.map(to_front, (xs, *more))
    if not tree.leaves((xs, *more)):
        raise ArgumentError("map: xs: must contain a tensor")
    steps = _Steps("map", lambda _, x: ((), f(*x)), (xs, *more), part="result")
    return steps.run((), unroll)[1]


def _over_numbers(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Apply a function to the scalars of tensors with one shape."""
    leaves, structure = tree.flatten(args)
    tensors = [as_tensor(leaf) for leaf in leaves]
    shapes = {tuple(leaf.shape) for leaf in tensors}
    if len(shapes) != 1:
        shown = ", ".join(str(list(leaf.shape)) for leaf in tensors) or "no tensor"
        raise ArgumentError(
            f"map: xs: tensors must have the same shape if axis is None; got {shown}"
        )
    (shape,) = shapes
    from nxla.vectors import vmap

    flat = structure.unflatten([_core.reshape(leaf, (leaf.size,)) for leaf in tensors])
    results = vmap(f)(*flat)
    return tree.map(lambda y: _core.reshape(y, (*shape, *y.shape[1:])), results)


def scan(
    f: Callable[[C, Any], tuple[C, Any]],
    init: C,
    xs: Any = None,
    /,
    *,
    length: int | None = None,
    reverse: bool = False,
    unroll: bool | int = False,
    gradient: str = "auto",
    gradient_bytes: int = _GIB,
) -> tuple[C, Any]:
    """Apply a function with a state to each element of the first axis, and collect the results.

    Outside a trace, each step runs `f` in Python; `nxla.jit` around the loop compiles it.

    Parameters
    ----------
    f : callable
        A function from ``(carry, x)`` to ``(carry, y)``. The new carry has the structure, shapes
        and dtypes of the old carry.
    init : tensor or container
        The initial carry.
    xs : range, tensor or container, optional
        The elements: tensors whose first axes have the same size.
    length : int, optional
        The number of steps; required if `xs` is omitted.
    reverse : bool
        If True, start with the last element. Each result keeps the index of its element.
    unroll : bool or int
        As for `for_each`.
    gradient, gradient_bytes
        As for `while_loop`.

    Returns
    -------
    carry : tensor or container
        The final carry.
    ys : tensor or container
        The results, stacked along a new first axis.

    Raises
    ------
    ArgumentError
        If the number of steps is unknown or ambiguous, or if the new carry has another structure.
    ShapeError, DTypeError
        If a leaf of the new carry has another type.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.jit(lambda xs: nx.scan(lambda total, x: (total + x, total * 10), 0, xs))
    >>> [part.tolist() for part in f(nx.tensor([1, 2, 3]))]
    [6, [0, 10, 30]]
    """
    require_callable("scan", "f", f)
    keeps = _replay("scan", gradient, gradient_bytes)
    reverse = as_bool("scan", "reverse", reverse)
    return _Steps("scan", f, xs, length, reverse).run(init, unroll, keeps)


class _Steps:
    """The steps of a scan, with the error messages of a function that calls it."""

    def __init__(
        self,
        function: str,
        f: Callable[[Any, Any], Any],
        xs: Any,
        length: int | None = None,
        reverse: bool = False,
        part: str = "y",
    ) -> None:
        if isinstance(xs, range):
            xs = arange(xs.start, xs.stop, xs.step)
        leaves, self.structure = tree.flatten(xs)
        self.leaves = [as_tensor(x) for x in leaves]
        self.function = function
        #: The name of the stacked value in errors.
        self.part = part
        self.f = f
        self.count = count_steps(function, self.leaves, length)
        self.reverse = reverse

    def run(self, init: C, unroll: bool | int, keeps: _Keeps = ("auto", _GIB)) -> tuple[C, Any]:
        """Return the final carry and the stacked results."""
        copies = _copies(self.function, unroll, self.count)
        init = fix_types(init)
        check_leaves(self.function, tree.flatten((0, init))[1])
        if not self.count:
            return self.run_empty(init)
        if copies == self.count or not _core.is_tracing():
            return self.run_unrolled(init)
        init = self.type_carry(init, lambda: self.step(init, 0, first=True))
        return self.run_loop(init, copies, keeps)

    def step(self, carry: C, index: Any, *, first: bool = False) -> tuple[C, Any]:
        """Return the results of a step: the next carry, and ``y``."""
        place = self.count - 1 - index if self.reverse else index
        return self.call(carry, [row_at(x, place) for x in self.leaves], first=first)

    def call(self, carry: C, rows: list[Tensor], *, first: bool) -> tuple[C, Any]:
        """Return the results of `f`, whose structure and types are checked."""
        try:
            answer = self.f(carry, self.structure.unflatten(rows))
        except (ArithmeticError, AttributeError, TypeError):
            # In a first step, `f` may need a method of tensors, or divide by the number zero.
            if not has_numbers(carry):
                raise
            answer = self.f(new_tensors(carry), self.structure.unflatten(rows))
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ArgumentError("scan: f: must return (carry, y)")
        check_step(self.function, "carry", carry, answer[0], first=first)
        check_leaves(self.function, tree.flatten(answer[1])[1])
        return join_axes(self.function, carry, answer[0]), answer[1]

    def run_empty(self, init: C) -> tuple[C, Any]:
        """Return the result of a scan without steps; only the types of the results matter."""
        if not _core.is_tracing():
            return _call_traced(functools.partial(self.run_empty, init))  # type: ignore[no-any-return]
        rows = [zero_row(x) for x in self.leaves]
        init = self.type_carry(init, lambda: self.call(init, rows, first=True))
        carry, y = self.settle(init, lambda carry: self.call(carry, rows, first=False))
        return carry, tree.map(no_rows, y)

    def settle(self, carry: C, step: Callable[[C], tuple[C, Any]]) -> tuple[C, Any]:
        """Return a carry with the vectorized axes and names that further steps add, and ``y``.

        Only the types of ``y`` matter.
        """
        if not _core.is_tracing():
            settled: tuple[C, Any] = _core.inlining_all(
                lambda: _call_traced(functools.partial(self.settle, carry, step))
            )
            return settled
        # A loop without iterations adds them.
        carry = _core.while_loop(
            lambda _: False, lambda carry: step(carry)[0], carry, self.function, [("", "carry")]
        )
        return carry, tree.map(as_tensor, _core.without_effects(lambda: step(carry))[1])

    def type_carry(self, init: C, first_step: Callable[[], tuple[C, Any]]) -> C:
        """Return the initial carry with the types that it has after a step.

        Only scalars have no fixed type; the first step is tried for them.
        """
        if not has_numbers(init):
            return tree.map(as_tensor, init)  # type: ignore[no-any-return]
        carry, _ = _core.without_effects(first_step)
        return typed_like(init, carry)

    def run_unrolled(self, init: C) -> tuple[C, Any]:
        """Run the steps in a Python loop."""
        carry, y = self.step(init, 0, first=True)
        typed = typed_like(init, carry)
        if self.count == 1 and has_numbers(y):
            y = tree.map(number_like, y, self.trace_y(typed))
        # The next step may change the tensors of the carry, which may be results as well.
        ys, before = [fix_types(y)], typed
        for index in range(1, self.count):
            before = new_tensors(carry)
            carry, y = self.step(before, index)
            y = fix_types(y)
            if index == 1:
                # A scalar that the first step returns unchanged adopts the type of the later carry.
                check_step(self.function, self.part, ys[0], y, first=True)
                ys[0] = tree.map(number_like, ys[0], y)
            check_step(self.function, self.part, ys[0], y)
            ys.append(y)
        carry = new_tensors(carry)
        if state_types(carry) == state_types(before):
            return carry, self.stack_rows([join_axes(self.function, y, each) for each in ys])
        carry, y = self.settle(carry, lambda carry: self.step(carry, self.count - 1))
        rows = self.stack_rows([join_axes(self.function, y, each) for each in ys])
        return carry, tree.map(lambda x, y: _core.rename(x, [None, *y.names]), rows, y)

    def trace_y(self, carry: C) -> Any:
        """Return zeros with the types of ``y`` of a step with this carry."""
        if not _core.is_tracing():
            return _call_traced(functools.partial(self.trace_y, carry))
        _, y = _core.without_effects(lambda: self.step(carry, 0, first=True))
        return tree.map(lambda y: _core.full(y.shape, 0, y.dtype), tree.map(as_tensor, y))

    def stack_rows(self, ys: list[Any]) -> Any:
        """Return the results of consecutive steps as rows, in the order of the elements."""
        ordered = ys[::-1] if self.reverse else ys
        return tree.map(lambda *parts: _core.stack([as_tensor(y) for y in parts]), *ordered)

    def run_loop(self, start: C, copies: int, keeps: _Keeps) -> tuple[C, Any]:
        """Return the results of a program loop with several steps in each iteration."""
        trips, rest = divmod(self.count, copies)
        models: list[Any] = []

        def goes_on(state: tuple[Tensor, C]) -> Tensor:
            return _core.less(state[0], trips)

        def body(state: tuple[Tensor, C]) -> tuple[tuple[Tensor, C], Tensor, Any]:
            trip, carry = state
            at = trip if copies == 1 else _core.multiply(trip, copies)
            ys: list[Any] = []
            for ahead in range(copies):
                carry, y = self.step(carry, _core.add(at, ahead) if ahead else at)
                ys.append(y)
                check_step(self.function, self.part, ys[0], y)
            models.append(ys[0])
            place = _core.subtract(self.count - copies, at) if self.reverse else at
            return (_core.add(trip, 1), carry), place, self.stack_rows(ys)

        roots = [("[1]", "carry"), ("[0]", "index")]
        initial = (first_index(self.count), start)
        (_, carry), rows = _core.scan_loop(
            goes_on, body, initial, self.count, self.function, roots, *keeps
        )
        for index in range(self.count - rest, self.count):
            carry, y = self.step(carry, index)
            check_step(self.function, self.part, models[-1], y)
            place = self.count - 1 - index if self.reverse else index
            rows = tree.map(functools.partial(put_row, place), rows, y)
        return carry, rows


_hints.install(globals())
