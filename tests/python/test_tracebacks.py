"""Tracebacks of errors in traced functions contain only the frames of the user."""

import os
import subprocess
import sys
import traceback
from functools import cache

import pytest

import nxla as nx


def model(x):
    return nx.matmul(x, nx.ones((5, 2)))


def deep(x):
    return nx.sum(model(x))


X = nx.ones((2, 3))


@cache
def mesh():
    return nx.Mesh(data=2)


CALLS = {
    "jit": lambda: nx.jit(model)(X),
    "nested jit": lambda: nx.jit(lambda x: nx.jit(model)(x))(X),
    "grad": lambda: nx.grad(deep)(X),
    "value_and_grad": lambda: nx.value_and_grad(deep)(X),
    "vmap": lambda: nx.vmap(model)(nx.ones((4, 2, 3))),
    "hessian": lambda: nx.hessian(deep)(X),
    "jit of grad": lambda: nx.jit(nx.grad(deep))(X),
    "scan": lambda: nx.jit(lambda x: nx.scan(lambda c, y: (model(c), c), x, length=3))(X),
    "cond": lambda: nx.jit(lambda x: nx.cond(nx.sum(x) > 0, lambda: model(x), lambda: x))(X),
    "while": lambda: nx.jit(lambda x: nx.while_loop(lambda s: True, model, x))(X),
    "custom": lambda: nx.jit(nx.checkpoint(model))(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_traceback_ends_in_user_code(name):
    with pytest.raises(nx.ShapeError) as caught:
        CALLS[name]()
    frames = traceback.extract_tb(caught.tb)
    assert {frame.filename for frame in frames} == {__file__}
    assert frames[-1].name == "model"
    assert frames[-1].line == "return nx.matmul(x, nx.ones((5, 2)))"


#: Eager calls of functions in Python with an invalid argument.
EAGER = {
    "arange": lambda: nx.arange(3, dtype="f99"),
    "argpartition": lambda: nx.argpartition(X, 9),
    "batches": lambda: nx.data.batches(X, 0),
    "cond": lambda: nx.cond(True, lambda: nx.ones(2), lambda: nx.ones(3)),
    "checkpoint": lambda: nx.checkpoint(model)(X),
    "compare": lambda: nx.compare(model)(X),
    "conv_transpose": lambda: nx.nn.conv_transpose(X, X),
    "cross": lambda: nx.cross(X, nx.ones(5)),
    "custom_vjp": lambda: nx.custom_vjp(lambda x: x)(1.0),
    "device_put": lambda: nx.device_put(X, "nowhere"),
    "einsum": lambda: nx.einsum("ij,jk->ik", X, X),
    "fft2": lambda: nx.fft.fft2(X, axes=(0, 9)),
    "fori": lambda: nx.fori(0, 2, lambda i, x: nx.ones(3), nx.ones(2)),
    "gammainc": lambda: nx.special.gammainc(nx.ones(2), nx.ones(3)),
    "grad": lambda: nx.grad(model, argnums=3)(X),
    "histogram": lambda: nx.histogram(X, bins=-1),
    "inv": lambda: nx.linalg.inv(X),
    "iterated": lambda: [nx.unstack(x, axis=5) for x in [X]],
    "jvp": lambda: nx.jvp(model, (X,), (nx.ones(7),)),
    "layer": lambda: nx.nn.gru_cell(X, X, X, X),
    "linearize": lambda: nx.linearize(nx.sin, X)[1](nx.ones(7)),
    "mesh": lambda: nx.Mesh(data=0),
    "method": lambda: X.sum(axis=7),
    "moveaxis": lambda: nx.moveaxis(X, 0, 9),
    "named_scope": lambda: nx.named_scope("a/b"),
    "optimizer": lambda: nx.optim.apply_updates({"w": X}, {"v": X}),
    "place": lambda: X.at[0].divide(nx.ones(9)),
    "pullback": lambda: nx.vjp(nx.sin, X)[1](nx.ones(7)),
    "random": lambda: nx.random.binomial(nx.ones(3), 2, 0.5),
    "reshape method": lambda: X.reshape(7),
    "sample": lambda: 2.0 * nx.random.normal(nx.random.key(0)),
    "scan": lambda: nx.scan(lambda c, x: (c, x), 0, nx.ones(2), length=3),
    "shard_jit": lambda: nx.shard_jit(model, mesh(), input_shardings=[{}])([[1], [2], [3]]),
    "shard_map": lambda: nx.shard_map(model, mesh(), (None,), None, compiler="evaluator")(X),
    "split": lambda: nx.split(X, 3),
    "stream": lambda: nx.stream(lambda x, s: (x, s), nx.template(3), 0.0).send(X),
    "tree": lambda: nx.tree.map(lambda x, y: x, {"a": X}, {"b": X}),
    "vectorize": lambda: nx.vectorize(X, ["a", "b", "c"]),
    "vjp": lambda: nx.vjp(model, X),
    "vmap": lambda: nx.vmap(lambda x: x, in_axes=4)(X),
    "while": lambda: nx.while_loop(lambda s: s, lambda s: s, X),
}


@pytest.mark.parametrize("name", EAGER)
def test_traceback_of_an_eager_call_ends_in_user_code(name):
    with pytest.raises(nx.NxlaError) as caught:
        EAGER[name]()
    assert {frame.filename for frame in traceback.extract_tb(caught.tb)} == {__file__}


@pytest.mark.parametrize("call", [lambda: nx.sum(X, dim=0), lambda: nx.einsum("i", X, out=X)])
def test_traceback_of_an_unknown_keyword_ends_in_user_code(call):
    with pytest.raises(TypeError, match="; ") as caught:
        call()
    assert {frame.filename for frame in traceback.extract_tb(caught.tb)} == {__file__}


def test_errors_from_python_code_end_at_the_call():
    with pytest.raises(nx.ArgumentError) as caught:
        nx.vmap(lambda x, y: x, in_axes=(0,))(X, X)
    frames = traceback.extract_tb(caught.tb)
    assert {frame.filename for frame in frames} == {__file__}


def test_exceptions_of_the_user_keep_their_frames():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        nx.grad(lambda x: fail(x))(1.0)
    frames = traceback.extract_tb(caught.tb)
    assert [frame.name for frame in frames][-2:] == ["<lambda>", "fail"]
    assert {frame.filename for frame in frames} == {__file__}


def test_environment_variable_keeps_all_frames():
    code = "import nxla as nx\nnx.grad(lambda x: nx.sum(x @ nx.ones(5)))(nx.ones(3))"
    texts = {}
    for value in ("0", "1"):
        environment = {**os.environ, "NXLA_FULL_TRACEBACKS": value}
        command = [sys.executable, "-c", code]
        completed = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False
        )
        assert "ShapeError" in completed.stderr
        texts[value] = completed.stderr
    assert "gradients.py" in texts["1"]
    assert "gradients.py" not in texts["0"]
