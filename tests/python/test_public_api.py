"""Tests that a list contains every public name of the package with its signature.

The list makes changes deliberate: `NXLA_BLESS=1` rewrites it.
"""

import importlib.util
import inspect
import os
import pkgutil
import re
from pathlib import Path

import nxla as nx

LIST = Path(__file__).with_name("public_api.txt")


def namespaces():
    """Return the package and its public modules."""
    modules = (module.name for module in pkgutil.iter_modules(nx.__path__))
    public = (name for name in modules if not name.startswith("_"))
    return [nx, *(importlib.import_module(f"nxla.{name}") for name in public)]


def public_names(namespace):
    """Return the public names of a namespace: `__all__`, or else its definitions."""
    if hasattr(namespace, "__all__"):
        return sorted(namespace.__all__)
    defined = vars(namespace).items()
    return sorted(
        name
        for name, value in defined
        if not name.startswith("_") and getattr(value, "__module__", None) == namespace.__name__
    )


def signature_of(function):
    """Return the names, kinds and defaults of arguments, without annotations."""
    signature = inspect.signature(function)
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def describe(namespace):
    for name in public_names(namespace):
        value = getattr(namespace, name)
        path = f"{namespace.__name__.replace('nxla', 'nx', 1)}.{name}"
        if inspect.isclass(value):
            yield f"{path}: class"
        elif inspect.isroutine(value):
            yield f"{path}{signature_of(value)}"
        else:
            yield f"{path}: {type(value).__name__}"


def test_every_public_function_has_a_page_of_the_reference():
    file = Path(__file__).parents[2] / "docs" / "conf.py"
    spec = importlib.util.spec_from_file_location("conf", file)
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    names = [name for group in conf.groups().values() for name in group]
    assert sorted(names) == sorted(set(names)), "a function is on two pages"
    assert set(names) == {name for name in nx.__all__ if conf.is_documented(getattr(nx, name))}
    modules = {name for name in nx.__all__ if inspect.ismodule(getattr(nx, name))}
    assert set(conf.MODULES) == modules - {"errors"} | {"nn.initializers"}


def test_public_api_matches_the_list():
    found = [line for namespace in namespaces() for line in describe(namespace)]
    if os.environ.get("NXLA_BLESS"):
        LIST.write_text("\n".join(found) + "\n", encoding="utf-8")
    assert len(found) > 300
    assert found == LIST.read_text(encoding="utf-8").splitlines()


def test_dir_contains_lazy_imports():
    for module in (nx, nx.graph):
        assert set(module.__all__) <= set(dir(module))
