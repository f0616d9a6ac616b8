"""The collectives of a run: how long ranks wait in them, and how long the transfer takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import SHARED
from nsightpy.commands.compare.report_part import ReportPart
from nsightpy.frames import Floats, Ints
from nsightpy.query.rank_alignment import align_parts
from nsightpy.reports.system import SystemReport
from nsightpy.results.run_summary import WorkSummary
from nsightpy.units import format_bytes

SECTION = "collective"


def collective_works(
    results: Sequence[tuple[SystemReport, ReportPart]], kind: str
) -> list[WorkSummary]:
    """Collectives in one unit by operation, size and number of ranks, over the devices on average.

    Where ranks meet, each is two: `wait` until the last rank has come, and `transfer`, the rest of
    its duration.
    """
    known = [
        (
            report,
            replace(part.collectives, log=replace(part.collectives.log, shown=part.shown[kind])),
        )
        for report, part in results
        if part.collectives is not None
    ]
    if not known:
        return []
    places = [place for _, part in results for place in part.units[kind]]
    units = float(sum(place.covered for place in places))
    alignment = align_parts(known)
    names = _names(alignment)
    ledger = alignment.ledger
    durations = alignment.ends - alignment.starts
    arrivals = arrivals_of(alignment)
    waits = np.full(len(ledger), -1, dtype=np.int64)
    waits[arrivals.rows] = arrivals.waits
    shown = np.flatnonzero(ledger.shown)
    alone = shown[waits[shown] < 0]
    together = shown[waits[shown] >= 0]
    rest = durations[together] - waits[together]
    return [
        *_summed(names, together, waits[together], units, ": wait"),
        *_summed(names, together, rest, units, ": transfer"),
        *_summed(names, alone, durations[alone], units, ""),
    ]


def _names(alignment: Alignment) -> tuple[list[str], Ints]:
    """How each row of the ledger is called: operation, bytes of all, ranks; names and codes."""
    ledger = alignment.ledger
    keys = np.stack([ledger.signature, ledger.communicator]).astype(np.int64)
    pairs, codes = np.unique(keys, axis=1, return_inverse=True)
    texts: dict[str, int] = {}
    places = []
    for signature, communicator in pairs.T.tolist():
        what = ledger.signatures[signature]
        size = ledger.group_sizes[communicator] if communicator >= 0 else 0
        whole = what.bytes * (size if size and what.operation in SHARED else 1)
        text = what.operation
        text += f" {format_bytes(whole)}" if what.bytes >= 0 else ""
        text += f", {size} ranks" if size else ""
        places.append(texts.setdefault(text, len(texts)))
    table = np.asarray(places, dtype=np.int64)
    return list(texts), table[codes.reshape(-1)] if len(table) else codes.reshape(-1)


def _summed(
    names: tuple[list[str], Ints], rows: Ints, times: Ints, units: float, suffix: str
) -> list[WorkSummary]:
    texts, codes = names
    counts: Floats = np.bincount(codes[rows], minlength=len(texts)).astype(np.float64)
    sums = np.bincount(codes[rows], times.astype(np.float64), len(texts))
    return [
        WorkSummary(SECTION, f"{text}{suffix}", float(count / units), round(float(total / units)))
        for text, count, total in zip(texts, counts, sums, strict=True)
        if count
    ]
