"""A timeline as one offline page: zoom, pan, search and details in the browser.

Events travel as byte planes (all lowest bytes of a column, then all second ones, ...), deflated
and in base64; names once, in a table. The page may load nothing: its policy names its one script
by hash, and free text only ever becomes text.
"""

from __future__ import annotations

import base64
import html
import zlib
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Labels
from nsightpy.names import function_name
from nsightpy.output.escape import printable
from nsightpy.render.inline import policy_hash, script_json
from nsightpy.results.tracks import (
    NO_LAUNCH,
    RANGES,
    STREAM,
    Counter,
    Lane,
    Mark,
    Place,
    Timeline,
    Track,
)

_SCRIPTS = (
    *("data.js", "counters.js", "draw.js", "app.js", "links.js", "details.js", "panel.js"),
    *("hits.js", "stretch.js", "marks.js", "address.js", "input.js"),
)
_ORDER = {RANGES: 0, STREAM: 1}
_LEVEL = 3


class _Table:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def codes(self, labels: Labels) -> NDArray[np.int64]:
        known = [self.numbers.setdefault(v, len(self.numbers)) for v in labels.values]
        return np.asarray(known, dtype=np.int64)[labels.codes]

    @property
    def texts(self) -> list[str]:
        return [printable(text) for text in self.numbers]


class _Planes:
    """Columns as deflated byte planes."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(_LEVEL)
        self._parts: list[bytes] = []

    def add(self, values: NDArray[Any]) -> int:
        """Append a column of non-negative integers; the number of its planes."""
        planes = max((int(values.max()).bit_length() + 7) // 8, 1) if len(values) else 1
        parts = values.astype("<i8").view(np.uint8).reshape(-1, 8)
        for plane in range(planes):
            whole = np.ascontiguousarray(parts[:, plane])
            self._parts.append(self._deflate.compress(whole.data))
        return planes

    def encoded(self) -> bytes:
        return base64.b64encode(b"".join([*self._parts, self._deflate.flush()]))


def write_page(timeline: Timeline, file: BinaryIO) -> None:
    """Write the page of a timeline; one track is held in memory at a time."""
    names, details = _Table(), _Table()
    before, after = _template()
    tracks: list[dict[str, Any] | None] = [None] * len(timeline.places)
    processes: dict[tuple[str, int], int] = {}
    title = _title(timeline)
    file.write(before.replace("{{title}}", html.escape(title)).encode())
    for block, track in enumerate(timeline):
        place = timeline.places.index(track.place)
        planes = _Planes()
        lanes = sorted(track.lanes, key=_order)
        meta = [_lane(lane, planes, names, details) for lane in lanes]
        counters = [_counter(counter, planes) for counter in track.counters]
        tracks[place] = {
            **_who(track),
            "process": processes.setdefault((track.place.report, track.place.pid), len(processes)),
            "block": block,
            "lanes": meta,
            "counters": counters,
        }
        if meta or counters:
            file.write(f'<script type="text/plain" id="t{block}">'.encode())
            file.write(planes.encoded())
            file.write(b"</script>\n")
    shown = [place for place, track in zip(timeline.places, tracks, strict=True) if track]
    marks = [_mark(mark, shown) for mark in timeline.marks()]
    head = {
        "caption": f"times in ms of the first report; {timeline.clock}",
        "window": [timeline.start_ns, timeline.end_ns],
        "notes": [printable(note) for note in timeline.notes],
        "tracks": [track for track in tracks if track is not None],
        "names": names.texts,
        "short": _short(names),
        "details": details.texts,
        "marks": marks,
    }
    file.write(after.replace("{{head}}", script_json(head)).encode())


def _lane(lane: Lane, planes: _Planes, names: _Table, details: _Table) -> dict[str, Any]:
    """A lane's description, its columns added to the planes."""
    starts = lane.starts
    columns = {
        "start": np.diff(starts, prepend=starts[:1]),
        "duration": lane.ends - starts,
        "name": names.codes(lane.names),
    }
    if lane.depth > 1:
        columns["level"] = lane.levels
    mixed = bool(np.any(lane.categories != lane.categories[0]))
    if mixed:
        columns["category"] = lane.categories
    if lane.details is not None:
        columns["detail"] = details.codes(lane.details)
    if lane.launch_ns is not None:
        delay = _zigzag(starts - lane.launch_ns) + 1
        columns["queue"] = np.where(lane.launch_ns == NO_LAUNCH, 0, delay)
    if lane.flows is not None and bool(np.any(lane.flows > 0)):
        columns["flow"] = _steps(lane.flows)
    if lane.collectives is not None and bool(np.any(lane.collectives >= 0)):
        columns["collective"] = lane.collectives + 1
    return {
        "kind": lane.kind,
        "label": printable(lane.label),
        "rows": len(lane),
        "depth": lane.depth,
        "base": int(starts[0]),
        "constant": None if mixed else int(lane.categories[0]),
        "columns": [[name, planes.add(values)] for name, values in columns.items()],
    }


def _zigzag(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of either sign as non-negative ones, small where they were small."""
    return np.where(values < 0, -2 * values - 1, 2 * values)


def _steps(flows: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 where nothing is joined, else 1 + the step from the flow before, in zigzag.

    Launches are numbered as they come: nearly all steps are small.
    """
    joined = np.flatnonzero(flows > 0)
    steps = np.zeros(len(flows), dtype=np.int64)
    steps[joined] = _zigzag(np.diff(flows[joined], prepend=0)) + 1
    return steps


def _counter(counter: Counter, planes: _Planes) -> dict[str, Any]:
    """A counter's description, its columns added to the planes."""
    columns = {
        "time": np.diff(counter.times, prepend=counter.times[:1]),
        "value": _zigzag(np.diff(counter.values, prepend=0)),
    }
    return {
        "label": printable(counter.label),
        "unit": counter.unit,
        "rows": len(counter.times),
        "base": int(counter.times[0]),
        "columns": [[name, planes.add(values)] for name, values in columns.items()],
    }


def _mark(mark: Mark, shown: list[Place]) -> dict[str, Any]:
    return {
        "kind": mark.kind,
        "label": printable(mark.label),
        "text": printable(mark.text),
        "start": mark.start_ns,
        "end": mark.end_ns,
        "track": shown.index(mark.place) if mark.place in shown else None,
        "severity": mark.severity,
    }


def _order(lane: Lane) -> tuple[int, int, int, str]:
    """Ranges, streams, calls; the default domain of a thread before the others."""
    return (_ORDER.get(lane.kind, 2), lane.number, len(lane.label), lane.label)


def _who(track: Track) -> dict[str, Any]:
    place = track.place
    return {"label": place.label, "host": printable(place.host), "rank": place.rank}


def _short(names: _Table) -> list[str]:
    """The function of each name, where the whole is longer."""
    return [
        "" if (short := printable(_function(name))) == text else short
        for name, text in zip(names.numbers, names.texts, strict=True)
    ]


def _function(name: str) -> str:
    if name.startswith("[CUDA ") and name.endswith("]"):
        return name[len("[CUDA ") : -1]
    return function_name(name)


def _title(timeline: Timeline) -> str:
    shown = [printable(Path(name).name) for name in timeline.inputs]
    return shown[0] if len(shown) == 1 else f"{len(shown)} reports, {shown[0]} to {shown[-1]}"


def policy_hashes() -> tuple[str, str]:
    """How a policy names the page's script and style."""
    _, script, style = _sources()
    return policy_hash(script), policy_hash(style)


def _sources() -> tuple[str, str, str]:
    """The page's template, script and style."""
    folder = resources.files("nsightpy.render.timeline") / "html"

    def text(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    script = '"use strict";\n' + "".join(map(text, _SCRIPTS))
    return text("timeline.html"), script, text("timeline.css")


def _template() -> tuple[str, str]:
    """The page before and after its data, style and script inlined and named by their hashes."""
    page, script, style = _sources()
    page = page.replace("{{script_hash}}", policy_hash(script))
    page = page.replace("{{style_hash}}", policy_hash(style))
    page = page.replace("{{style}}", style).replace("{{script}}", script)
    before, _, after = page.partition("{{data}}")
    return before, after


def embed(timeline: Timeline, file: BinaryIO) -> None:
    """Write the page into another, as one JSON string that cannot end its script element."""
    file.write(b'<script type="application/json" id="timeline-page">"')
    write_page(timeline, cast(BinaryIO, _Escaping(file)))
    file.write(b'"</script>\n')


class _Escaping:
    """A file whose text goes on as the inside of a JSON string."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        self._file.write(script_json(data.decode())[1:-1].encode())
        return len(data)
