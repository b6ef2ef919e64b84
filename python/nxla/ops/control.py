"""Branches, loops, and looks at values while a program runs.

In a traced function these become part of the program. Outside of one, where all values are known,
they run as the Python code that they stand for.
"""

from __future__ import annotations

import functools

from nxla import _core, tree
from nxla._values import as_tensor
from nxla.errors import ArgumentError, DTypeError, ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias, TypeVar

    from nxla._core import Template, Tensor
    from nxla._types import TensorLike

    S = TypeVar("S")
    C = TypeVar("C")

    #: What the derivative of a loop keeps: a method, and how many bytes where that leaves it open.
    _Keeps: TypeAlias = tuple[str, int]

_GIB = 1 << 30


def cond(
    pred: TensorLike | Sequence[tuple[TensorLike, Callable[[], Any]]],
    true_fn: Callable[..., Any] | None = None,
    false_fn: Callable[..., Any] | None = None,
    /,
    *operands: Any,
    otherwise: Callable[[], Any] | None = None,
) -> Any:
    """Run one of several functions.

    ``cond(pred, true_fn, false_fn, *operands)`` chooses between two;
    ``cond([(pred, fn), …], otherwise=fn)`` takes the first whose predicate holds.

    Only the chosen branch is computed. Branches may use any value at hand. Branches that a constant
    predicate rules out are not even traced.

    Parameters
    ----------
    pred : scalar, or sequence of (scalar, callable)
        Holds if it is not zero. If it is vectorized, each entry gets the results of its own
        branch, and a branch that any entry takes is computed for all.
    true_fn, false_fn : callable
        Take the operands.
    *operands
        Tensors, or containers of them.
    otherwise : callable
        What runs if no predicate holds; takes nothing, as do the functions next to predicates.

    Returns
    -------
    tensor or container
        What the branch gives. All branches give the same structure; dtypes promote and shapes
        broadcast to common ones.

    Raises
    ------
    ShapeError
        If a predicate is no scalar, or results do not broadcast.
    ArgumentError
        If branches give different structures.

    Examples
    --------
    >>> import nxla as nx
    >>> @nx.jit
    ... def root(x):
    ...     return nx.cond(x > 0, nx.sqrt, nx.zeros_like, x)
    >>> root(4.0).item(), root(-4.0).item()
    (2.0, 0.0)
    >>> nx.cond([(False, lambda: 1), (True, lambda: 2)], otherwise=lambda: 3).item()
    2
    """
    clauses: list[tuple[TensorLike, Callable[[], Any]]]
    if otherwise is None:
        if true_fn is None or false_fn is None:
            raise ArgumentError(
                "cond: give (pred, true_fn, false_fn, *operands), or clauses and otherwise="
            )
        clauses = [(pred, lambda: true_fn(*operands))]
        otherwise = lambda: false_fn(*operands)  # noqa: E731
    elif true_fn is not None:
        raise ArgumentError("cond: otherwise= goes with clauses, [(pred, fn), …]")
    else:
        clauses = [_clause(clause) for clause in pred]  # type: ignore[union-attr]
    if _core.is_tracing():
        return _core.cond(clauses, otherwise)
    if any(as_tensor(predicate).vectorized_axes for predicate, _ in clauses):
        # Entries take different branches, for which there is no Python code that would do.
        return _traced(lambda: _core.cond(clauses, otherwise))
    for predicate, branch in clauses:
        if _holds(predicate):
            return _tensors(branch())
    return _tensors(otherwise())


def _clause(clause: Any) -> tuple[TensorLike, Callable[[], Any]]:
    if not isinstance(clause, tuple | list) or len(clause) != 2 or not callable(clause[1]):
        raise ArgumentError(f"cond: a clause is a pair (pred, function), got {clause!r}")
    return clause[0], clause[1]


def _holds(predicate: TensorLike) -> bool:
    """Tell whether a predicate that is known holds, by the rules for one that is traced."""
    tensor = predicate if isinstance(predicate, _core.Tensor) else _core.tensor(predicate)
    if tensor.ndim:
        raise _core.ShapeError(
            f"cond: predicate has shape {tensor.shape}, expected a scalar; "
            "reduce it with all or any"
        )
    return bool(tensor)


def _traced(function: Callable[[], Any]) -> Any:
    """Call a function traced, with the tensors that it mentions."""
    from nxla.transform import make_function

    return make_function(function)()


def _tensors(value: Any) -> Any:
    """Make tensors of the numbers and arrays in a result, as a trace would."""
    return tree.map(
        lambda leaf: leaf if isinstance(leaf, _core.Tensor) else _core.tensor(leaf), value
    )


def if_(
    pred: TensorLike, then: Callable[[], Any], otherwise: Callable[[], Any] | None = None, /
) -> Any:
    """Run a function if a predicate holds, else another one; by default the result is zero then.

    It is `cond` without operands.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.jit(lambda x: nx.if_(x > 1, lambda: x * 10))
    >>> f(2).item(), f(1).item()
    (20, 0)
    """
    if otherwise is not None:
        return cond(pred, then, otherwise)
    results: list[Any] = []

    def remembered() -> Any:
        results.append(then())
        return results[0]

    def zeros() -> Any:
        # Zeros like the result of the other branch, which is traced first.
        return tree.map(_zero_like, results[0]) if results else 0

    return cond(pred, remembered, zeros)


def _zero_like(leaf: Any) -> Tensor:
    leaf = as_tensor(leaf)
    zero = _core.full(leaf.shape, 0, leaf.dtype, leaf.names)
    return _core.align_vectors([zero, leaf], False, True)[0] if leaf.vectorized_axes else zero


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

    Parameters
    ----------
    cond_fn : callable
        Takes the state and gives a scalar. If that is vectorized, the loop goes on while some
        entry does; those that are done keep their state.
    body_fn : callable
        Takes the state and gives the next one, of the same structure, shapes and dtypes.
    init : tensor or container
        The state at the start.
    max_trips : int, optional
        After so many trips the loop ends, whatever the condition says. A gradient can store what
        it needs of each trip then; of a loop whose trips nobody knows it keeps some states.
    gradient : {"auto", "store", "recompute", "sqrt", "log"}
        What a gradient, which goes through the trips backwards, keeps of them. ``"store"``: all
        that it has to know. ``"recompute"``: the states before the trips, which are computed once
        more. ``"sqrt"``: the states before one trip in √n, and at a time those between two of them.
        ``"log"``: a few states, from which the others are computed up to log n times. ``"auto"``:
        the first of these (but ``"sqrt"``) that is possible and fits into `gradient_bytes`. To
        store, or to keep all states, the number of trips must be known while tracing, or bounded.
    gradient_bytes : int
        How many bytes ``"auto"`` may keep of all trips together.

    Returns
    -------
    tensor or container
        The first state for which the condition does not hold.

    Raises
    ------
    ArgumentError
        If the body gives another structure.
    ShapeError, DTypeError
        If the body gives a leaf of another type; if the condition is no scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> @nx.jit
    ... def digits(n):
    ...     return nx.while_loop(lambda s: s[0] > 0, lambda s: (s[0] // 10, s[1] + 1), (n, 0))[1]
    >>> digits(2024).item()
    4
    """
    keeps = (gradient, gradient_bytes)
    if max_trips is None:
        return _repeat(cond_fn, body_fn, init, "while_loop", [], keeps)
    if not isinstance(max_trips, int) or max_trips < 0:
        raise ArgumentError(f"while_loop: max_trips must be a number of trips, got {max_trips!r}")

    def goes_on(state: tuple[Tensor, S]) -> TensorLike:
        return _core.logical_and(_core.less(state[0], max_trips), cond_fn(state[1]))

    def step(state: tuple[Tensor, S]) -> tuple[Tensor, S]:
        return _core.add(state[0], 1), body_fn(state[1])

    start = (_core.tensor(0, _core.s64), init)
    return _repeat(goes_on, step, start, "while_loop", [("[1]", "state")], keeps)[1]


def _repeat(
    cond_fn: Callable[[S], TensorLike],
    body_fn: Callable[[S], S],
    init: S,
    function: str,
    roots: list[tuple[str, str]],
    keeps: _Keeps,
) -> S:
    """Run a loop; errors speak of the function, and name parts of the state by their paths."""
    if _core.is_tracing():
        return _core.while_loop(cond_fn, body_fn, init, function, roots, *keeps)
    state: S = _tensors(init)
    types = _types(state)
    while True:
        holds = as_tensor(cond_fn(state))
        # Entries that go on for different numbers of trips are left to a program. So is a state
        # that does not keep its type: the program's error says which part of it has changed.
        if not holds.vectorized_axes:
            if not _holds(holds):
                return state
            following = _tensors(body_fn(state))
            if _types(following) == types:
                state = following
                continue
        last: S = _traced(
            functools.partial(_core.while_loop, cond_fn, body_fn, state, function, roots, *keeps)
        )
        return last


def _types(state: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    leaves, structure = tree.flatten(state)
    return structure, [(x.dtype, x.shape, x.vectorized_axes) for x in leaves]


def fori(
    lower: TensorLike,
    upper: TensorLike,
    body: Callable[[Any, S], S],
    init: S,
    /,
    *,
    unroll: bool | int = False,
    gradient: str = "auto",
    gradient_bytes: int = _GIB,
) -> S:
    """Repeat ``state = body(i, state)`` for ``i`` from `lower` up to, and without, `upper`.

    Parameters
    ----------
    lower, upper : integer scalar
        The range; may be traced values.
    body : callable
        Takes the counter, an integer scalar, and the state; gives the next state.
    init : tensor or container
        The state at the start.
    unroll : bool or int
        As for `for_each`; the range must be two ints then.
    gradient, gradient_bytes
        As for `while_loop`.

    Returns
    -------
    tensor or container
        The last state.

    Raises
    ------
    ArgumentError
        If the body gives another structure.
    ShapeError, DTypeError
        If the body gives a leaf of another type.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fori(1, 5, lambda i, product: product * i, 1).item()
    24
    """
    if unroll is not False:
        if not isinstance(lower, int) or not isinstance(upper, int):
            raise ArgumentError("fori: to unroll it, lower and upper must be ints")
        return for_each(
            range(lower, upper),
            body,
            init,
            unroll=unroll,
            gradient=gradient,
            gradient_bytes=gradient_bytes,
        )
    lower = as_tensor(lower)
    roots = [("[1]", "state"), ("[0]", "index")]
    return _counted("fori", roots, lower, upper, body, init, (gradient, gradient_bytes))


def _counted(
    function: str,
    roots: list[tuple[str, str]],
    lower: Tensor,
    upper: TensorLike,
    body: Callable[[Any, S], S],
    init: S,
    keeps: _Keeps,
) -> S:
    """Repeat a body as `fori` does, for the user of a function whose state has parts with names."""

    def step(state: tuple[Tensor, S]) -> tuple[Tensor, S]:
        return _core.add(state[0], 1), body(*state)

    def goes_on(state: tuple[Tensor, S]) -> Tensor:
        return _core.less(state[0], upper)

    return _repeat(goes_on, step, (lower, init), function, roots, keeps)[1]


def for_each(
    generator: Any,
    body: Callable[[Any, S], S],
    init: S,
    /,
    *,
    unroll: bool | int = False,
    gradient: str = "auto",
    gradient_bytes: int = _GIB,
) -> S:
    """Repeat ``state = body(x, state)`` for each ``x`` of a generator.

    Parameters
    ----------
    generator : range, tensor or container
        A range gives its numbers, of any step; tensors give the elements of their first axes, which
        have one size.
    body : callable
        Takes the element and the state; gives the next state.
    init : tensor or container
        The state at the start.
    unroll : bool or int
        How often the body is written out. With True there is no loop at all, and numbers of a range
        are ints; with a number, each trip of the loop does so many steps, and the rest comes after
        it. With False the body is traced once.
    gradient, gradient_bytes
        As for `while_loop`.

    Returns
    -------
    tensor or container
        The last state.

    Raises
    ------
    ArgumentError
        If the generator is none; if first axes differ; if the body gives another structure.
    ShapeError, DTypeError
        If the body gives a leaf of another type.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.for_each(range(5, 0, -2), lambda i, total: total * 10 + i, 0).item()
    531
    >>> f = nx.jit(lambda xs: nx.for_each(xs, lambda x, total: total + x, 0.0, unroll=2))
    >>> f(nx.tensor([1.0, 2.0, 3.0])).item()
    6.0
    """
    roots = [("[1]", "state"), ("[0]", "index")]
    keeps = (gradient, gradient_bytes)
    return _for_each("for_each", roots, generator, body, init, unroll, keeps)


def _for_each(
    function: str,
    roots: list[tuple[str, str]],
    generator: Any,
    body: Callable[[Any, S], S],
    init: S,
    unroll: bool | int,
    keeps: _Keeps,
) -> S:
    count, element = _elements(generator)
    copies = _copies(unroll, count)
    if copies == count:
        for index in range(count):
            init = body(element(index), init)
        state: S = tree.map(as_tensor, init)
        return state

    def steps(trip: Tensor, state: S) -> S:
        first = trip if copies == 1 else _core.multiply(trip, copies)
        for ahead in range(copies):
            state = body(element(_core.add(first, ahead) if ahead else first), state)
        return state

    trips = count // copies
    state = _counted(function, roots, as_tensor(0), trips, steps, init, keeps)
    for index in range(trips * copies, count):
        state = body(element(index), state)
    return state


def _elements(generator: Any) -> tuple[int, Callable[[Any], Any]]:
    """Return how many elements a generator has, and a function from an index to an element."""
    if isinstance(generator, range):
        start, step = generator.start, generator.step

        def number(index: Any) -> Any:
            if isinstance(index, int):
                return start + step * index
            return _core.add(_core.multiply(index, step) if step != 1 else index, start)

        return len(generator), number
    leaves, structure = tree.flatten(generator)
    if not leaves or not all(isinstance(x, _core.Tensor | _core.Expr) for x in leaves):
        raise ArgumentError(
            f"for_each: expected a range, a tensor or a container of tensors, got {generator!r}"
        )
    shapes = [x.shape for x in leaves]
    if not all(shapes) or len({shape[0] for shape in shapes}) > 1:
        raise ArgumentError(
            "for_each: tensors must have a first axis of one size, their shapes are "
            + ", ".join(str(shape) for shape in shapes)
        )
    return shapes[0][0], lambda index: structure.unflatten([x[index] for x in leaves])


def _copies(unroll: bool | int, count: int) -> int:
    """Return how many steps a trip does; as many as there are if there is to be no loop."""
    if unroll is True or count == 0:
        return count
    if unroll is False:
        return 1
    if not isinstance(unroll, int) or unroll < 1:
        raise ArgumentError(f"unroll must be a bool or at least 1, got {unroll!r}")
    return min(unroll, count)


def map(f: Callable[..., Any], xs: Any, /, *more: Any, unroll: bool | int = False) -> Any:
    """Apply a function to each element of the first axis, one after another.

    Parameters
    ----------
    f : callable
        Takes an element of each argument, and gives a tensor or a container.
    xs, *more : tensor or container
        The first axes of all their tensors have one size.
    unroll : bool or int
        As for `for_each`.

    Returns
    -------
    tensor or container
        The results, stacked along a new first axis.

    Raises
    ------
    ArgumentError
        If the first axes differ.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.map(lambda x: x * nx.sum(x), nx.tensor([[1, 2], [3, 4]])).tolist()
    [[3, 6], [21, 28]]
    """
    return scan(lambda _, x: ((), f(*x)), (), (xs, *more), unroll=unroll)[1]


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
    """Carry a state over the elements of the first axis, and collect a result for each.

    Parameters
    ----------
    f : callable
        Takes ``(carry, x)`` and gives ``(carry, y)``. The new carry has the structure, shapes and
        dtypes of the old one.
    init : tensor or container
        The carry at the start.
    xs : tensor or container, optional
        What is gone through; the first axes of all its tensors have the same size.
    length : int, optional
        How many steps; needed if there are no `xs`.
    reverse : bool
        Whether to begin at the last element. Results are where their elements are all the same.
    unroll : bool or int
        As for `for_each`.
    gradient, gradient_bytes
        As for `while_loop`.

    Returns
    -------
    carry : tensor or container
        The last one.
    ys : tensor or container
        The results, stacked along a new first axis.

    Raises
    ------
    ArgumentError
        If the number of steps is not known, or not the same everywhere; if the new carry has
        another structure.
    ShapeError, DTypeError
        If a leaf of the new carry has another type.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.jit(lambda xs: nx.scan(lambda total, x: (total + x, total * 10), 0, xs))
    >>> [part.tolist() for part in f(nx.tensor([1, 2, 3]))]
    [6, [0, 10, 30]]
    """
    leaves, structure = tree.flatten(xs)
    leaves = [as_tensor(x) for x in leaves]
    count = _steps(leaves, length)

    def place(index: Any) -> Any:
        return count - 1 - index if reverse else index

    def step(carry: C, index: TensorLike, *, first: bool = False) -> tuple[C, Any]:
        answer = f(carry, structure.unflatten([x[place(index)] for x in leaves]))
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ArgumentError("scan: the function must give (carry, y)")
        _check_step("carry", carry, answer[0], first=first)
        return answer

    if count == 0:
        # Only the types of the results matter; what is computed for them is dropped.
        row = structure.unflatten([_core.full(x.shape[1:], 0, x.dtype) for x in leaves])
        ys = tree.map(lambda y: _rows(_tensor(y), 0), f(init, row)[1])
        return tree.map(_tensor, init), ys
    # The first step goes before the loop: it tells the types of the results and of the carry.
    carry, y = step(init, 0, first=True)
    ys = tree.map(lambda y: _write(_rows(_tensor(y), count), place(0), y), y)

    def body(index: Tensor, state: tuple[C, Any]) -> tuple[C, Any]:
        carry, later = step(state[0], index)
        _check_step("y", y, later)
        return carry, tree.map(lambda rows, y: _write(rows, place(index), y), state[1], later)

    if count == 1:
        return tree.map(as_tensor, carry), ys
    roots = [("[1][0]", "carry"), ("[1][1]", "ys"), ("[0]", "index")]
    keeps = (gradient, gradient_bytes)
    return _for_each("scan", roots, range(1, count), body, (carry, ys), unroll, keeps)


def _check_step(name: str, before: Any, after: Any, *, first: bool = False) -> None:
    """Check that a step of a scan gives what the step before gave.

    In the first step a number may become a tensor of another dtype.
    """
    old, structure = tree.flatten(before)
    new, found = tree.flatten(after)
    if found != structure:
        raise ArgumentError(f"scan: {name} is {found} after a step, {structure} before")
    for leaf, pair in enumerate(zip(old, new, strict=True)):
        if first and isinstance(pair[0], int | float | complex):
            continue
        was, now = (as_tensor(value) for value in pair)
        if was.shape == now.shape and was.dtype == now.dtype:
            continue
        kind = DTypeError if was.shape == now.shape else ShapeError
        raise kind(
            f"scan: {name}{structure.leaf_path(leaf)} is {_type_of(now)} after a step, "
            f"{_type_of(was)} before"
        )


def _steps(leaves: list[Tensor], length: int | None) -> int:
    sizes = {x.shape[0] if x.ndim else None for x in leaves} | ({length} - {None})
    if not sizes:
        raise ArgumentError("scan: without xs, length must be given")
    if len(sizes) > 1 or None in sizes:
        shapes = ", ".join(str(x.shape) for x in leaves)
        given = "" if length is None else f", and length is {length}"
        raise ArgumentError(f"scan: the first axes differ: xs have shapes {shapes}{given}")
    (size,) = sizes
    assert size is not None
    return size


def _tensor(value: TensorLike) -> Tensor:
    return as_tensor(value)


def _rows(y: Tensor, count: int) -> Tensor:
    return _core.full((count, *y.shape), 0, y.dtype)


def _write(rows: Tensor, index: TensorLike, y: TensorLike) -> Tensor:
    row = _core.expand_dims(y)
    return _core.put_slice(rows, [index, *[0] * (rows.ndim - 1)], row)


def hook(
    value: Any,
    name: str | Callable[[Any], object] | None = None,
    function: Callable[[Any], object] | None = None,
    /,
) -> Any:
    """Show a value to a function whenever it is computed; the value comes back.

    ``hook(value, function)``, ``hook(value, name)`` and ``hook(value, name, function)`` will do. A
    call may bring another function for a name, ``hooks={name: function}``; without any function a
    named hook does nothing. Hooks run in the order in which they were written, and are never left
    out of a program.

    Parameters
    ----------
    value : tensor or container
        What is shown.
    name : str, optional
        By which `nxla.jit` and `nxla.default_options` find the hook.
    function : callable, optional
        Takes the value with its data. What it raises stops the program, and is raised there.

    Returns
    -------
    tensor or container
        The value.

    Raises
    ------
    ArgumentError
        If there is neither a name nor a function.

    Examples
    --------
    >>> import nxla as nx
    >>> seen = []
    >>> f = nx.jit(lambda x: nx.hook(x * 2, "doubled") + 1, hooks={"doubled": seen.append})
    >>> f(3).item(), seen[0].item()
    (7, 6)
    """
    if callable(name):
        name, function = None, name
    if name is None and function is None:
        raise ArgumentError("hook: a hook needs a name or a function")
    if _core.is_tracing():
        return _core.hook(value, name, function)
    value = _tensors(value)
    if name is not None:
        function = _core.get_default_options().get("hooks", {}).get(name, function)
    if function is not None:
        function(value)
    return value


def runtime_call(function: Callable[..., Any], template: Any, /, *args: Any) -> Any:
    """Call a Python function while the program runs, and use what it gives.

    The function is called each time that the call is reached, in order with other calls and with
    hooks; a call is never left out, and two calls are never made one. Nothing is known of what it
    computes: no gradient flows through it, and XLA waits for it. The function may run programs
    itself, on the thread that calls it; those of XLA run on another client of the plugin, since the
    threads of the one that waits may all be taken.

    Parameters
    ----------
    function : callable
        Takes the arguments with their data, and gives tensors, numbers or arrays like `template`.
        What it raises stops the program, and is raised there.
    template : template, tensor or container
        What the function gives: structure, shapes, dtypes and names; data is not looked at. See
        `nxla.template`.
    *args
        Tensors, or containers of them.

    Returns
    -------
    tensor or container
        What the function gives.

    Raises
    ------
    ArgumentError
        When the program runs, if the function gives another structure, or a leaf of another shape
        or dtype.

    Examples
    --------
    >>> import nxla as nx
    >>> prices = {1: 2.5, 2: 10.0}
    >>> @nx.jit
    ... def total(item, count):
    ...     price = nx.runtime_call(lambda i: prices[i.item()], nx.template(()), item)
    ...     return price * count
    >>> total(2, 3).item()
    30.0
    """
    wanted, structure = tree.flatten(template)
    types = [_template_of(leaf) for leaf in wanted]
    leaves, arguments = tree.flatten(args)

    def on_lists(values: list[Tensor]) -> list[Tensor]:
        given, found = tree.flatten(function(*arguments.unflatten(values)))
        if found != structure:
            raise ArgumentError(
                f"runtime_call: the function gave {found}, the template is {structure}"
            )
        return [_fitting(leaf, ty) for leaf, ty in zip(given, types, strict=True)]

    if _core.is_tracing():
        return structure.unflatten(
            _core.runtime_call(on_lists, [_tensor(leaf) for leaf in leaves], types)
        )
    return structure.unflatten(on_lists([_tensor(leaf) for leaf in leaves]))


def _template_of(leaf: Any) -> Template:
    if isinstance(leaf, _core.Template):
        return leaf
    leaf = _tensor(leaf)
    return _core.Template(leaf.shape, leaf.dtype, leaf.names)


def _fitting(leaf: Any, ty: Template) -> Tensor:
    """Check one result of a runtime call; a number takes the dtype that is wanted."""
    is_number = isinstance(leaf, int | float | complex)
    result = _core.tensor(leaf, ty.dtype) if is_number else _tensor(leaf)
    if result.dtype != ty.dtype or result.shape != ty.shape:
        got = _type_of(result)
        raise ArgumentError(f"runtime_call: the function gave {got}, the template says {ty}")
    return result if result.names == ty.names else _core.rename(result, ty.names)


def _type_of(value: Tensor) -> Template:
    return _core.Template(value.shape, value.dtype)


def print_value(value: Any, /, *, label: str | None = None) -> Any:
    """Print a value to standard output whenever it is computed; the value comes back.

    Parameters
    ----------
    value : tensor or container
        What is printed.
    label : str, optional
        What is printed before it.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.jit(lambda x: nx.print_value(x + 1, label="next") * 2)(1).item()
    next: #nxla.Tensor<
      s32
      2
    >
    4
    """
    prefix = "" if label is None else f"{label}: "
    return hook(value, lambda shown: _write_line(f"{prefix}{shown}"))


def print_expr(value: Any, /, *, label: str | None = None) -> Any:
    """Print the expression of a traced value, while tracing; the value comes back.

    Outside of a traced function the value itself is printed.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.jit(lambda x: nx.print_expr(x + 1) * 2)(1).item()
    #nxla.Expr<
      s32
    <BLANKLINE>
      parameter a:0   s32
      b = add 1, a    s32
    >
    4
    """
    prefix = "" if label is None else f"{label}: "
    _write_line(f"{prefix}{value}")
    return value


def _write_line(text: str) -> None:
    import sys

    sys.stdout.write(f"{text}\n")


def annotate(value: Any, note: str, /) -> Any:
    """Put a note on a value, for the text of the expression and for the callback of a split.

    Parameters
    ----------
    value : tensor or container
        What is marked; the tensors of a container are marked as one.
    note : str
        Appears in the text, and as ``node.note``.

    Examples
    --------
    >>> import nxla as nx
    >>> expression = nx.debug_expr(lambda x: nx.annotate(x * 2, "doubled") + 1)(1)
    >>> stages = nx.graph.split(expression, lambda node: "after" if node.note else "none")
    >>> len(stages)
    2
    """
    return _core.annotate(value, note) if _core.is_tracing() else value
