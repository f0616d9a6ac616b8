"""A comparison on one screen: the sides, the verdict, what adds up to it, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nsightpy.output import sentences
from nsightpy.output.escape import display_width, printable
from nsightpy.render.comparison.tables import IMPORTANCE, sections
from nsightpy.render.text.layout import UNLIMITED, fitted, lines, wrapped
from nsightpy.render.text.shortening import shorten
from nsightpy.results.comparison import CANNOT_TELL, FASTER, SLOWER, ComparedSide, Comparison

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPED_WIDTH = 140
LABEL = 9
COLOURS = {SLOWER: "red", FASTER: "green"}
STYLES = {SLOWER: "bold red", FASTER: "bold green", CANNOT_TELL: "bold yellow"}


def print_comparison(result: Comparison, out: Console, _: int | None = None) -> None:
    """Print the comparison in the console's width."""
    width = out.width if out.width < UNLIMITED else PIPED_WIDTH
    for line in _head(result, width, out.width):
        out.print(line)
    tables = [] if result.noise is not None else [*_tables(result, out.width)]
    # names are cut on a terminal only
    for title, table in (*tables, ("Next", _next(result, out.width))):
        if table:
            out.print()
            out.print(_styled(title, "bold"))
        for line in table:
            out.print(line)


def _styled(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(text, style=style)


def _head(result: Comparison, width: int, widest: int) -> Iterator[Text]:
    """What is compared, what differs, and the answer on the fifth line or above."""
    if result.noise is not None:
        yield _labelled("Runs", sentences.noise_runs(result), width)
        yield from _wrapped("Noise", sentences.noise_line(result.noise), width, "bold")
        return
    yield _labelled("Before", _side(result, result.before, width), width)
    yield _labelled("After", _side(result, result.after, width), width)
    for label, text in sentences.circumstances(result):
        yield _labelled(label, text, widest)
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


def _wrapped(label: str, text: str, width: int, style: str) -> Iterator[Text]:
    for index, line in enumerate(wrapped(text, width - LABEL)):
        start = _styled(f"{label if index == 0 else '':<{LABEL}}", "dim")
        yield start.append(line, style=f"not dim {style}".strip())


def _tables(result: Comparison, width: int) -> Iterator[tuple[str, list[Text]]]:
    """The tables in this width, rows in the colour of their verdict."""
    for section in sections(result):
        kept, _ = fitted(section.known, width - 2, IMPORTANCE)
        table = [_styled("  ", "").append_text(line) for line in lines(kept, width - 2, rule=False)]
        for row, line in zip(reversed(section.rows), reversed(table), strict=False):
            line.stylize("bold" if row is result.step else COLOURS.get(row.verdict, ""))
        rest = [_styled(f"  {section.rest}", "dim")] if section.rest else []
        yield section.title, [*table * bool(kept), *rest]
    different = sentences.differences(result)
    if display_width("; ".join(different)) > width - LABEL:
        yield (
            "What differs between the sides",
            [_styled(f"  {shorten(each, width - 2)}", "") for each in different],
        )


def _next(result: Comparison, width: int) -> list[Text]:
    """Commands, never cut, with what they are for where there is space."""
    steps = result.next_steps
    if result.noise is not None:
        command = f"nsightpy compare {sentences.gate_options(result.noise)} BEFORE... -- AFTER..."
        steps = ((command, "a gate on this floor"),)
    texts = []
    for command, why in steps:
        line = _styled(f"  {printable(command)}", "not dim")
        reason = f"  # {printable(why)}"
        if why and display_width(line.plain + reason) <= width:
            line.append(reason, style="dim")
        texts.append(line)
    return texts
