// The graph: items in groups, and a layered layout of the visible items. Nothing here needs a browser.

const ROW = 26, GAP_X = 14, GAP_Y = 30, PAD = 12, HEAD = 22, CHAR = 7.2, MAX_ROW = 40;

class Graph {
  constructor(data) {
    const { items, edges, strings } = data;
    this.data = data;
    this.count = items.parent.length;
    this.parent = items.parent;
    this.isGroup = items.group;
    this.text = (column, item) => strings[items[column][item]];
    this.edges = edges;
    this.children = new Map([[-1, []]]);
    for (let i = 0; i < this.count; i++) {
      if (this.isGroup[i]) this.children.set(i, []);
      this.children.get(this.parent[i]).push(i);
    }
    this.depth = new Int32Array(this.count);
    this.total = { flops: new Float64Array(this.count), nodes: new Int32Array(this.count) };
    const sum = new Float64Array(this.count);
    for (let i = 0; i < this.count; i++) {
      this.depth[i] = this.parent[i] < 0 ? 0 : this.depth[this.parent[i]] + 1;
    }
    // A group comes before its items, so that sums are complete in reverse order.
    for (let i = this.count - 1; i >= 0; i--) {
      this.total.flops[i] += items.flops[i];
      if (!this.children.get(i)?.length) {
        this.total.nodes[i] += 1;
        sum[i] += i;
      }
      const above = this.parent[i];
      if (above >= 0) {
        this.total.flops[above] += this.total.flops[i];
        this.total.nodes[above] += this.total.nodes[i];
        sum[above] += sum[i];
      }
    }
    // A group may begin early, with the steps of an optimizer, and read the values of later groups.
    const mean = (item) => sum[item] / this.total.nodes[item];
    for (const items of this.children.values()) items.sort((a, b) => mean(a) - mean(b) || a - b);
    this.collapsed = new Uint8Array(this.count);
    this.x = new Float64Array(this.count);
    this.y = new Float64Array(this.count);
    this.w = new Float64Array(this.count);
    this.h = new Float64Array(this.count);
    this.visible = [];
    this.lines = [];
  }

  // The item that shows an item: itself, or its outermost collapsed group.
  shown(item) {
    let found = item;
    for (let i = this.parent[item]; i >= 0; i = this.parent[i]) if (this.collapsed[i]) found = i;
    return found;
  }

  setAll(collapsed) {
    for (const item of this.children.keys()) {
      // A region of a loop stays closed: its items say little without the loop.
      if (item >= 0) this.collapsed[item] = collapsed || this.text("op", item) === "while" ? 1 : 0;
    }
  }

  // Expands the groups around an item.
  reveal(item) {
    for (let i = this.parent[item]; i >= 0; i = this.parent[i]) this.collapsed[i] = 0;
  }

  // Collapses groups, the deepest first, until at most `limit` items are visible.
  collapseTo(limit) {
    const groups = [...this.children.keys()].filter((item) => item >= 0);
    for (const group of groups) if (this.text("op", group) === "input") this.collapsed[group] = 1;
    groups.sort((a, b) => this.depth[b] - this.depth[a] || a - b);
    let count = this.count;
    for (const group of groups) {
      if (count <= limit) break;
      this.collapsed[group] = 1;
      count -= this.children.get(group).length;
    }
  }

  layout() {
    const shownOf = new Int32Array(this.count);
    for (let i = 0; i < this.count; i++) {
      const above = this.parent[i];
      // The outermost collapsed group of the parent, or the parent itself if it is collapsed.
      const hidden = above >= 0 && (shownOf[above] !== above || this.collapsed[above]);
      shownOf[i] = hidden ? shownOf[above] : i;
    }
    this.shownOf = shownOf;
    this._merge(shownOf);
    const order = [];
    for (let i = 0; i < this.count; i++) if (shownOf[i] === i) order.push(i);
    this.visible = order;
    // Inner groups first: their sizes are those of their boxes.
    for (let k = order.length - 1; k >= 0; k--) this._box(order[k]);
    this._place(-1);
    for (const item of order) {
      const above = this.parent[item];
      if (above >= 0) {
        this.x[item] += this.x[above];
        this.y[item] += this.y[above];
      }
    }
    this.width = this.box.w;
    this.height = this.box.h;
  }

  // Merges edges by the visible items at their ends, and assigns each to the group that contains both.
  _merge(shownOf) {
    const { from, to, bytes } = this.edges;
    const merged = new Map();
    this.inside = new Map();
    this.lines = [];
    for (let e = 0; e < from.length; e++) {
      const a = shownOf[from[e]], b = shownOf[to[e]];
      if (a === b) continue;
      const key = a * this.count + b;
      let line = merged.get(key);
      if (!line) {
        line = { from: a, to: b, bytes: 0, count: 0 };
        merged.set(key, line);
        this.lines.push(line);
        this._between(a, b);
      }
      line.bytes += bytes[e];
      line.count += 1;
    }
  }

  // Records an edge between the two items of one group that contain the ends.
  _between(a, b) {
    let left = a, right = b;
    while (this.depth[left] > this.depth[right]) left = this.parent[left];
    while (this.depth[right] > this.depth[left]) right = this.parent[right];
    if (left === right) return; // One end contains the other.
    while (this.parent[left] !== this.parent[right]) {
      left = this.parent[left];
      right = this.parent[right];
    }
    const group = this.parent[left];
    if (!this.inside.has(group)) this.inside.set(group, []);
    this.inside.get(group).push(left, right);
  }

  _box(item) {
    if (this.isGroup[item] && !this.collapsed[item]) {
      this._place(item);
      const title = this.text("label", item).length * CHAR + 2 * PAD;
      this.w[item] = Math.max(this.box.w, title) + 2 * PAD;
      this.h[item] = this.box.h + 2 * PAD + HEAD;
      return;
    }
    const label = this.label(item);
    this.w[item] = Math.min(Math.max(label.length * CHAR + 16, 40), 320);
    this.h[item] = ROW;
  }

  label(item) {
    const label = this.text("label", item);
    if (this.isGroup[item] && this.collapsed[item]) return `${label} (${this.total.nodes[item]})`;
    const constants = this.text("constants", item);
    return constants ? `${label} ${constants}` : label;
  }

  // Places the items of a group relative to its corner, in layers by the longest path.
  _place(group) {
    const items = this.children.get(group);
    const at = new Map(items.map((item, index) => [item, index]));
    const pairs = this.inside.get(group) || [];
    const before = items.map(() => []), after = items.map(() => []);
    for (let e = 0; e < pairs.length; e += 2) {
      const a = at.get(pairs[e]), b = at.get(pairs[e + 1]);
      // Two groups may read each other's values; the edge against the order has no influence.
      if (a < b) {
        before[b].push(a);
        after[a].push(b);
      }
    }
    const layer = layers(before, after);
    const rows = order(layer, before, after);
    const corner = group < 0 ? [0, 0] : [PAD, PAD + HEAD];
    this.box = this._coordinates(items, rows, before, after, corner);
  }

  _coordinates(items, rows, before, after, corner) {
    const center = new Float64Array(items.length);
    let y = corner[1];
    for (const row of rows) {
      let x = 0, height = 0;
      for (const index of row) {
        center[index] = x + this.w[items[index]] / 2;
        x += this.w[items[index]] + GAP_X;
        height = Math.max(height, this.h[items[index]]);
        this.y[items[index]] = y;
      }
      y += height + GAP_Y;
    }
    for (let sweep = 0; sweep < 4; sweep++) {
      const down = sweep % 2 === 0;
      for (const row of down ? rows : [...rows].reverse()) {
        straighten(row, center, down ? before : after, (index) => this.w[items[index]]);
      }
    }
    let left = Infinity, right = -Infinity;
    for (let index = 0; index < items.length; index++) {
      left = Math.min(left, center[index] - this.w[items[index]] / 2);
      right = Math.max(right, center[index] + this.w[items[index]] / 2);
    }
    for (let index = 0; index < items.length; index++) {
      this.x[items[index]] = center[index] - this.w[items[index]] / 2 - left + corner[0];
    }
    return items.length ? { w: right - left, h: y - GAP_Y - corner[1] } : { w: 0, h: 0 };
  }

  // The innermost visible item at a point.
  itemAt(x, y) {
    let found = -1, items = this.children.get(-1);
    for (;;) {
      const next = items.find(
        (i) => x >= this.x[i] && x <= this.x[i] + this.w[i] && y >= this.y[i] && y <= this.y[i] + this.h[i]
      );
      if (next === undefined) return found;
      found = next;
      if (!this.isGroup[next] || this.collapsed[next]) return found;
      items = this.children.get(next);
    }
  }

  // The indices of items whose texts contain all words.
  search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const found = [];
    for (let i = 0; i < this.count; i++) {
      const text = this.haystack(i);
      if (words.every((word) => text.includes(word))) found.push(i);
    }
    return found;
  }

  haystack(item) {
    const columns = ["label", "op", "type", "line"].map((column) => this.text(column, item));
    return `${columns.join(" ")} ${this.path(item)}`.toLowerCase();
  }

  path(item) {
    const names = [];
    for (let i = this.parent[item]; i >= 0; i = this.parent[i]) names.unshift(this.text("label", i));
    return names.join("/");
  }
}

// The layer of each item: one below its lowest operand. An item without operands is just above its first user.
function layers(before, after) {
  const layer = new Int32Array(before.length);
  for (let index = 0; index < before.length; index++) {
    for (const operand of before[index]) layer[index] = Math.max(layer[index], layer[operand] + 1);
  }
  for (let index = before.length - 1; index >= 0; index--) {
    if (!before[index].length && after[index].length) {
      const first = after[index].reduce((least, user) => Math.min(least, layer[user]), Infinity);
      layer[index] = Math.max(first - 1, 0);
    }
  }
  return layer;
}

// The items of each row, sorted by the mean position of their neighbors. Long layers fill several rows.
function order(layer, before, after) {
  const rows = [];
  for (let index = 0; index < layer.length; index++) {
    (rows[layer[index]] = rows[layer[index]] || []).push(index);
  }
  const full = [];
  for (const row of rows) if (row) full.push(row);
  const place = new Float64Array(layer.length);
  const number = (row) => row.forEach((index, k) => { place[index] = (k + 0.5) / row.length; });
  full.forEach(number);
  for (let sweep = 0; sweep < 4; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? full : [...full].reverse()) {
      const key = new Map(row.map((index) => [index, mean(down ? before[index] : after[index], place, place[index])]));
      row.sort((a, b) => key.get(a) - key.get(b) || a - b);
      number(row);
    }
  }
  const short = [];
  for (const row of full) {
    for (let k = 0; k < row.length; k += MAX_ROW) short.push(row.slice(k, k + MAX_ROW));
  }
  return short;
}

function mean(neighbors, place, otherwise) {
  if (!neighbors.length) return otherwise;
  let sum = 0;
  for (const neighbor of neighbors) sum += place[neighbor];
  return sum / neighbors.length;
}

// Moves the items of a row towards their neighbors without changing their order.
function straighten(row, center, neighbors, width) {
  const wanted = row.map((index) => mean(neighbors[index], center, center[index]));
  let shift = 0, edge = -Infinity;
  const placed = row.map((index, k) => {
    const half = width(index) / 2;
    const x = Math.max(wanted[k], edge + half);
    edge = x + half + GAP_X;
    shift += wanted[k] - x;
    return x;
  });
  row.forEach((index, k) => { center[index] = placed[k] + shift / row.length; });
}

if (typeof module !== "undefined") module.exports = { Graph, layers, order };
