"""kernels --by line: where in the program kernels were launched, by hand and on real traces."""

from collections import Counter
from pathlib import Path

import pytest

import nsightpy
from nsightpy.results import Table, number
from tests.support.reports import NSYS, needs_reports
from tests.support.trace_events import AUTOGRAD, Event, event, launch, operator, written

PYTHON = "python_function"


def a_step() -> list[Event]:
    graph = [*launch(6, 90, 32), event("kernel", "node", 700, 64, correlation=6, stream=7)]
    graph[0]["name"] = "cudaGraphLaunch"
    return [
        event(PYTHON, "/home/me/job/train.py(9): step", 0, 120),
        event(PYTHON, "/home/me/job/model.py(252): forward", 10, 40),
        event(PYTHON, "nn.Module: Linear_0", 11, 30),
        event(PYTHON, "torch/nn/modules/linear.py(124): forward", 12, 28),
        event(PYTHON, "<built-in method linear of type object at 0x7f>", 13, 20),
        operator("aten::linear", 14, 10, 1, **{"Fwd thread id": 0}),
        *launch(1, 15, 1),
        event(PYTHON, "contextlib.py(299): helper", 60, 10),
        *launch(2, 61, 2),
        *graph,
        event(PYTHON, "/usr/lib/python3.12/site-packages/apex/optim.py(7): step", 200, 20),
        *launch(3, 205, 4),
        operator("AddmmBackward0", 300, 20, 1, AUTOGRAD, **{"Fwd thread id": 1}),
        operator("aten::mm", 305, 10, -1, AUTOGRAD),
        *launch(4, 306, 8, AUTOGRAD),
        *launch(5, 400, 16, AUTOGRAD),
    ]


def by_line(table: Table) -> Counter[str | None]:
    times: Counter[str | None] = Counter()
    for row in table.records():
        times[row["line"]] += int(number(row["Total Time (ns)"]))  # type: ignore[index]
    return times


def test_kernels_have_the_line_of_the_program_around_their_launch(tmp_path: Path) -> None:
    table = nsightpy.kernels(written(a_step(), tmp_path), by="line", use_cache=False)
    assert by_line(table) == {
        "job/model.py:252 forward": 9_000,  # the forward kernel, and that of its backward operator
        "job/train.py:9 step": 2_000,
        "job/train.py:9 step (graph replay)": 96_000,
        "apex/optim.py:7 step": 4_000,
        None: 16_000,
    }
    (note,) = [note for note in table.notes if "has a line" in note]
    assert note.startswith("87.4 % of the kernels' time has a line: the innermost Python function")
    assert "75.6 % is of graph replays" in note


def test_findings_about_a_kernel_say_which_line_launched_it(tmp_path: Path) -> None:
    trace = written([*a_step(), *launch(9, 45, 3_000)], tmp_path)
    rows = nsightpy.findings(trace, use_cache=False).records()
    (told,) = [str(row["evidence"]) for row in rows if row["id"] == "dominating-kernel"]
    assert told.endswith("; most of it from job/model.py:252 forward")


def test_without_stacks_a_line_is_a_range_or_missing(tmp_path: Path) -> None:
    events = [each for each in a_step() if each["cat"] != PYTHON]
    silent = nsightpy.kernels(written(events, tmp_path), by="line", use_cache=False)
    assert not silent.rows
    assert "holds no lines of the program. Record them with_stack." in " ".join(silent.notes)
    ranges = [event("user_annotation", "## forward ##", 5, 50), *events]
    named = nsightpy.kernels(written(ranges, tmp_path), by="line", use_cache=False)
    assert by_line(named)["## forward ##"] == 1_000
    assert "the innermost code range" in " ".join(named.notes)


@needs_reports
def test_ranges_stand_for_lines_in_reports_of_nsys() -> None:
    path = NSYS / "train_nvtx_a100_2026.3.sqlite"
    table = nsightpy.kernels(path, by="line")
    lines = by_line(table)
    whole = sum(lines.values())
    assert lines["backward pass"] / whole == pytest.approx(0.621, abs=0.001)
    assert lines["forward pass"] / whole == pytest.approx(0.228, abs=0.001)
    assert not [line for line in lines if line and line.startswith("aten::")]
