"""Each mistake raises one clear error, and the process continues."""

import pytest

import nxla as nx
from nxla import _core


def still_works():
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
    still_works()


def test_a_dtype_error_is_a_type_error():
    with pytest.raises(TypeError, match="erf"):
        nx.jit(nx.erf)(1j)
    still_works()


def test_python_control_flow_on_a_traced_value():
    def choose(x):
        return x if x > 0 else -x

    with pytest.raises(nx.TraceError, match=r"nx\.cond.*test_errors\.py"):
        nx.jit(choose)(1.0)
    still_works()


@pytest.mark.parametrize("look", [nx.Tensor.item, nx.Tensor.tolist])
def test_looking_at_data_that_is_not_there_yet(look):
    with pytest.raises(nx.TraceError, match=r"known only when the function runs.*nx\.hook"):
        nx.jit(lambda x: getattr(x, look.__name__)())(1.0)
    still_works()


def test_a_value_of_a_finished_trace():
    kept = []
    nx.jit(lambda x: (kept.append(x), x)[1])(1.0)
    with pytest.raises(nx.TraceError, match="finished trace"):
        kept[0] + 1
    still_works()


def test_a_value_of_another_trace():
    def outer(x):
        inner = nx.jit(lambda y: y + x, on_conflict="force")
        return inner(1.0)

    with pytest.raises(nx.TraceError):
        nx.jit(outer)(1.0)
    still_works()


def test_a_jitted_call_inside_a_trace():
    inner = nx.jit(lambda x: x * 2, compiler="evaluator")
    with pytest.raises(nx.NxlaError, match="on_conflict"):
        nx.jit(lambda x: inner(x))(1.0)
    reused = nx.jit(lambda x: x * 2, on_conflict="reuse")
    assert nx.jit(lambda x: reused(x) + 1)(1.0).item() == 3.0


def test_unknown_compilers_and_options():
    with pytest.raises(nx.OptionError, match=r'compiler: name: must be one of .*; got "nope"'):
        nx.jit(lambda x: x, compiler="nope")(1.0)
    with pytest.raises(nx.OptionError, match="has no option"):
        nx.jit(lambda x: x, compiler="evaluator", level=3)(1.0)
    still_works()


def test_arguments_of_a_compiled_function():
    f = nx.compile(lambda x, y: x + y, [nx.template((2,), "f32"), nx.template((2,), "f32")])
    with pytest.raises(nx.ArgumentError, match="takes 2 arguments; got 1"):
        f(nx.ones((2,)))
    with pytest.raises(nx.ArgumentError):
        f(nx.ones((3,)), nx.ones((2,)))
    assert f(nx.ones((2,)), nx.ones((2,))).tolist() == [2.0, 2.0]


def test_plugins_that_are_none(tmp_path):
    with pytest.raises(nx.DeviceError, match="nothing_there"):
        nx.jit(lambda x: x + 1, compiler="xla", plugin="/nothing_there.so")(1.0)
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(nx.DeviceError, match=r"text\.so"):
        nx.jit(lambda x: x + 1, compiler="xla", plugin=str(text))(1.0)
    assert nx.jit(lambda x: x + 1, compiler="xla")(1.0).item() == 2.0


def test_ragged_lists():
    with pytest.raises(nx.ArgumentError, match="ragged"):
        nx.tensor([[1, 2], [3]])


def test_an_exception_while_tracing_leaves_nothing_behind():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nx.jit(fail)(1.0)
    assert nx.sin(0.0).item() == 0.0
    still_works()


def test_a_panic_is_an_error_like_others():
    assert issubclass(nx.InternalError, (nx.NxlaError, RuntimeError))
    with pytest.raises(nx.InternalError, match=r"internal error: out of luck;.* please report"):
        _core._panic_for_tests("out of luck")
    assert nx.jit(lambda x: x + 1)(1).item() == 2


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_a_panic_on_the_way_leaves_functions_usable(compiler):
    luck = ["no"]

    def traced(x):
        if luck:
            _core._panic_for_tests("while tracing")
        return nx.hook(x, "shown")

    def shown(_):
        if luck:
            _core._panic_for_tests("while running")

    f = nx.jit(traced, compiler=compiler, hooks={"shown": shown})
    with pytest.raises(nx.InternalError, match="while tracing"):
        f(1)
    luck.clear()
    assert f(1).item() == 1
    luck.append("no")
    with pytest.raises(nx.InternalError, match="while running"):
        f(2)
    luck.clear()
    assert f(3).item() == 3


def test_assigning_to_elements_says_what_to_use():
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
        (lambda: nx.split([1, 2, 3], size=0), "split: size: must be positive; got 0"),
        (
            lambda: nx.jit(lambda x: nx.add([x], 1))(1.0),
            "got a traced value; use nx.stack for tensors",
        ),
    ],
)
def test_arguments_are_told_as_they_were_written(call, text):
    with pytest.raises((nx.NxlaError, TypeError), match=text):
        call()


def test_a_traced_number_of_repetitions_of_a_list():
    for repeated in (lambda x, n: [x] * n, lambda x, n: n * (x, x)):
        with pytest.raises(nx.TraceError, match=r"repeat count of a list.*test_errors\.py"):
            nx.jit(repeated)(1.0, 3)
        assert len(nx.jit(repeated, static_argnums=1)(1.0, 3)) >= 3
    # A list of numbers combined with a traced value becomes a tensor.
    assert nx.jit(lambda n: [1, 2] * n)(3).tolist() == [3, 6]
