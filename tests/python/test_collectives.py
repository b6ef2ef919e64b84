"""Functions of parts return the same results on several devices and on one, on any backend."""

import collections
import re

import numpy as np
import pytest

import nxla as nx
from nxla import collectives
from where import on_cpu

pytestmark = on_cpu

X = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
KINDS = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"


@pytest.fixture(scope="module")
def mesh():
    return nx.Mesh(data=2, model=2)


@pytest.fixture
def compiled(tmp_path):
    """Return the collectives in the last program with these options."""

    class Compiled:
        def __init__(self):
            self.options = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True}

        def exchanges(self):
            found = sorted(tmp_path.glob("*after_optimizations.txt"))
            text = found[-1].read_text()
            return dict(collections.Counter(re.findall(rf" ({KINDS})(?:-start)?\(", text)))

    return Compiled()


def compare_on_mesh(function, mesh, inputs, outputs, *args):
    """Return the results on the mesh, after a comparison with the evaluator."""
    found = nx.shard_map(function, mesh, inputs, outputs)(*args)
    reference = nx.shard_map(function, mesh, inputs, outputs, compiler="evaluator")(*args)
    np.testing.assert_allclose(np.asarray(found), np.asarray(reference), rtol=1e-5)
    return np.asarray(found)


def swap(x):
    return collectives.ppermute(x, "data", [(0, 1), (1, 0)])


def cases(mesh):
    rows, columns = mesh.sharding("data"), mesh.sharding(None, "data")
    blocks = mesh.sharding("data", "model")
    top, bottom = X[:4], X[4:]
    return {
        "psum": (lambda x: collectives.psum(x, "data"), rows, None, top + bottom, "all-reduce"),
        "psum over both": (
            lambda x: collectives.psum(x, ("data", "model")),
            blocks,
            None,
            top[:, :4] + top[:, 4:] + bottom[:, :4] + bottom[:, 4:],
            "all-reduce",
        ),
        "pmean": (
            lambda x: collectives.pmean({"a": x}, "data")["a"],
            rows,
            None,
            (top + bottom) / 2,
            "all-reduce",
        ),
        "pmax": (
            lambda x: collectives.pmax(x, "data"),
            blocks,
            mesh.sharding(None, "model"),
            np.maximum(top, bottom),
            "all-reduce",
        ),
        "pmin": (
            lambda x: collectives.pmin(x, "data"),
            rows,
            None,
            np.minimum(top, bottom),
            "all-reduce",
        ),
        "all_gather": (
            lambda x: collectives.all_gather(x, "model", axis=1, tiled=True),
            blocks,
            rows,
            X,
            "all-gather",
        ),
        "all_gather on a new axis": (
            lambda x: collectives.all_gather(x, "data", axis=-1),
            rows,
            None,
            np.stack([top, bottom], axis=-1),
            "all-gather",
        ),
        "psum_scatter": (
            lambda x: collectives.psum_scatter(x, "data", tiled=True),
            rows,
            rows,
            top + bottom,
            "all-reduce",
        ),
        "all_to_all": (
            lambda x: collectives.all_to_all(x, "data", 1, 0, tiled=True),
            rows,
            columns,
            X,
            "all-to-all",
        ),
        "all_to_all on a new axis": (
            lambda x: collectives.all_to_all(x.reshape(4, 2, 4), "data", 1, 2),
            rows,
            rows,
            X.reshape(2, 4, 2, 4).transpose(2, 1, 3, 0).reshape(8, 4, 2),
            "all-to-all",
        ),
        "ppermute": (swap, blocks, blocks, np.concatenate([bottom, top]), "collective-permute"),
        "ppermute to one": (
            lambda x: collectives.ppermute(x, "data", [(0, 1)]),
            rows,
            rows,
            np.concatenate([0 * top, top]),
            "collective-permute",
        ),
        "axis_index": (
            lambda x: 0 * x + collectives.axis_index(("data", "model")),
            blocks,
            blocks,
            np.kron([[0, 1], [2, 3]], np.ones((4, 4))),
            None,
        ),
    }


def test_collectives_return_expected_values_and_exchanges(mesh, compiled):
    for name, (function, inputs, outputs, expected, exchange) in cases(mesh).items():
        found = nx.shard_map(function, mesh, inputs, outputs, **compiled.options)(X)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, err_msg=name)
        assert set(compiled.exchanges()) == ({exchange} if exchange else set()), name
        reference = nx.shard_map(function, mesh, inputs, outputs, compiler="evaluator")
        np.testing.assert_allclose(reference(X), expected, rtol=1e-5, err_msg=name)


def test_ppermute_over_a_ring():
    mesh = nx.Mesh(ring=4)
    rows = mesh.sharding("ring")
    ring = [(i, (i + 1) % 4) for i in range(4)]
    f = nx.shard_map(lambda x: collectives.ppermute(x, "ring", ring), mesh, rows, rows)
    np.testing.assert_array_equal(f(X), np.roll(X, 2, axis=0))


def test_collectives_are_differentiable(mesh):
    rows = mesh.sharding("data")

    def loss(w, x):
        each = nx.sum(nx.tanh(x @ w) * swap(x @ w))
        return collectives.psum(each, "data")

    whole = nx.shard_map(loss, mesh, (None, rows), None)
    w = X[0]

    def plain(w, x):
        return nx.sum(nx.tanh(x @ w) * nx.roll(x @ w, 4))

    for found, expected in zip(
        nx.grad(lambda args: whole(*args))((w, X)),
        nx.grad(lambda args: plain(*args))((w, X)),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    tangent = nx.jvp(lambda w: whole(w, X), [w], [np.ones_like(w)])[1]
    expected = nx.jvp(lambda w: plain(w, X), [w], [np.ones_like(w)])[1]
    np.testing.assert_allclose(tangent, expected, rtol=1e-4)

    def inside(w, x):
        value, gradient = nx.value_and_grad(lambda w: nx.mean((x @ w) ** 2))(w)
        return collectives.pmean(gradient, "data"), collectives.pmean(value, "data")

    gradient, value = nx.shard_map(inside, mesh, (None, rows), None)(w, X)
    np.testing.assert_allclose(value, np.mean((X @ w) ** 2), rtol=1e-5)
    np.testing.assert_allclose(gradient, 2 / 8 * X.T @ (X @ w), rtol=1e-4, atol=1e-5)


def test_collectives_in_loops_and_branches(mesh):
    rows = mesh.sharding("data")

    def total(x):
        def body(_, state):
            seen, moving = state
            return seen + moving, swap(moving)

        return nx.fori(0, 2, body, (x * 0, x))[0]

    def chosen(x):
        first = collectives.axis_index("data") == 0
        summed = nx.cond(first, lambda: collectives.psum(x, "data"), lambda: -x)
        start = collectives.pvary(np.float32(0), "data")
        return summed + nx.fori(0, 2, lambda _, s: s + x[0, 0], start)

    top, bottom = X[:4], X[4:]
    np.testing.assert_allclose(
        compare_on_mesh(total, mesh, rows, rows, X), np.concatenate([top + bottom] * 2), rtol=1e-5
    )
    expected = np.concatenate([top + bottom + 2 * X[0, 0], -bottom + 2 * X[4, 0]])
    np.testing.assert_allclose(
        compare_on_mesh(chosen, mesh, rows, rows, X), expected, rtol=1e-5, atol=1e-6
    )


def test_shard_map_in_traces_and_exported_programs(mesh):
    rows = mesh.sharding("data")

    def share(x):
        return x / collectives.psum(nx.sum(x), "data")

    whole = nx.shard_map(share, mesh, rows, rows)
    np.testing.assert_allclose(nx.vmap(whole)(X), X / X.sum(1, keepdims=True), rtol=1e-4)
    divided = nx.jit(lambda x: whole(x) * 2, in_shardings=rows, out_shardings=rows)(X)
    assert divided.sharding == rows
    np.testing.assert_allclose(divided, 2 * X / X.sum(), rtol=1e-4)
    expression = nx.debug_expr(whole)(X)
    restored = type(expression).from_bytes(expression.to_bytes())
    assert 'sharding [{"data"}' in str(restored)
    assert restored.digest == expression.digest
    elsewhere = nx.import_stablehlo(nx.export(whole, [X]))
    np.testing.assert_allclose(elsewhere(X), X / X.sum(), rtol=1e-4)
    named = nx.tensor(X, names=["row", "column"])
    assert nx.jit(whole)(named).names == ["row", "column"]
    with nx.default_options(compiler="evaluator"):
        assert isinstance(whole(X), nx.Tensor)


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_plain_functions_are_traced_in_every_call(mesh, compiler):
    rows = mesh.sharding("data")
    factor, traced = 2.0, []

    class Model:
        def scale(self, x):
            return x * self.factor

    def scale(x):
        traced.append(x.shape)
        return x * factor

    model = Model()
    mapped = nx.shard_map(scale, mesh, rows, rows, compiler=compiler)
    method = nx.shard_map(model.scale, mesh, rows, rows, compiler=compiler)
    for factor in (3.0, 4.0):
        model.factor = factor
        assert mapped(nx.ones(4)).tolist() == [factor] * 4
        assert method(nx.ones(4)).tolist() == [factor] * 4
    traced.clear()
    jitted = nx.shard_map(nx.jit(scale), mesh, rows, rows, compiler=compiler)
    for _ in range(2):
        assert jitted(nx.ones(4)).tolist() == [4.0] * 4
    assert len(traced) == 1


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_shard_map_keeps_options_and_rejects_argument_marks(mesh, compiler):
    rows = mesh.sharding("data")
    checked = nx.shard_map(nx.jit(nx.log, debug_nans=True, compiler=compiler), mesh, rows, rows)
    with pytest.raises(nx.ExecutionError, match=r"NaN|nan"):
        checked(-nx.ones(2))
    expected = "shard_map: static_argnums.*: not supported"
    for marks in ({"static_argnums": 1}, {"donate_argnums": 0}, {"static_argnames": "y"}):
        with pytest.raises(nx.ArgumentError, match=expected):
            nx.shard_map(nx.jit(lambda x, y: x, **marks), mesh, rows, rows, compiler=compiler)
    for marks in ({"static_argnums": 1}, {"donate_argnums": 0}):
        with pytest.raises(nx.ArgumentError, match=r"shard_map: .*_argnums: not supported"):
            nx.shard_map(lambda x, y: x, mesh, rows, rows, compiler=compiler, **marks)


#: Two values of each dtype whose sum is out of its range, or is rounded.
LARGE = {
    "pred": [True, True],
    "u8": [200, 250],
    "s8": [100, 120],
    "u16": [60_000, 65_000],
    "s16": [30_000, 32_000],
    "s32": [2**31 - 2, 2**31 - 1],
    "u32": [2**32 - 2, 2**32 - 1],
    "f16": [60_000, 65_000],
    "bf16": [3e38, 3.2e38],
    "f32": [1.5, 2.5],
    "f64": [1e300, 1e300 / 3],
    "c64": [1 + 2j, 3],
}


@pytest.mark.parametrize("dtype", LARGE)
def test_reductions_match_reductions_of_stacked_values(mesh, dtype):
    rows, blocks = mesh.sharding("data"), mesh.sharding(("data", "model"))
    pair = nx.astype(nx.tensor(LARGE[dtype]), dtype)
    x = nx.concat([pair, pair[::-1]])
    of_values = {"psum": nx.sum, "pmean": nx.mean, "pmax": nx.max, "pmin": nx.min}
    if dtype == "c64":
        del of_values["pmax"], of_values["pmin"]
    for name, reduce in of_values.items():
        for axes, spec, count in (("data", rows, 2), (("data", "model"), blocks, 4)):
            expected = reduce(x.reshape(count, -1), axis=0)
            if name == "psum" and dtype != "pred":
                expected = nx.astype(expected, dtype)
            for compiler in ("evaluator", "xla"):
                found = nx.shard_map(
                    lambda x, name=name, axes=axes: getattr(collectives, name)(x, axes),
                    mesh, spec, None, compiler=compiler,
                )(x)  # fmt: skip
                assert found.dtype == expected.dtype, (name, axes)
                assert found.tolist() == expected.tolist(), (name, axes)


@pytest.mark.parametrize("dtype", LARGE)
def test_psum_scatter_matches_psum(mesh, dtype):
    rows = mesh.sharding("data")
    x = nx.astype(nx.tensor([1, 0, 1, 1, 1, 0, 0, 1]), dtype)
    expected = nx.shard_map(lambda x: collectives.psum(x, "data"), mesh, rows, None)(x)
    for compiler in ("evaluator", "xla"):
        found = nx.shard_map(
            lambda x: collectives.psum_scatter(x, "data", tiled=True),
            mesh, rows, rows, compiler=compiler,
        )(x)  # fmt: skip
        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


def test_collectives_keep_dtypes(mesh):
    rows = mesh.sharding("data")
    for dtype in ("u8", "s16", "bf16", "f64", "c64"):
        x = nx.astype(nx.tensor([1, 2, 3, 4]), dtype)
        found = nx.shard_map(lambda x: collectives.psum(x, "data"), mesh, rows, None)(x)
        assert (str(found.dtype), nx.real(found.gather()).tolist()) == (dtype, [4, 6])
    truth = np.array([True, True, False, True])
    found = nx.shard_map(lambda x: collectives.pmax(x, "data"), mesh, rows, None)(truth)
    assert found.tolist() == [True, True]


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda x: x, nx.ArgumentError, "out_specs: must name 'data'"),
        (
            lambda x: collectives.psum(x, "rows"),
            nx.ArgumentError,
            "must be an axis of the mesh .*data.*; got 'rows'",
        ),
        (lambda x: collectives.all_gather(x, "data", axis=9), nx.ShapeError, "got 9"),
        (
            lambda x: collectives.all_to_all(x, "data", 0, 1),
            nx.ShapeError,
            "must be equal to 2, the number of devices",
        ),
        (
            lambda x: collectives.psum_scatter(x[:3], "data", tiled=True),
            nx.ShapeError,
            "must be a multiple of 2, the number of devices; got 3",
        ),
        (
            lambda x: collectives.ppermute(x, "data", [(0, 1), (0, 0)]),
            nx.ArgumentError,
            "a source at most once",
        ),
        (lambda x: collectives.ppermute(x, "data", [(0, 2)]), nx.ArgumentError, "2 devices"),
    ],
)
def test_invalid_collectives_raise(mesh, function, error, match):
    rows = mesh.sharding("data")
    with pytest.raises(error, match=match):
        nx.shard_map(function, mesh, rows, None)(X)


def test_mismatched_specs_raise(mesh):
    rows = mesh.sharding("data")
    with pytest.raises(nx.ArgumentError, match=r"requires a call of nx\.shard_map"):
        collectives.psum(1.0, "data")
    with pytest.raises(nx.ArgumentError, match="must be 1, one for each argument"):
        nx.jit(nx.shard_map(lambda x: x, mesh, (rows, rows), rows))(X)
    with pytest.raises(nx.ShapeError, match="at least 1 axes"):
        nx.shard_map(nx.sum, mesh, rows, rows)(X)
    with pytest.raises(nx.ShapeError, match="must be divisible into"):
        nx.jit(nx.shard_map(nx.sum, mesh, rows, None))(X[:3])
    with pytest.raises(nx.ArgumentError, match="shardings must use the mesh"):
        nx.jit(nx.shard_map(lambda x: x, mesh, nx.Mesh(data=2).sharding("data"), rows))(X)


def test_nested_shard_maps_over_one_axis_raise(mesh):
    rows = mesh.sharding("data")
    inner = nx.shard_map(lambda x: x * 2, mesh, rows, rows)
    message = "^shard_map: in_specs: must not name 'data', a vectorized axis of the argument"
    for outer in (lambda x: inner(x), nx.jit(lambda x: inner(x), on_conflict="reuse")):
        with pytest.raises(nx.ArgumentError, match=message):
            nx.shard_map(outer, mesh, rows, rows)(X)
    # The inner function divides a value that is the same on all devices.
    both = nx.shard_map(lambda x: nx.sum(inner(x)), mesh, None, None)
    np.testing.assert_allclose(both(X), 2 * np.sum(X), rtol=1e-6)


# A transformer block, and the division of its weights for tensor parallelism.

HEADS, WIDTH = 4, 16
DIVIDED = {
    "qkv": (None, None, "model"),
    "out": ("model",),
    "up": (None, "model"),
    "down": ("model",),
}


def weights():
    rng = np.random.default_rng(1)
    sizes = {
        "qkv": (3, WIDTH, HEADS, WIDTH // HEADS),
        "out": (HEADS, WIDTH // HEADS, WIDTH),
        "up": (WIDTH, 2 * WIDTH),
        "down": (2 * WIDTH, WIDTH),
    }
    return {name: rng.normal(0, 0.3, size).astype(np.float32) for name, size in sizes.items()}


def block(params, x, joined=lambda y: y):
    """Return attention and two layers applied to sentences; `joined` sums partial results."""
    q, k, v = (nx.einsum("bsd,dhk->bhsk", x, params["qkv"][i]) for i in range(3))
    scores = nx.nn.softmax(nx.einsum("bhsk,bhtk->bhst", q, k) / 2.0, axis=-1)
    mixed = nx.einsum("bhst,bhtk->bshk", scores, v)
    x = x + joined(nx.einsum("bshk,hkd->bsd", mixed, params["out"]))
    return x + joined(nx.nn.gelu(x @ params["up"]) @ params["down"])


def step(params, x, y):
    loss, gradients = nx.value_and_grad(lambda p: nx.mean((block(p, x) - y) ** 2))(params)
    return nx.tree.map(lambda p, g: p - 0.1 * g, params, gradients), loss


@pytest.mark.parametrize(("data", "model"), [(2, 1), (1, 2), (1, 4), (2, 2)])
def test_sharded_transformer_training_matches_one_device(compiled, data, model):
    mesh = nx.Mesh(data=data, model=model)
    shardings = {name: mesh.sharding(*spec) for name, spec in DIVIDED.items()}
    rows = mesh.sharding("data")
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 4, 3, WIDTH)).astype(np.float32)
    divided = nx.jit(
        step,
        in_shardings=(shardings, rows, rows),
        out_shardings=(shardings, None),
        **compiled.options,
    )
    params = weights()
    one = nx.jit(step, compiler="xla")
    expected, expected_loss = one(one(params, x, y)[0], x, y)
    found, loss = divided(divided(params, x, y)[0], x, y)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
    # The devices exchange only sums of partial results.
    assert set(compiled.exchanges()) == {"all-reduce"}


def test_transformer_with_psum_matches_unsharded_transformer(mesh, compiled):
    shardings = {name: mesh.sharding(*spec) for name, spec in DIVIDED.items()}
    rows = mesh.sharding("data")
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 4, 3, WIDTH)).astype(np.float32)

    def loss(params, x, y):
        found = block(params, x, lambda part: collectives.psum(part, "model"))
        return collectives.pmean(nx.mean((found - y) ** 2), "data")

    whole = nx.shard_map(loss, mesh, (shardings, rows, rows), None, **compiled.options)
    params = weights()
    expected, gradients = nx.value_and_grad(lambda p: nx.mean((block(p, x) - y) ** 2))(params)
    np.testing.assert_allclose(whole(params, x, y), expected, rtol=1e-5)
    assert compiled.exchanges() == {"all-reduce": 3}
    found = nx.jit(nx.grad(whole), in_shardings=(shardings, rows, rows), out_shardings=shardings)(
        params, x, y
    )
    for name, value in gradients.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
