"""A comparison as a short Markdown comment on a pull request.

Names stand in <code> with every special character as an entity: there nothing is a mention, a link
or emphasis, on GitHub as on GitLab.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nsightpy.names import readable
from nsightpy.output import sentences
from nsightpy.output.escape import markdown_text, printable
from nsightpy.output.headings import cause_words
from nsightpy.render.text.shortening import short_names
from nsightpy.results.comparison import ComparedQuantity, Comparison

MOST_ROWS = 10
MOST_RANGES = 5
NAME_WIDTH = 90
_SPECIAL = set("&<>|`*_[]()#~\\@:!$\"'")


def comparison_markdown(result: Comparison) -> bytes:
    """The verdict, the parts, and folded below them what contributes most."""
    if result.noise is not None:
        lines = [*_verdict(result), "", f"Runs: {code(sentences.noise_runs(result))}"]
        return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
    lines = [*_verdict(result), "", *_parts(result), "", *_circumstances(result)]
    changed = sentences.contributors(result)
    if changed:
        title = "Kernels and collectives that contribute most"
        lines += _folded(title, _quantities(changed, result.top or MOST_ROWS))
    if result.ranges:
        title = "Ranges: their time lies within the parts above"
        lines += _folded(title, _quantities(result.ranges, MOST_RANGES))
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


def _parts(result: Comparison) -> Iterator[str]:
    unit, decimals = sentences.unit_of_parts(result)
    name = f"{sentences.unit_name(result)} ({unit})"
    yield f"| {name} | before | after | change | % | interval | verdict |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
    for part in sentences.shown_parts(result):
        mark = "**" if part is result.step else ""
        cells = [
            f"{mark}{_words(cause_words(part.name))}{mark}",
            sentences.fixed(part.before_ns, unit, decimals),
            sentences.fixed(part.after_ns, unit, decimals),
            sentences.fixed(part.delta_ns, unit, decimals, sign=True),
            *_confidence(part, unit, decimals),
        ]
        yield _row(cells)


def _confidence(quantity: ComparedQuantity, unit: str, decimals: int) -> list[str]:
    return [
        sentences.percent_cell(quantity, unit, decimals),
        sentences.interval(quantity),
        quantity.verdict,
    ]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _circumstances(result: Comparison) -> Iterator[str]:
    for label, side in (("Before", result.before), ("After", result.after)):
        size = sentences.side_size(side, result.unit)
        yield f"- {label}: {code(sentences.side_name(side))}, {size}"
    alike, different = sentences.same_on_both(result), sentences.differences(result)
    if alike:
        yield f"- Both: {_words('; '.join(alike))}"
    yield f"- Differs: {_words('; '.join(different)) or 'nothing that the reports record'}"


def _folded(title: str, lines: Iterable[str]) -> list[str]:
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def _quantities(rows: Sequence[ComparedQuantity], top: int) -> Iterator[str]:
    unit, decimals = sentences.unit_of_changes(rows)
    shown, left = sentences.changed_rows(rows, top)
    counts = any(quantity.delta_from_count_ns for quantity in shown)
    split = "| by count | by time " if counts else ""
    matched = sentences.names_matches(shown)
    last = ("| matched by ", "| --- ") if matched else ("", "")
    yield f"| change ({unit}) {split}| % | interval | verdict | name {last[0]}|"
    yield f"| ---: {'| ---: | ---: ' if counts else ''}| ---: | ---: | --- | --- {last[1]}|"
    names = short_names([readable(quantity.name, NAME_WIDTH) for quantity in shown], NAME_WIDTH)
    for quantity, name in zip(shown, names, strict=True):
        changes = [quantity.delta_ns]
        if counts:
            changes += [quantity.delta_from_count_ns or 0, quantity.delta_from_duration_ns or 0]
        times = [sentences.fixed(change, unit, decimals, sign=True) for change in changes]
        cells = [*times, *_confidence(quantity, unit, decimals), code(name)]
        yield _row([*cells, _matched(quantity)] if matched else cells)
    if left:
        yield ""
        yield sentences.rest_line(len(shown), left, unit, decimals)


def _matched(quantity: ComparedQuantity) -> str:
    """How it was matched, and under which name it was before."""
    if quantity.before_name in ("", quantity.name):
        return quantity.matched_by
    before = code(short_names([quantity.before_name], NAME_WIDTH)[0])
    return f"{quantity.matched_by}; {quantity.change}: {before}"
