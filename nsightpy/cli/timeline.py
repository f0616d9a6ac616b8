"""nsightpy timeline"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from nsightpy.cli.delivery import PICTURES, output_of, say
from nsightpy.cli.options import asked, common_of, communication_option, opened, picture_options

if TYPE_CHECKING:
    from nsightpy.commands.report.one_pass import OnePass
    from nsightpy.results.tracks import Timeline

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
    write = _writer(options["output"])
    made = _answered(opened(options), options)
    with output_of(options) as file:
        write(made, file)
    for note in made.notes:
        say(note, options)


def _answered(ranks: OnePass, options: dict[str, Any]) -> Timeline:
    """The timeline with the marks that are wanted; reports are read once for all that is asked."""
    from nsightpy.analysis.timeline.marks import finding_marks
    from nsightpy.commands.findings.command import findings
    from nsightpy.commands.report.one_pass import answers
    from nsightpy.commands.timeline import timeline
    from nsightpy.errors import NsightpyError
    from nsightpy.query.rank_alignment import alignment_of
    from nsightpy.query.request import Request
    from nsightpy.query.timeline_iterations import iterations_by_process

    detailed = _suffix(options["output"]) not in PICTURES
    shown = {"detail": detailed, "counters": detailed}
    shown["calls"] = detailed and not options["no_calls"]

    def drawn(ranks: OnePass) -> Timeline:
        return asked(timeline, options, reports=ranks, **shown)

    def found(ranks: OnePass) -> Any:
        wanted = _are_wanted(options, ranks.inputs)
        return asked(findings, options, reports=ranks) if wanted else None

    # what the timeline asks for later is asked with the rest
    def iterations(ranks: OnePass) -> Any:
        common = common_of(options)
        request = Request.of(ranks, on_common_clock=False, **common) if detailed else None
        return request and iterations_by_process(request)

    def clock(ranks: OnePass) -> Any:
        return alignment_of(ranks) if len(ranks) > 1 else None

    others = (partial(_or_error, question) for question in (found, iterations, clock))
    made, table, *_ = answers(ranks, [drawn, *others])
    if isinstance(table, NsightpyError):
        made.notes.append(f"No findings are marked: {table}")
    elif table is not None:
        made = replace(made, findings=finding_marks(made, table))
    return cast("Timeline", made)


def _or_error(question: Callable[[Any], Any], ranks: OnePass) -> Any:
    """What a question says of some reports; the error that it raises."""
    from nsightpy.errors import NsightpyError

    try:
        return question(ranks)
    except NsightpyError as error:
        return error


def _are_wanted(options: dict[str, Any], inputs: Iterable[str]) -> bool:
    """Whether findings are marked: as was said, else in a page where they are soon found."""
    if options["marked"] is not None:
        return bool(options["marked"])
    return _suffix(options["output"]) == ".html" and sum(map(_size, inputs)) < SOON_FOUND


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
