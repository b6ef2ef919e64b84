"""A reader of NumPy files that validates all input.

NumPy trusts the header: it allocates the memory that the header declares, and raises various
exceptions for damaged files. This reader compares declared sizes with the actual data before it
allocates memory, and raises `FormatError` with the position.
"""

from __future__ import annotations

import ast
import io
import math
import struct

from nxla import _core
from nxla._arguments import path_of
from nxla.errors import DTypeError, FormatError, OutOfMemoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import zipfile
    from typing import IO, Any

    from nxla._core import Tensor

_MAGIC = b"\x93NUMPY"
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06")
#: For each version of the format: the `struct` format of the header length, and the encoding of the
#: header.
_VERSIONS = {(1, 0): ("<H", "latin1"), (2, 0): ("<I", "latin1"), (3, 0): ("<I", "utf8")}
#: The longest header, as in NumPy: parsing a header takes more than linear time.
_LONGEST_HEADER = 10_000
#: The highest compression ratio of an archive.
_MOST_COMPRESSION = 1_100


def read_array(file: str | os.PathLike[str] | bytes, function: str) -> Tensor:
    """Read the one array of a file."""
    with _opened(file) as stream:
        start = stream.read(4)
        if start in _ARCHIVES:
            raise FormatError(f"{function}: this is an archive; use nx.load_numpy_archive")
        stream.seek(0)
        return _array(stream, _size(stream), function)


def read_archive(file: str | os.PathLike[str] | bytes, function: str) -> dict[str, Tensor]:
    """Read the arrays of an archive, by name."""
    import zipfile

    with _opened(file) as stream:
        start = stream.read(6)
        if start == _MAGIC:
            raise FormatError(f"{function}: this is a single array; use nx.load_numpy")
        if start[:4] not in _ARCHIVES:
            raise FormatError(f"{function}: at byte 0, expected a NumPy archive, found {start!r}")
        stream.seek(0)
        size = _size(stream)
        try:
            with zipfile.ZipFile(stream) as archive:
                return _members(archive, size, function)
        except (FormatError, DTypeError, MemoryError):
            raise
        # Damaged archives raise a dozen types of errors, which are undocumented.
        except Exception as broken:
            if isinstance(broken, OSError) and not isinstance(file, bytes):
                raise
            kind = type(broken).__name__
            raise FormatError(f"{function}: the archive is damaged: {broken} ({kind})") from broken


def _members(archive: zipfile.ZipFile, size: int, function: str) -> dict[str, Tensor]:
    arrays = {}
    packed = 0
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        where = f"{function}: member {name!r}"
        if name in arrays:
            raise FormatError(f"{where}: name must be unique")
        packed += member.compress_size
        if packed > size or member.file_size > _MOST_COMPRESSION * member.compress_size:
            raise FormatError(
                f"{where}: size must fit the archive of {size} bytes; got {member.file_size} "
                f"bytes, {member.compress_size} compressed"
            )
        with archive.open(member) as stream:
            arrays[name] = _array(stream, member.file_size, where)
            # The rest must be read for the checksum.
            while stream.read(1 << 16):
                pass
    return arrays


def _opened(file: str | os.PathLike[str] | bytes) -> IO[bytes]:
    return io.BytesIO(file) if isinstance(file, bytes) else open(path_of("load_numpy", file), "rb")


def _size(stream: IO[bytes]) -> int:
    """Return the number of bytes after the position of a stream."""
    here = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(here)
    return end - here


def _array(stream: IO[bytes], size: int, where: str) -> Tensor:
    """Read an array of at most this many bytes."""
    import numpy as np

    dtype, order, shape, start = _header(stream, size, where)
    if dtype.hasobject:
        raise FormatError(f"{where}: at byte {start}, expected numbers, found pickled objects")
    if dtype.itemsize == 0 or dtype.subdtype is not None:
        raise DTypeError(f"{where}: arrays of dtype {dtype} are not supported")
    needed = math.prod(shape) * dtype.itemsize
    if needed > size - start:
        raise FormatError(
            f"{where}: at byte {start}, expected {needed} bytes of elements of dtype {dtype} and "
            f"shape {shape}, found {max(size - start, 0)}"
        )
    try:
        data = stream.read(needed)
        if len(data) != needed:
            raise FormatError(
                f"{where}: at byte {start}, expected {needed} bytes of elements, found {len(data)}"
            )
        array = np.frombuffer(data, dtype).reshape(shape, order=order)
        # Files may have either byte order; DLPack and buffers have the byte order of the machine.
        return _core.tensor(array.astype(dtype.newbyteorder("="), copy=False))
    except MemoryError as short:
        raise OutOfMemoryError(f"{where}: cannot allocate {needed} bytes of elements") from short
    # NumPy rejects ranks above 64 and sizes above 2 ** 63 only when it creates the array.
    except (ValueError, OverflowError) as broken:
        raise FormatError(f"{where}: at byte {start}, shape {shape}: {broken}"[:500]) from broken


def _header(stream: IO[bytes], size: int, where: str) -> tuple[Any, Any, tuple[int, ...], int]:
    """Return dtype, order and shape, and the offset of the elements."""
    from numpy.lib import format as npy

    def wrong(at: int, expected: str, found: object) -> FormatError:
        return FormatError(f"{where}: at byte {at}, expected {expected}, found {found!r}"[:500])

    magic = stream.read(8)
    if magic[:6] != _MAGIC or len(magic) < 8:
        raise wrong(0, "the beginning of a file of numpy", magic[:6])
    version = (magic[6], magic[7])
    if version not in _VERSIONS:
        raise wrong(6, "a version of the format from 1.0 to 3.0", version)
    packed, encoding = _VERSIONS[version]
    width = struct.calcsize(packed)
    raw = stream.read(width)
    if len(raw) < width:
        raise wrong(8, "the length of the header", raw)
    (length,) = struct.unpack(packed, raw)
    start = 8 + width
    if length > min(_LONGEST_HEADER, size - start):
        raise wrong(8, f"a header of at most {min(_LONGEST_HEADER, size - start)} bytes", length)
    text = stream.read(length)
    try:
        header = ast.literal_eval(text.decode(encoding))
        dtype = npy.descr_to_dtype(header["descr"])
        shape, fortran = header["shape"], header["fortran_order"]
    # The evaluation of a literal, and the creation of a dtype, can raise many types of errors.
    except Exception as broken:
        found = f"{type(broken).__name__}: {broken}"
        raise wrong(start, "a header of dtype, order and shape", found) from broken
    sizes = isinstance(shape, tuple) and all(type(axis) is int and axis >= 0 for axis in shape)
    if not sizes:
        raise wrong(start, "a shape of sizes", shape)
    if not isinstance(fortran, bool) or len(header) != 3:
        raise wrong(start, "a header of dtype, order and shape", header)
    return dtype, "F" if fortran else "C", shape, start + length
