"""Streams: a function applied to one chunk after another, with a state between them.

A separate thread runs the steps, in the order of the chunks, so sending and receiving never block a
device. Other programs can run between two steps. With XLA the state stays on the device.
"""

from __future__ import annotations

import collections
import contextlib
from typing import Generic, TypeVar

from nxla import _core, _hints, tree
from nxla._marks import MARKS
from nxla._spec import spec_of
from nxla._values import as_count, as_tensor, iter_of
from nxla.errors import ArgumentError, ExecutionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Any, Literal, Self

__all__ = ["Stream"]

R = TypeVar("R")

# Importing `asyncio` and `concurrent.futures` takes longer than importing the package, so only
# streams import them.


class Stream(Generic[R]):
    """A running stream; returned by `nxla.stream`.

    An error in a step ends the stream: `recv` raises it for the chunk of the step and for all later
    chunks. As a context manager, the stream is cancelled at the end unless it is done. All methods
    are thread-safe.
    """

    def __init__(
        self,
        function: Callable[..., tuple[R, Any]],
        template: Any,
        initial: Any,
        options: dict[str, Any],
        *,
        constants: tuple[Any, ...] = (),
        bound: int | None = None,
    ) -> None:
        from nxla.transform import compile_step

        if bound is not None:
            bound = as_count("stream", "bound", bound, 1)
        initial = _settle_types(function, template, initial, constants, options)
        step = compile_step(function, [template, initial, *constants], options)
        static = spec_of(function, "stream").positions
        inputs = tuple(x for at, x in enumerate(constants, start=2) if at not in static)
        self._core = _core.Stream(step, template, initial, inputs, bound)
        self._bound = bound
        self._batch = _Batch(template)

    def send(self, chunk: Any, /, *, timeout: float | None = None) -> None:
        """Send the next chunk.

        The call does not wait for the step of the chunk. It waits while the stream is full: if
        `bound` chunks are sent and not received, or, without a bound, if 64 wait for their step.

        Parameters
        ----------
        chunk : tensor or container
            A value with the type of the template.
        timeout : float, optional
            The maximum time to wait for room, in seconds.

        Raises
        ------
        ArgumentError
            If the chunk does not have the type of the template.
        ExecutionError
            If the stream is done.
        concurrent.futures.CancelledError
            If the stream is cancelled.
        TimeoutError
            If the stream was full until the timeout.
        """
        self._core.send(chunk, timeout)

    def recv(self, *, timeout: float | None = None) -> R:
        """Wait for the next result, in the order of the chunks, and return it.

        The call also waits for a chunk that another thread has not sent yet.

        Parameters
        ----------
        timeout : float, optional
            The maximum time to wait, in seconds. The result can be received later.

        Returns
        -------
        Any
            The result of the step for the chunk.

        Raises
        ------
        ExecutionError
            If the stream is done and every result has been received.
        TimeoutError
            If the result was not computed within the timeout.
        """
        result: R = self._core.recv(timeout)
        return result

    def recv_deferred(self) -> Future[R]:
        """Return a future of the next result.

        Returns
        -------
        concurrent.futures.Future
            It returns the result or raises the error of the step.

        Raises
        ------
        ExecutionError
            If no result is outstanding.
        """
        from concurrent.futures import Future

        future: Future[R] = Future()
        self._core.recv_deferred(future)
        return future

    def done(self) -> Any:
        """End the stream and return its state.

        Raises
        ------
        ExecutionError
            If results are outstanding.
        """
        return self._core.done()

    def cancel(self) -> None:
        """End the stream without its state, and drop chunks that wait for their step.

        A running step is completed. Nothing can be sent afterwards; sending a chunk and receiving
        the result of a dropped chunk raise `concurrent.futures.CancelledError`.
        """
        self._core.cancel()

    def over(
        self, chunks: Iterable[Any], /, *, partial: Literal["raise", "drop", "pad"] = "raise"
    ) -> Iterator[R]:
        """Send chunks and yield their results.

        A few chunks are sent before their results are received, up to the bound of the stream. An
        error of `chunks` is raised after the results of the chunks before it. A loop that ends
        early drops the results of the chunks that have been sent.

        Parameters
        ----------
        chunks : iterable
            Values with the type of the template.
        partial : {"raise", "drop", "pad"}
            The policy for a partial batch, whose first axes are shorter than in the template.
            ``"raise"`` raises the error of `send`. ``"drop"`` skips the batch. ``"pad"`` adds rows
            of zeros, which the step counts like other rows, and removes these rows from result
            tensors with a row for each row of the batch.

        Returns
        -------
        iterator
            The result of each chunk, in the order of the chunks.

        Raises
        ------
        ArgumentError
            If `partial` is another value, or a chunk does not have the type of the template.
        ExecutionError
            If results of earlier chunks have not been received.

        Examples
        --------
        >>> import nxla as nx
        >>> total = nx.stream(lambda x, sum: (sum, sum + x), nx.template((), nx.int32), 0)
        >>> [result.item() for result in total.over(range(1, 6))], total.done().item()
        ([0, 1, 3, 6, 10], 15)
        """
        if partial not in ("raise", "drop", "pad"):
            raise ArgumentError(f"over: partial: must be 'raise', 'drop' or 'pad'; got {partial!r}")
        if waiting := self._core.in_flight:
            raise ExecutionError(
                "over: the results of all earlier chunks must have been received; "
                f"{waiting} have not"
            )
        return self._results(iter_of("over", "chunks", chunks), partial)

    def _results(self, source: Iterator[Any], partial: str) -> Iterator[R]:
        ahead = 2 if self._bound is None else min(2, self._bound - 1)
        results: collections.deque[Future[R]] = collections.deque()
        counts: collections.deque[int | None] = collections.deque()

        def received() -> R:
            result, count = results.popleft().result(), counts.popleft()
            return result if count is None else self._batch.cut(result, count)

        failure: Exception | None = None
        while True:
            try:
                chunk = next(source)
                count = None if partial == "raise" else self._batch.count(chunk)
                if count is not None and partial == "drop":
                    continue
                self.send(chunk if count is None else self._batch.pad(chunk))
            except StopIteration:
                break
            except Exception as error:
                # The state contains the steps of earlier chunks, so their results come first.
                failure = error
                break
            counts.append(count)
            results.append(self.recv_deferred())
            if len(results) > ahead:
                yield received()
        while results:
            yield received()
        if failure is not None:
            raise failure

    def __iter__(self) -> Iterator[R]:
        """Yield the results of all chunks that have been sent, including chunks sent meanwhile."""
        while self._core.in_flight:
            yield self.recv()

    async def __aiter__(self) -> AsyncIterator[R]:
        """Yield the results like `__iter__`, while other tasks run."""
        import asyncio

        loop = asyncio.get_running_loop()
        while True:
            woken = loop.create_future()
            result = self._core.poll(_Waker(loop, woken))
            if result is None:
                await woken
            elif result:
                yield result[0]
            else:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()


class _Batch:
    """The rows of chunks: the entries of the first axis that all tensors of a template have."""

    def __init__(self, template: Any) -> None:
        self._shapes = [tuple(getattr(leaf, "shape", ())) for leaf in tree.leaves(template)]
        sizes = {shape[0] if shape else None for shape in self._shapes}
        self._rows = sizes.pop() if len(sizes) == 1 else None

    def count(self, chunk: Any) -> int | None:
        """Return the number of rows of a partial batch; None for any other chunk."""
        shapes = [tuple(getattr(leaf, "shape", ())) for leaf in tree.leaves(chunk)]
        counts = {shape[0] if shape else None for shape in shapes}
        if self._rows is None or len(counts) != 1 or len(shapes) != len(self._shapes):
            return None
        count = counts.pop()
        return count if count is not None and count < self._rows else None

    def pad(self, chunk: Any) -> Any:
        """Return a batch with rows of zeros at the end."""

        def padded(leaf: Any) -> Any:
            x = as_tensor(leaf)
            ends = [(0, (self._rows or 0) - x.shape[0]), *[(0, 0)] * (x.ndim - 1)]
            return _core.pad(x, _core.full((), 0, x.dtype), ends)

        return tree.map(padded, chunk)

    def cut(self, result: Any, count: int) -> Any:
        """Return a result without the rows of padding."""
        return tree.map(lambda x: x[:count] if x.ndim and x.shape[0] == self._rows else x, result)


class _Waker:
    """Wakes a task of an event loop on another thread."""

    def __init__(self, loop: Any, woken: Any) -> None:
        self.loop = loop
        self.woken = woken

    def __call__(self) -> None:
        # The loop may have been closed while the task waited.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._go_on)

    def _go_on(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


def _settle_types(
    function: Callable[..., Any],
    template: Any,
    initial: Any,
    constants: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Return an initial state whose scalars have the dtypes that they have after a step."""
    from nxla.transform import debug_expr

    leaves, structure = tree.flatten(initial)
    plain = [isinstance(leaf, bool | int | float | complex) for leaf in leaves]
    if not any(plain):
        return initial
    # A scalar can be widened twice: from an integer to a float, and to a wider float.
    for _ in range(3):
        expression = debug_expr(function, **options)(template, initial, *constants)
        results = expression.outputs[-len(leaves) :]
        if len(results) != len(leaves):
            return initial  # The compilation will report errors in the state.
        settled = [
            _core.tensor(number, dtype) if is_plain and shape == () else leaf
            for number, leaf, is_plain, (shape, dtype) in zip(
                leaves, tree.leaves(initial), plain, results, strict=True
            )
        ]
        before = [leaf.dtype for leaf in tree.leaves(initial) if isinstance(leaf, _core.Tensor)]
        initial = structure.unflatten(settled)
        if before == [leaf.dtype for leaf in settled if isinstance(leaf, _core.Tensor)]:
            break
    return initial


def stream(
    function: Callable[..., tuple[R, Any]],
    template: Any,
    initial: Any,
    /,
    *constants: Any,
    bound: int | None = None,
    **options: Any,
) -> Stream[R]:
    """Start a stream, in which ``function(chunk, state)`` returns ``(result, state)``.

    Parameters
    ----------
    function : callable
        One step. The new state must have the structure, shapes and dtypes of the old state.
    template : template or container
        The type of a chunk.
    initial : tensor or container
        The initial state. Scalars in it take the dtypes that a step returns.
    *constants : tensor or container
        Further arguments of the function, which are equal in every step.
    bound : int, optional
        The maximum number of chunks that are sent and not received. A sender waits for room, so
        another thread must receive, or use `Stream.over`.
    **options
        As for `jit`.

    Returns
    -------
    Stream
        A stream with the methods ``send(chunk)``, ``recv()`` and ``done()``. Iterating over it,
        also with ``async for``, yields the results of the sent chunks.

    Examples
    --------
    >>> import nxla as nx
    >>> total = nx.stream(lambda x, sum: (sum, sum + x), nx.template((), nx.int32), 0)
    >>> for chunk in (1, 2, 3):
    ...     total.send(chunk)
    >>> [result.item() for result in total], total.done().item()
    ([0, 1, 3], 6)
    """
    from nxla.compiler import overrides
    from nxla.partitions import in_force, stream_by_callback
    from nxla.transform import jit

    spec = spec_of(function, "stream")
    marks: dict[str, Any] = {name: options.pop(name) for name in MARKS if name in options}
    if marks:
        function = jit(function, **marks)
    options = {**spec.options, **options}
    called = stream_by_callback(function, template, initial, constants, options)
    if called is not None:
        return called
    custom = overrides(in_force(options), "stream")
    if custom is not None:
        # Compilers whose `stream` has four parameters accept calls without these arguments.
        more: dict[str, Any] = {"constants": constants} if constants else {}
        if bound is not None:
            more["bound"] = bound
        made: Stream[R] = custom.stream(function, template, initial, options, **more)
        return made
    return Stream(function, template, initial, options, constants=constants, bound=bound)


_hints.install(globals())
