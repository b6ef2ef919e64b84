"""The contract of donation, which is the same for every compiler."""

from collections import OrderedDict, defaultdict
from functools import partial

import numpy as np
import pytest

import nxla as nx

VALUES = np.arange(6, dtype=np.float32)


@pytest.fixture
def x(device):
    return nx.tensor(VALUES, device=device)


def donating(function, compiler, numbers=0, **options):
    return nx.jit(function, compiler=compiler, donate_argnums=numbers, **options)


def test_donated_tensors_are_released_after_the_call(compiler, x):
    result = donating(lambda x: x + 1, compiler)(x)
    np.testing.assert_array_equal(np.asarray(result), VALUES + 1)
    assert x.is_released()
    with pytest.raises(nx.DeviceError, match="donated to <lambda>, called at"):
        x.tolist()


def test_donated_tensors_are_released_without_memory_reuse(compiler, x):
    assert donating(nx.sum, compiler)(x).item() == 15
    assert x.is_released()


def test_unused_donated_arguments_are_not_released(compiler, x, device):
    other = nx.tensor(VALUES, device=device)
    donating(lambda x, y: y + 1, compiler, (0, 1))(x, other)
    assert (x.is_released(), other.is_released()) == (False, True)
    np.testing.assert_array_equal(np.asarray(x), VALUES)


def test_arguments_of_hooks_count_as_used(compiler, x):
    shown = []

    def function(x, y):
        nx.hook(x, lambda value: shown.append(np.array(value)))
        return y * 2

    donating(function, compiler)(x, 1.0)
    np.testing.assert_array_equal(shown, [VALUES])
    assert x.is_released()


@pytest.mark.parametrize("usable", [True, False])
def test_donated_tensors_are_released_if_a_hook_raises(compiler, x, device, usable):
    def fail(value):
        raise ValueError("no")

    def function(x, y):
        shown = nx.hook(x + y, fail)
        return shown if usable else nx.sum(shown)

    y = nx.tensor(VALUES, device=device)
    step = donating(function, compiler)
    for attempt in range(2):
        with pytest.raises(ValueError, match="no") as raised:
            step(x, y)
        assert raised.type is ValueError, attempt
        assert (x.is_released(), y.is_released()) == (True, False)
        x = nx.tensor(VALUES, device=device)


@pytest.mark.parametrize("numbers", [0, 1, (0, 1)])
def test_donated_tensors_passed_twice_raise(compiler, x, numbers):
    step = donating(lambda x, y: x + y, compiler, numbers)
    for _ in range(2):
        donated, other = (1, 0) if numbers == 1 else (0, 1)
        text = (
            f"argument {donated}: a donated tensor must be passed once; "
            f"got the same tensor as argument {other}"
        )
        with pytest.raises(nx.ArgumentError, match=text):
            step(x, x)
        assert not x.is_released()
    np.testing.assert_array_equal(np.asarray(x), VALUES)
    copy = x.to_device(x.device, copy=True)
    np.testing.assert_array_equal(np.asarray(step(x, copy)), 2 * VALUES)


def test_errors_of_tensors_passed_twice_name_both_arguments(compiler, x):
    step = nx.jit(
        lambda state, *, scale: [state["a"], state["b"] * scale],
        compiler=compiler,
        donate_argnames=("state", "scale"),
    )
    with pytest.raises(nx.ArgumentError, match=r"argument 0\['a'\].* as argument 0\['b'\]"):
        step({"a": x, "b": x}, scale=1.0)
    with pytest.raises(nx.ArgumentError, match=r"argument 0\['b'\].* as argument scale"):
        step({"a": 1.0, "b": x}, scale=x)
    captured = donating(lambda y: x + y, compiler)
    with pytest.raises(nx.ArgumentError, match="as a tensor that the function captures"):
        captured(x)
    unused = donating(lambda x, y: x + 1, compiler)
    with pytest.raises(nx.ArgumentError, match=r"argument 0.* as argument 1"):
        unused(x, x)
    assert not x.is_released()


@pytest.mark.parametrize("kind", [dict, OrderedDict, partial(defaultdict, list)])
def test_parts_of_registered_dicts_are_donated_by_key(compiler, kind, device):
    step = nx.jit(
        lambda state: [x + 1 for x in state.values()],
        compiler=compiler,
        donate_argnames="state['kept']",
    )
    other, kept = (nx.tensor(VALUES, device=device) for _ in range(2))
    step(kind({"other": other, "kept": kept}))
    assert (other.is_released(), kept.is_released()) == (False, True)


def test_rejected_calls_do_not_release_arguments(compiler, x, device):
    released = nx.tensor(VALUES, device=device)
    released.deallocate()
    step = donating(lambda x, y: x + y, compiler)
    with pytest.raises(nx.DeviceError):
        step(x, released)
    assert not x.is_released()
    with pytest.raises(nx.ShapeError):
        step(x, nx.ones(5))
    assert not x.is_released()
    strict = donating(nx.sum, compiler, on_unusable_donation="raise")
    with pytest.raises(nx.ArgumentError):
        strict(x)
    assert not x.is_released()


def test_options_are_checked_before_tracing(compiler, x):
    traced = []

    def function(x):
        traced.append(True)
        return x + 1

    with pytest.raises(nx.OptionError, match="speed"):
        donating(function, compiler, speed=11)(x)
    with pytest.raises(nx.OptionError, match="speed"), nx.default_options(speed=11):
        donating(function, compiler)(x)
    assert not traced
    assert not x.is_released()


def test_host_tensors_are_not_donated(compiler):
    x = nx.tensor(VALUES)
    step = donating(lambda x, y: x + y, compiler, (0, 1))
    np.testing.assert_array_equal(np.asarray(step(x, x)), 2 * VALUES)
    np.testing.assert_array_equal(np.asarray(x), VALUES)


def test_donation_contract_of_compiled_functions_and_stages(compiler, x, device):
    compiled = donating(lambda x, y: x + y, compiler).compile(x, x)
    with pytest.raises(nx.ArgumentError, match=r"argument 0.* as argument 1"):
        compiled(x, x)
    assert not x.is_released()
    staged = donating(
        lambda x, y: nx.sin(x + y) * x, compiler, (0, 1), stages=nx.graph.Policy.every_ops(1)
    )
    with pytest.raises(nx.ArgumentError, match=r"argument 0.* as argument 1"):
        staged(x, x)
    y = nx.tensor(VALUES, device=device)
    result = np.asarray(staged(x, y))
    np.testing.assert_allclose(result, np.sin(2 * VALUES) * VALUES, rtol=1e-6)
    assert x.is_released()
    assert y.is_released()


@pytest.mark.parametrize("dtype", ["pred", "u4", "bf16", "f64", "c64"])
def test_donation_contract_of_every_dtype(compiler, device, dtype):
    x = nx.device_put(nx.ones((3, 0), dtype=dtype), device)
    y = nx.device_put(nx.ones((2, 2), dtype=dtype), device)
    for each in (x, y):
        step = donating(lambda x, y: (x, y), compiler)
        with pytest.raises(nx.ArgumentError, match=r"argument 0.* as argument 1"):
            step(each, each)
        assert not each.is_released()
        nx.jit(lambda x: x * x, compiler=compiler, donate_argnums=0)(each)
        assert each.is_released()


def test_donation_contract_of_batched_tensors(compiler, device):
    x = nx.tensor(VALUES.reshape(2, 3), device=device)
    step = donating(nx.vmap(lambda x, y: x * y), compiler, 1)
    with pytest.raises(nx.ArgumentError, match=r"argument 1.* as argument 0"):
        step(x, x)
    y = nx.tensor(VALUES.reshape(2, 3), device=device)
    step(x, y)
    assert (x.is_released(), y.is_released()) == (False, True)


def test_debug_nans_detects_nan_of_donating_calls(compiler, x):
    step = donating(lambda x: nx.log(-1 - x), compiler, debug_nans=True)
    with pytest.raises(nx.NxlaError, match=r"has NaN at \[0\].*donated its arguments"):
        step(x)
    assert x.is_released()
