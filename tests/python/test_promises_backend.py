"""Promises of a backend, with one test for each promise."""

import re

import numpy as np
import pytest

import nxla as nx
from where import PLATFORM


@pytest.fixture(scope="module")
def other(device):
    """A device of another client."""
    if PLATFORM != "cpu":
        pytest.skip("only plugins for CPUs make several devices of one")
    options = {"compiler": "xla", "cpu_device_count": 2, "device": 1}
    found = nx.jit(lambda x: x, **options)(1.0).device
    assert found.client != device.client
    return found


def misses():
    return nx.cache_report()["misses"]


def test_options_select_client_and_device(device, other):
    assert nx.ones(2, device=other).device == other
    assert nx.jit(lambda x: x, compiler="xla", cpu_device_count=2, device=1)(1.0).device == other
    with pytest.raises(TypeError, match="fraction"):
        nx.ones(2, device=device, fraction=0.5)
    with pytest.raises(nx.OptionError, match="fraction"):
        nx.jit(lambda x: x, compiler="xla", fraction=2)(1.0)
    with pytest.raises(nx.OptionError, match=r"device: index: must be below .*; got 9"):
        nx.jit(lambda x: x, compiler="xla", device=9)(1.0)


def test_results_are_asynchronous_and_reading_blocks(device):
    x = nx.full((300, 300), 0.001, device=device)
    slow = nx.jit(lambda x: nx.fori(0, 50, lambda i, y: nx.tanh(y @ x), x))
    result = slow(x) + 1
    assert result.block_until_ready().is_ready()
    np.testing.assert_allclose(result.numpy(), 1.0, atol=0.1)


def test_constant_is_created_on_the_device(device, other):
    for where in (device, other):
        sent = nx.transfer_report()["sent"]
        result = nx.full((1000,), 7, dtype="s16", device=where)
        assert result.device == where
        assert result.dtype == "s16"
        # At most one number is sent.
        assert nx.transfer_report()["sent"] - sent <= 8
        assert result.numpy().tolist() == [7] * 1000


def test_from_binary_copies_to_the_device(device, other):
    for where in ("host", device, other):
        result = nx.from_binary(bytes([1, 0, 2, 0]), "u16", device=where)
        assert result.device == where
        assert result.tolist() == [1, 2]


def test_to_binary_reads_no_more_than_its_limit(device):
    data = np.arange(10_000, dtype="int32")
    x = nx.tensor(data, device=device).block_until_ready()
    read = nx.transfer_report()["read"]
    assert nx.to_binary(x, limit=3) == data[:3].tobytes()
    assert nx.transfer_report()["read"] - read == 12
    assert nx.to_binary(x, limit=0) == b""
    assert nx.to_binary(x) == data.tobytes()
    assert nx.to_binary(x, limit=20_000) == data.tobytes()
    assert nx.to_binary(nx.tensor(data), limit=2) == data[:2].tobytes()
    with pytest.raises(nx.ArgumentError, match="limit: must be at least 0; got -1"):
        nx.to_binary(x, limit=-1)


def test_copy_on_the_same_device_is_independent(device):
    x = nx.tensor([1.0, 2.0], device=device)
    copy = x.to_device(device, copy=True)
    assert copy.device == device
    assert x.deallocate()
    assert copy.tolist() == [1.0, 2.0]


def test_copies_to_other_devices_and_clients(device, other):
    sibling = nx.jit(lambda x: x, compiler="xla", cpu_device_count=2, device=0)(1.0).device
    assert sibling.client == other.client
    assert sibling != other
    for start, end in ((sibling, other), (device, other), (other, device)):
        x = nx.tensor([1.0, 2.0], device=start)
        copy = x.to_device(end)
        assert (x.device, copy.device) == (start, end)
        assert x.tolist() == copy.tolist() == [1.0, 2.0]


def test_copy_to_the_host_backend(device):
    x = nx.tensor([1.0, 2.0], device=device)
    assert x.to_device("host").device == "host"
    np.testing.assert_array_equal(np.from_dlpack(x.to_device("host")), [1.0, 2.0])


def test_transfer_to_the_same_device_is_a_no_op(device):
    x = nx.tensor([1.0, 2.0], device=device)
    assert x.transfer_to(device) is x
    assert not x.is_released()


def test_transfer_frees_the_source(device, other):
    for where in ("host", other):
        x = nx.tensor([1.0, 2.0], device=device)
        moved = x.transfer_to(where)
        assert moved.device == where
        assert moved.tolist() == [1.0, 2.0]
        assert x.is_released()


def test_failed_transfer_frees_the_source(device):
    def fail(values):
        raise ValueError("no")

    broken = nx.jit(lambda x: nx.runtime_call(fail, nx.template(()), x), compiler="xla")
    with pytest.raises(ValueError, match="no"):
        broken(nx.tensor(1.0, device=device))
    x = nx.tensor([1.0, 2.0], device=device)
    x.deallocate()
    with pytest.raises(nx.DeviceError, match="deallocated or donated"):
        x.transfer_to("host").tolist()
    assert x.is_released()


def test_tensors_that_share_memory_are_transferred_together(device, other):
    for where in ("host", other, device):
        x = nx.tensor([[1.0, 2.0]], device=device)
        container = {
            "w": x,
            "tied": [x, x],
            "named": nx.rename(x, ("a", "b")),
            "entries": nx.vectorize(x, "v"),
            "own": nx.tensor([3.0], device=device),
            "host": nx.tensor([4.0], device="host"),
        }
        moved = nx.backend_transfer(container, where)
        assert {leaf.device for leaf in nx.tree.leaves(moved)} == {nx.Device(str(where))}
        assert moved["w"].tolist() == moved["tied"][1].tolist() == [[1.0, 2.0]]
        assert (moved["named"].names, moved["named"].tolist()) == (["a", "b"], [[1.0, 2.0]])
        assert moved["entries"].vectorized_axes == (("v", 1),)
        assert nx.devectorize(moved["entries"]).tolist() == [[1.0, 2.0]]
        assert (moved["own"].tolist(), moved["host"].tolist()) == ([3.0], [4.0])
        assert x.is_released() == (where != device)


def test_deallocate_returns_whether_memory_was_freed(device):
    x = nx.tensor([1.0, 2.0], device=device)
    assert (x.deallocate(), x.deallocate()) == (True, False)
    assert nx.tensor([1.0, 2.0]).deallocate() is False


def test_a_released_tensor_is_not_ready(device):
    x = nx.tensor([1.0, 2.0], device=device)
    x.deallocate()
    for read in (x.is_ready, x.block_until_ready, x.tolist, x.numpy):
        with pytest.raises(nx.DeviceError, match="deallocated or donated"):
            read()


@pytest.mark.parametrize("where", ["host", "device"])
def test_batches_are_lazy_and_share_one_program(device, where):
    x = nx.reshape(nx.arange(2 * 67 * 3), (2 * 67, 3)).to_device(
        device if where == "device" else "host"
    )
    batches = nx.to_batched(x, 4, leftover="discard")
    before = misses()
    first = next(batches)
    compiled = misses() - before
    assert first.device == x.device
    assert first.shape == (4, 3)
    remaining = list(batches)
    assert misses() - before == compiled == 1
    expected = x.numpy()[:132].reshape(33, 4, 3)
    np.testing.assert_array_equal([batch.numpy() for batch in [first, *remaining]], expected)


def test_partial_batches_are_padded_or_discarded(device):
    x = nx.arange(5, device=device)
    repeated = list(nx.to_batched(x, 2))
    assert [batch.tolist() for batch in repeated] == [[0, 1], [2, 3], [4, 0]]
    assert all(batch.device == device for batch in repeated)
    discarded = nx.to_batched(x, 2, leftover="discard")
    assert [batch.tolist() for batch in discarded] == [[0, 1], [2, 3]]


def test_repr_names_the_device_and_reads_printed_elements(device):
    x = nx.tensor(np.arange(10_000, dtype="float32"), device=device).block_until_ready()
    read = nx.transfer_report()["read"]
    text = repr(x)
    assert nx.transfer_report()["read"] - read <= 4 * 64
    lines = text.splitlines()
    assert lines[1] == "  f32[10000]"
    assert re.fullmatch(rf"  {re.escape(device.name)}, buffer 0x[0-9a-f]+", lines[2])
    assert lines[3].startswith("  [0.0, 1.0, ")
    assert lines[3].endswith(", ..., 9997.0, 9998.0, 9999.0]")
    assert repr(x) == text
    # A tensor on the host is printed without the line of the device.
    assert [*lines[:2], *lines[3:]] == repr(x.to_device("host")).splitlines()
    assert repr(nx.vectorize(nx.ones((2, 2), device=device), "v")).splitlines()[1:3] == [
        "  vectorized[v: 2]",
        "  f32[2]",
    ]


def test_repr_of_a_released_tensor(device):
    x = nx.ones(3, device=device)
    nx.jit(lambda x: x + 1, donate_argnums=0)(x)
    y = nx.ones(3, device=device)
    y.deallocate()
    for released in (x, y):
        assert repr(released).splitlines()[-2:] == ["  released", ">"]


def test_traced_slice_starts_share_one_program(device):
    x = nx.arange(10, device=device)
    nx.slice_along_axis(x, nx.tensor(0), 2)
    before = misses()
    for start in range(8):
        assert nx.slice(x, [nx.tensor(start)], [2]).tolist() == [start, start + 1]
        nx.put_slice(x, [nx.tensor(start)], [7, 7])
    assert misses() - before <= 2


def test_operands_select_the_client(device, other):
    host = nx.ones(2)
    for where in (device, other):
        x = nx.ones(2, device=where)
        assert (host + x).device == (x + host).device == where
    assert (host + host).device == "host"


def test_device_option_overrides_operands(device, other):
    x = nx.ones(2, device=device)
    assert nx.jit(lambda x: x + 1, device=other)(x).device == other
    with nx.default_options(device=other):
        assert (x + 1).device == other


def test_on_conflict_force_runs_inside_a_trace(device):
    x = nx.ones(2, device=device)
    inner = nx.jit(lambda y: y * 3, on_conflict="force")
    assert nx.jit(lambda y: y + inner(x))(nx.zeros(2)).device == device


def test_block_runs_as_one_program(device):
    x = nx.tensor([[2.0, 1.0], [1.0, 3.0]], device=device)
    before = misses()
    q, r = nx.linalg.qr(x)
    assert misses() - before <= 1
    assert (q.device, r.device) == (device, device)
    np.testing.assert_allclose((q @ r).numpy(), x.numpy(), rtol=1e-5)


def test_a_copy_survives_the_release_of_the_original(device):
    computed = nx.jit(lambda x: x + 1, compiler="xla")(nx.device_put(nx.ones(3), device))
    for copy in (
        lambda x: x.copy(),
        lambda x: nx.asarray(x, copy=True),
        lambda x: nx.tensor(x, copy=True),
        lambda x: nx.device_put(x, device, copy=True),
        lambda x: nx.backend_copy([x], device)[0],
    ):
        original = nx.device_put(computed, device, copy=True)
        copied = copy(original)
        assert copied.device == original.device
        assert original.deallocate()
        assert copied.tolist() == [2.0, 2.0, 2.0]


def test_containers_are_copied_transferred_and_deallocated(device):
    tree = {"w": nx.ones(2), "b": [nx.zeros(3)]}
    on_device = nx.device_put(tree, device)
    copied = nx.backend_copy(on_device)
    assert [leaf.device.name for leaf in nx.tree.leaves(copied)] == ["host", "host"]
    back = nx.backend_transfer(on_device)
    assert back["b"][0].tolist() == [0.0, 0.0, 0.0]
    assert all(leaf.is_released() for leaf in nx.tree.leaves(on_device))
    on_device = nx.device_put(tree, device)
    assert nx.backend_deallocate(on_device) is True
    assert nx.backend_deallocate(on_device) is False
    assert all(leaf.is_released() for leaf in nx.tree.leaves(on_device))


def test_print_options_hide_the_device(device):
    x = nx.tensor(np.arange(60, dtype="float32"), device=device)
    shown = repr(x)
    with nx.set_print_options(device=False):
        hidden = repr(x)
        assert hidden == repr(x.to_device("host"))
        assert "buffer" not in hidden
        with nx.set_print_options(precision=1, device=True):
            assert "buffer" in repr(x)
        vectors = repr(nx.vectorize(nx.ones((2, 2), device=device), "v"))
        assert "buffer" not in vectors
        assert vectors.splitlines()[1:3] == ["  vectorized[v: 2]", "  f32[2]"]
        with nx.set_print_options(precision=1):
            assert "buffer" not in repr(x)
    assert repr(x) == shown
    with pytest.raises(nx.ArgumentError, match="device: must be True or False; got 1"):
        nx.set_print_options(device=1)


def test_client_option_selects_the_device(device, other):
    for client, number in [(device.client, 0), (other.client, 0), (other.client, 1)]:
        options = {"client": client, "device": number}
        found = nx.jit(lambda x: x + 1, **options)(1.0).device
        assert (found.client, found.index) == (client, number)
        with nx.default_options(**options):
            assert nx.to_backend() == found
            assert (nx.tensor(1.0) + 1).device == found
    assert nx.jit(lambda x: x + 1, client=device.client)(1.0).device == device
    assert nx.jit(lambda x: x + 1, client="host")(1.0).device == "host"
    assert nx.device_put([1.0], client=device.client)[0].device == device
    assert nx.backend_copy(nx.ones(2), client=device.client).device == device
    assert nx.backend_transfer({"x": nx.ones(2)}, client=device.client)["x"].device == device
    with pytest.raises(nx.OptionError, match=r'client: must be one of .*; got "nowhere"'):
        nx.jit(lambda x: x, client="nowhere")
    with pytest.raises(nx.OptionError, match="must be the client of"):
        nx.jit(lambda x: x, client="nowhere", device=str(device))
    with pytest.raises(nx.OptionError, match="must be the name of a client"):
        nx.jit(lambda x: x, client=3)
    with pytest.raises(nx.ArgumentError, match="must not both be given"):
        nx.device_put(1.0, "host", client="host")


@pytest.mark.parametrize("number", [99, -1])
def test_invalid_device_index_of_a_client_raises(device, number):
    for client in ("host", device.client):
        options = {"client": client, "device": number}
        for make in (
            lambda options=options: nx.jit(lambda x: x, **options),
            lambda options=options: nx.compile(lambda x: x, [1.0], **options),
            lambda options=options: nx.default_options(**options),
            lambda options=options: nx.to_backend(**options),
        ):
            with pytest.raises(nx.OptionError, match=f'must be one of .*; got "{client}:{number}"'):
                make()
    assert nx.jit(lambda x: x, client="host", device=0)(1.0).device == "host"
    with pytest.raises(nx.OptionError, match="device: must be an integer; got true"):
        nx.jit(lambda x: x, client="host", device=True)
