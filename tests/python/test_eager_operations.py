"""Eager operations, outside of any trace."""

import operator
import threading

import numpy as np
import pytest

import nxla as nx
from where import DEVICE, PLATFORM


def test_cached_operations_return_the_same_results():
    x = nx.tensor([1.0, 2.0, 3.0])
    for shift in (1, 1.0, nx.tensor(1), True):
        assert [(x + shift).tolist() for _ in range(3)] == [[2.0, 3.0, 4.0]] * 3
    assert (x + 1).dtype == (x + nx.tensor(1)).dtype == nx.float32
    assert (nx.tensor([1]) + 1).dtype == nx.int32
    assert (nx.tensor([1]) + 1.5).dtype == nx.float32


def test_the_cache_distinguishes_attributes():
    x = nx.tensor(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    for _ in range(2):
        assert nx.sum(x, axis=0).tolist() == [12.0, 15.0, 18.0, 21.0]
        assert nx.sum(x, axis=1).tolist() == [6.0, 22.0, 38.0]
        assert nx.sum(x, axis=1, keepdims=True).shape == (3, 1)
        assert x[1].tolist() == [4.0, 5.0, 6.0, 7.0]
        assert x[2].tolist() == [8.0, 9.0, 10.0, 11.0]


def test_the_cache_distinguishes_operands_and_operators():
    numbers = np.array([3.0, -5.0, 8.0])
    operators = (
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.lt,
        operator.ge,
        operator.eq,
        operator.ne,
    )
    dtypes = (np.float32, np.float64, np.int32)
    for _ in range(2):
        for apply in operators:
            for dtype in dtypes:
                x, y = numbers.astype(dtype), np.array([2], dtype)
                for left, right in ((x, y), (y, x), (x, x[:, None]), (x[:1], y)):
                    found = apply(nx.tensor(left), nx.tensor(right))
                    expected = apply(left, right)
                    assert found.shape == expected.shape
                    assert np.allclose(found.numpy(), expected, rtol=1e-6)
                assert np.array_equal(apply(nx.tensor(x), 2).numpy(), apply(x, y[0]))
    assert [(-nx.tensor(x)).tolist() for x in ([1.0], [2])] == [[-1.0], [-2]]
    assert [abs(nx.tensor(x)).tolist() for x in ([-1.0], [-2])] == [[1.0], [2]]


def test_the_cache_distinguishes_axis_names():
    rows = nx.tensor([1.0, 2.0], names=["rows"])
    columns = nx.tensor([1.0, 2.0], names=["columns"])
    for _ in range(2):
        assert (rows * 2).names == ["rows"]
        assert (columns * 2).names == ["columns"]


def test_the_cache_distinguishes_vectorized_axes():
    x = nx.ones((2, 3))
    for _ in range(2):
        for name in ("a", "b"):
            entries = nx.vectorize(x, name)
            total = nx.sum(entries)
            assert (total.vectorized_axes, total.shape) == (((name, 2),), ())
            assert (x + x).vectorized_axes == ()
            more = entries + entries
            assert (more.vectorized_axes, more.shape) == (((name, 2),), (3,))


def test_converted_scalars_broadcast_to_all_elements():
    x = nx.tensor(np.linspace(-1, 1, 5000), nx.float32)
    for number in (3, -2, 2**40):
        expected = np.linspace(-1, 1, 5000).astype(np.float32) * np.float32(number)
        assert np.array_equal(np.asarray(x * number), expected)
        assert np.array_equal(np.asarray(nx.tensor(number) * x), expected)
    mask = nx.where(nx.tensor(2), x, nx.tensor(7))
    assert np.array_equal(np.asarray(mask), np.asarray(x))
    assert np.asarray(nx.clip(x, nx.tensor(0), nx.tensor(1))).min() == 0.0


def test_errors_name_the_line_of_each_call():
    x, y = nx.ones(2), nx.ones(3)
    lines = []
    for _ in range(2):
        with pytest.raises(nx.ShapeError, match=r"\(test_eager_operations.py:\d+\)$") as first:
            x + y
        with pytest.raises(nx.ShapeError, match=r"\(test_eager_operations.py:\d+\)$") as second:
            x + y
        lines.append([int(str(one.value).split(":")[-1][:-1]) for one in (first, second)])
    assert lines[0] == lines[1]
    assert lines[0][1] == lines[0][0] + 2
    assert (x + 1).tolist() == [2.0, 2.0]


def test_changed_default_options_take_effect():
    x = nx.ones(3)
    assert (x + 1).device.platform == "host"
    with nx.default_options(compiler="xla"):
        assert (x + 1).device.platform == PLATFORM
    assert (x + 1).device.platform == "host"
    on_device = nx.device_put(x, DEVICE)
    assert (on_device + 1).device.platform == PLATFORM
    assert (x + 1).device.platform == "host"
    assert (on_device + x).device.platform == PLATFORM


def test_hooks_are_called_each_time():
    seen = []
    x = nx.ones(2)
    for _ in range(3):
        nx.hook(x, lambda value: seen.append(value.tolist()))
        x + 1
    assert seen == [[1.0, 1.0]] * 3


def test_operations_inside_loop_bodies():
    x = nx.ones(2)

    def body(state):
        return state + (nx.tensor([1.0, 1.0]) + 1.0)

    for _ in range(3):
        assert nx.fori(0, 2, lambda _, state: body(state), x).tolist() == [5.0, 5.0]
        assert (x + 1).tolist() == [2.0, 2.0]


def test_thousands_of_operations_return_correct_results():
    x = nx.tensor(np.arange(3000.0, dtype=np.float32))
    assert [x[i].item() for i in range(0, 3000, 2)] == list(range(0, 3000, 2))
    assert [nx.sum(x[:i]).item() for i in (1, 2, 3)] == [0.0, 1.0, 3.0]


def test_threads_apply_operations_concurrently():
    x = nx.tensor([1.0, 2.0])
    found = []

    def work(number):
        results = [(x * number + number).tolist() for _ in range(200)]
        found.append(all(result == [2.0 * number, 3.0 * number] for result in results))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
