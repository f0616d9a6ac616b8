"""The graph against brute force: the program run again from scratch."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from nsightpy.analysis.work_graph import replay as edits
from nsightpy.analysis.work_graph.critical_path import chosen, critical_path, trust_of
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.job_work import job_work
from nsightpy.analysis.work_graph.launched_work import COMMUNICATION
from nsightpy.analysis.work_graph.replay import replay
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS
from nsightpy.frames import Frame, constant
from tests.support.twins import order_is_right, random_job, told_of
from tests.support.work_programs import Recorded, Step, meetings_of, part_of, random_programs, run

SEEDS = range(25)


def recorded(seed: int) -> tuple[list[list[Step]], list[Recorded], WorkGraph]:
    random = Random(seed)
    programs = random_programs(random, random.choice([1, 2, 3]), random.choice([5, 20, 40]))
    ranks = run(programs)
    return programs, ranks, graph_of(programs, ranks)


def graph_of(programs: list[list[Step]], ranks: list[Recorded]) -> WorkGraph:
    parts = [
        part_of(rank, program, f"rank{number}")
        for number, (rank, program) in enumerate(zip(ranks, programs, strict=True))
    ]
    mpi = meetings_of(ranks, [part.report for part in parts])
    work = job_work(parts, None, mpi)
    # the n-th collectives of all ranks are one
    instance = np.full(len(work), -1, dtype=np.int64)
    for unit in range(len(work.units)):
        rows = np.flatnonzero((work.unit == unit) & (work.kind == COMMUNICATION))
        instance[rows] = np.arange(len(rows))
    return WorkGraph.of(replace(work, instance=instance))


def alone(program: list[Step], *stretches: tuple[int, int]) -> WorkGraph:
    """The graph of one rank, whole or in stretches."""
    (rank,) = run([program])
    windows = stretches or (None,)
    parts = [
        part_of(rank, program, "rank0", window, block=block) for block, window in enumerate(windows)
    ]
    return WorkGraph.of(job_work(parts))


def finished(ranks: list[Recorded]) -> int:
    return max(rank.finished for rank in ranks)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_an_edit_the_record_comes_back(seed: int) -> None:
    _, ranks, graph = recorded(seed)
    same = replay(graph)
    np.testing.assert_array_equal(same.times, graph.recorded)
    assert same.gain_ns == 0
    assert graph.recorded.max() >= finished(ranks) - max(graph.lasting)


def halved(programs: list[list[Step]], *kinds: str) -> list[Recorded]:
    """The programs run again with these steps half as long."""
    return run(
        [
            [one._replace(length=one.length // 2) if one.kind in kinds else one for one in program]
            for program in programs
        ]
    )


def gain_of_transfers(graph: WorkGraph) -> int:
    """What twice as fast a network would gain, in ns."""
    transfers = np.flatnonzero(graph.work.kind == COMMUNICATION)
    return replay(graph, edits.operations(transfers, 0.5)).gain_ns


@pytest.mark.parametrize("kinds", [("launch",), ("collective",), ("launch", "collective")])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_is_what_running_again_gives(seed: int, kinds: tuple[str, ...]) -> None:
    programs, ranks, graph = recorded(seed)
    kind = np.where(graph.work.kind == COMMUNICATION, "collective", "launch")
    edit = edits.operations(np.flatnonzero(np.isin(kind, kinds)), 0.5)
    assert replay(graph, edit).gain_ns == finished(ranks) - finished(halved(programs, *kinds))


def without_gap(step: Step) -> Step:
    return step._replace(length=0) if step.kind == "gap" and step.length >= HOST_GAP_NS else step


@pytest.mark.parametrize("seed", SEEDS)
def test_without_long_gaps_calls_follow_each_other(seed: int) -> None:
    programs, ranks, graph = recorded(seed)
    again = run([list(map(without_gap, program)) for program in programs])
    # what is left of an edited gap is the time between two calls
    gaps = sum(step.kind == "gap" for program in programs for step in program)
    gain = replay(graph, edits.host_gaps(graph)).gain_ns
    assert gain == pytest.approx(finished(ranks) - finished(again), abs=500 * gaps)


PERIOD = [Step("gap", length=4_000_000), Step("launch", length=50_000), Step("launch", length=900)]


@pytest.mark.parametrize("offset", [0, 500_000, 2_000_000, 3_999_000, 4_010_000, 4_060_000])
def test_a_stretch_of_two_periods_holds_two_gaps_wherever_it_begins(offset: int) -> None:
    program = [*PERIOD, Step("sync")] * 6
    (rank,) = run([program])
    gaps = [one.start for one in rank.calls[::3]]
    length = gaps[3] - gaps[1]
    low = gaps[1] - 4_000_000 + offset
    graph = alone(program, (low, low + length))
    assert replay(graph).gain_ns == 0
    found = replay(graph, edits.host_gaps(graph))
    assert found.length_ns == length
    assert found.gain_ns == pytest.approx(8_000_000, abs=5_000)
    path = critical_path(graph)
    # to the begin of what follows on the stretch
    assert length <= path.length_ns <= length + 4_100_000
    assert path.totals["unexplained"] == 0


def waiting(stream: int, other: int, number: int) -> list[Step]:
    """A stream waits for what another one has so far."""
    return [Step("record", stream, number=number), Step("wait", other, number=number)]


def test_what_begins_when_a_collective_ends_waited_for_it() -> None:
    """To the nanosecond: so simulators write it, and traces that round their times."""
    meeting = [*waiting(7, 21, 1), Step("collective", 21, 200_000), *waiting(21, 7, 2)]
    programs = [
        [Step("launch", 7, length), *meeting, Step("launch", 7, 30_000)]
        for length in (50_000, 90_000)
    ]
    ranks = run(programs)
    graph = graph_of(programs, ranks)
    assert ranks[0].operations[2].start == ranks[0].operations[1].end
    assert gain_of_transfers(graph) == 100_000


@pytest.mark.parametrize("sync", ["cudaDeviceSynchronize", "cudaStreamSynchronize"])
def test_waits_that_nothing_recorded_are_no_gaps_of_streams(sync: str) -> None:
    """After each kernel a collective, as in tensor-parallel layers, on streams without events."""

    def program(length: int) -> list[Step]:
        meeting = [*waiting(7, 21, 1), Step("collective", 21, 60_000), *waiting(21, 7, 2)]
        layers = [Step("launch", 7, length), *meeting] * 4
        return [Step("launch", 13, 250_000), *layers, Step("sync", 21)] * 5

    def without_events(rank: Recorded) -> Recorded:
        calls = [call for call in rank.calls if "Event" not in call.name]
        renamed = [call._replace(name=sync) if "Sync" in call.name else call for call in calls]
        return Recorded(renamed, rank.operations)

    programs = [program(120_000), program(100_000)]
    ranks, alike = run(programs), run([program(100_000)] * 2)
    graph = graph_of(programs, list(map(without_events, ranks)))
    slow = np.flatnonzero((graph.work.unit == 0) & (graph.lasting == 120_000))
    gain = replay(graph, edits.operations(slow, 100 / 120)).gain_ns
    assert gain == pytest.approx(finished(ranks) - finished(alike), rel=0.02)
    quick = finished(ranks) - finished(halved(programs, "collective"))
    assert gain_of_transfers(graph) == pytest.approx(quick, rel=0.02)


def test_a_call_waits_for_what_its_stream_was_made_to_wait_for() -> None:
    """The stream of the call has nothing behind the wait, and no event was recorded."""
    part = [Step("launch", 7, 100_000), *waiting(7, 21, 1), Step("collective", 21, 300_000)]
    programs = [[*part, Step("sync", 21)] * 4] * 2
    ranks = run(programs)
    graph = graph_of([[*part, Step("sync", 7)] * 4] * 2, ranks)
    quick = finished(ranks) - finished(halved(programs, "collective"))
    assert gain_of_transfers(graph) == pytest.approx(quick, rel=0.02)


def test_kernels_whose_launches_are_on_their_way_did_not_wait_for_each_other() -> None:
    """Launched every 4.5 us before the one of 2 us ended, and 3 us of latency: no gap of queues."""
    queued = [Step("launch", length=90_000), Step("launch", length=30_000), Step("sync")]
    program = [*queued, Step("launch", length=10_000), Step("sync")]
    program += [Step("launch", length=2_000)] * 200
    graph = alone(program)
    gain = replay(graph, edits.launches(graph)).gain_ns
    # 1 us lies between two kernels of a queue
    assert gain == pytest.approx(200 * (4_500 - 2_000 - 1_000), rel=0.05)


def test_what_comes_before_all_gpu_work_is_no_gain_of_its_window() -> None:
    gap, launch = Step("gap", length=4_000_000), Step("launch", length=50_000)
    program = [Step("sync"), gap, launch, Step("sync"), gap, launch]
    found = replay(graph := alone(program), edits.host_gaps(graph))
    assert found.gain_ns == pytest.approx(4_000_000, abs=5_000)
    assert found.gain_share < 1


def test_stretches_of_one_report_are_replayed_side_by_side() -> None:
    program = [*PERIOD, Step("sync")] * 8
    (rank,) = run([program])
    gaps = [one.start - 4_000_000 for one in rank.calls[::3]]
    stretches = [(gaps[1], gaps[3]), (gaps[5], gaps[6])]
    found = replay(graph := alone(program, *stretches), edits.host_gaps(graph))
    assert found.gains.tolist() == pytest.approx([8_000_000, 4_000_000], abs=5_000)
    assert found.length_ns == sum(high - low for low, high in stretches)


@pytest.mark.parametrize("pid", [-1, 1 << 32, 1 << 62])
def test_a_process_may_have_any_number(pid: int) -> None:
    """Damaged traces have ids of 64 bits; each part has processes of its own."""
    program = [*PERIOD, Step("sync")] * 4
    (rank,) = run([program])
    parts = [part_of(rank, program, f"rank{number}") for number in range(2)]
    renamed = [
        part.each(lambda frame: Frame({**frame, "pid": constant(pid, frame.rows)}))
        for part in parts
    ]
    graph, other = WorkGraph.of(job_work(parts)), WorkGraph.of(job_work(renamed))
    assert job_work(renamed).units == (("rank0", pid, 0), ("rank1", pid, 0))
    np.testing.assert_array_equal(replay(other).times, replay(graph).times)
    gain, same = (replay(one, edits.host_gaps(one)).gain_ns for one in (graph, other))
    assert gain == same > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_critical_path_is_as_long_as_the_job(seed: int) -> None:
    _, _, graph = recorded(seed)
    path = critical_path(graph)
    begins = max(
        int(graph.work.start[graph.work.unit == unit].min())
        for unit in range(len(graph.work.units))
    )
    assert path.length_ns == graph.work.end.max() - begins
    assert trust_of(graph, path).reason in ("", "alone")
    assert (path.unit[path.times.any(axis=1)] >= 0).all()
    assert path.totals["unexplained"] == 0


@pytest.mark.parametrize(
    ("iterations", "operations", "stretches"),
    [
        (0, 10, []),
        (10, 10_000, [(0, 10)]),
        (100, 10_000, [(0, 2), (25, 27), (50, 52), (75, 77)]),
        (9, 150_000, [(0, 1)]),
        (5, 900_000, [(0, 1)]),
    ],
)
def test_steady_iterations_are_taken_evenly(
    iterations: int, operations: int, stretches: list[tuple[int, int]]
) -> None:
    assert chosen(iterations, operations) == stretches


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1012))
def test_gains_are_near_the_truth_of_simulated_jobs_and_in_its_order(seed: int) -> None:
    """Truths by taking one cause away; `python -m tests.support.twins 60 1000` asks for more."""
    told = told_of(random_job(seed))
    assert not [(one.cause.name, one.gain, one.truth) for one in told if not one.right]
    assert order_is_right(told)
