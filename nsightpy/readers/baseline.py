"""A baseline file, read strictly: what is not exactly one ends in one message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from nsightpy.errors import ReportError
from nsightpy.readers.tools.file_check import file_errors, size_of_regular
from nsightpy.results.run_summary import (
    BASELINE_SCHEMA,
    KINDS,
    PARTS,
    SECTIONS,
    UNITS,
    Baseline,
    RunSummary,
    UnitSummary,
)

MOST_BYTES = 64 * 2**20
_ADVICE = "write it again: nsightpy compare --save-baseline FILE RUN..."


class _Head(msgspec.Struct):
    schema: str = ""
    parts: tuple[str, ...] = ()


def read_baseline(path: Path | str) -> tuple[RunSummary, ...]:
    """The runs of a baseline. Raises ReportError for anything else, or another version."""
    path = Path(path)
    with file_errors(path):
        if path.is_dir():
            raise ReportError(path, "is a directory, not a baseline", _ADVICE)
        if size_of_regular(path) > MOST_BYTES:
            raise ReportError(path, "is too large for a baseline", _ADVICE)
        data = path.read_bytes()
    try:
        head = msgspec.json.decode(data, type=_Head)
        _check_version(path, head)
        runs = msgspec.json.decode(data, type=Baseline).runs
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        problem = f"is no baseline, or a damaged one: {str(error)[:200]}"
        raise ReportError(path, problem, _ADVICE) from None
    for wrong in _contradictions(runs):
        raise ReportError(path, f"is a damaged baseline: {wrong}", _ADVICE)
    return runs


def _check_version(path: Path, head: _Head) -> None:
    if not head.schema.startswith("nsightpy.baseline/"):
        problem = "is no baseline: it does not name its schema"
        raise ReportError(path, problem, _ADVICE)
    if head.schema != BASELINE_SCHEMA or head.parts != PARTS:
        problem = f"is a baseline of another version ({head.schema[:60]}, not {BASELINE_SCHEMA})"
        if head.schema == BASELINE_SCHEMA:
            problem = "is a baseline of another version: it divides a step into other parts"
        raise ReportError(path, problem, _ADVICE)


def _contradictions(runs: tuple[RunSummary, ...]) -> Iterator[str]:
    """What no run can be."""
    if not runs:
        yield "it has no runs"
    for run in runs:
        if run.kind not in KINDS:
            yield "a run is of no kind that there is"
        if not run.units or not set(run.units) <= set(UNITS):
            yield f"a run has no {' and no '.join(UNITS)}"
        for unit in run.units.values():
            yield from _wrong_unit(unit)


def _wrong_unit(unit: UnitSummary) -> Iterator[str]:
    if len(unit.parts) != len(PARTS) or sum(unit.parts) != unit.duration_ns:
        yield "the parts of a unit do not add up to it"
    if any(len(row) != 1 + len(PARTS) for row in unit.samples) or unit.count < 1:
        yield "a unit has samples that are none"
    if any(index not in range(len(unit.works)) for index in unit.order):
        yield "the order of launches names kernels that are not there"
    if any(work.section not in SECTIONS for work in unit.works):
        yield f"it holds something that is no {', '.join(SECTIONS)}"
