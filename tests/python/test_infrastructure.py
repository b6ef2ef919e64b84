"""Issue forms, workflows and hooks agree with the labels, the package and the Makefile."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
WORKFLOWS = [*sorted((GITHUB / "workflows").glob("*.yml")), *sorted(GITHUB.glob("actions/*/*.yml"))]


@pytest.mark.parametrize("path", [*FORMS, GITHUB / "dependabot.yml"], ids=lambda path: path.stem)
def test_labels_of_forms_exist(path):
    existing = {label["name"] for label in json.loads((GITHUB / "labels.json").read_text())}
    listed = re.findall(r"labels: \[(.*)\]", path.read_text())
    assert listed
    assert {label.strip('" ') for line in listed for label in line.split(",")} <= existing


@pytest.mark.parametrize("name", ["bug", "performance"])
def test_reports_ask_for_versions(name):
    form = (GITHUB / f"ISSUE_TEMPLATE/{name}.yml").read_text()
    assert "python -m nxla doctor" in form
    assert "nx.show_versions()" in form


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_actions_are_pinned_by_one_hash(path):
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    foreign = [line for line in lines if "uses: $/" not in line]
    pinned = [re.search(r"uses: (\S+)@([0-9a-f]{40}) # (v\S+)$", line) for line in foreign]
    assert all(pinned), path
    everywhere = "".join(other.read_text() for other in WORKFLOWS)
    for action, commit, version in (match.groups() for match in pinned):
        others = set(re.findall(rf"{re.escape(action)}@(\w+) # (\S+)", everywhere))
        assert others == {(commit, version)}


def test_make_targets_of_workflows_exist():
    makefile = (ROOT / "Makefile").read_text()
    for path in WORKFLOWS:
        text = path.read_text()
        named = set(re.findall(r"run: make ([a-z-]+)", text))
        named |= set(re.findall(r"\{ target: ([a-z-]+), settings", text))
        for target in named:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{path.name}: {target}"


def test_all_fuzz_targets_run_nightly():
    manifest = tomllib.loads((ROOT / "fuzz/Cargo.toml").read_text())
    (matrix,) = re.findall(r" target: \[(.*)\]", (GITHUB / "workflows/nightly.yml").read_text())
    assert matrix.split(", ") == [binary["name"] for binary in manifest["bin"]]


def test_hooks_run_the_parts_of_make_check():
    makefile = (ROOT / "Makefile").read_text()
    (parts,) = re.findall(r"^check: (.*?) *##", makefile, re.MULTILINE)
    hooks = re.findall(r"entry: make (\S+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert sorted(hooks) == sorted(parts.split())


def test_paths_of_code_owners_exist():
    lines = (GITHUB / "CODEOWNERS").read_text().splitlines()
    paths = [line.split()[0] for line in lines if line.startswith("/")]
    assert paths
    assert [path for path in paths if not (ROOT / path.strip("/")).exists()] == []
