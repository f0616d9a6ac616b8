"""No command fails on a real report in a way that no check foresaw: NSIGHTPY_FAULTS is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsightpy.command_table import COMMANDS
from tests.support.reports import REPORTS, ask

MEASURED = REPORTS / "ncu/a40_2022.1.ncu-rep"
WITHOUT_REPORTS = ("schema", "skill", "mcp", "cache")
FILES = [
    path
    for pattern in ("*/*.sqlite", "*/*.json.gz", "*/*.ncu-rep", "*/*.pickle")
    for path in sorted(REPORTS.glob(pattern))
]


def requests(path: Path, folder: Path) -> list[list[str | Path]]:
    """Every command about a report, with the words that it needs."""
    words: dict[str, list[str | Path]] = {
        "pace": ["--of", "*"],
        "compare": [path, "--"],
        "headroom": ["--ncu", MEASURED],
        "stats": ["-r", "cuda_kern_exec_sum"],
        "report": ["-o", folder / "page.html"],
        "timeline": ["-o", folder / "timeline.html"],
        "export": ["-o", folder / "export"],
    }
    names = [name for name in COMMANDS if name not in WITHOUT_REPORTS]
    return [[name, *words.get(name, []), path] for name in names]


@pytest.mark.parametrize("path", FILES or [None], ids=lambda path: path.name if path else "none")
def test_every_command_on_every_real_report(path: Path | None, tmp_path: Path) -> None:
    if path is None:
        pytest.skip("the real reports are not here")
    for words in requests(path, tmp_path):
        ask(*words, expect=None)
