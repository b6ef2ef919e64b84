"""Containers of tensors in files: the formats of nxla, NumPy and safetensors."""

from __future__ import annotations

import json
import math
import os
import struct
import warnings

from nxla import _core, tree
from nxla._arguments import path_of
from nxla._values import as_tensor
from nxla.errors import ArgumentError, FormatError, NxlaError
from nxla.ops.bytes import (
    _little_endian,
    deserialize,
    load_numpy,
    load_numpy_archive,
    serialize,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from nxla._core import Tensor

    PathLike = str | os.PathLike[str]

_LENGTH = struct.Struct("<Q")

#: The names of dtypes in safetensors, by their names in nxla.
_SAFE = {
    "pred": "BOOL", "u8": "U8", "s8": "I8", "f8_e5m2": "F8_E5M2", "f8_e4m3fn": "F8_E4M3",
    "u16": "U16", "s16": "I16", "f16": "F16", "bf16": "BF16", "u32": "U32", "s32": "I32",
    "f32": "F32", "u64": "U64", "s64": "I64", "f64": "F64", "c64": "C64",
}  # fmt: skip
_OURS = {theirs: ours for ours, theirs in _SAFE.items()}

#: The bits per element of safetensors dtypes that nxla does not support.
_UNSUPPORTED = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
}  # fmt: skip

#: The maximum length of a header, the same as in the reference implementation.
_LONGEST = 100_000_000


def save(file: PathLike, container: Any, /) -> None:
    """Write a container of tensors to a file, in the format that its name ends with.

    The file is written under a temporary name and then renamed, so that a complete file exists at
    any time.

    Parameters
    ----------
    file : path
        ``.nxla`` for any container (see `serialize`), ``.npy`` for one tensor, ``.npz`` and
        ``.safetensors`` for a dict of tensors by name; other containers are written to these
        formats under the paths of their leaves, such as ``layers.0.w``, and are read as a dict.
    container : container
        The container to write.

    Raises
    ------
    ArgumentError
        If the name has another ending, or the format cannot represent the container.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> import nxla as nx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.safetensors")
    ...     nx.save(file, {"layers": [{"w": nx.tensor([1.0, 2.0])}]})
    ...     {name: x.tolist() for name, x in nx.load(file).items()}
    {'layers.0.w': [1.0, 2.0]}
    """
    kind = _kind("save", file)
    if kind == ".nxla":
        data = serialize(container)
    elif kind == ".safetensors":
        data = to_safetensors(container)
    else:
        data = _numpy_file(container, archive=kind == ".npz")
    target = os.fspath(file)
    beside = f"{target}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as part:
            part.write(data)
        os.replace(beside, target)
    except BaseException:
        if os.path.exists(beside):
            os.remove(beside)
        raise


def load(file: PathLike, /) -> Any:
    """Read a file that `save` or another program has written in one of these formats.

    Parameters
    ----------
    file : path
        Its name ends with ``.nxla``, ``.npy``, ``.npz`` or ``.safetensors``.

    Returns
    -------
    container
        A tensor for ``.npy``, a dict of tensors for ``.npz`` and ``.safetensors``.

    Raises
    ------
    ArgumentError
        If the name of the file has another suffix.
    FormatError
        If the file is damaged. The message begins with the name of the file.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> import nxla as nx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "state.nxla")
    ...     nx.save(file, {"step": 3, "w": (nx.tensor([1.0]), None)})
    ...     nx.load(file)["step"]
    3
    """
    kind = _kind("load", file)
    try:
        if kind == ".npy":
            return load_numpy(file)
        if kind == ".npz":
            return load_numpy_archive(file)
        with open(file, "rb") as source:
            data = source.read()
        return deserialize(data) if kind == ".nxla" else from_safetensors(data)
    except NxlaError as error:
        raise type(error)(f"load: {path_of('load', file)}: {error}") from error


def _kind(function: str, file: PathLike) -> str:
    path = path_of(function, file)
    kind = os.path.splitext(path)[1].lower()
    if kind not in (".nxla", ".npy", ".npz", ".safetensors"):
        raise ArgumentError(
            f"{function}: file: name must end with .nxla, .npy, .npz or .safetensors; got {path!r}"
        )
    return kind


def _numpy_file(container: Any, *, archive: bool) -> bytes:
    import io
    import zipfile

    import numpy as np

    written = io.BytesIO()
    if archive:
        # The names of tensors could clash with the parameters of `numpy.savez`.
        with zipfile.ZipFile(written, "w") as files:
            for name, x in _by_name(container).items():
                with files.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, _numpy(x, name), allow_pickle=False)
    else:
        if tree.flatten(container)[0] != [container]:
            raise ArgumentError(
                "save: container: must be one tensor for a .npy file; use .npz for a container"
            )
        np.save(written, _numpy(as_tensor(container), "the tensor"), allow_pickle=False)
    return written.getvalue()


def _numpy(x: Tensor, name: str) -> Any:
    import numpy as np

    array = np.asarray(x)
    if array.dtype.hasobject or array.dtype.kind == "V" or array.dtype.isbuiltin != 1:
        raise ArgumentError(f"save: {name!r}: dtype must exist in NumPy; got {x.dtype}")
    return array


def _by_name(container: Any) -> dict[str, Tensor]:
    """Return the tensors of a container by their paths, with dots between the parts."""
    if isinstance(container, dict) and all(
        isinstance(key, str) and isinstance(x, _core.Tensor) for key, x in container.items()
    ):
        return dict(container)
    leaves, structure = tree.flatten(container)
    named: dict[str, Tensor] = {}
    for index, leaf in enumerate(leaves):
        path = structure.leaf_path(index)
        name = path.replace("['", ".").replace("']", "").replace('["', ".").replace('"]', "")
        name = name.replace("[", ".").replace("]", "").strip(".") or "tensor"
        if name in named:
            raise ArgumentError(
                f"save: container: names of tensors must be unique; got {name!r} twice"
            )
        named[name] = as_tensor(leaf)
    return named


def to_safetensors(container: Any, /, metadata: Mapping[str, str] | None = None) -> bytes:
    """Write tensors as bytes in the safetensors format.

    Parameters
    ----------
    container : container
        A dict of tensors by name; others are written under the paths of their leaves.
    metadata : mapping of str to str, optional
        Strings to store next to the tensors.

    Returns
    -------
    bytes
        The content of a file in the format.

    Raises
    ------
    ArgumentError
        If the format does not support a dtype, or metadata contain other values than strings.

    Examples
    --------
    >>> import nxla as nx
    >>> data = nx.to_safetensors({"w": nx.tensor([1.0, 2.0])}, {"made by": "hand"})
    >>> nx.from_safetensors(data)["w"].tolist()
    [1.0, 2.0]
    """
    head: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise ArgumentError("to_safetensors: metadata: names and values must be strings")
        head["__metadata__"] = dict(metadata)
    data: list[bytes] = []
    end = 0
    tensors = _by_name(container)
    if "__metadata__" in tensors:
        raise ArgumentError(
            'to_safetensors: container: the name "__metadata__" is reserved by the format'
        )
    # Wide elements come first, so that all of them are aligned.
    for name, x in sorted(tensors.items(), key=lambda entry: -entry[1].dtype.itemsize):
        if x.dtype.name not in _SAFE:
            raise ArgumentError(
                f"to_safetensors: {name!r}: dtype must exist in the format; got {x.dtype}"
            )
        raw = _core.Tensor._first_bytes(x, None)
        data.append(_little_endian(raw, x.dtype.itemsize, x.dtype.kind == "complex"))
        begin, end = end, end + len(raw)
        head[name] = {
            "dtype": _SAFE[x.dtype.name],
            "shape": list(x.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([_LENGTH.pack(len(text)), text, *data])


def from_safetensors(data: bytes | bytearray | memoryview, /) -> dict[str, Tensor]:
    """Read tensors by name from bytes in the safetensors format.

    Returns
    -------
    dict of str to Tensor
        The tensors whose dtypes nxla supports.

    Raises
    ------
    FormatError
        If the bytes are not in this format: truncated, with tensors that overlap or leave gaps, or
        with an unknown dtype.

    Warns
    -----
    UserWarning
        If tensors are left out because they have a dtype of the format that nxla does not support,
        such as ``F4`` or ``F8_E8M0``. The warning names them.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.from_safetensors(nx.to_safetensors({"n": nx.tensor(3)}))["n"].item()
    3
    """
    view = memoryview(data).cast("B")
    head, start = _safe_head(view)
    found: dict[str, Tensor] = {}
    spans: list[tuple[int, int]] = []
    left_out: list[str] = []
    for name, entry in head.items():
        if name == "__metadata__":
            continue
        dtype, shape, (begin, end) = _safe_entry(name, entry)
        if start + end > len(view):
            raise FormatError(f"from_safetensors: {name!r}: data is truncated")
        spans.append((begin, end))
        if dtype is None:
            left_out.append(f"{name!r} ({entry['dtype']})")
            continue
        raw = bytes(view[start + begin : start + end])
        raw = _little_endian(raw, dtype.itemsize, dtype.kind == "complex")
        if dtype.kind == "pred" and raw.strip(b"\x00\x01"):
            raise FormatError(f"from_safetensors: {name!r}: booleans must be 0 or 1")
        found[name] = _core.tensor_from_bytes(raw, dtype, shape)
    at = 0
    for begin, end in sorted(spans):
        if begin != at:
            what = "overlap" if begin < at else "leave bytes between them"
            raise FormatError(f"from_safetensors: offsets: tensors {what}, at byte {begin}")
        at = end
    if start + at != len(view):
        raise FormatError(
            f"from_safetensors: data: must end with the last tensor; {len(view) - start - at} "
            "bytes follow"
        )
    if left_out:
        warnings.warn(
            f"from_safetensors: no dtype of nxla holds {', '.join(left_out)}; the other tensors "
            "have been read",
            stacklevel=2,
        )
    return found


def _safe_head(view: memoryview) -> tuple[dict[str, Any], int]:
    """Return the description of a file, and the offset of its data."""
    if len(view) < _LENGTH.size:
        raise FormatError("from_safetensors: data: must be at least 8 bytes")
    (length,) = _LENGTH.unpack(view[: _LENGTH.size])
    start = _LENGTH.size + length
    if length > _LONGEST or start > len(view):
        raise FormatError(f"from_safetensors: data: must contain a header of {length} bytes")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) != len(names):
            raise ValueError("names must be unique")
        return dict(pairs)

    try:
        text = bytes(view[_LENGTH.size : start]).decode()
        if not text.startswith("{"):
            raise ValueError("it must start with {")
        head = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as broken:
        raise FormatError(f"from_safetensors: header: must be valid JSON; {broken}") from broken
    return head, start


def _safe_entry(name: str, entry: Any) -> tuple[_core.DType | None, list[int], tuple[int, int]]:
    """Return the dtype, None for an unsupported one, the shape and the byte range of a tensor."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(
            f"from_safetensors: {name!r}: header entry must have dtype, shape and data_offsets"
        )
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or (dtype not in _OURS and dtype not in _UNSUPPORTED):
        raise FormatError(
            f"from_safetensors: {name!r}: dtype must be a dtype of the format; got {dtype!r}"
        )
    counts = [*shape, *offsets] if isinstance(shape, list) and isinstance(offsets, list) else [-1]
    proper = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in counts)
    if not proper or len(offsets) != 2:
        raise FormatError(
            f"from_safetensors: {name!r}: shape and offsets must be non-negative integers; "
            f"got {shape!r} at {offsets!r}"
        )
    known = _core.DType(_OURS[dtype]) if dtype in _OURS else None
    bits = _UNSUPPORTED[dtype] if known is None else 8 * known.itemsize
    begin, end = offsets
    if 8 * (end - begin) != math.prod(shape) * bits:
        raise FormatError(
            f"from_safetensors: {name!r} has {end - begin} bytes for {dtype} of shape {shape}"
        )
    return known, shape, (begin, end)
