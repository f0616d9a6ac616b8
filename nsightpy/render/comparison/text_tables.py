"""The tables on the screen of a comparison: the parts, what contributes most, what is renamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.names import readable
from nsightpy.render.comparison.sentences import (
    fixed,
    interval,
    other_names_text,
    percent_change,
    unit_for,
)
from nsightpy.render.escape import display_width, printable
from nsightpy.render.text.layout import Shown, lines, short_names
from nsightpy.results.comparison import FASTER, SLOWER, ComparedQuantity, Comparison
from nsightpy.units import counted, significant

if TYPE_CHECKING:
    from rich.text import Text

MOST_RENAMED = 8
BAR, WIDE = 17, 120
SLOWER_STYLE, FASTER_STYLE = "red", "green"
STYLES = {SLOWER: SLOWER_STYLE, FASTER: FASTER_STYLE}


def parts_table(result: Comparison, width: int) -> list[Text]:
    """The parts of the unit and their sum, with the changes as bars."""
    from rich.text import Text

    rows = [one for one in result.parts if one.before_ns or one.after_ns]
    every = [*rows, result.step]
    deltas = [one.delta_ns for one in every]
    unit, decimals = unit_for([v for one in every for v in (one.before_ns, one.after_ns)], deltas)
    largest = max(map(abs, deltas), default=0)
    columns = [
        Shown("", tuple(one.name for one in every), True),
        _times(f"before ({unit})", [one.before_ns for one in every], unit, decimals),
        _times(f"after ({unit})", [one.after_ns for one in every], unit, decimals),
        _times("change", deltas, unit, decimals, sign=True),
        Shown("%", tuple(percent_change(one.ratio).removesuffix(" %") for one in every), False),
    ]
    if width >= WIDE:
        columns.append(Shown("95 % interval", tuple(map(interval, every)), False))
        columns.append(Shown("verdict", tuple(one.verdict for one in every), True))
    made = lines(columns, width - BAR - 4, rule=False, fold=False)
    longest = max(map(_width_of, made))
    found = [Text("  ") + made[0]]
    for one, line in zip(every, made[1:], strict=True):
        text = Text("  ") + line
        text.append(" " * (longest - _width_of(line) + 2))
        text.append_text(change_bar(one.delta_ns, largest, BAR))
        text.rstrip()
        if one is result.step:
            text.stylize("bold")
        found.append(text)
    return found


def _width_of(line: Text) -> int:
    return display_width(line.plain)


def change_bar(delta: int, largest: int, cells: int) -> Text:
    """A change as a bar from the middle: to the right slower, to the left faster."""
    from rich.text import Text

    half = cells // 2
    length = round(half * abs(delta) / largest) if largest else 0
    length = max(length, 1) if delta and largest and abs(delta) * 50 >= largest else length
    bar = "█" * length
    if delta < 0:
        left = Text(" " * (half - length)).append(bar, style=FASTER_STYLE)
        return left.append("│", style="dim")
    return Text(" " * half).append("│", style="dim").append(bar, style=SLOWER_STYLE)


def quantities_table(rows: Sequence[ComparedQuantity], width: int, top: int) -> list[Text]:
    """The first rows, each with its change in count and in duration; how many more there are."""
    from rich.text import Text

    shown = [one for one in rows[:top] if one.delta_ns] or list(rows[:1])
    deltas = [one.delta_ns for one in shown]
    unit, decimals = unit_for(deltas, deltas)
    columns = [_times(f"change ({unit})", deltas, unit, decimals, sign=True)]
    columns += _split(shown, unit, decimals)
    columns.append(
        Shown("%", tuple(percent_change(one.ratio).removesuffix(" %") for one in shown), False)
    )
    columns.append(Shown("95 % interval", tuple(map(interval, shown)), False))
    columns.append(Shown("verdict", tuple(one.verdict for one in shown), True))
    columns += _figures(shown)
    if width >= WIDE:
        columns.append(_counts(shown))
        columns.append(_matched(shown))
    names = tuple(printable(one.name) for one in shown)
    columns = [one for one in columns if set(one.cells) - {"-", "", "0"} or one is columns[0]]
    columns.append(Shown("name", names, True))
    made = lines(columns, width - 2, rule=False, fold=True)
    heading = len(made) - len(shown)
    found = [Text("  ") + line for line in made]
    for one, line in zip(shown, found[heading:], strict=True):
        style = STYLES.get(one.verdict)
        if style:
            place = line.plain.find(one.verdict)
            line.stylize(style, place, place + len(one.verdict))
    rest = rows[len(shown) :]
    if rest:
        total = sum(one.delta_ns for one in rest)
        said = f"  and {counted(len(rest), 'more row')}, {fixed(total, unit, decimals, sign=True)}"
        found.append(Text(f"{said} {unit} together", style="dim"))
    return found


def _times(
    heading: str,
    values: Sequence[float | None],
    unit: str,
    decimals: int,
    *,
    sign: bool = False,
) -> Shown:
    return Shown(heading, tuple(fixed(one, unit, decimals, sign=sign) for one in values), False)


def _split(shown: Sequence[ComparedQuantity], unit: str, decimals: int) -> list[Shown]:
    """The change by count and by duration, where any count changed."""
    by_count = [one.delta_from_count_ns for one in shown]
    if not any(by_count):
        return []
    by_duration = [one.delta_from_duration_ns for one in shown]
    return [
        _times("by count", by_count, unit, decimals, sign=True),
        _times("by time", by_duration, unit, decimals, sign=True),
    ]


def _counts(shown: Sequence[ComparedQuantity]) -> Shown:
    return Shown("launches", tuple(map(_count, shown)), False)


def _count(one: ComparedQuantity) -> str:
    before, after = (
        "-" if value is None else significant(value, 3 if value % 1 else len(f"{value:.0f}"))
        for value in (one.before_count, one.after_count)
    )
    return before if before == after else f"{before} -> {after}"


def _figures(shown: Sequence[ComparedQuantity]) -> list[Shown]:
    """What ncu measured, before and after."""
    names = dict.fromkeys(name for one in shown for name, _, _ in one.figures)
    return [
        Shown(printable(name), tuple(_figure(one, name) for one in shown), False) for name in names
    ]


def _figure(one: ComparedQuantity, wanted: str) -> str:
    for name, before, after in one.figures:
        if name == wanted:
            return " -> ".join(
                "-" if value is None else significant(value, 3) for value in (before, after)
            )
    return "-"


def _matched(shown: Sequence[ComparedQuantity]) -> Shown:
    return Shown("matched by", tuple(printable(one.matched_by) for one in shown), True)


def renamed_lines(rows: Sequence[ComparedQuantity], width: int) -> list[Text]:
    """What is new or gone, and what was taken for the same under other names."""
    from rich.text import Text

    shown = rows[:MOST_RENAMED]
    deltas = [one.delta_ns for one in shown]
    unit, decimals = unit_for(deltas, deltas)
    changes = [f"{fixed(one, unit, decimals, sign=True)} {unit}" for one in deltas]
    widest = max(map(len, changes))
    kind = max(len(one.change) for one in shown)
    indent = 2 + kind + 2 + widest + 2
    found = []
    for one, change in zip(shown, changes, strict=True):
        before, after = map(printable, other_names_text(one))
        room = width - indent - 3
        first, second = short_names([readable(before, room), readable(after, room)], room)
        head = Text(f"  {one.change:<{kind}}  {change:>{widest}}  ")
        if not before or not after or before == after:
            found.append(head.append(first or second))
            continue
        how = f"  (by {printable(one.matched_by)})" if one.matched_by else ""
        found.append(head.append(first))
        line = Text(" " * indent).append(f"-> {second}")
        if display_width(how) + display_width(line.plain) <= width:
            line.append(how, style="dim")
        found.append(line)
    more = len(rows) - len(shown)
    return [*found, Text(f"  and {counted(more, 'more row')}", style="dim")] if more else found
