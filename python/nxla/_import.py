"""Import StableHLO modules, JAX functions and ONNX models as functions of nxla."""

from __future__ import annotations

import functools
import math
import os

from nxla import _core, _hints
from nxla._arguments import name_of
from nxla._files import path_of
from nxla._values import as_list
from nxla.ahead import restore_containers
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from nxla._core import DType, Expression, Function, Tensor

__all__ = ["from_jax", "from_stablehlo"]


def from_stablehlo(
    source: str | bytes | os.PathLike[str],
    /,
    *,
    weights: Literal["constants", "arguments"] = "constants",
    platform: str | None = None,
    **options: Any,
) -> Function[..., Any]:
    """Return a StableHLO module as a function of nxla.

    The operations of the module become nodes of expressions. The function can be differentiated,
    printed, drawn and split, and runs on every compiler. JAX, PyTorch/XLA and `nxla.export` write
    such modules.

    A module holds no derivative rules: ``stop_gradient`` and the custom rules of JAX functions are
    lost, and nxla differentiates the operations of the module. `from_jax` keeps the rules.

    Parameters
    ----------
    source : path, str or bytes
        A file or its content: a module in the textual form of MLIR, which
        ``jax.jit(f).lower(...).as_text()`` returns, a portable artifact in bytecode, or a function
        that JAX serialized, which ``jax.export.export(...)(...).serialize()`` returns.
    weights : {"constants", "arguments"}
        With ``"arguments"``, the constant tensors of floats are values of the first argument, a
        list. The attribute ``weights`` of the function is the list in the module.
    platform : str, optional
        The platform, such as ``"cuda"``, of a function that JAX serialized for several platforms.
        The default is ``"cpu"``, or the first platform.
    **options
        The options of `jit`.

    Returns
    -------
    Function
        A jitted function of one tensor for each input of the function ``@main``, or of the first
        function. It returns one tensor, or a tuple. A function that JAX serialized keeps its
        containers. The attribute ``expression`` is the module.

    Raises
    ------
    FormatError
        If the module is damaged; the error names the line of the text or the byte of the file.
    ArgumentError
        If the module has operations without a counterpart; the error lists all of them with their
        positions. If the module does not name the platform.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.from_stablehlo('''
    ... func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    ...   %0 = stablehlo.multiply %x, %x : tensor<2xf32>
    ...   return %0 : tensor<2xf32>
    ... }''')
    >>> f(nx.tensor([1.0, 2.0])).tolist()
    [1.0, 4.0]
    >>> nx.grad(lambda x: nx.sum(f(x)))(nx.tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    expression, names, values, signature = _read("from_stablehlo", source, weights, platform)
    count = len(expression.inputs) - len(values)

    def call(flat: list[Any]) -> Sequence[Any]:
        run = functools.partial(_core.expr_call, expression)
        return _call(imported.__name__, expression.inputs, flat, names, run)

    def imported(*args: Any, **kwargs: Any) -> Any:
        given, rest = _weights_first(imported.__name__, args, len(values), weights)
        if signature is not None:
            inputs, outputs, kept = signature
            flat: list[Any] = []
            _flatten(imported.__name__, inputs, (rest, kwargs), "arguments", flat)
            return restore_containers(outputs, call([*(flat[at] for at in kept), *given]))
        if len(rest) != count or kwargs:
            raise ArgumentError(
                f"{imported.__name__}: arguments: must be {count} tensors; got {len(rest)}"
                + "".join(f" and {name}" for name in kwargs)
            )
        results = call([*rest, *given])
        return results[0] if len(results) == 1 else results

    return _function(imported, expression, values, weights, options)


def _flatten(op: str, described: Any, value: Any, path: str, leaves: list[Any]) -> None:
    """Append the leaves of containers that have the described structure."""
    if isinstance(described, int):
        leaves.append(value)
        return
    ((kind, inside),) = described.items()
    if kind == "value":
        if value is not None:
            raise ArgumentError(f"{op}: {path}: must be None; got {value!r}")
    elif kind == "dict":
        if not isinstance(value, dict) or set(value) != set(inside):
            got: Any = list(value) if isinstance(value, dict) else type(value).__name__
            raise ArgumentError(f"{op}: {path}: must have the keys {list(inside)}; got {got}")
        for key, item in inside.items():
            _flatten(op, item, value[key], f"{path}[{key!r}]", leaves)
    else:
        if not isinstance(value, (tuple, list)) or len(value) != len(inside):
            got = len(value) if isinstance(value, (tuple, list)) else type(value).__name__
            raise ArgumentError(f"{op}: {path}: must be a {kind} of {len(inside)}; got {got}")
        for at, (item, each) in enumerate(zip(inside, value, strict=True)):
            _flatten(op, item, each, f"{path}[{at}]", leaves)


def from_jax(
    function: Callable[..., Any],
    /,
    *args: Any,
    weights: Literal["constants", "arguments"] = "constants",
    jit_options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Function[..., Any]:
    """Return a function that is written for JAX as a function of nxla.

    JAX traces the function for the types of the arguments. Derivatives follow the rules of JAX,
    including custom rules: JAX lowers the derivatives when the result is traced. If JAX cannot
    differentiate the function in reverse mode, as with ``jax.lax.while_loop``, nxla differentiates
    its operations.
    Compiled calls run without JAX, except for the pytrees of arguments and results.

    Parameters
    ----------
    function : callable
        A function of arrays and pytrees of arrays.
    *args, **kwargs
        Arguments, or tensors and templates of nxla with their shapes and dtypes.
    weights : {"constants", "arguments"}
        With ``"arguments"``, the arrays of floats that the function captures are values of the
        first argument, a list. The attribute ``weights`` of the result is the list.
    jit_options : dict, optional
        The options of `jit`.

    Returns
    -------
    Function
        A jitted function of the same arguments with the same result.

    Raises
    ------
    ImportError
        If JAX is not installed.
    ArgumentError
        If the function has operations without a counterpart, or if a call has arguments of another
        structure.

    Examples
    --------
    >>> import jax.numpy as jnp  # doctest: +SKIP
    >>> f = nx.from_jax(lambda p, x: {"y": jnp.tanh(x @ p["w"])}, params, x)  # doctest: +SKIP
    >>> nx.grad(lambda p: nx.sum(f(p, x)["y"]))(params)["w"]  # doctest: +SKIP
    """
    try:
        import jax
    except ModuleNotFoundError as error:
        why = "from_jax: requires the package jax, which is not installed; run `pip install jax`"
        raise ImportError(why) from error

    from nxla._jax_functions import JaxFunction, hoist_weights

    check_weights("from_jax", weights)
    given, kwargs_given = jax.tree_util.tree_map(_abstract, (args, kwargs))
    traced = jax.jit(function, keep_unused=True).trace(*given, **kwargs_given)
    leaves, structure = jax.tree_util.tree_flatten_with_path((args, kwargs))
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    result_structure = jax.tree_util.tree_structure(traced.out_info)
    if weights == "arguments":
        model, arrays = hoist_weights(traced)
    else:
        model, arrays = JaxFunction(traced), []
    values = [_core.tensor(array) for array in arrays]

    def imported(*args: Any, **kwargs: Any) -> Any:
        given, rest = _weights_first(imported.__name__, args, len(values), weights)
        flat, found = jax.tree_util.tree_flatten((rest, kwargs))
        if found != structure:
            raise ArgumentError(
                f"{imported.__name__}: arguments: must have the structure {structure}; got {found}"
            )
        inputs = model.expression.inputs
        results = _call(imported.__name__, inputs, [*flat, *given], names, model.call)
        return jax.tree_util.tree_unflatten(result_structure, results)

    imported.__name__ = name_of(function)
    return _function(imported, model.expression, values, weights, jit_options or {})


def _abstract(leaf: Any) -> Any:
    """Return the shape and dtype of a tensor or template for JAX; other values are unchanged."""
    import jax
    import numpy as np

    if isinstance(leaf, (_core.Tensor, _core.Template)):
        return jax.ShapeDtypeStruct(leaf.shape, np.dtype(leaf.dtype))
    return leaf


def _read(
    op: str, source: str | bytes | os.PathLike[str], weights: str, platform: str | None = None
) -> tuple[Expression, list[str], list[Tensor], tuple[Any, Any, list[int]] | None]:
    """Return the expression of a module, the names of its inputs, its weights and containers."""
    check_weights(op, weights)
    content, _ = module_bytes(op, source)
    read = _core.read_stablehlo(content, weights == "arguments", platform)
    expression, names, values, signature = read
    named = [name or f"argument {at}" for at, name in enumerate(names)]
    return expression, named, values, signature


def check_weights(op: str, weights: str) -> None:
    """Raise an error unless an option says whether weights are constants or arguments."""
    if weights not in ("constants", "arguments"):
        raise ArgumentError(f"{op}: weights: must be 'constants' or 'arguments'; got {weights!r}")


def module_bytes(op: str, source: str | bytes | os.PathLike[str]) -> tuple[bytes, str]:
    """Return the content of a StableHLO module, and its path or description for errors.

    A string with several lines, with a function or with the start of a module is the module itself.
    Other strings are paths.
    """
    if isinstance(source, str):
        text = source.lstrip()
        if not text or "\n" in text or "func.func" in text or text.startswith("module {"):
            return source.encode(), f"{op}: source"
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), f"{op}: source"
    path = path_of(op, source)
    with open(path, "rb") as file:
        return file.read(), path


def _weights_first(
    op: str, args: tuple[Any, ...], count: int, weights: str
) -> tuple[list[Any], tuple[Any, ...]]:
    """Split the list of weights from the other arguments."""
    if weights == "constants":
        return [], args
    given = as_list(op, "weights", args[0]) if args else []
    if len(given) != count:
        raise ArgumentError(
            f"{op}: weights: must be a list of {count} tensors, the first argument; got "
            f"{len(given)}"
        )
    return given, args[1:]


def _call(
    op: str,
    types: list[tuple[tuple[int, ...], DType]],
    values: list[Any],
    names: list[str],
    function: Callable[[list[Any]], Sequence[Any]],
) -> Sequence[Any]:
    """Call a function of flat lists on values of the types of its inputs."""
    converted: list[Any] = []
    for at, (value, (shape, dtype)) in enumerate(zip(values, types, strict=True)):
        tensor = value if isinstance(value, (_core.Tensor, _core.Expr)) else _core.tensor(value)
        if isinstance(value, (bool, int, float, complex)):
            tensor = _core.astype(tensor, dtype)
        if tuple(tensor.shape) != tuple(shape) or tensor.dtype != dtype:
            name = names[at] if at < len(names) else f"weight {at - len(names)}"
            raise ArgumentError(
                f"{op}: {name}: must be {dtype.name}{list(shape)}; "
                f"got {tensor.dtype.name}{list(tensor.shape)}"
            )
        converted.append(tensor)
    if any(tensor.vectorized_axes for tensor in converted):
        return _call_entries(function, converted)
    return function(converted)


def _call_entries(
    function: Callable[[list[Any]], Sequence[Any]], values: list[Tensor]
) -> tuple[Any, ...]:
    """Add a loop over the entries of vectorized values to the trace."""
    import nxla as nx

    aligned = nx.broadcast_vectors(values)
    axes = aligned[0].vectorized_axes
    sizes = [size for _, size in axes]
    flat = [
        nx.reshape(nx.devectorize(tensor), (math.prod(sizes), *tensor.shape)) for tensor in aligned
    ]
    results = nx.map(lambda *entry: tuple(function(list(entry))), *flat)
    return tuple(nx.revectorize(x, axes, target_shape=x.shape[1:]) for x in results)


def _function(
    imported: Callable[..., Any],
    expression: Expression,
    values: list[Tensor],
    weights: str,
    options: dict[str, Any],
) -> Function[..., Any]:
    """Return the jitted function with its expression and weights."""
    from nxla.transform import jit

    if expression.name and imported.__name__ == "imported":
        imported.__name__ = expression.name
    imported.__qualname__ = imported.__name__
    function: Any = jit(imported, **options)
    function.expression = expression
    if weights == "arguments":
        function.weights = values
    return function  # type: ignore[no-any-return]


_hints.install(globals())
