"""A comparison as JUnit XML: one test case for what is under the gate.

Of what XML 1.0 cannot hold nothing is left; everything else is escaped by the standard library.
"""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree as ET

from nsightpy.output import sentences
from nsightpy.output.escape import printable
from nsightpy.render.comparison.text import print_comparison
from nsightpy.render.text.terminal import console
from nsightpy.results.comparison import CANNOT_TELL, ComparedQuantity, Comparison

WIDTH = 120
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def comparison_junit(result: Comparison) -> bytes:
    """One suite with one case; a failed gate is a failure, one that cannot tell is skipped."""
    gate = result.gate
    failed = gate is not None and gate.failed
    skipped = not failed and (gate is None or gate.verdict == CANNOT_TELL)
    counts = {
        "tests": "1",
        "failures": str(int(failed)),
        "errors": "0",
        "skipped": str(int(skipped)),
    }
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {"name": "nsightpy compare", **counts})
    on = _quantity(result)
    name = gate.on if gate is not None else result.step.name
    seconds = f"{(on.after_ns or 0) / 1e9:.9f}"
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": "nsightpy.compare", "name": xml_text(name), "time": seconds},
    )
    message = sentences.gate_line(gate) if gate is not None else "no gate was asked for (--gate)"
    if failed:
        failure = ET.SubElement(case, "failure", {"message": xml_text(message), "type": on.verdict})
        failure.text = xml_text(
            f"{sentences.answer(result)}\n{sentences.confidence(result)}\n{message}"
        )
    elif skipped:
        ET.SubElement(case, "skipped", {"message": xml_text(message)})
    screen = io.StringIO()
    print_comparison(result, console(screen, WIDTH))  # as a terminal without colours
    ET.SubElement(case, "system-out").text = xml_text(screen.getvalue())
    ET.indent(suites)
    data: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def xml_text(text: str) -> str:
    """The text with control characters made visible, its line breaks, and nothing XML bars."""
    return _NO_XML.sub("", "\n".join(printable(line) for line in text.split("\n")))


def _quantity(result: Comparison) -> ComparedQuantity:
    """What is under the gate; the step where there is none."""
    gate = result.gate
    wanted = gate.on if gate is not None else result.step.name
    return next(
        (quantity for quantity in result.quantities if quantity.name == wanted), result.step
    )
