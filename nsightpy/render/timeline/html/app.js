// The page: what is shown where, and the drawing of all of it.
const $ = (id) => document.getElementById(id);
const head = JSON.parse($("head").textContent);
const paint = new Paint($("canvas")), overview = new Paint($("overview"), { willReadFrequently: true });
const view = { start: head.window[0], end: head.window[1], top: 0 };
const RULER = head.marks.length ? TICKS + MARKS : TICKS;
const state = {
  tracks: [], rows: [], height: 0, drawn: 0, full: null, tall: TRACK, gap: GAP, joins: true, counters: true,
  search: "", cursor: null, levels: [], hits: 0, hover: null, chosen: null, links: [], collectives: new Map(), stretch: null, flag: null,
};
let waiting = false;

paint.names = overview.names = (name) => head.short[name] || head.names[name];

function dirty() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

/** The rows from above; where all tracks are folded, as many as fit into the window. */
function layout() {
  state.rows = [];
  const all = state.tracks.length, fits = all ? (paint.height - RULER) / all : TRACK;
  const dense = state.tracks.every((track) => track.folded) && fits < TRACK + GAP;
  state.gap = dense ? (fits < 16 ? 1 : 2) : GAP;
  state.tall = dense ? Math.max(Math.floor(fits) - state.gap, 10) : TRACK;
  let y = 0;
  for (const track of state.tracks) {
    state.rows.push({ y, height: state.tall, track, lane: null });
    y += state.tall;
    if (!track.folded) {
      for (const lane of track.lanes) {
        const tall = lane.kind === "stream" ? STREAM : RANGE;
        state.rows.push({ y, height: lane.depth * tall + 3, track, lane, tall });
        y += lane.depth * tall + 3;
      }
      for (const counter of state.counters ? track.counters : []) {
        state.rows.push({ y, height: COUNTER, track, lane: null, counter });
        y += COUNTER;
      }
    }
    y += state.gap;
  }
  state.height = y;
  scroll(0);
}

function scroll(by) {
  view.top = Math.max(0, Math.min(view.top + by, state.height - (paint.height - RULER)));
  dirty();
}

const plot = () => Math.max(paint.width - GUTTER, 50);
const timeAt = (x) => view.start + (x - GUTTER) / plot() * (view.end - view.start);
const xOf = (time) => GUTTER + (time - view.start) / (view.end - view.start) * plot();

function show(start, end) {
  const whole = state.full, span = Math.min(Math.max(end - start, 20), (whole.end - whole.start) * 1.1);
  const middle = (start + end) / 2, margin = (whole.end - whole.start) * 0.05;
  view.start = Math.min(Math.max(middle - span / 2, whole.start - margin), whole.end + margin - span);
  view.end = view.start + span;
  dirty();
}

function zoom(factor, x) {
  const at = x === undefined ? (view.start + view.end) / 2 : timeAt(x);
  show(at - (at - view.start) * factor, at + (view.end - at) * factor);
}

const pan = (share) => { const by = (view.end - view.start) * share; show(view.start + by, view.end + by); };

function draw() {
  const context = paint.context, width = plot();
  paint.clear();
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  paint.ruler(view, GUTTER, width, paint.height);
  drawMarks();
  context.save();
  context.beginPath();
  context.rect(0, RULER, paint.width, paint.height - RULER);
  context.clip();
  state.drawn = 0;
  for (const row of state.rows) {
    const y = RULER + row.y - view.top;
    if (y + row.height < RULER || y > paint.height) continue;
    if (row.lane) drawLane(row, y, width); else if (row.counter) drawCounterRow(row, y, width); else drawTrack(row, y, width);
  }
  drawJoins();
  if (state.hover) outline(state.hover, 1);
  if (state.chosen) outline(state.chosen, 2);
  drawLinks();
  drawFlag();
  context.restore();
  drawStretch();
  drawOverview();
  remember();
}

function drawTrack(row, y, width) {
  const context = paint.context, tall = state.tall;
  context.fillStyle = paint.strip;
  context.fillRect(0, y, paint.width, tall - (tall < TRACK ? 0 : 2));
  paint.stack(row.track.strips, view, GUTTER, width, y + (tall < TRACK ? 0 : 1), tall < TRACK ? tall : tall - 4);
  drawPath(row, y);
  context.fillStyle = paint.strip;
  context.fillRect(0, y, GUTTER, tall - (tall < TRACK ? 0 : 2));
  context.fillStyle = paint.ink;
  context.font = `bold ${Math.min(12, tall)}px system-ui, sans-serif`;
  label(`${row.track.folded ? "▸" : "▾"} ${row.track.label}`, 8, y + tall / 2 - (tall < TRACK ? 0 : 1));
  context.font = "11px system-ui, sans-serif";
}

function drawLane(row, y, width) {
  for (const [k, level] of row.lane.levels.entries()) {
    state.drawn += paint.level(level, view, GUTTER, width, y + k * row.tall, row.tall, state.search);
  }
  paint.context.fillStyle = paint.paper;
  paint.context.fillRect(0, y, GUTTER, row.height);
  paint.context.fillStyle = paint.faint;
  label(row.lane.label, 22, y + Math.min(row.height, row.tall) / 2);
}

function drawCounterRow(row, y, width) {
  drawCounter(paint, row.counter, view, GUTTER, width, y, row.height);
  paint.context.fillStyle = paint.faint;
  label(row.counter.label, 22, y + 8);
  const { points, unit } = row.counter;
  label(unit === "%" ? "0 to 100 %" : `up to ${amount(points.highest, unit)}`, 22, y + 20);
}

function label(text, x, y) {
  const space = Math.floor((GUTTER - x - 4) / 6.2);
  paint.context.fillText(text.length > space ? text.slice(0, space - 1) + "…" : text, x, y);
}

function rowOf(track, lane) {
  return state.rows.find((row) => row.track === track && row.lane === lane && !row.counter);
}

const rowAt = (y) => state.rows.find((row) => y >= RULER && y - RULER + view.top >= row.y && y - RULER + view.top < row.y + row.height);

function placeOf(event) {
  const row = rowOf(event.track, event.lane) || rowOf(event.track, null);
  const level = event.lane.level && row.lane ? event.lane.level[event.row] : 0;
  return { y: RULER + row.y - view.top + (row.lane ? level * row.tall : 1), height: (row.lane ? row.tall : state.tall - 2) - 1 };
}

function outline(event, weight) {
  const { y, height } = placeOf(event), x0 = Math.max(xOf(event.lane.start[event.row]), GUTTER), x1 = Math.min(xOf(event.lane.end[event.row]), paint.width);
  if (x1 < GUTTER || x0 > paint.width) return;
  paint.context.strokeStyle = paint.ink;
  paint.context.lineWidth = weight;
  paint.context.strokeRect(x0, y, Math.max(x1 - x0, 2), height);
}

function drawOverview() {
  const whole = state.full, width = overview.width;
  if (!state.picture) {
    overview.clear();
    const each = (overview.height - 4) / Math.max(state.tracks.length, 1), edge = (k) => 2 + (each < FLAT ? Math.round(k * each) : k * each);
    state.tracks.forEach((track, k) => overview.stack(track.strips, whole, 0, Math.floor(width), edge(k), Math.max(edge(k + 1) - edge(k) - (each > FLAT ? 1 : 0), 1)));
    state.picture = overview.context.getImageData(0, 0, overview.canvas.width, overview.canvas.height);
  } else {
    overview.context.putImageData(state.picture, 0, 0);
  }
  const x = (time) => (time - whole.start) / (whole.end - whole.start) * width;
  const context = overview.context, x0 = Math.max(x(view.start), 0), x1 = Math.min(x(view.end), width);
  context.fillStyle = overview.paper;
  context.globalAlpha = 0.6;
  context.fillRect(0, 0, x0, overview.height);
  context.fillRect(x1, 0, width - x1, overview.height);
  context.globalAlpha = 1;
  context.strokeStyle = overview.ink;
  context.lineWidth = 1;
  context.strokeRect(x0 + 0.5, 0.5, Math.max(x1 - x0 - 1, 2), overview.height - 1);
}

/** Bring an event into view: unfolded, and wide enough to be seen. */
function reveal(event) {
  if (event.track.folded) { event.track.folded = false; layout(); }
  const start = event.lane.start[event.row], end = event.lane.end[event.row];
  const span = Math.max(Math.min(view.end - view.start, (end - start) * 400), (end - start) * 2.5, 200);
  show((start + end) / 2 - span / 2, (start + end) / 2 + span / 2);
  scrollTo(rowOf(event.track, event.lane));
}

function scrollTo(row) {
  const space = paint.height - RULER;
  if (row.y < view.top || row.y + row.height > view.top + space) scroll(row.y - view.top - space / 3);
}

function toggle(track) { track.folded = !track.folded; layout(); }

function foldAll(folded) {
  for (const track of state.tracks) track.folded = folded;
  $("fold").textContent = folded ? "unfold all" : "fold all";
  layout();
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  recolor();
}

function recolor() {
  paint.colors();
  overview.colors();
  state.picture = null;
  dirty();
}

function resize() {
  $("overview").style.height = `${Math.min(Math.max(44, 4 + 2 * state.tracks.length), 140)}px`;
  paint.resize();
  overview.resize();
  state.picture = null;
  layout();
  if (state.full) draw();
}
