"""Rules that all functions of a family share with NumPy: integers, dtypes, indices and errors."""

import math

import numpy as np
import pytest

import nxla as nx

MASK = np.array([True, False, True, True])
COLUMNS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("integer", [int, np.int64, np.int8, np.uint64])
def test_an_index_out_of_range_is_an_error(integer):
    x = nx.tensor([1, 2, 3])
    for call in (
        lambda i: x[i],
        lambda i: x[i,],
        lambda i: x.at[i].set(0),
        lambda i: x.at[i].add(1),
        lambda i: x.__setitem__(i, 0),
        lambda i: nx.jit(lambda y: y[i])(x),
    ):
        with pytest.raises(IndexError, match="out of range"):
            call(integer(10))
    assert x[integer(2)].item() == 3
    assert x.at[integer(1)].set(0).tolist() == [1, 0, 3]


def test_an_index_of_any_size_is_an_index_error():
    for index in (2**70, -(2**70)):
        with pytest.raises(IndexError, match="64 bits"):
            nx.tensor([1, 2, 3])[index]
