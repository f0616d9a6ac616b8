"""nsightpy timeline"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from nsightpy.cli.options import (
    asked,
    communication_option,
    opened,
    output_of,
    picture_options,
    say,
)

if TYPE_CHECKING:
    from nsightpy.rank_set import RankSet
    from nsightpy.results.tracks import Timeline

PICTURES = (".png", ".svg", ".pdf")
SOON_FOUND = 300_000_000
SUFFIXES = (*PICTURES, ".html", ".json", ".json.gz", ".pftrace")


@click.command("timeline")
@picture_options
@communication_option
@click.option("--no-calls", is_flag=True, help="No CUDA API calls in pages and traces.")
@click.option(
    "--findings/--no-findings",
    "marked",
    default=None,
    help="Mark findings; without either, in a page those of reports below 300 MB in all.",
)
def command(**options: Any) -> None:
    """Draw what every rank and device did, on one clock.

    The file's name says what is made: .png, .svg, .pdf (a picture), .html (one offline page to
    zoom, pan and search in), .json, .json.gz (Chrome trace events), .pftrace (Perfetto).
    Times, --from and --to too, are those of the first report.
    """
    from nsightpy.commands.timeline import timeline

    write = _writer(options["output"])
    detailed = _suffix(options["output"]) not in PICTURES
    page = _suffix(options["output"]) == ".html"
    with opened(options) as ranks:
        made = asked(
            timeline,
            options,
            reports=ranks,
            detail=detailed,
            calls=detailed and not options["no_calls"],
            counters=detailed,
        )
        if page or options["marked"]:
            made = _with_findings(made, ranks, options)
        with output_of(options) as file:
            write(made, file)
    for note in made.notes:
        say(note, options)


def _with_findings(made: Timeline, ranks: RankSet, options: dict[str, Any]) -> Timeline:
    """The timeline with its findings, where they are wanted or soon found."""
    from nsightpy.analysis.timeline.marks import finding_marks
    from nsightpy.commands.findings.command import findings
    from nsightpy.errors import NsightpyError

    wanted = options["marked"]
    if wanted is None:
        wanted = sum(_size(path) for path in made.inputs) < SOON_FOUND
    if not wanted:
        return made
    try:
        table = asked(findings, options, reports=ranks)
    except NsightpyError as error:
        made.notes.append(f"No findings are marked: {error}")
        return made
    return replace(made, findings=finding_marks(made, table))


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _suffix(output: str | None) -> str:
    name = Path(output or "").name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def _writer(output: str | None) -> Callable[[Timeline, BinaryIO], None]:
    """What writes a timeline into a file of that name. Raises UsageError."""
    from nsightpy.errors import UsageError

    suffix = _suffix(output)
    if not suffix:
        what = "give -o FILE" if output is None else f"{output}: is of no known format"
        raise UsageError(f"{what}; the name must end with one of {', '.join(SUFFIXES)}")
    return {".html": _page, ".json": _json, ".json.gz": _gzip, ".pftrace": _perfetto}.get(
        suffix, _picture(suffix)
    )


def _picture(suffix: str) -> Callable[[Timeline, BinaryIO], None]:
    def write(timeline: Timeline, file: BinaryIO) -> None:
        from nsightpy.analysis.timeline.picture import picture
        from nsightpy.render.plots.drawing import picture_bytes
        from nsightpy.render.timeline import plot as timeline_plot

        figure = timeline_plot.draw(picture(timeline, timeline_plot.columns_of()))
        file.write(picture_bytes(figure, f"timeline{suffix}"))

    return write


def _page(timeline: Timeline, file: BinaryIO) -> None:
    from nsightpy.render.timeline.page import write_page

    write_page(timeline, file)


def _json(timeline: Timeline, file: BinaryIO) -> None:
    from nsightpy.render.timeline.chrome_trace import write_chrome_trace

    write_chrome_trace(timeline, file)


def _gzip(timeline: Timeline, file: BinaryIO) -> None:
    with gzip.GzipFile("", "wb", compresslevel=5, fileobj=file, mtime=0) as packed:
        _json(timeline, packed)  # type: ignore[arg-type]


def _perfetto(timeline: Timeline, file: BinaryIO) -> None:
    from nsightpy.render.timeline.perfetto import write_perfetto

    write_perfetto(timeline, file)
