"""A wrong argument raises an error that names the function and the argument."""

import functools
import math
import re

import numpy as np
import pytest

import nxla as nx

#: Calls of functions in Python with an argument that is not a boolean, with the function and the
#: argument.
NOT_BOOLEANS = {
    ("tensor", "copy"): lambda: nx.tensor([1], copy=3),
    ("histogram", "density"): lambda: nx.histogram(nx.ones(3), density=3),
    ("svd", "full_matrices"): lambda: nx.linalg.svd(nx.eye(2), full_matrices="yes"),
    ("choice", "replace"): lambda: nx.random.choice(nx.random.key(0), [1, 2], replace="no"),
    ("devectorize", "keep_names"): lambda: nx.devectorize(nx.ones(2), keep_names=3),
    ("scan", "reverse"): lambda: nx.scan(lambda c, x: (c, x), 0, nx.ones(2), reverse="no"),
    ("associative_scan", "reverse"): lambda: nx.associative_scan(nx.add, nx.ones(2), reverse=1),
    ("digitize", "right"): lambda: nx.digitize(nx.ones(3), [0.0, 1.0], "no"),
    ("linspace", "endpoint"): lambda: nx.linspace(0.0, 1.0, 3, "no"),
    ("isin", "invert"): lambda: nx.isin([1], [1], invert="no"),
    ("resize", "antialias"): lambda: nx.nn.resize(nx.ones(2), (4,), antialias="no"),
    ("interpolate", "antialias"): lambda: nx.nn.interpolate(
        nx.ones((1, 1, 2)), 4, mode="linear", antialias="no"
    ),
    ("batches", "shuffle"): lambda: nx.data.batches([1, 2], 1, shuffle="no"),
    ("batches", "drop_last"): lambda: nx.data.batches([1, 2], 1, drop_last=1),
    ("grad", "has_aux"): lambda: nx.grad(nx.sin, has_aux="no")(1.0),
    ("jacfwd", "has_aux"): lambda: nx.jacfwd(nx.sin, has_aux="no")(1.0),
    ("vjp", "has_aux"): lambda: nx.vjp(nx.sin, 1.0, has_aux="no"),
}


def test_numpy_booleans_are_accepted():
    reverse = nx.scan(lambda c, x: (c, x), 0, nx.ones(2), reverse=np.True_)
    assert reverse[1].tolist() == [1.0, 1.0]
    assert nx.digitize([1.0], [0.0, 1.0], np.bool_(True)).item() == 1


#: Calls with an argument that is not an integer.
NOT_INTEGERS = {
    ("resize", "shape"): lambda n: nx.nn.resize(nx.ones((2, 2)), (n, 2)),
    ("MultiSteps", "every_k_schedule"): lambda n: nx.optim.MultiSteps(nx.optim.sgd(1.0), n),
    ("scale_by_lbfgs", "memory_size"): nx.optim.scale_by_lbfgs,
    ("eye", "k"): lambda n: nx.eye(2, k=n),
    ("broadcast_shapes", "shapes"): lambda n: nx.broadcast_shapes((2, n)),
    ("split", "sections"): lambda n: nx.split(nx.ones(2), sections=n),
    ("while_loop", "max_trips"): lambda n: nx.while_loop(
        lambda s: s < 2, lambda s: s + 1, 0, max_trips=n
    ),
    ("scan", "length"): lambda n: nx.scan(lambda c, x: (c, x), 0, length=n),
    ("split", "parts"): lambda n: nx.random.split(nx.random.key(0), n),
    ("choice", "samples"): lambda n: nx.random.choice(nx.random.key(0), nx.arange(3), samples=n),
    ("set_print_options", "precision"): lambda n: nx.set_print_options(precision=n),
    ("grad", "argnums"): lambda n: nx.grad(lambda x, y: x * y, n)(1.0, 2.0),
    ("custom_jvp", "nondiff_argnums"): lambda n: nx.custom_jvp(nx.sin, nondiff_argnums=n),
    ("jit", "static_argnums"): lambda n: nx.jit(nx.sin, static_argnums=n),
    ("moveaxis", "source"): lambda n: nx.moveaxis(nx.ones((2, 2)), n, 0),
    ("moveaxis", "destination"): lambda n: nx.moveaxis(nx.ones((2, 2)), 0, n),
    ("partition", "kth"): lambda n: nx.partition(nx.ones(2), n),
    ("roll", "axis"): lambda n: nx.roll(nx.ones(2), 1, axis=n),
    ("binomial", "shape"): lambda n: nx.random.binomial(nx.random.key(0), 3, 0.5, shape=n),
    ("conv_transpose", "strides"): lambda n: nx.nn.conv_transpose(
        nx.ones((1, 1, 2)), nx.ones((1, 1, 2)), strides=n
    ),
    ("set_cache_limit", "size"): nx.set_cache_limit,
    ("stream", "bound"): lambda n: nx.stream(lambda x, s: (x, s), 1.0, 1.0, bound=n),
    ("batches", "prefetch"): lambda n: nx.data.batches([1, 2], 1, prefetch=n),
    ("batches", "batch_size"): lambda n: nx.data.batches([1, 2], n),
    ("batches", "seed"): lambda n: nx.data.batches([1, 2], 1, seed=n),
    ("pipeline", "in_flight"): lambda n: nx.graph.pipeline([], [], in_flight=n),
    ("pipeline_schedule", "layers"): lambda n: nx.graph.pipeline_schedule("gpipe", n, 1),
    ("pipeline_step", "parts"): lambda n: nx.graph.pipeline_step(
        [nx.multiply], nx.subtract, lambda p, g, s: (p, s), parts=n
    ),
    ("elem", "index"): lambda n: nx.expr.elem([1, 2, 3], n),
    ("to_batched", "size"): lambda n: nx.to_batched(nx.ones(3), n),
    ("bincount", "length"): lambda n: nx.bincount([1], length=n),
    ("bincount", "minlength"): lambda n: nx.bincount([1], minlength=n),
    ("to_binary", "limit"): lambda n: nx.to_binary(nx.ones(2), limit=n),
    ("associative_scan", "axis"): lambda n: nx.associative_scan(nx.add, nx.ones(2), axis=n),
}


@pytest.mark.parametrize(("function", "argument"), NOT_INTEGERS)
@pytest.mark.parametrize("value", [1.5, True, (2.5,)], ids=str)
def test_integer_errors_name_the_function_and_the_argument(function, argument, value):
    with pytest.raises(nx.ArgumentError, match=rf"^{function}: {argument}: must .*; got "):
        NOT_INTEGERS[function, argument](value)


_MATRIX = nx.ones((2, 2))

#: Calls of compiled functions with an axis, a size, a count or another integer.
COMPILED_INTEGERS = {
    ("sum", "axis"): lambda n: nx.sum(_MATRIX, axis=n),
    ("argmax", "axis"): lambda n: nx.argmax(_MATRIX, axis=n),
    ("prod", "axis"): lambda n: nx.prod(_MATRIX, axis=(0, n)),
    ("squeeze", "axis"): lambda n: nx.squeeze(nx.ones((1, 1)), axis=n),
    ("expand_dims", "axis"): lambda n: nx.expand_dims(_MATRIX, n),
    ("permute_dims", "axes"): lambda n: nx.permute_dims(_MATRIX, (n, 0)),
    ("concat", "axis"): lambda n: nx.concat([_MATRIX], axis=n),
    ("stack", "axis"): lambda n: nx.stack([_MATRIX], axis=n),
    ("cross", "axis"): lambda n: nx.linalg.cross(nx.ones((3, 3)), nx.ones((3, 3)), axis=n),
    ("one_hot", "axis"): lambda n: nx.nn.one_hot([1], 2, axis=n),
    ("one_hot", "num_classes"): lambda n: nx.nn.one_hot([1], n),
    ("zeros", "shape"): nx.zeros,
    ("ones", "shape"): lambda n: nx.ones((2, n)),
    ("template", "shape"): lambda n: nx.template((n,), "f32"),
    ("template", "vectorized_axes"): lambda n: nx.template((), vectorized_axes=[("x", n)]),
    ("reshape", "shape"): lambda n: nx.reshape(_MATRIX, (n, 4)),
    ("reshape", "sizes"): lambda n: nx.reshape(_MATRIX, 4, n),
    ("broadcast_to", "shape"): lambda n: nx.broadcast_to(1.0, (n,)),
    ("broadcast_to", "axes"): lambda n: nx.broadcast_to(nx.ones(2), (2, 2), axes=[n]),
    ("tile", "repetitions"): lambda n: nx.tile(_MATRIX, n),
    ("pad", "config"): lambda n: nx.pad(_MATRIX, 0.0, [(n, 0), (0, 0)]),
    ("window_sum", "dimensions"): lambda n: nx.window_sum(_MATRIX, n),
    ("window_max", "strides"): lambda n: nx.window_max(_MATRIX, 1, strides=(n, 1)),
    ("window_min", "padding"): lambda n: nx.window_min(_MATRIX, 1, padding=[(n, 0), (0, 0)]),
    ("slice", "lengths"): lambda n: nx.slice(_MATRIX, (0, 0), (n, 1)),
    ("rot90", "k"): lambda n: nx.rot90(_MATRIX, n),
    ("take_diagonal", "offset"): lambda n: nx.take_diagonal(_MATRIX, n),
    ("tril", "k"): lambda n: nx.tril(_MATRIX, k=n),
    ("top_k", "k"): lambda n: nx.top_k(_MATRIX, n),
    ("diff", "n"): lambda n: nx.diff(_MATRIX, n),
    ("fft", "n"): lambda n: nx.fft.fft(_MATRIX, n),
    ("matrix_power", "n"): lambda n: nx.linalg.matrix_power(_MATRIX, n),
    ("linspace", "num"): lambda n: nx.linspace(0.0, 1.0, n),
    ("vmap", "in_axes"): lambda n: nx.vmap(nx.sin, in_axes=n),
    ("reduce", "axis"): lambda n: nx.reduce(_MATRIX, 0.0, nx.add, axis=n),
    ("repeat", "repeats"): lambda n: nx.repeat(_MATRIX, n),
    ("empty", "shape"): nx.empty,
    ("eye", "vectorized_axes"): lambda n: nx.eye(2, vectorized_axes=[("x", n)]),
    ("parameter", "shape"): lambda n: nx.expr.build(lambda: nx.expr.parameter((n,), "f32")),
    ("every_ops", "count"): nx.graph.Policy.every_ops,
    ("memory", "bytes"): nx.graph.Policy.memory,
}


@pytest.mark.parametrize(("function", "argument"), COMPILED_INTEGERS)
def test_compiled_functions_reject_booleans_in_place_of_integers(function, argument):
    call = COMPILED_INTEGERS[function, argument]
    with pytest.raises(nx.ArgumentError, match=rf"^{function}: {argument}: must .*; got .*"):
        call(True)
    call(1)


def test_start_of_a_slice_must_not_be_a_boolean():
    with pytest.raises(nx.DTypeError, match=r"^slice: start: expected an integer dtype; got pred"):
        nx.slice(_MATRIX, (True, 0), (1, 1))


def _with_first_argument(function, *values):
    return lambda bad: function(bad, *values)


#: Calls with an argument that is not callable.
NOT_CALLABLE = {
    **{
        (function.__name__, "function"): _with_first_argument(function)
        for function in (
            *(nx.jit, nx.defn, nx.grad, nx.value_and_grad, nx.vmap, nx.jacfwd, nx.jacrev),
            *(nx.jacobian, nx.hessian, nx.hessian_diagonal, nx.debug_expr, nx.checkpoint),
            *(nx.custom_jvp, nx.custom_vjp, nx.explain, nx.eval_shape, nx.compare),
            *(nx.jit_apply, nx.debug_expr_apply),
        )
    },
    ("jit_partitions", "function"): _with_first_argument(nx.jit_partitions, [[1.0]]),
    ("jvp", "function"): _with_first_argument(nx.jvp, (1.0,), (1.0,)),
    ("vjp", "function"): _with_first_argument(nx.vjp, 1.0),
    ("linearize", "function"): _with_first_argument(nx.linearize, 1.0),
    ("compile", "function"): _with_first_argument(nx.compile, [1.0]),
    ("export", "function"): _with_first_argument(nx.export, [1.0]),
    ("stream", "function"): _with_first_argument(nx.stream, 1.0, 1.0),
    ("while_loop", "cond_fn"): _with_first_argument(nx.while_loop, lambda s: s, 1),
    ("while_loop", "body_fn"): lambda bad: nx.while_loop(lambda s: s < 2, bad, 1),
    ("cond", "true_fn"): lambda bad: nx.cond(True, bad, lambda: 1),
    ("cond", "false_fn"): lambda bad: nx.cond(True, lambda: 1, bad),
    ("cond", "otherwise"): lambda bad: nx.cond([(True, lambda: 1)], otherwise=bad),
    ("if_", "then"): lambda bad: nx.if_(True, bad),
    ("if_", "otherwise"): lambda bad: nx.if_(True, lambda: 1, bad),
    ("switch", r"branches\[1\]"): lambda bad: nx.switch(0, [lambda: 1, bad]),
    ("scan", "f"): _with_first_argument(nx.scan, 0, nx.ones(2)),
    ("map", "f"): _with_first_argument(nx.map, nx.ones(2)),
    ("fori", "body"): lambda bad: nx.fori(0, 2, bad, 1),
    ("for_each", "body"): lambda bad: nx.for_each(range(2), bad, 1),
    ("associative_scan", "f"): _with_first_argument(nx.associative_scan, nx.ones(2)),
    ("reduce", "function"): lambda bad: nx.reduce(nx.ones(2), 0, bad),
    ("window_reduce", "function"): lambda bad: nx.window_reduce(nx.ones(2), 0, bad, (2,)),
    ("runtime_call", "function"): _with_first_argument(nx.runtime_call, nx.template(()), 1.0),
    ("hook", "function"): lambda bad: nx.hook(1.0, "name", bad),
    ("tree.map", "function"): _with_first_argument(nx.tree.map, [1]),
    ("traverse", "function"): lambda bad: nx.composite.traverse([1], bad),
    ("safe_where", "function"): lambda bad: nx.safe_where(True, bad, 1.0),
    ("custom_grad", "rule"): lambda bad: nx.custom_grad(nx.ones(2), nx.ones(2), bad),
    ("defjvp", "rule"): lambda bad: nx.custom_jvp(nx.sin).defjvp(bad),
    ("defvjp", "forward"): lambda bad: nx.custom_vjp(nx.sin).defvjp(bad, nx.sin),
    ("defvjp", "backward"): lambda bad: nx.custom_vjp(nx.sin).defvjp(nx.sin, bad),
}


@pytest.mark.parametrize(("function", "argument"), NOT_CALLABLE)
def test_callable_errors_name_the_function_and_the_argument(function, argument):
    message = rf"^{function}: {argument}: must be callable; got an int$"
    with pytest.raises(nx.ArgumentError, match=message):
        NOT_CALLABLE[function, argument](3)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("grad", lambda: nx.grad(nx.sin, 4)(1.0)),
        ("grad", lambda: nx.grad(min, "a")(1.0, 2.0)),
        ("value_and_grad", lambda: nx.value_and_grad(nx.sin, 4)(1.0)),
        ("value_and_grad", lambda: nx.value_and_grad(nx.sin)("a")),
        ("hessian", lambda: nx.hessian(nx.sin, 5)(1.0)),
        ("hessian", lambda: nx.hessian(nx.sin, has_aux=True)(1.0)),
        ("hessian", lambda: nx.hessian(nx.sin)("a")),
    ],
)
def test_derivative_errors_name_the_derivative(name, call):
    with pytest.raises(nx.ArgumentError, match=f"^{name}: "):
        call()


#: Calls that create tensors, with the arguments `device` and `dtype`.
CREATED = {
    "tensor": lambda **k: nx.tensor(1.0, **k),
    "asarray": lambda **k: nx.asarray(1.0, **k),
    "full": lambda **k: nx.full((2,), 1.0, **k),
    "zeros": lambda **k: nx.zeros((2,), **k),
    "ones": lambda **k: nx.ones((2,), **k),
    "empty": lambda **k: nx.empty((2,), **k),
    "full_like": lambda **k: nx.full_like(1.0, 2.0, **k),
    "zeros_like": lambda **k: nx.zeros_like(1.0, **k),
    "ones_like": lambda **k: nx.ones_like(1.0, **k),
    "empty_like": lambda **k: nx.empty_like(1.0, **k),
    "arange": lambda **k: nx.arange(3, **k),
    "linspace": lambda **k: nx.linspace(0.0, 1.0, 3, **k),
    "iota": lambda **k: nx.iota((3,), **k),
    "eye": lambda **k: nx.eye(3, **k),
    "from_binary": lambda dtype="f32", **k: nx.from_binary(bytes(4), dtype, **k),
}

#: Calls with the argument `device` only.
PLACED = {
    "tri": lambda device: nx.tri(2, 2, device=device),
    "key": lambda device: nx.random.key(0, device=device),
    "from_dlpack": lambda device: nx.from_dlpack(nx.ones(2), device=device),
    "device_put": lambda device: nx.device_put(1.0, device),
    "backend_copy": lambda device: nx.backend_copy(1.0, device),
    "backend_transfer": lambda device: nx.backend_transfer(1.0, device),
}

#: Calls with the argument `dtype` only.
TYPED = {
    "binomial": lambda dtype: nx.random.binomial(nx.random.key(0), 3, 0.5, dtype=dtype),
    "student_t_split": lambda dtype: nx.random.student_t_split(nx.random.key(0), 3, dtype=dtype),
    "uniform": lambda dtype: nx.random.uniform(nx.random.key(0), dtype=dtype),
    "template": lambda dtype: nx.template((2,), dtype),
    "isdtype": lambda dtype: nx.isdtype(dtype, "integral"),
    "epsilon": nx.constants.epsilon,
    "i": nx.constants.i,
}


@pytest.mark.parametrize("name", [*CREATED, *PLACED])
def test_errors_about_devices_name_the_function(name):
    call = CREATED.get(name) or PLACED[name]
    with pytest.raises(nx.OptionError, match=f"^{name}: device: must be one of host"):
        call(device="nowhere")
    with pytest.raises(nx.ArgumentError, match=f"^{name}: device: must be a device or the name"):
        call(device=3)
    if name in CREATED:
        with pytest.raises(nx.TraceError, match=f"^{name}: device: must not be passed in a trace"):
            nx.jit(lambda: call(device="host"))()


@pytest.mark.parametrize("name", [*CREATED, *TYPED])
def test_errors_about_dtypes_name_the_function(name):
    call = CREATED.get(name) or TYPED[name]
    with pytest.raises(nx.DTypeError, match=f"^{name}: dtype: must be a NumPy name or one of"):
        call(dtype="f3") if name in CREATED else call("f3")


def _on_mesh(function):
    """Call a function of the part of one device over a mesh of one device."""
    mesh = nx.Mesh(data=1)
    rows = mesh.sharding("data")
    return nx.shard_map(function, mesh, rows, rows, compiler="evaluator")(nx.ones(1))


#: Calls with a wrong argument, with the error that names the function and the argument.
INVALID_CALLS = {
    "empty: shape: must be one argument, as in nx.empty((2, 3))": lambda: nx.empty(2, 3),
    "dot: x1_batch: must have 0 axes, the number for the other operand; got [0]": lambda: nx.dot(
        _MATRIX, _MATRIX, x1_batch=[0]
    ),
    "dot: x1_contract: must have 0 axes, the number for the other operand; got [0]": lambda: nx.dot(
        _MATRIX, _MATRIX, x1_contract=[0], x2_contract=[]
    ),
    "norm: ord: must be 1, -1, 2 or -2 for matrices; got 7": lambda: nx.linalg.norm(_MATRIX, 7),
    "matrix_norm: ord: must be 1, -1, 2 or -2 for matrices; got 7": lambda: nx.linalg.matrix_norm(
        _MATRIX, ord=7
    ),
    "cross: x1: expected 3 elements": lambda: nx.cross(nx.ones(4), nx.ones(3)),
    "cross: x2: expected 3 elements": lambda: nx.cross(nx.ones(3), nx.ones(4)),
    "vecdot: x2: expected the size of axis -1": lambda: nx.vecdot(nx.ones(3), 1.0),
    "sum: axis: must be distinct; got axis 0 twice": lambda: nx.sum(_MATRIX, axis=(0, 0)),
    "permute_dims: axes: must be in range": lambda: nx.permute_dims(_MATRIX, (0, 5)),
    "norm: axis: must be one or two; got 3": lambda: nx.linalg.norm(nx.ones((2, 2, 2)), 1),
    "solve: x1: expected square matrices": lambda: nx.linalg.solve(nx.ones((2, 3)), nx.ones(2)),
    "solve: x2: expected vectors or matrices": lambda: nx.linalg.solve(nx.eye(2), nx.ones(3)),
    "matmul: x1: expected at least one axis": lambda: nx.matmul(1.0, nx.ones(3)),
    "top_k: x: last axis must not be empty; got f32[3][0]": lambda: nx.top_k(nx.ones((3, 0)), 1),
    "split: at: must be an integer or a float; got [2, 4]": lambda: nx.split(nx.ones(6), at=[2, 4]),
    "orthogonal: axis: must be an axis of shape (2, 2); got 4": lambda: (
        nx.nn.initializers.orthogonal(axis=4)(nx.random.key(0), (2, 2))
    ),
    'tensor: names: must be distinct; got "a" twice': lambda: nx.tensor([[1]], names=["a", "a"]),
    "tensor: names: expected 1 entry for s32[1]; got 2": lambda: nx.tensor([1], names=["a", "b"]),
    "tensor: value: a tensor must have at most 64 axes; got 65": lambda: nx.tensor(
        functools.reduce(lambda inner, _: [inner], range(65), 1)
    ),
    "from_binary: data: must be elements of dtype u4": lambda: nx.from_binary(b"\x21", "u4"),
    "client: must be one of host, ": lambda: nx.jit(nx.sin, client="q"),
    "stream: chunk: must be a tensor; got None": lambda: nx.stream(
        lambda chunk, state: (chunk, state), nx.ones(3), nx.ones(3)
    ).send(None),
    "while_loop: cond_fn: must be a boolean or a number; got a NoneType": lambda: nx.while_loop(
        lambda _: None, lambda state: state, 1
    ),
    "while_loop: the number of iterations must be known": lambda: nx.grad(
        lambda x: nx.while_loop(lambda y: y < 10.0, lambda y: y * 2, x, gradient="store")
    )(1.0),
    "can_cast: to: must be a NumPy name": lambda: nx.can_cast("f32", "zz"),
    "can_cast: from_: must be a NumPy name": lambda: nx.can_cast("zz", "f32"),
    "finfo: type: must be a NumPy name": lambda: nx.finfo("zz"),
    "iinfo: type: must be a NumPy name": lambda: nx.iinfo("int31"),
    "nan_to_num: nan: must be a number; got None": lambda: nx.nan_to_num(nx.ones(2), nan=None),
    "nan_to_num: operands must": lambda: nx.nan_to_num(nx.ones(2), nan="a"),
    "segment_sum: segment_ids: must not": lambda: nx.segment_sum([1.0, 2.0], [-1, 0]),
    "arange: start, stop, step: must be finite; got 0, inf and 1": lambda: nx.arange(math.inf),
    "arange: start, stop, step: must be finite; got nan": lambda: nx.arange(math.nan, 2.0),
    "with_sharding_constraint: sharding: must be a Sharding": lambda: nx.with_sharding_constraint(
        nx.ones(2), None
    ),
    "Mesh: axes: must be a dict": lambda: nx.Mesh([("a", 2)]),
    "to_safetensors: metadata: must be a dict": lambda: nx.to_safetensors({}, ["k"]),
    "adam: learning_rate: must be a number": lambda: nx.optim.adam("0.1"),
    "adam: state: must have one entry": lambda: nx.optim.adam(0.1).update(nx.ones(2), None),
    "adam: b1: must be at least 0": lambda: nx.optim.adam(0.1, b1=2.0),
    "sgd: momentum: must be at least 0": lambda: nx.optim.sgd(0.1, momentum=2.0),
    "clip: x: expected a real dtype": lambda: nx.optim.sgd(
        lambda count: nx.clip(count * 1j, 0, 1)
    ).update(nx.ones(2), nx.optim.sgd(lambda count: count).init(nx.ones(2))),
    "rmsprop: momentum: must be at least 0": lambda: nx.optim.rmsprop(0.1, momentum=2.0),
    "adafactor: weight_decay_rate: must not": lambda: nx.optim.adafactor(weight_decay_rate=-1),
    "adafactor: clipping_threshold: must": lambda: nx.optim.adafactor(clipping_threshold=-1),
    "muon: adam_b1: must be at least 0": lambda: nx.optim.muon(0.1, adam_b1=2.0),
    "adamw: params: must be passed": lambda: nx.optim.adamw(0.1).update(
        nx.ones(2), nx.optim.adamw(0.1).init(nx.ones(2))
    ),
    "chain: state: must have one entry": lambda: nx.optim.chain().update(nx.ones(2), None),
    "conv_transpose: feature_groups: must be at least 1; got 0": lambda: nx.nn.conv_transpose(
        nx.ones((1, 1, 2)), nx.ones((1, 1, 2)), feature_groups=0
    ),
    "roll: shift: must be an integer; got 1.5": lambda: nx.roll(nx.ones(2), 1.5),
    "binomial: parameters: must be real; got c64": lambda: nx.random.binomial(
        nx.random.key(0), 3, 1j
    ),
    "device_put: device, client: must not both": lambda: nx.device_put(1, "host", client="host"),
    "backend_copy: device, client: must not": lambda: nx.backend_copy(1, "host", client="host"),
    "einsum: optimize: Path optimizer 'zz' not found": lambda: nx.einsum(
        "ij,jk,kl", *[nx.ones((2, 2))] * 3, optimize="zz"
    ),
    "vmap: in_axes: must be an int, None, or a list": lambda: nx.vmap(nx.sin, True),
    "elem: index: must be from 0 to 1; got -1": lambda: nx.expr.elem((1, 2), -1),
    "arange: stop: must be a number; got 1j": lambda: nx.arange(0, 1j),
    "arange: step: must be a number; got <class 'int'>": lambda: nx.arange(0, 2, int),
    "fftfreq: d: must be a number; got None": lambda: nx.fft.fftfreq(2, None),
    "fftfreq: n: must be an integer; got None": lambda: nx.fft.fftfreq(None),
    "rfftfreq: n: must be at least 1; got 0": lambda: nx.fft.rfftfreq(0),
    "eye: n_rows: must be an integer; got 'a'": lambda: nx.eye("a"),
    "bincount: minlength: must be an integer; got None": lambda: nx.bincount([1], minlength=None),
    "segment_sum: num_segments: must be an integer": lambda: nx.segment_sum([1.0], [0], "a"),
    "histogram: range: must be pairs of numbers": lambda: nx.histogram([1.0], range=3),
    "parameter: pos: must be at least 0": lambda: nx.expr.build(
        lambda: nx.expr.parameter(2, "f32", pos=-1)
    ),
    "metadata: notes: must be a dict; got a str": lambda: nx.expr.metadata(1.0, "note"),
    "build: function: must be callable": lambda: nx.expr.build(None),
    "split: at: must be finite; got nan": lambda: nx.split(nx.ones(2), at=math.nan),
    "tensordot: axes: must be from 0 to 1; got 1000000000000": lambda: nx.tensordot(
        nx.ones(2), nx.ones((2, 2)), axes=10**12
    ),
    "categorical_split: axis: must be an int": lambda: nx.random.categorical_split(
        nx.random.key(0), nx.ones(2), axis=None
    ),
    "interpolate: scale_factor: must be finite; got nan": lambda: nx.nn.interpolate(
        nx.ones((1, 1, 2)), scale_factor=math.nan
    ),
    "check_grads: order: must be an integer": lambda: nx.testing.check_grads(
        nx.sin, (0.5,), order=None
    ),
    "piecewise_constant_schedule: boundaries_and_scales: must be a dict": lambda: (
        nx.optim.piecewise_constant_schedule(1.0, "a")
    ),
    "apply_args: function: must be callable": lambda: nx.tree.apply_args(
        nx.debug_expr(nx.sin)(1.0).nodes[0], None, 0
    ),
    "apply_args: function: must return (replacement, state)": lambda: nx.tree.apply_args(
        nx.debug_expr(nx.sin)(1.0).nodes[1], lambda node, state: state, 0
    ),
    "scope_ids: ids: must be of type dict or NoneType; got an int": lambda: nx.tree.scope_ids(
        nx.debug_expr(nx.sin)(1.0), 3
    ),
    "permutation: x: must be at least 0; got -1": lambda: nx.random.permutation(
        nx.random.key(0), -1
    ),
    "compatible: fits: must be callable; got an int": lambda: nx.composite.compatible(1, 2, 3),
    "rewrite: replace: must be callable": lambda: nx.tree.rewrite(nx.debug_expr(nx.sin)(1.0), None),
    "unflatten: leaves: must be of type Iterable": lambda: nx.tree.unflatten(
        nx.tree.flatten([1])[1], None
    ),
    "ppermute: perm: must be an integer; got 0.5": lambda: _on_mesh(
        lambda x: nx.collectives.ppermute(x, "data", [(0.5, 1)])
    ),
    "ppermute: perm: must be pairs (source, target); got None": lambda: _on_mesh(
        lambda x: nx.collectives.ppermute(x, "data", None)
    ),
    "psum_scatter: scatter_dimension: must be an axis": lambda: _on_mesh(
        lambda x: nx.collectives.psum_scatter(x, "data", scatter_dimension=5)
    ),
    "all_to_all: concat_axis: must be an axis": lambda: _on_mesh(
        lambda x: nx.collectives.all_to_all(x, "data", 0, 5)
    ),
    "part: shape: must be an integer or several; got None": lambda: (
        nx.Mesh(data=1).sharding("data").part(None)
    ),
    "shard_map: mesh: must be a Mesh; got a NoneType": lambda: nx.shard_map(
        nx.sin, None, None, None
    ),
    "shard_jit: mesh: must be a Mesh; got a NoneType": lambda: nx.shard_jit(
        nx.sin, None, input_shardings=[]
    ),
    "default_options: options: must be a dict; got 'evaluator'": lambda: nx.default_options(
        "evaluator"
    ),
    "global_default_options: options: must be a dict": lambda: nx.global_default_options(["xla"]),
    "batches: source: must contain arrays or examples; got a NoneType": lambda: nx.data.batches(
        None, 2
    ),
    "batches: collate: must be callable": lambda: nx.data.batches([1, 2], 2, collate=3),
    "chain: transforms: must be a GradientTransformation; got an int": lambda: nx.optim.chain(3),
    "masked: inner: must be a GradientTransformation": lambda: nx.optim.masked(3, True),
    "MultiSteps: opt: must be a GradientTransformation": lambda: nx.optim.MultiSteps(None, 2),
    "initializers: shape: must be an integer or several; got None": lambda: (
        nx.nn.initializers.he_normal()(nx.random.key(0), None)
    ),
    "orthogonal: shape: inputs and outputs need at least two axes; got (3,)": lambda: (
        nx.nn.initializers.orthogonal()(nx.random.key(0), 3)
    ),
    "initializers: in_axis: must be an integer; got 'a'": lambda: nx.nn.initializers.he_normal(
        in_axis="a"
    )(nx.random.key(0), (2, 3)),
    "main: weights: must be a sequence; got a NoneType": lambda: nx.from_stablehlo(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }",
        weights="arguments",
    )(None, 1.0),
    "tri: n_rows: must be an integer; got None": lambda: nx.tri(None, 2),
    "einsum: labels: must be a sequence; got an int": lambda: nx.einsum(3),
    "revectorize: target_shape: must be an integer or several": lambda: nx.revectorize(
        nx.vectorize([1], "x"), [("x", 1)], target_shape="a"
    ),
    "view: file: must be a path; got 3": lambda: nx.view(nx.debug_expr(nx.sin)(1.0), 3),
    **{
        f"{name}: axis: must be an int or a name; got bool": call
        for name, call in {
            "unstack": lambda: nx.unstack(nx.ones((2, 2)), axis=True),
            "trapezoid": lambda: nx.trapezoid(nx.ones(2), axis=True),
        }.items()
    },
}

#: Calls with a number or None in place of a sequence, by the function and the argument.
NOT_SEQUENCES = {
    ("collectives", "axis_name"): nx.collectives.axis_size,
    ("flatten_list", "containers"): nx.composite.flatten_list,
    ("flatten_list", "tail"): lambda bad: nx.composite.flatten_list([], bad),
    ("elem", "values"): lambda bad: nx.expr.elem(bad, 0),
    ("tuple", "values"): nx.expr.tuple,
    ("tuple", "templates"): lambda bad: nx.expr.tuple([1], bad or 3),
    ("vectorize", "axes"): lambda bad: nx.vectorize(nx.ones(2), bad),
    ("revectorize", "axes"): lambda bad: nx.revectorize(nx.vectorize([1], "x"), bad),
    ("reshape_vectors", "values"): nx.reshape_vectors,
    ("broadcast_vectors", "values"): nx.broadcast_vectors,
    ("cond", "pred"): lambda bad: nx.cond(bad, otherwise=lambda: 1),
    ("switch", "branches"): lambda bad: nx.switch(0, bad),
    ("einsum", "optimize"): lambda bad: nx.einsum("i->", nx.ones(2), optimize=bad),
    ("jit_partitions", "args_list"): lambda bad: nx.jit_partitions(nx.sin, bad),
    ("lstm_cell", "carry"): lambda bad: nx.nn.lstm_cell(bad, 1.0, 1.0, 1.0),
    ("join_schedules", "schedules"): lambda bad: nx.optim.join_schedules(bad, []),
    ("join_schedules", "boundaries"): lambda bad: nx.optim.join_schedules([], bad),
    ("scale_by_muon", "ns_coeffs"): nx.optim.scale_by_muon,
    ("check_grads", "args"): lambda bad: nx.testing.check_grads(nx.sin, bad),
    ("check_grads", "modes"): lambda bad: nx.testing.check_grads(nx.sin, (1.0,), modes=bad),
    ("sharding", "axes"): lambda bad: nx.Mesh(data=1).sharding(bad or 7),
    ("over", "chunks"): lambda bad: nx.stream(
        lambda x, state: (x, state), nx.template(()), 0.0
    ).over(bad),
    ("view", "seconds"): lambda bad: nx.view(
        nx.graph.split(nx.debug_expr(nx.sin)(1.0), lambda _: "none"), seconds=bad or 7
    ),
    ("pipeline_step", "parameters"): lambda bad: nx.graph.pipeline_step(
        [nx.multiply], nx.subtract, nx.add, parts=1
    )(bad, [()], nx.ones(2), nx.ones(2)),
    ("pipeline", "batches"): lambda bad: nx.graph.pipeline(
        nx.graph.split(nx.debug_expr(nx.sin)(1.0), lambda _: "none"), bad
    ),
    ("pipeline_step", "layers"): lambda bad: nx.graph.pipeline_step(
        bad, nx.subtract, nx.add, parts=1
    ),
}


@pytest.mark.parametrize(("function", "argument"), NOT_SEQUENCES)
@pytest.mark.parametrize("value", [None, 7], ids=str)
def test_sequence_errors_name_the_function_and_the_argument(function, argument, value):
    kind = "(NoneType|int)"
    with pytest.raises(
        nx.ArgumentError, match=rf"^{function}: {argument}: must be a sequence; got an? {kind}$"
    ):
        NOT_SEQUENCES[function, argument](value)


#: Calls with an argument that must be a list of pairs, by the function and the argument.
NOT_PAIRS = {
    ("eye", "vectorized_axes"): lambda bad: nx.eye(2, vectorized_axes=bad),
    ("template", "vectorized_axes"): lambda bad: nx.template(2, vectorized_axes=bad),
    ("pad_outer", "widths"): lambda bad: nx.pad_outer(nx.ones(2), "reflect", bad),
    ("conv_transpose", "padding"): lambda bad: nx.nn.conv_transpose(
        nx.ones((1, 1, 2)), nx.ones((1, 1, 2)), padding=bad
    ),
}


@pytest.mark.parametrize(("function", "argument"), NOT_PAIRS)
@pytest.mark.parametrize("value", [None, 7, [None], [1, 2], [(1, 2, 3)]], ids=str)
def test_pair_errors_name_the_function_and_the_argument(function, argument, value):
    with pytest.raises(nx.ArgumentError, match=rf"^{function}: {argument}: must be pairs \("):
        NOT_PAIRS[function, argument](value)


@pytest.mark.parametrize("message", INVALID_CALLS)
def test_errors_name_the_function_and_the_argument(message):
    if message.startswith("einsum"):
        pytest.importorskip("opt_einsum", reason="opt_einsum is not installed")
    with pytest.raises(nx.NxlaError, match=f"^{re.escape(message)}"):
        INVALID_CALLS[message]()


@pytest.mark.parametrize("traced", [False, True])
def test_errors_of_conditionals_name_the_predicate(traced):
    run = nx.jit if traced else lambda function: function
    calls = {
        "cond": lambda bad: nx.cond(bad, lambda: 1, lambda: 2),
        "if_": lambda bad: nx.if_(bad, lambda: 1),
    }
    for name, call in calls.items():
        for bad in ("a", None):
            message = f"^{name}: pred: must be a boolean or a number; got a {type(bad).__name__}$"
            with pytest.raises(nx.ArgumentError, match=message):
                run(lambda call=call, bad=bad: call(bad))()
        with pytest.raises(nx.ShapeError, match=f"^{name}: pred: .* a scalar"):
            run(call)(nx.ones(3))


def test_a_pullback_of_a_finished_trace_names_its_derivative():
    pulls = []

    def traced(x):
        y, pull = nx.vjp(lambda z: z * z, x)
        pulls.append(pull)
        return y

    nx.jit(traced)(nx.ones(3))
    with pytest.raises(nx.TraceError, match=r"^vjp: .* of this or of another function"):
        pulls[0](nx.ones(3))


@pytest.mark.parametrize("traced", [False, True])
def test_notes_must_be_strings(traced):
    run = nx.jit if traced else lambda function: function
    for function, argument in ((nx.annotate, "note"), (nx.graph.mark, "name")):
        message = f"^{function.__name__}: {argument}: must be a string; got an int"
        with pytest.raises(nx.ArgumentError, match=message):
            run(lambda x, f=function: f(x, 3))(1.0)


def test_export_arguments_must_be_a_list():
    for values in (nx.ones(2), nx.template((2,)), {"x": 1}):
        with pytest.raises(nx.ArgumentError, match=r"^export: args: must be a list .*nx\.export\("):
            nx.export(nx.sin, values)


@pytest.mark.parametrize(("function", "argument"), NOT_BOOLEANS)
def test_boolean_errors_name_the_function_and_the_argument(function, argument):
    with pytest.raises(TypeError, match=rf"^{function}: {argument}: must be a bool; got an? \w+$"):
        NOT_BOOLEANS[function, argument]()


#: Calls that pass an argument of a wrong type to a compiled function, by the start of the message.
CONVERTED = {
    "svd: full_matrices: must be a bool; got a NoneType": lambda: nx.linalg.svd(
        nx.eye(2), full_matrices=None
    ),
    "linspace: num: must be an integer; got a NoneType": lambda: nx.linspace(0, 1, None),
    "linspace: name: must be a str; got an int": lambda: nx.linspace(0, 1, 3, name=3),
    "zeros: shape: must fit in 64 bits": lambda: nx.zeros(2**70),
    "broadcast_to: shape: must fit in 64 bits; got a list": (
        lambda: nx.broadcast_to(1, [2**70] * 9)
    ),
    "broadcast_to: shape: must fit in 64 bits; got (9223372036854775808,)": (
        lambda: nx.broadcast_to(1.0, (2**63,))
    ),
    "rename: names: must be a sequence of strings and None; got [1, 2]": lambda: nx.rename(
        _MATRIX, [1, 2]
    ),
    "tensor: names: must be a sequence of strings and None; got 3": lambda: nx.tensor([1], names=3),
    "zeros: names: must be a sequence of strings and None; got 'ab'": lambda: nx.zeros(
        2, names="ab"
    ),
    "dropout: rate: must be a number; got a NoneType": lambda: nx.nn.dropout(
        nx.random.key(0), nx.ones(2), None
    ),
    "window_reduce: padding: must be a sequence; got a NoneType": lambda: nx.window_reduce(
        nx.ones(2), 0.0, nx.add, 1, padding=None
    ),
    "template: shape: must be an int or a sequence of ints": lambda: nx.template(None),
    "reduce: keepdims: must be a bool; got a NoneType": lambda: nx.reduce(
        nx.ones(2), 0.0, nx.add, keepdims=None
    ),
    "put_args: node: must be a Node; got a NoneType": lambda: nx.tree.put_args(None, []),
}

_EXPRESSION = nx.debug_expr(nx.sin)(1.0)
_STAGES = nx.graph.split(_EXPRESSION, nx.graph.Policy.every_ops(1))
_STRUCTURE = nx.tree.flatten([1, 2])[1]

#: Calls of compiled classes with an argument of a wrong type, by the start of the message.
METHODS = {
    "register_container: cls: must be of type type; got 3": lambda: nx.register_container(
        3, nx.sin, nx.sin
    ),
    "register_container: flatten: must be callable; got an int": lambda: nx.register_container(
        type("Pair", (), {}), 3, nx.sin
    ),
    "register_container: unflatten: must be callable; got an int": lambda: nx.register_container(
        type("Pair", (), {}), nx.sin, 3
    ),
    "every_ops: count: must not be negative; got -1": lambda: nx.graph.Policy.every_ops(-1),
    "at_most_ops: count: must be of type int; got a float": lambda: nx.graph.Policy.at_most_ops(
        1.5
    ),
    "balanced: count: must be of type int; got a str": lambda: nx.graph.Policy.balanced("a"),
    "memory: bytes: must fit in 64 bits; got": lambda: nx.graph.Policy.memory(2**80),
    "marks: names: must be of type str; got 3": lambda: nx.graph.Policy.marks("a", 3),
    "arrange: results: must be of type Sequence; got a NoneType": lambda: _EXPRESSION.arrange(None),
    "expression: index: must be of type int; got a str": lambda: _EXPRESSION["a"],
    "lines: limit: must be of type int; got a str": lambda: _EXPRESSION.lines("a"),
    "to_text: limit: must not be negative; got -1": lambda: _EXPRESSION.to_text(-1),
    "to_text: blocks: must be of type str; got 3": lambda: _EXPRESSION.to_text(blocks=3),
    "from_bytes: bytes: must be of type bytes; got 3": lambda: nx.Expression.from_bytes(3),
    "from_bytes: bytes: must be of type bytes; got a str": lambda: nx.Stage.from_bytes("a"),
    "stages: index: must be of type int; got a str": lambda: _STAGES["a"],
    "measure: repeat: must be of type int; got a str": lambda: _STAGES.measure(1.0, repeat="a"),
    "simulate: workers: must be of type int; got a str": lambda: _STAGES.simulate("a"),
    "simulate: bandwidth: must be of type float; got a str": lambda: _STAGES.simulate(
        1, bandwidth="a"
    ),
    "simulate: seconds: must be of type Sequence[float]; got 3": lambda: _STAGES.simulate(
        1, seconds=3
    ),
    "unflatten: leaves: must be of type Sequence; got 3": lambda: _STRUCTURE.unflatten(3),
    "leaf_path: leaf: must be of type int; got a str": lambda: _STRUCTURE.leaf_path("a"),
    "leaf_path: leaf: must be below 2, the number of leaves; got 2": lambda: _STRUCTURE.leaf_path(
        2
    ),
    "Lazy: template: must be of type Template; got 3": lambda: nx.Lazy(3, nx.sin),
    "template: names: must be a sequence of strings and None; got 3": lambda: nx.Template(
        (2,), "f32", 3
    ),
    "to_device: copy: must be of type bool; got 3": lambda: nx.ones(2).to_device("host", copy=3),
    "vmap: in_axes: must be in range for f32[2]; got 5": lambda: nx.vmap(nx.sin, 5)(nx.ones(2)),
    "vmap: in_axes: must be None for a value without axes; got 0 for f32 in argument 1": (
        lambda: nx.vmap(nx.add)(nx.ones(2), 2.0)
    ),
    "vmap: y: must have an axis, because keyword arguments are mapped": (
        lambda: nx.vmap(lambda x, y: x + y)(nx.ones(2), y=2.0)
    ),
    "vmap: in_axes: must have 2 entries, one for each argument; got 1": (
        lambda: nx.vmap(nx.add, [0])(nx.ones(2), nx.ones(2))
    ),
    "grad: argnums: must name parameters of <lambda> (x); got 'y'": (
        lambda: nx.grad(lambda x: x, "y")(1.0)
    ),
    'split: decide: must be a Policy, "layers"': lambda: nx.graph.split(
        nx.debug_expr(nx.sin)(1.0), "balanced"
    ),
    "vmap: out_axes: must be in range for f32[2]; got 5": lambda: nx.vmap(nx.sin, 0, 5)(nx.ones(2)),
    "vmap: out_axes: must be in range for f32[2]; got -2": lambda: nx.vmap(
        lambda x: (x, x), 0, (0, -2)
    )(nx.ones(2)),
    "vmap: in_axes: must fit in 64 bits; got": lambda: nx.vmap(nx.sin, 2**70)(nx.ones(2)),
    "vmap: out_axes: must fit in 64 bits; got": lambda: nx.vmap(nx.sin, 0, 2**70)(nx.ones(2)),
}


def assert_raises(function, message, error):
    """Check that a call raises an error of Python or this one, without a note."""
    with pytest.raises((TypeError, OverflowError, error)) as caught:
        function()
    assert str(caught.value).startswith(message)
    assert not getattr(caught.value, "__notes__", None)


@pytest.mark.parametrize("message", METHODS)
def test_errors_of_compiled_classes_name_the_function_and_the_argument(message):
    assert_raises(METHODS[message], message, nx.NxlaError)


@pytest.mark.parametrize("message", CONVERTED)
def test_conversion_errors_name_the_function_and_the_argument(message):
    assert_raises(CONVERTED[message], message, nx.ArgumentError)


def test_errors_of_other_packages_are_not_renamed():
    def fail(x):
        error = TypeError("'int' object is not an instance of 'bool'")
        error.add_note("while processing 'flag'")
        raise error

    with pytest.raises(TypeError, match=r"^'int' object is not an instance of 'bool'") as caught:
        nx.tree.map(fail, [1.0])
    assert caught.value.__notes__ == ["while processing 'flag'"]


#: Calls with an argument of another class, and the start of the message.
WRONG_CLASSES = {
    "graph.run": (lambda: nx.graph.run(3), "run: stages: must be a StageGraph or a list"),
    "graph.run of a list": (lambda: nx.graph.run([3]), "run: stages: .*; item 0 is int"),
    "graph.pipeline": (lambda: nx.graph.pipeline(None, []), "pipeline: stages: must be"),
    "graph.pipeline of a list": (lambda: nx.graph.pipeline([3], []), "pipeline: stages: .*item 0"),
    "explain": (lambda: nx.explain(None), "explain: function: must be callable; got a NoneType"),
    "tree.unflatten": (lambda: nx.tree.unflatten(3, []), "unflatten: structure: must be of type"),
    "tree.apply_args": (
        lambda: nx.tree.apply_args(nx.debug_expr(nx.sin)(1.0), None, 0),
        "apply_args: node: must be of type Node; got an Expression",
    ),
    "tree.scope_ids": (lambda: nx.tree.scope_ids(3), "scope_ids: what: must be .*Expression or"),
    "tree.rewrite": (lambda: nx.tree.rewrite(None, None), "rewrite: expression: must be of type"),
    "to_safetensors": (
        lambda: nx.to_safetensors({"w": nx.ones(2)}, metadata=3),
        "to_safetensors: metadata: must be a dict of strings; got an int",
    ),
    "static_argnums": (lambda: nx.jit(max, static_argnums=0), "jit: static_argnums: .*got max"),
    "static_argnames": (lambda: nx.jit(max, static_argnames="a"), "jit: static_argnames: .*max"),
    "donate_argnums": (lambda: nx.jit(max, donate_argnums=0), "jit: donate_argnums: .*got max"),
    "donate_argnames": (lambda: nx.jit(max, donate_argnames="a"), "jit: donate_argnames: .*max"),
}


@pytest.mark.parametrize("name", WRONG_CLASSES)
def test_errors_name_arguments_of_the_wrong_class(name):
    call, message = WRONG_CLASSES[name]
    with pytest.raises(nx.ArgumentError, match=message):
        call()


def test_hook_names_and_functions_are_validated():
    for arguments in ((3,), ("name", 3), (None, "function")):
        with pytest.raises(nx.ArgumentError, match=r"hook: (name|function): must be"):
            nx.hook(nx.ones(2), *arguments)
        with pytest.raises(nx.ArgumentError, match=r"hook: (name|function): must be"):
            nx.jit(lambda x, a=arguments: nx.hook(x, *a))(1.0)


def test_to_batched_rejects_values_that_are_not_tensors():
    with pytest.raises(nx.ArgumentError, match=r"^to_batched: operands must be tensors"):
        nx.to_batched({"x": nx.ones(4)}, 2)
