"""Functions of complex numbers whose parts are zeros, infinities or NaN, on every backend.

Annex G of the C standard defines the results. NumPy follows it, except for unspecified signs.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import nxla as nx


def expm1(z):
    """Return NumPy's expm1, or exp minus one if a part is not finite."""
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
#: A part of these results is unspecified if one part of the argument is zero and the other one is
#: infinite or NaN.
LOOSE = {"tan": (np.isinf, np.isnan), "tanh": (np.isinf, np.isnan), "acosh": (np.isnan,)}


def numbers():
    return np.array([complex(x, y) for x in PARTS for y in PARTS])


def parts_agree(found, wanted, unspecified):
    """Return where parts agree, including the signs of zeros unless they are unspecified."""
    both_nan = np.isnan(found) & np.isnan(wanted)
    with np.errstate(invalid="ignore"):
        close = np.isclose(np.abs(found), np.abs(wanted), rtol=1e-12, atol=1e-15)
    same_sign = np.signbit(found) == np.signbit(wanted)
    return both_nan | close & (same_sign | unspecified)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_follow_annex_g(name, compiler):
    z = numbers()
    found = np.asarray(nx.jit(getattr(nx, name), compiler=compiler)(nx.tensor(z)))
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[name](z)
    both_nonfinite = ~np.isfinite(z.real) & ~np.isfinite(z.imag)
    matches = parts_agree(found.real, wanted.real, both_nonfinite | np.isnan(wanted.imag))
    if np.iscomplexobj(wanted):
        matches &= parts_agree(found.imag, wanted.imag, both_nonfinite | np.isnan(wanted.real))
    for part in LOOSE.get(name, ()):
        matches |= (z.real == 0) & part(z.imag) | (z.imag == 0) & part(z.real)
    wrong = [(argument, got, want) for argument, got, want in zip(z, found, wanted, strict=True)]
    assert [wrong[index] for index in np.flatnonzero(~matches)] == []


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("name", ["cos", "cosh", "exp", "expm1", "sin", "sinh", "tan", "tanh"])
def test_overflow_on_the_axes_leaves_the_other_part_zero(name, dtype, compiler):
    """A real argument has a real result, and an imaginary argument a real or imaginary one."""
    sizes = (-1e5, -800.0, -2.0, 2.0, 800.0, 1e5)
    zeros = (-0.0, 0.0)
    z = [complex(x, y) for x in sizes for y in zeros]
    if name not in ("exp", "expm1"):
        z += [complex(y, x) for x in sizes for y in zeros]
    found = nx.jit(getattr(nx, name), compiler=compiler)(nx.astype(nx.tensor(z), dtype))
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[name](np.array(z, dtype="c16"))
    found = nx.astype(found, "c128").numpy()
    for ours, theirs in ((found.real, wanted.real), (found.imag, wanted.imag)):
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs), err_msg=str(z))
        np.testing.assert_array_equal(ours == 0, theirs == 0)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))


def test_both_sides_of_branch_cuts(compiler):
    z = np.array([complex(-4.0, 0.0), complex(-4.0, -0.0)], dtype=np.complex64)
    f = nx.jit(lambda z: (nx.sqrt(z), nx.log(z), nx.acos(z), nx.acosh(z)), compiler=compiler)
    for up, down in map(np.asarray, f(nx.tensor(z))):
        assert up == np.conj(down) != down
    # The branch cuts of atan and asinh are on the imaginary axis.
    z = np.array([complex(0.0, 4.0), complex(-0.0, 4.0)], dtype=np.complex64)
    f = nx.jit(lambda z: (nx.atan(z), nx.asinh(z)), compiler=compiler)
    for right, left in map(np.asarray, f(nx.tensor(z))):
        assert right == -np.conj(left) != left


LOGARITHMS = {"log": 1.0, "log1p": 1.0, "log2": math.log(2), "log10": math.log(10)}


def exact_logarithms(z, shift):
    """Return `log(z + shift)` by exact sums of squares, for sums near 1."""
    squares = [(Fraction(w.real) + shift) ** 2 + Fraction(w.imag) ** 2 for w in z.tolist()]
    real = [math.log1p(float(square - 1)) / 2 for square in squares]
    return np.array(real), np.angle(z + shift)


@pytest.mark.parametrize("name", LOGARITHMS)
def test_logarithms_near_the_unit_circle(name, compiler):
    angles = np.linspace(0.0, 2 * np.pi, 40)
    near_one = 1 + 2.0**-26 * np.arange(-3, 4) * (1 + 2j)
    z = np.concatenate([np.exp(1j * angles), near_one, [2j, 0.6 + 0.8j, -1.5 - 0.25j]])
    # Numbers whose difference from 1 has few bits.
    z, shift = (np.round(z * 2**26) / 2**26 - 1, 1) if name == "log1p" else (z, 0)
    z = np.append(z, 0.8j - 0.4) if name == "log1p" else z
    real, imaginary = exact_logarithms(z, shift)
    found = np.asarray(nx.jit(getattr(nx, name), compiler=compiler)(nx.tensor(z)))
    np.testing.assert_allclose(found.real, real / LOGARITHMS[name], rtol=1e-14)
    np.testing.assert_allclose(found.imag, imaginary / LOGARITHMS[name], rtol=1e-14)


@pytest.mark.parametrize("name", LOGARITHMS)
def test_logarithms_of_huge_numbers(name, compiler):
    z = np.array([1.5e308 + 1.2e308j, -1.5e308 + 1e308j, 1.7e308 + 0j, 1e300 - 1.7e308j])
    wanted = (np.log(z / 4) + math.log(4)) / LOGARITHMS[name]
    found = nx.jit(getattr(nx, name), compiler=compiler)(nx.tensor(z))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_logarithms_and_inverse_tangents_near_their_singular_points(dtype, compiler):
    distances = [1e-18, 1e-25, 1e-30] if dtype == "c64" else [1e-18, 1e-120, 1e-160, 1e-200]
    singular = {"log1p": (-1, 1j), "atanh": (1, 1j), "atan": (1j, 1)}
    for name, (point, direction) in singular.items():
        z = nx.tensor([point + distance * direction for distance in distances], dtype)
        found = np.asarray(nx.jit(getattr(nx, name), compiler=compiler)(z))
        log = np.log(distances)
        if name == "log1p":
            wanted = log + RIGHT * 1j
        else:
            near = (math.log(2) - log) / 2
            wanted = near + 1j * np.pi / 4 if name == "atanh" else np.pi / 4 + 1j * near
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype == "c64" else 1e-14)


@pytest.mark.parametrize("name", ["atan", "atanh"])
def test_inverse_tangents_of_huge_numbers_with_a_nan_part(name, compiler):
    z = np.array([complex(1e154, np.nan), complex(np.nan, 1e300), complex(8.0, np.nan)])
    found = np.asarray(nx.jit(getattr(nx, name), compiler=compiler)(nx.tensor(z)))
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[name](z)
    np.testing.assert_array_equal(np.isnan(found.real), np.isnan(wanted.real))
    np.testing.assert_array_equal(np.isnan(found.imag), np.isnan(wanted.imag))


INF, NAN, RIGHT = np.inf, np.nan, np.pi / 2
#: Values of Annex G of C17 as listed in the Array API standard: the parts of the argument, then of
#: the result. `None` is a zero of unspecified sign, and "right" is pi/2 with unspecified sign.
SPECIAL_VALUES = {
    "tanh": [
        ((0.0, 0.0), (0.0, 0.0)), ((1.0, INF), (NAN, NAN)), ((0.0, INF), (0.0, NAN)),
        ((1.0, NAN), (NAN, NAN)), ((0.0, NAN), (0.0, NAN)), ((INF, 2.0), (1.0, -0.0)),
        ((INF, 0.0), (1.0, 0.0)), ((INF, INF), (1.0, None)), ((INF, NAN), (1.0, None)),
        ((NAN, 0.0), (NAN, 0.0)), ((NAN, 1.0), (NAN, NAN)), ((NAN, INF), (NAN, NAN)),
        ((-0.0, INF), (-0.0, NAN)), ((-0.0, NAN), (-0.0, NAN)), ((NAN, -0.0), (NAN, -0.0)),
    ],
    # tan z = -i tanh iz
    "tan": [
        ((INF, 0.0), (NAN, 0.0)), ((NAN, 0.0), (NAN, 0.0)), ((INF, 1.0), (NAN, NAN)),
        ((NAN, INF), (None, 1.0)), ((INF, INF), (None, 1.0)), ((0.0, NAN), (0.0, NAN)),
    ],
    "acosh": [
        ((0.0, 0.0), (0.0, RIGHT)), ((-0.0, 0.0), (0.0, RIGHT)), ((1.0, INF), (INF, RIGHT)),
        ((1.0, NAN), (NAN, NAN)), ((0.0, NAN), (NAN, "right")), ((-0.0, NAN), (NAN, "right")),
        ((-INF, 1.0), (INF, np.pi)), ((INF, 1.0), (INF, 0.0)), ((-INF, INF), (INF, 0.75 * np.pi)),
        ((INF, INF), (INF, np.pi / 4)), ((INF, NAN), (INF, NAN)), ((-INF, NAN), (INF, NAN)),
        ((NAN, 1.0), (NAN, NAN)), ((NAN, INF), (INF, NAN)), ((NAN, NAN), (NAN, NAN)),
    ],
    "atanh": [
        ((0.0, 0.0), (0.0, 0.0)), ((0.0, NAN), (0.0, NAN)), ((1.0, 0.0), (INF, 0.0)),
        ((1.0, -0.0), (INF, -0.0)), ((1.0, INF), (0.0, RIGHT)), ((1.0, NAN), (NAN, NAN)),
        ((INF, 1.0), (0.0, RIGHT)), ((INF, -0.0), (0.0, -RIGHT)), ((INF, INF), (0.0, RIGHT)),
        ((INF, NAN), (0.0, NAN)), ((NAN, 1.0), (NAN, NAN)), ((NAN, 0.0), (NAN, NAN)),
        ((NAN, INF), (None, RIGHT)), ((-1.0, INF), (-0.0, RIGHT)), ((NAN, NAN), (NAN, NAN)),
    ],
    "expm1": [
        ((0.0, 0.0), (0.0, 0.0)), ((-0.0, 0.0), (-0.0, 0.0)), ((-0.0, -0.0), (-0.0, -0.0)),
        ((1.0, INF), (NAN, NAN)), ((0.0, INF), (NAN, NAN)), ((0.0, NAN), (NAN, NAN)),
        ((INF, 0.0), (INF, 0.0)), ((-INF, 2.0), (-1.0, 0.0)), ((-INF, -2.0), (-1.0, -0.0)),
        ((INF, 2.0), (-INF, INF)), ((-INF, INF), (-1.0, None)), ((INF, INF), (INF, NAN)),
        ((-INF, NAN), (-1.0, None)), ((INF, NAN), (INF, NAN)), ((NAN, 0.0), (NAN, 0.0)),
        ((NAN, 1.0), (NAN, NAN)), ((NAN, NAN), (NAN, NAN)),
    ],
}  # fmt: skip


def is_part(found, wanted):
    if wanted is None:
        return found == 0
    if wanted == "right":
        return abs(abs(found) - RIGHT) < 1e-6
    if np.isnan(wanted):
        return np.isnan(found)
    close = found == wanted or abs(found - wanted) < 1e-6
    return close and np.signbit(found) == np.signbit(wanted)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("name", SPECIAL_VALUES)
def test_listed_values_of_the_array_api_standard(name, dtype, compiler):
    rows = SPECIAL_VALUES[name]
    z = np.array([argument for argument, _ in rows]).view(np.complex128)[:, 0]
    f = nx.jit(getattr(nx, name), compiler=compiler)
    found = np.asarray(f(nx.astype(nx.tensor(z), dtype)))
    # All of these functions have f(conj z) = conj f(z).
    mirrored = np.conj(np.asarray(f(nx.astype(nx.tensor(np.conj(z)), dtype))))
    for values in (found, mirrored):
        wrong = [
            (row, value)
            for row, value in zip(rows, values, strict=True)
            if not (is_part(value.real, row[1][0]) and is_part(value.imag, row[1][1]))
        ]
        assert wrong == []


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_signs_of_extreme_complex_numbers(dtype, compiler):
    """Infinities follow NumPy 2: a single infinite part determines the direction."""
    inf, nan, half = math.inf, math.nan, math.sqrt(0.5)
    limits = nx.finfo("f32" if dtype == "c64" else "f64")
    most, least = float(limits.max), float(limits.smallest_normal)
    cases = [
        (complex(most, most), complex(half, half)),
        (complex(-most, most), complex(-half, half)),
        (complex(least, -least), complex(half, -half)),
        (complex(most, 0), 1),
        (complex(0, -most), -1j),
        (complex(inf, 3), 1),
        (complex(3, -inf), -1j),
        (complex(-inf, nan), -1),
        (complex(nan, inf), 1j),
        (complex(inf, inf), complex(nan, nan)),
        (complex(nan, 1), complex(nan, nan)),
        (complex(-0.0, 0.0), 0),
        (3 + 4j, 0.6 + 0.8j),
    ]
    arguments, expected = zip(*cases, strict=True)
    found = nx.jit(nx.sign, compiler=compiler)(nx.tensor(list(arguments), dtype))
    found = nx.astype(found, "c128").numpy()
    tolerance = 4 * float(limits.eps)
    np.testing.assert_allclose(found.real, np.real(expected), rtol=tolerance)
    np.testing.assert_allclose(found.imag, np.imag(expected), rtol=tolerance)
