"""Names and priorities of threads."""

from __future__ import annotations

from operator import itemgetter
from typing import TypeAlias

import numpy as np

from nsightpy.readers.nsys.columns import numbered, whole_number
from nsightpy.readers.nsys.strings import UNNAMED
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

# Priority and name by process and thread.
ThreadNames: TypeAlias = dict[tuple[int, int], tuple[int | None, str | None]]


def thread_names(export: NsysExport) -> ThreadNames:
    """Priority and name by process and thread; of a thread that was renamed, the first by name."""
    table = export.table("ThreadNames", "globalTid", "nameId")
    if table is None:
        return {}
    priority = table.c.priority if "priority" in table.c else sa.null()
    stored = export.file.rows(sa.select(table.c.globalTid, table.c.nameId, priority))
    rows = [
        (thread, whole_number(name), whole_number(importance))
        for thread, name, importance in numbered(stored, 1)
    ]
    ids = [UNNAMED if name is None else name for _, name, _ in rows]
    names = export.strings.labels(np.asarray(ids, dtype=np.int64))
    threads: ThreadNames = {}
    named = [(not name, name, row[2] or 0, row) for name, row in zip(names, rows, strict=True)]
    for _, name, _, (thread, _, importance) in sorted(named, key=itemgetter(0, 1, 2)):
        key = ((thread >> 24) & 0xFFFFFF, thread & 0xFFFFFF)
        threads.setdefault(key, (importance, name or None))
    return threads
