"""The page of `nx.view`: its data, its layout in a JavaScript engine, and its use in a browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import nxla as nx

SCRIPTS = Path(nx.__file__).parent / "_explorer"
PAGES = Path(__file__).with_name("pages")
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
NODE = shutil.which("node") or ""

needs_node = pytest.mark.skipif(not NODE, reason="node is not installed")
needs_browser = pytest.mark.skipif(not BROWSER, reason="no browser is installed")


def data_of(page):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.html)
    return json.loads(text)


def table(page):
    """Return the items of a page as dicts."""
    data = data_of(page)
    columns = data["items"]
    texts = ("label", "op", "type", "line", "constants")
    return [
        {
            name: data["strings"][value] if name in texts else value
            for name, value in zip(columns, row, strict=True)
        }
        for row in zip(*columns.values(), strict=True)
    ]


def model(params, x):
    for k, w in enumerate(params):
        with nx.named_scope(f"layer_{k}"):
            x = nx.tanh(x @ w + 0.5)
    return nx.sum(x)


PARAMS = [nx.template((8, 8))] * 3
STEP = nx.debug_expr(nx.value_and_grad(model))(PARAMS, nx.template((4, 8)))


def test_items_have_types_lines_costs_and_scopes():
    rows = table(nx.view(STEP))
    paths = {}
    for index, row in enumerate(rows):
        parent_path = paths.get(row["parent"], "")
        paths[index] = f"{parent_path}/{row['label']}"
        assert row["parent"] < index
    products = [row for row in rows if row["op"] == "dot"]
    assert {row["type"] for row in products} == {"f32[4][8]", "f32[8][8]"}
    assert all(row["flops"] == 2 * 4 * 8 * 8 for row in products)
    assert {row["line"].split(":")[0] for row in products} == {"test_view.py"}
    (first,) = (p for p, row in zip(paths.values(), rows, strict=True)
                if row["op"] == "add" and p.startswith("/layer_0"))  # fmt: skip
    assert first == "/layer_0/add"
    assert "/gradient/layer_2/dot" in paths.values()
    # Scalars are shown at their consumers.
    assert not any(row["op"] == "constant" for row in rows)
    assert {row["constants"] for row in rows if row["op"] == "add"} >= {"0.5"}


def test_edges_carry_bytes_and_point_to_later_items():
    data = data_of(nx.view(STEP))
    edges = list(zip(*data["edges"].values(), strict=True))
    assert len(edges) == sum(
        operand.op != "constant" for node in STEP.nodes for operand in node.args
    )
    assert all(start < end for start, end, _ in edges)
    assert {size for _, _, size in edges} == {4 * 8 * 8, 4 * 4 * 8}


@pytest.mark.parametrize("group_by", ["line", "none"])
def test_grouping_options(group_by):
    rows = table(nx.view(STEP, group_by=group_by))
    names = [row["label"] for row in rows if row["group"]]
    assert (names == []) == (group_by == "none")
    assert all(re.match(r"test_view\.py:\d+|unknown line", name) for name in names)


def test_loops_contain_their_bodies():
    loop = nx.debug_expr(lambda x: nx.fori(0, 3, lambda i, x: nx.sin(x), x))(1.0)
    rows = table(nx.view(loop, group_by="none"))
    (loop_index,) = (index for index, row in enumerate(rows) if row["op"] == "while")
    assert [row["parent"] for row in rows if row["op"] == "sin"] == [loop_index]


def test_stages_with_a_simulation():
    stages = nx.graph.split(STEP, nx.graph.Policy.balanced(3))
    seconds = [0.25, 0.5, 0.125]
    timeline = stages.simulate(2, seconds=seconds)
    page = nx.view(stages, timeline=timeline, seconds=seconds, title="<b>")
    rows, data = table(page), data_of(page)
    assert [rows[item]["label"] for item in data["stages"]] == ["stage 0", "stage 1", "stage 2"]
    assert [rows[item]["seconds"] for item in data["stages"]] == seconds
    assert sorted(span[5] for span in data["spans"]) == [0, 1, 2]
    assert max(span[3] for span in data["spans"]) == timeline.makespan
    # Values that stages exchange are edges between their items.
    owner = []
    for index, row in enumerate(rows):
        is_stage = index in data["stages"]
        owner.append(index if is_stage else owner[row["parent"]] if row["parent"] >= 0 else -1)
    pairs = zip(data["edges"]["from"], data["edges"]["to"], strict=True)
    crossing = {(owner[a], owner[b]) for a, b in pairs if -1 < owner[a] != owner[b]}
    expected = {
        (data["stages"][before], data["stages"][after])
        for after, stage in enumerate(stages.stages)
        for before, _ in stage.arguments
        if before is not None
    }
    assert crossing == expected
    assert "<title>&lt;b&gt;</title>" in page.html


def test_view_of_a_profile(tmp_path):
    file = tmp_path / "trace.json"
    with nx.profile(file):
        nx.jit(lambda x: x * 4.75)(1.0).item()
    page = nx.view(file, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html
    names = {span[1]: span for span in data_of(page)["spans"]}
    assert {"trace <lambda>", "call <lambda>"} <= names.keys()
    assert all(span[2] <= span[3] for span in names.values())


def test_page_is_self_contained():
    page = nx.view(nx.debug_expr(lambda x: nx.annotate(x, "</script>@DATA@"))(1.0))
    assert re.findall(r"https?:|src=|import\(|fetch\(|XMLHttpRequest", page.html) == []
    assert page.html.count("</script>") == 2
    assert "srcdoc" in page._repr_html_()
    assert any("</script>@DATA@" in row["label"] for row in table(page))


def test_invalid_arguments_raise(tmp_path):
    with pytest.raises(nx.ArgumentError, match="view: group_by: must be one of 'scope', 'line'"):
        nx.view(STEP, group_by="layer")
    with pytest.raises(
        nx.ArgumentError, match=r"view: what: must be an expression, stages, .* int"
    ):
        nx.view(3)
    with pytest.raises(nx.ArgumentError, match="view: seconds: must be passed with stages"):
        nx.view(STEP, seconds=[1.0])
    stages = nx.graph.split(STEP, nx.graph.Policy.balanced(2))
    with pytest.raises(nx.ArgumentError, match="view: seconds: must have one entry for each of 2"):
        nx.view(stages, seconds=[1.0])
    for text in ("[]", '{"traceEvents": [1]}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(nx.FormatError, match=r"other\.json: must be a profile of nx\.profile"):
            nx.view(tmp_path / "other.json")
    with pytest.raises(FileNotFoundError):
        nx.view(tmp_path / "nothing.json")


def run_node(script, page):
    command = [NODE, "-e", (PAGES / script).read_text(), str(SCRIPTS / "layout.js")]
    text = json.dumps(data_of(page))
    found = subprocess.run(command, input=text, capture_output=True, check=True, text=True)
    return json.loads(found.stdout)


@needs_node
@pytest.mark.parametrize("group_by", ["scope", "line", "none"])
def test_layouts_are_valid(group_by):
    page = nx.view(STEP, group_by=group_by)
    report = run_node("check_layout.js", page)
    assert report["wrong"] == []
    if group_by == "scope":
        assert report["shown"] <= 20
        assert [table(page)[item]["label"] for item in report["found"]] == ["tanh"]


@needs_node
def test_layout_time_is_linear():
    def deep(x, count):
        for k in range(count):
            with nx.named_scope(f"block_{k // 50}"):
                x = nx.sin(x) + nx.cos(x)
        return x

    times = {}
    for count in (850, 3400):
        page = nx.view(nx.debug_expr(lambda x, count=count: deep(x, count))(1.0))
        nodes, times[count] = run_node("measure_layout.js", page)
        assert nodes >= 3 * count
    # The graph has four times as many nodes: quadratic time would be 16 times as long.
    assert times[3400] < 10 * times[850] + 20


def drive(page, folder, query="tanh layer_1"):
    file = folder / "page.html"
    script = f"const query = {json.dumps(query)};\n"
    script += (PAGES / "drive.js").read_text(encoding="utf-8")
    driven = page.html.replace("</body>", f"<script>\n{script}</script>\n</body>")
    file.write_text(driven, encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,800",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000", "--dump-dom",
        file.as_uri(),
    ]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    (text,) = re.findall(r'<pre id="report">(.*?)</pre>', found.stdout, re.DOTALL)
    report = json.loads(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert "error" not in report, report["error"]
    return report


@needs_browser
def test_page_in_a_browser(tmp_path):
    report = drive(nx.view(STEP), tmp_path)
    assert report["start"]["colors"] > 10
    assert re.match(r"\d+ nodes, \d+ shown", report["start"]["status"])
    assert report["collapsed"] < report["opened"] <= report["start"]["shown"]
    assert report["found"] == "1 found"
    assert report["selected"] == "layer_1 tanh"
    lines = report["tooltip"].split("\n")
    assert lines[:2] == ["tanh", "type: f32[4][8]"]
    assert lines[2].startswith("line: test_view.py:")
    assert "scope: layer_1" in lines
    assert "bytes: 128 B" in lines
    assert "from: add 0.5, 128 B" in lines
    assert report["closed"] == 1
    assert report["zoomed"] > 1
    assert report["panned"]
    assert report["heat"] > 5
    assert report["expanded"] == report["start"]["shown"]


@needs_browser
def test_stages_in_a_browser(tmp_path):
    stages = nx.graph.split(STEP, nx.graph.Policy.balanced(3))
    report = drive(nx.view(stages, timeline=stages.simulate(2)), tmp_path)
    assert report["spans"] == 3
    assert report["stage"] == "stage 0"


def linear(inputs, outputs):
    return {"w": nx.template((inputs, outputs)), "b": nx.template((outputs,))}


def norm_parameters():
    return {"scale": nx.template((384,)), "bias": nx.template((384,))}


def encoder_layer():
    square = ("query", "key", "value", "out")
    return {
        **{name: linear(384, 384) for name in square},
        "up": linear(384, 1536),
        "down": linear(1536, 384),
        "norm1": norm_parameters(),
        "norm2": norm_parameters(),
    }


def encode(params, tokens):
    """Apply the encoder of MiniLM: 6 layers of 384 features and 12 heads."""

    def dense(x, p):
        return x @ p["w"] + p["b"]

    def norm(x, p):
        deviation = nx.sqrt(nx.var(x, axis=-1, keepdims=True) + 1e-12)
        return (x - nx.mean(x, axis=-1, keepdims=True)) / deviation * p["scale"] + p["bias"]

    def heads(x):
        return nx.permute_dims(nx.reshape(x, (*tokens.shape, 12, 32)), (0, 2, 1, 3))

    with nx.named_scope("embeddings"):
        x = nx.take(params["words"], tokens, axis=0) + params["positions"][: tokens.shape[1]]
        x = norm(x, params["norm"])
    for k, layer in enumerate(params["layers"]):
        with nx.named_scope(f"layer_{k}"):
            with nx.named_scope("attention"):
                q, key, v = (heads(dense(x, layer[name])) for name in ("query", "key", "value"))
                scores = nx.nn.softmax(q @ nx.matrix_transpose(key) * 32**-0.5, axis=-1)
                mixed = nx.reshape(nx.permute_dims(scores @ v, (0, 2, 1, 3)), x.shape)
                x = norm(x + dense(mixed, layer["out"]), layer["norm1"])
            with nx.named_scope("mlp"):
                hidden = dense(x, layer["up"])
                hidden = 0.5 * hidden * (1.0 + nx.erf(hidden * 0.5**0.5))
                x = norm(x + dense(hidden, layer["down"]), layer["norm2"])
    return nx.mean(x, axis=1)


def training_step(params, tokens, targets):
    def loss(params):
        return nx.mean((encode(params, tokens) - targets) ** 2)

    value, gradient = nx.value_and_grad(loss)(params)
    return value, nx.tree.map(lambda p, g: p - 0.01 * g, params, gradient)


@needs_browser
def test_minilm_training_step_in_a_browser(tmp_path):
    params = {
        "words": nx.template((30522, 384)),
        "positions": nx.template((512, 384)),
        "norm": norm_parameters(),
        "layers": [encoder_layer() for _ in range(6)],
    }
    data = nx.template((8, 64), "s32"), nx.template((8, 384))
    step = nx.debug_expr(training_step)(params, *data)
    assert len(step.nodes) > 1000
    page = nx.view(step)
    assert len(page.html) < 300_000
    report = drive(page, tmp_path, "erf layer_4")
    assert report["start"]["colors"] > 10
    # The page starts with closed groups, such as the layers.
    assert report["collapsed"] < report["opened"]
    assert report["start"]["shown"] < len(step.nodes) / 4
    assert report["found"] == "1 found"
    assert report["selected"] == "layer_4/mlp erf"
    lines = report["tooltip"].split("\n")
    assert lines[:2] == ["erf", "type: f32[8][64][1536]"]
    assert lines[2].startswith("line: test_view.py:")
    assert "scope: layer_4/mlp" in lines
    assert report["closed"] == 1
    assert report["zoomed"] > 1
    assert report["panned"]
    assert report["heat"] > 5
    assert report["expanded"] > 1000
