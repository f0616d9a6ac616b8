"""Several processes and one store: they import once, and none that is killed harms the others."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.reports import ROOT, ask
from tests.support.stored import keep_small, leftovers, odd_export, stores

pytestmark = pytest.mark.slow

SAMPLE = ROOT / "sample_reports" / "training_4rank" / "train_rank0.sqlite"
TRACE = ROOT / "sample_reports" / "torch_2rank" / "train_rank0.pt.trace.json.gz"

# Every import is written down; all begin when the line of the test comes.
TOGETHER = """
import hashlib, sys
from pathlib import Path
from nsightpy.reports import system
from nsightpy.store.store import Store
from tests.support.stored import everything

system.LEAST_BYTES = 0
read = Store._read

def counted(store, source, missing):
    with open(sys.argv[2], "a") as log:
        log.write("".join(f"{source.schema.name}.{column}\\n" for column in missing))
    return read(store, source, missing)

Store._read = counted
print("ready", flush=True)
input()
print(hashlib.sha256(repr(everything(Path(sys.argv[1]))).encode()).hexdigest())
"""

# Each copy dies at the next thing that it does to the cache; then the report is read to the end.
KILLED = """
import os, signal, sys
from pathlib import Path
from nsightpy.reports import system
from tests.support.stored import everything, leftovers

system.LEAST_BYTES = 0
report, cache = Path(sys.argv[1]), os.environ["NSIGHTPY_CACHE_DIR"]
print(repr(everything(report, use_cache=False)), flush=True)

def in_copy(work):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    work()
    os._exit(0)

def killed_at(number):
    seen = 0
    def watch(event, arguments):
        nonlocal seen
        if any(isinstance(each, (str, bytes)) and cache in os.fsdecode(each) for each in arguments):
            seen += 1
            if seen > number:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(watch)
    everything(report)

def to_the_end():
    print(repr(everything(report)))
    held = [file for path in leftovers() for file in (path, *path.rglob("*")) if file.is_file()]
    assert sum(file.stat().st_size for file in held) == 0
    sys.stdout.flush()

kills, number = 0, 0
while in_copy(lambda: killed_at(number)) == -signal.SIGKILL:
    kills += 1
    number += int(sys.argv[2])
    assert in_copy(to_the_end) == 0
    for path in Path(cache).rglob("*.columns/*"):
        path.unlink()
assert leftovers() == []
print(kills)
"""
# What a second question imports, and whether it opens the report with SQLite.
AGAIN = """
import sys
opened = []
sys.addaudithook(lambda event, arguments: opened.append(event) if event == "sqlite3.connect" else 0)
from nsightpy.cli.main import run
assert run(sys.argv[1:]) == 0
names = ("sqlalchemy", "adbc_driver_sqlite", "adbc_driver_manager", "pyarrow", "pandas")
print(sorted({"sqlite3.connect"} & set(opened)) + [name for name in names if name in sys.modules])
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_small(monkeypatch, tmp_path / "cache")
    here = os.pathsep.join(str(folder) for folder in (ROOT, ROOT / "scripts"))
    monkeypatch.setenv("PYTHONPATH", here)


def started(code: str, *arguments: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said_by(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate("\n", timeout=120)
    assert process.returncode == 0
    return out.splitlines()


@pytest.mark.parametrize("count, kind", [(4, "export"), (2, "trace")])
def test_who_begins_together_imports_once(tmp_path: Path, count: int, kind: str) -> None:
    report = odd_export(tmp_path / "a.sqlite") if kind == "export" else TRACE
    log = tmp_path / "log"
    processes = [started(TOGETHER, report, log) for _ in range(count)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert len({tuple(said_by(process)) for process in processes}) == 1
    imported = Counter(log.read_text().split())
    assert len(imported) > 40
    assert [name for name, times in imported.items() if times > 1] == []
    assert len(stores()) == 1
    assert leftovers() == []


@pytest.mark.parametrize("kind", ["export", "trace"])
def test_who_is_killed_leaves_nothing_wrong(tmp_path: Path, kind: str) -> None:
    report = odd_export(tmp_path / "a.sqlite") if kind == "export" else TRACE
    *answers, kills = said_by(started(KILLED, report, 71))
    assert int(kills) > 1
    assert len(answers) == int(kills) + 1
    assert len(set(answers)) == 1


def test_a_second_question_imports_nothing() -> None:
    *_, imported = said_by(started(AGAIN, "kernels", SAMPLE))
    assert "sqlite3.connect" in imported
    for command in ("kernels", "summarize", "findings"):
        first = ask(command, SAMPLE).text
        *second, imported = said_by(started(AGAIN, command, SAMPLE))
        assert (imported, "\n".join(second) + "\n") == ("[]", first)
