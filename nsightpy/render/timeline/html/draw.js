// Drawing: every event that has a pixel's width on its own, the rest as exact shares of a pixel.
const TICKS = 22, MARKS = 15, GUTTER = 190, TRACK = 24, STREAM = 19, RANGE = 15, COUNTER = 30, GAP = 6;
const SHADES = 10, LEAST = 0.3, BOX = 1.5, FLAT = 4, LETTERS = 9;

class Paint {
  constructor(canvas, options) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false, ...options });
    this.colors();
  }

  colors() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue("--" + name).trim();
    this.ink = get("ink"); this.paper = get("paper"); this.faint = get("faint"); this.line = get("line"); this.strip = get("strip");
    this.hit = get("hit"); this.join = get("join");
    this.category = CATEGORIES.map(get);
    this.shades = this.category.map((color) => Array.from({ length: SHADES + 1 }, (_, k) => mixed(this.paper, color, LEAST + (1 - LEAST) * k / SHADES)));
    this.dim = this.category.map((color) => mixed(this.paper, color, 0.25));
    this.tints = Array.from({ length: 12 }, (_, k) => mixed(this.category[4], ["#3b6fb6", "#b65a8a", "#5b9a68", "#b98a3a"][k % 4], (k % 3) * 0.3));
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
    this.width = box.width; this.height = box.height;
    this.canvas.width = Math.round(box.width * ratio); this.canvas.height = Math.round(box.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  clear() {
    this.context.fillStyle = this.paper;
    this.context.fillRect(0, 0, this.width, this.height);
  }

  /** One level of a lane between two times, at x from `left`, in `width` pixels. */
  level(level, view, left, width, y, height, search) {
    const scale = width / (view.end - view.start), pixel = 1 / scale, context = this.context;
    const { start, end, lane } = level, only = !search && level.sums.length === 1 && level.sums[0];
    let drawn = 0, color = null, begin = 0, stop = 0;
    const flush = () => { // neighbours of one color are one rectangle
      if (!color) return;
      context.fillStyle = color;
      context.fillRect(left + begin, y, stop - begin, height);
      color = null;
    };
    for (let i = above(end, view.start); i < level.count && start[i] < view.end; drawn++) {
      const x0 = (start[i] - view.start) * scale, x1 = (end[i] - view.start) * scale;
      if (x1 - x0 >= BOX) {
        flush();
        this.box(level, i, left, Math.max(x0, 0), Math.min(x1, width), y, height, search);
        i++;
        continue;
      }
      const cell = Math.max(Math.floor(x0), 0), from_ = view.start + cell * pixel, to = from_ + pixel;
      let last = from(start, to, i + 1, Math.min(i + 1024, level.count));
      if (last === i + 1024 && start[last - 1] < to) last = from(start, to, last, level.count);
      if (last - i > 1 && (end[last - 1] - start[last - 1]) * scale >= BOX) last--;
      if (only) {
        const shade = this.shades[only.category][Math.round(Math.min((only.sum[last] - only.sum[i]) / pixel, 1) * SHADES)];
        if (shade !== color || cell !== stop) { flush(); color = shade; begin = cell; }
        stop = cell + 1;
      } else this.share(level, i, last, left + cell, y, height, pixel, search);
      i = last;
    }
    flush();
    return drawn;
  }

  /** Several events in one pixel: each category as strong as its share of the time. */
  share(level, first, last, x, y, height, pixel, search) {
    const context = this.context;
    const parts = level.sums.map(({ category, sum }) => ({ category, time: sum[last] - sum[first] })).filter((part) => part.time > 0);
    if (!parts.length) parts.push({ category: level.lane.category ? level.lane.category[level.rows ? level.rows[first] : first] : level.lane.constant, time: 0 });
    const whole = parts.reduce((sum, part) => sum + part.time, 0) || 1;
    let top = y;
    for (const { category, time } of parts) {
      const tall = parts.length === 1 ? height : Math.max(height * time / whole, 1);
      context.fillStyle = search ? this.dim[category] : this.shades[category][Math.round(Math.min(whole / pixel, 1) * SHADES)];
      context.fillRect(x, top, 1, tall);
      top += tall;
    }
    if (search && level.hits && level.hits[last] > level.hits[first]) {
      context.fillStyle = this.hit;
      context.fillRect(x, y, 1, height);
    }
  }

  box(level, i, left, x0, x1, y, height, search) {
    const context = this.context, lane = level.lane, row = level.rows ? level.rows[i] : i;
    const category = lane.category ? lane.category[row] : lane.constant;
    const hit = search && level.hits && level.hits[i + 1] > level.hits[i];
    const color = category === 4 ? this.tints[lane.name[row] % 12] : this.category[category];
    context.fillStyle = hit ? this.hit : search ? this.dim[category] : color;
    const wide = x1 - x0;
    context.fillRect(left + x0, y, wide > 3 ? wide - 0.7 : wide, height - 1);
    if (wide > 26 && height > 10) {
      const space = Math.floor((wide - 6) / 6.1), text = this.names(lane.name[row]);
      if (text.length > space && space < LETTERS) return; // so few letters tell nothing
      context.fillStyle = search && !hit ? this.faint : "#ffffff";
      context.fillText(text.length > space ? text.slice(0, space - 1) + "…" : text, left + x0 + 3, y + height / 2, wide - 4);
    }
  }

  /** Sets that exclude each other, stacked as shares of each pixel's time. */
  stack(strips, view, left, width, y, height) {
    const context = this.context, pixel = (view.end - view.start) / width;
    for (let x = 0; x < width;) {
      const time = view.start + x * pixel;
      const shares = strips.map(({ set }) => (before(set, time + pixel) - before(set, time)) / pixel);
      let next = x + 1;
      const solid = shares.findIndex((share) => share > 0.99999);
      const idle = shares.every((share) => share === 0);
      if (solid >= 0) next = Math.max(next, Math.floor((endOf(strips[solid].set, time) - view.start) / pixel));
      if (idle) next = Math.max(next, Math.floor((Math.min(...strips.map(({ set }) => startOf(set, time + pixel))) - view.start) / pixel));
      next = Math.min(next, width);
      if (height < FLAT) {
        this.flat(strips, shares, left + x, next - x, y, height);
        x = next;
        continue;
      }
      let bottom = y + height;
      shares.forEach((share, k) => {
        if (share <= 0) return;
        const tall = Math.max(share * height, 1.2);
        context.fillStyle = this.category[strips[k].category];
        context.fillRect(left + x, Math.max(bottom - tall, y), next - x, Math.min(tall, bottom - y));
        bottom -= tall;
      });
      x = next;
    }
  }

  /** Too low for a stack: the largest share's color, as strong as all of them together. */
  flat(strips, shares, x, width, y, height) {
    const whole = shares.reduce((sum, share) => sum + share, 0);
    if (!(whole > 0)) return;
    const most = strips[shares.indexOf(Math.max(...shares))].category;
    this.context.fillStyle = this.shades[most][Math.round(Math.min(whole, 1) * SHADES)];
    this.context.fillRect(x, y, width, height);
  }

  /** Ticks of time with their labels, over `height` pixels. */
  ruler(view, left, width, height) {
    const context = this.context, span = view.end - view.start, step = stepOf(span / Math.max(width / 110, 1));
    const [unit, scale] = unitOf(span), digits = Math.max(0, Math.ceil(Math.log10(scale / step)));
    context.fillStyle = this.strip;
    context.fillRect(0, 0, left + width, TICKS);
    for (let time = Math.ceil(view.start / step) * step; time <= view.end; time += step) {
      const x = left + (time - view.start) / span * width;
      context.fillStyle = this.line;
      context.fillRect(Math.round(x), 0, 1, height);
      context.fillStyle = this.faint;
      context.fillText(`${(time / scale).toFixed(digits)} ${unit}`, x + 4, TICKS / 2);
    }
  }
}

/** The end of the interval of a set that holds a time, and the start of the first after one. */
const endOf = (set, time) => set.end[above(set.start, time) - 1] ?? time;
const startOf = (set, time) => set.start[from(set.start, time)] ?? Infinity;

function mixed(a, b, share) {
  const parts = [1, 3, 5].map((k) => Math.round(parseInt(a.slice(k, k + 2), 16) * (1 - share) + parseInt(b.slice(k, k + 2), 16) * share));
  return "#" + parts.map((part) => part.toString(16).padStart(2, "0")).join("");
}

function stepOf(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= least) || 10 * power;
}

const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const unitOf = (ns) => UNITS.find(([, scale]) => Math.abs(ns) >= scale) || UNITS[3];

function timeText(ns) {
  const [unit, scale] = unitOf(ns);
  return `${scale === 1 ? Math.round(ns) : (ns / scale).toPrecision(4)} ${unit}`;
}
