"""Wrong code that type checkers must reject, with the expected rules."""

from __future__ import annotations

import nxla as nx


@nx.jit
def scaled(x: nx.Tensor, by: float) -> nx.Tensor:
    return x * by


def total(params: dict[str, nx.Tensor]) -> nx.Tensor:
    return nx.sum(params["w"])


def calls(x: nx.Tensor) -> None:
    scaled(x)  # expected: reportCallIssue
    scaled(x, "two")  # expected: reportArgumentType
    scaled(x, by=2.0, twice=True)  # expected: reportCallIssue
    result: int = scaled(x, 2.0)  # expected: reportAssignmentType
    result.bit_length()


def gradients(x: nx.Tensor) -> None:
    nx.grad(total)(x)  # expected: reportArgumentType
    slope: nx.Tensor = nx.grad(total)({"w": x})  # expected: reportAssignmentType
    slope.tolist()


def operators(x: nx.Tensor) -> None:
    x + object()  # expected: reportOperatorIssue, reportUnusedExpression
    x @ None  # expected: reportOperatorIssue, reportUnusedExpression
    x[object()]  # expected: reportArgumentType
    x[0] = object()  # expected: reportArgumentType
    x.sum(axis=1.5)  # expected: reportArgumentType
    x.shape = (2,)  # expected: reportAttributeAccessIssue
    x.missing()  # expected: reportAttributeAccessIssue, reportUnknownMemberType


def arguments(x: nx.Tensor) -> None:
    nx.sum(x, axes=0)  # expected: reportCallIssue
    nx.sin()  # expected: reportCallIssue
    nx.sin(None)  # expected: reportArgumentType
    nx.reshape(x, "flat")  # expected: reportArgumentType
    nx.no_such_function(x)  # expected: reportAttributeAccessIssue, reportUnknownMemberType


def wrong_decision(node: nx.Node) -> int:
    return node.id


def stages(expression: nx.Expression) -> None:
    nx.graph.split(expression, wrong_decision)  # expected: reportArgumentType, reportCallIssue


def structures(x: nx.Tensor) -> None:
    kept: nx.Tensor = nx.stop_grad({"w": x})  # expected: reportAssignmentType
    kept.tolist()
    nx.vmap(total)(x)  # expected: reportArgumentType
    pair: nx.Tensor = nx.cond(x, lambda: (x, x), lambda: (x, x))  # expected: reportAssignmentType
    pair.tolist()


@nx.custom_vjp
def doubled(x: nx.Tensor) -> nx.Tensor:
    return x * 2


def rules(x: nx.Tensor) -> None:
    doubled("two")  # expected: reportArgumentType
    doubled.defjvp(doubled)  # expected: reportAttributeAccessIssue, reportUnknownMemberType
