"""ranks: waits and arrivals as they truly were, and a straggler where there is one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from simulator import PRESETS, Export, TrainingJob

from nsightpy.commands.ranks.command import ranks
from tests.support.jobs import Simulated, change, on_two_nodes, simulate, split_by_process
from tests.support.reports import DDP, NSYS, needs_reports, rows_of
from tests.support.samples import TRAINING

# start and end, ns
Span: TypeAlias = tuple[int, int]
NOBODY: set[int] = set()


def jobs() -> Iterator[tuple[str, TrainingJob, set[int]]]:
    """Jobs, and whom the others wait for; of several in the set anybody or nobody."""
    eight = PRESETS["ranks_8"]
    yield "one of 64", PRESETS["ranks_64"], {37}
    for payload in ("json", None):
        for slow in (1.03, 1.3):
            more = {"straggler": 6, "straggler_slowdown": slow, "payload": payload}
            yield f"{slow}, {payload}", replace(eight, **more), {6}
    for seed in range(4):
        at = {"straggler": (4 + seed) % 8, "straggler_slowdown": 1.05}
        yield f"5 %, {seed}", replace(eight, seed=512 + seed, **at), {(4 + seed) % 8}
    skew = (0, 0, 0, 900_000_000, 0)
    yield "a late start", replace(eight, straggler=None, start_skew_ns=skew), NOBODY
    wrong = (0, 40_000_000)
    yield "wrong clocks", replace(eight, straggler=None, utc_error_ns=wrong), NOBODY
    for layout in ({"data": 4}, {"tensor": 2, "data": 2}, {"tensor": 2}):
        job = TrainingJob(iterations=10, layers=2, ranks_per_node=2, **layout)
        for slow in (1.07, 1.2):
            yield f"{layout}, {slow}", replace(job, straggler=1, straggler_slowdown=slow), {1}
        for seed in range(100, 105):
            yield f"{layout}, {seed}", replace(job, seed=seed, iterations=6), NOBODY


def pipelines() -> Iterator[tuple[str, TrainingJob, set[int]]]:
    """The same of pipelines: who is held up by a slow neighbour is not blamed.

    Where two nodes are used their clocks disagree and drift apart.
    """
    for slow in range(4):
        job = replace(PRESETS["pipeline_4"], straggler=slow, iterations=8)
        yield f"held up by {slow}", job, {slow, -1}
    # tensor, data, pipeline and microbatches; the slow rank
    named = [(1, 2, 2, 4, 0), (1, 2, 2, 4, 3), (1, 4, 2, 2, 5), (2, 1, 4, 4, 3), (2, 2, 2, 2, 6)]
    more: dict[str, Any] = {"drift_ppb": (0, 4_000)}
    for *layout, many, slow in named:
        at = {"seed": 40 + slow, "straggler": slow, "straggler_slowdown": 1.1}
        yield f"{layout}, {slow}", on_two_nodes(*layout, microbatches=many, **at, **more), {slow}
    # rank 2 of the third layout is last 71 % of the time, by so little that it costs nothing
    for layout in ((1, 2, 2, 4), (1, 4, 2, 2), (2, 1, 4, 4), (2, 2, 2, 2)):
        job = on_two_nodes(*layout[:3], microbatches=layout[3], seed=70, **more)
        yield f"{layout}", job, NOBODY
    at = {"seed": 50, "straggler": 6, "straggler_slowdown": 1.12, "payload": None}
    yield "no payload", on_two_nodes(2, 2, 2, microbatches=2, **at, **more), {6}
    at = {"seed": 60, "straggler": 3, "straggler_slowdown": 1.08, "sharded": True}
    yield "shards", on_two_nodes(1, 2, 2, microbatches=4, **at, **more), {3}


def stragglers(job: Simulated) -> list[Any]:
    """The ranks that are called stragglers."""
    return [row["rank"] for row in ranks(job.folder).records() if row["straggler"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranks_8", "training_4rank"])
def test_waits_and_arrivals_are_the_true_ones(tmp_path: Path, name: str) -> None:
    job = simulate(PRESETS[name], tmp_path)
    table = ranks(tmp_path)
    assert table.column("rank") == job.rank_truth("rank")
    assert table.column("wait_ns") == pytest.approx(job.rank_truth("wait_ns"), rel=0.02)
    counts = zip(job.rank_truth("arrived_last"), job.rank_truth("collectives"), strict=True)
    shares = [last / every for last, every in counts]
    assert table.column("arrived_last_share") == pytest.approx(shares, abs=0.04)
    compute = [budget["compute_ns"] for budget in job.rank_truth("budget")]
    assert table.column("compute_ns") == compute
    assert stragglers(job) == [job.truth["straggler"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "slow"), [pytest.param(*row, id=name) for name, *row in (*jobs(), *pipelines())]
)
def test_only_the_slow_rank_is_named(tmp_path: Path, job: TrainingJob, slow: set[int]) -> None:
    found = stragglers(simulate(job, tmp_path))
    assert len(found) <= 1
    assert set(found) <= slow
    assert found or not slow or len(slow) > 1


@pytest.mark.slow
@pytest.mark.parametrize("slow", [None, 2])
def test_stages_that_nobody_shares_are_not_compared(tmp_path: Path, slow: int | None) -> None:
    at = {"straggler": slow, "straggler_slowdown": 1.12, "drift_ppb": (0, 4_000)}
    found = simulate(on_two_nodes(1, 1, 4, microbatches=4, **at), tmp_path)
    assert stragglers(found) == []
    (note,) = [note for note in ranks(tmp_path).notes if "is a straggler" in note]
    assert note.startswith("Whether a rank is a straggler is not known")


@pytest.mark.slow
def test_missing_ranks_and_repeated_reports(tmp_path: Path) -> None:
    def lost(paths: list[Path]) -> None:
        paths[6].unlink()
        for number in range(6):
            (tmp_path / f"again{number}.sqlite").write_bytes(paths[0].read_bytes())

    found = simulate(PRESETS["ranks_8"], tmp_path, lost)
    table = ranks(tmp_path)
    assert table.column("rank") == [0, 1, 2, 3, 4, 5, 7]
    assert "ranks without a report here: 6" in table.notes
    assert stragglers(found) == [5]
    (told,) = [note for note in table.notes if "repeat" in note]
    assert told.count(f"repeats the capture of {tmp_path}/again0.sqlite") == 3
    assert told.endswith(" and 3 more")


def _both_devices(path: Path, operation: str, spans: Sequence[tuple[Span, Span]]) -> list[Any]:
    """What `ranks` says of one process whose two devices take part in collectives; spans in ns."""
    export = Export(path)
    export.process()
    export.nvtx_domain("NCCL")
    told = {"NCCL communicator ID": 7, "Message size [bytes]": 4096}
    name = f"ncclDevKernel_{operation}_RING_LL(ncclDevKernelArgsStorage<4096>)"
    kind = f"nccl{operation.partition('_')[0]}"
    for place, (device, (start, end)) in enumerate(
        each for pair in spans for each in enumerate(pair)
    ):
        call = 200 * place
        export.nvtx_push_pop(call, call + 90, kind, domain=1, payload=told)
        launch = (call + 10, call + 20)
        export.kernel(10**9 + start, 10**9 + end, name, launch=launch, device=device, stream=21)
    return ranks(export.write()).records()


def test_who_waits_how_long(tmp_path: Path) -> None:
    """Latest start minus own start; who may leave early waits no longer than it stays."""
    spans = [((0, 60_000), (50_000, 61_000)), ((100_000, 160_000), (92_000, 160_500))]
    first, second = _both_devices(tmp_path / "a.sqlite", "AllReduce_Sum_f32", spans)
    assert (first["wait_ns"], second["wait_ns"]) == (50_000, 8_000)
    assert first["arrived_last_share"] == second["arrived_last_share"] == 0.5
    # the root is gone before the other comes, or held up until it reads
    spans = [((0, 10_000), (500_000, 512_000)), ((1_000_000, 1_600_000), (1_590_000, 1_602_000))]
    first, second = _both_devices(tmp_path / "b.sqlite", "Broadcast", spans)
    assert (first["wait_ns"], second["wait_ns"]) == (588_000, 0)
    assert (first["arrived_last_share"], second["arrived_last_share"]) == (0.0, 1.0)


def test_lateness_that_comes_and_goes_is_no_straggling(tmp_path: Path) -> None:
    def spans(stretches: Sequence[tuple[int, int]]) -> list[tuple[Span, Span]]:
        """(device that is late, collectives in a row) one after the other."""
        late = [device for device, count in stretches for _ in range(count)]
        starts = [(n * 1_000_000, n * 1_000_000 + 50_000) for n in range(len(late))]
        ends = [start + 49_000 for _, start in starts]
        order = [
            (one, other) if device else (other, one)
            for device, (one, other) in zip(late, starts, strict=True)
        ]
        return [((a, end), (b, end)) for (a, b), end in zip(order, ends, strict=True)]

    waves = [(1, 40), (0, 15), (1, 25), (0, 10), (1, 30)]
    rows = _both_devices(tmp_path / "a.sqlite", "AllReduce_Sum_f32", spans(waves))
    assert [row["straggler"] for row in rows] == [False, False]
    only_first = [((1_300_000, 1_500_000), (10**6, 1_500_000))]
    only_first += [((n * 10**6, n * 10**6 + 500_000),) * 2 for n in range(2, 21)]
    rows = _both_devices(tmp_path / "c.sqlite", "AllReduce", only_first)
    assert [(row["wait_ns"], row["straggler"]) for row in rows] == [(0, False), (300_000, False)]
    steady = [(1, 3), (0, 1)] * 30
    rows = _both_devices(tmp_path / "b.sqlite", "AllReduce_Sum_f32", spans(steady))
    assert [row["straggler"] for row in rows] == [False, True]


@needs_reports
@pytest.mark.parametrize("split", [False, True])
def test_the_real_pair_has_late_arrivals_but_no_straggler(tmp_path: Path, split: bool) -> None:
    table = ranks(split_by_process(NSYS / DDP, tmp_path) if split else NSYS / DDP)
    assert table.column("offset_ns") == [0, 0]
    assert table.column("drift_ppm") == [None, None]
    assert table.column("alignment") == ["one session"] * 2
    assert table.column("straggler") == [False, False]
    # rank 0 communicates for 209 ms: 133 ms in a Broadcast and 28 ms in an AllReduce before rank 1
    # came, 8 ms in all others
    assert table.column("wait_ns") == [168_940_297, 1_919_368]
    assert any("Rank 1 came late 2 times and the others waited 160 ms" in n for n in table.notes)


def test_no_collectives_on_two_ranks(tmp_path: Path) -> None:
    def no_nccl(paths: list[Path]) -> None:
        for path in paths:
            names = "SELECT id FROM StringIds WHERE value LIKE 'nccl%'"
            change(path, f"DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE shortName IN ({names})")

    simulate(PRESETS["ranks_2"], tmp_path, no_nccl)
    table = ranks(tmp_path)
    assert table.column("straggler") == [None, None]
    assert any("who waits for whom is not known" in note for note in table.notes)


@pytest.mark.parametrize("part", [("--nvtx", "forward"), ("--from", "560ms", "--to", "570ms")])
def test_a_part_of_the_job_is_seen_on_the_clock_of_the_whole(part: tuple[str, ...]) -> None:
    clock = ("offset_ns", "alignment", "instances", "residual_p50_ns", "residual_p95_ns")
    whole = rows_of("ranks", TRAINING)
    some = rows_of("ranks", TRAINING, *part)
    assert [[row[name] for name in clock] for row in some] == [
        [row[name] for name in clock] for row in whole
    ]
    assert all(0 < a["wait_ns"] < b["wait_ns"] for a, b in zip(some, whole, strict=True))
    if part[0] == "--nvtx":
        rows = rows_of("collectives", TRAINING, *part)
        assert [(row["group"], row["instances"]) for row in rows] == [("2-3", 64), ("0-1", 64)]
