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


#: Functions with the slope 1 at 0, which return tiny arguments.
IDENTITIES_NEAR_ZERO = [
    nx.expm1, nx.sinh, nx.tanh, nx.log1p, nx.sin, nx.tan, nx.asin, nx.atan, nx.asinh, nx.atanh,
    nx.nn.elu, nx.nn.celu,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("function", IDENTITIES_NEAR_ZERO)
def test_subnormal_numbers_are_their_functions(function, dtype):
    limits = nx.finfo(dtype)
    smallest = float(limits.smallest_normal) * float(limits.eps)
    numbers = np.array([1, 3, 5, 7, 1 / limits.eps - 1, 1 / limits.eps + 1]) * smallest
    x = nx.astype(nx.tensor([*numbers, *-numbers], "f64"), dtype)
    assert nx.jit(function, compiler="evaluator")(x).tolist() == x.tolist()
