"""Damaged bytes of every format: a read returns the written value or raises `FormatError`."""

from __future__ import annotations

import base64
import io
import random
import re
import struct
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import nxla as nx
from fuzz.driver import Failure, main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The number of damaged inputs for each case.
EACH = 200


def _npy(**kinds: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(12, dtype=np.float32).reshape(3, 4), **kinds)
    return file.getvalue()


def _npz(save: Any) -> bytes:
    file = io.BytesIO()
    save(file, w=np.arange(6.0).reshape(2, 3), b=np.array([1, 2, 3]))
    return file.getvalue()


def _function(x: Any, y: Any) -> Any:
    z = nx.sum(nx.sin(x) * y, axis=0) + nx.tensor([1.5, 2.5, 3.5])
    return nx.fori(0, 3, lambda i, z: nx.where(z > i, z * 2, z), z)


def _expression() -> Any:
    return nx.debug_expr(_function)(nx.zeros((2, 3)), nx.zeros((2, 3)))


def _container() -> Any:
    return {
        "a": (nx.tensor(1.5), [2, 2.5, 1 + 2j, None, True, "text"]),
        "b": nx.zeros((2, 3), dtype="s16"),
    }


def _stage() -> Any:
    return nx.graph.split(
        _expression(), lambda node: "before" if node.op == "sum" else "none"
    ).stages[0]


def _from_binary(data: bytes) -> Any:
    return nx.from_binary(data, "f32")


def _from_onnx(data: bytes) -> Any:
    """Read a damaged model, and trace it if its inputs are small."""
    model = nx.from_onnx(data)
    sizes = [
        [size if size and size.isdigit() else "2" for size in shape or []]
        for _, _, shape in model._inputs
    ]
    if all(len(size) < 4 for shape in sizes for size in shape):
        types = zip(model._inputs, sizes, strict=True)
        inputs = [
            nx.template([int(size) for size in shape], dtype) for (_, dtype, _), shape in types
        ]
        nx.debug_expr(model)(*inputs)


def _onnx() -> bytes:
    return (Path(__file__).parents[1] / "formats" / "mlp.onnx").read_bytes()


def _golden(name: str) -> Callable[[], bytes]:
    """Return a reader of a golden export of JAX."""
    return (Path(__file__).parents[1] / "import" / name).read_bytes


def _from_stablehlo(data: bytes) -> Any:
    """Read a damaged module. An operation that the graph refuses is an error with its position."""
    try:
        return nx.from_stablehlo(data)
    except nx.NxlaError as refused:
        if not re.match(r"StableHLO: (line|byte) \d+: ", str(refused)):
            raise
        return None


def _deserialize_resealed(data: bytes) -> Any:
    """Read a damaged container with a checksum that matches the damaged bytes."""
    body = data[24:]
    return nx.deserialize(data[:8] + blake2b(body, digest_size=16).digest() + body)


#: A function that makes valid bytes of each format, and the function that reads them.
FORMATS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], Any]]] = {
    "container": (lambda: nx.serialize(_container()), nx.deserialize),
    "container resealed": (lambda: nx.serialize(_container()), _deserialize_resealed),
    "npy": (_npy, nx.load_numpy),
    "npz": (lambda: _npz(np.savez), nx.load_numpy_archive),
    "npz deflated": (lambda: _npz(np.savez_compressed), nx.load_numpy_archive),
    "expression": (lambda: _expression().to_bytes(), lambda data: nx.Expression.from_bytes(data)),
    "stage": (lambda: _stage().to_bytes(), lambda data: nx.Stage.from_bytes(data)),
    "binary": (lambda: bytes(range(48)), _from_binary),
    "onnx": (_onnx, _from_onnx),
    "stablehlo": (_golden("stablehlo/fori.mlir"), _from_stablehlo),
    "stablehlo bytecode": (_golden("stablehlo/pair_reduction.mlirbc"), _from_stablehlo),
    "stablehlo of jax": (_golden("containers.jax"), _from_stablehlo),
}
_WHOLE: dict[str, bytes] = {}


def whole(name: str) -> bytes:
    if name not in _WHOLE:
        _WHOLE[name] = FORMATS[name][0]()
    return _WHOLE[name]


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Damage bytes in one of a dozen ways."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        way = rng.randrange(9)
        at = rng.randrange(len(out) + 1) if out else 0
        if way == 0:
            del out[at:]
        elif way == 1:
            out[at:at] = rng.randbytes(rng.randint(1, 9))
        elif way == 2 and out:
            del out[at : at + rng.randint(1, 9)]
        elif way == 3 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif way == 4 and at < len(out):
            out[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, 0x30, 0x39, 0x22, 0x5B])
        elif way == 5:
            big = rng.choice([2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1])
            out[at : at + 8] = struct.pack("<Q", big)
        elif way == 6:
            start = rng.randrange(len(out) + 1)
            out[at:at] = out[start : start + rng.randint(1, 64)]
        elif way == 7:
            # A decimal number, such as a size in JSON or in a NumPy header.
            digits = [i for i, byte in enumerate(out) if 0x30 <= byte <= 0x39]
            if digits:
                place = rng.choice(digits)
                out[place : place + 1] = rng.choice(
                    [b"99999999999999", b"-1", b"1e9", b"true", b'"7"', b"1.5", b"[]", b"null"]
                )
        else:
            word = rng.choice(
                [b"value", b"tensor", b"dict", b"list", b"tuple", b"container", b"f4"]
            )
            out[at:at] = word
    return bytes(out)


def generate(rng: random.Random) -> Any:
    return {"format": rng.choice(list(FORMATS)), "seed": rng.randrange(1 << 40), "count": EACH}


def inputs(case: Any) -> Iterator[bytes]:
    if "data" in case:
        yield base64.b64decode(case["data"])
        return
    rng = random.Random(case["seed"])
    data = whole(case["format"])
    for _ in range(case["count"]):
        yield damaged(rng, data)


def check(case: Any) -> int:
    read = FORMATS[case["format"]][1]
    tried = 0
    for data in inputs(case):
        tried += 1
        try:
            read(data)
        except nx.FormatError as refused:
            if not str(refused):
                raise Failure(f"an error without a text for {data!r}") from refused
        except (nx.ArgumentError, nx.DTypeError) as refused:
            # The dtype does not exist, or the class is unknown.
            text = str(refused)
            if not any(why in text for why in ("not supported", "unsupported", "no class")):
                raise _failed(data, refused) from refused
        except BaseException as raised:
            raise _failed(data, raised) from raised
    return tried


def _failed(data: bytes, raised: BaseException) -> Failure:
    text = base64.b64encode(data).decode()
    return Failure(f"raises {type(raised).__name__}: {raised}; of the bytes (base64) {text}"[:4000])


def smaller(case: Any) -> Iterator[Any]:
    if "data" not in case:
        for data in inputs(case):
            yield {"format": case["format"], "data": base64.b64encode(data).decode()}
        return
    data = base64.b64decode(case["data"])
    step = max(1, len(data) // 4)
    while step:
        for at in range(0, len(data), step):
            less = data[:at] + data[at + step :]
            yield {"format": case["format"], "data": base64.b64encode(less).decode()}
        step //= 2


if __name__ == "__main__":
    main(["formats"])
