"""NVTX: ranges with their text, registered text and domain, as a frame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Ints, Labels, constant, distinct_pairs
from nsightpy.readers.nsys.columns import NO_END, coded, number, process_of, stored, text
from nsightpy.readers.nsys.events import SPAN
from nsightpy.readers.nsys.strings import UNNAMED
from nsightpy.readers.nsys.table_frames import (
    counted,
    note_absent,
    note_unlinked,
    process_part,
    thread_part,
)
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa
from nsightpy.store.store import COUNTED

NVTX = "NVTX_EVENTS"
DEFAULT_DOMAIN = ""
THREAD_NAME, DOMAIN_CREATE = 39, 75
STYLES = {59: "PushPop", 60: "StartEnd", 70: "PushPop", 71: "StartEnd"}
# What is read as what, and for which columns of the frame. A thread's serialized id holds pid and
# tid: read once, taken apart later.
_SOURCES = {
    "thread": ("globalTid", {"pid", "tid", "end_tid", "domain"}),
    "end_thread": ("endGlobalTid", {"end_tid"}),
    "text_id": ("textId", {"name"}),
    "domain_id": ("domainId", {"domain"}),
    "event_type": ("eventType", {"style"}),
}
# What stands for NULL, where that is not 0.
_NULL = {"text_id": UNNAMED}


def events(export: NsysExport) -> sa.TableClause | None:
    """The table of NVTX events; None where there is none, or none that says what its events are."""
    return export.table(NVTX, "eventType")


def nvtx_ranges(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of NVTX ranges, with text, registered text and domain resolved per process."""
    wanted = tuple(columns or frames.NVTX_RANGES.names)
    table = events(export)
    if table is None or not {"start", "end"} <= set(table.c.keys()):
        for lost in ("eventType", "start", "end"):
            _note_lost(export, lost)
        known = [name for name in wanted if name != COUNTED]
        return Frame({**Frame.empty(frames.NVTX_RANGES, known), COUNTED: constant(1, 0)})
    raw = _read(export, table, wanted)
    made: dict[str, ColumnData] = {name: raw[name] for name in SPAN if name in wanted}
    if "thread" in raw:
        made |= _thread_columns(raw)
        note_unlinked(export, NVTX, Frame(made))
    if "name" in wanted:
        made["name"] = note_absent(export, NVTX, "name", _names(export, raw))
    if "domain" in wanted:
        made["domain"] = _domains(export, raw.ints("domain_id"), process_part(raw.ints("thread")))
    if "style" in wanted:
        made["style"] = coded(raw.ints("event_type"), STYLES)
    if COUNTED in wanted:
        made[COUNTED] = counted(export, NVTX, Frame(made))
    return Frame({name: made[name] for name in wanted})


def _note_lost(export: NsysExport, column: str) -> None:
    held = export.file.tables.get(NVTX)
    if held is not None and column not in held.c and export.holds_rows(NVTX):
        note = f"its table {NVTX} has no column {column}: NVTX ranges are not known."
        export.note(note)


def _read(export: NsysExport, table: sa.TableClause, wanted: Sequence[str]) -> Frame:
    """What the wanted columns are made of, of all ranges."""
    spans = [
        stored(table, name.removesuffix("_ns"), NO_END).label(name)
        for name in SPAN
        if name in wanted
    ]
    ids = [
        stored(table, column, _NULL.get(name, 0)).label(name)
        for name, (column, used) in _SOURCES.items()
        if used & set(wanted)
    ]
    said = [text(table, "text")] if "name" in wanted and "text" in table.c else []
    query = sa.select(*spans, *ids, *said).where(_is_range(table))
    if (among := export.moments_of(table)) is not None:
        query = query.where(among)
    return Frame(export.file.arrays(query, table))


def _is_range(table: sa.TableClause) -> sa.ColumnElement[bool]:
    """The rows that are ranges; a few comparisons are faster than a list."""
    return sa.or_(*(table.c.eventType == style for style in STYLES))


def _thread_columns(raw: Frame) -> dict[str, ColumnData]:
    """Process and thread of the ranges, and the thread on which they end."""
    thread = raw.ints("thread")
    columns: dict[str, ColumnData] = {"pid": process_part(thread), "tid": thread_part(thread)}
    if "end_thread" in raw:
        end = raw.ints("end_thread")
        columns["end_tid"] = thread_part(np.where(end != 0, end, thread))
    return columns


def _names(export: NsysExport, raw: Frame) -> Labels:
    """The texts of events, or the texts that they registered."""
    if "text" not in raw:
        return export.strings.labels(raw.ints("text_id")).merged()
    texts = raw.labels("text")
    rows = np.flatnonzero(texts.equals([""]))
    registered = export.strings.labels(raw.ints("text_id")[rows])
    codes = texts.codes.copy()
    codes[rows] = registered.codes + np.int32(len(texts.values))
    return Labels(codes, texts.values + registered.values).merged()


def _domains(export: NsysExport, domain_id: Ints, pid: Ints) -> Labels:
    known = domain_names(export)
    keys, codes = distinct_pairs(pid, domain_id)
    fallbacks = (f"domain {domain}" if domain else DEFAULT_DOMAIN for _, domain in keys)
    return Labels(codes, tuple(map(known.get, keys, fallbacks))).merged()


def domain_names(export: NsysExport) -> dict[tuple[int, int], str]:
    """Domain names by (pid, domain id); ids are per process."""
    table = events(export)
    if table is None:
        return {}
    raw = export.once(naming_events).at(event_type=DOMAIN_CREATE)
    names = _names(export, raw)
    owners = zip(raw.ints("pid").tolist(), raw.ints("domain").tolist(), strict=True)
    return {owner: names[row] for row, owner in enumerate(owners)}


def naming_events(export: NsysExport) -> Frame:
    """What names threads and domains, and creates NCCL communicators, by one scan for all who ask.

    event_type, pid, start_ns, domain, text_id, text and jsonText, its payload.
    """
    table = export.file.tables[NVTX]
    kinds = () if events(export) is None else (THREAD_NAME, DOMAIN_CREATE)
    wanted = [table.c.eventType == kind for kind in kinds]
    if {"jsonText", "textId"} <= set(table.c.keys()):
        wanted += [table.c.textId == i for i in export.strings.starting("ncclCommInit", "CommInit")]
    query = sa.select(
        number(table, "eventType").label("event_type"),
        process_of(table).label("pid"),
        number(table, "start").label("start_ns"),
        number(table, "domainId").label("domain"),
        number(table, "textId", UNNAMED).label("text_id"),
        text(table, "text"),
        text(table, "jsonText").label("jsonText"),
    ).where(sa.or_(sa.false(), *wanted))
    return Frame(export.file.arrays(query, split=table))


def json_object(payload: str) -> dict[str, Any]:
    """A payload that was exported as JSON; empty where it is none, or no object."""
    try:
        value = json.loads(payload) if payload else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
