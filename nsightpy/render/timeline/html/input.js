// Mouse, keys and loading.
/** What a drag on the canvas does: the ruler, or shift, chooses a stretch; else the view moves. */
function dragged(drag, event) {
  const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
  drag.moved ||= Math.abs(dx) + Math.abs(dy) > 3;
  if (!drag.moved) return;
  if (drag.band) {
    const from = timeAt(Math.max(drag.x, GUTTER)), to = timeAt(Math.max(event.offsetX, GUTTER));
    setStretch({ start: Math.round(Math.min(from, to)), end: Math.round(Math.max(from, to)) }, false);
    return;
  }
  $("canvas").className = "moving";
  const by = dx / plot() * (drag.end - drag.start);
  show(drag.start - by, drag.end - by);
  view.top = drag.top - dy;
  scroll(0);
}

/** Two fingers: the time between them stays there, and as much is shown as they are apart. */
class Pinch {
  constructor(fingers) {
    const { x, y, apart } = this.between(fingers);
    Object.assign(this, { time: timeAt(x), y, span: view.end - view.start, apart, top: view.top });
  }

  between([a, b]) {
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.max(Math.hypot(a.x - b.x, a.y - b.y), 8) };
  }

  moved(fingers) {
    const { x, y, apart } = this.between(fingers), span = this.span * this.apart / apart;
    const start = this.time - (x - GUTTER) / plot() * span;
    show(start, start + span);
    view.top = this.top + this.y - y;
    scroll(0);
  }
}

function hovered(x, y) {
  const found = eventAt(x, y), changed = found?.row !== state.hover?.row || found?.lane !== state.hover?.lane;
  state.hover = found;
  if (changed) dirty();
  if (found) return tip(nameOf(found), words(found), x, y);
  const counter = x > GUTTER && rowAt(y)?.counter, mark = markAt(x, y), pixel = (view.end - view.start) / plot();
  if (counter) tip(`${counter.label}, ${rowAt(y).track.label}`, counterWords(counter, timeAt(x), timeAt(x) + pixel), x, y);
  else if (mark) tip(mark.label, [mark.text], x, y);
  else tip(null);
}

function listen() {
  const canvas = $("canvas");
  const fingers = new Map();
  let drag = null, pinch = null, pointer = GUTTER;
  const released = (event) => { fingers.delete(event.pointerId); drag = pinch = null; canvas.className = ""; };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    untip();
    const step = event.deltaMode ? 30 : 1;
    if (event.ctrlKey) zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * step / 100))), event.offsetX); // a touchpad's pinch
    else if (event.offsetX < GUTTER) scroll(event.deltaY * step);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) * step / 1500);
    else zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * step / 300))), event.offsetX);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    pinch = fingers.size === 2 ? new Pinch([...fingers.values()]) : null;
    const band = event.shiftKey || (event.offsetY < TICKS && event.offsetX > GUTTER);
    drag = fingers.size > 1 ? null : { x: event.offsetX, y: event.offsetY, start: view.start, end: view.end, top: view.top, moved: false, band };
  });
  canvas.addEventListener("pointermove", (event) => {
    pointer = event.offsetX;
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (pinch) return pinch.moved([...fingers.values()]);
    if (drag) return dragged(drag, event);
    canvas.style.cursor = event.offsetY < TICKS ? "col-resize" : markAt(event.offsetX, event.offsetY) ? "pointer" : "";
    if (event.pointerType !== "touch") hovered(event.offsetX, event.offsetY);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) click(event.offsetX, event.offsetY);
    else if (drag && drag.band) setStretch(state.stretch);
    released(event);
  });
  canvas.addEventListener("pointercancel", (event) => { released(event); untip(); });
  canvas.addEventListener("pointerleave", untip);
  document.addEventListener("pointerdown", untip, true);
  addEventListener("blur", untip);
  const move = (event) => {
    const at = state.full.start + event.offsetX / overview.width * (state.full.end - state.full.start), half = (view.end - view.start) / 2;
    show(at - half, at + half);
  };
  $("overview").addEventListener("pointerdown", (event) => { $("overview").setPointerCapture(event.pointerId); move(event); });
  $("overview").addEventListener("pointermove", (event) => { if (event.buttons) move(event); });
  $("search").addEventListener("input", (event) => find(event.target.value));
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); jump(!event.shiftKey); }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); jump(event.key === "ArrowDown"); }
    if (event.key === "Escape") { event.target.value = ""; find(""); canvas.focus(); }
  });
  $("previous").addEventListener("click", () => jump(false));
  $("next").addEventListener("click", () => jump(true));
  $("fit").addEventListener("click", fit);
  $("fold").addEventListener("click", () => foldAll(state.tracks.some((track) => !track.folded)));
  $("theme").addEventListener("click", () => theme(isDark() ? "light" : "dark"));
  $("help-button").addEventListener("click", () => $("help").showModal());
  $("marks-button").addEventListener("click", () => (paneOpen() === "marks" ? closePane("marks") : openPane("marks")));
  document.addEventListener("keydown", (event) => key(event, pointer));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
  addEventListener("hashchange", recall); // a page around this one asks for another view
  new ResizeObserver(resize).observe($("stage"));
}

const fit = () => show(state.full.start, state.full.end);
const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function click(x, y) {
  const row = rowAt(y), mark = markAt(x, y);
  if (mark) toMark(mark);
  else if (y < RULER) setStretch(null);
  else if (row && !row.lane && !row.counter) toggle(row.track);
  else choose(eventAt(x, y));
}

function key(event, pointer) {
  if (event.target === $("search") || event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  if (event.key === "Enter" && event.target !== $("canvas") && event.target !== document.body) return; // of a button or row
  const at = pointer > GUTTER ? pointer : undefined;
  const chosen = state.chosen;
  const actions = {
    w: () => zoom(0.6, at), "+": () => zoom(0.6, at), "=": () => zoom(0.6, at), ArrowUp: () => zoom(0.6, at),
    s: () => zoom(1 / 0.6, at), "-": () => zoom(1 / 0.6, at), ArrowDown: () => zoom(1 / 0.6, at),
    a: () => pan(-0.2), ArrowLeft: () => pan(-0.2), d: () => pan(0.2), ArrowRight: () => pan(0.2),
    PageUp: () => scroll(-paint.height * 0.8), PageDown: () => scroll(paint.height * 0.8),
    f: fit, Home: fit, 0: () => show(...head.window), "/": () => $("search").select(), n: () => jump(true), N: () => jump(false),
    j: () => { state.joins = !state.joins; dirty(); }, "?": () => $("help").showModal(),
    z: () => (paneOpen() === "totals" || !chosen ? state.stretch && show(state.stretch.start, state.stretch.end) : show(...around(chosen))),
    m: () => chosen && setStretch({ start: chosen.lane.start[chosen.row], end: chosen.lane.end[chosen.row] }), v: () => setStretch({ start: Math.round(view.start), end: Math.round(view.end) }),
    l: followLaunch, b: () => state.links.length && showBoth(), c: () => { state.counters = !state.counters; layout(); },
    ",": () => nextMark(false), ".": () => nextMark(true), Enter: () => jump(!event.shiftKey), Escape: escape,
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

async function load() {
  for (const [k, meta] of head.tracks.entries()) {
    $("loading").textContent = `reading ${k + 1} of ${head.tracks.length}…`;
    const place = { at: 0 }, source = meta.lanes.length || meta.counters.length ? await inflated("t" + meta.block) : null;
    const track = { ...meta, lanes: meta.lanes.map((lane) => laneOf(lane, source, place)) };
    track.counters = countersOf(track, meta.counters.map((counter) => counterOf(counter, source, place)));
    track.strips = strips(track);
    for (const lane of track.lanes) if (lane.collective) addCollectives(track, lane);
    state.tracks.push(track);
    for (const lane of track.lanes) for (const level of lane.levels) state.levels.push({ track, lane, level });
  }
  const times = state.tracks.flatMap((track) => track.lanes.flatMap((lane) => lane.levels.filter((level) => level.count).map((level) => [level.start[0], level.end[level.count - 1]])));
  state.full = {
    start: times.reduce((low, [start]) => Math.min(low, start), head.window[0]),
    end: times.reduce((high, [, end]) => Math.max(high, end), head.window[1]),
  };
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
    hits: state.hits,
    counters: state.tracks.map((track) => track.counters.map((counter) => counter.label)),
    marks: head.marks.length,
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
  writeLegend();
  listMarks();
  resize();
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
