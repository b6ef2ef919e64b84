"""Memory of CUDA devices that tensors share with PyTorch and CuPy, and the rules for the host."""

import gc
import time

import numpy as np
import pytest

import nxla as nx
from where import DEVICE, PLATFORM

CPU, CUDA = 1, 2

on_cuda = pytest.mark.skipif(PLATFORM != "cuda", reason="requires CUDA devices")

DTYPES = ["pred", "u8", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f32", "f64", "c64", "c128"]


@pytest.fixture
def torch():
    """Return PyTorch if it has a CUDA device."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA device")
    return torch


@pytest.fixture
def cupy():
    """Return CuPy if it has a CUDA device."""
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"cupy has no CUDA device: {error}")
    return cupy


def on_device(values, dtype=None):
    return nx.tensor(values, dtype, device=DEVICE)


def compute_on_device(size=4096):
    """Return a tensor that a program has computed on the device."""
    return nx.jit(lambda x: x * 2 + 1)(nx.arange(size, dtype="f32", device=DEVICE))


EXPECTED = np.arange(4096, dtype=np.float32) * 2 + 1


class Torch:
    """Calls of PyTorch."""

    def __init__(self, torch):
        self.torch = torch
        self.from_dlpack = torch.from_dlpack

    def array(self, values):
        return self.torch.asarray(values, device="cuda")

    @staticmethod
    def address(x):
        return x.data_ptr()

    @staticmethod
    def numpy(x):
        return x.cpu().numpy()

    @staticmethod
    def fill(x, value):
        x.fill_(value)

    def synchronize(self):
        self.torch.cuda.synchronize()


class Cupy:
    """Calls of CuPy."""

    def __init__(self, cupy):
        self.cupy = cupy
        self.from_dlpack = cupy.from_dlpack
        self.array = cupy.asarray

    @staticmethod
    def address(x):
        return x.data.ptr

    def numpy(self, x):
        return self.cupy.asnumpy(x)

    @staticmethod
    def fill(x, value):
        x.fill(value)

    def synchronize(self):
        self.cupy.cuda.Device().synchronize()


@pytest.fixture(params=["torch", "cupy"])
def library(request):
    """Return one of the libraries."""
    package = request.getfixturevalue(request.param)
    return Torch(package) if request.param == "torch" else Cupy(package)


# --- the host ---


def test_host_tensors_are_exported_from_the_host():
    x = nx.arange(3)
    assert x.__dlpack_device__() == (CPU, 0)
    for device in (None, (CPU, 0)):
        capsule = x.__dlpack__(max_version=(1, 0), dl_device=device)
        assert "dltensor_versioned" in repr(capsule)
    assert '"dltensor"' in repr(x.__dlpack__())


def test_host_tensors_are_not_exported_to_a_device():
    with pytest.raises(BufferError, match=r"dl_device: must be \(1, 0\), the host, or the device"):
        nx.arange(3).__dlpack__(dl_device=(CUDA, 0))


def test_cpu_devices_export_from_the_host(device):
    if device.platform != "cpu":
        pytest.skip("requires a CPU plugin")
    x = nx.arange(3, dtype="f32", device=device)
    assert x.__dlpack_device__() == (CPU, 0)
    np.testing.assert_array_equal(np.from_dlpack(x), [0, 1, 2])


class Stated:
    """An array that states a device."""

    def __init__(self, device):
        self.array, self.device = np.arange(3.0), device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream == (1 if self.device[0] == CUDA else None)
        return self.array.__dlpack__(max_version=max_version)


@pytest.mark.parametrize("kind", [3, 4, 7, 8, 10, 13])
def test_memory_of_other_platforms_is_refused(kind):
    with pytest.raises(nx.ArgumentError, match="must be in host memory; copy the data to the host"):
        nx.from_dlpack(Stated((kind, 0)))


def test_a_capsule_on_another_device_than_stated_is_refused():
    message = r"must be on device \(2, 7\), as __dlpack_device__ states; got \(1, 0\)"
    with pytest.raises(nx.ArgumentError, match=message):
        nx.from_dlpack(Stated((CUDA, 7)))


@pytest.mark.skipif(PLATFORM == "cuda", reason="requires a system without a CUDA device")
def test_a_missing_plugin_for_cuda_is_named():
    from nxla import plugins

    if plugins.find_for("cuda") is not None:
        pytest.skip("a plugin for CUDA is installed")

    class Pretended(Stated):
        def __dlpack__(self, **kwargs):
            from test_dlpack_capsules import Exporter

            self.exporter = Exporter(np.zeros(3, np.float32), 1, device_type=CUDA, device_id=7)
            return self.exporter.__dlpack__(**kwargs)

    pretended = Pretended((CUDA, 7))
    message = "got CUDA device 7, but no plugin for CUDA is installed; install a PJRT plugin"
    with pytest.raises(nx.OptionError, match=message):
        nx.from_dlpack(pretended)
    assert pretended.exporter.deleted == 1


@pytest.mark.parametrize("view", ["array", "exported"])
def test_donation_does_not_overwrite_shared_memory(view):
    """The program works on a copy, which it frees afterwards."""
    step = nx.jit(lambda x: x * 2, compiler="xla", donate_argnums=0)
    x = compute_on_device()
    # On CPUs the array is a view of the memory of the plugin.
    shared = np.asarray(x) if view == "array" else x.__dlpack__(max_version=(1, 0))
    np.testing.assert_array_equal(np.asarray(step(x)), EXPECTED * 2)
    if view == "array":
        np.testing.assert_array_equal(shared, EXPECTED)
    with pytest.raises(nx.DeviceError, match="was donated to"):
        x.__dlpack__()


# --- exports ---


@on_cuda
def test_other_libraries_read_the_same_memory(library):
    x = compute_on_device()
    assert x.__dlpack_device__() == (CUDA, 0)
    first, second = library.from_dlpack(x), library.from_dlpack(x)
    assert library.address(first) == library.address(second) != 0
    np.testing.assert_array_equal(library.numpy(first), EXPECTED)
    # Reading does not move the data.
    assert library.address(library.from_dlpack(x)) == library.address(first)


@on_cuda
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (3,), (2, 3, 4)])
def test_every_dtype_round_trips(library, dtype, shape):
    x = on_device(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2, dtype)
    array = library.from_dlpack(x)
    assert tuple(array.shape) == shape
    np.testing.assert_array_equal(library.numpy(array), x.numpy())
    for copy in (None, True, False):
        imported = nx.from_dlpack(array, copy=copy)
        assert (imported.device, imported.dtype, imported.shape) == (x.device, x.dtype, x.shape)
        np.testing.assert_array_equal(imported.numpy(), x.numpy())


@on_cuda
def test_bf16_round_trips(torch):
    x = on_device([0.5, -1.0, 3.0], "bf16")
    array = torch.from_dlpack(x)
    assert array.dtype == torch.bfloat16
    assert array.tolist() == x.tolist()
    assert nx.from_dlpack(array, copy=False).tolist() == x.tolist()
    assert nx.from_dlpack(array).dtype == nx.bfloat16


@on_cuda
def test_exported_memory_outlives_its_tensor(library):
    x = compute_on_device()
    array = library.from_dlpack(x)
    del x
    gc.collect()
    # Other programs would reuse freed memory.
    allocations = [(compute_on_device() * 0).block_until_ready() for _ in range(20)]
    np.testing.assert_array_equal(library.numpy(array), EXPECTED)
    assert len(allocations) == 20


@on_cuda
def test_exported_memory_outlives_a_deallocation(library):
    x = compute_on_device()
    array = library.from_dlpack(x)
    assert x.deallocate()
    allocations = [(compute_on_device() * 0).block_until_ready() for _ in range(20)]
    np.testing.assert_array_equal(library.numpy(array), EXPECTED)
    assert len(allocations) == 20
    with pytest.raises(nx.DeviceError, match="has been deallocated"):
        library.from_dlpack(x)


@on_cuda
def test_donation_does_not_change_exported_memory(library):
    step = nx.jit(lambda x: x * 2, donate_argnums=0)
    x = compute_on_device()
    array = library.from_dlpack(x)
    np.testing.assert_array_equal(step(x).numpy(), EXPECTED * 2)
    np.testing.assert_array_equal(library.numpy(array), EXPECTED)
    with pytest.raises(nx.DeviceError, match="was donated to"):
        library.from_dlpack(x)


@on_cuda
def test_memory_is_kept_until_queued_reads_are_complete(torch):
    """PyTorch drops the array while the kernel that reads it waits in a queue."""
    stream = torch.cuda.Stream()
    size = 1 << 22
    busy = torch.ones((4096, 4096), device="cuda")
    for _ in range(5):
        x = compute_on_device(size)
        with torch.cuda.stream(stream):
            for _ in range(8):
                busy = busy @ busy * 0
            total = (torch.from_dlpack(x) * 1).double().sum()
        del x
        # These programs would reuse the memory.
        allocations = [(compute_on_device(size) * 0).block_until_ready() for _ in range(4)]
        stream.synchronize()
        assert total.item() == float(size) * size
        assert len(allocations) == 4


@on_cuda
def test_consumers_of_the_older_struct_get_a_copy(torch):
    """The older struct has no flag that forbids writes."""
    x = compute_on_device()
    array = torch.utils.dlpack.from_dlpack(x.__dlpack__())
    assert array.data_ptr() != torch.from_dlpack(x).data_ptr()
    array.fill_(0)
    torch.cuda.synchronize()
    np.testing.assert_array_equal(x.numpy(), EXPECTED)


@on_cuda
def test_requested_copies_stay_on_the_device(torch):
    x = compute_on_device()
    copy = torch.utils.dlpack.from_dlpack(x.__dlpack__(max_version=(1, 0), copy=True))
    assert copy.is_cuda
    assert copy.data_ptr() != torch.from_dlpack(x).data_ptr()
    np.testing.assert_array_equal(copy.cpu().numpy(), EXPECTED)


@on_cuda
def test_device_tensors_are_exported_to_the_host():
    x = compute_on_device()
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), EXPECTED)
    with pytest.raises(BufferError, match="copy: must not be False"):
        x.__dlpack__(dl_device=(CPU, 0), copy=False)
    with pytest.raises(BufferError, match=r"dl_device: must be \(1, 0\), the host, or the device"):
        x.__dlpack__(dl_device=(CUDA, 99))


# --- imports ---


@on_cuda
def test_import_without_copy_shares_memory(library):
    array = library.array(EXPECTED)
    x = nx.from_dlpack(array, copy=False)
    assert x.device == DEVICE
    assert library.address(library.from_dlpack(x)) == library.address(array)
    np.testing.assert_array_equal(x.numpy(), EXPECTED)
    np.testing.assert_array_equal(nx.jit(lambda x: x + 1)(x).numpy(), EXPECTED + 1)
    # The tensor reads the memory of the array, for which the user has promised not to write to it.
    library.fill(array, 7)
    library.synchronize()
    assert set(x.tolist()) == {7.0}


@on_cuda
@pytest.mark.parametrize("copy", [None, True])
def test_later_writes_do_not_change_a_tensor(library, copy):
    array = library.array(EXPECTED)
    x = nx.from_dlpack(array, copy=copy)
    library.fill(array, -1)
    library.synchronize()
    assert x.device == DEVICE
    np.testing.assert_array_equal(x.numpy(), EXPECTED)
    assert library.address(library.from_dlpack(x)) != library.address(array)


@on_cuda
@pytest.mark.parametrize("copy", [None, False])
def test_imported_memory_outlives_its_array(library, copy):
    array = library.array(EXPECTED)
    x = nx.from_dlpack(array, copy=copy)
    del array
    gc.collect()
    allocations = [library.array(EXPECTED * 0) for _ in range(20)]
    library.synchronize()
    np.testing.assert_array_equal(x.numpy(), EXPECTED)
    assert len(allocations) == 20


@on_cuda
def test_shared_memory_is_returned(torch):
    gc.collect()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    array = torch.ones(1 << 20, device="cuda")
    x = nx.from_dlpack(array, copy=False)
    y = nx.jit(lambda x: x + 1)(x)
    del array, x
    y.block_until_ready()
    for _ in range(1000):
        gc.collect()
        if torch.cuda.memory_allocated() == before:
            break
        time.sleep(0.01)
    assert torch.cuda.memory_allocated() == before
    assert y[0].item() == 2.0


@on_cuda
def test_deallocating_a_tensor_does_not_free_the_array(library):
    array = library.array(EXPECTED)
    x = nx.from_dlpack(array, copy=False)
    assert x.deallocate()
    np.testing.assert_array_equal(library.numpy(array), EXPECTED)


@on_cuda
def test_donation_does_not_write_to_the_array(library):
    step = nx.jit(lambda x: x * 2, donate_argnums=0)
    array = library.array(EXPECTED)
    x = nx.from_dlpack(array, copy=False)
    np.testing.assert_array_equal(step(x).numpy(), EXPECTED * 2)
    np.testing.assert_array_equal(library.numpy(array), EXPECTED)


@on_cuda
@pytest.mark.parametrize("copy", [None, False])
def test_writes_of_a_side_stream_are_complete(torch, copy):
    stream = torch.cuda.Stream()
    busy = torch.ones((4096, 4096), device="cuda")
    torch.cuda.synchronize()
    for value in range(1, 6):
        with torch.cuda.stream(stream):
            for _ in range(8):
                busy = busy @ busy * 0
            array = torch.full((1 << 20,), float(value), device="cuda")
            x = nx.from_dlpack(array, copy=copy)
        assert nx.jit(nx.max)(x).item() == nx.jit(nx.min)(x).item() == value


@on_cuda
def test_writes_of_a_stream_of_cupy_are_complete(cupy):
    array = cupy.zeros(1 << 22, "float32")
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True):
        for value in range(1, 200):
            array.fill(value)
        x = nx.from_dlpack(array)
    assert nx.jit(nx.min)(x).item() == 199


@on_cuda
def test_computed_tensors_are_ready_on_every_stream(torch):
    slow = nx.jit(lambda x: nx.fori(0, 200, lambda _, y: nx.sin(y) + 1, x))
    for _ in range(3):
        y = slow(nx.ones(1 << 20, device=DEVICE))
        with torch.cuda.stream(torch.cuda.Stream()):
            read = torch.from_dlpack(y).double().sum().item()
        assert read == pytest.approx(float(nx.sum(y)), rel=1e-4)


@on_cuda
def test_noncontiguous_arrays_are_rejected(library):
    array = library.array(EXPECTED.reshape(64, 64)).T
    for copy in (None, True, False):
        with pytest.raises(
            nx.ArgumentError, match="must be in row-major order on a device; make a contiguous"
        ):
            nx.from_dlpack(array, copy=copy)


@on_cuda
def test_misaligned_memory_is_copied(library):
    array = library.array(EXPECTED)[1:]
    np.testing.assert_array_equal(nx.from_dlpack(array).numpy(), EXPECTED[1:])
    with pytest.raises(nx.ArgumentError, match="copy: must not be False for memory"):
        nx.from_dlpack(array, copy=False)


@on_cuda
def test_every_byte_except_zero_is_true(torch):
    array = torch.tensor([0, 1, 2, 255], dtype=torch.uint8, device="cuda").view(torch.bool)
    x = nx.from_dlpack(array)
    assert x.tolist() == [False, True, True, True]
    assert nx.astype(x, "u8").tolist() == [0, 1, 1, 1]


@on_cuda
def test_arrays_are_operands_and_arguments(library):
    array = library.array(EXPECTED)
    x = nx.asarray(array, "f64")
    assert (x.device, x.dtype) == (DEVICE, nx.float64)
    np.testing.assert_array_equal(x.numpy(), EXPECTED)
    total = nx.jit(lambda x: nx.sum(x), compiler="xla")(array)
    assert total.device == DEVICE
    assert total.item() == EXPECTED.sum()
    np.testing.assert_array_equal(nx.add(nx.tensor(1.0), array).numpy(), EXPECTED + 1)
    assert nx.from_dlpack(array, device="host").device == "host"


@on_cuda
def test_libraries_exchange_memory_in_a_loop(torch):
    """Steps of PyTorch and of nxla alternate, without a copy."""
    step = nx.jit(lambda x: x + 1)
    x = nx.zeros(1 << 16, device=DEVICE)
    for _ in range(50):
        array = torch.from_dlpack(step(x)) * 2
        x = nx.from_dlpack(array, copy=False)
        del array
    expected = np.float32(0)
    for _ in range(50):
        expected = np.float32(2) * (expected + np.float32(1))
    assert set(x.tolist()) == {float(expected)}


@on_cuda
@pytest.mark.parametrize("copy", [None, False])
def test_host_addresses_are_rejected(copy):
    from test_dlpack_capsules import Exporter

    class Pretended(Exporter):
        def __dlpack_device__(self):
            return (CUDA, 0)

        def __dlpack__(self, *, stream, max_version):
            return super().__dlpack__(max_version=max_version)

    memory = np.zeros(4096, np.float32)
    aligned = -memory.ctypes.data % 16 // 4
    pretended = Pretended(memory[aligned : aligned + 64], 1, device_type=CUDA, device_id=0)
    with pytest.raises(nx.DeviceError, match="address: must be on CUDA device 0"):
        nx.from_dlpack(pretended, copy=copy)
