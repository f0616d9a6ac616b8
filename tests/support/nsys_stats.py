"""What `nsys stats` printed about the real reports, as tables."""

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import pytest

from tests.support.reports import NSYS, needs_reports

_HEADING = re.compile(r"^ \*\* .* \((\w+)\):$")

Rows = list[list[str]]


def tables_of(stats: Path) -> dict[str, Rows]:
    """The tables of `nsys stats` text, heading first; names may end in an ellipsis."""
    found: dict[str, Rows] = {}
    lines = iter(stats.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if not (heading := _HEADING.match(line)):
            continue
        next(lines)
        titles, rule = next(lines), next(lines)
        columns = [slice(*m.span()) for m in re.finditer("-+", rule)]
        # the last column may be wider than its rule where letters are
        columns[-1] = slice(columns[-1].start, None)
        rows = (titles, *takewhile(str.strip, lines))
        found[heading[1]] = [[row[column].strip() for column in columns] for row in rows]
    return found


def printed() -> Sequence[object]:
    """(export, stats file) for every text that NVIDIA printed."""
    pairs = [
        (stats.with_name(stats.name.replace(".nsys-stats.txt", ".sqlite")), stats)
        for stats in sorted(NSYS.glob("*.nsys-stats.txt"))
    ]
    return [pytest.param(*pair, id=pair[0].stem) for pair in pairs] or [
        pytest.param(None, None, marks=needs_reports, id="none")
    ]
