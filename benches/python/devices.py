"""Time training steps over several devices in nxla and JAX, and compare the results.

The MLP and MiniLM of ``zoo.py`` are trained on one device; with the batch divided among 2 and 4
(data parallel); with the weights divided (tensor parallel); and with both on two times two. Each
configuration runs in a separate process. The script compares the results with the results of nxla
on one device, and lists the collectives of the compiled program. Devices of the CPU share its
processors, so the figures show the cost of division, not a speedup.

``make bench`` runs all benchmarks; ``python benches/python/devices.py [WORD…]`` selects the models
whose name contains a word.
"""

from __future__ import annotations

import collections
import json
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from libraries import least_time, library
from models import difference
from processes import figures_of
from zoo import minilm_training, mlp

TRAINED = {"MLP": mlp, "MiniLM": minilm_training}
#: A learning rate so large that new weights consist mainly of gradients, because the new weights
#: are compared.
RATE = 1e3
#: The allowed difference from the results of one device, relative to the largest number.
ROUNDING = 1e-3
#: Devices along the axes for the batch and for the weights.
MESHES = {
    "one device": (1, 1),
    "data, 2": (2, 1),
    "tensor, 2": (1, 2),
    "data, 4": (4, 1),
    "tensor, 4": (1, 4),
    "both, 2 x 2": (2, 2),
}
WITH_JAX = ("one device", "data, 2", "tensor, 2")
KINDS = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
EXCHANGES = re.compile(rf" ({KINDS})(?:-start)?\(")
SECONDS = 2.0


def mesh_axes(model: str, path: tuple[str, ...]) -> tuple[str | None, ...]:
    """Return along which axes of the mesh a weight is divided in tensor parallel."""
    name = ".".join(path)
    if model == "MLP":
        table = {"0.w": (None, "model"), "0.b": ("model",), "1.w": ("model",)}
        return table.get(name, ())
    if "encoder.layer" not in name or "LayerNorm" in name:
        return ()
    columns = "attention.self" in name or "intermediate" in name
    if name.endswith("bias"):
        return ("model",) if columns else ()
    return (None, "model") if columns else ("model",)


def layouts(model: str, weights: object) -> object:
    """Return the same container with the axes for each weight."""
    if isinstance(weights, dict):
        return {name: mesh_axes(model, (name,)) for name in weights}
    assert isinstance(weights, list)
    return [
        {name: mesh_axes(model, (str(index), name)) for name in layer}
        for index, layer in enumerate(weights)
    ]


def map_layout(function, container):
    """Map over layouts, which are tuples."""
    if isinstance(container, dict):
        return {name: map_layout(function, value) for name, value in container.items()}
    if isinstance(container, list):
        return [map_layout(function, value) for value in container]
    return function(container)


def with_nxla(model, model_case, sizes, folder):
    """Return the compiled step, its arguments on their devices, and how to read the program."""
    import nxla as nx

    options = {"xla_dump_to": str(folder), "xla_dump_hlo_as_text": True}

    def text():
        return "".join(path.read_text() for path in folder.glob("*after_optimizations.txt"))

    if sizes == (1, 1):
        arguments = library("xla").put(model_case.arguments)
        return nx.jit(model_case.step, compiler="xla", **options), arguments, text
    mesh = nx.Mesh(data=sizes[0], model=sizes[1])
    weights = map_layout(
        lambda names: mesh.sharding(*names), layouts(model, model_case.arguments[0])
    )
    rows = mesh.sharding("data")
    shardings = (weights, *[rows] * (len(model_case.arguments) - 1))
    step = nx.jit(model_case.step, in_shardings=shardings, out_shardings=(None, weights), **options)
    return step, nx.shard(model_case.arguments, shardings), text


def with_jax(model, model_case, sizes, _folder):
    """Return the compiled step, its arguments on their devices, and how to read the program."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()).reshape(sizes), ("data", "model"))
    weights = map_layout(
        lambda names: NamedSharding(mesh, PartitionSpec(*names)),
        layouts(model, model_case.arguments[0]),
    )
    rows = NamedSharding(mesh, PartitionSpec("data"))
    shardings = (weights, *[rows] * (len(model_case.arguments) - 1))
    everywhere = NamedSharding(mesh, PartitionSpec())
    step = jax.jit(model_case.step, in_shardings=shardings, out_shardings=(everywhere, weights))
    arguments = jax.device_put(model_case.arguments, shardings)
    return step, arguments, lambda: step.lower(*arguments).compile().as_text()


def measure(model: str, name: str, mesh: str, results: str) -> dict[str, object]:
    """Return the figures of one model on one mesh, and write its results to a file."""
    sizes = MESHES[mesh]
    lib = library("xla" if name == "nxla" else name)
    model_case = TRAINED[model](lib, RATE)
    with tempfile.TemporaryDirectory() as folder:
        prepare = with_nxla if name == "nxla" else with_jax
        step, arguments, text = prepare(model, model_case, sizes, Path(folder))
        start = time.perf_counter()
        found = lib.wait(step(*arguments))
        first = time.perf_counter() - start
        exchanges = collections.Counter(EXCHANGES.findall(text()))
    np.savez(results, *[np.asarray(leaf) for leaf in lib.leaves(found)])
    least = least_time(lib, step, arguments, SECONDS)
    return {"first": first, "step": least, "exchanges": dict(sorted(exchanges.items()))}


def figures_on(mesh: str, model: str, name: str, folder: Path) -> dict[str, object]:
    """Return the figures that a separate process measured."""
    count = MESHES[mesh][0] * MESHES[mesh][1]
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}
    words = ("--worker", model, name, mesh, str(folder / f"{name} {mesh}.npz"))
    environment = flags if name == "jax" else None
    figures: dict[str, object] = figures_of(__file__, *words, environment=environment)
    return figures


def compare(model: str, folder: Path) -> None:
    """Measure a model on all meshes, and print a line for each."""
    for mesh in MESHES:
        nxla = figures_on(mesh, model, "nxla", folder)
        names = ["nxla", *(["jax"] if mesh in WITH_JAX else [])]
        jax = figures_on(mesh, model, "jax", folder) if "jax" in names else None
        for name in names:
            deviation = difference(folder / f"{name} {mesh}.npz", folder / "nxla one device.npz")
            if not deviation <= ROUNDING:
                raise SystemExit(
                    f"{model}, {mesh}: {name} differs by {deviation:.1e} from one device"
                )
        exchanges = nxla["exchanges"]
        # Devices exchange only sums of gradients and of partial products.
        if set(exchanges) != (set() if mesh == "one device" else {"all-reduce"}):
            raise SystemExit(f"{model}, {mesh}: devices exchange {exchanges}")
        other = f"{jax['step'] * 1e3:>9.2f} ms" if jax else f"{'—':>12}"
        share = f"{nxla['step'] / jax['step']:>8.2f}" if jax else f"{'—':>8}"
        description = ", ".join(f"{count} {kind}" for kind, count in exchanges.items()) or "nothing"
        if jax and jax["exchanges"] != exchanges:
            reference_exchanges = ", ".join(
                f"{count} {kind}" for kind, count in jax["exchanges"].items()
            )
            description += f" (JAX: {reference_exchanges})"
        print(
            f"{model + ', ' + mesh:<24}{nxla['step'] * 1e3:>9.2f} ms{other}{share}  {description}",
            flush=True,
        )


def main() -> None:
    """Measure the models on the command line, or all models."""
    words = sys.argv[1:]
    if words[:1] == ["--worker"]:
        print(json.dumps(measure(*words[1:])))
        return
    print(f"{'training, on':<24}{'nxla':>12}{'jax':>12}{'share':>8}  exchanged")
    for model in TRAINED:
        if not words or any(word in model for word in words):
            with tempfile.TemporaryDirectory() as folder:
                compare(model, Path(folder))


if __name__ == "__main__":
    main()
