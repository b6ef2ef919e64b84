"""Running the cases of numerical functions, and of snippets that use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import nxla as nx
from golden import gradients, text
from golden.defn_case import (
    Case,
    Recorder,
    Verdict,
    attempt,
    backend,
    decode_result,
    judge,
    like_nx,
    printed,
    result,
)  # fmt: skip
from golden.elixir import evaluate, function
from golden.elixir.inspect import inspect
from golden.elixir.interpreter import Module


def run(case: Case, name: str) -> Iterator[Verdict]:
    """Run a case on a backend; give a verdict on each of its aspects.

    Printed expressions do not depend on the backend, so only the evaluator compares them.
    """
    recorder = Recorder()
    module = attempt(lambda: case.module(recorder))
    if isinstance(module, BaseException):
        yield result(case, module)
        return
    if case.kind == "snippet":
        yield result(case, _snippet(case, module, recorder, name))
        return
    static = evaluate(case.raw.get("static_args", "[]"))
    builtins = {"rec": recorder}
    body = function(module, case.raw["fun"].split("/")[0], builtins)

    def traced(*inputs: Any) -> Any:
        return body(*inputs, *static)

    operands = attempt(case.operands)
    if isinstance(operands, BaseException):
        yield result(case, operands)
        return
    yield from _call(case, traced, operands, recorder, name)
    if name == "evaluator" and isinstance(case.raw.get("expr"), str):
        yield Verdict("expr", expression_mismatch(case.raw["expr"], traced, operands))
    if "grad" in case.raw:
        yield Verdict("grad", gradients.mismatch(case, traced, operands, name))


def _snippet(case: Case, module: Module, recorder: Recorder, name: str) -> Any:
    """Run the code of a snippet, in which inputs are called a0, a1, …."""

    def run_code() -> Any:
        variables = {f"a{position}": value for position, value in enumerate(case.operands())}
        with backend(name), like_nx():
            return evaluate(case.raw["code"], variables, module, {"rec": recorder})

    return attempt(run_code)


def _call(
    case: Case, traced: Any, operands: list[Any], recorder: Recorder, name: str
) -> Iterator[Verdict]:
    """Call the function; judge its results, the values of its hooks and its output."""
    hooks = recorder.hooks(case.raw.get("jit_opts") or "")
    with printed() as output:
        actual = attempt(lambda: nx.jit(traced, compiler=name, hooks=hooks)(*operands))
    expected = case.expected
    if "grad(" in case.raw["source"]:
        expected = gradients.with_nxla_dtypes(expected, actual)
    yield result(case, actual, expected)
    if "io_calls" in case.raw:
        calls = [(tag, decode_result(value)) for tag, value in case.raw["io_calls"]]
        yield Verdict("calls", judge(calls, recorder.calls))
    if case.raw.get("stdout"):
        yield Verdict("stdout", _output_mismatch(case.raw["stdout"], output.getvalue()))


def _output_mismatch(expected: str, actual: str) -> str | None:
    """Compare printed text: expressions as graphs, everything else except for white space."""
    if "Nx.Defn.Expr" in expected:
        label, _, rest = expected.partition("#")
        if not actual.startswith(label.rstrip("{")):
            return f"printed {actual!r}, expected {expected!r}"
        return text.mismatch("#" + rest, actual[len(label) :])
    normalized, found = (
        re.sub(r" ?([<>]) ?", r"\1", " ".join(output.split()))
        for output in (expected.replace("#Nx.", "#nxla."), actual)
    )
    return None if normalized == found else f"printed {found!r}, expected {normalized!r}"


def expression_mismatch(expected: str, traced: Any, operands: list[Any]) -> str | None:
    """Compare the printed expression of a function with the recorded one."""
    texts: list[str] = []

    def trace(*inputs: Any) -> Any:
        result = traced(*inputs)
        texts.append(inspect(nx.tree.map(_as_expression, result)))
        return result

    with like_nx(), printed():
        error = attempt(lambda: nx.debug_expr(trace)(*operands))
    if isinstance(error, BaseException):
        return f"{type(error).__name__}: {error}"
    return text.mismatch(expected, texts[0])


def _as_expression(leaf: Any) -> Any:
    """Convert a number or a tensor to a traced value, which is printed as an expression."""
    return leaf if isinstance(leaf, nx.Expr) else nx.reshape(leaf, nx.tensor(leaf).shape)
