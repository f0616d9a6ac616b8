// The view in the address, so that a place can be passed on: #from=..&to=..&find=..&sel=..&stretch=..

/** Written when the view has come to rest: browsers allow few changes a second. */
function remember() {
  clearTimeout(state.timer);
  state.timer = setTimeout(() => {
    const text = "#" + new URLSearchParams(addressParts());
    if (text === state.address) return;
    state.address = text;
    try { history.replaceState(null, "", text); } catch { /* some browsers refuse it for files */ }
  }, 400);
}

function addressParts() {
  const { chosen, stretch, search } = state, lane = chosen && chosen.track.lanes.indexOf(chosen.lane);
  return {
    from: Math.round(view.start), to: Math.round(view.end),
    ...(search && { find: search }),
    ...(chosen && { sel: [state.tracks.indexOf(chosen.track), lane, chosen.row].join(".") }),
    ...(stretch && { stretch: `${Math.round(stretch.start)}-${Math.round(stretch.end)}` }),
  };
}

const spanOf = (text) => (/^(-?\d+)-(-?\d+)$/.exec(text || "") || []).slice(1).map(Number);

function recall() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const [low, high] = wanted.get("from") && wanted.get("to") ? [Number(wanted.get("from")), Number(wanted.get("to"))] : spanOf(wanted.get("t"));
  if (wanted.get("theme")) theme(wanted.get("theme"));
  if (wanted.get("fold")) foldAll(wanted.get("fold") === "all");
  if (wanted.get("find")) { $("search").value = wanted.get("find"); find(wanted.get("find")); }
  const [start, end] = spanOf(wanted.get("stretch"));
  if (end > start) setStretch({ start, end });
  if (high > low) show(low, high);
  const chosen = eventNamed(wanted.get("sel"));
  if (chosen) {
    chosen.track.folded = false;
    choose(chosen);
    layout();
    scrollTo(rowOf(chosen.track, chosen.lane));
  }
  for (let n = Number(wanted.get("jump")) || 0; n > 0; n--) jump(true);
}

function eventNamed(text) {
  const [track, lane, row] = (text || "").split(".").map(Number);
  const found = state.tracks[track]?.lanes[lane];
  return found && row >= 0 && row < found.rows ? { track: state.tracks[track], lane: found, row } : null;
}
