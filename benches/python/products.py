"""Compare matrix products and convolutions: nxla, NumPy and PyTorch, in GFLOP/s.

The products have the shapes of layers of models, with and without transposed operands; the
convolutions have the shapes of ResNet-18 and MobileNet and of the CNN of ``zoo.py``, forward, by
input and by kernel. Each library runs in a separate process on one thread and on two, and the
processes alternate. The libraries have as many threads as processors where the system has
affinities; elsewhere XLA has a thread for each processor. The script compares the results before it
prints the rates.

The first line of each table is the peak rate of the processor: fused multiply-adds in registers, by
``cargo run --release -p nxla-benches --bin peak``. The column "best" of the ratios is the best of
NumPy and PyTorch. PyTorch is optional: ``pip install torch`` installs it.

``make bench`` runs all benchmarks; ``python benches/python/products.py [WORD…]`` selects the cases
whose name contains a word.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from libraries import Library, installed, least_time, library, processors, same_padding
from models import distance
from processes import figures_of

ROOT = Path(__file__).resolve().parents[2]
#: The libraries, and the package that each of them needs.
LIBRARIES = {"evaluator": "nxla", "xla": "nxla", "numpy": "numpy", "torch": "torch"}
COMPETITORS = ("numpy", "torch")
#: The results are compared with the first of these that has the case.
REFERENCES = ("numpy", "torch", "evaluator")
ROUNDS = 2
SECONDS = 0.25
#: The tolerance of results, as a share of the largest number.
TOLERANCES = {"f32": 1e-4, "f64": 1e-12}
DTYPES = {"f32": np.float32, "f64": np.float64}
#: The variables that set the number of threads of a library.
THREADS = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
#: The minimum of the ratio to the best rate, for a case and in the geometric mean.
MIN_RATIO, MIN_MEAN_RATIO = 0.8, 0.9

#: Rows, inner axis and columns.
PRODUCTS = ((512, 384, 384), (512, 1536, 384), (512, 384, 1536), (128, 784, 512), (1024,) * 3)
LAYOUTS = ("plain", "right transposed", "left transposed")
#: Input, kernel and stride; kernels with fewer input channels have groups.
CONVOLUTIONS = (
    ((16, 16, 32, 32), (32, 16, 3, 3), 1),
    ((1, 3, 224, 224), (64, 3, 7, 7), 2),
    ((1, 64, 56, 56), (64, 64, 3, 3), 1),
    ((1, 128, 28, 28), (128, 128, 3, 3), 1),
    ((1, 256, 14, 14), (256, 256, 3, 3), 1),
    ((1, 512, 7, 7), (512, 512, 3, 3), 1),
    ((1, 64, 56, 56), (128, 64, 1, 1), 1),
    ((1, 256, 28, 28), (256, 256, 1, 1), 1),
    ((1, 128, 56, 56), (128, 1, 3, 3), 1),
)
MODES = ("forward", "by input", "by kernel")


@dataclass(frozen=True)
class Case:
    """A product or a convolution."""

    #: The targets hold for each kind.
    kind: str
    dtype: str
    #: The shapes of the arguments.
    shapes: tuple[tuple[int, ...], ...]
    flops: int
    #: Returns the function for a library by its name.
    make: Callable[[Library, str], Callable[..., Any]]
    libraries: tuple[str, ...] = tuple(LIBRARIES)

    def arguments(self) -> tuple[np.ndarray, ...]:
        """Return normal numbers, the same each time."""
        random = np.random.default_rng(0)
        return tuple(
            random.standard_normal(shape).astype(DTYPES[self.dtype]) for shape in self.shapes
        )


def multiply(left: bool, right: bool, lib: Library, _name: str) -> Callable[..., Any]:
    """Return the product of two matrices; `left` and `right` are the transposed operands."""

    def transpose(x):
        return lib.xp.permute_dims(x, (1, 0))

    return lambda x, y: (transpose(x) if left else x) @ (transpose(y) if right else y)


def dense(lib: Library, _name: str) -> Callable[..., Any]:
    """Return a layer: a product with a bias and an activation."""
    return lambda x, weight, bias: lib.xp.maximum(x @ weight + bias, 0.0)


def convolve(mode: str, stride: int, groups: int, lib: Library, name: str) -> Callable[..., Any]:
    """Return a convolution or its derivative, a function of input, kernel and cotangent."""
    conv = partial(lib.conv, stride=stride, groups=groups)
    if mode == "forward":
        return lambda x, kernel, _: conv(x, kernel)
    if name == "torch":
        # Automatic differentiation would compute the convolution as well.
        from torch.nn.grad import conv2d_input, conv2d_weight

        def options(kernel):
            padding = [before for before, _ in same_padding(kernel)]
            return {"stride": stride, "padding": padding, "groups": groups}

        if mode == "by input":
            return lambda x, k, c: conv2d_input(x.shape, k, c, **options(k))
        return lambda x, k, c: conv2d_weight(x, k.shape, c, **options(k))

    def total(x, kernel, cotangent):
        return lib.xp.sum(conv(x, kernel) * cotangent)

    if mode == "by input":
        return lambda x, k, c: lib.value_and_grad(total)(x, k, c)[1]
    return lambda x, k, c: lib.value_and_grad(lambda k: total(x, k, c))(k)[1]


def cases() -> dict[str, Case]:
    """Return all cases by their names."""
    table = {}
    for dtype, (rows, inner, columns), layout in product(DTYPES, PRODUCTS, LAYOUTS):
        left, right = layout == "left transposed", layout == "right transposed"
        shapes = (
            (inner, rows) if left else (rows, inner),
            (columns, inner) if right else (inner, columns),
        )
        name = f"{dtype} {rows} x {inner} x {columns}, {layout}"
        flops = 2 * rows * inner * columns
        table[name] = Case(
            f"{dtype} products", dtype, shapes, flops, partial(multiply, left, right)
        )
    for dtype in DTYPES:
        kind, plain = f"{dtype} products", partial(multiply, False, False)
        shapes, flops = ((96, 64, 32), (96, 32, 64)), 2 * 96 * 64 * 32 * 64
        table[f"{dtype} 96 of 64 x 32 x 64"] = Case(kind, dtype, shapes, flops, plain)
        shapes, flops = ((512, 384), (384, 1536), (1536,)), 2 * 512 * 384 * 1536
        table[f"{dtype} 512 x 384 x 1536, bias and ReLU"] = Case(kind, dtype, shapes, flops, dense)
        shapes, flops = ((32, 128), (128, 384)), 2 * 32 * 128 * 384
        table[f"{dtype} 32 x 128 x 384"] = Case(kind, dtype, shapes, flops, plain)
    for (x, kernel, stride), mode in product(CONVOLUTIONS, MODES):
        groups = x[1] // kernel[1]
        sizes = [(size - 1) // stride + 1 for size in x[2:]]
        cotangent = (x[0], kernel[0], *sizes)
        name = f"f32 conv {'x'.join(map(str, x))} by {'x'.join(map(str, kernel))}"
        name += f", stride {stride}" if stride > 1 else ""
        flops = 2 * math.prod(cotangent) * math.prod(kernel[1:])
        make = partial(convolve, mode, stride, groups)
        with_conv = tuple(library for library in LIBRARIES if library != "numpy")
        table[f"{name}, {mode}"] = Case(
            "convolutions", "f32", (x, kernel, cotangent), flops, make, with_conv
        )
    return table


CASES = cases()


def measure(name: str, results: str, selected: list[str]) -> dict[str, float]:
    """Return the rate of each case in GFLOP/s, and write the results to a file."""
    lib = library(name)
    rates, outputs = {}, {}
    for key in selected:
        case = CASES[key]
        if name not in case.libraries:
            continue
        arguments = lib.wait(lib.put(case.arguments()))
        step = lib.jit(case.make(lib, name))
        outputs[key] = np.asarray(lib.wait(step(*arguments)))
        rates[key] = case.flops / least_time(lib, step, arguments, SECONDS) / 1e9
    np.savez(results, *outputs.values(), names=list(outputs))
    return rates


@contextlib.contextmanager
def on_processors(threads: int) -> Iterator[dict[str, str]]:
    """Run processes on as many processors as threads; return the environment for them."""
    environment = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
    if not hasattr(os, "sched_setaffinity"):
        yield environment
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:threads])
    try:
        yield environment
    finally:
        os.sched_setaffinity(0, before)


def peak(threads: int) -> dict[str, float]:
    """Return the peak rate of the processor by dtype in GFLOP/s, if Cargo is installed."""
    if shutil.which("cargo") is None:
        return {}
    options = ["--release", "--quiet", "--package", "nxla-benches", "--bin", "peak"]
    subprocess.run(["cargo", "build", *options], cwd=ROOT, check=True)
    with on_processors(threads) as environment:
        run = subprocess.run(
            ["cargo", "run", *options, "--", str(threads)],
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
    lines = (line.split() for line in run.stdout.splitlines())
    return {dtype: float(rate) for dtype, rate in lines}


def best_rates(threads: int, names: list[str], selected: list[str]) -> dict[str, dict[str, float]]:
    """Return the best rate of each library for each case, after a comparison of the results."""
    best: dict[str, dict[str, float]] = {case: {} for case in selected}
    with tempfile.TemporaryDirectory() as folder, on_processors(threads) as environment:
        for number, name in product(range(ROUNDS), names):
            print(f"threads: {threads}, round {number + 1}, {name}", file=sys.stderr, flush=True)
            file = str(Path(folder) / f"{name}.npz")
            words = ("--worker", name, file, *selected)
            for case, rate in figures_of(__file__, *words, environment=environment).items():
                best[case][name] = max(rate, best[case].get(name, 0.0))
        compare(Path(folder), names)
    return best


def compare(folder: Path, names: list[str]) -> None:
    """End the run if the results of a library differ from the reference."""
    references: dict[str, tuple[str, np.ndarray]] = {}
    for name in sorted(names, key=lambda name: (*REFERENCES, name).index(name)):
        with np.load(folder / f"{name}.npz") as file:
            for index, case in enumerate(file["names"].tolist()):
                result = file[f"arr_{index}"]
                reference, expected = references.setdefault(case, (name, result))
                deviation = distance(result, expected)
                if not deviation <= TOLERANCES[CASES[case].dtype]:
                    raise SystemExit(f"{case}: {name} and {reference} differ by {deviation:.1e}")


def print_rates(
    names: list[str], best: dict[str, dict[str, float]], limits: dict[str, float]
) -> None:
    """Print the rates of all cases, and their ratios to the best other library and to the peak."""
    nxla_names = [name for name in names if name not in COMPETITORS]
    heads = [
        *names,
        *(f"{name}/best" for name in nxla_names),
        *(f"{name}/peak" for name in nxla_names),
    ]
    print(f"{'GFLOP/s':<53}" + "".join(f"{head:>15}" for head in [*heads, "best/peak"]))
    for case, rates in best.items():
        competitor = max((rates[name] for name in COMPETITORS if name in rates), default=None)
        limit = limits.get(CASES[case].dtype)
        cells = [format(rates[name], ".1f") if name in rates else "—" for name in names]
        pairs = [
            (rates[name], reference_rate)
            for reference_rate in (competitor, limit)
            for name in nxla_names
        ]
        cells += [ratio(*pair) for pair in [*pairs, (competitor, limit)]]
        print(f"{case:<53}" + "".join(f"{cell:>15}" for cell in cells))


def ratio(rate: float | None, reference_rate: float | None) -> str:
    """Return a rate as a part of another one, if both were measured."""
    return "—" if rate is None or reference_rate is None else f"{rate / reference_rate:.2f}"


def print_targets(best: dict[str, dict[str, float]]) -> None:
    """Print the worst case and the geometric mean of the evaluator for each kind of case."""
    print(f"\n{'evaluator / best':<24}{'worst':>8}{'at least':>10}{'mean':>8}{'at least':>10}")
    kinds: dict[str, dict[str, float]] = {}
    for case, rates in best.items():
        competitors = [rates[name] for name in COMPETITORS if name in rates]
        if competitors:
            kinds.setdefault(CASES[case].kind, {})[case] = rates["evaluator"] / max(competitors)
    for kind, shares in kinds.items():
        worst = min(shares, key=lambda case: shares[case])
        mean = math.exp(sum(map(math.log, shares.values())) / len(shares))
        verdict = "reached" if shares[worst] >= MIN_RATIO and mean >= MIN_MEAN_RATIO else "MISSED"
        summary = f"{shares[worst]:>8.2f}{MIN_RATIO:>10.2f}{mean:>8.2f}{MIN_MEAN_RATIO:>10.2f}"
        print(f"{kind:<24}{summary}  {verdict} ({worst})")


def main() -> None:
    """Measure the cases on the command line, or all cases, on one thread and on two."""
    words = sys.argv[1:]
    if words[:1] == ["--worker"]:
        print(json.dumps(measure(words[1], words[2], words[3:])))
        return
    selected = [case for case in CASES if not words or any(word in case for word in words)]
    names = installed(LIBRARIES)
    for threads, title in ((1, "one thread"), (2, "two threads")):
        if threads > processors():
            print(f"\n{title}: not run on {processors()} processor")
            continue
        limits = peak(threads)
        rates = [f"{dtype} {rate:.1f} GFLOP/s" for dtype, rate in limits.items()]
        summary = ", ".join(rates) or "not measured, because Cargo is not installed"
        print(f"\n{title}, peak of the processor: {summary}", flush=True)
        best = best_rates(threads, names, selected)
        print_rates(names, best, limits)
        print_targets(best)


if __name__ == "__main__":
    main()
