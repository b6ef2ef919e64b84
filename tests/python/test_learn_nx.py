"""Tests of the pages for users of Nx: every name exists, and every line of Python runs."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import nxla as nx
from where import DEVICE, PLATFORM

ROOT = Path(__file__).parents[2]


def cells(line):
    """Return the cells of a table row, without the code marks."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def spans(text):
    """Return the code spans of a string."""
    return [span.replace(r"\|", "|") for span in re.findall(r"`([^`]+)`", text)]


def tables(path):
    """Yield each row of the tables of a page that have a column for Python."""
    head = None
    for line in (ROOT / path).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = cells(line)
        elif "Python" in head and not line.startswith("|---"):
            row = cells(line)
            assert len(row) == len(head), line
            yield dict(zip(head, row, strict=True))


class Callbacks:
    """A compiler as the document describes it."""

    name = "callbacks of the page"

    def __jit__(self, key, variables, fun, args_list, options):
        expression = fun(variables)
        return [expression.run(*(arg() for arg in args)) for args in args_list]

    def __compile__(self, key, variables, fun, options):
        expression = fun(variables)
        return lambda args_list: [expression.run(*(arg() for arg in args)) for args in args_list]

    def __stream__(self, key, template, initial, variables, fun, args_list, options):
        return [nx.Stream(key, template, args_list[0][0](), {})]

    def __partitions_options__(self, options):
        return [options]

    def __to_backend__(self, options):
        return "host"


class Table:
    def __init__(self, columns):
        self.columns = columns


def names():
    """Return the variables that the code in the tables may use."""
    fun = lambda x: nx.sum(nx.sin(x))  # noqa: E731
    step = lambda x, state: (x, state + x)  # noqa: E731
    x, y = nx.tensor([1.0, 2.0, 3.0]), nx.tensor([0.5, 0.25, 0.125])
    expression = nx.debug_expr(fun)(x)
    running = nx.stream(step, nx.template((3,)), x)
    running.send(x)

    def loop():
        start = nx.expr.parameter((), "s32")
        scope = nx.expr.context()
        n = nx.expr.parameter(start, context=scope)
        return nx.expr.while_(start, scope, n, n < 100, n * 2)

    return {
        "nx": nx, "fun": fun, "step": step, "x": x, "y": y, "w": y, "b": y, "matrix": nx.eye(3),
        "pair": lambda x: (fun(x), x), "flag": nx.tensor(True), "expression": expression,
        "stages": nx.graph.split(expression, lambda node: "after" if node.op == "sin" else "none"),
        "every_third": lambda node, n: ("after" if n % 3 == 0 else "none", n + 1),
        "callbacks": Callbacks(), "running": running, "loop": loop, "Table": Table,
        "flatten": lambda t: (list(t.columns), None), "unflatten": lambda _, c: Table(c),
        "device": DEVICE, "mesh": nx.Mesh(x=1), "container": {"x": x}, "key": nx.random.key(0),
        "f": fun, "base": 2.0, "axis": 0, "widths": [(1, 1)],
    }  # fmt: skip


def run(code):
    """Run a line of Python."""
    namespace = names()
    before = dict(namespace)
    thread_options, global_options = nx.default_options(), nx.global_default_options()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.ExitStack() as stack:
            stack.callback(nx.set_print_options)
            if code.startswith("running.") and "send" not in code:
                if "done" in code:
                    namespace["running"].recv()
                else:
                    stack.callback(namespace["running"].cancel)
            exec(code, namespace)
    finally:
        nx.default_options(thread_options)
        nx.global_default_options(global_options)
        before["running"].cancel()


LINES = [(row["Nx"], span) for row in tables("docs/learn/nx.md") for span in spans(row["Python"])]


def test_page_has_a_row_for_every_nx_name():
    text = " ".join(row["Nx"] for row in tables("docs/learn/nx.md"))
    for name in [
        "jit", "jit_apply", "compile", "debug_expr", "debug_expr_apply", "grad", "value_and_grad",
        "default_options", "global_default_options", "to_backend", "stream", "shard_jit",
        "shard_jit_apply", "defn", "deftransform", "hooks:", "compiler:", "on_conflict:",
        ":raise", ":force", ":reuse", "template", "donatable", "Nx.Container", "Nx.LazyContainer",
        "cond", "if", "while", "hook", "create_token", "hook_token", "attach_token", "print_value",
        "print_expr", "runtime_call", "stop_grad", "custom_grad", "Nx.Stream.send",
        "Nx.Stream.recv", "Nx.Stream.done", "__jit__", "__compile__", "__stream__",
        "__partitions_options__", "__to_backend__", "current()", "defn?()", "args_list",
        "Expr.parameter", "Expr.constant", "Expr.tensor", "Expr.metadata", "Expr.tuple", "elem",
        "Expr.cond", "Expr.while", "fun", "apply_args", "scope_ids", "inspect", "data.id",
        "data.context", "data.op", "data.args", "Graph.split(expr, fun)",
        "Graph.split(expr, acc, fun)", "Graph.run", ":before", ":after", ":both", ":none",
        "stage.expr", "stage.arguments", "client:", "device_id:", "default_backend",
        "backend_copy", "backend_transfer", "backend_deallocate", "to_batched", "leftover:",
        "to_binary", "from_binary", "optional",
    ]:  # fmt: skip
        assert name in text, name


def test_every_row_has_python_code():
    for row in tables("docs/learn/nx.md"):
        assert spans(row["Python"]), row


@pytest.mark.parametrize(("nx_name", "code"), LINES, ids=[code for _, code in LINES])
def test_every_line_of_python_runs(nx_name, code):
    if PLATFORM != "cpu" and "mesh" in code:
        pytest.skip("the mesh requires host devices")
    run(code)


def test_code_in_prose_exists_or_runs():
    text = (ROOT / "docs/learn/nx.md").read_text(encoding="utf-8")
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    prose = re.sub(r"```.*?```", "", prose, flags=re.DOTALL)
    for span in spans(prose):
        if span.startswith("nx.") and re.fullmatch(r"[\w.]+", span):
            value = nx
            for part in span.split(".")[1:]:
                value = getattr(value, part)
        elif span.startswith("nx."):
            run(f"nx.jit(lambda x, f=print: {span})(x)")


NOTES = sorted(
    {
        span
        for row in tables("docs/names.md")
        # Names after `Rust:` are names of Rust, which another test resolves.
        for span in spans(row["note"].partition("Rust:")[0])
        if re.search(r"[.(\[]", span)
    }
)


def test_table_of_names_has_notes():
    assert len(NOTES) > 50


@pytest.mark.parametrize("code", NOTES)
def test_code_in_notes_of_the_table_runs(code):
    run(code)


def test_table_of_names_has_streams_backends_and_clients():
    names = {spans(row["Nx"])[0] for row in tables("docs/names.md")}
    required = {
        "Stream": ["send", "recv", "done"],
        "Defn.Compiler": [
            "__jit__", "__compile__", "__stream__", "__partitions_options__", "__to_backend__",
            "__shard_jit__", "current", "defn?",
        ],
        "EXLA": ["jit", "jit_apply", "compile", "shard_jit", "to_mlir_module", "cached?"],
        "EXLA.Backend": [
            "init", "constant", "from_binary", "to_binary", "backend_copy", "backend_transfer",
            "backend_deallocate", "to_batched", "inspect", "concatenate", "stack", "slice",
            "put_slice", "optional", "block", "from_pointer", "to_pointer",
        ],
        "EXLA.Client": [
            "fetch!", "default_name", "get_supported_platforms", "get_memory_statistics",
            "set_preferred_platform",
        ],
        "Defn.Expr": [
            "parameter", "constant", "tensor", "metadata", "tuple", "fun", "cond", "while", "id",
            "context",
        ],
    }  # fmt: skip
    for module, functions in required.items():
        assert {f"{module}.{function}" for function in functions} <= names
