"""Containers are unchanged by functions and by serialization."""

import dataclasses
import enum
import pickle
import sys
import types
import typing
from collections import OrderedDict, defaultdict, namedtuple
from functools import partial

import numpy as np
import pytest

import nxla as nx
from nxla._paths import format_path, leaf_paths

Point = namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Model:
    w: nx.Tensor
    b: nx.Tensor
    name: str = "model"


class Pair:
    def __init__(self, left, right, label):
        self.left, self.right, self.label = left, right, label


nx.register_container(
    Pair,
    lambda pair: ((pair.left, pair.right), pair.label),
    lambda label, children: Pair(*children, label),
)


def test_tensors_with_duplicate_names_round_trip():
    x = nx.ones(3, names=["a"])
    for twice in (nx.expand_dims(x, 0, name="a"), nx.outer(x, x)):
        for found in (nx.deserialize(nx.serialize(twice)), pickle.loads(pickle.dumps(twice))):
            assert found.names == twice.names == ["a", "a"]


def test_ordered_dicts_keep_their_order():
    container = OrderedDict([("z", nx.ones(2)), ("a", nx.zeros(2))])
    for function in (nx.jit(lambda d: d), lambda d: nx.tree.map(lambda x: x + 1, d)):
        found = function(container)
        assert type(found) is OrderedDict
        assert list(found) == ["z", "a"]
    inside = []
    nx.jit(lambda d: inside.append(d) or d["z"])(container)
    assert type(inside[0]) is OrderedDict
    assert list(inside[0]) == ["z", "a"]
    # Another order of the keys is another structure.
    assert (
        nx.tree.flatten(container)[1]
        != nx.tree.flatten(OrderedDict(reversed(container.items())))[1]
    )


def test_defaultdicts_keep_factory_and_order():
    container = defaultdict(list, {"z": nx.ones(2), 3: nx.zeros(2)})
    found = nx.jit(lambda d: d)(container)
    assert type(found) is defaultdict
    assert found.default_factory is list
    assert list(found) == ["z", 3]
    assert found["new"] == []


class Ordered(OrderedDict):
    """A subclass that a user registers in the way that nxla registers `OrderedDict`."""


nx.tree.register_container(
    Ordered,
    lambda entries: (list(entries.values()), tuple(entries)),
    lambda keys, children: Ordered(zip(keys, children, strict=True)),
)


@pytest.mark.parametrize("kind", [dict, OrderedDict, partial(defaultdict, list), Ordered])
def test_paths_through_registered_dicts_are_keys(kind):
    container = kind({"b": nx.ones(2), "a": [nx.zeros(2), 1.0]})
    if isinstance(container, OrderedDict):
        container.move_to_end("b")
    paths = {"['b']", "['a'][0]", "['a'][1]"}
    leaves, structure = nx.tree.flatten(container)
    assert {structure.leaf_path(leaf) for leaf in range(len(leaves))} == paths
    position = next(leaf for leaf in range(3) if structure.leaf_path(leaf) == "['b']")
    assert leaves[position] is container["b"]
    assert {format_path(path) for path in leaf_paths(container)} == paths
    with pytest.raises(nx.ArgumentError, match=r"\['a'\]\[0\]"):
        nx.jit(lambda _: 0.0)(kind({"b": 1.0, "a": [types.SimpleNamespace(x=1)]}))


def test_gradients_have_the_container_of_the_argument():
    weights = OrderedDict(w=nx.tensor(3.0), b=nx.tensor(2.0))
    gradient = nx.grad(lambda p: p["w"] * p["b"])(weights)
    assert type(gradient) is OrderedDict
    assert [(name, g.item()) for name, g in gradient.items()] == [("w", 2.0), ("b", 3.0)]


def assert_same(left, right):
    assert type(left) is type(right)
    if isinstance(left, nx.Tensor):
        assert (left.dtype, left.names) == (right.dtype, right.names)
        assert nx.to_binary(left) == nx.to_binary(right)
        return
    leaves, structure = nx.tree.flatten(left)
    others, other_structure = nx.tree.flatten(right)
    assert structure == other_structure
    for leaf, other in zip(leaves, others, strict=True):
        assert nx.to_binary(leaf) == nx.to_binary(other)


CONTAINERS = {
    "named tuple": Point(nx.ones(2), 3),
    "dataclass": Model(nx.ones(2), nx.zeros((), dtype="bf16")),
    "registered": Pair(nx.ones(2), nx.tensor(1, "u8"), ("a", 1)),
    "ordered dict": OrderedDict([("z", nx.ones(2)), ("a", [nx.zeros(2), None])]),
    "defaultdict": defaultdict(list, {"z": nx.ones(2)}),
    "dict of numbers": {1: nx.ones(2), (2, "x"): "text"},
    "nested": {"layers": [Point(Model(nx.ones(1), nx.ones(1)), (1, 2.5, True, 1j))]},
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_containers_round_trip_through_serialization(container):
    assert_same(nx.deserialize(nx.serialize(container)), container)


def test_arrays_are_serialized_as_tensors():
    found = nx.deserialize(nx.serialize({"x": np.arange(3, dtype="int16")}))["x"]
    assert found.dtype == "s16"
    assert found.tolist() == [0, 1, 2]


def test_tensors_on_a_device_are_serialized(device):
    x = nx.tensor([1.0, 2.0], device=device)
    assert nx.deserialize(nx.serialize([x]))[0].tolist() == [1.0, 2.0]


def test_deserialize_does_not_import_modules():
    module = types.ModuleType("elsewhere")
    module.Point = namedtuple("Point", ["x"])
    module.Point.__module__ = "elsewhere"
    sys.modules["elsewhere"] = module
    try:
        data = nx.serialize(module.Point(1))
        assert nx.deserialize(data) == module.Point(1)
    finally:
        del sys.modules["elsewhere"]
    with pytest.raises(nx.ArgumentError, match="class elsewhere:Point: must be defined"):
        nx.deserialize(data)


def test_serialize_rejects_unsupported_values():
    with pytest.raises(nx.ArgumentError, match="got an object"):
        nx.serialize([object()])
    local = namedtuple("Local", ["x"])
    with pytest.raises(nx.ArgumentError, match="must be importable by its name"):
        nx.serialize(local(1))


@dataclasses.dataclass
class Scaled:
    a: object
    scale: typing.ClassVar[int] = 3
    seed: dataclasses.InitVar[int]
    start: dataclasses.InitVar[int] = 7
    _: dataclasses.KW_ONLY
    b: object = dataclasses.field(default=0.0, init=False)

    def __post_init__(self, seed, start):
        self.b = float(seed + start)


def test_only_fields_of_a_dataclass_are_its_children():
    container = Scaled(1.0, 2)
    assert nx.tree.leaves(container) == [1.0, 9.0]
    for double in (lambda x: nx.tree.map(lambda leaf: leaf * 2, x), nx.jit(lambda x: x)):
        found = double(container)
        assert type(found) is Scaled
        assert found.scale == Scaled.scale == 3
        assert set(vars(found)) == {"a", "b"}
    gradient = nx.grad(lambda x: x.a * x.b * x.scale)(container)
    assert (gradient.a.item(), gradient.b.item(), gradient.scale) == (27.0, 3.0, 3)
    step = nx.optim.sgd(0.1)
    updates, _ = step.update(gradient, step.init(container), container)
    assert set(vars(updates)) == {"a", "b"}
    assert_same(nx.deserialize(nx.serialize(container)), container)


DERIVED = {
    base: dataclasses.dataclass(
        type(f"Derived{base.__name__}", (base,), {"__annotations__": {"x": float}})
    )
    for base in (dict, list, tuple)
}


@pytest.mark.parametrize("base", DERIVED)
def test_a_dataclass_with_items_must_be_registered(base):
    container = base.__new__(DERIVED[base])
    container.x = 1.0
    for call in (nx.tree.leaves, nx.jit(lambda x: 0.0), nx.serialize):
        with pytest.raises(
            nx.ArgumentError, match=rf"Derived{base.__name__}: .*register_container"
        ):
            call(container)


class Rows(list):
    pass


class Record(namedtuple("Base", ["x"])):
    pass


class Table(dict):
    pass


for kind in (Rows, Record, Table):
    nx.register_container(
        kind,
        lambda value: ((value.extra,), type(value)),
        lambda cls, children: make(cls, *children),
    )


def make(kind, extra):
    instance = kind(0.0) if kind is Record else kind()
    instance.extra = extra
    return instance


@pytest.mark.parametrize("kind", [Rows, Record, Table])
def test_registered_functions_take_precedence(kind):
    found = nx.jit(lambda value: nx.tree.map(lambda x: x * 2, value))(make(kind, 3.0))
    assert type(found) is kind
    assert found.extra.item() == 6.0


@pytest.mark.parametrize(
    "kind", [tuple, list, dict, str, bool, int, float, complex, nx.Tensor, nx.Template, nx.Lazy]
)
def test_built_in_classes_cannot_be_registered(kind):
    with pytest.raises(nx.ArgumentError, match=f"register_container: cls: .*{kind.__name__}"):
        nx.register_container(kind, lambda value: ((), None), lambda aux, children: None)
    assert nx.tree.leaves({"a": [1.0, (2,)]}) == [1.0, 2]


def test_ravel_joins_the_elements_and_restores_the_container(compiler):
    model = Model(nx.tensor([[1.0, 2.0]], names=["rows", None]), nx.tensor(3.5, dtype="f64"))
    mixed = {
        "model": model,
        "n": 7,
        "mask": np.array([True, False]),
        "kept": (None, nx.ones((0, 2))),
    }

    @nx.jit(compiler=compiler)
    def double(container):
        vector, restore = nx.tree.ravel(container)
        return vector, restore(2 * vector)

    for convert in (nx.tree.ravel, double):
        vector, _ = convert(mixed)
        assert (vector.dtype, vector.tolist()) == (nx.float64, [1.0, 0.0, 1.0, 2.0, 3.5, 7.0])
    restored = double(mixed)[1]
    assert restored["model"].name == "model"
    assert restored["kept"][0] is None
    leaves = nx.tree.leaves(restored)
    assert [x.tolist() for x in leaves] == [[], [True, False], [[2.0, 4.0]], 7.0, 14]
    assert [str(x.dtype) for x in leaves] == ["f32", "pred", "f32", "f64", "s32"]
    assert restored["model"].w.names == ["rows", None]


@pytest.mark.parametrize("empty", [{}, (), None, [None, {"a": "label"}]])
def test_ravel_of_a_container_without_leaves_has_no_elements(empty):
    vector, restore = nx.tree.ravel(empty)
    assert (vector.shape, vector.dtype) == ((0,), nx.float32)
    assert restore(vector) == empty


def test_ravel_is_differentiable_and_batched():
    params = {"w": nx.tensor([[1.0, 2.0], [3.0, 4.0]]), "b": nx.tensor([5.0])}

    def loss(params):
        return nx.sum(params["w"] ** 3) + nx.sum(params["b"] ** 2)

    vector, restore = nx.tree.ravel(params)
    hessian = nx.hessian(lambda vector: loss(restore(vector)))(vector)
    assert hessian.tolist() == nx.make_diagonal(nx.tensor([2.0, 6.0, 12.0, 18.0, 24.0])).tolist()
    slopes = nx.grad(lambda params: nx.sum(nx.tree.ravel(params)[0] ** 2))(params)
    assert nx.tree.ravel(slopes)[0].tolist() == (2 * vector).tolist()
    rows = nx.vmap(restore)(nx.stack([vector, 2 * vector]))
    assert rows["w"].tolist() == [params["w"].tolist(), (2 * params["w"]).tolist()]
    with pytest.raises(nx.ShapeError, match=r"vector: must have shape \(5,\); got \(4,\)"):
        restore(vector[1:])


def test_keys_that_are_not_valid_text_are_keys():
    """A lone surrogate cannot be encoded, so such a dict keeps its order."""
    leaves, structure = nx.tree.flatten({"b": 1, "\ud800": 2, "a": 3})
    assert leaves == [1, 2, 3]
    assert nx.tree.unflatten(structure, leaves) == {"b": 1, "\ud800": 2, "a": 3}


def test_errors_name_the_place_of_a_value_in_nested_containers():
    def wrong(_):
        return {"k": [Point(1.0, object())]}

    with pytest.raises(nx.ArgumentError, match=r"result\['k'\]\[0\]\.y: must be a tensor"):
        nx.jit(wrong)(1.0)
    with pytest.raises(nx.ArgumentError, match=r"\['k'\]\[0\]\.y"):
        nx.jit(lambda point: point)({"k": [Point(1.0, Unhashable())]})


class Unhashable:
    """Neither a container nor a static value."""

    __hash__ = None


class Mode(enum.Enum):
    TRAIN = "train"


class Stateful:
    """An object that is called, and compared by identity."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        return x


@pytest.mark.parametrize("part", [nx.tanh, len, pickle.dumps, Mode.TRAIN, nx.float32, "relu", None])
def test_parts_of_the_structure_are_returned(part):
    params = {"act": part, "w": nx.ones(2)}
    tripled = nx.jit(lambda params: {**params, "w": 3 * params["w"]})(params)
    assert tripled["act"] is part
    assert tripled["w"].tolist() == [3.0, 3.0]
    gradient = nx.grad(lambda params: nx.sum(2 * params["w"]))(params)
    assert gradient["act"] is part
    assert gradient["w"].tolist() == [2.0, 2.0]
    assert nx.vmap(lambda w: {"act": part, "w": w})(nx.ones(2))["act"] is part


@pytest.mark.parametrize("part", [Stateful(), {1}, object(), b"bytes"])
def test_other_objects_in_results_are_errors(part):
    with pytest.raises(nx.ArgumentError, match=r"result\['act'\]: must be a tensor, a number or"):
        nx.jit(lambda w: {"act": part, "w": w})(nx.ones(2))
    with pytest.raises(nx.ArgumentError, match="result: must be a tensor, a number or"):
        nx.jit(lambda w: nx.tanh)(nx.ones(2))
