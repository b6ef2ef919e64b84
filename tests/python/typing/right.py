"""Typical user code, which type checkers must accept with exact types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, assert_type

import nxla as nx
from nxla.typing import TensorLike


@dataclass
class Layer:
    weight: nx.Tensor
    bias: nx.Tensor


class Batch(NamedTuple):
    images: nx.Tensor
    labels: nx.Tensor


Params = dict[str, Layer]


def predict(params: Params, images: nx.Tensor) -> nx.Tensor:
    layer = params["out"]
    return images @ layer.weight + layer.bias


def loss(params: Params, batch: Batch, rate: float = 0.1) -> nx.Tensor:
    """Return the mean squared error of the predictions."""
    return nx.mean((predict(params, batch.images) - batch.labels) ** 2) * rate


def loss_and_guess(params: Params, batch: Batch) -> tuple[nx.Tensor, list[nx.Tensor]]:
    guess = predict(params, batch.images)
    return nx.sum(guess), [guess]


def functions_keep_their_types(params: Params, batch: Batch) -> None:
    fast = nx.jit(loss)
    assert_type(fast(params, batch), nx.Tensor)
    assert_type(fast(params, batch, rate=0.5), nx.Tensor)
    assert_type(fast.__name__, str)
    assert_type(nx.jit(loss_and_guess)(params, batch), tuple[nx.Tensor, list[nx.Tensor]])
    assert_type(nx.defn(loss)(params, batch, 0.5), nx.Tensor)
    assert_type(nx.jit_apply(loss, params, batch), nx.Tensor)


def gradients_have_the_type_of_the_argument(params: Params, batch: Batch) -> None:
    assert_type(nx.grad(loss)(params, batch), Params)
    assert_type(nx.grad(loss, 1)(params, batch), Batch)
    assert_type(nx.grad(loss, (0, 1))(params, batch), tuple[Params, Batch])
    assert_type(nx.value_and_grad(loss)(params, batch), tuple[nx.Tensor, Params])
    gradient, guess = nx.grad(loss_and_guess, has_aux=True)(params, batch)
    assert_type(gradient, Params)
    assert_type(guess, list[nx.Tensor])


def square(x: TensorLike) -> nx.Tensor:
    return nx.multiply(x, x)


def gradients_of_numbers_are_tensors() -> None:
    assert_type(nx.grad(square)(2.0), nx.Tensor)
    assert_type(nx.value_and_grad(square)(2), tuple[nx.Tensor, nx.Tensor])
    assert_type(nx.grad(nx.grad(square))(2.0), nx.Tensor)


@nx.jit
def plain(x: nx.Tensor) -> nx.Tensor:
    return nx.tanh(x)


@nx.jit(compiler="xla", static_argnames="power")
def with_options(x: nx.Tensor, power: int) -> tuple[nx.Tensor, int]:
    return x**power, power


@nx.defn
def inlined(x: nx.Tensor, scale: float = 1.0) -> nx.Tensor:
    return x * scale


class Model:
    def __init__(self, weight: nx.Tensor) -> None:
        self.weight = weight

    @nx.jit
    def __call__(self, x: nx.Tensor) -> nx.Tensor:
        return x @ self.weight

    @nx.jit
    def scaled(self, x: nx.Tensor, by: float) -> nx.Tensor:
        return x @ self.weight * by


def decorators_keep_types(x: nx.Tensor) -> None:
    assert_type(plain(x), nx.Tensor)
    assert_type(with_options(x, power=2), tuple[nx.Tensor, int])
    assert_type(inlined(x, scale=2.0), nx.Tensor)
    model = Model(x)
    assert_type(model(x), nx.Tensor)
    assert_type(model.scaled(x, 2.0), nx.Tensor)
    assert_type(plain.debug_expr(nx.template((2,))), nx.Expression)
    assert_type(plain.compile(nx.template((2,)))(x), nx.Tensor)
    assert_type(nx.compile(loss_and_guess, []), nx.Compiled[tuple[nx.Tensor, list[nx.Tensor]]])


def operators(x: nx.Tensor) -> None:
    assert_type(x + 1, nx.Tensor)
    assert_type(1.5 - x, nx.Tensor)
    assert_type(x @ x.T, nx.Tensor)
    assert_type(x == 0, nx.Tensor)
    assert_type((x > 0) & ~(x < 3), nx.Tensor)
    assert_type(x[0], nx.Tensor)
    assert_type(x[..., None, 1:-1:2], nx.Tensor)
    assert_type([row for row in x], list[nx.Tensor])  # noqa: C416
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype == nx.float32, bool)
    assert_type(x.names, list[str | None])
    assert_type(float(x), float)


def arguments(x: nx.Tensor) -> None:
    assert_type(nx.sum(x, axis=0, keepdims=True), nx.Tensor)
    assert_type(nx.sum(x, axis=("batch", 1)), nx.Tensor)
    assert_type(nx.zeros((2, 3), dtype="bf16"), nx.Tensor)
    assert_type(nx.zeros(3, dtype=nx.float64), nx.Tensor)
    assert_type(nx.tensor([[1.0, 2.0]]), nx.Tensor)
    assert_type(nx.where(x > 0, x, 0.0), nx.Tensor)


def loops(x: nx.Tensor) -> None:
    state = nx.while_loop(lambda s: s[1] < 3, lambda s: (s[0] * 2, s[1] + 1), (x, x))
    assert_type(state, tuple[nx.Tensor, nx.Tensor])


def decide(node: nx.Node) -> nx.graph.Decision:
    return "after" if node.op == "dot" else "none"


def count(node: nx.Node, seen: int) -> tuple[nx.graph.Decision, int]:
    return ("before" if seen % 3 == 0 else None), seen + 1


def stages(x: nx.Tensor) -> None:
    expression = nx.debug_expr(plain)(x)
    assert_type(nx.graph.split(expression, decide), nx.StageGraph)
    assert_type(nx.graph.split(expression, count, 0), tuple[nx.StageGraph, int])


class Echo(nx.Compiler):
    name = "echo"

    def compile(
        self, expression: nx.Expression, options: dict[str, object]
    ) -> Callable[[list[nx.Tensor]], list[nx.Tensor]]:
        def run(inputs: list[nx.Tensor]) -> list[nx.Tensor]:
            return list(expression.run(*inputs, **options))

        return run


def methods_have_types(x: nx.Tensor) -> None:
    x[0] = 1.0
    x[x > 0, None, ..., ::2] += 1
    assert_type(x.sum(0).reshape(2, -1).T.mT, nx.Tensor)
    assert_type(x.at[0, 1:].set(2.0).max(axis=(0, 1), keepdims=True), nx.Tensor)
    assert_type(x.astype(nx.int32).nonzero(), tuple[nx.Tensor, ...])
    assert_type(nx.where(x > 0, x, 0.0), nx.Tensor)
    assert_type(nx.where(x > 0), tuple[nx.Tensor, ...])
    assert_type(nx.unique_counts(x).values, nx.Tensor)
