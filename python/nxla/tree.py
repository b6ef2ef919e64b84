"""Containers of tensors, and the nodes of expressions.

Containers are tuples, lists, dicts, named tuples, dataclasses and registered classes. A value that
is not a container, tensor, number or array (None, a string, a function) belongs to the structure:
`unflatten` and `map` return it unchanged.

An expression is a graph: `scope_ids` lists its nodes, `apply_args` visits the operands of a node,
`put_args` recreates a node with other operands, and `rewrite` recreates a whole expression.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import copy
from itertools import accumulate, pairwise
from types import NoneType

from nxla import _core, _hints
from nxla._core import Expression, Node, TreeDef, register_container
from nxla._values import as_tensor, kind_of, require_callable
from nxla.errors import ArgumentError, ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal, TypeVar

    from nxla._core import Tensor
    from nxla._types import TensorLike

    S = TypeVar("S")

__all__ = [
    "TreeDef",
    "apply_args",
    "flatten",
    "leaves",
    "map",
    "put_args",
    "ravel",
    "register_container",
    "rewrite",
    "scope_ids",
    "unflatten",
]


def flatten(tree: Any, /) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a container and its structure.

    The entries of a dict with string keys are sorted by key, so two dicts with the same keys have
    the same structure. An `OrderedDict` and a `defaultdict` keep their order.

    Parameters
    ----------
    tree : container
        Tensors, traced values, numbers and arrays, at any depth.

    Returns
    -------
    leaves : list
        The tensors, traced values, numbers and arrays.
    structure : TreeDef
        The structure, for `unflatten`.

    Examples
    --------
    >>> import nxla as nx
    >>> leaves, structure = nx.tree.flatten({"b": 2, "a": (1, "kept")})
    >>> leaves
    [1, 2]
    >>> nx.tree.unflatten(structure, [10, 20])
    {'a': (10, 'kept'), 'b': 20}
    """
    return _core.tree_flatten(tree)


def _check_class(what: str, value: object, *classes: type) -> None:
    """Raise an error if an argument is not an instance of one of the classes."""
    if not isinstance(value, classes):
        expected = " or ".join(each.__name__ for each in classes)
        raise ArgumentError(f"{what}: must be of type {expected}; got {kind_of(value)}")


def unflatten(structure: TreeDef, leaves: Iterable[Any], /) -> Any:
    """Insert leaves into a structure; the inverse of `flatten`.

    Parameters
    ----------
    structure : TreeDef
        The structure that `flatten` returned.
    leaves : iterable
        One leaf for each position of the structure, in order.

    Returns
    -------
    container
        The container, in which the leaves may be any objects.

    Raises
    ------
    ArgumentError
        If the number of leaves does not match the structure.

    Examples
    --------
    >>> import nxla as nx
    >>> leaves, structure = nx.tree.flatten({"a": 1, "b": (2, 3)})
    >>> nx.tree.unflatten(structure, [leaf * 10 for leaf in leaves])
    {'a': 10, 'b': (20, 30)}
    """
    _check_class("unflatten: structure", structure, TreeDef)
    _check_class("unflatten: leaves", leaves, Iterable)
    return structure.unflatten(list(leaves))


def leaves(tree: Any, /) -> list[Any]:
    """Return the leaves of a container.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tree.leaves([1, (2.5, None)])
    [1, 2.5]
    """
    return _core.tree_flatten(tree)[0]


def ordered_keys(entries: dict[Any, Any]) -> list[Any]:
    """Return the keys of a dict in the order in which `flatten` returns its entries.

    Only `flatten` knows this order: it depends on the class of the dict and on its keys.
    """
    numbered = copy(entries)
    for position, key in enumerate(entries):
        numbered[key] = position
    keys = list(entries)
    return [keys[position] for position in leaves(numbered)]


def map(function: Callable[..., Any], tree: Any, /, *rest: Any) -> Any:
    """Apply a function to each leaf, or to corresponding leaves of several containers.

    Parameters
    ----------
    function : callable
        A function from one leaf of each container to a new leaf.
    tree : container
        The first container, whose structure is the structure of the result.
    *rest : container
        More containers of the same structure.

    Returns
    -------
    container
        The new leaves in the structure of `tree`.

    Raises
    ------
    ArgumentError
        If the containers differ in structure.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tree.map(lambda p, g: p - g, {"w": 3, "b": 2}, {"w": 1, "b": 1})
    {'b': 1, 'w': 2}
    """
    require_callable("tree.map", "function", function)
    items, structure = _core.tree_flatten(tree)
    if not rest:
        return structure.unflatten([function(item) for item in items])
    columns = [items]
    for position, other in enumerate(rest, start=1):
        others, other_structure = _core.tree_flatten(other)
        if other_structure != structure:
            raise ArgumentError(
                f"tree.map: container {position}: must have the structure {structure}; got "
                f"{other_structure}"
            )
        columns.append(others)
    return structure.unflatten([function(*row) for row in zip(*columns, strict=True)])


def ravel(tree: Any, /) -> tuple[Tensor, Callable[[TensorLike], Any]]:
    """Return the elements of a container as a vector, and a function that restores the container.

    Parameters
    ----------
    tree : container
        Tensors, traced values, numbers and arrays, at any depth. Their dtypes promote as in
        `nxla.concat`. The vector of a container without leaves has no elements.

    Returns
    -------
    vector : tensor
        The elements of all leaves in the order of `leaves`, of each leaf in row-major order.
    restore : callable
        A function from a vector of the same size to a container with the structure, shapes,
        names and dtypes of `tree`. It raises a `ShapeError` for a vector of another size.

    Notes
    -----
    The promoted dtype rounds integers that it cannot represent: an ``s32`` above 2²⁴ next to an
    ``f32``.

    Examples
    --------
    >>> import nxla as nx
    >>> params = {"w": nx.ones((2, 2)), "b": nx.zeros(2)}
    >>> vector, restore = nx.tree.ravel(params)
    >>> vector.tolist()
    [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    >>> gradient = nx.grad(lambda vector: nx.sum(restore(vector)["w"] ** 2))(vector)
    >>> restore(gradient)["w"].tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    items, structure = _core.tree_flatten(tree)
    tensors = [as_tensor(item) for item in items]
    types = [(x.shape, x.names, x.dtype) for x in tensors]
    offsets = list(accumulate((x.size for x in tensors), initial=0))

    def restore(vector: TensorLike) -> Any:
        x = as_tensor(vector)
        if x.shape != (offsets[-1],):
            raise ShapeError(f"tree.ravel: vector: must have shape {(offsets[-1],)}; got {x.shape}")
        parts = [x[start:stop] for start, stop in pairwise(offsets)]
        typed = zip(parts, types, strict=True)
        return structure.unflatten(
            [
                _core.astype(_core.reshape(part, shape, names=names), dtype)
                for part, (shape, names, dtype) in typed
            ]
        )

    return _core.concat(tensors or [[]], axis=None), restore


def apply_args(
    node: Node,
    function: Callable[[Node, S], tuple[Any, S]],
    state: S,
    /,
    *,
    scope: Literal["scope", "all"] = "scope",
) -> tuple[list[Any], S]:
    """Apply a function with a state to the operands of a node.

    Parameters
    ----------
    node : Node
        A node of ``expression.nodes``.
    function : callable
        A function from an operand and the state to a replacement and the next state.
    state : object
        The initial state.
    scope : str
        With ``"all"``, the results of the programs inside the node (branches, bodies of loops,
        folded functions) are visited after the operands. They are not replaced: the program of a
        region is closed and uses only operands of the node.

    Returns
    -------
    args : list
        The replacement of each operand, for `put_args`.
    state : object
        The final state.

    Examples
    --------
    >>> import nxla as nx
    >>> (product,) = nx.debug_expr(lambda x, y: x * nx.sin(y))(1.0, 2.0).output_nodes
    >>> nx.tree.apply_args(product, lambda arg, count: (arg.op, count + 1), 0)
    (['parameter', 'sin'], 2)
    """
    _check_class("apply_args: node", node, Node)
    require_callable("apply_args", "function", function)
    args = []
    for operand in node.args:
        answer = function(operand, state)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ArgumentError("apply_args: function: must return (replacement, state)")
        args.append(answer[0])
        state = answer[1]
    if scope == "all":
        for region in node.regions:
            for output in region.output_nodes:
                _, state = function(output, state)
    elif scope != "scope":
        raise ArgumentError(f'apply_args: scope: must be "scope" or "all"; got {scope!r}')
    return args, state


def put_args(node: Node, args: Sequence[TensorLike | Sequence[TensorLike]], /) -> Any:
    """Create the operation of a node with other operands, in the current trace.

    Types are inferred again, so the operands may have other shapes if the operation allows them.

    Parameters
    ----------
    node : Node
        A node of any expression.
    args : sequence of tensor_like
        One value for each operand of the node; the operation is applied to each entry of vectorized
        values. For an ``elem`` node, the operand is the tuple of results that `put_args` returned.

    Returns
    -------
    tensor, or tuple of them
        A tuple if the operation has several results.

    Raises
    ------
    ArgumentError
        If the number of operands differs, or the node is an input.
    ShapeError, DTypeError
        If the operation rejects the operands.
    TraceError
        Outside a traced function.

    Examples
    --------
    >>> import nxla as nx
    >>> (node,) = nx.debug_expr(lambda x: nx.sum(x, axis=0))(nx.ones((2, 3))).output_nodes
    >>> nx.jit(lambda x: nx.tree.put_args(node, [x]))(nx.ones((5,))).item()
    5.0
    """
    return _core.put_args(node, args)


def scope_ids(what: Expression | Node, ids: dict[int, str] | None = None, /) -> dict[int, str]:
    """Return the ids and operations of the nodes from which a value is computed.

    Constants are omitted. Programs inside nodes, such as branches and the bodies of loops, are
    separate scopes, which ``node.regions`` lists.

    Parameters
    ----------
    what : Expression or Node
        All outputs, or one node.
    ids : dict, optional
        Known nodes of the same expression, which the function extends.

    Returns
    -------
    dict
        Operations by the ids of their nodes; `ids` itself if it is passed.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tree.scope_ids(nx.debug_expr(lambda x: nx.sin(x) * 2)(1.0))
    {0: 'parameter', 2: 'sin', 3: 'multiply'}
    """
    _check_class("scope_ids: what", what, Expression, Node)
    _check_class("scope_ids: ids", ids, dict, NoneType)
    found = {} if ids is None else ids
    pending = what.output_nodes if isinstance(what, Expression) else [what]
    seen = set(found)
    nodes: dict[int, str] = {}
    while pending:
        node = pending.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        if node.op != "constant":
            nodes[node.id] = node.op
        pending.extend(node.args)
    found.update(sorted(nodes.items()))
    return found


def rewrite(expression: Expression, replace: Callable[[Node, list[Any]], Any], /) -> Expression:
    """Rebuild an expression with replacements for some nodes.

    Parameters
    ----------
    expression : Expression
        The original, which is not changed.
    replace : callable
        A function of each node except inputs, operands first, and of the replacements of its
        operands. It returns the replacement of the node, or None to keep the node. For an operation
        with several results the replacement is a tuple.

    Returns
    -------
    Expression
        An expression with the same inputs, and results in the same container with the same
        vectorized axes.

    Examples
    --------
    >>> import nxla as nx
    >>> expression = nx.debug_expr(lambda x: nx.sin(x) + nx.cos(x))(0.0)
    >>> tangents = nx.tree.rewrite(
    ...     expression, lambda node, args: nx.tan(*args) if node.op == "sin" else None
    ... )
    >>> tangents.op_counts()
    {'add': 1, 'cos': 1, 'parameter': 1, 'tan': 1}
    """
    _check_class("rewrite: expression", expression, Expression)
    require_callable("rewrite", "replace", replace)

    def rebuilt() -> Any:
        made: dict[int, Any] = {}
        nodes = expression.nodes
        parameters = {n.attributes["index"]: n for n in nodes if n.op == "parameter"}
        own = len(parameters) - len(expression.captured)
        for index in range(own):
            node = parameters[index]
            template = _core.Template(node.shape, node.dtype, node.names)
            made[node.id] = _core.expr_parameter(template)
        for index, tensor in enumerate(expression.captured, start=own):
            made[parameters[index].id] = tensor
        for node in nodes:
            if node.op == "parameter":
                continue
            args = [made[operand.id] for operand in node.args]
            answer = replace(node, args)
            made[node.id] = put_args(node, args) if answer is None else answer
        return expression.arrange([made[node.id] for node in expression.output_nodes])

    return _core.build_expression(rebuilt, expression)


def _default_dict(
    aux: tuple[Callable[[], Any] | None, tuple[Any, ...]], children: tuple[Any, ...]
) -> defaultdict[Any, Any]:
    factory, keys = aux
    return defaultdict(factory, zip(keys, children, strict=True))


# These classes have an order and a factory, which a plain dict would lose.
register_container(
    OrderedDict,
    lambda entries: (entries.values(), tuple(entries)),
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
)
register_container(
    defaultdict,
    lambda entries: (entries.values(), (entries.default_factory, tuple(entries))),
    _default_dict,
)


_hints.install(globals())
_hints.install_missing_names(globals())
