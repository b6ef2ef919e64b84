"""Check and prepare a release: the same version everywhere, and a section of the changelog.

``check`` compares the versions, and with ``--tag`` also the tag and the changelog. ``prepare``
raises the version and dates the changelog. ``notes`` prints the section for the release.
"""

import argparse
import re
import sys
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: A heading of the changelog with its version and date, or `Unreleased`.
SECTION = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?")


class Project:
    """The files of the project that contain its version."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> str:
        """Return the content of a file."""
        return (self.root / path).read_text(encoding="utf-8")

    @property
    def version(self) -> str:
        """The version of the workspace, which maturin also writes into the wheel."""
        version: str = tomllib.loads(self.read("Cargo.toml"))["workspace"]["package"]["version"]
        return version

    def differences(self) -> list[str]:
        """Return the differences from the manifest of the workspace."""
        manifest = tomllib.loads(self.read("Cargo.toml"))["workspace"]
        version = self.version
        found = [
            f"Cargo.toml: {name} has version {entry['version']}"
            for name, entry in manifest["dependencies"].items()
            if isinstance(entry, dict)
            and "path" in entry
            and entry.get("version", version) != version
        ]
        found += [
            f"Cargo.lock: {package['name']} has version {package['version']}"
            for package in tomllib.loads(self.read("Cargo.lock"))["package"]
            if "source" not in package and package["version"] != version
        ]
        if f"\nversion: {version}\n" not in self.read("CITATION.cff"):
            found.append(f"CITATION.cff: version is not {version}")
        rust = manifest["package"]["rust-version"]
        oldest = {
            ".github/workflows/check.yml": f'RUSTUP_TOOLCHAIN: "{rust}"',
            "README.md": f"Rust {rust}",
            "CONTRIBUTING.md": f"Rust {rust}",
        }
        found += [
            f"{path}: {words!r} is missing, but Cargo.toml has rust-version {rust}"
            for path, words in oldest.items()
            if words not in self.read(path)
        ]
        return found

    def sections(self) -> dict[str, tuple[str | None, str]]:
        """Return the date and the content of each section of the changelog, by version."""
        changelog = self.read("CHANGELOG.md")
        headings = list(SECTION.finditer(changelog))
        ends = [heading.start() for heading in headings[1:]] + [len(changelog)]
        return {
            heading["name"]: (heading["date"], changelog[heading.end() : end].strip())
            for heading, end in zip(headings, ends, strict=True)
        }

    def notes(self) -> str:
        """Return the section of the version, or of unreleased changes, with absolute links."""
        sections = self.sections()
        _, content = sections.get(self.version) or sections["Unreleased"]
        repository = tomllib.loads(self.read("Cargo.toml"))["workspace"]["package"]["repository"]
        files = f"{repository}/blob/v{self.version}"
        return re.sub(r"\]\((?!https?://|#)", f"]({files}/", content)

    def tag_errors(self, tag: str) -> list[str]:
        """Return the reasons for which a tag must not be released."""
        version = self.version
        if tag != f"v{version}":
            return [f"tag: must be v{version}; got {tag}"]
        day, content = self.sections().get(version, (None, ""))
        if day is None or not content:
            return [f"CHANGELOG.md: needs a section '## [{version}] - YYYY-MM-DD' with content"]
        return []

    def prepare(self, version: str, day: date) -> None:
        """Raise the version in all files, and date the section of unreleased changes."""
        if not VERSION.fullmatch(version):
            sys.exit(f"prepare: version must be MAJOR.MINOR.PATCH; got {version}")
        _, content = self.sections().get("Unreleased", (None, ""))
        if not content or version in self.sections():
            sys.exit(f"prepare: CHANGELOG.md needs unreleased changes and no section {version}")
        old = re.escape(self.version)
        self._replace("Cargo.toml", rf'^(version = "){old}"', rf'\g<1>{version}"')
        self._replace("Cargo.toml", rf'^(nxla.*path = .*version = "){old}"', rf'\g<1>{version}"')
        self._replace("Cargo.lock", rf'^(name = "nxla.*"\nversion = "){old}"', rf'\g<1>{version}"')
        self._replace("CITATION.cff", r"^date-released: .*\n", "")
        self._replace(
            "CITATION.cff", rf"^version: {old}$", f"version: {version}\ndate-released: {day}"
        )
        heading = f"## [Unreleased]\n\n## [{version}] - {day}"
        self._replace("CHANGELOG.md", r"^## \[Unreleased\]$", heading)

    def _replace(self, path: str, pattern: str, replacement: str) -> None:
        content = re.sub(pattern, replacement, self.read(path), flags=re.MULTILINE)
        (self.root / path).write_text(content, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="compare versions")
    check.add_argument("--tag", help="the tag that is to be released")
    prepare = commands.add_parser("prepare", help="raise the version and date the changelog")
    prepare.add_argument("version")
    commands.add_parser("notes", help="print the release notes")
    parsed = parser.parse_args(arguments)
    project = Project(ROOT)
    if parsed.command == "prepare":
        project.prepare(parsed.version, datetime.now(UTC).date())
    if parsed.command == "notes":
        sys.stdout.write(project.notes() + "\n")
        return
    errors = project.differences()
    errors += project.tag_errors(parsed.tag) if parsed.command == "check" and parsed.tag else []
    if errors:
        sys.exit("\n".join(errors))
    sys.stdout.write(f"version {project.version} is the same in all files\n")


if __name__ == "__main__":
    main()
