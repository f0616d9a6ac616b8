"""What a capture lacks is empty and asked of the right tool; HIP's calls launch, too."""

from pathlib import Path
from typing import Any

import pytest

import nsightpy
from nsightpy.analysis.work_graph.host_chain import LAUNCH, kinds_of_calls
from nsightpy.command_table import COMMANDS
from nsightpy.commands.breakdown.command import CAUSES, WAITS
from nsightpy.commands.stats.command import REPORTS
from nsightpy.frames import Labels
from tests.support.full_export import changed
from tests.support.reports import ask, findings_of
from tests.support.samples import NCU, SINGLE, TRACES
from tests.support.trace_events import changed_trace, event, written

TRACE = TRACES / "train_rank0.pt.trace.json.gz"


def without_calls(trace: dict[str, Any]) -> None:
    kept = (e for e in trace["traceEvents"] if e.get("cat") not in ("cuda_runtime", "cuda_driver"))
    trace["traceEvents"] = list(kept)


@pytest.fixture(params=["trace", "export"])
def silent(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A report with GPU work and no calls that launched it."""
    if request.param == "trace":
        return str(changed_trace(TRACE, tmp_path / "silent.json", without_calls))
    drop = ["DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME"]
    return str(changed(SINGLE, tmp_path / "silent.sqlite", drop))


def test_what_no_call_tells_is_not_known(silent: str) -> None:
    table, ranges = nsightpy.gaps(silent, top=0), nsightpy.nvtx(silent).records()
    (budget,) = nsightpy.breakdown(silent).records()
    assert {budget[field.name] for field in (*CAUSES, *WAITS)} == {None}
    assert sum(row["duration_ns"] for row in table.records()) == budget["idle_ns"] > 0
    assert {row["cause"] for row in table.records()} == {""}
    assert any("Idle time is not attributed" in note for note in table.notes)
    unknown = ("total_projected_ns", "gpu_ops", "share_of_busy", "attributed_ns")
    assert {row[name] for row in ranges for name in unknown} == {None}
    operators, modules = (nsightpy.operators(silent, by=by).records() for by in ("", "module"))
    assert bool(operators) == silent.endswith(".json")
    unknown = ("device_total_ns", "device_self_ns")
    assert {row[name] for row in (*operators, *modules) for name in unknown} == {None}
    assert all(row["host_total_ns"] is not None for row in operators)


def test_ncu_is_not_recommended_for_other_gpus(tmp_path: Path) -> None:
    def with_gpu(name: str) -> Path:
        gpus = {"deviceProperties": [{"id": 0, "name": name, "numSms": 304}]}
        return changed_trace(TRACE, tmp_path / f"{name}.json", lambda trace: trace.update(gpus))

    theirs = with_gpu("AMD Instinct MI300X")
    assert "ncu measures GPUs of NVIDIA only" in nsightpy.select(theirs).notes[0]
    ours = nsightpy.select(with_gpu("NVIDIA H100"))
    assert not any("of NVIDIA only" in note for note in ours.notes)
    commands = [row["next_command"] for row in findings_of(theirs).values()]
    assert commands
    assert not any("select" in command for command in commands if command)


# What is found by launches: where a run repeats, and whose ranges other threads launch for.
BY_ORDER = "DELETE FROM NVTX_EVENTS"
OUT_OF_ORDER = (
    "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start + 2000000, end = end + 2000000 "
    "WHERE streamId % 2"
)
BY_OTHER_THREADS = (
    "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = globalTid + 1 WHERE EXISTS (SELECT 1 FROM "
    "NVTX_EVENTS n WHERE n.text = 'backward' AND n.start <= CUPTI_ACTIVITY_KIND_RUNTIME.start "
    "AND CUPTI_ACTIVITY_KIND_RUNTIME.end <= n.end)"
)
REQUESTS = {
    BY_ORDER: ("iterations", "kernels --iteration steady", "select", "gaps", "findings"),
    BY_OTHER_THREADS: ("nvtx", "kernels --nvtx backward"),
}
# The functions of HIP for a kernel's launch; nsys adds the version of an entry point.
LAUNCHES = ("hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel_v9000")
CUDA_TO_HIP = (
    "UPDATE StringIds SET value = '{}' WHERE value LIKE 'cu%LaunchKernel%'",
    "UPDATE StringIds SET value = 'hip' || substr(value, 5) WHERE value LIKE 'cuda%'",
)


def answers(reports: Path, request: str) -> list[dict[str, Any]]:
    """The rows, without what names calls and files; usual times are those of a function's calls,
    so that gains differ by some ns.
    """
    document = ask(*request.split(), reports, "--format", "json", "--jobs", "1").json
    return [
        {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in row.items()
            if not any(word in str(value) for word in ("cuda", "hip", "nsightpy "))
        }
        for row in document["rows"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("launch", LAUNCHES)
@pytest.mark.parametrize("program", REQUESTS, ids=["repeats", "threads"])
def test_answers_do_not_depend_on_who_launches(program: str, launch: str, tmp_path: Path) -> None:
    cuda = changed(SINGLE, tmp_path / "cuda.sqlite", [program, OUT_OF_ORDER])
    hip = changed(cuda, tmp_path / "hip.sqlite", [one.format(launch) for one in CUDA_TO_HIP])
    for request in REQUESTS[program]:
        rows = answers(cuda, request)
        assert rows
        assert answers(hip, request) == rows, request


def test_no_launch_is_taken_for_loading_code() -> None:
    assert set(kinds_of_calls(Labels.of([*LAUNCHES, "cuLaunchKernelEx"])).tolist()) == {LAUNCH}


MORE = {"instances": ("--of", "*"), "headroom": ("--ncu", str(NCU))}
# Answers of which no part is about what a capture holds.
WITHOUT_REPORTS = ("mcp", "cache")
QUESTIONS = [
    *((name, *MORE.get(name, ())) for name in COMMANDS if name not in (*WITHOUT_REPORTS, "stats")),
    *(("stats", "-r", name) for name in REPORTS),
    ("collectives", "--by", "pair"),
    ("kernels", "--nvtx", "no such range"),
    ("kernels", "--iteration", "4"),
    ("timeline", "--iteration", "4"),
]
# It is right to name the other tool where PyTorch's never records what is missing.
OF_THE_OTHER = "PyTorch's profiler never does; `nsys profile"
OF_NSYS = ("nsys profile", "-t cuda", "--include-json", "of Nsight Systems", "nsys 20")


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["of two ranks", "without GPU work"])
def test_nobody_asks_for_nsys(trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = [event("cpu_op", "aten::mm", 1, 5)]
    path = TRACES if trace == "of two ranks" else written(host, tmp_path)
    monkeypatch.chdir(tmp_path)
    said = [
        (question, line.strip())
        for question in QUESTIONS
        for more in (("--", path) if question[0] == "compare" else (),)
        for line in ask(*question, path, *more, expect=None).stderr.splitlines()
        if any(words in line for words in OF_NSYS) and OF_THE_OTHER not in line
    ]
    assert said == []
