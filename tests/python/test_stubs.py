"""Tests that stubs, export lists and docstrings match the compiled module."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nxla as nx
from nxla import _core
from test_public_api import namespaces, public_names

ROOT = Path(__file__).parents[2]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
#: The compiled classes and functions, under their public names.
COMPILED = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (nx, nx.linalg, nx.fft)
    for name in module.__all__
    if inspect.isbuiltin(getattr(module, name))
}

#: Public objects that must have an example in the docs, with two more namespaces.
DOCUMENTED = COMPILED | {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (nx.nn, nx.random)
    for name in module.__all__
    if inspect.isbuiltin(getattr(module, name))
}


def test_stubs_and_exports_are_up_to_date():
    command = [sys.executable, str(ROOT / "tools/stubs.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_public_functions_are_compiled_functions():
    assert nx.sin is _core.sin
    assert nx.sum is _core.sum
    assert nx.linalg.det is _core.det
    assert len(COMPILED) > 150


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_docstring_examples_of_compiled_functions_pass(name):
    function = DOCUMENTED[name]
    parsed = doctest.DocTestParser().get_doctest(inspect.getdoc(function), {}, name, name, 0)
    assert parsed.examples, f"{name} has no example"
    report = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(parsed, out=report.append)
    assert report == []


@pytest.mark.parametrize("name", sorted(COMPILED))
def test_docstrings_of_compiled_functions_are_complete(name):
    function = COMPILED[name]
    documented = inspect.getdoc(function)
    summary = documented.split("\n")[0]
    assert summary[0].isupper() or summary.startswith("`")
    assert summary.endswith(".")
    # A section on parameters names every parameter.
    if "\nParameters\n" in documented:
        section = documented.split("\nParameters\n")[1].split("\n\n")[0]
        listed = {word for line in section.split("\n") for word in line.split(" : ")[0].split(", ")}
        assert set(inspect.signature(function).parameters) <= {word.strip("* ") for word in listed}


def test_raises_sections_name_exceptions():
    documented = {
        f"{namespace.__name__}.{name}": inspect.getdoc(getattr(namespace, name)) or ""
        for namespace in namespaces()
        for name in public_names(namespace)
    }
    unnamed = re.compile(r"^Raises\n-+\n\s", re.MULTILINE)
    assert [name for name, text in documented.items() if unnamed.search(text)] == []


def test_exported_names_exist_once():
    for name in ("nxla", "nxla.linalg", "nxla.fft"):
        module = importlib.import_module(name)
        assert len(set(module.__all__)) == len(module.__all__)
        assert [export for export in module.__all__ if not hasattr(module, export)] == []
