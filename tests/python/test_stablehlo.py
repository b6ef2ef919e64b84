"""Imported StableHLO modules: the golden exports of JAX on both compilers, and transformations."""

import os
from pathlib import Path

import numpy as np
import pytest

import nxla as nx

FOLDER = Path(__file__).parents[1] / "import/stablehlo"
CASES = sorted(path.stem for path in FOLDER.glob("*.mlir"))

SQUARES = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %w = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0 = stablehlo.multiply %x, %x : tensor<3xf32>
  %1 = stablehlo.multiply %0, %w : tensor<3xf32>
  return %1 : tensor<3xf32>
}
"""
X = np.array([1.0, -2.0, 0.5], np.float32)


def load(name):
    data = nx.from_safetensors((FOLDER / f"{name}.safetensors").read_bytes())

    def numbered(prefix):
        index = 0
        while f"{prefix}{index}" in data:
            yield data[f"{prefix}{index}"]
            index += 1

    return list(numbered("in")), list(numbered("out")), data


def close(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    scale = max([1.0, *finite.ravel()])
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4 * scale)


def test_golden_cases_exist():
    assert len(CASES) >= 50


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
@pytest.mark.parametrize("name", CASES)
def test_results_match_jax(name, compiler):
    inputs, expected, _ = load(name)
    results = nx.from_stablehlo(FOLDER / f"{name}.mlir", compiler=compiler)(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    assert len(results) == len(expected)
    for found, other in zip(results, expected, strict=True):
        close(found, other)


def weighted(results):
    total = 0.0
    for leaf in nx.tree.leaves(results):
        if leaf.dtype in (nx.float32, nx.float16):
            weights = nx.cos(nx.iota(leaf.shape, dtype=nx.float32))
            total = total + nx.sum(nx.astype(leaf, nx.float32) * weights)
    return total


@pytest.mark.parametrize("name", ["gpt", "lstm", "small_network", "attention", "mapped", "updates"])
def test_gradients_match_jax(name):
    inputs, _, data = load(name)
    function = nx.from_stablehlo(FOLDER / f"{name}.mlir")
    floats = [index for index, value in enumerate(inputs) if value.dtype == nx.float32]
    gradients = nx.grad(lambda *args: weighted(function(*args)), floats)(*inputs)
    for index, found in zip(floats, gradients, strict=True):
        close(found, data[f"grad{index}"])


def test_imported_functions_support_transformations(tmp_path):
    f = nx.from_stablehlo(SQUARES)
    assert f(X).tolist() == [1.0, 8.0, 0.75]
    assert nx.jit(lambda x: f(x) + 1)(X).tolist() == [2.0, 9.0, 1.75]
    assert nx.grad(lambda x: nx.sum(f(x)))(X).tolist() == [2.0, -8.0, 3.0]
    assert nx.vmap(f)(np.stack([X, X])).tolist() == [[1.0, 8.0, 0.75]] * 2
    expression = nx.debug_expr(f)(X)
    assert [node.op for node in expression.nodes].count("multiply") == 2
    stages = nx.graph.split(expression, lambda node: "after" if node.op == "multiply" else "none")
    assert nx.graph.run(stages, X).tolist() == [1.0, 8.0, 0.75]
    (tmp_path / "squares.mlir").write_text(SQUARES, encoding="utf-8")
    for source in (
        tmp_path / "squares.mlir",
        os.fspath(tmp_path / "squares.mlir"),
        SQUARES.encode(),
    ):
        assert nx.from_stablehlo(source).expression.digest == f.expression.digest


# The modules that JAX writes for `jax.nn.sigmoid` and `jax.nn.softplus`.
SIGMOID = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  %1 = stablehlo.exponential %0 : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.add %2, %1 : tensor<4xf32>
  %4 = stablehlo.divide %2, %3 : tensor<4xf32>
  return %4 : tensor<4xf32>
}"""
SOFTPLUS = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.maximum %x, %0 : tensor<4xf32>
  %2 = stablehlo.subtract %x, %0 : tensor<4xf32>
  %3 = stablehlo.compare NE, %2, %2, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %4 = stablehlo.add %x, %0 : tensor<4xf32>
  %5 = stablehlo.abs %2 : tensor<4xf32>
  %6 = stablehlo.negate %5 : tensor<4xf32>
  %7 = stablehlo.exponential %6 : tensor<4xf32>
  %8 = stablehlo.log_plus_one %7 : tensor<4xf32>
  %9 = stablehlo.add %1, %8 : tensor<4xf32>
  %10 = stablehlo.select %3, %4, %9 : tensor<4xi1>, tensor<4xf32>
  return %10 : tensor<4xf32>
}"""


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
@pytest.mark.parametrize(("source", "native"), [(SIGMOID, nx.sigmoid), (SOFTPLUS, nx.nn.softplus)])
def test_decomposed_functions_match_native_functions(source, native, compiler):
    imported = nx.from_stablehlo(source)

    def slope(function):
        return nx.grad(lambda x: nx.sum(function(x)))

    x = nx.tensor([-1000.0, -100.0, 0.0, 3.0])
    for found, expected in [(imported, native), (slope(imported), slope(native))]:
        close(nx.jit(found, compiler=compiler)(x), nx.jit(expected, compiler=compiler)(x))


def test_weights_are_arguments_on_request():
    f = nx.from_stablehlo(SQUARES, weights="arguments")
    (weight,) = f.weights
    assert weight.tolist() == [1.0, 2.0, 3.0]
    assert f([2 * weight], X).tolist() == [2.0, 16.0, 1.5]
    (slope,) = nx.grad(lambda w: nx.sum(f(w, X)))(f.weights)
    assert slope.tolist() == [1.0, 4.0, 0.25]
    with pytest.raises(nx.ArgumentError, match="a list of 1 tensors"):
        f([], X)
    with pytest.raises(nx.ArgumentError, match="must be 'constants' or 'arguments'"):
        nx.from_stablehlo(SQUARES, weights="none")


def test_errors_name_the_line_or_the_argument():
    with pytest.raises(nx.FormatError, match="line 4: the value %z is not defined"):
        nx.from_stablehlo(SQUARES.replace("%x, %x", "%z, %x"))
    with pytest.raises(nx.ArgumentError, match=r"(?s)2 unsupported operations.*line 4.*line 5"):
        nx.from_stablehlo(
            SQUARES.replace("stablehlo.multiply", "stablehlo.fma").replace("%0, %w", "%x, %w")
        )
    with pytest.raises(nx.ArgumentError, match=r"argument 0: must be f32\[3\]; got s32\[2\]"):
        nx.from_stablehlo(SQUARES)(nx.tensor([1, 2]))
    with pytest.raises(nx.ArgumentError, match="must be 1 tensors; got 2"):
        nx.from_stablehlo(SQUARES)(X, X)
    with pytest.raises(nx.FormatError, match="byte 5: a string must end with a zero"):
        nx.from_stablehlo(b"ML\xefR\x0dStableHLO")
    with pytest.raises(nx.FormatError, match="textual form, bytecode, or an export of JAX"):
        nx.from_stablehlo(b"\xff\xfe\x00\x00" * 8)
    with pytest.raises(
        nx.FormatError, match=r"import_stablehlo: source: .*from_stablehlo reads byte"
    ):
        nx.import_stablehlo((FOLDER / "scan.jax").read_bytes())
    with pytest.raises(FileNotFoundError):
        nx.from_stablehlo("none.mlir")


EXPORTS = sorted(path.name for kind in ("jax", "mlirbc") for path in FOLDER.glob(f"*.{kind}"))


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_load_without_jax(name):
    inputs, expected, _ = load(Path(name).stem)
    function = nx.from_stablehlo(FOLDER / name)
    results = function(*inputs)
    results = results if isinstance(results, (tuple, list)) else (results,)
    for found, other in zip(nx.tree.leaves(results), expected, strict=True):
        close(found, other)


def test_exports_of_jax_keep_their_containers():
    f = nx.from_stablehlo(FOLDER.parent / "containers.jax")
    assert f.__name__ == "affine"
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    params = {"w": np.ones((3, 2), np.float32), "b": np.array([1, 2], np.float32)}
    unused = np.zeros(7, np.float32)
    found = f(params, x, unused, scale=2.0)
    assert list(found) == ["parts", "y"]
    assert found["y"].tolist() == [[7.0, 8.0], [25.0, 26.0], [43.0, 44.0], [61.0, 62.0]]
    total, (first, nothing) = found["parts"]
    assert (total.item(), first.tolist(), nothing) == (66.0, [0.0, 1.0, 2.0], None)
    slopes = nx.grad(lambda p: nx.sum(f(p, x, unused, scale=2.0)["y"]))(params)
    assert slopes["w"].tolist() == [[36.0] * 2, [44.0] * 2, [52.0] * 2]
    for arguments, error in [
        ((params, x), r"arguments\[0\]: must be a tuple of 3; got 2"),
        (
            ({"w": x}, x, unused),
            r"arguments\[0\]\[0\]: must have the keys \['b', 'w'\]; got \['w'\]",
        ),
        ((params, x.T, unused), r"f32\[4, 3\]; got f32\[3, 4\]"),
    ]:
        with pytest.raises(nx.ArgumentError, match=error):
            f(*arguments, scale=2.0)
    with pytest.raises(nx.ArgumentError, match=r"arguments\[1\]: must have the keys \['scale'\]"):
        f(params, x, unused)


def test_multi_platform_exports():
    path = FOLDER.parent / "platforms.jax"
    x = np.array([0.5, -1.0, 2.0], dtype=np.float32)
    for platform, expected in [(None, np.sin), ("cpu", np.sin), ("cuda", np.cos)]:
        f = nx.from_stablehlo(path, platform=platform)
        np.testing.assert_allclose(np.asarray(f(x)), expected(x), rtol=1e-6)
    with pytest.raises(nx.ArgumentError, match="platform: must be one of cpu, cuda; got"):
        nx.from_stablehlo(path, platform="tpu")
    with pytest.raises(nx.ArgumentError, match="platform: the file must name its platforms"):
        nx.from_stablehlo(SQUARES, platform="cpu")


def test_new_exports_match_jax():
    jax = pytest.importorskip("jax", exc_type=ImportError)
    pytest.importorskip("flatbuffers", exc_type=ImportError)
    export = pytest.importorskip("jax.export")

    def model(params, x):
        return jax.numpy.tanh(x @ params["w"])

    params, x = {"w": np.ones((3, 2), np.float32) / 4}, np.ones((2, 3), np.float32)
    data = export.export(jax.jit(model))(params, x).serialize()
    close(nx.from_stablehlo(data)(params, x), model(params, x))


def test_imported_jax_functions_keep_their_containers():
    jax = pytest.importorskip("jax", exc_type=ImportError)
    jnp = jax.numpy

    def model(params, x, *, scale):
        return {"y": jnp.tanh(x @ params["w"] + params["b"]) * scale, "parts": (x.sum(), [x[0]])}

    params = {"b": np.ones(2, np.float32), "w": np.ones((3, 2), np.float32) / 4}
    x = np.arange(6, dtype=np.float32).reshape(2, 3) / 8
    f = nx.from_jax(model, params, x, scale=2.0)
    assert f.__name__ == "model"
    found, expected = f(params, x, scale=2.0), model(params, x, scale=2.0)
    assert list(found) == ["parts", "y"]
    assert isinstance(found["parts"], tuple)
    for ours, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        close(ours, other)
    slopes = nx.grad(lambda p: nx.sum(f(p, x, scale=2.0)["y"]))(params)
    expected_slopes = jax.grad(lambda p: model(p, x, scale=2.0)["y"].sum())(params)
    close(slopes["w"], expected_slopes["w"])
    with pytest.raises(nx.ArgumentError, match="arguments: must have the structure"):
        f(params, x)


@pytest.mark.parametrize("dtype", ["u8", "s32", "f32", "bool"])
def test_from_jax_accepts_tensors_and_templates(dtype):
    pytest.importorskip("jax", exc_type=ImportError)
    x = nx.astype(nx.tensor([1, 0, 1]), dtype)
    for argument in (x, nx.template(x.shape, x.dtype)):
        f = nx.from_jax(lambda x: (x, x != 0), argument)
        assert f.expression.inputs[0][1] == x.dtype
        copy, is_set = f(x)
        assert copy.dtype == x.dtype
        assert copy.tolist() == x.tolist()
        assert is_set.tolist() == [True, False, True]
