"""The summary of one run from the parts of its reports: means over its devices."""

from collections.abc import Sequence

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.comparison.device_units import UnitWorks, mean_works, some_units, unit_works
from nsightpy.analysis.comparison.sides import reconciled, whole_parts
from nsightpy.analysis.comparison.thresholds import MOST_SAMPLED
from nsightpy.analysis.grouping import named_by
from nsightpy.analysis.intervals import owners
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import SHARED
from nsightpy.commands.compare.report_part import DeviceUnits, ReportPart
from nsightpy.errors import NsightpyError
from nsightpy.frames import Frame, Labels
from nsightpy.query import Parts, SystemReport
from nsightpy.query.capture_advice import bearing_on
from nsightpy.query.rank_alignment import align_parts
from nsightpy.results.notes import texts
from nsightpy.results.run_summary import UNITS, RunSummary, UnitSummary
from nsightpy.units import format_bytes, format_count, listed

WAIT, TRANSFER = ": wait", ": transfer"


def run_summary(parts: Parts[ReportPart]) -> RunSummary:
    """The summary of one run in the units that all its reports with GPU work have.

    Raises NsightpyError where none has any.
    """
    working = [(report, part) for report, part in parts.results if part.units]
    if not working:
        raise next(iter(parts.ranks.failures), None) or NsightpyError(
            f"{listed(parts.ranks.inputs, 2)}: holds no GPU work (of these ranks, devices and "
            "times): there is nothing to compare.\n  `nsightpy info` says what it holds."
        )
    kinds = [kind for kind in UNITS if all(kind in part.units for _, part in working)]
    collectives = collective_works(working, kinds)
    units = {}
    for kind in kinds:
        of_devices = [units_of for _, part in working for units_of in part.units[kind]]
        units[kind] = unit_summary(of_devices, collectives[kind])
    ranks = {report.rank_of(pid)[0] for report, _ in parts.results for pid in report.pids} - {None}
    devices = sum(len(part.units["window"]) for _, part in working)
    about = {"ranks": format_count(len(ranks)) if ranks else "", "devices": format_count(devices)}
    for name in parts.values[0].circumstances:
        values = {value for part in parts.values for value in part.circumstances[name]} - {""}
        about[name] = ", ".join(sorted(values))
    notes = texts([*bearing_on(parts.ranks.notes, "compare"), *parts.scope.notes])
    of_reports = (note for part in parts.values for note in part.notes)
    return RunSummary(
        parts.request.kind, "", units, about, tuple(dict.fromkeys([*notes, *of_reports]))
    )


def unit_summary(devices: Sequence[DeviceUnits], collectives: Sequence[UnitWorks]) -> UnitSummary:
    """The units of all devices as one: unit by unit, from the last, the mean over devices."""
    count = min(len(device.parts) for device in devices)
    means = np.mean([device.parts[len(device.parts) - count :] for device in devices], axis=0)
    parts = np.stack([whole_parts(row, round(float(row.sum()))) for row in means])
    sampled = some_units(count)
    samples = np.column_stack([parts.sum(axis=1), parts])[sampled]
    ran = [device.ran for device in devices]
    kernels = mean_works("kernel", ran, len(sampled), len(devices))
    in_ranges = [device.ranges for device in devices if device.ranges is not None]
    ranges = mean_works("range", in_ranges, len(sampled), len(in_ranges))[:MOST_SAMPLED]
    shared = mean_works("collective", collectives, len(sampled), len(devices))
    order = max((device.order for device in devices), key=len)
    numbers = {work.name: number for number, work in enumerate(kernels)}
    typical = reconciled(parts).tolist()
    return UnitSummary(
        sum(typical),
        tuple(typical),
        count,
        tuple(map(tuple, samples.tolist())) if count > 1 else (),
        (*kernels, *shared, *ranges),
        tuple(numbers[name] for name in order if name in numbers),
    )


def collective_works(
    results: Sequence[tuple[SystemReport, ReportPart]], kinds: Sequence[str]
) -> dict[str, list[UnitWorks]]:
    """Collectives by operation, size and number of ranks, for each device and kind of unit.

    Where ranks meet, each is two: `wait` until the last rank has come, and `transfer`, the rest of
    its duration.
    """
    works: dict[str, list[UnitWorks]] = {kind: [] for kind in kinds}
    logs = [(report, part.collectives) for report, part in results if part.collectives]
    if not logs:
        return works
    alignment = align_parts(logs)
    ledger, durations = alignment.ledger, alignment.ends - alignment.starts
    arrivals = arrivals_of(alignment)
    met, alone = arrivals.rows, np.setdiff1d(np.arange(len(durations)), arrivals.rows)
    rows = np.concatenate([met, met, alone])
    times = [arrivals.waits, durations[met] - arrivals.waits, durations[alone]]
    lengths, suffixes = np.concatenate(times), np.repeat(np.arange(3), list(map(len, times)))
    called = _names(alignment)
    codes = (3 * called.codes[rows] + suffixes).astype(np.int32)
    texts = (name + suffix for name in called.values for suffix in (WAIT, TRANSFER, ""))
    names = Labels(codes, tuple(texts))
    devices = {
        (str(report.path), *units.device, kind): units
        for report, part in results
        for kind in kinds
        for units in part.units[kind]
    }
    for number, unit in enumerate(ledger.units):
        own = np.flatnonzero(ledger.unit[rows] == number)
        begun = ledger.starts[rows[own]] - alignment.ledger_ahead_ns(number)
        for kind in kinds:
            key = (alignment.clocks[unit.clock].report, unit.pid, unit.device, kind)
            if device := devices.get(key):
                count = len(device.parts)
                owner = np.minimum(owners(device.start, device.end, begun), count - 1)
                works[kind].append(unit_works(names.take(own), owner, lengths[own], count))
    return works


def _names(alignment: Alignment) -> Labels:
    """How each row of the ledger is called: operation, bytes of all, ranks."""
    ledger = alignment.ledger

    def name(signature: int, communicator: int) -> str:
        collective = ledger.signatures[signature]
        size = ledger.group_sizes[communicator] if communicator >= 0 else 0
        whole = collective.bytes * (size if size and collective.operation in SHARED else 1)
        text = collective.operation
        text += f" {format_bytes(whole)}" if collective.bytes >= 0 else ""
        return text + (f", {size} ranks" if size else "")

    columns = {"signature": ledger.signature, "communicator": ledger.communicator}
    keys = Frame({of: codes.astype(np.int64) for of, codes in columns.items()})
    return named_by(keys, tuple(keys), name).merged()
