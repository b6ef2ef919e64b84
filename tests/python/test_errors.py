"""Each mistake raises one clear error, and the process continues."""

import inspect
import math
import pickle
import re

import numpy as np
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
            r"shape: must determine all sizes for f32\[0\]; got \[0, -1\]",
        ),
        (
            lambda: nx.reshape(nx.arange(12), (5, -1)),
            r"must have the 12 elements of s32\[12\] for some size -1; got \[5, -1\]",
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
            r"^det: operand: expected square matrices in the last two axes; got f32\[2\]\[3\]",
        ),
        (
            lambda: nx.pad_outer([1, 2], 0, [(1, 1), (1, 1)]),
            r"^pad_outer: padding: expected 1 entries for s32\[2\]; got 2",
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


#: Calls of functions in Python with an argument that is not a boolean, with the function and the
#: argument.
NOT_BOOLEANS = {
    ("tensor", "copy"): lambda: nx.tensor([1], copy=3),
    ("histogram", "density"): lambda: nx.histogram(nx.ones(3), density=3),
    ("svd", "full_matrices"): lambda: nx.linalg.svd(nx.eye(2), full_matrices="yes"),
    ("choice", "replace"): lambda: nx.random.choice(nx.random.key(0), [1, 2], replace="no"),
    ("devectorize", "keep_names"): lambda: nx.devectorize(nx.ones(2), keep_names=3),
    ("scan", "reverse"): lambda: nx.scan(lambda c, x: (c, x), 0, nx.ones(2), reverse="no"),
    ("associative_scan", "reverse"): lambda: nx.associative_scan(nx.add, nx.ones(2), reverse=1),
    ("digitize", "right"): lambda: nx.digitize(nx.ones(3), [0.0, 1.0], "no"),
    ("linspace", "endpoint"): lambda: nx.linspace(0.0, 1.0, 3, "no"),
    ("isin", "invert"): lambda: nx.isin([1], [1], invert="no"),
    ("resize", "antialias"): lambda: nx.nn.resize(nx.ones(2), (4,), antialias="no"),
    ("interpolate", "antialias"): lambda: nx.nn.interpolate(
        nx.ones((1, 1, 2)), 4, mode="linear", antialias="no"
    ),
    ("batches", "shuffle"): lambda: nx.data.batches([1, 2], 1, shuffle="no"),
    ("batches", "drop_last"): lambda: nx.data.batches([1, 2], 1, drop_last=1),
    ("grad", "has_aux"): lambda: nx.grad(nx.sin, has_aux="no")(1.0),
    ("jacfwd", "has_aux"): lambda: nx.jacfwd(nx.sin, has_aux="no")(1.0),
    ("vjp", "has_aux"): lambda: nx.vjp(nx.sin, 1.0, has_aux="no"),
}


def test_numpy_booleans_are_accepted():
    reverse = nx.scan(lambda c, x: (c, x), 0, nx.ones(2), reverse=np.True_)
    assert reverse[1].tolist() == [1.0, 1.0]
    assert nx.digitize([1.0], [0.0, 1.0], np.bool_(True)).item() == 1


#: Calls with an argument that is not an integer.
NOT_INTEGERS = {
    ("resize", "shape"): lambda n: nx.nn.resize(nx.ones((2, 2)), (n, 2)),
    ("MultiSteps", "every_k_schedule"): lambda n: nx.optim.MultiSteps(nx.optim.sgd(1.0), n),
    ("scale_by_lbfgs", "memory_size"): nx.optim.scale_by_lbfgs,
    ("eye", "k"): lambda n: nx.eye(2, k=n),
    ("broadcast_shapes", "shapes"): lambda n: nx.broadcast_shapes((2, n)),
    ("split", "sections"): lambda n: nx.split(nx.ones(2), sections=n),
    ("while_loop", "max_trips"): lambda n: nx.while_loop(
        lambda s: s < 2, lambda s: s + 1, 0, max_trips=n
    ),
    ("scan", "length"): lambda n: nx.scan(lambda c, x: (c, x), 0, length=n),
    ("split", "parts"): lambda n: nx.random.split(nx.random.key(0), n),
    ("choice", "samples"): lambda n: nx.random.choice(nx.random.key(0), nx.arange(3), samples=n),
    ("set_print_options", "precision"): lambda n: nx.set_print_options(precision=n),
    ("grad", "argnums"): lambda n: nx.grad(lambda x, y: x * y, n)(1.0, 2.0),
    ("custom_jvp", "nondiff_argnums"): lambda n: nx.custom_jvp(nx.sin, nondiff_argnums=n),
    ("jit", "static_argnums"): lambda n: nx.jit(nx.sin, static_argnums=n),
    ("moveaxis", "source"): lambda n: nx.moveaxis(nx.ones((2, 2)), n, 0),
    ("moveaxis", "destination"): lambda n: nx.moveaxis(nx.ones((2, 2)), 0, n),
    ("partition", "kth"): lambda n: nx.partition(nx.ones(2), n),
    ("roll", "axis"): lambda n: nx.roll(nx.ones(2), 1, axis=n),
    ("binomial", "shape"): lambda n: nx.random.binomial(nx.random.key(0), 3, 0.5, shape=n),
    ("conv_transpose", "strides"): lambda n: nx.nn.conv_transpose(
        nx.ones((1, 1, 2)), nx.ones((1, 1, 2)), strides=n
    ),
    ("set_cache_limit", "size"): nx.set_cache_limit,
    ("stream", "bound"): lambda n: nx.stream(lambda x, s: (x, s), 1.0, 1.0, bound=n),
    ("batches", "prefetch"): lambda n: nx.data.batches([1, 2], 1, prefetch=n),
    ("batches", "batch_size"): lambda n: nx.data.batches([1, 2], n),
    ("batches", "seed"): lambda n: nx.data.batches([1, 2], 1, seed=n),
    ("pipeline", "in_flight"): lambda n: nx.graph.pipeline([], [], in_flight=n),
    ("pipeline_schedule", "layers"): lambda n: nx.graph.pipeline_schedule("gpipe", n, 1),
    ("pipeline_step", "parts"): lambda n: nx.graph.pipeline_step(
        [nx.multiply], nx.subtract, lambda p, g, s: (p, s), parts=n
    ),
    ("elem", "index"): lambda n: nx.expr.elem([1, 2, 3], n),
    ("to_batched", "size"): lambda n: nx.to_batched(nx.ones(3), n),
    ("bincount", "length"): lambda n: nx.bincount([1], length=n),
    ("bincount", "minlength"): lambda n: nx.bincount([1], minlength=n),
    ("to_binary", "limit"): lambda n: nx.to_binary(nx.ones(2), limit=n),
    ("associative_scan", "axis"): lambda n: nx.associative_scan(nx.add, nx.ones(2), axis=n),
}


@pytest.mark.parametrize(("function", "argument"), NOT_INTEGERS)
@pytest.mark.parametrize("value", [1.5, True, (2.5,)], ids=str)
def test_integer_errors_name_the_function_and_the_argument(function, argument, value):
    with pytest.raises(nx.ArgumentError, match=rf"^{function}: {argument}: must .*; got "):
        NOT_INTEGERS[function, argument](value)


def _with_first_argument(function, *values):
    return lambda bad: function(bad, *values)


#: Calls with an argument that is not callable.
NOT_CALLABLE = {
    **{
        (function.__name__, "function"): _with_first_argument(function)
        for function in (
            *(nx.jit, nx.defn, nx.grad, nx.value_and_grad, nx.vmap, nx.jacfwd, nx.jacrev),
            *(nx.jacobian, nx.hessian, nx.hessian_diagonal, nx.debug_expr, nx.checkpoint),
            *(nx.custom_jvp, nx.custom_vjp, nx.explain, nx.eval_shape, nx.compare),
            *(nx.jit_apply, nx.debug_expr_apply),
        )
    },
    ("jit_partitions", "function"): _with_first_argument(nx.jit_partitions, [[1.0]]),
    ("jvp", "function"): _with_first_argument(nx.jvp, (1.0,), (1.0,)),
    ("vjp", "function"): _with_first_argument(nx.vjp, 1.0),
    ("linearize", "function"): _with_first_argument(nx.linearize, 1.0),
    ("compile", "function"): _with_first_argument(nx.compile, [1.0]),
    ("export", "function"): _with_first_argument(nx.export, [1.0]),
    ("stream", "function"): _with_first_argument(nx.stream, 1.0, 1.0),
    ("while_loop", "cond_fn"): _with_first_argument(nx.while_loop, lambda s: s, 1),
    ("while_loop", "body_fn"): lambda bad: nx.while_loop(lambda s: s < 2, bad, 1),
    ("cond", "true_fn"): lambda bad: nx.cond(True, bad, lambda: 1),
    ("cond", "false_fn"): lambda bad: nx.cond(True, lambda: 1, bad),
    ("cond", "otherwise"): lambda bad: nx.cond([(True, lambda: 1)], otherwise=bad),
    ("if_", "then"): lambda bad: nx.if_(True, bad),
    ("if_", "otherwise"): lambda bad: nx.if_(True, lambda: 1, bad),
    ("switch", r"branches\[1\]"): lambda bad: nx.switch(0, [lambda: 1, bad]),
    ("scan", "f"): _with_first_argument(nx.scan, 0, nx.ones(2)),
    ("map", "f"): _with_first_argument(nx.map, nx.ones(2)),
    ("fori", "body"): lambda bad: nx.fori(0, 2, bad, 1),
    ("for_each", "body"): lambda bad: nx.for_each(range(2), bad, 1),
    ("associative_scan", "f"): _with_first_argument(nx.associative_scan, nx.ones(2)),
    ("reduce", "function"): lambda bad: nx.reduce(nx.ones(2), 0, bad),
    ("window_reduce", "function"): lambda bad: nx.window_reduce(nx.ones(2), 0, bad, (2,)),
    ("runtime_call", "function"): _with_first_argument(nx.runtime_call, nx.template(()), 1.0),
    ("hook", "function"): lambda bad: nx.hook(1.0, "name", bad),
    ("tree.map", "function"): _with_first_argument(nx.tree.map, [1]),
    ("traverse", "function"): lambda bad: nx.composite.traverse([1], bad),
    ("safe_where", "function"): lambda bad: nx.safe_where(True, bad, 1.0),
    ("custom_grad", "rule"): lambda bad: nx.custom_grad(nx.ones(2), nx.ones(2), bad),
    ("defjvp", "rule"): lambda bad: nx.custom_jvp(nx.sin).defjvp(bad),
    ("defvjp", "forward"): lambda bad: nx.custom_vjp(nx.sin).defvjp(bad, nx.sin),
    ("defvjp", "backward"): lambda bad: nx.custom_vjp(nx.sin).defvjp(nx.sin, bad),
}


@pytest.mark.parametrize(("function", "argument"), NOT_CALLABLE)
def test_callable_errors_name_the_function_and_the_argument(function, argument):
    message = rf"^{function}: {argument}: must be callable; got a int$"
    with pytest.raises(nx.ArgumentError, match=message):
        NOT_CALLABLE[function, argument](3)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("grad", lambda: nx.grad(nx.sin, 4)(1.0)),
        ("grad", lambda: nx.grad(min, "a")(1.0, 2.0)),
        ("value_and_grad", lambda: nx.value_and_grad(nx.sin, 4)(1.0)),
        ("value_and_grad", lambda: nx.value_and_grad(nx.sin)("a")),
        ("hessian", lambda: nx.hessian(nx.sin, 5)(1.0)),
        ("hessian", lambda: nx.hessian(nx.sin, has_aux=True)(1.0)),
        ("hessian", lambda: nx.hessian(nx.sin)("a")),
    ],
)
def test_derivative_errors_name_the_derivative(name, call):
    with pytest.raises(nx.ArgumentError, match=f"^{name}: "):
        call()


def _on_mesh(function):
    """Call a function of the part of one device over a mesh of one device."""
    mesh = nx.Mesh(data=1)
    rows = mesh.sharding("data")
    return nx.shard_map(function, mesh, rows, rows, compiler="evaluator")(nx.ones(1))


#: Calls with a wrong argument, with the error that names the function and the argument.
INVALID_CALLS = {
    "empty: shape: must be one argument, as in nx.empty((2, 3))": lambda: nx.empty(2, 3),
    "can_cast: to: must be a NumPy name": lambda: nx.can_cast("f32", "zz"),
    "can_cast: from_: must be a NumPy name": lambda: nx.can_cast("zz", "f32"),
    "finfo: type: must be a NumPy name": lambda: nx.finfo("zz"),
    "iinfo: type: must be a NumPy name": lambda: nx.iinfo("int31"),
    "nan_to_num: nan: must be a number; got None": lambda: nx.nan_to_num(nx.ones(2), nan=None),
    "nan_to_num: operands must": lambda: nx.nan_to_num(nx.ones(2), nan="a"),
    "segment_sum: segment_ids: must not": lambda: nx.segment_sum([1.0, 2.0], [-1, 0]),
    "arange: start, stop, step: must be finite; got 0, inf and 1": lambda: nx.arange(math.inf),
    "arange: start, stop, step: must be finite; got nan": lambda: nx.arange(math.nan, 2.0),
    "with_sharding_constraint: sharding: must be a Sharding": lambda: nx.with_sharding_constraint(
        nx.ones(2), None
    ),
    "Mesh: axes: must be a dict": lambda: nx.Mesh([("a", 2)]),
    "to_safetensors: metadata: must be a dict": lambda: nx.to_safetensors({}, ["k"]),
    "scale_by_learning_rate: learning_rate: must be a number": lambda: nx.optim.adam("0.1"),
    "chain: state: must have one entry": lambda: nx.optim.adam(0.1).update(nx.ones(2), None),
    "conv_transpose: feature_groups: must be at least 1; got 0": lambda: nx.nn.conv_transpose(
        nx.ones((1, 1, 2)), nx.ones((1, 1, 2)), feature_groups=0
    ),
    "roll: shift: must be an integer; got 1.5": lambda: nx.roll(nx.ones(2), 1.5),
    "binomial: parameters: must be real; got c64": lambda: nx.random.binomial(
        nx.random.key(0), 3, 1j
    ),
    "device_put: device, client: must not both": lambda: nx.device_put(1, "host", client="host"),
    "backend_copy: device, client: must not": lambda: nx.backend_copy(1, "host", client="host"),
    "einsum: optimize: Path optimizer 'zz' not found": lambda: nx.einsum(
        "ij,jk,kl", *[nx.ones((2, 2))] * 3, optimize="zz"
    ),
    "vmap: in_axes: must be an int, None, or a list": lambda: nx.vmap(nx.sin, True),
    "elem: index: must be from 0 to 1; got -1": lambda: nx.expr.elem((1, 2), -1),
    "arange: stop: must be a number; got 1j": lambda: nx.arange(0, 1j),
    "arange: step: must be a number; got <class 'int'>": lambda: nx.arange(0, 2, int),
    "fftfreq: d: must be a number; got None": lambda: nx.fft.fftfreq(2, None),
    "fftfreq: n: must be an integer; got None": lambda: nx.fft.fftfreq(None),
    "rfftfreq: n: must be at least 1; got 0": lambda: nx.fft.rfftfreq(0),
    "eye: n_rows: must be an integer; got 'a'": lambda: nx.eye("a"),
    "bincount: minlength: must be an integer; got None": lambda: nx.bincount([1], minlength=None),
    "segment_sum: num_segments: must be an integer": lambda: nx.segment_sum([1.0], [0], "a"),
    "histogram: range: must be pairs of numbers": lambda: nx.histogram([1.0], range=3),
    "parameter: pos: must be at least 0": lambda: nx.expr.build(
        lambda: nx.expr.parameter(2, "f32", pos=-1)
    ),
    "metadata: notes: must be a dict; got a str": lambda: nx.expr.metadata(1.0, "note"),
    "build: function: must be callable": lambda: nx.expr.build(None),
    "split: at: must be finite; got nan": lambda: nx.split(nx.ones(2), at=math.nan),
    "tensordot: axes: must be from 0 to 1; got 1000000000000": lambda: nx.tensordot(
        nx.ones(2), nx.ones((2, 2)), axes=10**12
    ),
    "categorical_split: axis: must be an int": lambda: nx.random.categorical_split(
        nx.random.key(0), nx.ones(2), axis=None
    ),
    "interpolate: scale_factor: must be finite; got nan": lambda: nx.nn.interpolate(
        nx.ones((1, 1, 2)), scale_factor=math.nan
    ),
    "check_grads: order: must be an integer": lambda: nx.testing.check_grads(
        nx.sin, (0.5,), order=None
    ),
    "piecewise_constant_schedule: boundaries_and_scales: must be a dict": lambda: (
        nx.optim.piecewise_constant_schedule(1.0, "a")
    ),
    "apply_args: function: must be callable": lambda: nx.tree.apply_args(
        nx.debug_expr(nx.sin)(1.0).nodes[0], None, 0
    ),
    "apply_args: function: must return (replacement, state)": lambda: nx.tree.apply_args(
        nx.debug_expr(nx.sin)(1.0).nodes[1], lambda node, state: state, 0
    ),
    "scope_ids: ids: must be of type dict or NoneType; got a int": lambda: nx.tree.scope_ids(
        nx.debug_expr(nx.sin)(1.0), 3
    ),
    "permutation: x: must be at least 0; got -1": lambda: nx.random.permutation(
        nx.random.key(0), -1
    ),
    "compatible: fits: must be callable; got a int": lambda: nx.composite.compatible(1, 2, 3),
    "rewrite: replace: must be callable": lambda: nx.tree.rewrite(nx.debug_expr(nx.sin)(1.0), None),
    "unflatten: leaves: must be of type Iterable": lambda: nx.tree.unflatten(
        nx.tree.flatten([1])[1], None
    ),
    "ppermute: perm: must be an integer; got 0.5": lambda: _on_mesh(
        lambda x: nx.collectives.ppermute(x, "data", [(0.5, 1)])
    ),
    "ppermute: perm: must be pairs (source, target); got None": lambda: _on_mesh(
        lambda x: nx.collectives.ppermute(x, "data", None)
    ),
    "psum_scatter: scatter_dimension: must be an axis": lambda: _on_mesh(
        lambda x: nx.collectives.psum_scatter(x, "data", scatter_dimension=5)
    ),
    "all_to_all: concat_axis: must be an axis": lambda: _on_mesh(
        lambda x: nx.collectives.all_to_all(x, "data", 0, 5)
    ),
    "part: shape: must be an integer or several; got None": lambda: (
        nx.Mesh(data=1).sharding("data").part(None)
    ),
    "shard_map: mesh: must be a Mesh; got a NoneType": lambda: nx.shard_map(
        nx.sin, None, None, None
    ),
    "shard_jit: mesh: must be a Mesh; got a NoneType": lambda: nx.shard_jit(
        nx.sin, None, input_shardings=[]
    ),
    "default_options: options: must be a dict; got 'evaluator'": lambda: nx.default_options(
        "evaluator"
    ),
    "global_default_options: options: must be a dict": lambda: nx.global_default_options(["xla"]),
    "batches: source: must contain arrays or examples; got a NoneType": lambda: nx.data.batches(
        None, 2
    ),
    "batches: collate: must be callable": lambda: nx.data.batches([1, 2], 2, collate=3),
    "chain: transforms: must be a GradientTransformation; got a int": lambda: nx.optim.chain(3),
    "masked: inner: must be a GradientTransformation": lambda: nx.optim.masked(3, True),
    "MultiSteps: opt: must be a GradientTransformation": lambda: nx.optim.MultiSteps(None, 2),
    "initializers: shape: must be an integer or several; got None": lambda: (
        nx.nn.initializers.he_normal()(nx.random.key(0), None)
    ),
    "initializers: shape: inputs and outputs need at least two axes; got (3,)": lambda: (
        nx.nn.initializers.orthogonal()(nx.random.key(0), 3)
    ),
    "initializers: in_axis: must be an integer; got 'a'": lambda: nx.nn.initializers.he_normal(
        in_axis="a"
    )(nx.random.key(0), (2, 3)),
    "main: weights: must be a sequence; got a NoneType": lambda: nx.from_stablehlo(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }",
        weights="arguments",
    )(None, 1.0),
    "tri: n_rows: must be an integer; got None": lambda: nx.tri(None, 2),
    "einsum: labels: must be a sequence; got a int": lambda: nx.einsum(3),
    "revectorize: target_shape: must be an integer or several": lambda: nx.revectorize(
        nx.vectorize([1], "x"), [("x", 1)], target_shape="a"
    ),
    "view: file: must be a path; got 3": lambda: nx.view(nx.debug_expr(nx.sin)(1.0), 3),
    **{
        f"{name}: axis: must be an int or a name; got bool": call
        for name, call in {
            "unstack": lambda: nx.unstack(nx.ones((2, 2)), axis=True),
            "trapezoid": lambda: nx.trapezoid(nx.ones(2), axis=True),
        }.items()
    },
}

#: Calls with a number or None in place of a sequence, by the function and the argument.
NOT_SEQUENCES = {
    ("collectives", "axis_name"): nx.collectives.axis_size,
    ("flatten_list", "containers"): nx.composite.flatten_list,
    ("flatten_list", "tail"): lambda bad: nx.composite.flatten_list([], bad),
    ("elem", "values"): lambda bad: nx.expr.elem(bad, 0),
    ("tuple", "values"): nx.expr.tuple,
    ("tuple", "templates"): lambda bad: nx.expr.tuple([1], bad or 3),
    ("vectorize", "axes"): lambda bad: nx.vectorize(nx.ones(2), bad),
    ("revectorize", "axes"): lambda bad: nx.revectorize(nx.vectorize([1], "x"), bad),
    ("reshape_vectors", "values"): nx.reshape_vectors,
    ("broadcast_vectors", "values"): nx.broadcast_vectors,
    ("cond", "pred"): lambda bad: nx.cond(bad, otherwise=lambda: 1),
    ("switch", "branches"): lambda bad: nx.switch(0, bad),
    ("einsum", "optimize"): lambda bad: nx.einsum("i->", nx.ones(2), optimize=bad),
    ("jit_partitions", "args_list"): lambda bad: nx.jit_partitions(nx.sin, bad),
    ("lstm_cell", "carry"): lambda bad: nx.nn.lstm_cell(bad, 1.0, 1.0, 1.0),
    ("join_schedules", "schedules"): lambda bad: nx.optim.join_schedules(bad, []),
    ("join_schedules", "boundaries"): lambda bad: nx.optim.join_schedules([], bad),
    ("scale_by_muon", "ns_coeffs"): nx.optim.scale_by_muon,
    ("check_grads", "args"): lambda bad: nx.testing.check_grads(nx.sin, bad),
    ("check_grads", "modes"): lambda bad: nx.testing.check_grads(nx.sin, (1.0,), modes=bad),
    ("sharding", "axes"): lambda bad: nx.Mesh(data=1).sharding(bad or 7),
    ("over", "chunks"): lambda bad: nx.stream(
        lambda x, state: (x, state), nx.template(()), 0.0
    ).over(bad),
    ("view", "seconds"): lambda bad: nx.view(
        nx.graph.split(nx.debug_expr(nx.sin)(1.0), lambda _: "none"), seconds=bad or 7
    ),
    ("pipeline_step", "parameters"): lambda bad: nx.graph.pipeline_step(
        [nx.multiply], nx.subtract, nx.add, parts=1
    )(bad, [()], nx.ones(2), nx.ones(2)),
    ("pipeline", "batches"): lambda bad: nx.graph.pipeline(
        nx.graph.split(nx.debug_expr(nx.sin)(1.0), lambda _: "none"), bad
    ),
    ("pipeline_step", "layers"): lambda bad: nx.graph.pipeline_step(
        bad, nx.subtract, nx.add, parts=1
    ),
}


@pytest.mark.parametrize(("function", "argument"), NOT_SEQUENCES)
@pytest.mark.parametrize("value", [None, 7], ids=str)
def test_sequence_errors_name_the_function_and_the_argument(function, argument, value):
    kind = "(NoneType|int)"
    with pytest.raises(
        nx.ArgumentError, match=rf"^{function}: {argument}: must be a sequence; got a {kind}$"
    ):
        NOT_SEQUENCES[function, argument](value)


#: Calls with an argument that must be a list of pairs, by the function and the argument.
NOT_PAIRS = {
    ("eye", "vectorized_axes"): lambda bad: nx.eye(2, vectorized_axes=bad),
    ("template", "vectorized_axes"): lambda bad: nx.template(2, vectorized_axes=bad),
    ("pad_outer", "widths"): lambda bad: nx.pad_outer(nx.ones(2), "reflect", bad),
    ("conv_transpose", "padding"): lambda bad: nx.nn.conv_transpose(
        nx.ones((1, 1, 2)), nx.ones((1, 1, 2)), padding=bad
    ),
}


@pytest.mark.parametrize(("function", "argument"), NOT_PAIRS)
@pytest.mark.parametrize("value", [None, 7, [None], [1, 2], [(1, 2, 3)]], ids=str)
def test_pair_errors_name_the_function_and_the_argument(function, argument, value):
    with pytest.raises(nx.ArgumentError, match=rf"^{function}: {argument}: must be pairs \("):
        NOT_PAIRS[function, argument](value)


@pytest.mark.parametrize("message", INVALID_CALLS)
def test_errors_name_the_function_and_the_argument(message):
    if message.startswith("einsum"):
        pytest.importorskip("opt_einsum", reason="opt_einsum is not installed")
    with pytest.raises(nx.NxlaError, match=f"^{re.escape(message)}"):
        INVALID_CALLS[message]()


@pytest.mark.parametrize("traced", [False, True])
def test_notes_must_be_strings(traced):
    run = nx.jit if traced else lambda function: function
    for function, argument in ((nx.annotate, "note"), (nx.graph.mark, "name")):
        message = f"^{function.__name__}: {argument}: must be a string; got a int"
        with pytest.raises(nx.ArgumentError, match=message):
            run(lambda x, f=function: f(x, 3))(1.0)


def test_export_arguments_must_be_a_list():
    for values in (nx.ones(2), nx.template((2,)), {"x": 1}):
        with pytest.raises(nx.ArgumentError, match=r"^export: args: must be a list .*nx\.export\("):
            nx.export(nx.sin, values)


@pytest.mark.parametrize(("function", "argument"), NOT_BOOLEANS)
def test_boolean_errors_name_the_function_and_the_argument(function, argument):
    with pytest.raises(TypeError, match=rf"^{function}: {argument}: must be a bool; got a \w+$"):
        NOT_BOOLEANS[function, argument]()


#: Calls that pass an argument of a wrong type to a compiled function, by the start of the message.
CONVERTED = {
    "svd: full_matrices: must be a bool; got a NoneType": lambda: nx.linalg.svd(
        nx.eye(2), full_matrices=None
    ),
    "linspace: num: must be an integer; got a NoneType": lambda: nx.linspace(0, 1, None),
    "linspace: name: must be a str; got a int": lambda: nx.linspace(0, 1, 3, name=3),
    "zeros: shape: must fit in 64 bits": lambda: nx.zeros(2**70),
    "zeros: names: must be a sequence; got a str": lambda: nx.zeros(2, names="ab"),
    "dropout: rate: must be a number; got a NoneType": lambda: nx.nn.dropout(
        nx.random.key(0), nx.ones(2), None
    ),
    "window_reduce: padding: must be a sequence; got a NoneType": lambda: nx.window_reduce(
        nx.ones(2), 0.0, nx.add, 1, padding=None
    ),
    "template: shape: must be an int or a sequence of ints": lambda: nx.template(None),
    "reduce: keepdims: must be a bool; got a NoneType": lambda: nx.reduce(
        nx.ones(2), 0.0, nx.add, keepdims=None
    ),
    "put_args: node: must be a Node; got a NoneType": lambda: nx.tree.put_args(None, []),
}


@pytest.mark.parametrize("message", CONVERTED)
def test_conversion_errors_name_the_function_and_the_argument(message):
    with pytest.raises((TypeError, OverflowError, nx.ArgumentError)) as caught:
        CONVERTED[message]()
    assert str(caught.value).startswith(message)
    assert not getattr(caught.value, "__notes__", None)


def test_errors_of_other_packages_are_not_renamed():
    def fail(x):
        error = TypeError("'int' object is not an instance of 'bool'")
        error.add_note("while processing 'flag'")
        raise error

    with pytest.raises(TypeError, match=r"^'int' object is not an instance of 'bool'") as caught:
        nx.tree.map(fail, [1.0])
    assert caught.value.__notes__ == ["while processing 'flag'"]


#: Calls with an argument of another class, and the start of the message.
WRONG_CLASSES = {
    "graph.run": (lambda: nx.graph.run(3), "run: stages: must be a StageGraph or a list"),
    "graph.run of a list": (lambda: nx.graph.run([3]), "run: stages: .*; item 0 is int"),
    "graph.pipeline": (lambda: nx.graph.pipeline(None, []), "pipeline: stages: must be"),
    "graph.pipeline of a list": (lambda: nx.graph.pipeline([3], []), "pipeline: stages: .*item 0"),
    "explain": (lambda: nx.explain(None), "explain: function: must be callable; got a NoneType"),
    "tree.unflatten": (lambda: nx.tree.unflatten(3, []), "unflatten: structure: must be of type"),
    "tree.apply_args": (
        lambda: nx.tree.apply_args(nx.debug_expr(nx.sin)(1.0), None, 0),
        "apply_args: node: must be of type Node; got a Expression",
    ),
    "tree.scope_ids": (lambda: nx.tree.scope_ids(3), "scope_ids: what: must be .*Expression or"),
    "tree.rewrite": (lambda: nx.tree.rewrite(None, None), "rewrite: expression: must be of type"),
    "to_safetensors": (
        lambda: nx.to_safetensors({"w": nx.ones(2)}, metadata=3),
        "to_safetensors: metadata: must be a dict of strings; got a int",
    ),
    "static_argnums": (lambda: nx.jit(max, static_argnums=0), "jit: static_argnums: .*got max"),
    "static_argnames": (lambda: nx.jit(max, static_argnames="a"), "jit: static_argnames: .*max"),
    "donate_argnums": (lambda: nx.jit(max, donate_argnums=0), "jit: donate_argnums: .*got max"),
    "donate_argnames": (lambda: nx.jit(max, donate_argnames="a"), "jit: donate_argnames: .*max"),
}


@pytest.mark.parametrize("name", WRONG_CLASSES)
def test_errors_name_arguments_of_the_wrong_class(name):
    call, message = WRONG_CLASSES[name]
    with pytest.raises(nx.ArgumentError, match=message):
        call()


def test_hook_names_and_functions_are_validated():
    for arguments in ((3,), ("name", 3), (None, "function")):
        with pytest.raises(nx.ArgumentError, match=r"hook: (name|function): must be"):
            nx.hook(nx.ones(2), *arguments)
        with pytest.raises(nx.ArgumentError, match=r"hook: (name|function): must be"):
            nx.jit(lambda x, a=arguments: nx.hook(x, *a))(1.0)


def test_to_batched_rejects_values_that_are_not_tensors():
    with pytest.raises(nx.ArgumentError, match=r"^to_batched: operands must be tensors"):
        nx.to_batched({"x": nx.ones(4)}, 2)
