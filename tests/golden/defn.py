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
    known = {"rec": recorder}
    body = function(module, case.raw["fun"].split("/")[0], known)

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

    def whole() -> Any:
        given = {f"a{place}": value for place, value in enumerate(case.operands())}
        with backend(name), like_nx():
            return evaluate(case.raw["code"], given, module, {"rec": recorder})

    return attempt(whole)


def _call(
    case: Case, traced: Any, operands: list[Any], recorder: Recorder, name: str
) -> Iterator[Verdict]:
    """Call the function; judge what it returns, shows and prints."""
    hooks = recorder.hooks(case.raw.get("jit_opts") or "")
    with printed() as output:
        actual = attempt(lambda: nx.jit(traced, compiler=name, hooks=hooks)(*operands))
    expected = case.expected
    if "grad(" in case.raw["source"]:
        expected = gradients.with_our_dtypes(expected, actual)
    yield result(case, actual, expected)
    if "io_calls" in case.raw:
        wanted = [(tag, decode_result(value)) for tag, value in case.raw["io_calls"]]
        yield Verdict("calls", judge(wanted, recorder.calls))
    if case.raw.get("stdout"):
        yield Verdict("stdout", _output_mismatch(case.raw["stdout"], output.getvalue()))


def _output_mismatch(expected: str, actual: str) -> str | None:
    """Compare printed text: expressions as graphs, everything else except for white space."""
    if "Nx.Defn.Expr" in expected:
        label, _, rest = expected.partition("#")
        if not actual.startswith(label.rstrip("{")):
            return f"printed {actual!r}, expected {expected!r}"
        return text.mismatch("#" + rest, actual[len(label) :])
    wanted, found = (
        re.sub(r" ?([<>]) ?", r"\1", " ".join(output.split()))
        for output in (expected.replace("#Nx.", "#nxla."), actual)
    )
    return None if wanted == found else f"printed {found!r}, expected {wanted!r}"


def expression_mismatch(expected: str, traced: Any, operands: list[Any]) -> str | None:
    """Compare the printed expression of a function with the recorded one."""
    texts: list[str] = []

    def look(*inputs: Any) -> Any:
        result = traced(*inputs)
        texts.append(inspect(nx.tree.map(_lifted, result)))
        return result

    with like_nx(), printed():
        failed = attempt(lambda: nx.debug_expr(look)(*operands))
    if isinstance(failed, BaseException):
        return f"{type(failed).__name__}: {failed}"
    return text.mismatch(expected, texts[0])


def _lifted(leaf: Any) -> Any:
    """Make a traced value of a number or a tensor, which have no text as expressions."""
    return leaf if isinstance(leaf, nx.Expr) else nx.reshape(leaf, nx.tensor(leaf).shape)
