"""Compilers written in Python: each is identified by the object, and its methods are called."""

import pytest

import nxla as nx


class Adding(nx.Compiler):
    """Computes the expression plus a constant of the compiler."""

    name = "adding"

    def __init__(self, number):
        self.number = number

    def compile(self, expression, options):
        return lambda inputs: [expression.run(*inputs)[0] + self.number]


def test_two_compilers_of_one_name_are_two():
    f1 = nx.jit(lambda x: x * 2, compiler=Adding(1))
    f2 = nx.jit(lambda x: x * 2, compiler=Adding(10))
    assert f1(3).item() == 7
    assert f2(3).item() == 16
    assert f1(3).item() == 7


@pytest.mark.parametrize("name", ["xla", "evaluator"])
def test_a_compiler_with_the_name_of_another_does_not_replace_it(name):
    own = Adding(100)
    own.name = name
    assert nx.jit(lambda x: x * 2, compiler=own)(3).item() == 106
    assert nx.jit(lambda x: x * 2, compiler=name)(3).item() == 6
    with pytest.raises(
        nx.OptionError, match="must not be empty or the name of a built-in compiler"
    ):
        nx.register_compiler(own)


def test_a_compiler_in_the_defaults_jits_and_streams_in_its_own_way():
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


def test_a_class_with_nothing_but_a_name_and_compile_is_a_compiler():
    class Least:
        name = "least"

        def compile(self, expression, options):
            return lambda inputs: expression.run(*inputs)

    assert nx.jit(lambda x: x + 1, compiler=Least())(1).item() == 2
    assert nx.to_backend(compiler=Least()) == "host"
    assert len(nx.partitions_options(compiler=Least())) == 1


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


def test_equal_programs_of_statics_with_equal_hashes_are_kept_side_by_side():
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


def test_methods_of_a_compiler_that_is_no_subclass_are_called():
    duck = Duck()
    assert nx.jit(lambda x: x + 1, compiler=duck)(1) == 2
    template = nx.template((), "f32")
    assert nx.stream(lambda x, s: (x, s), template, 0.0, compiler=duck) == "streamed"
    assert duck.calls == [("jit", ["compiler"]), ("stream", (), None)]


def test_the_stream_of_a_compiler_gets_constants_and_bound():
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
