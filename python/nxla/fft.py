"""Fourier transforms along any axes, of any length.

Names, arguments and semantics follow the Python Array API standard; `fft2` and `ifft2` follow Nx.

>>> import nxla as nx
>>> x = nx.tensor([1.0, 2.0, 3.0])
>>> nx.all_close(nx.fft.irfft(nx.fft.rfft(x), n=3), x).item()
True
"""

from nxla import _hints
from nxla._core import (
    fft,
    fft2,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfftn,
    rfft,
    rfftn,
)
from nxla.ops.linalg.fourier import fftfreq, rfftfreq

# The names that are imported above. `make stubs` writes this list.
__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

_hints.install_missing_names(globals())
