"""The sections that Nsight Compute's reports fill: rooflines, and what there is to gain."""

from __future__ import annotations

from typing import Any, Unpack, cast

from nsightpy.commands.headroom.command import headroom
from nsightpy.commands.headroom.gains import Headroom
from nsightpy.commands.report.inputs import Inputs
from nsightpy.commands.report.one_pass import OnePass
from nsightpy.commands.report.questions import Context, Question, columns, section_of
from nsightpy.commands.report.sentences import called
from nsightpy.commands.roofline.command import roofline
from nsightpy.query.request import Common
from nsightpy.results import Table, number
from nsightpy.results.page import Section
from nsightpy.results.rooflines import Roofline
from nsightpy.units import format_time, share_text

NO_MEASUREMENTS = (
    "No report of Nsight Compute is among the inputs. `{select}` says which kernels are worth "
    "measuring and prints the ncu commands; give their reports beside these."
)
NO_SYSTEM = (
    "It needs a report of Nsight Systems or a PyTorch trace beside the measurements, whose kernels "
    "tell what share of the step each one has."
)


def roofline_question(inputs: Inputs, context: Context) -> Question:
    """The roofline of everything that ncu measured, a row per kernel and shape."""
    return Question(
        "roofline",
        "Rooflines (Nsight Compute)",
        roofline,
        _roofline_says,
        "What kernels achieved against what the machine allows at their arithmetic intensity. of "
        "roof: achieved work over the nearest roof. compute and memory are ncu's speed of light: "
        "the busiest unit of each, in per cent of its peak.",
        NO_MEASUREMENTS.format(select=context.command("select") if inputs.ranks else "select"),
        main=columns(
            "kernel duration_ns precision flops_per_s roof_fraction sol_compute_pct "
            "sol_memory_pct classification"
        ),
        picture="roofline",
        caption="Above: work against arithmetic intensity, under the machine's roofs. "
        "Below: ncu's speed of light.",
        command="roofline",
    )


def measured(inputs: Inputs) -> Roofline:
    """What ncu measured, by kernel and shape."""
    left_out = ("from_time", "to_time", "iteration")  # they mean nothing to ncu
    kept: Any = {name: value for name, value in inputs.common.items() if name not in left_out}
    return roofline(inputs.compute, by="variant", **cast(Common, kept))


def roofline_section(rooflines: Roofline | None, inputs: Inputs, context: Context) -> Section:
    """What ncu measured, or how to measure."""
    question = roofline_question(inputs, context)
    return section_of(
        question, Table("roofline", (), ()) if rooflines is None else rooflines, context
    )


def headroom_question(rooflines: Roofline | None, inputs: Inputs, context: Context) -> Question:
    """The ceilings of the kernels of the capture, by what ncu measured of them."""

    def ask(ranks: OnePass, **common: Unpack[Common]) -> Headroom:
        return headroom(ranks, ncu=rooflines or inputs.compute, **common)

    return Question(
        "headroom",
        "What there is to gain",
        ask,
        _headroom_says,
        "A kernel's share of the step, and how far it is from its nearest roof: the ceiling is "
        "what reaching that roof would save at most, with the same work. Never a forecast.",
        NO_MEASUREMENTS.format(select=context.command("select")),
        main=columns(
            "name share roof_fraction ceiling_share roof nsys_med_ns ncu_ns classification "
        ),
        picture="headroom",
        caption="Share of the step against fraction of the roof; lines join kernels of equal gain.",
        command="headroom",
    )


def _roofline_says(table: Table) -> str:
    records = [record for record in table.records() if record["duration_ns"] is not None]
    if not records:
        return f"{len(table)} rows, none with a duration."
    first = max(records, key=lambda record: number(record.get("total_ns") or record["duration_ns"]))
    near = first["roof_fraction"]
    if near is None and first["sol_compute_pct"] is None and first["sol_memory_pct"] is None:
        time = format_time(number(first.get("total_ns") or first["duration_ns"]))
        return f"{called(first['kernel'])} takes longest, {time}; its limits were not measured."
    busiest = max(number(first["sol_compute_pct"]), number(first["sol_memory_pct"]))
    of_roof = (
        f"{share_text(number(near), 1)} of its roof"
        if near is not None
        else f"{busiest:.0f} % of the speed of light"
    )
    kind = f" ({first['classification']})" if first["classification"] else ""
    return f"{called(first['kernel'])}, the longest, reaches {of_roof}{kind}."


def _headroom_says(table: Table) -> str:
    together = table.ceiling_share if isinstance(table, Headroom) else None
    first = table.first(1).records()[0]
    gain = first["ceiling_share"]
    if gain is None:
        return "None of the measured kernels has a roof."
    most = (
        f"Together at most {share_text(together, 1)} of the step is to be gained; "
        if together
        else ""
    )
    share = share_text(number(gain), 1)
    return f"{most}{called(first['name'])} has the most: at most {share} of the step."
