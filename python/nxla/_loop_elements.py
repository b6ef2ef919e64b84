"""The elements over which loops run: integers of a range, and rows of tensors."""

from __future__ import annotations

from nxla import _core, tree
from nxla._values import as_count, as_tensor
from nxla.errors import ArgumentError
from nxla.ops.create import zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nxla._core import Tensor
    from nxla._types import TensorLike


def loop_elements(generator: Any) -> tuple[int, Callable[[Any], Any]]:
    """Return the number of elements of a generator, and a function from an index to an element."""
    if isinstance(generator, range):
        start, step = generator.start, generator.step
        bounds = [as_tensor(bound) for bound in (start, step, generator.stop)]

        def number(index: Any) -> Any:
            if isinstance(index, int):
                return start + step * index
            index = index.astype(_core.result_type(index, *bounds))
            return _core.add(_core.multiply(index, step) if step != 1 else index, start)

        return len(generator), number
    leaves, structure = tree.flatten(generator)
    if not leaves or not all(isinstance(x, _core.Tensor | _core.Expr) for x in leaves):
        raise ArgumentError(
            "for_each: generator: must be a range, a tensor or a container of tensors; got "
            f"{generator!r}"
        )
    shapes = [x.shape for x in leaves]
    if not all(shapes) or len({shape[0] for shape in shapes}) > 1:
        raise ArgumentError(
            "for_each: generator: tensors must have first axes of equal sizes; got shapes "
            + ", ".join(str(shape) for shape in shapes)
        )
    if shapes[0][0] == 0:
        # The body is traced with these elements, although it never runs.
        zeros = [zero_row(x) for x in leaves]
        return 0, lambda _: structure.unflatten(zeros)
    return shapes[0][0], lambda index: structure.unflatten([row_at(x, index) for x in leaves])


def first_index(count: int) -> Tensor:
    """Return the index 0 in a dtype that can represent `count`."""
    return _core.full((), 0, as_tensor(count).dtype)


def row_at(x: Any, place: Any) -> Any:
    """Return one row of a tensor; a computed index does not count from the end."""
    if isinstance(place, int):
        return x[place]
    starts = [place] + [0] * (x.ndim - 1)
    return _core.squeeze(_core.slice(x, starts, (1, *x.shape[1:])), axis=0)


def zero_row(x: Tensor) -> Tensor:
    """Return zeros with the type of a row of a tensor without rows."""
    return zeros_like(_core.sum(x, 0), dtype=x.dtype)


def no_rows(y: TensorLike) -> Tensor:
    """Return a tensor whose rows would have the type of `y`."""
    rows = _core.expand_dims(zeros_like(as_tensor(y)), 0)
    return _core.slice(rows, [0] * rows.ndim, (0, *rows.shape[1:]))


def count_steps(function: str, leaves: list[Tensor], length: int | None) -> int:
    """Return the number of steps of a scan over the first axis of tensors."""
    if length is not None:
        length = as_count("scan", "length", length)
    sizes = {x.shape[0] if x.ndim else None for x in leaves} | ({length} - {None})
    if not sizes:
        raise ArgumentError("scan: length: is required without xs")
    if len(sizes) > 1 or None in sizes:
        shapes = ", ".join(str(x.shape) for x in leaves)
        given = "" if length is None else f" and length {length}"
        raise ArgumentError(
            f"{function}: xs: must have first axes of equal sizes; got shapes {shapes}{given}"
        )
    (size,) = sizes
    assert size is not None
    return size


def put_row(index: int, rows: Tensor, y: TensorLike) -> Tensor:
    """Return the rows with one of them replaced."""
    return _core.put_slice(rows, [index, *[0] * (rows.ndim - 1)], _core.expand_dims(y))
