"""Parts of complex numbers."""

from __future__ import annotations

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike


def complex(real: TensorLike, imag: TensorLike, /) -> Tensor:
    """Make complex numbers of their parts.

    Parameters
    ----------
    real, imag : tensor_like
        Real numbers; their shapes broadcast.

    Returns
    -------
    Tensor
        ``complex128`` if a part is ``float64``, else ``complex64``.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If a part is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.complex([1.0, 2.0], -1.0).tolist()
    [(1-1j), (2-1j)]
    """
    return _core.complex(real, imag)


def real(x: TensorLike, /) -> Tensor:
    """Return the real part of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.real([1 + 2j, 3 - 4j]).tolist()
    [1.0, 3.0]
    """
    return _core.real(x)


def imag(x: TensorLike, /) -> Tensor:
    """Return the imaginary part of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.imag([1 + 2j, 3 - 4j]).tolist()
    [2.0, -4.0]
    """
    return _core.imag(x)


def conj(x: TensorLike, /) -> Tensor:
    """Return each element with the sign of its imaginary part turned over.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.conj([1 + 2j]).tolist()
    [(1-2j)]
    """
    return _core.conjugate(x)


def phase(x: TensorLike, /) -> Tensor:
    """Return the angle in radians of each complex element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.phase([1j, -1 + 0j]).tolist()
    [1.5707963705062866, 3.1415927410125732]
    """
    return _core.phase(x)
