"""What `kernels` must say of a damaged file: counted here row by row, with nothing of nsightpy."""

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

# The lengths of the kernels of an export that can be counted.
LENGTHS = """
SELECT "end" - start FROM CUPTI_ACTIVITY_KIND_KERNEL
WHERE typeof(start) = 'integer' AND typeof("end") = 'integer' AND start <= "end"
AND start BETWEEN -(1 << 61) AND 1 << 61 AND "end" BETWEEN -(1 << 61) AND 1 << 61
"""
CATEGORIES = ("kernel", "concurrent_kernel")
LATEST_US = 9_000_000_000_000_000


def check(said: str, path: Path) -> Iterator[str]:
    """Complaints about what `kernels --format json` said of a file, where that can be told here."""
    try:
        lengths = _of_export(path) if path.suffix == ".sqlite" else _of_trace(path)
    except (Exception, MemoryError):  # noqa: BLE001 - what cannot be read here has no sum here
        return
    if lengths is None:
        return
    rows = json.loads(said)["rows"]
    counted = sum(row["Instances"] for row in rows)
    total = sum(row["Total Time (ns)"] for row in rows)
    if counted != len(lengths):
        yield f"totals: {counted} kernels of {len(lengths)}"
    elif abs(total - sum(lengths)) > counted:
        yield f"totals: {total} ns of {sum(lengths)}"


def _of_export(path: Path) -> list[int] | None:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        left = itertools.count(200, -1)
        connection.set_progress_handler(lambda: int(next(left) < 0), 100_000)
        table = "CUPTI_ACTIVITY_KIND_KERNEL"
        kind = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,))
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        needed = {"start", "end", "deviceId", "streamId"}
        if kind.fetchone() != ("table",) or not columns >= needed:
            return None
        return [length for (length,) in connection.execute(LENGTHS)]


def _of_trace(path: Path) -> list[int] | None:
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
    return lengths


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
