"""The golden cases of numerical functions, on the evaluator and on XLA."""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

import pytest

import nxla as nx
from golden import cases, defn_run, report, skips
from golden.elixir import ElixirError, evaluate, function, load

FILE = cases.HERE / "nx_defn.jsonl.gz"
#: XLA compiles each program for tens of milliseconds, so that these tests run every n-th case on
#: XLA; `make golden` runs all cases.
XLA_SHARE = 8
RULES = skips.load("skips_defn.toml")
#: The groups in which nearly all cases must pass; more printed expressions differ in other groups.
STRICT = [
    *("control_cond", "control_while", "defn_features", "inspect_expr", "io_call", "jit"),
    "runtime_call",
]


@cache
def groups() -> dict[str, list[dict[str, Any]]]:
    """Read the cases by group."""
    found: dict[str, list[dict[str, Any]]] = {}
    for raw in cases.lines(FILE):
        found.setdefault(raw["group"], []).append(raw)
    return found


@cache
def outcomes(group: str) -> list[report.Outcome]:
    """Run a group on the evaluator."""
    return list(defn_run.run(groups()[group], "evaluator", RULES))


@pytest.mark.parametrize("group", sorted(groups()))
def test_evaluator(group: str) -> None:
    """Results, outputs, expressions, derivatives and stages match Nx."""
    assert not report.failures(outcomes(group))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("group", sorted(groups()))
def test_xla(group: str) -> None:
    """XLA returns the recorded results of a sample of cases, selected by a hash of the id."""
    selected = [raw for raw in groups()[group] if zlib.crc32(raw["id"].encode()) % XLA_SHARE == 0]
    assert not report.failures(defn_run.run(selected, "xla", RULES))


@pytest.mark.parametrize("group", STRICT)
def test_few_cases_are_skipped(group: str) -> None:
    """The share of skipped cases stays small in each group."""
    skipped = {outcome.id for outcome in outcomes(group) if outcome.status == "skipped"}
    assert len(skipped) <= 0.08 * len(groups()[group]), sorted(skipped)


def test_few_aspects_are_skipped() -> None:
    """The share of skipped aspects of all groups stays small."""
    found = [outcome for group in groups() for outcome in outcomes(group)]
    skipped = [outcome for outcome in found if outcome.status == "skipped"]
    assert len(skipped) <= 0.04 * len(found)


@pytest.mark.usefixtures("device")
def test_each_rule_is_needed() -> None:
    """Every rule is needed by a case, because an unused rule could hide later failures."""
    found = [outcome for group in groups() for outcome in outcomes(group)]
    for rule in RULES:
        if "xla" in rule.backends:
            covered = [raw for group in groups().values() for raw in group]
            covered = [raw for raw in covered if rule.covers(raw, "xla", *rule.aspects[:1])]
            found += defn_run.run(covered, "xla", RULES)
    assert skips.stale(RULES, (outcome.rule for outcome in found)) == []


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
        ("unless true do 1 else 2 end", 2),
        ("with {:ok, x} <- {:ok, 3}, y = x + 1 do x * y end", 12),
        ("with {:ok, x} <- {:error, 3} do x else {:error, e} -> e + 1 end", 4),
        ("for x <- 1..3, rem(x, 2) == 1, y <- [10, 20], do: x + y", [11, 21, 13, 23]),
        ("for {k, v} <- %{a: 1, b: 2}, into: %{}, do: {k, v * 2}", {"a": 2, "b": 4}),
        ("for x <- 1..3, reduce: 0 do acc -> acc + x end", 6),
        ("x = 5; case 6 do ^x -> :same; _ -> :other end", "other"),
        ('try do raise ArgumentError, "x" rescue e in ArgumentError -> e.message end', "x"),
        ("1 in [1, 2] and 3 not in [1, 2]", True),
        ("~w(a b)a ++ ~w(c)", ["a", "b", "c"]),
        ('"""\n  one\n    two\n  """', "one\n  two\n"),
        ("<<1, 2.0::float-32-little>>", b"\x01\x00\x00\x00@"),
        ("first..last//step = 1..5//2; [first, last, step, ?a]", [1, 5, 2, 97]),
        ("alias Nx.LinAlg, as: L; L.norm(Nx.tensor([3, 4])) |> Nx.to_number()", 5.0),
        ("m = %{a: %{b: 1}}; put_in(m.a.b, 2)", {"a": {"b": 2}}),
        ("defmodule D do def f(x \\\\ 1)\n def f(x), do: x * 2 end; D.f() + D.f(2)", 6),
        ("Enum.reduce_while(1..5, 0, &if(&1 > 3, do: {:halt, &2}, else: {:cont, &1 + &2}))", 6),
        ('Enum.zip_with([1, 2], [3, 4], &+/2) |> Enum.map_join(",", &to_string/1)', "4,6"),
        ("inspect({Nx.tensor(1), :a})", "{#nxla.Tensor<s32 1>, :a}"),
    ],
)
def test_elixir_semantics(source: str, value: Any) -> None:
    """Elixir code has the semantics of Elixir."""
    assert evaluate(source, {"m": {"a": 1}}) == value


@pytest.mark.parametrize(
    ("body", "exception"),
    [
        ("Nx.to_number(x)", "CompileError"),
        ("Enum.map([x], &(&1))", "CompileError"),
        ("foo(x)", "CompileError"),
        ("[x, x]", "Protocol.UndefinedError"),
        ("x[0..9]", "ArgumentError"),
    ],
)
def test_numerical_code_rejects_invalid_elixir(body: str, exception: str) -> None:
    """Numerical code rejects Elixir code that Nx rejects."""
    traced = function(load(f"defn f(x), do: {body}"), "f")
    with pytest.raises(ElixirError) as raised:
        nx.jit(traced)(nx.tensor([1, 2]))
    assert raised.value.exception == exception


def test_rule_matches_only_its_difference() -> None:
    """A rule covers only cases with the difference that it describes."""
    case = {"id": "add/1", "call": "Nx.add(a0, 1)", "args": [], "opts": {}, "result": None}
    rule = skips.Skip("reason", ids=("add/*",), differs="dtype f16, expected f32")
    other = skips.Skip("numpy", numpy=True)
    arguments = [rule, other], case, "evaluator"
    assert skips.find(*arguments, skips.Deviation("dtype f16, expected f32")) is rule
    assert skips.find(*arguments, skips.Deviation("element 0 is 1, expected 2")) is None
    assert skips.find(*arguments, skips.Deviation("element 0 is 1", lambda: True)) is other
    assert skips.stale([rule, other], [other, None]) == [rule]
