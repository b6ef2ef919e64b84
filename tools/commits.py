"""Check the subjects of commits: ``area: imperative summary``, at most 72 characters.

``python tools/commits.py [RANGE]`` checks the commits of a range. The default range is the
commits that the main branch of the remote repository does not have, or the last commit.
"""

from __future__ import annotations

import re
import subprocess
import sys

#: An area, a colon, and a summary that starts with a verb in lower case and has no final period.
FORM = re.compile(r"[a-z][\w./-]*(, [\w./-]+)*: (?!\w+ed\b)[a-z`].*[^.\s]")
MAX_LENGTH = 72


def problem(subject: str) -> str | None:
    """Return the fault of a subject, or None."""
    if subject.startswith(("Merge ", "Revert ")):
        return None
    if not FORM.fullmatch(subject):
        return "expected `area: imperative summary`, lower case, without a final period"
    if len(subject) > MAX_LENGTH:
        return f"expected at most {MAX_LENGTH} characters, got {len(subject)}"
    return None


def git(*arguments: str) -> str:
    """Return the output of a git command, or an empty string if it fails."""
    run = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else ""


def main() -> int:
    """Print the wrong subjects; the result is the exit status."""
    base = git("merge-base", "HEAD", "origin/main").strip()
    span = sys.argv[1:] or ([f"{base}..HEAD"] if base else ["-1", "HEAD"])
    failures = 0
    for line in git("log", "--no-merges", "--format=%h %s", *span).splitlines():
        commit, _, subject = line.partition(" ")
        fault = problem(subject)
        if fault:
            failures += 1
            sys.stderr.write(f"{commit} {subject!r}: {fault}\n")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
