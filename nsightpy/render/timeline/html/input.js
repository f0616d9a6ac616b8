// Mouse, keys and loading.
function listen() {
  const canvas = $("canvas");
  let drag = null, pointer = GUTTER;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const step = event.deltaMode ? 30 : 1;
    if (event.offsetX < GUTTER) scroll(event.deltaY * step);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) * step / 1500);
    else zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * step / 300))), event.offsetX);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.offsetX, y: event.offsetY, start: view.start, end: view.end, top: view.top, moved: false, band: event.shiftKey };
  });
  canvas.addEventListener("pointermove", (event) => {
    pointer = event.offsetX;
    if (!drag) {
      const found = eventAt(event.offsetX, event.offsetY);
      const changed = found?.row !== state.hover?.row || found?.lane !== state.hover?.lane;
      state.hover = found;
      tip(found, event.offsetX, event.offsetY);
      if (changed) dirty();
      return;
    }
    const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
    drag.moved ||= Math.abs(dx) + Math.abs(dy) > 3;
    if (!drag.moved) return;
    tip(null);
    if (drag.band) { state.band = [Math.min(drag.x, event.offsetX), Math.max(drag.x, event.offsetX)]; dirty(); return; }
    canvas.className = "moving";
    const by = dx / plot() * (drag.end - drag.start);
    show(drag.start - by, drag.end - by);
    view.top = drag.top - dy;
    scroll(0);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) click(event.offsetX, event.offsetY);
    if (state.band) { show(timeAt(state.band[0]), timeAt(state.band[1])); state.band = null; dirty(); }
    drag = null;
    canvas.className = "";
  });
  canvas.addEventListener("pointerleave", () => { state.hover = null; tip(null); dirty(); });
  const move = (event) => {
    const at = state.full.start + event.offsetX / overview.width * (state.full.end - state.full.start), half = (view.end - view.start) / 2;
    show(at - half, at + half);
  };
  $("overview").addEventListener("pointerdown", (event) => { $("overview").setPointerCapture(event.pointerId); move(event); });
  $("overview").addEventListener("pointermove", (event) => { if (event.buttons) move(event); });
  $("search").addEventListener("input", (event) => find(event.target.value));
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); jump(!event.shiftKey); }
    if (event.key === "Escape") { event.target.value = ""; find(""); canvas.focus(); }
  });
  $("previous").addEventListener("click", () => jump(false));
  $("next").addEventListener("click", () => jump(true));
  $("fit").addEventListener("click", fit);
  $("fold").addEventListener("click", () => foldAll(state.tracks.some((track) => !track.folded)));
  $("theme").addEventListener("click", () => theme(isDark() ? "light" : "dark"));
  $("help-button").addEventListener("click", () => $("help").showModal());
  document.addEventListener("keydown", (event) => key(event, pointer));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
  addEventListener("hashchange", recall); // a page around this one asks for another view
  new ResizeObserver(resize).observe($("stage"));
}

const fit = () => show(state.full.start, state.full.end);
const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function click(x, y) {
  const row = state.rows.find((one) => y - RULER + view.top >= one.y && y - RULER + view.top < one.y + one.height);
  if (row && !row.lane) toggle(row.track); else choose(eventAt(x, y));
}

function key(event, pointer) {
  if (event.target === $("search") || event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const at = pointer > GUTTER ? pointer : undefined;
  const chosen = state.chosen;
  const actions = {
    w: () => zoom(0.6, at), "+": () => zoom(0.6, at), "=": () => zoom(0.6, at), ArrowUp: () => zoom(0.6, at),
    s: () => zoom(1 / 0.6, at), "-": () => zoom(1 / 0.6, at), ArrowDown: () => zoom(1 / 0.6, at),
    a: () => pan(-0.2), ArrowLeft: () => pan(-0.2), d: () => pan(0.2), ArrowRight: () => pan(0.2),
    PageUp: () => scroll(-paint.height * 0.8), PageDown: () => scroll(paint.height * 0.8),
    f: fit, Home: fit, 0: () => show(...head.window), "/": () => $("search").select(), n: () => jump(true), N: () => jump(false),
    j: () => { state.joins = !state.joins; dirty(); }, "?": () => $("help").showModal(),
    z: () => chosen && show(...around(chosen)), Escape: () => { choose(null); find($("search").value = ""); },
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

function around({ lane, row }) {
  const margin = (lane.end[row] - lane.start[row]) * 0.5 + 20;
  return [lane.start[row] - margin, lane.end[row] + margin];
}

async function load() {
  for (const [k, meta] of head.tracks.entries()) {
    $("loading").textContent = `reading ${k + 1} of ${head.tracks.length}…`;
    const place = { at: 0 }, source = meta.lanes.length ? await inflated("t" + meta.block) : null;
    const track = { ...meta, lanes: meta.lanes.map((lane) => laneOf(lane, source, place)) };
    track.strips = strips(track);
    for (const lane of track.lanes) if (lane.collective) gather(track, lane);
    state.tracks.push(track);
  }
  const times = state.tracks.flatMap((track) => track.lanes.flatMap((lane) => lane.levels.filter((level) => level.count).map((level) => [level.start[0], level.end[level.count - 1]])));
  state.full = {
    start: times.reduce((low, [start]) => Math.min(low, start), head.window[0]),
    end: times.reduce((high, [, end]) => Math.max(high, end), head.window[1]),
  };
}

function gather(track, lane) {
  for (let row = 0; row < lane.rows; row++) {
    const number = lane.collective[row];
    if (!number) continue;
    const parts = state.collectives.get(number);
    if (parts) parts.push({ track, lane, row }); else state.collectives.set(number, [{ track, lane, row }]);
  }
}

/** What the page holds, for tests and the curious: counts, and measured time by rank in ns. */
function facts() {
  const lanes = state.tracks.flatMap((track) => track.lanes);
  return {
    tracks: state.tracks.length,
    lanes: lanes.length,
    events: lanes.reduce((sum, lane) => sum + lane.rows, 0),
    levels: lanes.reduce((sum, lane) => sum + lane.depth, 0),
    strips: state.tracks.map((track) => track.strips.map(({ set }) => measure(set))),
    collectives: [...state.collectives.values()].filter((parts) => parts.length > 1).length,
    hits: state.hits || 0,
    drawn: state.drawn,
    view: [view.start, view.end],
    chosen: state.chosen ? head.names[state.chosen.lane.name[state.chosen.row]] : null,
    milliseconds: state.milliseconds,
  };
}

async function main() {
  const begin = performance.now();
  $("caption").textContent = head.caption;
  await load();
  $("loading").remove();
  for (const track of state.tracks) track.folded = state.tracks.length > 8;
  listen();
  resize();
  writeLegend();
  layout();
  show(...head.window);
  recall();
  const drawing = performance.now();
  draw();
  state.milliseconds = [drawing - begin, performance.now() - drawing];
  document.body.dataset.facts = JSON.stringify(facts());
}

main().catch((error) => {
  const message = `${error}: this page needs a browser of 2023 or later`;
  const place = $("loading") || $("caption");
  place.textContent = message;
  document.body.dataset.failed = String(error && error.stack);
});
