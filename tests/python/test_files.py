"""`nx.save` and `nx.load`, safetensors, pickles, copies, and printed tensors."""

import collections
import copy
import io
import json
import os
import pickle
import re
import struct
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import children
import nxla as nx
from where import DEVICE

Pair = collections.namedtuple("Pair", "first second")
DTYPES = [
    "pred",
    "u8",
    "s8",
    "f8_e5m2",
    "f8_e4m3fn",
    "u16",
    "s16",
    "f16",
    "bf16",
    "u32",
    "s32",
    "f32",
    "u64",
    "s64",
    "f64",
    "c64",
]


def test_concurrent_saves_leave_complete_files(tmp_path):
    file = tmp_path / "state.npy"
    nx.save(file, nx.zeros(1))

    def save_and_load(size):
        for _ in range(20):
            nx.save(file, nx.full((size,), size))
            found = nx.load(file)
            assert nx.all(found == found.shape[0]).item() or found.tolist() == [0.0]

    sizes = [1, 100, 10_000, 100_000]
    with ThreadPoolExecutor(len(sizes)) as threads:
        list(threads.map(save_and_load, sizes))
    assert [path.name for path in tmp_path.iterdir()] == ["state.npy"]


def test_containers_of_nxla_load_in_a_new_process(tmp_path):
    params = {"w": nx.ones(2)}
    values = [nx.optim.adam(0.1).init(params), nx.random.normal(nx.random.key(0), (2,))]
    nx.save(tmp_path / "values.nxla", values)
    found = children.run(f"""
        state, sample = nx.load({str(tmp_path / "values.nxla")!r})
        print(type(state[0]).__name__, type(sample).__name__)
    """)
    assert found.split() == ["ScaleByAdamState", "Sample"]


@pytest.mark.parametrize(
    "module", ["nxla.absent", "nxla.", "nxla..tree", "nxla.tree.absent", "nxla.\0"]
)
def test_classes_of_absent_modules_of_nxla_are_rejected(module):
    absent = types.ModuleType(module)
    absent.Point = collections.namedtuple("Point", ["x"])
    absent.Point.__module__ = module
    sys.modules[module] = absent
    try:
        data = nx.serialize(absent.Point(1))
    finally:
        del sys.modules[module]
    with pytest.raises(nx.ArgumentError, match="must be defined"):
        nx.deserialize(data)


def test_containers_round_trip(tmp_path):
    tree = {"a": [nx.tensor([1.0, 2.0], "bf16"), 3], "p": Pair(nx.tensor(True), None), "s": "text"}
    file = tmp_path / "tree.nxla"
    nx.save(file, tree)
    restored = nx.load(str(file))
    assert restored["a"][0].dtype == nx.bfloat16
    assert restored["a"][0].tolist() == [1.0, 2.0]
    assert isinstance(restored["p"], Pair)
    assert (restored["a"][1], restored["s"], restored["p"].second) == (3, "text", None)
    assert [path.name for path in tmp_path.iterdir()] == ["tree.nxla"]


@pytest.mark.skipif(os.name != "posix", reason="requires symbolic links and permissions")
def test_save_keeps_symbolic_links_and_permissions(tmp_path):
    weights, latest = tmp_path / "run7.nxla", tmp_path / "latest.nxla"
    latest.symlink_to(weights.name)
    nx.save(latest, nx.tensor(1))
    assert latest.is_symlink()
    assert nx.load(weights).item() == 1
    weights.chmod(0o600)
    nx.save(latest, nx.tensor(2))
    assert nx.load(weights).item() == 2
    assert weights.stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 2


def test_numpy_files_round_trip(tmp_path):
    x = np.arange(6.0).reshape(2, 3)
    nx.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x)
    assert nx.load(tmp_path / "x.npy").dtype == nx.float64
    nx.save(tmp_path / "t.npz", {"file": nx.tensor([1, 2]), "deep": {"w": nx.tensor(1.5)}})
    with np.load(tmp_path / "t.npz") as archive:
        assert sorted(archive.files) == ["deep.w", "file"]
    loaded = nx.load(tmp_path / "t.npz")
    assert loaded["file"].tolist() == [1, 2]
    assert loaded["deep.w"].item() == 1.5
    with pytest.raises(nx.ArgumentError, match="one tensor"):
        nx.save(tmp_path / "x.npy", {"a": nx.tensor(1)})
    with pytest.raises(nx.NxlaError, match="save: dtype must exist in NumPy; got bf16"):
        nx.save(tmp_path / "x.npy", nx.tensor(1.0, "bf16"))
    # The existing file is unchanged.
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x)


def test_invalid_paths_and_files_raise(tmp_path):
    for function in (lambda file: nx.save(file, nx.tensor(1)), nx.load):
        with pytest.raises(nx.ArgumentError, match=r"\.safetensors"):
            function(tmp_path / "x.pt")
    with pytest.raises(FileNotFoundError):
        nx.load(tmp_path / "nothing.nxla")
    (tmp_path / "broken.nxla").write_bytes(b"nonsense")
    with pytest.raises(nx.FormatError):
        nx.load(tmp_path / "broken.nxla")
    with pytest.raises(OSError, match=r"x\.nxla'$"):
        nx.save(tmp_path / "nowhere" / "x.nxla", nx.tensor(1))
    (tmp_path / "folder.nxla").mkdir()
    with pytest.raises(OSError, match=r"folder\.nxla'$"):
        nx.save(tmp_path / "folder.nxla", nx.tensor(1))


def read_floats(data):
    return nx.from_binary(data, "f32")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=6).filter(
            lambda name: name != "__metadata__"
        ),
        st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=3)),
        max_size=5,
    )
)
def test_safetensors_round_trip(entries):
    tensors = {
        name: nx.astype(
            nx.reshape(nx.arange(0, int(np.prod(shape)), dtype="f32"), shape) % 2, dtype
        )
        for name, (dtype, shape) in entries.items()
    }
    data = nx.to_safetensors(tensors, {"format": "pt"})
    restored = nx.from_safetensors(data)
    assert set(restored) == set(tensors)
    for name, x in tensors.items():
        assert (restored[name].dtype, restored[name].shape) == (x.dtype, x.shape)
        assert restored[name].tolist() == x.tolist()


def test_safetensors_match_the_reference_library(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    arrays = {
        "w": np.arange(6, dtype="f4").reshape(2, 3),
        "n": np.array([1, -2], "i8"),
        "on": np.array([True, False]),
        "none": np.zeros((0, 3), "f8"),
        "one": np.array(7, "u2"),
    }
    for name, x in nx.from_safetensors(theirs.save(arrays, {"a": "b"})).items():
        np.testing.assert_array_equal(np.asarray(x), arrays[name])
        assert np.asarray(x).dtype == arrays[name].dtype
    nx.save(tmp_path / "x.safetensors", arrays)
    loaded = theirs.load_file(tmp_path / "x.safetensors")
    for name, x in arrays.items():
        np.testing.assert_array_equal(loaded[name], x)


def test_safetensors_names_of_leaves():
    tree = {"layers": [{"w": nx.tensor(1)}, Pair(nx.tensor(2), (nx.tensor(3),))]}
    restored = nx.from_safetensors(nx.to_safetensors(tree))
    assert {name: x.item() for name, x in restored.items()} == {
        "layers.0.w": 1,
        "layers.1.first": 2,
        "layers.1.second.0": 3,
    }
    with pytest.raises(nx.ArgumentError, match="must be unique"):
        nx.to_safetensors({"a": {"b.c": nx.tensor(1), "b": {"c": nx.tensor(2)}}})
    assert list(nx.from_safetensors(nx.to_safetensors(nx.tensor(1)))) == ["tensor"]
    with pytest.raises(nx.ArgumentError, match="dtype must exist"):
        nx.to_safetensors({"x": nx.tensor(1j, "c128")})
    with pytest.raises(nx.ArgumentError, match="must be strings"):
        nx.to_safetensors({}, {"a": 1})
    with pytest.raises(nx.ArgumentError, match="reserved"):
        nx.to_safetensors({"__metadata__": nx.tensor(1)})


def safetensors_bytes(head, data=b"", text=None):
    text = json.dumps(head).encode() if text is None else text
    return struct.pack("<Q", len(text)) + text + data


ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def test_unsupported_dtypes_of_safetensors_are_skipped(tmp_path):
    head = {
        "half": {"dtype": "F4", "shape": [2, 3], "data_offsets": [0, 3]},
        "scale": {"dtype": "F8_E8M0", "shape": [2], "data_offsets": [3, 5]},
        "x": {**ENTRY, "data_offsets": [5, 9]},
    }
    data = safetensors_bytes(head, bytes(5) + struct.pack("<f", 1.5))
    file = tmp_path / "model.safetensors"
    file.write_bytes(data)
    for function, argument in ((nx.from_safetensors, data), (nx.load, file)):
        message = rf"^{function.__name__}: .* 'half' \(F4\), 'scale' \(F8_E8M0\); the other"
        with pytest.warns(UserWarning, match=message) as warned:
            found = function(argument)
        assert warned[0].filename == __file__
        assert {name: x.tolist() for name, x in found.items()} == {"x": [1.5]}
    with pytest.raises(nx.FormatError, match="invalid shape, data type, or offset"):
        nx.from_safetensors(
            safetensors_bytes({"half": {**head["half"], "data_offsets": [0, 4]}}, bytes(4))
        )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "header too small"),
        (struct.pack("<Q", 2**62), "header"),
        (safetensors_bytes({}, text=b"[]"), "header"),
        (safetensors_bytes({}, text=b"{"), "JSON"),
        (safetensors_bytes({}, text=b"\xff"), "UTF-8"),
        (safetensors_bytes({"a": 1}), "JSON"),
        (safetensors_bytes({"a": {**ENTRY, "dtype": "F7"}}), "F7"),
        (safetensors_bytes({"a": {**ENTRY, "dtype": ["F32"]}}), "JSON"),
        (safetensors_bytes({"a": {**ENTRY, "shape": [-1]}}), "JSON"),
        (safetensors_bytes({"a": {**ENTRY, "shape": [True]}}), "JSON"),
        (safetensors_bytes({"a": {**ENTRY, "shape": [1.0]}}), "JSON"),
        (safetensors_bytes({"a": {**ENTRY, "data_offsets": [0]}}), "JSON"),
        (safetensors_bytes({"a": {**ENTRY, "data_offsets": [4, 0]}}), "offset"),
        (safetensors_bytes({"a": {**ENTRY, "shape": [2]}}, bytes(8)), "invalid shape"),
        (safetensors_bytes({"a": ENTRY}, bytes(3)), "incomplete"),
        (safetensors_bytes({"a": ENTRY}, bytes(5)), "incomplete"),
        (safetensors_bytes({"a": ENTRY, "b": ENTRY}, bytes(4)), "offset"),
        (safetensors_bytes({"a": {**ENTRY, "data_offsets": [4, 8]}}, bytes(8)), "offset"),
        (
            safetensors_bytes(
                {"a": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\x02"
            ),
            "got 0x02 at index 0",
        ),
    ],
)
def test_damaged_safetensors_raise(data, why):
    with pytest.raises(nx.FormatError, match=why):
        nx.from_safetensors(data)


@nx.jit
def decorated(x):
    return x + 1


def plain(x, power):
    return x**power


def test_tensors_and_functions_are_copied_and_pickled():
    x = nx.tensor([1.0, 2.0], "bf16", names=["x"])
    for value in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert value.tolist() == x.tolist()
        assert (value.dtype, value.names) == (x.dtype, x.names)
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    jitted = nx.jit(plain, static_argnums=1, donate_argnums=0, compiler="evaluator")
    restored = pickle.loads(pickle.dumps(jitted))
    assert restored(nx.tensor(3.0), 2).item() == 9.0
    assert restored._spec == jitted._spec
    assert copy.deepcopy(decorated)(1).item() == 2
    template = nx.template((2, 3), "u8", names=["a", None])
    assert pickle.loads(pickle.dumps(template)) == template
    assert copy.deepcopy({"t": template})["t"] == template


@pytest.mark.parametrize(
    "function",
    [
        nx.load,
        nx.load_numpy,
        nx.import_stablehlo,
        lambda file: nx.save(file, 1),
        lambda file: nx.export(nx.sin, (1.0,), file),
        lambda file: nx.profile(file).__enter__(),
    ],
)
def test_file_descriptors_are_rejected(function):
    """`open` interprets such paths as descriptors of open files, and closes them."""
    with pytest.raises(nx.ArgumentError, match="file: must be a path; got 1"):
        function(1)


@pytest.mark.parametrize("content", [b"x" * 1000, bytearray(1000), np.zeros(1000)])
@pytest.mark.parametrize("function", [nx.load, lambda file: nx.export(nx.sin, (1.0,), file)])
def test_the_content_of_a_file_is_not_part_of_the_message(function, content):
    message = f"file: must be a path; got an? {type(content).__name__}$"
    with pytest.raises(nx.ArgumentError, match=message) as error:
        function(content)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("read", [nx.from_safetensors, nx.deserialize, read_floats])
@pytest.mark.parametrize("data", [8, np.int64(4), True, "path", None, [1, 2], nx.ones(2)])
def test_data_must_be_bytes(read, data):
    with pytest.raises(nx.FormatError, match="data: must be bytes; got"):
        read(data)


BYTES = [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, "u1")]


@pytest.mark.parametrize("convert", BYTES)
def test_bytes_may_be_in_any_buffer(convert):
    x = nx.tensor([1.0, 2.0])
    assert read_floats(convert(nx.to_binary(x))).tolist() == x.tolist()
    assert nx.from_safetensors(convert(nx.to_safetensors({"x": x})))["x"].tolist() == x.tolist()
    assert nx.deserialize(convert(nx.serialize(x))).tolist() == x.tolist()


def test_strided_buffers_are_read_in_order():
    array = np.arange(12, dtype="f4").reshape(3, 4)
    assert read_floats(memoryview(array[:, ::2])).tolist() == [0, 2, 4, 6, 8, 10]
    assert read_floats(memoryview(array.T)).tolist() == array.T.ravel().tolist()


@pytest.mark.parametrize("convert", BYTES[:3])
def test_numpy_files_are_read_from_any_bytes(convert):
    single, archive = io.BytesIO(), io.BytesIO()
    np.save(single, np.arange(3.0))
    np.savez(archive, x=np.arange(3.0))
    assert nx.load_numpy(convert(single.getvalue())).tolist() == [0.0, 1.0, 2.0]
    assert nx.load_numpy_archive(convert(archive.getvalue()))["x"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("save", "name"),
    [
        (nx.serialize, "serialize"),
        (nx.to_safetensors, "to_safetensors"),
        (nx.to_binary, "to_binary"),
        *((lambda x, kind=kind: nx.save(f"x.{kind}", x), "save") for kind in ("npy", "npz")),
        *(
            (lambda x, kind=kind: nx.save(f"x.{kind}", [x]), "s")
            for kind in ("nxla", "safetensors")
        ),
    ],
)
@pytest.mark.parametrize("trace", [nx.jit, nx.grad, nx.vmap])
def test_traced_values_cannot_be_written(trace, save, name):
    with pytest.raises(nx.TraceError, match=rf"{name}.*must not be traced.*test_files\.py"):
        trace(save)(nx.tensor(1.0) if trace is nx.grad else nx.ones(2))


def nested(wrap, count):
    value = nx.tensor(1.5)
    for _ in range(count):
        value = wrap(value)
    return value


WRAPS = {
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
    "dict": lambda x: {"a": x},
    "other keys": lambda x: {1: x},
    "named tuple": lambda x: Pair(x, None),
    "ordered": lambda x: collections.OrderedDict(a=x),
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_every_serialized_nesting_is_deserialized(wrap):
    with pytest.raises(nx.ArgumentError, match="serialize: container: must be nested at most 256"):
        nx.serialize(nested(wrap, 257))
    for count in (250, 255):
        value = nx.deserialize(nx.serialize(nested(wrap, count)))
        assert [leaf.item() for leaf in nx.tree.leaves(value)] == [1.5]


def test_unserializable_containers_are_not_written(tmp_path):
    cycle = []
    cycle.append(cycle)
    file = tmp_path / "x.nxla"
    for value, why in [
        (cycle, "must not contain itself"),
        (nested(lambda x: [x], 300), "nested at most 256 deep"),
        ([10**4300], "at most 4300 digits"),
    ]:
        with pytest.raises(nx.ArgumentError, match=f"serialize: container: .*{why}"):
            nx.save(file, value)
    assert not file.exists()
    values = ["\ud800", 10**4300 - 1, {"b": 1, "\ud800": 2, "a": 3}, {1: 2, "\ud800": 3}]
    assert nx.deserialize(nx.serialize(values)) == values


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_members_that_are_not_tensors_raise(tmp_path, kind):
    file = tmp_path / f"x.{kind}"
    for container in [{"w": nx.ones(2), "name": "adam"}, {"x": "s"}, ["s", nx.ones(1)]]:
        with pytest.raises(nx.ArgumentError, match=r"must contain only tensors in this format"):
            nx.save(file, container)
        assert not file.exists()
    nx.save(file, {"w": nx.ones(2), "bias": None})
    assert list(nx.load(file)) == ["w"]


def test_npy_files_require_one_tensor(tmp_path):
    for container in [[nx.ones(3)], (nx.tensor([3.0]),), [np.ones(3)], {"x": 1.0}, []]:
        with pytest.raises(nx.ArgumentError, match=r"container: must be one tensor"):
            nx.save(tmp_path / "x.npy", container)


def test_names_must_be_unicode(tmp_path):
    for tree in ({"\ud800": nx.tensor(1)}, {"\ud800": [nx.tensor(1)]}):
        for save in (nx.to_safetensors, lambda tree: nx.save(tmp_path / "x.npz", tree)):
            with pytest.raises(nx.ArgumentError, match="container: names must be valid Unicode"):
                save(tree)
    with pytest.raises(nx.ArgumentError, match="metadata: names and values must be strings"):
        nx.to_safetensors({}, {"a": "\ud800"})


def test_names_of_leaves_are_the_keys_of_ordered_dicts():
    layer = collections.OrderedDict(w=np.ones(1), bias=np.ones(1))
    counts = collections.defaultdict(int, b=np.ones(1))
    data = nx.to_safetensors({"layer": layer, "counts": counts, "x[0]": 1})
    assert set(nx.from_safetensors(data)) == {"layer.w", "layer.bias", "counts.b", "x[0]"}


def test_pickled_expressions():
    expression = nx.debug_expr(lambda x: nx.sin(x) * 2)(nx.template((2,), "f32"))
    restored = pickle.loads(pickle.dumps(expression))
    assert restored.digest == expression.digest
    assert restored.lines() == expression.lines()
    assert copy.deepcopy(expression).digest == expression.digest
    hooked = nx.debug_expr(lambda x: nx.hook(x, print))(nx.template((), "f32"))
    with pytest.raises(nx.ArgumentError, match="hooks"):
        pickle.dumps(hooked)


def body(x):
    text = repr(x)
    if "\n" not in text:
        return [text.removeprefix("#nxla.Tensor<").removesuffix(">").split(" ", 1)[1]]
    return [line.strip() for line in text.split("\n")[2:-1]]


def test_print_options():
    x = nx.tensor([1 / 3, 2.0, 123456789.0, 1e-5, np.nan, -np.inf])
    usual = repr(x)
    with nx.set_print_options(precision=2):
        assert body(x) == ["[0.33, 2.00, 1.23e+08, 1.00e-05, NaN, -Inf]"]
        with nx.set_print_options(linewidth=24):
            assert len(body(x)) > 1
            assert "".join(body(x)).startswith("[0.33, 2.00,")
            assert all(len(line) <= 24 for line in repr(x).split("\n"))
        assert len(body(x)) == 1
    assert repr(x) == usual
    with nx.set_print_options(threshold=10):
        assert body(x) == [usual.split("\n")[2].strip()]
        assert body(nx.tensor(0.1, "f16")) == ["0.1"]
        assert body(nx.tensor([0.1, 1.5], "bf16")) == ["[0.1, 1.5]"]
        assert body(nx.zeros((0, 3))) == ["[]"]
        assert body(nx.tensor([True, False])) == ["[true, false]"]
        assert body(nx.tensor([1 - 2j], "c64")) == ["[1.0-2.0i]"]
    nx.set_print_options(threshold=4, edgeitems=1)
    try:
        assert body(nx.arange(100)) == ["[0, ..., 99]"]
        assert body(nx.reshape(nx.arange(12), (3, 4))) == [
            "[",
            "[0, ..., 3],",
            "...,",
            "[8, ..., 11]",
            "]",
        ]
        vectors = nx.vectorize(nx.reshape(nx.arange(12), (3, 4)), "v")
        assert "[0, ..., 3]," in body(vectors)
        assert "vectorized[v: 3]" in repr(vectors)
    finally:
        nx.set_print_options()
    assert "..." not in repr(nx.arange(1000))
    assert body(nx.arange(1001)) == ["[0, 1, 2, ..., 998, 999, 1000]"]
    for options in ({"precision": -1}, {"edgeitems": 0}, {"threshold": 1.5}, {"linewidth": 0}):
        with pytest.raises(nx.ArgumentError, match=next(iter(options))):
            nx.set_print_options(**options)


def test_concurrent_print_option_changes_keep_other_options():
    x, printed = nx.tensor([1 / 3]), set()

    def change(edgeitems):
        for _ in range(2000):
            nx.set_print_options(edgeitems=edgeitems)
            printed.add(repr(x))

    with nx.set_print_options(precision=2), ThreadPoolExecutor(2) as threads:
        list(threads.map(change, [1, 2]))
    assert len(printed) == 1


@pytest.mark.parametrize("backend", ["host", "xla"])
def test_tensors_print_as_in_numpy(backend):
    """NumPy prints the same elements and omits the same middles of axes."""
    tokens = re.compile(r"-?[\d.]+(?<!\.)|\.\.\.|[\[\]]")
    for shape in [
        (7,),
        (1001,),
        (10, 101),
        (40, 40),
        (2, 600),
        (7, 11, 13),
        (3, 1, 400, 2),
        (0, 3),
    ]:
        array = np.arange(np.prod(shape)).reshape(shape)
        x = nx.astype(nx.tensor(array), "s32")
        if backend == "xla":
            x = nx.jit(lambda x: x + 0, compiler="xla")(x)
        shown = "".join(body(x)) if backend == "host" else "".join(body(x)[1:])
        expected = str(array) if array.size else "[]"
        assert tokens.findall(shown) == tokens.findall(expected), shape
        assert all(len(line) <= 80 for line in repr(x).split("\n"))


def test_scalars_print_in_one_line():
    assert repr(nx.tensor(1.5)) == str(nx.tensor(1.5)) == "#nxla.Tensor<f32 1.5>"
    assert repr(nx.tensor(True)) == "#nxla.Tensor<pred true>"
    assert repr(nx.tensor(-0.1, "f64")) == "#nxla.Tensor<f64 -0.1>"
    assert repr(nx.tensor(1 - 2j)) == "#nxla.Tensor<c64 1.0-2.0i>"
    on_device = repr(nx.jit(lambda x: x + 1, compiler="xla")(1))
    assert re.fullmatch(rf"#nxla\.Tensor<s32 {DEVICE}, buffer 0x[0-9a-f]+ 2>", on_device)
    with nx.set_print_options(device=False):
        assert repr(nx.jit(lambda x: x + 1, compiler="xla")(1)) == "#nxla.Tensor<s32 2>"


@settings(max_examples=200, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_printed_floats_round_trip(value):
    with nx.set_print_options(edgeitems=2):
        (text,) = body(nx.tensor(value, "f32"))
    assert np.float32(text) == np.float32(value)
