// The page: reads the data, and connects the views with the pointer, the keys and the controls.

const element = (id) => document.getElementById(id);
const data = JSON.parse(element("data").textContent);
const graph = new Graph(data);
const view = new GraphView(element("graph"), graph);
const times = data.spans.length ? new TimeView(element("timeline"), data.spans) : null;
const tooltip = element("tooltip");
// The number of items up to which the page starts with all groups open.
const OPEN = 150;
let matches = [], current = -1;

function relayout() {
  const begin = performance.now();
  graph.layout();
  view.laidOut = performance.now() - begin;
  status();
  view.request();
}

function status() {
  const nodes = graph.total.nodes.reduce((sum, n, item) => sum + (graph.parent[item] < 0 ? n : 0), 0);
  element("status").textContent = graph.count
    ? `${nodes} nodes, ${graph.visible.length} shown, ${graph.lines.length} edges`
    : `${data.spans.length} spans`;
}

function describe(item) {
  const { items } = data;
  const rows = [graph.label(item)];
  const add = (name, text) => { if (text) rows.push(`${name}: ${text}`); };
  add("type", graph.text("type", item));
  add("line", graph.text("line", item));
  add("scope", graph.path(item));
  add("flops", graph.total.flops[item] ? countText(graph.total.flops[item]) : "");
  add("bytes", items.bytes[item] ? bytesText(items.bytes[item]) : "");
  add("time", items.seconds[item] === null ? "" : timeText(items.seconds[item]));
  if (graph.isGroup[item]) add("nodes", String(graph.total.nodes[item]));
  for (const [name, end, other] of [["from", "to", "from"], ["to", "from", "to"]]) {
    const near = graph.lines.filter((line) => line[end] === item);
    near.slice(0, 6).forEach((line) => add(name, `${graph.label(line[other])}, ${bytesText(line.bytes)}`));
    if (near.length > 6) rows.push(`${name}: ${near.length - 6} more`);
  }
  return rows.join("\n");
}

function show(text, event) {
  tooltip.hidden = !text;
  if (!text) return;
  tooltip.textContent = text;
  const { offsetWidth: width, offsetHeight: height } = tooltip;
  tooltip.style.left = `${Math.max(Math.min(event.clientX + 14, innerWidth - width - 8), 0)}px`;
  tooltip.style.top = `${Math.max(Math.min(event.clientY + 14, innerHeight - height - 8), 0)}px`;
}

// Panning by dragging and zooming with the wheel; calls `onmove` for a pointer that is not dragging.
function navigate(canvas, target, onmove, onclick) {
  let last = null, moved = false;
  canvas.addEventListener("pointerdown", (event) => {
    last = [event.clientX, event.clientY];
    moved = false;
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return onmove(event);
    const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
    moved = moved || Math.abs(dx) + Math.abs(dy) > 3;
    last = [event.clientX, event.clientY];
    target.pan(dx, dy);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!moved) onclick(event);
    last = null;
  });
  canvas.addEventListener("pointerleave", () => show(""));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    target.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.offsetX, event.offsetY);
  }, { passive: false });
}

const itemUnder = (event) => graph.itemAt(...view.point(event.offsetX, event.offsetY));

navigate(view.canvas, view, (event) => {
  const item = itemUnder(event);
  if (item !== view.hovered) {
    view.hovered = item;
    view.request();
  }
  show(item < 0 ? "" : describe(item), event);
}, (event) => {
  view.selected = itemUnder(event);
  view.request();
});

view.canvas.addEventListener("dblclick", (event) => {
  let item = itemUnder(event);
  if (item >= 0 && !graph.isGroup[item]) item = graph.parent[item];
  if (item < 0) return;
  toggle(item);
});

// Opens or closes a group, whose corner stays where it is.
function toggle(item) {
  const before = [graph.x[item], graph.y[item]];
  graph.collapsed[item] = graph.collapsed[item] ? 0 : 1;
  relayout();
  view.left += graph.x[item] - before[0];
  view.top += graph.y[item] - before[1];
}

function select(item) {
  graph.reveal(item);
  relayout();
  view.selected = item;
  view.center(item);
}

function search(query) {
  matches = graph.search(query);
  current = -1;
  view.marked = new Set(matches.map((item) => graph.shown(item)));
  element("found").textContent = query ? `${matches.length} found` : "";
  const list = element("results");
  list.replaceChildren(...matches.slice(0, 50).map((item, index) => {
    const row = document.createElement("li");
    row.textContent = `${graph.label(item)}  ${graph.text("type", item)}  ${graph.path(item)}  ${graph.text("line", item)}`;
    row.addEventListener("pointerdown", () => step(index));
    return row;
  }));
  list.hidden = !matches.length;
  view.request();
}

function step(index) {
  if (!matches.length) return;
  current = (index + matches.length) % matches.length;
  [...element("results").children].forEach((row, k) => row.classList.toggle("current", k === current));
  select(matches[current]);
  view.marked = new Set(matches.map((item) => graph.shown(item)));
}

element("search").addEventListener("input", (event) => search(event.target.value));
element("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") step(current + (event.shiftKey ? -1 : 1));
  if (event.key === "Escape") element("results").hidden = true;
});
element("search").addEventListener("blur", () => { element("results").hidden = true; });
element("color").addEventListener("change", (event) => {
  view.color = event.target.value;
  view.request();
});
element("fit").addEventListener("click", () => {
  view.fit();
  if (times) times.fit();
});
for (const [id, collapsed] of [["collapse", true], ["expand", false]]) {
  element(id).addEventListener("click", () => {
    graph.setAll(collapsed);
    relayout();
    view.fit();
  });
}
document.addEventListener("keydown", (event) => {
  if (event.target.tagName !== "INPUT" && event.key === "/") {
    event.preventDefault();
    element("search").focus();
  }
});

if (times) {
  element("times").hidden = false;
  element("times").style.height = `min(${times.content + 8}px, 35%)`;
  if (!graph.count) {
    document.querySelector("main").hidden = true;
    element("times").style.cssText = "height: auto; flex: 1; max-height: none";
  }
  const spanText = (span) => `${span.name}\n${timeText(span.end - span.start)}\n${span.lane}\n${span.detail}`;
  navigate(times.canvas, times, (event) => {
    const span = times.spanAt(event.offsetX, event.offsetY);
    if (span !== times.hovered) {
      times.hovered = span;
      times.draw();
    }
    show(span ? spanText(span) : "", event);
  }, (event) => {
    const span = times.spanAt(event.offsetX, event.offsetY);
    if (span && span.stage >= 0 && span.stage < data.stages.length) select(data.stages[span.stage]);
  });
}

graph.setAll(false);
graph.collapseTo(OPEN);
relayout();
const resize = () => {
  view.resize();
  if (times) times.resize();
};
addEventListener("resize", resize);
resize();
view.start();
