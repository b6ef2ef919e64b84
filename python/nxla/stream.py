"""Streams: a function applied to one chunk after another, with a state between them.

A thread of the stream's own does the steps, in the order of the chunks, so that sending and
receiving never hold up a device: between two steps anything else can run there. With XLA the state
stays on the device.
"""

from __future__ import annotations

import collections
import contextlib
from typing import Generic, TypeVar

from nxla import _core, tree
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Any, Self

__all__ = ["Stream"]

R = TypeVar("R")

# `asyncio` and `concurrent.futures` take longer to import than all of this package, so that only
# streams do it.


class Stream(Generic[R]):
    """A running stream; made by `nxla.stream`.

    A step that fails ends the stream: `recv` raises what went wrong for its chunk, and for those
    after it. As a context manager, the stream is cancelled at the end unless it is done. All
    methods may be called from several threads.
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
        from nxla.transform import compile

        if bound is not None and bound < 1:
            raise ArgumentError(f"stream: bound must be at least 1, got {bound}")
        initial = _settled(function, template, initial, constants, options)
        step = compile(function, [template, initial, *constants], **options)
        self._core = _core.Stream(step, template, initial, constants, bound)
        self._bound = bound

    def send(self, chunk: Any, /, *, timeout: float | None = None) -> None:
        """Hand over the next chunk.

        Does not wait for its step. It waits while the stream is full: where `bound` chunks have
        been sent and not received, or, without a bound, 64 wait for their step.

        Parameters
        ----------
        chunk : tensor or container
            Of the type of the template.
        timeout : float, optional
            How many seconds to wait for room at most.

        Raises
        ------
        ArgumentError
            If the chunk is not of the type of the template.
        ExecutionError
            If the stream is done.
        TimeoutError
            If there was no room in time.
        """
        self._core.send(chunk, timeout)

    def recv(self, *, timeout: float | None = None) -> R:
        """Return the next result, in the order of the chunks; waits for it.

        Parameters
        ----------
        timeout : float, optional
            How many seconds to wait at most. The result can be received later then.

        Raises
        ------
        ExecutionError
            If every chunk sent has been received.
        TimeoutError
            If the result was not there in time.
        """
        result: R = self._core.recv(timeout)
        return result

    def recv_deferred(self) -> Future[R]:
        """Receive the next result without waiting for it.

        Returns
        -------
        concurrent.futures.Future
            Gives the result, or raises what went wrong.

        Raises
        ------
        ExecutionError
            If every chunk sent has been received.
        """
        from concurrent.futures import Future

        future: Future[R] = Future()
        self._core.recv_deferred(future)
        return future

    def done(self) -> Any:
        """End the stream, and return its state.

        Raises
        ------
        ExecutionError
            If results have not been received yet.
        """
        return self._core.done()

    def cancel(self) -> None:
        """End the stream without its state: chunks that wait for their step are dropped.

        A step that is being done goes on to its end. Nothing can be sent any more; receiving what
        was dropped raises `concurrent.futures.CancelledError`.
        """
        self._core.cancel()

    def over(self, chunks: Iterable[Any], /) -> Iterator[R]:
        """Send chunks one after another, and go over their results.

        Chunks are sent a few ahead of the results, as far as the bound of the stream lets them.

        Examples
        --------
        >>> import nxla as nx
        >>> total = nx.stream(lambda x, sum: (sum, sum + x), nx.template((), nx.int32), 0)
        >>> [result.item() for result in total.over(range(1, 6))], total.done().item()
        ([0, 1, 3, 6, 10], 15)
        """
        ahead = 2 if self._bound is None else min(2, self._bound - 1)
        results: collections.deque[Future[R]] = collections.deque()
        for chunk in chunks:
            self.send(chunk)
            results.append(self.recv_deferred())
            if len(results) > ahead:
                yield results.popleft().result()
        while results:
            yield results.popleft().result()

    def __iter__(self) -> Iterator[R]:
        """Go over the results of the chunks sent so far, and of those sent meanwhile."""
        while self._core.in_flight:
            yield self.recv()

    async def __aiter__(self) -> AsyncIterator[R]:
        """Go over the results as `__iter__` does, while other tasks run."""
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


class _Waker:
    """Tells a task on another thread that it may go on."""

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


def _settled(
    function: Callable[..., Any],
    template: Any,
    initial: Any,
    constants: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    """Return a first state whose plain numbers have the dtypes that they have after a step."""
    from nxla.transform import debug_expr

    leaves, structure = tree.flatten(initial)
    plain = [isinstance(leaf, bool | int | float | complex) for leaf in leaves]
    if not any(plain):
        return initial
    # A number may become wider twice: as an integer beside a float, and as that beside a wider one.
    for _ in range(3):
        expression = debug_expr(function, **options)(template, initial, *constants)
        results = expression.outputs[-len(leaves) :]
        if len(results) != len(leaves):
            return initial  # What is wrong with the state is said where it is compiled.
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
    """Start a stream: ``function(chunk, state)`` gives ``(result, state)`` for each chunk.

    Parameters
    ----------
    function : callable
        One step. The new state must have the structure, shapes and dtypes of the old one.
    template : template or container
        The type of a chunk.
    initial : tensor or container
        The state before the first chunk. Plain numbers in it take the dtypes that a step gives.
    *constants : tensor or container
        What the function gets after the state, the same in every step.
    bound : int, optional
        How many chunks may have been sent and not been received. A sender waits for room, so
        another thread has to receive, or `Stream.over` be used.
    **options
        As for `jit`.

    Returns
    -------
    Stream
        With ``send(chunk)``, ``recv()`` and ``done()``. It can be iterated over, also by
        ``async for``, which gives the results of the chunks sent.

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

    compiler = options.get("compiler") or _core.get_default_options().get("compiler")
    custom = overrides(compiler, "stream")
    if custom is not None:
        # Compilers whose `stream` has four parameters serve the calls without these two.
        more: dict[str, Any] = {"constants": constants} if constants else {}
        if bound is not None:
            more["bound"] = bound
        made: Stream[R] = custom.stream(function, template, initial, options, **more)
        return made
    return Stream(function, template, initial, options, constants=constants, bound=bound)
