"""A progress bar on standard error for long tasks."""

from __future__ import annotations

import sys
import threading
import time

__all__ = ["Bar"]

#: The time before a progress bar is shown, in seconds; short work needs none.
DELAY = 0.5
#: The interval between lines if the output is not a terminal, in seconds.
PAUSE = 5.0
_WIDTH = 30


class Bar:
    """A counter of completed steps, which any thread may update.

    Parameters
    ----------
    what : str
        A description of the steps.
    total : int, optional
        The number of steps, if known.
    """

    def __init__(self, what: str, total: int | None) -> None:
        self._what, self._total = what, total
        self._begin = time.monotonic()
        self._done = 0
        self._last: float | None = None
        self._lock = threading.Lock()

    def __call__(self, more: int = 1) -> None:
        """Add completed steps."""
        with self._lock:
            self._done += more
            self._show(is_last=self._done == self._total)

    def close(self) -> None:
        """End the line, if anything was shown."""
        with self._lock:
            if self._last is not None and self._done != self._total:
                self._show(is_last=True)
            self._last = None

    @property
    def _terminal(self) -> bool:
        return sys.stderr is not None and sys.stderr.isatty()

    def _show(self, *, is_last: bool) -> None:
        now = time.monotonic()
        if now - self._begin < DELAY or sys.stderr is None:
            return
        if not self._terminal and not is_last and self._last and now - self._last < PAUSE:
            return
        self._last = now
        count = f"{self._done}" if self._total is None else f"{self._done}/{self._total}"
        time_ = f"{now - self._begin:.1f} s"
        if not self._terminal:
            sys.stderr.write(f"{self._what}: {count}, {time_}\n")
            return
        bar = ""
        if self._total:
            full = _WIDTH * self._done // self._total
            bar = f" |{'█' * full}{' ' * (_WIDTH - full)}|"
        sys.stderr.write(f"\r{self._what}{bar} {count}, {time_}" + ("\n" if is_last else ""))
        sys.stderr.flush()
