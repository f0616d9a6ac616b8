"""Every event: traces of nsys stats and folders of export; order, scope, memory that is bounded."""

import json
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
from tests.support.full_export import changed, full
from tests.support.reports import NSYS, ask, needs_reports, refused
from tests.support.samples import TRAINING
from tests.support.trace_events import event, written

GPU_TRACE = "cuda_gpu_trace"
LISTINGS = (
    *(GPU_TRACE, "cuda_api_trace", "nvtx_gpu_proj_trace", "cuda_kern_exec_trace"),
    "nvtx_pushpop_trace",
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full(tmp_path_factory.mktemp("trace") / "full.sqlite").write()


def test_parts_of_any_size_give_the_same_rows(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [tuple(nsightpy.stats(small, report=name).rows) for name in LISTINGS]
    monkeypatch.setattr(system, "PART_ROWS", 3)
    assert [tuple(nsightpy.stats(small, report=name).rows) for name in LISTINGS] == whole
    assert all(whole)


def test_several_reports_are_one_list_on_one_clock() -> None:
    table = nsightpy.stats(TRAINING, report=GPU_TRACE)
    starts = [row[0] for row in table.rows]
    assert table.columns[-2:] == ("rank", "report")
    assert starts == sorted(starts)
    assert {row[-2] for row in table.rows} == {0, 1, 2, 3}
    aligned = nsightpy.open(TRAINING).events("kernels")["start_ns"]
    assert set(aligned) <= set(starts)


def test_scope_chooses_rows(small: Path) -> None:
    every = nsightpy.stats(small, report=GPU_TRACE).rows
    part = nsightpy.stats(small, report=GPU_TRACE, from_time=5_000, to_time=9_550).rows
    assert 0 < len(part) < len(every)
    assert list(part) == [r for r in every if r[0] < 9_550 and r[0] + r[1] > 5_000]
    assert list(nsightpy.stats(small, report=GPU_TRACE, top=3).rows) == list(every[:3])


def test_figures_are_written_as_nsys_2026_writes_them(tmp_path: Path) -> None:
    """Lengths and rates of copies of 4 MiB that a public output of nsys 2026.3.1 holds."""
    export = Export(tmp_path / "copies.sqlite")
    for start, length in enumerate((661_398, 660_534, 500_528)):
        export.memcpy(start, start + length, 4_194_304, "HtoD", launch=(-9, -8))
    rates = nsightpy.stats(export.write(), report=GPU_TRACE).column("Throughput (MB/s)")
    assert [round(float(rate or 0), 3) for rate in rates] == [6337.593, 6345.982, 8376.025]


def test_push_pop_ranges_hold_what_is_inside_them(tmp_path: Path) -> None:
    """Ids, stacks and trees as a public output of nsys 2026.3.1 has them."""
    export = Export(tmp_path / "ranges.sqlite")
    process = export.process(53)
    export.nvtx_push_pop(100, 400, "warmup", process=process)
    export.nvtx_push_pop(500, 1_000, "call", process=process)
    export.nvtx_push_pop(510, 700, "copy_in", process=process)
    export.nvtx_push_pop(710, 800, "kernel", process=process)
    export.nvtx_start_end(1_100, 1_200, "not listed", process=process)
    export.write()
    header, *rows = ask("stats", "-r", "nvtx_pushpop_trace", export.path, "--format", "csv").csv
    assert ",".join(header) == (
        "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl,"
        "NumChild,RangeId,ParentId,RangeStack,NameTree"
    )
    tid = rows[0][7]
    assert [",".join(row) for row in rows] == [
        f"100,400,300,0,300,:warmup,53,{tid},0,0,1,,:1,:warmup",
        f"500,1000,500,280,220,:call,53,{tid},0,2,2,,:2,:call",
        f"510,700,190,0,190,:copy_in,53,{tid},1,0,3,2,:2:3,'--:copy_in",
        f"710,800,90,0,90,:kernel,53,{tid},1,0,4,2,:2:4,'--:kernel",
    ]


def test_kernels_without_a_known_launch_are_no_empty_capture(tmp_path: Path) -> None:
    whole = full(tmp_path / "full.sqlite").write()
    lost = ["UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = 0"]
    path = changed(whole, tmp_path / "a.sqlite", lost)
    for name in ("cuda_kern_exec_trace", "cuda_kern_exec_sum"):
        notes = ask("stats", "-r", name, path, "--format", "json").json["notes"]
        assert "12 kernels have no recorded launch call: they are left out." in notes
        assert not any("capture holds" in note for note in notes)


def test_an_id_that_a_trace_lacks_is_empty(tmp_path: Path) -> None:
    calls = [event("cuda_runtime", "cudaLaunchKernel", 0, 5, correlation=4)]
    calls += [event("cuda_driver", "cuLaunchKernel", 9, 5)]
    kernels = [event("kernel", "gemm", 20, 5, device=0, stream=7, correlation=4)]
    kernels += [event("kernel", "gemm", 30, 5, device=0, stream=7)]
    path = written([*calls, *kernels], tmp_path)
    assert nsightpy.stats(path, report="cuda_api_trace").column("CorrID") == [4, None]
    trace = nsightpy.stats(path, report=GPU_TRACE)
    assert [trace.column(name) for name in ("CorrId", "Reg/Trd")] == [[4, None], [None, None]]


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
