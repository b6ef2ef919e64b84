"""Default options: the compiler of functions, its settings and its hooks.

From lowest to highest precedence: the environment variable ``NXLA_COMPILER``,
`global_default_options`, `default_options` of the thread, the options of the call.
"""

from __future__ import annotations

from nxla import _core, _hints
from nxla._arguments import SHARDINGS
from nxla._marks import MARKS
from nxla.errors import OptionError

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
    """Previous options; as a context manager, it restores them at the end."""

    def __init__(self, options: Mapping[str, Any], *, own: bool = True) -> None:
        super().__init__(options)
        #: True for options of the thread, False for options of the process.
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
        # A thread without options uses the options of the process.
        _core.replace_default_options(self if self.own else None)


class _GlobalOptions(Options):
    """Previous options of the process."""

    def _restore(self) -> None:
        _core.replace_global_default_options(self)


def default_options(options: Mapping[str, Any] | None = None, /, **changes: Any) -> Options:
    """Set the default options of the thread and return the previous ones.

    Parameters
    ----------
    options : mapping, optional
        The new options, which replace the current ones; the current options by default.
    **changes
        Single options, which are added: ``compiler``, ``device`` (a `Device` or its name),
        ``client``, ``hooks``, ``stages``, ``progress``, settings of the compiler. A new compiler
        drops the device and the settings of the previous one. None removes an option.

    Returns
    -------
    Options
        The previous options: a dict, and a context manager that restores them.

    Raises
    ------
    OptionError
        If the compiler does not exist, or does not have the setting, or if the option belongs to a
        single function, as ``debug_nans`` does. A compiler written in Python checks its settings
        when it compiles.

    Notes
    -----
    All asyncio tasks of a thread share its options. A ``with`` block must therefore not contain an
    ``await``, during which other tasks run: pass the options to `jit` instead. A block restores the
    options that it found, so nested blocks must end in reverse order. A block in a generator that
    yields may end out of order, and then leaves options of another block in force.

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
        # The thread used the options of the process.
        return Options(_core.replace_default_options(None), own=own)
    current = _core.get_default_options() if options is None else options
    before = _core.replace_default_options(_merge("default_options", current, changes))
    return Options(before, own=own)


def _merge(function: str, options: Mapping[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return default options with changes."""
    from nxla._spec import OWN_OPTIONS

    if not hasattr(options, "items"):
        raise OptionError(
            f"{function}: options: must be a dict; got {options!r}; pass single options by name, "
            'as in compiler="evaluator"'
        )
    of_functions = ("on_conflict", *OWN_OPTIONS, *MARKS, *SHARDINGS)
    for name, value in (*options.items(), *changes.items()):
        if name in of_functions and value is not None:
            raise OptionError(
                f"{function}: {name}: must be an option of a single function; got {value!r}; "
                "pass it to nx.jit"
            )
    options = {name: options[name] for name in options if name not in of_functions}
    changes = {name: changes[name] for name in changes if name not in of_functions}
    return _core.merge_options(options, changes)


def global_default_options(options: Mapping[str, Any] | None = None, /, **changes: Any) -> Options:
    """Set the default options of the process and return the previous ones.

    They apply in all threads that have not set options.

    Parameters
    ----------
    options : mapping, optional
        The new options, which replace the current ones; the current options by default.
    **changes
        Single options, which are added, as for `default_options`.

    Returns
    -------
    Options
        The previous options: a dict, and a context manager that restores them.

    Raises
    ------
    OptionError
        As for `default_options`.

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
    merged = _merge("global_default_options", current, changes)
    return _GlobalOptions(_core.replace_global_default_options(merged))


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
    """Return the device of the results of functions with these options.

    Parameters
    ----------
    **options
        As for `nxla.jit`: a compiler and its settings.

    Returns
    -------
    Device
        An existing device, which `nxla.device_put` accepts.

    Raises
    ------
    OptionError
        If the compiler, the setting or the device does not exist.

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
    """Return options for each device that can run functions independently.

    Parameters
    ----------
    **options
        As for `nxla.jit`: a compiler and its settings. A device by name, or a client, is the only
        partition.

    Returns
    -------
    list of dict
        Options for `nxla.jit`.

    Raises
    ------
    OptionError
        If the compiler, the setting or the device does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> [nx.jit(nx.sin, **each)(0.0).item() for each in nx.partitions_options()]
    [0.0]
    """
    partitions = _core.partitions_options(options)
    named = {name: value for name, value in options.items() if value is not None}
    device = _core.merge_options(_core.get_default_options(), named).get("device")
    if isinstance(device, _core.Device):
        return [{**partitions[0], "device": device}]
    return partitions


_hints.install(globals())
