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
other functions follow Elixir's Nx.
"""

import atexit as _atexit
import math as _math
import os as _os

from nxla import _core, _hints, _pickling
from nxla._core import *  # noqa: F403
from nxla._exports import MODULES as _MODULES

# Several names per line: one name per line would make this file five times as long.
# isort: off
# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:  # `__getattr__` imports the module of a name when the name is first used.
    from nxla import (
        collectives, composite, constants, data, errors, expr, fft, graph, linalg, nn, optim,
        random, special, testing, tree,
    )
    from nxla._info import __array_api_version__ as __array_api_version__
    from nxla._info import __array_namespace_info__ as __array_namespace_info__
    from nxla._explorer import View, view
    from nxla._tracing import eval_shape, named_scope
    from nxla._versions import show_versions
    from nxla.compiler import Compiler, current_compiler, is_tracing, register_compiler
    from nxla.custom import custom_grad, custom_jvp, custom_vjp, stop_grad
    from nxla.debug import (
        Comparison, Explanation, cache_report, compare, debug_nans, disk_cache_report, explain,
        memory_report, profile,
        set_cache_limit, track_tensors, transfer_report,
    )
    from nxla.derivatives import (
        hessian, hessian_diagonal, jacfwd, jacobian, jacrev, jvp, linearize, vjp,
    )
    from nxla.placement import (
        Device, backend_copy, backend_deallocate, backend_transfer, device_put, devices,
    )
    from nxla.dtypes import (
        bool, int2, int4, int8, int16, int32, int64, uint2, uint4, uint8, uint16, uint32, uint64,
        float8_e5m2, float8_e4m3fn, bfloat16, float16, float32, float64, complex64, complex128,
    )
    from nxla.errors import (
        ArgumentError, CaptureWarning, DeviceError, DTypeError, ExecutionError, FormatError,
        GradientError, InternalError, NxlaError, OptionError, OutOfMemoryError, RecompileWarning,
        ShapeError, TraceError,
    )
    from nxla._import import from_jax, from_stablehlo
    from nxla.foreign import foreign_call
    from nxla.gradients import grad, safe_where, value_and_grad
    from nxla.heatmap import to_heatmap
    from nxla.limits import finfo, iinfo, isdtype
    from nxla.ops.bytes import (
        deserialize, from_binary, load_numpy, load_numpy_archive, serialize, to_binary,
    )
    from nxla.linalg import cross
    from nxla.ops.calculus import gradient, nan_to_num, trapezoid
    from nxla.ops.contract import einsum, tensordot, vdot
    from nxla.ops.control import (
        annotate, cond, hook, if_, print_expr, print_value, runtime_call,
    )
    from nxla.ops.create import (
        arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, iota, linspace,
        meshgrid, ones, ones_like, tensor, tri, zeros, zeros_like,
    )
    from nxla.ops.elementwise import astype, can_cast, conj, imag, log, positive, real
    from nxla.ops.loops import for_each, fori, map, scan, while_loop
    from nxla._onnx import from_onnx
    from nxla.ops.files import from_safetensors, load, save, to_safetensors
    from nxla.ops.metadata import axis_index, axis_size, broadcast_shapes, compatible
    from nxla.ops.movement import (
        matrix_transpose, moveaxis, pad_outer, repeat, roll, split, to_batched, unstack,
    )
    from nxla.ops.reduce import reduce
    from nxla.ops.scans import associative_scan, switch
    from nxla.ops.search import (
        argpartition, digitize, isin, nonzero, partition, searchsorted, unique_all, unique_counts,
        unique_inverse, unique_values,
    )
    from nxla.ops.statistics import (
        bincount, histogram, segment_max, segment_min, segment_prod, segment_sum,
    )
    from nxla.ops.window import window_reduce
    from nxla.options import (
        compilers, default_options, global_default_options, partitions_options, to_backend,
    )
    from nxla.partitions import jit_partitions
    from nxla.recompute import checkpoint
    from nxla.printing import set_print_options
    from nxla.streams import Stream, stream
    from nxla.transform import (
        compile, debug_expr, debug_expr_apply, defn, export, import_stablehlo, jit, jit_apply,
        template,
    )
    from nxla.tree import register_container
    from nxla.vectors import (
        broadcast_vectors, devectorize, reshape_vectors, revectorize, vectorize, vmap,
    )
    from nxla.collectives import shard_map
    from nxla.sharding import (
        Mesh, ShardedTensor, Sharding, shard, shard_jit, shard_jit_apply, with_sharding_constraint,
    )

__version__ = _core.__version__

_pickling.register()
# Errors should point at the user's code, so frames of the package are skipped.
_core.set_package_directory(_os.path.dirname(__file__) + _os.sep)
# Options of a call make the runtime search for a plugin; the compiler of the environment does not.
if _os.environ.get("NXLA_COMPILER") in ("auto", "xla"):
    from nxla import plugins as _plugins

    _plugins.announce()
# XLA must not run while the process exits.
_atexit.register(_core.wait_until_idle)
if hasattr(_os, "register_at_fork"):
    _core.delay_forks()
    _os.register_at_fork(after_in_child=_core.after_fork_in_child)

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

# The names that are imported above. `make stubs` writes this list.
__all__ = [
    "ArgumentError", "CaptureWarning", "Comparison", "Compiler", "DTypeError", "Device",
    "DeviceError", "ExecutionError", "Explanation", "FormatError", "GradientError", "InternalError",
    "Mesh", "NxlaError", "OptionError", "OutOfMemoryError", "RecompileWarning", "ShapeError",
    "ShardedTensor", "Sharding", "Stream", "TraceError", "View", "__version__", "annotate",
    "arange", "argpartition", "asarray", "associative_scan", "astype", "axis_index", "axis_size",
    "backend_copy", "backend_deallocate", "backend_transfer", "bfloat16", "bincount", "bool",
    "broadcast_shapes", "broadcast_vectors", "cache_report", "can_cast", "checkpoint",
    "collectives", "compare", "compatible", "compile", "compilers", "complex64", "complex128",
    "composite", "cond", "conj", "constants", "cross", "current_compiler", "custom_grad",
    "custom_jvp", "custom_vjp", "data", "debug_expr", "debug_expr_apply", "debug_nans",
    "default_options", "defn", "deserialize", "devectorize", "device_put", "devices", "digitize",
    "disk_cache_report", "e", "einsum", "empty", "empty_like", "errors", "eval_shape", "explain",
    "export", "expr", "eye", "fft", "finfo", "float8_e4m3fn", "float8_e5m2", "float16", "float32",
    "float64", "for_each", "foreign_call", "fori", "from_binary", "from_dlpack", "from_jax",
    "from_onnx", "from_safetensors", "from_stablehlo", "full", "full_like",
    "global_default_options", "grad", "gradient", "graph", "hessian", "hessian_diagonal",
    "histogram", "hook", "if_", "iinfo", "imag", "import_stablehlo", "inf", "int2", "int4", "int8",
    "int16", "int32", "int64", "iota", "is_tracing", "isdtype", "isin", "jacfwd", "jacobian",
    "jacrev", "jit", "jit_apply", "jit_partitions", "jvp", "linalg", "linearize", "linspace",
    "load", "load_numpy", "load_numpy_archive", "log", "map", "matrix_transpose", "memory_report",
    "meshgrid", "moveaxis", "named_scope", "nan", "nan_to_num", "newaxis", "nn", "nonzero", "ones",
    "ones_like", "optim", "pad_outer", "partition", "partitions_options", "pi", "positive",
    "print_expr", "print_value", "profile", "random", "real", "reduce", "register_compiler",
    "register_container", "repeat", "reshape_vectors", "revectorize", "roll", "runtime_call",
    "safe_where", "save", "scan", "searchsorted", "segment_max", "segment_min", "segment_prod",
    "segment_sum", "serialize", "set_cache_limit", "set_print_options", "shard", "shard_jit",
    "shard_jit_apply", "shard_map", "show_versions", "special", "split", "stop_grad", "stream",
    "switch", "template", "tensor", "tensordot", "testing", "to_backend", "to_batched", "to_binary",
    "to_heatmap", "to_safetensors", "track_tensors", "transfer_report", "trapezoid", "tree", "tri",
    "uint2", "uint4", "uint8", "uint16", "uint32", "uint64", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "unstack", "value_and_grad", "vdot", "vectorize", "view",
    "vjp", "vmap", "while_loop", "window_reduce", "with_sharding_constraint", "zeros", "zeros_like",
]
__all__ += _core.__all__
# fmt: on

if not TYPE_CHECKING:  # Type checkers would accept every name of a module with `__getattr__`.

    def __getattr__(name: str) -> object:
        """Import the module of a name, or name the equivalent of another library's function."""
        from importlib import import_module

        if name in _MODULES:
            home = _MODULES[name]
            module = import_module(f"nxla.{home}")
            value = module if home == name else getattr(module, name)
            globals()[name] = value
            return value
        raise _hints.missing_name_error(name, "nxla")

    def __dir__() -> list[str]:
        """List all names, including names that are not imported yet."""
        return sorted({*globals(), *__all__})


del TYPE_CHECKING

# This import requires the names above.
from nxla import _methods as _methods  # noqa: E402
