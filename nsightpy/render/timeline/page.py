"""A timeline as one offline page: zoom, pan, search and details in the browser.

Events travel as byte planes (all lowest bytes of a column, then all second ones, ...), deflated
and in base64; names once, in a table. The page may load nothing: its policy names its one script
by hash, and free text only ever becomes text.
"""

import base64
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from nsightpy.frames import Labels
from nsightpy.names import function_name
from nsightpy.output.escape import printable
from nsightpy.render.inline import policy_hash, script_json, source, template
from nsightpy.results.tracks import NO_LAUNCH, RANGES, STREAM, Counter, Lane, Owner, Timeline

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
        numbers = [self.numbers.setdefault(v, len(self.numbers)) for v in labels.values]
        return np.asarray(numbers, dtype=np.int64)[labels.codes]

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
    for text in _pieces(timeline):
        file.write(text.encode())


def embed(timeline: Timeline, file: BinaryIO) -> None:
    """Write the page into another, as one JSON string that cannot end its script element."""
    file.write(b'<script type="application/json" id="timeline-page">"')
    for text in _pieces(timeline):
        file.write(script_json(text)[1:-1].encode())
    file.write(b'"</script>\n')


def sources() -> tuple[str, str]:
    """The page's script and style."""
    script = "".join(source("timeline", name) for name in _SCRIPTS)
    return f'"use strict";\n{script}', source("timeline", "timeline.css")


def _pieces(timeline: Timeline) -> Iterator[str]:
    """The page from its head to its end."""
    names, details, tracks = _Table(), _Table(), dict[Owner, dict[str, Any]]()
    script, style = sources()
    inputs = [printable(Path(name).name) for name in timeline.inputs]
    several = f"{len(inputs)} reports, {inputs[0]} to {inputs[-1]}"
    return template("timeline", "timeline.html").generate(
        title=inputs[0] if len(inputs) == 1 else several,
        script_hash=policy_hash(script),
        style_hash=policy_hash(style),
        script=Markup(script),
        style=Markup(style),
        blocks=_blocks(timeline, tracks, names, details),
        head=partial(_head, timeline, tracks, names, details),
    )


def _blocks(
    timeline: Timeline, tracks: dict[Owner, dict[str, Any]], names: _Table, details: _Table
) -> Iterator[tuple[int, Markup]]:
    """The number of each track that has any events, and its columns; what tells what they are is
    added to the tracks and their names."""
    processes: dict[tuple[str, int], int] = {}
    for block, track in enumerate(timeline):
        owner, planes = track.owner, _Planes()
        # ranges, streams, calls; the default domain of a thread before the others
        lanes = sorted(
            track.lanes, key=lambda x: (_ORDER.get(x.kind, 2), x.number, len(x.label), x.label)
        )
        tracks[owner] = {
            "label": owner.label,
            "host": printable(owner.host),
            "rank": owner.rank,
            "process": processes.setdefault((owner.report, owner.pid), len(processes)),
            "block": block,
            "lanes": [_lane(lane, planes, names, details) for lane in lanes],
            "counters": [_counter(counter, planes) for counter in track.counters],
        }
        if track.lanes or track.counters:
            yield block, Markup(planes.encoded().decode())


def _head(
    timeline: Timeline, tracks: dict[Owner, dict[str, Any]], names: _Table, details: _Table
) -> Markup:
    """The tracks, their names and the marks, after all blocks."""
    shown = [owner for owner in timeline.owners if owner in tracks]
    head = {
        "caption": f"times in ms of the first report; {timeline.clock}",
        "window": [timeline.start_ns, timeline.end_ns],
        "notes": [printable(note) for note in timeline.notes],
        "tracks": [tracks[owner] for owner in shown],
        "names": names.texts,
        "short": _short(names),
        "details": details.texts,
        "marks": [
            {
                "kind": mark.kind,
                "label": printable(mark.label),
                "text": printable(mark.text),
                "start": mark.start_ns,
                "end": mark.end_ns,
                "track": shown.index(mark.owner) if mark.owner in shown else None,
                "severity": mark.severity,
            }
            for mark in timeline.marks()
        ],
    }
    return Markup(script_json(head))


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


def _short(names: _Table) -> list[str]:
    """The function of each name, and what is copied, where the whole is longer."""
    short = [
        printable(name[6:].removesuffix("]") if name.startswith("[CUDA ") else function_name(name))
        for name in names.numbers
    ]
    return ["" if one == whole else one for one, whole in zip(short, names.texts, strict=True)]
