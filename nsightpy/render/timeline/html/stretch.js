// A stretch of time: chosen on the ruler, drawn as a band, and what ran in it as tables.
const GROUPS = { operations: "GPU operations", streams: "streams", ranks: "ranks", ranges: "ranges", calls: "API calls" };

function setStretch(stretch, open = true) {
  state.stretch = stretch && stretch.end > stretch.start ? stretch : null;
  if (!state.stretch) { $("totals").replaceChildren(); closePane("totals"); } else if (open) writeTotals();
  dirty();
}

function drawStretch() {
  if (!state.stretch) return;
  const context = paint.context, x0 = Math.max(xOf(state.stretch.start), GUTTER), x1 = Math.min(xOf(state.stretch.end), paint.width);
  if (x1 < GUTTER || x0 > paint.width) return;
  context.fillStyle = mixed(paint.paper, paint.category[0], 0.5) + "33";
  context.fillRect(x0, 0, x1 - x0, paint.height);
  context.fillStyle = paint.category[0];
  context.fillRect(x0 - 0.5, 0, 1, paint.height);
  context.fillRect(x1 - 0.5, 0, 1, paint.height);
  const text = timeText(state.stretch.end - state.stretch.start), wide = context.measureText(text).width + 8;
  const x = Math.min(Math.max((x0 + x1 - wide) / 2, GUTTER), paint.width - wide);
  context.fillRect(x, 2, wide, TICKS - 4);
  context.fillStyle = "#ffffff";
  context.fillText(text, x + 4, TICKS / 2);
}

/** Time and number of the events of each name in a stretch, each event cut at its edges; ns. */
function totalsByName(kind, { start, end }) {
  const time = new Float64Array(head.names.length), count = new Uint32Array(head.names.length);
  for (const { lane, level } of state.levels) {
    if (lane.kind !== kind) continue;
    const stop = from(level.start, end);
    for (let i = above(level.end, start); i < stop; i++) {
      const name = lane.name[level.rows ? level.rows[i] : i];
      time[name] += Math.min(level.end[i], end) - Math.max(level.start[i], start);
      count[name]++;
    }
  }
  return { time, count };
}

function nameTable(kind, stretch, title) {
  const { time, count } = totalsByName(kind, stretch), rows = [];
  const whole = time.reduce((sum, one) => sum + one, 0) || 1;
  for (let name = 0; name < time.length; name++) {
    if (!count[name]) continue;
    rows.push({ cells: [paint.names(name), time[name], time[name] / whole, count[name], time[name] / count[name]], hint: head.names[name] });
  }
  const columns = [[title], ["time in the stretch", "time"], ["of their sum", "share"], ["events", "count"], ["mean", "time"]];
  return table(columns, rows, 1, kind === "ranges" ? "nested ranges count in each that holds them" : "");
}

function streamTable({ start, end }) {
  const rows = [], span = end - start;
  for (const track of state.tracks) for (const lane of track.lanes) {
    if (lane.kind !== "stream") continue;
    let time = 0, count = 0, set = EMPTY;
    for (const level of lane.levels) {
      const low = above(level.end, start), high = Math.max(from(level.start, end), low);
      count += high - low;
      set = union(set, { start: level.start.subarray(low, high).map((at) => Math.max(at, start)), end: level.end.subarray(low, high).map((at) => Math.min(at, end)) });
    }
    time = measure(set);
    if (count) rows.push({ cells: [track.label, lane.label, time, time / span, count], act: () => { track.folded = false; layout(); scrollTo(rowOf(track, lane)); } });
  }
  return table([["rank"], ["stream"], ["busy", "time"], ["of the stretch", "share"], ["operations", "count"]], rows, 2);
}

function rankTable({ start, end }) {
  const span = end - start;
  const rows = state.tracks.map((track) => {
    const parts = track.strips.map(({ set }) => before(set, end) - before(set, start)), busy = parts.reduce((sum, part) => sum + part, 0);
    return { cells: [track.label, busy, busy / span, ...parts, span - busy], act: () => scrollTo(rowOf(track, null)) };
  });
  const columns = [["rank"], ["busy", "time"], ["of the stretch", "share"], ["compute", "time"], ["communication alone", "time"], ["copies alone", "time"], ["communication beside copies", "time"], ["idle", "time"]];
  return table(columns, rows, 7);
}

/** The totals of the stretch: by name, stream or rank, whichever was asked for last. */
function writeTotals() {
  const stretch = state.stretch, kinds = new Set(state.levels.map(({ lane }) => lane.kind));
  const there = Object.keys(GROUPS).filter((one) => !["ranges", "calls"].includes(one) || kinds.has(one));
  const group = there.includes(state.group) ? state.group : there[0];
  const tables = {
    operations: () => nameTable("stream", stretch, "kernel or copy"), streams: () => streamTable(stretch), ranks: () => rankTable(stretch),
    ranges: () => nameTable("ranges", stretch, "range"), calls: () => nameTable("calls", stretch, "API call"),
  };
  const bar = document.createElement("p");
  bar.append(made("b", timeText(stretch.end - stretch.start)), made("span", ` from ${(stretch.start / 1e6).toFixed(6)} ms to ${(stretch.end / 1e6).toFixed(6)} ms `));
  for (const one of there) {
    const button = made("button", GROUPS[one], { onclick: () => { state.group = one; writeTotals(); } });
    button.setAttribute("aria-pressed", one === group);
    bar.append(button);
  }
  bar.append(made("button", "zoom to it (z)", { onclick: () => show(stretch.start, stretch.end) }));
  $("totals").replaceChildren(bar, tables[group]());
  openPane("totals");
}
