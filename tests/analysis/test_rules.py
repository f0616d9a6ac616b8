"""What rules conclude from evidence that is made up: order, severity, and one fact told once."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nsightpy.analysis.findings.engine import RULES, judge
from nsightpy.analysis.findings.evidence import Evidence, Gpu, Group, JobEvidence, Place
from nsightpy.analysis.findings.work_evidence import COLUMNS, with_kernels
from nsightpy.analysis.intervals import NOTHING, Spans
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.analysis.work_graph.host_activity import COMPILING
from nsightpy.results import Finding, Note, notes
from tests.support.frames import frame

MS = 1_000_000
WINDOW = 1_000 * MS
ROW = Evidence(
    0,
    0,
    TimeBudget(Spans.of(0, WINDOW), WINDOW, WINDOW, 0, 0, 0, 0, 0, 0),
    names=9,
    gpu=Gpu(108, 8),
    iterations=10,
    whole_ns=WINDOW,
    capture_ns=WINDOW,
)
PLACE = Place(0, 5 * MS)


def judged(*rows: Evidence, **job: Any) -> dict[str, Finding]:
    """The findings by id, in their order."""
    return {finding.id: finding for finding in judge(JobEvidence(rows, **job))}


def idle(**causes: int) -> Evidence:
    """A device that was idle for so many ms by cause."""
    times = {cause.replace("_", "-"): ms * MS for cause, ms in causes.items()}
    budget = replace(ROW.budget, busy_ns=WINDOW - sum(times.values()))
    groups = {cause: Group(alone_ns=time, worst=PLACE) for cause, time in times.items()}
    return replace(ROW, budget=budget, groups={"kernels": Group(count=100), **groups}, causes=times)


def of_kernels(**named: dict[str, int]) -> dict[str, Group]:
    """Groups by the ms of their kernels by name; `kernels` has all."""
    groups = {}
    for group, by_name in named.items():
        times = {name: ms * MS for name, ms in by_name.items()}
        total, top = sum(times.values()), max(times, key=lambda name: times[name])
        most = {"name": top, "named_ns": times[top], "worst": PLACE, "by_name": times}
        groups[group.replace("_", "-")] = Group(total, total, total, count=len(by_name), **most)
    return groups


def test_the_largest_loss_comes_first_whatever_its_severity() -> None:
    """Idle time of which another cause has more in most intervals is info, and still first."""
    row = idle(host_gap=580)
    work = of_kernels(kernels={"a": 250}, elementwise={"a": 56})
    row = row.having(work, beside=True)
    found = judged(row)
    assert list(found) == ["host-gap", "unfused-elementwise"]
    assert [found[name].severity for name in found] == ["info", "warning"]


def test_idle_time_without_a_cause_is_no_headline_beside_more_of_a_known_one() -> None:
    found = judged(idle(host_gap=580, unknown=50))
    assert list(found) == ["host-gap", "capture-incomplete"]
    lost = [Note("CUDA events were lost.", kind=notes.LOST)]
    found = judged(idle(host_gap=580, unknown=50), problems=lost)
    assert list(found) == ["capture-incomplete", "host-gap"], "all figures may be wrong"


def test_rules_are_about_groups_that_are_explained() -> None:
    named = {rule.of or rule.id for rule in RULES if isinstance(rule.of, str)}
    explained = re.findall(r"^ +- (.+?): ", str(Evidence.__doc__), re.MULTILINE)
    groups = {name for names in explained for name in names.split(", ")}
    assert named | set(launched(("k", 5, 9)).groups) == groups


def test_one_kernel_is_one_fact() -> None:
    same = {"solve": 900}
    groups = of_kernels(
        kernels=same | {"a": 50}, top=same, tiny_blocks=same, small_grid=same, fp32_gemm={"a": 50}
    )
    found = judged(replace(ROW, groups=groups))
    assert [(name, one.part_of) for name, one in sorted(found.items())] == [
        *(("dominating-kernel", "tiny-blocks"), ("fp32-gemm", "")),
        *(("small-grid", "tiny-blocks"), ("tiny-blocks", "")),
    ]
    groups |= of_kernels(tiny_blocks={"solve": 500})
    assert judged(replace(ROW, groups=groups))["small-grid"].part_of == ""


def test_blocking_calls_are_the_cause_of_launches_one_by_one() -> None:
    def drained(ahead_ns: int) -> Evidence:
        parts = {"sync-drain": 10 * MS, "launch-bound": ahead_ns}
        group = Group(alone_ns=sum(parts.values()), worst=PLACE, by_name=parts)
        return idle(launch_bound=150, sync_drain=10).having({"sync-drain": group})

    found = judged(drained(140 * MS))
    assert list(found) == ["sync-drain", "launch-bound"]
    assert found["launch-bound"].part_of == "sync-drain"
    assert judged(drained(20 * MS))["launch-bound"].part_of == ""


@pytest.mark.parametrize(("late", "whole"), [("rank 1", "straggler"), ("rank 0", "")])
def test_slow_collectives_are_part_of_the_straggler_that_makes_them(late: str, whole: str) -> None:
    budget = replace(ROW.budget, exposed_communication_ns=100 * MS)
    slow = Group(alone_ns=90 * MS, count=2, by_name={f"waiting for {late}": 90 * MS})
    waiting = replace(ROW, budget=budget, groups={"slow-collectives": slow})
    parts = {"waiting for rank 1": 100 * MS}
    groups = {"straggler": Group(alone_ns=100 * MS, name="90 %", by_name=parts)}
    straggler = replace(ROW, rank=1, groups=groups)
    assert judged(waiting, straggler)["slow-collectives"].part_of == whole


@pytest.mark.parametrize(
    ("iterations", "captured", "said"),
    [
        (10, 4 * WINDOW, "outside of its steady iterations"),
        (None, 3 * WINDOW, "outside of its work"),
        (10, WINDOW * 3 // 2, ""),
        (None, WINDOW * 3 // 2, ""),
    ],
)
def test_start_up_is_judged_over_the_whole_capture(
    iterations: int | None, captured: int, said: str
) -> None:
    found = judged(replace(idle(host_gap=50), iterations=iterations, capture_ns=captured))
    assert next(iter(found)) == "host-gap", "what can be mended comes first"
    assert ("startup-dominates" in found) == bool(said)
    if said:
        assert found["startup-dominates"].severity == "info"
        assert said in found["startup-dominates"].text


@pytest.mark.parametrize(("lost", "severity"), [(50, "info"), (200, "warning")])
def test_the_pace_of_a_start_up_says_little(lost: int, severity: str) -> None:
    row = replace(idle(launch_bound=lost), iterations=None, capture_ns=4 * WINDOW)
    assert judged(row)["launch-bound"].severity == severity


@pytest.mark.parametrize(("names", "severity"), [(9, "warning"), (2, "info")])
def test_one_of_few_kernels_dominates_whatever_it_does(names: int, severity: str) -> None:
    row = replace(ROW, groups=of_kernels(kernels={"a": 900}, top={"a": 900}), names=names)
    assert judged(row)["dominating-kernel"].severity == severity


@pytest.mark.parametrize(("waits", "severity"), [(600, "info"), (300, "warning")])
def test_kernels_of_a_device_that_waits_for_launches_are_minor(waits: int, severity: str) -> None:
    work = of_kernels(kernels={"a": 100, "b": 100}, small_grid={"a": 100})
    kernels = replace(work["kernels"], count=100)
    found = judged(idle(launch_bound=waits).having({**work, "kernels": kernels}))
    assert found["small-grid"].severity == severity
    assert found["small-grid"].minor == (severity == "info")
    assert not found["launch-bound"].minor


@pytest.mark.parametrize(("count", "said"), [(4040, True), (400, False)])
def test_a_collective_for_each_tensor_is_said_to_be_one(count: int, said: bool) -> None:
    budget = replace(ROW.budget, exposed_communication_ns=40 * MS)
    calls = Group(44 * MS, 40 * MS, 44 * MS, count=count)
    groups = {"collectives": calls, "exposed-communication": Group(alone_ns=40 * MS)}
    found = judged(replace(ROW, budget=budget, groups=groups))["exposed-communication"]
    assert ("a bucket" in found.text) == said


@pytest.mark.parametrize(("live", "said"), [(73, True), (71, False), (0, False)])
def test_memory_that_is_nearly_full(live: int, said: bool) -> None:
    found = judged(replace(ROW, peak_bytes=live << 30, memory_bytes=80 << 30))
    assert ("near-capacity" in found) == said


@pytest.mark.parametrize(("traced", "command"), [(True, "operators"), (False, "kernels")])
def test_in_traces_operators_are_what_to_look_at(traced: bool, command: str) -> None:
    groups = of_kernels(kernels={"a": 900}, elementwise={"a": 400})
    found = judged(replace(ROW, groups=groups, traced=traced))["unfused-elementwise"]
    assert found.next_command.startswith(f"nsightpy {command} ")


def launched(*kernels: tuple[str, int, int]) -> Evidence:
    """Kernels one after the other, in their window: name, length in us, blocks."""
    ends = np.cumsum([1_000 * lasts for _, lasts, _ in kernels]).tolist()
    spans = zip([0, *ends], ends, kernels, strict=False)
    rows = [(start, end, name, blocks, 256) for start, end, (name, _, blocks) in spans]
    row = replace(ROW, budget=replace(ROW.budget, window=Spans.of(0, ends[-1])))
    work = frame(("start_ns", "end_ns", "name", *COLUMNS), rows)
    return with_kernels(row, work, np.zeros(len(kernels), dtype=np.bool_), NOTHING)


@pytest.mark.parametrize(("many_us", "bound"), [(64, True), (200, False)])
def test_what_takes_as_long_with_many_blocks_is_bound_by_latency(many_us: int, bound: bool) -> None:
    found = launched(*[("fft", 62, 1)] * 5, *[("fft", many_us, 120)] * 5)
    for kernels in ("dominating-kernel", "small-grid"):
        text = judged(found)[kernels].text
        assert ("as long with 120 blocks (64.0 us) as with 1 (62.0 us)" in text) == bound


def test_softmax_between_matrix_products_is_attention() -> None:
    product, softmax = ("ampere_bf16_gemm", 50, 900), ("softmax_warp", 20, 900)
    scale, dropout = ("scale_elementwise", 5, 900), ("dropout_elementwise", 5, 900)
    found = launched(*[product, scale, softmax, dropout, product] * 4)
    assert found.groups["attention"].count == 4
    assert "scaled_dot_product_attention" in judged(found)["unfused-elementwise"].text
    loss = [product, *[scale] * 7, softmax]
    assert launched(*loss * 4).groups["attention"].count == 0


@pytest.mark.parametrize(("elements", "said"), [(1, True), (8, False)])
def test_operands_that_are_not_aligned(elements: int, said: bool) -> None:
    name = f"cutlass_80_tensorop_f16_s16816gemm_f16_64x64_32x6_nn_align{elements}"
    found = launched((name, 900, 900), ("other", 50, 900), ("third", 50, 900))
    text = judged(found)["dominating-kernel"].text
    assert ("not aligned to 16 bytes" in text) == said


RUNS = (
    *("Torch-Compiled Region: 0/0", "## Call CompiledFxGraph fabc ##"),
    *("jit(train_step)/jit(main)/dot_general", "/tmp/torchinductor_user/ab/cab.py(72): call"),
)
COMPILES = ("inductor_compile", "backend_compile", "XlaCompile", "autotune", "JIT compilation")


def test_what_was_compiled_runs() -> None:
    assert [name for name in RUNS + COMPILES if COMPILING.search(name)] == [*COMPILES]
