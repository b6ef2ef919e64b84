"""Running the cases of tensor functions on a backend.

The evaluator runs each call separately, like a user. XLA compiles each program for tens of
milliseconds, so many calls are traced into one program; a program that fails is halved until the
faulty call is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import nxla as nx
from golden import arbiter, compare, elixir, errors, factors, skips
from golden.calls import CALLS
from golden.calls.adapter import plain
from golden.report import Outcome
from golden.values import (
    Data,
    Failure,
    decode,
    number,
    numbers_of_nx,
    replace,
    tensors,
    to_nxla,
)

#: The number of calls in one program.
BATCH = 64


@dataclass(frozen=True)
class Run:
    """The outcome of a case: the mismatch, and the value unless an error was raised."""

    reason: str | None
    actual: Any = None
    raised_error: bool = False


NATIVE = "an error of Erlang or of Nx's reference backend"


@dataclass(frozen=True)
class Case:
    """One call, decoded."""

    raw: dict[str, Any]
    args: list[Any]
    options: dict[str, Any]
    expected: Any
    #: The result of IEEE arithmetic, if Nx's reference backend differs.
    ieee: tuple[Any, ...] | None

    @property
    def inputs(self) -> list[Data]:
        """The tensors among the arguments and options."""
        return tensors([self.args, self.options])

    def call(self, operands: Iterable[Any]) -> Any:
        """Call the function of nxla on these tensors instead of the recorded ones."""
        source = iter(operands)
        args = replace(self.args, lambda _: next(source))
        options = replace(self.options, lambda _: next(source))
        if "source" in self.raw:
            names = (f"a{position}" for position in range(len(args)))
            with numbers_of_nx():
                return elixir.evaluate(self.raw["source"], dict(zip(names, args, strict=False)))
        found = CALLS.get((self.raw["module"], self.raw["op"]))
        if found is None:
            raise NotImplementedError(f"no adapter for {self.raw['module']}.{self.raw['op']}")
        with numbers_of_nx():
            return found(args, options)

    @property
    def _tolerance_name(self) -> str:
        """The name of the tolerance: some modules accumulate larger rounding errors."""
        if self.raw["op"].startswith("LinAlg"):
            return "Nx.LinAlg"
        return self.raw["module"] if self.raw["group"] != "fft" else "fft"

    @property
    def host(self) -> bool:
        """True if no program computes the result."""
        if "source" in self.raw:
            return True
        found = CALLS.get((self.raw["module"], self.raw["op"]))
        return found is not None and found.host

    def outcome(self, backend: str, run_result: Run, rules: Sequence[skips.Skip]) -> Outcome:
        """Return the outcome of the case."""
        labels = self.raw["id"], self.raw["group"], backend
        if run_result.reason is None:
            unknown = self.native and not run_result.raised_error
            return Outcome(*labels, "skipped", NATIVE) if unknown else Outcome(*labels, "passed")
        deviation = skips.Deviation(run_result.reason, lambda: self._has_numpy(run_result))
        rule = skips.find(rules, self.raw, backend, deviation)
        if rule is None:
            return Outcome(*labels, "failed", run_result.reason, self.raw["call"])
        return Outcome(*labels, "skipped", rule.reason, self.raw["call"], rule)

    def _has_numpy(self, run_result: Run) -> bool:
        args, options = plain(self.args), {key: plain(x) for key, x in self.options.items()}
        function = self.raw["module"], self.raw["op"]
        return not (run_result.raised_error or self.fails) and arbiter.agrees(
            function, args, options, run_result.actual
        )

    def judge(self, actual: Any) -> Run:
        """Return the fault of a result, or None."""
        if self.ieee is not None:
            return Run(compare.numbers_mismatch(self.ieee, actual), actual)
        if isinstance(self.expected, Failure):
            missing = None if self.native else f"no error, expected {self.expected.message!r}"
            return Run(missing, actual)
        if self.raw["module"] == "Nx.LinAlg" and self.raw["op"] in factors.CHECKS:
            reason = factors.mismatch(self.raw["op"], self.inputs[0], self.expected, actual)
            return Run(reason, actual)
        loose = compare.LOOSE.get(self._tolerance_name)
        return Run(compare.mismatch(self.expected, actual, loose), actual)

    def judge_error(self, raised: BaseException) -> Run:
        """Return the difference of an error from the recorded one, or None."""
        if self.fails and errors.matches(self.expected, raised):
            return Run(None, raised_error=True)
        return Run(f"{type(raised).__name__}: {raised}", raised_error=True)

    @property
    def fails(self) -> bool:
        """True if the case expects an error."""
        return isinstance(self.expected, Failure) and self.ieee is None

    @property
    def native(self) -> bool:
        """True if the case only records a failure of Nx's reference backend."""
        return self.fails and self.expected.native


def read(raw: dict[str, Any]) -> Case:
    """Decode a case."""
    ieee = raw.get("ieee")
    return Case(
        raw,
        [decode(x) for x in raw["args"]],
        {key: decode(x) for key, x in raw["opts"].items()},
        decode(raw["result"]),
        None if ieee is None else tuple(number(x) for x in ieee),
    )


def run_evaluator(cases: Iterable[Case], rules: Sequence[skips.Skip]) -> Iterator[Outcome]:
    """Run cases one by one."""
    for case in cases:
        yield case.outcome("evaluator", _run_single(case), rules)


def _run_single(case: Case, compiler: str | None = None) -> Run:
    # Every exception is an outcome of the case and must not end the run. A panic of the backend is
    # not an `Exception`, and is an outcome too.
    try:
        operands = [to_nxla(x) for x in case.inputs]
        if compiler is None:
            return case.judge(case.call(operands))
        return case.judge(nx.jit(case.call, compiler=compiler)(operands))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as raised:
        return case.judge_error(raised)


@cache
def _supports(dtype: str) -> bool:
    """Return whether the plugin supports a dtype."""
    try:
        nx.jit(lambda x: nx.reshape(x, (1,)), compiler="xla")(nx.zeros((), dtype=dtype))
    except nx.NxlaError:
        return False
    return True


def run_xla(cases: Iterable[Case], rules: Sequence[skips.Skip]) -> Iterator[Outcome]:
    """Run cases in programs of many calls, without the cases that do not compute on a device."""
    batch: list[Case] = []
    for case in cases:
        if case.host:
            continue
        if case.native:
            yield case.outcome("xla", Run(None), rules)
            continue
        unknown = [
            x.dtype for x in (*case.inputs, *tensors(case.expected)) if not _supports(x.dtype)
        ]
        if unknown:
            group, reason = case.raw["group"], f"the plugin has no {unknown[0]}"
            yield Outcome(case.raw["id"], group, "xla", "skipped", reason)
            continue
        if case.fails:
            yield case.outcome("xla", _run_single(case, "xla"), rules)
            continue
        batch.append(case)
        if len(batch) == BATCH:
            yield from _run_batch(batch, rules)
            batch = []
    yield from _run_batch(batch, rules)


def _run_batch(batch: Sequence[Case], rules: Sequence[skips.Skip]) -> Iterator[Outcome]:
    ready: list[tuple[Case, list[Any]]] = []
    for case in batch:
        try:
            operands = [to_nxla(x) for x in case.inputs]
            # An error while tracing is an outcome of this case only.
            nx.debug_expr(lambda inputs, case=case: case.call(inputs))(operands)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as raised:
            yield case.outcome("xla", case.judge_error(raised), rules)
            continue
        ready.append((case, operands))
    for case, run_result in _compiled(ready):
        yield case.outcome("xla", run_result, rules)


def _compiled(ready: list[tuple[Case, list[Any]]]) -> Iterator[tuple[Case, Run]]:
    """Run cases in one program."""
    if not ready:
        return

    def run_all(inputs: list[list[Any]]) -> list[Any]:
        return [case.call(values) for (case, _), values in zip(ready, inputs, strict=True)]

    try:
        results = nx.jit(run_all, compiler="xla")([operands for _, operands in ready])
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as raised:
        if len(ready) == 1:
            yield ready[0][0], ready[0][0].judge_error(raised)
            return
        middle = len(ready) // 2
        yield from _compiled(ready[:middle])
        yield from _compiled(ready[middle:])
        return
    for (case, _), result in zip(ready, results, strict=True):
        yield case, case.judge(result)


RUNNERS = {"evaluator": run_evaluator, "xla": run_xla}


def run(
    raw_cases: Iterable[dict[str, Any]], backend: str, rules: Sequence[skips.Skip]
) -> Iterator[Outcome]:
    """Read and run cases; one that cannot be read fails, and the others run."""
    readable: list[Case] = []
    for raw in raw_cases:
        try:
            readable.append(read(raw))
        except (AttributeError, KeyError, TypeError, ValueError) as raised:
            reason = f"cannot be read: {type(raised).__name__}: {raised}"
            yield Outcome(str(raw.get("id")), str(raw.get("group")), backend, "failed", reason)
    yield from RUNNERS[backend](readable, rules)
