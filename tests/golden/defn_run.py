"""Running all cases of numerical functions on an engine, with an outcome for each aspect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from golden import defn, defn_case, defn_graph, skips
from golden.ops import NATIVE
from golden.report import Outcome
from golden.values import Failure


def run(cases: Iterable[dict[str, Any]], engine: str, rules: list[skips.Skip]) -> Iterator[Outcome]:
    """Run cases one by one.

    The outcome of the result counts under the group's name, those of other aspects under the name
    of the aspect too.
    """
    for raw in cases:
        case = defn_case.read(raw)
        runner = defn_graph.run if case.kind == "graph" else defn.run
        for verdict in runner(case, engine):
            status, why = _status(case, verdict, skips.reason(rules, raw, engine, verdict.aspect))
            label = "" if verdict.aspect == "result" else f" {verdict.aspect}"
            source = raw.get("code") or raw["source"].strip()
            yield Outcome(case.id, raw["group"] + label, engine, status, why, source)


def _status(case: defn_case.Case, verdict: defn_case.Verdict, skip: str | None) -> tuple[Any, str]:
    """Return the status of an aspect, and why it is that."""
    if skip is not None:
        return "skipped", skip
    if verdict.why is not None:
        return "failed", verdict.why
    accident = isinstance(case.expected, Failure) and case.expected.native
    if accident and verdict.aspect == "result" and case.kind != "graph":
        return "skipped", NATIVE
    return "passed", ""
