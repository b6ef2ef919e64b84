"""Calls of functions with the interface of XLA's typed FFI, with the same arguments as from XLA.

The declarations follow ``xla/ffi/api/c_api.h`` with the same names. A handler finds its
arguments, results and attributes in a call frame, with a table of functions for errors. The host
has no stream and no device memory; requests for them return an error.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p

from nxla import _core
from nxla._values import kind_of
from nxla.errors import ArgumentError, DTypeError, ExecutionError
from nxla.ops.bytes import from_binary, to_binary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from nxla._core import Template, Tensor

#: `XLA_FFI_DataType` of the dtypes whose elements are not packed.
DTYPES = {
    "pred": 1,
    "s8": 2,
    "s16": 3,
    "s32": 4,
    "s64": 5,
    "u8": 6,
    "u16": 7,
    "u32": 8,
    "u64": 9,
    "f16": 10,
    "f32": 11,
    "f64": 12,
    "c64": 15,
    "bf16": 16,
    "c128": 18,
    "f8_e5m2": 19,
    "f8_e4m3fn": 20,
}
ARRAY, SCALAR, STRING = 1, 3, 4
BUFFER, EXECUTE = 1, 3
#: The alignment of tensors in XLA, for vector loads.
ALIGNMENT = 64
VERSION = (0, 3)

HANDLER = ctypes.CFUNCTYPE(c_void_p, c_void_p)
#: The common type of library functions and callbacks.
FUNCTION: Any = HANDLER.__mro__[1]
TASK = ctypes.CFUNCTYPE(None, c_void_p)


class Struct(ctypes.Structure):
    """The common header of the structs: a size and a chain of extensions."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p)]

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


def struct(name: str, *fields: tuple[str, Any]) -> Any:
    """Declare a struct of the API."""
    return type(name, (Struct,), {"_fields_": fields})


Version = struct("XLA_FFI_Api_Version", ("major", c_int), ("minor", c_int))
ErrorCreate = struct("XLA_FFI_Error_Create_Args", ("message", c_char_p), ("errc", c_int))
ErrorMessage = struct("XLA_FFI_Error_GetMessage_Args", ("error", c_void_p), ("message", c_char_p))
ErrorDestroy = struct("XLA_FFI_Error_Destroy_Args", ("error", c_void_p))
Schedule = struct(
    "XLA_FFI_ThreadPool_Schedule_Args", ("ctx", c_void_p), ("task", c_void_p), ("data", c_void_p)
)
NumThreads = struct(
    "XLA_FFI_ThreadPool_NumThreads_Args", ("ctx", c_void_p), ("num_threads", POINTER(c_int64))
)
Buffer = struct(
    "XLA_FFI_Buffer",
    ("dtype", c_int),
    ("data", c_void_p),
    ("rank", c_int64),
    ("dims", POINTER(c_int64)),
)
Values = struct(
    "XLA_FFI_Args", ("size", c_int64), ("types", POINTER(c_int)), ("values", POINTER(c_void_p))
)
Attrs = struct(
    "XLA_FFI_Attrs",
    ("size", c_int64),
    ("types", POINTER(c_int)),
    ("names", POINTER(c_void_p)),
    ("attrs", POINTER(c_void_p)),
)
CallFrame = struct(
    "XLA_FFI_CallFrame",
    ("api", c_void_p),
    ("ctx", c_void_p),
    ("stage", c_int),
    ("args", Values),
    ("rets", Values),
    ("attrs", Attrs),
    ("future", c_void_p),
)


class ByteSpan(ctypes.Structure):
    """A string with its length."""

    _fields_ = [("ptr", c_char_p), ("len", c_size_t)]


class Scalar(ctypes.Structure):
    """A scalar."""

    _fields_ = [("dtype", c_int), ("value", c_void_p)]


class Array(ctypes.Structure):
    """Scalars of one dtype."""

    _fields_ = [("dtype", c_int), ("size", c_size_t), ("data", c_void_p)]


FUNCTIONS = (
    "Error_Create",
    "Error_GetMessage",
    "Error_Destroy",
    "Handler_Register",
    "Stream_Get",
    "Type_Register",
    "ExecutionContext_Get",
    "State_Set",
    "State_Get",
    "DeviceMemory_Allocate",
    "DeviceMemory_Free",
    "ThreadPool_Schedule",
    "ThreadPool_NumThreads",
    "Future_Create",
    "Future_SetAvailable",
    "Future_SetError",
    "RunId_Get",
    "DeviceOrdinal_Get",
)
Api = struct(
    "XLA_FFI_Api",
    ("version", Version),
    ("internal_api", c_void_p),
    *((name, c_void_p) for name in FUNCTIONS),
)


class Table:
    """The functions that a handler may call, and the errors that it has created."""

    def __init__(self) -> None:
        self._errors: dict[int, bytes] = {}
        self._numbers = itertools.count(1)
        own = {
            "Error_Create": self._create,
            "Error_GetMessage": self._message,
            "Error_Destroy": self._destroy,
            "ThreadPool_Schedule": self._schedule,
            "ThreadPool_NumThreads": self._count,
        }
        # ctypes frees callbacks with the objects that refer to them.
        self._callbacks = {
            name: HANDLER(own.get(name, functools.partial(self._absent, name)))
            for name in FUNCTIONS
        }
        addresses = {
            name: ctypes.cast(callback, c_void_p) for name, callback in self._callbacks.items()
        }
        self.api = Api(version=Version(major=VERSION[0], minor=VERSION[1]), **addresses)

    def error(self, message: bytes) -> int:
        """Create an error and return its handle."""
        number = next(self._numbers)
        self._errors[number] = message
        return number

    def take_error(self, error: int) -> str:
        """Return the message of an error and free the error."""
        return self._errors.pop(error, b"an error that is not of its making").decode(
            errors="replace"
        )

    def _create(self, args: int) -> int:
        return self.error(ErrorCreate.from_address(args).message or b"")

    def _message(self, args: int) -> None:
        found = ErrorMessage.from_address(args)
        found.message = self._errors.get(found.error)

    def _destroy(self, args: int) -> None:
        self._errors.pop(ErrorDestroy.from_address(args).error, None)

    def _schedule(self, args: int) -> None:
        # A synchronous thread pool: a task runs when it is scheduled.
        given = Schedule.from_address(args)
        TASK(given.task)(given.data)

    def _count(self, args: int) -> None:
        NumThreads.from_address(args).num_threads[0] = 1

    def _absent(self, name: str, _args: int) -> int:
        return self.error(f"XLA_FFI_{name} has no meaning on the host".encode())


@functools.cache
def table() -> Table:
    """Return the table of the process."""
    return Table()


def address_of(handler: Any) -> int:
    """Return the address of a handler: a number, a capsule, or a function of ctypes."""
    # No operating system has code in the first pages.
    if isinstance(handler, int) and not isinstance(handler, bool) and handler >= 1 << 16:
        return handler
    if type(handler).__name__ == "PyCapsule":
        name_of = ctypes.pythonapi.PyCapsule_GetName
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        name_of.restype, name_of.argtypes = c_char_p, [ctypes.py_object]
        pointer_of.restype, pointer_of.argtypes = c_void_p, [ctypes.py_object, c_char_p]
        found: int = pointer_of(handler, name_of(handler))
        return found
    if isinstance(handler, FUNCTION):
        return ctypes.cast(handler, c_void_p).value or 0
    raise ArgumentError(
        "foreign_call: handler: must be an address, a PyCapsule or a ctypes function; "
        f"got {kind_of(handler)}"
    )


class Handler:
    """A handler, with a reference that keeps its code loaded."""

    def __init__(self, handler: Any) -> None:
        self._owner = handler
        self.function = HANDLER(address_of(handler))


def code_of(dtype: Any) -> int:
    """Return the number of a dtype."""
    if str(dtype) not in DTYPES:
        raise DTypeError(f"foreign_call: args: handlers do not support the dtype {dtype}")
    return DTYPES[str(dtype)]


class Memory:
    """Keeps the memory of a call frame alive until the call has ended."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def keep(self, item: Any) -> int:
        """Keep a ctypes object, and return its address."""
        self._kept.append(item)
        return ctypes.addressof(item)

    def bytes(self, size: int) -> int:
        """Return the address of zeros, with the alignment of XLA."""
        start = self.keep((ctypes.c_char * (size + ALIGNMENT))())
        return start + -start % ALIGNMENT

    def array(self, kind: Any, items: Sequence[int]) -> Any:
        """Return a pointer to an array of integers of a ctypes class."""
        array = (kind * max(len(items), 1))(*items)
        self.keep(array)
        return ctypes.cast(array, POINTER(kind))

    def buffer(self, dtype: Any, shape: Sequence[int], data: int) -> int:
        """Return the address of a descriptor of a tensor."""
        dims = self.array(c_int64, shape)
        return self.keep(Buffer(dtype=code_of(dtype), data=data, rank=len(shape), dims=dims))

    def copy_elements(self, tensor: Tensor) -> int:
        """Return the address of a copy of a tensor's elements."""
        data = to_binary(tensor)
        start = self.bytes(len(data))
        ctypes.memmove(start, data, len(data))
        return start

    def span(self, text: str) -> int:
        """Return the address of a string with its length."""
        data = text.encode()
        return self.keep(ByteSpan(data, len(data)))

    def attribute(self, name: str, value: Any) -> tuple[int, int]:
        """Return the kind and the address of an attribute."""
        if isinstance(value, str):
            return STRING, self.span(value)
        plain = {bool: "pred", int: "s64", float: "f64"}.get(type(value))
        tensor = _core.tensor(value, plain) if plain else _core.tensor(value)
        if tensor.ndim > 1:
            raise ArgumentError(
                f"foreign_call: attributes: {name!r} must be a number, a string or a sequence of "
                f"numbers; got {tensor.ndim} axes"
            )
        code, data = code_of(tensor.dtype), self.copy_elements(tensor)
        if tensor.ndim == 0:
            return SCALAR, self.keep(Scalar(code, data))
        return ARRAY, self.keep(Array(code, tensor.size, data))


def call(
    handler: Handler,
    args: Sequence[Tensor],
    results: Sequence[Template],
    attributes: Mapping[str, Any],
) -> list[Tensor]:
    """Call a handler on tensors, and return its results."""
    memory = Memory()
    inputs = [memory.buffer(x.dtype, x.shape, memory.copy_elements(x)) for x in args]
    sizes = [_core.DType(str(ty.dtype)).itemsize * math.prod(ty.shape) for ty in results]
    places = [memory.bytes(size) for size in sizes]
    outputs = [
        memory.buffer(ty.dtype, ty.shape, at) for ty, at in zip(results, places, strict=True)
    ]
    # Handlers look attributes up in the order of their names.
    names = sorted(attributes)
    attrs = [memory.attribute(name, attributes[name]) for name in names]

    def values(items: list[int]) -> Any:
        types = memory.array(c_int, [BUFFER] * len(items))
        return Values(size=len(items), types=types, values=memory.array(c_void_p, items))

    frame = CallFrame(
        api=ctypes.addressof(table().api),
        stage=EXECUTE,
        args=values(inputs),
        rets=values(outputs),
        attrs=Attrs(
            size=len(attrs),
            types=memory.array(c_int, [kind for kind, _ in attrs]),
            names=memory.array(c_void_p, [memory.span(name) for name in names]),
            attrs=memory.array(c_void_p, [at for _, at in attrs]),
        ),
    )
    # The header contains the size of the struct, and the handler sets the future.
    frame.struct_size = CallFrame.future.offset
    error = handler.function(ctypes.addressof(frame))
    if error:
        raise ExecutionError(f"foreign_call: {table().take_error(error)}")
    if frame.future:
        raise ExecutionError(
            "foreign_call: handler: must be finished when it returns; only XLA supports "
            "asynchronous handlers"
        )
    return [
        _core.reshape(from_binary(ctypes.string_at(at, size), ty.dtype), ty.shape)
        for at, size, ty in zip(places, sizes, results, strict=True)
    ]
