"""Where the real reports are, and the command line run in this process with all it says.

The reports stay where they are: NSIGHTPY_REPORTS, else ../shared/reports beside the repository.
"""

import contextlib
import csv
import hashlib
import io
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import nsightpy
from nsightpy.cli.main import run

ROOT = Path(__file__).resolve().parent.parent.parent
REPORTS = Path(os.environ.get("NSIGHTPY_REPORTS") or ROOT.parent / "shared" / "reports")
NSYS = REPORTS / "nsys"
DDP = "ddp_2rank_nccl_rtx3090_2026.3.sqlite"

needs_reports = pytest.mark.skipif(not NSYS.is_dir(), reason="the real reports are not here")
exports = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.slow)
        for path in sorted(NSYS.glob("*.sqlite"))
    ]
    or [pytest.param(None, marks=needs_reports, id="none")],
)

COMMANDS = ("summarize", "info", "kernels", "api", "memory", "launches", "breakdown")
SPLITS = ("rank", "device", "process", "stream", "grid", "block")
REQUESTS = (
    *((command,) for command in COMMANDS),
    *(("kernels", "--by", split) for split in (*SPLITS, ",".join(SPLITS))),
    *((name, "--name", style) for name in ("kernels", "launches") for style in ("base", "mangled")),
)
# What every json answer holds.
ENVELOPE = [
    *("schema", "tool_version", "inputs", "rows", "notes", "total_rows", "truncated"),
    *("abstentions", "untrusted"),
]


@dataclass(frozen=True)
class Answer:
    """What one run of the command line left behind."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode()

    @property
    def json(self) -> dict[str, Any]:
        document = json.loads(self.stdout)
        assert isinstance(document, dict)
        return document

    @property
    def csv(self) -> list[list[str]]:
        return list(csv.reader(io.StringIO(self.text)))

    @property
    def everything(self) -> bytes:
        return self.stdout + self.stderr.encode()


def ask(*arguments: str | Path, expect: int | None = 0) -> Answer:
    """Run `nsightpy ARGUMENTS` in this process; an exception that gets out is a bug."""
    raw, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    answer = Answer(code, raw.getvalue(), err.getvalue())
    assert expect is None or code == expect, answer.stderr
    return answer


def rows_of(*request: str | Path) -> list[dict[str, Any]]:
    """The rows that a request answers, from its json."""
    rows: list[dict[str, Any]] = ask(*request, "--format", "json").json["rows"]
    return rows


def findings_of(reports: str | Path | Sequence[Path], **options: Any) -> dict[str, dict[str, Any]]:
    """The findings about some reports, by id, in their order."""
    return {str(row["id"]): row for row in nsightpy.findings(reports, **options).records()}


def refused(*arguments: str | Path, code: int = 1) -> str:
    """The one message of a request that is refused, after the program's name."""
    answer = ask(*arguments, expect=code)
    assert answer.stdout == b""
    assert "Traceback" not in answer.stderr
    assert answer.stderr.endswith("\n")
    first, *rest = answer.stderr.splitlines()
    if "json" in arguments:
        assert json.loads(rest.pop())["schema"] == "nsightpy.error/1"
    if code == 1:
        assert first.startswith("nsightpy: ")
        assert len(rest) <= 1
        assert not rest or rest[0].startswith("  "), "advice is indented below the message"
    return answer.stderr


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A report under plain sqlite3, read-only, any bytes as text."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        yield connection


def select(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """All rows of a query on a report."""
    with opened(path) as connection:
        return connection.execute(sql).fetchall()


def tables(path: Path) -> set[str]:
    """The names of a report's tables and views."""
    return {name for (name,) in select(path, "SELECT name FROM sqlite_master")}


def state(path: Path) -> tuple[str, list[tuple[str, int, int]]]:
    """A file's digest, and the name, size and time of change of all that lies beside it."""
    beside = [
        (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns)
        for entry in sorted(path.parent.iterdir())
    ]
    return hashlib.sha256(path.read_bytes()).hexdigest(), beside
