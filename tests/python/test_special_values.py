"""The special cases of real functions in the Array API standard (2025.12).

Each line is a case: kinds of arguments, and the result of the function for all such numbers. The
signs of zeros count. ``test_complex_specials.py`` contains the cases of complex numbers.
"""

import itertools
import math

import numpy as np
import pytest

import nxla as nx

inf, nan, pi = math.inf, math.nan, math.pi
DTYPES = ["f64", "f32", "f16", "bf16"]

POSITIVE = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 100.0]
NEGATIVE = [-x for x in POSITIVE]
FINITE = [*POSITIVE, *NEGATIVE, 0.0, -0.0]
#: The numbers for each symbol of a case.
NUMBERS = {
    "nan": [nan], "inf": [inf], "-inf": [-inf], "±inf": [inf, -inf], "0": [0.0], "-0": [-0.0],
    "±0": [0.0, -0.0], "±1": [1.0, -1.0], "+": POSITIVE, "-": NEGATIVE, "finite": FINITE,
    ">0": [*POSITIVE, inf], "<0": [*NEGATIVE, -inf], "nonzero": [*POSITIVE, *NEGATIVE],
    "any": [*FINITE, inf, -inf, nan], "number": [*FINITE, inf, -inf],
    ">1": [1.5, 2.0, 3.0, 100.0, inf], "<-1": [-1.5, -2.0, -3.0, -100.0, -inf],
    "<1": [x for x in [*FINITE, -inf] if x < 1], "integer": [-100.0, -3.0, -2.0, -1.0, 1.0, 3.0],
    "|x|>1": [1.5, -1.5, 2.0, -100.0, inf, -inf], "|x|<1": [0.0, -0.0, 0.25, -0.5],
    "odd": [1.0, 3.0], "-odd": [-1.0, -3.0], "even": [0.5, 1.5, 2.0, 4.0, inf],
    "-even": [-0.5, -1.5, -2.0, -4.0, -inf], "broken": [-1.5, -0.5, 0.25, 0.5, 1.5],
    "not 0": [*POSITIVE, *NEGATIVE, inf, -inf, nan],
    "not 1": [x for x in [*FINITE, inf, -inf, nan] if x != 1],
}  # fmt: skip
#: The checks for symbols of a result; other symbols are numbers.
RESULTS = {
    "x1": lambda x, _: x, "x2": lambda _, y: y, "|x1|": lambda x, _: abs(x),
    "-|x1|": lambda x, _: -abs(x), "|x2|": lambda _, y: abs(y), "π": lambda *_: pi,
    "-π": lambda *_: -pi, "π/2": lambda *_: pi / 2, "-π/2": lambda *_: -pi / 2,
    "π/4": lambda *_: pi / 4, "-π/4": lambda *_: -pi / 4, "3π/4": lambda *_: 3 * pi / 4,
    "-3π/4": lambda *_: -3 * pi / 4,
    "sign": lambda x, y: math.copysign(inf, x) * math.copysign(1, y),
    "True": lambda *_: 1.0, "False": lambda *_: 0.0,
}  # fmt: skip

CASES = {
    "abs": "nan → nan; -0 → 0; -inf → inf; any → |x1|",
    "acos": "nan → nan; >1 → nan; <-1 → nan; 1 → 0",
    "acosh": "nan → nan; <1 → nan; 1 → 0; inf → inf",
    "asin": "nan → nan; >1 → nan; <-1 → nan; ±0 → x1",
    "asinh": "nan → nan; ±0 → x1; ±inf → x1",
    "atan": "nan → nan; ±0 → x1; inf → π/2; -inf → -π/2",
    "atanh": "nan → nan; >1 → nan; <-1 → nan; -1 → -inf; 1 → inf; ±0 → x1",
    "ceil": "nan → nan; ±inf → x1; ±0 → x1; integer → x1",
    "cos": "nan → nan; ±0 → 1; ±inf → nan",
    "cosh": "nan → nan; ±0 → 1; ±inf → inf",
    "exp": "nan → nan; ±0 → 1; inf → inf; -inf → 0",
    "expm1": "nan → nan; ±0 → x1; inf → inf; -inf → -1",
    "floor": "nan → nan; ±inf → x1; ±0 → x1; integer → x1",
    "isfinite": "nan → False; ±inf → False; finite → True",
    "isinf": "nan → False; ±inf → True; finite → False",
    "isnan": "nan → True; number → False",
    "log": "nan → nan; <0 → nan; ±0 → -inf; 1 → 0; inf → inf",
    "log1p": "nan → nan; <-1 → nan; -1 → -inf; ±0 → x1; inf → inf",
    "log2": "nan → nan; <0 → nan; ±0 → -inf; 1 → 0; inf → inf",
    "log10": "nan → nan; <0 → nan; ±0 → -inf; 1 → 0; inf → inf",
    "reciprocal": "nan → nan; inf → 0; -inf → -0; 0 → inf; -0 → -inf",
    "round": "nan → nan; ±inf → x1; ±0 → x1; integer → x1; 0.5 → 0; 1.5 → 2; -0.5 → -0; 2.5 → 2",
    "sign": "nan → nan; <0 → -1; ±0 → 0; >0 → 1",
    "signbit": "0 → False; -0 → True; inf → False; -inf → True; + → False; - → True; nan → False",
    "sin": "nan → nan; ±0 → x1; ±inf → nan",
    "sinh": "nan → nan; ±0 → x1; ±inf → x1",
    "square": "nan → nan; ±0 → 0; ±inf → inf",
    "sqrt": "nan → nan; <0 → nan; ±0 → x1; inf → inf",
    "tan": "nan → nan; ±0 → x1; ±inf → nan",
    "tanh": "nan → nan; ±0 → x1; inf → 1; -inf → -1",
    "trunc": "nan → nan; ±0 → x1; ±inf → x1; integer → x1",
    "add": """nan any → nan; any nan → nan; inf -inf → nan; -inf inf → nan; inf inf → inf;
        -inf -inf → -inf; ±inf finite → x1; finite ±inf → x2; -0 -0 → -0; -0 0 → 0; 0 ±0 → 0;
        ±0 nonzero → x2; nonzero ±0 → x1; 1.5 -1.5 → 0""",
    "atan2": """nan any → nan; any nan → nan; >0 ±0 → π/2; 0 >0 → 0; 0 0 → 0; 0 -0 → π; 0 <0 → π;
        -0 >0 → -0; -0 0 → -0; -0 -0 → -π; -0 <0 → -π; <0 ±0 → -π/2; + inf → 0; + -inf → π;
        - inf → -0; - -inf → -π; inf finite → π/2; -inf finite → -π/2; inf inf → π/4;
        inf -inf → 3π/4; -inf inf → -π/4; -inf -inf → -3π/4""",
    "copysign": """number <0 → -|x1|; number -0 → -|x1|; number 0 → |x1|; number >0 → |x1|;
        nan any → nan""",
    "divide": """nan any → nan; any nan → nan; ±inf ±inf → nan; ±0 ±0 → nan; 0 >0 → 0; -0 >0 → -0;
        0 <0 → -0; -0 <0 → 0; >0 0 → inf; >0 -0 → -inf; <0 0 → -inf; <0 -0 → inf; inf + → inf;
        inf - → -inf; -inf + → -inf; -inf - → inf; + inf → 0; + -inf → -0; - inf → -0;
        - -inf → 0""",
    "equal": """nan any → False; any nan → False; inf inf → True; -inf -inf → True; ±0 ±0 → True;
        1.5 1.5 → True; + - → False; finite ±inf → False; inf -inf → False""",
    # The standard allows several results. The quotient of an infinity is the recommended one, and
    # the quotient by an infinity follows Python: minus one instead of minus zero.
    "floor_divide": """nan any → nan; any nan → nan; ±inf ±inf → nan; ±0 ±0 → nan; 0 >0 → 0;
        -0 >0 → -0; 0 <0 → -0; -0 <0 → 0; + 0 → inf; + -0 → -inf; - 0 → -inf; - -0 → inf;
        inf 0 → inf; inf -0 → -inf; -inf 0 → -inf; -inf -0 → inf; inf + → inf; inf - → -inf;
        -inf + → -inf; -inf - → inf; + inf → 0; + -inf → -1; - inf → -1; - -inf → 0; 1.5 2 → 0;
        -1.5 -2 → 0; -1.5 2 → -1; 100 -3 → -34""",
    "hypot": """±inf any → inf; any ±inf → inf; ±0 any → |x2|; any ±0 → |x1|; nan finite → nan;
        finite nan → nan; nan nan → nan""",
    "logaddexp": "nan any → nan; any nan → nan; inf number → inf; number inf → inf",
    "maximum": "nan any → nan; any nan → nan; inf number → inf; number -inf → x1",
    "minimum": "nan any → nan; any nan → nan; -inf number → -inf; number inf → x1",
    "multiply": """nan any → nan; any nan → nan; ±inf ±0 → nan; ±0 ±inf → nan; ±inf ±inf → sign;
        ±inf nonzero → sign; nonzero ±inf → sign; 0 + → 0; 0 - → -0; -0 + → -0; - -0 → 0""",
    "nextafter": "nan any → nan; any nan → nan; -0 0 → 0; 0 -0 → -0; inf inf → inf; 2 2 → 2",
    "not_equal": """nan any → True; any nan → True; inf -inf → True; -inf inf → True; + - → True;
        inf inf → False; ±0 ±0 → False; 1.5 1.5 → False""",
    "pow": """not·1 nan → nan; any ±0 → 1; nan not·0 → nan; |x|>1 inf → inf; |x|>1 -inf → 0;
        ±1 ±inf → 1; 1 number → 1; |x|<1 inf → 0; |x|<1 -inf → inf; inf >0 → inf; inf <0 → 0;
        -inf odd → -inf; -inf even → inf; -inf -odd → -0; -inf -even → 0; 0 >0 → 0; 0 <0 → inf;
        -0 odd → -0; -0 even → 0; -0 -odd → -inf; -0 -even → inf; - broken → nan""",
    "remainder": """nan any → nan; any nan → nan; ±inf any → nan; ±0 ±0 → nan; 0 >0 → 0; -0 >0 → 0;
        0 <0 → -0; -0 <0 → -0; any ±0 → nan; + inf → x1; + -inf → x2; - inf → x2; - -inf → x1""",
    "subtract": """nan any → nan; any nan → nan; inf inf → nan; -inf -inf → nan; ±inf finite → x1;
        -0 0 → -0; ±0 -0 → 0; 0 0 → 0; 1.5 1.5 → 0; nonzero ±0 → x1""",
}  # fmt: skip


def cases(name):
    """Yield the arguments of all cases of a function, and the expected results."""
    for line in CASES[name].split(";"):
        left, _, result = line.partition("→")
        symbols = [symbol.replace("·", " ") for symbol in left.split()]
        numbers = [NUMBERS[symbol] if symbol in NUMBERS else [float(symbol)] for symbol in symbols]
        for values in itertools.product(*numbers):
            expected = RESULTS.get(result.strip(), lambda *_: None)(
                *values, *[nan] * (2 - len(values))
            )
            yield values, float(result) if expected is None else expected


@pytest.mark.parametrize("name", CASES)
def test_special_cases(name, compiler):
    arguments, results = zip(*cases(name), strict=True)
    columns = [np.array(column) for column in zip(*arguments, strict=True)]
    # One program for all dtypes compiles faster than one program for each dtype.
    typed = [[nx.tensor(x, dtype=dtype) for x in columns] for dtype in DTYPES]
    function = getattr(nx, name)
    found = nx.jit(lambda typed: [function(*x) for x in typed], compiler=compiler)(typed)
    for dtype, result in zip(DTYPES, found, strict=True):
        values = nx.astype(result, "f64").numpy()
        expected = nx.astype(nx.tensor(np.array(results), dtype=dtype), "f64").numpy()
        close = np.isclose(values, expected, rtol=1e-2, atol=0, equal_nan=True)
        exact = np.isin(expected, [0.0, 1.0, -1.0, inf, -inf])
        matches = np.where(exact, values == expected, close)
        matches &= np.isnan(expected) | (np.signbit(values) == np.signbit(expected))
        failures = [
            (dtype, arguments[index], values[index], results[index])
            for index in np.flatnonzero(~matches)
        ]
        assert failures == []
