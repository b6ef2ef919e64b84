"""Construction of expressions node by node.

`build` calls a function without arguments, which creates the inputs and every node of an
expression. All functions of the package build nodes there as in any traced function, and the
functions of this module create the nodes that have no public function. They work in every traced
function, except for `parameter`, which needs `build`.

>>> import nxla as nx
>>> def area():
...     width = nx.expr.parameter((), "f32")
...     height = nx.expr.parameter((), "f32")
...     return nx.expr.metadata(width * height, inspect="area")
>>> expression = nx.expr.build(area)
>>> for line in expression.lines():
...     print(line)
parameter a:0           f32
parameter b:1           f32
c = multiply a, b       f32
d = metadata c, :area   f32
>>> expression.run(3.0, 4.0).item()
12.0
"""

from __future__ import annotations

import builtins

from nxla import _core, _hints, tree
from nxla._core import Context
from nxla._values import (
    as_count,
    as_int,
    as_list,
    call_as,
    kind_of,
    require_callable,
    template_of,
)
from nxla.errors import ArgumentError, TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from nxla._core import Expression, Template, Tensor
    from nxla._types import DTypeLike, Names, Shape, TensorLike

    S = TypeVar("S")
    T = TypeVar("T")

__all__ = [
    "Context",
    "Fun",
    "block",
    "build",
    "call",
    "cond",
    "constant",
    "context",
    "elem",
    "fun",
    "hook",
    "metadata",
    "parameter",
    "tensor",
    "tuple",
    "while_",
]


def build(function: Callable[[], Any], /) -> Expression:
    """Return the expression that a function without arguments builds.

    Parameters
    ----------
    function : callable
        A function that creates inputs with `parameter` and returns a tensor or a container.

    Returns
    -------
    Expression
        Its inputs are in the order of their positions, and its results in the container that the
        function returned.

    Raises
    ------
    ArgumentError
        If an input with a smaller position is missing.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.expr.build(lambda: nx.expr.parameter((2,), nx.int32) + 1).run(nx.tensor([1, 2])).tolist()
    [2, 3]
    """
    require_callable("build", "function", function)
    return _core.build_expression(function)


def context() -> Context:
    """Open the scope of a loop that is built by hand with `parameter` and `while_`.

    Returns
    -------
    Context
        The scope. Values that depend on its parameters have the context ``"while"``.

    Raises
    ------
    TraceError
        If no function is being traced.

    Examples
    --------
    >>> import nxla as nx
    >>> def doubled():
    ...     start = nx.expr.parameter((), "s32")
    ...     loop = nx.expr.context()
    ...     x = nx.expr.parameter(start, context=loop)
    ...     return nx.expr.while_(start, loop, x, x < 100, x * 2)
    >>> nx.expr.build(doubled).run(3).item()
    192
    """
    return _core.expr_context()


def parameter(
    shape: Shape | TensorLike | Template,
    dtype: DTypeLike | None = None,
    *,
    names: Names | None = None,
    pos: int | None = None,
    context: Context | None = None,
) -> Tensor:
    """Make an input of the expression that is being built, or a parameter of a loop.

    Parameters
    ----------
    shape : int or sequence of int, or tensor, traced value or template
        The shape, with `dtype`; or a value of the same dtype, shape and names.
    dtype : dtype_like, optional
        The element type, with a shape.
    names : sequence of (str or None), optional
        The names of the axes, with a shape.
    pos : int, optional
        The position among the inputs; by default the next one. The same position is the same input.
    context : Context, optional
        The scope of a loop. By default the parameter is an input of the whole expression.

    Returns
    -------
    Tensor
        The traced value of the parameter.

    Raises
    ------
    TraceError
        Outside of `build`, unless there is a context: the inputs of a traced function are its
        arguments.
    ArgumentError
        If the position has another type already, or is beyond the next one of a context.

    Examples
    --------
    >>> import nxla as nx
    >>> def difference():
    ...     right = nx.expr.parameter((2,), "f32", pos=1)
    ...     left = nx.expr.parameter(right, pos=0)
    ...     return left - right
    >>> nx.expr.build(difference).run(nx.ones(2), nx.zeros(2)).tolist()
    [1.0, 1.0]
    """
    if isinstance(shape, _core.Tensor | _core.Expr | _core.Template | _core.Lazy):
        if dtype is not None or names is not None:
            raise ArgumentError(
                "parameter: dtype, names: must not be given with a value, which has both"
            )
        template = template_of(shape)
    elif dtype is None:
        raise ArgumentError(
            "parameter: dtype: must be given with a shape; to take the type of a value, pass a "
            f"tensor, a traced value or a template; got {shape!r}"
        )
    else:
        from nxla.transform import template as template_like

        sizes: Any = shape
        template = call_as("parameter", template_like, sizes, dtype, names=names)
    if pos is not None:
        pos = as_count("parameter", "pos", pos)
    return _core.expr_parameter(template, pos, context)


def constant(value: complex, dtype: DTypeLike | None = None, *, shape: Shape = ()) -> Tensor:
    """Create a node of one scalar, repeated over a shape.

    Parameters
    ----------
    value : number
        A real number, a complex number or a boolean.
    dtype : dtype_like, optional
        The element type; by default ``int32``, ``float32``, ``complex64`` or ``bool``.
    shape : int or sequence of int
        The shape; a scalar by default.

    Returns
    -------
    Tensor
        A traced value with the dtype and the shape.

    Raises
    ------
    ArgumentError
        If the dtype is an integer dtype, and the value is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.expr.build(lambda: nx.expr.constant(2, "f32", shape=(2,))).run().tolist()
    [2.0, 2.0]
    """
    return _core.expr_constant(value, dtype, shape)


def tensor(value: TensorLike, /) -> Tensor:
    """Create a node of a literal tensor, which is part of the program and of its digest.

    A large tensor that a traced function captures becomes a hidden input instead, unless all its
    elements are equal.

    Raises
    ------
    ArgumentError
        If `value` is traced, because traced values have no data.

    Examples
    --------
    >>> import nxla as nx
    >>> print(nx.expr.build(lambda: nx.expr.tensor([1, 2])).op_counts())
    {'tensor': 1}
    """
    return _core.expr_tensor(value)


def metadata(
    value: T,
    /,
    notes: Mapping[str, Any] | None = None,
    *,
    inspect: str | None = None,
    stop_grad: bool = False,
) -> T:
    """Attach notes to a value.

    Parameters
    ----------
    value : tensor or container
        The value; the tensors of a container become one node.
    notes : mapping, optional
        Any mapping. It is in ``node.notes``, and is part of the program and of its digest. Strings,
        numbers, booleans, None, and lists and mappings of them have bytes; an expression with any
        other value cannot be serialized. The names ``inspect`` and ``stop_grad`` mean the arguments
        below.
    inspect : str, optional
        A note that is printed and available as ``node.note``. Without it the node is not printed.
    stop_grad : bool
        If True, the value has no gradient.

    Returns
    -------
    tensor or container
        The value with its notes.

    Raises
    ------
    ArgumentError
        If lists nest more than 32 levels deep; if a name of `notes` is also an argument, or is
        ``custom_grad``, which is the function `nxla.custom_grad`.

    Examples
    --------
    >>> import nxla as nx
    >>> def f(x):
    ...     return nx.expr.metadata(x, {"layer": 3, "sizes": [2, 4], "inspect": "here"}) + 1
    >>> expression = nx.debug_expr(f)(1.0)
    >>> for line in expression.lines():
    ...     print(line)
    parameter a:0           f32
    b = metadata a, :here   f32
    c = add 1, b            f32
    >>> [node.notes for node in expression.nodes if node.op == "metadata"]
    [{'layer': 3, 'sizes': [2, 4]}]
    """
    if notes is not None:
        if not hasattr(notes, "keys"):
            kind = kind_of(notes)
            raise ArgumentError(f"metadata: notes: must be a dict; got {kind}")
        own = dict(notes)
        for name, given in (("inspect", inspect is not None), ("stop_grad", stop_grad)):
            if name in own and given:
                raise ArgumentError(f"metadata: {name}: must not be both a note and an argument")
        if "custom_grad" in own:
            raise ArgumentError(
                "metadata: notes: must not contain 'custom_grad'; use nx.custom_grad for a "
                "custom derivative"
            )
        inspect = own.pop("inspect", inspect)
        stop_grad = own.pop("stop_grad", stop_grad)
        if not (inspect is None or isinstance(inspect, str)):
            raise ArgumentError(f"metadata: inspect: must be a string; got {inspect!r}")
        if not isinstance(stop_grad, bool):
            raise ArgumentError(f"metadata: stop_grad: must be True or False; got {stop_grad!r}")
        notes = own
    return _core.expr_metadata(value, notes, inspect, stop_grad)


def tuple(
    values: Sequence[Any], templates: Sequence[Any] | None = None, /
) -> builtins.tuple[Any, ...]:
    """Return values as a tuple; containers inside stay as they are.

    Parameters
    ----------
    values : sequence
        Tensors and containers of them, such as the results of an operation that has several.
    templates : sequence, optional
        The type that each value must have.

    Returns
    -------
    tuple
        The values, in the same order.

    Raises
    ------
    ArgumentError
        If there are more or fewer templates than values, or a value has another type.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.expr.elem(nx.expr.tuple([(1, 2), 3]), 0)
    (1, 2)
    """
    values = as_list("tuple", "values", values)
    if templates is not None:
        templates = as_list("tuple", "templates", templates)
        if len(templates) != len(values):
            raise ArgumentError(
                f"tuple: templates: must have one for each of {len(values)} values; "
                f"got {len(templates)}"
            )
        from nxla.composite import compatible

        for position, (value, template) in enumerate(zip(values, templates, strict=True)):
            if not compatible(value, template):
                raise ArgumentError(f"tuple: value {position}: must be of type {template!r}")
    return builtins.tuple(values)


def elem(values: Sequence[T], index: int, /) -> T:
    """Return one result of an operation with several results.

    Such operations return a sequence; the function is ``values[index]`` with a check.

    Raises
    ------
    ArgumentError
        If the operation has fewer results.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.expr.elem((10, 20), 1)
    20
    """
    values, index = as_list("elem", "values", values), as_int("elem", "index", index)
    if not 0 <= index < len(values):
        raise ArgumentError(f"elem: index: must be from 0 to {len(values) - 1}; got {index}")
    return values[index]


class Fun:
    """An expression as a function of traced values; see `fun`."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def __call__(self, *args: TensorLike) -> Any:
        """Build the expression's nodes with these operands."""
        return call(self.expression, *args)

    @property
    def __name__(self) -> str:
        """The name of the function that was traced."""
        return self.expression.name or "fun"

    def __repr__(self) -> str:
        types = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in self.expression.inputs)
        return f"<expression of ({types})>"


def fun(function: Callable[..., Any], /, *templates: Any) -> Fun:
    """Trace a function of scalars or tensors once, for several uses.

    Parameters
    ----------
    function : callable
        The function.
    *templates
        The types of its arguments: templates, or values with these types.

    Returns
    -------
    Fun
        A callable that builds the nodes of the function with other operands. `reduce`, `while_` and
        other functions with function arguments accept it.

    Examples
    --------
    >>> import nxla as nx
    >>> larger = nx.expr.fun(nx.maximum, nx.template((), "f32"), nx.template((), "f32"))
    >>> nx.jit(lambda x: nx.reduce(x, 0.0, larger))(nx.tensor([1.0, 5.0, 2.0])).item()
    5.0
    """
    from nxla.transform import debug_expr

    return Fun(debug_expr(function)(*templates))


def call(expression: Expression, /, *args: TensorLike) -> Any:
    """Build the nodes of an expression in the current expression, with operands for its inputs.

    Parameters
    ----------
    expression : Expression
        The result of `build` or `debug_expr`.
    *args : tensor_like
        One operand for each input, with its dtype and shape. If no input has vectorized axes, the
        expression is applied to each entry of vectorized operands.

    Returns
    -------
    tensor or container
        The results of the expression.

    Raises
    ------
    ArgumentError
        If the operands do not match the inputs.
    TraceError
        Outside a traced function.

    Examples
    --------
    >>> import nxla as nx
    >>> square = nx.debug_expr(lambda x: x * x)(2.0)
    >>> nx.jit(lambda x: nx.expr.call(square, nx.expr.call(square, x)))(3.0).item()
    81.0
    """
    return _core.expr_call(expression, args)


def _needs_trace(name: str) -> None:
    if not _core.is_tracing():
        raise TraceError(f"{name}: must be called in a traced function")


def cond(
    clauses: Sequence[builtins.tuple[TensorLike, Callable[[], T]]], otherwise: Callable[[], T], /
) -> T:
    """Create a node that returns the result of the first branch whose predicate is true.

    Parameters
    ----------
    clauses : sequence of (scalar, callable)
        Predicates with their branches.
    otherwise : callable
        The branch for the case that no predicate is true.

    Returns
    -------
    tensor or container
        As for `nxla.cond`.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.jit(lambda x: nx.expr.cond([(x > 0, lambda: x)], lambda: -x))
    >>> f(-2.0).item()
    2.0
    """
    _needs_trace("cond")
    result: T = _core.cond(as_list("cond", "clauses", clauses), otherwise)
    return result


def while_(initial: S, /, *parts: Any) -> S:
    """Create a node that repeats a body while a condition is true.

    Parameters
    ----------
    initial : tensor or container
        The initial state.
    *parts
        ``condition, body``: functions of the state, as for `nxla.while_loop`. Or
        ``context, arg, condition, body``: the scope of the loop from `context`, its parameters in
        the container of `initial`, and the condition and new state that use the parameters.

    Returns
    -------
    tensor or container
        The state for which the condition is false, in the structure of `initial`.

    Raises
    ------
    ArgumentError
        If `arg` does not hold the parameters of the context in their order.

    Examples
    --------
    >>> import nxla as nx
    >>> double = lambda: nx.expr.while_(
    ...     nx.expr.parameter((), "s32"), lambda x: x < 100, lambda x: x * 2
    ... )
    >>> nx.expr.build(double).run(3).item()
    192
    """
    _needs_trace("while_")
    if len(parts) == 4 and isinstance(parts[0], Context):
        context, arg, condition, body = parts
        closed: S = _core.expr_while(initial, context, arg, condition, body)
        return closed
    if len(parts) != 2 or not all(callable(part) for part in parts):
        raise ArgumentError(
            "while_: arguments: must be initial, condition, body (two functions), or initial, "
            f"context, arg, condition, body; got {len(parts) + 1} arguments"
        )
    return _core.while_loop(*parts, initial, "while_")


def hook(
    value: T, name: str | None = None, function: Callable[[Any], object] | None = None, /
) -> T:
    """Create a node that calls a function with a value; see `nxla.hook`.

    Parameters
    ----------
    value : tensor or container
        The value that the function receives and the node returns.
    name : str, optional
        The name of the hook, for functions in the options of the call.
    function : callable, optional
        The default function.

    Returns
    -------
    tensor or container
        The value, traced, with the same shapes and dtypes.

    Raises
    ------
    ArgumentError
        If both the name and the function are missing.

    Examples
    --------
    >>> import nxla as nx
    >>> seen = []
    >>> f = nx.jit(lambda x: nx.expr.hook(x * 2, "double", lambda y: seen.append(y.item())))
    >>> f(1.5).item(), seen
    (3.0, [3.0])
    """
    _needs_trace("hook")
    if name is None and function is None:
        raise ArgumentError("hook: name, function: at least one is required")
    return _core.hook(value, name, function)


def block(
    name: str, function: Callable[..., T], /, *operands: TensorLike, **attributes: object
) -> T:
    """Create a node of a named composite, which compilers may replace by their own implementation.

    Parameters
    ----------
    name : str
        The name that compilers see: ``node.attributes["name"]``.
    function : callable
        A function that computes the composite from tracers of the operands. It may capture values.
    *operands : tensor_like
        The operands.
    **attributes
        Further information for compilers, which is printed and stored as strings.

    Returns
    -------
    tensor or container
        The result of the function. Outside a trace the block is computed immediately.

    Examples
    --------
    >>> import nxla as nx
    >>> def gelu(x):
    ...     exact = lambda x: x * 0.5 * (1.0 + nx.erf(x * 0.5**0.5))
    ...     return nx.expr.block("gelu", exact, x, approximate=False)
    >>> nx.jit(gelu)(0.0).item()
    0.0
    >>> nx.debug_expr(gelu)(0.0).op_counts()
    {'block': 1, 'parameter': 1}
    """
    if not _core.is_tracing():
        from nxla.transform import jit_apply

        # Compilers see the composite in an eager call as well.
        return jit_apply(lambda *inputs: block(name, function, *inputs, **attributes), *operands)
    structures: list[tree.TreeDef] = []

    def body(tracers: list[Tensor]) -> list[Any]:
        leaves, structure = tree.flatten(function(*tracers))
        structures.append(structure)
        return leaves

    texts = [(key, str(value)) for key, value in attributes.items()]
    results = _core.expr_block(name, texts, operands, body)
    made: T = structures[0].unflatten(results)
    return made


_hints.install(globals())
_hints.install_missing_names(globals())
