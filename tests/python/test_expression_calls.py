"""Calls of expressions, stages and compiled functions by argument names, and after pickling."""

import copy
import pickle
import re
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

import nxla as nx

Layer = namedtuple("Layer", ["w", "b"])


@dataclass
class Results:
    """The results of the model."""

    y: object
    kind: object


def model(params, x, *, scale=1.0, mode="plain"):
    y = nx.tanh(x @ params["layer3"].w) * scale
    return Results({"y": y, "sum": nx.sum(y) + params["layer3"].b}, mode)


PARAMS = {"layer3": Layer(nx.ones((2, 3)), 1.0)}


def expression():
    params = {"layer3": Layer(nx.template((2, 3)), nx.template(()))}
    return nx.debug_expr(model)(params, nx.template((4, 2)), scale=nx.template(()), mode="m")


def stages():
    found = nx.graph.split(expression(), lambda node: "after" if node.op == "dot" else "none")
    assert len(found) == 2
    return found


def assert_expected(found):
    assert type(found) is Results
    assert found.kind == "m"
    expected = np.tanh(np.full((4, 3), 2.0)) * 3
    np.testing.assert_allclose(np.asarray(found.y["y"]), expected, rtol=1e-6)
    np.testing.assert_allclose(found.y["sum"].item(), expected.sum() + 1, rtol=1e-6)


def test_arguments_by_name(compiler):
    x = nx.ones((4, 2))
    runs = [expression().run, stages().run, lambda *a, **k: nx.graph.run(stages(), *a, **k)]
    for run in runs:
        assert_expected(run(PARAMS, x, scale=3.0, mode="m", compiler=compiler))
        assert_expected(run(x=x, scale=3.0, params=PARAMS, compiler=compiler))
        # One tensor for each input, as in a compiler.
        assert_expected(run(*nx.tree.leaves(PARAMS), x, 3.0, compiler=compiler))
    with ThreadPoolExecutor(1) as pool:
        assert_expected(
            nx.graph.run(stages(), PARAMS, scale=3.0, x=x, executor=pool, compiler=compiler)
        )


def test_errors_name_mismatched_arguments(compiler):
    x = nx.ones((4, 2))
    wrong = {"layer3": Layer(nx.ones((2, 3), dtype="s32"), 1.0)}
    for run in (expression().run, stages().run):
        with pytest.raises(nx.ArgumentError) as caught:
            run(wrong, nx.ones((4, 3)), scale=3.0, compiler=compiler)
        assert str(caught.value) == (
            "run: params['layer3'].w: must be f32[2][3]; got s32[2][3]\n"
            "  x: must be f32[4][2]; got f32[4][3]"
        )
        with pytest.raises(
            nx.ArgumentError, match=r"params\['layer3'\]: must be Layer.*; got a tensor"
        ):
            run({"layer3": 1.0}, x, scale=3.0, compiler=compiler)
        with pytest.raises(nx.ArgumentError, match="mode: must be 'm'; got 'other'"):
            run(PARAMS, x, scale=3.0, mode="other", compiler=compiler)
        with pytest.raises(nx.ArgumentError, match="takes 4 arguments; got 2; scale is missing"):
            run(PARAMS, x=x, compiler=compiler)
        with pytest.raises(nx.ArgumentError, match="got multiple values for argument x"):
            run(PARAMS, x, x=x, scale=3.0, compiler=compiler)
        with pytest.raises(nx.ArgumentError, match="takes 4 arguments; got 1; x is missing"):
            run(PARAMS, compiler=compiler)
        with pytest.raises(nx.ArgumentError, match="got the template f32"):
            run(PARAMS, x, nx.template(()), compiler=compiler)
        with pytest.raises(
            nx.ArgumentError, match=r"params\['layer3'\]\.b: must be .*; got f32\[4\]\[2\]"
        ):
            run(PARAMS["layer3"].w, x, 1.0, x, compiler=compiler)
        unknown = r'option "scales": does not exist|has no option "scales"'
        with pytest.raises(nx.OptionError, match=unknown):
            run(PARAMS, x, scale=1.0, scales=2, compiler=compiler)
        with pytest.raises(nx.OptionError, match=unknown):
            run(PARAMS, x, scales=2, compiler=compiler)


def test_variadic_and_unnamed_arguments():
    several = nx.debug_expr(lambda *xs: xs[0] + xs[1])(1.0, 2)
    assert several.run(1.0, 2).item() == 3.0
    with pytest.raises(nx.ArgumentError, match=r"xs\[1\]: must be s32; got f32"):
        several.run(1.0, 2.0)
    unknown = nx.debug_expr(nx.sin)(1.0)
    assert unknown.run(0.0).item() == 0.0


def test_static_arguments_are_optional():
    raised = nx.debug_expr(lambda x, power, how: x**power, static_argnums=(1, 2))
    found = raised(nx.template((2,)), 3, ["a", {"b": 1}])
    x = nx.tensor([1.0, 2.0])
    for result in (
        found.run(x),
        found.run(x, 3),
        found.run(x, power=3),
        found.run(x, 3, ["a", {"b": 1}]),
    ):
        assert result.tolist() == [1.0, 8.0]
    with pytest.raises(nx.ArgumentError, match="power: must be 3; got 2"):
        found.run(x, 2)


@pytest.mark.parametrize("make", [expression, stages])
def test_pickle_keeps_containers_and_names(make):
    original = make()
    for loaded in (pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):
        assert_expected(loaded.run(PARAMS, scale=3.0, x=nx.ones((4, 2))))
        with pytest.raises(
            nx.ArgumentError, match=r"params\['layer3'\]\.w: must be .*; got f32\[1\]"
        ):
            loaded.run({"layer3": Layer(nx.ones(1), 1.0)}, nx.ones((4, 2)), 1.0)


def test_pickle_keeps_captured_tensors():
    large = nx.iota((10_000,), dtype="f32")
    rows = nx.vectorize(nx.ones((2, 3)), "row")
    program = nx.debug_expr(lambda x, r: (nx.sum(x * large), r + 1))(nx.template(()), rows)
    split = nx.graph.split(program, nx.graph.Policy.every_ops(1))
    for whole in (program, split):
        loaded = pickle.loads(pickle.dumps(whole))
        total, more = loaded.run(2.0, rows)
        assert total.item() == whole.run(2.0, rows)[0].item()
        assert more.vectorized_axes == (("row", 2),)
        with pytest.raises(nx.ArgumentError, match=r"r: must be .*; got f32\[3\]"):
            loaded.run(2.0, nx.ones(3))


def test_hooks_cannot_be_pickled():
    hooked = nx.debug_expr(lambda x: nx.hook(x + 1, "seen", lambda value: None))(1.0)
    with pytest.raises(nx.ArgumentError, match="pickle"):
        pickle.dumps(hooked)
    with pytest.raises(nx.ArgumentError, match="stage 1: must not contain hooks or runtime calls"):
        pickle.dumps(nx.graph.split(hooked, nx.graph.Policy.every_ops(1)))


def test_damaged_pickles_raise():
    bytes_, results, inputs, captured = expression()._parts()
    with pytest.raises(nx.FormatError, match="containers must match the expression"):
        nx.graph.Expression._from_parts(bytes_, (), inputs, captured)
    with pytest.raises(nx.FormatError):
        nx.graph.Expression._from_parts(bytes_[:-1], results, inputs, captured)


def test_shared_nodes_print_once():
    def repeated(x):
        for _ in range(50):
            x = nx.sin(x) + x
        return {"sum": x, "parts": [x * k for k in range(2, 12)]}

    found = nx.debug_expr(repeated)(1.0)
    lines = str(found).splitlines()
    assert len(lines) < len(found.nodes) + 10
    assert lines[:2] == ["#nxla.Expr<", f"  {{'parts': [{', '.join(['f32'] * 10)}], 'sum': f32}}"]
    assert lines[-2].startswith("  {'parts': [")
    # The printed form of a single result is unchanged.
    assert str(nx.debug_expr(nx.sin)(1.0)).splitlines()[-1] == ">"
    empty = nx.debug_expr(lambda x: ())(1.0)
    assert str(empty) == "#nxla.Expr<\n  ()\n  \n  \n  ()\n>"


def test_compiled_functions_accept_keywords(compiler):
    def f(x, mode, y, *, z=0.0):
        return x - 2 * y + z if mode == "minus" else x + y

    types = [nx.template(()), "minus", nx.template(())]
    compiled = nx.compile(f, types, z=5.0, compiler=compiler)
    for result in (compiled(7.0, 1.0), compiled(7.0, y=1.0), compiled(y=1.0, x=7.0)):
        assert result.item() == 10.0
    compiled.check(y=1.0, x=7.0)
    with pytest.raises(nx.ArgumentError, match="y: must be f32; got s32"):
        compiled(7.0, y=1)
    with pytest.raises(nx.ArgumentError, match="f: got an unexpected keyword argument 'mode'"):
        compiled(7.0, 1.0, mode="minus")
    with pytest.raises(nx.ArgumentError, match="y is missing"):
        compiled(x=7.0)


def test_lists_and_dicts_are_static_values(compiler):
    seen = []

    @nx.jit(static_argnames="options", compiler=compiler)
    def f(x, options):
        seen.append(options)
        return x * options["scales"][0] + len(options["names"])

    options = {"scales": [2, 3], "names": {"a"}}
    assert f(1.0, options).item() == f(1.0, options=dict(options)).item() == 3.0
    assert len(seen) == 2  # Calls by position and by name have different signatures.
    options["scales"][0] = 4
    assert f(1.0, options).item() == 5.0
    # Equal values of different classes are different static arguments.
    assert f(1.0, {"scales": [4.0, 3], "names": {"a"}}).item() == 5.0
    assert len(seen) == 4
    compiled = nx.compile(f, [nx.template(()), {"scales": [10], "names": ()}])
    assert compiled(x=2.0).item() == 20.0
    with pytest.raises(nx.ArgumentError, match="must be hashable, or a list, dict or set"):
        f(1.0, [np.ones(2)])
    deep = []
    deep.append(deep)
    with pytest.raises(nx.ArgumentError, match="must be nested at most"):
        f(1.0, deep)


@pytest.mark.parametrize("executor", [False, True])
def test_stage_errors_name_the_stage(compiler, executor):
    def fails(value):
        raise ZeroDivisionError("of the user")

    def staged(x):
        y = nx.graph.mark(nx.sin(x), "encoder")
        return nx.hook(nx.cos(y), "there", fails)

    program = nx.graph.split(nx.debug_expr(staged)(1.0), "marks")
    expected = r"while running stage 1, from .*test_expression_calls.py:\d+"
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(ZeroDivisionError, match="of the user") as caught,
    ):
        nx.graph.run(program, 1.0, executor=pool if executor else None, compiler=compiler)
    assert len(caught.value.__notes__) == 1
    assert re.match(expected, caught.value.__notes__[0])
    early = nx.graph.split(
        nx.debug_expr(lambda x: nx.graph.mark(nx.hook(x + 1, "a", fails), "first") * 2)(1.0),
        "marks",
    )
    with pytest.raises(ZeroDivisionError) as caught:
        nx.graph.run(early, 1.0, compiler=compiler)
    assert "while running stage 0 ('first'), from" in caught.value.__notes__[0]
    jitted = nx.jit(staged, stages="marks", compiler=compiler)
    with pytest.raises(ZeroDivisionError) as caught:
        jitted(1.0)
    assert "while running stage 1" in caught.value.__notes__[0]
