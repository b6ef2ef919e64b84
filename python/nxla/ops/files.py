"""Containers of tensors in files: the formats of nxla, NumPy and safetensors."""

from __future__ import annotations

import os
import stat
import warnings

from nxla import _core, _hints, tree
from nxla._files import path_of, raw_bytes
from nxla._paths import Attribute, leaf_paths
from nxla._values import kind_of
from nxla.errors import ArgumentError, NxlaError
from nxla.ops.bytes import (
    deserialize,
    known_tensor,
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


def save(file: PathLike, container: Any, /) -> None:
    """Write a container of tensors to a file, in the format that its name ends with.

    The file is written under a temporary name and then renamed, so that a complete file exists at
    any time. A symbolic link remains, and the file that it refers to is written. A file that exists
    keeps its permissions.

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
    TraceError
        If the container contains a traced value.
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
    elif kind == ".npz":
        data = _core.tensors_to_npz("save", list(_by_name("save", container).items()))
    else:
        leaves = tree.leaves(container)
        if len(leaves) != 1 or leaves[0] is not container:
            raise ArgumentError(
                "save: container: must be one tensor for a .npy file; use .npz for a container"
            )
        data = _core.tensor_to_npy("save", known_tensor("save", "container", container))
    try:
        _replace_file(file, data)
    except OSError as error:
        # The temporary name would confuse the caller.
        raise OSError(error.errno, error.strerror, os.fspath(file)) from error


def _replace_file(file: PathLike, data: bytes) -> None:
    """Write a file through symbolic links, and keep the permissions of a file that exists."""
    target = os.path.realpath(file)
    # Threads and processes that write the same file must not share its temporary file.
    beside = f"{target}.{os.urandom(8).hex()}.part"
    try:
        with open(beside, "wb") as part:
            if os.path.exists(target):
                os.chmod(beside, stat.S_IMODE(os.stat(target).st_mode))
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

    Warns
    -----
    UserWarning
        If tensors of a ``.safetensors`` file are left out, as by `from_safetensors`.

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
        return deserialize(data) if kind == ".nxla" else _read_safetensors("load", data)
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


def _by_name(function: str, container: Any) -> dict[str, Tensor]:
    """Return the tensors of a container by their paths, with dots between the steps."""
    try:
        named = _named_leaves(function, container)
        for name in named:
            name.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"{function}: container: names must be valid Unicode strings; got {error.object!r}"
        ) from error
    return {
        name: known_tensor(function, f"container: {name}", leaf) for name, leaf in named.items()
    }


def _named_leaves(function: str, container: Any) -> dict[str, Any]:
    """Return the leaves of a container by name."""
    if isinstance(container, dict) and all(
        isinstance(key, str) and isinstance(x, _core.Tensor) for key, x in container.items()
    ):
        return dict(container)
    paths = leaf_paths(container)  # Rejects a container that is nested too deeply.
    _reject_text(function, container)
    named: dict[str, Any] = {}
    for path, leaf in zip(paths, tree.leaves(container), strict=True):
        steps = [step.name if isinstance(step, Attribute) else str(step) for step in path]
        name = ".".join(steps) if path else "tensor"
        if name in named:
            raise ArgumentError(
                f"{function}: container: names of tensors must be unique; got {name!r} twice"
            )
        named[name] = leaf
    return named


def _reject_text(function: str, container: Any) -> None:
    """Raise an error if a container has a member that is neither a tensor nor None."""
    parts = _core.take_apart(container)
    if parts is not None:
        for child in parts[3]:
            _reject_text(function, child)
    elif container is not None and not tree.leaves(container):
        raise ArgumentError(
            f"{function}: container: must contain only tensors in this format; got {container!r}; "
            "use .nxla for other members"
        )


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
    TraceError
        If the container contains a traced value.

    Examples
    --------
    >>> import nxla as nx
    >>> data = nx.to_safetensors({"w": nx.tensor([1.0, 2.0])}, {"made by": "hand"})
    >>> nx.from_safetensors(data)["w"].tolist()
    [1.0, 2.0]
    """
    if not hasattr(metadata, "items") and metadata is not None:
        raise ArgumentError(
            f"to_safetensors: metadata: must be a dict of strings; got {kind_of(metadata)}"
        )
    strings = [] if metadata is None else list(metadata.items())
    if not all(_is_unicode(text) for pair in strings for text in pair):
        raise ArgumentError(
            "to_safetensors: metadata: names and values must be strings of valid Unicode"
        )
    tensors = list(_by_name("to_safetensors", container).items())
    return _core.tensors_to_safetensors("to_safetensors", tensors, strings)


def _is_unicode(value: object) -> bool:
    """Return whether a value is a string that can be written as UTF-8."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def from_safetensors(data: bytes | bytearray | memoryview, /) -> dict[str, Tensor]:
    """Read tensors by name from bytes in the safetensors format.

    Parameters
    ----------
    data : bytes-like
        The content of a file.

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
    return _read_safetensors("from_safetensors", data)


def _read_safetensors(function: str, data: bytes | bytearray | memoryview) -> dict[str, Tensor]:
    """Return the tensors for a public function, which calls this function directly."""
    tensors, unsupported = _core.tensors_from_safetensors(
        "from_safetensors", raw_bytes("from_safetensors", data)
    )
    if unsupported:
        left_out = ", ".join(f"{name!r} ({dtype})" for name, dtype in unsupported)
        warnings.warn(
            f"{function}: no dtype of nxla holds {left_out}; the other tensors have been read",
            stacklevel=4,  # The line of the caller, after `function` and the frame of `with_hints`.
        )
    return {name: _core.place(x) for name, x in tensors}


_hints.install(globals())
