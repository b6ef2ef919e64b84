"""Ahead-of-time compilation, export and import of functions.

``nx.jit(f).lower(*args)`` returns a `Lowered`, `nxla.export` writes a function as StableHLO, and
`nxla.import_stablehlo` reads one as an `ImportedFunction`.

A file is a StableHLO module in textual form, which other tools can read. Its first line is a
comment that describes arguments and results as JSON.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections import Counter
from typing import NamedTuple

from nxla import _core, tree
from nxla._arguments import name_of
from nxla._files import path_of
from nxla._paths import container_parts, format_path
from nxla._spec import make_function
from nxla._values import template_of, with_article
from nxla.errors import ArgumentError, FormatError, TraceError
from nxla.vectors import devectorize, vectorize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from nxla._core import Compiled, Expression, Function, Template, Tensor

__all__ = ["ImportedFunction", "Lowered"]


class Lowered:
    """A function traced for fixed argument types; returned by ``nx.jit(f).lower``.

    Examples
    --------
    >>> import nxla as nx
    >>> lowered = nx.jit(lambda x: nx.exp(x) + 1.0).lower(nx.template(3))
    >>> len(lowered), lowered.nodes
    (4, {'parameter': 1, 'constant': 1, 'exp': 1, 'add': 1})
    >>> lowered.operations
    {'stablehlo.exponential': 1, 'stablehlo.constant': 1, 'stablehlo.add': 1}
    >>> lowered.compile()(nx.zeros(3)).tolist()
    [2.0, 2.0, 2.0]
    """

    def __init__(
        self,
        function: Function[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        expression: Expression,
    ) -> None:
        self._function = function
        # The caller may change the containers before the program is compiled.
        self._args, self._kwargs = tree.map(lambda leaf: leaf, (args, kwargs))
        #: The program as an expression of nxla.
        self.expression = expression

    def as_text(self, *, portable: bool = True) -> str:
        """Return the program as a StableHLO module.

        Parameters
        ----------
        portable : bool
            If True, return a module that runs anywhere. Otherwise return the module that is
            compiled for the device of the function's options, with custom calls of kernels and
            hooks of the process, which needs a plugin.

        Returns
        -------
        str
            The module, in the textual form of MLIR.

        Raises
        ------
        DeviceError
            If a hook has a listener and `portable` is True.
        """
        return self._stablehlo(portable=portable)[0]

    def _stablehlo(self, *, portable: bool, embed: bool = False) -> tuple[str, list[int]]:
        donated = self._function._donated_leaves(*self._args, **self._kwargs)
        options = self._function._spec.compiler_options  # type: ignore[attr-defined]
        return _core.stablehlo(self.expression, donated, portable, embed, options)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.expression.nodes)

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return f"<nxla function {name_of(self._function)} lowered to {len(self)} nodes>"

    @property
    def digest(self) -> str:
        """The digest of the program, equal for equal programs in every process."""
        return self.expression.digest

    @property
    def nodes(self) -> dict[str, int]:
        """The number of nodes of each operation, outside loops and branches."""
        return dict(Counter(node.op for node in self.expression.nodes))

    @property
    def operations(self) -> dict[str, int]:
        """The number of operations of each kind in the StableHLO module."""
        found = re.finditer(
            r'^\s*(?:%\S+ = )?"?((?:stablehlo|chlo)\.\w+)', self.as_text(), re.MULTILINE
        )
        counted = Counter(match[1] for match in found)
        del counted["stablehlo.return"]
        return dict(counted)

    def compile(self) -> Compiled[Any]:
        """Compile for the types of the arguments.

        Returns
        -------
        Compiled
            It accepts the arguments with tensors; other arguments are fixed. Its methods
            ``cost_analysis`` and ``memory_analysis`` return the figures of the compiler, or
            None.

        Raises
        ------
        ArgumentError
            If a keyword argument contains a tensor.
        """
        from nxla.transform import compile_for

        spec = self._function._spec  # type: ignore[attr-defined]

        @functools.wraps(spec.function)
        def inline(*args: Any, **kwargs: Any) -> Any:
            # A second trace of the function could differ from the program.
            traced = [arg for at, arg in enumerate(args) if at not in spec.positions]
            traced += [kwargs[name] for name in self._kwargs if name not in spec.names]
            return _core.expr_call(self.expression, tree.leaves(traced))

        function = make_function(inline, spec.positions, spec.names, spec.donated, spec.options)
        return compile_for(function, list(self._args), self._kwargs, {})


def lower(function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
    """Trace a function for arguments or templates."""
    return Lowered(function, args, kwargs, function.debug_expr(*args, **kwargs))


#: The first line of a file starts with this string, followed by JSON.
_HEADER = "// nxla.export 1 "


def export(lowered: Lowered, name: str) -> str:
    """Return the content of a file."""
    text, used = lowered._stablehlo(portable=True, embed=True)
    expression = lowered.expression
    _, _, (expected, _), _ = expression._parts()
    inputs: list[dict[str, Any]] = []
    fixed: list[str | dict[str, str]] = []
    for position, (_, _, value) in enumerate(expected):
        if any(isinstance(leaf, _core.Template) for leaf in tree.leaves(value)):
            argument = _split_argument(value)
            inputs += [
                {
                    "path": _label(position) + path,
                    "type": str(leaf),
                    "axes": _Axes(leaf.names, list(leaf.vectorized_axes)),
                }
                for path, leaf in argument.tensors.items()
            ]
            fixed.append(argument.fixed)
        else:
            fixed.append(_describe_fixed(value))
    placeholders = [_Result(number) for number in range(len(expression.outputs))]
    header = {
        "name": name,
        "inputs": inputs,
        "parameters": [name if is_keyword else None for name, is_keyword, _ in expected],
        "fixed": fixed,
        "used": used,
        "outputs": [
            _Axes(result.names, list(result.vectorized_axes))
            for result in result_templates(expression)
        ],
        "results": _describe_containers(expression.arrange(placeholders)),
    }
    return f"{_HEADER}{json.dumps(header)}\n{text}"


class _Result:
    """A placeholder for a result, from which its container is read."""

    def __init__(self, number: int) -> None:
        self.number = number


def result_templates(expression: Expression) -> list[Template]:
    """Return the types of the results of an expression."""
    _, results, _, _ = expression._parts()
    templates: list[Template] = []
    for (shape, dtype), node, result in zip(
        expression.outputs, expression.output_nodes, tree.leaves(results), strict=True
    ):
        # The shape and the names of a node include vectorized axes.
        vectorized = list(result.vectorized_axes)
        count = len(vectorized)
        templates.append(_core.Template(shape[count:], dtype, node.names[count:], vectorized))
    return templates


class _Axes(NamedTuple):
    """The names of the axes of a tensor, and its vectorized axes."""

    names: Sequence[str | None] | None
    vectorized: list[tuple[str, int]]

    @staticmethod
    def from_json(described: Any) -> _Axes:
        """Return the axes that the header of a file describes."""
        names, vectorized = described
        return _Axes(names, [(name, size) for name, size in vectorized])

    def type_of(self, shape: Sequence[int], dtype: Any) -> str:
        """Return the type of a tensor, whose shape includes the vectorized axes."""
        entry = shape[len(self.vectorized) :]
        return str(_core.Template(entry, dtype, self.names, self.vectorized))

    def restore(self, result: Tensor) -> Tensor:
        """Return a result of the module with its axes."""
        if self.names is not None and any(name is not None for name in self.names):
            result = _core.rename(result, [*(None for _ in self.vectorized), *self.names])
        return vectorize(result, self.vectorized) if self.vectorized else result


class _Argument(NamedTuple):
    """The parts of an argument by their paths."""

    tensors: dict[str, Any]
    #: Descriptions of the values that are not inputs of the program.
    fixed: dict[str, str]


def _split_argument(value: Any) -> _Argument:
    """Split an argument into its tensors and its fixed values."""
    argument = _Argument({}, {})
    for path, part, is_leaf in container_parts(value):
        if is_leaf:
            argument.tensors[format_path(path)] = part
        else:
            argument.fixed[format_path(path)] = _describe_fixed(part)
    return argument


def _describe_fixed(value: Any) -> str:
    """Return a string that is equal for equal values, also in another process."""
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}({', '.join(sorted(map(_describe_fixed, value)))})"
    if type(value) is dict:
        items = sorted(f"{key!r}: {_describe_fixed(item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if type(value) is list:
        return f"[{', '.join(map(_describe_fixed, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(_describe_fixed, value))})"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _label(position: int) -> str:
    """Return the name of an argument in the paths of inputs."""
    return f"argument {position}"


def _split_path(path: str) -> tuple[str, str]:
    """Split the path of an input into the label of its argument and the path inside of it."""
    end = min((at for at in map(path.find, "[.") if at >= 0), default=len(path))
    return path[:end], path[end:]


def _describe_containers(value: Any) -> Any:
    """Describe the containers of results as JSON."""
    if isinstance(value, _Result):
        return value.number
    if value is None or isinstance(value, str):
        return {"value": value}
    kind, items = type(value), value
    is_named_tuple = isinstance(value, tuple) and hasattr(kind, "_fields")
    if kind is tuple or kind is list or is_named_tuple:
        name = "list" if kind is list else "tuple"
        return {name: [_describe_containers(item) for item in items]}
    if kind is dict and all(isinstance(key, str) for key in value):
        return {"dict": {key: _describe_containers(item) for key, item in value.items()}}
    raise ArgumentError(
        "export: results: must be tensors, tuples, lists and dicts with string keys; got "
        f"{with_article(kind.__name__)}"
    )


def restore_containers(described: Any, results: Sequence[Tensor]) -> Any:
    """Return results in containers of the described structure."""
    if isinstance(described, int):
        return results[described]
    ((kind, inside),) = described.items()
    if kind == "value":
        return inside
    if kind == "dict":
        return {key: restore_containers(item, results) for key, item in inside.items()}
    items = [restore_containers(item, results) for item in inside]
    return tuple(items) if kind == "tuple" else items


class ImportedFunction:
    """A StableHLO module that is called like a function; returned by `nxla.import_stablehlo`."""

    def __init__(self, text: str, options: dict[str, Any], source: str) -> None:
        self._module = _core.Module(text)
        self._options = options
        self._header = _header(text, source)
        types = [str(_core.Template(*each)) for each in self._module.inputs]
        self._inputs = [(_label(at), kind) for at, kind in enumerate(types)]
        self._axes = [_Axes(None, []) for _ in types]
        if self._header is not None:
            self._inputs = [(each["path"], each["type"]) for each in self._header["inputs"]]
            self._axes = [_Axes.from_json(each["axes"]) for each in self._header["inputs"]]
            used = self._header["used"]
            told = [self._inputs[at][1] for at in used]
            if len(used) == len(types):
                types = [
                    self._axes[at].type_of(*each)
                    for at, each in zip(used, self._module.inputs, strict=True)
                ]
            if told != types:
                raise FormatError(
                    f"{source}: first line: arguments must match the module, ({', '.join(types)}); "
                    f"got ({', '.join(told)})"
                )
        self.__name__ = self._header["name"] if self._header is not None else "main"

    @property
    def text(self) -> str:
        """The module as a string."""
        return self._module.text

    @property
    def inputs(self) -> list[tuple[str, str]]:
        """Path and type of each tensor among the arguments, in order."""
        return list(self._inputs)

    def compile(self) -> None:
        """Compile before the first call."""
        self._module.compile(**self._options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on tensors, arrays and containers of these.

        Raises
        ------
        ArgumentError
            If an argument is missing or unknown, or if the containers of the arguments or the
            types of the tensors do not match the module.
        """
        if _core.is_tracing():
            raise TraceError(
                f"{self.__name__}: must not be called in a trace, because it is imported "
                "StableHLO; call it outside jitted functions, or with nx.runtime_call"
            )
        tensors = [_core.tensor(leaf) for leaf in self._bound(args, kwargs)]
        for input_, axes, tensor in zip(self._inputs, self._axes, tensors, strict=True):
            self._check_type(*input_, axes, tensor)
        used = self._header["used"] if self._header is not None else range(len(tensors))
        entries = [devectorize(tensors[at], keep_names=False) for at in used]
        results = self._module.run(*entries, **self._options)
        if self._header is not None:
            axes_of_results = map(_Axes.from_json, self._header["outputs"])
            restored = [
                axes.restore(result) for axes, result in zip(axes_of_results, results, strict=True)
            ]
            return restore_containers(self._header["results"], restored)
        return results[0] if len(results) == 1 else tuple(results)

    def _check_type(self, path: str, wanted: str, axes: _Axes, tensor: Tensor) -> None:
        """Raise an error if a tensor does not have the type of an input.

        An axis without a name, in the tensor or in the type, may have any name in the other one.
        """
        found = template_of(tensor)
        names = axes.names or [None] * found.ndim
        if len(names) == found.ndim and all(
            None in pair or pair[0] == pair[1] for pair in zip(names, found.names, strict=True)
        ):
            found = _core.Template(found.shape, found.dtype, names, list(found.vectorized_axes))
        if str(found) != wanted:
            raise ArgumentError(f"{self.__name__}: {path}: must be {wanted}; got {found}")

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the leaves of a call in the order of `inputs`."""
        fixed = self._header["fixed"] if self._header is not None else [{}] * len(args)
        found: dict[str, _Argument] = {}
        for position, value in sorted(self._by_position(fixed, args, kwargs).items()):
            label = _label(position)
            if isinstance(fixed[position], str):
                self._check_fixed(label, {"": fixed[position]}, {"": _describe_fixed(value)})
            else:
                found[label] = _split_argument(value)
        count = sum(len(argument.tensors) for argument in found.values())
        if count != len(self.inputs):
            raise ArgumentError(
                f"{self.__name__}: arguments: must be {len(self.inputs)} tensors; got {count}"
            )
        if self._header is None:
            return [leaf for argument in found.values() for leaf in argument.tensors.values()]
        wanted: dict[str, list[str]] = {}
        for path, _ in self.inputs:
            label, inner = _split_path(path)
            wanted.setdefault(label, []).append(inner)
        for label, argument in found.items():
            if argument.tensors.keys() != set(wanted[label]):
                shown = ", ".join(path or "a tensor" for path in wanted[label])
                got = ", ".join(path or "a tensor" for path in argument.tensors)
                raise ArgumentError(
                    f"{self.__name__}: {label}: must contain the parts {shown}; got {got}"
                )
        for position, recorded in enumerate(fixed):
            if isinstance(recorded, dict):
                label = _label(position)
                self._check_fixed(label, recorded, found[label].fixed)
        return [found[label].tensors[path] for label in wanted for path in wanted[label]]

    def _by_position(
        self, fixed: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[int, Any]:
        """Return the arguments of a call by their positions.

        A call contains all arguments, or only those with tensors.
        """
        parameters = self._header["parameters"] if self._header is not None else []
        traced = [position for position, each in enumerate(fixed) if isinstance(each, dict)]
        is_partial = len(args) + len(kwargs) <= len(traced)
        positions = traced if is_partial else list(range(len(fixed)))
        if len(args) > len(positions):
            raise ArgumentError(
                f"{self.__name__}: arguments: must be at most {len(positions)}; got {len(args)}"
            )
        values = dict(zip(positions, args, strict=False))
        for name, value in kwargs.items():
            if name not in parameters:
                raise ArgumentError(
                    f"{self.__name__}: arguments: must not contain the keyword {name!r}; pass "
                    "arguments by position"
                )
            position = parameters.index(name)
            if position in values:
                raise ArgumentError(f"{self.__name__}: {name}: must not be passed twice")
            values[position] = value
        return values

    def _check_fixed(self, label: str, expected: dict[str, str], found: dict[str, str]) -> None:
        """Raise an error unless an argument has the values that the exported program contains."""
        for path in {**expected, **found}:
            if found.get(path) != expected.get(path):
                wanted, got = (each.get(path, "no value") for each in (expected, found))
                raise ArgumentError(f"{self.__name__}: {label}{path}: must be {wanted}; got {got}")

    def __repr__(self) -> str:
        return f"<StableHLO function {self.__name__}({', '.join(kind for _, kind in self.inputs)})>"


def _header(text: str, source: str) -> dict[str, Any] | None:
    """Return the signature in the first line of a file that `nxla.export` wrote."""
    first, _, _ = text.partition("\n")
    if not first.startswith("// nxla.export "):
        return None
    if not first.startswith(_HEADER):
        raise FormatError(f"{source}: first line: must have version 1; got {first[:40]!r}")
    try:
        header = json.loads(first.removeprefix(_HEADER))
        for key in ("name", "parameters", "outputs", "results"):
            header[key]
        labels = {_split_path(each["path"])[0] for each in header["inputs"]}
        traced = (at for at, each in enumerate(header["fixed"]) if isinstance(each, dict))
        if labels != set(map(_label, traced)):
            raise ValueError("inputs")
        [(each["type"], _Axes.from_json(each["axes"])) for each in header["inputs"]]
        [_Axes.from_json(each) for each in header["outputs"]]
        [header["inputs"][at] for at in header["used"]]
        probe: Any = list(range(len(header["outputs"])))
        restore_containers(header["results"], probe)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{source}: first line: must be the JSON of nx.export; {error!r}"
        ) from None
    return header  # type: ignore[no-any-return]


def read_stablehlo(source: str | os.PathLike[str], options: dict[str, Any]) -> ImportedFunction:
    """Read a StableHLO module from a file or a string."""
    from nxla._import import module_bytes

    content, where = module_bytes("import_stablehlo", source)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise FormatError(
            f"{where}: must be StableHLO in textual form; nx.from_stablehlo reads bytecode"
        ) from None
    return ImportedFunction(text, options, where)


def write_stablehlo(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    file: str | os.PathLike[str] | None,
    options: dict[str, Any],
) -> str:
    """Return a function as a StableHLO module, and write it to a file if one is named."""
    text = export(make_function(function, options=options).lower(*args), name_of(function))
    if file is not None:
        with open(path_of("export", file), "w", encoding="utf-8") as opened:
            opened.write(text)
    return text
