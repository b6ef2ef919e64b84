"""Compare functions and products of realistic sizes on XLA with the evaluator."""

import numpy as np
import pytest

import nxla as nx
from where import on_cpu

pytestmark = on_cpu

SIZE = 5000
FUNCTIONS = {
    "sin": nx.sin,
    "cos": nx.cos,
    "tan": nx.tan,
    "asin": lambda x: nx.asin(x / 4),
    "acos": lambda x: nx.acos(x / 4),
    "atan": nx.atan,
    "sinh": nx.sinh,
    "cosh": nx.cosh,
    "asinh": nx.asinh,
    "acosh": lambda x: nx.acosh(nx.abs(x) + 1),
    "atanh": lambda x: nx.atanh(x / 4),
    "log": lambda x: nx.log(nx.abs(x)),
    "log1p": lambda x: nx.log1p(x * x),
    "expm1": nx.expm1,
    "cbrt": nx.cbrt,
    "rsqrt": lambda x: nx.rsqrt(nx.abs(x)),
    "erf": nx.erf,
    "erf_inv": lambda x: nx.erf_inv(x / 4),
    "pow": lambda x: nx.abs(x) ** 2.5,
    "pow with tensor exponent": lambda x: nx.abs(x) ** (x + 1),
    "atan2": lambda x: nx.atan2(x, x * x - 1),
    "remainder": lambda x: nx.remainder(x, 0.7),
    "fmod": lambda x: nx.fmod(x, 0.7),
    "round": nx.round,
}


def numbers(dtype, *shape):
    return np.random.default_rng(0).uniform(-3, 3, shape).astype(dtype)


def run_xla(function, *args):
    return nx.jit(function, compiler="xla")(*args).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_on_both_backends(name, dtype):
    x = numbers(dtype, SIZE)
    function = FUNCTIONS[name]
    tolerance = 3e-6 if dtype == "float32" else 2e-14
    found, expected = run_xla(function, x), nx.jit(function)(x).numpy()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edge_values_agree_on_both_backends(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, tiny, -tiny]
    x = np.resize(np.array(edges, dtype), SIZE)
    for name, function in FUNCTIONS.items():
        with np.errstate(all="ignore"):
            found, expected = run_xla(function, x), nx.jit(function)(x).numpy()
        # XLA flushes subnormal numbers to zero.
        normal = ~(np.abs(x) < np.finfo(dtype).tiny) | (x == 0)
        np.testing.assert_allclose(
            found[normal], expected[normal], rtol=1e-6, atol=1e-14, err_msg=name
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "bfloat16"])
@pytest.mark.parametrize("columns", [1, 7, 50, 64, 200])
def test_transposed_matrix_vector_products(dtype, columns):
    x = nx.tensor(numbers("float64", 300, columns)).astype(dtype)
    w = nx.tensor(numbers("float64", 300)).astype(dtype)
    for function in (lambda x, w: x.T @ w, lambda x, w: w @ x):
        found = run_xla(lambda x, w, f=function: f(x, w).astype("complex128"), x, w)
        wide = function(x.astype("complex128").numpy(), w.astype("complex128").numpy())
        tolerance = 0.2 if dtype == "bfloat16" else 1e-4
        np.testing.assert_allclose(found, wide, rtol=tolerance, atol=3 * tolerance)
