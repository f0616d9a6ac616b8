"""Texts, times and ids that nobody should write, and that real exports hold nonetheless."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from simulator import Export

from nsightpy.reports.nsys import NsysReport
from tests.support.full_export import (
    ALLREDUCE,
    GENERATIONS,
    KERNELS,
    full,
)
from tests.support.reports import COMMANDS, FORMATS, SPLITS, ask, rows_of

EVERYTHING = (
    *((command,) for command in COMMANDS),
    ("kernels", "--by", ",".join(SPLITS)),
    ("kernels", "--name", "mangled"),
)
HOSTILE = "\x1b[31mred\x1b]0;title\x07<script>alert('1')</script>|`*_#\u202eright\r\nnext\x9b0m"
BYTES = b"bad\xff\xfe\x00after\x1b[0m\xc3"
# What no output may hold: control characters but line ends, and those that reorder text.
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

PLACES: dict[str, Callable[[Export, str | bytes], object]] = {
    "kernel": lambda e, text: e.kernel(1, 9_000, text, launch=(0, 1)),
    "short name": lambda e, text: e.kernel(1, 9_000, "k", short=text),
    "mangled name": lambda e, text: e.kernel(1, 9_000, "k", mangled=text),
    "api call": lambda e, text: e.api(1, 9_000, text),
    "launching call": lambda e, text: e.kernel(1, 9_000, "k", launch=(0, 1, 5, text)),
    "range": lambda e, text: e.nvtx_push_pop(1, 90_000, text),
    "registered range": lambda e, text: e.nvtx_push_pop(1, 90_000, text, registered=True),
    "domain": lambda e, text: e.nvtx_push_pop(1, 90_000, "r", domain=e.nvtx_domain(text)),
    "process": lambda e, text: e.kernel(1, 2, "k", process=e.process(300, text)),
    "thread": lambda e, text: e.thread_name(text),
    "mpi thread": lambda e, text: e.nvtx_thread_name(text),
    "diagnostic": lambda e, text: e.diagnostic(0, b"CUDA " + raw(text), 3),
    "gpu": lambda e, text: e.gpu(7, name=text, cuDevice=0),
    "capture": lambda e, text: e.add("META_DATA_CAPTURE", {"name": text, "value": text}),
}


def raw(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def everything(path: Path, formats: tuple[str, ...] = FORMATS) -> dict[tuple[str, ...], str]:
    """All that is said about an export; every request must be answered."""
    return {
        (*request, form): answer.text + answer.stderr
        for request in EVERYTHING
        for form in formats
        for answer in [ask(*request, path, "--format", form)]
    }


@pytest.mark.slow
@pytest.mark.parametrize("text", [HOSTILE, BYTES], ids=["text", "bytes"])
def test_texts_reach_no_output_raw(tmp_path: Path, text: str | bytes) -> None:
    export = full(tmp_path / "a.sqlite", hostname=None)
    for place, put in PLACES.items():
        put(export, place.encode() + raw(text))
    path = export.write()
    for request, said in everything(path).items():
        assert not RAW.search(said), request
        assert request[-1] != "markdown" or "<script>" not in said


@pytest.mark.parametrize("text", [HOSTILE, BYTES], ids=["text", "bytes"])
def test_json_and_frames_hold_the_very_text(tmp_path: Path, text: str | bytes) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 9, text)
    path = export.write()
    exact = raw(text).decode("utf-8", "replace")
    (row,) = rows_of("kernels", path)
    assert row["Name"] == exact
    assert NsysReport(path).kernels["name"].tolist() == [exact]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_spreadsheets_find_no_formula(tmp_path: Path, text: str) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 9, text)
    assert ask("kernels", export.write(), "--format", "csv").csv[1][-1] == f"'{text}"


# Times


def test_negative_times(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    early = -20_000_000_000
    for at in (early, early + 100, -50):
        export.kernel(at, at + 80, "k", launch=(at - 10, at - 5))
    export.nvtx_push_pop(early, 10, "range")
    path = export.write()
    everything(path, ("json",))
    (row,) = rows_of("breakdown", path)
    assert row["window_ns"] == 30 - early
    assert row["busy_ns"] == row["compute_ns"] == 240
    (row,) = rows_of("kernels", path, "--to", "-1s")
    assert row["Instances"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("value", [2**31, 2**62, -1, -(2**63)])
def test_huge_ids(tmp_path: Path, value: int) -> None:
    export = full(tmp_path / "a.sqlite")
    ids = ("deviceId", "streamId", "contextId", "correlationId", "gridX", "demangledName")
    for column in ids:
        export.kernel(1, 2, "k", launch=(0, 1), **{column: value})
    path = export.write()
    everything(path, ("json",))
    found = rows_of("kernels", path)
    assert sum(row["Instances"] for row in found) == KERNELS + len(ids)


@pytest.mark.parametrize("value", [-1, 2**62])
def test_unknown_kinds_are_named_by_their_number(tmp_path: Path, value: int) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.memcpy(1, 2, 3, kind=value)
    export.nvtx_push_pop(1, 2, "range", domain=abs(value))
    path = export.write()
    everything(path, ("json",))
    (row,) = rows_of("memory", path)
    assert str(value) in row["Operation"]


# NULL where 0 is meant


def test_null_is_zero_in_ids(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 2, "k", globalPid=None, correlationId=None, graphNodeId=None)
    (row,) = NsysReport(export.write()).kernels.to_dict("records")
    assert (row["pid"], row["correlation_id"], row["graph_node_id"]) == (0, 0, 0)


def test_what_ends_as_it_starts_is_counted_and_what_ends_before_is_not(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    for start, end in ((5, 5), (7, 6), (8, 9)):
        export.kernel(start, end, "k")
    assert NsysReport(export.write()).frame("kernels").ints("start_ns").tolist() == [5, 8]


# Ids that collide, names that are nowhere


def test_colliding_correlations(tmp_path: Path) -> None:
    path = full(tmp_path / "a.sqlite").write()
    found = rows_of("launches", path)
    assert sum(row["count"] for row in found) == KERNELS
    assert {row["rank"]: row["api_med_ns"] for row in found if row["name"] == ALLREDUCE} == {
        0: 10.0,
        1: 10.0,
    }


def test_two_ids_of_one_name_are_one_kernel(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 2, "k")
    export.kernel(3, 4, "k", demangledName=77)
    export.sql("INSERT INTO StringIds VALUES (77, 'k')")
    (row,) = rows_of("kernels", export.write())
    assert row["Instances"] == 2


# GPUs


def test_mig_slices_share_a_gpu(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.gpu(0, name="NVIDIA A30 MIG 2g.12gb", smCount=28)
    for place, pid in enumerate((100, 200)):
        process = export.process(pid)
        export.add(
            "TARGET_INFO_CUDA_DEVICE",
            {"gpuId": 0, "cudaId": 0, "pid": pid, "uuid": f"MIG-{place}", "numMultiprocessors": 14},
        )
        export.kernel(10, 20, "k", process=process, launch=(1, 2))
    path = export.write()
    everything(path, ("json",))
    (row,) = rows_of("info", path)
    assert (row["gpu"], row["devices"]) == ("2x NVIDIA A30 MIG 2g.12gb", 2)
    assert sorted(NsysReport(path).devices["uuid"]) == ["MIG-0", "MIG-1"]
    assert NsysReport(path).devices["sm_count"].tolist() == [14, 14]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_nothing_captured_at_all(tmp_path: Path, generation: str) -> None:
    path = Export(tmp_path / "a.sqlite", generation).write()
    for request, said in everything(path, ("table", "json")).items():
        assert "no GPU work" in said, request


@pytest.mark.slow
def test_a_gpu_but_no_kernels(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 2, "k")
    export.sql("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
    export.gpu()
    export.nvtx_push_pop(1, 2, "range")
    path = export.write()
    said = everything(path)
    assert "no kernels" in said["kernels", "table"]
    (row,) = rows_of("info", path)
    assert (row["kernels"], row["devices"]) == (0, 0)
