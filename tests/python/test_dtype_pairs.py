"""Functions of several tensors, with every pair of dtypes in every pair of operands.

Expected values come from NumPy in 64 bits, or from exact integers that wrap around in the dtype of
the result. The dtypes of results follow the rules of the guide, which `promoted` implements here.
"""

import zlib

import numpy as np
import pytest

import nxla as nx
from where import PLATFORM

UNSIGNED = ["u2", "u4", "u8", "u16", "u32", "u64"]
SIGNED = ["s2", "s4", "s8", "s16", "s32", "s64"]
#: Each dtype promotes to the next one. Exception: for f8_e4m3fn and the next dtype, the left
#: operand decides.
REALS = ["bf16", "f8_e5m2", "f16", "f32", "f64"]
FLOATS = [*REALS, "f8_e4m3fn"]
COMPLEX = ["c64", "c128"]
INTEGERS = ["bool", *UNSIGNED, *SIGNED]
DTYPES = [*INTEGERS, *FLOATS, *COMPLEX]


def bits(dtype):
    return 8 if dtype.startswith("f8") else int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))


def kind(dtype):
    return "b" if dtype == "bool" else "i" if dtype in INTEGERS else "f" if dtype in FLOATS else "c"


def promoted(a, b):
    """Return the common dtype of two operands, by the rules of the guide."""
    kinds = "bifc"
    if a == b:
        return a
    if "bool" in (a, b) and kind(a) + kind(b) in ("bi", "ib"):
        return promoted("u8", a if b == "bool" else b)
    if kind(a) != kind(b):
        low, high = sorted((a, b), key=lambda dtype: kinds.index(kind(dtype)))
        return "c128" if low == "f64" else high
    if "f8_e4m3fn" in (a, b):
        return "f8_e4m3fn" if "bf16" in (a, b) else a
    if kind(a) == "f":
        return max(a, b, key=REALS.index)
    if a[0] == b[0]:
        return max(a, b, key=bits)
    unsigned, signed = (a, b) if a[0] == "u" else (b, a)
    return f"s{min(64, max(2 * bits(unsigned), bits(signed)))}"


def floating(dtype):
    return dtype if kind(dtype) in "fc" else "f32"


def has_u64_and_signed(a, b):
    return "u64" in (a, b) and (a in SIGNED or b in SIGNED)


RESULTS = {
    "common": promoted,
    "arithmetic": lambda a, b: "u8" if a == b == "bool" else promoted(a, b),
    "float": lambda a, b: floating(promoted(a, b)),
    "bool": lambda a, b: "bool",
    "x": lambda a, b: a,
    "y": lambda a, b: b,
    "complex": lambda a, b: "c128" if promoted(a, b) == "f64" else "c64",
    "larger": lambda a, b: "u64" if has_u64_and_signed(a, b) else RESULTS["arithmetic"](a, b),
    "limited": lambda a, b: (
        b if has_u64_and_signed(a, b) and b == "u64" else RESULTS["arithmetic"](a, b)
    ),
    "s32": lambda a, b: "s32",
    "float of x": lambda a, b: floating(a),
}

NUMBERS = {
    "b": [1, 0, 1],
    "u": [3, 1, 2],
    "s": [1, -2, 1],
    "f": [1.5, -2.0, 0.5],
    "c": [1.5 + 0.5j, -2.0, 0.5j],
}
DATA = {dtype: np.array(NUMBERS[dtype[0]]) for dtype in DTYPES} | {
    dtype: np.array(NUMBERS["f"]) for dtype in FLOATS
}
MASK = np.array([True, False, True])


def put(x, y):
    """Return an array with another element, whose fraction is dropped if it becomes an integer."""
    x = x.copy()
    x[1] = y[0] if x.dtype.kind in "fc" else int(y[0])
    return x


def put_common(x, y):
    """Return an array of the common dtype with another element."""
    return np.array([x[0], y[0], x[2]])


def padded(x, y):
    x, y = np.broadcast_arrays(x, y[0])
    return np.concatenate([y[:1], x, y[:1]])


#: The name, the kinds of both operands, the kind of the result, and the functions of nxla and
#: NumPy.
ROWS = [
    ("add", "bifc bifc", "arithmetic", nx.add, np.add),
    ("subtract", "bifc bifc", "arithmetic", nx.subtract, lambda x, y: x * 1 - y * 1),
    ("multiply", "bifc bifc", "arithmetic", nx.multiply, lambda x, y: (x * 1) * (y * 1)),
    ("divide", "fc fc", "float", lambda x, y: nx.divide(x, y + y), lambda x, y: x / (y * 2)),
    ("maximum", "bif bif", "larger", nx.maximum, np.maximum),
    ("minimum", "bif bif", "arithmetic", nx.minimum, np.minimum),
    ("atan2", "bif bif", "float", nx.atan2, np.arctan2),
    ("hypot", "bif bif", "float", nx.hypot, np.hypot),
    ("logaddexp", "bif bif", "float", nx.logaddexp, np.logaddexp),
    ("equal", "bifc bifc", "bool", nx.equal, np.equal),
    ("not_equal", "bifc bifc", "bool", nx.not_equal, np.not_equal),
    ("less", "bif bif", "bool", nx.less, np.less),
    ("greater_equal", "bif bif", "bool", nx.greater_equal, np.greater_equal),
    ("logical_and", "bifc bifc", "bool", nx.logical_and, np.logical_and),
    ("logical_xor", "bifc bifc", "bool", nx.logical_xor, np.logical_xor),
    ("bitwise_and", "bi bi", "common", nx.bitwise_and, lambda x, y: x & y),
    ("bitwise_xor", "bi bi", "common", nx.bitwise_xor, lambda x, y: x ^ y),
    ("isin", "bifc bifc", "bool", nx.isin, np.isin),
    ("where", "bifc bifc", "common", lambda x, y: nx.where(MASK, x, y),
     lambda x, y: np.where(MASK, x, y)),
    ("where by x", "bifc bifc", "y", lambda x, y: nx.where(x, y, y), lambda x, y: y),
    ("concat", "bifc bifc", "common", lambda x, y: nx.concat([x, y]),
     lambda x, y: np.concatenate([x, y])),
    ("stack", "bifc bifc", "common", lambda x, y: nx.stack([x, y]), lambda x, y: np.stack([x, y])),
    ("pad", "bifc bifc", "common", lambda x, y: nx.pad(x, y[0], [(1, 1)]), padded),
    ("clip", "bif bif", "limited", lambda x, y: nx.clip(x, y[1], y[0]),
     lambda x, y: np.clip(x, y[1], y[0])),
    ("at.set", "bif bif", "x", lambda x, y: x.at[1].set(y[0]), put),
    ("at.set complex", "c bifc", "x", lambda x, y: x.at[1].set(y[0]), put),
    ("at.add", "if if", "x", lambda x, y: x.at[1].add(y[0]),
     lambda x, y: put(x, x[1:] + (y[0] if x.dtype.kind == "f" else int(y[0])))),
    ("indexed_put", "bifc bifc", "common", lambda x, y: nx.indexed_put(x, [1], y[0]), put_common),
    ("indexed_add", "ifc ifc", "common", lambda x, y: nx.indexed_add(x, [1], y[0]),
     lambda x, y: put_common(x, x[1:] + y[0])),
    ("put_slice", "bifc bifc", "common", lambda x, y: nx.put_slice(x, [1], y[:1]), put_common),
    ("searchsorted", "bif bif", "s32", lambda x, y: nx.searchsorted(nx.sort(x), y),
     lambda x, y: np.searchsorted(np.sort(x), y)),
    ("outer", "bifc bifc", "arithmetic", nx.outer, lambda x, y: np.outer(x * 1, np.conj(y * 1))),
    ("linalg.outer", "bifc bifc", "arithmetic", nx.linalg.outer,
     lambda x, y: np.outer(x * 1, y * 1)),
    ("dot", "bifc bifc", "arithmetic", nx.dot, lambda x, y: np.dot(x * 1, y * 1)),
    ("vecdot", "if if", "arithmetic", nx.vecdot, np.dot),
    ("einsum", "ifc ifc", "arithmetic", lambda x, y: nx.einsum("i,j->ij", x, y), np.outer),
    ("conv", "if if", "float", lambda x, y: nx.conv(x[None, None], y[None, None, :2])[0, 0],
     lambda x, y: np.correlate(x, y[:2])),
    ("complex", "bif bif", "complex", nx.complex, lambda x, y: x + 1j * y),
    ("reduce", "ifc ifc", "arithmetic", lambda x, y: nx.reduce(x, y[0], lambda a, b: a + b),
     lambda x, y: x.sum() + y[0]),
    ("kron", "bifc bifc", "arithmetic", nx.kron, lambda x, y: np.kron(x * 1, y * 1)),
    ("squared_error", "bif bif", "float", nx.nn.squared_error, lambda x, y: (x * 1 - y) ** 2),
    ("take", "bifc i", "x", lambda x, y: nx.take(x, nx.maximum(y, 0)),
     lambda x, y: x[np.clip(y, 0, 2)]),
    ("take_along_axis", "bifc i", "x", lambda x, y: nx.take_along_axis(x, nx.maximum(y, 0), 0),
     lambda x, y: x[np.clip(y, 0, 2)]),
    ("slice", "bifc i", "x", lambda x, y: nx.slice(x, [nx.maximum(y[0], 0)], [1]),
     lambda x, y: x[np.clip(y[:1], 0, 2)]),
    ("slice_along_axis", "bifc i", "x", lambda x, y: nx.slice_along_axis(x, nx.maximum(y[0], 0), 1),
     lambda x, y: x[np.clip(y[:1], 0, 2)]),
    ("gather", "bifc i", "x", lambda x, y: nx.gather(x, nx.maximum(y, 0)[:, None]),
     lambda x, y: x[np.clip(y, 0, 2)]),
    ("embedding", "bifc i", "x",
     lambda x, y: nx.nn.embedding(nx.stack([x, x, x]), nx.maximum(y, 0)),
     lambda x, y: np.stack([x] * 3)),
    ("bitwise_left_shift", "i i", "common", lambda x, y: nx.bitwise_left_shift(x, y * 0 + 1),
     lambda x, y: x << 1),
    ("bitwise_right_shift", "i i", "common", lambda x, y: nx.bitwise_right_shift(x, y * 0 + 1),
     lambda x, y: x >> 1),
    ("layer_norm", "if if", "float of x", lambda x, y: nx.nn.layer_norm(x, y, y),
     lambda x, y: (x - x.mean()) / np.sqrt(x.var() + 1e-5) * y + y),
    ("rms_norm", "if if", "float of x", lambda x, y: nx.nn.rms_norm(x, y),
     lambda x, y: x / np.sqrt((x * 1.0 * x).mean() + 1e-6) * y),
    ("group_norm", "if if", "float of x", lambda x, y: nx.nn.group_norm(x[None], 1, y, y)[0],
     lambda x, y: (x - x.mean()) / np.sqrt(x.var() + 1e-5) * y + y),
    ("batch_norm", "if if", "float of x",
     lambda x, y: nx.nn.batch_norm(x[None], y, y * 0 + 1, y, y)[0],
     lambda x, y: (x - y) / np.sqrt(1 + 1e-5) * y + y),
    ("huber_loss", "if if", "float", lambda x, y: nx.nn.huber_loss(x, y, delta=1.0),
     lambda x, y: np.where(abs(x - y) <= 1, (x - y) ** 2 / 2, abs(x - y) - 0.5)),
    ("sigmoid_binary_cross_entropy", "if bif", "float", nx.nn.sigmoid_binary_cross_entropy,
     lambda x, y: np.log1p(np.exp(x)) - x * y),
    ("softmax_cross_entropy", "if bif", "float", nx.nn.softmax_cross_entropy,
     lambda x, y: np.sum(y * (np.log(np.sum(np.exp(x))) - x))),
    ("cosine_similarity", "if if", "float", nx.nn.cosine_similarity,
     lambda x, y: np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y))),
    ("softmax_cross_entropy_with_integer_labels", "if i", "float of x",
     lambda x, y: nx.nn.softmax_cross_entropy_with_integer_labels(x, nx.maximum(y[0], 0) * 0 + 1),
     lambda x, y: np.log(np.sum(np.exp(x))) - x[1]),
    ("kl_divergence", "if if", "float",
     lambda x, y: nx.nn.kl_divergence(x, nx.maximum(y, 0)),
     lambda x, y: np.sum(np.maximum(y, 0) * (np.log(np.where(y > 0, y, 1)) - x))),
    ("covariance", "if if", "float", lambda x, y: nx.covariance(x[:, None], y[:1])[0, 0],
     lambda x, y: np.mean((x - y[0]) ** 2)),
    ("least_squares", "if if", "float", lambda x, y: nx.linalg.least_squares(x[:, None], y)[0],
     lambda x, y: np.dot(x, y) / np.dot(x, x)),
    ("solve", "if if", "float", lambda x, y: nx.linalg.solve(nx.make_diagonal(x), y),
     lambda x, y: y / x),
    ("dot_product_attention", "if if", "float of x",
     lambda x, y: nx.nn.dot_product_attention(
         x[None, None, :1], y[:, None, None], y[:, None, None]
     )[0, 0, 0],
     lambda x, y: np.sum(np.exp(x[0] * y) * y) / np.sum(np.exp(x[0] * y))),
    ("window_scatter_min", "if if", "y",
     lambda x, y: nx.window_scatter_min(x, y[:1], y[0] * 0, 3),
     lambda x, y: np.where(np.arange(3) == 2 - np.argmin(x[::-1]), y[0], 0)),
    ("window_scatter_max", "if if", "y",
     lambda x, y: nx.window_scatter_max(x, y[:1], y[0] * 0, 3),
     lambda x, y: np.where(np.arange(3) == 2 - np.argmax(x[::-1]), y[0], 0)),
    ("triangular_solve", "if if", "float",
     lambda x, y: nx.linalg.triangular_solve(nx.make_diagonal(x), y), lambda x, y: y / x),
    ("quotient", "i i", "common", lambda x, y: nx.quotient(x, y * 0 + 1), lambda x, y: x),
]  # fmt: skip


def expected_of(theirs, a, b, dtype):
    """Return NumPy's result, wrapped to a dtype, and the error that rounding may have."""
    with np.errstate(all="ignore"):
        exact = np.asarray(theirs(DATA[a], DATA[b]))
    if dtype == "bool":
        return exact.astype(bool), 0.0
    if dtype in INTEGERS:
        low, width = nx.iinfo(dtype).min, 2 ** bits(dtype)
        wrap = np.vectorize(lambda n: (int(n) - low) % width + low, otypes="O")
        return wrap(exact), 0.0
    return exact, 8 * float(nx.finfo(dtype).eps)


def numbers(x):
    """Return a result as a NumPy array, in a dtype that can represent it."""
    wide = {"f": "f64", "c": "c128"}.get(kind("bool" if x.dtype == nx.bool else str(x.dtype)))
    return np.asarray(nx.astype(x, wide)) if wide else np.array(x.tolist(), "O")


def pairs_of(row):
    kinds = [set(k) for k in row[1].split()]
    return [(a, b) for a in DTYPES for b in DTYPES if kind(a) in kinds[0] and kind(b) in kinds[1]]


#: Functions that are Triton kernels of XLA on a GPU, which it cannot compile for packed integers.
UNSUPPORTED_FOR_PACKED_INTEGERS = {
    "dot_product_attention",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
}


def sample_pairs(row):
    """Return pairs in which each dtype occurs on both sides, in a different order for each row."""
    pairs, shift = pairs_of(row), zlib.crc32(row[0].encode())
    left, right = ([d for d in DTYPES if d in {pair[i] for pair in pairs}] for i in (0, 1))
    return [
        (left[i % len(left)], right[(i + shift) % len(right)])
        for i in range(max(len(left), len(right)))
    ]


def wrong_results(row, pairs, mode):
    name, _, rule, ours, theirs = row
    tensors = {dtype: nx.tensor(DATA[dtype].tolist(), dtype=dtype) for dtype in DTYPES}

    def all_pairs(tensors):
        return [ours(tensors[a], tensors[b]) for a, b in pairs]

    if mode == "eager":
        results = all_pairs(tensors)
    elif mode == "vmap":
        results = [
            x[1] for x in nx.vmap(all_pairs)({d: nx.stack([x, x]) for d, x in tensors.items()})
        ]
    else:
        results = nx.jit(all_pairs, compiler=mode)(tensors)
    for (a, b), found in zip(pairs, results, strict=True):
        dtype = RESULTS[rule](a, b)
        name_of = "bool" if found.dtype == nx.bool else str(found.dtype)
        if name_of != dtype:
            yield f"{mode} {name}({a}, {b}) is {name_of}, expected {dtype}"
            continue
        expected, error = expected_of(theirs, a, b, dtype)
        try:
            if error:
                np.testing.assert_allclose(numbers(found), expected, rtol=error, atol=error)
            else:
                np.testing.assert_array_equal(numbers(found), expected)
        except AssertionError:
            yield f"{mode} {name}({a}, {b}): {numbers(found).tolist()} for {expected.tolist()}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_pair_of_dtypes(row):
    wrong = [*wrong_results(row, pairs_of(row), "eager")]
    for mode in ("evaluator", "xla", "vmap"):
        pairs = sample_pairs(row)
        if PLATFORM == "cuda" and mode == "xla" and row[0] in UNSUPPORTED_FOR_PACKED_INTEGERS:
            packed = {"u2", "u4", "s2", "s4"}
            pairs = [pair for pair in pairs if packed.isdisjoint(pair)]
        wrong += wrong_results(row, pairs, mode)
    assert not wrong, "\n".join(wrong)


def test_the_common_dtype_of_every_pair():
    for a in DTYPES:
        for b in DTYPES:
            assert nx.result_type(a, b) == promoted(a, b), (a, b)
