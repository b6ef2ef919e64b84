// Drawing of the graph on a canvas, with panning and zooming. Details appear with the scale.

const KINDS = [
  [/^(dot|conv)/, "#d9480f"],
  [/^(sum|max|min|product|reduce|arg|window|mean)/, "#2b8a3e"],
  [/^(parameter|input|tensor|iota|eye)/, "#5f6b7a"],
  [/^(while|cond|hook|elem|metadata)/, "#862e9c"],
  [/^(reshape|transpose|broadcast|slice|concatenate|pad|squeeze|gather|put|indexed|stack|reverse|as_type)/, "#1971c2"],
];

class GraphView {
  constructor(canvas, graph) {
    this.canvas = canvas;
    this.graph = graph;
    this.scale = 1;
    this.left = 0;
    this.top = 0;
    this.color = "kind";
    this.hovered = -1;
    this.selected = -1;
    this.marked = new Set();
    this.dark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.drawn = 0;
    this._measure();
  }

  _measure() {
    const { items } = this.graph.data;
    this.largest = {};
    for (const name of ["flops", "bytes", "seconds"]) {
      this.largest[name] = items[name].reduce((most, x) => Math.max(most, x || 0), 0) || 1;
    }
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.ratio = ratio;
    this.request();
  }

  fit() {
    const { width, height } = this.graph;
    this.scale = Math.min(this.width / (width + 40), this.height / (height + 40), 1.5);
    this.left = (width - this.width / this.scale) / 2;
    this.top = (height - this.height / this.scale) / 2;
    this.request();
  }

  // Shows the top of the graph at a readable scale, or the whole graph if it is small.
  start() {
    this.fit();
    if (this.scale < 0.75) {
      this.scale = 0.75;
      const first = this.graph.visible.filter((item) => this.graph.y[item] === 0);
      const middle = first.reduce((sum, item) => sum + this.graph.x[item] + this.graph.w[item] / 2, 0) / first.length;
      this.left = middle - this.width / this.scale / 2;
      this.top = -20;
    }
  }

  zoom(factor, x, y) {
    const scale = Math.min(Math.max(this.scale * factor, 0.005), 6);
    this.left += x / this.scale - x / scale;
    this.top += y / this.scale - y / scale;
    this.scale = scale;
    this.request();
  }

  pan(dx, dy) {
    this.left -= dx / this.scale;
    this.top -= dy / this.scale;
    this.request();
  }

  center(item) {
    const graph = this.graph;
    this.scale = Math.max(this.scale, 0.8);
    this.left = graph.x[item] + graph.w[item] / 2 - this.width / this.scale / 2;
    this.top = graph.y[item] + Math.min(graph.h[item], this.height / this.scale) / 2 - this.height / this.scale / 2;
    this.request();
  }

  // The point of the graph at a point of the canvas.
  point(x, y) {
    return [x / this.scale + this.left, y / this.scale + this.top];
  }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  draw() {
    const begin = performance.now();
    const context = this.canvas.getContext("2d");
    const k = this.scale * this.ratio;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.dark ? "#12161c" : "#ffffff";
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.setTransform(k, 0, 0, k, -this.left * k, -this.top * k);
    const view = [this.left, this.top, this.left + this.width / this.scale, this.top + this.height / this.scale];
    this._items(context, view, true, (item) => this._group(context, item));
    this._lines(context, view);
    this._items(context, view, true, (item) => this._title(context, item));
    const readable = this.scale > 0.35;
    this._items(context, view, false, (item) => this._node(context, item, readable));
    this.drawn = performance.now() - begin;
    this.frames = (this.frames || 0) + 1;
    if (this.ondraw) this.ondraw();
  }

  _isOpen(item) {
    return this.graph.isGroup[item] === 1 && !this.graph.collapsed[item];
  }

  _items(context, [left, top, right, bottom], open, paint) {
    const { x, y, w, h, visible } = this.graph;
    context.font = "12px ui-monospace, Menlo, Consolas, monospace";
    context.textBaseline = "middle";
    for (const item of visible) {
      if (this._isOpen(item) !== open) continue;
      if (x[item] > right || y[item] > bottom || x[item] + w[item] < left || y[item] + h[item] < top) continue;
      paint(item);
    }
  }

  _group(context, item) {
    const { x, y, w, h, depth } = this.graph;
    const shade = this.dark ? 22 + 5 * (depth[item] % 4) : 250 - 6 * (depth[item] % 4);
    context.fillStyle = `rgb(${shade}, ${shade + 2}, ${shade + 4})`;
    context.strokeStyle = this._stroke(item);
    context.lineWidth = item === this.selected ? 3 : 1;
    context.fillRect(x[item], y[item], w[item], h[item]);
    context.strokeRect(x[item], y[item], w[item], h[item]);
  }

  _title(context, item) {
    const { x, y, w, h } = this.graph;
    const size = Math.min(Math.max(12, 9 / this.scale), Math.max(h[item] / 3, 12), 60);
    context.fillStyle = this.dark ? "#aeb9c7" : "#445062";
    context.font = `${size}px system-ui, sans-serif`;
    const label = this.graph.text("label", item);
    if (w[item] * this.scale > 24) context.fillText(label, x[item] + 8, y[item] + size * 0.5 + 6, w[item] - 12);
  }

  _stroke(item) {
    if (item === this.selected) return "#e8590c";
    if (this.marked.has(item)) return "#f59f00";
    return item === this.hovered ? (this.dark ? "#ffffff" : "#000000") : this.dark ? "#4a5564" : "#b9c2cf";
  }

  _node(context, item, readable) {
    const { x, y, w, h } = this.graph;
    context.fillStyle = this._fill(item);
    context.fillRect(x[item], y[item], w[item], h[item]);
    if (this.scale > 0.15 || this.marked.has(item) || item === this.selected) {
      const strong = item === this.selected || this.marked.has(item);
      context.strokeStyle = this._stroke(item);
      context.lineWidth = strong ? Math.max(3, 2 / this.scale) : 1;
      context.strokeRect(x[item], y[item], w[item], h[item]);
    }
    if (readable) {
      context.fillStyle = "#ffffff";
      context.fillText(this.graph.label(item), x[item] + 8, y[item] + h[item] / 2 + 1, w[item] - 16);
    } else if (this.graph.isGroup[item] && w[item] * this.scale > 12) {
      context.fillStyle = "#ffffff";
      context.fillText(this.graph.text("label", item), x[item] + 4, y[item] + h[item] / 2, w[item] - 8);
    }
  }

  _fill(item) {
    if (this.color !== "kind") return this._heat(item);
    const op = this.graph.text("op", item);
    const kind = KINDS.find(([pattern]) => pattern.test(op));
    if (kind) return kind[1];
    return this.graph.isGroup[item] ? "#364fc7" : "#0b7285";
  }

  _heat(item) {
    const { items } = this.graph.data;
    const own = this.color === "flops" ? this.graph.total.flops[item] : items[this.color][item];
    if (!own) return "#868e96";
    const most = this.largest[this.color];
    const share = Math.min(Math.log1p(own) / Math.log1p(most), 1);
    const time = this.color === "seconds" ? Math.min(own / most, 1) : share;
    return `hsl(${Math.round(220 - 220 * time)}, 70%, 42%)`;
  }

  _lines(context, [left, top, right, bottom]) {
    const { x, y, w, h, lines } = this.graph;
    if (this.scale < 0.02) return;
    const curved = this.scale > 0.15;
    const focus = this.hovered >= 0 ? this.hovered : this.selected;
    context.lineWidth = Math.max(1, 0.6 / this.scale);
    context.strokeStyle = this.dark ? "#5c6b7d" : "#9aa6b5";
    context.beginPath();
    const strong = [];
    for (const line of lines) {
      const [a, b] = [line.from, line.to];
      const x1 = x[a] + w[a] / 2, x2 = x[b] + w[b] / 2, y1 = y[a] + h[a], y2 = y[b];
      if (Math.min(x1, x2) > right || Math.max(x1, x2) < left || Math.min(y1, y2) > bottom || Math.max(y1, y2) < top) {
        continue;
      }
      if (a === focus || b === focus) {
        strong.push([line, x1, y1, x2, y2]);
        continue;
      }
      this._curve(context, x1, y1, x2, y2, curved);
    }
    context.stroke();
    this._strong(context, strong);
  }

  _curve(context, x1, y1, x2, y2, curved) {
    context.moveTo(x1, y1);
    if (!curved) context.lineTo(x2, y2);
    else {
      const bend = Math.max(Math.min(Math.abs(y2 - y1) / 2, 80), 12);
      context.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
    }
  }

  // The edges of the item under the pointer, with the bytes that they carry.
  _strong(context, strong) {
    context.strokeStyle = "#e8590c";
    for (const [line, x1, y1, x2, y2] of strong) {
      context.lineWidth = Math.min(1.5 + Math.log10(1 + line.bytes) / 2, 6) / Math.min(this.scale, 1);
      context.beginPath();
      this._curve(context, x1, y1, x2, y2, true);
      context.stroke();
      if (this.scale > 0.35) {
        context.fillStyle = this.dark ? "#ffd8a8" : "#a33a00";
        context.fillText(bytesText(line.bytes), (x1 + x2) / 2 + 4, (y1 + y2) / 2);
      }
    }
  }
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0, size = bytes;
  for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024;
  return `${unit ? size.toFixed(1) : size} ${units[unit]}`;
}

function countText(count) {
  const units = ["", " k", " M", " G", " T"];
  let unit = 0, size = count;
  for (; size >= 1000 && unit < units.length - 1; unit++) size /= 1000;
  return `${unit ? size.toFixed(1) : size}${units[unit]}`;
}

function timeText(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(3)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toFixed(3)} ms`;
  return `${(seconds * 1e6).toFixed(1)} µs`;
}
