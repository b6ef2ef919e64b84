"""Tensors and arrays of JAX, Optax, PyTorch and packages with the protocols of NumPy."""

import numpy as np
import pytest

import nxla as nx
from nxla import _core

#: The names of dtypes in JAX, by the names in nxla. JAX narrows 64 bits by default.
JAX = {
    "pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int32",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint32",
    "f8_e5m2": "float8_e5m2", "f8_e4m3fn": "float8_e4m3fn", "bf16": "bfloat16",
    "f16": "float16", "f32": "float32", "f64": "float32", "c64": "complex64", "c128": "complex64",
}  # fmt: skip


@pytest.mark.parametrize("backend", ["host", "xla"])
@pytest.mark.parametrize(("dtype", "name"), JAX.items())
def test_jax_reads_tensors_of_all_dtypes(dtype, name, backend):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    x = nx.tensor([0, 1, 1], dtype)
    if backend == "xla":
        x = nx.jit(lambda x: x, compiler="xla")(x)
    for result in (jax.numpy.asarray(x), jax.numpy.array([x, x])[1], jax.numpy.ones_like(x) * x):
        assert (str(result.dtype), result.shape) == (name, (3,))
        assert np.asarray(result).astype("c16").tolist() == [0.0, 1.0, 1.0]
    if x.dtype.name not in ("s64", "u64", "f64", "c128"):
        assert jax.numpy.zeros(2, x.dtype).dtype == name
    back = nx.asarray(jax.numpy.asarray(x))
    assert back.dtype == nx.zeros(1, name).dtype
    assert nx.astype(back, "c128").tolist() == [0.0, 1.0, 1.0]


def test_numpy_dtype_of_a_tensor():
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    for dtype in (x for x in vars(_core).values() if isinstance(x, _core.DType)):
        assert np.dtype(nx.zeros(2, dtype)) == np.asarray(nx.zeros(2, dtype)).dtype


@pytest.mark.parametrize("name", ["int2", "int4", "uint2", "uint4"])
def test_packed_integers_of_ml_dtypes_keep_their_values(name):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    dtype = getattr(ml_dtypes, name)
    limits = ml_dtypes.iinfo(dtype)
    array = np.arange(limits.min, limits.max + 1).astype(dtype).reshape(2, -1)
    for value in (array, array.T, array[:, ::-1], array[0, 0], array[:0]):
        for result in (nx.tensor(value), nx.asarray(value), nx.jit(lambda x: x)(value)):
            assert (result.dtype, result.shape) == (getattr(nx, name), value.shape)
            assert result.tolist() == value.astype("i4").tolist()


class _WithInterface:
    """An object that only has the array interface, as an image of Pillow."""

    dtype = "not a dtype of NumPy"

    def __init__(self, array):
        self._array = array

    @property
    def __array_interface__(self):
        return self._array.__array_interface__


@pytest.mark.parametrize("dtype", ["bool", "u1", "i2", ">i4", "f2", ">f8", "c8"])
def test_objects_with_array_interface_become_tensors(dtype):
    array = np.arange(6).astype(dtype).reshape(2, 3)
    for expected in (array, array.T, array[0, 1]):
        value = _WithInterface(expected)
        for result in (nx.tensor(value), nx.asarray(value), nx.jit(lambda x: x)(value)):
            assert (result.dtype, result.shape) == (nx.tensor(expected).dtype, expected.shape)
            assert result.tolist() == expected.tolist()
    with pytest.raises(nx.DTypeError, match="value: dtype must exist in nxla"):
        nx.tensor(_WithInterface(np.array(["text"])))
    writable = np.zeros(2000)
    result = nx.asarray(_WithInterface(writable))
    writable[0] = 1.0
    assert result[0].item() == 0.0


def test_jax_function_of_a_traced_value_raises():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    with pytest.raises(nx.TraceError, match="traced"):
        nx.jit(lambda x: jax.numpy.asarray(x))(1.0)


def test_optax_updates_parameters_of_nxla():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    optax = pytest.importorskip("optax", reason="optax is not installed")
    parameters = {"w": nx.full((2, 3), 2.0), "b": nx.zeros(3)}
    gradient = nx.jit(nx.grad(lambda p: nx.sum((p["w"] - 1.0) ** 2) + nx.sum((p["b"] - 1.0) ** 2)))
    optimizer = optax.sgd(0.25)
    state = optimizer.init(parameters)
    for _ in range(3):
        slopes = jax.tree.map(jax.numpy.asarray, gradient(parameters))
        updates, state = optimizer.update(slopes, state)
        parameters = optax.apply_updates(parameters, updates)
    # Each step halves the distance from 1.
    np.testing.assert_allclose(parameters["w"], np.full((2, 3), 1 + 1 / 8))
    np.testing.assert_allclose(parameters["b"], np.full(3, 1 - 1 / 8))


@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "u8", "bf16", "f16", "c64", "pred"])
def test_torch_reads_tensors(dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = nx.tensor([[0, 1, 1]], dtype)
    for result in (torch.asarray(x), torch.from_dlpack(x)):
        assert tuple(result.shape) == (1, 3)
        assert nx.asarray(result).dtype == x.dtype
        assert nx.asarray(result).tolist() == x.tolist()
