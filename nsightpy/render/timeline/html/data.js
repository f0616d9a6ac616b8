// The page's data: byte planes, deflated, in base64; and sets of time made of them. Times are ns.
const CATEGORIES = ["compute", "communication", "copy", "graph", "nvtx", "api"];
const NONE = new Float64Array(0);

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

async function inflated(id) {
  const element = document.getElementById(id);
  const bytes = bytesOf(element.textContent.trim());
  element.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** One column out of its byte planes, lowest byte first. */
function column(source, at, rows, planes, out) {
  for (let plane = 0, scale = 1; plane < planes; plane++, scale *= 256, at += rows) {
    for (let i = 0; i < rows; i++) out[i] += source[at + i] * scale;
  }
  return out;
}

function laneOf(meta, source, place) {
  const lane = { ...meta };
  const kinds = { start: Float64Array, duration: Float64Array, queue: Float64Array, flow: Float64Array, level: Uint16Array, category: Uint8Array };
  for (const [name, planes] of meta.columns) {
    const kind = kinds[name] || Uint32Array;
    lane[name] = column(source, place.at, meta.rows, planes, new kind(meta.rows));
    place.at += planes * meta.rows;
  }
  const start = lane.start, duration = lane.duration;
  for (let i = 0, time = meta.base; i < meta.rows; i++) start[i] = time += start[i];
  const end = lane.end = duration;
  for (let i = 0; i < meta.rows; i++) end[i] += start[i];
  if (lane.flow) joinSteps(lane.flow);
  lane.levels = levelsOf(lane);
  return lane;
}

/** Numbers of launches out of their steps; 0 where none is known. */
function joinSteps(flow) {
  for (let i = 0, last = 0; i < flow.length; i++) if (flow[i]) flow[i] = last += signed(flow[i] - 1);
}

/** The lane's levels: events that do not overlap, with running sums of time per category. */
function levelsOf(lane) {
  const levels = [];
  for (let level = 0; level < lane.depth; level++) {
    let rows = null, start = lane.start, end = lane.end;
    if (lane.level) {
      let count = 0;
      for (let i = 0; i < lane.rows; i++) if (lane.level[i] === level) count++;
      rows = new Uint32Array(count);
      for (let i = 0, k = 0; i < lane.rows; i++) if (lane.level[i] === level) rows[k++] = i;
      start = Float64Array.from(rows, (row) => lane.start[row]);
      end = Float64Array.from(rows, (row) => lane.end[row]);
    }
    levels.push({ lane, rows, start, end, count: start.length, sums: sumsOf(lane, rows, start, end), hits: null });
  }
  return levels;
}

function sumsOf(lane, rows, start, end) {
  const present = lane.category ? CATEGORIES.map((_, c) => c).filter((c) => lane.category.includes(c)) : [lane.constant];
  return present.map((category) => {
    const sum = new Float64Array(start.length + 1);
    for (let i = 0; i < start.length; i++) {
      const own = !lane.category || lane.category[rows ? rows[i] : i] === category;
      sum[i + 1] = sum[i] + (own ? end[i] - start[i] : 0);
    }
    return { category, sum };
  });
}

/** The first place in a sorted array whose value is greater than `value`. */
function above(array, value, low = 0, high = array.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

/** The first place in a sorted array whose value is `value` or more. */
function from(array, value, low = 0, high = array.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle] >= value) high = middle; else low = middle + 1;
  }
  return low;
}

/** A set of time: sorted, disjoint intervals with the running sum of their lengths. */
function setOf(start, end) {
  const sum = new Float64Array(start.length + 1);
  for (let i = 0; i < start.length; i++) sum[i + 1] = sum[i] + end[i] - start[i];
  return { start, end, sum };
}

const measure = (set) => set.sum[set.sum.length - 1];

/** How much of a set lies before a time. */
function before(set, time) {
  const i = above(set.start, time);
  return i ? set.sum[i] - Math.max(set.end[i - 1] - time, 0) : 0;
}

function union(a, b) {
  const size = a.start.length + b.start.length;
  const start = new Float64Array(size), end = new Float64Array(size);
  let i = 0, j = 0, n = 0;
  while (i < a.start.length || j < b.start.length) {
    const left = j >= b.start.length || (i < a.start.length && a.start[i] <= b.start[j]);
    const s = left ? a.start[i] : b.start[j], e = left ? a.end[i++] : b.end[j++];
    if (e <= s) continue;
    if (n && s <= end[n - 1]) { if (e > end[n - 1]) end[n - 1] = e; } else { start[n] = s; end[n++] = e; }
  }
  return setOf(start.slice(0, n), end.slice(0, n));
}

function minus(a, b) {
  const start = [], end = [];
  for (let i = 0, j = 0; i < a.start.length; i++) {
    let at = a.start[i];
    while (j < b.start.length && b.end[j] <= at) j++;
    for (let k = j; k < b.start.length && b.start[k] < a.end[i]; k++) {
      if (b.start[k] > at) { start.push(at); end.push(b.start[k]); }
      at = Math.max(at, b.end[k]);
    }
    if (at < a.end[i]) { start.push(at); end.push(a.end[i]); }
  }
  return setOf(Float64Array.from(start), Float64Array.from(end));
}

const EMPTY = setOf(NONE, NONE);

/** When a track did anything of some categories, whichever stream it was on. */
function activity(track, categories) {
  let sets = [];
  for (const lane of track.lanes) {
    if (lane.kind !== "stream") continue;
    for (const level of lane.levels) {
      const keep = [];
      for (let i = 0; i < level.count; i++) {
        const row = level.rows ? level.rows[i] : i;
        if (categories.includes(lane.category ? lane.category[row] : lane.constant)) keep.push(i);
      }
      if (!keep.length) continue;
      sets.push({ start: Float64Array.from(keep, (i) => level.start[i]), end: Float64Array.from(keep, (i) => level.end[i]) });
    }
  }
  while (sets.length > 1) {
    const pairs = [];
    for (let i = 0; i < sets.length; i += 2) pairs.push(i + 1 < sets.length ? union(sets[i], sets[i + 1]) : sets[i]);
    sets = pairs;
  }
  return union(sets.length ? sets[0] : EMPTY, EMPTY);
}

/** The strips of a track that exclude each other and are all of its busy time together: compute,
    communication in the open, copies alone, and communication beside copies. */
function strips(track) {
  const work = activity(track, [0, 3]), talk = activity(track, [1]), copies = activity(track, [2]);
  const exposed = minus(talk, union(work, copies));
  const alone = minus(copies, union(work, talk));
  const both = minus(minus(talk, work), exposed);
  return [{ category: 0, set: work }, { category: 1, set: exposed }, { category: 2, set: alone }, { category: 1, set: both }];
}
