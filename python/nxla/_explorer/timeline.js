// The timeline: a bar for each span, in one lane for each worker or thread; nested spans are below each other.

const BAR = 16, LABEL = 90, AXIS = 18;

class TimeView {
  constructor(canvas, spans) {
    this.canvas = canvas;
    const sorted = spans.map(([lane, name, start, end, detail, stage]) => ({ lane, name, start, end, detail, stage }));
    sorted.sort((a, b) => a.start - b.start || b.end - a.end);
    this.spans = sorted;
    this.lanes = [];
    const open = new Map();
    for (const span of sorted) {
      if (!open.has(span.lane)) open.set(span.lane, []);
      const rows = open.get(span.lane);
      let row = rows.findIndex((end) => end <= span.start);
      if (row < 0) row = rows.length;
      rows[row] = span.end;
      span.row = row;
    }
    let top = AXIS;
    for (const lane of [...open.keys()].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }))) {
      this.lanes.push({ lane, top, rows: open.get(lane).length });
      top += open.get(lane).length * (BAR + 2) + 6;
    }
    this.content = top;
    const firsts = new Map(this.lanes.map((lane) => [lane.lane, lane.top]));
    for (const span of sorted) span.top = firsts.get(span.lane) + span.row * (BAR + 2);
    this.begin = Math.min(...[Infinity, ...sorted.slice(0, 1).map((span) => span.start)]);
    this.end = sorted.reduce((last, span) => Math.max(last, span.end), this.begin);
    this.from = this.begin;
    this.scroll = 0;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.ratio = ratio;
    this.perSecond = this.perSecond || this._whole();
    this.draw();
  }

  _whole() {
    return (this.width - LABEL - 10) / Math.max(this.end - this.begin, 1e-12);
  }

  fit() {
    this.from = this.begin;
    this.perSecond = this._whole();
    this.draw();
  }

  x(time) {
    return LABEL + (time - this.from) * this.perSecond;
  }

  zoom(factor, x) {
    const time = this.from + (x - LABEL) / this.perSecond;
    this.perSecond = Math.max(this.perSecond * factor, this._whole() / 2);
    this.from = time - (x - LABEL) / this.perSecond;
    this.draw();
  }

  pan(dx, dy) {
    this.from -= dx / this.perSecond;
    this.scroll = Math.min(Math.max(this.scroll - dy, 0), Math.max(this.content - this.height, 0));
    this.draw();
  }

  spanAt(x, y) {
    const at = y + this.scroll;
    return this.spans.find(
      (span) => at >= span.top && at <= span.top + BAR && x >= this.x(span.start) - 1 && x <= this.x(span.end) + 1
    );
  }

  draw() {
    const context = this.canvas.getContext("2d");
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const ink = dark ? "#e3e8ef" : "#1d2733";
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = dark ? "#12161c" : "#ffffff";
    context.fillRect(0, 0, this.width, this.height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const span of this.spans) {
      const x = this.x(span.start), width = Math.max(this.x(span.end) - x, 0.5), y = span.top - this.scroll;
      if (x > this.width || x + width < LABEL || y > this.height || y + BAR < AXIS) continue;
      let hash = 0;
      for (const char of span.name) hash = (hash * 31 + char.charCodeAt(0)) % 360;
      context.fillStyle = span === this.hovered ? "#e8590c" : `hsl(${hash}, 50%, ${dark ? 40 : 52}%)`;
      context.fillRect(Math.max(x, LABEL), y, width - Math.max(LABEL - x, 0), BAR);
      if (width > 30) {
        context.fillStyle = "#ffffff";
        context.fillText(span.name, Math.max(x, LABEL) + 3, y + BAR / 2, width - 6);
      }
    }
    context.fillStyle = ink;
    for (const lane of this.lanes) context.fillText(lane.lane, 4, lane.top - this.scroll + BAR / 2, LABEL - 8);
    this._axis(context, dark ? "#12161c" : "#ffffff", ink);
  }

  _axis(context, paper, ink) {
    context.fillStyle = paper;
    context.fillRect(0, 0, this.width, AXIS - 2);
    context.fillStyle = ink;
    const step = 10 ** Math.ceil(Math.log10(90 / this.perSecond));
    const first = Math.ceil((this.from - this.begin) / step);
    for (let k = Math.max(first, 0); this.x(this.begin + k * step) < this.width; k++) {
      const x = this.x(this.begin + k * step);
      context.fillRect(x, AXIS - 5, 1, 4);
      context.fillText(timeText(k * step), x + 3, 7);
    }
  }
}
