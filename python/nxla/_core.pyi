# Types of the compiled module. `make stubs` writes them, from the module and `tools/stubs.pyi`.

# Types that the compiled module does not declare: classes, and functions that only the package
# calls. `tools/stubs.py` adds the documentation and the other functions.

import builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pickle import PickleBuffer
from types import EllipsisType, GenericAlias, ModuleType
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    Never,
    NoReturn,
    ParamSpec,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
    type_check_only,
)

import numpy as np
from typing_extensions import CapsuleType

from nxla._methods import At
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
from nxla.ahead import Lowered
from nxla.compiler import Compiler
from nxla.debug import Explanation

_D_co = TypeVar("_D_co", covariant=True)
# The arguments that rebuild a tensor; the memory comes first.
_Pickled: TypeAlias = tuple[_D_co, DType, list[int], list[str | None] | None, list[str]]
_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R_co = TypeVar("_R_co", covariant=True)
_S = TypeVar("_S")
_T = TypeVar("_T")

__version__: Final[str]

# Exceptions

class NxlaError(Exception):
    """The base class of the errors of nxla."""

class ShapeError(NxlaError, ValueError):
    """Shapes, axes or sizes do not match; also a ValueError."""

class DTypeError(NxlaError, TypeError):
    """An operation does not support a dtype; also a TypeError."""

class TraceError(NxlaError, RuntimeError):
    """A traced value is used outside its trace; also a RuntimeError."""

class ArgumentError(NxlaError, ValueError):
    """An argument is invalid; also a ValueError."""

class GradientError(NxlaError, ValueError):
    """A derivative does not exist or has no rule; also a ValueError."""

class OptionError(NxlaError, ValueError):
    """A compiler or option is unknown or invalid; also a ValueError."""

class DeviceError(NxlaError, RuntimeError):
    """The plugin, its device or its compiler failed; also a RuntimeError."""

class ExecutionError(NxlaError, RuntimeError):
    """A program failed while it ran; also a RuntimeError."""

class FormatError(NxlaError, ValueError):
    """Bytes or a file are damaged or have another format; also a ValueError."""

class OutOfMemoryError(NxlaError, MemoryError):
    """Memory cannot be allocated; also a MemoryError."""

class InternalError(NxlaError, RuntimeError):
    """A bug in nxla; also a RuntimeError."""

def _panic_for_tests(message: str) -> None: ...
def _plugin_report() -> dict[str, int]: ...

# Element types

@final
class DType:
    """An element type, such as ``nx.float32``.

    Prints and compares as its short name (``f32``). Comparisons return True or False and never
    raise; a string or a NumPy dtype with the same element type is equal.
    """
    def __new__(cls, value: DTypeLike) -> Self: ...
    @property
    def name(self) -> str:
        """The short name: ``f32``, ``s32``, ``pred``."""
    @property
    def itemsize(self) -> int:
        """Bytes per element in memory."""
    @property
    def bits(self) -> int:
        """Bits that carry the value."""
    @property
    def kind(self) -> Literal["pred", "unsigned", "signed", "float", "complex"]:
        """One of ``pred``, ``unsigned``, ``signed``, ``float``, ``complex``."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The same as ``__numpy_dtype__``, for NumPy before 2.4."""
    @property
    def __numpy_dtype__(self) -> np.dtype[Any]: ...
    @property
    def _float_limits(self) -> tuple[float, float, float] | None: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[DType], tuple[str]]: ...

# Tensors and traced values

_Key: TypeAlias = TensorLike | builtins.slice | EllipsisType | None

@type_check_only
class _Operators:
    # The members of both tensors and traced values. The class exists for type checkers only.
    __array_priority__: int
    @property
    def dtype(self) -> DType:
        """The element type."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def names(self) -> list[str | None]:
        """The names of the axes; None for an axis without a name."""
    @property
    def vectorized_axes(self) -> tuple[tuple[str, int], ...]:
        """The vectorized axes as pairs of a name and a size; `shape` and all functions describe one
        entry.
        """
    @property
    def T(self) -> Self:
        """The tensor with reversed axes."""
    @property
    def mT(self) -> Self:
        """Exchange the last two axes.

        Raises
        ------
        ShapeError
            If the tensor has fewer than two axes.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.matrix_transpose([[[1, 2]], [[3, 4]]]).shape
        (2, 2, 1)
        """
    @property
    def real(self) -> Self:
        """Return the real part of each element.

        Parameters
        ----------
        x : tensor_like
            Numbers of any dtype; real ones stay as they are.

        Returns
        -------
        Tensor
            Numbers of the shape of `x`: ``float32`` or ``float64`` for complex operands, and the dtype
            of `x` otherwise.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.real([1 + 2j, 3 - 4j]).tolist(), nx.real([1, 2]).tolist()
        ([1.0, 3.0], [1, 2])
        """
    @property
    def imag(self) -> Self:
        """Return the imaginary part of each element.

        Parameters
        ----------
        x : tensor_like
            Numbers of any dtype; the imaginary part of a real number is zero.

        Returns
        -------
        Tensor
            Numbers of the shape of `x`: ``float32`` or ``float64`` for complex operands, and the dtype
            of `x` otherwise.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.imag([1 + 2j, 3 - 4j]).tolist(), nx.imag([1, 2]).tolist()
        ([2.0, -4.0], [0, 0])
        """
    @property
    def itemsize(self) -> int:
        """Return the number of bytes of one element in memory."""
    @property
    def at(self) -> At:
        """The result of ``x.at``: ``x.at[key]`` selects elements for an update, see `Place`."""
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType: ...
    # Methods of `nxla._methods`.
    def all(
        self,
        /,
        axis: Axes | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        where: TensorLike | None = None,
    ) -> Tensor:
        """Return whether all elements are true: see `nxla.all`.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.all(nx.tensor([True, False])).item()
        False
        """
    def any(
        self,
        /,
        axis: Axes | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        where: TensorLike | None = None,
    ) -> Tensor:
        """Return whether any element is true: see `nxla.any`.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.any(nx.tensor([True, False])).item()
        True
        """
    def argmax(
        self,
        /,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        tie_break: Literal["low", "high"] = "low",
        dtype: DTypeLike = "int32",
    ) -> Tensor:
        """Find the index of the largest element: see `nxla.argmax`.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.argmax(nx.tensor([1, 3, 2])).item()
        1
        """
    def argmin(
        self,
        /,
        axis: Axis | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        tie_break: Literal["low", "high"] = "low",
        dtype: DTypeLike = "int32",
    ) -> Tensor:
        """Find the index of the smallest element: see `nxla.argmin`.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.argmin(nx.tensor([2, 1, 3])).item()
        1
        """
    def argsort(
        self,
        /,
        axis: Axis = -1,
        kind: str | None = None,
        order: None = None,
        *,
        descending: bool = False,
        stable: bool | None = True,
        dtype: DTypeLike = "int32",
    ) -> Tensor:
        """Find the indices that sort an axis: see `nxla.argsort`.

        The argument `kind` accepts the names of NumPy, and has no effect.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.argsort(nx.tensor([30, 10, 20])).tolist()
        [1, 2, 0]
        """
    def astype(
        self, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None
    ) -> Tensor:
        """Convert elements to another dtype.

        A conversion from floats to integers truncates the fraction, clamps to the range of the integer
        dtype, and maps NaN to zero. A conversion to narrower integers wraps around. A conversion from
        complex numbers discards the imaginary part.

        Parameters
        ----------
        x : tensor_like
            Any tensor.
        dtype : dtype_like
            The dtype.
        copy : bool
            False returns the tensor itself if it has the dtype and is on the device.
        device : Device or str, optional
            The device of the result; by default the device of `x`.

        Returns
        -------
        Tensor
            A tensor of the dtype, with the shape and the names of `x`.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.astype([1.9, -1.9, 1e20], nx.int32).tolist(), nx.astype([300, -1], nx.uint8).tolist()
        ([1, -1, 2147483647], [44, 255])
        """
    def clip(
        self, /, min: TensorLike | None = None, max: TensorLike | None = None, out: None = None
    ) -> Tensor:
        """Limit the elements to a range: see `nxla.clip`.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.clip(nx.tensor([1, 5, 9]), 2, 6).tolist()
        [2, 5, 6]
        """
    def conj(self, /) -> Tensor:
        """Return the complex conjugate of each element.

        Parameters
        ----------
        x : tensor_like
            Numbers of any dtype; real ones stay as they are.

        Returns
        -------
        Tensor
            Numbers of the shape and dtype of `x`.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.conj([1 + 2j]).tolist(), nx.conj([1, 2]).tolist()
        ([(1-2j)], [1, 2])
        """
    def copy(self, /) -> Tensor:
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
    def cumprod(
        self,
        /,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        include_initial: bool = False,
        reverse: bool = False,
    ) -> Tensor:
        """Return cumulative products along an axis, or of all elements: see `nxla.cumulative_prod`.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.tensor([[1, 2], [3, 4]]).cumprod().tolist()
        [1, 2, 6, 24]
        """
    def cumsum(
        self,
        /,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        include_initial: bool = False,
        reverse: bool = False,
    ) -> Tensor:
        """Return cumulative sums along an axis, or of all elements: see `nxla.cumulative_sum`.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.tensor([[1, 2], [3, 4]]).cumsum().tolist()
        [1, 3, 6, 10]
        """
    def diagonal(self, /, offset: int = 0) -> Tensor:
        """Return a diagonal of each matrix.

        Parameters
        ----------
        x : tensor_like
            Matrices in the last two axes.
        offset : int
            The number of columns to the right of the main diagonal; outside the matrices the result
            is empty.

        Raises
        ------
        ShapeError
            If an operand has fewer than two axes.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.linalg.diagonal([[1, 2], [3, 4]]).tolist()
        [1, 4]
        """
    def dot(
        self,
        x2: TensorLike,
        /,
        *,
        x1_contract: Axes | None = None,
        x2_contract: Axes | None = None,
        x1_batch: Axes | None = None,
        x2_batch: Axes | None = None,
    ) -> Tensor:
        """Multiply and sum over given axes.

        Parameters
        ----------
        x1, x2 : tensor_like
            Operands.
        x1_contract, x2_contract : int or str, or a sequence, optional
            The axes to sum over, in pairs. By default, the last axis of
            `x1` and the last but one of `x2` (the last one of a vector); a scalar has no such axis.
        x1_batch, x2_batch : int or str, or a sequence, optional
            Batch axes; they must be the first axes of both operands.

        Returns
        -------
        Tensor
            The batch axes, then the free axes of `x1`, then the free axes of `x2`.

        Raises
        ------
        ShapeError
            If paired axes differ in size.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.dot([1, 2, 3], [4, 5, 6]).item()
        32
        >>> nx.dot(nx.ones((5, 2, 3)), nx.ones((5, 3)), x1_contract=2, x2_contract=1,
        ...        x1_batch=0, x2_batch=0).shape
        (5, 2)
        """
    def flatten(self, /, *, axes: Axes | None = None) -> Tensor:
        """Merge adjacent axes into one; all axes by default.

        Parameters
        ----------
        x : tensor_like
            Any tensor.
        axes : int or str, or a sequence, optional
            The axes. A scalar without axes becomes a vector of size 1.

        Raises
        ------
        ArgumentError
            If the axes are not neighbors in increasing order.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.flatten([[1, 2], [3, 4]]).tolist()
        [1, 2, 3, 4]
        """
    def max(
        self,
        /,
        axis: Axes | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        initial: TensorLike | None = None,
        where: TensorLike | None = None,
    ) -> Tensor:
        """Find the largest element: see `nxla.max`.

        With `where`, which may select no element, `initial` is required.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.max(nx.tensor([[1, 5], [3, 4]]), axis=0).tolist()
        [3, 5]
        """
    def mean(
        self,
        /,
        axis: Axes | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        where: TensorLike | None = None,
    ) -> Tensor:
        """Return the mean of the elements that `where` selects, in a dtype: see `nxla.mean`.

        The mean of no element is NaN.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.mean(nx.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=1, dtype="f64").tolist()
        [1.5, 3.5]
        >>> x = nx.tensor([1.0, 2.0, 6.0])
        >>> np.mean(x, where=x < 5).item()
        1.5
        """
    def min(
        self,
        /,
        axis: Axes | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        initial: TensorLike | None = None,
        where: TensorLike | None = None,
    ) -> Tensor:
        """Find the smallest element: see `nxla.min`.

        With `where`, which may select no element, `initial` is required.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.min(nx.tensor([[1, 5], [3, 4]]), axis=0).tolist()
        [1, 4]
        """
    def nonzero(self, /) -> tuple[Tensor, ...]:
        """Return the indices of the elements that are not zero: see `nxla.nonzero`.

        Examples
        --------
        >>> import nxla as nx
        >>> [index.tolist() for index in nx.tensor([0, 3, 5]).nonzero()]
        [[1, 2]]
        """
    def prod(
        self,
        /,
        axis: Axes | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        initial: TensorLike | None = None,
        where: TensorLike | None = None,
    ) -> Tensor:
        """Return the product of `initial` and the elements that `where` selects: see `nxla.prod`.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.prod(nx.tensor([2, 3, 4])).item()
        24
        """
    def ravel(self, /, *, axes: Axes | None = None) -> Tensor:
        """Merge adjacent axes into one; all axes by default.

        Parameters
        ----------
        x : tensor_like
            Any tensor.
        axes : int or str, or a sequence, optional
            The axes. A scalar without axes becomes a vector of size 1.

        Raises
        ------
        ArgumentError
            If the axes are not neighbors in increasing order.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.flatten([[1, 2], [3, 4]]).tolist()
        [1, 2, 3, 4]
        """
    def repeat(self, repeats: TensorLike, /, axis: Axis | None = None) -> Tensor:
        """Repeat each element a number of times.

        Parameters
        ----------
        x : tensor_like
            Any tensor.
        repeats : int, sequence of int or tensor
            The number of copies, for all elements of the axis or for each.
        axis : int or str, optional
            The axis; None flattens the tensor first.

        Returns
        -------
        Tensor
            A tensor whose axis has the sum of the counts of all elements as its size; a vector if
            `axis` is None.

        Raises
        ------
        ArgumentError
            If the number of counts differs from the number of elements, or a count is negative.
        TraceError
            If the counts are traced, because they determine the shape of the result.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.repeat([1, 2], 2).tolist(), nx.repeat([1, 2], [1, 3]).tolist()
        ([1, 1, 2, 2], [1, 2, 2, 2])
        """
    def reshape(self, /, *shape: Any, order: Literal["C"] = "C") -> Tensor:
        """Return the elements in another shape, given as one sequence or as sizes: see `nxla.reshape`.

        The `order` of elements must be row-major order.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.arange(6).reshape(2, -1).tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
    def round(self, /, decimals: int = 0, out: None = None) -> Tensor:
        """Round to a number of decimals, halves to even: see `nxla.round`.

        A negative number of decimals rounds to tens, hundreds and so on.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.tensor([1.25, 12.5], "f64").round(1).tolist()
        [1.2, 12.5]
        >>> round(nx.tensor([1234, 1250]), -2).tolist()
        [1200, 1200]
        """
    def sort(self, /, axis: Axis = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
        """Sort the elements of an axis; NaN counts as larger than everything.

        Parameters
        ----------
        x : tensor_like
            Real numbers.
        axis : int or str
            The axis.
        descending : bool
            If True, sort from the largest to the smallest.
        stable : bool
            If True, equal elements keep their order.

        Returns
        -------
        Tensor
            A tensor with the shape and dtype of `x`.

        Raises
        ------
        DTypeError
            If `x` is complex.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.sort([3, 1, 2]).tolist(), nx.sort([3, 1, 2], descending=True).tolist()
        ([1, 2, 3], [3, 2, 1])
        """
    def squeeze(self, /, axis: Axes | None = None) -> Tensor:
        """Drop axes of size 1.

        Parameters
        ----------
        x : tensor_like
            Any tensor.
        axis : int or str, or a sequence, optional
            The axes; by default all of size 1.

        Raises
        ------
        ArgumentError
            If the size of an axis is not 1.
        ShapeError
            If an axis does not exist.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.squeeze([[1, 2]], axis=0).shape
        (2,)
        """
    def std(
        self,
        /,
        axis: Axes | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        *,
        correction: float = 0,
        keepdims: bool = False,
        where: TensorLike | None = None,
    ) -> Tensor:
        """Return the standard deviation of the elements that `where` selects: see `nxla.std`.

        NumPy's argument `ddof` is called `correction` in the Array API standard.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.std(nx.tensor([1.0, 3.0])).item(), np.std(nx.tensor([1.0, 3.0, 5.0]), ddof=1).item()
        (1.0, 2.0)
        """
    def sum(
        self,
        /,
        axis: Axes | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        initial: TensorLike | None = None,
        where: TensorLike | None = None,
    ) -> Tensor:
        """Return the sum of `initial` and the elements that `where` selects: see `nxla.sum`.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.sum(nx.tensor([[1, 2], [3, 4]]), axis=0).tolist()
        [4, 6]
        """
    def swapaxes(self, axis1: int, axis2: int, /) -> Tensor:
        """Return the tensor with two axes exchanged.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.zeros((2, 3, 4)).swapaxes(0, -1).shape
        (4, 3, 2)
        """
    def take(self, indices: TensorLike, /, axis: Axis | None = None) -> Tensor:
        """Take elements of an axis by index.

        Parameters
        ----------
        x : tensor_like
            Any tensor.
        indices : tensor_like
            Integers of any shape; negative ones count from the end. An index that is still out of
            range selects the nearest element.
        axis : int or str, optional
            The axis; optional for a tensor with one axis.

        Returns
        -------
        Tensor
            A tensor with the shape of `x`, with the axes of `indices` in place of `axis`.
            If `indices` is a vector without an axis name, the new axis keeps the name of `axis`. If
            both axes have names, they must be equal.

        Raises
        ------
        ArgumentError
            If `axis` is omitted and `x` has several axes.
        DTypeError
            If the indices are not integers.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.take([10, 20, 30], [2, 0]).tolist()
        [30, 10]
        """
    def trace(self, /, offset: int = 0, *, dtype: DTypeLike | None = None) -> Tensor:
        """Return the sum of a diagonal of each matrix.

        Parameters
        ----------
        x : tensor_like
            Matrices in the last two axes.
        offset : int
            The number of columns to the right of the main diagonal; outside the matrices the sum is
            0.
        dtype : dtype_like, optional
            The dtype of the accumulation and of the result; by default as for `nxla.sum`.

        Raises
        ------
        ShapeError
            If an operand has fewer than two axes.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.linalg.trace([[1, 2], [3, 4]]).item()
        5
        """
    def transpose(self, /, *axes: Any) -> Tensor:
        """Return the tensor with its axes in another order, reversed by default.

        The axes are one sequence, or as many arguments: see `nxla.permute_dims`.

        Examples
        --------
        >>> import nxla as nx
        >>> nx.zeros((2, 3, 4)).transpose(0, 2, 1).shape
        (2, 4, 3)
        """
    def var(
        self,
        /,
        axis: Axes | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        *,
        correction: float = 0,
        keepdims: bool = False,
        where: TensorLike | None = None,
    ) -> Tensor:
        """Return the variance of the elements that `where` selects: see `nxla.var`.

        NumPy's argument `ddof` is called `correction` in the Array API standard. The variance of at
        most `ddof` elements is NaN or infinite.

        Examples
        --------
        >>> import nxla as nx
        >>> import numpy as np
        >>> np.var(nx.tensor([1.0, 3.0])).item()
        1.0
        """
    def __abs__(self) -> Self: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __invert__(self) -> Self: ...
    def __add__(self, value: TensorLike, /) -> Self: ...
    def __radd__(self, value: TensorLike, /) -> Self: ...
    def __sub__(self, value: TensorLike, /) -> Self: ...
    def __rsub__(self, value: TensorLike, /) -> Self: ...
    def __mul__(self, value: TensorLike, /) -> Self: ...
    def __rmul__(self, value: TensorLike, /) -> Self: ...
    def __truediv__(self, value: TensorLike, /) -> Self: ...
    def __rtruediv__(self, value: TensorLike, /) -> Self: ...
    def __floordiv__(self, value: TensorLike, /) -> Self: ...
    def __rfloordiv__(self, value: TensorLike, /) -> Self: ...
    def __mod__(self, value: TensorLike, /) -> Self: ...
    def __rmod__(self, value: TensorLike, /) -> Self: ...
    def __pow__(self, value: TensorLike, mod: None = None, /) -> Self: ...
    def __rpow__(self, value: TensorLike, mod: None = None, /) -> Self: ...
    def __matmul__(self, value: TensorLike, /) -> Self: ...
    def __rmatmul__(self, value: TensorLike, /) -> Self: ...
    def __and__(self, value: TensorLike, /) -> Self: ...
    def __rand__(self, value: TensorLike, /) -> Self: ...
    def __or__(self, value: TensorLike, /) -> Self: ...
    def __ror__(self, value: TensorLike, /) -> Self: ...
    def __xor__(self, value: TensorLike, /) -> Self: ...
    def __rxor__(self, value: TensorLike, /) -> Self: ...
    def __lshift__(self, value: TensorLike, /) -> Self: ...
    def __rlshift__(self, value: TensorLike, /) -> Self: ...
    def __rshift__(self, value: TensorLike, /) -> Self: ...
    def __rrshift__(self, value: TensorLike, /) -> Self: ...
    def __lt__(self, value: TensorLike, /) -> Self: ...
    def __le__(self, value: TensorLike, /) -> Self: ...
    def __gt__(self, value: TensorLike, /) -> Self: ...
    def __ge__(self, value: TensorLike, /) -> Self: ...
    # A comparison returns a tensor of booleans, as in array libraries.
    def __eq__(self, value: TensorLike, /) -> Self: ...  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
    def __ne__(self, value: TensorLike, /) -> Self: ...  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
    def __hash__(self) -> int: ...
    def __getitem__(self, key: _Key | tuple[_Key, ...], /) -> Self: ...
    # The method always raises, so type checkers must reject its calls.
    def __delitem__(self, key: Never, /) -> NoReturn: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Self: ...
    def __divmod__(self, value: TensorLike, /) -> tuple[Self, Self]: ...
    def __rdivmod__(self, value: TensorLike, /) -> tuple[Self, Self]: ...
    def __iter__(self) -> Iterator[Self]: ...
    def __reversed__(self) -> Iterator[Self]: ...
    def __round__(self, decimals: int = 0, out: None = None) -> Self: ...
    def __trunc__(self) -> int: ...
    def __floor__(self) -> int: ...
    def __ceil__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __format__(self, format: str, /) -> str: ...
    def __float__(self) -> float: ...
    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, np.dtype[Any]]: ...

@final
class Device:
    """A place for data and programs: the host, or a device of a client.

    Devices compare equal to themselves and to their names.
    """
    def __new__(cls, name: DeviceLike) -> Self: ...
    @property
    def name(self) -> str:
        """The name, which is unique in the process."""
    @property
    def platform(self) -> str:
        """The kind of hardware, such as ``"host"``, ``"cpu"`` or ``"cuda"``."""
    @property
    def client(self) -> str:
        """The name of the client, which is unique in the process."""
    @property
    def index(self) -> int:
        """The index among the devices of its client."""
    @property
    def kind(self) -> str:
        """The model as reported by the plugin; ``"host"`` for the host."""
    def memory_stats(self) -> dict[str, int] | None:
        """Return the memory in bytes: ``in_use``, and ``peak``, ``limit``, ``pool`` and
        ``largest_block`` if the plugin counts them. None without statistics, as on the host.
        """
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Device], tuple[str]]: ...

@final
class Tensor(_Operators):
    """An array of numbers, in host memory or on a device.

    A tensor on a device may still be under computation; reading waits for it. The data of a tensor
    never changes: assigning to elements replaces the data of the variable, and other variables keep
    the old data.
    """
    def __setitem__(self, key: _Key | tuple[_Key, ...], value: TensorLike, /) -> None: ...
    @property
    def nbytes(self) -> int:
        """The bytes of the data in memory."""
    @property
    def device(self) -> Device:
        """The device of the data."""
    def to_device(
        self, device: DeviceLike, /, *, stream: None = None, copy: bool | None = None
    ) -> Tensor:
        """Return the tensor if it is on the device, else a copy there. ``copy=True`` always copies,
        and ``copy=False`` forbids a copy. `stream` is part of the standard, and must be None.
        """
    def transfer_to(self, device: DeviceLike, /) -> Tensor:
        """Return the tensor on the device; the original is freed, even if the copy fails."""
    def _first_bytes(self, limit: int | None = None) -> bytes: ...
    def is_released(self) -> bool:
        """Return whether device memory has been freed or donated."""
    def is_ready(self) -> bool:
        """Return whether reading would not wait."""
    def block_until_ready(self) -> Self:
        """Wait until the data is computed, and return the tensor."""
    def deallocate(self) -> bool:
        """Free device memory immediately, and return whether memory was freed. Host memory is freed
        with the last reference.
        """
    def to_host(self) -> Tensor:
        """Return a copy in host memory, or the tensor if it is on the host."""
    def item(self) -> Any:
        """Return the only element as a Python number; several elements are an error."""
    def tolist(self) -> Any:
        """Return the elements as nested lists; a number for a scalar."""
    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Return a NumPy array: a read-only view of a host tensor, or a copy of a device tensor."""
    def _heatmap(self, title: str, cell: str | None) -> str: ...
    def __complex__(self) -> builtins.complex: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __reduce__(self) -> tuple[Any, _Pickled[bytes]]: ...
    def __reduce_ex__(
        self, protocol: SupportsIndex, /
    ) -> tuple[Any, _Pickled[bytes | PickleBuffer]]: ...
    def __sizeof__(self) -> int: ...
    def _is_same_data(self, other: Tensor) -> bool: ...

@final
class Expr(_Operators):
    # The method always raises, so type checkers must reject its calls.
    """A tensor inside a traced function: it has a dtype and a shape, but no data yet."""
    def __setitem__(self, key: Never, value: Never, /) -> NoReturn: ...
    @property
    def op(self) -> str | None:
        """The name of the operation, as in printed expressions."""
    @property
    def args(self) -> list[Expr]:
        """The operands of the operation."""
    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the operation: axes, sizes, the index of a parameter."""
    @property
    def id(self) -> int:
        """The position in the graph, which is the same for equal values; operands have smaller ones."""
    @property
    def context(self) -> str | None:
        """The scope whose parameters the value depends on: ``"root"`` for the function, or the operation
        whose body is being traced, such as ``"while"``. None for what depends on no argument.
        """
    @property
    def line(self) -> str | None:
        """The source line, as ``file.py:3``."""
    @property
    def device(self) -> None:
        """None, because the device is unknown until the program runs."""
    def to_device(self, device: None, /, *, stream: None = None, copy: bool | None = None) -> Self:
        """Return the value itself; the device must be None, the device of a traced value. `copy` has
        no effect, because a traced value has no memory.
        """
    def item(self) -> NoReturn:
        """Raise an error that names an alternative, because a traced value has no data."""
    def tolist(self) -> NoReturn:
        """Raise an error that names an alternative, because a traced value has no data."""

@final
class Template:
    """Describes an input by dtype and shape, without data."""
    def __new__(
        cls,
        shape: Shape,
        dtype: DTypeLike,
        names: Names | None = None,
        vectorized_axes: Sequence[tuple[str, int]] = ...,
    ) -> Self: ...
    @property
    def dtype(self) -> DType:
        """The element type."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def names(self) -> list[str | None]:
        """The names of the axes; None for an axis without a name."""
    @property
    def vectorized_axes(self) -> tuple[tuple[str, int], ...]:
        """The vectorized axes as pairs of a name and a size, which `shape` omits."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# Traced and compiled functions

@final
class Lazy:
    """A tensor whose data a function produces when it is needed.

    A compiled function calls `produce` only if the program uses the tensor. Functions of `nxla` call
    it immediately. `produce` is called once for each use, and the object has no operators.

    Parameters
    ----------
    template : Template
        The dtype and the shape of the data.
    produce : callable
        Returns the tensor. It takes no arguments.

    Examples
    --------
    >>> import nxla as nx
    >>> weights = nx.Lazy(nx.template((2,)), lambda: nx.ones(2))
    >>> unread = nx.Lazy(nx.template((1000, 1000)), lambda: 1 / 0)
    >>> nx.jit(lambda w, u: w + 1)(weights, unread).tolist()
    [2.0, 2.0]
    """
    def __new__(cls, template: Template, produce: Callable[[], TensorLike]) -> Self: ...
    @property
    def template(self) -> Template:
        """The dtype, the shape and the names of the data."""
    @property
    def dtype(self) -> DType:
        """The element type."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...

@final
class Context:
    """The scope of a loop that callers build by hand: its parameters and the values computed from
    them.
    """

@final
class Expression:
    """A traced function: a graph of operations with inputs and outputs.

    ``str()`` prints it, and a notebook draws it.
    """
    @property
    def inputs(self) -> list[tuple[tuple[int, ...], DType]]:
        """Shape and dtype of each input."""
    @property
    def outputs(self) -> list[tuple[tuple[int, ...], DType]]:
        """Shape and dtype of each output."""
    @property
    def digest(self) -> str:
        """The structural digest as hexadecimal digits: equal for equal programs in every process."""
    @property
    def has_hooks(self) -> bool:
        """True if the expression calls hooks."""
    @property
    def name(self) -> str | None:
        """The name of the function that was traced; None if there is none, and after ``from_bytes``."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Node]: ...
    def __getitem__(self, index: int, /) -> Node: ...
    def lines(
        self, limit: int | None = None, *, blocks: Literal["name", "body"] = "name"
    ) -> list[str]:
        """Return the lines of all outputs with shared names, without a header.

        With a `limit`, only the last nodes are printed. `blocks` prints blocks by their
        ``"name"``, or the nodes of their ``"body"``.
        """
    def to_text(self, limit: int | None = None, *, blocks: Literal["name", "body"] = "name") -> str:
        """Return the printed form with at most `limit` nodes; `blocks` is as for `lines`."""
    def to_svg(self) -> str:
        """Return a drawing as SVG."""
    def _repr_svg_(self) -> str: ...
    @property
    def nodes(self) -> list[Node]:
        """The nodes, operands before the operations that use them."""
    @property
    def output_nodes(self) -> list[Node]:
        """The nodes of the outputs."""
    @property
    def captured(self) -> list[Tensor]:
        """Large captured tensors; they are the last inputs, which ``run`` supplies."""
    def arrange(self, results: Sequence[Any]) -> Any:
        """Return `results`, one for each output, in the container of the function's result."""
    def to_mermaid(self) -> str:
        """Return a drawing as a Mermaid flowchart."""
    def run(self, *args: Any, **options: Any) -> Any:
        """Run the expression; arguments as for the traced function, or one tensor for each input.

        A keyword that is not an argument of the function is an option, as for ``nx.jit``.
        """
    def every_value(self) -> tuple[Expression, list[tuple[str, str, str | None]]]:
        """Return an expression whose results are all values that a compiler computes outside loops
        and branches; and the operation, type and line of each value.
        """
    def op_counts(self) -> dict[str, int]:
        """Return the number of nodes of each operation."""
    def verify(self) -> None:
        """Check every invariant of the graph; an error is a bug in nxla."""
    def to_bytes(self) -> bytes:
        """Return the serialized expression without the tensors of ``captured``, which are the last
        inputs of the expression that ``from_bytes`` reads. A pickle contains them.
        """
    @staticmethod
    def from_bytes(bytes: bytes) -> Expression:
        """Read an expression from its bytes; its result is a tuple of its outputs."""
    def _parts(self) -> tuple[bytes, Any, Any, list[Tensor]]: ...
    @staticmethod
    def _from_parts(
        bytes: bytes, results: Any, expected: Any, captured: Sequence[Tensor]
    ) -> Expression: ...

@type_check_only
class _CacheReport(TypedDict):
    entries: int
    hits: int
    misses: int
    bytes: int
    digests: list[str]
    backends: list[str]

@final
class Function(Generic[_P, _R_co]):
    """A compiled function. ``nx.jit``, ``nx.compile`` and ``nx.defn`` return it."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[_P, _R_co]
    def __new__(
        cls,
        callable: Callable[_P, _R_co],
        name: str,
        options: Mapping[str, Any] | None = None,
        static_positions: Sequence[int] = ...,
        static_names: Sequence[str] = ...,
        donated: Sequence[tuple[int | None, str, str]] = ...,
        debug_nans: bool | None = None,
        observer: Callable[..., object] | None = None,
        traces_anew: bool = False,
    ) -> Self: ...
    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias: ...
    @property
    def callable(self) -> Callable[_P, _R_co]:
        """The function that is traced."""
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None, /) -> Self: ...
    @overload
    def __get__(
        self: Function[Concatenate[_T, _Q], _R_co], instance: _T, owner: type[Any] | None = None, /
    ) -> BoundFunction[_Q, _R_co]: ...
    def warm_up(self, *args: Any, **kwargs: Any) -> None:
        """Trace and compile for these arguments without a run; tensors may be templates."""
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace the function for these arguments or templates, and return a ``Lowered`` object, which
        can be inspected, compiled and exported.
        """
    def explain(self, *args: _P.args, **kwargs: _P.kwargs) -> Explanation:
        """Return the backend of the next call with these arguments, the reason, and the estimated
        time. The method compiles the function if necessary, and does not run it.
        """
    def _donated_leaves(self, *args: Any, **kwargs: Any) -> list[bool]: ...
    def debug_expr(self, *args: Any, **kwargs: Any) -> Expression:
        """Trace the function for these arguments and return the expression."""
    def compile(self, *args: Any) -> Compiled[_R_co]:
        """Compile for the types of these arguments only; tensors may be templates."""
    def cache_report(self) -> _CacheReport:
        """Return the number of compiled entries, hits and misses, and the digests of the programs
        with their backends.
        """
    def clear_cache(self) -> None:
        """Delete the compiled programs of the function."""

@final
class BoundFunction(Generic[_P, _R_co]):
    __name__: str
    __qualname__: str
    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias: ...
    @property
    def __func__(self) -> Function[..., _R_co]: ...
    @property
    def __self__(self) -> Any: ...
    @property
    def __wrapped__(self) -> Callable[_P, _R_co]: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    def warm_up(self, *args: Any, **kwargs: Any) -> None:
        """Trace and compile for these arguments without a run; tensors may be templates."""
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace the function for these arguments or templates, and return a ``Lowered`` object, which
        can be inspected, compiled and exported.
        """
    def explain(self, *args: _P.args, **kwargs: _P.kwargs) -> Explanation:
        """Return the backend of the next call with these arguments, the reason, and the estimated
        time. The method compiles the function if necessary, and does not run it.
        """
    def debug_expr(self, *args: Any, **kwargs: Any) -> Expression:
        """Trace the function for these arguments and return the expression."""
    def compile(self, *args: Any) -> Compiled[_R_co]:
        """Compile for the types of these arguments only; tensors may be templates."""

@final
class Compiled(Generic[_R_co]):
    """A function that is compiled for fixed argument types; returned by ``nx.compile``."""
    @classmethod
    def __class_getitem__(cls, types: Any) -> GenericAlias: ...
    @property
    def digest(self) -> str:
        """The digest of the program."""
    def __call__(self, *args: Any, **kwargs: Any) -> _R_co: ...
    def check(self, *args: Any, **kwargs: Any) -> None:
        """Raise the error that a call with these arguments would raise about their types."""
    def cost_analysis(self) -> dict[str, float] | None:
        """Return the estimated cost: numbers by name, such as ``flops`` and ``bytes accessed``. None
        if the compiler does not report it.
        """
    def memory_analysis(self) -> dict[str, int] | None:
        """Return the memory of a run in bytes: ``arguments``, ``outputs``, ``aliased`` (arguments
        whose memory outputs reuse), ``temporaries``, and ``code``. None if the compiler does not
        report it.
        """

@final
class DeviceMesh:
    """Devices along named axes; layouts assign the axes of a tensor to these axes."""
    def __new__(
        cls, axes: Sequence[tuple[str, int]], devices: Sequence[Device] | None = None
    ) -> Self: ...
    @property
    def devices(self) -> list[Device]:
        """The devices, in row-major order."""
    def check(self, layout: Sequence[Sequence[str]]) -> None:
        """Checks that a layout contains axes of the mesh, each at most once."""
    def part(self, shape: Sequence[int], layout: Sequence[Sequence[str]]) -> list[int]:
        """The shape of the part on one device."""
    def starts(self, shape: Sequence[int], layout: Sequence[Sequence[str]]) -> list[list[int]]:
        """The start of each device's part along each axis."""
    def divide(self, tensor: Tensor, layout: Sequence[Sequence[str]]) -> list[Tensor]:
        """Sends each device its part of a tensor."""
    def gather(
        self, parts: Sequence[Tensor], shape: Sequence[int], layout: Sequence[Sequence[str]]
    ) -> Tensor:
        """The whole tensor of a shape, from the parts of the devices."""

@final
class Divided:
    """A compiled expression that is divided over a mesh."""
    def __new__(
        cls,
        function: str,
        expression: Expression,
        mesh: DeviceMesh,
        inputs: Sequence[Sequence[Sequence[str]]],
        outputs: Sequence[Sequence[Sequence[str]]] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Self: ...
    @property
    def text(self) -> str:
        """The StableHLO module before the division."""
    def run(self, parts: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
        """Runs it on a list of parts for each device, and returns a list of results for each device."""

@final
class Module:
    """A StableHLO module that runs; the base of ``import_stablehlo``."""
    def __new__(cls, text: str) -> Self: ...
    @property
    def text(self) -> str:
        """The module as a string."""
    @property
    def inputs(self) -> list[tuple[tuple[int, ...], DType]]:
        """Shape and dtype of each input."""
    def run(self, *args: Any, **options: Any) -> list[Tensor]:
        """Runs the module on one tensor for each input and returns one tensor for each output."""
    def compile(self, **options: Any) -> None:
        """Compiles the module."""

@final
class OnnxModel:
    """An ONNX model that was read; the base of ``from_onnx``."""
    @staticmethod
    def load(path: str | os.PathLike[str]) -> OnnxModel:
        """Reads a file, and the files with weights in the same folder."""
    @staticmethod
    def read(data: bytes) -> OnnxModel:
        """Reads bytes."""
    @property
    def name(self) -> str:
        """The name of the graph."""
    @property
    def inputs(self) -> list[tuple[str, DType | None, list[str | None] | None]]:
        """Name, dtype and shape of each input."""
    @property
    def outputs(self) -> list[tuple[str, DType | None, list[str | None] | None]]:
        """Name, dtype and shape of each output."""
    def weights(self) -> list[tuple[str, Tensor]]:
        """Name and value of each weight."""
    def apply(self, weights: list[Any], inputs: list[Any]) -> list[Tensor]:
        """Applies the model to weights and inputs."""

@final
class TensorTracker:
    """Records of the tensors that were created while the tracker was active."""
    def __new__(cls) -> Self: ...
    def stop(self) -> None:
        """Stops tracking."""
    def live(self) -> list[tuple[str | None, str, str, int]]:
        """The live tensors with data, in order of creation."""

@final
class Stream:
    """A running stream, which ends when it is dropped."""
    def __new__(
        cls,
        step: Compiled[Any],
        template: Any,
        initial: Any,
        constants: tuple[Any, ...],
        bound: int | None = None,
    ) -> Self: ...
    def send(self, chunk: Any, timeout: float | None = None) -> None:
        """Sends a chunk; waits for room up to a timeout in seconds."""
    def recv(self, timeout: float | None = None) -> Any:
        """Waits for the next result, also of a chunk that is sent later, up to a timeout in seconds."""
    def poll(self, wake: Callable[[], object]) -> tuple[Any, ...] | None:
        """The next result in a tuple, if it is computed; an empty tuple if everything has been
        received; else ``None``, and ``wake`` is called once when a result is available.
        """
    def recv_deferred(self, future: Any) -> None:
        """Completes a ``concurrent.futures`` future with the next result."""
    @property
    def in_flight(self) -> int:
        """The number of chunks sent whose results have not been received."""
    def done(self) -> Any:
        """Ends the stream and returns its state."""
    def cancel(self) -> None:
        """Ends the stream without its state; waiting chunks are dropped."""

@final
class Differentiable:
    """A traced function with the values of its call."""
    def jvp(self, tangents: Sequence[TensorLike]) -> tuple[list[Expr], list[Expr]]:
        """The results, the auxiliary results, and the tangents of the results."""
    def linear(self, forward: bool) -> tuple[list[Expr], list[Expr], LinearMap]:
        """The results, the auxiliary results, the residuals of a linear map, and the map."""
    def jacobian(self, forward: bool | None = None) -> tuple[list[Expr], list[list[Expr]]]:
        """The results, the auxiliary results, and for each result a derivative by each value; in the
        cheaper mode if ``forward`` is None.
        """
    def diagonal(self) -> list[Expr]:
        """The derivative of each element of a result by the same element of the value of the same
        position.
        """

@final
class LinearMap:
    """A derivative at one point, which can be applied in any trace."""
    def apply(self, known: Sequence[TensorLike], arguments: Sequence[TensorLike]) -> list[Expr]:
        """The results of the map, from its residuals and its arguments."""

# Stages

def values_and_grads(
    values: Sequence[TensorLike],
    function: Callable[[list[Expr]], tuple[TensorLike, Sequence[TensorLike]]],
) -> tuple[list[Expr], list[Expr]]:
    """Calls a function with tracers for values of the current trace. The function returns the
    differentiated value and its results. Returns the results in terms of the values, and the
    gradients.
    """

def trace_derivative(
    values: Sequence[TensorLike],
    function: Callable[[list[Expr]], tuple[Sequence[TensorLike], Sequence[TensorLike]]],
    tangents: Sequence[TensorLike] | None = None,
) -> Differentiable:
    """Calls a function with tracers for values of the current trace. The function returns the
    differentiated results and auxiliary results. Returns the traced function. Entries along
    vectorized axes of the results have separate derivatives; with ``tangents``, only along axes of
    the tangents.
    """

@final
class Node:
    """A node of an expression: an operation and its operands."""
    @property
    def op(self) -> str:
        """The name of the operation, such as ``"dot"``."""
    @property
    def id(self) -> int:
        """The index in the graph; operands have smaller indices."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis; empty for an operation with several results."""
    @property
    def dtype(self) -> DType | None:
        """The element type; None for an operation with several results."""
    @property
    def names(self) -> list[str | None]:
        """The names of the axes; None for an axis without a name."""
    @property
    def results(self) -> int:
        """The number of results; ``elem`` nodes select one."""
    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the operation: axes, sizes and others."""
    @property
    def regions(self) -> list[Expression]:
        """The programs of regions, such as the body of a loop; their inputs are operands of the node."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def note(self) -> str | None:
        """The note of an annotation; None for every other operation."""
    @property
    def notes(self) -> dict[str, Any] | None:
        """The other notes of an annotation, by name; None for every other operation."""
    @property
    def args(self) -> list[Node]:
        """The operands."""
    @property
    def context(self) -> str | None:
        """The scope whose parameters the node depends on: ``"root"`` for the function that was traced,
        or the operation that holds the expression, such as ``"while"``. None if it depends on none.
        """
    @property
    def line(self) -> str | None:
        """The source line, as ``file.py:3``."""
    @property
    def scope(self) -> str | None:
        """The scopes of `nx.named_scope` in which the node was built, as ``"encoder/layer_0"``; None outside of
        them.
        """
    @property
    def flops(self) -> int:
        """The number of arithmetic operations; the operations of regions do not count."""
    @property
    def is_derivative(self) -> bool:
        """True if reverse-mode differentiation built the node."""

@final
class Policy:
    """A rule that splits a program into stages.

    It is an argument of ``nx.graph.split`` and a value of the option ``stages`` of ``nx.jit``.

    Examples
    --------
    >>> import nxla as nx
    >>> expression = nx.debug_expr(lambda x: nx.exp(nx.sin(x)))(1.0)
    >>> [stage.expr.op_counts() for stage in nx.graph.split(expression, nx.graph.Policy.every_ops(1))]
    [{'parameter': 1, 'sin': 1}, {'exp': 1, 'parameter': 1}]
    """
    @staticmethod
    def every_ops(count: int) -> Policy:
        """Return a policy of stages with ``count`` operations; the last stage may have fewer."""
    @staticmethod
    def at_most_ops(count: int) -> Policy:
        """Return a policy of stages with at most ``count`` operations, cut where few bytes cross."""
    @staticmethod
    def balanced(count: int) -> Policy:
        """Return a policy of ``count`` stages with about the same estimated time, cut where few bytes
        cross.
        """
    @staticmethod
    def memory(bytes: int) -> Policy:
        """Return a policy of stages that need at most this memory in bytes, with inputs and outputs."""
    @staticmethod
    def marks(*names: str) -> Policy:
        """Return a policy that ends a stage at each value with one of these marks, or at every mark if
        the names are omitted.
        """
    @staticmethod
    def layers() -> Policy:
        """Return a policy of one stage for each repeated part of the program, the layers of a model.
        Equal layers are compiled once.
        """
    @staticmethod
    def training() -> Policy:
        """Return a policy of the forward pass, the backward pass and the update of a training step."""
    @staticmethod
    def auto() -> Policy:
        """Return a policy of one stage for a program that compiles quickly, and of layers, or stages
        of a few hundred operations, for a larger one.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[..., Policy], tuple[Any, ...]]: ...

@final
class Timeline:
    """The schedule of a simulation. ``str()`` draws it as a chart."""
    @property
    def makespan(self) -> float:
        """The end of the last stage, in seconds."""
    @property
    def runs(self) -> list[tuple[int, int, float, float, int]]:
        """For each stage: the stage, its worker, its start and end in seconds, and the bytes that it
        receives from other workers.
        """

@final
class Stage:
    """One stage of a split expression."""
    @property
    def id(self) -> int:
        """The index; stages are listed in execution order."""
    @property
    def name(self) -> str | None:
        """The name: the mark at which it ends, or the pass of a training step."""
    @property
    def expr(self) -> Expression:
        """The expression of the stage. Its result is a tuple of the outputs, or the container of the
        whole function if the stage computes all outputs of the function.
        """
    @property
    def arguments(self) -> list[tuple[int | None, int]]:
        """The source of each argument: ``(None, k)`` is input ``k`` of the whole program, ``(s, k)``
        is output ``k`` of stage ``s``.
        """
    @property
    def dependencies(self) -> list[int]:
        """The stages that must have run before."""
    @property
    def digest(self) -> str:
        """The digest of its program."""
    @property
    def _from_lines(self) -> str: ...
    def to_bytes(self) -> bytes:
        """Return the serialized stage; see ``from_bytes``."""
    @staticmethod
    def from_bytes(bytes: bytes) -> Stage:
        """Read a stage from its bytes."""
    def run(self, *args: Any, **options: Any) -> list[Tensor]:
        """Run the stage alone with one tensor for each argument, and return a list."""
    def __reduce__(self) -> tuple[Callable[[bytes], Stage], tuple[bytes]]: ...

@final
class StageGraph:
    """A split expression: stages that pass values to each other."""
    @property
    def stages(self) -> list[Stage]:
        """The stages, in execution order."""
    @property
    def levels(self) -> list[list[int]]:
        """Groups of stages that can run at the same time."""
    @property
    def outputs(self) -> list[tuple[int | None, int]]:
        """The source of each result, as in ``Stage.arguments``."""
    def __len__(self) -> int: ...
    def __getitem__(self, position: int, /) -> Stage: ...
    def run(self, *args: Any, **options: Any) -> Any:
        """Run all stages in this process; arguments as for the traced function, or one tensor for
        each input.

        A keyword that is not an argument of the function is an option, as for ``nx.jit``.
        """
    def _bind(
        self, args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]: ...
    def _parts(self) -> tuple[bytes, Any, Any, list[Tensor]]: ...
    @staticmethod
    def _from_parts(
        bytes: bytes, results: Any, expected: Any, captured: Sequence[Tensor]
    ) -> StageGraph: ...
    def _leaves(self, args: tuple[Any, ...]) -> list[Tensor]: ...
    def _captured(self) -> list[Tensor]: ...
    @staticmethod
    def _of_stages(stages: Sequence[Stage]) -> StageGraph: ...
    def _ranks(self) -> list[int]: ...
    def _wrap(self, results: Sequence[Tensor], inputs: Sequence[Tensor] | None = None) -> Any: ...
    def _in_force(
        self, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], list[bool]]: ...
    def explain(self) -> str:
        """Return a table of the stages.

        Returns
        -------
        str
            The operations, floating-point operations, inputs and outputs with their bytes, and peak
            memory of each stage, and the stages with the program of an earlier stage; then the
            estimated time, and the speedup with several workers.
        """
    def measure(self, *args: Any, repeat: int = 3, **options: Any) -> list[float]:
        """Return the run time of each stage.

        Stages run one after another on the device of the arguments.

        Parameters
        ----------
        *args
            The arguments, as for ``run``.
        repeat : int
            The number of runs.
        **options
            Keyword arguments of the traced function and options, as for ``run``.

        Returns
        -------
        list of float
            The shortest time of each stage in seconds.
        """
    def simulate(
        self,
        workers: int,
        *,
        bandwidth: float = 1e9,
        latency: float = 1e-4,
        seconds: Sequence[float] | None = None,
    ) -> Timeline:
        """Simulate the stages on equal workers that run one stage at a time.

        Parameters
        ----------
        workers : int
            The number of workers.
        bandwidth : float
            The bytes per second that move between two workers. Inputs are available everywhere.
        latency : float
            The seconds before a value moves.
        seconds : sequence of float, optional
            The time of each stage, as ``measure`` returns it; by default times are estimated.

        Returns
        -------
        Timeline
            The schedule.

        Raises
        ------
        ArgumentError
            If `workers` or `bandwidth` is not positive, `latency` is negative, or `seconds` does
            not have a valid entry for each stage.
        """
    def to_svg(self) -> str:
        """Return a drawing of the stages as SVG."""
    def _repr_svg_(self) -> str: ...

def split_by(expression: Expression, policy: Policy | str) -> StageGraph:
    """Splits an expression by a policy, or by the name of one."""

@overload
def split(
    expression: Expression, decide: Callable[[Node], object], state: None = None
) -> tuple[StageGraph, None]: ...
@overload
def split(
    expression: Expression, decide: Callable[[Node, _S], tuple[object, _S]], state: _S
) -> tuple[StageGraph, _S]: ...

# Containers, options and compilers

@final
class TreeDef:
    """The structure of a Python value, from which the value can be rebuilt."""
    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Return the container with its leaves."""
    def leaf_path(self, leaf: int) -> str:
        """Return the path of the leaf with an index, in Python notation after the container."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def register_container(
    cls: type[_T],
    flatten: Callable[[_T], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, tuple[Any, ...]], _T],
) -> None:
    """Make a class a container.

    Dataclasses and named tuples are containers without a registration.

    Parameters
    ----------
    cls : type
        The class.
    flatten : callable
        Returns ``(children, aux)`` for a value. The children are containers or leaves. ``aux`` must
        be hashable, or a list, dict or set of hashable values; it is static, so a value with
        another ``aux`` is traced again.
    unflatten : callable
        Returns the value for ``(aux, children)``.

    Raises
    ------
    ArgumentError
        If `cls` is a built-in container or leaf class, such as dict, or if `flatten` or `unflatten`
        is not a function.

    Examples
    --------
    >>> import nxla as nx
    >>> class Pair:
    ...     def __init__(self, *parts):
    ...         self.parts = parts
    >>> nx.register_container(Pair, lambda pair: (pair.parts, None), lambda _, parts: Pair(*parts))
    >>> nx.jit(lambda pair: sum(pair.parts))(Pair(1, 2)).item()
    3
    """

def tree_flatten(value: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a container (tensors, traced values, numbers and arrays) and its structure."""

def get_default_options() -> dict[str, Any]:
    """Returns the current options of this thread."""

def replace_default_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Sets the options of this thread and returns its old options. For None, the thread uses the options
    of the process.
    """

def get_global_default_options() -> dict[str, Any]:
    """Returns the options of the process."""

def replace_global_default_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Sets the options of the process, and returns the old options."""

def merge_options(options: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Adds changes to options by the rules of [`Options::over`]. An option in `changes` replaces the old
    one, so None removes an option.
    """

def has_own_options() -> bool:
    """Returns whether this thread has its own options instead of the options of the process."""

def inlines_call(name: str, on_conflict: str) -> bool:
    """Returns whether a call of the function `name` in a trace is inlined instead of run separately."""

def inlining_all(function: Callable[[], _T]) -> _T:
    """Calls a function without arguments, in which traces inline the functions with their own options. The
    caller does not run the inlined parts.
    """

def compilers() -> list[str]:
    """Returns the names of all compilers."""

def register_compiler(compiler: Compiler) -> str:
    """Registers a compiler under its ``name``."""

def current_compiler() -> str | None:
    """The name of the compiler of the current trace; None outside a trace."""

def partitions_options(options: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Options for each device on which a compiler can run programs independently."""

def to_backend(options: Mapping[str, Any] | None = None) -> Device:
    """Return the device that holds the results of functions that run with these options."""

def is_tracing() -> bool:
    """Returns whether the thread is tracing."""

def derivative_depth() -> int:
    """Returns the number of derivatives that are being traced on the thread, each inside the function of
    another one.
    """

def user_line() -> str | None:
    """The current line of the user's code, as ``file.py:3``; None if unknown."""

def enter_scope(name: str) -> None:
    """Enters a named scope: nodes that the thread builds from now on belong to it."""

def exit_scope() -> None:
    """Leaves the innermost named scope."""

def filter_traceback(error: BaseException) -> None:
    """Removes the frames of the package from the traceback of an exception that a function raises."""

def set_package_directory(directory: str) -> None:
    """Sets the directory of the package, whose frames are skipped."""

def set_reassociate_floats(allow: bool) -> bool:
    """Sets whether traces of this thread may reorder float arithmetic, and returns the old value."""

def set_numbers_of_nx(of_nx: bool) -> bool:
    """Sets whether scalars and sums of booleans have the dtypes of Nx on the thread; returns the
    previous setting.
    """

def wait_until_idle() -> None:
    """Ends all streams, and waits until no program runs on a device or calls a function. The threads of
    streams may need the interpreter, and XLA must not run when the process ends. The wait ends after
    [`EXIT_TIMEOUT`], because a program may loop forever, and on Ctrl-C. Afterwards only the calling
    thread can run programs.
    """

def delay_forks() -> None:
    """Makes forks of the process wait until no other thread holds a lock of shared state."""

def after_fork_in_child() -> None:
    """Resets the state in a child process after a fork, which has only the calling thread."""

def release_held_memory() -> int:
    """Returns pooled memory to the system, and returns the number of bytes."""

def set_debug_nans(check: bool) -> bool:
    """Sets whether the thread checks results; returns the previous setting."""

def subscript_update(
    x: TensorLike,
    key: Any,
    value: TensorLike,
    how: Literal["set", "add", "subtract", "multiply", "min", "max"],
) -> Tensor:
    """A tensor with updated elements at `key`; `how` names the update."""

def true_indices(x: Tensor) -> list[Tensor]:
    """The indices of true elements along each axis, in row-major order, on the device of ``x``."""

def compare_values(left: Tensor, right: Tensor) -> tuple[int, tuple[int, ...], float, int]:
    """The distance of two tensors: units in the last place, the index, the largest difference, and the
    number of different elements.
    """

def cache_report() -> dict[str, int]:
    """Entries, bytes, hits, misses and evictions of the executable cache."""

def set_cache_limit(bytes: int) -> None:
    """Sets the size limit of the executable cache in bytes."""

def transfer_report() -> dict[str, int]:
    """Bytes that went from the host to devices, and from devices to the host."""

def stablehlo(
    expression: Expression,
    donated: Sequence[bool],
    portable: bool,
    embed: bool,
    options: Mapping[str, Any] | None = None,
) -> tuple[str, list[int]]:
    """Return an expression as a StableHLO module, and the inputs that the module uses.

    ``embed`` makes captured tensors constants of the module. ``portable`` writes a module without
    custom calls of the process; otherwise the module is for the device of the options.
    """

def read_stablehlo(
    content: bytes, weights: bool, platform: str | None
) -> tuple[Expression, list[str | None], list[Tensor], tuple[Any, Any, list[int]] | None]:
    """Returns the main function of a StableHLO module in any form, the names of its inputs, the constants
    that become inputs with ``weights``, and the containers of an export of JAX.
    """

def disk_cache_report() -> dict[str, Any]:
    """Counts of the disk cache: ``hits``, ``misses``, ``stored``, ``failed``, and the reason of the
    last failure.
    """

def disk_cache_entries(
    folder: str | os.PathLike[str],
) -> list[tuple[str, int, float, int | None, str | None]]:
    """Return the executables of a folder: key, size in bytes, time of the last use in seconds since
    the epoch, compile time in milliseconds, and the reason if the executable is rejected.
    """

def check_disk_cache(folder: str | os.PathLike[str]) -> None:
    """Raise ``PermissionError`` if another user owns or can change the folder or a parent of it."""

def disk_cache_clear(folder: str | os.PathLike[str]) -> tuple[int, int]:
    """Removes the executables of a folder and returns their number and their bytes."""

def start_profile() -> bool:
    """Starts a recording; returns whether it was off before."""

def finish_profile() -> str | None:
    """Stops the recording and returns the events as JSON."""

def sharding_note(layout: Sequence[Sequence[str]], rank: int) -> str:
    """The attribute that sets the sharding of a value of this rank in XLA."""

def memory_report() -> dict[str, dict[str, int]]:
    """For the host and each used device, by name: the bytes and the number of its live tensors, and the
    peak of the bytes.
    """

def plugin_report(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The properties of a plugin, and the devices of a client."""

def devices() -> list[Device]:
    """The host, the devices of XLA's default client if a plugin is installed, and the devices of all
    other clients.
    """

def on_device(device: DeviceLike, function: Callable[..., _T], *args: Any) -> _T:
    """Calls a function whose operations run on a device, regardless of the default options."""

def place(x: Tensor, device: DeviceLike | None = None) -> Tensor:
    """Moves data to a device, or to the device of new data in the default options."""

def take_apart(value: Any) -> tuple[str, type | None, Any, list[Any]] | None:
    """The kind of a container, its class if it is user-defined, its auxiliary structure (keys, field
    names, data of a registered class), and its children. None for a value that is not a container.
    """

def put_together(kind: str, container: type | None, extra: Any, children: Sequence[Any]) -> Any:
    """The container of these parts; the inverse of ``take_apart``."""

# Control flow and effects

def cond(
    clauses: Sequence[tuple[TensorLike | Callable[[], TensorLike], Callable[[], Any]]],
    otherwise: Callable[[], Any],
    function: str = "cond",
    deferred: bool = False,
) -> Any:
    """The first branch whose predicate is true: `clauses` are pairs of a traced predicate and a
    function without arguments. If they are `deferred`, the predicates are such functions too, and
    their operations become part of the conditional. Errors name `function`, the public function.
    """

def while_loop(
    condition: Callable[[_S], TensorLike],
    body: Callable[[_S], _S],
    initial: _S,
    function: str = "while_loop",
    roots: Sequence[tuple[str, str]] = ...,
    gradient: str = "auto",
    gradient_bytes: int = ...,
    max_trips: int | None = None,
) -> _S:
    """Repeats `body(state)` while `condition(state)` is true.

    Errors name `function`, the public function. `roots` contains the names of parts of its state,
    by the first step of their paths. The caller's condition ends the loop after `max_trips`
    iterations.
    """

def scan_loop(
    condition: Callable[[_S], TensorLike],
    body: Callable[[_S], tuple[_S, Tensor, Any]],
    initial: _S,
    count: int,
    function: str,
    roots: Sequence[tuple[str, str]],
    gradient: str,
    gradient_bytes: int,
) -> tuple[_S, Any]:
    """A counting loop that collects the rows of each iteration: the final state, and all rows.

    `body` maps the state to the next state, the index of the row among `count`, and the rows. It is
    called once, and a second time if it adds vectorized axes or names to the state. Errors name
    `function`, the public function.
    """

def without_effects(function: Callable[[], _T]) -> _T:
    """Calls a function for the types of its results; its hooks are not part of any program."""

def hook(value: _T, name: str | None = None, function: Callable[[Any], object] | None = None) -> _T:
    """Calls a host function with a value whenever the value is computed; returns the value."""

def runtime_call(
    function: Callable[[list[Tensor]], list[Tensor]],
    values: Sequence[TensorLike],
    templates: Sequence[Template],
    name: str | None = None,
) -> list[Tensor]:
    """Calls a host function with values whenever they are computed, and returns its results. The
    function maps a list of tensors to a list of tensors with the types of the templates. Errors of
    programs without the function contain the name.
    """

def annotate(value: _T, note: str) -> _T:
    """A container of values with a note that is printed and that split callbacks can read. The values
    are one node, so a cut has all of them on one side.
    """

def custom_grad(
    value: Sequence[TensorLike],
    inputs: Sequence[TensorLike],
    rule: Callable[[list[Tensor]], Sequence[TensorLike]],
) -> list[Tensor]:
    """`value` with a custom derivative: `rule` maps the list of cotangents of the value's leaves to
    the list of cotangents of the inputs.
    """

def checkpoint(
    values: Sequence[TensorLike],
    function: Callable[[list[Expr]], Sequence[TensorLike]],
    keep: str,
    names: Sequence[str],
) -> list[Expr]:
    """The results of a function in a block whose derivative stores only the values of the policy
    `keep`, or the values with the notes `names`. The function maps a list to a list.
    """

def custom_jvp(
    value: Sequence[TensorLike],
    inputs: Sequence[TensorLike],
    rule: Callable[[list[Tensor]], Sequence[TensorLike]],
) -> list[Tensor]:
    """`value` with a custom derivative: `rule` maps the list of tangents of the inputs' leaves to the
    list of tangents of the value.
    """

def stop_grad(x: TensorLike) -> Tensor:
    """`x`, without a gradient."""

# Building by hand

def build_expression(function: Callable[[], Any], like: Expression | None = None) -> Expression:
    """Calls a function without arguments in a new trace and returns the expression. The containers of
    its arguments are the containers of ``like``, if given.
    """

def expr_context() -> Context:
    """Opens the scope of a loop in the current trace."""

def expr_parameter(
    template: Template, position: int | None = None, context: Context | None = None
) -> Tensor:
    """An input of the expression that is built by hand, or a parameter of a context: the one at a
    position, or the next.
    """

def expr_while(initial: Any, context: Context, state: Any, condition: TensorLike, body: Any) -> Any:
    """Closes the loop of a context, whose condition and body have been computed from its parameters."""

def expr_constant(
    value: builtins.complex, dtype: DTypeLike | None = None, shape: Shape | None = None
) -> Tensor:
    """Adds a scalar that is repeated over a shape."""

def expr_tensor(value: TensorLike) -> Tensor:
    """A literal tensor, which is part of the program regardless of its size."""

def expr_metadata(
    value: _T,
    notes: Mapping[str, Any] | None = None,
    inspect: str | None = None,
    stop_grad: bool = False,
) -> _T:
    """A container of values with notes: ``inspect`` is printed, and ``stop_grad`` removes the
    gradient.
    """

def expr_block(
    name: str,
    attributes: Sequence[tuple[str, str]],
    values: Sequence[TensorLike],
    function: Callable[[list[Tensor]], Iterable[TensorLike]],
) -> list[Tensor]:
    """A named composite: ``function`` maps a list of values to a list of values."""

def transfer_all(tensors: Sequence[Tensor], device: DeviceLike) -> list[Tensor]:
    """Moves tensors to a device and frees the originals. Each buffer is moved once."""

def is_setting_of(function: Callable[..., Any], value: object) -> bool:
    """Returns whether a keyword argument of a function is static without being declared: the function
    belongs to this package, and the value is an axis, a shape or a flag.
    """

def compiled_arguments(
    name: str,
    function: Callable[..., Any],
    templates: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, ...]:
    """The positional arguments of a call of ``function``, which a callback has compiled for these
    templates. Raises the errors of a compiled function.
    """

def expr_call(expression: Expression, values: Sequence[TensorLike]) -> Any:
    """Adds a whole expression to the current trace, with values for its inputs. If no input has
    vectorized axes, the expression is applied to each entry of vectorized values.
    """

def put_args(node: Node, values: Sequence[TensorLike | Sequence[TensorLike]]) -> Any:
    """Creates the operation of a node with other operands in the current trace. The result is a tuple
    if the operation has several results.
    """

# Vectorized axes

def vectorize(x: TensorLike, axes: Sequence[tuple[str, int | None]]) -> Tensor:
    """The first axes, vectorized."""

def devectorize(x: TensorLike, keep_names: bool = True) -> Tensor:
    """Vectorized axes as ordinary ones in front."""

def revectorize(
    x: TensorLike,
    axes: Sequence[tuple[str, int | None]],
    shape: Shape | None = None,
    names: Names | None = None,
) -> Tensor:
    """The elements with other vectorized axes and another shape; a size of -1 is inferred."""

def map_entries(
    values: Sequence[TensorLike],
    axes: Sequence[int | None],
    out_axis: int,
    function: Callable[[list[Expr]], Sequence[TensorLike]],
) -> list[Expr]:
    """Calls a function of one entry for all entries along axes of values of the current trace; returns
    its results, with the entries along `out_axis`.
    """

def align_vectors(values: Sequence[TensorLike], align_ranks: bool, repeat: bool) -> list[Tensor]:
    """Values with the same vectorized axes, of size 1 or broadcast."""

# Operations

def set_printing(
    options: tuple[int | None, int, int, int, bool],
) -> tuple[int | None, int, int, int, bool]:
    """Sets the print options: precision, threshold, edgeitems, linewidth, device. Returns the previous
    options.
    """

def tensor_from_npy(function: str, data: bytes) -> Tensor:
    """Returns the array in the bytes of a ``.npy`` file."""

def tensors_from_npz(function: str, data: bytes) -> list[tuple[str, Tensor]]:
    """Returns the arrays in the bytes of a ``.npz`` archive, with their names."""

def tensors_from_safetensors(
    function: str, data: bytes
) -> tuple[list[tuple[str, Tensor]], list[tuple[str, str]]]:
    """Returns the tensors in bytes of the format safetensors with their names, and names and dtypes of
    the tensors that nxla does not support.
    """

def tensor_to_npy(function: str, x: Tensor) -> bytes:
    """Returns the bytes of a ``.npy`` file."""

def tensors_to_npz(function: str, tensors: Sequence[tuple[str, Tensor]]) -> bytes:
    """Returns the bytes of a ``.npz`` archive."""

def tensors_to_safetensors(
    function: str,
    tensors: Sequence[tuple[str, Tensor]],
    metadata: Sequence[tuple[str, str]],
) -> bytes:
    """Returns bytes of the format safetensors."""

def tensor_from_bytes(
    bytes: bytes | memoryview | PickleBuffer,
    dtype: DTypeLike,
    shape: Sequence[int],
    names: Names | None = None,
    vectorized: Sequence[str] | None = None,
    owned: bool = False,
) -> Tensor:
    """Returns a tensor from a buffer of its bytes in row-major order and native byte order; the first
    axes are vectorized under these names. Read-only memory is shared. Other memory is copied unless
    ``owned`` is true, which promises that the memory does not change.
    """

def eigh_parts(a: TensorLike) -> list[Tensor]:
    """Eigenvalues and eigenvectors of Hermitian matrices."""

def eigen_of_data(x: Tensor) -> tuple[Tensor, Tensor]:
    """The types of the functions of this family.
    The eigenvalues and eigenvectors of square matrices, as `c128` on the host.
    """

def eye(shape: Shape, dtype: DTypeLike | None = None, names: Names | None = None) -> Tensor:
    """Ones on the diagonal of the last two axes."""

def full(
    shape: Shape, value: TensorLike, dtype: DTypeLike | None = None, names: Names | None = None
) -> Tensor:
    """Returns a tensor filled with one number.

    Raises ``OverflowError`` for a scalar outside the range of an integer dtype.
    """

def iota(
    shape: Shape,
    axis: Axis | None = None,
    dtype: DTypeLike | None = None,
    names: Names | None = None,
) -> Tensor:
    """0, 1, 2… along an axis, or through the whole tensor."""

def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Evenly spaced numbers."""

def lu_parts(a: TensorLike) -> list[Tensor]:
    """`p`, `l` and `u` of square matrices."""

def pad_with_own(x: TensorLike, rule: str, widths: Sequence[Sequence[int]]) -> Tensor:
    """Pad a tensor with its own elements beyond the ends of each axis: `(low, high)` for each."""

def qr_parts(a: TensorLike, complete: bool) -> list[Tensor]:
    """`q` and `r` of matrices."""

def random_categorical(
    key: TensorLike,
    logits: TensorLike,
    axis: Axis,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]:
    """Categories by their logits."""

def random_choice(
    key: TensorLike,
    x: TensorLike,
    p: TensorLike | None,
    samples: int,
    axis: Axis | None,
    replace: bool,
) -> list[Tensor]:
    """Samples of a tensor, and the next key."""

def random_fold_in(key: TensorLike, data: TensorLike) -> Tensor:
    """A key for each integer."""

def random_from(
    name: str,
    key: TensorLike,
    parameters: Sequence[TensorLike],
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]:
    """Draws from a distribution."""

def random_gumbel(
    key: TensorLike,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]:
    """Gumbel floats."""

def random_integers(
    key: TensorLike,
    low: TensorLike,
    high: TensorLike,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]:
    """Uniform integers between two bounds."""

def random_key(seed: TensorLike) -> Tensor:
    """The key of a seed."""

def random_multivariate_normal(
    key: TensorLike,
    mean: TensorLike,
    covariance: TensorLike,
    method: str,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]:
    """Multivariate normal vectors."""

def random_normal(
    key: TensorLike,
    mean: TensorLike,
    deviation: TensorLike,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]:
    """Normal floats."""

def random_shuffle(
    function: str, key: TensorLike, x: TensorLike, axis: Axis, independent: bool
) -> list[Tensor]:
    """A tensor with entries in another order, and the next key."""

def random_split(key: TensorLike, parts: int) -> Tensor:
    """Several keys from one."""

def random_uniform(
    key: TensorLike,
    low: TensorLike,
    high: TensorLike,
    shape: Shape,
    dtype: DTypeLike | None,
    names: Names | None,
    advance: bool,
) -> list[Tensor]:
    """Uniform floats between two bounds."""

def as_tensors(
    function: str, operands: Sequence[TensorLike], compared: bool = False
) -> list[Tensor]:
    """The operands as tensors, with scalars in the dtypes of the call."""

def sum_of_products(
    subscripts: str, operands: Sequence[TensorLike], order: Sequence[Sequence[int]] | None
) -> Tensor:
    """A sum of products in subscript notation, with an optional order of contractions."""

def segment(
    kind: Literal["sum", "prod", "max", "min"], x: TensorLike, numbers: TensorLike, segments: int
) -> Tensor:
    """Combines the entries of segments."""

def places_in_order(sorted: TensorLike, x: TensorLike, right: bool) -> Tensor:
    """The indices at which elements can be inserted into a sorted vector."""

def count_numbers(x: TensorLike, weights: TensorLike | None, length: int) -> Tensor:
    """The number of occurrences of each integer."""

def bin_edges(x: TensorLike, bins: int, range: tuple[float, float] | None) -> Tensor:
    """The edges of a histogram's bins."""

def histogram_of(
    x: TensorLike, edges: TensorLike, weights: TensorLike | None, density: bool
) -> Tensor:
    """The counts of a histogram."""

def batch_norm_parts(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    scale: TensorLike | None,
    bias: TensorLike | None,
    axis: Axis,
    epsilon: float,
    momentum: float,
) -> list[Tensor]:
    """Channels with their own mean and variance, and the running statistics that these move."""

def dropout_with(key: TensorLike, x: TensorLike, rate: float, advance: bool) -> list[Tensor]:
    """A tensor with elements dropped."""

def fold(
    x: TensorLike,
    initial: TensorLike,
    function: Callable[[Tensor, Tensor], TensorLike],
    axis: Axes | None = None,
    keepdims: bool = False,
) -> Tensor | None:
    """Folds elements with `function(element, accumulator)`. The function must be called inside a trace;
    the Python package starts one otherwise. Returns None if the function uses vectorized values, so that its results
    differ between entries: a loop computes such a fold.
    """

def result_type(*operands: TensorLike | DTypeLike) -> DType:
    """Return the promoted dtype of operands; scalars adapt to the other operands.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.result_type(nx.int8, nx.tensor([1.5], "f16")), nx.result_type("u8", 1)
    (f16, u8)
    """

def slogdet_parts(a: TensorLike) -> list[Tensor]:
    """The sign and the logarithm of the magnitude of determinants."""

def solve_batch(a: TensorLike, b: TensorLike) -> Tensor:
    """Solves systems of linear equations."""

def svd_parts(a: TensorLike, full_matrices: bool) -> list[Tensor]:
    """Singular vectors and values of matrices."""

def tensor(value: Any, dtype: DTypeLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor from a number, nested lists, a buffer, a DLPack exporter or another tensor.

    By default immutable memory is shared, and other memory is copied. ``copy=True`` always copies.
    ``copy=False`` never copies, and the caller promises not to write to the memory. A tensor is
    returned unchanged, or converted to another dtype on its device.

    Raises ``OverflowError`` for integers that an integer dtype cannot represent. Arrays and tensors
    are converted as by `astype`.
    """

def tri(rows: int, columns: int, k: int = 0) -> Tensor:
    """A mask that is true where the column index is at most the row index plus `k`."""

def window_reduce(
    x: TensorLike,
    initial: TensorLike,
    function: Callable[[Tensor, Tensor], TensorLike],
    dimensions: PerAxis,
    strides: PerAxis | None = None,
    padding: Padding = ...,
    dilations: PerAxis | None = None,
) -> Tensor:
    """Folds each window with `function(element, accumulator)`, inside a trace."""

@overload
def where(condition: TensorLike, x1: TensorLike, x2: TensorLike, /) -> Tensor: ...
@overload
def where(condition: TensorLike, x1: None = None, x2: None = None, /) -> tuple[Tensor, ...]: ...
def _signatures() -> dict[str, dict[str, str]]: ...

pred: Final[DType]
u2: Final[DType]
u4: Final[DType]
u8: Final[DType]
u16: Final[DType]
u32: Final[DType]
u64: Final[DType]
s2: Final[DType]
s4: Final[DType]
s8: Final[DType]
s16: Final[DType]
s32: Final[DType]
s64: Final[DType]
f8_e5m2: Final[DType]
f8_e4m3fn: Final[DType]
bf16: Final[DType]
f16: Final[DType]
f32: Final[DType]
f64: Final[DType]
c64: Final[DType]
c128: Final[DType]

def abs(x: TensorLike, /) -> Tensor:
    """Return the distance of each element from zero.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape of `x`; floats of half the width for complex numbers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.abs([1.5, -2.0]).tolist()
    [1.5, 2.0]
    """

def acos(x: TensorLike, /) -> Tensor:
    """Return the angle in radians whose cosine is each element.

    The result is NaN for real numbers outside [-1, 1].

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.acos([1.0, 0.0]).tolist()
    [0.0, 1.5707963705062866]
    """

def acosh(x: TensorLike, /) -> Tensor:
    """Return the number whose hyperbolic cosine is each element.

    The result is NaN for real numbers below 1.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.acosh([1.0, 2.0]).tolist()
    [0.0, 1.316957950592041]
    """

def add(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Add element by element; the operator ``+``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.add([1, 2], 0.5).tolist()
    [1.5, 2.5]
    """

def adjoint(x: TensorLike, /) -> Tensor:
    """Exchange the last two axes, and conjugate complex numbers. A vector is only conjugated.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.adjoint([[1 + 1j, 2 + 0j]]).tolist()
    [[(1-1j)], [(2-0j)]]
    """

def all(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Return whether no element is zero, as booleans.

    Parameters are the same as for `max`; elements of any dtype are accepted.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.all([[1, 0], [3, 4]], axis=1).tolist()
    [False, True]
    """

def all_close(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Return whether all elements are equal up to a tolerance.

    Parameters
    ----------
    x1, x2 : tensor_like
        Numbers; their shapes broadcast.
    rtol, atol : float
        Elements are close if ``abs(x1 - x2) <= atol + rtol * abs(x2)``. Equal infinities are
        close.
    equal_nan : bool
        If True, NaN is close to NaN.

    Returns
    -------
    Tensor
        A boolean scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.all_close([1.0, 2.0], [1.0, 2.00001]).item(), nx.all_close(1.0, 1.1).item()
    (True, False)
    """

def allclose(
    x1: TensorLike,
    x2: TensorLike,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Return whether all elements are equal up to a tolerance.

    This is `all_close` under numpy's name.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.allclose([1.0, 2.0], [1.0, 2.00001]).item()
    True
    """

def any(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Return whether an element is not zero, as booleans.

    Parameters are the same as for `max`; elements of any dtype are accepted.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.any([[0, 0], [3, 0]], axis=1).tolist()
    [False, True]
    """

def argmax(
    x: TensorLike,
    /,
    axis: Axis | None = None,
    *,
    keepdims: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Return the index of the maximum, or of the first NaN.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str, optional
        The axis; by default the result is the row-major index among all elements.
    keepdims : bool
        If True, keep the axis with size 1.
    tie_break : {"low", "high"}
        The selected index among equal elements: the first or the last. Among several NaN, the same
        rule selects.
    dtype : dtype_like
        The dtype of the index.

    Returns
    -------
    Tensor
        The indices, ``int32`` by default, with the shape of `x` without the axis; a scalar without
        `axis`.

    Raises
    ------
    DTypeError
        If `x` is complex.
    ShapeError
        If the axis does not exist.
    ArgumentError
        If the reduced axes have no elements.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.argmax([[1, 5], [3, 3]], axis=1).tolist()
    [1, 0]
    """

def argmin(
    x: TensorLike,
    /,
    axis: Axis | None = None,
    *,
    keepdims: bool = False,
    tie_break: Literal["low", "high"] = "low",
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Return the index of the minimum. Parameters and errors are the same as for `argmax`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.argmin([3, 1, 1], tie_break="high").item()
    2
    """

def argsort(
    x: TensorLike,
    /,
    axis: Axis = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    dtype: DTypeLike = "int32",
) -> Tensor:
    """Return the indices that sort the elements of an axis, with the shape of `x`.

    Parameters and errors are the same as for `sort`; `dtype` is the dtype of the indices, ``int32``
    by default.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.argsort([3, 1, 2]).tolist()
    [1, 2, 0]
    """

def asin(x: TensorLike, /) -> Tensor:
    """Return the angle in radians whose sine is each element.

    The result is NaN for real numbers outside [-1, 1].

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.asin([0.0, 1.0]).tolist()
    [0.0, 1.5707963705062866]
    """

def asinh(x: TensorLike, /) -> Tensor:
    """Return the number whose hyperbolic sine is each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.asinh([0.0, 1.0]).tolist()
    [0.0, 0.8813735842704773]
    """

def astype(x: TensorLike, dtype: DTypeLike, /) -> Tensor:
    """Convert elements to another dtype."""

def atan(x: TensorLike, /) -> Tensor:
    """Return the angle in radians whose tangent is each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.atan([0.0, 1.0]).tolist()
    [0.0, 0.7853981852531433]
    """

def atan2(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the angle in radians of the point (x2, x1).

    For complex numbers, the result is ``-i log((x2 + i x1) / sqrt(x1^2 + x2^2))``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Floats or complex numbers of the common shape; integers count as ``float32``.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.atan2([1.0, -1.0], [-1.0, 1.0]).tolist()
    [2.356194496154785, -0.7853981852531433]
    """

def atanh(x: TensorLike, /) -> Tensor:
    """Return the number whose hyperbolic tangent is each element.

    The result is NaN for real numbers outside [-1, 1].

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.atanh([0.0, 0.5]).tolist()
    [0.0, 0.5493061542510986]
    """

def avg_pool(
    x: TensorLike,
    /,
    window: PerAxis,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
    channels_last: bool = False,
    count_padding: bool = False,
) -> Tensor:
    """Return the means of windows.

    Padding contains zeros. The other parameters and the errors are the same as for `max_pool`.

    Parameters
    ----------
    count_padding : bool
        If True, padding counts as zeros; otherwise the mean excludes padding.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.avg_pool([[[1.0, 5.0, 2.0]]], (2,), padding="same").tolist()
    [[[3.0, 2.0]]]
    """

def batch_norm(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    /,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    *,
    axis: Axis = -1,
    epsilon: float = 1e-05,
) -> Tensor:
    """Normalize channels by a known mean and variance, then scale and shift them.

    S. Ioffe and C. Szegedy, "Batch normalization" (2015), for inference; `batch_norm_train` is
    for training.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.
    mean, variance : tensor_like
        A number for each channel.
    scale, bias : tensor_like, optional
        A number for each channel.
    axis : int or str
        The axis of the channels.
    epsilon : float
        A constant that is added to the variance.

    Raises
    ------
    ShapeError
        If the axis does not exist, or a vector has another size.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.batch_norm([[1.0, 2.0]], [1.0, 0.0], [1.0, 4.0], epsilon=0.0).tolist()
    [[0.0, 1.0]]
    """

def bitcast(x: TensorLike, dtype: DTypeLike, /) -> Tensor:
    """Reinterpret the bits of elements as another dtype of the same width.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    dtype : dtype_like
        A real dtype of the same width.

    Raises
    ------
    ArgumentError
        If the widths differ.
    DTypeError
        If a dtype is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> hex(nx.bitcast(1.0, nx.uint32).item())
    '0x3f800000'
    """

def bitwise_and(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Keep the bits that both have; the operator ``&``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype; booleans if both are booleans.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_and(12, 10).item()
    8
    """

def bitwise_invert(x: TensorLike, /) -> Tensor:
    """Invert every bit; the operator ``~``.

    A boolean is negated.

    Parameters
    ----------
    x : tensor_like
        Integers or booleans.

    Returns
    -------
    Tensor
        Integers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_invert([0, 1]).tolist()
    [-1, -2]
    """

def bitwise_left_shift(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Shift bits to the left; the operator ``<<``.

    Zero once all bits have been shifted out.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_left_shift(1, [0, 1, 4]).tolist()
    [1, 2, 16]
    """

def bitwise_or(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Join the bits of both; the operator ``|``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype; booleans if both are booleans.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_or(12, 10).item()
    14
    """

def bitwise_right_shift(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Shift bits to the right; the operator ``>>``.

    Signed integers keep their sign.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_right_shift([-8, 8], 1).tolist()
    [-4, 4]
    """

def bitwise_xor(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Keep the bits that one of the two has; the operator ``^``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype; booleans if both are booleans.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.bitwise_xor(12, 10).item()
    6
    """

def broadcast_arrays(*arrays: TensorLike) -> tuple[Tensor, ...]:
    """Broadcast several tensors to their common shape.

    Raises
    ------
    ArgumentError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> [x.tolist() for x in nx.broadcast_arrays([1, 2], 3)]
    [[1, 2], [3, 3]]
    """

def broadcast_to(
    x: TensorLike, /, shape: Shape, *, axes: Sequence[int] | None = None, names: Names | None = None
) -> Tensor:
    """Broadcast a tensor to a shape.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    shape : int or sequence of int
        The sizes of the result.
    axes : sequence of int, optional
        The axis of the result that each axis of `x` becomes, increasing; the last ones by
        default.
    names : sequence of (str or None), optional
        The names of the axes of the result; the names of `x` are dropped.

    Raises
    ------
    ArgumentError
        If a size of `x` is neither 1 nor the size of the result.
    ShapeError
        If `x` has more axes than the result.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    >>> nx.broadcast_to([1, 2], (2, 2), axes=[0]).tolist()
    [[1, 1], [2, 2]]
    """

def cbrt(x: TensorLike, /) -> Tensor:
    """Return the cube root of each element, also of negative ones.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cbrt([8.0, -27.0]).tolist()
    [2.0, -3.0]
    """

def ceil(x: TensorLike, /) -> Tensor:
    """Return the smallest whole number that is not below each element.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.ceil([1.5, -1.5]).tolist()
    [2.0, -1.0]
    """

def celu(x: TensorLike, /, *, alpha: float = 1) -> Tensor:
    """Return the elements that are positive, and ``alpha * (exp(x / alpha) - 1)`` for the others.

    J. T. Barron, "Continuously differentiable exponential linear units" (2017).

    Parameters, result and errors are the same as for `elu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.celu([-100.0, 2.0], alpha=0.5).tolist()
    [-0.5, 2.0]
    """

def cholesky(x: TensorLike, /, *, upper: bool = False) -> Tensor:
    """Return the Cholesky factor of symmetric (Hermitian) positive definite matrices.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes; only the lower triangle is read.
    upper : bool
        If True, return the upper triangular factor.

    Returns
    -------
    Tensor
        ``L`` with ``L @ adjoint(L) == x``, or its adjoint. NaN where a matrix is not positive
        definite.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """

def clip(x: TensorLike, /, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Limit elements to a range.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    min, max : tensor_like, optional
        The limits; where a minimum exceeds the maximum, the maximum wins.

    Returns
    -------
    Tensor
        The limited elements. Shapes broadcast, and dtypes promote.

    Raises
    ------
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.clip([1, 5, 9], 2, 8).tolist(), nx.clip([1, 5, 9], max=4).tolist()
    ([2, 5, 8], [1, 4, 4])
    """

def complex(real: TensorLike, imag: TensorLike, /) -> Tensor:
    """Make complex numbers of their parts.

    Infinities and NaN of one part leave the other alone.

    Parameters
    ----------
    real, imag : tensor_like
        Real numbers; their shapes broadcast.

    Returns
    -------
    Tensor
        ``complex128`` if a part is ``float64``, else ``complex64``.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If a part is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.complex([1.0, 2.0], -1.0).tolist()
    [(1-1j), (2-1j)]
    """

def concat(arrays: Sequence[TensorLike], /, axis: Axis | None = 0) -> Tensor:
    """Concatenate tensors along an axis.

    Parameters
    ----------
    arrays : sequence of tensor_like
        At least one; their shapes are equal but for `axis`, their dtypes promote.
    axis : int or str, optional
        The axis; None flattens the tensors first.

    Raises
    ------
    ArgumentError
        If `arrays` is empty, or other axes differ in size.
    ShapeError
        If the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.concat([[1, 2], [3.5]]).tolist()
    [1.0, 2.0, 3.5]
    """

def conj(x: TensorLike, /) -> Tensor:
    """Return the complex conjugate of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.conj([1 + 2j]).tolist()
    [(1-2j)]
    """

def conv(
    x: TensorLike,
    kernel: TensorLike,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    input_dilation: PerAxis | None = None,
    kernel_dilation: PerAxis | None = None,
    feature_groups: int = 1,
    batch_groups: int = 1,
    input_permutation: Axes | None = None,
    kernel_permutation: Axes | None = None,
    output_permutation: Axes | None = None,
) -> Tensor:
    """Convolve an input with a kernel, as neural networks define it.

    The kernel is not flipped (it is a cross-correlation).

    Parameters
    ----------
    x : tensor_like
        Axes: batch, channels, then the spatial ones.
    kernel : tensor_like
        Axes: output channels, input channels, then the spatial ones.
    strides : int or sequence of int, optional
        The stride along each spatial axis; 1 by default.
    padding : {"valid", "same"} or sequence of (int, int)
        Zeros around the spatial axes: none, ``dilation * (window - 1)`` for any strides, or pairs
        for each axis.
    input_dilation, kernel_dilation : int or sequence of int, optional
        The dilation: the distance of elements, with zeros in between; 1 by default.
    feature_groups, batch_groups : int
        Groups of channels, or of the batch, that are convolved separately.
    input_permutation, kernel_permutation, output_permutation : sequence of int or str, optional
        Orders of axes for other layouts: where the axes named above are found.

    Returns
    -------
    Tensor
        A tensor with the axes batch, output channels, and spatial axes; a spatial axis has size
        0 if the kernel does not fit. Integers become ``float32``.

    Raises
    ------
    ArgumentError
        If there are fewer than three axes, or if channels do not match.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.reshape(nx.arange(5), (1, 1, 5))
    >>> nx.conv(x, [[[1, 0, -1]]]).tolist()
    [[[-2.0, -2.0, -2.0]]]
    """

def copysign(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the magnitude of the first with the sign of the second.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real numbers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Floats of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.copysign([1.0, -2.0], -0.0).tolist()
    [-1.0, -2.0]
    """

def cos(x: TensorLike, /) -> Tensor:
    """Return the cosine of each element, in radians.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cos([0.0, 1.0]).tolist()
    [1.0, 0.5403022766113281]
    """

def cosh(x: TensorLike, /) -> Tensor:
    """Return the hyperbolic cosine of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cosh([0.0, 1.0]).tolist()
    [1.0, 1.5430806875228882]
    """

def cosine_similarity(
    x1: TensorLike, x2: TensorLike, /, *, axis: Axis = -1, epsilon: float = 1e-08
) -> Tensor:
    """Return cosines of the angles between vectors.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real numbers, which broadcast.
    axis : int or str
        The axis of the parts of a vector.
    epsilon : float
        The lower bound of the vector norms, which avoids a division by zero.

    Returns
    -------
    Tensor
        Cosines from -1 to 1, without the axis. The cosine distance is 1 minus the result.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.nn.cosine_similarity([1.0, 0.0], [1e30, 1e30]).item(), 4)
    0.7071
    """

def count_leading_zeros(x: TensorLike, /) -> Tensor:
    """Count the zero bits above the highest one bit.

    Parameters
    ----------
    x : tensor_like
        Integers.

    Returns
    -------
    Tensor
        Integers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.count_leading_zeros([0, 1, -1]).tolist()
    [32, 31, 0]
    """

def count_nonzero(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Count the elements that are not zero, as ``int32``. Parameters are the same as for `max`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.count_nonzero([[0, 1], [2, 3]]).item()
    3
    """

def covariance(
    x: TensorLike,
    /,
    mean: TensorLike | None = None,
    *,
    correction: int = 0,
    ddof: int | None = None,
) -> Tensor:
    """Return the covariance of columns.

    Parameters
    ----------
    x : tensor_like
        Matrices, one row for each observation, in the last two axes.
    mean : tensor_like, optional
        One number for each column; computed by default.
    correction : int
        The correction: sums are divided by the number of rows minus this number.
    ddof : int, optional
        NumPy's name of `correction`.

    Returns
    -------
    Tensor
        A matrix with a row and a column for each column of `x`.

    Raises
    ------
    ShapeError
        If there are fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.covariance([[1.0, 2.0], [3.0, 6.0]]).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

def cross(x1: TensorLike, x2: TensorLike, /, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements.

    Parameters
    ----------
    x1, x2 : tensor_like
        Vectors along one axis; the other axes broadcast.
    axis : int
        The axis, of size 3 in both; counted from the end where they have other ranks.

    Raises
    ------
    ShapeError
        If the size of the axis is not 3, or the other axes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.cross([1, 0, 0], [0, 1, 0]).tolist()
    [0, 0, 1]
    """

def cumulative_max(x: TensorLike, /, axis: Axis | None = None, *, reverse: bool = False) -> Tensor:
    """Return the maximum of all elements up to and including each one.

    Parameters and errors are the same as for `cumulative_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cumulative_max([1, 3, 2]).tolist()
    [1, 3, 3]
    """

def cumulative_min(x: TensorLike, /, axis: Axis | None = None, *, reverse: bool = False) -> Tensor:
    """Return the minimum of all elements up to and including each one.

    Parameters and errors are the same as for `cumulative_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cumulative_min([3, 1, 2]).tolist()
    [3, 1, 1]
    """

def cumulative_prod(
    x: TensorLike,
    /,
    axis: Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Return the product of all elements up to and including each one.

    Parameters and errors are the same as for `cumulative_sum`; the product of no element is
    one.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.cumulative_prod([1, 2, 3], include_initial=True).tolist()
    [1, 1, 2, 6]
    """

def cumulative_sum(
    x: TensorLike,
    /,
    axis: Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Return the sum of all elements up to and including each one.

    Parameters
    ----------
    x : tensor_like
        Numbers, with at least one axis.
    axis : int or str, optional
        The axis; optional for a tensor with one axis.
    dtype : dtype_like, optional
        The dtype of the accumulation and of the result; by default as for `sum`.
    include_initial : bool
        If True, the result starts with the empty sum, zero, and the axis is longer by one.
    reverse : bool
        If True, accumulate from the end.

    Returns
    -------
    Tensor
        The sums, with the shape of `x`; the axis is longer by one with `include_initial`.

    Raises
    ------
    ArgumentError
        If `axis` is omitted and `x` has several axes.

    Examples
    --------
    >>> import nxla as nx
    >>> x = [1, 2, 3]
    >>> nx.cumulative_sum(x).tolist(), nx.cumulative_sum(x, reverse=True).tolist()
    ([1, 3, 6], [6, 5, 3])
    """

def det(x: TensorLike, /) -> Tensor:
    """Return the determinant of square matrices.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.det([[2.0, 3.0], [1.0, 4.0]]).item()
    5.0
    """

def diagonal(x: TensorLike, /, offset: int = 0) -> Tensor:
    """Return a diagonal of each matrix.

    Parameters
    ----------
    x : tensor_like
        Matrices in the last two axes.
    offset : int
        The number of columns to the right of the main diagonal; outside the matrices the result
        is empty.

    Raises
    ------
    ShapeError
        If an operand has fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.diagonal([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """

def diff(
    x: TensorLike,
    /,
    n: int = 1,
    axis: Axis = -1,
    *,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> Tensor:
    """Subtract each element from the next.

    Parameters
    ----------
    x : tensor_like
        Numbers, with at least one axis.
    n : int
        The order of the difference.
    axis : int or str
        The axis; it gets shorter by `n`.
    prepend, append : tensor_like, optional
        Values to prepend and append: numbers, or tensors with the shape of `x` except along
        `axis`.

    Raises
    ------
    ShapeError
        If the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.diff([1, 4, 9]).tolist(), nx.diff([1, 4, 9], n=2).tolist()
    ([3, 5], [2])
    """

def digamma(x: TensorLike, /) -> Tensor:
    """Return the derivative of `lgamma` of each element.

    It is infinite at zero, and NaN at negative whole numbers. Computed by Lanczos'
    approximation, as `lgamma` is.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> [round(x, 4) for x in nx.digamma([1.0, 5.0]).tolist()]
    [-0.5772, 1.5061]
    """

def divide(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Divide element by element; the operator ``/``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Floats or complex numbers of the common shape; integers count as ``float32``.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.divide([1, 2], 4).tolist()
    [0.25, 0.5]
    """

def dot(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    x1_contract: Axes | None = None,
    x2_contract: Axes | None = None,
    x1_batch: Axes | None = None,
    x2_batch: Axes | None = None,
) -> Tensor:
    """Multiply and sum over given axes.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands.
    x1_contract, x2_contract : int or str, or a sequence, optional
        The axes to sum over, in pairs. By default, the last axis of
        `x1` and the last but one of `x2` (the last one of a vector); a scalar has no such axis.
    x1_batch, x2_batch : int or str, or a sequence, optional
        Batch axes; they must be the first axes of both operands.

    Returns
    -------
    Tensor
        The batch axes, then the free axes of `x1`, then the free axes of `x2`.

    Raises
    ------
    ShapeError
        If paired axes differ in size.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.dot([1, 2, 3], [4, 5, 6]).item()
    32
    >>> nx.dot(nx.ones((5, 2, 3)), nx.ones((5, 3)), x1_contract=2, x2_contract=1,
    ...        x1_batch=0, x2_batch=0).shape
    (5, 2)
    """

def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    /,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
) -> Tensor:
    """Return means of values, weighted by the similarity of queries and keys.

    A. Vaswani et al., "Attention is all you need" (2017); with fewer heads of keys than of
    queries J. Ainslie et al., "GQA: training generalized multi-query transformer models from
    multi-head checkpoints" (2023). Computed in 32 bits at least.

    Parameters
    ----------
    query : tensor_like
        Of shape (..., T, N, H): T queries with N heads of H features.
    key : tensor_like
        Of shape (..., S, K, H); K divides N.
    value : tensor_like
        Of shape (..., S, K, V).
    bias : tensor_like, optional
        Added to the products of queries and keys; broadcasts to (..., N, T, S).
    mask : tensor_like, optional
        False, or 0, where a query must not see a key; broadcasts to (..., N, T, S). A query
        with no visible key attends to all keys equally.
    scale : float, optional
        The factor of the products of queries and keys; ``1 / sqrt(H)`` by default.
    is_causal : bool
        If True, a query does not see keys after its own position.

    Returns
    -------
    Tensor
        Of shape (..., T, N, V), and the dtype of the queries.

    Raises
    ------
    ShapeError
        If the shapes are inconsistent.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.reshape(nx.arange(6.0), (3, 1, 2))
    >>> nx.nn.dot_product_attention(nx.zeros((3, 1, 2)), x, x, is_causal=True).tolist()
    [[[0.0, 1.0]], [[1.0, 2.0]], [[2.0, 3.0]]]
    """

def eigvalsh(x: TensorLike, /) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, as `eigh` computes them.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.all_close(nx.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]), [1.0, 3.0]).item()
    True
    """

def elu(x: TensorLike, /, *, alpha: float = 1) -> Tensor:
    """Return the elements that are positive, and ``alpha * (exp(x) - 1)`` for the others.

    D.-A. Clevert et al., "Fast and accurate deep network learning by exponential linear units"
    (2015). Result and errors are the same as for `relu`.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.
    alpha : float
        The scale of the negative part, whose limit is ``-alpha``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.elu([-100.0, 2.0]).tolist()
    [-1.0, 2.0]
    """

def embedding(table: TensorLike, x: TensorLike, /) -> Tensor:
    """Return rows of a table by index.

    Parameters
    ----------
    table : tensor_like
        Rows along the first axis.
    x : tensor_like
        Integers, from 0 on; an index out of range selects the nearest row.

    Returns
    -------
    Tensor
        A tensor with the axes of `x`, followed by the axes of a row.

    Raises
    ------
    DTypeError
        If `x` has no integers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.embedding([[1.0, 2.0], [3.0, 4.0]], [1, 0]).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """

def equal(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return whether the elements are equal; the operator ``==``.

    NaN is not equal to any number, including NaN.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Booleans of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.equal([1, 2], 2).tolist()
    [False, True]
    """

def erf(x: TensorLike, /) -> Tensor:
    """Return the error function of each element.

    ``2 / sqrt(pi)`` times the integral of ``exp(-t^2)`` from 0 to ``x``.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.erf([0.0, 1.0]).tolist()
    [0.0, 0.8427007794380188]
    """

def erf_inv(x: TensorLike, /) -> Tensor:
    """Return the number whose error function is each element.

    Defined between -1 and 1; NaN elsewhere.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.erf_inv([0.0, 0.5]).tolist()
    [0.0, 0.4769362807273865]
    """

def erfc(x: TensorLike, /) -> Tensor:
    """Return ``1 - erf(x)``, which is accurate also where ``erf(x)`` is near 1.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.erfc([0.0, 3.0]).tolist()
    [1.0, 2.2090496713644825e-05]
    """

def exp(x: TensorLike, /) -> Tensor:
    """Return e to the power of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.exp([0.0, 1.0]).tolist()
    [1.0, 2.7182817459106445]
    """

def expand_dims(
    x: TensorLike, /, axis: int | Sequence[int] = 0, *, name: str | None = None
) -> Tensor:
    """Insert an axis of size 1.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    axis : int or sequence of int
        The position of the new axis in the result, or the positions of several.
    name : str, optional
        The name of the axis, if it is one.

    Raises
    ------
    ArgumentError
        If a position is out of range or repeated, or if a name is passed for several axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.expand_dims([1, 2], axis=-1).tolist()
    [[1], [2]]
    >>> nx.expand_dims([1, 2], axis=(0, -1)).shape
    (1, 2, 1)
    """

def expm(x: TensorLike, /) -> Tensor:
    """Return the matrix exponential.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes; integers count as ``float32``.

    Returns
    -------
    Tensor
        Matrices of the shape of `x`.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Notes
    -----
    N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005),
    with the approximant of degree 13.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """

def expm1(x: TensorLike, /) -> Tensor:
    """Return ``exp(x) - 1``, which is accurate also near zero.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.expm1([0.0, 1e-7]).tolist()
    [0.0, 1.000000082740371e-07]
    """

def fft(
    x: TensorLike,
    /,
    n: int | None = None,
    axis: Axis = -1,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the discrete Fourier transform along an axis.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.
    n : int, optional
        The number of elements; the axis is truncated or padded with zeros. All elements by
        default.
    axis : int or str
        The axis.
    norm : {"backward", "ortho", "forward"}
        The normalization: ``"backward"`` divides the inverse transform by the number of elements,
        ``"ortho"`` divides both transforms by its square root, and ``"forward"`` divides the
        forward transform by the number.

    Returns
    -------
    Tensor
        Complex numbers.

    Raises
    ------
    ShapeError
        If the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fft([1.0, 2.0, 3.0, 4.0]).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    """

def fft2(
    x: TensorLike,
    /,
    s: Sequence[int] | None = None,
    axes: tuple[Axis, Axis] = (-2, -1),
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the discrete Fourier transform along two axes.

    Parameters
    ----------
    x : tensor_like
        Numbers, with at least two axes.
    s : (int, int), optional
        The number of elements along each axis.
    axes : (int or str, int or str)
        The axes.
    norm : {"backward", "ortho", "forward"}
        As for `fft`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fft2([[1.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """

def fftn(
    x: TensorLike,
    /,
    s: Sequence[int] | None = None,
    axes: Axes | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the discrete Fourier transform along several axes.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.
    s : sequence of int, optional
        The number of elements along each axis, which is truncated or padded with zeros.
    axes : int or str, or a sequence, optional
        The axes; by default as many of the last as `s` has entries, or all.
    norm : {"backward", "ortho", "forward"}
        As for `fft`.

    Returns
    -------
    Tensor
        Complex numbers.

    Raises
    ------
    ShapeError
        If an axis does not exist.
    ArgumentError
        If `s` has not one entry for each axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fftn([[1.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """

def fftshift(x: TensorLike, /, axes: Axes | None = None) -> Tensor:
    """Move the element of frequency 0 to the middle of each axis.

    Parameters
    ----------
    x : tensor_like
        A tensor.
    axes : int or str, or a sequence, optional
        The axes; all by default.

    Returns
    -------
    Tensor
        A tensor with the shape and the dtype of `x`.

    Raises
    ------
    ShapeError
        If an axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.fftshift([0, 1, 2, -2, -1]).tolist()
    [-2, -1, 0, 1, 2]
    """

def flatten(x: TensorLike, /, *, axes: Axes | None = None) -> Tensor:
    """Merge adjacent axes into one; all axes by default.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    axes : int or str, or a sequence, optional
        The axes. A scalar without axes becomes a vector of size 1.

    Raises
    ------
    ArgumentError
        If the axes are not neighbors in increasing order.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.flatten([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """

def flip(x: TensorLike, /, axis: Axes | None = None) -> Tensor:
    """Reverse the order of elements along axes, along all by default.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    axis : int or str, or a sequence, optional
        The axes; all by default.

    Raises
    ------
    ShapeError
        If the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.flip([1, 2, 3]).tolist()
    [3, 2, 1]
    """

def floor(x: TensorLike, /) -> Tensor:
    """Return the largest whole number that is not above each element.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.floor([1.5, -1.5]).tolist()
    [1.0, -2.0]
    """

def floor_divide(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Divide and round toward minus infinity; the operator ``//``.

    The quotient of an integer by zero is unspecified, and not an error.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.floor_divide([7, -7], 2).tolist()
    [3, -4]
    """

def fmod(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the remainder of the division rounded toward zero.

    A result that is not zero has the sign of the dividend, as in C.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fmod([7, -7], 3).tolist()
    [1, -1]
    """

def gather(x: TensorLike, indices: TensorLike, /, *, axes: Axes | None = None) -> Tensor:
    """Return elements, or slices, at tuples of indices.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    indices : tensor_like
        Integers; the last axis holds the tuples. Negative ones count from the end.
    axes : sequence of int or str, optional
        The axes of `x` that the numbers of a tuple index, in increasing order; the first axes
        by default.

    Returns
    -------
    Tensor
        The axes of `indices` except the last one, then the axes of `x` that are not indexed.

    Raises
    ------
    ShapeError
        If the tuples have more numbers than `x` has axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.gather([[1, 2], [3, 4]], [[1, 1], [0, 1]]).tolist()
    [4, 2]
    """

def gelu(x: TensorLike, /, *, approximate: bool = True) -> Tensor:
    """Return each element times the probability that a normal variable is below it.

    D. Hendrycks and K. Gimpel, "Gaussian error linear units" (2016).

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.
    approximate : bool
        If True, approximate the probability with a hyperbolic tangent, which is also the default
        of JAX. PyTorch uses the exact form by default.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.nn.gelu(1.0).item(), 4), round(nx.nn.gelu(1.0, approximate=False).item(), 4)
    (0.8412, 0.8413)
    """

def glu(x: TensorLike, /, axis: Axis = -1) -> Tensor:
    """Return one half of an axis times the sigmoid of the other: a gated linear unit.

    Y. N. Dauphin et al., "Language modeling with gated convolutional networks" (2016).
    Parameters and errors are the same as for `softmax`.

    Raises
    ------
    ArgumentError
        If the size of the axis is odd.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.glu([2.0, 4.0, 0.0, 100.0]).tolist()
    [1.0, 4.0]
    """

def greater(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return whether the first element is larger; the operator ``>``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real operands; their shapes broadcast.

    Returns
    -------
    Tensor
        Booleans of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.greater([1, 2], 1).tolist()
    [False, True]
    """

def greater_equal(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return whether the first element is larger or equal; the operator ``>=``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real operands; their shapes broadcast.

    Returns
    -------
    Tensor
        Booleans of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.greater_equal([1, 2], 2).tolist()
    [False, True]
    """

def group_norm(
    x: TensorLike,
    /,
    groups: int,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    *,
    axis: Axis = -1,
    epsilon: float = 1e-05,
) -> Tensor:
    """Normalize groups of channels of each example to mean 0 and variance 1, then scale and shift
    each channel.

    Y. Wu and K. He, "Group normalization" (2018).

    Parameters
    ----------
    x : tensor_like
        Examples along the first axis.
    groups : int
        The number of groups; one group for each channel is instance normalization.
    scale, bias : tensor_like, optional
        A number for each channel.
    axis : int or str
        The axis of the channels.
    epsilon : float
        A constant that is added to the variance.

    Raises
    ------
    ArgumentError
        If the groups do not divide the channels, or the channels are along the first axis.
    ShapeError
        If the axis does not exist, or scale or bias have another size.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.group_norm([[1.0, 3.0, 5.0, 5.0]], 2, epsilon=1e-12).tolist()
    [[-1.0, 1.0, 0.0, 0.0]]
    """

def hard_sigmoid(x: TensorLike, /) -> Tensor:
    """Return a sigmoid of straight lines, ``relu6(x + 3) / 6``.

    A. Howard et al., "Searching for MobileNetV3" (2019). Operand, result and errors are the
    same as for
    `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.hard_sigmoid([-5.0, 0.0, 5.0]).tolist()
    [0.0, 0.5, 1.0]
    """

def hard_silu(x: TensorLike, /) -> Tensor:
    """Return ``x * hard_sigmoid(x)``.

    A. Howard et al., "Searching for MobileNetV3" (2019). Operand, result and errors are the
    same as for
    `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.hard_silu([-5.0, 0.0, 5.0]).tolist()
    [-0.0, 0.0, 5.0]
    """

def hard_tanh(x: TensorLike, /) -> Tensor:
    """Limit elements to the range from -1 to 1.

    R. Collobert, "Large scale machine learning" (2004). Operand, result and errors are the same
    as for
    `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.hard_tanh([-3.0, 0.5]).tolist()
    [-1.0, 0.5]
    """

def hfft(
    x: TensorLike,
    /,
    n: int | None = None,
    axis: Axis = -1,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the real transform of a signal with Hermitian symmetry, from its first half.

    Parameters are the same as for `fft`; `n` is the number of elements of the result, by
    default
    ``2 * (m - 1)`` for ``m`` elements of `x`.

    Returns
    -------
    Tensor
        Floats.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.hfft([1.0, 0.0, 0.0]).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

def huber_loss(predictions: TensorLike, targets: TensorLike, /, *, delta: float = 1) -> Tensor:
    """Return the Huber loss: half of squared distances where they are small, and linear elsewhere.

    P. J. Huber, "Robust estimation of a location parameter" (1964).

    Parameters
    ----------
    predictions, targets : tensor_like
        Real numbers, which broadcast.
    delta : float
        The distance at which lines begin.

    Raises
    ------
    ArgumentError
        If `delta` is negative.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.huber_loss([0.5, 10.0], [0.0, 0.0]).tolist()
    [0.125, 9.5]
    """

def hypot(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the distance of the point (x1, x2) from the origin without overflow.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real numbers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Floats of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.hypot(3.0, 4.0).item()
    5.0
    """

def ifft(
    x: TensorLike,
    /,
    n: int | None = None,
    axis: Axis = -1,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the inverse discrete Fourier transform.

    Parameters and errors are the same as for `fft`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ifft([6.0, -2.0 + 2.0j, -2.0, -2.0 - 2.0j]).tolist()
    [0j, (1+0j), (2+0j), (3+0j)]
    """

def ifft2(
    x: TensorLike,
    /,
    s: Sequence[int] | None = None,
    axes: tuple[Axis, Axis] = (-2, -1),
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the inverse of `fft2`, with its parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ifft2([[4.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """

def ifftn(
    x: TensorLike,
    /,
    s: Sequence[int] | None = None,
    axes: Axes | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the inverse of `fftn`, with its parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ifftn([[4.0, 0.0], [0.0, 0.0]]).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """

def ifftshift(x: TensorLike, /, axes: Axes | None = None) -> Tensor:
    """Undo `fftshift`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ifftshift([-2, -1, 0, 1, 2]).tolist()
    [0, 1, 2, -2, -1]
    """

def ihfft(
    x: TensorLike,
    /,
    n: int | None = None,
    axis: Axis = -1,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the inverse of `hfft`. Parameters are the same as for `fft`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.ihfft([1.0, 1.0, 1.0, 1.0]).tolist()
    [(1-0j), -0j, -0j]
    """

def imag(x: TensorLike, /) -> Tensor:
    """Return the imaginary part of each element.

    The result is zero for real numbers.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.imag([1 + 2j, 3 - 4j]).tolist()
    [2.0, -4.0]
    """

def indexed_add(
    x: TensorLike, indices: TensorLike, updates: TensorLike, /, *, axes: Axes | None = None
) -> Tensor:
    """Add values at tuples of indices; values for the same index are summed.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    indices : tensor_like
        Integers; the last axis holds the tuples, as for `gather`.
    updates : tensor_like
        A tensor with the shape of the result of `gather` for these indices.
    axes : sequence of int or str, optional
        As for `gather`.

    Raises
    ------
    ShapeError
        If the updates have another shape.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.indexed_add([0, 0, 0], [[1], [1], [2]], [5, 6, 7]).tolist()
    [0, 11, 7]
    """

def indexed_put(
    x: TensorLike, indices: TensorLike, updates: TensorLike, /, *, axes: Axes | None = None
) -> Tensor:
    """Write values at tuples of indices; the last value for an index is kept.

    Parameters are the same as for `indexed_add`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.indexed_put([0, 0, 0], [[1], [2]], [5, 7]).tolist()
    [0, 5, 7]
    """

def interp(
    x: TensorLike,
    xp: TensorLike,
    fp: TensorLike,
    /,
    left: TensorLike | None = None,
    right: TensorLike | None = None,
    period: float | None = None,
) -> Tensor:
    """Return values of a piecewise linear function.

    Parameters
    ----------
    x : tensor_like
        Where to evaluate it: real numbers of any shape.
    xp, fp : tensor_like
        The points: two vectors of equal length. `xp` must increase unless there is a period.
    left, right : tensor_like, optional
        The values before the first and after the last point; by default the values of these
        points.
    period : float, optional
        The period after which the function repeats itself; `left` and `right` do not matter
        then.

    Raises
    ------
    ShapeError
        If the points are not two non-empty vectors of equal length.
    ArgumentError
        If the period is 0.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.interp([0.5, 2.5, 9.0], [0.0, 1.0, 3.0], [0.0, 10.0, 30.0]).tolist()
    [5.0, 25.0, 30.0]
    """

def inv(x: TensorLike, /) -> Tensor:
    """Return the inverse of square matrices.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes.

    Returns
    -------
    Tensor
        Floats or complex numbers; NaN where a matrix is singular.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """

def irfft(
    x: TensorLike,
    /,
    n: int | None = None,
    axis: Axis = -1,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the inverse of `rfft`.

    Parameters are the same as for `fft`; `n` is the number of elements of the result, by
    default
    ``2 * (m - 1)`` for ``m`` elements of `x`.

    Returns
    -------
    Tensor
        Floats.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.irfft([1.0, 1.0, 1.0]).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """

def irfftn(
    x: TensorLike,
    /,
    s: Sequence[int] | None = None,
    axes: Axes | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the inverse of `rfftn`, with its parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.irfftn(nx.ones((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

def isclose(
    x1: TensorLike,
    x2: TensorLike,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Return for each element whether it is equal up to a tolerance.

    Parameters
    ----------
    x1, x2 : tensor_like
        Numbers; their shapes broadcast.
    rtol, atol : float
        Elements are close if ``abs(x1 - x2) <= atol + rtol * abs(x2)``. Equal infinities are
        close.
    equal_nan : bool
        If True, NaN is close to NaN.

    Returns
    -------
    Tensor
        Booleans.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isclose([1.0, 2.0], [1.0, 2.1]).tolist()
    [True, False]
    """

def isfinite(x: TensorLike, /) -> Tensor:
    """Return whether each element is neither infinite nor NaN.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Booleans of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isfinite([1.0, float("inf"), float("nan")]).tolist()
    [True, False, False]
    """

def isinf(x: TensorLike, /) -> Tensor:
    """Return whether each element is infinite.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Booleans of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isinf([1.0, float("-inf")]).tolist()
    [False, True]
    """

def isnan(x: TensorLike, /) -> Tensor:
    """Return whether each element is NaN.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Booleans of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.isnan([1.0, float("nan")]).tolist()
    [False, True]
    """

def kl_divergence(
    log_predictions: TensorLike, targets: TensorLike, /, *, axis: Axis = -1
) -> Tensor:
    """Return the Kullback-Leibler divergence.

    S. Kullback and R. A. Leibler, "On information and sufficiency" (1951).

    Parameters
    ----------
    log_predictions : tensor_like
        Logarithms of probabilities.
    targets : tensor_like
        Probabilities; a probability of 0 contributes nothing.
    axis : int or str
        The axis of the classes.

    Returns
    -------
    Tensor
        ``sum(targets * (log(targets) - log_predictions))``, without the axis.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.nn.kl_divergence(nx.log([0.5, 0.5]), [1.0, 0.0]).item(), 4)
    0.6931
    """

def kron(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Multiply each element of one tensor with all of the other, as blocks.

    The Kronecker product. The operand with fewer axes is padded with leading axes.

    Parameters
    ----------
    x1, x2 : tensor_like
        Numbers.

    Returns
    -------
    Tensor
        A tensor whose sizes are the products of the sizes of the operands.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.kron([1, 10], [1, 2, 3]).tolist()
    [1, 2, 3, 10, 20, 30]
    """

def layer_norm(
    x: TensorLike,
    /,
    scale: TensorLike | None = None,
    bias: TensorLike | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-05,
) -> Tensor:
    """Normalize elements along some axes to mean 0 and variance 1, then scale and shift them.

    J. L. Ba et al., "Layer normalization" (2016).

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``. Statistics of narrow floats are computed in
        32 bits.
    scale, bias : tensor_like, optional
        Tensors with the shape of the normalized axes.
    axis : int or str, or a sequence
        The axes.
    epsilon : float
        A constant that is added to the variance.

    Returns
    -------
    Tensor
        A tensor with the shape and dtype of `x`.

    Raises
    ------
    ShapeError
        If an axis does not exist, or scale or bias have other sizes.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.layer_norm([1.0, 3.0], bias=[10.0, 20.0], epsilon=0.0).tolist()
    [9.0, 21.0]
    """

def leaky_relu(x: TensorLike, /, *, negative_slope: float = 0.01) -> Tensor:
    """Return the elements that are positive, and a fraction of the others.

    A. L. Maas et al., "Rectifier nonlinearities improve neural network acoustic models" (2013).
    Result and errors are the same as for `relu`.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.
    negative_slope : float
        The fraction.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.leaky_relu([-2.0, 2.0], negative_slope=0.5).tolist()
    [-1.0, 2.0]
    """

def least_squares(a: TensorLike, b: TensorLike, /, *, rtol: TensorLike | None = None) -> Tensor:
    """Return the ``x`` of least norm that minimizes the norm of ``a @ x - b``.

    Parameters
    ----------
    a : tensor_like
        Matrices in the last two axes.
    b : tensor_like
        For each of them a vector, or a matrix with as many rows.
    rtol : float or tensor_like, optional
        As for `pinv`.

    Raises
    ------
    ShapeError
        If an operand has fewer than two axes, or the right side does not match.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.linalg.least_squares([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> nx.all_close(x, [1.0, 2.0], atol=1e-5).item()
    True
    """

def less(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return whether the first element is smaller; the operator ``<``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real operands; their shapes broadcast.

    Returns
    -------
    Tensor
        Booleans of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.less([1, 2], 2).tolist()
    [True, False]
    """

def less_equal(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return whether the first element is smaller or equal; the operator ``<=``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real operands; their shapes broadcast.

    Returns
    -------
    Tensor
        Booleans of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.less_equal([1, 2], 1).tolist()
    [True, False]
    """

def lgamma(x: TensorLike, /) -> Tensor:
    """Return the logarithm of the absolute value of the gamma function of each element.

    It is infinite at zero and at negative whole numbers. Computed by Lanczos' approximation
    (SIAM Journal on Numerical Analysis, 1964), and by a Taylor series from 0.5 to 2.5, around
    the zeros at 1 and 2. The zeros at negative numbers have only an absolute accuracy.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> [round(x, 4) for x in nx.lgamma([0.5, 5.0]).tolist()]
    [0.5724, 3.1781]
    """

def log(x: TensorLike, /) -> Tensor:
    """Return the natural logarithm of each element.

    The result is NaN for negative real numbers, and minus infinity for zero.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.log([1.0, 2.0]).tolist()
    [0.0, 0.6931471824645996]
    """

def log10(x: TensorLike, /) -> Tensor:
    """Return the logarithm to base 10 of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.log10([1.0, 100.0]).tolist()
    [0.0, 2.0]
    """

def log1mexp(x: TensorLike, /) -> Tensor:
    """Return ``log(1 - exp(-x))`` of positive numbers without loss of digits.

    M. Mächler, "Accurately computing ``log(1 - exp(-|a|))``" (2012). Operand, result and errors
    are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.nn.log1mexp(1e-10).item(), 3)
    -23.026
    """

def log1p(x: TensorLike, /) -> Tensor:
    """Return the natural logarithm of ``1 + x``, which is accurate also near zero.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.log1p([0.0, 1e-7]).tolist()
    [0.0, 9.999999406318238e-08]
    """

def log2(x: TensorLike, /) -> Tensor:
    """Return the logarithm to base 2 of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.log2([1.0, 8.0]).tolist()
    [0.0, 3.0]
    """

def log_sigmoid(x: TensorLike, /) -> Tensor:
    """Return ``log(sigmoid(x))`` without overflow.

    Operand, result and errors are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.log_sigmoid([-1000.0, 1000.0]).tolist()
    [-1000.0, -0.0]
    """

def log_softmax(x: TensorLike, /, axis: Axis = -1) -> Tensor:
    """Return the logarithm of `softmax` without overflow or loss of digits.

    Parameters, result and errors are the same as for `softmax`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.log_softmax([0.0, 1000.0]).tolist()
    [-1000.0, 0.0]
    """

def logaddexp(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return log(exp(x1) + exp(x2)) without overflow.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real numbers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Floats of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logaddexp(1000.0, 1000.0).item()
    1000.6931762695312
    """

def logical_and(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return whether both elements are nonzero.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Booleans of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logical_and([0, 1, 2], 1).tolist()
    [False, True, True]
    """

def logical_not(x: TensorLike, /) -> Tensor:
    """Return whether each element is zero.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Booleans of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logical_not([0, 1, 2]).tolist()
    [True, False, False]
    """

def logical_or(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return whether at least one of the elements is nonzero.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Booleans of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logical_or([0, 1], 0).tolist()
    [False, True]
    """

def logical_xor(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return whether exactly one of the elements is nonzero.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Booleans of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logical_xor([0, 1], 1).tolist()
    [True, False]
    """

def logsumexp(
    x: TensorLike,
    /,
    axis: Axes | None = None,
    *,
    keepdims: bool = False,
    scale: TensorLike | None = None,
) -> Tensor:
    """Return the logarithm of the sum of exponentials, without overflow.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        If True, keep these axes with size 1.
    scale : tensor_like, optional
        A factor for each exponential.

    Returns
    -------
    Tensor
        The logarithms, with the shape of `x` without the reduced axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.logsumexp([1000.0, 1000.0]).item()
    1000.6931762695312
    """

def make_diagonal(x: TensorLike, /, offset: int = 0) -> Tensor:
    """Return a matrix with a vector on a diagonal and zeros elsewhere.

    Parameters
    ----------
    x : tensor_like
        A vector.
    offset : int
        The diagonal: the number of columns to the right of the main diagonal, negative for the
        left.

    Raises
    ------
    ShapeError
        If `x` is not a vector.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.make_diagonal([1, 2]).tolist()
    [[1, 0], [0, 2]]
    """

def matmul(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Multiply matrices; the operator ``@``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Matrices in the last two axes; the other axes broadcast. A vector counts as a row on the
        left and as a column on the right, and the result does not have the added axis.

    Returns
    -------
    Tensor
        The products, of shape (..., rows of `x1`, columns of `x2`); the dtypes promote.

    Raises
    ------
    ShapeError
        If the number of columns of `x1` differs from the number of rows of `x2`, if other axes do
        not broadcast, or if an operand is a scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.matmul([[1, 2], [3, 4]], [5, 6]).tolist()
    [17, 39]
    """

def matrix_norm(
    x: TensorLike, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] = "fro"
) -> Tensor:
    """Return the norm of the matrices in the last two axes.

    Parameters
    ----------
    x : tensor_like
        Numbers, with at least two axes; integers count as ``float32``.
    keepdims : bool
        If True, keep the last two axes with size 1.
    ord : {1, 2, inf, -1, -2, -inf, "fro", "nuc"}
        As for `norm` of matrices.

    Raises
    ------
    ArgumentError
        If the order is not supported.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]]).item()
    5.0
    >>> nx.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]], ord="nuc").item()
    7.0
    """

def matrix_power(x: TensorLike, n: int, /) -> Tensor:
    """Return powers of square matrices.

    Parameters
    ----------
    x : tensor_like
        Square matrices in the last two axes.
    n : int
        The exponent; 0 returns the identity, a negative exponent uses the inverse.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.matrix_power([[1, 1], [0, 1]], 5).tolist()
    [[1, 5], [0, 1]]
    """

def matrix_rank(x: TensorLike, /, *, rtol: TensorLike | None = None) -> Tensor:
    """Return the numerical rank of each matrix.

    Parameters
    ----------
    x : tensor_like
        Matrices in the last two axes.
    rtol : float or tensor_like, optional
        Values up to this multiple of the largest one do not count: one number, or one for each
        matrix. By default the larger side times
        the precision of the dtype.

    Returns
    -------
    Tensor
        ``int32``; 0 for a matrix with NaN.

    Raises
    ------
    ShapeError
        If an operand has fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).item()
    1
    """

def max(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the maximum, or NaN if an element is NaN.

    The maximum of no element is the smallest value of the dtype: minus infinity for floats.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        If True, keep these axes with size 1.

    Returns
    -------
    Tensor
        The maxima, with the dtype of `x` and the shape of `x` without the reduced axes.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.max([[1, 5], [3, 4]], axis=1).tolist()
    [5, 4]
    """

def max_pool(
    x: TensorLike,
    /,
    window: PerAxis,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
    channels_last: bool = False,
) -> Tensor:
    """Return the maxima of windows.

    Parameters
    ----------
    x : tensor_like
        Real numbers with axes for examples, channels, and one for each size of the window.
    window : int or sequence of int
        The size of the window, for all axes except examples and channels, or for each.
    strides : int or sequence of int, optional
        The stride of the windows; their size by default.
    padding : {"valid", "same"} or sequence of (int, int)
        The padding, with the lowest value of the dtype: none (``"valid"``); as much as
        ``ceil(size / stride)`` windows need (``"same"``, as in JAX); or pairs ``(before, after)``
        for each axis.
    dilations : int or sequence of int, optional
        The distance between the elements of a window; 1 by default.
    channels_last : bool
        If True, channels are the last axis, as in JAX and Keras, instead of the second.

    Raises
    ------
    ShapeError
        If `x` has another number of axes.
    ArgumentError
        If strides, padding or dilations have another number of entries.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.max_pool([[[1.0, 5.0, 2.0, 3.0]]], (2,)).tolist()
    [[[5.0, 3.0]]]
    >>> nx.nn.max_pool(nx.reshape(nx.arange(16), (1, 1, 4, 4)), 2).tolist()
    [[[[5, 7], [13, 15]]]]
    """

def maximum(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the larger of two elements; NaN if one of them is NaN.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.maximum([1, 5], 3).tolist()
    [3, 5]
    """

def mean(
    x: TensorLike,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
) -> Tensor:
    """Return the arithmetic mean.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    dtype : dtype_like, optional
        The dtype of the computation and of the result; by default the dtype of `x`, or ``float32``
        for integers.
    keepdims : bool
        If True, keep these axes with size 1.

    Returns
    -------
    Tensor
        The means, with the shape of `x` without the reduced axes.

    Raises
    ------
    ShapeError
        If an axis does not exist or is repeated.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.mean([[1, 2], [3, 4]], axis=0).tolist()
    [2.0, 3.0]
    >>> nx.mean([1, 2], dtype="f64").dtype
    f64
    """

def median(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the median: the middle element, or the mean of two of them for an even number.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        If True, keep these axes with size 1.

    Returns
    -------
    Tensor
        The medians, with the shape of `x` without the reduced axes, ``float32`` for integers.

    Raises
    ------
    ShapeError
        If an axis does not exist or is repeated.
    ArgumentError
        If the reduced axes have no elements.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.median([3, 1, 2]).item(), nx.median([4.0, 1.0, 2.0, 3.0]).item()
    (2, 2.5)
    """

def min(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the minimum, or NaN if an element is NaN.

    The minimum of no element is the largest value of the dtype: infinity for floats.
    Parameters and errors are the same as for `max`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.min([[1, 5], [3, 4]], axis=1).tolist()
    [1, 3]
    """

def minimum(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the smaller of two elements; NaN if one of them is NaN.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.minimum([1, 5], 3).tolist()
    [1, 3]
    """

def mish(x: TensorLike, /) -> Tensor:
    """Return ``x * tanh(softplus(x))``.

    D. Misra, "Mish: a self regularized non-monotonic activation function" (2019). Operand,
    result and errors are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.nn.mish(1.0).item(), 4)
    0.8651
    """

def mode(x: TensorLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the most frequent element, the smallest of several.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str, optional
        The axis; all elements by default.
    keepdims : bool
        If True, keep the axis with size 1.

    Returns
    -------
    Tensor
        The elements, with the dtype of `x` and the shape of `x` without the axis.

    Raises
    ------
    ShapeError
        If the axis does not exist.
    ArgumentError
        If the axis has no elements.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.mode([3, 1, 3, 2]).item()
    3
    """

def multiply(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Multiply element by element; the operator ``*``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.multiply([[1], [2]], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """

def nanargmax(x: TensorLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the largest element that is not NaN; -1 if all elements are NaN.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str, optional
        The axis; by default the result is the row-major index among all elements.
    keepdims : bool
        If True, keep the axis with size 1.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanargmax([float("nan"), 1.0, 2.0]).item()
    2
    """

def nanargmin(x: TensorLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest element that is not NaN; -1 if all elements are NaN.

    Parameters are the same as for `nanargmax`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanargmin([float("nan"), 1.0, 2.0]).item()
    1
    """

def nancumprod(x: TensorLike, /, axis: Axis | None = None) -> Tensor:
    """Return the cumulative product along an axis, with NaN as 1.

    Parameters are the same as for `nancumsum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nancumprod([2.0, float("nan"), 3.0]).tolist()
    [2.0, 2.0, 6.0]
    """

def nancumsum(x: TensorLike, /, axis: Axis | None = None) -> Tensor:
    """Return the cumulative sum along an axis, with NaN as 0.

    Parameters
    ----------
    x : tensor_like
        Numbers; narrow integers are summed in 32 bits.
    axis : int or str, optional
        The axis; by default the elements in row-major order.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nancumsum([1.0, float("nan"), 3.0]).tolist()
    [1.0, 1.0, 4.0]
    """

def nanmax(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the maximum of the elements that are not NaN, or NaN if all are.

    Parameters are the same as for `nansum`, but for complex numbers, which have no order.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanmax([[1.0, float("nan")], [float("nan")] * 2], axis=1).tolist()
    [1.0, nan]
    """

def nanmean(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the mean of the elements that are not NaN; NaN if all elements are NaN.

    Parameters are the same as for `nansum`; integers become floats.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanmean([1.0, float("nan"), 3.0]).item()
    2.0
    """

def nanmedian(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the median of the elements that are not NaN, as a float; NaN if all are NaN.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        If True, keep these axes with size 1.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanmedian([1.0, float("nan"), 3.0]).item()
    2.0
    """

def nanmin(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the minimum of the elements that are not NaN, or NaN if all are.

    Parameters are the same as for `nanmax`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanmin([float("nan"), 2.0, 1.0]).item()
    1.0
    """

def nanpercentile(
    x: TensorLike,
    q: TensorLike,
    /,
    axis: Axes | None = None,
    *,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Return percentiles of the elements that are not NaN; NaN if all elements are NaN.

    Parameters and errors are the same as for `percentile`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanpercentile([1.0, float("nan"), 3.0], 100).item()
    3.0
    """

def nanprod(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Multiply the elements that are not NaN. Parameters are the same as for `nansum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanprod([2.0, float("nan"), 3.0]).item()
    6.0
    """

def nanquantile(
    x: TensorLike,
    q: TensorLike,
    /,
    axis: Axes | None = None,
    *,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Return quantiles of the elements that are not NaN; NaN if all elements are NaN.

    Parameters and errors are the same as for `quantile`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanquantile([1.0, float("nan"), 3.0], 0.5).item()
    2.0
    """

def nanstd(
    x: TensorLike,
    /,
    axis: Axes | None = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """Return the standard deviation of the elements that are not NaN.

    The root of `nanvar`, with its parameters.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanstd([1.0, float("nan"), 5.0]).item()
    2.0
    """

def nansum(x: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Sum the elements that are not NaN.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype; narrow integers are summed in 32 bits, and booleans count as
        ``int32``.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        If True, keep these axes with size 1.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nansum([1.0, float("nan"), 3.0]).item()
    4.0
    """

def nanvar(
    x: TensorLike,
    /,
    axis: Axes | None = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """Return the variance of the elements that are not NaN.

    The result is NaN if their number is at most the correction.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    correction : float
        The sum is divided by the number of elements minus this number; 1 for a sample.
    ddof : float, optional
        NumPy's name of `correction`.
    keepdims : bool
        If True, keep these axes with size 1.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nanvar([1.0, float("nan"), 3.0]).item()
    1.0
    """

def negative(x: TensorLike, /) -> Tensor:
    """Negate each element; the operator ``-``.

    Unsigned integers wrap.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.negative([1, -2]).tolist()
    [-1, 2]
    """

def nextafter(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the next representable number after the first operand toward the second.

    If the operands are equal, the result is the second one.

    Parameters
    ----------
    x1, x2 : tensor_like
        Real numbers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Floats of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nextafter(1.0, [0.0, 2.0]).tolist()
    [0.9999999403953552, 1.0000001192092896]
    """

def norm(
    x: TensorLike,
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Axes | None = None,
    *,
    keepdims: bool = False,
) -> Tensor:
    """Return the length of vectors, or a norm of matrices.

    The number of axes selects one of `vector_norm` and `matrix_norm`.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    ord : float or {"fro", "nuc"}, optional
        By default the root of the sum of squares, which is ``"fro"`` for matrices. For vectors a
        number ``p`` means
        ``sum(abs(x) ** p) ** (1 / p)``, 0 counts what is not 0, infinity is the largest
        magnitude, and minus infinity the smallest. For matrices 1 and infinity mean the largest
        sum of a column or a row, 2 the largest singular value, their negatives the smallest of
        these, and
        ``"nuc"`` the sum of the singular values.
    axis : int or str, or a sequence, optional
        One axis for vectors, two for matrices; all by default.
    keepdims : bool
        If True, keep these axes with size 1.

    Raises
    ------
    ArgumentError
        If the order is not supported.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.norm([3.0, 4.0]).item(), nx.linalg.norm([3.0, -4.0], ord=1).item()
    (5.0, 7.0)
    """

def not_equal(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return whether the elements differ; the operator ``!=``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands of any dtype; their shapes broadcast.

    Returns
    -------
    Tensor
        Booleans of the common shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.not_equal([1, 2], 2).tolist()
    [True, False]
    """

def one_hot(
    x: TensorLike, /, num_classes: int, *, axis: int = -1, dtype: DTypeLike = "float32"
) -> Tensor:
    """Return one-hot vectors: 1 at the index that each integer selects on a new axis, 0 elsewhere.

    Parameters
    ----------
    x : tensor_like
        Integers; an integer outside the range produces zeros.
    num_classes : int
        The size of the new axis.
    axis : int
        The position of the new axis in the result.
    dtype : dtype_like
        The dtype of the result.

    Raises
    ------
    DTypeError
        If `x` has no integers.
    ArgumentError
        If the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.one_hot([1, 0], 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """

def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Multiply every element of one tensor by every element of the other.

    Complex elements of `x2` are conjugated, as in Nx. `nxla.linalg.outer` conjugates nothing.

    Returns
    -------
    Tensor
        A row for each element of `x1`, a column for each of `x2`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """

def pad(
    x: TensorLike,
    value: TensorLike,
    config: Sequence[tuple[int, int] | tuple[int, int, int]] | None = None,
    /,
) -> Tensor:
    """Pad a tensor with a value, around and between the elements.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    value : number or scalar tensor
        The fill value.
    config : sequence of tuples
        For each axis ``(before, after)`` or ``(before, after, between)``. Negative numbers cut
        elements off.

    Raises
    ------
    ShapeError
        If the number of tuples differs from the number of axes, or the value is not a scalar.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.pad([1, 2], 0, [(1, 2)]).tolist(), nx.pad([1, 2, 3], 0, [(-1, 0, 1)]).tolist()
    ([0, 1, 2, 0, 0], [0, 2, 0, 3])
    """

def percentile(
    x: TensorLike,
    q: TensorLike,
    /,
    axis: Axes | None = None,
    *,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Return percentiles: the values below which percentages of the elements lie.

    It is `quantile` with `q` from 0 to 100.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.percentile([1.0, 2.0, 3.0, 10.0], 50).item()
    2.5
    """

def permute_dims(x: TensorLike, /, axes: Axes | None = None) -> Tensor:
    """Reorder the axes.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    axes : sequence of int or str, optional
        The axis of `x` for each axis of the result; the reverse order by default.

    Raises
    ------
    ShapeError
        If the axes are not a permutation.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.permute_dims([[1, 2], [3, 4]], (1, 0)).tolist()
    [[1, 3], [2, 4]]
    """

def phase(x: TensorLike, /) -> Tensor:
    """Return the angle in radians of each complex element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.phase([1j, -1 + 0j]).tolist()
    [1.5707963705062866, 3.1415927410125732]
    """

def pinv(x: TensorLike, /, *, rtol: TensorLike | None = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverse of matrices.

    Parameters
    ----------
    x : tensor_like
        Matrices in the last two axes.
    rtol : float or tensor_like, optional
        Singular values up to this multiple of the largest one count as 0. By default the larger
        side times the precision of the dtype.

    Raises
    ------
    ShapeError
        If an operand has fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """

def population_count(x: TensorLike, /) -> Tensor:
    """Count the bits that are one.

    Parameters
    ----------
    x : tensor_like
        Integers.

    Returns
    -------
    Tensor
        Integers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.population_count([0, 7, 8]).tolist()
    [0, 3, 1]
    """

def pow(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Raise to a power; the operator ``**``.

    An integer raised to a negative power is 1 for 1, ±1 for -1, else 0: convert one of
    the two to floats for fractions.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.pow([1, 2, 3], 2).tolist()
    [1, 4, 9]
    """

def prod(
    x: TensorLike,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
) -> Tensor:
    """Multiply the elements. Parameters and errors are the same as for `sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.prod([[1, 2], [3, 4]], axis=1).tolist()
    [2, 12]
    """

def put_diagonal(x: TensorLike, diagonal: TensorLike, /, offset: int = 0) -> Tensor:
    """Replace a diagonal of a matrix.

    Parameters
    ----------
    x : tensor_like
        A matrix.
    diagonal : tensor_like
        A vector of the new elements; the dtypes promote.
    offset : int
        As for `make_diagonal`.

    Raises
    ------
    ShapeError
        If `x` is not a matrix, or `diagonal` does not have the length of the diagonal.
    ArgumentError
        If the diagonal is outside the matrix.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.put_diagonal([[1, 2], [3, 4]], [7, 8]).tolist()
    [[7, 2], [3, 8]]
    """

def put_slice(x: TensorLike, starts: Sequence[TensorLike], update: TensorLike, /) -> Tensor:
    """Write a block into a copy of a tensor.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    starts : sequence of int or integer scalar
        The start of the block along each axis, moved so that the block fits.
    update : tensor_like
        The block; the dtypes promote.

    Raises
    ------
    ShapeError
        If the block is larger than the tensor, or has another number of axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.put_slice([1, 2, 3, 4], [1], [8, 9]).tolist()
    [1, 8, 9, 4]
    """

def quantile(
    x: TensorLike,
    q: TensorLike,
    /,
    axis: Axes | None = None,
    *,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Return quantiles: the values below which fractions of the elements lie.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``. NaN in `x` produces NaN.
    q : tensor_like
        From 0 to 1: one fraction, or a vector, whose axis comes first in the result.
        Other values produce NaN.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    method : {"linear", "lower", "higher", "midpoint", "nearest"}
        The result for a quantile between two elements.
    keepdims : bool
        If True, keep these axes with size 1.

    Raises
    ------
    ArgumentError
        If `x` is empty.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.quantile([1.0, 2.0, 3.0, 10.0], [0.0, 0.5, 1.0]).tolist()
    [1.0, 2.5, 10.0]
    """

def quotient(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Divide integers and round toward zero.

    Parameters
    ----------
    x1, x2 : tensor_like
        Integers; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Integers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is not an integer.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.quotient([7, -7], 2).tolist()
    [3, -3]
    """

def real(x: TensorLike, /) -> Tensor:
    """Return the real part of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Floats of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.real([1 + 2j, 3 - 4j]).tolist()
    [1.0, 3.0]
    """

def reciprocal(x: TensorLike, /) -> Tensor:
    """Divide one by each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.reciprocal([2.0, 4.0]).tolist()
    [0.5, 0.25]
    """

def relu(x: TensorLike, /) -> Tensor:
    """Return the elements that are positive, and 0 in place of the others.

    K. Fukushima, "Visual feature extraction by a multilayered network of analog threshold
    elements" (1969). The derivative at 0 is 0.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        A tensor with the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.relu([-1.0, 2.0]).tolist()
    [0.0, 2.0]
    """

def relu6(x: TensorLike, /) -> Tensor:
    """Limit elements to the range from 0 to 6.

    A. Krizhevsky, "Convolutional deep belief networks on CIFAR-10" (2010). Operand, result and
    errors are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.relu6([-1.0, 2.0, 9.0]).tolist()
    [0.0, 2.0, 6.0]
    """

def remainder(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Return the remainder of `floor_divide`; the operator ``%``.

    A result that is not zero has the sign of the divisor, as in Python. `fmod` is the
    remainder with the sign of the dividend.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.remainder([7, -7], 3).tolist()
    [1, 2]
    """

def rename(x: TensorLike, names: Names, /) -> Tensor:
    """Rename the axes.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    names : sequence of (str or None)
        One for each axis.

    Raises
    ------
    ShapeError
        If the number of names differs from the number of axes.
    ArgumentError
        If a name is repeated.

    Examples
    --------
    >>> import nxla as nx
    >>> rows = nx.rename([[1, 2], [3, 4]], ["row", None])
    >>> nx.sum(rows, axis="row").tolist()
    [4, 6]
    """

def reshape(
    x: TensorLike,
    /,
    shape: Shape,
    *sizes: int,
    names: Names | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Change the shape; the elements keep their row-major order.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    shape : int or sequence of int
        The new sizes. One of them may be -1; it follows from the number of elements.
    *sizes : int
        Further sizes, if `shape` is an int.
    names : sequence of (str or None), optional
        The names of the new axes.
    copy : bool, optional
        Part of the standard. It makes no difference: tensors never change.

    Returns
    -------
    Tensor
        A tensor with the new shape, and the dtype and elements of `x`.

    Raises
    ------
    ArgumentError
        If the number of elements differs.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """

def rfft(
    x: TensorLike,
    /,
    n: int | None = None,
    axis: Axis = -1,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the non-redundant half of the Fourier transform of real numbers.

    Parameters are the same as for `fft`.

    Returns
    -------
    Tensor
        Complex numbers, ``n // 2 + 1`` along the axis.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.rfft([1.0, 0.0, 0.0, 0.0]).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """

def rfftn(
    x: TensorLike,
    /,
    s: Sequence[int] | None = None,
    axes: Axes | None = None,
    norm: Literal["backward", "ortho", "forward"] = "backward",
) -> Tensor:
    """Return the non-redundant half of the Fourier transform of real numbers along several axes.

    The last axis is transformed by `rfft`, the others by `fft`.

    Parameters are the same as for `fftn`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.fft.rfftn([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).shape
    (2, 2)
    """

def rms_norm(
    x: TensorLike, /, scale: TensorLike | None = None, *, axis: Axes = -1, epsilon: float = 1e-06
) -> Tensor:
    """Normalize elements along some axes to a mean square of 1, then scale them.

    B. Zhang and R. Sennrich, "Root mean square layer normalization" (2019).

    Parameters, result and errors are the same as for `layer_norm`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.rms_norm([1.0, -1.0], [2.0, 3.0], epsilon=0.0).tolist()
    [2.0, -3.0]
    """

def rot90(x: TensorLike, /, k: int = 1, axes: Axes | None = None) -> Tensor:
    """Rotate a plane by multiples of 90 degrees, from its first axis to its second.

    Parameters
    ----------
    x : tensor_like
        A tensor with at least two axes.
    k : int
        The number of rotations by 90 degrees; negative numbers rotate in the other direction.
    axes : (int or str, int or str), optional
        The plane; the first two axes by default.

    Raises
    ------
    ShapeError
        If an axis does not exist, or both axes are the same.
    ArgumentError
        If there are not two of them.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """

def round(x: TensorLike, /) -> Tensor:
    """Round to the nearest integer; ties round to the even one.

    The real and imaginary parts of complex numbers are rounded separately.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.round([0.5, 1.5, 2.5]).tolist()
    [0.0, 2.0, 2.0]
    """

def round_half_away(x: TensorLike, /) -> Tensor:
    """Return the nearest whole number, of two equally near the one farther from zero.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.round_half_away([0.5, 1.5, -2.5]).tolist()
    [1.0, 2.0, -3.0]
    """

def rsqrt(x: TensorLike, /) -> Tensor:
    """Return one divided by the square root of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.rsqrt([4.0, 16.0]).tolist()
    [0.5, 0.25]
    """

def selu(x: TensorLike, /) -> Tensor:
    """Return `elu` with constants that keep mean and variance from layer to layer.

    G. Klambauer et al., "Self-normalizing neural networks" (2017). Operand, result and errors
    are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> [round(y, 4) for y in nx.nn.selu([-100.0, 1.0]).tolist()]
    [-1.7581, 1.0507]
    """

def sigmoid(x: TensorLike, /) -> Tensor:
    """Return 1 / (1 + exp(-x)) of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sigmoid([0.0, 100.0]).tolist()
    [0.5, 1.0]
    """

def sigmoid_binary_cross_entropy(logits: TensorLike, labels: TensorLike, /) -> Tensor:
    """Return the cross entropy of labels and the sigmoids of logits, element by element.

    Parameters
    ----------
    logits : tensor_like
        Real numbers.
    labels : tensor_like
        From 0 to 1; broadcasts with the logits.

    Returns
    -------
    Tensor
        A loss for each element.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.sigmoid_binary_cross_entropy([-1000.0, 1000.0], [1, 0]).tolist()
    [1000.0, 1000.0]
    """

def sign(x: TensorLike, /) -> Tensor:
    """Return -1, 0 or 1, with the sign of each element.

    A complex number that is not zero is divided by its magnitude. NaN stays NaN.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sign([-3, 0, 5]).tolist()
    [-1, 0, 1]
    """

def signbit(x: TensorLike, /) -> Tensor:
    """Return whether the sign bit of each element is set, including zeros and NaN.

    Parameters
    ----------
    x : tensor_like
        Real numbers.

    Returns
    -------
    Tensor
        Booleans of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.signbit([1.0, -0.0]).tolist()
    [False, True]
    """

def silu(x: TensorLike, /) -> Tensor:
    """Return ``x * sigmoid(x)``.

    S. Elfwing et al., "Sigmoid-weighted linear units for neural network function approximation
    in reinforcement learning" (2017), where it is SiLU; also known as swish. Operand, result
    and errors are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.silu([0.0, 100.0]).tolist()
    [0.0, 100.0]
    """

def sin(x: TensorLike, /) -> Tensor:
    """Return the sine of each element, in radians.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sin([0.0, 1.0]).tolist()
    [0.0, 0.8414709568023682]
    """

def sinh(x: TensorLike, /) -> Tensor:
    """Return the hyperbolic sine of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sinh([0.0, 1.0]).tolist()
    [0.0, 1.175201177597046]
    """

def slice(
    x: TensorLike,
    starts: Sequence[TensorLike],
    lengths: Sequence[int],
    /,
    *,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Return a block of a tensor.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    starts : sequence of int or integer scalar
        The start of the block along each axis, moved so that the block fits.
    lengths : sequence of int
        The length of the block along each axis, before strides.
    strides : sequence of int, optional
        The step between selected elements along each axis; 1 by default.

    Raises
    ------
    ShapeError
        If there is not one number for each axis.
    ArgumentError
        If the block is larger than the tensor.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, 2]).tolist()
    [[2, 3], [5, 6]]
    """

def slice_along_axis(
    x: TensorLike, start: TensorLike, length: int, /, axis: Axis = 0, *, stride: int = 1
) -> Tensor:
    """Return a range of one axis. Parameters and errors are the same as for `slice`, for one axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.slice_along_axis([1, 2, 3, 4], 1, 2).tolist()
    [2, 3]
    """

def soft_sign(x: TensorLike, /) -> Tensor:
    """Return ``x / (1 + abs(x))``.

    J. Turian et al., "Quadratic features and deep architectures for chunking" (2009). Operand,
    result and errors are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.soft_sign([-1.0, 3.0]).tolist()
    [-0.5, 0.75]
    """

def softmax(x: TensorLike, /, axis: Axis = -1) -> Tensor:
    """Return exponentials divided by their sum, without overflow.

    J. S. Bridle, "Probabilistic interpretation of feedforward classification network outputs"
    (1990).

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.
    axis : int or str
        The axis along which the results add up to 1.

    Returns
    -------
    Tensor
        A tensor with the shape and dtype of `x`.

    Raises
    ------
    ShapeError
        If the axis does not exist.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.softmax([1000.0, 1000.0]).tolist()
    [0.5, 0.5]
    """

def softmax_cross_entropy(logits: TensorLike, labels: TensorLike, /, *, axis: Axis = -1) -> Tensor:
    """Return ``-sum(labels * log_softmax(logits))``.

    Parameters
    ----------
    logits : tensor_like
        Real numbers.
    labels : tensor_like
        The probability of each class; 0 adds nothing, even for a logit of minus
        infinity.
    axis : int or str
        The axis of the classes.

    Returns
    -------
    Tensor
        A loss for each example, without the axis.

    Raises
    ------
    ShapeError
        If the axis does not exist, or shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> round(nx.nn.softmax_cross_entropy([0.0, 0.0], [0.5, 0.5]).item(), 4)
    0.6931
    """

def softmax_cross_entropy_with_integer_labels(
    logits: TensorLike, labels: TensorLike, /, *, axis: Axis = -1
) -> Tensor:
    """Return ``-log_softmax(logits)`` at integer class indices.

    Parameters
    ----------
    logits : tensor_like
        Real numbers.
    labels : tensor_like
        Integers from 0, of the shape of the logits without the axis.
    axis : int or str
        The axis of the classes.

    Returns
    -------
    Tensor
        A loss for each example, without the axis. The loss of a label that is not the index of
        a class is NaN, without a gradient.

    Raises
    ------
    ShapeError
        If the axis does not exist, or the labels have another shape.
    DTypeError
        If the labels are not integers.

    Examples
    --------
    >>> import nxla as nx
    >>> logits = [[0.0, 1000.0], [0.0, 0.0]]
    >>> loss = nx.nn.softmax_cross_entropy_with_integer_labels(logits, [0, 1])
    >>> [round(x, 4) for x in loss.tolist()]
    [1000.0, 0.6931]
    """

def softplus(x: TensorLike, /) -> Tensor:
    """Return ``log(1 + exp(x))`` without overflow.

    C. Dugas et al., "Incorporating second-order functional knowledge for better option pricing"
    (2001). Operand, result and errors are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.softplus([-1000.0, 1000.0]).tolist()
    [0.0, 1000.0]
    """

def sort(
    x: TensorLike, /, axis: Axis = -1, *, descending: bool = False, stable: bool = True
) -> Tensor:
    """Sort the elements of an axis; NaN counts as larger than everything.

    Parameters
    ----------
    x : tensor_like
        Real numbers.
    axis : int or str
        The axis.
    descending : bool
        If True, sort from the largest to the smallest.
    stable : bool
        If True, equal elements keep their order.

    Returns
    -------
    Tensor
        A tensor with the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sort([3, 1, 2]).tolist(), nx.sort([3, 1, 2], descending=True).tolist()
    ([1, 2, 3], [3, 2, 1])
    """

def sparse_plus(x: TensorLike, /) -> Tensor:
    """Return 0 below -1, the elements above 1, and a parabola between them.

    A. F. T. Martins and R. F. Astudillo, "From softmax to sparsemax" (2016). Operand, result
    and errors are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.sparse_plus([-2.0, 0.0, 3.0]).tolist()
    [0.0, 0.25, 3.0]
    """

def sparse_sigmoid(x: TensorLike, /) -> Tensor:
    """Return ``(x + 1) / 2`` limited to the range from 0 to 1: the derivative of `sparse_plus`.

    Operand, result and errors are the same as for `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.sparse_sigmoid([-2.0, 0.0, 3.0]).tolist()
    [0.0, 0.5, 1.0]
    """

def sqrt(x: TensorLike, /) -> Tensor:
    """Return the square root of each element.

    The result is NaN for negative real numbers.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sqrt([4.0, 2.0]).tolist()
    [2.0, 1.4142135381698608]
    """

def square(x: TensorLike, /) -> Tensor:
    """Return the square of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.square([1, -2, 3]).tolist()
    [1, 4, 9]
    """

def squared_error(predictions: TensorLike, targets: TensorLike, /) -> Tensor:
    """Return squared distances. Their mean is the mean squared error.

    Parameters
    ----------
    predictions, targets : tensor_like
        Real numbers, which broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.mean(nx.nn.squared_error([1.0, 2.0], [1.0, 5.0])).item()
    4.5
    """

def squareplus(x: TensorLike, /, *, b: float = 4) -> Tensor:
    """Return ``(x + sqrt(x ** 2 + b)) / 2``.

    J. T. Barron, "Squareplus: a softplus-like algebraic rectifier" (2021). Result and errors
    are the same as for `relu`.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers count as ``float32``.
    b : float
        The curvature at 0, a non-negative number; 0 is `relu`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.nn.squareplus([0.0, 1e30]).tolist()[0]
    1.0
    """

def squeeze(x: TensorLike, /, axis: Axes | None = None) -> Tensor:
    """Drop axes of size 1.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    axis : int or str, or a sequence, optional
        The axes; by default all of size 1.

    Raises
    ------
    ArgumentError
        If the size of an axis is not 1.
    ShapeError
        If an axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.squeeze([[1, 2]], axis=0).shape
    (2,)
    """

def stack(arrays: Sequence[TensorLike], /, axis: int = 0, *, name: str | None = None) -> Tensor:
    """Stack tensors of one shape along a new axis.

    Parameters
    ----------
    arrays : sequence of tensor_like
        At least one.
    axis : int
        The position of the new axis in the result.
    name : str, optional
        Its name.

    Raises
    ------
    ArgumentError
        If `arrays` is empty, the shapes differ, or the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.stack([[1, 2], [3, 4]], axis=1).tolist()
    [[1, 3], [2, 4]]
    """

def std(
    x: TensorLike,
    /,
    axis: Axes | None = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """Return the standard deviation, the root of `var`, with its parameters.

    Notes
    -----
    The squares are computed in the dtype of `x`, or in ``float32`` if it is narrower. They overflow
    from about 1e19 on in ``float32``; divide `x` by a number first if its elements are that large.
    The derivative for equal elements is NaN, because the root is not smooth at zero. A small number
    added to the variance makes it smooth: ``nx.sqrt(nx.var(x) + 1e-12)``.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.std([1.0, 3.0]).item()
    1.0
    """

def subtract(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Subtract element by element; the operator ``-``.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands; their shapes broadcast and their dtypes promote.

    Returns
    -------
    Tensor
        Numbers of the common shape and dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.subtract([3, 4], [1, 2]).tolist()
    [2, 2]
    """

def sum(
    x: TensorLike,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
) -> Tensor:
    """Sum the elements.

    Parameters
    ----------
    x : tensor_like
        Numbers of any dtype.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        If True, keep these axes with size 1.
    dtype : dtype_like, optional
        The dtype of the accumulation and of the result. By default, booleans and narrow signed
        integers become ``int32``, narrow unsigned integers ``uint32``; other dtypes do not change.

    Returns
    -------
    Tensor
        The sums, with the dtype `dtype` and the shape of `x` without the reduced axes.

    Raises
    ------
    ShapeError
        If an axis does not exist or is repeated.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.sum([[1, 2], [3, 4]]).item(), nx.sum([[1, 2], [3, 4]], axis=0).tolist()
    (10, [4, 6])
    """

def svdvals(x: TensorLike, /) -> Tensor:
    """Return the singular values of matrices, as `svd` computes them.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.svdvals([[0.0, 2.0], [1.0, 0.0]]).tolist()
    [2.0, 1.0]
    """

def swapaxes(x: TensorLike, /, axis1: Axis, axis2: Axis) -> Tensor:
    """Exchange two axes.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    axis1, axis2 : int or str
        The axes.

    Raises
    ------
    ShapeError
        If the axis does not exist.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.swapaxes(nx.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """

def take(x: TensorLike, indices: TensorLike, /, axis: Axis | None = None) -> Tensor:
    """Take elements of an axis by index.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    indices : tensor_like
        Integers of any shape; negative ones count from the end. An index that is still out of
        range selects the nearest element.
    axis : int or str, optional
        The axis; optional for a tensor with one axis.

    Returns
    -------
    Tensor
        A tensor with the shape of `x`, with the axes of `indices` in place of `axis`.
        If `indices` is a vector without an axis name, the new axis keeps the name of `axis`. If
        both axes have names, they must be equal.

    Raises
    ------
    ArgumentError
        If `axis` is omitted and `x` has several axes.
    DTypeError
        If the indices are not integers.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.take([10, 20, 30], [2, 0]).tolist()
    [30, 10]
    """

def take_along_axis(x: TensorLike, indices: TensorLike, /, axis: Axis = -1) -> Tensor:
    """Return one element of an axis for each index; the other axes are aligned.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    indices : tensor_like
        Integers, of the shape of `x` but for `axis`, or of one that broadcasts there; negative
        ones count from the end.
    axis : int or str
        The axis.

    Raises
    ------
    ShapeError
        If the other axes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> x = nx.tensor([[3, 1], [5, 9]])
    >>> nx.take_along_axis(x, nx.argsort(x)).tolist()
    [[1, 3], [5, 9]]
    """

def take_diagonal(x: TensorLike, /, offset: int = 0) -> Tensor:
    """Return a diagonal of the last two axes.

    Parameters
    ----------
    x : tensor_like
        At least two axes.
    offset : int
        The diagonal: the number of columns to the right of the main diagonal, negative for the
        left.

    Raises
    ------
    ShapeError
        If there are fewer than two axes.
    ArgumentError
        If the diagonal is outside the matrix.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.take_diagonal([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """

def tan(x: TensorLike, /) -> Tensor:
    """Return the tangent of each element, in radians.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tan([0.0, 1.0]).tolist()
    [0.0, 1.5574077367782593]
    """

def tanh(x: TensorLike, /) -> Tensor:
    """Return the hyperbolic tangent of each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.

    Returns
    -------
    Tensor
        Floats or complex numbers of the shape of `x`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tanh([0.0, 1.0]).tolist()
    [0.0, 0.7615941762924194]
    """

def tile(x: TensorLike, repetitions: PerAxis, /) -> Tensor:
    """Repeat a whole tensor along its axes.

    Parameters
    ----------
    x : tensor_like
        Any tensor.
    repetitions : int or sequence of int
        The number of copies along each axis. The shorter of `repetitions` and the shape is
        extended by ones in front; an integer applies to the last axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tile([1, 2], (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    >>> nx.tile([1, 2], 2).tolist()
    [1, 2, 1, 2]
    """

def top_k(x: TensorLike, /, k: int = 1) -> tuple[Tensor, Tensor]:
    """Return the largest elements of the last axis.

    Parameters
    ----------
    x : tensor_like
        Real numbers, with at least one axis. NaN counts as larger than everything.
    k : int
        The number of elements.

    Returns
    -------
    values, indices : Tensor
        The elements, the largest first, and where they are. Equal elements keep their order.

    Raises
    ------
    ArgumentError
        If the axis has fewer elements.

    Examples
    --------
    >>> import nxla as nx
    >>> [found.tolist() for found in nx.top_k([1, 9, 5], 2)]
    [[9, 5], [1, 2]]
    """

def trace(x: TensorLike, /, offset: int = 0, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return the sum of a diagonal of each matrix.

    Parameters
    ----------
    x : tensor_like
        Matrices in the last two axes.
    offset : int
        The number of columns to the right of the main diagonal; outside the matrices the sum is
        0.
    dtype : dtype_like, optional
        The dtype of the accumulation and of the result; by default as for `nxla.sum`.

    Raises
    ------
    ShapeError
        If an operand has fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.trace([[1, 2], [3, 4]]).item()
    5
    """

def triangular_solve(
    a: TensorLike,
    b: TensorLike,
    /,
    *,
    lower: bool = True,
    left_side: bool = True,
    transform: Literal["none", "transpose", "conjugate", "adjoint"] = "none",
) -> Tensor:
    """Solve ``a @ x == b`` for a triangular matrix.

    Parameters
    ----------
    a : tensor_like
        Square matrices in the last two axes; only one triangle is read.
    b : tensor_like
        Right sides: matrices with as many rows, or a vector.
    lower : bool
        If True, read the lower triangle of `a`, else the upper one.
    left_side : bool
        If True, solve ``a @ x == b``, else ``x @ a == b``.
    transform : {"none", "transpose", "conjugate", "adjoint"}
        The transformation of `a`. ``"conjugate"`` conjugates the matrix without transposing it,
        as in Nx; ``"adjoint"`` transposes and conjugates it. `lower` refers to the triangle of
        `a` before the transformation.

    Raises
    ------
    ShapeError
        If the matrices are not square, or the right side does not fit.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.linalg.triangular_solve([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0]).tolist()
    [1.0, 2.0]
    """

def tril(x: TensorLike, /, k: int = 0) -> Tensor:
    """Return the lower triangle of the last two axes, with zeros above a diagonal.

    Parameters
    ----------
    x : tensor_like
        At least two axes.
    k : int
        The diagonal: the number of columns to the right of the main diagonal.

    Raises
    ------
    ShapeError
        If there are fewer than two axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.tril([[1, 2], [3, 4]]).tolist()
    [[1, 0], [3, 4]]
    """

def triu(x: TensorLike, /, k: int = 0) -> Tensor:
    """Return the upper triangle of the last two axes, with zeros below a diagonal.

    Parameters and errors are the same as for `tril`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.triu([[1, 2], [3, 4]]).tolist()
    [[1, 2], [0, 4]]
    """

def trunc(x: TensorLike, /) -> Tensor:
    """Round each element toward zero.

    Parameters
    ----------
    x : tensor_like
        Real numbers; integers stay as they are.

    Returns
    -------
    Tensor
        Numbers of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.trunc([1.5, -1.5]).tolist()
    [1.0, -1.0]
    """

def var(
    x: TensorLike,
    /,
    axis: Axes | None = None,
    *,
    correction: float = 0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """Return the variance: the mean squared distance from the mean.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    correction : float
        The sum is divided by the number of elements minus this number; 1 for a sample.
    ddof : float, optional
        NumPy's name of `correction`.
    keepdims : bool
        If True, keep these axes with size 1.

    Returns
    -------
    Tensor
        The variances, with the shape of `x` without the reduced axes.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.var([1.0, 2.0, 3.0, 4.0]).item()
    1.25
    """

def vecdot(x1: TensorLike, x2: TensorLike, /, axis: Axis = -1) -> Tensor:
    """Multiply and sum over one axis of both; the other axes broadcast.

    Elements of `x1` are conjugated. The dtype is the promoted dtype of both operands.

    Parameters
    ----------
    x1, x2 : tensor_like
        Operands.
    axis : int or str
        The axis of the broadcast operands.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.vecdot([[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """

def weighted_mean(
    x: TensorLike, weights: TensorLike, /, axis: Axes | None = None, *, keepdims: bool = False
) -> Tensor:
    """Return the mean, with a weight for each element.

    Parameters
    ----------
    x : tensor_like
        Numbers; integers count as ``float32``.
    weights : tensor_like
        A tensor with the shape of `x`, or with one axis for each of `axis`.
    axis : int or str, or a sequence, optional
        The axes; all by default.
    keepdims : bool
        If True, keep these axes with size 1.

    Returns
    -------
    Tensor
        The means, with the shape of `x` without the reduced axes.

    Raises
    ------
    ShapeError
        If the weights have another shape.
    ArgumentError
        If the weights have another shape and `axis` is omitted.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.weighted_mean([1.0, 3.0], [3, 1]).item()
    1.5
    """

def window_max(
    x: TensorLike,
    dimensions: PerAxis,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Return the maximum of each window. Parameters and errors are the same as for `window_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_max([1, 4, 2, 3], (2,)).tolist()
    [4, 4, 3]
    """

def window_mean(
    x: TensorLike,
    dimensions: PerAxis,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Return the mean of each window; padding counts as zeros.

    Parameters and errors are the same as for `window_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_mean([1, 2, 3, 4], (2,)).tolist()
    [1.5, 2.5, 3.5]
    """

def window_min(
    x: TensorLike,
    dimensions: PerAxis,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Return the minimum of each window. Parameters and errors are the same as for `window_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_min([1, 4, 2, 3], (2,)).tolist()
    [1, 2, 2]
    """

def window_product(
    x: TensorLike,
    dimensions: PerAxis,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Multiply the elements of each window.

    Parameters and errors are the same as for `window_sum`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_product([1, 2, 3, 4], (2,)).tolist()
    [2, 6, 12]
    """

def window_scatter_max(
    x: TensorLike,
    source: TensorLike,
    initial: TensorLike,
    dimensions: PerAxis,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
) -> Tensor:
    """Add each element of a source at the maximum of its window.

    It is the gradient of `window_max`. Of several equal elements, the last one in row-major order
    receives the source element. A NaN counts as larger than a number, and an element after a NaN
    counts as larger than the NaN.

    Parameters
    ----------
    x : tensor_like
        The tensor that determines the windows.
    source : tensor_like
        One element for each window.
    initial : number or scalar tensor
        The initial value of the result.
    dimensions, strides, padding
        As for `window_sum`.

    Returns
    -------
    Tensor
        A tensor with the shape of `x`.

    Raises
    ------
    ShapeError
        If the source has not one element for each window.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_scatter_max([1, 4, 2, 3], [10, 20], 0, (2,), strides=2).tolist()
    [0, 10, 0, 20]
    """

def window_scatter_min(
    x: TensorLike,
    source: TensorLike,
    initial: TensorLike,
    dimensions: PerAxis,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
) -> Tensor:
    """Add each element of a source at the minimum of its window.

    Parameters and errors are the same as for `window_scatter_max`.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_scatter_min([1, 4, 2, 3], [10, 20], 0, (2,), strides=2).tolist()
    [10, 0, 20, 0]
    """

def window_sum(
    x: TensorLike,
    dimensions: PerAxis,
    /,
    *,
    strides: PerAxis | None = None,
    padding: Padding = "valid",
    dilations: PerAxis | None = None,
) -> Tensor:
    """Sum the elements of each window.

    Parameters
    ----------
    x : tensor_like
        Numbers.
    dimensions : int or sequence of int
        The size of the window, along all axes or along each.
    strides : int or sequence of int, optional
        The stride of the windows; 1 by default.
    padding : {"valid", "same"} or sequence of (int, int)
        Neutral elements around `x`: none, as many as keep the shape at stride 1, or as many as
        given before and after each axis.
    dilations : int or sequence of int, optional
        The dilation of the windows; 1 by default.

    Returns
    -------
    Tensor
        One element for each window, and no elements if no window fits.

    Raises
    ------
    ShapeError
        If there is not one size for each axis.

    Examples
    --------
    >>> import nxla as nx
    >>> nx.window_sum([1, 2, 3, 4], (2,)).tolist()
    [3, 5, 7]
    >>> nx.window_sum([1, 2, 3, 4], (2,), strides=2, padding="same").tolist()
    [3, 7]
    >>> nx.window_sum(nx.ones((3, 3)), 2).tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """

__all__ = [
    "Compiled",
    "DType",
    "Expr",
    "Expression",
    "Function",
    "Lazy",
    "Node",
    "Stage",
    "StageGraph",
    "Template",
    "Tensor",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "all_close",
    "allclose",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitcast",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "broadcast_arrays",
    "broadcast_to",
    "cbrt",
    "ceil",
    "clip",
    "complex",
    "concat",
    "conv",
    "copysign",
    "cos",
    "cosh",
    "count_leading_zeros",
    "count_nonzero",
    "covariance",
    "cumulative_max",
    "cumulative_min",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "digamma",
    "divide",
    "dot",
    "equal",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "expand_dims",
    "expm1",
    "flatten",
    "flip",
    "floor",
    "floor_divide",
    "fmod",
    "gather",
    "greater",
    "greater_equal",
    "hypot",
    "indexed_add",
    "indexed_put",
    "interp",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "kron",
    "less",
    "less_equal",
    "lgamma",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "make_diagonal",
    "matmul",
    "max",
    "maximum",
    "mean",
    "median",
    "min",
    "minimum",
    "mode",
    "multiply",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "negative",
    "nextafter",
    "not_equal",
    "outer",
    "pad",
    "percentile",
    "permute_dims",
    "phase",
    "population_count",
    "pow",
    "prod",
    "put_diagonal",
    "put_slice",
    "quantile",
    "quotient",
    "reciprocal",
    "remainder",
    "rename",
    "reshape",
    "result_type",
    "rot90",
    "round",
    "round_half_away",
    "rsqrt",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "slice",
    "slice_along_axis",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "take_diagonal",
    "tan",
    "tanh",
    "tile",
    "top_k",
    "tril",
    "triu",
    "trunc",
    "var",
    "vecdot",
    "weighted_mean",
    "where",
    "window_max",
    "window_mean",
    "window_min",
    "window_product",
    "window_scatter_max",
    "window_scatter_min",
    "window_sum",
]
