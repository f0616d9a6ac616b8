"""The summary of one run from the parts of its reports: means over its devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import CollectiveLog
from nsightpy.analysis.comparison.attribution import reconciled, whole_parts
from nsightpy.analysis.comparison.kernel_names import category_of
from nsightpy.analysis.comparison.unit_works import MOST_SAMPLES, UnitWorks, some_units, unit_works
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import SHARED
from nsightpy.commands.compare.circumstances import of_run
from nsightpy.commands.compare.report_part import PlaceUnits, ReportPart
from nsightpy.frames import Floats, Frame, Ints, Labels
from nsightpy.query.rank_alignment import align_parts
from nsightpy.reports.system import SystemReport
from nsightpy.results.run_summary import RunSummary, UnitSummary, WorkSummary
from nsightpy.units import format_bytes

WAIT, TRANSFER = ": wait", ": transfer"
# So many kernels, collectives and ranges are kept unit by unit.
MOST_SAMPLED = 200
MOST_RANGES = 200


def run_summary(
    name: str,
    results: Sequence[tuple[SystemReport, ReportPart]],
    notes: Sequence[str],
    kinds: Sequence[str],
) -> RunSummary:
    """The summary of one run from the parts of its reports, whose ranks are known.

    `kinds` are those units (step, window) that are wanted; reports without GPU work do not count.
    """
    parts = [part for _, part in results]
    working = [result for result in results if result[1].units]
    collectives = collective_works(working, kinds)
    units = {
        kind: unit_summary(
            [place_units for _, part in working for place_units in part.units[kind]],
            collectives[kind],
        )
        for kind in kinds
    }
    ranks = {report.rank_of(pid)[0] for report, _ in results for pid in report.pids}
    devices = len(
        {
            (place, place_units.place)
            for place, part in enumerate(parts)
            for place_units in part.units.get("window", ())
        }
    )
    known = [part.circumstances for part in parts]
    said = [*notes, *(note for part in parts for note in part.notes)]
    return RunSummary(
        results[0][0].kind,
        name,
        units,
        of_run(known, len(ranks - {None}), devices),
        tuple(dict.fromkeys(said)),
    )


def unit_summary(places: Sequence[PlaceUnits], collectives: Sequence[UnitWorks]) -> UnitSummary:
    """The units of all devices as one: step by step the mean over devices."""
    length = min(len(place.parts) for place in places)
    rows = [
        _job_unit([place.parts[len(place.parts) - length + unit] for place in places])
        for unit in range(length)
    ]
    parts = np.asarray(rows, dtype=np.int64)
    duration, typical_parts = reconciled(parts)
    samples = np.concatenate([parts.sum(axis=1)[:, None], parts], axis=1)
    samples = samples[some_units(length, MOST_SAMPLES)]
    count = len(samples)
    ran = [works for place in places for works in (place.kernels, place.graphs)]
    kernels = _works("kernel", ran, count, len(places))
    in_ranges = [place.ranges for place in places if place.ranges is not None]
    ranges = _works("range", in_ranges, count, len(in_ranges))[:MOST_RANGES]
    busiest = max(places, key=lambda place: len(place.kernels.order))
    numbers = {work.name: number for number, work in enumerate(kernels)}
    return UnitSummary(
        duration,
        tuple(typical_parts.tolist()),
        min(place.covered for place in places),
        tuple(map(tuple, samples.tolist())) if length > 1 else (),
        (*kernels, *_works("collective", collectives, count, len(places)), *ranges),
        tuple(numbers[name] for name in busiest.kernels.order if name in numbers),
    )


def _job_unit(parts: Sequence[Ints]) -> Ints:
    """One unit of the job: the mean over devices, in whole ns."""
    if len(parts) == 1:
        return parts[0]
    middle = np.mean(parts, axis=0)
    return whole_parts(middle, round(float(middle.sum())))


def _works(
    section: str, works: Sequence[UnitWorks], samples: int, devices: int
) -> tuple[WorkSummary, ...]:
    """What ran in one unit, over so many devices on average, most time first.

    Its time is the median of the units where it runs alike in all, else the mean: the median of
    what runs in every third unit only would be nothing.
    """
    counts: dict[str, float] = {}
    means: dict[str, float] = {}
    times: dict[str, Floats] = {}
    regular: dict[str, bool] = {}
    paths: dict[str, str] = {}
    positions: dict[str, float] = {}
    for work in works:
        paths = work.paths | paths
        positions = work.positions | positions
        for row, name in enumerate(work.names):
            per_device = work.totals[row, work.totals.shape[1] - samples :] / devices
            counts[name] = counts.get(name, 0.0) + float(work.counts[row]) / devices
            means[name] = means.get(name, 0.0) + float(work.means[row]) / devices
            times[name] = times.get(name, np.zeros(samples)) + per_device
            regular[name] = regular.get(name, True) and work.regular[row]
    totals = {
        name: round(float(np.median(sums)) if regular[name] else means[name])
        for name, sums in times.items()
    }
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    return tuple(
        WorkSummary(
            section,
            name,
            counts[name],
            totals[name],
            paths.get(name, ""),
            positions.get(name),
            category_of(name) if section == "kernel" else "",
            tuple(np.rint(times[name]).astype(np.int64).tolist())
            if samples > 1 and place < MOST_SAMPLED
            else (),
        )
        for place, name in enumerate(ordered)
    )


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
