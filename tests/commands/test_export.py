"""export: the folder holds what the frames hold, on one clock, and nothing half-written."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from simulator import Export

import nsightpy
from nsightpy.commands import export as export_module
from nsightpy.errors import OutputError
from nsightpy.frames import SCHEMAS
from nsightpy.reports import system
from tests.support.reports import NSYS, ROOT, ask, needs_reports, refused

TRAINING = ROOT / "sample_reports" / "training_4rank"


def read(folder: Path, name: str) -> pd.DataFrame:
    parts = [pq.read_table(file).to_pandas() for file in sorted((folder / name).iterdir())]
    return pd.concat([part.astype({"name": str}) for part in parts], ignore_index=True)


@pytest.mark.parametrize("name", ["kernels", "api_calls", "nvtx_ranges"])
def test_parquet_holds_the_aligned_frames(tmp_path: Path, name: str) -> None:
    table = nsightpy.export(TRAINING, output=tmp_path / "out")
    own, frame = read(tmp_path / "out", name), nsightpy.open(TRAINING).events(name)
    assert [*own, "duration_ns", "iteration"] == list(frame)
    assert own["rank"].tolist() == frame["rank"].tolist()
    assert own["start_ns"].tolist() == frame["start_ns"].tolist()
    assert own["name"].tolist() == frame["name"].astype(str).tolist()
    assert sum(row[1] for row in table.rows if row[0] == name) == len(frame)


@pytest.mark.parametrize(
    "report",
    [
        TRAINING / "train_rank0.sqlite",
        *(
            pytest.param(NSYS / f"{name}.sqlite", marks=needs_reports, id=name)
            for name in ("solver_rtx3090_2025.5", "mordred_rtx6000_2021", "exgpu_a100_2021")
        ),
    ],
    ids=lambda path: path.stem,
)
def test_large_frames_are_written_stretch_by_stretch_and_are_the_same(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, rows in (("whole", 10**9), ("parts", 0)):
        monkeypatch.setattr(system, "LARGE_ROWS", rows)
        monkeypatch.setattr(system, "PART_ROWS", 700)
        nsightpy.export(report, output=tmp_path / folder)
    for name in SCHEMAS:
        files = [list((tmp_path / folder / name).glob("*")) for folder in ("whole", "parts")]
        assert len(files[0]) == len(files[1])
        tables = [pq.read_table(*own).to_pandas().astype(object) for own in files if own]
        assert not tables or tables[0].equals(tables[1])


def test_schema_and_readme_name_every_column(tmp_path: Path) -> None:
    ask("export", TRAINING, "-o", tmp_path, "--format", "csv", "-q")
    schema = json.loads((tmp_path / "schema.json").read_text())
    readme = (tmp_path / "README.md").read_text()
    assert schema["schema"] == "nsightpy.export/1"
    files = {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*.csv")}
    assert set(schema["files"]) == files
    for file in files:
        header = (tmp_path / file).read_text().splitlines()[0].split(",")
        frame = file.split("/")[0]
        named = [column["name"] for column in schema["frames"][frame]["columns"]]
        assert sorted(header) == sorted(named)
        assert f"## {frame}" in readme


def test_only_an_earlier_export_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "--force" in refused("export", TRAINING, "-o", tmp_path)
    ask("export", TRAINING, "-o", tmp_path, "--force", "-q")
    ask("export", TRAINING, "-o", tmp_path, "--force", "-q", "--rank", "1")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert len(list((tmp_path / "kernels").iterdir())) == 1


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export_module, "write_frames", full)
    with pytest.raises(OutputError, match="No space left"):
        nsightpy.export(TRAINING, output=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_parts_say_what_the_whole_says_of_rows_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows out of order, and some without an end, in many small parts."""
    made = Export(tmp_path / "bad.sqlite")
    made.gpu()
    made.cuda_device()
    for step in range(400):
        at = 1_000 + 100 * (step ^ 0x55)
        made.kernel(at, at + 60, f"k{step % 7}", launch=(at - 30, at - 20))
        made.nvtx_push_pop(at - 40, at - 5, f"range {step}")
    path = made.write()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = start - 1 WHERE rowid % 50 = 3'
        )
        connection.execute('UPDATE NVTX_EVENTS SET "end" = NULL WHERE rowid % 100 = 3')
        connection.execute(
            "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = -4611686018427387904 WHERE rowid = 77"
        )
    answers = []
    monkeypatch.setattr(system, "PART_ROWS", 30)
    for rows in (10**9, 0):
        monkeypatch.setattr(system, "LARGE_ROWS", rows)
        table = nsightpy.export(path, output=tmp_path / str(rows), file_format="csv")
        files = [(row[:3], (tmp_path / str(rows) / str(row[2])).read_text()) for row in table.rows]
        answers.append((files, sorted(table.notes)))
    assert answers[0] == answers[1]
    assert any(note.endswith("8 rows of CUPTI_ACTIVITY_KIND_KERNEL have an end before their start "
                             "and are left out.") for note in answers[0][1])  # fmt: skip
