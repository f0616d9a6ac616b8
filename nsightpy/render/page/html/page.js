const FIRST_ROWS = 12;
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const known = new Map(data.sections.flatMap((section) => section.tables.map((table) => [table.id, table])));

/** One table: its rows in the page, and the raw figures behind them. */
class Listing {
  constructor(place) {
    this.place = place;
    this.source = known.get(place.dataset.table);
    this.section = place.closest("section").id;
    this.table = place.querySelector("table");
    this.body = this.table.tBodies[0];
    this.rows = [...this.body.rows].map((element, number) => ({ element, number, values: this.source.rows[number], text: searchable(element, this.source.rows[number]) }));
    this.headings = [...this.table.tHead.rows[0].cells];
    this.columns = this.headings.map((cell) => this.source.columns.findIndex((column) => column.name === cell.dataset.column));
    const shown = this.rows.length, whole = this.source.total.toLocaleString("en");
    this.total = shown < this.source.total ? `${shown} of ${whole} rows` : shown === 1 ? "1 row" : `all ${shown} rows`;
    this.whole = false;
    this.query = "";
    this.order = this.rows;
    this.headings.forEach((cell, place) => this.sortable(cell, place));
    this.names();
    this.places();
    this.size = place.querySelector(".size");
    this.filter = place.querySelector("input.rows");
    this.filter.addEventListener("input", () => { this.query = this.filter.value; this.show(); });
    if (this.rows.length <= 3) this.filter.parentElement.hidden = true;
    place.querySelector(".csv").addEventListener("click", (event) => copy(this.csv(), event.target));
    const all = place.querySelector(".columns");
    if (all) all.addEventListener("click", () => all.setAttribute("aria-pressed", String(this.table.classList.toggle("all"))));
    if (this.rows.length > FIRST_ROWS + 3) {
      this.more = document.createElement("button");
      this.more.type = "button";
      this.more.className = "tool";
      this.more.addEventListener("click", () => { this.whole = !this.whole; this.show(); });
      this.table.parentElement.after(this.more);
    }
    this.show();
  }

  /** Starts lead to their place in the timeline, where that is on the page. */
  places() {
    const find = (name) => this.source.columns.findIndex((column) => column.name === name);
    const start = find("start_ns"), duration = find("duration_ns"), shown = this.columns.indexOf(start);
    if (!$("timeline-page") || start < 0 || duration < 0 || shown < 0) return;
    for (const { element, values } of this.rows) {
      if (values[start] === null) continue;
      const link = document.createElement("a");
      link.href = "#timeline";
      link.title = "show in the timeline";
      link.textContent = element.cells[shown].textContent;
      const margin = Math.max(values[duration] || 0, 1000) / 2;
      link.addEventListener("click", () => timeline(Math.round(values[start] - margin), Math.round(values[start] + values[duration] + margin)));
      element.cells[shown].replaceChildren(link);
    }
  }

  sortable(cell, place) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = cell.textContent;
    button.title = `sort; in CSV and JSON: ${cell.dataset.column}`;
    cell.replaceChildren(button);
    button.addEventListener("click", () => this.sort(cell, place));
  }

  sort(cell, place) {
    const column = this.columns[place];
    const numeric = this.rows.some((row) => typeof row.values[column] === "number");
    const before = cell.getAttribute("aria-sort");
    const down = before ? before === "ascending" : numeric;
    for (const other of this.headings) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    this.order = [...this.rows].sort((a, b) => compare(a.values[column], b.values[column], down) || a.number - b.number);
    this.body.append(...this.order.map((row) => row.element));
    this.show();
  }

  /** Names that were shortened show the whole on demand. */
  names() {
    for (const row of this.rows) {
      for (const [place, cell] of [...row.element.cells].entries()) {
        if (!cell.classList.contains("long")) continue;
        const short = cell.textContent, full = String(row.values[this.columns[place]]);
        const toggle = () => { cell.textContent = cell.classList.toggle("open") ? full : short; };
        cell.tabIndex = 0;
        cell.title = "the whole name";
        cell.addEventListener("click", () => { if (!String(getSelection())) toggle(); });
        cell.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(); });
      }
    }
  }

  /** Shows the rows that match its own filter and the page's search; returns how many do. */
  show(search = this.search || "") {
    this.search = search;
    const words = `${search} ${this.query}`.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = this.order.filter((row) => words.every((word) => row.text.includes(word)));
    const few = !this.whole && !words.length && this.more;
    for (const row of this.rows) row.element.className = "out";
    for (const [place, row] of hits.entries()) row.element.className = few && place >= FIRST_ROWS ? "rest" : "";
    this.size.textContent = words.length ? `${hits.length} of ${this.rows.length} rows` : this.total;
    if (this.more) {
      this.more.hidden = words.length > 0;
      this.more.textContent = this.whole ? `Show the first ${FIRST_ROWS}` : `Show ${this.total}`;
    }
    return hits.length;
  }

  csv() {
    const lines = [this.source.columns.map((column) => quoted(column.name))];
    for (const row of this.order) if (row.element.className !== "out") lines.push(row.values.map(quoted));
    return lines.map((line) => line.join(",")).join("\n") + "\n";
  }
}

const searchable = (element, values) => `${element.textContent} ${values.filter((value) => typeof value === "string").join(" ")}`.toLowerCase();

function compare(a, b, down) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
  return down ? -order : order;
}

/** A value for CSV; a text that a spreadsheet would take for a formula is preceded by '. */
function quoted(value) {
  if (value === null) return "";
  let text = String(value);
  if (typeof value === "string" && /^[=+@-]./.test(text)) text = `'${text}`;
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

async function copy(text, button) {
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "copied";
  document.body.dataset.copied = text;
  setTimeout(() => { button.textContent = said; }, 1200);
}

function search(query) {
  let hits = 0;
  const bySection = new Map();
  for (const listing of listings) {
    const found = listing.show(query);
    hits += found;
    bySection.set(listing.section, (bySection.get(listing.section) || 0) + found);
  }
  for (const place of document.querySelectorAll(".found")) place.textContent = query ? bySection.get(place.dataset.of) || "" : "";
  $("hits").textContent = query ? `${hits} row${hits === 1 ? "" : "s"}` : "";
  return bySection;
}

/** Goes to the first section with a hit. */
function jump(query) {
  for (const [section, found] of search(query)) if (found) { $(section).scrollIntoView(); return; }
}

const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

/** The embedded timeline, made when it is first wanted; then shows a stretch of time (ns). */
function timeline(from, to) {
  let frame = document.querySelector("#timeline-place iframe");
  const view = new URLSearchParams({ ...(from !== undefined && { from, to }), theme: isDark() ? "dark" : "light" });
  if (!frame) {
    frame = document.createElement("iframe");
    frame.title = "timeline";
    const page = JSON.parse($("timeline-page").textContent);
    const policy = window.trustedTypes ? trustedTypes.createPolicy("nsightpy", { createHTML: (text) => text }) : { createHTML: (text) => text };
    frame.addEventListener("load", () => { frame.contentWindow.location.hash = view; });
    frame.srcdoc = policy.createHTML(page);
    $("timeline-place").append(frame);
    $("open-timeline").hidden = true;
  } else {
    frame.contentWindow.location.hash = view;
  }
}

function listen() {
  $("find").addEventListener("input", (event) => search(event.target.value));
  $("find").addEventListener("keydown", (event) => {
    if (event.key === "Enter") jump(event.target.value);
    if (event.key === "Escape") { event.target.value = ""; search(""); event.target.blur(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input")) return;
    event.preventDefault();
    $("find").select();
  });
  $("theme").addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; });
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button.previousElementSibling.textContent, button));
  for (const link of document.querySelectorAll(".to-timeline")) link.addEventListener("click", () => timeline(link.dataset.from, link.dataset.to));
  $("open-timeline")?.addEventListener("click", () => timeline());
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("#passed details")) part.open = true; });
}

/** Marks the section that is being read in the list of sections. */
function follow() {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) seen[entry.isIntersecting ? "add" : "delete"](entry.target.id);
    let here = null;
    for (const [id, link] of links) { link.className = ""; if (!here && seen.has(id)) here = link; }
    if (here) here.className = "here";
  }, { rootMargin: "-60px 0px -55% 0px" });
  for (const id of links.keys()) if ($(id)) watch.observe($(id));
}

document.documentElement.classList.add("js");
const listings = [...document.querySelectorAll(".table")].map((place) => new Listing(place));
listen();
follow();
document.body.dataset.facts = JSON.stringify({ tables: listings.length, rows: listings.reduce((sum, listing) => sum + listing.rows.length, 0) });
