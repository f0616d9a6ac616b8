"""Pages of the documentation about the library: every public name of `nsightpy`, and its frames.

As a program it writes docs/frames.md, so that the page can never lag behind the code.
"""

from pathlib import Path

import nsightpy
from nsightpy.command_table import COMMANDS
from nsightpy.frames import NCU_SCHEMAS, SCHEMAS, SNAPSHOT_SCHEMAS, Schema

PAGE = Path(__file__).parent.parent / "docs" / "frames.md"
FRAMES = """\
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
OPENING = ("open", "Job", "open_report")
LIBRARY = """\
# Python

```python
import nsightpy

with nsightpy.open("sample_reports/training_4rank", iteration="steady") as job:
    job.kernels(by="rank", top=10).to_pandas()
    job.events("kernels")  # a DataFrame of all ranks on one clock
nsightpy.kernels("sample_reports/training_4rank", by="rank", top=10)
```

Every command is a function of the same name with the same parameters; `job` has it as a method.
What a command draws, `nsightpy.NAME_figure` makes with the same parameters. The columns of the
frames are on the page [Frames](frames.md).
"""


def frames_page() -> str:
    """The page about frames as Markdown."""
    parts = ((FRAMES, SCHEMAS), (COMPUTE, NCU_SCHEMAS), (SNAPSHOT, SNAPSHOT_SCHEMAS))
    return "".join(text + "".join(map(_section, found.values())) for text, found in parts)


def _section(schema: Schema) -> str:
    kinds, rows = {"label": "name", "int": "int64", "float": "float64"}, ""
    for column in schema.columns:
        kind = kinds.get(column.kind, column.kind)
        rows += f"| `{column.name}` | {kind} | {column.unit} | {column.meaning} |\n"
    heading = f"\n## {schema.name}\n\n{schema.meaning[0].upper()}{schema.meaning[1:]}.\n"
    return f"{heading}\n| column | type | unit | meaning |\n|---|---|---|---|\n{rows}"


def api_page() -> str:
    """The page about the library as Markdown; mkdocstrings fills in what is no command."""
    commands = [listed.load() for listed in COMMANDS.values()]
    parts = [LIBRARY, "\n## Opening reports\n"]
    public = {name: getattr(nsightpy, name) for name in OPENING}
    parts += [_entry(name, f"{it.__module__}.{it.__qualname__}") for name, it in public.items()]
    parts.append("\n## Commands as functions\n\n`help(nsightpy.kernels)` explains parameters.\n")
    parts += [f"- `nsightpy.{command.__name__}`: {command.help}" for command in commands]
    parts.append("\n## Errors\n")
    errors = [it for it in vars(nsightpy.errors).values() if isinstance(it, type)]
    own = [it.__name__ for it in errors if it.__module__ == "nsightpy.errors"]
    parts += [_entry(f"errors.{name}", f"nsightpy.errors.{name}") for name in own]
    return "\n".join(parts)


def _entry(name: str, path: str) -> str:
    heading = f"nsightpy.{name}"
    return f"\n::: {path}\n    options:\n      heading: {heading}\n      toc_label: {heading}\n"


if __name__ == "__main__":
    PAGE.write_text(frames_page(), encoding="utf-8")
