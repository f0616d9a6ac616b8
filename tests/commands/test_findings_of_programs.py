"""What is concluded from small programs whose causes are known; and what is not said of them."""

from __future__ import annotations

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
from nsightpy.results import Value
from tests.support.launchers import MS, US, WIDE, Machine, Thread
from tests.support.reports import NSYS, ROOT, needs_reports

MANAGED = {"source": "Managed", "target": "Managed"}
Rows = dict[str, dict[str, Value]]


def concluded(machine: Machine) -> Rows:
    """The findings by id."""
    return {str(row["id"]): row for row in findings(machine.export.write()).records()}


def on_one(folder: Path, write: Callable[[Thread], None], name: str = "report") -> Machine:
    """The machine on which one thread did that."""
    machine = Machine(folder / f"{name}.sqlite")
    write(machine.thread())
    return machine


def mpi_solver(thread: Thread, waits: int = 350 * US) -> None:
    for _ in range(100):
        thread.kernel("flux_141_gpu", 300 * US)
        thread.copy("DtoH", 80_000, 9 * US)
        thread.wait(name="cuStreamSynchronize")
        begin, thread.now = thread.now, thread.now + waits
        thread.export.mpi_collective(begin, thread.now, "MPI_Waitall", 8)


def async_allocations(thread: Thread) -> None:
    for _ in range(200):
        thread.call("cudaMallocAsync_v1102", 60 * US)
        thread.kernel("fusion", 40 * US)
        thread.call("cudaFreeAsync_v1102", 25 * US)


def migrating_pages(thread: Thread) -> None:
    for _ in range(50):
        for _ in range(20):
            thread.copy(11, 65_536, 12 * US, **MANAGED)
        thread.kernel("stencil", 500 * US)
        thread.wait()


def pages_that_the_host_touches(thread: Thread, works: int = 40 * US) -> None:
    """No call launches the migrations: the host touches pages after it worked for a while."""
    for _ in range(50):
        begin = thread.kernel("stencil", 2 * MS) + works
        thread.wait(name="cudaDeviceSynchronize_v3020")
        for _ in range(40):
            thread.export.memcpy(begin, begin + 8 * US, 65_536, 12, **MANAGED)  # type: ignore[arg-type]
            begin += 30 * US
        thread.now = thread.machine.free[0, 7] = begin


def results_that_the_host_works_on(thread: Thread) -> None:
    pages_that_the_host_touches(thread, 5 * MS)


def mapped_regions(thread: Thread) -> None:
    for _ in range(50):
        thread.copy("HtoD", 4_000_000, 700 * US, source="Pageable")
        thread.wait()
        thread.kernel("__omp_offloading_fd02_1a_main_l42", 300 * US)
        thread.copy("DtoH", 4_000_000, 700 * US, target="Pageable")
        thread.wait()


def staged_copies(thread: Thread) -> None:
    """As pageable memory is copied: short calls in which the driver stages, the GPU idle."""
    for _ in range(50):
        thread.kernel("stencil", 300 * US)
        thread.wait()
        for _ in range(4):
            called, thread.now = thread.now, thread.now + 40 * US
            begin = thread.machine.free[0, 7] = thread.now + 2 * US
            call = (called, thread.now)
            memory = {"source": "Pageable", "launch": call}
            thread.export.memcpy(begin, begin + 20 * US, 400_000, "HtoD", **memory)
            thread.machine.free[0, 7] += 20 * US
            thread.wait(name="cudaMemcpy_v3020")


def item(thread: Thread) -> None:
    """`.item()` after little work: a call under 100 us that returns when the copy is done."""
    thread.copy("DtoH", 8, 2 * US, blocks=True, target="Pageable")


def items(thread: Thread) -> None:
    for _ in range(100):
        thread.kernel("step", 60 * US)
        item(thread)
        thread.now += 30 * US


def inputs_that_nothing_waits_for(thread: Thread) -> None:
    """A blocking copy with an empty queue: the host is behind the GPU before and after it."""
    for _ in range(100):
        thread.now += 600 * US
        item(thread)
        thread.now += 600 * US
        thread.call("cudaFuncGetAttributes_v3020", 20 * US)
        thread.kernel("step", 60 * US)


def three_kernels(thread: Thread) -> None:
    for place in range(3):
        thread.kernel(f"different_{place}", 200 * US)
        thread.now += 300 * US


def checkpoints(thread: Thread) -> None:
    for _ in range(50):
        thread.kernel("step", 60 * US)
        item(thread)
        thread.now += 5 * MS


def questions(thread: Thread) -> None:
    for _ in range(50):
        thread.call("cudaGetDeviceProperties_v3020", 1500 * US)
        thread.kernel("step", 500 * US)
        thread.wait()


def memory_sets(thread: Thread) -> None:
    for _ in range(50):
        called = (thread.now, thread.now + 5 * US)
        begin = max(called[1] + 2 * US, thread.machine.free.get((0, 7), 0))
        thread.export.memset(begin, begin + 400 * US, 512 << 20, launch=called)
        thread.now, thread.machine.free[0, 7] = called[1], begin + 400 * US
        thread.kernel("scatter", 250 * US)


def one_kernel(thread: Thread) -> None:
    for _ in range(100):
        thread.kernel("matrixMul", 60 * US)


def graph_launch(thread: Thread, nodes: int, apart: int) -> None:
    called, thread.now = thread.now, thread.now + 40 * US
    call = thread.export.api(called, thread.now, "cudaGraphLaunch_v10000")
    begin = max(thread.now, thread.machine.free.get((0, 7), 0))
    for node in range(nodes):
        names = {"correlation": call, "graph_node": node + 1, "graph": 1}
        at = begin + node * apart
        thread.export.kernel(at, at + 3 * US, f"tiny_{node % 6}", grid=WIDE, **names)
    thread.machine.free[0, 7] = begin + nodes * apart


def tiny_kernels_in_graphs(thread: Thread) -> None:
    for _ in range(30):
        graph_launch(thread, 60, 5 * US)


def sizes_that_nobody_knows(thread: Thread) -> None:
    """As nccl-tests: some sizes, several times each."""
    for size in range(8):
        for _ in range(10):
            thread.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", (20 << size) * US)


def waits_of_others(thread: Thread) -> None:
    for place in range(20):
        thread.kernel(f"other_{place}", 2 * MS, after=thread.now + 5 * MS)
        thread.wait()


def busy(thread: Thread) -> None:
    for _ in range(50):
        thread.kernel("scatter", 250 * US)


def launched_behind_work_of_before(thread: Thread) -> None:
    """The capture begins while the GPU does what was launched before it."""
    thread.machine.free[0, 7] = 300 * MS
    busy(thread)


def short_waits_for(name: str) -> Callable[[Thread], None]:
    def write(thread: Thread) -> None:
        for _ in range(50):
            thread.kernel("step", MS)
            thread.wait()
            thread.in_os(name, 600 * US)

    return write


def results_in_two_parts(works: int) -> Callable[[Thread], None]:
    """A result is read in two parts, then written to a file."""

    def write(thread: Thread) -> None:
        for _ in range(30):
            thread.kernel("product", works)
            item(thread)
            item(thread)
            thread.now += 6 * MS

    return write


def waits_of_two_kinds(thread: Thread) -> None:
    """The call that costs most is not the most frequent one."""
    for _ in range(30):
        for _ in range(3):
            thread.kernel("short", 100 * US)
            thread.wait(name="cudaEventSynchronize_v3020")
        thread.kernel("long", 2 * MS)
        thread.wait()
        thread.now += 600 * US


def copies_once(kind: str, times: int) -> Callable[[Thread], None]:
    memory = {"DtoH": "target", "HtoD": "source"}[kind]

    def write(thread: Thread) -> None:
        for _ in range(times):
            for place in range(5):
                thread.kernel(f"different_{place}", 8 * MS)
            thread.copy(kind, 200_000_000, 40 * MS, blocks=True, **{memory: "Pageable"})
        thread.kernel("last", MS)

    return write


def start_up(*names: str) -> Callable[[Thread], None]:
    def write(thread: Thread) -> None:
        thread.call("cuModuleLoadData", 300 * MS)
        for name in names:
            thread.kernel(name, 250 * US)

    return write


def model_loading(thread: Thread) -> None:
    thread.export.nvtx_push_pop(0, 800 * MS, "load_model")
    thread.now = 800 * MS
    for _ in range(40):
        thread.kernel("step", 4 * MS)
        thread.wait()


def first_call(lasts: int) -> Callable[[Thread], None]:
    def write(thread: Thread) -> None:
        thread.call("cudaMallocManaged_v6000", lasts)
        thread.kernel("add", 50 * US)

    return write


# What a program does; findings with their share (None: any), their severity or words of what they
# say; ids that are not said, or not as a warning (with a ?).
CAUSES: list[tuple[Callable[[Thread], None], dict[str, float | str | None], str]] = [
    (mpi_solver, {"exposed-communication": 0.52}, "host-gap launch-bound"),
    (async_allocations, {"allocation": 0.5}, "host-gap sync-drain"),
    (migrating_pages, {"unified-memory": 0.32}, "exposed-h2d pageable-copies"),
    (pages_that_the_host_touches, {"unified-memory": 0.37}, "capture-incomplete host-gap"),
    (results_that_the_host_works_on, {"host-gap": 0.61}, "capture-incomplete"),
    (mapped_regions, {"exposed-h2d": 0.41}, "host-gap launch-bound"),
    (staged_copies, {"exposed-h2d": 0.39}, "launch-bound host-gap"),
    (items, {"sync-drain": 0.4}, "launch-bound host-gap"),
    (inputs_that_nothing_waits_for, {"launch-bound": 0.94}, "sync-drain first-launch"),
    (three_kernels, {}, "launch-bound"),
    (checkpoints, {"host-gap": 0.98}, "launch-bound sync-drain"),
    (questions, {"host-gap": 0.74}, "launch-bound"),
    (questions, {"host-gap": "thread was in calls of cudaGetDevice"}, ""),
    (memory_sets, {"exposed-d2d": 0.61}, "healthy"),
    (one_kernel, {"dominating-kernel": None}, "exposed-h2d launch-bound"),
    (tiny_kernels_in_graphs, {"small-kernels": 1.0}, "sync-drain healthy"),
    (sizes_that_nobody_knows, {"exposed-communication": 1.0}, "slow-collectives"),
    (waits_of_others, {"capture-incomplete": 0.72}, "launch-bound host-gap"),
    (launched_behind_work_of_before, {}, "startup-dominates"),
    (busy, {"healthy": None}, "exposed-h2d launch-bound"),
    (short_waits_for("write"), {"host-gap": 0.37}, "sync-drain?"),
    (short_waits_for("poll"), {"sync-drain": 0.37}, "host-gap?"),
    (results_in_two_parts(10 * MS), {"sync-drain": "could be done beside"}, "sync-drain?"),
    (results_in_two_parts(10 * MS), {"host-gap": "warning"}, ""),
    (results_in_two_parts(100 * US), {"host-gap": "warning"}, "sync-drain"),
    (waits_of_two_kinds, {"sync-drain": "mostly in cudaStreamSynchronize"}, ""),
    *(
        (copies_once(kind, times), dict.fromkeys((finding, "pageable-copies"), severity), "")
        for kind, finding in (("DtoH", "exposed-d2h"), ("HtoD", "exposed-h2d"))
        for times, severity in ((1, "info"), (4, "warning"))
    ),
    *(
        (start_up(*names), dict.fromkeys(("startup-dominates", "first-launch"), "info"), "")
        for names in (["stencil"] * 40, [f"stencil_{place}" for place in range(40)])
    ),
    (model_loading, {"startup-dominates": "info"}, ""),
    (first_call(180 * MS), {"first-launch": "cudaMallocManaged first made the context"}, ""),
    (first_call(100 * US), {}, "first-launch"),
]


@pytest.mark.parametrize(("write", "there", "absent"), CAUSES)
def test_causes_of_programs(
    write: Callable[[Thread], None],
    there: dict[str, float | str | None],
    absent: str,
    tmp_path: Path,
) -> None:
    rows = concluded(on_one(tmp_path, write))
    for name, known in there.items():
        row = rows[name]
        if isinstance(known, float):
            assert row["recoverable_share"] == pytest.approx(known, abs=0.05)
        elif known is not None:
            assert known == row["severity"] or known in str(row["evidence"])
    for name in absent.split():
        row = rows.get(name.removesuffix("?"), {})
        assert not row or (name.endswith("?") and row["severity"] == "info")
    assert write is not model_loading or next(iter(rows)) != "startup-dominates", "a fact"
    assert not any("data loading" in str(row["evidence"]).lower() for row in rows.values())


def test_gaps_in_mpi_calls_are_said_to_be(tmp_path: Path) -> None:
    path = on_one(tmp_path, mpi_solver).export.write()
    worst = gaps(path).records()[0]
    assert worst["cause"] == "exposed-communication"
    assert "MPI_Waitall" in str(worst["host_activity"])
    for options in ({}, {"rank_regex": "job--iteration(\\d+)"}):
        rows = findings(path, **options).records()  # type: ignore[arg-type]
        (row,) = (row for row in rows if row["id"] == "exposed-communication")
        assert str(row["next_command"]).startswith(f"nsightpy gaps {path} ")
        assert str(row["next_command"]).endswith(" --iteration steady")
        assert row["start_ns"] == worst["start_ns"]


def test_calls_that_last_beyond_the_capture_are_cut(tmp_path: Path) -> None:
    machine = on_one(tmp_path, start_up(*["scatter"] * 50))
    machine.export.duration_ns = 400 * MS
    machine.export.library("OSRT_API", 0, 2_000 * MS, "sem_wait")
    told = str(concluded(machine)["startup-dominates"]["evidence"])
    assert "of the 400 ms in which device 0 was captured" in told


def test_what_repeats_inside_a_graph_launch_is_no_iteration(tmp_path: Path) -> None:
    found = iterations(on_one(tmp_path, tiny_kernels_in_graphs).export.write())
    assert len(found) == 30
    assert "by repeated kernel sequence, 1 launch each" in " ".join(found.notes)


def test_processes_that_share_a_gpu_are_said_to(tmp_path: Path) -> None:
    machine = on_one(tmp_path, busy)
    other = machine.export.process(2_000, "worker")
    machine.export.cuda_device(process=other)
    machine.export.kernel(5 * MS, 9 * MS, "op", launch=(4 * MS, 4 * MS + 9), process=other)
    said = findings(machine.export.write()).notes
    assert sum("2 processes share one NVIDIA H100" in note for note in said) == 1


def test_a_call_that_stages_a_copy_goes_with_it(tmp_path: Path) -> None:
    """Uploads of pageable memory return a moment before the copy is done."""

    def write(thread: Thread) -> None:
        for _ in range(50):
            begin, end = thread.now + 20 * US, thread.now + 720 * US
            call = (thread.now, end - 10 * US)
            thread.export.memcpy(begin, end, 4_000_000, "HtoD", source="Pageable", launch=call)
            thread.now, thread.machine.free[0, 7] = call[1], end
            thread.kernel("stencil", 300 * US)
            thread.wait()

    row = concluded(on_one(tmp_path, write))["exposed-h2d"]
    gain, most = (float(str(row[f"{of}_share"])) for of in ("gain", "recoverable"))
    assert 0.6 < 0.95 * most < gain <= most


@pytest.mark.parametrize("change", ["later", "other names", "device", "process", "no ranges"])
def test_conclusions_do_not_depend_on_what_does_not_matter(change: str, tmp_path: Path) -> None:
    def concluded(changed: str) -> tuple[set[tuple[object, ...]], int]:
        machine = Machine(tmp_path / f"{changed}.sqlite")
        thread = machine.thread(now=7_000 * MS if changed == "later" else MS)
        begin, name = thread.now, "f" if changed == "other names" else "flux"
        for _ in range(20):
            thread.copy("HtoD", 4_000_000, 700 * US, source="Pinned")
            thread.kernel(f"{name}_a", 3 * MS)
            thread.kernel(f"{name}_b", 300 * US)
            thread.wait()
            thread.now += 2 * MS
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

    assert concluded("nothing") == concluded(change)


# Several threads and devices


def layers(thread: Thread, device: int = 0, after: int = 0) -> int:
    done = after
    for name in ("norm", "gemm", "attention", "gemm", "gelu") * 8:
        done = thread.kernel(name, 80 * US, device=device, after=after)
    return done


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


@pytest.mark.parametrize(
    ("write", "share"),
    [(halves_of_a_model, 0.49), (replicas, 0.63), (barriers, 0.33), (one_after_another, 0.5)],
)
def test_devices_that_wait_for_each_other(
    write: Callable[[Machine], None], share: float, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "report.sqlite", 2)
    write(machine)
    rows = concluded(machine)
    assert rows["imbalance"]["recoverable_share"] == pytest.approx(share, abs=0.03)
    assert rows["imbalance"]["severity"] == "warning"
    assert not {"capture-incomplete", "host-gap"} & set(rows)
    longest = gaps(machine.export.path).records()[0]
    assert longest["cause"] == "imbalance"
    assert "waiting for another device" in str(longest["host_activity"])


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


@pytest.mark.parametrize(("write", "share"), [(requests, 0.8), (pauses, 0.48)])
def test_threads_that_do_not_wait_for_each_other(
    write: Callable[[Machine], None], share: float, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "report.sqlite", 2)
    write(machine)
    rows = concluded(machine)
    assert rows["host-gap"]["severity"] == "warning"
    assert rows["host-gap"]["recoverable_share"] == pytest.approx(share, abs=0.05)
    # what comes after a device's last work is nothing that the capture lacks
    assert "capture-incomplete" not in rows
    assert "imbalance" not in rows or rows["imbalance"]["severity"] == "info"


def copies_between_memories(thread: Thread) -> None:
    for _ in range(15):
        thread.kernel("process", 5 * MS)
        thread.copy("DtoD", 1 << 20, 900 * US)


def full_memory(thread: Thread) -> None:
    thread.export.memory_usage(1, 80_000_000_000, process=thread.machine.process)
    thread.kernel("first", MS)


def lost_events(thread: Thread) -> None:
    thread.export.diagnostic(5, "CUDA events were lost.", severity=3)
    thread.kernel("only", 9 * MS)


def without_calls(thread: Thread) -> None:
    for start in range(MS, 30 * MS, MS):
        thread.export.kernel(start, start + 600 * US, "step")


@needs_reports
def test_every_rule_is_true_of_some_capture(tmp_path: Path) -> None:
    """One that is true of none says nothing that anybody needs, and goes."""
    names = {rule.name for rule in (*RULES, *CAPTURE_RULES)}
    kineto = NSYS.parent / "kineto"
    paths = [*sorted(NSYS.glob("*.sqlite")), ROOT / "sample_reports" / "training_4rank"]
    paths += [kineto / f"{name}.json.gz" for name in ("sglang_decode_graphs", "rank3_of8_a100")]
    network = TrainingJob(tensor=2, data=2, ranks_per_node=2, bandwidth_between_nodes=2.4)
    paths.append(tmp_path / "network")
    paths[-1].mkdir()
    network.write(paths[-1])
    programs = (migrating_pages, waits_of_others, copies_between_memories, full_memory)
    for write in (*programs, lost_events, without_calls):
        paths.append(on_one(tmp_path, write, write.__name__).export.write())
    for devices in (barriers, one_after_another):
        machine = Machine(tmp_path / f"{devices.__name__}.sqlite", 2)
        devices(machine)
        paths.append(machine.export.write())
    for path in paths:
        names -= set(findings(path).column("finding"))
    several = [NSYS / f"{name}_a100_2024.6.sqlite" for name in ("gpt2.7b", "cudagraph")]
    names -= set(findings(several).column("finding"))
    assert names == set()
