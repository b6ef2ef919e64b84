"""Only jitted functions reuse a trace for later calls."""

import enum
import functools
from dataclasses import dataclass

import numpy as np
import pytest

import nxla as nx


class Model:
    """An object whose attributes change."""

    weight = 1.0

    def loss(self, x):
        return nx.sum(x * self.weight)


TRANSFORMS = {
    "grad": lambda f: nx.grad(f),
    "value_and_grad": lambda f: lambda x: nx.value_and_grad(f)(x)[1],
    "jacfwd": lambda f: nx.jacfwd(f),
    "jacrev": lambda f: nx.jacrev(f),
    "grad of vmap": lambda f: nx.grad(lambda x: nx.sum(nx.vmap(f)(x[None]))),
    "vmap of grad": lambda f: lambda x: nx.vmap(nx.grad(f))(x[None])[0],
    "checkpoint": lambda f: nx.grad(nx.checkpoint(f)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_changed_closure_variables_are_used(transform, compiler):
    factor = 1.0
    transformed = TRANSFORMS[transform](lambda x: nx.sum(x * factor))
    x = nx.ones(3)
    with nx.default_options(compiler=compiler):
        for value in (1.0, 5.0, 1.0):
            factor = value
            assert transformed(x).tolist() == [value] * 3


@pytest.mark.parametrize("size", [3, 100_000])
def test_changed_captured_tensors_are_used(size):
    batch = nx.ones(size)
    gradient = nx.grad(lambda p: nx.sum(p * batch))
    p = nx.ones(size)
    assert gradient(p)[0].item() == 1.0
    batch = batch * 5
    assert gradient(p)[0].item() == 5.0
    batch[0] = 9.0
    assert gradient(p)[:2].tolist() == [9.0, 5.0]


def test_changed_attributes_are_used():
    model, x = Model(), nx.ones(2)
    gradient, mapped = nx.grad(model.loss), nx.vmap(lambda x: x * model.weight)
    object_gradient = nx.grad(lambda x, model: model.loss(x))
    for weight in (1.0, 3.0):
        model.weight = weight
        assert gradient(x).tolist() == mapped(x).tolist() == [weight] * 2
        assert object_gradient(x, model).tolist() == [weight] * 2


def test_equal_programs_are_compiled_once():
    gradient = nx.grad(lambda x: nx.sum(x**3))
    x = nx.ones(4)
    gradient(x)
    before = nx.cache_report()["misses"]
    for _ in range(5):
        gradient(x)
    assert nx.cache_report()["misses"] == before


def test_gradients_of_jitted_functions_are_traced_once():
    traced = []

    @nx.jit
    def loss(x):
        traced.append(1)
        return nx.sum(x * x)

    gradient = nx.grad(loss)
    jitted = nx.jit(nx.grad(loss.callable))
    for transformed in (gradient, jitted):
        traced.clear()
        for _ in range(3):
            assert transformed(nx.ones(2)).tolist() == [2.0, 2.0]
        assert len(traced) == 1


def test_hooks_of_retraced_functions_are_called():
    seen = []

    def loss(x):
        return nx.sum(nx.hook(x * 2, lambda value: seen.append(value.tolist())))

    gradient = nx.grad(loss)
    for compiler in ("evaluator", "xla"):
        with nx.default_options(compiler=compiler):
            for _ in range(3):
                assert gradient(nx.ones(1)).tolist() == [2.0]
    assert seen == [[2.0]] * 6


def test_mutable_objects_are_not_static_arguments():
    model = Model()
    f = nx.jit(lambda x, model: x * model.weight)
    with pytest.raises(
        nx.ArgumentError, match=r"argument 1: must be a tensor.* class Model.*static_argnames"
    ):
        f(1.0, model)
    with pytest.raises(nx.ArgumentError, match="argument model"):
        f(1.0, model=model)
    with pytest.raises(nx.ArgumentError, match=r"argument 0: .* class Model"):
        nx.jit(Model.loss)(model, 1.0)
    named = nx.jit(lambda x, model: x * model.weight, static_argnames="model")
    assert named(2.0, model).item() == 2.0
    assert nx.jit(model.loss)(nx.ones(2)).item() == 2.0


def test_hashable_values_are_static_arguments():
    class Kind(enum.Enum):
        MEAN = 1
        SUM = 2

    @dataclass(frozen=True)
    class Config:
        name: str

        def __hash__(self):
            return hash(self.name)

    f = nx.jit(lambda x, reduction: nx.mean(x) if reduction in (Kind.MEAN, "mean") else nx.sum(x))
    x = nx.ones(4)
    reductions = (Kind.MEAN, Kind.SUM, "mean", None)
    assert [f(x, reduction).item() for reduction in reductions] == [1, 4, 1, 4]
    for code in (nx.sum, np.sum, len, Model, functools.partial(nx.sum, axis=0), nx.jit(nx.sum)):
        assert nx.jit(lambda x, code: x + 1)(1.0, code).item() == 2.0
    assert nx.jit(lambda x, config: x * len(config.name))(2.0, Config("abc")).item() == 6.0


def test_vmap_maps_keyword_arguments():
    def f(x, *, y):
        return x + y

    x, y = nx.arange(3.0), nx.tensor([10.0, 20.0, 30.0])
    assert nx.vmap(f)(x, y=y).tolist() == [10.0, 21.0, 32.0]
    assert nx.vmap(f, in_axes=None)(1.0, y=y).tolist() == [11.0, 21.0, 31.0]
    assert nx.vmap(lambda x, *, p: x * p["w"])(x, p={"w": y}).tolist() == [0.0, 20.0, 60.0]
    with pytest.raises(nx.ShapeError):
        nx.vmap(f)(x, y=1.0)
    with pytest.raises(nx.ShapeError):
        nx.vmap(f)(x, y=nx.ones(2))
