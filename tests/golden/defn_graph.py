"""Running the cases of splitting: an expression, where it is cut, and what stages come of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nxla as nx
from golden import text
from golden.compare import same_dtype
from golden.defn_case import Case, Recorder, Verdict, attempt, judge, like_nx
from golden.elixir import evaluate, function
from golden.values import Failure, dtype_name


def run(case: Case, name: str) -> Iterator[Verdict]:
    """Split the function of a case; give a verdict on its stages and on what they compute."""
    recorder = Recorder()
    operands = attempt(case.operands)
    found = attempt(lambda: _split(case, recorder, operands))
    if isinstance(found, Exception):
        yield Verdict("result", judge(case.expected, found))
        return
    stages = found
    actual = attempt(lambda: nx.graph.run(stages, *operands, compiler=name))
    if not _upstream_failure(case):
        yield Verdict("result", judge(case.expected, actual))
    else:
        # Nx fails to run these stages; what the function gives unsplit is right.
        yield Verdict("result", judge(_plain(case), actual))
    if "stages" in case.raw and name == "evaluator":
        yield Verdict("stages", attempt(lambda: _stages_mismatch(case.raw["stages"], stages)))


def _upstream_failure(case: Case) -> bool:
    return (
        isinstance(case.expected, Failure)
        and case.expected.native
        and "error" not in (case.raw.get("plain_result") or {"error": 0})
    )


def _plain(case: Case) -> Any:
    from golden.defn_case import decode_result

    return decode_result(case.raw["plain_result"])


def _split(case: Case, recorder: Recorder, operands: list[Any]) -> nx.StageGraph:
    module = case.module(recorder)
    body = function(module, case.raw["fun"].split("/")[0], {"rec": recorder})
    decide = evaluate(case.raw["split"])
    with like_nx():
        expression = nx.debug_expr(body)(*operands)
    if case.raw.get("initial_acc") is None:
        return nx.graph.split(expression, lambda node: _decision(decide(node)))
    initial = evaluate(case.raw["initial_acc"])

    def with_state(node: nx.graph.Node, state: Any) -> tuple[Any, Any]:
        decision, state = decide(node, state)
        return _decision(decision), state

    stages, _ = nx.graph.split(expression, with_state, initial)
    return stages


def _decision(answer: Any) -> Any:
    return str(answer) if isinstance(answer, str) else answer


def _stages_mismatch(expected: list[dict[str, Any]], stages: nx.StageGraph) -> str | None:
    """Compare stages: how many, where their arguments come from, their text and their outputs."""
    found = stages.stages
    if len(found) != len(expected):
        return f"{len(found)} stages, expected {len(expected)}"
    for place, (want, got) in enumerate(zip(expected, found, strict=True)):
        arguments = [list(source) for source in got.arguments]
        if arguments != want["arguments"]:
            return f"stage {place}: arguments {arguments}, expected {want['arguments']}"
        outputs = [(tuple(shape), str(dtype)) for shape, dtype in got.expr.outputs]
        wanted = [(tuple(o["shape"]), dtype_name(o["type"])) for o in want["outputs"]]
        if len(outputs) != len(wanted) or any(
            shape != want_shape or not same_dtype(want_dtype, dtype)
            for (shape, dtype), (want_shape, want_dtype) in zip(outputs, wanted, strict=True)
        ):
            return f"stage {place}: outputs {outputs}, expected {wanted}"
        why = text.mismatch(want["expr"], str(got.expr))
        if why is not None:
            return f"stage {place}: {why}"
    return None
