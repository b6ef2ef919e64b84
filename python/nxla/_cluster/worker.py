"""Execution of one stage on a worker, in any process."""

from __future__ import annotations

from nxla import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nxla._core import Stage, Tensor

__all__ = [
    "Parcel",
    "add_stage_note",
    "check_version",
    "pickle_tensor",
    "run_stage",
    "unpickle_tensor",
]


def pickle_tensor(tensor: Tensor, protocol: int = 5) -> tuple[Any, ...]:
    """Return the arguments of `tensor_from_bytes` for a tensor; its memory comes first."""
    parts: tuple[Any, ...] = tensor.__reduce_ex__(protocol)[1]
    return parts


def unpickle_tensor(data: Any, about: tuple[Any, ...]) -> Tensor:
    """Return a tensor over immutable memory, from the result of `pickle_tensor`."""
    dtype, shape, names, vectorized = about
    return _core.tensor_from_bytes(data, dtype, shape, names, vectorized, owned=True)


class Parcel:
    """A tensor in the form of workers, whose pickle refers to its memory without a copy.

    Unpickling allocates memory that no other code writes to, so the tensor shares it. Unpickling
    a plain tensor copies instead.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.tensor.__sizeof__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpack, pickle_tensor(self.tensor, protocol)


def _unpack(data: Any, *about: Any) -> Parcel:
    return Parcel(unpickle_tensor(data, about))


def check_version(version: str, worker: str) -> None:
    """Raise an error on a worker unless it has the version of nxla of the caller."""
    if version != _core.__version__:
        raise _core.ExecutionError(
            f"{worker}: must have nxla {version}, like the caller; got {_core.__version__}"
        )


def run_stage(
    stage: Stage, tensors: Sequence[Tensor], options: dict[str, Any], label: str
) -> list[Tensor]:
    """Run one stage; an error names the stage and its source lines."""
    try:
        return stage.run(*tensors, **options)
    except Exception as error:
        add_stage_note(error, stage, label)
        raise


def add_stage_note(error: BaseException, stage: Stage, label: str) -> None:
    """Add a note that names the stage and its source lines to an error."""
    error.add_note(f"while running {label}{stage._from_lines}")
