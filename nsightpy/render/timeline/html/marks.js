// Findings and iterations: a strip below the ruler, a list, and jumps from one to the next. The
// critical path: a line below the tracks that it runs over; in the list it stands once.
const LISTED = head.marks.filter((mark) => mark.kind !== "critical path" || mark.track === null);

/** Iterations as boxes with their numbers, findings as flags at their worst places. */
function drawMarks() {
  if (!head.marks.length) return;
  const context = paint.context, y = TICKS;
  context.fillStyle = paint.strip;
  context.fillRect(0, y, paint.width, MARKS);
  let even = false;
  for (const mark of head.marks) {
    if (mark.start === null || mark.end < view.start || mark.start > view.end) continue;
    const x0 = Math.max(xOf(mark.start), GUTTER), x1 = Math.min(xOf(mark.end), paint.width);
    if (mark.kind !== "iteration") continue;
    even = !even;
    context.fillStyle = mixed(paint.strip, paint.ink, even ? 0.1 : 0.2);
    context.fillRect(x0, y + 1, Math.max(x1 - x0 - 1, 1), MARKS - 2);
    if (x1 - x0 < 16) continue;
    context.fillStyle = paint.ink;
    context.fillText(x1 - x0 > 70 ? mark.label : mark.label.split(" ").pop(), x0 + 4, y + MARKS / 2);
  }
  for (const mark of head.marks) {
    if (mark.kind !== "finding" || mark.start === null) continue;
    const x = xOf(mark.start);
    if (x < GUTTER || x > paint.width) continue;
    context.fillStyle = paint.hit;
    context.beginPath();
    context.moveTo(x, y + MARKS);
    context.lineTo(x - 5, y + 3);
    context.lineTo(x + 5, y + 3);
    context.fill();
  }
  context.fillStyle = paint.strip;
  context.fillRect(0, y, GUTTER, MARKS);
  context.fillStyle = paint.faint;
  label("iterations, findings", 8, y + MARKS / 2);
}

/** The critical path where it runs over the work of this track. */
function drawPath(row, y) {
  const track = state.tracks.indexOf(row.track);
  paint.context.fillStyle = paint.hit;
  for (const mark of head.marks) {
    if (mark.kind !== "critical path" || mark.track !== track || mark.end < view.start || mark.start > view.end) continue;
    const x0 = Math.max(xOf(mark.start), GUTTER), x1 = Math.min(xOf(mark.end), paint.width);
    paint.context.fillRect(x0, y + state.tall - 4, Math.max(x1 - x0, 1), 2);
  }
}

/** The mark under the pointer: a finding's flag first. */
function markAt(x, y) {
  if (y < TICKS || y >= RULER || x < GUTTER) return null;
  const time = timeAt(x), placed = head.marks.filter((mark) => mark.start !== null);
  return placed.find((mark) => mark.kind === "finding" && Math.abs(xOf(mark.start) - x) < 6)
    || placed.find((mark) => mark.kind === "iteration" && mark.start <= time && time < mark.end) || null;
}

function drawFlag() {
  const mark = state.flag;
  if (!mark || mark.start === null || mark.track === null) return;
  const rows = state.rows.filter((row) => row.track === state.tracks[mark.track]);
  if (!rows.length) return;
  const context = paint.context, last = rows[rows.length - 1], x0 = Math.max(xOf(mark.start), GUTTER), x1 = xOf(mark.end);
  if (x1 < GUTTER) return;
  context.strokeStyle = paint.hit;
  context.lineWidth = 2;
  context.strokeRect(x0, RULER + rows[0].y - view.top, Math.max(x1 - x0, 3), last.y + last.height - rows[0].y);
}

/** To a mark: an iteration becomes the stretch, a finding's place is framed. */
function toMark(mark) {
  state.flag = mark;
  if (mark.start !== null) {
    const margin = Math.max((mark.end - mark.start) * (mark.kind === "iteration" ? 0.05 : 1), 500);
    show(mark.start - margin, mark.end + margin);
  }
  if (mark.track !== null) scrollTo(rowOf(state.tracks[mark.track], null));
  if (mark.kind === "iteration") setStretch({ start: mark.start, end: mark.end }); else { markHere(); openPane("marks"); }
  dirty();
}

/** The mark after the middle of the view, or the one before it. */
function nextMark(forward) {
  const middle = (view.start + view.end) / 2, now = state.flag && state.flag.start !== null && Math.abs((state.flag.start + state.flag.end) / 2 - middle) < (view.end - view.start) / 4 ? state.flag : null;
  const placed = head.marks.filter((mark) => mark.start !== null && mark.kind !== "critical path").sort((a, b) => a.start - b.start);
  if (!placed.length) return;
  const at = now ? placed.indexOf(now) + (forward ? 1 : -1) : forward ? placed.findIndex((mark) => mark.start > middle) : placed.findLastIndex((mark) => mark.start < middle);
  if (placed[at]) toMark(placed[at]);
}

function listMarks() {
  $("marks-button").hidden = !head.marks.length;
  if (!head.marks.length) return;
  $("marks-button").textContent = `marks (${LISTED.length})`;
  const rows = LISTED.map((mark) => {
    const row = document.createElement("li");
    row.tabIndex = 0;
    row.append(made("b", mark.label), made("span", [mark.track === null ? "" : state.tracks[mark.track].label, mark.severity, mark.text].filter(Boolean).join(" · ")));
    if (mark.start === null) row.append(made("span", "no single place"));
    row.onclick = () => toMark(mark);
    row.onkeydown = (event) => { if (event.key === "Enter") toMark(mark); };
    return row;
  });
  const list = document.createElement("ol");
  list.append(...rows);
  $("marks").replaceChildren(list);
}

function markHere() {
  [...$("marks").querySelectorAll("li")].forEach((row, k) => row.classList.toggle("here", LISTED[k] === state.flag));
}
