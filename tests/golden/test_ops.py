"""The golden cases of tensor functions: all on the evaluator, a sample of them on XLA."""

from __future__ import annotations

import zlib
from functools import cache

import pytest

from golden import cases, ops, report, skips

#: How many cases of a group run on XLA.
SAMPLE = 200

FILE = cases.HERE / "nx_ops.jsonl.gz"


@cache
def groups() -> dict[str, list[ops.Case]]:
    """Read the cases by group."""
    found: dict[str, list[ops.Case]] = {}
    for raw in cases.lines(FILE):
        found.setdefault(raw["group"], []).append(ops.read(raw))
    return found


def sample(group: list[ops.Case]) -> list[ops.Case]:
    """Choose cases for XLA, whose compiler takes its time; `make golden` runs all of them.

    The choice is the same each time, and mixes what stands together in the file.
    """
    return sorted(group, key=lambda case: zlib.crc32(case.raw["id"].encode()))[:SAMPLE]


@pytest.mark.parametrize("group", sorted(groups()))
def test_evaluator(group: str) -> None:
    """Everything that Nx returned comes out of the evaluator."""
    outcomes = list(ops.run_evaluator(groups()[group], skips.load()))
    assert not report.failures(outcomes)


@pytest.mark.parametrize("group", sorted(groups()))
def test_xla(group: str) -> None:
    """What a program computes comes out of XLA."""
    outcomes = list(ops.run_xla(sample(groups()[group]), skips.load()))
    assert not report.failures(outcomes)


def test_few_cases_are_left_out() -> None:
    """Reasons for leaving cases out must not grow into a habit."""
    rules = skips.load()
    every = [case for group in groups().values() for case in group]
    left_out = [case for case in every if case.native or skips.reason(rules, case.raw, "evaluator")]
    assert len(left_out) <= 0.06 * len(every)
