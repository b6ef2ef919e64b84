"""Decoding the values of golden files.

Numbers and containers become Python objects; other values become instances of the classes in this
module. Only `to_nxla` and its callees use the package under test.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import nxla as nx

SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

#: Nx's names of dtypes that differ from the names in nxla.
DTYPES = {"f8": "f8_e5m2"}


@contextlib.contextmanager
def numbers_of_nx() -> Iterator[None]:
    """Use the dtypes of Nx for scalars combined with integers, and for sums of booleans."""
    before = nx._core.set_numbers_of_nx(True)
    try:
        yield
    finally:
        nx._core.set_numbers_of_nx(before)


@dataclass(frozen=True)
class Data:
    """A tensor as recorded: flat numbers, row by row, vectorized axes first."""

    dtype: str
    shape: tuple[int, ...]
    data: tuple[Any, ...]
    names: tuple[str | None, ...]
    vectorized: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Atom:
    """An Elixir atom."""

    name: str


@dataclass(frozen=True)
class Type:
    """A dtype, which is a type tuple in Nx."""

    dtype: str


@dataclass(frozen=True)
class Fun:
    """The source text of an Elixir function."""

    source: str


@dataclass(frozen=True)
class Template:
    """A tensor without data."""

    dtype: str
    shape: tuple[int, ...]
    names: tuple[str | None, ...]


@dataclass(frozen=True)
class Range:
    """An Elixir range, both ends included."""

    first: int
    last: int
    step: int


@dataclass(frozen=True)
class Keyword:
    """A keyword list."""

    items: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Struct:
    """An Elixir struct other than a tensor."""

    name: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """An error. A `native` error of Erlang or of Nx's reference backend need not be reproduced."""

    message: str
    exception: str
    native: bool


def dtype_name(name: str) -> str:
    """Return the name in nxla of a dtype of Nx."""
    return DTYPES.get(name, name)


def number(value: Any) -> Any:
    """Decode one number: an int, a float, a special float, or the two parts of a complex number."""
    if isinstance(value, list):
        real, imaginary = value
        return complex(number(real), number(imaginary))
    return SPECIAL.get(value, value) if isinstance(value, str) else value


def _names(value: dict[str, Any]) -> tuple[str | None, ...]:
    return tuple(value.get("names") or [None] * len(value["shape"]))


def _tensor(value: dict[str, Any]) -> Data:
    return Data(
        dtype_name(value["type"]),
        tuple(value["shape"]),
        tuple(number(x) for x in value["data"]),
        _names(value),
        tuple((name, size) for name, size in value.get("vectorized_axes", ())),
    )


def _scalar(value: dict[str, Any]) -> Any:
    decoded = number(value["scalar"])
    return float(decoded) if value["kind"] == "float" else decoded


def _keyword(pairs: Any) -> Keyword:
    # A value of a keyword list is a plain integer, atom or tuple, or an encoded value.
    return Keyword(tuple((key, decode(item)) for key, item in pairs))


#: Keys that identify the kind of a JSON object, with their decoders. The first matching key
#: decides.
_KINDS: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("error", lambda v: Failure(v["error"], v["exception"], v.get("native", False))),
    ("template", lambda v: Template(dtype_name(v["type"]), tuple(v["shape"]), _names(v))),
    ("data", _tensor),
    ("scalar", _scalar),
    ("struct", lambda v: Struct(v["struct"], {k: decode(x) for k, x in v["fields"].items()})),
    ("tuple", lambda v: tuple(decode(x) for x in v["tuple"])),
    ("list", lambda v: [decode(x) for x in v["list"]]),
    ("map", lambda v: {key: decode(x) for key, x in v["map"].items()}),
    ("keyword", lambda v: _keyword(v["keyword"])),
    ("range", lambda v: Range(*v["range"])),
    ("atom", lambda v: Atom(v["atom"])),
    ("type", lambda v: Type(dtype_name(v["type"]))),
    ("string", lambda v: v["string"]),
    ("hex", lambda v: bytes.fromhex(v["hex"])),
    ("fun", lambda v: Fun(v["fun"])),
]


def decode(value: Any) -> Any:
    """Decode a value; lists, numbers, strings (atoms), booleans and null need no wrapper object."""
    if isinstance(value, list):
        return [decode(x) for x in value]
    if not isinstance(value, dict):
        return value
    for key, read in _KINDS:
        if key in value:
            return read(value)
    raise ValueError(f"unknown kind of value, with keys {sorted(value)}")


def tensors(value: Any) -> list[Data]:
    """List the tensors inside a decoded value, in order."""
    if isinstance(value, Data):
        return [value]
    if isinstance(value, list | tuple):
        return [found for x in value for found in tensors(x)]
    if isinstance(value, dict):
        return [found for x in value.values() for found in tensors(x)]
    return []


def replace(value: Any, change: Callable[[Data], Any]) -> Any:
    """Replace every tensor inside a decoded value by `change(tensor)`."""
    if isinstance(value, Data):
        return change(value)
    if isinstance(value, list):
        return [replace(x, change) for x in value]
    if isinstance(value, tuple):
        return tuple(replace(x, change) for x in value)
    if isinstance(value, dict):
        return {key: replace(x, change) for key, x in value.items()}
    return value


def to_nxla(value: Data) -> nx.Tensor:
    """Create the recorded tensor."""
    sizes = [size for _, size in value.vectorized]
    result = nx.reshape(nx.tensor(list(value.data), value.dtype), (*sizes, *value.shape))
    if value.vectorized:
        result = nx.vectorize(result, [name for name, _ in value.vectorized])
    if any(value.names):
        result = nx.rename(result, list(value.names))
    return result
