"""Rules that hold for every container, number of steps, signature and mode of execution."""

import itertools
from collections import Counter, OrderedDict, defaultdict

import pytest

import nxla as nx

B, A = nx.tensor([1.0, 2.0, 3.0]), nx.tensor([10.0, 20.0, 30.0])


class Renamed(dict):
    """A subclass of dict that is not registered."""


class Backwards(dict):
    """A registered subclass of dict whose leaves are in reverse order."""


nx.tree.register_container(
    Backwards,
    lambda entries: (list(entries.values())[::-1], tuple(entries)),
    lambda keys, children: Backwards(zip(keys, children[::-1], strict=True)),
)

DICTS = {
    "dict": dict,
    "OrderedDict": OrderedDict,
    "defaultdict": lambda items: defaultdict(None, items),
    "unregistered": Renamed,
    "registered": Backwards,
}
KEYS = [("b", "a"), ("a", "b"), (2, 1), ((1,), "x")]
pairs = pytest.mark.parametrize(
    ("kind", "spec_kind", "keys"),
    [
        pytest.param(kind, spec, keys, id=f"{kind}-{spec}-{keys}")
        for kind, spec, keys in itertools.product(DICTS, DICTS, KEYS)
    ],
)


@pairs
def test_axes_of_a_dict_belong_to_its_keys(kind, spec_kind, keys):
    first, second = keys
    argument = DICTS[kind]([(first, B), (second, A)])
    # The spec lists its keys in the other order.
    spec = DICTS[spec_kind]([(second, None), (first, 0)])
    mapped = nx.vmap(lambda d: d[first] + nx.sum(d[second]), in_axes=(spec,))
    assert mapped(argument).tolist() == [61.0, 62.0, 63.0]

    results = nx.vmap(lambda x: DICTS[kind]([(first, x), (second, nx.sum(A))]), out_axes=spec)(B)
    assert results[first].tolist() == B.tolist()
    assert results[second].item() == 60.0


@pairs
def test_shardings_of_a_dict_belong_to_its_keys(kind, spec_kind, keys):
    mesh = nx.Mesh(data=2)
    rows = mesh.sharding("data")
    first, second = keys
    x, y = nx.arange(4), nx.arange(4, 8)
    spec = DICTS[spec_kind]([(second, None), (first, rows)])
    parts = nx.shard(DICTS[kind]([(first, x), (second, y)]), spec)
    assert parts[first].sharding == rows
    assert parts[second].sharding != rows
    assert (parts[first].tolist(), parts[second].tolist()) == (x.tolist(), y.tolist())


def test_counted_dicts_are_dicts():
    axes = Counter(b=0, a=1)
    x = nx.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert nx.vmap(lambda d: d["b"], in_axes=(axes,))({"a": x, "b": x}).tolist() == x.tolist()
