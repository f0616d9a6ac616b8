// Search: which events have the text in their names, in the order of time, n of m, and a list of them.
const LIST_BEFORE = 20, LIST = 80;

function find(text) {
  state.search = text.trim().toLowerCase();
  state.cursor = null;
  const wanted = Uint8Array.from(head.names, (name) => (state.search && name.toLowerCase().includes(state.search) ? 1 : 0));
  state.hits = 0;
  for (const { lane, level } of state.levels) {
    level.hits = null;
    if (!state.search) continue;
    level.hits = new Uint32Array(level.count + 1);
    for (let i = 0; i < level.count; i++) level.hits[i + 1] = level.hits[i] + wanted[lane.name[level.rows ? level.rows[i] : i]];
    state.hits += level.hits[level.count];
  }
  listHits();
  countHits();
  dirty();
}

/** The next hit in time after a cursor, or the one before it; hits at one time in row order. */
function hitFrom(cursor, forward) {
  let best = null;
  state.levels.forEach(({ track, lane, level }, order) => {
    const { hits, start } = level, ahead = forward ? order <= cursor.order : order < cursor.order;
    const at = ahead ? above(start, cursor.time) : from(start, cursor.time);
    const i = forward ? above(hits, hits[at]) - 1 : from(hits, hits[at]) - 1;
    if (forward ? i >= level.count : i < 0) return;
    const time = start[i], sooner = !best || (forward ? time < best.time : time >= best.time);
    if (sooner) best = { time, order, i, event: { track, lane, row: level.rows ? level.rows[i] : i } };
  });
  return best;
}

/** Which hit it is, from 1: so many are not later. */
function numberOf(hit) {
  return state.levels.reduce((sum, { level }, order) => {
    const at = order === hit.order ? hit.i : order < hit.order ? above(level.start, hit.time) : from(level.start, hit.time);
    return sum + level.hits[at];
  }, 1);
}

/** To the next hit, or the one before; from the edge of the view at first. */
function jump(forward) {
  if (!state.search || !state.hits) return;
  const cursor = state.cursor || { time: forward ? view.start : view.end, order: forward ? -1 : Infinity };
  const best = hitFrom(cursor, forward);
  if (!best) {
    $("hits").textContent = forward ? "no hit after this" : "no hit before this";
    return;
  }
  toHit(best);
}

function toHit(hit) {
  state.cursor = hit;
  const pane = paneOpen();
  choose(hit.event);
  if (pane === "found" || document.activeElement === $("search")) openPane("found");
  reveal(state.chosen);
  countHits();
  markHit();
}

function countHits() {
  const all = state.hits.toLocaleString("en");
  $("hits").textContent = !state.search ? "" : state.cursor ? `${numberOf(state.cursor).toLocaleString("en")} of ${all}` : `${all} hits`;
}

/** The hits around the cursor as a list; all of a million would be too long to be read. */
function listHits() {
  const pane = $("found");
  pane.replaceChildren();
  if (!state.hits) return closePane("found");
  const first = { time: -Infinity, order: -1 };
  let start = state.cursor || hitFrom(first, true);
  for (let k = 0; k < LIST_BEFORE && state.cursor; k++) start = hitFrom(start, false) || start;
  const rows = [], number = numberOf(start);
  for (let hit = start; hit && rows.length < LIST; hit = hitFrom(hit, true)) {
    const own = hit, { lane, row } = hit.event;
    const cells = [number + rows.length, lane.start[row], lane.end[row] - lane.start[row], paint.names(lane.name[row]), `${hit.event.track.label}, ${lane.label}`];
    rows.push({ cells, hint: nameOf(hit.event), act: () => { openPane("found"); toHit(own); } });
  }
  const shown = `hits ${number.toLocaleString("en")} to ${(number + rows.length - 1).toLocaleString("en")} of ${state.hits.toLocaleString("en")}`;
  const list = table([["hit", "count"], ["start", "moment"], ["duration", "time"], ["name"], ["where"]], rows, 0, shown, false);
  state.listed = { from: number, rows: rows.length };
  pane.append(list);
  openPane("found");
}

/** Highlight the cursor's row; the list moves along when it has left it. */
function markHit() {
  const { from: first, rows } = state.listed, number = numberOf(state.cursor);
  if (number < first || number >= first + rows) {
    const pane = paneOpen();
    listHits();
    if (pane && pane !== "found") openPane(pane);
  }
  for (const row of $("found").querySelectorAll("tbody tr")) {
    const here = row.cells[0].textContent === number.toLocaleString("en");
    row.classList.toggle("here", here);
    if (here && !$("found").hidden) row.scrollIntoView({ block: "nearest" });
  }
}
