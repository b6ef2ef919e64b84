"""Compare programs with their random stages, run one by one and after serialization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nxla as nx
from fuzz import programs
from fuzz.driver import Failure, main

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator


def generate(rng: random.Random) -> Any:
    made = programs.generate(rng, steps=rng.randint(2, 12), smooth=True)
    return {**made, "cuts": [rng.random() < 0.4 for _ in range(40)], "outputs": rng.randint(1, 3)}


def check(case: Any) -> int:
    if not case["steps"]:
        return 0
    tensors = [nx.tensor(programs.array_of(given)) for given in case["inputs"]]

    def function(*xs: Any) -> Any:
        return tuple(programs.run(case, xs)[-case["outputs"] :])

    answers = iter(case["cuts"] * 100)

    def decide(_: Any) -> str:
        return "before" if next(answers) else "none"

    try:
        expected = nx.jit(function, compiler="evaluator")(*tensors)
        graph = nx.graph.split(nx.debug_expr(function)(*tensors), decide)
        found = nx.graph.run(graph, *tensors)
        for stage in graph.stages:
            again = nx.Stage.from_bytes(stage.to_bytes())
            if again.digest != stage.digest:
                raise Failure("a stage is another one when it is read from its bytes")
    except (nx.NxlaError, TypeError, ValueError) as raised:
        raise Failure(f"raises {type(raised).__name__}: {raised}") from raised
    for at, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if not np.array_equal(ours.numpy(), theirs.numpy(), equal_nan=ours.dtype.kind == "float"):
            raise Failure(
                f"output {at} of {len(graph.stages)} stages is {ours.tolist()}, not "
                f"{theirs.tolist()}"[:1000]
            )
    return 1


def smaller(case: Any) -> Iterator[Any]:
    rest = {"cuts": case["cuts"], "outputs": case["outputs"]}
    if case["outputs"] > 1:
        yield {**case, "outputs": 1}
    for program in programs.smaller(case):
        yield {**program, **rest}
    for at, cut in enumerate(case["cuts"]):
        if cut:
            yield {**case, "cuts": [*case["cuts"][:at], False, *case["cuts"][at + 1 :]]}


show = programs.show

if __name__ == "__main__":
    main(["splits"])
