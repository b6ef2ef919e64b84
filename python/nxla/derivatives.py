"""Derivatives beyond the gradient: directional derivatives, linear maps, Jacobians, Hessians."""

from __future__ import annotations

from nxla import _core, _hints, tree
from nxla._arguments import SelectedArguments, name_of, split_aux
from nxla._spec import derived_function, make_function, spec_of
from nxla._values import as_bool
from nxla.errors import ArgumentError
from nxla.ops.create import ones_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal, ParamSpec, TypeVar, overload

    from nxla._arguments import Argument
    from nxla._core import Differentiable, Function, LinearMap, TreeDef
    from nxla._spec import FunctionSpec

    P = ParamSpec("P")
    R = TypeVar("R")
    X = TypeVar("X")

__all__ = [
    "hessian",
    "hessian_diagonal",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]


if TYPE_CHECKING:

    @overload
    def jvp(
        function: Callable[..., R],
        primals: Sequence[Any],
        tangents: Sequence[Any],
        /,
        has_aux: Literal[False] = False,
    ) -> tuple[R, R]: ...

    @overload
    def jvp(
        function: Callable[..., tuple[R, X]],
        primals: Sequence[Any],
        tangents: Sequence[Any],
        /,
        has_aux: Literal[True],
    ) -> tuple[R, R, X]: ...

    @overload
    def jvp(
        function: Callable[..., Any],
        primals: Sequence[Any],
        tangents: Sequence[Any],
        /,
        has_aux: bool,
    ) -> tuple[Any, ...]: ...


def jvp(
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    /,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Return the result of a function and its derivative along a direction.

    Forward mode computes both together, at about twice the cost of the function.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    primals : sequence
        The positional arguments.
    tangents : sequence
        The direction: one tangent for each argument, in the same structure. The tangent of an
        integer is a float.
    has_aux : bool
        If True, `function` returns ``(result, aux)``; only the result is differentiated.

    Returns
    -------
    tuple
        ``(result, tangent)``, the tangent in the structure of the result; with `has_aux`
        ``(result, tangent, aux)``.

    Raises
    ------
    ArgumentError
        If a tangent does not have the shape of its argument.
    GradientError
        If an operation has no derivative.

    Examples
    --------
    >>> import nxla as nx
    >>> y, dy = nx.jvp(lambda x: x**3, (2.0,), (1.0,))
    >>> y.item(), dy.item()
    (8.0, 12.0)
    """
    spec = spec_of(function, "jvp")
    name = name_of(spec.function)
    for argument, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise ArgumentError(
                f"jvp: {argument}: must be a tuple or list with the arguments of {name}; got a "
                f"{type(given).__name__}"
            )
    if len(primals) != len(tangents):
        raise ArgumentError(
            f"jvp: tangents: must be {len(primals)}, one for each argument of {name}; got "
            f"{len(tangents)}"
        )
    positional = _Positional(spec, primals)

    def both(values: list[Any], changes: list[Any]) -> tuple[Any, ...]:
        leaves, structure = tree.flatten(values)
        directions, found = tree.flatten(changes)
        if found != structure:
            raise ArgumentError(
                f"jvp: tangents: must have the structure of primals, {structure}; got {found}"
            )
        traced = _trace(
            "jvp",
            name,
            leaves,
            lambda tracers: positional.call(structure.unflatten(tracers)),
            has_aux,
            directions,
        )
        outputs, tangents = traced.function.jvp(directions)
        return traced.answer(outputs, traced.structure.unflatten(tangents))

    both.__name__ = "jvp"  # For errors.
    given = positional.dynamic_arguments(primals), positional.dynamic_arguments(tangents)
    return _jit_like(both, spec)(*given)  # type: ignore[no-any-return]


if TYPE_CHECKING:

    @overload
    def vjp(
        function: Callable[..., R],
        /,
        *primals: Any,
        has_aux: Literal[False] = False,
    ) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...

    @overload
    def vjp(
        function: Callable[..., tuple[R, X]],
        /,
        *primals: Any,
        has_aux: Literal[True],
    ) -> tuple[R, Callable[[Any], tuple[Any, ...]], X]: ...

    @overload
    def vjp(
        function: Callable[..., Any],
        /,
        *primals: Any,
        has_aux: bool,
    ) -> tuple[Any, ...]: ...


def vjp(function: Callable[..., Any], /, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the result of a function, and the map from its cotangents to gradients.

    The residuals are computed once, however often the map is called.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    *primals
        The arguments.
    has_aux : bool
        If True, `function` returns ``(result, aux)``; only the result is differentiated.

    Returns
    -------
    tuple
        ``(result, pull)``, or with `has_aux` ``(result, pull, aux)``. ``pull`` accepts cotangents
        in the structure of the result, and returns a tuple with one cotangent for each argument.

    Raises
    ------
    GradientError
        If an operation has no derivative.

    Examples
    --------
    >>> import nxla as nx
    >>> y, pull = nx.vjp(lambda x, y: x * y, 2.0, 5.0)
    >>> [g.item() for g in pull(1.0)]
    [5.0, 2.0]
    >>> [g.item() for g in pull(10.0)]
    [50.0, 20.0]
    """
    return _linear("vjp", function, primals, has_aux)


if TYPE_CHECKING:

    @overload
    def linearize(
        function: Callable[..., R],
        /,
        *primals: Any,
        has_aux: Literal[False] = False,
    ) -> tuple[R, Callable[..., R]]: ...

    @overload
    def linearize(
        function: Callable[..., tuple[R, X]],
        /,
        *primals: Any,
        has_aux: Literal[True],
    ) -> tuple[R, Callable[..., R], X]: ...

    @overload
    def linearize(
        function: Callable[..., Any],
        /,
        *primals: Any,
        has_aux: bool,
    ) -> tuple[Any, ...]: ...


def linearize(
    function: Callable[..., Any], /, *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the result of a function, and the map from tangents of its arguments to its tangent.

    It is `jvp` for many directions: values that do not depend on the direction are computed once. A
    loop runs again for each direction, unless its state has no tangent.

    Parameters
    ----------
    function : callable
        A function of tensors and containers.
    *primals
        The arguments.
    has_aux : bool
        If True, `function` returns ``(result, aux)``; only the result is differentiated.

    Returns
    -------
    tuple
        ``(result, push)``, or with `has_aux` ``(result, push, aux)``. ``push`` accepts one tangent
        for each argument, and returns the tangent of the result.

    Examples
    --------
    >>> import nxla as nx
    >>> y, push = nx.linearize(nx.sin, 0.0)
    >>> y.item(), push(1.0).item(), push(3.0).item()
    (0.0, 1.0, 3.0)
    """
    return _linear("linearize", function, primals, has_aux)


def jacfwd(
    function: Callable[P, Any],
    /,
    argnums: Argument | Sequence[Argument] = 0,
    has_aux: bool = False,
) -> Function[P, Any]:
    """Return a function that computes the Jacobian of another function in forward mode.

    It makes one batched pass for all elements of the arguments. Use it if the arguments have fewer
    elements than the results.

    Parameters
    ----------
    function : callable
        A function of tensors and containers. Arguments must be real.
    argnums : int or str, or a sequence of them
        The differentiated arguments: a positional argument by its position, any argument by its
        name, or a part of one by its path, such as ``"params['w']"`` or ``"state.velocity"``.
    has_aux : bool
        If True, `function` returns ``(result, aux)``; only the result is differentiated.

    Returns
    -------
    Function
        It returns the structure of the result, with the structure of the argument in place of each
        leaf (a tuple if `argnums` is a sequence). Each tensor has the axes of the result followed
        by the axes of the argument. With `has_aux` it returns ``(jacobian, aux)``.

    Raises
    ------
    ArgumentError
        If an argument is complex, or `argnums` is not an argument or selects a tensor twice.
    GradientError
        If an operation has no derivative.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.jacfwd(lambda x: nx.stack([x[0] * x[1], x[0] ** 2]))(nx.tensor([2.0, 3.0])).tolist()
    [[3.0, 2.0], [4.0, 0.0]]
    >>> loss = lambda params, x: params["w"] * x
    >>> nx.jacfwd(loss, argnums="params['w']")({"w": 2.0, "b": 1.0}, 3.0).item()
    3.0
    """
    return _matrix("jacfwd", function, argnums, has_aux, True)


def jacrev(
    function: Callable[P, Any],
    /,
    argnums: Argument | Sequence[Argument] = 0,
    has_aux: bool = False,
) -> Function[P, Any]:
    """Return a function that computes the Jacobian of another function in reverse mode.

    It makes one batched pass for all elements of the result. Use it if the results have fewer
    elements than the arguments.

    Parameters
    ----------
    function : callable
        A function of tensors and containers. Arguments and results must be real.
    argnums, has_aux
        As for `jacfwd`.

    Returns
    -------
    Function
        As for `jacfwd`: each tensor has the axes of the result, then the axes of the argument.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.jacrev(lambda x: nx.stack([x[0] * x[1], x[0] ** 2]))(nx.tensor([2.0, 3.0])).tolist()
    [[3.0, 2.0], [4.0, 0.0]]
    """
    return _matrix("jacrev", function, argnums, has_aux, False)


def jacobian(
    function: Callable[P, Any],
    /,
    argnums: Argument | Sequence[Argument] = 0,
    has_aux: bool = False,
) -> Function[P, Any]:
    """Return a function that computes the Jacobian of another function.

    It is `jacfwd` if the arguments have at most as many elements as the results, else `jacrev`.

    Parameters
    ----------
    function, argnums, has_aux
        As for `jacfwd`.

    Returns
    -------
    Function
        As for `jacfwd`: each tensor has the axes of the result, then the axes of the argument.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.jacobian(nx.sin)(nx.zeros(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return _matrix("jacobian", function, argnums, has_aux, None)


def hessian(
    function: Callable[P, Any],
    /,
    argnums: Argument | Sequence[Argument] = 0,
    has_aux: bool = False,
) -> Function[P, Any]:
    """Return a function that computes second derivatives, by forward mode over reverse mode.

    A Hessian-vector product does not need the Hessian: use
    ``nx.jvp(nx.grad(f), (x,), (direction,))[1]``.

    Parameters
    ----------
    function, argnums, has_aux
        As for `jacrev`.

    Returns
    -------
    Function
        It returns the structure of the result, with the structure of the argument nested twice in
        place of each leaf. Each tensor has the axes of the result, followed by the axes of both
        arguments.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.hessian(lambda x: x[0] ** 2 * x[1])(nx.tensor([3.0, 5.0])).tolist()
    [[10.0, 6.0], [6.0, 0.0]]
    """
    rows = _matrix("hessian", function, argnums, has_aux, False)
    return _matrix("hessian", rows, argnums, has_aux, True)


def hessian_diagonal(
    function: Callable[P, Any], /, argnums: Argument | Sequence[Argument] = 0
) -> Function[P, Any]:
    """Return a function that computes the second derivative by each element of an argument.

    It makes one forward pass over the gradient if the function is a sum of element-wise functions.
    Otherwise it makes a batched pass with one direction for each element.

    Parameters
    ----------
    function : callable
        A function that returns one tensor. If it is not a scalar, its sum is differentiated.
    argnums : int or str, or a sequence of them
        As for `jacfwd`.

    Returns
    -------
    Function
        It returns the structure of the argument.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.hessian_diagonal(lambda x: nx.sum(x**3))(nx.tensor([1.0, 2.0])).tolist()
    [6.0, 12.0]
    """
    spec = spec_of(function, "hessian_diagonal")
    name = name_of(spec.function)

    def diagonal(*args: Any, **kwargs: Any) -> Any:
        selected = SelectedArguments("hessian_diagonal", spec.function, argnums, args, kwargs)
        called = selected.call(spec.function)

        def slopes(leaves: list[Any]) -> list[Any]:
            inner = _trace("hessian_diagonal", name, leaves, called)
            if len(inner.shown) != 1:
                raise ArgumentError(f"hessian_diagonal: function: {name} must return one tensor")
            _, known, pull = inner.function.linear(False)
            return pull.apply(known, [ones_like(inner.shown[0])])

        outer = _trace("hessian_diagonal", name, selected.leaves, slopes)
        return selected.structure.unflatten(outer.function.diagonal())

    derived: Function[P, Any] = derived_function(diagonal, spec)
    return derived


class _Traced:
    """A function that was called with tracers."""

    def __init__(
        self, function: Differentiable, results: tuple[list[Any], TreeDef], aux: TreeDef | None
    ) -> None:
        self.function = function
        #: The results for the tracers, and their structure.
        self.shown, self.structure = results
        #: The structure of the auxiliary results.
        self._aux = aux

    def answer(self, outputs: list[Any], *more: Any) -> tuple[Any, ...]:
        """Return the result, other values, and the auxiliary results, from all outputs."""
        count = len(self.shown)
        result = self.structure.unflatten(outputs[:count])
        if self._aux is None:
            return (result, *more)
        return (result, *more, self._aux.unflatten(outputs[count:]))


def _trace(
    derivative: str,
    name: str,
    leaves: list[Any],
    function: Callable[[list[Any]], Any],
    has_aux: bool = False,
    tangents: list[Any] | None = None,
) -> _Traced:
    """Call a function with tracers for some leaves.

    Entries along vectorized axes of the results have separate derivatives; with `tangents`, only
    along axes of the tangents.
    """
    has_aux = as_bool(derivative, "has_aux", has_aux)
    if not leaves:
        raise ArgumentError(f"{derivative}: argnums: arguments of {name} must contain a tensor")
    shown: list[Any] = []
    structure = aux_structure = tree.flatten(())[1]

    def call(tracers: list[Any]) -> tuple[list[Any], list[Any]]:
        nonlocal shown, structure, aux_structure
        result, aux = function(tracers), None
        if has_aux:
            result, aux = split_aux(derivative, name, result)
        shown, structure = tree.flatten(result)
        if not shown:
            raise ArgumentError(f"{derivative}: function: {name} must return a tensor")
        passed_on, aux_structure = tree.flatten(aux)
        return shown, passed_on

    traced = _core.trace_derivative(leaves, call, tangents)
    return _Traced(traced, (shown, structure), aux_structure if has_aux else None)


class _Positional:
    """The arguments of a call by position; static arguments are kept."""

    def __init__(self, spec: FunctionSpec, arguments: Sequence[Any]) -> None:
        self._function = spec.function
        self._arguments = list(arguments)
        self._moves = [at not in spec.positions for at in range(len(self._arguments))]

    def dynamic_arguments(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments that are not static."""
        return [x for x, moves in zip(arguments, self._moves, strict=True) if moves]

    def call(self, values: Sequence[Any]) -> Any:
        """Call the function with new values of the arguments that are not static."""
        given = iter(values)
        pairs = zip(self._arguments, self._moves, strict=True)
        return self._function(*(next(given) if moves else x for x, moves in pairs))


def _jit_like(function: Callable[..., Any], spec: FunctionSpec) -> Function[..., Any]:
    """Compile a function of containers, with the options of another one."""
    return make_function(function, options={**spec.options, "on_conflict": "reuse"})


def _linear(
    derivative: str, function: Callable[..., Any], primals: Sequence[Any], has_aux: bool
) -> tuple[Any, ...]:
    """Return the result of a function and its derivative as a linear map."""
    spec = spec_of(function, derivative)
    name = name_of(spec.function)
    reverse = derivative == "vjp"
    positional = _Positional(spec, primals)
    found: list[Any] = []

    def forward(values: list[Any]) -> Any:
        leaves, structure = tree.flatten(values)
        traced = _trace(
            derivative,
            name,
            leaves,
            lambda tracers: positional.call(structure.unflatten(tracers)),
            has_aux,
        )
        outputs, known, linear = traced.function.linear(not reverse)
        found[:] = [linear, traced.structure, structure]
        return traced.answer(outputs, known)

    computed = _jit_like(forward, spec)
    result, known, *aux = computed(positional.dynamic_arguments(primals))
    linear: LinearMap
    linear, result_structure, structure = found

    def apply(known: list[Any], leaves: list[Any]) -> list[Any]:
        return linear.apply(known, leaves)

    apply.__name__ = derivative  # For errors.
    applied = _jit_like(apply, spec)

    def mapped(kind: str, given: Any, expected: TreeDef) -> list[Any]:
        leaves, own = tree.flatten(given)
        if own != expected:
            raise ArgumentError(
                f"{derivative}: {kind}: must have the structure {expected}; got {own}"
            )
        return applied(known, leaves)  # type: ignore[no-any-return]

    # The linear map runs hooks of the first program, which deletes them with itself.
    mapped.computed = computed  # type: ignore[attr-defined]

    @_hints.with_hints
    def pull(cotangents: Any, /) -> tuple[Any, ...]:
        return tuple(structure.unflatten(mapped("cotangents", cotangents, result_structure)))

    @_hints.with_hints
    def push(*tangents: Any) -> Any:
        if len(tangents) != len(primals):
            raise ArgumentError(
                f"linearize: tangents: must be {len(primals)}, one for each argument of {name}; "
                f"got {len(tangents)}"
            )
        return result_structure.unflatten(
            mapped("tangents", positional.dynamic_arguments(tangents), structure)
        )

    return (result, pull if reverse else push, *aux)


def _matrix(
    derivative: str,
    function: Callable[P, Any],
    argnums: Argument | Sequence[Argument],
    has_aux: bool,
    forward: bool | None,
) -> Function[P, Any]:
    """Return a function that computes a Jacobian."""
    spec = spec_of(function, derivative)
    name = name_of(spec.function)

    def matrix(*args: Any, **kwargs: Any) -> Any:
        selected = SelectedArguments(derivative, spec.function, argnums, args, kwargs)
        called = selected.call(spec.function)
        # In forward mode, no direction has vectorized axes.
        tangents: list[Any] | None = [] if forward else None
        traced = _trace(derivative, name, selected.leaves, called, has_aux, tangents)
        outputs, rows = traced.function.jacobian(forward)
        found = traced.structure.unflatten([selected.structure.unflatten(row) for row in rows])
        return (found, traced.answer(outputs)[1]) if has_aux else found

    derived: Function[P, Any] = derived_function(matrix, spec)
    return derived


_hints.install(globals())
