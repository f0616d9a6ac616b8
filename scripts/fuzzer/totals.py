"""What `kernels` must say of a damaged file: counted here row by row, with nothing of nsightpy."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
COLUMNS = {"start", "end", "deviceId", "streamId"}
FAR = 2**61
CATEGORIES = ("kernel", "concurrent_kernel")
LATEST_US = 9_000_000_000_000_000


def expected(path: Path) -> tuple[int, int] | None:
    """Kernels that can be counted, and their total ns; None where that cannot be told here."""
    try:
        if path.suffix == ".sqlite":
            return _of_export(path)
        return _of_trace(path)
    except (Exception, MemoryError):  # noqa: BLE001 - what cannot be read here has no sum here
        return None


def check(said: str, path: Path) -> Iterator[str]:
    """Complaints about what `kernels --format json` said."""
    known = expected(path)
    if known is None:
        return
    rows = json.loads(said)["rows"]
    counted = sum(row["Instances"] for row in rows)
    total = sum(row["Total Time (ns)"] for row in rows)
    if counted != known[0]:
        yield f"totals: {counted} kernels of {known[0]}"
    elif abs(total - known[1]) > counted:
        yield f"totals: {total} ns of {known[1]}"


def _of_export(path: Path) -> tuple[int, int] | None:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        left = itertools.count(200, -1)
        connection.set_progress_handler(lambda: int(next(left) < 0), 100_000)
        kind = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (TABLE,))
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({TABLE})")}
        if kind.fetchone() != ("table",) or not columns >= COLUMNS:
            return None
        lengths = [
            end - start
            for start, end in connection.execute(f'SELECT start, "end" FROM {TABLE}')
            if isinstance(start, int) and isinstance(end, int)
            if max(abs(start), abs(end)) <= FAR and end >= start
        ]
    return len(lengths), sum(lengths)


def _of_trace(path: Path) -> tuple[int, int] | None:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        with gzip.open(path) as file:
            data = file.read(20_000_000)
            if file.read(1):
                return None
    content = json.loads(data)
    events = content["traceEvents"] if isinstance(content, dict) else content
    if not isinstance(events, list) or not all(isinstance(e, dict) for e in events):
        return None
    lengths = []
    for event in events:
        category, phase = event.get("cat"), event.get("ph")
        if not isinstance(category, str) or category.lower() not in CATEGORIES:
            continue
        start, duration = _microseconds(event.get("ts")), _microseconds(event.get("dur"))
        # an event whose kind or name is no text is damaged
        whole = isinstance(event.get("name"), str | None) and phase in ("X", "i", "I", None)
        if whole and start is not None and duration is not None and duration >= 0:
            lengths.append(round(duration * 1000))
    return len(lengths), sum(lengths)


def _microseconds(value: Any) -> float | None:
    """A time as readers take it: a number, or a text of one; None where it is none."""
    if isinstance(value, str) and re.fullmatch(r"\s*[-+.\deE]+\s*", value):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and abs(value) < LATEST_US else None
