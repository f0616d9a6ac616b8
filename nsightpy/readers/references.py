"""What reports are held against: measured ceilings (lines of name, value and unit), the output of
nccl-tests, and baselines, read strictly."""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nsightpy.errors import ReportError
from nsightpy.readers.tools.file_check import file_errors, size_of_regular
from nsightpy.results.rooflines import LEVELS, SCALAR
from nsightpy.results.run_summary import (
    BASELINE_SCHEMA,
    KINDS,
    PARTS,
    SECTIONS,
    UNITS,
    Baseline,
    RunSummary,
)

_MOST_CEILINGS, _MOST_PRINTED, _MOST_BASELINE = 1 << 20, 16 << 20, 64 << 20
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_WORK = re.compile(r"(?:([kmgtp]?)(?:flops?|flop/s|ops?|ops/s))?", re.IGNORECASE)
_TRAFFIC = re.compile(r"(?:([kmgtp]?)(?:bytes?/s|b/s))?", re.IGNORECASE)
_ADVICE = (
    'write one ceiling per line, as "fp32, 18.9, TFLOP/s" or "dram, 1.41, TB/s" '
    "(fp64, fp32, fp16, tensor_bf16, ..., dram, l2, l1)."
)


def _content(path: Path, most: int, kind: str, advice: str) -> bytes:
    """What a file holds. Raises ReportError where it is larger than any such file."""
    with file_errors(path):
        if size_of_regular(path) > most:
            raise ReportError(path, f"is too large for {kind}", advice)
        return path.read_bytes()


def read_ceilings(path: Path | str) -> dict[str, float]:
    """The ceilings of a file, in FLOP/s and bytes/s. Raises ReportError for anything else."""
    path = Path(path)
    data = _content(path, _MOST_CEILINGS, "a list of ceilings", _ADVICE)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReportError(path, f"cannot be read as text: {error}", _ADVICE) from error
    ceilings = [_ceiling(path, row) for row in _rows(text)]
    if not ceilings:
        raise ReportError(path, "holds no ceilings", _ADVICE)
    if len(dict(ceilings)) < len(ceilings):
        raise ReportError(path, "has two ceilings of one name", _ADVICE)
    return dict(ceilings)


def _rows(text: str) -> list[list[str]]:
    """Name, value and unit of each line but a heading."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    rows = [re.split(r"\s*,\s*|\s+", line, maxsplit=2) for line in lines if line]
    return [row for row in rows if [cell.lower() for cell in row[:2]] != ["name", "value"]]


def _ceiling(path: Path, row: list[str]) -> tuple[str, float]:
    name = row[0].strip().lower()
    if name not in (*LEVELS, *SCALAR) and not name.startswith("tensor_"):
        raise ReportError(path, f"{row[0][:40]!r} is no precision or memory level", _ADVICE)
    written = row[2].strip() if len(row) > 2 else ""
    unit = (_TRAFFIC if name in LEVELS else _WORK).fullmatch(written)
    try:
        if unit is None:
            raise ValueError
        value = float(row[1]) * _PREFIXES[(unit[1] or "").lower()]
    except (ValueError, IndexError):
        raise ReportError(path, f"cannot read the ceiling {', '.join(row)!r}", _ADVICE) from None
    if not 0 < value < float("inf"):
        raise ReportError(path, f"the ceiling of {name} is not above zero", _ADVICE)
    return name, value


# "#  Rank  0 Group  0 Pid  6899 on node-a device  0 [0x07] NVIDIA H100 80GB HBM3"
_DEVICE = re.compile(r"#\s+Rank\s+\d+ .*\bPid\s+\d+ on\s+(\S+) device\s+\d+ ")
# mpirun --tag-output puts the writer before each line
_TAG = re.compile(r"^\[[^\]]*\]<std\w+>:\s?")
_RATE = re.compile(r"\d+\.?\d*")
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
    data = _content(path, _MOST_PRINTED, "the output of nccl-tests", _RUN_THEM)
    hosts: set[str] = set()
    heading: list[str] = []
    fastest = 0.0
    for line in (_TAG.sub("", tagged) for tagged in data.decode("utf-8", "replace").splitlines()):
        cells = line.lstrip("# ").split()
        if device := _DEVICE.match(line):
            hosts.add(device[1])
        elif line.startswith("#") and "busbw" in cells:
            heading = cells
        elif heading and len(cells) == len(heading) and cells[0].isdecimal():
            rates = [cell for name, cell in zip(heading, cells, strict=True) if name == "busbw"]
            if int(cells[0]) >= least_bytes:
                fastest = max(fastest, *(float(r) if _RATE.fullmatch(r) else 0.0 for r in rates))
    if not heading or not hosts:
        raise ReportError(path, "is no output of nccl-tests", _RUN_THEM)
    if not 0 < fastest < float("inf"):
        raise ReportError(
            path, f"has no bandwidth of an operation of {least_bytes >> 20} MiB or more", _RUN_THEM
        )
    return len(hosts) > 1, fastest


_SAVE_AGAIN = "write it again: nsightpy compare --save-baseline FILE RUN..."


class _Head(msgspec.Struct):
    schema: str = ""
    parts: tuple[str, ...] = ()


def read_baseline(path: Path | str) -> tuple[RunSummary, ...]:
    """The runs of a baseline. Raises ReportError for anything else, or another version."""
    path = Path(path)
    data = _content(path, _MOST_BASELINE, "a baseline", _SAVE_AGAIN)
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.schema != BASELINE_SCHEMA or head.parts != PARTS:
            problem = f"is no baseline of this version ({head.schema[:60]}, not {BASELINE_SCHEMA})"
            raise ReportError(path, problem, _SAVE_AGAIN)
        runs = msgspec.json.decode(data, type=Baseline).runs
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        problem = f"is no baseline, or a damaged one: {str(error)[:200]}"
        raise ReportError(path, problem, _SAVE_AGAIN) from None
    if not runs or not all(map(_can_be, runs)):
        raise ReportError(path, "is a damaged baseline: its figures contradict", _SAVE_AGAIN)
    return runs


def _can_be(run: RunSummary) -> bool:
    """Whether there can be such a run."""
    return (
        run.kind in KINDS
        and 0 < len(run.units.keys() & set(UNITS)) == len(run.units)
        and all(
            len(unit.parts) == len(PARTS)
            and sum(unit.parts) == unit.duration_ns
            and unit.count >= 1
            and all(len(row) == 1 + len(PARTS) for row in unit.samples)
            and all(0 <= index < len(unit.works) for index in unit.order)
            and all(work.section in SECTIONS for work in unit.works)
            for unit in run.units.values()
        )
    )
