"""The check of commit subjects accepts only the documented form."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "commits.py"


@pytest.fixture(scope="module")
def problem():
    spec = importlib.util.spec_from_file_location("commits", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.problem


@pytest.mark.parametrize(
    "subject",
    [
        "eval: fuse row reductions with their consumers",
        "docs, tests: describe `nx.explain`",
        "Merge branch 'main'",
    ],
)
def test_valid_subjects_are_accepted(problem, subject):
    assert problem(subject) is None


@pytest.mark.parametrize(
    "subject",
    [
        "Fuse row reductions",
        "eval: Fuse row reductions",
        "eval: fused row reductions",
        "eval: fuse row reductions.",
        "eval fuse row reductions",
        "eval: " + "x" * 70,
    ],
)
def test_invalid_subjects_are_rejected(problem, subject):
    assert problem(subject)
