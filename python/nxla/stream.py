"""Streams: a function applied to one chunk after another, with a state between them.

A thread of the stream's own does the steps, in the order of the chunks, so that sending and
receiving never hold up a device: between two steps anything else can run there. With XLA the state
stays on the device.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import weakref
from typing import Generic, TypeVar

from nxla import _core
from nxla._values import by_value
from nxla.errors import ArgumentError, ExecutionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Any, Self

__all__ = ["Stream"]

R = TypeVar("R")

# `asyncio` and `concurrent.futures` take longer to import than all of this package, so that only
# streams do it.

#: Chunks that may wait for their step where no bound is given.
DEFAULT_BOUND = 64


class _Work:
    """What the thread of a stream and its users share.

    The thread knows only this, so that a stream that nobody holds any more ends.
    """

    def __init__(
        self,
        step: Callable[..., tuple[Any, Any]],
        state: Any,
        constants: tuple[Any, ...],
        bound: int | None,
    ) -> None:
        self.step = step
        self.state = state
        self.constants = constants
        self.bound = bound
        self.changed = threading.Condition()
        self.waiting: collections.deque[tuple[Any, Future[Any]]] = collections.deque()
        self.results: collections.deque[Future[Any]] = collections.deque()
        self.closed = False
        self.failure: BaseException | None = None

    def is_full(self) -> bool:
        if self.closed or self.failure is not None:
            return False
        if self.bound is None:
            return len(self.waiting) >= DEFAULT_BOUND
        return len(self.results) >= self.bound

    def run(self) -> None:
        """Do the steps; the thread of the stream."""
        from concurrent.futures import Future

        before: Any = None
        while (job := self._next()) is not None:
            chunk, future = job
            if not future.set_running_or_notify_cancel():
                # A result that nobody wants is computed all the same: the state depends on it.
                future = Future()
            try:
                result, state = self.step(chunk, self.state, *self.constants)
                # A device computes one step ahead, and no more.
                _wait_for(before)
                before = result
            except BaseException as error:
                self._fail(error, future)
                return
            with self.changed:
                self.state = state
            future.set_result(result)

    def _next(self) -> tuple[Any, Future[Any]] | None:
        with self.changed:
            while not self.waiting:
                if self.closed:
                    return None
                self.changed.wait()
            job = self.waiting.popleft()
            self.changed.notify_all()
            return job

    def _fail(self, error: BaseException, future: Future[Any]) -> None:
        with self.changed:
            self.failure = error
            self.closed = True
            dropped = list(self.waiting)
            self.waiting.clear()
            self.changed.notify_all()
        future.set_exception(error)
        for _, later in dropped:
            if later.set_running_or_notify_cancel():
                later.set_exception(error)

    def cancel(self) -> None:
        """Drop the chunks that wait, and end after the step that is being done."""
        from concurrent.futures import CancelledError

        with self.changed:
            self.closed = True
            if self.failure is None:
                self.failure = CancelledError("the stream was cancelled")
            dropped = list(self.waiting)
            self.waiting.clear()
            self.changed.notify_all()
        for _, later in dropped:
            later.cancel()


def _wait_for(result: Any) -> None:
    for leaf in _core.tree_flatten(result)[0]:
        if isinstance(leaf, _core.Tensor):
            leaf.block_until_ready()


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
        # Steps are done later, whatever has become of the arrays by then.
        initial, constants = by_value(initial), by_value(constants)
        self._step = compile(
            _checked(function, initial), [template, initial, *constants], **options
        )
        self._work = _Work(self._step, initial, constants, bound)
        self._thread = threading.Thread(target=self._work.run, name="nxla stream", daemon=True)
        self._thread.start()
        # A stream that is forgotten must not leave a thread behind.
        self._forgotten = weakref.finalize(self, self._work.cancel)
        self._forgotten.atexit = False

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
        from concurrent.futures import Future

        work, chunk = self._work, by_value(chunk)
        self._step.check(chunk, work.state, *work.constants)
        with work.changed:
            if not work.changed.wait_for(lambda: not work.is_full(), timeout):
                raise TimeoutError("stream: it is full; receive results, or send less at a time")
            if work.failure is not None:
                raise _again(work.failure)
            if work.closed:
                raise ExecutionError("stream: it is done, nothing can be sent any more")
            future: Future[Any] = Future()
            work.waiting.append((chunk, future))
            work.results.append(future)
            work.changed.notify_all()

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
        future = self._first()
        try:
            result: R = future.result(timeout)
        except TimeoutError:
            if not future.done():
                raise
            self._received(future)
            raise
        except BaseException as error:
            # Ctrl-C leaves the result where it is.
            if future.done():
                self._received(future)
                raise _again(error) from None
            raise
        self._received(future)
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
        future = self._first()
        self._received(future)
        return future

    def done(self) -> Any:
        """End the stream, and return its state.

        Raises
        ------
        ExecutionError
            If results have not been received yet.
        """
        work = self._work
        with work.changed:
            if work.failure is not None:
                raise _again(work.failure)
            if work.results:
                raise ExecutionError(f"stream: {len(work.results)} results have not been received")
            work.closed = True
            work.changed.notify_all()
        self._thread.join()
        if work.failure is not None:
            raise _again(work.failure)
        return work.state

    def cancel(self) -> None:
        """End the stream without its state: chunks that wait for their step are dropped.

        A step that is being done goes on to its end. Nothing can be sent any more; receiving what
        was dropped raises `concurrent.futures.CancelledError`.
        """
        self._work.cancel()

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
        ahead = 2 if self._work.bound is None else min(2, self._work.bound - 1)
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
        while self._work.results:
            yield self.recv()

    async def __aiter__(self) -> Any:
        """Go over the results as `__iter__` does, while other tasks run."""
        import asyncio

        while self._work.results:
            future = self._first()
            try:
                result = await asyncio.shield(asyncio.wrap_future(future))
            finally:
                if future.done():
                    self._received(future)
            yield result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._work.closed:
            self.cancel()

    def _first(self) -> Future[Any]:
        with self._work.changed:
            if not self._work.results:
                raise ExecutionError("stream: there is no chunk to receive a result for")
            return self._work.results[0]

    def _received(self, future: Future[Any]) -> None:
        work = self._work
        with work.changed, contextlib.suppress(ValueError):
            # Another thread may have received it at the same time.
            work.results.remove(future)
            work.changed.notify_all()


def _again(error: BaseException) -> BaseException:
    """Return an error to be raised once more, without the trace of the time before."""
    return error.with_traceback(None)


def _checked(function: Callable[..., tuple[R, Any]], initial: Any) -> Callable[..., tuple[R, Any]]:
    """Check while tracing that a step gives a result and a state like the initial one."""
    structure = _core.tree_flatten(initial)[1]

    def step(chunk: Any, state: Any, *constants: Any) -> tuple[R, Any]:
        answer = function(chunk, state, *constants)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ArgumentError("stream: the function must give (result, state)")
        before, after = _core.tree_flatten(state)[0], _core.tree_flatten(answer[1])
        if after[1] != structure:
            raise ArgumentError(f"stream: the new state is {after[1]}, the old one {structure}")
        for old, new in zip(before, after[0], strict=True):
            new_dtype, new_shape = _core.result_type(new), getattr(new, "shape", ())
            if (new_dtype, new_shape) != (old.dtype, old.shape):
                raise ArgumentError(
                    f"stream: the new state is {new_dtype}{list(new_shape)}, "
                    f"the old one {old.dtype}{list(old.shape)}"
                )
        return answer

    return step


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
        The state before the first chunk.
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
        if constants or bound is not None:
            raise ArgumentError(
                f"stream: the compiler {custom.name!r} has its own way to stream, which takes no "
                "constants and no bound"
            )
        made: Stream[R] = custom.stream(function, template, initial, options)
        return made
    return Stream(function, template, initial, options, constants=constants, bound=bound)
