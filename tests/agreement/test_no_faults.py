"""No command fails in a way that no check foresaw, as tests/conftest.py has it: real reports, and
those that hold next to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulator import Export

from nsightpy.command_table import COMMANDS
from tests.support.reports import REPORTS, ROOT, ask

pytestmark = pytest.mark.slow

MEASURED = ROOT / "sample_reports/kernels_h100.ncu.csv"
WITHOUT_REPORTS = ("mcp", "cache")
FILES = [
    path
    for pattern in ("*/*.sqlite", "*/*.json.gz", "*/*.ncu-rep", "*/*.pickle")
    for path in sorted(REPORTS.glob(pattern))
]


def requests(path: Path, folder: Path) -> list[list[str | Path]]:
    """Every command about a report, with the words that it needs."""
    words: dict[str, list[str | Path]] = {
        "instances": ["--of", "*"],
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


@pytest.mark.parametrize("recorded", ["nothing", "a process", "an idle GPU", "calls"])
def test_every_command_on_a_report_of_next_to_nothing(recorded: str, tmp_path: Path) -> None:
    """Frames have their columns where they have no rows."""
    export = Export(tmp_path / "a.sqlite")
    process = export.process(70) if recorded != "nothing" else None
    if recorded == "an idle GPU":
        export.gpu()
        export.cuda_device()
    if recorded == "calls":
        export.mpi_other(10, 20, "MPI_Init", process)
        export.nvtx_push_pop(0, 30, "step", process=process)
    for words in requests(export.write(), tmp_path):
        ask(*words, expect=None)
