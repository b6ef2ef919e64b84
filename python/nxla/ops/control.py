"""Branches, hooks and annotations.

In a traced function, they become part of the program. Outside a trace, where all values are
concrete, they run as Python code.
"""

from __future__ import annotations

from nxla import _core, _hints, tree
from nxla._spec import make_function
from nxla._values import (
    as_list,
    as_tensor,
    as_tensors,
    keeps_structure,
    kind_of,
    new_tensor,
    new_tensors,
    require_callable,
    template_of,
)
from nxla.errors import ArgumentError
from nxla.ops.create import full_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar, overload

    from nxla._core import Template, Tensor
    from nxla._types import Leaf, TensorLike

    R = TypeVar("R")
    T = TypeVar("T")

#: The types of predicates that are not converted.
_SCALARS = (bool, _core.Tensor, _core.Expr)

if TYPE_CHECKING:
    # Type checkers select the first overload for branches that return `Any`.

    @overload
    def cond(
        pred: TensorLike,
        true_fn: Callable[..., complex],
        false_fn: Callable[..., complex],
        /,
        *operands: Any,
    ) -> Any: ...

    @overload
    def cond(
        pred: Sequence[tuple[TensorLike, Callable[[], complex]]],
        /,
        *,
        otherwise: Callable[[], complex],
    ) -> Any: ...

    @overload
    def cond(
        pred: TensorLike,
        true_fn: Callable[..., Leaf],
        false_fn: Callable[..., Leaf],
        /,
        *operands: Any,
    ) -> Tensor: ...

    @overload
    def cond(
        pred: Sequence[tuple[TensorLike, Callable[[], Leaf]]],
        /,
        *,
        otherwise: Callable[[], Leaf],
    ) -> Tensor: ...

    @overload
    def cond(
        pred: TensorLike,
        true_fn: Callable[..., R],
        false_fn: Callable[..., R],
        /,
        *operands: Any,
    ) -> R: ...

    @overload
    def cond(
        pred: Sequence[tuple[TensorLike, Callable[[], R]]],
        /,
        *,
        otherwise: Callable[[], R],
    ) -> R: ...


def cond(
    pred: TensorLike | Sequence[tuple[TensorLike, Callable[[], Any]]],
    true_fn: Callable[..., Any] | None = None,
    false_fn: Callable[..., Any] | None = None,
    /,
    *operands: Any,
    otherwise: Callable[[], Any] | None = None,
) -> Any:
    """Run one of several functions.

    ``cond(pred, true_fn, false_fn, *operands)`` selects one of two branches.
    ``cond([(pred, fn), …], otherwise=fn)`` selects the first branch whose predicate is true.

    Only the selected branch is computed. Branches may capture values. In a traced function, a
    branch that a constant predicate excludes is not traced, and does not affect the dtypes, shapes
    and vectorized axes of the results. Outside of traced functions, no predicate is a constant: the
    selected branch runs, and the other branches are traced, which checks their results. Hooks of
    these branches are not called.

    Parameters
    ----------
    pred : scalar, or sequence of (scalar, callable)
        True if it is not zero. If it is vectorized, each entry receives the results of the
        branch that it selects, and a branch that any entry selects is computed for all entries.
        There, entries that do not select the branch have the values of another entry that does, and
        hooks in the branch receive these values.
    true_fn, false_fn : callable
        Functions of the operands.
    *operands
        Tensors, or containers of them. Branches receive numbers and arrays as tensors.
    otherwise : callable
        The branch for the case that no predicate is true. It has no arguments, like the other
        functions of clauses.

    Returns
    -------
    tensor or container
        The result of the branch. All branches return the same structure; dtypes promote and shapes
        broadcast. A Python scalar takes the dtype of the other branches, as in `where`.

    Raises
    ------
    ShapeError
        If a predicate is not a scalar, or results do not broadcast.
    ArgumentError
        If branches return different structures.

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
                "cond: arguments: must be (pred, true_fn, false_fn, *operands), or clauses and "
                "otherwise="
            )
        require_callable("cond", "true_fn", true_fn)
        require_callable("cond", "false_fn", false_fn)
        operands = new_tensors(operands)
        clauses = [(pred, lambda: true_fn(*operands))]
        otherwise = lambda: false_fn(*operands)  # noqa: E731
    elif true_fn is not None:
        raise ArgumentError("cond: otherwise: requires clauses, [(pred, fn), …]")
    else:
        require_callable("cond", "otherwise", otherwise)
        clauses = [_clause(clause) for clause in as_list("cond", "pred", pred)]  # type: ignore[arg-type]
    return _branch("cond", clauses, otherwise)


def _branch(
    function: str,
    clauses: list[tuple[TensorLike, Callable[[], Any]]],
    otherwise: Callable[[], Any],
) -> Any:
    """Run the first branch whose predicate is true; errors name the public function."""
    for predicate, _ in clauses:
        _check_scalar(function, "pred", predicate)
    if _core.is_tracing():
        return _core.cond(clauses, otherwise, function)
    if any(as_tensors(function, predicate)[0].vectorized_axes for predicate, _ in clauses):
        # Entries select different branches, which needs a program.
        return _call_traced(lambda: _core.cond(clauses, otherwise, function))
    return _select(function, clauses, otherwise)


def _select(
    function: str,
    clauses: list[tuple[TensorLike, Callable[[], Any]]],
    otherwise: Callable[[], Any],
) -> Any:
    """Run the branch that concrete predicates select, and check it against the other branches.

    The other branches are traced and not run: their results determine dtypes and shapes, as in a
    traced function, and their hooks are not called.
    """
    predicates = [predicate for predicate, _ in clauses]
    branches = [*(branch for _, branch in clauses), otherwise]
    holds = (_holds(function, "pred", predicate) for predicate in predicates)
    selected = next((n for n, each in enumerate(holds) if each), len(clauses))
    value = branches[selected]()
    # The branch returns scalars, whose dtypes depend on the other branches.
    branches[selected] = lambda: value
    result = new_tensors(value)
    types = [_core.Template((), _core.pred)] * len(predicates)
    if _have_traced_types(function, tree.leaves(result), _program(function, branches), *types):
        return result
    # The selected branch is a constant of the program, and the other branches do not run.
    return _core.inlining_all(lambda: _run(function, predicates, branches))


def _have_traced_types(
    function: str, leaves: Iterable[Tensor], traced: Callable[..., Any], *types: Template
) -> bool:
    """Trace a function that does not run; return whether the leaves have the types of its results.

    The trace checks the types of the values of the function. Functions with their own options join
    the trace, because options have no effect without a run.
    """
    program = _core.inlining_all(lambda: _core.Function(traced, function).debug_expr(*types))
    return [(x.shape, x.dtype, x.names) for x in leaves] == [
        (node.shape, node.dtype, node.names) for node in program.output_nodes
    ]


def _program(function: str, branches: Sequence[Callable[[], Any]]) -> Callable[..., Any]:
    """Return a function from predicates to the results of a traced conditional."""
    *bodies, last = branches
    return lambda *predicates: _core.cond(
        list(zip(predicates, bodies, strict=True)), last, function
    )


def _run(
    function: str, predicates: Sequence[TensorLike], branches: Sequence[Callable[[], Any]]
) -> Any:
    """Run a conditional as a program, whose predicates are arguments."""
    return make_function(_program(function, branches))(*(as_tensor(p) for p in predicates))


def _clause(clause: Any) -> tuple[TensorLike, Callable[[], Any]]:
    if not isinstance(clause, tuple | list) or len(clause) != 2 or not callable(clause[1]):
        raise ArgumentError(f"cond: clauses: must be pairs (pred, function); got {clause!r}")
    return clause[0], clause[1]


def _check_scalar(function: str, argument: str, predicate: TensorLike) -> None:
    """Raise an error for a predicate that is not a tensor and cannot become one."""
    if isinstance(predicate, _SCALARS):
        return
    try:
        as_tensors(function, predicate)
    except ArgumentError:
        raise ArgumentError(
            f"{function}: {argument}: must be a boolean or a number; got {kind_of(predicate)}"
        ) from None


def _holds(function: str, argument: str, predicate: TensorLike) -> bool:
    """Return the boolean of a concrete predicate, by the rules for traced predicates."""
    if not isinstance(predicate, _core.Tensor):
        (predicate,) = as_tensors(function, predicate)
    if predicate.ndim:
        raise _core.ShapeError(
            f"{function}: {argument}: must be a scalar; got shape {predicate.shape}; reduce it "
            "with all or any"
        )
    return bool(predicate)


def _call_traced(function: Callable[[], Any]) -> Any:
    """Call a function traced, with its captured tensors."""
    return make_function(function)()


if TYPE_CHECKING:

    @overload
    def if_(
        pred: TensorLike,
        then: Callable[[], complex],
        otherwise: Callable[[], complex] | None = None,
        /,
    ) -> Any: ...

    @overload
    def if_(
        pred: TensorLike,
        then: Callable[[], Leaf],
        otherwise: Callable[[], Leaf] | None = None,
        /,
    ) -> Tensor: ...

    @overload
    def if_(
        pred: TensorLike,
        then: Callable[[], R],
        otherwise: Callable[[], R] | None = None,
        /,
    ) -> R: ...


def if_(
    pred: TensorLike, then: Callable[[], Any], otherwise: Callable[[], Any] | None = None, /
) -> Any:
    """Run a function if a predicate is true, else another one; the default returns zeros.

    It is `cond` without operands.

    Parameters
    ----------
    pred : scalar
        A boolean or a number; numbers other than 0 count as true.
    then : callable
        A function without arguments, which runs if `pred` is true.
    otherwise : callable, optional
        A function without arguments. The default returns zeros like the result of `then`.

    Returns
    -------
    tensor or container
        The result of the selected function, as for `cond`.

    Raises
    ------
    ArgumentError
        If the functions return different structures.
    ShapeError
        If `pred` is not a scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.jit(lambda x: nx.if_(x > 1, lambda: x * 10))
    >>> f(2).item(), f(1).item()
    (20, 0)
    """
    require_callable("if_", "then", then)
    if otherwise is not None:
        require_callable("if_", "otherwise", otherwise)
        return _branch("if_", [(pred, then)], otherwise)
    results: list[Any] = []

    def remembered() -> Any:
        results.append(then())
        return results[0]

    def zeros() -> Any:
        # Return zeros with the type of the other branch, which is traced first.
        if not results:
            # A constant predicate excluded the other branch; `stop_grad` hides the constant.
            return _run("if_", [_core.stop_grad(as_tensor(pred))], [remembered, zeros])
        return tree.map(lambda leaf: full_like(leaf, 0), results[0])

    return _branch_unchecked("if_", pred, remembered, zeros)


def _branch_unchecked(
    function: str, pred: TensorLike, then: Callable[[], Any], otherwise: Callable[[], Any]
) -> Any:
    """Run one of two functions, whose results have the same types.

    It is `cond`, but outside a trace the other function is not traced to compare the results.
    """
    _check_scalar(function, "pred", pred)
    if _core.is_tracing() or as_tensors(function, pred)[0].vectorized_axes:
        return _branch(function, [(pred, then)], otherwise)
    return new_tensors(then() if _holds(function, "pred", pred) else otherwise())


@keeps_structure
def hook(
    value: Any,
    name: str | Callable[[Any], object] | None = None,
    function: Callable[[Any], object] | None = None,
    /,
) -> Any:
    """Call a function with a value whenever the value is computed, and return the value.

    The call forms are ``hook(value, function)``, ``hook(value, name)`` and ``hook(value, name,
    function)``. A caller can replace the function of a name with ``hooks={name: function}``. A
    named hook without a function does nothing. Hooks run in the order in which they are written,
    and programs always contain them. In a branch or a loop that only some vectorized entries enter,
    the value of each other entry is a copy from an entry that enters it.

    Parameters
    ----------
    value : tensor or container
        The value that the function receives.
    name : str, optional
        The name by which `nxla.jit` and `nxla.default_options` find the hook.
    function : callable, optional
        A function of the value with its data. An exception ends the program and reaches its caller.

    Returns
    -------
    tensor or container
        The value.

    Raises
    ------
    ArgumentError
        If both the name and the function are missing, the name is not a string, or the function
        cannot be called.

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
        raise ArgumentError("hook: name, function: at least one is required")
    if not isinstance(name, str | None):
        raise ArgumentError(f"hook: name: must be a string or a function; got {kind_of(name)}")
    if function is not None:
        require_callable("hook", "function", function)
    if _core.is_tracing():
        return _core.hook(value, name, function)
    value = new_tensors(value)
    if name is not None:
        function = _core.get_default_options().get("hooks", {}).get(name, function)
    if function is not None:
        function(new_tensors(value))
    return value


def runtime_call(function: Callable[..., Any], template: Any, /, *args: Any) -> Any:
    """Call a Python function while the program runs, and use its results.

    The function is called each time the program reaches the call, in order with other calls and
    hooks. Calls are never dropped or merged, and XLA waits for the result. The function may run
    programs on the calling thread. XLA programs then run on another client of the plugin, because
    all threads of the waiting client may be in use.

    A derivative may repeat the calls of branches, loops, `nxla.checkpoint` and `nxla.vjp`, because
    it computes their values again. There, the function must return equal results for equal
    arguments.

    A derivative that flows through the call is an error: apply `nxla.stop_grad` to the arguments,
    or define the derivative of a function around the call with `nxla.custom_jvp`,
    `nxla.custom_vjp` or `nxla.custom_grad`.

    Parameters
    ----------
    function : callable
        A function of the arguments with their data. It returns tensors, scalars or arrays that
        match `template`. An exception ends the program and reaches its caller.
    template : template, tensor or container
        The structure, shapes, dtypes and axis names of the result; data is ignored. See
        `nxla.template`.
    *args
        Tensors, or containers of them.

    Returns
    -------
    tensor or container
        The result of the function.

    Raises
    ------
    ArgumentError
        During the run, if the function returns another structure, or a leaf of another shape or
        dtype.

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
    return call_host(None, function, template, args)


def call_host(
    name: str | None, function: Callable[..., Any], template: Any, args: tuple[Any, ...]
) -> Any:
    """Call a Python function as `runtime_call` does.

    Errors of programs without the function contain the name.
    """
    require_callable("runtime_call", "function", function)
    wanted, structure = tree.flatten(template)
    types = [template_of(leaf) for leaf in wanted]
    leaves, arguments = tree.flatten(args)

    def on_lists(values: list[Tensor]) -> list[Tensor]:
        given, found = tree.flatten(function(*arguments.unflatten(values)))
        if found != structure:
            raise ArgumentError(
                "runtime_call: function: result must have the structure of template, "
                f"{structure}; got {found}"
            )
        return [_check_result(leaf, ty) for leaf, ty in zip(given, types, strict=True)]

    if _core.is_tracing():
        return structure.unflatten(
            _core.runtime_call(on_lists, [as_tensor(leaf) for leaf in leaves], types, name)
        )
    values = [new_tensor(leaf) for leaf in leaves]
    if any(value.vectorized_axes for value in values):
        raise ArgumentError(
            "runtime_call: arguments: must not have vectorized axes; devectorize them first"
        )
    return structure.unflatten(on_lists(values))


def _check_result(leaf: Any, ty: Template) -> Tensor:
    """Check one result of a runtime call; a scalar takes the expected dtype."""
    is_number = isinstance(leaf, int | float | complex)
    result = _core.tensor(leaf, ty.dtype) if is_number else new_tensor(leaf)
    if result.dtype != ty.dtype or result.shape != ty.shape or result.vectorized_axes:
        got = template_of(result)
        raise ArgumentError(
            f"runtime_call: function: result must have the type {ty} of template; got {got}"
        )
    return result if result.names == ty.names else _core.rename(result, ty.names)


@keeps_structure
def print_value(
    value: Any, function: Callable[[Any], object] | None = None, /, *, label: str | None = None
) -> Any:
    """Print a value to standard output whenever it is computed, and return the value.

    Parameters
    ----------
    value : tensor or container
        The returned value.
    function : callable, optional
        A function of the value with its data, whose result is printed instead of the value.
    label : str, optional
        A prefix.

    Returns
    -------
    tensor or container
        The value, with the same shapes and dtypes.

    Raises
    ------
    ArgumentError
        If the function is not callable.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.jit(lambda x: nx.print_value(x + 1, label="next") * 2)(1).item()
    next: #nxla.Tensor<s32 2>
    4
    >>> nx.jit(lambda x: nx.print_value(x, lambda x: x.ndim, label="axes") * 2)(1).item()
    axes: 0
    2
    """
    if function is not None and not callable(function):
        raise ArgumentError(
            f"print_value: function: must be a function; got {kind_of(function)}; pass a "
            "prefix as label="
        )
    prefix = "" if label is None else f"{label}: "
    convert = function or (lambda shown: shown)
    return hook(value, lambda shown: _write_line(f"{prefix}{convert(shown)}"))


def print_expr(value: T, /, *, label: str | None = None) -> T:
    """Print the expression of a traced value during the trace, and return the value.

    Outside a trace the value itself is printed.

    Parameters
    ----------
    value : tensor or container
        The returned value.
    label : str, optional
        A prefix.

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


@keeps_structure
def annotate(value: Any, note: str, /) -> Any:
    """Attach a note to a value, which prints in expressions and can be read by split callbacks.

    Parameters
    ----------
    value : tensor or container
        The value; a container receives one note.
    note : str
        The note, which is printed and is available as ``node.note``.

    Returns
    -------
    tensor or container
        The value with its note.

    Raises
    ------
    ArgumentError
        If the note is not a string.

    Examples
    --------
    >>> import nxla as nx
    >>> expression = nx.debug_expr(lambda x: nx.annotate(x * 2, "doubled") + 1)(1)
    >>> stages = nx.graph.split(expression, lambda node: "after" if node.note else "none")
    >>> len(stages)
    2
    """
    return _attach_note("annotate", "note", value, note)


def _attach_note(op: str, argument: str, value: Any, note: str) -> Any:
    """Attach a note on behalf of a public function, whose argument it is."""
    if not isinstance(note, str):
        raise ArgumentError(f"{op}: {argument}: must be a string; got {kind_of(note)}")
    return _core.annotate(value, note) if _core.is_tracing() else new_tensors(value)


_hints.install(globals())
