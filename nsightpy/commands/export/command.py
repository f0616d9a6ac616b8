"""export: every frame of every report as parquet or csv, with rank, on one clock."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

from nsightpy.commands.export.readme import readme, schema_json
from nsightpy.errors import require_choice
from nsightpy.frames import SCHEMAS, Frame
from nsightpy.output.files import CONTENTS, output_folder
from nsightpy.output.frame_files import FORMATS, write_frames
from nsightpy.query.rank_alignment import alignment_of
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_frames import ProcessClock, clock_aligned, ranked
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row, Table

FIELDS = (
    Field("frame", "text"),
    Field("rows"),
    Field("file", "text"),
    Field("report", "text"),
)
# What --rank and its like choose from has these columns.
_SPAN = ("start_ns", "end_ns", "pid")


@command_function
def export(
    reports: Paths,
    *,
    output: str | Path,
    file_format: str = "parquet",
    force: bool = False,
    **common: Unpack[Common],
) -> Table:
    """Every frame of every report as a file in the folder `output`: a row for each.

    `file_format`: parquet or csv. A frame is a folder with a file for each report that has rows of
    it; rank and report come first, times are on the clock of all ranks (`nsightpy.aligned_frame`).
    schema.json and README.md say what the columns are. `force`: replace an earlier export. Raises
    OutputError.
    """
    require_choice("file format", file_format, FORMATS)
    request = Request.of(reports, **common)
    with output_folder(Path(output), force=force) as folder:
        pids_of_reports = request.map(_pids, ranked=True).results
        several = len(pids_of_reports) > 1
        alignment = alignment_of(request.ranks) if several else None
        clocks: list[ProcessClock] = [] if alignment is None else list(alignment.fits)
        notes = [] if alignment is None else list(alignment.notes)
        repeated = request.ranks.repeated if several else {}
        rows: list[Row] = []
        for place, (report, _) in enumerate(pids_of_reports):
            if report.path in repeated:
                continue
            if clocks and not any(clock.report == str(report.path) for clock in clocks):
                notes.append(f"left out, no clock: {report.path}")
                continue
            for name in SCHEMAS:
                file = f"{name}/{place:04d}-{_plain(report.path)}.{file_format}"
                parts = _parts(report, name, request.scope, clocks)
                if written := write_frames(parts, folder / file, file_format):
                    rows.append((name, written, file, str(report.path)))
            report.close()
        if request.scope.is_part or request.scope.devices or request.scope.ranks:
            notes.append("Frames about the capture itself are exported whole.")
        names = list(dict.fromkeys(str(row[0]) for row in rows))
        table = request.finish(Table("export", FIELDS, tuple(rows)), *notes)
        files = [str(row[2]) for row in rows]
        described = schema_json(files, names, table.inputs, table.notes)
        (folder / CONTENTS).write_text(described, encoding="utf-8")
        (folder / "README.md").write_text(readme(names, file_format), encoding="utf-8")
    return table


def _pids(report: SystemReport) -> list[int]:
    return report.pids


def _parts(
    report: SystemReport, name: str, scope: Scope, clocks: list[ProcessClock]
) -> Iterator[Frame]:
    """The rows in scope of a frame of a report, those of a large one in parts."""
    for frame in report.parts(name):
        made = ranked(report, _narrowed(report, frame, scope))
        if clocks:
            unknown = 0 if name == "cuda_events" else None
            made = clock_aligned(made, report, clocks, unknown=unknown)
        yield made


def _narrowed(report: SystemReport, frame: Frame, scope: Scope) -> Frame:
    if {*_SPAN, *scope.columns} - {"device", "correlation_id"} <= set(frame):
        return scope.narrow(report, frame)
    return frame


def _plain(path: Path) -> str:
    """The name of a report without what file systems or globs may take for something else."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", path.stem)[:80] or "report"
