"""Node tests of the package `onnx`: models of one operator with published results.

`tests/formats/onnx_nodes.py` writes the file of cases, a sample. All cases run where the package is
installed; `python tests/python/test_onnx_nodes.py` writes their counts to `docs/reference/onnx.md`.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nxla as nx
from onnx_files import field
from where import PLATFORM

FORMATS = Path(__file__).parents[1] / "formats"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "onnx.md"

#: The published results that nxla does not follow, and the reason.
DIFFERENCES = dict.fromkeys(
    (
        "test_resize_downsample_scales_cubic_align_corners",
        "test_resize_downsample_scales_linear_align_corners",
    ),
    "nxla, PyTorch and ONNX Runtime align the corners if a size is rounded down",
)

#: The line of an unsupported operator: its name, its node and the reason.
REASON = re.compile(r'^  (\S.*?) \("(.*?)"\): (.*)$', re.MULTILINE)


def fields(data: bytes) -> list[tuple[int, bytes]]:
    """Return the number and contents of each field; every field has a length."""
    found, offset = [], 0

    def varint() -> int:
        nonlocal offset
        value = shift = 0
        while True:
            byte = data[offset]
            offset += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while offset < len(data):
        number = varint() >> 3
        size = varint()
        found.append((number, data[offset : offset + size]))
        offset += size
    return found


def tensor(message: bytes) -> Any:
    """Read a TensorProto named x as the only output of a model."""
    graph = field(5, message) + field(12, field(1, b"x"))
    return nx.from_onnx(field(8, b"\x10\x15") + field(7, graph))()


def case_of(data: bytes) -> dict[int, list[bytes]]:
    parts: dict[int, list[bytes]] = {number: [] for number in range(1, 7)}
    for number, content in fields(data):
        parts[number].append(content)
    return parts


def outcome(parts: dict[int, list[bytes]], **options: Any) -> tuple[str, str]:
    """Run a case: `passed`, `unsupported` with the reason, or `differs` or `failed` with the error.

    A case of `DIFFERENCES` that passes counts as failed, so that obsolete entries are removed.
    """
    name = parts[1][0].decode()
    rtol, atol = (float(parts[number][0]) for number in (5, 6))
    try:
        model = nx.from_onnx(parts[2][0])
        inputs = [tensor(value) for value in parts[3]]
        expected = [tensor(value) for value in parts[4]]
        result = nx.jit(model, **options)(*inputs)
        results = list(result.values()) if isinstance(result, dict) else [result]
        for found, reference in zip(results, expected, strict=True):
            close(found, reference, rtol, atol)
    except (nx.ArgumentError, nx.FormatError) as error:
        is_unsupported = "unsupported operation" in str(error) and REASON.search(str(error))
        return ("unsupported" if is_unsupported else "failed"), str(error)
    except AssertionError as error:
        return ("differs" if name in DIFFERENCES else "failed"), str(error)
    except Exception as error:  # Collect all errors, so that the test reports them together.
        return "failed", f"{type(error).__name__}: {error}"
    if name in DIFFERENCES:
        return "failed", "passes, but is listed as a difference"
    return "passed", ""


def close(found: Any, expected: Any, rtol: float, atol: float) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    kind = str(found.dtype)
    if kind.startswith("f8") or kind == "bf16":
        # NumPy has no such dtypes.
        found, expected = (nx.astype(each, "f32") for each in (found, expected))
    elif kind in ("s2", "s4", "u2", "u4"):
        found, expected = (nx.astype(each, "s32") for each in (found, expected))
    a, b = found.numpy(), expected.numpy()
    if kind.startswith(("f", "b")):
        # Two units in the last place.
        ulp = {"f16": 2**-9, "bf16": 2**-6}.get(kind, 2**-2 if kind.startswith("f8") else 0.0)
        rtol, atol = max(rtol, ulp), max(atol, 1e-6)
        if not ulp and b.size:
            # The rounding of a sum is relative to its terms, not to its value.
            atol = max(atol, 2 * np.finfo(b.dtype).eps * np.abs(b[np.isfinite(b)]).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    elif kind.startswith("c"):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=max(atol, 1e-6))
    elif (PLATFORM, kind) == ("cuda", "u8"):
        # A GPU does not round quotients exactly, so a quantized number may be the next one.
        np.testing.assert_allclose(a.astype(int), b.astype(int), rtol=0, atol=1)
    else:
        np.testing.assert_array_equal(a, b)


def run_all(data: bytes, every: int = 1, **options: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    failures = []
    for _, each in fields(data)[::every]:
        parts = case_of(each)
        kind, message = outcome(parts, **options)
        counts[kind] += 1
        if kind == "failed":
            failures.append(f"{parts[1][0].decode()}: {message}")
    assert not failures, f"{dict(counts)}\n" + "\n".join(failures)
    return counts


@pytest.mark.parametrize(("compiler", "every"), [("evaluator", 1), ("xla", 10)])
def test_cases_match_published_results(compiler: str, every: int) -> None:
    if compiler == "xla" and "xla" not in nx.compilers():
        pytest.skip("there is no plugin")
    counts = run_all((FORMATS / "onnx_nodes.bin").read_bytes(), every, compiler=compiler)
    assert counts["passed"] > 150 // every
    assert counts["unsupported"] == 0


# --- all cases of the installed package ---


def cases_of_package() -> list[tuple[str, bytes]]:
    """Return operator and contents of each case; the operator is empty for several nodes."""
    spec = importlib.util.spec_from_file_location("onnx_nodes", FORMATS / "onnx_nodes.py")
    assert spec is not None
    assert spec.loader is not None
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    cases = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in writer.collect_testcases(None):
            nodes = case.model.graph.node
            name = f"{nodes[0].domain}.{nodes[0].op_type}".lstrip(".") if len(nodes) == 1 else ""
            cases.append((name, writer.written(case)))
    return cases


def page() -> tuple[str, list[str]]:
    """Run all cases; return the page with their counts, and the failures."""
    import onnx

    passed: Counter[str] = Counter()
    differences: Counter[tuple[str, str]] = Counter()
    unsupported_reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    failures = []
    for name, data in cases_of_package():
        parts = case_of(data)
        with warnings.catch_warnings():
            # Large initializers are captured.
            warnings.simplefilter("ignore", nx.CaptureWarning)
            kind, message = outcome(parts, compiler="evaluator")
        if kind == "passed":
            passed[name] += 1
        elif kind == "unsupported":
            reasons = dict.fromkeys(reason for *_, reason in REASON.findall(message))
            unsupported_reasons[name]["; ".join(reasons)] += 1
        elif kind == "differs":
            differences[name, DIFFERENCES[parts[1][0].decode()]] += 1
        else:
            failures.append(f"{parts[1][0].decode()}: {message}")
    unsupported = {name: sum(reasons.values()) for name, reasons in unsupported_reasons.items()}
    lines = [
        "# ONNX operators",
        "",
        "`nx.from_onnx` imports the operators of this page. The table counts the node tests of the "
        "package `onnx`,",
        f"version {onnx.__version__}: {passed.total()} pass, {sum(unsupported.values())} are "
        f"unsupported, {differences.total()} differ, {len(failures)} fail.",
        "[Importing programs](../guide/import.md) describes the function.",
        "",
        "An unsupported test uses an operator, an attribute or a dtype without a counterpart: the "
        "import raises one error,",
        "which names the nodes and the reasons.",
        "",
        *(f"{count} tests of `{op}` differ: {why}." for (op, why), count in differences.items()),
        "",
        "| operator | passed | unsupported | reason |",
        "|---|--:|--:|---|",
    ]
    names = {"": "(models of several nodes)"}
    for name in sorted({*passed, *unsupported}):
        message = "; ".join(dict.fromkeys("; ".join(sorted(unsupported_reasons[name])).split("; ")))
        counts = f"{passed[name] or ''} | {unsupported.get(name, '')}"
        lines.append(f"| {names.get(name) or f'`{name}`'} | {counts} | {message} |")
    return "\n".join(lines) + "\n", failures


def test_all_cases_of_the_onnx_package_pass() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed, so a sample runs instead")
    found, failures = page()
    assert not failures, "\n".join(failures)
    documented = PAGE.read_text(encoding="utf-8")
    if f"version {onnx.__version__}:" not in documented:
        pytest.skip(f"no test fails, but the table is of another version than {onnx.__version__}")
    assert found == documented, f"run python {Path(__file__).name} to write {PAGE.name}"


if __name__ == "__main__":
    text, failed = page()
    PAGE.write_text(text, encoding="utf-8")
    sys.exit("\n".join(failed))
