"""export: the folder holds what the frames hold, on one clock, and nothing half-written."""

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import nsightpy
from nsightpy.commands import export as export_module
from nsightpy.errors import OutputError
from nsightpy.frames import SCHEMAS
from nsightpy.reports import system
from tests.support.reports import NSYS, ask, needs_reports, refused
from tests.support.samples import TRAINING


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
    assert own["start_ns"].dtype == own["pid"].dtype == "int64"
    assert own["name"].tolist() == frame["name"].astype(str).tolist()
    assert sum(row[1] for row in table.rows if row[0] == name) == len(frame)


@pytest.mark.parametrize(
    "report",
    [
        TRAINING / "train_rank0.sqlite",
        pytest.param(NSYS / "mordred_rtx6000_2021.sqlite", marks=needs_reports),
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


def test_the_schema_names_every_column(tmp_path: Path) -> None:
    ask("export", TRAINING, "-o", tmp_path, "--format", "csv", "-q")
    schema = json.loads((tmp_path / "schema.json").read_text())
    assert schema["schema"] == "nsightpy.export/1"
    assert set(schema["files"]) == {str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*.csv")}
    for file in schema["files"]:
        header = (tmp_path / file).read_text().splitlines()[0].split(",")
        frame = file.split("/")[0]
        named = [column["name"] for column in schema["frames"][frame]["columns"]]
        assert sorted(header) == sorted(named)


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
