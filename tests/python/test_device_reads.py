"""Eager functions do not read device data to the host; only reads by the caller do."""

import ast
import copy
import inspect
import itertools
import pathlib

import pytest

import nxla as nx

#: Functions that must read an operand, because its values determine the shape of the result.
READS = {
    "bincount", "nonzero", "repeat", "segment_max", "segment_min", "segment_prod", "segment_sum",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "where",
}  # fmt: skip

#: Functions that compute on the host by LAPACK.
ON_HOST = {"eig", "eigvals"}

#: Operands to try, from the most common to the rarest.
POOL = {
    "matrix": lambda: nx.tensor([[3.0, 1.0, 0.5], [1.0, 4.0, 1.0], [0.5, 1.0, 5.0]]),
    "vector": lambda: nx.tensor([0.25, 0.5, 0.75]),
    "index": lambda: nx.tensor(1),
    "integers": lambda: nx.tensor([0, 2, 1]),
    "scalar": lambda: nx.tensor(0.5),
    "mask": lambda: nx.tensor([True, False, True]),
    "key": lambda: nx.random.key(3),
    "complex": lambda: nx.tensor([1 + 2j, 3 - 1j, 0.5j]),
    "block": lambda: nx.tensor([[7.0]]),
    "images": lambda: nx.ones((1, 2, 5, 5)),
    "kernel": lambda: nx.ones((3, 2, 2, 2)),
}

#: Values for required parameters that are not tensors.
SETTINGS = {
    "Shape": (3,), "Sizes": (3, 3), "int": 1, "float": 0.5, "bool": True, "DTypeLike": "f32",
    "Axis": 0, "Axes": 0, "PerAxis": 1, "Sequence[int]": (1, 1), "str": "name", "Names": ("a", "b"),
}  # fmt: skip


def stub_annotations():
    """Return the annotations of the functions of the compiled module, by name."""
    stub = pathlib.Path(nx.__file__).parent / "_core.pyi"
    found = {}
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            found[node.name] = {a.arg: ast.unparse(a.annotation) for a in every if a.annotation}
    return found


STUBS = stub_annotations()


def required(function):
    """Return the annotations of the required positional parameters; None if one is unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    known = STUBS.get(getattr(function, "__name__", ""), {})
    types = []
    for each in parameters:
        if each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        annotation = each.annotation if each.annotation is not each.empty else known.get(each.name)
        if not isinstance(annotation, str) or each.kind is each.KEYWORD_ONLY:
            return None
        types.append(annotation)
    return types


def candidates(annotation):
    """Return the argument for a parameter: names of `POOL`, lists of them, or a setting."""
    if annotation in ("TensorLike", "Tensor", "ArrayLike"):
        return list(POOL)
    if annotation in ("Sequence[TensorLike]", "Iterable[TensorLike]"):
        return [("index", "index"), ("vector", "vector"), ("matrix", "matrix")]
    return [SETTINGS[annotation]] if annotation in SETTINGS else []


def operands(choice, annotation, host_values):
    if annotation in ("TensorLike", "Tensor", "ArrayLike"):
        return host_values[choice]
    if annotation in ("Sequence[TensorLike]", "Iterable[TensorLike]"):
        return [host_values[each] for each in choice]
    return choice


def working_call(function, types, host_values):
    """Return the first combination of operands that the function accepts."""
    for choices in itertools.islice(itertools.product(*map(candidates, types)), 300):
        args = [operands(*each, host_values) for each in zip(choices, types, strict=True)]
        try:
            result = function(*args)
        except (nx.NxlaError, TypeError, ValueError, OverflowError):
            continue
        if nx.tree.leaves(result) and isinstance(nx.tree.leaves(result)[0], nx.Tensor):
            return choices
    return None


def functions():
    spaces = {"nx": nx, "nx.linalg": nx.linalg, "nx.fft": nx.fft, "nx.nn": nx.nn}
    for space, module in spaces.items():
        for name in sorted(module.__all__):
            function = getattr(module, name, None)
            is_tested = callable(function) and name not in READS | ON_HOST
            types = required(function) if is_tested else None
            if types and any("TensorLike" in each or each == "Tensor" for each in types):
                yield f"{space}.{name}", function, types


def test_no_eager_function_reads_its_operands(device):
    host_values = {name: make() for name, make in POOL.items()}
    on_device = {name: nx.device_put(value, device) for name, value in host_values.items()}
    called, reading, moved = [], {}, set()
    for name, function, types in functions():
        choices = working_call(function, types, host_values)
        if choices is None:
            continue
        args = [operands(*each, on_device) for each in zip(choices, types, strict=True)]
        before = nx.transfer_report()["read"]
        result = function(*args)
        read = nx.transfer_report()["read"] - before
        called.append(name)
        if read:
            reading[name] = (choices, read)
        result_devices = {
            leaf.device.name for leaf in nx.tree.leaves(result) if isinstance(leaf, nx.Tensor)
        }
        if result_devices != {device.name}:
            moved.add(name)
    assert (reading, moved) == ({}, set())
    assert {"nx.slice", "nx.slice_along_axis", "nx.put_slice", "nx.take"} <= {*called}
    assert len(called) > 150, len(called)


def test_result_type_does_not_read_its_operands(device):
    x = nx.device_put(nx.ones(3), device)
    before = nx.transfer_report()["read"]
    assert nx.result_type(x, x, "f64", 1.0) == nx.float64
    assert nx.transfer_report()["read"] == before


#: The functions of `READS`, with arguments that fix the shape.
FIXED_SHAPES = {
    "bincount": lambda x, i: nx.bincount(i, length=4),
    "repeat": lambda x, i: nx.repeat(x, 2),
    "segment_max": lambda x, i: nx.segment_max(x, i, 3),
    "segment_sum": lambda x, i: nx.segment_sum(x, i, num_segments=3),
    "where": lambda x, i: nx.where(i > 0, x, 1.0),
}


@pytest.mark.parametrize("name", FIXED_SHAPES)
def test_operands_are_not_read_if_arguments_fix_the_shape(name, device):
    x, i = nx.tensor([1.0, 2.0, 4.0]), nx.tensor([0, 2, 2])
    on_device = nx.device_put(x, device), nx.device_put(i, device)
    before = nx.transfer_report()["read"]
    result = FIXED_SHAPES[name](*on_device)
    assert nx.transfer_report()["read"] == before
    assert result.tolist() == FIXED_SHAPES[name](x, i).tolist()


STARTS = {
    "slice": lambda x, i: nx.slice(x, [i, 1], [2, 2]),
    "slice with strides": lambda x, i: nx.slice(x, [0, i], [3, 3], strides=[2, 2]),
    "slice_along_axis": lambda x, i: nx.slice_along_axis(x, i, 2, axis=1),
    "put_slice": lambda x, i: nx.put_slice(x, [i, i], [[7.0, 8.0]]),
    "where": lambda x, i: nx.where(x > i, x, i),
    "take": lambda x, i: nx.take(x, i, axis=0),
    "index": lambda x, i: x[i],
    "at set": lambda x, i: x.at[i].set(1.0),
    "indexed_add": lambda x, i: nx.indexed_add(x, nx.stack([i, i]), 1.0),
}


@pytest.mark.parametrize("dtype", ["u8", "s32", "s64"])
@pytest.mark.parametrize("name", STARTS)
def test_start_indices_on_a_device_are_not_read(name, dtype, device):
    function = STARTS[name]
    x = nx.reshape(nx.arange(20.0), (4, 5))
    for start in (0, 1, 3):
        expected = function(x, start).tolist()
        on_device, index = nx.device_put(x, device), nx.tensor(start, dtype, device=device)
        before = nx.transfer_report()["read"]
        result = function(on_device, index)
        assert nx.transfer_report()["read"] == before
        assert result.tolist() == expected
        assert function(x, nx.tensor(start, dtype)).tolist() == expected


COPIES = {
    "copy": lambda x: x.copy(),
    "asarray": lambda x: nx.asarray(x, copy=True),
    "tensor": lambda x: nx.tensor(x, copy=True),
    "backend_copy": lambda x: nx.backend_copy(x, x.device),
    "to_device": lambda x: x.to_device(x.device, copy=True),
    "device_put": lambda x: nx.device_put([x], x.device, copy=True)[0],
    "astype": lambda x: nx.astype(x, x.dtype),
    "astype elsewhere": lambda x: nx.astype(x, x.dtype, device=x.device),
    "copy.copy": copy.copy,
    "copy.deepcopy": lambda x: copy.deepcopy({"x": x})["x"],
}
DTYPES = [
    "bool", "u2", "s4", "u8", "s8", "u16", "s32", "u64", "s64", "f8_e4m3fn", "f8_e5m2", "bf16",
    "f16", "f32", "f64", "c64", "c128",
]  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("computed", [False, True])
def test_a_copy_on_the_same_device_has_its_own_buffer(name, computed, device):
    data = [[1.0, 2.0, 3.0]]
    x = nx.tensor(data, names=("row", None), device=device)
    if computed:  # XLA owns the result; without a computation, the memory belongs to the caller.
        x = nx.jit(lambda x: x + 0.5, compiler="xla")(x - 0.5)
    before = nx.transfer_report()
    copied = COPIES[name](x)
    assert nx.transfer_report() == before
    assert (copied.device, copied.names) == (device, x.names)
    assert x.deallocate()
    assert copied.tolist() == data
    assert copied.deallocate()


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_every_dtype_are_copied_on_their_device(dtype, device):
    make = nx.jit(lambda x: nx.astype(x, dtype), compiler="xla")
    x = make(nx.tensor([0, 1, 1], device=device))
    expected = x.tolist()
    copied = x.to_device(device, copy=True)
    assert copied.dtype == x.dtype
    assert x.deallocate()
    assert copied.tolist() == expected


def test_a_vectorized_tensor_is_copied_on_its_device(device):
    x = nx.vectorize(nx.device_put(nx.ones((2, 3)), device), "batch")
    copied = x.to_device(device, copy=True)
    assert x.deallocate()
    assert copied.vectorized_axes == (("batch", 2),)
    assert nx.devectorize(copied).tolist() == [[1.0] * 3] * 2


def test_donation_does_not_affect_copies(device):
    x = nx.device_put(nx.ones(3), device)
    copied = nx.astype(x, "f32")
    nx.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_released()
    assert copied.tolist() == [1.0, 1.0, 1.0]


def test_to_backend_names_a_device_that_exists(device):
    cases = [{}, {"compiler": "evaluator"}, {"compiler": "xla"}, {"device": device}]
    if device.platform == "cpu":
        cases += [{"compiler": "xla", "cpu_device_count": 2, "device": n} for n in (0, 1)]
    for options in cases:
        home = nx.to_backend(**options)
        assert home in nx.devices()
        assert nx.device_put(nx.ones(2), home).device == home
        assert nx.ones(2, device=home.name).device == home
        assert nx.jit(lambda x: x + 1, **options)(nx.ones(2)).device == home
        with nx.default_options(**options):
            assert nx.to_backend() == home


def test_compilers_must_name_an_existing_device(device):
    class Elsewhere(nx.Compiler):
        name = "elsewhere"
        answer = device

        def compile(self, expression, options):
            return lambda inputs: expression.run(*inputs)

        def to_backend(self, options):
            return self.answer

    compiler = Elsewhere()
    assert nx.to_backend(compiler=compiler) == device
    compiler.answer = device.name
    assert nx.to_backend(compiler=compiler) == device
    compiler.answer = "nowhere:0"
    with pytest.raises(nx.OptionError, match=r'device: name: must be one of .*; got "nowhere:0"'):
        nx.to_backend(compiler=compiler)
    compiler.answer = ("host", 0)
    with pytest.raises(
        nx.ArgumentError, match="must be a device or the name of a device; got a tuple"
    ):
        nx.to_backend(compiler=compiler)
