"""Write node tests of the package `onnx` to a file that the Python tests read.

Usage: python tests/formats/onnx_nodes.py FILE [--sample] [--skip NAME ...]

The file has all cases on tensors. A sample has the smallest case of each operator, without cases
whose names contain NAME; `tests/formats/onnx_nodes.bin` is such a sample. Inputs that determine
shapes become initializers, as exporters write them.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Cases of more bytes than this are not stored.
LARGEST = 30_000

#: The inputs of an operator that determine shapes, by position.
STRUCTURE = {
    "AffineGrid": [1], "BlackmanWindow": [0], "CenterCropPad": [1], "Col2Im": [1, 2],
    "Compress": [1], "ConstantOfShape": [0], "CumProd": [1], "CumSum": [1], "DFT": [1, 2],
    "Dropout": [1, 2], "Expand": [1], "HammingWindow": [0], "HannWindow": [0],
    "If": [], "Loop": [0, 1], "MaxUnpool": [2], "NonZero": [0], "OneHot": [1], "Pad": [1, 3],
    "Range": [0, 1, 2], "Reshape": [1], "Resize": [1, 2, 3], "Slice": [1, 2, 3, 4], "Split": [1],
    "Squeeze": [1], "Tile": [1], "TopK": [1], "Trilu": [1], "Unsqueeze": [1], "Upsample": [1],
}  # fmt: skip
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
STRUCTURE.update({f"Reduce{name}": [1] for name in REDUCTIONS})


def varint(value: int) -> bytes:
    """Return an integer of variable length."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes) -> bytes:
    """Return a field with a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def proto(value: Any) -> TensorProto:
    """Return a value as a TensorProto."""
    if isinstance(value, TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value))


def tensor(value: Any) -> bytes:
    """Return a TensorProto that starts with its name."""
    copy = TensorProto()
    copy.CopyFrom(proto(value))
    copy.ClearField("name")
    copy.ClearField("doc_string")
    return field(8, b"x") + copy.SerializeToString()


def structure(model: ModelProto) -> set[str]:
    """Return the names of the inputs that determine shapes, also through other nodes."""
    names: set[str] = set()
    for node in reversed(model.graph.node):
        places = STRUCTURE.get(node.op_type, [])
        if names & set(node.output):
            places = range(len(node.input))
        names.update(node.input[place] for place in places if place < len(node.input))
    return names


def has_tensors(case: Any) -> bool:
    """Return whether all inputs and outputs are tensors."""
    inputs, outputs = case.data_sets[0]
    return not any(value is None or isinstance(value, list) for value in [*inputs, *outputs])


def written(case: Any) -> bytes:
    """Return a case; a case with values that are not tensors has only its model."""
    inputs, outputs = case.data_sets[0]
    if not has_tensors(case):
        inputs, outputs = [], []
    model = ModelProto()
    model.CopyFrom(case.model)
    fixed, passed = structure(model), []
    for info, value in zip(model.graph.input, inputs, strict=bool(inputs)):
        if info.name in fixed:
            initializer = model.graph.initializer.add()
            initializer.CopyFrom(proto(value))
            initializer.name = info.name
        else:
            passed.append(value)
    parts = [field(1, case.name.encode()), field(2, model.SerializeToString())]
    parts += [field(3, tensor(value)) for value in passed]
    parts += [field(4, tensor(value)) for value in outputs]
    parts += [field(5, str(case.rtol).encode()), field(6, str(case.atol).encode())]
    return b"".join(parts)


def write(path: Path, skip: Sequence[str] = (), *, sample: bool = False) -> None:
    """Write all cases, or the smallest case of each operator."""
    warnings.simplefilter("ignore")
    kept = [
        (case, written(case))
        for case in collect_testcases(None)
        if has_tensors(case) and not any(each in case.name for each in skip)
    ]
    smallest: dict[str, bytes] = {}
    for case, data in kept:
        nodes = case.model.graph.node
        name = nodes[0].op_type if len(nodes) == 1 else ""
        if name and len(data) < len(smallest.get(name, b" " * LARGEST)):
            smallest[name] = data
    chosen = [smallest[name] for name in sorted(smallest)] if sample else [data for _, data in kept]
    path.write_bytes(b"".join(field(1, each) for each in chosen))


def main() -> None:
    """Write the file of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--skip", nargs="*", default=[])
    options = parser.parse_args()
    write(options.file, options.skip, sample=options.sample)


if __name__ == "__main__":
    main()
