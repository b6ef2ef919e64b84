"""`nx.nn` compared with JAX: values, derivatives, and results for extreme numbers.

The values of JAX are recorded, see `recordings`.
"""

import numpy as np
import pytest

import nxla as nx

#: Ordinary numbers, and numbers with kinks, overflow and cancellation.
EXTREMES = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, 20.0, -20.0, 90.0, -90.0, 3e4, -3e4, 1e38, -1e38]

NUMBERS = np.concatenate([np.linspace(-7.05, 7.0, 60), EXTREMES]).astype("f4")

ACTIVATIONS = [
    ("relu", {}),
    ("relu6", {}),
    ("hard_tanh", {}),
    ("hard_sigmoid", {}),
    ("hard_silu", {}),
    ("silu", {}),
    ("gelu", {"approximate": True}),
    ("gelu", {"approximate": False}),
    ("elu", {"alpha": 0.7}),
    ("selu", {}),
    ("celu", {"alpha": 0.7}),
    ("softplus", {}),
    ("log_sigmoid", {}),
    ("soft_sign", {}),
    ("leaky_relu", {"negative_slope": 0.2}),
    ("mish", {}),
    ("squareplus", {"b": 3.0}),
    ("sparse_plus", {}),
    ("sparse_sigmoid", {}),
    ("sigmoid", {}),
    ("tanh", {}),
]
IDS = [f"{name}{list(options.values())}" for name, options in ACTIVATIONS]


def squareplus(x, b):
    """Return the function without a difference of nearly equal numbers, which JAX computes."""
    root = np.sqrt(x * x + b)
    return np.where(x < 0, b / (root + np.abs(x)), x + root) / 2


@pytest.mark.parametrize(("name", "options"), ACTIVATIONS, ids=IDS)
def test_activations(name, options, recorded):
    ours = getattr(nx.nn, name)
    x, weights = NUMBERS, np.cos(np.arange(NUMBERS.size)).astype("f4")
    got = nx.jit(lambda x: ours(x, **options))(nx.tensor(x))
    slope = nx.grad(lambda x: nx.sum(weights * ours(x, **options)))(nx.tensor(x))
    with np.errstate(over="ignore", invalid="ignore"):
        value = recorded(lambda jax: getattr(jax.nn, name)(x, **options))
        expected_slope = recorded(
            lambda jax: jax.grad(lambda x: (weights * getattr(jax.nn, name)(x, **options)).sum())(x)
        )
    if name == "squareplus":
        value = squareplus(x.astype("f8"), **options)
        np.testing.assert_allclose(np.asarray(got)[-3:-1], value[-3:-1], rtol=1e-6)
    finite = np.isfinite(value)
    assert got.dtype == nx.float32
    assert np.isfinite(np.asarray(got)).all()
    np.testing.assert_allclose(np.asarray(got)[finite], value[finite], rtol=2e-5, atol=1e-6)
    assert np.isfinite(np.asarray(slope)).all()
    # At kinks, and for large numbers for which JAX overflows, other slopes are valid too.
    smooth = (
        np.isfinite(expected_slope)
        & (np.abs(x) < 1e30)
        & ~np.isin(x, [0.0, -1.0, 1.0, -3.0, 3.0, 6.0])
    )
    np.testing.assert_allclose(
        np.asarray(slope)[smooth], expected_slope[smooth], rtol=3e-4, atol=1e-5
    )


def test_activations_on_xla():
    def values_and_slopes(x):
        functions = [lambda x, n=n, o=o: getattr(nx.nn, n)(x, **o) for n, o in ACTIVATIONS]
        values = [function(x) for function in functions]
        return values, [nx.grad(lambda x, f=f: nx.sum(f(x)))(x) for f in functions]

    got = nx.jit(values_and_slopes, compiler="xla")(nx.tensor(NUMBERS))
    expected = nx.jit(values_and_slopes, compiler="evaluator")(nx.tensor(NUMBERS))
    for ours, reference in zip(nx.tree.leaves(got), nx.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "options"), ACTIVATIONS, ids=IDS)
def test_dtypes_of_activations(name, options):
    function = getattr(nx.nn, name)
    for dtype in ("f16", "bf16", "f64"):
        assert str(function(nx.tensor([1.0, -2.0], dtype), **options).dtype) == dtype
    assert str(function([1, -2], **options).dtype) == "f32"
    assert np.isnan(function(np.nan, **options).item())
    if name not in ("tanh", "sigmoid"):
        with pytest.raises(nx.DTypeError, match="real"):
            function(1j, **options)


def test_slopes_at_kinks():
    for name, expected in [
        ("relu", {0.0: 0.0}),
        ("relu6", {0.0: 0.0, 6.0: 0.0}),
        ("hard_tanh", {-1.0: 0.0, 1.0: 0.0}),
        ("elu", {0.0: 1.0}),
        ("softplus", {0.0: 0.5}),
    ]:
        slope = nx.grad(getattr(nx.nn, name))
        assert {x: slope(x).item() for x in expected} == expected


def test_log1mexp():
    x = np.array([1e-20, 1e-6, 0.1, 0.6931, 0.7, 5.0, 50.0])
    with np.errstate(divide="ignore"):
        expected = np.where(x < 0.7, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x)))
    np.testing.assert_allclose(nx.nn.log1mexp(x), expected, rtol=1e-12)
    slope = nx.grad(lambda x: nx.sum(nx.nn.log1mexp(x)))(nx.tensor(x))
    np.testing.assert_allclose(slope, 1 / np.expm1(x), rtol=1e-9)


def test_softmax(compiler, recorded):
    x = np.array([[1.0, 2.0, 3.0], [1e38, 0.0, -1e38], [-np.inf, 0.0, 1.0], [5e4, 5e4, 5e4]], "f4")
    with nx.default_options(compiler=compiler):
        for name in ("softmax", "log_softmax"):
            for axis in (-1, 0):
                rows = x if axis == -1 else x[[0, 3]]
                got = getattr(nx.nn, name)(rows, axis)
                expected = recorded(
                    lambda jax, f, *args: getattr(jax.nn, f)(*args), name, rows, axis
                )
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)
        weights = np.array([1.0, -2.0, 0.5], "f4")
        for name in ("softmax", "log_softmax"):
            got = nx.grad(lambda x, f=name: nx.sum(getattr(nx.nn, f)(x) * weights))(
                nx.tensor(x[:2])
            )
            theirs = lambda jax, f: lambda x: (getattr(jax.nn, f)(x) * weights).sum()  # noqa: E731
            expected = recorded(lambda jax, f, g=theirs: jax.grad(g(jax, f))(x[:2]), name)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)
        # Sums of many narrow floats keep their precision.
        assert nx.sum(nx.astype(nx.nn.softmax(nx.zeros(5000, dtype="bf16")), "f32")).item() == (
            pytest.approx(1.0, rel=1e-2)
        )


def test_glu(recorded):
    x = np.linspace(-2, 2, 12).reshape(2, 6).astype("f4")
    np.testing.assert_allclose(nx.nn.glu(x), recorded(lambda jax: jax.nn.glu(x)), rtol=1e-6)
    np.testing.assert_allclose(nx.nn.glu(x, 0), recorded(lambda jax: jax.nn.glu(x, 0)), rtol=1e-6)
    with pytest.raises(nx.ArgumentError, match="even"):
        nx.nn.glu(x[:, :5])


def test_one_hot(recorded):
    x = np.array([[0, 2], [-1, 7]])
    for axis in (-1, 0, 1):
        got = nx.nn.one_hot(x, 3, axis=axis)
        expected = recorded(lambda jax, axis: jax.nn.one_hot(x, 3, axis=axis), axis)
        np.testing.assert_array_equal(got, expected)
    assert nx.nn.one_hot(nx.tensor([255], "u8"), 300).shape == (1, 300)
    assert nx.nn.one_hot(nx.tensor([255], "u8"), 300)[0, 255].item() == 1.0
    assert nx.nn.one_hot([1], 2, dtype=nx.bool).tolist() == [[False, True]]
    assert nx.nn.one_hot(2, 3).tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(nx.DTypeError, match="integer"):
        nx.nn.one_hot([0.5], 3)
    with pytest.raises(nx.ArgumentError, match="negative"):
        nx.nn.one_hot([1], -3)


def reference_norm(x, axes, epsilon, mean=True):
    x = x - x.mean(axes, keepdims=True) if mean else x
    return x / ((x**2).mean(axes, keepdims=True) + epsilon) ** 0.5


def test_norms(compiler, recorded):
    rng = np.random.default_rng(0)
    x = rng.normal(2.0, 3.0, (4, 5, 6)).astype("f4")
    scale, bias = rng.normal(size=(2, 6)).astype("f4")
    mean, variance = rng.normal(size=6).astype("f4"), rng.uniform(0.5, 2, 6).astype("f4")
    both = rng.normal(size=(5, 6)).astype("f4")

    def groups(x, n):
        return reference_norm(x.reshape(4, 5, n, -1), (1, 3), 1e-5).reshape(x.shape)

    cases = [
        (
            lambda x: nx.nn.layer_norm(x, scale, bias),
            lambda x: reference_norm(x, -1, 1e-5) * scale + bias,
        ),
        (
            lambda x: nx.nn.layer_norm(x, both, axis=(1, 2)),
            lambda x: reference_norm(x, (1, 2), 1e-5) * both,
        ),
        (lambda x: nx.nn.layer_norm(x, axis=(-1, 1)), lambda x: reference_norm(x, (1, 2), 1e-5)),
        (
            lambda x: nx.nn.rms_norm(x, scale),
            lambda x: reference_norm(x, -1, 1e-6, mean=False) * scale,
        ),
        (lambda x: nx.nn.group_norm(x, 3, scale, bias), lambda x: groups(x, 3) * scale + bias),
        (
            lambda x: nx.nn.batch_norm(x, mean, variance, scale, bias),
            lambda x: (x - mean) / np.sqrt(variance + 1e-5) * scale + bias,
        ),
        (
            lambda x: nx.nn.batch_norm_train(x, mean, variance, scale, bias)[0],
            lambda x: reference_norm(x, (0, 1), 1e-5) * scale + bias,
        ),
    ]
    weights = rng.normal(size=x.shape).astype("f4")
    with nx.default_options(compiler=compiler):
        for ours, theirs in cases:
            expected = recorded(lambda jax, f: jax.jit(f)(x), theirs)
            np.testing.assert_allclose(ours(nx.tensor(x)), expected, rtol=1e-4, atol=1e-5)
            got = nx.grad(lambda x, f=ours: nx.sum(f(x) * weights))(nx.tensor(x))
            expected = recorded(
                lambda jax, f: jax.jit(jax.grad(lambda x: (f(x) * weights).sum()))(x), theirs
            )
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)
        _, new_mean, new_variance = nx.nn.batch_norm_train(x, mean, variance, momentum=0.75)
        np.testing.assert_allclose(new_mean, 0.75 * mean + 0.25 * x.mean((0, 1)), rtol=1e-5)
        np.testing.assert_allclose(new_variance, 0.75 * variance + 0.25 * x.var((0, 1)), rtol=1e-5)
        # The mean of large numbers is subtracted before they are squared.
        np.testing.assert_allclose(
            nx.nn.layer_norm(nx.tensor([10000.0, 10001.0], "f32")), [-1.0, 1.0], rtol=1e-4
        )
        # Squares of large elements exceed the range of the elements.
        large = nx.tensor([[1e20], [-1e20]], "f32")
        found = nx.nn.batch_norm_train(large, nx.zeros(1), nx.ones(1))[0]
        np.testing.assert_allclose(found, [[1.0], [-1.0]], rtol=1e-6)
        narrow = nx.nn.layer_norm(nx.tensor(x, "f16"))
        assert narrow.dtype == nx.float16
        np.testing.assert_allclose(narrow, reference_norm(x, -1, 1e-5), atol=5e-3)


def test_norms_along_other_axes():
    x = np.random.default_rng(0).normal(size=(2, 6, 3, 3)).astype("f4")
    scale = np.arange(1.0, 7.0, dtype="f4")
    moved = np.moveaxis(x, 1, -1)
    for name, arguments in [
        ("group_norm", (2, scale)),
        ("batch_norm", (np.zeros(6, "f4"), np.ones(6, "f4"), scale)),
    ]:
        function = getattr(nx.nn, name)
        first = np.asarray(function(x, *arguments, axis=1))
        last = np.asarray(function(moved, *arguments))
        np.testing.assert_allclose(np.moveaxis(first, 1, -1), last, rtol=1e-5, atol=1e-6)
    named = nx.tensor(x, names=["n", "c", "y", "x"])
    assert nx.nn.group_norm(named, 2, axis="c").names == ["n", "c", "y", "x"]
    assert nx.nn.layer_norm(named, axis=["y", "x"]).names == ["n", "c", "y", "x"]


def test_norms_reject_invalid_arguments():
    x = nx.ones((2, 6))
    with pytest.raises(nx.ShapeError, match="scale"):
        nx.nn.layer_norm(x, nx.ones(5))
    with pytest.raises(nx.ShapeError, match="variance"):
        nx.nn.batch_norm(x, nx.ones(6), nx.ones(2))
    with pytest.raises(nx.ArgumentError, match="divide"):
        nx.nn.group_norm(x, 4)
    with pytest.raises(nx.ArgumentError, match="axis of examples"):
        nx.nn.group_norm(x, 2, axis=0)
    with pytest.raises(nx.ShapeError, match="mean"):
        nx.nn.batch_norm_train(x, nx.ones(3), nx.ones(6))


def test_dropout(compiler):
    key = nx.random.key(1)
    with nx.default_options(compiler=compiler):
        y, next_key = nx.nn.dropout(key, nx.full(10000, 2.0), 0.25)
        values = np.asarray(y)
        np.testing.assert_allclose(np.unique(values), [0.0, 2.0 / 0.75], rtol=1e-6)
        assert abs((values == 0).mean() - 0.25) < 0.02
        assert next_key.tolist() == nx.random.split(key)[0].tolist()
        assert nx.nn.dropout(key, nx.ones(5), 1.0)[0].tolist() == [0.0] * 5
        slope = nx.grad(lambda x: nx.sum(nx.nn.dropout(key, x, 0.5)[0]))(nx.ones(100))
        assert sorted(set(slope.tolist())) == [0.0, 2.0]
    with pytest.raises(nx.ArgumentError, match="rate"):
        nx.nn.dropout(key, [1.0], 1.5)


def test_embedding():
    table = nx.reshape(nx.arange(6.0), (3, 2))
    assert nx.nn.embedding(table, [[2], [0]]).tolist() == [[[4.0, 5.0]], [[0.0, 1.0]]]
    slope = nx.grad(lambda table: nx.sum(nx.nn.embedding(table, [1, 1])))(table)
    assert slope.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0]]
    with pytest.raises(nx.DTypeError):
        nx.nn.embedding(table, [0.5])


@pytest.mark.parametrize("heads", [4, 2])
def test_attention(compiler, heads, recorded):
    rng = np.random.default_rng(0)
    q = rng.normal(size=(2, 5, 4, 8)).astype("f4")
    k, v = rng.normal(size=(2, 2, 7, heads, 8)).astype("f4")
    bias = rng.normal(size=(1, 4, 5, 7)).astype("f4")
    mask = rng.uniform(size=(2, 1, 5, 7)) > 0.3
    mask[0, 0, 2] = False
    with nx.default_options(compiler=compiler):
        for options in [
            {"mask": mask},
            {"is_causal": True},
            {"bias": bias, "mask": mask, "is_causal": True, "scale": 0.3},
        ]:
            run = lambda q, k, v, f, o=options: f(q, k, v, **o)  # noqa: E731
            got = nx.jit(lambda q, k, v, r=run: r(q, k, v, nx.nn.dot_product_attention))(q, k, v)
            expected = recorded(lambda jax, r: r(q, k, v, jax.nn.dot_product_attention), run)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
        loss = lambda f, s: lambda q, k, v: s(f(q, k, v, mask=mask) ** 2)  # noqa: E731
        ours = loss(nx.nn.dot_product_attention, nx.sum)
        got = nx.grad(ours, argnums=(0, 1, 2))(*map(nx.tensor, (q, k, v)))
        theirs = lambda jax: loss(jax.nn.dot_product_attention, jax.numpy.sum)  # noqa: E731
        for argument, slope in enumerate(got):
            expected = recorded(
                lambda jax, at: jax.jit(jax.grad(theirs(jax), at))(q, k, v), argument
            )
            np.testing.assert_allclose(slope, expected, rtol=1e-3, atol=1e-4)


def test_attention_overflow_and_invalid_shapes():
    q = nx.full((1, 2, 1, 4), 1e4, dtype="f16")
    y = nx.nn.dot_product_attention(q, q, q)
    assert y.dtype == nx.float16
    assert y.shape == (1, 2, 1, 4)
    assert np.isfinite(np.asarray(y)).all()
    alone = nx.nn.dot_product_attention(q[0], q[0], nx.ones((2, 1, 3)))
    assert alone.shape == (2, 1, 3)
    for shapes, argument in [
        ([(2, 4), (2, 1, 4), (2, 1, 4)], "query"),
        ([(2, 3, 4), (2, 2, 4), (2, 2, 4)], "key"),
        ([(2, 2, 4), (2, 2, 5), (2, 2, 4)], "key"),
        ([(2, 2, 4), (3, 2, 4), (2, 2, 4)], "value"),
    ]:
        with pytest.raises(nx.ShapeError, match=argument):
            nx.nn.dot_product_attention(*map(nx.ones, shapes))
    x = nx.ones((2, 2, 4))
    with pytest.raises(nx.ShapeError, match="mask"):
        nx.nn.dot_product_attention(x, x, x, mask=nx.ones((3, 3)))


def test_losses(compiler, recorded):
    rng = np.random.default_rng(0)
    logits = np.concatenate([rng.normal(size=(6, 4)), 1e4 * rng.normal(size=(2, 4))]).astype("f4")
    labels = rng.integers(0, 4, 8)
    soft = np.exp(rng.normal(size=(8, 4)))
    soft = (soft / soft.sum(-1, keepdims=True)).astype("f4")
    soft[0] = [0.0, 1.0, 0.0, 0.0]
    other = rng.normal(size=(8, 4)).astype("f4")
    logs = other - np.log(np.exp(other).sum(-1, keepdims=True))
    x, z = logits[:, 0], soft[:, 0]
    clean = np.where(soft > 0, soft, np.float32(1))
    unit = lambda x: x / (x**2).sum(-1, keepdims=True) ** 0.5  # noqa: E731
    error = np.abs(logits - other)
    cases = [
        (
            lambda a: nx.nn.softmax_cross_entropy(a, soft),
            lambda a, jax: -(soft * jax.nn.log_softmax(a)).sum(-1),
            logits,
        ),
        (
            lambda a: nx.nn.softmax_cross_entropy_with_integer_labels(a, labels),
            lambda a, jax: -jax.nn.log_softmax(a)[np.arange(8), labels],
            logits,
        ),
        (
            lambda a: nx.nn.sigmoid_binary_cross_entropy(a, z),
            lambda a, jax: -z * jax.nn.log_sigmoid(a) - (1 - z) * jax.nn.log_sigmoid(-a),
            x,
        ),
        (lambda a: nx.nn.squared_error(a, other), lambda a, jax: (a - other) ** 2, logits),
        (
            lambda a: nx.nn.huber_loss(a, other, delta=0.7),
            lambda a, jax: jax.numpy.where(
                error <= 0.7, 0.5 * (a - other) ** 2, 0.7 * (abs(a - other) - 0.35)
            ),
            logits,
        ),
        (
            lambda a: nx.nn.kl_divergence(a, soft),
            lambda a, jax: (soft * (np.log(clean) - a)).sum(-1),
            logs,
        ),
        (
            lambda a: nx.nn.cosine_similarity(a, other),
            lambda a, jax: (unit(a) * unit(other)).sum(-1),
            logits,
        ),
    ]
    with nx.default_options(compiler=compiler):
        for ours, theirs, argument in cases:
            run = lambda jax, f, a: jax.jit(lambda a: f(a, jax))(a)  # noqa: E731
            expected = recorded(run, theirs, argument)
            np.testing.assert_allclose(ours(nx.tensor(argument)), expected, rtol=2e-5, atol=1e-5)
            slope = nx.grad(lambda a, f=ours: nx.sum(f(a)))(nx.tensor(argument))
            run = lambda jax, f, a: jax.jit(jax.grad(lambda a: f(a, jax).sum()))(a)  # noqa: E731
            expected_slope = recorded(run, theirs, argument)
            np.testing.assert_allclose(slope, expected_slope, rtol=1e-4, atol=1e-5)


def test_losses_at_extreme_values():
    inf = np.inf
    assert nx.nn.softmax_cross_entropy([0.0, -inf], [1.0, 0.0]).item() == 0.0
    assert nx.nn.kl_divergence([0.0, -inf], [1.0, 0.0]).item() == 0.0
    assert nx.nn.sigmoid_binary_cross_entropy(100.0, 1.0).item() == pytest.approx(np.exp(-100))
    assert nx.nn.sigmoid_binary_cross_entropy([inf, -inf], [1.0, 0.0]).tolist() == [0.0, 0.0]
    assert nx.nn.cosine_similarity(nx.zeros(3), nx.ones(3)).item() == 0.0
    assert np.isfinite(
        np.asarray(nx.grad(lambda x: nx.nn.cosine_similarity(x, nx.ones(3)))(nx.zeros(3)))
    ).all()
    assert nx.nn.cosine_similarity([1e-30, 0.0], [1e30, 0.0], epsilon=0.0).item() == 1.0
    with pytest.raises(nx.ShapeError, match="labels"):
        nx.nn.softmax_cross_entropy_with_integer_labels(nx.ones((2, 3)), [0])
    with pytest.raises(nx.DTypeError, match="labels"):
        nx.nn.softmax_cross_entropy_with_integer_labels(nx.ones((2, 3)), [0.0, 1.0])
    with pytest.raises(nx.ArgumentError, match="delta"):
        nx.nn.huber_loss(0.0, 1.0, delta=-1.0)


def pool_with_jax(jax, x, window, strides, padding, kind):
    """Return JAX's reduction of windows over the axes between the first and the last one."""
    sizes, steps = (1, *window, 1), (1, *strides, 1)
    pads = padding.upper() if isinstance(padding, str) else ((0, 0), *padding, (0, 0))
    if kind == "max":
        return jax.lax.reduce_window(x, -np.inf, jax.lax.max, sizes, steps, pads)
    sums = jax.lax.reduce_window(x, 0.0, jax.lax.add, sizes, steps, pads)
    if kind == "all":
        return sums / np.prod(window)
    return sums / jax.lax.reduce_window(np.ones_like(x), 0.0, jax.lax.add, sizes, steps, pads)


def test_pooling(compiler, recorded):
    x = np.random.default_rng(0).normal(size=(2, 7, 6, 3)).astype("f4")
    first = np.moveaxis(x, -1, 1)
    with nx.default_options(compiler=compiler):
        for window, strides, padding in [
            ((2, 2), None, "valid"),
            ((3, 2), (2, 1), "same"),
            ((2, 3), (1, 2), [(1, 0), (1, 1)]),
            ((1, 2), None, "same"),
        ]:
            options = {"strides": strides, "padding": padding}
            largest, mean, mean_of_all = (
                recorded(pool_with_jax, x, window, strides or window, padding, kind)
                for kind in ("max", "own", "all")
            )
            got = nx.nn.max_pool(x, window, **options, channels_last=True)
            np.testing.assert_array_equal(got, largest)
            got = nx.nn.max_pool(first, window, **options)
            np.testing.assert_array_equal(np.moveaxis(got, 1, -1), largest)
            got = nx.nn.avg_pool(x, window, **options, channels_last=True)
            np.testing.assert_allclose(got, mean, rtol=1e-5, atol=1e-6)
            got = nx.nn.avg_pool(x, window, **options, channels_last=True, count_padding=True)
            np.testing.assert_allclose(got, mean_of_all, rtol=1e-5, atol=1e-6)
        slope = nx.grad(lambda x: nx.sum(nx.nn.max_pool(x, (2, 2)) ** 2))(nx.tensor(first))
        square = lambda x, jax: pool_with_jax(jax, x, (2, 2), (2, 2), "valid", "max") ** 2  # noqa: E731
        expected_slope = recorded(lambda jax: jax.grad(lambda x: square(x, jax).sum())(x))
        np.testing.assert_allclose(np.moveaxis(slope, 1, -1), expected_slope, rtol=1e-5)
        slope = nx.grad(lambda x: nx.sum(nx.nn.avg_pool(x, (3,), padding="same") ** 2))(
            nx.tensor(first[:, :, 0])
        )
        assert np.isfinite(np.asarray(slope)).all()
    with pytest.raises(nx.ShapeError, match="2 for the windows"):
        nx.nn.max_pool(nx.ones((2, 3, 4)), (2, 2))
    with pytest.raises(nx.ArgumentError, match="strides"):
        nx.nn.max_pool(nx.ones((2, 3, 4)), (2,), strides=(1, 1))
    with pytest.raises(nx.ArgumentError, match="padding"):
        nx.nn.avg_pool(nx.ones((2, 3, 4)), (2,), padding=[(0, 1), (1, 0)])


INITIALIZERS = [
    "glorot_uniform",
    "glorot_normal",
    "he_uniform",
    "he_normal",
    "lecun_uniform",
    "lecun_normal",
]


def draw_with_jax(jax, name, axes, shape):
    """Return the deviation and the largest magnitude of the numbers of an initializer of JAX."""
    drawn = getattr(jax.nn.initializers, name)(**axes)(jax.random.key(0), shape)
    return np.array([drawn.std(), abs(drawn).max()])


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers(name, recorded):
    key, shape = nx.random.key(3), (3, 60, 40)
    for axes in ({"in_axis": -2, "out_axis": -1}, {"in_axis": 0, "out_axis": 1}):
        ours = np.asarray(getattr(nx.nn.initializers, name)(**axes)(key, shape))
        deviation, largest = recorded(draw_with_jax, name, axes, shape)
        assert ours.dtype == np.float32
        assert abs(ours.mean()) < 3 * deviation / np.sqrt(ours.size) * 2
        np.testing.assert_allclose(ours.std(), deviation, rtol=0.05)
        np.testing.assert_allclose(np.abs(ours).max(), largest, rtol=0.05)


@pytest.mark.parametrize("name", ["he_normal", "he_uniform", "lecun_normal", "lecun_uniform"])
@pytest.mark.parametrize("kind", ["dense", "conv1d", "conv2d"])
def test_initializers_keep_the_variance_of_activations(name, kind):
    """Outputs of `dot` and `conv` have the variance of the inputs (twice that for He's)."""
    kernel_key, input_key = nx.random.split(nx.random.key(5), 2)
    shapes = {
        "dense": ((512, 64), (256, 512)),
        "conv1d": ((64, 128, 3), (8, 128, 40)),
        "conv2d": ((64, 32, 3, 3), (8, 32, 20, 20)),
    }
    kernel_shape, input_shape = shapes[kind]
    kernel = getattr(nx.nn.initializers, name)()(kernel_key, kernel_shape)
    x = nx.random.normal_split(input_key, input_shape)
    y = x @ kernel if kind == "dense" else nx.conv(x, kernel)
    expected = 2.0 if name.startswith("he") else 1.0
    np.testing.assert_allclose(np.asarray(y).var(), expected, rtol=0.05)


def test_orthogonal_kernels_have_orthonormal_outputs():
    kernel = np.asarray(nx.nn.initializers.orthogonal()(nx.random.key(0), (8, 3, 3, 3)))
    rows = kernel.reshape(8, 27)
    np.testing.assert_allclose(rows @ rows.T, np.eye(8), atol=1e-5)


def test_initializer_values_and_errors():
    init, key = nx.nn.initializers, nx.random.key(0)
    for shape, axis in [((6, 4), -1), ((4, 6), -1), ((2, 3, 4), -1), ((4, 2, 3), 0)]:
        w = np.asarray(init.orthogonal(2.0, axis=axis)(key, shape))
        assert w.shape == shape
        flat = np.moveaxis(w, axis, -1).reshape(-1, shape[axis])
        small = flat.T @ flat if flat.shape[0] >= flat.shape[1] else flat @ flat.T
        np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-4)
    assert nx.max(init.truncated_normal(0.1)(key, (1000,))).item() <= 0.2
    assert abs(np.asarray(init.normal(0.5)(key, (5000,))).std() - 0.5) < 0.03
    assert nx.min(init.uniform(0.5)(key, (100,))).item() >= 0.0
    assert init.constant(3.0)(key, (2,), "f16").tolist() == [3.0, 3.0]
    assert init.zeros(key, (2, 2)).tolist() == [[0.0, 0.0]] * 2
    assert init.ones(key, (1,), "s32").tolist() == [1]
    with pytest.raises(nx.ArgumentError, match="mode"):
        init.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(nx.ArgumentError, match="distribution"):
        init.variance_scaling(1.0, "fan_in", "gamma")
    with pytest.raises(nx.ArgumentError, match="inputs"):
        init.he_normal()(key, (3,))
