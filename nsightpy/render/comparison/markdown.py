"""A comparison as a short Markdown comment on a pull request.

Names stand in <code> with every special character as an entity: there nothing is a mention, a link
or emphasis, on GitHub as on GitLab.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nsightpy.names import readable
from nsightpy.output import sentences
from nsightpy.output.escape import markdown_text, printable
from nsightpy.render.comparison.tables import Section, sections
from nsightpy.render.text.shortening import short_names
from nsightpy.results.comparison import Comparison

NAME_WIDTH = 90
_SPECIAL = set("&<>|`*_[]()#~\\@:!$\"'")


def comparison_markdown(result: Comparison) -> bytes:
    """The verdict, the parts, and folded below them what contributes most."""
    if result.noise is not None:
        lines = [*_verdict(result), "", f"Runs: {code(sentences.noise_runs(result))}"]
        return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
    parts, *others = sections(result)
    lines = [*_verdict(result), "", *_table(parts), "", *_circumstances(result)]
    for section in others:
        lines += _folded(section.title, _table(section))
    if result.notes:
        lines += _folded("Notes", [f"- {_words(str(note))}" for note in result.notes])
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def code(text: str) -> str:
    """A name as code in which nothing means anything."""
    shown = "".join(
        f"&#{ord(character)};" if character in _SPECIAL else character
        for character in printable(text)
    )
    return f"<code>{shown}</code>" if shown else ""


def _words(text: str) -> str:
    """Free text in a sentence: no mention behind an @, no formula between dollars."""
    return markdown_text(text).replace("@", "@<!-- -->").replace("$", "&#36;")


def _verdict(result: Comparison) -> Iterator[str]:
    if result.noise is not None:
        floor = f"Noise floor: {sentences.noise_line(result.noise)}"
        yield f"**{_words(floor)}**: {code(sentences.gate_options(result.noise))}"
        return
    yield f"**{_words(sentences.answer(result))}**"
    yield ""
    yield f"{_words(sentences.confidence(result))}."
    if result.gate is not None:
        yield ""
        yield f"Gate **{_words(sentences.gate_line(result.gate)).replace(': ', '**: ', 1)}"


def _circumstances(result: Comparison) -> Iterator[str]:
    for label, side in (("Before", result.before), ("After", result.after)):
        size = sentences.side_size(side, result.unit)
        yield f"- {label}: {code(sentences.side_name(side))}, {size}"
    for label, text in sentences.circumstances(result):
        yield f"- {label}: {_words(text)}"


def _table(section: Section) -> Iterator[str]:
    """A pipe table of all its columns, names as code."""
    columns = section.known
    yield f"| {' | '.join(column.heading for column in columns)} |"
    yield f"| {' | '.join('---' if column.is_text else '---:' for column in columns)} |"
    cells = [
        map(code, short_names([readable(name, NAME_WIDTH) for name in column.cells], NAME_WIDTH))
        if column.is_name
        else map(_words, column.cells)
        for column in columns
    ]
    for row in zip(*cells, strict=True):
        yield f"| {' | '.join(row)} |"
    yield from ("", _words(section.rest)) if section.rest else ()


def _folded(title: str, lines: Iterable[str]) -> list[str]:
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]
