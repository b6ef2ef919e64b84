"""Writes the golden exports in `stablehlo`: functions of JAX, their results and gradients.

Run it with a Python that has JAX: ``python tests/import/export_jax.py``. Each case is a module as
text, `NAME.mlir`, and `NAME.safetensors` with the leaves ``in0``…, ``out0``… and ``grad0``…. A
gradient is the derivative of the sum of all float results, weighted with ``cos(0), cos(1)``…, by
one float input. The cases in `EXPORTED` are also stored as JAX serializes them, `NAME.jax`, and
those in `ARTIFACTS` as the portable artifact inside, `NAME.mlirbc`. ``--exports FOLDER`` writes
exports and artifacts of all cases to another folder. `containers.jax` is a function of containers,
and `platforms.jax` is a function for two platforms.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.lax import linalg

FOLDER = Path(__file__).parent / "stablehlo"
#: Cases that are stored as exports of JAX.
EXPORTED = (
    "casts", "cholesky", "conditionals", "convolution", "counting", "fourier", "gpt",
    "inverse_errors", "lookups", "random_bits", "random_numbers", "scan", "sorting", "special",
    "updates",
)  # fmt: skip
#: Cases that are stored as portable artifacts.
ARTIFACTS = (
    "approximate_extrema", "complex_numbers", "constraints", "factorizations",
    "max_pool_gradient", "pair_reduction",
)  # fmt: skip
#: Cases that JAX does not serialize.
TEXT_ONLY = ("callbacks", "orthogonal_products")
CASES: dict[str, tuple[Any, tuple[Any, ...], bool]] = {}
random = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    """Return normally distributed numbers."""
    return random.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    """Return numbers between 0.5 and 2."""
    return random.uniform(0.5, 2.0, size=shape).astype(np.float32)


def definite(*shape: int) -> np.ndarray:
    """Return positive definite matrices."""
    a = normal(*shape)
    return (a @ np.swapaxes(a, -1, -2) + 3 * np.eye(shape[-1])).astype(np.float32)


def integers(high: int, *shape: int) -> np.ndarray:
    """Return integers below a bound."""
    return random.integers(0, high, size=shape).astype(np.int32)


def case(*args: Any, grad: bool = True) -> Any:
    """Register a function with its arguments."""

    def register(function: Any) -> Any:
        CASES[function.__name__] = (function, args, grad)
        return function

    return register


# --- element-wise ---
@case(positive(3, 4), normal(3, 4))
def arithmetic(x, y):
    return x * y + x / (y * y + 1) - x**y + jnp.arctan2(x, y), jnp.hypot(x, y)


@case(positive(2, 5))
def special(x):
    s = jax.scipy.special
    return s.erf(x), s.erfc(x), s.erfinv(x / 3), s.gammaln(x), s.expit(x), jnp.log1p(x), jnp.cbrt(x)


@case(positive(6) / 3)
def trigonometry(x):
    return (
        jnp.sin(x) + jnp.cos(x) * jnp.tan(x),
        jnp.arcsin(x) + jnp.arccos(x) + jnp.arctan(x),
        jnp.sinh(x) + jnp.cosh(x) + jnp.tanh(x),
        jnp.arcsinh(x) + jnp.arccosh(1 + x) + jnp.arctanh(x),
    )


@case(integers(100, 8), integers(9, 8), grad=False)
def bits(x, y):
    return (
        x & y, x | y, x ^ y, ~x, x << (y % 5), (x - 50) >> (y % 5), lax.population_count(x),
        lax.clz(x), x // (y + 1), x % (y + 1), lax.shift_right_logical(x - 50, y % 5),
    )  # fmt: skip


@case(normal(4, 3))
def rounding(x):
    return jnp.floor(x) + jnp.ceil(x) + jnp.round(x) * x, jnp.clip(x, -0.5, 0.5), jnp.sign(x) * x


# JAX rounds the cotangent too, so the gradients of narrow floats differ.
@case(normal(3, 4), grad=False)
def casts(x):
    half = x.astype(jnp.bfloat16) * 2
    return half.astype(jnp.float32), (x * 10).astype(jnp.int32), x.astype(jnp.float16), x > 0


@case(integers(1000, 3, 4).astype(np.uint32), grad=False)
def bit_casts(x):
    small = lax.bitcast_convert_type(x, jnp.uint8)
    return (
        small,
        lax.bitcast_convert_type(small, jnp.uint32),
        lax.bitcast_convert_type(x, jnp.float32),
    )


@case(normal(3, 4), grad=False)
def precision(x):
    return lax.reduce_precision(x, 8, 7) * x, lax.reduce_precision(x, 5, 10)


@case(normal(2, 3), normal(2, 3))
def complex_numbers(x, y):
    z = x + 1j * y
    return jnp.abs(jnp.exp(z) * jnp.conj(z)), jnp.real(z * z), jnp.angle(z)


# --- movement ---
@case(normal(2, 3, 4))
def shapes(x):
    y = jnp.transpose(x, (2, 0, 1)).reshape(4, 6)
    return (
        jnp.flip(y, 1),
        jnp.concatenate([y, y[:2]], 0),
        jnp.stack([y, -y], 1),
        jnp.tile(y, (2, 1)),
    )


@case(normal(4, 5))
def padding(x):
    zero = np.float32(0.5)
    return (
        lax.pad(x, zero, ((1, 2, 1), (-1, -2, 0))),
        jnp.pad(x, 2, mode="reflect"),
        jnp.roll(x, 2, 1),
    )


@case(normal(5, 6))
def slices(x):
    return x[1:4, ::2], x[-1], x[:, ::-1], lax.dynamic_slice(x, (3, 4), (3, 3))


# --- reductions ---
@case(normal(3, 4, 5))
def reductions(x):
    return (
        x.sum((0, 2)),
        x.prod(1),
        x.max(),
        x.min(0),
        x.mean(),
        jnp.var(x, 1),
        jnp.linalg.norm(x, axis=1),
    )


@case(normal(3, 7), grad=False)
def extrema(x):
    return jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x), (x > 0).any(1), (x > -9).all()


@case(normal(3, 6))
def scans_of_sums(x):
    return jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 1), lax.cumsum(x, 1, reverse=True)


@case(normal(3, 6))
def logsumexps(x):
    return (
        jax.nn.logsumexp(x, 1),
        jax.nn.softmax(x, 0),
        jax.nn.log_softmax(x, 1),
        lax.cumlogsumexp(x, 1),
    )


@case(normal(4, 6), integers(5, 4, 6), grad=False)
def pair_reduction(x, i):
    larger = lambda a, b: (jnp.maximum(a[0], b[0]), a[1] + b[1])
    return lax.reduce((x, i), (np.float32(-9), np.int32(0)), larger, (1,))[0]


@case(normal(3, 5))
def function_reduction(x):
    return lax.reduce(x, np.float32(0), lambda a, b: a + b - 0.1 * a * b * 0, (1,)), jnp.ptp(x, 0)


# --- windows ---
@case(normal(2, 3, 9, 8))
def max_pool(x):
    return lax.reduce_window(x, -np.inf, lax.max, (1, 1, 3, 2), (1, 1, 2, 2), "SAME")


@case(normal(2, 3, 8, 8))
def mean_pool(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4


@case(np.round(normal(2, 1, 7, 7)))
def max_pool_gradient(x):
    pool = lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")
    return jax.grad(lambda x: (pool(x) * jnp.arange(9.0).reshape(3, 3)).sum())(x)


# --- products ---
@case(normal(3, 4), normal(5, 4), normal(2, 3, 4), normal(2, 4, 5))
def products(a, b, c, d):
    return (
        jnp.einsum("ij,kj->ki", a, b),
        c @ d,
        jnp.einsum("bij,bjk->kb", c, d),
        jnp.outer(a[0], b[0]),
    )


@case(normal(2, 8, 8, 3), normal(3, 3, 3, 4))
def convolution(x, w):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=numbers)


@case(normal(1, 4, 6, 6), normal(8, 2, 3, 3))
def grouped_convolution(x, w):
    return lax.conv_general_dilated(
        x, w, (1, 1), [(1, 1), (0, 2)], (1, 1), (2, 1), feature_group_count=2
    )


@case(normal(1, 3, 5), normal(3, 2, 3))
def transposed_convolution(x, w):
    return lax.conv_transpose(x, w, (2,), "SAME", dimension_numbers=("NCH", "IOH", "NCH"))


# --- indexing ---
@case(normal(7, 3), integers(7, 4))
def lookups(table, index):
    return (
        table[index],
        jnp.take(table, index, axis=0, mode="clip"),
        table[index, np.array([0, 2, 1, 1])],
    )


@case(normal(4, 6), integers(6, 4, 2))
def along_axis(x, index):
    return jnp.take_along_axis(x, index, 1)


@case(normal(3, 5, 6), integers(3, 4, 2))
def window_gather(x, start):
    numbers = lax.GatherDimensionNumbers((1, 2), (0,), (0, 1))
    batched = lax.GatherDimensionNumbers((1,), (1,), (1,), (0,), (0,))
    return lax.gather(x, start, numbers, (1, 2, 3)), lax.gather(
        x, start[:3, :1], batched, (1, 1, 4)
    )


@case(normal(6, 3), integers(6, 4), normal(4, 3))
def updates(x, index, values):
    return x.at[index].add(values), x.at[jnp.arange(4)].set(values), x.at[1:3].multiply(2.0)


@case(normal(6, 3), integers(6, 9), normal(9, 3))
def extreme_updates(x, index, values):
    return x.at[index].max(values), x.at[index].min(values)


@case(normal(5, 6), normal(2, 3), grad=False)
def window_scatter(x, values):
    numbers = lax.ScatterDimensionNumbers((0, 1), (), (0, 1))
    inside = lax.scatter(x, np.array([2, 1]), values, numbers)
    return inside, lax.scatter_add(x, np.array([4, 4]), values, numbers)


@case(normal(4, 7))
def sorting(x):
    return jnp.sort(x, 1), jnp.sort(x, 0, descending=True), lax.top_k(x, 3)[0], jnp.median(x, 1)


@case(integers(3, 20), normal(20), grad=False)
def sorting_by_keys(x, y):
    return jnp.argsort(x), jnp.lexsort((y, x)), lax.sort((x, y), num_keys=2), jnp.argsort(-y)


@case(integers(5, 30), grad=False)
def counting(x):
    return jnp.bincount(x, length=5), jnp.searchsorted(jnp.arange(5), x), jnp.unique(x, size=5)


@case(normal(8, 2), integers(4, 8))
def segments(x, index):
    return jax.ops.segment_sum(x, index, 4), jax.nn.one_hot(index, 4) @ x[:4]


# --- control flow ---
@case(normal(5, 3), normal(3))
def scan(xs, start):
    return lax.scan(lambda c, x: (jnp.tanh(c + x), c * x), start, xs)


@case(normal(3))
def fori(x):
    return lax.fori_loop(0, 5, lambda i, x: jnp.sin(x) * (i + 1), x)


@case(positive(3), grad=False)
def while_loop(x):
    return lax.while_loop(lambda s: s[1].sum() < 100, lambda s: (s[0] + 1, s[1] * 2), (0, x))


@case(normal(4), np.float32(0.5))
def conditionals(x, p):
    first = lax.cond(p > 0, jnp.sin, jnp.cos, x)
    return first, lax.switch(2, [jnp.sin, jnp.exp, lambda x: x * x], x), jnp.where(x > 0, x, p)


@case(normal(4, 3), normal(3))
def mapped(xs, w):
    step = lambda x: lax.cond(x.sum() > 0, lambda x: x @ w, lambda x: -(x @ w), x)
    return jax.vmap(step)(xs), lax.map(step, xs)


@case(normal(4))
def rematerialized(x):
    return jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.exp(x)))(x).sum())(x)


@case(normal(3))
def second_derivatives(x):
    f = lambda x: (jnp.sin(x) * x[0]).sum()
    return jax.hessian(f)(x), jax.jvp(f, (x,), (jnp.ones(3),))[1]


# --- linear algebra ---
@case(definite(3, 3), normal(3, 2))
def systems(a, b):
    solve = jax.scipy.linalg.solve_triangular
    return jnp.linalg.solve(a, b), jnp.linalg.inv(a), solve(a, b, lower=True, trans=1)


@case(definite(2, 3, 3))
def cholesky(a):
    return jnp.linalg.cholesky(a), jnp.linalg.cholesky(a[0], upper=True)


@case(definite(3, 3))
def determinants(a):
    return jnp.linalg.det(a), jnp.linalg.slogdet(a)[1]


@case(normal(4, 3), normal(3, 3))
def factorizations(a, b):
    q, r = jnp.linalg.qr(a)
    s = jnp.linalg.svd(a, compute_uv=True, full_matrices=False)
    return q @ r, q @ q.T, s[1], (s[0] * s[1]) @ s[2], jnp.linalg.eigh(b @ b.T)[0]


@case(definite(3, 3), normal(3))
def least_squares(a, b):
    return jnp.linalg.lstsq(a, b)[0], jnp.linalg.pinv(a), jax.scipy.linalg.cho_solve((a, True), b)


@case(normal(3, 8))
def fourier(x):
    return jnp.abs(jnp.fft.rfft(x)), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.real(jnp.fft.fft2(x))


# --- random numbers ---
@case(np.array([1, 2], np.uint32), grad=False)
def random_numbers(key):
    r = jax.random
    a, b = r.split(key)
    return r.uniform(a, (3,)), r.normal(b, (2, 2)), r.bits(a, (3,)), r.randint(b, (4,), 0, 10)


@case(np.array([1, 2], np.uint32), normal(4), grad=False)
def random_choices(key, x):
    r = jax.random
    return (
        r.bernoulli(key, 0.3, (5,)),
        r.categorical(key, x),
        r.permutation(key, 6),
        r.gumbel(key, (2,)),
    )


# --- models ---
@case(normal(4, 8), normal(8, 16), normal(16), normal(16, 3))
def perceptron(x, w, b, v):
    return jax.nn.relu(jax.nn.gelu(x @ w + b)) @ v


@case(normal(2, 5, 4), normal(4, 12), normal(4, 4))
def attention(x, w, o):
    q, k, v = jnp.split(x @ w, 3, -1)
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / 2
    scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -1e9)
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), v) @ o


@case(normal(6, 2, 3), normal(3, 16) / 2, normal(4, 16) / 2)
def lstm(xs, w, u):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ w + h @ u, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (jnp.zeros((2, 4)), jnp.zeros((2, 4))), xs)


@case(normal(2, 6, 6, 1), normal(3, 3, 1, 4), normal(36, 5))
def small_network(x, w, v):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = lax.reduce_window(jax.nn.relu(y), -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jax.nn.log_softmax(y.reshape(2, -1) @ v)


@case(normal(5, 4), normal(4), normal(4), normal(4), positive(4), normal(5))
def adam_step(x, w, m, n, v, y):
    gradient = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    m = 0.9 * m + 0.1 * gradient
    v = 0.999 * v + 0.001 * gradient**2
    return w - 0.01 * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-8), m, v, jnp.linalg.norm(n)


@case(
    integers(17, 2, 7), normal(17, 8), normal(7, 8), normal(2, 8, 24), normal(2, 8, 8),
    normal(2, 8, 32) / 3, normal(2, 32, 8) / 3,
)  # fmt: skip
def gpt(tokens, table, positions, qkv, out, up, down):
    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def layer(x, weights):
        qkv, out, up, down = weights
        q, k, v = (part.reshape(2, 7, 2, 4) for part in jnp.split(norm(x) @ qkv, 3, -1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2.0
        scores = jnp.where(jnp.tril(jnp.ones((7, 7), bool)), scores, -jnp.inf)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(2, 7, 8)
        x = x + mixed @ out
        return x + jax.nn.gelu(norm(x) @ up) @ down, None

    x, _ = lax.scan(layer, table[tokens] + positions, (qkv, out, up, down))
    logits = norm(x) @ table.T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], -1).mean()


# The order of the cases determines their arguments, so that new cases come last.
@case(np.array([1, 2, 3, 4], np.uint32), grad=False)
def random_bits(key):
    threefry, philox = lax.RandomAlgorithm.RNG_THREE_FRY, lax.RandomAlgorithm.RNG_PHILOX
    shapes = (), (0,), (1,), (5,), (3, 4), (3, 5), (5, 3), (2, 3, 4), (5, 5, 3)
    bits = [lax.rng_bit_generator(key, shape, algorithm=threefry) for shape in shapes]
    bits += [lax.rng_bit_generator(key, shape, algorithm=philox) for shape in shapes]
    bits += [lax.rng_bit_generator(key, (7,), np.uint8, algorithm=threefry)]
    return (
        bits,
        lax.rng_bit_generator(key, (7,), np.uint8),
        jax.random.key_data(jax.random.split(jax.random.wrap_key_data(key, impl="rbg"), 3)),
    )


@case(normal(1, 5), integers(5, 2, 1))
def collapsed_gather(x, start):
    numbers = lax.GatherDimensionNumbers((), (0, 1), (1,))
    return lax.gather(x, start, numbers, (1, 1))


@case(normal(4))
def constraints(x):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("device",))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return lax.with_sharding_constraint(2 * x, whole)


@case(normal(3), grad=False)
def empty_selection(x):
    return lax.top_k(x, 0)


@case(normal(3))
def callbacks(x):
    jax.debug.print("{}", x)
    jax.debug.callback(lambda x: None, x, ordered=True)

    def step(total, x):
        jax.debug.callback(lambda x: None, x)
        return total + x, None

    return 2 * lax.scan(step, 0.0, x)[0]


@case(normal(2, 4, 3), normal(3, 5))
def rectangular_lu(a, b):
    # The first rows of `c` have no inverse.
    c = jnp.concatenate([jnp.zeros((2, 3)), a[0]])
    lu = jax.scipy.linalg.lu
    return jax.vmap(lu)(a), lu(b), lu(c)


@case(np.array([[1, 2, 3], [2, 4, 6], [0, 0, 0], [-2, -4, 1]], np.float32), grad=False)
def deficient_lu(a):
    zero = jnp.zeros((3, 2))
    return [jax.scipy.linalg.lu(m) for m in (a, a.T, zero, zero.T)]


@case(normal(4, 3), normal(4, 2), normal(2, 4), grad=False)
def orthogonal_products(a, c, d):
    packed, scales = linalg.geqrf(a)
    times = lambda x, left=True, transpose=False: linalg.ormqr(
        packed, scales, x, left=left, transpose=transpose
    )
    # The signs of the rows of the factors depend on the library.
    return (
        times(jnp.triu(packed)),
        jnp.abs(times(c, transpose=True)),
        jnp.abs(times(d, left=False)),
        jnp.abs(times(times(d, left=False), left=False, transpose=True)),
    )


@case(normal(2, 5), 3 * normal(2, 5))
def complex_logsumexps(x, y):
    sums = lax.cumlogsumexp(lax.complex(x, y), 1)
    reverse = lax.cumlogsumexp(lax.complex(x, y), 1, reverse=True)
    return sums.real, sums.imag, reverse.real, reverse.imag


@case(
    random.integers(-128, 128, (2, 4, 9)).astype(np.int8),
    random.integers(-128, 128, (6, 2, 3)).astype(np.int8),
    random.integers(-(2**31), 2**31, (2, 2, 9)).astype(np.int32),
    random.integers(-(2**31), 2**31, (3, 2, 3)).astype(np.int32),
    grad=False,
)
def integer_convolutions(x, kernel, y, wide_kernel):
    padded = lambda x, kernel, **options: lax.conv_general_dilated(
        x, kernel, (1,), "SAME", **options
    )
    return (
        padded(x, kernel, feature_group_count=2, preferred_element_type=jnp.int32),
        padded(x, kernel, feature_group_count=2),
        padded(y, wide_kernel),
        padded(y.astype(jnp.uint32), wide_kernel.astype(jnp.uint32)),
    )


@case(normal(3, 7))
def approximate_extrema(x):
    return (
        *lax.approx_max_k(x, 3),
        *lax.approx_min_k(x, 2, reduction_dimension=0),
        *lax.approx_max_k(x, 2, aggregate_to_topk=False),
    )


@case(normal(2, 6), normal(2, 6) / 4, normal(2, 6), normal(2, 6, 3))
def tridiagonal_systems(low, diagonal, high, b):
    # Without exchanges of rows, the small diagonal would be the pivots.
    solve = linalg.tridiagonal_solve
    return solve(low, diagonal, high, b), solve(low[0], diagonal[0], high[0], b[1])


@case(normal(5) / 3)
def inverse_errors(x):
    return lax.erf_inv(jnp.clip(x, -0.9, 0.9)), lax.erf_inv(jnp.zeros(2) * x[0])


def weighted(results: Any) -> Any:
    """Return the sum of float results, weighted with cosines."""
    total = 0.0
    for leaf in jax.tree.leaves(results):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            weights = jnp.cos(jnp.arange(leaf.size, dtype=jnp.float32)).reshape(leaf.shape)
            total = total + (leaf.astype(jnp.float32) * weights).sum()
    return total


def write_export(name: str, folder: Path, *, export: bool, artifact: bool) -> None:
    """Write the export of a case, and the portable artifact inside."""
    if not export and not artifact:
        return
    function, args, _ = CASES[name]
    exported = jax.export.export(jax.jit(function, keep_unused=True))(*args)
    if export:
        (folder / f"{name}.jax").write_bytes(exported.serialize())
    if artifact:
        (folder / f"{name}.mlirbc").write_bytes(exported.mlir_module_serialized)


def write_containers() -> None:
    """Write the export of a function of containers, with an argument that it does not use."""

    def affine(params, x, unused, *, scale):
        y = x @ params["w"] * scale + params["b"]
        return {"y": y, "parts": (x.sum(), [x[0], None])}

    params = {"w": normal(3, 2), "b": normal(2)}
    exported = jax.export.export(jax.jit(affine))(
        params, normal(4, 3), normal(7), scale=np.float32(2)
    )
    (FOLDER.parent / "containers.jax").write_bytes(exported.serialize())


def write_platforms() -> None:
    """Write the export of a function that differs between two platforms."""

    def wave(x):
        return lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos)

    export = jax.export.export(jax.jit(wave), platforms=("cpu", "cuda"))
    (FOLDER.parent / "platforms.jax").write_bytes(export(normal(3)).serialize())


def write(name: str) -> None:
    """Write the module and the data of a case."""
    function, args, grad = CASES[name]
    text = jax.jit(function, keep_unused=True).lower(*args).as_text()
    data = {f"in{at}": np.asarray(arg) for at, arg in enumerate(args)}
    results = jax.jit(function)(*args)
    for at, leaf in enumerate(map(np.asarray, jax.tree.leaves(results))):
        data[f"out{at}"] = leaf.astype(np.float32) if leaf.dtype.name == "bfloat16" else leaf
    floats = [at for at, arg in enumerate(args) if np.asarray(arg).dtype == np.float32]
    if grad:
        gradients = jax.grad(lambda *args: weighted(function(*args)), floats)(*args)
        data |= {f"grad{at}": np.asarray(g) for at, g in zip(floats, gradients, strict=True)}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.mlir").write_text(text, encoding="utf-8")
    save(FOLDER / f"{name}.safetensors", data)
    write_export(name, FOLDER, export=name in EXPORTED, artifact=name in ARTIFACTS)


#: The names of dtypes in files.
NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int32": "I32",
    "uint32": "U32",
    "float16": "F16",
    "float32": "F32",
}


def save(path: Path, data: dict[str, np.ndarray]) -> None:
    """Write a file in the format of safetensors."""
    header, content = {}, b""
    for name, array in data.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [len(content), len(content) + len(raw)],
        }
        content += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


if __name__ == "__main__":
    # The exports name source files without their folders.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    if sys.argv[1:2] == ["--exports"]:
        for chosen in CASES.keys() - TEXT_ONLY:
            write_export(chosen, Path(sys.argv[2]), export=True, artifact=True)
    else:
        for chosen in sys.argv[1:] or CASES:
            write(chosen)
        if not sys.argv[1:]:
            write_containers()
            write_platforms()
