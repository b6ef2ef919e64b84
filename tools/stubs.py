"""Generate the stubs of the compiled module, and the export lists of the package.

The compiled module contains the types and documentation of functions that are declared in Rust. The
types of classes and internal functions are in `stubs.pyi` beside this file, and their documentation
is in the module. `make stubs` writes the files, and a test fails if they are out of date.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from generated import write_or_check

from nxla import _core
from nxla._methods import METHODS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python/nxla"

HEADER = """\
# Types of the compiled module. `make stubs` writes them, from the module and `tools/stubs.pyi`.

"""
#: The line of the stub after which methods of the package are inserted.
METHODS_MARKER = "    # Methods of `nxla._methods`."
#: The marked section that lists the exports of a module.
EXPORTS = re.compile(
    r"# The names that are imported above\..*?(?=\n# fmt: on|\n\n_hints|\Z)", re.DOTALL
)


def stub() -> str:
    """Return the stub of the compiled module."""
    source = (Path(__file__).parent / "stubs.pyi").read_text(encoding="utf-8")
    types: dict[str, dict[str, str]] = _core._signatures()
    # Special methods are listed explicitly in the stub.
    public = {name: value for name, value in METHODS.items() if not name.startswith("_")}
    signatures = [method(name, function, types) for name, function in public.items()]
    source = source.replace(
        METHODS_MARKER, METHODS_MARKER + "\n" + textwrap.indent("\n".join(signatures), "    ")
    )
    names = sorted(_core.__all__, key=export_order)
    exported = f"__all__ = [{', '.join(map(repr, names))}]\n"
    dtypes = [name for name, value in vars(_core).items() if isinstance(value, _core.DType)]
    constants = "".join(f"{name}: Final[DType]\n" for name in dtypes)
    functions = [declared(name, types[name]) for name in sorted(types)]
    parts = [HEADER + documented(source), constants, *functions, exported]
    return formatted("\n".join(parts), PACKAGE / "_core.pyi")


def declared(name: str, types: dict[str, str]) -> str:
    """Return the stub of a function that is declared in Rust."""
    function = getattr(_core, name)
    signature = inspect.signature(function)
    parameters = []
    for parameter in signature.parameters.values():
        annotation = types.get(parameter.name) or types["*"]
        parameters.append(parameter.replace(annotation=Verbatim(annotation)))
    result = Verbatim(types["return"])
    shown = signature.replace(parameters=parameters, return_annotation=result)
    return f"def {name}{shown}:\n{docstring(function, 1)}"


def method(name: str, function: Any, types: dict[str, dict[str, str]]) -> str:
    """Return the stub of a method, which is a function that takes the tensor first."""
    signature = inspect.signature(function)
    compiled = types.get(function.__name__, {}) if inspect.isbuiltin(function) else {}
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for parameter in list(signature.parameters.values())[1:]:
        annotation = compiled.get(parameter.name, parameter.annotation)
        parameters.append(parameter.replace(annotation=Verbatim(annotation)))
    result = Verbatim(compiled.get("return", signature.return_annotation))
    shown = signature.replace(parameters=parameters, return_annotation=result)
    return f"def {name}{shown}: ..."


class Verbatim:
    """An annotation that `inspect` prints unchanged."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def docstring(value: Any, depth: int) -> str:
    """Return the source of the docstring of an object."""
    text = inspect.getdoc(value) or ""
    if "\n" in text:
        text += "\n"
    quoted = ("r" if "\\" in text else "") + f'"""{text}"""\n'
    return textwrap.indent(quoted, "    " * depth)


def documented(source: str) -> str:
    """Return stubs with the documentation of the compiled module."""
    lines = source.split("\n")
    for statement, value, depth in reversed(described(ast.parse(source), _core, 0)):
        first = statement.body[0]
        line = min(
            [
                first.lineno,
                *(decorator.lineno for decorator in getattr(first, "decorator_list", [])),
            ]
        )
        text = docstring(value, depth).rstrip("\n")
        if isinstance(first, ast.Expr):
            lines[line - 1] = lines[line - 1].removesuffix(" ...")
            lines.insert(line, text)
        else:
            lines.insert(line - 1, text)
    return "\n".join(lines)


def described(
    tree: ast.Module | ast.ClassDef, owner: Any, depth: int
) -> list[tuple[ast.ClassDef | ast.FunctionDef, Any, int]]:
    """Return the statements of stubs that are documented in the compiled module."""
    found: list[tuple[ast.ClassDef | ast.FunctionDef, Any, int]] = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("__"):
            continue
        # The common members of tensors and traced values form a class for type checkers only.
        value = getattr(owner, node.name, _core.Tensor if node.name == "_Operators" else None)
        overloaded = any(ast.unparse(each) == "overload" for each in node.decorator_list)
        public = not node.name.startswith("_")
        if public and not overloaded and inspect.getdoc(value):
            found.append((node, value, depth + 1))
        if isinstance(node, ast.ClassDef):
            inner = described(node, value, depth + 1)
            found.extend(inner)
    return sorted(found, key=lambda entry: entry[0].body[0].lineno)


def exports(path: Path) -> str:
    """Return the source of a module of the package with its list of exports."""
    text = path.read_text(encoding="utf-8")
    names = set[str]()
    statements = ast.parse(text).body
    for block in [node for node in statements if isinstance(node, ast.If)]:
        # Names that are imported on first use are imported for type checkers.
        if ast.unparse(block.test) == "TYPE_CHECKING":
            statements += block.body
    for node in statements:
        if isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    # Only type checkers use this flag.
    names.discard("TYPE_CHECKING")
    exports_core = "*" in names
    own = sorted((n for n in names if re.match("[a-zA-Z]|__version__$", n)), key=export_order)
    export_lines = textwrap.fill(
        ", ".join(f'"{name}"' for name in own) + ",",
        width=100,
        initial_indent="    ",
        subsequent_indent="    ",
    )
    notice = "# The names that are imported above. `make stubs` writes this list.\n"
    block = f"{notice}__all__ = [\n{export_lines}\n]\n"
    if exports_core:
        block += "__all__ += _core.__all__\n"
    return formatted(EXPORTS.sub(lambda _: block.rstrip("\n"), text), path)


MODULES_HEADER = '''"""The module of each public name that is imported when it is first used.

`make stubs` writes this file from the imports for type checkers in `nxla/__init__.py`.
"""

'''


def modules_of_names() -> str:
    """Return the source of the table by which `nxla` imports a name when it is first used."""
    path = PACKAGE / "__init__.py"
    modules: dict[str, str] = {}
    for block in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(block, ast.If) or ast.unparse(block.test) != "TYPE_CHECKING":
            continue
        for node in block.body:
            assert isinstance(node, ast.ImportFrom), "the block has imports only"
            home = (node.module or "").removeprefix("nxla").removeprefix(".")
            modules.update({alias.name: home or alias.name for alias in node.names})
    for _, name, _ in pkgutil.iter_modules([str(PACKAGE)]):
        if not name.startswith("_"):
            assert modules.setdefault(name, name) == name, f"{name} is a module and a function"
    rows = (f'    "{name}": "{modules[name]}",' for name in sorted(modules))
    source = MODULES_HEADER + "MODULES = {\n" + "\n".join(rows) + "\n}\n"
    return formatted(source, PACKAGE / "_exports.py")


def export_order(name: str) -> tuple[int, list[tuple[int, int, str]]]:
    """Return the key by which ruff sorts exports: classes first, in natural order."""
    parts = re.findall(r"\d+|\D+", name)
    natural = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
    return (1 if name[0].isupper() else 2), natural


def formatted(source: str, path: Path) -> str:
    """Return source as ruff formats it."""
    command = [str(Path(sys.executable).parent / "ruff"), "format", f"--stdin-filename={path}", "-"]
    return subprocess.run(
        command, input=source, capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


def files() -> dict[Path, str]:
    """Return the generated files and their contents."""
    found = {PACKAGE / "_core.pyi": stub(), PACKAGE / "_exports.py": modules_of_names()}
    for name in (
        "__init__.py",
        "linalg.py",
        "fft.py",
        "nn/__init__.py",
        "optim/__init__.py",
        "special/__init__.py",
    ):
        found[PACKAGE / name] = exports(PACKAGE / name)
    return found


if __name__ == "__main__":
    write_or_check(files(), "make stubs")
