"""Operands as tensors."""

from __future__ import annotations

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from nxla._core import Tensor
    from nxla._types import TensorLike

    T = TypeVar("T")


def as_tensor(value: TensorLike) -> Tensor:
    """Return a tensor or a traced value as it is, and anything else as a tensor.

    To type checkers a traced value is a `Tensor`: functions are written for tensors, and whether
    one is being traced is nothing that its types could tell.
    """
    if isinstance(value, _core.Tensor):
        return value
    if isinstance(value, _core.Expr):
        traced: Tensor = value  # type: ignore[assignment]
        return traced
    return _core.tensor(value)


def by_value(value: T) -> T:
    """Return a container that keeps what is in it now, for whoever uses it later.

    Arrays become tensors. Containers are made anew.
    """
    if isinstance(value, _core.Tensor):
        return value
    leaves, tree = _core.tree_flatten(value)
    kept: T = tree.unflatten([_kept(leaf) for leaf in leaves])
    return kept


def _kept(leaf: object) -> object:
    known = (_core.Tensor, _core.Expr, _core.Template, bool, int, float, complex)
    return leaf if isinstance(leaf, known) else _core.tensor(leaf)
