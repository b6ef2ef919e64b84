"""Subscripts with the semantics of NumPy: reads, assignments, and updates."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

import nxla as nx
from where import DEVICE

SETTINGS = settings(max_examples=100, deadline=None)


@st.composite
def arrays_with_keys(draw, masks=True):
    """Return an array, and a key that NumPy accepts."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    indices = draw(st.sampled_from([(), (2,), (3,), (2, 1), (1, 3)]))
    items, axis = [], 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        size = shape[axis]
        kind = draw(st.sampled_from(["int", "slice", "array", "list", "mask"]))
        if kind == "int":
            items.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            bounds = st.none() | st.integers(-size - 1, size + 1)
            step = draw(st.none() | st.sampled_from([1, 2, -1, -2]))
            items.append(slice(draw(bounds), draw(bounds), step))
        elif kind == "mask" and masks:
            count = draw(st.sampled_from([n for n in (1, 2) if axis + n <= len(shape)]))
            # The number of true elements must broadcast with other indices.
            mask = np.zeros(shape[axis : axis + count], bool)
            mask.flat[draw(st.integers(0, mask.size - 1))] = True
            items.append(mask)
            axis += count - 1
        else:
            small = draw(st.integers(0, 1)) if indices else 0
            form = () if small else indices
            total = int(np.prod(form))
            numbers = draw(st.lists(st.integers(-size, size - 1), min_size=total, max_size=total))
            array = np.array(numbers, dtype=draw(st.sampled_from([np.int32, np.int64, np.int8])))
            items.append(array.reshape(form))
            if kind == "list" and form:
                items[-1] = items[-1].tolist()
        axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    key = tuple(items)
    try:
        x[key]
    except IndexError:
        # An ellipsis has moved an index to an axis that it does not fit.
        reject()
    return x, key


@SETTINGS
@given(arrays_with_keys())
def test_getitem_matches_numpy(case):
    x, key = case
    expected = x[key]
    found = nx.tensor(x)[key]
    assert found.shape == expected.shape
    assert np.array_equal(found.numpy(), expected)


@SETTINGS
@given(arrays_with_keys(masks=False))
# An ellipsis separates indices even if it covers no axis.
@example((np.zeros((1, 1, 1), np.float32), (None, 0, ..., np.array([0, 0]), 0)))
def test_getitem_with_traced_indices_matches_numpy(case):
    x, key = case
    positions = [index for index, item in enumerate(key) if isinstance(item, np.ndarray)]

    def read(x, *indices):
        items = list(key)
        for position, index in zip(positions, indices, strict=True):
            items[position] = index
        return x[tuple(items)]

    found = nx.jit(read)(nx.tensor(x), *(key[position] for position in positions))
    assert np.array_equal(found.numpy(), x[key])


@SETTINGS
@given(arrays_with_keys(), st.booleans())
def test_setitem_matches_numpy(case, whole):
    x, key = case
    ours, before = nx.tensor(x), nx.tensor(x)
    held = ours.at[...].get()
    # Values for the same element are equal, because the order of writes is unspecified.
    value = np.float32(7.5) if whole else (x[key] * 2 + 1).astype(np.float32)
    theirs = x.copy()
    theirs[key] = value
    ours[key] = value
    assert np.array_equal(ours.numpy(), theirs)
    assert np.array_equal(held.numpy(), before.numpy())


@pytest.mark.parametrize("name", ["add", "multiply", "min", "max"])
def test_updates_match_ufunc_at(compiler, name):
    ufunc = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}[name]
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=np.float32)
    keys = [
        (np.array([0, 2, 0, -1, 0]), np.array([1, 0, 1, 0, -1])),
        (np.array([1, 1, 1]),),
        (slice(None, None, -2), 1),
        (slice(0, 2),),
        (-1, None),
        (x > 2,),
        (Ellipsis,),
    ]
    for key in keys:
        shape = x[key].shape
        value = np.linspace(-3, 8, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        expected = x.copy()
        ufunc.at(expected, key, value)
        with nx.default_options(compiler=compiler):
            eager = getattr(nx.tensor(x).at[key], name)(value)
            assert np.allclose(eager.numpy(), expected, rtol=1e-6)
            if not any(np.asarray(item).dtype == bool for item in key):
                jitted = nx.jit(lambda x, v, key=key: getattr(x.at[key], name)(v))(x, value)
                assert np.allclose(jitted.numpy(), expected, rtol=1e-6)


def test_updates_keep_the_dtype_and_broadcast(compiler):
    with nx.default_options(compiler=compiler):
        x = nx.tensor([[1, 2], [3, 4]], "s8")
        assert x.at[0].set(2.9).tolist() == [[2, 2], [3, 4]]
        assert x.at[:, 0].add([10, 20]).dtype == nx.int8
        assert x.at[0].mul(3).tolist() == [[3, 6], [3, 4]]
        assert x.at[1, 1].get().item() == 4
        assert x.tolist() == [[1, 2], [3, 4]]


def test_negative_indices_count_from_the_end(compiler):
    x = nx.tensor([10, 20, 30])
    with nx.default_options(compiler=compiler):
        for call in (lambda f: f, nx.jit):
            minus = nx.tensor([-1, 0])
            assert call(lambda x, i: nx.take(x, i))(x, minus).tolist() == [30, 10]
            assert call(lambda x, i: x[i])(x, minus).tolist() == [30, 10]
            assert call(lambda x, i: x[i])(x, nx.tensor(-2)).item() == 20
            assert call(lambda x, i: x[i])(x, nx.tensor(-2, "s8")).item() == 20
            assert call(lambda x, i: nx.take_along_axis(x, i))(x, minus).tolist() == [30, 10]
            columns = nx.tensor([[-1], [1]])
            assert call(nx.gather)(x, columns).tolist() == [30, 20]
            put = call(lambda x, i: nx.indexed_put(x, i, [5, 6]))(x, columns)
            assert put.tolist() == [10, 6, 5]
            added = call(lambda x, i: nx.indexed_add(x, i, [5, 6]))(x, columns)
            assert added.tolist() == [10, 26, 35]
        assert x[[-1]].tolist() == [30]
        assert x[np.int64(-1)].item() == 30
        # An out-of-range index reads the nearest element, and a write to it is dropped.
        assert nx.take(x, [5, -9]).tolist() == [30, 10]
        assert nx.indexed_put(x, [[3], [-4]], [0, 0]).tolist() == [10, 20, 30]


def test_s8_indices_address_axes_longer_than_127(compiler):
    x = nx.arange(300)
    with nx.default_options(compiler=compiler):
        assert nx.take(x, nx.tensor([-1, 127, -128], "s8")).tolist() == [299, 127, 172]


def test_gradients_with_negative_indices():
    grad = nx.grad(lambda x, i: nx.sum(x[i, -1] ** 2))
    found = grad(nx.tensor([[1.0, 2.0], [3.0, 4.0]]), nx.tensor([-1, -1]))
    assert found.tolist() == [[0.0, 0.0], [0.0, 16.0]]


def test_take_along_axis_broadcasts_the_other_axes(compiler):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with nx.default_options(compiler=compiler):
        found = nx.take_along_axis(x, nx.tensor([[-1, 0]]), axis=1)
        assert np.array_equal(found.numpy(), np.take_along_axis(x, np.array([[-1, 0]]), axis=1))
        row = nx.take_along_axis(x[:1], nx.tensor([[0], [2]]), 1)
        assert row.tolist() == [[0.0], [2.0]]
    with pytest.raises(nx.ShapeError):
        nx.take_along_axis(x, nx.zeros((3, 1), "s32"), axis=1)


@pytest.mark.parametrize("method", ["set", "add", "subtract", "multiply", "min", "max"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["f4", "i4", "u1"])
def test_masks_select_updated_entries_in_traced_functions(method, rank, dtype, compiler):
    rng = np.random.default_rng(rank)
    x = rng.integers(0, 9, (3, 4, 2)).astype(dtype)
    mask = rng.integers(0, 2, x.shape[:rank]).astype(bool)
    for value in [3, np.array(2, dtype), rng.integers(1, 5, x.shape[rank:]).astype(dtype)]:
        functions = {
            "set": lambda x, v: v,
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "min": np.minimum,
            "max": np.maximum,
        }
        expected = x.copy()
        expected[mask] = functions[method](x[mask], np.asarray(value, dtype))
        update = nx.jit(lambda x, m, v: getattr(x.at[m], method)(v), compiler=compiler)
        found = update(x, mask, value)
        assert found.dtype == nx.tensor(x).dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(getattr(nx.tensor(x).at[mask], method)(value), expected)


def test_assignment_by_mask_with_scalars_and_rows():
    x = np.arange(12.0).reshape(3, 4)
    for mask, value in [(x > 5, 0.0), (x[:, 0] > 3, np.arange(4.0)), (x > 50, 1.0)]:
        y, expected = nx.tensor(x), x.copy()
        y[mask], expected[mask] = value, value
        np.testing.assert_array_equal(y, expected)
    y = nx.tensor(x)
    y[x > 8] = [1.0, 2.0, 3.0]
    assert y[2].tolist() == [8, 1, 2, 3]
    gradient = nx.grad(lambda v: nx.sum(nx.tensor(x).at[x > 5].set(v)))(1.0)
    assert gradient.item() == 6


def test_masks_select_elements():
    x = nx.tensor([[1.0, -2.0], [-3.0, 4.0]])
    assert x[x > 0].tolist() == [1.0, 4.0]
    assert x[x > 9].shape == (0,)
    assert x[nx.tensor([True, False])].tolist() == [[1.0, -2.0]]
    assert x[nx.tensor(True)].shape == (1, 2, 2)
    assert x[False].shape == (0, 2, 2)
    x[x < 0] = 0
    assert x.tolist() == [[1.0, 0.0], [0.0, 4.0]]
    x[nx.tensor(False)] = 9
    assert x.tolist() == [[1.0, 0.0], [0.0, 4.0]]
    with pytest.raises(IndexError, match="mask"):
        x[nx.tensor([True, False, True])]


def test_assignment_changes_aliases_but_not_copies():
    x = nx.tensor([1, 2, 3])
    same, other, view = x, nx.tensor(x), x[:]
    captured = nx.jit(lambda: x + 0)
    captured()
    x[0] = 9
    x[1] += 5
    x[-1:] = [8]
    assert x.tolist() == same.tolist() == [9, 7, 8]
    assert other.tolist() == view.tolist() == (+other).tolist() == [1, 2, 3]
    assert nx.asarray(x) is x
    assert nx.asarray(x, copy=True) is not x


@pytest.mark.parametrize("rounds", [30])
def test_concurrent_assignments_are_not_lost(rounds):
    count = 8
    for _ in range(rounds):
        x, barrier = nx.zeros(2 * count), threading.Barrier(count)

        def assign(index, x=x, barrier=barrier):
            barrier.wait()
            x[index] = index + 1
            x[count + index] = index + 1

        with ThreadPoolExecutor(count) as threads:
            list(threads.map(assign, range(count)))
        assert x.tolist() == [float(index + 1) for index in range(count)] * 2


def test_assignment_keeps_dtype_and_axis_names():
    x = nx.zeros((2, 2), "s16", names=["a", None])
    x[0] = 1.9
    assert (x.dtype, x.names, x.tolist()) == (nx.int16, ["a", None], [[1, 1], [0, 0]])


def test_assignment_keeps_the_device():
    x = nx.tensor([1.0, 2.0], device=DEVICE)
    x[0] = 5
    assert x.device == DEVICE
    assert x.tolist() == [5.0, 2.0]


def test_errors_of_traced_assignment_name_alternatives():
    def assign(x):
        x[0] = 1
        return x

    with pytest.raises(nx.TraceError, match=r"x = x\.at\[key\]\.set\(value\)"):
        nx.jit(assign)(nx.zeros(3))
    outside = nx.zeros(3)

    def change(x):
        outside[0] = 1
        return x

    with pytest.raises(nx.TraceError, match="a tensor from outside"):
        nx.jit(change)(nx.zeros(3))
    with pytest.raises(nx.TraceError, match=r"nx\.where"):
        nx.jit(lambda x: x[x > 0])(nx.zeros(3))
    with pytest.raises(TypeError, match="deleted"):
        del outside[0]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ((0, 0, 0), IndexError),
        (5, IndexError),
        ((..., ...), nx.ArgumentError),
        (1.5, nx.ArgumentError),
        ("a", nx.ArgumentError),
        ([0.5], nx.ArgumentError),
        (([0, 1], [0, 1, 1]), nx.ArgumentError),
    ],
)
def test_invalid_keys_raise(key, error):
    with pytest.raises(error):
        nx.zeros((2, 2))[key]


def test_assigned_values_must_broadcast():
    x = nx.zeros((2, 3))
    with pytest.raises(nx.ShapeError):
        x[0] = [1, 2]
    with pytest.raises(nx.ShapeError):
        x[[0, 1], [0, 1]] = [1, 2, 3]


@pytest.mark.parametrize("name", ["set", "add", "subtract", "multiply", "min", "max", "power"])
@pytest.mark.parametrize("value", [300, -1, 256.5, float("inf"), float("nan"), [1, 300], 2**64])
def test_out_of_range_scalars_are_not_written(name, value):
    x = nx.zeros(2, "u8")
    for update in (
        lambda x: getattr(x.at[:], name)(value),
        lambda x: getattr(x.at[[0]], name)(value),
    ):
        for call in (update, nx.jit(update)):
            with pytest.raises(OverflowError, match="out of bounds for elements of u8"):
                call(x)
    with pytest.raises(OverflowError):
        x[0] = 300
    assert x.tolist() == [0, 0]


@pytest.mark.parametrize("value", [1j, [1, 1j], np.complex64(1j), nx.tensor(1j)])
def test_complex_numbers_are_not_written_to_real_elements(value):
    for dtype in ("f32", "s32", "bool"):
        x = nx.zeros(2, dtype)
        for name in ("set", "add", "max"):
            with pytest.raises(nx.DTypeError, match="complex number cannot become an element"):
                getattr(x.at[:], name)(value)
        with pytest.raises(nx.DTypeError):
            x[:] = value
    assert nx.zeros(2, "c64").at[:].set(value).dtype == nx.complex64


def test_scalars_in_range_are_written():
    assert nx.zeros(1, "u64").at[0].set(2**64 - 1).tolist() == [2**64 - 1]
    assert nx.zeros(1, "s64").at[0].set(-(2.0**63)).tolist() == [-(2**63)]
    assert nx.zeros(1, "u8").at[0].set(255.9).tolist() == [255]
    assert nx.zeros(1, "bool").at[0].set(2).tolist() == [True]
    # Arrays have a dtype, and are converted as by `astype`.
    assert nx.zeros(1, "u8").at[0].set(nx.tensor(300)).tolist() == [44]
    assert nx.zeros(1, "u8").at[0].set(np.int16(300)).tolist() == [44]


def test_subtract_divide_power_and_apply(compiler):
    with nx.default_options(compiler=compiler):
        for call in (lambda f: f, nx.jit):
            x = nx.tensor([8.0, 2.0, 3.0])
            assert call(lambda x: x.at[[0, 0]].subtract([1, 2]))(x).tolist() == [5.0, 2.0, 3.0]
            assert call(lambda x: x.at[[0, 0]].divide([2, 4]))(x).tolist() == [1.0, 2.0, 3.0]
            assert call(lambda x: x.at[1:].power(2))(x).tolist() == [8.0, 4.0, 9.0]
            assert call(lambda x: x.at[-1].apply(nx.negative))(x).tolist() == [8.0, 2.0, -3.0]
            u = nx.tensor([1, 2, 3], "u8")
            assert call(lambda x: x.at[0].subtract(1))(u).tolist() == [0, 2, 3]
            assert call(lambda x: x.at[[2, 2]].power(2))(u).tolist() == [1, 2, 81]
        with pytest.raises(nx.DTypeError, match="must have a float dtype for division; got u8"):
            u.at[0].divide(2)


SCATTERED = ("multiply", "max", "min")
UFUNCS = {"multiply": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("name", SCATTERED)
@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "f16", "u8", "s8", "s32", "u64", "s64"])
def test_duplicate_updates_are_combined(name, dtype, compiler):
    rng = np.random.default_rng(7)
    # Integers whose products are exact in every dtype, or wrap to the same value.
    x = rng.integers(1, 3, 50)
    updates, positions = rng.integers(1, 3, 200), rng.integers(-50, 50, 200)
    numpy_dtypes = {"u8": "u1", "u64": "u8", "s8": "i1", "s32": "i4", "s64": "i8"}
    expected = x.astype(numpy_dtypes.get(dtype, "f8"))
    UFUNCS[name].at(expected, positions, updates.astype(expected.dtype))
    with nx.default_options(compiler=compiler):
        update = lambda x, i, v: getattr(x.at[i], name)(v)  # noqa: E731
        arguments = nx.tensor(x, dtype), nx.tensor(positions), nx.tensor(updates, dtype)
        x_dtype = arguments[0].dtype
        for call in (update, nx.jit(update)):
            result = call(*arguments)
            assert result.dtype == x_dtype
            np.testing.assert_array_equal(nx.astype(result, "f64"), expected.astype("f8"))


@pytest.mark.parametrize("name", SCATTERED)
def test_vmapped_updates_match_numpy(name, compiler):
    rng = np.random.default_rng(3)
    x, updates = rng.normal(size=(4, 6, 3)), rng.normal(size=(4, 9, 3))
    positions = rng.integers(0, 6, (4, 9))
    expected = x.copy()
    for entry, rows, values in zip(expected, positions, updates, strict=True):
        UFUNCS[name].at(entry, rows, values)
    update = lambda x, i, v: getattr(x.at[i], name)(v)  # noqa: E731
    with nx.default_options(compiler=compiler):
        batched = nx.jit(nx.vmap(update))(x, positions, updates)
        np.testing.assert_allclose(batched, expected)
        # Some operands are shared by all entries.
        for axes in ((None, 0, 0), (0, None, 0), (0, 0, None), (None, 0, None), (None, None, 0)):
            operands = [
                a if axis is None else b
                for a, b, axis in zip(
                    (x[0], positions[0], updates[0]), (x, positions, updates), axes, strict=True
                )
            ]
            found = nx.jit(nx.vmap(update, in_axes=axes))(*operands)
            expected = [
                update(
                    *(
                        nx.tensor(a if axis is None else a[k])
                        for a, axis in zip(operands, axes, strict=True)
                    )
                )
                for k in range(4)
            ]
            np.testing.assert_allclose(found, nx.stack(expected))


@pytest.mark.parametrize("name", SCATTERED)
def test_derivatives_of_duplicate_updates(name):
    x = nx.tensor([0.5, 2.0, -1.0])
    updates, positions = nx.tensor([3.0, 1.5, -2.0, 0.25]), nx.tensor([1, 0, 1, 2])
    update = lambda x, v: nx.sum(getattr(x.at[positions], name)(v) ** 2)  # noqa: E731
    nx.testing.check_grads(update, (x.astype("f64"), updates.astype("f64")), order=2)


@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_updates_propagate(name, compiler):
    with nx.default_options(compiler=compiler):
        for updates in ([nx.nan, 1.0, 0.0], [1.0, nx.nan, 0.0], [0.0, 1.0, nx.nan]):
            result = getattr(nx.zeros(2).at[[0, 0, 1]], name)(updates)
            nan_index = 1 if updates[2] != updates[2] else 0
            assert np.isnan(result.numpy()).tolist() == [nan_index == 0, nan_index == 1]


@pytest.mark.parametrize("error", [ValueError, TypeError, ZeroDivisionError, OverflowError])
def test_exceptions_from_index_methods_propagate(error):
    class Index:
        def __index__(self):
            raise error("of the user")

    kind, text = (IndexError, "must fit in 64 bits") if error is OverflowError else (error, "user")
    for x in (nx.arange(3), nx.ones((2, 3))):
        with pytest.raises(kind, match=text):
            x[Index()]
        with pytest.raises(kind, match=text):
            nx.jit(lambda x: x[Index()])(x)
    with pytest.raises(IndexError, match="must fit in 64 bits"):
        nx.arange(3)[1 << 64]
