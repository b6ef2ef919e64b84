"""Readable reports of the outcomes of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from golden.skips import Skip


@dataclass(frozen=True)
class Outcome:
    """The outcome of one case on one backend."""

    id: str
    group: str
    backend: str
    status: Literal["passed", "failed", "skipped"]
    #: The reason of the failure or skip.
    reason: str = ""
    call: str = ""
    #: The rule that skips the case.
    rule: Skip | None = None


def table(outcomes: Iterable[Outcome]) -> str:
    """Lay out passed, failed and skipped cases for each group and backend."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for outcome in outcomes:
        for group in (outcome.group, "all"):
            counts[group, outcome.backend, outcome.status] += 1
    groups = sorted({group for group, _, _ in counts} - {"all"})
    backends = sorted({backend for _, backend, _ in counts})
    lines = [f"{'group':<18} {'backend':<10} {'passed':>7} {'failed':>7} {'skipped':>8}"]
    for group in [*groups, "all"]:
        for backend in backends:
            passed, failed, skipped = (
                counts[group, backend, status] for status in ("passed", "failed", "skipped")
            )
            if passed + failed + skipped:
                lines.append(f"{group:<18} {backend:<10} {passed:>7} {failed:>7} {skipped:>8}")
    return "\n".join(lines)


def skips(outcomes: Iterable[Outcome]) -> str:
    """List the reasons for skipping, with how many cases each has."""
    reasons = Counter((o.backend, o.reason) for o in outcomes if o.status == "skipped")
    return "\n".join(
        f"{count:>6} {backend:<10} {reason}" for (backend, reason), count in reasons.most_common()
    )


def failures(outcomes: Iterable[Outcome], limit: int = 200) -> str:
    """List failed cases with their backends, calls and reasons."""
    failed = [o for o in outcomes if o.status == "failed"]
    lines = [f"{o.backend} {o.id}: {o.call[:160]}\n    {o.reason[:300]}" for o in failed[:limit]]
    if len(failed) > limit:
        lines.append(f"… and {len(failed) - limit} more")
    return "\n".join(lines)


def write(outcomes: Iterable[Outcome], folder: Path) -> None:
    """Write the failures of each group to a separate file."""
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.group, [])
        if outcome.status == "failed":
            groups[outcome.group].append(outcome)
    for group, failed in groups.items():
        (folder / f"{group}.txt").write_text(failures(failed, len(failed)) + "\n")
