"""Other programs, each in an environment of its own: nsys-ai and HTA.

nsys-ai caches beside the export, in NAME.nsys-cache, so it gets a copy of the export. It reads
SQLite through a DuckDB extension that it downloads at its first run, and without network it
waits for that and then takes a slower path; the extension comes from PyPI here, so that it is
measured at its best.
"""

import shutil
import subprocess
import sys
from pathlib import Path

DUCKDB = "1.5.5"
NSYS_AI = (
    *("nsys-ai==0.3.0", f"duckdb=={DUCKDB}", "duckdb-extensions"),
    f"duckdb-extension-sqlite-scanner=={DUCKDB}",
)
FALLBACK_MESSAGE = "falling back to"
_INSTALL_EXTENSION = (
    "from duckdb_extensions import extension_importer as it; it.import_extension('sqlite_scanner')"
)
HTA = ("HolisticTraceAnalysis==0.5.0",)
# What HTA is asked: how the GPU's time divides, and the kernels by time.
HTA_CODE = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=sys.argv[2])
print(analysis.get_temporal_breakdown(visualize=False))
print(analysis.get_gpu_kernel_breakdown(visualize=False))
"""


def install(folder: Path, requirements: tuple[str, ...], *and_then: str) -> None:
    """An environment with these packages, unless it is there; `and_then` code is run in it."""
    installed, wanted = folder / "installed.txt", "\n".join(requirements)
    if installed.exists() and installed.read_text() == wanted:
        return
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    (folder / "home").mkdir()
    subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
    for code in and_then:
        subprocess.run([python, "-c", code], env={"HOME": str(folder / "home")}, check=True)
    installed.write_text(wanted)


class NsysAi:
    """The environment in `folder` and the copy of the export it works on."""

    def __init__(self, folder: Path, export: Path) -> None:
        self.folder, self.export = folder, export
        self.copy = export.parent / "nsys-ai" / export.name
        self.cache = self.copy.with_suffix(".nsys-cache")
        self.summary = (str(folder / "bin" / "nsys-ai"), "summary", str(self.copy))
        # DuckDB looks for its extensions in the home folder
        self.environment = {"HOME": str(folder / "home")}

    def set_up(self) -> None:
        """Install it unless that is done, and copy the export unless the copy is newer."""
        install(self.folder, NSYS_AI, _INSTALL_EXTENSION)
        self.copy.parent.mkdir(exist_ok=True)
        if not self.copy.exists() or self.copy.stat().st_mtime < self.export.stat().st_mtime:
            self.forget()
            partial = self.copy.with_suffix(".partial")
            shutil.copyfile(self.export, partial)
            partial.replace(self.copy)

    def forget(self) -> None:
        """Remove its cache, so that the next run is a first one."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def warm(self) -> None:
        """Make sure that the next run finds the cache of an earlier one."""
        if not self.cache.exists():
            subprocess.run(self.summary, env=self.environment, check=True, capture_output=True)
