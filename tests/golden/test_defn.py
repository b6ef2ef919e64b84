"""The golden cases of numerical functions, on the evaluator and on XLA."""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

import pytest

from golden import cases, defn_run, report, skips
from golden.elixir import evaluate

FILE = cases.HERE / "nx_defn.jsonl.gz"
#: XLA takes tens of milliseconds for each program, so here it gets one case of so many;
#: `make golden` runs them all.
XLA_SHARE = 8


@cache
def groups() -> dict[str, list[dict[str, Any]]]:
    """Read the cases by group."""
    found: dict[str, list[dict[str, Any]]] = {}
    for raw in cases.lines(FILE):
        found.setdefault(raw["group"], []).append(raw)
    return found


@pytest.mark.parametrize("group", sorted(groups()))
def test_evaluator(group: str) -> None:
    """Results, prints, texts, derivatives and stages are those of Nx."""
    outcomes = list(defn_run.run(groups()[group], "evaluator", skips.load("skips_defn.toml")))
    assert not report.failures(outcomes)


@pytest.mark.parametrize("group", sorted(groups()))
def test_xla(group: str) -> None:
    """XLA computes the same; it gets some of the cases, by a hash of their names."""
    some = [raw for raw in groups()[group] if zlib.crc32(raw["id"].encode()) % XLA_SHARE == 0]
    outcomes = list(defn_run.run(some, "xla", skips.load("skips_defn.toml")))
    assert not report.failures(outcomes)


def test_few_cases_are_left_out() -> None:
    """Reasons for leaving cases out must not grow into a habit."""
    every = [raw for group in groups().values() for raw in group]
    outcomes = list(defn_run.run(every, "evaluator", skips.load("skips_defn.toml")))
    left_out = [outcome for outcome in outcomes if outcome.status == "skipped"]
    assert len(left_out) <= 0.06 * len(outcomes)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3 ** 2 - -1", 20),
        ("rem(-7, 3) + div(-7, 2)", -4),
        ("for = [1, 2 | [3]]; Enum.map(for, &(&1 * 2))", [2, 4, 6]),
        ("case {1, [2, 3]} do {a, [b | _]} when a < b -> {b, a}; _ -> nil end", (2, 1)),
        ("if false, do: 1, else: (x = 2; x)", 2),
        ('"a#{1 + 1}b" <> "\\n"', "a2b\n"),
        ("%{m | a: 2}.a", 2),
        ("3..1//-1 |> Enum.reduce(10, fn x, acc -> acc - x end)", 4),
        ("f = fn 0 -> :zero; n when n > 0 -> {:more, n} end\nf.(2)", ("more", 2)),
        ("[a: 1, b: 2][:b]", 2),
        ("raise_to = &(&1 ** &2)\nraise_to.(2, 5)", 32),
    ],
)
def test_the_reader_of_elixir(source: str, value: Any) -> None:
    """Sources mean what they mean in Elixir."""
    assert evaluate(source, {"m": {"a": 1}}) == value
