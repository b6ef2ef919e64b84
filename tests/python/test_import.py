"""`import nxla` imports few modules; the first use of a name imports its module."""

import ast
import subprocess
import sys
from pathlib import Path

import nxla as nx
from nxla._exports import MODULES

#: Modules that take longer to import than the whole Python part of the package.
EXPENSIVE = {"ast", "dataclasses", "inspect", "json", "numpy", "re", "typing"}


def imported_by(code):
    """Return the modules that a new interpreter has imported after running code."""
    script = f"{code}\nimport sys; print('\\n'.join(sys.modules))"
    options = [sys.executable, "-I", "-S", "-c", script]
    path = f"import sys; sys.path[:] = {sys.path!r}\n"
    options[-1] = path + script
    printed = subprocess.run(options, capture_output=True, text=True, check=True).stdout
    return set(printed.split())


def test_import_needs_few_modules():
    before = imported_by("")
    added = imported_by("import nxla") - before
    assert not added & EXPENSIVE
    assert len([name for name in added if name.startswith("nxla")]) <= 18
    assert len(added) <= 48


def test_the_first_result_needs_few_modules():
    added = imported_by("import nxla as nx; nx.jit(lambda x: nx.sin(x) + 1)(2.0).item()")
    assert not added & (EXPENSIVE - {"typing", "re"})


def test_every_name_can_be_used_after_import():
    used = "\n".join(f"nx.{name}" for name in MODULES)
    assert "nxla.collectives" in imported_by(f"import nxla as nx\n{used}")


def test_submodules_do_not_shadow_functions():
    """Importing a submodule sets an attribute of the package under the submodule's name."""
    code = "import pkgutil, nxla as nx\n"
    code += "for module in pkgutil.walk_packages(nx.__path__, 'nxla.'):\n"
    code += "    if '__main__' not in module.name: __import__(module.name)\n"
    code += "assert callable(nx.stream) and callable(nx.devices)"
    assert "nxla.streams" in imported_by(code)


def test_export_table_contains_all_public_names():
    assert set(MODULES) >= {name for name in nx.__all__ if name not in vars(nx._core)} - {
        "__version__", "e", "inf", "nan", "newaxis", "pi",
    }  # fmt: skip


def modules_of_the_package():
    """Return the source files of all modules of the package by their names."""
    root = Path(nx.__file__).parent
    names = {
        path.relative_to(root.parent).with_suffix("").parts: path for path in root.rglob("*.py")
    }
    return {".".join(name).removesuffix(".__init__"): path for name, path in names.items()}


def imports_of(path, modules):
    """Return the modules that a file imports, also in functions, but not for type checkers."""
    found, nodes = set(), [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else node.module for name in inner}
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        nodes.extend(node.orelse if is_for_types else ast.iter_child_nodes(node))
    return found & set(modules) - {"nxla"}


def reachable_from(names, imports):
    """Return the modules reachable through imports, including `names` themselves."""
    reached, pending = set(), names
    while pending:
        reached |= pending
        pending = set().union(*(imports[module] for module in pending)) - reached
    return reached


def test_only_known_modules_import_cyclically():
    """Functions of these modules call each other; other modules have an order."""
    modules = modules_of_the_package()
    imports = {name: imports_of(path, modules) for name, path in modules.items()}
    cyclic = {name for name in modules if name in reachable_from(imports[name], imports)}
    assert cyclic == {
        f"nxla.{name}"
        for name in ("_import", "ahead", "compiler", "partitions", "streams", "transform")
    }
