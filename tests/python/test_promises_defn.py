"""Promises of numerical functions: calls, traces and transformations."""

import dataclasses
import inspect
import re
from collections import namedtuple

import numpy as np
import pytest

import nxla as nx
from where import DEVICE


def line_of(function, text):
    """Return the number of the line of a function that contains a string."""
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


# --- boolean conversion ---


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "complex64"])
def test_nonzero_values_are_true(compiler, dtype):
    x = nx.astype(nx.tensor([0, 1, 3]), dtype)
    logic = nx.jit(
        lambda x: (nx.logical_and(x, 1), nx.logical_or(x, 0), nx.logical_not(x)), compiler=compiler
    )
    both, either, none = logic(x)
    expected = (np.asarray(x) != 0).tolist()
    assert both.tolist() == either.tolist() == expected
    assert none.tolist() == [not t for t in expected]
    assert both.dtype == nx.bool


def test_branch_and_loop_predicates_accept_numbers(compiler):
    choose = nx.jit(lambda p: nx.cond(p, lambda: 1, lambda: 2), compiler=compiler)
    assert [choose(p).item() for p in (0, 3, -1.5, 0.0, True, False)] == [2, 1, 1, 2, 1, 2]
    count = nx.jit(lambda n: nx.while_loop(lambda s: s, lambda s: s - 1, n), compiler=compiler)
    assert count(5).item() == 0
    with pytest.raises(nx.ShapeError, match="scalar"):
        choose(nx.ones(2))


def test_comparisons_return_booleans():
    f = nx.jit(lambda x: (x > 1, x == 2, (x > 1) & (x < 3)))
    assert [part.tolist() for part in f(nx.tensor([1, 2, 3]))] == [
        [False, True, True],
        [False, True, False],
        [False, True, False],
    ]


def uses_if(x):
    if x > 0:
        return x
    return -x


def uses_and(x):
    return x > 0 and x < 3


def uses_while(x):
    while x < 10:
        x = x * 2
    return x


def uses_not(x):
    return not x


@pytest.mark.parametrize(
    ("function", "text", "replacement"),
    [
        (uses_if, "if x > 0", "nx.cond"),
        (uses_and, "and x < 3", "nx.logical_and"),
        (uses_while, "while x < 10", "nx.while_loop"),
        (uses_not, "not x", "nx.logical_not"),
    ],
)
def test_python_control_flow_error_names_line_and_function(function, text, replacement):
    with pytest.raises(nx.TraceError) as caught:
        nx.jit(function)(1.0)
    assert replacement in str(caught.value)
    assert f"test_promises_defn.py:{line_of(function, text)}" in str(caught.value)


@pytest.mark.parametrize("convert", [int, float, range, np.asarray, [1, 2].__getitem__])
def test_data_of_traced_values_is_unavailable(convert):
    with pytest.raises(nx.TraceError, match="known only when the function runs"):
        nx.jit(lambda x: convert(x))(1)


# --- compiling on the first call ---


def test_the_default_compiler_is_the_evaluator():
    assert nx.to_backend() == "host"
    assert nx.jit(lambda x: x + 1)(1.0).device == "host"


def test_functions_are_traced_once_for_each_type():
    traced = []

    @nx.jit
    def f(x):
        traced.append(x.shape)
        return x * 2

    for _ in range(3):
        f(nx.ones(2))
    f(nx.ones(3))
    f(nx.ones(2, dtype="f64"))
    f(nx.ones(2))
    assert len(traced) == 3


def test_axis_names_are_part_of_the_cache_key():
    seen = []

    @nx.jit
    def f(x):
        seen.append(x.names)
        return nx.sum(x, axis="rows") if "rows" in x.names else nx.sum(x)

    x = nx.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert f(x).item() == 10.0
    assert f(nx.rename(x, ["rows", None])).tolist() == [4.0, 6.0]
    assert f(nx.rename(x, [None, "rows"])).tolist() == [3.0, 7.0]
    assert f(nx.rename(x, ["rows", None])).tolist() == [4.0, 6.0]
    assert seen == [[None, None], ["rows", None], [None, "rows"]]


def test_jit_does_not_trace_before_the_first_call():
    traced = []
    nx.jit(lambda x: traced.append(x))
    assert traced == []


# --- arguments ---


def test_scalars_become_tensors_of_default_dtypes():
    types = nx.jit(lambda *xs: tuple(x + x for x in xs))
    results = types(1, 1.5, 1j, True, np.float64(1.5), np.int8([1]), nx.tensor(1, "u8"))
    expected = ["s32", "f32", "c64", "u8", "f64", "s8", "u8"]
    assert [repr(r.dtype) for r in results] == expected


def test_scalar_values_do_not_retrace():
    f = nx.jit(lambda x, y: x * y)
    assert [f(n, 2.0).item() for n in range(5)] == [0, 2, 4, 6, 8]
    assert f.cache_report()["misses"] == 1


Pair = namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass
class Layer:
    weight: object
    bias: object = 0.0


class Registered:
    def __init__(self, value, label):
        self.value = value
        self.label = label


nx.register_container(
    Registered, lambda r: ([r.value], r.label), lambda label, children: Registered(*children, label)
)


@pytest.mark.parametrize(
    ("container", "read"),
    [
        ((1, 2.0), lambda c: c[0]),
        ([1, [2]], lambda c: c[0]),
        ({"a": 1, "b": {"c": 2}}, lambda c: c["a"]),
        ({3: 1, (4, 5): 2}, lambda c: c[3]),
        (Pair(1, 2), lambda c: c.left),
        (Layer(1, [2]), lambda c: c.weight),
        (Registered(1, "one"), lambda c: c.value),
        ({"x": [Layer(Pair(1, "text"), None)]}, lambda c: c["x"][0].weight.left),
    ],
)
def test_container_arguments_keep_their_structure(compiler, container, read):
    f = nx.jit(lambda c: (read(c) + 1, c), compiler=compiler)
    more, back = f(container)
    assert more.item() == 2
    assert type(back) is type(container)
    assert read(back).item() == 1
    assert nx.tree.flatten(back)[1] == nx.tree.flatten(container)[1]
    slope = nx.grad(lambda c: read(c) * 2.0)(nx.tree.map(float, container))
    assert read(slope).item() == 2.0


def test_dict_key_order_does_not_matter():
    f = nx.jit(lambda d: d["a"] - d["b"])
    assert f({"a": 3, "b": 1}).item() == f({"b": 1, "a": 3}).item() == 2
    assert f.cache_report()["misses"] == 1


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ({"layer3": Layer({1}, 0.0)}, r"argument 0\['layer3'\]\.weight"),
        ([1, (2, {3})], r"argument 0\[1\]\[1\]"),
        (Pair(1, {2}), r"argument 0\[1\]|argument 0\.right"),
    ],
)
def test_errors_name_the_path_of_invalid_arguments(argument, path):
    with pytest.raises(nx.ArgumentError, match=path):
        nx.jit(lambda x: 1.0)(argument)


def test_errors_name_the_path_of_invalid_results():
    with pytest.raises(nx.ArgumentError, match=r"result\['a'\]\[1\]: must be .*; got a set"):
        nx.jit(lambda x: {"a": [x, {1}]})(1.0)


def test_functions_strings_and_none_are_static():
    traced = []

    @nx.jit
    def apply(function, x, mode=None):
        traced.append(mode)
        return function(x) if mode is None else x

    assert apply(nx.sin, 0.0).item() == 0.0
    assert apply(nx.cos, 0.0).item() == 1.0
    assert apply(nx.cos, 0.0).item() == 1.0
    assert apply(nx.cos, 5.0, mode="same").item() == 5.0
    assert traced == [None, None, "same"]


def test_static_argument_values_are_traced_separately():
    traced = []

    def power(x, n, *, negate=False):
        traced.append((n, negate))
        return -(x**n) if negate else x**n

    by_name = nx.jit(power, static_argnames=("n", "negate"))
    assert by_name(2.0, n=3).item() == 8.0
    assert by_name(2.0, 3).item() == 8.0
    assert by_name(2.0, 3, negate=True).item() == -8.0
    assert by_name(3.0, 3, negate=True).item() == -27.0
    assert traced == [(3, False), (3, False), (3, True)]
    by_position = nx.jit(power, static_argnums=1)
    assert by_position(2.0, 2).item() == 4.0
    with pytest.raises(nx.ArgumentError, match="hashable"):
        by_name(2.0, n=np.ones(3))
    with pytest.raises(
        nx.ArgumentError, match=r"must be arguments of power \(x, n, negate\); got 'm'"
    ):
        nx.jit(power, static_argnames="m")


def test_static_one_and_true_are_distinct():
    f = nx.jit(lambda x, flag: x if flag is True else -x, static_argnames="flag")
    assert f(1.0, flag=True).item() == 1.0
    assert f(1.0, flag=1).item() == -1.0


def test_defaults_and_keywords_work_as_in_python():
    f = nx.jit(lambda x, y=2.0, *, z=3.0: x * y + z)
    assert f(1.0).item() == 5.0
    assert f(1.0, 4.0).item() == 7.0
    assert f(1.0, z=1.0, y=5.0).item() == 6.0
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(1.0, w=1.0)


def test_forced_call_rejects_traced_arguments():
    def outer(x):
        return nx.jit(lambda y: y + 1, on_conflict="force")(x)

    with pytest.raises(nx.TraceError, match="traced value"):
        nx.jit(outer)(1.0)


# --- unused values ---


def test_unused_inputs_are_not_transferred():
    f = nx.jit(lambda used, rest: used["x"] + 1, compiler="xla")
    on_device = nx.jit(lambda x: x + 1, compiler="xla")(nx.ones(4))
    assert f({"x": 1.0}, on_device).item() == 2.0
    # Any read of this tensor would fail.
    on_device.deallocate()
    assert f({"x": 2.0}, on_device).item() == 3.0
    with pytest.raises(nx.NxlaError):
        nx.jit(lambda x: x + 1, compiler="xla")(on_device)


def test_unused_values_are_not_computed():
    def f(x):
        nx.sin(x)
        return {"needed": x + 1}["needed"]

    assert nx.debug_expr(f)(1.0).op_counts() == {"add": 1, "constant": 1, "parameter": 1}


def test_hooks_of_unused_values_run(compiler):
    seen = []

    def f(x):
        nx.hook(x * 10, lambda v: seen.append(v.item()))
        return x

    assert nx.jit(f, compiler=compiler)(2).item() == 2
    assert seen == [20]


# --- compiling for templates ---


def test_compile_fixes_static_arguments():
    def f(x, mode, y, function):
        return function(x * y) if mode == "double" else x

    compiled = nx.compile(f, [nx.template((2,)), "double", 0, nx.negative])
    assert compiled(nx.ones(2), 3).tolist() == [-3.0, -3.0]
    assert repr(compiled) == "<nxla function f compiled for (f32[2], s32)>"
    with pytest.raises(nx.ArgumentError, match="takes 2 arguments; got 3"):
        compiled(nx.ones(2), "double", 3)


def test_compiled_function_lists_all_type_mismatches():
    params = {"w": nx.template((2, 3)), "b": [nx.template((3,)), nx.template((), "s32")]}
    compiled = nx.compile(lambda p, x: p["w"] @ x, [params, nx.template((3,))])
    wrong = {"w": nx.ones((3, 2)), "b": [nx.ones(3, dtype="f64"), 1]}
    with pytest.raises(nx.ArgumentError) as caught:
        compiled(wrong, nx.ones(4))
    text = str(caught.value)
    assert "p['w']: must be f32[2][3]; got f32[3][2]" in text
    assert "p['b'][0]: must be f32[3]; got f64[3]" in text
    assert "x: must be f32[3]; got f32[4]" in text
    assert "['b'][1]" not in text


def test_compiled_function_names_structure_mismatch():
    params = {"w": nx.template((2,)), "deep": (nx.template(()), {"k": nx.template(())})}
    compiled = nx.compile(lambda p: p["w"], [params])
    with pytest.raises(nx.ArgumentError) as caught:
        compiled({"w": nx.ones(2), "deep": (1.0, {"k": 1.0, "more": 2.0})})
    text = str(caught.value)
    expected = "p['deep'][1]: must be {'k': *}; got {'k': *, 'more': *}"
    assert expected in text
    with pytest.raises(nx.ArgumentError, match=r"p: must be \{.*; got a tensor"):
        compiled(nx.ones(2))


def test_missing_axis_names_match_any_name():
    compiled = nx.compile(lambda x: x + 1, [nx.template((2,), names=["rows"])])
    assert compiled(nx.ones(2)).tolist() == [2.0, 2.0]
    assert compiled(nx.rename(nx.ones(2), ["rows"])).tolist() == [2.0, 2.0]
    with pytest.raises(nx.ArgumentError, match="columns"):
        compiled(nx.rename(nx.ones(2), ["columns"]))


def test_compiled_function_in_a_trace_raises():
    compiled = nx.compile(lambda x: x + 1, [nx.template(())])
    with pytest.raises(nx.NxlaError, match="must not be called in a trace"):
        nx.jit(lambda x: compiled(x))(1.0)


# --- calls inside of traces ---


def test_jitted_function_is_inlined_in_a_trace():
    inner = nx.jit(lambda x: nx.sin(x))
    expression = nx.debug_expr(lambda x: inner(x) * inner(x))(1.0)
    assert expression.op_counts() == {"multiply": 1, "parameter": 1, "sin": 1}
    assert nx.grad(inner)(0.0).item() == 1.0
    assert nx.vmap(nx.jit(nx.grad(inner)))(nx.zeros(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "options",
    [{"compiler": "evaluator"}, {"hooks": {"a": print}}, {"stages": "auto"}, {"device": "host"}],
    ids=lambda options: next(iter(options)),
)
def test_jitted_function_with_options_raises_in_a_trace(options):
    inner = nx.jit(lambda x: x * 2, **options)
    with pytest.raises(
        RuntimeError,
        match=r"must not be called in a trace, because it has its own options.*on_conflict",
    ):
        nx.jit(lambda x: inner(x))(1.0)


def test_on_conflict_raise_raises():
    inner = nx.jit(lambda x: x * 2, on_conflict="raise")
    with pytest.raises(RuntimeError, match="on_conflict"):
        nx.jit(lambda x: inner(x))(1.0)


def test_on_conflict_force_runs_separately():
    counted = []
    inner = nx.jit(lambda x: (counted.append(type(x)), x * 2)[1], on_conflict="force")

    def outer(x):
        factor = inner(3.0)
        assert isinstance(factor, nx.Tensor)
        return x * factor

    assert nx.jit(outer)(2.0).item() == 12.0
    assert nx.debug_expr(outer)(2.0).op_counts() == {"constant": 1, "multiply": 1, "parameter": 1}


def test_on_conflict_reuse_inlines():
    inner = nx.jit(lambda x: nx.sin(x), on_conflict="reuse", compiler="xla")
    expression = nx.debug_expr(lambda x: inner(x) * 2)(1.0)
    assert expression.op_counts()["sin"] == 1
    assert nx.jit(lambda x: inner(x) * 2)(0.5).device == "host"
    with pytest.raises(nx.OptionError, match="on_conflict: must be"):
        nx.jit(lambda x: x, on_conflict="maybe")


def test_defn_is_inlined_and_differentiated_through():
    @nx.defn
    def square(x):
        return x * x

    @nx.defn
    def twice(x, function=square):
        return function(function(x))

    assert twice(2.0).item() == 16.0
    assert nx.grad(twice)(2.0).item() == 32.0
    assert nx.debug_expr(twice)(2.0).op_counts() == {"multiply": 2, "parameter": 1}


def test_python_functions_run_while_tracing():
    def choose(x, *, rank):
        match rank:
            case 1:
                return nx.sum(x)
            case _:
                return nx.sum(x, axis=-1)

    f = nx.jit(lambda x: choose(x, rank=x.ndim))
    assert f(nx.ones(3)).item() == 3.0
    assert f(nx.ones((2, 3))).tolist() == [3.0, 3.0]


def test_static_recursion_is_unrolled():
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    f = nx.jit(power, static_argnames="n")
    assert f(2.0, n=5).item() == 32.0
    with pytest.raises(RecursionError):
        nx.jit(lambda x: power(x, 0.5))(1.0)
    assert f(2.0, n=4).item() == 16.0


def test_jit_apply_and_debug_expr_apply(compiler):
    assert nx.jit_apply(lambda x, y: x - y, 3.0, 1.0, compiler=compiler).item() == 2.0
    expression = nx.debug_expr_apply(lambda x: nx.sin(-x), nx.template((), "s32"))
    assert expression.lines()[-1] == "c = sin b       f32"


def test_debug_expr_works_inside_of_a_trace():
    texts = []

    def f(x):
        texts.append(nx.debug_expr(nx.sin)(nx.template(())).lines()[-1])
        return x

    assert nx.jit(f)(1.0).item() == 1.0
    assert texts == ["b = sin a       f32"]


# --- options ---


def test_default_options_return_previous_options():
    assert "compiler" not in nx.default_options()
    before = nx.default_options(compiler="xla")
    try:
        assert "compiler" not in before
        second = nx.default_options(compiler="evaluator")
        assert second["compiler"] == "xla"
        assert nx.default_options()["compiler"] == "evaluator"
    finally:
        nx.default_options(before)
    assert nx.default_options() == before


def test_thread_options_override_global_options():
    before = nx.global_default_options(compiler="xla")
    try:
        assert "compiler" not in before
        assert nx.default_options()["compiler"] == "xla"
        assert nx.jit(lambda x: x + 1)(1.0).device != "host"
        with nx.default_options(compiler="evaluator"):
            assert nx.jit(lambda x: x + 1)(1.0).device == "host"
    finally:
        nx.global_default_options(before)
    assert "compiler" not in nx.default_options()


def test_call_options_override_default_options():
    with nx.default_options(compiler="xla"):
        assert nx.jit(lambda x: x + 1, compiler="evaluator")(1.0).device == "host"
        assert nx.jit_apply(lambda x: x + 1, 1.0).device != "host"
        stream = nx.stream(lambda x, s: (x + s, s), nx.template(()), 1.0)
        stream.send(2.0)
        assert stream.recv().device != "host"
        stream.done()


def test_hooks_are_found_by_name_in_the_options(compiler):
    seen = []
    f = lambda x: nx.hook(x * 2, "doubled")  # noqa: E731
    assert nx.jit(f, compiler=compiler)(1).item() == 2
    hooks = {"doubled": lambda v: seen.append(v.item())}
    assert nx.jit(f, compiler=compiler, hooks=hooks)(2).item() == 4
    with nx.default_options(hooks=hooks):
        assert nx.jit(f, compiler=compiler)(3).item() == 6
    assert seen == [4, 6]
    with pytest.raises(nx.ArgumentError, match="must be a dict"):
        nx.jit(f, hooks=[print])


def test_to_backend_follows_the_options():
    assert nx.to_backend(compiler="xla") == DEVICE
    with nx.default_options(compiler="xla"):
        assert nx.to_backend() == DEVICE
    with pytest.raises(nx.OptionError, match="compiler: name: must be one of"):
        nx.to_backend(compiler="none")


# --- gradients ---


def test_gradient_of_a_vector_is_of_its_sum(compiler):
    f = nx.jit(nx.grad(lambda x: x**2), compiler=compiler)
    assert f(nx.tensor([1.0, 2.0, 3.0])).tolist() == [2.0, 4.0, 6.0]


def test_value_and_grad_with_auxiliary_results():
    def loss(w, x):
        guess = w * x
        return nx.sum(guess), {"guess": guess}

    (value, more), slope = nx.value_and_grad(loss, has_aux=True)(2.0, nx.tensor([1.0, 2.0]))
    assert (value.item(), more["guess"].tolist(), slope.item()) == (6.0, [2.0, 4.0], 3.0)
    slope, more = nx.grad(loss, has_aux=True)(2.0, nx.tensor([1.0, 2.0]))
    assert (slope.item(), more["guess"].tolist()) == (3.0, [2.0, 4.0])
    with pytest.raises(nx.ArgumentError, match="must return"):
        nx.grad(lambda x: x, has_aux=True)(1.0)


def test_gradients_for_several_arguments():
    f = lambda x, y, z: x * y * z  # noqa: E731
    assert [g.item() for g in nx.grad(f, (0, 2))(2.0, 3.0, 5.0)] == [15.0, 6.0]
    assert nx.grad(f, -1)(2.0, 3.0, 5.0).item() == 6.0
    with pytest.raises(nx.ArgumentError, match="argnums: must be from"):
        nx.grad(f, 3)(1.0, 2.0, 3.0)


def test_gradients_inside_and_outside_of_traces(compiler):
    f = lambda x: nx.sin(x) * x  # noqa: E731
    outside = nx.grad(f)(0.7).item()
    inside = nx.jit(lambda x: nx.grad(f)(x), compiler=compiler)(0.7).item()
    assert outside == pytest.approx(inside, rel=1e-6)


# --- functions are not modified ---


def documented(x: nx.Tensor, scale: float = 2.0) -> nx.Tensor:
    """Scale a tensor."""
    return x * scale


@pytest.mark.parametrize("transform", [nx.jit, nx.defn, nx.grad, nx.value_and_grad])
def test_transformed_functions_keep_name_docstring_and_signature(transform):
    transformed = transform(documented)
    assert transformed.__name__ == "documented"
    assert transformed.__doc__ == "Scale a tensor."
    assert inspect.signature(transformed) == inspect.signature(documented)
    assert transformed.__wrapped__ is not None


def test_methods_can_be_jitted():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def __hash__(self):
            return hash(self.factor)

        def __eq__(self, other):
            return self.factor == other.factor

        @nx.jit
        def apply(self, x):
            return x * self.factor

    assert Scale(3).apply(2.0).item() == 6.0
    assert Scale(4).apply(2.0).item() == 8.0


def test_errors_name_the_line_of_the_user():
    def f(x, y):
        return nx.dot(
            x, y
        )  # fmt: skip

    with pytest.raises(nx.ShapeError) as caught:
        nx.jit(f)(nx.ones((2, 3)), nx.ones((4, 5)))
    assert re.search(r"test_promises_defn\.py:\d+", str(caught.value))


def test_function_types_in_annotations():
    assert nx.Compiled[nx.Tensor].__origin__ is nx.Compiled
    assert nx.Function[[nx.Tensor], nx.Tensor].__args__ == ([nx.Tensor], nx.Tensor)


# --- lazy containers ---


class Table:
    """A container that computes its columns on access."""

    def __init__(self, columns, read):
        self.columns, self.read = columns, read

    def __getitem__(self, name):
        return self.columns[name]


def flatten_table(table):
    names = tuple(sorted(table.columns))
    lazy = [
        column
        if table.read is None or not isinstance(column, nx.Template)
        else nx.Lazy(column, lambda name=name: table.read(name))
        for name, column in sorted(table.columns.items())
    ]
    return lazy, names


def unflatten_table(names, columns):
    return Table(dict(zip(names, columns, strict=True)), None)


nx.register_container(Table, flatten_table, unflatten_table)


def lazy_table(produced):
    data = {"a": nx.tensor([1.0, 2.0]), "b": nx.tensor([3.0, 4.0]), "c": nx.ones((1000, 1000))}

    def read(name):
        produced.append(name)
        return data[name]

    return Table({name: nx.template(x.shape, x.dtype) for name, x in data.items()}, read)


def test_lazy_container_produces_only_used_leaves(compiler):
    produced = []
    f = nx.jit(lambda table, scale: nx.sum(table["b"]) * scale, compiler=compiler)
    for scale in (1.0, 2.0):
        assert f(lazy_table(produced), scale).item() == 7.0 * scale
    assert produced == ["b", "b"]
    produced.clear()
    compiled = nx.compile(lambda table: table["a"] + 1, [lazy_table(produced)], compiler=compiler)
    assert produced == []
    assert compiled(lazy_table(produced)).tolist() == [2.0, 3.0]
    assert produced == ["a"]
    produced.clear()
    expression = nx.debug_expr(lambda table: table["a"] * table["b"])(lazy_table(produced))
    assert produced == []
    assert expression.run(lazy_table(produced), compiler=compiler).tolist() == [3.0, 8.0]
    assert produced == ["a", "b"]
    produced.clear()
    slopes = nx.jit(nx.grad(lambda t: nx.sum(t["a"] ** 2)), compiler=compiler)(
        Table({"a": nx.template((2,))}, lambda name: nx.tensor([1.0, 2.0]))
    )
    assert slopes["a"].tolist() == [2.0, 4.0]


def test_unused_array_objects_are_not_read(compiler):
    class Dataset:
        shape, dtype = (2,), np.dtype("float32")

        def __init__(self, data):
            self.data, self.reads = data, 0

        def __array__(self, dtype=None, copy=None):
            self.reads += 1
            return np.asarray(self.data, self.dtype)

    used, unused = Dataset([1, 2]), Dataset([3, 4])
    f = nx.jit(lambda x, y: x["a"] + 1, compiler=compiler)
    for reads in (1, 2):
        assert f({"a": used, "b": unused}, unused).tolist() == [2.0, 3.0]
        assert (used.reads, unused.reads) == (reads, 0)
    nx.debug_expr(lambda x: x)(unused)
    nx.compile(lambda x: x, [unused], compiler=compiler)
    assert unused.reads == 0
    assert nx.sin(unused).shape == (2,)
    assert unused.reads == 1
    wrong = Dataset([1, 2, 3])
    with pytest.raises(nx.ArgumentError, match=r"must be f32\[2\].*got f32\[3\]"):
        f({"a": wrong, "b": unused}, unused)


def test_lazy_tensor_checks_its_value(compiler):
    f = nx.jit(lambda x: x + 1, compiler=compiler)
    assert f(nx.Lazy(nx.template(()), lambda: 2)).item() == 3.0
    assert nx.sin(nx.Lazy(nx.template(()), lambda: 0.0)).item() == 0.0
    lazy = nx.Lazy(nx.template((2,), "s16"), lambda: nx.tensor([1, 2], dtype="s16"))
    assert nx.tensor(lazy).tolist() == nx.asarray(lazy).tolist() == [1, 2]
    assert nx.device_put({"x": lazy}, "host")["x"].dtype == "s16"
    np.testing.assert_array_equal(np.asarray(lazy), [1, 2])
    with pytest.raises(nx.ArgumentError, match=r"must be f32\[2\].*got f32\[3\]"):
        f(nx.Lazy(nx.template((2,)), lambda: nx.ones(3)))
    with pytest.raises(ZeroDivisionError):
        f(nx.Lazy(nx.template((2,)), lambda: 1 / 0))
    with pytest.raises(nx.ArgumentError, match="produce: must be callable"):
        nx.Lazy(nx.template(()), 3)


# --- options next to templates, conflicts ---


def test_compile_accepts_options_among_templates(compiler):
    x = nx.ones((2, 3))
    listed = nx.compile(nx.sum, [nx.template((2, 3)), {"axis": 1}], compiler=compiler)
    assert listed(x).tolist() == [3.0, 3.0]

    def norm(x, *, power=2, axis=None):
        return nx.sum(x**power, axis=axis)

    listed = nx.compile(norm, [nx.template((2, 3)), {"axis": 0, "power": 1}], compiler=compiler)
    assert listed(x).tolist() == [2.0, 2.0, 2.0]
    # A dict of tensors is an argument for all keys.
    pair = nx.compile(
        lambda x, axis: x + axis["axis"], [nx.template(()), {"axis": nx.template(())}],
        compiler=compiler,
    )  # fmt: skip
    assert pair(1.0, {"axis": 2.0}).item() == 3.0
    with pytest.raises(
        nx.ArgumentError, match=r"must be a list.*nx.compile\(function, \[template\]\)"
    ):
        nx.compile(nx.sum, nx.template((3,)))
    with pytest.raises(nx.ArgumentError, match="must be a list"):
        nx.compile(nx.sum, {"x": nx.template((3,))})


def test_on_conflict_has_three_values_and_a_default(compiler):
    for options, joins in [({}, True), ({"compiler": compiler}, False)]:
        inner = nx.jit(lambda x: x * 2, **options)
        if joins:
            assert nx.jit(lambda x, f=inner: f(x) + 1)(3.0).item() == 7.0
            continue
        with pytest.raises(RuntimeError, match="on_conflict"):
            nx.jit(lambda x, f=inner: f(x) + 1)(3.0)
    force = nx.jit(lambda x: x * 2, on_conflict="force", compiler=compiler)
    assert nx.jit(lambda x: x + force(4.0))(3.0).item() == 11.0
    reuse = nx.jit(lambda x: x * 2, on_conflict="reuse", compiler=compiler)
    assert nx.jit(lambda x: reuse(x) + 1)(3.0).item() == 7.0
    refuse = nx.jit(lambda x: x * 2, on_conflict="raise")
    with pytest.raises(RuntimeError, match="on_conflict"):
        nx.jit(lambda x: refuse(x))(3.0)
