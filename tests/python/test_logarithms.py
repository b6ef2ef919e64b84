"""Logarithms to base 2 and 10: exact for powers, and with derivatives everywhere."""

import math

import numpy as np
import pytest

import nxla as nx

LIMITS = {"f16": (-24, 15), "bf16": (-133, 127), "f32": (-149, 127), "f64": (-1074, 1023)}
TENS = {"f16": (0, 4), "bf16": (-37, 38), "f32": (-37, 38), "f64": (-307, 308)}


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_logarithms_of_powers_are_exact(compiler):
    tens = {dtype: np.arange(first, last + 1) for dtype, (first, last) in TENS.items()}
    twos = {dtype: np.arange(first, last + 1) for dtype, (first, last) in LIMITS.items()}
    if compiler == "xla":
        # XLA treats some subnormal numbers as zeros.
        twos = {d: n[n >= math.log2(nx.finfo(d).smallest_normal)] for d, n in twos.items()}
    two = {d: nx.astype(nx.tensor(np.ldexp(1.0, n)), d) for d, n in twos.items()}
    ten = {d: nx.astype(nx.tensor([float(f"1e{k}") for k in n], "f64"), d) for d, n in tens.items()}
    found = nx.jit(
        lambda two, ten: (nx.tree.map(nx.log2, two), nx.tree.map(nx.log10, ten)), compiler=compiler
    )(two, ten)
    for dtype in LIMITS:
        log2, log10 = (np.asarray(nx.astype(part[dtype], "f64")) for part in found)
        np.testing.assert_array_equal(log2, twos[dtype], dtype)
        expected = np.log10(np.asarray(nx.astype(ten[dtype], "f64")))
        expected = np.asarray(nx.astype(nx.astype(nx.tensor(expected), dtype), "f64"))
        np.testing.assert_array_equal(log10, expected, dtype)


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_are_accurate(name, compiler):
    ours, theirs = getattr(nx, name), getattr(np, name)
    random = np.random.default_rng(0)
    for dtype in ("f8", "f4"):
        near_one = 1 + np.ldexp(random.normal(size=500), -random.integers(1, 40, 500))
        x = np.concatenate([np.exp(5 * random.normal(size=500)), near_one]).astype(dtype)
        found = nx.jit(ours, compiler=compiler)(x)
        expected = theirs(x.astype("f8"))
        unit = np.spacing(np.abs(expected).astype(dtype)).astype("f8")
        difference = np.abs(np.asarray(found).astype("f8") - expected) / np.maximum(unit, 1e-300)
        assert difference.max() <= 3, (dtype, x[difference.argmax()])
    special = nx.jit(ours, compiler=compiler)(np.array([0, -0.0, -1, np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(special, [-np.inf, -np.inf, np.nan, np.inf, np.nan, np.nan])
    for dtype in LIMITS:
        limit = nx.finfo(dtype).max
        negative = nx.astype(nx.tensor([-limit, -limit / 2, -limit / 4, -1.5, -0.5], "f64"), dtype)
        assert np.isnan(
            np.asarray(nx.astype(nx.jit(ours, compiler=compiler)(negative), "f64"))
        ).all()
    z = np.array([1 + 1j, -2 + 0j, 1e30j], "c16")
    np.testing.assert_allclose(nx.jit(ours, compiler=compiler)(z), theirs(z), rtol=1e-15)
    assert ours(nx.tensor([1, 8])).dtype == nx.float32


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
@pytest.mark.parametrize(("name", "base"), [("log2", 2), ("log10", 10)])
def test_derivatives_of_logarithms(name, base, compiler):
    x = np.array([1e-300, 0.3, 1.0, 8.0, 1000.0, 1e300])

    def first_and_second(x):
        slope = nx.grad(lambda x: nx.sum(getattr(nx, name)(x)))
        return slope(x), nx.grad(lambda x: nx.sum(slope(x)))(x)

    first, second = nx.jit(first_and_second, compiler=compiler)(x)
    np.testing.assert_allclose(first, 1 / (x * math.log(base)), rtol=1e-14)
    np.testing.assert_allclose(second[1:-1], -1 / (x[1:-1] ** 2 * math.log(base)), rtol=1e-14)
