// The panes below the picture, one at a time, and the tables in them.
const PANES = { details: "event", totals: "stretch", found: "hits", marks: "marks" };
const MOST_ROWS = 300;

const paneOpen = () => Object.keys(PANES).find((id) => !$(id).hidden && !$("panel").hidden);

function openPane(id) {
  for (const one of Object.keys(PANES)) $(one).hidden = one !== id;
  $("panel").hidden = false;
  writeTabs();
}

/** Close a pane; another that holds something takes its place. */
function closePane(id) {
  if ($(id).hidden) return writeTabs();
  $(id).hidden = true;
  const next = id === "marks" ? null : Object.keys(PANES).find((one) => one !== "marks" && one !== id && $(one).childElementCount);
  if (next) openPane(next); else $("panel").hidden = true;
  writeTabs();
}

function writeTabs() {
  const open = paneOpen(), filled = Object.keys(PANES).filter((id) => $(id).childElementCount);
  $("tabs").replaceChildren(...filled.map((id) => {
    const button = made("button", PANES[id], { onclick: () => openPane(id) });
    button.setAttribute("aria-pressed", id === open);
    return button;
  }), made("button", "close (Esc)", { onclick: () => $("panel").hidden = true }));
}

/** What Esc does: the tooltip goes first, then what the open pane is about. */
function escape() {
  if (!$("tip").hidden) return untip();
  const open = paneOpen();
  if (open === "totals") setStretch(null);
  else if (open === "found" || (!open && state.search)) find($("search").value = "");
  else if (open === "marks") { state.flag = null; closePane("marks"); dirty(); }
  else if (state.stretch && !state.chosen) setStretch(null);
  else choose(null);
}

/** A table sorted by one of its columns, at first `down`, largest first; a row with `act` is a button. */
function table(columns, rows, by, note, down = true) {
  const whole = document.createElement("table"), header = whole.createTHead().insertRow(), body = whole.createTBody();
  let order = { by, down };
  const fill = () => {
    const key = ({ cells }) => cells[order.by], sign = order.down ? -1 : 1;
    rows.sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0));
    [...header.cells].forEach((cell, k) => cell.setAttribute("aria-sort", k !== order.by ? "none" : order.down ? "descending" : "ascending"));
    body.replaceChildren(...rows.slice(0, MOST_ROWS).map((row) => rowElement(columns, row)));
  };
  columns.forEach(([name, kind], k) => {
    const cell = made("th", "", { className: kind ? "number" : "" });
    cell.append(made("button", name, { onclick: () => { order = { by: k, down: order.by === k ? !order.down : !!kind }; fill(); } }));
    header.append(cell);
  });
  fill();
  const more = rows.length - MOST_ROWS, texts = [note, more > 0 && `and ${more.toLocaleString("en")} more rows`].filter(Boolean);
  if (texts.length) whole.createCaption().textContent = texts.join("; ");
  return whole;
}

const CELLS = {
  time: (ns) => timeText(ns),
  moment: (ns) => `${(ns / 1e6).toFixed(6)} ms`,
  count: (number) => number.toLocaleString("en"),
  share: (share) => (share > 0 && share < 0.0005 ? "< 0.1 %" : `${(share * 100).toFixed(1)} %`),
};

function rowElement(columns, { cells, act, hint }) {
  const row = document.createElement("tr");
  columns.forEach(([, kind], k) => row.append(made("td", kind ? CELLS[kind](cells[k]) : cells[k], { className: kind ? "number" : "" })));
  if (hint) row.cells[0].title = hint;
  if (act) {
    row.tabIndex = 0;
    row.className = "act";
    row.onclick = act;
    row.onkeydown = (event) => { if (event.key === "Enter") act(); };
  }
  return row;
}
