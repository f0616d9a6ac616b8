"""The exports that are measured on hold what they claim to hold, and the claims can be measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nsightpy.commands.ranks.command import ranks
from nsightpy.reports.opening import open_report
from nsightpy.reports.profiles import NsysReport
from tests.support.reports import ROOT

BENCHMARKS = ROOT / "benchmarks"
KERNELS = 3_000


def generate(*words: str | Path) -> None:
    line = [sys.executable, BENCHMARKS / "generate.py", "--kernels", str(KERNELS), *words]
    subprocess.run(line, check=True, capture_output=True)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four ranks of one job."""
    folder = tmp_path_factory.mktemp("job")
    generate("--reports", "4", folder)
    return folder


@pytest.mark.slow
def test_the_same_arguments_make_the_same_files(job: Path, tmp_path: Path) -> None:
    generate("--reports", "4", tmp_path)
    for path in sorted(job.iterdir()):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_what_the_reports_of_a_job_hold(job: Path) -> None:
    report = open_report(job / "report_rank3.sqlite")
    assert isinstance(report, NsysReport)
    kernels = report.frame("kernels")
    assert kernels.rows == KERNELS
    sizes = report.frame("kernels", ("blocks", "threads"))
    for name, shape in (("blocks", "grid"), ("threads", "block")):
        x, y, z = (kernels.ints(f"{shape}_{axis}") for axis in "xyz")
        assert (sizes.ints(name) == x * y * z).all()
    calls = report.frame("api_calls").rows
    assert calls == 2 * KERNELS + 2, "two a kernel, one that ends an iteration"
    waits = report.frame("synchronizations").labels("kind")
    assert np.count_nonzero(waits.equals(["stream"])) == 2
    assert np.count_nonzero(waits.equals(["stream wait"])) > KERNELS / 10
    assert report.frame("cuda_events").rows > KERNELS / 10
    table = ranks(job)
    assert table.column("alignment") == ["collectives"] * 4
    assert all(abs(offset) < 1_000 for offset in table.column("offset_ns"))


def test_every_claim_is_about_commands_of_different_names() -> None:
    code = (
        "from pathlib import Path; from harness.suite import Suite; "
        "claims = list(Suite(Path('data'), 20_000).comparisons()); "
        "named = {command.name: command.argv for claim in claims for command in claim.commands}; "
        "assert len(named) > 10; "
        "assert all(named[one.name] == one.argv for claim in claims for one in claim.commands)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=BENCHMARKS)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells it")
def test_memory_is_what_a_process_has_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapped file is not counted, however large; what is written to is."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    from harness.measure import Command, run_once

    size = 64 << 20
    with (tmp_path / "mapped").open("wb") as file:
        file.truncate(size)
    begin, end = "import mmap, os, time; m = ", "; m[::4096]; time.sleep(0.1)"

    def peak(held: str) -> float:
        command = Command("it", (sys.executable, "-c", begin + held + end))
        return run_once(command, tmp_path).peak_bytes

    own = peak(f"bytearray(b'1') * {size}")
    mapped = peak(f"mmap.mmap(os.open('mapped', os.O_RDONLY), {size}, access=mmap.ACCESS_READ)")
    assert own > size > size / 2 > mapped > 0
