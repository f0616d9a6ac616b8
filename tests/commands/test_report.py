"""The report page as data: it says what the commands say, and reads each report once."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from simulator import TrainingJob

import nsightpy
from nsightpy.cli.report import command
from nsightpy.cli.sides import SIDES
from nsightpy.commands.report import sentences
from nsightpy.commands.report.catalogue import QUESTIONS
from nsightpy.commands.report.comparison import with_comparison
from nsightpy.commands.report.one_pass import OnePass, answers
from nsightpy.commands.report.passed import CHECKS
from nsightpy.errors import FAULTS, ReportError
from nsightpy.output.sentences import answer
from nsightpy.render.page.page import page_text
from nsightpy.report_sets.rank_opening import open_ranks
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table
from nsightpy.results.page import Page
from tests.support.compared_jobs import Jobs
from tests.support.reports import NSYS, REPORTS, ROOT, needs_reports

SAMPLES = ROOT / "sample_reports"
TRAINING = SAMPLES / "training_4rank"
MEASURED = SAMPLES / "training_4rank.ncu.csv"
SNAPSHOT = SAMPLES / "training_memory.pickle"


@pytest.fixture(scope="module")
def training() -> Page:
    return nsightpy.report([TRAINING, MEASURED, SNAPSHOT])


def ids(page: Page) -> list[str]:
    return [one.id for one in page.shown]


@pytest.mark.parametrize(
    "question", [one for one in QUESTIONS if one.id != "memory-usage"], ids=lambda one: one.id
)
def test_sections_hold_what_the_commands_say(question: Any, training: Page) -> None:
    section = training.section(question.id)
    try:
        told: Table = question.ask(str(TRAINING))
    except ReportError:
        told = Table(question.id, (), ())
    if not told.rows:
        assert section.is_empty
        assert section.missing
        return
    assert section.says.endswith(".")
    if not question.most:
        (picture,) = section.pictures
        assert picture.result.rows == told.rows
        return
    (shown,) = section.tables
    assert shown.total == len(told)
    assert len(shown.table) == min(len(told), question.most)
    for name in shown.table.columns:
        assert shown.table.column(name) == told.column(name)[: question.most]
    dropped = set(told.columns) - set(shown.table.columns)
    assert all(value is None for name in dropped for value in told.column(name)[: question.most])
    assert set(question.main) & set(told.columns)


def test_two_sides_begin_with_what_changed(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    sides = [[str(run) for run in jobs.runs(what, 4)] for what in ("before", "slower 10 %")]
    told = nsightpy.compare(*sides)
    plain = Page("after", (sides[1][0],), "The device computes.", facts=(("GPU", "simulated"),))
    page = with_comparison(plain, *sides, {})
    assert page.verdict == f"{answer(told)}. The device computes."
    assert [label for label, _ in page.facts] == ["Before", "After", "Differs", "GPU"]
    (section,) = page.sections
    parts, contributors, ranges = section.tables
    assert parts.table.rows == tuple(one.row for one in (*told.parts, told.step))
    assert contributors.total == len(told.kernels) + len(told.collectives)
    assert ranges.total == len(told.ranges)
    assert section.command == f"nsightpy compare {' '.join(sides[0])} -- {' '.join(sides[1])}"
    text = "".join(page_text(page))
    assert text.index('id="comparison"') > text.index('id="verdict"')
    assert "Parts of the step" in text


def test_sides_on_the_command_line() -> None:
    words = ["a", "b", "--", "c", "-o", "x.html"]
    context = command.make_context("report", words)
    assert context.meta[SIDES] == (("a", "b"), ("c",))
    assert context.params["reports"] == ("a", "b", "c")
    assert context.params["output"] == "x.html"


def test_findings_are_those_of_the_command_with_bound_and_place(training: Page) -> None:
    told = nsightpy.findings(str(TRAINING)).records()
    assert [card.finding.id for card in training.cards] == [one["id"] for one in told]
    gap = next(card for card in training.cards if card.finding.id == "host-gap")
    assert gap.bound == "at most 15 % (2.04 ms per iteration)"
    assert gap.where == "rank 1, device 1, at 551 ms, for 3.71 ms"
    assert gap.section == "gaps"
    assert training.verdict == (
        "The 4 devices compute 66 %, communicate alone 14 %, copy alone 3.8 % and are idle 16 % "
        "of the steady state. First of all: straggler, at most 15 % (2.09 ms per iteration)."
    )


def test_measurements_and_snapshots_have_sections_beside_the_ranks(training: Page) -> None:
    gains = nsightpy.headroom(str(TRAINING), ncu=str(MEASURED))
    assert training.section("headroom").tables[0].table.column("name") == gains.column("name")
    roofline = nsightpy.roofline(str(MEASURED), by="variant")
    (shown,) = training.section("roofline").tables
    assert shown.table.column("kernel") == roofline.column("kernel")
    usage = nsightpy.memory_usage(str(SNAPSHOT))
    (held,) = training.section("memory-usage").tables
    assert held.table.column("peak_bytes") == usage.column("peak_bytes")[: len(held.table)]
    assert training.inputs[-2:] == (str(MEASURED), str(SNAPSHOT))


def test_a_folder_may_hold_all_kinds(tmp_path: Path) -> None:
    for path in (*TRAINING.glob("*.sqlite"), MEASURED, SNAPSHOT):
        (tmp_path / path.name).symlink_to(path)
    page = nsightpy.report(tmp_path)
    assert len(page.inputs) == 6
    assert {"kernels", "headroom", "roofline", "memory-usage"} <= set(ids(page))


def test_measurements_alone_and_snapshots_alone_make_a_page() -> None:
    measured = nsightpy.report(SAMPLES / "kernels_h100.ncu.csv")
    assert ids(measured) == ["roofline", "capture"]
    assert "Nsight Systems" in measured.section("headroom").missing
    remembered = nsightpy.report(SNAPSHOT)
    assert ids(remembered) == ["memory-usage"]
    assert "The peak is" in remembered.verdict


def test_traces_show_their_operators() -> None:
    page = nsightpy.report(SAMPLES / "torch_2rank")
    told = nsightpy.operators(str(SAMPLES / "torch_2rank"))
    assert page.section("operators").tables[0].table.column("operator") == told.column("operator")
    assert "PyTorch profiler" in dict(page.facts)["Capture"]
    missing = page.section("memory-usage").missing
    assert "profile_memory=True" in missing


@needs_reports
def test_a_capture_without_gpu_work_says_so_and_shows_no_zeros() -> None:
    page = nsightpy.report(NSYS / "no_kernels_a100_2026.2.sqlite")
    assert ids(page) == ["capture"]
    assert page.verdict.startswith("The capture holds no GPU work")
    assert page.passed == ()
    assert all(section.missing for section in page.absent)
    assert "-t cuda" in page.verdict


@needs_reports
@pytest.mark.parametrize(
    "path",
    [
        "nsys/ddp_2rank_nccl_rtx3090_2026.3.sqlite",
        "nsys/mordred_rtx6000_2021.sqlite",
        "nsys/memory_usage_windows_gtx1060_2022.1.sqlite",
        "nsys/trixi_v100_2023.1.sqlite",
        "kineto/cpu_only_rank34.pt.trace.json.gz",
        "kineto/vllm_piecewise_graphs.json.gz",
        "kineto/bert_small_mi300_rocm.json.gz",
        "torch_memory/xl_forward_ctx128.pickle",
    ],
)
def test_real_reports_make_pages(path: str) -> None:
    page = nsightpy.report(REPORTS / path)
    assert page.verdict
    for section in page.sections:
        assert section.says if not section.is_empty else section.missing
        assert "fault of nsightpy" not in section.missing


def test_each_report_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    read = OnePass.read

    def counting(ranks: OnePass) -> None:
        reads.append(len(ranks._wanted))
        read(ranks)

    monkeypatch.setattr(OnePass, "read", counting)
    nsightpy.report(TRAINING)
    # once more for what depends on what was read: stretches of the common clock, one kernel
    assert len(reads) == 2
    assert reads[0] >= len(QUESTIONS)
    assert reads[1] == 2


def _pids(report: SystemReport) -> int:
    return len(report.pids)


def _failing(report: SystemReport) -> int:
    raise ReportError(report.path, "is broken in one respect", "mend it.")


def _failing_on_rank_0(report: SystemReport) -> int:
    if "rank0" in report.path.name:
        raise ValueError("nobody foresaw this")
    return 1


def asked(function: Callable[[SystemReport], int], ranks: OnePass) -> list[int]:
    return ranks.map(function).values


def test_a_question_that_fails_spoils_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FAULTS)
    ranks = OnePass.of(open_ranks(TRAINING))
    pids, some = answers(ranks, [partial(asked, _pids), partial(asked, _failing_on_rank_0)])
    assert pids == [1, 1, 1, 1]
    assert some == [1, 1, 1]
    with pytest.raises(ReportError, match="broken in one respect"):
        answers(ranks, [partial(asked, _pids), partial(asked, _failing)])


def test_an_unreadable_report_is_left_out_and_named(tmp_path: Path) -> None:
    for path in TRAINING.glob("*.sqlite"):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "train_rank9.sqlite").write_bytes(b"SQLite format 3\0 and no more")
    page = nsightpy.report(tmp_path)
    assert "train_rank9.sqlite" in " ".join(page.section("capture").notes)
    assert len(page.section("ranks").tables[0].table) == 4


def test_a_part_of_the_capture_is_what_all_sections_are_about() -> None:
    page = nsightpy.report(TRAINING, rank=2, iteration="3-4")
    told = nsightpy.kernels(str(TRAINING), rank=2, iteration="3-4")
    assert page.section("kernels").tables[0].table.rows == told.rows
    assert page.section("kernels").command.endswith("--rank=2 --iteration=3-4")
    assert page.section("ranks").missing


def test_passed_checks_are_those_that_found_nothing(training: Page) -> None:
    found = {card.finding.id for card in training.cards}
    passed = dict(training.passed)
    assert not found & set(passed)
    assert found | set(passed) == {name for name, _, _ in CHECKS}
    documented = re.findall(r"^\| (`[^|]*`) \|", (ROOT / "docs" / "findings.md").read_text(), re.M)
    ids = {name for line in documented for name in re.findall(r"`([a-z0-9-]+)`", line)}
    assert ids - {"no-gpu-work", "healthy"} == {name for name, _, _ in CHECKS}


def test_checks_that_the_capture_cannot_answer_do_not_pass(tmp_path: Path) -> None:
    TrainingJob(name="one", iterations=2, warmup=1, layers=1, buckets=1).write(tmp_path)
    page = nsightpy.report(sorted(tmp_path.glob("*.sqlite"))[0])
    passed = dict(page.passed)
    assert "straggler" not in passed
    assert "small-grid" in passed


def test_sentences_are_about_the_most_and_the_median() -> None:
    columns = ("range", "total_range_ns", "total_projected_ns", "share_of_busy")
    rows = (("long on the host", 9_000_000, 1_000, 0.1), ("busy", 5_000, 4_000_000, 0.004))
    ranges = Table("nvtx", tuple(Field(name, "text") for name in columns), rows)
    assert sentences.ranges(ranges) == (
        "busy spans the most GPU time: 4.00 ms, 0.4 % of the busy time, in 5.00 us on the host."
    )
    instances = Table(
        "pace",
        (Field("name", "text"), Field("duration_ns", "ns")),
        tuple(("k", duration) for duration in (1_000, 2_000, 4_000, 6_000)),
    )
    assert sentences.pace(instances) == (
        "k: 4 instances of 3.00 us (median); the longest instance takes 2.00 times that."
    )
