"""Run all cases of numerical functions on a backend, with an outcome for each aspect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from golden import defn, defn_case, defn_graph, skips
from golden.ops import NATIVE
from golden.report import Outcome
from golden.values import Failure, numbers_of_nx


def run(
    cases: Iterable[dict[str, Any]], backend: str, rules: Sequence[skips.Skip]
) -> Iterator[Outcome]:
    """Run cases one by one.

    The name of the group identifies the outcome of the result; other outcomes also have the name of
    the aspect.
    """
    for raw in cases:
        # Every exception is an outcome of the case and must not end the run.
        case = defn_case.attempt(lambda raw=raw: defn_case.read(raw))
        if isinstance(case, BaseException):
            reason = f"{type(case).__name__}: {case}"
            yield Outcome(
                raw["id"], raw["group"], backend, "failed", reason, str(raw.get("source"))
            )
            continue
        runner = defn_graph.run if case.kind == "graph" else defn.run
        with numbers_of_nx():
            found = defn_case.attempt(lambda case=case, runner=runner: [*runner(case, backend)])
        if isinstance(found, BaseException):
            found = [defn_case.Verdict("result", f"{type(found).__name__}: {found}")]
        for verdict in found:
            yield _outcome(case, verdict, backend, rules)


def _outcome(
    case: defn_case.Case, verdict: defn_case.Verdict, backend: str, rules: Sequence[skips.Skip]
) -> Outcome:
    """Return the outcome of an aspect."""
    label = "" if verdict.aspect == "result" else f" {verdict.aspect}"
    labels = case.id, case.raw["group"] + label, backend
    source = case.raw.get("code") or case.raw["source"].strip()
    if verdict.reason is None:
        native = isinstance(case.expected, Failure) and case.expected.native
        unknown = native and not verdict.raised
        if unknown and verdict.aspect == "result" and case.kind != "graph":
            return Outcome(*labels, "skipped", NATIVE, source)
        return Outcome(*labels, "passed", "", source)
    rule = skips.find(rules, case.raw, backend, skips.Deviation(verdict.reason), verdict.aspect)
    if rule is None:
        return Outcome(*labels, "failed", verdict.reason, source)
    return Outcome(*labels, "skipped", rule.reason, source, rule)
