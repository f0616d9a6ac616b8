"""nsys-ai in an environment of its own, with and without its cache.

It caches beside the export, in NAME.nsys-cache, so it gets a copy of the export. It reads
SQLite through a DuckDB extension that it downloads at its first run, and without network it
waits for that and then takes a slower path; the extension comes from PyPI here, so that it is
measured at its best.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

DUCKDB = "1.5.5"
REQUIREMENTS = (
    "nsys-ai==0.3.0",
    f"duckdb=={DUCKDB}",
    "duckdb-extensions",
    f"duckdb-extension-sqlite-scanner=={DUCKDB}",
)
FALLBACK_MESSAGE = "falling back to"
_INSTALL_EXTENSION = (
    "from duckdb_extensions import extension_importer as it; it.import_extension('sqlite_scanner')"
)


class NsysAi:
    """The environment in `folder` and the copy of the export it works on."""

    def __init__(self, folder: Path, export: Path) -> None:
        self.folder = folder
        self.export = export
        self.copy = export.parent / "nsys-ai" / export.name

    @property
    def summary(self) -> tuple[str, ...]:
        return (str(self.folder / "bin" / "nsys-ai"), "summary", str(self.copy))

    @property
    def environment(self) -> dict[str, str]:
        """DuckDB looks for its extensions in the home folder."""
        return {"HOME": str(self.folder / "home")}

    def set_up(self) -> None:
        """Install it unless that is done, and copy the export unless the copy is newer."""
        self._install()
        self.copy.parent.mkdir(exist_ok=True)
        if self.copy.exists() and self.copy.stat().st_mtime >= self.export.stat().st_mtime:
            return
        self.forget()
        partial = self.copy.with_suffix(".partial")
        shutil.copyfile(self.export, partial)
        partial.replace(self.copy)

    def forget(self) -> None:
        """Remove its cache, so that the next run is a first one."""
        shutil.rmtree(self.copy.with_suffix(".nsys-cache"), ignore_errors=True)

    def warm(self) -> None:
        """Make sure that the next run finds the cache of an earlier one."""
        if not self.copy.with_suffix(".nsys-cache").exists():
            subprocess.run(
                self.summary, env=self.environment, check=True, stdout=subprocess.DEVNULL
            )

    def _install(self) -> None:
        done = self.folder / "installed.txt"
        wanted = "\n".join(REQUIREMENTS)
        if done.exists() and done.read_text() == wanted:
            return
        python = self.folder / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder)], check=True)
        (self.folder / "home").mkdir()
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        subprocess.run([python, "-c", _INSTALL_EXTENSION], env=self.environment, check=True)
        done.write_text(wanted)
