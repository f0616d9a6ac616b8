"""export: every frame of every report as parquet or csv, with rank, on one clock."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Unpack

from nsightpy.frames import SCHEMAS, Column, Schema
from nsightpy.output.files import CONTENTS, output_folder
from nsightpy.output.formats import SCHEMA_VERSION
from nsightpy.output.frame_files import FORMATS, write_frames
from nsightpy.query import Common, Option, Question, Request, Scope, SystemReport, answer
from nsightpy.query.command import command
from nsightpy.report_sets.opening import Paths
from nsightpy.results import Field, Row, Table
from nsightpy.results.notes import texts

FIELDS = (
    Field("frame", "text"),
    Field("rows"),
    Field("file", "text"),
    Field("report", "text"),
)
RANKED = (
    Column("rank", "int", "", "rank of the process; -1 where nothing tells", -1),
    Column("report", "label", "", "path of the report", ""),
)


@command(*FIELDS)
def export(
    reports: Paths,
    *,
    output: Annotated[str | Path, Option("The folder to write.", "DIR", typed="--output -o")],
    file_format: Annotated[
        str, Option("Of the files.", typed="--format", choices=FORMATS)
    ] = "parquet",
    force: Annotated[bool, Option("Replace an earlier export in the folder.")] = False,
    **common: Unpack[Common],
) -> Table:
    """For DuckDB, polars or pandas: each frame is a folder (kernels, api_calls, ...) with a file
    for each report that has rows of it. rank and report come first. schema.json says what the
    columns are.
    """
    request = Request.of(reports, **common)
    with output_folder(Path(output), force=force) as folder:
        parts = answer(request, Question(_pids, lambda parts: parts, identified=True, clock=True))
        results, lost = parts.placed()
        clock, scope = parts.clock, request.scope
        notes = [*clock.notes, *lost]
        rows: list[Row] = []
        for number, (report, _) in enumerate(results):
            # without what file systems or globs may take for something else
            plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", report.path.stem)[:80] or "report"
            for name in SCHEMAS:
                file = f"{name}/{number:04d}-{plain}.{file_format}"
                parts_in_scope = (scope.narrow_any(report, part) for part in report.parts(name))
                frames = (clock.frame(report, part, name) for part in parts_in_scope)
                if count := write_frames(frames, folder / file, file_format):
                    rows.append((name, count, file, str(report.path)))
            report.close()
        total = sum(int(row[1] or 0) for row in rows)
        written = f"{total:,} rows in {len(rows):,} files are written."
        table = request.finish(Table("export", FIELDS, tuple(rows)), written, *notes)
        document = {
            "schema": f"nsightpy.export/{SCHEMA_VERSION}",
            "inputs": list(table.inputs),
            "frames": {
                name: _described(SCHEMAS[name])
                for name in dict.fromkeys(str(row[0]) for row in rows)
            },
            "files": [row[2] for row in rows],
            "notes": list(texts(table.notes)),
        }
        text = f"{json.dumps(document, indent=2)}\n"
        (folder / CONTENTS).write_text(text, encoding="utf-8")
    return table


def _pids(report: SystemReport, _: Scope) -> list[int]:
    return report.pids


def _described(schema: Schema) -> dict[str, Any]:
    """A frame as data; what is not known is null where it is NaN in the columns."""
    own, common = "in the report's own time", "on the clock of all ranks"
    on_clock = [replace(c, meaning=c.meaning.replace(own, common)) for c in schema.columns]
    columns = (*(column for column in RANKED if column.name not in schema.names), *on_clock)
    described = [
        {**asdict(each), "missing": each.missing if each.missing == each.missing else None}
        for each in columns
    ]
    return {"meaning": schema.meaning, "columns": described}
