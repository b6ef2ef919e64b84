"""Containers with too many levels or cycles raise an error before the stack overflows."""

import sys
import threading

import pytest

import nxla as nx

MAX_DEPTH = 256
#: The largest number of axes of a tensor.
MAX_RANK = 64

ENTRIES = {
    "tensor": nx.tensor,
    "eager": nx.sin,
    "jit": lambda x: nx.jit(lambda x: x)(x),
    "compile": lambda x: nx.compile(lambda x: x, [x]),
    "result": lambda x: nx.jit(lambda _: x)(1.0),
    "tree": nx.tree.flatten if hasattr(nx.tree, "flatten") else nx.tensor,
}


def nested(depth, wrap, leaf=1.0):
    value = leaf
    for _ in range(depth):
        value = wrap(value)
    return value


def cyclic_list():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize(
    "value", [nested(6_000, lambda x: [x]), nested(200_000, lambda x: (x,)), cyclic_list()],
    ids=["6,000 lists", "200,000 tuples", "cycle"],
)  # fmt: skip
def test_deep_containers_are_refused(entry, value):
    with pytest.raises(nx.ArgumentError, match="nested at most 256 deep"):
        entry(value)


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: (x, x), lambda x: {"a": x}])
def test_containers_may_be_as_deep_as_the_limit(wrap):
    depth = 8 if isinstance(wrap(0), tuple) else MAX_DEPTH
    found = []
    value = nested(depth, wrap, nx.tensor(3.0))
    threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=lambda: found.append(nx.jit(lambda x: x)(value)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
    leaf = found[0]
    for _ in range(depth):
        leaf = leaf["a"] if isinstance(leaf, dict) else leaf[0]
    assert leaf.item() == 3.0


def test_lists_of_numbers_may_be_as_deep_as_the_limit():
    deep = nested(MAX_RANK, lambda x: [x])
    tensor = nx.tensor(deep)
    assert tensor.ndim == MAX_RANK
    assert tensor.tolist() == deep
    assert repr(tensor).count("[1]") == MAX_RANK


@pytest.mark.parametrize("rank", [MAX_RANK + 1, MAX_DEPTH, 70_000])
def test_ranks_beyond_the_limit_are_refused_everywhere(rank):
    shape = (1,) * rank
    x = nx.ones(shape[:MAX_RANK])
    calls = [
        lambda: nx.reshape(nx.tensor(1.0), shape),
        lambda: nx.jit(lambda x: nx.reshape(x, shape))(1.0),
        lambda: nx.zeros(shape),
        lambda: nx.broadcast_to(1.0, shape),
        lambda: nx.template(shape, "f32"),
        lambda: nx.expand_dims(x, 0),
        lambda: nx.jit(lambda x: nx.expand_dims(x, 0))(x),
        lambda: nx.stack([x, x]),
        lambda: nx.iota(shape),
    ]
    if rank <= MAX_DEPTH:
        calls.append(lambda: nx.tensor(nested(rank, lambda x: [x])))
    for call in calls:
        with pytest.raises(nx.NxlaError, match="must have at most 64 axes; got"):
            call()


def chain_of_conditionals(x, depth):
    if depth == 0:
        return nx.sin(x)
    return nx.cond(x > depth, lambda: chain_of_conditionals(x, depth - 1), lambda: x)


def chain_of_loops(x, depth):
    if depth == 0:
        return nx.sin(x)
    return nx.while_loop(lambda s: s > 9, lambda s: chain_of_loops(s, depth - 1), x)


def run_with_1_mb_stack(function):
    """Return the result or the exception of a function on a small stack."""
    found = []

    def run():
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
        sys.setrecursionlimit(limit)
    return found[0]


@pytest.mark.parametrize("function", [chain_of_conditionals, chain_of_loops])
def test_regions_that_nest_too_deep_are_refused(function):
    error = run_with_1_mb_stack(lambda: nx.jit(lambda x: function(x, 5_000))(1.0))
    assert isinstance(error, nx.ArgumentError), error
    assert "nested at most 64 deep" in str(error)


@pytest.mark.parametrize("function", [chain_of_conditionals, chain_of_loops])
def test_regions_may_nest_to_the_limit(function):
    def use():
        expression = nx.debug_expr(lambda x: function(x, 60))(1.0)
        assert "a:0" in str(expression)
        assert nx.debug_expr(nx.grad(lambda x: function(x, 60)))(1.0) is not None
        return nx.jit(lambda x: function(x, 60), compiler="evaluator")(0.5).item()

    assert run_with_1_mb_stack(use) == 0.5
