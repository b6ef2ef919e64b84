// Checks the invariants of layouts: boxes are inside of their groups, siblings do not overlap, and operands are
// above their users.

const { Graph } = require(process.argv[1]);
const graph = new Graph(JSON.parse(require("fs").readFileSync(0)));
const wrong = [];
for (const collapse of [() => graph.setAll(false), () => graph.setAll(true), () => graph.collapseTo(20)]) {
  graph.setAll(false);
  collapse();
  graph.layout();
  const { x, y, w, h, parent, visible } = graph;
  const inside = new Map();
  for (const item of visible) {
    const above = parent[item];
    if (!inside.has(above)) inside.set(above, []);
    inside.get(above).push(item);
    if (above >= 0 && (x[item] < x[above] || y[item] < y[above] ||
        x[item] + w[item] > x[above] + w[above] + 1e-6 || y[item] + h[item] > y[above] + h[above] + 1e-6)) {
      wrong.push(["outside", item]);
    }
    if (graph.itemAt(x[item] + 1, y[item] + 1) !== item) wrong.push(["hidden", item]);
  }
  for (const items of inside.values()) {
    items.forEach((a, k) => items.slice(k + 1).forEach((b) => {
      if (x[a] < x[b] + w[b] && x[b] < x[a] + w[a] && y[a] < y[b] + h[b] && y[b] < y[a] + h[a]) {
        wrong.push(["overlap", a, b]);
      }
    }));
  }
  for (const { from, to } of graph.lines) {
    if (parent[from] === parent[to] && !graph.isGroup[from] && !graph.isGroup[to] && y[from] >= y[to]) {
      wrong.push(["upwards", from, to]);
    }
  }
}
console.log(JSON.stringify({ wrong, shown: graph.visible.length, found: graph.search("tanh layer_1") }));
