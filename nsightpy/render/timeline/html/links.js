// What belongs together: a launch and what it launched, and a collective on all its ranks.

/** The events at the other end of a launch: of an API call what it launched, else its call. */
function launchPartners({ track, lane, row }) {
  const id = lane.flow ? lane.flow[row] : 0;
  if (!id) return [];
  const wanted = lane.kind === "calls" ? "stream" : "calls", found = [];
  for (const other of state.tracks) {
    if (other.process !== track.process) continue;
    for (const one of other.lanes) {
      if (one.kind !== wanted || !one.flow) continue;
      for (let at = one.flow.indexOf(id); at >= 0 && found.length < 2000; at = one.flow.indexOf(id, at + 1)) found.push({ track: other, lane: one, row: at });
    }
  }
  return found;
}

/** The events of a collective on all ranks; null where it has no partner. */
function collectiveOf({ lane, row }) {
  const parts = lane.collective && lane.collective[row] ? state.collectives.get(lane.collective[row]) : null;
  return parts && parts.length > 1 ? parts : null;
}

function addCollectives(track, lane) {
  for (let row = 0; row < lane.rows; row++) {
    const number = lane.collective[row];
    if (!number) continue;
    const parts = state.collectives.get(number);
    if (parts) parts.push({ track, lane, row }); else state.collectives.set(number, [{ track, lane, row }]);
  }
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

/** The chosen event's collective on every rank, and arrows between its launch and what it launched. */
function drawLinks() {
  if (!state.chosen) return;
  const parts = collectiveOf(state.chosen);
  if (parts) {
    for (const part of parts) outline(part, 1);
    line(parts, 2, 1);
  }
  const called = state.chosen.lane.kind === "calls";
  for (const other of state.links.slice(0, 200)) {
    outline(other, 1);
    if (called) arrow(state.chosen, other); else arrow(other, state.chosen);
  }
}

function arrow(call, work) {
  const context = paint.context, a = placeOf(call), b = placeOf(work), limit = (x) => Math.max(-1e4, Math.min(x, 1e4 + paint.width));
  const x0 = limit(xOf(call.lane.start[call.row])), x1 = limit(xOf(work.lane.start[work.row]));
  const up = b.y < a.y, y0 = up ? a.y : a.y + a.height, y1 = up ? b.y + b.height : b.y, head = up ? 6 : -6;
  context.save();
  context.beginPath();
  context.rect(GUTTER, RULER, paint.width - GUTTER, paint.height - RULER);
  context.clip();
  context.strokeStyle = context.fillStyle = paint.hit;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1 + head);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 3.5, y1 + head);
  context.lineTo(x1 + 3.5, y1 + head);
  context.fill();
  context.restore();
}

/** From a launch to what it launched, and back. */
function followLaunch() {
  if (!state.links.length) return;
  const target = state.links[0];
  choose(target);
  reveal(target);
}

/** The chosen event and the other end of its launch side by side. */
function showBoth() {
  const ends = [state.chosen, ...state.links];
  const start = ends.reduce((low, { lane, row }) => Math.min(low, lane.start[row]), Infinity);
  const end = ends.reduce((high, { lane, row }) => Math.max(high, lane.end[row]), -Infinity);
  for (const { track } of ends) track.folded = false;
  layout();
  show(start - (end - start) * 0.1 - 20, end + (end - start) * 0.1 + 20);
}
