"""Checks of settings, progress bars, and properties of traced values."""

import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nxla as nx
from nxla import _progress
from where import on_cpu


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"compiler": "xla", "wrong": 1}, 'option "wrong": does not exist; the compiler "xla" has'),
        ({"compiler": "evaluator", "precision": "high"}, 'compiler="xla" has it'),
        ({"compiler": "xla", "precision": "best"}, 'must be "default", "high" or "highest"'),
        ({"compiler": "xla", "precision": 3}, 'must be "default"'),
        ({"compiler": "xla", "cpu_device_count": 0}, "must be an integer of at least 1"),
        ({"compiler": "xla", "device": -1}, "must be an integer of at least 0"),
        ({"compiler": "xla", "kernels": "no"}, "must be a bool"),
        ({"compiler": "xla", "plugin": 5}, "must be a path"),
        ({"compiler": "xla", "preallocate": 1}, "must be a bool"),
        ({"compiler": "xla", "progress": 5}, "progress: must be True or False"),
        ({"wrong": 1}, 'option "wrong": does not exist; the compiler "xla" has plugin, '),
        ({"compile_above": 1}, 'option "compile_above": requires compiler="auto"'),
        ({"compiler": "nobody"}, 'got "nobody"'),
    ],
)
def test_invalid_options_raise_everywhere(options, text):
    before = nx.default_options()
    expression = nx.debug_expr(lambda x: x)(1.0)
    calls = [
        lambda: nx.jit(lambda x: x, **options),
        lambda: nx.compile(lambda x: x, [1.0], **options),
        lambda: nx.debug_expr(lambda x: x, **options),
        lambda: nx.stream(lambda x, s: (x, s), nx.template(()), 0.0, **options),
        lambda: nx.default_options(**options),
        lambda: nx.global_default_options(**options),
        lambda: nx.partitions_options(**options),
        lambda: nx.to_backend(**options),
        lambda: expression.run(1.0, **options),
    ]
    for call in calls:
        with pytest.raises(nx.OptionError, match=re.escape(text)):
            call()
    assert nx.default_options() == before


@on_cpu
def test_preallocate_requires_a_gpu_plugin():
    with pytest.raises(nx.OptionError, match=r'"preallocate".* requires a plugin for GPUs'):
        nx.jit(lambda x: x, compiler="xla", preallocate=True)(1.0)


def test_jit_accepts_partitions_options():
    with nx.default_options(compiler="evaluator"):
        for options in ({}, {"device": 0}, {"compiler": "xla", "device": 0}):
            try:
                parts = nx.partitions_options(**options)
            except nx.OptionError:
                with pytest.raises(nx.OptionError):
                    nx.jit(nx.sin, **options)(0.0)
                continue
            assert [nx.jit(nx.sin, **part)(0.0).item() for part in parts] == [0.0] * len(parts)


def test_settings_are_checked_for_the_selected_compiler():
    with nx.default_options(compiler="evaluator"):
        with pytest.raises(nx.OptionError, match='compiler="xla" has it'):
            nx.jit(lambda x: x, precision="high")
        with pytest.raises(nx.OptionError, match='no option "device"; compiler="xla" has it'):
            nx.jit(lambda x: x, device=0)
        with pytest.raises(nx.OptionError, match="it has no options"):
            nx.jit(lambda x: x, speed=11)
        nx.jit(lambda x: x, compiler="xla", precision="high")
    # Operands may select XLA for one function, but not for all that run with default options.
    for set_options in (nx.default_options, nx.global_default_options):
        with pytest.raises(nx.OptionError, match="must be set together with its compiler"):
            set_options(precision="high")
        with pytest.raises(nx.OptionError, match='compiler="xla" has it'):
            set_options(device="host", precision="high")
    nx.jit(lambda x: x, precision="high")

    class Own(nx.Compiler):
        name = "own"

        def compile(self, expression, options):
            if options != {"level": 3}:
                raise nx.OptionError(f"own: {options}")
            return lambda inputs: expression.run(*inputs)

    assert nx.jit(lambda x: x + 1, compiler=Own(), level=3)(1).item() == 2
    with pytest.raises(nx.OptionError, match="own: "):
        nx.jit(lambda x: x + 1, compiler=Own(), level=4)(1)
    with nx.default_options(compiler=Own(), level=3):
        assert nx.jit(lambda x: x + 2)(1).item() == 3


def test_default_options_merge_like_call_options():
    listen = [print]
    before = {"compiler": "xla", "precision": "high", "stages": "layers", "progress": True}
    with nx.default_options({**before, "hooks": {"x": listen.append}}):
        # A new compiler drops only the settings of the old one.
        with nx.default_options(compiler="evaluator"):
            options = nx.default_options()
            assert set(options) == {"compiler", "stages", "progress", "hooks"}
            assert options["compiler"] == "evaluator"
        with nx.default_options(compiler="xla", stages=None, progress=False, hooks={}):
            assert nx.default_options() == {"compiler": "xla", "precision": "high"}
        with nx.default_options(compiler=None):
            assert set(nx.default_options()) == {"stages", "progress", "hooks"}
        with nx.default_options(device="host"):
            assert nx.default_options()["device"] == "host"
            with nx.default_options(cpu_device_count=1):
                assert "device" not in nx.default_options()
            with nx.default_options(device=None):
                assert "device" not in nx.default_options()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def chain(x):
    for _ in range(6):
        x = nx.sin(x)
    return x


def test_progress_bars_of_stages(monkeypatch, compiler):
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    stages = nx.graph.split(nx.debug_expr(chain)(0.5), nx.graph.Policy.every_ops(1))

    def compiled(**options):
        salted = nx.jit(lambda x: chain(x) + next(salt), stages=nx.graph.Policy.every_ops(2))
        with nx.default_options(compiler=compiler, **options):
            return salted(0.5)

    def on_threads(**options):
        with ThreadPoolExecutor(1) as pool:
            return nx.graph.run(stages, 0.5, executor=pool, compiler=compiler, **options)

    def streamed(**options):
        return list(nx.graph.pipeline(stages, [0.5] * 3, compiler=compiler, **options))

    salt = iter(range(2, 10))
    calls = [
        (lambda **o: nx.graph.run(stages, 0.5, compiler=compiler, **o), "running stages", "6/6"),
        (on_threads, "running stages", "6/6"),
        (compiled, "compiling stages", "4/4"),
        (streamed, "batches", "3"),
    ]
    for call, label, total in calls:
        for screen in (Terminal(), io.StringIO()):
            monkeypatch.setattr("sys.stderr", screen)
            call(progress=True)
            shown = screen.getvalue()
            assert label in shown
            assert total in shown.split(label)[-1], shown
            assert shown.endswith("\n")
            assert ("█" in shown) == (screen.isatty() and label != "batches")
    # Progress is shown only on request, and only for long compilations.
    monkeypatch.setattr(_progress, "DELAY", 60.0)
    for call, _, _ in calls:
        monkeypatch.setattr("sys.stderr", screen := Terminal())
        call(progress=True)
        call(progress=False)
        assert screen.getvalue() == ""


def test_attributes_of_traced_values():
    seen = {}

    def f(x, y):
        total = nx.sum(x * y, axis=0)
        seen["op"], seen["args"] = total.op, total.args
        seen["attributes"] = total.attributes
        seen["product"] = [
            (arg.op, arg.attributes["index"], arg.context) for arg in total.args[0].args
        ]
        seen["line"] = total.line
        seen["free"] = (nx.iota((3,)).context, nx.iota((3,)).args)

        def body(state):
            i, s = state
            inner = s + x[0, 0]
            seen["inner"] = (inner.op, inner.context, i.context, (x + 1).context)
            return i + 1, inner

        return nx.while_loop(lambda state: state[0] < 3, body, (0, total[0]))

    nx.jit(f)(nx.ones((2, 3)), nx.ones((2, 3)))
    assert seen["op"] == "sum"
    assert seen["attributes"]["axes"] == (0,)
    assert sorted(seen["product"]) == [("parameter", 0, "root"), ("parameter", 1, "root")]
    assert re.search(r"test_options.py:\d+", seen["line"])
    assert seen["free"] == (None, [])
    op, inner, counter, outer = seen["inner"]
    assert op == "add"
    assert inner == counter == "while"
    assert outer == "root"
    with pytest.raises(nx.TraceError, match="finished trace"):
        _ = seen["args"][0].args


def test_map_over_elements(compiler):
    x, y = nx.tensor([[1.0, 2.0], [3.0, 4.0]]), nx.tensor([[1, 2], [3, 4]])
    f = nx.jit(
        lambda x, y: nx.map(lambda a, b: {"sum": a + b, "pair": nx.stack([a, a])}, x, y, axis=None),
        compiler=compiler,
    )
    found = f(x, y)
    assert found["sum"].tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert found["pair"].shape == (2, 2, 2)
    assert nx.map(lambda a: a * 2, x, axis=None).tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert nx.map(lambda a: a * 2, 3.0, axis=None).item() == 6.0
    assert nx.map(lambda a: a * 2, nx.zeros((0, 2)), axis=None).shape == (0, 2)
    columns = nx.map(nx.sum, x, axis=1)
    assert columns.tolist() == [4.0, 6.0]
    assert nx.map(nx.sum, x, axis=-2).tolist() == [3.0, 7.0]
    with pytest.raises(nx.ArgumentError, match=r"if axis is None; got \[2, 2\], \[2\]"):
        nx.map(lambda a, b: a + b, x, y[0], axis=None)


def test_stream_errors_name_the_chunk(compiler):
    stream = nx.stream(
        lambda x, s: (x["a"] + s, s + 1), {"a": nx.template((2,))}, 0, compiler=compiler
    )
    for chunk, text in (
        ({"a": nx.ones(3)}, r"stream: chunk\['a'\]: must be f32\[2\]; got f32\[3\]"),
        (nx.ones(2), r"stream: chunk: must be \{'a': \*\}; got a tensor"),
        ({"a": nx.template((2,))}, "stream: arguments: must have data; got the template"),
    ):
        with pytest.raises(nx.ArgumentError, match=text):
            stream.send(chunk)
    stream.send({"a": nx.ones(2)})
    assert stream.recv().tolist() == [1.0, 1.0]
    assert stream.done().item() == 1
    # A Python scalar as the first state takes the dtype that the step returns.
    half = nx.stream(lambda x, s: (s, s * 0.5 + x), nx.template((), "f64"), 1, compiler=compiler)
    half.send(nx.tensor(1.0, dtype="f64"))
    assert half.recv().dtype == nx.float64
    assert half.done().dtype == nx.float64


@pytest.mark.parametrize("set_defaults", [nx.default_options, nx.global_default_options])
@pytest.mark.parametrize("compiler", [None, "evaluator", "xla"])
def test_function_options_are_not_default_options(set_defaults, compiler):
    function_options = {
        "static_argnums": 1, "static_argnames": "x", "donate_argnums": 0, "donate_argnames": "x",
        "debug_nans": True, "max_compiles": 1, "on_max_compiles": "log", "on_conflict": "force",
        "on_unusable_donation": "warn", "in_shardings": (), "out_shardings": (),
    }  # fmt: skip
    before = set_defaults()
    for name, value in function_options.items():
        options = {name: value} if compiler is None else {name: value, "compiler": compiler}
        function = set_defaults.__name__
        expected = f"^{function}: {name}: must be an option of a single function"
        with pytest.raises(nx.OptionError, match=expected):
            set_defaults(options)
        with pytest.raises(nx.OptionError, match=expected):
            set_defaults(**options)
        assert set_defaults() == before
    with set_defaults(**dict.fromkeys(function_options)):
        assert set_defaults() == before


def test_options_page_lists_all_settings_and_variables():
    root = Path(__file__).parents[2]
    page = (root / "docs/reference/options.md").read_text(encoding="utf-8")
    settings = nx.jit.__doc__.partition('The settings of the compiler ``"xla"``')[2]
    heads = re.findall(r"^ +(``\w+``(?:, ``\w+``)*)$", settings, re.MULTILINE)
    documented = {name for head in heads for name in re.findall(r"\w+", head)}
    assert {"plugin", "precision", "cache_bytes"} <= documented
    sources = (path.read_text(encoding="utf-8") for path in (root / "python").rglob("*.py"))
    variables = {name for text in sources for name in re.findall(r"\bNXLA_[A-Z_]+", text)}
    assert {"NXLA_COMPILER", "NXLA_CACHE_DIR"} <= variables
    assert [name for name in sorted(documented | variables) if f"`{name}`" not in page] == []
