"""The frequencies of Fourier transforms."""

from __future__ import annotations

from nxla import _core, _hints
from nxla._values import as_count, as_number
from nxla.ops.create import iota, tensor
from nxla.options import default_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import DeviceLike, DTypeLike

    Norm = Literal["backward", "ortho", "forward"]


def fftfreq(
    n: int,
    /,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return the frequencies of the results of `fft`, in cycles per unit of the spacing `d`.

    Parameters
    ----------
    n : int
        The number of elements.
    d : float
        The distance between them.
    dtype : dtype_like, optional
        ``float32`` by default.
    device : Device or str, optional
        The device; by default the device of the current options, or the host.

    Returns
    -------
    Tensor
        A vector of `n` frequencies: zero and the positive ones, followed by the negative ones.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fftfreq(4, d=0.25).tolist()
    [0.0, 1.0, -2.0, -1.0]
    """
    n, d = as_count("fftfreq", "n", n), as_number("fftfreq", "d", d)
    with default_options(compiler="evaluator"):
        steps = iota((n,), dtype="s64")
        steps = _core.where(steps < (n + 1) // 2, steps, steps - n)
    return _frequencies(steps, n * d, dtype, device)


def rfftfreq(
    n: int,
    /,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return the frequencies of the results of `rfft`. The parameters are those of `fftfreq`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.rfftfreq(4, d=0.25).tolist()
    [0.0, 1.0, 2.0]
    """
    n, d = as_count("rfftfreq", "n", n, 1), as_number("rfftfreq", "d", d)
    with default_options(compiler="evaluator"):
        steps = iota((n // 2 + 1,), dtype="s64")
    return _frequencies(steps, n * d, dtype, device)


def _frequencies(
    steps: Tensor, length: float, dtype: DTypeLike | None, device: DeviceLike | None
) -> Tensor:
    """Return steps as fractions of a length, rounded once, on a device."""
    with default_options(compiler="evaluator"):
        exact = _core.divide(_core.astype(steps, "f64"), _core.tensor(length, "f64"))
        found = _core.astype(exact, dtype or "f32")
    return tensor(found, device=device)


_hints.install(globals())
