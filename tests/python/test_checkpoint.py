"""Checkpoints: functions whose derivatives store few intermediate values."""

import subprocess
import sys

import pytest

import nxla as nx
from where import PLATFORM

POLICIES = ["nothing", "products", "everything", ["hidden"], ["no such note"]]


def f64(values):
    return nx.tensor(values, dtype=nx.float64)


def layer(x, w, *, scale):
    hidden = nx.annotate(nx.tanh(x @ w["first"]), "hidden")
    return {"x": nx.sin(hidden @ w["second"]) * scale, "norm": [nx.sum(hidden**2)]}


def weights(seed):
    def draw(phase):
        points = nx.linspace(0.3 * seed + phase, 3.0 + phase, 9, dtype=nx.float64)
        return nx.reshape(nx.sin(7.0 * points), (3, 3))

    return {"first": draw(0.0), "second": draw(1.0)}


def loss_of(wrap):
    def loss(x, layers):
        total = 0.0
        for w in layers:
            found = wrap(layer)(x, w, scale=0.5)
            x, total = found["x"], total + found["norm"][0]
        return nx.sum(x) + total

    return loss


def arguments():
    return nx.reshape(nx.linspace(-1.0, 1.0, 6, dtype=nx.float64), (2, 3)), [
        weights(1),
        weights(2),
    ]


def close(found, expected, tolerance=1e-10):
    found, expected = nx.tree.flatten(found), nx.tree.flatten(expected)
    assert len(found[0]) == len(expected[0])
    for one, other in zip(found[0], expected[0], strict=True):
        assert nx.all_close(one, other, rtol=tolerance, atol=tolerance).item(), (one, other)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_checkpointed_derivatives_match_plain_derivatives(policy, compiler):
    x, layers = arguments()
    plain, wrapped = loss_of(lambda f: f), loss_of(lambda f: nx.checkpoint(f, policy))
    with nx.default_options(compiler=compiler):
        close(nx.value_and_grad(wrapped, argnums=(0, 1))(x, layers), _plain(x, layers))
        if compiler == "xla" and policy != "products":
            return
        direction = nx.ones_like(x)
        for derivative in (
            lambda f: nx.jvp(f, (x, layers), (direction, layers)),
            lambda f: nx.jvp(lambda x: nx.grad(f)(x, layers), (x,), (direction,)),
            lambda f: nx.grad(lambda x: nx.sum(nx.sin(nx.grad(f)(x, layers))))(x),
            lambda f: nx.vmap(nx.grad(f), in_axes=(0, None))(x[:, None, :], layers),
        ):
            close(derivative(wrapped), derivative(plain))


def _plain(x, layers):
    return nx.value_and_grad(loss_of(lambda f: f), argnums=(0, 1))(x, layers)


def count(expression, op):
    """Return the number of nodes of an op in an expression, including its blocks."""
    inside = sum(count(region, op) for node in expression.nodes for region in node.regions)
    return inside + sum(node.op == op for node in expression.nodes)


@pytest.mark.parametrize(
    ("policy", "tanh", "dots"),
    [
        # Two layers with a tanh and two products each. The reverse pass has two products for each
        # of these, except for the product that only the constant argument would need.
        (None, 2, 4 + 7),
        # The second product of a layer is needed only for its cosine. The last layer runs only for
        # its gradient.
        ("nothing", 3, 2 + 7 + 4),
        ("products", 4, 4 + 7),
        (["hidden"], 2, 4 + 7 + 2),
        (["no such note"], 3, 2 + 7 + 4),
        ("everything", 2, 4 + 7),
    ],
    ids=str,
)
def test_values_that_are_not_stored_are_recomputed(policy, tanh, dots):
    x, layers = arguments()
    loss = loss_of(lambda f: f if policy is None else nx.checkpoint(f, policy))
    expression = nx.debug_expr(nx.grad(loss, argnums=1))(x, layers)
    assert (count(expression, "tanh"), count(expression, "dot")) == (tanh, dots)


MEMORY = """
import re, sys
from pathlib import Path
import nxla as nx

wrap, compiler, rows = sys.argv[1:]

def segment(x):
    for _ in range(4):
        x = nx.tanh(x @ w)
    return x

def loss(x):
    for _ in range(4):
        x = (nx.checkpoint(segment) if wrap == "checkpoint" else segment)(x)
    return nx.sum(x)

w = nx.eye(128)
step = nx.jit(nx.grad(loss), compiler=compiler)
x = nx.ones((int(rows), 128))

def memory_of(key):
    return int(re.search(key + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

before = memory_of("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # Reset the peak.
step(x).block_until_ready()
print((memory_of("VmHWM") - before) / (int(rows) / 2))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_checkpoints_reduce_peak_memory(compiler):
    if compiler == "xla" and PLATFORM != "cpu":
        pytest.skip("the memory of the process is that of the host")
    # The operands are large compared with the memory of compilation. The evaluator is not optimized
    # in tests.
    rows = "8192" if compiler == "xla" else "2048"

    def memory_of(wrap):
        command = [sys.executable, "-c", MEMORY, wrap, compiler, rows]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return float(run.stdout)

    # The limits in tensors of that size: a chain of 16 layers, or four stored values and one
    # segment of four layers.
    plain, checkpointed = memory_of("plain"), memory_of("checkpoint")
    assert checkpointed < plain - 4, (plain, checkpointed)


def test_python_scalars_and_captured_values_are_supported():
    scale = nx.tensor(3.0)

    @nx.checkpoint
    def power(x, n, *, name):
        assert isinstance(n, int)
        assert name == "a"
        return x**n * scale

    assert power(2.0, 3, name="a").item() == 24.0
    assert nx.grad(lambda x: power(x, 3, name="a"))(2.0).item() == 36.0
    # Captured values have gradients too.
    found = nx.grad(lambda s: nx.checkpoint(lambda x: x * s)(nx.tensor(5.0)))(2.0)
    assert found.item() == 5.0


def test_hooks_run_once():
    seen = []

    @nx.checkpoint
    def shown(x):
        return nx.sin(nx.hook(nx.sin(x), lambda y: seen.append(y.item())))

    nx.jit(nx.grad(shown))(0.5)
    assert len(seen) == 1


def test_checkpoints_inside_of_loops_and_around_them(compiler):
    rows = nx.reshape(nx.linspace(-0.5, 0.9, 10, dtype=nx.float64), (5, 2))

    def inside(wrap):
        def step(h, row):
            h = wrap(lambda h, row: nx.tanh(nx.sin(h) * row + h))(h, row)
            return h, nx.sum(h)

        def run(h):
            h, sums = nx.scan(step, h, rows)
            return nx.sum(h) + nx.sum(sums)

        return run

    h = f64([0.1, 0.2])
    expected = nx.grad(inside(lambda f: f))(h)
    with nx.default_options(compiler=compiler):
        close(nx.grad(inside(lambda f: nx.checkpoint(f, None)))(h), expected)
        close(nx.grad(inside(nx.checkpoint))(h), expected)
        close(nx.grad(nx.checkpoint(inside(lambda f: f)))(h), expected)
        close(nx.grad(nx.checkpoint(inside(nx.checkpoint), "everything"))(h), expected)


def test_invalid_arguments_raise():
    for policy in ("dots", 3, nx.sin):
        with pytest.raises(nx.ArgumentError, match="checkpoint: policy: must be 'nothing'"):
            nx.checkpoint(nx.sin, policy)
    with pytest.raises(nx.ArgumentError, match="notes must be strings"):
        nx.checkpoint(nx.sin, [1])
    with pytest.raises(nx.ArgumentError, match="function: must be callable"):
        nx.checkpoint(3.0)

    def nothing(x):
        return None

    with pytest.raises(nx.ArgumentError, match="nothing must return a tensor"):
        nx.jit(nx.checkpoint(nothing))(1.0)
