"""A compiler written in Python: it computes expressions with numpy, node by node.

It implements the operations that the tests of compilers use, and rejects others.
"""

import numpy as np

import nxla as nx


class NumpyCompiler(nx.Compiler):
    """Overrides all five methods, and counts their calls."""

    name = "numpy"

    def __init__(self):
        self.compiled = []
        self.jitted = []
        self.streams = 0

    def jit(self, function, options):
        self.jitted.append(getattr(function, "__name__", "?"))
        return super().jit(function, options)

    def compile(self, expression, options):
        unknown = set(options) - {"device"}
        if unknown:
            raise nx.OptionError(f"numpy has no option {min(unknown)!r}")
        check(expression)
        self.compiled.append(expression.digest)
        return lambda inputs: [nx.tensor(x) for x in run(expression, [t.numpy() for t in inputs])]

    def stream(self, function, template, initial, options):
        self.streams += 1
        return super().stream(function, template, initial, options)

    def partitions_options(self, options):
        return [{**options, "device": number} for number in range(2)]

    def to_backend(self, options):
        return "host"


DTYPES = {
    nx.bool: np.dtype(bool),
    **{getattr(nx, np.dtype(kind).name): np.dtype(kind) for kind in "bhilBHILefdFD"},
}
UNARY = {
    "negate": np.negative, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "exp": np.exp,
    "log": np.log, "sqrt": np.sqrt, "abs": np.abs,
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "pow": np.power, "max": np.maximum, "min": np.minimum, "remainder": np.fmod,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "greater": np.greater,
    "less_equal": np.less_equal, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "bitwise_and": np.bitwise_and,
    "quotient": lambda x, y: np.trunc(np.true_divide(x, y)),
}  # fmt: skip


def check(expression):
    """Reject unsupported operations at compile time, including operations in regions."""
    for node in expression.nodes:
        known = node.op in UNARY or node.op in BINARY or node.op in STRUCTURED
        if not known:
            raise NotImplementedError(f"numpy cannot compute {node.op}")
        for region in node.regions:
            check(region)


def run(expression, inputs):
    """Compute all outputs; `inputs` are numpy arrays."""
    values = {}
    for node in expression.nodes:
        args = [values[operand.id] for operand in node.args]
        values[node.id] = compute(node, args, inputs)
    return [values[node.id] for node in expression.output_nodes]


def compute(node, args, inputs):
    if node.op == "parameter":
        return inputs[node.attributes["index"]]
    if node.op in STRUCTURED:
        result = STRUCTURED[node.op](node, *args)
    else:
        with np.errstate(all="ignore"):
            dtype = numpy_dtype(nx.result_type(*(nx.tensor(x).dtype for x in args), node.dtype))
            function = UNARY.get(node.op) or BINARY[node.op]
            result = function(*(x.astype(dtype) for x in args))
    if node.results != 1 or isinstance(result, tuple):
        return result
    return np.asarray(result, numpy_dtype(node.dtype))


def numpy_dtype(dtype):
    return DTYPES[dtype]


def axes_of(node):
    axes = node.attributes["axes"]
    return axes if axes is None else tuple(axes)


def reduction(function):
    return lambda node, x: function(x, axis=axes_of(node), keepdims=node.attributes["keep_axes"])


def broadcast(node, x):
    shape, axes = node.attributes["shape"], node.attributes["axes"]
    expanded = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        expanded[axis] = size
    return np.broadcast_to(x.reshape(expanded), shape)


def dot(node, x, y):
    a = node.attributes
    assert not a["left_batch"], "batched dot products are not supported"
    return np.tensordot(x, y, axes=(a["left_contract"], a["right_contract"]))


def slice_(node, x, *dynamic):
    a, dynamic = node.attributes, iter(dynamic)
    starts = [int(next(dynamic)) if start is None else start for start in a["starts"]]
    ranges = []
    for start, length, stride, size in zip(
        starts, a["lengths"], a["strides"], x.shape, strict=True
    ):
        first = min(max(start, 0), size - length)
        ranges.append(slice(first, first + length, stride))
    return x[tuple(ranges)]


def cond(node, *args):
    for predicate, body in node.attributes["clauses"]:
        if run(predicate, args)[0]:
            return parts(run(body, args), node)
    return parts(run(node.attributes["otherwise"], args), node)


def while_loop(node, *args):
    count = node.attributes["state"]
    state, captured = list(args[:count]), args[count:]
    while run(node.attributes["condition"], [*state, *captured])[0]:
        state = run(node.attributes["body"], [*state, *captured])
    return parts(state, node)


def hook(node, *args):
    node.attributes["function"](*(nx.tensor(x) for x in args))
    return parts(args, node)


def metadata(node, *args):
    return parts(args[: node.attributes.get("outputs", len(args))], node)


def parts(values, node):
    return values[0] if node.results == 1 else tuple(values)


STRUCTURED = {
    "parameter": None,
    "constant": lambda node: np.full(node.shape, node.attributes["value"]),
    "tensor": lambda node: node.attributes["value"].numpy(),
    "iota": lambda node: np.arange(int(np.prod(node.shape))).reshape(node.shape),
    "as_type": lambda node, x: x,
    "reshape": lambda node, x: x.reshape(node.shape),
    "squeeze": lambda node, x: x.reshape(node.shape),
    "transpose": lambda node, x: x.transpose(axes_of(node)),
    "broadcast": broadcast,
    "select": lambda node, p, x, y: np.where(p, x, y),
    "concatenate": lambda node, *xs: np.concatenate(xs, node.attributes["axis"]),
    "slice": slice_,
    "sum": reduction(np.sum),
    "product": reduction(np.prod),
    "reduce_max": reduction(np.max),
    "reduce_min": reduction(np.min),
    "all": reduction(np.all),
    "any": reduction(np.any),
    "dot": dot,
    "elem": lambda node, values: values[node.attributes["index"]],
    "cond": cond,
    "while": while_loop,
    "io_call": hook,
    "metadata": metadata,
}
