"""Devices: where data lives and programs run.

A function for which no compiler and no device is named runs where its operands live, and its
results stay there. Operands on the host join those on a device; operands on two devices are an
error. Data comes back to the host when it is read, and only then.

>>> import nxla as nx
>>> x = nx.tensor([1.0, 2.0], device="host")
>>> x.device
Device('host')
>>> nx.sin(x).device == x.device
True
"""

from __future__ import annotations

from nxla import _core, tree
from nxla._core import Device
from nxla._values import as_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import DeviceLike

__all__ = ["Device", "device_put", "devices", "made_on"]


def devices() -> list[Device]:
    """Return the devices that there are.

    Returns
    -------
    list of Device
        The host first, then the devices of XLA's default client, for which the plugin is loaded,
        and those of other clients that have been made. Without a plugin there is only the host.

    Raises
    ------
    DeviceError
        If there is a plugin that does not load, or finds no device.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.devices()[0]
    Device('host')
    """
    return _core.devices()


def device_put(
    container: Any, device: DeviceLike | None = None, /, *, copy: bool | None = None
) -> Any:
    """Put the tensors of a container on a device.

    Parameters
    ----------
    container : container
        Tensors, numbers and arrays, at any depth.
    device : Device or str, optional
        Where to, as such or by name. By default where the options in force say; where they say
        nothing, the first of `devices` after the host, or the host if it is the only one.
    copy : bool, optional
        True makes a copy of what is there already, False refuses to copy.

    Returns
    -------
    container
        The same with tensors on the device. What was there already is not copied.

    Raises
    ------
    OptionError
        If no device has this name.
    DeviceError
        If no device is named, and there is a plugin that does not load.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.device_put({"w": [1.0, 2.0]}, "host")["w"][0].device
    Device('host')
    """
    if device is None:
        device = _default_device()
    where = device if isinstance(device, Device) else Device(device)
    return tree.map(lambda leaf: as_tensor(leaf).to_device(where, copy=copy), container)


def backend_copy(container: Any, device: DeviceLike = "host", /) -> Any:
    """Copy the tensors of a container to a device; the originals stay where they are.

    Parameters
    ----------
    container : container
        Tensors, numbers and arrays, at any depth.
    device : Device or str, optional
        The target; the host by default.

    Returns
    -------
    container
        The same structure. Every tensor is a new buffer, also on the device where the original is.

    Raises
    ------
    OptionError
        If there is no such device.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.backend_copy({"w": nx.ones(2)})["w"].tolist()
    [1.0, 1.0]
    """
    return device_put(container, device, copy=True)


def backend_transfer(container: Any, device: DeviceLike = "host", /) -> Any:
    """Move the tensors of a container to a device and free them where they were.

    Parameters
    ----------
    container : container
        Tensors, numbers and arrays, at any depth.
    device : Device or str, optional
        The target; the host by default.

    Returns
    -------
    container
        The same structure. A tensor that is on the device already is returned as it is.

    Raises
    ------
    OptionError
        If there is no such device.
    DeviceError
        If a copy fails. The original is freed all the same.

    Examples
    --------
    >>> import nxla as nx
    >>> device = nx.devices()[-1]
    >>> x = nx.device_put(nx.ones(2), device)
    >>> nx.backend_transfer({"x": x})["x"].device
    Device('host')
    >>> x.is_released()
    True
    """
    where = device if isinstance(device, Device) else Device(device)
    return tree.map(lambda leaf: as_tensor(leaf).transfer_to(where), container)


def backend_deallocate(container: Any, /) -> bool:
    """Free the device memory of all tensors of a container at once.

    Parameters
    ----------
    container : container
        Tensors at any depth. Host memory is freed with the last reference to it.

    Returns
    -------
    bool
        Whether any tensor had device memory that was not freed before.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.backend_deallocate([nx.ones(2), nx.zeros(2)])
    False
    """
    tensors = [leaf for leaf in tree.leaves(container) if isinstance(leaf, _core.Tensor)]
    return sum(tensor.deallocate() for tensor in tensors) > 0


def _default_device() -> DeviceLike:
    options = _core.get_default_options()
    if options.get("device") is not None:
        named: DeviceLike = options["device"]
        return named
    return "host" if options.get("compiler") == "evaluator" else devices()[:2][-1]


def made_on(device: DeviceLike | None, function: Callable[..., Tensor], *args: Any) -> Tensor:
    """Return what a function makes on a device, or where the options in force say.

    This is what `device=` means for all functions that make tensors from nothing but numbers.
    """
    if device is None:
        return function(*args)
    made: Tensor = _core.on_device(device, function, *args)
    return made
