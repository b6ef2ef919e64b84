"""Tests of the search for plugins and of their checks."""

import ast
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

import pytest

import nxla as nx
from nxla import plugins
from where import DEVICE, PLATFORM, on_cpu


@pytest.fixture
def package_folder(tmp_path, monkeypatch):
    """The only folder in which packages are searched."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    parents = [module.partition(".")[0] for module, _ in plugins.CPU_PACKAGES]
    for parent in parents:
        # Python caches imported packages; restore the cache after the test.
        monkeypatch.setitem(sys.modules, parent, None)
        monkeypatch.delitem(sys.modules, parent)
    return tmp_path


def install(folder, module, name):
    """Create a file at the path of a package's plugin."""
    package = folder.joinpath(*module.split("."))
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / name).touch()
    return str(package / name)


def test_first_installed_package_is_selected(package_folder):
    assert plugins.find() is None
    for module, name in reversed(plugins.CPU_PACKAGES):
        path = install(package_folder, module, name)
        assert plugins.find() == path


def test_packages_without_a_plugin_file_are_skipped(package_folder):
    (first, name), (second, other) = plugins.CPU_PACKAGES[:2]
    os.remove(install(package_folder, first, name))
    path = install(package_folder, second, other)
    assert plugins.find() == path


def test_find_plugin_by_platform(package_folder, monkeypatch):
    assert plugins.find_for("cuda") is None
    library = install(package_folder, "jax_plugins.xla_cuda13", "xla_cuda_plugin.so")
    other = install(package_folder, "jax_plugins.xla_rocm7", "xla_rocm_plugin.so")
    (package_folder / "jax_plugins/__init__.py").touch()
    for name in ("xla_rocm7", "xla_cuda13"):
        entry = EntryPoint(name, f"jax_plugins.{name}", "jax_plugins")
        known = plugins._entries
        monkeypatch.setattr(plugins, "_entries", lambda e=entry, k=known: [*k(), e])
    for parent in ("jax_plugins", "xla_plugins"):
        sys.modules.pop(parent, None)
    assert (plugins.find_for("cuda"), plugins.find_for("rocm")) == (library, other)
    assert plugins.find_for("cpu") is None
    assert plugins.find() == other


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("is_option", [False, True], ids=["variable", "option"])
@pytest.mark.parametrize("compiler", ["option", "variable"])
def test_platform_plugin_is_found_in_installed_packages(compiler, is_option, tmp_path):
    variables = ("VIRTUAL_ENV", "CONDA_PREFIX", plugins.VARIABLE)
    environment = {name: value for name, value in os.environ.items() if name not in variables}
    environment["HOME"] = str(tmp_path)
    if not is_option:
        environment[plugins.VARIABLE] = PLATFORM
    options = {"plugin": PLATFORM} if is_option else {}
    if compiler == "option":
        options["compiler"] = "xla"
    else:
        environment["NXLA_COMPILER"] = "xla"
    code = f"import nxla as nx; print(nx.jit(nx.sin, **{options})(0.0).device)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{DEVICE}\n"), done.stderr


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        ("", "no plugin for it is installed"),
        pytest.param(
            plugins.find_cpu(),
            "the plugin must have such a device; got ['cpu', 'host']",
            marks=pytest.mark.skipif(plugins.find_cpu() is None, reason="needs a PJRT plugin"),
        ),
    ],
    ids=["no plugin", "another plugin"],
)
def test_unavailable_platform_is_reported_in_skips(plugin, reason):
    environment = {**os.environ, "NXLA_TEST_PLATFORM": "abacus", "NXLA_PJRT_PLUGIN": plugin}
    test = "tests/python/test_plugins.py::test_find_plugin_by_platform"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=True
    )
    assert "1 skipped" in done.stdout
    assert re.search(f"NXLA_TEST_PLATFORM=abacus: .*{re.escape(reason)}", done.stdout)


def test_examples_without_a_plugin_are_skipped():
    environment = {**os.environ, "NXLA_TEST_PLATFORM": "none"}
    examples = ["docs/guide/devices.md", "docs/guide/dtypes.md"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *examples]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=True
    )
    assert "SKIPPED [1] docs/guide/devices.md:1: needs a PJRT plugin" in done.stdout
    assert "1 passed, 1 skipped" in done.stdout


@pytest.fixture
def faulty():
    """The path of a plugin with a known fault."""
    module, name = plugins.CPU_PACKAGES[-1]
    spec = find_spec(module.partition(".")[0]) and find_spec(module)
    if spec is None:
        pytest.skip("the package xla-cpu-pjrt 0.0.1 is not installed")
    return os.path.join(os.path.dirname(spec.origin), name)


def test_faulty_plugin_is_rejected(faulty):
    f = nx.jit(lambda x: x + 1, compiler="xla", plugin=faulty)
    with pytest.raises(nx.DeviceError, match="writes outside of its buffers") as error:
        f(1.0)
    assert "pip install fastatomstruct-xla-cpu" in str(error.value)
    assert "NXLA_PJRT_ALLOW_FAULTS=1" in str(error.value)
    assert nx.jit(lambda x: x + 1, compiler="xla")(1.0).item() == 2.0


def test_faulty_plugin_can_be_forced(faulty):
    program = "import nxla as nx; print(nx.jit(lambda x: x + 1, compiler='xla')(1.0).item())"
    environment = {**os.environ, "NXLA_PJRT_PLUGIN": faulty, "NXLA_PJRT_ALLOW_FAULTS": "1"}
    run = [sys.executable, "-c", program]
    result = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "2.0"


#: Prints the bits of sums and products that are large enough to be divided among threads.
PRODUCTS = """
import hashlib, os, sys
if len(sys.argv) > 2:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import nxla as nx

x = nx.sin(nx.iota((513, 700), dtype="f32"))
batch = nx.reshape(nx.sin(nx.iota((8 * 64 * 384,), dtype="f32")), (8, 64, 384))
weights = nx.cos(nx.iota((384, 384), dtype="f32"))
parts = nx.jit(
    lambda x, y, z: (x @ x.T, y @ z, nx.sum(x), nx.sum(x, axis=0), nx.sum(nx.exp(x), axis=1)),
    compiler=sys.argv[1],
)(x, batch, weights)
print([hashlib.sha256(nx.to_binary(part)).hexdigest() for part in parts])
"""


@on_cpu
@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be limited here")
def test_results_do_not_depend_on_the_thread_count(compiler):
    run = [sys.executable, "-c", PRODUCTS, compiler]
    parallel, serial = (
        ast.literal_eval(
            subprocess.run([*run, *limit], capture_output=True, text=True, check=True).stdout
        )
        for limit in ([], ["serial"])
    )
    # XLA divides the sums of products by the sizes of caches, on some processors by threads too.
    products = 0 if compiler == "evaluator" else 2
    assert parallel[products:] == serial[products:]


def test_files_with_unsafe_code_are_listed_with_their_tests():
    root = Path(__file__).parents[2]
    table, _, _ = (root / "docs/unsafe.md").read_text().partition("**Sanitizers.**")
    listed = re.findall(r"^\| `(crates/[^`]*)`", table, re.MULTILINE)
    word = re.compile(r"^[^/\"]*\bunsafe\b(?=\s*(\{|fn|impl|extern))", re.MULTILINE)
    found = {
        path.relative_to(root).as_posix()
        for path in root.glob("crates/*/src/**/*.rs")
        if word.search(path.read_text(encoding="utf-8"))
    }
    found = {path if path in listed else path.rpartition("/")[0] for path in found}
    assert found == set(listed)
