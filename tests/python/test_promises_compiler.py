"""Promises of compilers: the built-in ones, and one written in Python."""

import threading
import types

import numpy as np
import pytest

import nxla as nx
from numpy_compiler import NumpyCompiler
from where import DEVICE


@pytest.fixture(params=["evaluator", "xla", "numpy"])
def compiler(request):
    """The name of a compiler, or a compiler."""
    return NumpyCompiler() if request.param == "numpy" else request.param


def assert_close(found, expected, rtol=1e-6):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-6)


# --- the tests that every compiler passes ---


def test_element_wise_functions_and_broadcasting(compiler):
    f = nx.jit(lambda x, y: nx.sin(x) * y - nx.tanh(y) / 2, compiler=compiler)
    x, y = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3), np.float32([1, 2, 3])
    assert_close(f(x, y), np.sin(x) * y - np.tanh(y) / 2)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64", "complex64", "bool"])
def test_results_have_the_dtypes_of_the_expression(compiler, dtype):
    x = nx.astype(nx.tensor([1, 0, 3]), dtype)
    expression = nx.debug_expr(lambda x: (x + x, x / 2, x == x, nx.sum(x)))(x)
    results = nx.jit(lambda x: (x + x, x / 2, x == x, nx.sum(x)), compiler=compiler)(x)
    assert [r.dtype for r in results] == [dtype for _, dtype in expression.outputs]
    assert [r.shape for r in results] == [shape for shape, _ in expression.outputs]


def test_reductions_products_and_movements(compiler):
    def f(x, w):
        h = nx.maximum(x @ w, 0.0)
        return nx.sum(h, axis=1), nx.max(h), nx.reshape(h, (-1,)), h.T[1:, :2]

    x, w = np.float32([[1, -2], [3, 4], [0, 1]]), np.float32([[1, 2, 0], [0, -1, 1]])
    h = np.maximum(x @ w, 0)
    total, largest, flat, part = nx.jit(f, compiler=compiler)(x, w)
    assert_close(total, h.sum(1))
    assert_close(largest, h.max())
    assert_close(flat, h.ravel())
    assert_close(part, h.T[1:, :2])


def test_gradients(compiler):
    loss = lambda w, x: nx.mean((x @ w) ** 2)  # noqa: E731
    w, x = np.float32([1, 2]), np.float32([[1, 0], [2, 1], [0, 3]])
    assert_close(nx.jit(nx.grad(loss), compiler=compiler)(w, x), x.T @ (x @ w) * 2 / 3, rtol=1e-5)


@pytest.mark.parametrize(("x", "expected"), [(3.0, 9.0), (-3.0, 3.0), (0.0, 0.0)])
def test_branches(compiler, x, expected):
    f = nx.jit(
        lambda x: nx.cond([(x > 0, lambda: x * x), (x < 0, lambda: -x)], otherwise=lambda: x),
        compiler=compiler,
    )
    assert f(x).item() == expected


def test_loops_that_capture_outer_values(compiler):
    def f(x, limit):
        return nx.while_loop(lambda s: s[0] < limit, lambda s: (s[0] * x, s[1] + 1), (x, 0))

    value, count = nx.jit(f, compiler=compiler)(2.0, 100.0)
    assert (value.item(), count.item()) == (128.0, 6)


def test_hooks_see_values_in_order(compiler):
    seen = []

    def f(x):
        x = nx.hook(x + 1, lambda v: seen.append(v.item()))
        pair = nx.hook({"a": x, "b": x * 2}, lambda v: seen.append((v["a"].item(), v["b"].item())))
        return pair["b"]

    assert nx.jit(f, compiler=compiler)(1.0).item() == 4.0
    assert seen == [2.0, (2.0, 4.0)]


def test_call_hooks_override_function_hooks(compiler):
    function_values, call_values = [], []
    f = lambda x: nx.hook(x + 1, "next", lambda v: function_values.append(v.item()))  # noqa: E731
    named = lambda x: nx.hook(x + 1, "next")  # noqa: E731
    hooks = {"next": lambda v: call_values.append(v.item())}
    assert nx.jit(f, compiler=compiler)(1).item() == 2
    assert nx.jit(f, compiler=compiler, hooks=hooks)(2).item() == 3
    assert nx.jit(named, compiler=compiler)(3).item() == 4
    assert nx.jit(named, compiler=compiler, hooks=hooks)(4).item() == 5
    assert (function_values, call_values) == ([2], [3, 5])


class Delegating(nx.Compiler):
    """A compiler that delegates to another compiler."""

    name = "delegating"

    def __init__(self, **options):
        self.options = options

    def compile(self, expression, options):
        return lambda inputs: expression.run(*inputs, **self.options)


@pytest.mark.parametrize("to", [{}, {"compiler": "xla"}])
def test_call_hooks_reach_the_delegated_compiler(to):
    seen = []
    counted = lambda x: nx.fori(0, 2, lambda i, s: nx.hook(s + i, "state"), x)  # noqa: E731
    for offset in (0, 100):
        hooks = {"state": lambda v, offset=offset: seen.append(v.item() + offset)}
        assert nx.jit(counted, compiler=Delegating(**to), hooks=hooks)(1).item() == 2
    assert seen == [1, 2, 101, 102]


def test_delegating_compiler_does_not_recurse():
    with nx.default_options(compiler=Delegating()):
        assert nx.jit(lambda x: x + 1)(1).item() == 2


def test_captured_tensors(compiler):
    small, large = nx.tensor([1.0, 2.0]), nx.tensor(np.arange(10_000, dtype=np.float32))
    f = nx.jit(lambda x: nx.sum(x * small) + nx.max(large), compiler=compiler)
    with pytest.warns(nx.CaptureWarning, match=r"f32\[10000\]"):
        assert f(nx.tensor([1.0, 1.0])).item() == 10_002.0


def test_containers_of_arguments_and_results(compiler):
    f = nx.jit(lambda d: {"sum": d["x"] + d["y"][0], "kept": [None, d["y"]]}, compiler=compiler)
    result = f({"x": 1.0, "y": (2.0, "text")})
    assert result["sum"].item() == 3.0
    assert result["kept"][0] is None
    assert result["kept"][1][0].item() == 2.0
    assert result["kept"][1][1] == "text"


def test_streams(compiler):
    stream = nx.stream(
        lambda x, total: (total, total + x), nx.template((), "s32"), 0, compiler=compiler
    )
    for x in (1, 2, 3):
        stream.send(x)
    # Each result is the state before the chunk was added.
    assert [stream.recv().item() for _ in range(3)] == [0, 1, 3]
    assert stream.done().item() == 6


def test_functions_compiled_from_templates(compiler):
    f = nx.compile(lambda x, y: x * y, [nx.template((2,)), nx.template(())], compiler=compiler)
    assert f(nx.tensor([1.0, 2.0]), 3.0).tolist() == [3.0, 6.0]
    with pytest.raises(nx.ArgumentError):
        f(nx.tensor([1, 2]), 3.0)


def test_stages(compiler):
    expression = nx.debug_expr(lambda x: nx.sum(nx.sin(x) @ nx.cos(x)))(nx.ones(3))
    stages = nx.graph.split(expression, lambda node: "both" if node.op == "dot" else "none")
    whole = expression.run(nx.ones(3), compiler=compiler)
    assert len(stages) == 3
    assert_close(nx.graph.run(stages, nx.ones(3), compiler=compiler), whole.item())


def test_empty_and_scalar_shapes(compiler):
    f = nx.jit(lambda x: (nx.sum(x), x + 1), compiler=compiler)
    for shape in [(0,), (2, 0), (1,), ()]:
        total, more = f(nx.zeros(shape))
        assert total.item() == 0.0
        assert more.shape == shape


def test_unknown_compiler_option_raises(compiler):
    with pytest.raises(nx.OptionError, match=r"option ['\"]color"):
        nx.jit(lambda x: x + 1, compiler=compiler, color="red")(1.0)


def test_concurrent_calls(compiler):
    f = nx.jit(lambda x: nx.sum(nx.sin(x)), compiler=compiler)
    results = {}

    def work(size):
        results[size] = f(nx.ones(size)).item()

    threads = [threading.Thread(target=work, args=(size,)) for size in (1, 2, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for size in (1, 2, 3, 4):
        assert_close(results[size], size * np.sin(1.0))


# --- promises to compilers ---


def test_compile_returns_a_function_of_inputs():
    compiler = NumpyCompiler()
    f = nx.jit(lambda x, y: (x + y, x - y), compiler=compiler)
    assert [r.item() for r in f(3.0, 1.0)] == [4.0, 2.0]
    assert len(compiler.compiled) == 1


def test_compiler_jit_is_called_once_per_function():
    compiler = NumpyCompiler()

    def double(x):
        return x * 2

    f = nx.jit(double, compiler=compiler)
    assert f(1).item() == 2
    assert f(2.5).item() == 5.0
    assert compiler.jitted == ["double"]


def test_streams_use_the_compiler():
    compiler = NumpyCompiler()
    nx.stream(lambda x, s: (x, s), nx.template(()), 0.0, compiler=compiler).done()
    assert compiler.streams == 1


def test_partitions_options_select_devices():
    compiler = NumpyCompiler()
    partitions = nx.partitions_options(compiler=compiler)
    assert [each["device"] for each in partitions] == [0, 1]
    for each in partitions:
        assert nx.jit(lambda x: x + 1, **each)(1.0).item() == 2.0
    assert [each["compiler"] for each in nx.partitions_options(compiler="evaluator")] == [
        "evaluator"
    ] * len(nx.partitions_options(compiler="evaluator"))
    for each in nx.partitions_options(compiler="xla"):
        assert nx.jit(lambda x: x + 1, **each)(1.0).item() == 2.0


def test_to_backend_returns_the_device_of_results():
    assert nx.to_backend(compiler=NumpyCompiler(), device=3) == "host"
    assert nx.to_backend(compiler="evaluator") == "host"
    assert nx.to_backend(compiler="xla") == DEVICE
    assert nx.jit(lambda x: x + 1, compiler="xla")(1.0).device != "host"


def test_cache_key_has_types_shapes_and_names():
    compiler = NumpyCompiler()
    traced = []

    def f(x):
        traced.append((str(x.dtype), x.shape, x.names))
        return x + 1

    f = nx.jit(f, compiler=compiler)
    for x in (nx.ones(2), nx.zeros(2), nx.full(2, 5.0)):
        f(x)
    assert len(traced) == len(compiler.compiled) == 1
    f(nx.ones(3))
    f(nx.ones(2, dtype="f64"))
    f(nx.rename(nx.ones(2), ["rows"]))
    f(nx.rename(nx.ones(2), ["columns"]))
    f(nx.rename(nx.ones(2), ["rows"]))
    assert [names for *_, names in traced] == [[None], [None], [None], ["rows"], ["columns"]]


def test_current_compiler_is_none_outside_of_a_trace():
    names = []

    def f(x):
        names.append(nx.current_compiler())
        return x

    assert nx.current_compiler() is None
    nx.jit(f)(1.0)
    nx.jit(f, compiler="xla")(1.0)
    nx.jit(f, compiler=NumpyCompiler())(1.0)
    with nx.default_options(compiler="xla"):
        nx.jit(f)(1)
    nx.debug_expr(f)(1.0)
    assert names == ["evaluator", "xla", "numpy", "xla", "evaluator"]
    assert nx.current_compiler() is None


def test_current_compiler_of_nested_traces():
    names = []
    inner = nx.jit(
        lambda x: (names.append(nx.current_compiler()), x)[1], compiler="xla", on_conflict="force"
    )

    def outer(x):
        inner(2.0)
        names.append(nx.current_compiler())
        return x

    nx.jit(outer)(1.0)
    assert names == ["xla", "evaluator"]

    def fails(x):
        raise KeyError("inside")

    with pytest.raises(KeyError):
        nx.jit(fails)(1.0)
    assert nx.current_compiler() is None


def test_a_module_can_be_the_compiler():
    module = types.ModuleType("turbo")
    module.name = "turbo"
    module.compile = lambda expression, options: lambda inputs: expression.run(*inputs)
    module.to_backend = lambda options: "host"
    assert nx.jit(lambda x: x + 1, compiler=module)(1).item() == 2
    assert "turbo" not in nx.compilers()
    assert nx.register_compiler(module) == "turbo"
    assert nx.jit(lambda x: x + 2, compiler="turbo")(1).item() == 3


def test_registered_compiler_is_selected_by_name():
    class Named(NumpyCompiler):
        name = "registered numpy"

    compiler = Named()
    assert nx.register_compiler(compiler) == "registered numpy"
    assert nx.jit(lambda x: x + 1, compiler="registered numpy")(1).item() == 2
    with nx.default_options(compiler="registered numpy"):
        assert nx.jit(lambda x: x + 3)(1).item() == 4
    assert len(compiler.compiled) == 2


def test_invalid_compiler_objects_raise():
    with pytest.raises(nx.OptionError, match="must be a name, or an object"):
        nx.jit(lambda x: x, compiler=object())
    with pytest.raises(nx.OptionError, match="must be a name, or an object"):
        nx.jit(lambda x: x, compiler=nx.Compiler())


def test_compiler_without_compile_raises():
    class Empty(nx.Compiler):
        name = "empty"

    for use in (nx.register_compiler, lambda c: nx.jit(lambda x: x + 1, compiler=c)):
        with pytest.raises(nx.OptionError, match=r'"empty" must implement compile'):
            use(Empty())


def test_compiler_errors_propagate_unchanged():
    with pytest.raises(NotImplementedError, match="numpy cannot compute sort"):
        nx.jit(nx.sort, compiler=NumpyCompiler())(nx.ones(3))


def test_compiler_results_of_wrong_type_raise():
    class WrongType(nx.Compiler):
        name = "wrong type"

        def compile(self, expression, options):
            return lambda inputs: [nx.tensor(1)]

    with pytest.raises(nx.ArgumentError, match=r"must return \(f32\[2\]\); got \(s32\)"):
        nx.jit(lambda x: x + 1, compiler=WrongType())(nx.ones(2))


def test_nodes_have_all_attributes():
    def many_operations(x, i):
        y = nx.conv(nx.reshape(x, (1, 1, 6)), nx.ones((1, 1, 2)), strides=2)
        z = nx.window_max(x, (2,), strides=1)
        w = nx.gather(x, nx.reshape(i, (1, 1)))
        loop = nx.while_loop(lambda s: s < 3, lambda s: s + 1, i)
        return y, z, w, nx.sort(x), nx.argmax(x), nx.pad(x, 0.0, [(1, 1)]), loop

    expression = nx.debug_expr(many_operations)(nx.ones(6), 1)
    attributes = {node.op: node.attributes for node in expression.nodes}
    assert attributes["conv"]["strides"] == (2,)
    assert attributes["conv"]["padding"] == ((0, 0),)
    assert attributes["window_max"]["dimensions"] == (2,)
    assert attributes["gather"]["axes"] == (0,)
    assert attributes["sort"] == {"axis": 0, "descending": False, "stable": True}
    assert attributes["argmax"]["dtype"] == nx.int32
    assert attributes["pad"]["config"] == ((1, 1, 0),)
    assert attributes["while"]["state"] == 1
    assert attributes["while"]["body"].op_counts()["add"] == 1


# --- the callbacks of the document ---


def signature(key, variables):
    """Return a cache key: the function and the types of its arguments."""
    leaves, structure = nx.tree.flatten(variables)
    return key, structure, tuple(repr(leaf) for leaf in leaves)


class Callbacks:
    """A compiler that has only callbacks, without a base class."""

    name = "callbacks"

    def __init__(self):
        self.traced = {}
        self.calls = []
        self.options = []

    def __jit__(self, key, variables, fun, args_list, options):
        self.calls.append(("jit", len(args_list)))
        return self.__compile__(key, variables, fun, options)(args_list)

    def __compile__(self, key, variables, fun, options):
        self.options.append(options)
        cache_key = signature(key, variables)
        if cache_key not in self.traced:
            self.traced[cache_key] = fun(variables)
        expression = self.traced[cache_key]

        def run(args_list):
            return [expression.run(*(arg() for arg in args)) for args in args_list]

        return run

    def __partitions_options__(self, options):
        return [{**options, "device": number} for number in range(3)]

    def __to_backend__(self, options):
        return "host"

    def __stream__(self, key, template, initial, variables, fun, args_list, options):
        self.calls.append(("stream", template, initial, len(variables), len(args_list)))
        return [nx.Stream(key, template, args_list[0][0](), {"compiler": "evaluator"})]


def test_jit_callback_receives_lists_of_arguments():
    compiler = Callbacks()
    seen = []

    def f(pair, scale):
        seen.append(nx.current_compiler())
        return {"sum": pair["a"] + pair["b"] * scale}

    jitted = nx.jit(f, compiler=compiler)
    x = {"a": nx.ones(2), "b": 3}
    assert jitted(x, 2.0)["sum"].tolist() == [7.0, 7.0]
    assert jitted(x, 5.0)["sum"].tolist() == [16.0, 16.0]
    assert jitted({"a": 1.0, "b": 3}, scale=2.0)["sum"].item() == 7.0
    assert compiler.calls == [("jit", 1)] * 3
    # The key contains types but no values: the function is traced once for each type.
    assert seen == ["callbacks"] * 2
    assert {key for key, *_ in compiler.traced} == {f}


def test_one_call_runs_several_partitions():
    compiler = Callbacks()
    f = lambda x, y: x * y  # noqa: E731
    lists = [[nx.full(2, n), 10.0] for n in (1.0, 2.0, 3.0)]
    results = nx.jit_partitions(f, lists, compiler=compiler)
    assert [r.tolist() for r in results] == [[10.0, 10.0], [20.0, 20.0], [30.0, 30.0]]
    assert compiler.calls == [("jit", 3)]
    assert len(compiler.traced) == 1
    assert nx.jit_partitions(f, [], compiler=compiler) == []
    with pytest.raises(nx.ArgumentError, match=r"arguments 1\[0\]: must be f32\[2\]; got f32\[3\]"):
        nx.jit_partitions(f, [[nx.ones(2), 1.0], [nx.ones(3), 1.0]], compiler=compiler)
    with pytest.raises(nx.ArgumentError, match="arguments 1: must be"):
        nx.jit_partitions(f, [[nx.ones(2), 1.0], [nx.ones(2), (1.0,)]], compiler=compiler)
    named = [[nx.ones(2, names=["a"]), 1.0], [nx.ones(2, names=["b"]), 1.0]]
    with pytest.raises(nx.ArgumentError, match=r"arguments 1\[0\]: must be"):
        nx.jit_partitions(f, named, compiler=compiler)
    rows, plain = nx.vectorize(nx.ones((3, 2)), "row"), nx.ones(2)
    longer, columns = nx.vectorize(nx.ones((4, 2)), "row"), nx.vectorize(nx.ones((3, 2)), "col")
    for first, second in ((rows, plain), (plain, rows), (rows, longer), (rows, columns)):
        with pytest.raises(nx.ArgumentError, match=r"arguments 1\[0\]: must be .*vectorized"):
            nx.jit_partitions(f, [[first, 1.0], [second, 1.0]], compiler=compiler)
    assert len(compiler.traced) == 1


@pytest.mark.parametrize("name", ["evaluator", "xla", "auto", "numpy"])
def test_partitions_run_on_every_compiler(name):
    compiler = NumpyCompiler() if name == "numpy" else name
    lists = [[nx.full(2, float(n)), {"y": n}] for n in range(5)]
    f = lambda x, d: nx.sum(x) + d["y"]  # noqa: E731
    results = nx.jit_partitions(f, lists, compiler=compiler)
    assert [r.item() for r in results] == [3.0 * n for n in range(5)]


def test_partition_options_reach_the_jit_callback():
    compiler = Callbacks()
    parts = nx.partitions_options(compiler=compiler, speed=2)
    assert [(part["device"], part["speed"]) for part in parts] == [(0, 2), (1, 2), (2, 2)]
    for part in parts:
        assert nx.jit(lambda x: x + 1, **part)(1.0).item() == 2.0
    assert [options["device"] for options in compiler.options] == [0, 1, 2]


def test_compile_callback_receives_lists_of_arguments():
    compiler = Callbacks()
    f = nx.compile(lambda x, y: x - y, [nx.template((2,)), nx.template(())], compiler=compiler)
    assert compiler.calls == []
    assert len(compiler.traced) == 1
    assert f(nx.ones(2), 3.0).tolist() == [-2.0, -2.0]
    with pytest.raises(nx.ArgumentError, match=r"x: must be f32\[2\]; got f32\[3\]"):
        f(nx.ones(3), 3.0)


def test_stream_callback_receives_flat_arguments():
    compiler = Callbacks()
    step = lambda x, total: (total, total + x)  # noqa: E731
    stream = nx.stream(step, nx.template((), "s32"), 0, compiler=compiler)
    for x in (1, 2):
        stream.send(x)
    assert [stream.recv().item() for _ in range(2)] == [0, 1]
    assert stream.done().item() == 3
    template = nx.template((), "s32")
    assert compiler.calls == [("stream", template, template, 2, 1)]


def test_callbacks_run_stages_and_registered_names():
    compiler = Callbacks()
    expression = nx.debug_expr(lambda x: nx.cos(nx.sin(x)))(0.0)
    stages = nx.graph.split(expression, lambda n: "after" if n.op == "sin" else "none")
    assert nx.graph.run(stages, 0.0, compiler=compiler).item() == 1.0
    with nx.default_options(compiler=compiler):
        assert nx.jit(lambda x: x + 1)(1.0).item() == 2.0
    assert compiler.calls[-1] == ("jit", 1)
    assert nx.register_compiler(compiler) == "callbacks"
    assert nx.jit(lambda x: x + 1, compiler="callbacks")(1.0).item() == 2.0
    assert nx.to_backend(compiler=compiler) == "host"


def test_call_and_default_options_have_equal_keys():
    f = lambda x: x + 1  # noqa: E731
    hooks = {"seen": print}
    for compiler in (Callbacks(), Recording()):
        nx.jit(f, compiler=compiler, speed=3, hooks=hooks)(1.0)
        with nx.default_options(compiler=compiler, speed=3, hooks=hooks):
            nx.jit(f)(1.0)
            nx.jit_apply(f, 2)
        first, *others = compiler.options
        assert others
        assert all(other == first for other in others)
    nx.jit(f, compiler=(bare := Callbacks()))(1.0)
    assert bare.options == [{"hooks": {}}]


class Recording(nx.Compiler):
    """Records the options of `jit`."""

    name = "recording"

    def __init__(self):
        self.options = []

    def compile(self, expression, options):
        return lambda inputs: expression.run(*inputs)

    def jit(self, function, options):
        self.options.append(options)
        return super().jit(function, options)


def test_derivatives_with_callback_compilers():
    f = nx.jit(lambda x: nx.sum(x**3), compiler=Callbacks())
    assert nx.grad(f)(nx.tensor([1.0, 2.0])).tolist() == [3.0, 12.0]
    assert nx.jit(nx.value_and_grad(f))(2.0)[1].item() == 12.0
    assert nx.debug_expr(f)(1.0).op_counts()["pow"] == 1


def test_callback_with_missing_results_raises():
    class Short(Callbacks):
        name = "short"

        def __jit__(self, key, variables, fun, args_list, options):
            return []

    with pytest.raises(nx.ArgumentError, match="one entry for each of 1 lists of arguments; got 0"):
        nx.jit(lambda x: x, compiler=Short())(1.0)


def test_callbacks_in_a_trace_follow_on_conflict():
    inner = lambda x: x * 2  # noqa: E731
    make = lambda **options: nx.jit(inner, compiler=Callbacks(), **options)  # noqa: E731
    with pytest.raises(RuntimeError, match="on_conflict"):
        nx.jit(lambda x: make()(x))(1.0)
    assert nx.jit(lambda x: make(on_conflict="reuse")(x) + 1)(1.0).item() == 3.0
    forced = make(on_conflict="force")
    assert nx.jit(lambda x: x + forced(3.0))(1.0).item() == 7.0


def test_is_tracing_is_true_only_in_traces():
    seen = []
    nx.jit(lambda x: (seen.append(nx.is_tracing()), x)[1])(1.0)
    nx.debug_expr(lambda x: (seen.append(nx.is_tracing()), x)[1])(1.0)
    assert (seen, nx.is_tracing()) == ([True, True], False)
