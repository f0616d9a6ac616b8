"""Rules on copies: what no kernel hides, pageable memory, small copies, pages that migrate."""

from __future__ import annotations

from nsightpy.analysis.findings import gains
from nsightpy.analysis.findings.evidence import Evidence, Group
from nsightpy.analysis.findings.rule import INFO, WARNING, Rule
from nsightpy.analysis.findings.thresholds import MANY
from nsightpy.analysis.work_graph import edits


def _severity(row: Evidence, copies: Group) -> str:
    """Large copies are info at most where they are done once, or for a moment only."""
    return INFO if row.moment or (copies.once and not row.iterations) else WARNING


def _exposed(way: str, where: str, less: str, beside: str = "") -> Rule:
    """The rule on the copies of one direction that nothing hides, and on the calls before them."""
    name = f"exposed-{way}"
    return Rule(
        name,
        f"copies not overlapped: {where}",
        text=(
            f"{{group.count:copies}} {where} ({{group.bytes:bytes}}<all|, pageable memory><some|, "
            "{group.detail:count} of them pageable>) ran with no kernel beside them<inside|, "
            f"{{causes[{name}]:time}} of it inside the calls before they began>: {{loss}}; {less}"
            f"<iterations|{beside}|; what is copied once, matters once>"
        ),
        next="memory --by memory",
        passed=f"copies {where} are hidden",
        of=way,
        ns=lambda row: row[way].alone_ns + row.caused(name),
        matters=lambda row: row[way].count,
        when={
            "all": lambda row: row[way].detail == row[way].count,
            "some": lambda row: row[way].count > row[way].detail > 0,
            "inside": lambda row: row.caused(name) > row[way].alone_ns / 10,
        },
        most=lambda row: _severity(row, row[way]),
        edit=gains.copies,
    )


COPY_RULES = (
    _exposed(
        "h2d",
        "from host to device",
        "keep the data on the device",
        ", or copy ahead on another stream",
    ),
    _exposed(
        "d2h",
        "from device to host",
        "copy less",
        ", or copy on another stream while kernels run",
    ),
    _exposed(
        "d2d",
        "and memory sets within or between devices",
        "write results in place, or send less to other devices",
    ),
    Rule(
        "pageable-copies",
        "pageable copies",
        text=(
            "{group.bytes:bytes} in {group.count:copies} came from or went to pageable memory"
            "<group.rate| at {group.rate:number} GB/s>, {of_window}, the same time as that of the "
            "copies not overlapped: pinned memory copies faster, and beside kernels"
        ),
        next="memory --by memory",
        passed="copies are of pinned memory",
        of="pageable",
        most=lambda row: _severity(row, row["pageable"]),
        edit=lambda _, work: edits.copies(work.graph, among=work.graph.work.pageable),
        bound=False,
    ),
    Rule(
        "many-small-copies",
        "many small copies",
        text=(
            "{group.count:count} copies under 16.4 KB ({group.mean_bytes:bytes} on average) took "
            "{loss}, and each may hold up the host: copy once, or decide on the device"
        ),
        next="memory --by memory",
        passed="copies are few or large",
        of="small",
        matters=lambda row: row["small"].count >= MANY,
    ),
    Rule(
        "unified-memory",
        "unified memory migrates",
        text=(
            "{group.bytes:bytes} of unified memory migrated in {loss}<faults|, "
            "{causes[unified-memory]:time} of it idle before pages that were touched>; "
            "cudaMemPrefetchAsync or explicit copies avoid page faults"
        ),
        next="memory --by memory",
        passed="no pages migrate",
        of="unified",
        ns=lambda row: row["unified"].busy_ns + row.caused("unified-memory"),
        when={"faults": lambda row: row.caused("unified-memory")},
    ),
)
