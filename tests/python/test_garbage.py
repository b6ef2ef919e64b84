"""Reference cycles are collected when no other reference exists."""

import gc
import threading
import weakref

import pytest

import nxla as nx

ONES = nx.ones(3)


@pytest.fixture(autouse=True, scope="module")
def _freeze_existing_objects():
    """Freeze the objects of large packages, which would slow down each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Model:
    """A class that jits its own methods."""

    def __init__(self, **options):
        self.shown = 0
        self.step = nx.jit(self.forward, **options)

    def show(self, _):
        self.shown += 1

    def forward(self, x):
        return x + 1


class Hooked(Model):
    def forward(self, x):
        return nx.hook(x, self.show) + 1


class Listening(Model):
    def __init__(self, **options):
        super().__init__(hooks={"x": self.show}, **options)

    def forward(self, x):
        return nx.hook({"x": x}, "x")["x"] + 1


class Called(Model):
    def forward(self, x):
        return nx.runtime_call(self.compute, nx.template((3,), nx.float32), x)

    def compute(self, x):
        return x


class Compiled(Hooked):
    def __init__(self, **options):
        self.shown = 0
        self.step = nx.compile(self.forward, [ONES], **options)


class CompiledListening(Listening):
    def __init__(self, **options):
        self.shown = 0
        self.step = nx.compile(self.forward, [ONES], hooks={"x": self.show}, **options)


class Differentiated(Hooked):
    def forward(self, x):
        return nx.grad(lambda x: nx.sum(nx.hook(x * x, self.show)))(x)


class Gradient(Model):
    def __init__(self, **options):
        self.shown = 0
        self.step = nx.jit(nx.grad(self.forward), **options)

    def forward(self, x):
        return nx.sum(nx.hook(x * x, self.show))


class Nested(Model):
    def forward(self, x):
        nx.fori(0, 2, lambda i, c: nx.hook(c + i, self.show), x)
        return nx.vmap(lambda y: nx.hook(y, self.show))(x)


class Streaming(Model):
    def __init__(self, **options):
        self.shown = 0
        template = nx.template((3,), nx.float32)
        self.stream = nx.stream(lambda x, s: (nx.hook(x, self.show), s), template, 0, **options)

    def step(self, x):
        self.stream.send(x)
        self.stream.recv()
        self.stream.done()


MODELS = [
    Model, Hooked, Listening, Called, Compiled, CompiledListening, Differentiated, Gradient,
    Nested, Streaming,
]  # fmt: skip


@pytest.mark.parametrize("kind", MODELS)
def test_models_with_jitted_methods_are_collected(kind, compiler):
    models = []
    for _ in range(6):
        model = kind(compiler=compiler)
        model.step(ONES)
        assert kind in (Model, Called) or model.shown > 0
        models.append(weakref.ref(model))
    del model
    gc.collect()
    assert sum(model() is not None for model in models) == 0


def test_hooks_live_as_long_as_their_programs(compiler):
    seen = []

    def make_hooked(label):
        class Show:
            def __call__(self, value):
                seen.append((label, value.item()))

        show = Show()
        return lambda x: nx.hook(x * 2, show)

    compiled = nx.compile(make_hooked("compiled"), [1.0], compiler=compiler)
    expression = nx.debug_expr(make_hooked("expression"))(1.0)
    # A jitted function does not own the expressions that it uses, and is collected first.
    inlined = nx.jit(lambda x: nx.expr.call(expression, x), compiler=compiler)
    stages = nx.graph.split(nx.debug_expr(make_hooked("stages"))(1.0), lambda node: "none")
    inlined(3.0)
    del inlined
    gc.collect()
    compiled(1.0)
    expression.run(2.0, compiler=compiler)
    with nx.default_options(compiler=compiler):
        stages.run(4.0)
    assert seen == [("expression", 6), ("compiled", 2), ("expression", 4), ("stages", 8)]


def test_concurrent_garbage_collection_loses_no_hook():
    stop = threading.Event()
    counts = []

    def work():
        while not stop.is_set():
            model = Hooked()
            model.step(ONES)
            model.step(ONES)
            counts.append(model.shown)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        gc.collect()
    stop.set()
    for thread in threads:
        thread.join()
    assert counts
    assert set(counts) == {2}
