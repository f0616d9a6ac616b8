// Quantities over time: memory, GPU metrics, and how many operations wait in the queues.
const BLOCK = 256;

function counterOf(meta, source, place) {
  const raw = {};
  for (const [name, planes] of meta.columns) {
    raw[name] = column(source, place.at, meta.rows, planes, new Float64Array(meta.rows));
    place.at += planes * meta.rows;
  }
  for (let i = 0, time = meta.base, value = 0; i < meta.rows; i++) {
    raw.time[i] = time += raw.time[i];
    raw.value[i] = value += signed(raw.value[i]);
  }
  return { label: meta.label, unit: meta.unit, points: pointsOf(raw.time, raw.value) };
}

const signed = (raw) => (raw % 2 ? -(raw + 1) / 2 : raw / 2);

/** Points of a step function, with running sums of value times ns and the highest of each block. */
function pointsOf(time, value) {
  const sum = new Float64Array(time.length), peaks = new Float64Array(Math.ceil(time.length / BLOCK)).fill(-Infinity);
  for (let i = 0; i < time.length; i++) {
    if (i) sum[i] = sum[i - 1] + value[i - 1] * (time[i] - time[i - 1]);
    const block = Math.floor(i / BLOCK);
    if (value[i] > peaks[block]) peaks[block] = value[i];
  }
  return { time, value, sum, peaks, highest: peaks.reduce((a, b) => Math.max(a, b), 0) };
}

function sumUntil(points, time) {
  const i = above(points.time, time) - 1;
  return i < 0 ? 0 : points.sum[i] + points.value[i] * (time - points.time[i]);
}

/** The highest value of a stretch of time, the one that it begins with among them. */
function highestIn(points, start, end) {
  let i = Math.max(above(points.time, start) - 1, 0), best = 0;
  for (const stop = from(points.time, end); i < stop;) {
    if (i % BLOCK === 0 && i + BLOCK <= stop) { best = Math.max(best, points.peaks[i / BLOCK]); i += BLOCK; } else best = Math.max(best, points.value[i++]);
  }
  return best;
}

/** The queue of a track: operations whose launch has begun and that have not, from launch data. */
function queueOf(track) {
  const launched = [], begun = [];
  for (const lane of track.lanes) {
    if (lane.kind !== "stream" || !lane.queue) continue;
    const rows = lane.queue.reduce((count, raw) => count + (raw > 0), 0);
    const starts = new Float64Array(rows), calls = new Float64Array(rows);
    for (let i = 0, k = 0; i < lane.rows; i++) {
      if (!lane.queue[i]) continue;
      starts[k] = lane.start[i];
      calls[k++] = lane.start[i] - Math.max(signed(lane.queue[i] - 1), 0);
    }
    launched.push(calls);
    begun.push(starts);
  }
  const a = joinedSorted(launched), b = joinedSorted(begun), size = 2 * a.length;
  const time = new Float64Array(size), value = new Float64Array(size);
  let n = 0;
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    const at = i < a.length && a[i] <= b[j] ? a[i] : b[j];
    while (i < a.length && a[i] === at) i++;
    while (j < b.length && b[j] === at) j++;
    time[n] = at;
    value[n++] = i - j;
  }
  return pointsOf(time.slice(0, n), value.slice(0, n));
}

function joinedSorted(parts) {
  const whole = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => { whole.set(part, at); return at + part.length; }, 0);
  return whole.sort();
}

/** The counters of a track; the queue's points are made when it is first drawn. */
function countersOf(track, stored) {
  const own = [...stored];
  if (track.lanes.some((lane) => lane.kind === "stream" && lane.queue)) own.push({ label: "queue: launched, not begun", unit: "", track });
  return own;
}

const pointsIn = (counter) => (counter.points ||= queueOf(counter.track));

/** A pixel's mean as an area, its highest value as a line; exact at every zoom. */
function drawCounter(paint, counter, view, left, width, y, height) {
  const points = pointsIn(counter), context = paint.context, pixel = (view.end - view.start) / width;
  const top = counter.unit === "%" ? 100 : points.highest || 1, tall = height - 3, bottom = y + height - 2;
  const first = points.time[0], strong = paint.category[0], weak = mixed(paint.paper, strong, 0.35);
  const area = new Path2D(), ridge = new Path2D();
  let before = sumUntil(points, view.start), drawn = false;
  area.moveTo(left, bottom);
  for (let x = 0; x < width; x++) {
    const start = view.start + x * pixel, until = sumUntil(points, start + pixel), mean = (until - before) / pixel;
    before = until;
    area.lineTo(left + x, bottom - tall * mean / top);
    area.lineTo(left + x + 1, bottom - tall * mean / top);
    if (start + pixel < first) continue;
    const high = bottom - tall * highestIn(points, start, start + pixel) / top;
    if (drawn) ridge.lineTo(left + x, high); else ridge.moveTo(left + x, high);
    ridge.lineTo(left + x + 1, high);
    drawn = true;
  }
  area.lineTo(left + width, bottom);
  context.fillStyle = weak;
  context.fill(area);
  context.strokeStyle = strong;
  context.lineWidth = 1;
  context.stroke(ridge);
  context.fillStyle = paint.line;
  context.fillRect(left, bottom, width, 1);
}

function amount(value, unit) {
  if (unit !== "bytes") return `${value < 10 && !Number.isInteger(value) ? value.toFixed(1) : Math.round(value).toLocaleString("en")}${unit ? " " + unit : ""}`;
  const [name, scale] = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]].find(([, one]) => Math.abs(value) >= one) || ["B", 1];
  return `${scale === 1 ? Math.round(value) : (value / scale).toPrecision(4)} ${name}`;
}

/** What a counter says at a pixel of the view. */
function counterWords(counter, start, end) {
  const points = pointsIn(counter), i = above(points.time, start) - 1;
  const mean = (sumUntil(points, end) - sumUntil(points, start)) / (end - start);
  const here = `${amount(i < 0 ? 0 : points.value[i], counter.unit)} at ${(start / 1e6).toFixed(6)} ms`;
  return [here, `mean of this pixel ${amount(mean, counter.unit)}, highest ${amount(highestIn(points, start, end), counter.unit)}; highest of all ${amount(points.highest, counter.unit)}`];
}
