"""Typical user code, which type checkers must accept with exact types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_type

import numpy as np

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


def values_keep_their_structure(x: nx.Tensor, number: TensorLike, params: Params) -> None:
    assert_type(nx.stop_grad(x), nx.Tensor)
    assert nx.stop_grad(2.0).item() == 2.0
    assert_type(nx.stop_grad(params), Params)
    assert_type(nx.multiply(nx.stop_grad(number), x), nx.Tensor)
    assert_type(nx.custom_grad((x, x), x, lambda slopes: slopes[0]), tuple[nx.Tensor, nx.Tensor])
    assert_type(nx.hook(params, "params"), Params)
    assert_type(nx.print_value(x, label="x"), nx.Tensor)
    assert_type(nx.print_expr(x), nx.Tensor)
    assert_type(nx.annotate(x, "note"), nx.Tensor)
    assert_type(nx.graph.mark([x], "layer"), list[nx.Tensor])
    assert_type(nx.device_put(np.ones(3)), nx.Tensor)
    assert_type(nx.device_put(params, "host"), Params)
    assert_type(nx.backend_copy(params), Params)
    assert_type(nx.backend_transfer(x, "host"), nx.Tensor)
    assert_type(nx.vectorize(x, "row"), nx.Tensor)
    assert_type(nx.vectorize(params, ["row", ("column", 3)]), Params)
    assert nx.vectorize([[1, 2], [3, 4]], "row").shape == (2,)
    assert_type(nx.devectorize(params, keep_names=False), Params)
    assert_type(nx.revectorize(x, [("row", 2)]), nx.Tensor)
    assert_type(nx.optim.apply_updates(params, params), Params)


@nx.custom_vjp
def clipped(x: nx.Tensor, limit: float = 1.0) -> nx.Tensor:
    return x * limit


def clipped_forward(x: nx.Tensor, limit: TensorLike) -> tuple[nx.Tensor, TensorLike]:
    return clipped(x), limit


def clipped_backward(limit: TensorLike, slope: nx.Tensor) -> tuple[nx.Tensor, nx.Tensor]:
    return nx.minimum(slope, limit), nx.zeros_like(limit)


clipped.defvjp(clipped_forward, clipped_backward)


@nx.custom_jvp(nondiff_argnums=0)
def applied(function: Callable[[nx.Tensor], nx.Tensor], x: nx.Tensor) -> list[nx.Tensor]:
    return [function(x)]


@applied.defjvp
def applied_rule(
    function: Callable[[nx.Tensor], nx.Tensor],
    primals: tuple[nx.Tensor],
    tangents: tuple[nx.Tensor],
) -> list[nx.Tensor]:
    return [function(primals[0]) * tangents[0]]


class Sine:
    @nx.custom_jvp
    def value(self, x: nx.Tensor) -> nx.Tensor:
        return nx.sin(x)


def custom_rules_keep_types(x: nx.Tensor) -> None:
    assert_type(clipped(x), nx.Tensor)
    assert_type(clipped(x, limit=2.0), nx.Tensor)
    assert_type(clipped.__name__, str)
    assert_type(applied(nx.sin, x), list[nx.Tensor])
    assert_type(applied_rule(nx.sin, (x,), (x,)), list[nx.Tensor])
    assert_type(Sine().value(x), nx.Tensor)
    assert_type(nx.grad(clipped)(x), nx.Tensor)
    assert_type(nx.jit(clipped)(x, 2.0), nx.Tensor)


def counted_loops(x: nx.Tensor, batch: Batch) -> None:
    assert_type(nx.fori(0, 5, lambda i, total: total + i, x), nx.Tensor)
    assert nx.fori(0, 5, lambda i, total: total * (i + 1), 1).item() == 120
    nx.fori(0, 5, lambda i, state: (state[0] + i, state[1]), (0.0, x))
    pair = nx.fori(0, 5, lambda i, state: (state[0] + i, state[1] * 2), (x, x))
    assert_type(pair, tuple[nx.Tensor, nx.Tensor])
    assert_type(nx.for_each(range(5), lambda i, total: total + i, x), nx.Tensor)
    assert nx.for_each(x, lambda row, total: total + row, 0.0, unroll=2).shape == ()
    folded = nx.for_each(batch, lambda b, s: (s[0] + b.images, s[1] + b.labels), (x, x))
    assert_type(folded, tuple[nx.Tensor, nx.Tensor])


def branches(x: nx.Tensor, params: Params) -> None:
    assert_type(nx.cond(x > 0, nx.sqrt, nx.zeros_like, x), nx.Tensor)
    assert_type(nx.cond(x > 0, lambda: x, lambda: 0.0), nx.Tensor)
    assert nx.cond(x > 0, lambda: 1.0, lambda: -1.0).shape == ()
    assert_type(nx.cond(x > 0, lambda: (x, x), lambda: (x, -x)), tuple[nx.Tensor, nx.Tensor])
    assert_type(nx.cond([(x > 0, lambda: x)], otherwise=lambda: x), nx.Tensor)
    assert_type(nx.cond([(x > 0, lambda: [x])], otherwise=lambda: [x]), list[nx.Tensor])
    assert_type(nx.if_(x > 0, lambda: x * 10), nx.Tensor)
    assert_type(nx.if_(x > 0, lambda: params, lambda: params), Params)
    assert_type(nx.switch(x, [nx.sin, nx.cos], x), nx.Tensor)
    assert_type(nx.switch(x, [lambda: x, lambda: 0]), nx.Tensor)
    pairs = nx.switch(x, [lambda: (x, x), lambda: (x, -x)])
    assert_type(pairs, tuple[nx.Tensor, nx.Tensor])


def other_derivatives(x: nx.Tensor, params: Params, batch: Batch) -> None:
    value, slope = nx.jvp(nx.sin, (x,), (1.0,))
    assert_type(value * slope, nx.Tensor)
    value, slope, guess = nx.jvp(loss_and_guess, (params, batch), (params, batch), has_aux=True)
    assert_type(guess, list[nx.Tensor])
    value, pull = nx.vjp(loss, params, batch)
    assert_type(value, nx.Tensor)
    assert len(pull(1.0)) == 2
    value, push = nx.linearize(nx.sin, x)
    assert_type(push(1.0), nx.Tensor)
    nx.jacfwd(loss, has_aux=False)(params, batch, rate=0.5)
    nx.vmap(loss, in_axes=(None, 0))(params, batch)
    nx.vmap(nx.grad(lambda x: nx.sum(x**2)))(x)


def untyped_values_stay_untyped(x: nx.Tensor, value: Any, function: Callable[..., Any]) -> None:
    assert_type(nx.stop_grad(value), Any)
    assert_type(nx.hook(value, function), Any)
    assert_type(nx.device_put(value), Any)
    assert_type(nx.vectorize(value, "row"), Any)
    assert_type(nx.cond(x > 0, function, function, value), Any)
    assert_type(nx.cond([(x > 0, lambda: value)], otherwise=lambda: value), Any)
    assert_type(nx.if_(x > 0, lambda: value), Any)
    assert_type(nx.switch(x, [function, function], value), Any)
    assert_type(nx.fori(0, 4, function, value), Any)
    assert_type(nx.for_each(range(4), function, value), Any)
    assert_type(nx.jvp(function, (x,), (x,))[0], Any)
    assert_type(nx.vjp(function, x)[0], Any)
    assert_type(nx.vmap(function)(x), Any)
