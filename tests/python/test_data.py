"""Batches of arrays, datasets and iterables."""

import dataclasses
import threading
import time

import numpy as np
import pytest

import nxla as nx

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10)


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_of_arrays(prefetch, drop_last):
    loader = nx.data.batches({"x": X, "y": Y}, 4, prefetch=prefetch, drop_last=drop_last)
    for _ in range(2):
        found = list(loader)
        assert len(found) == len(loader) == (2 if drop_last else 3)
        np.testing.assert_array_equal(
            np.concatenate([batch["x"] for batch in found]), X[: 8 if drop_last else 10]
        )


def test_shuffled_orders_depend_on_seed_and_epoch():
    def orders(seed):
        loader = nx.data.batches((X, Y), 4, shuffle=True, seed=seed)
        return [np.concatenate([y for _, y in loader]).tolist() for _ in range(3)]

    first = orders(0)
    assert first == orders(0) != orders(1)
    assert all(sorted(order) == Y.tolist() for order in first)
    assert len({tuple(order) for order in first}) == 3
    # Corresponding rows of both arrays stay together.
    for x, y in nx.data.batches((X, Y), 3, shuffle=True):
        np.testing.assert_array_equal(x.numpy()[:, 0], 2.0 * y.numpy())


class Squares:
    """A dataset like PyTorch's; an index beyond its end raises another error than IndexError."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return {"x": np.full(2, index), "y": index**2}


def test_batches_of_datasets():
    found = list(nx.data.batches(Squares(), 2))
    assert [batch["x"].shape for batch in found] == [(2, 2), (2, 2), (1, 2)]
    assert [y for batch in found for y in batch["y"].tolist()] == [0, 1, 4, 9, 16]
    shuffled = nx.data.batches(Squares(), 5, shuffle=True)
    assert sorted(next(iter(shuffled))["y"].tolist()) == [0, 1, 4, 9, 16]


def test_batches_of_iterables():
    def examples():
        yield from ((k, np.array([k, k])) for k in range(5))

    loader = nx.data.batches(examples(), 2)
    assert [y.tolist() for _, y in loader] == [[[0, 0], [1, 1]], [[2, 2], [3, 3]], [[4, 4]]]
    with pytest.raises(TypeError, match="source: must have a length"):
        len(loader)
    with pytest.raises(nx.ArgumentError, match="batches: shuffle: must be False for an iterable"):
        nx.data.batches(examples(), 2, shuffle=True)


class Reused:
    """A dataset that fills the same array with each example."""

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return 3

    def __getitem__(self, index):
        self.array[...] = index
        return {"x": self.array}


@pytest.mark.parametrize("make", [np.zeros, nx.zeros])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_source_may_reuse_its_arrays(make, prefetch):
    data = Reused(make(2))
    examples = (data[k] for k in range(3))
    for source in (data, examples):
        found = [batch["x"].tolist() for batch in nx.data.batches(source, 2, prefetch=prefetch)]
        assert found == [[[0, 0], [1, 1]], [[2, 2]]]
    # A change of an array after the call has no effect.
    x = make(2)
    loader = nx.data.batches(x, 2, prefetch=prefetch)
    x[...] = 1
    assert [batch.tolist() for batch in loader] == [[0, 0]]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_iterators_can_be_read_once(prefetch):
    single_use = nx.data.batches((k for k in range(3)), 2, prefetch=prefetch)
    assert [batch.tolist() for batch in single_use] == [[0, 1], [2]]
    with pytest.raises(nx.ArgumentError, match=r"batches: source: must be iterable again .*list"):
        list(single_use)
    reusable = nx.data.batches(dict.fromkeys(range(3)).keys(), 2, prefetch=prefetch)
    assert [batch.tolist() for _ in range(2) for batch in reusable] == [[0, 1], [2]] * 2


def test_collate_and_device(device):
    loader = nx.data.batches(
        [[1], [1, 2]], 2, collate=lambda rows: nx.tensor([len(r) for r in rows])
    )
    assert [batch.tolist() for batch in loader] == [[1, 2]]
    (batch,) = nx.data.batches(X, 10, device=device)
    assert batch.device == device


def test_source_errors_reach_the_reader():
    def examples():
        yield 1
        raise RuntimeError("broken file")

    loader = iter(nx.data.batches(examples(), 1))
    assert next(loader).tolist() == [1]
    with pytest.raises(RuntimeError, match="broken file"):
        next(loader)
    with pytest.raises(StopIteration):
        next(loader)


def test_prefetch_thread_ends_with_its_reader():
    before = threading.active_count()
    started = []

    def examples():
        for k in range(10**9):
            started.append(k)
            yield k

    loader = iter(nx.data.batches(examples(), 1, prefetch=2))
    next(loader)
    del loader
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
    assert len(started) < 10


def test_batches_are_prepared_in_advance():
    seen = []

    def examples():
        for k in range(6):
            seen.append(k)
            yield k

    loader = iter(nx.data.batches(examples(), 1, prefetch=2))
    next(loader)
    deadline = time.monotonic() + 10
    while len(seen) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(seen) >= 3


def test_invalid_arguments_raise():
    with pytest.raises(nx.ArgumentError, match="batches: batch_size: must be at least 1; got 0"):
        nx.data.batches(X, 0)
    with pytest.raises(nx.ArgumentError, match="batches: prefetch: must be at least 0; got -1"):
        nx.data.batches(X, 1, prefetch=-1)
    with pytest.raises(nx.ArgumentError, match="batches: prefetch: must be an integer; got '2'"):
        nx.data.batches(X, 1, prefetch="2")
    with pytest.raises(
        nx.ShapeError, match="batches: source: arrays must have the same first axis"
    ):
        nx.data.batches((X, Y[:3]), 2)
    with pytest.raises(TypeError, match="did you mean shuffle="):
        nx.data.batches(X, 1, shufle=True)


@dataclasses.dataclass
class Pair:
    x: object
    y: object


@pytest.mark.parametrize(
    "source", [{"x": X, "y": Y}, {"x": [1, 2]}, (X, Y), (X, (X, Y)), Pair(X, Y)]
)
def test_containers_of_arrays_are_not_collated(source):
    with pytest.raises(nx.ArgumentError, match="batches: collate: must be None for a container"):
        nx.data.batches(source, 2, collate=list)


def test_tuples_of_examples_and_rows_of_arrays_are_collated():
    (batch,) = nx.data.batches(((X, 0), (Y, 1)), 2, collate=lambda rows: [y for _, y in rows])
    assert batch == [0, 1]
    (rows,) = nx.data.batches(X, 10, collate=np.stack)
    np.testing.assert_array_equal(rows, X)


def test_datasets_receive_python_integers():
    seen = []

    class Dataset(Squares):
        def __getitem__(self, index):
            seen.append(index)
            return index

    assert len(list(nx.data.batches(Dataset(), 2, shuffle=True))) == 3
    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert {type(index) for index in seen} == {int}


def test_invalid_devices_raise_before_the_loop():
    with pytest.raises(nx.OptionError, match=r'device: name: must be one of .*; got "nowhere"'):
        nx.data.batches(X, 2, device="nowhere")


@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_use_the_default_options_of_the_loop(prefetch, device):
    pairs = [(1.0, 2.0), (3.0, 0.0)]
    loader = nx.data.batches(pairs, 1, prefetch=prefetch, collate=lambda pair: nx.log(pair[0][1]))
    arrays = nx.data.batches(pairs, 1, prefetch=prefetch)
    with nx.default_options(device=device):
        assert [part.device for batch in arrays for part in batch] == [device] * 4
    with nx.global_default_options(compiler="evaluator"):
        assert [part.device.name for batch in arrays for part in batch] == ["host"] * 4
    with nx.debug_nans(), pytest.raises(nx.ExecutionError, match="log: produced -inf"):
        list(loader)
    assert len(list(loader)) == 2
