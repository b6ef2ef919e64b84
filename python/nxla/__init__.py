"""Numerical functions over tensors: traced, differentiated, split, interpreted or compiled by XLA.

>>> import nxla as nx
>>> f = nx.jit(lambda x: nx.sum(nx.sin(x) * x))
>>> f(nx.tensor([0.0, 0.0])).item()
0.0
>>> nx.grad(lambda x: x * x)(nx.tensor(3.0)).item()
6.0
"""

import atexit as _atexit
import os as _os

from nxla import _core
from nxla import graph as graph, tree as tree
from nxla._core import DType, Expr, Expression, Function, Tensor
from nxla.compiler import Compiler, register_compiler
from nxla.dtypes import (
    bfloat16,
    bool,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from nxla.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    ExecutionError,
    GradientError,
    NxlaError,
    OptionError,
    ShapeError,
    TraceError,
)
from nxla.options import compilers, default_options, global_default_options, to_backend
from nxla.transform import (
    compile,
    custom_grad,
    debug_expr,
    debug_expr_apply,
    defn,
    grad,
    jit,
    jit_apply,
    stop_grad,
    template,
    value_and_grad,
)
from nxla.ops.create import (
    arange,
    asarray,
    eye,
    from_dlpack,
    full,
    full_like,
    iota,
    linspace,
    make_diagonal,
    meshgrid,
    ones,
    ones_like,
    put_diagonal,
    take_diagonal,
    tensor,
    tri,
    tril,
    triu,
    zeros,
    zeros_like,
)
from nxla.ops.elementwise.arithmetic import (
    abs,
    add,
    divide,
    floor_divide,
    fmod,
    maximum,
    minimum,
    multiply,
    negative,
    positive,
    pow,
    quotient,
    reciprocal,
    remainder,
    sign,
    square,
    subtract,
)
from nxla.ops.elementwise.bits import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    copysign,
    count_leading_zeros,
    population_count,
    signbit,
)
from nxla.ops.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from nxla.ops.elementwise.complex import conj, imag, phase, real
from nxla.ops.elementwise.exponential import (
    cbrt,
    erf,
    erf_inv,
    erfc,
    exp,
    expm1,
    log,
    log10,
    log1p,
    log2,
    logaddexp,
    rsqrt,
    sigmoid,
    sqrt,
)
from nxla.ops.elementwise.rounding import ceil, floor, round, round_half_away, trunc
from nxla.ops.elementwise.selection import (
    all_close,
    astype,
    bitcast,
    can_cast,
    clip,
    result_type,
    where,
)
from nxla.ops.elementwise.trigonometry import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    hypot,
    sin,
    sinh,
    tan,
    tanh,
)
from nxla.ops.movement import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flatten,
    flip,
    matrix_transpose,
    moveaxis,
    pad,
    permute_dims,
    rename,
    repeat,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    tile,
    unstack,
)
from nxla.ops.reduce import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    covariance,
    logsumexp,
    max,
    mean,
    median,
    min,
    mode,
    prod,
    reduce,
    std,
    sum,
    var,
    weighted_mean,
)
from nxla.ops.window import (
    cumulative_max,
    cumulative_min,
    cumulative_prod,
    cumulative_sum,
    window_max,
    window_mean,
    window_min,
    window_product,
    window_reduce,
    window_scatter_max,
    window_scatter_min,
    window_sum,
)
from nxla.ops.contract import conv, dot, matmul, outer, tensordot, vecdot
from nxla.ops.index import (
    argsort,
    diff,
    gather,
    indexed_add,
    indexed_put,
    put_slice,
    slice,
    slice_along_axis,
    sort,
    take,
    take_along_axis,
    top_k,
)
from nxla.ops.linalg import (
    adjoint,
    cholesky,
    fft,
    fft2,
    ifft,
    ifft2,
    irfft,
    norm,
    rfft,
    triangular_solve,
)
from nxla.ops.control import (
    annotate,
    cond,
    fori,
    hook,
    if_,
    print_expr,
    print_value,
    scan,
    while_loop,
)

__version__ = _core.__version__

# Frames of the package itself are not what an error should point at.
_core.set_package_directory(_os.path.dirname(__file__))
# XLA must not be left running while the process takes itself apart.
_atexit.register(_core.wait_until_idle)
