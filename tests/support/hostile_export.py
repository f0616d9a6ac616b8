"""A sample report whose names are hostile and whose environment holds secrets."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.reports import ROOT

HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=document.title='owned'>",
    "<!--timeline--><!--<script>",
    "]]>&amp;\"'`${1} {{ 7 * 7 }} {% raw %}",
    "\x1b]0;owned\x07\u202etxt",
    "=cmd|' /C calc'!A0",
    'style="x" url(https://owned.example) naïve 汉字 🚀',
)
SECRET = "hunter2"


def hostile_report(folder: Path) -> Path:
    """A copy of the sample of one process, its names and its environment rewritten."""
    path = folder / "<b>&r.sqlite"
    shutil.copy(ROOT / "sample_reports" / "single_process.sqlite", path)
    with closing(sqlite3.connect(path)) as db, db:
        kernels = "SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL"
        ranges = "SELECT textId FROM NVTX_EVENTS WHERE textId IS NOT NULL"
        ids = [row[0] for row in db.execute(f"SELECT id FROM StringIds WHERE id IN ({kernels})")]
        ids += [row[0] for row in db.execute(f"SELECT id FROM StringIds WHERE id IN ({ranges})")]
        for place, number in enumerate(ids):
            name = f"{HOSTILE[place % len(HOSTILE)]} {place}"
            db.execute("UPDATE StringIds SET value = ? WHERE id = ?", (name, number))
        texts = db.execute("SELECT rowid FROM NVTX_EVENTS WHERE text IS NOT NULL").fetchall()
        for place, (row,) in enumerate(texts):
            name = HOSTILE[place % len(HOSTILE)]
            db.execute("UPDATE NVTX_EVENTS SET text = ? WHERE rowid = ?", (name, row))
        for name in ("PROCESS_0:ENVIRONMENT_VARIABLE", "DeviceEnvironment"):
            value = f"TOKEN={SECRET};USER={SECRET};PATH=/home/{SECRET}"
            db.execute("INSERT INTO META_DATA_CAPTURE (name, value) VALUES (?, ?)", (name, value))
    return path
