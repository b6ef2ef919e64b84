"""Checks for values that are not finite, comparisons of compilers, profiles and reports."""

from __future__ import annotations

import contextlib

from nxla import _core, _hints
from nxla._files import path_of
from nxla._values import as_count, require_callable
from nxla.errors import ArgumentError, ExecutionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

__all__ = [
    "Comparison",
    "Difference",
    "Explanation",
    "LiveTensors",
    "TensorTracker",
    "cache_report",
    "compare",
    "debug_nans",
    "disk_cache_report",
    "explain",
    "memory_report",
    "profile",
    "set_cache_limit",
    "track_tensors",
    "transfer_report",
]


@contextlib.contextmanager
def debug_nans(on: bool = True, /) -> Iterator[None]:
    """Check on the current thread that results of functions and operations are finite.

    If a result is not finite, the evaluator computes the function again, step by step. The error
    names the first operation that produces NaN or an infinity from finite operands, and its
    source line, also in loops, branches and gradients. An infinity that follows from infinite
    operands is not an error. Every result is read. ``nx.jit(f,
    debug_nans=True)`` checks a single function. Results of calls that donated their arguments, of
    functions over a mesh, of pipelines and of imported modules are only searched for NaN, and the
    error names no operation.

    Parameters
    ----------
    on : bool
        If False, do not check, also inside of another block.

    Returns
    -------
    context manager
        The setting applies in the block of code.

    Raises
    ------
    ExecutionError
        If a result is NaN, or infinite although the operands are finite; the function raises it.

    Notes
    -----
    All asyncio tasks of a thread share this setting. The ``with`` block must therefore not contain
    an ``await``, during which other tasks run: pass ``debug_nans=True`` to `jit` instead.

    Examples
    --------
    >>> import nxla as nx
    >>> with nx.debug_nans():
    ...     nx.jit(lambda x: nx.log(x - 1) * 0)(1.0)
    Traceback (most recent call last):
    ...
    nxla.ExecutionError: log: produced -inf at [] of its result f32, from finite operands...
    """
    before = _core.set_debug_nans(on)
    try:
        yield
    finally:
        _core.set_debug_nans(before)


class Difference:
    """The distance of one value from the same value by the reference compiler."""

    def __init__(
        self,
        compiler: str,
        operation: str,
        type: str,
        line: str | None,
        ulps: int,
        index: tuple[int, ...],
        absolute: float,
        differing: int,
        size: int,
    ) -> None:
        #: The compiler.
        self.compiler = compiler
        #: The operation, as in printed expressions.
        self.operation = operation
        #: Dtype and shape.
        self.type = type
        #: The source line, if known.
        self.line = line
        #: The largest distance in units in the last place, the number of values of the dtype in
        #: between.
        self.ulps = ulps
        #: The index of the largest distance.
        self.index = index
        #: The largest difference.
        self.absolute = absolute
        #: The number of different elements.
        self.differing = differing
        #: The number of elements.
        self.size = size

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"Difference({fields})"


class Comparison:
    """The values of a function by several compilers, as `nxla.compare` returns them.

    Printing the comparison shows a table with one line for each value.
    """

    def __init__(self, reference: str, rows: list[Difference], devices: dict[str, str]) -> None:
        #: The compiler that the other compilers are compared with.
        self.reference = reference
        #: One difference for each value and compiler, in the order in which values are computed.
        self.rows = rows
        #: The device that holds the values of each compiler. Values of the evaluator are in host
        #: memory, values of XLA in buffers of its plugin.
        self.devices = devices

    @property
    def max_ulps(self) -> int:
        """The largest distance of all."""
        return max((row.ulps for row in self.rows), default=0)

    @property
    def first(self) -> Difference | None:
        """The first value that differs, a possible cause of later differences."""
        return next((row for row in self.rows if row.differing), None)

    def __str__(self) -> str:
        heads = ("compiler", "ulps", "difference", "differing", "operation", "type", "line")
        table = [heads, *(_cells(row) for row in self.rows)]
        widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        ran = ", ".join(f"{name} on {device}" for name, device in self.devices.items())
        return f"compared with {self.reference!r}; {ran}\n" + "\n".join(lines)

    __repr__ = __str__


def _cells(row: Difference) -> tuple[str, ...]:
    return (
        row.compiler,
        "nan" if row.ulps == 2**64 - 1 else str(row.ulps),
        f"{row.absolute:.3g}",
        f"{row.differing}/{row.size}",
        row.operation,
        row.type,
        row.line or "",
    )


def compare(
    function: Callable[..., Any],
    /,
    compilers: Sequence[str] = ("evaluator", "xla"),
) -> Callable[..., Comparison]:
    """Return a function that computes every value of `function` with several compilers.

    The values are the results of all operations outside of loops and branches. Each compiler
    computes all of them in one program, so that fused operations can be compared too.

    Parameters
    ----------
    function : callable
        A function that `nxla.jit` accepts.
    compilers : sequence of str
        At least two names of compilers. The first one is the reference.

    Returns
    -------
    callable
        A function of the same arguments, which returns a `Comparison`.

    Raises
    ------
    ArgumentError
        If fewer than two compilers are named.
    ExecutionError
        If values of ``"xla"`` are not in buffers of its plugin.

    Examples
    --------
    >>> import nxla as nx
    >>> compared = nx.compare(lambda x: nx.sqrt(x) * 2, ["evaluator", "evaluator"])(2.0)
    >>> compared
    compared with 'evaluator'; evaluator on host
    compiler   ulps  difference  differing  operation  type  line
    evaluator  0     0           0/1        sqrt       f32   <doctest ...compare[1]>:1
    evaluator  0     0           0/1        multiply   f32   <doctest ...compare[1]>:1
    >>> compared.max_ulps, compared.first
    (0, None)
    """
    require_callable("compare", "function", function)
    names: list[Any] = list(compilers) if isinstance(compilers, list | tuple) else [compilers]
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            "compare: compilers: must be a list of names; pass arguments to the returned "
            "function, as in nx.compare(f)(x)"
        )
    if len(names) < 2:
        raise ArgumentError(f"compare: compilers: must be at least two; got {names}")

    @_hints.with_hints
    def compared(*args: Any, **kwargs: Any) -> Comparison:
        from nxla.transform import debug_expr

        bound = (lambda *args: function(*args, **kwargs)) if kwargs else function
        expression, facts = debug_expr(bound)(*args).every_value()
        expected, device = _run_by_name(expression, args, names[0])
        rows, devices = [], {names[0]: device}
        for name in names[1:]:
            found, devices[name] = _run_by_name(expression, args, name)
            for (operation, kind, line), left, right in zip(facts, expected, found, strict=True):
                ulps, index, absolute, differing = _core.compare_values(left, right)
                rows.append(
                    Difference(
                        name, operation, kind, line, ulps, index, absolute, differing, left.size
                    )
                )
        return Comparison(names[0], rows, devices)

    return compared


def _run_by_name(
    expression: _core.Expression, args: tuple[Any, ...], compiler: str
) -> tuple[list[Any], str]:
    """Return the values of an expression by one compiler, and the device that holds them."""
    values = expression.run(*args, compiler=compiler)
    devices = {str(value.device) for value in values}
    if compiler == "xla" and "host" in devices:
        raise ExecutionError(
            "compare: xla: values must be in buffers of the plugin; got values in host memory"
        )
    return values, ", ".join(sorted(devices))


class Explanation:
    """The backend of a call, and the reason; returned by `nxla.explain`."""

    def __init__(
        self,
        backend: str,
        reason: str,
        estimated: float | None,
        measured: dict[str, float],
        text: str,
    ) -> None:
        #: ``"evaluator"``, ``"xla"``, or the name of a custom compiler.
        self.backend = backend
        #: The reason.
        self.reason = reason
        #: The estimated time of a call on the evaluator in seconds. None if the number of
        #: iterations of a loop is unknown.
        self.estimated = estimated
        #: The shortest time of the first calls in seconds, by backend.
        self.measured = measured
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<nxla explanation: {self._text}>"


def explain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Explanation:
    """Explain which backend runs the next call of a function, with the reason and the time.

    The function is traced, and compiled if its first backend requires it, but not run. The
    choice of ``compiler="auto"`` depends on the program and on the number of calls with
    arguments of these types.

    Parameters
    ----------
    function
        A function that `jit` returned, or another function, which is jitted first.
    *args, **kwargs
        The arguments of the call.

    Returns
    -------
    Explanation
        The explanation, with the attributes ``backend``, ``reason``, ``estimated`` and
        ``measured``.

    Examples
    --------
    >>> import nxla as nx
    >>> f = nx.jit(lambda x: nx.sin(x) + 1, compiler="evaluator")
    >>> nx.explain(f, 1.0).backend
    'evaluator'
    >>> nx.explain(f, 1.0).reason
    'the options name the compiler or the device'
    """
    require_callable("explain", "function", function)
    if not isinstance(function, _core.Function | _core.BoundFunction):
        from nxla.transform import jit

        function = jit(function)
    return function.explain(*args, **kwargs)


def cache_report() -> dict[str, int]:
    """Return the counts of the executable cache of the process, without functions over a mesh.

    The report has ``entries``, ``bytes``, ``hits``, ``misses``, and ``evictions``, the number of
    executables that were dropped to stay within the limit. Equal programs share an executable.
    The method of the same name returns the report of one function.

    Examples
    --------
    >>> import nxla as nx
    >>> before = nx.cache_report()
    >>> for _ in range(3):
    ...     _ = nx.jit(lambda x: x * 7.25)(1.0)
    >>> nx.cache_report()["misses"] - before["misses"]
    1
    """
    return _core.cache_report()


def disk_cache_report() -> dict[str, Any]:
    """Return the counts of the disk cache in this process.

    The report has ``hits``, ``misses``, ``stored``, ``failed`` (files that could not be read or
    written, or were damaged, so that the program was compiled), and ``last_failure``, the reason
    of the last failure. ``python -m nxla cache`` lists the folder. The setting ``cache_dir`` of
    `nxla.jit` and the environment variable ``NXLA_CACHE_DIR`` name it; without them the disk
    cache is off.

    Examples
    --------
    >>> import nxla as nx
    >>> sorted(nx.disk_cache_report())
    ['failed', 'hits', 'last_failure', 'misses', 'stored']
    """
    return _core.disk_cache_report()


def memory_report() -> dict[str, dict[str, int]]:
    """Return the memory of live tensors in the process.

    The report contains the host and each used device by name: ``bytes`` and ``tensors`` are the
    live ones, and ``peak`` is the maximum of the bytes. A tensor counts with the bytes of its
    elements until it is freed or donated. On the host, tensors that share memory count once, and
    memory of other owners, such as NumPy arrays, does not count. `Device.memory_stats` returns the
    other memory of plugins if they count it.

    Examples
    --------
    >>> import nxla as nx
    >>> device = nx.devices()[-1]
    >>> before = nx.memory_report().get(device.name, {"bytes": 0})["bytes"]
    >>> x = nx.ones(1000, device=device)
    >>> nx.memory_report().get(device.name, {"bytes": 4000})["bytes"] - before
    4000
    """
    return _core.memory_report()


@contextlib.contextmanager
def profile(file: str | os.PathLike[str], /) -> Iterator[None]:
    """Record the events of all threads in a block of code, and write them to a file.

    The file has the trace event format of https://ui.perfetto.dev and Chrome's
    ``about:tracing``. It contains traces, compilations with their parts, calls, stages,
    transfers, and busy times of devices. Unfinished work is omitted.

    Parameters
    ----------
    file : path
        The name of the file, which is replaced at the end of the block.

    Returns
    -------
    context manager
        The block of code is recorded.

    Raises
    ------
    ExecutionError
        If another profile is active.

    Examples
    --------
    >>> import nxla as nx, json, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "trace.json")
    >>> with nx.profile(file):
    ...     _ = nx.jit(lambda x: x * 3.25)(1.0)
    >>> with open(file) as opened:
    ...     names = [event["name"] for event in json.load(opened)["traceEvents"]]
    >>> "call <lambda>" in names, "trace <lambda>" in names
    (True, True)
    """
    # Open the file first, so that an error is raised before the work is done.
    with open(path_of("profile", file), "w", encoding="utf-8") as opened:
        if not _core.start_profile():
            raise ExecutionError("profile: another profile is active")
        try:
            yield
        finally:
            opened.write(_core.finish_profile() or "")


class LiveTensors:
    """Live tensors of one type that one line created; see `nxla.track_tensors`."""

    def __init__(self, line: str | None, type: str, device: str) -> None:
        #: The source line, as ``file.py:3``, if known.
        self.line = line
        #: Dtype and shape.
        self.type = type
        #: The device.
        self.device = device
        #: The number of tensors.
        self.count = 0
        #: The bytes of their elements.
        self.bytes = 0

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"LiveTensors({fields})"


class TensorTracker:
    """The live tensors that were created in a block; returned by `nxla.track_tensors`.

    Printing it shows a table of source lines, largest first.
    """

    def __init__(self, tracker: _core.TensorTracker) -> None:
        self._tracker = tracker

    def live(self) -> list[LiveTensors]:
        """Return the live tensors by line, type and device, largest first.

        Donated and released tensors have no data and do not count. Tensors that share memory,
        such as a tensor and its reshaped form, count separately.
        """
        groups: dict[tuple[str | None, str, str], LiveTensors] = {}
        for line, type, device, size in self._tracker.live():
            group = groups.setdefault((line, type, device), LiveTensors(line, type, device))
            group.count += 1
            group.bytes += size
        return sorted(groups.values(), key=lambda group: -group.bytes)

    def __str__(self) -> str:
        rows = [("bytes", "tensors", "type", "device", "line")]
        rows += [
            (f"{group.bytes:,}", str(group.count), group.type, group.device, group.line or "?")
            for group in self.live()
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            f"{size:>{widths[0]}}  {count:>{widths[1]}}  {type:<{widths[2]}}  "
            f"{device:<{widths[3]}}  {line}"
            for size, count, type, device, line in rows
        )


@contextlib.contextmanager
def track_tensors() -> Iterator[TensorTracker]:
    """Record the line that creates each tensor, in all threads, to find the use of memory.

    The returned tracker lists the live tensors at any time, also after the block. It keeps no
    tensor alive. Creating a tensor takes some microseconds longer in the block.

    Examples
    --------
    >>> import nxla as nx
    >>> kept = []
    >>> with nx.track_tensors() as tracker:
    ...     for _ in range(3):
    ...         x = nx.zeros((2, 512))
    ...         kept.append(nx.sin(x))
    >>> x = None
    >>> print(tracker)
    bytes  tensors  type         device  line
    12,288        3  f32[2][512]  host    <doctest...
    """
    tracker = _core.TensorTracker()
    try:
        yield TensorTracker(tracker)
    finally:
        tracker.stop()


def transfer_report() -> dict[str, int]:
    """Return the bytes that the process has sent to devices and read from devices.

    The report has ``sent`` and ``read``. Computation on devices and copies between devices do
    not count.

    Examples
    --------
    >>> import nxla as nx
    >>> before = nx.transfer_report()
    >>> _ = nx.sin(nx.tensor([1.0, 2.0], device="host"))
    >>> nx.transfer_report() == before
    True
    """
    return _core.transfer_report()


def set_cache_limit(size: int, /) -> None:
    """Set the size limit of the executable cache in bytes; 512 MiB by default.

    The least recently used executables are dropped first, immediately and after later
    compilations. A function whose executable was dropped compiles again. Executables of functions
    over a mesh are not in this cache.

    Raises
    ------
    ArgumentError
        If the size is not an integer, or is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.set_cache_limit(1 << 29)
    """
    _core.set_cache_limit(as_count("set_cache_limit", "size", size))


_hints.install(globals())
_hints.install_missing_names(globals())
