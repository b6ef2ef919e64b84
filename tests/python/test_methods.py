"""Methods, positional arguments, and the array object of the Array API standard."""

import inspect

import numpy as np
import pytest

import nxla as nx
from nxla import _core, _methods
from where import DEVICE

X = np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]], dtype=np.float32)

CALLS = {
    "all": lambda x: x.all(1),
    "any": lambda x: x.any(axis=0),
    "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(),
    "argsort": lambda x: x.argsort(0),
    "astype": lambda x: x.astype(np.int32),
    "clip": lambda x: x.clip(0, 2),
    "conj": lambda x: x.conj(),
    "copy": lambda x: x.copy(),
    "cumprod": lambda x: x.cumprod(0),
    "cumsum": lambda x: x.cumsum(1),
    "diagonal": lambda x: x.diagonal(1),
    "dot": lambda x: x.dot(x.T),
    "flatten": lambda x: x.flatten(),
    "max": lambda x: x.max(0),
    "mean": lambda x: x.mean((0, 1), keepdims=True),
    "min": lambda x: x.min(axis=-1),
    "prod": lambda x: x.prod(),
    "ravel": lambda x: x.ravel(),
    "repeat": lambda x: x.repeat(2, 1),
    "reshape": lambda x: x.reshape(3, -1),
    "round": lambda x: x.round(0),
    "squeeze": lambda x: x[:1].squeeze(0),
    "std": lambda x: x.std(0),
    "sum": lambda x: x.sum(0),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "take": lambda x: x.take(np.array([0, -1]), 1),
    "trace": lambda x: x.trace(),
    "transpose": lambda x: x.transpose(1, 0),
    "var": lambda x: x.var(),
}

#: Methods that return indices: s32 here, and int64 in NumPy.
INDICES = {"argmax", "argmin", "argsort"}


@pytest.mark.parametrize("name", CALLS)
def test_methods_match_numpy(compiler, name):
    expected = CALLS[name](X)
    with nx.default_options(compiler=compiler):
        for found in (CALLS[name](nx.tensor(X)), nx.jit(CALLS[name])(X)):
            assert found.shape == expected.shape
            assert found.dtype == (np.int32 if name in INDICES else expected.dtype)
            assert np.allclose(found.numpy(), expected, rtol=1e-6)


def test_every_method_is_called():
    listed = {name for name in _methods.METHODS if not name.startswith("__")}
    assert listed - set(CALLS) == {"nonzero", "sort"}


def test_methods_that_differ_from_numpy():
    x = nx.tensor(X)
    # The method returns a new tensor.
    assert x.sort(0).tolist() == np.sort(X, 0).tolist()
    assert x.tolist() == X.tolist()
    assert [axis.tolist() for axis in (x > 2).nonzero()] == [[0, 1], [0, 2]]
    assert x.reshape((6,)).shape == x.reshape(6).shape == (6,)
    assert nx.zeros((2, 3, 4)).transpose().shape == (4, 3, 2)
    assert nx.zeros((2, 3, 4)).transpose((0, 2, 1)).shape == (2, 4, 3)


def test_attributes_match_numpy(compiler):
    z = np.array([[[1 + 2j, 3 - 1j]]], dtype=np.complex64)
    with nx.default_options(compiler=compiler):
        for read in (lambda f: f(nx.tensor(z)), lambda f: nx.jit(f)(z)):
            assert read(lambda x: x.real).tolist() == z.real.tolist()
            assert read(lambda x: x.imag).tolist() == z.imag.tolist()
            assert read(lambda x: x.mT).shape == (1, 2, 1)
            assert read(lambda x: x.T).shape == (2, 1, 1)
    assert nx.zeros((2, 3)).itemsize == 4


def test_tensor_and_expr_document_every_method():
    for owner in (nx.Tensor, nx.Expr):
        for name, function in _methods.METHODS.items():
            method = getattr(owner, name)
            assert inspect.signature(method) == inspect.signature(function)
            assert method.__doc__
        for name in _methods.PROPERTIES:
            assert isinstance(inspect.getattr_static(owner, name), property)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda: nx.sum(X, 0), lambda: np.sum(X, 0)),
        (lambda: nx.sum(X, 0, "f64"), lambda: np.sum(X, 0, "f8")),
        (lambda: nx.mean(X, 1), lambda: np.mean(X, 1)),
        (lambda: nx.std(X, 1), lambda: np.std(X, 1)),
        (lambda: nx.argmax(X, 1), lambda: np.argmax(X, 1).astype(np.int32)),
        (lambda: nx.sort(X, 0), lambda: np.sort(X, 0)),
        (lambda: nx.median(X, 0), lambda: np.median(X, 0)),
        (lambda: nx.zeros((2, 3), "f64"), lambda: np.zeros((2, 3), "f8")),
        (lambda: nx.ones(3, nx.int8), lambda: np.ones(3, np.int8)),
        (lambda: nx.full(3, 2, "s16"), lambda: np.full(3, 2, np.int16)),
        (lambda: nx.zeros_like(X, "s32"), lambda: np.zeros_like(X, np.int32)),
        (lambda: nx.arange(1, 7, 2, "s64"), lambda: np.arange(1, 7, 2, np.int64)),
        (lambda: nx.linspace(0, 1, 4, False), lambda: np.linspace(0, 1, 4, False, dtype="f4")),
        (lambda: nx.eye(2, 3, 1, "s32"), lambda: np.eye(2, 3, 1, np.int32)),
        (lambda: nx.concat([X, X], 1), lambda: np.concatenate([X, X], 1)),
        (lambda: nx.stack([X, X], 1), lambda: np.stack([X, X], 1)),
        (lambda: nx.expand_dims(X, 1), lambda: np.expand_dims(X, 1)),
        (lambda: nx.flip(X, 1), lambda: np.flip(X, 1)),
        (lambda: nx.roll(X, 1, 0), lambda: np.roll(X, 1, 0)),
        (lambda: nx.repeat(X, 2, 0), lambda: np.repeat(X, 2, 0)),
        (lambda: nx.take(X, [1], 0), lambda: np.take(X, [1], 0)),
        (lambda: nx.diff(X, 2), lambda: np.diff(X, 2)),
        (lambda: nx.diff(X, 1, 0), lambda: np.diff(X, 1, 0)),
        (lambda: nx.tril(X, -1), lambda: np.tril(X, -1)),
        (lambda: nx.cumulative_sum(X, 0), lambda: np.cumsum(X, 0)),
        (lambda: nx.linalg.norm(X, 1, 0), lambda: np.linalg.norm(X, 1, 0)),
        (lambda: nx.linalg.trace(X, 1), lambda: np.trace(X, 1)),
        (lambda: nx.asarray(X, "f64"), lambda: np.asarray(X, "f8")),
        (lambda: nx.tensordot(X, X.T, 1), lambda: np.tensordot(X, X.T, 1)),
        (lambda: nx.fft.fft(X, 4, 0), lambda: np.fft.fft(X, 4, 0).astype("c8")),
    ],
)
def test_positional_arguments_match_numpy(ours, theirs):
    found, expected = ours(), theirs()
    assert found.dtype == expected.dtype
    assert np.allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_array_namespace():
    x = nx.ones(2)
    assert x.__array_namespace__() is nx
    assert x.__array_namespace__(api_version="2023.12") is nx
    assert nx.jit(lambda x: x.__array_namespace__().sum(x))(x).item() == 2
    with pytest.raises(nx.ArgumentError, match=r"1999\.1"):
        x.__array_namespace__(api_version="1999.1")
    assert nx.__array_api_version__ in ("2024.12", "2025.12")


def test_array_namespace_info():
    info = nx.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert info.default_device() == nx.zeros(1).device
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == nx.zeros(1).dtype
    assert info.default_dtypes(device="host")["indexing"] == nx.argmax([1]).dtype
    assert info.dtypes()["bool"] == nx.bool
    integers = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    assert set(info.dtypes(kind="integral")) == integers
    assert list(info.dtypes(kind=("bool", "real floating"))) == ["bool", "float32", "float64"]
    with nx.default_options(device=DEVICE):
        assert info.default_device() == DEVICE
    with pytest.raises(nx.ArgumentError):
        info.dtypes(kind="imaginary")


def test_devices_of_the_array_api_standard():
    x = nx.ones(2)
    assert x.to_device(x.device, stream=None).tolist() == [1.0, 1.0]
    with pytest.raises(nx.ArgumentError, match="stream"):
        x.to_device("host", stream=3)
    moved = nx.astype(x, "f64", device=DEVICE)
    assert (moved.device, moved.dtype) == (DEVICE, nx.float64)
    assert nx.fft.fftfreq(4, device=DEVICE).device == DEVICE
    # A traced value reports the device on which its program runs.
    like = nx.jit(lambda x: nx.zeros(2, device=x.device) + x.to_device(x.device))
    assert like(x).tolist() == [1.0, 1.0]


#: Public attributes of tensors that traced values do not have.
UNTRACED = sorted(
    name for name in dir(nx.Tensor) if not name.startswith("_") and not hasattr(_core.Expr, name)
)


@pytest.mark.parametrize("name", UNTRACED)
def test_attributes_without_traced_form_raise_trace_error(name):
    seen = []

    def f(x):
        seen.append(hasattr(x, name))
        return getattr(x, name)

    for transform in (nx.jit, nx.grad, nx.vmap):
        with pytest.raises(nx.TraceError, match=f"a traced value has no attribute '{name}', bec"):
            transform(f)(nx.ones(2))
    # Other libraries look for attributes with `hasattr`.
    assert seen == [False] * 3
    assert "numpy" in UNTRACED


@pytest.mark.parametrize("name", ["device_put", "backend_copy", "backend_transfer"])
@pytest.mark.parametrize("transform", [nx.jit, nx.grad, nx.vmap])
def test_traced_values_do_not_move_between_devices(name, transform):
    for arguments in ((), ("host",)):
        with pytest.raises(nx.TraceError, match=f"^{name}: container: must not be traced, because"):
            transform(lambda x: getattr(nx, name)({"x": x}, *arguments)["x"])(nx.ones(2))  # noqa: B023


@pytest.mark.parametrize("axes", [0, 1, (1, 0), (-1, 0), ([1], 0), (1, (0,)), ([0, 1], [1, 0])])
def test_tensordot_accepts_axes_like_numpy(axes):
    expected = np.tensordot(X, X.T, axes)
    np.testing.assert_allclose(nx.tensordot(X, X.T, axes), expected, rtol=1e-6)


@pytest.mark.parametrize("axes", [1.5, (1,), (0, 1, 2), None, "ab", {0: 1}])
def test_tensordot_rejects_invalid_axes(axes):
    with pytest.raises(nx.ArgumentError, match="tensordot: axes: must be an int, or the axes of"):
        nx.tensordot(X, X.T, axes)


def test_matrix_transpose_requires_two_axes():
    for transpose in (lambda x: x.mT, nx.matrix_transpose, nx.jit(lambda x: x.mT)):
        with pytest.raises(nx.ShapeError, match="matrix_transpose: x: must have at least 2 axes"):
            transpose(nx.ones(3))
