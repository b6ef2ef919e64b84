"""The cases that are left out, and why: `skips.toml` beside this file."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from golden.cases import HERE


@dataclass(frozen=True)
class Skip:
    """One rule. All that it names must match."""

    reason: str
    #: Glob patterns of ids; one must match.
    ids: tuple[str, ...] = ("*",)
    #: A regular expression found in the call.
    call: str = ""
    #: A regular expression found in the recorded error.
    error: str = ""
    #: The engines that it holds for; all without.
    engines: tuple[str, ...] = ()

    def covers(self, case: dict[str, Any], engine: str) -> bool:
        """Tell whether a case is left out on an engine."""
        if self.engines and engine not in self.engines:
            return False
        if not any(fnmatch(case["id"], pattern) for pattern in self.ids):
            return False
        if self.call and not re.search(self.call, case.get("call", "")):
            return False
        result = case.get("result")
        message = result.get("error", "") if isinstance(result, dict) else ""
        return not self.error or re.search(self.error, message) is not None


def load() -> list[Skip]:
    """Read the rules."""
    with (HERE / "skips.toml").open("rb") as file:
        table = tomllib.load(file)
    return [
        Skip(**{key: tuple(v) if isinstance(v, list) else v for key, v in rule.items()})
        for rule in table.get("skip", [])
    ]


def reason(rules: list[Skip], case: dict[str, Any], engine: str) -> str | None:
    """Say why a case is left out; None if it is not."""
    return next((rule.reason for rule in rules if rule.covers(case, engine)), None)
