"""Measured ceilings from files: JSON, or lines of name, value and unit; what nccl-tests printed."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nsightpy.errors import ReportError
from nsightpy.readers.tools.file_check import file_errors, size_of_regular
from nsightpy.results.rooflines import LEVELS, SCALAR, Ceiling

MOST_BYTES = 1 << 20
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_WORK = re.compile(r"([kmgtp]?)(?:flops?|flop/s|ops?|ops/s)", re.IGNORECASE)
_TRAFFIC = re.compile(r"([kmgtp]?)(?:bytes?/s|b/s)", re.IGNORECASE)
_ADVICE = (
    'write one ceiling per line, as "fp32, 18.9, TFLOP/s" or "dram, 1.41, TB/s" '
    "(fp64, fp32, fp16, tensor_bf16, ..., dram, l2, l1), or the same as JSON: "
    '{"fp32": 1.89e13, "dram": 1.41e12}.'
)


def read_ceilings(path: Path | str) -> tuple[Ceiling, ...]:
    """The ceilings of a file, in FLOP/s and bytes/s. Raises ReportError for anything else."""
    path = Path(path)
    with file_errors(path):
        if size_of_regular(path) > MOST_BYTES:
            raise ReportError(path, "is too large for a list of ceilings", _ADVICE)
        data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReportError(path, f"cannot be read as text: {error}", _ADVICE) from error
    try:
        rows = _json_rows(path, text) if text.lstrip()[:1] in ("{", "[") else _text_rows(text)
    except csv.Error as error:
        raise ReportError(path, f"has a line that cannot be read: {error}", _ADVICE) from None
    ceilings = tuple(_ceiling(path, row) for row in rows)
    if not ceilings:
        raise ReportError(path, "holds no ceilings", _ADVICE)
    names = [ceiling.name for ceiling in ceilings]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ReportError(path, f"has more than one ceiling of {twice}", _ADVICE)
    return ceilings


def _json_rows(path: Path, text: str) -> list[list[str]]:
    try:
        content: Any = json.loads(text, object_pairs_hook=list)  # what is there twice stays
    except (ValueError, RecursionError) as error:
        raise ReportError(path, f"is no JSON: {error}", _ADVICE) from None
    if not text.lstrip().startswith("{"):
        raise ReportError(path, "is no JSON object of names and values", _ADVICE)
    return [[str(name), str(value)] for name, value in content]


def _text_rows(text: str) -> list[list[str]]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    rows = [
        next(csv.reader([line], skipinitialspace=True)) if "," in line else line.split(maxsplit=2)
        for line in lines
        if line
    ]
    heading = rows and [cell.strip().lower() for cell in rows[0]][:2] == ["name", "value"]
    return rows[1:] if heading else rows


def _ceiling(path: Path, row: list[str]) -> Ceiling:
    name = row[0].strip().lower()
    if name not in (*LEVELS, *SCALAR) and not name.startswith("tensor_"):
        raise ReportError(path, f"{row[0]!r} is no precision or memory level", _ADVICE)
    units = _TRAFFIC if name in LEVELS else _WORK
    unit = units.fullmatch(row[2].strip()) if len(row) > 2 and row[2].strip() else None
    try:
        if len(row) > 2 and row[2].strip() and unit is None:
            raise ValueError
        value = float(row[1]) * _PREFIXES[unit[1].lower() if unit else ""]
    except (ValueError, IndexError):
        raise ReportError(path, f"cannot read the ceiling {', '.join(row)!r}", _ADVICE) from None
    if not 0 < value < float("inf"):
        raise ReportError(path, f"the ceiling of {name} is not above zero", _ADVICE)
    return Ceiling(name, value)


MOST_BYTES_PRINTED = 16 << 20
# "#  Rank  0 Group  0 Pid  6899 on node-a device  0 [0x07] NVIDIA H100 80GB HBM3"
_DEVICE = re.compile(r"#\s+Rank\s+\d+ .*\bPid\s+\d+ on\s+(\S+) device\s+\d+ ")
# mpirun --tag-output puts the writer before each line
_TAG = re.compile(r"^\[[^\]]*\]<std\w+>:\s?")
_RUN_THEM = "run `all_reduce_perf -b 16M -e 8G -f 2` over the ranks of a group and keep its output."


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
        if size_of_regular(path) > MOST_BYTES_PRINTED:
            raise ReportError(path, "is too large for the output of nccl-tests", _RUN_THEM)
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
        elif heading and len(cells) == len(heading) and _bytes_of(cells[0]) >= least_bytes:
            fastest = max(fastest, *_rates(heading, cells))
    if not heading or not hosts:
        raise ReportError(path, "is no output of nccl-tests", _RUN_THEM)
    if not 0 < fastest < float("inf"):
        raise ReportError(
            path, f"has no bandwidth of an operation of {least_bytes >> 20} MiB or more", _RUN_THEM
        )
    return len(hosts) > 1, fastest


def _bytes_of(cell: str) -> int:
    """The bytes of a row's operation; 0 where the line is no row."""
    return int(cell) if cell.isdecimal() else 0


def _rates(heading: list[str], cells: list[str]) -> list[float]:
    """The bus bandwidths of a row, out of place and in place; 0 for what is no number."""
    rates = [cell for name, cell in zip(heading, cells, strict=True) if name == "busbw"]
    return [float(rate) if re.fullmatch(r"\d+\.?\d*", rate) else 0.0 for rate in rates]
