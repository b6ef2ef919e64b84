"""Allowed differences from recorded results, which `skips.toml` and `skips_defn.toml` list.

Cases that a rule covers are run like all others. A case whose result equals the recorded one
passes; any other result is skipped for the reason that the rule states.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from golden.cases import HERE


@dataclass(frozen=True)
class Skip:
    """A rule, which covers a case if all of its fields match."""

    reason: str
    #: Glob patterns of ids; one must match.
    ids: tuple[str, ...] = ("*",)
    #: A regular expression found in the call.
    call: str = ""
    #: A regular expression found in the arguments and options, as JSON.
    args: str = ""
    #: A regular expression found in the source of a numerical case: the code, and the split points.
    source: str = ""
    #: A regular expression found in the recorded printed expressions.
    text: str = ""
    #: A regular expression found in the recorded error.
    error: str = ""
    #: A regular expression found in the description of the difference.
    differs: str = ""
    #: True if NumPy must return the result of nxla.
    numpy: bool = False
    #: The backends of the rule; all by default.
    backends: tuple[str, ...] = ()
    #: The ignored aspects of a case (see `defn_case`); all by default.
    aspects: tuple[str, ...] = ()

    def covers(self, case: dict[str, Any], backend: str, aspect: str = "result") -> bool:
        """Return whether a case, or an aspect of one, may differ on a backend."""
        if self.backends and backend not in self.backends:
            return False
        if self.aspects and aspect not in self.aspects:
            return False
        if not any(fnmatch(str(case["id"]), pattern) for pattern in self.ids):
            return False
        result = case.get("result")
        message = result.get("error", "") if isinstance(result, dict) else ""
        searched = [
            (self.call, str(case.get("call", ""))),
            (self.source, _sources(case)),
            (self.text, _texts(case)),
            (self.args, json.dumps([case.get("args"), case.get("opts")])),
            (self.error, str(message)),
        ]
        return all(re.search(pattern, text) for pattern, text in searched if pattern)


@dataclass(frozen=True)
class Deviation:
    """The difference of a result from the recorded one, and the verdict of NumPy."""

    reason: str
    has_numpy: Callable[[], bool] = lambda: False

    def allowed(self, rule: Skip) -> bool:
        """Return whether a rule allows this difference."""
        if rule.differs and not re.search(rule.differs, self.reason):
            return False
        return not rule.numpy or self.has_numpy()


def load(*names: str) -> list[Skip]:
    """Read the rules of the named files, or of all files."""
    rules: list[Skip] = []
    for name in names or ("skips.toml", "skips_defn.toml"):
        with (HERE / name).open("rb") as file:
            table = tomllib.load(file)
        rules += (
            Skip(**{key: tuple(v) if isinstance(v, list) else v for key, v in rule.items()})
            for rule in table.get("skip", [])
        )
    return rules


def find(
    rules: Sequence[Skip],
    case: dict[str, Any],
    backend: str,
    deviation: Deviation,
    aspect: str = "result",
) -> Skip | None:
    """Return the first rule that covers a case and its difference, or None."""
    covering = (rule for rule in rules if rule.covers(case, backend, aspect))
    return next((rule for rule in covering if deviation.allowed(rule)), None)


def stale(rules: Sequence[Skip], used: Iterable[Skip | None]) -> list[Skip]:
    """List the rules that no case has used."""
    needed = set(used)
    return [rule for rule in rules if rule not in needed]


def _sources(case: dict[str, Any]) -> str:
    return "\n".join(str(case.get(key) or "") for key in ("source", "code", "split"))


def _texts(case: dict[str, Any]) -> str:
    texts = [case.get("expr"), *(stage["expr"] for stage in case.get("stages") or [])]
    return "\n".join(text for text in texts if isinstance(text, str))
