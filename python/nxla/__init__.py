"""Numerical functions over tensors: trace, differentiate, split, interpret or compile with XLA.

>>> import nxla as nx
>>> @nx.jit
... def loss(w, x):
...     return nx.mean((x @ w - 1.0) ** 2)
>>> x = nx.tensor([[1.0, 2.0], [3.0, 4.0]])
>>> loss(nx.zeros(2), x).item()
1.0
>>> nx.grad(loss)(nx.zeros(2), x).tolist()
[-4.0, -6.0]

Functions have the names, arguments and meaning of the Python Array API standard where it has them;
others are those of Elixir's Nx.
"""

import atexit as _atexit
import math as _math
import os as _os

# Packed: one name to a line would make this file five times as long.
# isort: off
# fmt: off
from nxla import (
    _core, composite, constants, errors, expr, fft, graph, linalg, random, testing, tree,
)
from nxla._core import (
    Compiled, DType, Expr, Expression, Function, Node, Stage, StageGraph, Template, Tensor,
)
from nxla.compiler import Compiler, current_compiler, register_compiler
from nxla.custom import custom_jvp, custom_vjp
from nxla.debug import (
    Comparison, cache_report, compare, debug_nans, set_cache_limit, transfer_report,
)
from nxla.derivatives import (
    hessian, hessian_diagonal, jacfwd, jacobian, jacrev, jvp, linearize, vjp,
)
from nxla.devices import Device, device_put, devices
from nxla.dtypes import (
    bool, int2, int4, int8, int16, int32, int64, uint2, uint4, uint8, uint16, uint32, uint64,
    float8_e5m2, float8_e4m3fn, bfloat16, float16, float32, float64, complex64, complex128,
)
from nxla.errors import (
    ArgumentError, CaptureWarning, DeviceError, DTypeError, ExecutionError, GradientError,
    InternalError, NxlaError, OptionError, RecompileWarning, ShapeError, TraceError,
)
from nxla.heatmap import to_heatmap
from nxla.limits import finfo, iinfo, isdtype
from nxla.ops.bytes import (
    deserialize, from_binary, load_numpy, load_numpy_archive, serialize, to_binary,
)
from nxla.ops.contract import conv, dot, matmul, outer, tensordot, vecdot
from nxla.ops.control import (
    annotate, cond, for_each, fori, hook, if_, map, print_expr, print_value, runtime_call, scan,
    while_loop,
)
from nxla.ops.create import (
    arange, asarray, eye, from_dlpack, full, full_like, iota, linspace, make_diagonal, meshgrid,
    ones, ones_like, put_diagonal, take_diagonal, tensor, tri, tril, triu, zeros, zeros_like,
)
from nxla.ops.elementwise.arithmetic import (
    abs, add, divide, floor_divide, fmod, maximum, minimum, multiply, negative, positive, pow,
    quotient, reciprocal, remainder, sign, square, subtract,
)
from nxla.ops.elementwise.bits import (
    bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor,
    copysign, count_leading_zeros, population_count, signbit,
)
from nxla.ops.elementwise.comparison import (
    equal, greater, greater_equal, isfinite, isinf, isnan, less, less_equal, logical_and,
    logical_not, logical_or, logical_xor, not_equal,
)
from nxla.ops.elementwise.complex import complex, conj, imag, phase, real
from nxla.ops.elementwise.exponential import (
    cbrt, erf, erf_inv, erfc, exp, expm1, log, log10, log1p, log2, logaddexp, rsqrt, sigmoid, sqrt,
)
from nxla.ops.elementwise.rounding import ceil, floor, round, round_half_away, trunc
from nxla.ops.elementwise.selection import (
    all_close, astype, bitcast, can_cast, clip, result_type, where,
)
from nxla.ops.elementwise.trigonometry import (
    acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, hypot, sin, sinh, tan, tanh,
)
from nxla.ops.index import (
    argsort, diff, gather, indexed_add, indexed_put, put_slice, slice, slice_along_axis, sort,
    take, take_along_axis, top_k,
)
from nxla.ops.metadata import axis_index, axis_size, compatible
from nxla.ops.movement import (
    broadcast_arrays, broadcast_to, concat, expand_dims, flatten, flip, matrix_transpose, moveaxis,
    permute_dims, rename, repeat, reshape, roll, split, squeeze, stack, tile, to_batched, unstack,
)
from nxla.ops.padding import pad, pad_outer
from nxla.ops.reduce import (
    all, any, argmax, argmin, count_nonzero, covariance, logsumexp, max, mean, median, min, mode,
    prod, reduce, std, sum, var, weighted_mean,
)
from nxla.ops.window import (
    cumulative_max, cumulative_min, cumulative_prod, cumulative_sum, window_max, window_mean,
    window_min, window_product, window_reduce, window_scatter_max, window_scatter_min, window_sum,
)
from nxla.options import (
    compilers, default_options, global_default_options, partitions_options, to_backend,
)
from nxla.stream import Stream, stream
from nxla.transform import (
    compile, custom_grad, debug_expr, debug_expr_apply, defn, grad, jit, jit_apply, stop_grad,
    template, value_and_grad,
)
from nxla.tree import register_container
from nxla.vectors import (
    broadcast_vectors, devectorize, reshape_vectors, revectorize, vectorize, vmap,
)

__version__ = _core.__version__

# Frames of the package itself are not what an error should point at.
_core.set_package_directory(_os.path.dirname(__file__) + _os.sep)
# XLA must not be left running while the process takes itself apart.
_atexit.register(_core.wait_until_idle)

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

__all__ = [
    "ArgumentError", "CaptureWarning", "Comparison", "Compiled", "Compiler", "DType", "DTypeError",
    "Device", "DeviceError", "ExecutionError", "Expr", "Expression", "Function", "GradientError",
    "InternalError", "Node", "NxlaError", "OptionError", "RecompileWarning", "ShapeError", "Stage",
    "StageGraph", "Stream", "Template", "Tensor", "TraceError", "__version__", "abs", "acos",
    "acosh", "add", "all", "all_close", "annotate", "any", "arange", "argmax", "argmin", "argsort",
    "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "axis_index", "axis_size",
    "bfloat16", "bitcast", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays", "broadcast_to",
    "broadcast_vectors", "cache_report", "can_cast", "cbrt", "ceil", "clip", "compare",
    "compatible", "compile", "compilers", "complex", "complex64", "complex128", "composite",
    "concat", "cond", "conj", "constants", "conv", "copysign", "cos", "cosh", "count_leading_zeros",
    "count_nonzero", "covariance", "cumulative_max", "cumulative_min", "cumulative_prod",
    "cumulative_sum", "current_compiler", "custom_grad", "custom_jvp", "custom_vjp", "debug_expr",
    "debug_expr_apply", "debug_nans", "default_options", "defn", "deserialize", "devectorize",
    "device_put", "devices", "diff", "divide", "dot", "e", "equal", "erf", "erf_inv", "erfc",
    "errors", "exp", "expand_dims", "expm1", "expr", "eye", "fft", "finfo", "flatten", "flip",
    "float8_e4m3fn", "float8_e5m2", "float16", "float32", "float64", "floor", "floor_divide",
    "fmod", "for_each", "fori", "from_binary", "from_dlpack", "full", "full_like", "gather",
    "global_default_options", "grad", "graph", "greater", "greater_equal", "hessian",
    "hessian_diagonal", "hook", "hypot", "if_", "iinfo", "imag", "indexed_add", "indexed_put",
    "inf", "int2", "int4", "int8", "int16", "int32", "int64", "iota", "isdtype", "isfinite",
    "isinf", "isnan", "jacfwd", "jacobian", "jacrev", "jit", "jit_apply", "jvp", "less",
    "less_equal", "linalg", "linearize", "linspace", "load_numpy", "load_numpy_archive", "log",
    "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logsumexp", "make_diagonal", "map", "matmul", "matrix_transpose", "max",
    "maximum", "mean", "median", "meshgrid", "min", "minimum", "mode", "moveaxis", "multiply",
    "nan", "negative", "newaxis", "not_equal", "ones", "ones_like", "outer", "pad", "pad_outer",
    "partitions_options", "permute_dims", "phase", "pi", "population_count", "positive", "pow",
    "print_expr", "print_value", "prod", "put_diagonal", "put_slice", "quotient", "random", "real",
    "reciprocal", "reduce", "register_compiler", "register_container", "remainder", "rename",
    "repeat", "reshape", "reshape_vectors", "result_type", "revectorize", "roll", "round",
    "round_half_away", "rsqrt", "runtime_call", "scan", "serialize", "set_cache_limit", "sigmoid",
    "sign", "signbit", "sin", "sinh", "slice", "slice_along_axis", "sort", "split", "sqrt",
    "square", "squeeze", "stack", "std", "stop_grad", "stream", "subtract", "sum", "take",
    "take_along_axis", "take_diagonal", "tan", "tanh", "template", "tensor", "tensordot", "testing",
    "tile", "to_backend", "to_batched", "to_binary", "to_heatmap", "top_k", "transfer_report",
    "tree", "tri", "tril", "triu", "trunc", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64",
    "unstack", "value_and_grad", "var", "vecdot", "vectorize", "vjp", "vmap", "weighted_mean",
    "where", "while_loop", "window_max", "window_mean", "window_min", "window_product",
    "window_reduce", "window_scatter_max", "window_scatter_min", "window_sum", "zeros",
    "zeros_like",
]
# fmt: on
