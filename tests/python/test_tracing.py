"""Types of results, and scopes of nodes."""

import threading

import pytest

import nxla as nx


def test_eval_shape_does_not_execute():
    calls = []

    def model(params, x, *, scale):
        nx.hook(x, "x", calls.append)
        return {"y": (x @ params["w"]) * scale, "n": nx.sum(nx.astype(x, "s32"))}, None

    params = {"w": nx.template((3, 4), names=("in", "out"))}
    found, nothing = nx.eval_shape(model, params, nx.ones((2, 3)), scale=2.0)
    assert (found["y"].shape, found["y"].dtype, found["y"].names) == ((2, 4), "f32", [None, "out"])
    assert (found["n"].shape, found["n"].dtype) == ((), "s32")
    assert nothing is None
    assert calls == []


def test_eval_shape_keeps_vectorized_axes():
    rows = nx.vectorize(nx.ones((2, 3, 4)), ["row", "column"])
    sums, total = nx.eval_shape(lambda x: (nx.sum(x), 1.0), rows)
    assert (sums.shape, sums.vectorized_axes) == ((), (("row", 2), ("column", 3)))
    assert total.vectorized_axes == ()
    assert nx.eval_shape(lambda x: x, nx.template(4, vectorized_axes=[("row", 2)])) == nx.template(
        4, vectorized_axes=[("row", 2)]
    )


def test_eval_shape_reports_errors_of_the_call():
    with pytest.raises(nx.ShapeError, match=r"matmul|dot"):
        nx.eval_shape(lambda x, y: x @ y, nx.template((2, 3)), nx.template((2, 3)))


def scopes(function, *args):
    nodes = nx.debug_expr(function)(*args).nodes
    return {node.op: node.scope for node in nodes if node.op != "parameter"}


def test_scopes_form_paths():
    @nx.named_scope("decoder")
    def decode(x):
        return nx.cos(x)

    def model(x):
        with nx.named_scope("encoder"):
            x = nx.sin(x)
            with nx.named_scope("layer_0"):
                x = nx.exp(x)
        return nx.tanh(decode(x))

    assert scopes(model, 1.0) == {
        "sin": "encoder", "exp": "encoder/layer_0", "cos": "decoder", "tanh": None,
    }  # fmt: skip


def test_one_line_in_several_scopes():
    def model(x):
        for k in range(3):
            with nx.named_scope(f"layer_{k}"):
                x = nx.sin(x)
        return x

    nodes = nx.debug_expr(model)(1.0).nodes
    assert [node.scope for node in nodes if node.op == "sin"] == ["layer_0", "layer_1", "layer_2"]


def test_derivatives_have_the_scopes_of_their_operations():
    def model(x):
        with nx.named_scope("encoder"):
            return nx.sin(x)

    nodes = nx.debug_expr(nx.grad(model))(1.0).nodes
    assert [(node.op, node.scope) for node in nodes if node.is_derivative] == [("cos", "encoder")]


def test_loops_and_stages_keep_scopes():
    def model(x):
        with nx.named_scope("loop"):
            return nx.fori(0, 3, lambda i, x: nx.sin(x), nx.exp(x))

    expression = nx.debug_expr(model)(1.0)
    (loop,) = (node for node in expression.nodes if node.op == "while")
    assert loop.scope == "loop"
    assert [n.scope for region in loop.regions for n in region.nodes if n.op == "sin"] == ["loop"]
    stages = nx.graph.split(expression, lambda node: "after" if node.op == "exp" else "none")
    assert [n.scope for n in stages.stages[0].expr.nodes if n.op == "exp"] == ["loop"]


def test_scopes_do_not_change_digests():
    def model(scope):
        def traced(x):
            with nx.named_scope(scope):
                return nx.sin(x)

        return nx.debug_expr(traced)(1.0).digest

    assert model("a") == model("b") == nx.debug_expr(nx.sin)(1.0).digest


def test_scopes_end_after_errors_and_outside_of_traces():
    def model(x):
        try:
            with nx.named_scope("failed"):
                raise KeyError
        except KeyError:
            return nx.sin(x)

    assert scopes(model, 1.0) == {"sin": None}
    with nx.named_scope("eager"):
        assert nx.sin(0.0).item() == 0.0
        # The scope of a function that is traced here does not depend on its first call.
        assert scopes(nx.sin, 1.0) == {"sin": None}
    for name in ("", "a/b", 3):
        with pytest.raises(nx.ArgumentError, match="named_scope: name: must be a nonempty string"):
            nx.named_scope(name)


def test_nodes_report_flops():
    nodes = nx.debug_expr(lambda x, y: nx.sum(x @ y))(nx.ones((2, 3)), nx.ones((3, 5))).nodes
    assert {node.op: node.flops for node in nodes} == {"parameter": 0, "dot": 60, "sum": 10}


def test_named_scope_decorator_is_thread_safe():
    """An eager call in another thread does not change the scopes of a trace."""
    entered, may_return = threading.Event(), threading.Event()

    @nx.named_scope("decoder")
    def decode(x, is_traced):
        if is_traced:
            thread.start()
            assert entered.wait(10)
            return nx.sin(x)
        entered.set()
        assert may_return.wait(10)
        return x

    thread = threading.Thread(target=decode, args=(1.0, False))
    assert scopes(lambda x: nx.cos(decode(x, True)), 1.0) == {"sin": "decoder", "cos": None}
    may_return.set()
    thread.join()
    assert scopes(nx.cos, 1.0) == {"cos": None}


def test_scope_around_a_jitted_call():
    @nx.named_scope("outer")
    def model(x):
        return nx.exp(nx.jit(nx.sin)(x))

    assert model(0.0).item() == 1.0
    assert scopes(model, 1.0)["exp"] == "outer"
    assert scopes(nx.cos, 1.0) == {"cos": None}
