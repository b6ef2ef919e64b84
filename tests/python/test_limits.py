"""Sizes beyond all memory raise an error that names the operation, without delay."""

import pytest

import nxla as nx

HUGE = 2**40
OVERSIZED = 2**62


@pytest.mark.parametrize(
    "call",
    [
        lambda: nx.window_max(nx.ones(3), (1,), padding=[(0, HUGE)]),
        lambda: nx.pad_outer(nx.ones(3), "reflect", [(HUGE, HUGE)]),
        lambda: nx.pad(nx.ones(3), 0, [(OVERSIZED, 0)]),
        lambda: nx.pad(nx.ones(3), 0, [(OVERSIZED, OVERSIZED)]),
        lambda: nx.conv(nx.ones((1, 1, 3)), nx.ones((1, 1, 1)), input_dilation=[OVERSIZED]),
        lambda: nx.conv(nx.ones((1, 1, 3)), nx.ones((1, 1, 2)), padding=[(OVERSIZED, 0)]),
        lambda: nx.tile(nx.ones(3), (HUGE,)),
    ],
    ids=["window", "pad_outer", "pad", "pad twice", "dilation", "padding", "tile"],
)
def test_results_larger_than_memory_raise(call):
    with pytest.raises(
        (nx.ExecutionError, nx.ArgumentError, nx.OutOfMemoryError),
        match=r"cannot allocate|more memory than there is|larger than the address|must fit|at most",
    ):
        call()


def test_oversized_windows_raise(compiler):
    window = nx.jit(lambda x: nx.window_sum(x, (OVERSIZED,), padding="same"), compiler=compiler)
    with pytest.raises(nx.ArgumentError, match=r"at most 2\^32 elements"):
        window(nx.ones(3))


def test_empty_results_need_no_computation():
    assert nx.conv(nx.zeros((0, 1, HUGE)), nx.zeros((1, 1, 3))).shape == (0, 1, HUGE - 2)
    assert nx.fft.fft(nx.zeros((HUGE, 0)), axis=0).shape == (HUGE, 0)
    assert nx.sort(nx.zeros((HUGE, 0)), axis=0).shape == (HUGE, 0)
    assert nx.sum(nx.zeros((HUGE, 0)), axis=0).tolist() == []
    seen = []
    nx.jit(lambda x: nx.fori(0, 3, lambda i, x: nx.hook(x, seen.append), x))(nx.zeros((0,)))
    assert len(seen) == 3


@pytest.mark.parametrize(
    "create",
    [
        lambda size: nx.tile(nx.zeros((0, 2)), (1, size // 2)),
        lambda size: nx.concat([nx.zeros((0, size // 2))] * 2, axis=1),
        lambda size: nx.pad(nx.zeros((0, 2)), 0, [(0, 0), (size - 2, 0)]),
    ],
    ids=["tile", "concat", "pad"],
)
@pytest.mark.parametrize("wrap", [lambda f: f, nx.jit], ids=["eager", "jit"])
def test_axis_sizes_of_empty_tensors_are_limited(create, wrap):
    with pytest.raises(nx.ArgumentError, match="at most 9223372036854775807 elements"):
        wrap(lambda: create(2**63))()


def test_indices_into_the_largest_axis():
    x = nx.tile(nx.zeros((0, 1)), (1, 2**63 - 1))
    assert x[:, nx.tensor([0, -1])].shape == (0, 2)
    assert nx.take(x, nx.tensor([0, 1]), axis=1).shape == (0, 2)
    assert x[:, -3:].shape == (0, 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda: nx.zeros((2**31, 2**31)),
        lambda: nx.sum(nx.ones((2**32, 2**31)) * 2),
        lambda: nx.while_loop(lambda x: x < 1, lambda x: x + nx.sum(nx.zeros((HUGE, HUGE))), 0.0),
    ],
    ids=["result", "value", "loop"],
)
def test_values_larger_than_the_address_space_are_errors_on_xla(function):
    with pytest.raises(nx.OutOfMemoryError, match="is larger than the address space"):
        nx.jit(function, compiler="xla")()


def test_empty_values_with_huge_axes_are_errors_on_xla():
    transposed = nx.jit(lambda x: nx.permute_dims(x, (2, 1, 0)), compiler="xla")
    with pytest.raises(nx.OutOfMemoryError, match="is larger than the address space"):
        transposed(nx.zeros((0, OVERSIZED, OVERSIZED)))
