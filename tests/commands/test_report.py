"""The report page as data: it says what the commands say, and reads each report once."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from simulator import TrainingJob

import nsightpy
from nsightpy.analysis.findings.engine import SECTIONS
from nsightpy.commands.report.sections import ENTRIES, Entry, with_comparison
from nsightpy.errors import ReportError
from nsightpy.output.sentences import answer
from nsightpy.query import engine
from nsightpy.query.engine import Question
from nsightpy.query.request import Request
from nsightpy.render.page.page import page_text
from nsightpy.results import Table
from nsightpy.results.page import Page
from tests.support.compared_jobs import Jobs
from tests.support.reports import NSYS, ask, needs_reports, refused
from tests.support.samples import MEASURED, NCU, SNAPSHOT, TRACES, TRAINING


@pytest.fixture(scope="module")
def training() -> Page:
    return nsightpy.report([TRAINING, MEASURED, SNAPSHOT])


def ids(page: Page) -> list[str]:
    return [one.id for one in page.shown]


OTHERS = ("breakdown", "instances", "timeline")
ASKED = [entry for entry in ENTRIES if entry.command.asks and entry.id not in OTHERS]


@pytest.mark.slow
@pytest.mark.parametrize("entry", ASKED, ids=lambda entry: entry.id)
def test_sections_hold_what_the_commands_say_to_people(entry: Entry, training: Page) -> None:
    section = training.section(entry.id)
    try:
        told: Table = entry.command(str(TRAINING), **entry.arguments)
    except ReportError:
        told = Table(entry.id, (), ())
    if not told.rows:
        assert section.is_empty
        assert section.missing
        return
    if not entry.rows:
        (picture,) = section.pictures
        assert picture.result.rows == told.rows
        return
    (shown,) = section.tables
    seen = entry.command.people(told) if entry.command.people else told
    assert shown.table.total == (seen.total_rows or len(seen))
    assert shown.table.columns == seen.columns
    assert shown.table.rows == seen.rows[: entry.rows]
    assert section.command == " ".join(
        ["nsightpy", entry.command.name, str(TRAINING), *entry.words]
    )


@pytest.mark.slow
def test_what_a_section_says_to_type_can_be_typed(training: Page, tmp_path: Path) -> None:
    for section in training.shown:
        more = ("-o", tmp_path / "timeline.png") if section.id == "timeline" else ()
        ask(*shlex.split(section.command)[1:], *more)
    longest = str(nsightpy.kernels(str(TRAINING), top=1).column("Name")[0])
    section = training.section("instances")
    told = nsightpy.instances(str(TRAINING), of=longest, kind="kernel")
    assert section.pictures[0].result.rows == told.rows
    assert section.command == f"nsightpy instances {TRAINING} --of '{longest}' --kind kernel"


@pytest.mark.slow
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
    assert contributors.table.total == len(told.kernels) + len(told.collectives)
    assert ranges.table.total == len(told.ranges)
    assert section.command == f"nsightpy compare {' '.join(sides[0])} -- {' '.join(sides[1])}"
    text = "".join(page_text(page))
    assert text.index('id="comparison"') > text.index('id="verdict"')
    assert "Parts of the step" in text


def test_findings_are_those_of_the_command_with_bound_and_place(training: Page) -> None:
    told = nsightpy.findings(str(TRAINING)).records()
    assert [card.finding.id for card in training.cards] == [one["id"] for one in told]
    gap = next(card for card in training.cards if card.finding.id == "host-gap")
    assert gap.bound == "2.02 ms per iteration to gain, 15 %"
    assert gap.where == "worst in rank 1: 3.71 ms from 551.190 ms on"
    assert gap.section == "gaps"
    assert training.verdict == (
        "4 devices computed 66 %, communicated alone 14 %, copied alone 3.8 %, idled 16 % of the "
        "steady state. First of all: GPU idle: host busy elsewhere, 2.02 ms per iteration to gain, "
        "15 %."
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


@pytest.mark.slow
def test_a_folder_may_hold_all_kinds(tmp_path: Path) -> None:
    for path in (*TRAINING.glob("*.sqlite"), MEASURED, SNAPSHOT):
        (tmp_path / path.name).symlink_to(path)
    page = nsightpy.report(tmp_path)
    assert len(page.inputs) == 6
    assert {"kernels", "headroom", "roofline", "memory-usage"} <= set(ids(page))
    measured = nsightpy.report(NCU)
    assert ids(measured) == ["roofline", "capture"]
    assert "Nsight Systems" in measured.section("headroom").missing
    remembered = nsightpy.report(SNAPSHOT)
    assert ids(remembered) == ["memory-usage"]
    assert (
        remembered.verdict == "Only measurements of Nsight Compute or memory snapshots of PyTorch."
    )
    message = refused("report", TRAINING, "-o", tmp_path / "r.pdf", code=2)
    assert "it writes .html" in message


def test_traces_show_their_operators() -> None:
    page = nsightpy.report(TRACES)
    told = nsightpy.operators(str(TRACES))
    assert page.section("operators").tables[0].table.column("operator") == told.column("operator")
    assert "PyTorch profiler" in dict(page.facts)["Capture"]
    missing = page.section("memory-usage").missing
    assert "profile_memory=True" in missing


@needs_reports
def test_a_capture_without_gpu_work_says_so_and_shows_no_zeros() -> None:
    page = nsightpy.report(NSYS / "no_kernels_a100_2026.2.sqlite")
    assert ids(page) == ["capture"]
    assert page.verdict.startswith("The capture holds no GPU work")
    assert "-t cuda" in page.verdict
    assert page.passed == {}
    assert all(section.missing for section in page.absent)


@pytest.mark.slow
def test_each_report_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    loop = engine._parts

    def counted(request: Request, questions: list[Question[Any]]) -> Any:
        asked.append(len(questions))
        return loop(request, questions)

    monkeypatch.setattr(engine, "_parts", counted)
    nsightpy.report(TRAINING)
    # once more for what depends on what was read
    assert asked[0] >= len(ASKED)
    assert len(asked) == 2


@pytest.mark.slow
def test_a_part_of_the_capture_is_what_all_sections_are_about() -> None:
    page = nsightpy.report(TRAINING, rank=2, iteration="3-4")
    told = nsightpy.kernels(str(TRAINING), rank=2, iteration="3-4")
    assert page.section("kernels").tables[0].table.rows == told.rows
    assert page.section("kernels").command.endswith("--rank=2 --iteration=3-4")


def test_passed_checks_are_those_that_found_nothing(training: Page, tmp_path: Path) -> None:
    found = {card.finding.id for card in training.cards}
    every = {rule.id for rules in SECTIONS.values() for rule in rules if rule.passed}
    assert found.isdisjoint(training.passed)
    assert found | set(training.passed) == every
    TrainingJob(name="one", iterations=2, warmup=1, layers=1, buckets=1).write(tmp_path)
    page = nsightpy.report(sorted(tmp_path.glob("*.sqlite"))[0])
    assert "straggler" not in page.passed  # which one rank cannot answer
    assert "small-grid" in page.passed
