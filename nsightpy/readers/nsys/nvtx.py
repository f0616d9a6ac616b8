"""NVTX: ranges with their text, registered text and domain, as a frame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nsightpy import frames
from nsightpy.frames import Frame, Ints, Labels, distinct_pairs
from nsightpy.readers.nsys.columns import coded, number, process_of, text
from nsightpy.readers.nsys.events import OF_THREAD, SPAN
from nsightpy.readers.nsys.strings import UNNAMED
from nsightpy.readers.nsys.table_frames import (
    Source,
    counted,
    is_readable,
    note_absent,
    note_missing,
    nothing,
    stored_frame,
    thread_part,
)
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa
from nsightpy.store.store import COUNTED

NVTX = "NVTX_EVENTS"
DEFAULT_DOMAIN = ""
THREAD_NAME, DOMAIN_CREATE = 39, 75
STYLES = {59: "PushPop", 60: "StartEnd", 70: "PushPop", 71: "StartEnd"}


def events(export: NsysExport) -> sa.TableClause | None:
    """The table of NVTX events; None where there is none, or none that says what its events are."""
    return export.table(NVTX, "eventType")


_RANGES = Source(
    NVTX,
    {**SPAN, "domain_id": "domainId", "event_type": "eventType", "end_thread": "endGlobalTid"},
    ids=OF_THREAD,
    names={"text_id": "textId"},
    texts={"text": "text"},
    needs=("eventType",),
    # a few comparisons are faster than a list
    where=lambda table: sa.or_(*(table.c.eventType == style for style in STYLES)),
)
# What columns are made of, where the table does not have them as they are.
_MADE_OF = {
    "name": ("text_id", "text"),
    "domain": ("pid", "domain_id"),
    "end_tid": ("tid", "end_thread"),
    "style": ("event_type",),
}


def nvtx_ranges(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of NVTX ranges, with text, registered text and domain resolved per process."""
    wanted = tuple(columns or frames.NVTX_RANGES.names)
    if not is_readable(export, _RANGES):
        return nothing(frames.NVTX_RANGES, wanted)
    needed = (each for name in wanted for each in _MADE_OF.get(name, (name,)) if name != COUNTED)
    raw = stored_frame(export, frames.NVTX_RANGES, _RANGES, tuple(dict.fromkeys(needed)))
    note_missing(export, NVTX, raw)
    made = dict(raw)
    if "name" in wanted:
        made["name"] = note_absent(export, NVTX, "name", _names(export, raw))
    if "domain" in wanted:
        made["domain"] = _domains(export, raw.ints("domain_id"), raw.ints("pid"))
    if "end_tid" in wanted:
        end = raw.ints("end_thread")
        made["end_tid"] = np.where(end != 0, thread_part(end), raw.ints("tid"))
    if "style" in wanted:
        made["style"] = coded(raw.ints("event_type"), STYLES)
    if COUNTED in wanted:
        made[COUNTED] = counted(export, NVTX, Frame(made))
    return Frame({name: made[name] for name in wanted})


def _names(export: NsysExport, raw: Frame) -> Labels:
    """The texts of events, or the texts that they registered."""
    texts = raw.labels("text")
    rows = np.flatnonzero(texts.equals([""]))
    registered = export.strings.labels(raw.ints("text_id")[rows])
    codes = texts.codes.copy()
    codes[rows] = registered.codes + np.int32(len(texts.values))
    return Labels(codes, texts.values + registered.values).merged()


def _domains(export: NsysExport, domain_id: Ints, pid: Ints) -> Labels:
    names = domain_names(export)
    keys, codes = distinct_pairs(pid, domain_id)
    fallbacks = (f"domain {domain}" if domain else DEFAULT_DOMAIN for _, domain in keys)
    return Labels(codes, tuple(map(names.get, keys, fallbacks))).merged()


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
