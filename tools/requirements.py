"""Print requirements of `pyproject.toml` for `pip install -r`: build tools, extras and groups."""

import sys
import tomllib
from pathlib import Path


def requirements(names: list[str]) -> list[str]:
    """Return the requirements of the build, and of extras and dependency groups by name."""
    manifest = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    groups = {**manifest["project"]["optional-dependencies"], **manifest["dependency-groups"]}
    lines: list[str] = list(manifest["build-system"]["requires"])
    for name in names:
        lines.extend(groups[name])
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join(requirements(sys.argv[1:])) + "\n")
