"""Ops with empty operands: eager, jitted, and in the bytecode of loops."""

import itertools

import numpy as np
import pytest

import nxla as nx


def write_clamped(x, update, starts):
    """Write an update at starts that are clamped to the valid range."""
    x = np.array(x)
    clamped_starts = [
        int(np.clip(s, 0, n - m)) for s, n, m in zip(starts, x.shape, update.shape, strict=True)
    ]
    x[tuple(slice(s, s + m) for s, m in zip(clamped_starts, update.shape, strict=True))] = update
    return x


def loop(function):
    """Run a function of the state in a loop, where the evaluator compiles it to bytecode."""
    return lambda x, *rest: nx.fori(0, 3, lambda k, s: function(s, *rest) + 1, x)


@pytest.mark.parametrize("start", [-9, 0, 1, 4, 5, 900])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float64])
@pytest.mark.parametrize(
    ("shape", "update"),
    [
        ((1, 5), (0, 1)),
        ((1, 5), (1, 0)),
        ((3, 4), (0, 0)),
        ((3, 4), (3, 0)),
        ((0, 4), (0, 2)),
        ((2, 0), (1, 0)),
        ((3, 4), (2, 3)),
    ],
)
def test_empty_writes_and_slices(shape, update, dtype, start):
    x, u = np.ones(shape, dtype), np.full(update, 7, dtype)
    expected = x
    for _ in range(3):
        expected = write_clamped(expected, u, (start, start)) + x.dtype.type(1)
    index = nx.tensor(start)
    put = lambda s, u, i: nx.put_slice(s, [i, i], u)  # noqa: E731
    result = nx.jit(loop(put), compiler="evaluator")(x, u, index)
    assert result.shape == shape
    np.testing.assert_array_equal(result.numpy(), expected)
    once = nx.put_slice(x, [index, index], u)
    np.testing.assert_array_equal(once.numpy(), write_clamped(x, u, (start, start)))
    # The sum of a slice is the number of its elements times their common value.
    total = lambda s, i: s + nx.astype(nx.sum(nx.slice(x, [i, i], update)), "f32")  # noqa: E731
    summed = nx.jit(loop(total), compiler="evaluator")(nx.tensor(0.0), index)
    assert summed.item() == 3 * np.prod(update) + 3


OPS = {
    "add": lambda e: e + e,
    "exp": nx.exp,
    "where": lambda e: nx.where(e > 0, e, -e),
    "astype": lambda e: nx.astype(nx.astype(e, "s8"), "f32"),
    "permute_dims": lambda e: nx.permute_dims(e, (1, 0)),
    "reshape": lambda e: nx.reshape(e, (0, 7)),
    "flip": nx.flip,
    "concat": lambda e: nx.concat([e, e], axis=0),
    "sort": lambda e: nx.sort(e, axis=1),
    "argsort": lambda e: nx.argsort(e, axis=0),
    "cumulative_sum": lambda e: nx.cumulative_sum(e, axis=1),
    "slice": lambda e: e[:, 1:2],
    "take": lambda e: nx.take(e, nx.tensor([0, 1]), axis=1),
    "outer": lambda e: nx.outer(e, e),
    "fft": lambda e: nx.fft.fft(e, axis=1),
    "window_sum": lambda e: nx.window_sum(e, (1, 2)),
    "broadcast": lambda e: nx.broadcast_to(e, (4, *e.shape)),
}


@pytest.mark.parametrize("mode", ["eager", "jitted", "in a loop"])
@pytest.mark.parametrize("name", OPS)
def test_ops_of_empty_operands_are_empty(name, mode, compiler):
    op, empty = OPS[name], nx.zeros((0, 3))
    if mode == "in a loop":
        # Three iterations add zero to the state.
        function = loop(lambda s, e: s + nx.sum(nx.astype(nx.real(op(e)), "f32")))
        assert nx.jit(function, compiler=compiler)(nx.tensor(2.0), empty).item() == 5
        return
    result = op(empty) if mode == "eager" else nx.jit(op, compiler=compiler)(empty)
    assert result.size == 0
    assert result.tolist() == np.zeros(result.shape).tolist()


def test_empty_reductions_return_the_identity(compiler):
    function = nx.jit(
        lambda e: [nx.sum(e, axis=0), nx.prod(e, axis=0), e.T @ e, nx.all(e), nx.any(e)],
        compiler=compiler,
    )
    total, product, dot, all_true, any_true = function(nx.zeros((0, 3)))
    assert total.tolist() == [0, 0, 0]
    assert product.tolist() == [1, 1, 1]
    assert dot.tolist() == np.zeros((3, 3)).tolist()
    assert (all_true.item(), any_true.item()) == (True, False)


@pytest.mark.parametrize("method", ["set", "add", "multiply", "divide", "min", "max", "power"])
def test_writes_into_an_empty_batch(method, compiler):
    def write(x):
        return getattr(x.at[nx.tensor([0, 0])], method)(2.0)

    empty = nx.ones((0, 3))
    assert nx.jit(nx.vmap(write), compiler=compiler)(empty).shape == (0, 3)
    gradient = nx.vmap(nx.grad(lambda x: nx.sum(write(x))))
    assert nx.jit(gradient, compiler=compiler)(empty).shape == (0, 3)


#: Functions along one axis.
ALONG_AXIS = {
    "softmax": nx.nn.softmax,
    "log_softmax": nx.nn.log_softmax,
    "cumulative_sum": nx.cumulative_sum,
    "norm": nx.linalg.norm,
}

#: Functions over several axes.
OVER_AXES = {
    **{
        name: getattr(nx, name)
        for name in [
            "sum", "prod", "mean", "var", "std", "all", "any", "logsumexp", "nansum", "nanmean",
            "nanprod", "nanvar", "nanstd", "count_nonzero",
        ]
    },
    "fold": lambda x, axis: nx.reduce(x, 1.0, lambda a, b: a * b + b, axis=axis),
    "grad": lambda x, axis: nx.grad(lambda x: nx.sum(nx.sum(x * x, axis=axis)))(x),
}  # fmt: skip


@pytest.mark.parametrize("name", [*ALONG_AXIS, *OVER_AXES])
def test_sizes_of_empty_tensors_may_overflow(name):
    # XLA multiplies sizes in 64 bits, so only the evaluator runs.
    function = ALONG_AXIS.get(name) or OVER_AXES[name]
    several = [(0, 1), (0, 2), (1, 2), (0, 1, 2)] if name in OVER_AXES else []
    computed = 0
    for shape in itertools.product((0, 2**40, 2), repeat=3):
        if 0 not in shape:
            continue
        x = nx.zeros(shape)
        assert repr(x).startswith("#nxla.Tensor<")
        for axis in [0, 1, 2, *several]:
            jitted = nx.jit(lambda x, axis=axis: function(x, axis=axis), compiler="evaluator")
            for call in (lambda x, axis=axis: function(x, axis=axis), jitted):
                try:
                    call(x)
                    computed += 1
                except (nx.OutOfMemoryError, nx.ExecutionError, nx.GradientError):
                    pass  # The result has 2**40 elements or more.
    assert computed > 0
