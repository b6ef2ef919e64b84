"""Arguments by name for `nx.compile`, and options for `nx.debug_expr`."""

import dataclasses
import functools

import pytest

import nxla as nx


def test_keyword_arguments_are_fixed(compiler):
    x = nx.tensor([[1.0, 2.0], [3.0, 4.0]])
    f = nx.compile(nx.sum, [nx.template((2, 2))], axis=1, compiler=compiler)
    assert f(x).tolist() == [3.0, 7.0]

    def scaled(x, factor=1.0, *, shift=0, names=()):
        return x * factor + shift + len(names)

    f = nx.compile(scaled, [nx.template((2, 2))], shift=2, names=["a", "b"], compiler=compiler)
    assert f(x).tolist() == [[5.0, 6.0], [7.0, 8.0]]
    f = nx.compile(scaled, [nx.template((2, 2)), nx.template(())], shift=1, compiler=compiler)
    assert f(x, 10.0).tolist() == [[11.0, 21.0], [31.0, 41.0]]
    jitted = nx.jit(scaled, static_argnames="names")
    assert nx.compile(jitted, [nx.template((2, 2))], names=("a",))(x).tolist()[0] == [2.0, 3.0]


def test_template_keywords_and_unknown_options_raise():
    with pytest.raises(nx.ArgumentError, match="shift: a keyword argument must not"):
        nx.compile(lambda x, shift: x + shift, [nx.template(())], shift=nx.template(()))
    # A keyword that is not an argument is treated as an option, and this option does not exist.
    with pytest.raises(nx.OptionError):
        nx.compile(lambda x: x, [nx.template(())], shift=1)


def test_options_among_templates_raise():
    for function in (lambda x: x, nx.jit(lambda x: x)):
        with pytest.raises(nx.ArgumentError, match=r"nx.compile\(.*, compiler=.xla.\)"):
            nx.compile(function, [nx.template((3,)), {"compiler": "xla"}])
    # A dict is an argument if the function has a parameter for it.
    f = nx.compile(lambda x, config: x, [nx.template((3,)), {"compiler": "xla"}])
    assert f(nx.ones(3)).shape == (3,)


def test_debug_expr_accepts_options():
    def raised(x, power):
        return x if power == 1 else x**power

    one = nx.debug_expr(raised, static_argnums=1)(nx.template((2,)), 1)
    assert len(one.lines()) == 1
    named = nx.debug_expr(raised, static_argnames="power")(nx.template((2,)), power=3)
    assert "pow" in str(named)
    plain = nx.debug_expr(lambda x, y: x**y, compiler="evaluator")(nx.template((2,)), 2)
    assert len(plain.inputs) == 2
    with pytest.raises(nx.OptionError):
        nx.debug_expr(raised, compiler="nothing like it")
    with pytest.raises(nx.ArgumentError, match="static_argnames: must be arguments of raised"):
        nx.debug_expr(raised, static_argnames="exponent")


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_options_of_package_functions_are_static(compiler):
    x = nx.reshape(nx.iota(6, dtype="f32"), (2, 3))
    assert nx.jit(nx.sum, compiler=compiler)(x, axis=1).tolist() == [3.0, 12.0]
    assert nx.jit(nx.sum, compiler=compiler)(x, axis=(0, 1), keepdims=True).tolist() == [[15.0]]
    assert nx.jit(nx.sum, compiler=compiler)(x, axis=None).item() == 15.0
    assert (
        nx.jit(nx.roll, compiler=compiler)(x, shift=1, axis=1).tolist() == nx.roll(x, 1, 1).tolist()
    )
    assert nx.jit(nx.astype, compiler=compiler)(x, "s32").dtype == "s32"
    total = nx.jit(nx.sum, compiler=compiler)
    assert [total(x, axis=axis).shape for axis in (0, 1, 0)] == [(3,), (2,), (3,)]


def test_traced_axis_error_suggests_static_argnames():
    f = nx.jit(lambda x, axis: nx.sum(x, axis=axis))
    with pytest.raises(nx.ArgumentError, match="static_argnames"):
        f(nx.ones((2, 3)), axis=1)
    g = nx.jit(lambda x, axis: nx.sum(x, axis=axis), static_argnames="axis")
    assert g(nx.ones((2, 3)), axis=1).tolist() == [3.0, 3.0]


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object


@dataclasses.dataclass
class Mutable:
    value: object


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x,
        lambda x: (x,),
        lambda x: [x],
        lambda x: {"x": x},
        lambda x: {1: (x,)},
        Frozen,
        Mutable,
        lambda x: Frozen([Mutable(x)]),
    ],
)
def test_distinguishable_static_scalars_are_traced_separately(wrap):
    traced = []

    @functools.partial(nx.jit, static_argnames="static")
    def run(x, static):
        traced.append(static)
        return x

    numbers = [0.0, -0.0, 0, False, 1.0, 1, True, complex(0, -0.0), complex(-0.0, 0), 0j]
    for _ in range(2):
        for number in numbers:
            run(1.0, static=wrap(number))
    assert repr(traced) == repr([wrap(number) for number in numbers])


def test_static_dataclasses_are_compared_by_fields():
    run = nx.jit(lambda x, static: x * static.value[0], static_argnames="static")
    static = Mutable([2.0])
    assert run(3.0, static=static).item() == run(3.0, static=Mutable([2.0])).item() == 6.0
    assert run.cache_report()["misses"] == 1
    static.value[0] = 4.0
    assert run(3.0, static=static).item() == 12.0


@dataclasses.dataclass
class Scale:
    factor: float

    def apply(self, x):
        return x * self.factor


class Plain:
    pass


@pytest.mark.parametrize("static", [(), (0,)])
def test_function_arguments_are_compared_by_contents(static):
    run = nx.jit(lambda function, x: function(x), static_argnums=static)
    scale = Scale(2.0)
    factors = [3.0]
    keyword = {"factor": 5.0}
    functions = {
        "a method": scale.apply,
        "a part of a partial": functools.partial(Scale.apply, scale),
        "a list": functools.partial(lambda factors, x: x * factors[0], factors),
        "a keyword": functools.partial(lambda x, options: x * options["factor"], options=keyword),
    }
    for expected in ([2.0, 2.0, 3.0, 5.0], [7.0, 7.0, 8.0, 9.0]):
        for _ in range(2):
            found = [run(function, 1.0).item() for function in functions.values()]
            assert found == expected, list(functions)
        scale.factor, factors[0], keyword["factor"] = 7.0, 8.0, 9.0
    if not static:
        for wrong in (Plain(), [Plain()], {"a": (Plain(),)}):
            with pytest.raises(nx.ArgumentError, match=r"args\[0\].* compared by identity"):
                run(functools.partial(lambda factors, x: x, wrong), 1.0)
    bound = functools.partial(lambda a, b, x: a * b[0] * x, nx.tensor(2.0), (3.0,))
    assert run(bound, 4.0).item() == 24.0


class Options:
    def __init__(self, weight, options):
        self.weight, self.options = weight, options


nx.register_container(
    Options,
    lambda x: ((x.weight,), x.options),
    lambda options, children: Options(*children, options),
)


def test_distinguishable_container_parts_are_traced_separately():
    """The parts are static data of a class, keys of dicts, and unnamed static values."""
    traced = []

    @nx.jit
    def run(x):
        traced.append(x)
        return 1.0

    for wrap in (lambda x: Options(1.0, (x,)), lambda x: {x: 1.0}, lambda x: frozenset([x])):
        traced.clear()
        for number in [0.0, -0.0, 0, False, 0.0, False]:
            run(wrap(number))
        assert len(traced) == 4
