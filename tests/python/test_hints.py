"""Hints of errors: names and arguments of NumPy, JAX and PyTorch."""

import copy
import functools
import inspect
import math
import operator
import pickle
import traceback
from types import FunctionType, ModuleType

import numpy as np
import pytest

import nxla as nx
from nxla import _core, _hints, _other_libraries

X = nx.ones((2, 3))
KEY = nx.random.key(0)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: nx.sum(X, dim=0), "in nxla it is axis="),
        (lambda: nx.sum(X, axis=0, keepdim=True), "in nxla it is keepdims="),
        (lambda: nx.max(X, dim=0), "in nxla it is axis="),
        (lambda: nx.argmax(X, dim=0), "in nxla it is axis="),
        (lambda: nx.cumulative_sum(X, dim=0), "in nxla it is axis="),
        (lambda: nx.squeeze(X, dim=0), "in nxla it is axis="),
        (lambda: nx.concat([X, X], dim=0), "in nxla it is axis="),
        (lambda: nx.nn.softmax(X, dim=-1), "in nxla it is axis="),
        (lambda: nx.permute_dims(X, dims=(1, 0)), "in nxla it is axes="),
        (lambda: nx.std(X, unbiased=True), "in nxla it is correction="),
        (lambda: nx.optim.adam(lr=1e-3), "in nxla it is learning_rate="),
        (lambda: nx.optim.adam(0.1, beta1=0.9), "in nxla it is b1="),
        (lambda: nx.random.normal(KEY, size=(3,)), "in nxla it is shape="),
        (lambda: nx.random.normal(KEY, scale=2.0), "standard_deviation, which is passed by"),
        (lambda: nx.einsum("ij->", X, out=X), "tensors do not change"),
        (lambda: nx.tensor([1.0], requires_grad=True), "nx.grad"),
        (lambda: nx.gradient(X, dim=0), "in nxla it is axis="),
        (lambda: nx.random.binomial(KEY, 3, 0.5, size=(3,)), "in nxla it is shape="),
        (lambda: nx.nn.conv_transpose(X, X, stride=2), "in nxla it is strides="),
        (lambda: nx.nn.gru_cell(X, X, X, X, b_y=X), "did you mean b_[xh]="),
        (lambda: nx.nn.ctc_loss(X, X, X, X, blank=1), "did you mean blank_id="),
        (lambda: nx.linalg.expm(X, out=X), "tensors do not change"),
        (lambda: nx.special.i0(X, out=X), "tensors do not change"),
        (lambda: nx.special.logit(X, out=X), "tensors do not change"),
        (lambda: nx.special.gammainc(X, X, out=X), "tensors do not change"),
        (lambda: nx.special.zeta(X, out=X), "tensors do not change"),
        (lambda: nx.diff(X, order=2), "in nxla it is n="),
        (lambda: nx.sort(X, direction="desc"), "descending=True sorts in descending order"),
        (lambda: nx.pad(X, [(1, 1)] * 2, constant_values=3), "the value precedes the widths"),
        (lambda: nx.pad(X, [(1, 1)] * 2, mode="reflect"), "nx.pad_outer pads with elements"),
        (lambda: nx.sum(X, axs=0), "did you mean axis="),
        (lambda: nx.scan(lambda c, x: (c, c), 0, lengths=3), "did you mean length="),
        (lambda: nx.tree.map(len, [X], is_leaf=len), "leaves are tensors, numbers and arrays"),
        (lambda: X.at[0].add(X, mode="drop"), "nx.indexed_add drop updates out of range"),
        (lambda: nx.sum(X, zzz=1), "its arguments are x, axis, dtype, keepdims$"),
        (lambda: nx.exp(X, name="y"), "its arguments, by position, are x$"),
    ],
)
def test_arguments_of_other_libraries_have_hints(call, hint):
    with pytest.raises(TypeError, match=hint):
        call()


def test_hints_name_existing_arguments():
    """Each entry of the table names an argument that some function has."""
    functions = [value for name, value in vars(_core).items() if not name.startswith("_")]
    functions += [getattr(nx, name) for name in nx.__all__]
    for module in (nx.random, nx.optim, nx.nn, nx.linalg):
        functions += [getattr(module, name) for name in module.__all__]
    names = set()
    for function in functions:
        try:
            names |= set(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            continue
    missing = {
        equivalent for names_here in _hints.ARGUMENTS.values() for equivalent in names_here
    } - names
    assert not missing


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (lambda: nx.random.normal(KEY, mean=1.0), "key, mean, standard_deviation"),
        (lambda: nx.hook(X, name="a"), "value, name, function"),
        (lambda: X.at[0].set(value=2.0), "value"),
    ],
)
def test_positional_arguments_are_listed(call, arguments):
    with pytest.raises(TypeError, match=f"; its arguments, by position, are {arguments}$"):
        call()


def test_missing_attributes_raise_attribute_errors():
    with pytest.raises(AttributeError) as caught:
        X.strange()
    assert (caught.type.__name__, caught.type.__qualname__) == ("AttributeError",) * 2


def test_functions_with_hints_keep_identity_and_metadata():
    for function in (nx.scan, nx.random.normal, nx.optim.adam, nx.einsum):
        assert pickle.loads(pickle.dumps(function)) is function
        assert inspect.signature(function).parameters
        assert function.__doc__
        assert function.__module__.startswith("nxla.")

    def step(carry, x):
        return carry.strange(), x

    # Errors in the user's code get no hint.
    with pytest.raises(AttributeError, match="strange"):
        nx.scan(step, nx.tensor(0.0), nx.ones(2))
    user_function = lambda x: x  # noqa: E731
    with pytest.raises(TypeError, match=r"<lambda>\(\) got an unexpected keyword argument 'dim'$"):
        nx.fori(0, 2, lambda i, s: user_function(s, dim=0), 1.0)


def test_argument_forms_of_reshape_stack_and_pad():
    assert nx.reshape(X, 3, 2).shape == nx.reshape(X, 3, -1).shape == (3, 2)
    assert nx.jit(lambda x: nx.reshape(x, 3, 2))(X).shape == (3, 2)
    with pytest.raises(nx.ArgumentError, match="at least -1"):
        nx.reshape(X, 3, -2)
    for join in (nx.stack, nx.concat):
        with pytest.raises(nx.ArgumentError, match=r"pass all tensors as one list, as in \[x, y\]"):
            join(X, X)
        with pytest.raises(nx.ArgumentError, match="as one list"):
            nx.jit(lambda x: join(x, x))(X)  # noqa: B023
    with pytest.raises(nx.ArgumentError, match=r"nx.pad\(x, 0, \[\(1, 1\)\]\)"):
        nx.pad(X, [(1, 1), (0, 0)])


def test_concrete_uses_of_traced_values_have_hints():
    for call, hint in [
        (lambda x: math.exp(x), "nx.exp"),
        (lambda x: nx.arange(x), "static_argnames="),
        (lambda x: nx.zeros(x), "static_argnames="),
        (lambda x: range(x), "static_argnames="),
        (lambda x: int(x), "static_argnames="),
        (lambda x: float(x), r"nx.astype\(x, nx.float32\)"),
        (lambda x: [1, 2][x], "static argument"),
        (lambda x: bool(x), "nx.cond"),
    ]:
        with pytest.raises(nx.TraceError, match=hint):
            nx.jit(call)(3)
    assert nx.jit(lambda x: nx.tensor([len(f"{x} {x:.2f}")]))(1.0).item() > 0


def test_integer_overflow_names_a_wider_dtype():
    with pytest.raises(OverflowError, match=r'nx.tensor\(1099511627776, "s64"\)'):
        nx.arange(3) + 2**40
    assert (nx.arange(3) + nx.tensor(2**40, "s64")).tolist() == [2**40 + i for i in range(3)]


@pytest.mark.parametrize("dtype", ["s32", "f32", "f64", "c64", "bf16", "pred"])
def test_vdot_matches_numpy(dtype, compiler):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2 if dtype == "pred" else 5, (2, 3)) for _ in range(2))
    x, y = (nx.astype(nx.tensor(z), dtype) * 1 for z in (x, y))
    if dtype == "c64":
        x, y = x * (1 + 2j), y * (3 - 1j)
    found = nx.jit(nx.vdot, compiler=compiler)(x, nx.reshape(y, 6))
    wide = [np.asarray(nx.astype(z, "c128" if dtype == "c64" else "f64")) for z in (x, y)]
    assert found.shape == ()
    assert complex(found.item()) == complex(np.vdot(*wide))
    with pytest.raises(nx.ShapeError):
        nx.vdot(nx.ones(2), nx.ones(3))


#: The modules of the package with public functions.
MODULES = (
    nx,
    *(value for name in nx.__all__ if isinstance(value := getattr(nx, name), ModuleType)),
    nx.nn.initializers,
)
#: Arguments that the function accepts, where conversion precedes the check of keywords.
OPERANDS = {
    "bitcast": (X, "f32"),
    "block": ("name", len),
    "concat": ([X],),
    "pipeline": (None, []),
    "pipeline_step": (len, len, len),
    "put_slice": (X, [0], X),
    "register_container": (dict, len, len),
    "rename": (X, []),
    "slice": (X, [0], [1]),
    "stack": ([X],),
}
#: The keywords that element-wise functions of NumPy and PyTorch have.
ELEMENT_WISE = ("dtype", "inplace", "name", "order", "out", "where")


def public_functions():
    """Return the public functions that accept no keyword but their own, by their names."""
    functions = {}
    for module in MODULES:
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, type) or not callable(function):
                continue
            parameters = inspect.signature(function).parameters.values()
            if all(parameter.kind != parameter.VAR_KEYWORD for parameter in parameters):
                functions[f"{module.__name__}.{name}"] = function
    return functions


FUNCTIONS = public_functions()


def keyword_error(function, keyword):
    """Return the message for a keyword, with a value for each argument without a default."""
    required = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind != parameter.VAR_POSITIONAL
    ]
    operands = [1 for parameter in required if parameter.kind != parameter.KEYWORD_ONLY]
    named = {p.name: 1 for p in required if p.kind == p.KEYWORD_ONLY}
    with pytest.raises(TypeError) as caught:
        function(*OPERANDS.get(function.__name__, operands), **named, **{keyword: 1})
    return str(caught.value)


def test_there_are_many_functions():
    assert len(FUNCTIONS) > 500


@pytest.mark.parametrize("keyword", ELEMENT_WISE)
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_function_names_the_equivalent_of_a_keyword(module, keyword):
    for name, function in FUNCTIONS.items():
        if name.rpartition(".")[0] != module.__name__:
            continue
        if keyword not in inspect.signature(function).parameters:
            message = keyword_error(function, keyword)
            assert message == _hints.keyword_message(function, keyword), name
            assert "; " in message, name


@pytest.mark.parametrize("keyword", _hints.ARGUMENTS)
def test_every_function_names_the_equivalent_argument(keyword):
    count = 0
    for name, function in FUNCTIONS.items():
        parameters = inspect.signature(function).parameters
        equivalent = [other for other in _hints.ARGUMENTS[keyword] if other in parameters]
        if equivalent and keyword not in parameters:
            count += 1
            by_position = parameters[equivalent[0]].kind is inspect.Parameter.POSITIONAL_ONLY
            end = (
                f"{equivalent[0]}, which is passed by position"
                if by_position
                else f"{equivalent[0]}="
            )
            assert keyword_error(function, keyword).endswith(f"; in nxla it is {end}"), name
    assert count


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_module_suggests_the_similar_name(module):
    for name in module.__all__:
        if len(name) > 5 and not name.startswith("_"):
            with pytest.raises(AttributeError, match=r"; (did you mean|in nxla it is) ") as caught:
                getattr(module, f"{name}x")
            assert name in str(caught.value)


def python_functions():
    """Return the public Python functions with keyword-only arguments, by their names."""
    for module in MODULES:
        for name in module.__all__:
            function = inspect.unwrap(getattr(module, name))
            if isinstance(function, FunctionType) and function.__code__.co_kwonlyargcount:
                yield f"{module.__name__}.{name}", getattr(module, name)


def test_excess_positional_arguments_name_the_keywords():
    count = 0
    for name, function in python_functions():
        parameters = inspect.signature(function).parameters.values()
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
            continue
        keywords = [f"{p.name}=" for p in parameters if p.kind is p.KEYWORD_ONLY]
        with pytest.raises(TypeError) as caught:
            function(*[1] * (len(parameters) + 1))
        assert str(caught.value).endswith(f"; pass by keyword: {', '.join(keywords)}"), name
        count += 1
    assert count > 50
    # A function without such arguments has none to name.
    with pytest.raises(TypeError, match=r"but 2 were given$"):
        nx.tree.leaves(1, 2)


@pytest.mark.parametrize(
    ("name", "equivalent"),
    [
        ("NamedSharding", 'mesh.sharding(None, "data"), a method of nx.Mesh'),
        ("ShapeDtypeStruct", "nx.template"),
        ("clear_caches", "the method clear_cache of nx.jit(f)"),
        ("debug.print", "nx.print_value"),
        ("device_count", "len(nx.devices())"),
        ("dynamic_update_slice", "nx.put_slice(x, starts, update), where a negative start becomes"),
        ("enable_x64", "not needed: 64-bit data keeps its dtype"),
        ("flatten_util", "nx.tree, where nx.tree.ravel is ravel_pytree"),
        ("from_numpy", "nx.tensor, or nx.asarray"),
        ("linalg.cho_solve", "nx.linalg.solve"),
        ("random.choice_split", "nx.random.choice"),
        ("tree.reduce", "nx.composite.reduce(container, initial, function)"),
        ("tree.structure", "nx.tree.flatten(container)[1]"),
        ("tree.transpose", "nx.tree.map(lambda *leaves: leaves, *containers)"),
        ("tree_util", "nx.tree"),
    ],
)
def test_names_of_other_libraries_have_the_right_hint(name, equivalent):
    with pytest.raises(AttributeError) as caught:
        operator.attrgetter(name)(nx)
    assert f"; in nxla it is {equivalent}" in str(caught.value)


def test_special_functions_without_a_counterpart_have_a_reason():
    with pytest.raises(AttributeError, match=r"'expi'; not in nxla: no backend has an op"):
        _ = nx.special.expi
    with pytest.raises(AttributeError, match=r"'multigammaln'; not in nxla: it consists of"):
        _ = nx.special.multigammaln


def test_arguments_of_jax_without_a_counterpart_have_a_hint():
    with pytest.raises(TypeError, match=r"'holomorphic'; leave it out: a complex result has"):
        nx.grad(nx.square, holomorphic=True)
    assert nx.grad(nx.square)(3 + 4j).item() == 6 + 8j
    with pytest.raises(TypeError, match=r"'prevent_cse'; leave it out"):
        nx.checkpoint(nx.square, prevent_cse=False)


@pytest.mark.parametrize(
    "name",
    [
        "experimental",
        "process_index",
        "relu6",
        "utils",
        "linalg.solver_of",
        "tree.sort",
        "tree.flip",
    ],
)
def test_names_without_an_equivalent_have_no_hint(name):
    with pytest.raises(AttributeError, match=rf"'{name.rpartition('.')[2]}'$"):
        operator.attrgetter(name)(nx)


@pytest.mark.parametrize("name", sorted(_other_libraries.NAMES))
def test_hints_for_containers_do_not_name_functions_of_tensors(name):
    if name not in _other_libraries.TREE and not hasattr(nx.tree, name):
        with pytest.raises(AttributeError) as caught:
            getattr(nx.tree, name)
        assert "in nxla it is" not in str(caught.value)


def test_transpose_of_two_axes_suggests_swapaxes():
    for x in (nx.ones((2, 3, 4)), nx.ones(3)):
        with pytest.raises(nx.ShapeError, match=r"got \(0, 1\); nx.swapaxes"):
            x.transpose(0, 1)
    assert X.transpose(1, 0).shape == X.transpose().shape == (3, 2)
    assert nx.jit(lambda x: x.transpose(1, 0))(X).shape == (3, 2)


@pytest.mark.parametrize(
    ("call", "equivalent"),
    [
        (lambda: nx.nn.initializers.xavier_uniform, "nx.nn.initializers.glorot_uniform"),
        (lambda: nx.nn.initializers.kaiming_normal_, "nx.nn.initializers.he_normal"),
        (lambda: nx.tree.tree_map, "nx.tree.map"),
        (lambda: nx.testing.assert_allclose, "nx.testing.assert_all_close"),
        (lambda: nx.data.DataLoader, "nx.data.batches"),
        (lambda: nx.linalg.matvec, "nx.matmul"),
    ],
)
def test_names_of_other_libraries_have_hints_in_every_module(call, equivalent):
    with pytest.raises(AttributeError, match=f"; in nxla it is {equivalent}$"):
        call()


def test_hints_apply_only_to_keywords_of_the_call():
    """An error of a function that a user passes, with the same name, has no hint."""

    def scan(carry, x):
        return carry, x

    with pytest.raises(TypeError, match=r"scan\(\) got an unexpected keyword argument 'dim'$"):
        nx.scan(lambda c, x: scan(c, x, dim=0), nx.tensor(0.0), nx.ones(2))


def test_signature_errors_have_no_internal_frames():
    for call in (
        lambda: nx.arange(start=0, stop=3),
        lambda: nx.einsum(),
        lambda: nx.nn.gru_cell(X, X, X, X, X, X, X, X),
        lambda: X.at[0].set(),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        frames = traceback.extract_tb(caught.tb)
        assert {frame.filename for frame in frames} == {__file__}


def test_samples_must_be_unpacked():
    sample = nx.random.normal(KEY, (2, 2))
    for operate in (
        lambda x: 2 * x,
        lambda x: 0.5 * x,
        lambda x: x * 2,
        lambda x: x + x,
        lambda x: x + X,
        lambda x: X + x,
        lambda x: 1 - x,
        lambda x: x @ X,
        lambda x: X @ x,
        lambda x: -x,
        lambda x: abs(x),
        lambda x: x > 0,
        lambda x: x**2,
    ):
        with pytest.raises(nx.ArgumentError, match="unpack"):
            operate(sample)
    for name in ("shape", "T", "reshape"):
        with pytest.raises(AttributeError, match="unpack the pair"):
            getattr(sample, name)
    value, key = sample
    assert value.shape == (2, 2)
    assert key.shape == (2,)
    assert copy.deepcopy(sample).value.tolist() == value.tolist()
    assert pickle.loads(pickle.dumps(sample)).key.tolist() == key.tolist()


@pytest.mark.parametrize("create", [nx.zeros, nx.ones, nx.empty])
def test_sizes_as_several_arguments_suggest_a_tuple(create):
    with pytest.raises(nx.ArgumentError, match=r"as in nx\.\w+\(\(2, 3\)\)"):
        create(2, 3)


def test_unknown_options_of_jit_name_the_similar_argument():
    calls = (nx.jit, nx.defn, nx.debug_expr, lambda f, **options: nx.compile(f, [1.0], **options))
    for option in (
        *("static_argnum", "static_argname", "donate_argnum", "donate_argname"),
        *("max_compile", "debug_nan", "in_sharding", "on_conflicts", "hook"),
    ):
        similar = option.removesuffix("s") if option == "on_conflicts" else f"{option}s"
        unknown = rf'^option "{option}": does not exist; .*; did you mean {similar}=\?$'
        for call in calls:
            with pytest.raises(nx.OptionError, match=unknown):
                call(lambda x: x, **{option: 0})
        with pytest.raises(nx.OptionError, match=rf"it has no options; did you mean {similar}=\?$"):
            nx.jit(lambda x: x, compiler="evaluator", **{option: 0})
    # No option of jit is similar, another compiler has the option, or its value is invalid.
    for options, end in (
        ({"learning_rate": 0}, r"own flags\)$"),
        ({"compiler": "evaluator", "precision": "high"}, 'compiler="xla" has it$'),
        ({"compiler": "xla", "cpu_device_count": 0}, "got 0$"),
    ):
        with pytest.raises(nx.OptionError, match=end):
            nx.jit(lambda x: x, **options)


class Total:
    """A callable object with a method that computes the same."""

    def __call__(self, x):
        return nx.sum(x)

    def method(self, x):
        return nx.sum(x)


TRANSFORMS = {
    "jit": nx.jit,
    "grad": nx.grad,
    "value_and_grad": nx.value_and_grad,
    "hessian": nx.hessian,
    "checkpoint": nx.checkpoint,
    "compare": nx.compare,
    "debug_expr": nx.debug_expr,
    "shard_map": lambda f: nx.shard_map(f, nx.Mesh(data=1), None, None),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    "function",
    [nx.sum, functools.partial(nx.sum), Total(), Total().method, lambda x: nx.sum(x)],
    ids=["builtin", "partial", "object", "method", "lambda"],
)
def test_transforms_accept_every_callable(transform, function):
    transformed = TRANSFORMS[transform](function)
    transformed(nx.ones(2))
    with pytest.raises((TypeError, nx.ArgumentError)):
        transformed(nx.ones(2), strange=1)
