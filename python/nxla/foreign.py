"""Functions of other languages as parts of programs."""

from __future__ import annotations

from nxla import _hints, tree
from nxla._values import as_tensor, template_of
from nxla.errors import ArgumentError
from nxla.ops.control import runtime_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nxla._core import Tensor

__all__ = ["foreign_call"]


def foreign_call(
    handler: Any, template: Any, /, *args: Any, attributes: Mapping[str, Any] | None = None
) -> Any:
    """Call a function of C, C++ or Rust that has the interface of XLA's typed FFI.

    The handler runs at each execution of the call, on the host, without the interpreter lock, with
    arguments and results in row-major order; see `runtime_call` for the order of calls. A
    derivative that flows through the call is an error: define the derivative of a function around
    it with `custom_jvp` or `custom_vjp`.

    Parameters
    ----------
    handler : int, PyCapsule or function of ctypes
        An ``XLA_FFI_Handler`` (``xla/ffi/api/c_api.h``, or ``XLA_FFI_DEFINE_HANDLER`` of
        ``ffi.h``), by its address, in a capsule, or as an attribute of a library that ``ctypes``
        has loaded. Whether it is one cannot be checked: another function ends the process.
    template : template, tensor or container
        The structure, shapes and dtypes of the results; data is ignored.
    *args
        Tensors, or containers of them, whose leaves are the handler's arguments.
    attributes : mapping, optional
        Compile-time arguments by name: booleans, integers (as s64), floats (as f64), scalars and
        vectors of other dtypes, and strings.

    Returns
    -------
    tensor or container
        The results that the handler writes; elements that it does not write are 0.

    Raises
    ------
    ArgumentError
        If the handler or an attribute is something else.
    DTypeError
        If the elements of a tensor are packed, as for s4.
    ExecutionError
        When it runs, if the handler returns an error, requests a resource of a device, or continues
        after its return.

    Examples
    --------
    >>> import ctypes, nxla as nx
    >>> @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)  # A function of C, in a real case.
    ... def handler(call_frame):
    ...     return None
    >>> nx.foreign_call(handler, nx.template(2), nx.ones(3)).tolist()
    [0.0, 0.0]
    """
    from nxla import _ffi

    found = _ffi.Handler(handler)
    given = dict(attributes or {})
    for name, value in given.items():
        if not isinstance(name, str):
            raise ArgumentError(f"foreign_call: attributes: names must be strings; got {name!r}")
        _ffi.Memory().attribute(name, value)
    types, structure = tree.flatten(template)
    types = [template_of(leaf) for leaf in types]
    for ty in types:
        _ffi.code_of(ty.dtype)
    leaves = [as_tensor(leaf) for leaf in tree.leaves(args)]
    for leaf in leaves:
        _ffi.code_of(leaf.dtype)

    def run(*values: Tensor) -> list[Tensor]:
        return _ffi.call(found, values, types, given)

    return structure.unflatten(runtime_call(run, types, *leaves))


_hints.install(globals())
