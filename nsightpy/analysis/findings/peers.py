"""What devices say together: who computes longer than the others, and what a late rank costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from nsightpy.analysis.findings.evidence import NONE, Evidence, Group
from nsightpy.analysis.findings.thresholds import EXPLAINS, UNBALANCED
from nsightpy.analysis.time_budget import UNUSED
from nsightpy.units import format_time, significant


def with_peers(rows: Sequence[Evidence]) -> list[Evidence]:
    """The rows of all devices, each with what it costs the others."""
    return [
        row.having(
            {
                **{late: _awaited(row, row[late], rows) for late in ("straggler", "late")},
                "uneven": _uneven(row, rows),
            }
        )
        for row in rows
    ]


def _awaited(row: Evidence, late: Group, rows: Sequence[Evidence]) -> Group:
    """What a late rank costs, and whether longer compute makes it late."""
    others = [other for other in rows if other is not row]
    # who waits for it communicates, and only what nothing else hides costs time
    most = max((other.budget.exposed_communication_ns for other in others), default=0)
    lost = min(late.alone_ns, most)
    late = replace(late, alone_ns=lost, by_name={f"waiting for {row.name}": lost})
    times = _comparable([row, *others])
    usual = median(times[1:]) if len(times) > 1 else 0.0
    more = (times[0] - usual) * (row.iterations or 1) if usual else 0.0
    if not usual or more < EXPLAINS * lost:
        return late
    ratio = f"{significant(times[0] / usual)} times the others' median"
    return replace(late, also=f"its kernels take {format_time(round(more))} longer, {ratio}")


def _uneven(row: Evidence, rows: Sequence[Evidence]) -> Group:
    """What a device computes beyond the mean of all, where it is the one that computes longest."""
    least = UNUSED * max(other.budget.busy_ns for other in rows)
    used = [other for other in rows if other.window_ns and other.budget.busy_ns > least]
    work = _comparable(used)
    mean = sum(work) / max(len(work), 1)
    if not mean or max(work) < UNBALANCED * mean or row is not used[work.index(max(work))]:
        return NONE
    # devices that are busy with something else wait for nobody
    longest = max(other.window_ns for other in used)
    free, freest = max(
        (longest - other.budget.busy_ns + other.budget.exposed_communication_ns, -number)
        for number, other in enumerate(used)
        if other is not row
    )
    waiting = used[-freest]
    waits = (waiting["exposed-communication"], waiting["longest"])
    worst, ahead = max(waits, key=lambda of: of.longest_ns).worst, waiting.ahead_ns - row.ahead_ns
    beyond = min(int((max(work) - mean) * (row.iterations or 1)), free)
    computes = f"{format_time(row.budget.compute_ns)}{row.per_iteration(row.budget.compute_ns)}"
    return Group(
        alone_ns=beyond,
        name=f"{computes}, {significant(max(work) / mean)} times the mean of {len(work)} devices",
        worst=None if worst is None else replace(worst, start_ns=worst.start_ns + ahead),
    )


def _comparable(rows: Sequence[Evidence]) -> list[float]:
    """The compute time of each device per iteration, or of whole windows, in ns.

    Nothing where some windows hold iterations and others are whole captures.
    """
    counted = [bool(row.iterations) for row in rows]
    if any(counted) and not all(counted):
        return []
    return [row.budget.compute_ns / (row.iterations or 1) for row in rows]
