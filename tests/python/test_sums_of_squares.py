"""Norms, deviations and angles whose squares overflow or underflow, compared with NumPy in f64."""

import functools

import numpy as np
import pytest

import nxla as nx

#: A dtype, and factors whose squares or sums of squares overflow or underflow in this dtype.
SCALES = [
    ("f16", 1.0), ("f16", 2000.0), ("f16", 2e-4),
    ("bf16", 1e25), ("bf16", 1e-25),
    ("f32", 1e25), ("f32", 1e-25), ("f32", 1e37),
    ("f64", 1e200), ("f64", 1e-200),
]  # fmt: skip
#: Relative tolerances: the precision of the dtype, with a margin for the sum.
TOLERANCES = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5, "f64": 1e-13}
VALUES = np.array([3.0, -4.0, 1.0, 0.0, 2.5, -0.75])

NORMS = {
    "norm": (nx.linalg.norm, np.linalg.norm),
    "vector_norm": (nx.linalg.vector_norm, np.linalg.norm),
    "vector_norm 3": (
        lambda x: nx.linalg.vector_norm(x, ord=3), lambda x: np.linalg.norm(x, ord=3),
    ),
    "Frobenius": (
        lambda x: nx.linalg.matrix_norm(nx.reshape(x, (2, 3))),
        lambda x: np.linalg.norm(x),
    ),
    "global_norm": (lambda x: nx.optim.global_norm({"a": x[:2], "b": x[2:]}), np.linalg.norm),
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "factor"), SCALES)
@pytest.mark.parametrize("name", NORMS)
def test_norms_do_not_overflow(compiler, name, dtype, factor):
    ours, theirs = NORMS[name]
    x = nx.tensor(VALUES * factor, dtype=dtype)
    known = np.asarray(nx.astype(x, "f64"))
    found = nx.jit(ours, compiler=compiler)(x)
    scale = abs(known).max()
    np.testing.assert_allclose(
        np.asarray(nx.astype(found, "f64")), theirs(known / scale) * scale, rtol=TOLERANCES[dtype]
    )


def test_norm_of_many_narrow_elements(compiler):
    ones = nx.ones(90_000, dtype="f16")
    assert nx.jit(nx.linalg.norm, compiler=compiler)(ones).item() == 300.0
    assert nx.jit(nx.optim.global_norm, compiler=compiler)(ones).item() == 300.0


@pytest.mark.parametrize("name", NORMS)
def test_gradient_of_a_norm_at_zero_is_zero(compiler, name):
    slope = nx.jit(nx.grad(NORMS[name][0]), compiler=compiler)
    assert slope(nx.zeros(6)).tolist() == [0.0] * 6
    x = VALUES.astype("f4")
    h, found = 1e-3, np.asarray(slope(nx.tensor(x)))
    steps = np.eye(6) * h
    function = NORMS[name][1]
    expected = [(function(VALUES + s) - function(VALUES - s)) / (2 * h) for s in steps]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("dtype", "factor"), SCALES)
def test_cosine_similarity(compiler, dtype, factor):
    x = nx.tensor(VALUES * factor, dtype=dtype)
    known = np.asarray(nx.astype(x, "f64"))
    known = known / abs(known).max()
    f = nx.jit(lambda x: nx.nn.cosine_similarity(x, nx.flip(x), epsilon=0.0), compiler=compiler)
    found = float(nx.astype(f(x), "f64").item())
    np.testing.assert_allclose(found, known @ known[::-1] / (known @ known), atol=TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", ["f16", "f8_e5m2", "bf16"])
@pytest.mark.parametrize("function", [nx.std, nx.nanstd, lambda x: nx.std(x, correction=0.5)])
def test_std_does_not_overflow(compiler, function, dtype):
    """A deviation of 320 is representable in each dtype; its square is 102,400."""
    x = nx.tensor([320.0, -320.0] * 8, dtype=dtype)
    found = nx.jit(function, compiler=compiler)(x)
    assert found.dtype == dtype
    assert abs(float(nx.astype(found, "f32").item()) - 320.0) <= 20.0


NORMALIZATIONS = {
    "rms_norm": (nx.nn.rms_norm, False),
    "layer_norm": (nx.nn.layer_norm, True),
    "group_norm": (
        lambda x, **options: nx.reshape(
            nx.nn.group_norm(nx.reshape(x, (1, 6, 2)), 1, axis=1, **options), (12,)
        ),
        True,
    ),
}


@pytest.mark.parametrize(("dtype", "factor"), [*SCALES[:8], ("f64", 1e150)])
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_normalizations(compiler, name, dtype, factor):
    ours, is_centered = NORMALIZATIONS[name]
    values = np.concatenate([VALUES, VALUES[::-1] + 0.5]) / 4
    x = nx.tensor(values * factor, dtype=dtype)
    known = np.asarray(nx.astype(x, "f64"))
    distance = known - known.mean() if is_centered else known
    for epsilon in (0.0, 1e-5):
        f = functools.partial(ours, epsilon=epsilon)
        exact = distance / np.sqrt((distance**2).mean() + epsilon)
        found = np.asarray(nx.astype(nx.jit(f, compiler=compiler)(x), "f64"))
        np.testing.assert_allclose(
            found, exact, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype] / 10
        )
        slope = nx.jit(nx.grad(lambda x, f=f: f(x)[0]), compiler=compiler)(x)
        assert np.isfinite(np.asarray(nx.astype(slope, "f64"))).all()


@pytest.mark.parametrize("size", [0.0, 1.0, 1e30])
def test_normalizations_of_equal_elements(compiler, size):
    x = nx.full((3, 4), size)
    for ours in (nx.nn.layer_norm, lambda x: nx.nn.group_norm(x, 2)):
        assert nx.jit(ours, compiler=compiler)(x).tolist() == [[0.0] * 4] * 3
        slope = nx.jit(nx.grad(lambda x, f=ours: nx.sum(f(x) ** 2)), compiler=compiler)(x)
        assert slope.tolist() == [[0.0] * 4] * 3
    expected = 1.0 if size else 0.0
    found = nx.jit(nx.nn.rms_norm, compiler=compiler)(x)
    np.testing.assert_allclose(found, np.full((3, 4), expected), rtol=1e-5)
    assert nx.nn.layer_norm(nx.ones((2, 0))).shape == (2, 0)
