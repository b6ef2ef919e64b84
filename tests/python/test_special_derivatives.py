"""Derivatives of all special functions where an implementation changes its formula.

Inside of a domain, derivatives are compared with differences of SciPy's values. At the ends of a
domain, they are compared with their limits, which may be infinite.
"""

import math

import numpy as np
import pytest
import scipy.special
from scipy.special import digamma, exp1, spence

import nxla as nx

special = nx.special
inf = math.inf

#: Points inside of the domain of each function, at thresholds and where arguments are equal.
INTERIOR = {
    "betainc": [
        (1, 1, 0.5), (2, 2, 0.5), (3, 1, 2 / 3), (10, 3, 0.7), (3, 10, 0.2), (10, 10, 0.5),
    ],
    "betaln": [(10, 3), (3, 10), (10, 10), (12, 12), (2, 2), (1, 1)],
    "gammainc": [
        (10, 3), (10, 10), (10, 11), (10, 30), (2, 3), (1, 1), (20, 22), (20, 18), (20, 10),
    ],
    "polygamma": [(0, 1.5), (1, 1), (2, 10)],
    "xlog1py": [(0, 2), (2, 0), (1, 1), (0, 0)],
    "xlogy": [(0, 2), (2, 1), (1, 1), (0, 1)],
    "zeta": [(2, 1), (1.5, 0.5), (10, 10)],
    "digamma": [(1,), (0.5,), (-0.5,), (10,)],
    "entr": [(1,), (0.5,)],
    "erf": [(0,), (0.5,), (1,), (-1,)],
    "erfinv": [(0,), (0.5,), (-0.5,)],
    "expit": [(0,), (-1,)],
    "gammaln": [(1,), (2,), (0.5,), (-0.5,), (10,)],
    "logit": [(0.5,), (0.25,)],
    "logsumexp": [(0,), (2,)],
}  # fmt: skip
INTERIOR |= {name: [(8,), (-8,), (0,), (1,)] for name in ("i0", "i1", "j0", "j1")}
INTERIOR |= {name: [(8,), (-8,), (1,)] for name in ("i0e", "i1e")}
INTERIOR |= {name: [(2,), (8,), (1,)] for name in ("k0", "k1", "k0e", "k1e", "y0", "y1")}
INTERIOR |= {"gammaincc": INTERIOR["gammainc"], "erfc": INTERIOR["erf"]}

#: The arguments that are differentiated, if it is not all of them.
ARGUMENTS = {"polygamma": (1,)}


def difference(function, point, argument, order):
    """Return a derivative by central differences of the fourth order."""
    step = 2e-3
    weights = {
        1: {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12},
        2: {-2: -1 / 12, -1: 4 / 3, 0: -5 / 2, 1: 4 / 3, 2: -1 / 12},
    }[order]

    def value(k):
        shifted = [float(x) for x in point]
        shifted[argument] += k * step
        if function is scipy.special.polygamma:
            shifted[0] = int(shifted[0])
        return function(*shifted)

    return sum(weight * value(k) for k, weight in weights.items()) / step**order


def forward(function):
    """Return the element-wise derivative of a function in forward mode."""
    return lambda x: nx.jvp(function, (x,), (nx.ones_like(x),))[1]


MODES = (nx.grad, forward)


def columns_of(points):
    """Return a tensor of each coordinate of points."""
    return [nx.tensor(np.array(column, "f8")) for column in zip(*points, strict=True)]


def derivative(name, columns, argument, mode, order):
    """Return an element-wise derivative at points, given by their coordinates."""

    def function(x):
        operands = [*columns[:argument], x, *columns[argument + 1 :]]
        return getattr(special, name)(*operands)

    for _ in range(order):
        function = mode(function)
    return function(columns[argument])


def derivatives(name, points, argument, mode, order):
    """Return an element-wise derivative at all points."""
    return derivative(name, columns_of(points), argument, mode, order).numpy()


#: The number of points of all programs of XLA.
LENGTH = 10


def first_derivatives(name, points):
    """Return the first derivatives at all points by mode and argument, as one program of XLA.

    XLA takes long to compile the loops of a function, which the derivatives share. The points are
    repeated to one number of points, so that all tests of a function share a program.
    """

    def all_derivatives(*columns):
        return [
            [derivative(name, columns, argument, mode, 1) for argument in range(len(columns))]
            for mode in MODES
        ]

    columns = [nx.tensor(np.resize(column, LENGTH)) for column in columns_of(points)]
    by_mode = nx.jit(all_derivatives, compiler="xla")(*columns)
    return [[found.numpy()[: len(points)] for found in by_argument] for by_argument in by_mode]


def test_every_function_is_differentiated():
    assert INTERIOR.keys() == set(special.__all__)


@pytest.mark.parametrize("name", INTERIOR)
def test_derivatives_at_thresholds(name):
    function, points = getattr(scipy.special, name), INTERIOR[name]
    if name == "logsumexp":  # It reduces all elements.
        assert all(derivatives(name, [point], 0, nx.grad, 1).tolist() == [1.0] for point in points)
        return
    for argument in ARGUMENTS.get(name, range(len(points[0]))):
        for order in (1, 2):
            expected = [difference(function, point, argument, order) for point in points]
            for mode in MODES:
                found = derivatives(name, points, argument, mode, order)
                label = f"order {order} in argument {argument} at {points}"
                np.testing.assert_allclose(found, expected, 1e-6, 1e-7, err_msg=label)


#: The point, the derivatives in each argument, and the second derivatives; None is not compared.
ENDS = {
    "betainc": [
        ((1, 3, 0), (0, 0, 3), (0, 0, -6)),
        ((1, 1, 0), (0, 0, 1), (0, 0, 0)),
        ((1, 1, 1), (0, 0, 1), (0, 0, 0)),
        ((2, 1, 0), (0, 0, 0), (0, 0, 2)),
        ((3, 1, 1), (0, 0, 3), (0, 0, 6)),
        ((2, 2, 1), (0, 0, 0), (0, 0, -6)),
        ((0.5, 0.5, 0), (0, 0, inf), (0, 0, None)),
        ((0.5, 0.5, 1), (0, 0, inf), (0, 0, None)),
        ((2, inf, 0.5), (0, 0, 0), (0, 0, 0)),
        ((inf, 2, 0.5), (0, 0, 0), (0, 0, 0)),
    ],
    "betaln": [((0, 2), (-inf, None), (None, None)), ((2, inf), (-inf, 0), (None, None))],
    "entr": [((0,), (inf,), (-inf,))],
    "erfinv": [((1,), (inf,), (inf,)), ((-1,), (inf,), (-inf,))],
    "gammainc": [
        ((2, 0), (0, 0), (0, 1)),
        ((3, 0), (0, 0), (0, 0)),
        ((1, 0), (0, 1), (0, -1)),
        ((0.5, 0), (0, inf), (0, -inf)),
        ((0, 0.5), (-exp1(0.5), 0), (None, 0)),
        ((0, 3), (-exp1(3), 0), (None, 0)),
        ((2, inf), (0, 0), (0, 0)),
    ],
    "gammaln": [((0,), (-inf,), (None,))],
    "i0": [((inf,), (inf,), (None,)), ((-inf,), (-inf,), (None,))],
    "i1": [((inf,), (inf,), (None,)), ((-inf,), (inf,), (None,))],
    "i0e": [((0,), (-1,), (1.5,))],
    "i1e": [((0,), (0.5,), (-1,))],
    "logit": [((0,), (inf,), (-inf,)), ((1,), (inf,), (inf,))],
    "polygamma": [
        ((1, 0), (None, -inf), (None, inf)),
        ((2, 0), (None, inf), (None, -inf)),
        ((1, inf), (None, 0), (None, 0)),
    ],
    "xlog1py": [((0, -1), (-inf, 0), (0, 0)), ((2, -1), (-inf, inf), (0, -inf))],
    "xlogy": [((0, 0), (-inf, 0), (0, 0)), ((2, 0), (-inf, inf), (0, -inf))],
    "zeta": [
        ((2, 0), (None, -inf), (None, inf)),
        ((1, 1), (-inf, None), (inf, None)),
        ((inf, 1), (0, -inf), (0, None)),
        ((inf, 2), (0, 0), (0, 0)),
        ((2, inf), (0, 0), (0, 0)),
        ((1e20, 1), (0, -1e20), (0, 1e40)),
    ],
}
ENDS |= {name: [((0,), (-inf,), (inf,))] for name in ("k0", "k1", "k0e", "k1e")}
ENDS |= {name: [((0,), (inf,), (-inf,))] for name in ("y0", "y1")}
ENDS["gammaincc"] = [
    (point, *(tuple(None if x is None else -x for x in slopes) for slopes in both))
    for point, *both in ENDS["gammainc"]
]


def compare_at_ends(found, cases, order, argument):
    """Compare derivatives with the limits at the points of cases."""
    for value, case in zip(found, cases, strict=True):
        if (slope := case[order][argument]) is not None:
            label = f"order {order} in argument {argument} at {case[0]}"
            np.testing.assert_allclose(value, slope, 1e-9, 1e-14, err_msg=label)


def is_comparable(name, mode, order, case):
    """Return whether a mode has the derivatives at a point.

    The rules of `polygamma` and `zeta`, and second derivatives in forward mode, multiply the
    tangent 0 of an argument by a slope, which may be infinite.
    """
    if mode is nx.grad or (order == 1 and name not in ("polygamma", "zeta")):
        return True
    return not any(slope is None or math.isinf(slope) for slope in case[1])


@pytest.mark.parametrize("name", ENDS)
def test_derivatives_at_the_ends_of_domains(name):
    for mode in MODES:
        for order in (1, 2):
            cases = [case for case in ENDS[name] if is_comparable(name, mode, order, case)]
            points = [point for point, *_ in cases]
            for argument in range(len(points[0]) if points else 0):
                with nx.default_options(compiler="evaluator"):
                    found = derivatives(name, points, argument, mode, order)
                compare_at_ends(found, cases, order, argument)


@pytest.mark.parametrize("name", ENDS)
def test_derivatives_at_the_ends_of_domains_on_xla(name):
    points = [point for point, *_ in ENDS[name]]
    for mode, by_argument in zip(MODES, first_derivatives(name, points), strict=True):
        for argument, found in enumerate(by_argument):
            compared = [
                (value, case)
                for value, case in zip(found, ENDS[name], strict=True)
                if is_comparable(name, mode, 1, case)
            ]
            values = [value for value, _ in compared]
            compare_at_ends(values, [case for _, case in compared], 1, argument)


#: Points where other formulas would cancel or underflow, and the derivatives in each argument.
#: ``spence(x) - pi**2 / 6`` is the integral of ``log(t) / (1 - t)`` from 0 to `x`.
SMALL = {
    "betainc": [
        ((1, b, 0.999), (b * (spence(0.999) - math.pi**2 / 6), math.log(1e3), b * 1e3))
        for b in (1e-10, 1e-100)
    ],
    "gammainc": [
        ((a, x), (value * (math.log(x) - digamma(a + 1)), a * value / x))
        for a, x, value in [
            (12, 1e-12, 2.0876756987848823e-153),
            (10, 1e-20, 2.75573192239859e-207),
        ]
    ],
    "gammaincc": [((1e-20, x), (exp1(x), -1e-20 * math.exp(-x) / x)) for x in (0.1, 1.0, 1e-10)],
    "k0": [((1e-305,), (-1e305,))],
    "y0": [((1e-305,), (2e305 / math.pi,))],
}


@pytest.mark.parametrize("name", SMALL)
def test_derivatives_without_cancellation_or_underflow(compiler, name):
    points, slopes = zip(*SMALL[name], strict=True)
    if compiler == "xla":
        found = first_derivatives(name, points)
    else:
        with nx.default_options(compiler=compiler):
            found = [
                [derivatives(name, points, argument, mode, 1) for argument in range(len(slopes[0]))]
                for mode in MODES
            ]
    for mode, by_argument in zip(MODES, found, strict=True):
        for argument, expected in enumerate(zip(*slopes, strict=True)):
            label = f"{mode.__name__} in argument {argument}"
            np.testing.assert_allclose(by_argument[argument], expected, rtol=1e-8, err_msg=label)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_derivatives_at_the_threshold_of_small_parameters(name):
    function = getattr(scipy.special, name)
    for point in [(0.2, 0.5), (0.2, 1.2), (0.1, 1.1), (0.1, 0.5)]:
        for argument in (0, 1):
            for mode in MODES:
                (found,) = derivatives(name, [point], argument, mode, 1)
                expected = difference(function, point, argument, 1)
                assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["i0", "i1", "j0", "j1"])
def test_higher_derivatives_of_bessel_functions_at_zero(name):
    # The coefficients of ``sum((±1)**k (x / 2)**(2 k + order) / (k! (k + order)!))``.
    function = getattr(special, name)
    sign, first = (1 if name[0] == "i" else -1), int(name[1])
    for order in range(6):
        k, odd = divmod(order - first, 2)
        expected = 0.0
        if k >= 0 and not odd:
            factorials = math.factorial(k) * math.factorial(k + first)
            expected = sign**k * math.factorial(order) / 2.0**order / factorials
        assert function(nx.tensor(0.0, "f64")).item() == pytest.approx(
            expected, rel=1e-10, abs=1e-10
        )
        function = nx.grad(function)


def test_mixed_derivatives_of_distribution_functions():
    a, x = nx.tensor(0.0, "f64"), nx.tensor(2.0, "f64")
    mixed = nx.grad(nx.grad(special.gammainc, 1), 0)(a, x)
    assert mixed.item() == pytest.approx(math.exp(-2.0) / 2.0)


def test_derivatives_whose_squares_would_overflow(compiler):
    with nx.default_options(compiler=compiler):
        for size in (1e-25, 1.0, 1e25):
            y, x = nx.tensor([3.0, -3.0, 0.0, 2.0]) * size, nx.tensor([4.0, 4.0, 1.0, 0.0]) * size
            slopes = nx.grad(lambda y, x: nx.sum(nx.atan2(y, x)), argnums=(0, 1))(y, x)
            for found, expected in zip(
                slopes, ([0.16, 0.16, 1.0, 0.0], [-0.12, 0.12, 0.0, -0.5]), strict=True
            ):
                np.testing.assert_allclose(np.asarray(found) * size, expected, rtol=1e-6)
            z = nx.complex(x, y)
            phase = nx.grad(lambda z: nx.sum(nx.phase(z)))(z)
            np.testing.assert_allclose(np.abs(phase) * size, [0.2, 0.2, 1.0, 0.5], rtol=1e-6)
        slopes = nx.grad(lambda x: nx.sum(nx.asinh(x)))(nx.tensor([300.0, 0.0, -1e3], "f16"))
        np.testing.assert_allclose(slopes, [1 / 300, 1.0, 1e-3], rtol=1e-3)


def test_f64_operation_keeps_earlier_gradients_in_f32():
    weights = [nx.ones((4, 4)), nx.ones((4, 4))]

    def loss(weights, x):
        for weight in weights:
            x = nx.tanh(x @ weight)
        return nx.sum(x) / np.sqrt(2.0)

    traced = nx.debug_expr(nx.value_and_grad(loss))(weights, nx.ones((2, 4)))
    assert {str(node.dtype) for node in traced.nodes if node.op == "dot"} == {"f32"}
    value, _ = nx.value_and_grad(loss)(weights, nx.ones((2, 4)))
    assert value.dtype == nx.float64


#: Points of functions where each argument has a derivative while the others are constants.
CONSTANTS = {
    "xlogy": ([(2.0, 0.0), (0.0, 0.0), (0.0, 2.0), (-3.0, 0.0), (0.0, inf)],
              [(-inf, inf), (-inf, 0), (math.log(2), 0), (-inf, -inf), (inf, 0)]),
    "xlog1py": ([(2.0, -1.0), (0.0, -1.0), (0.0, 1.0), (-3.0, -1.0), (0.0, inf)],
                [(-inf, inf), (-inf, 0), (math.log(2), 0), (-inf, -inf), (inf, 0)]),
    "gammainc": ([(0.5, 0.0), (1.0, 0.0)], [(0, inf), (0, 1)]),
    "betainc": ([(0.5, 0.5, 0.0), (0.5, 0.5, 1.0)], [(0, 0, inf), (0, 0, inf)]),
    "betaln": ([(0.0, 2.0), (2.0, 0.0)], [(-inf, 0), (0, -inf)]),
    "entr": ([(0.0,), (-1.0,), (inf,), (1.0,)], [(inf,), (0,), (-inf,), (-1,)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_arguments_contribute_nothing(compiler, name):
    """The tangent 0 of a constant is not multiplied by an infinite slope."""
    points, expected = CONSTANTS[name]
    columns = [nx.tensor(column, dtype="f64") for column in zip(*points, strict=True)]
    for position, slopes in enumerate(zip(*expected, strict=True)):

        def function(x, position=position):
            arguments = [*columns[:position], x, *columns[position + 1 :]]
            return getattr(special, name)(*arguments)

        x = columns[position]
        forward = nx.jit(
            lambda x, f=function: nx.jvp(f, (x,), (nx.ones_like(x),)), compiler=compiler
        )
        reverse = nx.jit(nx.grad(lambda x, f=function: nx.sum(f(x))), compiler=compiler)
        np.testing.assert_allclose(forward(x)[1], slopes, rtol=1e-15)
        np.testing.assert_allclose(reverse(x), slopes, rtol=1e-15)


ACTIVATIONS = [
    "celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu", "log1mexp",
    "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "tanh",
]  # fmt: skip
UNARY = {name: getattr(special, name) for name, (point, *_) in INTERIOR.items() if len(point) == 1}
UNARY |= {name: getattr(nx.nn, name) for name in ACTIVATIONS}
del UNARY["logsumexp"]  # A reduction.


def test_forward_and_reverse_mode_agree_at_special_points(compiler):
    x = nx.tensor([0.0, -0.0, 0.5, 1.0, -1.0, 3.0, -3.0, 6.0, inf, -inf], dtype="f64")
    modes = {
        "reverse": lambda f, x: nx.grad(lambda x: nx.sum(f(x)))(x),
        "forward": lambda f, x: nx.jvp(f, (x,), (nx.ones_like(x),))[1],
    }
    found = nx.jit(
        lambda x: {mode: [run(f, x) for f in UNARY.values()] for mode, run in modes.items()},
        compiler=compiler,
    )(x)
    for name, reverse, forward in zip(UNARY, found["reverse"], found["forward"], strict=True):
        np.testing.assert_allclose(forward, reverse, rtol=1e-12, err_msg=name)


#: The derivatives at the bounds of activation functions, as docs/derivatives.md lists them.
BOUNDS = {
    "relu": {0: 0}, "relu6": {0: 0, 6: 0}, "hard_tanh": {-1: 0, 1: 0},
    "hard_sigmoid": {-3: 0, 3: 0}, "sparse_sigmoid": {-1: 0, 1: 0}, "hard_silu": {-3: 0, 3: 1},
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_activation_functions(name):
    for bound, slope in BOUNDS[name].items():
        assert nx.grad(getattr(nx.nn, name))(float(bound)).item() == slope
