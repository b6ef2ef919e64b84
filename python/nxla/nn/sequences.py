"""Losses of sequences without alignment."""

from __future__ import annotations

import math

from nxla import _core, _hints
from nxla._signatures import run_traced
from nxla._values import as_tensor, to_index
from nxla.errors import ArgumentError, ShapeError
from nxla.ops.loops import scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import TensorLike

__all__ = ["ctc_loss"]

#: The logarithm of a probability of zero; finite, so that differences of two of them are not NaN.
_NEVER = -1e30


def ctc_loss(
    logits: TensorLike,
    logit_paddings: TensorLike,
    labels: TensorLike,
    label_paddings: TensorLike,
    /,
    blank_id: int = 0,
) -> Tensor:
    """Return the loss of connectionist temporal classification for each sequence.

    Parameters
    ----------
    logits : tensor_like
        Unnormalized logarithms of probabilities, of shape ``(batch, time, classes)``.
    logit_paddings : tensor_like
        1 where a time step is padding and 0 elsewhere, of shape ``(batch, time)``.
    labels : tensor_like
        Integer labels, of shape ``(batch, length)``.
    label_paddings : tensor_like
        1 where a label is padding and 0 elsewhere, of shape ``(batch, length)``. Padding is at the
        end.
    blank_id : int
        The class of the blank; negative numbers count from the end.

    Returns
    -------
    Tensor
        The negative logarithm of the probability of the labels, of shape ``(batch,)``. It is
        infinite without a gradient if the sequence is too short for its labels.

    Raises
    ------
    ShapeError
        If the shapes do not match.
    ArgumentError
        If `blank_id` is not a class.

    Notes
    -----
    A. Graves et al., "Connectionist temporal classification" (2006): the forward recursion over the
    labels with blanks around them. Arguments are those of optax.

    Examples
    --------
    >>> import nxla as nx
    >>> logits = nx.zeros((1, 2, 3))
    >>> loss = nx.nn.ctc_loss(logits, nx.zeros((1, 2)), [[1]], nx.zeros((1, 1)))
    >>> round(nx.exp(-loss[0]).item(), 4)  # three of nine alignments: 11, 1-, -1
    0.3333
    """
    operands = [as_tensor(x) for x in (logits, logit_paddings, labels, label_paddings)]
    x, x_pads, y, y_pads = operands
    if x.ndim != 3 or y.ndim != 2 or x_pads.shape != x.shape[:2] or y_pads.shape != y.shape:
        shapes = ", ".join(str(operand.shape) for operand in operands)
        raise ShapeError(
            "ctc_loss: operands: must have the shapes (batch, time, classes), (batch, time), "
            f"(batch, length), (batch, length); got {shapes}"
        )
    if x.shape[0] != y.shape[0]:
        raise ShapeError(
            f"ctc_loss: labels: must be {x.shape[0]} sequences, as logits; got {y.shape[0]}"
        )

    classes, blank = x.shape[2], to_index(blank_id)
    if blank is None or not -classes <= blank < classes:
        raise ArgumentError(
            f"ctc_loss: blank_id: must be from {-classes} to {classes - 1} for {classes} classes; "
            f"got {blank_id!r}"
        )
    return run_traced(_rounded_loss, "ctc_loss", *operands, blank % classes, key="ctc_loss")


def _rounded_loss(
    x: Tensor, x_pads: Tensor, y: Tensor, y_pads: Tensor, blank_id: TensorLike
) -> Tensor:
    """Return the loss in the dtype of the logits, computed in at least 32 bits."""
    dtype = x.dtype if x.dtype.kind == "float" else _core.f32
    wide = _core.astype(x, dtype if dtype.bits >= 32 else _core.f32)
    return _core.astype(_ctc(wide, x_pads, y, y_pads, blank_id), dtype)


def _ctc(x: Tensor, x_pads: Tensor, y: Tensor, y_pads: Tensor, blank_id: TensorLike) -> Tensor:
    batch, length = y.shape
    log_p = _core.log_softmax(x, -1)
    # Blanks before, between and after the labels.
    blank = _core.broadcast_to(_core.astype(blank_id, y.dtype), (batch, 1))
    blanks = _core.broadcast_to(blank, y.shape)
    pairs = _core.reshape(_core.stack([blanks, y], -1), (batch, 2 * length))
    states = _core.concat([pairs, blank], 1)
    size = 2 * length + 1
    # A label may follow the previous label directly if the two differ.
    skips = _core.not_equal(states, blank_id)
    if size > 2:
        same = _core.equal(states[:, 2:], states[:, :-2])
        skips = skips & _core.pad(~same, False, [(0, 0, 0), (2, 0, 0)])
    count = _core.sum(_core.astype(_core.equal(y_pads, 0), "s32"), 1)
    # The first step without padding stays in the first blank or moves to the first label.
    start = _core.where(_core.equal(_core.iota((1, size), 1), 0), 0.0, _NEVER)
    index = _core.broadcast_to(states, (batch, size))

    def emitted(log_p: Tensor) -> Tensor:
        return _core.take_along_axis(log_p, index, -1)

    def step(alpha: Tensor, inputs: Any) -> tuple[Tensor, None]:
        log_p, pads = inputs
        one = _shift(alpha, 1)
        two = _core.where(skips, _shift(alpha, 2), _NEVER)
        moved = _core.logsumexp(_core.stack([alpha, one, two], 0), 0)
        following = _core.maximum(moved + emitted(log_p), _NEVER)
        return _core.where(_core.expand_dims(_core.equal(pads, 0), 1), following, alpha), None

    inputs = (_core.swapaxes(log_p, 0, 1), _core.swapaxes(x_pads, 0, 1))
    alpha = _core.broadcast_to(_core.astype(start, log_p.dtype), (batch, size))
    alpha, _ = scan(step, alpha, inputs)
    ends = _core.expand_dims(2 * count, 1)
    last = _core.take_along_axis(alpha, ends, 1)
    before = _core.take_along_axis(alpha, _core.maximum(ends - 1, 0), 1)
    before = _core.where(ends > 0, before, _NEVER)
    total = _core.squeeze(_core.logsumexp(_core.concat([last, before], 1), 1, keepdims=True), 1)
    return _core.where(total <= 0.5 * _NEVER, math.inf, _core.negative(total))


def _shift(alpha: Tensor, by: int) -> Tensor:
    """Return the states moved to later labels."""
    size = alpha.shape[1]
    if by >= size:
        return _core.multiply(alpha, 0.0) + _NEVER
    return _core.pad(alpha[:, : size - by], _NEVER, [(0, 0, 0), (by, 0, 0)])


_hints.install(globals())
