"""The programs in `examples`, compared with equivalent programs for JAX."""

import ast
import functools
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nxla as nx

ROOT = Path(__file__).parents[2]
JAX_EXAMPLES = Path(__file__).with_name("jax_examples")

#: Small sizes for each example.
SIZES = {
    "gpt": {"steps": 2, "length": 8, "width": 16, "depth": 1, "heads": 2},
    "minilm": {"width": 24, "depth": 1, "heads": 3, "words": 50, "length": 8},
    "lbfgs": {"size": 4, "count": 12, "memory": 3},
    "kalman": {"steps": 30, "targets": 3},
    "nbody": {"bodies": 8, "steps": 20},
    "gp": {"points": 20, "steps": 5},
    "ode": {"end": 3.0, "steps": 50, "rounds": 3},
    "montecarlo": {"paths": 300, "days": 8},
    "mandelbrot": {"width": 20, "height": 10, "limit": 20},
    "spectral": {"points": 32, "steps": 30},
}


def load(path):
    """Import a file outside any package."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def lines_of(path):
    """Return the number of lines of code of a program, without its main block."""
    source = path.read_text(encoding="utf-8")
    used = set()
    for node in ast.walk(ast.parse(source)):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and not text:
            used.update(range(node.lineno, node.lineno + 1))
            if not hasattr(node, "body"):
                used.update(range(node.lineno, node.end_lineno + 1))
    end = source.split('\nif __name__ == "__main__"')[0].count("\n") + 1
    return len({line for line in used if line <= end})


def flat(results):
    return {
        f"{name}.{index}": np.asarray(leaf, dtype=float)
        for name, value in results.items()
        for index, leaf in enumerate(nx.tree.leaves(value) if isinstance(value, dict) else [value])
    }


@functools.cache
def results_of(name):
    """Return the results of a program on the evaluator."""
    return flat(load(ROOT / "examples" / f"{name}.py").run(**SIZES[name]))


@pytest.mark.parametrize("name", sorted(SIZES))
def test_examples_run_on_both_backends(name):
    program, results = load(ROOT / "examples" / f"{name}.py"), results_of(name)
    with nx.default_options(compiler="xla"):
        compiled = flat(program.run(**SIZES[name]))
    for entry, value in results.items():
        assert np.isfinite(value).all()
        np.testing.assert_allclose(value, compiled[entry], rtol=2e-3, atol=2e-3)


# The training of gpt takes half a minute, and the page of the gallery runs it anyway.
@pytest.mark.parametrize("name", sorted(SIZES.keys() - {"gpt"}))
def test_examples_with_default_sizes_have_finite_results(name):
    for value in flat(load(ROOT / "examples" / f"{name}.py").run()).values():
        assert np.isfinite(value).all()


def test_the_ode_fit_converges():
    ode = load(ROOT / "examples" / "ode.py")
    first, last = (ode.run(rounds=rounds)["loss"].item() for rounds in (1, 20))
    assert last < 0.1 * first


@pytest.mark.parametrize("name", sorted(SIZES))
def test_examples_match_jax_programs(name):
    jax = pytest.importorskip("jax", reason="jax is not installed, so the JAX programs cannot run")
    if "optax" in (JAX_EXAMPLES / f"{name}.py").read_text(encoding="utf-8"):
        pytest.importorskip(
            "optax", reason="optax is not installed, so this JAX program cannot run"
        )
    # Use the original key generation of JAX, which nxla implements.
    jax.config.update("jax_threefry_partitionable", False)
    theirs = load(JAX_EXAMPLES / f"{name}.py").run(**SIZES[name])
    theirs = {name: jax.tree.map(np.asarray, value) for name, value in theirs.items()}
    expected, got = flat(theirs), results_of(name)
    assert got.keys() == expected.keys()
    for entry, value in got.items():
        np.testing.assert_allclose(value, expected[entry], rtol=2e-3, atol=2e-3, err_msg=entry)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_examples_are_not_longer_than_jax_programs(name):
    own, theirs = (lines_of(folder / f"{name}.py") for folder in (ROOT / "examples", JAX_EXAMPLES))
    assert 10 < own <= theirs


def test_every_jax_program_has_an_example():
    assert {path.stem for path in JAX_EXAMPLES.glob("*.py")} == set(SIZES)


def test_an_onnx_model_is_fine_tuned_and_rendered(compiler):
    example = load(ROOT / "examples" / "import_onnx.py")
    assert (ROOT / "tests" / "formats" / "mlp.onnx").read_bytes() == example.MODEL
    with nx.default_options(compiler=compiler):
        result = example.run(steps=60)
    losses = result["losses"].numpy()
    assert losses[-1] < 0.5 * losses[0]
    assert result["right"].item() > 0.9
    assert {"dot", "tanh"} <= set(result["step"].op_counts())
    assert "<svg" in result["step"].to_svg()
    assert "tanh" in nx.view(result["step"])._repr_html_()


def test_a_jax_training_step_runs_in_stages_and_is_rendered(compiler):
    example = load(ROOT / "examples" / "import_jax.py")
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        nx.default_options(compiler=compiler),
        distributed.Client(processes=False, dashboard_address=None) as cluster,
    ):
        result = example.run(steps=3, executor=cluster)
    params, x, y = (nx.tree.map(np.asarray, part) for part in example.problem())
    for loss in result["losses"].numpy():
        hidden = np.tanh(x @ params["w1"] + params["b1"])
        error = hidden @ params["w2"] + params["b2"] - y
        assert loss == pytest.approx(np.mean(error**2), rel=1e-4)
        slope = 2.0 / len(x) * error
        before = slope @ params["w2"].T * (1.0 - hidden**2)
        slopes = {
            "w1": x.T @ before,
            "b1": before.sum(0),
            "w2": hidden.T @ slope,
            "b2": slope.sum(0),
        }
        params = {name: value - 0.2 * slopes[name] for name, value in params.items()}
    for name, value in params.items():
        np.testing.assert_allclose(result["params"][name].numpy(), value, rtol=1e-4, atol=1e-6)
    assert len(result["stages"]) == 3
    assert "tanh" in nx.view(result["stages"])._repr_html_()


# --- the pages of the gallery, which are notebooks ---

PAGES = ROOT / "docs" / "gallery"
#: Runs the cells of a notebook in one namespace.
RUN_CELLS = """
import pathlib, sys
for number in range(int(sys.argv[1])):
    exec(compile(pathlib.Path(f"{number}.py").read_text(), f"cell {number}", "exec"))
"""


def cells_of(page):
    """Yield the code cells of a notebook; a cell may include a file."""
    text = page.read_text(encoding="utf-8")
    for cell in re.findall(r"```\{code-cell\} python\n(.*?)```", text, flags=re.DOTALL):
        file = re.fullmatch(r":load: (.*)\n", cell)
        yield (PAGES / file[1]).read_text(encoding="utf-8") if file else cell


def test_every_example_has_a_gallery_page():
    pages = {path.stem for path in PAGES.glob("*.md")} - {"index", "pictures"}
    # The example `sentences` requires weights from a separate package.
    assert pages == {path.stem for path in (ROOT / "examples").glob("*.py")} - {"sentences"}


@pytest.mark.parametrize(
    "page", sorted(set(PAGES.glob("*.md")) - {PAGES / "index.md"}), ids=lambda page: page.stem
)
def test_pages_of_the_gallery_run(page, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed, so nothing is drawn")
    cells = list(cells_of(page))
    assert len(cells) > 1
    for number, cell in enumerate(cells):
        (tmp_path / f"{number}.py").write_text(cell, encoding="utf-8")
    environment = {**os.environ, "MPLBACKEND": "agg"}
    command = [sys.executable, "-c", RUN_CELLS, str(len(cells))]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not re.search(r"\bnan\b", done.stdout, flags=re.IGNORECASE), done.stdout
