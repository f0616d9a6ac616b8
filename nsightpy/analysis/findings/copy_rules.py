"""Rules on copies: what no kernel hides, pageable memory, small copies, pages that migrate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nsightpy.analysis.findings import gains
from nsightpy.analysis.findings.evidence import Evidence
from nsightpy.analysis.findings.rule import INFO, WARNING, Rule
from nsightpy.analysis.findings.thresholds import MANY


def _severity(group: str) -> Callable[[Evidence], str]:
    """Large copies are info at most where they are done once, or for a moment only."""
    return lambda row: INFO if row.moment or (row[group].once and not row.iterations) else WARNING


def _exposed(way: str, where: str, less: str, beside: str = "") -> tuple[Rule, Rule]:
    """The rules on the copies of one direction that nothing hides, and on their calls alone."""
    name = f"exposed-{way}"

    def lost(row: Evidence) -> int:
        return row[way].alone_ns + row.caused(name)

    rule = Rule(
        name,
        f"copies not overlapped: {where}",
        ns=lambda row: lost(row) if row[way].count else 0,
        text=(
            f"{{group.count:copies}} {where} ({{group.bytes:bytes}}<all|, pageable memory><some|, "
            "{group.detail:count} of them pageable>) ran with no kernel beside them<inside|, "
            f"{{idle.causes[{name}]:time}} of it inside the calls before they began>: {{loss}}; "
            "<mapped|keep the data mapped across regions (target data, enter data)|"
            f"{less}><edge|; what is copied once, before or after the kernels, matters once><rare|"
            f"; where they happen once, they matter once><again|{beside}>"
        ),
        next="memory",
        passed=f"copies {where} are hidden",
        when={
            "all": lambda row: row[way].detail == row[way].count,
            "some": lambda row: row[way].count > row[way].detail > 0,
            "inside": lambda row: row.caused(name) > row[way].alone_ns / 10,
            "mapped": lambda row: row.directives and bool(beside),
            "edge": lambda row: not (row.directives or row.iterations) and row[way].once,
            "rare": lambda row: not (row.directives or row.iterations or row[way].once),
            "again": lambda row: row.iterations and not row.directives,
        },
        of=way,
        time=lambda row: {name: lost(row)},
        most=_severity(way),
        edit=gains.copies,
    )
    text = f"calls of small copies {where} took long, with nothing on the GPU: {{loss}}; {less}"
    return rule, replace(rule, ns=lost, text=text, variant=True)


COPY_RULES = (
    *_exposed(
        "h2d",
        "from host to device",
        "keep the data on the device",
        ", or copy ahead on another stream",
    ),
    *_exposed(
        "d2h",
        "from device to host",
        "copy less",
        ", or copy on another stream while kernels run",
    ),
    *_exposed(
        "d2d",
        "and memory sets within or between devices",
        "write results in place, or send less to other devices",
    ),
    Rule(
        "pageable-copies",
        "pageable copies",
        ns=lambda row: row["pageable"].alone_ns,
        text=(
            "{group.bytes:bytes} in {group.count:copies} came from or went to pageable memory"
            "<group.rate| at {group.rate:number} GB/s>, {of_window}, the same time as that of the "
            "copies not overlapped: pinned memory copies faster, and beside kernels"
        ),
        next="memory",
        passed="copies are of pinned memory",
        of="pageable",
        most=_severity("pageable"),
        edit=gains.pageable_copies,
        bound=False,
    ),
    Rule(
        "many-small-copies",
        "many small copies",
        ns=lambda row: 0 if row["small"].count < MANY else row["small"].alone_ns,
        text=(
            "{group.count:count} copies under 16.4 KB ({group.mean_bytes:bytes} on average) took "
            "{loss}, and each may hold up the host: copy once, or decide on the device"
        ),
        next="memory",
        passed="copies are few or large",
        of="small",
        time=lambda row: {"small copies": row["small"].alone_ns},
    ),
    Rule(
        "unified-memory",
        "unified memory migrates",
        ns=lambda row: row["unified"].busy_ns + row.caused("unified-memory"),
        text=(
            "{group.bytes:bytes} of unified memory migrated in {loss}<faults|, "
            "{idle.causes[unified-memory]:time} of it idle before pages that were touched>; "
            "cudaMemPrefetchAsync or explicit copies avoid page faults"
        ),
        next="memory",
        passed="no pages migrate",
        when={"faults": lambda row: row.caused("unified-memory")},
        of="unified",
        time=lambda row: {"unified": row["unified"].busy_ns},
    ),
)
