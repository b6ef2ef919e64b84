"""Tests that the package exports all functions of the compiled module."""

import ast
import re
from pathlib import Path

import nxla
from nxla import _core

# Functions that the package does not export, and the reasons.
UNWRAPPED = {
    "set_numbers_of_nx": "for tools that compare with Nx",
    "set_reassociate_floats": "for tools that compare expression text",
    "release_held_memory": "for tests of memory limits",
}


def test_package_exports_every_compiled_function():
    source = "\n".join(
        path.read_text(encoding="utf-8") for path in Path(nxla.__file__).parent.rglob("*.py")
    )
    imported = re.findall(r"from nxla\._core import \(?([^)]*?)(?:\)|\n\n|$)", source)
    # A star import uses every name unchanged.
    used = (
        set(_core.__all__)
        | set(re.findall(r"_core\.(\w+)", source))
        | set(re.findall(r"\w+", " ".join(imported)))
    )
    available = {name for name in dir(_core) if not name.startswith("_")}
    assert available - used - set(UNWRAPPED) == set()
    assert set(UNWRAPPED) & used == set()


def test_all_exports_exist():
    missing = [name for name in nxla.__all__ if not hasattr(nxla, name)]
    assert missing == []


def test_stubs_cover_the_compiled_module():
    stubs = ast.parse((Path(nxla.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
    classes = {node.name: node for node in stubs.body if isinstance(node, ast.ClassDef)}
    assert {name for name in dir(_core) if not name.startswith("_")} == {
        name for name in names_of(stubs.body) if not name.startswith("_")
    }
    for name, node in classes.items():
        # The class that contains the operators exists only for type checkers.
        if name.startswith("_"):
            continue
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        known = names_of(node.body).union(
            *(names_of(classes[b].body) for b in bases if b in classes)
        )
        members = {member for member in vars(getattr(_core, name)) if not member.startswith("__")}
        assert members <= known, f"{name}: {members - known}"


def names_of(body):
    """Return the names that statements of a stub define."""
    names = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names
