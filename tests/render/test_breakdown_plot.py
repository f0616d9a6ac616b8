"""Pictures of budgets, idle causes and memory: what is drawn is what the tables say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from simulator import PRESETS, Export

from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.commands.breakdown.command import CAUSES, FIELDS, breakdown, budget_row
from nsightpy.commands.memory_usage.command import memory_usage
from nsightpy.errors import NsightpyError
from nsightpy.render.plots.breakdown_plot import MOST, breakdown_figure
from nsightpy.render.plots.drawing import picture_bytes
from nsightpy.render.plots.memory_plot import memory_figure
from nsightpy.results import Table, Value
from tests.support.reports import ask

SAMPLES = Path(__file__).resolve().parent.parent.parent / "sample_reports"
EVIL = "\x1b[31m$\\frac{a}{b}$ \u202e{}%s 名前.sqlite"


def widths(figure: Figure, panel: int) -> list[list[float]]:
    """The lengths of the pieces of each bar, top to bottom."""
    rows: dict[float, list[float]] = {}
    for patch in figure.axes[panel].patches:
        rows.setdefault(round(patch.get_y(), 3), []).append(patch.get_width())
    return [rows[y] for y in sorted(rows)]


def texts(figure: Figure) -> str:
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [text.get_text() for text in axes.texts]
        found += [text.get_text() for text in axes.get_yticklabels()]
        legend = axes.get_legend()
        found += [text.get_text() for text in legend.get_texts()] if legend else []
    return "\n".join(found)


@pytest.mark.slow
def test_the_bars_are_the_budget_and_the_causes() -> None:
    table = breakdown(str(SAMPLES / "training_4rank"))
    figure = breakdown_figure(table)
    for place, row in enumerate(table.records()):
        # milliseconds
        budget, causes = ([width * 1e6 for width in widths(figure, n)[place]] for n in (0, 1))
        assert sum(budget) == pytest.approx(row["window_ns"])
        assert budget[0] == pytest.approx(row["compute_ns"])
        assert sum(causes) == pytest.approx(row["idle_ns"])
        assert causes[:2] == pytest.approx([row["launch_bound_ns"], row["host_gap_ns"]])
    shown = texts(figure)
    assert "rank 3" in shown
    assert "launch-bound" in shown


def test_unknown_causes_are_no_bars() -> None:
    table = breakdown(str(SAMPLES / "single_process.sqlite"))
    causes = {field.name: None for field in CAUSES}
    rows = tuple(tuple({**record, **causes}.values()) for record in table.records())
    figure = breakdown_figure(replace(table, rows=rows))
    assert "causes are not known: the notes say why" in texts(figure)
    assert widths(figure, 1) == []


def test_many_devices_show_the_most_idle_ones() -> None:
    def row(rank: int) -> tuple[Value, ...]:
        budget = TimeBudget(0, 1_000, 1_000 - rank, 800 - rank, 0, 0, 0, 0, 0, 0)
        return budget_row(rank, 0, budget, {"host-gap": rank})

    table = Table("breakdown", FIELDS, tuple(row(rank) for rank in range(MOST + 20)), ("a.sqlite",))
    shown = texts(breakdown_figure(table))
    assert f"the {MOST} most idle devices, 20 left out" in shown
    assert f"rank {MOST + 19}" in shown.split("\n")
    assert "rank 1" not in shown.split("\n")


def test_no_rows_cannot_be_drawn() -> None:
    with pytest.raises(NsightpyError):
        breakdown_figure(Table("breakdown", FIELDS, ()))


def usage_export(path: Path) -> Path:
    export = Export(path)
    export.nvtx_push_pop(0, 10_000, "outer")
    export.nvtx_push_pop(100, 900, f"model {EVIL[:9]}")
    export.api(200, 300, "cudaMalloc_v3020", correlation=5)
    export.memory_usage(250, 4_000_000, address=1, correlation=5)
    # without a correlation id: the call that was in progress
    export.api(1_000, 1_300, "cudaMallocAsync_v11020", correlation=6)
    export.memory_usage(1_200, 1_000_000, address=2, correlation=0)
    export.memory_usage(2_000, 4_000_000, "free", address=1)
    # the address again, in another size
    export.memory_usage(3_000, 2_000_000, address=1, correlation=0)
    export.memory_usage(4_000, 7, "free", address=99)
    export.memory_usage(5_000, 500, address=3, kind="Pinned", correlation=0)
    return export.write()


def test_usage_finds_the_peak_and_who_made_it(tmp_path: Path) -> None:
    table = memory_usage(str(usage_export(tmp_path / "report.sqlite")))
    rows = [row for row in table.records() if row["memory"] == "Device"]
    assert {(row["peak_bytes"], row["peak_ns"], row["left_bytes"]) for row in rows} == {
        (5_000_000, 1_200, 3_000_000)
    }
    figures = ("at_peak_bytes", "at_peak_allocations", "allocations")
    who = {str(row["allocated_by"]): tuple(row[name] for name in figures) for row in rows}
    assert who == {
        f"model {EVIL[:9]}": (4_000_000, 1, 1),
        "outer": (1_000_000, 1, 1),
        "None": (0, 0, 1),
    }
    (pinned,) = (row for row in table.records() if row["memory"] == "Pinned")
    assert pinned["peak_bytes"] == 500
    assert any("1 frees gave back memory from before" in note for note in table.notes)


def test_usage_without_a_capture_of_it(tmp_path: Path) -> None:
    paths, _ = PRESETS["small"].write(tmp_path)
    table = memory_usage([str(path) for path in paths])
    assert table.rows == ()
    assert any("--cuda-memory-usage=true" in note for note in table.notes)
    with pytest.raises(NsightpyError, match="cuda-memory-usage"):
        memory_figure(table)
    answer = ask("memory-usage", paths[0], "-o", tmp_path / "a.png", expect=None)
    assert answer.code == 1
    assert not (tmp_path / "a.png").exists()


def test_hostile_names_do_no_harm(tmp_path: Path) -> None:
    export = Export(tmp_path / EVIL)
    export.kernel(100, 200, EVIL, launch=(10, 20))
    export.kernel(300, 400, EVIL, launch=(210, 220))
    figure = breakdown_figure(breakdown(str(export.write())))
    assert "\x1b" not in texts(figure)
    assert picture_bytes(figure, "a.png").startswith(b"\x89PNG")
