"""The tables on the screen of a comparison: the parts, what contributes most, what is renamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.names import readable
from nsightpy.output import sentences
from nsightpy.output.escape import display_width, printable
from nsightpy.output.headings import cause_words
from nsightpy.render.text.layout import Shown, lines
from nsightpy.render.text.shortening import short_names, shorten
from nsightpy.results.comparison import (
    CANNOT_TELL,
    FASTER,
    GONE,
    NEW,
    SLOWER,
    ComparedQuantity,
    Comparison,
)
from nsightpy.units import counted, significant

if TYPE_CHECKING:
    from rich.text import Text

MOST_RENAMED = 8
BAR, WIDE = 17, 120
WIDEST_MATCH = 24
SLOWER_STYLE, FASTER_STYLE = "red", "green"
STYLES = {SLOWER: SLOWER_STYLE, FASTER: FASTER_STYLE}


def parts_table(result: Comparison, width: int) -> list[Text]:
    """The parts of the unit and their sum, with the changes as bars."""
    from rich.text import Text

    every = sentences.shown_parts(result)
    deltas = [part.delta_ns for part in every]
    unit, decimals = sentences.unit_of_parts(result)
    # what is far below the limits is no bar
    largest = max([result.limit_ns, *map(abs, deltas[:-1])])
    columns = [
        Shown("", tuple(cause_words(part.name) for part in every), True),
        _times("before", [part.before_ns for part in every], unit, decimals),
        _times("after", [part.after_ns for part in every], unit, decimals),
        _times("change", deltas, unit, decimals, sign=True),
        Shown("%", tuple(sentences.percent_cell(part, unit, decimals) for part in every), False),
    ]
    if width >= WIDE:
        columns += _confidence(every, tuple(map(sentences.interval, every)))
    rows = lines(columns, width - BAR - 4, rule=False, fold=False)
    longest = max(map(_width_of, rows))
    texts = [Text("  ") + rows[0]]
    for part, line in zip(every, rows[1:], strict=True):
        text = Text("  ") + line
        text.append(" " * (longest - _width_of(line) + 2))
        if part is result.step:
            text.stylize("bold")
        else:
            text.append_text(change_bar(part.delta_ns, largest, BAR))
        text.rstrip()
        texts.append(text)
    return texts


def _width_of(line: Text) -> int:
    return display_width(line.plain)


def change_bar(delta: int, largest: float, cells: int) -> Text:
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
    """The first rows, each with its change in count and in duration; how many more there are.

    What rounds to no change is not among the first, but counted.
    """
    from rich.text import Text

    unit, decimals = sentences.unit_of_changes(rows)
    shown, left = sentences.changed_rows(rows, top)
    if not shown:
        return [Text(f"  {sentences.rest_line(len(shown), left, unit, decimals)}", style="dim")]
    made = lines(_columns(shown, unit, decimals, width), width - 2, rule=False, fold=True)
    texts = [Text("  ") + line for line in made]
    for quantity, line in zip(shown, texts[len(made) - len(shown) :], strict=True):
        if style := STYLES.get(quantity.verdict):
            position = line.plain.find(quantity.verdict)
            line.stylize(style, position, position + len(quantity.verdict))
    if left:
        texts.append(
            Text(f"  {sentences.rest_line(len(shown), left, unit, decimals)}", style="dim")
        )
    return texts


def _columns(
    shown: Sequence[ComparedQuantity], unit: str, decimals: int, width: int
) -> list[Shown]:
    deltas = [quantity.delta_ns for quantity in shown]
    columns = [_times(f"change ({unit})", deltas, unit, decimals, sign=True)]
    columns += _split(shown, unit, decimals)
    intervals = tuple(map(sentences.interval, shown))
    if width >= WIDE or set(intervals) == {"-"}:
        percents = (sentences.percent_cell(quantity, unit, decimals) for quantity in shown)
        columns.append(Shown("%", tuple(percents), False))
    columns += [*_confidence(shown, intervals), *_figures(shown)]
    if width >= WIDE:
        columns += [Shown("launches", tuple(map(_count, shown)), False), *_matched(shown)]
    known = [
        column for column in columns if set(column.cells) - {"-", "", "0"} or column is columns[0]
    ]
    return [*known, Shown("name", tuple(printable(quantity.name) for quantity in shown), True)]


def _confidence(shown: Sequence[ComparedQuantity], intervals: tuple[str, ...]) -> list[Shown]:
    """Interval and verdict; where there are no intervals one can tell of new and gone alone."""
    verdicts = tuple(quantity.verdict for quantity in shown)
    # not texts, since no verdict is ever cut
    if set(intervals) == {"-"}:
        verdicts = tuple("" if verdict == CANNOT_TELL else verdict for verdict in verdicts)
        return [Shown("verdict", verdicts, False)] if any(verdicts) else []
    return [Shown("interval", intervals, False), Shown("verdict", verdicts, False)]


def _times(
    heading: str,
    values: Sequence[float | None],
    unit: str,
    decimals: int,
    *,
    sign: bool = False,
) -> Shown:
    return Shown(
        heading, tuple(sentences.fixed(value, unit, decimals, sign=sign) for value in values), False
    )


def _split(shown: Sequence[ComparedQuantity], unit: str, decimals: int) -> list[Shown]:
    """The change by count and by duration, where any count changed."""
    by_count = [quantity.delta_from_count_ns for quantity in shown]
    if not any(by_count):
        return []
    by_duration = [quantity.delta_from_duration_ns for quantity in shown]
    return [
        _times("by count", by_count, unit, decimals, sign=True),
        _times("by time", by_duration, unit, decimals, sign=True),
    ]


def _count(quantity: ComparedQuantity) -> str:
    before, after = (
        "-" if value is None else significant(value, 3 if value % 1 else len(f"{value:.0f}"))
        for value in (quantity.before_count, quantity.after_count)
    )
    return before if before == after else f"{before} -> {after}"


def _matched(shown: Sequence[ComparedQuantity]) -> list[Shown]:
    """How rows were matched, where not all of them simply have the same name."""
    cells = tuple(shorten(printable(quantity.matched_by), WIDEST_MATCH) for quantity in shown)
    return [Shown("matched by", cells, False)] if sentences.names_matches(shown) else []


def _figures(shown: Sequence[ComparedQuantity]) -> list[Shown]:
    """What ncu measured, before and after."""
    names = dict.fromkeys(name for quantity in shown for name, _, _ in quantity.figures)
    return [
        Shown(_label(name), tuple(_figure(quantity, name) for quantity in shown), False)
        for name in names
    ]


def _label(name: str) -> str:
    """sol_compute_pct as people read it: sol compute %."""
    return printable(name.removesuffix("_pct").replace("_", " ") + " %" * name.endswith("_pct"))


def _figure(quantity: ComparedQuantity, wanted: str) -> str:
    for name, before, after in quantity.figures:
        if name == wanted:
            return " -> ".join(
                "-" if value is None else significant(value, 3) for value in (before, after)
            )
    return "-"


def other_rows(rows: Sequence[ComparedQuantity], top: int) -> list[ComparedQuantity]:
    """What has another name on the other side, then what is new or gone beyond the first rows."""
    shown, left = sentences.changed_rows(rows, top)
    named = [
        quantity
        for quantity in (*shown, *left)
        if quantity.change and quantity.verdict not in (NEW, GONE)
    ]
    return [*named, *(quantity for quantity in left if quantity.verdict in (NEW, GONE))]


def renamed_lines(
    rows: Sequence[ComparedQuantity], width: int, unit: str, decimals: int
) -> list[Text]:
    """What was taken for the same under other names, and what is new or gone."""
    from rich.text import Text

    shown = rows[:MOST_RENAMED]
    changes = [
        f"{sentences.fixed(quantity.delta_ns, unit, decimals, sign=True)} {unit}"
        for quantity in shown
    ]
    widest = max(map(len, changes))
    kind = max(len(quantity.change) for quantity in shown)
    indent = 2 + kind + 2 + widest + 2
    space = width - indent - 3
    texts = []
    for quantity, change in zip(shown, changes, strict=True):
        pair = dict.fromkeys((quantity.before_name, quantity.name))
        names = short_names([readable(printable(name), space) for name in pair], space)
        head = Text(f"  {quantity.change:<{kind}}  {change:>{widest}}  ")
        texts.append(head.append(names[0]))
        if len(names) > 1:
            texts.append(Text(f"{' ' * indent}-> {names[1]}"))
            how = f"  (matched by {quantity.matched_by})"
            if display_width(texts[-1].plain + how) <= width:
                texts[-1].append(how, style="dim")
    more = len(rows) - len(shown)
    return [*texts, Text(f"  and {counted(more, 'more row')}", style="dim")] if more else texts
