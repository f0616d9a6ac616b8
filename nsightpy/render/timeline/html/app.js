// The page: what is shown, and what keys, mouse and search do to it.
const $ = (id) => document.getElementById(id);
const head = JSON.parse($("head").textContent);
const paint = new Paint($("canvas")), overview = new Paint($("overview"), { willReadFrequently: true });
const view = { start: head.window[0], end: head.window[1], top: 0 };
const state = { tracks: [], rows: [], height: 0, search: "", cursor: null, hover: null, chosen: null, joins: true, drawn: 0, full: null, collectives: new Map() };
let waiting = false;

paint.names = overview.names = (name) => head.short[name] || head.names[name];

function dirty() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function layout() {
  state.rows = [];
  let y = 0;
  for (const track of state.tracks) {
    state.rows.push({ y, height: TRACK, track, lane: null });
    y += TRACK;
    if (!track.folded) {
      for (const lane of track.lanes) {
        const tall = lane.kind === "stream" ? STREAM : RANGE;
        state.rows.push({ y, height: lane.depth * tall + 3, track, lane, tall });
        y += lane.depth * tall + 3;
      }
    }
    y += GAP;
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
  context.save();
  context.beginPath();
  context.rect(0, RULER, paint.width, paint.height - RULER);
  context.clip();
  state.drawn = 0;
  for (const row of state.rows) {
    const y = RULER + row.y - view.top;
    if (y + row.height < RULER || y > paint.height) continue;
    if (row.lane) drawLane(row, y, width); else drawTrack(row, y, width);
  }
  drawJoins();
  drawChosen(state.hover, 1);
  drawChosen(state.chosen, 2);
  context.restore();
  if (state.band) {
    context.fillStyle = mixed(paint.paper, paint.category[0], 0.5) + "66";
    context.fillRect(state.band[0], 0, state.band[1] - state.band[0], paint.height);
  }
  drawOverview();
  remember();
}

function drawTrack(row, y, width) {
  const context = paint.context;
  context.fillStyle = paint.strip;
  context.fillRect(0, y, paint.width, TRACK - 2);
  paint.stack(row.track.strips, view, GUTTER, width, y + 1, TRACK - 4);
  context.fillStyle = paint.strip;
  context.fillRect(0, y, GUTTER, TRACK - 2);
  context.fillStyle = paint.ink;
  context.font = "bold 12px system-ui, sans-serif";
  label(`${row.track.folded ? "▸" : "▾"} ${row.track.label}`, 8, y + TRACK / 2 - 1);
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

function label(text, x, y) {
  const space = Math.floor((GUTTER - x - 4) / 6.2);
  paint.context.fillText(text.length > space ? text.slice(0, space - 1) + "…" : text, x, y);
}

function rowOf(track, lane) {
  return state.rows.find((row) => row.track === track && row.lane === lane);
}

function placeOf(event) {
  const row = rowOf(event.track, event.lane) || rowOf(event.track, null);
  const level = event.lane.level && row.lane ? event.lane.level[event.row] : 0;
  return { y: RULER + row.y - view.top + (row.lane ? level * row.tall : 2), height: (row.lane ? row.tall : TRACK - 4) - 1 };
}

function drawChosen(event, weight) {
  if (!event) return;
  const { y, height } = placeOf(event), x0 = Math.max(xOf(event.lane.start[event.row]), GUTTER), x1 = Math.min(xOf(event.lane.end[event.row]), paint.width);
  if (x1 < GUTTER || x0 > paint.width) return;
  paint.context.strokeStyle = paint.ink;
  paint.context.lineWidth = weight;
  paint.context.strokeRect(x0, y, Math.max(x1 - x0, 2), height);
  const parts = collectiveOf(event);
  if (parts) line(parts, 1.5, 0.95);
}

/** The events of a collective on all ranks; null where it has no partner. */
function collectiveOf({ lane, row }) {
  const parts = lane.collective && lane.collective[row] ? state.collectives.get(lane.collective[row]) : null;
  return parts && parts.length > 1 ? parts : null;
}

function line(parts, weight, alpha) {
  const context = paint.context;
  context.strokeStyle = paint.join;
  context.globalAlpha = alpha;
  context.lineWidth = weight;
  context.beginPath();
  parts.forEach((event, k) => {
    const { y, height } = placeOf(event), x = Math.max(xOf(event.lane.end[event.row]), GUTTER);
    if (k) context.lineTo(x, y);
    context.moveTo(x, y + height);
  });
  context.stroke();
  context.globalAlpha = 1;
}

/** Lines between the ranks of each collective in view, while they can be distinguished. */
function drawJoins() {
  if (!state.joins || !state.collectives.size) return;
  const seen = [];
  for (const parts of state.collectives.values()) {
    if (parts.length < 2 || !parts.some(({ lane, row }) => lane.end[row] >= view.start && lane.start[row] <= view.end)) continue;
    seen.push(parts);
    if (seen.length > plot() / 12) return;
  }
  for (const parts of seen) line(parts, 0.7, 0.5);
}

function drawOverview() {
  const whole = state.full, width = overview.width;
  if (!state.picture) {
    overview.clear();
    const each = (overview.height - 4) / Math.max(state.tracks.length, 1);
    state.tracks.forEach((track, k) => overview.stack(track.strips, whole, 0, Math.floor(width), 2 + k * each, Math.max(each - (each > 4 ? 1 : 0), 0.5)));
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

function find(text) {
  state.search = text.trim().toLowerCase();
  state.cursor = null;
  const wanted = Uint8Array.from(head.names, (name) => (state.search && name.toLowerCase().includes(state.search) ? 1 : 0));
  let hits = 0;
  for (const track of state.tracks) for (const lane of track.lanes) for (const level of lane.levels) {
    level.hits = null;
    if (!state.search) continue;
    level.hits = new Uint32Array(level.count + 1);
    for (let i = 0; i < level.count; i++) level.hits[i + 1] = level.hits[i] + wanted[lane.name[level.rows ? level.rows[i] : i]];
    hits += level.hits[level.count];
  }
  $("hits").textContent = state.search ? `${hits.toLocaleString("en")} hits` : "";
  state.hits = hits;
  dirty();
}

/** The next hit in time after the cursor, or the one before it; hits at one time in row order. */
function jump(forward) {
  if (!state.search || !state.hits) return;
  const sign = forward ? 1 : -1;
  const cursor = state.cursor || { time: forward ? view.start : view.end, order: forward ? -1 : Infinity };
  let best = null, order = 0;
  for (const track of state.tracks) for (const lane of track.lanes) for (const level of lane.levels) {
    const own = order++;
    if (!level.hits[level.count]) continue;
    const begin = from(level.start, cursor.time);
    for (let i = forward ? begin : above(level.start, cursor.time) - 1; i >= 0 && i < level.count; i += sign) {
      const time = level.start[i];
      if (level.hits[i + 1] === level.hits[i] || (time === cursor.time && sign * (own - cursor.order) <= 0)) continue;
      if (!best || sign * (time - best.time) < 0) best = { time, order: own, level, i, track };
      break;
    }
  }
  if (!best) {
    $("hits").textContent = forward ? "no hit after this" : "no hit before this";
    return;
  }
  state.cursor = best;
  $("hits").textContent = `${state.hits.toLocaleString("en")} hits`;
  choose({ track: best.track, lane: best.level.lane, row: best.level.rows ? best.level.rows[best.i] : best.i });
  reveal(state.chosen);
}

function reveal(event) {
  if (event.track.folded) { event.track.folded = false; layout(); }
  const start = event.lane.start[event.row], end = event.lane.end[event.row];
  const span = Math.max(Math.min(view.end - view.start, (end - start) * 400), (end - start) * 2.5, 200);
  show((start + end) / 2 - span / 2, (start + end) / 2 + span / 2);
  const row = rowOf(event.track, event.lane), space = paint.height - RULER;
  if (row.y < view.top || row.y + row.height > view.top + space) scroll(row.y - view.top - space / 3);
}

/** The event under the pointer, or the nearest within two pixels, and how many share that pixel. */
function eventAt(x, y) {
  const row = state.rows.find((one) => one.lane && y >= RULER && y - RULER + view.top >= one.y && y - RULER + view.top < one.y + one.height);
  if (!row || x < GUTTER) return null;
  const level = row.lane.levels[Math.min(Math.floor((y - RULER + view.top - row.y) / row.tall), row.lane.depth - 1)];
  const time = timeAt(x), reach = 2 * (view.end - view.start) / plot();
  let i = above(level.start, time) - 1;
  if (i < 0 || level.end[i] <= time) {
    const gap = i < 0 ? Infinity : time - level.end[i];
    if (i + 1 < level.count && level.start[i + 1] - time < Math.min(gap, reach)) i++; else if (gap > reach) return null;
  }
  const shared = from(level.start, time + reach / 4) - above(level.end, time - reach / 4);
  return { track: row.track, lane: row.lane, row: level.rows ? level.rows[i] : i, shared };
}

function words({ track, lane, row, shared }) {
  const start = lane.start[row], end = lane.end[row];
  const lines = [`${timeText(end - start)}, from ${(start / 1e6).toFixed(6)} ms to ${(end / 1e6).toFixed(6)} ms`, `${track.label}, ${lane.label}${track.host ? ", " + track.host : ""}`];
  if (lane.detail && head.details[lane.detail[row]]) lines.push(head.details[lane.detail[row]]);
  if (lane.queue && lane.queue[row]) {
    const raw = lane.queue[row] - 1, delay = raw % 2 ? -(raw + 1) / 2 : raw / 2;
    lines.push(`launch call began ${timeText(delay)} before`);
  }
  const parts = collectiveOf({ lane, row });
  if (parts) {
    const starts = parts.map((part) => part.lane.start[part.row]), last = Math.max(...starts);
    lines.push(`collective of ${parts.length} ranks: ${start === last ? "arrived last" : "waited " + timeText(last - start)}, ${timeText(start - Math.min(...starts))} after the first`);
  }
  if (shared > 2) lines.push(`${shared} events around here: zoom in to distinguish them`);
  return lines;
}

function describe(target, event) {
  const name = document.createElement("b");
  name.textContent = head.names[event.lane.name[event.row]];
  target.replaceChildren(name, ...words(event).map((text) => Object.assign(document.createElement("span"), { textContent: text })));
}

function tip(event, x, y) {
  const box = $("tip");
  box.hidden = !event;
  if (!event) return;
  describe(box, event);
  box.style.left = Math.min(x + 14, paint.width - box.offsetWidth - 8) + "px";
  box.style.top = (y + 18 + box.offsetHeight > paint.height ? y - box.offsetHeight - 10 : y + 18) + "px";
}

function choose(event) {
  state.chosen = event;
  const panel = $("details");
  if (event) { const box = document.createElement("div"); describe(box, event); panel.replaceChildren(box); } else panel.replaceChildren(legend, notes);
  resize();
}

const legend = $("legend"), notes = $("notes");
function writeLegend() {
  const present = new Set(state.tracks.flatMap((track) => track.lanes.flatMap((lane) => lane.levels.flatMap((level) => level.sums.map((sum) => sum.category)))));
  const text = ["compute", "communication", "copies", "CUDA graphs traced whole", "NVTX ranges", "API calls"];
  legend.replaceChildren(...CATEGORIES.filter((_, k) => present.has(k)).map((name) => {
    const item = document.createElement("span"), mark = document.createElement("i");
    mark.className = name;
    item.append(mark, text[CATEGORIES.indexOf(name)]);
    return item;
  }));
  notes.textContent = head.notes.join(" ");
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
  paint.resize();
  overview.resize();
  state.picture = null;
  scroll(0);
  if (state.full) draw();
}

/** The view in the address, so that a place can be passed on. */
function remember() {
  clearTimeout(state.timer);
  state.timer = setTimeout(() => {
    const parts = { from: Math.round(view.start), to: Math.round(view.end), ...(state.search && { find: state.search }) };
    try { history.replaceState(null, "", "#" + new URLSearchParams(parts)); } catch { /* some browsers refuse it for files */ }
  }, 300);
}

function recall() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (wanted.get("theme")) theme(wanted.get("theme"));
  if (wanted.get("fold")) foldAll(wanted.get("fold") === "all");
  if (wanted.get("find")) { $("search").value = wanted.get("find"); find(wanted.get("find")); }
  if (wanted.get("from") && wanted.get("to")) show(Number(wanted.get("from")), Number(wanted.get("to")));
  for (let n = Number(wanted.get("jump")) || 0; n > 0; n--) jump(true);
}
