"""Node tests of the package `onnx`: models of one operator with published results.

`tests/formats/onnx_nodes.py` writes the file of cases.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nxla as nx

FORMATS = Path(__file__).parents[1] / "formats"


def fields(data: bytes) -> list[tuple[int, bytes]]:
    """Return number and content of each field; every field has a length."""
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        number = varint() >> 3
        size = varint()
        found.append((number, data[at : at + size]))
        at += size
    return found


def field(number: int, content: bytes) -> bytes:
    size, prefix = len(content), bytearray([number << 3 | 2])
    while size > 0x7F:
        prefix.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*prefix, size]) + content


def tensor(message: bytes) -> Any:
    """Read a TensorProto, named x, as the only output of a model."""
    graph = field(5, message) + field(12, field(1, b"x"))
    return nx.from_onnx(field(8, b"\x10\x15") + field(7, graph))()


def case_of(data: bytes) -> dict[int, list[bytes]]:
    parts: dict[int, list[bytes]] = {number: [] for number in range(1, 7)}
    for number, content in fields(data):
        parts[number].append(content)
    return parts


def outcome(parts: dict[int, list[bytes]], **options: Any) -> tuple[str, str]:
    """Run a case: `passed`, `unsupported` with the reason, or `failed` with the error."""
    rtol, atol = (float(parts[number][0]) for number in (5, 6))
    try:
        model = nx.from_onnx(parts[2][0])
        inputs = [tensor(value) for value in parts[3]]
        expected = [tensor(value) for value in parts[4]]
        result = nx.jit(model, **options)(*inputs)
        results = list(result.values()) if isinstance(result, dict) else [result]
        for found, wanted in zip(results, expected, strict=True):
            close(found, wanted, rtol, atol)
    except (nx.ArgumentError, nx.FormatError) as error:
        is_refused = "unsupported operation" in str(error) or "not supported" in str(error)
        return ("unsupported" if is_refused else "failed"), str(error)
    except Exception as error:  # Collect all errors, so that the test reports them together.
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""


def close(found: Any, expected: Any, rtol: float, atol: float) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    a, b = found.numpy(), expected.numpy()
    if str(found.dtype).startswith(("f", "b")):
        rtol = max(rtol, {1: 0.13, 2: 1e-2}.get(b.dtype.itemsize, 0.0))
        a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=max(atol, 1e-6))
    elif str(found.dtype).startswith("c"):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=max(atol, 1e-6))
    else:
        np.testing.assert_array_equal(a, b)


def run_all(data: bytes, every: int = 1, **options: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    failures = []
    for _, each in fields(data)[::every]:
        parts = case_of(each)
        kind, why = outcome(parts, **options)
        counts[kind] += 1
        if kind == "failed":
            failures.append(f"{parts[1][0].decode()}: {why}")
    assert not failures, f"{dict(counts)}\n" + "\n".join(failures)
    return counts


@pytest.mark.parametrize(("compiler", "every"), [("evaluator", 1), ("xla", 10)])
def test_cases_have_their_published_results(compiler: str, every: int) -> None:
    if compiler == "xla" and "xla" not in nx.compilers():
        pytest.skip("there is no plugin")
    counts = run_all((FORMATS / "onnx_nodes.bin").read_bytes(), every, compiler=compiler)
    assert counts["passed"] > 400 // every
    assert counts["unsupported"] == 0
