"""Default options: which compiler runs functions, with what settings and hooks.

Later ones win: the environment variable ``NXLA_COMPILER``, `global_default_options`,
`default_options` of the thread, the options of the call.
"""

from __future__ import annotations

import os

from nxla import _core, plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, Self

    from nxla._core import Device

__all__ = [
    "Options",
    "compilers",
    "default_options",
    "global_default_options",
    "partitions_options",
    "to_backend",
]


class Options(dict[str, "Any"]):
    """Options that were in force; as a context manager, it brings them back at the end."""

    def __init__(self, options: Mapping[str, Any], *, own: bool = True) -> None:
        super().__init__(options)
        #: Whether they were the thread's own, rather than those of the process.
        self.own = own

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        # A thread that had no options of its own follows those of the process again.
        _core.replace_default_options(self if self.own else None)


class _GlobalOptions(Options):
    """Options that were in force for the process."""

    def _restore(self) -> None:
        _core.replace_global_default_options(self)


def default_options(options: Mapping[str, Any] | None = None, /, **changes: Any) -> Options:
    """Set the default options of this thread; tell which were in force before.

    Parameters
    ----------
    options : mapping, optional
        The new options, in place of those in force. Without it they stay.
    **changes
        Single options on top of those: ``compiler``, ``device`` (a `Device` or its name),
        ``hooks``, settings of the compiler.

    Returns
    -------
    Options
        The options before. It is a dict, and a context manager that restores them.

    Raises
    ------
    OptionError
        If there is no such compiler, or it has no such setting. A compiler written in Python
        checks its settings when it compiles.

    Examples
    --------
    >>> import nxla as nx
    >>> with nx.default_options(compiler="evaluator"):
    ...     nx.default_options()["compiler"]
    'evaluator'
    >>> before = nx.default_options(compiler="evaluator")
    >>> before == nx.default_options(before)
    False
    """
    own = _core.has_own_options()
    if options is None and not changes:
        return Options(_core.get_default_options(), own=own)
    if isinstance(options, Options) and not options.own and not changes:
        # What was in force then were the options of the process.
        return Options(_core.replace_default_options(None), own=own)
    current = _core.get_default_options() if options is None else options
    before = _core.replace_default_options(_merge(current, changes))
    return Options(before, own=own)


def global_default_options(options: Mapping[str, Any] | None = None, /, **changes: Any) -> Options:
    """Set the default options of the process; tell which were in force before.

    They hold in all threads that have none of their own. Arguments and result are those of
    `default_options`.

    Examples
    --------
    >>> import nxla as nx
    >>> with nx.global_default_options(compiler="evaluator"):
    ...     nx.global_default_options()["compiler"]
    'evaluator'
    """
    if options is None and not changes:
        return _GlobalOptions(_core.get_global_default_options())
    current = _core.get_global_default_options() if options is None else options
    merged = _merge(current, changes)
    return _GlobalOptions(_core.replace_global_default_options(merged))


def _merge(options: Mapping[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Put changes on top of options; settings belong to the compiler they were written for."""
    compiler = changes.get("compiler")
    if compiler is not None and compiler != options.get("compiler"):
        options = {name: value for name, value in options.items() if name == "hooks"}
    # A device, and settings that say which one, take the place of each other.
    dropped: tuple[str, ...]
    if not isinstance(changes.get("device"), int | None):
        dropped = PLACING
    elif any(name in changes for name in PLACING) and not isinstance(options.get("device"), int):
        dropped = ("device",)
    else:
        dropped = ()
    options = {name: value for name, value in options.items() if name not in dropped}
    return {**options, **changes}


#: Settings that say where programs run.
PLACING = ("plugin", "cpu_device_count", "preallocate", "device")


def compilers() -> list[str]:
    """Return the names of all compilers.

    Examples
    --------
    >>> import nxla as nx
    >>> "evaluator" in nx.compilers(), "xla" in nx.compilers()
    (True, True)
    """
    return _core.compilers()


def to_backend(**options: Any) -> Device:
    """Return the device that holds the results of functions that run with these options.

    Parameters
    ----------
    **options
        As for `nxla.jit`: a compiler and its settings.

    Returns
    -------
    Device
        A device that exists, for instance for `nxla.device_put`.

    Raises
    ------
    OptionError
        If there is no such compiler, setting or device.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.to_backend(compiler="evaluator")
    Device('host')
    >>> device = nx.to_backend(compiler="evaluator")
    >>> nx.device_put(nx.ones(2), device).device == device
    True
    """
    return _core.to_backend(options)


def partitions_options(**options: Any) -> list[dict[str, Any]]:
    """Return options for each device on which functions can run at the same time.

    Parameters
    ----------
    **options
        As for `nxla.jit`: a compiler and its settings.

    Returns
    -------
    list of dict
        Each is for `nxla.jit`.

    Raises
    ------
    OptionError
        If there is no such compiler, setting or device.

    Examples
    --------
    >>> import nxla as nx
    >>> [nx.jit(nx.sin, **each)(0.0).item() for each in nx.partitions_options()]
    [0.0]
    """
    return _core.partitions_options(options)


# A process that is told to use XLA everywhere need not say so again.
if os.environ.get("NXLA_COMPILER") in ("auto", "xla"):
    plugins.announce()
