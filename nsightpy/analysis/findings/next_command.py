"""The command line to go on with, about the reports, the device and the window of a finding."""

from __future__ import annotations

from nsightpy.analysis.findings.evidence import Evidence, JobEvidence

# Commands whose figures are those of a finding where they are asked about its window.
WINDOWED = frozenset(
    (
        *("api", "breakdown", "collectives", "gaps", "kernels", "launches", "memory", "nvtx"),
        "ranks",
    )
)
# What else is asked of a command.
MORE = {"memory": "--by memory"}


def next_command(
    job: JobEvidence, asked: str, row: Evidence | None = None, *, whole: bool = False
) -> str:
    """The command line of a command about these reports, or about one device of several.

    It is about the window that findings speak of, or about the `whole` capture.
    """
    command, _, more = asked.partition(" ")
    if command in ("kernels", "launches") and not any(one["kernels"].count for one in job.used):
        command, more = "breakdown", ""
    parts = ["nsightpy", command, job.report, more or MORE.get(command, ""), job.options]
    parts += [_only(job, row), "" if whole else _steady(job, command)]
    return " ".join(part for part in parts if part)


def _steady(job: JobEvidence, command: str) -> str:
    """What narrows a command to the window that findings speak of."""
    steady = bool(job.used) and all(row.window == "steady" for row in job.used)
    narrowed = steady and command in WINDOWED and not job.of_iterations
    return "--iteration steady" if narrowed else ""


def _only(job: JobEvidence, row: Evidence | None) -> str:
    if row is None or len(job.devices) < 2:
        return ""
    if row.rank is None:
        return f"--device {row.device}"
    alone = sum(other.rank == row.rank for other in job.devices) == 1
    return f"--rank {row.rank}" if alone else f"--rank {row.rank} --device {row.device}"
