"""Stages on the evaluator return the same bits as the whole program, for every cut."""

import numpy as np
import pytest

import nxla as nx

DECISIONS = ("before", "after", "both")

_UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "negative",
    "real",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "logical_not",
]
_BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "pow",
    "remainder",
    "atan2",
    "minimum",
    "maximum",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
]
_INTEGER = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "quotient",
    "remainder",
    "pow",
]


def _with_constants(name):
    """Apply a binary op to `x` and a constant on either side."""
    op = getattr(nx, name)
    return lambda x: [op(x, c) for c in (-1, 0, 0.5, 1, 2, 3)] + [op(2, x), op(x, x)]


def _integers(name):
    op = getattr(nx, name)
    return lambda x: [op(nx.astype(x, "s32"), c) for c in (1, 2, 3)]


FUNCTIONS = {
    **{name: getattr(nx, name) for name in _UNARY},
    **{name: _with_constants(name) for name in _BINARY},
    **{f"{name} of integers": _integers(name) for name in _INTEGER},
    "var": lambda x: nx.var(x, axis=0),
    "std": nx.std,
    "mean": lambda x: nx.mean(x, axis=1),
    "softmax": lambda x: nx.exp(x - nx.max(x)) / nx.sum(nx.exp(x - nx.max(x))),
    "NaN of constants": lambda x: x * 0 + nx.sqrt(nx.tensor(-1.0)) + nx.tensor(np.inf) * 0,
    "sign of NaN": lambda x: -(nx.log(-nx.abs(x) - 1) * -1.0),
    "iota and eye": lambda x: nx.iota((4, 6)) * x + x @ nx.eye(6),
    "where": lambda x: nx.where(x > 0, x, -0.0),
    "clip": lambda x: nx.clip(x, -1, 1),
    "dot": lambda x: x @ x.T * 0.1,
    "cumulative_sum": lambda x: nx.cumulative_sum(x, axis=1) / 3,
    "sort": lambda x: nx.sort(x, axis=1),
    "take": lambda x: nx.take(x, nx.tensor([1, 0, 3]), axis=0) ** 2,
    "pad": lambda x: nx.pad(x, 0.5, [(1, 0), (0, 2)]) ** 3,
    "window_sum": lambda x: nx.window_sum(x, (2, 3)) / 6,
    "loop": lambda x: nx.fori(0, 3, lambda i, s: s * 0.5 + x, x) ** 2,
    "cond": lambda x: nx.cond(x[0, 0] > 0, lambda: x**2, lambda: x / 3),
    "concat": lambda x: nx.concat([x, x**2], axis=0) / 7,
}

_RANDOM = np.random.default_rng(5)
X = (_RANDOM.normal(size=(4, 6)) * 2).astype(np.float32)
X[0, :5] = [0.0, -0.0, np.inf, -np.inf, np.nan]


def bits(value):
    leaves = nx.tree.leaves(value)
    return [(leaf.dtype.name, leaf.shape, nx.to_binary(leaf)) for leaf in leaves]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stages_match_the_whole_bitwise(name):
    expression = nx.debug_expr(FUNCTIONS[name])(X)
    seen = []
    nx.graph.split(expression, lambda node: seen.append(node.op) or "none")
    expected = bits(expression.run(X, compiler="evaluator"))

    def check(decisions):
        remaining = iter(decisions)
        stages = nx.graph.split(expression, lambda node: next(remaining))
        result = nx.graph.run(stages, X, compiler="evaluator")
        assert bits(result) == expected, decisions

    for decision in DECISIONS:
        check([decision] * len(seen))
    for position in range(0, len(seen), max(1, len(seen) // 4)):
        for decision in DECISIONS:
            check([decision if index == position else "none" for index in range(len(seen))])


def test_constants_are_not_stage_inputs():
    expression = nx.debug_expr(lambda x: nx.var(x**2, axis=0))(X)
    stages = nx.graph.split(expression, lambda node: "both")
    assert len(stages.stages) > 3
    for stage in stages.stages:
        # The only scalars of this program are constants.
        nodes = [node for node in stage.expr.nodes if node.op == "parameter"]
        assert all(node.shape != () for node in nodes), stage.expr
