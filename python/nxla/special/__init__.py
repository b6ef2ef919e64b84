"""Special functions, with the names of `scipy.special`.

The functions are computed in ``float64``, and the results are rounded to the dtype of the
operands. Exceptions are `digamma`, `erf`, `erfc`, `erfinv` and `gammaln`, which are functions of
`nxla` by other names. All functions have derivatives of any order.

>>> import nxla as nx
>>> x = nx.tensor([0.5, 1.0, 2.0])
>>> [round(value, 4) for value in nx.special.gammainc(2.0, x).tolist()]
[0.0902, 0.2642, 0.594]
>>> round(nx.grad(nx.special.j0)(1.0).item(), 5) == -round(nx.special.j1(1.0).item(), 5)
True
"""

from nxla import _hints
from nxla._core import digamma, erf, erfc, logsumexp
from nxla._core import erf_inv as erfinv
from nxla._core import lgamma as gammaln
from nxla._core import sigmoid as expit
from nxla.special.bessel import i0, i0e, i1, i1e, j0, j1, k0, k0e, k1, k1e, y0, y1
from nxla.special.elementary import entr, logit, xlog1py, xlogy
from nxla.special.incomplete import betainc, betaln, gammainc, gammaincc
from nxla.special.zeta import polygamma, zeta

# The names that are imported above. `make stubs` writes this list.
__all__ = [
    "betainc",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "j0",
    "j1",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "logit",
    "logsumexp",
    "polygamma",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "zeta",
]

_hints.install_missing_names(globals())
