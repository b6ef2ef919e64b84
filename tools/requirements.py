"""Print what `pyproject.toml` requires, for `pip install -r`: the build tools and some extras."""

import sys
import tomllib
from pathlib import Path


def requirements(extras: list[str]) -> list[str]:
    """Return the requirements of the build and of these extras."""
    manifest = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    lines: list[str] = list(manifest["build-system"]["requires"])
    for extra in extras:
        lines.extend(manifest["project"]["optional-dependencies"][extra])
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join(requirements(sys.argv[1:])) + "\n")
