"""Random programs: inputs, and steps that each name an operation, its operands and its arguments.

A program is plain JSON, so that it can be stored, printed and simplified. NumPy computes each step
during generation, which provides the types and the expected values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import nxla as nx

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

FLOATS = ("f32", "f64")
INTEGERS = ("s8", "u8", "s16", "s32", "u32", "s64", "u64")
NUMPY = {
    "pred": np.bool_,
    "s8": np.int8,
    "u8": np.uint8,
    "s16": np.int16,
    "s32": np.int32,
    "u32": np.uint32,
    "s64": np.int64,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}
NAMES = {np.dtype(kind): name for name, kind in NUMPY.items()}

Array = Any
Values = list[Array]


class Operation(NamedTuple):
    """An operation: its operands and arguments, and its implementations in nxla and NumPy."""

    kinds: str
    arity: int
    ours: Callable[..., Any]
    theirs: Callable[..., Any] | None
    #: Return arguments for operands, or None if the operands do not fit.
    arguments: Callable[[random.Random, Values], dict[str, Any] | None]
    #: True if a small change of the operands changes the result by a small amount.
    smooth: bool


OPERATIONS: dict[str, Operation] = {}


def same(_: random.Random, values: Values) -> dict[str, Any] | None:
    """Operands of one dtype, whose shapes broadcast."""
    if len({value.dtype for value in values}) != 1:
        return None
    try:
        np.broadcast_shapes(*(value.shape for value in values))
    except ValueError:
        return None
    return {}


def one_axis(rng: random.Random, values: Values) -> dict[str, Any] | None:
    (x,) = values
    if x.ndim == 0 or x.size == 0:
        return None
    return {"axis": rng.randrange(x.ndim)}


def some_axes(rng: random.Random, values: Values) -> dict[str, Any] | None:
    (x,) = values
    axes = sorted(rng.sample(range(x.ndim), rng.randint(0, x.ndim))) if x.ndim else []
    if x.size == 0:
        return None
    return {"axis": axes or None, "keepdims": rng.random() < 0.5}


def add(
    name: str,
    kinds: str,
    arity: int,
    arguments: Callable[[random.Random, Values], dict[str, Any] | None] = same,
    *,
    ours: Callable[..., Any] | None = None,
    theirs: Callable[..., Any] | str | None = "",
    smooth: bool = True,
) -> None:
    """Add an operation to the list; by default it has the same name in nxla and NumPy."""
    if isinstance(theirs, str):
        theirs = getattr(np, theirs or name)
    ours = getattr(nx, name) if ours is None else ours
    OPERATIONS[name] = Operation(kinds, arity, ours, theirs, arguments, smooth)


def tupled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pass lists of axes as tuples, because JSON has only lists."""

    def called(*args: Any, axis: Any = None, **rest: Any) -> Any:
        return function(*args, axis=tuple(axis) if isinstance(axis, list) else axis, **rest)

    return called


for _name in ("sin", "cos", "tanh", "arctan", "square", "exp", "negative", "abs"):
    _ours = {"arctan": nx.atan}.get(_name)
    add(_name, "f" if _name not in ("negative", "square", "abs") else "fi", 1, ours=_ours)
for _name in ("floor", "ceil", "sign"):
    add(_name, "f", 1, smooth=False)
add("isnan", "f", 1, smooth=False)
add("sqrt_abs", "f", 1, ours=lambda x: nx.sqrt(nx.abs(x)), theirs=lambda x: np.sqrt(np.abs(x)))
add("log1p_abs", "f", 1, ours=lambda x: nx.log1p(nx.abs(x)), theirs=lambda x: np.log1p(np.abs(x)))
add("sigmoid", "f", 1, theirs=lambda x: (1 / (1 + np.exp(-x))).astype(x.dtype))
for _name in ("add", "subtract", "multiply"):
    add(_name, "fi", 2)
for _name in ("maximum", "minimum"):
    add(_name, "fi", 2)
add("divide", "f", 2, smooth=False)
add("atan2", "f", 2, theirs="arctan2", smooth=False)
add("hypot", "f", 2)


def _floor_divide(x: Any, y: Any) -> Any:
    """Divide an infinity as the Array API standard recommends; NumPy returns NaN."""
    return np.where(np.isinf(x), x / y, np.floor_divide(x, y))


add("floor_divide", "f", 2, theirs=_floor_divide, smooth=False)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    add(_name, "i", 2)
add("bitwise_invert", "i", 1, theirs="invert")
for _name in ("equal", "less", "greater_equal", "not_equal"):
    add(_name, "fip", 2, smooth=False)
for _name in ("logical_and", "logical_or", "logical_xor"):
    add(_name, "fip", 2, smooth=False)
add("logical_not", "fip", 1, smooth=False)


def select(_: random.Random, values: Values) -> dict[str, Any] | None:
    condition, x, y = values
    if condition.dtype != np.bool_:
        return None
    shapes = {x.shape, y.shape, condition.shape}
    return {} if x.dtype == y.dtype and len(shapes) == 1 else None


add("where", "fip", 3, select, smooth=False)
for _name in ("sum", "prod", "max", "min", "mean"):
    _theirs: Any = tupled(getattr(np, _name))
    if _name == "prod":
        add(_name, "f", 1, some_axes, ours=tupled(nx.prod), theirs=_theirs)
    else:
        _kinds = "f" if _name in ("sum", "mean") else "fi"
        add(_name, _kinds, 1, some_axes, ours=tupled(getattr(nx, _name)), theirs=_theirs)
for _name in ("any", "all"):
    add(
        _name,
        "fip",
        1,
        some_axes,
        ours=tupled(getattr(nx, _name)),
        theirs=tupled(getattr(np, _name)),
        smooth=False,
    )
for _name in ("argmax", "argmin"):
    add(_name, "fi", 1, one_axis, theirs=None, smooth=False)
add("cumulative_sum", "f", 1, one_axis, theirs=lambda x, axis: np.cumsum(x, axis, dtype=x.dtype))
add("sort", "fi", 1, one_axis, theirs="sort")
add(
    "argsort",
    "fi",
    1,
    one_axis,
    theirs=lambda x, axis: np.argsort(x, axis, kind="stable"),
    smooth=False,
)
add("flip", "fip", 1, one_axis)
add(
    "roll",
    "fip",
    1,
    lambda rng, values: (
        {"shift": rng.randint(-4, 4)} | one if (one := one_axis(rng, values)) is not None else None
    ),
)
add(
    "expand_dims",
    "fip",
    1,
    lambda rng, values: {"axis": rng.randint(0, values[0].ndim)} if values[0].ndim < 5 else None,
)


def order(rng: random.Random, values: Values) -> dict[str, Any] | None:
    axes = list(range(values[0].ndim))
    rng.shuffle(axes)
    return {"axes": axes}


add("permute_dims", "fip", 1, order, theirs="transpose")


def new_shape(rng: random.Random, values: Values) -> dict[str, Any] | None:
    size = values[0].size
    if size == 0:
        return None
    shape = []
    while size > 1 and len(shape) < 4:
        part = rng.choice([d for d in range(1, size + 1) if size % d == 0])
        shape.append(part)
        size //= part
    return {"shape": [*shape, *([size] if size > 1 else [])]}


add("reshape", "fip", 1, new_shape, theirs=lambda x, shape: np.reshape(x, shape))


def joined(rng: random.Random, values: Values) -> dict[str, Any] | None:
    x, y = values
    if x.ndim == 0 or x.dtype != y.dtype or x.ndim != y.ndim:
        return None
    axis = rng.randrange(x.ndim)
    fits = all(a == b for at, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if at != axis)
    return {"axis": axis} if fits else None


add(
    "concat",
    "fip",
    2,
    joined,
    ours=lambda x, y, axis: nx.concat([x, y], axis=axis),
    theirs=lambda x, y, axis: np.concatenate([x, y], axis),
)


def product(_: random.Random, values: Values) -> dict[str, Any] | None:
    x, y = values
    fits = x.ndim == 2 and y.ndim == 2 and x.shape[1] == y.shape[0] and x.dtype == y.dtype
    return {} if fits else None


add("matmul", "f", 2, product)


def piece(rng: random.Random, values: Values) -> dict[str, Any] | None:
    (x,) = values
    if x.ndim == 0 or x.size == 0:
        return None
    index = []
    for size in x.shape:
        start = rng.randrange(size)
        index.append([start, rng.randint(start, size), rng.choice([1, 1, 2, 3])])
    return {"index": index}


def cut(x: Any, index: list[list[int]]) -> Any:
    return x[tuple(slice(*one) for one in index)]


add("slice", "fip", 1, piece, ours=cut, theirs=cut)


def padded(rng: random.Random, values: Values) -> dict[str, Any] | None:
    (x,) = values
    widths = [[rng.randint(0, 2), rng.randint(0, 2)] for _ in x.shape]
    return {"widths": widths} if x.ndim and x.size < 400 else None


add(
    "pad",
    "fi",
    1,
    padded,
    ours=lambda x, widths: nx.pad(x, 0, [tuple(width) for width in widths]),
    theirs=lambda x, widths: np.pad(x, widths),
)


def window(rng: random.Random, values: Values) -> dict[str, Any] | None:
    (x,) = values
    if not 1 <= x.ndim <= 3 or x.size == 0:
        return None
    return {
        "size": [rng.randint(1, min(3, size)) for size in x.shape],
        "strides": [rng.randint(1, 3) for _ in x.shape],
        "padding": [[rng.randint(0, 2), rng.randint(0, 2)] for _ in x.shape],
    }


def windows(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(x: Any, size: list[int], strides: list[int], padding: list[list[int]]) -> Any:
        pads = [tuple(pad) for pad in padding]
        return function(x, tuple(size), strides=tuple(strides), padding=pads)

    return called


for _name in ("window_sum", "window_max", "window_min", "window_mean"):
    add(_name, "f", 1, window, ours=windows(getattr(nx, _name)), theirs=None)


def scatters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Sends ones, or the numbers from 1, to the extrema of windows."""

    def called(x: Any, size: list[int], strides: list[int], padding: list[list[int]]) -> Any:
        pads = [tuple(pad) for pad in padding]
        shape = nx.window_max(x, tuple(size), strides=tuple(strides), padding=pads).shape
        source = nx.astype(nx.reshape(nx.iota((math.prod(shape),)), shape), x.dtype) + 1
        return function(x, source, 0, tuple(size), strides=tuple(strides), padding=pads)

    return called


for _name in ("window_scatter_max", "window_scatter_min"):
    add(_name, "f", 1, window, ours=scatters(getattr(nx, _name)), theirs=None, smooth=False)


def taken(rng: random.Random, values: Values) -> dict[str, Any] | None:
    (x,) = values
    if x.ndim == 0 or x.size == 0:
        return None
    axis = rng.randrange(x.ndim)
    places = [rng.randrange(x.shape[axis]) for _ in range(rng.randint(1, 4))]
    return {"axis": axis, "places": places}


add(
    "take",
    "fip",
    1,
    taken,
    ours=lambda x, axis, places: nx.take(x, nx.tensor(places), axis=axis),
    theirs=lambda x, axis, places: np.take(x, places, axis),
)


def other_dtype(rng: random.Random, values: Values) -> dict[str, Any] | None:
    if values[0].dtype.kind == "f":
        return {"dtype": rng.choice(FLOATS)}
    if values[0].dtype.kind == "b":
        return {"dtype": rng.choice([*FLOATS, *INTEGERS])}
    return {"dtype": rng.choice(["s64", "f64", "s32", "pred"])}


add(
    "astype",
    "fip",
    1,
    other_dtype,
    ours=lambda x, dtype: nx.astype(x, dtype),
    theirs=lambda x, dtype: x.astype(NUMPY[dtype]),
    # Smooth programs are compared in double precision, which a cast to a narrower dtype would lose.
    smooth=False,
)

KIND = {"f": "f", "i": "i", "u": "i", "b": "p"}

#: Special values and ordinary numbers.
EDGES = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-40, 3e38, 0.5, 2.0, -3.0)


def make_input(rng: random.Random, dtype: str, shape: list[int], special: bool) -> dict[str, Any]:
    count = math.prod(shape)
    if dtype in FLOATS:
        ties = rng.random() < 0.3
        values: list[Any] = [
            rng.choice(EDGES)
            if special and rng.random() < 0.3
            else float(rng.randint(-2, 2))
            if ties
            else round(rng.uniform(-3, 3), 4)
            for _ in range(count)
        ]
        values = [
            str(value) if math.isinf(value) or math.isnan(value) else value for value in values
        ]
    elif dtype == "pred":
        values = [rng.random() < 0.5 for _ in range(count)]
    else:
        info = np.iinfo(NUMPY[dtype])
        edges = [0, 1, int(info.max), int(info.min)]
        low = max(int(info.min), -9)
        values = [
            rng.choice(edges) if rng.random() < 0.2 else rng.randint(low, 9) for _ in range(count)
        ]
    return {"dtype": dtype, "shape": shape, "values": values}


def array_of(given: dict[str, Any]) -> Array:
    values = [float(v) if isinstance(v, str) else v for v in given["values"]]
    with np.errstate(all="ignore"):
        return np.array(values, NUMPY[given["dtype"]]).reshape(given["shape"])


def generate(
    rng: random.Random,
    *,
    steps: int,
    kinds: str = "fip",
    special: bool = True,
    smooth: bool = False,
    dtypes: tuple[str, ...] | None = None,
) -> dict[str, Any]:
    """Return a random program with at most `size` steps."""
    known = dtypes or ("f32", "f32", "f64", "s32", "u8", "s64", "pred", rng.choice(INTEGERS))
    shape = [rng.choice([1, 2, 3, 4]) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3]))]
    inputs = []
    for _ in range(rng.randint(1, 3)):
        other = shape if rng.random() < 0.7 else [rng.choice([1, size]) for size in shape]
        inputs.append(make_input(rng, rng.choice(known), list(other), special))
    values = [array_of(given) for given in inputs]
    program: list[list[Any]] = []
    names = [
        name
        for name, op in OPERATIONS.items()
        if (op.smooth or not smooth) and (not smooth or op.theirs is not None)
    ]
    for _ in range(steps * 8):
        if len(program) >= steps:
            break
        name = rng.choice(names)
        operation = OPERATIONS[name]
        places = [rng.randrange(len(values)) for _ in range(operation.arity)]
        if rng.random() < 0.5:
            places[0] = len(values) - 1
        chosen = [values[place] for place in places]
        if any(
            KIND[value.dtype.kind] not in operation.kinds + ("p" if name == "where" else "")
            or KIND[value.dtype.kind] not in kinds + "p"
            for value in chosen
        ):
            continue
        arguments = operation.arguments(rng, chosen)
        if arguments is None:
            continue
        result = computed(operation, chosen, arguments)
        if result is None or result.size > 2000 or result.dtype not in NAMES:
            continue
        values.append(result)
        program.append([name, places, arguments])
    return {"inputs": inputs, "steps": program}


def computed(operation: Operation, values: Values, arguments: dict[str, Any]) -> Array | None:
    """Return the result of a step by NumPy, or by nxla if NumPy lacks the function."""
    if operation.theirs is None:
        given = [nx.tensor(value) for value in values]
        return np.asarray(operation.ours(*given, **arguments).numpy())
    with np.errstate(all="ignore"):
        return np.asarray(operation.theirs(*values, **arguments))


def run(program: dict[str, Any], values: Values) -> Values:
    """Run the steps of a program on tensors or expressions; return all values."""
    values = list(values)
    for name, places, arguments in program["steps"]:
        values.append(OPERATIONS[name].ours(*(values[place] for place in places), **arguments))
    return values


def smaller(program: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield programs with one step or input fewer, or with simpler inputs."""
    inputs, steps = program["inputs"], program["steps"]
    first = len(inputs)
    for last in range(1, len(steps)):
        yield {"inputs": inputs, "steps": steps[:last]}
    # Replace a step by one of its operands.
    for index in reversed(range(len(steps))):
        for place in dict.fromkeys(steps[index][1]):
            gone = first + index
            moved = {p: place if p == gone else p - (p > gone) for p in range(first + len(steps))}
            rest = [
                [name, [moved[p] for p in places], arguments]
                for at, (name, places, arguments) in enumerate(steps)
                if at != index
            ]
            if rest:
                yield {"inputs": inputs, "steps": rest}
    used = {place for _, places, _ in steps for place in places}
    for index in range(first):
        if first > 1 and index not in used:
            rest = [[name, [p - (p > index) for p in places], args] for name, places, args in steps]
            yield {"inputs": inputs[:index] + inputs[index + 1 :], "steps": rest}
    for index, given in enumerate(inputs):
        for at, value in enumerate(given["values"]):
            for plain in (0, 1):
                if value not in (0, 1, True, False):
                    values = [*given["values"]]
                    values[at] = plain
                    changed = [*inputs]
                    changed[index] = {**given, "values": values}
                    yield {"inputs": changed, "steps": steps}


def show(program: dict[str, Any]) -> str:
    """Print a program as Python code."""
    lines = [
        f"x{index} = nx.tensor(np.array({given['values']}, {given['dtype']!r})"
        f".reshape({given['shape']}))"
        for index, given in enumerate(program["inputs"])
    ]
    for index, (name, places, arguments) in enumerate(program["steps"], len(program["inputs"])):
        given = [f"x{place}" for place in places] + [f"{k}={v!r}" for k, v in arguments.items()]
        lines.append(f"x{index} = {name}({', '.join(given)})")
    return "\n".join(lines)
