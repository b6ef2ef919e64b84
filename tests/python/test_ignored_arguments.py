"""Arguments that have no effect, or that no value can represent, raise errors."""

import pytest

import nxla as nx


def test_a_static_argument_cannot_be_donated():
    with pytest.raises(nx.ArgumentError, match="must not select a static argument; got 'n'"):
        nx.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=1)
    with pytest.raises(nx.ArgumentError, match="must not select a static argument; got 'n'"):
        nx.jit(lambda x, n: x * n, static_argnames="n", donate_argnames="n")


def test_traced_values_cannot_be_deallocated():
    def free(x):
        nx.backend_deallocate({"x": x})
        return x

    with pytest.raises(nx.TraceError, match="backend_deallocate: container: must not be traced"):
        nx.jit(free)(1.0)


def test_constants_must_fit_their_dtype():
    for value, dtype, error in [
        (300, "u8", OverflowError),
        (-1, "u8", OverflowError),
        (2**31, "s32", OverflowError),
        (1 + 2j, "f32", nx.DTypeError),
    ]:
        with pytest.raises(error):
            nx.expr.build(lambda value=value, dtype=dtype: nx.expr.constant(value, dtype))
    assert nx.expr.build(lambda: nx.expr.constant(255, "u8")).run().item() == 255


@pytest.mark.parametrize("position", [1 << 16, 1 << 31, 1 << 32])
def test_positions_of_parameters_are_bounded(position):
    with pytest.raises(nx.ArgumentError, match=r"parameter: pos: must be below 65536; got"):
        nx.expr.build(lambda: nx.expr.parameter((), "f32", pos=position))


def test_hooks_have_names_and_functions():
    with pytest.raises(nx.ArgumentError, match="hooks: names must be strings; got 1"):
        nx.jit(lambda x: x, hooks={1: print})(1.0)
    with pytest.raises(nx.ArgumentError, match=r'hooks\["a"\]: must be callable; got an int'):
        nx.jit(lambda x: x, hooks={"a": 3})(1.0)


def test_a_plugin_that_is_named_must_exist():
    f = nx.jit(lambda x: x + 1, compiler="auto", plugin="nowhere")
    with pytest.raises(nx.DeviceError, match="no PJRT plugin found for nowhere"):
        f(1.0)


def test_gradients_of_containers_without_tensors_are_empty():
    assert nx.grad(lambda params, x: 2 * x)({}, 1.0) == {}
    value, gradients = nx.value_and_grad(lambda params, x: 2 * x)([], 1.5)
    assert (value.item(), gradients) == (3.0, [])
    (value, extra), gradients = nx.value_and_grad(lambda p, x: (2 * x, x), has_aux=True)({}, 1.0)
    assert (value.item(), extra.item(), gradients) == (2.0, 1.0, {})
    with pytest.raises(nx.ArgumentError, match="must contain a tensor"):
        nx.grad(lambda name, x: x)("relu", 1.0)


def test_containers_of_files_are_not_nested_without_limit():
    container = nx.ones(1)
    for _ in range(5000):
        container = [container]
    with pytest.raises(nx.ArgumentError, match="container: must be nested at most 256 deep"):
        nx.to_safetensors(container)
