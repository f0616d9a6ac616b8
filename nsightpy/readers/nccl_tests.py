"""What nccl-tests measured: the fastest bus bandwidth of each of its output files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from nsightpy.errors import ReportError
from nsightpy.readers.tools.file_check import file_errors, size_of_regular

MOST_BYTES = 16 << 20
# "#  Rank  0 Group  0 Pid  6899 on node-a device  0 [0x07] NVIDIA H100 80GB HBM3"
_DEVICE = re.compile(r"#\s+Rank\s+\d+ .*\bPid\s+\d+ on\s+(\S+) device\s+\d+ ")
# mpirun --tag-output puts the writer before each line
_TAG = re.compile(r"^\[[^\]]*\]<std\w+>:\s?")
_ADVICE = "run `all_reduce_perf -b 16M -e 8G -f 2` over the ranks of a group and keep its output."


def read_link_rates(paths: Iterable[Path | str], least_bytes: int) -> dict[bool, float]:
    """The fastest bus bandwidth in GB/s of operations of `least_bytes` or more, by file.

    Keys are whether the ranks of a run were on several nodes; of several runs the fastest counts.
    Raises ReportError for a file that holds no such figure.
    """
    rates: dict[bool, float] = {}
    for path in map(Path, paths):
        across, rate = _fastest(path, least_bytes)
        rates[across] = max(rate, rates.get(across, 0.0))
    return rates


def _fastest(path: Path, least_bytes: int) -> tuple[bool, float]:
    """Whether the run of a file crossed nodes, and its fastest bus bandwidth."""
    with file_errors(path):
        if size_of_regular(path) > MOST_BYTES:
            raise ReportError(path, "is too large for the output of nccl-tests", _ADVICE)
        text = path.read_bytes().decode("utf-8", "replace")
    hosts: set[str] = set()
    heading: list[str] = []
    fastest = 0.0
    for line in (_TAG.sub("", tagged) for tagged in text.splitlines()):
        cells = line.lstrip("# ").split()
        if device := _DEVICE.match(line):
            hosts.add(device[1])
        elif line.startswith("#") and "busbw" in cells:
            heading = cells
        elif heading and len(cells) == len(heading) and _size(cells[0]) >= least_bytes:
            fastest = max(fastest, *_rates(heading, cells))
    if not heading or not hosts:
        raise ReportError(path, "is no output of nccl-tests", _ADVICE)
    if not 0 < fastest < float("inf"):
        raise ReportError(
            path, f"has no bandwidth of an operation of {least_bytes >> 20} MiB or more", _ADVICE
        )
    return len(hosts) > 1, fastest


def _size(cell: str) -> int:
    """The bytes of a row's operation; 0 where the line is no row."""
    return int(cell) if cell.isdecimal() else 0


def _rates(heading: list[str], cells: list[str]) -> list[float]:
    """The bus bandwidths of a row, out of place and in place; 0 for what is no number."""
    rates = [cell for name, cell in zip(heading, cells, strict=True) if name == "busbw"]
    return [float(rate) if re.fullmatch(r"\d+\.?\d*", rate) else 0.0 for rate in rates]
