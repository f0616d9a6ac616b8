// One event in words: the tooltip, the pane of the chosen event, the legend.

/** The event under the pointer, or the nearest within two pixels, and how many share that pixel. */
function eventAt(x, y) {
  const row = rowAt(y);
  if (!row || !row.lane || x < GUTTER) return null;
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

const nameOf = ({ lane, row }) => head.names[lane.name[row]];
const placeText = ({ track, lane }) => `${track.label}, ${lane.label}${track.host ? ", " + track.host : ""}`;

function words(event) {
  const { lane, row, shared } = event, start = lane.start[row], end = lane.end[row];
  const lines = [`${timeText(end - start)}, from ${(start / 1e6).toFixed(6)} ms to ${(end / 1e6).toFixed(6)} ms`, placeText(event)];
  if (lane.detail && head.details[lane.detail[row]]) lines.push(head.details[lane.detail[row]]);
  if (lane.queue && lane.queue[row]) lines.push(`launch call began ${timeText(signed(lane.queue[row] - 1))} before`);
  const parts = collectiveOf(event);
  if (parts) {
    const starts = parts.map((part) => part.lane.start[part.row]), last = Math.max(...starts);
    lines.push(`collective of ${parts.length} ranks: ${start === last ? "arrived last" : "waited " + timeText(last - start)}, ${timeText(start - Math.min(...starts))} after the first`);
  }
  if (shared > 2) lines.push(`${shared} events around here: zoom in to distinguish them`);
  return lines;
}

const made = (tag, text, more) => Object.assign(document.createElement(tag), { textContent: text, ...more });

function describe(target, title, lines) {
  target.replaceChildren(made("b", title), ...lines.map((text) => made("span", text)));
}

function tip(title, lines, x, y) {
  const box = $("tip");
  box.hidden = !title;
  if (!title) return;
  describe(box, title, lines);
  box.style.left = Math.max(Math.min(x + 14, paint.width - box.offsetWidth - 8), 0) + "px";
  box.style.top = (y + 18 + box.offsetHeight > paint.height ? Math.max(y - box.offsetHeight - 10, 0) : y + 18) + "px";
}

/** No tooltip and no highlight: the pointer has left, or what was under it has moved. */
function untip() {
  tip(null);
  if (state.hover) { state.hover = null; dirty(); }
}

/** Keep an event: its details below, its collective and its launch in the picture. */
function choose(event) {
  state.chosen = event;
  state.links = event ? launchPartners(event) : [];
  if (event) {
    const box = document.createElement("div");
    describe(box, nameOf(event), words(event));
    box.append(...buttonsOf(event));
    $("details").replaceChildren(box);
    const parts = collectiveOf(event);
    if (parts) $("details").append(collectiveTable(parts));
    openPane("details");
  } else {
    $("details").replaceChildren();
    closePane("details");
  }
  dirty();
}

function buttonsOf(event) {
  const buttons = [made("button", "zoom to it (z)", { onclick: () => show(...around(event)) })];
  if (state.links.length) {
    const count = state.links.length;
    const text = event.lane.kind === "calls" ? (count > 1 ? `first of ${count} operations it launched (l)` : "what it launched (l)") : "its launch call (l)";
    buttons.push(made("button", text, { onclick: followLaunch }), made("button", "show both ends (b)", { onclick: showBoth }));
  }
  return buttons;
}

function collectiveTable(parts) {
  const first = Math.min(...parts.map(({ lane, row }) => lane.start[row])), last = Math.max(...parts.map(({ lane, row }) => lane.start[row]));
  const rows = parts.map((part) => {
    const { track, lane, row } = part, start = lane.start[row];
    return { cells: [track.label, lane.label, start - first, last - start, lane.end[row] - start], act: () => { choose(part); reveal(part); } };
  });
  return table([["rank"], ["stream"], ["started after the first", "time"], ["waited for the last", "time"], ["duration", "time"]], rows, 3);
}

function around({ lane, row }) {
  const margin = (lane.end[row] - lane.start[row]) * 0.5 + 20;
  return [lane.start[row] - margin, lane.end[row] + margin];
}

function writeLegend() {
  const present = new Set(state.levels.flatMap(({ level }) => level.sums.map((sum) => sum.category)));
  const text = ["compute", "communication", "copies", "CUDA graphs traced whole", "NVTX ranges", "API calls"];
  $("legend").replaceChildren(...CATEGORIES.filter((_, k) => present.has(k)).map((name) => {
    const item = document.createElement("span"), mark = document.createElement("i");
    mark.className = name;
    item.append(mark, text[CATEGORIES.indexOf(name)]);
    return item;
  }));
  $("notes").textContent = head.notes.join(" ");
}
