"""Programs that are lowered, compiled, exported or imported before they run."""

import dataclasses
import itertools
import json
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

import nxla as nx
from nxla.ahead import Lowered
from where import PLATFORM, on_cpu


def f(x, y):
    return {"sum": nx.sum(x * y), "parts": (nx.exp(x), None)}


X, Y = np.arange(6, dtype=np.float32).reshape(2, 3) / 10, np.float32(2.0)


LOOP = """
func.func @main(%x: tensor<f32>) -> (tensor<ui8>, tensor<f32>) {
  %first = stablehlo.constant dense<3> : tensor<ui8>
  %end:2 = stablehlo.while(%i = %first, %t = %x) : tensor<ui8>, tensor<f32> cond {
    %last = stablehlo.constant dense<7> : tensor<ui8>
    %more = stablehlo.compare LT, %i, %last : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<ui8>
    %next = stablehlo.add %i, %one : tensor<ui8>
    %total = stablehlo.add %t, %x : tensor<f32>
    stablehlo.return %next, %total : tensor<ui8>, tensor<f32>
  }
  return %end#0, %end#1 : tensor<ui8>, tensor<f32>
}
"""


def test_imported_loops_count_in_any_integer_dtype():
    count, total = nx.import_stablehlo(LOOP)(2.0)
    assert (count.item(), total.item()) == (7, 10.0)


def test_lowered_functions_report_nodes_and_text():
    lowered = nx.jit(f).lower(nx.template((2, 3)), 2.0)
    assert isinstance(lowered, Lowered)
    assert lowered.nodes == {"parameter": 2, "exp": 1, "multiply": 1, "sum": 1}
    assert len(lowered) == 5
    assert lowered.operations["stablehlo.exponential"] == 1
    assert lowered.as_text().startswith("module @nxla {")
    assert lowered.digest == nx.debug_expr(f)(X, 2.0).digest
    assert "lowered to 5 nodes" in repr(lowered)


@on_cpu
def test_only_text_for_a_device_has_custom_calls():
    lowered = nx.jit(nx.linalg.cholesky, compiler="xla").lower(nx.template((3, 3)))
    assert "custom_call" in lowered.as_text(portable=False)
    assert "custom_call" not in lowered.as_text()


def test_portable_text_rejects_hooks(tmp_path):
    hooked = nx.jit(lambda x: nx.hook(x, "h"), hooks={"h": print}, compiler="xla")
    line = hooked.callable.__code__.co_firstlineno
    place = rf"\(.*test_ahead_of_time\.py:{line}\)"
    message = f'^io_call: must not call a function .* in a portable module; got hook "h" {place}'
    file = tmp_path / "f.mlir"
    for write in (lambda: hooked.lower(1.0).as_text(), lambda: nx.export(hooked, [1.0], file)):
        with pytest.raises(nx.DeviceError, match=message):
            write()
    assert not file.exists()
    assert "custom_call" in hooked.lower(1.0).as_text(portable=False)
    # A hook without a function is omitted.
    assert "custom_call" not in nx.export(lambda x: nx.hook(x, "h"), [1.0])


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_lowered_functions_compile(compiler):
    compiled = nx.jit(f, compiler=compiler).lower(nx.template((2, 3)), 1.5).compile()
    found = compiled(X, Y)
    np.testing.assert_allclose(found["sum"], 3.0, rtol=1e-6)
    np.testing.assert_allclose(found["parts"][0], np.exp(X), rtol=1e-6)
    with pytest.raises(nx.ArgumentError):
        compiled(X[:1], Y)
    memory = compiled.memory_analysis()
    if compiler == "evaluator":
        assert memory is None
        assert compiled.cost_analysis() is None
    else:
        assert memory["arguments"] >= X.nbytes
        cost = compiled.cost_analysis()
        # CPU plugins estimate no costs.
        assert cost is None if PLATFORM == "cpu" else cost["flops"] > 0


def test_lowered_functions_fix_static_and_keyword_arguments():
    power = nx.jit(lambda x, n, *, plus=0: x**n + plus, static_argnums=1)
    assert power.lower(nx.template(2), 3, plus=1).compile()(nx.tensor([1.0, 2.0])).tolist() == [
        2.0,
        9.0,
    ]
    with pytest.raises(nx.ArgumentError, match="plus"):
        power.lower(nx.template(2), 3, plus=nx.template(2)).compile()
    assert power.lower(nx.template(2), 3).compile()(nx.tensor([1.0, 2.0])).tolist() == [1.0, 8.0]


def test_lowered_functions_ignore_later_changes(compiler):
    seen, factor, parts = [], 2.0, [nx.template(2), nx.template(2)]

    def scale(x, n, parts, *, shift, names):
        return {"y": nx.hook(x**n * factor + sum(parts) + shift, "h"), names[0]: len(parts)}

    options = {"static_argnums": 1, "compiler": compiler, "hooks": {"h": seen.append}}
    lowered = nx.jit(scale, **options).lower(nx.template(2), 3, parts, names=["a"], shift=1.0)
    factor = 5.0
    parts.append(nx.template(2))
    compiled = lowered.compile()
    x = nx.tensor([1.0, 2.0])
    found, expected = compiled(x, [x, x]), [2 + 2 + 1, 16 + 4 + 1]
    assert (found["y"].tolist(), found["a"]) == (expected, 2)
    assert [value.tolist() for value in seen] == [expected]
    assert lowered.expression.run(x, 3, [x, x], names=["a"], shift=1.0)["y"].tolist() == expected


@pytest.mark.filterwarnings("ignore::nxla.CaptureWarning")
def test_compiled_programs_keep_digest_and_axes(compiler):
    large = nx.arange(5000.0)

    def model(x, y):
        return nx.vectorize(x, "v") + large[3], nx.sum(y, axis="b")

    templates = [
        nx.template((2, 3), names=["a", "c"]),
        nx.template((2, 3), names=[None, "b"], vectorized_axes=[("q", 2)]),
    ]
    lowered = nx.jit(model, compiler=compiler).lower(*templates)
    compiled = lowered.compile()
    assert compiled.digest == lowered.digest
    left, right = compiled(nx.ones((2, 3)), nx.vectorize(nx.ones((2, 2, 3)), "q"))
    assert (left.vectorized_axes, left.names, left.tolist()) == (
        (("v", 2),), ["c"], [[4.0] * 3] * 2,
    )  # fmt: skip
    assert (right.vectorized_axes, right.tolist()) == ((("q", 2),), [[3.0] * 2] * 2)


def test_lowered_functions_keep_donation(device):
    donating = nx.jit(lambda s, x: s + x, donate_argnums=0, compiler="xla")
    lowered = donating.lower(nx.template(3), nx.template(3))
    assert "tf.aliasing_output = 0" in lowered.as_text()
    compiled = lowered.compile()
    state = nx.device_put(nx.ones(3), device)
    assert compiled(state, nx.ones(3)).tolist() == [2.0] * 3
    with pytest.raises(nx.DeviceError, match="donated"):
        state.tolist()


def test_exported_files_describe_arguments_and_results(tmp_path):
    weights = np.random.default_rng(0).normal(size=(3, 5000)).astype(np.float32)

    def model(params, x, scale):
        y = x @ nx.asarray(weights)
        return {"y": y * scale + params["b"], "kept": ["text", (x, None)]}

    file = tmp_path / "model.mlir"
    params = {"b": nx.template(5000), "unused": nx.template(2)}
    text = nx.export(model, [params, nx.template((2, 3)), 1.0], file)
    assert file.read_text() == text
    restored = nx.import_stablehlo(file)
    assert [path for path, _ in restored.inputs] == [
        "argument 0['b']", "argument 0['unused']", "argument 1", "argument 2",
    ]  # fmt: skip
    params = {"b": np.ones(5000, np.float32), "unused": np.zeros(2, np.float32)}
    expected, found = model(params, nx.tensor(X), 2.0), restored(params, X, 2.0)
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-5)
    assert found["kept"][0] == "text"
    np.testing.assert_array_equal(found["kept"][1][0], X)
    assert found["kept"][1][1] is None
    with pytest.raises(nx.ArgumentError, match=r"argument 1: must be f32\[2\]\[3\]; got f32\[3\]"):
        restored(params, X[0], 2.0)
    with pytest.raises(nx.ArgumentError, match="arguments: must be 4 tensors; got 1"):
        restored(X)


def test_exported_programs_parse_with_jax():
    jax = pytest.importorskip("jax")
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    def model(x):
        return nx.nn.softmax(nx.sort(x) @ x.T), nx.linalg.cholesky(x @ x.T + 3 * nx.eye(2))

    context = jax._src.interpreters.mlir.make_ir_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(nx.export(model, [X]))
        assert module.operation.verify()
        assert stablehlo.get_current_version()


def test_stablehlo_of_jax_runs():
    jax = pytest.importorskip("jax")
    text = jax.jit(lambda x, n: (jax.numpy.sin(x) * n, x.sum())).lower(X, np.int32(3)).as_text()
    imported = nx.import_stablehlo(text)
    assert imported.inputs == [("argument 0", "f32[2][3]"), ("argument 1", "s32")]
    imported.compile()
    first, total = imported(X, np.int32(3))
    np.testing.assert_allclose(first, np.sin(X) * 3, rtol=1e-6)
    np.testing.assert_allclose(total, X.sum(), rtol=1e-6)


def test_results_are_on_the_device_of_the_arguments(device):
    twice = nx.import_stablehlo(nx.export(lambda x: 2 * x, [nx.template(2)]))
    assert twice(nx.device_put(nx.ones(2), device)).device == device
    with pytest.raises(nx.OptionError, match="evaluator"):
        nx.import_stablehlo(twice.text, compiler="evaluator")(nx.ones(2))
    with nx.default_options(compiler="evaluator"):
        assert twice(nx.ones(2)).tolist() == [2.0, 2.0]


def test_imported_functions_are_not_traced():
    twice = nx.import_stablehlo(nx.export(lambda x: 2 * x, [nx.template(2)]))
    with pytest.raises(nx.TraceError, match="runtime_call"):
        nx.jit(twice)(nx.ones(2))


@pytest.mark.parametrize(
    "damage",
    [
        lambda header: header.pop("used"),
        lambda header: header.update(used=[7]),
        lambda header: header.update(fixed=["None"]),
        lambda header: header.update(inputs=[{"path": "argument 0", "type": "f32[2]"}]),
        lambda header: header.update(outputs=["f32[2]"]),
    ],
)
def test_damaged_signatures_are_rejected(damage):
    first, _, rest = nx.export(lambda x: 2 * x, [nx.template(2)]).partition("\n")
    header = json.loads(first.removeprefix("// nxla.export 1 "))
    damage(header)
    with pytest.raises(nx.FormatError, match=r"first line: must be the JSON of nx\.export"):
        nx.import_stablehlo(f"// nxla.export 1 {json.dumps(header)}\n{rest}")
    with pytest.raises(nx.FormatError, match=r"first line: must be the JSON of nx\.export"):
        nx.import_stablehlo(f"// nxla.export 1 {{\n{rest}")
    with pytest.raises(nx.FormatError, match="version"):
        nx.import_stablehlo(f"// nxla.export 2 {json.dumps(header)}\n{rest}")


def test_signatures_that_differ_from_the_text_are_rejected():
    text = nx.export(lambda x: 2 * x, [nx.template(2)])
    with pytest.raises(nx.FormatError, match=r"f32\[3\]"):
        nx.import_stablehlo(text.replace("f32[2]", "f32[3]"))


def test_invalid_stablehlo_is_rejected(tmp_path):
    with pytest.raises(nx.FormatError, match="@main"):
        nx.import_stablehlo("module {\n}")
    with pytest.raises(nx.DeviceError, match="compilation failed"):
        nx.import_stablehlo("func.func @main(%0: tensor<f32>) -> tensor<f32> { nonsense }")(1.0)
    with pytest.raises(FileNotFoundError):
        nx.import_stablehlo(tmp_path / "none.mlir")
    (tmp_path / "bytes").write_bytes(b"ML\xefR\x00\xff")
    with pytest.raises(nx.FormatError, match="bytecode"):
        nx.import_stablehlo(tmp_path / "bytes")


def test_export_rejects_results_in_custom_containers():
    @dataclasses.dataclass
    class Pair:
        left: object

    with pytest.raises(nx.ArgumentError, match="Pair"):
        nx.export(lambda x: Pair(x), [nx.template(2)])


@pytest.mark.parametrize("function", [nx.linalg.eig, nx.linalg.eigvals])
def test_programs_without_the_host_function_of_eig_name_it(function, compiler):
    with pytest.raises(nx.DeviceError, match=r"got the host function of nx\.linalg\.eig"):
        nx.export(function, [nx.template((2, 2))])
    expression = nx.debug_expr(function)(nx.template((2, 2)))
    restored = type(expression).from_bytes(expression.to_bytes())
    with pytest.raises(nx.NxlaError, match=r"no host function for nx\.linalg\.eig; serialized"):
        nx.jit(lambda x: nx.expr.call(restored, x), compiler=compiler)(nx.ones((2, 2)))


def test_named_tuples_are_exported_as_tuples():
    x = nx.tensor([[2.0, 1.0], [4.0, 5.0]])
    for function in (nx.linalg.lu, nx.linalg.qr):
        found = nx.import_stablehlo(nx.export(function, [nx.template((2, 2))]))(x)
        assert type(found) is tuple
        assert [part.shape for part in found] == [part.shape for part in function(x)]
    key = nx.random.key(3)
    text = nx.export(lambda key: nx.random.normal(key, (2,)), [key])
    value, following = nx.import_stablehlo(text)(key)
    expected = nx.random.normal(key, (2,))
    assert following.tolist() == expected.key.tolist()
    np.testing.assert_allclose(value.numpy(), expected.value.numpy(), rtol=1e-6)


def test_xla_flags_are_passed_to_xla():
    bad = nx.jit(lambda x: x + 0.75, compiler="xla", xla_no_such_flag=True)
    with pytest.raises(nx.OptionError, match="xla_no_such_flag"):
        bad(1.0)
    wrong = nx.jit(lambda x: x + 0.75, compiler="xla", xla_cpu_enable_fast_math="maybe")
    with pytest.raises(nx.OptionError, match="not a valid bool"):
        wrong(1.0)
    text = nx.export(lambda x: x + 0.75, [nx.template(())])
    with pytest.raises(nx.OptionError, match="xla_no_such_flag"):
        nx.import_stablehlo(text, xla_no_such_flag=True)(1.0)
    fast = nx.jit(lambda x: x + 0.75, compiler="xla", xla_backend_optimization_level=0)
    assert fast(1.0).item() == 1.75
    # Options of the call override the defaults of nxla.
    loose = {"xla_cpu_enable_fast_min_max": True, "xla_allow_excess_precision": True}
    assert nx.jit(lambda x: nx.maximum(x, 0.75), compiler="xla", **loose)(1.0).item() == 1.0


def test_jit_docstring_lists_options():
    for name in ("cache_dir", "xla_...", "kernels", "precision", "cpu_device_count", "plugin"):
        assert name in nx.jit.__doc__


def test_imported_functions_bind_arguments_by_name_and_path():
    def model(a, b, /, c, *, scale=1.0):
        return a - b["x"] * 10 + b["y"][0] * 100 + c * 1000 * scale

    one = nx.template(())
    text = nx.export(model, [one, {"x": one, "y": (one,)}, one])
    imported = nx.import_stablehlo(text)
    b = {"x": 2.0, "y": (3.0,)}
    expected = 1.0 - 20.0 + 300.0 + 4000.0
    for entries in (b, dict(reversed(b.items())), OrderedDict(b), {"x": 2.0, "y": [3.0]}):
        for parts in (entries, OrderedDict(reversed(entries.items())), defaultdict(None, entries)):
            assert imported(1.0, parts, 4.0).item() == expected
            assert imported(1.0, parts, c=4.0).item() == expected
    for wrong in (
        [2.0, 3.0], (2.0, (3.0,)), {"x": 2.0, "z": (3.0,)}, {"x": 2.0, "y": 3.0},
        {"x": 2.0, "y": {"0": 3.0}}, {"x": (2.0, 3.0)},
    ):  # fmt: skip
        with pytest.raises(nx.ArgumentError, match="model: argument 1: must contain the parts"):
            imported(1.0, wrong, 4.0)
    for kwargs in ({"d": 4.0}, {"a": 4.0}, {"scale": 4.0}):
        with pytest.raises(nx.ArgumentError, match="must not contain the keyword"):
            imported(1.0, b, **kwargs)
    with pytest.raises(nx.ArgumentError, match="c: must not be passed twice"):
        imported(1.0, b, 4.0, c=4.0)

    subtract = nx.import_stablehlo(nx.export(lambda a, b: a - b, [one, one]))
    for kwargs in itertools.permutations({"a": 2.0, "b": 1.0}.items()):
        assert subtract(**dict(kwargs)).item() == 1.0
    assert subtract(2.0, b=1.0).item() == 1.0
    for names in ("xy", "ac", "bc"):
        with pytest.raises(nx.ArgumentError, match="keyword"):
            subtract(**dict.fromkeys(names, 1.0))


def test_imported_functions_omit_static_arguments():
    power = nx.jit(lambda x, n, y: x**n - y, static_argnums=1)
    imported = nx.import_stablehlo(nx.export(power, [nx.template(()), 3, nx.template(())]))
    assert imported(2.0, 1.0).item() == imported(2.0, y=1.0).item() == imported(y=1.0, x=2.0) == 7.0
    assert imported(2.0, 3, 1.0).item() == imported(2.0, y=1.0, n=3).item() == 7.0
    with pytest.raises(nx.ArgumentError, match="arguments: must be at most 3; got 4"):
        imported(2.0, 3, 1.0, 4.0)


class Layer:
    """A container whose kind is not a tensor."""

    def __init__(self, weight, kind):
        self.weight, self.kind = weight, kind


nx.tree.register_container(
    Layer, lambda layer: ((layer.weight,), layer.kind), lambda kind, parts: Layer(*parts, kind)
)

#: Pairs of a fixed argument and a different one, in calls of a function of it and of a tensor.
FIXED = {
    "str": ("exp", "log"),
    "none": (None, "log"),
    "function": (nx.exp, nx.log),
    "class": (np.float32, np.float64),
    "dtype": (nx.float32, nx.float64),
    "list": (["exp", "b"], ["exp", "c"]),
    "tuple": (("exp",), ("exp", None)),
    "set": ({"exp", "b", "c"}, {"exp", "b"}),
    "dict": ({"mode": "exp", "to": None}, {"mode": "log", "to": None}),
    "static int": (3, 2),
    "static float": (3.0, 3),
    "static bool": (True, 1),
}


@pytest.mark.parametrize("case", FIXED)
def test_imported_functions_refuse_other_fixed_arguments(case):
    expected, other = FIXED[case]
    static = 1 if case.startswith("static") else ()
    exported = nx.jit(lambda x, fixed, y: x - y, static_argnums=static)
    one = nx.template(())
    imported = nx.import_stablehlo(nx.export(exported, [one, expected, one]))
    equal = dict(reversed(expected.items())) if isinstance(expected, dict) else expected
    for value in (expected, equal):
        assert imported(3.0, value, 1.0).item() == 2.0
        assert imported(3.0, y=1.0, fixed=value).item() == 2.0
    assert imported(3.0, 1.0).item() == imported(3.0, y=1.0).item() == 2.0
    for args, kwargs in (
        ((3.0, other, 1.0), {}),
        ((3.0, other), {"y": 1.0}),
        ((3.0,), {"y": 1.0, "fixed": other}),
    ):
        with pytest.raises(nx.ArgumentError, match=r"argument 1: must be .*; got "):
            imported(*args, **kwargs)


def test_imported_functions_refuse_containers_with_other_fixed_values():
    def model(layer, b):
        return layer["l"].weight * b[0]

    def layer(kind, **more):
        return {"l": Layer(nx.ones(2), kind), "m": "exp", **more}

    imported = nx.import_stablehlo(nx.export(model, [layer("relu"), (nx.template(()), None)]))
    assert imported(layer("relu"), (2.0, None)).tolist() == [2.0, 2.0]
    for wrong, why in (
        ((layer("tanh"), (2.0, None)), r"argument 0\['l'\]: must be 'relu'; got 'tanh'"),
        ((layer("relu", m="log"), (2.0, None)), r"argument 0\['m'\]: must be 'exp'; got 'log'"),
        ((layer("relu", n=None), (2.0, None)), r"argument 0\['n'\]: must be no value; got None"),
        ((layer("relu"), (2.0, "b")), r"argument 1\[1\]: must be None; got 'b'"),
    ):
        with pytest.raises(nx.ArgumentError, match=why):
            imported(*wrong)


#: Functions of axes with names and vectorized axes, and their arguments.
AXES = {
    "vectorized result": (lambda x: nx.vectorize(x, "v"), [nx.ones((2, 3))]),
    "vectorized argument": (lambda x: nx.sum(x), [nx.vectorize(nx.ones((2, 3)), "v")]),
    "aligned arguments": (
        lambda x, y: {"y": x + y, "x": [x, nx.devectorize(x)]},
        [nx.vectorize(nx.ones((2, 3)), "v"), nx.vectorize(nx.ones((4, 5, 3)), ["q", "r"])],
    ),
    "names": (lambda x: nx.sum(x, axis="a"), [nx.ones((2, 3, 4), names=["a", None, "b"])]),
    "both": (
        lambda x: (nx.sum(x, axis="b"), nx.vectorize(x, "c")),
        [nx.vectorize(nx.ones((2, 3, 4, 5), names=["v", "a", "b", None]), "v")],
    ),
    "unused argument": (lambda x, y: y, [nx.vectorize(nx.ones(2), "v"), nx.ones(3)]),
}


@pytest.mark.parametrize("case", AXES)
def test_imported_functions_keep_vectorized_axes_and_names(case):
    function, args = AXES[case]
    imported = nx.import_stablehlo(nx.export(function, args))
    assert [kind for _, kind in imported.inputs] == [
        str(nx.template(x.shape, x.dtype, names=x.names, vectorized_axes=x.vectorized_axes))
        for x in args
    ]
    found, expected = imported(*args), function(*args)
    for left, right in zip(nx.tree.leaves(found), nx.tree.leaves(expected), strict=True):
        assert (left.vectorized_axes, left.names) == (right.vectorized_axes, right.names)
        assert (left.shape, left.tolist()) == (right.shape, right.tolist())
    plain = [nx.devectorize(x, keep_names=False) for x in args]
    other = [nx.vectorize(x[None], "other") for x in plain]
    for wrong in [other] if plain[0].shape == args[0].shape else [plain, other]:
        with pytest.raises(nx.ArgumentError, match=r"argument 0: must be .*; got "):
            imported(*wrong)


def test_imported_functions_refuse_other_names_of_axes():
    x = nx.ones((2, 2), names=["a", "b"])
    imported = nx.import_stablehlo(nx.export(lambda x: nx.sum(x, axis="a"), [x]))
    assert imported(np.ones((2, 2), np.float32)).names == ["b"]
    with pytest.raises(
        nx.ArgumentError, match=r"must be f32\[a: 2\]\[b: 2\]; got f32\[b: 2\]\[a: 2\]"
    ):
        imported(x.T)


def test_a_module_of_another_tool_has_no_keywords():
    text = nx.export(lambda a, b: a - b, [nx.template(()), nx.template(())])
    imported = nx.import_stablehlo(text.partition("\n")[2])
    assert imported(2.0, 1.0).item() == 1.0
    with pytest.raises(nx.ArgumentError, match="must not contain the keyword 'a'"):
        imported(a=2.0, b=1.0)
