"""Factorizations of matrices in the last two axes."""

from __future__ import annotations

from typing import NamedTuple

from nxla import _core, _hints
from nxla._values import as_tensor, call_as, widen
from nxla.errors import ArgumentError, ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from nxla._core import Tensor
    from nxla._types import TensorLike


class LUResult(NamedTuple):
    """The result of `lu`: ``p @ l @ u`` is the matrix."""

    p: Tensor
    l: Tensor  # noqa: E741
    u: Tensor


class QRResult(NamedTuple):
    """The result of `qr`: ``Q @ R`` is the matrix."""

    Q: Tensor
    R: Tensor


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVDResult(NamedTuple):
    """The result of `svd`: ``U * S @ Vh`` is the matrix, with a column of ``U`` for each value."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def lu(x: TensorLike, /) -> LUResult:
    """Factor square matrices into a permutation and two triangles.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes.

    Returns
    -------
    LUResult
        ``p`` exchanges rows, ``l`` is lower triangular with ones on the diagonal, ``u`` is upper
        triangular, and ``p @ l @ u == x``.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> p, l, u = nx.linalg.lu([[1.0, 4.0], [2.0, 6.0]])
    >>> p.tolist(), l.tolist(), u.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]], [[2.0, 6.0], [0.0, 1.0]])
    """
    return LUResult(*_core.lu_parts(x))


def qr(x: TensorLike, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Factor matrices into orthonormal columns and an upper triangle.

    Parameters
    ----------
    x : tensor_like
        Matrices in the last two axes.
    mode : {"reduced", "complete"}
        ``"reduced"`` returns a ``Q`` with as many columns as the smaller side; ``"complete"`` a
        square ``Q``.

    Returns
    -------
    QRResult
        The diagonal of ``R`` is real and not negative.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.
    ArgumentError
        If the mode does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> q, r = nx.linalg.qr([[3.0, 1.0], [4.0, 3.0]])
    >>> nx.all_close(q @ r, [[3.0, 1.0], [4.0, 3.0]]).item(), round(r[0, 0].item(), 5)
    (True, 5.0)
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f'qr: mode: must be "reduced" or "complete"; got {mode!r}')
    return QRResult(*_core.qr_parts(x, mode == "complete"))


def eigh(x: TensorLike, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of symmetric (Hermitian) matrices.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes; only the lower triangle is read.

    Returns
    -------
    EighResult
        ``eigenvalues`` increase; ``eigenvectors`` has one in each column, in the same order.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> values, vectors = nx.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
    >>> nx.all_close(values, [1.0, 3.0]).item()
    True
    """
    return EighResult(*_core.eigh_parts(x))


def svd(x: TensorLike, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular values of matrices, with the vectors that belong to them.

    Parameters
    ----------
    x : tensor_like
        Matrices in the last two axes.
    full_matrices : bool
        If True, ``U`` and ``Vh`` are square, rather than having a column or row for each value.

    Returns
    -------
    SVDResult
        ``S`` holds the singular values, which decrease. Columns of ``U`` and rows of ``Vh`` are
        orthonormal.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> u, s, vh = nx.linalg.svd([[0.0, 2.0], [1.0, 0.0]])
    >>> s.tolist(), nx.all_close(u * s @ vh, [[0.0, 2.0], [1.0, 0.0]]).item()
    ([2.0, 1.0], True)
    """
    return SVDResult(*_core.svd_parts(x, full_matrices))


def eig(x: TensorLike, /) -> EigResult:
    """Return the eigenvalues and eigenvectors of matrices without symmetry.

    They are computed on the host, by the same function for all compilers; a traced function calls
    it when it runs. `eigh` is for Hermitian matrices.

    Derivatives up to the fourth are defined, by the formulas for simple eigenvalues; the fifth is
    NaN. Terms between two equal eigenvalues are omitted. The phases of the vectors are not
    determined, and derivatives are correct for functions that do not depend on the phases.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes.

    Returns
    -------
    EigResult
        Complex numbers: the eigenvalues, in no particular order, and the eigenvectors in columns,
        of length 1. NaN for a matrix with NaN or infinities.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> values, vectors = nx.linalg.eig([[2.0, 1.0], [0.0, 3.0]])
    >>> nx.sort(nx.real(values)).tolist()
    [2.0, 3.0]
    """
    x = as_tensor(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"eig: x: must be a (batch of) square matrices; got shape {x.shape}")
    if axes := x.vectorized_axes:
        values, vectors = eig(_core.devectorize(x, False))
        return EigResult(
            _core.revectorize(values, axes, x.shape[:-1], None),
            _core.revectorize(vectors, axes, x.shape, None),
        )
    wide = _core.result_type(x, _core.c64)
    if isinstance(x, _core.Tensor) and not _core.is_tracing():
        values, vectors = (_core.astype(part, wide) for part in _core.eigen_of_data(x))
        return EigResult(values.to_device(x.device), vectors.to_device(x.device))
    from nxla.ops.control import call_host

    types = _core.Template(x.shape[:-1], wide), _core.Template(x.shape, wide)
    # Integers have no tangents; `float64` holds them without a change of the eigenvalues.
    x = widen(x)

    def on_data(data: Tensor) -> tuple[Tensor, ...]:
        return tuple(_core.astype(part, wide) for part in _core.eigen_of_data(data))

    parts = call_host("nx.linalg.eig", on_data, types, (x,))
    return EigResult(*_with_derivatives(x, parts))


def _with_derivatives(x: Tensor, parts: tuple[Tensor, Tensor]) -> list[Tensor]:
    """Attach derivatives to eigenvalues and eigenvectors from a host function.

    The derivative formulas use the eigenvalues and eigenvectors with one derivative less.
    """

    def unknown(changes: list[Tensor]) -> list[Tensor]:
        nothing = _core.multiply(_core.sum(changes[0]), float("nan"))
        return [_core.astype(_core.add(part, nothing), part.dtype) for part in parts]

    found = _core.custom_jvp(list(parts), [x], unknown)
    for _ in range(4):

        def moved(changes: list[Tensor], found: list[Tensor] = found) -> list[Tensor]:
            return _eigen_changes(found[0], found[1], changes[0])

        found = _core.custom_jvp(list(parts), [x], moved)
    return found


def _eigen_changes(values: Tensor, vectors: Tensor, change: Tensor) -> list[Tensor]:
    """Return how eigenvalues and eigenvectors change with the matrix.

    With ``p = v^-1 da v`` the values change by the diagonal of ``p``, and the vectors by ``v c``,
    where ``c_ij = p_ij / (w_j - w_i)``, minus the component along each vector, so that its length
    and phase do not change: M. Giles, "An extended collection of matrix derivative results for
    forward and reverse mode automatic differentiation" (2008).
    """
    change = _core.astype(change, vectors.dtype)
    p = _core.solve_batch(vectors, _core.matmul(change, vectors))
    columns, rows = _core.expand_dims(values, -2), _core.expand_dims(values, -1)
    apart = _core.subtract(columns, rows)
    is_same = _core.equal(apart, 0)
    turn = _core.divide(p, _core.where(is_same, 1, apart))
    turned = _core.matmul(vectors, _core.where(is_same, 0, turn))
    along = _core.sum(_core.multiply(_core.conj(vectors), turned), axis=-2, keepdims=True)
    return [_core.diagonal(p), _core.subtract(turned, _core.multiply(vectors, along))]


def eigvals(x: TensorLike, /) -> Tensor:
    """Return the eigenvalues of matrices without symmetry; see `eig`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sort(nx.imag(nx.linalg.eigvals([[0.0, -1.0], [1.0, 0.0]]))).tolist()
    [-1.0, 1.0]
    """
    return call_as("eigvals", eig, x).eigenvalues


_hints.install(globals())
