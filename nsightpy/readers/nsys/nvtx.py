"""NVTX: ranges with their text, registered text and domain, as a frame."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Labels, distinct_pairs
from nsightpy.readers.nsys.events import OF_THREAD, SPAN
from nsightpy.readers.nsys.table_frames import Derived, Source, reader
from nsightpy.readers.nsys.tables import (
    UNNAMED,
    NsysExport,
    number,
    process_part,
    text,
    thread_part,
)
from nsightpy.readers.sql import sa

NVTX = "NVTX_EVENTS"
DEFAULT_DOMAIN = ""
THREAD_NAME, DOMAIN_CREATE = 39, 75
STYLES = {59: "PushPop", 60: "StartEnd", 70: "PushPop", 71: "StartEnd"}


def events(export: NsysExport) -> sa.TableClause | None:
    """The table of NVTX events; None where there is none, or none that says what its events are."""
    return export.table(NVTX, "eventType")


def range_names(export: NsysExport, raw: Frame) -> Labels:
    """The texts of events, or the texts that they registered."""
    texts = raw.labels("text")
    rows = np.flatnonzero(texts.equals([""]))
    registered = export.strings.labels(raw.ints("text_id")[rows])
    codes = texts.codes.copy()
    codes[rows] = registered.codes + np.int32(len(texts.values))
    return Labels(codes, texts.values + registered.values).merged()


def _name(export: NsysExport, raw: Frame) -> dict[str, ColumnData]:
    return {"name": range_names(export, raw)}


def _domain(export: NsysExport, raw: Frame) -> dict[str, ColumnData]:
    names = domain_names(export)
    keys, codes = distinct_pairs(raw.ints("pid"), raw.ints("domain_id"))
    fallbacks = (f"domain {domain}" if domain else DEFAULT_DOMAIN for _, domain in keys)
    return {"domain": Labels(codes, tuple(map(names.get, keys, fallbacks))).merged()}


def _end_tid(_export: NsysExport, raw: Frame) -> dict[str, ColumnData]:
    end = raw.ints("end_thread")
    return {"end_tid": np.where(end != 0, thread_part(end), raw.ints("tid"))}


nvtx_ranges = reader(
    frames.NVTX_RANGES,
    Source(
        NVTX,
        {
            **SPAN,
            "domain_id": "domainId",
            "end_thread": "endGlobalTid",
            "text_id": ("textId", UNNAMED),
        },
        ids=OF_THREAD,
        codes={"style": ("eventType", STYLES)},
        texts={"text": "text"},
        derived=(
            Derived(("name",), ("text_id", "text"), _name),
            Derived(("domain",), ("pid", "domain_id"), _domain),
            Derived(("end_tid",), ("tid", "end_thread"), _end_tid),
        ),
        needs=("eventType",),
        # a few comparisons are faster than a list
        where=lambda table: sa.or_(*(table.c.eventType == style for style in STYLES)),
    ),
)


def nvtx_pids(export: NsysExport) -> set[int]:
    """The processes with NVTX events."""
    table = export.table(NVTX)
    if table is None:
        return set()
    pid = number(table, "globalTid").op(">>")(24).op("&")(0xFFFFFF)
    return {int(pid) for (pid,) in export.file.rows(sa.select(pid).distinct())} - {0}


def domain_names(export: NsysExport) -> dict[tuple[int, int], str]:
    """Domain names by (pid, domain id); ids are per process."""
    table = events(export)
    if table is None:
        return {}
    raw = export.once(naming_events).at(event_type=DOMAIN_CREATE)
    names = range_names(export, raw)
    owners = zip(raw.ints("pid").tolist(), raw.ints("domain").tolist(), strict=True)
    return {owner: names[row] for row, owner in enumerate(owners)}


def naming_events(export: NsysExport) -> Frame:
    """What names threads and domains, and creates NCCL communicators, by one scan for all who ask.

    event_type, pid, start_ns, domain, text_id, text and jsonText, its payload.
    """
    table = export.table(NVTX)
    assert table is not None
    kinds = (THREAD_NAME, DOMAIN_CREATE) if "eventType" in table.c else ()
    wanted = [table.c.eventType == kind for kind in kinds]
    if {"jsonText", "textId"} <= set(table.c.keys()):
        wanted += [table.c.textId == i for i in export.strings.starting("ncclCommInit", "CommInit")]
    query = sa.select(
        number(table, "eventType").label("event_type"),
        number(table, "globalTid").label("thread"),
        number(table, "start").label("start_ns"),
        number(table, "domainId").label("domain"),
        number(table, "textId", UNNAMED).label("text_id"),
        text(table, "text"),
        text(table, "jsonText").label("jsonText"),
    ).where(sa.or_(sa.false(), *wanted))
    raw = Frame(export.file.arrays(query, split=table))
    return Frame({**raw, "pid": process_part(raw.ints("thread"))})


def json_object(payload: str) -> dict[str, Any]:
    """A payload that was exported as JSON; empty where it is none, or no object."""
    try:
        value = json.loads(payload) if payload else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
