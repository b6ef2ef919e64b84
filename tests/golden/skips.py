"""The cases that are left out, and why: `skips.toml` and `skips_defn.toml` beside this file."""

from __future__ import annotations

import json
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
    #: A regular expression found in the arguments and options, as JSON.
    args: str = ""
    #: A regular expression found in the recorded error.
    error: str = ""
    #: The engines that it holds for; all without.
    engines: tuple[str, ...] = ()
    #: What is not looked at (see `defn_case`), where a case has several aspects; all without.
    aspects: tuple[str, ...] = ()

    def covers(self, case: dict[str, Any], engine: str, aspect: str = "result") -> bool:
        """Tell whether a case, or an aspect of one, is left out on an engine."""
        if self.engines and engine not in self.engines:
            return False
        if self.aspects and aspect not in self.aspects:
            return False
        if not any(fnmatch(case["id"], pattern) for pattern in self.ids):
            return False
        if self.call and not re.search(self.call, case.get("call", "")):
            return False
        given = [case.get("args"), case.get("opts")]
        if self.args and not re.search(self.args, json.dumps(given)):
            return False
        result = case.get("result")
        message = result.get("error", "") if isinstance(result, dict) else ""
        return not self.error or re.search(self.error, str(message)) is not None


def load(*names: str) -> list[Skip]:
    """Read the rules, of all files unless some are named."""
    rules: list[Skip] = []
    for name in names or ("skips.toml", "skips_defn.toml"):
        with (HERE / name).open("rb") as file:
            table = tomllib.load(file)
        rules += (
            Skip(**{key: tuple(v) if isinstance(v, list) else v for key, v in rule.items()})
            for rule in table.get("skip", [])
        )
    return rules


def reason(
    rules: list[Skip], case: dict[str, Any], engine: str, aspect: str = "result"
) -> str | None:
    """Say why a case, or an aspect of one, is left out; None if it is not."""
    return next((rule.reason for rule in rules if rule.covers(case, engine, aspect)), None)
