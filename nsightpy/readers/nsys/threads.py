"""Names and priorities of threads."""

from __future__ import annotations

import numpy as np
import sqlalchemy as sa

from nsightpy.readers.nsys.tables import NsysExport

THREAD_NAMES = "ThreadNames"


def thread_names(export: NsysExport) -> dict[tuple[int, int], tuple[int | None, str | None]]:
    """Priority and name by process and thread; of a thread that was renamed, the first."""
    table = export.file.tables.get(THREAD_NAMES)
    if table is None or not {"globalTid", "nameId"} <= set(table.c.keys()):
        return {}
    priority = table.c.priority if "priority" in table.c else sa.null()
    found = export.file.rows(sa.select(table.c.globalTid, table.c.nameId, priority))
    rows = [row for row in found if isinstance(row[0], int)]
    names = export.strings.labels(np.asarray([int(row[1] or 0) for row in rows], dtype=np.int64))
    threads: dict[tuple[int, int], tuple[int | None, str | None]] = {}
    for place, (thread, _, importance) in enumerate(rows):
        key = ((thread >> 24) & 0xFFFFFF, thread & 0xFFFFFF)
        threads.setdefault(key, (importance, names[place] or None))
    return threads
