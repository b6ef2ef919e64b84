"""Containers of every kind, nested at random, through functions, derivatives, vmap and bytes."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import nxla as nx
from fuzz.driver import Failure, main

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator


class Pair(NamedTuple):
    """A named tuple."""

    first: Any
    second: Any


@dataclasses.dataclass
class Record:
    """A dataclass."""

    left: Any
    right: Any


class Box:
    """A user-defined class."""

    def __init__(self, item: Any) -> None:
        self.item = item


nx.register_container(Box, lambda box: ([box.item], None), lambda _, items: Box(*items))


def generate(rng: random.Random, depth: int = 0) -> Any:
    """Create a description: a kind and its children, or a number for a leaf."""
    if depth > 4 or rng.random() < 0.25 + 0.1 * depth:
        return rng.choice([None, "tensor", "scalar", "int", "bool", "vector"])
    kind = rng.choice(["tuple", "list", "dict", "pair", "record", "box", "ordered"])
    count = {"pair": 2, "record": 2, "box": 1}.get(kind, rng.randint(0, 3))
    return [kind, [generate(rng, depth + 1) for _ in range(count)]]


def built(case: Any) -> Any:
    if isinstance(case, str) or case is None:
        return {
            "tensor": lambda: nx.tensor([1.5, 2.5]),
            "scalar": lambda: 2.5,
            "int": lambda: 3,
            "bool": lambda: True,
            "vector": lambda: nx.tensor([1, 2, 3], "s16"),
            None: lambda: None,
        }[case]()
    kind, children = case
    items = [built(child) for child in children]
    keys = [f"k{at}" for at in range(len(items))]
    return {
        "tuple": lambda: tuple(items),
        "list": lambda: items,
        "dict": lambda: dict(zip(keys, items, strict=True)),
        "ordered": lambda: collections.OrderedDict(zip(keys, items, strict=True)),
        "pair": lambda: Pair(*items),
        "record": lambda: Record(*items),
        "box": lambda: Box(*items),
    }[kind]()


def shape_of(value: Any) -> Any:
    """Describe a value; leaves are described by their numbers."""
    if isinstance(value, Pair):
        return ["pair", [shape_of(item) for item in value]]
    if isinstance(value, tuple | list):
        return [type(value).__name__, [shape_of(item) for item in value]]
    if isinstance(value, dict):
        return ["dict", sorted(value), [shape_of(value[key]) for key in sorted(value)]]
    if isinstance(value, Record):
        return ["record", [shape_of(value.left), shape_of(value.right)]]
    if isinstance(value, Box):
        return ["box", [shape_of(value.item)]]
    if value is None:
        return None
    return nx.tensor(value).tolist()


def check(case: Any) -> int:
    value = built(case)
    expected = shape_of(value)
    try:
        ways = {
            "jit": lambda: nx.jit(lambda x: x, compiler="evaluator")(value),
            "bytes": lambda: nx.deserialize(nx.serialize(value)),
            "cond": lambda: nx.jit(
                lambda p, x: nx.cond(p, lambda x: x, lambda x: x, x), compiler="evaluator"
            )(True, value),
            "loop": lambda: nx.jit(
                lambda x: nx.fori(0, 2, lambda i, x: x, x), compiler="evaluator"
            )(value),
        }
        for way, result in ways.items():
            found = shape_of(result())
            if found != expected:
                raise Failure(f"{way} returns {found}, not {expected}")
    except Failure:
        raise
    except BaseException as raised:
        raise Failure(f"raises {type(raised).__name__}: {raised}") from raised
    return len(ways)


def smaller(case: Any) -> Iterator[Any]:
    if not isinstance(case, list):
        return
    kind, children = case
    yield from children
    for at, child in enumerate(children):
        if kind not in ("pair", "record", "box"):
            yield [kind, children[:at] + children[at + 1 :]]
        for less in smaller(child):
            yield [kind, [*children[:at], less, *children[at + 1 :]]]
        if child is not None:
            yield [kind, [*children[:at], None, *children[at + 1 :]]]


if __name__ == "__main__":
    main(["containers"])
