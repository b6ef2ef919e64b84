"""Functions of complex numbers whose parts are zeros, infinities or NaN, on every engine.

Annex G of the C standard says what they give; numpy keeps to it, but where a sign is unspecified.
"""

import numpy as np
import pytest

import nxla as nx


def expm1(z):
    """That of numpy, and where a part is not finite the exponential function less one."""
    power = np.exp(z)
    real = np.where(np.isfinite(z), np.expm1(z).real, power.real - 1)
    return np.stack([real, power.imag], axis=-1).view(np.complex128)[..., 0]


PARTS = [-np.inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf, np.nan]
FUNCTIONS = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "exp": np.exp,
    "expm1": expm1,
    "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10, "sin": np.sin,
    "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
#: Where the real part is zero and the other one infinite or NaN, or the reverse, a part of these is
#: unspecified.
LOOSE = {"tan": (np.isinf, np.isnan), "tanh": (np.isinf, np.isnan), "acosh": (np.isnan,)}


def numbers():
    return np.array([complex(x, y) for x in PARTS for y in PARTS])


def fits(found, wanted, unspecified):
    """Tell where parts agree: zeros in their sign too, unless that is unspecified."""
    both_nan = np.isnan(found) & np.isnan(wanted)
    with np.errstate(invalid="ignore"):
        close = np.isclose(np.abs(found), np.abs(wanted), rtol=1e-12, atol=1e-15)
    same_sign = np.signbit(found) == np.signbit(wanted)
    return both_nan | close & (same_sign | unspecified)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts_are_those_of_annex_g(name, compiler):
    z = numbers()
    found = np.asarray(nx.jit(getattr(nx, name), compiler=compiler)(nx.tensor(z)))
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[name](z)
    wild = ~np.isfinite(z.real) & ~np.isfinite(z.imag)
    good = fits(found.real, wanted.real, wild | np.isnan(wanted.imag))
    if np.iscomplexobj(wanted):
        good &= fits(found.imag, wanted.imag, wild | np.isnan(wanted.real))
    for part in LOOSE.get(name, ()):
        good |= (z.real == 0) & part(z.imag) | (z.imag == 0) & part(z.real)
    wrong = [(at, got, want) for at, got, want in zip(z, found, wanted, strict=True)]
    assert [wrong[place] for place in np.flatnonzero(~good)] == []


def test_both_sides_of_branch_cuts(compiler):
    z = np.array([complex(-4.0, 0.0), complex(-4.0, -0.0)], dtype=np.complex64)
    f = nx.jit(lambda z: (nx.sqrt(z), nx.log(z), nx.acos(z), nx.acosh(z)), compiler=compiler)
    for up, down in map(np.asarray, f(nx.tensor(z))):
        assert up == np.conj(down) != down
    # Those of atan and asinh are on the imaginary axis.
    z = np.array([complex(0.0, 4.0), complex(-0.0, 4.0)], dtype=np.complex64)
    f = nx.jit(lambda z: (nx.atan(z), nx.asinh(z)), compiler=compiler)
    for right, left in map(np.asarray, f(nx.tensor(z))):
        assert right == -np.conj(left) != left
