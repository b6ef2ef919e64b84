"""Tests that the table of names in the docs matches the package."""

import ast
import importlib
import operator
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import nxla as nx
from nxla._absent import ABSENT, REASONS
from nxla._other_libraries import MODULES, TENSOR

try:
    from scipy import special as scipy_special
except ImportError:
    scipy_special = None

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ROOT / "docs/names.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
]


def test_table_has_rows():
    assert len(ROWS) > 250


@pytest.mark.parametrize("name", sorted({row[1] for row in ROWS if row[1]}))
def test_python_names_exist(name):
    found = nx
    assert name.startswith("nx.")
    for part in name.split(".")[1:]:
        found = getattr(found, part)


def test_rustdoc_page_links_every_rust_name():
    """In `make check`, rustdoc rejects a link without a target."""
    page = runpy.run_path(str(ROOT / "tools/names.py"))["page"]()
    assert page == (ROOT / "crates/nxla/src/names.md").read_text(encoding="utf-8")
    names = {name for row in ROWS for name in re.findall(r"[A-Z]\w*::\w+|nxla::\w+", row[2])}
    assert len(names) > 250
    assert [name for name in names if f"[`{name}`](" not in page] == []


def test_python_names_have_a_rust_name_or_note():
    missing = [row[0] for row in ROWS if row[1] and not row[2] and "Rust: " not in row[3]]
    assert missing == []


def test_rows_without_python_name_have_a_note():
    assert [row[0] for row in ROWS if not row[1] and not row[3]] == []


def test_names_of_other_libraries_have_hints_and_rows():
    for module, names in MODULES.items():
        owner = importlib.import_module(module)
        for name, hint in names.items():
            with pytest.raises(AttributeError, match=re.escape(f"{name!r}; in nxla it is {hint}")):
                getattr(owner, name)
            for mentioned in re.findall(r"nx\.([a-z_][\w.]*\w)", hint):
                assert operator.attrgetter(mentioned)(nx) is not None, hint
            for member in re.findall(r"the (?:method|property) (\w+) of a tensor", hint):
                assert hasattr(nx.Tensor, member)
    for name, reason in ABSENT.items():
        with pytest.raises(AttributeError, match=re.escape(f"{name!r}; not in nxla: {reason}")):
            getattr(nx, name)
        for mentioned in re.findall(r"nx\.([a-z_][\w.]*\w)", reason):
            assert operator.attrgetter(mentioned)(nx) is not None, reason
    with pytest.raises(AttributeError, match=r"'nothing_like_it'$"):
        _ = nx.nothing_like_it
    assert not hasattr(nx, "concatenate")
    text = (ROOT / "docs/names.md").read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in text.split("\n### ")[1:])
    head = ["| other library | nxla |", "|---|---|"]
    for module, names in MODULES.items():
        rows = [f"| {name} | {hint} |" for name, hint in sorted(names.items())]
        section = sections[f"`{module.replace('nxla', 'nx')}`"]
        assert section.strip().splitlines() == head + rows
    rows = [f"| {name} | {hint} |" for name, hint in sorted(TENSOR.items())]
    assert sections["Tensors"].strip().splitlines() == head + rows
    absent = [
        f"| {', '.join(sorted(names))} | {reason} |" for reason, names in sorted(REASONS.items())
    ]
    assert sections["Functions without a counterpart"].strip().splitlines()[2:] == absent


#: Values of the variables in hints.
VALUES = {
    "x": np.array([0.5, 1.5, 0.0, 2.0]),
    "y": np.array([1.0, 1.0, 0.25, 2.0]),
    "a": 0.5,
    "b": 1.5,
    "h": 0.25,
    "n": 4,
}


def _hints_with_references():
    """Yield hints that are expressions of tensors, with their variables and function."""
    for name, hint in MODULES["nxla"].items():
        function = getattr(np, name, getattr(scipy_special, name, None))
        try:
            nodes = list(ast.walk(ast.parse(hint, mode="eval")))
        except SyntaxError:
            continue
        found = [node.id for node in nodes if isinstance(node, ast.Name) and node.id in VALUES]
        if function is not None and found:
            yield name, hint, [variable for variable in VALUES if variable in found], function


HINTS = list(_hints_with_references())


@pytest.mark.parametrize(
    ("name", "hint", "variables", "function"), HINTS, ids=[name for name, *_ in HINTS]
)
def test_expressions_in_hints_match_the_other_library(name, hint, variables, function):
    values = dict(VALUES)
    if name in ("fmax", "fmin", "heaviside"):
        values.update(x=np.array([0.5, np.nan, np.nan]), y=np.array([np.nan, 0.5, np.nan]))
    tensors = {n: nx.tensor(v) if isinstance(v, np.ndarray) else v for n, v in values.items()}
    found = eval(hint, {"nx": nx, **tensors})
    expected = function(*(values[variable] for variable in variables))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "function"),
    [("max", np.maximum), ("min", np.minimum), ("mul", np.multiply)],
)
def test_scatters_in_hints_match_numpy(name, function):
    x, index, v = np.array([1.0, 5.0, 3.0]), np.array([1, 1, 2]), np.array([2.0, 7.0, 4.0])
    tensors = {"x": nx.tensor(x), "index": nx.tensor(index), "v": nx.tensor(v)}
    found = eval(MODULES["nxla"][f"scatter_{name}"], tensors)
    function.at(x, index, v)
    assert found.tolist() == x.tolist()


@pytest.mark.parametrize("name", sorted(TENSOR))
def test_attributes_of_other_arrays_have_hints(name):
    seen = []

    def look(x):
        with pytest.raises(
            AttributeError, match=re.escape(f"{name!r}; in nxla it is {TENSOR[name]}")
        ):
            getattr(x, name)
        seen.append(type(x).__name__)
        return x

    nx.jit(look)(look(nx.ones(3)))
    assert seen == ["Tensor", "Expr"]
    for mentioned in re.findall(r"nx\.([a-z_][\w.]*\w)", TENSOR[name]):
        assert operator.attrgetter(mentioned)(nx) is not None
    for member in re.findall(r"\bx\.([a-z]\w*)", TENSOR[name]):
        assert hasattr(nx.Tensor, member)


@pytest.mark.parametrize(
    ("call", "similar"),
    [
        (lambda: nx.reshap, "reshape"),
        (lambda: nx.ones(3).summ, "sum"),
        (lambda: nx.random.nornal, "normal"),
        (lambda: nx.linalg.choleski, "cholesky"),
    ],
)
def test_misspelled_names_suggest_the_most_similar_name(call, similar):
    with pytest.raises(AttributeError, match=f"; did you mean '{similar}'"):
        call()


def test_a_traced_value_is_formatted_as_its_type():
    shown = []

    def show(x):
        shown.append(f"{x:.3f}")
        return x

    nx.jit(show)(1.0)
    nx.jit(show)(nx.ones((2, 3)))
    assert shown == ["f32", "f32[2, 3]"]
    assert f"{nx.tensor(1.25):.1f}" == "1.2"


@pytest.mark.parametrize(
    "namespace", ["numpy", "numpy.linalg", "numpy.fft", "nn", "lax", "random", "scipy.special"]
)
def test_every_name_of_jax_exists_or_has_a_hint(namespace):
    jax = pytest.importorskip("jax", reason="jax is not installed, so its names are not known")
    own = {"numpy.linalg": nx.linalg, "numpy.fft": nx.fft, "nn": nx.nn, "random": nx.random}
    module = own.get(namespace, nx)
    names = {
        *vars(module),
        *module.__all__,
        *MODULES[module.__name__],
        *(ABSENT if module is nx else ()),
    }
    jax_module = importlib.import_module(f"jax.{namespace}")
    # Names that end with _p are primitives, which users do not call.
    public = {name for name in dir(jax_module) if not name.startswith("_") and name[-2:] != "_p"}
    assert len(public) > 15, jax.__version__
    assert public - names == set()


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in [row[0]]}))
def test_every_name_of_elixir_nx_exists_or_has_a_hint(name):
    for part in re.findall(r"^\w+", name):
        if not hasattr(nx, part):
            with pytest.raises(AttributeError, match="; in nxla it is "):
                getattr(nx, part)


def _names_in_documents():
    """Yield the documents with the names of this package that their code mentions."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if "generated" in path.parts or "_build" in path.parts:
            continue
        for name in set(re.findall(r"\bnx((?:\.[A-Za-z]\w*)+)", path.read_text(encoding="utf-8"))):
            # A span that is the name of a page, and the documented example of a name that does not
            # exist.
            if name in (".md", ".concatenate"):
                continue
            yield path.relative_to(ROOT).as_posix(), name


@pytest.mark.parametrize(("path", "name"), sorted(_names_in_documents()))
def test_names_in_the_documents_exist(path, name):
    found = nx
    for part in name.split(".")[1:]:
        found = getattr(found, part)


def test_methods_in_the_documents_exist():
    text = (ROOT / "docs/guide/devices.md").read_text(encoding="utf-8")
    spans = re.findall(r"`x\.(\w+)\(", text)
    assert spans
    for method in spans:
        assert hasattr(nx.Tensor, method), method
