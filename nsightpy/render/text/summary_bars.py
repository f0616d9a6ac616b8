"""How the time of each device divides, as bars; and what part of the capture that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from nsightpy.output.escape import printable
from nsightpy.render.text.layout import short_names, styled
from nsightpy.results import Record, Table, Value, ns_of, number
from nsightpy.units import format_time, percent, share_text

if TYPE_CHECKING:
    from rich.text import Text

BAR, LEAST_BAR = 24, 6
WIDEST_NAME = 20
MOST_DEVICES = 4
# Less of a capture before and after all GPU work is not worth a line, in per cent.
LEAST_OUTSIDE = 10.0
# Less of the idle time than this is not named, in per cent.
LEAST_CAUSE = 5.0
# Where the names of more than half of the kernels say nothing, categories are not named.
MOST_OTHER = 0.5
MOST_CATEGORIES = 4


# How a window divides without overlap: CUDA graphs traced as a whole may hold anything.
# Each by its column: its name, glyph and colour.
PARTS = {
    "kernels_ns": ("compute", "█", "green"),
    "opaque_graph_ns": ("graphs", "░", "green"),
    "exposed_communication_ns": ("comm", "▓", "magenta"),
    "copy_only_ns": ("copy", "▒", "cyan"),
    "idle_ns": ("idle", "·", "yellow"),
}


def report_names(ranks: Table) -> Mapping[Value, str]:
    """What reports are called, by rank, where any rank is only guessed.

    A guess follows the order of the files: "rank 1" would name none of several unrelated captures.
    """
    records = ranks.records()
    guessed = any(str(record["rank_source"] or "").startswith("guess") for record in records)
    names = [
        printable(PurePath(str(record["report"])).stem.removesuffix(".json")) for record in records
    ]
    if not guessed or len(set(names)) < max(len(names), 2):
        return {}
    short = short_names(names, WIDEST_NAME)
    return {record["rank"]: name for record, name in zip(records, short, strict=True)}


def device_bars(table: Table, width: int, names: Mapping[Value, str]) -> list[Text]:
    """A bar and its shares for each device; of many for the least busy ones."""
    records = [
        record | {"kernels_ns": ns_of(record, "compute_ns") - ns_of(record, "opaque_graph_ns")}
        for record in table.records()
    ]
    parts = [part for part in PARTS if any(ns_of(record, part) for record in records)]
    least = sorted(records, key=lambda r: percent(ns_of(r, "busy_ns"), ns_of(r, "window_ns")) or 0)
    kept = [record for record in records if record in least[:MOST_DEVICES]]
    margin = max([9, *(len(name) + 1 for name in names.values())])
    shares = [_shares(record, parts) for record in kept]
    cells = max(min(BAR, width - margin - max(map(len, shares)) - 3), LEAST_BAR)
    lines = []
    for record, text in zip(kept, shares, strict=True):
        line = styled(f"  {_whose(record, names):<{margin}}")
        start, window, reached = len(line), ns_of(record, "window_ns"), 0
        for part in parts:  # one after the other
            reached += ns_of(record, part)
            end = round(cells * reached / window) if window else 0
            _, glyph, colour = PARTS[part]
            line.append(glyph * (start + end - len(line)), style=colour)
        lines.append(line.append(f" {text}"))
    return lines


def categories_text(table: Table) -> str:
    """What most kernels compute, in a line; empty where the names of most say nothing."""
    shares = {str(record["category"]): number(record["share"]) for record in table.records()}
    if shares.get("other", 0.0) > MOST_OTHER:
        return ""
    texts = [f"{category} {100 * share:.0f} %" for category, share in shares.items()]
    return f"  all kernels: {', '.join(texts[:MOST_CATEGORIES])}"


def idle_causes(table: Table, names: Mapping[Value, str]) -> str:
    """Why the device that idled longest was idle, the most first; empty where that is not known."""
    worst = max(table.records(), key=lambda record: ns_of(record, "idle_ns"))
    idle, least = ns_of(worst, "idle_ns"), LEAST_CAUSE * ns_of(worst, "idle_ns") / 100
    # the columns of the causes stand between these
    first, last = map(table.columns.index, ("idle_ns", "host_wait_ns"))
    lost = [(ns_of(worst, field.name), field.heading) for field in table.fields[first + 1 : last]]
    named = sorted(((ns, cause) for ns, cause in lost if ns and ns >= least), reverse=True)
    if not named:
        return ""
    rest = idle - sum(ns for ns, _ in named)
    parts = [f"{name} {format_time(ns)}" for ns, name in (*named, (rest, "other")) if ns]
    where = f" of {_whose(worst, names)}" if len(table) > 1 else ""
    return f"idle{where}: {format_time(idle)} = {' + '.join(parts)}"


def outside_capture(header: Mapping[str, Value]) -> str:
    """What a capture holds beyond the windows of its devices, where that is material."""
    outside, whole = header["outside_ns"], header["duration_ns"]
    if not isinstance(outside, int) or not isinstance(whole, int):
        return ""
    if (percent(outside, whole) or 0.0) < LEAST_OUTSIDE:
        return ""
    share = share_text(outside, whole)
    return f"no GPU work in the other {format_time(outside)}, {share} of the capture"


def _whose(record: Record, names: Mapping[Value, str]) -> str:
    if record["rank"] is None:
        return f"dev {record['device']}"
    return names.get(record["rank"]) or f"rank {record['rank']}"


def _shares(record: Record, parts: Sequence[str]) -> str:
    """The parts of a window in per cent."""
    window = ns_of(record, "window_ns") or 1
    shares = ((PARTS[part][0], 100 * ns_of(record, part) / window) for part in parts)
    return "  ".join(f"{name} {share:2.0f}%" for name, share in shares)
