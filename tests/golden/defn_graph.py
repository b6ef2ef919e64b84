"""Run the cases of splitting: an expression, the positions of cuts, and the expected stages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nxla as nx
from golden import stages
from golden.defn_case import Case, Recorder, Verdict, attempt, decode_result, like_nx, result
from golden.elixir import evaluate, function
from golden.values import Failure


def run(case: Case, name: str) -> Iterator[Verdict]:
    """Split the function of a case; yield verdicts on its stages and on their results."""
    recorder = Recorder()
    operands = attempt(case.operands)
    found = attempt(lambda: _split(case, recorder, operands))
    if isinstance(found, BaseException):
        yield result(case, found)
        return
    actual = attempt(lambda: nx.graph.run(found, *operands, compiler=name))
    if not _fails_in_nx(case):
        yield result(case, actual)
    else:
        # Nx fails to run these stages; the result without stages is the expected one.
        yield result(case, actual, _result_without_stages(case))
    if "stages" in case.raw and name == "evaluator":
        reason = attempt(lambda: stages.mismatch(case.raw["stages"], found))
        yield Verdict(
            "stages", reason if reason is None or isinstance(reason, str) else repr(reason)
        )


def _fails_in_nx(case: Case) -> bool:
    return (
        isinstance(case.expected, Failure)
        and case.expected.native
        and "error" not in (case.raw.get("plain_result") or {"error": 0})
    )


def _result_without_stages(case: Case) -> Any:
    return decode_result(case.raw["plain_result"])


def _split(case: Case, recorder: Recorder, operands: list[Any]) -> nx.StageGraph:
    module = case.module(recorder)
    body = function(module, case.raw["fun"].split("/")[0], {"rec": recorder})
    decide = evaluate(case.raw["split"])
    with like_nx():
        expression = nx.debug_expr(body)(*operands)
    if case.raw.get("initial_acc") is None:
        return nx.graph.split(expression, lambda node: _as_text(decide(node)))
    initial = evaluate(case.raw["initial_acc"])

    def with_state(node: nx.graph.Node, state: Any) -> tuple[Any, Any]:
        decision, state = decide(node, state)
        return _as_text(decision), state

    return nx.graph.split(expression, with_state, initial)[0]


def _as_text(decision: Any) -> Any:
    return str(decision) if isinstance(decision, str) else decision
