"""Checks of the arguments of optimizers: transformations, masks, shapes and states."""

from __future__ import annotations

import functools
from typing import Any

from nxla import _core, tree
from nxla._paths import format_path, leaf_paths
from nxla._sample import Sample
from nxla._values import as_tensor, kind_of, with_article
from nxla.errors import ArgumentError, NxlaError, ShapeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from nxla._paths import LeafPath

    F = TypeVar("F", bound=Callable[..., Any])


def require_transformation(op: str, argument: str, value: object) -> None:
    """Raise an error for an object without the functions of a `GradientTransformation`."""
    if not (hasattr(value, "init") and hasattr(value, "update")):
        kind = kind_of(value)
        raise ArgumentError(f"{op}: {argument}: must be a GradientTransformation; got {kind}")


def require_params(op: str, params: Any) -> None:
    """Raise an error if an update has no parameters."""
    if params is None:
        raise ArgumentError(f"{op}: params: must be passed to update; got None")


def refuse_sample(op: str, container: Any) -> None:
    """Raise an error for the pair that random functions return, whose key is not a parameter."""
    if isinstance(container, Sample):
        _core.as_tensors(op, [container])


def read_mask(op: str, mask: Any, container: Any) -> list[bool]:
    """Return the booleans of a mask for the leaves of a container, matched by path."""
    # Booleans are leaves here and are not converted to tensors.
    mask = mask(container) if callable(mask) else mask
    marks, structure = tree.flatten(mask)
    if structure != tree.flatten(container)[1]:
        marks = _marks_by_path(op, dict(zip(leaf_paths(mask), marks, strict=True)), container)
    for mark in marks:
        if tuple(getattr(mark, "shape", ())):
            raise ArgumentError(f"{op}: mask: must contain booleans; got shape {tuple(mark.shape)}")
    return [bool(mark) for mark in marks]


def _marks_by_path(op: str, marks: dict[LeafPath, Any], container: Any) -> list[Any]:
    """Return the entries of a mask in the order of the leaves of a container."""
    paths = leaf_paths(container)
    known = set(paths)
    missing = [path for path in paths if path not in marks]
    unknown = [path for path in marks if path not in known]
    if missing or unknown:
        absent = f"none for {_describe_paths(missing)}" if missing else ""
        extra = f"one for {_describe_paths(unknown)}" if unknown else ""
        raise ArgumentError(
            f"{op}: mask: must have a boolean for each of {len(paths)} tensors at its path; got "
            f"{' and '.join(filter(None, (absent, extra)))}"
        )
    return [marks[path] for path in paths]


def _describe_paths(paths: Sequence[LeafPath]) -> str:
    """Return the first of several paths, and the number of the others."""
    first = format_path(paths[0]) or "the whole container"
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"


def check_shapes(argument: str, container: Any, partner: str, reference: Any) -> None:
    """Check that each leaf has the shape of its partner, which it would broadcast otherwise.

    Parameters
    ----------
    argument : str
        The operation and the name of `container` for the message.
    partner : str
        The name of a leaf of `reference` for the message.

    Raises
    ------
    ArgumentError
        If the structures differ.
    ShapeError
        If the shapes differ; the message contains the path of the leaf.
    """
    op = argument.partition(":")[0]
    refuse_sample(op, container)
    refuse_sample(op, reference)
    leaves, structure = tree.flatten(container)
    references, expected_structure = tree.flatten(reference)
    if structure != expected_structure:
        raise ArgumentError(
            f"{argument}: must have the structure of the {partner}, {expected_structure}; got "
            f"{structure}"
        )
    for index, (leaf, other) in enumerate(zip(leaves, references, strict=True)):
        shape, expected = tuple(as_tensor(leaf).shape), tuple(as_tensor(other).shape)
        if shape != expected:
            path = format_path(leaf_paths(container)[index])
            raise ShapeError(
                f"{argument}{path}: must have the shape of its {partner}, {expected}; got {shape}"
            )


def check_state(function: str, kind: type[Any], state: Any) -> None:
    """Check that the state of an update has the fields of a class of states.

    A state of optax has the same fields, so the class is not compared.

    Raises
    ------
    ArgumentError
        If the state has other fields.
    """
    if getattr(state, "_fields", None) != kind._fields:
        raise ArgumentError(
            f"{function}: state: must be {with_article(kind.__name__)}, which init returns; got "
            f"{kind_of(state)}"
        )


def rename_errors(renamed: dict[str, str] | None = None) -> Callable[[F], F]:
    """Return a decorator that replaces transformations in errors by the name of the optimizer.

    Parameters
    ----------
    renamed : dict, optional
        The arguments that the optimizer passes to a transformation under another name: from
        ``"transformation: argument"`` to the argument of the optimizer.
    """

    def decorate(optimizer: F) -> F:
        def naming(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                try:
                    return function(*args, **kwargs)
                except NxlaError as error:
                    message = _own_message(optimizer.__name__, str(error), renamed or {})
                    if message is not None:
                        error.args = (message,)
                    raise

            return call

        @functools.wraps(optimizer)
        def make(*args: Any, **kwargs: Any) -> Any:
            made = naming(optimizer)(*args, **kwargs)
            return made._replace(init=naming(made.init), update=naming(made.update))

        return make  # type: ignore[return-value]

    return decorate


def _own_message(optimizer: str, message: str, renamed: dict[str, str]) -> str | None:
    """Return the message of a transformation as one of the optimizer; None for other messages."""
    part, _, rest = message.partition(": ")
    argument, separator, requirement = rest.partition(": ")
    own = renamed.get(f"{part}: {argument}")
    if own is None:
        # A schedule can raise errors of functions of tensors, such as `clip`.
        if not (separator and (part.startswith("scale_by_") or part in _TRANSFORMATIONS)):
            return None
        own = argument
    return f"{optimizer}: {own}: {requirement}"


#: The transformations in optimizers, besides those whose names begin with ``scale_by_``.
_TRANSFORMATIONS = ("add_decayed_weights", "adamw", "chain", "clip_by_block_rms")
