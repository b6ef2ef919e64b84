"""Devices and the placement of data.

A function without a named compiler or device runs where its operands are, and its results stay
there. Operands on the host are moved to the device of the other operands; operands on two devices
are an error. Data moves to the host only when it is read.

>>> import nxla as nx
>>> x = nx.tensor([1.0, 2.0], device="host")
>>> x.device
Device('host')
>>> nx.sin(x).device == x.device
True
"""

from __future__ import annotations

from nxla import _core, _hints, tree
from nxla._core import Device
from nxla._values import as_tensor, keeps_structure, user_line
from nxla.errors import ArgumentError, NxlaError, TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from nxla._core import Tensor
    from nxla._types import DeviceLike

    R = TypeVar("R")

__all__ = ["Device", "device_put", "devices"]


def devices() -> list[Device]:
    """Return the available devices.

    Returns
    -------
    list of Device
        The host, the devices of XLA's default client, which loads the plugin, and the devices of
        other existing clients. Without a plugin the list contains only the host.

    Raises
    ------
    DeviceError
        If the plugin cannot be loaded, or finds no device.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.devices()[0]
    Device('host')
    """
    return _core.devices()


@keeps_structure
def device_put(
    container: Any,
    device: DeviceLike | None = None,
    /,
    *,
    client: str | None = None,
    copy: bool | None = None,
) -> Any:
    """Move the tensors of a container to a device.

    Parameters
    ----------
    container : container
        Tensors, numbers and arrays, at any depth.
    device : Device or str, optional
        The target. By default the device of the current options, or else the first of `devices`
        after the host, or the host if it is the only device.
    client : str, optional
        The name of a client, whose first device is the target; instead of `device`.
    copy : bool, optional
        If True, also copy tensors that are on the device. If False, raise an error instead of
        copying.

    Returns
    -------
    container
        The same structure with tensors on the device.

    Raises
    ------
    OptionError
        If no device has this name.
    DeviceError
        If `device` is omitted and the plugin cannot be loaded.
    TraceError
        If the container has a traced value.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.device_put({"w": [1.0, 2.0]}, "host")["w"][0].device
    Device('host')
    """
    is_named = device is not None or client is not None
    where = _place("device_put", device, client) if is_named else _default_device()
    return _map_concrete("device_put", lambda x: x.to_device(where, copy=copy), container)


@keeps_structure
def backend_copy(
    container: Any, device: DeviceLike | None = None, /, *, client: str | None = None
) -> Any:
    """Copy the tensors of a container to a device; the originals stay where they are.

    Parameters
    ----------
    container : container
        Tensors, numbers and arrays, at any depth.
    device : Device or str, optional
        The target; the host by default.
    client : str, optional
        The name of a client, whose first device is the target; instead of `device`.

    Returns
    -------
    container
        The same structure. Every tensor is a new buffer, even if the original is on the device.

    Raises
    ------
    OptionError
        If the device does not exist.
    TraceError
        If the container has a traced value.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.backend_copy({"w": nx.ones(2)})["w"].tolist()
    [1.0, 1.0]
    """
    where = _place("backend_copy", device, client)
    return _map_concrete("backend_copy", lambda x: x.to_device(where, copy=True), container)


@keeps_structure
def backend_transfer(
    container: Any, device: DeviceLike | None = None, /, *, client: str | None = None
) -> Any:
    """Move the tensors of a container to a device and free them where they were.

    Parameters
    ----------
    container : container
        Tensors, numbers and arrays, at any depth.
    device : Device or str, optional
        The target; the host by default.
    client : str, optional
        The name of a client, whose first device is the target; instead of `device`.

    Returns
    -------
    container
        The same structure. A tensor that is already on the device is returned unchanged. Tensors
        that share memory share it on the device too.

    Raises
    ------
    OptionError
        If the device does not exist.
    DeviceError
        If a copy fails. The originals are freed in this case too.
    TraceError
        If the container has a traced value.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.jit(nx.negative, compiler="xla")(nx.ones(2))
    >>> nx.backend_transfer({"x": x})["x"].device
    Device('host')
    >>> x.is_released()
    True
    """
    where = _place("backend_transfer", device, client)
    leaves, structure = tree.flatten(container)
    tensors = [_concrete("backend_transfer", leaf) for leaf in leaves]
    return structure.unflatten(_core.transfer_all(tensors, where))


def _map_concrete(function: str, move: Callable[[Tensor], Tensor], container: Any) -> Any:
    """Return a container with the results of a function of concrete tensors."""
    return tree.map(lambda leaf: move(_concrete(function, leaf)), container)


def _concrete(function: str, leaf: Any) -> Tensor:
    """Return a leaf of a container as a tensor with data."""
    if isinstance(leaf, _core.Expr):
        raise TraceError(
            f"{function}: container: must not be traced, because a traced value is on the "
            f"device of its program; move the arguments or the results instead{user_line()}"
        )
    return as_tensor(leaf)


def backend_deallocate(container: Any, /) -> bool:
    """Free the device memory of all tensors of a container immediately.

    Parameters
    ----------
    container : container
        Tensors at any depth. Host memory is freed with the last reference.

    Returns
    -------
    bool
        True if device memory was freed.

    Raises
    ------
    TraceError
        If the container has a traced value.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.backend_deallocate([nx.ones(2), nx.zeros(2)])
    False
    """
    tensors: list[Any] = []
    for leaf in tree.leaves(container):
        if isinstance(leaf, _core.Expr):
            raise TraceError(
                "backend_deallocate: container: must not be traced, because a traced value has no "
                f"memory{user_line()}"
            )
        # The parts of a tensor over a mesh.
        tensors += getattr(leaf, "shards", None) or [leaf]
    return sum(x.deallocate() for x in tensors if isinstance(x, _core.Tensor)) > 0


def _place(op: str, device: DeviceLike | None, client: str | None) -> Device:
    """Return a device, or the first device of a client; the host without either."""
    if client is None:
        return _naming_device(op, Device, "host" if device is None else device)
    if device is not None:
        raise ArgumentError(
            f"{op}: device, client: must not both be given; a device belongs to a client"
        )
    return _naming_device(op, Device, "host" if client == "host" else f"{client}:0")


def _default_device() -> Device:
    """Return the device of the default options, or else the first device after the host."""
    options = _core.get_default_options()
    if options.get("compiler") is None and options.get("device") is None:
        return devices()[:2][-1]
    return _core.to_backend({})


def made_on(
    op: str, device: DeviceLike | None, function: Callable[..., Tensor], *args: Any
) -> Tensor:
    """Return the result of a function on a device, or on the device of the default options.

    It implements the argument `device` of all functions that create tensors from scalars. Errors
    about the device name the public function `op`.
    """
    if device is None:
        return function(*args)
    made: Tensor = _naming_device(op, _core.on_device, device, function, *args)
    return made


def placed_on(op: str, device: DeviceLike | None, x: Tensor) -> Tensor:
    """Return new data on a device, or on the device of the default options."""
    return _naming_device(op, _core.place, x, device)


def _naming_device(op: str, function: Callable[..., R], *args: Any) -> R:
    """Call a compiled function on behalf of a public one, which errors about a device name."""
    try:
        return function(*args)
    except NxlaError as error:
        message = str(error)
        if not message.startswith("device: "):
            raise
        requirement = message.removeprefix("device: ").removeprefix("name: ")
        raise type(error)(f"{op}: device: {requirement}") from None


_hints.install(globals())
