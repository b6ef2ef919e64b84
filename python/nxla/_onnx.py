"""ONNX models as functions; `nxla.from_onnx` reads one."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping

from nxla import _core, _hints
from nxla._files import path_of
from nxla._import import check_weights
from nxla.errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from nxla._core import Function, Tensor

__all__ = ["OnnxFunction", "from_onnx"]


def from_onnx(
    source: str | os.PathLike[str] | bytes,
    /,
    *,
    weights: Literal["constants", "arguments"] = "constants",
) -> OnnxFunction:
    """Return an ONNX model as a function on tensors.

    The function is traced like any other: it runs on every compiler, and it can be printed,
    differentiated, vectorized and split. Sizes that the model leaves open are taken from the
    arguments.

    Parameters
    ----------
    source : path or bytes
        A file, or its contents. A model with weights in other files of its folder needs a path.
    weights : {"constants", "arguments"}, optional
        ``"arguments"`` makes the weights the first argument of the function, a dictionary like
        `OnnxFunction.weights`, so that gradients with respect to the weights can be computed.

    Returns
    -------
    OnnxFunction
        A function with the inputs of the model as arguments, by position or by name. It returns a
        tensor, or an ordered dictionary of the outputs by name if there are several.

    Raises
    ------
    FormatError
        If the file is damaged.
    ArgumentError
        If the model contains operators that cannot be imported; the message lists all of them.
    OSError
        If the file does not exist.

    Notes
    -----
    Operator sets 7 to 28 of the default domain and common operators of ``com.microsoft`` are
    supported, except operators on strings and random numbers. A value that determines a shape,
    or the length of a sequence, must not depend on data. Dropout does nothing, as in inference.

    Examples
    --------
    >>> import nxla as nx
    >>> model = nx.from_onnx("model.onnx")  # doctest: +SKIP
    >>> model(nx.ones((1, 3)))  # doctest: +SKIP
    """
    check_weights("from_onnx", weights)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return OnnxFunction(_core.OnnxModel.read(bytes(source)), weights == "arguments")
    path = path_of("from_onnx", source)
    if not os.path.exists(path):
        raise FileNotFoundError(f"from_onnx: no such file: {path!r}")
    return OnnxFunction(_core.OnnxModel.load(path), weights == "arguments")


class OnnxFunction:
    """An ONNX model that is called like a function; returned by `nxla.from_onnx`."""

    def __init__(self, model: _core.OnnxModel, takes_weights: bool) -> None:
        from nxla.transform import jit

        self._model = model
        self._takes_weights = takes_weights
        #: The initializers that are inputs of the program: weights, and packed integers.
        self._initializers: dict[str, Tensor] = dict(model.weights())
        self._weights = {
            name: value for name, value in self._initializers.items() if value.dtype.kind == "float"
        }
        self._inputs = model.inputs
        self._outputs = [name for name, _, _ in model.outputs]
        self.__name__ = model.name or "model"
        self._jitted: Function[..., Any] = jit(self._apply)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The weights of the file by name: the initializers of floats.

        Scalars, initializers that determine shapes, and running statistics of batch normalizations
        in inference are constants.
        """
        return dict(self._weights)

    @property
    def inputs(self) -> list[tuple[str, str]]:
        """Name and type of each input; an axis of any size has a name or ``?``."""
        return [(name, _type(dtype, shape)) for name, dtype, shape in self._inputs]

    @property
    def outputs(self) -> list[tuple[str, str]]:
        """Name and type of each output."""
        return [(name, _type(dtype, shape)) for name, dtype, shape in self._model.outputs]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the model to tensors and arrays.

        Python numbers and lists take the dtype of the input or weight, unless their kind does not
        fit: a float is not an integer, and a number is not a boolean.

        Raises
        ------
        ArgumentError
            If an input or weight is missing or unknown, or a node has no counterpart for these
            inputs.
        ShapeError
            If an input or weight does not have the declared shape.
        DTypeError
            If an input or weight does not have the declared dtype.
        FormatError
            If a node cannot be built for the inputs.
        """
        initializers: dict[str, Any] = dict(self._initializers)
        if self._takes_weights:
            if not args:
                raise ArgumentError(f"{self.__name__}: weights: must be the first argument")
            initializers.update(self._check_weights(args[0]))
            args = args[1:]
        inputs = self._bind(args, kwargs)
        results = self._jitted(list(initializers.values()), inputs)
        if len(results) == 1:
            return results[0]
        # `nx.jit` sorts the keys of a plain dictionary.
        return OrderedDict(zip(self._outputs, results, strict=True))

    def _check_weights(self, weights: Any) -> dict[str, Any]:
        if not isinstance(weights, Mapping):
            raise ArgumentError(
                f"{self.__name__}: weights: must be a mapping with the names of .weights; got "
                f"{type(weights).__name__}"
            )
        unknown = sorted(set(weights) ^ set(self._weights), key=str)
        if unknown:
            raise ArgumentError(
                f"{self.__name__}: weights: must have exactly the names of .weights; missing or "
                f"unknown: {unknown}"
            )
        return {name: _convert(weights[name], own.dtype) for name, own in self._weights.items()}

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        names = [name for name, _, _ in self._inputs]
        if len(args) > len(names):
            raise ArgumentError(
                f"{self.__name__}: inputs: must be at most {len(names)}; got {len(args)}"
            )
        bound = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names or name in bound:
                why = "is passed twice" if name in bound else f"must be one of {names}"
                raise ArgumentError(f"{self.__name__}: input {name!r}: {why}")
            bound[name] = value
        missing = [name for name in names if name not in bound]
        if missing:
            raise ArgumentError(
                f"{self.__name__}: inputs: must contain every input of the model; missing: "
                f"{missing}"
            )
        return [_convert(bound[name], dtype) for name, dtype, _ in self._inputs]

    def _apply(self, weights: list[Any], inputs: list[Any]) -> list[Any]:
        return self._model.apply(weights, inputs)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {kind}" for name, kind in self.inputs)
        return f"<ONNX function {self.__name__}({inputs})>"


def _convert(value: Any, dtype: Any) -> Any:
    """Convert Python numbers and lists to the declared dtype; arrays keep their dtype.

    Values that the dtype would truncate, such as 2.7 for an integer, keep their own dtype, so that
    the model rejects them.
    """
    if not isinstance(value, (bool, int, float, complex, list, tuple)):
        return value
    if dtype.kind in ("pred", "signed", "unsigned"):
        own = _core.tensor(value)
        kinds = ("pred",) if dtype.kind == "pred" else ("pred", "signed", "unsigned")
        if own.size and own.dtype.kind not in kinds:
            return own
    return _core.tensor(value, dtype=dtype)


def _type(dtype: Any, shape: list[str | None] | None) -> str:
    if shape is None:
        return f"{dtype} of any shape"
    return f"{dtype}[{', '.join(size if size is not None else '?' for size in shape)}]"


_hints.install(globals())
