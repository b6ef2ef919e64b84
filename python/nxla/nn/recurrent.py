"""Cells of recurrent networks, in the form that `nxla.scan` calls."""

from __future__ import annotations

from nxla import _core, _hints
from nxla._values import as_list, as_tensor
from nxla.errors import ArgumentError, ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nxla._core import Tensor
    from nxla._types import TensorLike

__all__ = ["gru_cell", "lstm_cell"]


def _units(op: str, h: Tensor) -> int:
    """Return the number of units of a state."""
    if h.ndim == 0:
        raise ShapeError(f"{op}: h: must have an axis of units; got a scalar")
    return h.shape[-1]


def _gates(
    op: str, count: int, x: TensorLike, w: TensorLike, b: TensorLike | None, size: int, name: str
) -> list[Tensor]:
    """Return the products of an input with the weights of all gates."""
    x, w = as_tensor(x), as_tensor(w)
    inputs = x.shape[-1] if x.ndim else 0
    if w.shape != (inputs, count * size):
        raise ShapeError(
            f"{op}: {name}: must have the shape ({inputs}, {count * size}), {count} gates of "
            f"{size} units; got {w.shape}"
        )
    product = _core.matmul(x, w)
    if b is not None:
        product = product + b
    return [_core.slice_along_axis(product, i * size, size, -1) for i in range(count)]


def lstm_cell(
    carry: tuple[TensorLike, TensorLike],
    x: TensorLike,
    /,
    w_x: TensorLike,
    w_h: TensorLike,
    b: TensorLike | None = None,
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Apply a long short-term memory (LSTM) cell.

    Parameters
    ----------
    carry : (tensor_like, tensor_like)
        The hidden state and the memory ``(h, c)``, each of shape ``(..., units)``.
    x : tensor_like
        The input, of shape ``(..., features)``.
    w_x, w_h : tensor_like
        The weights of the input and of the hidden state, of shapes ``(features, 4 * units)`` and
        ``(units, 4 * units)``. The gates are the input, the forget, the cell and the output gate,
        as in PyTorch, whose weights are the transposed matrices.
    b : tensor_like, optional
        The bias, of shape ``(4 * units,)``; PyTorch's is the sum of its two biases.

    Returns
    -------
    carry : (Tensor, Tensor)
        The next ``(h, c)``.
    output : Tensor
        The next hidden state.

    Raises
    ------
    ArgumentError
        If `carry` is not a pair.
    ShapeError
        If the weights have another shape.

    Notes
    -----
    S. Hochreiter and J. Schmidhuber, "Long short-term memory" (1997), with the forget gate of F. A.
    Gers et al., "Learning to forget" (2000).

    Examples
    --------
    >>> import nxla as nx
    >>> w_x, w_h = nx.ones((3, 8)), nx.ones((2, 8))
    >>> start = nx.zeros(2), nx.zeros(2)
    >>> step = lambda carry, x: nx.nn.lstm_cell(carry, x, w_x, w_h)
    >>> (h, c), outputs = nx.scan(step, start, nx.ones((5, 3)))
    >>> outputs.shape
    (5, 2)
    """
    parts = as_list("lstm_cell", "carry", carry)
    if len(parts) != 2:
        raise ArgumentError(f"lstm_cell: carry: must be a pair (h, c); got {len(parts)} entries")
    h, c = map(as_tensor, parts)
    size = _units("lstm_cell", h)
    from_x = _gates("lstm_cell", 4, x, w_x, b, size, "w_x")
    from_h = _gates("lstm_cell", 4, h, w_h, None, size, "w_h")
    i, f, g, o = (left + right for left, right in zip(from_x, from_h, strict=True))
    c = _core.sigmoid(f) * c + _core.sigmoid(i) * _core.tanh(g)
    h = _core.sigmoid(o) * _core.tanh(c)
    return (h, c), h


def gru_cell(
    h: TensorLike,
    x: TensorLike,
    /,
    w_x: TensorLike,
    w_h: TensorLike,
    b_x: TensorLike | None = None,
    b_h: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """Apply a gated recurrent unit.

    Parameters
    ----------
    h : tensor_like
        The hidden state, of shape ``(..., units)``.
    x : tensor_like
        The input, of shape ``(..., features)``.
    w_x, w_h : tensor_like
        The weights of the input and of the hidden state, of shapes ``(features, 3 * units)`` and
        ``(units, 3 * units)``. The gates are the reset, the update and the new gate, as in PyTorch,
        whose weights are the transposed matrices.
    b_x, b_h : tensor_like, optional
        The biases of both products, of shape ``(3 * units,)``.

    Returns
    -------
    carry : Tensor
        The next hidden state.
    output : Tensor
        The same.

    Raises
    ------
    ShapeError
        If the weights have another shape.

    Notes
    -----
    K. Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014); the reset
    gate applies to the product, as in cuDNN.

    Examples
    --------
    >>> import nxla as nx
    >>> w_x, w_h = nx.zeros((3, 6)), nx.zeros((2, 6))
    >>> carry, output = nx.nn.gru_cell(nx.ones(2), nx.ones(3), w_x, w_h)
    >>> output.tolist()
    [0.5, 0.5]
    """
    h = as_tensor(h)
    size = _units("gru_cell", h)
    from_x = _gates("gru_cell", 3, x, w_x, b_x, size, "w_x")
    from_h = _gates("gru_cell", 3, h, w_h, b_h, size, "w_h")
    reset, update = (_core.sigmoid(from_x[k] + from_h[k]) for k in range(2))
    new = _core.tanh(from_x[2] + reset * from_h[2])
    h = (1.0 - update) * new + update * h
    return h, h


_hints.install(globals())
