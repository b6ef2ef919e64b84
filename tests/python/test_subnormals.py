"""Subnormal numbers follow the table in docs/guide/dtypes.md, at every size."""

import numpy as np
import pytest

import nxla as nx
from where import PLATFORM

#: True if a compiler keeps half of the smallest normal number of a dtype.
KEEPS_SUBNORMALS = {
    "evaluator": {"f16": True, "bf16": True, "f32": True, "f64": True},
    "xla": {"f16": True, "f32": PLATFORM == "cuda", "f64": PLATFORM == "cuda"},
}
_CASES = [
    (name, dtype, keeps)
    for name, table in KEEPS_SUBNORMALS.items()
    for dtype, keeps in table.items()
]


@pytest.mark.parametrize("size", [1, 5, 300_000])
@pytest.mark.parametrize(("name", "dtype", "keeps"), _CASES)
def test_subnormal_results_are_kept_or_flushed(name, dtype, keeps, size):
    smallest = float(nx.finfo(dtype).smallest_normal)
    x = nx.astype(nx.full((size,), smallest, "f64"), dtype)
    halves = nx.astype(nx.jit(lambda x: -(x * 0.5), compiler=name)(x), "f64").numpy()
    expected = -smallest / 2 if keeps else -0.0
    assert set(halves.tolist()) == {expected}
    assert np.signbit(halves).all()


#: The results of both backends for the table of the sign of zero in docs/guide/dtypes.md.
ZEROS = {
    "maximum": ([(0.0, -0.0), (-0.0, 0.0)], {"evaluator": [-0.0, 0.0], "xla": [0.0, 0.0]}),
    "minimum": ([(0.0, -0.0), (-0.0, 0.0)], {"evaluator": [-0.0, 0.0], "xla": [-0.0, -0.0]}),
}


@pytest.mark.parametrize("name", ZEROS)
@pytest.mark.skipif(PLATFORM not in ("cpu", "none"), reason="the table is of a CPU")
@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_sign_of_zero(compiler, name):
    rows, expected = ZEROS[name]
    x = nx.tensor(rows, dtype="f32")
    pairs = nx.jit(lambda x: getattr(nx, name)(x[:, 0], x[:, 1]), compiler=compiler)(x)
    reduced = nx.jit(lambda x: getattr(nx, name[:3])(x, axis=1), compiler=compiler)(x)
    for found in (pairs, reduced):
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected[compiler]))
