"""Branches, and looks at values while a program runs.

In a traced function these become part of the program. Outside of one, where all values are known,
they run as the Python code that they stand for.
"""

from __future__ import annotations

from nxla import _core, tree
from nxla._values import as_tensor
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nxla._core import Template, Tensor
    from nxla._types import TensorLike


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


def _tensor(value: TensorLike) -> Tensor:
    return as_tensor(value)


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
