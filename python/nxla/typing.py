"""Types for annotations of functions that call this package.

>>> import nxla as nx
>>> from nxla.typing import TensorLike
>>> def norm(x: TensorLike) -> nx.Tensor:
...     return nx.sqrt(nx.sum(nx.square(x)))
"""

from nxla._types import (
    Axes,
    Axis,
    DeviceLike,
    DTypeLike,
    Names,
    Padding,
    PerAxis,
    Shape,
    TensorLike,
)

__all__ = [
    "Axes",
    "Axis",
    "DTypeLike",
    "DeviceLike",
    "Names",
    "Padding",
    "PerAxis",
    "Shape",
    "TensorLike",
]
