"""Functions of Elixir's standard modules: collections, strings and numbers.

Lists, ranges and maps can be enumerated; a map yields pairs in the order of its keys.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from golden.elixir.errors import ElixirError, Unsupported
from golden.elixir.inspect import inspect, to_string
from golden.elixir.values import Atom, Range, is_keyword, truthy

Function = Callable[..., Any]


def quotient(left: int, right: int) -> int:
    """Divide integers, rounding toward zero."""
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def remainder(left: int, right: int) -> int:
    """Return the remainder of `quotient`."""
    return left - right * quotient(left, right)


def make_range(first: int, last: int, step: int | None = None) -> Range:
    """Return the range ``first..last``, which counts down if ``last`` is smaller."""
    return Range(first, last, step if step is not None else 1 if first <= last else -1)


def power(left: Any, right: Any) -> Any:
    """Return ``left ** right``, an integer for integers with an integer power."""
    return left**right


def items(collection: Any) -> list[Any]:
    """Return the items of a collection as a list."""
    if isinstance(collection, dict):
        return [(key, collection[key]) for key in sorted(collection)]
    return list(collection)


def _required(value: Any, key: Any) -> Any:
    if value is None:
        raise ElixirError(f"key {inspect(key)} not found", "KeyError")
    return value[0]


# --- Enum ---


def _reduce(collection: Any, *rest: Any) -> Any:
    source = iter(items(collection))
    *initial, function = rest
    total = initial[0] if initial else next(source)
    for item in source:
        total = function(item, total)
    return total


def _map_reduce(collection: Any, total: Any, function: Function) -> Any:
    made = []
    for item in items(collection):
        result, total = function(item, total)
        made.append(result)
    return made, total


def _reduce_while(collection: Any, total: Any, function: Function) -> Any:
    for item in items(collection):
        word, total = function(item, total)
        if word == "halt":
            break
    return total


def _scan(collection: Any, *rest: Any) -> Any:
    *initial, function = rest
    steps = itertools.accumulate(
        items(collection), lambda total, item: function(item, total), initial=(initial or [None])[0]
    )
    return list(steps)[len(initial) :] if initial else list(steps)[0:]


def _zip_with(first: Any, *rest: Any) -> Any:
    *others, function = rest
    if not others:
        return [function(list(group)) for group in zip(*map(items, first), strict=False)]
    return [function(*group) for group in zip(items(first), items(others[0]), strict=False)]


def _zip(first: Any, *rest: Any) -> Any:
    given = [first, *rest] if rest else first
    return [tuple(group) for group in zip(*map(items, given), strict=False)]


def _selected(collection: Any, *function: Function) -> list[Any]:
    return [x for x in items(collection) if truthy(function[0](x) if function else x)]


def _slice(collection: Any, start: Any, *amount: int) -> Any:
    given = items(collection)
    if not isinstance(start, Range):
        start = start + len(given) if start < 0 else start
        return given[start : start + amount[0]]
    first, last = (x + len(given) if x < 0 else x for x in (start.first, start.last))
    return given[first : last + 1 : start.step]


def _sort(collection: Any, order: Any = "asc") -> Any:
    if callable(order):
        return sorted(
            items(collection),
            key=functools.cmp_to_key(lambda a, b: -1 if truthy(order(a, b)) else 1),
        )
    return sorted(items(collection), reverse=order == "desc")


def _grouped(collection: Any, key: Function, value: Function = lambda x: x) -> Any:
    groups: dict[Any, list[Any]] = {}
    for item in items(collection):
        groups.setdefault(key(item), []).append(value(item))
    return groups


def _chunks(collection: Any, count: int, step: int | None = None, *_: Any) -> Any:
    given = items(collection)
    return [given[at : at + count] for at in range(0, len(given), step or count)]


def _at(collection: Any, index: int, default: Any = None) -> Any:
    given = items(collection)
    return given[index] if -len(given) <= index < len(given) else default


def _into(collection: Any, target: Any, function: Function = lambda x: x) -> Any:
    given = [function(item) for item in items(collection)]
    return {**target, **dict(given)} if isinstance(target, dict) else target + given


ENUM: dict[str, Function] = {
    "all?": lambda c, f=truthy: all(truthy(f(x)) for x in items(c)),
    "any?": lambda c, f=truthy: any(truthy(f(x)) for x in items(c)),
    "at": _at,
    "chunk_every": _chunks,
    "concat": lambda c, *more: [
        x for part in ([c, *more] if more else items(c)) for x in items(part)
    ],
    "count": lambda c, *f: len(_selected(c, *f)) if f else len(items(c)),
    "dedup": lambda c: [key for key, _ in itertools.groupby(items(c))],
    "drop": lambda c, n: items(c)[n:] if n >= 0 else items(c)[:n],
    "each": lambda c, f: [[f(x) for x in items(c)], Atom("ok")][1],
    "empty?": lambda c: not items(c),
    "fetch!": lambda c, index: items(c)[index],
    "filter": _selected,
    "find": lambda c, f: next((x for x in items(c) if truthy(f(x))), None),
    "find_index": lambda c, f: next((i for i, x in enumerate(items(c)) if truthy(f(x))), None),
    "flat_map": lambda c, f: [y for x in items(c) for y in items(f(x))],
    "frequencies": lambda c: {key: len(group) for key, group in _grouped(c, lambda x: x).items()},
    "group_by": _grouped,
    "into": _into,
    "join": lambda c, by="": by.join(to_string(x) for x in items(c)),
    "map": lambda c, f: [f(x) for x in items(c)],
    "map_join": lambda c, by, f: by.join(to_string(f(x)) for x in items(c)),
    "map_reduce": _map_reduce,
    "max": lambda c: max(items(c)),
    "max_by": lambda c, f: max(items(c), key=f),
    "member?": lambda c, x: x in items(c),
    "min": lambda c: min(items(c)),
    "min_by": lambda c, f: min(items(c), key=f),
    "product": lambda c: math.prod(items(c)),
    "reduce": _reduce,
    "reduce_while": _reduce_while,
    "reject": lambda c, f: [x for x in items(c) if not truthy(f(x))],
    "reverse": lambda c: items(c)[::-1],
    "scan": _scan,
    "slice": _slice,
    "sort": _sort,
    "sort_by": lambda c, f, order="asc": sorted(items(c), key=f, reverse=order == "desc"),
    "split": lambda c, n: (items(c)[:n], items(c)[n:]),
    "sum": lambda c: sum(items(c)),
    "take": lambda c, n: (
        list(itertools.islice(iter(c if not isinstance(c, dict) else items(c)), n))
        if n >= 0
        else items(c)[n:]
    ),
    "to_list": items,
    "uniq": lambda c: list(dict.fromkeys(items(c))),
    "unzip": lambda c: tuple(list(part) for part in zip(*items(c), strict=True)) or ([], []),
    "with_index": lambda c, start=0: [
        start(x, i) if callable(start) else (x, i + start) for i, x in enumerate(items(c))
    ],
    "zip": _zip,
    "zip_reduce": lambda a, b, total, f: _reduce(_zip(a, b), total, lambda x, t: f(*x, t)),
    "zip_with": _zip_with,
}


def _iterate(start: Any, function: Function) -> Iterable[Any]:
    while True:
        yield start
        start = function(start)


STREAM: dict[str, Function] = {
    **{name: ENUM[name] for name in ("map", "filter", "take", "with_index", "zip", "concat")},
    "iterate": _iterate,
    "cycle": lambda c: itertools.cycle(items(c)),
    "repeatedly": lambda f: (f() for _ in itertools.count()),
}

# --- List, Tuple, Map, Keyword ---


def _flatten(nested: Any) -> list[Any]:
    return [y for x in nested for y in (_flatten(x) if isinstance(x, list) else [x])]


def _with(given: Sequence[Any], index: int, *inserted: Any, over: int = 0) -> Any:
    index = index + len(given) + (1 - over) if index < 0 else index
    changed = [*given[:index], *inserted, *given[index + over :]]
    return tuple(changed) if isinstance(given, tuple) else changed


LIST: dict[str, Function] = {
    "delete_at": lambda c, index: _with(c, index, over=1),
    "duplicate": lambda x, n: [x] * n,
    "first": lambda c, default=None: c[0] if c else default,
    "flatten": _flatten,
    "foldl": _reduce,
    "foldr": lambda c, total, f: _reduce(c[::-1], total, f),
    "insert_at": _with,
    "last": lambda c, default=None: c[-1] if c else default,
    "replace_at": lambda c, index, x: _with(c, index, x, over=1),
    "to_tuple": tuple,
    "update_at": lambda c, index, f: _with(c, index, f(c[index]), over=1),
    "wrap": lambda x: x if isinstance(x, list) else [] if x is None else [x],
    "zip": _zip,
}

TUPLE: dict[str, Function] = {
    "append": lambda t, x: (*t, x),
    "delete_at": lambda t, index: _with(t, index, over=1),
    "duplicate": lambda x, n: (x,) * n,
    "insert_at": _with,
    "product": math.prod,
    "sum": sum,
    "to_list": list,
}


def _map_update(given: dict[Any, Any], key: Any, *rest: Any) -> dict[Any, Any]:
    *default, function = rest
    if key not in given and not default:
        raise ElixirError(f"key {inspect(key)} not found", "KeyError")
    return {**given, key: function(given[key]) if key in given else default[0]}


def _new_map(*parts: Any) -> dict[Any, Any]:
    if len(parts) == 2:
        return dict(parts[1](item) for item in items(parts[0]))
    return dict(items(parts[0])) if parts else {}


MAP: dict[str, Function] = {
    "delete": lambda m, key: {k: v for k, v in m.items() if k != key},
    "drop": lambda m, keys: {k: v for k, v in m.items() if k not in keys},
    "fetch!": lambda m, key: _required([m[key]] if key in m else None, key),
    "from_struct": lambda s: s.fields,
    "get": lambda m, key, default=None: m.get(key, default),
    "has_key?": lambda m, key: key in m,
    "keys": sorted,
    "merge": lambda a, b: {**a, **b},
    "new": _new_map,
    "pop": lambda m, key, default=None: (m.get(key, default), MAP["delete"](m, key)),
    "put": lambda m, key, value: {**m, key: value},
    "put_new": lambda m, key, value: {key: value, **m},
    "replace!": lambda m, key, value: _map_update(m, key, lambda _: value),
    "take": lambda m, keys: {k: v for k, v in m.items() if k in keys},
    "to_list": items,
    "update": _map_update,
    "update!": _map_update,
    "values": lambda m: [m[key] for key in sorted(m)],
}


def _get(options: Any, key: Any, default: Any = None) -> Any:
    return next((value for name, value in options if name == key), default)


def _without(options: Any, keys: Any) -> Any:
    return [(name, value) for name, value in options if name not in keys]


def merge_options(options: Any, known: Any) -> Any:
    """Check options and fill in defaults: ``keyword!(opts, [:required, key: default])``."""
    if not is_keyword(options):
        raise ElixirError(f"expected a keyword list, got: {inspect(options)}", "ArgumentError")
    names = [item[0] if isinstance(item, tuple) else item for item in known]
    for key, _ in options:
        if key not in names:
            raise ElixirError(
                f"unknown key :{key} in {inspect(options)}, expected one of {inspect(names)}",
                "ArgumentError",
            )
    merged = dict(item for item in known if isinstance(item, tuple))
    merged.update(options)
    return list(merged.items())


KEYWORD: dict[str, Function] = {
    "delete": lambda o, key: _without(o, [key]),
    "drop": _without,
    "fetch!": lambda o, key: _required(next(([v] for k, v in o if k == key), None), key),
    "get": _get,
    "has_key?": lambda o, key: any(name == key for name, _ in o),
    "keys": lambda o: [name for name, _ in o],
    "keyword?": is_keyword,
    "merge": lambda a, b: _without(a, [name for name, _ in b]) + b,
    "new": lambda *o: list(o[0]) if o else [],
    "pop": lambda o, key, default=None: (_get(o, key, default), _without(o, [key])),
    "pop!": lambda o, key: (KEYWORD["fetch!"](o, key), _without(o, [key])),
    "put": lambda o, key, value: [(key, value), *_without(o, [key])],
    "put_new": lambda o, key, value: o if KEYWORD["has_key?"](o, key) else [(key, value), *o],
    "split": lambda o, keys: ([(k, v) for k, v in o if k in keys], _without(o, keys)),
    "take": lambda o, keys: [(name, value) for name, value in o if name in keys],
    "update!": lambda o, key, f: [(k, f(v) if k == key else v) for k, v in o],
    "validate!": merge_options,
    "values": lambda o: [value for _, value in o],
}

# --- strings and numbers ---


def _parsed(read: Callable[[str], Any]) -> Function:
    def parse(text: str) -> Any:
        try:
            return (read(text), "")
        except ValueError:
            return Atom("error")

    return parse


STRING: dict[str, Function] = {
    "contains?": lambda s, part: part in s,
    "downcase": str.lower,
    "duplicate": lambda s, n: s * n,
    "ends_with?": lambda s, part: s.endswith(part),
    "length": len,
    "replace": lambda s, old, new, *_: s.replace(old, new),
    "reverse": lambda s: s[::-1],
    "split": lambda s, by=None, *_: s.split(by),
    "starts_with?": lambda s, part: s.startswith(part),
    "to_atom": Atom,
    "to_float": float,
    "to_integer": int,
    "trim": str.strip,
    "upcase": str.upper,
}

INTEGER: dict[str, Function] = {
    "digits": lambda n: [int(x) for x in str(n)],
    "floor_div": operator.floordiv,
    "gcd": math.gcd,
    "is_even": lambda n: n % 2 == 0,
    "is_odd": lambda n: n % 2 == 1,
    "mod": operator.mod,
    "parse": _parsed(int),
    "pow": operator.pow,
    "to_string": str,
}

FLOAT: dict[str, Function] = {
    "ceil": lambda x, digits=0: math.ceil(x * 10**digits) / 10**digits,
    "floor": lambda x, digits=0: math.floor(x * 10**digits) / 10**digits,
    "parse": _parsed(float),
    "pow": operator.pow,
    "round": lambda x, digits=0: round(x, digits),
}

COMPLEX: dict[str, Function] = {
    "abs": abs,
    "add": operator.add,
    "conjugate": lambda z: complex(z).conjugate(),
    "divide": operator.truediv,
    "from_polar": lambda r, phi: complex(r * math.cos(phi), r * math.sin(phi)),
    "imag": lambda z: complex(z).imag,
    "multiply": operator.mul,
    "negate": operator.neg,
    "new": lambda real, imag=0.0: complex(real, imag),
    "phase": lambda z: math.atan2(complex(z).imag, complex(z).real),
    "power": operator.pow,
    "real": lambda z: complex(z).real,
    "subtract": operator.sub,
}

MATH: dict[str, Function] = {
    **{
        name: getattr(math, name)
        for name in ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "pow")
    },
    **{name: getattr(math, name) for name in ("sinh", "cosh", "asin", "acos", "atan", "atan2")},
    **{name: getattr(math, name) for name in ("erf", "erfc", "floor", "ceil", "fmod")},
    "pi": lambda: math.pi,
}

BITWISE: dict[str, Function] = {
    "band": operator.and_,
    "bor": operator.or_,
    "bxor": operator.xor,
    "bnot": operator.invert,
    "bsl": operator.lshift,
    "bsr": operator.rshift,
}

MODULES: dict[str, dict[str, Function]] = {
    "Enum": ENUM,
    "Stream": STREAM,
    "List": LIST,
    "Tuple": TUPLE,
    "Map": MAP,
    "Keyword": KEYWORD,
    "String": STRING,
    "Integer": INTEGER,
    "Float": FLOAT,
    "Complex": COMPLEX,
    "Bitwise": BITWISE,
    ":math": MATH,
    "Access": {"get": lambda c, key, default=None: _access(c, key, default)},
    "Atom": {"to_string": str},
    "Function": {"identity": lambda x: x},
    "IO": {"iodata_to_binary": lambda data: data},
    "Range": {"new": make_range, "size": len},
}


def _access(container: Any, key: Any, default: Any) -> Any:
    found = container.get(key) if isinstance(container, dict) else _get(container, key)
    return default if found is None else found


def call(module: str, name: str, args: Sequence[Any]) -> Any:
    """Call a function of one of Elixir's modules."""
    found = MODULES.get(module, {}).get(name)
    if found is None:
        raise Unsupported(f"{module}.{name}/{len(args)}")
    return found(*args)
