"""Write docs/frames.md from the frame schemas, so that the page can never lag behind the code."""

from __future__ import annotations

from pathlib import Path

from nsightpy.frames import NCU_SCHEMAS, SCHEMAS, SNAPSHOT_SCHEMAS, Column, Schema

PAGE = Path(__file__).parent.parent / "docs" / "frames.md"
INTRODUCTION = """\
# The frames

`nsightpy.open(paths, iteration="steady", ...).events("kernels")` is a pandas DataFrame of all ranks
with these columns, always all of them, behind `rank` and `report`; events have `duration_ns` and
`iteration` (of their process, as `iterations` counts) at the end. Numbers are int64, -1 where
nothing tells; names are categories. Times are ns on the clock of all ranks: since the report of the
first one began. `.attrs["notes"]` says what limits them, and which part of the job it is.

`nsightpy.open_report(path).<frame>` is the same of one report, in its own time, whose zero is
`report.session.utc_ns` on the wall clock. `scripts/make_docs.py` makes this page from
`nsightpy/frames/`.
"""
COMPUTE = """
# Frames of Nsight Compute reports

The same for a `.ncu-rep` and for what `ncu --csv` printed about it, as far as the page goes.
Missing values are NaN or have no row. [roofline.md](roofline.md) says how reports are read.
"""


SNAPSHOT = """
# Frames of PyTorch memory snapshots

The same for what `torch.cuda.memory._dump_snapshot(FILE)` wrote. Times are ns since the first
event of the recording.
"""


def frames_page() -> str:
    """The whole page as Markdown."""
    parts = ((INTRODUCTION, SCHEMAS), (COMPUTE, NCU_SCHEMAS), (SNAPSHOT, SNAPSHOT_SCHEMAS))
    return "".join(text + "".join(map(_section, found.values())) for text, found in parts)


def _section(schema: Schema) -> str:
    rows = "".join(map(_row, schema.columns))
    heading = f"\n## {schema.name}\n\n{schema.meaning[0].upper()}{schema.meaning[1:]}.\n"
    return f"{heading}\n| column | type | unit | meaning |\n|---|---|---|---|\n{rows}"


def _row(column: Column) -> str:
    kind = {"label": "name", "int": "int64", "float": "float64"}.get(column.kind, column.kind)
    return f"| `{column.name}` | {kind} | {column.unit} | {column.meaning} |\n"


if __name__ == "__main__":
    PAGE.write_text(frames_page(), encoding="utf-8")
