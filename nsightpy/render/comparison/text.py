"""A comparison on one screen: the sides, the verdict, what adds up to it, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nsightpy.output import sentences
from nsightpy.output.escape import display_width, printable
from nsightpy.render.comparison.text_tables import (
    other_rows,
    parts_table,
    quantities_table,
    renamed_lines,
)
from nsightpy.render.text.layout import UNLIMITED, wrapped
from nsightpy.render.text.shortening import shorten
from nsightpy.results.comparison import (
    CANNOT_TELL,
    FASTER,
    GONE,
    NEW,
    SLOWER,
    ComparedQuantity,
    ComparedSide,
    Comparison,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

MOST_ROWS = 10
MOST_RANGES = 5
PIPED_WIDTH = 140
LABEL = 9
STYLES = {SLOWER: "bold red", FASTER: "bold green", CANNOT_TELL: "bold yellow"}


def print_comparison(result: Comparison, out: Console, _: int | None = None) -> None:
    """Print the comparison in the console's width."""
    width = out.width if out.width < UNLIMITED else PIPED_WIDTH
    for line in _head(result, width):
        out.print(line)
    # names are cut on a terminal only
    for title, section in _sections(result, out.width):
        out.print()
        out.print(_styled(shorten(title, width), "bold"))
        for line in section:
            out.print(line)


def _styled(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(text, style=style)


def _head(result: Comparison, width: int) -> Iterator[Text]:
    """What is compared, what differs, and the answer on the fifth line or above."""
    if result.noise is not None:
        yield _labelled("Runs", sentences.noise_runs(result), width)
        yield from _wrapped("Noise", sentences.noise_line(result.noise), width, "bold")
        return
    yield _labelled("Before", _side(result, result.before, width), width)
    yield _labelled("After", _side(result, result.after, width), width)
    alike, different = sentences.same_on_both(result), sentences.differences(result)
    if alike:
        yield _labelled("Both", _as_many(alike, width - LABEL), width)
    nothing = ["nothing that the reports record"]
    yield _labelled("Differs", _as_many(different or nothing, width - LABEL), width)
    yield from _wrapped(
        "Answer", sentences.answer(result), width, STYLES.get(result.step.verdict, "bold")
    )
    yield from _wrapped("", sentences.confidence(result), width, "")
    if result.gate is not None:
        style = "bold red" if result.gate.failed else "bold"
        yield from _wrapped("Gate", sentences.gate_line(result.gate), width, style)


def _side(result: Comparison, side: ComparedSide, width: int) -> str:
    size = sentences.side_size(side, result.unit)
    return f"{shorten(sentences.side_name(side), width - LABEL - len(size) - 2)}, {size}"


def _labelled(label: str, text: str, width: int) -> Text:
    line = _styled(f"{label:<{LABEL}}", "dim")
    return line.append(shorten(text, width - LABEL), style="not dim")


def _as_many(parts: Sequence[str], space: int) -> str:
    """As many parts as fit on one line, and how many more there are."""
    for kept in range(len(parts), 0, -1):
        more = f"; and {len(parts) - kept} more" if kept < len(parts) else ""
        text = "; ".join(parts[:kept]) + more
        if display_width(text) <= space:
            return text
    more = f"; and {len(parts) - 1} more" if len(parts) > 1 else ""
    return shorten(parts[0], space - len(more)) + more


def _wrapped(label: str, text: str, width: int, style: str) -> Iterator[Text]:
    for index, line in enumerate(wrapped(text, width - LABEL)):
        start = _styled(f"{label if index == 0 else '':<{LABEL}}", "dim")
        yield start.append(line, style=f"not dim {style}".strip())


def _sections(result: Comparison, width: int) -> Iterator[tuple[str, list[Text]]]:
    if result.noise is not None:
        command = f"nsightpy compare {sentences.gate_options(result.noise)} BEFORE... -- AFTER..."
        yield "Next", _next([(command, "a gate on this floor")], width)
        return
    if any(part.before_ns or part.after_ns for part in result.parts):
        unit = sentences.unit_of_parts(result)[0]
        yield (
            f"Parts of the {result.unit} ({unit}): their changes add up",
            parts_table(result, width),
        )
    changed = sentences.contributors(result)
    if changed:
        table = quantities_table(changed, width, result.top or MOST_ROWS)
        yield _contributors_title(result, changed), table
    if result.ranges:
        yield (
            "Ranges: their time lies within the parts above",
            quantities_table(result.ranges, width, result.top or MOST_RANGES),
        )
    if len(result.categories) > 1:
        yield (
            "What kernels compute: all kernels above",
            quantities_table(result.categories, width, result.top or MOST_RANGES),
        )
    named = other_rows(changed, result.top or MOST_ROWS)
    if named:
        titles = dict.fromkeys(
            "new or gone" if quantity.change in (NEW, GONE) else "under another name"
            for quantity in named
        )
        title = ", ".join(titles).capitalize()
        yield title, renamed_lines(named, width, *sentences.unit_of_changes(changed))
    different = sentences.differences(result)
    space = min(width, PIPED_WIDTH) - LABEL
    if different and _as_many(different, space) != "; ".join(different):
        yield (
            "What differs between the sides",
            [_styled(f"  {shorten(difference, width - 2)}", "not dim") for difference in different],
        )
    if result.next_steps:
        yield "Next", _next(result.next_steps, width)


def _contributors_title(result: Comparison, changed: Sequence[ComparedQuantity]) -> str:
    """What the table below is of, and what its changes are made of."""
    kinds = {"kernel": "kernels", "collective": "collectives"}
    named = " and ".join(kinds[kind] for kind in kinds if any(q.section == kind for q in changed))
    unit = "" if result.unit == "launch" else f" per {result.unit}"
    title = f"{named[:1].upper()}{named[1:]} by change{unit}"
    shown, others = sentences.changed_rows(changed, result.top or MOST_ROWS)
    if any(quantity.delta_from_count_ns for quantity in shown):
        return f"{title} (= by count + by time)"
    if any(quantity.delta_from_count_ns for quantity in others):
        return title
    known = any(quantity.before_count is not None for quantity in changed)
    return f"{title}; each launched as often as before" if known else title


def _next(steps: Sequence[tuple[str, str]], width: int) -> list[Text]:
    """Commands, never cut, with what they are for where there is space."""
    texts = []
    for command, why in steps:
        line = _styled(f"  {printable(command)}", "not dim")
        reason = f"  # {printable(why)}"
        if why and display_width(line.plain + reason) <= width:
            line.append(reason, style="dim")
        texts.append(line)
    return texts
