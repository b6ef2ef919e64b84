"""Linear algebra on matrices in the last two axes; leading axes are batches.

Names, arguments and semantics follow the Python Array API standard if it has the function;
`adjoint`, `least_squares`, `lu`, `norm` and `triangular_solve` follow Nx. Integers are converted to
``float32``; half floats are computed in ``float32`` and rounded. All functions have derivatives.

>>> import nxla as nx
>>> a = nx.tensor([[2.0, 1.0], [1.0, 3.0]])
>>> nx.linalg.det(a).item()
5.0
>>> q, r = nx.linalg.qr(a)
>>> nx.all_close(q @ r, a).item()
True
"""

from nxla import _hints
from nxla._core import (
    adjoint,
    cholesky,
    cross,
    det,
    diagonal,
    eigvalsh,
    expm,
    inv,
    least_squares,
    matmul,
    matrix_norm,
    matrix_power,
    matrix_rank,
    norm,
    pinv,
    svdvals,
    trace,
    triangular_solve,
    vecdot,
)
from nxla.ops.contract import tensordot
from nxla.ops.linalg.factor import (
    EighResult,
    EigResult,
    LUResult,
    QRResult,
    SVDResult,
    eig,
    eigh,
    eigvals,
    lu,
    qr,
    svd,
)
from nxla.ops.linalg.norm import vector_norm
from nxla.ops.linalg.solve import SlogdetResult, outer, slogdet, solve
from nxla.ops.movement import matrix_transpose

# The names that are imported above. `make stubs` writes this list.
__all__ = [
    "EigResult",
    "EighResult",
    "LUResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "adjoint",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "least_squares",
    "lu",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "triangular_solve",
    "vecdot",
    "vector_norm",
]

_hints.install_missing_names(globals())
