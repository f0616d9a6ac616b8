"""When each launch call began: the few columns of the API table that idle time is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nsightpy.frames import API_CALLS, ColumnData, Frame, constant, elementwise
from nsightpy.readers.host_calls import LAST_LAUNCH_CLASS, LAUNCHING, launch_columns
from nsightpy.readers.limits import GREATEST_TIME
from nsightpy.readers.nsys.columns import NO_END, SPAN, column, process_of, stored
from nsightpy.readers.nsys.events import GRAPH_TRACE, KERNEL, MEMCPY, MEMSET, RUNTIME
from nsightpy.readers.nsys.table_frames import countable_columns, note_unlinked
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite import Query

_THREADS = 1 << 24
_FEW = 6


def launch_calls(
    export: NsysExport,
    alone: int | None,
    names: Sequence[str] = LAUNCHING,
    *,
    others: bool = False,
    whole: bool = False,
) -> Frame:
    """start_ns, pid and correlation_id of runtime and driver calls, by start; more on request.

    Calls of functions whose names begin so, or all `others`. `alone` is the global id of the one
    process whose calls are wanted; None for all processes. `whole` adds end_ns and tid.
    """
    if not export.has(RUNTIME):
        return Frame.empty(API_CALLS, launch_columns(whole=whole))
    table = export.file.tables[RUNTIME]
    alone = alone if "globalTid" in table.c else None
    ids = {"correlation_id": column("correlationId")}
    if whole:
        ids["thread"] = column("globalTid")
    elif alone is None:
        ids["pid"] = process_of("globalTid")
    conditions = _conditions(export, table, alone, names, others=others)

    def query(*, careful: bool) -> Query:
        # SQLite itself leaves out what ends nowhere or before it starts, where ends are not read
        names = SPAN if whole or careful else ("start_ns",)
        spans = [stored(table, n, SPAN[n], NO_END, careful=careful) for n in names]
        more = [stored(table, name, made, 0, careful=careful) for name, made in ids.items()]
        possible = [] if len(names) > 1 or "end" not in table.c else [
            table.c.end >= table.c.start, table.c.end <= GREATEST_TIME
        ]  # fmt: skip
        return sa.select(*spans, *more).where(*conditions, *possible)

    raw = dict(countable_columns(export, table, query))
    note_unlinked(export, RUNTIME, raw)
    if not whole:
        raw.pop("end_ns", None)
    else:
        raw |= _thread_columns(raw.pop("thread"), alone)
    calls = Frame(raw)
    if alone is None:
        return calls.ordered()
    pid = constant((alone >> 24) & (_THREADS - 1), calls.rows)
    return Frame({**calls, "pid": pid}).ordered()


def _conditions(
    export: NsysExport,
    table: sa.TableClause,
    alone: int | None,
    names: Sequence[str],
    *,
    others: bool,
) -> list[sa.ColumnElement[bool]]:
    """Which rows are calls of these functions, or all others, of one process or of all."""
    conditions: list[sa.ColumnElement[bool]] = []
    if "nameId" in table.c:
        conditions.append(_among(table.c.nameId, export.strings.matching(*names), others=others))
    elif others:
        conditions.append(sa.false())
    if alone is not None:
        conditions += [table.c.globalTid >= alone, table.c.globalTid < alone + _THREADS]
    if "eventClass" in table.c:
        conditions.append(table.c.eventClass <= LAST_LAUNCH_CLASS)
    return conditions


def _thread_columns(thread: ColumnData, alone: int | None) -> dict[str, ColumnData]:
    """Process and thread of serialized thread ids."""
    ids = Frame({"thread": thread}).ints("thread")
    columns: dict[str, ColumnData] = {
        "tid": elementwise(lambda thread_ids: thread_ids & (_THREADS - 1), ids)
    }
    if alone is None:
        columns["pid"] = elementwise(lambda thread_ids: (thread_ids >> 24) & (_THREADS - 1), ids)
    return columns


def only_process(export: NsysExport, *, likely: bool = False) -> int | None:
    """The global id of the one process that owns all GPU work; None when there are several.

    What is `likely`, by the first rows, costs no scan; tables that were read since are certain.
    """
    owners = set()
    for table in (KERNEL, MEMCPY, MEMSET, GRAPH_TRACE):
        if export.holds_rows(table):
            guessed = export.guessed_steady(table) if likely else None
            owners.add((export.steady(table) if guessed is None else guessed).get("globalPid"))
    return owners.pop() if len(owners) == 1 else None


def _among(
    name: sa.ColumnClause[Any], ids: Sequence[int], *, others: bool
) -> sa.ColumnElement[bool]:
    """Rows of these names, or all others; a few comparisons are faster than a list."""
    if others:
        return name.is_(None) | name.not_in(ids)
    return sa.or_(*(name == i for i in ids)) if 0 < len(ids) <= _FEW else name.in_(ids)
