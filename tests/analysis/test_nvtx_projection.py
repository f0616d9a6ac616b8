"""Nesting, projection and attribution of NVTX ranges against a model that looks at every pair."""

from dataclasses import replace

import pytest
from hypothesis import given

from nsightpy.analysis.nvtx.membership import NO_THREAD, as_launched_by, waiting_threads
from nsightpy.analysis.nvtx.nesting import ROOT, SEPARATOR, nest, paths
from nsightpy.analysis.nvtx.projection import (
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    launched,
    project,
)
from nsightpy.analysis.nvtx.ranges import folded, numberless, plain_name, range_tallies
from nsightpy.frames import Frame, Labels
from nsightpy.reports.profiles import NsysReport
from tests.support.frames import frame
from tests.support.nvtx_programs import PROGRAMS, Case, Operation, Range
from tests.support.reports import NSYS, needs_reports


def members(case: Case, one: Range) -> list[Operation]:
    """The operations whose launch call lies inside a range, by looking at every pair."""
    start, end, pid, tid, end_tid, *_ = one
    if tid != end_tid:
        return []
    inside = {
        call[4]
        for call in case.calls
        if call[2] == pid and call[3] == tid and start <= call[0] and call[1] <= end
    }
    return [op for op in case.operations if op[2] == pid and op[4] in inside]


def busy(operations: list[Operation]) -> int:
    moments = {(op[2], op[3], at) for op in operations for at in range(op[0], op[1])}
    return len(moments)


@given(PROGRAMS)
def test_projection_is_that_of_the_definition(case: Case) -> None:
    ranges, operations, calls = case.frames()
    found = project(ranges, launched(operations, calls))
    for row, one in enumerate(case.ranges):
        own = members(case, one)
        assert found.operations[row] == len(own)
        span = (min(op[0] for op in own), max(op[1] for op in own)) if own else (0, 0)
        assert (found.start[row], found.end[row]) == span


@given(PROGRAMS)
def test_groups_of_ranges_add_up_as_the_definition_says(case: Case) -> None:
    ranges, operations, calls = case.frames()
    done = launched(operations, calls)
    found = range_tallies(ranges, operations, done, project(ranges, done))
    projected = found.projected.statistics()
    whole = dict(zip(projected.keys, projected.total.tolist(), strict=True))
    assert found.whole_busy_ns == busy(case.operations)
    for key in {one[5:] for one in case.ranges}:
        instances = [members(case, one) for one in case.ranges if one[5:] == key]
        assert found.work[key][0] == sum(map(len, instances))
        assert found.work[key][3] == busy([op for mine in instances for op in mine])
        lengths = [max(o[1] for o in m) - min(o[0] for o in m) for m in instances if m]
        assert whole.get(key, 0) == sum(lengths)


@given(PROGRAMS)
def test_nesting_is_the_stack_of_the_program(case: Case) -> None:
    """Times of the program differ from push to push, so the innermost container is the parent."""
    case.ranges = [r for r in case.ranges if r[7] == "StartEnd" or r[1] > r[0]]
    found = nest(case.frames()[0])
    for row, one in enumerate(case.ranges):
        around = [
            place
            for place, other in enumerate(case.ranges)
            if one[7] == other[7] == "PushPop" and other[2:4] == one[2:4] and other[6] == one[6]
            if other[0] <= one[0] and other[1] >= one[1] and place != row
            if other[:2] != one[:2] or place < row
        ]
        parent = int(found.parent[row])
        assert found.level[row] == len(around)
        assert (parent in around) if around else parent == ROOT
        if around:
            assert max(case.ranges[place][0] for place in around) == case.ranges[parent][0]


@pytest.mark.parametrize(
    ("spans", "parents", "levels"),
    [
        # ranges that overlap without containing each other have the innermost around them
        ([(0, 10), (5, 15), (6, 9), (12, 14), (20, 30)], [-1, -1, 1, 1, -1], [0, 0, 1, 1, 0]),
        # an empty range is inside what is open and beside what has ended
        ([(0, 10), (4, 4), (10, 20), (10, 10)], [-1, 0, -1, 2], [0, 1, 0, 1]),
    ],
)
def test_nesting_of_ranges_that_touch_or_cross(
    spans: list[tuple[int, int]], parents: list[int], levels: list[int]
) -> None:
    case = Case(ranges=[(a, b, 1, 1, 1, "x", "", "PushPop") for a, b in spans])
    found = nest(case.frames()[0])
    assert (found.parent.tolist(), found.level.tolist()) == (parents, levels)


def test_paths_join_the_names_from_the_root() -> None:
    spans = [(0, 10, "a"), (1, 5, "b/c"), (6, 9, "b/c"), (7, 8, "a")]
    case = Case(ranges=[(a, b, 1, 1, 1, n, "", "PushPop") for a, b, n in spans])
    ranges = case.frames()[0]
    found = paths(ranges.labels("name"), nest(ranges))
    texts = [found[row].split(SEPARATOR) for row in range(4)]
    assert texts == [["a"], ["a", "b/c"], ["a", "b/c"], ["a", "b/c", "a"]]
    assert found.codes[1] == found.codes[2]


PLAIN = {
    "aten::mm, op_id = 12": "aten::mm",
    "aten::mm, seq = 7": "aten::mm",
    "AllToAll4D, seq = 46286, op_id = 994184": "AllToAll4D",
    "a::copy_, seq = 1, op_id = 2, sizes = [[7], []], input_op_ids = [(16,0)]": "a::copy_",
    "aten::relu, stashed seq=4": "aten::relu",
    **{name: name for name in ("load, then seq", "sizes = [3]", "step 3, lr = 0.1", "")},
}
NUMBERLESS = {
    "layer 3": "layer *",
    "FSDP::pre_forward (model.layers.11.mlp)": "FSDP::pre_forward (model.layers.*.mlp)",
    "all_reduce grad [1024, 4096]": "all_reduce grad [*]",
    "copy (8,)": "copy (*,)",
    "ProfilerStep#552": "ProfilerStep#*",
    **{name: name for name in ("aten::conv2d", "fp16 gemm", "MmBackward0")},
}


def test_what_frameworks_append_and_numbers_are_folded_away() -> None:
    assert {name: plain_name(name) for name in PLAIN} == PLAIN
    assert {name: numberless(name) for name in NUMBERLESS} == NUMBERLESS
    names = folded(Labels.of(["a, seq = 1", "b", "a, seq = 2"]))
    assert (names.values, names.codes.tolist()) == (("a", "b"), [0, 1, 0])


@given(PROGRAMS)
def test_folded_ranges_are_what_tallies_of_renamed_ranges_are(case: Case) -> None:
    ranges, operations, calls = case.frames()
    done, names = launched(operations, calls), ranges.labels("name")
    found = []
    layers = [name for name in names.values[1::2] if (names.equals([name])).any()]
    alike = "*" if len(layers) > 1 else "{}"  # one name alone keeps its number
    for number in ("{}", alike):
        values = [
            f"layer {number.format(n)}" if n % 2 else "head" for n in range(len(names.values))
        ]
        renamed = Frame({**ranges, "name": Labels(names.codes, tuple(values))})
        tallies = range_tallies(
            renamed, operations, done, project(renamed, done), fold=number == "{}"
        )
        lengths = [each.statistics() for each in (tallies.ranges, tallies.projected)]
        told = [(s.keys, s.median.tolist(), s.total.tolist()) for s in lengths]
        found.append((tallies.work, told))
    assert found[0] == found[1]


MAIN, AUTOGRAD, WORKER = 1, 2, 3


def calls_of(*calls: tuple[int, int]) -> Frame:
    """Launching calls as (start, thread) of one process, in any order."""
    rows = [(start, start + 1, tid, n) for n, (start, tid) in enumerate(sorted(calls), 1)]
    return frame("start_ns end_ns tid correlation_id", rows, pid=7)


def ranges_of(*ranges: tuple[int, int, int, str]) -> Frame:
    """Push/pop ranges as (start, end, thread, name)."""
    rows = [(start, end, tid, tid, name) for start, end, tid, name in ranges]
    same = {"pid": 7, "domain": "", "style": "PushPop"}
    return frame("start_ns end_ns tid end_tid name", rows, **same)


STEP = ((0, 100, MAIN, "step"), (10, 40, MAIN, "forward"), (50, 90, MAIN, "backward"))


def test_a_backward_pass_belongs_to_the_range_that_waits_for_it() -> None:
    calls = calls_of((12, MAIN), (20, MAIN), (51, MAIN), *((at, AUTOGRAD) for at in (55, 60, 80)))
    waiting = waiting_threads(calls, ranges_of(*STEP))
    assert waiting.tolist() == [NO_THREAD] * 3 + [MAIN] * 3
    assert as_launched_by(calls, waiting).ints("tid").tolist() == [MAIN] * 3


@pytest.mark.parametrize(
    "calls",
    [
        # a thread that launches itself waits for nobody
        [(at, tid) for at in range(50, 90, 4) for at, tid in ((at, MAIN), (at + 2, WORKER))],
        [(120, WORKER), (130, WORKER)],  # outside of ranges
    ],
)
def test_launches_that_nobody_waits_for(calls: list[tuple[int, int]]) -> None:
    assert (waiting_threads(calls_of(*calls), ranges_of(*STEP)) == NO_THREAD).all()


def test_of_several_waiting_threads_the_last_range_counts() -> None:
    ranges = ranges_of((0, 100, MAIN, "serve"), (30, 60, WORKER, "request"))
    calls = calls_of((40, AUTOGRAD), (50, AUTOGRAD), (80, AUTOGRAD))
    assert waiting_threads(calls, ranges).tolist() == [WORKER, WORKER, MAIN]


@given(PROGRAMS)
def test_a_range_was_busy_with_what_any_thread_launched_for_it(case: Case) -> None:
    """The launches of other threads are as if the thread that waits for them had made them."""
    ranges, operations, calls = case.frames()
    waiting = waiting_threads(calls, ranges)
    by_others = zip(case.calls, waiting.tolist(), strict=True)
    others = replace(
        case, calls=[(*c[:3], tid, *c[4:]) for c, tid in by_others if tid != NO_THREAD]
    )
    done = launched(operations, calls)
    theirs = launched(operations, as_launched_by(calls, waiting))
    attributed = theirs, project(ranges, theirs)
    found = range_tallies(ranges, operations, done, project(ranges, done), attributed)
    for key, (_, _, attributed_ns, busy_ns) in found.work.items():
        named = [one for one in case.ranges if one[5:] == key]
        waited = [op for one in named for op in members(others, one)]
        assert attributed_ns == busy(waited)
        assert busy_ns == busy(waited + [op for one in named for op in members(case, one)])


@needs_reports
def test_the_backward_pass_of_real_captures() -> None:
    """The figures of reference/verdicts.json, worked out in SQL."""
    wanted = {"train_nvtx_a100_2026.3": 91_967_403, "ddp_2rank_nccl_rtx3090_2026.3": 93_185_374}
    for name, total in wanted.items():
        report = NsysReport(NSYS / f"{name}.sqlite")
        kernels = report.frame("kernels", OPERATION_COLUMNS)
        calls = report.calls.launching()
        ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
        backward = ranges.take(ranges.labels("name").equals(["backward pass"]))
        done = launched(kernels, as_launched_by(calls, waiting_threads(calls, backward)))
        lengths = kernels.ints("end_ns") - kernels.ints("start_ns")
        assert int(lengths[done.rows].sum()) == total
