"""compare on real captures, from the command line, and on what cannot be compared."""

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest

import nsightpy
from nsightpy.errors import NsightpyError, ReportError, UsageError
from nsightpy.output.sentences import confidence
from nsightpy.results.comparison import SLOWER
from tests.support.compared_jobs import Jobs
from tests.support.reports import NSYS, REPORTS, ask, needs_reports
from tests.support.samples import NCU
from tests.support.trace_events import changed_trace

MFU = [NSYS / f"mfu_2gpu_{side}_h100_2026.2.sqlite" for side in ("before", "after")]
TRIXI = NSYS / "trixi_v100_2023.1.sqlite"
HTA = REPORTS / "kineto" / "rank3_of8_a100.json.gz"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    made = Jobs(tmp_path_factory.mktemp("compared"))
    names = ("before", "slower 10 %")
    return {what: [str(run) for run in made.runs(what, 4)] for what in names}


@pytest.mark.slow
def test_exit_codes_of_gates(runs: dict[str, list[str]], tmp_path: Path) -> None:
    sides = (*runs["before"], "--", *runs["slower 10 %"])
    name, path = "flash_bwd_dq_dk_dv", tmp_path / "x.xml"
    for gate, code in (
        ((), 0),
        (("--gate", "5%"), 0),
        (("--gate", "0.4%", "--gate-ns", "20us"), 3),
        (("--gate", "0.4%", "--gate-ns", "20ms"), 0),
        (("--gate", "3%", "--gate-on", name, "-o", path), 3),
    ):
        ask("compare", *gate, *sides, expect=code)
    assert "<failure" in (tmp_path / "x.xml").read_text()


@pytest.mark.slow
def test_a_baseline_from_the_command_line(runs: dict[str, list[str]], tmp_path: Path) -> None:
    base = tmp_path / "base.json"
    kept = ask("compare", "--save-baseline", base, *runs["before"])
    assert kept.stdout == b""
    assert "4 runs are kept in" in kept.stderr
    assert "exists" in ask("compare", "--save-baseline", base, *runs["before"], expect=1).stderr
    ask("compare", "--baseline", base, "--gate", "0.4%", *runs["slower 10 %"], expect=3)


def test_the_floor_is_given_as_options(runs: dict[str, list[str]]) -> None:
    found = ask("compare", "--noise", *runs["before"])
    assert "Noise" in found.text
    assert "--gate " in found.text


def test_wrong_usage_is_said(runs: dict[str, list[str]]) -> None:
    first, second = runs["before"][:2]
    which = "which runs are before and which after?"
    for words, said in (
        *(((first,), which), ((first, second, first), which), ((first, "--"), which)),
        ((first, "--", second, "--gat", "3%"), "No such option"),
        (("--gate", "much", first, second), "from 0 to below 100 %"),
        (("--gate", "300%", first, second), "from 0 to below 100 %"),
        (("--gate-on", "nothing", first, second), "0 kernels, ranges or collectives are called so"),
        (("--noise", first), "two runs of the same thing"),
        (("--noise", first, "--", second), "give one side"),
    ):
        found = ask("compare", *words, expect=2)
        assert said in found.stderr, words
    assert "matches no file" in ask("compare", first, f"{second}.none*", expect=1).stderr


@needs_reports
def test_what_repeats_on_both_sides_is_compared_where_there_are_no_steps() -> None:
    """Windows of one length: the layers tell that each takes longer, and where its time goes."""
    mfu = nsightpy.compare(*MFU)
    assert (mfu.unit, mfu.spread, mfu.step.verdict) == ("repetition", "steps", SLOWER)
    runs = (*mfu.before.runs, *mfu.after.runs)
    assert [run.units["repetition"].count for run in runs] == [16, 15]
    assert {run.circumstances["devices"] for run in runs} == {"2"}
    assert mfu.step.before_ns == pytest.approx(16.7e6, rel=0.01)
    assert mfu.step.after_ns == pytest.approx(19.0e6, rel=0.02)
    assert max(mfu.parts, key=lambda one: one.delta_ns).name == "idle: launch-bound"
    assert next(one for one in mfu.parts if one.name == "compute").verdict == "same"
    assert mfu.ranges[0].name.startswith("FSDP::pre_forward")
    assert sum(one.delta_ns for one in mfu.parts) == mfu.step.delta_ns
    assert "a part of a step" in mfu.notes[0]


@needs_reports
def test_a_trace_against_a_changed_copy(tmp_path: Path) -> None:
    slower = "at::native::CUDAFunctor_add<float>"

    def change(trace: dict[str, Any]) -> None:
        for event in trace["traceEvents"]:
            if event.get("cat", "").lower() == "kernel" and slower in event["name"]:
                event["dur"] = round(1.5 * event["dur"])

    found = nsightpy.compare(HTA, changed_trace(HTA, tmp_path / HTA.stem, change))
    assert (found.unit, found.spread, found.step.p_value) == ("step", "steps", None)
    adds = [one for one in found.kernels if slower in one.name and (one.before_ns or 0) > 10**6]
    assert adds
    assert [one.ratio for one in adds] == [pytest.approx(1.5, rel=0.02)] * len(adds)
    assert {one.verdict for one in adds} == {SLOWER}
    others = [one for one in found.kernels if slower not in one.name]
    assert not [one for one in others if one.delta_ns]
    assert found.parts[0].delta_ns > 0


def test_measured_kernels_are_compared_by_launch(tmp_path: Path) -> None:
    copy = tmp_path / "after.csv"
    shutil.copy(NCU, copy)
    found = nsightpy.compare(NCU, copy)
    assert (found.unit, found.parts) == ("launch", ())
    assert found.kernels
    assert all(one.delta_ns == 0 for one in found.kernels)
    figures = {name: (a, b) for one in found.kernels for name, a, b in one.figures}
    assert {"sol_compute_pct", "sol_memory_pct", "roof_fraction"} <= figures.keys()
    assert all(a == b for a, b in figures.values())
    with pytest.raises(UsageError, match="have no timeline: --iteration"):
        nsightpy.compare(NCU, copy, iteration=3)


def measured_again(path: Path, factor: float) -> Path:
    """The launches of NCU with other durations."""
    lines = list(csv.reader(NCU.read_text(encoding="utf-8").splitlines()))
    time = lines[0].index("gpu__time_duration.sum")
    for line in lines[2:]:
        line[time] = str(float(line[time].replace(",", "")) * factor)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(lines)
    return path


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(37.0, "slower"), (1.4, "slower"), (1.2, "cannot tell"), (0.7, "faster")],
)
def test_launches_measured_once(factor: float, verdict: str, tmp_path: Path) -> None:
    found = nsightpy.compare(NCU, measured_again(tmp_path / "after.csv", factor))
    assert {one.verdict for one in (found.step, found.kernels[0])} == {verdict}
    assert found.step.ratio_low is not None
    assert found.step.ratio_high is not None
    assert found.step.ratio_low < factor < found.step.ratio_high
    assert "interval" in confidence(found)
    assert "if each measurement is within 15 %" in confidence(found)
    assert "95 %" not in confidence(found)


@needs_reports
def test_graphs_traced_as_a_whole_are_rows_with_their_spread() -> None:
    path = NSYS / "cudagraph_a100_2024.6.sqlite"
    found = nsightpy.compare(path, path)
    graphs = [one for one in found.kernels if one.name.startswith("CUDA graph ")]
    replays = nsightpy.graphs(path).records()
    assert sum(one.before_count or 0 for one in graphs) == 1
    assert len(graphs) == len({one["graph"] for one in replays})
    assert all((one.ratio, one.verdict) == (1.0, "same") for one in graphs)
    samples = [one.samples for one in found.before.runs[0].units["step"].works if one.samples]
    assert all(len(one) == found.before.runs[0].units["step"].count for one in samples)


NONE = NSYS / "no_kernels_a100_2026.2.sqlite"
OTHER = NSYS / "gpt2.7b_a100_2024.6.sqlite"


@needs_reports
@pytest.mark.parametrize(
    ("before", "after", "error", "said"),
    [
        (NONE, TRIXI, NsightpyError, r"no_kernels.*holds no GPU work"),
        (TRIXI, OTHER, NsightpyError, "no kernel in common"),
        (TRIXI, HTA, UsageError, "compare runs of one tool"),
        (TRIXI, NCU, UsageError, "compare runs of one tool"),
    ],
)
def test_what_is_not_compared(before: Path, after: Path, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        nsightpy.compare(before, after)
    with pytest.raises(ReportError, match="is no baseline"):
        nsightpy.compare(TRIXI, baseline=NCU)
