"""Each mistake raises one clear error, and the process continues."""

import inspect
import pickle
import re

import pytest

import nxla as nx
from nxla import _core


def assert_still_works():
    assert nx.jit(lambda x: x + 1)(1).item() == 2


def product(x, y):
    return x @ y


def test_a_shape_error_names_the_operation_both_shapes_and_the_line():
    with pytest.raises(nx.ShapeError) as caught:
        nx.jit(lambda x, y: product(x, y))(nx.ones((2, 3)), nx.ones((4, 5)))
    text = str(caught.value)
    assert "axis 1 of left and axis 0 of right: must have equal sizes; got 3 and 4" in text
    assert f"test_errors.py:{product.__code__.co_firstlineno + 1}" in text
    assert isinstance(caught.value, ValueError)
    assert_still_works()


def test_a_dtype_error_is_a_type_error():
    with pytest.raises(TypeError, match="erf"):
        nx.jit(nx.erf)(1j)
    assert_still_works()


def test_python_control_flow_on_traced_values_raises():
    def choose(x):
        return x if x > 0 else -x

    with pytest.raises(nx.TraceError, match=r"nx\.cond.*test_errors\.py"):
        nx.jit(choose)(1.0)
    assert_still_works()


@pytest.mark.parametrize("read", [nx.Tensor.item, nx.Tensor.tolist])
def test_reading_data_of_traced_values_raises(read):
    with pytest.raises(nx.TraceError, match=r"known only when the function runs.*nx\.hook"):
        nx.jit(lambda x: getattr(x, read.__name__)())(1.0)
    assert_still_works()


def test_values_of_a_finished_trace_raise():
    traced_values = []
    nx.jit(lambda x: (traced_values.append(x), x)[1])(1.0)
    with pytest.raises(nx.TraceError, match="finished trace"):
        traced_values[0] + 1
    assert_still_works()


def test_exceptions_with_traced_values_can_be_printed():
    def fail(x):
        raise ValueError("bad", x)

    for function, kind in ((fail, ValueError), (lambda x: {0: "a"}[x], KeyError)):
        with pytest.raises(kind) as caught:
            nx.jit(function)(1)
        for shown in (str(caught.value), repr(caught.value)):
            assert "of a finished trace" in shown


def test_values_of_another_trace_raise():
    def outer(x):
        inner = nx.jit(lambda y: y + x, on_conflict="force")
        return inner(1.0)

    with pytest.raises(nx.TraceError):
        nx.jit(outer)(1.0)
    assert_still_works()


def test_on_conflict_of_jitted_calls_inside_a_trace():
    inner = nx.jit(lambda x: x * 2, compiler="evaluator")
    with pytest.raises(nx.NxlaError, match="on_conflict"):
        nx.jit(lambda x: inner(x))(1.0)
    reused = nx.jit(lambda x: x * 2, on_conflict="reuse")
    assert nx.jit(lambda x: reused(x) + 1)(1.0).item() == 3.0


def test_unknown_compilers_and_options_raise():
    with pytest.raises(nx.OptionError, match=r'compiler: name: must be one of .*; got "nope"'):
        nx.jit(lambda x: x, compiler="nope")(1.0)
    with pytest.raises(nx.OptionError, match="has no option"):
        nx.jit(lambda x: x, compiler="evaluator", level=3)(1.0)
    assert_still_works()


def test_compiled_functions_check_arguments():
    f = nx.compile(lambda x, y: x + y, [nx.template((2,), "f32"), nx.template((2,), "f32")])
    with pytest.raises(nx.ArgumentError, match="takes 2 arguments; got 1"):
        f(nx.ones((2,)))
    with pytest.raises(nx.ArgumentError):
        f(nx.ones((3,)), nx.ones((2,)))
    assert f(nx.ones((2,)), nx.ones((2,))).tolist() == [2.0, 2.0]


def test_invalid_plugins_raise(tmp_path):
    with pytest.raises(nx.DeviceError, match="nothing_there"):
        nx.jit(lambda x: x + 1, compiler="xla", plugin="/nothing_there.so")(1.0)
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(nx.DeviceError, match=r"text\.so"):
        nx.jit(lambda x: x + 1, compiler="xla", plugin=str(text))(1.0)
    assert nx.jit(lambda x: x + 1, compiler="xla")(1.0).item() == 2.0


def test_ragged_lists_raise():
    with pytest.raises(nx.ArgumentError, match="ragged"):
        nx.tensor([[1, 2], [3]])


def test_exceptions_while_tracing_leave_no_open_trace():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nx.jit(fail)(1.0)
    assert nx.sin(0.0).item() == 0.0
    assert_still_works()


def test_panics_raise_internal_errors():
    assert issubclass(nx.InternalError, (nx.NxlaError, RuntimeError))
    with pytest.raises(nx.InternalError, match=r"internal error: out of luck;.* please report"):
        _core._panic_for_tests("out of luck")
    assert nx.jit(lambda x: x + 1)(1).item() == 2


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_functions_remain_usable_after_panics(compiler):
    panics = ["no"]

    def traced(x):
        if panics:
            _core._panic_for_tests("while tracing")
        return nx.hook(x, "shown")

    def shown(_):
        if panics:
            _core._panic_for_tests("while running")

    f = nx.jit(traced, compiler=compiler, hooks={"shown": shown})
    with pytest.raises(nx.InternalError, match="while tracing"):
        f(1)
    panics.clear()
    assert f(1).item() == 1
    panics.append("no")
    with pytest.raises(nx.InternalError, match="while running"):
        f(2)
    panics.clear()
    assert f(3).item() == 3


def test_item_assignment_error_suggests_put_slice():
    x = nx.tensor([1, 2, 3])

    def f(x):
        x[0] = 1
        return x

    with pytest.raises(nx.TraceError, match=r"nx\.put_slice.*\(test_errors\.py:\d+\)"):
        nx.jit(f)(x)
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: nx.zeros(2.0), "shape: must be an int or a sequence of ints; got a float"),
        (lambda: nx.zeros(None), "shape: must be an int or a sequence of ints; got a NoneType"),
        (lambda: nx.tile([1, 2], 1.5), "must be an int or a sequence of ints"),
        (lambda: nx.nn.max_pool(nx.ones((1, 1, 4)), "2"), "must be an int or a sequence of ints"),
        (
            lambda: nx.reshape(nx.zeros(0), (0, -1)),
            r"shape: must determine all sizes for f32\[0\]; got \[0, unknown\]",
        ),
        (
            lambda: nx.reshape(nx.arange(12), (5, -1)),
            r"must divide the 12 elements of s32\[12\]; got \[5, unknown\]",
        ),
        (
            lambda: nx.einsum("ij,jk->ik", nx.ones((2, 3)), nx.ones((4, 2))),
            "must label axes of equal sizes; got 3 and 4 for 'j'",
        ),
        (
            lambda: nx.einsum("...j,...j->...", nx.ones((2, 3)), nx.ones((4, 3))),
            "got 2 and 4 for the last axis of the ellipsis",
        ),
        (
            lambda: nx.einsum("...j,...j->...", nx.ones((2, 1, 3)), nx.ones((4, 1, 3))),
            "got 2 and 4 for the axis of the ellipsis with 1 after it",
        ),
        (
            lambda: nx.linalg.solve(nx.ones((4, 2, 2)), nx.ones((4, 2))),
            r"solve: x2: must have matrices of 2 rows; got f32\[4\]\[2\]\[2\] and "
            r"f32\[4\]\[2\]; vectors, one for each matrix, are x2\[\.\.\., None\] \(test_errors",
        ),
        (
            lambda: nx.linalg.solve(nx.ones((4, 2, 2)), nx.ones((3, 2, 1))),
            r"solve: operands: leading axes must broadcast; got f32\[4\]\[2\]\[2\]",
        ),
        (
            lambda: nx.split([1, 2, 3], [2, 1]),
            r"split: positions: every part needs an element; got \[2, 1\] for an axis of 3",
        ),
        (lambda: nx.split([1, 2, 3], [0.5]), "split: positions: must be a sequence of integers"),
        (lambda: nx.split([1, 2, 3], None), "exactly one of positions, at, sections and size"),
        (lambda: nx.split([1, 2, 3], 2), r"at=2 for two parts \(Nx\), sections=2 .*, or size=2"),
        (lambda: nx.split([1, 2, 3], at=3), "every part needs an element"),
        (lambda: nx.split([1, 2, 3], sections=2), "must divide the axis; got 2 for an axis of 3"),
        (lambda: nx.split([1, 2, 3], size=0), "split: size: must be at least 1; got 0"),
        (
            lambda: nx.jit(lambda x: nx.add([x], 1))(1.0),
            "got a traced value; use nx.stack for tensors",
        ),
        (
            lambda: nx.nn.embedding(nx.ones((2, 2)), [0.5]),
            r"^embedding: x: expected an integer dtype; got f32",
        ),
        (
            lambda: nx.linalg.det(nx.ones((2, 3))),
            r"^det: x: expected square matrices in the last two axes; got f32\[2\]\[3\]",
        ),
        (
            lambda: nx.pad_outer([1, 2], 0, [(1, 1), (1, 1)]),
            r"^pad_outer: padding: expected 1 entry for s32\[2\]; got 2",
        ),
        (
            lambda: nx.random.beta_split(nx.random.key(0), nx.ones(2), nx.ones(3)),
            r"^beta_split: parameters: must broadcast; got shapes \(2,\) and \(3,\)",
        ),
    ],
)
def test_errors_show_arguments_as_written(call, text):
    with pytest.raises((nx.NxlaError, TypeError), match=text):
        call()


def test_traced_repeat_counts_of_lists_raise():
    for repeated in (lambda x, n: [x] * n, lambda x, n: n * (x, x)):
        with pytest.raises(nx.TraceError, match=r"repeat count of a list.*test_errors\.py"):
            nx.jit(repeated)(1.0, 3)
        assert len(nx.jit(repeated, static_argnums=1)(1.0, 3)) >= 3
    # A list of numbers combined with a traced value becomes a tensor.
    assert nx.jit(lambda n: [1, 2] * n)(3).tolist() == [3, 6]


#: The namespaces of functions of tensors.
NAMESPACES = (nx, nx.fft, nx.linalg, nx.nn, nx.random)
#: Parameters that are axes of an operand, or axes of a result.
AXES = {"axes", "axis", "axis1", "axis2", "destination", "source"}
#: Functions whose axes are not axes of a tensor.
OTHER_AXES = {
    "broadcast_vectors": "names of vectorized axes",
    "from_onnx": "the source is a file",
    "from_stablehlo": "the source is a file",
    "import_stablehlo": "the source is a file",
    "orthogonal": "an axis of a shape that is known later",
    "revectorize": "names of vectorized axes",
    "vectorize": "names of vectorized axes",
    "window_scatter_max": "the source is a tensor",
    "window_scatter_min": "the source is a tensor",
}
MATRIX = nx.tensor([[4.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 6.0]])
#: Values of required parameters that are not a matrix of floats.
VALUES = {
    "axis1": 0,
    "axis2": 0,
    "destination": 0,
    "dimensions": 2,
    "f": lambda first, *others: first,
    "function": lambda element, total: element + total,
    "groups": 3,
    "indices": nx.tensor([[0, 1, 2]] * 3),
    "initial": 0.0,
    "key": nx.random.key(0),
    "kth": 0,
    "labels": nx.tensor([0, 1, 2]),
    "lengths": (1, 1),
    "num_classes": 3,
    "q": 0.5,
    "repeats": 2,
    "shape": (3, 3),
    "shift": 1,
    "source": 0,
    "starts": (0, 0),
    "window": 1,
}
#: Values of parameters of one function.
OWN_VALUES = {
    "gradient": {"f": MATRIX},
    "one_hot": {"x": nx.tensor([[0, 1, 2]])},
    "slice_along_axis": {"start": 0, "length": 1},
    "split": {"sections": 3},
}


def functions_with_axes():
    """Return each public function with an axis, the name of the function, and of the parameter."""
    found = {}
    for module in NAMESPACES:
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, type) or not callable(function) or name in OTHER_AXES:
                continue
            for parameter in inspect.signature(function).parameters:
                if parameter in AXES:
                    found[f"{module.__name__}.{name}-{parameter}"] = name, function, parameter
    return found


FUNCTIONS_WITH_AXES = functions_with_axes()


def call_with(name, function, argument, value):
    """Call a function with a value of one argument and valid values of the required arguments."""
    values = {**OWN_VALUES.get(name, {}), argument: value}
    operands, named = [], {}
    for parameter in inspect.signature(function).parameters.values():
        is_optional = parameter.default is not parameter.empty
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if is_optional and parameter.name not in values:
            continue
        passed = values.get(parameter.name, VALUES.get(parameter.name, MATRIX))
        if parameter.kind == parameter.POSITIONAL_ONLY:
            operands.append(passed)
        else:
            named[parameter.name] = passed
    return function(*operands, **named)


def test_there_are_many_functions_with_axes():
    assert len(FUNCTIONS_WITH_AXES) > 90


@pytest.mark.parametrize("is_traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize(
    ("name", "function", "parameter"), FUNCTIONS_WITH_AXES.values(), ids=FUNCTIONS_WITH_AXES
)
def test_axis_errors_start_with_the_called_function(name, function, parameter, is_traced):
    axis = [9, 0] if parameter == "axes" else 9
    call = lambda: call_with(name, function, parameter, axis)  # noqa: E731
    with pytest.raises(nx.NxlaError, match=rf"^{name}: ") as caught:
        nx.jit(call)() if is_traced else call()
    assert re.search(r"\b9\b", str(caught.value))


def wrong(x):
    return nx.nn.softmax(x, axis=7)


CALLERS = {
    "associative_scan": lambda x: nx.associative_scan(lambda a, b: wrong(a), x),
    "checkpoint": lambda x: nx.checkpoint(wrong)(x),
    "cond": lambda x: nx.cond(x[0] > 0, lambda: wrong(x), lambda: x),
    "fori": lambda x: nx.fori(0, 3, lambda i, s: wrong(s), x),
    "grad": lambda x: nx.grad(lambda x: nx.sum(wrong(x)))(x),
    "hook": lambda x: nx.hook(x, lambda x: wrong(x)),
    "map": lambda x: nx.map(wrong, x),
    "reduce": lambda x: nx.reduce(x, 0.0, lambda a, b: wrong(a)),
    "runtime_call": lambda x: nx.runtime_call(wrong, x, x),
    "scan": lambda x: nx.scan(lambda c, x: (wrong(c), x), x, x),
    "vmap": lambda x: nx.vmap(wrong)(x),
    "while_loop": lambda x: nx.while_loop(lambda s: s[0] < 9, wrong, x),
    "window_reduce": lambda x: nx.window_reduce(x, 0.0, lambda a, b: wrong(a), 2),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_errors_in_user_functions_name_the_inner_operation(caller):
    with pytest.raises(
        nx.ShapeError, match=r"^softmax: axis: must be in range .* got 7 \(test_err"
    ):
        nx.jit(CALLERS[caller])(nx.ones(3)).block_until_ready()


def test_errors_of_missing_attributes_are_pickled():
    missing = {
        AttributeError: lambda: nx.ones(2).tolists,
        nx.TraceError: lambda: nx.jit(lambda x: x.numpy)(1.0),
    }
    for kind, access in missing.items():
        with pytest.raises(kind) as caught:
            access()
        restored = pickle.loads(pickle.dumps(caught.value))
        assert type(restored) is kind
        assert str(restored) == str(caught.value)


#: Each declared function with the name of an argument that is not an operand. `sizes` is the list
#: of further arguments of `reshape`.
DECLARED = [
    (name, argument)
    for name, arguments in sorted(_core._signatures().items())
    for argument, annotation in arguments.items()
    if argument not in ("*", "return", "sizes") and "TensorLike" not in annotation
]


def test_there_are_many_declared_arguments():
    assert len(DECLARED) > 250


@pytest.mark.parametrize(("name", "argument"), DECLARED)
def test_type_errors_name_function_argument_and_type(name, argument):
    with pytest.raises((nx.NxlaError, TypeError)) as caught:
        call_with(name, getattr(_core, name), argument, object())
    text = str(caught.value)
    assert text.startswith(f"{name}: {argument}: must "), text
    assert re.search(r"; got .*\bobject\b", text), text


def _errors_of_functions(x, yes):
    """Return calls with an error, and the public function that each error names."""
    index = nx.astype(yes, "s32")
    one, two, pair = (lambda: nx.ones(1)), (lambda: nx.ones(2)), (lambda: (1, 2))

    def three(*_):
        return nx.ones(3)

    def step(_, s):
        return s

    return {
        "cond": [
            lambda: nx.cond(x, one, two),
            lambda: nx.cond("no", one, two),
            lambda: nx.cond(yes, two, three),
            lambda: nx.cond(yes, pair, three),
            lambda: nx.cond(yes, lambda: object(), one),
        ],
        "if_": [
            lambda: nx.if_(x, one, two),
            lambda: nx.if_(x, one),
            lambda: nx.if_("no", one),
            lambda: nx.if_(yes, two, three),
            lambda: nx.if_(yes, pair, three),
            lambda: nx.if_(yes, lambda: object(), one),
        ],
        "switch": [
            lambda: nx.switch(x, [one, two]),
            lambda: nx.switch(index, [two, three]),
            lambda: nx.switch(index, [pair, three]),
            lambda: nx.switch(index, [lambda: object(), one]),
        ],
        "while_loop": [
            lambda: nx.while_loop(lambda s: x, lambda s: s, 1.0),
            lambda: nx.while_loop(lambda s: s < 3, lambda s: (s,), 1.0),
            lambda: nx.while_loop(lambda s: s < 3, lambda s: three(), 1.0),
        ],
        "while_": [
            lambda: nx.expr.while_(1.0, lambda s: x, lambda s: s),
            lambda: nx.expr.while_(1.0, lambda s: s < 3, lambda s: (s,)),
            lambda: nx.expr.while_(1.0, lambda s: s < 3, lambda s: three()),
        ],
        "fori": [
            lambda: nx.fori(0, 3, lambda i, s: (s,), 1.0),
            lambda: nx.fori(0, 3, three, 1.0),
            lambda: nx.fori(0, 3, three, 1.0, unroll=2),
            lambda: nx.fori(0, 3, step, 1.0, unroll=-1),
            lambda: nx.fori(0.5, 3, step, 1.0),
        ],
        "for_each": [
            lambda: nx.for_each(range(3), three, 1.0),
            lambda: nx.for_each(range(3), three, 1.0, unroll=2),
            lambda: nx.for_each(3, step, 1.0),
        ],
        "scan": [
            lambda: nx.scan(lambda c, y: c, 1.0, x),
            lambda: nx.scan(lambda c, y: ((c,), y), 1.0, x),
            lambda: nx.scan(lambda c, y: (three(), y), x[0], x),
            lambda: nx.scan(lambda c, y: (c, object()), 1.0, x),
        ],
        "map": [
            lambda: nx.map(lambda y: object(), x),
            lambda: nx.map(lambda y: y, x[0]),
            lambda: nx.map(lambda y: y, x, unroll=-1),
        ],
        "associative_scan": [
            lambda: nx.associative_scan(three, nx.ones(4)),
            lambda: nx.associative_scan(lambda a, b: (a, b), x),
        ],
    }


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", _errors_of_functions(nx.ones(3), nx.tensor(True)))
def test_errors_name_the_control_function_that_was_called(name, traced):
    x, yes = nx.ones(3), nx.tensor(True)
    run = nx.jit if traced else lambda function: function
    for number in range(len(_errors_of_functions(x, yes)[name])):
        with pytest.raises(nx.NxlaError, match=f"^{name}: "):
            run(lambda x, yes, index=number: _errors_of_functions(x, yes)[name][index]())(x, yes)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "nansum", "cumulative_sum", "max"])
def test_errors_about_axes_show_the_type_of_the_operand(name):
    """Sums of booleans are computed in another dtype."""
    with pytest.raises(nx.ShapeError, match=rf"{name}: axis: must be in range for pred; got 0"):
        getattr(nx, name)(nx.tensor(True), axis=0)
    with pytest.raises(nx.ShapeError, match=r"axis: must be in range for pred\[2\]; got 3"):
        getattr(nx, name)(nx.tensor([True, False]), axis=3)


REAL = [
    name for name in nx.__all__ if "If an operand is complex." in (getattr(nx, name).__doc__ or "")
]


def test_functions_of_real_operands_are_listed():
    assert {"copysign", "logaddexp", "remainder", "maximum"} <= set(REAL)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize(
    "operands", [(nx.template(2, "c64"), 1.0), (nx.template(2), 1j)], ids=["first", "second"]
)
def test_complex_operands_of_real_functions_are_errors(name, operands):
    function = getattr(nx, name)
    with pytest.raises(nx.DTypeError, match=rf"^{name}: .* got c64"):
        nx.debug_expr(function)(*operands)


@pytest.mark.parametrize("key", [0, [0, 1], slice(1)])
@pytest.mark.parametrize("method", ["min", "max"])
def test_extrema_of_complex_elements_are_errors_of_at(method, key):
    x = nx.tensor([1j, 2.0])
    message = f"at: x: must have a real dtype for {method}; got c64"
    for call in (getattr(x.at[key], method), nx.jit(lambda y: getattr(x.at[key], method)(y))):
        with pytest.raises(nx.DTypeError, match=message):
            call(1)
