"""Promises of expressions: their nodes, and functions to build, walk and rewrite them."""

import dataclasses
from collections import namedtuple

import numpy as np
import pytest

import nxla as nx


def lines(function, *args):
    return nx.debug_expr(function)(*args).lines()


# --- nodes ---


def test_a_node_has_an_operation_operands_and_attributes():
    (node,) = nx.debug_expr(lambda x: nx.sum(nx.sin(x), axis=1))(nx.ones((2, 3))).output_nodes
    assert (node.op, node.shape, node.dtype) == ("sum", (2,), nx.float32)
    assert [operand.op for operand in node.args] == ["sin"]
    assert node.attributes == {"axes": (1,), "keep_axes": False}
    assert node.regions == []
    assert "test_promises_expr.py" in node.line


def test_equal_nodes_are_shared():
    expression = nx.debug_expr(lambda x: nx.sin(x) * nx.sin(x))(1.0)
    (product,) = expression.output_nodes
    assert product.args[0] == product.args[1]
    assert hash(product.args[0]) == hash(product.args[1])
    assert product != product.args[0]
    assert expression.op_counts()["sin"] == 1


def test_scalars_become_constants_and_tensors_literals():
    large = nx.iota(100_000)
    expression = nx.debug_expr(lambda x: x * 2 + nx.tensor([1.0, 2.0]) + nx.sum(large))(1.0)
    counts = expression.op_counts()
    assert counts["constant"] == 1
    assert counts["tensor"] == 1
    assert counts["parameter"] == 2
    assert [t.shape for t in expression.captured] == [(100_000,)]


@pytest.mark.parametrize("fill", [0.0, -0.0, 2.5, np.inf, np.nan])
def test_uniform_tensors_become_constants(compiler, fill):
    filled = np.full((100, 200), fill, np.float32)
    expression = nx.debug_expr(lambda x: nx.minimum(x, filled))(1.0)
    assert expression.op_counts()["constant"] == 1
    assert not expression.captured
    result = np.asarray(nx.jit(lambda x: x * filled, compiler=compiler)(1.0))
    np.testing.assert_array_equal(result, filled)
    assert np.isnan(fill) or result.tobytes() == filled.tobytes()
    # An array with a single different element is not stored as a scalar.
    filled[99, 199] = 1.0
    assert nx.debug_expr(lambda x: nx.minimum(x, filled))(1.0).captured


def test_nodes_are_in_topological_order():
    expression = nx.debug_expr(lambda x: nx.cos(nx.sin(x)) + nx.sin(x))(1.0)
    seen = set()
    for node in expression.nodes:
        assert {operand.id for operand in node.args} <= seen
        seen.add(node.id)
    assert len(seen) == len(expression.nodes)


def test_regions_are_separate_expressions():
    def f(x):
        return nx.cond(x > 0, lambda: nx.sin(x), lambda: nx.cos(x))

    (node,) = nx.debug_expr(f)(1.0).output_nodes
    assert node.op == "cond"
    ((predicate, body),) = node.attributes["clauses"]
    assert body.op_counts() == {"parameter": len(node.args), "sin": 1}
    assert node.attributes["otherwise"].op_counts()["cos"] == 1
    assert [region.digest for region in node.regions] == [
        predicate.digest,
        body.digest,
        node.attributes["otherwise"].digest,
    ]


# --- constructors ---


def test_parameters_are_inputs_in_order():
    def f():
        x = nx.expr.parameter((2,), "f32", names=["rows"])
        y = nx.expr.parameter((), nx.int32)
        return x * y

    expression = nx.expr.build(f)
    assert expression.inputs == [((2,), nx.float32), ((), nx.int32)]
    assert "f32[rows: 2]" in str(expression)
    assert expression.run(nx.ones(2), 3).tolist() == [3.0, 3.0]


def test_parameter_outside_of_build_raises():
    with pytest.raises(nx.TraceError, match=r"must be called in nx\.expr\.build"):
        nx.jit(lambda x: x + nx.expr.parameter((), "f32"))(1.0)
    with pytest.raises(nx.TraceError, match="must be called in a traced function"):
        nx.expr.parameter((), "f32")


def test_constants():
    expression = nx.expr.build(
        lambda: (nx.expr.constant(3), nx.expr.constant(1.5, "f64", shape=(2,)))
    )
    assert expression.op_counts() == {"constant": 2}
    three, many = expression.run()
    assert (three.dtype, three.item()) == (nx.int32, 3)
    assert (many.dtype, many.tolist()) == (nx.float64, [1.5, 1.5])
    assert nx.expr.build(lambda: nx.expr.constant(True)).run().dtype == nx.bool
    assert nx.expr.build(lambda: nx.expr.constant(1j)).run().dtype == nx.complex64
    with pytest.raises(
        nx.ArgumentError, match=r"value: must be an integer for dtype s32; got 1\.5"
    ):
        nx.expr.build(lambda: nx.expr.constant(1.5, "s32"))
    with pytest.raises(nx.ArgumentError, match="must be a number"):
        nx.expr.build(lambda: nx.expr.constant([1]))


def test_literal_tensors():
    large = np.arange(100_000, dtype=np.float32)
    expression = nx.expr.build(lambda: nx.sum(nx.expr.tensor(large[:3])))
    assert expression.run().item() == 3.0
    assert nx.expr.build(lambda: nx.expr.tensor(large)).captured == []
    with pytest.raises(nx.ArgumentError, match="must not be traced"):
        nx.jit(nx.expr.tensor)(1.0)


def test_metadata_is_printed_only_with_inspect():
    shown = lines(lambda x: nx.expr.metadata(x * 2, inspect="note"), 1.0)
    assert shown[-1].startswith("c = metadata b, :note")
    assert not any("metadata" in line for line in lines(lambda x: nx.expr.metadata(x * 2), 1.0))
    stopped = nx.grad(lambda x: x * nx.expr.metadata(x, stop_grad=True))
    assert stopped(3.0).item() == 3.0
    pair = nx.debug_expr(lambda x: nx.expr.metadata({"a": x, "b": (x * 2,)}, inspect="both"))(1.0)
    assert pair.op_counts()["metadata"] == 1
    assert pair.run(2.0)["b"][0].item() == 4.0


def test_metadata_stores_nested_mappings():
    notes = {
        "layer": 3, "rate": 0.5, "on": True, "none": None, "": "text",
        "sizes": [1, [2.5, "x"], {}], "inner": {"z": -(2**63), "a": {"deep": [[]]}},
    }  # fmt: skip

    def function(x):
        x = nx.expr.metadata(x * 2, {**notes, "inspect": "here"})
        return nx.expr.metadata({"a": x, "b": (x + 1,)}, {"layer": np.int64(4), "f": np.float32(2)})

    expression = nx.debug_expr(function)(1.0)
    first, second = (node for node in expression.nodes if node.op == "metadata")
    assert first.notes == notes
    assert list(map(type, first.notes.values())) == list(map(type, sorted_values(notes)))
    assert first.attributes == {"inspect": "here", "stop_grad": False, "notes": notes}
    assert (first.note, second.note, second.notes) == ("here", None, {"layer": 4, "f": 2.0})
    assert next(node for node in expression.nodes if node.op == "multiply").notes is None
    # As in Nx, only metadata with `inspect` is printed.
    shown = [line for line in expression.lines() if "metadata" in line]
    assert [line.split()[2:] for line in shown] == [["metadata", "b,", ":here", "f32"]]
    # The program, its bytes, and the bytes of its stages contain the metadata.
    read = nx.Expression.from_bytes(expression.to_bytes())
    assert read.digest == expression.digest
    assert [n.notes for n in read.nodes if n.notes] == [first.notes, second.notes]
    other = nx.debug_expr(lambda x: nx.expr.metadata(x * 2, {"layer": 4}))(1.0)
    assert (
        other.digest != nx.debug_expr(lambda x: nx.expr.metadata(x * 2, {"layer": 5}))(1.0).digest
    )
    (stage,) = nx.graph.split(other, lambda node: "none").stages
    stage = nx.graph.Stage.from_bytes(stage.to_bytes())
    assert [n.notes for n in stage.expr.nodes if n.op == "metadata"] == [{"layer": 4}]
    # Splits can use notes; computations ignore them.
    parts = nx.graph.split(expression, lambda node: "after" if node.notes else "none")
    assert len(parts) == 3


def sorted_values(notes):
    return [value for _, value in sorted(notes.items())]


def test_metadata_is_transparent(compiler):
    def function(x):
        return nx.sum(nx.expr.metadata(nx.sin(x), {"layer": [1, 2]}) * 2)

    x = nx.tensor([0.5, 1.0])
    expected = np.sin([0.5, 1.0])
    assert nx.jit(function, compiler=compiler)(x).item() == pytest.approx(2 * expected.sum())
    slope = nx.jit(nx.grad(function), compiler=compiler)(x)
    np.testing.assert_allclose(slope.numpy(), 2 * np.cos([0.5, 1.0]), rtol=1e-6)
    mapped = nx.jit(nx.vmap(function), compiler=compiler)(nx.ones((3, 2)))
    np.testing.assert_allclose(mapped.numpy(), np.full(3, 4 * np.sin(1.0)), rtol=1e-6)


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ({"inspect": 3}, "inspect: must be a string; got 3"),
        ({"stop_grad": 1}, "stop_grad: must be True or False"),
        ({"custom_grad": 1}, "nx.custom_grad"),
    ],
)
def test_invalid_metadata_raises(notes, message):
    with pytest.raises(nx.ArgumentError, match=message):
        nx.debug_expr(lambda x: nx.expr.metadata(x, notes))(1.0)


def test_metadata_nesting_is_limited():
    deep = []
    for _ in range(31):
        deep = [deep]
    nested = nx.debug_expr(lambda x: nx.expr.metadata(x, {"deep": deep}))(1.0)
    assert nx.Expression.from_bytes(nested.to_bytes()).digest == nested.digest
    cyclic = []
    cyclic.append(cyclic)
    with pytest.raises(nx.ArgumentError, match="at most 32 deep"):
        nx.debug_expr(lambda x: nx.expr.metadata(x, {"deep": cyclic}))(1.0)
    with pytest.raises(nx.ArgumentError, match="inspect: must not be both a note and an argument"):
        nx.debug_expr(lambda x: nx.expr.metadata(x, {"inspect": "a"}, inspect="b"))(1.0)


def test_elem_selects_one_result():
    expression = nx.debug_expr(lambda x: nx.expr.elem(nx.top_k(x, 2), 1))(nx.ones(3))
    assert expression.run(nx.tensor([1.0, 3.0, 2.0])).tolist() == [1, 2]
    with pytest.raises(nx.ArgumentError, match="index: must be from 0 to 1"):
        nx.expr.elem((1, 2), 2)


def test_fun_is_traced_once():
    traced = []

    def largest(x, y):
        traced.append(x)
        return nx.maximum(x, y)

    fun = nx.expr.fun(largest, nx.template(()), nx.template(()))
    assert repr(fun) == "<expression of (f32[], f32[])>"

    def f(x):
        return nx.reduce(x, -1.0, fun) + nx.reduce(x * 2, -1.0, fun)

    assert nx.jit(f)(nx.tensor([1.0, 5.0])).item() == 15.0
    assert len(traced) == 1
    with pytest.raises(nx.ArgumentError, match=r"value 0: must be f32; got f32\[2\]"):
        nx.jit(fun)(nx.ones(2), 1.0)
    with pytest.raises(
        nx.ArgumentError, match="values: must be 2, one for each input of the expression; got 1"
    ):
        nx.jit(fun)(1.0)


def test_call_of_an_expression_in_another():
    large = nx.tensor(np.arange(10_000, dtype=np.float32))
    inner = nx.debug_expr(lambda x: {"out": nx.sum(large) * x})(1.0)
    outer = nx.jit(lambda x: nx.expr.call(inner, x + 1)["out"])
    with pytest.warns(nx.CaptureWarning):
        assert outer(1.0).item() == 2 * np.arange(10_000, dtype=np.float32).sum()


def test_explicit_cond_while_and_hook(compiler):
    seen = []

    def f():
        x = nx.expr.parameter((), "s32")
        x = nx.expr.while_(x, lambda x: x < 50, lambda x: x * 2)
        x = nx.expr.hook(x, "grown", lambda v: seen.append(v.item()))
        return nx.expr.cond([(x > 90, lambda: x - 90)], lambda: x)

    expression = nx.expr.build(f)
    assert expression.run(3, compiler=compiler).item() == 6
    assert expression.run(40, compiler=compiler).item() == 80
    assert seen == [96, 80]
    for make in (
        lambda: nx.expr.cond([], lambda: 1),
        lambda: nx.expr.while_(1, bool, int),
        lambda: nx.expr.hook(1, "name"),
    ):
        with pytest.raises(nx.TraceError, match="must be called in a traced function"):
            make()


def test_blocks_have_a_name_and_a_default_body(compiler):
    scale = nx.tensor(3.0)

    def f(x, y):
        both = lambda a, b: (a + b * scale, [a * y])  # noqa: E731
        return nx.expr.block("both", both, x, y, exact=True, axis=1)

    expression = nx.debug_expr(f)(1.0, 2.0)
    node = next(node for node in expression.nodes if node.op == "block")
    assert node.attributes["name"] == "both"
    assert node.attributes["attributes"] == {"exact": "True", "axis": "1"}
    total, (product,) = expression.run(1.0, 2.0, compiler=compiler)
    assert (total.item(), product.item()) == (7.0, 2.0)
    assert nx.grad(lambda x: f(x, 2.0)[0])(1.0).item() == 1.0


MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
#: A tensor that becomes an input, and its sum.
LARGE = nx.iota(100_000, dtype="f32") / 1e5
WHOLE = nx.sum(LARGE).item()
SUM = nx.debug_expr(nx.sum)(nx.ones(3))
CAPTURING = nx.debug_expr(lambda x: nx.sum(x) + nx.sum(LARGE))(nx.ones(3))
#: Functions that build nodes from operands, for an operand of one axis.
NODES = {
    "block": lambda x: nx.expr.block("b", nx.sum, x),
    "block of elements": lambda x: nx.sum(nx.expr.block("b", lambda z: z * 1.0, x)),
    "call": lambda x: nx.expr.call(SUM, x),
    "call of a capture": lambda x: nx.expr.call(CAPTURING, x) - WHOLE,
    "fun": lambda x: nx.expr.fun(nx.sum, nx.template((3,)))(x),
    "put_args": lambda x: nx.tree.put_args(SUM.output_nodes[0], [x]),
}


@pytest.mark.filterwarnings("ignore::nxla.CaptureWarning")
@pytest.mark.parametrize("name", NODES)
def test_node_builders_support_vectorized_operands(compiler, name):
    function = nx.jit(NODES[name], compiler=compiler)
    mapped = nx.jit(nx.vmap(NODES[name]), compiler=compiler)(nx.tensor(MATRIX))
    np.testing.assert_allclose(mapped.tolist(), [6.0, 15.0], rtol=1e-3)
    result = function(nx.vectorize(nx.tensor(MATRIX), "v"))
    assert (result.vectorized_axes, result.shape) == ((("v", 2),), ())
    np.testing.assert_allclose(nx.devectorize(result).tolist(), [6.0, 15.0], rtol=1e-3)


def test_eager_block_keeps_vectorized_axes():
    result = nx.expr.block("b", nx.sum, nx.vectorize(nx.tensor(MATRIX), "v"))
    assert (result.vectorized_axes, nx.devectorize(result).tolist()) == ((("v", 2),), [6.0, 15.0])
    two = nx.expr.block("b", lambda x, y: x + y, nx.vectorize(nx.ones(2), "v"), nx.ones(3))
    assert (two.vectorized_axes, two.shape) == ((("v", 2),), (3,))


def test_call_requires_vectorized_axes_of_inputs():
    expression = nx.debug_expr(nx.sum)(nx.ones((2, 3)))
    with pytest.raises(nx.ArgumentError, match=r"value 0: must be f32\[2\]\[3\]; got .*f32\[3\]"):
        nx.vmap(lambda x: nx.expr.call(expression, x))(nx.tensor(MATRIX))
    vectorized = nx.vectorize(nx.tensor(MATRIX), "v")
    template = nx.template((3,), vectorized_axes=[("v", 2)])
    for expression in (
        nx.debug_expr(nx.sum)(vectorized),
        nx.expr.build(lambda: nx.sum(nx.expr.parameter(template))),
    ):
        result = nx.jit(lambda x, e=expression: nx.expr.call(e, x))(vectorized)
        assert result.vectorized_axes == (("v", 2),)
        assert nx.devectorize(result).tolist() == [6.0, 15.0]
        other = nx.vectorize(nx.tensor(MATRIX), "w")
        with pytest.raises(nx.ArgumentError, match="value 0: must be vectorized"):
            nx.jit(lambda x, e=expression: nx.expr.call(e, x))(other)


@pytest.mark.parametrize("function", [nx.sum, nx.sin, lambda x: (x, nx.max(x), 2.0)])
def test_a_rewritten_expression_keeps_vectorized_axes(function):
    x = nx.vectorize(nx.tensor(MATRIX), "v")
    expression = nx.debug_expr(function)(x)
    for rewritten in (
        nx.tree.rewrite(expression, lambda node, args: None),
        nx.tree.rewrite(expression, lambda node, args: nx.negative(nx.negative(*args)) * 1.0
                        if node.op == "sin" else None),
    ):  # fmt: skip
        before = nx.tree.leaves(expression.run(x))
        after = nx.tree.leaves(rewritten.run(x))
        assert [y.vectorized_axes for y in before] == [y.vectorized_axes for y in after]
        assert [y.shape for y in before] == [y.shape for y in after]


def test_built_expressions_split_differentiate_and_serialize():
    def f():
        x = nx.expr.parameter((2,), "f32")
        return nx.sum(nx.sin(x) * x)

    expression = nx.expr.build(f)
    x = nx.tensor([0.5, 1.0])
    rebuilt = nx.Expression.from_bytes(expression.to_bytes())
    assert rebuilt.digest == expression.digest
    stages = nx.graph.split(expression, lambda n: "after" if n.op == "sin" else "none")
    assert nx.graph.run(stages, x).item() == expression.run(x).item()
    slope = nx.grad(lambda x: nx.expr.call(expression, x))(x)
    expected = nx.cos(x) * x + nx.sin(x)
    np.testing.assert_allclose(slope.numpy(), expected.numpy(), rtol=1e-6)
    assert nx.debug_expr(lambda x: nx.sum(nx.sin(x) * x))(x).digest == expression.digest


def test_build_error_leaves_no_active_trace():
    with pytest.raises(KeyError):
        nx.expr.build(lambda: {}["missing"])
    assert nx.current_compiler() is None
    assert nx.sin(0.0).item() == 0.0


# --- walking and rewriting ---


def test_apply_args_visits_operands_in_order():
    (node,) = nx.debug_expr(lambda x, y: nx.where(x > 0, y, -x))(1.0, 2.0).output_nodes
    args, seen = nx.tree.apply_args(node, lambda arg, seen: (arg, [*seen, arg.op]), [])
    assert seen == ["greater", "parameter", "negate"]
    assert args == node.args


def test_apply_args_visits_regions_on_request():
    f = lambda x: nx.while_loop(lambda s: s < 3, lambda s: s * 2 + 1, x)  # noqa: E731
    (node,) = nx.debug_expr(f)(1).output_nodes
    ops = lambda **scope: nx.tree.apply_args(  # noqa: E731
        node, lambda arg, seen: (None, [*seen, arg.op]), [], **scope
    )[1]
    assert ops() == ["parameter"]
    assert ops(scope="all") == ["parameter", "less", "add"]
    with pytest.raises(nx.ArgumentError, match="scope: must be"):
        ops(scope="some")


def test_scope_ids_omit_constants_and_regions():
    def f(x):
        shared = nx.exp(x)
        return nx.cond(x > 0, lambda: nx.sin(x) + shared, lambda: nx.cos(x)) + shared

    expression = nx.debug_expr(f)(1.0)
    ops = sorted(nx.tree.scope_ids(expression).values())
    assert ops == ["add", "cond", "exp", "greater", "parameter"]
    (cond,) = [node for node in expression.nodes if node.op == "cond"]
    assert any("sin" in nx.tree.scope_ids(region).values() for region in cond.regions)


def test_scope_ids_extend_known_ids():
    expression = nx.debug_expr(lambda x, y: (nx.sin(x), nx.cos(y)))(1.0, 2.0)
    first, second = expression.output_nodes
    known = nx.tree.scope_ids(first)
    assert sorted(known.values()) == ["parameter", "sin"]
    assert sorted(nx.tree.scope_ids(second, known).values()) == [
        "cos",
        "parameter",
        "parameter",
        "sin",
    ]


def test_equal_hooks_are_not_shared():
    f = lambda x: (nx.hook(x, "same"), nx.hook(x, "same"))  # noqa: E731
    assert nx.debug_expr(f)(1.0).op_counts()["io_call"] == 2


def test_put_args_rebuilds_a_node():
    (node,) = nx.debug_expr(lambda x, y: nx.dot(x, y))(
        nx.ones((2, 3)), nx.ones((3, 4))
    ).output_nodes
    rebuilt = nx.jit(lambda x, y: nx.tree.put_args(node, [x, y]))
    assert rebuilt(nx.ones((5, 3)), nx.ones((3, 1))).shape == (5, 1)
    with pytest.raises(nx.ArgumentError, match="dot requires 2 operands; got 1"):
        nx.jit(lambda x: nx.tree.put_args(node, [x]))(1.0)
    with pytest.raises(nx.ShapeError):
        rebuilt(nx.ones((5, 3)), nx.ones((4, 1)))
    with pytest.raises(nx.TraceError):
        nx.tree.put_args(node, [1.0, 2.0])


def rewritten_cases():
    large = nx.tensor(np.arange(8_000, dtype=np.float32))
    pair = namedtuple("pair", ["left", "right"])

    def control(x):
        doubled = nx.while_loop(lambda s: s[0] < 10, lambda s: (s[0] * 2, s[1] + 1), (x, 0))
        return nx.cond(x > 0, lambda: doubled[0], lambda: -doubled[0]), doubled[1]

    return [
        (lambda x, y: nx.sin(x) @ y + 1, (np.ones((2, 3), "f"), np.ones((3, 2), "f"))),
        (lambda x: pair(x + nx.sum(large), {"b": x}), (2.0,)),
        (control, (1.5,)),
        (lambda x: nx.hook((x, x + 1), "pair")[1] * 2, (1,)),
        (lambda x, y: y * 2, (1.0, 2.0)),
        (lambda x: nx.top_k(nx.real(nx.fft.fft(x)), 2),
         (np.arange(4, dtype="f"),)),
    ]  # fmt: skip


@pytest.mark.parametrize("case", range(6))
def test_identity_rewrite_keeps_the_expression(case):
    function, args = rewritten_cases()[case]
    expression = nx.debug_expr(function)(*args)
    rebuilt = nx.tree.rewrite(expression, lambda node, args: None)
    rebuilt.verify()
    assert rebuilt.digest == expression.digest
    left, right = nx.tree.leaves(expression.run(*args)), nx.tree.leaves(rebuilt.run(*args))
    assert nx.tree.flatten(expression.run(*args))[1] == nx.tree.flatten(rebuilt.run(*args))[1]
    for ours, theirs in zip(left, right, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_rewriting_replaces_nodes():
    expression = nx.debug_expr(lambda x: nx.sin(x) * nx.sin(x + 1))(1.0)
    fast = nx.tree.rewrite(expression, lambda n, args: args[0] if n.op == "sin" else None)
    assert fast.run(2.0).item() == 6.0
    assert "sin" not in fast.op_counts()
    assert expression.op_counts()["sin"] == 2


# --- containers ---


@dataclasses.dataclass
class State:
    weight: object
    step: object


def test_traverse_and_reduce_visit_leaves_in_order():
    container = {"b": (1, 2.5), "a": [State(3, None)]}
    seen = nx.composite.reduce(container, [], lambda leaf, seen: [*seen, leaf])
    assert seen == [3, 1, 2.5]
    doubled = nx.composite.traverse(container, lambda leaf: leaf * 2)
    assert doubled == {"b": (2, 5.0), "a": [State(6, None)]}
    numbered, count = nx.composite.traverse(container, lambda leaf, n: (n, n + 1), 0)
    assert numbered == {"a": [State(0, None)], "b": (1, 2)}
    assert count == nx.composite.count(container) == 3
    with pytest.raises(nx.ArgumentError, match="must return"):
        nx.composite.traverse(container, lambda leaf, n: leaf, 0)


def test_compatible_compares_structure_types_and_names():
    compatible = nx.composite.compatible
    x = nx.ones((2, 3))
    assert compatible({"a": x, "b": 1}, {"b": nx.template((), "s32"), "a": nx.template((2, 3))})
    assert not compatible((x,), [x])
    assert not compatible((x, x), (x,))
    assert not compatible(x, nx.ones((3, 2)))
    assert not compatible(1, 1.5)
    assert not compatible({"a": 1}, {"a": 1, "b": 2})
    rows = nx.rename(x, ["rows", None])
    assert compatible(x, rows)
    assert not compatible(rows, nx.rename(x, ["columns", None]))
    one, two = nx.vectorize([[1, 2]], "a"), nx.vectorize([[1, 2], [3, 4]], "b")
    assert compatible(one, one)
    assert not compatible(one, two)
    assert compatible(1, 2.5, lambda left, right: left < right)


def test_flatten_list_takes_several_containers():
    assert nx.composite.flatten_list([(1, 2), {"x": 3}], [4, 5]) == [1, 2, 3, 4, 5]


def test_eager_block_is_computed():
    double = nx.expr.block("double", lambda x: {"y": x * 2}, nx.tensor([1.0, 2.0]), scale="two")
    assert double["y"].tolist() == [2.0, 4.0]


# --- identities, contexts and names ---


def test_nodes_and_traced_values_have_an_id_and_a_context():
    seen = {}

    def f(x):
        y = nx.sin(x)
        seen["root"] = (y.context, x.context, nx.iota((3,)).context)
        seen["same"] = (nx.sin(x).id == y.id, y.id != x.id)

        def body(s):
            seen["while"] = ((s + y).context, y.context)
            return s * 2

        z = nx.while_loop(lambda s: s < 50.0, body, x)

        def larger(a, b):
            seen["reduce"] = (a.context, nx.maximum(a, b).context)
            return nx.maximum(a, b)

        return nx.reduce(nx.stack([z, y]), 0.0, larger)

    expression = nx.debug_expr(f)(3.0)
    assert seen == {
        "root": ("root", "root", None),
        "same": (True, True),
        "while": ("while", "root"),
        "reduce": ("reduce", "reduce"),
    }
    contexts = {node.op: node.context for node in expression.nodes}
    assert (contexts["parameter"], contexts["while"], contexts["sin"]) == ("root",) * 3
    assert contexts.get("constant") is None
    assert len({node.id for node in expression.nodes}) == len(expression.nodes)
    loop = next(node for node in expression.nodes if node.op == "while")
    assert {node.context for node in loop.attributes["body"].nodes} == {"while", None}
    assert {node.context for region in loop.regions for node in region} == {"while"}


def test_reducers_keep_the_python_function_name():
    def larger(x, y):
        return nx.maximum(x, y)

    (node,) = nx.debug_expr(lambda x: nx.reduce(x, 0.0, larger))(nx.ones(3))
    assert node.attributes["function"].name == "larger"
    (node,) = nx.debug_expr(lambda x: nx.window_reduce(x, 0.0, larger, (2,)))(nx.ones(3))
    assert node.attributes["function"].name == "larger"
    fun = nx.expr.fun(larger, nx.template(()), nx.template(()))
    assert fun.__name__ == "larger"
    (node,) = nx.debug_expr(lambda x: nx.reduce(x, 0.0, fun))(nx.ones(3))
    assert node.attributes["function"].name == "larger"
    assert nx.debug_expr(larger)(1.0, 2.0).name == "larger"
    # The name does not change the digest of a program.
    other = lambda x, y: nx.maximum(x, y)  # noqa: E731
    assert nx.debug_expr(other)(1.0, 2.0).digest == nx.debug_expr(larger)(1.0, 2.0).digest


# --- explicit parameters and loops ---


def test_parameters_have_positions(compiler):
    def difference():
        right = nx.expr.parameter((2,), "f32", pos=1)
        left = nx.expr.parameter((2,), "f32", pos=0)
        assert nx.expr.parameter((2,), "f32", pos=1).id == right.id
        return left - right

    expression = nx.expr.build(difference)
    assert expression.inputs == [((2,), nx.float32)] * 2
    result = expression.run(nx.tensor([5.0, 6.0]), nx.tensor([1.0, 2.0]), compiler=compiler)
    assert result.tolist() == [4.0, 4.0]
    with pytest.raises(nx.ArgumentError, match="input 0 has none"):
        nx.expr.build(lambda: nx.expr.parameter((), "f32", pos=1))
    with pytest.raises(nx.ArgumentError, match="input 0 is f32 already; got s32"):
        nx.expr.build(
            lambda: nx.expr.parameter((), "f32", pos=0) + nx.expr.parameter((), "s32", pos=0)
        )


def test_parameter_accepts_tensors_and_templates():
    rows = nx.rename(nx.ones((2, 3), dtype="f64"), ["row", None])

    def f():
        x = nx.expr.parameter(rows)
        y = nx.expr.parameter(nx.template((), "s32"), pos=1)
        return x, y, nx.expr.parameter(nx.sum(x, axis=0))

    expression = nx.expr.build(f)
    assert expression.inputs == [((2, 3), nx.float64), ((), nx.int32), ((3,), nx.float64)]
    assert "f64[row: 2][3]" in str(expression)
    for wrong in (lambda: nx.expr.parameter((2,)), lambda: nx.expr.parameter(rows, "f32")):
        with pytest.raises(nx.ArgumentError, match="parameter: dtype"):
            nx.expr.build(wrong)


def test_a_loop_is_built_from_a_context(compiler):
    def f():
        start = nx.expr.parameter((), "s32")
        limit = nx.expr.parameter((), "s32")
        loop = nx.expr.context()
        assert repr(loop) == "<context while>"
        x = nx.expr.parameter(start, pos=0, context=loop)
        n = nx.expr.parameter((), "s32", pos=1, context=loop)
        assert (x.context, (x + limit).context, limit.context) == ("while", "while", "root")
        body = {"x": x * 2, "n": n + 1}
        return nx.expr.while_({"x": start, "n": 0}, loop, {"n": n, "x": x}, x < limit, body)

    def build(arg_first):
        def ordered():
            start = nx.expr.parameter((), "s32")
            limit = nx.expr.parameter((), "s32")
            loop = nx.expr.context()
            x = nx.expr.parameter(start, pos=0, context=loop)
            n = nx.expr.parameter((), "s32", pos=1, context=loop)
            arg = (x, n) if arg_first else (n, x)
            return nx.expr.while_((start, 0), loop, arg, x < limit, (x * 2, n + 1))

        return nx.expr.build(ordered)

    result, count = build(arg_first=True).run(3, 100, compiler=compiler)
    assert (result.item(), count.item()) == (192, 6)
    with pytest.raises(nx.ArgumentError, match="arg: must be the parameters of the context"):
        build(arg_first=False)
    # The leaves of a dict are in the order of its keys: n is the first, x the second.
    with pytest.raises(nx.ArgumentError, match="arg: must be the parameters of the context"):
        nx.expr.build(f)
    with pytest.raises(nx.TraceError, match="must be called in a traced function"):
        nx.expr.context()
    with pytest.raises(nx.ArgumentError, match="while_: arguments: must be initial"):
        nx.expr.build(lambda: nx.expr.while_(nx.expr.parameter((), "s32"), 1, 2))


def test_tuples_keep_their_nesting():
    assert nx.expr.tuple([(1, 2), {"a": 3}]) == ((1, 2), {"a": 3})
    assert nx.expr.elem(nx.expr.tuple([(1, (2, 3)), 4]), 0) == (1, (2, 3))
    assert nx.expr.elem(nx.expr.elem(((1, (2, 3)), 4), 0), 1) == (2, 3)

    def f(x):
        pair = nx.expr.tuple(
            [nx.top_k(x, 2), x], [(nx.template((2,)), nx.template((2,), "s32")), x]
        )
        return nx.expr.elem(nx.expr.elem(pair, 0), 1)

    assert nx.jit(f)(nx.tensor([1.0, 3.0, 2.0])).tolist() == [1, 2]
    with pytest.raises(nx.ArgumentError, match="one for each of 2 values; got 1"):
        nx.expr.tuple([1, 2], [nx.template(())])
    with pytest.raises(nx.ArgumentError, match="value 1: must be of type"):
        nx.expr.tuple([1, 2], [1, nx.template((3,))])


@pytest.mark.parametrize(
    ("notes", "name"),
    [
        ({"weights": nx.ones(3)}, "weights"),
        ({"array": np.ones(3)}, "array"),
        ({"wide": 2**63}, "wide"),
        ({"complex": 1j}, "complex"),
        ({1: 2}, "1"),
        ({(1, "a"): print}, r"\(1, 'a'\)"),
        ({"deep": [{"b": object()}]}, "deep"),
    ],
)
def test_unserializable_metadata_raises_on_serialization(compiler, notes, name):
    f = lambda x: nx.expr.metadata(x * 2, notes) + 1  # noqa: E731
    expression = nx.debug_expr(f)(1.0)
    (found,) = [node.notes for node in expression.nodes if node.op == "metadata"]
    assert list(found) == list(notes)
    for key in notes:
        assert found[key] is notes[key] or found[key] == notes[key]
    assert nx.debug_expr(f)(1.0).digest == expression.digest
    assert nx.jit(f, compiler=compiler)(3.0).item() == 7.0
    assert nx.grad(f)(3.0).item() == 2.0
    stages = nx.graph.split(expression, lambda node: "after" if node.notes else "none")
    for value in (expression, stages[0]):
        with pytest.raises(nx.FormatError, match=f'metadata "{name}": must be a string'):
            value.to_bytes()
    with pytest.raises(nx.FormatError, match="metadata"):
        __import__("pickle").dumps(stages)


def test_hooks_run_in_program_order(compiler):
    seen = []

    def f(x):
        x = nx.hook(x * 2, "first", lambda v: seen.append(("first", v.item())))
        y = nx.hook(x + 1, "second", lambda v: seen.append(("second", v.item())))
        return x * y

    assert nx.jit(f, compiler=compiler)(1.0).item() == 6.0
    assert seen == [("first", 2.0), ("second", 3.0)]
