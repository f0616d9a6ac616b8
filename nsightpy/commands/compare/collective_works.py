"""The collectives of a run: how long ranks wait in them, and how long the transfer takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import CollectiveLog
from nsightpy.analysis.comparison.unit_works import UnitWorks, unit_works
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import SHARED
from nsightpy.commands.compare.report_part import PlaceUnits, ReportPart
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.query.rank_alignment import align_parts
from nsightpy.reports.system import SystemReport
from nsightpy.units import format_bytes

WAIT, TRANSFER = ": wait", ": transfer"


def collective_works(
    results: Sequence[tuple[SystemReport, ReportPart]], kinds: Sequence[str]
) -> dict[str, list[UnitWorks]]:
    """Collectives by operation, size and number of ranks, for each device and kind of unit.

    Where ranks meet, each is two: `wait` until the last rank has come, and `transfer`, the rest of
    its duration.
    """
    known = [(report, part.collectives) for report, part in results if part.collectives]
    if not known:
        return {kind: [] for kind in kinds}
    alignment = align_parts(known)
    names, suffixed = _names(alignment), _suffixed(alignment)
    parts = {str(report.path): part for report, part in results}
    works: dict[str, list[UnitWorks]] = {kind: [] for kind in kinds}
    for number, unit in enumerate(alignment.ledger.units):
        part = parts[alignment.clocks[unit.clock].report]
        rows = np.flatnonzero(alignment.ledger.unit == number)
        if part.collectives is None:
            continue
        logged = _logged(part.collectives.log, (unit.pid, unit.device))
        if len(logged) != len(rows):
            continue
        for kind in kinds:
            place = _place(part.units[kind], (unit.pid, unit.device))
            if place is not None:
                owner = part.owners[kind][logged]
                works[kind].append(_of_place(rows, owner, names, suffixed, place.covered))
    return works


def _place(units: Sequence[PlaceUnits], place: tuple[int, int]) -> PlaceUnits | None:
    return next((unit for unit in units if unit.place == place), None)


def _logged(log: CollectiveLog, place: tuple[int, int]) -> Ints:
    """The rows of a log of one device, in the order in which a ledger has them."""
    mine = np.asarray([(kind.pid, kind.device) == place for kind in log.kinds], dtype=np.bool_)
    rows = np.flatnonzero(mine[log.codes]) if len(mine) else np.empty(0, dtype=np.int64)
    return rows[np.lexsort((log.ends[rows], log.starts[rows]))]


def _suffixed(alignment: Alignment) -> Mapping[str, Ints]:
    """The times of each row of the ledger under the suffixes of its name, -1: not under this."""
    durations = alignment.ends - alignment.starts
    arrivals = arrivals_of(alignment)
    waits = np.full(len(durations), -1, dtype=np.int64)
    waits[arrivals.rows] = arrivals.waits
    together = waits >= 0
    rest = np.where(together, durations - waits, -1)
    return {WAIT: waits, TRANSFER: rest, "": np.where(together, -1, durations)}


def _of_place(
    rows: Ints, owner: Ints, names: Labels, suffixed: Mapping[str, Ints], units: int
) -> UnitWorks:
    """The collectives of one device, rows of the ledger, in its units."""
    parts = []
    for suffix, times in suffixed.items():
        here = np.flatnonzero(times[rows] >= 0)
        codes = names.codes[rows[here]]
        called = Labels(codes, tuple(name + suffix for name in names.values))
        parts.append(Frame({"name": called, "owner": owner[here], "length": times[rows[here]]}))
    every = Frame.concatenate(parts)
    return unit_works(every.labels("name"), every.ints("owner"), every.ints("length"), units)


def _names(alignment: Alignment) -> Labels:
    """How each row of the ledger is called: operation, bytes of all, ranks."""
    ledger = alignment.ledger
    keys = np.stack([ledger.signature, ledger.communicator]).astype(np.int64)
    pairs, codes = np.unique(keys, axis=1, return_inverse=True)
    texts = []
    for signature, communicator in pairs.T.tolist():
        what = ledger.signatures[signature]
        size = ledger.group_sizes[communicator] if communicator >= 0 else 0
        whole = what.bytes * (size if size and what.operation in SHARED else 1)
        text = what.operation
        text += f" {format_bytes(whole)}" if what.bytes >= 0 else ""
        text += f", {size} ranks" if size else ""
        texts.append(text)
    return Labels(codes.reshape(-1).astype(np.int32), tuple(texts)).merged()
