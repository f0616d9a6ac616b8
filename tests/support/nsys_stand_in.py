"""A bench for tests of exports: the stand-in nsys, a report for it, a cache of its own."""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import nsightpy
from nsightpy.readers.tools import nvidia_tools
from nsightpy.store import cache

STAND_IN = Path(__file__).parent.parent / "stand_ins" / "nsys"
ROOT = Path(nsightpy.__file__).parent.parent


@dataclass(frozen=True)
class Bench:
    """Folders of one test; `report` is in a folder of its own."""

    root: Path
    report: Path

    @property
    def cache(self) -> Path:
        return self.root / "cache" / "exports"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def log(self) -> Path:
        return self.root / "log"

    def write_report(self, version: str = "2020.1.1.1", *lines: str, end: str = "END") -> None:
        self.report.write_text("\n".join([f"STAND-IN REPORT {version}", *lines, end]))

    def runs(self) -> list[list[str]]:
        """The arguments of each `nsys export` so far."""
        return [arguments for _, arguments in self._logged() if arguments[0] == "export"]

    def process_of_last_run(self) -> int:
        return self._logged()[-1][0]

    def listing(self, folder: Path) -> list[str]:
        """Every file and folder below; one that vanishes meanwhile is passed by."""
        below = [
            str(Path(parent, name).relative_to(folder))
            for parent, folders, files in os.walk(folder)
            for name in [*folders, *files]
        ]
        return sorted(below)

    def start(self, code: str) -> subprocess.Popen[bytes]:
        """Another Python process; it finds `report`, `sqlite_of` and the bench's environment."""
        head = (
            "from pathlib import Path; from nsightpy.readers.export.nsys_export import sqlite_of; "
            f"report = Path({str(self.report)!r})\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen([sys.executable, "-c", head + code], env=environment)

    def wait_for_export(self, count: int = 1) -> None:
        """Until that many exports run and their first output is there."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if len(self.runs()) >= count and list(self.cache.glob("*.part/export.sqlite-journal")):
                return
            time.sleep(0.02)
        raise AssertionError("no export began")

    def _logged(self) -> list[tuple[int, list[str]]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(entry[0], entry[1:]) for entry in map(json.loads, lines)]


def is_alive(process: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The stand-in as the only nsys; neither the user's cache nor /tmp is touched."""
    made = Bench(tmp_path, tmp_path / "reports" / "train.rank0.nsys-rep")
    made.report.parent.mkdir()
    made.temporary.mkdir()
    made.write_report()
    for name in [name for name in os.environ if name.startswith(("NSIGHTPY_", "STAND_IN_"))]:
        monkeypatch.delenv(name)
    # The stand-in runs under `python3` of PATH: let that be this very Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("NSIGHTPY_NSYS", str(STAND_IN))
    monkeypatch.setenv("NSIGHTPY_CACHE_DIR", str(made.cache.parent))
    monkeypatch.setenv("STAND_IN_NSYS_LOG", str(made.log))
    monkeypatch.setenv("TMPDIR", str(made.temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    nowhere = replace(nvidia_tools.KINDS["nsys"], installs=())
    monkeypatch.setitem(nvidia_tools.KINDS, "nsys", nowhere)
    cache.session_folder.cache_clear()
    return made
