"""Keys of rows: one thing has one key in every command; equal numbers of reports stay apart."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import nsightpy
from nsightpy.commands.compare.command import compare
from nsightpy.names import canonical_name
from nsightpy.results import Field, Finding, Table, findings_table
from nsightpy.results.keys import RowKey, key_of, row_keys
from tests.support.reports import NSYS, ask, needs_reports, rows_of
from tests.support.samples import MEASURED, SINGLE, TRACES, TRAINING


def by_key(column: str, *request: str | Path) -> dict[str, str]:
    return {row["key"]: row[column] for row in rows_of(*request)}


@pytest.mark.slow
def test_one_thing_has_one_key_in_every_command() -> None:
    kernels = by_key("Name", "kernels", TRAINING)
    memory = by_key("Operation", "memory", TRAINING)
    calls = by_key("Name", "api", TRAINING)
    assert len(kernels) == len({canonical_name(name) for name in kernels.values()})
    for known, column, *request in (
        (kernels, "name", "launches", TRAINING),
        (kernels, "name", "ranks", TRAINING, "--by", "kernel"),
        (kernels, "name", "select", TRAINING),
        (kernels, "name", "headroom", TRAINING, "--ncu", MEASURED),
        (kernels, "Name", "kernels", TRAINING, "--by", "rank,grid"),
        (kernels, "Name", "kernels", TRAINING / "train_rank2.sqlite"),
        (kernels, "Kernel Name", "stats", TRAINING, "-r", "cuda_kern_exec_trace"),
        (kernels, "name", "instances", TRAINING, "--of", "*", "--bins", "9"),
        (kernels, "name", "instances", TRAINING, "--of", "*", "--kind", "kernel"),
        (kernels, "Kernel Name", "stats", TRAINING, "--report", "cuda_kern_exec_sum"),
        (calls, "api", "gaps", TRAINING, "--by", "call"),
        (calls, "Name", "stats", TRAINING, "-r", "cuda_api_trace"),
        (kernels | memory, "Name", "stats", TRAINING, "-r", "cuda_gpu_trace"),
    ):
        assert by_key(column, *request).items() <= known.items(), request
    assert by_key("kernel", "roofline", MEASURED).keys() <= kernels.keys()
    together = by_key("Operation", "stats", TRAINING, "--report", "cuda_api_gpu_sum")
    assert together == kernels | memory | calls
    ranges = {(row["range"], row["domain"]): row["key"] for row in rows_of("nvtx", TRAINING)}
    summary = ask("summarize", TRAINING, "--format", "json").json
    assert summary["nvtx"]
    for row in summary["nvtx"]:
        assert ranges[row["range"], row["domain"]] == row["key"]
    assert {row["key"] for row in summary["kernels"]} <= kernels.keys()
    assert "key" not in summary["collectives"][0]


def test_what_is_no_kernel_has_no_key_of_one() -> None:
    ranges = rows_of("instances", TRAINING, "--of", "*", "--bins", "9", "--kind", "range")
    assert "key" not in ranges[0]
    assert rows_of("instances", TRAINING, "--of", "AllReduce")[0]["key"] is None


def test_variants_are_told_apart_by_their_shape() -> None:
    selected = {row["variant_key"]: row for row in rows_of("select", TRAINING)}
    joined = {row["variant_key"]: row for row in rows_of("headroom", TRAINING, "--ncu", MEASURED)}
    measured = {row["variant_key"] for row in rows_of("roofline", MEASURED)}
    assert selected.keys() & joined.keys() & measured
    for key in selected.keys() & joined.keys():
        assert selected[key]["grid"] == joined[key]["grid"]
    assert all(key.startswith("variant-") for key in selected)


@needs_reports
def test_findings_have_the_key_of_the_kernel_that_they_name() -> None:
    report = NSYS / "gpt2.7b_a100_2024.6.sqlite"
    kernels = by_key("Name", "kernels", report)
    found = {row["id"]: row["key"] for row in rows_of("findings", report)}
    assert found["fp32-gemm"] in kernels
    assert found["dominating-kernel"] in kernels
    summary = ask("summarize", report, "--format", "json").json["findings"]
    assert {row["id"]: row["key"] for row in summary} == found


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("void k<(int)4>(float *, T1)", "void k<4>(float*, int)", True),
        ("void k<(bool)1, float>(T2 *)", "void k<true, float>(float*)", True),
        ("void k<4u, -2l>(int)", "void k<4, -2>(T1)", True),
        ("void (anonymous namespace)::k<float>(T1)", "void <unnamed>::k<float>(T1)", True),
        ("gemm(float *, const float *)", "gemm(float*, const float*)", True),
        ("ns::k<ns::f<int>, (int)8>(T1)", "ns::k<ns::f<int>,8>(T1)", True),
        ("k<4>(int)", "k<8>(int)", False),
        ("k(float*)", "k(double*)", False),
        ("a::k<float>(T1)", "b::k<float>(T1)", False),
        ("_Z1kPf", "_Z1kPd", False),
        ("k<true>()", "k<false>()", False),
        ("triton_poi_fused_0", "triton_poi_fused_1", False),
    ],
)
def test_the_styles_of_demanglers_agree(one: str, other: str, same: bool) -> None:
    assert (canonical_name(one) == canonical_name(other)) == same
    assert (key_of("kernel", one) == key_of("kernel", other)) == same


@given(st.text(), st.text())
def test_any_name_has_a_key(name: str, other: str) -> None:
    assert re.fullmatch(r"kernel-[0-9a-f]{16}|memory-[0-9a-f]{16}", key_of("kernel", name))
    assert (key_of("range", name) == key_of("range", other)) == (name == other)
    assert canonical_name(canonical_name(name)) == canonical_name(name) or "void " in name


def test_keys_are_kept() -> None:
    """Programs keep them: these must never change."""
    assert key_of("kernel", "void k<(int)4>(float *)") == "kernel-6f77c709c8c2cb5a"
    assert key_of("range", "forward", "") == "range-448246ee4bd0d0d2"
    assert key_of("api", "cudaLaunchKernel_v7000") == key_of("api", "cudaLaunchKernel")
    assert key_of("api", "cuMemAlloc_v2") != key_of("api", "cuMemAlloc")
    assert key_of("kernel", "[CUDA memset]") == key_of("memory", "[CUDA memset]")


def test_a_row_without_a_name_has_no_key() -> None:
    names = (("k",), (None,), ("",))
    table = Table("kernels", (Field("Name", "name"),), names, identity=row_keys("kernel", "Name"))
    assert [row["key"] for row in table.keyed()] == [key_of("kernel", "k"), None, None]
    fields = (Field("name", "name"), Field("section", "text"))
    table = Table("compare", fields, (("step", "step"), ("k", "kernel")), identity=compare.keys)
    assert [row.get("key") for row in table.keyed()] == [None, key_of("kernel", "k")]
    assert RowKey("range", ("range", "domain")).of({"range": None, "domain": "d"}) is None
    found = [Finding("a", "info", "x", about=("kernel", "k")), Finding("b", "info", "y")]
    assert [row["key"] for row in findings_table(found).keyed()] == [key_of("kernel", "k"), None]
    assert [row["key"] for row in findings_table(found).first(1).keyed()] == [key_of("kernel", "k")]


@pytest.mark.parametrize("command", ["kernels", "api", "memory", "operators"])
def test_top_counts_per_rank_where_rows_are_of_ranks(command: str) -> None:
    reports = TRACES if command == "operators" else TRAINING
    for by in ("rank", "rank,process" if reports == TRAINING else "thread,rank"):
        whole = ask(command, reports, "--by", by, "--top", "0", "--format", "json").json
        cut = ask(command, reports, "--by", by, "--top", "2", "--format", "json").json
        assert cut["total_rows"] == len(whole["rows"]) > len(cut["rows"])
        assert cut["truncated"]
        first: list[dict[str, Any]] = []
        for row in whole["rows"]:
            if [each["rank"] for each in first].count(row["rank"]) < 2:
                first.append(row)
        assert cut["rows"] == first
        assert len({row["rank"] for row in first}) > 1


def test_gaps_that_are_not_shown_are_counted() -> None:
    table = nsightpy.gaps(TRAINING)
    assert (len(table), table.truncated) == (20, True)
    assert table.total_rows > 20


def test_abstentions_are_notes_and_data() -> None:
    table = nsightpy.nvtx(SINGLE, metrics=True)
    said = table.abstentions[0]
    assert said["reason"] == "The capture holds no GPU metrics."
    assert "--gpu-metrics-devices=all" in said["what_would_help"]
    assert f"{said['reason']} {said['what_would_help']}" in table.notes
    of_trace = nsightpy.nvtx(TRACES, metrics=True).abstentions[0]
    assert of_trace["what_would_help"].startswith("PyTorch's profiler never does;")


@needs_reports
@pytest.mark.parametrize(
    ("command", "options", "report", "helps"),
    [
        ("kernels", {}, "no_kernels_a100_2026.2", "Profile with `-t cuda`"),
        ("nvtx", {}, "trixi_v100_2023.1", "`nsys profile -t cuda,nvtx`"),
        ("memory_usage", {}, "trixi_v100_2023.1", "--cuda-memory-usage=true"),
        ("collectives", {}, "trixi_v100_2023.1", "`nsys profile -t cuda,nvtx`"),
        ("ranks", {"by": "kernel"}, "trixi_v100_2023.1", "Give their reports"),
        ("breakdown", {}, "cudagraph_a100_2024.6", "--cuda-graph-trace=node"),
        ("iterations", {}, "trixi_v100_2023.1", "NVTX range around each step"),
    ],
)
def test_what_records_it(command: str, options: dict[str, Any], report: str, helps: str) -> None:
    table = getattr(nsightpy, command)(NSYS / f"{report}.sqlite", **options)
    assert any(helps in one["what_would_help"] for one in table.abstentions), table.notes


@needs_reports
def test_what_a_capture_would_have_shown_is_no_abstention() -> None:
    """It recorded the GPU's work, and there were no copies: nothing is missing."""
    table = nsightpy.memory(NSYS / "trixi_v100_2023.1.sqlite")
    assert (len(table), table.abstentions) == (0, ())


SPLITS = (
    *((command, split) for command in ("kernels", "memory") for split in ("device", "stream")),
    *((command, "process") for command in ("kernels", "memory", "api")),
    ("operators", "thread"),
    ("operators", "process"),
)


def copied(command: str, folder: Path) -> tuple[Path, Path]:
    """The same report twice under one name, as nodes write them that know nothing of each other."""
    report = sorted(TRACES.glob("*.json*"))[0] if command == "operators" else SINGLE
    for node in ("a", "b"):
        (folder / node).mkdir()
        shutil.copy(report, folder / node / f"run{''.join(report.suffixes)}")
    return report, folder / "*" / "run*"


@pytest.mark.parametrize(("command", "split"), SPLITS)
def test_equal_numbers_of_reports_stay_apart(command: str, split: str, tmp_path: Path) -> None:
    report, both = copied(command, tmp_path)
    alone = rows_of(command, report, "--by", split)
    of_both = rows_of(command, both, "--by", split)
    of_all = ("Time (%)", "process", "mfu", "device_self_share", "host_self_share")
    figures = [name for name in alone[0] if name not in of_all]
    assert len(of_both) == 2 * len(alone)
    for node in ("a/", "b/"):
        mine = [row for row in of_both if row["process"].startswith(node)]
        for shown, wanted in zip(mine, alone, strict=True):
            assert [shown[name] for name in figures] == [wanted[name] for name in figures]


def test_processes_of_one_report_are_named_by_their_number_alone() -> None:
    (process,) = {row["process"] for row in rows_of("api", SINGLE, "--by", "process")}
    assert process.isdigit()


def test_summaries_of_nsys_keep_processes_of_reports_apart(tmp_path: Path) -> None:
    report, both = copied("stats", tmp_path)
    alone = rows_of("stats", report, "-r", "cuda_kern_exec_sum")
    assert rows_of("stats", both, "-r", "cuda_kern_exec_sum") == [
        row for row in alone for _ in "ab"
    ]
