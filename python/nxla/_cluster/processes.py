"""Execution in a pool of processes, with large values in shared memory.

This process chooses the names of results before a task starts. It can therefore free all shared
memory, even if a process dies.
"""

from __future__ import annotations

import os
import secrets
import threading
import weakref
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import count
from multiprocessing.shared_memory import SharedMemory

from nxla import _core
from nxla._cluster.executors import TRAFFIC, RemoteCopies, StageExecutor
from nxla._cluster.worker import (
    add_stage_note,
    check_version,
    pickle_tensor,
    run_stage,
    unpickle_tensor,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import ProcessPoolExecutor
    from typing import Any, TypeAlias

    from nxla._cluster.plan import Task
    from nxla._core import Stage, Tensor

    #: The name of shared memory, its size in bytes, and the type of the tensor.
    Handle: TypeAlias = tuple[str, int, tuple[Any, ...]]
    #: A program with its digest, or the digest of a known program.
    Wanted: TypeAlias = tuple[str, bytes | None]

__all__ = ["SHARED_FROM", "ProcessExecutor"]

#: Values of at least this size are in shared memory, in bytes; smaller values are sent with the
#: call.
SHARED_FROM = 1 << 16


def write(tensor: Tensor, name: str) -> Handle:
    """Copy a tensor to new shared memory."""
    memory, *about = pickle_tensor(tensor)
    data = memoryview(memory)
    block = SharedMemory(name, create=True, size=max(data.nbytes, 1))
    try:
        assert block.buf is not None
        block.buf[: data.nbytes] = data
    except BaseException:
        block.close()
        block.unlink()
        raise
    block.close()
    return name, data.nbytes, tuple(about)


def unlink(names: Iterable[str]) -> None:
    """Free the shared memory with these names that exists."""
    for name in names:
        try:
            block = SharedMemory(name)
        except FileNotFoundError:
            continue
        block.close()
        try:
            block.unlink()
        except FileNotFoundError:
            continue


# --- in a process of the pool ---

_PROGRAMS: dict[str, Stage] = {}
#: Shared memory that a tensor of an earlier task may still use.
_LENT: list[SharedMemory] = []


def serve(
    version: str,
    wanted: Wanted,
    options: dict[str, Any],
    label: str,
    arguments: list[Tensor | Handle],
    names: list[str],
) -> list[Tensor | Handle] | None:
    """Run a stage in this process; return None if its program is not known here."""
    check_version(version, f"{label}: process {os.getpid()}")
    digest, program = wanted
    if program is not None:
        _PROGRAMS[digest] = _core.Stage.from_bytes(program)
    stage = _PROGRAMS.get(digest)
    if stage is None:
        return None
    _close_lent()
    opened: list[SharedMemory] = []
    try:
        return _run(stage, options, label, arguments, names, opened)
    except BaseException:
        unlink(names)
        raise
    finally:
        _LENT.extend(opened)
        _close_lent()


def _run(
    stage: Stage,
    options: dict[str, Any],
    label: str,
    arguments: list[Tensor | Handle],
    names: list[str],
    opened: list[SharedMemory],
) -> list[Tensor | Handle]:
    tensors = []
    for argument in arguments:
        if not isinstance(argument, tuple):
            tensors.append(argument)
            continue
        name, size, about = argument
        block = SharedMemory(name)
        opened.append(block)
        assert block.buf is not None
        # No process writes to the memory now, and the memory is unlinked after this task.
        tensors.append(unpickle_tensor(block.buf[:size], about))
    results = run_stage(stage, tensors, options, label)
    found: list[Tensor | Handle] = []
    for result, name in zip(results, names, strict=True):
        small = result.nbytes < SHARED_FROM
        found.append(result.to_host() if small else write(result, name))
    return found


def _close_lent() -> None:
    """Close shared memory that no tensor uses."""
    waiting = []
    for block in _LENT:
        try:
            block.close()
        except BufferError:
            waiting.append(block)
    _LENT[:] = waiting


# --- in the process of the caller ---


class Block:
    """Shared memory that this process frees after its last use."""

    __slots__ = ("__weakref__", "free", "handle")

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.free = weakref.finalize(self, unlink, (handle[0],))


class _Sent:
    """Sent data: programs by pool, and tensors for their lifetime."""

    def __init__(self) -> None:
        self.programs: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()
        self.tensors = RemoteCopies()
        self.lock = threading.Lock()

    def block(self, tensor: Tensor, name: str) -> Block:
        """Return the shared memory of a tensor, which is copied once."""
        with self.lock:
            known: Block | None = self.tensors.get(tensor)
        if known is not None:
            return known
        block = Block(write(tensor.to_host(), name))
        TRAFFIC.add(sent=tensor.nbytes)
        with self.lock:
            self.tensors.put(tensor, block)
        return block


_SENT = _Sent()


class _Call:
    """A submitted task, which is submitted again if the process did not know its program."""

    def __init__(
        self, executor: ProcessExecutor, task: Task, arguments: list[Any], names: list[str]
    ) -> None:
        self.executor, self.task, self.arguments, self.names = executor, task, arguments, names
        self.future: Future[Any] = Future()

    def submit(self, *, whole: bool) -> None:
        """Submit the task, with or without its program."""
        stage, options = self.task.stage, self.executor.options
        program = stage.to_bytes() if whole else None
        TRAFFIC.add(sent=len(program or b""))
        wanted = (stage.digest, program)
        call = (_core.__version__, wanted, options, self.task.label, self.arguments, self.names)
        inner = self.executor.pool.submit(serve, *call)
        self.executor.inner[self.future] = inner
        inner.add_done_callback(self.on_done)

    def on_done(self, inner: Future[Any]) -> None:
        """Receive the result of the submission."""
        self.executor.inner.pop(self.future, None)
        try:
            found = inner.result()
            if found is None:
                self.submit(whole=True)
                return
        except BaseException as error:
            unlink(self.names)
            _settle(self.future, error=self.executor.describe_failure(error, self.task))
            return
        if not _settle(self.future, result=found):
            unlink(self.names)


class ProcessExecutor(StageExecutor):
    """A `concurrent.futures.ProcessPoolExecutor`."""

    def __init__(self, pool: ProcessPoolExecutor, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.pool = pool
        self.width = getattr(pool, "_max_workers", None) or 1
        self.programs = _SENT.programs.setdefault(pool, set())
        self.prefix = f"nx{os.getpid():x}{secrets.token_hex(3)}"
        self.numbers = count()
        self.blocks: weakref.WeakSet[Block] = weakref.WeakSet()
        #: The pool's future for each of our unfinished futures.
        self.inner: dict[Future[Any], Any] = {}

    def _name(self) -> str:
        return f"{self.prefix}-{next(self.numbers):x}"

    def put(
        self, tensors: Sequence[Tensor], groups: Sequence[int | None], group_count: int
    ) -> list[Any]:
        """Copy large tensors to shared memory, each once."""
        del groups, group_count
        return [
            tensor.to_host() if tensor.nbytes < SHARED_FROM else _SENT.block(tensor, self._name())
            for tensor in tensors
        ]

    def start(self, task: Task, values: list[Any], *, spread: bool) -> Any:
        """Start a task; the program is sent if no process of the pool has it."""
        del spread
        arguments = [value.handle if isinstance(value, Block) else value for value in values]
        TRAFFIC.add(sent=sum(value.nbytes for value in values if not isinstance(value, Block)))
        call = _Call(self, task, arguments, [self._name() for _ in task.results])
        known = task.stage.digest in self.programs
        self.programs.add(task.stage.digest)
        call.submit(whole=not known)
        return call.future

    def describe_failure(self, error: BaseException, task: Task) -> BaseException:
        """Return an error with a message for the user."""
        if not isinstance(error, BrokenProcessPool):
            return error
        broken = _core.ExecutionError(
            f"{task.label}: a process of the pool died; its output shows whether it was "
            f"killed or could not import nxla {_core.__version__}"
        )
        broken.__cause__ = error
        add_stage_note(broken, task.stage, task.label)
        return broken

    def results(self, task: Task, future: Any, *, spread: bool) -> list[Any]:
        """Receive the results of a task; unused names have no shared memory."""
        del task, spread
        values: list[Any] = []
        for value in future.result():
            if isinstance(value, tuple):
                block = Block(value)
                self.blocks.add(block)
                values.append(block)
            else:
                TRAFFIC.add(received=value.nbytes)
                values.append(value)
        return values

    def fetch(self, values: Sequence[Any]) -> list[Tensor]:
        """Copy values from shared memory."""
        return [_read(value) if isinstance(value, Block) else value for value in values]

    def cancel(self, futures: Iterable[Any]) -> None:
        """Cancel tasks that have not started; results of other tasks are freed on arrival."""
        for future in futures:
            future.cancel()
            inner = self.inner.get(future)
            if inner is not None:
                inner.cancel()

    def close(self) -> None:
        """Free the shared memory of the run. Tensors of the caller stay for their lifetime."""
        for block in list(self.blocks):
            block.free()


def _read(value: Block) -> Tensor:
    name, size, about = value.handle
    block = SharedMemory(name)
    try:
        assert block.buf is not None
        with block.buf[:size] as view:
            tensor = _core.tensor_from_bytes(view, *about)
    finally:
        block.close()
    TRAFFIC.add(received=size)
    return tensor


def _settle(future: Future[Any], result: Any = None, error: BaseException | None = None) -> bool:
    """Complete a future, unless it has been cancelled."""
    if not future.set_running_or_notify_cancel():
        return False
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
    return True
