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
            aspect = verdict.aspect
            group = raw["group"] if aspect == "result" else f"{raw['group']} {aspect}"
            source = raw.get("code") or raw["source"].strip()

            def outcome(
                status: Any, why: str = "", group: str = group, source: str = source
            ) -> Outcome:
                return Outcome(raw["id"], group, engine, status, why, source)

            reason = skips.reason(rules, raw, engine, aspect)
            native = isinstance(case.expected, Failure) and case.expected.native
            if reason is not None:
                yield outcome("skipped", reason)
            elif verdict.why is not None:
                yield outcome("failed", verdict.why)
            elif native and aspect == "result" and case.kind != "graph":
                yield outcome("skipped", NATIVE)
            else:
                yield outcome("passed")
