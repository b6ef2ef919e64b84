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


def test_the_table_is_long():
    assert len(ROWS) > 250


@pytest.mark.parametrize("name", sorted({row[1] for row in ROWS if row[1]}))
def test_python_names_exist(name):
    found = nx
    assert name.startswith("nx.")
    for part in name.split(".")[1:]:
        found = getattr(found, part)


def test_rustdoc_gets_every_rust_name():
    """rustdoc refuses a link without a target, in `make check`."""
    page = runpy.run_path(str(ROOT / "tools/names.py"))["page"]()
    assert page == (ROOT / "crates/nxla/src/names.md").read_text(encoding="utf-8")
    names = {name for row in ROWS for name in re.findall(r"[A-Z]\w*::\w+|nxla::\w+", row[2])}
    assert len(names) > 250
    assert [name for name in names if f"[`{name}`](" not in page] == []


def test_what_is_in_python_is_in_rust_or_says_what_to_write_instead():
    missing = [row[0] for row in ROWS if row[1] and not row[2] and "Rust: " not in row[3]]
    assert missing == []


def test_what_has_no_python_name_says_what_to_write_instead():
    assert [row[0] for row in ROWS if not row[1] and not row[3]] == []


def test_names_of_other_libraries_are_told_and_listed():
    for module, names in MODULES.items():
        owner = importlib.import_module(module)
        for name, here in names.items():
            with pytest.raises(AttributeError, match=re.escape(f"{name!r}; in nxla it is {here}")):
                getattr(owner, name)
            for mentioned in re.findall(r"nx\.([a-z_][\w.]*\w)", here):
                assert operator.attrgetter(mentioned)(nx) is not None, here
            for member in re.findall(r"the (?:method|property) (\w+) of a tensor", here):
                assert hasattr(nx.Tensor, member)
    for name, why in ABSENT.items():
        with pytest.raises(AttributeError, match=re.escape(f"{name!r}; not in nxla: {why}")):
            getattr(nx, name)
        for mentioned in re.findall(r"nx\.([a-z_][\w.]*\w)", why):
            assert operator.attrgetter(mentioned)(nx) is not None, why
    with pytest.raises(AttributeError, match=r"'nothing_like_it'$"):
        _ = nx.nothing_like_it
    assert not hasattr(nx, "concatenate")
    text = (ROOT / "docs/names.md").read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in text.split("\n### ")[1:])
    head = ["| other library | nxla |", "|---|---|"]
    for module, names in MODULES.items():
        rows = [f"| {name} | {here} |" for name, here in sorted(names.items())]
        section = sections[f"`{module.replace('nxla', 'nx')}`"]
        assert section.strip().splitlines() == head + rows
    rows = [f"| {name} | {here} |" for name, here in sorted(TENSOR.items())]
    assert sections["Tensors"].strip().splitlines() == head + rows
    absent = [f"| {', '.join(sorted(names))} | {why} |" for why, names in sorted(REASONS.items())]
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
    """Return hints that are expressions of tensors, with the variables and the function."""
    for name, here in MODULES["nxla"].items():
        function = getattr(np, name, getattr(scipy_special, name, None))
        try:
            nodes = list(ast.walk(ast.parse(here, mode="eval")))
        except SyntaxError:
            continue
        found = [node.id for node in nodes if isinstance(node, ast.Name) and node.id in VALUES]
        if function is not None and found:
            yield name, here, [variable for variable in VALUES if variable in found], function


HINTS = list(_hints_with_references())


@pytest.mark.parametrize(
    ("name", "here", "variables", "function"), HINTS, ids=[name for name, *_ in HINTS]
)
def test_expressions_in_hints_have_the_values_of_the_other_library(name, here, variables, function):
    values = dict(VALUES)
    if name in ("fmax", "fmin", "heaviside"):
        values.update(x=np.array([0.5, np.nan, np.nan]), y=np.array([np.nan, 0.5, np.nan]))
    given = {each: nx.tensor(v) if isinstance(v, np.ndarray) else v for each, v in values.items()}
    found = eval(here, {"nx": nx, **given})
    expected = function(*(values[variable] for variable in variables))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "function"),
    [("max", np.maximum), ("min", np.minimum), ("mul", np.multiply)],
)
def test_scatters_in_hints_have_the_values_of_numpy(name, function):
    x, index, v = np.array([1.0, 5.0, 3.0]), np.array([1, 1, 2]), np.array([2.0, 7.0, 4.0])
    given = {"x": nx.tensor(x), "index": nx.tensor(index), "v": nx.tensor(v)}
    found = eval(MODULES["nxla"][f"scatter_{name}"], given)
    function.at(x, index, v)
    assert found.tolist() == x.tolist()


@pytest.mark.parametrize("name", sorted(TENSOR))
def test_attributes_of_other_arrays_are_told(name):
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
def test_a_misspelled_name_is_answered_by_the_most_similar_one(call, similar):
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
def test_nothing_of_jax_is_unanswered(namespace):
    jax = pytest.importorskip("jax", reason="jax is not installed, so its names are not known")
    own = {"numpy.linalg": nx.linalg, "numpy.fft": nx.fft, "nn": nx.nn, "random": nx.random}
    module = own.get(namespace, nx)
    names = {
        *vars(module),
        *module.__all__,
        *MODULES[module.__name__],
        *(ABSENT if module is nx else ()),
    }
    theirs = importlib.import_module(f"jax.{namespace}")
    # Names that end with _p are primitives, which users do not call.
    public = {name for name in dir(theirs) if not name.startswith("_") and name[-2:] != "_p"}
    assert len(public) > 15, jax.__version__
    assert public - names == set()


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in [row[0]]}))
def test_every_name_of_nx_is_found_or_answered_with_ours(name):
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
