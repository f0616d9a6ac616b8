"""Every command on real reports and on those of next to nothing: an answer or a reason, no fault.

Alike in every format, and the input stays as it is.
"""

import shutil
from pathlib import Path

import pytest
from simulator import Export

from nsightpy.command_table import COMMANDS
from tests.support.full_export import full
from tests.support.reports import REPORTS, REQUESTS, ROOT, ask, exports, state
from tests.support.same_answers import QUESTIONS, differing

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


@exports
def test_all_formats_say_the_same_and_leave_the_input_alone(path: Path) -> None:
    before = state(path)
    for request in REQUESTS:
        forms = ("csv", "json", "table", "markdown") if len(request) == 1 else ("csv", "json")
        answers = {form: ask(*request, path, "--format", form) for form in forms}
        for answer in answers.values():
            assert b"\x1b" not in answer.everything
            lines = answer.stderr.splitlines()
            assert all(line.startswith("note: ") for line in lines), lines
        if "table" in answers:
            shown = answers["table"].text.splitlines()
            assert len(shown) > 2 or answers["table"].stderr or request == ("info",), request
        document = answers["json"].json
        found = document["findings" if request[0] == "summarize" else "rows"]
        head, *lines = answers["csv"].csv
        for line, row in zip(lines, found, strict=True):
            for name, cell in zip(head, line, strict=True):
                assert same(cell, row[name]), (request, name, cell, row[name])
    assert state(path) == before


def same(cell: str, value: object) -> bool:
    if value is None:
        return cell == ""
    if isinstance(value, str):
        return cell in (value, f"'{value}")
    return float(cell) == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("equal", [False, True], ids=["sample", "two equal processes"])
def test_an_export_written_otherwise_gives_the_same_bytes(equal: bool, tmp_path: Path) -> None:
    """Whatever the question; of equal processes every row has another of the same time."""
    path = tmp_path / "a.sqlite"
    if equal:
        full(path).write()
    else:
        shutil.copy(ROOT / "sample_reports" / "single_process.sqlite", path)
    assert len(QUESTIONS) > 30
    assert differing(path, 2) == {}
