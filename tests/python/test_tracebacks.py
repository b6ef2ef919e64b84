"""Tracebacks of errors in traced functions: the frames of the user, and no others."""

import os
import subprocess
import sys
import traceback

import pytest

import nxla as nx


def model(x):
    return nx.matmul(x, nx.ones((5, 2)))


def deep(x):
    return nx.sum(model(x))


X = nx.ones((2, 3))

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
def test_a_traceback_ends_at_the_frame_of_the_user(name):
    with pytest.raises(nx.ShapeError) as caught:
        CALLS[name]()
    frames = traceback.extract_tb(caught.tb)
    assert {frame.filename for frame in frames} == {__file__}
    assert frames[-1].name == "model"
    assert frames[-1].line == "return nx.matmul(x, nx.ones((5, 2)))"


def test_an_error_that_the_package_raises_itself_ends_at_the_call():
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


def test_a_variable_keeps_all_frames():
    code = "import nxla as nx\nnx.grad(lambda x: nx.sum(x @ nx.ones(5)))(nx.ones(3))"
    texts = {}
    for value in ("0", "1"):
        environment = {**os.environ, "NXLA_FULL_TRACEBACKS": value}
        command = [sys.executable, "-c", code]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert "ShapeError" in ran.stderr
        texts[value] = ran.stderr
    assert "gradients.py" in texts["1"]
    assert "gradients.py" not in texts["0"]
