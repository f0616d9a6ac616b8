"""One simulated job, as Nsight Systems exports and as PyTorch traces: the answers are the same."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from simulator.emit import write_reports
from simulator.kineto import operator_name, write_traces
from simulator.presets import PRESETS
from simulator.run import Run

import nsightpy
from nsightpy.report_sets.opening import open_ranks

pytestmark = pytest.mark.slow

# What the two kinds of files cannot have in common: names, hosts, the zero of their times, and
# when the capture began: how much of it is start-up.
OWN = {"report", "host", "rank_source", "start_ns", "queue_max_at_ns", "next_command"}


@dataclass(frozen=True)
class Twice:
    """The job, its exports and its traces."""

    run: Run
    exports: Path
    traces: Path


@pytest.fixture(scope="module", params=["ranks_2", "ranks_8", "pipeline_4"])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Twice:
    folder = tmp_path_factory.mktemp(request.param)
    run = PRESETS[request.param].run()
    made = Twice(run, folder / "exports", folder / "traces")
    write_reports(run, made.exports)
    write_traces(run, made.traces, packed=request.param != "ranks_8")
    return made


def answers(command: str, folder: Path, **options: Any) -> list[dict[str, Any]]:
    table = getattr(nsightpy, command)(folder, use_cache=False, **options)
    rows = [row for row in table.records() if row.get("id") != "startup-dominates"]
    return [{k: v for k, v in row.items() if k not in OWN} for row in rows]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        *((name, {}) for name in ("breakdown", "ranks", "collectives", "memory", "findings")),
        ("iterations", {}),
        *(("kernels", {"by": by}) for by in ("rank,stream", "grid,block")),
        ("kernels", {"name": "base"}),
        *(("ranks", {"by": "kernel"}), ("launches", {"by": "stream"}), ("gaps", {"by": "call"})),
    ],
)
def test_exports_and_traces_give_the_same_answers(
    job: Twice, command: str, options: dict[str, str]
) -> None:
    found = answers(command, job.traces, **options)
    assert found == answers(command, job.exports, **options)
    assert found or command == "iterations"


def test_collectives_carry_their_arguments(job: Twice) -> None:
    trace = sorted(job.traces.iterdir())[0]
    frame = nsightpy.open_report(trace, use_cache=False).collectives
    assert set(frame.evidence) == {"arguments"}
    groups = {f"{n}{list(g.ranks)}".replace(" ", "") for n, g in enumerate(job.run.groups)}
    assert set(frame.communicator) <= groups
    assert (frame.bytes > 0).all()


def test_operators_hold_what_they_launched(job: Twice) -> None:
    rows = nsightpy.operators(job.traces, use_cache=False, by="rank").records()
    found = {(row["rank"], row["operator"]): row for row in rows}
    for rank in job.run.ranks:
        launched = {call.correlation for call in rank.calls}
        own: Counter[str] = Counter()
        for op in rank.operations:
            if op.correlation in launched:
                own[operator_name(op)] += op.end - op.start
        for name, total in own.items():
            row = found[rank.index, name]
            # the clock of a trace drifts by parts per million
            assert row["device_self_ns"] == pytest.approx(total, rel=1e-3)
            assert row["device_total_ns"] == row["device_self_ns"]


def test_a_folder_of_a_tensorboard_is_one_set(tmp_path: Path) -> None:
    run = PRESETS["ranks_2"].run()
    for number, path in enumerate(write_traces(run, tmp_path / "made", packed=False)):
        for cycle in (1_700_000_000_000, 1_700_000_900_000):
            name = f"node7_{410 + number}.{cycle}.pt.trace.json"
            (tmp_path / name).write_bytes(path.read_bytes())
    ranks = open_ranks(tmp_path, use_cache=False)
    assert [report.path.name for report in ranks] == [
        f"node7_{410 + number}.1700000900000.pt.trace.json" for number in (0, 1)
    ]
    assert [path.name for path in ranks.passed_by] == [
        f"node7_{410 + number}.1700000000000.pt.trace.json" for number in (0, 1)
    ]
