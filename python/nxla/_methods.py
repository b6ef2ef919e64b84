"""Methods and attributes of tensors and traced values, which call functions of the package.

Both classes get the methods in this list; the stub of the compiled module contains their types. The
names equal those of NumPy's and JAX's arrays.
"""

from __future__ import annotations

import math
from types import MethodType

import nxla as nx
from nxla import _core, _hints, _numpy_methods
from nxla._values import call_as, is_inexact, user_line
from nxla.errors import ArgumentError, DTypeError, ShapeError, TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any, Literal

    from nxla._core import Tensor
    from nxla._types import Axes, TensorLike


class Place:
    """The elements of a tensor that ``x.at[key]`` selects.

    Its methods return a new tensor and do not change `x`. Values broadcast and are converted to the
    dtype of `x`. If a key selects an element several times, all updates apply, except for `set`
    and `apply`, which apply one of them.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.tensor([1, 2, 3])
    >>> x.at[1].set(9).tolist(), x.at[[0, 0]].add(5).tolist(), x.at[1:].multiply(10).tolist()
    ([1, 9, 3], [11, 2, 3], [1, 20, 30])
    """

    def __init__(self, x: Tensor, key: Any) -> None:
        self._x, self._key = x, key

    def get(self) -> Tensor:
        """Return the elements: ``x[key]``."""
        return self._x[self._key]

    def set(self, value: TensorLike, /) -> Tensor:
        """Return the tensor with the selected elements replaced."""
        return _core.subscript_update(self._x, self._key, value, "set")

    def add(self, value: TensorLike, /) -> Tensor:
        """Return the tensor with values added to the selected elements."""
        return _core.subscript_update(self._x, self._key, value, "add")

    def multiply(self, value: TensorLike, /) -> Tensor:
        """Return the tensor with the selected elements multiplied by values."""
        return _core.subscript_update(self._x, self._key, value, "multiply")

    mul = multiply

    def subtract(self, value: TensorLike, /) -> Tensor:
        """Return the tensor with values subtracted from the selected elements."""
        return _core.subscript_update(self._x, self._key, value, "subtract")

    def divide(self, value: TensorLike, /) -> Tensor:
        """Return the tensor with the selected elements divided; they must not be integers."""
        if not is_inexact(self._x.dtype):
            raise DTypeError(
                f"at: x: must have a float dtype for division; got {self._x.dtype}; convert it, "
                'as in nx.astype(x, "f32"), or use x.at[key].apply(lambda part: part // value)'
            )
        return self._where_selected(self._x / self._product(value))

    def power(self, value: TensorLike, /) -> Tensor:
        """Return the tensor with the selected elements raised to a power."""
        return self._where_selected(_core.pow(self._x, self._product(value)))

    def _where_selected(self, changed: Tensor) -> Tensor:
        """Return the tensor with the selected elements of another tensor.

        Division and powers by one change complex infinities.
        """
        selected = Place(nx.zeros_like(self._x, dtype="pred"), self._key).set(True)
        return _core.where(selected, changed, self._x)

    def _product(self, value: TensorLike) -> Tensor:
        """Return ones, with the product of the values at each element of the key."""
        return Place(nx.ones_like(self._x), self._key).multiply(value)

    def apply(self, function: Callable[[Tensor], TensorLike], /) -> Tensor:
        """Return the tensor with the selected elements replaced by the results of a function."""
        return self.set(function(self.get()))

    def min(self, value: TensorLike, /) -> Tensor:
        """Return the tensor with the minimum of the selected elements and values."""
        return _core.subscript_update(self._x, self._key, value, "min")

    def max(self, value: TensorLike, /) -> Tensor:
        """Return the tensor with the maximum of the selected elements and values."""
        return _core.subscript_update(self._x, self._key, value, "max")


class At:
    """The result of ``x.at``: ``x.at[key]`` selects elements for an update, see `Place`."""

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Place:
        return Place(self._x, key)


def reshape(x: Tensor, /, *shape: Any, order: Literal["C"] = "C") -> Tensor:
    """Return the elements in another shape, given as one sequence or as sizes: see `nxla.reshape`.

    The `order` of elements must be row-major order.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.arange(6).reshape(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if order != "C":
        raise ArgumentError(
            f"reshape: order: must be 'C'; got {order!r}; use x.T.reshape(…).T for 'F'"
        )
    return _core.reshape(x, shape[0] if len(shape) == 1 else shape)


def transpose(x: Tensor, /, *axes: Any) -> Tensor:
    """Return the tensor with its axes in another order, reversed by default.

    The axes are one sequence, or as many arguments: see `nxla.permute_dims`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.zeros((2, 3, 4)).transpose(0, 2, 1).shape
    (2, 4, 3)
    """
    if len(axes) == 2 != x.ndim:
        raise ShapeError(
            f"transpose: axes: must contain each of the {x.ndim} axes once; got {axes}; "
            "nx.swapaxes exchanges two axes"
        )
    order: Axes | None = axes[0] if len(axes) == 1 else axes or None
    return _core.permute_dims(x, order)


def swapaxes(x: Tensor, axis1: int, axis2: int, /) -> Tensor:
    """Return the tensor with two axes exchanged.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.zeros((2, 3, 4)).swapaxes(0, -1).shape
    (4, 3, 2)
    """
    return _core.swapaxes(x, axis1, axis2)


def copy(x: Tensor, /) -> Tensor:
    """Return a copy of the tensor in new memory.

    Assigning to elements of one tensor leaves the other unchanged, and so does `Tensor.deallocate`:
    a copy of a device tensor is a new buffer on the same device.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.tensor([1, 2])
    >>> y = x.copy()
    >>> y[0] = 5
    >>> x.tolist(), y.tolist()
    ([1, 2], [5, 2])
    """
    return x.to_device(x.device, copy=True) if isinstance(x, _core.Tensor) else +x


def deep_copy(x: Tensor, memo: dict[int, Any], /) -> Tensor:  # noqa: ARG001
    """Return a copy on the same device, for `copy.deepcopy`."""
    return copy(x)


def namespace(x: Tensor, /, *, api_version: str | None = None) -> ModuleType:  # noqa: ARG001
    """Return the package, which has the functions of the Array API standard.

    Parameters
    ----------
    api_version : str, optional
        The revision of the standard; the supported revision includes the earlier ones.

    Raises
    ------
    ArgumentError
        If the revision does not exist, or is later than the supported one.
    """
    from nxla import _info

    if api_version is not None and api_version not in _info.VERSIONS:
        raise ArgumentError(
            f"__array_namespace__: api_version: must be one of {', '.join(_info.VERSIONS)}; "
            f"got {api_version!r}"
        )
    return nx


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero: see `nxla.nonzero`.

    Examples
    --------
    >>> import nxla as nx
    >>> [index.tolist() for index in nx.tensor([0, 3, 5]).nonzero()]
    [[1, 2]]
    """
    return nx.nonzero(x)


def quotient_and_rest(x: Tensor, value: TensorLike, /) -> tuple[Tensor, Tensor]:
    """Return ``x // value`` and ``x % value``, as `divmod` does."""
    found: tuple[Tensor, Tensor] = _divmod(x.__floordiv__, x.__mod__, value)
    return found


def quotient_and_rest_of(x: Tensor, value: TensorLike, /) -> tuple[Tensor, Tensor]:
    """Return ``value // x`` and ``value % x``, as `divmod` does."""
    found: tuple[Tensor, Tensor] = _divmod(x.__rfloordiv__, x.__rmod__, value)
    return found


def _divmod(divide: Callable[[Any], Any], remainder: Callable[[Any], Any], value: Any) -> Any:
    """Return both results, or NotImplemented for a value that is not an operand of tensors."""

    def floor_divide(value: Any) -> Any:  # Errors begin with the name of this function.
        return divide(value)

    quotient = call_as("divmod", floor_divide, value)
    return NotImplemented if quotient is NotImplemented else (quotient, remainder(value))


def from_the_last(x: Tensor, /) -> Iterator[Tensor]:
    """Return the entries of the first axis, beginning with the last: ``reversed(x)``."""
    return reversed(list(x))


def whole_part(x: Tensor, /) -> int:
    """Return the only element without its fractional part: ``math.trunc(x)``."""
    return int(x)


def floor_of(x: Tensor, /) -> int:
    """Return the only element rounded down: ``math.floor(x)``."""
    return int(x) if _has_integer_dtype(x) else math.floor(float(x))


def ceil_of(x: Tensor, /) -> int:
    """Return the only element rounded up: ``math.ceil(x)``."""
    return int(x) if _has_integer_dtype(x) else math.ceil(float(x))


def _has_integer_dtype(x: Tensor) -> bool:
    """Return whether the elements are integers or booleans. A float may not represent them."""
    return x.dtype.kind in ("signed", "unsigned", "pred")


def raw_data(x: Tensor, /) -> bytes:
    """Return the elements as bytes: ``bytes(x)``."""
    return nx.to_binary(x)


def jax_array(x: Tensor, /) -> Any:
    """Return a JAX array with the same values, for `jax.numpy.asarray`.

    Most functions and all transformations of JAX accept no foreign class: convert arguments with
    ``jax.tree.map(jax.numpy.asarray, arguments)``.
    """
    import jax.numpy as jnp
    import numpy as np

    return jnp.asarray(np.asarray(x))


class Method:
    """Return a method that passes the tensor as the first argument of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self if instance is None else MethodType(self.__wrapped__, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.__wrapped__(*args, **kwargs)


# The tables contain the functions with hints.
_hints.install(globals())

#: Methods by name.
METHODS: dict[str, Callable[..., Any]] = {
    "__array_namespace__": namespace,
    "__bytes__": raw_data,
    "__ceil__": ceil_of,
    "__copy__": copy,
    "__deepcopy__": deep_copy,
    "__jax_array__": jax_array,
    "__divmod__": quotient_and_rest,
    "__floor__": floor_of,
    "__rdivmod__": quotient_and_rest_of,
    "__reversed__": from_the_last,
    "__round__": _numpy_methods.round,
    "__trunc__": whole_part,
    "all": _numpy_methods.all,
    "any": _numpy_methods.any,
    "argmax": _numpy_methods.argmax,
    "argmin": _numpy_methods.argmin,
    "argsort": _numpy_methods.argsort,
    "astype": nx.astype,
    "clip": _numpy_methods.clip,
    "conj": nx.conj,
    "copy": copy,
    "cumprod": _numpy_methods.cumprod,
    "cumsum": _numpy_methods.cumsum,
    "diagonal": _core.diagonal,
    "dot": nx.dot,
    "flatten": nx.flatten,
    "max": _numpy_methods.max,
    "mean": _numpy_methods.mean,
    "min": _numpy_methods.min,
    "nonzero": nonzero,
    "prod": _numpy_methods.prod,
    "ravel": nx.flatten,
    "repeat": nx.repeat,
    "reshape": reshape,
    "round": _numpy_methods.round,
    "sort": nx.sort,
    "squeeze": nx.squeeze,
    "std": _numpy_methods.std,
    "sum": _numpy_methods.sum,
    "swapaxes": swapaxes,
    "take": nx.take,
    "trace": _core.trace,
    "transpose": transpose,
    "var": _numpy_methods.var,
}


def itemsize(x: Tensor) -> int:
    """Return the number of bytes of one element in memory."""
    return x.dtype.itemsize


def numpy_dtype(x: Tensor) -> Any:
    """Return the dtype of NumPy for the elements, which ``numpy.dtype(x)`` returns."""
    return x.dtype.__numpy_dtype__


#: Attributes by name.
PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "__numpy_dtype__": numpy_dtype,
    "at": At,
    "imag": nx.imag,
    "itemsize": itemsize,
    "mT": nx.matrix_transpose,
    "real": nx.real,
}


class _MissingAttributeError(AttributeError):
    """The error for an unknown attribute.

    `hasattr` and protocols discard most of these errors, so the hint is only looked up when the
    message is read. Tracebacks show the class as its base class.
    """

    __module__ = "builtins"
    __qualname__ = "AttributeError"

    def __str__(self) -> str:
        from nxla._other_libraries import attribute_hint

        return f"{self.args[0]}{attribute_hint(self.name or '')}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickles find classes by their names, which is the name of the base class here.
        return AttributeError, (str(self),)


_MissingAttributeError.__name__ = "AttributeError"


class _NoDataError(TraceError, AttributeError):
    """The error for an attribute of tensors that traced values do not have."""

    __module__ = "nxla"
    __qualname__ = "TraceError"

    def __reduce__(self) -> tuple[Any, ...]:
        return TraceError, self.args


_NoDataError.__name__ = "TraceError"


def missing_attribute(x: Tensor | _core.Expr, name: str) -> Any:
    """Raise the error for a name that is not an attribute."""
    if isinstance(x, _core.Expr) and not name.startswith("_") and hasattr(_core.Tensor, name):
        raise _NoDataError(
            f"a traced value has no attribute {name!r}, because its data exists only when the "
            "function runs; use nx.hook or nx.print_value to inspect it when the function runs"
            f"{user_line()}"
        )
    raise _MissingAttributeError(
        f"{type(x).__name__!r} object has no attribute {name!r}", name=name
    )


def format_value(x: Tensor | _core.Expr, spec: str, /) -> str:
    """Return ``format(x, spec)``; a traced value has no data, so its type is returned."""
    if isinstance(x, _core.Expr) and spec:
        return f"{x.dtype}[{', '.join(map(str, x.shape))}]" if x.ndim else str(x.dtype)
    return _FORMAT[type(x)](x, spec)


#: The formats of the compiled classes.
_FORMAT = {owner: owner.__format__ for owner in (_core.Tensor, _core.Expr)}


#: Special methods that Python looks up on the class.
SPECIAL: dict[str, Callable[..., Any]] = {
    "__format__": format_value,
    "__getattr__": missing_attribute,
}


def install() -> None:
    """Put methods and attributes on the classes."""
    for owner in (_core.Tensor, _core.Expr):
        for name, function in METHODS.items():
            setattr(owner, name, Method(function))
        for name, function in PROPERTIES.items():
            setattr(owner, name, property(function, doc=function.__doc__))
        for name, special in SPECIAL.items():
            setattr(owner, name, special)


install()
