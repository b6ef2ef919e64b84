"""Streams: a function applied to one chunk after another, with a state between them."""

from __future__ import annotations

import queue
import threading

from nxla import _core
from nxla.errors import ArgumentError, ExecutionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Stream"]

_DONE = object()


class Stream:
    """A running stream; made by `nxla.stream`.

    Sending does not wait for the computation: a thread of the stream's own does the steps in
    order. A step that fails ends the stream; `recv` and `done` raise what went wrong.
    """

    def __init__(
        self,
        function: Callable[[Any, Any], tuple[Any, Any]],
        template: Any,
        initial: Any,
        options: dict[str, Any],
    ) -> None:
        from nxla.transform import compile

        self._state = initial
        self._step = compile(_checked(function, initial), [template, initial], **options)
        self._inputs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._outputs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._pending = 0
        self._finished = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="nxla stream", daemon=True)
        self._thread.start()

    def send(self, chunk: Any, /) -> None:
        """Hand over the next chunk, and return at once.

        Raises
        ------
        ArgumentError
            If the chunk is not of the type of the template.
        ExecutionError
            If the stream is done.
        """
        if self._finished:
            raise ExecutionError("stream: it is done, nothing can be sent any more")
        self._step.check(chunk, self._state)
        self._pending += 1
        self._inputs.put(chunk)

    def recv(self) -> Any:
        """Return the next result, in the order of the chunks; waits for it.

        Raises
        ------
        ExecutionError
            If every chunk sent has been received.
        """
        if self._pending == 0:
            raise ExecutionError("stream: there is no chunk to receive a result for")
        result = self._outputs.get()
        self._pending -= 1
        if result is _DONE:
            self._pending = 0
            assert self._failure is not None
            raise self._failure
        return result

    def done(self) -> Any:
        """End the stream, and return its state.

        Raises
        ------
        ExecutionError
            If results have not been received yet.
        """
        if self._failure is not None:
            raise self._failure
        if self._pending:
            raise ExecutionError(f"stream: {self._pending} results have not been received")
        if not self._finished:
            self._finished = True
            self._inputs.put(_DONE)
            self._thread.join()
        return self._state

    def _work(self) -> None:
        while (chunk := self._inputs.get()) is not _DONE:
            try:
                result, self._state = self._step(chunk, self._state)
            except BaseException as error:
                self._failure = error
                self._finished = True
                self._outputs.put(_DONE)
                return
            self._outputs.put(result)


def _checked(
    function: Callable[[Any, Any], tuple[Any, Any]], initial: Any
) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Check while tracing that a step gives a result and a state like the initial one."""
    structure = _core.tree_flatten(initial)[1]

    def step(chunk: Any, state: Any) -> tuple[Any, Any]:
        answer = function(chunk, state)
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
    function: Callable[[Any, Any], tuple[Any, Any]], template: Any, initial: Any, /, **options: Any
) -> Stream:
    """Start a stream: ``function(chunk, state)`` gives ``(result, state)`` for each chunk.

    Parameters
    ----------
    function : callable
        One step. The new state must have the structure, shapes and dtypes of the old one.
    template : template or container
        The type of a chunk.
    initial : tensor or container
        The state before the first chunk.
    **options
        As for `jit`.

    Returns
    -------
    Stream
        With ``send(chunk)``, ``recv()`` and ``done()``.

    Examples
    --------
    >>> import nxla as nx
    >>> total = nx.stream(lambda x, sum: (sum, sum + x), nx.template((), nx.int32), 0)
    >>> for chunk in (1, 2, 3):
    ...     total.send(chunk)
    >>> [total.recv().item() for _ in range(3)], total.done().item()
    ([0, 1, 3], 6)
    """
    from nxla.compiler import overrides

    custom = overrides(options.get("compiler"), "stream")
    if custom is not None:
        return custom.stream(function, template, initial, options)
    return Stream(function, template, initial, options)
