"""--nvtx: every command narrowed, its sums those of a filter that looks at every pair in SQL."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nsightpy.analysis.intervals import union
from nsightpy.analysis.nvtx.membership import (
    RangeName,
    belongs,
    call_keys,
    inside,
    named,
)
from tests.support.nvtx_programs import PROGRAMS, Case
from tests.support.reports import NSYS, ROOT, ask, needs_reports, refused, rows_of, select, tables

SAMPLE = ROOT / "sample_reports" / "training_4rank" / "train_rank1.sqlite"
TRAIN = NSYS / "train_nvtx_a100_2026.3.sqlite"
DDP = NSYS / "ddp_2rank_nccl_rtx3090_2026.3.sqlite"
CASES = [
    pytest.param(SAMPLE, "forward", "forward", "", id="simulated"),
    pytest.param(SAMPLE, "nccl*@NCCL", "nccl%", "NCCL", id="simulated wildcard"),
    pytest.param(TRAIN, "optimizer step", "optimizer step", "", marks=needs_reports, id="train"),
    pytest.param(TRAIN, "aten::bmm", "aten::bmm, %", "", marks=needs_reports, id="folded"),
    pytest.param(
        DDP, "transformer block*", "transformer block%", "", marks=needs_reports, id="ddp"
    ),
]
# The launch call lies inside a range of that name, on the same thread.
INSIDE = """
    EXISTS (SELECT 1 FROM wanted n
      WHERE n.globalTid = r.globalTid AND n.start <= r.start AND n.end >= r.end)
"""
WANTED = """
    WITH wanted AS MATERIALIZED (SELECT n.start, n.end, n.globalTid
      FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId
      WHERE n.eventType = 59 AND COALESCE(n.text, s.value) LIKE '{like}')
"""
LAUNCHED = """
    FROM {table} k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId
      AND (r.globalTid & -16777216) = k.globalPid
    WHERE r.eventClass IN (0, 1) AND {inside}
"""


ALL_WORK = "({})".format(
    " UNION ALL ".join(
        f"SELECT start, end, correlationId FROM CUPTI_ACTIVITY_KIND_{kind}"
        for kind in ("KERNEL", "MEMCPY", "MEMSET")
    )
)


def launched_sum(path: Path, table: str, like: str) -> tuple[int, int]:
    """Number and total ns of a table's operations inside the ranges, by SQL."""
    sql = "SELECT COUNT(*), COALESCE(SUM(k.end - k.start), 0)" + LAUNCHED
    ((count, total),) = select(
        path, WANTED.format(like=like) + sql.format(table=table, inside=INSIDE)
    )
    return count, total


def asked(path: Path, command: str, name: str, count: str) -> tuple[int, int]:
    found = rows_of(command, path, "--nvtx", name)
    return sum(row[count] for row in found), sum(row["Total Time (ns)"] for row in found)


@pytest.mark.parametrize(("path", "name", "like", "domain"), CASES)
def test_every_command_is_about_what_lies_or_was_launched_inside(
    path: Path, name: str, like: str, domain: str
) -> None:
    """Of ranges the range itself is one: it owns all that is left, and no range has more."""

    def count(select_from: str) -> tuple[int, int]:
        sql = "SELECT COUNT(*), COALESCE(SUM(r.end - r.start), 0) FROM "
        return select(path, WANTED.format(like=like) + sql + select_from + INSIDE)[0]

    kernels = launched_sum(path, "CUPTI_ACTIVITY_KIND_KERNEL", like)
    assert asked(path, "kernels", name, "Instances") == kernels
    assert sum(row["count"] for row in rows_of("launches", path, "--nvtx", name)) == kernels[0]
    copies = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("MEMCPY", "MEMSET")]
    parts = [launched_sum(path, table, like) for table in copies if table in tables(path)]
    assert asked(path, "memory", name, "Count") == tuple(map(sum, zip(*parts, strict=True)))
    calls = count("CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.eventClass IN (0, 1, 13) AND ")
    assert asked(path, "api", name, "Num Calls") == calls
    found = rows_of("nvtx", path, "--nvtx", name)
    assert max(row["share_of_busy"] or 0 for row in found if row["domain"] == domain) <= 1.0
    on_thread = "r.globalTid = COALESCE(r.endGlobalTid, r.globalTid) AND "
    ranges = count(f"NVTX_EVENTS r WHERE r.eventType IN (59, 60) AND {on_thread}")
    assert sum(row["instances"] for row in found) == ranges[0]


def test_a_domain_tells_ranges_of_one_name_apart() -> None:
    assert rows_of("kernels", SAMPLE, "--nvtx", "ncclAllReduce@NCCL")
    assert "has no range" in refused("kernels", SAMPLE, "--nvtx", "ncclAllReduce@forward")


def test_nothing_found_names_close_ranges_and_is_no_traceback() -> None:
    for command, reports in (("kernels", SAMPLE), ("nvtx", SAMPLE.parent), ("summarize", SAMPLE)):
        refusal = refused(command, reports, "--nvtx", "forwards")
        assert "has no range 'forwards'" in refusal
        assert "similar ones: forward" in refusal


def test_budgets_cover_the_projected_intervals_with_all_that_ran_in_them() -> None:
    """The window is what `nvtx` projects; its instances do not overlap on this device."""
    (whole,) = rows_of("breakdown", SAMPLE, "--nvtx", "forward")
    (own,) = [row for row in rows_of("nvtx", SAMPLE) if row["range"] == "forward"]
    assert whole["window_ns"] == own["total_projected_ns"]
    assert whole["busy_ns"] + whole["idle_ns"] == whole["window_ns"]
    moments = select(SAMPLE, f"SELECT start, end FROM {ALL_WORK}")
    windows = select(
        SAMPLE,
        "SELECT MIN(k.start), MAX(k.end) FROM NVTX_EVENTS n JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON "
        "r.start >= n.start AND r.end <= n.end AND r.globalTid = n.globalTid "
        f"JOIN {ALL_WORK} k ON k.correlationId = r.correlationId "
        "WHERE n.text = 'forward' GROUP BY n.start",
    )
    done = union(*np.asarray(moments, dtype=np.int64).T)
    busy = (done & union(*np.asarray(windows, dtype=np.int64).T)).total
    assert whole["busy_ns"] == busy


@needs_reports
def test_a_capture_without_ranges_says_how_to_record_them() -> None:
    answer = ask("kernels", NSYS / "gpt2.7b_a100_2024.6.sqlite", "--nvtx", "step", expect=1)
    assert "`nsys profile -t cuda,nvtx` records them" in answer.stderr


@given(PROGRAMS, st.sampled_from("abcs*"))
def test_membership_is_that_of_the_definition(case: Case, name: str) -> None:
    ranges, operations, calls = case.frames()
    on_thread = ranges.ints("tid") == ranges.ints("end_tid")
    ranges = ranges.take(on_thread & RangeName(name).matches(ranges))
    chosen = [r for r in case.ranges if r[3] == r[4] and name in (r[5], "*")]
    held = [
        any(r[2:4] == c[2:4] and r[0] <= c[0] and c[1] <= r[1] for r in chosen) for c in case.calls
    ]
    assert inside(calls, ranges).tolist() == held
    keys = {(c[2], c[4]) for c, here in zip(case.calls, held, strict=True) if here}
    mask = belongs(operations, call_keys(calls, ranges))
    assert mask.tolist() == [(op[2], op[4]) in keys for op in case.operations]


def test_the_whole_text_is_a_name_before_it_is_a_name_and_a_domain() -> None:
    names = ("a@b", ""), ("a", "b"), ("c", "b")
    ranges = Case([(0, 9, 1, 1, 1, *one, "PushPop") for one in names]).frames()[0]
    assert named("a@b", ranges) == RangeName("a@b")
    assert named("c@b", ranges) == RangeName("c", "b")
    assert named("c@x", ranges) is None
    assert named("*@b", ranges) == RangeName("*@b")
