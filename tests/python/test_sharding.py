"""Functions over several devices return the results of one device, and shardings place data."""

import dataclasses
import operator
import pickle
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import nxla as nx
from where import on_cpu

pytestmark = on_cpu


Point = namedtuple("Point", ["left", "right"])


@dataclasses.dataclass
class Pair:
    left: object
    right: object


class Registered:
    def __init__(self, left, right):
        self.left, self.right = left, right


nx.register_container(
    Registered, lambda pair: ((pair.left, pair.right), None), lambda _, parts: Registered(*parts)
)

#: Containers of two parts.
CONTAINERS = {
    "tuple": lambda left, right: (left, right),
    "list": lambda left, right: [left, right],
    "dict": lambda left, right: {"left": left, "right": right},
    "OrderedDict": lambda left, right: OrderedDict(right=right, left=left),
    "named tuple": Point,
    "dataclass": Pair,
    "registered": Registered,
    "nested": lambda left, right: Registered({"pair": Pair(left, [right])}, right),
}


@pytest.fixture(scope="module")
def mesh():
    return nx.Mesh(data=2, model=2)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def loss(params, x, y):
    hidden = nx.tanh(x @ params["w1"] + params["b1"])
    return nx.mean((hidden @ params["w2"] - y) ** 2)


def step(params, x, y):
    value, gradients = nx.value_and_grad(loss)(params, x, y)
    return nx.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def parameters():
    return {"w1": numbers(6, 8), "b1": numbers(8, seed=1), "w2": numbers(8, 4, seed=2)}


def test_mesh_properties_and_errors(mesh):
    assert (mesh.size, mesh.axes) == (4, {"data": 2, "model": 2})
    assert len({device.name for device in mesh.devices}) == 4
    assert list(mesh.places())[1] == {"data": 0, "model": 1}
    assert mesh == nx.Mesh({"data": 2}, model=2, devices=mesh.devices)
    assert mesh != nx.Mesh(data=2, model=2, devices=mesh.devices[::-1])
    assert repr(mesh) == "Mesh(data=2, model=2)"
    loaded = pickle.loads(pickle.dumps(mesh.sharding("data")))
    assert (loaded, loaded.mesh) == (mesh.sharding("data"), mesh)
    for wrong, match in [
        ({"data": 0}, "at least 1"),
        ({"a b": 1}, "must consist of letters, digits and _"),
        (
            {"data": 3, "devices": mesh.devices},
            "devices: must be 3, the product of the axis sizes; got 4",
        ),
        ({"data": 1, "devices": ["host"]}, "must be devices of XLA"),
        ({"data": 2, "devices": mesh.devices[:1] * 2}, "twice"),
    ]:
        with pytest.raises(nx.OptionError, match=match):
            nx.Mesh(wrong) if "a b" in wrong else nx.Mesh(**wrong)


def test_shard_and_gather(mesh):
    x = numbers(4, 6)
    for axes in [(), ("data",), (None, "model"), ("data", "model"), (("model", "data"),)]:
        divided = nx.shard(x, mesh.sharding(*axes))
        assert [part.device for part in divided.shards] == mesh.devices
        for index, part in zip(divided.sharding.indices((4, 6)), divided.shards, strict=True):
            np.testing.assert_array_equal(part, x[index])
        np.testing.assert_array_equal(divided, x)
        np.testing.assert_array_equal(divided.gather(), x)
    divided = nx.shard({"a": [x, 1.0]}, {"a": (mesh.sharding("data"), None)})
    assert divided["a"][1].sharding.is_replicated
    assert divided["a"][1].item() == 1.0
    assert nx.sum(divided["a"][0]).item() == pytest.approx(x.sum(), rel=1e-5)


#: Functions of Python that read values.
READERS = {
    "bool": bool,
    "int": int,
    "index": operator.index,
    "float": float,
    "complex": complex,
    "item": lambda x: x.item(),
    "format": lambda x: f"{x:.2f}",
    "len": len,
    "tolist": lambda x: x.tolist(),
    **{
        f"{name} {other}": lambda x, name=name, other=other: getattr(operator, name)(x, other)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
        for other in (0, 1.0, None, "text")
    },
}


@pytest.mark.parametrize("name", READERS)
def test_sharded_tensors_convert_like_whole_tensors(mesh, name):
    def outcome(x):
        try:
            found = READERS[name](x)
        except (TypeError, nx.NxlaError) as error:
            return type(error)
        return (type(found), found.tolist() if isinstance(found, nx.Tensor) else found)

    for values in (0.0, 1.5, 2, True, [0.0], [1], [0.0, 1.0, 2.0, 3.0], np.zeros((2, 0))):
        x = nx.tensor(values)
        axes = ("data",) if x.ndim and x.shape[0] % 2 == 0 else ()
        assert outcome(nx.shard(x, mesh.sharding(*axes))) == outcome(x), values


def test_sharded_tensors_compare_elementwise(mesh):
    rows, replicated = mesh.sharding("data"), mesh.sharding()
    x, y = nx.tensor([1.0, 2.0]), nx.tensor([1.0, 3.0])
    for left in (x, nx.shard(x, rows), nx.shard(x, replicated)):
        for right in (nx.shard(y, rows), nx.shard(y, replicated)):
            assert (left == right).tolist() == [True, False]
            assert (left < right).tolist() == [False, True]
    divided = nx.shard(x, rows)
    assert {divided: "value"}[divided] == "value"


def test_each_device_receives_only_its_shard(mesh):
    x = nx.ones((64, 64), device="host")
    before = nx.transfer_report()["sent"]
    divided = nx.shard(x, mesh.sharding("data", "model"))
    assert nx.transfer_report()["sent"] - before == 64 * 64 * 4
    before = nx.transfer_report()
    resharded = nx.shard(divided, mesh.sharding("data", "model"))
    f = nx.jit(lambda x: x + 1, in_shardings=resharded.sharding, out_shardings=resharded.sharding)
    result = f(f(resharded))
    assert nx.transfer_report() == before
    assert result.shards[3].tolist() == [[3.0] * 32] * 32
    assert nx.transfer_report()["read"] - before["read"] == 32 * 32 * 4


def test_repr_shows_the_sharding(mesh):
    text = repr(nx.shard(np.zeros((4, 2), np.float32), mesh.sharding("data")))
    assert "f32[4][2], Sharding('data') over Mesh(data=2, model=2)" in text
    assert f"{mesh.devices[2]}: [2:4, 0:2]" in text


def runs_over(mesh, function, replicated):
    """Return functions of a whole tensor that run a function over the devices of a mesh."""
    rows = mesh.sharding() if replicated else mesh.sharding("data")
    names = [[]] if replicated else [["data"]]
    divide = nx.shard_jit(function, mesh, input_shardings=[{0: each} for each in names])
    return {
        "jit": nx.jit(function, in_shardings=rows, out_shardings=rows),
        "jit of shard_map": nx.jit(nx.shard_map(function, mesh, rows, rows), in_shardings=rows),
        "shard_map": nx.shard_map(function, mesh, rows, rows),
        "shard_jit": lambda x: divide([[part] for part in nx.shard(x, rows).shards])[0],
    }


def test_axis_names_are_kept(mesh):
    rows = mesh.sharding("data")
    x = nx.tensor(numbers(4, 6), names=["row", "column"])
    divided = nx.shard(x, rows)
    assert (divided.names, divided.gather().names) == (["row", "column"], ["row", "column"])
    assert "f32[row: 4][column: 6]" in repr(divided)
    for name, run in runs_over(mesh, lambda x: nx.sum(x, axis="column"), False).items():
        found = run(x)
        assert found.names == ["row"], name
        np.testing.assert_allclose(np.asarray(found), np.asarray(x).sum(1)[: found.shape[0]], 1e-5)
        with pytest.raises(nx.ShapeError, match=r'must be an axis of .*; got "column"'):
            run(nx.rename(x, ["row", None]))
    found = nx.jit(lambda x: nx.sum(x, axis="row"), in_shardings=rows)(divided)
    assert (found.names, found.gather().names) == (["column"], ["column"])


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers_of_shardings(mesh, kind):
    make, rows = CONTAINERS[kind], mesh.sharding("data")
    values, shardings = make(nx.ones(4), nx.ones(4)), make(rows, None)

    def double(pair):
        return nx.tree.map(lambda x: x * 2, pair)

    options = {"in_shardings": (shardings,), "out_shardings": shardings}
    runs = {
        "shard": lambda x: nx.shard(x, shardings),
        "jit": nx.jit(double, **options),
        "shard_map": nx.shard_map(double, mesh, (shardings,), shardings),
        "evaluator": nx.shard_map(double, mesh, (shardings,), shardings, compiler="evaluator"),
        "vmap": nx.vmap(double, in_axes=(make(0, None),), out_axes=make(0, None)),
    }
    structure = nx.tree.flatten(values)[1]
    sizes = [(2, 4)[part] for part in nx.tree.leaves(make(0, 1))]
    for name, run in runs.items():
        leaves, found = nx.tree.flatten(run(values))
        assert found == structure, name
        assert all(leaf.tolist() == [1.0 + (name != "shard")] * 4 for leaf in leaves), name
        if name not in ("evaluator", "vmap"):
            assert [leaf.shards[0].size for leaf in leaves] == sizes, name


def test_shardings_must_match_the_value_structure(mesh):
    rows = mesh.sharding("data")
    x = nx.ones(4)
    for shardings, value in [
        ({"a": rows}, {"b": x}),
        ([rows], [x, x]),
        (Pair(rows, rows), Point(x, x)),
        (Point(rows, rows), Pair(x, x)),
        ("data", x),
    ]:
        for run in (
            lambda value, shardings=shardings: nx.shard((value, x), (shardings, rows)),
            nx.jit(lambda v, x: v, in_shardings=(shardings, rows)),
            nx.jit(lambda v, x: (v, x), in_shardings=rows, out_shardings=(shardings, rows)),
            lambda *args, s=shardings: nx.shard_map(lambda *v: v, mesh, (s, rows), rows)(*args),
        ):
            with pytest.raises(nx.ArgumentError, match="structure of the value; got"):
                run(value, x)
    for wrong in (Pair(rows, rows), {"x": rows}, 3):
        with pytest.raises(nx.ArgumentError, match="must be a sharding, None or a tuple with"):
            nx.shard_map(lambda x: x, mesh, wrong, rows)(x)


def test_vectorized_axes_are_rejected(mesh):
    x = nx.vectorize(nx.ones((4, 4)), "batch")
    with pytest.raises(nx.ShapeError, match="must not have vectorized axes"):
        nx.shard(x, mesh.sharding())
    for name, run in runs_over(mesh, lambda x: nx.vectorize(x, "batch"), True).items():
        with pytest.raises(nx.ArgumentError, match="results: must not have vectorized axes"):
            run(nx.ones((4, 4)))
        if name != "shard_jit":
            with pytest.raises(nx.ArgumentError, match="arguments: must not have vectorized axes"):
                run(x)
    with pytest.raises(nx.ArgumentError, match="arguments: must not have vectorized axes"):
        nx.shard_jit_apply(nx.sum, mesh, [[x]] * 4, input_shardings=[{}])


@pytest.mark.parametrize("kind", ["data", "tensor", "both"])
def test_sharded_training_matches_one_device(mesh, kind):
    replicated, rows = mesh.sharding(), mesh.sharding("data")
    columns = {
        "w1": mesh.sharding(None, "model"),
        "b1": mesh.sharding("model"),
        "w2": mesh.sharding("model"),
    }
    weights = replicated if kind == "data" else columns
    batch = replicated if kind == "tensor" else rows
    params, x, y = parameters(), numbers(16, 6, seed=3), numbers(16, 4, seed=4)
    divided = nx.jit(step, in_shardings=(weights, batch, batch), out_shardings=(weights, None))
    unsharded = nx.jit(step, compiler="xla")
    sharded, reference = params, params
    for _ in range(3):
        sharded, value = divided(sharded, x, y)
        reference, expected = unsharded(reference, x, y)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
    for name in params:
        np.testing.assert_allclose(sharded[name], reference[name], rtol=1e-4, atol=1e-6)
    if kind != "data":
        assert sharded["w1"].shards[0].shape == (6, 4)
    text = divided.as_text(params, x, y)
    assert 'sdy.mesh @mesh = <["data"=2, "model"=2]>' in text
    assert ('[{}, {"model"}]' in text) == (kind != "data")


def test_functions_on_two_devices():
    mesh = nx.Mesh(batch=2)

    def f(x):
        gram = x.T @ x + nx.eye(3)
        return nx.sort(x, axis=0), nx.linalg.cholesky(gram), nx.cumulative_sum(x, axis=0)

    x = numbers(8, 3)
    found = nx.jit(f, in_shardings=(mesh.sharding("batch"),))(x)
    np.testing.assert_array_equal(found[0], np.sort(x, axis=0))
    factor = np.linalg.cholesky(x.T @ x + np.eye(3))
    np.testing.assert_allclose(found[1], factor, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[2], np.cumsum(x, axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_results_without_elements_are_divided(mesh, shape):
    columns = mesh.sharding(None, "model")
    x = np.zeros(shape, np.float32)
    part = (shape[0], shape[1] // 2)
    for function in (lambda x: x, lambda x: x * 2):
        for results in (
            nx.jit(function, in_shardings=(columns,), out_shardings=columns)(x),
            nx.shard_map(function, mesh, columns, columns)(x),
        ):
            assert (results.shape, results.shards[3].shape) == (shape, part)
            assert np.asarray(results).shape == shape


def test_sharding_constraints_keep_values(mesh):
    def f(x):
        y = nx.with_sharding_constraint(x * 2, mesh.sharding(None, "model"))
        return nx.fori(
            0, 2, lambda i, z: nx.with_sharding_constraint(z, mesh.sharding("data")) + i, y
        )

    x = numbers(4, 6)
    divided = nx.jit(f, in_shardings=(mesh.sharding("data"),), out_shardings=mesh.sharding("data"))
    np.testing.assert_allclose(divided(x), x * 2 + 1, rtol=1e-6)
    assert divided.as_text(x).count("sdy.sharding_constraint") == 2
    assert "sdy" not in nx.jit(f, compiler="xla").lower(x).as_text()
    for compiler in ("xla", "evaluator"):
        np.testing.assert_allclose(nx.jit(f, compiler=compiler)(x), x * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(nx.grad(lambda x: nx.sum(f(x)))(x), np.full((4, 6), 2.0), rtol=1e-6)
    with pytest.raises(nx.ShapeError, match="must be divisible into 2 equal parts"):
        nx.jit(lambda x: nx.with_sharding_constraint(x, mesh.sharding("data")))(np.ones(3))


def test_methods_over_a_mesh(mesh):
    @dataclasses.dataclass
    class Scale:
        factor: nx.Tensor

        @nx.jit(in_shardings=(mesh.sharding(), mesh.sharding("data")))
        def apply(self, x):
            return self.factor * x

    assert Scale(nx.tensor(2.0)).apply(np.ones(4, np.float32)).tolist() == [2.0] * 4
    assert "sharding" in Scale.apply.as_text(Scale(nx.tensor(2.0)), np.ones(4, np.float32))


def test_compiled_programs_are_reused(mesh):
    traced = []

    def f(x):
        traced.append(x.shape)
        return x * 2

    divided = nx.jit(f, in_shardings=mesh.sharding("data"))
    for size in (4, 4, 8, 4):
        assert divided(np.ones(size, np.float32)).tolist() == [2.0] * size
    assert traced == [(4,), (8,)]


def functions_over(mesh, function):
    """Return functions of one value and a container, compiled over a mesh in each way."""
    rows = mesh.sharding("data")
    divide = nx.shard_jit(function, mesh, input_shardings=[{0: ["data"]}])
    return {
        "jit": nx.jit(function, in_shardings=(rows, None)),
        "shard_jit": lambda x, static: divide([[nx.ones(2), static]] * mesh.size),
        "shard_map": nx.shard_map(nx.jit(function), mesh, (rows, None), rows),
    }


class Text(str):
    __slots__ = ()


class Changing:
    def __init__(self):
        self.factor = 2.0


@pytest.mark.parametrize("kind", ["jit", "shard_jit", "shard_map"])
def test_static_argument_signatures(mesh, kind):
    traced = []

    def f(x, static):
        traced.append(static)
        return x + 1

    function = functions_over(mesh, f)[kind]
    statics = ["p", Text("p"), {1: None}, {True: None}, {1.0: None}, ["p"], ("p",), None]
    for _ in range(2):
        for static in statics:
            function(nx.ones(4), static)
    assert [(type(each), each) for each in traced] == [(type(each), each) for each in statics]
    for static in (Changing(), [Changing()], {"c": Changing()}):
        with pytest.raises(nx.ArgumentError, match=r"f: argument 1.*is compared by identity"):
            function(nx.ones(4), static)


@pytest.mark.parametrize("kind", ["jit", "shard_jit", "shard_map"])
def test_default_options_of_each_call_are_used(mesh, kind):
    function = functions_over(mesh, lambda x, static: x + 1)[kind]
    for _ in range(2):
        function(nx.ones(4), None)
        defaults = nx.default_options(compiler="xla", xla_cpu_enable_fast_math="maybe")
        with defaults, pytest.raises(nx.OptionError, match="xla_cpu_enable_fast_math"):
            function(nx.ones(4), None)
    product = nx.jit(nx.dot, in_shardings=mesh.sharding("data"))
    for precision in ("highest", "default", "highest"):
        with nx.default_options(compiler="xla", precision=precision):
            text = product.as_text(nx.ones((2, 2)), nx.ones((2, 2)))
            assert ("HIGHEST" in text) == (precision == "highest")


def test_invalid_options_raise_at_construction(mesh):
    for options in ({"precision": "bogus"}, {"unknown": 1}):
        with pytest.raises(nx.OptionError, match=next(iter(options))):
            nx.jit(nx.sin, in_shardings=mesh.sharding("data"), **options)


def test_equal_programs_are_compiled_once(mesh, monkeypatch):
    programs = []
    compile = nx._core.Divided
    monkeypatch.setattr(nx._core, "Divided", lambda *args: programs.append(args) or compile(*args))
    rows, columns = mesh.sharding("data"), mesh.sharding("model")
    x = nx.ones(4)
    for _ in range(3):
        assert nx.jit(lambda x: x * 41 + 1, in_shardings=rows)(x).tolist() == [42.0] * 4
        assert nx.shard_map(lambda x: x * 43, mesh, rows, rows)(x).tolist() == [43.0] * 4
        pair = nx.jit(lambda x: {"y": x * 41 + 1}, in_shardings=rows)(x)
        assert pair["y"].tolist() == [42.0] * 4
    assert len(programs) == 2
    others = (
        {"in_shardings": columns},
        {"in_shardings": rows, "out_shardings": columns},
        {"in_shardings": rows, "precision": "high"},
        {"in_shardings": nx.Mesh(data=4).sharding("data")},
    )
    for count, options in enumerate(others, start=3):
        for _ in range(2):
            assert nx.jit(lambda x: x * 41 + 1, **options)(x).tolist() == [42.0] * 4
        assert len(programs) == count
    named = nx.jit(lambda x: x * 41 + 1, in_shardings=rows)
    assert named(nx.tensor([1.0, 2.0, 3.0, 4.0], names=["batch"])).names == ["batch"]
    assert named(x).names == [None]


def test_program_cache_is_bounded(mesh, monkeypatch):
    monkeypatch.setattr("nxla._signatures.LIMIT", 2)
    traced = []
    double = nx.jit(lambda x, s: traced.append(s) or x * 2, in_shardings=mesh.sharding("data"))
    for static in ("a", "b", "b", "c", "b", "a"):
        assert double(nx.ones(4), static).tolist() == [2.0] * 4
    assert traced == ["a", "b", "c", "a"]


def test_shard_jit_accepts_divided_inputs(mesh):
    def f(a, b):
        return {"product": a @ b, "total": nx.sum(a)}

    pairs = [{0: ["data"], -1: [1]}, {0: ["model"]}]
    a, b = numbers(4, 6), numbers(6, 3, seed=1)
    parts = [
        [a[2 * i : 2 * i + 2, 3 * j : 3 * j + 3], b[3 * j : 3 * j + 3]]
        for i in range(2)
        for j in range(2)
    ]
    results = nx.shard_jit_apply(f, mesh, parts, input_shardings=pairs)
    assert len(results) == 4
    for result in results:
        assert result["total"].item() == pytest.approx(a.sum(), rel=1e-4)
    assert [part["total"].device for part in results] == mesh.devices
    rows = results[0]["product"].shape[0]
    np.testing.assert_allclose(results[0]["product"], (a @ b)[:rows], rtol=1e-4, atol=1e-5)
    named = nx.shard_jit(lambda x: x + 1, mesh, input_shardings=[{"rows": [0]}])
    named_parts = [[nx.tensor([float(i)], names=["rows"])] for i in (0, 0, 1, 1)]
    assert [part.tolist() for part in named(named_parts)] == [[1.0], [1.0], [2.0], [2.0]]


@pytest.mark.parametrize(
    ("shardings", "error", "match"),
    [
        ({0: ["data"]}, nx.ArgumentError, "must be a list"),
        ([], nx.ArgumentError, "must be 1, one for each tensor; got 0"),
        ([3], nx.ArgumentError, "must be a dict"),
        ([{0: ["rows"]}], nx.OptionError, 'must be axes of the mesh .*; got "rows"'),
        ([{0: [7]}], nx.OptionError, "below 2; got 7"),
        ([{5: [0]}], nx.ArgumentError, "below 2, the rank of the tensor; got 5"),
        ([{"row": [0]}], nx.ArgumentError, "names of the tensor's axes; got 'row'"),
        ([{0: [0], 1: [0]}], nx.OptionError, "must be distinct; got"),
        ([{0: [0], -2: [1]}], nx.ArgumentError, "twice"),
    ],
)
def test_invalid_input_shardings_raise(mesh, shardings, error, match):
    with pytest.raises(error, match=match):
        nx.shard_jit_apply(nx.sum, mesh, [[np.ones((2, 2))]] * 4, input_shardings=shardings)


#: Options that a function over a mesh does not have.
UNSUPPORTED = {
    "plugin": "cpu",
    "cpu_device_count": 4,
    "preallocate": True,
    "client": "cpu",
    "device": 0,
    "stages": "auto",
    "hooks": {"seen": print},
    "kernels": True,
    "compile_after": 1,
    "compile_above": 1,
    "max_compiles": 1,
    "on_max_compiles": "raise",
    "on_unusable_donation": "warn",
}


@pytest.mark.parametrize("option", UNSUPPORTED)
def test_unsupported_options_are_rejected(mesh, option):
    value = {option: UNSUPPORTED[option]}
    rows = mesh.sharding("data")

    def reject(function, **options):
        for make in (
            lambda: nx.jit(function, in_shardings=rows, **options),
            lambda: nx.shard_jit(function, mesh, input_shardings=[{0: [0]}], **options),
        ):
            with pytest.raises(nx.OptionError, match=f"{option}: (not supported|must be False)"):
                make()

    reject(nx.sin, **value)
    with pytest.raises(nx.OptionError, match=f"{option}: (not supported|must be False)"):
        nx.shard_map(nx.sin, mesh, rows, rows, **value)
    if option not in ("plugin", "cpu_device_count", "preallocate"):
        compiler = "auto" if option.startswith("compile_") else "xla"
        jitted = nx.jit(nx.sin, compiler=compiler, **value)
        reject(jitted)
        reject(nx.vmap(jitted))


def test_options_of_the_jitted_function_apply(mesh):
    rows = mesh.sharding("data")
    jitted = nx.jit(nx.log, debug_nans=True)
    for checked in (
        nx.jit(nx.log, in_shardings=rows, debug_nans=True),
        nx.jit(jitted, in_shardings=rows),
        nx.jit(nx.vmap(jitted), in_shardings=rows),
        nx.shard_map(nx.log, mesh, rows, rows, debug_nans=True),
    ):
        for compiler in ("evaluator", "xla"):
            defaults = nx.default_options(compiler=compiler)
            with defaults, pytest.raises(nx.ExecutionError, match=r"NaN|nan"):
                checked(-nx.ones(2))
    checked = nx.shard_jit(nx.log, mesh, input_shardings=[{}], debug_nans=True)
    with pytest.raises(nx.ExecutionError, match="NaN"):
        checked([[-nx.ones(2)]] * 4)
    unchecked = nx.jit(nx.jit(nx.log, debug_nans=True), in_shardings=rows, debug_nans=False)
    assert nx.isnan(unchecked(-nx.ones(2))).tolist() == [True, True]
    with nx.debug_nans():
        assert nx.isnan(unchecked(-nx.ones(2))).tolist() == [True, True]
    precise = nx.jit(nx.jit(nx.dot, precision="highest", compiler="xla"), in_shardings=rows)
    assert "HIGHEST" in precise.as_text(nx.ones((2, 2)), nx.ones((2, 2)))
    with nx.default_options(compiler="xla", kernels=True, device=0):
        assert nx.jit(nx.sin, in_shardings=rows)(nx.zeros(2)).tolist() == [0.0, 0.0]
    for wrong in ("yes", 1):
        with pytest.raises(nx.ArgumentError, match="debug_nans: must be one of False, True"):
            nx.jit(nx.sin, in_shardings=rows, debug_nans=wrong)
    for marks in ({"static_argnums": 1}, {"donate_argnums": 0}, {"static_argnames": "y"}):
        with pytest.raises(nx.ArgumentError, match="static_argnums, donate_argnums: not supported"):
            nx.jit(nx.jit(lambda x, y: x, **marks), in_shardings=rows)


def test_constraints_must_use_the_mesh_of_the_function(mesh):
    rows = mesh.sharding("data")
    x = nx.ones(4)
    others = [nx.Mesh(x=4), nx.Mesh(data=4), nx.Mesh(data=2, model=2, devices=mesh.devices[::-1])]
    for sharding in (other.sharding(next(iter(other.axes))) for other in others):
        for name, function in {
            "with_sharding_constraint": lambda x, s=sharding: nx.with_sharding_constraint(x * 2, s),
            "shard_map": nx.shard_map(lambda x: x * 2, sharding.mesh, sharding, sharding),
        }.items():
            assert nx.jit(function)(x).tolist() == [2.0] * 4
            for run in runs_over(mesh, function, False).values():
                with pytest.raises(nx.ArgumentError, match=f"{name}: .* must have the axes and"):
                    run(x)
    # The rule ends with the trace, also if it fails.
    assert (
        nx.jit(nx.shard_map(lambda x: x, sharding.mesh, sharding, sharding))(x).tolist()
        == [1.0] * 4
    )
    constrained = nx.jit(lambda x: nx.with_sharding_constraint(x, rows), in_shardings=rows)
    assert constrained(x).tolist() == [1.0] * 4


def test_errors_name_the_function_that_was_called(mesh):
    rows = mesh.sharding("data")
    x = nx.ones(4)

    def twice(value):
        return value * 2

    mapped = nx.shard_map(twice, mesh, rows, rows)
    for run in (mapped, nx.jit(mapped), nx.jit(twice, in_shardings=rows)):
        with pytest.raises(nx.ArgumentError, match="twice: value: must be passed by position"):
            run(value=x)
    with pytest.raises(nx.ArgumentError, match="shard_map: in_specs: must be 1, one for each"):
        nx.shard_map(twice, mesh, (rows, rows), rows)(x)
    with pytest.raises(nx.ArgumentError, match="jit: in_shardings: must be 1, one for each"):
        nx.jit(twice, in_shardings=(rows, rows))(x)
    with pytest.raises(nx.ArgumentError, match="shard_map: out_specs: must be a sharding, None or"):
        nx.shard_map(twice, mesh, rows, {"a": rows})(x)
    with pytest.raises(nx.ArgumentError, match="jit: out_shardings: must be a sharding, None or"):
        nx.jit(twice, in_shardings=rows, out_shardings={"a": rows})(x)
    with pytest.raises(nx.ArgumentError, match="shard_map: arguments: must not have vectorized"):
        mapped(nx.vectorize(nx.ones((2, 4)), "batch"))


@pytest.mark.parametrize("option", ["in_shardings", "out_shardings"])
def test_other_functions_reject_shardings(mesh, option):
    shardings = {option: mesh.sharding()}
    x = nx.ones(2)
    for make in (
        lambda: nx.defn(nx.sin, **shardings),
        lambda: nx.compile(nx.sin, [x], **shardings),
        lambda: nx.export(nx.sin, [x], **shardings),
        lambda: nx.debug_expr(nx.sin, **shardings),
        lambda: nx.stream(lambda x, total: (x, total), x, x, **shardings),
        lambda: nx.jit_partitions(nx.sin, [[x]], **shardings),
        lambda: nx.to_backend(**shardings),
        lambda: nx.default_options(**shardings),
        lambda: nx.global_default_options(**shardings),
        lambda: nx.debug_expr(nx.sin)(x).run(x, **shardings),
        lambda: nx.graph.run(nx.graph.split(nx.debug_expr(nx.sin)(x), "auto"), x, **shardings),
    ):
        with pytest.raises(nx.OptionError, match=rf"{option}: must be an option of "):
            make()


def test_host_callbacks_are_rejected(mesh):
    rows = mesh.sharding("data")
    calls = {
        "hook": lambda x: nx.hook(x, print),
        "named hook": lambda x: nx.hook(x, "seen", print),
        "print_value": nx.print_value,
        "runtime_call": lambda x: nx.runtime_call(lambda x: x, nx.template(x.shape), x),
    }
    for call in calls.values():
        for function in (call, lambda x, call=call: nx.fori(0, 2, lambda i, y: call(y), x)):
            expected = r"jit: function: must not contain a hook.*test_sharding"
            with pytest.raises(nx.ArgumentError, match=expected):
                nx.jit(function, in_shardings=rows)(nx.ones(2))
            with pytest.raises(nx.ArgumentError, match="shard_jit: function: must not contain"):
                nx.shard_jit_apply(function, mesh, [[nx.ones(2)]] * 4, input_shardings=[{}])
    named = nx.jit(
        lambda x: nx.fori(0, 2, lambda i, y: nx.hook(y, "seen") + i, x), in_shardings=rows
    )
    for _ in range(2):
        assert named(nx.zeros(2)).tolist() == [1.0, 1.0]
        with nx.default_options(hooks={"other": print}):
            assert named(nx.zeros(2)).tolist() == [1.0, 1.0]
        defaults = nx.default_options(hooks={"seen": print})
        with defaults, pytest.raises(nx.OptionError, match=r"hooks: not supported .* 'seen'"):
            named(nx.zeros(2))


def test_misuse_raises(mesh):
    rows = mesh.sharding("data")
    with pytest.raises(nx.ShapeError, match=r"axis 0 of .* must be divisible into 2"):
        nx.jit(lambda x: x, in_shardings=rows)(np.ones(3))
    with pytest.raises(nx.ShapeError, match="at least 1 axes"):
        nx.jit(lambda x: x, in_shardings=rows)(1.0)
    with pytest.raises(nx.ArgumentError, match=r"must be 2, one for each argument of .*; got 1"):
        nx.jit(lambda x, y: x, in_shardings=(rows,))(np.ones(2), 1.0)
    with pytest.raises(nx.OptionError, match=r'must be axes of the mesh .*; got "rows"'):
        mesh.sharding("rows")
    with pytest.raises(nx.OptionError, match="must be distinct; got"):
        mesh.sharding("data", "data")
    with pytest.raises(nx.OptionError, match="must be strings; got 1"):
        mesh.sharding([1])
    with pytest.raises(nx.ArgumentError, match="must use one mesh"):
        nx.jit(lambda x: x, in_shardings=rows, out_shardings=nx.Mesh(data=2).sharding())
    with pytest.raises(nx.ArgumentError, match="must contain a sharding"):
        nx.jit(lambda x: x, in_shardings=(None,))
    with pytest.raises(nx.OptionError, match="got 'evaluator'"):
        nx.jit(lambda x: x, in_shardings=rows, compiler="evaluator")
    with pytest.raises(nx.OptionError, match="stages: not supported"):
        nx.jit(lambda x: x, in_shardings=rows, stages="auto")
    with pytest.raises(nx.ArgumentError, match="not supported for a function over a mesh"):
        nx.jit(lambda x: x, in_shardings=rows, donate_argnums=0)
    divided = nx.jit(lambda x: x, in_shardings=rows)
    with pytest.raises(nx.TraceError, match="with_sharding_constraint"):
        nx.jit(divided)(np.ones(2))
    large = nx.iota(10_000, dtype="f32")
    with pytest.raises(nx.ArgumentError, match="pass it as an argument"):
        nx.jit(lambda x: x + large, in_shardings=rows)(1.0 + np.zeros(10_000))
    with pytest.raises(nx.ArgumentError, match="must be 4 lists, one for each device"):
        nx.shard_jit_apply(nx.sum, mesh, [[1.0]], input_shardings=[{}])
    with pytest.raises(nx.ArgumentError, match="same structure"):
        nx.shard_jit_apply(nx.sum, mesh, [[1.0]] * 3 + [[[1.0]]], input_shardings=[{}])
