// Drives the page with pointer and keyboard events, and reports its state.
// The test defines the text to search, `query`.

const report = {}, wait = () => new Promise((done) => setTimeout(done, 30));
const pointer = (type, item, more = {}) => {
  const x = (graph.x[item] + Math.min(graph.w[item], 20) / 2 - view.left) * view.scale;
  const y = (graph.y[item] + 4 - view.top) * view.scale;
  const box = view.canvas.getBoundingClientRect();
  const event = new (type === "wheel" ? WheelEvent : type === "dblclick" ? MouseEvent : PointerEvent)(
    type, { bubbles: true, clientX: box.left + x, clientY: box.top + y, ...more });
  view.canvas.dispatchEvent(event);
};
const pixels = () => {
  const { width, height } = view.canvas;
  const data = view.canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const colors = new Set();
  for (let k = 0; k < data.length; k += 4) colors.add((data[k] << 16) | (data[k + 1] << 8) | data[k + 2]);
  return colors.size;
};
(async () => {
  // The page draws in its first frame, which a busy machine delays.
  for (let times = 0; times < 100 && pixels() <= 1; times++) await wait();
  report.start = { shown: graph.visible.length, colors: pixels(), status: element("status").textContent };
  element("collapse").click();
  await wait();
  report.collapsed = graph.visible.length;
  const box = element("search");
  box.value = query;
  box.dispatchEvent(new Event("input"));
  report.found = element("found").textContent;
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  await wait();
  report.selected = graph.path(view.selected) + " " + graph.label(view.selected);
  report.opened = graph.visible.length;
  pointer("pointermove", view.selected);
  await wait();
  report.tooltip = element("tooltip").hidden ? "" : element("tooltip").textContent;
  const group = graph.parent[view.selected];
  pointer("dblclick", group);
  await wait();
  report.closed = graph.collapsed[group];
  const [scale, left] = [view.scale, view.left];
  pointer("wheel", group, { deltaY: -200 });
  report.zoomed = view.scale / scale;
  pointer("pointerdown", group);
  view.canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: 5, clientY: 5 }));
  view.canvas.dispatchEvent(new PointerEvent("pointerup", { clientX: 5, clientY: 5 }));
  report.panned = view.left !== left;
  element("color").value = "flops";
  element("color").dispatchEvent(new Event("change"));
  await wait();
  report.heat = pixels();
  report.spans = times ? times.spans.length : 0;
  if (times) {
    const span = times.spans[0];
    const at = [times.x((span.start + span.end) / 2), span.top + 4], box = times.canvas.getBoundingClientRect();
    for (const type of ["pointerdown", "pointerup"]) {
      times.canvas.dispatchEvent(new PointerEvent(type, { clientX: box.left + at[0], clientY: box.top + at[1] }));
    }
    report.stage = graph.text("label", view.selected);
  }
  element("expand").click();
  await wait();
  report.expanded = graph.visible.length;
})().catch((error) => { report.error = String(error.stack); }).finally(() => {
  const text = document.createElement("pre");
  text.id = "report";
  text.textContent = JSON.stringify(report);
  document.body.append(text);
});
