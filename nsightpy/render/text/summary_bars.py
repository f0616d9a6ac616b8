"""How the time of each device divides, as bars; and what part of the capture that is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from nsightpy.output.cells import cause_words
from nsightpy.output.escape import printable
from nsightpy.render.text.layout import short_names, styled
from nsightpy.results import Record, Table, Value, ns_of, number
from nsightpy.units import format_time, percent, significant

if TYPE_CHECKING:
    from rich.text import Text

BAR, LEAST_BAR = 24, 6
WIDEST_NAME = 20
MOST_DEVICES = 4
_SUFFIX = re.compile(r"\.(?:sqlite|nsys-rep|qdrep|json|json\.gz)$")
# Less of a capture before and after all GPU work is not worth a line, in per cent.
LEAST_OUTSIDE = 10.0
LEAST_OPAQUE = 1.0
# Less of the idle time than this is not named, in per cent.
LEAST_CAUSE = 5.0
# Where the names of more than half of the kernels say nothing, categories are not named.
MOST_OTHER = 0.5


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
    reports = [_SUFFIX.sub("", PurePath(str(record["report"])).name) for record in records]
    guessed = any(str(record["rank_source"] or "").startswith("guess") for record in records)
    if not guessed or len(set(reports)) < 2:
        return {}
    names = [
        name if reports.count(name) == 1 else f"{name}:{reports[:index].count(name)}"
        for index, name in enumerate(reports)
    ]
    short = short_names([printable(name) for name in names], WIDEST_NAME)
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
    shares = _shares(kept, parts)
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


def opaque_text(budgets: Table) -> str:
    """What the ranking of kernels lacks, where that is material: time in opaque CUDA graphs."""
    graphs = sum(ns_of(record, "opaque_graph_ns") for record in budgets.records())
    whole = sum(ns_of(record, "busy_ns") for record in budgets.records())
    if (percent(graphs, whole) or 0.0) < LEAST_OPAQUE:
        return ""
    return f"  without {format_time(graphs)} in CUDA graphs traced as a whole"


def categories_text(table: Table, width: int) -> str:
    """What most kernels compute, in a line; empty where the names of most say nothing."""
    shares = {str(record["category"]): number(record["share"]) for record in table.records()}
    if shares.get("other", 0.0) > MOST_OTHER:
        return ""
    texts = [f"{category} {100 * share:.0f} %" for category, share in shares.items()]
    lines = (f"  all kernels: {', '.join(texts[:most])}" for most in range(len(texts), 0, -1))
    return next((line for line in lines if len(line) <= width), "")


def idle_causes(table: Table, names: Mapping[Value, str]) -> str:
    """Why the device that idled longest was idle, the most first; empty where none was."""
    records = [record for record in table.records() if ns_of(record, "idle_ns")]
    if not records:
        return ""
    worst = max(records, key=lambda record: ns_of(record, "idle_ns"))
    idle = ns_of(worst, "idle_ns")
    lost = {name: ns_of(worst, name) for name in table.columns[3:]}
    named = sorted(
        (
            (ns, cause_words(name.removesuffix("_ns").replace("_", "-")))
            for name, ns in lost.items()
            if 100 * ns >= LEAST_CAUSE * idle
        ),
        reverse=True,
    )
    parts = [f"{name} {format_time(ns)}" for ns, name in named]
    rest = idle - sum(ns for ns, _ in named)
    parts += [f"other {format_time(rest)}"] if rest > 0 else []
    where = f" of {_whose(worst, names)}" if len(table) > 1 else ""
    return f"idle{where}: {format_time(idle)} = {' + '.join(parts)}"


def longest_gap(table: Table, names: Mapping[Value, str]) -> str:
    """The longest idle interval; empty where none is long."""
    if not table.rows:
        return ""
    record = table.records()[0]
    cause = f" ({record['cause']})" if record["cause"] not in ("", "queued", "unknown") else ""
    return (
        f"longest gap: {format_time(ns_of(record, 'duration_ns'))}, "
        f"{100 * number(record['share_of_window']):.0f} % of {_whose(record, names)}'s window, at "
        f"{format_time(ns_of(record, 'start_ns'))}{cause}: {record['host_activity']}"
    )


def outside_capture(header: Mapping[str, Value]) -> str:
    """What a capture holds beyond the windows of its devices, where that is material."""
    outside, whole = header["outside_ns"], header["duration_ns"]
    if not isinstance(outside, int) or not isinstance(whole, int):
        return ""
    share = percent(outside, whole) or 0.0
    if share < LEAST_OUTSIDE:
        return ""
    figure = "over 99.9" if share > 99.9 else significant(share, 3 if share > 99.0 else 2)
    return f"no GPU work in the other {format_time(outside)}, {figure} % of the capture"


def _whose(record: Record, names: Mapping[Value, str]) -> str:
    if record["rank"] is None:
        return f"dev {record['device']}"
    return names.get(record["rank"]) or f"rank {record['rank']}"


def _shares(records: Sequence[Record], parts: Sequence[str]) -> list[str]:
    """The parts of each window in per cent, the same ones below each other."""
    columns = []
    for part in parts:
        shares = [percent(ns_of(r, part), ns_of(r, "window_ns")) for r in records]
        texts = ["-" if s is None else f"{s:.{int(s < 9.95)}f}%" for s in shares]
        widest = max(map(len, texts))
        columns.append([f"{PARTS[part][0]} {text:>{widest}}" for text in texts])
    return ["  ".join(texts) for texts in zip(*columns, strict=True)]
