"""Run golden files from the command line, and print the outcomes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from golden import cases, defn_run, ops, report, skips


def main() -> int:
    """Run the cases of the command line; return 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="golden", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=cases.HERE)
    parser.add_argument("--backend", choices=[*ops.RUNNERS], action="append")
    parser.add_argument("--group", help="run only this group")
    parser.add_argument(
        "--write", type=Path, help="also write each group's failures to this folder"
    )
    parser.add_argument("--failures", type=int, default=200, help="how many failures to list")
    options = parser.parse_args()
    call_rules, defn_rules = skips.load("skips.toml"), skips.load("skips_defn.toml")
    outcomes: list[report.Outcome] = []
    for path in cases.files(options.folder):
        raw = [case for case in cases.lines(path) if options.group in (None, case.get("group"))]
        calls = [case for case in raw if "call" in case]
        numerical = [case for case in raw if "call" not in case]
        for backend in options.backend or [*ops.RUNNERS]:
            outcomes += ops.run(calls, backend, call_rules)
            outcomes += defn_run.run(numerical, backend, defn_rules)
    if options.write:
        report.write(outcomes, options.write)
    print(report.failures(outcomes, options.failures))
    print(report.table(outcomes))
    print(report.skips(outcomes))
    return int(any(outcome.status == "failed" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
