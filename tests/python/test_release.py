"""Versions agree in all files, and `tools/release.py` prepares a release."""

import datetime as dt
import importlib.util
import shutil
import tomllib
from pathlib import Path

import pytest

import nxla as nx

ROOT = Path(__file__).parents[2]
FILES = (
    "Cargo.toml",
    "Cargo.lock",
    "CITATION.cff",
    "CHANGELOG.md",
    "README.md",
    "CONTRIBUTING.md",
    ".github/workflows/check.yml",
)

_spec = importlib.util.spec_from_file_location("release", ROOT / "tools/release.py")
release = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(release)


@pytest.fixture
def copy(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return release.Project(tmp_path)


def test_all_files_have_the_version_of_the_module():
    project = release.Project(ROOT)
    assert project.differences() == []
    assert project.version == nx.__version__


def test_links_of_the_release_notes_are_absolute():
    project = release.Project(ROOT)
    files = f"](https://github.com/nxla/nxla/blob/v{project.version}/"
    notes = project.notes()
    assert f"[README{files}README.md)" in notes
    assert notes.count("](") == notes.count("](https://")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("Cargo.toml", 'crates/expr", version = "', 'crates/expr", version = "9'),
        ("Cargo.lock", 'name = "nxla-expr"\nversion = "', 'name = "nxla-expr"\nversion = "9'),
        ("CITATION.cff", "version: ", "version: 9"),
        ("README.md", "Rust 1.", "Rust 0."),
        (".github/workflows/check.yml", 'RUSTUP_TOOLCHAIN: "', 'RUSTUP_TOOLCHAIN: "9'),
    ],
)
def test_version_mismatch_is_reported(copy, path, old, new):
    file = copy.root / path
    content = file.read_text()
    assert old in content
    file.write_text(content.replace(old, new))
    (found,) = copy.differences() or [None]
    assert found.startswith(path)


def test_prepare_sets_version_and_date(copy):
    unreleased = copy.sections()["Unreleased"][1]
    copy.prepare("7.8.9", dt.date(2031, 2, 3))
    assert copy.differences() == []
    assert copy.version == "7.8.9"
    assert copy.sections()["7.8.9"] == ("2031-02-03", unreleased)
    assert copy.sections()["Unreleased"] == (None, "")
    assert copy.tag_errors("v7.8.9") == []
    assert "v7.8.9" in copy.tag_errors("v7.8.8")[0]
    lock = tomllib.loads((copy.root / "Cargo.lock").read_text())
    assert {p["version"] for p in lock["package"] if "source" not in p} == {"7.8.9"}
    # A second release follows, without a second date of the first.
    changelog = copy.root / "CHANGELOG.md"
    changelog.write_text(
        changelog.read_text().replace("[Unreleased]\n", "[Unreleased]\n\n* More.\n")
    )
    copy.prepare("7.9.0", dt.date(2031, 3, 4))
    assert copy.sections()["7.9.0"] == ("2031-03-04", "* More.")
    assert (copy.root / "CITATION.cff").read_text().count("date-released") == 1


def test_release_requires_changes_and_a_valid_version(copy):
    with pytest.raises(SystemExit, match=r"MAJOR\.MINOR\.PATCH; got 1\.0"):
        copy.prepare("1.0", dt.date(2031, 2, 3))
    assert "needs a section" in copy.tag_errors(f"v{copy.version}")[0]
    copy.prepare("7.8.9", dt.date(2031, 2, 3))
    with pytest.raises(SystemExit, match="needs unreleased changes"):
        copy.prepare("7.9.0", dt.date(2031, 2, 3))
