"""A comparison on one screen: the sides, the verdict, what adds up to it, and what to type next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nsightpy.render.comparison.sentences import (
    answer,
    confidence,
    contributors,
    differences,
    gate_line,
    gate_options,
    noise_line,
    same_on_both,
    side_name,
    side_size,
)
from nsightpy.render.comparison.text_tables import (
    parts_table,
    quantities_table,
    renamed_lines,
)
from nsightpy.render.escape import printable
from nsightpy.render.text.layout import UNLIMITED, shorten
from nsightpy.results.comparison import (
    CANNOT_TELL,
    FASTER,
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


def print_comparison(result: Comparison, out: Console, top: int | None = None) -> None:
    """Print the comparison in the console's width; `top` rows of kernels and collectives."""
    width = out.width if out.width < UNLIMITED else PIPED_WIDTH
    for line in _head(result, width):
        out.print(line)
    for title, section in _sections(result, width, top or MOST_ROWS):
        out.print()
        out.print(_styled(title, "bold"))
        for line in section:
            out.print(line)


def _styled(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(text, style=style)


def _head(result: Comparison, width: int) -> Iterator[Text]:
    """What is compared, what differs, and the answer: five lines where names are short."""
    yield _labelled("Before", _side(result, result.before, width), width)
    yield _labelled("After", _side(result, result.after, width), width)
    different = differences(result)
    if different:
        yield from _filled("Differs", different, width)
    else:
        alike = same_on_both(result)
        yield from _filled("Same", alike or ["nothing that the reports record differs"], width)
    if result.noise is not None:
        yield from _wrapped("Noise", noise_line(result).partition(": ")[2], width, "bold")
        return
    yield from _wrapped("Answer", answer(result), width, STYLES.get(result.step.verdict, "bold"))
    yield from _wrapped("", confidence(result), width, "")
    if result.gate is not None:
        style = "bold red" if result.gate.failed else "bold"
        yield from _wrapped("Gate", gate_line(result), width, style)


def _side(result: Comparison, side: ComparedSide, width: int) -> str:
    size = side_size(side, result.unit)
    return f"{shorten(side_name(side), width - LABEL - len(size) - 2)}, {size}"


def _labelled(label: str, text: str, width: int) -> Text:
    line = _styled(f"{label:<{LABEL}}", "dim")
    return line.append(shorten(text, width - LABEL), style="not dim")


def _filled(label: str, parts: Sequence[str], width: int) -> Iterator[Text]:
    """Parts on at most two lines, and how many more there are."""
    room = width - LABEL
    text = "; ".join(parts)
    found = textwrap.wrap(text, room, break_on_hyphens=False)
    if len(found) > 2:
        found = [found[0], f"{shorten(found[1], room - 4)} ..."]
    for place, line in enumerate(found):
        yield _labelled(label if place == 0 else "", line, width)


def _wrapped(label: str, text: str, width: int, style: str) -> Iterator[Text]:
    for place, line in enumerate(textwrap.wrap(text, width - LABEL, break_on_hyphens=False)):
        start = _styled(f"{label if place == 0 else '':<{LABEL}}", "dim")
        yield start.append(line, style=f"not dim {style}".strip())


def _sections(result: Comparison, width: int, top: int) -> Iterator[tuple[str, list[Text]]]:
    if any(part.before_ns or part.after_ns for part in result.parts):
        title = f"What the change of the {result.unit} is made of: these add up to it"
        yield title, parts_table(result, width)
    found = contributors(result)
    if found:
        yield _contributors_title(result, found), quantities_table(found, width, top)
    if result.ranges:
        yield (
            "Ranges: their time lies within the parts above",
            quantities_table(result.ranges, width, MOST_RANGES),
        )
    named = [one for one in found if one.change]
    if named:
        yield "New, gone, or under another name", renamed_lines(named, width)
    if result.next_steps or result.noise is not None:
        yield "Next", _next(result, width)


def _contributors_title(result: Comparison, found: Sequence[ComparedQuantity]) -> str:
    """What the table below is of, and what its changes are made of."""
    kinds = {"kernel": "Kernels", "collective": "collectives"}
    named = " and ".join(kinds[one] for one in kinds if any(q.section == one for q in found))
    counts = any(one.delta_from_count_ns for one in found)
    split = "; by count + by time = change" if counts else "; launched as often as before"
    known = any(one.before_count is not None for one in found)
    title = f"{named[:1].upper()}{named[1:]} by their change per {result.unit}"
    return title + (split if known else "")


def _next(result: Comparison, width: int) -> list[Text]:
    found = [_styled(f"  {printable(command)}", "not dim") for command, _ in result.next_steps]
    if result.noise is not None:
        found.insert(0, _styled(f"  nsightpy compare {gate_options(result)} ...", "not dim"))
    return found
