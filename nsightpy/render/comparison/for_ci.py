"""A comparison for CI: a short Markdown comment on a pull request, and a JUnit test report.

In Markdown names stand in <code> with every special character as an entity: there nothing is a
mention, a link or emphasis, on GitHub as on GitLab. Of what XML 1.0 cannot hold nothing is left;
everything else is escaped by the standard library.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from nsightpy.names import readable
from nsightpy.output import sentences
from nsightpy.output.escape import markdown_text, printable
from nsightpy.render.comparison.text import Section, sections
from nsightpy.render.text.layout import short_names
from nsightpy.results.comparison import CANNOT_TELL, Comparison

NAME_WIDTH = 90
_SPECIAL = set("&<>|`*_[]()#~\\@:!$\"'")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def comparison_markdown(result: Comparison) -> bytes:
    """The verdict, the parts, and folded below them what contributes most."""
    if result.noise is not None:
        floor = _words(f"Noise floor: {sentences.noise_line(result.noise)}")
        options, runs = sentences.gate_options(result.noise), sentences.noise_runs(result)
        text = f"**{floor}**: {code(options)}\n\nRuns: {code(runs)}\n"
        return text.encode("utf-8", "backslashreplace")
    lines = [f"**{_words(sentences.answer(result))}**", ""]
    lines += [f"{_words(sentences.confidence(result))}.", ""]
    if result.gate is not None:
        gate = _words(sentences.gate_line(result.gate))
        lines += [f"Gate **{gate.replace(': ', '**: ', 1)}", ""]
    parts, *others = sections(result)
    lines += [*_table(parts), ""]
    for label, side in (("Before", result.before), ("After", result.after)):
        size = sentences.side_size(side, result.unit)
        lines.append(f"- {label}: {code(sentences.side_name(side))}, {size}")
    lines += [f"- {label}: {_words(text)}" for label, text in sentences.circumstances(result)]
    folded = [(section.title, [*_table(section)]) for section in others]
    notes = [f"- {_words(str(note))}" for note in result.notes]
    for title, inside in (*folded, *([("Notes", notes)] if notes else [])):
        lines += ["", f"<details><summary>{title}</summary>", "", *inside, "", "</details>"]
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


def _table(section: Section) -> Iterator[str]:
    """A pipe table of all its columns, names as code."""
    columns = section.filled
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


def comparison_junit(result: Comparison) -> bytes:
    """One suite with one case; a failed gate is a failure, one that cannot tell is skipped."""
    gate = result.gate
    failed = gate is not None and gate.failed
    skipped = not failed and (gate is None or gate.verdict == CANNOT_TELL)
    counts = {"tests": "1", "failures": str(int(failed)), "errors": "0"}
    counts["skipped"] = str(int(skipped))
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {"name": "nsightpy compare", **counts})
    name = gate.on if gate is not None else result.step.name
    about = {"classname": "nsightpy.compare", "name": xml_text(name)}
    case = ET.SubElement(suite, "testcase", about)
    message = sentences.gate_line(gate) if gate is not None else "no gate was asked for (--gate)"
    if gate is not None and gate.failed:
        about = {"message": xml_text(message), "type": gate.verdict}
        failure = ET.SubElement(case, "failure", about)
        texts = (sentences.answer(result), sentences.confidence(result), message)
        failure.text = xml_text("\n".join(texts))
    elif skipped:
        ET.SubElement(case, "skipped", {"message": xml_text(message)})
    ET.indent(suites)
    data: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def xml_text(text: str) -> str:
    """The text with control characters made visible, its line breaks, and nothing XML bars."""
    return _NO_XML.sub("", "\n".join(printable(line) for line in text.split("\n")))
