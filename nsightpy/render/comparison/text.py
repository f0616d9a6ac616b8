"""A comparison on one screen: the sides, the verdict, what adds up to it, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nsightpy.output import sentences
from nsightpy.output.escape import display_width, printable
from nsightpy.render.comparison.tables import IMPORTANCE, sections
from nsightpy.render.text.layout import UNLIMITED, fitted, lines, styled, wrapped
from nsightpy.render.text.shortening import shorten
from nsightpy.results.comparison import CANNOT_TELL, FASTER, SLOWER, Comparison

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
            out.print(styled(title, "bold"))
        for line in table:
            out.print(line)


def _head(result: Comparison, width: int, widest: int) -> Iterator[Text]:
    """What is compared, what differs, and the answer on the fifth line or above."""
    space = width - LABEL
    if result.noise is not None:
        yield from _labelled("Runs", [shorten(sentences.noise_runs(result), space)])
        yield from _labelled("Noise", wrapped(sentences.noise_line(result.noise), space), "bold")
        return
    for label, side in (("Before", result.before), ("After", result.after)):
        size = sentences.side_size(side, result.unit)
        name = shorten(sentences.side_name(side), space - len(size) - 2)
        yield from _labelled(label, [shorten(f"{name}, {size}", space)])
    for label, text in sentences.circumstances(result):
        yield from _labelled(label, [shorten(text, widest - LABEL)])
    style = STYLES.get(result.step.verdict, "bold")
    yield from _labelled("Answer", wrapped(sentences.answer(result), space), style)
    yield from _labelled("", wrapped(sentences.confidence(result), space))
    if result.gate is not None:
        style = "bold red" if result.gate.failed else "bold"
        yield from _labelled("Gate", wrapped(sentences.gate_line(result.gate), space), style)


def _labelled(label: str, lines: Sequence[str], style: str = "") -> Iterator[Text]:
    """The lines behind a label."""
    for index, line in enumerate(lines):
        start = styled(f"{label if index == 0 else '':<{LABEL}}", "dim")
        yield start.append(line, style=f"not dim {style}".strip())


def _tables(result: Comparison, width: int) -> Iterator[tuple[str, list[Text]]]:
    """The tables in this width, rows in the colour of their verdict."""
    for section in sections(result):
        kept, _ = fitted(section.filled, width - 2, IMPORTANCE)
        table = [styled("  ", "").append_text(line) for line in lines(kept, width - 2, rule=False)]
        for row, line in zip(reversed(section.rows), reversed(table), strict=False):
            line.stylize("bold" if row is result.step else COLOURS.get(row.verdict, ""))
        rest = [styled(f"  {section.rest}", "dim")] if section.rest else []
        yield section.title, [*table * bool(kept), *rest]
    different = sentences.differences(result)
    if display_width("; ".join(different)) > width - LABEL:
        yield (
            "What differs between the sides",
            [styled(f"  {shorten(each, width - 2)}", "") for each in different],
        )


def _next(result: Comparison, width: int) -> list[Text]:
    """Commands, never cut, with what they are for where there is space."""
    steps = result.next_steps
    if result.noise is not None:
        command = f"nsightpy compare {sentences.gate_options(result.noise)} BEFORE... -- AFTER..."
        steps = ((command, "a gate on this floor"),)
    texts = []
    for command, why in steps:
        line = styled(f"  {printable(command)}", "not dim")
        reason = f"  # {printable(why)}"
        if why and display_width(line.plain + reason) <= width:
            line.append(reason, style="dim")
        texts.append(line)
    return texts
