"""What is drawn on a page: the timeline, and the pace of what takes the most time."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from nsightpy.analysis.timeline.picture import picture
from nsightpy.commands.kernels import kernels
from nsightpy.commands.pace import pace
from nsightpy.commands.report.questions import Context
from nsightpy.commands.timeline import timeline
from nsightpy.errors import ReportError
from nsightpy.query.request import Common
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.results import Table
from nsightpy.results.page import PagePicture, Section
from nsightpy.results.tracks import Timeline

COLUMNS = 900
MOST_INSTANCES = 20_000
TITLE = "Timeline"
HELP = (
    "The whole capture; the overview above is about the steady state where there is one. The "
    "height of a band is the share of that moment's time in which it ran. `nsightpy timeline "
    "-o FILE` writes a page to zoom and search in (.html), or a trace for Perfetto."
)


def timeline_section(
    ranks: RankSet, context: Context, *, embedded: bool
) -> tuple[Section, Timeline | None]:
    """The picture of the timeline, and the whole of it where it is to be embedded."""
    try:
        tracks = timeline(ranks, detail=False, calls=False, **context.common)
        drawn = picture(tracks, COLUMNS)
        whole = _whole(ranks, context) if embedded else None
    except ReportError as error:
        why = f"{error.problem[:1].upper()}{error.problem[1:]}."
        return Section("timeline", TITLE, missing=why), None
    shown = Section(
        "timeline",
        TITLE,
        says=f"What every rank and device did; the clock is {tracks.clock}.",
        help=HELP,
        pictures=(PagePicture("timeline", "timeline", drawn, "Every device on one clock."),),
        command=context.command("timeline"),
    )
    return shown, whole


def _whole(ranks: RankSet, context: Context) -> Timeline:
    """The timeline to be embedded; its iterations are asked for together with everything else."""
    whole = timeline(ranks, **context.common)
    iterations = whole.iterations()
    return replace(whole, iterations=lambda: iterations)


def pace_of_longest(ranks: RankSet, **common: Unpack[Common]) -> Table:
    """The pace of the kernel with the most time; no rows where it ran too often to draw."""
    table = kernels(ranks, top=1, **common)
    if not table.rows:
        return table
    (first,) = table.records()
    if int(first["Instances"] or 0) > MOST_INSTANCES:
        note = f"{first['Name']} ran too often to be drawn here; `nsightpy pace --of` draws it."
        return Table("pace", (), (), notes=(note,))
    return pace(ranks, of=str(first["Name"]), kind="kernel", **common)
