"""Every public function with arguments of wrong types, sizes and values.

Every call must return a result or raise an exception of nxla or a built-in exception for invalid
arguments. An internal error, an error of a lower layer and the end of the process are failures.
"""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import numpy as np

import nxla as nx
from fuzz.driver import Failure, main

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

#: Functions that read input, depend on the machine, or change global state.
SKIPPED = frozenset(
    {
        # Its numbers are addresses of code, which it calls.
        "foreign_call",
        "set_default_options",
        "set_global_default_options",
        "default_options",
        "print_value",
        "register_compiler",
        "register_container",
        "clear_caches",
        "debug",
        "load_numpy",
        "load_numpy_archive",
        "serve",
        "hook",
        "attach",
        "observe",
        "release_memory",
        "print_expr",
        "debug_nans",
        "set_cache_limit",
        "compare",
        "global_default_options",
    }
)

#: Arguments by name, so that cases are JSON.
ARGUMENTS: dict[str, Any] = {
    "f32[2,3]": lambda: nx.tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "s32[3]": lambda: nx.tensor([1, 2, 3]),
    "u8[2,2]": lambda: nx.tensor([[1, 2], [3, 250]], "u8"),
    "f32[]": lambda: nx.tensor(1.5),
    "c64[2]": lambda: nx.tensor([1 + 2j, 3.0]),
    "pred[2]": lambda: nx.tensor([True, False]),
    "f32[0,3]": lambda: nx.zeros((0, 3)),
    "f32[2,2]": lambda: nx.tensor([[2.0, 1.0], [1.0, 3.0]]),
    "bf16[3]": lambda: nx.tensor([1.0, 2.0, 3.0], "bf16"),
    "u4[2]": lambda: nx.tensor([1, 2], "u4"),
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1": lambda: 1,
    "2": lambda: 2,
    "2**40": lambda: 2**40,
    "2**62": lambda: 2**62,
    "2**64": lambda: 2**64,
    "-2**63": lambda: -(2**63),
    "10**400": lambda: 10**400,
    "1.5": lambda: 1.5,
    "1j": lambda: 1j,
    "True": lambda: True,
    "None": lambda: None,
    "'x'": lambda: "x",
    "''": lambda: "",
    "'f32'": lambda: "f32",
    "'\\ud800'": lambda: "\ud800",
    "b'ab'": lambda: b"ab",
    "[]": lambda: [],
    "[0]": lambda: [0],
    "[1,0]": lambda: [1, 0],
    "[-1,5]": lambda: [-1, 5],
    "(0,0)": lambda: (0, 0),
    "[(1,1)]": lambda: [(1, 1)],
    "[2**62]": lambda: [2**62],
    "[[1],[2,3]]": lambda: [[1], [2, 3]],
    "{}": lambda: {},
    "{'a':1}": lambda: {"a": 1},
    "object": lambda: object(),
    "type": lambda: int,
    "lambda": lambda: lambda *a: a[0] if a else 0,
    "slice": lambda: slice(0, 2),
    "Ellipsis": lambda: ...,
    "array": lambda: np.ones((2, 2)),
    "strings": lambda: np.array(["a"]),
    "objects": lambda: np.array([object()]),
    "set": lambda: {1, 2},
    "range": lambda: range(3),
    "nx.f32": lambda: nx.float32,
    "key": lambda: nx.random.key(1),
    "expression": lambda: nx.debug_expr(lambda x: x + 1)(nx.tensor(1.0)),
}

#: The limit of the address space, so that huge allocations fail at once.
ADDRESS_SPACE = 8 << 30

ALLOWED = (
    nx.NxlaError,
    TypeError,
    ValueError,
    IndexError,
    OverflowError,
    MemoryError,
    KeyError,
    AttributeError,
    BufferError,
    # Raised by functions that read files.
    FileNotFoundError,
    # Raised by functions that use a package which is not installed.
    ImportError,
    ZeroDivisionError,
    NotImplementedError,
    StopIteration,
)


def functions() -> dict[str, Any]:
    found = {}
    for prefix, module in (
        ("", nx),
        ("linalg.", nx.linalg),
        ("fft.", nx.fft),
        ("random.", nx.random),
    ):
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            if (
                callable(value)
                and not isinstance(value, type)
                and not name.startswith("_")
                and name not in SKIPPED
            ):
                found[prefix + name] = value
    return found


FUNCTIONS = functions()


def parameters(name: str) -> tuple[int, list[str]]:
    """Return the maximum number of positional arguments, and the names of keyword arguments."""
    try:
        signature = inspect.signature(FUNCTIONS[name])
    except (TypeError, ValueError):
        return 3, []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    positional = sum(kind in (0, 1) for kind in kinds) + 2 * (2 in map(int, kinds))
    return positional, [n for n, p in signature.parameters.items() if p.kind == p.KEYWORD_ONLY]


def generate(rng: random.Random) -> Any:
    name = rng.choice(list(FUNCTIONS))
    most, keywords = parameters(name)
    count = most if rng.random() < 0.7 else rng.randint(0, most + 1)
    tensors = [key for key in ARGUMENTS if "[" in key and key[0] in "fsucpb"]
    args = [
        rng.choice(tensors) if at == 0 and rng.random() < 0.6 else rng.choice(list(ARGUMENTS))
        for at in range(count)
    ]
    # A condition that is always true is an endless loop.
    if name == "while_loop" and args and callable(ARGUMENTS[args[0]]()):
        args[0] = "None"
    chosen = rng.sample(keywords, min(len(keywords), rng.choice([0, 0, 1, 1, 2])))
    return {
        "function": name,
        "args": args,
        "kwargs": {key: rng.choice(list(ARGUMENTS)) for key in chosen},
    }


def check(case: Any) -> int:
    args = [ARGUMENTS[name]() for name in case["args"]]
    kwargs = {key: ARGUMENTS[name]() for key, name in case["kwargs"].items()}
    try:
        FUNCTIONS[case["function"]](*args, **kwargs)
    except nx.InternalError as bug:
        raise Failure(f"a bug of ours: {bug}") from bug
    except ALLOWED as refused:
        if not str(refused) and not isinstance(refused, StopIteration | MemoryError):
            raise Failure(f"a {type(refused).__name__} without a text") from refused
    except BaseException as raised:
        raise Failure(f"raises {type(raised).__name__}: {raised}") from raised
    return 1


def smaller(case: Any) -> Iterator[Any]:
    for key in case["kwargs"]:
        rest = {name: value for name, value in case["kwargs"].items() if name != key}
        yield {**case, "kwargs": rest}
    if case["args"]:
        yield {**case, "args": case["args"][:-1]}
    for at, name in enumerate(case["args"]):
        for plain in ("f32[]", "1", "f32[2,2]"):
            if name not in ("f32[]", "1", "f32[2,2]"):
                yield {**case, "args": [*case["args"][:at], plain, *case["args"][at + 1 :]]}


def show(case: Any) -> str:
    given = [*case["args"], *(f"{key}={name}" for key, name in case["kwargs"].items())]
    return f"nx.{case['function']}({', '.join(given)})"


if __name__ == "__main__":
    main(["api"])
