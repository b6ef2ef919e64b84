"""Compare programs on the evaluator step by step, fused, on XLA, and in NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nxla as nx
from fuzz import programs
from fuzz.driver import Failure, main
from fuzz.programs import OPERATIONS
from nxla import _core

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

#: The largest allowed difference of results, relative to their magnitude.
CLOSE = {"f16": 2e-2, "f32": 2e-4, "f64": 1e-9}
#: Smaller numbers may be 0 in one of the results, because XLA flushes subnormal numbers.
TINY = {"f32": 1e-36, "f64": 1e-300}


def generate(rng: random.Random) -> Any:
    mode = rng.choice(["steps", "steps", "fused", "xla", "auto"])
    if mode == "steps":
        # Each step starts from the same operands, so that operations can be combined in any order.
        return {"mode": rng.choice(["numpy", "xla-steps"]), **programs.generate(rng, steps=4)}
    kinds = rng.choice(["f", "ip"])
    dtypes = programs.FLOATS if kinds == "f" else ("s32", "u8", "s64", "pred", "s8", "u64")
    made = programs.generate(
        rng,
        steps=rng.randint(2, 9),
        kinds=kinds,
        special=kinds != "f",
        smooth=kinds == "f",
        dtypes=dtypes,
    )
    return {"mode": mode, **made}


def apart(ours: Any, theirs: Any, close: float = 0.0, slack: Any = 0.0) -> str | None:
    """Return how two results differ by more than `close` or the rounding of their dtype, or None.

    Elements may also differ by `slack`.
    """
    if ours.shape != theirs.shape:
        return f"shapes {ours.shape} and {theirs.shape}"
    if theirs.dtype.kind != "f":
        wrong = np.asarray(ours != theirs)
    else:
        name = programs.NAMES[theirs.dtype]
        with np.errstate(all="ignore"):
            wide = (ours.astype(np.float64), theirs.astype(np.float64))
            scale = np.where(np.isfinite(theirs), np.abs(wide[1]), 0).max(initial=0.0)
            near = (
                np.abs(wide[0] - wide[1])
                <= max(close, CLOSE[name]) * (np.abs(wide[1]) + 1e-2 * scale) + TINY[name] + slack
            )
        alike = (wide[0] == wide[1]) | (np.isnan(ours) & np.isnan(theirs)) | near
        # A sum may overflow in one order of its terms and not in another.
        limit = float(np.finfo(theirs.dtype).max) / 8
        huge = (np.abs(wide[0]) > limit) & (np.abs(wide[1]) > limit)
        wrong = ~(alike | huge)
    if not np.any(wrong):
        return None
    at = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0])
    return f"at {at}: {np.atleast_1d(ours)[at]!r} and {np.atleast_1d(theirs)[at]!r}"


def compiled(function: Any, compiler: str, tensors: list[Any]) -> Any:
    """Return the result of a compiler; fail if XLA is requested and did not run the program."""
    before = _core._plugin_report()["started"]
    result = nx.jit(function, compiler=compiler)(*tensors).numpy()
    if compiler == "xla" and _core._plugin_report()["started"] == before:
        raise Failure("the program did not run on XLA")
    return result


def on_steps(case: Any) -> None:
    """Compare each step separately."""
    values = [programs.array_of(given) for given in case["inputs"]]
    for name, places, arguments in case["steps"]:
        operation = OPERATIONS[name]
        operands = [values[place] for place in places]
        tensors = [nx.tensor(value) for value in operands]
        ours = operation.ours(*tensors, **arguments).numpy()
        if case["mode"] == "xla-steps":

            def step(*xs: Any, function: Any = operation.ours, more: Any = arguments) -> Any:
                return function(*xs, **more)

            theirs, backend = compiled(step, "xla", tensors), "XLA"
        else:
            theirs, backend = programs.computed(operation, operands, arguments), "numpy"
        theirs = np.asarray(theirs)
        if backend == "numpy" and ours.dtype != theirs.dtype:
            if KNOWN_DTYPES.get(name) is None:
                raise Failure(f"{name}: dtype {ours.dtype}, {backend} has {theirs.dtype}")
            theirs = theirs.astype(ours.dtype)
        differ = None if skipped(name, operands, backend) else apart(ours, theirs)
        if differ:
            shown = ", ".join(repr(operand.tolist()) for operand in operands)
            raise Failure(f"{name}({shown}, {arguments}) differs from {backend} {differ}"[:1500])
        values.append(ours)


#: Operations whose results have another dtype than in NumPy, with the reason.
KNOWN_DTYPES = {
    "argsort": "positions are int32",
    "sum": "sums of small integers",
    "sign": "numpy keeps it",
}


def skipped(name: str, operands: list[Any], backend: str) -> bool:
    """Return whether a step has a known difference, according to both results."""
    floats = [operand for operand in operands if operand.dtype.kind == "f"]
    with np.errstate(all="ignore"):
        tiny = any(
            (np.abs(x)[(x != 0) & np.isfinite(x)] < np.finfo(x.dtype).tiny).any() for x in floats
        )
    if tiny and backend == "XLA":
        return True  # XLA treats subnormal numbers as zeros.
    if floats and overflows_in_some_order(name, floats):
        return True
    has_nan = any(np.isnan(x).any() for x in floats)
    if name in ("sort", "argsort", "maximum", "minimum", "max", "min", "window_max", "window_min"):
        return has_nan
    return name.startswith("window_scatter") and has_nan


#: Operations that sum elements in an unspecified order.
ADDING = ("sum", "mean", "cumulative_sum", "matmul", "window_sum", "window_mean")


def overflows_in_some_order(name: str, floats: list[Any]) -> bool:
    """Return whether the order of finite elements decides if they overflow their dtype."""
    info = np.finfo(floats[0].dtype)
    finite = [np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64) for x in floats]
    with np.errstate(all="ignore"):
        if name == "prod":
            exponents = np.log2(finite[0])
            largest, smallest = exponents[exponents > 0].sum(), exponents[exponents < 0].sum()
            return bool(largest >= info.maxexp - 3 or smallest <= info.minexp + 3)
        if name in ADDING:
            total = finite[0].sum()
            for other in finite[1:]:
                total *= other.max(initial=0.0)
            return bool(total > float(info.max) / 8)
    return False


def whole(case: Any) -> None:
    """Compare all steps at once: fused, on XLA, or on the backend that `auto` chooses."""
    arrays = [programs.array_of(given) for given in case["inputs"]]
    tensors = [nx.tensor(array) for array in arrays]
    values = [value.numpy() for value in programs.run(case, tensors)]
    plain = values[-1]
    # A conversion to a wider dtype does not restore digits that an earlier step has rounded.
    close = max(CLOSE.get(programs.NAMES[value.dtype], 0.0) for value in values)
    with np.errstate(all="ignore"):
        sane = plain.dtype.kind != "f" or np.all(np.abs(plain) < 1e6)
    backend = case["mode"] if case["mode"] in ("xla", "auto") else "evaluator"
    other = compiled(lambda *xs: programs.run(case, xs)[-1], backend, tensors)
    slack = 8 * spread(case, arrays, plain) if sane else 0.0
    differ = apart(other, plain, close, slack) if sane else None
    if differ:
        raise Failure(f"{backend} and the evaluator step by step differ {differ}")


def spread(case: Any, arrays: list[Any], plain: Any) -> Any:
    """Return the change of each element under changes of the last digits of the inputs.

    Rounding changes `cos(prod(x))` by large amounts on every backend.
    """
    if plain.dtype.kind != "f" or not any(array.dtype.kind == "f" for array in arrays):
        return 0.0
    most = np.zeros(plain.shape)
    for period in (1, 2):  # Increase all elements, or increase and decrease them alternately.
        changed = []
        for array in arrays:
            moved = array
            if array.dtype.kind == "f":
                signs = np.where(np.arange(array.size) % period, -1, 1).reshape(array.shape)
                moved = (array * (1 + signs * np.finfo(array.dtype).eps)).astype(array.dtype)
            changed.append(nx.tensor(moved))
        other = programs.run(case, changed)[-1].numpy().astype(np.float64)
        with np.errstate(all="ignore"):
            change = np.nan_to_num(np.abs(other - plain.astype(np.float64)), posinf=0.0)
        most = np.maximum(most, change)
    return most


def check(case: Any) -> int:
    try:
        if case["mode"] in ("numpy", "xla-steps"):
            on_steps(case)
        elif case["steps"]:
            whole(case)
    except (nx.NxlaError, TypeError, ValueError) as raised:
        raise Failure(f"raises {type(raised).__name__}: {raised}") from raised
    return 1


def smaller(case: Any) -> Iterator[Any]:
    for program in programs.smaller(case):
        yield {"mode": case["mode"], **program}


def show(case: Any) -> str:
    return f"# {case['mode']}\n{programs.show(case)}"


if __name__ == "__main__":
    main(["differential"])
