"""The code in the tables of the documentation runs, with a value for each name in it."""

import re
from pathlib import Path

import pytest

import nxla as nx

DOCS = Path(__file__).parents[2] / "docs"


#: The pages, and the column of their tables that contains code for nxla.
PAGES = {
    "guide/control-flow.md": 0,
    "guide/derivatives.md": 0,
    "guide/saving.md": 0,
    "guide/stages.md": 0,
    "learn/jax.md": 1,
    "learn/numpy.md": 1,
    "learn/pytorch.md": 1,
}


def example(x, power=2):
    return nx.sum(x**power)


def values_for(page, folder):
    """Return a value for each name in the tables of a page."""
    x = nx.tensor([[1.0, 2.0], [3.0, 4.0]])
    expression = nx.debug_expr(example)(x)
    stages = nx.graph.split(expression, nx.graph.Policy.every_ops(1))
    nx.save(folder / "x.npy", x)
    nx.save(folder / "x.npz", {"x": x})
    values = {
        "nx": nx, "x": x, "y": x, "xs": x, "f": example, "args": (x,), "i": 1, "n": 2,
        "tree": {"x": x}, "device": nx.devices()[0], "primals": (x,), "tangents": (x,),
        "policy": "products", "condition": True, "Policy": nx.graph.Policy, "bytes": 10**6,
        "Expression": nx.Expression, "Stage": nx.graph.Stage, "expression": expression,
        "stage": stages[0], "template": nx.template((2, 2)),
        "names": ("a",), "file": folder / "x.nxla", "path": folder / "x.npy", "dtype": "f32",
        "first": 0, "last": 3, "state": x[0], "then": lambda: x, "otherwise": lambda: x,
    }  # fmt: skip
    values |= {
        "guide/control-flow.md": {
            "body": lambda i, x: x + i, "step": lambda c, x: (c + x, c), "f": lambda x: x + 1,
        },
        "guide/derivatives.md": {"v": x},
        "learn/jax.md": {
            "body": lambda i, x: x + i, "carry": x[0], "step": lambda c, x: (c + x, c),
            "f": lambda x, power=2: x**power, "a": nx.ones((2, 2)), "shape": (4, 4),
            "starts": (0, 1), "sizes": (1, 1), "update": nx.ones((1, 1)),
        },
        "learn/numpy.md": {"y": x[0]},
        "learn/pytorch.md": {
            "loss": lambda p: example(p["x"]), "params": {"x": x}, "gradients": {"x": x},
            "update": lambda p, g: p - g, "x": nx.ones((1, 2)), "y": x,
            "mask": nx.tensor([[True, False]]), "index": nx.tensor([0, 0]),
            "indices": nx.tensor([[0]]), "logits": x, "labels": nx.tensor([0, 1]),
            "q": nx.ones((1, 2, 1, 3)), "k": nx.ones((1, 2, 1, 3)), "v": nx.ones((1, 2, 1, 3)),
            "a": nx.ones((1, 2)), "data": x, "updates": {"x": x},
            "images": nx.ones((1, 2, 4, 4)), "weights": nx.ones((2, 3, 2, 2)),
        },
    }.get(page, {})  # fmt: skip
    return values


def spans(page, column):
    """Yield the code spans of a column of the tables of a page."""
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        cells = [cell for cell in re.split(r"(?<!\\)\|", line)[1:-1] if line.startswith("|")]
        if len(cells) > column:
            yield from re.findall(r"`([^`]+)`", cells[column])


def is_nxla_code(span):
    return re.search(r"\bnx\.|^x\.|\bPolicy\.|\bStage\.|\bstage\.|xpression\.|^\{|^x =", span)


def values_of_span(span, values):
    """Return the values for a span whose names mean something else than in the other spans."""
    if "while_loop" in span:
        return values | {"condition": lambda x: nx.sum(x) < 9, "body": lambda x: x + 1}
    if re.search(r"[^.]\bdata\b(?!\.)", span) and "nx.data" not in span:
        x, stage, expression = (values[name] for name in ("x", "stage", "expression"))
        data = {
            "nx.from_safetensors": lambda: nx.to_safetensors({"x": x}),
            "nx.deserialize": lambda: nx.serialize(x),
            "nx.from_binary": lambda: nx.to_binary(x),
            "Expression.from_bytes": expression.to_bytes,
            "Stage.from_bytes": stage.to_bytes,
        }
        return values | {"data": data[span.partition("(")[0]]()}
    if "archive" in span:
        return values | {"path": values["path"].with_suffix(".npz")}
    return values


@pytest.mark.parametrize("page", PAGES)
def test_code_in_tables_runs(page, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Some spans write files.
    values, count, failures = values_for(page, tmp_path), 0, []
    for span in spans(page, PAGES[page]):
        if not is_nxla_code(span):
            continue
        count += 1
        try:
            exec(span + (" pass" if span[-1] == ":" else ""), values_of_span(span, values))
        except Exception as error:
            failures.append(f"{span}: {error!r}")
    capsys.readouterr()  # Some spans print.
    assert not failures, "\n".join(failures)
    assert count >= 3
