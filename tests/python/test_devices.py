"""Devices: names, transfers, and functions that run on the device of their operands."""

import pickle
import sys
import threading
from typing import NamedTuple

import numpy as np
import pytest

import nxla as nx
from where import PLATFORM, on_cpu

ON_TWO = {"compiler": "xla", "cpu_device_count": 2}


@pytest.fixture(scope="module")
def other_devices(device):
    """Return both devices of another client."""
    if PLATFORM != "cpu":
        pytest.skip("only plugins for CPUs make several devices of one")
    created = [nx.jit(lambda x: x, **ON_TWO, device=index)(1.0).device for index in (0, 1)]
    assert device not in created
    return created


def test_the_host_is_the_first_device():
    host = nx.devices()[0]
    assert (host.name, host.platform, host.client, host.index) == ("host", "host", "host", 0)
    assert host.memory_stats() is None
    assert nx.tensor(1.0).device == host


def test_device_names_contain_client_and_index(device):
    assert device.name == f"{device.client}:{device.index}"
    assert device.client.split(".")[0] == device.platform
    assert repr(device) == f"Device('{device.name}')"
    assert str(device) == device.name


@on_cpu
def test_cpu_plugins_do_not_count_memory(device):
    assert device.memory_stats() is None


@pytest.mark.skipif(PLATFORM == "cpu", reason="CPU plugins do not count memory")
def test_memory_in_use_includes_every_tensor(device):
    x = nx.ones((256, 256)).to_device(device)
    assert device.memory_stats()["in_use"] >= x.nbytes


def test_device_names_are_unique(other_devices):
    names = [str(each) for each in nx.devices()]
    assert len(names) == len(set(names))
    assert {str(each) for each in other_devices} <= set(names)
    assert other_devices[0].client == other_devices[1].client
    assert [each.index for each in other_devices] == [0, 1]


def test_devices_compare_equal_to_their_names(device, other_devices):
    same = nx.Device(device.name)
    assert same == device == device.name
    assert hash(same) == hash(device) == hash(device.name)
    assert device != other_devices[0]
    assert device != "host"
    assert device != 0
    assert pickle.loads(pickle.dumps(device)) == device


def test_unknown_device_names_list_the_devices(device):
    with pytest.raises(nx.OptionError, match=f'must be one of host, {device}.*; got "abacus:0"'):
        nx.Device("abacus:0")
    with pytest.raises(
        nx.ArgumentError, match="must be a device or the name of a device; got an int"
    ):
        nx.zeros(2, device=0)


MAKERS = {
    "tensor": lambda d: nx.tensor([1.0, 2.0], device=d),
    "tensor of an array": lambda d: nx.tensor(np.ones(3), "f32", names=["x"], device=d),
    "asarray": lambda d: nx.asarray(np.ones(3), device=d),
    "from_dlpack": lambda d: nx.from_dlpack(np.ones(3), device=d),
    "from_binary": lambda d: nx.from_binary(bytes(8), "f32", device=d),
    "full": lambda d: nx.full(2, 7, device=d),
    "zeros": lambda d: nx.zeros(2, device=d),
    "ones": lambda d: nx.ones(2, device=d),
    "full_like": lambda d: nx.full_like([1, 2], 3, device=d),
    "zeros_like": lambda d: nx.zeros_like([1, 2], device=d),
    "ones_like": lambda d: nx.ones_like([1, 2], device=d),
    "arange": lambda d: nx.arange(2, 9, 3, device=d),
    "linspace": lambda d: nx.linspace(0.0, 1.0, 5, device=d),
    "iota": lambda d: nx.iota((2, 2), vectorized_axes=[("v", 2)], device=d),
    "eye": lambda d: nx.eye(2, device=d),
    "eye with offset": lambda d: nx.eye(2, 3, k=1, device=d),
    "tri": lambda d: nx.tri(2, 3, device=d),
    "random.key": lambda d: nx.random.key(3, device=d),
    "random.uniform": lambda d: nx.random.uniform(nx.random.key(3, device=d), shape=(2,))[0],
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_creation_functions_accept_a_device(maker, device, other_devices):
    for target in (device, other_devices[1]):
        created = maker(target)
        assert created.device == target
        on_host = maker("host")
        assert on_host.device == "host"
        assert (created.dtype, created.shape, created.names) == (
            on_host.dtype,
            on_host.shape,
            on_host.names,
        )
        np.testing.assert_allclose(created.numpy(), on_host.numpy(), rtol=1e-6)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_creation_functions_follow_the_default_options(maker, device, other_devices):
    assert maker(None).device == "host"
    with nx.default_options(compiler="xla"):
        assert maker(None).device == device
    with nx.default_options(device=other_devices[1]):
        assert maker(None).device == other_devices[1]
    with nx.default_options(**ON_TWO, device=1):
        assert maker(None).device == other_devices[1]
    assert maker(None).device == "host"


@pytest.mark.parametrize("name", nx.constants.__all__)
def test_constants_follow_the_default_options(name, device):
    constant = getattr(nx.constants, name)
    dtype = "c64" if name == "i" else "f32"
    assert constant(dtype).device == "host"
    with nx.default_options(device=device):
        assert constant(dtype).device == device


def test_lists_of_device_tensors_are_stacked_on_their_device(device, other_devices):
    x = nx.tensor([1.0, 2.0], device=device)
    before = nx.transfer_report()
    for rows in ([x, x], [x, [3.0, 4.0]], [[x[0], 5.0], [6, 7]]):
        for function in (nx.tensor, nx.asarray):
            assert function(rows).device == device
            assert function(rows).shape == (2, 2)
    assert nx.transfer_report()["read"] == before["read"]
    assert nx.tensor([[x[0], 5.0], [6, 7]], device="host").tolist() == [[1.0, 5.0], [6.0, 7.0]]
    with pytest.raises(nx.ArgumentError, match="must be on one device"):
        nx.tensor([x, x.to_device(other_devices[1])])


def _from_file(save, load):
    def make(path):
        save(path)
        return load(path)

    return make


#: Functions that read tensors from bytes or arrays.
READERS = {
    "deserialize": lambda _: nx.deserialize(nx.serialize({"x": nx.ones(2)}))["x"],
    "load": _from_file(
        lambda path: nx.save(path, {"x": nx.ones(2)}), lambda path: nx.load(path)["x"]
    ),
    "load_numpy": _from_file(lambda path: np.save(path, np.ones(2)), nx.load_numpy),
    "load_numpy_archive": _from_file(
        lambda path: np.savez(path, x=np.ones(2)), lambda path: nx.load_numpy_archive(path)["x"]
    ),
    "from_safetensors": lambda _: nx.from_safetensors(nx.to_safetensors({"x": nx.ones(2)}))["x"],
    "from_binary": lambda _: nx.from_binary(bytes(8), "f32"),
    "vectorize": lambda _: nx.vectorize(np.ones(2), "rows"),
    "vectorize a list": lambda _: nx.vectorize([1.0, 2.0], "rows"),
}
SUFFIXES = {"load_numpy": ".npy", "load_numpy_archive": ".npz"}


@pytest.mark.parametrize("name", READERS)
def test_read_tensors_follow_the_default_options(name, device, tmp_path):
    path = tmp_path / f"file{SUFFIXES.get(name, '.nxla')}"
    assert READERS[name](path).device == "host"
    with nx.default_options(device=device):
        assert READERS[name](path).device == device


def test_positions_are_on_the_device_of_the_operand(device):
    for x in (nx.tensor([3, 0, 3, 1]), nx.zeros((0,), "s32")):
        moved = x.to_device(device)
        parts = [*nx.nonzero(moved), *nx.unique_all(moved), *nx.unique_inverse(moved)]
        assert [part.device for part in parts] == [device] * len(parts)
        expected = [*nx.nonzero(x), *nx.unique_all(x), *nx.unique_inverse(x)]
        assert [part.tolist() for part in parts] == [part.tolist() for part in expected]
        assert all(part.device == "host" for part in expected)


def test_creation_on_a_device_in_a_trace_raises(device):
    for maker in (MAKERS["zeros"], MAKERS["tensor"], MAKERS["arange"]):
        with pytest.raises(nx.TraceError, match="device: must not be passed in a trace"):
            nx.jit(lambda x, maker=maker: x + maker(device))(1.0)
    with nx.default_options(device=device):
        # A captured tensor becomes a part of the function, independent of the default device.
        assert nx.jit(lambda x: x + nx.tensor(2.0))(1.0).item() == 3.0


def test_tensors_stay_on_their_device_by_default(device):
    x = nx.tensor([1.0, 2.0], device=device)
    before = nx.transfer_report()
    assert nx.tensor(x).device == device
    assert nx.asarray(x) is x
    assert nx.tensor(x, "s32").device == device
    assert nx.zeros_like(x).device == device
    assert nx.full_like(x, 3.0).device == device
    assert nx.transfer_report()["read"] == before["read"]
    assert nx.asarray(x, device="host").device == "host"


def test_to_device_copies_only_between_devices(device, other_devices):
    x = nx.tensor([1.0, 2.0], names=["x"], device=device)
    assert x.to_device(device) is x
    assert x.to_device(device, copy=False) is x
    assert x.to_device(device, copy=True) is not x
    for target in ("host", other_devices[0], other_devices[1].name):
        moved = x.to_device(target)
        assert moved.device == target
        assert moved.names == ["x"]
        assert moved.tolist() == [1.0, 2.0]
    with pytest.raises(
        nx.ArgumentError, match=f"copy: must not be False to copy a tensor from {device}"
    ):
        x.to_device("host", copy=False)
    vectorized = nx.vectorize([[1, 2], [3, 4]], "v").to_device(device)
    assert vectorized.device == device
    assert vectorized.vectorized_axes == (("v", 2),)


def test_device_put_moves_every_leaf_of_a_container(device):
    put = nx.device_put({"w": [nx.ones(2), 3.0], "b": (np.arange(2), None)}, device)
    assert put["b"][1] is None
    assert [leaf.device for leaf in nx.tree.leaves(put)] == [device] * 3
    assert nx.device_put(put["w"][0], device) is put["w"][0]


def test_device_put_selects_a_default_device(device):
    assert nx.device_put(np.ones(2)).device == nx.devices()[:2][-1]
    with nx.default_options(device=device):
        assert nx.device_put([np.ones(2)])[0].device == device
    with nx.default_options(compiler="evaluator"):
        assert nx.device_put(np.ones(2)).device == nx.Device("host")


OPTIONS = [
    {"compiler": "evaluator"},
    {"compiler": "xla"},
    {"compiler": "xla", "device": 0},
    {"compiler": "auto"},
    {**ON_TWO, "device": 1},
    {"device": "host"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.usefixtures("other_devices")
def test_device_put_uses_the_device_of_default_options(options):
    with nx.default_options(**options):
        moved, created = nx.device_put([1.0])[0], nx.ones(2)
        assert moved.device == created.device == nx.jit(nx.sin)(1.0).device == nx.to_backend()


def test_a_named_device_is_the_only_partition(other_devices):
    device = other_devices[1]
    lists = [[nx.ones(2)], [nx.zeros(2)]]
    for options in ({"device": device}, {"device": device.name, "compiler": "xla"}):
        (partition,) = nx.partitions_options(**options)
        assert nx.jit(nx.sin, **partition)(1.0).device == device
        found = nx.jit_partitions(nx.cos, lists, **options)
        assert [result.device for result in found] == [device] * 2
    with nx.default_options(device=device):
        assert [x.device for x in nx.jit_partitions(nx.cos, lists)] == [device] * 2
        host = nx.jit_partitions(nx.cos, lists, compiler="evaluator", device=None)
        assert [x.device.name for x in host] == ["host"] * 2
    assert len(nx.partitions_options(**ON_TWO)) == 2


JIT_OPTIONS = {
    "static_argnums": 1, "static_argnames": "power", "donate_argnums": 0, "donate_argnames": "x",
    "hooks": {}, "stages": "marks", "progress": False, "on_conflict": "force", "debug_nans": True,
    "max_compiles": 3, "on_max_compiles": "log", "on_unusable_donation": "ignore",
}  # fmt: skip


@pytest.mark.parametrize("option", JIT_OPTIONS)
def test_calls_on_partitions_accept_the_options_of_jit(option, other_devices):
    def raised(x, power):
        return x**power

    options = {**ON_TWO, option: JIT_OPTIONS[option]}
    found = nx.jit_partitions(raised, [[nx.ones(2), 2], [nx.ones(2), 2]], **options)
    assert [result.device for result in found] == other_devices


MOVES = {
    "device_put": nx.device_put,
    "backend_copy": nx.backend_copy,
    "backend_transfer": nx.backend_transfer,
    "to_device": lambda x, device: x.to_device(device),
    "ones": lambda x, device: nx.ones(x.shape, device=device),
}


@pytest.mark.parametrize("value", [0, 1, False, "", [], ()], ids=repr)
@pytest.mark.parametrize("move", MOVES)
def test_devices_must_be_objects_or_names(move, value):
    with pytest.raises((nx.ArgumentError, nx.OptionError), match=r"device: .*must be.*; got"):
        MOVES[move](nx.ones(2), value)


@pytest.mark.parametrize("move", ["device_put", "backend_copy", "backend_transfer"])
def test_empty_client_names_are_rejected(move):
    with pytest.raises(nx.OptionError, match='got ":0"'):
        MOVES[move](nx.ones(2), client="")


def test_default_device_is_thread_local(device):
    with nx.default_options(device=device):
        assert nx.default_options()["device"] == device
        assert (nx.zeros(2) + 1).device == device
        assert nx.jit(lambda x: x + 1)(1.0).device == device
        seen = []
        thread = threading.Thread(target=lambda: seen.append(nx.zeros(2).device))
        thread.start()
        thread.join()
        assert seen == ["host"]
    assert nx.jit(lambda x: x + 1)(1.0).device == "host"


def test_global_default_device_applies_to_all_threads(device):
    with nx.global_default_options(device=device.name):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(nx.zeros(2).device))
        thread.start()
        thread.join()
        assert seen == [device]


def test_device_option_replaces_other_device_settings(device, other_devices):
    with nx.default_options(**ON_TWO, device=1):
        assert nx.jit(lambda x: x + 1, device=device)(1.0).device == device
        with nx.default_options(device=device):
            assert nx.jit(lambda x: x + 1)(1.0).device == device
            with nx.default_options(cpu_device_count=2):
                assert nx.jit(lambda x: x + 1)(1.0).device == other_devices[0]
    with nx.default_options(compiler="xla", device=device):
        assert nx.jit(lambda x: x + 1, **ON_TWO, device=1)(1.0).device == other_devices[1]
    with pytest.raises(nx.OptionError, match="must not be set together with device"):
        nx.jit(lambda x: x + 1, compiler="xla", cpu_device_count=2, device=device)(1.0)
    with pytest.raises(nx.OptionError, match=f"evaluator.*does not support the device {device}"):
        nx.jit(lambda x: x + 1, compiler="evaluator", device=device)(1.0)


def _window_reduced(x):
    return nx.window_reduce(x, 0.0, lambda element, total: element + total, (2,))


#: Functions of a vector without a device argument.
DEVICE_FUNCTIONS = {
    "operator": lambda x: x + 1,
    "function": lambda x: nx.sin(x),
    "with a number": lambda x: 2.0 / x,
    "with a host tensor": lambda x: nx.ones(3) + x,
    "with an array": lambda x: np.ones(3, "float32") + nx.sqrt(x),
    "index": lambda x: x[1],
    "range": lambda x: x[::-1],
    "take": lambda x: x[nx.tensor([0, 2])],
    "slice": lambda x: nx.slice_along_axis(x, nx.tensor(1), 2),
    "put_slice": lambda x: nx.put_slice(x, [1], [9.0]),
    "concat": lambda x: nx.concat([x, nx.zeros(2)]),
    "stack": lambda x: nx.stack([x, x]),
    "jit": lambda x: nx.jit(lambda y: y * 2)(x),
    "jit of a container": lambda x: nx.jit(lambda p: {"y": p["x"] * 2})({"x": x, "n": 1})["y"],
    "jit that captures it": lambda x: nx.jit(lambda y: y + x)(1.0),
    "defn": lambda x: nx.defn(lambda y: y * 2)(x),
    "grad": lambda x: nx.grad(lambda y: nx.sum(y**2))(x),
    "value_and_grad": lambda x: nx.value_and_grad(lambda y: nx.sum(y**2))(x)[0],
    "vmap": lambda x: nx.vmap(lambda y: y * 2)(x),
    "compile": lambda x: nx.compile(lambda y: y * 2, [x])(x),
    "reduce": lambda x: nx.reduce(x, 0.0, lambda element, total: element + total),
    "reduce in another dtype": lambda x: nx.reduce(x, 0, lambda e, t: e + t, dtype="s32"),
    "window_reduce": _window_reduced,
    "cumulative_sum": lambda x: nx.cumulative_sum(x),
    "sort": lambda x: nx.sort(x),
    "vectorize": lambda x: nx.sum(nx.vectorize(x, "v")),
    "to_batched": lambda x: list(nx.to_batched(x, 2))[-1],
    "linalg": lambda x: nx.linalg.cholesky(nx.outer(x, x) + nx.eye(3)),
    "fft": lambda x: nx.fft.fft(x),
    "fori": lambda x: nx.jit(lambda y: nx.fori(0, 3, lambda i, z: z + 1, y))(x),
    "map": lambda x: nx.jit(lambda y: nx.map(lambda z: z * 2, y))(x),
    "zeros_like": lambda x: nx.zeros_like(x),
    "astype": lambda x: nx.astype(x, "f64"),
    "names": lambda x: nx.rename(x, ["n"]),
}


@pytest.mark.parametrize("function", DEVICE_FUNCTIONS.values(), ids=DEVICE_FUNCTIONS)
def test_results_stay_on_the_device_of_operands_without_reads(function, device, other_devices):
    expected = function(nx.tensor([1.0, 2.0, 3.0]))
    for target in (device, other_devices[1]):
        x = nx.tensor([1.0, 2.0, 3.0], device=target).block_until_ready()
        before = nx.transfer_report()["read"]
        result = function(x)
        assert result.device == target
        assert nx.transfer_report()["read"] == before
        found, wanted = result.numpy(), expected.numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_explicit_compiler_determines_the_device_of_results(device):
    x = nx.tensor([1.0, 2.0], device=device)
    assert nx.jit(lambda y: y + 1, compiler="evaluator")(x).device == "host"
    with nx.default_options(compiler="evaluator"):
        assert (x + 1).device == "host"


def test_operands_on_two_devices_raise(device, other_devices):
    x = nx.tensor([1.0, 2.0], device=device)
    for other in other_devices:
        y = nx.tensor([1.0, 2.0], device=other)
        both = f"operands: must be on one device; got {device} and {other}"
        for name, function in {
            "add": nx.add,
            "all_close": nx.all_close,
            "concat": lambda x, y: nx.concat([x, y]),
            "index": lambda x, y: x.at[0].set(y[0]),
            "jvp": lambda x, y: nx.jvp(nx.sin, (x,), (y,)),
            "where": lambda x, y: nx.where(x > 0, x, y),
        }.items():
            with pytest.raises(nx.ArgumentError, match=f"^{name}: {both}"):
                function(x, y)
        stages = nx.graph.split(nx.debug_expr(nx.add)(x, x), nx.graph.Policy.every_ops(1))
        with pytest.raises(nx.ArgumentError, match=f"^run: {both}"):
            nx.graph.run(stages, x, y)
        with pytest.raises(nx.ArgumentError, match=both):
            nx.jit(lambda x, y: x + y)(x, y)
        with pytest.raises(nx.ArgumentError, match=both):
            nx.grad(lambda x, y: nx.sum(x * y))(x, y)
        with pytest.raises(nx.ArgumentError, match=both):
            nx.jit(lambda x, y=y: x + y)(x)
        # A named device receives all operands.
        assert nx.jit(lambda x, y: x + y, device=other)(x, y).device == other


def test_compiled_functions_run_on_the_device_of_arguments(device, other_devices):
    doubled = nx.compile(lambda x: x * 2, [nx.template((2,))])
    for target in (device, other_devices[0], nx.devices()[0]):
        assert doubled(nx.tensor([1.0, 2.0], device=target)).device == target
    on_device = nx.compile(lambda x: x * 2, [nx.template((2,))], device=device)
    assert on_device(nx.ones(2)).device == device


def test_weights_on_the_device_are_not_sent_again(device):
    weights = nx.device_put(
        {"w": np.ones((64, 64), "float32"), "b": np.zeros(64, "float32")}, device
    )
    model = nx.jit(lambda p, x: nx.tanh(x @ p["w"] + p["b"]))
    batch = np.ones((4, 64), "float32")
    model(weights, batch).block_until_ready()
    before = nx.transfer_report()
    for _ in range(5):
        result = model(weights, batch)
    after = nx.transfer_report()
    assert after["sent"] - before["sent"] == 5 * batch.nbytes
    assert after["read"] == before["read"]
    assert result.device == device


def test_donated_arguments_count_from_either_end(device):
    step = nx.jit(lambda x, y: y + x, donate_argnums=-1)
    x, y = nx.ones(3, device=device), nx.zeros(3, device=device)
    assert step(x, y).tolist() == [1.0, 1.0, 1.0]
    assert (x.is_released(), y.is_released()) == (False, True)
    for position in (2, 7, -3):
        with pytest.raises(nx.ArgumentError, match="donate_argnums: must be below 2"):
            nx.jit(lambda x, y: x, donate_argnums=position)
    assert nx.jit(lambda *xs: xs[0], donate_argnums=3)(1.0).item() == 1.0


#: Functions with two arguments by position, and further arguments that have no position.
WITHOUT_POSITIONS = [
    lambda x, n, **options: x * n,
    lambda x, n, *, flag=True: x * n,
    lambda x, n, *, flag=True, **options: x * n,
]


@pytest.mark.parametrize("option", ["static_argnums", "donate_argnums"])
def test_argnums_count_only_positional_arguments(option):
    for function in WITHOUT_POSITIONS:
        for position in (-1, 1):
            jitted = nx.jit(function, **{option: position})
            for n in (2, 3):
                assert jitted(1.0, n).item() == n
            assert jitted.cache_report()["misses"] == 1 + (option == "static_argnums")
        for position in (2, -3):
            with pytest.raises(nx.ArgumentError, match=f"{option}: must be below 2"):
                nx.jit(function, **{option: position})
    for function in (lambda *xs: xs[0], lambda x, *xs: x):
        with pytest.raises(nx.ArgumentError, match=f"{option}: must not be negative"):
            nx.jit(function, **{option: -1})


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
def test_argnames_of_variadic_arguments_are_rejected(option):
    with pytest.raises(nx.ArgumentError, match=f"{option}: must .*got 'xs'"):
        nx.jit(lambda x, *xs: x, **{option: "xs"})


def tensors_on(device, *values):
    return [nx.tensor(value, device=device) for value in values]


def test_arguments_are_donated_by_name_and_by_path(device):
    def step(state, x, *, scale=1.0):
        mean = [each + x for each in state["mean"]]
        return {"mean": mean, "count": state["count"] + scale}

    part = nx.jit(step, donate_argnames=("state['mean'][1]", "scale"))
    first, second, count, scale = tensors_on(device, [1.0], [2.0], 3.0, 4.0)
    new = part({"mean": [first, second], "count": count}, 1.0, scale=scale)
    assert [each.tolist() for each in new["mean"]] == [[2.0], [3.0]]
    assert [each.is_released() for each in (first, second, count, scale)] == [
        False, True, False, True,
    ]  # fmt: skip
    first, second, count = tensors_on(device, [1.0], [2.0], 3.0)
    by_name = {"x": 1.0, "state": {"mean": [first, second], "count": count}}
    assert part(**by_name)["count"].item() == 4.0
    assert (first.is_released(), second.is_released()) == (False, True)
    first, second, count = tensors_on(device, [1.0], [2.0], 3.0)
    nx.jit(step, donate_argnums=0)(x=1.0, state={"mean": [first, second], "count": count})
    assert first.is_released()
    assert count.is_released()


def test_invalid_donation_paths_are_rejected(device):
    refused = {
        "states": "must start with an argument",
        "state.mean": "must be a tensor",
        "state[-1]": "indices must not be negative",
        "": "must be a name or a path",
        "x y": "must be a name or a path",
        "state()": "must be a name or a path",
    }
    for path, expected in refused.items():
        with pytest.raises(nx.ArgumentError, match=f"donate_argnames: .*{expected}"):
            nx.jit(lambda state: state, donate_argnames=path)(nx.ones(2, device=device))


@pytest.mark.parametrize(
    "path", ["p['w'][1].mean", 'p["w"][1].mean', "p [ 'w' ][0x1] . mean", "p['\\x77'][1].mean"]
)
def test_donation_paths_accept_equivalent_spellings(device, path):
    class Moments(NamedTuple):
        mean: object
        other: object

    first, second, third = tensors_on(device, [1.0], [2.0], [3.0])
    donating = nx.jit(lambda p: p["w"][1].mean + p["w"][0] + p["w"][1].other, donate_argnames=path)
    assert donating({"w": [first, Moments(second, third)]}).tolist() == [6.0]
    assert [x.is_released() for x in (first, second, third)] == [False, True, False]


MARKS = ["static_argnums", "static_argnames", "donate_argnums", "donate_argnames"]


@pytest.mark.parametrize("option", MARKS)
def test_argument_marks_must_be_positions_or_names(option):
    is_position = option.endswith("argnums")
    for none in (None, (), [], iter(())):
        assert nx.jit(lambda x, y: x - y, **{option: none})(3.0, 1.0).item() == 2.0
        if option.startswith("static"):
            assert nx.debug_expr(lambda x: x, **{option: none})(1.0).op_counts() == {"parameter": 1}
    for wrong in ("x", ["x"], 1.5, [0, None]) if is_position else (0, ["x", 0], 1.5, [None]):
        with pytest.raises(nx.ArgumentError, match=f"jit: {option}: must be a .* or several; got "):
            nx.jit(lambda x: x, **{option: wrong})
    if is_position:
        for wrong in (-3, 2, [0, 5]):
            number = wrong if isinstance(wrong, int) else 5
            with pytest.raises(nx.ArgumentError, match=f"must be below 2, .*; got {number}$"):
                nx.jit(lambda x, y: x, **{option: wrong})


def test_errors_of_donated_tensors_name_the_call(device):
    def update(state):
        return state + 1

    (state,) = tensors_on(device, [1.0, 2.0])
    copied = state.to_device(device, copy=True)
    new = nx.jit(update, donate_argnums=0)(state)
    line = sys._getframe().f_lineno - 1
    uses = [
        state.tolist,
        state.item,
        state.block_until_ready,
        lambda: np.asarray(state),
        lambda: state + 1,
        lambda: nx.jit(update)(state),
        lambda: state.to_device("host"),
        lambda: nx.sum(state, axis=0),
    ]
    for use in uses:
        with pytest.raises(nx.DeviceError, match="donated to update, called at") as raised:
            use()
        assert f"test_devices.py:{line}" in str(raised.value)
    assert state.is_released()
    assert "released" in repr(state)
    assert (state.shape, state.dtype, state.device) == ((2,), nx.float32, device)
    assert (copied.tolist(), new.tolist()) == ([1.0, 2.0], [2.0, 3.0])
    assert not state.deallocate()


def test_unusable_donations_raise_or_warn_on_request(device):
    def total(params, x):
        return nx.sum(params["w"] + x)

    (x,) = tensors_on(device, [1.0, 2.0])
    quiet = nx.jit(total, donate_argnums=0)
    assert quiet({"w": x, "b": 1.0}, 1.0).item() == 5.0
    wanted = r"argument 0\['b'\] \(f32\), argument 0\['w'\] \(f32\[2\]\)"
    options = {"donate_argnums": 0, "device": device}
    with pytest.raises(nx.ArgumentError, match=wanted):
        nx.jit(total, on_unusable_donation="raise", **options)({"w": nx.ones(2), "b": 1.0}, 1.0)
    with pytest.warns(UserWarning, match="donated without effect"):
        nx.jit(total, on_unusable_donation="warn", **options)({"w": nx.ones(2), "b": 1.0}, 1.0)
    usable = nx.jit(lambda x: x * 2, on_unusable_donation="raise", **options)
    assert usable(nx.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(nx.ArgumentError, match="on_unusable_donation: must be"):
        nx.jit(total, on_unusable_donation="log")


def test_host_tensors_are_not_donated():
    x = nx.ones(5000)
    assert nx.jit(lambda x: x + 1, donate_argnums=0, compiler="xla")(x).tolist() == [2.0] * 5000
    assert (
        nx.jit(lambda x: x + 1, donate_argnums=0, compiler="evaluator")(x).tolist() == [2.0] * 5000
    )
    assert x.tolist() == [1.0] * 5000
