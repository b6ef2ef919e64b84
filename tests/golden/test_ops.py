"""The golden cases of tensor functions: all on the evaluator, a sample of them on XLA."""

from __future__ import annotations

import math
import zlib
from functools import cache
from typing import Any

import pytest

import nxla as nx
from golden import arbiter, cases, ops, report, skips
from golden.values import Data

#: The number of cases of a group that run on XLA.
SAMPLE = 200

FILE = cases.HERE / "nx_ops.jsonl.gz"
RULES = skips.load("skips.toml")


@cache
def groups() -> dict[str, list[ops.Case]]:
    """Read the cases by group."""
    found: dict[str, list[ops.Case]] = {}
    for raw in cases.lines(FILE):
        found.setdefault(raw["group"], []).append(ops.read(raw))
    return found


def sample(group: list[ops.Case]) -> list[ops.Case]:
    """Choose cases for XLA, which compiles slowly; `make golden` runs all cases.

    The choice is deterministic, and mixes cases that are adjacent in the file.
    """
    return sorted(group, key=lambda case: zlib.crc32(case.raw["id"].encode()))[:SAMPLE]


@cache
def outcomes(group: str) -> list[report.Outcome]:
    """Run a group on the evaluator."""
    return list(ops.run_evaluator(groups()[group], RULES))


@pytest.mark.parametrize("group", sorted(groups()))
def test_evaluator(group: str) -> None:
    """The evaluator returns the recorded results."""
    assert not report.failures(outcomes(group))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("group", sorted(groups()))
def test_xla(group: str) -> None:
    """XLA returns the recorded results."""
    found = list(ops.run_xla(sample(groups()[group]), RULES))
    assert not report.failures(found)


def test_few_cases_are_skipped() -> None:
    """The share of skipped cases stays small."""
    found = [outcome for group in groups() for outcome in outcomes(group)]
    skipped = [outcome for outcome in found if outcome.status == "skipped"]
    # A tenth of the skipped cases are random numbers of narrow floats, which nxla draws in f32.
    assert len(skipped) <= 0.055 * len(found)


@pytest.mark.usefixtures("device")
def test_each_rule_is_needed() -> None:
    """Every rule is needed by a case, because an unused rule could hide later failures."""
    found = [outcome for group in groups() for outcome in outcomes(group)]
    for rule in RULES:
        if "xla" in rule.backends:
            covered = [c for group in groups().values() for c in group if rule.covers(c.raw, "xla")]
            found += ops.run_xla(covered, RULES)
    assert skips.stale(RULES, (outcome.rule for outcome in found)) == []


@pytest.mark.parametrize(
    ("function", "args", "options", "value", "agrees"),
    [
        (("Nx", "tanh"), [Data("f32", (1,), (math.inf,), (None,))], {}, nx.tensor([1.0]), True),
        (("Nx", "tanh"), [Data("f32", (1,), (math.inf,), (None,))], {}, nx.tensor([0.5]), False),
        (("Nx", "any"), [Data("s32", (2,), (0, 2), (None,))], {"axes": []}, [False, True], True),
        (
            ("Nx", "argmax"),
            [Data("f32", (2,), (1.0, 1.0), (None,))],
            {"tie_break": "high"},
            1,
            True,
        ),
        (("Nx.Floating", "dump_bf16"), [1.0], {}, b"\x80?", True),
        (("Nx", "unknown"), [1.0], {}, nx.tensor(1.0), False),
    ],
)
def test_numpy_decides_about_deviations(
    function: Any, args: Any, options: Any, value: Any, *, agrees: bool
) -> None:
    """NumPy decides whether a result that differs from the recorded one is correct."""
    actual = value if isinstance(value, bytes | nx.Tensor) else nx.tensor(value)
    assert arbiter.agrees(function, args, options, actual) == agrees
