"""What is concluded from programs of several threads or devices whose causes are known."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from nsightpy.commands.findings.command import findings
from nsightpy.commands.gaps import gaps
from nsightpy.results import Value
from tests.support.launchers import MS, US, Machine, Thread


def concluded(machine: Machine) -> dict[str, dict[str, Value]]:
    return {str(row["id"]): row for row in findings(machine.export.write()).records()}


def layers(thread: Thread, device: int = 0, after: int = 0) -> int:
    done = after
    for name in ("norm", "gemm", "attention", "gemm", "gelu") * 8:
        done = thread.kernel(name, 80 * US, device=device, after=after)
    return done


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
        threads[0].now = threads[1].now = max(thread.now for thread in threads) + 20 * US


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


def test_threads_with_requests_of_their_own_are_not_waiting_for_each_other(tmp_path: Path) -> None:
    chosen, machine = random.Random(1), Machine(tmp_path / "report.sqlite", 2)
    for device in range(2):
        thread = machine.thread(2001 + device)
        for _ in range(30):
            thread.now += chosen.randint(3, 30) * MS
            layers(thread, device)
            thread.copy("DtoH", 8, 2 * US, device=device, blocks=True, target="Pageable")
    rows = concluded(machine)
    assert rows["host-gap"]["severity"] == "warning"
    # what comes after a device's last work is nothing that the capture lacks
    assert "capture-incomplete" not in rows
    assert "imbalance" not in rows or rows["imbalance"]["severity"] == "info"


def test_threads_that_pause_together_are_not_waiting_for_each_other(tmp_path: Path) -> None:
    """A thread for each device, as of JAX: between steps nothing is launched on any."""
    machine = Machine(tmp_path / "report.sqlite", 2)
    threads = [machine.thread(2001), machine.thread(2002)]
    for _ in range(20):
        for device, thread in enumerate(threads):
            layers(thread, device)
            thread.wait(device)
        threads[0].now = threads[1].now = max(thread.now for thread in threads) + 3 * MS
    rows = concluded(machine)
    assert rows["host-gap"]["recoverable_share"] == pytest.approx(0.48, abs=0.02)
    assert "imbalance" not in rows


@pytest.mark.parametrize(("name", "cause"), [("write", "host-gap"), ("poll", "sync-drain")])
def test_short_waits_for_files_are_no_drained_queue(name: str, cause: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "report.sqlite")
    thread = machine.thread()
    for _ in range(50):
        thread.kernel("step", MS)
        thread.wait()
        thread.in_os(name, 600 * US)
    rows = concluded(machine)
    assert rows[cause]["recoverable_share"] == pytest.approx(0.37, abs=0.02)
    other = {"host-gap": "sync-drain", "sync-drain": "host-gap"}[cause]
    assert other not in rows or rows[other]["severity"] == "info"


@pytest.mark.parametrize(("works", "said"), [(10 * MS, True), (100 * US, False)])
def test_work_that_could_be_done_beside_what_is_waited_for(
    works: int, said: bool, tmp_path: Path
) -> None:
    """A result is read in two parts, then written to a file."""
    machine = Machine(tmp_path / "report.sqlite")
    thread = machine.thread()
    for _ in range(30):
        thread.kernel("product", works)
        thread.copy("DtoH", 8, 2 * US, blocks=True, target="Pageable")
        thread.copy("DtoH", 8, 2 * US, blocks=True, target="Pageable")
        thread.now += 6 * MS
    rows = concluded(machine)
    assert rows["host-gap"]["severity"] == "warning"
    text = str(rows.get("sync-drain", {}).get("evidence"))
    assert ("could be done beside" in text) == said
    assert not said or rows["sync-drain"]["severity"] == "info"


@pytest.mark.parametrize(("times", "severity"), [(1, "info"), (4, "warning")])
@pytest.mark.parametrize(
    ("kind", "finding", "memory"),
    [("DtoH", "exposed-d2h", "target"), ("HtoD", "exposed-h2d", "source")],
)
def test_a_copy_that_is_done_once_is_no_warning(
    kind: str, finding: str, memory: str, times: int, severity: str, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "report.sqlite")
    main = machine.thread()
    for _ in range(times):
        for place in range(5):
            main.kernel(f"different_{place}", 8 * MS)
        main.copy(kind, 200_000_000, 40 * MS, blocks=True, **{memory: "Pageable"})
    main.kernel("last", MS)
    rows = concluded(machine)
    assert {rows[name]["severity"] for name in (finding, "pageable-copies")} == {severity}
