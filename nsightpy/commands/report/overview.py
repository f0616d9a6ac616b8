"""The head of the page: the verdict, the header's lines, findings, and a row per device."""

from __future__ import annotations

from dataclasses import replace

from nsightpy.commands.report.questions import Context, table_of
from nsightpy.results import Field, Finding, Summary, Table, number
from nsightpy.results.page import Card, PagePicture, Section
from nsightpy.results.verdict import bound_of
from nsightpy.units import format_time, share_text

_SHARES = (
    ("busy_share", "busy_ns"),
    ("compute_share", "compute_ns"),
    ("exposed_communication_share", "exposed_communication_ns"),
    ("copy_only_share", "copy_only_ns"),
    ("idle_share", "idle_ns"),
)
DEVICE_FIELDS = (
    Field("rank", "id"),
    Field("device", "id"),
    Field("host", "text"),
    Field("window_ns", "ns"),
    *(Field(name, "ratio", 4) for name, _ in _SHARES),
)
_CAUSE_FIELDS = ("launch_bound_ns", "host_gap_ns", "sync_drain_ns", "first_launch_ns")
DEVICES_HELP = (
    "The window is the steady iterations where there are some, else the time from a device's first "
    "to its last operation. busy: anything ran; compute: a kernel that is no communication ran; "
    "the other parts are what no compute hides. compute, communication alone, copies alone and "
    "idle do not overlap."
)
# Where the page shows more of a finding; others are about the capture.
SECTIONS = {
    "launch-bound": "launch-queues",
    "host-gap": "gaps",
    "sync-drain": "sync-waits",
    "first-launch": "gaps",
    "allocation": "gaps",
    "exposed-h2d": "memory",
    "exposed-d2h": "memory",
    "exposed-d2d": "memory",
    "pageable-copies": "memory",
    "many-small-copies": "memory",
    "unified-memory": "memory",
    "small-kernels": "kernels",
    "small-grid": "kernels",
    "tiny-blocks": "kernels",
    "fp32-gemm": "kernels",
    "unfused-elementwise": "kernels",
    "dominating-kernel": "kernels",
    "serialised-streams": "launch-queues",
    "exposed-communication": "collectives",
    "slow-collectives": "collectives",
    "straggler": "ranks",
    "imbalance": "imbalance",
    "startup-dominates": "iterations",
    "no-steady-state": "iterations",
    "healthy": "kernels",
}


def facts_of(summary: Summary) -> list[tuple[str, str]]:
    """The lines of the header: which GPUs, who ran, the capture, what the figures are about."""
    head = summary.header
    about = "; ".join(str(head[name]) for name in ("steady", "before") if head.get(name))
    return [*summary.header_lines(), *([("Overview of", about)] if about else [])]


def cards_of(summary: Summary) -> tuple[Card, ...]:
    """The findings, each with its bound and place in words."""
    return tuple(
        Card(finding, bound_of(finding), where_of(finding), SECTIONS.get(finding.id, "capture"))
        for finding in summary.findings
    )


def where_of(finding: Finding) -> str:
    parts = []
    if finding.rank is not None:
        parts.append(f"rank {finding.rank}")
    if finding.device is not None:
        parts.append(f"device {finding.device}")
    if finding.start_ns is not None:
        parts.append(f"at {format_time(finding.start_ns)}")
    if finding.duration_ns is not None:
        parts.append(f"for {format_time(finding.duration_ns)}")
    return ", ".join(parts)


def devices_section(summary: Summary, context: Context) -> Section:
    """How each device's time divides, and why it was idle."""
    budgets, idle = summary.sections["breakdown"], summary.sections["idle"]
    section = Section("devices", "Where the time went", help=DEVICES_HELP)
    if not budgets.rows:
        missing = "No device did anything: the capture holds no GPU work."
        return Section("devices", section.title, missing=missing)
    causes = {(row[0], row[1]): dict(zip(idle.columns, row, strict=True)) for row in idle.rows}
    hosts = {(row[0], row[3]): row[2] for row in summary.sections["ranks"].rows}
    known = [name for name in _CAUSE_FIELDS if name in idle.columns]
    known += [name for name in idle.columns[3:] if name not in known]
    rows = []
    for record in budgets.records():
        at = (record["rank"], record["device"])
        window = number(record["window_ns"])
        shares = [number(record[name]) / window if window else None for _, name in _SHARES]
        cause = causes.get(at, {})
        rows.append(
            (*at, hosts.get(at), record["window_ns"], *shares, *(cause.get(name) for name in known))
        )
    fields = (*DEVICE_FIELDS, *(Field(name, "ns") for name in known))
    table = Table("breakdown", fields, tuple(rows), summary.inputs)
    main = tuple(field.name for field in DEVICE_FIELDS)
    drawn = replace(budgets, inputs=summary.inputs)
    return Section(
        "devices",
        section.title,
        says=_least_busy(table),
        help=DEVICES_HELP,
        tables=(table_of("devices", table, main, most=256, keeps=128),),
        pictures=(
            PagePicture("devices", "breakdown", drawn, "Each bar is the window of one device."),
        ),
        command=context.command("breakdown"),
    )


def _least_busy(table: Table) -> str:
    records = table.records()
    shares = [number(record["idle_share"]) for record in records]
    if len(records) == 1:
        return f"The device is idle {share_text(shares[0], 1)} of its window."
    worst = records[shares.index(max(shares))]
    where = f"device {worst['device']}" if worst["rank"] is None else f"rank {worst['rank']}"
    low, high = share_text(min(shares), 1), share_text(max(shares), 1)
    if low == high:
        return f"All devices are idle {high} of their window."
    return f"Devices are idle between {low} and {high} of their window, {where} the most."
