"""Compilers written in Python: each is identified by the object, and its methods are called."""

import pytest

import nxla as nx
from nxla import _signatures


class Adding(nx.Compiler):
    """Computes the expression plus a constant of the compiler."""

    name = "adding"

    def __init__(self, number):
        self.number = number

    def compile(self, expression, options):
        return lambda inputs: [expression.run(*inputs)[0] + self.number]


def test_compilers_with_equal_names_are_distinct():
    f1 = nx.jit(lambda x: x * 2, compiler=Adding(1))
    f2 = nx.jit(lambda x: x * 2, compiler=Adding(10))
    assert f1(3).item() == 7
    assert f2(3).item() == 16
    assert f1(3).item() == 7


@pytest.mark.parametrize("name", ["xla", "evaluator"])
def test_a_compiler_with_a_builtin_name_does_not_replace_it(name):
    own = Adding(100)
    own.name = name
    assert nx.jit(lambda x: x * 2, compiler=own)(3).item() == 106
    assert nx.jit(lambda x: x * 2, compiler=name)(3).item() == 6
    with pytest.raises(
        nx.OptionError, match="must not be empty or the name of a built-in compiler"
    ):
        nx.register_compiler(own)


def test_methods_of_the_default_compiler_are_called():
    class Own(Adding):
        jitted = 0
        streamed = 0

        def jit(self, function, options):
            self.jitted += 1
            return super().jit(function, options)

        def stream(self, function, template, initial, options):
            self.streamed += 1
            return super().stream(function, template, initial, options)

    compiler = Own(1)
    f = nx.jit(lambda x: x * 2)
    with nx.default_options(compiler=compiler):
        assert f(3).item() == 7
        assert f(4).item() == 9
        stream = nx.stream(lambda x, s: (x, s), nx.template((), nx.int32), 0)
        stream.cancel()
    assert f(3).item() == 6
    assert (compiler.jitted, compiler.streamed) == (1, 1)


def test_a_compiler_needs_only_a_name_and_compile():
    class Least:
        name = "least"

        def compile(self, expression, options):
            return lambda inputs: expression.run(*inputs)

    assert nx.jit(lambda x: x + 1, compiler=Least())(1).item() == 2
    assert nx.to_backend(compiler=Least()) == "host"
    assert len(nx.partitions_options(compiler=Least())) == 1


def test_a_class_in_place_of_a_compiler_is_rejected():
    class Counting(Adding):
        name = "counting"

    with pytest.raises(
        nx.OptionError, match=r"^compiler: must be an instance; got the class Counting; pass Count"
    ):
        nx.jit(lambda x: x, compiler=Counting)


def test_a_compiled_function_without_results_is_rejected():
    class Empty(nx.Compiler):
        name = "empty"

        def compile(self, expression, options):
            return lambda inputs: None

    message = "^empty: compile: function must return a list of tensors; got a NoneType"
    with pytest.raises(nx.ArgumentError, match=message):
        nx.jit(lambda x: x + 1, compiler=Empty())(1)


class Static:
    """A compiler that is equal to others with its number; all have the same hash."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return isinstance(other, Static) and self.number == other.number


def test_static_arguments_with_equal_hashes_are_traced_once_each():
    traces = []

    @nx.jit(static_argnums=1)
    def scaled(x, static):
        traces.append(static.number)
        return x * static.number

    for _ in range(3):
        assert scaled(2, Static(3)).item() == 6
        assert scaled(2, Static(5)).item() == 10
    assert traces == [3, 5]


def test_static_arguments_with_equal_hashes_keep_separate_entries():
    traces = []

    @nx.jit(static_argnums=1)
    def ignoring(x, static):
        traces.append(static.number)
        return x + 1

    for _ in range(3):
        ignoring(2, Static(3))
        ignoring(2, Static(5))
    assert traces == [3, 5]


def test_a_tensor_for_a_static_argument_is_refused():
    f = nx.jit(lambda x, k: x * k, static_argnames="k")
    with pytest.raises(nx.ArgumentError, match="a tensor cannot be static"):
        f(nx.tensor(2), k=nx.tensor(3))


@pytest.mark.filterwarnings("ignore::nxla.CaptureWarning")
def test_a_captured_tensor_that_is_renamed_keeps_the_new_names():
    big = nx.zeros((5000,), names=["old"])

    def f(x):
        renamed = nx.rename(big, ["new"])
        return x + nx.sum(big), renamed

    _, renamed = nx.jit(f)(1.0)
    assert renamed.names == ["new"]


class Duck:
    """A compiler that is not a subclass of `nx.Compiler`."""

    name = "duck"

    def __init__(self):
        self.calls = []

    def compile(self, expression, options):
        self.calls.append("compile")
        return lambda inputs: expression.run(*inputs)

    def jit(self, function, options):
        self.calls.append(("jit", sorted(options)))
        return function

    def stream(self, function, template, initial, options, *, constants=(), bound=None):
        self.calls.append(("stream", constants, bound))
        return "streamed"


def test_methods_of_duck_typed_compilers_are_called():
    duck = Duck()
    assert nx.jit(lambda x: x + 1, compiler=duck)(1) == 2
    template = nx.template((), "f32")
    assert nx.stream(lambda x, s: (x, s), template, 0.0, compiler=duck) == "streamed"
    assert duck.calls == [("jit", ["compiler"]), ("stream", (), None)]


class Streaming(nx.Compiler):
    """A compiler whose streams and callbacks for streams only record that they were called."""

    name = "streaming"

    def compile(self, expression, options):
        return lambda inputs: expression.run(*inputs)

    def stream(self, function, template, initial, options):
        return "stream"


class StreamingByCallback(Streaming):
    def __stream__(self, key, input, acc, args, fun, args_list, options):
        return ["__stream__"]


@pytest.mark.parametrize(
    ("compiler", "called"), [(Streaming(), "stream"), (StreamingByCallback(), "__stream__")]
)
def test_streams_use_the_compiler_of_a_jitted_function(compiler, called):
    step, template = lambda x, s: (x, s), nx.template((), "f32")
    assert nx.stream(step, template, 0.0, compiler=compiler) == called
    jitted = nx.jit(step, compiler=compiler)
    assert nx.stream(jitted, template, 0.0) == called
    stream = nx.stream(jitted, template, 0.0, compiler="evaluator")
    assert [y.item() for y in stream.over([1.0])] == [1.0]


def test_stream_of_a_compiler_receives_constants_and_bound():
    duck = Duck()
    template = nx.template((), "f32")
    nx.stream(lambda x, s, c: (x, s), template, 0.0, 3.0, bound=2, compiler=duck)
    assert duck.calls == [("stream", (3.0,), 2)]

    class Passing(nx.Compiler):
        name = "passing"

        def compile(self, expression, options):
            return lambda inputs: expression.run(*inputs)

        def stream(self, function, template, initial, options, **more):
            return super().stream(function, template, initial, options, **more)

    stream = nx.stream(
        lambda x, s, c: (x * c, s + x), template, 0.0, 3.0, bound=2, compiler=Passing()
    )
    stream.send(2.0)
    assert stream.recv().item() == 6.0
    assert stream.done().item() == 2.0


# --- marked arguments, and compilers with callbacks ---


class Callback:
    """A compiler that has only the callback ``__compile__``."""

    name = "callback"

    def __init__(self):
        self.keys = []

    def __compile__(self, key, vars, fun, options):
        self.keys.append(key)
        expression = fun(vars)
        return lambda lists: [expression.run(*(arg() for arg in args)) for args in lists]


class CallbackOfCalls(Callback):
    """The same compiler with the callback ``__jit__`` too."""

    name = "callback_of_calls"

    def __jit__(self, key, vars, fun, args_list, options):
        return self.__compile__(key, vars, fun, options)(args_list)


KINDS = [Callback, CallbackOfCalls]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_runs_on_a_compiler_with_callbacks(kind):
    step = lambda chunk, state, *constants: (chunk + state, state + sum((1.0, *constants)))  # noqa: E731
    for options in ({"compiler": kind()}, {"compiler": kind(), "bound": 3}):
        stream = nx.stream(step, nx.template(()), 0.0, 2.0, **options)
        assert [y.item() for y in stream.over([1.0, 2.0])] == [1.0, 5.0]
        assert stream.done().item() == 6.0
    with nx.default_options(compiler=kind()):
        assert [y.item() for y in nx.stream(step, nx.template(()), 0.0).over([1.0, 2.0])] == [1, 3]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_default", [False, True])
@pytest.mark.parametrize("marks", [{"static_argnames": "n"}, {"static_argnums": 1}])
def test_callbacks_get_functions_with_fixed_static_arguments(kind, is_default, marks):
    compiler = kind()

    def repeat(x, n, y=0.0):
        assert isinstance(n, int)
        return nx.tile(x, n) + y

    x = nx.tensor([1.0])
    options = {} if is_default else {"compiler": compiler}
    function = nx.jit(repeat, **marks, **options)
    with nx.default_options(**({"compiler": compiler} if is_default else {})):
        for n in (2, 3, 2):
            assert function(x, n).tolist() == [1.0] * n
            assert function(x, n=n).tolist() == [1.0] * n
            assert function(x, n, 2.0).tolist() == [3.0] * n
            assert function(y=nx.tensor(2.0), n=n, x=x).tolist() == [3.0] * n
    # Equal static arguments are one key, so that a compiler can find its program.
    assert len(set(compiler.keys)) < len(compiler.keys)


def test_functions_with_fixed_static_arguments_are_bounded():
    function = nx.jit(lambda x, n: x + n, static_argnums=1, compiler=Callback())
    for n in range(300):
        assert function._without_static((0, n), {})[0](1) == 1 + n
    assert len(function._fixed._values._values) <= _signatures.LIMIT


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("marks", [{"static_argnames": "n"}, {"static_argnums": 1}])
def test_callbacks_get_one_function_for_each_signature(kind, marks, monkeypatch):
    compiler = kind()
    function = nx.jit(lambda x, n: nx.full_like(x, str(n).count("0")), compiler=compiler, **marks)
    statics = [2, 2.0, True, 1, (2,), (2.0,), [2], {"n": 0.0}, {"n": -0.0}, {1: 2}, {True: 2}]
    for _ in range(2):
        for static in statics:
            found = function(nx.zeros(()), static).item()
            assert found == str(static).count("0"), static
    assert len(set(compiler.keys)) == len(statics)
    monkeypatch.setattr("nxla._signatures.LIMIT", 2)
    function(nx.zeros(()), 0)
    compiler.keys.clear()
    for static in (1, 1, 2, 3, 1):
        function(nx.zeros(()), static)
    assert len(set(map(id, compiler.keys))) == 4


def test_calls_on_partitions_have_the_options_of_the_function():
    lists = [[nx.ones(2)], [nx.zeros(2)]]
    compiler = Callback()
    for function in (nx.jit(nx.exp, compiler=compiler), nx.jit(nx.jit(nx.exp), compiler=compiler)):
        assert [x.tolist() for x in nx.jit_partitions(function, lists)] == [
            nx.exp(x).tolist() for (x,) in lists
        ]
    assert len(compiler.keys) == 2
    checked = nx.jit(nx.log, debug_nans=True)
    with pytest.raises(nx.ExecutionError, match="NaN"):
        nx.jit_partitions(checked, [[-nx.ones(2)]])
    assert nx.isnan(nx.jit_partitions(checked, [[-nx.ones(2)]], debug_nans=False)[0]).all()
    adding = nx.jit(lambda x: x * 2, compiler=Adding(5.0))
    assert [x.tolist() for x in nx.jit_partitions(adding, lists)] == [[7.0, 7.0], [5.0, 5.0]]
    on_evaluator = nx.jit_partitions(adding, lists, compiler="evaluator")
    assert [x.tolist() for x in on_evaluator] == [[2.0, 2.0], [0.0, 0.0]]
    for marks in ({"static_argnames": "y"}, {"static_argnums": 1}, {"donate_argnums": 0}):
        marked = nx.jit(lambda x, y: x, **marks)
        with pytest.raises(nx.ArgumentError, match="jit_partitions: function: must not have"):
            nx.jit_partitions(marked, [[nx.ones(2), 1]], compiler=compiler)


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_package_functions_are_static(kind):
    x = nx.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert nx.jit(nx.sum, compiler=kind())(x, axis=0).tolist() == [4.0, 6.0]
    with nx.default_options(compiler=kind()):
        assert nx.jit(nx.sum)(x, axis=0).tolist() == [4.0, 6.0]


@pytest.mark.parametrize("kind", KINDS)
def test_callbacks_refuse_donated_arguments(kind):
    compiler, f = kind(), lambda x: x + 1
    refused = pytest.raises(nx.ArgumentError, match="does not support donated")
    with refused:
        nx.jit(f, donate_argnums=0, compiler=compiler)
    with refused:
        nx.compile(f, [nx.template(())], donate_argnums=0, compiler=compiler)
    with nx.default_options(compiler=compiler), refused:
        nx.jit(f, donate_argnums=0)(1.0)
    with pytest.raises(nx.ArgumentError, match="jit_partitions: donate_argnums: not supported"):
        nx.jit_partitions(f, [[1.0]], compiler=compiler, donate_argnums=0)


def test_callback_compiled_functions_bind_arguments_alike():
    def f(a, b):
        return a - b

    templates = [nx.template((2,)), nx.template(())]
    own, other = nx.compile(f, templates, compiler=Callback()), nx.compile(f, templates)
    a, b = nx.tensor([3.0, 4.0]), nx.tensor(1.0)
    for call in (lambda g: g(a, b), lambda g: g(b=b, a=a), lambda g: g(a, b=b)):
        assert call(own).tolist() == call(other).tolist() == [2.0, 3.0]
    wrong = (
        lambda g: g(a),
        lambda g: g(b, b),
        lambda g: g(a, b, c=1),
        lambda g: g(a, (b,)),
        lambda g: nx.jit(lambda x: g(a, b))(1.0),
    )
    for call in wrong:
        errors = []
        for function in (own, other):
            with pytest.raises(nx.errors.NxlaError) as error:
                call(function)
            errors.append((type(error.value), str(error.value)))
        assert errors[0] == errors[1]


def test_functions_with_jit_options_accept_static_arguments():
    def f(x, n):
        return nx.tile(x, n)

    template, x = nx.template((1,)), nx.tensor([1.0])
    for marks in ({"static_argnames": "n"}, {"static_argnums": 1}):
        assert nx.compile(f, [template, 2], **marks)(x).tolist() == [1.0, 1.0]
        assert nx.jit_apply(f, x, 2, **marks).tolist() == [1.0, 1.0]
        assert nx.jit_partitions(f, [[x, 2]], **marks)[0].tolist() == [1.0, 1.0]
    for marks in ({"static_argnames": "n"}, {"static_argnums": 2}):
        step = lambda chunk, state, n: (nx.tile(chunk, n), state)  # noqa: E731
        stream = nx.stream(step, template, 0.0, 3, **marks)
        assert [y.tolist() for y in stream.over([x])] == [[1.0] * 3]
    mesh = nx.Mesh(x=2)
    with pytest.raises(nx.ArgumentError, match="shard_jit: donate_argnums: not supported"):
        nx.shard_jit(lambda x: x, mesh, input_shardings=[{0: [0]}], donate_argnums=0)


@pytest.mark.parametrize("marks", [{"donate_argnums": 0}, {"donate_argnames": "x"}])
def test_compiled_functions_accept_donated_arguments(marks):
    f = nx.compile(lambda x: x + 1, [nx.template((3,))], compiler="xla", **marks)
    x = nx.jit(lambda: nx.ones(3), compiler="xla")()
    assert f(x).tolist() == [2.0] * 3
    assert x.is_released()


@pytest.mark.parametrize("marks", [{"donate_argnums": 1}, {"donate_argnames": "state"}])
def test_streams_accept_donated_states(marks):
    step = lambda chunk, state: (chunk + 1, state + chunk)  # noqa: E731
    stream = nx.stream(step, nx.template((3,)), nx.zeros(3), compiler="xla", **marks)
    assert [y.tolist() for y in stream.over([nx.ones(3)] * 2)] == [[2.0] * 3] * 2
    assert stream.done().tolist() == [2.0] * 3
