"""Programs with too little memory: each returns its result or raises a descriptive `MemoryError`.

The address space of the process is limited to its current size plus a random amount, so that each
allocation of a program is the first to fail in some case.
"""

from __future__ import annotations

import io
import pickle
import resource
from typing import TYPE_CHECKING, Any

import numpy as np

import nxla as nx
from fuzz.driver import Failure, main
from nxla import _core

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

SIDE = 256


def _matrix() -> Any:
    return nx.reshape(nx.astype(nx.iota((SIDE * SIDE,)), "f32"), (SIDE, SIDE)) / SIDE


_NPY = io.BytesIO()
np.save(_NPY, np.ones((4, SIDE, SIDE)))
_DATA: dict[str, Any] = {}


def data() -> dict[str, Any]:
    """Create the operands once."""
    if not _DATA:
        x = _matrix()
        symmetric = nx.matmul(x, nx.matrix_transpose(x)) / SIDE + nx.eye(SIDE) * 1e3
        _DATA.update(
            x=x,
            s=symmetric,
            v=nx.reshape(x, (SIDE * SIDE,)),
            i=nx.astype(x, "s64"),
            c=nx.astype(x, "c64"),
            image=nx.reshape(nx.concat([x] * 8), (2, 4, SIDE, SIDE)),
            kernel=nx.ones((4, 4, 3, 3)),
            saved=nx.serialize({"x": x, "y": [x, x]}),
            pickled=pickle.dumps(x),
            npy=_NPY.getvalue(),
            numbers=[1.5] * (SIDE * SIDE),
            array=np.ones((SIDE * 2, SIDE))[::2],
            raw=bytes(4 * SIDE * SIDE),
            places=nx.iota((SIDE * SIDE,)),
            big=nx.concat([x] * 16),
            expression=nx.debug_expr(lambda y: y + x + nx.tensor(np.ones((SIDE, SIDE), "f4")))(x),
        )
        _DATA["code"] = _DATA["expression"].to_bytes()
    return _DATA


PROGRAMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "add": lambda d: d["x"] + 1,
    "fused": lambda d: nx.jit(lambda x: nx.sin(x) * x + x, compiler="evaluator")(d["big"]),
    "convert": lambda d: nx.astype(d["x"], "f64"),
    "compare": lambda d: d["x"] > 1,
    "sum": lambda d: nx.sum(d["big"], axis=0),
    "mean": lambda d: nx.mean(d["big"], axis=1),
    "argmax": lambda d: nx.argmax(d["big"], axis=0),
    "prod": lambda d: nx.prod(d["i"], axis=0),
    "cumulative": lambda d: nx.cumulative_sum(d["big"], axis=0),
    "sort": lambda d: nx.sort(d["v"]),
    "sort columns": lambda d: nx.sort(d["x"], axis=0),
    "argsort": lambda d: nx.argsort(d["v"]),
    "argsort rows": lambda d: nx.argsort(d["i"], axis=1),
    "median": lambda d: nx.median(d["x"]),
    "top_k": lambda d: nx.top_k(d["v"], 7),
    "take": lambda d: nx.take(d["v"], d["places"]),
    "take rows": lambda d: nx.take(d["x"], nx.iota((SIDE,)), axis=0),
    "slice": lambda d: d["x"][1:, ::2] + 0,
    "put": lambda d: nx.put_slice(d["x"], (1, 1), nx.zeros((3, 3))),
    "concat": lambda d: nx.concat([d["x"], d["big"]]),
    "stack": lambda d: nx.stack([d["x"]] * 3),
    "pad": lambda d: nx.pad(d["x"], 0, [(1, 2), (3, 4)]),
    "pad apart": lambda d: nx.pad(nx.matrix_transpose(d["x"]), 0, [(0, 0), (-3, 4)]),
    "transpose": lambda d: nx.matrix_transpose(d["big"]) + 0,
    "flip": lambda d: nx.flip(d["x"], axis=0),
    "roll": lambda d: nx.roll(d["x"], 3, axis=1),
    "tile": lambda d: nx.tile(d["x"], (2, 3)),
    "repeat": lambda d: nx.repeat(d["x"], 5, axis=0),
    "repeats": lambda d: nx.repeat(d["x"], [3] * SIDE, axis=0),
    "window": lambda d: nx.window_sum(d["x"], (3, 3), padding="same"),
    "window max": lambda d: nx.window_max(d["x"], (4, 1), strides=(2, 1)),
    "window scatter": lambda d: nx.window_scatter_max(
        d["x"], nx.ones((SIDE // 2, SIDE // 2)), 0.0, (2, 2), strides=(2, 2)
    ),
    "matmul": lambda d: nx.matmul(d["x"], d["x"]),
    "matmul integers": lambda d: nx.matmul(d["i"], nx.matrix_transpose(d["i"])),
    "dot": lambda d: nx.matmul(d["x"], d["x"][0]),
    "conv": lambda d: nx.conv(d["image"], d["kernel"]),
    "conv gradient": lambda d: nx.grad(lambda k, x: nx.sum(nx.conv(x, k)))(d["kernel"], d["image"]),
    "fft": lambda d: nx.fft.fft(d["v"]),
    "fft columns": lambda d: nx.fft.fft(d["x"], axis=0),
    "rfft": lambda d: nx.fft.rfft(d["x"]),
    "cholesky": lambda d: nx.linalg.cholesky(d["s"]),
    "eigh": lambda d: nx.linalg.eigh(d["s"]),
    "svd": lambda d: nx.linalg.svd(d["x"][:64, :64]),
    "qr": lambda d: nx.linalg.qr(d["x"]),
    "solve": lambda d: nx.linalg.solve(d["s"], d["x"]),
    "triangular": lambda d: nx.linalg.triangular_solve(d["s"], d["x"]),
    "inverse": lambda d: nx.linalg.inv(d["s"]),
    "random": lambda d: nx.random.normal(nx.random.key(1), shape=(SIDE, SIDE)),
    "loop": lambda d: nx.jit(
        lambda x: nx.fori(0, 3, lambda i, x: nx.sin(x) + nx.sort(x), x), compiler="evaluator"
    )(d["x"]),
    "fold": lambda d: nx.jit(
        lambda x: nx.grad(lambda x: nx.sum(nx.sort(x) * x))(x), compiler="evaluator"
    )(d["x"]),
    "vmap": lambda d: nx.vmap(nx.cumulative_sum)(d["x"]),
    "where": lambda d: nx.where(d["x"] > 3, d["x"], 0),
    "complex": lambda d: nx.abs(d["c"] * d["c"]),
    "hook": lambda d: nx.jit(lambda x: nx.hook(x + 1, lambda _: None), compiler="evaluator")(
        d["x"]
    ),
    "tolist": lambda d: d["x"].tolist(),
    "repr": lambda d: repr(d["big"]),
    "numpy": lambda d: d["x"].numpy().copy(),
    "from lists": lambda d: nx.tensor(d["numbers"]),
    "from numpy": lambda d: nx.tensor(d["array"]),
    "dlpack": lambda d: nx.from_dlpack(np.ascontiguousarray(d["array"])),
    "from_binary": lambda d: nx.from_binary(d["raw"], "f32"),
    "to_binary": lambda d: nx.to_binary(d["x"]),
    "serialize": lambda d: nx.serialize({"x": d["x"]}),
    "deserialize": lambda d: nx.deserialize(d["saved"]),
    "pickle": lambda d: pickle.dumps(d["x"]),
    "unpickle": lambda d: pickle.loads(d["pickled"]),
    "load_numpy": lambda d: nx.load_numpy(d["npy"]),
    "expression": lambda d: d["expression"].to_bytes(),
    "expression from bytes": lambda d: nx.Expression.from_bytes(d["code"]),
}


def generate(rng: random.Random) -> Any:
    return {"program": rng.choice(list(PROGRAMS)), "kilobytes": int(2 ** rng.uniform(2, 14))}


def used() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def check(case: Any) -> int:
    operands = data()
    program = PROGRAMS[case["program"]]
    # Create the threads and plans before the limit, as in a process that has run before.
    program(operands)
    _core.release_held_memory()
    # Leave free blocks for small objects, without which Rust ends the process. The last block
    # keeps them in the heap.
    blocks = [bytearray(1000) for _ in range(1000)]
    del blocks[:-1]
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    why = None
    resource.setrlimit(resource.RLIMIT_AS, (used() + (case["kilobytes"] << 10), hard))
    try:
        program(operands)
    except MemoryError as refused:
        if (
            isinstance(refused, nx.NxlaError)
            and "bytes" not in str(refused)
            and "memory" not in str(refused)
        ):
            why = f"does not say what for: {refused}"
    except BaseException as raised:
        why = f"raises {type(raised).__name__}: {str(raised)[:500]}"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    if why is not None:
        raise Failure(why)
    return 1


def smaller(_: Any) -> Iterator[Any]:
    yield from ()


if __name__ == "__main__":
    main(["starved"])
