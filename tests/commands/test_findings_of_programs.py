"""What is concluded from small programs whose causes are known; and what is not said of them."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from simulator import TrainingJob

from nsightpy.analysis.findings.engine import RULES
from nsightpy.analysis.findings.job_rules import CAPTURE_RULES
from nsightpy.commands.findings.command import findings
from nsightpy.commands.gaps import gaps
from nsightpy.commands.iterations import iterations
from tests.support.launchers import MS, US, WIDE, Machine, Part, Thread
from tests.support.reports import NSYS, findings_of, needs_reports
from tests.support.samples import TRAINING

Write = Callable[[Machine], None]
Said = dict[str, float | str | None]
# `.item()` after little work: a call under 100 us that returns when the copy is done
ITEM = ">>DtoH:8:2:Pageable"


def on_one(folder: Path, *parts: Part, name: str = "report") -> Machine:
    """The machine on which one thread did that."""
    machine = Machine(folder / f"{name}.sqlite")
    machine.thread().run(*parts)
    return machine


def concluded(machine: Machine) -> dict[str, dict[str, Any]]:
    return findings_of(machine.export.write())


def pages_that_the_host_touches(works: int) -> Part:
    """No call launches the migrations: the host touches pages after it worked for a while."""

    def touch(thread: Thread) -> None:
        begin = thread.kernel("stencil", 2 * MS) + works
        thread.wait(name="cudaDeviceSynchronize_v3020")
        managed = {"source": "Managed", "target": "Managed"}
        for _ in range(40):
            thread.export.memcpy(begin, begin + 8 * US, 65_536, 12, **managed)  # type: ignore[arg-type]
            begin += 30 * US
        thread.now = thread.machine.free[0, 7] = begin

    return (50, touch)


def staged_copy(thread: Thread) -> None:
    """As pageable memory is copied: a short call in which the driver stages, the GPU idle."""
    called, thread.now = thread.now, thread.now + 40 * US
    begin = thread.now + 2 * US
    thread.machine.free[0, 7] = begin + 20 * US
    memory = {"source": "Pageable", "launch": (called, thread.now)}
    thread.export.memcpy(begin, begin + 20 * US, 400_000, "HtoD", **memory)
    thread.wait(name="cudaMemcpy_v3020")


def memory_set(thread: Thread) -> None:
    called = (thread.now, thread.now + 5 * US)
    begin = max(called[1] + 2 * US, thread.machine.free.get((0, 7), 0))
    thread.export.memset(begin, begin + 400 * US, 512 << 20, launch=called)
    thread.now, thread.machine.free[0, 7] = called[1], begin + 400 * US


def graph_launch(thread: Thread) -> None:
    """Sixty tiny kernels."""
    called, thread.now = thread.now, thread.now + 40 * US
    call = thread.export.api(called, thread.now, "cudaGraphLaunch_v10000")
    begin = max(thread.now, thread.machine.free.get((0, 7), 0))
    for node in range(60):
        names = {"correlation": call, "graph_node": node + 1, "graph": 1}
        at = begin + node * 5 * US
        thread.export.kernel(at, at + 3 * US, f"tiny_{node % 6}", grid=WIDE, **names)
    thread.machine.free[0, 7] = begin + 300 * US


def work_of_before(thread: Thread) -> None:
    """The capture begins while the GPU does what was launched before it."""
    thread.machine.free[0, 7] = 300 * MS


def loading(thread: Thread) -> None:
    thread.export.nvtx_push_pop(0, 800 * MS, "load_model")
    thread.now = 800 * MS


def full_memory(thread: Thread) -> None:
    thread.export.memory_usage(1, 80_000_000_000, process=thread.machine.process)
    thread.kernel("first", MS)


def wait_of_another(thread: Thread) -> None:
    thread.kernel(f"other_{thread.now}", 2 * MS, after=thread.now + 5 * MS)
    thread.wait()


MPI_SOLVER = (100, "flux_141_gpu:300 >DtoH:80000:9 !cuStreamSynchronize &MPI_Waitall:350")
MIGRATING_PAGES = (50, (20, ">11:65536:12:Managed"), "stencil:500 !")
GRAPHS = (30, graph_launch)
BUSY = (50, "scatter:250")
QUESTIONS = (50, "=cudaGetDeviceProperties_v3020:1500 step:500 !")
LOADING = (1, loading, (40, "step:4000 !"))


def copies_once(copy: str, times: int) -> Part:
    return (1, (times, (5, "different_{n}:8000"), copy), "last:1000")


def read_in_two_parts(us: int) -> Part:
    """A result is read in two parts, then written to a file."""
    return (30, f"product:{us} {ITEM} {ITEM} ~6000")


# What a program does; findings with their share (None: any), their severity or words of what they
# say; ids that are not said, or not as a warning (with a ?).
CAUSES: list[tuple[Part, Said, str]] = [
    (MPI_SOLVER, {"exposed-communication": 0.52}, "host-gap launch-bound"),
    (
        (200, "=cudaMallocAsync_v1102:60 fusion:40 =cudaFreeAsync_v1102:25"),
        {"allocation": 0.5},
        "host-gap sync-drain",
    ),
    (MIGRATING_PAGES, {"unified-memory": 0.32}, "exposed-h2d pageable-copies"),
    (pages_that_the_host_touches(40 * US), {"unified-memory": 0.37}, "capture-incomplete host-gap"),
    (pages_that_the_host_touches(5 * MS), {"host-gap": 0.61}, "capture-incomplete"),
    (
        (50, ">HtoD:4000000:700:Pageable ! __omp_offloading_fd02_1a_main_l42:300",
         ">DtoH:4000000:700:Pageable !"),
        {"exposed-h2d": 0.41},
        "host-gap launch-bound",
    ),
    ((50, "stencil:300 !", (4, staged_copy)), {"exposed-h2d": 0.39}, "launch-bound host-gap"),
    ((100, f"step:60 {ITEM} ~30"), {"sync-drain": 0.4}, "launch-bound host-gap"),
    # a blocking copy with an empty queue: the host is behind the GPU before and after it
    (
        (100, f"~600 {ITEM} ~600 =cudaFuncGetAttributes_v3020:20 step:60"),
        {"launch-bound": 0.94},
        "sync-drain first-launch",
    ),
    ((3, "different_{n}:200 ~300"), {}, "launch-bound"),
    ((50, f"step:60 {ITEM} ~5000"), {"host-gap": 0.98}, "launch-bound sync-drain"),
    (QUESTIONS, {"host-gap": 0.74}, "launch-bound"),
    (QUESTIONS, {"host-gap": "thread was in calls of cudaGetDevice"}, ""),
    ((50, memory_set, "scatter:250"), {"exposed-d2d": 0.61}, "healthy"),
    ((100, "matrixMul:60"), {"dominating-kernel": None}, "exposed-h2d launch-bound"),
    (GRAPHS, {"small-kernels": 1.0}, "sync-drain healthy"),
    # as nccl-tests: some sizes, several times each, that nobody knows
    (
        (1, *((10, f"ncclDevKernel_AllReduce_Sum_f32_RING_LL:{20 << size}") for size in range(8))),
        {"exposed-communication": 1.0},
        "slow-collectives",
    ),
    ((20, wait_of_another), {"capture-incomplete": 0.72}, "launch-bound host-gap"),
    ((1, work_of_before, BUSY), {}, "startup-dominates"),
    (BUSY, {"healthy": None}, "exposed-h2d launch-bound"),
    ((50, "step:1000 ! @write:600"), {"host-gap": 0.37}, "sync-drain?"),
    ((50, "step:1000 ! @poll:600"), {"sync-drain": 0.37}, "host-gap?"),
    (read_in_two_parts(10_000), {"sync-drain": "could be done beside"}, "sync-drain?"),
    (read_in_two_parts(10_000), {"host-gap": "warning"}, ""),
    (read_in_two_parts(100), {"host-gap": "warning"}, "sync-drain"),
    # the call that costs most is not the most frequent one
    (
        (30, (3, "short:100 !cudaEventSynchronize_v3020"), "long:2000 ! ~600"),
        {"sync-drain": "mostly in cudaStreamSynchronize"},
        "",
    ),
    *(
        (copies_once(f">>{kind}:200000000:40000:Pageable", times),
         dict.fromkeys((f"exposed-{kind.lower().replace('to', '2')}", "pageable-copies"), severity),
         "")
        for kind in ("DtoH", "HtoD")
        for times, severity in ((1, "info"), (4, "warning"))
    ),
    *(
        ((1, "=cuModuleLoadData:300000", (40, f"{name}:250")),
         dict.fromkeys(("startup-dominates", "first-launch"), "info"),
         "")
        for name in ("stencil", "stencil_{n}")
    ),
    (LOADING, {"startup-dominates": "info"}, ""),
    (full_memory, {"near-capacity": None}, ""),
    (
        "=cudaMallocManaged_v6000:180000 add:50",
        {"first-launch": "cudaMallocManaged first made the context"},
        "",
    ),
    ("=cudaMallocManaged_v6000:100 add:50", {}, "first-launch"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "there", "absent"), CAUSES)
def test_causes_of_programs(program: Part, there: Said, absent: str, tmp_path: Path) -> None:
    rows = concluded(on_one(tmp_path, program))
    for name, known in there.items():
        row = rows[name]
        if isinstance(known, float):
            assert row["recoverable_share"] == pytest.approx(known, abs=0.05)
        elif known is not None:
            assert known == row["severity"] or known in row["evidence"]
    for name in absent.split():
        row = rows.get(name.removesuffix("?"), {})
        assert not row or (name.endswith("?") and row["severity"] == "info")
    assert program is not LOADING or next(iter(rows)) != "startup-dominates", "a fact"
    assert not any("data loading" in row["evidence"].lower() for row in rows.values())


def test_gaps_in_mpi_calls_are_said_to_be(tmp_path: Path) -> None:
    path = on_one(tmp_path, MPI_SOLVER).export.write()
    worst = gaps(path).records()[0]
    assert worst["cause"] == "exposed-communication"
    assert "MPI_Waitall" in str(worst["host_activity"])
    for options in ({}, {"rank_regex": "job--iteration(\\d+)"}):
        row = findings_of(path, **options)["exposed-communication"]
        assert row["next_command"].startswith(f"nsightpy gaps {path} ")
        assert row["next_command"].endswith(" --iteration steady")
        assert row["start_ns"] == worst["start_ns"]


def test_calls_that_last_beyond_the_capture_are_cut(tmp_path: Path) -> None:
    machine = on_one(tmp_path, "=cuModuleLoadData:300000", BUSY)
    machine.export.duration_ns = 400 * MS
    machine.export.library("OSRT_API", 0, 2_000 * MS, "sem_wait")
    told = concluded(machine)["startup-dominates"]["evidence"]
    assert "of the 400 ms in which device 0 was captured" in told


def test_a_call_that_stages_a_copy_goes_with_it(tmp_path: Path) -> None:
    """Uploads of pageable memory return a moment before the copy is done."""

    def upload(thread: Thread) -> None:
        begin, end = thread.now + 20 * US, thread.now + 720 * US
        call = (thread.now, end - 10 * US)
        thread.export.memcpy(begin, end, 4_000_000, "HtoD", source="Pageable", launch=call)
        thread.now, thread.machine.free[0, 7] = call[1], end

    row = concluded(on_one(tmp_path, (50, upload, "stencil:300 !")))["exposed-h2d"]
    assert 0.6 < 0.95 * row["recoverable_share"] < row["gain_share"] <= row["recoverable_share"]


@pytest.mark.parametrize("change", ["later", "other names", "device", "process", "no ranges"])
def test_conclusions_do_not_depend_on_what_does_not_matter(change: str, tmp_path: Path) -> None:
    def said(changed: str) -> tuple[set[tuple[object, ...]], int]:
        machine = Machine(tmp_path / f"{changed}.sqlite")
        thread = machine.thread(now=7_000 * MS if changed == "later" else MS)
        begin, name = thread.now, "f" if changed == "other names" else "flux"
        thread.run((20, f">HtoD:4000000:700:Pinned {name}_a:3000 {name}_b:300 ! ~2000"))
        where: dict[str, Any] = {"device": 3, "context": 9} if changed == "device" else {}
        if changed == "process":
            where["process"] = machine.export.process(2_000, "probe")
        if where:
            call = (39 * MS, 39 * MS + 5 * US)
            machine.export.kernel(40 * MS, 40 * MS + 2 * US, "probe", launch=call, **where)
        if changed != "no ranges":
            machine.export.nvtx_push_pop(begin, thread.now, "main")
        path = machine.export.write()
        steps = [row for row in iterations(path).records() if row["device"] == 0]
        kept = ("id", "severity", "recoverable_ns")
        rows = findings(path).records()
        return {tuple(row[column] for column in kept) for row in rows}, len(steps)

    assert said("nothing") == said(change)


def layers(thread: Thread, device: int = 0, after: int = 0) -> int:
    done = after
    for name in ("norm", "gemm", "attention", "gemm", "gelu") * 8:
        done = thread.kernel(name, 80 * US, device=device, after=after)
    return done


def without_calls(machine: Machine) -> None:
    for start in range(MS, 30 * MS, MS):
        machine.export.kernel(start, start + 600 * US, "step")


def together(threads: list[Thread], after: int) -> None:
    """All go on when the last one is there, and so many ns later."""
    threads[0].now = threads[1].now = max(thread.now for thread in threads) + after


def halves_of_a_model(machine: Machine) -> None:
    """The second device goes on with what the first one made; one thread launches all ahead."""
    thread = machine.thread()
    for _ in range(20):
        layers(thread)
        made = thread.copy(10, 4 << 20, 150 * US)
        layers(thread, 1, made)
        thread.copy("DtoH", 8, 2 * US, device=1, blocks=True, target="Pageable")


def replicas(machine: Machine) -> None:
    """Threads of their own for each device, while the main one spreads and gathers on the first."""
    main, workers = machine.thread(), [machine.thread(2001), machine.thread(2002)]
    for _ in range(20):
        main.copy("HtoD", 1 << 20, 6 * MS)
        main.wait()
        for device, worker in enumerate(workers):
            worker.now = main.now
            layers(worker, device)
            worker.wait(device)
        main.now = max(worker.now for worker in workers)


def barriers(machine: Machine) -> None:
    """A thread for each device; the second one has three times as much to do."""
    threads = [machine.thread(2001), machine.thread(2002)]
    for _ in range(20):
        for device, thread in enumerate(threads):
            thread.kernel("stencil", (2 + 4 * device) * MS, device=device)
            thread.wait(device)
        together(threads, 20 * US)


def one_after_another(machine: Machine) -> None:
    """One thread that waits for each device before it goes on with the next one."""
    thread = machine.thread()
    for _ in range(15):
        for device in range(2):
            thread.copy("HtoD", 1 << 20, 90 * US, device=device, blocks=True)
            thread.kernel("process", 5 * MS, device=device)
            thread.copy("DtoH", 1 << 20, 90 * US, device=device, blocks=True)


def requests(machine: Machine) -> None:
    """Each thread has requests of its own."""
    chosen = random.Random(1)
    for device in range(2):
        thread = machine.thread(2001 + device)
        for _ in range(30):
            thread.now += chosen.randint(3, 30) * MS
            layers(thread, device)
            thread.copy("DtoH", 8, 2 * US, device=device, blocks=True, target="Pageable")


def pauses(machine: Machine) -> None:
    """A thread for each device, as of JAX: between steps nothing is launched on any."""
    threads = [machine.thread(2001), machine.thread(2002)]
    for _ in range(20):
        for device, thread in enumerate(threads):
            layers(thread, device)
            thread.wait(device)
        together(threads, 3 * MS)


@pytest.mark.parametrize(
    ("write", "cause", "share"),
    [
        *((halves_of_a_model, "imbalance", 0.49), (replicas, "imbalance", 0.63)),
        *((barriers, "imbalance", 0.33), (one_after_another, "imbalance", 0.5)),
        *((requests, "host-gap", 0.84), (pauses, "host-gap", 0.48)),
    ],
)
def test_devices_that_wait_for_each_other(
    write: Write, cause: str, share: float, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "report.sqlite", 2)
    write(machine)
    rows = concluded(machine)
    assert rows[cause]["recoverable_share"] == pytest.approx(share, abs=0.03)
    assert rows[cause]["severity"] == "warning"
    # what comes after a device's last work is nothing that the capture lacks
    assert "capture-incomplete" not in rows
    if cause == "imbalance":
        assert "host-gap" not in rows
        longest = gaps(machine.export.path).records()[0]
        assert longest["cause"] == "imbalance"
        assert "waiting for another device" in str(longest["host_activity"])
    else:
        assert "imbalance" not in rows or rows["imbalance"]["severity"] == "info"


@needs_reports
@pytest.mark.slow
def test_every_rule_is_true_of_some_capture(tmp_path: Path) -> None:
    """One that is true of none says nothing that anybody needs, and goes."""
    kineto = NSYS.parent / "kineto"
    paths = [*sorted(NSYS.glob("*.sqlite")), TRAINING, tmp_path / "network"]
    paths += [kineto / f"{name}.json.gz" for name in ("sglang_decode_graphs", "rank3_of8_a100")]
    job = TrainingJob(tensor=2, data=2, ranks_per_node=2, bandwidth_between_nodes=2.4)
    job.write(tmp_path / "network")
    programs = (MIGRATING_PAGES, (20, wait_of_another), full_memory, "only:9000")
    copies = (15, "process:5000 >DtoD:1048576:900")
    machines = [on_one(tmp_path, each, name=f"{n}") for n, each in enumerate((*programs, copies))]
    machines[3].export.diagnostic(5, "CUDA events were lost.", severity=3)
    for write in (barriers, one_after_another, without_calls):
        machines.append(Machine(tmp_path / f"{write.__name__}.sqlite", 2))
        write(machines[-1])
    names = {rule.name for rule in (*RULES, *CAPTURE_RULES)}
    for path in (*paths, *(machine.export.write() for machine in machines)):
        names -= set(findings(path).column("finding"))
    several = [NSYS / f"{name}_a100_2024.6.sqlite" for name in ("gpt2.7b", "cudagraph")]
    assert names - set(findings(several).column("finding")) == set()
